"""Covariance functions: small immutable objects with ``+`` and ``*``.

>>> from sparsegp.kernels import Linear, Matern52
>>> kernel = Matern52(lengthscales=[0.5, 2.0], variance=1.3) + Linear(active_dims=[0])
>>> kernel([[0.0, 1.0], [1.0, 1.0]]).shape
(2, 2)

Values that are not given start from the data; :class:`sparsegp.priors.Parameter` gives priors, bounds and
fixed values. Wherever a kernel is expected, its short form does too: ``"matern52 + linear(active_dims=[0])"``.
"""

from __future__ import annotations

from typing import Any

from .._hints import no_attribute
from ._composed import Additive, ChangePoints, Convolutional, Periodic, Warped
from ._custom import Custom
from ._inner import ArcCosine, Linear, Polynomial
from ._kernel import Kernel, Product, Sum, as_kernel
from ._plain import Categorical, Constant, Coregion, White
from ._radial import (
    RBF,
    Cosine,
    Exponential,
    GammaExponential,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
)

__all__ = [
    "Additive",
    "ArcCosine",
    "Categorical",
    "ChangePoints",
    "Constant",
    "Convolutional",
    "Coregion",
    "Cosine",
    "Custom",
    "Exponential",
    "GammaExponential",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Polynomial",
    "Product",
    "RBF",
    "RationalQuadratic",
    "SquaredExponential",
    "Sum",
    "Warped",
    "White",
    "as_kernel",
]


def __getattr__(name: str) -> Any:
    raise no_attribute(__name__, name, __all__)
