#!/usr/bin/env python3
"""Bayesian optimisation beside scikit-optimize, Optuna and random points: regret and seconds a trial.

    python bench/bayesopt.py                             all problems and peers, twenty seeds
    python bench/bayesopt.py --peers scikit-optimize --seeds 5
    python bench/bayesopt.py --page                      writes docs/bayesopt.md from the results so far

Needs only the standard library: the peers are installed in an environment that it makes and keeps in --venv, with sparsegp built from
this repository. BoTorch is among them with --botorch, which downloads PyTorch. Every peer has its defaults, and gives one point after
the other.

Regret is the value, without noise, of the point that a peer calls the best so far, less the least value that there is. With
constraints it is that of the best feasible point; scikit-optimize, which has none, gets the objective plus ten times what the
constraints are beyond their bounds. Every result is written to --json at once, and what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
PACKAGES = ["numpy", "scipy", "scikit-learn", "scikit-optimize", "optuna"]
PEERS = ["sparsegp", "sparsegp-ucb", "sparsegp-thompson", "scikit-optimize", "optuna-tpe", "random"]


def branin(x, y):
    bow = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return bow * bow + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


SCALES = [
    [10, 3, 17, 3.5, 1.7, 8],
    [0.05, 10, 17, 0.1, 8, 14],
    [3, 3.5, 1.7, 10, 17, 8],
    [17, 8, 0.05, 10, 0.1, 14],
]
PLACES = [
    [1312, 1696, 5569, 124, 8283, 5886],
    [2329, 4135, 8307, 3736, 1004, 9991],
    [2348, 1451, 3522, 2883, 3047, 6650],
    [4047, 8828, 8732, 5743, 1091, 381],
]


def hartmann(*x):
    total = 0.0
    for weight, scales, places in zip((1.0, 1.2, 3.0, 3.2), SCALES, PLACES):
        total += weight * math.exp(-sum(s * (v - 1e-4 * p) ** 2 for s, v, p in zip(scales, x, places)))
    return -total


class Problem:
    """A function of numbers in a box, its least value, standard deviation of noise and constraints (at most 0)."""

    def __init__(self, function, box, least, trials, noise=0.0, constraints=()):
        self.function, self.box, self.least, self.trials = function, box, least, trials
        self.noise, self.constraints = noise, constraints

    def feasible(self, x):
        return all(constraint(*x) <= 0 for constraint in self.constraints)


PROBLEMS = {
    "Branin": Problem(branin, [(-5, 10), (0, 15)], 0.397887, 40),
    "Hartmann-6": Problem(hartmann, [(0, 1)] * 6, -3.32237, 60),
    "Branin, noise 5": Problem(branin, [(-5, 10), (0, 15)], 0.397887, 60, noise=5.0),
    # Gramacy et al. 2016, "Modeling an augmented Lagrangian for blackbox constrained optimization"
    "constrained": Problem(
        lambda a, b: a + b,
        [(0, 1), (0, 1)],
        0.599788,
        40,
        constraints=(
            lambda a, b: 1.5 - a - 2 * b - 0.5 * math.sin(2 * math.pi * (a * a - 2 * b)),
            lambda a, b: a * a + b * b - 1.5,
        ),
    ),
}


# -- peers: each yields points, is sent (value, constraints), and says what its best is ------------


class Sparsegp:
    def __init__(self, problem, seed, acquisition="ei"):
        from sparsegp.bayesopt import Optimiser, Real

        self.names = [f"x{i}" for i in range(len(problem.box))]
        bounds = [f"c{i}<=0" for i in range(len(problem.constraints))]
        space = {name: Real(*ends) for name, ends in zip(self.names, problem.box)}
        self.own = Optimiser(space, acquisition=acquisition, constraints=bounds, random_state=seed)

    def ask(self):
        self.point = self.own.ask()
        return [self.point[name] for name in self.names]

    def tell(self, value, constraints):
        self.own.tell(self.point, value, {f"c{i}": c for i, c in enumerate(constraints)})

    def best(self):
        found = self.own.best()
        return found and [found.point[name] for name in self.names]


class Seen:
    """Peers whose best is the best value seen."""

    def __init__(self, problem):
        self.known, self.problem = [], problem

    def note(self, x, value, constraints):
        if all(c <= 0 for c in constraints):
            self.known.append((value, x))

    def best(self):
        return min(self.known)[1] if self.known else None


class Random(Seen):
    def __init__(self, problem, seed):
        super().__init__(problem)
        self.rng = random.Random(seed)

    def ask(self):
        self.x = [self.rng.uniform(*ends) for ends in self.problem.box]
        return self.x

    def tell(self, value, constraints):
        self.note(self.x, value, constraints)


class Skopt(Seen):
    def __init__(self, problem, seed):
        from skopt import Optimizer

        super().__init__(problem)
        self.own = Optimizer([(float(a), float(b)) for a, b in problem.box], random_state=seed)

    def ask(self):
        self.x = [float(v) for v in self.own.ask()]
        return self.x

    def tell(self, value, constraints):
        self.note(self.x, value, constraints)
        self.own.tell(self.x, value + 10 * sum(max(0.0, c) for c in constraints))


class Tpe(Seen):
    def __init__(self, problem, seed):
        import optuna

        super().__init__(problem)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        bounds = (lambda trial: trial.user_attrs["bounds"]) if problem.constraints else None
        self.own = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, constraints_func=bounds))

    def ask(self):
        self.trial = self.own.ask()
        self.x = [self.trial.suggest_float(f"x{i}", *ends) for i, ends in enumerate(self.problem.box)]
        return self.x

    def tell(self, value, constraints):
        self.note(self.x, value, constraints)
        self.trial.set_user_attr("bounds", list(constraints))
        self.own.tell(self.trial, value)


class Botorch(Seen):
    """BoTorch's parts as its documentation puts them together: SingleTaskGP and LogExpectedImprovement."""

    def __init__(self, problem, seed):
        import torch

        super().__init__(problem)
        torch.manual_seed(seed)
        self.rows = []

    def ask(self):
        import torch
        from botorch.acquisition import LogConstrainedExpectedImprovement, LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.models.transforms import Normalize, Standardize
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        ends = torch.tensor(self.problem.box, dtype=torch.double).T
        if len(self.rows) < 2 * len(self.problem.box) + 2:
            self.x = (
                ends[0] + (ends[1] - ends[0]) * torch.rand(len(self.problem.box), dtype=torch.double)
            ).tolist()
            return self.x
        x = torch.tensor([row[0] for row in self.rows], dtype=torch.double)
        y = torch.tensor([[-row[1], *row[2]] for row in self.rows], dtype=torch.double)
        models = []
        for j in range(y.shape[1]):
            own = SingleTaskGP(
                x,
                y[:, j : j + 1],
                input_transform=Normalize(x.shape[1], bounds=ends),
                outcome_transform=Standardize(1),
            )
            fit_gpytorch_mll(ExactMarginalLogLikelihood(own.likelihood, own))
            models.append(own)
        if self.problem.constraints:
            best = -min(self.known)[0] if self.known else y[:, 0].min().item()
            bounds = {j: (None, 0.0) for j in range(1, y.shape[1])}
            rule = LogConstrainedExpectedImprovement(ModelListGP(*models), best, 0, bounds)
        else:
            rule = LogExpectedImprovement(models[0], models[0].posterior(x).mean.max())
        found, _ = optimize_acqf(rule, bounds=ends, q=1, num_restarts=5, raw_samples=512)
        self.x = found[0].tolist()
        return self.x

    def tell(self, value, constraints):
        self.note(self.x, value, constraints)
        self.rows.append((self.x, value, constraints))


