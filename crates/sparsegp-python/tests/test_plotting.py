"""Pictures: what is drawn, not how it looks."""

import os

import numpy as np
import pytest

from sparsegp import GPClassifier, GPRegressor

matplotlib = pytest.importorskip("matplotlib")
dates = pytest.importorskip("matplotlib.dates")
from sparsegp import plotting  # noqa: E402
from sparsegp.plotting import (  # noqa: E402
    plot_1d,
    plot_calibration,
    plot_map,
    plot_predictions,
    plot_trace,
)

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, 80))[:, None]
y = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(80)


def test_a_fit_of_one_input():
    model = GPRegressor(method="titsias2025", n_inducing=10).fit(X, y)
    axes = plot_1d(model, X, y, num=50)
    curve = next(line for line in axes.lines if line.get_label() == "mean")
    assert len(curve.get_xdata()) == 50
    np.testing.assert_allclose(curve.get_ydata(), model.predict(curve.get_xdata()[:, None]))
    assert "inducing points" in axes.get_legend_handles_labels()[1]
    assert plot_1d(model, ax=axes) is axes
    classes = GPClassifier(max_iter=10).fit(X, np.where(y > 0, "up", "down"))
    axes = plot_1d(classes, X, np.where(y > 0, "up", "down"))
    assert {"p(up)", "p(down)"} <= set(axes.get_legend_handles_labels()[1])
    with pytest.raises(ValueError, match="2 inputs"):
        plot_1d(GPRegressor().fit(np.hstack([X, X**2]), y))
    with pytest.raises(ValueError, match="give X"):
        plot_1d(GPRegressor().fit(X, y))


def test_a_fit_of_a_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"time": X[:, 0]})
    assert plot_1d(GPRegressor().fit(frame, y), frame, y).get_xlabel() == "time"


def test_frames_of_dates_and_texts_have_pictures(tmp_path):
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2020-01-03", periods=80, freq="5D")
    frame = pd.DataFrame({"day": days})
    axes = plot_1d(GPRegressor().fit(frame, y), frame, y)
    assert axes.get_xlabel() == "day"
    rows = next(line for line in axes.lines if line.get_label() == "rows")
    shown = dates.num2date(np.asarray(rows.get_xdata())[-1])
    assert shown.date() == days[-1].date()
    frame["x"] = X[:, 0]
    axes = plot_map(GPRegressor().fit(frame, y), frame, y, num=8)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("day", "x")
    frame["place"] = ["a", "b"] * 40
    for method in ("auto", "deep"):
        model = GPRegressor(method=method, **({"epochs": 2} if method == "deep" else {})).fit(frame, y)
        plotting.report(model, frame, y, tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text()
        assert "predictions and observations" in page
        assert ("the first hidden layer" in page) == (method == "deep")


def test_calibration():
    model = GPRegressor().fit(X, y)
    shares = plot_calibration(model, X, y).lines[1].get_ydata()
    assert len(shares) == 19 and np.all(np.diff(shares) >= 0) and abs(shares[9] - 0.5) < 0.2
    axes = plot_calibration(GPClassifier(max_iter=10).fit(X, y > 0), X, y > 0)
    assert np.all((0 <= axes.lines[1].get_ydata()) & (axes.lines[1].get_ydata() <= 1))


def test_the_trace():
    # from a start that is not judged there is a way to go
    model = GPRegressor(pilot=0).fit(X, y)
    line = plot_trace(model).lines[0]
    np.testing.assert_array_equal(line.get_ydata(), model.trace_["objective"])
    assert len(line.get_xdata()) > 1


def test_a_map_of_two_inputs():
    two = np.column_stack([X[:, 0], rng.uniform(10, 12, 80)])
    model = GPRegressor(method="titsias2025", n_inducing=9).fit(two, y)
    axes = plot_map(model, two, y, num=20)
    fields = [c.get_array() for c in axes.collections if np.size(c.get_array()) == 400]
    assert len(fields) == 1
    low, high = two.min(axis=0), two.max(axis=0)
    margin = 0.05 * (high - low)
    side = np.linspace(low[0] - margin[0], high[0] + margin[0], 20)
    other = low[1] - margin[1]
    first = model.predict(np.column_stack([side, np.full(20, other)]))
    np.testing.assert_allclose(np.ravel(fields[0])[:20], first)
    assert "inducing points" in axes.get_legend_handles_labels()[1]
    for labels in (y > 0, np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]):
        classes = GPClassifier(max_iter=5).fit(two, labels)
        field = [c.get_array() for c in plot_map(classes, two, labels, num=15).collections]
        values = np.concatenate([np.ravel(f) for f in field if np.size(f) == 225])
        assert len(values) == 225 and values.min() >= 0 and values.max() <= 2
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"north": two[:, 0], "east": two[:, 1]})
    axes = plot_map(GPRegressor().fit(frame, y), frame, y, num=12)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("north", "east")
    with pytest.raises(ValueError, match="1 inputs"):
        plot_map(GPRegressor().fit(X, y), X)
    with pytest.raises(ValueError, match="give X"):
        plot_map(GPRegressor().fit(two, y))


