/* pack.c — the packing each operator of the gemm family wants for its constants. */
#include "ops/pack.h"

#include "base/checked.h"

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

bool lnt_pack_wanted(const lnt_node *node, const lnt_operand *const *in, unsigned input, lnt_packed *record)
{
    const unsigned own = node->n_in - node->n_program_in;
    const lnt_operand *o = input < own ? in[input] : NULL;
    size_t bytes;
    bool wanted = false;
    if (!o || o->dtype != LNT_FLOAT || o->rank > LNT_MAX_RANK || !fits_u32(o))
        return false;
    switch (node->op->id) {
    case LNT_ID_MatMul:
    case LNT_ID_Gemm:
    case LNT_ID_FusedMatMul: wanted = input == 1 && pack_matrix(node, o, record); break;
    default: break;
    }
    return wanted && lnt_packed_bytes(record, &bytes);
}
