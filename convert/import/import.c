/* import.c — an ONNX model becomes a graph.
 *
 * Everything that cannot be converted is listed in the report before the import gives up, so that one run
 * tells all. Values whose computation is missing have no type; what depends on them is not looked at. */
#include "convert/import/import.h"

#include "formats/lnt_format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

char *lnt_import_text(lnt_importer *im, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : lnt_bump_alloc(&im->g->memory, (size_t)length + 1, im->err);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

lnt_status lnt_import_unsupported(lnt_importer *im, const lnt_inode *n, const char *reason, ...)
{
    char text[sizeof im->err->message];
    va_list args;
    va_start(args, reason);
    vsnprintf(text, sizeof text, reason, args);
    va_end(args);
    const lnt_unsupported u = {n->name, n->domain, n->op, n->opset, text};
    LNT_REQUIRE(lnt_report_unsupported(im->report, &u) == LNT_OK, im->err, LNT_E_MEMORY,
                "no memory for the report");
    return LNT_OK;
}

lnt_status lnt_import_list_failure(lnt_importer *im, const lnt_inode *n, lnt_status status)
{
    if (status != LNT_E_UNSUPPORTED)
        return status;
    const lnt_error failure = *im->err;
    lnt_error_clear(im->err);
    return lnt_import_unsupported(im, n, "%s", failure.message);
}

lnt_status lnt_import_bind(lnt_importer *im, const char *name, uint32_t value)
{
    LNT_REQUIRE(lnt_names_find(&im->scope->names, name) == LNT_NAMES_NONE, im->err, LNT_E_MODEL,
                "value '%s' is defined twice", name);
    return lnt_names_set(&im->scope->names, name, value, im->err);
}

/* ---- values ---- */

static lnt_status check_element_type(lnt_importer *im, const char *name, const LntOnnx__TensorType *t,
                                     const char *way_out)
{
    LNT_REQUIRE(lnt_dtype_size((lnt_dtype)t->elem_type) > 0, im->err, LNT_E_UNSUPPORTED,
                "'%s' has element type number %d (%s), which is not supported%s", name, (int)t->elem_type,
                lnt_dtype_text((lnt_dtype)t->elem_type), way_out);
    return LNT_OK;
}

/* The type of a tensor, or of an optional that holds one: a session is given it and hands it out. Else NULL. */
static const LntOnnx__TensorType *tensor_type(const LntOnnx__ValueInfo *v)
{
    const LntOnnx__Type *type = v->type;
    if (type && type->optional_type && type->optional_type->elem_type)
        type = type->optional_type->elem_type;
    return type ? type->tensor_type : NULL;
}

/* Type of a graph input: *info keeps what is not declared. E_UNSUPPORTED for types we do not have. */
static lnt_status declared_type(lnt_importer *im, const LntOnnx__ValueInfo *v, lnt_operand *info)
{
    const LntOnnx__TensorType *t = tensor_type(v);
    LNT_REQUIRE(t || !lnt_import_element_type(v) || im->scope->outer, im->err, LNT_E_UNSUPPORTED,
                "'%s' is a sequence: fix its length by --length %s=N when it is converted", v->name, v->name);
    LNT_REQUIRE(!v->type || t, im->err, LNT_E_UNSUPPORTED,
                "'%s' is no tensor (maps, sparse tensors and sequences of other things than tensors are not "
                "supported)",
                v->name);
    if (!t)
        return LNT_OK;
    if (t->has_elem_type && t->elem_type != LNT_UNDEFINED) {
        const bool text = im->text && t->elem_type == LNT_STRING;
        if (!text)
            LNT_TRY(check_element_type(im, v->name, t, ""));
        info->dtype = text ? LNT_INT64 : (uint8_t)t->elem_type;
    }
    if (t->shape) {
        LNT_REQUIRE(t->shape->n_dim <= LNT_MAX_RANK, im->err, LNT_E_UNSUPPORTED,
                    "'%s' has rank %zu, more than %d", v->name, t->shape->n_dim, LNT_MAX_RANK);
        info->rank = (uint8_t)t->shape->n_dim;
        for (unsigned i = 0; i < info->rank; i++)
            info->dims[i] = LNT_DIM_UNKNOWN;
    }
    return LNT_OK;
}

/* Is it declared to hold words, for which numbers stand? */
static bool is_text(const lnt_importer *im, const LntOnnx__ValueInfo *v)
{
    const LntOnnx__TensorType *t = tensor_type(v);
    return im->text && t && t->elem_type == LNT_STRING;
}

/* What a body's input i surely has in common with what it is first fed with: used where nothing is declared. */
static lnt_operand fed_type(const lnt_importer *im, const lnt_inode *owner, unsigned i)
{
    lnt_operand info = {.rank = LNT_RANK_UNKNOWN};
    const bool loop = strcmp(owner->op, "Loop") == 0;
    if (loop && i < 2)
        return (lnt_operand){.dtype = i == 0 ? LNT_INT64 : LNT_BOOL};
    const lnt_operand *fed = lnt_ginfo(im->g, lnt_inode_in(owner, i));
    if (!fed)
        return info;
    info.dtype = fed->dtype;
    if (loop && fed->rank != LNT_RANK_UNKNOWN) {
        info.rank = fed->rank;
        for (unsigned d = 0; d < info.rank; d++)
            info.dims[d] = LNT_DIM_UNKNOWN;
    }
    return info;
}

/* The name under which a value of the ONNX model stands in the graph. */
static const char *value_name(lnt_importer *im, const char *name)
{
    return im->call ? lnt_import_text(im, "%s/%s", im->call->prefix, name) : name;
}

static lnt_status add_input(lnt_importer *im, const LntOnnx__ValueInfo *v, lnt_operand info, uint32_t *number)
{
    const lnt_inode place = {.name = v->name, .domain = "", .op = "graph input"};
    LNT_TRY(lnt_import_list_failure(im, &place, declared_type(im, v, &info)));
    const char *name = value_name(im, v->name);
    *number = name ? lnt_graph_add_value(im->g, name) : LNT_NONE;
    if (*number == LNT_NONE)
        return LNT_E_MEMORY;
    im->g->value[*number].info = info;
    im->g->value[*number].text = is_text(im, v);
    return lnt_import_bind(im, v->name, *number);
}

static lnt_status add_constant(lnt_importer *im, const char *name, const lnt_operand *t, size_t bytes)
{
    const char *unique = value_name(im, name);
    const uint32_t v =
        unique ? lnt_graph_add_constant(im->g, unique, (lnt_dtype)t->dtype, t->rank, t->dims, t->data, bytes)
               : LNT_NONE;
    return v == LNT_NONE ? LNT_E_MEMORY : lnt_import_bind(im, name, v);
}

/* An initializer of text; the tensor's extents are known. */
static lnt_status add_words(lnt_importer *im, const ProtobufCBinaryData *proto, const char *name,
                            lnt_operand *tensor)
{
    const lnt_words *words = NULL;
    size_t bytes;
    const lnt_status status =
        im->text ? lnt_import_text_tensor(im, proto, tensor) : lnt_import_words(im, proto, tensor, &words);
    tensor->dtype = LNT_INT64;
    if (status == LNT_E_MODEL)
        lnt_error_prefix(im->err, "initializer '%s': ", name);
    LNT_TRY(status);
    LNT_REQUIRE(lnt_operand_bytes(tensor, &bytes), im->err, LNT_E_MODEL, "initializer '%s' is too large",
                name);
    LNT_TRY(add_constant(im, name, tensor, bytes));
    lnt_gvalue *v = &im->g->value[lnt_names_find(&im->scope->names, name)];
    v->words = words;
    v->text = im->text;
    return LNT_OK;
}

static lnt_status add_initializer(lnt_importer *im, const ProtobufCBinaryData *proto)
{
    lnt_operand tensor;
    size_t bytes;
    const char *name;
    LNT_TRY(lnt_import_tensor_name(im, proto, &name));
    LNT_REQUIRE(name[0], im->err, LNT_E_MODEL, "an initializer has no name");
    if (!im->scope->outer && lnt_import_overridable(im, name))
        return LNT_OK;
    const lnt_inode place = {.name = name, .domain = "", .op = "initializer"};
    lnt_status status = lnt_import_tensor_header(im, proto, &tensor);
    if (status == LNT_OK && tensor.dtype == LNT_STRING)
        return add_words(im, proto, name, &tensor);
    if (status == LNT_OK)
        status = lnt_import_tensor(im, proto, &tensor, &bytes);
    if (status == LNT_OK)
        return add_constant(im, name, &tensor, bytes);
    if (status != LNT_E_UNSUPPORTED)
        lnt_error_prefix(im->err, "initializer '%s': ", name);
    LNT_TRY(lnt_import_list_failure(im, &place, status));
    uint32_t value;
    return lnt_import_define(im, name, &value);
}

lnt_status lnt_import_initializers(lnt_importer *im, const LntOnnx__Graph *graph)
{
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const lnt_inode place = {
            .name = graph->name ? graph->name : "", .domain = "", .op = "sparse_initializer"};
        LNT_TRY(
            lnt_import_unsupported(im, &place, "sparse initializers are not supported: store them dense"));
    }
    for (size_t i = 0; i < graph->n_initializer; i++)
        LNT_TRY(add_initializer(im, &graph->initializer[i]));
    return LNT_OK;
}

