/* lexicon.c — words to phonemes: entries of a file, endings, and trees for the rest. */
#include "speech/lexicon.h"

#include "base/lnt_assert.h"
#include "formats/hash.h"

#include <string.h>

/* ---- the file ---- */

enum { VERSION = 1, HEAD_BYTES = 64, HASH_BYTES = 8, BUCKETS_MOST = 20 };

static uint64_t number_at(const uint8_t *at, unsigned bytes)
{
    uint64_t n = 0;
    for (unsigned i = bytes; i-- > 0;)
        n = n << 8 | at[i];
    return n;
}

/* A part that begins at *at and moves it behind its end. */
static const uint8_t *take(const uint8_t **at, size_t bytes)
{
    const uint8_t *part = *at;
    *at += bytes;
    return part;
}

static uint32_t bucket_at(const lnt_lexicon_file *f, size_t i)
{
    return (uint32_t)number_at(f->bucket + 4 * i, 4);
}

/* Numbers of the head. */
typedef struct head {
    uint32_t n_classes, n_ranks, node_bytes;
} head;

static lnt_status read_head(const uint8_t *data, size_t bytes, head *h, lnt_lexicon_file *f, lnt_error *err)
{
    static const uint8_t magic[8] = {0x89, 'L', 'E', 'X', '\r', '\n', 0x1a, '\n'};
    LNT_REQUIRE(bytes >= HEAD_BYTES + HASH_BYTES && memcmp(data, magic, sizeof magic) == 0, err, LNT_E_FILE,
                "lexicon: not a lexicon's file");
    LNT_REQUIRE(number_at(data + 8, 4) == VERSION, err, LNT_E_FILE,
                "lexicon: version %u, this build reads %d: make it again", (unsigned)number_at(data + 8, 4),
                VERSION);
    LNT_REQUIRE(number_at(data + bytes - HASH_BYTES, 8) == lnt_hash(data, bytes - HASH_BYTES), err,
                LNT_E_FILE, "lexicon: damaged (hash differs)");
    h->n_classes = (uint32_t)number_at(data + 12, 4);
    h->n_ranks = (uint32_t)number_at(data + 16, 4);
    f->log_buckets = (uint32_t)number_at(data + 20, 4);
    h->node_bytes = (uint32_t)number_at(data + 24, 4);
    f->entry_bytes = (uint32_t)number_at(data + 28, 4);
    f->n_entries = (uint32_t)number_at(data + 32, 4);
    f->salt = number_at(data + 36, 8);
    LNT_REQUIRE(h->n_classes >= 1 && h->n_classes <= 128 && h->n_ranks <= UINT16_MAX &&
                    f->log_buckets <= BUCKETS_MOST && f->entry_bytes <= UINT32_MAX / 8,
                err, LNT_E_FILE, "lexicon: more classes, ranks, buckets or entries than there may be");
    const uint64_t expected = HEAD_BYTES + 4 * (LNT_LETTERS + (1ull << f->log_buckets) + 1) +
                              2 * (LNT_LETTERS + 1) + 2 * h->n_classes + h->n_ranks +
                              (uint64_t)h->node_bytes + f->entry_bytes + HASH_BYTES;
    LNT_REQUIRE(expected == bytes, err, LNT_E_FILE, "lexicon: has %zu bytes, its head says other", bytes);
    return LNT_OK;
}

static lnt_status check_letters(const lnt_lexicon_file *f, const head *h, lnt_error *err)
{
    for (unsigned i = 0; i < LNT_LETTERS; i++)
        LNT_REQUIRE(f->trees.root[i] < f->trees.bytes && f->first_rank[i] <= f->first_rank[i + 1], err,
                    LNT_E_FILE, "lexicon: letter %u has no tree, or its ranks are out of order", i);
    LNT_REQUIRE(f->first_rank[0] == 0 && f->first_rank[LNT_LETTERS] == h->n_ranks, err, LNT_E_FILE,
                "lexicon: ranks that belong to no letter");
    for (uint32_t i = 0; i < h->n_ranks; i++)
        LNT_REQUIRE(f->rank[i] < h->n_classes, err, LNT_E_FILE, "lexicon: rank %u is of no class", i);
    return LNT_OK;
}

