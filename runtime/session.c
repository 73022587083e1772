/* session.c — the life of a session and what its user gives and takes. */
#include "runtime/internal.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "formats/hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lnt_log(const lnt_session *s, int severity, const char *format, ...)
{
    const lnt_host *host = &s->model->host;
    char message[256];
    if (!host->log || severity < s->log_severity)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    host->log(host->user, severity, message);
}

const lnt_node *lnt_session_node(const lnt_session *s, uint32_t node)
{
    LNT_ASSERT(node < s->model->n_nodes);
    return &s->model->node[node];
}

lnt_status lnt_buffer_reserve(lnt_session *s, lnt_buffer *b, size_t bytes, lnt_error *err)
{
    LNT_ASSERT(b->data || b->capacity == 0);
    if (b->data && bytes <= b->capacity)
        return LNT_OK;
    void *grown = lnt_alloc(&s->allocator, bytes, err);
    if (!grown)
        return LNT_E_MEMORY;
    lnt_free(&s->allocator, b->data);
    *b = (lnt_buffer){grown, bytes};
    return LNT_OK;
}

static void buffer_free(lnt_session *s, lnt_buffer *b)
{
    lnt_free(&s->allocator, b->data);
    *b = (lnt_buffer){NULL, 0};
}

/* ---- creation ---- */

uint64_t lnt_memory_left(const lnt_session *s)
{
    const size_t used = atomic_load_explicit(&s->budget.used, memory_order_relaxed);
    return !s->memory_limit ? lnt_available_memory() : s->budget.limit > used ? s->budget.limit - used : 0;
}

/* Without a limit of the user's, large blocks are held against what the machine has before they are tried:
 * systems that overcommit would say yes. */
static void *machine_allocate(void *host, size_t bytes)
{
    enum { SMALL = 1 << 20 };
    const lnt_session *s = host;
    if (bytes > SMALL && !s->memory_limit && bytes > lnt_available_memory())
        return NULL;
    return s->model->allocator.allocate(s->model->allocator.host, bytes);
}

static void machine_release(void *host, void *block)
{
    const lnt_session *s = host;
    s->model->allocator.release(s->model->allocator.host, block);
}

static lnt_status make_frame(lnt_session *s, lnt_frame *f, uint32_t sub, lnt_error *err)
{
    const lnt_model *m = s->model;
    f->sub = sub;
    const size_t steps = (size_t)m->n_nodes + m->n_out; /* every node once, every output copied */
    f->stack = lnt_bump_alloc(&s->memory, m->file.n_subgraphs * sizeof *f->stack, err);
    f->stop.stack = lnt_bump_alloc(&s->memory, m->file.n_subgraphs * sizeof *f->stack, err);
    f->list = lnt_bump_alloc(&s->memory, steps * sizeof *f->list, err);
    f->time = lnt_bump_alloc(&s->memory, steps * sizeof *f->time, err);
    f->order = lnt_bump_alloc(&s->memory, s->n_storages * sizeof *f->order, err);
    f->best = lnt_bump_alloc(&s->memory, s->n_storages * sizeof *f->best, err);
    f->alive = lnt_bump_alloc(&s->memory, (steps + 1) * sizeof *f->alive, err);
    if (!f->stack || !f->stop.stack || !f->list || !f->time || !f->order || !f->best || !f->alive)
        return LNT_E_MEMORY;
    return lnt_places_make(&f->places, s->n_storages, &s->memory, err);
}

static lnt_status make_bodies(lnt_session *s, lnt_error *err)
{
    const lnt_model *m = s->model;
    s->body = lnt_bump_alloc(&s->memory, m->n_nodes * sizeof *s->body, err);
    if (!s->body)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        const unsigned id = m->node[i].op->id;
        if (id != LNT_ID_Loop && id != LNT_ID_Scan)
            continue;
        s->body[i] = lnt_bump_alloc(&s->memory, sizeof **s->body, err);
        if (!s->body[i])
            return LNT_E_MEMORY;
        LNT_TRY(make_frame(s, s->body[i], (uint32_t)*lnt_attr_find(&m->node[i], "body")->i, err));
    }
    return LNT_OK;
}

