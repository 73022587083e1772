/* judge_cases.h — running cases and comparing what comes out: the work behind `verify` and `verify --suite`. */
#ifndef LNT_CLI_DATA_JUDGE_CASES_H
#define LNT_CLI_DATA_JUDGE_CASES_H

#include "cli/data/cases.h"
#include "cli/data/compare.h"

typedef enum lnt_bake {
    LNT_BAKE_REST, /* all inputs but the first become initializers */
    LNT_BAKE_ALL,
    LNT_BAKE_NONE
} lnt_bake;

typedef struct lnt_verify_options {
    lnt_rule rule;
    lnt_convert_options convert;
    lnt_bake bake;
    bool case_extents; /* an input that a case has in other extents than the model declares becomes a constant */
    uint32_t threads;
    const char *level;
    /* Told about each output compared; may be NULL. */
    void (*report)(void *arg, const lnt_case *c, const char *output, const lnt_tensor *got,
                   const lnt_comparison *result);
    void *arg;
} lnt_verify_options;

typedef enum lnt_verdict { LNT_VERDICT_PASS, LNT_VERDICT_MISMATCH } lnt_verdict;

/* Runs every case on an opened model. *verdict is valid if OK is returned; reason says why a case fails, or by which
 * rule its elements pass where that is not rtol and atol. */
lnt_status lnt_verify_cases(const lnt_verify_options *how, lnt_opened *o, const lnt_cases *cases,
                            lnt_verdict *verdict, char reason[256], lnt_error *err);

/* Converts and verifies an .onnx. The conversion sees of the cases only what bake declares, how long sequences are and,
 * where it needs them to know how long others are, integers and bools of one element: then, and with baking, it is
 * done once for each case. */
lnt_status lnt_verify_onnx(const lnt_verify_options *how, const char *path, const lnt_cases *cases,
                           lnt_verdict *verdict, char reason[256], lnt_error *err);

#endif
