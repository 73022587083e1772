/* phones.c — phonemes of English as ARPAbet has them, marks and the ends of words. */
#include "speech/phones.h"

#include "base/lnt_assert.h"

#include <string.h>

static const char phonemes[LNT_PHONES][3] = {"AA", "AE", "AH", "AO", "AW", "AY", "B",  "CH", "D",  "DH",
                                             "EH", "ER", "EY", "F",  "G",  "HH", "IH", "IY", "JH", "K",
                                             "L",  "M",  "N",  "NG", "OW", "OY", "P",  "R",  "S",  "SH",
                                             "T",  "TH", "UH", "UW", "V",  "W",  "Y",  "Z",  "ZH"};
static const char marks[] = "|.,?!:;"; /* from LNT_PHONE_WORD on */

/* What voices call phonemes: letters of the International Phonetic Alphabet, and a capital one for each diphthong. */
static const uint16_t letters[LNT_PHONES] = {
    0x251, 0xe6,  0x28c, 0x254, 'W', 'I',   'b',   0x2a7, 'd', 0xf0, 0x25b, 0x25d, 'A',
    'f',   0x261, 'h',   0x26a, 'i', 0x2a4, 'k',   'l',   'm', 'n',  0x14b, 'O',   'Y',
    'p',   0x279, 's',   0x283, 't', 0x3b8, 0x28a, 'u',   'v', 'w',  'j',   'z',   0x292};

enum { NONE = 0xff, AH = 2, ER = 11 };

static bool is_vowel(unsigned number)
{
    return strchr("AEIOU", *phonemes[number]) != NULL;
}

bool lnt_phone_valid(uint8_t symbol)
{
    return lnt_phone_is_phoneme(symbol) && is_vowel(symbol >> 2) == ((symbol & 3) != 0);
}

uint8_t lnt_phone_mark(char mark)
{
    const char *at = strchr(marks, mark);
    LNT_ASSERT(mark && at);
    return (uint8_t)(4 * (LNT_PHONE_WORD + (at - marks)));
}

uint8_t lnt_phone_named(const char *name, size_t bytes)
{
    if (bytes == 1 && *name && strchr(marks, *name))
        return lnt_phone_mark(*name);
    const bool digit = bytes > 1 && name[bytes - 1] >= '0' && name[bytes - 1] <= '2';
    bytes -= digit;
    for (unsigned i = 0; i < LNT_PHONES; i++)
        if (strlen(phonemes[i]) == bytes && memcmp(phonemes[i], name, bytes) == 0 && (is_vowel(i) || !digit))
            return (uint8_t)(4 * i + (digit ? (unsigned)(name[bytes] - '0') + 1 : is_vowel(i)));
    return NONE;
}

size_t lnt_phone_name(uint8_t symbol, char *to)
{
    const unsigned number = symbol >> 2;
    if (number >= LNT_PHONES) {
        LNT_ASSERT(number < LNT_PHONES + sizeof marks - 1);
        *to = marks[number - LNT_PHONE_WORD];
        return 1;
    }
    size_t n = strlen(phonemes[number]);
    memcpy(to, phonemes[number], n);
    if (symbol & 3)
        to[n++] = (char)('0' + (symbol & 3) - 1);
    return n;
}

void lnt_phones_add(lnt_phone_list *list, uint8_t symbol)
{
    if (list->status == LNT_OK)
        list->status = LNT_GROW(&lnt_malloc_allocator, list->symbol, list->room, list->n, list->err);
    if (list->status == LNT_OK)
        list->symbol[list->n++] = symbol;
}

void lnt_phones_add_names(lnt_phone_list *list, const char *names)
{
    for (const char *at = names; *at; at += *at == ' ') {
        const size_t n = strcspn(at, " ");
        const uint8_t symbol = lnt_phone_named(at, n);
        LNT_ASSERT(symbol != NONE);
        lnt_phones_add(list, symbol);
        at += n;
    }
}

unsigned lnt_phone_codes(uint8_t symbol, uint32_t to[2])
{
    const unsigned number = symbol >> 2;
    const int stress = lnt_phone_stress(symbol);
    if (number >= LNT_PHONES) {
        LNT_ASSERT(number < LNT_PHONES + sizeof marks - 1);
        to[0] = number == LNT_PHONE_WORD ? ' ' : (uint32_t)marks[number - LNT_PHONE_WORD];
        return 1;
    }
    const unsigned n = stress > 0;
    to[0] = stress == 1 ? 0x2c8 : 0x2cc;
    to[n] = stress == 0 && number == AH ? 0x259 : stress == 0 && number == ER ? 0x25a : letters[number];
    return n + 1;
}