def test_predictions_against_observations():
    model = GPRegressor().fit(X, y)
    axes = plot_predictions(model, X, y)
    marks = axes.containers[0].lines[0]
    np.testing.assert_array_equal(marks.get_xdata(), y)
    np.testing.assert_allclose(marks.get_ydata(), model.predict(X))
    assert axes.get_xlabel() == "observed"
    with pytest.raises(ValueError, match="plot_calibration"):
        plot_predictions(GPClassifier(max_iter=5).fit(X, y > 0), X, y > 0)


def test_report_is_one_page_that_needs_nothing_else(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (120, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(120)
    model = GPRegressor("matern52").fit(X[:80], y[:80])
    path = tmp_path / "page.html"
    plotting.report(model, X[80:], y[80:], path, title="A < B & C")
    page = path.read_text(encoding="utf-8")
    assert "<title>A &lt; B &amp; C</title>" in page and "On the 40 rows" in page
    for words in (
        "RMSE",
        "within 95 % intervals",
        "likelihood.variance",
        "relevance of the inputs",
        "calibration",
    ):
        assert words in page, words
    # the result comes first, in sentences
    lead = page.split("<h2>")[0]
    assert 'class="lead">Predictions of' in lead and "Intervals of 95 % hold" in lead
    assert 'name="viewport"' in page and "prefers-color-scheme:dark" in page and "@media print" in page
    # pictures are within: predictions, calibration, relevance, training
    # with what inputs explain, and an effect of each
    assert page.count("data:image/png;base64,") == 8
    assert "http" not in page.replace("data:image", "")
    assert os.listdir(tmp_path) == ["page.html"]
    labels = np.where(y > 0, "up", "down")
    classifier = GPClassifier().fit(X[:80, :1], labels[:80])
    plotting.report(classifier, X[80:, :1], labels[80:], path)
    page = path.read_text(encoding="utf-8")
    assert "Brier score" in page and "accuracy" in page
    assert "The most probable class of" in page and "always saying" in page
    with pytest.raises(ValueError, match="features"):
        plotting.report(model, X[80:, :2], y[80:], tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


def test_relevance_has_the_inputs_by_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": np.linspace(0, 6, 60), "b": np.linspace(1, 0, 60) ** 2})
    model = GPRegressor("rbf").fit(frame, np.sin(frame.a))
    ax = plotting.plot_relevance(model)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert sorted(names) == ["a", "b"]
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(sorted(widths), np.sort(1 / np.array(model.kernel_.lengthscales)), rtol=1e-6)
    with pytest.raises(ValueError, match="no lengthscales"):
        plotting.plot_relevance(GPRegressor("linear").fit(frame, frame.a))


def test_a_forecast_along_time():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2020-01-03", periods=80, freq="5D")
    frame, t = pd.DataFrame({"day": days}), np.arange(80)
    sales = 3.0 + np.sin(t / 6) + 0.1 * np.cos(5 * t)
    model = GPRegressor().fit(frame, sales)
    axes = plotting.plot_forecast(model, frame, sales, 6, num=400)
    past, ahead = (
        next(own for own in axes.lines if own.get_label() == name)
        for name in ("mean of what is known", "forecast")
    )
    assert axes.get_xlabel() == "day"
    last = dates.num2date(np.asarray(past.get_xdata())[-1])
    assert last.date() == days[-1].date() and past.get_xdata()[-1] == ahead.get_xdata()[0]
    # ten horizons of the past
    span = np.ptp(past.get_xdata()) / np.ptp(ahead.get_xdata())
    assert span == pytest.approx(10)
    rows = next(own for own in axes.lines if own.get_label() == "rows")
    assert len(rows.get_xdata()) == 61
    at = np.asarray(ahead.get_xdata())[-1:]
    later = model.predict(pd.DataFrame({"day": [days[-1] + pd.Timedelta(days=30)]}))
    assert dates.num2date(at[0]).date() == (days[-1] + pd.Timedelta(days=30)).date()
    np.testing.assert_allclose(np.asarray(ahead.get_ydata())[-1:], later, rtol=1e-9)
    assert len(axes.collections) == 2 and plotting.plot_forecast(model, frame, None, "10d", ax=axes) is axes
    with pytest.raises(ValueError, match="2 inputs"):
        plotting.plot_forecast(GPRegressor().fit(np.hstack([X, X**2]), y), X, y, 3)
    with pytest.raises(ValueError, match="classes"):
        plotting.plot_forecast(GPClassifier(max_iter=5).fit(X, y > 0), X, y, 3)
