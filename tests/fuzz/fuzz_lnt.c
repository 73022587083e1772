/* fuzz_lnt.c — the loader: a damaged file whose hashes were repaired is checked whole, its golden vectors are
 * read, then it loads, binds and runs, or is refused. What is done with the model follows from the root hash
 * that the file came with (tests/c/try_model.h). */
#include "formats/golden.h"
#include "formats/hash.h"
#include "formats/tensor_file.h"
#include "tests/c/try_model.h"
#include "tests/fuzz/fuzz.h"

static void read_golden(const lnt_file *file)
{
    enum { LARGE = 1 << 20 };
    for (uint32_t i = 0; i < file->n_golden; i++) {
        const lnt_rec_golden *g = &file->golden[i];
        lnt_tensor t = {0};
        lnt_error err = {0};
        int64_t count;
        if (g->encoding == LNT_GOLDEN_SEEDED &&
            (!lnt_count(lnt_golden_extents(file, g), g->rank, &count) || count > LARGE))
            continue; /* a few bytes stand for many */
        fuzz_judge(lnt_golden_tensor(file, g, &lnt_malloc_allocator, &t, &err), &err);
        fuzz_read(&t);
        lnt_tensor_free(&lnt_malloc_allocator, &t);
    }
}

/* Repairs all hashes, or where sections lie outside of the file the one that is looked at before that is seen. */
static void repair(uint8_t *file, size_t size)
{
    lnt_rec_header *h = (lnt_rec_header *)file;
    lnt_error err = {0};
    if (lnt_file_rehash(file, size, &err) != LNT_OK && size >= sizeof *h &&
        h->n_sections <= LNT_FILE_MAX_SECTIONS &&
        h->n_sections <= (size - sizeof *h) / sizeof(lnt_rec_section))
        h->root_hash = lnt_hash_root(file, h->n_sections);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    lnt_error err = {0};
    lnt_file file;
    uint64_t recipe = 0;
    uint8_t *copy = fuzz_copy(bytes, size);
    fuzz_begin(10);
    if (size >= sizeof(lnt_rec_header))
        memcpy(&recipe, bytes + offsetof(lnt_rec_header, root_hash), sizeof recipe);
    repair(copy, size);
    const lnt_status status = lnt_file_check(copy, size, true, &file, &err);
    fuzz_judge(status, &err);
    if (status == LNT_OK)
        read_golden(&file);
    lnt_error_clear(&err);
    fuzz_judge(try_model(copy, size, recipe, &err), &err);
    free(copy);
    return 0;
}
