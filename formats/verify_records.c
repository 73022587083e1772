/* verify_records.c — the verifier's middle part: every number in every record, by itself. */
#include "formats/verify.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "formats/golden.h"
#include "formats/stored.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool string_valid(const lnt_file *f, uint64_t offset)
{
    return offset < f->strings_bytes; /* the section's last byte is NUL */
}

/* [first, first + count) within [0, limit)? */
static bool range_valid(uint64_t first, uint64_t count, uint64_t limit)
{
    return first <= limit && count <= limit - first;
}

static bool all_zero_u32(const uint32_t *fields, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (fields[i])
            return false;
    return true;
}

static lnt_status check_strings(const lnt_file *f, lnt_error *err)
{
    LNT_CHECK(f->strings[0] == '\0', err, "strings section: does not start with the empty string");
    LNT_CHECK(f->strings[f->strings_bytes - 1] == '\0', err, "strings section: the last string has no end");
    return LNT_OK;
}

/* What is wrong with the extents, from record `first` on, of a tensor of element_bytes, or NULL. */
static const char *extents_fault(const lnt_file *f, uint32_t first, unsigned rank, size_t element_bytes,
                                 uint32_t n_symbols)
{
    if (rank ? !range_valid(first, rank, f->n_extents) : first != 0)
        return "its extents lie outside of their section";
    const int64_t *dims = rank ? f->extents + first : NULL;
    for (unsigned i = 0; i < rank; i++) {
        const int64_t d = dims[i];
        if (lnt_is_symbol(d) && lnt_symbol_number(d) >= (int64_t)n_symbols)
            return "an extent names a symbol that is not there";
    }
    return !rank || lnt_extents_fit(dims, rank, element_bytes) ? NULL
                                                               : "its size overflows the address space";
}

static bool dtype_known(uint32_t dtype)
{
    switch (dtype) {
#define X(name, number, bits, text)                                                                          \
    case number: return true;
        LNT_DTYPE_LIST(X)
#undef X
    }
    return false;
}

static lnt_status check_value(const lnt_file *f, uint32_t i, lnt_error *err)
{
    const lnt_rec_value *v = &f->values[i];
    LNT_CHECK_RECORD(string_valid(f, v->name), err, "values", i, "its name lies outside of the strings");
    LNT_CHECK_RECORD(v->dtype == LNT_UNDEFINED || dtype_known(v->dtype), err, "values", i,
                     "element type %d is unknown", v->dtype);
    LNT_CHECK_RECORD(v->rank <= LNT_MAX_RANK || v->rank == LNT_RANK_UNKNOWN, err, "values", i,
                     "rank %d, at most %d allowed", v->rank, LNT_MAX_RANK);
    const char *fault = extents_fault(f, v->extents, v->rank <= LNT_MAX_RANK ? v->rank : 0,
                                      lnt_dtype_size((lnt_dtype)v->dtype), f->n_symbols);
    LNT_CHECK_RECORD(!fault, err, "values", i, "%s", fault);
    LNT_CHECK_RECORD(v->order == LNT_ORDER_PLAIN ||
                         (v->order == LNT_ORDER_CHANNELS_LAST && v->rank >= 3 && v->rank <= LNT_MAX_RANK),
                     err, "values", i, "storage order %d does not go with rank %d", v->order, v->rank);
    LNT_CHECK_RECORD(!(v->flags & LNT_VALUE_TEXT) || v->dtype == LNT_INT64, err, "values", i,
                     "numbers of words cannot be of type %s", lnt_dtype_text((lnt_dtype)v->dtype));
    LNT_CHECK_RECORD((v->flags & ~(LNT_VALUE_FEEDS_SHAPES | LNT_VALUE_TEXT)) == 0 &&
                         (v->stored == LNT_STORED_READY || v->constant != LNT_FILE_NONE),
                     err, "values", i, "a reserved field or flag is not 0");
    LNT_CHECK_RECORD(v->constant == LNT_FILE_NONE ||
                         (v->constant < f->n_constants && f->constants[v->constant].value == i),
                     err, "values", i, "constant %" PRIu32 " is not its own", v->constant);
    return LNT_OK;
}

