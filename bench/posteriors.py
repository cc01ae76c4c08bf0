"""Hyperparameters by NUTS against their best values: held-out scores of exact regression on small tables.

    scripts/python-env .venv && .venv/bin/pip install pandas
    .venv/bin/python bench/posteriors.py [yacht] [housing] [--folds 5]

Five folds each. NUTS samples kernel, noise and f under log-normal priors about the values that training finds (a standard deviation
of 1 in the logarithm; of lengthscales the default prior), two chains; type-II maximum likelihood takes the values themselves,
with the same prior of lengthscales.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

from sparsegp import GPRegressor

DATA = Path(__file__).resolve().parents[1] / "testdata" / "data"


def scores(model, X, y):
    density = model.log_predictive_density(X, y)
    mean, bounds = model.predict(X, return_quantiles=[0.025, 0.25, 0.75, 0.975])
    inside = [np.mean((bounds[:, i] <= y) & (y <= bounds[:, j])) for i, j in ((1, 2), (0, 3))]
    return [-density.mean(), np.sqrt(np.mean((mean - y) ** 2)), *inside]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=["yacht", "housing"])
    parser.add_argument("--folds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | θ | NLPD | RMSE | in 50 % | in 95 % | seconds a fold | worst R̂ |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.tables:
        frame = pd.read_csv(DATA / f"{name}.csv.gz")
        X, y = frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()
        folds = list(KFold(options.folds, shuffle=True, random_state=0).split(X))
        chains = dict(chains=2, burn_in=300, draws=250, hyperparameters=True)
        for label, settings in (
            ("best", dict(method="exact")),
            ("NUTS", dict(method="nuts", sampling=chains)),
        ):
            found, seconds, worst = [], 0.0, 0.0
            for train, test in folds:
                start = time.perf_counter()
                model = GPRegressor("rbf", **settings).fit(X[train], y[train])
                seconds += time.perf_counter() - start
                mixing = (model._about["report"] or {}).get("mixing")
                if mixing:
                    worst = max(worst, *(h["split_rhat"] for h in mixing["hyperparameters"]))
                found.append(scores(model, X[test], y[test]))
            mean = np.mean(found, axis=0)
            error = np.std(found, axis=0, ddof=1) / np.sqrt(len(folds))
            cells = [f"{mean[0]:.3f} ± {error[0]:.3f}", f"{mean[1]:.3g} ± {error[1]:.2g}"]
            cells += [f"{100 * share:.1f} %" for share in mean[2:]]
            rhat = f"{worst:.3f}" if worst else "–"
            print(
                f"| {name} | {label} | {' | '.join(cells)} | {seconds / len(folds):.1f} | {rhat} |", flush=True
            )


if __name__ == "__main__":
    main()
