/* sample_file.h — a small .lnt with a record of every kind, for tests of the file format.
 *
 *   y, h' = model(x: float [T, 4], h: float [3])         T is a symbol, h' -> h a state
 *     m = MatMul(x, W packed) + bias by an epilogue program
 *     y = If(c, {then: Relu(m)}, {else: Loop-like node with a body of its own})
 *     h' = node with attributes of every type */
#ifndef TESTS_SAMPLE_FILE_H
#define TESTS_SAMPLE_FILE_H

#include "formats/golden.h"
#include "formats/lnt_file.h"
#include "formats/stored.h"

#include <string.h>

enum { SAMPLE_NONE = -1 };

/* Sections of the sample, open to changes before sample_build. */
/* Where constants begin, and bytes of all: W is one panel of 4 rows. */
enum {
    SAMPLE_AT_BIAS = 4 * LNT_PANEL * sizeof(float),
    SAMPLE_AT_C = SAMPLE_AT_BIAS + 16,
    SAMPLE_TENSORS = SAMPLE_AT_C + 49
};

enum { SAMPLE_VALUES = 9, SAMPLE_GOLDEN = 3, SAMPLE_RANK = 3 };

typedef struct sample {
    char strings[128];
    lnt_rec_value values[SAMPLE_VALUES];
    int64_t extents[SAMPLE_VALUES + SAMPLE_GOLDEN][SAMPLE_RANK]; /* of values, then of golden vectors */
    lnt_rec_constant constants[3];
    lnt_packed packed[1];
    lnt_rec_node nodes[5];
    uint32_t operands[19];
    lnt_rec_attr attrs[11];
    uint8_t attr_data[96];
    lnt_rec_program programs[1];
    uint8_t instrs[32];
    lnt_rec_subgraph subgraphs[4];
    lnt_rec_symbol symbols[1];
    lnt_rec_state states[2];
    lnt_rec_metadata metadata[1];
    lnt_rec_golden golden[SAMPLE_GOLDEN];
    lnt_rec_attachment attachments[2];
    uint8_t attached[70];
    uint8_t tensors[SAMPLE_AT_BIAS + 256];
    unsigned n_states;
} sample;

/* Offset of text in the sample's strings. */
static uint32_t sample_string(const sample *s, const char *text)
{
    for (size_t i = 0; i < sizeof s->strings; i++)
        if (strcmp(s->strings + i, text) == 0)
            return (uint32_t)i;
    return LNT_FILE_NONE;
}

enum { SAMPLE_X, SAMPLE_H, SAMPLE_W, SAMPLE_BIAS, SAMPLE_C, SAMPLE_M, SAMPLE_Y, SAMPLE_THEN, SAMPLE_H2 };

static void sample_value(sample *s, unsigned i, const char *name, lnt_dtype dtype, unsigned rank, int64_t d0,
                         int64_t d1, uint32_t constant)
{
    s->values[i] = (lnt_rec_value){.name = sample_string(s, name),
                                   .dtype = (uint8_t)dtype,
                                   .rank = (uint8_t)rank,
                                   .constant = constant,
                                   .extents = rank > 0 && rank <= LNT_MAX_RANK ? SAMPLE_RANK * i : 0};
    s->extents[i][0] = d0;
    s->extents[i][1] = d1;
}