uint32_t lnt_import_lookup(const lnt_importer *im, const char *name)
{
    for (const lnt_scope *s = im->scope; s; s = s->outer) {
        const uint32_t v = lnt_names_find(&s->names, name);
        if (v != LNT_NAMES_NONE)
            return v;
    }
    return LNT_NONE;
}

/* An output must be a tensor that a session can hand out. Where a node is not supported, that is the reason. */
static lnt_status check_output(lnt_importer *im, const LntOnnx__ValueInfo *v, const char *name,
                               bool stands_for_words)
{
    const LntOnnx__TensorType *t = tensor_type(v);
    const lnt_inode place = {.name = name, .domain = "", .op = "graph output"};
    if (im->report->n_unsupported || !t || !t->has_elem_type || t->elem_type == LNT_UNDEFINED ||
        stands_for_words)
        return LNT_OK;
    return lnt_import_list_failure(
        im, &place,
        check_element_type(
            im, name, t,
            ": export the model without this output, or cut it off with onnx.utils.extract_model"));
}

/* The values of the graph's outputs, sequences among them; *out is in the graph's memory. */
static lnt_status find_outputs(lnt_importer *im, const LntOnnx__Graph *graph, uint32_t sub, uint32_t **out)
{
    uint32_t *list = *out = lnt_bump_alloc(&im->g->memory, graph->n_output * sizeof *list, im->err);
    if (!list)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *name = graph->output[i]->name ? graph->output[i]->name : "";
        list[i] = lnt_import_lookup(im, name);
        LNT_REQUIRE(list[i] != LNT_NONE, im->err, LNT_E_MODEL, "output '%s' of graph '%s' is never computed",
                    name, im->g->sub[sub].name);
    }
    return LNT_OK;
}

