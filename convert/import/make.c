/* make.c — nodes and constants that rules add beside the node they rewrite. */
#include "convert/import/import.h"

#include "base/half.h"

#include <stdio.h>
#include <string.h>

lnt_status lnt_make_node(lnt_importer *im, const lnt_inode *n, const char *op, const uint32_t *in,
                         unsigned n_in, const lnt_attr *attr, unsigned n_attr, const uint32_t *out,
                         unsigned n_out)
{
    const char *dot = strrchr(op, '.');
    lnt_inode made = {.name = lnt_import_text(im, "%s/%s", n->name, op),
                      .domain = dot ? lnt_import_text(im, "%.*s", (int)(dot - op), op) : "",
                      .op = dot ? dot + 1 : op,
                      .opset = dot ? 1 : LNT_ONNX_OPSET_NEWEST,
                      .n_in = n_in,
                      .n_out = n_out,
                      .n_attr = n_attr};
    made.in = lnt_bump_alloc(&im->g->memory, n_in * sizeof *in, im->err);
    made.out = lnt_bump_alloc(&im->g->memory, n_out * sizeof *out, im->err);
    made.attr = lnt_bump_alloc(&im->g->memory, n_attr * sizeof *attr, im->err);
    if (!made.name || !made.domain || !made.in || !made.out || !made.attr)
        return LNT_E_MEMORY;
    memcpy(made.in, in, n_in * sizeof *in);
    memcpy(made.out, out, n_out * sizeof *out);
    if (n_attr)
        memcpy(made.attr, attr, n_attr * sizeof *attr);
    return lnt_import_add(im, &made);
}

lnt_status lnt_make_into(lnt_importer *im, const lnt_inode *n, const char *op, const uint32_t *in,
                         unsigned n_in, const lnt_attr *attr, unsigned n_attr, uint32_t out)
{
    return lnt_make_node(im, n, op, in, n_in, attr, n_attr, &out, 1);
}

/* Name of a value that belongs to n. */
static const char *value_name(lnt_importer *im, const lnt_inode *n, const char *what)
{
    return lnt_import_text(im, "%s/%s", n->name, what);
}

lnt_status lnt_make(lnt_importer *im, const lnt_inode *n, const char *op, const uint32_t *in, unsigned n_in,
                    const lnt_attr *attr, unsigned n_attr, uint32_t *out)
{
    const char *name = value_name(im, n, op);
    *out = name ? lnt_graph_add_value(im->g, name) : LNT_NONE;
    return *out == LNT_NONE ? LNT_E_MEMORY : lnt_make_into(im, n, op, in, n_in, attr, n_attr, *out);
}

static lnt_status make_constant(lnt_importer *im, const lnt_inode *n, const char *what, lnt_dtype dtype,
                                unsigned rank, const void *data, size_t count, uint32_t *out)
{
    const char *name = value_name(im, n, what);
    const int64_t extent = (int64_t)count;
    size_t bytes;
    const bool fits = name && lnt_shape_bytes(&extent, 1, lnt_dtype_size(dtype), &bytes);
    *out = fits ? lnt_graph_add_constant(im->g, name, dtype, rank, &extent, data, bytes) : LNT_NONE;
    return *out == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

lnt_status lnt_make_ints(lnt_importer *im, const lnt_inode *n, const char *what, const int64_t *v,
                         size_t count, uint32_t *out)
{
    return make_constant(im, n, what, LNT_INT64, 1, v, count, out);
}

lnt_status lnt_make_int(lnt_importer *im, const lnt_inode *n, const char *what, int64_t v, uint32_t *out)
{
    return make_constant(im, n, what, LNT_INT64, 0, &v, 1, out);
}

lnt_status lnt_make_floats(lnt_importer *im, const lnt_inode *n, const char *what, const float *v,
                           size_t count, uint32_t *out)
{
    return make_constant(im, n, what, LNT_FLOAT, 1, v, count, out);
}

/* v cut towards zero, and at the ends of an integer type: bounds of 1e9 mean no bounds to it. */
static uint64_t whole_within(lnt_dtype dtype, double v)
{
    const bool is_signed =
        dtype == LNT_INT8 || dtype == LNT_INT16 || dtype == LNT_INT32 || dtype == LNT_INT64;
    const size_t bits = dtype == LNT_BOOL ? 1 : 8 * lnt_dtype_size(dtype);
    const uint64_t most = bits ? UINT64_MAX >> (64 - bits + is_signed) : 0;
    const int64_t least = is_signed ? -(int64_t)most - 1 : 0;
    if (v >= (double)most)
        return most;
    return v >= 0 ? (uint64_t)v : v > (double)least ? (uint64_t)(int64_t)v : (uint64_t)least;
}

lnt_status lnt_make_scalar(lnt_importer *im, const lnt_inode *n, const char *what, lnt_dtype dtype, double v,
                           uint32_t *out)
{
    union {
        float f;
        double d;
        uint64_t i64;
        uint32_t i32;
        uint16_t i16;
        uint8_t i8;
    } cell = {.i64 = 0};
    switch (dtype) {
    case LNT_FLOAT: cell.f = (float)v; break;
    case LNT_DOUBLE: cell.d = v; break;
    case LNT_FLOAT16: cell.i16 = lnt_float_to_f16((float)v); break;
    case LNT_BFLOAT16: cell.i16 = lnt_float_to_bf16((float)v); break;
    case LNT_INT64:
    case LNT_UINT64: cell.i64 = whole_within(dtype, v); break;
    case LNT_INT32:
    case LNT_UINT32: cell.i32 = (uint32_t)whole_within(dtype, v); break;
    case LNT_INT16:
    case LNT_UINT16: cell.i16 = (uint16_t)whole_within(dtype, v); break;
    default: cell.i8 = (uint8_t)whole_within(dtype, v); break;
    }
    return make_constant(im, n, what, dtype, 0, &cell, 1, out);
}
