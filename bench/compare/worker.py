"""One job of one peer in one process, as `compare.py` starts it; the last line of the output is
`RESULT {json}`. `worker.py --make-data FILE TESTDATA TABLE…` writes the data of all jobs.

`peer_NAME.py` has the models of a peer: `regression(d, job)` for sgpr and gpr, a function that computes
value and gradient and returns the value; `classifier(d, job, rate)`, a training step and a function that
gives the moments of f at the test rows; `predictor(d, job)`, a function that gives those at the new rows;
`gplvm_step(d, job)` and `deep_step(d, job)`, an evaluation and a step; `regressor(d, job)`, a trained model: a function that gives mean and variance of y at new rows.
A function with the name of a job there (`gpr`, `svgp`, `classify`, ...) does the whole job instead. `floats(name)` is
called first, with `float64` or, for jobs in single precision, `float32`. sparsegp's are in mixed precision then, in
`peer_sparsegp_mixed.py`, from float64 arrays.
"""

import csv
import gzip
import importlib
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

sys.dont_write_bytecode = True  # leaves no __pycache__ beside this file

D, ROWS = 8, 100_000
NOISE, VARIANCE = 0.1, 1.3
STEPS, EVERY = 500, 5  # of `classify`: Adam steps, and how many between two looks at the test rows


def make_data(path, testdata, *tables):
    import numpy as np

    rng = np.random.default_rng(1)
    X, Xnew = rng.standard_normal((2, ROWS, D))
    f = np.sin(X @ rng.standard_normal((D, 5)) / math.sqrt(D)) @ rng.standard_normal(5)
    f /= f.std()
    arrays = {
        "X": X,
        "Xnew": Xnew,
        "y": f + math.sqrt(NOISE) * rng.standard_normal(ROWS),
        "labels": (f + 0.5 * rng.standard_normal(ROWS) > 0).astype(float),
    }
    masks = [f"{name}.test-masks" for name in tables]
    for name in ("banana", "banana-test", *tables, *masks):
        with gzip.open(Path(testdata) / "data" / f"{name}.csv.gz", "rt") as file:
            arrays[name] = np.array(list(csv.reader(file))[1:], dtype=float)
    arrays["banana-Z"] = rng.permutation(arrays["banana"])[:50, :-1]
    np.savez(path, **arrays)


def load(job):
    """The arrays of a job, the same for every peer, in its floats."""
    d = arrays(job)
    for name, value in vars(d).items():
        if hasattr(value, "astype"):
            setattr(d, name, value.astype(floats_of(job), copy=False))
    return d


def floats_of(job):
    """The type of the numbers that a peer is given."""
    return "float32" if job["precision"] == "single" and job["peer"] != "sparsegp" else "float64"


def arrays(job):
    """These arrays in double precision. The rows are independent draws, so that the first M
    are random ones: the inducing points Z."""
    import numpy as np

    file = np.load(job["data"])
    if job["kind"] == "classify":
        banana, test = file["banana"], file["banana-test"]
        return SimpleNamespace(
            X=banana[:, :-1].copy(), y=banana[:, -1:].copy(), Xtest=test[:, :-1].copy(), ytest=test[:, -1],
            Z=file["banana-Z"], variance=1.0, lengthscales=np.ones(2),
        )  # fmt: skip
    if job["kind"] == "table":
        return SimpleNamespace(table=file[job["table"]], masks=file[f"{job['table']}.test-masks"])
    if job["kind"] == "gplvm":
        n, q, p = job["n"], job["q"], job["p"]
        hidden = file["X"][:n, :3]
        rng = np.random.default_rng(3)
        waves = np.sin(hidden @ rng.standard_normal((3, 2 * p)))
        Y = waves @ rng.standard_normal((2 * p, p)) + 0.3 * rng.standard_normal((n, p))
        Y = (Y - Y.mean(0)) / Y.std(0)
        mean = np.linalg.svd(Y, full_matrices=False)[0][:, :q] * np.sqrt(n)
        return SimpleNamespace(Y=Y, mean=mean, sd2=np.full((n, q), 0.1), Z=mean[: job["m"]].copy(), noise=NOISE,
                               variance=VARIANCE, lengthscales=np.linspace(1.25, 2.5, q))  # fmt: skip
    X = file["X"][: job["n"]]
    y = file["labels" if job["kind"] == "svgp" else "y"][: job["n"], None]
    Z, Xnew = X[: job.get("m", 0)].copy(), file["Xnew"][: job.get("new", 0)]
    lengthscales = np.linspace(1.25, 2.5, D)
    return SimpleNamespace(X=X, y=y, Z=Z, Xnew=Xnew, noise=NOISE, variance=VARIANCE, lengthscales=lengthscales)


