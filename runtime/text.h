/* text.h — words that go into a session and come out of it. Between them there are numbers (base/word_table.h). */
#ifndef LNT_RUNTIME_TEXT_H
#define LNT_RUNTIME_TEXT_H

#include "base/word_table.h"
#include "runtime/buffer.h"
#include "runtime/load.h"

/* 0: the library is trimmed to a model without text (boards/trim.py). */
#ifndef LNT_HAS_TEXT
#define LNT_HAS_TEXT 1
#endif

typedef struct lnt_session_text {
    lnt_text *table;    /* the model's words, then the inputs', then those of the present run */
    size_t model_words; /* of the model */
    lnt_buffer *in;     /* per input: numbers of its words */
    lnt_buffer *out;    /* per output: where its words are */
} lnt_session_text;

static inline bool lnt_is_text(const lnt_model *m, uint32_t value)
{
    return LNT_HAS_TEXT && m->file.values[value].flags & LNT_VALUE_TEXT;
}

/* Finds the words of a model and whether it has any. E_FILE where they are damaged, or where text is a state. */
lnt_status lnt_load_words(lnt_model *m, lnt_error *err);

/* Nothing for models without text. */
lnt_status lnt_session_text_make(lnt_session *s, lnt_error *err);
void lnt_session_text_trim(lnt_session *s);
void lnt_session_text_free(lnt_session *s);
/* The words of input i, whose extents fit, become *numbers. */
lnt_status lnt_take_words(lnt_session *s, uint32_t i, const lnt_tensor *words, lnt_tensor *numbers,
                          lnt_error *err);
/* *t, numbers of output i, becomes words. */
lnt_status lnt_give_words(lnt_session *s, uint32_t i, lnt_tensor *t, lnt_error *err);
/* Before a run: the words of the run before go, and those of inputs given before once they are many. */
lnt_status lnt_text_begin_run(lnt_session *s, lnt_error *err);

#endif
