/* kernel_bench.c — single operators bound by themselves and run again and again on one thread: how near do they
 * come to what the machine can do? Products are held against its peak of multiply-adds, those of int8
 * against four times that, all others against copying as many bytes as they read and write. */
#include "cli/measure/kernel_bench.h"

#include "cli/shell/json.h"
#include "cli/data/model.h"
#include "cli/shell/table.h"
#include "ops/gemm/blas.h"
#include "ops/check/check.h"
#include "ops/op.h"
#include "ops/product.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 9, MAX_ATTRIBUTES = 8, MAX_LIST = 16 };

/* A dot product of four bytes takes the place of a float's multiply-add, on levels that have it. */
enum { BYTES_OF_FLOAT = 4 };

static const double row_seconds = 0.06, peak_seconds = 0.03;

/* One row made ready to run. */
typedef struct subject {
    lnt_bump memory;
    lnt_error *err;
    lnt_node node;
    lnt_attr attr[MAX_ATTRIBUTES];
    lnt_operand operand[MAX_INPUTS + 1], *in[MAX_INPUTS], *out[1];
    void *out_data[1];
    lnt_solo solo;
} subject;

/* ---- reading a row ---- */

/* The next word of *text, which moves past it; NULL at the end. */
static char *next_word(subject *s, const char **text)
{
    *text += strspn(*text, " ");
    const size_t n = strcspn(*text, " ");
    const char *word = *text;
    *text += n;
    return n ? lnt_bump_string(&s->memory, word, n, s->err) : NULL;
}

static lnt_attr read_attribute(subject *s, const char *word)
{
    const size_t name = strcspn(word, "=");
    const char *value = word + name + (word[name] == '=');
    int64_t *list = lnt_bump_alloc(&s->memory, MAX_LIST * sizeof *list, s->err);
    float *number = lnt_bump_alloc(&s->memory, sizeof *number, s->err);
    lnt_attr a = {.name = lnt_bump_string(&s->memory, word, name, s->err), .count = 0};
    if (*value != '-' && (*value < '0' || *value > '9')) {
        a.type = LNT_ATTR_STRING;
        a.count = (uint32_t)strlen(value);
        a.s = value;
    } else if (strchr(value, '.') && number) {
        *number = strtof(value, NULL);
        a.type = LNT_ATTR_FLOAT;
        a.count = 1;
        a.f = number;
    } else if (list) {
        a.type = strchr(value, ',') ? LNT_ATTR_INTS : LNT_ATTR_INT;
        for (char *at; *value && a.count < MAX_LIST; value = at + (*at == ','))
            list[a.count++] = strtoll(value, &at, 10);
        a.i = list;
    }
    return a;
}

/* The type that a word ends with, "...:u8" or "...:i8"; without one the usual. */
static lnt_dtype type_of(const char *word, lnt_dtype usual)
{
    const char *type = strchr(word, ':');
    return !type ? usual : type[1] == 'u' ? LNT_UINT8 : LNT_INT8;
}

/* "(1,1,2,2)", "[3,4]" or "[128]:u8": a constant of these elements. */
static void read_list(subject *s, const char *word, lnt_operand *o)
{
    int64_t *data = lnt_bump_alloc(&s->memory, MAX_LIST * sizeof *data, s->err);
    o->dtype = (uint8_t)type_of(word, *word == '(' ? LNT_FLOAT : LNT_INT64);
    o->rank = 1;
    o->constant = true;
    o->data = data;
    word++;
    for (char *at; data && strchr("-.0123456789", *word) && *word && o->dims[0] < MAX_LIST; o->dims[0]++) {
        const double value = strtod(word, &at);
        switch (o->dtype) {
        case LNT_FLOAT: ((float *)(void *)data)[o->dims[0]] = (float)value; break;
        case LNT_INT64: data[o->dims[0]] = (int64_t)value; break;
        default: ((uint8_t *)data)[o->dims[0]] = (uint8_t)(int)value;
        }
        word = at + (*at == ',');
    }
}

static void *random_floats(subject *s, int64_t n)
{
    uint64_t random = 1;
    float *data = lnt_bump_alloc(&s->memory, (size_t)n * sizeof *data, s->err);
    for (int64_t i = 0; data && i < n; i++)
        data[i] = lnt_check_float(&random);
    return data;
}

static void *random_bytes(subject *s, int64_t n)
{
    uint64_t random = 1;
    uint8_t *data = lnt_bump_alloc(&s->memory, (size_t)n, s->err);
    for (int64_t i = 0; data && i < n; i++)
        data[i] = (uint8_t)(lnt_check_random(&random) >> 33);
    return data;
}

