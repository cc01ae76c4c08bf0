"""sparsegp's estimators in mixed precision, which its models do not have.

Before a training and after it, and before a prediction, a guard passes some rows in both precisions. It is
not part of the steps that are timed, but of predictions and whole fits. Where it returns to double
precision there is its warning in place of a number.
"""

import math
import time
import warnings

from peer_sparsegp import deep, kernel, middle, sgpr_model  # noqa: F401
from worker import Meter, fit, nll

import sparsegp as gp

warnings.filterwarnings("error", message=".*in double precision")


def options(d):
    """Those of the model that the peers have: in the data's units, with the values that are given."""
    return {
        "kernel": kernel(d), "inducing": d.Z, "mean": "zero", "standardise": False, "log_inputs": "none",
        "lengthscale_prior": False, "pilot": 0, "precision": "mixed",
    }  # fmt: skip


def regression(d, **further):
    likelihood = f"gaussian(variance={d.noise})"
    model = gp.GPRegressor(method="titsias2009", likelihood=likelihood, **options(d), **further)
    return model.fit(d.X, d.y[:, 0])


def sgpr(d, job):
    """The evaluations run inside `fit`, whose trace has their time; those of its first iteration are the
    warm-up. The value is that of double precision: a trace begins after the first iteration."""

    def per_evaluation(iterations):
        meter = Meter()
        seconds, evaluations = (
            regression(d, max_iter=iterations, tol=1e-12).trace_[name][[0, -1]].tolist()
            for name in ("seconds", "evaluations")
        )
        calls = evaluations[1] - evaluations[0]
        return {"seconds": (seconds[1] - seconds[0]) / calls, "calls": calls, **meter.report()}

    iterations = max(3, math.ceil(job["seconds"] / 3 / per_evaluation(3)["seconds"]))
    return {**middle(lambda: per_evaluation(iterations)), "value": float(sgpr_model(d).elbo())}


def svgp(d, job):
    """The steps run inside `fit`, whose trace has their time. It makes whole passes, so it gets only as many
    rows as it is to see."""

    def per_step(steps):
        steps_in_pass = min(steps, len(d.X) // job["b"])
        rows, meter = slice(steps_in_pass * job["b"]), Meter()
        model = gp.GPClassifier(
            method="svgp", batch_size=job["b"], epochs=math.ceil(steps / steps_in_pass),
            learning_rate=0.01, natural_rate=0, **options(d),  # Adam on q too, as the others do it
        ).fit(d.X[rows], d.y[rows, 0])  # fmt: skip
        seconds = model.trace_["seconds"][-1]  # since the training began
        return {"seconds": seconds / model.n_iter_, "calls": model.n_iter_, **meter.report()}

    steps = max(3, math.ceil(job["seconds"] / 3 / per_step(3)["seconds"]))
    return middle(lambda: per_step(steps))


def classify(d, job):
    """The time of the whole of fit(), for TSVGP with k iterations, k = 1, 2, 4, ..."""
    if job["way"] == "whole fit":
        whole = {"n_inducing": len(d.Z), "full_batch": True, "precision": "mixed"}
        classifier = gp.GPClassifier(method="tsvgp", **whole)
        return fit(d, lambda: classifier)
    trace, meter = [], Meter()
    for k in range(8):
        model = gp.GPClassifier(method="tsvgp", full_batch=True, max_iter=2**k, **options(d))
        start = time.perf_counter()
        model.fit(d.X, d.y[:, 0])
        seconds = time.perf_counter() - start
        trace.append((seconds, nll(d, model.predict_proba(d.Xtest)[:, 1].tolist())))
        if model.n_iter_ < 2**k:
            break
    return {"trace": trace, **meter.report()}


def predictor(d, job):
    model = regression(d, fixed=("kernel", "likelihood.variance", "inducing.points"))

    def run():
        mean, deviation = model.predict(d.Xnew, return_std=True, precision="mixed")
        return mean, deviation**2 - d.noise

    return run
