#!/usr/bin/env python3
"""Times sparsegp's Python package against the libraries that its users would run instead: GPflow,
GPyTorch, GPJax and scikit-learn. Needs only the standard library; the peers run in separate
environments, which it makes and keeps in --venvs.

    python bench/compare.py                          everything; hours
    python bench/compare.py --quick --rounds 1       small sizes, to see that all of it runs
    python bench/compare.py --only 'svgp-*' --threads 1
    python bench/compare.py --precision single       float32 beside our mixed precision

The jobs, in float64 unless --precision says otherwise, with the same random rows, inducing points and hyperparameters for everyone
(8 inputs, squared exponential kernel with a lengthscale per input):

sgpr-M         value and gradient of the collapsed bound of Titsias (2009), 10 000 rows, M inducing
               points; the gradient is with respect to all hyperparameters and inducing points
gpr-2000       exact log marginal likelihood and its gradient, 2 000 rows
svgp-M         one training step of a sparse variational GP with a Bernoulli (probit) likelihood, 100 000
               rows: a random minibatch of 1 024, the bound, its gradient with respect to everything
               including the full covariance of q(u), Adam; svgp-small: M = 100, minibatches of 200
classify       time until the mean negative log probability of banana's 4 900 test rows is at most --nll, on all 400 rows
               with 50 inducing points, the clock stopped while the test rows are looked at and, for the peers,
               while their first step compiles: Adam at rate 0.05, for GPflow also with natural gradients of q; for
               sparsegp TSVGP (the first of 1, 2, 4, ... iterations of a training that suffice), or the whole of fit();
               for scikit-learn the whole of fit()
gplvm-M        value and gradient of the bound of the Bayesian GP-LVM (Titsias & Lawrence 2010) with M inducing points: 1 000
               rows of 12 columns and 5 latent dimensions, or 2 000 of 20 and 10; GPyTorch's is another bound, with q(u) and
               a draw of q(X), whose value is not compared
deep-L         one training step of a doubly stochastic deep GP of L layers, M = 100 in each, 8 functions in the hidden ones,
               Gaussian noise, a minibatch of 1 000 rows, one sample, Adam on everything; for sparsegp with q as the others have it
               (W) and without inverses (L)
predict-100k   mean and variance of f at 100 000 rows, from an SGPR posterior (10 000 rows, M = 512) with
               cached factors
table-NAME     exact inference with trained hyperparameters on a small real table, on its first standard splits (ten at
               most): mean seconds of a training; below the table the scores of the test rows
import         a fresh Python that imports the library, less one that imports numpy (so that a library which
               does not import numpy can come out below zero)
import-gp      the same with `from sparsegp import GPRegressor`, or the peer's nearest to it
size           what the library adds to an empty environment, in MB

How: every measurement is a separate process, pinned to as many cores as it has threads. It warms up
(which compiles, where a peer compiles) and calls for two seconds and at least five times, but for no
longer than 20 seconds; its result is the median. The peers take turns, for --rounds rounds, and the table
has the median over the rounds. Where a peer can do a job in several ways (such as with and without
`jit_compile`), the first round tries each and the others take the fastest. A way that the installed version lacks,
such as `LargeBatchVariationalStrategy` of older GPyTorch for svgp-M, is left out and named below the table.
Values are compared too: a bound, a likelihood or a prediction that differs from ours by more than 1e-4 of
itself is named there.

With --precision single the peers do the same jobs in float32, data and hyperparameters included, beside
sparsegp in mixed precision (docs/guide/precision.md). These are the jobs that it has so: sgpr-M, svgp-M,
classify, deep-L and predict-100k; scikit-learn, without float32, is left out. Only sparsegp's estimators
have mixed precision, so that its steps are timed inside fit(); where they go back to double precision,
the table has no number. `classify` is the job with a score that everyone has to reach; for sparsegp its clock
has the whole of fit() then, for k iterations too. Values may differ by 1e-3 of themselves; sparsegp's of
sgpr-M is the bound in double precision. A run is of one precision, which its table and its JSON name.

The machine has to be quiet: libraries whose threads wait for each other get many times slower beside a
compiler. On Linux the table marks numbers with ? where other processes had a tenth of the cores.

pip picks the builds; for GPyTorch on the CPU build of torch set PIP_EXTRA_INDEX_URL and the like.
"""

