/* import_node.c — one ONNX node: operands, attributes, subgraphs, and its way into the graph. */
#include "base/lnt_assert.h"
#include "base/small.h"
#include "convert/import/import.h"

#include <string.h>

/* ---- operands ---- */

/* The value that is wanted for the name, or a fresh one. */
static lnt_status make_value(lnt_importer *im, const char *name, uint32_t *value)
{
    *value = lnt_names_find(&im->scope->wanted, name);
    if (*value != LNT_NAMES_NONE)
        return LNT_OK;
    const char *text = im->call ? lnt_import_text(im, "%s/%s", im->call->prefix, name) : name;
    *value = text ? lnt_graph_add_value(im->g, text) : LNT_NONE;
    return *value == LNT_NONE ? LNT_E_MEMORY : LNT_OK;
}

lnt_status lnt_import_define(lnt_importer *im, const char *name, uint32_t *value)
{
    LNT_TRY(make_value(im, name, value));
    return lnt_import_bind(im, name, *value);
}

static lnt_status read_inputs(lnt_importer *im, const LntOnnx__Node *node, lnt_inode *n)
{
    size_t count = node->n_input;
    while (count > 0 && !node->input[count - 1][0])
        count--;
    LNT_REQUIRE(count <= LNT_IMPORT_MAX_OPERANDS, im->err, LNT_E_LIMIT, "node '%s' (%s) has %zu inputs",
                n->name, n->op, count);
    n->n_in = (unsigned)count;
    n->in = lnt_bump_alloc(&im->g->memory, count * sizeof *n->in, im->err);
    if (!n->in)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < n->n_in; i++) {
        n->in[i] = LNT_NONE;
        for (const lnt_scope *s = im->scope; s && n->in[i] == LNT_NONE && node->input[i][0]; s = s->outer)
            n->in[i] = lnt_names_find(&s->names, node->input[i]);
        LNT_REQUIRE(n->in[i] != LNT_NONE || !node->input[i][0], im->err, LNT_E_MODEL,
                    "node '%s' (%s) reads '%s', which nothing before it computes", n->name, n->op,
                    node->input[i]);
    }
    return LNT_OK;
}

static lnt_status make_outputs(lnt_importer *im, const LntOnnx__Node *node, lnt_inode *n)
{
    size_t count = node->n_output;
    while (count > 0 && !node->output[count - 1][0])
        count--;
    LNT_REQUIRE(count <= LNT_IMPORT_MAX_OPERANDS, im->err, LNT_E_LIMIT, "node '%s' (%s) has %zu outputs",
                n->name, n->op, count);
    n->n_out = (unsigned)count;
    n->out = lnt_bump_alloc(&im->g->memory, count * sizeof *n->out, im->err);
    if (!n->out)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < n->n_out; i++) {
        n->out[i] = LNT_NONE;
        if (node->output[i][0])
            LNT_TRY(make_value(im, node->output[i], &n->out[i]));
    }
    return LNT_OK;
}

/* From here on nodes can read the outputs. */
static lnt_status bind_outputs(lnt_importer *im, const LntOnnx__Node *node, const uint32_t *out, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (node->output[i][0])
            LNT_TRY(lnt_import_bind(im, node->output[i], out[i]));
    return LNT_OK;
}

/* ---- attributes ---- */

/* AttributeProto.type; models of the first days leave it out, then the field that is set tells. */
enum {
    PROTO_FLOAT = 1,
    PROTO_INT,
    PROTO_STRING,
    PROTO_TENSOR,
    PROTO_GRAPH,
    PROTO_FLOATS,
    PROTO_INTS,
    PROTO_STRINGS,
    PROTO_TYPE = 13
};

static int type_of(const LntOnnx__Attribute *p)
{
    if (p->has_type && p->type)
        return p->type;
    return p->has_f      ? PROTO_FLOAT
           : p->has_i    ? PROTO_INT
           : p->has_s    ? PROTO_STRING
           : p->has_t    ? PROTO_TENSOR
           : p->g        ? PROTO_GRAPH
           : p->n_floats ? PROTO_FLOATS
           : p->n_ints   ? PROTO_INTS
                         : PROTO_STRINGS;
}

