/* normalize.c — English text as it is spoken. Rules are tried in turn at each token; those for numbers are in
 * amounts.c. */
#include "speech/normalize.h"

#include "base/lnt_assert.h"
#include "base/utf8.h"
#include "speech/amounts.h"
#include "speech/letters.h"

#include <string.h>

/* ---- tables ---- */

typedef enum abbreviation_kind {
    ANY,    /* with its point or without */
    POINT,  /* with its point only: without it is a word */
    NUMBER, /* before a number only */
    NAME    /* before a name; behind one it is the other word */
} abbreviation_kind;

static const struct {
    const char *written, *spoken, *other;
    abbreviation_kind kind;
} abbreviations[] = {
    /* clang-format off */
    {"mr", "mister", NULL, ANY}, {"mrs", "missus", NULL, ANY}, {"ms", "miz", NULL, ANY}, {"dr", "doctor", "drive", NAME},
    {"st", "saint", "street", NAME}, {"prof", "professor", NULL, POINT}, {"jr", "junior", NULL, ANY}, {"sr", "senior", NULL, ANY},
    {"rev", "reverend", NULL, POINT}, {"gen", "general", NULL, POINT}, {"capt", "captain", NULL, ANY}, {"sgt", "sergeant", NULL, ANY},
    {"lt", "lieutenant", NULL, POINT}, {"col", "colonel", NULL, POINT}, {"gov", "governor", NULL, POINT},
    {"sen", "senator", NULL, POINT}, {"rep", "representative", NULL, POINT}, {"vs", "versus", NULL, ANY}, {"etc", "et cetera", NULL, ANY},
    {"inc", "incorporated", NULL, POINT}, {"ltd", "limited", NULL, ANY}, {"co", "company", NULL, POINT},
    {"corp", "corporation", NULL, POINT}, {"dept", "department", NULL, ANY}, {"est", "established", NULL, POINT},
    {"approx", "approximately", NULL, ANY}, {"ave", "avenue", NULL, POINT}, {"blvd", "boulevard", NULL, ANY}, {"rd", "road", NULL, POINT},
    {"hwy", "highway", NULL, ANY}, {"apt", "apartment", NULL, POINT}, {"mt", "mount", NULL, POINT}, {"tel", "telephone", NULL, POINT},
    {"ext", "extension", NULL, POINT}, {"temp", "temperature", NULL, POINT}, {"max", "maximum", NULL, POINT},
    {"min", "minimum", NULL, POINT}, {"avg", "average", NULL, ANY}, {"misc", "miscellaneous", NULL, ANY}, {"incl", "including", NULL, ANY},
    {"no", "number", NULL, NUMBER}, {"nos", "numbers", NULL, NUMBER}, {"fig", "figure", NULL, NUMBER}, {"vol", "volume", NULL, NUMBER},
    {"ch", "chapter", NULL, NUMBER}, {"pp", "pages", NULL, NUMBER}, {"p", "page", NULL, NUMBER}, {"v", "version", NULL, NUMBER},
    {"mon", "monday", NULL, POINT}, {"tue", "tuesday", NULL, POINT}, {"tues", "tuesday", NULL, POINT}, {"wed", "wednesday", NULL, POINT},
    {"thu", "thursday", NULL, POINT}, {"thur", "thursday", NULL, POINT}, {"thurs", "thursday", NULL, POINT},
    {"fri", "friday", NULL, POINT}, {"sat", "saturday", NULL, POINT}, {"sun", "sunday", NULL, POINT},
    /* clang-format on */
};

/* Words that are neither spelled nor read as they are written. */
static const struct {
    const char *written, *spoken;
} exceptions[] = {{"phd", "P H D"}, {"ok", "okay"},      {"www", "W W W"},   {"tv", "T V"},
                  {"pc", "P C"},    {"id", "I D"},       {"wifi", "wi fi"},  {"ipv", "I P V"},
                  {"led", "L E D"}, {"http", "H T T P"}, {"html", "H T M L"}};

