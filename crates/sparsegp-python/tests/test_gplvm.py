"""The Bayesian GP-LVM."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import sparsegp
from sparsegp import BayesianGPLVM, GPRegressor

rng = np.random.default_rng(8)
t = rng.uniform(-2, 2, 80)
Y = np.stack([(1 + j) * np.sin((0.5 + 0.3 * j) * t + 0.6 * j) + 10 * j for j in range(5)], axis=1)
Y += 0.05 * rng.standard_normal(Y.shape)


@parametrize_with_checks([BayesianGPLVM(n_inducing=8, max_iter=60, n_restarts=1)])
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


@pytest.fixture(scope="module")
def model():
    return BayesianGPLVM(n_components=3, n_inducing=15).fit(Y)


def test_one_number_behind_the_columns_is_found(model, tmp_path):
    order = np.argsort(-model.relevance_)
    assert model.relevance_[order[1]] < 0.2
    ranks = [np.argsort(np.argsort(v)) for v in (model.embedding_[:, order[0]], t)]
    assert abs(np.corrcoef(*ranks)[0, 1]) > 0.97
    assert model.embedding_.shape == model.embedding_std_.shape == (80, 3)
    # one noise for all columns, as a part of their variance
    assert 0.03 < np.sqrt(np.mean(model.noise_variance_)) < 0.09
    # places of the rows that were learnt, by the cells only
    z, std = model.transform(Y, return_std=True)
    np.testing.assert_allclose(z[:, order[0]], model.embedding_[:, order[0]], atol=0.1)
    back, spread = model.inverse_transform(z, return_std=True)
    assert np.sqrt(np.mean((back - Y) ** 2)) < 0.15 and np.all(spread > 0)
    assert model.score(Y) > model.score(Y + rng.standard_normal(Y.shape))
    assert list(model.get_feature_names_out()) == ["bayesiangplvm0", "bayesiangplvm1", "bayesiangplvm2"]
    # kept
    model.save(tmp_path / "m.safetensors")
    for again in (sparsegp.load(tmp_path / "m.safetensors"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.transform(Y[:7]), model.transform(Y[:7]))
        assert again.get_params()["n_components"] == 3 and again.bound_ == model.bound_
        assert again.n_iter_ == model.n_iter_ > 0


def test_missing_cells_are_filled_in(model):
    gaps = Y.copy()
    gaps[rng.random(Y.shape) < 0.2] = np.nan
    filled, std = model.impute(gaps, return_std=True)
    lost = np.isnan(gaps)
    np.testing.assert_array_equal(filled[~lost], Y[~lost])
    assert np.all(std[~lost] == 0) and np.all(std[lost] > 0)
    assert np.mean(np.abs(filled - Y)[lost] < 4 * std[lost]) > 0.9
    learnt = BayesianGPLVM(n_inducing=15).fit(gaps)
    assert np.sqrt(np.mean((learnt.impute(gaps) - Y)[lost] ** 2)) < 0.5


def test_bounds_options_and_pipelines():
    old = BayesianGPLVM(n_inducing=8, method="titsias2009").fit(Y)
    new = BayesianGPLVM(n_inducing=8).fit(Y)
    # the best of five trainings each and one from fewer dimensions, of which none need be the best there is
    assert abs(new.bound_ - old.bound_) < 15
    assert new.bound_ == new.bounds_.max() and len(new.bounds_) == 6 and new.n_iter_ > 5
    one = BayesianGPLVM(
        n_inducing=8, standardise=False, init="random", n_restarts=2, kernel="rbf + linear"
    ).fit(Y)
    assert np.ptp(one.noise_variance_) == 0 and np.ptp(new.noise_variance_) > 0
    line = make_pipeline(StandardScaler(), BayesianGPLVM(n_inducing=8), GPRegressor()).fit(Y, t)
    assert line.score(Y, t) > 0.9
    events = []
    with pytest.warns(ConvergenceWarning):
        BayesianGPLVM(n_inducing=8, callback=lambda e: events.append(e["event"]) or len(events) > 2).fit(Y)
    assert events[:3] == ["iteration"] * 3 and len(events) < 6


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        BayesianGPLVM().transform(Y)
    for wrong, match in [
        (dict(n_components=0), "n_components"),
        (dict(init="best"), "init"),
        (dict(kernel="matern52"), "matern52"),
        (dict(method="exact"), "exact"),
    ]:
        with pytest.raises(ValueError, match=match):
            BayesianGPLVM(**wrong).fit(Y)
    with pytest.raises(ValueError, match="do not vary"):
        BayesianGPLVM().fit(np.ones((5, 2)))
    with pytest.raises(ValueError, match="dimensions"):
        BayesianGPLVM(n_inducing=8, max_iter=30, n_restarts=1).fit(Y).inverse_transform(np.zeros((2, 5)))
    GPRegressor().fit(Y[:, :2], t).save(tmp_path / "r.safetensors")
    assert isinstance(sparsegp.load(tmp_path / "r.safetensors"), GPRegressor)


def test_minibatches_come_near_all_rows_at_once():
    t = rng.uniform(-2, 2, 300)
    y = np.stack([np.sin((0.5 + 0.3 * j) * t + 0.6 * j) for j in range(5)], axis=1)
    y += 0.1 * rng.standard_normal(y.shape)
    y[::7, 2] = np.nan
    how = {"n_inducing": 10, "n_restarts": 1, "max_iter": 150, "random_state": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = BayesianGPLVM(**how).fit(y)
    seen = []
    with warnings.catch_warnings():
        # epochs are not a failure to converge
        warnings.simplefilter("error", ConvergenceWarning)
        own = BayesianGPLVM(
            **how, batch_size=60, epochs=5, callback=lambda at: seen.append(at["objective"])
        ).fit(y)
    # a hundredth of a nat for every cell
    assert own.bound_ > whole.bound_ - 0.01 * y.size
    assert own.stopped_ == "ended after 5 epochs" and len(seen) == own.n_iter_ > 25
    assert own.embedding_.shape == (300, 2) and np.all(own.embedding_std_ > 0)
    ended = BayesianGPLVM(**how, batch_size=60, epochs=5, callback=lambda at: at["iteration"] >= 2).fit(y)
    assert ended.stopped_ == "was ended by its callback" and ended.embedding_.shape == (300, 2)
    again = BayesianGPLVM(**how, batch_size=60, epochs=5).fit(y)
    np.testing.assert_array_equal(own.embedding_, again.embedding_)
    with pytest.raises(ValueError, match="epochs"):
        BayesianGPLVM(batch_size=50, epochs=0).fit(y)
    with pytest.raises(ValueError, match="not a sum over rows"):
        BayesianGPLVM(method="spherical", batch_size=50).fit(y)


def test_the_bound_has_the_slopes_that_it_says():
    from sparsegp import models

    rng = np.random.default_rng(2)
    n, q, m = 12, 2, 4
    Y = rng.normal(size=(n, 3))
    Y[2, 1] = np.nan
    X, S, Z = rng.normal(size=(n, q)), rng.uniform(0.1, 0.6, (n, q)), rng.normal(size=(m, q))
    kernel = "rbf(variance=1.3, lengthscales=[0.8, 1.7]) + linear(ard=true, variance=[0.4, 0.2])"

    def value(X=X, S=S, Z=Z, noise=0.3, bound="titsias2025"):
        return models.gplvm_bound(Y, X, S, kernel, Z, noise_variance=noise, bound=bound)[0]

    found, slopes = models.gplvm_bound(Y, X, S, kernel, Z, noise_variance=0.3)
    assert value(bound="titsias2009") < found
    step = 1e-6
    for path, name, array in (
        ("latent.mean", "X", X),
        ("latent.variance", "S", S),
        ("inducing.points", "Z", Z),
    ):
        assert slopes[path].shape == array.shape
        for place in ((0, 0), (2, 1), (3, 1)):
            up, down = array.copy(), array.copy()
            up[place] += step
            down[place] -= step
            slope = (value(**{name: up}) - value(**{name: down})) / (2 * step)
            assert slopes[path][place] == pytest.approx(slope, rel=1e-4, abs=1e-5)
    slope = (value(noise=0.3 + step) - value(noise=0.3 - step)) / (2 * step)
    assert slopes["likelihood.variance"][0] == pytest.approx(slope, rel=1e-5)
    with pytest.raises(ValueError, match="bound"):
        value(bound="fitc")