static void sample_values(sample *s)
{
    enum { T = -2 };
    sample_value(s, SAMPLE_X, "x", LNT_FLOAT, 2, T, 4, LNT_FILE_NONE);
    sample_value(s, SAMPLE_H, "h", LNT_FLOAT, 1, 3, 0, LNT_FILE_NONE);
    sample_value(s, SAMPLE_W, "W", LNT_FLOAT, 2, 4, 3, 0);
    sample_value(s, SAMPLE_BIAS, "bias", LNT_FLOAT, 1, 3, 0, 1);
    sample_value(s, SAMPLE_C, "c", LNT_BOOL, 0, 0, 0, 2);
    sample_value(s, SAMPLE_M, "m", LNT_FLOAT, 2, T, 3, LNT_FILE_NONE);
    sample_value(s, SAMPLE_Y, "y", LNT_FLOAT, 2, T, 3, LNT_FILE_NONE);
    sample_value(s, SAMPLE_THEN, "then", LNT_UNDEFINED, LNT_RANK_UNKNOWN, 0, 0, LNT_FILE_NONE);
    sample_value(s, SAMPLE_H2, "h2", LNT_FLOAT, 1, 3, 0, LNT_FILE_NONE);
    s->constants[0] = (lnt_rec_constant){.value = SAMPLE_W, .packed = 0, .offset = 0, .bytes = SAMPLE_AT_BIAS};
    s->constants[1] =
        (lnt_rec_constant){.value = SAMPLE_BIAS, .packed = LNT_FILE_NONE, .offset = SAMPLE_AT_BIAS, .bytes = 12};
    s->constants[2] =
        (lnt_rec_constant){.value = SAMPLE_C, .packed = LNT_FILE_NONE, .offset = SAMPLE_AT_C, .bytes = 1};
    s->packed[0] = lnt_packed_panels(LNT_SOURCE_KN, 1, 4, 3);
    const float w[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, bias[3] = {.5f, 1, 1.5f};
    float panel[4 * LNT_PANEL];
    lnt_pack(&s->packed[0], LNT_FLOAT, w, panel);
    memcpy(s->tensors, panel, sizeof panel);
    memcpy(s->tensors + SAMPLE_AT_BIAS, bias, sizeof bias);
    s->tensors[SAMPLE_AT_C] = 1;
}

static void sample_attrs(sample *s)
{
    const int64_t ints[4] = {7, 1, 2, 3};
    const float floats[3] = {0.5f, 1, 2};
    memcpy(s->attr_data, ints, sizeof ints);
    memcpy(s->attr_data + 32, floats, sizeof floats);
    memcpy(s->attr_data + 48, (uint32_t[2]){sample_string(s, "x"), sample_string(s, "relu")}, 8);
    const uint32_t a = sample_string(s, "a");
    s->attrs[0] = (lnt_rec_attr){.name = a, .type = 8, .count = 1, .data = 1}; /* then */
    s->attrs[1] = (lnt_rec_attr){.name = a, .type = 8, .count = 1, .data = 2}; /* else */
    s->attrs[2] = (lnt_rec_attr){.name = a, .type = 8, .count = 1, .data = 3}; /* body */
    s->attrs[3] = (lnt_rec_attr){.name = a, .type = 1, .count = 1, .data = 0};
    s->attrs[4] = (lnt_rec_attr){.name = a, .type = 2, .count = 1, .data = 32};
    s->attrs[5] = (lnt_rec_attr){.name = a, .type = 3, .count = 4, .data = sample_string(s, "relu")};
    s->attrs[6] = (lnt_rec_attr){.name = a, .type = 4, .count = 3, .data = 8};
    s->attrs[7] = (lnt_rec_attr){.name = a, .type = 5, .count = 3, .data = 32};
    s->attrs[8] = (lnt_rec_attr){.name = a, .type = 6, .count = 2, .data = 48};
    s->attrs[9] = (lnt_rec_attr){.name = a, .type = 7, .count = 1, .data = SAMPLE_BIAS};
    s->attrs[10] = (lnt_rec_attr){.name = a, .type = 4, .count = 0, .data = 0};
}

/* Appends operands of a node or subgraph; returns where they start. */
static uint32_t sample_operands(sample *s, unsigned *used, const int *list, unsigned n)
{
    const uint32_t first = *used;
    for (unsigned i = 0; i < n; i++)
        s->operands[(*used)++] = (uint32_t)list[i];
    return first;
}

static void sample_graph(sample *s)
{
    enum { MAIN, THEN, ELSE, BODY };
    unsigned used = 0;
#define OPERANDS(...)                                                                                        \
    sample_operands(s, &used, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))
    s->nodes[0] =
        (lnt_rec_node){.op = 200, .op_version = 1, .name = sample_string(s, "m"), .n_in = 3, .n_out = 1};
    s->nodes[0].n_program_in = 1;
    s->nodes[0].first_operand = OPERANDS(SAMPLE_X, SAMPLE_W, SAMPLE_BIAS, SAMPLE_M);
    s->nodes[1] =
        (lnt_rec_node){.op = 700, .op_version = 1, .name = sample_string(s, "y"), .n_in = 1, .n_out = 1};
    s->nodes[1].first_operand = OPERANDS(SAMPLE_C, SAMPLE_Y);
    s->nodes[1].n_attrs = 2;
    s->nodes[2] = (lnt_rec_node){.op = 500, .op_version = 1, .n_in = 2, .n_out = 1};
    s->nodes[2].flags = LNT_NODE_EVALUATE_EARLY;
    s->nodes[2].first_operand = OPERANDS(SAMPLE_H, SAMPLE_NONE, SAMPLE_H2);
    s->nodes[2].first_attr = 3;
    s->nodes[2].n_attrs = 8;
    s->nodes[3] =
        (lnt_rec_node){.op = 100, .op_version = 1, .name = sample_string(s, "relu"), .n_in = 1, .n_out = 1};
    s->nodes[3].first_operand = OPERANDS(SAMPLE_M, SAMPLE_THEN);
    s->nodes[4] = (lnt_rec_node){.op = 701, .op_version = 1, .n_in = 1, .n_out = 0};
    s->nodes[4].first_operand = OPERANDS(SAMPLE_M);
    s->nodes[4].first_attr = 2;
    s->nodes[4].n_attrs = 1;
    for (unsigned i = 1; i < 5; i++)
        s->nodes[i].program = LNT_FILE_NONE;
    s->subgraphs[MAIN] = (lnt_rec_subgraph){.n_nodes = 3, .n_in = 2, .n_out = 2};
    s->subgraphs[MAIN].first_operand = OPERANDS(SAMPLE_X, SAMPLE_H, SAMPLE_Y, SAMPLE_H2);
    s->subgraphs[THEN] = (lnt_rec_subgraph){.first_node = 3, .n_nodes = 1, .n_out = 1};
    s->subgraphs[THEN].first_operand = OPERANDS(SAMPLE_THEN);
    s->subgraphs[ELSE] = (lnt_rec_subgraph){.first_node = 4, .n_nodes = 1, .n_out = 1};
    s->subgraphs[ELSE].first_operand = OPERANDS(SAMPLE_M);
    s->subgraphs[BODY] = (lnt_rec_subgraph){.first_node = 5, .n_out = 1};
    s->subgraphs[BODY].first_operand = OPERANDS(SAMPLE_X);
#undef OPERANDS
}

