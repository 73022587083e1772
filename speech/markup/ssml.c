/* ssml.c — pauses, rate, pitch and volume within a text. */
#include "speech/markup/ssml.h"

#include "base/lnt_assert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16 /* elements within each other */, NAME = 32 };

typedef struct level {
    char element[NAME];
    float rate, volume, pitch;
} level;

typedef struct reader {
    const char *at;
    lnt_ssml_run *run;
    char *to; /* where characters of the present run go */
    size_t n;
    level stack[DEPTH]; /* [0] is outside of all */
    unsigned depth;
    lnt_error *err;
} reader;

/* A tag: <element name="value" …>, </element> or <element …/>. */
typedef struct tag {
    char element[NAME];
    bool closes, empty;
    char name[4][NAME], value[4][NAME];
    unsigned n;
} tag;

/* ---- characters ---- */

static void skip_blanks(reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

/* A name, or what is between quotes. */
static lnt_status take_word(reader *r, const char *until, const char *what, char to[NAME])
{
    const size_t n = strcspn(r->at, until);
    LNT_REQUIRE(n && n < NAME, r->err, LNT_E_VALUE, "SSML: %s is missing or too long at '%.20s'", what,
                r->at);
    memcpy(to, r->at, n);
    to[n] = '\0';
    r->at += n;
    return LNT_OK;
}

/* &amp; and the like; anything else behind an & is text. */
static char take_entity(reader *r)
{
    static const struct {
        const char *name;
        char means;
    } entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (strncmp(r->at, entities[i].name, strlen(entities[i].name)) == 0) {
            r->at += strlen(entities[i].name);
            return entities[i].means;
        }
    return *r->at++;
}

/* ---- tags ---- */

static lnt_status take_attribute(reader *r, tag *t)
{
    LNT_REQUIRE(t->n < sizeof t->name / sizeof *t->name, r->err, LNT_E_VALUE,
                "SSML: <%s> has too many attributes", t->element);
    LNT_TRY(take_word(r, "= \t\r\n/>\"'", "the name of an attribute", t->name[t->n]));
    skip_blanks(r);
    LNT_REQUIRE(*r->at == '=', r->err, LNT_E_VALUE, "SSML: %s of <%s> has no value", t->name[t->n],
                t->element);
    r->at++;
    skip_blanks(r);
    const char quote[2] = {*r->at, '\0'};
    LNT_REQUIRE(*quote == '"' || *quote == '\'', r->err, LNT_E_VALUE,
                "SSML: the value of %s stands in quotes", t->name[t->n]);
    r->at++;
    LNT_TRY(take_word(r, quote, "a value", t->value[t->n]));
    LNT_REQUIRE(*r->at == *quote, r->err, LNT_E_VALUE, "SSML: the value of %s does not end", t->name[t->n]);
    r->at++;
    t->n++;
    return LNT_OK;
}

static lnt_status take_tag(reader *r, tag *t)
{
    *t = (tag){0};
    t->closes = *++r->at == '/';
    r->at += t->closes;
    LNT_TRY(take_word(r, " \t\r\n/>", "the name of an element", t->element));
    for (skip_blanks(r); *r->at && *r->at != '/' && *r->at != '>'; skip_blanks(r))
        LNT_TRY(take_attribute(r, t));
    t->empty = *r->at == '/';
    r->at += t->empty;
    LNT_REQUIRE(*r->at == '>', r->err, LNT_E_VALUE, "SSML: <%s does not end in >", t->element);
    r->at++;
    return LNT_OK;
}

/* ---- values ---- */

typedef struct word {
    const char *name;
    float means;
} word;

/* One of the words, or a percentage; NAN: neither. */
static float factor(const char *text, const word *words, size_t n)
{
    char *end;
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, words[i].name) == 0)
            return words[i].means;
    const float x = strtof(text, &end);
    return end != text && strcmp(end, "%") == 0 ? x / 100 : NAN;
}

static float rate_of(const char *text)
{
    static const word words[] = {{"x-slow", 0.5f}, {"slow", 0.75f}, {"medium", 1},
                                 {"default", 1},   {"fast", 1.25f}, {"x-fast", 1.5f}};
    return factor(text, words, sizeof words / sizeof *words);
}

/* Decibels, too: "+6dB". */
static float volume_of(const char *text)
{
    static const word words[] = {{"silent", 0},  {"x-soft", 0.25f}, {"soft", 0.5f}, {"medium", 1},
                                 {"default", 1}, {"loud", 1.4f},    {"x-loud", 2}};
    char *end;
    const float db = strtof(text, &end);
    return end != text && strcmp(end, "dB") == 0 ? powf(10, db / 20)
                                                 : factor(text, words, sizeof words / sizeof *words);
}

/* Semitones and changes in percent, too: "+2st", "-10%". */
static float pitch_of(const char *text)
{
    static const word words[] = {{"x-low", 0.7f}, {"low", 0.85f}, {"medium", 1},
                                 {"default", 1},  {"high", 1.2f}, {"x-high", 1.5f}};
    char *end;
    const float x = strtof(text, &end);
    if (end != text && strcmp(end, "st") == 0)
        return powf(2, x / 12);
    return *text == '+' || *text == '-' ? 1 + factor(text, NULL, 0)
                                        : factor(text, words, sizeof words / sizeof *words);
}

