/* replay.c — a fuzz target as a plain test: every file given, and seeded changes of each.
 *
 *   replay_lnt CHANGES FILE...      CHANGES: changed copies of each file that are tried, too
 *
 * The input at work is kept in replay-input, to be tried again after a crash. */
#include "tests/c/changes.h"
#include "tests/fuzz/fuzz.h"

/* Only some targets have one. */
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

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

static uint64_t seed;

/* A byte becomes another, a run moves, or the end is cut; size only shrinks. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
    const size_t at = size ? next_random(&seed) % size : 0, from = size ? next_random(&seed) % size : 0;
    const size_t room = size - (at > from ? at : from);
    (void)max;
    if (!size)
        return 0;
    switch (next_random(&seed) % 8) {
    case 0: memmove(data + at, data + from, room < 8 ? room : 8); break;
    case 1: data[at] = next_random(&seed) & 1 ? 0xff : 0; break;
    case 2: return next_random(&seed) % 16 ? size : at + 1;
    case 3: data[at]++; break;
    case 4: data[at] ^= (uint8_t)(1 << next_random(&seed) % 8); break;
    default: data[at] = (uint8_t)next_random(&seed); break;
    }
    return size;
}

/* One change of the target's own, if it has a mutator, else a general one. */
static size_t change(uint8_t *data, size_t size, size_t max)
{
    return LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(data, size, max, next_random(&seed))
                                   : LLVMFuzzerMutate(data, size, max);
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
    enum { ROOM = 1 << 12 }; /* to grow */
    const int changes = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 2; i < argc; i++) {
        size_t size;
        uint8_t *bytes = read_file(argv[i], &size), *copy = malloc(size + ROOM);
        if (!copy)
            fuzz_fail("out of memory");
        try(bytes, size);
        for (int c = 0; c < changes && size; c++) {
            size_t copy_size = size;
            seed = (uint64_t)c;
            memcpy(copy, bytes, size);
            for (unsigned n = 1 + next_random(&seed) % 4; n > 0; n--)
                copy_size = change(copy, copy_size, size + ROOM);
            try(copy, copy_size);
        }
        free(copy);
        free(bytes);
    }
    fprintf(stderr, "%d files, %d changes each: %d passed, 0 failed\n", argc - 2, changes,
            (argc - 2) * (1 + changes));
    return 0;
}
