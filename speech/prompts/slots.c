/* slots.c — texts with places for values. */
#include "speech/prompts/slots.h"

#include "base/lnt_assert.h"
#include "speech/letters.h"

#include <string.h>

typedef enum slot_kind { SLOT_TEXT, SLOT_NUMBER, SLOT_TIME, SLOT_UNIT, N_KINDS, NO_SLOT } slot_kind;

static const struct {
    const char *name, *example;
} kinds[N_KINDS] = {{"text", "word"}, {"number", "21.5"}, {"time", "14:30"}, {"unit", "21.5"}};

/* What is between one place and the next: characters as they are, or a slot. */
typedef struct piece {
    slot_kind kind;
    const char *text; /* the characters, or the slot's name */
    size_t bytes;
    const char *unit;
    size_t unit_bytes;
} piece;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t name_bytes(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return is_digit(*text) ? 0 : strspn(text, letters);
}

/* Behind "name:" of a slot that ends at end. */
static lnt_status read_kind(const char *at, const char *end, piece *p, lnt_error *err)
{
    const char *blank = memchr(at, ' ', (size_t)(end - at));
    const size_t n = (size_t)((blank ? blank : end) - at);
    for (p->kind = SLOT_TEXT; p->kind < N_KINDS; p->kind++)
        if (strlen(kinds[p->kind].name) == n && memcmp(kinds[p->kind].name, at, n) == 0)
            break;
    p->unit = blank ? blank + 1 : end;
    p->unit_bytes = (size_t)(end - p->unit);
    LNT_REQUIRE(p->kind < N_KINDS && (p->kind == SLOT_UNIT ? p->unit_bytes > 0 : !blank), err, LNT_E_VALUE,
                "'%.*s' is no kind of a slot: they are number, time, and unit with a unit behind it, as in "
                "{n:unit kWh}",
                (int)(end - at < 40 ? end - at : 40), at);
    return LNT_OK;
}

static lnt_status read_slot(const char **at, piece *p, lnt_error *err)
{
    const char *name = *at + 1, *end = strchr(name, '}');
    const size_t n = name_bytes(name);
    LNT_REQUIRE(end && n && (name[n] == '}' || name[n] == ':'), err, LNT_E_VALUE,
                "'%.40s' is no slot: {name}, {name:number}, {name:time} or {name:unit kWh}; a brace is "
                "written {{ or }}",
                *at);
    *p = (piece){.kind = SLOT_TEXT, .text = name, .bytes = n};
    *at = end + 1;
    return name[n] == ':' ? read_kind(name + n + 1, end, p, err) : LNT_OK;
}

/* Takes the next piece; bytes 0: there are no more. */
static lnt_status next_piece(const char **at, piece *p, lnt_error *err)
{
    const char *from = *at;
    const bool brace = *from && from[1] == *from && strchr("{}", *from);
    if (*from == '{' && !brace)
        return read_slot(at, p, err);
    LNT_REQUIRE(*from != '}' || brace, err, LNT_E_VALUE, "a '}' that ends no slot; a brace is written }}");
    *p = (piece){.kind = NO_SLOT, .text = from, .bytes = brace ? 1 : strcspn(from, "{}")};
    *at = from + (brace ? 2 : p->bytes);
    return LNT_OK;
}

lnt_status lnt_slots_check(const char *text, size_t *n_slots, lnt_error *err)
{
    piece p;
    *n_slots = 0;
    LNT_TRY(lnt_check_text(text, err));
    do {
        LNT_TRY(next_piece(&text, &p, err));
        *n_slots += p.kind != NO_SLOT;
    } while (p.bytes);
    return LNT_OK;
}

/* ---- values ---- */

static bool is_text(const char *value)
{
    while (*value && (unsigned char)*value >= ' ')
        value++;
    return !*value;
}

/* Digits, and behind a point more of them. */
static bool is_number(const char *value)
{
    static const char digits[] = "0123456789";
    value += *value == '-';
    const size_t whole = strspn(value, digits);
    value += whole;
    const size_t part = *value == '.' ? strspn(value + 1, digits) : 0;
    return whole && !value[part ? part + 1 : 0];
}

/* Takes a number of one or two digits, at least `least`, that is below limit. */
static bool take_two(const char **at, size_t least, int limit)
{
    int value = 0;
    size_t n = 0;
    for (; n < 2 && is_digit((*at)[n]); n++)
        value = 10 * value + (*at)[n] - '0';
    *at += n;
    return n >= least && value < limit;
}

