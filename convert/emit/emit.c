/* emit.c — the graph as sections of a .lnt file.
 *
 * Subgraphs are numbered as a run would meet them, values and constants in order of first use. What nothing
 * uses is left out; equal texts and equal constants are stored once. */
#include "convert/emit/emit.h"

#include "base/checked.h"
#include "base/half.h"
#include "base/lnt_assert.h"
#include "formats/hash.h"
#include "formats/lnt_file.h"
#include "formats/stored.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SECTIONS = LNT_SECTION_KINDS, KEY_BYTES = 256 };

typedef struct buffer {
    uint8_t *data;
    size_t n, capacity;
} buffer;

/* Where the bytes of a constant are. */
typedef struct contents {
    const lnt_operand *info;
    const lnt_narrow *narrow; /* or NULL */
    bool exact;               /* its floats may not be rounded, */
    lnt_dtype stored_as;      /* or are already, to these; else 0 */
    bool plain;               /* packed when the file is loaded */
} contents;

typedef struct emitter {
    lnt_graph *g;
    lnt_report *report;
    buffer section[SECTIONS]; /* by lnt_section; TENSORS only has its size until all constants are known */
    lnt_names strings;        /* text -> offset */
    lnt_names known;          /* constants by type, extents and hash -> value in the file */
    lnt_names runs;           /* section and bytes, as text -> offset */
    uint32_t *value;          /* graph value -> value in the file, LNT_NONE */
    uint32_t *sub;            /* graph subgraph -> subgraph in the file, LNT_NONE */
    uint32_t *sub_order;      /* the other way round */
    uint32_t n_subs;
    contents *constant; /* by constant record */
    size_t n_constants, constant_capacity;
    lnt_error *err;
} emitter;

/* ---- bytes and texts ---- */

/* Appends bytes; their offset in *at (may be NULL). */
static lnt_status put(emitter *e, lnt_section section, const void *bytes, size_t n, uint64_t *at)
{
    LNT_ASSERT(bytes || n == 0);
    buffer *b = &e->section[section];
    if (at)
        *at = b->n;
    size_t needed;
    LNT_REQUIRE(lnt_add_size(b->n, n, &needed), e->err, LNT_E_LIMIT, "the file is too large");
    if (needed > b->capacity) {
        const size_t capacity = needed > 2 * b->capacity ? needed + 4096 : 2 * b->capacity;
        uint8_t *wider = lnt_alloc(e->g->memory.allocator, capacity, e->err);
        if (!wider)
            return LNT_E_MEMORY;
        if (b->n)
            memcpy(wider, b->data, b->n);
        lnt_free(e->g->memory.allocator, b->data);
        b->data = wider;
        b->capacity = capacity;
    }
    if (n)
        memcpy(b->data + b->n, bytes, n);
    b->n = needed;
    return LNT_OK;
}

/* The number the next record of the section will have. */
static uint32_t count(const emitter *e, lnt_section section, size_t record)
{
    LNT_ASSERT(e->section[section].n % record == 0);
    return (uint32_t)(e->section[section].n / record);
}

/* Appends a run of bytes, aligned to 8. */
static lnt_status put_aligned(emitter *e, lnt_section section, const void *bytes, size_t n, uint64_t *at)
{
    LNT_ASSERT((unsigned)section < SECTIONS);
    static const uint8_t zero[8] = {0};
    const size_t used = e->section[section].n;
    LNT_TRY(put(e, section, zero, lnt_round_up(used, 8) - used, NULL));
    return put(e, section, bytes, n, at);
}

