"""The latent functions of a fitted estimator: their moments, slopes and draws, and how well inducing points stand for them."""

from __future__ import annotations

import json
from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array, whole
from ..models import Functions
from ._arguments import drawn_seed
from ._draws import PosteriorDraws
from ._learnt import Learnt


class Latent(Learnt):
    """What is asked of the latent functions."""

    def hidden_layers(self, X: ArrayLike) -> list[tuple[Array, Array]]:
        """What the hidden layers of a deep model give.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        list of (mean, std)
            For every hidden layer arrays of shape (n_samples, n_outputs), on the layer's own scale; after the first layer they are
            moments over paths. Empty for a model of one layer.
        """
        found = self.fitted_.hidden_layers(self._inputs(X))
        return [(mean, np.sqrt(variance)) for mean, variance in found]

    def inducing_quality(self, X: ArrayLike, y: Any, fraction: float = 0.01) -> dict[str, Any]:
        """How well the inducing points stand for rows, at the hyperparameters found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the training.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        fraction : float
            The points are enough where they leave at most this fraction of the noise variance (for another
            likelihood than Gaussian noise, of the prior variance) unexplained in the mean row.

        Returns
        -------
        dict
            ``"processes"``, one for each kernel with its points: ``"trace_residual"``, the share of the prior
            variance that is left unexplained, ``"largest"`` of the rows' shares and their histogram
            ``"shares"``, and ``"suggestion"``, how many points would be enough. ``"gap"``, in the units of y: the
            log evidence of the rows lies between ``"lower"`` and ``"upper"``; none unless the noise is Gaussian
            and the same in all rows.

        Raises
        ------
        ValueError
            If the model has no inducing points.
        """
        x, Y = self._known_rows(X, y)
        found: dict[str, Any] = json.loads(self.fitted_.inducing_quality(x, Y, float(fraction)))
        return found

    def latent_mean_and_variance(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the latent functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        mean, variance : arrays of shape (n_samples,), or (n_samples, n_latents) if there are several
            In the units of y where there is one latent function for each target; else on the model's
            scale.
        """
        x = self._inputs(X)
        mean, variance = self.fitted_.predict(x, latent=True)
        if mean.shape[1] == 1:
            return mean[:, 0], variance[:, 0]
        return mean, variance

    def predict_gradients(self, X: ArrayLike) -> tuple[Array, Array]:
        """Slopes of mean and variance of the latent functions in the inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        mean, variance : arrays of shape (n_samples, n_features), or (n_samples, n_features, n_latents) if \
there are several
            Of :meth:`latent_mean_and_variance`, per unit of each feature.
        """
        x = self._inputs(X)
        mean, variance = self.fitted_.predict_gradients(x)
        if len(mean) == 1:
            return mean[0], variance[0]
        return np.moveaxis(mean, 0, -1), np.moveaxis(variance, 0, -1)

    def predict_terms(self, X: ArrayLike, *, centred: bool = False) -> dict[str, tuple[Array, Array]]:
        """Mean and standard deviation of the parts of a sum: of the mean function and of every term of the kernel.

        A kernel ``rbf + linear`` has the terms ``rbf`` and ``linear``; ``additive(order=2)`` has one for each
        feature, ``additive(age)``, and ``additive order 2`` for all interactions of two. Means add up to that of
        :meth:`latent_mean_and_variance`. Variances do not: what the rows cannot put down to one term or another is
        uncertain in each, most of all a constant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        centred : bool
            Whether the mean of every term over the training rows (the inducing points of a sparse model) is made
            part of the mean function, so that terms are known without that constant.

        Returns
        -------
        dict of str to (mean, std)
            Arrays of shape (n_samples,), or (n_samples, n_latents) if there are several latent functions, NaN for
            those that have no such term; in the units of :meth:`latent_mean_and_variance`.

        Raises
        ------
        ValueError
            For deep models, posteriors of draws, and features with standard deviations.
        """
        x = self._inputs(X)
        found = self.fitted_.predict_terms(x, bool(centred))
        latents = 1 + max(latent for _, latent, _, _ in found)
        terms: dict[str, tuple[Array, Array]] = {}
        for name, latent, mean, variance in found:
            if name not in terms:
                terms[name] = (np.full((len(mean), latents), np.nan), np.full((len(mean), latents), np.nan))
            terms[name][0][:, latent], terms[name][1][:, latent] = mean, np.sqrt(variance)
        if latents == 1:
            return {name: (mean[:, 0], std[:, 0]) for name, (mean, std) in terms.items()}
        return terms

    def sample_f(self, n_samples: int = 1, random_state: Any = 0, waves: int = 1024) -> Functions:
        """Draws of the latent functions that can be evaluated anywhere, cheaply: by Matheron's rule with random
        Fourier features.

        Parameters
        ----------
        n_samples : int
            Number of draws.
        random_state : int, RandomState instance or None
        waves : int
            Waves that the prior part of every function is made of.

        Returns
        -------
        sparsegp.models.Functions
            A callable: ``functions(X)`` has the shape (n_samples, len(X), n_latents), in the units of
            :meth:`latent_mean_and_variance`.

        Raises
        ------
        ValueError
            For kernels without a spectral density; stationary ones, their sums and products have one.
        """
        check_is_fitted(self, "fitted_")
        if not np.isscalar(n_samples):
            raise TypeError(
                "sample_f takes no rows: sample_f(3) gives functions, which are evaluated as sample_f(3)(X)"
            )
        seed = drawn_seed(random_state)
        draws = self.fitted_.sample_functions(whole("n_samples", n_samples, 1), whole("waves", waves, 1), seed)
        return Functions(draws)

    def posterior_draws(self, X: Optional[ArrayLike] = None) -> PosteriorDraws:
        """The draws of a model that was fitted by a sampler: ``"nuts"``, ``"hmc"``, ``"ess"``, ``"gibbs"`` and their kin.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Where to give the latent functions of every draw.

        Returns
        -------
        PosteriorDraws
            With ``hyperparameters``, ``latent`` and ``to_arviz()``.

        Raises
        ------
        ValueError
            For a model whose posterior has no draws.
        """
        check_is_fitted(self, "fitted_")
        count = self.fitted_.draw_count()
        if count == 0:
            raise ValueError(
                f"the method {self.method_!r} draws nothing: fit with a sampler, such as method='nuts', or draw functions with sample_f"
            )
        mixing = (self._about["report"] or {}).get("mixing") or {}
        chains = int(mixing.get("chains", 1))
        if chains * int(mixing.get("draws", 0)) != count:
            chains = 1
        shape = (chains, count // chains)
        names, values = self.fitted_.hyperparameter_draws()
        of_names = {name: values[:, i].reshape(shape) for i, name in enumerate(names)} if len(values) else {}
        latent = None
        if X is not None:
            found = self.fitted_.predict_of_draws(self._inputs(X))
            latent = found.reshape(*shape, *found.shape[1:])
        return PosteriorDraws(of_names, latent, shape)
