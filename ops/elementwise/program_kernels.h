/* program_kernels.h — the kernel table of the program family: one loop per instruction, over registers.
 *
 * A register is an array of floats, or of int32 lanes 0 or -1 for a mask. In half arithmetic, which has a table of its
 * own (ops/half_kernels.h), it is an array of halves; there are no masks. */
#ifndef LNT_OPS_ELEMENTWISE_PROGRAM_KERNELS_H
#define LNT_OPS_ELEMENTWISE_PROGRAM_KERNELS_H

#include "ops/cells.h"
#include "ops/kernels.h"
#include "ops/elementwise/program.h"

/* Instructions made at bind from neighbors in a program; behind the numbers of ops/elementwise/program_list.h. */
enum {
    LNT_C_MUL_ADD = 64, /* a * b + c, rounded twice */
    LNT_C_ADD_CLIP,     /* min(max(a + b, imm0), imm1) */
    LNT_C_MUL_CLIP,     /* min(max(a * b, imm0), imm1) */
    LNT_C_MUL_ADD_CLIP, /* min(max(a * b + c, imm0), imm1) */
    LNT_C_NOT_EQUAL,    /* a != b */
    LNT_C_ABOVE_OR,     /* a > b ? a : c; this and the next where LNT_LONG_VECTORS */
    LNT_C_SOFTSIGN,     /* a / (|a| + b) */
    LNT_C_COUNT
};

/* Source j of an instruction: a register, or one vector that holds for the whole block. */
typedef struct lnt_instr_args {
    float *dst;
    const float *src[3];
    int64_t step[3]; /* 1: lane i is src[j][i]; 0: src[j] points to one vector of equal lanes */
    const float *imm;
    /* Lanes, a multiple of the level's vector width; dst may be a source. */
    int64_t n;
    /* Instructions that take rows take any number of lanes from that width on, and one lane where src[j] stands still;
     * `more` rows follow, each `pitch` lanes behind the one before, in the sources and, last, dst. */
    int64_t more, pitch[4];
} lnt_instr_args;

typedef void (*lnt_instr_fn)(const lnt_instr_args *a);

/* Instructions of operands that are broadcast: they take rows at levels of long vectors, which x86 alone has. */
#if defined(__x86_64__)
enum { LNT_LONG_VECTORS = true };
#else
enum { LNT_LONG_VECTORS = false };
#endif
#define LNT_TAKES_ROWS(op)                                                                                   \
    ((op) == LNT_I_ADD || (op) == LNT_I_SUB || (op) == LNT_I_MUL || (op) == LNT_I_DIV ||                     \
     (op) == LNT_I_MIN || (op) == LNT_I_MAX || (op) == LNT_I_PRELU || (op) == LNT_I_EQUAL ||                 \
     (op) == LNT_I_LESS || (op) == LNT_I_LESS_EQUAL || (op) >= LNT_C_MUL_ADD)

enum { LNT_VECTOR_MAX = 16 /* lanes of the widest level */ };

typedef struct lnt_program_kernels {
    int64_t width; /* lanes of a vector */
    bool takes_rows;
    lnt_cell cell; /* of a lane: LNT_CELL_F32 or LNT_CELL_F16 */
    lnt_instr_fn instr[LNT_C_COUNT];
    const lnt_cells *cells; /* between memory and registers */
} lnt_program_kernels;

#endif
