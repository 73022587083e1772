/* fuzz_lnt.c — the loader: a damaged file whose hashes were repaired is checked whole, its golden vectors are
 * read, then it loads, binds and runs, or is refused.
 *
 * The mutator of its own keeps to the file's structure most of the time: numbers in records change, records
 * are doubled and removed, sections come from another file. */
#include "formats/golden.h"
#include "formats/tensor_file.h"
#include "base/checked.h"
#include "tests/c/changes.h"
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
        if (g->encoding == LNT_GOLDEN_SEEDED && (!lnt_count(g->dims, g->rank, &count) || count > LARGE))
            continue; /* a few bytes stand for many */
        fuzz_judge(lnt_golden_tensor(file, g, &lnt_malloc_allocator, &t, &err), &err);
        fuzz_read(&t);
        lnt_tensor_free(&lnt_malloc_allocator, &t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const lnt_execution_mode mode = size / LNT_FILE_ALIGN % 2 ? LNT_PARALLEL : LNT_SEQUENTIAL;
    lnt_error err = {0};
    lnt_file file;
    uint8_t *copy = fuzz_copy(bytes, size);
    (void)lnt_file_rehash(copy, size, &err); /* refuses what the check refuses, too */
    lnt_error_clear(&err);
    const lnt_status status = lnt_file_check(copy, size, true, &file, &err);
    fuzz_judge(status, &err);
    if (status == LNT_OK)
        read_golden(&file);
    lnt_error_clear(&err);
    fuzz_judge(try_model(copy, size, mode, &err), &err);
    free(copy);
    return 0;
}

/* ---- mutations ---- */

static const lnt_rec_section *table_of(const uint8_t *file, uint32_t *n)
{
    const lnt_rec_header *h = (const lnt_rec_header *)file;
    *n = h->n_sections;
    return (const lnt_rec_section *)(file + sizeof *h);
}

/* Lays the sections of file out anew with other contents for one; the size, or 0 if it is more than max. */
static size_t replace_section(const uint8_t *file, uint32_t kind, const void *bytes, size_t size,
                              uint8_t *out, size_t max)
{
    lnt_section_data section[LNT_FILE_MAX_SECTIONS];
    uint32_t n;
    const lnt_rec_section *table = table_of(file, &n);
    for (uint32_t i = 0; i < n; i++) {
        section[i] = (lnt_section_data){(lnt_section)table[i].kind, file + table[i].offset, table[i].bytes};
        if (table[i].kind == kind)
            section[i] = (lnt_section_data){(lnt_section)kind, bytes, size};
    }
    void *image = NULL;
    size_t built = 0;
    lnt_error err = {0};
    if (lnt_file_build(section, n, &lnt_malloc_allocator, &image, &built, &err) != LNT_OK)
        return 0;
    if (built <= max)
        memcpy(out, image, built);
    lnt_free(&lnt_malloc_allocator, image);
    return built <= max ? built : 0;
}

static size_t record_bytes(uint32_t kind)
{
    switch (kind) {
    case LNT_SECTION_VALUES: return sizeof(lnt_rec_value);
    case LNT_SECTION_CONSTANTS: return sizeof(lnt_rec_constant);
    case LNT_SECTION_PACKED: return sizeof(lnt_packed);
    case LNT_SECTION_NODES: return sizeof(lnt_rec_node);
    case LNT_SECTION_OPERANDS: return sizeof(uint32_t);
    case LNT_SECTION_ATTRS: return sizeof(lnt_rec_attr);
    case LNT_SECTION_PROGRAMS: return sizeof(lnt_rec_program);
    case LNT_SECTION_INSTRS: return 16;
    case LNT_SECTION_SUBGRAPHS: return sizeof(lnt_rec_subgraph);
    case LNT_SECTION_SYMBOLS: return sizeof(lnt_rec_symbol);
    case LNT_SECTION_STATES: return sizeof(lnt_rec_state);
    case LNT_SECTION_METADATA: return sizeof(lnt_rec_metadata);
    case LNT_SECTION_GOLDEN: return sizeof(lnt_rec_golden);
    }
    return 8;
}

/* A record is removed, or one more comes behind it. */
static size_t change_count(uint8_t *file, size_t size, size_t max, uint64_t *seed)
{
    uint32_t n;
    const lnt_rec_section *table = table_of(file, &n), *s = table + next_random(seed) % n;
    const size_t record = record_bytes(s->kind);
    if (s->bytes < record)
        return size;
    const size_t at = next_random(seed) % (s->bytes / record) * record;
    const bool remove = next_random(seed) % 2;
    const size_t other = remove ? s->bytes - record : s->bytes + record;
    uint8_t *bytes = malloc(other + 1);
    if (!bytes)
        return size;
    const uint8_t *old = file + s->offset;
    memcpy(bytes, old, at + (remove ? 0 : record));
    memcpy(bytes + at + (remove ? 0 : record), old + at + (remove ? record : 0),
           s->bytes - at - (remove ? record : 0));
    const size_t built = replace_section(file, s->kind, bytes, other, file, max);
    free(bytes);
    return built ? built : size;
}

/* May be taken apart: there are sections, and all lie in the file. */
static bool sound(const uint8_t *file, size_t size)
{
    uint32_t n;
    const lnt_rec_section *table;
    if (size < sizeof(lnt_rec_header))
        return false;
    table = table_of(file, &n);
    if (n < 1 || n > LNT_FILE_MAX_SECTIONS || (size - sizeof(lnt_rec_header)) / sizeof *table < n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (table[i].offset > size || table[i].bytes > size - table[i].offset)
            return false;
    return true;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed_)
{
    uint64_t seed = seed_;
    uint32_t n;
    const uint32_t way = next_random(&seed) % 8;
    if (way == 0 || !sound(data, size))
        return LLVMFuzzerMutate(data, size, max);
    if (way == 1)
        return change_count(data, size, max, &seed);
    if (way == 2) {
        const lnt_rec_section *table = table_of(data, &n), *s = table + next_random(&seed) % n;
        LLVMFuzzerMutate(data + s->offset, s->bytes, s->bytes);
        return size;
    }
    for (unsigned k = 1 + next_random(&seed) % 2; k > 0 && sound(data, size);
         k--) /* a section may lie on the table */
        (void)change_number(data, &seed);
    return size;
}

/* File a with one section of file b. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max, unsigned seed_)
{
    uint64_t seed = seed_;
    uint32_t n;
    if (!sound(a, a_size) || !sound(b, b_size))
        return 0;
    const lnt_rec_section *table = table_of(b, &n), *s = table + next_random(&seed) % n;
    return replace_section(a, s->kind, b + s->offset, s->bytes, out, max);
}