/* Short words that are no abbreviations in capital letters either. */
static const char *const common[] = {
    "a",   "i",   "am",  "an",  "as",  "at",  "be",  "by",  "do",  "go",  "he",  "if",  "in",  "is",
    "it",  "me",  "my",  "no",  "of",  "off", "on",  "or",  "so",  "to",  "up",  "us",  "we",  "add",
    "air", "all", "and", "any", "are", "bad", "big", "but", "can", "car", "day", "did", "dry", "due",
    "end", "eye", "fan", "far", "few", "for", "fun", "gas", "get", "got", "had", "has", "her", "him",
    "his", "hot", "how", "ice", "its", "key", "lid", "let", "lot", "low", "man", "map", "may", "men",
    "new", "not", "now", "oil", "old", "one", "our", "out", "own", "pay", "pin", "put", "ran", "red",
    "run", "saw", "say", "see", "set", "she", "sit", "six", "ten", "the", "tip", "too", "try", "two",
    "use", "via", "was", "way", "wet", "who", "why", "yes", "yet", "you", "zip"};

static const struct {
    uint32_t code;
    const char *spoken; /* NULL: a mark */
    char mark;
} symbols[] = {
    /* clang-format off */
    {'.', NULL, '.'}, {',', NULL, ','}, {'?', NULL, '?'}, {'!', NULL, '!'}, {':', NULL, ':'}, {';', NULL, ';'}, {'(', NULL, ','},
    {')', NULL, ','}, {'[', NULL, ','}, {']', NULL, ','}, {0x2026, NULL, '.'}, {0x2013, NULL, ','}, {0x2014, NULL, ','},
    {'&', "and", 0}, {'+', "plus", 0}, {'=', "equals", 0}, {'@', "at", 0}, {'%', "percent", 0}, {0xb0, "degrees", 0},
    {'<', "is less than", 0}, {'>', "is greater than", 0}, {'~', "about", 0}, {0x2248, "about", 0}, {0xb1, "plus or minus", 0},
    {0xd7, "times", 0}, {0xf7, "divided by", 0}, {'/', "slash", 0}, {0xa7, "section", 0}, {0x2192, "to", 0}, {'#', "hash", 0},
    {'$', "dollars", 0}, {0x20ac, "euros", 0}, {0xa3, "pounds", 0}, {0x2264, "at most", 0}, {0x2265, "at least", 0},
    {0xbd, "one half", 0}, {0xbc, "one quarter", 0}, {0xbe, "three quarters", 0}, {0x2153, "one third", 0}, {0x2154, "two thirds", 0},
    /* clang-format on */
};

/* ---- words ---- */

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_common(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        size_t k = 0;
        while (k < n && common[i][k] && (word[k] | 0x20) == common[i][k])
            k++;
        if (k == n && !common[i][k])
            return true;
    }
    return false;
}

static bool is_shouted(const lnt_token *t)
{
    size_t n = 0;
    while (n < t->bytes && is_upper(t->text[n]))
        n++;
    return t->kind == LNT_TOKEN_WORD && n == t->bytes && n > 3;
}

/* Does it belong to a name like "AT&T" or "A-1"? */
static bool is_in_name(const lnt_token *t)
{
    return (t[1].glued && (lnt_token_is(t + 1, '&') || t[1].kind == LNT_TOKEN_NUMBER)) ||
           (t->glued && lnt_token_is(t - 1, '&')) ||
           (t[1].glued && lnt_token_is(t + 1, '-') && t[2].kind == LNT_TOKEN_NUMBER);
}

/* Are the n capital letters at word, which is t or a part of it, spelled? */
static bool is_spelled(const lnt_token *t, const char *word, size_t n)
{
    bool vowel = false;
    for (size_t i = 0; i < n; i++)
        vowel |= strchr("AEIOUY", word[i]) != NULL;
    if (!vowel || (n < 3 && is_in_name(t)))
        return true;
    if (n > 3 || is_common(word, n))
        return false;
    return !is_shouted(t - 1) && !is_shouted(t + 1);
}

/* One letter in its ASCII form, small: marks fall away. */
static void speak_character(lnt_spoken_text *s, uint32_t code)
{
    static const struct {
        uint16_t code;
        char as[3];
    } pairs[] = {{0xe6, "ae"}, {0xf8, "o"},  {0xdf, "ss"}, {0x153, "oe"},
                 {0xf0, "th"}, {0xfe, "th"}, {0x142, "l"}, {0x111, "d"}};
    uint32_t part[LNT_DECOMPOSED_MOST];
    lnt_decompose(code, part);
    const uint32_t c = lnt_small_letter(part[0]);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].code == c)
            lnt_speak_on(s, pairs[i].as, strlen(pairs[i].as));
    if (c < 0x80)
        lnt_speak_on(s, (const char[]){(char)c}, 1);
    if (c == 0x2019)
        lnt_speak_on(s, "'", 1);
}