import argparse
import fnmatch
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
REPO = HERE.parent
WORKER = HERE / "compare" / "worker.py"
OURS = "sparsegp"
GP = "sgpr gpr svgp classify predict"
HIDDEN = " gplvm deep"  # latent inputs and layers
TABLES = " table"  # of those that bring an optimiser that stops by itself
SINGLE = "sgpr svgp classify deep predict"  # what sparsegp has in mixed precision
NO_SINGLE = "scikit-learn"
# by how much of itself a value may differ, and what the report says of a precision
PRECISIONS = {
    "double": (1e-4, "double precision: float64"),
    "single": (1e-3, f"single precision: the peers in float32, {OURS} in mixed precision"),
}


class Peer(NamedTuple):
    """What pip installs, the kinds of job it can do, its imports, the packages that the report names."""

    pip: str
    kinds: str
    imports: dict
    packages: str


PEERS = {
    OURS: Peer("", GP + TABLES + HIDDEN, {"import": "import sparsegp", "import-gp": "from sparsegp import GPRegressor"}, "numpy"),
    "gpflow": Peer("gpflow tf_keras", GP + TABLES + " gplvm", {}, "tensorflow tensorflow-probability tf_keras numpy"),
    "gpytorch": Peer("gpytorch", GP + HIDDEN, {}, "torch linear_operator numpy"),
    "gpjax": Peer("gpjax", GP, {}, "jax jaxlib equinox optax numpy"),
    "scikit-learn": Peer(
        "scikit-learn", "gpr classify" + TABLES,
        {"import": "import sklearn", "import-gp": "from sklearn.gaussian_process import GaussianProcessRegressor"},
        "numpy scipy",
    ),
}  # fmt: skip

INEXACT = "default, not exact"  # a way that is timed for the notes, and not for the table
WAYS = {
    ("gpflow", kind): ["tf.function", "jit_compile"] for kind in ("sgpr", "gpr", "svgp", "predict", "gplvm")
}
WAYS |= {("gpflow", "classify"): ["Adam", "Adam and natural gradients"]}
WAYS |= {("gpytorch", "svgp"): ["VariationalStrategy", "LargeBatchVariationalStrategy"]}
WAYS |= {(OURS, "deep"): ["W", "L"]}
WAYS |= {("gpytorch", "gpr"): ["Cholesky", INEXACT], (OURS, "classify"): ["TSVGP", "whole fit"]}

# small real tables, and of how many of their ten standard splits: some minutes of the slowest have to do
SPLITS = {"yacht": 10, "housing": 10, "energy": 5, "concrete": 3, "airfoil": 1}

