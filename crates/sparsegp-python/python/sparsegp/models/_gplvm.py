"""The bound of the Bayesian GP-LVM at given parameters."""

from __future__ import annotations

from typing import Union

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, matrix, one_of
from ..kernels import Kernel, as_kernel


def gplvm_bound(
    Y: ArrayLike,
    X_mean: ArrayLike,
    X_variance: ArrayLike,
    kernel: Union[str, Kernel],
    inducing_points: ArrayLike,
    *,
    noise_variance: float = 1.0,
    bound: str = "titsias2025",
) -> tuple[float, dict[str, Array]]:
    """The bound of a Bayesian GP-LVM at given parameters, and its gradients.

    Parameters
    ----------
    Y : array of shape (N, P)
        Targets; NaN where a cell is missing.
    X_mean, X_variance : arrays of shape (N, Q)
        Of q(X), whose prior is N(0, I).
    kernel : Kernel or str
        Of squared exponentials, linear and constant ones, their sums and products with constants.
    inducing_points : array of shape (M, Q)
    noise_variance : float
    bound : {"titsias2025", "spherical", "titsias2009"}

    Returns
    -------
    value : float
    gradients : dict of arrays
        With respect to the constrained values, by path: ``kernel.…``, ``likelihood.variance``, ``inducing.points`` (M×Q),
        ``latent.mean``, ``latent.variance`` (N×Q).
    """
    one_of("bound", bound, ("titsias2025", "spherical", "titsias2009"))
    mean, variance, points = matrix(X_mean), matrix(X_variance), matrix(inducing_points)
    targets = np.require(Y, np.float64, "A")
    value, found = _core.gplvm_bound(
        targets, mean, variance, points, as_kernel(kernel).to_json(), float(noise_variance), bound
    )
    shapes = {"inducing.points": points.shape, "latent.mean": mean.shape, "latent.variance": mean.shape}
    gradients = {}
    for path, numbers in found.items():
        own = np.array(numbers)
        gradients[path] = own.reshape(shapes[path], order="F") if path in shapes else own
    return value, gradients
