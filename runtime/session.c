/* session.c — the life of a session and what its user gives and takes. */
#include "runtime/internal.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "ops/kernels.h"

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
    void *grown = lnt_alloc(&s->memory.allocator, bytes, err);
    if (!grown)
        return LNT_E_MEMORY;
    lnt_free(&s->memory.allocator, b->data);
    *b = (lnt_buffer){grown, bytes};
    return LNT_OK;
}

void lnt_buffer_free(lnt_session *s, lnt_buffer *b)
{
    lnt_free(&s->memory.allocator, b->data);
    *b = (lnt_buffer){NULL, 0};
}

/* ---- creation ---- */

uint64_t lnt_memory_left(const lnt_session *s)
{
    const size_t used = atomic_load_explicit(&s->memory.budget.used, memory_order_relaxed);
    const size_t limit = s->memory.budget.limit;
    if (!s->memory.limit)
        return lnt_available_memory();
    return limit > used ? limit - used : 0;
}

/* Without a limit of the user's, large blocks are held against what the machine has before they are tried:
 * systems that overcommit would say yes. */
static void *machine_allocate(void *host, size_t bytes)
{
    enum { SMALL = 1 << 20 };
    const lnt_session *s = host;
    if (bytes > SMALL && !s->memory.limit && bytes > lnt_available_memory())
        return NULL;
    return s->model->allocator.allocate(s->model->allocator.host, bytes);
}

static void machine_release(void *host, void *block)
{
    const lnt_session *s = host;
    s->model->allocator.release(s->model->allocator.host, block);
}

static lnt_status make_values(lnt_session *s, lnt_error *err)
{
    const lnt_model *m = s->model;
    const lnt_file *f = &m->file;
    lnt_bump *b = &s->memory.tables;
    s->n_storages = m->n_values + m->n_nodes + m->n_out;
    if (!(s->value = lnt_bump_alloc(b, m->n_values * sizeof *s->value, err)) ||
        !(s->operand = lnt_bump_alloc(b, f->n_operands * sizeof *s->operand, err)) ||
        !(s->storage = lnt_bump_alloc(b, s->n_storages * sizeof *s->storage, err)) ||
        !(s->slot = lnt_bump_alloc(b, s->n_storages * sizeof *s->slot, err)) ||
        !(s->input = lnt_bump_alloc(b, m->n_in * sizeof *s->input, err)) ||
        !(s->output = lnt_bump_alloc(b, m->n_out * sizeof *s->output, err)))
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < f->n_operands; i++)
        s->operand[i] = f->operands[i] == LNT_NONE ? NULL : &s->value[f->operands[i]];
    memcpy(s->value, m->value, m->n_values * sizeof *s->value);
    return LNT_OK;
}

static lnt_status make_tables(lnt_session *s, lnt_error *err)
{
    LNT_TRY(make_values(s, err));
    LNT_TRY(lnt_binding_make(s, err));
    LNT_TRY(lnt_states_make(s, err));
    LNT_TRY(lnt_request_make(s, err));
    if (LNT_HAS_TEXT)
        LNT_TRY(lnt_session_text_make(s, err));
    LNT_TRY(lnt_frame_make(s, &s->root, 0, err));
    return lnt_loops_make(s, err);
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
    if (s->execution.pool || threads == 1)
        return LNT_OK;
    s->execution.own_pool = true;
    return lnt_pool_make(&s->memory.allocator, threads, spin, &s->execution.pool, err);
}