# name: kind and sizes, then sizes with --quick (n rows, m inducing points, b rows in a minibatch, new rows)
JOBS = {
    "sgpr-256": ("sgpr", {"n": 10_000, "m": 256}, {"n": 2000, "m": 64}),
    "sgpr-1024": ("sgpr", {"n": 10_000, "m": 1024}, {"n": 2000, "m": 128}),
    "gpr-2000": ("gpr", {"n": 2000}, {"n": 500}),
    "svgp-small": ("svgp", {"n": 100_000, "m": 100, "b": 200}, {"n": 10_000, "m": 50, "b": 100}),
    "svgp-256": ("svgp", {"n": 100_000, "m": 256, "b": 1024}, {"n": 10_000, "m": 64, "b": 200}),
    "svgp-1024": ("svgp", {"n": 100_000, "m": 1024, "b": 1024}, {"n": 10_000, "m": 128, "b": 200}),
    "svgp-2048": ("svgp", {"n": 100_000, "m": 2048, "b": 1024}, {"n": 10_000, "m": 256, "b": 200}),
    "classify": ("classify", {}, {}),
    "gplvm-50": ("gplvm", {"n": 1000, "m": 50, "q": 5, "p": 12}, {"n": 200, "m": 10, "q": 2, "p": 4}),
    "gplvm-100": ("gplvm", {"n": 2000, "m": 100, "q": 10, "p": 20}, {"n": 200, "m": 20, "q": 3, "p": 4}),
    "deep-2": (
        "deep",
        {"n": 20_000, "m": 100, "b": 1000, "layers": 2},
        {"n": 2000, "m": 20, "b": 200, "layers": 2},
    ),
    "deep-3": (
        "deep",
        {"n": 20_000, "m": 100, "b": 1000, "layers": 3},
        {"n": 2000, "m": 20, "b": 200, "layers": 3},
    ),
    "predict-100k": ("predict", {"n": 10_000, "m": 512, "new": 100_000}, {"n": 2000, "m": 64, "new": 10_000}),
    **{
        f"table-{name}": ("table", {"table": name, "splits": splits}, {"table": name, "splits": 1})
        for name, splits in SPLITS.items()
    },
    "import": ("import", {}, {}),
    "import-gp": ("import", {}, {}),
    "size": ("size", {}, {}),
}