/* The same, if the section does not have these bytes yet; they are found by their hash. */
static lnt_status put_once(emitter *e, lnt_section section, const void *bytes, size_t n, uint64_t *at)
{
    enum { RUN_KEY = 48 };
    char *key = lnt_bump_alloc(&e->g->memory, RUN_KEY, e->err);
    if (!key)
        return LNT_E_MEMORY;
    snprintf(key, RUN_KEY, "%d %zx %llx", (int)section, n, (unsigned long long)lnt_hash(bytes, n));
    const uint32_t known = lnt_names_find(&e->runs, key);
    *at = known;
    if (known != LNT_NAMES_NONE && (n == 0 || memcmp(e->section[section].data + known, bytes, n) == 0))
        return LNT_OK;
    LNT_TRY(put_aligned(e, section, bytes, n, at));
    LNT_REQUIRE(*at < LNT_NAMES_NONE, e->err, LNT_E_LIMIT, "the model's attributes have more than 4 GB");
    return known == LNT_NAMES_NONE ? lnt_names_set(&e->runs, key, (uint32_t)*at, e->err) : LNT_OK;
}

static lnt_status put_text(emitter *e, const char *text, uint32_t *at)
{
    *at = lnt_names_find(&e->strings, text);
    if (*at != LNT_NAMES_NONE)
        return LNT_OK;
    uint64_t offset;
    LNT_TRY(put(e, LNT_SECTION_STRINGS, text, strlen(text) + 1, &offset));
    LNT_REQUIRE(offset < UINT32_MAX, e->err, LNT_E_LIMIT, "the model's names have more than 4 GB");
    *at = (uint32_t)offset;
    return lnt_names_set(&e->strings, text, *at, e->err);
}

/* ---- values ---- */

/* Extents in records of their own: those of equal values are shared. None have record 0. */
static lnt_status put_extents(emitter *e, const int64_t *dims, unsigned rank, uint32_t *record)
{
    uint64_t at = 0;
    if (rank)
        LNT_TRY(put_once(e, LNT_SECTION_EXTENTS, dims, rank * sizeof *dims, &at));
    *record = (uint32_t)(at / sizeof *dims);
    return LNT_OK;
}

static lnt_status put_value(emitter *e, const char *name, const lnt_operand *info, bool feeds_shape,
                            uint32_t constant, lnt_stored stored, uint32_t *number)
{
    lnt_rec_value v = {.dtype = info->dtype,
                       .rank = info->rank,
                       .order = info->order,
                       .flags = feeds_shape ? LNT_VALUE_FEEDS_SHAPES : 0,
                       .constant = constant,
                       .stored = stored};
    const unsigned rank = v.rank == LNT_RANK_UNKNOWN ? 0 : v.rank;
    LNT_REQUIRE(lnt_extents_fit(info->dims, rank, lnt_dtype_size((lnt_dtype)v.dtype)), e->err, LNT_E_LIMIT,
                "the extents of '%s' overflow the address space", name);
    LNT_TRY(put_extents(e, info->dims, rank, &v.extents));
    LNT_TRY(put_text(e, name, &v.name));
    *number = count(e, LNT_SECTION_VALUES, sizeof v);
    return put(e, LNT_SECTION_VALUES, &v, sizeof v, NULL);
}

static lnt_status put_packed(emitter *e, const lnt_operand *info, size_t bytes, uint32_t *record)
{
    LNT_ASSERT(!info->packed || info->constant);
    *record = LNT_FILE_NONE;
    if (!info->packed)
        return LNT_OK;
    uint64_t at;
    size_t plain;
    e->report->packed_bytes += bytes;
    if (!lnt_stored_bytes(lnt_stored_unpacked(info->packed), info, &plain) && bytes > plain)
        e->report->padding_bytes += bytes - plain;
    LNT_TRY(put_once(e, LNT_SECTION_PACKED, info->packed, sizeof *info->packed, &at));
    *record = (uint32_t)(at / sizeof *info->packed);
    return LNT_OK;
}

/* Does float16 hold these floats, exactly or, where they are no whole numbers, each with 11 bits? Those that
 * are less than `small` need no more bits than it. */
static bool fits_halves(const float *floats, size_t n, float small)
{
    bool exact = true, whole = true;
    for (size_t i = 0; i < n; i++) {
        const float x = floats[i], half = lnt_f16_to_float(lnt_float_to_f16(x));
        if (!(fabsf(half - x) <= fmaxf(fabsf(x), small) * 0x1p-11f))
            return false;
        exact &= half == x;
        whole &= truncf(x) == x;
    }
    return exact || !whole;
}

