/* winograd.h — convolutions by Winograd's minimal filtering, F(m, r): squares of 3x3 taps, and taps in a line.
 *
 * Outputs are A' [(G g) . (B' d)], where d is as many inputs as there are points, g the taps and the dot
 * multiplies element by element; along two axes A' [(G g G') . (B' d B)] A (Lavin and Gray, "Fast Algorithms
 * for Convolutional Neural Networks", 2015, equations 5 and 8). With p_i for the points but infinity, the
 * rows of A' are powers of p_i, those of G powers of p_i over N_i = the product of p_i - p_j for j != i, and
 * those of B' the coefficients of the product of x - p_j for j != i; infinity's are the last tap, the last
 * output and the product of all x - p_j.
 *
 * Squares: F(4x4, 3x3), 36 multiplications instead of 144. The six points are 0, +-p, +-q and infinity with
 * p = sqrt(1/2), q = sqrt(2), which lie evenly around 1 and lose fewer digits than small integers do. With
 * what G's rows are divided by chosen for few operations,
 *
 *     B' =  1   0  -5/2   0   1  0     G =     1     0     0    A' =  1  1    1     1    1    0
 *           0  -2p  -2    p   1  0          -2/3 -2/3 p  -1/3         0  p   -p     q   -q    0
 *           0   2p  -2   -p   1  0          -2/3  2/3 p  -1/3         0 1/2  1/2    2    2    0
 *           0 -q/2 -1/2   q   1  0           1/6  q/6    1/3          0 p/2 -p/2   2q  -2q    1
 *           0  q/2 -1/2  -q   1  0           1/6 -q/6    1/3
 *           0   1    0  -5/2  0  1            0     0     1
 *
 * For float16, which has too few digits for that, F(2x2, 3x3), 16 multiplications instead of 36, at 0, 1, -1 and
 * infinity (with a sign turned): sums alone.
 *
 *     B' =  1   0  -1   0     G =   1     0     0     A' =  1   1   1   0
 *           0   1   1   0          1/2   1/2   1/2          0   1  -1   1
 *           0  -1   1   0          1/2  -1/2   1/2
 *           0  -1   0   1           0     0     1
 *
 * Lines: the eight points 0, +-1/2, +-1, +-2 and infinity serve 6 outputs of 3 taps or 4 of 5. More taps are
 * groups of four, the last of up to five, each of which finds its inputs a tile of 4 further on; where no group
 * has its last tap, infinity has nothing to do: for 7 taps 14 multiplications instead of 28.
 *
 *     B' = -1   0   21/4    0   -21/4    0    1  0    A' = 1  1     1   1  1   1   1  0
 *           0   2     4   -5/2   -5     1/2   1  0         0 1/2  -1/2  1 -1   2  -2  0
 *           0  -2     4    5/2   -5    -1/2   1  0         0 1/4   1/4  1  1   4   4  0
 *           0   1     1  -17/4 -17/4    1     1  0         0 1/8  -1/8  1 -1   8  -8  1 (last of 4)
 *           0  -1     1   17/4 -17/4   -1     1  0         0 1/16  ..   1  1  16  16  0
 *           0  1/2   1/4 -5/2  -5/4     2     1  0         0 1/32  ..   1 -1  32 -32  1 (last of 6)
 *           0 -1/2   1/4  5/2  -5/4    -2     1  0
 *           0  -1     0   21/4   0   -21/4    0  1 */
#ifndef LNT_OPS_CONV_WINOGRAD_H
#define LNT_OPS_CONV_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

enum { LNT_WINOGRAD_TAPS = 3, LNT_WINOGRAD_TILE = 4, LNT_WINOGRAD_PATCH = 6, LNT_WINOGRAD_POINTS = 36 };
enum { LNT_WINOGRAD_SMALL_TILE = 2, LNT_WINOGRAD_SMALL_PATCH = 4, LNT_WINOGRAD_SMALL_POINTS = 16 };
/* Channels, and features, that pay; features of squares whose taps are transformed in each run: they have no file to
 * grow, and else leave half a panel empty in every product. */
enum { LNT_WINOGRAD_FEWEST = 16, LNT_WINOGRAD_FEWEST_OUT = 8 };

#define LNT_WINOGRAD_P 0.70710678118654752440
#define LNT_WINOGRAD_Q 1.41421356237309504880

enum {
    LNT_WINOGRAD_LINE_POINTS_MAX = 8,
    LNT_WINOGRAD_LINE_TAPS_MIN = 3,
    LNT_WINOGRAD_LINE_TAPS_MAX = 16,
    LNT_WINOGRAD_LINE_GROUP = 4,    /* taps, and outputs of a tile */
    LNT_WINOGRAD_LINE_TILE_MAX = 6, /* of the fewest taps */
    LNT_WINOGRAD_LINE_NEAR = 16     /* apart, taps may always stand */
};

/* Outputs of a tile of a line. */
static inline int64_t lnt_winograd_line_tile(int64_t taps)
{
    return taps > LNT_WINOGRAD_LINE_TAPS_MIN ? LNT_WINOGRAD_LINE_GROUP : LNT_WINOGRAD_LINE_TILE_MAX;
}

/* Do so many outputs fill two tiles or more? Rows of products that nobody needs cost time and memory. */
static inline bool lnt_winograd_line_fills(int64_t taps, int64_t dilation, int64_t outputs)
{
    return dilation <= outputs / 2 / lnt_winograd_line_tile(taps);
}

/* Groups of its taps. */
static inline int64_t lnt_winograd_line_groups(int64_t taps)
{
    return (taps + 2) / LNT_WINOGRAD_LINE_GROUP;
}

/* Infinity, the last one, is of no use where no group is full. */
static inline int64_t lnt_winograd_line_points(int64_t taps)
{
    const bool full = taps == LNT_WINOGRAD_LINE_TAPS_MIN || taps % LNT_WINOGRAD_LINE_GROUP == 1;
    return LNT_WINOGRAD_LINE_POINTS_MAX - !full;
}

#endif
