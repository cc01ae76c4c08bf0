"""What all models have in common: predictions of what has been trained."""

from __future__ import annotations

import json
from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, matrix, vector, whole
from ..likelihoods import as_likelihood
from ._training import Data, Trained, targets_of


class Functions:
    """Draws of the latent functions of a posterior: call them with inputs N×D for their values, draws×N×L."""

    def __init__(self, functions: _core.Functions) -> None:
        self._functions = functions

    def __len__(self) -> int:
        return len(self._functions)

    def __call__(self, Xnew: ArrayLike) -> Array:
        """Values at ``Xnew``, the same whenever they are asked for."""
        return self._functions.evaluate(matrix(Xnew, "Xnew"))


class Model(Trained):
    """What all models have in common. Make one of the others."""

    def _condition(self) -> None:
        if not self._model.is_conditioned:
            if self._data is None:
                self._model.condition()
            else:
                self._model.condition(*self._data, **self._further)

    def predict_f(self, Xnew: ArrayLike, full_cov: bool = False) -> tuple[Array, Array]:
        """Means N×L and variances N×L of the latent functions, or with ``full_cov`` covariances L×N×N. What
        prediction needs is computed once and kept until a parameter changes."""
        self._condition()
        x = matrix(Xnew, "Xnew")
        return self._model.predict_f_full(x) if full_cov else self._model.predict_f(x)

    def predict_f_gradients(self, Xnew: ArrayLike) -> tuple[Array, Array]:
        """Slopes of the means and variances of :meth:`predict_f` in the inputs, L×N×D each."""
        self._condition()
        return self._model.predict_gradients(matrix(Xnew, "Xnew"))

    def loo(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> dict[str, Array]:
        """Leave-one-out: every row as the others predict it, at the present parameters, without conditioning
        again. For Gaussian noise that is exact; else the row's own site is taken from q, which must
        be at its optimum.

        Parameters
        ----------
        data : (X, Y), optional
            The rows that the model was trained on, for models that do not keep their data.
        extra, weights : array-like, optional
            The further number of every row, and how often its term counts.

        Returns
        -------
        dict
            ``"mean"``, ``"variance"`` and ``"log_density"`` of the observations, N×P, and ``"f_mean"`` and
            ``"f_variance"`` of the latent functions, N×L.

        Raises
        ------
        ValueError
            For models whose posterior is not made of sites of rows, and for rows that another posterior must have seen. Not
            all other rows can be distinguished from those of training: give the latter.
        """
        self._condition()
        x, y, further = self._rows(data, extra, weights)
        further.pop("population")
        return self._model.leave_one_out(x, y, **further)

    def inducing_quality(
        self,
        data: Optional[Data] = None,
        *,
        fraction: float = 0.01,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> dict[str, Any]:
        """How well the inducing points stand for the rows, at the present hyperparameters.

        Parameters
        ----------
        data : (X, Y), optional
            Rows, for models that do not keep their data.
        fraction : float
            The points are enough where they leave at most this fraction of the noise variance (for another
            likelihood than Gaussian noise, of the prior variance) unexplained in the mean row.
        extra, weights : array-like, optional
            The further number of every row, and how often its term counts.

        Returns
        -------
        dict
            ``"processes"``, one for each kernel with its points: ``"trace_residual"``, the share of the prior
            variance that is left unexplained, ``"largest"`` of the rows' shares and their histogram
            ``"shares"``, and ``"suggestion"``, how many points would be enough. ``"gap"``: the log evidence lies
            between ``"lower"`` and ``"upper"``; none unless the noise is Gaussian and the same in all rows.
        """
        x, y, further = self._rows(data, extra, weights)
        further.pop("population")
        found: dict[str, Any] = json.loads(self._model.inducing_quality(x, y, float(fraction), **further))
        return found

    def predict_y(self, Xnew: ArrayLike, extra: Optional[ArrayLike] = None) -> tuple[Array, Array]:
        """Means and variances of observations, N×P each. ``extra`` is the further number of every row."""
        self._condition()
        return self._model.predict_y(matrix(Xnew, "Xnew"), extra=vector(extra, "extra"))

    def predict_proba(self, Xnew: ArrayLike) -> Array:
        """Probabilities of the classes, N×C, where targets are classes; N×P×C for several columns of them."""
        self._condition()
        x, known = matrix(Xnew, "Xnew"), json.loads(self._model.describe())
        if known["outputs"] == 1:
            return self._model.predict_proba(x)
        f, own = self._model.predict_f(x), int(known["latents"])
        likelihood = as_likelihood(json.dumps(known["specification"]))
        columns = [slice(first, first + own) for first in range(0, f[0].shape[1], own)]
        return np.stack([likelihood.predict_proba(*(a[:, c] for a in f)) for c in columns], axis=1)

    def predict_log_density(self, data: Data, extra: Optional[ArrayLike] = None) -> Array:
        """log p(y) of every row of ``(X, Y)``, summed over the columns of Y."""
        self._condition()
        return self._model.predict_log_density(
            matrix(data[0]), targets_of(data[1]), extra=vector(extra, "extra")
        )

    def predict_f_samples(self, Xnew: ArrayLike, num_samples: int = 1, seed: int = 0) -> Array:
        """Joint draws of the latent functions, num_samples×N×L."""
        self._condition()
        num_samples, seed = whole("num_samples", num_samples, 1), whole("seed", seed, 0)
        return self._model.predict_f_samples(matrix(Xnew, "Xnew"), num_samples, seed)

    def sample_functions(self, num_samples: int = 1, seed: int = 0, waves: int = 1024) -> Functions:
        """Draws of the latent functions that can be evaluated anywhere, in O(waves + M) for every value, where
        :meth:`predict_f_samples` takes O(N³) for N of them: by Matheron's rule with random Fourier features.

        Returns
        -------
        Functions
            A callable: ``functions(Xnew)`` is num_samples×N×L, the same values for the same inputs.

        Raises
        ------
        ValueError
            For kernels without a spectral density; stationary ones, their sums and products have one.
        """
        self._condition()
        num_samples, seed = whole("num_samples", num_samples, 1), whole("seed", seed, 0)
        return Functions(self._model.sample_functions(num_samples, whole("waves", waves, 1), seed))

    @property
    def q_u(self) -> Optional[tuple[Array, Array]]:
        """Mean M×L and covariances L×M×M of u = f(Z) − mean(Z); None for exact inference."""
        self._condition()
        return self._model.q_u()

    def _q(self, path: str) -> Optional[Array]:
        """A parameter of q, if it is one."""
        paths = {row["path"] for row in self._table()}
        if not any(known.startswith("inducing.points") for known in paths):
            raise AttributeError(
                f"{type(self).__name__} has no inducing points, and so no q(u): "
                "predict_f(X, full_cov=True) has the posterior of f at the rows of training"
            )
        return self._model.get(path) if path in paths else None

    @property
    def q_mu(self) -> Array:
        """Mean of q, M×L: as it is stored (``q.mu``) where it is a parameter, else of the whitened u. Models without inducing points
        have none."""
        stored = self._q("q.mu")
        if stored is None:
            self._condition()
            stored = self._model.q()[0]
        return stored

    @property
    def q_sqrt(self) -> Array:
        """Lower roots of q's covariances, L×M×M (standard deviations M×L for ``q_diag``), as
        :attr:`q_mu`."""
        stored = self._q("q.sqrt")
        if stored is None:
            self._condition()
            mean, roots = self._model.q()
            # the columns of a collapsed bound have one covariance
            stored = np.broadcast_to(roots, (mean.shape[1], *roots.shape[1:])).copy()
        return stored
