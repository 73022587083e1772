/* verb_info.c — `linnet info`: what is in a file, and the memory it will take. */
#include "cli/data/compare.h"
#include "cli/data/graph_text.h"
#include "cli/data/inputs.h"
#include "cli/shell/json.h"
#include "cli/shell/table.h"
#include "cli/verbs.h"
#include "formats/stored.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct {
    lnt_texts dims;
    const char *level;
    int64_t threads;
    bool check, dot, values, json;
} given = {.threads = 1};

static const lnt_option options[] = {
    {"--dim", "NAME=N", LNT_OPTION_TEXTS, &given.dims,
     "an open extent, or an upper bound of a data-dependent one"},
    {"--threads", "N", LNT_OPTION_COUNT, &given.threads, "threads the memory is worked out for (1)"},
    {"--level", "L", LNT_OPTION_TEXT, &given.level, "level the memory is worked out for (best)"},
    {"--check", NULL, LNT_OPTION_FLAG, &given.check, "check tensor data and padding, too"},
    {"--values", NULL, LNT_OPTION_FLAG, &given.values, "list what `run --fetch` can write instead"},
    {"--dot", NULL, LNT_OPTION_FLAG, &given.dot, "print the graph for Graphviz instead"},
    {"--json", NULL, LNT_OPTION_FLAG, &given.json, "print JSON"},
};

/* What binding for the extents given would take. */
typedef struct binding {
    bool known;
    char why_not[256];
    lnt_session_info info;
} binding;

typedef struct op_count {
    const char *name;
    uint32_t n;
} op_count;

static int by_count(const void *a, const void *b)
{
    const op_count *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->name, y->name);
}

/* Operators of all subgraphs, the most frequent first. */
static op_count *count_ops(const lnt_file *f, size_t *n)
{
    op_count *count = lnt_cli_alloc(f->n_nodes * sizeof *count);
    *n = 0;
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        const char *name = lnt_node_text(f, &f->nodes[i]);
        size_t k = 0;
        while (k < *n && strcmp(count[k].name, name) != 0)
            k++;
        if (k == *n)
            count[(*n)++].name = name;
        count[k].n++;
    }
    if (*n)
        qsort(count, *n, sizeof *count, by_count);
    return count;
}

static lnt_status bind_for(lnt_opened *o, binding *b)
{
    const lnt_inputs_options how = {.dims = &given.dims, .rest = LNT_INPUTS_SHAPE};
    const lnt_session_options options_ = {.struct_bytes = sizeof options_,
                                          .intra_op_num_threads = (uint32_t)given.threads,
                                          .level = given.level};
    lnt_error err = {0};
    lnt_inputs inputs = {0};
    lnt_session *s = NULL;
    lnt_status status = lnt_inputs_make(o, &how, &inputs, &err);
    if (status == LNT_OK)
        status = lnt_session_create(o->model, &options_, &s, &err);
    if (status == LNT_OK)
        status = lnt_inputs_set(o, &how, &inputs, s, &err);
    if (status == LNT_OK)
        status = lnt_bind(s, &err);
    b->info.struct_bytes = sizeof b->info;
    if (status == LNT_OK)
        status = lnt_session_get_info(s, &b->info, &err);
    b->known = status == LNT_OK;
    if (b->known && b->info.unbounded) /* dies with the session */
        b->info.unbounded = lnt_cli_text("%s", b->info.unbounded);
    snprintf(b->why_not, sizeof b->why_not, "%.250s", err.message);
    lnt_session_destroy(&s);
    lnt_inputs_free(&inputs);
    return status;
}

/* "float 1xTx80": unknown extents by their names. */
static const char *type_text(const lnt_value_info *v, char buffer[160])
{
    int used = snprintf(buffer, 160, "%s ", lnt_dtype_text(v->dtype));
    if (v->rank > LNT_MAX_RANK)
        snprintf(buffer + used, 160 - (size_t)used, "any rank");
    else if (!v->rank)
        snprintf(buffer + used, 160 - (size_t)used, "scalar");
    for (uint32_t i = 0; v->rank <= LNT_MAX_RANK && i < v->rank && used < 120; i++) {
        const char *join = i ? " x " : "";
        if (v->dims[i] >= 0)
            used += snprintf(buffer + used, 160 - (size_t)used, "%s%" PRId64, join, v->dims[i]);
        else
            used += snprintf(buffer + used, 160 - (size_t)used, "%s%.30s", join,
                             v->dim_names[i] ? v->dim_names[i] : "?");
    }
    return buffer;
}