static lnt_status make_tables(lnt_session *s, lnt_error *err)
{
    const lnt_model *m = s->model;
    const lnt_file *f = &m->file;
    lnt_bump *b = &s->memory;
    s->n_storages = m->n_values + m->n_nodes + m->n_out;
    s->n_states = f->n_states;
    if (!(s->value = lnt_bump_alloc(b, m->n_values * sizeof *s->value, err)) ||
        !(s->operand = lnt_bump_alloc(b, f->n_operands * sizeof *s->operand, err)) ||
        !(s->storage = lnt_bump_alloc(b, s->n_storages * sizeof *s->storage, err)) ||
        !(s->slot = lnt_bump_alloc(b, s->n_storages * sizeof *s->slot, err)) ||
        !(s->born = lnt_bump_alloc(b, m->n_values * sizeof *s->born, err)) ||
        !(s->step = lnt_bump_alloc(b, m->n_nodes * sizeof *s->step, err)) ||
        !(s->owned = lnt_bump_alloc(b, m->n_values * sizeof *s->owned, err)) ||
        !(s->input = lnt_bump_alloc(b, m->n_in * sizeof *s->input, err)) ||
        !(s->output = lnt_bump_alloc(b, m->n_out * sizeof *s->output, err)) ||
        !(s->state = lnt_bump_alloc(b, f->n_states * sizeof *s->state, err)) ||
        !(s->bound = lnt_bump_alloc(b, f->n_symbols * sizeof *s->bound, err)) ||
        !(s->fetched = lnt_bump_alloc(b, m->n_values * sizeof *s->fetched, err)) ||
        !(s->selected = lnt_bump_alloc(b, m->n_out * sizeof *s->selected, err)) ||
        !(s->needed = lnt_bump_alloc(b, m->n_values * sizeof *s->needed, err)) ||
        !(s->injected = lnt_bump_alloc(b, m->n_values * sizeof *s->injected, err)) ||
        !(s->home = lnt_bump_alloc(b, m->n_values * sizeof *s->home, err)) ||
        !(s->lent = lnt_bump_alloc(b, m->n_values * sizeof *s->lent, err)))
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < f->n_operands; i++)
        s->operand[i] = f->operands[i] == LNT_NONE ? NULL : &s->value[f->operands[i]];
    for (uint32_t i = 0; i < f->n_symbols; i++)
        s->bound[i] = f->symbols[i].bound;
    for (uint32_t i = 0; i < f->n_states; i++) {
        s->state[i].input = f->states[i].input;
        s->state[i].output = f->states[i].output;
    }
    memcpy(s->value, m->value, m->n_values * sizeof *s->value);
    LNT_TRY(make_frame(s, &s->root, 0, err));
    return make_bodies(s, err);
}

/* Free-form settings. */
static lnt_status read_config(const lnt_session_options *o, bool *spin, lnt_error *err)
{
    *spin = true;
    LNT_REQUIRE(o->config || !o->n_config, err, LNT_E_ARGUMENT, "n_config settings, and config is NULL");
    LNT_REQUIRE(o->n_config <= UINT8_MAX, err, LNT_E_ARGUMENT, "%zu settings, at most %d", o->n_config,
                UINT8_MAX);
    for (size_t i = 0; i < o->n_config; i++) {
        const lnt_config_entry *e = &o->config[i];
        LNT_REQUIRE(e->key && e->text, err, LNT_E_ARGUMENT, "a setting needs a key and a text");
        LNT_REQUIRE(strcmp(e->key, "session.intra_op.allow_spinning") == 0, err, LNT_E_ARGUMENT,
                    "there is no setting %s; linnet.h lists them", e->key);
        LNT_REQUIRE(strcmp(e->text, "0") == 0 || strcmp(e->text, "1") == 0, err, LNT_E_ARGUMENT,
                    "%s takes \"0\" or \"1\", not \"%s\"", e->key, e->text);
        *spin = e->text[0] == '1';
    }
    return LNT_OK;
}

