/* vmath_tanh.h — tanh by table, for the level that finds 32 floats in one instruction: no exponential, no
 * division. Largest error over all floats: 1 unit in the last place. */
#ifndef LNT_OPS_SIMD_VMATH_TANH_H
#define LNT_OPS_SIMD_VMATH_TANH_H

#include "ops/simd/simd.h"

enum { LNT_TANH_PIECES = 32 };

/* Four pieces an octave from 1/16 to 16 (the first reaches down to 0), tanh a polynomial of u = |x| - c on
 * each. c is next to the middle of its piece, where tanh comes closest to a float. Pieces stand at the low
 * three bits of the exponent and the first two of the mantissa: the first below is [2, 2.5). */
static const float lnt_tanh_pieces[7 * LNT_TANH_PIECES] = {
    /* c */
    0x1.1ffe24p1f, 0x1.60023p1f, 0x1.9ffd2cp1f, 0x1.e002cep1f, 0x1.1ffee2p2f, 0x1.60031ep2f, 0x1.9ffcep2f,
    0x1.e0031ep2f, 0x1.1ffcep3f, 0x1.4p3f, 0x1.8p3f, 0x1.cp3f, 0, 0x1.5ffee6p-4f, 0x1.9ffde6p-4f,
    0x1.e0030ep-4f, 0x1.200278p-3f, 0x1.5ffecep-3f, 0x1.9fff9ap-3f, 0x1.dfff3p-3f, 0x1.1ffe3ap-2f,
    0x1.600068p-2f, 0x1.9ffd82p-2f, 0x1.e000eap-2f, 0x1.1ffcecp-1f, 0x1.5ffe5ap-1f, 0x1.9ffd4p-1f,
    0x1.e0029ap-1f, 0x1.1ffeb6p0f, 0x1.6002bp0f, 0x1.9fff1p0f, 0x1.e00076p0f,
    /* tanh(c), which the polynomial begins with */
    0x1.f4bf84p-1f, 0x1.fbd52ep-1f, 0x1.fe7668p-1f, 0x1.ff6f1ep-1f, 0x1.ffdfa6p-1f, 0x1.fffbap-1f,
    0x1.ffff68p-1f, 0x1.ffffecp-1f, 0x1.fffffep-1f, 0x1p0f, 0x1p0f, 0x1p0f, 0, 0x1.5f21bap-4f, 0x1.9e9142p-4f,
    0x1.ddd396p-4f, 0x1.1e203cp-3f, 0x1.5c91dep-3f, 0x1.9a5ebap-3f, 0x1.d76598p-3f, 0x1.18a1f6p-2f,
    0x1.52c322p-2f, 0x1.8a85c2p-2f, 0x1.bfaf28p-2f, 0x1.050628p-1f, 0x1.3156dp-1f, 0x1.57877cp-1f,
    0x1.77d96cp-1f, 0x1.9e5bd2p-1f, 0x1.c279dcp-1f, 0x1.d9c6b6p-1f, 0x1.e878b4p-1f,
    /* of u */
    0x1.641aa8p-5f, 0x1.099ea8p-6f, 0x1.8900cp-8f, 0x1.219b08p-9f, 0x1.02c9bap-11f, 0x1.181792p-14f,
    0x1.2f7d9ap-17f, 0x1.4855bep-20f, 0x1.05d91ep-24f, 0, 0, 0, 0x1p0f, 0x1.fc3cc4p-1f, 0x1.fac14cp-1f,
    0x1.f90844p-1f, 0x1.f601ap-1f, 0x1.f12b18p-1f, 0x1.eb7164p-1f, 0x1.e4dfc8p-1f, 0x1.d98baap-1f,
    0x1.c7f704p-1f, 0x1.b4p-1f, 0x1.9e235cp-1f, 0x1.7aed3ap-1f, 0x1.49e804p-1f, 0x1.1981d6p-1f,
    0x1.d8314cp-2f, 0x1.6152e4p-2f, 0x1.ce9eb8p-3f, 0x1.266032p-3f, 0x1.6fce64p-4f,
    /* u**2 */
    -0x1.5c44b2p-5f, -0x1.07715ap-6f, -0x1.87cbc4p-8f, -0x1.2143acp-9f, -0x1.02669ep-11f, -0x1.192e5ep-14f,
    -0x1.270a32p-17f, -0x1.cb4d22p-20f, 0x1.6d6772p-23f, 0, 0, 0, 0x1.01ec98p-25f, -0x1.5c8d04p-4f,
    -0x1.9a51d8p-4f, -0x1.d75204p-4f, -0x1.188a8ep-3f, -0x1.52792ap-3f, -0x1.89e4d4p-3f, -0x1.be6ca8p-3f,
    -0x1.038e2ap-2f, -0x1.2dafdap-2f, -0x1.4ff5f2p-2f, -0x1.6a1d98p-2f, -0x1.825cfp-2f, -0x1.897d44p-2f,
    -0x1.79c1f6p-2f, -0x1.5aa09ap-2f, -0x1.1df1ep-2f, -0x1.970834p-3f, -0x1.106656p-3f, -0x1.5ee77ap-4f,
    /* u**3 */
    0x1.bbd9eep-6f, 0x1.59886p-7f, 0x1.03a0f4p-8f, 0x1.80d51p-10f, 0x1.58579p-12f, 0x1.7527a6p-15f,
    0x1.94633ap-18f, 0x1.b51beep-21f, 0x1.5809c2p-25f, 0, 0, 0, -0x1.55563cp-2f, -0x1.4966b6p-2f,
    -0x1.47fc1ap-2f, -0x1.438bdcp-2f, -0x1.3b3b2ap-2f, -0x1.2e465p-2f, -0x1.2064ap-2f, -0x1.0fd8cep-2f,
    -0x1.e925d8p-3f, -0x1.982df8p-3f, -0x1.426f82p-3f, -0x1.d771ep-4f, -0x1.bd5988p-5f, 0x1.d6b0d4p-7f,
    0x1.07069ep-4f, 0x1.844426p-4f, 0x1.c68d64p-4f, 0x1.97d5cap-4f, 0x1.33e112p-4f, 0x1.a859f6p-5f,
    /* u**4 */
    -0x1.95e1d6p-7f, -0x1.514c9p-8f, -0x1.034872p-9f, -0x1.83808ep-11f, -0x1.68a7f6p-13f, -0x1.7087c6p-16f,
    -0x1.1495f8p-18f, 0x1.991b6ep-20f, -0x1.105c6ep-22f, 0, 0, 0, 0x1.e8981ep-14f, 0x1.cef0eep-5f,
    0x1.f0f602p-5f, 0x1.dc447p-5f, 0x1.6c615p-4f, 0x1.b9dd8cp-4f, 0x1.f15212p-4f, 0x1.1b4b26p-3f,
    0x1.32dd8p-3f, 0x1.5036ccp-3f, 0x1.5c7292p-3f, 0x1.58c43cp-3f, 0x1.39ff94p-3f, 0x1.e938eep-4f,
    0x1.474c5ep-4f, 0x1.62a1e8p-5f, 0x1.e09a32p-9f, -0x1.59fbdep-6f, -0x1.9bb8d6p-6f, -0x1.55a002p-6f,
    /* u**5 */
    0x1.04a888p-8f, 0x1.f63c7ap-10f, 0x1.944f4ep-11f, 0x1.33209cp-12f, 0x1.1fb218p-14f, 0x1.3620e2p-17f,
    0x1.501026p-20f, 0x1.77c948p-23f, 0x1.4dc20cp-27f, 0, 0, 0, 0x1.0e5e62p-3f, -0x1.867254p4f, 0x1.a41954p2f,
    0x1.c32676p2f, 0x1.3a4538p-1f, -0x1.fc0ee2p-1f, 0x1.9dc2ecp-1f, 0x1.26a8ep-6f, 0x1.10df5p-4f,
    -0x1.fb7572p-6f, -0x1.ae04f4p-10f, 0x1.7e9b4ap-5f, -0x1.41a83cp-5f, -0x1.dd4124p-5f, -0x1.d04ecp-5f,
    -0x1.c31ffap-5f, -0x1.06b532p-5f, -0x1.39c1c2p-7f, 0x1.68832ep-10f, 0x1.2e9158p-8f};

LNT_INLINE vf v_tanh_piece(__m512i at, unsigned k)
{
    const float *p = lnt_tanh_pieces + k * LNT_TANH_PIECES;
    return (vf)_mm512_permutex2var_ps((__m512)v_load(p), at, (__m512)v_load(p + LNT_VL));
}

LNT_INLINE vf v_tanh(vf x)
{
    const vf a = v_min(v_splat(15.5f), v_abs(x));
    const __m512i at = _mm512_srli_epi32((__m512i)v_max(v_splat(0.0625f), a), 21);
    const vf u = a - v_tanh_piece(at, 0);
    vf y = v_tanh_piece(at, 6);
#pragma GCC unroll 5
    for (unsigned k = 5; k >= 1; k--)
        y = v_fma(y, u, v_tanh_piece(at, k));
    return v_sign_of(y, x);
}

#endif
