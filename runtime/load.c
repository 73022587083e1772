/* load.c — a checked file becomes a model: operators looked up, pointers resolved, nothing copied but
 * constants that are stored in fewer bytes than kernels read. */
#include "runtime/internal.h"

#include "base/lnt_assert.h"
#include "formats/stored.h"
#include "ops/product.h"
#include "ops/elementwise/program.h"

#include <stdio.h>
#include <string.h>

const char *lnt_version(void)
{
    return LNT_VERSION;
}

static const char *text_at(const lnt_model *m, uint32_t offset)
{
    LNT_ASSERT(offset < m->file.strings_bytes);
    return m->file.strings + offset;
}

static void *model_array(lnt_model *m, size_t count, size_t size, lnt_error *err)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        lnt_fail(err, LNT_E_FILE, "%zu records overflow the address space", count);
        return NULL;
    }
    return lnt_bump_alloc(&m->memory, bytes, err);
}

static lnt_status load_constant(lnt_model *m, const lnt_rec_value *r, lnt_operand *v, lnt_error *err)
{
    LNT_ASSERT(r->constant < m->file.n_constants);
    const lnt_file *f = &m->file;
    const lnt_rec_constant *c = &f->constants[r->constant];
    size_t bytes;
    v->constant = true;
    v->data = f->tensors + c->offset;
    if (r->stored == LNT_STORED_READY)
        return LNT_OK;
    (void)lnt_stored_bytes(LNT_STORED_READY, v, &bytes);
    void *ready = lnt_bump_alloc(&m->memory, bytes, err);
    void *room = ready ? lnt_alloc(&m->allocator, lnt_stored_room(r->stored, v), err) : NULL;
    if (!room)
        return LNT_E_MEMORY;
    lnt_stored_restore(r->stored, v, v->data, room, ready);
    lnt_free(&m->allocator, room);
    v->data = ready;
    return LNT_OK;
}

static lnt_status load_values(lnt_model *m, lnt_error *err)
{
    const lnt_file *f = &m->file;
    m->value = model_array(m, f->n_values, sizeof *m->value, err);
    m->symbol_of = model_array(m, f->n_values, sizeof *m->symbol_of, err);
    if (!m->value || !m->symbol_of)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < f->n_values; i++) {
        const lnt_rec_value *r = &f->values[i];
        lnt_operand *v = &m->value[i];
        *v = lnt_file_value(f, i);
        v->storage = i;
        m->symbol_of[i] = LNT_NONE;
        if (r->constant != LNT_FILE_NONE)
            LNT_TRY(load_constant(m, r, v, err));
    }
    for (uint32_t i = 0; i < f->n_symbols; i++)
        if (f->symbols[i].kind == LNT_SYMBOL_DATA_VALUE)
            m->symbol_of[f->symbols[i].value] = i;
    return LNT_OK;
}

/* Numbers of an attribute; for strings, tensors and graphs r->data is no place. */
static const void *numbers_at(const lnt_model *m, const lnt_rec_attr *r)
{
    return m->file.attr_data + r->data;
}

static lnt_status load_strings(lnt_model *m, const lnt_rec_attr *r, lnt_attr *a, lnt_error *err)
{
    const uint32_t *offset = numbers_at(m, r);
    const char **strings = model_array(m, r->count, sizeof *strings, err);
    if (!strings)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < r->count; i++)
        strings[i] = text_at(m, offset[i]);
    a->strings = strings;
    return LNT_OK;
}

static lnt_status load_attr(lnt_model *m, const lnt_rec_attr *r, lnt_attr *a, lnt_error *err)
{
    *a = (lnt_attr){.name = text_at(m, r->name), .type = (lnt_attr_type)r->type, .count = r->count};
    switch (a->type) {
    case LNT_ATTR_INT:
    case LNT_ATTR_INTS: a->i = numbers_at(m, r); return LNT_OK;
    case LNT_ATTR_FLOAT:
    case LNT_ATTR_FLOATS: a->f = numbers_at(m, r); return LNT_OK;
    case LNT_ATTR_STRING: a->s = text_at(m, (uint32_t)r->data); return LNT_OK;
    case LNT_ATTR_STRINGS: return load_strings(m, r, a, err);
    case LNT_ATTR_TENSOR: a->tensor = &m->value[r->data]; return LNT_OK;
    case LNT_ATTR_GRAPH: {
        int64_t *number = model_array(m, 1, sizeof *number, err);
        if (!number)
            return LNT_E_MEMORY;
        *number = (int64_t)r->data;
        a->i = number;
        return LNT_OK;
    }
    }
    return lnt_fail(err, LNT_E_FILE, "attribute %s has the unknown type %u", a->name, r->type);
}

