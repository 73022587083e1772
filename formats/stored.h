/* stored.h — constants that take fewer bytes in the file than kernels read: who loads it makes them ready.
 *
 * Panels round extents up and have sums of their columns behind them, which is much where there are few
 * columns. Weights that kernels read as floats may be no finer than bytes. */
#ifndef LNT_FORMATS_STORED_H
#define LNT_FORMATS_STORED_H

#include "formats/packed.h"

/* lnt_rec_value.stored */
typedef enum lnt_stored {
    LNT_STORED_READY = 0, /* as kernels read it: used in place */
    LNT_STORED_PLAIN = 1, /* packed constants: in ONNX order, to be packed as their record says */
    /* Floats, packed or not: int8 in ONNX order, then from a multiple of 4 on a scale, float, for each place
     * along the first axis, with which they are multiplied. */
    LNT_STORED_INT8 = 2,
    LNT_STORED_HALF = 3,    /* floats: float16 in ONNX order */
    LNT_STORED_BFLOAT16 = 4 /* bfloat16 */
} lnt_stored;

/* How the elements of a packed constant are stored in ONNX order. */
lnt_stored lnt_stored_unpacked(const lnt_packed *p);
/* Bytes in the file of a constant whose extents are known; NULL, or what is wrong with that form of it. */
const char *lnt_stored_bytes(uint32_t stored, const lnt_operand *o, size_t *bytes);
/* Bytes that lnt_stored_restore needs to work in. */
size_t lnt_stored_room(uint32_t stored, const lnt_operand *o);
/* From the file's bytes to those that kernels read: o->packed says how they are arranged, dst has room for them. */
void lnt_stored_restore(uint32_t stored, const lnt_operand *o, const void *src, void *room, void *dst);
/* The floats that bytes and scales stand for. */
void lnt_stored_widen(const lnt_operand *o, const int8_t *bytes, const float *scale, float *to);

#endif