static void ports_table(const lnt_opened *o)
{
    static const char *const heads[] = {"", "name", "type", ""};
    char text[160];
    lnt_value_info v;
    lnt_table t;
    lnt_table_begin(&t, "llll", heads);
    for (uint32_t i = 0; i < lnt_model_input_count(o->model); i++) {
        lnt_model_input(o->model, i, &v);
        lnt_table_cell(&t, "input");
        lnt_table_cell(&t, "%s", v.name);
        lnt_table_cell(&t, "%s", type_text(&v, text));
        lnt_table_cell(&t, "%s", v.is_state ? "state" : "");
    }
    for (uint32_t i = 0; i < lnt_model_output_count(o->model); i++) {
        lnt_model_output(o->model, i, &v);
        lnt_table_cell(&t, "output");
        lnt_table_cell(&t, "%s", v.name);
        lnt_table_cell(&t, "%s", type_text(&v, text));
        lnt_table_cell(&t, "%s", v.is_state ? "state" : "");
    }
    lnt_table_print(&t, stdout);
}

/* Bytes of constants in ONNX order and packed. */
static void constant_bytes(const lnt_file *f, uint64_t *plain, uint64_t *packed)
{
    *plain = *packed = 0;
    for (uint32_t i = 0; i < f->n_constants; i++)
        *(f->constants[i].packed == LNT_FILE_NONE ? plain : packed) += f->constants[i].bytes;
}

/* Bytes of packed constants by what their elements are. */
static void packed_types(const lnt_file *f, uint64_t bytes[LNT_DTYPE_COUNT])
{
    memset(bytes, 0, LNT_DTYPE_COUNT * sizeof *bytes);
    for (uint32_t i = 0; i < f->n_constants; i++)
        if (f->constants[i].packed != LNT_FILE_NONE)
            bytes[lnt_packed_element(&f->packed[f->constants[i].packed])] += f->constants[i].bytes;
}

/* The same by layout, their numbers in formats/FORMAT.md. */
static void json_layouts(lnt_json *j, const lnt_file *f)
{
    enum { LAYOUTS = LNT_LAYOUT_WIDTHS * (LNT_LAYOUT_WIDTH / LNT_LAYOUT_WIDTHS + 1) };
    uint64_t bytes[LAYOUTS] = {0};
    for (uint32_t i = 0; i < f->n_constants; i++)
        if (f->constants[i].packed != LNT_FILE_NONE)
            bytes[f->packed[f->constants[i].packed].layout % LAYOUTS] += f->constants[i].bytes;
    lnt_json_begin(j, "packed_layouts", '{');
    for (unsigned i = 0; i < LAYOUTS; i++) {
        char number[12];
        snprintf(number, sizeof number, "%u", i);
        if (bytes[i])
            lnt_json_int(j, number, (int64_t)bytes[i]);
    }
    lnt_json_end(j, '}');
}

/* Convolutions of floats whose weights are in ONNX order. */
static uint32_t plain_convolutions(const lnt_file *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        const uint32_t weights = f->operands[f->nodes[i].first_operand + 1];
        n += f->nodes[i].op == LNT_ID_Conv && weights != LNT_FILE_NONE && !lnt_file_value(f, weights).packed;
    }
    return n;
}

/* Memory that loading takes for constants whose bytes are not used in place. */
static uint64_t restored_bytes(const lnt_file *f)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < f->n_constants; i++) {
        const lnt_rec_value *v = &f->values[f->constants[i].value];
        const lnt_operand o = lnt_file_value(f, f->constants[i].value);
        size_t bytes = 0;
        if (v->stored != LNT_STORED_READY && !lnt_stored_bytes(LNT_STORED_READY, &o, &bytes))
            total += bytes;
    }
    return total;
}

