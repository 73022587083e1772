/* string_normalizer.c — StringNormalizer: words [C] or [1, C] without stop words, in one case. What would be nothing is
 * one empty word.
 *
 * Case is by character, whatever the locale. */
#include "ops/text/words.h"

#include "base/lnt_assert.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

typedef uint32_t (*case_fn)(uint32_t code);

typedef struct normalizer {
    lnt_text *text;
    const lnt_attr *stop; /* or NULL */
    case_fn change;       /* or NULL */
    bool fold;            /* stop words are found whatever their case */
} normalizer;

static lnt_status take_normalizer(const lnt_site *site, normalizer *z)
{
    static const char *const actions[] = {"NONE", "LOWER", "UPPER"};
    static const case_fn change[] = {NULL, lnt_to_lower, lnt_to_upper};
    const int action = lnt_attr_choice(site->node, "case_change_action", actions, 3);
    if (action < 0)
        return LNT_SITE_FAIL(site, LNT_E_MODEL, "case_change_action must be NONE, LOWER or UPPER");
    *z = (normalizer){.text = site->text,
                      .stop = lnt_attr_of(site->node, "stopwords", LNT_ATTR_STRINGS),
                      .change = change[action],
                      .fold = !lnt_attr_i(site->node, "is_case_sensitive", 0)};
    return LNT_OK;
}

/* ---- characters ---- */

/* The next character of a NUL-terminated word, moved past; a byte that is no UTF-8 is itself, above all of them. */
static uint32_t next_code(const char **at)
{
    enum { NO_CHARACTER = 0x110000 };
    const unsigned n = lnt_utf8_bytes(*at);
    const uint32_t code = n ? lnt_utf8_code(*at, n) : NO_CHARACTER + (uint32_t)(unsigned char)**at;
    *at += n ? n : 1;
    return code;
}

static bool same_words(const char *a, const char *b, bool fold)
{
    while (*a && *b) {
        const uint32_t x = next_code(&a), y = next_code(&b);
        if (x != y && (!fold || lnt_to_lower(x) != lnt_to_lower(y)))
            return false;
    }
    return *a == *b;
}

static bool is_stop_word(const normalizer *z, const char *word)
{
    for (uint32_t i = 0; z->stop && i < z->stop->count; i++)
        if (same_words(word, z->stop->strings[i], z->fold))
            return true;
    return false;
}

/* A word in the other case may have more bytes: at most twice as many. */
static lnt_status put_changed(const normalizer *z, lnt_chars word, int64_t *number, lnt_error *err)
{
    const lnt_allocator *a = lnt_text_allocator(z->text);
    char *to = lnt_alloc(a, word.n > SIZE_MAX / 4 ? SIZE_MAX : 2 * word.n + 4, err);
    size_t n = 0;
    if (!to)
        return LNT_E_MEMORY;
    for (const char *at = word.at; *at;) {
        const unsigned bytes = lnt_utf8_bytes(at);
        if (bytes)
            n += lnt_utf8_put(z->change(lnt_utf8_code(at, bytes)), to + n);
        else
            to[n++] = *at;
        at += bytes ? bytes : 1;
    }
    const lnt_status status = lnt_text_put(z->text, &(lnt_chars){to, n}, 1, number, err);
    lnt_free(a, to);
    return status;
}

/* ---- the operator ---- */

/* The words that stay; their numbers to y [n_y], if that is not NULL. */
static lnt_status keep_words(const normalizer *z, const int64_t *x, int64_t n, int64_t *y, int64_t n_y,
                             int64_t *kept, lnt_error *err)
{
    *kept = 0;
    for (int64_t i = 0; i < n; i++) {
        lnt_chars word;
        LNT_TRY(lnt_text_get(z->text, x[i], &word, err));
        if (is_stop_word(z, word.at))
            continue;
        LNT_REQUIRE(!y || *kept < n_y, err, LNT_E_VALUE, "more words stay than at first");
        if (y && z->change)
            LNT_TRY(put_changed(z, word, &y[*kept], err));
        else if (y)
            y[*kept] = x[i];
        ++*kept;
    }
    return LNT_OK;
}

lnt_status lnt_shape_string_normalizer(lnt_site *site)
{
    const lnt_operand *x = site->in[0];
    const int64_t n = lnt_operand_count(x);
    int64_t dims[2] = {1, LNT_DIM_UNKNOWN};
    normalizer z;
    LNT_TRY(take_normalizer(site, &z));
    if ((x->rank != 1 && x->rank != 2) || (x->rank == 2 && x->dims[0] > 1))
        return LNT_SITE_FAIL(site, LNT_E_SHAPE, "its input must be [C] or [1, C]");
    if (!z.stop && n > 0)
        dims[1] = n;
    else if (n == 0)
        dims[1] = 1;
    else if (n > 0 && x->data && z.text && x->dtype == LNT_INT64)
        LNT_TRY(keep_words(&z, x->data, n, NULL, 0, &dims[1], site->err));
    dims[1] = dims[1] == 0 ? 1 : dims[1];
    lnt_set_dims(site, 0, x->rank, x->rank == 1 ? dims + 1 : dims);
    return dims[1] < 0 ? LNT_UNKNOWN : LNT_OK;
}

static lnt_status run_string_normalizer(lnt_kernel *k, const lnt_step *s)
{
    const normalizer *z = s->params;
    int64_t *y = lnt_out(k, s, 0), kept, room = lnt_operand_count(s->out[0]);
    LNT_ASSERT(room > 0);
    LNT_TRY(lnt_poll(k));
    LNT_TRY(keep_words(z, lnt_in(k, s, 0), lnt_operand_count(s->in[0]), y, room, &kept, k->err));
    return kept ? LNT_OK : lnt_text_put(z->text, &(lnt_chars){"", 0}, 1, y, k->err);
}

lnt_status lnt_bind_string_normalizer(lnt_site *site)
{
    LNT_TRY(lnt_require_text(site));
    normalizer *z = lnt_bind_params(site, sizeof *z);
    if (!z)
        return LNT_E_MEMORY;
    LNT_TRY(take_normalizer(site, z));
    site->step->run = run_string_normalizer;
    return LNT_OK;
}