/* Those of a subgraph. What becomes of sequences is the node's affair where any: expand_control.c. */
static lnt_status add_outputs(lnt_importer *im, const LntOnnx__Graph *graph, uint32_t sub, bool any)
{
    uint32_t *out;
    LNT_TRY(find_outputs(im, graph, sub, &out));
    for (size_t i = 0; i < graph->n_output; i++) {
        const lnt_gvalue *v = &im->g->value[out[i]];
        const char *name = graph->output[i]->name ? graph->output[i]->name : "";
        if (!any && (v->piece || v->absent))
            LNT_TRY(lnt_import_unsupported(im, &(lnt_inode){.name = name, .domain = "", .op = "graph output"},
                                           "is no tensor, which a subgraph of this operator cannot give"));
        LNT_TRY(check_output(im, graph->output[i], name, v->words || v->text));
    }
    im->g->sub[sub].out = out;
    im->g->sub[sub].n_out = (uint32_t)graph->n_output;
    return LNT_OK;
}

/* One of the model's: a tensor, or each element of a sequence. */
static lnt_status add_model_output(lnt_importer *im, const LntOnnx__ValueInfo *o, uint32_t value,
                                   uint32_t *out, uint32_t *n)
{
    const lnt_gvalue v = im->g->value[value];
    const lnt_inode place = {.name = o->name, .domain = "", .op = "graph output"};
    if (v.absent)
        LNT_TRY(
            lnt_import_unsupported(im, &place, "is an optional that holds nothing, which is not supported"));
    if (!v.piece) {
        LNT_TRY(check_output(im, o, o->name, v.words || v.text));
        LNT_TRY(lnt_import_record_words(im, o->name, value));
        out[(*n)++] = value;
        return LNT_OK;
    }
    if (!lnt_import_holds_tensors(im->g, &v))
        return lnt_import_unsupported(im, &place, "is a sequence of other things than tensors");
    for (uint32_t i = 0; i < v.n_pieces; i++)
        LNT_TRY(lnt_import_output_element(im, o->name, value, i, &out[(*n)++]));
    return lnt_import_record_length(im, o->name, v.n_pieces);
}

