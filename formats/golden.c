/* golden.c — tensors of golden vectors. */
#include "formats/golden.h"

#include "base/checked.h"
#include "base/half.h"
#include "base/lnt_assert.h"

static float uniform(uint64_t seed, uint64_t element)
{
    uint64_t x = seed + (element + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    return (float)((int32_t)(x >> 32) >> 8) * 0x1p-23f; /* 24 bits: exact in float */
}

bool lnt_golden_fill(uint64_t seed, lnt_dtype dtype, size_t count, void *out)
{
    for (size_t i = 0; i < count; i++) {
        const float x = uniform(seed, i);
        switch (dtype) {
        case LNT_FLOAT: ((float *)out)[i] = x; break;
        case LNT_DOUBLE: ((double *)out)[i] = x; break;
        case LNT_FLOAT16: ((uint16_t *)out)[i] = lnt_float_to_f16(x); break;
        case LNT_BFLOAT16: ((uint16_t *)out)[i] = lnt_float_to_bf16(x); break;
        default: return false;
        }
    }
    return true;
}

/* The verifier has checked offsets and counts of the records against the file. */
lnt_status lnt_golden_tensor(const lnt_file *file, const lnt_rec_golden *record, const lnt_allocator *a,
                             lnt_tensor *out, lnt_error *err)
{
    LNT_ASSERT(record >= file->golden && record < file->golden + file->n_golden);
    const lnt_dtype dtype = (lnt_dtype)record->dtype;
    const size_t size = lnt_dtype_size(dtype);
    const int64_t *extents = lnt_golden_extents(file, record);
    int64_t count = record->count;
    size_t bytes;

    *out = (lnt_tensor){.dtype = dtype, .rank = 1, .dims = {count}};
    if (record->encoding != LNT_GOLDEN_SAMPLED) {
        LNT_REQUIRE(record->rank <= LNT_MAX_RANK && lnt_count(extents, record->rank, &count), err, LNT_E_FILE,
                    "golden vectors: bad extents");
        out->rank = record->rank;
        if (record->rank)
            memcpy(out->dims, extents, record->rank * sizeof *out->dims);
    }
    LNT_REQUIRE(size > 0 && lnt_mul_size((size_t)count, size, &bytes), err, LNT_E_FILE,
                "golden vectors: bad element type or size");
    out->bytes = bytes;
    out->data = lnt_alloc(a, bytes, err);
    if (!out->data)
        return LNT_E_MEMORY;
    if (record->encoding != LNT_GOLDEN_SEEDED) {
        if (bytes)
            memcpy(out->data, file->attr_data + record->data, bytes);
        return LNT_OK;
    }
    if (lnt_golden_fill(record->data, dtype, (size_t)count, out->data))
        return LNT_OK;
    lnt_free(a, out->data);
    out->data = NULL;
    return lnt_fail(err, LNT_E_FILE, "golden vectors: %s has no seeded rule", lnt_dtype_text(dtype));
}
