/* regex.c — patterns as programs that all ways through a word run side by side (Thompson's construction).
 *
 * A pattern is read by descent, twice: once to count instructions, once to write them. What is repeated is read again
 * for each copy. */
#include "ops/text/regex.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "base/utf8.h"
#include "ops/text/words.h"

#include <string.h>

enum { MOST_CODE = 1 << 14, MOST_DEPTH = 64, MOST_REPEATS = 1000, MOST_WORK = 1 << 20, LAST_CODE = 0x10ffff };

typedef enum kind { SET, SPLIT, JUMP, BEGIN, END, EDGE, NO_EDGE, MATCH } kind;

typedef struct range {
    uint32_t first, last;
} range;

/* SET: ranges x … x + n, or none of them; SPLIT, JUMP: to x (and y). */
typedef struct instr {
    uint8_t kind;
    bool negated;
    uint32_t x, y;
} instr;

struct lnt_regex {
    instr *code;
    range *ranges;
    unsigned n, n_ranges;
    bool fold; /* case does not count */
};

typedef struct compiler {
    const char *at; /* NUL-terminated */
    lnt_regex *to;  /* its arrays NULL: only counted */
    unsigned depth, work;
    bool skip;         /* read only */
    const char *fault; /* the first */
    instr nowhere;
} compiler;

static void alternatives(compiler *c);

/* ---- writing ---- */

static void fail(compiler *c, const char *fault)
{
    c->fault = c->fault ? c->fault : fault;
    c->at = "";
}

/* Past n characters; after a fault there are none. */
static void advance(compiler *c, size_t n)
{
    c->at += c->fault ? 0 : n;
}

static unsigned emit(compiler *c, instr i)
{
    if (c->skip)
        return 0;
    if (c->to->n >= MOST_CODE) {
        fail(c, "too much of it");
        return 0;
    }
    if (c->to->code)
        c->to->code[c->to->n] = i;
    return c->to->n++;
}

/* The instruction, to be changed; what goes to it is lost where nothing is written. */
static instr *written(compiler *c, unsigned at)
{
    return c->to->code && !c->skip && !c->fault ? &c->to->code[at] : &c->nowhere;
}

static void add_range(compiler *c, uint32_t first, uint32_t last)
{
    if (c->skip || c->fault)
        return;
    if (c->to->n_ranges >= MOST_CODE) {
        fail(c, "too many characters in classes");
        return;
    }
    if (c->to->ranges)
        c->to->ranges[c->to->n_ranges] = (range){first, last};
    c->to->n_ranges++;
}

/* ---- characters ---- */

static uint32_t take_code(compiler *c)
{
    const unsigned n = lnt_utf8_bytes(c->at);
    if (!n || !*c->at) {
        fail(c, *c->at ? "bytes that are no UTF-8" : "an end where a character should be");
        return 0;
    }
    const uint32_t code = lnt_utf8_code(c->at, n);
    c->at += n;
    return code;
}

static int digit_of(char h)
{
    return h >= '0' && h <= '9'   ? h - '0'
           : h >= 'a' && h <= 'f' ? h - 'a' + 10
           : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                  : -1;
}

/* Behind \x: two digits, or any number in braces. */
static uint32_t take_hex(compiler *c)
{
    const bool braces = *c->at == '{';
    uint32_t code = 0;
    c->at += braces;
    for (unsigned i = 0; braces ? *c->at != '}' : i < 2; i++) {
        const int digit = digit_of(*c->at);
        if (digit < 0 || code > LAST_CODE / 16) {
            fail(c, "a \\x that is no character");
            return 0;
        }
        code = code * 16 + (uint32_t)digit;
        c->at++;
    }
    c->at += braces;
    return code;
}

/* A character behind a backslash that stands for one. */
static uint32_t escaped_code(compiler *c)
{
    static const char letters[] = "tnrfva", codes[] = "\t\n\r\f\v\a";
    const char e = *c->at;
    const char *letter = e ? strchr(letters, e) : NULL;
    if (e == 'x') {
        c->at++;
        return take_hex(c);
    }
    if (letter) {
        c->at++;
        return (unsigned char)codes[letter - letters];
    }
    if ((e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z') || (e >= '0' && e <= '9')) {
        fail(c, "an escape that is not known");
        return 0;
    }
    return take_code(c);
}

/* Ranges of \d, \s, \w, or of all others; false if the letter is none of them. */
static bool add_class(compiler *c, char letter)
{
    static const range digits[] = {{'0', '9'}}, spaces[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}},
                       word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    const char small = (char)(letter | 0x20);
    const range *list = small == 'd' ? digits : small == 's' ? spaces : small == 'w' ? word : NULL;
    const size_t n = small == 'd' ? 1 : small == 's' ? 3 : 4;
    uint32_t next = 0;
    for (size_t i = 0; list && i < n; i++) {
        if (letter == small)
            add_range(c, list[i].first, list[i].last);
        else if (list[i].first > next)
            add_range(c, next, list[i].first - 1);
        next = list[i].last + 1;
    }
    if (list && letter != small)
        add_range(c, next, LAST_CODE);
    return list != NULL;
}

