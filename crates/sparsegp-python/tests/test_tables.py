"""What the table itself does to a fit: its order, equal rows, constant targets, codes for missing values, outliers."""

import os
import subprocess
import warnings

import numpy as np
import pytest

from sparsegp import GPRegressor, RobustGPRegressor, load

CLI = os.environ.get("SPARSEGP_CLI")


def quiet(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **kwargs)


@pytest.mark.skipif(CLI is None, reason="SPARSEGP_CLI names no command")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_equal_rows_give_one_answer_through_both_doors(tmp_path):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0, 10, (50, 1)), np.exp(rng.normal(0, 1.5, 50))
    rows = rng.integers(0, 50, 50)
    X, Y = x[rows], y[rows]
    table, file = tmp_path / "t.csv", tmp_path / "t.safetensors"
    np.savetxt(table, np.c_[X, Y], delimiter=",", header="x,y", comments="", fmt="%.17g")
    subprocess.run([CLI, "fit", table, "--target", "y", "-o", file], check=True, capture_output=True)
    command, own = load(file), quiet(GPRegressor(), X, Y)
    assert command.objective_ == own.objective_
    places = [[5.0], [100.0]]
    for a, b in zip(command.predict(places, return_std=True), own.predict(places, return_std=True)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(own._about["scaler"]["y_mean"], [Y.mean()], rtol=1e-13)
    np.testing.assert_allclose(own._about["scaler"]["y_scale"], [Y.std()], rtol=1e-13)
    assert own._about["rows"] == 50


def test_one_row_many_times():
    for count in (2, 50):
        model = quiet(GPRegressor(), np.ones((count, 2)), np.full(count, 3.0))
        np.testing.assert_allclose(model.predict([[1.0, 1.0]]), 3.0, rtol=1e-9)
        assert model._about["rows"] == count
    with pytest.raises(ValueError, match=r"1 training row\(s\) of a weight above 0, of 3"):
        GPRegressor().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], sample_weight=[0, 1, 0])


@pytest.mark.filterwarnings("ignore:target column `y2`")
@pytest.mark.parametrize("method", ["auto", "titsias2025"])
def test_a_constant_target_leaves_the_others_alone(method):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (80, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=80)
    alone = quiet(GPRegressor(method=method), X, y)
    with pytest.warns(UserWarning, match="`y1` is 2 in all rows"):
        beside = GPRegressor(method=method).fit(X, np.column_stack([y, np.full(80, 2.0), np.full(80, -1.5)]))
    np.testing.assert_allclose(beside.objective_, alone.objective_, rtol=1e-9)
    mean, sd = beside.predict(X, return_std=True)
    expected = alone.predict(X, return_std=True)
    np.testing.assert_allclose(mean[:, 0], expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sd[:, 0], expected[1], rtol=1e-6)
    np.testing.assert_allclose(mean[:, 1:], [[2.0, -1.5]] * 80, rtol=1e-9)
    assert sd[:, 1:].max() < 1e-9


def test_a_code_for_missing_values_does_not_cost_the_column():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 30, (300, 4))
    y = np.sin(X[:, 0] / 2) + 0.1 * X[:, 1] + 0.1 * rng.normal(size=300)
    T = rng.uniform(0, 30, (300, 4))
    X[:3, 0] = -999.0
    with pytest.warns(UserWarning, match="`x0` holds -999 in 3 of 300 rows"):
        model = GPRegressor().fit(X, y)
    error = model.predict(T) - np.sin(T[:, 0] / 2) - 0.1 * T[:, 1]
    assert np.sqrt(np.mean(error**2)) < 0.04


def test_one_gross_outlier():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 150))[:, None]
    y = 2 * np.sin(x[:, 0]) + 0.1 * rng.standard_normal(150)
    y[70] = 1e6
    places = np.linspace(0.3, 9.7, 80)[:, None]
    with pytest.warns(UserWarning, match="holds 1000000 in 1 of 150 rows"):
        model = RobustGPRegressor().fit(x, y)
    assert np.sqrt(np.mean((model.predict(places) - 2 * np.sin(places[:, 0])) ** 2)) < 0.05
    with pytest.warns(UserWarning, match="`student-t`"):
        GPRegressor(max_iter=2).fit(x, y)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_sorted_file_is_streamed_from_all_over(tmp_path):
    rng = np.random.default_rng(1)
    n = 300_000
    x = rng.uniform(-2, 2, n).round(4)
    y = np.sin(2 * x) + 0.1 * rng.normal(size=n)
    order = np.argsort(y)
    table = tmp_path / "sorted.csv"
    np.savetxt(table, np.c_[x[order], y[order]], delimiter=",", header="x,y", comments="", fmt="%.5g")
    model = GPRegressor(method="svgp", n_inducing=15, epochs=1, batch_size=2000, pilot=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit_file(table, "y", stream=True)
    places = np.linspace(-1.8, 1.8, 50)[:, None]
    assert np.sqrt(np.mean((model.predict(places) - np.sin(2 * places[:, 0])) ** 2)) < 0.05
