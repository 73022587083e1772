/* import_function.c — model-local functions. A call is replaced by the function's body: its inputs are the
 * caller's values, its outputs are written to the caller's values, its attributes are the call's. */
#include "convert/import/import.h"

#include <string.h>

static const char *text_of(const char *s)
{
    return s ? s : "";
}

/* The three parts of a function's name as one text. */
static char *key_of(lnt_importer *im, const char *domain, const char *name, const char *overload)
{
    domain = text_of(domain);
    return lnt_import_text(im, "%s\x1f%s\x1f%s", strcmp(domain, "ai.onnx") == 0 ? "" : domain, text_of(name),
                           text_of(overload));
}

/* Inlining may make a model larger by so much: a few functions that call each other twice are millions of
 * nodes. */
enum { MOST_GROWTH = 64, ALWAYS_ALLOWED = 1 << 16 };
#define COUNTING UINT32_MAX /* inlined_nodes of a function whose body is being counted */

lnt_status lnt_import_index_functions(lnt_importer *im)
{
    size_t nodes = im->model->graph ? im->model->graph->n_node : 0;
    for (size_t i = 0; i < im->model->n_functions; i++)
        nodes += im->model->functions[i]->n_node;
    im->most_nodes = nodes <= LNT_ONNX_MAX_NODES / MOST_GROWTH ? nodes * MOST_GROWTH : LNT_ONNX_MAX_NODES;
    im->most_nodes = im->most_nodes > ALWAYS_ALLOWED ? im->most_nodes : ALWAYS_ALLOWED;
    im->inlined_nodes = lnt_bump_alloc(&im->g->memory, im->model->n_functions * sizeof(uint32_t), im->err);
    if (!im->inlined_nodes)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < im->model->n_functions; i++) {
        const LntOnnx__Function *f = im->model->functions[i];
        const char *key = key_of(im, f->domain, f->name, f->overload);
        if (!key)
            return LNT_E_MEMORY;
        LNT_REQUIRE(lnt_names_find(&im->functions, key) == LNT_NAMES_NONE, im->err, LNT_E_MODEL,
                    "function '%s' is defined twice", text_of(f->name));
        LNT_TRY(lnt_names_set(&im->functions, key, (uint32_t)i, im->err));
    }
    return LNT_OK;
}

/* Its number, or LNT_NAMES_NONE. */
static uint32_t find_function(lnt_importer *im, const char *domain, const char *name, const char *overload)
{
    const char *key = im->functions.n ? key_of(im, domain, name, overload) : NULL;
    return key ? lnt_names_find(&im->functions, key) : LNT_NAMES_NONE;
}

const LntOnnx__Function *lnt_import_find_function(lnt_importer *im, const char *domain, const char *name,
                                                  const char *overload)
{
    const uint32_t i = find_function(im, domain, name, overload);
    return i == LNT_NAMES_NONE ? NULL : im->model->functions[i];
}

/* ---- how many nodes inlining makes ---- */

static lnt_status count_function(lnt_importer *im, uint32_t i, unsigned depth);

/* Adds to *total; a sum beyond all limits stays there. */
static lnt_status count_nodes(lnt_importer *im, LntOnnx__Node *const *node, size_t n, unsigned depth,
                              uint32_t *total)
{
    for (size_t i = 0; i < n && *total <= LNT_ONNX_MAX_NODES; i++) {
        const uint32_t called = find_function(im, node[i]->domain, node[i]->op_type, node[i]->overload);
        *total += 1;
        if (called != LNT_NAMES_NONE) {
            LNT_TRY(count_function(im, called, depth + 1));
            *total += im->inlined_nodes[called];
        }
        for (size_t a = 0; a < node[i]->n_attribute; a++)
            if (node[i]->attribute[a]->g)
                LNT_TRY(count_nodes(im, node[i]->attribute[a]->g->node, node[i]->attribute[a]->g->n_node,
                                    depth, total));
    }
    return LNT_OK;
}

/* Each function is counted once, so that this takes time by the size of the model, not of what it would
 * become. */
static lnt_status count_function(lnt_importer *im, uint32_t i, unsigned depth)
{
    const LntOnnx__Function *f = im->model->functions[i];
    uint32_t total = 0;
    LNT_REQUIRE(im->inlined_nodes[i] != COUNTING, im->err, LNT_E_MODEL, "function '%s' calls itself",
                text_of(f->name));
    if (im->inlined_nodes[i])
        return LNT_OK;
    LNT_REQUIRE(depth <= LNT_IMPORT_MAX_CALLS, im->err, LNT_E_LIMIT, "functions are nested deeper than %d",
                LNT_IMPORT_MAX_CALLS);
    im->inlined_nodes[i] = COUNTING;
    LNT_TRY(count_nodes(im, f->node, f->n_node, depth, &total));
    im->inlined_nodes[i] = total <= LNT_ONNX_MAX_NODES ? total + 1 : LNT_ONNX_MAX_NODES + 1;
    return LNT_OK;
}