/* Bytes that constant c of value v must have; its extents are known and sound. */
static lnt_status constant_bytes(const lnt_file *f, uint32_t i, uint64_t *bytes, lnt_error *err)
{
    const lnt_rec_constant *c = &f->constants[i];
    const lnt_rec_value *v = &f->values[c->value];
    size_t size = 0;
    LNT_CHECK_RECORD(c->packed == LNT_FILE_NONE || c->packed < f->n_packed, err, "constants", i,
                     "packed record %" PRIu32 " is not there", c->packed);
    const lnt_operand o = lnt_file_value(f, c->value);
    LNT_CHECK_RECORD(lnt_operand_count(&o) >= 0, err, "constants", i, "an extent is not known");
    if (o.packed) {
        const char *fault = lnt_packed_check(o.packed, (lnt_dtype)v->dtype, v->rank, o.dims);
        LNT_CHECK_RECORD(!fault, err, "packed", c->packed, "%s", fault);
        LNT_CHECK_RECORD(v->order == LNT_ORDER_PLAIN, err, "packed", c->packed,
                         "holds a constant that is not in plain order");
    }
    const char *fault = lnt_stored_bytes(v->stored, &o, &size);
    LNT_CHECK_RECORD(!fault, err, "constants", i, "%s", fault);
    *bytes = size;
    return LNT_OK;
}

/* The constants are in the tensors section, one behind the other. */
static lnt_status check_constants(const lnt_file *f, lnt_error *err)
{
    uint64_t end = 0, bytes = 0;
    for (uint32_t i = 0; i < f->n_constants; i++) {
        const lnt_rec_constant *c = &f->constants[i];
        LNT_CHECK_RECORD(c->value < f->n_values && f->values[c->value].constant == i, err, "constants", i,
                         "value %" PRIu32 " is not its own", c->value);
        const lnt_rec_value *v = &f->values[c->value];
        LNT_CHECK_RECORD(lnt_dtype_size((lnt_dtype)v->dtype) > 0, err, "constants", i,
                         "a constant cannot be of type %s", lnt_dtype_text((lnt_dtype)v->dtype));
        LNT_CHECK_RECORD(v->rank <= LNT_MAX_RANK, err, "constants", i, "its rank is not known");
        LNT_CHECK_RECORD(range_valid(c->offset, c->bytes, f->tensors_bytes), err, "constants", i,
                         "lies outside of the tensors");
        LNT_CHECK_RECORD(c->offset % lnt_constant_align(c->bytes) == 0, err, "constants", i,
                         "offset %" PRIu64 " is not a multiple of %u", c->offset,
                         lnt_constant_align(c->bytes));
        LNT_CHECK_RECORD(c->offset >= end, err, "constants", i, "overlaps the constant before it");
        LNT_TRY(constant_bytes(f, i, &bytes, err));
        LNT_CHECK_RECORD(c->bytes == bytes, err, "constants", i,
                         "has %" PRIu64 " bytes, its extents need %" PRIu64, c->bytes, bytes);
        end = c->offset + c->bytes;
    }
    return LNT_OK;
}

/* Each record by itself: constants may share one, and there may be some that none refers to. Taps and phases
 * are walked one by one, also where an extent of 0 leaves no data that would bound them. */
static lnt_status check_packed(const lnt_file *f, lnt_error *err)
{
    enum { MAX_TAPS = 1 << 16, MAX_PHASES = 1 << 16 };
    size_t bytes;
    for (uint32_t i = 0; i < f->n_packed; i++) {
        LNT_CHECK_RECORD(lnt_packed_width(&f->packed[i]) == LNT_PANEL, err, "packed", i,
                         "is for panels of %u columns, this library's have %u: convert the model again",
                         lnt_packed_width(&f->packed[i]), (unsigned)LNT_PANEL);
        LNT_CHECK_RECORD(lnt_packed_bytes(&f->packed[i], &bytes) && f->packed[i].taps <= MAX_TAPS &&
                             f->packed[i].phases <= MAX_PHASES,
                         err, "packed", i,
                         "has layout %u, unknown to this library or not for its extents: convert the "
                         "model again",
                         (unsigned)f->packed[i].layout);
    }
    return LNT_OK;
}

