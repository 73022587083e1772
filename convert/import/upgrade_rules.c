/* upgrade_rules.c — older forms that take more than moving an attribute. Formulas are those of the ONNX
 * operator changelog, which has every version's text. */
#include "convert/import/upgrade.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static const lnt_operand *input_info(const lnt_importer *im, const lnt_inode *n, unsigned i)
{
    return lnt_ginfo(im->g, lnt_inode_in(n, i));
}

/* Rank of input i; LNT_RANK_UNKNOWN, then listed as unsupported, where an older form needs it. */
static lnt_status need_rank(lnt_importer *im, const lnt_inode *n, unsigned i, unsigned *rank)
{
    const lnt_operand *o = input_info(im, n, i);
    *rank = o ? o->rank : LNT_RANK_UNKNOWN;
    if (*rank == LNT_RANK_UNKNOWN)
        return lnt_import_unsupported(
            im, n,
            "its form of opset %lld needs the rank of input %u, which is not known: export with opset 13 "
            "or newer",
            (long long)n->opset, i);
    return LNT_OK;
}

/* Input i gets axes [first, first + count) of extent 1. */
static lnt_status unsqueeze_input(lnt_importer *im, lnt_inode *n, unsigned i, unsigned first, unsigned count)
{
    int64_t axes[LNT_MAX_RANK];
    uint32_t in[2] = {n->in[i], LNT_NONE}, out;
    for (unsigned k = 0; k < count; k++)
        axes[k] = first + k;
    LNT_TRY(lnt_make_ints(im, n, "axes", axes, count, &in[1]));
    LNT_TRY(lnt_make(im, n, "Unsqueeze", in, 2, NULL, 0, &out));
    n->in[i] = out;
    return LNT_OK;
}

/* Before opset 7 input 1's axes stood below input 0's from `axis` on. */
static lnt_status axis_broadcast(lnt_importer *im, lnt_inode *n)
{
    const bool given = lnt_inode_attr(n, "axis") && lnt_inode_i(n, "broadcast", 0);
    int64_t axis = lnt_inode_i(n, "axis", 0);
    lnt_inode_drop(n, "axis");
    lnt_inode_drop(n, "broadcast");
    if (!given || n->n_in < 2)
        return LNT_OK;
    unsigned a, b;
    LNT_TRY(need_rank(im, n, 0, &a));
    LNT_TRY(need_rank(im, n, 1, &b));
    if (a == LNT_RANK_UNKNOWN || b == LNT_RANK_UNKNOWN)
        return LNT_OK;
    axis += axis < 0 ? a : 0;
    if (axis < 0 || b > a || axis > a - b)
        return lnt_import_unsupported(im, n, "axis %lld does not fit ranks %u and %u", (long long)axis, a, b);
    const unsigned behind = a - b - (unsigned)axis;
    return behind ? unsqueeze_input(im, n, 1, b, behind) : LNT_OK;
}

/* PRelu before 7: a slope of rank 1 runs along the channels. */
static lnt_status prelu(lnt_importer *im, lnt_inode *n)
{
    const lnt_operand *slope = input_info(im, n, 1), *x = input_info(im, n, 0);
    if (!slope || !x || slope->rank != 1 || slope->dims[0] == 1 || x->rank == LNT_RANK_UNKNOWN || x->rank < 3)
        return LNT_OK;
    return unsqueeze_input(im, n, 1, 1, x->rank - 2u);
}

/* Softmax and its kind before 13 saw a matrix, split at axis (1 by default). */
static lnt_status softmax_matrix(lnt_importer *im, lnt_inode *n)
{
    const lnt_operand *x = input_info(im, n, 0);
    const int64_t axis = lnt_inode_i(n, "axis", 1);
    if (!x || n->n_out != 1)
        return LNT_OK;
    if (axis == -1 || (x->rank != LNT_RANK_UNKNOWN && (axis == x->rank - 1 || x->rank == 0)))
        return lnt_inode_set_i(im, n, "axis", -1);
    uint32_t flat, shape, soft;
    const int64_t last = -1;
    const lnt_attr at_axis = {.name = "axis", .type = LNT_ATTR_INT, .count = 1, .i = &axis};
    const lnt_attr at_last = {.name = "axis", .type = LNT_ATTR_INT, .count = 1, .i = &last};
    LNT_TRY(lnt_make(im, n, "Flatten", &n->in[0], 1, &at_axis, 1, &flat));
    LNT_TRY(lnt_make(im, n, "Shape", &n->in[0], 1, NULL, 0, &shape));
    LNT_TRY(lnt_make(im, n, n->op, &flat, 1, &at_last, 1, &soft));
    n->replaced = true;
    return lnt_make_into(im, n, "Reshape", (const uint32_t[]){soft, shape}, 2, NULL, 0, n->out[0]);
}

