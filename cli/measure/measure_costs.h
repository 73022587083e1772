/* measure_costs.h — the cost tables of formats/costs.h: this machine's, measured, and those of boards. */
#ifndef LNT_CLI_MEASURE_MEASURE_COSTS_H
#define LNT_CLI_MEASURE_MEASURE_COSTS_H

#include "formats/costs.h"

#include <stdbool.h>
#include <stdio.h>

/* The value of the first "key : value" line of /proc/cpuinfo; false if there is none. */
bool lnt_cpu_field(const char *key, char *text, size_t bytes);
void lnt_cpu_name(char *text, size_t bytes);

/* Measures this machine; some seconds. */
void lnt_costs_measure(lnt_costs *c);
/* The table as lnt_costs_parse reads it. */
void lnt_costs_print(const lnt_costs *c, FILE *out);
/* The table of a board (boards/costs/NAME), or of a file. In builds with the converter. */
lnt_status lnt_costs_of_board(const char *name, lnt_costs *c, lnt_error *err);

#endif
