/* import_text.c — text that comes from outside: int64 numbers of words stand for it. Words of the model's own have the
 * first numbers, those of a list that the graph keeps; sessions number all others (base/word_table.h). */
#include "convert/import/import.h"

#include "formats/wire.h"

#include <string.h>

/* What may be done with numbers of words. */
typedef struct text_row {
    const char *op;
    uint32_t in;  /* bit i: input i may hold them; */
    uint32_t out; /* output i holds them then */
} text_row;

enum { ALL = -1 };

static const text_row *find_row(const char *op)
{
    static const text_row rows[] = {
        {"ArrayFeatureExtractor", 1, 1},
        {"CategoryMapper", 1, 0},
        {"Compress", 1, 1},
        {"Concat", (uint32_t)ALL, 1},
        {"Equal", 3, 0},
        {"Expand", 1, 1},
        {"Flatten", 1, 1},
        {"Gather", 1, 1},
        {"GatherElements", 1, 1},
        {"GatherND", 1, 1},
        {"Identity", 1, 1},
        {"If", 0, 0},
        {"LabelEncoder", 1, 0},
        {"Loop", (uint32_t)ALL, 0},
        {"OneHotEncoder", 1, 0},
        {"Optional", 1, 0},
        {"OptionalGetElement", 1, 0},
        {"OptionalHasElement", 1, 0},
        {"RegexFullMatch", 1, 0},
        {"Reshape", 1, 1},
        {"Scan", (uint32_t)ALL, 0},
        {"ScatterElements", 5, 1},
        {"ScatterND", 5, 1},
        {"SequenceConstruct", (uint32_t)ALL, 0},
        {"SequenceInsert", 2, 0},
        {"SequenceMap", (uint32_t)ALL, 0},
        {"Shape", 1, 0},
        {"Size", 1, 0},
        {"Slice", 1, 1},
        {"Split", 1, (uint32_t)ALL},
        {"Squeeze", 1, 1},
        {"StringConcat", 3, 1},
        {"StringNormalizer", 1, 1},
        {"StringSplit", 1, 1},
        {"TextToNumber", 1, 0},
        {"TfIdfVectorizer", 1, 0},
        {"Tile", 1, 1},
        {"Transpose", 1, 1},
        {"Unsqueeze", 1, 1},
        {"Where", 6, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0)
            return &rows[i];
    return NULL;
}

static bool has_bit(uint32_t bits, unsigned i)
{
    return i < 32 ? bits >> i & 1 : bits == (uint32_t)ALL;
}

static bool is_text(const lnt_importer *im, uint32_t value)
{
    return value != LNT_NONE && im->g->value[value].text;
}

/* ---- the model ---- */

/* Is it a Cast of what the model is fed to text? */
static bool casts_to_text(const LntOnnx__Graph *graph, const LntOnnx__Node *n)
{
    bool to = false, fed = false;
    if (!n->op_type || strcmp(n->op_type, "Cast") != 0 || n->n_input != 1)
        return false;
    for (size_t i = 0; i < n->n_attribute; i++)
        to |= n->attribute[i]->name && strcmp(n->attribute[i]->name, "to") == 0 &&
              n->attribute[i]->i == LNT_STRING;
    for (size_t i = 0; to && i < graph->n_input; i++)
        fed |= graph->input[i]->name && strcmp(graph->input[i]->name, n->input[0]) == 0;
    return fed;
}

static bool takes_words(const LntOnnx__Node *n)
{
    static const char *const ops[] = {"RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"};
    for (size_t i = 0; n->op_type && i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i], n->op_type) == 0)
            return true;
    return false;
}

bool lnt_import_takes_text(const LntOnnx__Graph *graph)
{
    for (size_t i = 0; i < graph->n_input; i++) {
        const LntOnnx__Type *type = lnt_import_element_type(graph->input[i]);
        type = type ? type : graph->input[i]->type;
        if (type && type->optional_type && type->optional_type->elem_type)
            type = type->optional_type->elem_type;
        if (type && type->tensor_type && type->tensor_type->elem_type == LNT_STRING)
            return true;
    }
    for (size_t i = 0; i < graph->n_node; i++)
        if (takes_words(graph->node[i]) || casts_to_text(graph, graph->node[i]))
            return true;
    return false;
}

