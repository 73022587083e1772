/* winograd.h — convolution of 3x3 taps by Winograd's minimal filtering F(4x4, 3x3).
 *
 * A tile of 4x4 outputs is A' [(G g G') . (B' d B)] A, where d is a patch of 6x6 inputs, g the 3x3 taps and
 * the dot multiplies element by element (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
 * 2015, equation 8): 36 multiplications instead of 144. The six points are 0, +-p, +-q and infinity with p =
 * sqrt(1/2), q = sqrt(2), which lie evenly around 1 and lose fewer digits than small integers do. With them
 *
 *     B' =  1   0  -5/2   0   1  0     G =     1     0     0    A' =  1  1    1     1    1    0
 *           0  -2p  -2    p   1  0          -2/3 -2/3 p  -1/3         0  p   -p     q   -q    0
 *           0   2p  -2   -p   1  0          -2/3  2/3 p  -1/3         0 1/2  1/2    2    2    0
 *           0 -q/2 -1/2   q   1  0           1/6  q/6    1/3          0 p/2 -p/2   2q  -2q    1
 *           0  q/2 -1/2  -q   1  0           1/6 -q/6    1/3
 *           0   1    0  -5/2  0  1            0     0     1 */
#ifndef LNT_OPS_WINOGRAD_H
#define LNT_OPS_WINOGRAD_H

enum { LNT_WINOGRAD_TAPS = 3, LNT_WINOGRAD_TILE = 4, LNT_WINOGRAD_PATCH = 6, LNT_WINOGRAD_POINTS = 36 };

#define LNT_WINOGRAD_P 0.70710678118654752440
#define LNT_WINOGRAD_Q 1.41421356237309504880

#endif