static lnt_status add_model_outputs(lnt_importer *im, const LntOnnx__Graph *graph)
{
    uint32_t *found, n = 0;
    size_t most = 0;
    LNT_TRY(find_outputs(im, graph, 0, &found));
    for (size_t i = 0; i < graph->n_output; i++)
        most += im->g->value[found[i]].piece ? im->g->value[found[i]].n_pieces : 1;
    uint32_t *out = lnt_bump_alloc(&im->g->memory, most * sizeof *out, im->err);
    if (!out)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < graph->n_output; i++) {
        LNT_TRY(add_model_output(im, graph->output[i], found[i], out, &n));
        if (im->g->value[found[i]].piece)
            LNT_TRY(lnt_import_record_place(im, graph->output[i]->name, i));
    }
    LNT_REQUIRE(n > 0, im->err, LNT_E_MODEL,
                "all outputs are sequences without elements: there is nothing to compute");
    im->g->sub[0].out = out;
    im->g->sub[0].n_out = n;
    return LNT_OK;
}

lnt_status lnt_import_nodes(lnt_importer *im, LntOnnx__Node *const *node, size_t n)
{
    uint32_t *order = lnt_alloc_zero(im->g->memory.allocator, n, sizeof *order, im->err);
    if (!order)
        return LNT_E_MEMORY;
    lnt_status status = lnt_import_order(im, node, n, order);
    for (size_t i = 0; status == LNT_OK && i < n; i++)
        status = lnt_import_node(im, node[order[i]]);
    lnt_free(im->g->memory.allocator, order);
    return status;
}

/* ---- graphs ---- */

static lnt_status fill_subgraph(lnt_importer *im, const LntOnnx__Graph *graph, const lnt_inode *owner,
                                uint32_t sub)
{
    uint32_t *in = lnt_bump_alloc(&im->g->memory, graph->n_input * sizeof *in, im->err);
    if (!in)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < graph->n_input; i++) {
        LNT_REQUIRE(graph->input[i]->name, im->err, LNT_E_MODEL, "input %zu of graph '%s' has no name", i,
                    im->g->sub[sub].name);
        LNT_TRY(add_input(im, graph->input[i], fed_type(im, owner, (unsigned)i), &in[i]));
    }
    im->g->sub[sub].in = in;
    im->g->sub[sub].n_in = (uint32_t)graph->n_input;
    LNT_TRY(lnt_import_initializers(im, graph));
    LNT_TRY(lnt_import_nodes(im, graph->node, graph->n_node));
    return add_outputs(im, graph, sub, !owner->domain[0] && strcmp(owner->op, "If") == 0);
}

