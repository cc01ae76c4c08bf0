#!/usr/bin/env python3
"""Deep Gaussian processes on kin40k: a step, and the seconds until the test rows have an NLPD of -0.5, of sparsegp, GPyTorch and
GPflux.

    python bench/deep_peers.py --make DIR          environments for all three in DIR (pip; minutes)
    python bench/deep_peers.py --venvs DIR         the table

Two and three layers, 8 functions in the hidden ones, one kernel a layer, 100 inducing points each, minibatches of 1000 rows, Adam at
0.01, one sample, float64, 36 000 rows to learn from and 4000 to test on, all standardised. Everybody starts as their library
does. The peers' test rows are predicted by 10 samples every 25 steps with the clock stopped, and what they compile is not counted; of
sparsegp it is the whole of the shortest of fits of 1, 2, 3, 4, 6, 8, ... epochs that gets there.
"""

import argparse
import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
POINTS, BATCH, RATE, SAMPLES, EVERY = 100, 1000, 0.01, 10, 25
WANTED, MOST = -0.5, 900.0
PEERS = {"sparsegp": [], "GPyTorch": ["gpytorch"], "GPflux": ["gpflux"]}


def rows():
    import numpy as np

    with gzip.open(REPO / "testdata" / "data" / "kin40k.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    order = np.random.default_rng(0).permutation(len(table))
    table = table[order]
    learn = table[4000:]
    table = (table - learn.mean(0)) / learn.std(0)
    return table[4000:, :-1].copy(), table[4000:, -1:].copy(), table[:4000, :-1].copy(), table[:4000, -1].copy()


def nlpd(y, means, variances):
    """Of an even mixture of normals, samples by rows."""
    import numpy as np

    logs = -0.5 * np.log(2 * np.pi * variances) - 0.5 * (y - means) ** 2 / variances
    most = logs.max(0)
    return float(-(most + np.log(np.exp(logs - most).mean(0))).mean())


def trained(step, predict, y):
    """Seconds a step and seconds until it is good enough, from functions that make so many steps and that predict."""
    step(1)
    clock, steps, score = 0.0, 0, 0.0
    while clock < MOST and score > WANTED:
        start = time.perf_counter()
        step(EVERY)
        clock += time.perf_counter() - start
        steps += EVERY
        score = nlpd(y, *predict())
    return {"step": clock / steps, "seconds": clock, "steps": steps, "nlpd": score}


def sparsegp(layers, kind):
    from sparsegp import GPRegressor

    X, y, new, target = rows()
    for epochs in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192):
        start = time.perf_counter()
        model = GPRegressor(
            method=f"deep(layers={layers}, kind={kind})", n_inducing=POINTS, batch_size=BATCH, epochs=epochs,
            learning_rate=RATE, standardise=False,
        ).fit(X, y[:, 0])  # fmt: skip
        seconds = time.perf_counter() - start
        score = -float(model.log_predictive_density(new, target).mean())
        if score <= WANTED:
            break
    steps = model.n_iter_
    return {"step": model.trace_["seconds"][-1] / steps, "seconds": seconds, "steps": steps, "nlpd": score}


def gpytorch_(layers, _):
    import gpytorch
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)
    X, y, new, target = rows()
    X, y, new = torch.tensor(X), torch.tensor(y[:, 0]), torch.tensor(new)
    Z = X[torch.randperm(len(X))[:POINTS]]

    class Layer(gpytorch.models.deep_gps.DeepGPLayer):
        def __init__(self, outputs):
            batch = torch.Size([] if outputs is None else [outputs])
            q = gpytorch.variational.CholeskyVariationalDistribution(POINTS, batch_shape=batch)
            own = gpytorch.variational.VariationalStrategy(self, Z.clone(), q, learn_inducing_locations=True)
            super().__init__(own, X.shape[1], outputs)
            last = outputs is None
            self.mean_module = gpytorch.means.ConstantMean() if last else gpytorch.means.LinearMean(X.shape[1])
            kernel = gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class Deep(gpytorch.models.deep_gps.DeepGP):
        def __init__(self):
            super().__init__()
            self.hidden = torch.nn.ModuleList(Layer(X.shape[1]) for _ in range(layers - 1))
            self.last = Layer(None)

        def forward(self, x):
            for layer in self.hidden:
                x = layer(x)
            return self.last(x)

    model, likelihood = Deep(), gpytorch.likelihoods.GaussianLikelihood()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    bound = gpytorch.mlls.DeepApproximateMLL(bound)
    adam = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=RATE)

    def step(count):
        model.train()
        with gpytorch.settings.num_likelihood_samples(1):
            for _ in range(count):
                own = torch.randperm(len(X))[:BATCH]
                adam.zero_grad()
                (-bound(model(X[own]), y[own])).backward()
                adam.step()

    def predict():
        model.eval()
        with torch.no_grad(), gpytorch.settings.num_likelihood_samples(SAMPLES):
            found = likelihood(model(new))
            return found.mean.numpy(), found.variance.numpy()

    return trained(step, predict, target)


