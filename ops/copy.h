/* copy.h — moving the elements of a box between two strided places.
 *
 * Slice, Transpose, Concat, Expand, Tile, DepthToSpace and their kind differ only in strides:
 *
 *     lnt_copy_begin(&c, element size);
 *     lnt_copy_axis(&c, n, dst_step, src_step);   // for each axis, in any order
 *     lnt_copy_settle(&c);                        // at bind: merges axes, chooses the inner loop
 *     lnt_copy_run(k, &c, dst, src);              // at run: parallel where it is worth it
 *
 * Steps are in bytes. A source step of 0 repeats, a negative one reverses; destinations never overlap. */
#ifndef LNT_OPS_COPY_H
#define LNT_OPS_COPY_H

#include "base/kernel.h"

enum { LNT_COPY_AXES = 2 * LNT_MAX_RANK + 1 };

typedef enum lnt_copy_kind {
    LNT_COPY_NOTHING,  /* an extent is 0 */
    LNT_COPY_BYTES,    /* the last axis is a run of bytes, next to each other on both sides */
    LNT_COPY_LINE,     /* the last axis is a strided line of units of 1, 2, 4, 8 or 16 bytes */
    LNT_COPY_TRANSPOSE /* a 2-D transpose: the last axis is dense in dst, the one before it in src */
} lnt_copy_kind;

typedef struct lnt_copy {
    lnt_copy_kind kind;
    unsigned rank;
    int64_t unit; /* bytes of an element */
    int64_t n[LNT_COPY_AXES], dst[LNT_COPY_AXES], src[LNT_COPY_AXES];
    int64_t rows;          /* of the axis before the last that one item of work covers */
    int64_t pieces, piece; /* the last axis is cut into pieces of so many elements, each an item of work */
    int64_t items, item_bytes;
    bool
        of_images; /* steps before and after share their pixels: it is shared, too, if it is less than two slices */
    bool by_columns; /* threads share the columns of a transpose, which are rows of src, not its rows */
} lnt_copy;

void lnt_copy_begin(lnt_copy *c, size_t element);
void lnt_copy_axis(lnt_copy *c, int64_t n, int64_t dst_step, int64_t src_step);
__attribute__((cold)) void lnt_copy_settle(lnt_copy *c);

/* A whole box: dims in ONNX order, strides in elements as lnt_operand_strides gives them. */
void lnt_copy_box(lnt_copy *c, size_t element, unsigned rank, const int64_t *dims, const int64_t *dst_strides,
                  const int64_t *src_strides);

/* Whether the copy moves nothing: source and destination would be in the same order. */
bool lnt_copy_is_plain(const lnt_copy *c);

lnt_status lnt_copy_run(lnt_kernel *k, const lnt_copy *c, void *dst, const void *src);

/* bytes bytes from src to dst, on several threads if they are many; nothing if the two are the same place. */
lnt_status lnt_copy_bytes(lnt_kernel *k, void *dst, const void *src, int64_t bytes);

/* Each of n units of `unit` bytes (1, 2, 4 or 8) twice, side by side; the same that many bytes further on. */
void lnt_repeat_twice(void *dst, int64_t apart, const void *src, int64_t n, size_t unit);
/* Sets n units of 1, 2, 4, 8 or 16 bytes to the one at value. */
void lnt_fill(void *dst, int64_t n, const void *value, size_t unit);
/* The unit at src + r * src_step (bytes), n times over, one row behind the other for all r < rows. */
void lnt_repeat_each(void *dst, const void *src, int64_t src_step, int64_t rows, int64_t n, size_t unit);
/* The same bytes times over, side by side; dst may be src. Each copy doubles what is there, if it need not wait for
 * stores that long ones have just begun. */
void lnt_repeat_bytes(void *dst, const void *src, int64_t bytes, int64_t times);
/* dst[c][r] = src[r][c] for rows x columns units of 1, 2, 4, 8 or 16 bytes; steps from row to row are in units, too. */
void lnt_turn(void *dst, int64_t dst_step, const void *src, int64_t src_step, int64_t rows, int64_t columns,
              size_t unit);
/* The same with rows of either so many bytes apart. */
void lnt_turn_apart(void *dst, int64_t dst_step, const void *src, int64_t src_step, int64_t rows,
                    int64_t columns, size_t unit);

/* Elements of 4 bytes: dst[r][c] = src[c][r] for rows x columns of dst; steps in bytes. At the level's speed:
 * lnt_kernels.turn. */
typedef void (*lnt_turn_fn)(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,
                            int64_t columns);
void lnt_turn_scalar(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows, int64_t columns);
void lnt_turn_avx2(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows, int64_t columns);
/* The same of halves, which become floats; at least 8 rows and columns. */
void lnt_widen_avx2(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows,
                    int64_t columns);
/* lnt_turn by one of these where units are 4 bytes. */
void lnt_turn_by(lnt_turn_fn turn, void *dst, int64_t dst_step, const void *src, int64_t src_step,
                 int64_t rows, int64_t columns, size_t unit);

#endif
