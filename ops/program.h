/* program.h — elementwise programs: chains of elementwise operators run in one pass over memory.
 *
 * A program is a straight line of instructions over typed registers. Register r holds a block of elements;
 * operand i is loaded into register i (as an epilogue: register 0 is the tile being stored, operand i is
 * register i + 1). Registers are f32 or mask (bool); float16 and bfloat16 operands are widened when loaded
 * and rounded when stored. Every operand broadcasts against the result. */
#ifndef LNT_OPS_PROGRAM_H
#define LNT_OPS_PROGRAM_H

#include "ops/op.h"

#define LNT_PROGRAM_MAX_REGS 64
#define LNT_PROGRAM_MAX_INSTR 64
#define LNT_PROGRAM_MAX_IN 16
#define LNT_PROGRAM_MAX_OUT 4

/* As stored in a file: 16 bytes, little-endian. dst may equal a source. */
typedef struct lnt_instr {
    uint8_t op;  /* lnt_instr_op */
    uint8_t dst; /* register */
    uint8_t src[3];
    uint8_t reserved[3];
    float imm[2]; /* alpha and beta, min and max, or a constant */
} lnt_instr;

/* Instruction numbers are part of the file format: never reused. The list: ops/program_list.h */
typedef enum lnt_instr_op {
#define INSTR(number, name, sources, result, text) LNT_I_##name = number,
#include "ops/program_list.h"
#undef INSTR
    LNT_I_END = 256
} lnt_instr_op;

struct lnt_program {
    const lnt_instr *instr;
    uint16_t n_instr;
    uint8_t n_in;                     /* operands (without the tile of an epilogue) */
    uint8_t n_out;                    /* 1 for an epilogue */
    uint8_t n_regs;
    bool epilogue;
    uint8_t out[LNT_PROGRAM_MAX_OUT]; /* register that gives output i */
};

/* NULL, or what is wrong with it: every register written before it is read, numbers in range. */
const char *lnt_program_check(const lnt_program *p);

#endif