/* "=64x64x3x3:i8": random numbers, a constant if it begins with '='. */
static void read_extents(subject *s, const char *word, lnt_operand *o)
{
    o->dtype = (uint8_t)type_of(word, LNT_FLOAT);
    o->constant = *word == '=';
    word += o->constant;
    for (char *at; *word && *word != ':' && o->rank < LNT_MAX_RANK; word = at + (*at == 'x'))
        o->dims[o->rank++] = strtoll(word, &at, 10);
    o->data = (o->dtype == LNT_FLOAT ? random_floats : random_bytes)(s, lnt_operand_count(o));
}

static lnt_status pack_constant(subject *s, unsigned i)
{
    lnt_operand *o = s->in[i];
    lnt_packed *record = lnt_bump_alloc(&s->memory, sizeof *record, s->err);
    size_t bytes;
    if (!record)
        return LNT_E_MEMORY;
    if (!o->constant || !lnt_pack_wanted(&s->node, i, o, record) || !lnt_packed_bytes(record, &bytes))
        return LNT_OK;
    void *packed = lnt_bump_alloc(&s->memory, bytes, s->err);
    if (!packed)
        return LNT_E_MEMORY;
    lnt_pack(record, (lnt_dtype)o->dtype, o->data, packed);
    o->data = packed;
    o->packed = record;
    return LNT_OK;
}

