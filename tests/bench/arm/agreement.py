"""Whether an engine computes on ARM what it computes on x86."""

import numpy as np

# Of the largest magnitude of an output. Kernels of another level add in another order; some convolve by Winograd's
# transform; of a quantized network a value that rounds the other way in one layer is another byte in the next.
FLOAT_MAX_REL = 1e-4
WINOGRAD_MAX_REL = 1e-3
QUANTIZED_MAX_REL = 0.1
HALF_MAX_REL = 0.05


def tolerance(row):
    if row["form"]:
        return QUANTIZED_MAX_REL
    if "--precision" in row["convert"]:
        return HALF_MAX_REL
    return WINOGRAD_MAX_REL if "--winograd" in row["convert"] else FLOAT_MAX_REL


def difference(want, got):
    """The largest, over the largest magnitude of its output; infinite where shapes, types or NaNs differ."""
    if len(want) != len(got):
        return float("inf")
    worst = 0.0
    for a, b in zip(want, got):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        if a.dtype.kind != "f":
            worst = worst if np.array_equal(a, b) else float("inf")
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return float("inf")
        finite = np.isfinite(a)
        top = float(np.abs(a[finite]).max(initial=0)) or 1.0
        worst = max(worst, float(np.abs(a[finite] - b[finite]).max(initial=0)) / top)
    return worst