/* "14:30" or "14:30:05" */
static bool is_time(const char *value)
{
    if (!take_two(&value, 1, 24) || *value++ != ':' || !take_two(&value, 2, 60))
        return false;
    if (!*value)
        return true;
    return *value++ == ':' && take_two(&value, 2, 60) && !*value;
}

static bool fits(slot_kind kind, const char *value)
{
    switch (kind) {
    case SLOT_NUMBER:
    case SLOT_UNIT: return is_number(value);
    case SLOT_TIME: return is_time(value);
    default: return is_text(value);
    }
}

/* The value of the slot. */
static lnt_status find_value(const piece *slot, const lnt_slot_value *value, size_t n, const char **found,
                             lnt_error *err)
{
    const int bytes = slot->bytes < 64 ? (int)slot->bytes : 64;
    *found = NULL;
    for (size_t i = 0; i < n; i++)
        if (strlen(value[i].slot) == slot->bytes && memcmp(value[i].slot, slot->text, slot->bytes) == 0)
            *found = value[i].value;
    LNT_REQUIRE(*found, err, LNT_E_ARGUMENT, "the prompt's slot %.*s has no value: %.*s=%s", bytes,
                slot->text, bytes, slot->text, kinds[slot->kind].example);
    LNT_REQUIRE(fits(slot->kind, *found), err, LNT_E_VALUE, "%.*s=%.40s is no %s, as %s is one", bytes,
                slot->text, *found, slot->kind == SLOT_UNIT ? "number" : kinds[slot->kind].name,
                kinds[slot->kind].example);
    return LNT_OK;
}

static bool has_slot(const char *text, const char *name)
{
    piece p;
    do {
        if (next_piece(&text, &p, NULL) != LNT_OK)
            return false;
        if (p.kind != NO_SLOT && p.bytes == strlen(name) && memcmp(p.text, name, p.bytes) == 0)
            return true;
    } while (p.bytes);
    return false;
}

static lnt_status check_values(const char *text, const lnt_slot_value *value, size_t n, lnt_error *err)
{
    for (size_t i = 0; i < n; i++) {
        LNT_REQUIRE(has_slot(text, value[i].slot), err, LNT_E_ARGUMENT, "the prompt has no slot called %.64s",
                    value[i].slot);
        for (size_t k = 0; k < i; k++)
            LNT_REQUIRE(strcmp(value[i].slot, value[k].slot) != 0, err, LNT_E_ARGUMENT,
                        "two values for the slot %.64s", value[i].slot);
        LNT_TRY(lnt_check_text(value[i].value, err));
    }
    return LNT_OK;
}

/* ---- filling ---- */

/* Writes text[0..bytes) to to + n, if to is not NULL; returns what n is then. */
static size_t put(char *to, size_t n, const char *text, size_t bytes)
{
    if (to && bytes)
        memcpy(to + n, text, bytes);
    return n + bytes;
}

/* Writes the filled text to to, if that is not NULL, and counts its bytes. */
static lnt_status write_filled(const char *text, const lnt_slot_value *value, size_t n, char *to,
                               size_t *bytes, lnt_error *err)
{
    piece p;
    size_t at = 0;
    do {
        const char *found;
        LNT_TRY(next_piece(&text, &p, err));
        if (p.kind == NO_SLOT) {
            at = put(to, at, p.text, p.bytes);
            continue;
        }
        LNT_TRY(find_value(&p, value, n, &found, err));
        at = put(to, at, found, strlen(found));
        if (p.kind == SLOT_UNIT)
            at = put(to, put(to, at, " ", 1), p.unit, p.unit_bytes);
    } while (p.bytes);
    *bytes = at;
    return LNT_OK;
}

lnt_status lnt_slots_fill(const char *text, const lnt_slot_value *value, size_t n, lnt_bump *memory,
                          const char **filled, lnt_error *err)
{
    size_t bytes;
    LNT_TRY(check_values(text, value, n, err));
    LNT_TRY(write_filled(text, value, n, NULL, &bytes, err));
    LNT_REQUIRE(bytes <= LNT_VOICE_TEXT_MOST, err, LNT_E_LIMIT, "a text has at most %d bytes",
                LNT_VOICE_TEXT_MOST);
    char *to = lnt_bump_alloc(memory, bytes + 1, err);
    if (!to)
        return LNT_E_MEMORY;
    *filled = to;
    return write_filled(text, value, n, to, &bytes, err);
}
