/* load.h — a loaded model: the file made walkable.
 *
 * load.c checks the file, resolves its operators, and finds names, readers and symbols. Nothing of it changes
 * afterwards: sessions share it. */
#ifndef LNT_RUNTIME_LOAD_H
#define LNT_RUNTIME_LOAD_H

#include "base/memory.h"
#include "formats/lnt_file.h"
#include "ops/op.h"
#include "runtime/linnet.h"

struct lnt_model {
    lnt_allocator allocator;
    lnt_host host; /* its log may be NULL */
    lnt_blob blob;
    lnt_file file;
    lnt_bump memory; /* of everything below */
    const lnt_custom_op *custom;
    size_t n_custom;
    lnt_node *node;
    lnt_operand *value; /* templates: extents may be unknown */
    uint32_t n_values, n_nodes;
    const lnt_rec_subgraph *sub; /* 0 is the model */
    const uint32_t *in, *out;    /* value numbers of the model's inputs and outputs */
    uint32_t n_in, n_out;
    uint8_t *readers;    /* per value: nodes that read it and results it is, 2 for all above */
    uint32_t *symbol_of; /* value -> its LNT_SYMBOL_DATA_VALUE, or NONE */
    bool text;           /* there are values of text, and: */
    const char *words;   /* one behind the other, each with its end */
    size_t words_bytes;
    const char **dim_name; /* of inputs without a symbol: n_in x LNT_MAX_RANK, INPUT:AXIS */
};

static inline const char *lnt_value_name(const lnt_model *m, uint32_t value)
{
    return m->file.strings + m->file.values[value].name;
}

#endif