static lnt_status check_operands(const lnt_file *f, lnt_error *err)
{
    for (uint32_t i = 0; i < f->n_operands; i++)
        LNT_CHECK_RECORD(f->operands[i] < f->n_values || f->operands[i] == LNT_FILE_NONE, err, "operands", i,
                         "value %" PRIu32 " is not there", f->operands[i]);
    return LNT_OK;
}

static lnt_status check_node(const lnt_file *f, uint32_t i, lnt_error *err)
{
    const lnt_rec_node *n = &f->nodes[i];
    LNT_CHECK_RECORD(string_valid(f, n->name), err, "nodes", i, "its name lies outside of the strings");
    LNT_CHECK_RECORD(range_valid(n->first_operand, (uint64_t)n->n_in + n->n_out, f->n_operands), err, "nodes",
                     i, "its operands lie outside of their section");
    LNT_CHECK_RECORD(range_valid(n->first_attr, n->n_attrs, f->n_attrs), err, "nodes", i,
                     "its attributes lie outside of their section");
    LNT_CHECK_RECORD(n->n_program_in <= n->n_in, err, "nodes", i, "%d of %d inputs feed its program",
                     n->n_program_in, n->n_in);
    if (n->program == LNT_FILE_NONE)
        LNT_CHECK_RECORD(n->n_program_in == 0, err, "nodes", i, "has operands for a program and no program");
    else
        LNT_CHECK_RECORD(n->program < f->n_programs && f->programs[n->program].n_in == n->n_program_in, err,
                         "nodes", i, "program %" PRIu32 " is not there or takes other operands", n->program);
    LNT_CHECK_RECORD((n->flags & ~(uint32_t)LNT_NODE_EVALUATE_EARLY) == 0 && all_zero_u32(n->reserved, 2), err, "nodes",
                     i, "a reserved field or flag is not 0");
    return LNT_OK;
}

/* count elements of element_bytes in the attribute data, aligned to 8? */
static bool attr_data_valid(const lnt_file *f, uint64_t offset, uint64_t count, size_t element_bytes)
{
    return offset % 8 == 0 && range_valid(offset, count * element_bytes, f->attr_data_bytes);
}

static lnt_status check_string_list(const lnt_file *f, uint32_t i, lnt_error *err)
{
    const lnt_rec_attr *a = &f->attrs[i];
    const uint32_t *offset = (const uint32_t *)(f->attr_data + a->data);
    for (uint32_t k = 0; k < a->count; k++)
        LNT_CHECK_RECORD(string_valid(f, offset[k]), err, "attributes", i,
                         "string %u lies outside of the strings", k);
    return LNT_OK;
}

static lnt_status check_attr(const lnt_file *f, uint32_t i, lnt_error *err)
{
    const lnt_rec_attr *a = &f->attrs[i];
    const bool single = a->type != LNT_ATTR_STRING && a->type != LNT_ATTR_INTS &&
                        a->type != LNT_ATTR_FLOATS && a->type != LNT_ATTR_STRINGS;
    LNT_CHECK_RECORD(string_valid(f, a->name), err, "attributes", i, "its name lies outside of the strings");
    LNT_CHECK_RECORD(a->reserved == 0, err, "attributes", i, "a reserved field is not 0");
    LNT_CHECK_RECORD(!single || a->count == 1, err, "attributes", i, "%" PRIu32 " values where there is one",
                     a->count);
    bool valid = false;
    switch (a->type) {
    case LNT_ATTR_INT:
    case LNT_ATTR_INTS: valid = attr_data_valid(f, a->data, a->count, sizeof(int64_t)); break;
    case LNT_ATTR_FLOAT:
    case LNT_ATTR_FLOATS: valid = attr_data_valid(f, a->data, a->count, sizeof(float)); break;
    case LNT_ATTR_STRINGS: valid = attr_data_valid(f, a->data, a->count, sizeof(uint32_t)); break;
    case LNT_ATTR_STRING:
        valid = range_valid(a->data, (uint64_t)a->count + 1, f->strings_bytes) &&
                f->strings[a->data + a->count] == '\0';
        break;
    case LNT_ATTR_TENSOR: valid = a->data < f->n_values && f->values[a->data].constant != LNT_FILE_NONE; break;
    case LNT_ATTR_GRAPH: valid = a->data < f->n_subgraphs; break;
    }
    LNT_CHECK_RECORD(valid, err, "attributes", i, "type %" PRIu32 " is unknown or its data lies outside",
                     a->type);
    return LNT_OK;
}

