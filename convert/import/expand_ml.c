/* expand_ml.c — the operators of ai.onnx.ml on numbers, made of ONNX's own and of those in ops/ml. */
#include "convert/import/expand_ml.h"

#include "ops/element.h"
#include "ops/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text_message[] =
    "it reads text that comes from outside, which is not supported: give categories as integers";

/* ---- attributes ---- */

void *ml_take(maker *m, size_t n, size_t size)
{
    size_t bytes;
    void *block = NULL;
    if (m->status == LNT_OK && lnt_mul_size(n ? n : 1, size, &bytes))
        block = lnt_bump_alloc(&m->im->g->memory, bytes, m->im->err);
    if (!block && m->status == LNT_OK)
        m->status = LNT_E_MEMORY;
    return block;
}

void ml_fail(maker *m, const char *attribute, const char *what)
{
    if (m->status == LNT_OK)
        m->status = lnt_fail(m->im->err, LNT_E_MODEL, "node '%s' (%s): attribute %s %s", m->n->name, m->n->op,
                             attribute, what);
}

ml_list ml_ints(maker *m, const char *name)
{
    const lnt_attr *a = lnt_inode_attr(m->n, name);
    ml_list list = {0};
    if (!a || m->status != LNT_OK)
        return list;
    if (a->type == LNT_ATTR_INTS || a->type == LNT_ATTR_INT)
        return (ml_list){.n = a->count, .i = a->i};
    const lnt_operand *t = a->type == LNT_ATTR_TENSOR ? a->tensor : NULL;
    const int64_t n = t ? lnt_operand_count(t) : -1;
    int64_t *i = t && lnt_is_integer((lnt_dtype)t->dtype) && n >= 0 ? ml_take(m, (size_t)n, sizeof *i) : NULL;
    if (!i) {
        ml_fail(m, name, "holds no integers");
        return list;
    }
    lnt_elements_to_int64((lnt_dtype)t->dtype, t->data, i, n);
    return (ml_list){.n = (size_t)n, .i = i};
}

ml_list ml_reals(maker *m, const char *name)
{
    char longer[64];
    snprintf(longer, sizeof longer, "%s_as_tensor", name);
    const lnt_attr *a = lnt_inode_attr(m->n, name);
    a = a && (a->count || a->type == LNT_ATTR_TENSOR) ? a : lnt_inode_attr(m->n, longer);
    if (!a || m->status != LNT_OK)
        return (ml_list){0};
    const lnt_operand *t = a->type == LNT_ATTR_TENSOR ? a->tensor : NULL;
    const int64_t n = t ? lnt_operand_count(t) : a->type == LNT_ATTR_FLOATS ? (int64_t)a->count : -1;
    double *v =
        n >= 0 && (!t || lnt_is_floating((lnt_dtype)t->dtype)) ? ml_take(m, (size_t)n, sizeof *v) : NULL;
    if (!v) {
        ml_fail(m, name, "holds no floats");
        return (ml_list){0};
    }
    lnt_elements_to_double(t ? (lnt_dtype)t->dtype : LNT_FLOAT, t ? t->data : a->f, v, n);
    return (ml_list){.n = (size_t)n, .v = v, .doubles = t && t->dtype == LNT_DOUBLE};
}

static void refuse(maker *m, const char *why)
{
    if (m->status == LNT_OK)
        m->status = lnt_import_unsupported(m->im, m->n, "%s", why);
}

/* Reports a list of strings under one of the names; true if there is one. */
static bool has_text(maker *m, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const lnt_attr *a = lnt_inode_attr(m->n, names[i]);
        if (!a || a->type != LNT_ATTR_STRINGS || !a->count)
            continue;
        refuse(m, text_message);
        return true;
    }
    return false;
}

/* Strings under this name; NULL if there are none. */
static const lnt_attr *strings(const maker *m, const char *name)
{
    const lnt_attr *a = lnt_inode_attr(m->n, name);
    return a && a->type == LNT_ATTR_STRINGS && a->count ? a : NULL;
}

/* Text as numbers of words, in a model that takes such. */
static ml_list word_numbers(maker *m, const lnt_attr *text)
{
    int64_t *i = ml_take(m, text->count, sizeof *i);
    for (uint32_t k = 0; i && k < text->count && m->status == LNT_OK; k++)
        m->status = lnt_import_word(m->im, text->strings[k], &i[k]);
    return (ml_list){.n = text->count, .i = i, .words = &m->im->g->words};
}

