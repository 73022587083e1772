/* stored.h — constants that take fewer bytes in the file than kernels read.
 *
 * Panels round extents up and have sums of their columns behind them, which is much where there are few
 * columns. Such constants may be stored as they were before; who loads the file makes the panels. */
#ifndef LNT_FORMATS_STORED_H
#define LNT_FORMATS_STORED_H

#include "formats/packed.h"

/* lnt_rec_value.stored */
typedef enum lnt_stored {
    LNT_STORED_READY = 0, /* as kernels read it: used where it lies */
    LNT_STORED_PLAIN = 1  /* packed constants: in ONNX order, to be packed as their record says */
} lnt_stored;

/* Bytes in the file of a constant whose extents are known; NULL, or what is wrong with that form of it. */
const char *lnt_stored_bytes(uint32_t stored, const lnt_operand *o, size_t *bytes);
/* From the file's bytes to those that kernels read: o->packed says how they lie, dst has room for them. */
void lnt_stored_restore(const lnt_operand *o, const void *src, void *dst);
/* From o->data, as kernels read it, to the file's bytes. */
void lnt_stored_put(const lnt_operand *o, void *dst);

#endif