static void sample_fill(sample *s)
{
    *s = (sample){.strings = "\0x\0h\0W\0bias\0c\0m\0y\0then\0h2\0a\0relu\0T\0author\0nobody"};
    sample_values(s);
    sample_attrs(s);
    sample_graph(s);
    s->programs[0] = (lnt_rec_program){.n_instr = 2, .n_in = 1, .n_out = 1, .n_regs = 2, .epilogue = 1};
    memcpy(s->instrs, (uint8_t[]){2, 0, 0, 1}, 4);
    memcpy(s->instrs + 16, (uint8_t[]){27, 0, 0}, 3);
    s->symbols[0] = (lnt_rec_symbol){.name = sample_string(s, "T"), .value = SAMPLE_X, .bound = -1};
    s->states[0] = (lnt_rec_state){.output = 1, .input = 1};
    s->n_states = 1;
    s->metadata[0] = (lnt_rec_metadata){sample_string(s, "author"), sample_string(s, "nobody")};
    s->attachments[0] = (lnt_rec_attachment){.name = sample_string(s, "author"), .bytes = 5};
    s->attachments[1] = (lnt_rec_attachment){.name = sample_string(s, "nobody"), .offset = 64, .bytes = 6};
    memcpy(s->attached, "first", 5);
    memcpy(s->attached + 64, "second", 6);
    s->golden[0] = (lnt_rec_golden){.encoding = LNT_GOLDEN_SEEDED, .dtype = LNT_FLOAT, .rank = 2};
    s->golden[0].data = 42;
    s->golden[1] = (lnt_rec_golden){.index = 1, .dtype = LNT_FLOAT, .rank = 1, .data = 56, .count = 3};
    s->golden[2] =
        (lnt_rec_golden){.role = LNT_GOLDEN_OUTPUT, .encoding = LNT_GOLDEN_SAMPLED, .dtype = LNT_FLOAT};
    s->golden[2].rank = 2;
    const int64_t extents[SAMPLE_GOLDEN][SAMPLE_RANK] = {{5, 4}, {3}, {5, 3}};
    memcpy(s->extents + SAMPLE_VALUES, extents, sizeof extents);
    for (unsigned i = 0; i < SAMPLE_GOLDEN; i++)
        s->golden[i].extents = SAMPLE_RANK * (SAMPLE_VALUES + i);
    s->golden[2].stride = 4;
    s->golden[2].count = 4;
    s->golden[2].data = 72;
    s->golden[2].tolerance = 1e-3f;
}

/* The file of a sample; NULL with *err set. Freed with lnt_free. */
static void *sample_build(const sample *s, size_t *size, lnt_error *err)
{
#define SECTION(kind, member)                                                                                \
    {                                                                                                        \
        LNT_SECTION_##kind, s->member, sizeof s->member                                                      \
    }
    const lnt_section_data sections[] = {
        SECTION(STRINGS, strings),
        SECTION(VALUES, values),
        SECTION(EXTENTS, extents),
        SECTION(CONSTANTS, constants),
        SECTION(PACKED, packed),
        SECTION(NODES, nodes),
        SECTION(OPERANDS, operands),
        SECTION(ATTRS, attrs),
        SECTION(ATTR_DATA, attr_data),
        SECTION(PROGRAMS, programs),
        SECTION(INSTRS, instrs),
        SECTION(SUBGRAPHS, subgraphs),
        SECTION(SYMBOLS, symbols),
        {LNT_SECTION_STATES, s->states, s->n_states * sizeof *s->states},
        SECTION(METADATA, metadata),
        SECTION(GOLDEN, golden),
        SECTION(ATTACHMENTS, attachments),
        SECTION(ATTACHED, attached),
        {LNT_SECTION_TENSORS, s->tensors, SAMPLE_TENSORS},
    };
#undef SECTION
    void *image = NULL;
    lnt_file_build(sections, sizeof sections / sizeof *sections, &lnt_malloc_allocator, &image, size, err);
    return image;
}

#endif
