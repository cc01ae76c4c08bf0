"""Deep models through the estimators."""

import pickle
import warnings

import numpy as np
import pytest

from sparsegp import GPClassifier, GPCountRegressor, GPRegressor


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform((0, 0), (20, 1), (n, 2))
    high = X[:, 0] > 9
    return X, np.where(high, 400.0, 100.0) + 30 * X[:, 1] + rng.normal(0, 2, n), high


def model(cls=GPRegressor, method="deep(kind=w)", **options):
    settings = dict(n_inducing=15, batch_size=50, epochs=60, random_state=3)
    return cls(method=method, **{**settings, **options})


def test_a_deep_regressor_is_one_like_any_other():
    (X, y, _), (new, target, _) = rows(200), rows(50, seed=1)
    fitted = model(epochs=300).fit(X, y)
    assert fitted.method_ == "deep(kind=w)"
    mean, std = fitted.predict(new, return_std=True)
    assert mean.shape == std.shape == (50,) and (std > 0).all()
    assert fitted.score(new, target) > 0.9
    assert np.isfinite(fitted.log_predictive_density(new, target)).all()
    assert (abs(target - mean) < 4 * std).mean() > 0.9
    assert fitted.sample_y(new[:4], n_samples=3, random_state=0).shape[0] == 4
    shown = str(fitted)
    assert "layers[0].kernel.lengthscales[x0]" in shown and "\n  kernel.lengthscales[0]" in shown
    assert "layers[0].q.mu[" not in shown and "15×2" in shown
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(new), mean)
    same = model(epochs=300).fit(X, y)
    np.testing.assert_array_equal(same.predict(new), mean)


def test_classes_counts_and_several_targets():
    X, y, high = rows(120)
    p = model(GPClassifier).fit(X, high).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    counts = np.random.default_rng(0).poisson(np.where(high, 9.0, 2.0))
    rate = model(GPCountRegressor, "deep").fit(X, counts).predict(X)
    assert rate[high].mean() > rate[~high].mean() + 3
    both = model(method="deep(layers=3)", epochs=2).fit(X, np.c_[y, -y])
    assert both.predict(X[:5]).shape == (5, 2)


def test_the_default_batch_is_the_methods():
    X, y, _ = rows(600)
    seen = []
    model(batch_size=None, epochs=3, callback=seen.append).fit(X, y)
    batches = [event["batches"] for event in seen if event["event"] == "batch"]
    assert batches and set(batches) == {1}  # of 1024 rows


def test_a_training_that_ended_can_resume(tmp_path):
    X, y, _ = rows(200)
    straight = model(epochs=20).fit(X, y)
    path = tmp_path / "state.safetensors"
    ended = model(epochs=20, checkpoint=path, callback=lambda event: event["event"] == "batch").fit(X, y)
    assert path.exists() and not np.array_equal(ended.predict(X), straight.predict(X))
    resumed = model(epochs=20, checkpoint=path).fit(X, y)
    np.testing.assert_array_equal(resumed.predict(X), straight.predict(X))


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"n_restarts_optimizer": 2}, "restarts"),
        ({"mean": "linear"}, "mean"),
        ({"full_batch": True}, "at once"),
        ({"method": "deep(kind=q)"}, "kind=q"),
        ({"method": "deep(layers=0)"}, "from 1"),
    ],
)
def test_what_layers_do_not_take_is_refused(options, part):
    X, y, _ = rows(60)
    with pytest.raises(ValueError, match=part):
        model(**{"epochs": 1, **options}).fit(X, y)


def test_what_layers_do_not_do_is_said():
    X, y, _ = rows(60)
    fitted = model(epochs=1).fit(X, y)
    with pytest.raises(ValueError, match="one layer"):
        fitted.predict(X, return_cov=True)
    with pytest.raises(ValueError, match="one layer"):
        fitted.update(X, y)
    with pytest.raises(ValueError, match="one layer"):
        fitted.partial_fit(X, y)


def test_hidden_layers_can_be_looked_at():
    plt = pytest.importorskip("matplotlib.pyplot")
    from sparsegp import plotting

    X, y, _ = rows(120)
    fitted = model(method="deep(layers=3, kind=w, skip=true, kernels=own)", epochs=5).fit(X, y)
    layers = fitted.hidden_layers(X[:10])
    assert [mean.shape for mean, _ in layers] == [(10, 2), (10, 2)]
    assert all(np.all(np.isfinite(mean)) and np.all(std > 0) for mean, std in layers)
    for layer in (0, 1):
        ax = plotting.plot_layers(fitted, X, layer=layer, feature=0, ax=plt.figure().gca())
        assert len(ax.lines) == 2 and ax.get_ylabel().startswith(f"hidden layer {layer + 1}")
    with pytest.raises(ValueError, match="the model has 2"):
        plotting.plot_layers(fitted, X, layer=2)
    shallow = GPRegressor(method="svgp", n_inducing=5, epochs=1).fit(X, y)
    assert shallow.hidden_layers(X) == []
    with pytest.raises(ValueError, match="the model has 0"):
        plotting.plot_layers(shallow, X)
    plt.close("all")


def test_rows_put_aside_end_the_training():
    X, y, _ = rows(200)
    options = {"epochs": 600, "early_stopping": 0.25, "patience": 2, "learning_rate": 0.3}
    fitted = model(**options).fit(X, y)
    held = fitted.trace_["held_out"]
    assert np.isfinite(held).all() and len(held) < 600
    assert f"no better for 2 epochs; the state after epoch {np.argmax(held) + 1} is kept" in fitted.stopped_
    assert np.argmax(held) == len(held) - 3


def test_layers_in_mixed_precision_agree_or_say_why_not():
    X, y, _ = rows(300)
    double = model(method="deep", epochs=10).fit(X, y)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*double precision")
        mixed = model(method="deep", epochs=10, precision="mixed").fit(X, y)
    assert (double.precision_, mixed.precision_) == ("double", "mixed")
    mean, deviation = double.predict(X, return_std=True)
    assert np.abs(mixed.predict(X) - mean).max() < 0.1 * deviation.max()
    precise = dict(initial={"likelihood.variance": 1e-7}, fixed=["likelihood.variance"])
    with pytest.warns(UserWarning, match="in double precision"):
        fitted = model(method="deep", epochs=2, precision="mixed", **precise).fit(X, y)
    assert fitted.precision_ == "double"
    with pytest.raises(ValueError, match=r"deep\(kind=r\)"):
        model(method="deep(kind=r)", epochs=2, precision="mixed").fit(X, y)
    with pytest.raises(ValueError, match="one layer"):
        mixed.predict(X, precision="mixed")
