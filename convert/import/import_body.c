/* import_body.c — subgraphs that take the place of their node: rules of expand_*.c inline them once or several times,
 * and nothing of the node is left. */
#include "convert/import/import.h"

#include <string.h>

/* Copies of subgraphs may make a model larger by so much: bodies in bodies multiply. */
enum { MOST_GROWTH = 64, ALWAYS_ALLOWED = 1 << 22 };

static bool same(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

bool lnt_import_inlines(const lnt_importer *im, const lnt_inode *n, const LntOnnx__Node *node)
{
    if (n->domain[0])
        return same(n->domain, "ai.onnx.preview") && same(n->op, "FlexAttention");
    return same(n->op, "SequenceMap") || lnt_control_inlined(im, n, node);
}

const LntOnnx__Graph *lnt_import_body(const lnt_inode *n, const char *attribute)
{
    for (size_t i = 0; n->inlined && i < n->inlined->n_attribute; i++)
        if (same(n->inlined->attribute[i]->name, attribute))
            return n->inlined->attribute[i]->g;
    return NULL;
}

/* Counts what is read again by its bytes in the file, which stand for nodes and constants alike. */
static lnt_status check_size(lnt_importer *im, const lnt_inode *n, const LntOnnx__Graph *body, unsigned times)
{
    const size_t model = (size_t)im->report->onnx_bytes, allowed = ALWAYS_ALLOWED;
    const size_t most = model > (SIZE_MAX - allowed) / MOST_GROWTH ? SIZE_MAX : model * MOST_GROWTH + allowed;
    const size_t bytes = lnt_onnx__graph__get_packed_size(body);
    LNT_REQUIRE(times == 0 || bytes <= (most - im->inlined_bytes) / times, im->err, LNT_E_LIMIT,
                "node '%s' (%s): %u copies of its subgraph are more than a model of this size may have",
                n->name, n->op, times);
    im->inlined_bytes += bytes * times;
    return LNT_OK;
}

static lnt_status bind_inputs(lnt_importer *im, const lnt_inode *n, const LntOnnx__Graph *body,
                              const uint32_t *in)
{
    for (size_t i = 0; i < body->n_input; i++) {
        LNT_REQUIRE(body->input[i]->name, im->err, LNT_E_MODEL,
                    "node '%s' (%s): input %zu of its subgraph has no name", n->name, n->op, i);
        LNT_TRY(lnt_import_bind(im, body->input[i]->name, in[i]));
    }
    return LNT_OK;
}

static lnt_status find_outputs(lnt_importer *im, const lnt_inode *n, const LntOnnx__Graph *body,
                               uint32_t *out)
{
    for (size_t i = 0; i < body->n_output; i++) {
        const char *name = body->output[i]->name ? body->output[i]->name : "";
        out[i] = lnt_import_lookup(im, name);
        LNT_REQUIRE(out[i] != LNT_NONE, im->err, LNT_E_MODEL,
                    "node '%s' (%s): output '%s' of its subgraph is never computed", n->name, n->op, name);
    }
    return LNT_OK;
}

/* One copy, its names below prefix. */
static lnt_status copy(lnt_importer *im, const lnt_inode *n, const LntOnnx__Graph *body, const char *prefix,
                       const uint32_t *in, uint32_t *out)
{
    lnt_call call = im->call ? *im->call : (lnt_call){.depth = 0};
    const lnt_call *const caller = im->call;
    lnt_scope scope = lnt_scope_in(im->scope, im->g);
    call.prefix = prefix;
    im->call = &call;
    im->scope = &scope;
    lnt_status status = bind_inputs(im, n, body, in);
    if (status == LNT_OK)
        status = lnt_import_nodes(im, body->node, body->n_node);
    if (status == LNT_OK)
        status = find_outputs(im, n, body, out);
    im->call = caller;
    im->scope = scope.outer;
    lnt_names_free(&scope.names);
    lnt_names_free(&scope.wanted);
    return status;
}

/* All copies, in a scope with the body's constants. What cannot be converted is listed once, and
 * ends it. */
static lnt_status copy_all(lnt_importer *im, const lnt_inode *n, const LntOnnx__Graph *body, lnt_inlining *l)
{
    const size_t listed = im->report->n_unsupported;
    const bool one = l->times == 1;
    LNT_TRY(lnt_import_initializers(im, body));
    for (unsigned i = 0; i < l->times; i++) {
        if (i > 0 && l->next)
            LNT_TRY(l->next(im, n, l, i));
        if (i > 0 && im->report->n_unsupported > listed)
            l->times = i;
        if (i == l->times)
            break;
        const char *prefix = one ? n->name : lnt_import_text(im, "%s/%u", n->name, i);
        if (!prefix)
            return LNT_E_MEMORY;
        LNT_TRY(copy(im, n, body, prefix, l->in + (size_t)i * l->n_in, l->out + (size_t)i * l->n_out));
    }
    return LNT_OK;
}

lnt_status lnt_import_inline(lnt_importer *im, const lnt_inode *n, lnt_inlining *l)
{
    const LntOnnx__Graph *body = lnt_import_body(n, l->attribute);
    LNT_REQUIRE(body, im->err, LNT_E_MODEL, "node '%s' (%s): attribute '%s' holds no graph", n->name, n->op,
                l->attribute);
    LNT_REQUIRE(body->n_input == l->n_in && body->n_output == l->n_out, im->err, LNT_E_MODEL,
                "node '%s' (%s): its subgraph has %zu inputs and %zu outputs, not %u and %u", n->name, n->op,
                body->n_input, body->n_output, l->n_in, l->n_out);
    LNT_TRY(check_size(im, n, body, l->times));
    lnt_scope scope = lnt_scope_in(im->scope, im->g);
    im->scope = &scope;
    const lnt_status status = copy_all(im, n, body, l);
    im->scope = scope.outer;
    lnt_names_free(&scope.names);
    lnt_names_free(&scope.wanted);
    return status;
}

lnt_status lnt_import_inline_tensors(lnt_importer *im, const lnt_inode *n, lnt_inlining *l)
{
    LNT_TRY(lnt_import_inline(im, n, l));
    for (size_t i = 0; i < (size_t)l->times * l->n_out; i++) {
        const lnt_gvalue *v = &im->g->value[l->out[i]];
        if (v->piece || v->absent || v->words)
            return lnt_import_unsupported(im, n, "output %zu of its subgraph is no tensor of numbers",
                                          i % l->n_out);
    }
    return LNT_OK;
}