static lnt_status check_classes(const lnt_trees *t, lnt_error *err)
{
    for (uint32_t i = 0; i < t->n_classes; i++) {
        const uint8_t *s = t->sounds[i];
        LNT_REQUIRE((!s[0] && !s[1]) || (lnt_phone_valid(s[0]) && (!s[1] || lnt_phone_valid(s[1]))), err,
                    LNT_E_FILE, "lexicon: class %u has no phonemes of English", i);
    }
    return LNT_OK;
}

static lnt_status check_buckets(const lnt_lexicon_file *f, lnt_error *err)
{
    const size_t n = (size_t)1 << f->log_buckets;
    for (size_t i = 0; i < n; i++)
        LNT_REQUIRE(bucket_at(f, i) <= bucket_at(f, i + 1), err, LNT_E_FILE,
                    "lexicon: bucket %zu is out of order", i);
    LNT_REQUIRE(bucket_at(f, n) <= 8 * f->entry_bytes, err, LNT_E_FILE, "lexicon: entries past the end");
    return LNT_OK;
}

lnt_status lnt_lexicon_read(const void *data, size_t bytes, lnt_lexicon_file *f, lnt_error *err)
{
    head h = {0};
    *f = (lnt_lexicon_file){0};
    LNT_TRY(read_head(data, bytes, &h, f, err));
    const uint8_t *at = (const uint8_t *)data + HEAD_BYTES;
    for (unsigned i = 0; i < LNT_LETTERS; i++)
        f->trees.root[i] = (uint32_t)number_at(take(&at, 4), 4);
    f->bucket = take(&at, 4 * (((size_t)1 << f->log_buckets) + 1));
    for (unsigned i = 0; i <= LNT_LETTERS; i++)
        f->first_rank[i] = (uint16_t)number_at(take(&at, 2), 2);
    f->trees.sounds = (const uint8_t(*)[2])take(&at, 2 * h.n_classes);
    f->trees.n_classes = h.n_classes;
    f->rank = take(&at, h.n_ranks);
    f->trees.node = take(&at, h.node_bytes);
    f->trees.bytes = h.node_bytes;
    f->entry = take(&at, f->entry_bytes);
    LNT_TRY(check_letters(f, &h, err));
    LNT_TRY(check_classes(&f->trees, err));
    return check_buckets(f, err);
}

/* ---- entries ---- */

/* Bits [at, end) of bytes, highest first. What lies behind the end is 0, and a fault. */
typedef struct bits {
    const uint8_t *bytes;
    size_t at, end;
    bool fault;
} bits;

static uint32_t read_bits(bits *b, unsigned n)
{
    uint32_t value = 0;
    b->fault |= n > b->end - b->at;
    for (; n > 0 && !b->fault; n--, b->at++)
        value = value << 1 | (b->bytes[b->at / 8] >> (7 - b->at % 8) & 1);
    return value;
}

/* An Exp-Golomb code of order k. */
static uint32_t read_number(bits *b, unsigned k)
{
    enum { ZEROS_MOST = 16 };
    unsigned zeros = 0;
    while (!read_bits(b, 1) && !b->fault)
        b->fault |= ++zeros > ZEROS_MOST;
    const uint32_t high = ((1u << (b->fault ? 0 : zeros)) | read_bits(b, zeros)) - 1;
    return high << k | read_bits(b, k);
}

/* What stands behind an entry's key: a number of corrections less 1, and their places and ranks; or one of these. */
enum { RAW = 30, AS_GROWN = 31 };
enum { KEY_BITS = 18, COUNT_ORDER = 0, GAP_ORDER = 1, RANK_ORDER = 1, RAW_ORDER = 3, SYMBOL_BITS = 8 };

static void skip_entry(bits *b)
{
    const uint32_t n = read_number(b, COUNT_ORDER);
    if (n == RAW) {
        for (uint32_t left = read_number(b, RAW_ORDER); left > 0 && !b->fault; left--)
            read_bits(b, SYMBOL_BITS);
        return;
    }
    for (uint32_t left = n < RAW ? n + 1 : 0; left > 0 && !b->fault; left--) {
        read_number(b, GAP_ORDER);
        read_number(b, RANK_ORDER);
    }
}

