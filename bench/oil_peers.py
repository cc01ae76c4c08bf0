#!/usr/bin/env python3
"""The Bayesian GP-LVM on oil flow by GPflow and GPy, as `cargo run --release -p sparsegp-bench --bin latent -- oil` has it for
sparsegp.

    python -m venv VENV && VENV/bin/pip install gpflow GPy
    VENV/bin/python bench/oil_peers.py [--points 10,20]

100 rows of 12 columns, each standardised; five dimensions, squared exponential with a lengthscale each, the bound of 2009, the best of five
starts (principal components, then half of them and half random), by L-BFGS to its end or 3000 iterations, two threads. Bounds are in the
columns' units; a dimension is used whose 1/lengthscale^2 is above a hundredth of the largest; errors are those of the nearest other row by
the two most relevant dimensions and by all five.
"""

import argparse
import gzip
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")
import numpy as np

Q, STARTS, ITERATIONS, VARIANCE, NOISE = 5, 5, 3000, 0.1, 0.1


def gpflow_(y, mean, points):
    import gpflow
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(2)
    model = gpflow.models.BayesianGPLVM(
        y, X_data_mean=tf.constant(mean), X_data_var=tf.constant(np.full_like(mean, VARIANCE)),
        kernel=gpflow.kernels.SquaredExponential(lengthscales=np.ones(Q)), num_inducing_variables=points,
    )  # fmt: skip
    model.likelihood.variance.assign(NOISE)
    options = {"maxiter": ITERATIONS}
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables, options=options)
    noise = float(model.likelihood.variance.numpy())
    return float(model.elbo()), model.kernel.lengthscales.numpy(), noise, model.X_data_mean.numpy()


def gpy(y, mean, points):
    import GPy

    kernel = GPy.kern.RBF(Q, ARD=True)
    rows = np.random.default_rng(0).permutation(len(y))[:points]
    model = GPy.models.BayesianGPLVM(
        y,
        Q,
        X=mean.copy(),
        X_variance=np.full_like(mean, VARIANCE),
        num_inducing=points,
        kernel=kernel,
        Z=mean[rows],
    )
    model.likelihood.variance[:] = NOISE
    model.optimize("lbfgsb", max_iters=ITERATIONS, messages=False)
    noise = float(np.squeeze(model.likelihood.variance))
    return float(model.log_likelihood()), np.asarray(kernel.lengthscale), noise, np.asarray(model.X.mean)


def errors(z, phase):
    apart = ((z[:, None] - z[None]) ** 2).sum(-1)
    np.fill_diagonal(apart, np.inf)
    return f"{100 * (phase[apart.argmin(1)] != phase).mean():.0f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", default="10,20", help="numbers of inducing points (default 10,20)")
    args = parser.parse_args()
    path = Path(__file__).resolve().parent.parent / "testdata" / "data" / "oil-flow.csv.gz"
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    y, phase = table[:, :-1], table[:, -1]
    scale = y.std(0)
    y, unit = (y - y.mean(0)) / scale, len(y) * np.log(scale).sum()
    first = np.linalg.svd(y, full_matrices=False)[0][:, :Q] * np.sqrt(len(y))
    print(
        "| M | peer | nats | used | noise | errors: 2 | 5 | seconds |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    for points in map(int, args.points.split(",")):
        for name, fit in (("GPflow", gpflow_), ("GPy", gpy)):
            found, begun = [], time.perf_counter()
            for start in range(STARTS):
                half = np.random.default_rng(start).standard_normal(first.shape)
                found.append(fit(y, first if start == 0 else np.sqrt(0.5) * (first + half), points))
            bound, lengths, noise, z = max(found, key=lambda own: own[0])
            seconds = time.perf_counter() - begun
            relevance = lengths**-2 / (lengths**-2).max()
            two = z[:, np.argsort(-relevance)[:2]]
            cells = (f"{bound - unit:.1f}", (relevance > 0.01).sum(), f"{noise:.4f}", errors(two, phase))
            cells = (points, name, *cells, errors(z, phase), f"{seconds:.1f}")
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