static lnt_status check_attrs(const lnt_file *f, lnt_error *err)
{
    uint64_t listed = 0;
    for (uint32_t i = 0; i < f->n_attrs; i++) {
        LNT_TRY(check_attr(f, i, err));
        if (f->attrs[i].type != LNT_ATTR_STRINGS)
            continue;
        listed += f->attrs[i].count;
        LNT_CHECK_RECORD(listed <= f->attr_data_bytes / sizeof(uint32_t), err, "attributes", i,
                         "shares its list of strings");
        LNT_TRY(check_string_list(f, i, err));
    }
    return LNT_OK;
}

/* Instructions themselves are checked by the runtime, which knows them. */
static lnt_status check_instrs(const lnt_file *f, lnt_error *err)
{
    enum { BYTES = 16, RESERVED = 5, RESERVED_END = 8 };
    for (uint32_t i = 0; i < f->n_instrs; i++)
        for (unsigned k = RESERVED; k < RESERVED_END; k++)
            LNT_CHECK_RECORD(f->instrs[i * (size_t)BYTES + k] == 0, err, "instructions", i,
                             "a reserved field is not 0");
    return LNT_OK;
}

static lnt_status check_programs(const lnt_file *f, lnt_error *err)
{
    for (uint32_t i = 0; i < f->n_programs; i++) {
        const lnt_rec_program *p = &f->programs[i];
        LNT_CHECK_RECORD(range_valid(p->first_instr, p->n_instr, f->n_instrs), err, "programs", i,
                         "its instructions lie outside of their section");
        LNT_CHECK_RECORD(p->n_out >= 1 && p->n_out <= sizeof p->out, err, "programs", i,
                         "%d outputs, 1 to %zu allowed", p->n_out, sizeof p->out);
        for (unsigned k = 0; k < sizeof p->out; k++)
            LNT_CHECK_RECORD(k < p->n_out ? p->out[k] < p->n_regs : p->out[k] == 0, err, "programs", i,
                             "output %u is register %d of %d", k, p->out[k], p->n_regs);
        LNT_CHECK_RECORD(p->epilogue <= 1, err, "programs", i, "epilogue is %d, not 0 or 1", p->epilogue);
        for (unsigned k = 0; k < sizeof p->reserved; k++)
            LNT_CHECK_RECORD(p->reserved[k] == 0, err, "programs", i, "a reserved field is not 0");
    }
    return LNT_OK;
}

static lnt_status check_subgraph(const lnt_file *f, uint32_t i, lnt_error *err)
{
    const lnt_rec_subgraph *g = &f->subgraphs[i];
    LNT_CHECK_RECORD(string_valid(f, g->name), err, "subgraphs", i, "its name lies outside of the strings");
    LNT_CHECK_RECORD(range_valid(g->first_node, g->n_nodes, f->n_nodes), err, "subgraphs", i,
                     "its nodes lie outside of their section");
    LNT_CHECK_RECORD(range_valid(g->first_operand, (uint64_t)g->n_in + g->n_out, f->n_operands), err,
                     "subgraphs", i, "its inputs and outputs lie outside of the operands");
    LNT_CHECK_RECORD(all_zero_u32(g->reserved, 2), err, "subgraphs", i, "a reserved field is not 0");
    return LNT_OK;
}

/* Nodes and subgraphs do not share operands: together they have no more than there are. Nodes may share attributes,
 * but have no more than there are and a few for each of them. This keeps the work of every later stage linear in the
 * file's size. */
