/* stem_in_order.inc.h — convolutions of few channels on 64-bit ARM cores that run in order, part of
 * ops/conv/conv_kernels.inc.h.
 *
 * A tile is eight pixels by eight columns. Two elements of K of a pixel are half a vector, from which they are
 * multiplied by element; vectors come by halves (ops/simd/simd_ordered.h), the second two loads later than the first.
 * While one row of B is multiplied the other is filled. Sums are those of stem_tile, to the bit. */

enum { FLOW_PIXELS = 8, FLOW_VECTORS = 2, FLOW_COLUMNS = FLOW_VECTORS * LNT_VL, FLOW_X = FLOW_PIXELS / 2 };
_Static_assert(LNT_PANEL % FLOW_COLUMNS == 0 && (unsigned)FLOW_PIXELS <= LNT_STEM_PIXELS,
               "panels are whole tiles");

/* Rows k and k + 1 of B, elements k and k + 1 of pixels 2 * p and 2 * p + 1 in x[p], and what is still to be inserted:
 * second halves of vectors of B, elements of pixels; where these are not adjacent, `second` is the last one's. */
typedef struct stem_flow {
    vf b[2][FLOW_VECTORS], x[FLOW_X];
    uint64_t of_b[FLOW_VECTORS], of_x[FLOW_PIXELS], second;
} stem_flow;

/* What is loaded next: elements of pixel i are at[i] bytes further than those of the first. */
typedef struct stem_source {
    const char *first, *second; /* two elements of K */
    size_t at[FLOW_PIXELS];
    const float *b;
    bool adjacent;
} stem_source;

LNT_INLINE void flow_load_b(stem_flow *f, const stem_source *s, const unsigned j)
{
    ordered_pair(&f->of_b[j], s->b + j * LNT_VL + 2);
}

LNT_INLINE void flow_begin_b(stem_flow *f, const stem_source *s, const unsigned row, const unsigned j)
{
    ordered_first(&f->b[row][j], s->b + j * LNT_VL);
}

LNT_INLINE void flow_insert_b(stem_flow *f, const unsigned row, const unsigned j)
{
    ordered_insert(&f->b[row][j], true, f->of_b[j]);
}

LNT_INLINE void flow_insert_x(stem_flow *f, const unsigned p)
{
    ordered_insert(&f->x[p], true, f->of_x[2 * p + 1]);
}

/* Begins to fill x[p]; elements that are not adjacent are in of_x. */
LNT_INLINE void flow_begin_x(stem_flow *f, const stem_source *s, const unsigned p)
{
    if (s->adjacent)
        ordered_first(&f->x[p], s->first + s->at[2 * p]);
    else
        ordered_first_of(&f->x[p], f->of_x[2 * p]);
}

/* Between the products of row k and pixel i. */
LNT_INLINE void flow_load_odd(stem_flow *f, const stem_source *s, const unsigned i)
{
    if (i == 0 || i == 2)
        flow_load_b(f, s, i / 2);
    if (!s->adjacent)
        ordered_float(&f->of_x[i], s->first + s->at[i]);
}

/* Behind these: fills row k + 1 from s->b. */
LNT_INLINE void flow_fill_odd(stem_flow *f, const stem_source *s, const unsigned i)
{
    if (!s->adjacent) {
        uint64_t second;
        ordered_float(&second, s->second + s->at[i]);
        if (i > 0)
            ordered_join(&f->of_x[i - 1], f->second);
        f->second = second;
    }
    if (i == 0 || i == 2) {
        flow_begin_b(f, s, 1, i / 2);
        flow_insert_x(f, FLOW_X - 2 + i / 2);
    }
    if (i == 5) {
        flow_insert_b(f, 1, 0);
        flow_insert_b(f, 1, 1);
    }
}

/* Between the products of row k + 1 and pixel i. */
LNT_INLINE void flow_load_even(stem_flow *f, const stem_source *s, const unsigned i)
{
    if (i == 0 || i == 2)
        flow_load_b(f, s, i / 2);
    if (i % 2 && s->adjacent)
        ordered_pair(&f->of_x[i], s->first + s->at[i]);
    if (i == 0 && !s->adjacent)
        ordered_join(&f->of_x[FLOW_PIXELS - 1], f->second);
}