static lnt_status start_pool(lnt_session *s, const lnt_session_options *o, lnt_error *err)
{
    bool spin;
    LNT_TRY(read_config(o, &spin, err));
    uint32_t threads = o->intra_op_num_threads ? o->intra_op_num_threads : lnt_default_threads();
    if (o->execution_mode == LNT_PARALLEL && o->inter_op_num_threads > threads)
        threads = o->inter_op_num_threads;
    if (s->pool || threads == 1)
        return LNT_OK;
    s->own_pool = true;
    return lnt_pool_make(&s->allocator, threads, spin, &s->pool, err);
}

static lnt_status take_options(lnt_session *s, const lnt_session_options *o, lnt_error *err)
{
    lnt_session_options options;
    LNT_TRY(lnt_take_struct(o, &options, sizeof options, "lnt_session_options", err));
    s->level = lnt_cpu_level();
    if (options.level) {
        lnt_level level;
        LNT_REQUIRE(lnt_level_from_text(options.level, &level), err, LNT_E_ARGUMENT,
                    "this build has no level %s; linnet doctor lists them", options.level);
        LNT_REQUIRE(level <= lnt_cpu_best_level(), err, LNT_E_ARGUMENT, "this CPU cannot run level %s",
                    options.level);
        s->level = level;
    }
    LNT_REQUIRE(options.execution_mode == LNT_SEQUENTIAL || options.execution_mode == LNT_PARALLEL, err,
                LNT_E_ARGUMENT, "there is no execution mode %d", (int)options.execution_mode);
    LNT_REQUIRE((uintptr_t)options.arena % LNT_ALIGN == 0, err, LNT_E_ARGUMENT,
                "the arena must be aligned to %d bytes", LNT_ALIGN);
    s->root.arena = options.arena;
    s->root.arena_capacity = options.arena ? options.arena_bytes : 0;
    s->root.arena_is_callers = options.arena != NULL;
    s->memory_limit = options.memory_limit;
    s->budget.limit =
        options.memory_limit && options.memory_limit < SIZE_MAX ? (size_t)options.memory_limit : SIZE_MAX;
    s->seed = options.seed;
    s->trace = options.enable_profiling;
    s->mode = options.execution_mode;
    s->separate = options.disable_mem_pattern;
    s->log_severity = options.log_severity_level;
    s->pool = options.pool;
    return start_pool(s, &options, err);
}

lnt_status lnt_session_create(lnt_model *model, const lnt_session_options *options, lnt_session **session,
                              lnt_error *err)
{
    lnt_error_clear(err);
    LNT_REQUIRE(model && session, err, LNT_E_ARGUMENT, "model and session must be given");
    *session = NULL;
    LNT_TRY(lnt_watch_forks(err));
    lnt_session *s = lnt_alloc_zero(&model->allocator, 1, sizeof *s, err);
    if (!s)
        return LNT_E_MEMORY;
    s->model = model;
    s->machine = (lnt_allocator){machine_allocate, machine_release, s};
    lnt_budget_init(&s->budget, &s->machine, UINT64_MAX, "memory_limit");
    s->allocator = s->budget.allocator;
    lnt_bump_init(&s->memory, &s->allocator);
    lnt_bump_init(&s->params, &s->allocator);
    lnt_bump_init(&s->known, &s->allocator);
    lnt_status status = take_options(s, options, err);
    if (status == LNT_OK)
        status = make_tables(s, err);
    s->kernel = (lnt_kernel){.slot = s->slot,
                             .threads = lnt_pool_threads(s->pool),
                             .stop = &s->stop_flag,
                             .parallel = lnt_pool_parallel,
                             .poll = lnt_pool_poll,
                             .runtime = s};
    *session = s;
    if (status != LNT_OK)
        lnt_session_destroy(session);
    return status;
}