static lnt_status keep(lnt_importer *im, const void *data, size_t count, size_t size, const void **out)
{
    void *copy = lnt_bump_alloc(&im->g->memory, count * size, im->err);
    *out = copy;
    if (copy && count)
        memcpy(copy, data, count * size);
    return copy ? LNT_OK : LNT_E_MEMORY;
}

static lnt_status read_strings(lnt_importer *im, const LntOnnx__Attribute *p, lnt_attr *a)
{
    const char **list = lnt_bump_alloc(&im->g->memory, p->n_strings * sizeof *list, im->err);
    a->strings = list;
    for (size_t i = 0; list && i < p->n_strings; i++)
        if (!(list[i] = lnt_bump_string(&im->g->memory, (const char *)p->strings[i].data, p->strings[i].len,
                                        im->err)))
            return LNT_E_MEMORY;
    return list ? LNT_OK : LNT_E_MEMORY;
}

static lnt_status read_tensor(lnt_importer *im, const LntOnnx__Attribute *p, lnt_attr *a)
{
    lnt_operand *tensor = lnt_bump_alloc(&im->g->memory, sizeof *tensor, im->err);
    size_t bytes;
    a->tensor = tensor;
    if (tensor && im->text) { /* of text: numbers of words, which the type tells */
        LNT_TRY(lnt_import_tensor_header(im, &p->t, tensor));
        if (tensor->dtype == LNT_STRING)
            return lnt_import_text_tensor(im, &p->t, tensor);
    }
    return tensor ? lnt_import_tensor(im, &p->t, tensor, &bytes) : LNT_E_MEMORY;
}

static lnt_status read_graph(lnt_importer *im, const LntOnnx__Attribute *p, const lnt_inode *owner,
                             lnt_attr *a)
{
    LNT_REQUIRE(p->g, im->err, LNT_E_MODEL, "node '%s' (%s): attribute %s holds no graph", owner->name,
                owner->op, a->name);
    uint32_t sub;
    LNT_TRY(lnt_import_subgraph(im, p->g, owner, &sub));
    const int64_t number = sub;
    return keep(im, &number, 1, sizeof number, (const void **)&a->i);
}

static lnt_status read_attr(lnt_importer *im, const LntOnnx__Attribute *p, const lnt_inode *owner,
                            lnt_attr *a)
{
    const int type = type_of(p);
    const size_t counts[] = {[PROTO_STRING] = p->s.len,
                             [PROTO_FLOATS] = p->n_floats,
                             [PROTO_INTS] = p->n_ints,
                             [PROTO_STRINGS] = p->n_strings};
    a->count = 1;
    if (type == PROTO_STRING || (type >= PROTO_FLOATS && type <= PROTO_STRINGS)) {
        LNT_REQUIRE(counts[type] <= INT32_MAX, im->err, LNT_E_LIMIT, "node '%s': attribute %s has %zu values",
                    owner->name, a->name, counts[type]);
        a->count = (uint32_t)counts[type];
    }
    switch (type) {
    case PROTO_FLOAT: a->type = LNT_ATTR_FLOAT; return keep(im, &p->f, 1, sizeof p->f, (const void **)&a->f);
    case PROTO_INT: a->type = LNT_ATTR_INT; return keep(im, &p->i, 1, sizeof p->i, (const void **)&a->i);
    case PROTO_FLOATS:
        a->type = LNT_ATTR_FLOATS;
        return keep(im, p->floats, p->n_floats, sizeof *p->floats, (const void **)&a->f);
    case PROTO_INTS:
        a->type = LNT_ATTR_INTS;
        return keep(im, p->ints, p->n_ints, sizeof *p->ints, (const void **)&a->i);
    case PROTO_STRING:
        a->type = LNT_ATTR_STRING;
        a->s = lnt_bump_string(&im->g->memory, (const char *)p->s.data, p->s.len, im->err);
        return a->s ? LNT_OK : LNT_E_MEMORY;
    case PROTO_STRINGS: a->type = LNT_ATTR_STRINGS; return read_strings(im, p, a);
    case PROTO_TENSOR: a->type = LNT_ATTR_TENSOR; return read_tensor(im, p, a);
    case PROTO_GRAPH: a->type = LNT_ATTR_GRAPH; return read_graph(im, p, owner, a);
    default:
        return lnt_fail(im->err, LNT_E_UNSUPPORTED,
                        "attribute %s has a type that is not supported (number %d)", a->name, type);
    }
}

