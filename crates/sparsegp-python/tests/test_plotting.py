"""Pictures: what is drawn, not how it looks."""

import numpy as np
import pytest

from sparsegp import GPClassifier, GPRegressor

matplotlib = pytest.importorskip("matplotlib")
from sparsegp.plotting import plot_1d, plot_calibration, plot_trace  # noqa: E402

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


def test_calibration():
    model = GPRegressor().fit(X, y)
    shares = plot_calibration(model, X, y).lines[1].get_ydata()
    assert len(shares) == 19 and np.all(np.diff(shares) >= 0) and abs(shares[9] - 0.5) < 0.2
    axes = plot_calibration(GPClassifier(max_iter=10).fit(X, y > 0), X, y > 0)
    assert np.all((0 <= axes.lines[1].get_ydata()) & (axes.lines[1].get_ydata() <= 1))


def test_the_trace():
    model = GPRegressor().fit(X, y)
    line = plot_trace(model).lines[0]
    np.testing.assert_array_equal(line.get_ydata(), model.trace_["objective"])
    assert len(line.get_xdata()) > 1
