/* fuzz_tensors.c — tensor files: the bytes are tried as .pb, .npy and .npz; a tensor that is read can be read
 * to its end. */
#include "formats/tensor_file.h"
#include "tests/fuzz/fuzz.h"

/* What was read last, kept where no compiler can tell that nobody asks. */
volatile uint8_t lnt_fuzz_sum;

static void look(lnt_status status, lnt_tensor *t, const lnt_error *err)
{
    fuzz_judge(status, err);
    if (status != LNT_OK)
        return;
    for (size_t i = 0; i < t->bytes; i++)
        lnt_fuzz_sum = (uint8_t)(lnt_fuzz_sum + ((const uint8_t *)t->data)[i]);
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