static lnt_status load_program(lnt_model *m, const lnt_rec_node *r, lnt_node *n, lnt_error *err)
{
    LNT_ASSERT(r->program == LNT_FILE_NONE || r->program < m->file.n_programs);
    if (r->program == LNT_FILE_NONE)
        return LNT_OK;
    const lnt_rec_program *p = &m->file.programs[r->program];
    lnt_program *program = model_array(m, 1, sizeof *program, err);
    if (!program)
        return LNT_E_MEMORY;
    *program = (lnt_program){.instr = (const lnt_instr *)(const void *)m->file.instrs + p->first_instr,
                             .n_instr = p->n_instr,
                             .n_in = p->n_in,
                             .n_out = p->n_out,
                             .n_regs = p->n_regs,
                             .epilogue = p->epilogue != 0};
    memcpy(program->out, p->out, sizeof program->out);
    const char *fault = lnt_program_check(program);
    LNT_REQUIRE(!fault, err, LNT_E_FILE, "node %s: its elementwise program is damaged: %s", n->name, fault);
    n->program = program;
    return LNT_OK;
}

/* What the host registered for a Custom node. */
static lnt_status find_custom(const lnt_model *m, lnt_node *n, lnt_error *err)
{
    const char *domain = lnt_attr_s(n, "custom_domain", ""), *name = lnt_attr_s(n, "custom_name", "");
    for (size_t i = 0; i < m->n_custom; i++)
        if (strcmp(m->custom[i].domain, domain) == 0 && strcmp(m->custom[i].name, name) == 0)
            n->custom = &m->custom[i];
    LNT_REQUIRE(
        n->custom, err, LNT_E_UNSUPPORTED,
        "node %s: the model needs the custom operator %s.%s; register it with lnt_model_options.custom",
        n->name, domain, name);
    return LNT_OK;
}

/* An elementwise node is a program; an epilogue belongs to a product. */
static bool may_carry(const lnt_op *op, const lnt_program *p)
{
    return p->epilogue ? (op->flags & LNT_OP_EPILOGUE) != 0 : op->id == LNT_ID_Elementwise;
}

static lnt_status check_counts(const lnt_node *n, lnt_error *err)
{
    const lnt_op *op = n->op;
    const unsigned in = n->n_in - n->n_program_in;
    LNT_REQUIRE(in >= op->in_min && (op->in_max == 255 || in <= op->in_max), err, LNT_E_FILE,
                "node %s: %s with %u inputs", n->name, lnt_op_name(op), in);
    LNT_REQUIRE(n->n_out >= op->out_min && (op->out_max == 255 || n->n_out <= op->out_max), err, LNT_E_FILE,
                "node %s: %s with %u outputs", n->name, lnt_op_name(op), n->n_out);
    LNT_REQUIRE(!n->program || may_carry(op, n->program), err, LNT_E_FILE, "node %s: %s cannot carry %s",
                n->name, lnt_op_name(op), n->program->epilogue ? "an epilogue" : "an elementwise program");
    for (unsigned i = 0; i < in; i++)
        LNT_REQUIRE(n->in[i] != LNT_NONE || lnt_op_may_skip(op, i), err, LNT_E_FILE,
                    "node %s: %s lacks input %u", n->name, lnt_op_name(op), i);
    for (unsigned i = 0; i < op->out_min; i++)
        LNT_REQUIRE(n->out[i] != LNT_NONE, err, LNT_E_FILE, "node %s: %s lacks output %u", n->name,
                    lnt_op_name(op), i);
    return LNT_OK;
}

