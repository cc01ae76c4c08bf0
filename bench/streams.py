#!/usr/bin/env python3
"""Predicts two public streams of `river` row by row, each row before it is learnt: sparsegp against
river's regressors and GPyTorch.

    python bench/streams.py            makes an environment, builds sparsegp, prints a table
    python bench/streams.py --wheel W  with this wheel of sparsegp

Everyone sees the first 100 rows without being judged, then predicts each row and learns it. river's
models learn row by row behind a running standardisation; those without a density get a Gaussian one
with the variance of their last 100 errors. GPyTorch trains an SVGP on the first 100 rows and conditions
on the others by `get_fantasy_model`. sparsegp fits the first 100 rows (Matérn-5/2, a linear kernel beside
it) and takes up rows one by one or in batches of --batch, with and without forgetting and iterations on
kernel and noise. Scores are of all rows after the first 100: mean absolute error, root mean square error,
mean negative log density, and seconds for all of it on one thread.
"""

import argparse
import math
import os
import sys
import time
import warnings
from pathlib import Path

WARM = 100
KERNELS = {"TrumpApproval": "matern52 + linear", "ChickWeights": "matern52 + linear"}


def rows_of(name):
    from river import datasets

    return [(dict(x), float(y)) for x, y in getattr(datasets, name)()]


class Score:
    """Running scores of predictions with a standard deviation."""

    def __init__(self):
        self.count = self.absolute = self.square = self.loss = 0.0

    def add(self, y, mean, sd):
        error = y - mean
        self.count += 1
        self.absolute += abs(error)
        self.square += error * error
        self.loss += 0.5 * math.log(2 * math.pi * sd * sd) + 0.5 * (error / sd) ** 2

    def cells(self, seconds):
        n = self.count
        return (
            f"{self.absolute / n:.3f} | {math.sqrt(self.square / n):.3f} | {self.loss / n:.3f} | {seconds:.2f}"
        )


def of_river(model, rows):
    """Scores of one of river's models."""
    errors, score, begun = [], Score(), time.perf_counter()
    for i, (x, y) in enumerate(rows):
        mean = model.predict_one(x)
        if i >= WARM:
            recent = errors[-100:]
            sd = math.sqrt(sum(e * e for e in recent) / len(recent)) if recent else 1.0
            score.add(y, mean, max(sd, 1e-6))
        if i > 0:
            errors.append(y - mean)
        model.learn_one(x, y)
    return score, time.perf_counter() - begun


def of_sparsegp(name, rows, batch, train, forget, correlation):
    import numpy as np

    from sparsegp import GPRegressor

    X = np.array([list(x.values()) for x, _ in rows], dtype=float)
    y = np.array([y for _, y in rows])
    begun = time.perf_counter()
    model = GPRegressor(
        kernel=KERNELS[name], method="titsias2025", n_inducing=50,
        online={"train": train, "most_points": 300, "correlation": correlation, "forget": forget},
    )  # fmt: skip
    model.partial_fit(X[:WARM], y[:WARM])
    score = Score()
    for start in range(WARM, len(rows), batch):
        part = slice(start, min(start + batch, len(rows)))
        mean, sd = model.predict(X[part], return_std=True)
        for values in zip(y[part], mean, sd):
            score.add(*values)
        model.partial_fit(X[part], y[part])
    return score, time.perf_counter() - begun, len(model.inducing_points_)


