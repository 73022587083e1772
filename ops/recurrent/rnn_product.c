/* rnn_product.c — how W and R of the recurrent layers are packed, and what a layer is worth. */
#include "ops/product.h"

#include "ops/recurrent/rnn.h"

unsigned lnt_rnn_gates(const lnt_op *op)
{
    switch (op->id) {
    case LNT_ID_LSTM:
    case LNT_ID_DynamicLSTM: return 4;
    case LNT_ID_GRU:
    case LNT_ID_DynamicGRU: return 3;
    default: return 1;
    }
}

/* W or R: [directions, gates * hidden, K]. */
static bool pack_gates(const lnt_node *node, const lnt_operand *w, lnt_packed *record)
{
    const unsigned gates = lnt_rnn_gates(node->op);
    if (w->rank != 3 || w->dims[1] % gates)
        return false;
    *record = lnt_packed_panels(LNT_SOURCE_GATES, (uint32_t)w->dims[0], (uint32_t)w->dims[2],
                                (uint32_t)w->dims[1] / gates);
    record->layout = node->op->flags & LNT_OP_INT8 ? LNT_LAYOUT_PANEL_I8 : LNT_LAYOUT_GATES_F32;
    record->gates = gates;
    return true;
}

/* Every step of every sequence of X [steps, batch, ...], or the other way round, meets all of W and R. */
static int64_t multiply_adds(const lnt_node *node, const lnt_step *s)
{
    (void)node;
    return s->in[0]->dims[0] * s->in[0]->dims[1] *
           (lnt_operand_count(s->in[1]) + lnt_operand_count(s->in[2]));
}

const lnt_product lnt_product_rnn = {1u << 1 | 1u << 2, NULL, pack_gates, multiply_adds};
