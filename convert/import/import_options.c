/* import_options.c — what the user asked of a conversion: extents, states, names to keep, metadata. */
#include "convert/import/import.h"

#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

const lnt_tensor *lnt_import_baked(const lnt_importer *im, uint32_t input)
{
    for (size_t i = 0; i < im->options->n_bake; i++)
        if (im->options->bake[i].input == input)
            return im->options->bake[i].tensor;
    return NULL;
}

bool lnt_import_overridable(const lnt_importer *im, const char *initializer)
{
    for (size_t i = 0; i < im->options->n_overridable; i++)
        if (strcmp(im->options->overridable[i], initializer) == 0)
            return true;
    return false;
}

/* ---- extents ---- */

/* What --dim says of name, -1 if nothing; noted as said of an input. */
static lnt_status dim_option(lnt_importer *im, const char *name, int64_t *value)
{
    *value = -1;
    for (size_t i = 0; i < im->options->n_dims; i++)
        if (strcmp(im->options->dim[i].name, name) == 0) {
            *value = im->options->dim[i].value;
            return lnt_names_set(&im->g->fixed_dims, im->options->dim[i].name, 0, im->err);
        }
    return LNT_OK;
}

static lnt_status symbol_dim(lnt_importer *im, const char *name, uint32_t value, unsigned axis, int64_t *dim)
{
    lnt_graph *g = im->g;
    size_t k = 0;
    while (k < g->n_symbols && strcmp(g->symbol[k].name, name) != 0)
        k++;
    *dim = lnt_symbol_extent((uint32_t)k);
    if (k < g->n_symbols)
        return LNT_OK;
    LNT_TRY(LNT_GROW(g->memory.allocator, g->symbol, g->symbol_capacity, g->n_symbols, im->err));
    const char *copy = lnt_import_text(im, "%s", name);
    if (!copy)
        return LNT_E_MEMORY;
    g->symbol[g->n_symbols++] = (lnt_gsymbol){
        .name = copy, .kind = LNT_SYMBOL_INPUT_EXTENT, .value = value, .axis = axis, .bound = -1};
    return LNT_OK;
}

static lnt_status input_dim(lnt_importer *im, const LntOnnx__Dimension *d, uint32_t value, unsigned axis,
                            bool shared, int64_t *dim)
{
    const char *place = lnt_import_text(im, "%s:%u", im->g->value[value].name, axis);
    if (!place)
        return LNT_E_MEMORY;
    const bool fixed = d->has_dim_value && d->dim_value >= 0;
    const char *name = !fixed && d->dim_param && d->dim_param[0] ? d->dim_param : place;
    int64_t wanted;
    LNT_TRY(dim_option(im, place, &wanted));
    if (wanted < 0)
        LNT_TRY(dim_option(im, name, &wanted));
    LNT_REQUIRE(!fixed || wanted < 0 || wanted == d->dim_value, im->err, LNT_E_ARGUMENT,
                "--dim %s=%lld: the model fixes that extent at %lld", place, (long long)wanted,
                (long long)d->dim_value);
    if (fixed || wanted >= 0) {
        *dim = fixed ? d->dim_value : wanted;
        return LNT_OK;
    }
    return symbol_dim(im, shared ? name : place, value, axis, dim);
}

lnt_status lnt_import_input_dims(lnt_importer *im, const LntOnnx__Shape *shape, bool shared, uint32_t value)
{
    for (unsigned i = 0; i < shape->n_dim; i++)
        LNT_TRY(input_dim(im, shape->dim[i], value, i, shared, &im->g->value[value].info.dims[i]));
    return LNT_OK;
}

/* ---- states ---- */

static lnt_status position(lnt_importer *im, const uint32_t *list, uint32_t n, const char *name,
                           const char *kind, uint32_t *at)
{
    for (*at = 0; *at < n; ++*at)
        if (strcmp(im->g->value[list[*at]].name, name) == 0)
            return LNT_OK;
    return lnt_fail(im->err, LNT_E_NOT_FOUND, "--state: the model has no %s '%s'", kind, name);
}

