/* mutate_lnt.c — changes of a .lnt file that keep to its structure: what a record says becomes something
 * else that may stand there, so that most changed files get past the verifier.
 *
 * Hashes are not repaired here: the target does that, and takes the header's, which nobody reads, as the
 * recipe of what to do with the model. */
#include "base/checked.h"
#include "formats/golden.h"
#include "formats/lnt_file.h"
#include "ops/op.h"
#include "ops/elementwise/program.h"
#include "tests/c/changes.h"
#include "tests/fuzz/fuzz.h"

/* A file being changed, in room for `max` bytes. */
typedef struct subject {
    uint8_t *file;
    size_t size, max;
    uint64_t seed;
} subject;

/* The records of a section. */
typedef struct list {
    uint8_t *first;
    size_t n, bytes; /* of one */
} list;

static uint32_t below(subject *f, size_t n)
{
    return n ? next_random(&f->seed) % (uint32_t)n : 0;
}

static int64_t extreme(subject *f)
{
    static const int64_t values[] = {
        0,       0,       1,         1,         2,           3,           4,       5,         7,
        8,       15,      16,        17,        63,          64,          65,      127,       255,
        256,     1000,    4096,      65535,     65536,       -1,          -1,      -2,        -3,
        -8,      1 << 20, 1 << 24,   INT32_MAX, 1LL << 31,   UINT32_MAX,  1LL << 32, (1LL << 32) + 1,
        1LL << 40, 1LL << 48, 1LL << 58, 1LL << 60, 1LL << 61, 1LL << 62, INT64_MAX, INT64_MIN};
    return values[below(f, sizeof values / sizeof *values)];
}

/* An element type there is; rarely one that is none. */
static uint8_t some_type(subject *f)
{
    static const uint8_t types[] = {
#define X(name, number, bits, text) number,
        LNT_DTYPE_LIST(X)
#undef X
        LNT_UNDEFINED, 14};
    return types[below(f, sizeof types)];
}

/* ---- sections ---- */

static const lnt_rec_section *table_of(const uint8_t *file, uint32_t *n)
{
    const lnt_rec_header *h = (const lnt_rec_header *)file;
    *n = h->n_sections;
    return (const lnt_rec_section *)(file + sizeof *h);
}

