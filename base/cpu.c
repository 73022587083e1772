/* cpu.c — which instruction-set levels this CPU has. */
#include "base/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* What cpuid and xgetbv say: ecx of leaf 1; ebx, ecx, edx of leaf 7; eax of its subleaf 1; what the system saves. */
typedef struct features {
    unsigned c1, b7, c7, d7, a71;
    unsigned long long saved;
} features;

static features cpu_features(void)
{
    enum { OSXSAVE = 1 << 27 };
    unsigned a, b, c, d, low, high;
    features f = {0};
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
        return f;
    f.c1 = c;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    f.saved = ((unsigned long long)high << 32) | low;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        f.b7 = b, f.c7 = c, f.d7 = d;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
        f.a71 = a;
    return f;
}

static bool has_avx2(const features *f)
{
    enum { FMA = 1 << 12, AVX = 1 << 28, F16C = 1 << 29, AVX2 = 1 << 5, YMM_STATE = 0x6 };
    const unsigned needed = FMA | AVX | F16C;
    return (f->c1 & needed) == needed && (f->saved & YMM_STATE) == YMM_STATE && (f->b7 & AVX2);
}

static bool has_avxvnni(const features *f)
{
    enum { AVX_VNNI = 1 << 4 };
    return has_avx2(f) && (f->a71 & AVX_VNNI);
}

static bool has_avx512(const features *f)
{
    enum { AVX512F = 1 << 16, AVX512DQ = 1 << 17, AVX512BW = 1 << 30, ZMM_STATE = 0xe6 };
    const unsigned needed = AVX512F | AVX512DQ | AVX512BW | 1u << 31 /* AVX512VL */;
    return has_avx2(f) && (f->b7 & needed) == needed && (f->saved & ZMM_STATE) == ZMM_STATE;
}

static bool has_avx512vnni(const features *f)
{
    enum { AVX512_VNNI = 1 << 11 };
    return has_avx512(f) && (f->c7 & AVX512_VNNI);
}

/* Linux gives a process the registers of AMX when it asks for them. */
static bool has_amx(const features *f)
{
#if defined(LNT_AMX_EMULATED)
    return has_avx512vnni(f);
#elif defined(__linux__)
    enum { AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25, TILE_STATE = 0x60000, ASK = 0x1023, TILE_DATA = 18 };
    return has_avx512vnni(f) && (f->d7 & AMX_TILE) && (f->d7 & AMX_INT8) &&
           (f->saved & TILE_STATE) == TILE_STATE && syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
#else
    (void)f;
    return false;
#endif
}

#elif defined(__aarch64__) || defined(__ARM_NEON) || defined(LNT_ARMV7)
#include <sys/auxv.h>

typedef struct features {
    unsigned long hwcap, hwcap2;
} features;

static features cpu_features(void)
{
    return (features){getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
}

#if defined(__aarch64__)
/* Is it one of Arm's cores that run in order and whose vector loads hold up arithmetic: Cortex-A35, A53, A55? */
static bool is_in_order(unsigned long implementer, unsigned long part)
{
    enum { ARM = 0x41, A35 = 0xd04, A53 = 0xd03, A55 = 0xd05 };
    return implementer == ARM && (part == A35 || part == A53 || part == A55);
}

/* Are all cores that /proc/cpuinfo lists? otherwise: if it lists none. */
static bool all_in_order(bool otherwise)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];
    unsigned long implementer = 0;
    bool all = true, any = false;
    while (f && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (value && strncmp(line, "CPU implementer", 15) == 0)
            implementer = strtoul(value + 1, NULL, 16);
        if (value && strncmp(line, "CPU part", 8) == 0) {
            all &= is_in_order(implementer, strtoul(value + 1, NULL, 16));
            any = true;
        }
    }
    if (f)
        fclose(f);
    return any ? all : otherwise;
}

static bool cores_in_order(void)
{
    enum { HWCAP_CPUID_BIT = 1 << 11 };
    if (!(cpu_features().hwcap & HWCAP_CPUID_BIT))
        return all_in_order(false);
    unsigned long midr;
    __asm__("mrs %0, midr_el1" : "=r"(midr)); /* the system answers */
    return is_in_order(midr >> 24 & 0xff, midr >> 4 & 0xfff) && all_in_order(true);
}

static bool has_fp16(const features *f)
{
    enum { HWCAP_FPHP_BIT = 1 << 9, HWCAP_ASIMDHP_BIT = 1 << 10 };
    const unsigned long needed = HWCAP_FPHP_BIT | HWCAP_ASIMDHP_BIT;
    return (f->hwcap & needed) == needed;
}

static bool has_dotprod(const features *f)
{
    enum { HWCAP_ASIMDDP_BIT = 1 << 20 };
    return has_fp16(f) && (f->hwcap & HWCAP_ASIMDDP_BIT);
}

static bool has_i8mm(const features *f)
{
    enum { HWCAP2_I8MM_BIT = 1 << 13 };
    return has_dotprod(f) && (f->hwcap2 & HWCAP2_I8MM_BIT);
}
#else
static bool has_vfpv4(const features *f)
{
    enum { HWCAP_NEON_BIT = 1 << 12, HWCAP_VFPV4_BIT = 1 << 16 };
    const unsigned long needed = HWCAP_NEON_BIT | HWCAP_VFPV4_BIT;
    return (f->hwcap & needed) == needed;
}
#endif

#else

typedef struct features {
    bool none;
} features;

static features cpu_features(void)
{
    return (features){true};
}

#endif

bool lnt_cpu_in_order(void)
{
#if defined(__aarch64__)
    const char *asked = getenv("LINNET_IN_ORDER");
    return asked ? strcmp(asked, "1") == 0 : cores_in_order();
#else
    return false;
#endif
}

bool lnt_cpu_has(lnt_level level)
{
    const features cpu = cpu_features();
    (void)cpu;
    switch (level) {
#define LEVEL(ident, name, floats, half, int8, has)                                                          \
    case LNT_LEVEL_##ident:                                                                                  \
        return has;
#include "base/levels.h"
#undef LEVEL
    default: return false;
    }
}

/* The highest level that the CPU has, `most` at most. */
static lnt_level best_up_to(int most)
{
    while (most > 0 && !lnt_cpu_has((lnt_level)most))
        most--;
    return (lnt_level)most;
}

lnt_level lnt_cpu_best_level(void)
{
    return best_up_to(LNT_LEVEL_COUNT - 1);
}

static const char *const level_text[LNT_LEVEL_COUNT] = {
#define LEVEL(ident, name, ...) name,
#include "base/levels.h"
#undef LEVEL
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

const char *lnt_cpu_unknown_level(void)
{
    lnt_level asked;
    const char *name = getenv("LINNET_LEVEL");
    return name && !lnt_level_from_text(name, &asked) ? name : NULL;
}

lnt_level lnt_cpu_level(void)
{
    lnt_level asked;
    const char *name = getenv("LINNET_LEVEL");
    return name && lnt_level_from_text(name, &asked) ? best_up_to((int)asked) : lnt_cpu_best_level();
}