def peer(name, problem, seed):
    if name.startswith("sparsegp"):
        return Sparsegp(problem, seed, {"ucb": "ucb", "thompson": "thompson"}.get(name[9:], "ei"))
    return {"scikit-optimize": Skopt, "optuna-tpe": Tpe, "botorch": Botorch, "random": Random}[name](
        problem, seed
    )


def run(name, problem, seed):
    """Regrets after every trial, none while nothing is feasible, and seconds of the peer."""
    own, noise, regrets, seconds = peer(name, problem, seed), random.Random(1000 + seed), [], 0.0
    for _ in range(problem.trials):
        start = time.perf_counter()
        x = own.ask()
        seconds += time.perf_counter() - start
        value = problem.function(*x) + (noise.gauss(0, problem.noise) if problem.noise else 0.0)
        constraints = [constraint(*x) for constraint in problem.constraints]
        start = time.perf_counter()
        own.tell(value, constraints)
        seconds += time.perf_counter() - start
        best = own.best()
        known = best is not None and problem.feasible(best)
        regrets.append(problem.function(*best) - problem.least if known else None)
    return {"regrets": regrets, "seconds": seconds / problem.trials}


# -- results and page ------------------------------------------------------------------------------


def quantile(values, level):
    values = sorted(values)
    at = level * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    if math.isinf(values[high]):
        return values[low] if at == low else math.inf
    return values[low] + (at - low) * (values[high] - values[low])


def shown(value):
    return "–" if math.isinf(value) else f"{value:.2g}"


