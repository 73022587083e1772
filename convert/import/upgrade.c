/* upgrade.c — older forms of operators rewritten to the newest opset's.
 *
 * Operators know the newest semantics only. Three tables say what an older node needs: attributes that were
 * removed, attributes that have become inputs, and rules of their own (upgrade_rules.c). */
#include "convert/import/upgrade.h"

#include <string.h>

/* An attribute that was removed: before opset `before` it is dropped. */
static const struct {
    const char *op; /* NULL: any */
    int64_t before;
    const char *attr;
} dropped[] = {
    {NULL, 6, "consumed_inputs"},
    {"BatchNormalization", 7, "is_test"},
    {"BatchNormalization", 14, "momentum"},
    {"Dropout", 7, "is_test"},
    {"Dropout", 12, "ratio"},
    {"Dropout", 12, "seed"},
    {"Gemm", 7, "broadcast"},
    {"GRU", 7, "output_sequence"},
    {"LSTM", 7, "output_sequence"},
    {"RNN", 7, "output_sequence"},
};

typedef enum attr_kind {
    INTS_1D,   /* one or several integers: an int64 tensor of rank 1 */
    INT_0D,    /* a scalar */
    FLOATS_1D, /* a float tensor of rank 1 */
    LIKE_DATA  /* a scalar of input 0's type */
} attr_kind;

/* An attribute that was an input's forerunner. */
typedef struct move {
    const char *op;
    int64_t before;
    const char *attr;
    uint8_t input;
    uint8_t kind;
} move;

static const move moves[] = {
    {"Clip", 11, "min", 1, LIKE_DATA},
    {"Clip", 11, "max", 2, LIKE_DATA},
    {"DFT", 20, "axis", 2, INT_0D},
    {"Pad", 11, "paddings", 1, INTS_1D},
    {"Pad", 11, "pads", 1, INTS_1D},
    {"Pad", 11, "value", 2, LIKE_DATA},
    {"ReduceL1", 18, "axes", 1, INTS_1D},
    {"ReduceL2", 18, "axes", 1, INTS_1D},
    {"ReduceLogSum", 18, "axes", 1, INTS_1D},
    {"ReduceLogSumExp", 18, "axes", 1, INTS_1D},
    {"ReduceMax", 18, "axes", 1, INTS_1D},
    {"ReduceMean", 18, "axes", 1, INTS_1D},
    {"ReduceMin", 18, "axes", 1, INTS_1D},
    {"ReduceProd", 18, "axes", 1, INTS_1D},
    {"ReduceSum", 13, "axes", 1, INTS_1D},
    {"ReduceSumSquare", 18, "axes", 1, INTS_1D},
    {"Reshape", 5, "shape", 1, INTS_1D},
    {"Slice", 10, "starts", 1, INTS_1D},
    {"Slice", 10, "ends", 2, INTS_1D},
    {"Slice", 10, "axes", 3, INTS_1D},
    {"Split", 13, "split", 1, INTS_1D},
    {"Squeeze", 13, "axes", 1, INTS_1D},
    {"TopK", 10, "k", 1, INTS_1D},
    {"Unsqueeze", 13, "axes", 1, INTS_1D},
    {"Upsample", 9, "scales", 1, FLOATS_1D},
};

static lnt_status move_attr(lnt_importer *im, lnt_inode *n, const move *m)
{
    const lnt_attr *a = lnt_inode_attr(n, m->attr);
    if (!a)
        return LNT_OK;
    const bool ints = a->type == LNT_ATTR_INT || a->type == LNT_ATTR_INTS;
    const bool wants_ints = m->kind == INTS_1D || m->kind == INT_0D;
    if (ints != wants_ints || (!ints && a->type != LNT_ATTR_FLOAT && a->type != LNT_ATTR_FLOATS) ||
        !a->count) {
        if (ints && !a->count)
            lnt_inode_drop(n, m->attr);
        else
            LNT_TRY(lnt_import_unsupported(im, n, "attribute %s has the wrong type", m->attr));
        return LNT_OK;
    }
    const lnt_operand *data = lnt_ginfo(im->g, lnt_inode_in(n, 0));
    uint32_t value = LNT_NONE;
    switch ((attr_kind)m->kind) {
    case INTS_1D: LNT_TRY(lnt_make_ints(im, n, m->attr, a->i, a->count, &value)); break;
    case INT_0D: LNT_TRY(lnt_make_int(im, n, m->attr, *a->i, &value)); break;
    case FLOATS_1D: LNT_TRY(lnt_make_floats(im, n, m->attr, a->f, a->count, &value)); break;
    case LIKE_DATA:
        LNT_TRY(lnt_make_scalar(im, n, m->attr, data ? (lnt_dtype)data->dtype : LNT_FLOAT, *a->f, &value));
        break;
    }
    lnt_inode_drop(n, m->attr);
    return lnt_inode_set_in(im, n, m->input, value);
}

lnt_status lnt_upgrade(lnt_importer *im, lnt_inode *n)
{
    if (n->domain[0])
        return LNT_OK;
    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++)
        if (n->opset < dropped[i].before && (!dropped[i].op || strcmp(n->op, dropped[i].op) == 0))
            lnt_inode_drop(n, dropped[i].attr);
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        if (n->opset < moves[i].before && strcmp(n->op, moves[i].op) == 0)
            LNT_TRY(move_attr(im, n, &moves[i]));
    for (const lnt_upgrade_rule *r = lnt_upgrade_rules; r->op && !n->replaced; r++)
        if (n->opset < r->before && strcmp(n->op, r->op) == 0)
            LNT_TRY(r->apply(im, n));
    return LNT_OK;
}
