"""Other programs on the rows of `bench --bin series`: the log evidence of a Matérn 3/2 kernel with its slopes.

    cargo build -p sparsegp-bench --bin series
    python -m venv peers && peers/bin/pip install celerite2 statsmodels tinygp 'jax[cpu]'
    peers/bin/python bench/series_peers.py --rows 10000 100000 1000000

All have the variance, the lengthscale and the variance of the noise 1, 1 and 0.1, places that are not even,
and one processor, of which seconds are counted. Values are compared first, and must agree to a relative
1e-6. Slopes are by the lengthscale, the size and the noise, but those of celerite2's own backward pass,
which are by its matrices; those of statsmodels are complex differences, as it has no others.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

NOISE = 0.1


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns places and targets."""
    i = np.arange(n)
    t = 0.1 * (i + 0.4 * np.sin(12.9898 * i))
    return t, np.sin(0.3 * t) + 0.3 * np.sin(7.1 * i)


def spent(n: int, work, repeats: int) -> tuple[float, float]:
    """Returns what was found and the seconds that the processor spends, on average."""
    value, repeats = work(), max(repeats, 300_000 // n)
    begun = time.process_time()
    for _ in range(repeats):
        work()
    return float(value), (time.process_time() - begun) / repeats


def celerite2(t: np.ndarray, y: np.ndarray, repeats: int) -> tuple[float, float]:
    """Its passes forwards and backwards."""
    from celerite2 import backprop, terms

    y, n = y[:, None], len(t)
    kernel = terms.Matern32Term(sigma=1.0, rho=1.0, eps=1e-5)

    def work() -> float:
        c, a, u, v = kernel.get_celerite_matrices(t, np.full(n, NOISE))
        size, empty = u.shape[1], np.empty_like
        d, w, s = backprop.factor_fwd(t, c, a, u, v, empty(a), empty(v), np.empty((n, size, size)))
        z, f = backprop.solve_lower_fwd(t, c, u, w, y, empty(y), np.empty((n, size, 1)))
        bars = -z / d[:, None], -0.5 * (1 / d - z[:, 0] ** 2 / d**2)
        to = empty(t), empty(c), empty(u), empty(w), empty(y)
        _, _, _, w_bar, _ = backprop.solve_lower_rev(t, c, u, w, y, z, f, bars[0], *to)
        to = empty(t), empty(c), empty(a), empty(u), empty(v)
        backprop.factor_rev(t, c, a, u, v, d, w, s, bars[1], w_bar, *to)
        return -0.5 * (np.log(2 * np.pi * d).sum() + (z[:, 0] ** 2 / d).sum())

    return spent(len(t), work, repeats)


def tinygp(t: np.ndarray, y: np.ndarray, repeats: int) -> tuple[float, float]:
    """Its quasiseparable kernel, compiled before."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from tinygp import GaussianProcess
    from tinygp.kernels import quasisep

    def value(free):
        kernel = quasisep.Matern32(scale=free[0], sigma=free[1])
        return GaussianProcess(kernel, t, diag=free[2]).log_probability(y)

    both, at = jax.jit(jax.value_and_grad(value)), jax.numpy.array([1.0, 1.0, NOISE])
    jax.block_until_ready(both(at))
    return spent(len(t), lambda: jax.block_until_ready(both(at))[0], repeats)


def statsmodels(t: np.ndarray, y: np.ndarray, repeats: int) -> tuple[float, float]:
    """Its Kalman filter with a step for every row."""
    from statsmodels.tsa.statespace.mlemodel import MLEModel

    steps = np.append(np.diff(t), 1.0)

    class Matern32(MLEModel):
        def __init__(self) -> None:
            super().__init__(y, k_states=2, k_posdef=2, loglikelihood_burn=0)
            self["design"], self["selection"] = np.array([[1.0, 0.0]]), np.eye(2)

        def update(self, params, transformed=True, includes_fixed=False, complex_step=False):
            scale, sigma, noise = params
            rate = np.sqrt(3.0) / scale
            decay, u = np.exp(-rate * steps), rate * steps
            a = decay * np.array([[1 + u, steps], [-rate * u, 1 - u]])
            p = sigma**2 * np.array([[1.0, 0.0], [0.0, rate**2]])
            self["transition"] = a
            self["state_cov"] = p[:, :, None] - np.einsum("ikn,kl,jln->ijn", a, p, a)
            self["obs_cov"] = np.array([[noise]])
            self.ssm.initialize_known(np.zeros(2, dtype=p.dtype), p)

    model, at = Matern32(), np.array([1.0, 1.0, NOISE])

    def work() -> float:
        value = model.loglike(at)
        model.score(at, approx_complex_step=True)
        return value

    return spent(len(t), work, repeats)


def sparsegp(program: str, n: int, repeats: int) -> tuple[float, float]:
    """The model of `bench --bin series`."""
    command = [program, "--model", "--rows", str(n), "--repeats", str(repeats), "--kernel", "matern32"]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    cells = [cell.strip() for cell in table.splitlines()[-1].strip("|").split("|")]
    return float(cells[1]), float(cells[2])


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/debug/series")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    print("| rows | program | log evidence | with slopes, µs a row | times sparsegp |")
    print("| --- | --- | --- | --- | --- |")
    for n in args.rows:
        right, own = sparsegp(args.program, n, args.repeats)
        print(f"| {n} | sparsegp | {right:.3f} | {1e6 * own / n:.3f} | 1 |", flush=True)
        for peer in (celerite2, tinygp, statsmodels):
            value, cost = peer(*rows(n), args.repeats)
            if not abs(value - right) < 1e-6 * abs(right):
                raise SystemExit(f"{peer.__name__} finds {value}, and sparsegp {right}")
            print(
                f"| {n} | {peer.__name__} | {value:.3f} | {1e6 * cost / n:.3f} | {cost / own:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
