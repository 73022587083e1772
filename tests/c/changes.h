/* changes.h — seeded changes to a .lnt file, for tests that tamper with one. */
#ifndef TESTS_CHANGES_H
#define TESTS_CHANGES_H

#include "formats/lnt_format.h"

#include <string.h>

static inline uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

typedef struct file_change {
    uint32_t section; /* its kind */
    size_t at;        /* in the section */
    unsigned width;   /* 0: nothing changed */
    uint64_t before, after;
} file_change;

/* One number of a section other than tensors and strings, all sections alike, becomes another: a near one, a
 * small one, an extreme, most often one from elsewhere in the section. The file's structure is sound. */
static inline file_change change_number(uint8_t *bytes, uint64_t *seed)
{
    static const uint8_t widths[] = {1, 2, 4, 4, 8};
    const lnt_rec_header *h = (const lnt_rec_header *)bytes;
    const lnt_rec_section *table = (const lnt_rec_section *)(bytes + sizeof *h);
    const lnt_rec_section *s = &table[next_random(seed) % h->n_sections];
    file_change c = {.section = s->kind};
    const unsigned width = widths[next_random(seed) % sizeof widths];
    if (s->kind == LNT_SECTION_TENSORS || s->kind == LNT_SECTION_STRINGS || s->bytes < width)
        return c;
    uint8_t *first = bytes + s->offset;
    c.at = next_random(seed) % (s->bytes / width) * width;
    c.width = width;
    memcpy(&c.before, first + c.at, width);
    c.after = c.before;
    switch (next_random(seed) % 9) {
    case 0: c.after += 1; break;
    case 1: c.after -= 1; break;
    case 2: c.after = next_random(seed) % 16; break;
    case 3: c.after = UINT64_MAX; break;
    case 4: c.after ^= UINT64_C(1) << next_random(seed) % (8 * width); break;
    case 5: c.after = UINT64_MAX / 2 >> (64 - 8 * width); break;
    default: memcpy(&c.after, first + next_random(seed) % (s->bytes / width) * width, width); break;
    }
    memcpy(first + c.at, &c.after, width);
    return c;
}

#endif
