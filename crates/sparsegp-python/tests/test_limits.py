"""Bounds of hyperparameters, limits of time, periods at uneven times."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsegp import GPClassifier, GPCountRegressor, GPRegressor, RobustGPRegressor, kernels, likelihoods
from sparsegp.models import GPR, SGPR, SVGP
from sparsegp.priors import LogNormal, Parameter


def problem(n=80, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (n, 1))
    return x, np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=n)


def test_a_parameter_has_bounds_and_keeps_them():
    own = Parameter(0.5, min=0.1, max=10, prior=LogNormal(0, 1))
    assert own.to_dict() == {"value": 0.5, "prior": LogNormal(0, 1).to_dict(), "min": 0.1, "max": 10.0}
    for other in (Parameter.of(own.to_dict()), pickle.loads(pickle.dumps(own))):
        assert other == own and (other.min, other.max) == (0.1, 10.0)
    assert repr(Parameter(0.5, min=0.1)) == "Parameter(0.5, min=0.1)"
    assert Parameter(0.5, min=0.1) != Parameter(0.5)
    with pytest.raises(ValueError, match="min is 2 and max is 1"):
        Parameter(min=2, max=1)
    with pytest.raises(ValueError, match="max is inf"):
        Parameter(max=np.inf)


def test_scikit_learns_spelling_of_bounds():
    for kernel in (
        kernels.RBF(1.0, lengthscale_bounds=(0.1, 10)),
        kernels.RationalQuadratic(1.0, lengthscale_bounds=(0.1, 10)),
        kernels.GammaExponential(1.0, lengthscale_bounds=(0.1, 10)),
    ):
        assert kernel.lengthscales == Parameter(1.0, min=0.1, max=10)
        assert (
            clone(kernel) == kernel and eval(repr(kernel), {**vars(kernels), "Parameter": Parameter}) == kernel
        )
        assert kernel.replace(variance=2.0).lengthscales == kernel.lengthscales
    assert kernels.Matern32(2.0, lengthscale_bounds="fixed").lengthscales == Parameter(2.0, fixed=True)
    with pytest.raises(ValueError, match="one pair of numbers"):
        kernels.RBF(lengthscale_bounds=[(0.1, 10), (0.2, 20)])
    with pytest.raises(ValueError, match="fixed"):
        kernels.RBF(lengthscale_bounds="free")


def test_estimators_keep_bounds_and_warn_at_them(tmp_path):
    x, y = problem()
    for method in ("auto", "titsias2025", "svgp"):
        kernel = kernels.RBF(lengthscale_bounds=(1.5, 10))
        noise = likelihoods.Gaussian(Parameter(max=0.05))
        model = GPRegressor(
            kernel, likelihood=noise, method=method, n_inducing=20 if method != "auto" else None
        )
        with pytest.warns(UserWarning) as caught:
            model.fit(x, y)
        texts = [str(w.message) for w in caught]
        if method != "svgp":
            assert any("kernel.lengthscales ended at its bound" in t for t in texts), texts
            assert any("likelihood.variance ended at its bound" in t for t in texts), texts
        learnt = model.kernel_.lengthscales
        assert (learnt.min, learnt.max) == (1.5, 10.0) and 1.5 < np.ravel(learnt.value)[0] < 10
        assert model.likelihood_.variance.max == 0.05
        model.save(tmp_path / "m.safetensors")
        assert GPRegressor.load(tmp_path / "m.safetensors").kernel_.lengthscales == learnt
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GPRegressor(kernels.RBF(lengthscale_bounds=(0.01, 100))).fit(x, y)
    with pytest.raises(ValueError, match="lengthscales.*`min` is -1"):
        GPRegressor(kernels.RBF(Parameter(min=-1))).fit(x, y)


def test_models_keep_bounds_and_warn_at_them():
    x, y = problem()
    model = GPR((x, y[:, None]), kernels.RBF(Parameter(2.0, min=1.5, max=10)))
    with pytest.warns(UserWarning, match="kernel.lengthscales ended at its bound"):
        model.optimise()
    at = model.parameters["kernel.lengthscales"]
    assert 1.5 < float(np.ravel(at)[0]) < 1.51


def test_estimators_end_at_their_time_limit(tmp_path):
    x, y = problem()
    labels, counts = (y > 0).astype(int), np.random.default_rng(1).poisson(np.exp(y))
    for model, target in (
        (GPRegressor(), y),
        (GPRegressor(method="svgp"), y),
        (GPClassifier(), labels),
        (GPCountRegressor(), counts),
        (RobustGPRegressor(), y),
        (GPRegressor(method="gibbs", sampling={"chains": 1, "draws": 20}), y),
    ):
        model.set_params(time_limit=1e-9, checkpoint=tmp_path / "c")
        with pytest.warns(ConvergenceWarning, match="time limit of 0 s.*raise time_limit"):
            model.fit(x, target)
        assert "stopped at the time limit" in model.stopped_ and not model.converged_
        assert np.isfinite(model.predict(x)).all()
        (tmp_path / "c").unlink(missing_ok=True)
    with pytest.raises(ValueError, match="time_limit is 0"):
        GPRegressor(time_limit=0).fit(x, y)


def test_models_end_at_their_time_limit():
    x, y = problem()
    data = (x, y[:, None])
    z = x[:10]
    for model, more in (
        (GPR(data, "rbf"), {}),
        (SGPR(data, "rbf", z), {}),
        (SVGP("rbf", "gaussian", z), {"data": data, "batch_size": 20}),
    ):
        report = model.optimise(time_limit=1e-9, **more)
        assert report["stopped"].startswith("stopped at the time limit of 0 s") and not report["converged"]
        report = model.optimise(time_limit=1e6, **{**more, **({"epochs": 2} if "batch_size" in more else {})})
        assert "time limit" not in report["stopped"]


@pytest.mark.parametrize("case", ["days", "hours", "times", "months"])
def test_periods_at_uneven_times(case):
    r = np.random.default_rng(3)
    t, period = {
        "days": lambda: (np.sort(r.choice(365, 100, replace=False)).astype(float), 7.0),
        "hours": lambda: (np.concatenate([np.arange(60.0) + q for q in (0, 3500, 8000)]), 24.0),
        "times": lambda: (np.sort(r.uniform(0, 100, 100)), 1.37),
        "months": lambda: (np.concatenate([np.arange(60.0) / 12, 55 + np.arange(60.0) / 12]), 1.0),
    }[case]()
    phase = 2 * np.pi * t / period
    y = np.sin(phase) + 0.3 * np.cos(2 * phase) + 0.2 * r.normal(size=len(t))
    own = GPRegressor("periodic(base=rbf)").fit(t[:, None], y)
    truth = GPRegressor(kernels.Periodic(kernels.RBF(), period / t.std())).fit(t[:, None], y)
    assert own.objective_ > truth.objective_ - 0.1
    assert abs(own.parameters_["kernel.period"] / period - 1) < 2e-3
