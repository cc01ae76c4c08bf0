"""Kernels that measure no distance: a constant, white noise, and labels."""

from __future__ import annotations

from typing import Optional

from ._kernel import Dims, Kernel, Matrix, Scalar, Value, dims_of


class Constant(Kernel):
    """An unknown offset of this variance."""

    _type = "constant"
    variance: Scalar

    def __init__(self, variance: Scalar = None) -> None:
        super().__init__(variance=variance)


class White(Kernel):
    """Independent noise of this variance at every row."""

    _type = "white"
    variance: Scalar

    def __init__(self, variance: Scalar = None) -> None:
        super().__init__(variance=variance)


class Categorical(Kernel):
    """Groups of equal labels: a variance within a group, of which the part ``similarity`` is common to all groups.

    Added, it is a random intercept of every group; times another kernel, a function for every group. Labels may be texts
    of a frame or any numbers; estimators leave that column as it is, and other kernels leave it out unless they are given
    columns. A group that no row had has the prior.

    Parameters
    ----------
    variance : float or Parameter, optional
        By default from the data.
    similarity : float or Parameter, optional
        Between 0 and 1, to start from; without it groups have nothing in common.
    active_dims : int, str or sequence of them, optional
        The column of labels, or several whose values together make a group; needed where there are others.
    """

    _type = "categorical"
    variance: Scalar
    similarity: Scalar
    active_dims: Dims

    def __init__(self, variance: Scalar = None, similarity: Scalar = None, *, active_dims: Dims = None) -> None:
        super().__init__(variance=variance, similarity=similarity, active_dims=dims_of(active_dims))


class Coregion(Kernel):
    """Covariances (W Wᵀ + diag κ)[i, j] of a column of labels 0, …, ``output_dim`` − 1: which output, site or
    category a row belongs to. Estimators leave that column as it is.

    Parameters
    ----------
    output_dim : int, optional
        How many labels there are; needed unless ``W`` or a list ``kappa`` says it.
    rank : int, optional
        Columns of ``W``, by default 1.
    W : sequence of sequence of float, or Parameter, optional
        One row for each label.
    kappa : float, sequence of float or Parameter, optional
        What is each label's own.
    active_dims : int or str, optional
        The column of labels; needed where there are others.
    """

    _type = "coregion"
    output_dim: Optional[int]
    rank: Optional[int]
    W: Matrix
    kappa: Value
    active_dims: Dims

    def __init__(
        self,
        output_dim: Optional[int] = None,
        rank: Optional[int] = None,
        *,
        W: Matrix = None,
        kappa: Value = None,
        active_dims: Dims = None,
    ) -> None:
        super().__init__(output_dim=output_dim, rank=rank, W=W, kappa=kappa, active_dims=dims_of(active_dims))