lnt_status lnt_import_word(lnt_importer *im, const char *word, int64_t *number)
{
    lnt_graph *g = im->g;
    const uint32_t known = lnt_names_find(&g->word_numbers, word);
    *number = known;
    if (known != LNT_NAMES_NONE)
        return LNT_OK;
    LNT_TRY(LNT_GROW(g->memory.allocator, g->words.word, g->word_capacity, g->words.n, im->err));
    *number = (int64_t)g->words.n;
    g->words.word[g->words.n] = word;
    return lnt_names_set(&g->word_numbers, word, (uint32_t)g->words.n++, im->err);
}

/* ---- tensors ---- */

enum { FIELD_STRING_DATA = 6 };

static lnt_status number_bytes(lnt_importer *im, lnt_wire bytes, int64_t *number)
{
    const char *word =
        lnt_bump_string(&im->g->memory, (const char *)bytes.at, lnt_wire_bytes(bytes), im->err);
    if (!word)
        return LNT_E_MEMORY;
    LNT_REQUIRE(strlen(word) == lnt_wire_bytes(bytes), im->err, LNT_E_UNSUPPORTED,
                "a string has a NUL character in it");
    return lnt_import_word(im, word, number);
}

lnt_status lnt_import_text_tensor(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_operand *tensor)
{
    lnt_wire w = lnt_wire_of(proto->data, proto->len);
    const int64_t count = lnt_operand_count(tensor);
    lnt_wire_field f;
    int64_t n = 0;
    for (lnt_wire all = w; lnt_wire_next(&all, &f);)
        n += f.number == FIELD_STRING_DATA && f.type == LNT_WIRE_BYTES;
    LNT_REQUIRE(count == n, im->err, LNT_E_MODEL,
                "a tensor of text has %lld strings, which are not those of its extents", (long long)n);
    int64_t *number = lnt_bump_alloc(&im->g->memory, (size_t)n * sizeof *number, im->err);
    tensor->data = number;
    if (!number)
        return LNT_E_MEMORY;
    while (lnt_wire_next(&w, &f))
        if (f.number == FIELD_STRING_DATA && f.type == LNT_WIRE_BYTES)
            LNT_TRY(number_bytes(im, f.bytes, number++));
    return LNT_OK;
}

lnt_status lnt_import_number_words(lnt_importer *im, const lnt_tensor *t, lnt_operand *tensor, size_t *bytes)
{
    const char *const *word = t->data;
    *tensor = (lnt_operand){.dtype = LNT_INT64, .rank = (uint8_t)t->rank, .constant = true};
    memcpy(tensor->dims, t->dims, sizeof tensor->dims);
    const int64_t n = lnt_operand_count(tensor);
    LNT_REQUIRE(n >= 0 && lnt_operand_bytes(tensor, bytes) && t->bytes / sizeof *word >= (size_t)n, im->err,
                LNT_E_ARGUMENT, "a tensor of text is short");
    int64_t *number = lnt_bump_alloc(&im->g->memory, *bytes, im->err);
    tensor->data = number;
    if (!number)
        return LNT_E_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        const char *kept = lnt_import_text(im, "%s", word[i]);
        if (!kept)
            return LNT_E_MEMORY;
        LNT_TRY(lnt_import_word(im, kept, &number[i]));
    }
    return LNT_OK;
}

/* ---- nodes ---- */