/* Behind these: fills row k + 2 from s->b, and x with the elements that it is multiplied with. */
LNT_INLINE void flow_fill_even(stem_flow *f, const stem_source *s, const unsigned i)
{
    if (i == 0 || i == 2)
        flow_begin_b(f, s, 0, i / 2);
    if (i % 2)
        flow_begin_x(f, s, i / 2);
    if (i == 2 || i == 5)
        flow_insert_b(f, 0, i / 4);
    if (i == 3 || i == 7)
        flow_insert_x(f, i / 4);
}

LNT_INLINE void flow_multiply(stem_acc *acc, const stem_flow *f, const unsigned row, const unsigned i,
                              const unsigned j)
{
    ordered_fma_lane(&acc->v[i][j], f->b[row][j], f->x[i / 2], i % 2 * 2 + row);
}

LNT_INLINE void flow_start(stem_acc *acc, const vf start[FLOW_VECTORS])
{
    UNROLL_FOR(8, unsigned i = 0; i < FLOW_PIXELS; i++)
        UNROLL_FOR(2, unsigned j = 0; j < FLOW_VECTORS; j++)
            ordered_copy(&acc->v[i][j], start[j]);
}

/* The products of row k and pixels [i, end). */
LNT_INLINE void flow_odd(stem_acc *acc, stem_flow *f, const stem_source *s, unsigned i, const unsigned end)
{
    UNROLL_FOR(8, ; i < end; i++) {
        flow_multiply(acc, f, 0, i, 0);
        flow_load_odd(f, s, i);
        flow_multiply(acc, f, 0, i, 1);
        flow_fill_odd(f, s, i);
    }
}

/* And of row k + 1. */
LNT_INLINE void flow_even(stem_acc *acc, stem_flow *f, const stem_source *s, unsigned i, const unsigned end)
{
    UNROLL_FOR(8, ; i < end; i++) {
        flow_multiply(acc, f, 1, i, 0);
        flow_load_even(f, s, i);
        flow_multiply(acc, f, 1, i, 1);
        flow_fill_even(f, s, i);
    }
}

/* All that is in registers before the first two elements of K, and the initial sums. */
LNT_INLINE void flow_begin(stem_acc *acc, stem_flow *f, const stem_source *s, const vf start[FLOW_VECTORS])
{
    UNROLL_FOR(2, unsigned j = 0; j < FLOW_VECTORS; j++) {
        flow_load_b(f, s, j);
        flow_begin_b(f, s, 0, j);
    }
    UNROLL_FOR(8, unsigned i = 0; i < FLOW_PIXELS; i++) {
        if (s->adjacent && i % 2) {
            ordered_pair(&f->of_x[i], s->first + s->at[i]);
        } else if (s->adjacent) {
            flow_begin_x(f, s, i / 2);
        } else {
            uint64_t second;
            ordered_float(&f->of_x[i], s->first + s->at[i]);
            ordered_float(&second, s->second + s->at[i]);
            if (i > 0)
                ordered_join(&f->of_x[i - 1], f->second);
            f->second = second;
        }
    }
    if (!s->adjacent) {
        ordered_join(&f->of_x[FLOW_PIXELS - 1], f->second);
        UNROLL_FOR(4, unsigned p = 0; p < FLOW_X; p++)
            flow_begin_x(f, s, p);
    }
    flow_start(acc, start);
    UNROLL_FOR(2, unsigned j = 0; j < FLOW_VECTORS; j++)
        flow_insert_b(f, 0, j);
    UNROLL_FOR(4, unsigned p = 0; p + 2 < FLOW_X; p++)
        flow_insert_x(f, p);
}

/* Adds the products of one element of K and row b. */
LNT_INLINE void flow_one(stem_acc *acc, const stem_source *s, const float *b)
{
    stem_flow f;
    UNROLL_FOR(2, unsigned j = 0; j < FLOW_VECTORS; j++)
        ordered_load(&f.b[0][j], b + j * LNT_VL);
    UNROLL_FOR(8, unsigned i = 0; i < FLOW_PIXELS; i++)
        ordered_float(&f.of_x[i], s->first + s->at[i]);
    UNROLL_FOR(4, unsigned p = 0; p < FLOW_X; p++)
        ordered_first_of(&f.x[p], f.of_x[2 * p]);
    UNROLL_FOR(4, unsigned p = 0; p < FLOW_X; p++)
        flow_insert_x(&f, p);
    UNROLL_FOR(8, unsigned i = 0; i < FLOW_PIXELS; i++)
        UNROLL_FOR(2, unsigned j = 0; j < FLOW_VECTORS; j++)
            flow_multiply(acc, &f, 0, i, j);
}

