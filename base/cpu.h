/* cpu.h — instruction-set levels.
 *
 * A level is a set of kernels, not a CPU bit (base/levels.h). Levels of one architecture are ordered by what they are
 * worth; a CPU may lack one between others that it has. Found from cpuid+xgetbv (x86) or getauxval (ARM), lowered by
 * options or by the environment variable LINNET_LEVEL, never raised past what the CPU has. Registers of AMX are there
 * only for processes that ask Linux for them: finding the level asks. */
#ifndef LNT_BASE_CPU_H
#define LNT_BASE_CPU_H

#include <stdbool.h>

typedef enum lnt_level {
#define LEVEL(ident, ...) LNT_LEVEL_##ident,
#include "base/levels.h"
#undef LEVEL
    LNT_LEVEL_COUNT
} lnt_level;

/* The best level of this CPU; with LINNET_LEVEL, the best one up to that. */
lnt_level lnt_cpu_level(void);
/* What LINNET_LEVEL holds where no level of this build is called so, else NULL. */
const char *lnt_cpu_unknown_level(void);
/* The best level of this CPU, whatever the environment says. */
lnt_level lnt_cpu_best_level(void);
bool lnt_cpu_has(lnt_level level);
/* Do all cores, of 64-bit ARM, run instructions in order? They have tiles of their own, which give the same bits as the
 * level's others and run everywhere. LINNET_IN_ORDER is 1 or 0: say so whatever the cores are. */
bool lnt_cpu_in_order(void);
const char *lnt_level_text(lnt_level level);
/* False if no level of this build is called name. */
bool lnt_level_from_text(const char *name, lnt_level *out);

#endif