lnt_status lnt_import_subgraph(lnt_importer *im, const LntOnnx__Graph *graph, const lnt_inode *owner,
                               uint32_t *sub)
{
    LNT_REQUIRE(im->nesting + 1 < LNT_FILE_MAX_NESTING, im->err, LNT_E_LIMIT,
                "node '%s' (%s): subgraphs are nested deeper than %d", owner->name, owner->op,
                LNT_FILE_MAX_NESTING);
    *sub = lnt_graph_add_sub(im->g, graph->name ? graph->name : "");
    if (*sub == LNT_NONE)
        return LNT_E_MEMORY;
    const uint32_t outer_sub = im->sub;
    lnt_scope inner = lnt_scope_in(im->scope, im->g);
    im->scope = &inner;
    im->sub = *sub;
    im->nesting++;
    const lnt_status status = fill_subgraph(im, graph, owner, *sub);
    im->scope = inner.outer;
    im->sub = outer_sub;
    im->nesting--;
    lnt_names_free(&inner.names);
    return status;
}

static lnt_status bake(lnt_importer *im, const LntOnnx__ValueInfo *v, const lnt_tensor *t)
{
    lnt_operand info = {.dtype = (uint8_t)t->dtype};
    LNT_TRY(declared_type(im, v, &info));
    if (is_text(im, v) && t->dtype == LNT_STRING) {
        size_t taken;
        LNT_TRY(lnt_import_number_words(im, t, &info, &taken));
        LNT_TRY(add_constant(im, v->name, &info, taken));
        im->g->value[lnt_names_find(&im->scope->names, v->name)].text = true;
        return LNT_OK;
    }
    const bool kept = info.dtype == LNT_BFLOAT16 && t->dtype == LNT_UINT16; /* as old cases keep it */
    LNT_REQUIRE(info.dtype == t->dtype || kept, im->err, LNT_E_TYPE,
                "input '%s' is %s, the tensor to bake %s", v->name, lnt_dtype_text((lnt_dtype)info.dtype),
                lnt_dtype_text(t->dtype));
    info.rank = (uint8_t)t->rank;
    memcpy(info.dims, t->dims, sizeof info.dims);
    info.data = t->data;
    size_t bytes;
    LNT_REQUIRE(lnt_operand_bytes(&info, &bytes) && bytes <= t->bytes, im->err, LNT_E_ARGUMENT,
                "the tensor to bake into input '%s' is short", v->name);
    return add_constant(im, v->name, &info, bytes);
}

/* An overridable initializer that the model does not list among its inputs is one of its type and extents. */
static lnt_status add_overridable(lnt_importer *im, const ProtobufCBinaryData *proto, uint32_t *in,
                                  uint32_t *n)
{
    lnt_operand tensor;
    size_t bytes;
    const char *name;
    LNT_TRY(lnt_import_tensor_name(im, proto, &name));
    if (!lnt_import_overridable(im, name) || lnt_names_find(&im->scope->names, name) != LNT_NAMES_NONE)
        return LNT_OK;
    LNT_TRY(lnt_import_tensor(im, proto, &tensor, &bytes));
    in[*n] = lnt_graph_add_value(im->g, name);
    if (in[*n] == LNT_NONE)
        return LNT_E_MEMORY;
    lnt_operand *info = &im->g->value[in[*n]].info;
    *info = (lnt_operand){.dtype = tensor.dtype, .rank = tensor.rank};
    memcpy(info->dims, tensor.dims, sizeof info->dims);
    return lnt_import_bind(im, name, in[(*n)++]);
}

/* The model's inputs while they are made. */
typedef struct inputs {
    uint32_t *in, n;
    uint32_t position; /* as lnt_baked counts */
} inputs;

/* alone: a tensor of the model's, and not one of a sequence, whose extents are not those of the others. */
static lnt_status add_model_tensor(lnt_importer *im, const LntOnnx__ValueInfo *v, bool alone, inputs *to)
{
    const lnt_tensor *baked = lnt_import_baked(im, to->position++);
    if (baked)
        return bake(im, v, baked);
    uint32_t *value = &to->in[to->n];
    LNT_TRY(add_input(im, v, (lnt_operand){.rank = LNT_RANK_UNKNOWN}, value));
    const LntOnnx__TensorType *t = tensor_type(v);
    LNT_REQUIRE(v->type && (!t || t->elem_type), im->err, LNT_E_MODEL, "input '%s' has no element type",
                v->name);
    if (t && t->shape && im->g->value[*value].info.rank == t->shape->n_dim)
        LNT_TRY(lnt_import_input_dims(im, t->shape, alone, *value));
    to->n++;
    return LNT_OK;
}

