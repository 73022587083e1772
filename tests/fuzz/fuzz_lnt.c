/* fuzz_lnt.c — the loader: a damaged file whose hashes were repaired loads, binds and runs, or is refused. */
#include "formats/lnt_file.h"
#include "tests/c/try_model.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    lnt_error err = {0};
    uint8_t *copy = lnt_alloc(&lnt_malloc_allocator, size, &err);
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, bytes, size);
    if (lnt_file_rehash(copy, size, &err) == LNT_OK) {
        lnt_error_clear(&err);
        fuzz_judge(try_model(copy, size, &err), &err);
    }
    lnt_free(&lnt_malloc_allocator, copy);
    return 0;
}