/* Of a sum's terms those a thousandth of the largest; other floats are each as exact as the next. */
static float least_that_counts(const lnt_operand *o, size_t n)
{
    float largest = 0;
    for (size_t i = 0; o->packed && i < n; i++)
        largest = fmaxf(largest, fabsf(((const float *)o->data)[i]));
    return largest * 0x1p-10f;
}

/* In files that are to be small: panels that are an eighth larger than what is in them, and small ones that
 * are larger at all, are made when the file is loaded; so are floats. Changes *bytes. */
static lnt_stored choose_form(const emitter *e, const contents *c, size_t *bytes)
{
    enum { SMALL_PANELS = 64 << 10, LEAST_FLOATS = 17, LEAST_WEIGHTS = 4096 };
    const lnt_operand *o = c->info;
    const size_t before = *bytes;
    size_t plain;
    if (c->narrow && !lnt_stored_bytes(LNT_STORED_INT8, o, bytes))
        return LNT_STORED_INT8;
    const lnt_stored asked = c->stored_as == LNT_BFLOAT16 ? LNT_STORED_BFLOAT16 : LNT_STORED_HALF;
    if (c->stored_as && !lnt_stored_bytes(asked, o, bytes))
        return asked;
    if (e->g->halves && !c->exact && o->dtype == LNT_FLOAT &&
        (!o->packed || lnt_packed_element(o->packed) == LNT_FLOAT) &&
        lnt_operand_count(o) >= (o->packed ? LEAST_WEIGHTS : LEAST_FLOATS) &&
        fits_halves(o->data, before / sizeof(float), least_that_counts(o, before / sizeof(float))) &&
        !lnt_stored_bytes(LNT_STORED_HALF, o, bytes))
        return LNT_STORED_HALF;
    if (!o->packed)
        return LNT_STORED_READY;
    const lnt_stored unpacked = lnt_stored_unpacked(o->packed);
    const bool fits = !lnt_stored_bytes(unpacked, o, &plain);
    const bool worth = fits && before > plain + (before > SMALL_PANELS ? plain / 8 : LNT_FILE_ALIGN - 1);
    if (!fits || (!c->plain && !(e->g->small && worth)))
        return LNT_STORED_READY;
    *bytes = plain;
    return unpacked;
}

/* A constant not stored yet. Its bytes are copied once all are known. */
static lnt_status put_constant(emitter *e, const char *name, contents from, size_t bytes, bool feeds_shape,
                               uint32_t *number)
{
    const lnt_stored stored = choose_form(e, &from, &bytes);
    size_t *tensors = &e->section[LNT_SECTION_TENSORS].n;
    lnt_rec_constant c = {.offset = lnt_round_up(*tensors, lnt_constant_align(bytes)), .bytes = bytes};
    LNT_REQUIRE(bytes <= PTRDIFF_MAX / 2 && *tensors <= PTRDIFF_MAX / 2, e->err, LNT_E_LIMIT,
                "the model's constants overflow the address space");
    *tensors = (size_t)c.offset + bytes;
    e->report->constant_bytes += bytes;
    LNT_TRY(put_packed(e, from.info, bytes, &c.packed));
    const uint32_t record = count(e, LNT_SECTION_CONSTANTS, sizeof c);
    LNT_TRY(put_value(e, name, from.info, feeds_shape, record, stored, number));
    c.value = *number;
    LNT_TRY(LNT_GROW(e->g->memory.allocator, e->constant, e->constant_capacity, e->n_constants, e->err));
    e->constant[e->n_constants++] = from;
    return put(e, LNT_SECTION_CONSTANTS, &c, sizeof c, NULL);
}

