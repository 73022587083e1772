/* lnt_format.h — the .lnt file as C structs. FORMAT.md is the specification; this header follows it.
 *
 *   +--------+---------------+---------+--------+-----+-------------+
 *   | header | section table | strings | values | ... | tensor data |     every section 64-byte aligned,
 *   +--------+---------------+---------+--------+-----+-------------+     zero padding, little-endian
 *
 * Records have a fixed size; a section's record count is its bytes / record size. Offsets, never pointers.
 * Strings are byte offsets into the strings section (NUL-terminated UTF-8; offset 0 is ""). */
#ifndef LNT_FORMATS_LNT_FORMAT_H
#define LNT_FORMATS_LNT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LNT_FILE_MAGIC "\x89LNT\r\n\x1a\n"
enum { LNT_FILE_VERSION = 0, LNT_FILE_ALIGN = 64, LNT_FILE_ALIGN_FEW = 16 };
/* What a constant of so many bytes starts at a multiple of: vectors are read from lines, numbers wherever. */
static inline unsigned lnt_constant_align(uint64_t bytes)
{
    return bytes <= LNT_FILE_ALIGN_FEW ? LNT_FILE_ALIGN_FEW : LNT_FILE_ALIGN;
}
/* Ends a program that carries a model; the model starts at a multiple of every page size there is. */
#define LNT_BUNDLE_MAGIC "\x89LNTBNDL"
enum { LNT_BUNDLE_ALIGN = 65536 };
#define LNT_FILE_NONE UINT32_MAX

/* Limits, so that readers need neither deep recursion nor unbounded tables. */
enum {
    LNT_FILE_MAX_SECTIONS = 64,
    LNT_FILE_SHARED_ATTRS = 16, /* of a list that several nodes have */
    LNT_FILE_MAX_NESTING = 64   /* subgraphs within subgraphs, the model included */
};

typedef struct lnt_rec_header { /* 64 bytes at offset 0 */
    uint8_t magic[8];
    uint32_t version;
    uint32_t n_sections;
    uint64_t file_bytes;
    uint64_t root_hash; /* XXH3-64 of header (this field 0) and section table */
    uint64_t reserved[4];
} lnt_rec_header;

typedef struct lnt_rec_section { /* 32 bytes, n_sections of them behind the header */
    uint32_t kind;               /* lnt_section */
    uint32_t flags;              /* LNT_SECTION_REQUIRED or 0 */
    uint64_t offset;
    uint64_t bytes; /* without padding */
    uint64_t hash;  /* XXH3-64 of the bytes; of tensor data: of its tensors' hashes in order */
} lnt_rec_section;

/* X(identifier, number, text). Numbers are never reused. Records are described below; strings, attribute data
 * and tensors are bytes. Every kind occurs at most once; an empty section may be left out. */
/* clang-format off */
#define LNT_SECTION_LIST(X)                                                        \
    X(STRINGS, 1, "strings")                                                       \
    X(VALUES, 17, "values")                                                        \
    X(EXTENTS, 18, "extents")         /* int64 */                                  \
    X(CONSTANTS, 3, "constants")      /* in order of offset, which is first use */ \
    X(PACKED, 4, "packed")            /* lnt_packed records (packed.h) */          \
    X(NODES, 5, "nodes")              /* the instruction stream */                 \
    X(OPERANDS, 6, "operands")        /* uint32 value numbers, NONE for skipped */ \
    X(ATTRS, 7, "attributes")                                                      \
    X(ATTR_DATA, 8, "attribute data") /* int64, float, uint32: 8-byte aligned */   \
    X(PROGRAMS, 9, "programs")                                                     \
    X(INSTRS, 10, "instructions")     /* lnt_instr records, 16 bytes */            \
    X(SUBGRAPHS, 11, "subgraphs")     /* number 0 is the model itself */           \
    X(SYMBOLS, 12, "symbols")                                                      \
    X(STATES, 13, "states")                                                        \
    X(METADATA, 14, "metadata")                                                    \
    X(GOLDEN, 19, "golden vectors")                                                \
    X(ATTACHMENTS, 20, "attachments")                                              \
    X(ATTACHED, 21, "attached bytes")                                              \
    X(TENSORS, 16, "tensors")         /* data of constants */
