"""Checks of kernels, likelihoods and mean functions of your own (:class:`sparsegp.kernels.Custom`,
:class:`sparsegp.likelihoods.Custom`, :class:`sparsegp.means.Custom`).

>>> import numpy as np
>>> from sparsegp import kernels, testing
>>> rng = np.random.default_rng(0)
>>> testing.check_kernel(kernels.RBF(0.7, 1.3), rng.normal(size=(6, 2)))
"""

from __future__ import annotations

from typing import Optional, Union

from numpy.typing import ArrayLike

from . import _core
from ._arrays import matrix, vector, whole
from .kernels import Kernel, as_kernel
from .likelihoods import Likelihood, as_likelihood
from .means import Mean

__all__ = ["check_kernel", "check_likelihood", "check_mean"]


def check_kernel(kernel: Union[Kernel, str], X: ArrayLike, Z: Optional[ArrayLike] = None) -> None:
    """Checks that a kernel is a covariance function, and that its slopes are those of its values.

    K(X) must be finite, symmetric and positive semi-definite, have the diagonal of ``K_diag(X)``, and agree with K(X, Z)
    where rows are equal; slopes in all parameters and in both inputs must agree with differences.

    Parameters
    ----------
    kernel : Kernel or str
        With values that are far from 1 and from the ends of their ranges, so that nothing is hidden.
    X : array of shape (n, d)
        Some rows (5 to 10 do), a lengthscale or so apart.
    Z : array of shape (m, d), optional
        Other rows; by default four points between those of ``X``.

    Raises
    ------
    AssertionError
        That says what is wrong first.
    ValueError
        For values that are not those of a covariance function at all.
    """
    rows = matrix(X)
    if Z is None:
        others = (0.6 * rows + 0.4 * rows[::-1])[:4] + 0.05
    else:
        others = matrix(Z, "Z")
    _core.check_kernel(as_kernel(kernel).to_json(), rows, others)


def check_likelihood(likelihood: Union[Likelihood, str], y: ArrayLike) -> None:
    """Checks that a likelihood is a density, and that its expectations and slopes are those of its log density.

    Parameters
    ----------
    likelihood : Likelihood or str
        With parameters that are far from 1 and from the ends of their ranges.
    y : array of shape (n,)
        A few targets that it takes.

    Raises
    ------
    AssertionError
        That says what is wrong first.
    ValueError
        For a log density that is not finite, or that does not integrate to 1.
    """
    _core.check_likelihood(as_likelihood(likelihood).to_json(), vector(y, "y"))


def check_mean(mean: Mean, X: ArrayLike, outputs: int = 1) -> None:
    """Checks that the values of a mean function are finite and each depends only on its row, and its slopes.

    Parameters
    ----------
    mean : Mean
        With parameters that are far from 0 and 1, and from the ends of their ranges.
    X : array of shape (n, d)
        Some rows (5 to 10 do).
    outputs : int
        Number of outputs.

    Raises
    ------
    AssertionError
        That says what is wrong first.
    TypeError
        For the name of a built-in mean function.
    ValueError
        For values that are not finite or depend on other rows, and for slopes that are far off.
    """
    if not isinstance(mean, Mean):
        raise TypeError(
            f"mean is {mean!r}; it must be a mean function of your own, an object of a subclass of means.Custom"
        )
    _core.check_mean(mean.to_json(), matrix(X), whole("outputs", outputs, 1))
