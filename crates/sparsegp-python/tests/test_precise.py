"""Precise data: exact inference near the end of double precision, against arithmetic of 80 digits."""

from __future__ import annotations

import warnings
from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pytest

from sparsegp import GPRegressor, kernels, models


def in_80_digits(variance: float, lengths: Any, noise: float, X: Any, y: Any, P: Any) -> tuple[Any, Any, float]:
    """Mean and variance of a Matérn 3/2 at P, and the log evidence (Rasmussen & Williams 2006, Alg. 2.1)."""
    getcontext().prec = 80
    D = Decimal
    v, ls, s = D(variance), [D(float(q)) for q in lengths], D(noise)

    def k(a: Any, b: Any) -> Decimal:
        r = (3 * sum(((D(float(p)) - D(float(q))) / el) ** 2 for p, q, el in zip(a, b, ls))).sqrt()
        return v * (1 + r) * (-r).exp()

    n, L = len(X), [[D(0)] * len(X) for _ in X]
    for i in range(n):
        for j in range(i + 1):
            left = k(X[i], X[j]) + (s if i == j else 0) - sum(L[i][t] * L[j][t] for t in range(j))
            L[i][j] = left.sqrt() if i == j else left / L[j][j]

    def solved(b: list[Decimal]) -> list[Decimal]:
        z: list[Decimal] = []
        for i in range(n):
            z.append((b[i] - sum(L[i][t] * z[t] for t in range(i))) / L[i][i])
        return z

    w = solved([D(float(q)) for q in y])
    known = [solved([k(x, p) for x in X]) for p in P]
    mean = [float(sum(a * b for a, b in zip(z, w))) for z in known]
    spread = [float(v - sum(a * a for a in z)) for z in known]
    pi = D("3.14159265358979323846264338327950288419716939937510582097494459")
    evidence = -sum(a * a for a in w) / 2 - sum(L[i][i].ln() for i in range(n)) - n * (2 * pi).ln() / 2
    return np.array(mean), np.array(spread), float(evidence)


@pytest.mark.filterwarnings("ignore:.*the optimiser stepped back")
def test_fits_of_a_precise_plane_are_those_of_exact_arithmetic() -> None:
    rng = np.random.default_rng(0)
    X, P = rng.uniform(0, 10, (40, 3)), rng.uniform(0, 10, (12, 3))

    def f(X: Any) -> Any:
        return X @ [1, 2, -1] + 0.001 * np.sin(X[:, 0])

    y = f(X) + 1e-3 * rng.normal(size=40)
    with pytest.warns(UserWarning, match="double precision"):
        # the prior of lengthscales would end the climb before
        model = GPRegressor("matern32", lengthscale_prior=False, hyperparameters="plug-in").fit(X, y)
    found = model.model_
    sd_x, sd_y = X.std(0), y.std()
    scaled = [(A - X.mean(0)) / sd_x for A in (X, P)]
    variance, noise = float(found["kernel.variance"]), float(found["likelihood.variance"])
    mean, spread, evidence = in_80_digits(
        variance, found["kernel.lengthscales"], noise, scaled[0], (y - y.mean()) / sd_y, scaled[1]
    )
    assert variance / noise > 1e11
    sd = np.sqrt(spread + noise) * sd_y
    own_mean, own_sd = model.predict(P, return_std=True)
    # a tenth of a nat, of a standard deviation, of a variance
    assert model.objective_ == pytest.approx(evidence - 40 * np.log(sd_y), abs=0.1)
    assert np.abs(own_mean - (mean * sd_y + y.mean())).max() < 0.1 * sd.min()
    np.testing.assert_allclose(own_sd, sd, rtol=0.05)
    assert np.mean(np.abs(own_mean - f(P)) < 1.96 * own_sd) > 0.9
    assert np.sqrt(np.mean((own_mean - f(P)) ** 2)) < 1.93e-3
    covariance = model.predict(P, return_cov=True)[1]
    assert np.linalg.eigvalsh(covariance)[0] > 0
    assert (model.latent_mean_and_variance(P)[1] > 0).all()


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
@pytest.mark.parametrize("f", [lambda x: x, lambda x: x**2, np.exp, lambda x: 1 / (1 + x)])
def test_draws_of_smooth_functions_without_noise_have_the_predicted_deviations(kernel: str, f: Any) -> None:
    grid = np.linspace(0, 1, 150)[:, None]
    for n in (5, 40):
        x = np.linspace(0, 1, n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GPRegressor(kernel, hyperparameters="plug-in").fit(x[:, None], f(x))
        mean, sd = model.predict(grid, return_std=True)
        draws = model.sample_y(grid, 1000, random_state=0)
        # five standard errors of a standard deviation, 1/√2000
        found = np.sqrt(np.mean((draws - mean[:, None]) ** 2, axis=1))
        np.testing.assert_allclose(found / sd, 1, atol=0.112)


def test_noise_is_taken_at_any_size_and_has_no_floor_in_raw_units() -> None:
    x = np.linspace(0, 1, 30)[:, None]
    rng = np.random.default_rng(0)
    shape = np.sin(6 * x) + 0.1 * rng.standard_normal(x.shape)
    for unit in (1.0, 1e-4, 1e-6):
        y = unit * shape
        model = models.GPR((x, y), kernels.RBF(0.3, unit**2), noise_variance=0.01 * unit**2)
        model.optimise()
        assert 1 - np.mean((model.predict_f(x)[0] - y) ** 2) / y.var() > 0.97
        assert GPRegressor("rbf", standardise=False).fit(x, y[:, 0]).score(x, y[:, 0]) > 0.97
    for noise in (1e-8, 1e-10):
        model = models.GPR((x, shape), kernels.Matern12(0.3, 1.0), noise_variance=noise)
        assert float(model["likelihood.variance"]) == noise
    # none: a model that goes through all rows
    model = models.GPR((x, shape), kernels.Matern12(0.3, 1.0), noise_variance=0.0)
    np.testing.assert_allclose(model.predict_y(x)[0], shape, atol=1e-9)
    model.optimise()
    assert float(model["likelihood.variance"]) == 0.0
    with pytest.raises(ValueError, match="exact"):
        models.SGPR((x, shape), kernels.RBF(0.3, 1.0), inducing_points=x[:5], noise_variance=0.0)
    with pytest.raises(ValueError, match="double precision"):
        GPRegressor().fit(x, 1e200 * shape[:, 0])


def test_codes_far_away_get_the_prior() -> None:
    x = np.linspace(0, 5, 60)[:, None]
    for name in ("rbf", "matern12", "matern32", "matern52", "rational_quadratic", "gamma_exponential"):
        model = GPRegressor(name).fit(x, np.sin(x[:, 0]) + 0.1 * np.cos(40 * x[:, 0]))
        mean, sd = model.predict([[1e160], [1.7e308]], return_std=True)
        assert np.isfinite(mean).all() and np.isfinite(sd).all(), name