static lnt_status load_node(lnt_model *m, uint32_t i, lnt_error *err)
{
    LNT_ASSERT(i < m->n_nodes);
    const lnt_rec_node *r = &m->file.nodes[i];
    lnt_node *n = &m->node[i];
    *n = (lnt_node){.op = lnt_op_by_id(r->op),
                    .name = text_at(m, r->name),
                    .in = m->file.operands + r->first_operand,
                    .out = m->file.operands + r->first_operand + r->n_in,
                    .n_in = r->n_in,
                    .n_out = r->n_out,
                    .n_program_in = r->n_program_in,
                    .n_attr = r->n_attrs,
                    .index = i,
                    .evaluate_early = r->flags & LNT_NODE_EVALUATE_EARLY};
    LNT_REQUIRE(
        n->op, err, LNT_E_UNSUPPORTED,
        "node %s: operator number %u is not in this build; convert the model for this version of Linnet",
        n->name, r->op);
    LNT_REQUIRE(n->op->version == r->op_version, err, LNT_E_UNSUPPORTED,
                "node %s: %s in version %u, this build has version %u; convert the model anew", n->name,
                lnt_op_name(n->op), r->op_version, n->op->version);
    LNT_TRY(load_program(m, r, n, err));
    lnt_attr *attr = model_array(m, r->n_attrs, sizeof *attr, err);
    if (!attr)
        return LNT_E_MEMORY;
    for (uint32_t a = 0; a < r->n_attrs; a++)
        LNT_TRY(load_attr(m, &m->file.attrs[r->first_attr + a], &attr[a], err));
    n->attr = attr;
    if (n->op->id == LNT_ID_Custom)
        LNT_TRY(find_custom(m, n, err));
    return check_counts(n, err);
}

/* A packed constant is read by who wants this very packing; Gather, which can read rows out of several, looks
 * for itself. */
static lnt_status check_packed(const lnt_model *m, const lnt_node *n, lnt_error *err)
{
    for (unsigned i = 0; i < n->n_in; i++) {
        const lnt_operand *o = n->in[i] == LNT_NONE ? NULL : &m->value[n->in[i]];
        if (!o || !o->packed || n->op->id == LNT_ID_Gather || n->op->id == LNT_ID_DynamicGather)
            continue;
        lnt_packed wanted;
        memset(&wanted, 0, sizeof wanted);
        LNT_REQUIRE(
            lnt_pack_wanted(n, i, o, &wanted) && lnt_packed_alike(&wanted, o->packed), err, LNT_E_FILE,
            "node %s: %s cannot read its input %u, packed for another operator or by another version: "
            "convert the model again",
            n->name, lnt_op_name(n->op), i);
    }
    return LNT_OK;
}

/* Subgraphs that a control-flow node must have, with the number of inputs and outputs it will be given. */
static lnt_status check_subgraph(const lnt_model *m, const lnt_node *n, const char *name, uint32_t n_in,
                                 uint32_t n_out, lnt_error *err)
{
    const lnt_attr *a = lnt_attr_find(n, name);
    LNT_REQUIRE(a && a->type == LNT_ATTR_GRAPH, err, LNT_E_FILE, "node %s: %s lacks its %s", n->name,
                lnt_op_name(n->op), name);
    const lnt_rec_subgraph *sub = &m->file.subgraphs[*a->i];
    LNT_REQUIRE(sub->n_in == n_in && sub->n_out == n_out, err, LNT_E_FILE,
                "node %s: its %s has %u inputs and %u outputs, which do not fit", n->name, name, sub->n_in,
                sub->n_out);
    return LNT_OK;
}

static lnt_status check_control(const lnt_model *m, const lnt_node *n, lnt_error *err)
{
    switch (n->op->id) {
    case LNT_ID_If:
        LNT_TRY(check_subgraph(m, n, "then_branch", 0, n->n_out, err));
        return check_subgraph(m, n, "else_branch", 0, n->n_out, err);
    case LNT_ID_Loop:
        LNT_REQUIRE(n->n_out + 2u >= n->n_in, err, LNT_E_FILE,
                    "node %s: Loop carries %u values and has %u outputs", n->name, n->n_in - 2u, n->n_out);
        return check_subgraph(m, n, "body", n->n_in, n->n_out + 1u, err);
    case LNT_ID_Scan: {
        const int64_t scans = lnt_attr_i(n, "num_scan_inputs", 0);
        LNT_REQUIRE(scans >= 1 && scans <= n->n_in && n->n_in - scans <= n->n_out, err, LNT_E_FILE,
                    "node %s: Scan over %lld of %u inputs", n->name, (long long)scans, n->n_in);
        return check_subgraph(m, n, "body", n->n_in, n->n_out, err);
    }
    default:
        for (unsigned a = 0; a < n->n_attr; a++)
            LNT_REQUIRE(n->attr[a].type != LNT_ATTR_GRAPH, err, LNT_E_FILE, "node %s: %s has a subgraph",
                        n->name, lnt_op_name(n->op));
        return LNT_OK;
    }
}

static void count_reader(lnt_model *m, uint32_t value)
{
    if (value != LNT_NONE && m->readers[value] < 2)
        m->readers[value]++;
}

