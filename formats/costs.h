/* costs.h — the cost table of a machine: how fast it multiplies, reads and wakes.
 *
 * `linnet doctor --calibrate` prints one; boards/costs/ holds one per board. A line is a key and its values,
 * # begins a comment:
 *
 *     origin          measured, or static analysis
 *     cpu             its name
 *     clock_mhz       while it was measured
 *     governor        of that clock
 *     temperature_c   afterwards
 *     throttled       what the system said of heat and power
 *     level           NAME FLOAT BYTES: products out of the first-level cache on one core, GFLOP/s and
 *                     GOP/s; the best level last
 *     memory          KIB GBS: reading by one core from a cache of this size; the last, size 0,
 *                     is main memory
 *     quantize_ns     to bring one activation to a byte
 *     wake_us         until a sleeping worker runs
 *     handover_us     until a worker that waits awake has taken a piece of work and given it back
 *     grain_percent   the least work of a thread, in percent of what the kernels ask for
 *
 * What is not known is written "unknown". */
#ifndef LNT_FORMATS_COSTS_H
#define LNT_FORMATS_COSTS_H

#include "base/error.h"

enum { LNT_COSTS_LEVELS = 8, LNT_COSTS_MEMORIES = 8, LNT_COSTS_TEXT = 96 };

typedef struct lnt_cost_level {
    char name[16];
    double float_gflops, byte_gops;
} lnt_cost_level;

typedef struct lnt_cost_memory {
    double kib, gbs;
} lnt_cost_memory;

typedef struct lnt_costs {
    char origin[LNT_COSTS_TEXT], cpu[LNT_COSTS_TEXT], governor[LNT_COSTS_TEXT], throttled[LNT_COSTS_TEXT];
    double clock_mhz, temperature_c; /* NAN: unknown */
    lnt_cost_level level[LNT_COSTS_LEVELS];
    lnt_cost_memory memory[LNT_COSTS_MEMORIES];
    unsigned n_levels, n_memories;
    double quantize_ns, wake_us, handover_us, grain_percent;
} lnt_costs;

/* Reads a table. E_FILE names the line that is wrong, or the key that is missing. */
lnt_status lnt_costs_parse(const char *text, lnt_costs *c, lnt_error *err);

/* Microseconds that one core takes for a product with this many multiplications, whose weights have to be
 * read; in int8: whose activations have to be quantized first. */
double lnt_costs_float_us(const lnt_costs *c, double multiplications, double weight_bytes);
double lnt_costs_int8_us(const lnt_costs *c, double multiplications, double weight_bytes, double activations);

/* grain_percent from the other figures: a piece of work shall take twice as long as handing it over. */
double lnt_costs_grain_percent(const lnt_costs *c);

#endif