/* A sequence whose elements are inputs NAME.0 and on; or an optional that holds nothing: no input, `length` is
 * LNT_LENGTH_NONE. */
static lnt_status add_model_sequence(lnt_importer *im, const LntOnnx__ValueInfo *v, int64_t length,
                                     inputs *to)
{
    const uint32_t value = lnt_graph_add_value(im->g, v->name), n = length < 0 ? 0 : (uint32_t)length;
    uint32_t *piece = lnt_bump_alloc(&im->g->memory, (n + 1) * sizeof *piece, im->err);
    if (value == LNT_NONE || !piece)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_import_bind(im, v->name, value));
    for (uint32_t i = 0; i < n; i++) {
        LntOnnx__ValueInfo element = LNT_ONNX__VALUE_INFO__INIT;
        element.name = lnt_import_text(im, "%s.%u", v->name, i);
        element.type = lnt_import_element_type(v);
        if (!element.name)
            return LNT_E_MEMORY;
        LNT_TRY(add_model_tensor(im, &element, false, to));
        piece[i] = lnt_import_lookup(im, element.name);
    }
    im->g->value[value].piece = length < 0 ? NULL : piece;
    im->g->value[value].n_pieces = n;
    im->g->value[value].absent = length < 0;
    return lnt_import_record_length(im, v->name, length);
}

/* One that --length speaks of. */
static lnt_status add_fixed_input(lnt_importer *im, const LntOnnx__ValueInfo *v, int64_t length, inputs *to)
{
    const bool optional = v->type && v->type->optional_type, sequence = lnt_import_element_type(v);
    LNT_REQUIRE(length <= LNT_IMPORT_MAX_PIECES || !sequence, im->err, LNT_E_LIMIT,
                "--length %s=%lld: a sequence may have %d elements", v->name, (long long)length,
                LNT_IMPORT_MAX_PIECES);
    LNT_REQUIRE(length >= 0 || optional, im->err, LNT_E_ARGUMENT, "--length %s=none: it is no optional",
                v->name);
    return length < 0 || sequence ? add_model_sequence(im, v, length, to)
                                  : lnt_import_fix_count(im, v, length);
}

/* Inputs of the model, without those that initializers or --bake make constants; overridable ones behind them. */
static lnt_status add_model_inputs(lnt_importer *im, const LntOnnx__Graph *graph)
{
    const size_t most = graph->n_input + graph->n_initializer + lnt_import_most_elements(im, graph);
    inputs to = {.in = lnt_bump_alloc(&im->g->memory, most * sizeof *to.in, im->err)};
    size_t at = 0;
    int64_t length;
    if (!to.in)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_import_check_lengths(im, graph));
    for (size_t i = 0; i < graph->n_input; i++) {
        const LntOnnx__ValueInfo *v = graph->input[i];
        LNT_REQUIRE(v->name && v->name[0], im->err, LNT_E_MODEL, "input %zu of the model has no name", i);
        if (lnt_names_find(&im->scope->names, v->name) != LNT_NAMES_NONE)
            continue;
        if (lnt_import_length(im, v, at++, &length))
            LNT_TRY(add_fixed_input(im, v, length, &to));
        else
            LNT_TRY(add_model_tensor(im, v, true, &to));
    }
    for (size_t i = 0; i < graph->n_initializer && im->options->n_overridable; i++)
        LNT_TRY(add_overridable(im, &graph->initializer[i], to.in, &to.n));
    for (size_t i = 0; i < im->options->n_bake; i++)
        LNT_REQUIRE(im->options->bake[i].input < to.position, im->err, LNT_E_NOT_FOUND,
                    "the model has no input number %u to bake", im->options->bake[i].input);
    im->g->sub[0].in = to.in;
    im->g->sub[0].n_in = to.n;
    return LNT_OK;
}