/* Adds the products of elements [0, depth / 2 * 2) of K to `start`. Behind the last two these are loaded again. */
LNT_INLINE void flow_sum(stem_acc *acc, const lnt_stem *t, stem_source *s, const float *b, const char *x,
                         const vf start[FLOW_VECTORS])
{
    const uint32_t *offset = t->offset;
    const size_t last = t->depth / 2 * 2 - 2;
    size_t next = last < 2 ? last : 2;
    uint64_t first = offset[0], second = offset[1];
    const char *x_first = x + offset[next] * sizeof(float), *x_second = x + offset[next + 1] * sizeof(float);
    stem_flow f;
    s->first = x + first * sizeof(float), s->second = x + second * sizeof(float);
    s->b = b;
    flow_begin(acc, &f, s, start);
    const float *b_odd = b + LNT_PANEL, *b_next = b;
    for (size_t k = 0; k <= last;) {
        s->first = x_first, s->second = x_second, s->b = b_odd;
        flow_odd(acc, &f, s, 0, 4);
        b_odd = ordered_pointer(b_odd + 2 * LNT_PANEL);
        flow_odd(acc, &f, s, 4, 5);
        b_next = ordered_pointer(b + next * LNT_PANEL);
        flow_odd(acc, &f, s, 5, 7);
        next = ordered_value(next < last ? next + 2 : last);
        flow_odd(acc, &f, s, 7, 8);
        s->b = b_next;
        flow_even(acc, &f, s, 0, 4);
        ordered_index(&first, offset + next);
        if (!s->adjacent)
            ordered_index(&second, offset + next + 1);
        flow_even(acc, &f, s, 4, 5);
        k = ordered_value(k + 2);
        flow_even(acc, &f, s, 5, 6);
        x_first = ordered_pointer(x + first * sizeof(float));
        if (!s->adjacent)
            x_second = ordered_pointer(x + second * sizeof(float));
        flow_even(acc, &f, s, 6, 8);
    }
}

/* Columns from n on, `left` of them at most, of pixels [i, i + FLOW_PIXELS). */
LNT_INLINE void flow_tile(const lnt_stem *t, size_t i, size_t n, const bool adjacent)
{
    const size_t left = t->columns - n, step = t->step;
    const char *x = (const char *)(t->x + i * step);
    const float *b = t->b + n / LNT_PANEL * t->b_panel + n % LNT_PANEL;
    stem_acc acc, first;
    stem_source s = {.adjacent = adjacent};
    UNROLL_FOR(8, unsigned p = 0; p < FLOW_PIXELS; p++) {
        s.at[p] = p * step * sizeof(float);
        __asm__("" : "+r"(s.at[p])); /* a register of its own, not a sum that is made anew */
    }
    stem_start(&first, t, n, left, 1, FLOW_VECTORS);
    if (t->depth >= 2)
        flow_sum(&acc, t, &s, b, x, first.v[0]);
    else
        flow_start(&acc, first.v[0]);
    if (t->depth % 2) {
        s.first = x + t->offset[t->depth - 1] * sizeof(float);
        flow_one(&acc, &s, b + (t->depth - 1) * LNT_PANEL);
    }
    stem_clamp(&acc, t, FLOW_PIXELS, FLOW_VECTORS);
    stem_store(&acc, t->c + i * t->c_step + n, t->c_step, left, FLOW_PIXELS, FLOW_VECTORS);
}

/* A pixel's columns one after the other; the last tile goes back over pixels that are done. */
LNT_INLINE void flow_pixels(const lnt_stem *t, const bool adjacent)
{
    const lnt_stem own = *t; /* out of reach of the stores, which may alias anything */
    for (size_t i = 0; i < own.pixels; i += FLOW_PIXELS)
        for (size_t n = 0; n < own.columns; n += FLOW_COLUMNS)
            flow_tile(&own, i + FLOW_PIXELS <= own.pixels ? i : own.pixels - FLOW_PIXELS, n, adjacent);
}

static __attribute__((noinline)) void stem_adjacent(const lnt_stem *t)
{
    flow_pixels(t, true);
}

static __attribute__((noinline)) void stem_apart(const lnt_stem *t)
{
    flow_pixels(t, false);
}

static void stem_in_order(const lnt_stem *t)
{
    LNT_ASSERT(t->pixels >= LNT_STEM_PIXELS);
    bool adjacent = true;
    for (size_t k = 1; k < t->depth; k += 2)
        adjacent &= t->offset[k] == t->offset[k - 1] + 1;
    if (adjacent)
        stem_adjacent(t);
    else
        stem_apart(t);
}
