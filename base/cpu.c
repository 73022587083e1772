/* cpu.c — which instruction-set levels this CPU has. */
#include "base/cpu.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static unsigned long long xgetbv0(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((unsigned long long)high << 32) | low;
}

/* Linux gives a process the registers of AMX when it asks for them. */
static bool has_amx(unsigned d)
{
#if defined(LNT_AMX_EMULATED)
    (void)d;
    return true;
#elif defined(__linux__)
    enum { AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, TILE_STATE = 0x60000, ASK = 0x1023, TILE_DATA = 18 };
    return (d & AMX_TILE) && (d & AMX_INT8) && (xgetbv0() & TILE_STATE) == TILE_STATE &&
           syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
#else
    (void)d;
    return false;
#endif
}

lnt_level lnt_cpu_best_level(void)
{
    enum { FMA = 1 << 12, OSXSAVE = 1 << 27, AVX = 1 << 28, F16C = 1 << 29, AVX2 = 1 << 5 };
    enum {
        AVX512_VNNI = 1 << 11,
        AVX512F = 1 << 16,
        AVX512DQ = 1 << 17,
        AVX512BW = 1 << 30,
        YMM_STATE = 0x6,
        ZMM_STATE = 0xe6
    };
    const unsigned avx512 = AVX512F | AVX512DQ | AVX512BW | 1u << 31 /* AVX512VL */;
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return LNT_LEVEL_SCALAR;
    const unsigned needed = FMA | OSXSAVE | AVX | F16C;
    if ((c & needed) != needed || (xgetbv0() & YMM_STATE) != YMM_STATE)
        return LNT_LEVEL_SCALAR;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & AVX2))
        return LNT_LEVEL_SCALAR;
    const bool wide = (b & avx512) == avx512 && (xgetbv0() & ZMM_STATE) == ZMM_STATE;
    if (!wide)
        return LNT_LEVEL_AVX2;
    if (!(c & AVX512_VNNI))
        return LNT_LEVEL_AVX512;
    return has_amx(d) ? LNT_LEVEL_AMX : LNT_LEVEL_AVX512VNNI;
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

lnt_level lnt_cpu_best_level(void)
{
    enum { HWCAP_ASIMDDP_BIT = 1 << 20, HWCAP2_I8MM_BIT = 1 << 13 };
    if (!(getauxval(AT_HWCAP) & HWCAP_ASIMDDP_BIT))
        return LNT_LEVEL_NEON; /* part of the base architecture */
    return getauxval(AT_HWCAP2) & HWCAP2_I8MM_BIT ? LNT_LEVEL_I8MM : LNT_LEVEL_DOTPROD;
}

#elif defined(__ARM_NEON) || defined(LNT_ARMV7)
#include <sys/auxv.h>

lnt_level lnt_cpu_best_level(void)
{
    enum { HWCAP_NEON_BIT = 1 << 12, HWCAP_VFPV4_BIT = 1 << 16 };
    const unsigned long needed = HWCAP_NEON_BIT | HWCAP_VFPV4_BIT;
    return (getauxval(AT_HWCAP) & needed) == needed ? LNT_LEVEL_NEON : LNT_LEVEL_SCALAR;
}

#else

lnt_level lnt_cpu_best_level(void)
{
    return LNT_LEVEL_SCALAR;
}

#endif

static const char *const level_text[LNT_LEVEL_COUNT] = {
#define X(name, text) text,
    LNT_LEVEL_LIST(X)
#undef X
};

const char *lnt_level_text(lnt_level level)
{
    return level_text[level];
}

bool lnt_level_from_text(const char *name, lnt_level *out)
{
    for (int i = 0; i < LNT_LEVEL_COUNT; i++)
        if (strcmp(name, level_text[i]) == 0) {
            *out = (lnt_level)i;
            return true;
        }
    return false;
}

lnt_level lnt_cpu_level(void)
{
    lnt_level best = lnt_cpu_best_level(), asked;
    const char *name = getenv("LINNET_LEVEL");
    return name && lnt_level_from_text(name, &asked) && asked < best ? asked : best;
}