static lnt_status read_row(subject *s, const lnt_kernel_row *row)
{
    static const uint32_t numbers[MAX_INPUTS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    const char *inputs = row->inputs, *attributes = row->attributes;
    lnt_node *node = &s->node;
    static const char *const domains[] = {"", "linnet", "com.microsoft"};
    *node = (lnt_node){.name = row->op, .in = numbers, .out = numbers};
    for (unsigned i = 0; i < sizeof domains / sizeof *domains && !node->op; i++)
        node->op = lnt_op_by_name(domains[i], row->op);
    LNT_REQUIRE(node->op, s->err, LNT_E_INTERNAL, "no operator is called %s", row->op);
    for (char *word; node->n_attr < MAX_ATTRIBUTES && (word = next_word(s, &attributes));)
        s->attr[node->n_attr++] = read_attribute(s, word);
    node->attr = s->attr;
    for (char *word; node->n_in < MAX_INPUTS && (word = next_word(s, &inputs)); node->n_in++) {
        lnt_operand *o = &s->operand[node->n_in];
        s->in[node->n_in] = *word == '-' ? NULL : o;
        if (*word == '(' || *word == '[')
            read_list(s, word, o);
        else if (*word != '-')
            read_extents(s, word, o);
    }
    node->n_out = 1;
    s->out[0] = &s->operand[MAX_INPUTS];
    return s->err->code;
}

static lnt_status prepare(subject *s, const lnt_kernel_row *row, lnt_level level)
{
    LNT_TRY(read_row(s, row));
    lnt_site site = {
        .node = &s->node, .in = s->in, .out = s->out, .n_in = s->node.n_in, .n_out = 1, .err = s->err};
    LNT_TRY(lnt_site_shape(&site));
    for (unsigned i = 0; i < s->node.n_in; i++)
        if (s->in[i])
            LNT_TRY(pack_constant(s, i));
    if (row->in_last)
        s->in[0]->order = LNT_ORDER_CHANNELS_LAST;
    if (row->out_last)
        s->out[0]->order = LNT_ORDER_CHANNELS_LAST;
    const int64_t words = (int64_t)lnt_dtype_size((lnt_dtype)s->out[0]->dtype) / 4 + 1;
    s->out_data[0] = random_floats(s, lnt_operand_count(s->out[0]) * words);
    return lnt_solo_bind(&s->solo, &s->memory, &s->node, s->in, s->out, s->out_data, level, s->err);
}

/* ---- work ---- */

static double count_from(const lnt_operand *o, unsigned first)
{
    double n = 1;
    for (unsigned i = first; i < o->rank; i++)
        n *= (double)o->dims[i];
    return n;
}

static double bytes_moved(const subject *s)
{
    double bytes = count_from(s->out[0], 0) * (double)lnt_dtype_size((lnt_dtype)s->out[0]->dtype);
    for (unsigned i = 0; i < s->node.n_in; i++)
        if (s->in[i])
            bytes += count_from(s->in[i], 0) * (double)lnt_dtype_size((lnt_dtype)s->in[i]->dtype);
    return bytes;
}

/* Are its products int8? */
static bool is_int8(const subject *s)
{
    for (unsigned i = 0; i < s->node.n_in; i++)
        if (s->in[i] && lnt_dtype_size((lnt_dtype)s->in[i]->dtype) == 1)
            return true;
    return false;
}

/* ---- measuring ---- */

typedef struct copying {
    void *to, *from;
    size_t bytes;
} copying;

static lnt_status copy_once(void *arg)
{
    const copying *c = arg;
    memcpy(c->to, c->from, c->bytes);
    __asm__ volatile("" : : "r"(c->to) : "memory");
    return LNT_OK;
}

static lnt_status run_once(void *arg)
{
    return lnt_solo_run(arg);
}

/* Seconds of the fastest run: several at a time where one is too short for the clock. */
static lnt_status fastest(lnt_status (*run)(void *), void *arg, double *seconds)
{
    enum { MOST_AT_ONCE = 1 << 14, LEAST_TIMES = 10 };
    const double clock_step = 50e-6;
    unsigned at_once = 1, times = 0;
    *seconds = 1e30;
    LNT_TRY(run(arg));
    for (double begin = lnt_now(), from = begin; from - begin < row_seconds || times < LEAST_TIMES; times++) {
        for (unsigned i = 0; i < at_once; i++)
            LNT_TRY(run(arg));
        const double to = lnt_now(), each = (to - from) / at_once;
        *seconds = each < *seconds ? each : *seconds;
        if (to - from < clock_step && at_once < MOST_AT_ONCE)
            at_once *= 2;
        from = to;
    }
    return LNT_OK;
}

/* Bytes read and written in a second by copies of so many bytes all told. */
static double copy_rate(subject *s, double bytes)
{
    const size_t half = (size_t)(bytes / 2) + 1;
    copying c = {lnt_bump_alloc(&s->memory, half, s->err), random_floats(s, (int64_t)(half / 4 + 1)), half};
    double seconds;
    return c.to && c.from && fastest(copy_once, &c, &seconds) == LNT_OK ? 2 * (double)half / seconds : 0;
}

typedef struct result {
    double seconds, rate, limit; /* operations or bytes a second */
    const char *unit;            /* in thousand millions */
} result;

/* peak: floating point operations a second. */
static lnt_status measure(const lnt_kernel_row *row, lnt_level level, double peak, result *r, lnt_error *err)
{
    subject s = {.err = err};
    lnt_bump_init(&s.memory, &lnt_malloc_allocator);
    lnt_status status = prepare(&s, row, level);
    if (status == LNT_OK)
        status = fastest(run_once, &s.solo, &r->seconds);
    if (status == LNT_OK) {
        const double work = 2 * (double)lnt_multiply_adds(&s.node, &s.solo.step); /* counted apart */
        const bool bytes = is_int8(&s);
        r->unit = work <= 0 ? "GB/s" : bytes ? "GOP/s" : "GFLOP/s";
        r->rate = (work > 0 ? work : bytes_moved(&s)) / r->seconds;
        r->limit = work <= 0 ? copy_rate(&s, bytes_moved(&s)) : bytes ? BYTES_OF_FLOAT * peak : peak;
    }
    lnt_bump_free(&s.memory);
    return status;
}

/* ---- reports ---- */

typedef struct report {
    lnt_json json;
    lnt_table table;
    bool as_json;
} report;

/* by: the level, or who else did it. */
static void add_row(report *to, const lnt_kernel_row *row, const char *by, const result *r)
{
    const char *order = row->in_last ? "last" : row->out_last ? "made last" : "";
    char text[24];
    if (to->as_json) {
        lnt_json *j = &to->json;
        lnt_json_begin(j, NULL, '{');
        lnt_json_text(j, "family", row->family);
        lnt_json_text(j, "operator", row->op);
        lnt_json_text(j, "inputs", row->inputs);
        lnt_json_text(j, "attributes", row->attributes);
        lnt_json_bool(j, "channels_last", row->out_last);
        lnt_json_text(j, "level", by);
        lnt_json_number(j, "us", r->seconds * 1e6);
        lnt_json_text(j, "unit", r->unit);
        lnt_json_number(j, "rate", r->rate / 1e9);
        lnt_json_number(j, "limit", r->limit / 1e9);
        lnt_json_end(j, '}');
        return;
    }
    lnt_table *t = &to->table;
    lnt_table_cell(t, "%s", row->family);
    lnt_table_cell(t, "%s", row->op);
    lnt_table_cell(t, "%s", row->inputs);
    lnt_table_cell(t, "%s", row->attributes);
    lnt_table_cell(t, "%s", order);
    lnt_table_cell(t, "%s", by);
    lnt_table_cell(t, "%s", lnt_time_text(r->seconds, text));
    lnt_table_cell(t, "%.1f", r->rate / 1e9);
    lnt_table_cell(t, "%s", r->unit);
    lnt_table_cell(t, "%.0f %%", r->limit > 0 ? 100 * r->rate / r->limit : 0.);
}

static bool is_meant(const lnt_kernel_row *row, const lnt_texts *words)
{
    const char *const texts[] = {row->family, row->op, row->inputs, row->attributes};
    for (size_t i = 0; i < words->n; i++)
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
            if (strstr(texts[t], words->item[i]))
                return true;
    return words->n == 0;
}

#ifdef LNT_OPENBLAS
typedef struct rival {
    lnt_blas_call call;
    const float *a, *b;
    float *c;
} rival;

static lnt_status run_rival(void *arg)
{
    const rival *r = arg;
    lnt_blas_f32(&r->call, r->a, r->b, r->c);
    return LNT_OK;
}

/* What OpenBLAS makes of a product of two matrices, in a line of its own. */
static lnt_status add_rival(report *to, const lnt_kernel_row *row, lnt_level level, double peak,
                            lnt_error *err)
{
    subject s = {.err = err};
    char name[64];
    if (strcmp(row->op, "MatMul") != 0 || level != lnt_cpu_level())
        return LNT_OK;
    lnt_bump_init(&s.memory, &lnt_malloc_allocator);
    lnt_status status = read_row(&s, row);
    const lnt_operand *a = s.in[0], *b = s.in[1];
    if (status == LNT_OK && a->rank == 2 && b->rank == 2) {
        const int64_t M = a->dims[0], K = a->dims[1], N = b->dims[1];
        rival v = {{.M = M, .N = N, .K = K, .lda = K, .ldb = N, .alpha = 1}, a->data, b->data, NULL};
        result r = {.limit = peak, .unit = "GFLOP/s"};
        v.c = random_floats(&s, M * N);
        status = v.c ? fastest(run_rival, &v, &r.seconds) : LNT_E_MEMORY;
        r.rate = 2 * (double)M * (double)N * (double)K / r.seconds;
        snprintf(name, sizeof name, "openblas %s", lnt_blas_core());
        if (status == LNT_OK)
            add_row(to, row, name, &r);
    }
    lnt_bump_free(&s.memory);
    return status;
}
#else
static lnt_status add_rival(report *to, const lnt_kernel_row *row, lnt_level level, double peak,
                            lnt_error *err)
{
    (void)to, (void)row, (void)level, (void)peak, (void)err;
    return LNT_OK;
}
#endif

static lnt_status measure_level(report *to, const lnt_texts *words, lnt_level level, lnt_error *err)
{
    for (size_t i = 0; i < lnt_kernel_row_count; i++) {
        const lnt_kernel_row *row = &lnt_kernel_rows[i];
        result r;
        if (!is_meant(row, words))
            continue;
        /* Beside each row: clocks move with the load of the machine. */
        const double peak = 1e9 * lnt_check_peak(level, peak_seconds);
        LNT_TRY(measure(row, level, peak, &r, err));
        add_row(to, row, lnt_level_text(level), &r);
        LNT_TRY(add_rival(to, row, level, peak, err));
    }
    return LNT_OK;
}

int lnt_bench_kernels(const lnt_verb *verb, const lnt_texts *words, const char *level, bool json)
{
    static const char *const heads[] = {"family", "operator", "inputs", "attributes", "channels",
                                        "level",  "time",     "rate",   "",           "of limit"};
    report to = {.json = {.out = stdout}, .as_json = json};
    lnt_error err = {0};
    lnt_status status = LNT_OK;
    lnt_level first = lnt_cpu_level(), last = first;
    if (level && strcmp(level, "all") == 0)
        first = (lnt_level)0, last = lnt_cpu_best_level();
    else if (level && (!lnt_level_from_text(level, &first) || !lnt_cpu_has(first)))
        return lnt_usage_error(verb, "this CPU has no level '%s' (see `linnet doctor`)", level);
    else if (level)
        last = first;
    lnt_table_begin(&to.table, "llllllrrlr", heads);
    if (json)
        lnt_json_begin(&to.json, NULL, '[');
    for (unsigned l = first; l <= last && status == LNT_OK; l++)
        if (lnt_cpu_has((lnt_level)l))
            status = measure_level(&to, words, (lnt_level)l, &err);
    if (json)
        lnt_json_end(&to.json, ']');
    lnt_table_print(&to.table, json ? stderr : stdout);
    return status == LNT_OK ? LNT_EXIT_OK : lnt_failed(verb, &err);
}
