/* amounts.c — numbers of a text with what belongs to them, in English. */
#include "speech/amounts.h"

#include "base/lnt_assert.h"

#include <string.h>

enum { DASH = 0x2013, MINUS = 0x2212, DIGITS_MOST = 18 };

/* ---- numbers by themselves ---- */

static bool is_number(const lnt_token *t)
{
    return t->kind == LNT_TOKEN_NUMBER;
}

static size_t find(const lnt_token *t, char c)
{
    const char *at = memchr(t->text, c, t->bytes);
    return at ? (size_t)(at - t->text) : t->bytes;
}

/* A number without point and commas. */
static bool is_whole(const lnt_token *t)
{
    return is_number(t) && find(t, '.') == t->bytes && find(t, ',') == t->bytes;
}

/* Whole, and of n digits. */
static bool has_digits(const lnt_token *t, size_t n)
{
    return is_whole(t) && t->bytes == n;
}

/* What is before the point; of more than 18 digits some number that is large. */
static uint64_t value(const lnt_token *t)
{
    uint64_t v = 0;
    for (size_t i = 0; i < find(t, '.'); i++)
        if (t->text[i] != ',')
            v = v > UINT64_MAX / 100 ? v : v * 10 + (uint64_t)(t->text[i] - '0');
    return v;
}

static bool is_one(const lnt_token *t)
{
    return value(t) == 1 && find(t, '.') == t->bytes;
}

static void speak_number(lnt_spoken_text *s, const lnt_token *t)
{
    const size_t point = find(t, '.');
    const bool grouped = find(t, ',') < t->bytes;
    if (point > 1 && (point - (grouped ? point / 4 : 0) > DIGITS_MOST || (*t->text == '0' && !grouped)))
        lnt_speak_digits(s, t->text, point);
    else if (point)
        lnt_speak_cardinal(s, value(t));
    if (point == t->bytes)
        return;
    lnt_speak(s, "point");
    lnt_speak_digits(s, t->text + point, t->bytes - point);
}

static bool reads_one_of(const lnt_token *t, const char *const *words)
{
    for (; *words; words++)
        if (lnt_token_reads(t, *words))
            return true;
    return false;
}

/* Four digits that are a year rather than a number of things. */
static bool is_year(const lnt_token *t)
{
    static const char *const before[] = {"in",   "since", "by", "until", "till",   "before", "after",
                                         "from", "year",  "of", "circa", "around", "during", NULL};
    static const char *const behind[] = {"ad", "bc", "bce", "ce", NULL};
    if (!has_digits(t, 4) || value(t) < 1100 || value(t) > 2099)
        return false;
    return value(t) >= 1900 || reads_one_of(t - 1, before) || reads_one_of(t + 1, behind);
}

static void speak_plain(lnt_spoken_text *s, const lnt_token *t)
{
    if (is_year(t))
        lnt_speak_year(s, (unsigned)value(t));
    else
        speak_number(s, t);
}

bool lnt_begins_sentence(const lnt_token *t)
{
    return t->kind == LNT_TOKEN_END || t->line || (lnt_token_is_capital(t) && !t->glued);
}

/* ---- units ---- */

