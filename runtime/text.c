/* text.c — words that go into a session and come out of it. */
#include "runtime/internal.h"

#include "base/lnt_assert.h"

/* ---- the model's ---- */

lnt_status lnt_load_words(lnt_model *m, lnt_error *err)
{
    const void *data = NULL;
    for (uint32_t v = 0; v < m->n_values; v++)
        m->text |= lnt_is_text(m, v);
    for (uint32_t i = 0; i < m->file.n_states; i++)
        LNT_REQUIRE(!lnt_is_text(m, m->in[m->file.states[i].input]), err, LNT_E_FILE, "state %u is text", i);
    if (!m->text || lnt_model_attachment(m, LNT_WORDS_NAME, &data, &m->words_bytes) != LNT_OK)
        return LNT_OK;
    m->words = data;
    LNT_REQUIRE(!m->words_bytes || !m->words[m->words_bytes - 1], err, LNT_E_FILE,
                "the last of the words has no end");
    return LNT_OK;
}

/* They have the numbers 0, 1, … */
static lnt_status put_model_words(const lnt_model *m, lnt_text *table, lnt_error *err)
{
    for (size_t at = 0; at < m->words_bytes;) {
        const lnt_chars word = {m->words + at, strlen(m->words + at)};
        const size_t before = lnt_text_count(table);
        int64_t number;
        LNT_TRY(lnt_text_put(table, &word, 1, &number, err));
        LNT_REQUIRE((uint64_t)number == before, err, LNT_E_FILE, "the model has the word '%.40s' twice",
                    word.at);
        at += word.n + 1;
    }
    lnt_text_mark(table);
    return LNT_OK;
}

/* ---- the session's ---- */

lnt_status lnt_session_text_make(lnt_session *s, lnt_error *err)
{
    const lnt_model *m = s->model;
    lnt_bump *tables = &s->memory.tables;
    lnt_session_text *text = m->text ? lnt_bump_alloc(tables, sizeof *text, err) : NULL;
    if (!text)
        return m->text ? LNT_E_MEMORY : LNT_OK;
    s->text = text;
    text->in = lnt_bump_alloc(tables, m->n_in * sizeof *text->in, err);
    text->out = lnt_bump_alloc(tables, m->n_out * sizeof *text->out, err);
    text->table = lnt_text_make(&s->memory.allocator, err);
    if (!text->in || !text->out || !text->table)
        return LNT_E_MEMORY;
    LNT_TRY(put_model_words(m, text->table, err));
    text->model_words = lnt_text_count(text->table);
    return LNT_OK;
}

/* What outputs are shown in; numbers of inputs are as good as the caller's memory, and stay. */
void lnt_session_text_trim(lnt_session *s)
{
    for (uint32_t i = 0; s->text && s->text->out && i < s->model->n_out; i++)
        lnt_buffer_free(s, &s->text->out[i]);
}

void lnt_session_text_free(lnt_session *s)
{
    if (!s->text)
        return;
    lnt_session_text_trim(s);
    for (uint32_t i = 0; s->text->in && i < s->model->n_in; i++)
        lnt_buffer_free(s, &s->text->in[i]);
    lnt_text_free(&s->text->table);
}

/* ---- words in ---- */

static lnt_status number_words(lnt_text *table, const char *const *word, size_t n, int64_t *number,
                               lnt_error *err)
{
    for (size_t i = 0; i < n; i++) {
        LNT_REQUIRE(word[i], err, LNT_E_ARGUMENT, "element %zu is NULL, not text", i);
        LNT_TRY(lnt_text_put(table, &(lnt_chars){word[i], strlen(word[i])}, 1, &number[i], err));
    }
    return LNT_OK;
}

/* Numbers of an input's words in another table. */
static lnt_status move_words(lnt_text *from, lnt_text *to, int64_t *number, size_t n, lnt_error *err)
{
    for (size_t i = 0; i < n; i++) {
        lnt_chars word;
        LNT_TRY(lnt_text_get(from, number[i], &word, err));
        LNT_TRY(lnt_text_put(to, &word, 1, &number[i], err));
    }
    return LNT_OK;
}

