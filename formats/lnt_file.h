/* lnt_file.h — reading, checking and writing .lnt files.
 *
 * lnt_file_check is the one verifier: after it returns OK, every offset, count, number and graph edge in the
 * view may be trusted without a further test (operator ids and operand counts per operator are checked by
 * runtime/load.c, which knows the operators). */
#ifndef LNT_FORMATS_LNT_FILE_H
#define LNT_FORMATS_LNT_FILE_H

#include "base/memory.h"
#include "formats/lnt_format.h"
#include "formats/packed.h"

/* "values", "tensors", ...; "unknown" for a kind this version does not know. */
const char *lnt_section_text(uint32_t kind);

/* A checked file, seen section by section: records and how many there are, bytes and how long they are. */
typedef struct lnt_file {
    const uint8_t *bytes;
    size_t size;
    const char *strings;
    const lnt_rec_value *values;
    const int64_t *extents;
    const lnt_rec_constant *constants;
    const lnt_packed *packed;
    const lnt_rec_node *nodes;
    const uint32_t *operands;
    const lnt_rec_attr *attrs;
    const uint8_t *attr_data;
    const lnt_rec_program *programs;
    const uint8_t *instrs; /* 16 bytes each */
    const lnt_rec_subgraph *subgraphs;
    const lnt_rec_symbol *symbols;
    const lnt_rec_state *states;
    const lnt_rec_metadata *metadata;
    const lnt_rec_golden *golden;
    const lnt_rec_attachment *attachments;
    const uint8_t *attached;
    const uint8_t *tensors;
    uint32_t strings_bytes, n_values, n_extents, n_constants, n_packed, n_nodes, n_operands, n_attrs,
        n_programs, n_instrs, n_subgraphs, n_symbols, n_states, n_metadata, n_golden, n_attachments;
    uint64_t attr_data_bytes, attached_bytes, tensors_bytes;
} lnt_file;

/* Checks all structure and all hashes but those of tensor data; with full, those and all padding too.
 * bytes must be aligned to 64 and outlive the view. Failures are E_FILE and name the section. */
lnt_status lnt_file_check(const void *bytes, size_t size, bool full, lnt_file *out, lnt_error *err);

/* Value i of a checked file: type, extents, storage order; of a constant also how it is packed. */
lnt_operand lnt_file_value(const lnt_file *f, uint32_t i);

/* Extents of a golden vector; none of a scalar. */
static inline const int64_t *lnt_golden_extents(const lnt_file *f, const lnt_rec_golden *g)
{
    return g->rank ? f->extents + g->extents : NULL;
}

/* A file in memory: mapped, or read into allocated memory. */
typedef struct lnt_blob {
    const void *bytes;
    size_t size;
    const lnt_allocator *allocator; /* NULL: mapped */
} lnt_blob;

/* Maps path read-only, or with copy reads it into memory: the whole file, or of a bundle (a program with a model
 * behind it, boards/bundle.py) the model. */
lnt_status lnt_blob_open(const char *path, bool copy, const lnt_allocator *a, lnt_blob *out, lnt_error *err);
bool lnt_blob_is_bundle(const char *path);
void lnt_blob_close(lnt_blob *blob);

/* ---- writing ---- */

/* A section to be written: its records or bytes. */
typedef struct lnt_section_data {
    lnt_section kind;
    const void *bytes;
    size_t size;
} lnt_section_data;

/* Lays out header, table and sections, fills all hashes (constants' too: the constants section must come with
 * offsets set; its hash fields are filled in the image) and returns the image in *image, freed with lnt_free. */
lnt_status lnt_file_build(const lnt_section_data *sections, unsigned n, const lnt_allocator *a, void **image,
                          size_t *size, lnt_error *err);
/* Recomputes every hash of an image whose structure is sound (tests and fuzzers: tampering with repaired
 * hashes). */
lnt_status lnt_file_rehash(void *image, size_t size, lnt_error *err);
/* Writes bytes to a temporary file beside path, fsyncs, renames: path is whole or untouched. */
lnt_status lnt_write_atomic(const char *path, const void *bytes, size_t size, lnt_error *err);

#endif