static lnt_status add_state(lnt_importer *im, const char *output, const char *input)
{
    lnt_graph *g = im->g;
    lnt_gstate s;
    LNT_TRY(position(im, g->sub[0].out, g->sub[0].n_out, output, "output", &s.output));
    LNT_TRY(position(im, g->sub[0].in, g->sub[0].n_in, input, "input", &s.input));
    const lnt_operand *out = &g->value[g->sub[0].out[s.output]].info;
    const lnt_operand *in = &g->value[g->sub[0].in[s.input]].info;
    LNT_REQUIRE(out->dtype == in->dtype || !out->dtype, im->err, LNT_E_TYPE,
                "--state %s=%s: the output is %s, the input %s", output, input,
                lnt_dtype_text((lnt_dtype)out->dtype), lnt_dtype_text((lnt_dtype)in->dtype));
    LNT_REQUIRE(out->rank == in->rank || out->rank == LNT_RANK_UNKNOWN || in->rank == LNT_RANK_UNKNOWN,
                im->err, LNT_E_SHAPE, "--state %s=%s: the output has rank %u, the input %u", output, input,
                out->rank, in->rank);
    for (size_t i = 0; i < g->n_states; i++)
        LNT_REQUIRE(g->state[i].input != s.input && g->state[i].output != s.output, im->err, LNT_E_ARGUMENT,
                    "--state %s=%s: one of them is a state already", output, input);
    LNT_TRY(LNT_GROW(g->memory.allocator, g->state, g->state_capacity, g->n_states, im->err));
    g->state[g->n_states++] = s;
    return LNT_OK;
}

/* ---- all of them ---- */

/* The value that an option names. */
static lnt_status find_value(lnt_importer *im, const char *option, const char *name, uint32_t *v)
{
    const lnt_graph *g = im->g;
    lnt_nearest nearest = {.wanted = name};
    *v = lnt_names_find(&g->names, name);
    for (size_t i = 0; i < g->n_values && *v == LNT_NAMES_NONE; i++)
        lnt_nearest_add(&nearest, g->value[i].name);
    LNT_REQUIRE(*v != LNT_NAMES_NONE || !lnt_nearest_name(&nearest), im->err, LNT_E_NOT_FOUND,
                "%s: the model has no value '%s'; did you mean '%s'?", option, name, nearest.name);
    LNT_REQUIRE(*v != LNT_NAMES_NONE, im->err, LNT_E_NOT_FOUND, "%s: the model has no value '%s'", option,
                name);
    return LNT_OK;
}

static lnt_status keep_values(lnt_importer *im)
{
    const lnt_convert_options *o = im->options;
    uint32_t v;
    for (size_t i = 0; i < o->n_keep; i++) {
        LNT_TRY(find_value(im, "--keep", o->keep[i], &v));
        im->g->value[v].keep = true;
    }
    for (size_t i = 0; i < o->n_measure; i++) {
        LNT_TRY(find_value(im, "--measure", o->measure[i], &v));
        im->g->value[v].measured = true;
    }
    for (v = 0; o->keep_all && v < im->g->n_values; v++)
        im->g->value[v].keep = true;
    return LNT_OK;
}

lnt_status lnt_import_set_meta(lnt_importer *im, const char *key, const char *text)
{
    lnt_graph *g = im->g;
    size_t i = 0;
    while (i < g->n_meta && strcmp(g->meta[i].key, key) != 0)
        i++;
    const lnt_gmeta m = {lnt_import_text(im, "%s", key), lnt_import_text(im, "%s", text)};
    if (!m.key || !m.text)
        return LNT_E_MEMORY;
    LNT_TRY(LNT_GROW(g->memory.allocator, g->meta, g->meta_capacity, g->n_meta, im->err));
    g->meta[i] = m;
    g->n_meta += i == g->n_meta;
    return LNT_OK;
}

/* Is there such an input, or an initializer that has become one? */
static lnt_status check_overridable(lnt_importer *im, const char *name)
{
    const LntOnnx__Graph *graph = im->model->graph;
    lnt_nearest nearest = {.wanted = name};
    for (size_t i = 0; i < graph->n_input; i++) {
        if (strcmp(graph->input[i]->name, name) == 0)
            return LNT_OK;
        lnt_nearest_add(&nearest, graph->input[i]->name);
    }
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *other;
        LNT_TRY(lnt_import_tensor_name(im, &graph->initializer[i], &other));
        if (strcmp(other, name) == 0)
            return LNT_OK;
        lnt_nearest_add(&nearest, other);
    }
    const char *meant = lnt_nearest_name(&nearest);
    return lnt_fail(im->err, LNT_E_NOT_FOUND, "--overridable: the model has no initializer '%s'%s%s%s", name,
                    meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
}

lnt_status lnt_import_apply_options(lnt_importer *im)
{
    const lnt_convert_options *o = im->options;
    for (size_t i = 0; i < o->n_overridable; i++)
        LNT_TRY(check_overridable(im, o->overridable[i]));
    for (size_t i = 0; i < o->n_states; i++)
        LNT_TRY(add_state(im, o->state[i].name, o->state[i].text));
    for (size_t i = 0; i < o->n_meta; i++)
        LNT_TRY(lnt_import_set_meta(im, o->meta[i].name, o->meta[i].text));
    im->g->attach = o->attach;
    im->g->n_attach = o->n_attach;
    return keep_values(im);
}
