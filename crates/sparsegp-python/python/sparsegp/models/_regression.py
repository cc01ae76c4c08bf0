"""Regression with Gaussian noise: exact, and by collapsed bounds."""

from __future__ import annotations

from typing import Optional, Union

from numpy.typing import ArrayLike

from .._arrays import Array, matrix, one_of
from ..likelihoods import Gaussian, Likelihood
from ..priors import Parameter
from ._kinds import Kept
from ._parameters import KernelLike, MeanLike
from ._training import Data


def _noise(noise_variance: Union[float, Parameter]) -> Likelihood:
    return Gaussian(variance=noise_variance)


class GPR(Kept):
    """Exact Gaussian-process regression: O(N³).

    Parameters
    ----------
    data : (X, Y)
    kernel : Kernel or str
    noise_variance : float or Parameter
        Any positive number, or 0, which is kept: the model then goes through every row.
    mean : str, dict or :class:`sparsegp.means.Custom`
        ``"zero"``, ``"constant"``, ``"linear"``.
    extra, weights : array-like, optional
        Known variance of the noise of every row (beside ``noise_variance``), and how often its term
        counts.
    """

    def __init__(
        self,
        data: Data,
        kernel: KernelLike,
        *,
        noise_variance: Union[float, Parameter] = 1.0,
        mean: MeanLike = "zero",
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> None:
        inputs, outputs, _ = self._keep(data, extra, weights)
        self._build("exact", kernel, _noise(noise_variance), mean, inputs, outputs)

    def log_marginal_likelihood(self) -> float:
        """log p(Y)."""
        return self.elbo()

    def log_marginal_likelihood_and_gradients(self) -> tuple[float, dict[str, Array]]:
        """log p(Y), and its gradients with respect to the constrained values, by path."""
        return self.elbo_and_gradients()


class SGPR(Kept):
    """Sparse regression by a collapsed bound (or by FITC or power EP, which are not bounds): O(NM²).

    Parameters
    ----------
    data : (X, Y)
    kernel : Kernel or str
    inducing_points : array of shape (M, D)
    noise_variance : float or Parameter
    bound : {"titsias2025", "spherical", "titsias2009", "fitc", "pep"}
        The tightest first. The last two are approximations of the log evidence that may be above it:
        ``elbo`` is not a bound then.
    alpha : float, optional
        Power of ``"pep"``, 0 < alpha ≤ 1; by default 0.5. Towards 0 it is ``"titsias2009"``, at 1
        ``"fitc"``.
    mean : str, dict or :class:`sparsegp.means.Custom`
    jitter : float, optional
        Absolute jitter of Kuu; by default 1e-6 of its mean diagonal, more where needed.
    """

    def __init__(
        self,
        data: Data,
        kernel: KernelLike,
        inducing_points: ArrayLike,
        *,
        noise_variance: Union[float, Parameter] = 1.0,
        bound: str = "titsias2025",
        alpha: Optional[float] = None,
        mean: MeanLike = "zero",
        jitter: Optional[float] = None,
    ) -> None:
        one_of("bound", bound, ("titsias2025", "spherical", "titsias2009", "fitc", "pep"))
        if alpha is not None:
            if bound != "pep":
                raise ValueError(f"alpha is the power of 'pep', and bound is {bound!r}")
            bound = f"pep(alpha={float(alpha)!r})"
        inputs, outputs, _ = self._keep(data)
        points = [matrix(inducing_points, "inducing_points")]
        likelihood = _noise(noise_variance)
        self._build(bound, kernel, likelihood, mean, inputs, outputs, points=points, jitter=jitter)

    def predict_f_high_cost(self, Xnew: ArrayLike) -> tuple[Array, Array]:
        """Means and variances of the latent functions, N×L, by the q(f | u) that the bounds ``"titsias2025"``
        and ``"spherical"`` have in mind, which takes the rows: O(N³), for up to 4096 of them. The means are
        those of :meth:`Model.predict_f`, the variances are smaller.

        Raises
        ------
        ValueError
            For more rows, and for FITC and power EP.
        """
        x, y, _ = self._rows(None, None, None)
        return self._model.predict_high_cost(x, y, matrix(Xnew, "Xnew"))

    def upper_bound(self) -> float:
        """An upper bound on the log evidence."""
        x, y, _ = self._rows(None, None, None)
        return self._model.upper_bound(x, y)