class Failure(Exception):
    """Why there is no number."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def numbers(text):
    return [int(n) for n in text.split(",")]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--threads", type=numbers, default=[1, 2], help="numbers of threads, such as 1,2 (the default)")
    option("--rounds", type=int, default=3, help="how often everyone has a turn (default 3)")
    option("--only", default="*", metavar="GLOB", help="the jobs to run, such as 'svgp-*'")
    option("--peers", type=lambda text: text.split(","), default=[*PEERS], help=f"some of {','.join(PEERS)}")
    option("--precision", choices=[*PRECISIONS], default="double", help="single: float32, and ours mixed")
    option("--quick", action="store_true", help="small sizes: a check, not a measurement")
    option("--nll", type=float, default=0.245, help="what `classify` waits for (default 0.245)")
    option("--limit", type=int, default=300, help="seconds that a process may take (default 300)")
    option("--wheel", type=Path, help="the wheel of sparsegp; else one is built from this repository")
    option("--rebuild", action="store_true", help="build and install sparsegp again")
    option("--json", type=Path, metavar="FILE", help="write every measurement there")
    option("--venvs", type=Path, default=REPO / "target" / "compare-venvs", metavar="DIR",
           help="where the environments are, DIR/NAME; what is there is used as it is "
           "(default target/compare-venvs)")  # fmt: skip
    args = parser.parse_args()
    double = args.precision == "double"
    possible = [j for j in JOBS if double or JOBS[j][0] in SINGLE.split()]
    args.jobs = fnmatch.filter(possible, args.only)
    args.venvs = args.venvs.absolute()
    if min(args.threads) < 1 or args.rounds < 1:
        parser.error("--threads and --rounds are at least 1")
    if unknown := [p for p in args.peers if p not in PEERS]:
        parser.error(f"no peer {unknown[0]}; there are {', '.join(PEERS)}")
    if not args.jobs:
        parser.error(f"no {args.precision}-precision job matches {args.only}; there are {', '.join(possible)}")
    args.without = [] if double else [p for p in args.peers if p == NO_SINGLE]
    args.peers = [p for p in args.peers if p not in args.without]
    if not args.peers:
        parser.error(f"{args.without[0]} has no float32")
    if args.wheel and not args.wheel.is_file():
        parser.error(f"there is no file {args.wheel}")
    return args


def run(*command, limit=None, threads=1):
    """Output of a command, in an environment that limits whatever makes threads."""
    n = str(threads)
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "XLA_FLAGS")}
    for name in ("OMP", "MKL", "OPENBLAS", "BLIS", "NUMEXPR", "RAYON"):
        env[f"{name}_NUM_THREADS"] = n
    env.update(VECLIB_MAXIMUM_THREADS=n, TF_NUM_INTRAOP_THREADS=n, TF_NUM_INTEROP_THREADS=n, NPROC=n)
    env.update(CUDA_VISIBLE_DEVICES="-1", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="2", PYTHONNOUSERSITE="1")
    if threads == 1:
        env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    try:
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=limit, env=env)
    except subprocess.TimeoutExpired:
        raise Failure(f"not done after {limit} s (--limit)") from None
    except OSError as error:
        raise Failure(str(error)) from None
    if done.returncode < 0:
        raise Failure(f"killed by signal {-done.returncode}{' (out of memory?)' * (done.returncode == -9)}")
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR")]  # pip's, which says more before its last
        raise Failure((errors or lines[-1:] or [f"exit code {done.returncode}"])[0][:300])
    return done.stdout


# ---- environments ----------------------------------------------------------------------------------------


def python_of(folder):
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_venv(folder):
    if not python_of(folder).exists():
        run(sys.executable, "-m", "venv", folder)


def pip(folder, *command):
    say(f"pip {' '.join(map(str, command))} in {folder}")
    try:
        run(python_of(folder), "-m", "pip", "--disable-pip-version-check", *command, threads=os.cpu_count())
    except Failure as failure:
        raise Failure(
            f"`pip {command[0]}` failed: {failure} (is there a network, and does the package support Python "
            f"{platform.python_version()}? --venvs takes ready environments, --wheel a ready wheel)"
        ) from None


def versions(folder):
    code = "from importlib.metadata import *; [print(d.metadata['Name'], d.version) for d in distributions()]"
    return dict(line.split() for line in run(python_of(folder), "-c", code).splitlines())


def install(peer, args):
    """The environment of a peer, made if need be: its folder, the versions there, the bytes of our wheel."""
    folder, wheels = args.venvs / peer, args.venvs / "wheels"
    make_venv(folder)
    ready = peer in versions(folder)
    if peer != OURS and not ready:
        pip(folder, "install", *PEERS[peer].pip.split())
    if peer == OURS and (args.wheel or args.rebuild or not ready):
        if not args.wheel:
            pip(folder, "wheel", "--no-deps", "--wheel-dir", wheels, REPO / "crates" / "sparsegp-python")
        wheel = args.wheel or max(wheels.glob("*.whl"), key=lambda file: file.stat().st_mtime)
        pip(folder, "install", wheel)
        pip(folder, "install", "--force-reinstall", "--no-deps", wheel)  # the same version, built again
        (folder / "wheel-bytes").write_text(str(wheel.stat().st_size))
    bytes_ = folder / "wheel-bytes"
    return folder, versions(folder), int(bytes_.read_text()) if bytes_.exists() else None


# ---- measurements ----------------------------------------------------------------------------------------


def seconds_of(result, args):
    """The number of a result: for `classify` when the test rows' score was reached."""
    if "trace" not in result:
        return result["seconds"]
    for seconds, nll in result["trace"]:
        if nll <= args.nll:
            return seconds
    raise Failure(f"reached {best_nll(result):.4f}, not {args.nll} (--nll)")


def best_nll(result):
    return min(nll for _, nll in result["trace"])