static lnt_status take_options(lnt_session *s, const lnt_session_options *o, lnt_error *err)
{
    lnt_session_options options;
    LNT_TRY(lnt_take_struct(o, &options, sizeof options, "lnt_session_options", err));
    LNT_REQUIRE(!lnt_cpu_unknown_level(), err, LNT_E_ARGUMENT,
                "LINNET_LEVEL: this build has no level %s; linnet doctor lists them",
                lnt_cpu_unknown_level());
    s->level = lnt_cpu_level();
    if (options.level) {
        lnt_level level;
        LNT_REQUIRE(lnt_level_from_text(options.level, &level), err, LNT_E_ARGUMENT,
                    "this build has no level %s; linnet doctor lists them", options.level);
        LNT_REQUIRE(lnt_cpu_has(level), err, LNT_E_ARGUMENT, "this CPU cannot run level %s", options.level);
        s->level = level;
    }
    s->kernels = lnt_cpu_in_order() ? lnt_kernels_in_order(s->level) : lnt_kernels_of(s->level);
    LNT_REQUIRE(options.execution_mode == LNT_SEQUENTIAL || options.execution_mode == LNT_PARALLEL, err,
                LNT_E_ARGUMENT, "there is no execution mode %d", (int)options.execution_mode);
    LNT_REQUIRE((uintptr_t)options.arena % LNT_ALIGN == 0, err, LNT_E_ARGUMENT,
                "the arena must be aligned to %d bytes", LNT_ALIGN);
    s->root.arena.data = options.arena;
    s->root.arena.capacity = options.arena ? options.arena_bytes : 0;
    s->root.arena.is_callers = options.arena != NULL;
    s->memory.limit = options.memory_limit;
    s->memory.budget.limit =
        options.memory_limit && options.memory_limit < SIZE_MAX ? (size_t)options.memory_limit : SIZE_MAX;
    s->execution.seed = options.seed;
    s->trace.on = options.enable_profiling;
    s->execution.mode = options.execution_mode;
    s->memory.separate = options.disable_mem_pattern;
    s->log_severity = options.log_severity_level;
    s->execution.pool = options.pool;
    return start_pool(s, &options, err);
}

static lnt_status fill_session(lnt_session *s, const lnt_session_options *options, lnt_error *err)
{
    LNT_TRY(take_options(s, options, err));
    LNT_TRY(make_tables(s, err));
    s->execution.kernel = (lnt_kernel){.slot = s->slot,
                                       .threads = lnt_pool_threads(s->execution.pool),
                                       .kernels = s->kernels,
                                       .stop = &s->execution.stop_flag,
                                       .parallel = lnt_pool_parallel,
                                       .poll = lnt_pool_poll,
                                       .runtime = s};
    return LNT_OK;
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
    s->memory.machine = (lnt_allocator){machine_allocate, machine_release, s};
    lnt_budget_init(&s->memory.budget, &s->memory.machine, UINT64_MAX, "memory_limit");
    s->memory.allocator = s->memory.budget.allocator;
    lnt_bump_init(&s->memory.tables, &s->memory.allocator);
    lnt_bump_init(&s->binding.params, &s->memory.allocator);
    lnt_bump_init(&s->binding.known, &s->memory.allocator);
    const lnt_status status = fill_session(s, options, err);
    *session = s;
    if (status != LNT_OK)
        lnt_session_destroy(session);
    return status;
}

/* Frees all that can be made again. */
static void free_working_memory(lnt_session *s)
{
    lnt_free_arena(s, &s->root);
    lnt_loops_trim(s);
    lnt_request_trim(s);
    lnt_binding_trim(s);
    if (LNT_HAS_TEXT)
        lnt_session_text_trim(s);
    for (uint32_t i = 0; s->input && i < s->model->n_in; i++) {
        lnt_buffer_free(s, &s->input[i].staging);
        lnt_buffer_free(s, &s->input[i].seen);
    }
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
    lnt_request_free(s);
    lnt_states_free(s);
    if (LNT_HAS_TEXT)
        lnt_session_text_free(s);
    lnt_trace_free(s);
    if (s->execution.own_pool)
        lnt_pool_destroy(&s->execution.pool);
    lnt_bump_free(&s->memory.tables);
    lnt_free(&s->model->allocator, s);
}

lnt_status lnt_session_trim(lnt_session *s, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    free_working_memory(s);
    return lnt_leave(s, LNT_OK);
}

/* ---- inputs and outputs ---- */

/* Type and extents as a message shows them, "float 1x3xN"; open extents by their names. */
typedef struct shape_text {
    char text[128];
} shape_text;

static shape_text shape_of(lnt_dtype dtype, uint32_t rank, const int64_t *dims, const char *const *names)
{
    shape_text s;
    size_t used =
        (size_t)snprintf(s.text, sizeof s.text, "%s%s", lnt_dtype_text(dtype), rank ? "" : " scalar");
    for (uint32_t d = 0; d < rank && used < sizeof s.text; d++)
        used +=
            (size_t)(dims[d] < 0 && names && names[d]
                         ? snprintf(s.text + used, sizeof s.text - used, "%c%.24s", d ? 'x' : ' ', names[d])
                         : snprintf(s.text + used, sizeof s.text - used, "%c%lld", d ? 'x' : ' ',
                                    (long long)dims[d]));
    return s;
}