static const lnt_rec_section *sections_of(const lnt_file *f, uint32_t *n)
{
    *n = ((const lnt_rec_header *)(const void *)f->bytes)->n_sections;
    return (const lnt_rec_section *)(const void *)(f->bytes + sizeof(lnt_rec_header));
}

static uint32_t golden_cases(const lnt_file *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_golden; i++)
        n += i == 0 || f->golden[i].test != f->golden[i - 1].test;
    return n;
}

/* "(give --dim NAME=N for an exact arena)", if a bound can be given for it at all. */
static void print_unbounded(const lnt_file *f, const char *name)
{
    bool boundable = false;
    for (uint32_t i = 0; i < f->n_symbols; i++)
        boundable |= strcmp(f->strings + f->symbols[i].name, name) == 0;
    printf("unbounded: %s", name);
    if (boundable)
        printf(" (give --dim %s=N for an exact arena)", name);
    printf("\n");
}

static void print_memory(const lnt_file *f, const binding *b)
{
    char text[24];
    if (restored_bytes(f))
        printf("memory: %s for constants that are packed when the file is loaded\n",
               lnt_size_text(restored_bytes(f), text));
    if (!b->known) {
        printf("memory: %s\n", b->why_not);
        return;
    }
    printf("memory: arena %" PRIu64 " bytes (%s), %" PRIu64 " at once, level %s, threads %" PRIu32
           "; %" PRIu32 " steps a run, %" PRIu32 " operators computed at bind\n",
           b->info.arena_bytes, lnt_size_text(b->info.arena_bytes, text), b->info.alive_bytes, b->info.level,
           b->info.threads, b->info.n_steps, b->info.n_evaluated);
    if (b->info.unbounded)
        print_unbounded(f, b->info.unbounded);
}

static void print_text(const lnt_opened *o, const binding *b)
{
    const lnt_file *f = &o->file;
    char x[24], y[24], z[24];
    uint64_t plain, packed, types[LNT_DTYPE_COUNT];
    uint32_t n_sections;
    size_t n_ops;
    op_count *ops = count_ops(f, &n_ops);
    const lnt_rec_section *section = sections_of(f, &n_sections);

    ports_table(o);
    constant_bytes(f, &plain, &packed);
    packed_types(f, types);
    printf("\nfile: %s, constants %s in ONNX order and %s packed", lnt_size_text(f->size, x),
           lnt_size_text(plain, y), lnt_size_text(packed, z));
    for (size_t i = 0; i < LNT_DTYPE_COUNT; i++)
        if (types[i] && i != LNT_FLOAT)
            printf(" (%s as %s)", lnt_size_text(types[i], z), lnt_dtype_text((lnt_dtype)i));
    printf(", %" PRIu32 " golden case%s\n", golden_cases(f), golden_cases(f) == 1 ? "" : "s");
    for (uint32_t i = 0; i < n_sections; i++)
        printf("%s%s %s", i ? ", " : "sections: ", lnt_section_text(section[i].kind),
               lnt_size_text(section[i].bytes, x));
    printf("\noperators: %" PRIu32 " in %" PRIu32 " subgraph%s:", f->n_nodes, f->n_subgraphs,
           f->n_subgraphs == 1 ? "" : "s");
    for (size_t i = 0; i < n_ops; i++)
        printf(" %s %" PRIu32 "%s", ops[i].name, ops[i].n, i + 1 < n_ops ? "," : "");
    printf("\n");
    print_memory(f, b);
    for (uint32_t i = 0; i < f->n_metadata; i++)
        printf("%s%s = %s\n", i ? "  " : "metadata:\n  ", f->strings + f->metadata[i].key,
               f->strings + f->metadata[i].text);
    for (uint32_t i = 0; i < f->n_attachments; i++)
        printf("%s%s, %s\n", i ? "  " : "attachments:\n  ", f->strings + f->attachments[i].name,
               lnt_size_text(f->attachments[i].bytes, x));
}