static lnt_status check_sharing(const lnt_file *f, lnt_error *err)
{
    const uint64_t most_attrs = f->n_attrs + (uint64_t)LNT_FILE_SHARED_ATTRS * f->n_nodes;
    uint64_t operands = 0, attrs = 0;
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        operands += (uint64_t)f->nodes[i].n_in + f->nodes[i].n_out;
        attrs += f->nodes[i].n_attrs;
    }
    for (uint32_t i = 0; i < f->n_subgraphs; i++)
        operands += (uint64_t)f->subgraphs[i].n_in + f->subgraphs[i].n_out;
    LNT_CHECK(operands <= f->n_operands, err, "operands section: nodes and subgraphs share operands");
    LNT_CHECK(attrs <= most_attrs, err, "attributes section: nodes share too many attributes");
    return LNT_OK;
}

/* A program reads all its operands. */
static lnt_status check_program_operands(const lnt_file *f, lnt_error *err)
{
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        const lnt_rec_node *n = &f->nodes[i];
        for (unsigned k = n->n_in - n->n_program_in; k < n->n_in; k++)
            LNT_CHECK_RECORD(f->operands[n->first_operand + k] != LNT_FILE_NONE, err, "nodes", i,
                             "an operand of its program is skipped");
    }
    return LNT_OK;
}

static bool is_packed(const lnt_file *f, uint32_t value)
{
    LNT_ASSERT(value < f->n_values);
    const uint32_t constant = f->values[value].constant;
    return constant != LNT_FILE_NONE && f->constants[constant].packed != LNT_FILE_NONE;
}

static lnt_status check_subgraph_operands(const lnt_file *f, lnt_error *err)
{
    for (uint32_t i = 0; i < f->n_subgraphs; i++) {
        const lnt_rec_subgraph *g = &f->subgraphs[i];
        for (uint32_t k = 0; k < g->n_in + g->n_out; k++) {
            const uint32_t value = f->operands[g->first_operand + k];
            LNT_CHECK_RECORD(value != LNT_FILE_NONE, err, "subgraphs", i, "an input or output is skipped");
            LNT_CHECK_RECORD(!is_packed(f, value), err, "subgraphs", i, "a packed constant is its output");
        }
    }
    return LNT_OK;
}

/* Value of the model's input, or after those output, number k. */
static const lnt_rec_value *model_operand(const lnt_file *f, uint32_t k)
{
    LNT_ASSERT(k < f->subgraphs[0].n_in + f->subgraphs[0].n_out);
    return &f->values[f->operands[f->subgraphs[0].first_operand + k]];
}

/* What the caller feeds and fetches is in ONNX order; what it feeds has a type. */
static lnt_status check_model_operands(const lnt_file *f, lnt_error *err)
{
    const lnt_rec_subgraph *g = &f->subgraphs[0];
    for (uint32_t k = 0; k < g->n_in + g->n_out; k++) {
        const lnt_rec_value *v = model_operand(f, k);
        LNT_CHECK_RECORD(v->order == LNT_ORDER_PLAIN, err, "subgraphs", 0u,
                         "input or output %.100s is not in plain order", f->strings + v->name);
        LNT_CHECK_RECORD(k >= g->n_in || v->dtype != LNT_UNDEFINED, err, "subgraphs", 0u,
                         "input %.100s has no element type", f->strings + v->name);
    }
    return LNT_OK;
}