static lnt_status count_readers(lnt_model *m, lnt_error *err)
{
    m->readers = model_array(m, m->n_values, sizeof *m->readers, err);
    if (!m->readers)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < m->n_nodes; i++)
        for (unsigned n = 0; n < m->node[i].n_in; n++)
            count_reader(m, m->node[i].in[n]);
    for (uint32_t i = 0; i < m->file.n_subgraphs; i++)
        for (uint32_t o = 0; o < m->sub[i].n_out; o++)
            count_reader(m, m->file.operands[m->sub[i].first_operand + m->sub[i].n_in + o]);
    return LNT_OK;
}

/* The user can feed and take tensors of types that have a size only. */
static lnt_status check_ends(const lnt_model *m, lnt_error *err)
{
    for (uint32_t i = 0; i < m->n_in + m->n_out; i++) {
        const lnt_operand *v = &m->value[m->in[i]];
        const bool open = i >= m->n_in && v->dtype == LNT_UNDEFINED; /* a custom operator will tell */
        LNT_REQUIRE(LNT_HAS_TEXT || !(m->file.values[m->in[i]].flags & LNT_VALUE_TEXT), err,
                    LNT_E_UNSUPPORTED, "%s is text, which this library is trimmed of",
                    lnt_value_name(m, m->in[i]));
        LNT_REQUIRE(open || lnt_dtype_size((lnt_dtype)v->dtype), err, LNT_E_UNSUPPORTED, "%s has type %s",
                    lnt_value_name(m, m->in[i]), lnt_dtype_text((lnt_dtype)v->dtype));
    }
    return LNT_OK;
}

/* INPUT:AXIS for the inputs' extents without a name. */
static lnt_status name_dims(lnt_model *m, lnt_error *err)
{
    m->dim_name = model_array(m, (size_t)m->n_in * LNT_MAX_RANK, sizeof *m->dim_name, err);
    if (!m->dim_name)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < m->n_in; i++) {
        const lnt_operand *v = &m->value[m->in[i]];
        for (unsigned d = 0; v->rank <= LNT_MAX_RANK && d < v->rank; d++) {
            char text[300];
            if (v->dims[d] >= 0)
                continue;
            if (lnt_is_symbol(v->dims[d])) {
                m->dim_name[i * LNT_MAX_RANK + d] =
                    text_at(m, m->file.symbols[lnt_symbol_number(v->dims[d])].name);
                continue;
            }
            const int length = snprintf(text, sizeof text, "%.250s:%u", lnt_value_name(m, m->in[i]), d);
            m->dim_name[i * LNT_MAX_RANK + d] = lnt_bump_string(&m->memory, text, (size_t)length, err);
            if (!m->dim_name[i * LNT_MAX_RANK + d])
                return LNT_E_MEMORY;
        }
    }
    return LNT_OK;
}

static lnt_status load_model(lnt_model *m, uint32_t flags, lnt_error *err)
{
    LNT_TRY(lnt_file_check(m->blob.bytes, m->blob.size, flags & LNT_LOAD_FULL, &m->file, err));
    const lnt_file *f = &m->file;
    m->n_values = f->n_values;
    m->n_nodes = f->n_nodes;
    m->sub = f->subgraphs;
    m->in = f->operands + m->sub[0].first_operand;
    m->out = m->in + m->sub[0].n_in;
    m->n_in = m->sub[0].n_in;
    m->n_out = m->sub[0].n_out;
    LNT_TRY(load_values(m, err));
    m->node = model_array(m, f->n_nodes, sizeof *m->node, err);
    if (!m->node)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < f->n_nodes; i++)
        LNT_TRY(load_node(m, i, err));
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        LNT_TRY(check_packed(m, &m->node[i], err));
        LNT_TRY(check_control(m, &m->node[i], err));
    }
    LNT_TRY(check_ends(m, err));
    if (LNT_HAS_TEXT)
        LNT_TRY(lnt_load_words(m, err));
    LNT_TRY(count_readers(m, err));
    return name_dims(m, err);
}

/* ---- the public way in ---- */

