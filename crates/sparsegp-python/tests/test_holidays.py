"""Effects of holidays, in the forms in which people have calendars."""

import os
import subprocess

import numpy as np
import pytest

import sparsegp
from sparsegp import GPClassifier, GPCountRegressor, GPRegressor
from sparsegp.estimators._holidays import holidays_text

pd = pytest.importorskip("pandas")
CLI = os.environ.get("SPARSEGP_CLI")
DAYS = pd.date_range("2021-01-03", periods=300, freq="D")
FAIRS = DAYS[20::40]
t = np.arange(300)
SALES = (
    200
    + 20 * np.sin(2 * np.pi * t / 150)
    + np.where((t + 20) % 40 == 0, 30.0, 0.0)
    + np.where((t + 20) % 40 == 1, 12.0, 0.0)
    + np.random.default_rng(1).normal(size=300)
)
FRAME = pd.DataFrame({"date": [*FAIRS, pd.Timestamp("2021-11-19")], "name": "fair", "before": 0, "after": 1})
X = pd.DataFrame({"day": DAYS})


class Calendar(dict):
    """As the package `holidays` has them: a date has a name."""


def test_calendars_have_many_forms():
    day = np.datetime64("2024-05-01").astype(int)
    expected = [{"name": "fair", "day": day}, {"name": "fair", "day": day + 365}]
    import datetime
    import json

    dates = ["2024-05-01", "2025-05-01"]
    as_dates = [datetime.date.fromisoformat(own) for own in dates]
    for given in (
        {"fair": dates},
        {"fair": pd.to_datetime(dates)},
        {"fair": np.array(dates, "datetime64[D]")},
        Calendar({own: "fair" for own in as_dates}),
    ):
        assert json.loads(holidays_text(given)) == expected
    both = json.loads(holidays_text(Calendar({as_dates[0]: "fair; market"})))
    assert [own["name"] for own in both] == ["fair", "market"]
    frame = json.loads(holidays_text(pd.DataFrame({"date": dates, "name": "fair", "after": [1, None]})))
    assert [own["after"] for own in frame] == [1, 0]
    assert holidays_text(None) is None


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (pd.DataFrame({"day": ["2024-05-01"], "name": ["fair"]}), "needs `date` and `name`"),
        (pd.DataFrame({"date": ["2024-05-01"], "name": ["fair"], "after": [0.5]}), "`after` is a whole number"),
        ({"fair": ["soon"]}, "'fair' has \\['soon'\\], which is not a date"),
        ({"fair": [np.datetime64("NaT")]}, "missing date"),
        ({}, "no holidays"),
    ],
)
def test_what_is_not_a_calendar_is_refused(given, match):
    with pytest.raises(ValueError, match=match):
        GPRegressor(holidays=given, max_iter=3).fit(X, SALES)
    with pytest.raises(TypeError, match="frame"):
        GPRegressor(holidays="US").fit(X, SALES)


def test_effects_are_learnt_predicted_and_kept(tmp_path):
    model = GPRegressor("matern52", holidays=FRAME, max_iter=60).fit(X, SALES)
    assert list(model.feature_names_in_) == ["day", "day=fair", "day=fair +1"]
    # a fair that is still to come, and days about it
    later = pd.DataFrame({"day": pd.to_datetime(["2021-11-18", "2021-11-19", "2021-11-20"])})
    plain, fair, after = model.predict(later)
    assert abs(fair - plain - 30) < 4 and abs(after - plain - 12) < 4
    with pytest.warns(UserWarning, match="end with 2021-11-20.*`day` continues to 2021-11-21"):
        model.predict(pd.DataFrame({"day": pd.to_datetime(["2021-11-21"])}))
    path = tmp_path / "m.safetensors"
    model.save(path)
    again = sparsegp.load(path)
    np.testing.assert_array_equal(again.predict(later), [plain, fair, after])
    # what was given is a parameter of the estimator that was read, too
    assert len(again.holidays) == 8 and again.set_params(max_iter=3).fit(X, SALES).n_features_in_ == 3
    terms = model.predict_terms(later)
    np.testing.assert_allclose(np.ravel(terms["holidays"][0])[0], 0, atol=1e-9)
    new = sparsegp.future(X, 21)
    assert model.predict(new)[-1] == pytest.approx(fair, abs=2)
    found = sparsegp.backtest(
        GPRegressor("matern52", holidays=FRAME, max_iter=30), X, SALES, horizon=20, cutoffs=2, parts=1
    )
    assert found.scores["rows"].iloc[-1] == 40
    if CLI is None:
        return
    X.assign(sales=SALES).to_csv(tmp_path / "rows.csv", index=False)
    FRAME.to_csv(tmp_path / "holidays.csv", index=False)
    line = [
        CLI,
        "fit",
        tmp_path / "rows.csv",
        "--target",
        "sales",
        "--kernel",
        "matern52",
        "--max-iterations",
        "60",
    ]
    subprocess.run(
        [*line, "--holidays", tmp_path / "holidays.csv", "-o", tmp_path / "c.safetensors"],
        check=True,
        capture_output=True,
    )
    np.testing.assert_allclose(
        sparsegp.load(tmp_path / "c.safetensors").predict(later), [plain, fair, after], rtol=1e-6
    )


def test_files_counts_and_classes_have_them_too(tmp_path):
    path = tmp_path / "rows.csv"
    X.assign(sales=np.round(SALES / 20), high=np.where(SALES > 215, "yes", "no")).to_csv(path, index=False)
    calendar = {"fair": FAIRS}
    counts = GPCountRegressor("rbf", holidays=calendar, max_iter=5).fit(X, np.round(SALES / 20))
    assert counts.n_features_in_ == 2
    model = GPRegressor("rbf", holidays=calendar, max_iter=10).fit_file(path, "sales", ignore=["high"])
    assert list(model.feature_names_in_) == ["day", "day=fair"]
    # a column of dates of Parquet, and one of moments
    pytest.importorskip("pyarrow")
    expected = model.predict(X[15:25])
    for name, days in (("moments", DAYS), ("dates", DAYS.date)):
        other = tmp_path / f"{name}.parquet"
        pd.DataFrame({"day": days, "sales": np.round(SALES / 20)}).to_parquet(other, index=False)
        again = GPRegressor("rbf", holidays=calendar, max_iter=10).fit_file(other, "sales")
        np.testing.assert_allclose(again.predict(X[15:25]), expected, rtol=1e-9)
    classes = GPClassifier("rbf", holidays=calendar, max_iter=5).fit(X, SALES > 215)
    assert classes.predict(X[:3]).shape == (3,)


def test_holidays_need_one_column_of_dates():
    two = X.assign(other=DAYS[::-1])
    with pytest.raises(ValueError, match="has 2 \\(day, other\\)"):
        GPRegressor(holidays=FRAME).fit(two, SALES)
    for plain in (t[:, None].astype(float), pd.DataFrame({"t": t})):
        with pytest.raises(ValueError, match="one column of X that holds dates, and X has none"):
            GPRegressor(holidays=FRAME).fit(plain, SALES)
    with pytest.raises(ValueError, match="holidays: `markov` is for one input"):
        GPRegressor("matern32", method="markov", holidays=FRAME).fit(X, SALES)


def test_a_forecast_with_holidays_is_drawn():
    pytest.importorskip("matplotlib")
    model = GPRegressor("matern52", holidays=FRAME, max_iter=30).fit(X, SALES)
    axes = sparsegp.plotting.plot_forecast(model, X, SALES, 21)
    ahead = next(line for line in axes.lines if line.get_label() == "forecast")
    assert np.ptp(ahead.get_ydata()) > 20
