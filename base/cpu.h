/* cpu.h — instruction-set levels.
 *
 * A level is a set of kernels, not a CPU bit. Levels of one architecture are ordered: each can run what the
 * ones before it run. Found from cpuid+xgetbv (x86) or getauxval (ARM), lowered by options or by the
 * environment variable LINNET_LEVEL, never raised past what the CPU has. Registers of AMX are there only for
 * processes that ask Linux for them: finding the level asks. */
#ifndef LNT_BASE_CPU_H
#define LNT_BASE_CPU_H

#include <stdbool.h>

/* X(identifier, text), lowest first; those of the architecture compiled for. A library trimmed for 64-bit
 * ARM, which always has NEON, leaves out the scalar kernels. */
#if defined(LNT_NEON_ONLY)
#define LNT_LEVEL_LIST(X) X(NEON, "neon") X(DOTPROD, "dotprod") X(I8MM, "i8mm")
#elif defined(__x86_64__)
#define LNT_LEVEL_LIST(X)                                                                                    \
    X(SCALAR, "scalar") X(AVX2, "avx2") X(AVX512, "avx512") X(AVX512VNNI, "avx512vnni") X(AMX, "amx")
#elif defined(__aarch64__)
#define LNT_LEVEL_LIST(X) X(SCALAR, "scalar") X(NEON, "neon") X(DOTPROD, "dotprod") X(I8MM, "i8mm")
#elif defined(__ARM_NEON) || defined(LNT_ARMV7)
#define LNT_LEVEL_LIST(X) X(SCALAR, "scalar") X(NEON, "neon")
#else
#define LNT_LEVEL_LIST(X) X(SCALAR, "scalar")
#endif

typedef enum lnt_level {
#define X(name, text) LNT_LEVEL_##name,
    LNT_LEVEL_LIST(X)
#undef X
        LNT_LEVEL_COUNT
} lnt_level;

/* The best level of this CPU, after LINNET_LEVEL. */
lnt_level lnt_cpu_level(void);
/* The best level of this CPU, whatever the environment says. */
lnt_level lnt_cpu_best_level(void);
const char *lnt_level_text(lnt_level level);
/* False if no level of this build is called name. */
bool lnt_level_from_text(const char *name, lnt_level *out);

#endif