/* Text that equal constants share, and by the hash nearly only they. */
static const char *contents_key(emitter *e, const lnt_operand *info, size_t bytes)
{
    char *key = lnt_bump_alloc(&e->g->memory, KEY_BYTES, e->err);
    if (!key)
        return NULL;
    int n = snprintf(key, KEY_BYTES, "%llx %llx %d %d", (unsigned long long)lnt_hash(info->data, bytes),
                     (unsigned long long)(info->packed ? lnt_hash(info->packed, sizeof *info->packed) : 0),
                     info->dtype, info->order);
    for (unsigned i = 0; i < info->rank; i++)
        n += snprintf(key + n, KEY_BYTES - (size_t)n, " %llx", (unsigned long long)info->dims[i]);
    return key;
}

static bool is_model_operand(const emitter *e, uint32_t value)
{
    const lnt_gsubgraph *s = &e->g->sub[0];
    for (uint32_t i = 0; i < s->n_out; i++)
        if (s->out[i] == value)
            return true;
    return false;
}

/* The constant in the file that value may share, stored now if there is none. Outputs of the model and kept
 * values have a name to defend: they are not shared; in files that are to be small no other has one. */
static lnt_status share_constant(emitter *e, uint32_t value, uint32_t *number)
{
    const lnt_gvalue *v = &e->g->value[value];
    contents from = {&v->info, v->narrow, v->feeds_shape, v->stored_as, v->plain};
    if (lnt_gvalue_is_kept(v) || is_model_operand(e, value)) {
        from.exact = true;
        return put_constant(e, v->name, from, v->bytes, v->feeds_shape, number);
    }
    const char *key = contents_key(e, &v->info, v->bytes);
    if (!key)
        return LNT_E_MEMORY;
    const uint32_t known = lnt_names_find(&e->known, key);
    if (known != LNT_NAMES_NONE) {
        const lnt_rec_value *values = (const lnt_rec_value *)e->section[LNT_SECTION_VALUES].data;
        const lnt_operand *other = e->constant[values[known].constant].info;
        const bool feeds_shape = values[known].flags & LNT_VALUE_FEEDS_SHAPES;
        if (feeds_shape == v->feeds_shape && memcmp(other->data, v->info.data, v->bytes) == 0) {
            *number = known;
            return LNT_OK;
        }
    }
    LNT_TRY(put_constant(e, e->g->small ? "" : v->name, from, v->bytes, v->feeds_shape, number));
    return lnt_names_set(&e->known, key, *number, e->err);
}

/* The file's number of a graph value, its record written at first use. */
static lnt_status use_value(emitter *e, uint32_t value, uint32_t *number)
{
    LNT_ASSERT(value == LNT_NONE || value < e->g->n_values);
    if (value == LNT_NONE) {
        *number = LNT_FILE_NONE;
        return LNT_OK;
    }
    const lnt_gvalue *v = &e->g->value[value];
    if (e->value[value] == LNT_NONE)
        LNT_TRY(v->constant ? share_constant(e, value, &e->value[value])
                            : put_value(e, v->name, &v->info, v->feeds_shape, LNT_FILE_NONE, LNT_STORED_READY,
                                        &e->value[value]));
    *number = e->value[value];
    if (v->text && v->info.dtype == LNT_INT64) /* another type is a fault, which binding tells of */
        ((lnt_rec_value *)(void *)e->section[LNT_SECTION_VALUES].data)[*number].flags |= LNT_VALUE_TEXT;
    return LNT_OK;
}

static lnt_status put_operands(emitter *e, const uint32_t *value, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint32_t number;
        LNT_TRY(use_value(e, value[i], &number));
        LNT_TRY(put(e, LNT_SECTION_OPERANDS, &number, sizeof number, NULL));
    }
    return LNT_OK;
}

/* ---- nodes ---- */

static lnt_status put_string(emitter *e, const char *s, size_t length, uint64_t *at)
{
    uint32_t offset;
    if (strlen(s) != length) /* holds a NUL: stored apart from the texts */
        return put(e, LNT_SECTION_STRINGS, s, length + 1, at);
    LNT_TRY(put_text(e, s, &offset));
    *at = offset;
    return LNT_OK;
}