/* The attribute of the function being inlined that p stands for; NULL if its caller gave none. */
static const lnt_attr *referred(const lnt_importer *im, const LntOnnx__Attribute *p)
{
    for (unsigned i = 0; im->call && i < im->call->n_attr; i++)
        if (strcmp(im->call->attr[i].name, p->ref_attr_name) == 0)
            return &im->call->attr[i];
    return NULL;
}

lnt_status lnt_import_attrs(lnt_importer *im, LntOnnx__Attribute *const *proto, size_t n_proto, lnt_inode *n)
{
    LNT_REQUIRE(n_proto <= LNT_IMPORT_MAX_OPERANDS, im->err, LNT_E_LIMIT, "node '%s' has %zu attributes",
                n->name, n_proto);
    n->attr = lnt_bump_alloc(&im->g->memory, n_proto * sizeof *n->attr, im->err);
    if (!n->attr)
        return LNT_E_MEMORY;
    for (size_t i = 0; i < n_proto; i++) {
        const LntOnnx__Attribute *p = proto[i];
        LNT_REQUIRE(p->name, im->err, LNT_E_MODEL, "node '%s' (%s): an attribute has no name", n->name,
                    n->op);
        lnt_attr a = {.name = lnt_import_text(im, "%s", p->name)};
        if (!a.name)
            return LNT_E_MEMORY;
        if (n->inlined && type_of(p) == PROTO_GRAPH)
            continue;
        if (type_of(p) == PROTO_TYPE && strcmp(n->op, "Optional") == 0) /* of what there is not */
            continue;
        if (p->ref_attr_name && p->ref_attr_name[0]) {
            const lnt_attr *given = referred(im, p);
            if (!given)
                continue;
            const char *name = a.name;
            a = *given;
            a.name = name;
        } else {
            const lnt_status status = read_attr(im, p, n, &a);
            if (status != LNT_OK && status != LNT_E_UNSUPPORTED && type_of(p) == PROTO_TENSOR)
                lnt_error_prefix(im->err, "node '%s' (%s), attribute %s: ", n->name, n->op, a.name);
            LNT_TRY(lnt_import_list_failure(im, n, status));
            if (status != LNT_OK)
                continue;
        }
        n->attr[n->n_attr++] = a;
    }
    return LNT_OK;
}

/* What the getters of ops/op.h read of a node. */
static lnt_node attributes_of(const lnt_inode *n)
{
    return (lnt_node){.attr = n->attr, .n_attr = (uint16_t)n->n_attr};
}

const lnt_attr *lnt_inode_attr(const lnt_inode *n, const char *name)
{
    const lnt_node view = attributes_of(n);
    return lnt_attr_find(&view, name);
}

int64_t lnt_inode_i(const lnt_inode *n, const char *name, int64_t otherwise)
{
    const lnt_node view = attributes_of(n);
    return lnt_attr_i(&view, name, otherwise);
}

float lnt_inode_f(const lnt_inode *n, const char *name, float otherwise)
{
    const lnt_node view = attributes_of(n);
    return lnt_attr_f(&view, name, otherwise);
}

const char *lnt_inode_s(const lnt_inode *n, const char *name, const char *otherwise)
{
    const lnt_node view = attributes_of(n);
    return lnt_attr_s(&view, name, otherwise);
}

void lnt_inode_drop(lnt_inode *n, const char *name)
{
    for (unsigned i = 0; i < n->n_attr; i++)
        if (strcmp(n->attr[i].name, name) == 0)
            n->attr[i--] = n->attr[--n->n_attr];
}