def table(results, problem, peers):
    trials = PROBLEMS[problem].trials
    marks = [mark for mark in (10, 20, 30, 40, 60) if mark <= trials]
    lines = ["| peer | seeds | " + " | ".join(f"{mark} trials" for mark in marks) + " | ms a trial |"]
    lines.append("| --- " * (len(marks) + 3) + "|")
    for name in peers:
        own = [value for key, value in results.items() if key.split("/")[:2] == [problem, name]]
        if not own:
            continue
        cells = []
        for mark in marks:
            regrets = [one["regrets"][mark - 1] for one in own]
            regrets = [math.inf if regret is None else regret for regret in regrets]
            cells.append(
                f"{shown(quantile(regrets, 0.5))} ({shown(quantile(regrets, 0.25))}–{shown(quantile(regrets, 0.75))})"
            )
        seconds = quantile([one["seconds"] for one in own], 0.5)
        lines.append(f"| {name} | {len(own)} | " + " | ".join(cells) + f" | {1000 * seconds:.2g} |")
    return "\n".join(lines)


HEAD = """# Bayesian optimisation beside others

What [`sparsegp.bayesopt`](guide/bayesopt.md) finds beside what users take instead, all by their defaults, one point after the other.
Regret of the point that a peer calls the best after so many trials: median over seeds, quartiles in brackets (–: in so many
seeds nothing feasible was known). `python bench/bayesopt.py` runs it (its `--help` says how everything is measured), and
`python bench/bayesopt.py --page` writes this page.

| peer | what |
| --- | --- |
| sparsegp | expected improvement, `matern52` |
| sparsegp-ucb | upper confidence bound, two standard deviations |
| sparsegp-thompson | best points of functions drawn from the posterior |
| scikit-optimize | `Optimizer` with its Gaussian process and `gp_hedge` |
| optuna-tpe | Optuna's `TPESampler` |
| botorch | `SingleTaskGP` with `LogExpectedImprovement` |
| random | uniform points |
"""


def page(results, path):
    peers = [
        name
        for name in [*PEERS[:4], "botorch", *PEERS[4:]]
        if any(key.split("/")[1] == name for key in results)
    ]
    rows = HEAD.rstrip().split("\n")
    text = "\n".join(
        row for row in rows if not row.startswith("| ") or row.split()[1] in [*peers, "peer", "---"]
    )
    for name, problem in PROBLEMS.items():
        about = f"{len(problem.box)} inputs" + (", 2 constraints" if problem.constraints else "")
        text += f"\n\n## {name[0].upper()}{name[1:]} ({about})\n\n" + table(results, name, peers)
    path.write_text(text + "\n", encoding="utf-8")


def environment(args):
    """The Python of the environment, which is made if it is missing."""
    python = args.venv / "bin" / "python"
    packages = [*PACKAGES, *(["botorch"] if args.botorch else [])]
    done = args.venv / "packages"
    if not done.exists() or done.read_text() != " ".join(packages):
        subprocess.run([sys.executable, "-m", "venv", args.venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", REPO / "crates" / "sparsegp-python"], check=True
        )
        done.write_text(" ".join(packages))
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--peers", type=lambda text: text.split(","), help=f"some of {','.join(PEERS)}")
    option(
        "--problems",
        type=lambda text: text.split(";"),
        default=[*PROBLEMS],
        help=f"some of {';'.join(PROBLEMS)}",
    )
    option("--seeds", type=int, default=20)
    option("--botorch", action="store_true", help="BoTorch too")
    option("--json", type=Path, default=REPO / "target" / "bayesopt.json", metavar="FILE", help="the results")
    option("--page", nargs="?", type=Path, const=REPO / "docs" / "bayesopt.md", metavar="FILE",
           help="write the page of the results in --json, and run nothing (default docs/bayesopt.md)")  # fmt: skip
    option("--venv", type=Path, default=REPO / "target" / "bayesopt", help="where the environment is")
    option("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    results = json.loads(args.json.read_text()) if args.json.exists() else {}
    if args.page:
        page(results, args.page)
        return
    if not args.inside:
        threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "RAYON")}
        command = [environment(args), __file__, "--inside", *sys.argv[1:]]
        sys.exit(subprocess.run(command, env={**os.environ, **threads}).returncode)
    for seed in range(args.seeds):
        for name in args.peers or [*PEERS, *(["botorch"] if args.botorch else [])]:
            for problem in args.problems:
                key = f"{problem}/{name}/{seed}"
                if key in results:
                    continue
                results[key] = run(name, PROBLEMS[problem], seed)
                # others may have written meanwhile
                known = json.loads(args.json.read_text()) if args.json.exists() else {}
                results = {**known, key: results[key]}
                args.json.write_text(json.dumps(results))
                last = results[key]["regrets"][-1]
                print(f"{key}: regret {last}, {results[key]['seconds']:.3f} s a trial", flush=True)


if __name__ == "__main__":
    main()
