/* utf8.h — text that comes from outside, where only characters of UTF-8 may go. */
#ifndef LNT_BASE_UTF8_H
#define LNT_BASE_UTF8_H

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

#endif