/* Text as numbers 0, 1, … */
static ml_list numbered(maker *m, const lnt_attr *text)
{
    int64_t *i = ml_take(m, text->count, sizeof *i);
    lnt_words *words = i ? lnt_words_take(m->im, text->count) : NULL;
    if (i && !words)
        m->status = LNT_E_MEMORY;
    for (; words && words->n < text->count; words->n++) {
        words->word[words->n] = text->strings[words->n];
        i[words->n] = (int64_t)words->n;
    }
    return (ml_list){.n = text->count, .i = i, .words = words};
}

ml_list ml_labels(maker *m)
{
    const lnt_attr *text = strings(m, "classlabels_strings");
    if (text)
        return m->im->text ? word_numbers(m, text) : numbered(m, text);
    ml_list labels = ml_ints(m, "classlabels_int64s");
    if (!labels.n)
        labels = ml_ints(m, "classlabels_ints");
    if (!labels.n)
        ml_fail(m, "classlabels", "is missing");
    return labels;
}

/* Output 0 stands for these. */
static void name_words(maker *m, const lnt_words *words)
{
    if (m->status != LNT_OK || !words || !m->n->n_out || m->n->out[0] == LNT_NONE)
        return;
    if (words == &m->im->g->words)
        m->im->g->value[m->n->out[0]].text = true;
    else
        m->im->g->value[m->n->out[0]].words = words;
}

uint32_t ml_constant(maker *m, const char *what, lnt_dtype dtype, unsigned rank, const int64_t *dims,
                     const void *data)
{
    const char *name = m->status == LNT_OK ? lnt_import_text(m->im, "%s/%s", m->n->name, what) : NULL;
    size_t bytes;
    if (!name || !lnt_shape_bytes(dims, rank, lnt_dtype_size(dtype), &bytes))
        return LNT_NONE;
    const uint32_t v = lnt_graph_add_constant(m->im->g, name, dtype, rank, dims, data, bytes);
    if (v == LNT_NONE)
        m->status = LNT_E_MEMORY;
    return v;
}

static uint32_t floats(maker *m, const char *what, ml_list list)
{
    const int64_t n = (int64_t)list.n;
    float *v = ml_take(m, list.n, sizeof *v);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = (float)list.v[i];
    return ml_constant(m, what, LNT_FLOAT, 1, &n, v);
}

/* ---- scores ---- */

/* The probit of p as runtimes have it: sqrt(2) times an approximation of the inverse error function (Winitzki, "A handy
 * approximation for the error function and its inverse", 2008). */
static uint32_t probit(maker *m, uint32_t p)
{
    const lnt_dtype type = LNT_DOUBLE; /* for the differences of what is nearly the same */
    const uint32_t one = scalar(m, "one", type, 1), two = scalar(m, "two", type, 2);
    const uint32_t x = make(m, "Sub", IN(make(m, "Mul", IN(cast(m, p, type), two), NULL), one), NULL);
    const uint32_t log =
        make(m, "Log", IN(make(m, "Sub", IN(one, make(m, "Mul", IN(x, x), NULL)), NULL)), NULL);
    const uint32_t half = make(m, "Mul", IN(log, scalar(m, "half", type, 0.5)), NULL);
    const uint32_t a = make(m, "Add", IN(half, scalar(m, "a", type, 2 / (3.14159 * 0.147))), NULL);
    const uint32_t b = make(m, "Mul", IN(log, scalar(m, "b", type, 1 / 0.147)), NULL);
    const uint32_t root =
        make(m, "Sqrt", IN(make(m, "Sub", IN(make(m, "Mul", IN(a, a), NULL), b), NULL)), NULL);
    const uint32_t size = make(m, "Sqrt", IN(make(m, "Sub", IN(root, a), NULL)), NULL);
    const uint32_t erf = make(m, "Mul", IN(make(m, "Sign", IN(x), NULL), size), NULL);
    const uint32_t y = make(m, "Mul", IN(erf, scalar(m, "sqrt2", type, 1.41421356)), NULL);
    return cast(m, y, type_of(m, p));
}

/* Softmax in which scores of about 0 stay about 0. */
static uint32_t softmax_zero(maker *m, uint32_t x)
{
    const uint32_t axes = INTS(m, "axes", -1), most = make(m, "ReduceMax", IN(x, axes), NULL);
    const uint32_t e = make(m, "Exp", IN(make(m, "Sub", IN(x, most), NULL)), NULL);
    const uint32_t shrunk =
        make(m, "Mul", IN(x, make(m, "Exp", IN(make(m, "Neg", IN(most), NULL)), NULL)), NULL);
    const uint32_t size = make(m, "Abs", IN(x), NULL), least = scalar(m, "least", LNT_FLOAT, 1e-7);
    const uint32_t y = make(m, "Where", IN(make(m, "Greater", IN(size, least), NULL), e, shrunk), NULL);
    return make(m, "Div", IN(y, make(m, "ReduceSum", IN(y, axes), NULL)), NULL);
}