class Meter:
    """What the processor did since this was made."""

    def __init__(self):
        self.begin, self.before = time.perf_counter(), self.now()

    @staticmethod
    def now():
        """CPU seconds of this process and its children, and of everything on its cores."""
        own, every = sum(os.times()[:4]), None
        if hasattr(os, "sched_getaffinity") and os.path.exists("/proc/stat"):
            names = {f"cpu{cpu}" for cpu in os.sched_getaffinity(0)}
            lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
            ticks = [[int(n) for n in line[1:9]] for line in lines if line[0] in names]
            every = sum(sum(t) - t[3] - t[4] for t in ticks) / os.sysconf("SC_CLK_TCK")  # not idle, not waiting
        return own, every

    def report(self):
        """Cores that this process kept busy, and those that others did meanwhile."""
        seconds, (own, every) = time.perf_counter() - self.begin, self.now()
        own -= self.before[0]
        others = 0 if every is None else max(0, every - self.before[1] - own)
        return {"cores": own / seconds, "others": others / seconds}


def measure(run, job):
    """Median seconds of a call in the steady state: after two warm-up calls, calls for `job["seconds"]`
    seconds and at least five of them, but not for longer than ten times as many seconds."""
    run()
    run()
    meter, times, elapsed = Meter(), [], 0
    while elapsed < job["seconds"] or (len(times) < 5 and elapsed < 10 * job["seconds"]):
        start = time.perf_counter()
        run()
        end = time.perf_counter()
        times.append(end - start)
        elapsed = end - meter.begin
    times.sort()
    return {"seconds": times[len(times) // 2], "best": times[0], "calls": len(times), **meter.report()}


def batches(d, job):
    """Endless minibatches of `job["b"]` random rows."""
    import numpy as np

    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(len(d.X))
        for i in range(0, len(order) - job["b"] + 1, job["b"]):
            rows = order[i : i + job["b"]]
            yield d.X[rows], d.y[rows]


def nll(d, probabilities):
    """Mean negative log probability of the test labels."""
    right = [p if y == 1 else 1 - p for p, y in zip(probabilities, d.ytest)]
    return -sum(math.log(max(p, 1e-300)) for p in right) / len(right)


def test_nll(d, latent):
    """The same from means and variances of the latent function, with the probit link."""
    moments = zip(*(a.reshape(-1).tolist() for a in latent))
    return nll(d, [0.5 * math.erfc(-m / math.sqrt(2 * (1 + v))) for m, v in moments])


def train(d, step, latent):
    """The pairs (seconds, test NLL) after steps of training. The clock starts after the first step, which
    compiles, and stops while the test rows are looked at."""
    start = time.perf_counter()
    step(d.X, d.y)
    compiling, clock, trace, meter = time.perf_counter() - start, 0.0, [], Meter()
    for _ in range(STEPS // EVERY):
        start = time.perf_counter()
        for _ in range(EVERY):
            step(d.X, d.y)
        clock += time.perf_counter() - start
        trace.append((clock, test_nll(d, latent())))
    return {"trace": trace, "compiling": compiling, **meter.report()}


def fit(d, make):
    """The whole of the fit of a classifier that trains itself."""
    meter = Meter()
    model = make().fit(d.X, d.y[:, 0])
    seconds = time.perf_counter() - meter.begin
    return {**meter.report(), "trace": [(seconds, nll(d, model.predict_proba(d.Xtest)[:, 1].tolist()))]}


def splits(d, job, regressor):
    """Mean seconds of a training, and the scores of test rows in the table's own units, over its splits. Columns
    are standardised by the rows to learn from."""
    import numpy as np

    meter, seconds, scores = Meter(), 0.0, {"NLPD": [], "RMSE": []}
    for mask in d.masks.T[: job["splits"]]:
        learn, test = d.table[mask == 0], d.table[mask == 1]
        middle, width = learn.mean(0), learn.std(0)
        width[width == 0] = 1
        learn, test = (learn - middle) / width, (test - middle) / width
        own = SimpleNamespace(X=learn[:, :-1].copy(), y=learn[:, -1:].copy(), noise=0.1, variance=1.0)
        own.lengthscales = np.full(own.X.shape[1], math.sqrt(own.X.shape[1]))
        start = time.perf_counter()
        predict = regressor(own, job)
        seconds += time.perf_counter() - start
        mean, variance = (np.reshape(a, -1) for a in predict(test[:, :-1].copy()))
        error = test[:, -1] - mean
        density = 0.5 * np.log(2 * math.pi * variance) + 0.5 * error**2 / variance
        scores["NLPD"].append(float(density.mean() + math.log(width[-1])))
        scores["RMSE"].append(float(width[-1] * math.sqrt((error**2).mean())))
    return {"seconds": seconds / len(scores["NLPD"]), "scores": scores, **meter.report()}


def imports(job):
    """Wall time of a fresh Python that imports the peer, less that of one that imports numpy."""

    def once(code):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    once(job["way"])  # reads the files from the disk
    meter = Meter()
    times = sorted(once(job["way"]) - once("import numpy") for _ in range(job["imports"]))
    return {"seconds": times[len(times) // 2], **meter.report()}


def pin(threads):
    """Keep this process on that many cores, on different physical ones where there are enough."""
    if not hasattr(os, "sched_setaffinity"):  # not Linux: the environment variables have to do
        return
    physical, cpus = set(), []
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = siblings.read_text() if siblings.exists() else cpu
        cpus.append((core in physical, cpu))
        physical.add(core)
    if len(cpus) < threads:
        sys.exit(f"{threads} threads asked for, but this process may use only {len(cpus)} cores")
    os.sched_setaffinity(0, [cpu for _, cpu in sorted(cpus)[:threads]])


def do(job):
    if job["kind"] == "import":
        return imports(job)
    mixed = job["peer"] == "sparsegp" and job["precision"] == "single"
    peer = importlib.import_module("peer_" + job["peer"].replace("-", "_") + "_mixed" * mixed)
    if hasattr(peer, "floats"):
        peer.floats(floats_of(job))
    d, kind = load(job), job["kind"]
    if hasattr(peer, kind):
        return getattr(peer, kind)(d, job)
    if kind == "classify":
        return train(d, *peer.classifier(d, job, rate=0.05))
    if kind == "svgp":
        rows, (step, _) = batches(d, job), peer.classifier(d, job, rate=0.01)
        return measure(lambda: step(*next(rows)), job)
    if kind in ("gplvm", "deep"):
        run = getattr(peer, kind + "_step")(d, job)
        timed = measure(run, job)
        return {**timed, "value": float(run())} if kind == "gplvm" and job["peer"] != "gpytorch" else timed
    if kind == "table":
        return splits(d, job, peer.regressor)
    if kind == "predict":
        run = peer.predictor(d, job)
        mean, variance = run()
        return {**measure(run, job), "value": float((mean**2).mean() + variance.mean())}
    run = peer.regression(d, job)
    return {**measure(run, job), "value": float(run())}


if __name__ == "__main__":
    if sys.argv[1] == "--make-data":
        make_data(*sys.argv[2:])
    else:
        job = json.loads(sys.argv[1])
        pin(job["threads"])
        print("\nRESULT " + json.dumps(do(job)))
