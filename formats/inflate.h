/* inflate.h — deflated bytes (RFC 1951, P. Deutsch, DEFLATE Compressed Data Format Specification version 1.3, 1996). */
#ifndef LNT_FORMATS_INFLATE_H
#define LNT_FORMATS_INFLATE_H

#include "base/error.h"

#include <stdint.h>

/* No more bytes than this many times those of the stream can come of it. */
enum { LNT_INFLATE_MOST = 1032 };

/* Fills out[0..out_bytes) from the stream in[0..in_bytes). LNT_E_FILE where that is damaged, or is not of exactly so
 * many bytes. */
lnt_status lnt_inflate(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes, lnt_error *err);

#endif