static bool fits_input(const lnt_operand *v, const lnt_tensor *t)
{
    bool fits = t->rank <= LNT_MAX_RANK && (v->rank == LNT_RANK_UNKNOWN || t->rank == v->rank);
    for (unsigned d = 0; fits && d < t->rank; d++)
        fits = t->dims[d] >= 0 && (v->rank == LNT_RANK_UNKNOWN || v->dims[d] < 0 || v->dims[d] == t->dims[d]);
    return fits;
}

/* Expected and given beside each other. */
static lnt_status does_not_fit(const lnt_session *s, uint32_t i, const lnt_tensor *t, lnt_error *err)
{
    lnt_value_info in;
    LNT_TRY(lnt_model_input(s->model, i, &in));
    if (t->rank > LNT_MAX_RANK)
        return lnt_fail(err, LNT_E_SHAPE, "input %s: rank %u, more than %d", in.name, t->rank, LNT_MAX_RANK);
    return lnt_fail(err, LNT_E_SHAPE, "input %s takes %s, not %s", in.name,
                    in.rank > LNT_MAX_RANK ? lnt_dtype_text(in.dtype)
                                           : shape_of(in.dtype, in.rank, in.dims, in.dim_names).text,
                    shape_of(in.dtype, t->rank, t->dims, NULL).text);
}

lnt_status lnt_check_input(const lnt_session *s, uint32_t i, const lnt_tensor *t, size_t *bytes,
                           lnt_error *err)
{
    const lnt_operand *v = &s->model->value[s->model->in[i]];
    const char *name = lnt_value_name(s->model, s->model->in[i]);
    LNT_REQUIRE(t->dtype == v->dtype, err, LNT_E_TYPE, "input %s takes %s, not %s", name,
                lnt_dtype_text((lnt_dtype)v->dtype), lnt_dtype_text(t->dtype));
    if (!fits_input(v, t))
        return does_not_fit(s, i, t, err);
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
        return lnt_set_state(s, (uint32_t)(state - s->states.slot), t, err);
    size_t bytes;
    lnt_tensor numbers;
    const bool was_given = s->input[i].given;
    if (lnt_is_text(s->model, s->model->in[i])) {
        LNT_TRY(lnt_take_words(s, i, t, &numbers, err));
        t = &numbers;
    }
    LNT_TRY(lnt_check_input(s, i, t, &bytes, err));
    lnt_input_slot *in = &s->input[i];
    const bool staged = (uintptr_t)t->data % lnt_dtype_size(t->dtype) != 0; /* in memory made at bind */
    if (!was_given || !lnt_same_shape(&in->tensor, t) || (staged && in->staging.capacity < bytes))
        s->binding.stale = true;
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
    LNT_REQUIRE(!data || !lnt_is_text(s->model, s->model->out[i]), err, LNT_E_ARGUMENT,
                "output %u is text, which only lnt_get_output gives", i);
    const lnt_dtype dtype = (lnt_dtype)s->model->value[s->model->out[i]].dtype;
    const size_t align = lnt_dtype_size(dtype == LNT_UNDEFINED ? LNT_DOUBLE : dtype); /* the run will tell */
    LNT_REQUIRE((uintptr_t)data % align == 0, err, LNT_E_ARGUMENT,
                "output memory must be aligned to its elements of %zu bytes", align);
    size_t needed;
    const bool fits =
        s->binding.exists && lnt_operand_bytes(&s->value[s->model->out[i]], &needed) && bytes >= needed;
    if (!out->data != !data || (data && bytes < out->bytes && !fits))
        s->binding.stale = true;
    out->data = data;
    out->bytes = data ? bytes : 0;
    s->binding.outputs_apart = false;
    return LNT_OK;
}

lnt_status lnt_set_output(lnt_session *s, uint32_t i, void *data, size_t bytes, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, set_output(s, i, data, bytes, err));
}

void lnt_fill_tensor(lnt_tensor *t, const lnt_operand *v, const void *data)
{
    *t = (lnt_tensor){.dtype = (lnt_dtype)v->dtype, .rank = v->rank, .data = (void *)(uintptr_t)data};
    memcpy(t->dims, v->dims, sizeof t->dims);
    t->bytes = lnt_known_bytes(v);
}