/* [:alpha:] and its kin, at "[:"; false if it is none. */
static bool add_named(compiler *c)
{
    static const struct {
        const char *name;
        uint8_t n;
        range list[4];
    } named[] = {{"[:alnum:]", 3, {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
                 {"[:alpha:]", 2, {{'A', 'Z'}, {'a', 'z'}}},
                 {"[:digit:]", 1, {{'0', '9'}}},
                 {"[:lower:]", 1, {{'a', 'z'}}},
                 {"[:punct:]", 4, {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
                 {"[:space:]", 2, {{'\t', '\r'}, {' ', ' '}}},
                 {"[:upper:]", 1, {{'A', 'Z'}}},
                 {"[:xdigit:]", 3, {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (strncmp(c->at, named[i].name, strlen(named[i].name)) == 0) {
            for (unsigned r = 0; r < named[i].n; r++)
                add_range(c, named[i].list[r].first, named[i].list[r].last);
            advance(c, strlen(named[i].name));
            return true;
        }
    return false;
}

static uint32_t member(compiler *c)
{
    if (*c->at != '\\')
        return take_code(c);
    c->at++;
    return escaped_code(c);
}

/* One part of a bracket: a class, a character, or a range. */
static void bracket_part(compiler *c)
{
    if (c->at[0] == '[' && c->at[1] == ':' && add_named(c))
        return;
    if (c->at[0] == '\\' && c->at[1] && add_class(c, c->at[1])) {
        advance(c, 2);
        return;
    }
    const uint32_t first = member(c);
    uint32_t last = first;
    if (c->at[0] == '-' && c->at[1] && c->at[1] != ']') {
        c->at++;
        last = member(c);
    }
    if (last < first)
        fail(c, "a range that runs backwards");
    add_range(c, first, last);
}

static void emit_set(compiler *c, unsigned from, bool negated)
{
    emit(c, (instr){.kind = SET, .negated = negated, .x = from, .y = c->to->n_ranges - from});
}

/* Behind '['. */
static void bracket(compiler *c)
{
    const unsigned from = c->to->n_ranges;
    const bool negated = *c->at == '^';
    c->at += negated;
    do
        bracket_part(c);
    while (*c->at && *c->at != ']');
    if (*c->at != ']')
        fail(c, "a [ without ]");
    else
        c->at++;
    emit_set(c, from, negated);
}

/* ---- structure ---- */

/* Behind '('. */
static void group(compiler *c)
{
    if (*c->at == '?' && c->at[1] != ':') {
        fail(c, "a group that is none of (…) and (?:…)");
        return;
    }
    c->at += *c->at == '?' ? 2 : 0;
    if (++c->depth > MOST_DEPTH)
        fail(c, "groups nested too deep");
    alternatives(c);
    c->depth--;
    if (*c->at != ')')
        fail(c, "a ( without )");
    else
        c->at++;
}

/* Behind a backslash. */
static void escape(compiler *c)
{
    const unsigned from = c->to->n_ranges;
    const char e = *c->at;
    const uint8_t kinds[] = {['b'] = EDGE, ['B'] = NO_EDGE, ['A'] = BEGIN, ['z'] = END};
    if (e && add_class(c, e)) {
        advance(c, 1);
    } else if (e == 'b' || e == 'B' || e == 'A' || e == 'z') {
        c->at++;
        emit(c, (instr){.kind = kinds[(unsigned char)e]});
        return;
    } else {
        const uint32_t code = escaped_code(c);
        add_range(c, code, code);
    }
    emit_set(c, from, false);
}

static void atom(compiler *c)
{
    const unsigned from = c->to->n_ranges;
    const char first = *c->at;
    if (++c->work > MOST_WORK) {
        fail(c, "too much of it");
        return;
    }
    if (first && strchr("([\\^$", first))
        c->at++;
    switch (first) {
    case '(': group(c); return;
    case '[': bracket(c); return;
    case '\\': escape(c); return;
    case '^': emit(c, (instr){.kind = BEGIN}); return;
    case '$': emit(c, (instr){.kind = END}); return;
    case '*':
    case '+':
    case '?': fail(c, "a repetition of nothing"); return;
    default: break;
    }
    const uint32_t code = take_code(c), is = first == '.' ? '\n' : code;
    add_range(c, is, is);
    emit_set(c, from, first == '.');
}

/* A number of at most MOST_REPEATS; false if there is none. */
static bool take_number(compiler *c, unsigned *n)
{
    const char *from = c->at;
    for (*n = 0; *c->at >= '0' && *c->at <= '9'; advance(c, 1)) {
        *n = *n * 10 + (unsigned)(*c->at - '0');
        if (*n > MOST_REPEATS)
            fail(c, "too many repetitions");
    }
    return c->at != from && !c->fault;
}

/* What follows an atom: how often it may stand there; most UINT32_MAX: any number of times. What looks like {m,n} and
 * is not stands for itself. */
static bool take_repeats(compiler *c, unsigned *least, unsigned *most)
{
    const char *from = c->at;
    *least = *c->at == '+';
    *most = *c->at == '?' ? 1 : UINT32_MAX;
    if (*c->at == '*' || *c->at == '+' || *c->at == '?') {
        c->at++;
    } else {
        const bool number = *c->at == '{' && (c->at++, take_number(c, least));
        const bool comma = number && *c->at == ',';
        c->at += comma;
        if (number && !(comma && take_number(c, most)))
            *most = comma ? UINT32_MAX : *least;
        if (!number || *c->at != '}') {
            c->at = c->fault ? c->at : from;
            return false;
        }
        c->at++;
        if (*most < *least)
            fail(c, "repetitions that run backwards");
    }
    c->at += *c->at == '?'; /* as few as can be: the same words */
    return true;
}

static void copy(compiler *c, const char *from)
{
    c->at = c->fault ? c->at : from;
    atom(c);
}

/* Any number of copies more. */
static void loop(compiler *c, const char *from)
{
    const unsigned split = emit(c, (instr){.kind = SPLIT});
    written(c, split)->x = c->to->n;
    copy(c, from);
    emit(c, (instr){.kind = JUMP, .x = split});
    written(c, split)->y = c->to->n;
}

/* An atom as often as what follows it says. */
static void repeated(compiler *c)
{
    const char *from = c->at, *end;
    const bool skip = c->skip;
    unsigned least = 1, most = 1;
    c->skip = true;
    atom(c);
    if (!take_repeats(c, &least, &most))
        least = most = 1;
    c->skip = skip;
    end = c->at;
    if (skip || c->fault)
        return;
    for (unsigned i = 0; i < least && !c->fault; i++)
        copy(c, from);
    if (most == UINT32_MAX)
        loop(c, from);
    for (unsigned i = least; most != UINT32_MAX && i < most && !c->fault; i++) {
        const unsigned split = emit(c, (instr){.kind = SPLIT});
        written(c, split)->x = c->to->n;
        copy(c, from);
        written(c, split)->y = c->to->n;
    }
    c->at = c->fault ? c->at : end;
}

static void sequence(compiler *c)
{
    while (*c->at && *c->at != '|' && *c->at != ')')
        repeated(c);
}

static void alternatives(compiler *c)
{
    enum { NONE = UINT32_MAX };
    uint32_t jumps = NONE; /* to the end: each x is the one before */
    for (bool more = true; more && !c->fault;) {
        const char *from = c->at;
        const bool skip = c->skip;
        c->skip = true;
        sequence(c);
        c->skip = skip;
        more = *c->at == '|';
        if (!skip) {
            const unsigned split = more ? emit(c, (instr){.kind = SPLIT, .x = c->to->n + 1}) : 0;
            c->at = c->fault ? c->at : from;
            sequence(c);
            if (more) {
                jumps = emit(c, (instr){.kind = JUMP, .x = jumps});
                written(c, split)->y = c->to->n;
            }
        }
        c->at += *c->at == '|' && more;
    }
    while (jumps != NONE && c->to->code && !c->fault) {
        const uint32_t before = c->to->code[jumps].x;
        c->to->code[jumps].x = c->to->n;
        jumps = before;
    }
}

static lnt_status compile(lnt_regex *r, const char *pattern, lnt_error *err)
{
    r->n = r->n_ranges = 0;
    r->fold = strncmp(pattern, "(?i)", 4) == 0;
    compiler c = {.at = pattern + (r->fold ? 4 : 0), .to = r};
    alternatives(&c);
    if (*c.at)
        fail(&c, "a ) without (");
    emit(&c, (instr){.kind = MATCH});
    LNT_REQUIRE(!c.fault, err, LNT_E_MODEL, "pattern '%.80s' has %s", pattern, c.fault);
    return LNT_OK;
}

const lnt_regex *lnt_regex_make(const char *pattern, lnt_bump *memory, lnt_error *err)
{
    lnt_regex *r = lnt_bump_alloc(memory, sizeof *r, err);
    if (!r || compile(r, pattern, err) != LNT_OK)
        return NULL;
    instr *code = lnt_bump_alloc(memory, r->n * sizeof *code, err);
    range *ranges = lnt_bump_alloc(memory, r->n_ranges * sizeof *ranges, err);
    if (!code || !ranges)
        return NULL;
    r->code = code;
    r->ranges = ranges;
    return compile(r, pattern, err) == LNT_OK ? r : NULL;
}

/* ---- matching ---- */

/* Where ways through the word are, each once. */
typedef struct ways {
    uint32_t *list, n;
} ways;

/* What stands on both sides of a place; none: NOTHING. */
typedef struct sides {
    uint32_t before, behind;
} sides;

enum { NOTHING = UINT32_MAX };

size_t lnt_regex_scratch(const lnt_regex *r)
{
    return (size_t)r->n * 5;
}

static bool is_word(uint32_t code)
{
    return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z') ||
           code == '_';
}

static bool holds(kind k, sides s)
{
    switch (k) {
    case BEGIN: return s.before == NOTHING;
    case END: return s.behind == NOTHING;
    case EDGE: return is_word(s.before) != is_word(s.behind);
    default: return is_word(s.before) == is_word(s.behind);
    }
}

static bool in_ranges(const lnt_regex *r, const instr *i, uint32_t code)
{
    for (uint32_t k = 0; k < i->y; k++)
        if (code >= r->ranges[i->x + k].first && code <= r->ranges[i->x + k].last)
            return true;
    return false;
}

static bool in_set(const lnt_regex *r, const instr *i, uint32_t code)
{
    bool in = in_ranges(r, i, code);
    if (r->fold)
        in |= in_ranges(r, i, lnt_to_lower(code)) || in_ranges(r, i, lnt_to_upper(code));
    return in != i->negated;
}

/* Adds instruction `at` and all that are reached from it without a character. seen[i] is turn where i has been; stack
 * has room for two entries for each instruction. */
static void add_way(const lnt_regex *r, ways *w, uint32_t at, sides s, uint32_t *seen, uint32_t turn,
                    uint32_t *stack)
{
    uint32_t depth = 0;
    stack[depth++] = at;
    while (depth) {
        const uint32_t i = stack[--depth];
        LNT_ASSERT(i < r->n);
        if (seen[i] == turn)
            continue;
        seen[i] = turn;
        const instr *in = &r->code[i];
        switch ((kind)in->kind) {
        case SET:
        case MATCH: w->list[w->n++] = i; break;
        case SPLIT:
            stack[depth++] = in->y;
            stack[depth++] = in->x;
            break;
        case JUMP: stack[depth++] = in->x; break;
        default:
            if (holds((kind)in->kind, s))
                stack[depth++] = i + 1;
        }
    }
}

/* The character at *at, moved past; a byte that is no UTF-8 is above all of them. */
static uint32_t next_code(const char **at)
{
    const unsigned n = lnt_utf8_bytes(*at);
    if (!**at)
        return NOTHING;
    const uint32_t code = n ? lnt_utf8_code(*at, n) : LAST_CODE + 1u + (unsigned char)**at;
    *at += n ? n : 1;
    return code;
}

bool lnt_regex_matches(const lnt_regex *r, const char *word, uint32_t *scratch)
{
    ways now = {scratch, 0}, next = {scratch + r->n, 0};
    uint32_t *seen = scratch + 2 * r->n, *stack = scratch + 3 * r->n, turn = 1;
    memset(seen, 0, r->n * sizeof *seen);
    sides s = {NOTHING, next_code(&word)};
    add_way(r, &now, 0, s, seen, turn, stack);
    while (s.behind != NOTHING && now.n) {
        s = (sides){s.behind, next_code(&word)};
        turn++;
        next.n = 0;
        for (uint32_t i = 0; i < now.n; i++) {
            const instr *in = &r->code[now.list[i]];
            if (in->kind == SET && in_set(r, in, s.before))
                add_way(r, &next, now.list[i] + 1, s, seen, turn, stack);
        }
        const ways done = now;
        now = next;
        next = done;
    }
    for (uint32_t i = 0; s.behind == NOTHING && i < now.n; i++)
        if (r->code[now.list[i]].kind == MATCH)
            return true;
    return false;
}
