"""Kernels of the distance between inputs divided by lengthscales."""

from __future__ import annotations

from typing import Optional

import numpy as np

from .._spec import Spec
from ..priors import Parameter
from ._kernel import Bounds, Dims, Kernel, Scalar, Value, dims_of


def _bounded(value: Value, bounds: Bounds) -> Value:
    """Lengthscales with bounds as scikit-learn writes them."""
    if bounds is None:
        return value
    known = value if isinstance(value, Parameter) else Parameter(value)
    if isinstance(bounds, str):
        if bounds != "fixed":
            raise ValueError(f'lengthscale_bounds is {bounds!r}; it must be a pair of numbers or "fixed"')
        return Parameter(known.value, prior=known.prior, fixed=True, min=known.min, max=known.max)
    if np.shape(bounds) != (2,):
        raise ValueError(
            f"lengthscale_bounds is {bounds!r}; it must be one pair of numbers for all lengthscales"
        )
    low, high = bounds
    return Parameter(known.value, prior=known.prior, fixed=known.fixed, min=low, max=high)


class _Radial(Kernel):
    """A kernel of the distance between inputs divided by lengthscales.

    Parameters
    ----------
    lengthscales : float, sequence of float or Parameter, optional
        One for all input columns or one for each; by default one for each, from the data.
    variance : float or Parameter, optional
        By default from the data.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees, by index or name; by default all.
    ard : bool, optional
        Whether each input column has its own lengthscale.
    lengthscale_bounds : (float, float) or "fixed", optional
        Bounds of all lengthscales, on the scale of the lengthscales: those of
        :class:`~sparsegp.priors.Parameter` in the spelling of scikit-learn's ``length_scale_bounds``.
    """

    lengthscales: Value
    variance: Scalar
    active_dims: Dims
    ard: Optional[bool]

    def __init__(
        self,
        lengthscales: Value = None,
        variance: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
        lengthscale_bounds: Bounds = None,
    ) -> None:
        lengthscales = _bounded(lengthscales, lengthscale_bounds)
        super().__init__(
            lengthscales=lengthscales, variance=variance, active_dims=dims_of(active_dims), ard=ard
        )

    @classmethod
    def _names(cls) -> list[str]:
        # these bounds are part of the lengthscales
        return [name for name in super()._names() if name != "lengthscale_bounds"]


class RBF(_Radial):
    """Squared exponential: σ² exp(−r²/2). Infinitely differentiable functions."""

    _type = "rbf"


SquaredExponential = RBF


class Matern12(_Radial):
    """Matérn ½, exponential: σ² exp(−r). Rough functions."""

    _type = "matern12"


class Matern32(_Radial):
    """Matérn 3/2: σ² (1 + √3 r) exp(−√3 r). Once differentiable functions."""

    _type = "matern32"


class Matern52(_Radial):
    """Matérn 5/2: σ² (1 + √5 r + 5r²/3) exp(−√5 r). Twice differentiable functions."""

    _type = "matern52"


class Exponential(_Radial):
    """Exponential: σ² exp(−r/2), as in GPflow: :class:`Matern12` with twice the lengthscale."""

    _type = "exponential"


class RationalQuadratic(_Radial):
    """Rational quadratic: σ² (1 + r²/2α)^−α. Smooth functions on many scales at once.

    Parameters
    ----------
    lengthscales : float, sequence of float or Parameter, optional
        One for all input columns or one for each; by default one for each, from the data.
    variance : float or Parameter, optional
        By default from the data.
    alpha : float or Parameter, optional
        How alike the scales are: with a large one the kernel is :class:`RBF`. By default 1.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees, by index or name; by default all.
    ard : bool, optional
        Whether each input column has its own lengthscale.
    lengthscale_bounds : (float, float) or "fixed", optional
        Bounds of all lengthscales, on the scale of the lengthscales: those of
        :class:`~sparsegp.priors.Parameter` in the spelling of scikit-learn's ``length_scale_bounds``.
    """

    _type = "rational_quadratic"
    alpha: Scalar

    def __init__(
        self,
        lengthscales: Value = None,
        variance: Scalar = None,
        alpha: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
        lengthscale_bounds: Bounds = None,
    ) -> None:
        super().__init__(
            lengthscales, variance, active_dims=active_dims, ard=ard, lengthscale_bounds=lengthscale_bounds
        )
        Spec.__init__(self, alpha=alpha)


class GammaExponential(_Radial):
    """γ-exponential: σ² exp(−r^γ), 0 < γ < 2. The smoother the larger γ; γ = 1 is :class:`Matern12`.

    Parameters
    ----------
    lengthscales : float, sequence of float or Parameter, optional
        One for all input columns or one for each; by default one for each, from the data.
    variance : float or Parameter, optional
        By default from the data.
    gamma : float or Parameter, optional
        By default 1.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees, by index or name; by default all.
    ard : bool, optional
        Whether each input column has its own lengthscale.
    lengthscale_bounds : (float, float) or "fixed", optional
        Bounds of all lengthscales, on the scale of the lengthscales: those of
        :class:`~sparsegp.priors.Parameter` in the spelling of scikit-learn's ``length_scale_bounds``.
    """

    _type = "gamma_exponential"
    gamma: Scalar

    def __init__(
        self,
        lengthscales: Value = None,
        variance: Scalar = None,
        gamma: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
        lengthscale_bounds: Bounds = None,
    ) -> None:
        super().__init__(
            lengthscales, variance, active_dims=active_dims, ard=ard, lengthscale_bounds=lengthscale_bounds
        )
        Spec.__init__(self, gamma=gamma)


class Cosine(_Radial):
    """One wave of any phase: σ² cos(2π Σ_d (x_d − x′_d)/ℓ_d). Its lengthscales are wavelengths.

    Parameters
    ----------
    lengthscales : float, sequence of float or Parameter, optional
        One for all input columns or one for each; by default one for each, from the data.
    variance : float or Parameter, optional
        By default from the data.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees, by index or name; by default all.
    ard : bool, optional
        Whether each input column has its own lengthscale.
    lengthscale_bounds : (float, float) or "fixed", optional
        Bounds of all lengthscales, on the scale of the lengthscales: those of
        :class:`~sparsegp.priors.Parameter` in the spelling of scikit-learn's ``length_scale_bounds``.
    """

    _type = "cosine"
