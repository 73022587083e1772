/* levels.h — one row per level of instructions, lowest first.
 *
 * LEVEL(Ident, name, floats, int8, has)
 *   Ident   LNT_LEVEL_Ident
 *   name    in options, reports and LINNET_LEVEL
 *   floats  suffix of the tables that serve it in all families but int8's: lnt_gemm_avx2 in ops/gemm/gemm_avx2.c
 *   int8    suffix of the int8 table: lnt_qgemm_avx512vnni
 *   has     does the CPU have it? Asked when it has those of all rows before; terms are base/cpu.c's
 *
 * A library trimmed for 64-bit ARM, which always has NEON, leaves out the scalar kernels. Compiler flags of a
 * suffix: CFLAGS_suffix in the Makefile. */

/* clang-format off */
#if !defined(LNT_NEON_ONLY)
LEVEL(SCALAR, "scalar", scalar, scalar, true)
#endif
#if defined(__x86_64__)
LEVEL(AVX2, "avx2", avx2, avx2, has_avx2(&cpu))
LEVEL(AVX512, "avx512", avx512, avx2, has_avx512(&cpu))
LEVEL(AVX512VNNI, "avx512vnni", avx512, avx512vnni, cpu.c7 & 1u << 11)
LEVEL(AMX, "amx", avx512, amx, has_amx(&cpu))
#elif defined(__aarch64__)
LEVEL(NEON, "neon", neon, neon, true)
LEVEL(DOTPROD, "dotprod", neon, dotprod, cpu.hwcap & 1u << 20)
LEVEL(I8MM, "i8mm", neon, i8mm, cpu.hwcap2 & 1u << 13)
#elif defined(__ARM_NEON) || defined(LNT_ARMV7)
LEVEL(NEON, "neon", neon, neon, has_vfpv4(&cpu))
#endif
/* clang-format on */