static lnt_status put_strings(emitter *e, const lnt_attr *a, uint64_t *at)
{
    uint32_t *offset = lnt_bump_alloc(&e->g->memory, a->count * sizeof *offset, e->err);
    if (!offset)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < a->count; i++)
        LNT_TRY(put_text(e, a->strings[i], &offset[i]));
    return put_once(e, LNT_SECTION_ATTR_DATA, offset, a->count * sizeof *offset, at);
}

/* The record of an attribute of n, and what it refers to. */
static lnt_status make_attr(emitter *e, const lnt_gnode *n, const lnt_attr *a, lnt_rec_attr *r)
{
    uint32_t number;
    size_t bytes;
    *r = (lnt_rec_attr){.type = a->type, .count = a->count};
    LNT_TRY(put_text(e, a->name, &r->name));
    switch (a->type) {
    case LNT_ATTR_INT:
    case LNT_ATTR_INTS:
        LNT_TRY(put_once(e, LNT_SECTION_ATTR_DATA, a->i, a->count * sizeof *a->i, &r->data));
        break;
    case LNT_ATTR_FLOAT:
    case LNT_ATTR_FLOATS:
        LNT_TRY(put_once(e, LNT_SECTION_ATTR_DATA, a->f, a->count * sizeof *a->f, &r->data));
        break;
    case LNT_ATTR_STRING: LNT_TRY(put_string(e, a->s, a->count, &r->data)); break;
    case LNT_ATTR_STRINGS: LNT_TRY(put_strings(e, a, &r->data)); break;
    case LNT_ATTR_TENSOR:
        LNT_REQUIRE(lnt_operand_bytes(a->tensor, &bytes), e->err, LNT_E_MODEL,
                    "node '%s': tensor %s is larger than the address space", n->name, a->name);
        LNT_TRY(
            put_constant(e, n->name, (contents){.info = a->tensor, .exact = true}, bytes, false, &number));
        r->data = number;
        break;
    case LNT_ATTR_GRAPH: r->data = e->sub[*a->i]; break;
    }
    return LNT_OK;
}

/* Nodes share lists of a few attributes; one with a subgraph or a tensor is nobody else's, as these are not. */
static lnt_status put_attrs(emitter *e, const lnt_gnode *n, uint32_t *first)
{
    lnt_rec_attr *list = lnt_bump_alloc(&e->g->memory, n->n_attr * sizeof *list, e->err);
    uint64_t at = 0;
    if (!list)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < n->n_attr; i++)
        LNT_TRY(make_attr(e, n, &n->attr[i], &list[i]));
    if (n->n_attr > 0 && n->n_attr <= LNT_FILE_SHARED_ATTRS)
        LNT_TRY(put_once(e, LNT_SECTION_ATTRS, list, n->n_attr * sizeof *list, &at));
    else
        LNT_TRY(put(e, LNT_SECTION_ATTRS, list, n->n_attr * sizeof *list, &at));
    *first = (uint32_t)(at / sizeof *list);
    return LNT_OK;
}

static lnt_status put_program(emitter *e, const lnt_program *p, uint32_t *number)
{
    *number = LNT_FILE_NONE;
    if (!p)
        return LNT_OK;
    uint64_t at;
    lnt_rec_program r = {.n_instr = p->n_instr,
                         .n_in = p->n_in,
                         .n_out = p->n_out,
                         .n_regs = p->n_regs,
                         .epilogue = p->epilogue};
    memcpy(r.out, p->out, p->n_out);
    LNT_TRY(put_once(e, LNT_SECTION_INSTRS, p->instr, p->n_instr * sizeof *p->instr, &at));
    r.first_instr = (uint32_t)(at / sizeof *p->instr);
    LNT_TRY(put_once(e, LNT_SECTION_PROGRAMS, &r, sizeof r, &at));
    *number = (uint32_t)(at / sizeof r);
    return LNT_OK;
}