/* The pool of a TfIdfVectorizer is compared by numbers. */
static lnt_status number_pool(lnt_importer *im, lnt_inode *n)
{
    const lnt_attr *pool = lnt_inode_attr(n, "pool_strings");
    if (strcmp(n->op, "TfIdfVectorizer") != 0 || !pool || pool->type != LNT_ATTR_STRINGS || !pool->count)
        return LNT_OK;
    int64_t *number = lnt_bump_alloc(&im->g->memory, pool->count * sizeof *number, im->err);
    if (!number)
        return LNT_E_MEMORY;
    for (uint32_t i = 0; i < pool->count; i++)
        LNT_TRY(lnt_import_word(im, pool->strings[i], &number[i]));
    const lnt_attr numbers = {
        .name = "pool_int64s", .type = LNT_ATTR_INTS, .count = pool->count, .i = number};
    lnt_inode_drop(n, "pool_strings");
    return lnt_inode_set(im, n, &numbers);
}

/* A CastLike to or from text is a Cast. */
static lnt_status name_type(lnt_importer *im, lnt_inode *n)
{
    const uint32_t like = lnt_inode_in(n, 1);
    const lnt_operand *o = lnt_ginfo(im->g, like);
    if (strcmp(n->op, "CastLike") != 0 || !o || !(is_text(im, like) || is_text(im, n->in[0])))
        return LNT_OK;
    n->op = "Cast";
    n->n_in = 1;
    return lnt_inode_set_i(im, n, "to", is_text(im, like) ? LNT_STRING : o->dtype);
}

/* A Cast with text on one side or both. */
static void choose_cast(const lnt_importer *im, lnt_inode *n)
{
    const bool from = is_text(im, lnt_inode_in(n, 0)), to = lnt_inode_i(n, "to", 0) == LNT_STRING;
    if (strcmp(n->op, "Cast") != 0 || (!from && !to))
        return;
    n->op = from && to ? "Identity" : from ? "TextToNumber" : "NumberToText";
    n->domain = from && to ? "" : "linnet";
    lnt_inode_drop(n, "saturate");
    lnt_inode_drop(n, "round_mode");
    if (to)
        lnt_inode_drop(n, "to");
}

lnt_status lnt_import_check_text(lnt_importer *im, lnt_inode *n, bool *fine)
{
    LNT_TRY(name_type(im, n));
    choose_cast(im, n);
    const text_row *row = find_row(n->op);
    LNT_TRY(number_pool(im, n));
    *fine = true;
    for (unsigned i = 0; i < n->n_in; i++)
        *fine &= !is_text(im, n->in[i]) || (row && has_bit(row->in, i));
    return *fine ? LNT_OK
                 : lnt_import_unsupported(
                       im, n,
                       "it reads text, which can be moved, compared for equality, looked up and "
                       "given to operators on strings only");
}

/* Outputs of If, Loop and Scan are those of their subgraphs. */
static void carry_results(lnt_importer *im, const lnt_inode *n)
{
    const lnt_attr *body = lnt_inode_attr(n, "body");
    const uint32_t first = strcmp(n->op, "Loop") == 0;
    body = body ? body : lnt_inode_attr(n, "then_branch");
    if (!body || body->type != LNT_ATTR_GRAPH)
        return;
    const lnt_gsubgraph *sub = &im->g->sub[*body->i];
    for (unsigned i = 0; i < n->n_out && i + first < sub->n_out; i++)
        if (n->out[i] != LNT_NONE && is_text(im, sub->out[i + first]))
            im->g->value[n->out[i]].text = true;
}

void lnt_import_carry_text(lnt_importer *im, const lnt_inode *n)
{
    const text_row *row = find_row(n->op);
    bool text = false;
    if (strcmp(n->op, "NumberToText") == 0 && n->n_out)
        im->g->value[n->out[0]].text = true;
    carry_results(im, n);
    for (unsigned i = 0; row && i < n->n_in; i++)
        text |= has_bit(row->in, i) && is_text(im, n->in[i]);
    for (unsigned i = 0; text && i < n->n_out; i++)
        if (has_bit(row->out, i) && n->out[i] != LNT_NONE)
            im->g->value[n->out[i]].text = true;
}