/* Split without lengths: equal parts, as many as outputs. */
static lnt_status split_evenly(lnt_importer *im, lnt_inode *n)
{
    return lnt_inode_in(n, 1) == LNT_NONE ? lnt_inode_set_i(im, n, "num_outputs", n->n_out) : LNT_OK;
}

static lnt_status concat_axis(lnt_importer *im, lnt_inode *n)
{
    return lnt_inode_attr(n, "axis") ? LNT_OK : lnt_inode_set_i(im, n, "axis", 1);
}

/* Cast before 6 named its type. */
static lnt_status cast_by_name(lnt_importer *im, lnt_inode *n)
{
    const char *to = lnt_inode_s(n, "to", NULL);
    if (!to)
        return LNT_OK;
    static const struct {
        lnt_dtype dtype;
        const char *name;
    } types[] = {{LNT_FLOAT, "FLOAT"},     {LNT_UINT8, "UINT8"},   {LNT_INT8, "INT8"},
                 {LNT_UINT16, "UINT16"},   {LNT_INT16, "INT16"},   {LNT_INT32, "INT32"},
                 {LNT_INT64, "INT64"},     {LNT_BOOL, "BOOL"},     {LNT_DOUBLE, "DOUBLE"},
                 {LNT_FLOAT16, "FLOAT16"}, {LNT_UINT32, "UINT32"}, {LNT_UINT64, "UINT64"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcasecmp(types[i].name, to) == 0)
            return lnt_inode_set_i(im, n, "to", types[i].dtype);
    return lnt_import_unsupported(im, n, "type '%s' is not known", to);
}

/* Cast before 24 kept real numbers within an integer of 4 bits; it takes the lower bits since. */
static lnt_status cast_within(lnt_importer *im, lnt_inode *n)
{
    const lnt_operand *x = input_info(im, n, 0);
    const int64_t to = lnt_inode_i(n, "to", 0);
    const bool real = x && (x->dtype == LNT_FLOAT || x->dtype == LNT_DOUBLE || x->dtype == LNT_FLOAT16 ||
                            x->dtype == LNT_BFLOAT16);
    if (!real || (to != LNT_INT4 && to != LNT_UINT4))
        return LNT_OK;
    uint32_t in[] = {n->in[0], LNT_NONE, LNT_NONE};
    LNT_TRY(lnt_make_scalar(im, n, "least", (lnt_dtype)x->dtype, to == LNT_INT4 ? -8 : 0, &in[1]));
    LNT_TRY(lnt_make_scalar(im, n, "most", (lnt_dtype)x->dtype, to == LNT_INT4 ? 7 : 15, &in[2]));
    return lnt_make(im, n, "Clip", in, 3, NULL, 0, &n->in[0]);
}

/* DynamicSlice, of ONNX's first experiments, is Slice since 10. */
static lnt_status slice(lnt_importer *im, lnt_inode *n)
{
    (void)im;
    n->op = "Slice";
    return LNT_OK;
}

static lnt_status selu_constants(lnt_importer *im, lnt_inode *n)
{
    static const float alpha = 1.6732f, gamma = 1.0507f;
    if (!lnt_inode_attr(n, "alpha"))
        LNT_TRY(lnt_inode_set(im, n, &(lnt_attr){"alpha", LNT_ATTR_FLOAT, 1, {.f = &alpha}}));
    if (!lnt_inode_attr(n, "gamma"))
        LNT_TRY(lnt_inode_set(im, n, &(lnt_attr){"gamma", LNT_ATTR_FLOAT, 1, {.f = &gamma}}));
    return LNT_OK;
}

/* The p of LpPool-1 and GlobalLpPool-1 was a float. */
static lnt_status pool_order(lnt_importer *im, lnt_inode *n)
{
    const lnt_attr *p = lnt_inode_attr(n, "p");
    if (!p || p->type != LNT_ATTR_FLOAT)
        return LNT_OK;
    if (*p->f != truncf(*p->f))
        return lnt_import_unsupported(im, n, "p = %g is no whole number", (double)*p->f);
    return lnt_inode_set_i(im, n, "p", (int64_t)*p->f);
}

/* Tile-1 repeats along one axis: inputs tiles and axis. */
static lnt_status tile_one_axis(lnt_importer *im, lnt_inode *n)
{
    const lnt_operand *tiles = input_info(im, n, 1), *axis = input_info(im, n, 2);
    if (!axis)
        return LNT_OK;
    unsigned rank;
    LNT_TRY(need_rank(im, n, 0, &rank));
    if (rank == LNT_RANK_UNKNOWN)
        return LNT_OK;
    if (!tiles->data || !axis->data || lnt_operand_count(tiles) != 1 || lnt_operand_count(axis) != 1 ||
        tiles->dtype != LNT_INT64 || axis->dtype != LNT_INT64)
        return lnt_import_unsupported(im, n, "tiles and axis must be constant: export with opset 6 or newer");
    int64_t repeats[LNT_MAX_RANK], at = *(const int64_t *)axis->data;
    at += at < 0 ? rank : 0;
    if (at < 0 || at >= rank)
        return lnt_import_unsupported(im, n, "axis %lld is outside a tensor of rank %u", (long long)at, rank);
    for (unsigned i = 0; i < rank; i++)
        repeats[i] = i == at ? *(const int64_t *)tiles->data : 1;
    n->n_in = 2;
    return lnt_make_ints(im, n, "repeats", repeats, rank, &n->in[1]);
}

/* ---- resizing ---- */

/* Upsample, and Resize of opset 10: coordinates are divided by the scale; nearest takes the lower neighbor
 * along an axis that grows and the upper one along one that shrinks. */
static lnt_status resize_by_scales(lnt_importer *im, lnt_inode *n)
{
    const uint32_t scales = lnt_inode_in(n, 1);
    if (scales == LNT_NONE)
        return lnt_import_unsupported(im, n, "input scales is missing");
    LNT_TRY(lnt_inode_set_s(im, n, "coordinate_transformation_mode", "asymmetric"));
    LNT_TRY(lnt_inode_set_s(im, n, "nearest_mode", "linnet.outward"));
    if (strstr(lnt_inode_s(n, "mode", "nearest"), "linear"))
        LNT_TRY(lnt_inode_set_s(im, n, "mode", "linear"));
    LNT_TRY(lnt_inode_set_in(im, n, 2, scales));
    n->in[1] = LNT_NONE;
    n->op = "Resize";
    return LNT_OK;
}

/* Upsample-1 names the scales of the last two of four axes. */
static lnt_status upsample_planes(lnt_importer *im, lnt_inode *n)
{
    if (!lnt_inode_attr(n, "height_scale"))
        return LNT_OK;
    const float scales[4] = {1, 1, lnt_inode_f(n, "height_scale", 1), lnt_inode_f(n, "width_scale", 1)};
    uint32_t value;
    LNT_TRY(lnt_make_floats(im, n, "scales", scales, 4, &value));
    lnt_inode_drop(n, "height_scale");
    lnt_inode_drop(n, "width_scale");
    return lnt_inode_set_in(im, n, 1, value);
}

/* GridSample-16 called its modes by their number of dimensions. */
static lnt_status grid_sample_mode(lnt_importer *im, lnt_inode *n)
{
    const char *mode = lnt_inode_s(n, "mode", "bilinear");
    if (strcmp(mode, "bilinear") == 0)
        return lnt_inode_set_s(im, n, "mode", "linear");
    return strcmp(mode, "bicubic") == 0 ? lnt_inode_set_s(im, n, "mode", "cubic") : LNT_OK;
}

static lnt_status roi_align_mode(lnt_importer *im, lnt_inode *n)
{
    const bool given = lnt_inode_attr(n, "coordinate_transformation_mode") != NULL;
    return given ? LNT_OK : lnt_inode_set_s(im, n, "coordinate_transformation_mode", "output_half_pixel");
}

/* DFT before 20: the default axis was 1 (now -2). */
static lnt_status dft_axis(lnt_importer *im, lnt_inode *n)
{
    uint32_t axis;
    if (lnt_inode_in(n, 2) != LNT_NONE)
        return LNT_OK;
    LNT_TRY(lnt_make_int(im, n, "axis", 1, &axis));
    return lnt_inode_set_in(im, n, 2, axis);
}

/* ---- normalization ---- */

/* One elementwise node of two inputs. */
static lnt_status binary(lnt_importer *im, const lnt_inode *n, const char *op, uint32_t a, uint32_t b,
                         uint32_t *out)
{
    return lnt_make(im, n, op, (const uint32_t[]){a, b}, 2, NULL, 0, out);
}

/* BatchNormalization with statistics of every place instead of every channel (spatial = 0, before 9):
 * (x - mean) / sqrt(var + epsilon) * scale + bias */
static lnt_status batch_norm(lnt_importer *im, lnt_inode *n)
{
    const bool spatial = lnt_inode_i(n, "spatial", 1) != 0;
    const lnt_operand *x = input_info(im, n, 0);
    lnt_inode_drop(n, "spatial");
    if (n->n_out > 1)
        return lnt_import_unsupported(im, n, "training is not supported: export for inference");
    if (spatial || n->n_in != 5 || !x || n->n_out != 1)
        return LNT_OK;
    uint32_t epsilon, centered, shifted, deviation, normal, scaled;
    LNT_TRY(
        lnt_make_scalar(im, n, "epsilon", (lnt_dtype)x->dtype, lnt_inode_f(n, "epsilon", 1e-5f), &epsilon));
    LNT_TRY(binary(im, n, "Sub", n->in[0], n->in[3], &centered));
    LNT_TRY(binary(im, n, "Add", n->in[4], epsilon, &shifted));
    LNT_TRY(lnt_make(im, n, "Sqrt", &shifted, 1, NULL, 0, &deviation));
    LNT_TRY(binary(im, n, "Div", centered, deviation, &normal));
    LNT_TRY(binary(im, n, "Mul", normal, n->in[1], &scaled));
    n->replaced = true;
    return lnt_make_into(im, n, "Add", (const uint32_t[]){scaled, n->in[2]}, 2, NULL, 0, n->out[0]);
}

/* Input i of GroupNormalization-18, one value a group, repeated for each of the group's channels:
 * Reshape(Expand(Unsqueeze(v, 1), [1, C / groups]), [-1]) */
static lnt_status repeat_per_channel(lnt_importer *im, lnt_inode *n, unsigned i, uint32_t per_group)
{
    uint32_t one, extents, spread, minus_one;
    const int64_t first[] = {1}, all[] = {-1}, zero = 0;
    const lnt_attr axis = {.name = "axis", .type = LNT_ATTR_INT, .count = 1, .i = &zero};
    LNT_TRY(unsqueeze_input(im, n, i, 1, 1));
    LNT_TRY(lnt_make_ints(im, n, "one", first, 1, &one));
    LNT_TRY(lnt_make(im, n, "Concat", (const uint32_t[]){one, per_group}, 2, &axis, 1, &extents));
    LNT_TRY(binary(im, n, "Expand", n->in[i], extents, &spread));
    LNT_TRY(lnt_make_ints(im, n, "all", all, 1, &minus_one));
    return binary(im, n, "Reshape", spread, minus_one, &n->in[i]);
}

static lnt_status group_norm(lnt_importer *im, lnt_inode *n)
{
    uint32_t channels, groups, per_group;
    const int64_t count[] = {lnt_inode_i(n, "num_groups", 1)}, from = 1, to = 2;
    const lnt_attr range[] = {{.name = "start", .type = LNT_ATTR_INT, .count = 1, .i = &from},
                              {.name = "end", .type = LNT_ATTR_INT, .count = 1, .i = &to}};
    if (n->n_in != 3 || lnt_inode_in(n, 1) == LNT_NONE || lnt_inode_in(n, 2) == LNT_NONE)
        return LNT_OK;
    LNT_TRY(lnt_make(im, n, "Shape", &n->in[0], 1, range, 2, &channels));
    LNT_TRY(lnt_make_ints(im, n, "groups", count, 1, &groups));
    LNT_TRY(binary(im, n, "Div", channels, groups, &per_group));
    LNT_TRY(repeat_per_channel(im, n, 1, per_group));
    return repeat_per_channel(im, n, 2, per_group);
}

/* ---- Scan ---- */

/* A fresh value for each of count numbers, named after n. */
static lnt_status fresh_values(lnt_importer *im, const lnt_inode *n, unsigned count, uint32_t **out)
{
    const char *name = lnt_import_text(im, "%s/batch", n->name);
    *out = lnt_bump_alloc(&im->g->memory, count * sizeof **out, im->err);
    if (!name || !*out)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < count; i++)
        if (((*out)[i] = lnt_graph_add_value(im->g, name)) == LNT_NONE)
            return LNT_E_MEMORY;
    return LNT_OK;
}