uint32_t ml_post_transform(maker *m, uint32_t scores)
{
    const char *how = lnt_inode_s(m->n, "post_transform", "NONE");
    const int64_t last = -1;
    if (strcmp(how, "NONE") == 0)
        return scores;
    if (strcmp(how, "SOFTMAX") == 0)
        return make(m, "Softmax", IN(scores), INT_ATTR("axis", &last));
    if (strcmp(how, "LOGISTIC") == 0)
        return make(m, "Sigmoid", IN(scores), NULL);
    if (strcmp(how, "SOFTMAX_ZERO") == 0)
        return softmax_zero(m, scores);
    if (strcmp(how, "PROBIT") != 0)
        ml_fail(m, "post_transform", "is not known");
    return probit(m, scores);
}

static uint32_t label_table(maker *m, ml_list labels)
{
    const int64_t n = (int64_t)labels.n;
    return ml_constant(m, "labels", LNT_INT64, 1, &n, labels.i);
}

void ml_label(maker *m, uint32_t scores, ml_list labels)
{
    const int64_t axis = 1, no = 0;
    const lnt_attr attr[] = {*INT_ATTR("axis", &axis), *INT_ATTR("keepdims", &no)};
    uint32_t at = LNT_NONE;
    if (m->status == LNT_OK)
        m->status = lnt_make(m->im, m->n, "ArgMax", &scores, 1, attr, 2, &at);
    finish(m, 0, "Gather", IN(label_table(m, labels), at), NULL);
    name_words(m, labels.words);
}

void ml_binary_label(maker *m, uint32_t score, double threshold, ml_list labels)
{
    const uint32_t above = make(m, "Greater", IN(score, scalar(m, "threshold", LNT_FLOAT, threshold)), NULL);
    const uint32_t at = cast(m, make(m, "Squeeze", IN(above, INTS(m, "axis", 1)), NULL), LNT_INT64);
    finish(m, 0, "Gather", IN(label_table(m, labels), at), NULL);
    name_words(m, labels.words);
}

void ml_binary_scores(maker *m, uint32_t score, bool probability)
{
    const int64_t axis = 1;
    const bool logistic = strcmp(lnt_inode_s(m->n, "post_transform", "NONE"), "LOGISTIC") == 0;
    const uint32_t one = scalar(m, "one", LNT_FLOAT, 1);
    const uint32_t other =
        probability && !logistic ? make(m, "Sub", IN(one, score), NULL) : make(m, "Neg", IN(score), NULL);
    const uint32_t both = make(m, "Concat", IN(other, score), INT_ATTR("axis", &axis));
    finish(m, 1, logistic ? "Sigmoid" : "Identity", IN(both), NULL);
}

/* ---- linear models ---- */

uint32_t ml_rows(maker *m, lnt_dtype type)
{
    const uint32_t x = cast(m, m->n->in[0], type);
    const lnt_operand *o = m->status == LNT_OK ? lnt_ginfo(m->im->g, x) : NULL;
    return o && o->rank == 1 ? make(m, "Unsqueeze", IN(x, INTS(m, "axis", 0)), NULL) : x;
}

/* x W' + intercepts, coefficients W [n, F]. */
static uint32_t linear(maker *m, uint32_t x, ml_list w, int64_t n, ml_list intercepts)
{
    const int64_t yes = 1;
    if (m->status == LNT_OK &&
        (n < 1 || !w.n || (int64_t)w.n % n || (intercepts.n && (int64_t)intercepts.n != n)))
        ml_fail(m, "coefficients", "or intercepts has the wrong length");
    if (m->status != LNT_OK)
        return LNT_NONE;
    const uint32_t flat = floats(m, "coefficients", w);
    const uint32_t matrix = make(m, "Reshape", IN(flat, INTS(m, "shape", n, (int64_t)w.n / n)), NULL);
    const operands in = intercepts.n ? IN(x, matrix, floats(m, "intercepts", intercepts)) : IN(x, matrix);
    return make(m, "Gemm", in, INT_ATTR("transB", &yes));
}

