/* precision.h — `--precision`: constants of floats that the file holds in 16 bits.
 *
 * A layer is a node with constant weights. As for INT8 (quantize.h) a trial measures what rounding them costs the
 * outputs, and layers go back to float until every output keeps the SNR that was asked for. */
#ifndef LNT_CONVERT_QUANTIZE_PRECISION_H
#define LNT_CONVERT_QUANTIZE_PRECISION_H

#include "convert/quantize/trial.h"

/* dB that outputs keep where nothing else is asked for. */
enum { LNT_PRECISION_SNR = 40 };

/* The pass, by lnt_graph.precision and model_halves; nothing for floats of 32 bits. */
lnt_status lnt_pass_precision(lnt_graph *g, lnt_report *report);

#endif
