/* quantize_layer.h — one layer by itself: its float and its quantized form on the same inputs.
 *
 * The inputs are what a run of the float model has left in the values that the layer reads; they are fetched
 * before that run, and read after it. Measured are the SNR of the quantized form's outputs, the time of both
 * forms, by the clock or by a cost table, and the multiplications (lnt_qlayer.measured). */
#ifndef LNT_CONVERT_QUANTIZE_QUANTIZE_LAYER_H
#define LNT_CONVERT_QUANTIZE_QUANTIZE_LAYER_H

#include "convert/quantize/quantize_static.h"

/* Before the run: has the session keep what the layer reads. */
lnt_status lnt_fetch_layer(const lnt_graph *g, lnt_session *s, const lnt_qlayer *l, lnt_error *err);
/* Can the layer be measured? In subgraphs what a layer reads cannot be fetched. */
bool lnt_can_measure(const lnt_qlayers *layers, const lnt_qlayer *l);
/* After the run. Static layers must have been lowered (lnt_static_lower). */
lnt_status lnt_measure_layer(lnt_graph *g, const lnt_qlayers *layers, lnt_session *s, lnt_qlayer *l,
                             lnt_error *err);

#endif