static lnt_status put_node(emitter *e, const lnt_gnode *n)
{
    lnt_rec_node r = {.op = n->op->id,
                      .op_version = n->op->version,
                      .first_operand = count(e, LNT_SECTION_OPERANDS, sizeof(uint32_t)),
                      .n_in = n->n_in,
                      .n_out = n->n_out,
                      .n_program_in = n->n_program_in,
                      .n_attrs = n->n_attr,
                      .flags = n->evaluate_early ? LNT_NODE_EVALUATE_EARLY : 0};
    LNT_TRY(put_text(e, n->name, &r.name));
    LNT_TRY(put_operands(e, n->in, n->n_in));
    LNT_TRY(put_operands(e, n->out, n->n_out));
    LNT_TRY(put_attrs(e, n, &r.first_attr));
    LNT_TRY(put_program(e, n->program, &r.program));
    return put(e, LNT_SECTION_NODES, &r, sizeof r, NULL);
}

/* ---- subgraphs ---- */

/* Numbers the subgraphs that the model reaches, outer ones first. */
static void number_subgraphs(emitter *e, uint32_t sub)
{
    e->sub[sub] = e->n_subs;
    e->sub_order[e->n_subs++] = sub;
    const lnt_gsubgraph *s = &e->g->sub[sub];
    for (size_t i = 0; i < s->n_nodes; i++)
        for (unsigned k = 0; !s->node[i]->dead && k < s->node[i]->n_attr; k++)
            if (s->node[i]->attr[k].type == LNT_ATTR_GRAPH)
                number_subgraphs(e, (uint32_t)*s->node[i]->attr[k].i);
}

static lnt_status put_subgraph(emitter *e, const lnt_gsubgraph *s)
{
    lnt_rec_subgraph r = {.first_node = count(e, LNT_SECTION_NODES, sizeof(lnt_rec_node)),
                          .first_operand = count(e, LNT_SECTION_OPERANDS, sizeof(uint32_t)),
                          .n_in = s->n_in,
                          .n_out = s->n_out};
    LNT_TRY(put_text(e, s->name, &r.name));
    LNT_TRY(put_operands(e, s->in, s->n_in));
    LNT_TRY(put_operands(e, s->out, s->n_out));
    for (size_t i = 0; i < s->n_nodes; i++)
        if (!s->node[i]->dead)
            LNT_TRY(put_node(e, s->node[i]));
    r.n_nodes = count(e, LNT_SECTION_NODES, sizeof(lnt_rec_node)) - r.first_node;
    return put(e, LNT_SECTION_SUBGRAPHS, &r, sizeof r, NULL);
}

/* ---- the rest ---- */

static lnt_status put_symbols(emitter *e)
{
    for (size_t i = 0; i < e->g->n_symbols; i++) {
        const lnt_gsymbol *s = &e->g->symbol[i];
        lnt_rec_symbol r = {.kind = s->kind, .axis = s->axis, .bound = s->bound};
        LNT_TRY(put_text(e, s->name, &r.name));
        LNT_TRY(use_value(e, s->value, &r.value));
        LNT_TRY(put(e, LNT_SECTION_SYMBOLS, &r, sizeof r, NULL));
    }
    return LNT_OK;
}

static lnt_status put_states_and_metadata(emitter *e)
{
    for (size_t i = 0; i < e->g->n_states; i++) {
        const lnt_rec_state r = {.output = e->g->state[i].output, .input = e->g->state[i].input};
        LNT_TRY(put(e, LNT_SECTION_STATES, &r, sizeof r, NULL));
    }
    for (size_t i = 0; i < e->g->n_meta; i++) {
        lnt_rec_metadata r;
        LNT_TRY(put_text(e, e->g->meta[i].key, &r.key));
        LNT_TRY(put_text(e, e->g->meta[i].text, &r.text));
        LNT_TRY(put(e, LNT_SECTION_METADATA, &r, sizeof r, NULL));
    }
    return LNT_OK;
}

