"""`optimise` says the truth, whatever the units, and gets there: against NumPy and SciPy."""

import inspect
import math

import numpy as np
import pytest
from scipy import linalg, optimize, special

import sparsegp
from sparsegp import GPClassifier, likelihoods
from sparsegp.kernels import RBF
from sparsegp.models import GPR, SVGP, TSVGP, TVGP, Model
from sparsegp.priors import Parameter

X = np.linspace(-2, 2, 20)[:, None]
COUNTS = np.array([1, 0, 2, 3, 1, 4, 6, 5, 3, 2, 0, 1, 1, 0, 2, 1, 5, 8, 7, 4.0])[:, None]


def rbf(x, variance, lengthscale):
    return variance * np.exp(-0.5 * ((x - x.T) / lengthscale) ** 2)


def poisson_bound(parameters, k, y):
    """The bound of Opper & Archambeau (2009): d with m = Kd, and logarithms of λ with S = (K⁻¹ + diag λ)⁻¹."""
    n = len(y)
    d, w = parameters[:n], np.exp(0.5 * parameters[n:])
    factor = np.linalg.cholesky(np.eye(n) + w[:, None] * k * w)
    a = linalg.solve_triangular(factor, w[:, None] * k, lower=True)
    m, v = k @ d, np.diag(k) - (a * a).sum(axis=0)
    inverse = linalg.solve_triangular(factor, np.eye(n), lower=True)
    kl = 0.5 * ((inverse**2).sum() - n + d @ m + 2 * np.log(np.diag(factor)).sum())
    return (y * m - np.exp(m + 0.5 * v) - special.gammaln(y + 1)).sum() - kl


@pytest.mark.parametrize("variance", [1.0, 100.0])
@pytest.mark.parametrize("kind", [TVGP, TSVGP])
def test_wide_priors_end_at_the_optimum(kind, variance):
    y, k = COUNTS.ravel(), rbf(X, variance, 1.0)
    start = np.r_[np.linalg.solve(k + np.diag(1 / (y + 0.5)), np.log(y + 0.5)), np.log(y + 0.5)]
    found = optimize.minimize(lambda p: -poisson_bound(p, k, y), start, options={"maxiter": 60})
    kernel, poisson = RBF(1.0, variance), likelihoods.Poisson()
    model = TVGP((X, COUNTS), kernel, poisson) if kind is TVGP else TSVGP(kernel, poisson, X, jitter=1e-7)
    data = () if kind is TVGP else ((X, COUNTS),)
    model.freeze("kernel")
    if kind is TSVGP:
        model.freeze("inducing.points")
    report = model.optimise(*data)
    assert report["converged"]
    assert model.elbo(*data) == pytest.approx(-found.fun, abs=5e-3)


@pytest.mark.parametrize("kind", [TVGP, TSVGP, SVGP])
def test_a_step_to_no_bound_is_taken_back(kind):
    kernel, poisson = RBF(1.0, 400.0), likelihoods.Poisson()
    model = TVGP((X, COUNTS), kernel, poisson) if kind is TVGP else kind(kernel, poisson, X)
    data = () if kind is TVGP else ((X, COUNTS),)
    path = "q.mu" if kind is SVGP else "q.lambda1"
    before, bound = model[path].copy(), model.elbo(*data)
    with pytest.raises(sparsegp.NumericalError):
        model.natural_gradient_step(*data, rate=1.0)
    assert np.array_equal(model[path], before)
    assert model.elbo(*data) == bound
    model.natural_gradient_step(*data, rate=1e-90)
    assert model.elbo(*data) > bound and not np.array_equal(model[path], before)


@pytest.mark.parametrize("level", [1e2, 1e6])
def test_large_counts_from_a_prior_around_zero(level):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, (60, 1)), axis=0)
    y = rng.poisson(level * np.exp(0.5 * np.sin(x))).astype(float)
    model = TVGP((x, y), RBF(1.0, 1.0), likelihoods.Poisson())
    report = model.optimise()
    assert report["converged"], report["stopped"]
    # nothing of the kernel says more than a constant rate per row does
    assert model.elbo() > -60 * (4 + 0.5 * math.log(level))
    slopes = model.gradients()
    for path in ("kernel.variance", "kernel.lengthscales"):
        assert np.abs(slopes[path] * model[path]).max() < 0.1, path


