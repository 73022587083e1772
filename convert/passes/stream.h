/* stream.h — behind a value that a sound can be computed from piece by piece (stream_cut.c). */
#ifndef LNT_CONVERT_PASSES_STREAM_H
#define LNT_CONVERT_PASSES_STREAM_H

#include "convert/graph/graph.h"

/* The most that the starts of pieces may have to be multiples of, in frames: tiles of convolutions by Winograd's
 * transform must lie as they do in the whole. A divisor of it will do. */
enum { LNT_STREAM_ALIGN = 12 };

/* Frames after which lines of tiles begin at a frame again, where `rate` places are a frame and n's taps (its
 * dilations) make tiles of so many outputs; 0: too many, or tiles that reach too far. */
int64_t lnt_stream_step(const lnt_gnode *n, int64_t tile, int64_t rate);
/* Does n, whose tiles have so many outputs, stand anywhere but behind the cut, or may be computed by tiles there? */
bool lnt_stream_allows(const lnt_graph *g, const lnt_gnode *n, int64_t tile);

#endif
