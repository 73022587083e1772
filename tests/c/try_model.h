/* try_model.h — loads and runs a model that may be nonsense, within narrow limits of memory and time.
 *
 * How it is used follows from a number, its recipe: sessions side by side, modes, levels, extents, what is
 * fetched, injected, selected and bounded, what happens between runs. 0 is the plain way: one session, one
 * step after another on one thread at the best level. */
#ifndef TESTS_TRY_MODEL_H
#define TESTS_TRY_MODEL_H

#include "runtime/internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRY_BYTES = 1 << 17, /* of an input at most */
    TRY_MEMORY = 64 << 20,
    TRY_DEADLINE_US = 20000,
    TRY_RUNS = 3,
    TRY_SESSIONS = 2
};

/* A number below n out of what is left of a recipe. */
static inline unsigned draw(uint64_t *recipe, unsigned n)
{
    const unsigned x = (unsigned)(*recipe % n);
    *recipe /= n;
    return x;
}

/* Once in n. */
static inline bool rarely(uint64_t *recipe, unsigned n)
{
    return draw(recipe, n) == n - 1;
}

typedef struct usage {
    lnt_session_options options;
    uint32_t load_flags;
    unsigned sessions;
    int64_t extent[TRY_RUNS]; /* of open axes */
    unsigned contents;        /* of inputs */
    unsigned allocations;     /* that the host grants; UINT_MAX: all */
    bool full;                /* also what fetch, inject, bounds and states do */
    uint64_t left;            /* of the recipe, for details */
} usage;

static inline lnt_pool *shared_pool(void)
{
    static lnt_pool *pool;
    if (!pool)
        (void)lnt_pool_create(2, &pool, NULL);
    return pool;
}

static inline usage read_recipe(uint64_t recipe)
{
    static const char *const levels[] = {
        NULL,
#define LEVEL(ident, name, ...) name,
#include "base/levels.h"
#undef LEVEL
    };
    static const int64_t extents[][TRY_RUNS] = {{3, 2, 3}, {2, 3, 5}, {1, 1, 1},   {0, 3, 0},
                                                {3, 0, 4}, {5, 17, 1}, {64, 7, 64}, {1, 0, 2}};
    static _Alignas(64) uint8_t arena[1 << 16];
    usage t = {.options = {.struct_bytes = sizeof t.options,
                           .intra_op_num_threads = 1,
                           .inter_op_num_threads = 1,
                           .memory_limit = TRY_MEMORY}};
    t.options.execution_mode = draw(&recipe, 2) ? LNT_PARALLEL : LNT_SEQUENTIAL;
    if (rarely(&recipe, 4))
        t.options.pool = shared_pool();
    t.options.level = levels[draw(&recipe, sizeof levels / sizeof *levels)];
    t.sessions = 1 + rarely(&recipe, 4);
    memcpy(t.extent, extents[draw(&recipe, sizeof extents / sizeof *extents)], sizeof t.extent);
    t.contents = draw(&recipe, 5);
    t.options.disable_mem_pattern = rarely(&recipe, 4);
    t.options.enable_profiling = rarely(&recipe, 4);
    if (rarely(&recipe, 8)) {
        t.options.arena = arena;
        t.options.arena_bytes = sizeof arena;
        t.sessions = 1;
    }
    t.load_flags = rarely(&recipe, 8) ? LNT_LOAD_COPY : 0;
    t.allocations = rarely(&recipe, 8) ? draw(&recipe, 100) : UINT_MAX;
    t.full = draw(&recipe, 2);
    t.left = recipe;
    return t;
}

/* Bytes to feed: zeros, small integers, floats, all bits, and bytes that count. */
static inline const void *contents_of(unsigned kind)
{
    static _Alignas(64) uint8_t pattern[5][TRY_BYTES];
    static bool made;
    for (size_t i = 0; !made && i < TRY_BYTES; i++) {
        pattern[1][i] = i % 8 == 0 ? (uint8_t)(i / 8 % 3) : 0;
        pattern[2][i] = i % 4 == 3 ? 0x3f : i % 4 == 2 ? (uint8_t)(0xc0 + i / 4 % 64) : 0;
        pattern[3][i] = 0xff;
        pattern[4][i] = (uint8_t)i;
    }
    made = true;
    return pattern[kind];
}

