/* qgemm_in_order.inc.h — the inner loop of int8 tiles on 64-bit ARM cores that run in order (Cortex-A53), part of
 * ops/quant/qgemm_neon.c.
 *
 * Vectors of the panel come by halves, as ops/simd/simd_ordered.h says why, and a row's quads through a general
 * register, where they are made int8. The order of instructions is that of the source: each is a volatile asm. */
#include "ops/simd/simd_ordered.h"

/* Products of the low or of the high halves of a and b. */
#define ORDERED_BYTES(name, instruction, half, access)                                                       \
    LNT_INLINE void ordered_##name(int16x8_t *c, vf a, vf b)                                                 \
    {                                                                                                        \
        __asm__ volatile(instruction " %0.8h, %1." half ", %2." half : access(*c) : "w"(a), "w"(b));         \
    }
ORDERED_BYTES(low, "smull", "8b", "=w")
ORDERED_BYTES(high, "smull2", "16b", "=w")
ORDERED_BYTES(add_low, "smlal", "8b", "+w")
ORDERED_BYTES(add_high, "smlal2", "16b", "+w")

LNT_INLINE void ordered_add_pairs(int32x4_t *sum, int16x8_t products)
{
    __asm__ volatile("sadalp %0.4s, %1.8h" : "+w"(*sum) : "w"(products));
}

LNT_INLINE void ordered_splat_quad(vf *x, uint64_t quad)
{
    __asm__ volatile("dup %0.4s, %w1" : "=w"(*x) : "r"(quad));
}

LNT_INLINE void ordered_flip(uint64_t *x, uint64_t flip)
{
    __asm__ volatile("eor %x0, %x0, %x1" : "+r"(*x) : "r"(flip));
}

enum { FETCHED = 4 /* vectors of the panel in registers */ };

/* What waits in registers. Vector v of a step is that of quad v % 2 and of part v / 2. */
typedef struct fetched {
    vf b[FETCHED], x[AT_ONCE][2];
    uint64_t second[2], of_a[AT_ONCE]; /* the second halves of the last vectors; two quads of both rows */
} fetched;

LNT_INLINE const int8_t *vector_at(const int8_t *panel, const unsigned v)
{
    return panel + v % 2 * 4 * LNT_QPANEL + v / 2 * 16;
}

/* The first half of vector v, while the second one of the vector before is inserted. */
LNT_INLINE void fetch_vector(fetched *f, const unsigned v, const int8_t *panel)
{
    const unsigned before = v + FETCHED - 1;
    ordered_first(&f->b[v % FETCHED], vector_at(panel, v));
    ordered_insert(&f->b[before % FETCHED], true, f->second[before % 2]);
}

LNT_INLINE void fetch_second(fetched *f, const unsigned v, const int8_t *panel)
{
    ordered_pair(&f->second[v % 2], vector_at(panel, v) + 8);
}

/* Quad `quad` of both rows becomes a factor. */
LNT_INLINE void splat_quads(fetched *f, const unsigned quad)
{
    UNROLL_FOR(2, unsigned r = 0; r < AT_ONCE; r++)
        ordered_splat_quad(&f->x[r][quad], quad ? f->of_a[r] >> 32 : f->of_a[r]);
}

/* Where the next step is. */
typedef struct place {
    const int8_t *panel, *last; /* panel: of this step; the last one is followed by itself */
    ptrdiff_t at, turn;         /* of its quads in a row; after those of a tap */
    int64_t left;               /* steps of the tap */
    const int8_t *follow;       /* the panel behind this step */
} place;

/* What is computed beside sum `i` of the 16 of a step and more: where the next step is, and its quads of A. */
LNT_INLINE void beside_sum(fetched *f, place *to, const unsigned i, const uint8_t *const a[AT_ONCE],
                           uint64_t flip)
{
    if (i == 0)
        to->left = (int64_t)ordered_value((size_t)to->left - 1);
    if (i == 1)
        to->at = (ptrdiff_t)ordered_value((size_t)to->at + 8);
    if (i == 2)
        to->at = (ptrdiff_t)ordered_value((size_t)(to->left > 0 ? to->at : to->turn));
    if (i / 2 == 2)
        ordered_pair(&f->of_a[i % 2], a[i % 2] + to->at);
    if (i / 2 == 3)
        ordered_flip(&f->of_a[i % 2], flip);
    if (i == 8)
        to->follow = ordered_pointer(to->panel + 8 * LNT_QPANEL);
    if (i == 9)
        to->panel = ordered_pointer(to->panel == to->last ? to->panel : to->follow);
}

