"""Series divided at cut-offs, and forecasts judged after each."""

import json
import os
import subprocess

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score

import sparsegp
from sparsegp import CutOffs, GPCountRegressor, GPRegressor

pd = pytest.importorskip("pandas")
CLI = os.environ.get("SPARSEGP_CLI")
WEEKS = pd.date_range("2021-01-03", periods=150, freq="7D")
TURN = np.arange(150) * 7 * 2 * np.pi / 365.25
SALES = 300 + 40 * np.sin(TURN) + 5 * np.random.default_rng(2).normal(size=150)


def divisions(cuts, X):
    return [(list(train), list(test)) for train, test in cuts.split(X)]


def test_frames_arrays_and_indices_are_cut_by_their_times():
    cuts = CutOffs("13w", n_splits=3)
    expected = [(list(range(n)), list(range(n, n + 13))) for n in (111, 124, 137)]
    assert cuts.get_n_splits() == 3 and "13w" in repr(cuts)
    assert divisions(cuts, pd.DataFrame({"day": WEEKS})) == expected
    # of several columns the one with dates, a name, or the index
    both = pd.DataFrame({"x": SALES, "day": WEEKS})
    assert divisions(cuts, both) == divisions(CutOffs("13w", 3, time="day"), both) == expected
    assert divisions(cuts, both[["x", "x"]].set_axis(["a", "b"], axis=1).set_index(WEEKS)) == expected
    assert divisions(cuts, WEEKS.to_numpy()) == expected
    zoned = pd.DataFrame({"day": WEEKS.tz_localize("Europe/Berlin")})
    assert divisions(CutOffs(13, 3), zoned) == expected
    numbers = np.column_stack([SALES, np.arange(150.0)])
    assert divisions(CutOffs(13, 3, time=1), numbers) == expected
    order = np.random.default_rng(0).permutation(150)
    mixed = divisions(cuts, pd.DataFrame({"day": WEEKS[order]}))
    assert [sorted(order[train]) for train, _ in mixed] == [train for train, _ in expected]


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_other_frames_are_cut_too(kind):
    frames = pytest.importorskip(kind)
    days = WEEKS.to_numpy().astype("datetime64[us]")
    X = (frames.table if kind == "pyarrow" else frames.DataFrame)({"x": SALES, "day": days})
    assert [len(test) for _, test in CutOffs("13w", 2).split(X)] == [13, 13]
    days_only = X.select(["day"])
    found = sparsegp.backtest(GPRegressor("rbf", max_iter=5), days_only, SALES, horizon="4w", cutoffs=2)
    assert list(found.scores["rows"])[-1] == 8


def test_scikit_learn_takes_the_splitter():
    X = np.arange(40.0)[:, None]
    scores = cross_val_score(LinearRegression(), X, 3 * X[:, 0] - 1, cv=CutOffs(5, n_splits=4))
    assert scores.shape == (4,) and np.all(scores > 0.999)


def test_rows_without_a_time_are_in_no_division():
    times = np.array([0.0, 1.0, np.nan, 2.0, 3.0, 4.0])
    with pytest.warns(UserWarning, match="1 row"):
        assert divisions(CutOffs(1, 2), times) == [([0, 1, 3], [4]), ([0, 1, 3, 4], [5])]


@pytest.mark.parametrize(
    ("cuts", "X", "match"),
    [
        (CutOffs("2 moons"), WEEKS.to_numpy(), "horizon `2 moons`"),
        (CutOffs("1y", 9), WEEKS.to_numpy(), "cutoffs 9.*at most 2 fit"),
        (CutOffs("5y"), WEEKS.to_numpy(), "horizon `5y`"),
        (CutOffs(3, every="x"), WEEKS.to_numpy(), "every `x`"),
        (CutOffs(3), np.ones((9, 2)), "time=0"),
        (CutOffs(3), pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]}), "a, b.*time='a'"),
        (CutOffs(3, time="c"), pd.DataFrame({"a": [1.0, 2.0]}), "'c'"),
        (CutOffs(3), ["a", "b"], "neither numbers nor dates"),
    ],
)
def test_what_cannot_be_cut_is_refused(cuts, X, match):
    with pytest.raises(ValueError, match=match):
        list(cuts.split(X))