/* Letters as a word; one of letters that have no ASCII form is none. */
static void speak_small(lnt_spoken_text *s, const char *text, size_t bytes)
{
    const size_t before = s->n;
    lnt_speak(s, "");
    const size_t begin = s->n;
    for (size_t i = 0; i < bytes;) {
        const unsigned n = lnt_utf8_bytes(text + i);
        speak_character(s, lnt_utf8_code(text + i, n));
        i += n;
    }
    if (s->n == begin)
        s->n = before;
}

static void spell(lnt_spoken_text *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        lnt_speak_letter(s, text[i]);
}

static bool speak_exception(lnt_spoken_text *s, const lnt_token *t)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (lnt_token_reads(t, exceptions[i].written)) {
            lnt_speak(s, exceptions[i].spoken);
            return true;
        }
    return false;
}

/* Bytes of the part of a word that reaches to the next change from small to capital letters. */
static size_t part_of(const char *text, size_t bytes)
{
    size_t n = 1;
    if (bytes > 2 && text[0] == 'M' && text[1] == 'c')
        return bytes;
    while (n < bytes && !(is_lower(text[n - 1]) && is_upper(text[n])))
        n++;
    return n;
}

/* "'s" or "s" of what is spelled, or nothing. */
static bool is_plural_end(const char *text, size_t n)
{
    return n == 0 || (n == 1 && *text == 's') || (n == 2 && memcmp(text, "'s", 2) == 0) ||
           (n == 4 && memcmp(text, "’s", 4) == 0);
}

/* A part of a word: spelled if it is capital letters that are, else as it is. */
static void speak_part(lnt_spoken_text *s, const lnt_token *t, const char *text, size_t bytes)
{
    size_t upper = 0;
    while (upper < bytes && is_upper(text[upper]))
        upper++;
    const bool whole = text == t->text && bytes == t->bytes;
    const bool single =
        bytes == 1 && (is_upper(*text) || !whole) && (!is_common(text, 1) || !whole || is_in_name(t));
    if (single || (upper > 1 && is_plural_end(text + upper, bytes - upper) && is_spelled(t, text, upper))) {
        spell(s, text, single ? 1 : upper);
        if (!single && upper < bytes)
            lnt_speak_on(s, "'s", 2);
        return;
    }
    speak_small(s, text, bytes);
}

static size_t speak_word(lnt_spoken_text *s, const lnt_token *t)
{
    if (t->kind != LNT_TOKEN_WORD)
        return 0;
    if (speak_exception(s, t))
        return 1;
    for (size_t at = 0; at < t->bytes;) {
        const size_t n = part_of(t->text + at, t->bytes - at);
        speak_part(s, t, t->text + at, n);
        at += n;
    }
    return 1;
}

/* ---- abbreviations ---- */

/* A point behind the abbreviation at t: taken with it. It may be the sentence's end as well. */
static size_t take_point(lnt_spoken_text *s, const lnt_token *t, bool may_end)
{
    if (!lnt_token_is(t + 1, '.') || !t[1].glued)
        return 1;
    if (t[2].kind == LNT_TOKEN_END || t[2].line || (may_end && lnt_begins_sentence(t + 2)))
        lnt_speak_mark(s, '.');
    return 2;
}

static bool has_point(const lnt_token *t)
{
    return lnt_token_is(t + 1, '.') && t[1].glued;
}

static bool is_meant(const lnt_token *t, abbreviation_kind kind)
{
    const lnt_token *next = t + 1 + has_point(t);
    switch (kind) {
    case ANY: return true;
    case POINT: return has_point(t) && (!t[2].glued || t[2].kind != LNT_TOKEN_WORD);
    case NUMBER: return next->kind == LNT_TOKEN_NUMBER || next->kind == LNT_TOKEN_DOTTED;
    case NAME: return lnt_token_is_capital(t) || has_point(t);
    }
    return false;
}

static size_t speak_abbreviation(lnt_spoken_text *s, const lnt_token *t)
{
    for (size_t i = 0; i < sizeof abbreviations / sizeof *abbreviations; i++) {
        if (!lnt_token_reads(t, abbreviations[i].written) || !is_meant(t, abbreviations[i].kind))
            continue;
        const bool title = i < 4 || (t[1].kind == LNT_TOKEN_SYMBOL && lnt_token_is_capital(t) &&
                                     abbreviations[i].kind == POINT);
        const bool behind_name = abbreviations[i].kind == NAME && lnt_token_is_capital(t - 1);
        lnt_speak(s, behind_name ? abbreviations[i].other : abbreviations[i].spoken);
        return take_point(s, t,
                          behind_name ||
                              (!title && abbreviations[i].kind != NUMBER && abbreviations[i].kind != NAME));
    }
    return 0;
}