/* "300ms" or "1.5s"; negative: neither. */
static double seconds_of(const char *text)
{
    char *end;
    const double x = strtod(text, &end);
    return end == text ? -1 : strcmp(end, "ms") == 0 ? x / 1000 : strcmp(end, "s") == 0 ? x : -1;
}

static lnt_status refuse(const reader *r, const tag *t, unsigned i)
{
    return lnt_fail(r->err, LNT_E_UNSUPPORTED, "SSML: <%s %s=\"%s\"> is not known here", t->element,
                    t->name[i], t->value[i]);
}

/* ---- elements ---- */

/* Ends the present run, and begins another. */
static void next_run(reader *r, double silence)
{
    const level *l = &r->stack[r->depth];
    *r->to++ = '\0';
    r->run[r->n].silence = silence;
    r->run[++r->n] = (lnt_ssml_run){.text = r->to, .rate = l->rate, .volume = l->volume, .pitch = l->pitch};
}

static lnt_status pause(reader *r, const tag *t)
{
    double seconds = 0.4;
    for (unsigned i = 0; i < t->n; i++) {
        seconds = strcmp(t->name[i], "time") == 0 ? seconds_of(t->value[i]) : -1;
        if (!(seconds >= 0 && seconds <= 60))
            return refuse(r, t, i);
    }
    LNT_REQUIRE(t->empty, r->err, LNT_E_VALUE, "SSML: it is <break .../>, with nothing in it");
    next_run(r, seconds);
    return LNT_OK;
}

static bool multiply(float *by, float x, float least, float most)
{
    *by *= x;
    return x >= least && x <= most;
}

/* An attribute of <prosody>; false: it is none that is known here. */
static bool take_prosody(level *l, const char *name, const char *value)
{
    if (strcmp(name, "rate") == 0)
        return multiply(&l->rate, rate_of(value), 0.1f, 10);
    if (strcmp(name, "volume") == 0)
        return multiply(&l->volume, volume_of(value), 0, 10);
    if (strcmp(name, "pitch") == 0)
        return multiply(&l->pitch, pitch_of(value), 0.5f, 2);
    return false;
}

static lnt_status open_element(reader *r, const tag *t)
{
    const level *outer = &r->stack[r->depth];
    LNT_REQUIRE(r->depth + 1 < DEPTH, r->err, LNT_E_LIMIT, "SSML: more than %d elements within each other",
                DEPTH - 1);
    level *l = &r->stack[r->depth + 1];
    *l = (level){.rate = outer->rate, .volume = outer->volume, .pitch = outer->pitch};
    memcpy(l->element, t->element, NAME);
    const bool prosody = strcmp(t->element, "prosody") == 0;
    for (unsigned i = 0; prosody && i < t->n; i++) {
        if (!take_prosody(l, t->name[i], t->value[i]))
            return refuse(r, t, i);
    }
    if (t->empty)
        return LNT_OK;
    r->depth++;
    next_run(r, 0);
    return LNT_OK;
}

static lnt_status take_element(reader *r)
{
    tag t;
    LNT_TRY(take_tag(r, &t));
    if (!t.closes && strcmp(t.element, "break") == 0)
        return pause(r, &t);
    LNT_REQUIRE(
        strcmp(t.element, "speak") == 0 || strcmp(t.element, "prosody") == 0, r->err, LNT_E_UNSUPPORTED,
        "SSML: <%s> is not known here: <break>, <prosody> and <speak> are; a < of the text is written &lt;",
        t.element);
    if (!t.closes)
        return open_element(r, &t);
    LNT_REQUIRE(r->depth && strcmp(r->stack[r->depth].element, t.element) == 0, r->err, LNT_E_VALUE,
                "SSML: </%s> ends nothing", t.element);
    r->depth--;
    next_run(r, 0);
    return LNT_OK;
}

bool lnt_is_ssml(const char *text)
{
    text += strspn(text, " \t\r\n");
    return strncmp(text, "<speak", 6) == 0 && text[6] && strchr(" \t\r\n>/", text[6]);
}

lnt_status lnt_ssml_read(const char *text, lnt_bump *memory, const lnt_ssml_run **run, size_t *n,
                         lnt_error *err)
{
    const size_t bytes = strlen(text);
    size_t most = 1;
    for (const char *at = text; (at = strchr(at, '<')) != NULL; at++)
        most++;
    reader r = {.at = text, .err = err, .stack = {{.rate = 1, .volume = 1, .pitch = 1}}};
    r.run = lnt_bump_alloc(memory, most * sizeof *r.run, err);
    r.to = lnt_bump_alloc(memory, bytes + 1, err);
    if (!r.run || !r.to)
        return LNT_E_MEMORY;
    r.run[0] = (lnt_ssml_run){.text = r.to, .rate = 1, .volume = 1, .pitch = 1};
    while (*r.at)
        if (*r.at == '<')
            LNT_TRY(take_element(&r));
        else
            *r.to++ = *r.at == '&' ? take_entity(&r) : *r.at++;
    LNT_REQUIRE(!r.depth, err, LNT_E_VALUE, "SSML: <%s> does not end", r.stack[r.depth].element);
    *r.to = '\0';
    LNT_ASSERT(r.n < most);
    *run = r.run;
    *n = r.n + 1;
    return LNT_OK;
}
