"""The draws of models that were fitted by a sampler."""

import numpy as np
import pytest

from sparsegp import GPClassifier, GPRegressor

rng = np.random.default_rng(0)
X = rng.uniform(0, 5, (40, 1))
Y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
HOW = {"chains": 2, "draws": 40, "burn_in": 60}


def test_hyperparameters_and_latent_values_of_every_draw():
    model = GPRegressor(method="nuts", sampling={**HOW, "hyperparameters": True}).fit(X, Y)
    draws = model.posterior_draws(X[:5])
    assert draws.shape == (2, 40) and draws.latent.shape == (2, 40, 5, 1)
    assert set(draws.hyperparameters) == {"kernel.variance", "kernel.lengthscales", "likelihood.variance"}
    assert all(values.shape == (2, 40) and values.std() > 0 for values in draws.hyperparameters.values())
    mean = model.latent_mean_and_variance(X[:5])[0]
    np.testing.assert_allclose(draws.latent.mean((0, 1))[:, 0], mean, rtol=1e-9)
    assert model.posterior_draws().latent is None


def test_draws_with_fixed_hyperparameters_and_none():
    model = GPClassifier(method="gibbs", sampling=HOW).fit(X, Y > 0)
    draws = model.posterior_draws(X[:3])
    assert draws.hyperparameters == {} and draws.latent.shape == (2, 40, 3, 1)
    with pytest.raises(ValueError, match="draws nothing"):
        GPRegressor().fit(X, Y).posterior_draws()


def test_draws_of_a_series():
    t = np.linspace(0.0, 12.0, 90)[:, None]
    high = np.random.default_rng(2).uniform(size=90) < 1 / (1 + np.exp(-3 * np.sin(t[:, 0])))
    model = GPClassifier("matern32", method="gibbs-markov", sampling=HOW).fit(t, high)
    draws = model.posterior_draws(t[::30] + 0.01)
    assert draws.hyperparameters == {} and draws.latent.shape == (2, 40, 3, 1)
    mean = model.latent_mean_and_variance(t[::30] + 0.01)[0]
    np.testing.assert_allclose(draws.latent.mean((0, 1))[:, 0], mean, rtol=1e-9, atol=1e-12)
    chances = model.predict_proba(t)[:, 1]
    assert np.corrcoef(chances, np.sin(t[:, 0]))[0, 1] > 0.8
    with pytest.raises(ValueError, match="hyperparameters"):
        GPClassifier("matern32", method="gibbs-markov", sampling={**HOW, "hyperparameters": True}).fit(t, high)
    with pytest.raises(ValueError, match="inputs"):
        GPClassifier("matern32", method="gibbs-markov", sampling=HOW).fit(np.hstack([t, t**2]), high)


def test_arviz_takes_them():
    pytest.importorskip("arviz")
    model = GPRegressor(method="nuts", sampling={**HOW, "hyperparameters": True}).fit(X, Y)
    found = model.posterior_draws(X[:2]).to_arviz()
    assert found.posterior["f"].shape == (2, 40, 2, 1)