/* Four columns of two rows times two quads; what is multiplied next is fetched beside it: of the panel the vectors of
 * the next part, and in the last part the next step's quads of A. */
LNT_INLINE void part_in_order(sums *s, fetched *f, const unsigned p, place *to,
                              const uint8_t *const a[AT_ONCE], uint64_t flip)
{
    const unsigned v = (2 * p + 2) % 8;
    const vf b0 = f->b[2 * p % FETCHED];
    int16x8_t low[AT_ONCE], high[AT_ONCE];
    fetch_vector(f, v, to->panel);
    ordered_low(&low[0], b0, f->x[0][0]);
    fetch_second(f, v, to->panel);
    ordered_low(&low[1], b0, f->x[1][0]);
    ordered_high(&high[0], b0, f->x[0][0]);
    ordered_high(&high[1], b0, f->x[1][0]);
    if (p + 1 == PARTS)
        splat_quads(f, 0);
    fetch_vector(f, v + 1, to->panel);
    const vf b1 = f->b[(2 * p + 1) % FETCHED];
    ordered_add_low(&low[0], b1, f->x[0][1]);
    fetch_second(f, v + 1, to->panel);
    ordered_add_low(&low[1], b1, f->x[1][1]);
    ordered_add_high(&high[0], b1, f->x[0][1]);
    ordered_add_high(&high[1], b1, f->x[1][1]);
    if (p + 1 == PARTS)
        splat_quads(f, 1);
    UNROLL_FOR(4, unsigned i = 0; i < 2 * AT_ONCE; i++) {
        ordered_add_pairs(&s->product[i % 2][2 * p + i / 2], i < 2 ? low[i % 2] : high[i % 2]);
        beside_sum(f, to, 4 * p + i, a, flip);
    }
}

/* What the first step finds in registers. */
LNT_INLINE void fetch_first(fetched *f, const int8_t *panel, const uint8_t *const *a, ptrdiff_t at,
                            uint64_t flip)
{
    UNROLL_FOR(2, unsigned r = 0; r < AT_ONCE; r++)
        ordered_pair(&f->of_a[r], a[r] + at);
    UNROLL_FOR(2, unsigned v = 0; v < 2; v++) {
        ordered_first(&f->b[v], vector_at(panel, v));
        fetch_second(f, v, panel);
    }
    UNROLL_FOR(2, unsigned r = 0; r < AT_ONCE; r++)
        ordered_flip(&f->of_a[r], flip);
    splat_quads(f, 0);
    splat_quads(f, 1);
    ordered_insert(&f->b[0], true, f->second[0]);
}

/* Are all quads but the last of a single tap in pairs? */
LNT_INLINE bool in_pairs(const lnt_qproduct *p)
{
    return p->taps > 0 && p->quads >= 2 && (p->taps == 1 || p->quads % 2 == 0);
}

/* Adds the products of two rows and all pairs of quads; returns what follows of the panel. The last step is followed by
 * itself: nothing else is sure to be there. */
LNT_INLINE const int8_t *pairs_in_order(sums *s, const lnt_qproduct *p, const uint8_t *const a[AT_ONCE],
                                        uint64_t flip)
{
    const int64_t pairs = p->quads / 2, steps = p->taps * pairs;
    const ptrdiff_t *offset = p->tap_offset, *const end = offset + p->taps;
    place to = {.panel = p->panel[0], .last = p->panel[0] + (steps - 1) * 8 * LNT_QPANEL};
    fetched f;
    fetch_first(&f, to.panel, a, *offset, flip);
    for (; offset < end; offset++) {
        to.at = *offset;
        to.turn = offset[offset + 1 < end];
        to.left = pairs;
        do
            UNROLL_FOR(4, unsigned part = 0; part < PARTS; part++)
                part_in_order(s, &f, part, &to, a, flip);
        while (to.left > 0);
    }
    return p->panel[0] + steps * 8 * LNT_QPANEL;
}
