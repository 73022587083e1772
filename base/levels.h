/* levels.h — one row per level of instructions, lowest first.
 *
 * LEVEL(Ident, name, floats, half, int8, has)
 *   Ident   LNT_LEVEL_Ident
 *   name    in options, reports and LINNET_LEVEL
 *   floats  suffix of the tables that serve it in all families but those below: lnt_gemm_avx2 in ops/gemm/gemm_avx2.c
 *   half    suffix of the tables of half arithmetic, lnt_half_fp16 in ops/gemm/half_kernels_fp16.c; none: the CPU has
 *           none
 *   int8    suffix of the int8 table: lnt_qgemm_avx512vnni
 *   has     does the CPU have it? All that its files are compiled for; terms are base/cpu.c's. A CPU need not have
 *           those of the rows before
 *
 * A library trimmed for 64-bit ARM, which always has NEON, leaves out the scalar kernels. Compiler flags of a suffix:
 * CFLAGS_suffix in the Makefile. */

/* clang-format off */
#if !defined(LNT_NEON_ONLY)
LEVEL(SCALAR, "scalar", scalar, none, scalar, true)
#endif
#if defined(__x86_64__)
LEVEL(AVX2, "avx2", avx2, none, avx2, has_avx2(&cpu))
LEVEL(AVXVNNI, "avxvnni", avx2, none, avxvnni, has_avxvnni(&cpu))
LEVEL(AVX512, "avx512", avx512, none, avx2, has_avx512(&cpu))
LEVEL(AVX512VNNI, "avx512vnni", avx512, none, avx512vnni, has_avx512vnni(&cpu))
LEVEL(AMX, "amx", avx512, none, amx, has_amx(&cpu))
#elif defined(__aarch64__)
LEVEL(NEON, "neon", neon, none, neon, true)
LEVEL(FP16, "fp16", neon, fp16, neon, has_fp16(&cpu))
LEVEL(DOTPROD, "dotprod", neon, fp16, dotprod, has_dotprod(&cpu))
LEVEL(I8MM, "i8mm", neon, fp16, i8mm, has_i8mm(&cpu))
#elif defined(__ARM_NEON) || defined(LNT_ARMV7)
LEVEL(NEON, "neon", neon, none, neon, has_vfpv4(&cpu))
#endif
/* clang-format on */
