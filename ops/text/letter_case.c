/* letter_case.c — upper and lower case of characters, without a locale. */
#include "ops/text/words.h"

/* Upper-case letters first, first + step, … up to last; the lower-case ones are so much further on. */
typedef struct letters {
    uint16_t first, last, step;
    int16_t further;
} letters;

static const letters list[] = {
    {'A', 'Z', 1, 32},       {0xc0, 0xd6, 1, 32},     {0xd8, 0xde, 1, 32},    {0x100, 0x12e, 2, 1},
    {0x132, 0x136, 2, 1},    {0x139, 0x147, 2, 1},    {0x14a, 0x176, 2, 1},   {0x178, 0x178, 1, -121},
    {0x179, 0x17d, 2, 1},    {0x1cd, 0x1db, 2, 1},    {0x1de, 0x1ee, 2, 1},   {0x1f8, 0x21e, 2, 1},
    {0x222, 0x232, 2, 1},    {0x386, 0x386, 1, 38},   {0x388, 0x38a, 1, 37},  {0x38c, 0x38c, 1, 64},
    {0x38e, 0x38f, 1, 63},   {0x391, 0x3a1, 1, 32},   {0x3a3, 0x3ab, 1, 32},  {0x400, 0x40f, 1, 80},
    {0x410, 0x42f, 1, 32},   {0x460, 0x480, 2, 1},    {0x48a, 0x4be, 2, 1},   {0x4c1, 0x4cd, 2, 1},
    {0x4d0, 0x52e, 2, 1},    {0x531, 0x556, 1, 48},   {0x1e00, 0x1e94, 2, 1}, {0x1ea0, 0x1efe, 2, 1},
    {0x24b6, 0x24cf, 1, 26}, {0xff21, 0xff3a, 1, 32},
};

uint32_t lnt_to_lower(uint32_t code)
{
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (code >= list[i].first && code <= list[i].last && (code - list[i].first) % list[i].step == 0)
            return (uint32_t)((int32_t)code + list[i].further);
    return code;
}

uint32_t lnt_to_upper(uint32_t code)
{
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        const int64_t upper = (int64_t)code - list[i].further;
        if (upper >= list[i].first && upper <= list[i].last && (upper - list[i].first) % list[i].step == 0)
            return (uint32_t)upper;
    }
    return code;
}