static size_t speak_latin(lnt_spoken_text *s, const lnt_token *t)
{
    static const struct {
        const char *first, *second, *spoken;
    } pairs[] = {{"e", "g", "for example"}, {"i", "e", "that is"}};
    for (size_t i = 0; i < 2; i++)
        if (lnt_token_reads(t, pairs[i].first) && has_point(t) && lnt_token_reads(t + 2, pairs[i].second) &&
            t[2].glued && has_point(t + 2)) {
            lnt_speak(s, pairs[i].spoken);
            return 4;
        }
    return 0;
}

/* "U.S.A.", "J. Smith", "Ph.D." */
static size_t speak_initials(lnt_spoken_text *s, const lnt_token *t)
{
    size_t n = 0;
    while (t[n].kind == LNT_TOKEN_WORD && (t[n].bytes == 1 || (n == 0 && lnt_token_reads(t, "ph"))) &&
           is_upper(*t[n].text) && has_point(t + n) && (n == 0 || t[n].glued))
        n += 2;
    if (n == 0 || (n == 2 && !lnt_token_is_capital(t + 2)) || (n == 2 && t->bytes > 1))
        return 0;
    for (size_t i = 0; i < n; i += 2)
        spell(s, t[i].text, t[i].bytes);
    if (n > 2 && (lnt_begins_sentence(t + n) && (t[n].kind == LNT_TOKEN_END || t[n].line)))
        lnt_speak_mark(s, '.');
    return n;
}

static size_t speak_half_day(lnt_spoken_text *s, const lnt_token *t)
{
    bool pointed;
    if (t->kind != LNT_TOKEN_WORD || lnt_token_reads(t, "am"))
        return 0;
    const size_t n = lnt_speak_half_day(s, t, &pointed);
    if (pointed && lnt_begins_sentence(t + n))
        lnt_speak_mark(s, '.');
    return n;
}

/* ---- Roman numbers ---- */