/* Written as in the text; a blank before it must be there. '*': where the plural's ending goes. */
static const struct {
    const char *written, *name;
} units[] = {
    /* clang-format off */
    {"%", "percent"}, {"‰", "per mille"}, {"°C", "degree* celsius"}, {"° C", "degree* celsius"}, {"℃", "degree* celsius"},
    {"°F", "degree* fahrenheit"}, {"° F", "degree* fahrenheit"}, {"℉", "degree* fahrenheit"}, {"°", "degree*"},
    {" K", "kelvin"}, {"km/h", "kilometer* per hour"}, {"kmh", "kilometer* per hour"}, {"kph", "kilometer* per hour"},
    {"m/s", "meter* per second"}, {"mph", "mile* per hour"}, {"m²", "square meter*"}, {"m³", "cubic meter*"},
    {"km²", "square kilometer*"}, {"cm²", "square centimeter*"}, {"cm³", "cubic centimeter*"}, {"sq ft", "square foot*"},
    {"mm", "millimeter*"}, {"cm", "centimeter*"}, {"km", "kilometer*"}, {"µm", "micrometer*"}, {"μm", "micrometer*"},
    {"nm", "nanometer*"}, {"m", "meter*"}, {"mi", "mile*"}, {"ft", "foot*"}, {"yd", "yard*"}, {"mg", "milligram*"},
    {"kg", "kilogram*"}, {"g", "gram*"}, {"lbs", "pound*"}, {"lb", "pound*"}, {"oz", "ounce*"}, {"ml", "milliliter*"},
    {"mL", "milliliter*"}, {"cl", "centiliter*"}, {"l", "liter*"}, {"L", "liter*"}, {"gal", "gallon*"}, {"ms", "millisecond*"},
    {"µs", "microsecond*"}, {"μs", "microsecond*"}, {"ns", "nanosecond*"}, {"s", "second*"}, {"sec", "second*"},
    {"secs", "second*"}, {"min", "minute*"}, {"mins", "minute*"}, {"hrs", "hour*"}, {"hr", "hour*"}, {"h", "hour*"},
    {"Hz", "hertz"}, {"kHz", "kilohertz"}, {"MHz", "megahertz"}, {"GHz", "gigahertz"}, {"mV", "millivolt*"}, {"kV", "kilovolt*"},
    {"V", "volt*"}, {"µA", "microamp*"}, {"mA", "milliamp*"}, {"A", "amp*"}, {"mAh", "milliamp hour*"}, {"Ah", "amp hour*"},
    {"mW", "milliwatt*"}, {"kW", "kilowatt*"}, {"MW", "megawatt*"}, {"GW", "gigawatt*"}, {"W", "watt*"}, {"Wh", "watt hour*"},
    {"kWh", "kilowatt hour*"}, {"MWh", "megawatt hour*"}, {"kB", "kilobyte*"}, {"KB", "kilobyte*"}, {"MB", "megabyte*"},
    {"GB", "gigabyte*"}, {"TB", "terabyte*"}, {"KiB", "kibibyte*"}, {"MiB", "mebibyte*"}, {"GiB", "gibibyte*"},
    {"kbps", "kilobit* per second"}, {"Mbps", "megabit* per second"}, {"Gbps", "gigabit* per second"},
    {"kbit/s", "kilobit* per second"}, {"Mbit/s", "megabit* per second"}, {"Pa", "pascal*"}, {"hPa", "hectopascal*"},
    {"kPa", "kilopascal*"}, {"mbar", "millibar*"}, {"bar", "bar*"}, {"psi", "pound* per square inch"}, {"rpm", "R P M"},
    {"dB", "decibel*"}, {"dBm", "D B M"}, {"lx", "lux"}, {"lm", "lumen*"}, {"ppm", "part* per million"}, {"kcal", "kilocalory*"},
    {"cal", "calory*"}, {"kJ", "kilojoule*"}, {"J", "joule*"}, {"N", "newton*"}, {"Nm", "newton meter*"}, {"px", "pixel*"},
    {"dpi", "dots per inch"}, {"fps", "frame* per second"}, {"Ω", "ohm*"}, {"kΩ", "kilohm*"}, {"¢", "cent*"},
    {"€", "euro*"}, {"$", "dollar*"}, {"£", "pound*"}, {"¥", "yen"},
    /* clang-format on */
};

static bool is_letter(char c)
{
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c & 0x80);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes of the unit at text if that is this one; 0 if it is not. */
static size_t unit_bytes(const char *written, const char *text, bool apart)
{
    const bool blank = *written == ' ';
    const size_t n = strlen(written + blank);
    if ((blank && !apart) || strncmp(text, written + blank, n) != 0)
        return 0;
    const char last = written[blank + n - 1], next = text[n];
    return is_letter(last) && !(last & 0x80) && (is_letter(next) || is_digit(next)) ? 0 : n;
}

/* The longest unit that stands at t: its name, and where it ends. */
static const char *unit_at(const lnt_token *t, const char **end)
{
    const char *name = NULL;
    *end = t->text;
    if (t->kind == LNT_TOKEN_END || t->line)
        return NULL;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const size_t n = unit_bytes(units[i].written, t->text, !t->glued);
        if (n && t->text + n > *end) {
            *end = t->text + n;
            name = units[i].name;
        }
    }
    return name;
}

