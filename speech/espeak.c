/* espeak.c — the program espeak-ng, asked through a pipe.
 *
 * It answers a line of text with a line for each clause of it and at least one; an empty line, answered by one, ends
 * each question. */
#include "speech/espeak.h"

#include "base/lnt_assert.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <string.h>

enum {
    LINE_MOST = 900, /* bytes that the program takes as one line */
    WAIT_MS = 20000, /* for an answer */
    REPLY_MOST = 1 << 20
};

static const char STRESS[] = "ˈ", SECONDARY[] = "ˌ", WORD[] = "1 ";

static lnt_status start(lnt_espeak *e, lnt_error *err)
{
    const char *argv[8] = {e->program, "-q", "--ipa", "-v", e->voice};
    char path[4096];
    if (e->child.pid)
        return LNT_OK;
    if (e->data) {
        LNT_REQUIRE(strlen(e->data) < sizeof path - 8, err, LNT_E_ARGUMENT,
                    "espeak-ng's data: too long a path");
        strcpy(path, "--path=");
        argv[5] = strcat(path, e->data);
    }
    const lnt_status status = lnt_child_start(argv, true, &e->child, err);
    if (status == LNT_E_UNSUPPORTED)
        lnt_error_prefix(
            err, "this voice's phonemes come from the program espeak-ng, which is not here (Debian's package "
                 "espeak-ng; or give phonemes or ids): ");
    return status;
}

/* At least two lines, of which the last is empty. */
static bool is_whole(const lnt_espeak *e)
{
    return e->n_reply >= 2 && e->reply[e->n_reply - 1] == '\n' && e->reply[e->n_reply - 2] == '\n';
}

static lnt_status read_reply(lnt_espeak *e, lnt_error *err)
{
    for (e->n_reply = 0; !is_whole(e);) {
        size_t n;
        char part[512];
        LNT_TRY(lnt_child_read(&e->child, part, sizeof part, WAIT_MS, &n, err));
        LNT_REQUIRE(n, err, LNT_E_UNSUPPORTED,
                    "%s has ended: does it have the voice '%s' (espeak-ng --voices)?", e->program, e->voice);
        LNT_REQUIRE(e->n_reply + n <= REPLY_MOST, err, LNT_E_LIMIT, "%s says too much", e->program);
        for (size_t i = 0; i < n; i++) {
            LNT_TRY(LNT_GROW(&lnt_malloc_allocator, e->reply, e->reply_room, e->n_reply, err));
            e->reply[e->n_reply++] = part[i];
        }
    }
    return LNT_OK;
}

/* Writes text[0..n) as a line into room for two bytes more, asks for it and reads the answer. */
static lnt_status ask_line(lnt_espeak *e, const char *text, size_t n, char *line, lnt_error *err)
{
    for (size_t i = 0; i < n; i++)
        line[i] = (unsigned char)text[i] < 0x20 ? ' ' : text[i];
    memcpy(line + n, "\n\n", 2);
    LNT_TRY(start(e, err));
    lnt_status status = lnt_child_write(&e->child, line, n + 2, err);
    if (status == LNT_OK)
        status = read_reply(e, err);
    if (status != LNT_OK) /* half an answer may still come */
        lnt_child_stop(&e->child);
    return status;
}

static lnt_status check_utf8(const lnt_espeak *e, const char *ipa, lnt_error *err)
{
    for (unsigned bytes; *ipa; ipa += bytes) {
        bytes = lnt_utf8_bytes(ipa);
        LNT_REQUIRE(bytes, err, LNT_E_VALUE, "%s answers in no UTF-8", e->program);
    }
    return LNT_OK;
}

/* Asks for text[0..n), n <= LINE_MOST. */
static lnt_status ask(lnt_espeak *e, const char *text, size_t n, lnt_error *err)
{
    char line[LINE_MOST + 2];
    LNT_ASSERT(n > 0 && n <= LINE_MOST);
    return ask_line(e, text, n, line, err);
}

/* Bytes of text[0..n) that go into a line: up to a blank if there is one, never a part of a character. */
static size_t piece(const char *text, size_t n)
{
    size_t end = LINE_MOST;
    if (n <= LINE_MOST)
        return n;
    while (end > 0 && text[end] != ' ')
        end--;
    if (end == 0)
        for (end = LINE_MOST; (text[end] & 0xc0) == 0x80;)
            end--;
    return end;
}

static lnt_status add(lnt_espeak *e, char c, lnt_error *err)
{
    LNT_TRY(LNT_GROW(&lnt_malloc_allocator, e->ipa, e->ipa_room, e->n_ipa, err));
    e->ipa[e->n_ipa++] = c;
    return LNT_OK;
}

/* Adds the lines of the reply, with a blank between words and lines. */
static lnt_status add_reply(lnt_espeak *e, lnt_error *err)
{
    for (size_t i = 0; i < e->n_reply; i++) {
        const char c = e->reply[i];
        const bool blank = c == '\n' || c == ' ';
        if (!blank || (e->n_ipa && e->ipa[e->n_ipa - 1] != ' '))
            LNT_TRY(add(e, blank ? ' ' : c, err));
    }
    return LNT_OK;
}