static void free_arena(lnt_session *s, lnt_frame *f)
{
    if (f && !f->arena_is_callers) {
        lnt_free(&s->allocator, f->arena);
        f->arena = NULL;
        f->arena_capacity = 0;
    }
}

/* Frees all that can be made again. */
static void free_working_memory(lnt_session *s)
{
    const lnt_model *m = s->model;
    free_arena(s, &s->root);
    for (uint32_t i = 0; s->body && i < m->n_nodes; i++)
        free_arena(s, s->body[i]);
    for (uint32_t i = 0; s->owned && i < m->n_values; i++)
        buffer_free(s, &s->owned[i]);
    for (uint32_t i = 0; s->input && i < m->n_in; i++) {
        buffer_free(s, &s->input[i].staging);
        buffer_free(s, &s->input[i].seen);
    }
    buffer_free(s, &s->fetch_copy);
    buffer_free(s, &s->names);
    buffer_free(s, &s->aside);
    lnt_bump_free(&s->params);
    lnt_bump_free(&s->known);
    s->bound_now = false;
}

void lnt_session_destroy(lnt_session **session)
{
    if (!session || !*session)
        return;
    lnt_session *s = *session;
    *session = NULL;
    if (!lnt_enter_last(s))
        return;
    free_working_memory(s);
    for (uint32_t i = 0; s->injected && i < s->model->n_values; i++)
        buffer_free(s, &s->injected[i].buffer);
    for (uint32_t i = 0; s->state && i < s->n_states; i++) {
        buffer_free(s, &s->state[i].now);
        buffer_free(s, &s->state[i].next);
    }
    if (s->own_pool)
        lnt_pool_destroy(&s->pool);
    lnt_free(&s->allocator, s->trace_step);
    lnt_bump_free(&s->memory);
    lnt_free(&s->model->allocator, s);
}

lnt_status lnt_session_trim(lnt_session *s, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    free_working_memory(s);
    return lnt_leave(s, LNT_OK);
}

/* ---- inputs and outputs ---- */

lnt_status lnt_check_input(const lnt_session *s, uint32_t i, const lnt_tensor *t, size_t *bytes,
                           lnt_error *err)
{
    const lnt_operand *v = &s->model->value[s->model->in[i]];
    const char *name = lnt_value_name(s->model, s->model->in[i]);
    LNT_REQUIRE(t->dtype == v->dtype, err, LNT_E_TYPE, "input %s takes %s, not %s", name,
                lnt_dtype_text((lnt_dtype)v->dtype), lnt_dtype_text(t->dtype));
    LNT_REQUIRE(t->rank <= LNT_MAX_RANK && (v->rank == LNT_RANK_UNKNOWN || t->rank == v->rank), err,
                LNT_E_SHAPE, "input %s has rank %u, not %u", name, v->rank, t->rank);
    for (unsigned d = 0; d < t->rank; d++) {
        LNT_REQUIRE(t->dims[d] >= 0, err, LNT_E_SHAPE, "input %s: extent %lld on axis %u", name,
                    (long long)t->dims[d], d);
        LNT_REQUIRE(v->rank == LNT_RANK_UNKNOWN || v->dims[d] < 0 || v->dims[d] == t->dims[d], err,
                    LNT_E_SHAPE, "input %s has %lld along axis %u, not %lld", name, (long long)v->dims[d], d,
                    (long long)t->dims[d]);
    }
    LNT_REQUIRE(lnt_shape_bytes(t->dims, t->rank, lnt_dtype_size(t->dtype), bytes), err, LNT_E_SHAPE,
                "input %s is larger than the address space", name);
    LNT_REQUIRE(!t->data || t->bytes >= *bytes, err, LNT_E_SHAPE, "input %s needs %zu bytes, %zu are given",
                name, *bytes, t->bytes);
    return LNT_OK;
}