static void speak_unit(lnt_spoken_text *s, const char *name, bool plural)
{
    const size_t head = strcspn(name, "*");
    lnt_speak(s, "");
    lnt_speak_on(s, name, head);
    if (name[head] && plural)
        lnt_speak_plural(s);
    if (name[head])
        lnt_speak_on(s, name + head + 1, strlen(name + head + 1));
}

/* Tokens from t on that begin before end. */
static size_t tokens_before(const lnt_token *t, const char *end)
{
    size_t n = 0;
    while (t[n].kind != LNT_TOKEN_END && t[n].text < end)
        n++;
    return n;
}

/* The abbreviation's own point, unless it ends the sentence. */
static size_t skip_point(const lnt_token *t, const lnt_token *unit)
{
    return unit->kind == LNT_TOKEN_WORD && lnt_token_is(t, '.') && t->glued && !lnt_begins_sentence(t + 1);
}

static size_t speak_measured(lnt_spoken_text *s, const lnt_token *t)
{
    const char *end, *name = is_number(t) ? unit_at(t + 1, &end) : NULL;
    if (!name)
        return 0;
    speak_number(s, t);
    speak_unit(s, name, !is_one(t));
    const size_t n = 1 + tokens_before(t + 1, end);
    return n + skip_point(t + n, t + 1);
}

/* ---- money ---- */

static const struct {
    uint32_t sign;
    const char *name, *part; /* a hundredth's */
} currencies[] = {{'$', "dollar*", "cent*"},
                  {0xa3, "pound*", "pence"},
                  {0x20ac, "euro*", "cent*"},
                  {0xa5, "yen", "sen"},
                  {0x20b9, "rupee*", "paise"}};

static const char *magnitude(const lnt_token *t)
{
    static const char *const names[] = {"thousand", "million", "billion", "trillion", NULL};
    static const char *const suffixes[][2] = {
        {"k", "thousand"}, {"m", "million"}, {"bn", "billion"}, {"b", "billion"}};
    for (const char *const *name = names; *name; name++)
        if (lnt_token_reads(t, *name))
            return *name;
    for (size_t i = 0; t->glued && i < sizeof suffixes / sizeof *suffixes; i++)
        if (lnt_token_reads(t, suffixes[i][0]))
            return suffixes[i][1];
    return NULL;
}

/* "5.99": five dollars and ninety nine cents. */
static void speak_parts(lnt_spoken_text *s, const lnt_token *t, const char *name, const char *part)
{
    const size_t point = find(t, '.');
    const unsigned parts = (unsigned)(t->text[point + 1] - '0') * 10 + (unsigned)(t->text[point + 2] - '0');
    if (value(t) || !parts) {
        lnt_speak_cardinal(s, value(t));
        speak_unit(s, name, value(t) != 1);
    }
    if (value(t) && parts)
        lnt_speak(s, "and");
    if (parts) {
        lnt_speak_cardinal(s, parts);
        speak_unit(s, part, parts != 1);
    }
}

size_t lnt_speak_money(lnt_spoken_text *s, const lnt_token *t)
{
    size_t k = 0;
    while (k < sizeof currencies / sizeof *currencies && !lnt_token_is(t, currencies[k].sign))
        k++;
    if (k == sizeof currencies / sizeof *currencies || !is_number(t + 1) || !t[1].glued)
        return 0;
    const char *times = magnitude(t + 2);
    if (!times && t[1].bytes - find(t + 1, '.') == 3) {
        speak_parts(s, t + 1, currencies[k].name, currencies[k].part);
        return 2;
    }
    speak_number(s, t + 1);
    if (times)
        lnt_speak(s, times);
    speak_unit(s, currencies[k].name, times || !is_one(t + 1));
    return times ? 3 : 2;
}

/* ---- times ---- */

size_t lnt_speak_half_day(lnt_spoken_text *s, const lnt_token *t, bool *pointed)
{
    static const char *const whole[] = {"am", "pm", NULL};
    const bool short_form = reads_one_of(t, whole);
    const bool long_form = (lnt_token_reads(t, "a") || lnt_token_reads(t, "p")) && lnt_token_is(t + 1, '.') &&
                           lnt_token_reads(t + 2, "m") && t[2].glued;
    *pointed = false;
    if (!short_form && !long_form)
        return 0;
    lnt_speak_letter(s, *t->text);
    lnt_speak_letter(s, 'm');
    if (short_form)
        return 1;
    *pointed = lnt_token_is(t + 3, '.');
    return *pointed ? 4 : 3;
}