/* The Scan of one batch entry: n's body and attributes, in subgraph `sub` whose inputs and outputs it has. */
static lnt_status scan_entry(lnt_importer *im, const lnt_inode *n, uint32_t sub)
{
    lnt_inode entry = *n;
    LNT_TRY(fresh_values(im, n, n->n_in, &entry.in));
    LNT_TRY(fresh_values(im, n, n->n_out, &entry.out));
    for (unsigned i = 0; i < n->n_in; i++) {
        lnt_operand *slice = &im->g->value[entry.in[i]].info;
        const lnt_operand *whole = lnt_ginfo(im->g, n->in[i]);
        *slice = (lnt_operand){.dtype = whole->dtype, .rank = LNT_RANK_UNKNOWN};
    }
    const lnt_attr *directions = lnt_inode_attr(n, "directions");
    if (directions) {
        lnt_attr renamed = *directions;
        renamed.name = "scan_input_directions";
        LNT_TRY(lnt_inode_set(im, &entry, &renamed));
        lnt_inode_drop(&entry, "directions");
    }
    entry.opset = LNT_ONNX_OPSET_NEWEST;
    im->g->sub[sub].in = entry.in;
    im->g->sub[sub].n_in = entry.n_in;
    im->g->sub[sub].out = entry.out;
    im->g->sub[sub].n_out = entry.n_out;
    const uint32_t outer = im->sub;
    im->sub = sub;
    const lnt_status status = lnt_import_add(im, &entry);
    im->sub = outer;
    return status;
}

