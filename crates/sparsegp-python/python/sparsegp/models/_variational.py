"""Variational inference for any likelihood: with inducing points, and with sites of all rows."""

from __future__ import annotations

from typing import Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from .._arrays import Array, matrix, one_of, whole
from ._kinds import Kept, WithQ
from ._parameters import KernelLike, LikelihoodLike, MeanLike
from ._training import Data


def _sets(points: Union[ArrayLike, list[Array]]) -> list[Array]:
    if isinstance(points, list) and points and isinstance(points[0], np.ndarray) and points[0].ndim == 2:
        return [matrix(z, "inducing_points") for z in points]
    return [matrix(points, "inducing_points")]  # type: ignore[arg-type]


class SVGP(WithQ):
    """Sparse variational inference with a trained q(u): any likelihood, minibatches.

    Parameters
    ----------
    kernel : Kernel, str, or a list of one for each latent function
    likelihood : Likelihood or str
    inducing_points : array of shape (M, D), or a list of one for each latent function
    num_data : int, optional
        Number N of rows that a minibatch stands for; by default those given.
    num_outputs : int
        Columns of Y.
    bound : {"svgp", "svgp2025", "svgp-spherical"}
    whiten : bool
        Whether q is of v with u = Lv.
    q_diag : bool
        Whether q has standard deviations only.
    q_mu, q_sqrt : arrays, optional
        M×L and L×M×M (M×L for ``q_diag``): where q starts; by default the prior (if whitened).
    mean : str, dict or :class:`sparsegp.means.Custom`
    jitter : float, optional
    """

    def __init__(
        self,
        kernel: KernelLike,
        likelihood: LikelihoodLike,
        inducing_points: Union[ArrayLike, list[Array]],
        *,
        num_data: Optional[int] = None,
        num_outputs: int = 1,
        bound: str = "svgp",
        whiten: bool = True,
        q_diag: bool = False,
        q_mu: Optional[ArrayLike] = None,
        q_sqrt: Optional[ArrayLike] = None,
        mean: MeanLike = "zero",
        jitter: Optional[float] = None,
    ) -> None:
        one_of("bound", bound, ("svgp", "svgp2025", "svgp-spherical"))
        points = _sets(inducing_points)
        self._num_data = None if num_data is None else whole("num_data", num_data, 1)
        self._build(
            bound,
            kernel,
            likelihood,
            mean,
            points[0].shape[1],
            num_outputs,
            points=points,
            whiten=whiten,
            q_diag=q_diag,
            jitter=jitter,
            q_mu=q_mu,
            q_sqrt=q_sqrt,
        )


class TSVGP(WithQ):
    """Sparse variational inference with q kept as the prior times sites (dual parameters).

    Parameters
    ----------
    kernel, likelihood, inducing_points, num_data, num_outputs, mean, jitter
        As for :class:`SVGP`.
    tying : {"natural", "kernel", "whitened"}
        Which site statistics stay fixed while hyperparameters change.
    """

    def __init__(
        self,
        kernel: KernelLike,
        likelihood: LikelihoodLike,
        inducing_points: Union[ArrayLike, list[Array]],
        *,
        num_data: Optional[int] = None,
        num_outputs: int = 1,
        tying: str = "natural",
        mean: MeanLike = "zero",
        jitter: Optional[float] = None,
    ) -> None:
        if tying == "untied":
            raise ValueError(
                'tying="untied" keeps two numbers for every row, which `TSVGP` does not: use "natural"; on the command '
                "line `sparsegp fit --method tsvgp --tying untied --full-batch` has it, and `TVGP` is the model with "
                "sites of all rows and without inducing points"
            )
        points = _sets(inducing_points)
        self._num_data = None if num_data is None else whole("num_data", num_data, 1)
        dim = points[0].shape[1]
        self._build(
            "tsvgp",
            kernel,
            likelihood,
            mean,
            dim,
            num_outputs,
            points=points,
            tying=tying,
            jitter=jitter,
        )


class TVGP(Kept, WithQ):
    """Variational inference for any likelihood with a site for every row, without inducing points:
    O(N³).

    Parameters
    ----------
    data : (X, Y)
    kernel : Kernel, str, or a list of one for each latent function
    likelihood : Likelihood or str
    mean : str, dict or :class:`sparsegp.means.Custom`
    extra, weights : array-like, optional
        The further number of every row, and how often its term counts.
    jitter : float, optional
    """

    def __init__(
        self,
        data: Data,
        kernel: KernelLike,
        likelihood: LikelihoodLike,
        *,
        mean: MeanLike = "zero",
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
        jitter: Optional[float] = None,
    ) -> None:
        inputs, outputs, rows = self._keep(data, extra, weights)
        self._build("tvgp", kernel, likelihood, mean, inputs, outputs, rows, jitter=jitter)