@pytest.mark.parametrize("scale, offset", [(1.0, 0.0), (1.0, 300.0), (1e3, 5e4), (1e-2, 1.0)])
def test_a_trained_constant_is_generalised_least_squares(scale, offset):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, (50, 1)), axis=0)
    y = scale * (np.sin(x) + 0.1 * rng.normal(size=(50, 1))) + offset
    model = GPR((x, y), RBF(1.0, scale**2), noise_variance=0.1 * scale**2, mean="constant")
    report = model.optimise()
    assert report["converged"]
    k = rbf(x, model["kernel.variance"], model["kernel.lengthscales"])
    inverse = np.linalg.inv(k + model["likelihood.variance"] * np.eye(50))
    best = inverse.sum(axis=0) @ y / inverse.sum()
    assert model["mean.constant"][0] - offset == pytest.approx(best[0] - offset, abs=2e-4 * scale)


def test_units_of_the_targets_do_not_matter():
    x = 1900 + 2.0 * np.arange(60)[:, None]
    y = 14 + 0.02 * (x - 1960) + 0.4 * np.sin(0.15 * (x - 1900)) + 0.1 * np.cos(7.3 * x)

    def train(unit):
        noise = 0.02 * unit**2
        model = GPR((x, unit * y), RBF(6.0, 0.3 * unit**2), noise_variance=noise, mean="linear")
        report = model.optimise()
        assert report["converged"]
        return report, model.elbo() + 60 * math.log(unit), model["mean.weights"].item() / unit

    one = train(1.0)
    for unit in (1e3, 1e6):
        other = train(unit)
        assert abs(other[0]["iterations"] - one[0]["iterations"]) <= 2
        assert other[1:] == pytest.approx(one[1:], rel=1e-5)


def test_tolerance_ends_sooner_and_settles_q():
    assert "tolerance" in inspect.signature(Model.optimise).parameters
    x = np.linspace(0, 10, 30)[:, None]
    y = (np.sin(x) > 0).astype(float)

    def end(**options):
        model = TVGP((x, y), RBF(1.33, 25.0), likelihoods.Bernoulli("logit"))
        model.freeze("kernel")
        report = model.optimise(**options)
        assert report["converged"]
        start = model.elbo()
        for _ in range(200):
            model.natural_gradient_step(rate=0.3)
        return model.elbo() - start

    assert abs(end()) < 1e-7
    assert abs(end(tolerance=1e-11)) < 1e-8
    assert 0 < end(tolerance=1e-2) < 1e-2
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(80, 6))
    targets = np.sin(wide[:, :1]) + 0.1 * rng.normal(size=(80, 1))
    model = GPR((wide, targets), RBF(np.full(6, 2.0), 1.0), noise_variance=0.1)
    assert model.copy().optimise(tolerance=1e-2)["iterations"] < model.copy().optimise()["iterations"]
    for wrong in ({"tolerance": -1.0}, {"tolerance": math.nan}, {"tolerance": 1e-4, "optimiser": "adam"}):
        with pytest.raises(ValueError, match="tolerance"):
            model.optimise(**wrong)


def test_more_draws_are_more():
    x, y = np.array([[0.0], [0.7], [2.0]]), np.array([1, 0, 1])
    kernel = RBF(Parameter(1.0, fixed=True), Parameter(2.0, fixed=True))

    def spread(draws):
        means = []
        for seed in range(12):
            model = GPClassifier(
                kernel,
                method="gibbs",
                likelihood=likelihoods.Bernoulli("logit"),
                mean="zero",
                standardise=False,
                random_state=seed,
                sampling={"chains": 2, "draws": draws, "burn_in": 50},
            )
            means.append(model.fit(x, y).latent_mean_and_variance(x)[0])
        return np.std(means, axis=0, ddof=1).mean()

    # sixteen times the draws: a fourth of the error, give or take what twelve seeds can tell
    assert spread(4000) < 0.5 * spread(250)
