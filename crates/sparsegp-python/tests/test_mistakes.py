"""What people write who come from elsewhere, and the words that they get."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF as OtherRBF

import sparsegp
from sparsegp import GPClassifier, GPRegressor, kernels

X = np.linspace(0, 6, 40)[:, None]
Y = np.sin(X[:, 0])
QUICK = {"max_iter": 2, "pilot": 0}


def test_names_of_other_libraries():
    for module, name, words in (
        (sparsegp, "GaussianProcessRegressor", "it is sparsegp.GPRegressor"),
        (sparsegp, "GPR", "it is sparsegp.models.GPR"),
        (sparsegp, "GPRegresor", "did you mean 'GPRegressor'"),
        (kernels, "Matern", "Matern12, Matern32 or Matern52"),
        (kernels, "Matern25", "did you mean 'Matern"),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(module, name)
    assert not hasattr(kernels, "nothing_like_it")
    with pytest.raises(TypeError, match=r"write RBF\(\)"):
        GPRegressor(kernel=kernels.RBF, **QUICK).fit(X, Y)
    with pytest.raises(TypeError, match=r"sparsegp.kernels, such as RBF\(lengthscales"):
        GPRegressor(kernel=OtherRBF(), **QUICK).fit(X, Y)


def test_targets_and_arguments_of_another_kind():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="labels are for GPClassifier"):
        GPRegressor(**QUICK).fit(X, ["a", "b"] * 20)
    GPRegressor(**QUICK).fit(X, [str(y) for y in Y])
    with pytest.raises(ValueError, match=r"one class only, 0\.0:"):
        GPClassifier(**QUICK).fit(X, np.zeros(40))
    model = GPRegressor(**QUICK).fit(X, Y)
    with pytest.raises(
        TypeError, match=r"GPRegressor.predict has no argument 'return_interval'.*'return_quantiles'"
    ):
        model.predict(X, return_interval=True)
    with pytest.raises(TypeError, match="sample_f takes no rows"):
        model.sample_f(X)
    framed = GPRegressor(**QUICK).fit(pd.DataFrame({"x": X[:, 0], "c": ["u", "v"] * 20}), Y)
    with pytest.raises(ValueError, match="pass a frame with the columns"):
        framed.predict(np.array([[1.0, "u"]], dtype=object))


def test_parameters_and_columns_by_another_name():
    with pytest.raises(ValueError, match="nearest: `likelihood.variance`$"):
        GPRegressor(fixed=["noise"], **QUICK).fit(X, Y)
    with pytest.raises(ValueError, match="is a likelihood, not a method"):
        GPRegressor(method="laplace", **QUICK).fit(X, Y)


def test_kernels_that_are_nearly_called_so():
    for text, words in (
        ("mattern32", "^unknown kernel `mattern32`; nearest: matern32, "),
        ("rbf + mattern32", "^unknown kernel `mattern32`; nearest: matern32, "),
        ("zzzz", "^unknown kernel `zzzz`; nearest: .*known: rbf, "),
    ):
        with pytest.raises(ValueError, match=words):
            GPRegressor(text, **QUICK).fit(X, Y)


def test_frames_that_lack_columns():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    x = X[:, 0]
    when = pd.date_range("2024-01-01", periods=40)
    frame = pd.DataFrame({"when": when, "flag": ["yes", "no"] * 20, "x": x})
    fitted = "the model was fitted on columns when, flag, x"
    model, classes = GPRegressor(**QUICK).fit(frame, Y), GPClassifier(**QUICK).fit(frame, Y > 0)
    for own, other in ((model, frame), (classes, frame), (model, pl.from_pandas(frame))):
        with pytest.raises(ValueError, match=f"^column `x` is missing from the frame; {fitted}$"):
            own.predict(other[["when", "flag"]])
        with pytest.raises(ValueError, match=f"^columns `when`, `x` are missing from the frame; {fitted}$"):
            own.predict(other[["flag"]])
    calls = (model.predict, model.sample_y, model.latent_mean_and_variance, lambda X: model.score(X, Y))
    for call in (*calls, lambda X: model.update(X, Y), lambda X: sparsegp.explain(model, X)):
        with pytest.raises(ValueError, match=f"`x` is missing from the frame; {fitted}; nearest: `X`$"):
            call(frame.rename(columns={"x": "X"}))
    # numbers only, which are scikit-learn's matter otherwise
    numbers = pd.DataFrame({"size": x, "width": x % 1})
    model = GPRegressor(**QUICK).fit(numbers, Y)
    with pytest.raises(ValueError, match="`size` is missing.*fitted on columns size, width; nearest: `sizes`$"):
        model.predict(numbers.rename(columns={"size": "sizes"}))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(numbers.assign(more=1.0))
    places = sparsegp.BayesianGPLVM(n_components=1, n_inducing=5, max_iter=2, n_restarts=1)
    with pytest.warns(UserWarning):
        places.fit(numbers)
    with pytest.raises(ValueError, match="column `width` is missing from the frame"):
        places.transform(numbers[["size"]])