/* A half of the day, if one is at t; its point may end the sentence. */
static size_t take_half_day(lnt_spoken_text *s, const lnt_token *t)
{
    bool pointed;
    const size_t n = lnt_speak_half_day(s, t, &pointed);
    if (pointed && lnt_begins_sentence(t + n))
        lnt_speak_mark(s, '.');
    return n;
}

static bool is_half_day(const lnt_token *t)
{
    lnt_spoken_text nowhere = {.status = LNT_E_CANCELLED};
    bool pointed;
    return lnt_speak_half_day(&nowhere, t, &pointed) > 0;
}

static void speak_minutes(lnt_spoken_text *s, uint64_t hours, uint64_t minutes, bool half_day)
{
    if (!minutes && !half_day)
        lnt_speak(s, hours > 12 ? "hundred" : "o'clock");
    if (minutes && minutes < 10)
        lnt_speak(s, "oh");
    if (minutes)
        lnt_speak_cardinal(s, minutes);
}

/* "10:30", "7:05:30 p.m.", "5 p.m." */
static size_t speak_time(lnt_spoken_text *s, const lnt_token *t)
{
    const bool clock = is_whole(t) && t->bytes <= 2 && value(t) <= 24 && lnt_token_is(t + 1, ':') &&
                       t[1].glued && has_digits(t + 2, 2) && t[2].glued && value(t + 2) < 60;
    const bool seconds = clock && lnt_token_is(t + 3, ':') && has_digits(t + 4, 2) && t[4].glued;
    size_t n = seconds ? 5 : clock ? 3 : 1;
    const bool half_day = is_half_day(t + n);
    if (!clock && !(is_whole(t) && value(t) <= 12 && half_day))
        return 0;
    lnt_speak_cardinal(s, value(t));
    if (clock)
        speak_minutes(s, value(t), value(t + 2), half_day || seconds);
    if (seconds) {
        lnt_speak(s, "and");
        lnt_speak_cardinal(s, value(t + 4));
        lnt_speak(s, value(t + 4) == 1 ? "second" : "seconds");
    }
    return n + take_half_day(s, t + n);
}

/* ---- dates ---- */

static const char *const months[] = {"january", "february", "march",     "april",   "may",      "june",
                                     "july",    "august",   "september", "october", "november", "december"};

/* Number of the month called so, 1 to 12; 0 if none is. *bytes... of an abbreviation the point is taken, too. */
static unsigned month_at(const lnt_token *t, size_t *n)
{
    *n = 1;
    if (!lnt_token_is_capital(t))
        return 0;
    for (unsigned m = 0; m < 12; m++) {
        char shortened[5] = "";
        memcpy(shortened, months[m], 3);
        bool abbreviated = lnt_token_reads(t, shortened) && m != 4;
        abbreviated |= (m == 8 && lnt_token_reads(t, "sept"));
        *n = abbreviated && lnt_token_is(t + 1, '.') && t[1].glued ? 2 : 1;
        if (lnt_token_reads(t, months[m]) ||
            (abbreviated && (*n == 2 || is_number(t + 1) || is_number(t - 1))))
            return m + 1;
    }
    return 0;
}

static bool is_ordinal_end(const lnt_token *t)
{
    static const char *const ends[] = {"st", "nd", "rd", "th", NULL};
    return t->glued && reads_one_of(t, ends);
}

/* A day of the month at t, with its "rd" if it has one: how many tokens; 0 if there is none. */
static size_t day_at(const lnt_token *t)
{
    if (!is_whole(t) || t->bytes > 2 || value(t) < 1 || value(t) > 31 || lnt_token_is(t + 1, ':'))
        return 0;
    return is_ordinal_end(t + 1) ? 2 : 1;
}

/* A year at t, behind a comma or not. */
static size_t take_year(lnt_spoken_text *s, const lnt_token *t)
{
    const size_t comma = lnt_token_is(t, ',');
    if (!has_digits(t + comma, 4) || value(t + comma) < 1100 || value(t + comma) > 2099)
        return 0;
    if (comma)
        lnt_speak_mark(s, ',');
    lnt_speak_year(s, (unsigned)value(t + comma));
    return comma + 1;
}

