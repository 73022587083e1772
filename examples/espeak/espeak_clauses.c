/* espeak_clauses.c — phonemes of texts as Piper's voices were trained on, with the marks between clauses, which the
 * program espeak-ng does not print.
 *
 * espeak_clauses -q --ipa -v VOICE [--path=DIR]: each line is a text; an empty one is answered by one. The answer to a
 * text is a line for each clause: its phonemes in IPA, a tab, and the mark that ended it, one of ".?!,:;" or none. */
#include <espeak-ng/speak_lib.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PHONEMES_IPA = 2 };

static const char MARKS[] = ".?!,:;";
/* What may stand behind a mark. */
static const char *const closing[] = {"(", ")", "[", "]", "{", "}", "<", ">", "\"", "'", "`",
                                      "«", "»", "‘", "’", "‚", "‛", "“", "”", "„",  "‟"};

static bool is_blank(char c)
{
    return c && strchr(" \t\r\n\v\f", c);
}

/* Where the character before text[n] begins. */
static size_t before(const char *text, size_t n)
{
    do
        n--;
    while (n && (text[n] & 0xc0) == 0x80);
    return n;
}

static size_t without_blanks(const char *text, size_t n)
{
    while (n && is_blank(text[n - 1]))
        n--;
    return n;
}

/* Without closing quotes and brackets. */
static size_t without_closing(const char *text, size_t n)
{
    for (size_t i = 0; n && i < sizeof closing / sizeof *closing; i++) {
        const size_t bytes = strlen(closing[i]);
        if (n >= bytes && memcmp(text + n - bytes, closing[i], bytes) == 0) {
            n -= bytes;
            i = (size_t)-1;
        }
    }
    return n;
}

static bool ends_in(const char *text, size_t n, const char *end)
{
    const size_t bytes = strlen(end);
    return n >= bytes && memcmp(text + n - bytes, end, bytes) == 0;
}

/* The mark at the end of text[0..n); 0: none is. Of several behind each other the first counts; dots for what is left
 * out are none, and a dash is a semicolon. *found: whether there is one of these. */
static char last_mark(const char *text, size_t n, bool *found)
{
    const size_t end = without_closing(text, n);
    size_t begin = end;
    while (begin && strchr(MARKS, text[begin - 1]))
        begin--;
    const bool dash = ends_in(text, begin, "–") || ends_in(text, begin, "—");
    const bool dots = begin == end ? ends_in(text, end, "…")
                                   : !dash && end - begin >= 3 && memcmp(text + begin, "...", 3) == 0;
    *found = dash || dots || begin < end;
    return !*found || dots ? 0 : dash ? ';' : text[begin];
}

/* Of a clause of which text[0..n) was read. Unless the whole text ends there the library has looked at a character
 * behind the blank, too. */
static char mark_of(const char *text, size_t n, bool last)
{
    bool found = false;
    char mark = 0;
    size_t end = n;
    if (!last && end) {
        const size_t shorter = is_blank(text[end - 1]) ? end : before(text, end);
        if (shorter && is_blank(text[shorter - 1]))
            mark = last_mark(text, without_blanks(text, shorter), &found);
    }
    if (!found)
        mark = last_mark(text, without_blanks(text, n), &found);
    return mark;
}

static void answer(const char *text)
{
    const void *place = text;
    do {
        const char *begin = place;
        const char *ipa = espeak_TextToPhonemes(&place, espeakCHARS_UTF8, PHONEMES_IPA);
        const size_t read = place ? (size_t)((const char *)place - begin) : strlen(begin);
        const char mark = ipa && *ipa ? mark_of(begin, read, !place) : 0;
        printf("%s\t%.1s\n", ipa ? ipa : "", mark ? (const char[]){mark, '\0'} : "");
    } while (place);
}

int main(int argc, char **argv)
{
    const char *voice = "en-us", *path = NULL;
    char *line = NULL;
    size_t room = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--path=", 7) == 0)
            path = argv[i] + 7;
        if (strcmp(argv[i], "-v") == 0 && i + 1 < argc)
            voice = argv[++i];
    }
    if (espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, 0, path, 0) <= 0 || espeak_SetVoiceByName(voice) != EE_OK)
        return fprintf(stderr, "espeak_clauses: there is no voice %s\n", voice), 1;
    for (ssize_t n; (n = getline(&line, &room, stdin)) >= 0; fflush(stdout)) {
        line[n - (n && line[n - 1] == '\n')] = '\0';
        if (*line)
            answer(line);
        else
            puts("");
    }
    free(line);
    return 0;
}