static void json_port(lnt_json *j, const lnt_value_info *v)
{
    lnt_json_begin(j, NULL, '{');
    lnt_json_text(j, "name", v->name);
    lnt_json_text(j, "dtype", lnt_dtype_text(v->dtype));
    if (v->rank <= LNT_MAX_RANK)
        lnt_json_ints(j, "dims", v->dims, v->rank);
    else
        lnt_json_text(j, "dims", NULL);
    lnt_json_begin(j, "dim_names", '[');
    for (uint32_t i = 0; v->rank <= LNT_MAX_RANK && i < v->rank; i++)
        lnt_json_text(j, NULL, v->dim_names[i]);
    lnt_json_end(j, ']');
    lnt_json_bool(j, "state", v->is_state);
    lnt_json_end(j, '}');
}

static void json_ports(lnt_json *j, const lnt_opened *o)
{
    lnt_value_info v;
    lnt_json_begin(j, "inputs", '[');
    for (uint32_t i = 0; i < lnt_model_input_count(o->model); i++)
        if (lnt_model_input(o->model, i, &v) == LNT_OK)
            json_port(j, &v);
    lnt_json_end(j, ']');
    lnt_json_begin(j, "outputs", '[');
    for (uint32_t i = 0; i < lnt_model_output_count(o->model); i++)
        if (lnt_model_output(o->model, i, &v) == LNT_OK)
            json_port(j, &v);
    lnt_json_end(j, ']');
}

static void json_sections(lnt_json *j, const lnt_file *f)
{
    uint32_t n;
    const lnt_rec_section *section = sections_of(f, &n);
    lnt_json_begin(j, "sections", '[');
    for (uint32_t i = 0; i < n; i++) {
        char hash[24];
        snprintf(hash, sizeof hash, "%016" PRIx64, section[i].hash);
        lnt_json_begin(j, NULL, '{');
        lnt_json_int(j, "kind", section[i].kind);
        lnt_json_text(j, "name", lnt_section_text(section[i].kind));
        lnt_json_int(j, "offset", (int64_t)section[i].offset);
        lnt_json_int(j, "bytes", (int64_t)section[i].bytes);
        lnt_json_text(j, "hash", hash);
        lnt_json_end(j, '}');
    }
    lnt_json_end(j, ']');
}

static void json_symbols(lnt_json *j, const lnt_file *f)
{
    lnt_json_begin(j, "symbols", '[');
    for (uint32_t i = 0; i < f->n_symbols; i++) {
        lnt_json_begin(j, NULL, '{');
        lnt_json_text(j, "name", f->strings + f->symbols[i].name);
        lnt_json_int(j, "kind", f->symbols[i].kind);
        lnt_json_int(j, "bound", f->symbols[i].bound);
        lnt_json_end(j, '}');
    }
    lnt_json_end(j, ']');
    lnt_json_begin(j, "states", '[');
    for (uint32_t i = 0; i < f->n_states; i++) {
        lnt_json_begin(j, NULL, '{');
        lnt_json_int(j, "output", f->states[i].output);
        lnt_json_int(j, "input", f->states[i].input);
        lnt_json_end(j, '}');
    }
    lnt_json_end(j, ']');
}

static void json_counts(lnt_json *j, const lnt_file *f)
{
    uint64_t plain, packed, types[LNT_DTYPE_COUNT];
    size_t n_ops;
    op_count *ops = count_ops(f, &n_ops);
    constant_bytes(f, &plain, &packed);
    lnt_json_int(j, "constant_bytes", (int64_t)plain);
    lnt_json_int(j, "packed_bytes", (int64_t)packed);
    packed_types(f, types);
    lnt_json_begin(j, "packed_types", '{');
    for (size_t i = 0; i < LNT_DTYPE_COUNT; i++)
        if (types[i])
            lnt_json_int(j, lnt_dtype_text((lnt_dtype)i), (int64_t)types[i]);
    lnt_json_end(j, '}');
    json_layouts(j, f);
    lnt_json_int(j, "values", f->n_values);
    lnt_json_int(j, "constants", f->n_constants);
    lnt_json_int(j, "nodes", f->n_nodes);
    lnt_json_int(j, "programs", f->n_programs);
    lnt_json_int(j, "subgraphs", f->n_subgraphs);
    lnt_json_int(j, "golden_cases", golden_cases(f));
    lnt_json_int(j, "plain_convolutions", plain_convolutions(f));
    lnt_json_begin(j, "operators", '{');
    for (size_t i = 0; i < n_ops; i++)
        lnt_json_int(j, ops[i].name, ops[i].n);
    lnt_json_end(j, '}');
}