static lnt_status take_options(const lnt_model_options *given, lnt_model_options *o, lnt_error *err)
{
    LNT_TRY(lnt_take_struct(given, o, sizeof *o, "lnt_model_options", err));
    if (o->host)
        LNT_TRY(lnt_check_struct_bytes(o->host->struct_bytes, "lnt_host", err));
    LNT_REQUIRE(!(o->flags & ~(uint32_t)(LNT_LOAD_FULL | LNT_LOAD_COPY)), err, LNT_E_ARGUMENT,
                "this version does not know the flags 0x%x", o->flags);
    LNT_REQUIRE(!o->host || !o->host->allocate == !o->host->release, err, LNT_E_ARGUMENT,
                "a host brings both allocate and release, or neither");
    LNT_REQUIRE(o->custom || !o->n_custom, err, LNT_E_ARGUMENT, "n_custom operators, and custom is NULL");
    LNT_REQUIRE(o->n_custom <= UINT16_MAX, err, LNT_E_ARGUMENT, "%zu custom operators, at most %d",
                o->n_custom, UINT16_MAX);
    for (size_t i = 0; i < o->n_custom; i++)
        LNT_REQUIRE(o->custom[i].domain && o->custom[i].name && o->custom[i].shape && o->custom[i].run, err,
                    LNT_E_ARGUMENT, "a custom operator needs domain, name, shape and run");
    return LNT_OK;
}

static lnt_allocator allocator_of(const lnt_model_options *options)
{
    if (!options->host || !options->host->allocate)
        return lnt_malloc_allocator;
    return (lnt_allocator){options->host->allocate, options->host->release, options->host->user};
}

static lnt_status model_from_blob(lnt_blob blob, const lnt_allocator *a, const lnt_model_options *options,
                                  lnt_model **model, lnt_error *err)
{
    lnt_model *m = lnt_alloc_zero(a, 1, sizeof *m, err);
    if (!m) {
        lnt_blob_close(&blob);
        return LNT_E_MEMORY;
    }
    m->allocator = *a;
    m->blob = blob;
    if (m->blob.allocator == a) /* the caller's copy of the allocator does not outlive this call */
        m->blob.allocator = &m->allocator;
    if (options->host)
        memcpy(&m->host, options->host,
               options->host->struct_bytes < sizeof m->host ? options->host->struct_bytes : sizeof m->host);
    m->custom = options->custom;
    m->n_custom = options->n_custom;
    lnt_bump_init(&m->memory, &m->allocator);
    const lnt_status status = load_model(m, options->flags, err);
    *model = m;
    if (status != LNT_OK)
        lnt_model_destroy(model);
    return status;
}

lnt_status lnt_model_create(const char *path, const lnt_model_options *options, lnt_model **model,
                            lnt_error *err)
{
    lnt_error_clear(err);
    LNT_REQUIRE(path && model, err, LNT_E_ARGUMENT, "path and model must be given");
    *model = NULL;
    lnt_model_options known;
    LNT_TRY(take_options(options, &known, err));
    const lnt_allocator a = allocator_of(&known);
    lnt_blob blob;
    LNT_TRY(lnt_blob_open(path, known.flags & LNT_LOAD_COPY, &a, &blob, err));
    const lnt_status status = model_from_blob(blob, &a, &known, model, err);
    if (status != LNT_OK)
        lnt_error_prefix(err, "%s: ", path);
    return status;
}

static void *no_allocation(void *host, size_t bytes)
{
    (void)host;
    (void)bytes;
    return NULL;
}

static void no_release(void *host, void *block)
{
    (void)host;
    (void)block;
}

lnt_status lnt_model_create_from_memory(const void *bytes, size_t size, const lnt_model_options *options,
                                        lnt_model **model, lnt_error *err)
{
    /* The caller's memory as a blob that is never released. */
    static const lnt_allocator callers = {no_allocation, no_release, NULL};
    lnt_error_clear(err);
    LNT_REQUIRE(bytes && model, err, LNT_E_ARGUMENT, "bytes and model must be given");
    *model = NULL;
    LNT_REQUIRE(size <= PTRDIFF_MAX, err, LNT_E_ARGUMENT, "no memory holds %zu bytes", size);
    lnt_model_options known;
    LNT_TRY(take_options(options, &known, err));
    const lnt_allocator a = allocator_of(&known);
    if ((uintptr_t)bytes % LNT_FILE_ALIGN == 0 && !(known.flags & LNT_LOAD_COPY))
        return model_from_blob((lnt_blob){bytes, size, &callers}, &a, &known, model, err);
    void *copy = lnt_alloc(&a, size, err);
    if (!copy)
        return LNT_E_MEMORY;
    memcpy(copy, bytes, size);
    return model_from_blob((lnt_blob){copy, size, &a}, &a, &known, model, err);
}

void lnt_model_destroy(lnt_model **model)
{
    if (!model || !*model)
        return;
    lnt_model *m = *model;
    const lnt_allocator a = m->allocator;
    lnt_bump_free(&m->memory);
    lnt_blob_close(&m->blob);
    lnt_free(&a, m);
    *model = NULL;
}
