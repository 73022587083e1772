/* import_function.c — model-local functions. A call is replaced by the function's body: its inputs are the
 * caller's values, its outputs are written to the caller's values, its attributes are the call's. */
#include "convert/import.h"

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

lnt_status lnt_import_index_functions(lnt_importer *im)
{
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

const LntOnnx__Function *lnt_import_find_function(lnt_importer *im, const char *domain, const char *name,
                                                  const char *overload)
{
    if (!im->functions.n)
        return NULL;
    const char *key = key_of(im, domain, name, overload);
    const uint32_t i = key ? lnt_names_find(&im->functions, key) : LNT_NAMES_NONE;
    return i == LNT_NAMES_NONE ? NULL : im->model->functions[i];
}

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
    for (const lnt_call *c = im->call; c; c = c->outer)
        LNT_REQUIRE(c->function != f, im->err, LNT_E_MODEL, "function '%s' calls itself", n->op);
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
    LNT_REQUIRE(++im->n_nodes <= LNT_ONNX_MAX_NODES, im->err, LNT_E_LIMIT,
                "the model has more than %d nodes once its functions are inlined", LNT_ONNX_MAX_NODES);
    lnt_call call = {
        .outer = im->call, .function = f, .depth = im->call ? im->call->depth + 1 : 1, .prefix = n->name};
    LNT_TRY(call_attrs(im, f, n, &call));
    const lnt_importer caller = *im;
    lnt_scope scope = {0};
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
