/* verify.c — the verifier: header, section table, hashes, padding. Records and graph: verify_*.c. */
#include "formats/verify.h"

#include "base/checked.h"
#include "base/lnt_assert.h"
#include "formats/byte_order.h"
#include "formats/hash.h"

#include <inttypes.h>
#include <string.h>

const char *lnt_section_text(uint32_t kind)
{
    switch (kind) {
#define X(name, number, text)                                                                                \
    case number: return text;
        LNT_SECTION_LIST(X)
#undef X
    }
    return "unknown";
}

static const lnt_rec_section *section_table(const lnt_file *f)
{
    return (const lnt_rec_section *)(f->bytes + sizeof(lnt_rec_header));
}

static lnt_status check_header(const lnt_file *f, lnt_error *err)
{
    const lnt_rec_header *h = (const lnt_rec_header *)f->bytes;
    LNT_CHECK(f->size >= sizeof *h, err, "header: the file has %zu bytes, too few for a .lnt file", f->size);
    LNT_CHECK(memcmp(h->magic, LNT_FILE_MAGIC, sizeof h->magic) == 0, err,
              "header: not a .lnt file (an .onnx model must be converted first)");
    LNT_CHECK(h->version == LNT_FILE_VERSION, err,
              "header: format version %" PRIu32 ", this build reads version %d: convert the model again",
              h->version, LNT_FILE_VERSION);
    LNT_CHECK(h->file_bytes == f->size, err,
              "header: the file should have %" PRIu64 " bytes and has %zu (truncated or appended to)",
              h->file_bytes, f->size);
    LNT_CHECK(h->n_sections <= LNT_FILE_MAX_SECTIONS, err, "header: %" PRIu32 " sections, at most %d allowed",
              h->n_sections, LNT_FILE_MAX_SECTIONS);
    LNT_CHECK((f->size - sizeof *h) / sizeof(lnt_rec_section) >= h->n_sections, err,
              "header: no room for a table of %" PRIu32 " sections", h->n_sections);
    for (unsigned i = 0; i < sizeof h->reserved / sizeof *h->reserved; i++)
        LNT_CHECK(h->reserved[i] == 0, err, "header: a reserved field is not 0");
    LNT_CHECK(h->root_hash == lnt_hash_root(f->bytes, h->n_sections), err,
              "header or section table: damaged (root hash differs)");
    return LNT_OK;
}

/* Number of records of record_bytes in section s, whose offset and size are already known to be sound. */
static lnt_status count_records(const lnt_rec_section *s, size_t record_bytes, uint32_t *count,
                                lnt_error *err)
{
    LNT_CHECK(s->bytes % record_bytes == 0, err,
              "%s section: %" PRIu64 " bytes are no multiple of a record's %zu", lnt_section_text(s->kind),
              s->bytes, record_bytes);
    LNT_CHECK(s->bytes / record_bytes < LNT_FILE_NONE, err, "%s section: too many records",
              lnt_section_text(s->kind));
    *count = (uint32_t)(s->bytes / record_bytes);
    return LNT_OK;
}

/* Enters section s into the view. */
static lnt_status view_section(lnt_file *f, const lnt_rec_section *s, lnt_error *err)
{
    enum { INSTR_BYTES = 16 };
    const void *data = f->bytes + s->offset;
    switch (s->kind) {
#define RECORDS(kind, member)                                                                                \
    case LNT_SECTION_##kind: f->member = data; return count_records(s, sizeof *f->member, &f->n_##member, err)
        RECORDS(VALUES, values);
        RECORDS(EXTENTS, extents);
        RECORDS(CONSTANTS, constants);
        RECORDS(PACKED, packed);
        RECORDS(NODES, nodes);
        RECORDS(OPERANDS, operands);
        RECORDS(ATTRS, attrs);
        RECORDS(PROGRAMS, programs);
        RECORDS(SUBGRAPHS, subgraphs);
        RECORDS(SYMBOLS, symbols);
        RECORDS(STATES, states);
        RECORDS(METADATA, metadata);
        RECORDS(GOLDEN, golden);
        RECORDS(ATTACHMENTS, attachments);
#undef RECORDS
    case LNT_SECTION_INSTRS: f->instrs = data; return count_records(s, INSTR_BYTES, &f->n_instrs, err);
    case LNT_SECTION_STRINGS: f->strings = data; return count_records(s, 1, &f->strings_bytes, err);
    case LNT_SECTION_ATTR_DATA:
        f->attr_data = data;
        f->attr_data_bytes = s->bytes;
        return LNT_OK;
    case LNT_SECTION_ATTACHED:
        f->attached = data;
        f->attached_bytes = s->bytes;
        return LNT_OK;
    case LNT_SECTION_TENSORS:
        f->tensors = data;
        f->tensors_bytes = s->bytes;
        return LNT_OK;
    }
    LNT_CHECK(s->kind != LNT_SECTION_OLD_VALUES && s->kind != LNT_SECTION_OLD_GOLDEN, err,
              "section table: section of kind %" PRIu32 " is of an older version: convert the model again",
              s->kind);
    LNT_CHECK(!(s->flags & LNT_SECTION_REQUIRED), err,
              "section table: section of kind %" PRIu32 " is required and unknown: this build is too old",
              s->kind);
    return LNT_OK;
}

/* Sections stand back to back in the order of the table, each starting on the next multiple of 64, and fill
 * the file: so none overlap and nothing is hidden between them. */