size_t lnt_speak_month(lnt_spoken_text *s, const lnt_token *t)
{
    size_t n;
    const unsigned month = month_at(t, &n);
    if (!month)
        return 0;
    const size_t day = day_at(t + n);
    lnt_speak(s, months[month - 1]);
    if (!day) {
        if (n == 2 && lnt_begins_sentence(t + n))
            lnt_speak_mark(s, '.');
        return n + (lnt_token_is(t + n, ',') ? 0 : take_year(s, t + n));
    }
    lnt_speak_ordinal(s, value(t + n));
    n += day;
    return n + take_year(s, t + n);
}

/* "3 January 2024", "3rd Jan." */
static size_t speak_day_first(lnt_spoken_text *s, const lnt_token *t)
{
    size_t n;
    const size_t day = day_at(t);
    const unsigned month = day ? month_at(t + day, &n) : 0;
    if (!month || day_at(t + day + n))
        return 0;
    lnt_speak(s, "the");
    lnt_speak_ordinal(s, value(t));
    lnt_speak(s, "of");
    lnt_speak(s, months[month - 1]);
    n += day;
    return n + (lnt_token_is(t + n, ',') ? 0 : take_year(s, t + n));
}

static void speak_date(lnt_spoken_text *s, uint64_t month, uint64_t day, uint64_t year)
{
    LNT_ASSERT(month >= 1 && month <= 12);
    lnt_speak(s, months[month - 1]);
    lnt_speak_ordinal(s, day);
    lnt_speak_mark(s, ',');
    lnt_speak_year(s, (unsigned)(year < 70 ? 2000 + year : year < 100 ? 1900 + year : year));
}

