/* pack.c — the packing each operator of the gemm family wants for its constants. */
#include "ops/pack.h"

#include "base/checked.h"
#include "ops/conv/conv.h"
#include "ops/quant/qconv.h"

static bool fits_u32(const lnt_operand *o)
{
    for (unsigned i = 0; i < o->rank; i++)
        if (o->dims[i] < 1 || o->dims[i] > INT32_MAX)
            return false;
    return true;
}

/* B of a product: [..., K, N], or transposed. */
static bool pack_matrix(const lnt_node *node, const lnt_operand *b, lnt_packed *record)
{
    int64_t groups;
    if (b->rank < 2 || !lnt_count(b->dims, b->rank - 2u, &groups) || groups > INT32_MAX)
        return false;
    const uint32_t rows = (uint32_t)b->dims[b->rank - 2], columns = (uint32_t)b->dims[b->rank - 1];
    const bool transposed = lnt_attr_i(node, "transB", 0) != 0;
    *record = transposed ? lnt_packed_panels(LNT_SOURCE_NK, (uint32_t)groups, columns, rows)
                         : lnt_packed_panels(LNT_SOURCE_KN, (uint32_t)groups, rows, columns);
    return true;
}

/* An attribute of one positive integer per spatial axis; all 1 if it is missing, false if it is odd. */
static bool axes_attr(const lnt_node *node, const char *name, unsigned n, int64_t *out)
{
    const lnt_attr *attr = lnt_attr_find(node, name);
    for (unsigned i = 0; i < n; i++) {
        out[i] = attr && attr->type == LNT_ATTR_INTS && attr->count == n ? attr->i[i] : 1;
        if (out[i] < 1 || out[i] > INT16_MAX)
            return false;
    }
    return true;
}

/* W of Conv: [groups * features, channels, kernel...]; of ConvTranspose: [groups * channels, features, ...].
 */
static bool pack_conv(const lnt_node *node, const lnt_operand *w, bool transposed, lnt_packed *record)
{
    const int64_t groups = lnt_attr_i(node, "group", 1);
    if (w->rank < 3 || w->rank > 2 + LNT_WINDOW_AXES || groups < 1 || w->dims[0] % groups)
        return false;
    const int64_t first = w->dims[0] / groups, second = w->dims[1];
    lnt_conv c = {.groups = groups,
                  .channels = transposed ? first : second,
                  .features = transposed ? second : first,
                  .axes = w->rank - 2u,
                  .transposed = transposed};
    const unsigned missing = LNT_WINDOW_AXES - c.axes;
    for (unsigned a = 0; a < LNT_WINDOW_AXES; a++)
        c.w.kernel[a] = c.w.stride[a] = c.w.dilation[a] = 1;
    for (unsigned i = 0; i < c.axes; i++)
        c.w.kernel[missing + i] = w->dims[2 + i];
    if (!axes_attr(node, "strides", c.axes, c.w.stride + missing) ||
        !axes_attr(node, "dilations", c.axes, c.w.dilation + missing))
        return false;
    *record = lnt_conv_record(&c);
    return true;
}

/* W or R of a recurrent layer: [directions, gates * hidden, K]. */
static bool pack_gates(unsigned gates, const lnt_operand *w, lnt_packed *record)
{
    if (w->rank != 3 || w->dims[1] % gates)
        return false;
    *record = lnt_packed_panels(LNT_SOURCE_GATES, (uint32_t)w->dims[0], (uint32_t)w->dims[2],
                                (uint32_t)w->dims[1] / gates);
    record->layout = LNT_LAYOUT_GATES_F32;
    record->gates = gates;
    return true;
}

/* B of a product of bytes, W of a convolution of bytes. */
static bool pack_bytes(const lnt_node *node, unsigned input, const lnt_operand *o, lnt_packed *record)
{
    switch (node->op->id) {
    case LNT_ID_MatMulInteger:
    case LNT_ID_MatMulIntegerToFloat:
    case LNT_ID_DynamicQuantizeMatMul:
        if (input != 1 || !pack_matrix(node, o, record))
            return false;
        break;
    case LNT_ID_DynamicMatMul:
        if (input != 1 || o->rank != 2 || !pack_matrix(node, o, record))
            return false;
        break;
    case LNT_ID_QLinearGemm:
    case LNT_ID_QLinearMatMul:
        if (input != 3 || !pack_matrix(node, o, record))
            return false;
        break;
    case LNT_ID_DynamicLSTM:
        if ((input != 1 && input != 2) || !pack_gates(4, o, record))
            return false;
        break;
    case LNT_ID_DynamicGRU:
        if ((input != 1 && input != 2) || !pack_gates(3, o, record))
            return false;
        break;
    case LNT_ID_DynamicConv: return input == 1 && lnt_qconv_record(node, o, record);
    case LNT_ID_ConvInteger: return input == 1 && lnt_qlinear_record(node, o, record);
    case LNT_ID_QLinearConv: return input == 3 && lnt_qlinear_record(node, o, record);
    default: return false;
    }
    record->layout = LNT_LAYOUT_PANEL_I8;
    return true;
}

bool lnt_pack_wanted(const lnt_node *node, unsigned input, const lnt_operand *o, lnt_packed *record)
{
    const unsigned own = node->n_in - node->n_program_in;
    size_t bytes;
    bool wanted = false;
    if (input >= own || o->rank > LNT_MAX_RANK || !fits_u32(o))
        return false;
    if (o->dtype == LNT_INT8 || o->dtype == LNT_UINT8)
        return pack_bytes(node, input, o, record) && lnt_packed_bytes(record, &bytes);
    if (o->dtype != LNT_FLOAT)
        return false;
    switch (node->op->id) {
    case LNT_ID_MatMul:
    case LNT_ID_WinogradConv:
    case LNT_ID_Gemm:
    case LNT_ID_FusedMatMul: wanted = input == 1 && pack_matrix(node, o, record); break;
    case LNT_ID_Conv: wanted = input == 1 && pack_conv(node, o, false, record); break;
    case LNT_ID_ConvTranspose: wanted = input == 1 && pack_conv(node, o, true, record); break;
    case LNT_ID_LSTM: wanted = (input == 1 || input == 2) && pack_gates(4, o, record); break;
    case LNT_ID_GRU: wanted = (input == 1 || input == 2) && pack_gates(3, o, record); break;
    case LNT_ID_RNN: wanted = (input == 1 || input == 2) && pack_gates(1, o, record); break;
    default: break;
    }
    return wanted && lnt_packed_bytes(record, &bytes);
}
