"""New rows for fitted estimators, without the old ones."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import sparsegp
from sparsegp import GPClassifier, GPCountRegressor, GPRegressor

rng = np.random.default_rng(3)
X = rng.uniform(0, 8, (300, 1))
y = 20 + 5 * np.sin(X[:, 0]) + 0.5 * rng.standard_normal(300)
new_X = rng.uniform(5, 16, (200, 1))
new_y = 20 + 5 * np.sin(new_X[:, 0]) + 0.5 * rng.standard_normal(200)


def rmse(model, x, y):
    return np.sqrt(np.mean((model.predict(x) - y) ** 2))


def test_new_rows_are_learnt_and_old_ones_kept(tmp_path):
    model = GPRegressor(method="titsias2025", n_inducing=15).fit(X, y)
    before = rmse(model, new_X, new_y)
    trace, objective = model.trace_["objective"], model.objective_
    assert model.update(new_X, new_y) is model
    report = model.update_report_
    # the history stays, the objective is that of all rows
    np.testing.assert_allclose(model.trace_["objective"], trace)
    assert model.objective_ == pytest.approx(objective + report["bound"])
    assert report["rows"] == 200 and report["added_points"] > 0 and report["uncovered"] == 0
    assert model.n_samples_seen_ == 500 and np.isfinite(report["bound"])
    assert rmse(model, new_X, new_y) < 0.6 < before and rmse(model, X, y) < 0.6
    inside = np.abs(new_y - model.predict(new_X)) < 2 * model.predict(new_X, return_std=True)[1]
    assert inside.mean() > 0.9
    # it is a model like any other
    model.save(tmp_path / "m.safetensors")
    again = sparsegp.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    again.update(X[:20], y[:20])


def test_batches_in_any_order_are_one():
    parts = [slice(0, 80), slice(80, 130), slice(130, 200)]
    means = []
    for order in ([0, 1, 2], [2, 0, 1]):
        model = GPRegressor(method="titsias2009", n_inducing=15).fit(X, y)
        for part in order:
            model.update(new_X[parts[part]], new_y[parts[part]], correlation=0)
        means.append(model.predict(new_X))
    np.testing.assert_allclose(means[0], means[1], rtol=1e-6)
    whole = GPRegressor(method="titsias2009", n_inducing=15).fit(X, y).update(new_X, new_y, correlation=0)
    np.testing.assert_allclose(whole.predict(new_X), means[0], rtol=1e-6)


def test_classes_counts_and_weights_are_taken_up():
    labels = np.where(np.sin(X[:, 0]) > 0, "up", "down")
    classes = GPClassifier(n_inducing=15, pilot=40).fit(X, labels)
    later = np.where(np.sin(new_X[:, 0]) > 0, "up", "down")
    before = classes.score(new_X, later)
    assert classes.update(new_X, later).score(new_X, later) > max(0.93, before)
    assert classes.score(X, labels) > 0.93
    with pytest.raises(ValueError, match="sideways"):
        classes.update(new_X[:1], ["sideways"])
    rate = np.exp(1 + np.sin(X[:, 0]))
    counts = GPCountRegressor(n_inducing=15, pilot=40)
    counts.fit(X, rng.poisson(10 * rate), exposure=np.full(300, 10.0))
    rate = np.exp(1 + np.sin(new_X[:, 0]))
    counts.update(new_X, rng.poisson(10 * rate), exposure=np.full(200, 10.0))
    assert np.mean(np.abs(np.log(counts.predict(new_X, exposure=np.ones(200)) / rate))) < 0.2
    # a weight of two is two rows
    twice = GPRegressor(method="titsias2009", n_inducing=15).fit(X, y)
    weighted = GPRegressor(method="titsias2009", n_inducing=15).fit(X, y)
    twice.update(np.r_[new_X, new_X], np.r_[new_y, new_y], correlation=0)
    weighted.update(new_X, new_y, correlation=0, sample_weight=np.full(200, 2.0))
    np.testing.assert_allclose(twice.predict(new_X), weighted.predict(new_X), rtol=1e-6)


def test_partial_fit_of_an_online_model_keeps_old_rows():
    model = GPRegressor(online={"correlation": 0}, n_inducing=15, method="titsias2009")
    model.partial_fit(X, y).partial_fit(new_X[:120], new_y[:120]).partial_fit(new_X[120:], new_y[120:])
    twin = GPRegressor(n_inducing=15, method="titsias2009").fit(X, y).update(new_X, new_y, correlation=0)
    np.testing.assert_allclose(model.predict(new_X), twin.predict(new_X), rtol=1e-6)
    assert model.n_samples_seen_ == 500
    # its own points, of any likelihood; a part need not hold all there will be
    grown = GPRegressor(online=True).partial_fit(X, y).partial_fit(new_X, new_y)
    assert grown.update_report_["added_points"] > 0 and rmse(grown, new_X, new_y) < 0.6
    labels = np.where(np.sin(X[:, 0]) > 0, "up", "down")
    classes = GPClassifier(online=True, pilot=40).partial_fit(X[:150], labels[:150], classes=["down", "up"])
    assert classes.partial_fit(X[150:], labels[150:]).score(X, labels) > 0.93
    with pytest.raises(ValueError, match="forgte"):
        GPRegressor(online={"forgte": 0.9}).partial_fit(X, y)
    with pytest.raises(ValueError, match="forget"):
        GPRegressor(online={"forget": 2.0}, n_inducing=9).partial_fit(X, y).partial_fit(X, y)
    dense = dict(method="tvgp", likelihood="laplace", max_iter=10, pilot=40)
    with pytest.raises(ValueError, match="inducing"):
        GPRegressor(online=True, **dense).partial_fit(X, y).partial_fit(X, y)


def test_noise_is_learnt_from_new_rows():
    model = GPRegressor(method="titsias2009", n_inducing=15).fit(X, y)
    loud = 20 + 5 * np.sin(new_X[:, 0]) + 3 * rng.standard_normal(200)
    before = model.parameters_["likelihood.variance"]
    model.update(new_X, loud)
    assert model.parameters_["likelihood.variance"] == before
    model.update(new_X, loud, train=30)
    assert model.parameters_["likelihood.variance"] > 4 * before
    with pytest.raises(ValueError, match="train"):
        model.update(new_X, loud, train=-1)


def test_points_by_correlation():
    sizes = []
    for how in ("oips(0.5)", "oips(0.95)"):
        model = GPRegressor(method="titsias2009", n_inducing=60, inducing=how, max_iter=10)
        with (
            pytest.warns(UserWarning, match="are enough for correlations")
            if how == "oips(0.5)"
            else nullcontext()
        ):
            sizes.append(len(model.fit(X, y).inducing_points_))
    assert 1 < sizes[0] < sizes[1] <= 60
    with pytest.raises(ValueError, match="between 0 and 1"):
        GPRegressor(n_inducing=9, inducing="oips(2)").fit(X, y)


def test_what_cannot_be_updated_is_refused():
    with pytest.raises(NotFittedError):
        GPRegressor().update(X, y)
    dense = GPRegressor(method="tvgp", likelihood="laplace", max_iter=10, pilot=40).fit(X, y)
    kept = dense.predict(X)
    with pytest.raises(ValueError, match="n_inducing"):
        dense.update(new_X, new_y)
    np.testing.assert_array_equal(dense.predict(X), kept)
    sparse = GPRegressor(method="titsias2009", n_inducing=9).fit(X, y)
    for wrong in (dict(forget=0.0), dict(forget=2.0), dict(correlation=1.0)):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            sparse.update(new_X, new_y, **wrong)
    with pytest.raises(ValueError, match="NaN"):
        sparse.update(new_X, np.full(200, np.nan))
    # forgetting widens what is known
    wide, kept = (GPRegressor(method="titsias2009", n_inducing=9).fit(X, y) for _ in range(2))
    wide.update(new_X[:1], new_y[:1], forget=0.01, correlation=0)
    kept.update(new_X[:1], new_y[:1], correlation=0)
    deviation = [m.predict(X[:50], return_std=True)[1] for m in (wide, kept)]
    assert np.all(deviation[0] >= deviation[1]) and np.any(deviation[0] > 1.05 * deviation[1])


def test_exact_inference_takes_up_rows():
    both_X, both_y = np.concatenate([X, new_X]), np.concatenate([y, new_y])
    model = GPRegressor(method="exact").fit(X, y)
    model.update(new_X, new_y)
    assert model.n_samples_seen_ == len(both_X)
    whole = GPRegressor(method="exact").fit(both_X, both_y)
    assert rmse(model, both_X, both_y) < 1.1 * rmse(whole, both_X, both_y)


def test_a_series_keeps_its_latest_rows(tmp_path):
    rng = np.random.default_rng(8)
    t = 30 + np.cumsum(rng.uniform(0.01, 0.2, 1500))
    y = 2.0 + 3.0 * np.sin(0.9 * t) + rng.normal(0, 0.4, 1500)
    X = t[:, None]
    fit = {"method": "markov", "max_iter": 10, "mean": "zero"}
    first, whole = (GPRegressor("matern32", **fit).fit(X[:300], y[:300]) for _ in range(2))
    for start in range(300, 1500, 200):
        part = slice(start, start + 200)
        with warnings.catch_warnings():
            # once, when the first rows leave
            warnings.simplefilter("ignore")
            first.update(X[part], y[part], keep_rows=150)
        whole.update(X[part], y[part], keep_rows=0)
    assert first.update_report_["left"] > 0 and whole.update_report_["left"] == 0
    assert 150 <= first.update_report_["points"] < 278 and whole.update_report_["points"] == 1500
    new = np.linspace(t[-140], t[-1] + 5, 90)[:, None]
    for own, right in zip(first.predict(new, return_std=True), whole.predict(new, return_std=True)):
        np.testing.assert_allclose(own, right, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="have left the model"):
        first.predict(X[:5])
    with pytest.raises(ValueError, match="keep_rows"):
        first.update(X[:5], y[:5])
    with pytest.raises(ValueError, match="keep_rows"):
        first.update(X[-5:], y[-5:], keep_rows=-1)
    first.save(tmp_path / "window.gp")
    loaded = GPRegressor.load(tmp_path / "window.gp")
    np.testing.assert_array_equal(loaded.predict(new), first.predict(new))
    # parts that come after a fit are updates, too
    parts = GPRegressor("matern32", online={"keep_rows": 150}, **fit).fit(X[:300], y[:300])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts.partial_fit(X[300:700], y[300:700])
    assert parts.update_report_["left"] > 0
    # a kernel without a finite state is approximated, which is said
    with pytest.warns(UserWarning, match="`rbf` is a state of 8 numbers"):
        GPRegressor("rbf", **fit).fit(X[:300], y[:300])
