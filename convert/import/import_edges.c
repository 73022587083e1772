/* import_edges.c — sequences at the edges of a model. Their length is fixed at conversion, as --dim fixes an extent:
 * input or output NAME is tensors NAME.0, NAME.1 and on, and metadata `sequence.NAME` tells how many;
 * `sequence_output.NAME` tells the place of an output among the model's. */
#include "convert/import/import.h"

#include "base/lnt_assert.h"
#include "base/nearest.h"

#include <inttypes.h>
#include <string.h>

/* What --length says of an input. */
static bool named_length(const lnt_importer *im, const char *input, int64_t *length)
{
    for (size_t i = 0; i < im->options->n_lengths; i++)
        if (strcmp(im->options->length[i].name, input) == 0) {
            *length = im->options->length[i].value;
            return true;
        }
    return false;
}

bool lnt_import_length(const lnt_importer *im, const LntOnnx__ValueInfo *v, size_t at, int64_t *length)
{
    const lnt_convert_options *o = im->options;
    const bool optional = v->type && v->type->optional_type, sequence = lnt_import_element_type(v);
    if (named_length(im, v->name, length))
        return true;
    if (at >= o->n_case_lengths || o->case_length[at] < LNT_LENGTH_NONE)
        return false;
    *length = o->case_length[at];
    if (sequence && !optional && *length < 0)
        *length = 0;
    if (!sequence && optional && *length == 0)
        *length = LNT_LENGTH_NONE;
    return sequence || (optional && *length < 0);
}

static size_t within(int64_t length)
{
    return length < 0 || length > LNT_IMPORT_MAX_PIECES ? 0 : (size_t)length;
}

size_t lnt_import_most_elements(const lnt_importer *im, const LntOnnx__Graph *graph)
{
    size_t most = 0;
    int64_t length;
    for (size_t i = 0; i < graph->n_input; i++)
        if (graph->input[i]->name && named_length(im, graph->input[i]->name, &length))
            most += within(length);
    for (size_t i = 0; i < im->options->n_case_lengths; i++)
        most += within(im->options->case_length[i]);
    return most;
}

static lnt_status check_length(lnt_importer *im, const LntOnnx__Graph *graph, const char *name)
{
    lnt_nearest nearest = {.wanted = name};
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *input = graph->input[i]->name ? graph->input[i]->name : "";
        if (strcmp(input, name) == 0)
            return LNT_OK;
        lnt_nearest_add(&nearest, input);
    }
    const char *meant = lnt_nearest_name(&nearest);
    return lnt_fail(im->err, LNT_E_NOT_FOUND, "--length: the model has no input '%s'%s%s%s", name,
                    meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
}

lnt_status lnt_import_check_lengths(lnt_importer *im, const LntOnnx__Graph *graph)
{
    for (size_t i = 0; i < im->options->n_lengths; i++)
        LNT_TRY(check_length(im, graph, im->options->length[i].name));
    return LNT_OK;
}

LntOnnx__Type *lnt_import_element_type(const LntOnnx__ValueInfo *v)
{
    LntOnnx__Type *type = v->type;
    if (type && type->optional_type && type->optional_type->elem_type)
        type = type->optional_type->elem_type;
    type = type && type->sequence_type ? type->sequence_type->elem_type : NULL;
    return type && type->tensor_type ? type : NULL;
}

/* Has the tensor one element, whatever it is fed with? */
static bool is_single(const LntOnnx__Shape *shape)
{
    for (size_t i = 0; shape && i < shape->n_dim; i++)
        if (!shape->dim[i]->has_dim_value || shape->dim[i]->dim_value != 1)
            return false;
    return shape && shape->n_dim <= LNT_MAX_RANK;
}

lnt_status lnt_import_fix_count(lnt_importer *im, const LntOnnx__ValueInfo *v, int64_t count)
{
    const LntOnnx__TensorType *t = v->type ? v->type->tensor_type : NULL;
    const lnt_dtype dtype = t ? (lnt_dtype)t->elem_type : LNT_UNDEFINED;
    LNT_REQUIRE(t && is_single(t->shape) && (dtype == LNT_INT64 || dtype == LNT_INT32 || dtype == LNT_BOOL),
                im->err, LNT_E_ARGUMENT,
                "--length %s=%" PRId64 ": the input is no sequence, and no integer or bool of one element",
                v->name, count);
    LNT_REQUIRE(count <= (dtype == LNT_BOOL    ? 1
                          : dtype == LNT_INT32 ? INT32_MAX
                                               : INT64_MAX),
                im->err, LNT_E_VALUE, "--length %s=%" PRId64 ": the input is %s", v->name, count,
                lnt_dtype_text(dtype));
    const int32_t as_int = (int32_t)(count & INT32_MAX);
    const uint8_t as_bool = count != 0;
    const void *data = dtype == LNT_INT64   ? (const void *)&count
                       : dtype == LNT_INT32 ? (const void *)&as_int
                                            : (const void *)&as_bool;
    const int64_t ones[LNT_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    const uint32_t value = lnt_graph_add_constant(im->g, v->name, dtype, (unsigned)t->shape->n_dim, ones,
                                                  data, lnt_dtype_size(dtype));
    return value == LNT_NONE ? LNT_E_MEMORY : lnt_import_bind(im, v->name, value);
}

bool lnt_import_holds_tensors(const lnt_graph *g, const lnt_gvalue *v)
{
    bool tensors = v->piece != NULL;
    for (uint32_t i = 0; i < v->n_pieces; i++)
        tensors &= v->piece[i] != LNT_NONE && !g->value[v->piece[i]].piece && !g->value[v->piece[i]].absent;
    return tensors;
}

lnt_status lnt_import_output_element(lnt_importer *im, const char *output, uint32_t sequence, uint32_t i,
                                     uint32_t *value)
{
    const lnt_inode place = {.name = output, .domain = "", .op = "graph output"};
    const uint32_t piece = im->g->value[sequence].piece[i];
    const char *name = lnt_import_text(im, "%s.%u", output, i);
    LNT_ASSERT(i < im->g->value[sequence].n_pieces && piece < im->g->n_values);
    if (!name)
        return LNT_E_MEMORY;
    LNT_TRY(lnt_import_record_words(im, name, piece));
    *value = piece;
    if (strcmp(im->g->value[piece].name, name) == 0) /* what comes in goes out */
        return LNT_OK;
    LNT_REQUIRE(lnt_names_find(&im->g->names, name) == LNT_NAMES_NONE, im->err, LNT_E_MODEL,
                "output '%s' is a sequence, and the model has another value '%s': rename one of them", output,
                name);
    *value = lnt_graph_add_value(im->g, name);
    if (*value == LNT_NONE)
        return LNT_E_MEMORY;
    im->g->value[*value].text = im->g->value[piece].text;
    return lnt_make_into(im, &place, "Identity", &piece, 1, NULL, 0, *value);
}

lnt_status lnt_import_record_place(lnt_importer *im, const char *output, size_t place)
{
    const char *key = lnt_import_text(im, "sequence_output.%s", output);
    const char *text = lnt_import_text(im, "%zu", place);
    return key && text ? lnt_import_set_meta(im, key, text) : LNT_E_MEMORY;
}

lnt_status lnt_import_record_length(lnt_importer *im, const char *name, int64_t length)
{
    const char *key = lnt_import_text(im, "sequence.%s", name);
    const char *text = length < 0 ? "none" : lnt_import_text(im, "%" PRId64, length);
    return key && text ? lnt_import_set_meta(im, key, text) : LNT_E_MEMORY;
}