def test_a_backtest_is_that_of_the_command_line(tmp_path):
    X = pd.DataFrame({"day": WEEKS})
    model = GPRegressor("matern52", season="1y", max_iter=40)
    found = sparsegp.backtest(model, X, SALES, horizon="13w", cutoffs=3, every="10w", parts=2)
    scores = found.scores
    assert list(scores.columns) == ["ahead", "rows", "forecast", "rmse", "mae", "nlpd", "crps", "in_95"]
    assert list(scores["ahead"].unique()) == ["to 6.5w", "to 13w", "all"]
    assert list(scores["forecast"][:3]) == ["model", "last value", "value 1y before"]
    p, all_rows = found.predictions, scores[scores["ahead"] == "all"].set_index("forecast")
    assert len(p) == 39 and list(p["cutoff"].dt.strftime("%Y-%m-%d").unique()) == [
        "2023-03-26",
        "2023-06-04",
        "2023-08-13",
    ]
    np.testing.assert_allclose(
        all_rows.loc["model", "rmse"], np.sqrt(np.mean((p["observed"] - p["mean"]) ** 2))
    )
    np.testing.assert_array_equal(p["observed"], SALES[p["row"]])
    assert all_rows.loc["model", "rmse"] < all_rows.loc["last value", "rmse"]
    assert np.isnan(all_rows.loc["last value", "nlpd"]) and "value 1y before" in repr(found)
    assert not hasattr(model, "fitted_")
    if CLI is None:
        return
    X.assign(sales=SALES).to_csv(tmp_path / "rows.csv", index=False)
    line = [
        CLI,
        "--json",
        "backtest",
        tmp_path / "rows.csv",
        "--target",
        "sales",
        "--kernel",
        "matern52",
        "--season",
        "1y",
    ]
    line += ["--max-iterations", "40", "--horizon", "13w", "--cutoffs", "3", "--every", "10w", "--parts", "2"]
    report = json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    last = report["scores"][-1]
    for name, own in (("RMSE", "rmse"), ("MAE", "mae"), ("NLPD", "nlpd"), ("CRPS", "crps")):
        np.testing.assert_allclose(last["model"][name], all_rows.loc["model", own], rtol=1e-3)
    np.testing.assert_allclose(last["model"]["in 95 %"], 100 * all_rows.loc["model", "in_95"])
    for name in ("last value", "value 1y before"):
        np.testing.assert_allclose(last["simple"][name]["RMSE"], all_rows.loc[name, "rmse"], rtol=1e-9)


def test_counts_take_their_exposures_and_have_no_crps():
    t = np.arange(60.0)
    size = 1.0 + t % 3
    counts = np.random.default_rng(1).poisson(size * np.exp(1 + 0.5 * np.sin(t / 5)))
    model = GPCountRegressor(max_iter=20)
    found = sparsegp.backtest(model, t[:, None], counts, horizon=5, cutoffs=2, parts=1, exposure=size)
    assert np.isnan(found.scores["crps"]).all() and np.isfinite(found.scores["nlpd"][0])
    assert list(found.scores["ahead"]) == ["to 5 steps", "to 5 steps", "all", "all"]


@pytest.mark.parametrize(
    ("model", "y", "match"),
    [
        (sparsegp.GPClassifier(), np.arange(20) > 9, "classifier"),
        (GPRegressor(), np.ones((20, 2)), "one output"),
        (GPRegressor(), np.where(np.arange(20) == 3, np.nan, 1.0), "missing or infinite"),
        (GPRegressor(), np.ones(19), "20 rows, and y 19"),
    ],
)
def test_what_cannot_be_judged_is_refused(model, y, match):
    with pytest.raises(ValueError, match=match):
        sparsegp.backtest(model, np.arange(20.0)[:, None], y, horizon=2)


def test_a_season_that_is_not_known_is_left_out():
    X = pd.DataFrame({"day": WEEKS[:60]})
    model = GPRegressor("rbf", season="1y", max_iter=5)
    with pytest.warns(UserWarning, match="value 1y before"):
        found = sparsegp.backtest(model, X, SALES[:60], horizon="10w", cutoffs=2)
    assert set(found.scores["forecast"]) == {"model", "last value"}
