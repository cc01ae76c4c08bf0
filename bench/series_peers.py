"""celerite2 on the rows of `bench --bin series`: seconds of the log evidence of a Matérn 3/2 kernel, and with slopes.

    python -m venv peers && peers/bin/pip install celerite2 && peers/bin/python bench/series_peers.py

The slopes are those of celerite2's own backward pass, with respect to its matrices.
"""

from __future__ import annotations

import time

import numpy as np
from celerite2 import backprop, terms


def run(n: int, repeats: int = 7) -> tuple[float, float, float]:
    """Returns the log evidence, and the least seconds of it and with its slopes."""
    i = np.arange(n)
    t = 0.1 * (i + 0.4 * np.sin(12.9898 * i))
    y = (np.sin(0.3 * t) + 0.3 * np.sin(7.1 * i))[:, None]
    c, a, u, v = terms.Matern32Term(sigma=1.0, rho=1.0).get_celerite_matrices(t, np.full(n, 0.1))
    size, empty = u.shape[1], np.empty_like
    value, spent = 0.0, [np.inf, np.inf]
    for _ in range(repeats):
        start = time.perf_counter()
        d, w, s = backprop.factor_fwd(t, c, a, u, v, empty(a), empty(v), np.empty((n, size, size)))
        z, f = backprop.solve_lower_fwd(t, c, u, w, y, empty(y), np.empty((n, size, 1)))
        value = -0.5 * (np.log(2 * np.pi * d).sum() + (z[:, 0] ** 2 / d).sum())
        spent[0] = min(spent[0], time.perf_counter() - start)
        bars = -z / d[:, None], -0.5 * (1 / d - z[:, 0] ** 2 / d**2)
        to = empty(t), empty(c), empty(u), empty(w), empty(y)
        _, _, _, w_bar, _ = backprop.solve_lower_rev(t, c, u, w, y, z, f, bars[0], *to)
        to = empty(t), empty(c), empty(a), empty(u), empty(v)
        backprop.factor_rev(t, c, a, u, v, d, w, s, bars[1], w_bar, *to)
        spent[1] = min(spent[1], time.perf_counter() - start)
    return value, spent[0], spent[1]


if __name__ == "__main__":
    print("| rows | log evidence | value, µs a row | with slopes |")
    print("| --- | --- | --- | --- |")
    for rows in (10_000, 100_000, 1_000_000):
        value, plain, slopes = run(rows)
        print(f"| {rows} | {value:.3f} | {1e6 * plain / rows:.3f} | {1e6 * slopes / rows:.3f} |")
