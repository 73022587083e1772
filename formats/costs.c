/* costs.c — reading cost tables, and what follows from them. */
#include "formats/costs.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 256, GRAIN_MULTIPLICATIONS = 64 * 1024, GRAIN_LEAST = 50, GRAIN_MOST = 800 };

typedef struct field {
    const char *key;
    size_t at;
    bool number; /* a double, else text of LNT_COSTS_TEXT */
    bool optional;
} field;

#define TEXT(name)                                                                                           \
    {                                                                                                        \
#name, offsetof(lnt_costs, name), false, false                                                       \
    }
#define NUMBER(name, optional)                                                                               \
    {                                                                                                        \
#name, offsetof(lnt_costs, name), true, optional                                                     \
    }
static const field fields[] = {TEXT(origin),
                               TEXT(cpu),
                               TEXT(governor),
                               TEXT(throttled),
                               NUMBER(clock_mhz, true),
                               NUMBER(temperature_c, true),
                               NUMBER(quantize_ns, false),
                               NUMBER(wake_us, false),
                               NUMBER(handover_us, false),
                               NUMBER(grain_percent, false)};
enum { FIELDS = sizeof fields / sizeof *fields };

/* A number above 0 at *text, which moves past it; NAN if there is none. */
static double take_number(const char **text)
{
    char *end;
    const double x = strtod(*text, &end);
    const bool good = end != *text && (*end == '\0' || *end == ' ') && x >= 0 && isfinite(x);
    *text = end;
    return good ? x : NAN;
}

static bool take_level(lnt_costs *c, const char *value)
{
    const size_t n = strcspn(value, " ");
    if (c->n_levels == LNT_COSTS_LEVELS || n == 0 || n >= sizeof c->level[0].name)
        return false;
    lnt_cost_level *l = &c->level[c->n_levels++];
    memcpy(l->name, value, n);
    value += n;
    l->float_gflops = take_number(&value);
    l->byte_gops = take_number(&value);
    return l->float_gflops > 0 && l->byte_gops > 0 && *value == '\0';
}

static bool take_memory(lnt_costs *c, const char *value)
{
    if (c->n_memories == LNT_COSTS_MEMORIES)
        return false;
    lnt_cost_memory *m = &c->memory[c->n_memories++];
    m->kib = take_number(&value);
    m->gbs = take_number(&value);
    return m->kib >= 0 && m->gbs > 0 && *value == '\0';
}

static bool take_field(const field *f, const char *value, lnt_costs *c)
{
    char *to = (char *)c + f->at;
    double x = NAN;
    if (!f->number) {
        memcpy(to, value, strnlen(value, LNT_COSTS_TEXT - 1));
        return *value != '\0';
    }
    const bool unknown = f->optional && strcmp(value, "unknown") == 0;
    if (!unknown)
        x = take_number(&value);
    memcpy(to, &x, sizeof x);
    return unknown || (!isnan(x) && *value == '\0');
}

static bool take_line(const char *line, lnt_costs *c, bool *seen)
{
    const size_t key = strcspn(line, " ");
    const char *value = line + key + strspn(line + key, " ");
    if (key == strlen("level") && strncmp(line, "level", key) == 0)
        return take_level(c, value);
    if (key == strlen("memory") && strncmp(line, "memory", key) == 0)
        return take_memory(c, value);
    for (unsigned i = 0; i < FIELDS; i++)
        if (strlen(fields[i].key) == key && strncmp(fields[i].key, line, key) == 0)
            return !seen[i] && (seen[i] = true) && take_field(&fields[i], value, c);
    return false;
}

lnt_status lnt_costs_parse(const char *text, lnt_costs *c, lnt_error *err)
{
    bool seen[FIELDS] = {false};
    memset(c, 0, sizeof *c);
    for (unsigned number = 1; *text; number++) {
        char line[LINE] = "";
        const size_t length = strcspn(text, "\n");
        size_t n = strcspn(text, "#\n");
        while (n && text[n - 1] == ' ')
            n--;
        LNT_REQUIRE(n < sizeof line, err, LNT_E_FILE, "cost table: line %u is too long", number);
        memcpy(line, text, n);
        LNT_REQUIRE(!n || take_line(line, c, seen), err, LNT_E_FILE, "cost table: line %u, '%s'", number,
                    line);
        text += length + (text[length] == '\n');
    }
    for (unsigned i = 0; i < FIELDS; i++)
        LNT_REQUIRE(seen[i], err, LNT_E_FILE, "cost table: %s is missing", fields[i].key);
    LNT_REQUIRE(c->n_levels, err, LNT_E_FILE, "cost table: level is missing");
    LNT_REQUIRE(c->n_memories && c->memory[c->n_memories - 1].kib <= 0, err, LNT_E_FILE,
                "cost table: memory must end with size 0");
    return LNT_OK;
}

/* Reads of so many bytes, again and again, come from the first memory that holds them. */
static double read_us(const lnt_costs *c, double bytes)
{
    unsigned i = 0;
    while (i + 1 < c->n_memories && c->memory[i].kib * 1024 < bytes)
        i++;
    return bytes / c->memory[i].gbs / 1e3;
}

double lnt_costs_float_us(const lnt_costs *c, double multiplications, double weight_bytes)
{
    const double compute = 2 * multiplications / c->level[c->n_levels - 1].float_gflops / 1e3;
    return fmax(compute, read_us(c, weight_bytes));
}

double lnt_costs_int8_us(const lnt_costs *c, double multiplications, double weight_bytes, double activations)
{
    const double compute = 2 * multiplications / c->level[c->n_levels - 1].byte_gops / 1e3;
    return fmax(compute, read_us(c, weight_bytes)) + activations * c->quantize_ns / 1e3;
}

double lnt_costs_grain_percent(const lnt_costs *c)
{
    const double piece = lnt_costs_float_us(c, GRAIN_MULTIPLICATIONS, 0);
    return fmin(fmax(100 * 2 * c->handover_us / piece, GRAIN_LEAST), GRAIN_MOST);
}
