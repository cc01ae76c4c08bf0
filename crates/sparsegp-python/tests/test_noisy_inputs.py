"""Inputs with standard deviations, from Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sparsegp
from sparsegp import GPClassifier, GPCountRegressor, GPRegressor

CLI = os.environ.get("SPARSEGP_CLI")


def table(n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 6, (n, 2))
    sd = np.column_stack([rng.choice([0.0, 0.35], n), np.zeros(n)])
    y = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + 0.1 * rng.normal(size=n)
    return x + sd * rng.normal(size=(n, 2)), sd, y, x


def test_the_errors_are_looked_through():
    X, sd, y, _ = table(250)
    model = GPRegressor(n_inducing=50).fit(X, y, x_sd=sd)
    plain = GPRegressor(method="titsias2025", n_inducing=50).fit(X, y)
    assert model.method_ == "titsias2025" and model.n_features_in_ == 2
    assert model.noise_variance_ < 0.03 < 0.08 < plain.noise_variance_
    # new rows: known exactly by default, else averages
    T, e, z, _ = table(400, 1)
    mean, std = model.predict(T, return_std=True, x_sd=e)
    exact_mean, exact_std = model.predict(T, return_std=True)
    known = e[:, 0] == 0
    np.testing.assert_allclose(mean[known], exact_mean[known], atol=1e-6)
    assert (std[~known] > exact_std[~known]).all()
    inside = np.abs(z - mean) < 1.96 * std
    assert 0.9 < inside.mean() < 0.99
    # a density that knows of the errors is far better
    assert model.log_predictive_density(T, z, x_sd=e).mean() > model.log_predictive_density(T, z).mean() + 0.3
    # three ways of saying the same
    for other in ({0: e[:, 0]}, {"x0": e[:, 0]} if hasattr(model, "feature_names_in_") else {0: e[:, 0]}):
        np.testing.assert_array_equal(model.predict(T, x_sd=other), mean)
    quantiles = model.predict(T, return_quantiles=[0.025, 0.975], x_sd=e)[1]
    assert ((quantiles[:, 0] < z) & (z < quantiles[:, 1])).mean() == pytest.approx(0.95, abs=0.04)
    draws = model.sample_y(T[:3], 500, x_sd=e[:3])
    assert draws.shape == (3, 500)
    # what is of rows that are known exactly
    assert model.predict_gradients(T)[0].shape == T.shape
    with pytest.raises(ValueError, match="without standard deviations"):
        model.predict(T, return_cov=True, x_sd=e)


@pytest.mark.skipif(CLI is None, reason="no command line")
def test_frames_files_and_the_command_line(tmp_path: Path):
    pandas = pytest.importorskip("pandas")
    X, sd, y, _ = table(150)
    frame = pandas.DataFrame({"depth": X[:, 0], "salt": X[:, 1], "depth_sd": sd[:, 0], "y": y})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = GPRegressor(n_inducing=40).fit_file(tmp_path / "rows.csv", "y", input_sd={"depth": "depth_sd"})
    assert list(model.feature_names_in_) == ["depth", "salt"]
    own = model.predict(frame[["depth", "salt", "depth_sd"]])
    given = model.predict(frame[["depth", "salt"]], x_sd={"depth": sd[:, 0]})
    np.testing.assert_array_equal(own, given)
    assert not np.allclose(own, model.predict(frame[["depth", "salt"]]))
    # a frame that is learnt from may name one of its columns
    again = GPRegressor(n_inducing=40).fit(
        frame[["depth", "salt"]], frame["y"], x_sd={"depth": frame["depth_sd"]}
    )
    np.testing.assert_allclose(again.predict(frame[["depth", "salt"]], x_sd={0: sd[:, 0]}), own, rtol=1e-9)
    model.save(tmp_path / "m.safetensors")
    loaded = sparsegp.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(frame[["depth", "salt", "depth_sd"]]), own)
    out = tmp_path / "p.csv"
    subprocess.run(
        [CLI, "predict", tmp_path / "m.safetensors", tmp_path / "rows.csv", "-o", out, "-q"], check=True
    )
    np.testing.assert_allclose(pandas.read_csv(out)["mean"], own, rtol=1e-12)
    # and what the command line fits
    made = tmp_path / "cli.safetensors"
    arguments = ["--target", "y", "--input-sd", "depth=depth_sd", "--inducing", "40", "-o", made, "-q"]
    subprocess.run([CLI, "fit", tmp_path / "rows.csv", *arguments], check=True)
    np.testing.assert_allclose(sparsegp.load(made).predict(frame), own, rtol=1e-9)


def test_only_predictions():
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, (120, 1))
    labels = np.where(X[:, 0] + 0.1 * rng.normal(size=120) > 0, "up", "down")
    model = GPClassifier().fit(X, labels)
    near = model.predict_proba([[0.4]])[0]
    far = model.predict_proba([[0.4]], x_sd=[[1.0]])[0]
    assert far[1] < near[1] and abs(far.sum() - 1) < 1e-12
    assert model.predict([[0.4]], x_sd=[[1.0]]) == ["up"]
    counts = GPCountRegressor().fit(X, rng.poisson(np.exp(X[:, 0])))
    # E exp(x) > exp(E x)
    assert counts.predict([[1.0]], x_sd=[[0.7]]) > 1.05 * counts.predict([[1.0]])


def test_what_cannot_be_is_said():
    X, sd, y, _ = table(40)
    with pytest.raises(ValueError, match=r"shape \(40,\); expected \(40, 2\)"):
        GPRegressor().fit(X, y, x_sd=sd[:, 0])
    with pytest.raises(ValueError, match="feature 'x0' is -0.35 in row"):
        GPRegressor().fit(X, y, x_sd=-sd)
    with pytest.raises(ValueError, match="the method is `svgp`"):
        GPRegressor(method="svgp").fit(X, y, x_sd=sd)
    with pytest.raises(ValueError, match="matern52"):
        GPRegressor(kernel="matern52").fit(X, y, x_sd=sd)
    with pytest.raises(ValueError, match="early_stopping"):
        GPRegressor(early_stopping=0.2).fit(X, y, x_sd=sd)
    model = GPRegressor(n_inducing=10).fit(X, y, x_sd=sd)
    with pytest.raises(ValueError, match="not a column of X"):
        model.predict(X, x_sd={0: "sd"})
    with pytest.raises(ValueError, match="names the feature 'z'"):
        model.predict(X, x_sd={"z": 0.1})
    with pytest.raises(ValueError, match="refit it"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="gives|NaN"):
        model.predict(X, x_sd=np.full(X.shape, np.nan))