lnt_status lnt_inode_set(lnt_importer *im, lnt_inode *n, const lnt_attr *attr)
{
    lnt_inode_drop(n, attr->name);
    lnt_attr *list = lnt_bump_alloc(&im->g->memory, (n->n_attr + 1) * sizeof *list, im->err);
    if (!list)
        return LNT_E_MEMORY;
    if (n->n_attr)
        memcpy(list, n->attr, n->n_attr * sizeof *list);
    list[n->n_attr++] = *attr;
    n->attr = list;
    return LNT_OK;
}

lnt_status lnt_inode_set_i(lnt_importer *im, lnt_inode *n, const char *name, int64_t value)
{
    lnt_attr a = {.name = name, .type = LNT_ATTR_INT, .count = 1};
    LNT_TRY(keep(im, &value, 1, sizeof value, (const void **)&a.i));
    return lnt_inode_set(im, n, &a);
}

lnt_status lnt_inode_set_s(lnt_importer *im, lnt_inode *n, const char *name, const char *text)
{
    const lnt_attr a = {.name = name, .type = LNT_ATTR_STRING, .count = (uint32_t)strlen(text), .s = text};
    return lnt_inode_set(im, n, &a);
}

lnt_status lnt_inode_set_in(lnt_importer *im, lnt_inode *n, unsigned i, uint32_t value)
{
    const unsigned count = i < n->n_in ? n->n_in : i + 1;
    uint32_t *in = lnt_bump_alloc(&im->g->memory, count * sizeof *in, im->err);
    if (!in)
        return LNT_E_MEMORY;
    for (unsigned k = 0; k < count; k++)
        in[k] = lnt_inode_in(n, k);
    in[i] = value;
    n->in = in;
    n->n_in = count;
    return LNT_OK;
}

/* ---- into the graph ---- */

/* A string, or a list of them, as a tensor of numbers of words. */
static lnt_status number_strings(lnt_importer *im, const lnt_attr *a, lnt_operand *t)
{
    const bool list = a->type == LNT_ATTR_STRINGS;
    const uint32_t n = list ? a->count : 1;
    int64_t *number = lnt_bump_alloc(&im->g->memory, n * sizeof *number, im->err);
    *t = (lnt_operand){.dtype = LNT_STRING, .rank = list, .dims = {list ? n : 0}, .data = number};
    if (!number)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        LNT_TRY(lnt_import_word(im, list ? a->strings[i] : a->s, &number[i]));
    return LNT_OK;
}

/* A Constant node is no node: its output becomes a constant of the graph. */
static lnt_status add_constant(lnt_importer *im, lnt_inode *n)
{
    const lnt_attr *a = n->n_attr == 1 ? &n->attr[0] : NULL;
    lnt_operand words;
    const lnt_attr of_words = {.type = LNT_ATTR_TENSOR, .count = 1, .tensor = &words};
    if (a && im->text && (a->type == LNT_ATTR_STRING || a->type == LNT_ATTR_STRINGS)) {
        LNT_TRY(number_strings(im, a, &words));
        a = &of_words;
    }
    if (!a || a->type == LNT_ATTR_STRING || a->type == LNT_ATTR_STRINGS || a->type == LNT_ATTR_GRAPH)
        return lnt_import_unsupported(im, n, "its value is no dense tensor of numbers");
    lnt_operand t = {.constant = true};
    if (a->type == LNT_ATTR_TENSOR) {
        t = *a->tensor;
    } else {
        t.dtype = a->type == LNT_ATTR_INT || a->type == LNT_ATTR_INTS ? LNT_INT64 : LNT_FLOAT;
        t.rank = a->type == LNT_ATTR_INTS || a->type == LNT_ATTR_FLOATS;
        t.dims[0] = t.rank ? a->count : 0;
        t.data = a->i;
    }
    LNT_REQUIRE(n->n_out == 1, im->err, LNT_E_MODEL, "node '%s' (Constant) must have one output", n->name);
    lnt_gvalue *v = &im->g->value[n->out[0]];
    v->text = t.dtype == LNT_STRING;
    t.dtype = v->text ? LNT_INT64 : t.dtype;
    t.constant = v->constant = true;
    v->info = t;
    LNT_REQUIRE(lnt_operand_bytes(&t, &v->bytes), im->err, LNT_E_MODEL,
                "node '%s' (Constant): its value is larger than the address space", n->name);
    return LNT_OK;
}

