/* hash.h — the hashes of a .lnt file: XXH3-64 throughout. */
#ifndef LNT_FORMATS_HASH_H
#define LNT_FORMATS_HASH_H

#include "formats/lnt_format.h"

uint64_t lnt_hash(const void *bytes, size_t size);
/* Header, its root hash taken as 0, and the n_sections records behind it. n_sections <=
 * LNT_FILE_MAX_SECTIONS. */
uint64_t lnt_hash_root(const void *file, uint32_t n_sections);
/* The tensors section's: of the hashes of all constants, in order. */
uint64_t lnt_hash_tensors(const lnt_rec_constant *constants, uint32_t n);

#endif