/* Values for everything the model's own nodes compute, made first: subgraphs may use the same names, and it
 * is theirs that change. */
static lnt_status reserve_names(lnt_importer *im, const LntOnnx__Graph *graph)
{
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++) {
            const char *name = graph->node[i]->output[k];
            if (!name[0] || lnt_names_find(&im->scope->wanted, name) != LNT_NAMES_NONE)
                continue;
            const uint32_t value = lnt_graph_add_value(im->g, name);
            if (value == LNT_NONE)
                return LNT_E_MEMORY;
            LNT_TRY(lnt_names_set(&im->scope->wanted, name, value, im->err));
        }
    return LNT_OK;
}

static lnt_status import_graph(lnt_importer *im)
{
    const LntOnnx__Graph *graph = im->model->graph;
    LNT_REQUIRE(graph, im->err, LNT_E_MODEL, "the ONNX model has no graph");
    LNT_REQUIRE(graph->n_output > 0, im->err, LNT_E_MODEL,
                "the graph has no outputs: there is nothing to compute");
    if (lnt_graph_add_sub(im->g, graph->name ? graph->name : "") == LNT_NONE)
        return LNT_E_MEMORY;
    im->text = lnt_import_takes_text(graph);
    LNT_TRY(lnt_import_initializers(im, graph));
    LNT_TRY(add_model_inputs(im, graph));
    LNT_TRY(reserve_names(im, graph));
    LNT_TRY(lnt_import_nodes(im, graph->node, graph->n_node));
    LNT_TRY(add_model_outputs(im, graph));
    return lnt_import_apply_options(im);
}

/* ---- the model ---- */

/* Memory of the unpacked model: freed as a whole. */
typedef struct unpacked {
    lnt_bump memory;
    lnt_error err;
} unpacked;

static void *unpack_allocate(void *arg, size_t bytes)
{
    unpacked *u = arg;
    return lnt_bump_alloc(&u->memory, bytes, &u->err);
}

static void unpack_release(void *arg, void *block)
{
    (void)arg;
    (void)block;
}

static lnt_status unpack(unpacked *u, const void *onnx, size_t size, const LntOnnx__Model **model,
                         lnt_error *err)
{
    ProtobufCAllocator allocator = {unpack_allocate, unpack_release, u};
    *model = lnt_onnx__model__unpack(&allocator, size, onnx);
    LNT_REQUIRE(u->err.code == LNT_OK, err, u->err.code, "%s", u->err.message);
    LNT_REQUIRE(*model, err, LNT_E_MODEL, "not an ONNX model, or a damaged one: a field has the wrong type");
    return LNT_OK;
}

static lnt_status check_header(lnt_importer *im)
{
    const LntOnnx__Model *m = im->model;
    LNT_REQUIRE(m->has_ir_version, im->err, LNT_E_MODEL, "not an ONNX model: there is no IR version");
    LNT_REQUIRE(m->ir_version >= 3, im->err, LNT_E_UNSUPPORTED,
                "ONNX IR version %lld is older than 3: export the model again", (long long)m->ir_version);
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const LntOnnx__OperatorSet *s = m->opset_import[i];
        const bool onnx = !s->domain || !s->domain[0] || strcmp(s->domain, "ai.onnx") == 0;
        LNT_REQUIRE(!onnx || (s->version >= 1 && s->version <= LNT_ONNX_OPSET_NEWEST), im->err,
                    LNT_E_UNSUPPORTED, "opset %lld is not known (1 to %d are): export with an older one",
                    (long long)s->version, LNT_ONNX_OPSET_NEWEST);
    }
    return LNT_OK;
}

