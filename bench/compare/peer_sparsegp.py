"""sparsegp's models."""

import math
import time

from worker import Meter, fit, test_nll

import sparsegp as gp


def kernel(d):
    return gp.kernels.RBF(lengthscales=d.lengthscales.tolist(), variance=d.variance)


def sgpr_model(d):
    return gp.models.SGPR(
        (d.X, d.y), kernel(d), inducing_points=d.Z, noise_variance=d.noise, bound="titsias2009"
    )


def regression(d, job):
    if job["kind"] == "gpr":
        model = gp.models.GPR((d.X, d.y), kernel(d), noise_variance=d.noise)
        return lambda: model.log_marginal_likelihood_and_gradients()[0]
    model = sgpr_model(d)
    return lambda: model.elbo_and_gradients()[0]


def middle(run):
    """The middle one of three results."""
    return sorted((run() for _ in range(3)), key=lambda result: result["seconds"])[1]


def svgp(d, job):
    """The steps run inside `optimise`, whose report has their time. It makes whole passes, so it gets
    only as many rows as it is to see; `num_data` is that of all."""
    likelihood = gp.likelihoods.Bernoulli(link="probit")
    model = gp.models.SVGP(kernel(d), likelihood, inducing_points=d.Z, num_data=len(d.X))

    def per_step(steps):
        rows, meter = slice(steps * job["b"]), Meter()
        report = model.optimise(
            (d.X[rows], d.y[rows]), batch_size=job["b"], iterations=steps,
            learning_rate=0.01, natural_rate=0.0,  # Adam on q too, as the others do it
        )  # fmt: skip
        return {"seconds": report["seconds"] / report["iterations"], "calls": steps, **meter.report()}

    steps = max(3, math.ceil(job["seconds"] / 3 / per_step(2)["seconds"]))
    return middle(lambda: per_step(steps))


def classify(d, job):
    """The time of k iterations of training, for k = 1, 2, 4, ...: each from the beginning, since no model can be looked at
    while it is trained."""
    if job["way"] == "whole fit":
        classifier = gp.GPClassifier()  # which imports scikit-learn: not a part of the fit
        return fit(d, lambda: classifier)
    trace, meter = [], Meter()
    for k in range(8):
        likelihood = gp.likelihoods.Bernoulli(link="probit")
        model = gp.models.TSVGP(kernel(d), likelihood, inducing_points=d.Z)
        start = time.perf_counter()
        report = model.optimise((d.X, d.y), max_iterations=2**k)
        seconds = time.perf_counter() - start
        trace.append((seconds, test_nll(d, model.predict_f(d.Xtest))))
        if report["iterations"] < 2**k:
            break
    return {"trace": trace, **meter.report()}


def gplvm_step(d, job):
    arguments = d.Y, d.mean, d.sd2, kernel(d), d.Z
    return lambda: gp.models.gplvm_bound(*arguments, noise_variance=d.noise, bound="titsias2009")[0]


def deep(d, job):
    """The steps run inside `fit`, whose report has their time."""
    precision = "mixed" if job["precision"] == "single" else "double"

    def per_step(epochs):
        meter = Meter()
        method = f"deep(layers={job['layers']}, kind={job['way'].lower()}, samples=1)"
        model = gp.GPRegressor(
            method=method, n_inducing=job["m"], batch_size=job["b"], epochs=epochs, natural_rate=0, precision=precision
        )  # fmt: skip
        model.fit(d.X, d.y[:, 0])
        seconds = model.trace_["seconds"][-1]  # since the training began
        return {"seconds": seconds / model.n_iter_, "calls": model.n_iter_, **meter.report()}

    steps = len(d.X) // job["b"]
    epochs = max(1, math.ceil(job["seconds"] / steps / per_step(1)["seconds"]))
    return middle(lambda: per_step(epochs))


def predictor(d, job):
    model = sgpr_model(d)
    return lambda: model.predict_f(d.Xnew)


def regressor(d, job):
    model = gp.GPRegressor("rbf", method="exact").fit(d.X, d.y[:, 0])

    def predict(x):
        mean, deviation = model.predict(x, return_std=True)
        return mean, deviation**2

    return predict