static size_t held_words(const lnt_session *s)
{
    size_t n = s->text->model_words;
    for (uint32_t i = 0; i < s->model->n_in; i++)
        if (s->text->in[i].data && s->input[i].given)
            n += s->input[i].tensor.bytes / sizeof(int64_t);
    return n;
}

/* Numbers of all inputs' words in another table. */
static lnt_status move_inputs(lnt_session *s, lnt_text *to, lnt_error *err)
{
    LNT_TRY(put_model_words(s->model, to, err));
    for (uint32_t i = 0; i < s->model->n_in; i++)
        if (s->text->in[i].data && s->input[i].given)
            LNT_TRY(move_words(s->text->table, to, s->text->in[i].data,
                               s->input[i].tensor.bytes / sizeof(int64_t), err));
    lnt_text_mark(to);
    return LNT_OK;
}

/* A new table without the words of inputs given before. All numbers change, so that the session has to be bound anew;
 * after a failure inputs are to be given again. */
static lnt_status drop_words(lnt_session *s, lnt_error *err)
{
    lnt_text *table = lnt_text_make(&s->memory.allocator, err);
    const lnt_status status = table ? move_inputs(s, table, err) : LNT_E_MEMORY;
    if (status != LNT_OK) {
        for (uint32_t i = 0; i < s->model->n_in; i++)
            s->input[i].given &= !lnt_is_text(s->model, s->model->in[i]);
        lnt_text_free(&table);
        return status;
    }
    lnt_text_free(&s->text->table);
    s->text->table = table;
    s->binding.stale = true;
    return LNT_OK;
}

lnt_status lnt_text_begin_run(lnt_session *s, lnt_error *err)
{
    enum { FEW = 1024 };
    lnt_text_rewind(s->text->table);
    return lnt_text_count(s->text->table) > 2 * held_words(s) + FEW ? drop_words(s, err) : LNT_OK;
}

lnt_status lnt_take_words(lnt_session *s, uint32_t i, const lnt_tensor *words, lnt_tensor *numbers,
                          lnt_error *err)
{
    const char *name = lnt_value_name(s->model, s->model->in[i]);
    size_t bytes;
    LNT_REQUIRE(words->dtype == LNT_STRING, err, LNT_E_TYPE, "input %s takes string, not %s", name,
                lnt_dtype_text(words->dtype));
    *numbers = *words;
    numbers->dtype = LNT_INT64;
    numbers->data = NULL;
    LNT_TRY(lnt_check_input(s, i, numbers, &bytes, err));
    const size_t n = bytes / sizeof(int64_t);
    LNT_REQUIRE(!words->data || words->bytes / sizeof(char *) >= n, err, LNT_E_SHAPE,
                "input %s needs %zu pointers to text, in %zu bytes, %zu are given", name, n,
                n * sizeof(char *), words->bytes);
    numbers->bytes = bytes;
    if (!words->data)
        return LNT_OK;
    lnt_buffer *to = &s->text->in[i];
    s->input[i].given = false;
    LNT_TRY(lnt_buffer_reserve(s, to, bytes, err));
    LNT_TRY(number_words(s->text->table, words->data, n, to->data, err));
    lnt_text_mark(s->text->table);
    numbers->data = to->data;
    return LNT_OK;
}

/* ---- words out ---- */

lnt_status lnt_give_words(lnt_session *s, uint32_t i, lnt_tensor *t, lnt_error *err)
{
    const size_t n = t->bytes / sizeof(int64_t);
    const int64_t *number = t->data;
    size_t bytes;
    LNT_ASSERT(s->text && lnt_is_text(s->model, s->model->out[i]));
    LNT_REQUIRE(lnt_mul_size(n, sizeof(char *), &bytes), err, LNT_E_LIMIT, "output %u has too many words", i);
    t->dtype = LNT_STRING;
    t->bytes = bytes;
    t->data = NULL;
    if (!number)
        return LNT_OK;
    LNT_TRY(lnt_buffer_reserve(s, &s->text->out[i], bytes, err));
    const char **to = s->text->out[i].data;
    for (size_t k = 0; k < n; k++) {
        lnt_chars word;
        LNT_TRY(lnt_text_get(s->text->table, number[k], &word, err));
        to[k] = word.at;
    }
    t->data = (void *)to;
    return LNT_OK;
}
