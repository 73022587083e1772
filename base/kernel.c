/* kernel.c — where the operands of a step lie. */
#include "base/kernel.h"

const void *lnt_in(const lnt_kernel *k, const lnt_step *s, unsigned i)
{
    const lnt_operand *o = i < s->n_in ? s->in[i] : NULL;
    return o ? (const char *)k->slot[o->storage] + o->offset : NULL;
}

void *lnt_out(const lnt_kernel *k, const lnt_step *s, unsigned i)
{
    const lnt_operand *o = i < s->n_out ? s->out[i] : NULL;
    return o ? (char *)k->slot[o->storage] + o->offset : NULL;
}
