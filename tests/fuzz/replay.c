/* replay.c — a fuzz target as a plain test: every file given, and seeded changes of each.
 *
 *   replay_lnt CHANGES FILE...      CHANGES: changed copies of each file that are tried, too
 *
 * The input at work is kept in replay-input, to be tried again after a crash. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) || (*size = (size_t)ftell(f)) > 1 << 26 || fseek(f, 0, SEEK_SET))
        fuzz_fail(path);
    uint8_t *bytes = malloc(*size + 1);
    if (!bytes || fread(bytes, 1, *size, f) != *size)
        fuzz_fail(path);
    fclose(f);
    return bytes;
}

/* A byte becomes another, a run moves, or the end is cut; size only shrinks. */
static void change(uint8_t *bytes, size_t *size, uint64_t *seed)
{
    const size_t at = next_random(seed) % *size, from = next_random(seed) % *size;
    const size_t room = *size - (at > from ? at : from);
    switch (next_random(seed) % 8) {
    case 0: memmove(bytes + at, bytes + from, room < 8 ? room : 8); break;
    case 1: bytes[at] = next_random(seed) & 1 ? 0xff : 0; break;
    case 2: *size = next_random(seed) % 16 ? *size : at + 1; break;
    case 3: bytes[at]++; break;
    case 4: bytes[at] ^= (uint8_t)(1 << next_random(seed) % 8); break;
    default: bytes[at] = (uint8_t)next_random(seed); break;
    }
}

static void try(const uint8_t *bytes, size_t size)
{
    FILE *f = fopen("build/replay-input", "wb");
    if (f) {
        fwrite(bytes, 1, size, f);
        fclose(f);
    }
    LLVMFuzzerTestOneInput(bytes, size);
}

int main(int argc, char **argv)
{
    const int changes = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 2; i < argc; i++) {
        size_t size;
        uint8_t *bytes = read_file(argv[i], &size), *copy = malloc(size + 1);
        if (!copy)
            fuzz_fail("out of memory");
        try(bytes, size);
        for (int c = 0; c < changes && size; c++) {
            uint64_t seed = (uint64_t)c;
            size_t copy_size = size;
            memcpy(copy, bytes, size);
            for (unsigned n = 1 + next_random(&seed) % 4; n > 0; n--)
                change(copy, &copy_size, &seed);
            try(copy, copy_size);
        }
        free(copy);
        free(bytes);
    }
    fprintf(stderr, "%d files, %d changes each: %d passed, 0 failed\n", argc - 2, changes,
            (argc - 2) * (1 + changes));
    return 0;
}
