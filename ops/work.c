/* work.c — how many multiplications and additions a product of matrices or a convolution is worth: what its
 * time is held against. */
#include "ops/op.h"

typedef enum kind { PRODUCT, CONV, CONV_TRANSPOSE, WINOGRAD, RECURRENT, ATTENTION } kind;

/* Operators that are counted, and the input that holds a convolution's weights. */
static const struct {
    uint16_t op;
    uint8_t kind, weights;
} counted[] = {
    {LNT_ID_MatMul, PRODUCT, 0},
    {LNT_ID_Gemm, PRODUCT, 0},
    {LNT_ID_FusedMatMul, PRODUCT, 0},
    {LNT_ID_MatMulInteger, PRODUCT, 0},
    {LNT_ID_MatMulIntegerToFloat, PRODUCT, 0},
    {LNT_ID_DynamicQuantizeMatMul, PRODUCT, 0},
    {LNT_ID_QLinearMatMul, PRODUCT, 0},
    {LNT_ID_QLinearGemm, PRODUCT, 0},
    {LNT_ID_MatMulNBits, PRODUCT, 0},
    {LNT_ID_DynamicMatMul, PRODUCT, 0},
    {LNT_ID_Conv, CONV, 1},
    {LNT_ID_ConvInteger, CONV, 1},
    {LNT_ID_DynamicConv, CONV, 1},
    {LNT_ID_QLinearConv, CONV, 3},
    {LNT_ID_WinogradConv, WINOGRAD, 1},
    {LNT_ID_ConvTranspose, CONV_TRANSPOSE, 1},
    {LNT_ID_LSTM, RECURRENT, 0},
    {LNT_ID_GRU, RECURRENT, 0},
    {LNT_ID_RNN, RECURRENT, 0},
    {LNT_ID_DynamicLSTM, RECURRENT, 0},
    {LNT_ID_DynamicGRU, RECURRENT, 0},
    {LNT_ID_Attention, ATTENTION, 0},
};

/* Each element of Y is a sum over K, the axis of A that it shares with B. */
static int64_t of_product(const lnt_node *n, const lnt_step *s)
{
    const lnt_operand *a = s->in[0];
    const bool turned = lnt_attr_i(n, "transA", 0) && a->rank > 1;
    return lnt_operand_count(s->out[0]) * a->dims[a->rank - (turned ? 2 : 1)];
}

/* Each element of `each` meets the weights [first extent, ...] but for their first axis; groups are in it. */
static int64_t of_conv(const lnt_operand *each, const lnt_operand *w)
{
    return w->dims[0] ? lnt_operand_count(each) * (lnt_operand_count(w) / w->dims[0]) : 0;
}

/* As many as the Conv it stands for. */
static int64_t of_winograd(const lnt_node *n, const lnt_step *s)
{
    const lnt_attr *kernel = lnt_attr_find(n, "kernel_shape");
    int64_t each = lnt_operand_count(s->out[0]) * s->in[0]->dims[1];
    for (uint32_t i = 0; kernel && i < kernel->count; i++)
        each *= kernel->i[i];
    return each;
}

/* Every step of every sequence of X [steps, batch, ...], or the other way round, meets all of W and R. */
static int64_t of_recurrent(const lnt_step *s)
{
    return s->in[0]->dims[0] * s->in[0]->dims[1] *
           (lnt_operand_count(s->in[1]) + lnt_operand_count(s->in[2]));
}

/* Every query meets every key, and its weights every value; what a mask spares is counted, too. Keys are
 * [batch, heads, length, size] or [batch, length, heads * size], past ones of rank 4. */
static int64_t of_attention(const lnt_step *s)
{
    enum { QUERY, KEY, VALUE, MASK, PAST_KEY };
    const lnt_operand *key = s->in[KEY], *past = s->n_in > PAST_KEY ? s->in[PAST_KEY] : NULL;
    const int64_t length = key->dims[key->rank - 2] + (past ? past->dims[2] : 0);
    return length * (lnt_operand_count(s->in[QUERY]) + lnt_operand_count(s->out[0]));
}

bool lnt_multiplies(unsigned op)
{
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (counted[i].op == op)
            return true;
    return false;
}

int64_t lnt_multiply_adds(const lnt_node *n, const lnt_step *s)
{
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        if (counted[i].op != n->op->id)
            continue;
        switch ((kind)counted[i].kind) {
        case PRODUCT: return of_product(n, s);
        case CONV: return of_conv(s->out[0], s->in[counted[i].weights]);
        case CONV_TRANSPOSE: return of_conv(s->in[0], s->in[counted[i].weights]);
        case WINOGRAD: return of_winograd(n, s);
        case RECURRENT: return of_recurrent(s);
        case ATTENTION: return of_attention(s);
        }
    }
    return 0;
}