const void *lnt_value_memory(lnt_session *s, const lnt_operand *v)
{
    const char *slot = s->slot[lnt_storage_root(s, v->storage)];
    return slot ? slot + v->offset : NULL;
}

static lnt_status get_output(lnt_session *s, uint32_t i, lnt_tensor *t, lnt_error *err)
{
    LNT_REQUIRE(t && i < s->model->n_out, err, LNT_E_ARGUMENT, "there is no output %u", i);
    LNT_REQUIRE(s->binding.exists && !s->binding.stale, err, LNT_E_ARGUMENT,
                "bind or run the session before reading outputs");
    const lnt_state_slot *state = lnt_state_of_output(s, i);
    if (state)
        return lnt_get_state(s, (uint32_t)(state - s->states.slot), t, err);
    const lnt_operand *v = &s->value[s->model->out[i]];
    LNT_REQUIRE(!s->request.partial || s->request.selected[i], err, LNT_E_ARGUMENT,
                "output %u was not selected to be computed", i);
    LNT_REQUIRE(lnt_operand_count(v) >= 0, err, LNT_E_ARGUMENT,
                "the shape of output %u is known after a run: it depends on data", i);
    const lnt_output_slot *out = &s->output[i];
    LNT_REQUIRE(!out->data || lnt_known_bytes(v) <= out->bytes, err, LNT_E_LIMIT,
                "output %u needs %zu bytes, %zu are given", i, lnt_known_bytes(v), out->bytes);
    lnt_fill_tensor(t, v, out->data ? out->data : lnt_value_memory(s, v));
    return lnt_is_text(s->model, s->model->out[i]) ? lnt_give_words(s, i, t, err) : LNT_OK;
}

lnt_status lnt_get_output(lnt_session *s, uint32_t i, lnt_tensor *t, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, get_output(s, i, t, err));
}

/* ---- bounds ---- */

static lnt_status set_bound(lnt_session *s, const char *name, int64_t bound, lnt_error *err)
{
    LNT_REQUIRE(name, err, LNT_E_ARGUMENT, "a name must be given");
    const lnt_file *f = &s->model->file;
    bool found = false;
    for (uint32_t i = 0; i < f->n_symbols; i++)
        if (strcmp(f->strings + f->symbols[i].name, name) == 0) {
            s->binding.bound[i] = bound;
            found = s->binding.stale = true;
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

/* ---- control from outside, and information ---- */

void lnt_cancel(lnt_session *s)
{
    if (s)
        atomic_store(&s->execution.stop_flag, LNT_E_CANCELLED);
}

void lnt_set_deadline(lnt_session *s, uint64_t microseconds)
{
    if (s)
        s->execution.deadline_us = microseconds;
}

void lnt_set_seed(lnt_session *s, uint64_t seed)
{
    if (s)
        s->execution.seed = seed;
}

static lnt_status get_info(const lnt_session *s, lnt_session_info *info, lnt_error *err)
{
    LNT_REQUIRE(info, err, LNT_E_ARGUMENT, "info must be given");
    const size_t wanted = info->struct_bytes;
    const size_t held = atomic_load_explicit(&s->memory.budget.used, memory_order_relaxed);
    LNT_TRY(lnt_check_struct_bytes(wanted, "lnt_session_info", err));
    lnt_session_info full = {.struct_bytes = wanted,
                             .arena_bytes = s->root.arena.bytes,
                             .constant_bytes = s->model->file.tensors_bytes,
                             .n_steps = s->root.n_steps,
                             .n_evaluated = s->binding.n_evaluated,
                             .threads = s->execution.kernel.threads,
                             .level = lnt_level_text(s->level),
                             .unbounded = s->binding.unbounded,
                             .alive_bytes = s->root.layout.alive_bytes,
                             .held_bytes = held};
    memcpy(info, &full, wanted < sizeof full ? wanted : sizeof full);
    return LNT_OK;
}

lnt_status lnt_session_get_info(const lnt_session *s, lnt_session_info *info, lnt_error *err)
{
    LNT_TRY(lnt_enter(s, err));
    return lnt_leave(s, get_info(s, info, err));
}