/* clang-format on */

typedef enum lnt_section {
#define X(name, number, text) LNT_SECTION_##name = number,
    LNT_SECTION_LIST(X)
#undef X
} lnt_section;

/* Above all numbers; and those of values and golden vectors that held their extents themselves. */
enum { LNT_SECTION_KINDS = 22, LNT_SECTION_OLD_VALUES = 2, LNT_SECTION_OLD_GOLDEN = 15 };

enum { LNT_SECTION_REQUIRED = 1 }; /* lnt_rec_section.flags: who does not know the kind refuses the file */

/* lnt_rec_value.flags */
enum {
    LNT_VALUE_FEEDS_SHAPES = 1, /* extents depend on its contents */
    LNT_VALUE_TEXT = 2          /* int64: numbers of words */
};
/* The attachment of the words that the model itself knows. */
#define LNT_WORDS_NAME "linnet.words"

typedef struct lnt_rec_value { /* 20 bytes */
    uint32_t name;
    uint8_t dtype;
    uint8_t rank;      /* 255 unknown */
    uint8_t order;     /* lnt_order */
    uint8_t flags;     /* LNT_VALUE_* */
    uint32_t constant; /* record in constants, or NONE */
    uint32_t stored;   /* lnt_stored (stored.h): what the bytes of a constant are in the file */
    uint32_t extents;  /* the first record of its rank's extents: >= 0 known, -1 unknown, below: symbols */
} lnt_rec_value;

/* An extent that is symbol k is -2 - k. */
static inline int64_t lnt_symbol_extent(uint32_t symbol)
{
    return -2 - (int64_t)symbol;
}

static inline bool lnt_is_symbol(int64_t extent)
{
    return extent <= -2;
}

/* The number of that symbol. */
static inline int64_t lnt_symbol_number(int64_t extent)
{
    return -2 - extent;
}

typedef struct lnt_rec_constant { /* 32 bytes */
    uint32_t value;
    uint32_t packed; /* record in packed, or NONE for ONNX order */
    uint64_t offset; /* from the start of the tensors section, 64-byte aligned */
    uint64_t bytes;
    uint64_t hash; /* XXH3-64 of the bytes */
} lnt_rec_constant;

/* lnt_rec_node.flags: computed at bind as soon as its inputs are known, because extents depend on it. */
enum { LNT_NODE_EVALUATE_EARLY = 1 };

typedef struct lnt_rec_node { /* 40 bytes */
    uint16_t op, op_version;
    uint32_t name;
    uint32_t first_operand; /* n_in inputs, then n_out outputs; NONE where skipped */
    uint16_t n_in, n_out;
    uint16_t n_program_in; /* of n_in: the last ones feed the program */
    uint16_t n_attrs;
    uint32_t first_attr;
    uint32_t program; /* or NONE */
    uint32_t flags;   /* LNT_NODE_EVALUATE_EARLY or 0 */
    uint32_t reserved[2];
} lnt_rec_node;

typedef enum lnt_attr_type {
    LNT_ATTR_INT = 1,
    LNT_ATTR_FLOAT = 2,
    LNT_ATTR_STRING = 3, /* one string, NUL-terminated; its count is its length */
    LNT_ATTR_INTS = 4,
    LNT_ATTR_FLOATS = 5,
    LNT_ATTR_STRINGS = 6, /* count strings */
    LNT_ATTR_TENSOR = 7,  /* a constant */
    LNT_ATTR_GRAPH = 8    /* a subgraph */
} lnt_attr_type;

typedef struct lnt_rec_attr { /* 24 bytes */
    uint32_t name;
    uint32_t type;  /* lnt_attr_type */
    uint32_t count; /* values; length of a string; 1 for int, float, tensor, graph */
    uint32_t reserved;
    uint64_t data; /* int(s), float(s), strings (uint32 each): byte offset in attribute data;
                      string: string offset; tensor: value number; graph: subgraph number */
} lnt_rec_attr;