static lnt_status put_attachment(emitter *e, const char *name, const void *bytes, size_t size)
{
    static const uint8_t zero[LNT_FILE_ALIGN] = {0};
    const size_t used = e->section[LNT_SECTION_ATTACHED].n;
    lnt_rec_attachment r = {.bytes = size};
    LNT_TRY(put_text(e, name, &r.name));
    LNT_TRY(put(e, LNT_SECTION_ATTACHED, zero, lnt_round_up(used, LNT_FILE_ALIGN) - used, NULL));
    LNT_TRY(put(e, LNT_SECTION_ATTACHED, bytes, size, &r.offset));
    return put(e, LNT_SECTION_ATTACHMENTS, &r, sizeof r, NULL);
}

/* The words that the model itself knows, one behind the other. */
static lnt_status put_words(emitter *e)
{
    const lnt_words *words = &e->g->words;
    size_t n = 0;
    for (size_t i = 0; i < words->n; i++)
        n += strlen(words->word[i]) + 1;
    char *all = lnt_bump_alloc(&e->g->memory, n, e->err), *end = all;
    if (!all)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < words->n; i++) {
        const size_t length = strlen(words->word[i]) + 1;
        memcpy(end, words->word[i], length);
        end += length;
    }
    return n ? put_attachment(e, LNT_WORDS_NAME, all, n) : LNT_OK;
}

static lnt_status put_attachments(emitter *e)
{
    LNT_TRY(put_words(e));
    for (size_t i = 0; i < e->g->n_attach; i++)
        LNT_TRY(put_attachment(e, e->g->attach[i].name, e->g->attach[i].bytes, e->g->attach[i].size));
    return LNT_OK;
}

static lnt_status put_golden(emitter *e, const lnt_golden_set *golden)
{
    uint64_t base = 0;
    if (!golden)
        return LNT_OK;
    LNT_TRY(put_aligned(e, LNT_SECTION_ATTR_DATA, golden->data, golden->data_bytes, &base));
    for (size_t i = 0; i < golden->n; i++) {
        lnt_rec_golden r = golden->record[i];
        LNT_TRY(put_extents(e, golden->extents[i], r.rank, &r.extents));
        if (r.count)
            r.data += base;
        LNT_TRY(put(e, LNT_SECTION_GOLDEN, &r, sizeof r, NULL));
    }
    return LNT_OK;
}

/* to: float16 or bfloat16 [count], in ONNX order. */
static lnt_status put_halves(emitter *e, const lnt_operand *o, uint32_t stored, uint16_t *to)
{
    const int64_t n = lnt_operand_count(o);
    float *plain = o->packed ? lnt_alloc(e->g->memory.allocator, (size_t)n * sizeof *plain, e->err) : NULL;
    if (o->packed && !plain)
        return LNT_E_MEMORY;
    if (o->packed)
        lnt_unpack(o->packed, LNT_FLOAT, o->data, plain);
    const float *from = plain ? plain : o->data;
    for (int64_t i = 0; i < n; i++)
        to[i] = stored == LNT_STORED_HALF ? lnt_float_to_f16(from[i]) : lnt_float_to_bf16(from[i]);
    lnt_free(e->g->memory.allocator, plain);
    return LNT_OK;
}

/* As the file is to hold it. */
static lnt_status put_contents(emitter *e, const contents *c, uint32_t stored, size_t bytes, uint8_t *to)
{
    const lnt_operand *o = c->info;
    if (stored == LNT_STORED_INT8) {
        const size_t scales = (size_t)o->dims[0] * sizeof(float);
        memcpy(to, c->narrow->quantized, (size_t)lnt_operand_count(o));
        memcpy(to + bytes - scales, c->narrow->scale, scales);
    } else if (stored == LNT_STORED_HALF || stored == LNT_STORED_BFLOAT16) {
        return put_halves(e, o, stored, (uint16_t *)(void *)to);
    } else if (stored == LNT_STORED_PLAIN) {
        lnt_unpack(o->packed, (lnt_dtype)o->dtype, o->data, to);
    } else {
        memcpy(to, o->data, bytes);
    }
    return LNT_OK;
}