/* A tensor of the value's type and extents, open ones taken as `open`. */
static inline lnt_status make_tensor(const lnt_operand *v, int64_t open, const void *data, lnt_tensor *t)
{
    *t = (lnt_tensor){.dtype = (lnt_dtype)v->dtype, .rank = v->rank > LNT_MAX_RANK ? 1 : v->rank};
    t->data = (void *)(uintptr_t)data;
    size_t bytes = lnt_dtype_size(t->dtype);
    bool empty = false;
    for (uint32_t k = 0; k < t->rank; k++) {
        t->dims[k] = k >= v->rank || v->dims[k] < 0 ? open : v->dims[k];
        empty |= t->dims[k] == 0;
    }
    for (uint32_t k = 0; k < t->rank && !empty; k++)
        if (t->dims[k] > TRY_BYTES || (bytes *= (size_t)t->dims[k]) > TRY_BYTES)
            return LNT_E_LIMIT;
    t->bytes = empty ? 0 : bytes;
    return LNT_OK;
}

/* As many words as the tensor has numbers; which ones follows from these. */
static inline void put_words(lnt_tensor *t)
{
    static const char *const some[] = {"",       "a b",       "one,two,,three", "\xff\x80",
                                       "Monday", "www.x.com", " \t ",           "\xc3\x84"};
    static const char *word[TRY_BYTES / sizeof(int64_t)];
    const size_t n = t->bytes / sizeof(int64_t);
    for (size_t i = 0; i < n; i++)
        word[i] = some[(((const uint8_t *)t->data)[i] + i) % (sizeof some / sizeof *some)];
    t->dtype = LNT_STRING;
    t->data = (void *)(uintptr_t)word;
    t->bytes = n * sizeof *word;
}

static inline lnt_status feed(lnt_session *s, uint32_t i, int64_t open, const void *data, lnt_error *err)
{
    lnt_tensor t;
    LNT_TRY(make_tensor(&s->model->value[s->model->in[i]], open, data, &t));
    if (lnt_is_text(s->model, s->model->in[i]))
        put_words(&t);
    return lnt_set_input(s, i, &t, err);
}

static inline void read_bytes(const lnt_tensor *t)
{
    volatile uint8_t sum = 0; /* no compiler can tell that nobody asks */
    for (size_t k = 0; t->dtype == LNT_STRING && t->data && k < t->bytes / sizeof(char *); k++)
        sum = (uint8_t)(sum + strlen(((const char *const *)t->data)[k]));
    for (size_t k = 0; t->data && k < t->bytes; k++)
        sum = (uint8_t)(sum + ((const uint8_t *)t->data)[k]);
}

/* Every output is read; states too if asked to, which moves them. */
static inline void read_outputs(lnt_session *s, bool states)
{
    for (uint32_t i = 0; i < s->model->n_out; i++) {
        lnt_value_info info = {0};
        lnt_tensor t = {0};
        if (lnt_model_output(s->model, i, &info) == LNT_OK && info.is_state && !states)
            continue;
        if (lnt_get_output(s, i, &t, NULL) == LNT_OK)
            read_bytes(&t);
    }
    for (uint32_t i = 0; states && i < s->states.n; i++) {
        lnt_tensor t = {0};
        if (lnt_state_get(s, i, &t, NULL) == LNT_OK)
            read_bytes(&t);
    }
}

/* Some value's name, as a host would know it from the ONNX model. */
static inline const char *some_value(const lnt_model *m, uint64_t *recipe, lnt_operand *v)
{
    const uint32_t i = m->n_values ? draw(recipe, m->n_values) : 0;
    *v = m->n_values ? m->value[i] : (lnt_operand){.rank = 0};
    return m->n_values ? m->file.strings + m->file.values[i].name : "";
}

/* What a host may ask for before it binds. Refusals are as good as results. */
static inline void ask(lnt_session *s, uint64_t recipe)
{
    lnt_model *m = s->model;
    lnt_operand v;
    lnt_tensor t;
    uint32_t output = draw(&recipe, 4);
    if (rarely(&recipe, 3))
        (void)lnt_keep_value(s, some_value(m, &recipe, &v), NULL);
    if (rarely(&recipe, 4))
        (void)lnt_select_outputs(s, &output, rarely(&recipe, 4) ? 0 : 1, NULL);
    if (rarely(&recipe, 4)) {
        const char *name = some_value(m, &recipe, &v);
        if (make_tensor(&v, 2, contents_of(draw(&recipe, 5)), &t) == LNT_OK)
            (void)lnt_set_value(s, name, &t, NULL);
    }
    if (rarely(&recipe, 3) && m->file.n_symbols)
        (void)lnt_set_bound(s, m->file.strings + m->file.symbols[draw(&recipe, m->file.n_symbols)].name,
                            draw(&recipe, 40), NULL);
    if (rarely(&recipe, 4)) {
        static _Alignas(64) uint8_t output_bytes[1 << 12];
        (void)lnt_set_output(s, output, output_bytes + draw(&recipe, 3), sizeof output_bytes - 3, NULL);
    }
}