def of_gpytorch(rows, batch):
    """GPyTorch's online variational conditioning: an SVGP of the first rows, then `get_fantasy_model` of what comes."""
    import gpytorch
    import torch
    from gpytorch.kernels import LinearKernel, MaternKernel, ScaleKernel

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    X = torch.tensor([[float(v) for v in x.values()] for x, _ in rows])
    y = torch.tensor([y for _, y in rows])
    begun = time.perf_counter()
    centre, scale = X[:WARM].mean(0), X[:WARM].std(0).clamp(min=1e-9)
    level, spread = y[:WARM].mean(), y[:WARM].std()
    X, z = (X - centre) / scale, (y - level) / spread

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            own = gpytorch.variational.CholeskyVariationalDistribution(len(points))
            strategy = gpytorch.variational.VariationalStrategy(
                self, points, own, learn_inducing_locations=True
            )
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ZeroMean()
            smooth = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=points.shape[1]))
            self.covar_module = smooth + ScaleKernel(LinearKernel())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(X[:WARM][torch.randperm(WARM)[:50]])
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=WARM)
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
    for _ in range(500):
        optimiser.zero_grad()
        loss = -bound(model(X[:WARM]), z[:WARM])
        loss.backward()
        optimiser.step()
    model.eval()
    likelihood.eval()
    model.likelihood = likelihood
    score = Score()
    with torch.no_grad():
        for start in range(WARM, len(rows), batch):
            part = slice(start, min(start + batch, len(rows)))
            found = likelihood(model(X[part]))
            mean, sd = found.mean * spread + level, found.variance.sqrt() * spread
            for values in zip(y[part].tolist(), mean.tolist(), sd.tolist()):
                score.add(*values)
            model = model.get_fantasy_model(X[part], z[part])
    return score, time.perf_counter() - begun


def inside(batch):
    from river import forest, linear_model, neighbors, preprocessing, rules, tree

    def scaled(model):
        return preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(regressor=model)

    peers = {
        "linear regression": lambda: scaled(linear_model.LinearRegression()),
        "Bayesian linear regression": lambda: scaled(linear_model.BayesianLinearRegression()),
        "nearest neighbours": lambda: scaled(neighbors.KNNRegressor()),
        "Hoeffding adaptive tree": lambda: scaled(tree.HoeffdingAdaptiveTreeRegressor(seed=1)),
        "adaptive random forest": lambda: scaled(forest.ARFRegressor(seed=1)),
        "AMRules": lambda: scaled(rules.AMRules()),
    }
    for name in KERNELS:
        rows = rows_of(name)
        print(f"\n### {name}, {len(rows)} rows × {len(rows[0][0])}\n")
        print("| | MAE | RMSE | NLPD | seconds |\n| --- | --- | --- | --- | --- |")
        for label, make in peers.items():
            score, seconds = of_river(make(), rows)
            print(f"| river, {label} | {score.cells(seconds)} |", flush=True)
        for size in (1, batch):
            score, seconds = of_gpytorch(rows, size)
            how = "row by row" if size == 1 else f"batches of {size}"
            print(f"| GPyTorch, fantasies, {how} | {score.cells(seconds)} |", flush=True)
        ways = (
            (1, 0, 1.0, 0.99),
            (1, 0, 0.98, 0.99),
            (1, 0, 1.0, 0.9),
            (batch, 0, 1.0, 0.99),
            (batch, 5, 0.9, 0.9),
        )
        for size, train, forget, correlation in ways:
            score, seconds, points = of_sparsegp(name, rows, size, train, forget, correlation)
            how = f"batches of {size}" if size > 1 else "row by row"
            how += f", forgetting {forget}" if forget < 1 else ""
            how += f", {train} iterations each" if train else ""
            how += f", correlation {correlation}"
            print(f"| sparsegp, {how}, {points} points | {score.cells(seconds)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=10, help="rows that sparsegp learns together (default 10)")
    parser.add_argument(
        "--wheel", type=Path, help="the wheel of sparsegp; else one is built from this repository"
    )
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        warnings.filterwarnings("ignore")
        inside(args.batch)
        return
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import compare

    args.venvs, args.rebuild = compare.REPO / "target" / "compare-venvs", True
    folder, *_ = compare.install(compare.OURS, args)
    compare.pip(folder, "install", "--quiet", "river", "gpytorch")
    command = [compare.python_of(folder), __file__, "--inside", "--batch", args.batch]
    os.environ.update(OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1")
    os.execv(command[0], [str(part) for part in command])


if __name__ == "__main__":
    main()
