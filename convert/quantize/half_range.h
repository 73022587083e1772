/* half_range.h — activations too large for halves, brought into their range by powers of two. */
#ifndef LNT_CONVERT_QUANTIZE_HALF_RANGE_H
#define LNT_CONVERT_QUANTIZE_HALF_RANGE_H

#include "base/half.h"
#include "convert/graph/edit.h"
#include "convert/quantize/quantize.h"

/* Up to this no value comes near the largest half, 65504, whatever the inputs are. */
#define LNT_HALF_AT_MOST (LNT_F16_MAX / 8)

/* Where a layer reads or gives more than that (lnt_qlayer.largest), and what lies between it and the model's inputs and
 * outputs lets a factor through, constants are exchanged so that the values become smaller; nothing else changes, as
 * powers of two are exact. *scaled: some were. All layers are in their plain form. */
lnt_status lnt_scale_for_halves(lnt_edit *e, const lnt_qlayers *layers, bool *scaled);

#endif