static lnt_status check_size(lnt_importer *im, const lnt_inode *n, const char *overload)
{
    const uint32_t i = find_function(im, n->domain, n->op, overload);
    LNT_TRY(count_function(im, i, im->call ? im->call->depth : 0));
    LNT_REQUIRE(im->inlined_nodes[i] <= im->most_nodes &&
                    im->n_nodes <= im->most_nodes - im->inlined_nodes[i],
                im->err, LNT_E_LIMIT,
                "node '%s': function '%s' and what it calls are %s%u nodes, with which the model has more "
                "than the %zu "
                "that one of its size may have",
                n->name, n->op, im->inlined_nodes[i] > LNT_ONNX_MAX_NODES ? "more than " : "",
                im->inlined_nodes[i] - 1, im->most_nodes);
    return LNT_OK;
}

/* ---- inlining ---- */

/* The attributes of the body: what the node gives, then defaults for the rest. */
static lnt_status call_attrs(lnt_importer *im, const LntOnnx__Function *f, const lnt_inode *n, lnt_call *call)
{
    lnt_inode defaults = {.name = n->name, .domain = n->domain, .op = n->op, .opset = n->opset};
    LNT_TRY(lnt_import_attrs(im, f->attribute_proto, f->n_attribute_proto, &defaults));
    lnt_inode all = *n;
    for (unsigned i = 0; i < defaults.n_attr; i++)
        if (!lnt_inode_attr(n, defaults.attr[i].name))
            LNT_TRY(lnt_inode_set(im, &all, &defaults.attr[i]));
    call->attr = all.attr;
    call->n_attr = all.n_attr;
    return LNT_OK;
}

static lnt_status bind_operands(lnt_importer *im, const LntOnnx__Function *f, const lnt_inode *n)
{
    for (size_t i = 0; i < f->n_input; i++)
        if (lnt_inode_in(n, (unsigned)i) != LNT_NONE)
            LNT_TRY(lnt_import_bind(im, f->input[i], n->in[i]));
    for (unsigned i = 0; i < n->n_out; i++)
        if (n->out[i] != LNT_NONE && lnt_names_find(&im->scope->names, f->output[i]) == LNT_NAMES_NONE &&
            lnt_names_find(&im->scope->wanted, f->output[i]) == LNT_NAMES_NONE)
            LNT_TRY(lnt_names_set(&im->scope->wanted, f->output[i], n->out[i], im->err));
    return LNT_OK;
}

/* Outputs that the body did not write themselves: an input passed through, or one value given twice. */
static lnt_status copy_outputs(lnt_importer *im, const LntOnnx__Function *f, const lnt_inode *n)
{
    for (unsigned i = 0; i < n->n_out; i++) {
        const uint32_t v = lnt_names_find(&im->scope->names, f->output[i]);
        LNT_REQUIRE(v != LNT_NAMES_NONE || n->out[i] == LNT_NONE, im->err, LNT_E_MODEL,
                    "output '%s' of function '%s' is never computed", f->output[i], n->op);
        if (n->out[i] != LNT_NONE && v != n->out[i])
            LNT_TRY(lnt_make_into(im, n, "Identity", &v, 1, NULL, 0, n->out[i]));
    }
    return LNT_OK;
}

static lnt_status inline_body(lnt_importer *im, const LntOnnx__Function *f, const lnt_inode *n)
{
    LNT_TRY(bind_operands(im, f, n));
    LNT_TRY(lnt_import_nodes(im, f->node, f->n_node));
    return copy_outputs(im, f, n);
}

static lnt_status check_call(lnt_importer *im, const LntOnnx__Function *f, const lnt_inode *n)
{
    LNT_REQUIRE(!im->call || im->call->depth < LNT_IMPORT_MAX_CALLS, im->err, LNT_E_LIMIT,
                "functions are nested deeper than %d", LNT_IMPORT_MAX_CALLS);
    LNT_REQUIRE(n->n_in <= f->n_input && n->n_out <= f->n_output, im->err, LNT_E_MODEL,
                "node '%s' has %u inputs and %u outputs, function '%s' %zu and %zu", n->name, n->n_in,
                n->n_out, n->op, f->n_input, f->n_output);
    return LNT_OK;
}

lnt_status lnt_import_call(lnt_importer *im, const LntOnnx__Function *f, const lnt_inode *n)
{
    LNT_TRY(check_call(im, f, n));
    LNT_TRY(check_size(im, n, f->overload));
    LNT_REQUIRE(++im->n_nodes <= LNT_ONNX_MAX_NODES, im->err, LNT_E_LIMIT,
                "the model has more than %d nodes once its functions are inlined", LNT_ONNX_MAX_NODES);
    lnt_call call = {.outer = im->call, .depth = im->call ? im->call->depth + 1 : 1, .prefix = n->name};
    LNT_TRY(call_attrs(im, f, n, &call));
    const lnt_importer caller = *im;
    lnt_scope scope = lnt_scope_in(NULL, im->g);
    im->call = &call;
    im->scope = &scope;
    im->opset = f->opset_import;
    im->n_opsets = f->n_opset_import;
    const lnt_status status = inline_body(im, f, n);
    im->call = caller.call;
    im->scope = caller.scope;
    im->opset = caller.opset;
    im->n_opsets = caller.n_opsets;
    lnt_names_free(&scope.names);
    lnt_names_free(&scope.wanted);
    return status;
}