static lnt_status check_symbols(const lnt_file *f, lnt_error *err)
{
    for (uint32_t i = 0; i < f->n_symbols; i++) {
        const lnt_rec_symbol *s = &f->symbols[i];
        LNT_CHECK_RECORD(string_valid(f, s->name), err, "symbols", i, "its name lies outside of the strings");
        LNT_CHECK_RECORD(s->kind <= LNT_SYMBOL_DATA_VALUE, err, "symbols", i, "kind %" PRIu32 " is unknown", s->kind);
        LNT_CHECK_RECORD(s->value < f->n_values, err, "symbols", i, "value %" PRIu32 " is not there",
                         s->value);
        const unsigned rank = f->values[s->value].rank;
        LNT_CHECK_RECORD(s->kind == LNT_SYMBOL_DATA_VALUE ? s->axis == 0 : s->axis < rank && rank <= LNT_MAX_RANK, err,
                         "symbols", i, "axis %" PRIu32 " of rank %u", s->axis, rank);
        LNT_CHECK_RECORD(s->bound >= -1 && s->reserved == 0, err, "symbols", i,
                         "bound %" PRId64 " is below -1 or a reserved field is not 0", s->bound);
    }
    return LNT_OK;
}

/* seen[0..n_in + n_out): inputs, then outputs, that a state before has taken. */
static lnt_status check_state(const lnt_file *f, uint32_t i, uint8_t *seen, lnt_error *err)
{
    const lnt_rec_state *s = &f->states[i];
    const lnt_rec_subgraph *g = &f->subgraphs[0];
    LNT_CHECK_RECORD(s->output < g->n_out && s->input < g->n_in, err, "states", i,
                     "output %" PRIu32 " or input %" PRIu32 " is not there", s->output, s->input);
    LNT_CHECK_RECORD(all_zero_u32(s->reserved, 2), err, "states", i, "a reserved field is not 0");
    LNT_CHECK_RECORD(!seen[s->input]++ && !seen[g->n_in + s->output]++, err, "states", i,
                     "its input or output belongs to another state");
    LNT_CHECK_RECORD(model_operand(f, s->input)->dtype == model_operand(f, g->n_in + s->output)->dtype, err,
                     "states", i, "input and output differ in type");
    return LNT_OK;
}

static lnt_status check_states(const lnt_file *f, lnt_error *err)
{
    const lnt_rec_subgraph *g = &f->subgraphs[0];
    lnt_status status = LNT_OK;
    if (f->n_states == 0)
        return LNT_OK;
    uint8_t *seen = lnt_alloc_zero(&lnt_malloc_allocator, (size_t)g->n_in + g->n_out, 1, err);
    if (!seen)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < f->n_states && status == LNT_OK; i++)
        status = check_state(f, i, seen, err);
    lnt_free(&lnt_malloc_allocator, seen);
    return status;
}

static lnt_status check_metadata(const lnt_file *f, lnt_error *err)
{
    for (uint32_t i = 0; i < f->n_metadata; i++)
        LNT_CHECK_RECORD(string_valid(f, f->metadata[i].key) && string_valid(f, f->metadata[i].text), err,
                         "metadata", i, "its key or text lies outside of the strings");
    return LNT_OK;
}

static lnt_status check_attachments(const lnt_file *f, lnt_error *err)
{
    for (uint32_t i = 0; i < f->n_attachments; i++) {
        const lnt_rec_attachment *a = &f->attachments[i];
        LNT_CHECK_RECORD(string_valid(f, a->name) && !a->reserved && a->offset % LNT_FILE_ALIGN == 0 &&
                             range_valid(a->offset, a->bytes, f->attached_bytes),
                         err, "attachments", i, "it lies outside, or is misaligned");
    }
    return LNT_OK;
}

static bool has_seeded_rule(uint32_t dtype)
{
    return dtype == LNT_FLOAT || dtype == LNT_DOUBLE || dtype == LNT_FLOAT16 || dtype == LNT_BFLOAT16;
}