bool lnt_same_shape(const lnt_tensor *a, const lnt_tensor *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static lnt_status set_input(lnt_session *s, uint32_t i, const lnt_tensor *t, lnt_error *err)
{
    LNT_REQUIRE(t && i < s->model->n_in, err, LNT_E_ARGUMENT, "there is no input %u", i);
    const lnt_state_slot *state = lnt_state_of_input(s, i);
    if (state)
        return lnt_set_state(s, (uint32_t)(state - s->state), t, err);
    size_t bytes;
    LNT_TRY(lnt_check_input(s, i, t, &bytes, err));
    lnt_input_slot *in = &s->input[i];
    const bool staged = (uintptr_t)t->data % lnt_dtype_size(t->dtype) != 0; /* in memory made at bind */
    if (!in->given || !lnt_same_shape(&in->tensor, t) || (staged && in->staging.capacity < bytes))
        s->rebind = true;
    in->tensor = *t;
    in->tensor.bytes = bytes;
    in->given = true;
    return LNT_OK;
}

lnt_status lnt_set_input(lnt_session *s, uint32_t i, const lnt_tensor *t, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, set_input(s, i, t, err));
}

static lnt_status set_output(lnt_session *s, uint32_t i, void *data, size_t bytes, lnt_error *err)
{
    LNT_REQUIRE(i < s->model->n_out, err, LNT_E_ARGUMENT, "there is no output %u", i);
    lnt_output_slot *out = &s->output[i];
    LNT_REQUIRE(!lnt_state_of_output(s, i), err, LNT_E_ARGUMENT,
                "output %u is a state; read it with lnt_state_get", i);
    const lnt_dtype dtype = (lnt_dtype)s->model->value[s->model->out[i]].dtype;
    const size_t align = lnt_dtype_size(dtype == LNT_UNDEFINED ? LNT_DOUBLE : dtype); /* the run will tell */
    LNT_REQUIRE((uintptr_t)data % align == 0, err, LNT_E_ARGUMENT,
                "output memory must be aligned to its elements of %zu bytes", align);
    size_t needed;
    const bool fits =
        s->bound_now && lnt_operand_bytes(&s->value[s->model->out[i]], &needed) && bytes >= needed;
    if (!out->data != !data || (data && bytes < out->bytes && !fits))
        s->rebind = true;
    out->data = data;
    out->bytes = data ? bytes : 0;
    return LNT_OK;
}

lnt_status lnt_set_output(lnt_session *s, uint32_t i, void *data, size_t bytes, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, set_output(s, i, data, bytes, err));
}

static void fill_tensor(lnt_tensor *t, const lnt_operand *v, const void *data)
{
    *t = (lnt_tensor){.dtype = (lnt_dtype)v->dtype, .rank = v->rank, .data = (void *)(uintptr_t)data};
    memcpy(t->dims, v->dims, sizeof t->dims);
    t->bytes = lnt_known_bytes(v);
}

static const void *value_memory(lnt_session *s, const lnt_operand *v)
{
    const char *slot = s->slot[lnt_storage_root(s, v->storage)];
    return slot ? slot + v->offset : NULL;
}

static lnt_status get_output(lnt_session *s, uint32_t i, lnt_tensor *t, lnt_error *err)
{
    LNT_REQUIRE(t && i < s->model->n_out, err, LNT_E_ARGUMENT, "there is no output %u", i);
    LNT_REQUIRE(s->bound_now && !s->rebind, err, LNT_E_ARGUMENT,
                "bind or run the session before reading outputs");
    const lnt_state_slot *state = lnt_state_of_output(s, i);
    if (state)
        return lnt_get_state(s, (uint32_t)(state - s->state), t, err);
    const lnt_operand *v = &s->value[s->model->out[i]];
    LNT_REQUIRE(!s->partial || s->selected[i], err, LNT_E_ARGUMENT,
                "output %u was not selected to be computed", i);
    LNT_REQUIRE(lnt_operand_count(v) >= 0, err, LNT_E_ARGUMENT,
                "the shape of output %u is known after a run: it depends on data", i);
    const lnt_output_slot *out = &s->output[i];
    LNT_REQUIRE(!out->data || lnt_known_bytes(v) <= out->bytes, err, LNT_E_LIMIT,
                "output %u needs %zu bytes, %zu are given", i, lnt_known_bytes(v), out->bytes);
    fill_tensor(t, v, out->data ? out->data : value_memory(s, v));
    return LNT_OK;
}

