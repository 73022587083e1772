/* passes.c — runs the passes in their order. */
#include "convert/graph/check_graph.h"
#include "convert/passes/passes.h"

typedef struct pass {
    lnt_status (*run)(lnt_graph *g, lnt_report *report);
    lnt_opt level;
} pass;

static const pass list[] = {
#define X(name, level) {lnt_pass_##name, LNT_OPT_##level},
    LNT_PASS_LIST(X)
#undef X
};

enum { N_PASSES = sizeof list / sizeof list[0], MAX_ROUNDS = 16 };

static unsigned done(const lnt_report *report)
{
    unsigned n = 0;
    for (size_t i = 0; i < report->n_passes; i++)
        n += report->pass[i].count;
    return n;
}

static lnt_status run(lnt_graph *g, lnt_report *report, const pass *p)
{
    LNT_TRY(lnt_graph_infer(g));
    LNT_TRY(p->run(g, report));
    if (g->uses.incomplete)
        return LNT_E_MEMORY;
    lnt_graph_sweep(g);
    lnt_check_graph(g);
    return LNT_OK;
}

lnt_status lnt_run_passes(lnt_graph *g, lnt_opt opt, lnt_report *report)
{
    /* Folding one chain makes extents known on which the next chain depends: repeated until nothing changes. */
    unsigned before;
    unsigned rounds = 0;
    do {
        before = done(report);
        for (unsigned i = 0; i < N_PASSES; i++)
            if (list[i].level == LNT_OPT_BASIC && opt >= LNT_OPT_BASIC)
                LNT_TRY(run(g, report, &list[i]));
    } while (done(report) != before && ++rounds < MAX_ROUNDS);
    for (unsigned i = 0; i < N_PASSES; i++)
        if (list[i].level != LNT_OPT_BASIC && opt >= list[i].level)
            LNT_TRY(run(g, report, &list[i]));
    lnt_graph_forget_symbols(g);
    return LNT_OK;
}