/* What the record stores of a tensor of so many elements. */
static lnt_status check_golden_data(const lnt_file *f, uint32_t i, uint64_t elements, lnt_error *err)
{
    const lnt_rec_golden *g = &f->golden[i];
    uint64_t stored = elements;
    if (g->encoding == LNT_GOLDEN_SEEDED) {
        LNT_CHECK_RECORD(g->role == LNT_GOLDEN_INPUT && g->count == 0 && has_seeded_rule(g->dtype), err,
                         "golden vectors", i, "a seeded tensor is a floating-point input and stores nothing");
        return LNT_OK;
    }
    if (g->encoding == LNT_GOLDEN_SAMPLED) {
        LNT_CHECK_RECORD(g->role == LNT_GOLDEN_OUTPUT && g->stride > 0, err, "golden vectors", i,
                         "a sampled tensor is an output and has a stride");
        stored = elements / g->stride + (elements % g->stride != 0);
    }
    LNT_CHECK_RECORD(g->encoding <= LNT_GOLDEN_SAMPLED, err, "golden vectors", i, "encoding %d is unknown",
                     g->encoding);
    LNT_CHECK_RECORD(g->count == stored, err, "golden vectors", i,
                     "stores %" PRIu32 " elements where there are %" PRIu64, g->count, stored);
    LNT_CHECK_RECORD(attr_data_valid(f, g->data, g->count, lnt_dtype_size((lnt_dtype)g->dtype)), err,
                     "golden vectors", i, "its elements lie outside of the attribute data");
    return LNT_OK;
}

static lnt_status check_golden(const lnt_file *f, lnt_error *err)
{
    for (uint32_t i = 0; i < f->n_golden; i++) {
        const lnt_rec_golden *g = &f->golden[i];
        int64_t elements;
        LNT_CHECK_RECORD(i == 0 || g->test >= f->golden[i - 1].test, err, "golden vectors", i,
                         "cases are not in order");
        LNT_CHECK_RECORD(g->origin <= LNT_GOLDEN_OWN && g->role <= LNT_GOLDEN_OUTPUT, err, "golden vectors", i,
                         "origin %" PRIu32 " or role %d is unknown", g->origin, g->role);
        LNT_CHECK_RECORD(g->index < (g->role == LNT_GOLDEN_OUTPUT ? f->subgraphs[0].n_out : f->subgraphs[0].n_in), err,
                         "golden vectors", i, "input or output %" PRIu32 " is not there", g->index);
        LNT_CHECK_RECORD(lnt_dtype_size((lnt_dtype)g->dtype) > 0, err, "golden vectors", i,
                         "element type %d is unknown or has no fixed size", g->dtype);
        LNT_CHECK_RECORD(g->rank <= LNT_MAX_RANK, err, "golden vectors", i, "rank %d", g->rank);
        const char *fault = extents_fault(f, g->extents, g->rank, lnt_dtype_size((lnt_dtype)g->dtype), 0);
        LNT_CHECK_RECORD(!fault, err, "golden vectors", i, "%s", fault);
        LNT_CHECK_RECORD(lnt_count(lnt_golden_extents(f, g), g->rank, &elements), err, "golden vectors", i,
                         "an extent is not known");
        LNT_CHECK_RECORD(isfinite(g->tolerance) && g->tolerance >= 0, err, "golden vectors", i,
                         "tolerance is negative or not finite");
        LNT_TRY(check_golden_data(f, i, (uint64_t)elements, err));
    }
    return LNT_OK;
}

lnt_status lnt_verify_records(const lnt_file *f, lnt_error *err)
{
    LNT_TRY(check_strings(f, err));
    for (uint32_t i = 0; i < f->n_values; i++)
        LNT_TRY(check_value(f, i, err));
    LNT_TRY(check_packed(f, err));
    LNT_TRY(check_constants(f, err));
    LNT_TRY(check_operands(f, err));
    LNT_TRY(check_instrs(f, err));
    LNT_TRY(check_programs(f, err));
    for (uint32_t i = 0; i < f->n_nodes; i++)
        LNT_TRY(check_node(f, i, err));
    for (uint32_t i = 0; i < f->n_subgraphs; i++)
        LNT_TRY(check_subgraph(f, i, err));
    LNT_TRY(check_sharing(f, err));
    LNT_TRY(check_program_operands(f, err));
    LNT_TRY(check_attrs(f, err));
    LNT_TRY(check_subgraph_operands(f, err));
    LNT_TRY(check_model_operands(f, err));
    LNT_TRY(check_symbols(f, err));
    LNT_TRY(check_states(f, err));
    LNT_TRY(check_metadata(f, err));
    LNT_TRY(check_attachments(f, err));
    return check_golden(f, err);
}