lnt_status lnt_get_output(lnt_session *s, uint32_t i, lnt_tensor *t, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, get_output(s, i, t, err));
}

/* ---- bounds, fetching ---- */

static lnt_status set_bound(lnt_session *s, const char *name, int64_t bound, lnt_error *err)
{
    LNT_REQUIRE(name, err, LNT_E_ARGUMENT, "a name must be given");
    const lnt_file *f = &s->model->file;
    bool found = false;
    for (uint32_t i = 0; i < f->n_symbols; i++)
        if (strcmp(f->strings + f->symbols[i].name, name) == 0) {
            s->bound[i] = bound;
            found = s->rebind = true;
        }
    LNT_REQUIRE(found, err, LNT_E_NOT_FOUND,
                "the model has no variable extent called %s; linnet info lists them", name);
    return LNT_OK;
}

lnt_status lnt_set_bound(lnt_session *s, const char *name, int64_t bound, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, set_bound(s, name, bound, err));
}

/* The place of a name in the table of so many places, a power of two: where it is, or where it would go. */
static uint32_t *place_of_name(const lnt_model *m, uint32_t *table, size_t places, const char *name)
{
    size_t at = (size_t)lnt_hash(name, strlen(name)) & (places - 1);
    while (table[at] != LNT_NONE && strcmp(lnt_value_name(m, table[at]), name) != 0)
        at = (at + 1) & (places - 1);
    return &table[at];
}

/* Made when a name is first asked for. Of values with one name the first counts. */
static lnt_status make_names(lnt_session *s, size_t places, lnt_error *err)
{
    LNT_TRY(lnt_buffer_reserve(s, &s->names, places * sizeof(uint32_t), err));
    uint32_t *table = s->names.data;
    memset(table, 0xff, places * sizeof *table); /* LNT_NONE */
    for (uint32_t i = 0; i < s->model->n_values; i++) {
        uint32_t *place = place_of_name(s->model, table, places, lnt_value_name(s->model, i));
        if (*place == LNT_NONE)
            *place = i;
    }
    return LNT_OK;
}

lnt_status lnt_find_value(lnt_session *s, const char *name, uint32_t *value, lnt_error *err)
{
    size_t places = 2;
    while (places < 2 * (size_t)s->model->n_values)
        places *= 2;
    if (!s->names.data)
        LNT_TRY(make_names(s, places, err));
    *value = *place_of_name(s->model, s->names.data, places, name);
    if (*value != LNT_NONE)
        return LNT_OK;
    return lnt_fail(
        err, LNT_E_NOT_FOUND,
        "there is no value %s in the file: if the ONNX model has it, a fusion removed it; convert with "
        "--keep %s or --opt none",
        name, name);
}

static lnt_status fetch(lnt_session *s, const char *name, lnt_error *err)
{
    uint32_t value;
    LNT_REQUIRE(name, err, LNT_E_ARGUMENT, "a name must be given");
    LNT_TRY(lnt_find_value(s, name, &value, err));
    s->rebind |= !s->fetched[value];
    s->fetched[value] = true;
    return LNT_OK;
}

lnt_status lnt_fetch(lnt_session *s, const char *name, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, fetch(s, name, err));
}