static bool is_date(uint64_t month, uint64_t day)
{
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* Three whole numbers with a sign between them and nothing else. */
static bool is_triple(const lnt_token *t, uint32_t sign)
{
    return is_whole(t) && lnt_token_is(t + 1, sign) && t[1].glued && is_whole(t + 2) && t[2].glued &&
           lnt_token_is(t + 3, sign) && t[3].glued && is_whole(t + 4) && t[4].glued;
}

/* "2024-01-03", "12/24/1999", and where that is none "24/12/1999". */
static size_t speak_numeric_date(lnt_spoken_text *s, const lnt_token *t)
{
    if (is_triple(t, '-') && t->bytes == 4 && t[2].bytes <= 2 && t[4].bytes <= 2 &&
        is_date(value(t + 2), value(t + 4))) {
        speak_date(s, value(t + 2), value(t + 4), value(t));
        return 5;
    }
    if (!is_triple(t, '/') || t->bytes > 2 || t[2].bytes > 2 || (t[4].bytes != 2 && t[4].bytes != 4))
        return 0;
    const bool day_first = value(t) > 12;
    const uint64_t month = value(t + (day_first ? 2 : 0)), day = value(t + (day_first ? 0 : 2));
    if (!is_date(month, day))
        return 0;
    speak_date(s, month, day, value(t + 4));
    return 5;
}

/* ---- fractions, phones, the rest ---- */

static bool is_fraction(const lnt_token *t)
{
    return is_whole(t) && lnt_token_is(t + 1, '/') && t[1].glued && is_whole(t + 2) && t[2].glued &&
           !lnt_token_is(t + 3, '/') && value(t) && value(t) < value(t + 2) && value(t + 2) <= 100;
}

static void speak_fraction(lnt_spoken_text *s, uint64_t part, uint64_t of, bool behind_number)
{
    if (behind_number && part == 1)
        lnt_speak(s, "a");
    else
        lnt_speak_cardinal(s, part);
    if (of == 2)
        lnt_speak(s, part == 1 ? "half" : "halves");
    else if (of == 4)
        lnt_speak(s, "quarter");
    else
        lnt_speak_ordinal(s, of);
    if (part != 1 && of != 2)
        lnt_speak_plural(s);
}

/* "3/4", "2 1/2", and what they are of. */
static size_t speak_fractional(lnt_spoken_text *s, const lnt_token *t)
{
    const bool mixed = is_whole(t) && !t[1].glued && is_fraction(t + 1);
    const char *end;
    size_t n = mixed ? 4 : 3;
    if (!mixed && !is_fraction(t))
        return 0;
    if (mixed) {
        lnt_speak_cardinal(s, value(t));
        lnt_speak(s, "and");
    }
    speak_fraction(s, value(t + n - 3), value(t + n - 1), mixed);
    const char *unit = unit_at(t + n, &end);
    if (!unit)
        return n;
    if (!mixed)
        lnt_speak(s, "of a");
    speak_unit(s, unit, mixed);
    return n + tokens_before(t + n, end);
}

/* "555-0123", "555-555-0123", "1-800-555-0123": digits, with a pause. */
static size_t speak_phone(lnt_spoken_text *s, const lnt_token *t)
{
    size_t n = 1;
    if (!is_whole(t) || t->bytes > 3)
        return 0;
    while (n < 5 && lnt_token_is(t + n, '-') && t[n].glued && t[n + 1].glued && has_digits(t + n + 1, 3))
        n += 2;
    if (!lnt_token_is(t + n, '-') || !t[n].glued || !t[n + 1].glued || !has_digits(t + n + 1, 4))
        return 0;
    if (n < 4 && t->bytes < 3) /* the number of a country or of the line stands before two more */
        return 0;
    for (size_t i = 0; i <= n + 1; i += 2) {
        lnt_speak_digits(s, t[i].text, t[i].bytes);
        if (i <= n)
            lnt_speak_mark(s, ',');
    }
    return n + 2;
}

static size_t speak_ordinal_number(lnt_spoken_text *s, const lnt_token *t)
{
    if (!is_number(t) || find(t, '.') < t->bytes || !is_ordinal_end(t + 1))
        return 0;
    lnt_speak_ordinal(s, value(t));
    return 2;
}

/* "1990s", "90s" */
static size_t speak_decade(lnt_spoken_text *s, const lnt_token *t)
{
    if (!is_whole(t) || value(t) % 10 || !t[1].glued || !lnt_token_reads(t + 1, "s") ||
        (t->bytes != 4 && t->bytes != 2) || value(t) < 20)
        return 0;
    if (t->bytes == 4)
        lnt_speak_year(s, (unsigned)value(t));
    else
        lnt_speak_cardinal(s, value(t));
    lnt_speak_plural(s);
    return 2;
}

/* "2.0.1": a version, or an address if it has four parts. */
static size_t speak_dotted(lnt_spoken_text *s, const lnt_token *t)
{
    unsigned points = 0;
    if (t->kind != LNT_TOKEN_DOTTED)
        return 0;
    for (size_t i = 0; i < t->bytes; i++)
        points += t->text[i] == '.';
    for (size_t at = 0; at < t->bytes;) {
        lnt_token part = {.text = t->text + at, .kind = LNT_TOKEN_NUMBER};
        while (at + part.bytes < t->bytes && is_digit(part.text[part.bytes]))
            part.bytes++;
        if (at)
            lnt_speak(s, points == 3 ? "dot" : "point");
        if (points == 3)
            lnt_speak_digits(s, part.text, part.bytes);
        else
            speak_number(s, &part);
        at += part.bytes + 1;
    }
    return 1;
}

/* "3x4", "3 x 4 m" */
static size_t speak_by(lnt_spoken_text *s, const lnt_token *t)
{
    if (!is_number(t) || !(lnt_token_reads(t + 1, "x") || lnt_token_is(t + 1, 0xd7)) || !is_number(t + 2))
        return 0;
    speak_number(s, t);
    lnt_speak(s, "by");
    return 2;
}

static size_t speak_any(lnt_spoken_text *s, const lnt_token *t)
{
    if (!is_number(t))
        return 0;
    speak_plain(s, t);
    return 1;
}

size_t lnt_speak_amount(lnt_spoken_text *s, const lnt_token *t)
{
    static size_t (*const rules[])(lnt_spoken_text *, const lnt_token *) = {
        speak_dotted, speak_numeric_date, speak_time, speak_phone,    speak_fractional, speak_ordinal_number,
        speak_decade, speak_day_first,    speak_by,   speak_measured, speak_any,
    };
    size_t n = 0;
    for (size_t i = 0; !n && i < sizeof rules / sizeof *rules; i++)
        n = rules[i](s, t);
    return n;
}
