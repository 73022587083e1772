/* test_formats.c — the .lnt file: writing, reading, and refusing what is damaged or hostile. Run from the top
 * of the tree. */
#include "sample_file.h"

#include "base/half.h"
#include "formats/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct image {
    uint8_t *bytes;
    size_t size;
} image;

static image build_from(const sample *s)
{
    image file = {0};
    lnt_error err = {0};
    file.bytes = sample_build(s, &file.size, &err);
    if (!file.bytes)
        fail_msg("%s", err.message);
    return file;
}

static image build_sample(void)
{
    sample s;
    sample_fill(&s);
    return build_from(&s);
}

static void release(image *file)
{
    lnt_free(&lnt_malloc_allocator, file->bytes);
}

/* A copy in a block of exactly size bytes, so that a sanitizer sees any read past it. */
static image copy_of(const image *file, size_t size)
{
    image copy = {lnt_alloc(&lnt_malloc_allocator, size, NULL), size};
    assert_non_null(copy.bytes);
    memcpy(copy.bytes, file->bytes, size);
    return copy;
}

static lnt_rec_section *section_of(const image *file, lnt_section kind)
{
    const lnt_rec_header *h = (const lnt_rec_header *)file->bytes;
    lnt_rec_section *table = (lnt_rec_section *)(file->bytes + sizeof *h);
    for (uint32_t i = 0; i < h->n_sections; i++)
        if (table[i].kind == (uint32_t)kind)
            return &table[i];
    fail_msg("no section %d", kind);
    return NULL;
}

/* Does the message say where the fault is? */
static bool names_a_place(const char *message)
{
#define X(name, number, text)                                                                                \
    if (strstr(message, text " section"))                                                                    \
        return true;
    LNT_SECTION_LIST(X)
#undef X
    return strstr(message, "unknown section") || strstr(message, "header") ||
           strstr(message, "section table") || strstr(message, "padding");
}

static void expect_refused(const image *file, const char *what)
{
    lnt_error err = {0};
    lnt_file f;
    const lnt_status status = lnt_file_check(file->bytes, file->size, true, &f, &err);
    if (status != LNT_E_FILE || err.code != LNT_E_FILE || !names_a_place(err.message))
        fail_msg("%s: status %d, message \"%s\"", what, status, err.message);
}

static uint64_t sum_bytes(const void *bytes, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((const uint8_t *)bytes)[i];
    return sum;
}

static uint64_t touch_attrs(const lnt_file *f)
{
    enum { INT = 1, FLOAT, STRING, INTS, FLOATS, STRINGS, TENSOR, GRAPH };
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->n_attrs; i++) {
        const lnt_rec_attr *a = &f->attrs[i];
        const uint32_t *list = (const uint32_t *)(f->attr_data + a->data);
        sum += strlen(f->strings + a->name);
        if (a->type == INT || a->type == INTS)
            sum += sum_bytes(f->attr_data + a->data, a->count * sizeof(int64_t));
        if (a->type == FLOAT || a->type == FLOATS)
            sum += sum_bytes(f->attr_data + a->data, a->count * sizeof(float));
        if (a->type == STRING)
            sum += sum_bytes(f->strings + a->data, a->count + 1);
        for (uint32_t k = 0; a->type == STRINGS && k < a->count; k++)
            sum += strlen(f->strings + list[k]);
        if (a->type == TENSOR)
            sum += f->constants[f->values[a->data].constant].bytes;
        if (a->type == GRAPH)
            sum += f->subgraphs[a->data].n_nodes;
    }
    return sum;
}

static uint64_t touch_operands(const lnt_file *f, uint32_t first, uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t k = 0; k < n; k++)
        if (f->operands[first + k] != LNT_FILE_NONE)
            sum += f->values[f->operands[first + k]].rank;
    return sum;
}

static uint64_t touch_graph(const lnt_file *f)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        const lnt_rec_node *n = &f->nodes[i];
        sum += strlen(f->strings + n->name);
        sum += touch_operands(f, n->first_operand, (uint64_t)n->n_in + n->n_out);
        sum += n->program == LNT_FILE_NONE ? 0 : f->programs[n->program].n_regs;
        for (uint32_t k = 0; k < n->n_attrs; k++)
            sum += f->attrs[n->first_attr + k].type;
    }
    for (uint32_t i = 0; i < f->n_subgraphs; i++)
        sum += touch_operands(f, f->subgraphs[i].first_operand,
                              (uint64_t)f->subgraphs[i].n_in + f->subgraphs[i].n_out);
    for (uint32_t i = 0; i < f->n_programs; i++)
        sum += sum_bytes(f->instrs + 16 * (size_t)f->programs[i].first_instr, 16u * f->programs[i].n_instr);
    return sum;
}