/* What may happen between two runs. */
static inline void interrupt(lnt_session *s, uint64_t *recipe)
{
    lnt_tensor t;
    const uint32_t state = s->states.n ? draw(recipe, s->states.n) : 0;
    switch (draw(recipe, 10)) {
    case 0: (void)lnt_state_reset(s, NULL); break;
    case 1: (void)lnt_session_trim(s, NULL); break;
    case 2: lnt_set_seed(s, 7); break;
    case 3: lnt_cancel(s); break;
    case 4:
        if (lnt_state_get(s, state, &t, NULL) == LNT_OK)
            (void)lnt_state_set(s, state, &t, NULL);
        break;
    case 5:
        if (s->states.n && make_tensor(&s->model->value[s->model->in[s->states.slot[state].input]], 1,
                                       contents_of(2), &t) == LNT_OK)
            (void)lnt_state_set(s, state, &t, NULL);
        break;
    case 6: (void)lnt_bind(s, NULL); break;
    case 7: ask(s, *recipe); break;
    default: break;
    }
}

static inline bool is_state(const lnt_session *s, uint32_t i)
{
    lnt_value_info info = {0};
    return lnt_model_input(s->model, i, &info) == LNT_OK && info.is_state;
}

/* What is slower than a machine is, as valgrind's, says how much time a run has. */
static inline uint64_t deadline_us(void)
{
    const char *ms = getenv("TRY_DEADLINE_MS");
    return ms ? strtoul(ms, NULL, 10) * 1000 : TRY_DEADLINE_US;
}

/* One run; from the second one on states go on, and open axes may have other extents. */
static inline lnt_status run_once(lnt_session *s, const usage *t, unsigned run, lnt_error *err)
{
    for (uint32_t i = 0; i < s->model->n_in; i++)
        if (!is_state(s, i) || (run == 0 && !t->full))
            LNT_TRY(feed(s, i, t->extent[run], contents_of(t->contents), err));
    lnt_set_deadline(s, deadline_us());
    LNT_TRY(lnt_run(s, err));
    lnt_operand v;
    lnt_tensor fetched = {0};
    uint64_t left = t->left;
    if (t->full && lnt_get_value(s, some_value(s->model, &left, &v), &fetched, NULL) == LNT_OK)
        read_bytes(&fetched);
    read_outputs(s, run + 1 == TRY_RUNS || t->full);
    return LNT_OK;
}

/* Sessions take turns; an error ends all of it. */
static inline lnt_status run_model(lnt_model *m, const usage *t, lnt_error *err)
{
    lnt_session *s[TRY_SESSIONS] = {NULL};
    uint64_t left = t->left;
    lnt_status status = LNT_OK;
    for (unsigned i = 0; i < t->sessions && status == LNT_OK; i++) {
        status = lnt_session_create(m, &t->options, &s[i], err);
        if (status == LNT_OK && t->full)
            ask(s[i], t->left >> 8 * i);
    }
    for (unsigned turn = 0; turn < TRY_RUNS * t->sessions && status == LNT_OK; turn++) {
        lnt_session *now = s[turn % t->sessions];
        status = run_once(now, t, turn / t->sessions, err);
        if (status == LNT_OK && t->full)
            interrupt(now, &left);
    }
    for (unsigned i = 0; i < t->sessions; i++)
        lnt_session_destroy(&s[i]);
    return status;
}

/* A host's memory that ends after so many blocks. */
static inline void *allocate_some(void *user, size_t bytes)
{
    unsigned *left = user;
    if (!*left)
        return NULL;
    *left -= *left != UINT_MAX;
    return lnt_malloc_allocator.allocate(NULL, bytes);
}

/* Loads, binds and runs the .lnt in memory as the recipe says; OK, or why not. */
static inline lnt_status try_model(const void *bytes, size_t size, uint64_t recipe, lnt_error *err)
{
    usage t = read_recipe(recipe);
    const lnt_host host = {.struct_bytes = sizeof host,
                           .allocate = allocate_some,
                           .release = lnt_malloc_allocator.release,
                           .user = &t.allocations};
    const lnt_model_options options = {.struct_bytes = sizeof options, .flags = t.load_flags, .host = &host};
    lnt_model *m = NULL;
    lnt_status status = lnt_model_create_from_memory(bytes, size, &options, &m, err);
    if (status == LNT_OK)
        status = run_model(m, &t, err);
    lnt_model_destroy(&m);
    return status;
}

#endif