static lnt_status check_sections(lnt_file *f, uint32_t n, lnt_error *err)
{
    const lnt_rec_section *table = section_table(f);
    uint64_t end = sizeof(lnt_rec_header) + n * sizeof *table;
    for (uint32_t i = 0; i < n; i++) {
        const lnt_rec_section *s = &table[i];
        const char *text = lnt_section_text(s->kind);
        const uint64_t expected = (end + LNT_FILE_ALIGN - 1) / LNT_FILE_ALIGN * LNT_FILE_ALIGN;
        for (uint32_t j = 0; j < i; j++)
            LNT_CHECK(table[j].kind != s->kind, err, "section table: two sections of kind %" PRIu32 " (%s)",
                      s->kind, text);
        LNT_CHECK((s->flags & ~(uint32_t)LNT_SECTION_REQUIRED) == 0, err,
                  "%s section: flags %#" PRIx32 " are not defined", text, s->flags);
        LNT_CHECK(s->offset == expected, err,
                  "%s section: starts at byte %" PRIu64 " instead of %" PRIu64
                  " (gap, overlap or misaligned)",
                  text, s->offset, expected);
        LNT_CHECK(s->offset <= f->size && s->bytes <= f->size - s->offset, err,
                  "%s section: %" PRIu64 " bytes at %" PRIu64 " reach past the end of the file", text,
                  s->bytes, s->offset);
        LNT_TRY(view_section(f, s, err));
        end = s->offset + s->bytes;
    }
    LNT_CHECK((end + LNT_FILE_ALIGN - 1) / LNT_FILE_ALIGN * LNT_FILE_ALIGN == f->size, err,
              "header: the sections end at byte %" PRIu64 ", the file at %zu", end, f->size);
    LNT_CHECK(f->strings_bytes > 0, err, "strings section: missing or empty");
    LNT_CHECK(f->n_subgraphs > 0, err, "subgraphs section: missing or empty");
    return LNT_OK;
}

static lnt_status check_section_hashes(const lnt_file *f, uint32_t n, lnt_error *err)
{
    const lnt_rec_section *table = section_table(f);
    for (uint32_t i = 0; i < n; i++) {
        const lnt_rec_section *s = &table[i];
        const uint64_t hash = s->kind == LNT_SECTION_TENSORS
                                  ? lnt_hash_tensors(f->constants, f->n_constants)
                                  : lnt_hash(f->bytes + s->offset, (size_t)s->bytes);
        LNT_CHECK(hash == s->hash, err, "%s section: damaged (hash differs)", lnt_section_text(s->kind));
    }
    return LNT_OK;
}

static bool all_zero(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Zero from the end of one thing to the start of the next. */
static lnt_status check_gap(const lnt_file *f, uint64_t from, uint64_t to, lnt_error *err)
{
    LNT_CHECK(all_zero(f->bytes + from, (size_t)(to - from)), err,
              "padding between bytes %" PRIu64 " and %" PRIu64 " is not zero", from, to);
    return LNT_OK;
}

static lnt_status check_tensors(const lnt_file *f, lnt_error *err)
{
    const uint64_t start = f->tensors ? (uint64_t)(f->tensors - f->bytes) : 0;
    uint64_t end = start;
    for (uint32_t i = 0; i < f->n_constants; i++) {
        const lnt_rec_constant *c = &f->constants[i];
        LNT_TRY(check_gap(f, end, start + c->offset, err));
        end = start + c->offset + c->bytes;
        LNT_CHECK(lnt_hash(f->tensors + c->offset, (size_t)c->bytes) == c->hash, err,
                  "tensors section: constant %" PRIu32 " (%.100s) is damaged (hash differs)", i,
                  f->strings + f->values[c->value].name);
    }
    return check_gap(f, end, start + f->tensors_bytes, err);
}

static lnt_status check_padding(const lnt_file *f, uint32_t n, lnt_error *err)
{
    const lnt_rec_section *table = section_table(f);
    uint64_t end = sizeof(lnt_rec_header) + n * sizeof *table;
    for (uint32_t i = 0; i < n; i++) {
        LNT_TRY(check_gap(f, end, table[i].offset, err));
        end = table[i].offset + table[i].bytes;
    }
    return check_gap(f, end, f->size, err);
}

lnt_status lnt_file_check(const void *bytes, size_t size, bool full, lnt_file *out, lnt_error *err)
{
    LNT_REQUIRE(!lnt_host_big_endian, err, LNT_E_UNSUPPORTED,
                "this machine is big-endian; .lnt files are used in place and need a little-endian one");
    LNT_REQUIRE((uintptr_t)bytes % LNT_FILE_ALIGN == 0, err, LNT_E_ARGUMENT,
                "the file's bytes must lie at a multiple of %d", LNT_FILE_ALIGN);
    lnt_file f = {.bytes = bytes, .size = size};
    LNT_TRY(check_header(&f, err));
    const uint32_t n = ((const lnt_rec_header *)bytes)->n_sections;
    LNT_TRY(check_sections(&f, n, err));
    LNT_TRY(check_section_hashes(&f, n, err));
    LNT_TRY(lnt_verify_records(&f, err));
    LNT_TRY(lnt_verify_graph(&f, err));
    if (full) {
        LNT_TRY(check_padding(&f, n, err));
        LNT_TRY(check_tensors(&f, err));
    }
    *out = f;
    return LNT_OK;
}

lnt_operand lnt_file_value(const lnt_file *f, uint32_t i)
{
    LNT_ASSERT(i < f->n_values);
    const lnt_rec_value *v = &f->values[i];
    const lnt_rec_constant *c = v->constant == LNT_FILE_NONE ? NULL : &f->constants[v->constant];
    lnt_operand o = {.dtype = v->dtype, .rank = v->rank, .order = v->order};
    if (v->rank <= LNT_MAX_RANK && v->rank > 0)
        memcpy(o.dims, f->extents + v->extents, v->rank * sizeof *o.dims);
    o.packed = c && c->packed != LNT_FILE_NONE ? &f->packed[c->packed] : NULL;
    return o;
}
