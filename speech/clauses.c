/* clauses.c — where espeak-ng ends clauses of a text. Its rules were found by experiment with espeak-ng 1.51; tests
 * hold them against its library. */
#include "speech/clauses.h"

#include "base/lnt_assert.h"
#include "base/utf8.h"
#include "speech/letters.h"

#include <string.h>

typedef struct mark {
    uint16_t code;
    char written;  /* the mark of the clause; 0: none */
    bool ends;     /* the sentence, too */
    bool anywhere; /* also where no blank is behind it */
} mark;

/* clang-format off */
static const mark marks[] = {
    {'.', '.', true, false},    {'?', '?', true, false},    {'!', '!', true, false},    {',', ',', false, false},
    {':', ':', false, false},   {';', ';', false, false},   {0x00a1, 0, false, true},   {0x00bf, 0, false, true},
    {0x037e, '?', true, false}, {0x0387, ';', false, false},{0x055d, ',', false, false},{0x0589, 0, true, true},
    {0x060c, ',', false, false},{0x061b, ';', false, false},{0x061f, '?', true, false}, {0x06d4, '.', true, false},
    {0x0964, 0, true, true},    {0x0965, 0, true, false},   {0x0df4, 0, true, true},    {0x0f0d, 0, true, true},
    {0x10fb, 0, true, false},   {0x1362, '.', true, false}, {0x1363, ',', false, false},{0x1364, ';', false, false},
    {0x1365, ':', false, false},{0x1366, ':', false, false},{0x1367, '?', true, false}, {0x1368, 0, true, false},
    {0x2013, ';', false, false},{0x2014, ';', false, false},{0x2026, 0, false, true},   {0x203c, '!', true, false},
    {0x2047, '?', true, false}, {0x3001, 0, false, true},   {0x3002, 0, true, true},    {0xff01, 0, true, true},
    {0xff0c, 0, false, true},   {0xff0e, 0, true, true},    {0xff1a, 0, false, true},   {0xff1b, 0, false, true},
    {0xff1f, 0, true, true},    {0xff61, '.', true, false}, {0xff64, ',', false, false},
};
/* clang-format on */
static const mark ellipsis = {'.', 0, false, true};

typedef struct splitter {
    const char *text; /* a NUL ends it */
    size_t begin;     /* of the present clause */
    bool spoken;      /* it has a letter or digit */
    lnt_clause *clause;
    size_t n, capacity;
    lnt_bump *memory;
    lnt_error *err;
} splitter;

static uint32_t code_at(const splitter *s, size_t at)
{
    const unsigned n = lnt_utf8_bytes(s->text + at);
    LNT_ASSERT(n);
    return lnt_utf8_code(s->text + at, n);
}

static bool is_blank(char c)
{
    return c && strchr(" \t\r\n\v\f", c);
}

static bool is_bracket(uint32_t c)
{
    return (c && c < 0x80 && strchr("()[]{}<>\"'`", (int)c)) || c == 0xab || c == 0xbb ||
           (c >= 0x2018 && c <= 0x201f) || c == 0x300a || c == 0x300b;
}

static bool is_spoken(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    return c >= 0xc0 && (c < 0x2000 || c > 0x206f) && (c < 0x3000 || c > 0x3030) &&
           (c < 0xff01 || c > 0xff0f);
}

static const mark *mark_of(uint32_t c)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i].code == c)
            return &marks[i];
    return NULL;
}

static size_t skip(const splitter *s, size_t at, const char *set)
{
    return at + strspn(s->text + at, set);
}

/* Marks behind a mark: the first counts. */
static size_t skip_marks(const splitter *s, size_t at)
{
    for (const mark *m; s->text[at] && (m = mark_of(code_at(s, at))) != NULL && !m->anywhere;)
        at += lnt_utf8_bytes(s->text + at);
    return at;
}

static size_t skip_brackets(const splitter *s, size_t at)
{
    while (s->text[at] && is_bracket(code_at(s, at)))
        at += lnt_utf8_bytes(s->text + at);
    return at;
}

/* Lines that end in the blanks at `at`. */
static unsigned lines_at(const splitter *s, size_t at)
{
    unsigned n = 0;
    for (; is_blank(s->text[at]); at++)
        n += s->text[at] == '\n';
    return n;
}

/* The point of an abbreviation: what comes next on the line is a small letter. */
static bool abbreviates(const splitter *s, size_t behind)
{
    const size_t next = skip(s, behind, " \t\r");
    return next > behind && s->text[next] && lnt_is_small_letter(code_at(s, next));
}

/* Is a mark whose run of marks ends before `behind` followed by what lets it end the clause? */
static bool stands_free(const splitter *s, const mark *m, size_t behind)
{
    const char next = s->text[behind];
    if (m->anywhere || !next)
        return true;
    if (next == '\'' && is_spoken(code_at(s, behind + 1)))
        return false;
    if (is_blank(next))
        return m->code != '.' || !abbreviates(s, behind);
    return is_bracket(code_at(s, behind));
}

static lnt_status end_clause(splitter *s, size_t end, char written, bool ends)
{
    const size_t begin = skip(s, s->begin, " \t\r\n\v\f");
    if (begin < end) {
        lnt_clause *room = s->clause;
        if (s->n == s->capacity) {
            s->capacity = s->capacity ? 2 * s->capacity : 16;
            room = lnt_bump_alloc(s->memory, s->capacity * sizeof *room, s->err);
            if (!room)
                return LNT_E_MEMORY;
            if (s->n)
                memcpy(room, s->clause, s->n * sizeof *room);
            s->clause = room;
        }
        room[s->n++] = (lnt_clause){s->text + begin, end - begin, written, ends};
    }
    s->begin = end;
    s->spoken = false;
    return LNT_OK;
}

/* m, n bytes long, at *at, which moves behind what was looked at. */
static lnt_status take_mark(splitter *s, const mark *m, unsigned n, size_t *at)
{
    size_t behind = m->anywhere ? *at + n : skip_marks(s, *at + n);
    if (m->code == '.' && strncmp(s->text + *at, "...", 3) == 0) {
        m = &ellipsis;
        behind = skip(s, *at, ".");
    }
    *at = behind;
    if (!s->spoken || !stands_free(s, m, behind))
        return LNT_OK;
    *at = skip_brackets(s, behind);
    const bool paragraph = lines_at(s, *at) > 1;
    return end_clause(s, *at, paragraph ? '\0' : m->written, paragraph || m->ends);
}

lnt_status lnt_clauses_split(const char *text, size_t bytes, lnt_bump *memory, lnt_clause **clauses,
                             size_t *n, lnt_error *err)
{
    splitter s = {.text = text, .memory = memory, .err = err};
    for (size_t at = 0; at < bytes;) {
        const unsigned length = lnt_utf8_bytes(text + at);
        const mark *m = mark_of(code_at(&s, at));
        if (m) {
            LNT_TRY(take_mark(&s, m, length, &at));
            continue;
        }
        if (lines_at(&s, at) > 1 && s.spoken)
            LNT_TRY(end_clause(&s, at, '\0', true));
        s.spoken |= is_spoken(code_at(&s, at));
        at += length;
    }
    LNT_TRY(end_clause(&s, bytes, '\0', false));
    *clauses = s.clause;
    *n = s.n;
    return LNT_OK;
}