/* Moves b behind the key of the word's entry, if it has one. */
static bool find_entry(const lnt_lexicon_file *f, const char *word, size_t bytes, bits *b)
{
    const uint64_t key = lnt_hash(word, bytes) * f->salt;
    const size_t bucket = f->log_buckets ? (size_t)(key >> (64 - f->log_buckets)) : 0;
    *b = (bits){.bytes = f->entry, .at = bucket_at(f, bucket), .end = bucket_at(f, bucket + 1)};
    const uint32_t low = (uint32_t)(key >> (64 - KEY_BITS - f->log_buckets)) & ((1u << KEY_BITS) - 1);
    while (b->at < b->end) {
        if (read_bits(b, KEY_BITS) == low && !b->fault)
            return true;
        skip_entry(b);
        if (b->fault)
            break;
    }
    return false;
}

static bool add_raw(bits *b, lnt_phone_list *to)
{
    for (uint32_t left = read_number(b, RAW_ORDER); left > 0 && !b->fault; left--) {
        const uint8_t symbol = (uint8_t)read_bits(b, SYMBOL_BITS);
        if (b->fault || !lnt_phone_valid(symbol))
            return false;
        lnt_phones_add(to, symbol);
    }
    return !b->fault;
}

/* The class that the next correction has for the letter; -1: it has none. */
static int read_rank(const lnt_lexicon_file *f, char letter, bits *b)
{
    const int k = lnt_letter_number(letter);
    const size_t at = f->first_rank[k] + (size_t)read_number(b, RANK_ORDER);
    return !b->fault && at < f->first_rank[k + 1] ? f->rank[at] : -1;
}

/* The word by trees, but for the letters that n corrections say other of. false: they do not fit the word. */
static bool add_corrected(const lnt_lexicon_file *f, const char *word, size_t bytes, uint32_t n, bits *b,
                          lnt_phone_list *to)
{
    lnt_letter_walk walk = lnt_letter_walk_begin(word, bytes);
    size_t next = n ? read_number(b, GAP_ORDER) : bytes;
    while (walk.at < bytes) {
        int c;
        if (n && walk.at == next) {
            c = read_rank(f, word[walk.at], b);
            next = --n ? walk.at + 1 + read_number(b, GAP_ORDER) : bytes;
        } else {
            c = lnt_letter_class(&f->trees, &walk);
        }
        if (c < 0)
            return false;
        lnt_letter_take(&f->trees, &walk, (unsigned)c, to);
    }
    return !n && !b->fault;
}

bool lnt_lexicon_entry(const lnt_lexicon_file *f, const char *word, size_t bytes, lnt_phone_list *to)
{
    bits b;
    const size_t before = to->n;
    if (bytes > LNT_LEXICON_WORD_MOST || !find_entry(f, word, bytes, &b))
        return false;
    const uint32_t n = read_number(&b, COUNT_ORDER);
    if (n == RAW ? add_raw(&b, to) : add_corrected(f, word, bytes, n < RAW ? n + 1 : 0, &b, to))
        return true;
    to->n = before;
    return false;
}

/* ---- endings ---- */

typedef enum ending_kind { AS_IT_IS, PLURAL, PAST } ending_kind;

/* Of a word's end, what its stem has in place of that, and what it sounds like. Of the first ALWAYS every word is taken
 * apart, of the others those whose stem has an entry. */
static const struct {
    const char *end, *stem;
    ending_kind kind;
    const char *phones;
} endings[] = {
    /* clang-format off */
    {"'s", "", PLURAL, ""}, {"s'", "s", AS_IT_IS, ""},
    {"s", "", PLURAL, ""}, {"es", "", PLURAL, ""}, {"ies", "y", PLURAL, ""}, {"ed", "", PAST, ""}, {"ed", "e", PAST, ""},
    {"ied", "y", PAST, ""}, {"ing", "", AS_IT_IS, "IH0 NG"}, {"ing", "e", AS_IT_IS, "IH0 NG"}, {"ly", "", AS_IT_IS, "L IY0"},
    {"er", "", AS_IT_IS, "ER0"}, {"er", "e", AS_IT_IS, "ER0"}, {"ers", "", AS_IT_IS, "ER0 Z"}, {"ers", "e", AS_IT_IS, "ER0 Z"},
    {"ness", "", AS_IT_IS, "N AH0 S"}, {"less", "", AS_IT_IS, "L AH0 S"}, {"man", "", AS_IT_IS, "M AH0 N"},
    {"son", "", AS_IT_IS, "S AH0 N"}, {"ton", "", AS_IT_IS, "T AH0 N"}, {"ville", "", AS_IT_IS, "V IH2 L"},
    /* clang-format on */
};
enum { ALWAYS = 2, STEM_LEAST = 2, KNOWN_STEM_LEAST = 3 };