static lnt_status check_counts(lnt_importer *im, lnt_inode *n, const lnt_op *op, bool *fine)
{
    *fine = false;
    while (n->n_in < op->in_min &&
           lnt_op_may_skip(op, n->n_in)) /* skipped at the end, where names are left out */
        LNT_TRY(lnt_inode_set_in(im, n, n->n_in, LNT_NONE));
    if (n->n_in < op->in_min || (op->in_max != 255 && n->n_in > op->in_max))
        return lnt_import_unsupported(im, n, "has %u inputs, not %u to %u", n->n_in, op->in_min, op->in_max);
    if (n->n_out < op->out_min || (op->out_max != 255 && n->n_out > op->out_max))
        return lnt_import_unsupported(im, n, "has %u outputs, not %u to %u", n->n_out, op->out_min,
                                      op->out_max);
    for (unsigned i = 0; i < n->n_in; i++)
        if (n->in[i] == LNT_NONE && !lnt_op_may_skip(op, i))
            return lnt_import_unsupported(im, n, "input %u is required", i);
    *fine = true;
    return LNT_OK;
}

/* True if name is one of the words in list. */
static bool has_word(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; n && (at = strstr(at, name)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

/* An attribute that the operator does not know could mean anything: it is not passed over in silence. */
static lnt_status check_attrs(lnt_importer *im, const lnt_inode *n, bool *fine)
{
    static const struct {
        const char *op, *names;
    } known[] = {
#define ATTRIBUTES(op, names) {op, names},
#include "convert/import/attributes.h"
#undef ATTRIBUTES
    };
    const char *names = "";
    *fine = true;
    if (n->domain[0])
        return LNT_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].op, n->op) == 0)
            names = known[i].names;
    for (unsigned i = 0; i < n->n_attr; i++) {
        if (has_word(names, n->attr[i].name))
            continue;
        *fine = false;
        LNT_TRY(lnt_import_unsupported(im, n, "%s of opset %lld has no attribute '%s'", n->op,
                                       (long long)n->opset, n->attr[i].name));
    }
    return LNT_OK;
}

/* Attributes that name the element type of an output must name one we have; 0 leaves it to the operator. */
static lnt_status check_asked_types(lnt_importer *im, const lnt_inode *n, const lnt_op *op, bool *fine)
{
    for (unsigned i = 0; i < n->n_attr; i++) {
        const lnt_attr *a = &n->attr[i];
        if (a->type != LNT_ATTR_INT || !has_word("dtype output_dtype output_datatype to", a->name))
            continue;
        const lnt_dtype asked = (uint64_t)a->i[0] <= LNT_INT2 ? (lnt_dtype)a->i[0] : LNT_UNDEFINED;
        const bool known =
            lnt_dtype_size(asked) > 0 && (!lnt_is_small(asked) || op->flags & LNT_OP_TAKES_SMALL);
        if (a->i[0] == LNT_UNDEFINED || known)
            continue;
        *fine = false;
        LNT_TRY(lnt_import_unsupported(
            im, n, "node '%s' (%s): attribute '%s' is element type number %lld (%s), which is not supported",
            n->name, n->op, a->name, (long long)a->i[0], asked ? lnt_dtype_text(asked) : "unknown type"));
    }
    return LNT_OK;
}

/* Few operators know of types of 8 bits and fewer. */
static lnt_status check_small(lnt_importer *im, const lnt_inode *n, const lnt_op *op, bool *fine)
{
    for (unsigned i = 0; i < n->n_in && !(op->flags & LNT_OP_TAKES_SMALL); i++) {
        const lnt_operand *x = lnt_ginfo(im->g, n->in[i]);
        if (!x || !lnt_is_small((lnt_dtype)x->dtype))
            continue;
        *fine = false;
        return lnt_import_unsupported(im, n, "it reads %s, which can be moved, cast and dequantized only",
                                      lnt_dtype_text((lnt_dtype)x->dtype));
    }
    return LNT_OK;
}