/* Reads everything that a checked file says is there, the way the runtime does. */
static uint64_t touch_everything(const lnt_file *f)
{
    uint64_t sum = touch_attrs(f) + touch_graph(f);
    for (uint32_t i = 0; i < f->n_values; i++) {
        const lnt_rec_value *v = &f->values[i];
        sum += strlen(f->strings + v->name);
        const lnt_operand o = lnt_file_value(f, i);
        for (unsigned k = 0; k < v->rank && v->rank <= LNT_MAX_RANK; k++)
            if (o.dims[k] < -1)
                sum += strlen(f->strings + f->symbols[-(o.dims[k] + 2)].name);
    }
    for (uint32_t i = 0; i < f->n_constants; i++) {
        const lnt_rec_constant *c = &f->constants[i];
        sum += sum_bytes(f->tensors + c->offset, c->bytes) + f->values[c->value].rank;
    }
    for (uint32_t i = 0; i < f->n_golden; i++) {
        const lnt_rec_golden *g = &f->golden[i];
        if (g->encoding != LNT_GOLDEN_SEEDED)
            sum += sum_bytes(f->attr_data + g->data, g->count * lnt_dtype_size((lnt_dtype)g->dtype));
    }
    for (uint32_t i = 0; i < f->n_metadata; i++)
        sum += strlen(f->strings + f->metadata[i].key) + strlen(f->strings + f->metadata[i].text);
    for (uint32_t i = 0; i < f->n_attachments; i++)
        sum += strlen(f->strings + f->attachments[i].name) +
               sum_bytes(f->attached + f->attachments[i].offset, f->attachments[i].bytes);
    return sum;
}

/* Repairs the hashes and checks; what passes is read as a whole. Returns whether it passed. */
static bool check_repaired(image *file)
{
    lnt_error err = {0};
    lnt_file f;
    if (lnt_file_rehash(file->bytes, file->size, &err) != LNT_OK)
        return false;
    if (lnt_file_check(file->bytes, file->size, true, &f, &err) != LNT_OK) {
        if (err.code != LNT_E_FILE || !names_a_place(err.message))
            fail_msg("message \"%s\"", err.message);
        return false;
    }
    (void)touch_everything(&f);
    return true;
}

/* ---- tests ---- */

static void round_trip(void **state)
{
    (void)state;
    sample s;
    sample_fill(&s);
    image file = build_from(&s);
    lnt_file f;
    lnt_error err = {0};
    if (lnt_file_check(file.bytes, file.size, true, &f, &err) != LNT_OK)
        fail_msg("%s", err.message);
    assert_int_equal(file.size % LNT_FILE_ALIGN, 0);
    assert_int_equal(f.n_values, 9);
    assert_int_equal(f.n_nodes, 5);
    assert_int_equal(f.n_instrs, 2);
    assert_int_equal(f.tensors_bytes, SAMPLE_TENSORS);
    assert_memory_equal(f.values, s.values, sizeof s.values);
    assert_memory_equal(f.attrs, s.attrs, sizeof s.attrs);
    assert_memory_equal(f.golden, s.golden, sizeof s.golden);
    assert_memory_equal(f.attached + f.attachments[1].offset, "second", 6);
    assert_memory_equal(f.tensors, s.tensors, SAMPLE_TENSORS);
    assert_int_equal((uintptr_t)f.tensors % LNT_FILE_ALIGN, 0);
    assert_int_equal(f.constants[1].hash, lnt_hash(s.tensors + SAMPLE_AT_BIAS, 12));
    assert_true(touch_everything(&f) > 0);
    release(&file);
}

static void every_bit_flip_is_refused(void **state)
{
    (void)state;
    image file = build_sample();
    for (size_t i = 0; i < file.size; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            char what[64];
            snprintf(what, sizeof what, "bit %u of byte %zu flipped", bit, i);
            file.bytes[i] ^= (uint8_t)(1u << bit);
            expect_refused(&file, what);
            file.bytes[i] ^= (uint8_t)(1u << bit);
        }
    release(&file);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    image file = build_sample();
    for (size_t size = 0; size < file.size; size++) {
        image shorter = copy_of(&file, size);
        char what[64];
        snprintf(what, sizeof what, "cut to %zu bytes", size);
        expect_refused(&shorter, what);
        if (size >= sizeof(lnt_rec_header)) {
            ((lnt_rec_header *)shorter.bytes)->file_bytes = size;
            check_repaired(&shorter);
        }
        release(&shorter);
    }
    release(&file);
}

static void tampered_files_with_good_hashes_are_safe(void **state)
{
    (void)state;
    image file = build_sample();
    const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    unsigned passed = 0, refused = 0;
    for (size_t i = 0; i < file.size; i++)
        for (unsigned k = 0; k < sizeof values; k++) {
            image copy = copy_of(&file, file.size);
            copy.bytes[i] = values[k];
            *(check_repaired(&copy) ? &passed : &refused) += 1;
            release(&copy);
        }
    assert_true(passed > 100 && refused > 100);
    release(&file);
}

static uint32_t next_random(uint32_t *seed)
{
    return (*seed = *seed * 1664525u + 1013904223u) >> 8;
}

static void randomly_tampered_files_are_safe(void **state)
{
    (void)state;
    enum { TRIES = 20000 };
    const uint32_t words[] = {0, 1, 2, 3, 4, 7, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 64, 0x100};
    image file = build_sample();
    uint32_t seed = 1;
    print_message("seed %u\n", (unsigned)seed);
    for (unsigned t = 0; t < TRIES; t++) {
        image copy = copy_of(&file, file.size);
        for (unsigned n = 1 + next_random(&seed) % 3; n > 0; n--) {
            const size_t at = next_random(&seed) % (uint32_t)(file.size / 4) * 4;
            memcpy(copy.bytes + at, &words[next_random(&seed) % (sizeof words / sizeof *words)], 4);
        }
        check_repaired(&copy);
        release(&copy);
    }
    release(&file);
}

