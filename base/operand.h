/* operand.h — a value as an operator sees it: type, extents, storage order and, once known, its place. */
#ifndef LNT_BASE_OPERAND_H
#define LNT_BASE_OPERAND_H

#include "base/checked.h"
#include "base/linnet_types.h"
#include "base/lnt_assert.h"

#include <stdbool.h>

/* Extents: >= 0 is known; below 0 is unknown until bind or run. -1 is anonymous, -2 and below name a
 * symbol, so that equal negative extents other than -1 are equal extents. */
#define LNT_DIM_UNKNOWN (-1)
#define LNT_RANK_UNKNOWN 255
#define LNT_NO_STORAGE UINT32_MAX

/* How the elements are stored. dims are always in ONNX order, whatever the storage order. */
typedef enum lnt_order {
    LNT_ORDER_PLAIN = 0,        /* ONNX order, last axis fastest */
    LNT_ORDER_CHANNELS_LAST = 1 /* axis 1 moved to the end: N C H W is stored as N H W C; rank >= 3 */
} lnt_order;

/* Entries of a table by element type that small ones (base/small.h) have no place in: one more than the highest
 * number. */
#define LNT_DTYPE_COUNT sizeof(lnt_dtype_numbers)
typedef union lnt_dtype_numbers {
#define X(name, number, bits, text) char up_to_##name[number + 1];
    LNT_PLAIN_DTYPE_LIST(X)
#undef X
} lnt_dtype_numbers;

typedef struct lnt_packed lnt_packed; /* formats/packed.h */

typedef struct lnt_operand {
    uint8_t dtype; /* lnt_dtype */
    uint8_t rank;  /* 0..LNT_MAX_RANK or LNT_RANK_UNKNOWN */
    uint8_t order; /* lnt_order */
    bool constant; /* part of the model: data holds for ever */
    int64_t dims[LNT_MAX_RANK];
    /* Contents where they are known while shapes are being worked out (constants, evaluated values), else
     * NULL. For a packed constant: the packed bytes. */
    const void *data;
    const lnt_packed *packed; /* layout of a packed constant, else NULL */
    uint32_t storage;         /* index into lnt_kernel.slot */
    size_t offset;            /* bytes from the start of that slot */
    int64_t pitch; /* elements from row to row (of the last axis in memory); 0: rows are contiguous */
    int64_t plane_pitch; /* of a cache: elements from plane to plane, behind axis 1; 0: side by side */
} lnt_operand;

/* Elements; -1 if an extent or the rank is unknown, or on overflow. */
int64_t lnt_operand_count(const lnt_operand *o);

/* Bytes of all elements, side by side; false if an extent, the rank or the type's size is not known, or on
 * overflow. */
bool lnt_operand_bytes(const lnt_operand *o, size_t *bytes);
/* The same as a number: 0 where there is none. */
size_t lnt_known_bytes(const lnt_operand *o);
/* Bytes of as many floats as it has elements, for those that are widened; 0 where there is no such size. */
size_t lnt_float_bytes(const lnt_operand *o);

/* Elements from row to row: of the last axis in memory. The rank is above 0. */
static inline int64_t lnt_operand_pitch(const lnt_operand *o)
{
    LNT_ASSERT(o->rank > 0 && o->rank <= LNT_MAX_RANK);
    LNT_ASSERT(o->order != LNT_ORDER_CHANNELS_LAST || o->rank >= 3);
    return o->pitch ? o->pitch : o->dims[o->order == LNT_ORDER_CHANNELS_LAST ? 1 : o->rank - 1];
}

/* Elements from plane to plane of a cache, of rank 4. */
static inline int64_t lnt_operand_plane_pitch(const lnt_operand *o)
{
    LNT_ASSERT(o->rank == 4);
    return o->plane_pitch ? o->plane_pitch : o->dims[2] * o->dims[3];
}

/* Elements between neighbors along each logical axis, in the operand's storage order. */
void lnt_operand_strides(const lnt_operand *o, int64_t strides[LNT_MAX_RANK]);

#endif