/* Scan-8 ran over each entry of a batch: that is a Scan over axis 0 of all operands, whose body is a Scan. */
static lnt_status scan_batches(lnt_importer *im, lnt_inode *n)
{
    if (lnt_inode_in(n, 0) != LNT_NONE)
        return lnt_import_unsupported(im, n, "sequence_lens is not supported: export with opset 9 or newer");
    if (n->n_in < 2)
        return lnt_import_unsupported(im, n, "there is nothing to scan");
    n->in++;
    n->n_in--;
    for (unsigned i = 0; i < n->n_in; i++)
        if (n->in[i] == LNT_NONE)
            return lnt_import_unsupported(im, n, "input %u is required", i + 1);
    const int64_t sub = lnt_graph_add_sub(im->g, "batch entry");
    if (sub == LNT_NONE)
        return LNT_E_MEMORY;
    LNT_TRY(scan_entry(im, n, (uint32_t)sub));
    int64_t *kept = lnt_bump_alloc(&im->g->memory, sizeof sub, im->err);
    if (!kept)
        return LNT_E_MEMORY;
    *kept = sub;
    lnt_inode_drop(n, "directions");
    LNT_TRY(lnt_inode_set(im, n, &(lnt_attr){.name = "body", .type = LNT_ATTR_GRAPH, .count = 1, .i = kept}));
    return lnt_inode_set_i(im, n, "num_scan_inputs", n->n_in);
}

