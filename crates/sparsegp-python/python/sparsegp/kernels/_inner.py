"""Kernels of inner products of inputs."""

from __future__ import annotations

from typing import Optional

from ._kernel import Dims, Kernel, Scalar, Value, dims_of


class Linear(Kernel):
    """Linear functions: Σ_d σ_d² x_d x′_d.

    Parameters
    ----------
    variance : float, sequence of float or Parameter, optional
        One for all input columns or one for each (with ``ard``).
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees; by default all.
    ard : bool, optional
        Whether each input column has its own variance.
    """

    _type = "linear"
    variance: Value
    active_dims: Dims
    ard: Optional[bool]

    def __init__(self, variance: Value = None, *, active_dims: Dims = None, ard: Optional[bool] = None) -> None:
        super().__init__(variance=variance, active_dims=dims_of(active_dims), ard=ard)


class Polynomial(Kernel):
    """Polynomials: (Σ_d σ_d² x_d x′_d + offset)^degree.

    Parameters
    ----------
    degree : int, optional
        By default 3.
    variance : float, sequence of float or Parameter, optional
        One for all input columns or one for each (with ``ard``).
    offset : float or Parameter, optional
        By default from the data.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees; by default all.
    ard : bool, optional
        Whether each input column has its own variance.
    """

    _type = "polynomial"
    degree: Optional[int]
    variance: Value
    offset: Scalar
    active_dims: Dims
    ard: Optional[bool]

    def __init__(
        self,
        degree: Optional[int] = None,
        variance: Value = None,
        offset: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
    ) -> None:
        super().__init__(
            degree=degree, variance=variance, offset=offset, active_dims=dims_of(active_dims), ard=ard
        )


class ArcCosine(Kernel):
    """A layer of infinitely many steps (order 0), ramps (1) or squared ramps (2): σ² π⁻¹ (s s′)^{n/2} J_n(θ), where
    θ is the angle of x and x′ in ⟨x, x′⟩ = Σ_d w_d x_d x′_d + b, and s = ⟨x, x⟩.

    Parameters
    ----------
    order : {0, 1, 2}, optional
        By default 0.
    variance : float or Parameter, optional
        σ², by default from the data.
    weight_variances : float, sequence of float or Parameter, optional
        w, one for all input columns or one for each (with ``ard``).
    bias_variance : float or Parameter, optional
        b.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees; by default all.
    ard : bool, optional
        Whether each input column has its own variance.
    """

    _type = "arccosine"
    order: Optional[int]
    variance: Scalar
    weight_variances: Value
    bias_variance: Scalar
    active_dims: Dims
    ard: Optional[bool]

    def __init__(
        self,
        order: Optional[int] = None,
        variance: Scalar = None,
        weight_variances: Value = None,
        bias_variance: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
    ) -> None:
        super().__init__(
            order=order,
            variance=variance,
            weight_variances=weight_variances,
            bias_variance=bias_variance,
            active_dims=dims_of(active_dims),
            ard=ard,
        )