/* Is the symbol one of these names, which have blanks around them? */
static bool is_one_of(uint8_t symbol, const char *names)
{
    char name[LNT_PHONE_NAME_MOST + 3] = " ";
    const size_t n = lnt_phone_name(symbol, name + 1);
    memcpy(name + 1 + n, " ", 2);
    return strstr(names, name) != NULL;
}

static const char *sound_of(ending_kind kind, const char *phones, uint8_t last)
{
    static const char hissing[] = " S Z SH CH JH ZH ", unvoiced[] = " P T K F TH S SH CH ";
    if (kind == PLURAL)
        return is_one_of(last, hissing) ? "AH0 Z" : is_one_of(last, unvoiced) ? "S" : "Z";
    if (kind == PAST)
        return is_one_of(last, " T D ") ? "AH0 D" : is_one_of(last, unvoiced) ? "T" : "D";
    return phones;
}

/* The word by the stem that remains without ending k. */
static bool add_stem(const lnt_lexicon_file *f, const char *word, size_t bytes, size_t k, lnt_phone_list *to)
{
    char stem[LNT_LEXICON_WORD_MOST + 1];
    const size_t end = strlen(endings[k].end), put = strlen(endings[k].stem), before = to->n;
    const size_t n = bytes - end + put;
    if (n < (k < ALWAYS ? STEM_LEAST : KNOWN_STEM_LEAST))
        return false;
    memcpy(stem, word, bytes - end);
    memcpy(stem + bytes - end, endings[k].stem, put);
    if (k < ALWAYS)
        lnt_lexicon_word(f, stem, n, to);
    else
        (void)lnt_lexicon_entry(f, stem, n, to);
    if (to->status != LNT_OK || to->n == before)
        return false;
    lnt_phones_add_names(to, sound_of(endings[k].kind, endings[k].phones, to->symbol[to->n - 1]));
    return true;
}

static bool ends_with(const char *word, size_t bytes, const char *end)
{
    const size_t n = strlen(end);
    return bytes >= n && memcmp(word + bytes - n, end, n) == 0;
}

static bool add_derived(const lnt_lexicon_file *f, const char *word, size_t bytes, lnt_phone_list *to)
{
    if (bytes > LNT_LEXICON_WORD_MOST)
        return false;
    for (size_t k = 0; k < sizeof endings / sizeof *endings; k++)
        if (ends_with(word, bytes, endings[k].end) && !(k >= ALWAYS && ends_with(word, bytes, "ss")) &&
            add_stem(f, word, bytes, k, to))
            return true;
    return false;
}

/* ---- words ---- */

/* A word has one primary stress at least: what has the second one, or else its first vowel. */
static void stress(uint8_t *symbol, size_t n)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        const int s = lnt_phone_stress(symbol[i]);
        if (s == 1)
            return;
        if (s >= 0 && (best == n || (s == 2 && lnt_phone_stress(symbol[best]) == 0)))
            best = i;
    }
    if (best < n)
        symbol[best] = (uint8_t)((symbol[best] & ~3u) | 2);
}

/* A letter whose tree is damaged is silent. */
static void add_grown(const lnt_lexicon_file *f, const char *word, size_t bytes, lnt_phone_list *to)
{
    const size_t before = to->n;
    lnt_letter_walk walk = lnt_letter_walk_begin(word, bytes);
    while (walk.at < bytes) {
        const int c = lnt_letter_class(&f->trees, &walk);
        lnt_letter_take(&f->trees, &walk, c < 0 ? 0 : (unsigned)c, to);
    }
    if (to->status == LNT_OK && to->n > before)
        stress(to->symbol + before, to->n - before);
}

void lnt_lexicon_word(const lnt_lexicon_file *f, const char *word, size_t bytes, lnt_phone_list *to)
{
    if (!lnt_lexicon_entry(f, word, bytes, to) && !add_derived(f, word, bytes, to))
        add_grown(f, word, bytes, to);
}