/* A constant of a small integer type is dequantized as int8 or uint8, which all passes know. */
static lnt_status take_as_byte(lnt_importer *im, lnt_inode *n, unsigned i)
{
    if (lnt_inode_in(n, i) == LNT_NONE)
        return LNT_OK;
    const lnt_gvalue w = im->g->value[n->in[i]]; /* a copy: a value more may move all of them */
    if (!w.constant || !w.info.data || !lnt_is_small_integer((lnt_dtype)w.info.dtype))
        return LNT_OK;
    LNT_ASSERT(w.bytes == (size_t)lnt_operand_count(&w.info)); /* each a byte */
    const uint32_t v = lnt_graph_add_constant(im->g, w.name, lnt_small_as_byte((lnt_dtype)w.info.dtype),
                                              w.info.rank, w.info.dims, w.info.data, w.bytes);
    if (v == LNT_NONE)
        return LNT_E_MEMORY;
    im->g->value[v].small = true;
    n->in[i] = v;
    return LNT_OK;
}

/* A node of an operator we have, its types and extents inferred at once: later rules ask for ranks. */
static lnt_status add_row(lnt_importer *im, lnt_inode *n, const lnt_op *op)
{
    bool fine;
    for (unsigned i = 0; i < n->n_in; i++) {
        const lnt_gvalue *v = n->in[i] == LNT_NONE ? NULL : &im->g->value[n->in[i]];
        if (v && v->piece)
            return lnt_import_unsupported(im, n, "input %u is a sequence, which is not supported", i);
        if (v && v->absent)
            return lnt_import_unsupported(
                im, n, "input %u is an optional that holds nothing, which is not supported", i);
    }
    LNT_TRY(check_counts(im, n, op, &fine));
    if (fine)
        LNT_TRY(check_small(im, n, op, &fine));
    if (fine)
        LNT_TRY(check_attrs(im, n, &fine));
    if (fine)
        LNT_TRY(check_asked_types(im, n, op, &fine));
    if (!fine)
        return LNT_OK;
    for (unsigned i = 0; op->id == LNT_ID_DequantizeLinear && i < n->n_in; i += 2)
        LNT_TRY(take_as_byte(im, n, i));
    lnt_gnode *node = lnt_graph_add_node(im->g, im->sub, NULL, op, n->name, n->in, n->n_in, n->out, n->n_out);
    if (!node)
        return LNT_E_MEMORY;
    for (unsigned i = 0; i < n->n_attr; i++)
        LNT_TRY(lnt_gnode_set_attr(im->g, node, &n->attr[i]));
    return lnt_import_list_failure(im, n, lnt_graph_infer_node(im->g, node));
}

/* True if --custom names the operator: the host will bring it. So it does ImageDecoder, as the program does, for the
 * runtime knows no formats of pictures. */
static bool is_custom(const lnt_importer *im, const lnt_inode *n)
{
    const size_t domain = strlen(n->domain);
    if (!domain && strcmp(n->op, "ImageDecoder") == 0)
        return true;
    for (size_t i = 0; i < im->options->n_custom; i++) {
        const char *name = im->options->custom[i];
        if (strncmp(name, n->domain, domain) == 0 && name[domain] == '.' &&
            strcmp(name + domain + 1, n->op) == 0)
            return true;
    }
    return false;
}

/* Linnet's operator Custom, which remembers what it is called in ONNX. */
static lnt_status add_custom(lnt_importer *im, lnt_inode *n)
{
    LNT_TRY(lnt_inode_set_s(im, n, "custom_domain", n->domain));
    LNT_TRY(lnt_inode_set_s(im, n, "custom_name", n->op));
    n->domain = "linnet";
    return add_row(im, n, lnt_op_by_id(LNT_ID_Custom));
}