static void expand_linear_regressor(maker *m)
{
    const uint32_t y = linear(m, ml_rows(m, LNT_FLOAT), ml_reals(m, "coefficients"),
                              lnt_inode_i(m->n, "targets", 1), ml_reals(m, "intercepts"));
    finish(m, 0, "Identity", IN(ml_post_transform(m, y)), NULL);
}

static void expand_linear_classifier(maker *m)
{
    const ml_list labels = ml_labels(m), intercepts = ml_reals(m, "intercepts");
    const int64_t n = (int64_t)(intercepts.n ? intercepts.n : labels.n);
    const uint32_t s = linear(m, ml_rows(m, LNT_FLOAT), ml_reals(m, "coefficients"), n, intercepts);
    if (n == 1) {
        if (labels.n != 2)
            ml_fail(m, "classlabels_ints", "has not two labels");
        ml_binary_label(m, s, 0, labels);
        ml_binary_scores(m, s, true);
        return;
    }
    if ((int64_t)labels.n != n)
        ml_fail(m, "classlabels_ints", "has the wrong length");
    ml_label(m, s, labels);
    finish(m, 1, "Identity", IN(ml_post_transform(m, s)), NULL);
}

/* ---- features ---- */

static void expand_scaler(maker *m)
{
    const lnt_dtype type = type_of(m, m->n->in[0]) == LNT_DOUBLE ? LNT_DOUBLE : LNT_FLOAT;
    const ml_list offset = ml_reals(m, "offset"), scale = ml_reals(m, "scale");
    uint32_t x = cast(m, m->n->in[0], type);
    if (offset.n)
        x = make(m, "Sub", IN(x, cast(m, floats(m, "offset", offset), type)), NULL);
    if (scale.n)
        x = make(m, "Mul", IN(x, cast(m, floats(m, "scale", scale), type)), NULL);
    finish(m, 0, "Identity", IN(cast(m, x, LNT_FLOAT)), NULL);
}

/* x / norm, x where that is 0. */
static void expand_normalizer(maker *m)
{
    const char *how = lnt_inode_s(m->n, "norm", "MAX");
    const bool max = strcmp(how, "MAX") == 0, l1 = strcmp(how, "L1") == 0;
    const uint32_t x = cast(m, m->n->in[0], LNT_FLOAT), axis = INTS(m, "axis", -1);
    if (!max && !l1 && strcmp(how, "L2") != 0)
        ml_fail(m, "norm", "is not known");
    const uint32_t norm = make(m, max ? "ReduceMax" : l1 ? "ReduceL1" : "ReduceL2", IN(x, axis), NULL);
    const uint32_t zero = scalar(m, "zero", LNT_FLOAT, 0), one = scalar(m, "one", LNT_FLOAT, 1);
    const uint32_t by = make(m, "Where", IN(make(m, "Equal", IN(norm, zero), NULL), one, norm), NULL);
    finish(m, 0, "Div", IN(x, by), NULL);
}

static void expand_imputer(maker *m)
{
    const uint32_t x = m->n->in[0];
    const lnt_dtype type = type_of(m, x);
    const ml_list reals = ml_reals(m, "imputed_value_floats"), ints = ml_ints(m, "imputed_value_int64s");
    const double replaced = (double)lnt_inode_f(m->n, "replaced_value_float", 0);
    const int64_t n = (int64_t)ints.n;
    if (m->status == LNT_OK && !reals.n && !ints.n)
        ml_fail(m, "imputed_value_floats", "is missing");
    if (m->status != LNT_OK)
        return;
    const uint32_t values =
        reals.n ? floats(m, "values", reals) : ml_constant(m, "values", LNT_INT64, 1, &n, ints.i);
    const uint32_t what = reals.n ? scalar(m, "replaced", LNT_FLOAT, replaced)
                                  : ml_constant(m, "replaced", LNT_INT64, 0, NULL,
                                                &(int64_t){lnt_inode_i(m->n, "replaced_value_int64", 0)});
    const uint32_t found = reals.n && replaced != replaced
                               ? make(m, "IsNaN", IN(x), NULL)
                               : make(m, "Equal", IN(x, cast(m, what, type)), NULL);
    finish(m, 0, "Where", IN(found, cast(m, values, type), x), NULL);
}

static void expand_binarizer(maker *m)
{
    const lnt_dtype type = type_of(m, m->n->in[0]);
    m->n->replaced = type != LNT_FLOAT; /* that has a row of its own */
    if (!m->n->replaced)
        return;
    const uint32_t threshold = scalar(m, "threshold", LNT_DOUBLE, (double)lnt_inode_f(m->n, "threshold", 0));
    const uint32_t above = make(m, "Greater", IN(cast(m, m->n->in[0], LNT_DOUBLE), threshold), NULL);
    finish(m, 0, "Identity", IN(cast(m, above, type)), NULL);
}

