/* import_words.c — text that a model holds and hands out: numbers stand for it, places in a list of words that becomes
 * metadata of the output. */
#include "convert/import/import.h"

#include "base/checked.h"
#include "formats/wire.h"

#include <stdio.h>
#include <string.h>

lnt_status lnt_words_add(lnt_importer *im, lnt_names *places, lnt_words *words, const char *word,
                         int64_t *place)
{
    const uint32_t known = lnt_names_find(places, word);
    *place = known;
    if (known != LNT_NAMES_NONE)
        return LNT_OK;
    *place = (int64_t)words->n;
    words->word[words->n] = word;
    return lnt_names_set(places, word, (uint32_t)words->n++, im->err);
}

lnt_words *lnt_words_take(lnt_importer *im, size_t most)
{
    lnt_words *words = lnt_bump_alloc(&im->g->memory, sizeof *words, im->err);
    size_t bytes;
    if (!words || !lnt_mul_size(most ? most : 1, sizeof *words->word, &bytes))
        return NULL;
    *words = (lnt_words){.word = lnt_bump_alloc(&im->g->memory, bytes, im->err)};
    return words->word ? words : NULL;
}

/* ---- tensors ---- */

enum { FIELD_STRING_DATA = 6 };

static size_t count_strings(const ProtobufCBinaryData *proto)
{
    lnt_wire w = lnt_wire_of(proto->data, proto->len);
    lnt_wire_field f;
    size_t n = 0;
    while (lnt_wire_next(&w, &f))
        n += f.number == FIELD_STRING_DATA && f.type == LNT_WIRE_BYTES;
    return n;
}

static lnt_status read_strings(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_names *places,
                               lnt_words *words, int64_t *place)
{
    lnt_wire w = lnt_wire_of(proto->data, proto->len);
    lnt_wire_field f;
    while (lnt_wire_next(&w, &f)) {
        if (f.number != FIELD_STRING_DATA || f.type != LNT_WIRE_BYTES)
            continue;
        const char *word =
            lnt_bump_string(&im->g->memory, (const char *)f.bytes.at, lnt_wire_bytes(f.bytes), im->err);
        if (!word)
            return LNT_E_MEMORY;
        LNT_TRY(lnt_words_add(im, places, words, word, place++));
    }
    return LNT_OK;
}

lnt_status lnt_import_words(lnt_importer *im, const ProtobufCBinaryData *proto, lnt_operand *tensor,
                            const lnt_words **words)
{
    const size_t n = count_strings(proto);
    size_t bytes;
    LNT_REQUIRE(lnt_operand_count(tensor) == (int64_t)n, im->err, LNT_E_MODEL,
                "a tensor of text has %zu strings, which are not those of its extents", n);
    lnt_words *list = lnt_words_take(im, n);
    int64_t *place =
        lnt_mul_size(n, sizeof *place, &bytes) ? lnt_bump_alloc(&im->g->memory, bytes, im->err) : NULL;
    if (!list || !place)
        return LNT_E_MEMORY;
    lnt_names places = {.heap = im->g->memory.allocator};
    const lnt_status status = read_strings(im, proto, &places, list, place);
    lnt_names_free(&places);
    tensor->dtype = LNT_INT64;
    tensor->data = place;
    *words = list;
    return status;
}

/* ---- nodes ---- */

bool lnt_import_moves_elements(const char *op)
{
    static const char *const names[] = {"ArrayFeatureExtractor",
                                        "Expand",
                                        "Flatten",
                                        "Gather",
                                        "Identity",
                                        "Reshape",
                                        "Slice",
                                        "Squeeze",
                                        "Transpose",
                                        "Unsqueeze"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], op) == 0)
            return true;
    return false;
}

static const lnt_words *words_of(const lnt_importer *im, uint32_t value)
{
    return value == LNT_NONE ? NULL : im->g->value[value].words;
}

lnt_status lnt_import_check_words(lnt_importer *im, lnt_inode *n, bool *fine)
{
    const bool text = words_of(im, lnt_inode_in(n, 0)) != NULL;
    bool moves = lnt_import_moves_elements(n->op) || strcmp(n->op, "LabelEncoder") == 0;
    if (text && strcmp(n->op, "Cast") == 0 && lnt_inode_i(n, "to", 0) == LNT_STRING) {
        n->op = "Identity";
        lnt_inode_drop(n, "to");
        moves = true;
    }
    *fine = true;
    for (unsigned i = 0; i < n->n_in; i++)
        *fine &= !words_of(im, n->in[i]) || (i == 0 && moves);
    return *fine ? LNT_OK
                 : lnt_import_unsupported(im, n,
                                          "it reads text, for which numbers stand here: it can be moved and "
                                          "handed out, and go through a LabelEncoder");
}

void lnt_import_carry_words(lnt_importer *im, const lnt_inode *n, uint32_t from)
{
    if (from == LNT_NONE || !lnt_import_moves_elements(n->op) || !n->n_out || n->out[0] == LNT_NONE)
        return;
    lnt_gvalue *to = &im->g->value[n->out[0]];
    if (im->g->value[from].words)
        to->words = im->g->value[from].words;
}

/* ---- metadata ---- */

/* What text[0..*n) grows by; text may be NULL, to measure. */
static void put(char *text, size_t *n, const char *more)
{
    const size_t length = strlen(more);
    if (text)
        memcpy(text + *n, more, length);
    *n += length;
}

/* As JSON has strings. */
static void put_string(char *text, size_t *n, const char *word)
{
    char part[8];
    put(text, n, "\"");
    for (const unsigned char *c = (const unsigned char *)word; *c; c++) {
        if (*c < 0x20)
            snprintf(part, sizeof part, "\\u%04x", *c);
        else
            snprintf(part, sizeof part, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
        put(text, n, part);
    }
    put(text, n, "\"");
}

/* The words as JSON's list, without an end; returns its length. */
static size_t put_list(char *text, const lnt_words *words)
{
    size_t n = 0;
    put(text, &n, "[");
    for (size_t i = 0; i < words->n; i++) {
        put(text, &n, i ? ", " : "");
        if (words->bare)
            put(text, &n, words->word[i]);
        else
            put_string(text, &n, words->word[i]);
    }
    put(text, &n, "]");
    return n;
}

lnt_status lnt_import_record_words(lnt_importer *im, const char *output, uint32_t value)
{
    const lnt_words *words = words_of(im, value);
    if (!words)
        return LNT_OK;
    const char *key = lnt_import_text(im, "classes.%s", output);
    char *list = lnt_bump_alloc(&im->g->memory, put_list(NULL, words) + 1, im->err);
    if (!key || !list)
        return LNT_E_MEMORY;
    list[put_list(list, words)] = 0;
    LNT_TRY(lnt_import_set_meta(im, key, list));
    return lnt_report_count(
        im->report, "import",
        im->g->value[value].info.dtype == LNT_INT64 ? "outputs of text as numbers" : "maps as tensors", 1);
}