/* The file of a sample with one change must be refused with a message that holds expected. */
static void expect_fault(const sample *s, const char *change, const char *expected)
{
    image file = build_from(s);
    lnt_error err = {0};
    lnt_file f;
    const lnt_status status = lnt_file_check(file.bytes, file.size, false, &f, &err);
    if (status != LNT_E_FILE || !strstr(err.message, expected))
        fail_msg("%s: status %d, \"%s\" lacks \"%s\"", change, status, err.message, expected);
    release(&file);
}

#define HOSTILE(change, expected)                                                                            \
    do {                                                                                                     \
        sample_fill(&s);                                                                                     \
        change;                                                                                              \
        expect_fault(&s, #change, expected);                                                                 \
    } while (0)

static void hostile_values_and_constants(void **state)
{
    (void)state;
    sample s;
    HOSTILE(s.values[0].name = 128, "values section, record 0: its name");
    HOSTILE(s.values[0].dtype = 12 + 2, "element type 14");
    HOSTILE(s.values[0].rank = 9, "rank 9");
    HOSTILE(s.extents[0][0] = -3, "symbol");
    HOSTILE(s.extents[0][0] = INT64_MIN, "symbol");
    HOSTILE(s.values[0].extents = 35, "values section, record 0: its extents lie outside");
    HOSTILE(s.values[0].extents = UINT32_MAX, "values section, record 0: its extents lie outside");
    HOSTILE(s.values[SAMPLE_C].extents = 1, "its extents lie outside");
    HOSTILE(s.extents[5][1] = INT64_MAX, "overflow");
    HOSTILE((s.extents[1][0] = 0, s.values[1].rank = 3, s.extents[1][1] = s.extents[1][2] = 1ll << 40),
            "overflow");
    HOSTILE(s.values[0].order = 1, "storage order");
    HOSTILE(s.values[0].flags = 4, "reserved");
    HOSTILE(s.values[0].flags = LNT_VALUE_TEXT, "numbers of words cannot be of type float");
    HOSTILE(s.values[0].stored = LNT_STORED_PLAIN, "reserved");
    HOSTILE(s.values[SAMPLE_BIAS].stored = LNT_STORED_PLAIN, "does not go with it");
    HOSTILE(s.values[SAMPLE_W].stored = 99, "unknown");
    HOSTILE(s.values[SAMPLE_W].stored = LNT_STORED_INT8, " bytes, its extents need 28");
    HOSTILE(s.values[SAMPLE_BIAS].stored = LNT_STORED_HALF, "has 12 bytes, its extents need 6");
    HOSTILE(s.values[SAMPLE_C].stored = LNT_STORED_HALF, "does not go with it");
    HOSTILE(s.values[SAMPLE_C].stored = LNT_STORED_INT8, "does not go with it");
    HOSTILE(s.values[SAMPLE_W].stored = LNT_STORED_PLAIN, " bytes, its extents need 48");
    HOSTILE((s.values[SAMPLE_W].stored = LNT_STORED_PLAIN, s.constants[0].bytes = 0,
             s.extents[SAMPLE_W][0] = s.packed[0].K = 0, s.extents[SAMPLE_W][1] = s.packed[0].N = 1 << 20,
             s.packed[0].layout = LNT_LAYOUT_PANEL_I8, s.values[SAMPLE_W].dtype = LNT_INT8),
            "grow too much");
    HOSTILE(s.values[0].constant = 0, "not its own");
    HOSTILE(s.values[SAMPLE_W].constant = LNT_FILE_NONE, "constants section, record 0");
    HOSTILE((s.values[SAMPLE_C].constant = LNT_FILE_NONE, s.constants[2].value = 9),
            "constants section, record 2: value 9 is not its own");
    HOSTILE(s.extents[SAMPLE_W][0] = -1, "constants section, record 0: an extent is not known");
    HOSTILE(s.extents[SAMPLE_W][0] = 5, "packed section, record 0");
    HOSTILE(s.extents[SAMPLE_BIAS][0] = 4, "constants section, record 1: has 12 bytes");
    HOSTILE(s.values[SAMPLE_C].dtype = LNT_STRING, "of type string");
    HOSTILE(s.constants[1].offset = SAMPLE_AT_BIAS - 64, "overlaps");
    HOSTILE(s.constants[0].offset = 16, "multiple of 64");
    HOSTILE(s.constants[1].offset = SAMPLE_AT_BIAS + 4, "multiple of 16");
    HOSTILE(s.constants[2].offset = SAMPLE_TENSORS + 63, "outside of the tensors");
    HOSTILE(s.constants[2].bytes = UINT64_MAX, "outside of the tensors");
    HOSTILE(s.constants[0].packed = 1, "packed record 1");
    HOSTILE(s.packed[0].layout ^= LNT_LAYOUT_WIDTHS, "packed section, record 0: is for panels of ");
    HOSTILE(s.packed[0].layout = 99, "packed section, record 0");
    HOSTILE(s.packed[0].layout = LNT_LAYOUT_PANEL_F16, "its extents need 128");
    HOSTILE(s.packed[0].layout = LNT_LAYOUT_GATES_BF16, "packed section, record 0");
    HOSTILE((s.packed[0].layout = LNT_LAYOUT_PANEL_BF16, s.values[SAMPLE_W].dtype = LNT_FLOAT16),
            "constants of another type");
    HOSTILE(s.packed[0].N = UINT32_MAX, "packed section, record 0");
    HOSTILE((s.packed[0].taps = s.packed[0].K = s.packed[0].kernel[0] = 1 << 20, s.packed[0].N = 0,
             s.packed[0].source = LNT_SOURCE_CONV),
            "packed section, record 0");
    HOSTILE((s.values[SAMPLE_W].rank = 3, s.values[SAMPLE_W].order = LNT_ORDER_CHANNELS_LAST,
             s.extents[SAMPLE_W][0] = 1, s.extents[SAMPLE_W][1] = 4, s.extents[SAMPLE_W][2] = 3),
            "not in plain order");
    HOSTILE((s.packed[0].source = LNT_SOURCE_CONVT, s.packed[0].N = 0,
             s.packed[0].phases = s.packed[0].stride[0] = 1 << 17),
            "packed section, record 0: has layout 1");
    HOSTILE(s.operands[s.subgraphs[1].first_operand] = SAMPLE_W, "a packed constant is its output");
}

static void hostile_nodes_and_attributes(void **state)
{
    (void)state;
    sample s;
    HOSTILE(s.operands[0] = 9, "operands section, record 0");
    HOSTILE(s.nodes[0].first_operand = 18, "nodes section, record 0: its operands");
    HOSTILE(s.nodes[0].first_operand = UINT32_MAX, "nodes section, record 0: its operands");
    HOSTILE(s.nodes[0].n_in = UINT16_MAX, "nodes section, record 0: its operands");
    HOSTILE((s.nodes[4].n_in = 2, s.nodes[4].first_operand = 0), "share operands");
    HOSTILE(s.nodes[2].n_attrs = 9, "nodes section, record 2: its attributes");
    HOSTILE(s.nodes[0].n_program_in = 4, "feed its program");
    HOSTILE(s.operands[s.nodes[0].first_operand + 2] = LNT_FILE_NONE, "program is skipped");
    HOSTILE(s.nodes[0].program = 1, "program 1 is not there");
    HOSTILE(s.nodes[0].program = LNT_FILE_NONE, "no program");
    HOSTILE(s.nodes[0].flags = 2, "reserved");
    HOSTILE(s.attrs[3].type = 9, "type 9");
    HOSTILE(s.attrs[3].count = 2, "2 values where there is one");
    HOSTILE(s.attrs[3].data = 4, "its data lies outside");
    HOSTILE(s.attrs[3].data = 96, "its data lies outside");
    HOSTILE(s.attrs[6].count = UINT32_MAX, "its data lies outside");
    HOSTILE(s.attrs[6].data = UINT64_MAX - 7, "its data lies outside");
    HOSTILE(s.attrs[5].count = 3, "its data lies outside");
    HOSTILE((memset(s.attr_data + 48, 0xff, 4)), "string 0 lies outside");
    HOSTILE((memset(s.attr_data, 0, sizeof s.attr_data), s.attrs[8].data = 0, s.attrs[8].count = 20,
             s.attrs[6] = s.attrs[8]),
            "shares its list of strings");
    HOSTILE(s.attrs[9].data = SAMPLE_X, "its data lies outside");
    HOSTILE(s.attrs[0].data = 4, "its data lies outside");
    HOSTILE(s.programs[0].n_instr = 3, "programs section, record 0: its instructions");
    HOSTILE(s.programs[0].n_out = 5, "5 outputs");
    HOSTILE(s.programs[0].out[0] = 2, "register 2 of 2");
    HOSTILE(s.programs[0].epilogue = 2, "epilogue is 2");
    HOSTILE(s.instrs[16 + 7] = 1, "instructions section, record 1");
    HOSTILE(s.strings[127] = 'x', "no end");
    HOSTILE(s.strings[0] = 'x', "empty string");
}

static void hostile_graphs(void **state)
{
    (void)state;
    sample s;
    HOSTILE(s.subgraphs[1].n_nodes = 3, "its nodes lie outside");
    HOSTILE(s.subgraphs[1].n_nodes = 0, "hold 4 nodes");
    HOSTILE((s.subgraphs[1].first_node = 0), "shares node 0");
    HOSTILE(s.subgraphs[1].n_out = UINT32_MAX, "inputs and outputs lie outside");
    HOSTILE(s.operands[s.subgraphs[0].first_operand] = LNT_FILE_NONE, "skipped");
    HOSTILE(s.operands[s.subgraphs[0].first_operand] = SAMPLE_BIAS, "is a constant or made before");
    HOSTILE(s.operands[s.subgraphs[0].first_operand + 1] = SAMPLE_X, "is a constant or made before");
    HOSTILE(s.operands[s.nodes[0].first_operand + 3] = SAMPLE_W, "is a constant or made before");
    HOSTILE(s.operands[s.nodes[0].first_operand] = SAMPLE_M, "nodes section, record 0: uses value 5 (m)");
    HOSTILE(s.operands[s.nodes[2].first_operand] = SAMPLE_THEN, "uses value 7 (then)");
    HOSTILE(s.operands[s.nodes[3].first_operand] = SAMPLE_Y, "nodes section, record 3: uses value 6 (y)");
    HOSTILE(s.operands[s.subgraphs[2].first_operand] = SAMPLE_THEN,
            "subgraphs section, record 2: uses value 7");
    HOSTILE(s.attrs[1].data = 1, "part of two nodes");
    HOSTILE(s.attrs[2].data = 2, "part of two nodes or of itself");
    HOSTILE(s.attrs[2].data = 0, "part of two nodes or of itself");
    HOSTILE(s.attrs[2].type = LNT_FILE_NONE, "attributes section");
    HOSTILE((s.attrs[2] = s.attrs[10]), "subgraphs section, record 3: belongs to no node");
    HOSTILE(s.values[SAMPLE_X].dtype = LNT_UNDEFINED, "input x has no element type");
}

static void hostile_rest(void **state)
{
    (void)state;
    sample s;
    HOSTILE(s.symbols[0].kind = 3, "kind 3");
    HOSTILE(s.symbols[0].value = 9, "value 9");
    HOSTILE(s.symbols[0].axis = 2, "axis 2 of rank 2");
    HOSTILE(s.symbols[0].value = SAMPLE_THEN, "of rank 255");
    HOSTILE(s.symbols[0].bound = -2, "below -1");
    HOSTILE(s.states[0].input = 2, "input 2");
    HOSTILE((s.n_states = 2, s.states[1] = s.states[0]), "belongs to another state");
    HOSTILE((s.n_states = 2, s.states[1].output = s.states[0].output), "belongs to another state");
    HOSTILE((s.states[0].input = 0, s.values[0].dtype = LNT_INT32), "differ in type");
    HOSTILE(s.metadata[0].text = 128, "metadata section, record 0");
    HOSTILE(s.golden[0].role = 1, "seeded");
    HOSTILE(s.golden[0].dtype = LNT_INT8, "seeded");
    HOSTILE(s.golden[0].encoding = 3, "encoding 3");
    HOSTILE(s.golden[1].count = 2, "stores 2 elements where there are 3");
    HOSTILE(s.golden[1].data = 88, "outside of the attribute data");
    HOSTILE(s.golden[1].index = 2, "input or output 2");
    HOSTILE(s.extents[SAMPLE_VALUES + 1][0] = -1, "not known");
    HOSTILE(s.golden[1].extents = 36, "golden vectors section, record 1: its extents lie outside");
    HOSTILE(s.golden[1].test = 1, "not in order");
    HOSTILE(s.golden[2].stride = 0, "stride");
    HOSTILE((memset(&s.golden[2].tolerance, 0xff, 4)), "tolerance");
    HOSTILE(s.attachments[0].name = 128, "attachments section, record 0");
    HOSTILE(s.attachments[1].reserved = 1, "attachments section, record 1");
    HOSTILE(s.attachments[1].offset = 32, "misaligned");
    HOSTILE(s.attachments[1].offset = 128, "outside");
    HOSTILE(s.attachments[1].bytes = 7, "outside");
    HOSTILE(s.attachments[1].bytes = UINT64_MAX, "outside");
}

static void hostile_tables(void **state)
{
    (void)state;
    image file = build_sample();
    const struct {
        lnt_section at;
        uint32_t kind, flags;
        int64_t offset, bytes; /* added */
        const char *message;
    } cases[] = {
        {LNT_SECTION_GOLDEN, LNT_SECTION_METADATA, 0, 0, 0, "two sections of kind 14"},
        {LNT_SECTION_METADATA, 77, LNT_SECTION_REQUIRED, 0, 0, "kind 77 is required and unknown"},
        {LNT_SECTION_METADATA, LNT_SECTION_METADATA, 2, 0, 0, "flags 0x2"},
        {LNT_SECTION_NODES, LNT_SECTION_NODES, 1, 64, -64, "nodes section: starts at"},
        {LNT_SECTION_NODES, LNT_SECTION_NODES, 1, 1, 0, "nodes section: starts at"},
        {LNT_SECTION_NODES, LNT_SECTION_NODES, 1, -64, 0, "nodes section: starts at"},
        {LNT_SECTION_NODES, LNT_SECTION_NODES, 1, 0, 1, "no multiple"},
        {LNT_SECTION_TENSORS, LNT_SECTION_TENSORS, 1, 0, 1 << 20, "past the end"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        image copy = copy_of(&file, file.size);
        lnt_rec_section *s = section_of(&copy, cases[i].at);
        s->kind = cases[i].kind;
        s->flags = cases[i].flags;
        s->offset += (uint64_t)cases[i].offset;
        s->bytes += (uint64_t)cases[i].bytes;
        ((lnt_rec_header *)copy.bytes)->root_hash =
            lnt_hash_root(copy.bytes, ((lnt_rec_header *)copy.bytes)->n_sections);
        lnt_error err = {0};
        lnt_file f;
        assert_int_equal(lnt_file_check(copy.bytes, copy.size, false, &f, &err), LNT_E_FILE);
        if (!strstr(err.message, cases[i].message))
            fail_msg("case %u: \"%s\" lacks \"%s\"", i, err.message, cases[i].message);
        release(&copy);
    }
    release(&file);
}

/* The next section would start behind the end, and there is no room for a table. */
static void tables_that_do_not_fit(void **state)
{
    (void)state;
    image file = build_sample();
    lnt_rec_header *h = (lnt_rec_header *)file.bytes;
    lnt_rec_section *s = (lnt_rec_section *)(file.bytes + sizeof *h);
    lnt_error err = {0};
    lnt_file f;
    const size_t first = s->offset;
    h->file_bytes = first + 1;
    s[0].bytes = 1;
    s[1].offset = first + LNT_FILE_ALIGN;
    h->root_hash = lnt_hash_root(file.bytes, h->n_sections);
    assert_int_equal(lnt_file_check(file.bytes, first + 1, false, &f, &err), LNT_E_FILE);
    assert_non_null(strstr(err.message, "past the end"));
    h->file_bytes = sizeof *h + sizeof *s;
    lnt_error_clear(&err);
    assert_int_equal(lnt_file_check(file.bytes, sizeof *h + sizeof *s, false, &f, &err), LNT_E_FILE);
    assert_non_null(strstr(err.message, "no room for a table"));
    release(&file);
}

/* Memory that nobody writes to is as large as anyone likes. */
static void four_billion_records_are_too_many(void **state)
{
    (void)state;
    const uint64_t bytes = (uint64_t)UINT32_MAX, start = 128, size = start + bytes + 1;
    void *at = size > SIZE_MAX ? MAP_FAILED
                               : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        skip();
    lnt_rec_header *h = at;
    lnt_rec_section *s = (lnt_rec_section *)((uint8_t *)at + sizeof *h);
    lnt_error err = {0};
    lnt_file f;
    memcpy(h->magic, LNT_FILE_MAGIC, sizeof h->magic);
    h->n_sections = 1;
    h->file_bytes = size;
    *s = (lnt_rec_section){.kind = LNT_SECTION_STRINGS, .offset = start, .bytes = bytes};
    h->root_hash = lnt_hash_root(at, 1);
    assert_int_equal(lnt_file_check(at, (size_t)size, false, &f, &err), LNT_E_FILE);
    assert_non_null(strstr(err.message, "strings section: too many records"));
    munmap(at, (size_t)size);
}

static void unknown_optional_sections_are_skipped(void **state)
{
    (void)state;
    image file = build_sample();
    section_of(&file, LNT_SECTION_METADATA)->kind = 77;
    assert_true(check_repaired(&file));
    release(&file);
}

static void nesting_is_limited(void **state)
{
    (void)state;
    enum { DEPTH = LNT_FILE_MAX_NESTING + 1 };
    lnt_rec_subgraph subgraphs[DEPTH] = {0};
    lnt_rec_node nodes[DEPTH - 1] = {0};
    lnt_rec_attr attrs[DEPTH - 1] = {0};
    for (uint32_t i = 0; i < DEPTH - 1; i++) {
        subgraphs[i] = (lnt_rec_subgraph){.first_node = i, .n_nodes = 1};
        nodes[i] = (lnt_rec_node){.op = 1, .n_attrs = 1, .first_attr = i, .program = LNT_FILE_NONE};
        attrs[i] = (lnt_rec_attr){.type = 8, .count = 1, .data = i + 1};
    }
    subgraphs[DEPTH - 1].first_node = DEPTH - 1;
    for (unsigned levels = DEPTH - 1; levels <= DEPTH; levels++) {
        const lnt_section_data sections[] = {
            {LNT_SECTION_STRINGS, "", 1},
            {LNT_SECTION_NODES, nodes, (levels - 1) * sizeof *nodes},
            {LNT_SECTION_ATTRS, attrs, (levels - 1) * sizeof *attrs},
            {LNT_SECTION_SUBGRAPHS, subgraphs, levels * sizeof *subgraphs},
        };
        if (levels == DEPTH - 1)
            subgraphs[levels - 1].n_nodes = 0;
        else
            subgraphs[levels - 2].n_nodes = 1;
        void *bytes = NULL;
        size_t size;
        lnt_error err = {0};
        lnt_file f;
        assert_int_equal(lnt_file_build(sections, 4, &lnt_malloc_allocator, &bytes, &size, &err), LNT_OK);
        const lnt_status status = lnt_file_check(bytes, size, true, &f, &err);
        assert_int_equal(status, levels == DEPTH ? LNT_E_FILE : LNT_OK);
        lnt_free(&lnt_malloc_allocator, bytes);
    }
}

static void unaligned_bytes_are_refused(void **state)
{
    (void)state;
    lnt_file f;
    lnt_error err = {0};
    _Alignas(64) const uint8_t bytes[128] = {0};
    assert_int_equal(lnt_file_check(bytes + 8, 64, false, &f, &err), LNT_E_ARGUMENT);
}

/* Parses the bytes of the ```hex block in FORMAT.md. */
static size_t read_hex_block(const char *path, uint8_t *bytes, size_t capacity)
{
    char line[512];
    size_t n = 0;
    bool inside = false;
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        if (strncmp(line, "```", 3) == 0) {
            if (inside)
                break;
            inside = strcmp(line, "```hex\n") == 0;
            continue;
        }
        if (!inside)
            continue;
        assert_int_equal(strtoul(line, NULL, 16), n);
        unsigned byte;
        int used;
        for (const char *at = line + 8; sscanf(at, "%2x%n", &byte, &used) == 1; at += used) {
            assert_true(n < capacity);
            bytes[n++] = (uint8_t)byte;
        }
    }
    fclose(in);
    return n;
}

/* Two nodes with the same n attributes of MANY. */
static lnt_status share_attributes(uint16_t n, lnt_error *err)
{
    enum { MANY = 40 };
    const lnt_rec_value values[] = {{.dtype = LNT_FLOAT, .constant = LNT_FILE_NONE},
                                    {.dtype = LNT_FLOAT, .constant = LNT_FILE_NONE},
                                    {.dtype = LNT_FLOAT, .constant = LNT_FILE_NONE}};
    const uint32_t operands[] = {0, 2, 0, 1, 1, 2};
    lnt_rec_node nodes[2];
    for (uint32_t i = 0; i < 2; i++)
        nodes[i] = (lnt_rec_node){.op = 1,
                                  .first_operand = 2 + 2 * i,
                                  .n_in = 1,
                                  .n_out = 1,
                                  .n_attrs = n,
                                  .program = LNT_FILE_NONE};
    lnt_rec_attr attrs[MANY];
    for (unsigned i = 0; i < MANY; i++)
        attrs[i] = (lnt_rec_attr){.type = LNT_ATTR_STRING};
    const lnt_rec_subgraph model = {.n_nodes = 2, .n_in = 1, .n_out = 1};
    const lnt_section_data sections[] = {{LNT_SECTION_STRINGS, "", 1},
                                         {LNT_SECTION_VALUES, values, sizeof values},
                                         {LNT_SECTION_NODES, nodes, sizeof nodes},
                                         {LNT_SECTION_OPERANDS, operands, sizeof operands},
                                         {LNT_SECTION_ATTRS, attrs, sizeof attrs},
                                         {LNT_SECTION_SUBGRAPHS, &model, sizeof model}};
    image file = {0};
    lnt_file f;
    assert_int_equal(
        lnt_file_build(sections, 6, &lnt_malloc_allocator, (void **)&file.bytes, &file.size, err), LNT_OK);
    const lnt_status status = lnt_file_check(file.bytes, file.size, true, &f, err);
    release(&file);
    return status;
}

static void nodes_share_a_few_attributes(void **state)
{
    (void)state;
    lnt_error err = {0};
    assert_int_equal(share_attributes(LNT_FILE_SHARED_ATTRS, &err), LNT_OK);
    assert_int_equal(share_attributes(37, &err), LNT_E_FILE);
    assert_non_null(strstr(err.message, "share too many attributes"));
}

/* FORMAT.md's example is what the writer writes for y = Relu(x). */
static void the_documented_example_is_true(void **state)
{
    (void)state;
    enum { X, Y, RELU = 126, X_NAME = 1, Y_NAME = 3 };
    const lnt_rec_value values[] = {
        {.name = X_NAME, .dtype = LNT_FLOAT, .rank = 1, .constant = LNT_FILE_NONE},
        {.name = Y_NAME, .dtype = LNT_FLOAT, .rank = 1, .constant = LNT_FILE_NONE}};
    const int64_t extents[] = {2};
    const uint32_t operands[] = {X, Y, X, Y};
    const lnt_rec_node node = {.op = RELU,
                               .op_version = 1,
                               .name = Y_NAME,
                               .first_operand = 2,
                               .n_in = 1,
                               .n_out = 1,
                               .program = LNT_FILE_NONE};
    const lnt_rec_subgraph model = {.n_nodes = 1, .n_in = 1, .n_out = 1};
    const lnt_section_data sections[] = {{LNT_SECTION_STRINGS, "\0x\0y", 5},
                                         {LNT_SECTION_VALUES, values, sizeof values},
                                         {LNT_SECTION_EXTENTS, extents, sizeof extents},
                                         {LNT_SECTION_NODES, &node, sizeof node},
                                         {LNT_SECTION_OPERANDS, operands, sizeof operands},
                                         {LNT_SECTION_SUBGRAPHS, &model, sizeof model}};
    _Alignas(LNT_FILE_ALIGN) uint8_t documented[1024];
    const size_t n = read_hex_block("formats/FORMAT.md", documented, sizeof documented);
    image file = {0};
    lnt_file f;
    lnt_error err = {0};
    assert_int_equal(
        lnt_file_build(sections, 6, &lnt_malloc_allocator, (void **)&file.bytes, &file.size, &err), LNT_OK);
    assert_int_equal(n, file.size);
    assert_memory_equal(documented, file.bytes, n);
    assert_int_equal(lnt_file_check(documented, n, true, &f, &err), LNT_OK);
    release(&file);
}

static void files_on_disk(void **state)
{
    (void)state;
    char folder[] = "/tmp/lnt-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.lnt", folder);
    image file = build_sample();
    lnt_error err = {0};
    assert_int_equal(lnt_write_atomic(path, "old", 3, &err), LNT_OK);
    assert_int_equal(lnt_write_atomic(path, file.bytes, file.size, &err), LNT_OK);
    for (int copy = 0; copy < 2; copy++) {
        lnt_blob blob;
        lnt_file f;
        assert_int_equal(lnt_blob_open(path, copy, &lnt_malloc_allocator, &blob, &err), LNT_OK);
        assert_int_equal(blob.size, file.size);
        assert_int_equal(lnt_file_check(blob.bytes, blob.size, true, &f, &err), LNT_OK);
        lnt_blob_close(&blob);
        lnt_blob_close(&blob);
    }
    lnt_blob blob;
    assert_int_equal(lnt_write_atomic(path, "", 0, &err), LNT_OK);
    assert_int_equal(lnt_blob_open(path, false, &lnt_malloc_allocator, &blob, &err), LNT_E_FILE);
    assert_non_null(strstr(err.message, "empty"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left behind */
    err = (lnt_error){0};
    assert_int_equal(lnt_blob_open(path, false, &lnt_malloc_allocator, &blob, &err), LNT_E_IO);
    assert_int_equal(lnt_blob_open("/tmp", false, &lnt_malloc_allocator, &blob, NULL), LNT_E_IO);
    assert_int_equal(lnt_write_atomic(path, "x", 1, NULL), LNT_E_IO);
    assert_int_equal(lnt_write_atomic("/dev/null", "x", 1, NULL), LNT_OK);
    release(&file);
}

/* A trailer that puts the model among its own bytes: nothing lies between the two. */
static void a_bundle_whose_model_begins_in_its_trailer(void **state)
{
    (void)state;
    enum { TRAILER = 24 };
    static uint8_t bytes[LNT_BUNDLE_ALIGN + TRAILER];
    char folder[] = "/tmp/lnt-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/bundle", folder);
    for (size_t behind = 0; behind <= TRAILER; behind++) {
        const size_t size = LNT_BUNDLE_ALIGN + behind;
        const uint64_t trailer[] = {LNT_BUNDLE_ALIGN, behind == TRAILER ? 1 : LNT_BUNDLE_ALIGN};
        lnt_blob blob;
        memcpy(bytes + size - TRAILER, trailer, sizeof trailer);
        memcpy(bytes + size - 8, LNT_BUNDLE_MAGIC, 8);
        assert_int_equal(lnt_write_atomic(path, bytes, size, NULL), LNT_OK);
        assert_false(lnt_blob_is_bundle(path));
        assert_int_equal(lnt_blob_open(path, false, &lnt_malloc_allocator, &blob, NULL), LNT_OK);
        assert_int_equal(blob.size, size); /* any file */
        lnt_blob_close(&blob);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- floats of 16 bits ---- */

/* Elements that rounding changes, overflows, or makes subnormal or 0. */
static float odd_float(size_t i)
{
    static const float some[] = {0.1f, -3.14159f, 70000.0f, 1e-6f, -1e-9f, 0.0f, 65504.0f, 1.00048828125f};
    return i % 3 ? some[i % 8] : (float)i * 0.37f;
}

/* Panels of 16 bits are those of floats, element by element rounded; unpacked, each is where it was. */
static void expect_halves(const lnt_packed *wide, lnt_dtype type)
{
    enum { MOST = 4096 };
    static float plain[MOST], back[MOST];
    static _Alignas(64) float panels[2 * MOST];
    static _Alignas(64) uint16_t halves[2 * MOST];
    const lnt_packed narrow = lnt_packed_as(wide, type);
    const size_t n = (size_t)wide->groups * wide->K * wide->N * wide->gates;
    size_t wide_bytes, narrow_bytes;
    assert_int_equal(lnt_packed_element(&narrow), type);
    assert_true(lnt_packed_bytes(wide, &wide_bytes));
    assert_true(lnt_packed_bytes(&narrow, &narrow_bytes));
    assert_int_equal(wide_bytes, 2 * narrow_bytes);
    assert_true(n <= MOST && wide_bytes <= sizeof panels);
    for (size_t i = 0; i < n; i++)
        plain[i] = odd_float(i);
    lnt_pack(wide, LNT_FLOAT, plain, panels);
    lnt_pack(&narrow, LNT_FLOAT, plain, halves);
    lnt_unpack(&narrow, LNT_FLOAT, halves, back);
    for (size_t i = 0; i < wide_bytes / sizeof(float); i++)
        assert_int_equal(halves[i],
                         type == LNT_FLOAT16 ? lnt_float_to_f16(panels[i]) : lnt_float_to_bf16(panels[i]));
    for (size_t i = 0; i < n; i++)
        assert_true(back[i] == (type == LNT_FLOAT16 ? lnt_f16_to_float(lnt_float_to_f16(plain[i]))
                                                    : lnt_bf16_to_float(lnt_float_to_bf16(plain[i]))));
}

static void panels_of_halves_are_those_of_floats(void **state)
{
    (void)state;
    lnt_packed wide[] = {
        lnt_packed_panels(LNT_SOURCE_KN, 2, 7, 33),    lnt_packed_panels(LNT_SOURCE_NK, 1, 9, 17),
        lnt_packed_panels(LNT_SOURCE_CONV, 2, 18, 20), lnt_packed_panels(LNT_SOURCE_CONVT, 1, 15, 5),
        lnt_packed_panels(LNT_SOURCE_CONV, 19, 9, 1),  lnt_packed_panels(LNT_SOURCE_GATES, 2, 5, 18)};
    for (unsigned i = 2; i < 5; i++)
        wide[i].kernel[0] = wide[i].taps = i == 3 ? 5 : 9;
    wide[3].phases = wide[3].stride[0] = 2;
    wide[4].layout = LNT_LAYOUT_DEPTHWISE_F32;
    wide[5].layout = LNT_LAYOUT_GATES_F32;
    wide[5].gates = 3;
    for (unsigned i = 0; i < sizeof wide / sizeof *wide; i++) {
        expect_halves(&wide[i], LNT_FLOAT16);
        expect_halves(&wide[i], LNT_BFLOAT16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(a_bundle_whose_model_begins_in_its_trailer),
        cmocka_unit_test(every_bit_flip_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(tampered_files_with_good_hashes_are_safe),
        cmocka_unit_test(randomly_tampered_files_are_safe),
        cmocka_unit_test(hostile_values_and_constants),
        cmocka_unit_test(hostile_nodes_and_attributes),
        cmocka_unit_test(hostile_graphs),
        cmocka_unit_test(hostile_rest),
        cmocka_unit_test(hostile_tables),
        cmocka_unit_test(tables_that_do_not_fit),
        cmocka_unit_test(four_billion_records_are_too_many),
        cmocka_unit_test(unknown_optional_sections_are_skipped),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(unaligned_bytes_are_refused),
        cmocka_unit_test(the_documented_example_is_true),
        cmocka_unit_test(nodes_share_a_few_attributes),
        cmocka_unit_test(files_on_disk),
        cmocka_unit_test(panels_of_halves_are_those_of_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
