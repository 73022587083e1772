/* utf8.h — text that comes from outside, where only characters of UTF-8 may go. */
#ifndef LNT_BASE_UTF8_H
#define LNT_BASE_UTF8_H

#include <stdint.h>

/* Bytes of the character that NUL-terminated text begins with; 0 if it begins with none. */
static inline unsigned lnt_utf8_bytes(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    const unsigned n = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    if (n > 1 && (c[0] < 0xc2 || c[0] > 0xf4))
        return 0;
    for (unsigned i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    /* Longer than need be, halves of pairs of UTF-16, beyond the last character. */
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] >= 0xa0) || (c[0] == 0xf0 && c[1] < 0x90) ||
        (c[0] == 0xf4 && c[1] >= 0x90))
        return 0;
    return n;
}

/* Code point of the character that text begins with, which has n bytes by lnt_utf8_bytes. */
static inline uint32_t lnt_utf8_code(const char *text, unsigned n)
{
    const unsigned char *c = (const unsigned char *)text;
    uint32_t code = n == 1 ? c[0] : c[0] & (0x7fu >> n);
    for (unsigned i = 1; i < n; i++)
        code = code << 6 | (c[i] & 0x3f);
    return code;
}

/* Writes a code point below 0x110000 to to, which has room for 4 bytes; returns how many it took. */
static inline unsigned lnt_utf8_put(uint32_t code, char *to)
{
    const unsigned n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (unsigned i = n; --i > 0; code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(n == 1 ? code : (0xf00u >> n & 0xff) | code);
    return n;
}

#endif
