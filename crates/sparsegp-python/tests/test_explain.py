"""What a model has learnt of its inputs."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from sparsegp import GPClassifier, GPRegressor, explain


@pytest.fixture(scope="module")
def product():
    """30 a + 20 b + 40 (a - 1) c with a on [0, 2], b and c on [-1, 1]: parts of the variance 300, 400/3 and 1600/9."""
    rng = np.random.default_rng(3)
    X = rng.uniform([0, -1, -1], [2, 1, 1], (250, 3))
    y = 30 * X[:, 0] + 20 * X[:, 1] + 40 * (X[:, 0] - 1) * X[:, 2] + rng.normal(scale=0.3, size=250)
    return GPRegressor(kernel="rbf", hyperparameters="plug-in").fit(X, y), X


def test_shares_are_those_of_the_function(product):
    model, _ = product
    X = np.random.default_rng(4).uniform([0, -1, -1], [2, 1, 1], (4000, 3))
    found = explain(model, X, samples=4000, functions=10, inputs=[])
    parts = np.array([300, 400 / 3, 1600 / 9])
    first, total = found.first["y0"], found.total["y0"]
    assert found.responses == ["y0"] and found.effects == []
    assert found.deviation["y0"] == pytest.approx(np.sqrt(parts.sum()), rel=0.04)
    for name, one, all_of_it in [("x0", 300, 300 + 1600 / 9), ("x1", 400 / 3, 400 / 3), ("x2", 0, 1600 / 9)]:
        assert first[name].mean == pytest.approx(one / parts.sum(), abs=0.05)
        assert total[name].mean == pytest.approx(all_of_it / parts.sum(), abs=0.05)
        assert total[name].lower <= total[name].mean <= total[name].upper
    assert "x0: 0." in str(found)


def test_partial_dependence_is_an_average(product):
    model, X = product
    found = explain(model, X, rows=250, points=7, draws=50, samples=50)
    own = found.effect("x1")
    assert len(own.values) == 7 and not own.centred and own.kind == "numbers"
    for value, mean in zip(own.values, own.mean):
        moved = X.copy()
        moved[:, 1] = value
        assert mean == pytest.approx(model.predict(moved).mean(), abs=1e-8)
    # 20 b, and the mean of all else
    assert np.diff(own.mean) / np.diff(own.values) == pytest.approx(20 + 0 * own.mean[1:], abs=3)
    assert np.all(own.lower <= own.mean) and np.all(own.mean <= own.upper)
    with pytest.raises(KeyError, match="no effect of 'x7'"):
        found.effect("x7")


def test_frames_have_dates_and_categories():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    day = pandas.date_range("2020-01-05", periods=150, freq="D")
    colour = rng.choice(["red", "green", "blue"], 150)
    X = pandas.DataFrame({"day": day, "colour": colour, "size": rng.uniform(0, 3, 150)})
    y = np.where((colour == "green") | ((colour == "red") & (X["size"] > 1.5)), "good", "bad")
    model = GPClassifier().fit(X, y)
    found = explain(model, X, points=5, rows=80, draws=50, samples=200, functions=5)
    assert found.responses == ["p_good"]
    own = found.effect("colour")
    assert list(own.values) == ["blue", "green", "red"] and own.kind == "categories"
    blue, green, red = own.mean
    assert blue < red < green and own.upper.max() <= 1
    days = found.effect("day").values
    assert days.dtype.kind == "M" and day[0] <= days[0] < days[-1] <= day[-1]
    assert found.total["p_good"]["colour"].mean > found.total["p_good"]["day"].mean
    plotting = pytest.importorskip("sparsegp.plotting")
    pytest.importorskip("matplotlib").use("Agg")
    ax = plotting.plot_effect(found, "colour")
    assert [own.get_text() for own in ax.get_xticklabels()] == ["blue", "green", "red"]
    assert plotting.plot_effect(found, "size").get_xlabel() == "size"


def test_inputs_that_depend_on_each_other_are_named():
    rng = np.random.default_rng(2)
    a = rng.uniform(0, 1, 200)
    X = np.column_stack([a, 2 * a + 0.02 * rng.normal(size=200)])
    model = GPRegressor(kernel="linear + rbf").fit(X, 5 * a + 0.1 * rng.normal(size=200))
    with pytest.warns(UserWarning, match="'x0' and 'x1' are not independent"):
        found = explain(model, X, accumulated=True, points=6, draws=50, samples=50)
    own = found.effect("x0")
    assert own.centred and len(own.values) == 6 and own.values[0] == a.min()


def test_what_cannot_be_explained_is_refused(product):
    model, X = product
    with pytest.raises(ValueError, match="not an input of the model; it has x0, x1, x2"):
        explain(model, X, inputs=["weight"])
    with pytest.raises(ValueError, match="points"):
        explain(model, X, points=1)
    with pytest.raises(ValueError):
        explain(model, X[:, :2])
    with pytest.raises(ValueError):
        explain(model, X[:0])
    with pytest.raises(NotFittedError):
        explain(GPRegressor(), X)


def test_reports_and_pictures_show_it(product, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    from sparsegp import plotting

    model, X = product
    found = explain(model, X, points=4, draws=20, samples=50, functions=5)
    ax = plotting.plot_shares(found, most=2)
    assert len(ax.get_yticklabels()) == 2 and ax.get_yticklabels()[-1].get_text() == "x0"
    path = tmp_path / "report.html"
    plotting.report(model, X, model.predict(X), path)
    page = path.read_text(encoding="utf-8")
    assert "what explains the predictions of y0" in page and "y0 and x0" in page


def test_the_refusal_of_a_pipeline_says_what_to_give(product):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    _, X = product
    with pytest.raises(TypeError, match="not Pipeline: of a pipeline give the last step"):
        explain(make_pipeline(StandardScaler(), GPRegressor()), X)
