/* string_split.c — StringSplit: words cut into pieces, as Python's split does it.
 *
 * Input: any shape; outputs: the pieces, with as many places at the end as the word of most pieces has, "" where there
 * are fewer; how many each word has. */
#include "ops/text/words.h"

#include "base/lnt_assert.h"

#include <string.h>

/* ---- pieces ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_spaces(lnt_chars *c)
{
    for (; c->n && is_space(*c->at); c->n--)
        c->at++;
}

lnt_pieces lnt_pieces_of(const lnt_node *node, lnt_chars word)
{
    const lnt_attr *delimiter = lnt_attr_of(node, "delimiter", LNT_ATTR_STRING);
    const int64_t most = lnt_attr_i(node, "maxsplit", -1);
    lnt_pieces p = {.rest = word, .left = most < 0 ? INT64_MAX : most};
    if (delimiter)
        p.delimiter = (lnt_chars){delimiter->s, delimiter->count};
    if (!p.delimiter.n)
        skip_spaces(&p.rest);
    p.more = p.delimiter.n || p.rest.n;
    return p;
}

/* Characters before the next place to cut; all if there is none. */
static size_t find_cut(const lnt_pieces *p)
{
    const size_t width = p->delimiter.n ? p->delimiter.n : 1;
    for (size_t i = 0; p->left > 0 && i < p->rest.n && width <= p->rest.n - i; i++)
        if (p->delimiter.n ? memcmp(p->rest.at + i, p->delimiter.at, width) == 0 : is_space(p->rest.at[i]))
            return i;
    return p->rest.n;
}

bool lnt_next_piece(lnt_pieces *p, lnt_chars *piece)
{
    if (!p->more)
        return false;
    const size_t n = find_cut(p);
    *piece = (lnt_chars){p->rest.at, n};
    const bool cut = n < p->rest.n;
    const size_t gone = cut ? n + (p->delimiter.n ? p->delimiter.n : 1) : n;
    p->rest = (lnt_chars){p->rest.at + gone, p->rest.n - gone};
    p->left -= cut;
    if (!p->delimiter.n)
        skip_spaces(&p->rest);
    p->more = p->delimiter.n ? cut : p->rest.n > 0;
    return true;
}

/* ---- the operator ---- */

static int64_t count_pieces(const lnt_node *node, lnt_chars word)
{
    lnt_pieces p = lnt_pieces_of(node, word);
    int64_t n = 0;
    for (lnt_chars piece; lnt_next_piece(&p, &piece);)
        n++;
    return n;
}

/* LNT_DIM_UNKNOWN where the words are not known yet. */
static lnt_status most_pieces(const lnt_site *site, int64_t *most)
{
    const lnt_operand *x = site->in[0];
    const int64_t n = lnt_operand_count(x), *number = x->data;
    *most = LNT_DIM_UNKNOWN;
    if (n < 0 || (n > 0 && (!number || !site->text || x->dtype != LNT_INT64)))
        return LNT_OK;
    *most = 0;
    for (int64_t i = 0; i < n; i++) {
        lnt_chars word;
        LNT_TRY(lnt_text_get(site->text, number[i], &word, site->err));
        const int64_t pieces = count_pieces(site->node, word);
        *most = pieces > *most ? pieces : *most;
    }
    return LNT_OK;
}

lnt_status lnt_shape_string_split(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    int64_t dims[LNT_MAX_RANK + 1];
    if (x->rank >= LNT_MAX_RANK)
        return LNT_SITE_FAIL(site, LNT_E_UNSUPPORTED, "its input has rank %u, more than %d", x->rank,
                             LNT_MAX_RANK - 1);
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    LNT_TRY(most_pieces(site, &dims[x->rank]));
    lnt_set_dims(site, 0, x->rank + 1u, dims);
    lnt_set_dims(site, 1, x->rank, dims);
    return dims[x->rank] < 0 ? LNT_UNKNOWN : LNT_OK;
}

typedef struct split_params {
    lnt_text *text;
    const lnt_node *node;
} split_params;

static lnt_status run_string_split(lnt_kernel *k, const lnt_step *s)
{
    const split_params *p = s->params;
    const int64_t *x = lnt_in(k, s, 0), n = lnt_operand_count(s->in[0]);
    const int64_t places = s->out[0] ? s->out[0]->dims[s->in[0]->rank] : 0;
    int64_t *y = lnt_out(k, s, 0), *counts = lnt_out(k, s, 1), empty;
    LNT_TRY(lnt_text_put(p->text, &(lnt_chars){"", 0}, 1, &empty, k->err));
    for (int64_t i = 0; i < n; i++) {
        lnt_chars word, piece;
        LNT_TRY(lnt_text_get(p->text, x[i], &word, k->err));
        lnt_pieces pieces = lnt_pieces_of(p->node, word);
        int64_t found = 0;
        for (; lnt_next_piece(&pieces, &piece); found++)
            if (y && found < places)
                LNT_TRY(lnt_text_put(p->text, &piece, 1, &y[i * places + found], k->err));
        for (int64_t to = found; y && to < places; to++)
            y[i * places + to] = empty;
        if (counts)
            counts[i] = found;
        LNT_TRY(lnt_poll(k));
    }
    return LNT_OK;
}

lnt_status lnt_bind_string_split(lnt_site *site)
{
    LNT_TRY(lnt_require_text(site));
    split_params *p = lnt_bind_params(site, sizeof *p);
    if (!p)
        return LNT_E_MEMORY;
    *p = (split_params){site->text, site->node};
    site->step->run = run_string_split;
    return LNT_OK;
}
