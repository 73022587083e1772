/* program_builder.h — elementwise programs out of graph nodes. */
#ifndef LNT_CONVERT_PASSES_PROGRAM_BUILDER_H
#define LNT_CONVERT_PASSES_PROGRAM_BUILDER_H

#include "convert/graph/graph.h"

/* A program under construction. Every instruction writes a virtual register of its own; lnt_builder_finish
 * gives out real ones. Small enough to be copied, so that an addition can be tried and taken back. */
typedef struct lnt_builder {
    uint32_t tile; /* value the carrier of an epilogue computes; LNT_NONE: no epilogue */
    uint32_t operand[LNT_PROGRAM_MAX_IN];
    unsigned n_operands;
    uint32_t result[LNT_PROGRAM_MAX_INSTR];    /* values computed by the program so far, */
    uint8_t result_reg[LNT_PROGRAM_MAX_INSTR]; /* and where */
    unsigned n_results;
    lnt_instr instr[LNT_PROGRAM_MAX_INSTR]; /* in virtual registers */
    unsigned n_instr;
} lnt_builder;

void lnt_builder_begin(lnt_builder *b, uint32_t tile);
/* Appends node n, whose inputs are the tile, results so far, or new operands. False, with *b in disorder, if
 * n is no elementwise work on floats or the program would be too long. */
bool lnt_builder_add(lnt_builder *b, const lnt_graph *g, const lnt_gnode *n);
/* The finished program in the graph's memory, with outputs for these results; NULL if memory is short, or
 * with no error set if it needs too many registers. */
lnt_program *lnt_builder_finish(const lnt_builder *b, lnt_graph *g, const uint32_t *out, unsigned n_out);

#endif
