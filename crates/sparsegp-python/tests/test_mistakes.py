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
