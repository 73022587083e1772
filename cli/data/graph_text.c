/* graph_text.c — the graph of a file for people. */
#include "cli/data/graph_text.h"

#include "cli/shell/table.h"
#include "ops/op.h"

#include <inttypes.h>
#include <stdio.h>

const char *lnt_node_text(const lnt_file *f, const lnt_rec_node *n)
{
    const char *domain, *name;
    const lnt_op *op = lnt_op_by_id(n->op);
    if (lnt_custom_node(f, n, &domain, &name))
        return lnt_cli_text("%s%s%s (custom)", domain, *domain ? "." : "", name);
    return op ? lnt_op_name(op) : "?";
}

/* "float 1 x T x 80" of a value as the file declares it; open extents by their names. */
static const char *type_of(const lnt_file *f, uint32_t value)
{
    const lnt_operand v = lnt_file_value(f, value);
    const char *text = v.dtype ? lnt_dtype_text((lnt_dtype)v.dtype) : "any type";
    if (v.rank > LNT_MAX_RANK)
        return lnt_cli_text("%s, any rank", text);
    if (!v.rank)
        return lnt_cli_text("%s scalar", text);
    for (unsigned d = 0; d < v.rank; d++) {
        const char *join = d ? " x" : "";
        if (v.dims[d] >= 0)
            text = lnt_cli_text("%s%s %" PRId64, text, join, v.dims[d]);
        else
            text = lnt_cli_text(
                "%s%s %s", text, join,
                lnt_is_symbol(v.dims[d]) ? f->strings + f->symbols[lnt_symbol_number(v.dims[d])].name : "?");
    }
    return text;
}

static const char *name_of(const lnt_file *f, uint32_t value)
{
    return f->strings + f->values[value].name;
}

static bool computed(const lnt_file *f, uint32_t value)
{
    return value != LNT_FILE_NONE && f->values[value].constant == LNT_FILE_NONE;
}

void lnt_print_values(const lnt_file *f)
{
    static const char *const heads[] = {"value", "type", "made by"};
    lnt_table t;
    lnt_table_begin(&t, "lll", heads);
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        const lnt_rec_node *n = &f->nodes[i];
        const uint32_t *out = f->operands + n->first_operand + n->n_in;
        for (unsigned k = 0; k < n->n_out; k++) {
            if (!computed(f, out[k]))
                continue;
            lnt_table_cell(&t, "%s", name_of(f, out[k]));
            lnt_table_cell(&t, "%s", type_of(f, out[k]));
            lnt_table_cell(&t, "%s", lnt_node_text(f, n));
        }
    }
    lnt_table_print(&t, stdout);
}

/* As it stands between quotes in Graphviz's language. */
static void print_quoted(const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
}

static void print_value(const lnt_file *f, uint32_t value, const char *style)
{
    printf("    v%" PRIu32 " [shape=ellipse, %slabel=\"", value, style);
    print_quoted(name_of(f, value));
    printf("\\n");
    print_quoted(type_of(f, value));
    printf("\"];\n");
}

static void print_node(const lnt_file *f, uint32_t i)
{
    const lnt_rec_node *n = &f->nodes[i];
    const uint32_t *operand = f->operands + n->first_operand;
    printf("    n%" PRIu32 " [label=\"", i);
    print_quoted(lnt_node_text(f, n));
    printf("\"];\n");
    for (unsigned k = 0; k < n->n_in; k++)
        if (computed(f, operand[k]))
            printf("    v%" PRIu32 " -> n%" PRIu32 ";\n", operand[k], i);
    for (unsigned k = n->n_in; k < (unsigned)n->n_in + n->n_out; k++)
        if (operand[k] != LNT_FILE_NONE) {
            printf("    n%" PRIu32 " -> v%" PRIu32 ";\n", i, operand[k]);
            print_value(f, operand[k], "");
        }
}

void lnt_print_dot(const lnt_file *f)
{
    printf("digraph model {\n  node [shape=box, fontname=sans];\n");
    for (uint32_t g = 0; g < f->n_subgraphs; g++) {
        const lnt_rec_subgraph *sub = &f->subgraphs[g];
        printf("  subgraph cluster%" PRIu32 " {\n    label=\"", g);
        print_quoted(f->strings + sub->name);
        printf("\";\n");
        for (uint32_t i = 0; i < sub->n_nodes; i++)
            print_node(f, sub->first_node + i);
        for (uint32_t k = 0; k < sub->n_in; k++)
            print_value(f, f->operands[sub->first_operand + k], "style=bold, ");
        printf("  }\n");
    }
    printf("}\n");
}