class Cell:
    """The measurements of one peer in one row of the table."""

    def __init__(self, peer, job, threads, installed):
        kind, self.threads, self.failures = JOBS[job][0], threads, {}
        if kind == "import":
            self.ways = [PEERS[peer].imports.get(job, f"import {peer}")]
        else:
            self.ways = list(WAYS.get((peer, kind), [""])) if kind in PEERS[peer].kinds.split() else []
        if not self.ways:
            self.failures = {"": f"has no {kind}"}
        elif not installed:
            self.ways, self.failures = [], {"": "is not installed, see above"}
        self.runs = {way: [] for way in self.ways}

    def turn(self, folder, job, args):
        for way in list(self.ways):
            try:
                command = python_of(folder), WORKER, json.dumps({**job, "way": way})
                last = run(*command, limit=args.limit, threads=job["threads"]).splitlines()[-1]
                result = json.loads(last.removeprefix("RESULT "))
                self.runs[way].append((seconds_of(result, args), result))
            except Failure as failure:
                self.failures[way] = str(failure)
                self.ways.remove(way)
        self.ways = sorted((way for way in self.ways if way != INEXACT), key=self.median)[:1]

    def median(self, way):
        return statistics.median(seconds for seconds, _ in self.runs[way])

    @property
    def seconds(self):
        return self.median(self.ways[0]) if self.ways else None

    @property
    def disturbed(self):
        """Whether other processes had more than a tenth of the cores in most of the runs."""
        runs = self.runs[self.ways[0]] if self.ways else []
        return bool(runs) and statistics.median(run.get("others", 0) for _, run in runs) > 0.1 * self.threads

    @property
    def latest(self):
        """Seconds of only this turn."""
        return self.runs[self.ways[0]][-1][0] if self.ways else None

    @property
    def last(self):
        return self.runs[self.ways[0]][-1][1] if self.ways else {}


def measure(name, threads, found, data, args):
    """The cells of one row."""
    cells = {peer: Cell(peer, name, threads, peer in found) for peer in args.peers}
    for turn in range(args.rounds):
        first = turn % len(args.peers)
        for peer in args.peers[first:] + args.peers[:first]:
            cell = cells[peer]
            if not cell.ways:
                continue
            job = {"peer": peer, "kind": JOBS[name][0], "threads": threads, "data": str(data)}
            job["precision"] = args.precision
            job.update(JOBS[name][2 if args.quick else 1])
            job.update({"seconds": 0.5, "imports": 1} if args.quick else {"seconds": 2.0, "imports": 5})
            cell.turn(found[peer][0], job, args)
            number = f"{number_of(1000 * cell.latest)} ms" if cell.ways else [*cell.failures.values()][-1]
            say(f"{name}, threads {threads}, round {turn + 1}: {peer} {number}")
    return cells


def megabytes(found, args):
    """What each environment has beyond an empty one."""

    def bytes_in(folder):
        files = (Path(at, name) for at, _, names in os.walk(folder) for name in names)
        return sum(file.stat().st_size for file in files if not file.is_symlink())

    make_venv(args.venvs / "bare")
    bare = bytes_in(args.venvs / "bare")
    return {p: (bytes_in(found[p][0]) - bare) / 1e6 if p in found else None for p in args.peers}


# ---- report ----------------------------------------------------------------------------------------------


def number_of(x):
    return "-" if x is None else f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def table_row(name, threads, numbers, doubtful=()):
    others = {peer: x for peer, x in numbers.items() if peer != OURS and x is not None}
    ratio = "-"
    if others and (numbers.get(OURS) or 0) > 0:
        fastest = min(others, key=others.get)
        ratio = f"{others[fastest] / numbers[OURS]:.2f}{'?' * bool(doubtful)} ({fastest})"
    return [name, threads, *(number_of(x) + "?" * (peer in doubtful) for peer, x in numbers.items()), ratio]


