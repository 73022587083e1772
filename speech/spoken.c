/* spoken.c — English words that are written one after the other. */
#include "speech/spoken.h"

#include "base/lnt_assert.h"

#include <string.h>

static const char *const small[] = {"zero",    "one",     "two",       "three",    "four",
                                    "five",    "six",     "seven",     "eight",    "nine",
                                    "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                    "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const tens[] = {"",      "",      "twenty",  "thirty", "forty",
                                   "fifty", "sixty", "seventy", "eighty", "ninety"};
static const struct {
    uint64_t value;
    const char *name;
} scales[] = {{1000000000000000000, "quintillion"},
              {1000000000000000, "quadrillion"},
              {1000000000000, "trillion"},
              {1000000000, "billion"},
              {1000000, "million"},
              {1000, "thousand"}};

static void put(lnt_spoken_text *s, char c)
{
    if (s->status == LNT_OK)
        s->status = LNT_GROW(&lnt_malloc_allocator, s->text, s->room, s->n, s->err);
    if (s->status == LNT_OK)
        s->text[s->n++] = c;
}

static char last(const lnt_spoken_text *s)
{
    return s->n ? s->text[s->n - 1] : '\0';
}

void lnt_speak_on(lnt_spoken_text *s, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        put(s, text[i]);
}

void lnt_speak(lnt_spoken_text *s, const char *words)
{
    if (s->n)
        put(s, ' ');
    lnt_speak_on(s, words, strlen(words));
}

void lnt_speak_letter(lnt_spoken_text *s, char letter)
{
    const char name[] = {letter >= 'a' && letter <= 'z' ? (char)(letter - 32) : letter, '\0'};
    lnt_speak(s, name);
}

void lnt_speak_mark(lnt_spoken_text *s, char mark)
{
    const char before = last(s);
    if (!before || strchr(".?!", before))
        return;
    if (strchr(",:;", before))
        s->n--;
    put(s, strchr(",:;", before) && strchr(",:;", mark) ? before : mark);
}

/* 0 < n < 1000 */
static void speak_hundreds(lnt_spoken_text *s, unsigned n)
{
    if (n >= 100) {
        lnt_speak(s, small[n / 100]);
        lnt_speak(s, "hundred");
        n %= 100;
    }
    if (n >= 20) {
        lnt_speak(s, tens[n / 10]);
        n %= 10;
    }
    if (n)
        lnt_speak(s, small[n]);
}

void lnt_speak_cardinal(lnt_spoken_text *s, uint64_t n)
{
    if (!n)
        lnt_speak(s, small[0]);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (n >= scales[i].value) {
            speak_hundreds(s, (unsigned)(n / scales[i].value));
            lnt_speak(s, scales[i].name);
            n %= scales[i].value;
        }
    if (n)
        speak_hundreds(s, (unsigned)n);
}

static bool ends_with(const lnt_spoken_text *s, const char *end)
{
    const size_t n = strlen(end);
    return s->n >= n && memcmp(s->text + s->n - n, end, n) == 0;
}

/* The last word's end becomes another. */
static bool replace_end(lnt_spoken_text *s, const char *end, const char *by)
{
    if (!ends_with(s, end))
        return false;
    s->n -= strlen(end);
    lnt_speak_on(s, by, strlen(by));
    return true;
}

void lnt_speak_ordinal(lnt_spoken_text *s, uint64_t n)
{
    static const char *const odd[][2] = {{"one", "first"},      {"two", "second"},   {"three", "third"},
                                         {"five", "fifth"},     {"eight", "eighth"}, {"nine", "ninth"},
                                         {"twelve", "twelfth"}, {"y", "ieth"}};
    lnt_speak_cardinal(s, n);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (replace_end(s, odd[i][0], odd[i][1]))
            return;
    lnt_speak_on(s, "th", 2);
}

void lnt_speak_year(lnt_spoken_text *s, unsigned n)
{
    LNT_ASSERT(n < 10000);
    if (n < 1000 || n % 1000 < 10 || (n % 100 == 0 && n % 1000 == 0)) {
        lnt_speak_cardinal(s, n);
        return;
    }
    lnt_speak_cardinal(s, n / 100);
    if (n % 100 == 0)
        lnt_speak(s, "hundred");
    else if (n % 100 < 10)
        lnt_speak(s, "oh");
    if (n % 100)
        lnt_speak_cardinal(s, n % 100);
}

void lnt_speak_digits(lnt_spoken_text *s, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] >= '0' && text[i] <= '9')
            lnt_speak(s, small[text[i] - '0']);
}

void lnt_speak_plural(lnt_spoken_text *s)
{
    const char before = s->n > 1 ? s->text[s->n - 2] : 'a';
    if (replace_end(s, "foot", "feet") || (!strchr("aeiou", before) && replace_end(s, "y", "ies")))
        return;
    if (ends_with(s, "x") || ends_with(s, "ch"))
        lnt_speak_on(s, "es", 2);
    else
        lnt_speak_on(s, "s", 1);
}