static void expand_extractor(maker *m)
{
    const int64_t last = -1;
    const lnt_operand *o = lnt_ginfo(m->im->g, m->n->in[0]);
    const uint32_t x =
        o->rank == 1 ? make(m, "Unsqueeze", IN(m->n->in[0], INTS(m, "axis", 0)), NULL) : m->n->in[0];
    const uint32_t at = make(m, "Reshape", IN(m->n->in[1], INTS(m, "flat", -1)), NULL);
    finish(m, 0, "Gather", IN(x, at), INT_ATTR("axis", &last));
}

/* Columns of x, [N, width] or [N], cut or filled with zeros to n. */
static uint32_t columns(maker *m, uint32_t x, int64_t n)
{
    const lnt_operand o = *lnt_ginfo(m->im->g, x); /* the table grows */
    const int64_t width = o.rank == 1 ? 1 : o.rank == 2 ? o.dims[1] : -1;
    uint32_t y = cast(m, x, LNT_FLOAT);
    if (o.rank == 1)
        y = make(m, "Unsqueeze", IN(y, INTS(m, "axis", 1)), NULL);
    if (width == n)
        return y;
    if (width < 0) {
        refuse(m, "the extents of its inputs must be known");
        return LNT_NONE;
    }
    return make(m, "Pad", IN(y, INTS(m, "pads", 0, 0, 0, n - width)), NULL);
}

static void expand_vectorizer(maker *m)
{
    const ml_list widths = ml_ints(m, "inputdimensions");
    const int64_t axis = 1;
    operands parts = {.n = m->n->n_in};
    if (m->status == LNT_OK && widths.n != m->n->n_in)
        ml_fail(m, "inputdimensions", "has not one number for each input");
    for (unsigned i = 0; i < m->n->n_in && m->status == LNT_OK; i++) {
        if (widths.i[i] < 0 || widths.i[i] > INT32_MAX)
            ml_fail(m, "inputdimensions", "is out of range");
        else if ((parts.value[i] = columns(m, m->n->in[i], widths.i[i])) == LNT_NONE)
            return;
    }
    finish(m, 0, "Concat", parts, INT_ATTR("axis", &axis));
}

/* ---- tables ---- */

typedef struct key {
    union {
        int64_t i;
        double v;
    };
    size_t at;
    bool real;
} key;