def gpflux_(layers, _):
    import numpy as np
    import tensorflow as tf
    from gpflux.architectures import Config, build_constant_input_dim_deep_gp

    tf.random.set_seed(0)
    np.random.seed(0)
    tf.config.threading.set_intra_op_parallelism_threads(2)
    X, y, new, target = rows()
    settings = Config(
        num_inducing=POINTS, inner_layer_qsqrt_factor=1e-5, likelihood_noise_variance=1e-2, whiten=True
    )
    model = build_constant_input_dim_deep_gp(X, layers, settings)
    adam = tf.optimizers.Adam(RATE)
    adam.build(model.trainable_variables)

    @tf.function
    def once(x, y):
        with tf.GradientTape() as tape:
            loss = -model.elbo((x, y))
        adam.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    rng = np.random.default_rng(1)

    def step(count):
        for _ in range(count):
            own = rng.permutation(len(X))[:BATCH]
            once(tf.constant(X[own]), tf.constant(y[own]))

    @tf.function
    def moments(x):
        return model.predict_f(x)

    def predict():
        found = [moments(tf.constant(new)) for _ in range(SAMPLES)]
        noise = float(model.likelihood_layer.likelihood.variance.numpy())
        means = np.stack([mean.numpy()[:, 0] for mean, _ in found])
        return means, np.stack([variance.numpy()[:, 0] + noise for _, variance in found])

    return trained(step, predict, target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--make", type=Path, help="make the environments here")
    parser.add_argument("--venvs", type=Path, help="where they are")
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        peer, layers, kind = args.inside
        run = {"sparsegp": sparsegp, "GPyTorch": gpytorch_, "GPflux": gpflux_}[peer]
        print("RESULT " + json.dumps(run(int(layers), kind)))
        return
    if args.make:
        for peer, packages in PEERS.items():
            folder = args.make / peer
            if peer == "sparsegp":
                subprocess.run([str(REPO / "scripts" / "python-env"), str(folder)], check=True)
                continue
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", "numpy", *packages], check=True)
        return
    if not args.venvs:
        parser.error("say --make DIR, or --venvs DIR")
    print(
        "| layers | | ms a step | steps | seconds to an NLPD of -0.5 | NLPD |\n| --- | --- | --- | --- | --- | --- |"
    )
    for layers in (2, 3):
        for peer, kind in (("sparsegp", "l"), ("sparsegp", "w"), ("GPyTorch", "w"), ("GPflux", "w")):
            python = args.venvs / peer / "bin" / "python"
            command = [str(python), __file__, "--inside", peer, str(layers), kind]
            done = subprocess.run(command, capture_output=True, text=True)
            found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
            name = f"{peer}, {kind.upper()}"
            if not found:
                print(f"| {layers} | {name} | failed: {done.stderr.strip().splitlines()[-1:]} |", flush=True)
                continue
            own = json.loads(found[-1][7:])
            reached = f"{own['seconds']:.1f}" if own["nlpd"] <= WANTED else f"not in {own['seconds']:.0f}"
            cells = (f"{1e3 * own['step']:.1f}", own["steps"], reached, f"{own['nlpd']:.2f}")
            print(f"| {layers} | {name} | " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
