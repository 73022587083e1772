#!/usr/bin/env python3
"""hysteresis.py MODEL < NUMBERS: 0 or 1 for each number, by a model with acme.Hysteresis, which is a function of this file."""

import sys

import numpy as np

import linnet


def hysteresis(x, low=0.25, high=0.75):
    """float [n] to float [n]: 1 from where x reaches `high` until it falls below `low`."""
    if x.ndim != 1 or x.dtype != np.float32:
        raise ValueError("takes float[N]")
    if low > high:
        raise ValueError("low is above high")
    y, on = np.empty_like(x), 0.0
    for i, value in enumerate(x):
        y[i] = on = 1.0 if value >= high else 0.0 if value < low else on
    return y


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    linnet.register("acme::Hysteresis", hysteresis)
    try:
        session = linnet.InferenceSession(sys.argv[1])
        numbers = np.array(sys.stdin.read().split(), np.float32)
        print(*session.run(None, {"x": numbers})[0].astype(int))
    except (ValueError, linnet.LinnetError) as why:
        sys.exit(f"hysteresis: {why}")


if __name__ == "__main__":
    main()