static lnt_status put_tensors(emitter *e)
{
    buffer *b = &e->section[LNT_SECTION_TENSORS];
    b->data = lnt_alloc_zero(e->g->memory.allocator, b->n, 1, e->err);
    if (!b->data)
        return LNT_E_MEMORY;
    const lnt_rec_constant *c = (const lnt_rec_constant *)e->section[LNT_SECTION_CONSTANTS].data;
    const lnt_rec_value *values = (const lnt_rec_value *)e->section[LNT_SECTION_VALUES].data;
    for (size_t i = 0; i < e->n_constants; i++)
        if (c[i].bytes)
            LNT_TRY(put_contents(e, &e->constant[i], values[c[i].value].stored, (size_t)c[i].bytes,
                                 b->data + c[i].offset));
    return LNT_OK;
}

static lnt_status put_all(emitter *e, const lnt_golden_set *golden)
{
    uint32_t empty;
    LNT_TRY(put_text(e, "", &empty));
    number_subgraphs(e, 0);
    for (uint32_t i = 0; i < e->n_subs; i++)
        LNT_TRY(put_subgraph(e, &e->g->sub[e->sub_order[i]]));
    LNT_TRY(put_symbols(e));
    LNT_TRY(put_states_and_metadata(e));
    LNT_TRY(put_attachments(e));
    LNT_TRY(put_golden(e, golden));
    return put_tensors(e);
}

static lnt_status build(emitter *e, void **image, size_t *size)
{
    static const lnt_section order[] = {
#define X(name, number, text) LNT_SECTION_##name,
        LNT_SECTION_LIST(X)
#undef X
    };
    enum { N = sizeof order / sizeof order[0] };
    lnt_section_data data[N];
    for (unsigned i = 0; i < N; i++)
        data[i] = (lnt_section_data){order[i], e->section[order[i]].data, e->section[order[i]].n};
    LNT_TRY(lnt_file_build(data, N, e->g->memory.allocator, image, size, e->err));
    e->report->lnt_bytes = *size;
    e->report->nodes_after = count(e, LNT_SECTION_NODES, sizeof(lnt_rec_node));
    return LNT_OK;
}

static uint32_t *numbers(lnt_graph *g, size_t n)
{
    uint32_t *list = lnt_bump_alloc(&g->memory, n * sizeof *list, g->err);
    for (size_t i = 0; list && i < n; i++)
        list[i] = LNT_NONE;
    return list;
}

lnt_status lnt_emit(lnt_graph *g, lnt_report *report, const lnt_golden_set *golden, void **image,
                    size_t *size)
{
    emitter e = {.g = g,
                 .report = report,
                 .strings.heap = g->memory.allocator,
                 .known.heap = g->memory.allocator,
                 .runs.heap = g->memory.allocator,
                 .err = g->err};
    e.value = numbers(g, g->n_values);
    e.sub = numbers(g, g->n_subs);
    e.sub_order = numbers(g, g->n_subs);
    report->constant_bytes = report->packed_bytes = report->padding_bytes = 0;
    lnt_status status = e.value && e.sub && e.sub_order ? put_all(&e, golden) : LNT_E_MEMORY;
    if (status == LNT_OK)
        status = build(&e, image, size);
    for (unsigned i = 0; i < SECTIONS; i++)
        lnt_free(g->memory.allocator, e.section[i].data);
    lnt_free(g->memory.allocator, e.constant);
    lnt_names_free(&e.strings);
    lnt_names_free(&e.known);
    lnt_names_free(&e.runs);
    return status;
}

void lnt_golden_set_free(lnt_golden_set *set)
{
    lnt_free(set->heap, set->record);
    lnt_free(set->heap, set->extents);
    lnt_free(set->heap, set->data);
    *set = (lnt_golden_set){.heap = set->heap};
}
