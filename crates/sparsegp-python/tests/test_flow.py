"""Gaussian particle flow from Python."""

import numpy as np
import pytest

from sparsegp import flow

rng = np.random.default_rng(5)


def gaussian(dim, condition):
    q, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
    precision = q @ np.diag(np.geomspace(1, condition, dim)) @ q.T
    mean = rng.standard_normal(dim)

    def density(x):
        d = x - mean
        return -0.5 * np.sum(d @ precision * d, axis=1), -d @ precision

    return density, mean, np.linalg.inv(precision)


def test_a_gaussian_is_found_exactly():
    density, mean, covariance = gaussian(6, 8.0)
    found = flow.fit(density, 6, std=0.3, steps=20000, tolerance=1e-20, spread_rate=0.2)
    np.testing.assert_allclose(found.mean, mean, atol=1e-8)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-8)
    # log ∫ exp(−½dᵀΛd) = ½ log|2πC|
    assert found.bound == pytest.approx(0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1], abs=1e-8)
    assert np.all(np.diff(found.trace["free_energy"]) < 1e-9)
    draws = found.sample(40000, random_state=1)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05)
    np.testing.assert_allclose(found.std, np.sqrt(np.diag(covariance)), atol=1e-8)


def test_blocks_few_particles_and_a_posterior():
    density, mean, covariance = gaussian(5, 4.0)
    diagonal = flow.fit(density, 5, blocks="diagonal", n_particles=40, std=0.3, steps=5000)
    # mean field: the inverse of the precision's diagonal
    np.testing.assert_allclose(diagonal.std**2, 1 / np.diag(np.linalg.inv(covariance)), rtol=0.1)
    low = flow.fit(density, 5, n_particles=3, std=0.3, steps=5000)
    assert np.linalg.matrix_rank(low.covariance, tol=1e-9) == 2 and low.bound is None
    np.testing.assert_allclose(low.mean, mean, atol=1e-3)
    # logistic regression, with lists in the place of arrays
    A = rng.standard_normal((200, 3))
    y = np.where(rng.random(200) < 1 / (1 + np.exp(-A @ [1.0, -2.0, 0.5])), 1, -1)

    def posterior(w):
        s = y * (w @ A.T)
        value = -np.log1p(np.exp(-s)).sum(1) - 0.5 * (w**2).sum(1) / 4
        return list(value), (((y / (1 + np.exp(s))) @ A) - w / 4).tolist()

    found = flow.fit(posterior, 3, std=0.1)
    assert found.ended in ("converged", "stalled", "all steps")
    assert abs(found.mean[1] + 2) < 0.8 and np.all(found.std < 0.6)


def test_many_dimensions_take_no_room_but_that_of_particles():
    # a matrix of dim by dim numbers would have 29 GB
    dim = 60_000
    found = flow.fit(lambda x: (-0.5 * np.sum(x**2, axis=1), -x), dim, n_particles=3, std=0.5, steps=3)
    assert found.particles.shape == (3, dim) and found.std.shape == (dim,)
    # two draws of three, of standard deviation 0.5
    np.testing.assert_allclose(found.particles.mean(axis=0), found.mean)
    assert "3 particles" in repr(found)


def test_the_last_step_is_looked_at():
    def edge(x):
        inside = x[:, 0] < 3
        slope = np.stack([np.where(inside, 1.0, np.nan), -x[:, 1]], axis=1)
        return np.where(inside, x[:, 0], np.nan), slope

    whole = flow.fit(edge, 2, std=0.1, noisy=True, natural_mean=False, steps=1000)
    assert whole.ended == "restored"
    for steps in (whole.steps, whole.steps + 1, whole.steps + 2):
        found = flow.fit(edge, 2, std=0.1, noisy=True, natural_mean=False, steps=steps)
        assert np.all(np.isfinite(edge(found.particles)[0])) and found.steps <= steps
    np.testing.assert_array_equal(found.particles, whole.particles)


def test_what_goes_wrong_is_reported():
    density, *_ = gaussian(2, 2.0)
    with pytest.raises(ZeroDivisionError):
        flow.fit(lambda x: 1 / 0, 2)
    with pytest.raises(ValueError, match="2 values|expected 3"):
        flow.fit(lambda x: (np.zeros(2), np.zeros((2, 2))), 2)
    with pytest.raises(ValueError, match="mean has shape"):
        flow.fit(density, 2, mean=[1.0])
    with pytest.raises(ValueError, match="several blocks"):
        flow.fit(density, 2, blocks=[[0, 1], [1]])
    with pytest.raises(Exception, match="φ|finite"):
        flow.fit(lambda x: (np.full(len(x), np.nan), x), 2)
    seen = []
    stopped = flow.fit(density, 2, tolerance=0, callback=lambda e: seen.append(e["step"]) or len(seen) > 4)
    assert stopped.ended == "interrupted" and len(seen) == 5 and "interrupted" in repr(stopped)

    def breaks(x):
        value, gradient = density(x)
        return value if len(breaks.calls.append(1) or breaks.calls) < 8 else value * np.nan, gradient

    breaks.calls = []
    with pytest.raises(Exception, match="φ|finite"):
        # the density is not a number even where the flow went back to
        flow.fit(breaks, 2, tolerance=0)
