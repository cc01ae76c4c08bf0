"""Flows that are not at their optimum say so, whatever the scales; gradients are checked."""

import warnings

import numpy as np
import pytest

from sparsegp import flow


def gaussian(mean, covariance):
    precision = np.linalg.inv(covariance)
    return lambda x: (-0.5 * np.einsum("ni,ij,nj->n", x - mean, precision, x - mean), -(x - mean) @ precision)


def test_scales_do_not_matter():
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    covariance = basis @ np.diag(np.logspace(0, -6, 12)) @ basis.T
    mean = 3 * rng.normal(size=12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = flow.fit(gaussian(mean, covariance), 12)
    assert found.ended == "converged" and found.steps < 20
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-7)
    assert np.max(np.abs(found.mean - mean) / np.sqrt(np.diag(covariance))) < 1e-3
    assert found.settled["mean"] < 1e-3 and found.settled["near"]


def test_what_is_not_the_nearest_gaussian_is_said():
    with pytest.warns(UserWarning, match="not the Gaussian that is nearest"):
        flow.fit(lambda x: (np.zeros(len(x)), np.zeros_like(x)), 2, steps=50)
    with pytest.warns(UserWarning, match="covariance of rank 19 in 30 dimensions"):
        flow.fit(gaussian(np.zeros(30), np.eye(30)), 30, n_particles=20, steps=50)
    far = gaussian(np.full(3, 50.0), np.diag([1.0, 1e-4, 1e4]))
    with pytest.warns(UserWarning, match="Take more steps"):
        flow.fit(far, 3, preconditioned=False, steps=5)


@pytest.mark.parametrize("factor", [-1.0, 3.0])
def test_a_wrong_gradient_is_refused(factor):
    def density(x):
        return -0.5 * np.sum(x**2, axis=1), -factor * x

    with pytest.raises(ValueError, match="the gradient is not that of the log density"):
        flow.fit(density, 3)


def test_single_precision_is_not_a_wrong_gradient():
    def density(x):
        x = np.asarray(x, dtype=np.float32)
        return -0.5 * np.sum(x**2, axis=1), -x

    flow.fit(density, 3, tolerance=1e-6)
