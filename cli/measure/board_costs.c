/* board_costs.c — the cost tables of boards/costs/, which are part of the program, and tables in files. */
#include "cli/measure/measure_costs.h"

#include "cli/data/model.h"

#include <string.h>

static const struct {
    const char *name, *text;
} boards[] = {
#include <board_costs.inc.h>
};

static lnt_status parse_file(const char *path, lnt_costs *c, lnt_error *err)
{
    char *text;
    LNT_TRY(lnt_read_text(path, &text, err));
    return lnt_costs_parse(text, c, err);
}

lnt_status lnt_costs_of_board(const char *name, lnt_costs *c, lnt_error *err)
{
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        if (strcmp(boards[i].name, name) == 0)
            return lnt_costs_parse(boards[i].text, c, err);
    lnt_error why = {0};
    const lnt_status status = parse_file(name, c, &why);
    LNT_REQUIRE(status != LNT_E_IO, err, LNT_E_NOT_FOUND,
                "--board %s: neither a board (`make help` lists them) nor a file with a cost table", name);
    LNT_REQUIRE(status == LNT_OK, err, status, "--board %s: %s", name, why.message);
    return LNT_OK;
}
