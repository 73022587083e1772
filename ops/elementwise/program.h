/* program.h — elementwise programs: chains of elementwise operators run in one pass over memory.
 *
 * A program is a straight line of instructions over typed registers. Register r holds a block of elements;
 * operand i is loaded into register i (as an epilogue: register 0 is the tile being stored, operand i is
 * register i + 1). Registers are f32 or mask (bool); float16 and bfloat16 operands are widened when loaded
 * and rounded when stored. Every operand broadcasts against the result. */
#ifndef LNT_OPS_ELEMENTWISE_PROGRAM_H
#define LNT_OPS_ELEMENTWISE_PROGRAM_H

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

/* Instruction numbers are part of the file format: never reused. The list: ops/elementwise/program_list.h */
typedef enum lnt_instr_op {
#define INSTR(number, name, sources, result, text) LNT_I_##name = number,
#include "ops/elementwise/program_list.h"
#undef INSTR
    LNT_I_END = 256
} lnt_instr_op;

struct lnt_program {
    const lnt_instr *instr;
    uint16_t n_instr;
    uint8_t n_in;  /* operands (without the tile of an epilogue) */
    uint8_t n_out; /* 1 for an epilogue */
    uint8_t n_regs;
    bool epilogue;
    uint8_t out[LNT_PROGRAM_MAX_OUT]; /* register that gives output i */
};

/* NULL, or what is wrong with it: every register written before it is read and read as what it is, numbers in
 * range. Operands' kinds are found from their use: a register is what its first reader takes it for. */
const char *lnt_program_check(const lnt_program *p);
/* Registers an instruction reads; 0 for numbers that are none. */
unsigned lnt_instr_sources(unsigned op);
/* What a checked program reads and gives. */
typedef struct lnt_program_types {
    bool mask[LNT_PROGRAM_MAX_IN];       /* operand i is read as a mask; else as numbers */
    uint8_t result[LNT_PROGRAM_MAX_OUT]; /* lnt_dtype: bool for a mask, float16 or bfloat16 for what was
                                            rounded to it last, else float */
} lnt_program_types;
lnt_program_types lnt_program_types_of(const lnt_program *p);

/* One ONNX node as instructions. In these, register numbers below LNT_NODE_TEMP are the node's input numbers,
 * LNT_NODE_TEMP + t is temporary t; the last instruction's dst is the result. Constant scalar inputs have
 * become immediates and are not read. */
enum { LNT_NODE_TEMP = 128, LNT_NODE_MAX_INSTR = 32 };
typedef struct lnt_node_instrs {
    lnt_instr instr[LNT_NODE_MAX_INSTR];
    unsigned n;
    unsigned temps;
} lnt_node_instrs;
/* False if the node is no elementwise work on float, float16, bfloat16 or (as a mask) bool registers, or too
 * long. in[] need types, and data where they are constant; out is output 0. half results come with the
 * instruction that rounds to them. */
bool lnt_node_instrs_of(const lnt_node *node, const lnt_operand *const *in, const lnt_operand *out,
                        lnt_node_instrs *result);

#endif
