/* string_concat.c — StringConcat: words of two tensors, broadcast to each other, joined one to one. */
#include "ops/text/words.h"

#include "base/lnt_assert.h"

typedef struct concat_params {
    lnt_text *text;
    int64_t step[2][LNT_MAX_RANK]; /* elements of each input from place to place along the output's axes */
} concat_params;

/* Elements of an input from place to place; 0 along axes that it is broadcast over. */
static void find_steps(const lnt_operand *in, const lnt_operand *out, int64_t *step)
{
    int64_t size = 1;
    for (unsigned d = out->rank; d-- > 0;) {
        const int64_t axis = (int64_t)d - (out->rank - in->rank);
        step[d] = axis < 0 || in->dims[axis] == 1 ? 0 : size;
        size *= axis < 0 ? 1 : in->dims[axis];
    }
}

static int64_t element_at(const lnt_operand *out, const int64_t *step, int64_t i)
{
    int64_t at = 0;
    for (unsigned d = out->rank; d-- > 0; i /= out->dims[d])
        at += i % out->dims[d] * step[d];
    return at;
}

static lnt_status run_string_concat(lnt_kernel *k, const lnt_step *s)
{
    enum { POLLED = 1024 };
    const concat_params *p = s->params;
    const lnt_operand *out = s->out[0];
    const int64_t *in[] = {lnt_in(k, s, 0), lnt_in(k, s, 1)}, n = lnt_operand_count(out);
    int64_t *y = lnt_out(k, s, 0);
    LNT_ASSERT(p->text && n > 0);
    for (int64_t i = 0; i < n; i++) {
        lnt_chars part[2];
        for (unsigned c = 0; c < 2; c++)
            LNT_TRY(lnt_text_get(p->text, in[c][element_at(out, p->step[c], i)], &part[c], k->err));
        LNT_TRY(lnt_text_put(p->text, part, 2, &y[i], k->err));
        if (i % POLLED == 0)
            LNT_TRY(lnt_poll(k));
    }
    return LNT_OK;
}

lnt_status lnt_bind_string_concat(lnt_site *site)
{
    LNT_TRY(lnt_require_text(site));
    concat_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    p->text = site->text;
    for (unsigned c = 0; c < 2; c++)
        find_steps(site->in[c], site->out[0], p->step[c]);
    site->step->run = run_string_concat;
    return LNT_OK;
}