static void json_memory(lnt_json *j, const lnt_file *f, const binding *b)
{
    lnt_json_int(j, "restored_bytes", (int64_t)restored_bytes(f));
    if (!b->known) {
        lnt_json_text(j, "arena_bytes", NULL);
        lnt_json_text(j, "arena_unknown_because", b->why_not);
        return;
    }
    lnt_json_int(j, "arena_bytes", (int64_t)b->info.arena_bytes);
    lnt_json_int(j, "alive_bytes", (int64_t)b->info.alive_bytes);
    lnt_json_int(j, "threads", b->info.threads);
    lnt_json_text(j, "level", b->info.level);
    lnt_json_int(j, "steps", b->info.n_steps);
    lnt_json_int(j, "evaluated", b->info.n_evaluated);
    lnt_json_text(j, "unbounded", b->info.unbounded);
}

static void print_json(const lnt_opened *o, const binding *b)
{
    const lnt_file *f = &o->file;
    const lnt_rec_header *header = (const void *)f->bytes;
    lnt_json j = {.out = stdout};
    lnt_json_begin(&j, NULL, '{');
    lnt_json_int(&j, "format_version", header->version);
    lnt_json_int(&j, "file_bytes", (int64_t)f->size);
    json_ports(&j, o);
    json_sections(&j, f);
    json_counts(&j, f);
    json_symbols(&j, f);
    lnt_json_begin(&j, "metadata", '{');
    for (uint32_t i = 0; i < f->n_metadata; i++)
        lnt_json_text(&j, f->strings + f->metadata[i].key, f->strings + f->metadata[i].text);
    lnt_json_end(&j, '}');
    lnt_json_begin(&j, "attachments", '{');
    for (uint32_t i = 0; i < f->n_attachments; i++)
        lnt_json_int(&j, f->strings + f->attachments[i].name, (int64_t)f->attachments[i].bytes);
    lnt_json_end(&j, '}');
    json_memory(&j, f, b);
    lnt_json_end(&j, '}');
}

static int run(const lnt_texts *words)
{
    lnt_opened o = {0};
    binding b = {0};
    lnt_error err = {0};

    if (words->n != 1)
        return lnt_usage_error(&lnt_verb_info, words->n ? "one model at a time" : "which model?");
    lnt_status status = lnt_opened_look(words->item[0], given.check ? LNT_LOAD_FULL : 0, &o, &err);
    if (status == LNT_OK)
        status = lnt_opened_file(&o, &err);
    if (status == LNT_OK && given.dot) {
        lnt_print_dot(&o.file);
    } else if (status == LNT_OK && given.values) {
        lnt_print_values(&o.file);
    } else if (status == LNT_OK) {
        /* Open extents are no failure of info's, but what was asked for with --dim has to work. */
        const lnt_status bound = bind_for(&o, &b);
        if (bound != LNT_OK && given.dims.n)
            status = lnt_fail(&err, bound, "%s", b.why_not);
        else
            given.json ? print_json(&o, &b) : print_text(&o, &b);
    }
    lnt_opened_close(&o);
    return status == LNT_OK ? LNT_EXIT_OK : lnt_failed(&lnt_verb_info, &err);
}

const lnt_verb lnt_verb_info = {
    .name = "info",
    .summary = "what is in a model file, and the memory it takes",
    .usage = "M.lnt [options]",
    .text =
        "Prints inputs, outputs, operators, bytes by kind and metadata, and the bytes of the arena that a\n"
        "session needs for intermediate values, scratch included. Where extents are open, name them with\n"
        "--dim; a data-dependent extent without a bound is shown as `unbounded: NAME`. Operators that a\n"
        "host program has to bring are marked custom; the memory is not known without them.\n"
        "Opening a file always checks its structure; --check also hashes the tensor data and the padding.",
    .examples = "linnet info model.lnt\n"
                "linnet info voice.lnt --dim T=200 --threads 2\n"
                "linnet info model.lnt --check --json\n"
                "linnet info model.lnt --values\n"
                "linnet info model.lnt --dot | dot -Tsvg > model.svg",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_model = true,
    .run = run,
};
