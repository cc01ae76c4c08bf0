#!/usr/bin/env python3
"""Neighbours in other programs: a map of a rough field by sparsegp, GPBoost and GPyTorch, with the same number of neighbours.

    cargo build --release --bin sparsegp
    python -m venv peers && peers/bin/pip install numpy scikit-learn gpboost torch gpytorch
    peers/bin/python bench/space_peers.py --rows 2000 10000 50000
    peers/bin/python bench/space_peers.py --rows 2000 10000 --likelihood poisson --neighbours 20

The field is a draw of a Matérn 3/2 kernel over the unit square by 2000 waves, with variance 1 and lengthscales 0.08 and 0.15, and
noise of variance 0.05; counts have the mean e^f. Everyone gets the same rows, a Matérn 3/2 kernel with a lengthscale an input,
a constant mean and one thread, and fits all hyperparameters by its own optimiser from its own start. Then 4000 other places are
predicted. Seconds are of the processor, with those of reading and writing files for sparsegp and without for the others.

`density` is the mean negative log density of new targets, for counts by quadrature over the normal law of f that a program predicts;
`error` is the root mean square error of the field, and `in 95 %` how often the program's interval of the field covers it.

sparsegp     --method 'vecchia(neighbours=M)', by L-BFGS
gpboost      gp_approx='vecchia' with M neighbours, by its default optimiser; for counts with its Laplace approximation
vnngp        GPyTorch's NNVariationalStrategy with all rows as inducing points (Wu, Pleiss & Cunningham 2022), by Adam at --rate,
             a tenth of it in the second half, --epochs epochs of minibatches of 256
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", RAYON_NUM_THREADS="1")

import numpy as np

NOISE = 0.05
LENGTHSCALES = (0.08, 0.15)
WAVES = 2000
TEST = 4000


def field(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns places and values of the field there."""
    rng = np.random.default_rng(7)
    heavy = np.sqrt(rng.chisquare(3.0, WAVES) / 3.0)[:, None]
    waves = rng.normal(size=(WAVES, 2)) / heavy / np.array(LENGTHSCALES)
    phases = rng.uniform(0, 2 * math.pi, WAVES)
    x = np.random.default_rng(seed).uniform(size=(rows, 2))
    f = [np.cos(part @ waves.T + phases).sum(1) for part in np.array_split(x, 1 + rows // 1000)]
    return x, math.sqrt(2 / WAVES) * np.concatenate(f)


def observed(f: np.ndarray, likelihood: str, seed: int) -> np.ndarray:
    """Returns targets at values of the field."""
    rng = np.random.default_rng(seed)
    if likelihood == "poisson":
        return rng.poisson(np.exp(f)).astype(float)
    return f + math.sqrt(NOISE) * rng.normal(size=len(f))


def density(y: np.ndarray, mean: np.ndarray, variance: np.ndarray, noise: float, likelihood: str) -> float:
    """Returns the mean negative log density of targets."""
    if likelihood == "gaussian":
        total = variance + noise
        return float(np.mean(0.5 * np.log(2 * math.pi * total) + (y - mean) ** 2 / (2 * total)))
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    f = mean[:, None] + np.sqrt(variance)[:, None] * nodes
    factorials = np.array([math.lgamma(value + 1) for value in y])
    logs = y[:, None] * f - np.exp(f) - factorials[:, None]
    return float(-np.mean(np.log(np.exp(logs) @ weights / math.sqrt(2 * math.pi))))


def sparsegp(x, y, places, args):
    """Returns mean and variance of the field at places, the variance of the noise and seconds of fit and prediction."""
    with tempfile.TemporaryDirectory() as folder:

        def table(name: str, columns: list[str], values: np.ndarray) -> str:
            path = str(Path(folder) / name)
            with open(path, "w", newline="") as file:
                csv.writer(file).writerows([columns, *values.tolist()])
            return path

        def spent(*command: str) -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([args.program, *command], check=True, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        rows = table("rows.csv", ["a", "b", "y"], np.column_stack([x, y]))
        new = table("new.csv", ["a", "b"], places)
        model, out = str(Path(folder) / "model.safetensors"), str(Path(folder) / "out.csv")
        method = f"vecchia(neighbours={args.neighbours})"
        options = [
            "--kernel",
            "matern32",
            "--mean",
            "constant",
            "--likelihood",
            args.likelihood,
            "--threads",
            "1",
        ]
        fitted = spent("fit", rows, "--target", "y", "--method", method, *options, "-o", model)
        predicted = spent("predict", model, new, "--latent", "--threads", "1", "-o", out)
        latent = columns_of(out)
        if args.likelihood == "gaussian":
            spent("predict", model, new, "--threads", "1", "-o", out)
            noise = float(np.mean(columns_of(out)[1] ** 2 - latent[1] ** 2))
        else:
            noise = 0.0
    return latent[0], latent[1] ** 2, noise, (fitted, predicted)


def columns_of(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the means and standard deviations of predictions."""
    with open(path, newline="") as file:
        found = np.array([[float(row["mean"]), float(row["sd"])] for row in csv.DictReader(file)])
    return found[:, 0], found[:, 1]


def gpboost(x, y, places, args):
    """The same by GPBoost."""
    import gpboost as gpb

    begun = time.process_time()
    model = gpb.GPModel(
        gp_coords=x,
        cov_function="matern_ard",
        cov_fct_shape=1.5,
        gp_approx="vecchia",
        num_neighbors=args.neighbours,
        likelihood=args.likelihood,
        num_parallel_threads=1,
    )
    model.fit(y=y, X=np.ones((len(y), 1)))
    fitted = time.process_time()
    model.set_prediction_data(num_neighbors_pred=args.neighbours)
    found = model.predict(
        gp_coords_pred=places, X_pred=np.ones((len(places), 1)), predict_var=True, predict_response=False
    )
    noise = 0.0
    if args.likelihood == "gaussian":
        noise = float(np.asarray(model.get_cov_pars()).ravel()[0])
    return found["mu"], found["var"], noise, (fitted - begun, time.process_time() - fitted)


def vnngp(x, y, places, args):
    """The same by GPyTorch's variational nearest neighbours."""
    import gpytorch
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    begun = time.process_time()
    size = min(256, len(x))
    inputs, targets = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self):
            q = gpytorch.variational.MeanFieldVariationalDistribution(len(x))
            strategy = gpytorch.variational.NNVariationalStrategy(
                self, inputs, q, k=args.neighbours, training_batch_size=size
            )
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ConstantMean()
            base = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=2)
            base.lengthscale = torch.tensor([0.1, 0.1])
            self.covar_module = gpytorch.kernels.ScaleKernel(base)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

        def __call__(self, x, prior=False, **kwargs):
            if x is not None and x.dim() == 1:
                x = x.unsqueeze(-1)
            return self.variational_strategy(x=x, prior=False, **kwargs)

    model, likelihood = Model(), gpytorch.likelihoods.GaussianLikelihood()
    model.train()
    likelihood.train()
    parameters = [*model.parameters(), *likelihood.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=args.rate)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(x))
    for epoch in range(args.epochs):
        if epoch == args.epochs // 2:
            optimiser.param_groups[0]["lr"] = args.rate / 10
        for _ in range(model.variational_strategy._total_training_batches):
            optimiser.zero_grad()
            output = model(x=None)
            rows = model.variational_strategy.current_training_indices
            loss = -objective(output, targets[rows])
            loss.backward()
            optimiser.step()
    fitted = time.process_time()
    model.eval()
    with torch.no_grad():
        new = torch.tensor(places, dtype=torch.float32)
        found = [model(part) for part in torch.split(new, 1000)]
        mean = torch.cat([own.mean for own in found]).double().numpy()
        variance = torch.cat([own.variance for own in found]).double().numpy()
    seconds = fitted - begun, time.process_time() - fitted
    return mean, variance, likelihood.noise.item(), seconds


PROGRAMS = {"sparsegp": sparsegp, "gpboost": gpboost, "vnngp": vnngp}


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("programs", nargs="*", default=[*PROGRAMS], help=" ".join(PROGRAMS))
    option("--rows", type=int, nargs="+", default=[2000, 10_000])
    option("--neighbours", type=int, default=30)
    option("--likelihood", choices=["gaussian", "poisson"], default="gaussian")
    option("--epochs", type=int, default=200, help="of vnngp")
    option("--rate", type=float, default=0.02, help="of vnngp")
    option("--program", default=str(Path(__file__).resolve().parent.parent / "target/release/sparsegp"))
    args = parser.parse_args()
    places, truth = field(TEST, 2)
    new = observed(truth, args.likelihood, 3)
    print("| rows | program | seconds of fit | of predictions | density | error | in 95 % |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for rows in args.rows:
        x, f = field(rows, 1)
        y = observed(f, args.likelihood, 4)
        for name in args.programs:
            if name == "vnngp" and args.likelihood != "gaussian":
                continue
            mean, variance, noise, seconds = PROGRAMS[name](x, y, places, args)
            score = density(new, mean, variance, noise, args.likelihood)
            error = math.sqrt(np.mean((mean - truth) ** 2))
            covered = 100 * np.mean(np.abs(mean - truth) < 1.96 * np.sqrt(variance))
            print(
                f"| {rows} | {name} | {seconds[0]:.1f} | {seconds[1]:.1f} | {score:.4f} | {error:.4f} | {covered:.1f} |"
            )


if __name__ == "__main__":
    main()