/* NaN behind all others; of equal keys the first comes first. */
static int by_key(const void *a, const void *b)
{
    const key *x = a, *y = b;
    int order = x->real ? (x->v > y->v) - (x->v < y->v) : (x->i > y->i) - (x->i < y->i);
    if (x->real && (x->v != x->v || y->v != y->v))
        order = (x->v != x->v) - (y->v != y->v);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* The constant of the keys in ascending order, of this type; order[i] is which of them key i was. */
static uint32_t sorted_keys(maker *m, ml_list keys, lnt_dtype type, size_t *order)
{
    key *list = ml_take(m, keys.n, sizeof *list);
    void *data = ml_take(m, keys.n, sizeof(double));
    const int64_t n = (int64_t)keys.n;
    if (!list || !data || !order)
        return LNT_NONE;
    for (size_t i = 0; i < keys.n; i++) {
        list[i] = (key){.at = i, .real = keys.v != NULL};
        if (keys.v)
            list[i].v = keys.v[i];
        else
            list[i].i = keys.i[i];
    }
    qsort(list, keys.n, sizeof *list, by_key);
    for (size_t i = 0; i < keys.n; i++) {
        order[i] = list[i].at;
        if (keys.v)
            lnt_elements_from_double(type, &list[i].v, lnt_element_at(data, type, (int64_t)i), 1);
        else
            lnt_elements_from_int64(type, &list[i].i, lnt_element_at(data, type, (int64_t)i), 1);
    }
    return ml_constant(m, "keys", type, 1, &n, data);
}

static void expand_one_hot(maker *m)
{
    static const char *const text[] = {"cats_strings"};
    const lnt_attr *words = m->im->text ? strings(m, "cats_strings") : NULL;
    const ml_list cats = words ? word_numbers(m, words) : ml_ints(m, "cats_int64s");
    const int64_t refuses = !lnt_inode_i(m->n, "zeros", 1), n = (int64_t)cats.n, rows = n + 1;
    const float values[] = {0, 1};
    if (!words && has_text(m, text, 1))
        return;
    if (!words != !m->im->g->value[m->n->in[0]].text)
        ml_fail(m, "cats", "is not of the input's type");
    if (!cats.n)
        ml_fail(m, "cats_int64s", "is missing");
    size_t *order = ml_take(m, cats.n, sizeof *order);
    const uint32_t keys = sorted_keys(m, cats, LNT_INT64, order);
    int64_t *place = ml_take(m, cats.n + 1, sizeof *place);
    for (size_t i = 0; place && order && i <= cats.n; i++)
        place[i] = i == cats.n ? n : (int64_t)order[i];
    const uint32_t found =
        make(m, "linnet.FindKey", IN(cast(m, m->n->in[0], LNT_INT64), keys), INT_ATTR("refuse", &refuses));
    const uint32_t at =
        make(m, "Gather", IN(ml_constant(m, "places", LNT_INT64, 1, &rows, place), found), NULL);
    const uint32_t depth = scalar(m, "depth", LNT_INT64, (double)n);
    finish(m, 0, "OneHot",
           IN(at, depth, ml_constant(m, "values", LNT_FLOAT, 1, (const int64_t[]){2}, values)), NULL);
}

/* One of the attributes keys_* or values_*, and its element type. */
static ml_list table(maker *m, const char *kind, lnt_dtype *type)
{
    char name[32];
    snprintf(name, sizeof name, "%s_tensor", kind);
    const lnt_attr *a = lnt_inode_attr(m->n, name);
    if (a && a->type == LNT_ATTR_TENSOR && a->tensor->dtype == LNT_STRING) {
        *type = LNT_INT64;
        return (ml_list){(size_t)lnt_operand_count(a->tensor), .i = a->tensor->data,
                         .words = &m->im->g->words};
    }
    if (a && a->type == LNT_ATTR_TENSOR) {
        *type = (lnt_dtype)a->tensor->dtype;
        return lnt_is_floating(*type) ? ml_reals(m, name) : ml_ints(m, name);
    }
    snprintf(name, sizeof name, "%s_int64s", kind);
    const ml_list ints = ml_ints(m, name);
    snprintf(name, sizeof name, "%s_floats", kind);
    *type = ints.n ? LNT_INT64 : LNT_FLOAT;
    return ints.n ? ints : ml_reals(m, name);
}

/* What a key that is not known becomes. */
static uint32_t default_value(maker *m, lnt_dtype type)
{
    const lnt_attr *a = lnt_inode_attr(m->n, "default_tensor");
    const int64_t one = 1, i = lnt_inode_i(m->n, "default_int64", -1);
    if (a && a->type == LNT_ATTR_TENSOR && a->tensor->dtype == type && lnt_operand_count(a->tensor) == 1)
        return ml_constant(m, "default", type, 1, &one, a->tensor->data);
    if (lnt_is_floating(type))
        return make(m, "Reshape",
                    IN(scalar(m, "default", type, (double)lnt_inode_f(m->n, "default_float", -0.0f)),
                       INTS(m, "one", 1)),
                    NULL);
    return cast(m, ml_constant(m, "default", LNT_INT64, 1, &one, &i), type);
}

/* What keys become. */
typedef struct encoded {
    ml_list values;
    lnt_dtype type;
    int64_t otherwise; /* of text: the place of the default's word */
} encoded;

/* Values that are text: places among the words that differ. */
static void text_values(maker *m, const lnt_attr *text, encoded *e)
{
    lnt_names places = {.heap = m->im->g->memory.allocator};
    lnt_words *words = lnt_words_take(m->im, (size_t)text->count + 1);
    int64_t *i = ml_take(m, text->count, sizeof *i);
    if (!words && m->status == LNT_OK)
        m->status = LNT_E_MEMORY;
    for (size_t k = 0; k < text->count && m->status == LNT_OK; k++)
        m->status = lnt_words_add(m->im, &places, words, text->strings[k], &i[k]);
    if (m->status == LNT_OK)
        m->status = lnt_words_add(m->im, &places, words, lnt_inode_s(m->n, "default_string", "_Unused"),
                                  &e->otherwise);
    lnt_names_free(&places);
    e->type = LNT_INT64;
    e->values = (ml_list){.n = text->count, .i = i, .words = words};
}

/* The word of keys that are not known, in a model that takes text. */
static void text_default(maker *m, encoded *e)
{
    const lnt_attr *a = lnt_inode_attr(m->n, "default_tensor");
    if (a && a->type == LNT_ATTR_TENSOR && a->tensor->dtype == LNT_STRING &&
        lnt_operand_count(a->tensor) == 1)
        e->otherwise = *(const int64_t *)a->tensor->data;
    else if (m->status == LNT_OK)
        m->status = lnt_import_word(m->im, lnt_inode_s(m->n, "default_string", "_Unused"), &e->otherwise);
}

/* data[to] becomes value `from` of the table. */
static void put_value(const encoded *e, void *data, size_t to, size_t from)
{
    void *at = lnt_element_at(data, e->type, (int64_t)to);
    if (e->values.v)
        lnt_elements_from_double(e->type, e->values.v + from, at, 1);
    else
        lnt_elements_from_int64(e->type, e->values.i + from, at, 1);
}

/* The table behind which the value of all other keys stands. */
static uint32_t with_default(maker *m, const encoded *e, const void *data, size_t count)
{
    const int64_t n = (int64_t)count, one = 1;
    const uint32_t other = e->values.words ? ml_constant(m, "default", LNT_INT64, 1, &one, &e->otherwise)
                                           : default_value(m, e->type);
    return make(m, "Concat", IN(ml_constant(m, "values", e->type, 1, &n, data), other),
                INT_ATTR("axis", &(int64_t){0}));
}

/* Of input 0, numbers that stand for words, by keys that are text. */
static void encode_words(maker *m, const lnt_words *words, const lnt_attr *keys, const encoded *e)
{
    lnt_names places = {.heap = m->im->g->memory.allocator};
    void *data = ml_take(m, keys->count, sizeof(double));
    int64_t *at = ml_take(m, words->n, sizeof *at);
    const int64_t n = (int64_t)words->n;
    for (uint32_t i = keys->count; i-- > 0 && m->status == LNT_OK;) /* of equal keys the first counts */
        m->status = lnt_names_set(&places, keys->strings[i], i, m->im->err);
    for (size_t i = 0; i < keys->count && m->status == LNT_OK; i++)
        put_value(e, data, i, i);
    for (size_t i = 0; i < words->n && m->status == LNT_OK; i++) {
        const uint32_t found = lnt_names_find(&places, words->word[i]);
        at[i] = found == LNT_NAMES_NONE ? (int64_t)keys->count : (int64_t)found;
    }
    lnt_names_free(&places);
    const uint32_t all = with_default(m, e, data, keys->count);
    const uint32_t place =
        make(m, "Gather", IN(ml_constant(m, "places", LNT_INT64, 1, &n, at), m->n->in[0]), NULL);
    finish(m, 0, "Gather", IN(all, place), NULL);
}

static void encode_numbers(maker *m, ml_list keys, lnt_dtype key_type, const encoded *e)
{
    size_t *order = ml_take(m, keys.n, sizeof *order);
    const uint32_t sorted = sorted_keys(m, keys, key_type, order);
    void *data = ml_take(m, keys.n, sizeof(double));
    for (size_t i = 0; m->status == LNT_OK && i < keys.n; i++)
        put_value(e, data, i, order[i]);
    const uint32_t all = with_default(m, e, data, keys.n);
    finish(m, 0, "Gather", IN(all, make(m, "linnet.FindKey", IN(m->n->in[0], sorted), NULL)), NULL);
}

/* The values of a LabelEncoder. */
static encoded values_of(maker *m)
{
    const lnt_attr *text = strings(m, "values_strings");
    encoded e = {0};
    if (text && !m->im->text) {
        text_values(m, text, &e);
        return e;
    }
    e.type = LNT_INT64;
    e.values = text ? word_numbers(m, text) : table(m, "values", &e.type);
    if (e.values.words)
        text_default(m, &e);
    return e;
}

/* Keys and values by two lists of as many, of words or numbers, one of them perhaps of places 0, 1, … */
static void encode_by(maker *m, ml_list keys, lnt_dtype key_type, const encoded *e)
{
    const bool text = m->im->g->value[m->n->in[0]].text;
    if (m->status == LNT_OK && (!keys.n || !e->values.n || text != (keys.words != NULL)))
        refuse(m, text_message); /* tensors of text have been left out of models that take none */
    else if (keys.n != e->values.n)
        ml_fail(m, "keys", "and values have different lengths");
    else
        encode_numbers(m, keys, key_type, e);
    name_words(m, e->values.words);
}

/* Words to numbers where the input is text, numbers to words where it is not: by lists that are both there, or by words
 * and their places. */
static void encode_both_ways(maker *m, const char *texts, const char *ints)
{
    const lnt_attr *text = strings(m, texts);
    const ml_list words = text ? word_numbers(m, text) : (ml_list){0};
    const bool from_text = m->im->g->value[m->n->in[0]].text;
    ml_list numbers =
        ints ? ml_ints(m, ints) : (ml_list){.n = words.n, .i = ml_take(m, words.n, sizeof(int64_t))};
    for (size_t i = 0; !ints && numbers.i && i < words.n; i++)
        ((int64_t *)(uintptr_t)numbers.i)[i] = (int64_t)i;
    encoded e = {.values = from_text ? numbers : words, .type = LNT_INT64};
    if (!from_text)
        text_default(m, &e);
    encode_by(m, from_text ? words : numbers, LNT_INT64, &e);
}

static void expand_category_mapper(maker *m)
{
    if (m->im->text)
        encode_both_ways(m, "cats_strings", "cats_int64s");
    else
        refuse(m, text_message);
}

static void expand_label_encoder(maker *m)
{
    static const char *const old[] = {"classes_strings"};
    const lnt_words *words = m->im->g->value[m->n->in[0]].words;
    const lnt_attr *text_keys = strings(m, "keys_strings");
    lnt_dtype key_type = LNT_INT64;
    if (m->im->text && strings(m, old[0])) {
        encode_both_ways(m, old[0], NULL);
        return;
    }
    if (has_text(m, old, 1))
        return;
    const encoded e = values_of(m);
    if (!m->im->text && !words != !text_keys) {
        refuse(m, text_message);
    } else if (words) {
        if (text_keys->count != e.values.n)
            ml_fail(m, "keys", "and values have different lengths");
        encode_words(m, words, text_keys, &e);
        name_words(m, e.values.words);
    } else {
        const ml_list keys = text_keys ? word_numbers(m, text_keys) : table(m, "keys", &key_type);
        encode_by(m, keys, key_type, &e);
    }
}

/* A sequence of maps is the tensor it is made of: column i is of class i. */
static void expand_zipmap(maker *m)
{
    const lnt_attr *text = strings(m, "classlabels_strings");
    ml_list labels = text ? numbered(m, text) : ml_ints(m, "classlabels_int64s");
    lnt_words *words = text || m->status != LNT_OK ? NULL : lnt_words_take(m->im, labels.n);
    if (m->status == LNT_OK && !labels.n)
        ml_fail(m, "classlabels", "is missing");
    for (; words && words->n < labels.n; words->n++)
        if (!(words->word[words->n] = lnt_import_text(m->im, "%lld", (long long)labels.i[words->n])))
            break;
    if (m->status == LNT_OK && !text && (!words || words->n < labels.n))
        m->status = LNT_E_MEMORY;
    if (words)
        words->bare = true;
    finish(m, 0, "Identity", IN(m->n->in[0]), NULL);
    name_words(m, text ? labels.words : words);
}

/* ---- */

lnt_status lnt_expand_ml(lnt_importer *im, lnt_inode *n)
{
    static const lnt_expansion table[] = {
        {"ArrayFeatureExtractor", NULL, 2, 2, 1, expand_extractor},
        {"Binarizer", NULL, 1, 1, 1, expand_binarizer},
        {"CategoryMapper", NULL, 1, 1, 1, expand_category_mapper},
        {"FeatureVectorizer", NULL, 1, 18, 1, expand_vectorizer},
        {"Imputer", NULL, 1, 1, 1, expand_imputer},
        {"LabelEncoder", NULL, 1, 1, 1, expand_label_encoder},
        {"LinearClassifier", NULL, 1, 1, 2, expand_linear_classifier},
        {"LinearRegressor", NULL, 1, 1, 1, expand_linear_regressor},
        {"Normalizer", NULL, 1, 1, 1, expand_normalizer},
        {"OneHotEncoder", NULL, 1, 1, 1, expand_one_hot},
        {"SVMClassifier", NULL, 1, 1, 2, lnt_expand_svm_classifier},
        {"SVMRegressor", NULL, 1, 1, 1, lnt_expand_svm_regressor},
        {"Scaler", NULL, 1, 1, 1, expand_scaler},
        {"TreeEnsemble", NULL, 1, 1, 1, lnt_expand_tree_ensemble},
        {"TreeEnsembleClassifier", NULL, 1, 1, 2, lnt_expand_tree_classifier},
        {"TreeEnsembleRegressor", NULL, 1, 1, 1, lnt_expand_tree_regressor},
        {"ZipMap", NULL, 1, 1, 1, expand_zipmap},
    };
    return strcmp(n->domain, "ai.onnx.ml") == 0 ? lnt_expand_by(table, sizeof table / sizeof table[0], im, n)
                                                : LNT_OK;
}