static lnt_status add_meta(lnt_importer *im, const char *key, const char *text)
{
    lnt_graph *g = im->g;
    LNT_TRY(LNT_GROW(g->memory.allocator, g->meta, g->meta_capacity, g->n_meta, im->err));
    lnt_gmeta m = {lnt_import_text(im, "%s", key), lnt_import_text(im, "%s", text)};
    if (!m.key || !m.text)
        return LNT_E_MEMORY;
    g->meta[g->n_meta++] = m;
    return LNT_OK;
}

/* What the model says of itself. */
static lnt_status record_names(lnt_importer *im)
{
    const LntOnnx__Model *m = im->model;
    const struct {
        const char *key, *text;
    } said[] = {{"onnx.graph", m->graph ? m->graph->name : NULL},
                {"onnx.graph_description", m->graph ? m->graph->doc_string : NULL},
                {"onnx.domain", m->domain},
                {"onnx.description", m->doc_string},
                {"onnx.version",
                 m->has_model_version ? lnt_import_text(im, "%lld", (long long)m->model_version) : NULL}};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        if (said[i].text && said[i].text[0])
            LNT_TRY(add_meta(im, said[i].key, said[i].text));
    return LNT_OK;
}

/* Where the model came from, then its own metadata. */
static lnt_status record_metadata(lnt_importer *im)
{
    const LntOnnx__Model *m = im->model;
    if (m->producer_name && m->producer_name[0]) {
        const char *version = m->producer_version ? m->producer_version : "";
        const char *text = lnt_import_text(im, "%s%s%s", m->producer_name, version[0] ? " " : "", version);
        if (!text)
            return LNT_E_MEMORY;
        LNT_TRY(add_meta(im, "onnx.producer", text));
    }
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const LntOnnx__OperatorSet *s = m->opset_import[i];
        const char *domain = s->domain && s->domain[0] ? s->domain : "ai.onnx";
        const char *key = lnt_import_text(im, "onnx.opset.%s", domain);
        const char *text = lnt_import_text(im, "%lld", (long long)s->version);
        if (!key || !text)
            return LNT_E_MEMORY;
        LNT_TRY(add_meta(im, key, text));
    }
    for (size_t i = 0; i < m->n_metadata_props; i++) {
        const LntOnnx__StringEntry *e = m->metadata_props[i];
        if (e->key && e->value)
            LNT_TRY(add_meta(im, e->key, e->value));
    }
    return LNT_OK;
}

static lnt_status import_model(lnt_importer *im)
{
    LNT_TRY(check_header(im));
    im->opset = im->model->opset_import;
    im->n_opsets = im->model->n_opset_import;
    LNT_TRY(lnt_import_index_functions(im));
    LNT_TRY(record_metadata(im));
    LNT_TRY(record_names(im));
    LNT_TRY(import_graph(im));
    const lnt_report *r = im->report;
    LNT_REQUIRE(r->n_unsupported == 0, im->err, LNT_E_UNSUPPORTED,
                "%zu of the model's parts cannot be converted, first '%s' (%s): %s", r->n_unsupported,
                r->unsupported[0].node, r->unsupported[0].op, r->unsupported[0].reason);
    im->report->nodes_before = (uint32_t)im->n_nodes;
    return lnt_graph_infer(im->g);
}

lnt_status lnt_import(lnt_graph *g, const void *onnx, size_t size, const char *folder,
                      const lnt_convert_options *options, lnt_report *report)
{
    LNT_TRY(lnt_onnx_scan(onnx, size, g->err));
    report->onnx_bytes = size;
    unpacked u = {.err = {0}};
    lnt_bump_init(&u.memory, g->memory.allocator);
    lnt_scope scope = lnt_scope_in(NULL, g);
    lnt_importer im = {.g = g,
                       .report = report,
                       .options = options,
                       .folder = folder,
                       .functions.heap = g->memory.allocator,
                       .scope = &scope,
                       .err = g->err};
    lnt_status status = unpack(&u, onnx, size, &im.model, g->err);
    if (status == LNT_OK)
        status = import_model(&im);
    lnt_names_free(&scope.names);
    lnt_names_free(&scope.wanted);
    lnt_names_free(&im.functions);
    lnt_bump_free(&u.memory);
    return status;
}