/* Answers about text[0..n), as one. */
static lnt_status ask_all(lnt_espeak *e, const char *text, size_t n, lnt_error *err)
{
    e->n_ipa = 0;
    for (size_t at = 0; at < n;) {
        const size_t bytes = piece(text + at, n - at);
        LNT_TRY(ask(e, text + at, bytes, err));
        LNT_TRY(add_reply(e, err));
        at += bytes;
    }
    e->n_ipa -= e->n_ipa && e->ipa[e->n_ipa - 1] == ' ';
    LNT_TRY(add(e, '\0', err));
    return check_utf8(e, e->ipa, err);
}

static bool is_stressed_once(const char *ipa)
{
    const char *first = strstr(ipa, STRESS);
    return first && !strstr(first + 1, STRESS);
}

/* A secondary stress counts for a word by itself: the pronoun "one" has one behind other words only. */
static bool is_stressed(const char *ipa)
{
    return strstr(ipa, STRESS) || (strstr(ipa, SECONDARY) && !strchr(ipa, ' '));
}

/* The program speaks, and for that stresses a clause that by itself has no stress; Piper's voices learned from phonemes
 * without that. Behind a word that has one the clause is as it was. */
static lnt_status ask_beside(lnt_espeak *e, const lnt_clause *clause, lnt_error *err)
{
    enum { KEPT = 64 };
    char line[LINE_MOST], alone[KEPT], word[KEPT];
    const size_t n = strlen(e->ipa);
    if (n >= KEPT || clause->bytes + sizeof WORD > LINE_MOST)
        return LNT_OK;
    strcpy(alone, e->ipa);
    LNT_TRY(ask_all(e, WORD, strlen(WORD), err));
    const size_t of_word = strlen(e->ipa);
    if (of_word + 1 < KEPT) {
        strcat(strcpy(word, e->ipa), " ");
        memcpy(line, WORD, strlen(WORD));
        memcpy(line + strlen(WORD), clause->text, clause->bytes);
        LNT_TRY(ask_all(e, line, strlen(WORD) + clause->bytes, err));
        const char *rest = e->ipa + of_word + 1;
        if (strncmp(e->ipa, word, of_word + 1) == 0 && !is_stressed(rest)) {
            memmove(e->ipa, rest, strlen(rest) + 1);
            return LNT_OK;
        }
    }
    e->n_ipa = 0;
    for (size_t i = 0; i <= n; i++)
        LNT_TRY(add(e, alone[i], err));
    return LNT_OK;
}

lnt_status lnt_espeak_clause(lnt_espeak *e, const lnt_clause *clause, const char **ipa, lnt_error *err)
{
    LNT_TRY(ask_all(e, clause->text, clause->bytes, err));
    if (is_stressed_once(e->ipa))
        LNT_TRY(ask_beside(e, clause, err));
    *ipa = e->ipa;
    return LNT_OK;
}

/* ---- a program that tells clauses ---- */

bool lnt_espeak_tells_clauses(const lnt_espeak *e)
{
    const char *slash = strrchr(e->program, '/');
    return strcmp(slash ? slash + 1 : e->program, "espeak_clauses") == 0;
}

/* Asks for a text of any length: the program reads all of it before it answers. */
static lnt_status ask_whole(lnt_espeak *e, const char *text, size_t bytes, lnt_bump *memory, lnt_error *err)
{
    char *line = lnt_bump_alloc(memory, bytes + 2, err);
    return line ? ask_line(e, text, bytes, line, err) : LNT_E_MEMORY;
}

/* A line "phonemes TAB mark", [0..n) of the reply. */
static lnt_status read_clause(const lnt_espeak *e, const char *line, size_t n, lnt_bump *memory,
                              lnt_told_clause *to, lnt_error *err)
{
    const char *tab = memchr(line, '\t', n);
    const size_t behind = tab ? n - (size_t)(tab + 1 - line) : 0;
    LNT_REQUIRE(tab && (!behind || (behind == 1 && strchr(".?!,:;", tab[1]))), err, LNT_E_VALUE,
                "%s answers with no clause", e->program);
    to->mark = behind ? tab[1] : 0;
    to->ipa = lnt_bump_string(memory, line, (size_t)(tab - line), err);
    return to->ipa ? check_utf8(e, to->ipa, err) : LNT_E_MEMORY;
}

lnt_status lnt_espeak_clauses(lnt_espeak *e, const char *text, size_t bytes, lnt_bump *memory,
                              lnt_told_clause **clause, size_t *n, lnt_error *err)
{
    size_t lines = 0;
    *n = 0;
    if (strspn(text, " \t\r\n") >= bytes)
        return LNT_OK;
    LNT_TRY(ask_whole(e, text, bytes, memory, err));
    for (size_t i = 0; i < e->n_reply; i++)
        lines += e->reply[i] == '\n';
    *clause = lnt_bump_alloc(memory, lines * sizeof **clause, err);
    if (!*clause)
        return LNT_E_MEMORY;
    for (size_t at = 0, end; e->reply[at] != '\n'; at = end + 1) {
        end = at + (size_t)((const char *)memchr(e->reply + at, '\n', e->n_reply - at) - (e->reply + at));
        LNT_TRY(read_clause(e, e->reply + at, end - at, memory, &(*clause)[(*n)++], err));
    }
    return LNT_OK;
}

void lnt_espeak_free(lnt_espeak *e)
{
    lnt_child_stop(&e->child);
    lnt_free(&lnt_malloc_allocator, e->reply);
    lnt_free(&lnt_malloc_allocator, e->ipa);
    *e = (lnt_espeak){0};
}