/* May be taken apart: there are sections, and all lie in the file. */
static bool sound(const uint8_t *file, size_t size)
{
    uint32_t n;
    const lnt_rec_section *table;
    if (size < sizeof(lnt_rec_header))
        return false;
    table = table_of(file, &n);
    if (n < 1 || n > LNT_FILE_MAX_SECTIONS || (size - sizeof(lnt_rec_header)) / sizeof *table < n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (table[i].offset > size || table[i].bytes > size - table[i].offset)
            return false;
    return true;
}

static size_t record_bytes(uint32_t kind)
{
    switch (kind) {
    case LNT_SECTION_VALUES: return sizeof(lnt_rec_value);
    case LNT_SECTION_EXTENTS: return sizeof(int64_t);
    case LNT_SECTION_CONSTANTS: return sizeof(lnt_rec_constant);
    case LNT_SECTION_PACKED: return sizeof(lnt_packed);
    case LNT_SECTION_NODES: return sizeof(lnt_rec_node);
    case LNT_SECTION_OPERANDS: return sizeof(uint32_t);
    case LNT_SECTION_ATTRS: return sizeof(lnt_rec_attr);
    case LNT_SECTION_PROGRAMS: return sizeof(lnt_rec_program);
    case LNT_SECTION_INSTRS: return sizeof(lnt_instr);
    case LNT_SECTION_SUBGRAPHS: return sizeof(lnt_rec_subgraph);
    case LNT_SECTION_SYMBOLS: return sizeof(lnt_rec_symbol);
    case LNT_SECTION_STATES: return sizeof(lnt_rec_state);
    case LNT_SECTION_METADATA: return sizeof(lnt_rec_metadata);
    case LNT_SECTION_GOLDEN: return sizeof(lnt_rec_golden);
    case LNT_SECTION_ATTACHMENTS: return sizeof(lnt_rec_attachment);
    case LNT_SECTION_STRINGS:
    case LNT_SECTION_ATTACHED:
    case LNT_SECTION_TENSORS: return 1;
    }
    return 8;
}

static list list_of(const subject *f, uint32_t kind)
{
    uint32_t n;
    const lnt_rec_section *table = table_of(f->file, &n);
    const size_t bytes = record_bytes(kind);
    for (uint32_t i = 0; i < n; i++)
        if (table[i].kind == kind)
            return (list){f->file + table[i].offset, table[i].bytes / bytes, bytes};
    return (list){NULL, 0, bytes};
}

/* Records may lie at any address: they are copied out and in. False where there is none. */
static bool get(const list *l, size_t i, void *record)
{
    if (i >= l->n)
        return false;
    memcpy(record, l->first + i * l->bytes, l->bytes);
    return true;
}

/* Nothing where there is none. */
static void put(const list *l, size_t i, const void *record)
{
    if (i < l->n)
        memcpy(l->first + i * l->bytes, record, l->bytes);
}

/* Lays the sections out anew with other contents for one; false if there is no room for them. */
static bool replace_section(subject *f, const uint8_t *from, uint32_t kind, const void *bytes, size_t size)
{
    lnt_section_data section[LNT_FILE_MAX_SECTIONS];
    uint32_t n;
    const lnt_rec_section *table = table_of(from, &n);
    const uint64_t recipe = ((const lnt_rec_header *)from)->root_hash;
    for (uint32_t i = 0; i < n; i++) {
        section[i] = (lnt_section_data){(lnt_section)table[i].kind, from + table[i].offset, table[i].bytes};
        if (table[i].kind == kind)
            section[i] = (lnt_section_data){(lnt_section)kind, bytes, size};
    }
    void *image = NULL;
    size_t built = 0;
    lnt_error err = {0};
    if (lnt_file_build(section, n, &lnt_malloc_allocator, &image, &built, &err) != LNT_OK)
        return false;
    const bool fits = built <= f->max;
    if (fits) {
        memcpy(f->file, image, built);
        memcpy(f->file + offsetof(lnt_rec_header, root_hash), &recipe, sizeof recipe);
        f->size = built;
    }
    lnt_free(&lnt_malloc_allocator, image);
    return fits;
}

/* Of a section, n records from `at` on become m others; NULL: a copy of what was there. */
static bool splice(subject *f, uint32_t kind, size_t at, size_t n, const void *records, size_t m)
{
    const list l = list_of(f, kind);
    if (!l.first || at + n > l.n)
        return false;
    const size_t before = at * l.bytes, old = n * l.bytes, other = m * l.bytes, all = l.n * l.bytes;
    uint8_t *bytes = malloc(all - old + other + 1);
    if (!bytes)
        return false;
    memcpy(bytes, l.first, before);
    memcpy(bytes + before, records ? records : l.first + before, other);
    memcpy(bytes + before + other, l.first + before + old, all - before - old);
    const bool done = replace_section(f, f->file, kind, bytes, all - old + other);
    free(bytes);
    return done;
}

/* ---- values ---- */

/* Record i of the values and its extents, those past the rank 0; false if it has none. */
static bool get_value(const subject *f, uint32_t i, lnt_rec_value *v, int64_t dims[LNT_MAX_RANK])
{
    const list values = list_of(f, LNT_SECTION_VALUES), extents = list_of(f, LNT_SECTION_EXTENTS);
    memset(dims, 0, LNT_MAX_RANK * sizeof *dims);
    if (!get(&values, i, v) || v->rank < 1 || v->rank > LNT_MAX_RANK || v->extents > extents.n ||
        v->rank > extents.n - v->extents)
        return false;
    memcpy(dims, extents.first + v->extents * sizeof *dims, v->rank * sizeof *dims);
    return true;
}

/* Puts them back: where they lay, or at the end of the section, so that no other value changes with it. */
static void put_value(subject *f, uint32_t i, lnt_rec_value *v, const int64_t dims[LNT_MAX_RANK], bool own)
{
    const list extents = list_of(f, LNT_SECTION_EXTENTS);
    if (v->rank == 0)
        v->extents = 0;
    else if (own && splice(f, LNT_SECTION_EXTENTS, extents.n, 0, dims, v->rank))
        v->extents = (uint32_t)extents.n;
    else if (!own)
        memcpy(extents.first + v->extents * sizeof *dims, dims, v->rank * sizeof *dims);
    const list values = list_of(f, LNT_SECTION_VALUES);
    put(&values, i, v);
}

/* An extent becomes an extreme, often beside one of 0; an input and an output may change alike. */
static void change_extent(subject *f)
{
    const size_t n_values = list_of(f, LNT_SECTION_VALUES).n;
    const int64_t extent = extreme(f);
    const unsigned shift = below(f, 8);
    const bool empty = below(f, 2);
    for (unsigned n = 1 + below(f, 4) / 3; n > 0; n--) {
        lnt_rec_value v;
        int64_t dims[LNT_MAX_RANK];
        const uint32_t i = below(f, n_values);
        if (!get_value(f, i, &v, dims))
            continue;
        dims[shift % v.rank] = extent;
        if (empty && v.rank > 1)
            dims[(shift + 1) % v.rank] = 0;
        put_value(f, i, &v, dims, below(f, 4) > 0);
    }
}

/* As many elements in another shape, which a constant's bytes still fill: two extents change places, or a
 * factor goes from one to the other. */
static void reshape(subject *f)
{
    const uint32_t i = below(f, list_of(f, LNT_SECTION_VALUES).n);
    lnt_rec_value v;
    int64_t dims[LNT_MAX_RANK];
    if (!get_value(f, i, &v, dims))
        return;
    const unsigned a = below(f, v.rank), b = below(f, v.rank);
    const int64_t extent = dims[a], factor = 2 + below(f, 6);
    switch (below(f, 4)) {
    case 0:
        if (v.rank < LNT_MAX_RANK)
            dims[v.rank++] = 1;
        break;
    case 1:
        dims[a] = dims[b];
        dims[b] = extent;
        break;
    case 2:
        if (a != b && extent > 0 && extent % factor == 0 && dims[b] >= 0 && dims[b] < 1 << 20) {
            dims[a] /= factor;
            dims[b] *= factor;
        }
        break;
    default:
        v.rank--;
        (void)(v.rank && lnt_mul_i64(dims[0], dims[v.rank], &dims[0]));
        dims[v.rank] = 0;
        break;
    }
    put_value(f, i, &v, dims, true);
}

static void change_type(subject *f)
{
    const list values = list_of(f, LNT_SECTION_VALUES);
    const uint8_t type = some_type(f);
    for (unsigned n = 1 + below(f, 3); n > 0; n--) {
        lnt_rec_value v;
        const uint32_t i = below(f, values.n);
        if (!get(&values, i, &v))
            return;
        v.dtype = type;
        put(&values, i, &v);
    }
}

static void change_rank(subject *f)
{
    static const uint8_t ranks[] = {0, 1, 2, 3, 4, 5, 8, 9, 255};
    const list values = list_of(f, LNT_SECTION_VALUES);
    const uint32_t i = below(f, values.n);
    lnt_rec_value v;
    if (!get(&values, i, &v))
        return;
    v.rank = ranks[below(f, sizeof ranks)];
    v.extents = v.rank && v.rank <= LNT_MAX_RANK ? below(f, list_of(f, LNT_SECTION_EXTENTS).n) : 0;
    put(&values, i, &v);
}

/* ---- nodes ---- */

static void change_operand(subject *f)
{
    const list operands = list_of(f, LNT_SECTION_OPERANDS), values = list_of(f, LNT_SECTION_VALUES);
    const uint32_t i = below(f, operands.n), k = below(f, operands.n);
    uint32_t a, b;
    if (!get(&operands, i, &a) || !get(&operands, k, &b))
        return;
    switch (below(f, 4)) {
    case 0: b = below(f, values.n); break;
    case 1: b = LNT_FILE_NONE; break;
    case 2: put(&operands, k, &a); break;
    default: break;
    }
    put(&operands, i, &b);
}

/* A node gets operands of its own, one more or one less. */
static void change_operand_count(subject *f)
{
    list nodes = list_of(f, LNT_SECTION_NODES);
    const list operands = list_of(f, LNT_SECTION_OPERANDS);
    const uint32_t i = below(f, nodes.n);
    uint32_t operand[64];
    lnt_rec_node n;
    if (!get(&nodes, i, &n))
        return;
    const unsigned count = n.n_in + n.n_out;
    if (count == 0 || count >= 60 || n.first_operand > operands.n || count > operands.n - n.first_operand)
        return;
    const bool input = n.n_in && below(f, 2), more = below(f, 2);
    const unsigned at = input ? below(f, n.n_in) : n.n_in + below(f, n.n_out);
    for (unsigned k = 0; k < count; k++)
        (void)get(&operands, n.first_operand + k, &operand[k]);
    if (more)
        memmove(operand + at + 1, operand + at, (count - at) * sizeof *operand);
    else if (at + 1 < count)
        memmove(operand + at, operand + at + 1, (count - at - 1) * sizeof *operand);
    if (more && below(f, 2))
        operand[at] = below(f, list_of(f, LNT_SECTION_VALUES).n);
    if (!splice(f, LNT_SECTION_OPERANDS, operands.n, 0, operand, more ? count + 1 : count - 1))
        return;
    n.first_operand = (uint32_t)operands.n;
    uint16_t *listed = input ? &n.n_in : &n.n_out;
    *listed = (uint16_t)(more ? *listed + 1 : *listed - 1);
    nodes = list_of(f, LNT_SECTION_NODES);
    put(&nodes, i, &n);
}

/* Another operator there is, in the meaning this build has. */
static void change_op(subject *f)
{
    enum { IDS = 512, TRIES = 64 };
    const list nodes = list_of(f, LNT_SECTION_NODES);
    const uint32_t i = below(f, nodes.n);
    const lnt_op *op = NULL;
    lnt_rec_node n;
    for (unsigned t = 0; t < TRIES && !op; t++)
        op = lnt_op_by_id((uint16_t)below(f, IDS));
    if (!op || !get(&nodes, i, &n))
        return;
    n.op = op->id;
    n.op_version = op->version;
    put(&nodes, i, &n);
}

static void change_node(subject *f)
{
    const list nodes = list_of(f, LNT_SECTION_NODES);
    const uint32_t i = below(f, nodes.n), k = below(f, nodes.n);
    lnt_rec_node n, other;
    if (!get(&nodes, i, &n) || !get(&nodes, k, &other))
        return;
    switch (below(f, 6)) {
    case 0: n.flags ^= LNT_NODE_EVALUATE_EARLY; break;
    case 1: n.program = other.program; n.n_program_in = other.n_program_in; break;
    case 2: n.program = LNT_FILE_NONE; n.n_program_in = 0; break;
    case 3: n.first_attr = other.first_attr; n.n_attrs = other.n_attrs; break;
    case 4: n.n_attrs = (uint16_t)(n.n_attrs + below(f, 3) - 1); break;
    default: put(&nodes, k, &n); n = other; break;
    }
    put(&nodes, i, &n);
}

/* ---- attributes ---- */

enum { WORD = 8 }; /* attribute data are placed by */

static size_t number_bytes(uint32_t type)
{
    return type == LNT_ATTR_INT || type == LNT_ATTR_INTS       ? sizeof(int64_t)
           : type == LNT_ATTR_FLOAT || type == LNT_ATTR_FLOATS ? sizeof(float)
           : type == LNT_ATTR_STRINGS                          ? sizeof(uint32_t)
                                                               : 0;
}

/* Another number for an attribute of this type, width bytes of it. */
static uint64_t some_number(subject *f, size_t width)
{
    static const float floats[] = {0, 1, -1, 0.5f, 2, 1e-30f, 1e30f, 3e38f, 100, -65536, 1e10f};
    const float x = floats[below(f, sizeof floats / sizeof *floats)];
    uint32_t bits;
    if (width == sizeof(int64_t))
        return below(f, 2) ? (uint64_t)extreme(f) : some_type(f);
    memcpy(&bits, &x, sizeof bits);
    return below(f, 8) ? bits : below(f, 2) ? 0x7fc00000 : 0x7f800000;
}

/* One number of an attribute: where it lies, or in a place of its own at the end of the attribute data, so
 * that no other attribute changes with it. */
static void change_attr_number(subject *f)
{
    list attrs = list_of(f, LNT_SECTION_ATTRS);
    const list data = list_of(f, LNT_SECTION_ATTR_DATA);
    const uint32_t i = below(f, attrs.n);
    uint64_t copy[32] = {0};
    lnt_rec_attr a;
    if (!get(&attrs, i, &a))
        return;
    const size_t width = number_bytes(a.type), all = width * a.count, room = data.n * data.bytes;
    if (!width || a.data > room || all > room - a.data)
        return;
    const bool own = below(f, 2) && all + width <= sizeof copy;
    uint8_t *place = own ? (uint8_t *)copy : data.first + a.data;
    if (own && all)
        memcpy(copy, data.first + a.data, all);
    if (own && below(f, 4) == 0)
        a.count += below(f, 2) ? 1 : -(a.count > 0);
    if (a.count) {
        const uint64_t number = some_number(f, width);
        memcpy(place + width * below(f, a.count), &number, width);
    }
    const size_t words = (width * a.count + WORD - 1) / WORD;
    if (!own || !splice(f, LNT_SECTION_ATTR_DATA, data.n, 0, copy, words))
        return;
    a.data = data.n * WORD;
    attrs = list_of(f, LNT_SECTION_ATTRS);
    put(&attrs, i, &a);
}

/* An attribute takes what another one holds, its type, its name, or changes places with it. */
static void change_attr(subject *f)
{
    const list attrs = list_of(f, LNT_SECTION_ATTRS), values = list_of(f, LNT_SECTION_VALUES);
    const uint32_t i = below(f, attrs.n), k = below(f, attrs.n);
    lnt_rec_attr a, b;
    if (!get(&attrs, i, &a) || !get(&attrs, k, &b))
        return;
    switch (below(f, 6)) {
    case 0: a.name = b.name; break;
    case 1: a.type = b.type; a.count = b.count; a.data = b.data; break;
    case 2: put(&attrs, k, &a); a = b; break;
    case 3: a.type = 1 + below(f, LNT_ATTR_GRAPH); break;
    case 4: a.data = a.type == LNT_ATTR_TENSOR ? below(f, values.n) : b.data; break;
    default: a.count = (uint32_t)extreme(f); break;
    }
    put(&attrs, i, &a);
}

/* ---- the rest ---- */

static void change_instr(subject *f)
{
    const list instrs = list_of(f, LNT_SECTION_INSTRS), programs = list_of(f, LNT_SECTION_PROGRAMS);
    const uint32_t i = below(f, instrs.n), k = below(f, programs.n);
    lnt_instr instr;
    lnt_rec_program p;
    if (!get(&instrs, i, &instr) || !get(&programs, k, &p))
        return;
    const uint8_t reg = (uint8_t)below(f, p.n_regs + 1u);
    const uint32_t bits = (uint32_t)some_number(f, sizeof bits);
    switch (below(f, 9)) {
    case 0: instr.op = (uint8_t)below(f, 256); break;
    case 1: instr.dst = reg; break;
    case 2: instr.src[below(f, 3)] = reg; break;
    case 3: memcpy(&instr.imm[below(f, 2)], &bits, sizeof bits); break;
    case 4: p.epilogue ^= 1; break;
    case 5: p.out[below(f, sizeof p.out)] = reg; break;
    case 6: p.n_instr = (uint16_t)(p.n_instr + below(f, 3) - 1); break;
    case 7: p.n_out = (uint8_t)(1 + below(f, sizeof p.out)); break;
    default: p.n_regs = (uint8_t)(p.n_regs + below(f, 3) - 1); break;
    }
    put(&instrs, i, &instr);
    put(&programs, k, &p);
}

static void change_subgraph(subject *f)
{
    const list subgraphs = list_of(f, LNT_SECTION_SUBGRAPHS);
    const uint32_t i = below(f, subgraphs.n), k = below(f, subgraphs.n);
    lnt_rec_subgraph g, other;
    if (!get(&subgraphs, i, &g) || !get(&subgraphs, k, &other))
        return;
    switch (below(f, 4)) {
    case 0: g.n_in += below(f, 3) - 1; break;
    case 1: g.n_out += below(f, 3) - 1; break;
    case 2: g.n_in = other.n_in; g.n_out = other.n_out; g.first_operand = other.first_operand; break;
    default: put(&subgraphs, k, &g); g = other; break;
    }
    put(&subgraphs, i, &g);
}

static void change_state(subject *f)
{
    const list states = list_of(f, LNT_SECTION_STATES), symbols = list_of(f, LNT_SECTION_SYMBOLS);
    const uint32_t i = below(f, states.n), k = below(f, symbols.n);
    lnt_rec_state state;
    lnt_rec_symbol symbol;
    if (get(&states, i, &state)) {
        *(below(f, 2) ? &state.input : &state.output) = below(f, 4);
        put(&states, i, &state);
    }
    if (!get(&symbols, k, &symbol))
        return;
    switch (below(f, 4)) {
    case 0: symbol.bound = extreme(f); break;
    case 1: symbol.kind = below(f, 3); break;
    case 2: symbol.value = below(f, list_of(f, LNT_SECTION_VALUES).n); break;
    default: symbol.axis = below(f, 4); break;
    }
    put(&symbols, k, &symbol);
}

/* An element of a constant: axes, extents and indices are what most harm can be done with. */
static void change_constant(subject *f)
{
    const list constants = list_of(f, LNT_SECTION_CONSTANTS), tensors = list_of(f, LNT_SECTION_TENSORS),
               values = list_of(f, LNT_SECTION_VALUES);
    const uint32_t i = below(f, constants.n);
    lnt_rec_constant c;
    lnt_rec_value v;
    if (!get(&constants, i, &c) || !get(&values, c.value, &v))
        return;
    const size_t width = lnt_dtype_size((lnt_dtype)v.dtype);
    if (!width || c.bytes < width || c.offset > tensors.n || c.bytes > tensors.n - c.offset)
        return;
    const bool whole = v.dtype != LNT_FLOAT;
    const uint64_t number = whole ? (uint64_t)extreme(f) : some_number(f, width);
    memcpy(tensors.first + c.offset + below(f, c.bytes / width) * width, &number, width);
}

/* A field of a packed record, or which record and which form a constant has. */
static void change_packing(subject *f)
{
    const list packed = list_of(f, LNT_SECTION_PACKED), constants = list_of(f, LNT_SECTION_CONSTANTS),
               values = list_of(f, LNT_SECTION_VALUES);
    const uint32_t i = below(f, constants.n), k = below(f, packed.n), field = below(f, 16);
    uint32_t fields[16];
    lnt_rec_constant c;
    lnt_rec_value v;
    if (below(f, 2) && get(&packed, k, fields)) {
        fields[field] = below(f, 2) ? fields[field] + below(f, 3) - 1 : (uint32_t)extreme(f);
        put(&packed, k, fields);
    } else if (get(&constants, i, &c) && get(&values, c.value, &v)) {
        c.packed = packed.n && below(f, 2) ? below(f, packed.n) : LNT_FILE_NONE;
        v.stored = below(f, 2) ? below(f, 4) : v.stored;
        put(&constants, i, &c);
        put(&values, c.value, &v);
    }
}

/* A record is removed, or one more comes behind it. */
static void change_count(subject *f)
{
    uint32_t n;
    const lnt_rec_section *table = table_of(f->file, &n), *s = table + below(f, n);
    const size_t records = s->bytes / record_bytes(s->kind), at = below(f, records);
    if (!records)
        return;
    if (below(f, 2))
        (void)splice(f, s->kind, at, 1, NULL, 0);
    else
        (void)splice(f, s->kind, at, 0, NULL, 1);
}

static void change_anything(subject *f)
{
    (void)change_number(f->file, &f->seed);
}

static void change_bytes(subject *f)
{
    uint32_t n;
    const lnt_rec_section *table = table_of(f->file, &n), *s = table + below(f, n);
    LLVMFuzzerMutate(f->file + s->offset, s->bytes, s->bytes);
}

/* What is done with the model. */
static void change_recipe(subject *f)
{
    uint64_t recipe;
    uint8_t *place = f->file + offsetof(lnt_rec_header, root_hash);
    memcpy(&recipe, place, sizeof recipe);
    if (below(f, 2))
        recipe ^= UINT64_C(1) << below(f, 64);
    else
        recipe = below(f, 4) ? (uint64_t)next_random(&f->seed) << 32 | next_random(&f->seed) : 0;
    memcpy(place, &recipe, sizeof recipe);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static void (*const ways[])(subject *) = {
        change_extent,  change_extent,  change_extent, reshape,        change_type,     change_type,
        change_rank,    change_operand, change_operand, change_operand_count, change_op, change_node,
        change_attr_number, change_attr_number, change_attr_number, change_attr, change_instr,
        change_subgraph, change_state,  change_constant, change_constant, change_packing, change_count,
        change_anything, change_bytes,  change_recipe, change_recipe};
    subject f = {data, size, max, seed};
    if (below(&f, 32) == 0 || !sound(data, size))
        return LLVMFuzzerMutate(data, size, max);
    for (unsigned n = 1 + below(&f, 3); n > 0 && sound(f.file, f.size); n--) /* the table may have changed */
        ways[below(&f, sizeof ways / sizeof *ways)](&f);
    return f.size;
}

/* File a with one section of file b. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max, unsigned seed)
{
    subject f = {out, 0, max, seed};
    uint32_t n;
    if (!sound(a, a_size) || !sound(b, b_size))
        return 0;
    const lnt_rec_section *table = table_of(b, &n), *s = table + below(&f, n);
    return replace_section(&f, a, s->kind, b + s->offset, s->bytes) ? f.size : 0;
}