/* What canonical Roman digits of I, V and X come to; 0 if t is none. */
static unsigned roman(const lnt_token *t)
{
    static const char *const ones[] = {"", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"};
    unsigned tens = 0;
    if (t->kind != LNT_TOKEN_WORD)
        return 0;
    while (tens < 3 && tens < t->bytes && t->text[tens] == 'X')
        tens++;
    for (unsigned k = 0; k < 10; k++)
        if (strlen(ones[k]) == t->bytes - tens && memcmp(ones[k], t->text + tens, t->bytes - tens) == 0)
            return 10 * tens + k;
    return 0;
}

static size_t speak_roman(lnt_spoken_text *s, const lnt_token *t)
{
    static const char *const counted[] = {"chapter",  "part",    "war",   "volume", "section", "act",
                                          "phase",    "type",    "class", "book",   "level",   "step",
                                          "appendix", "article", "mark",  "stage"};
    const unsigned n = roman(t);
    if (!n)
        return 0;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (lnt_token_reads(t - 1, counted[i])) {
            lnt_speak_cardinal(s, n);
            return 1;
        }
    if (t->bytes < 2 || !lnt_token_is_capital(t - 1) || is_upper(t[-1].text[t[-1].bytes - 1]))
        return 0;
    lnt_speak(s, "the");
    lnt_speak_ordinal(s, n);
    return 1;
}

/* ---- symbols ---- */

static bool is_number(const lnt_token *t)
{
    return t->kind == LNT_TOKEN_NUMBER || t->kind == LNT_TOKEN_DOTTED;
}

static size_t speak_scheme(lnt_spoken_text *s, const lnt_token *t)
{
    (void)s;
    return (lnt_token_reads(t, "http") || lnt_token_reads(t, "https")) && lnt_token_is(t + 1, ':') &&
                   lnt_token_is(t + 2, '/') && lnt_token_is(t + 3, '/')
               ? 4
               : 0;
}

/* A hyphen or dash: "to" between numbers, "minus" before one, a pause between words, nothing within one. */
static size_t speak_dash(lnt_spoken_text *s, const lnt_token *t)
{
    const bool hyphen = lnt_token_is(t, '-'), dash = lnt_token_is(t, 0x2013), minus = lnt_token_is(t, 0x2212);
    if (!hyphen && !dash && !minus)
        return 0;
    const bool before_number = is_number(t + 1) && t[1].glued;
    const bool money = t[1].kind == LNT_TOKEN_SYMBOL && t[1].glued && is_number(t + 2);
    if (hyphen && !t->glued && is_number(t - 1) && is_number(t + 1) && !t[1].glued)
        lnt_speak(s, "to");
    else if (t->glued && before_number && !minus && (dash || is_number(t - 1) || lnt_token_is(t - 1, '%')))
        lnt_speak(s, "to");
    else if ((hyphen || minus) && (before_number || money) && (!t->glued || t[-1].kind == LNT_TOKEN_SYMBOL))
        lnt_speak(s, "minus");
    else if (minus)
        lnt_speak(s, "minus");
    else if (!t->glued || dash)
        lnt_speak_mark(s, ',');
    return 1;
}

/* Between numbers, where that is no fraction or date; in "and/or" nothing. */
static size_t speak_slash(lnt_spoken_text *s, const lnt_token *t)
{
    if (!lnt_token_is(t, '/') || !t->glued || !t[1].glued)
        return 0;
    if (lnt_token_reads(t - 1, "and") && lnt_token_reads(t + 1, "or"))
        return 1;
    if (!is_number(t - 1) || !is_number(t + 1))
        return 0;
    if (strncmp(t[-1].text, "24/7", 4) != 0)
        lnt_speak(s, "over");
    return 1;
}

static size_t speak_number_sign(lnt_spoken_text *s, const lnt_token *t)
{
    if (!lnt_token_is(t, '#') || !is_number(t + 1))
        return 0;
    lnt_speak(s, "number");
    return 1;
}

/* ".com": the point within a name. */
static size_t speak_dot(lnt_spoken_text *s, const lnt_token *t)
{
    if (!lnt_token_is(t, '.') || !t->glued || !t[1].glued || t[1].kind != LNT_TOKEN_WORD ||
        lnt_token_is_capital(t + 1))
        return 0;
    lnt_speak(s, "dot");
    return 1;
}

/* ½ and its kin behind a number. */
static size_t speak_and_a_half(lnt_spoken_text *s, const lnt_token *t)
{
    const bool half = lnt_token_is(t, 0xbd), quarter = lnt_token_is(t, 0xbc), three = lnt_token_is(t, 0xbe);
    if (!is_number(t - 1) || !(half || quarter || three))
        return 0;
    lnt_speak(s, half ? "and a half" : quarter ? "and a quarter" : "and three quarters");
    return 1;
}

static size_t speak_symbol(lnt_spoken_text *s, const lnt_token *t)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (!lnt_token_is(t, symbols[i].code))
            continue;
        if (symbols[i].spoken)
            lnt_speak(s, symbols[i].spoken);
        else if (!(t->code == ':' && t->glued && t[1].glued))
            lnt_speak_mark(s, symbols[i].mark);
        break;
    }
    return 1;
}

/* ---- all ---- */

static size_t speak_token(lnt_spoken_text *s, const lnt_token *t)
{
    static size_t (*const rules[])(lnt_spoken_text *, const lnt_token *) = {
        lnt_speak_amount, lnt_speak_money, speak_scheme,       lnt_speak_month, speak_latin,
        speak_half_day,   speak_initials,  speak_abbreviation, speak_roman,     speak_word,
        speak_dash,       speak_slash,     speak_number_sign,  speak_dot,       speak_and_a_half,
    };
    size_t n = 0;
    for (size_t i = 0; !n && i < sizeof rules / sizeof *rules; i++)
        n = rules[i](s, t);
    LNT_ASSERT(n || t->kind == LNT_TOKEN_SYMBOL);
    return n ? n : speak_symbol(s, t);
}

lnt_status lnt_normalize(const char *text, lnt_bump *memory, const char **words, lnt_error *err)
{
    lnt_spoken_text s = {.err = err};
    lnt_token *token;
    size_t n;
    LNT_TRY(lnt_check_text(text, err));
    LNT_TRY(lnt_tokens_split(text, strlen(text), memory, &token, &n, err));
    for (size_t i = 0; i < n && s.status == LNT_OK;) {
        if (token[i].line)
            lnt_speak_mark(&s, '.');
        i += speak_token(&s, &token[i]);
    }
    s.n -= s.n && s.text[s.n - 1] == ',';
    *words = s.status == LNT_OK ? lnt_bump_string(memory, s.n ? s.text : "", s.n, err) : NULL;
    lnt_free(&lnt_malloc_allocator, s.text);
    return *words ? LNT_OK : s.status != LNT_OK ? s.status : LNT_E_MEMORY;
}