def notes_of(name, threads, cells, precision="double"):
    values = {peer: cell.last["value"] for peer, cell in cells.items() if "value" in cell.last}
    reference = OURS if OURS in values else next(iter(values), None)
    for peer, cell in cells.items():
        where = f"{name}, threads {threads}: {peer}"
        tried = [f"{way} {number_of(1000 * cell.median(way))} ms" for way, runs in cell.runs.items() if runs]
        if len(tried) > 1:
            yield f"{where}: {', '.join(tried)}"
        for way, reason in cell.failures.items():
            yield f"{where}{f' ({way})' if way else ''}: {reason}" if cell.runs else f"{peer} {reason}"
        if cell.disturbed:
            yield "?: other processes had more than a tenth of the cores; measure that again on a quiet machine"
        if "trace" in cell.last:
            first = cell.last.get("compiling")
            yield f"{where}: best NLL {best_nll(cell.last):.4f}" + (
                f"; the first step, not counted, took {first:.1f} s" if first else ""
            )
        for score, each in cell.last.get("scores", {}).items():
            error = statistics.stdev(each) / len(each) ** 0.5 if len(each) > 1 else 0
            yield f"{where}: {score} {statistics.mean(each):.3f} ± {error:.3f}"
        if peer in values:
            gap = abs(values[peer] / values[reference] - 1)
            if not gap <= PRECISIONS[precision][0]:
                yield f"{where}: VALUE {values[peer]:.9g} DIFFERS, {reference}'s is {values[reference]:.9g} ({gap:.0e})"


def print_table(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    rows = [rows[0], ["-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)], *rows[1:]]
    for row in rows:
        cells = [f"{c:<{w}}" if i == 0 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(row, widths))]
        print(f"| {' | '.join(cells)} |")


def cpu_name():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    args = arguments()
    args.venvs.mkdir(parents=True, exist_ok=True)
    found, missing = {}, {}
    for peer in args.peers:
        try:
            found[peer] = install(peer, args)
        except Failure as failure:
            missing[peer] = f"not installed: {failure}"
            say(f"{peer}: {missing[peer]}")
    if not found:
        sys.exit("none of the peers could be installed")

    rows, record, sizes = [], [], {}
    notes = [PRECISIONS[args.precision][1], *(f"{peer} has no float32" for peer in args.without)]
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary, "data.npz")
        run(python_of(next(iter(found.values()))[0]), WORKER, "--make-data", data, REPO / "testdata", *SPLITS)
        try:
            for name in args.jobs:
                if name == "size":
                    sizes = megabytes(found, args)
                    rows.append(table_row("size (MB)", "", sizes))
                    notes += [
                        f"size: the wheel of {p} has {f[2] / 1e6:.1f} MB" for p, f in found.items() if f[2]
                    ]
                    continue
                for threads in [max(args.threads)] if JOBS[name][0] == "import" else args.threads:
                    cells = measure(name, threads, found, data, args)
                    numbers = {p: 1000 * cell.seconds if cell.ways else None for p, cell in cells.items()}
                    rows.append(table_row(name, threads, numbers, [p for p in cells if cells[p].disturbed]))
                    notes += notes_of(name, threads, cells, args.precision)
                    record.append({"job": name, "precision": args.precision, "threads": threads, "peers": {
                        peer: {"seconds": cell.seconds, "runs": cell.runs, "failures": cell.failures}
                        for peer, cell in cells.items()
                    }})  # fmt: skip
        except KeyboardInterrupt:
            notes.append("interrupted: the rest was not run")

    about = {
        "cpu": cpu_name(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(), "rounds": args.rounds, "quick": args.quick, "nll": args.nll,
        "precision": args.precision,
    }  # fmt: skip
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    for peer in args.peers:
        names = [peer, *PEERS[peer].packages.split()]
        print(f"{peer}: {missing.get(peer) or ', '.join(f'{p} {found[peer][1].get(p)}' for p in names)}")
    print()
    first = f"job (ms, {args.precision} precision)"
    print_table([[first, "threads", *args.peers, f"fastest peer / {OURS}"], *rows])
    print("".join(f"\n- {note}" for note in dict.fromkeys(notes)))
    if args.json:
        packages = {peer: environment[1] for peer, environment in found.items()}
        whole = {**about, "packages": packages, "missing": missing, "rows": record, "megabytes": sizes}
        args.json.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"compare.py: {failure}")