const lnt_upgrade_rule lnt_upgrade_rules[] = {{"Add", 7, axis_broadcast},
                                              {"Sub", 7, axis_broadcast},
                                              {"Mul", 7, axis_broadcast},
                                              {"Div", 7, axis_broadcast},
                                              {"Pow", 7, axis_broadcast},
                                              {"And", 7, axis_broadcast},
                                              {"Or", 7, axis_broadcast},
                                              {"Xor", 7, axis_broadcast},
                                              {"Equal", 7, axis_broadcast},
                                              {"Greater", 7, axis_broadcast},
                                              {"Less", 7, axis_broadcast},
                                              {"BatchNormalization", 14, batch_norm},
                                              {"Cast", 6, cast_by_name},
                                              {"Cast", 24, cast_within},
                                              {"Concat", 4, concat_axis},
                                              {"DFT", 20, dft_axis},
                                              {"DynamicSlice", 28, slice},
                                              {"GridSample", 20, grid_sample_mode},
                                              {"GroupNormalization", 21, group_norm},
                                              {"Hardmax", 13, softmax_matrix},
                                              {"GlobalLpPool", 2, pool_order},
                                              {"LpPool", 2, pool_order},
                                              {"LogSoftmax", 13, softmax_matrix},
                                              {"PRelu", 7, prelu},
                                              {"Resize", 11, resize_by_scales},
                                              {"RoiAlign", 16, roi_align_mode},
                                              {"Scan", 9, scan_batches},
                                              {"Selu", 6, selu_constants},
                                              {"Softmax", 13, softmax_matrix},
                                              {"Split", 18, split_evenly},
                                              {"Tile", 6, tile_one_axis},
                                              {"Upsample", 7, upsample_planes},
                                              {"Upsample", 28, resize_by_scales},
                                              {NULL, 0, NULL}};
