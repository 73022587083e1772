/* fuzz_tensors.c — tensor files: the bytes are tried as .pb, .npy and .npz; a tensor that is read can be read
 * to its end. */
#include "formats/tensor_file.h"
#include "tests/fuzz/fuzz.h"

static void look(lnt_status status, lnt_tensor *t, const lnt_error *err)
{
    fuzz_judge(status, err);
    if (status != LNT_OK)
        return;
    fuzz_read(t);
    lnt_tensor_free(&lnt_malloc_allocator, t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const lnt_allocator *a = &lnt_malloc_allocator;
    lnt_tensor t = {0};
    char name[32];
    lnt_error err = {0};
    look(lnt_tensor_parse_pb(bytes, size, a, &t, name, sizeof name, &err), &t, &err);
    lnt_error_clear(&err);
    look(lnt_tensor_parse_npy(bytes, size, a, &t, &err), &t, &err);
    lnt_error_clear(&err);
    look(lnt_tensor_parse_npz(bytes, size, NULL, a, &t, &err), &t, &err);
    lnt_error_clear(&err);
    look(lnt_tensor_parse_npz(bytes, size, "x", a, &t, &err), &t, &err);
    return 0;
}