typedef struct lnt_rec_program { /* 32 bytes */
    uint32_t first_instr;
    uint16_t n_instr;
    uint8_t n_in, n_out, n_regs;
    uint8_t epilogue; /* 0 or 1 */
    uint8_t out[4];
    uint8_t reserved[18];
} lnt_rec_program;

typedef struct lnt_rec_subgraph { /* 32 bytes */
    uint32_t name;
    uint32_t first_node, n_nodes;
    uint32_t first_operand; /* n_in inputs, then n_out outputs */
    uint32_t n_in, n_out;
    uint32_t reserved[2];
} lnt_rec_subgraph;

typedef enum lnt_symbol_kind {
    LNT_SYMBOL_INPUT_EXTENT = 0, /* extent of an input */
    LNT_SYMBOL_DATA_EXTENT = 1,  /* extent that depends on data */
    LNT_SYMBOL_DATA_VALUE = 2    /* value that depends on data, and that extents depend on */
} lnt_symbol_kind;

typedef struct lnt_rec_symbol { /* 32 bytes: unknown until bind or run */
    uint32_t name; /* of the ONNX dim_param, or VALUE:AXIS, or the value's name */
    uint32_t kind; /* lnt_symbol_kind */
    uint32_t value;
    uint32_t axis; /* of extents; else 0 */
    int64_t bound; /* largest extent or value; -1 none */
    uint64_t reserved;
} lnt_rec_symbol;

typedef struct lnt_rec_state { /* 16 bytes: output number feeds input number of the next run */
    uint32_t output, input;
    uint32_t reserved[2];
} lnt_rec_state;

typedef struct lnt_rec_metadata { /* 8 bytes */
    uint32_t key, text;
} lnt_rec_metadata;

typedef struct lnt_rec_attachment { /* 24 bytes: a file that is no concern of the model's */
    uint32_t name;
    uint32_t reserved;
    uint64_t offset; /* from the start of the attached bytes, 64-byte aligned */
    uint64_t bytes;
} lnt_rec_attachment;

typedef enum lnt_golden_origin {
    LNT_GOLDEN_RECORDED = 0,  /* a recorded case */
    LNT_GOLDEN_REFERENCE = 1, /* a run of the unoptimized model */
    LNT_GOLDEN_OWN = 2        /* a run of the file's own operators */
} lnt_golden_origin;

typedef enum lnt_golden_role { LNT_GOLDEN_INPUT = 0, LNT_GOLDEN_OUTPUT = 1 } lnt_golden_role;

typedef enum lnt_golden_encoding {
    LNT_GOLDEN_RAW = 0,
    LNT_GOLDEN_SEEDED = 1, /* inputs: elements follow from a seed (golden.h) */
    LNT_GOLDEN_SAMPLED = 2 /* outputs: every stride-th element */
} lnt_golden_encoding;

typedef struct lnt_rec_golden { /* 48 bytes: one tensor of a recorded case */
    uint32_t test;              /* number of the case, rising */
    uint32_t origin;            /* lnt_golden_origin */
    uint16_t role;              /* lnt_golden_role */
    uint16_t encoding;          /* lnt_golden_encoding */
    uint32_t index;             /* number of the model's input or output */
    uint16_t dtype, rank;
    uint32_t extents; /* the first record of its extents */
    uint32_t count;   /* elements stored */
    float tolerance;  /* relative to the largest magnitude */
    uint64_t data;    /* raw, sampled: byte offset in attribute data; seeded: the seed */
    uint64_t stride;  /* sampled: element i * stride is stored at i */
} lnt_rec_golden;

_Static_assert(sizeof(lnt_rec_header) == 64, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_section) == 32, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_value) == 20, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_constant) == 32, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_node) == 40, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_attr) == 24, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_program) == 32, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_subgraph) == 32, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_symbol) == 32, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_state) == 16, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_metadata) == 8, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_attachment) == 24, "FORMAT.md");
_Static_assert(sizeof(lnt_rec_golden) == 48, "FORMAT.md");
_Static_assert(offsetof(lnt_rec_golden, data) == 32, "FORMAT.md");
_Static_assert(offsetof(lnt_rec_constant, offset) == 8, "FORMAT.md");

#endif