lnt_status lnt_import_add(lnt_importer *im, lnt_inode *n)
{
    LNT_REQUIRE(++im->n_nodes <= LNT_ONNX_MAX_NODES, im->err, LNT_E_LIMIT,
                "the model has more than %d nodes once its functions are inlined", LNT_ONNX_MAX_NODES);
    if (strcmp(n->op, "Constant") == 0 && !n->domain[0])
        return add_constant(im, n);
    if (is_custom(im, n))
        return add_custom(im, n);
    LNT_TRY(lnt_upgrade(im, n));
    LNT_TRY(lnt_expand_microsoft(im, n));
    LNT_TRY(lnt_expand_ml(im, n));
    LNT_TRY(lnt_expand_preview(im, n));
    LNT_TRY(lnt_expand_sequences(im, n));
    LNT_TRY(lnt_expand_control(im, n));
    const lnt_op *op = n->replaced ? NULL : lnt_op_by_name(n->domain, n->op);
    if (!op && !n->replaced)
        LNT_TRY(lnt_expand(im, n));
    if (n->replaced)
        return LNT_OK;
    if (!op && strcmp(n->domain, "ai.onnx.preview.training") == 0)
        return lnt_import_unsupported(im, n, "it trains a model: export the model as it is once it is trained");
    if (!op)
        return lnt_import_unsupported(im, n, "unknown operator%s",
                                      n->domain[0] ? "; if the host program brings it, name it with --custom"
                                                   : "");
    return add_row(im, n, op);
}

/* Version of domain in the model or the function being inlined; 0 where it is not imported. */
static int64_t opset_of(const lnt_importer *im, const char *domain)
{
    for (size_t i = 0; i < im->n_opsets; i++) {
        const char *d = im->opset[i]->domain ? im->opset[i]->domain : "";
        if (strcmp(strcmp(d, "ai.onnx") == 0 ? "" : d, domain) == 0)
            return im->opset[i]->version;
    }
    return 0;
}

static const char *node_name(lnt_importer *im, const LntOnnx__Node *node)
{
    const char *name = node->name && node->name[0] ? node->name : node->n_output ? node->output[0] : "";
    return im->call ? lnt_import_text(im, "%s/%s", im->call->prefix, name) : lnt_import_text(im, "%s", name);
}

lnt_status lnt_import_node(lnt_importer *im, const LntOnnx__Node *node)
{
    LNT_REQUIRE(node->op_type && node->op_type[0], im->err, LNT_E_MODEL, "node '%s' has no operator",
                node->name ? node->name : "");
    const char *domain = node->domain && strcmp(node->domain, "ai.onnx") != 0 ? node->domain : "";
    lnt_inode n = {.name = node_name(im, node), .domain = domain, .op = node->op_type};
    if (!n.name)
        return LNT_E_MEMORY;
    n.opset = opset_of(im, domain);
    const LntOnnx__Function *f =
        is_custom(im, &n) ? NULL : lnt_import_find_function(im, domain, n.op, node->overload);
    LNT_TRY(read_inputs(im, node, &n));
    n.inlined = !f && !is_custom(im, &n) && lnt_import_inlines(im, &n, node) ? node : NULL;
    LNT_TRY(lnt_import_attrs(im, node->attribute, node->n_attribute, &n));
    LNT_TRY(make_outputs(im, node, &n));
    const uint32_t *out = n.out;
    const unsigned n_out = n.n_out;
    if (!n.inlined) /* its subgraphs may not read what they compute */
        LNT_TRY(bind_outputs(im, node, out, n_out));
    if (f)
        return lnt_import_call(im, f, &n);
    bool fine;
    const uint32_t from = lnt_inode_in(&n, 0);
    LNT_TRY(im->text ? lnt_import_check_text(im, &n, &fine) : lnt_import_check_words(im, &n, &fine));
    const lnt_inode before = n; /* rules may change it */
    if (fine)
        LNT_TRY(lnt_import_add(im, &n));
    if (fine && im->text)
        lnt_import_carry_text(im, strcmp(n.op, "If") == 0 ? &n : &before); /* n gives what branches give */
    else if (fine)
        lnt_import_carry_words(im, &n, from);
    return n.inlined ? bind_outputs(im, node, out, n_out) : LNT_OK;
}