/* A value in ONNX order, in memory of the session's if it lies otherwise. */
static lnt_status plain_copy(lnt_session *s, const lnt_operand *v, const void *data, const void **out,
                             lnt_error *err)
{
    *out = data;
    if (v->order == LNT_ORDER_PLAIN && !v->packed)
        return LNT_OK;
    size_t bytes;
    LNT_REQUIRE(lnt_operand_bytes(v, &bytes), err, LNT_E_INTERNAL, "a fetched value has no size");
    LNT_TRY(lnt_buffer_reserve(s, &s->fetch_copy, bytes, err));
    *out = s->fetch_copy.data;
    if (v->packed) {
        lnt_unpack(v->packed, (lnt_dtype)v->dtype, data, s->fetch_copy.data);
        return LNT_OK;
    }
    const size_t size = lnt_dtype_size((lnt_dtype)v->dtype);
    const int64_t n = v->dims[0], c = v->dims[1], positions = n && c ? lnt_operand_count(v) / (n * c) : 0;
    char *to = s->fetch_copy.data;
    for (int64_t i = 0; i < n * c; i++)
        for (int64_t p = 0; p < positions; p++, to += size)
            memcpy(to, (const char *)data + (size_t)(((i / c) * positions + p) * c + i % c) * size, size);
    return LNT_OK;
}

static lnt_status get_value(lnt_session *s, const char *name, lnt_tensor *t, lnt_error *err)
{
    uint32_t value;
    LNT_REQUIRE(name && t, err, LNT_E_ARGUMENT, "name and tensor must be given");
    LNT_TRY(lnt_find_value(s, name, &value, err));
    const lnt_operand *v = &s->value[value];
    LNT_REQUIRE(s->fetched[value] || v->constant, err, LNT_E_ARGUMENT,
                "ask for %s with lnt_fetch before the run", name);
    LNT_REQUIRE(s->bound_now && !s->rebind && v->rank != LNT_RANK_UNKNOWN && value_memory(s, v), err,
                LNT_E_ARGUMENT,
                "%s was not computed: run the session first (a branch not taken has no values)", name);
    const void *data;
    LNT_TRY(plain_copy(s, v, value_memory(s, v), &data, err));
    fill_tensor(t, v, data);
    return LNT_OK;
}

lnt_status lnt_get_value(lnt_session *s, const char *name, lnt_tensor *t, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, get_value(s, name, t, err));
}

/* ---- control from outside, and information ---- */

void lnt_cancel(lnt_session *s)
{
    if (s)
        atomic_store(&s->stop_flag, LNT_E_CANCELLED);
}

void lnt_set_deadline(lnt_session *s, uint64_t microseconds)
{
    if (s)
        s->deadline_us = microseconds;
}

void lnt_set_seed(lnt_session *s, uint64_t seed)
{
    if (s)
        s->seed = seed;
}

static lnt_status get_info(const lnt_session *s, lnt_session_info *info, lnt_error *err)
{
    LNT_REQUIRE(info, err, LNT_E_ARGUMENT, "info must be given");
    const size_t wanted = info->struct_bytes;
    LNT_TRY(lnt_check_struct_bytes(wanted, "lnt_session_info", err));
    lnt_session_info full = {.struct_bytes = wanted,
                             .arena_bytes = s->root.arena_bytes,
                             .constant_bytes = s->model->file.tensors_bytes,
                             .n_steps = s->root.n_steps,
                             .n_evaluated = s->n_evaluated,
                             .threads = s->kernel.threads,
                             .level = lnt_level_text(s->level),
                             .unbounded = s->unbounded,
                             .alive_bytes = s->root.alive_bytes,
                             .held_bytes = atomic_load_explicit(&s->budget.used, memory_order_relaxed)};
    memcpy(info, &full, wanted < sizeof full ? wanted : sizeof full);
    return LNT_OK;
}

lnt_status lnt_session_get_info(const lnt_session *s, lnt_session_info *info, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, get_info(s, info, err));
}
