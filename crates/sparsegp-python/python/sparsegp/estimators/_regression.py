"""What regressors have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, column_or_1d

from .._arrays import Array, whole
from . import _frames, _missing
from ._arguments import LikelihoodLike, drawn_seed, names, names_of, target_names
from ._base import BaseGP
from ._filled import missing_cells

R = TypeVar("R", bound="Regressor")


def _holds_text(y: Any) -> bool:
    """Returns whether targets are texts that do not read as numbers."""
    if np.asarray(y).dtype.kind not in "OUS":
        return False
    try:
        np.asarray(y, dtype=np.float64)
    except ValueError as error:
        return "could not convert string" in str(error)
    except TypeError:
        pass
    return False


class Regressor(RegressorMixin, BaseGP):
    """What regressors have in common."""

    _extra_name: Optional[str] = None
    _multi_output = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        return tags

    def _own(self, what: str, further: dict[str, Any]) -> Any:
        """The further number of every row among the arguments of a function, which takes no others."""
        unknown = set(further) - {self._extra_name}
        if unknown:
            raise TypeError(f"{what} got unknown arguments {sorted(unknown)}")
        return further.get(self._extra_name or "")

    def _targets(self, y: Array) -> Array:
        """The targets, checked for mistakes."""
        return y

    def _likelihood(self, y: Array) -> LikelihoodLike:
        """The likelihood for these targets."""
        return self._spec()

    def _rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike], first: bool
    ) -> tuple[Array, Array, Optional[Array]]:
        """Checked inputs, targets (two-dimensional) and weights."""
        _frames.refuse_times("y", y)
        if _holds_text(y):
            raise ValueError("y holds texts, and this model learns numbers: labels are for GPClassifier")
        gaps = None
        if self.missing == "keep":
            gaps = missing_cells(np.asarray(y))
            y = np.where(gaps, 0.0, np.asarray(y)).astype(np.float64)
        found: tuple[Array, Array] = self._validated(
            X,
            y,
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
            reset=first,
            ensure_min_samples=2 if first else 1,
        )
        x, targets = found
        if gaps is not None:
            targets = np.where(gaps, np.nan, targets)
        if not self._multi_output or (targets.ndim == 2 and targets.shape[1] == 1):
            targets = column_or_1d(targets, warn=True)
        self._y_ndim = targets.ndim
        weights = self._weights(sample_weight, x)
        return x, self._targets(np.asarray(targets, dtype=np.float64).reshape(len(x), -1)), weights

    def _fit(
        self: R,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: Optional[ArrayLike],
        extra: Optional[ArrayLike],
        *,
        partial: bool = False,
        **noisy: Any,
    ) -> R:
        given = target_names(y)
        x_sd = noisy.pop("x_sd", None)
        X, y, sample_weight, extra, x_sd = _missing.complete(self.missing, X, y, sample_weight, extra, x_sd)
        if noisy:
            noisy = {"x_sd": x_sd, "frame": X}
        first = not (partial and hasattr(self, "fitted_"))
        x, Y, weights = self._rows(X, y, sample_weight, first)
        learn = self._learn_more if partial else self._learn
        learn(
            x,
            Y,
            weights=weights,
            extra=self._extra(extra, len(x), self._extra_name),
            targets=given if len(given) == Y.shape[1] else names(None, "y", Y.shape[1]),
            likelihood=self._likelihood(Y),
            names_of=names_of(weight=sample_weight, extra=extra),
            **noisy,
        )
        return self

    def _predict(
        self,
        X: ArrayLike,
        return_std: bool,
        return_cov: bool,
        return_quantiles: Optional[Sequence[float]],
        extra: Optional[ArrayLike],
        x_sd: Any = None,
        precision: str = "double",
    ) -> Any:
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        if return_cov and precision == "mixed":
            raise ValueError("covariances are in double precision: leave out precision='mixed'")
        only_means = not return_std and return_quantiles is None
        core, x = self._placed(X, x_sd, precision, only_means=only_means)
        further = self._extra(extra, len(x), self._extra_name)
        found: list[Array] = []
        if return_cov:
            mean, cov = core.predict_covariance(x, extra=further)
            found += [self._flat(mean), cov[0] if self._y_ndim == 1 else np.moveaxis(cov, 0, -1)]
        elif not return_std and self._about["standardises"]:
            # means have no products of rows with matrices
            found.append(self._flat(core.predict_mean(x)))
        else:
            mean, variance = core.predict(x, extra=further)
            found.append(self._flat(mean))
            if return_std:
                found.append(self._flat(np.sqrt(variance)))
        if return_quantiles is not None:
            levels = [float(level) for level in np.atleast_1d(return_quantiles)]
            if not levels or not all(0 < level < 1 for level in levels):
                raise ValueError(f"return_quantiles is {levels}; give levels between 0 and 1")
            all_levels = core.quantiles(x, levels, extra=further)
            found.append(all_levels[:, :, 0].T if self._y_ndim == 1 else np.moveaxis(all_levels, 0, 1))
        return found[0] if len(found) == 1 else tuple(found)

    def _flat(self, values: Array) -> Array:
        return values[:, 0] if self._y_ndim == 1 else values

    def _judged(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Inputs and targets (two-dimensional) of rows with which the model is judged."""
        x = self._inputs(X)
        Y = check_array(y, ensure_2d=False, dtype=np.float64, allow_nd=False)
        Y = self._targets(Y.reshape(len(Y), -1))
        if Y.shape != (len(x), len(self._about["targets"])):
            raise ValueError(f"y has shape {Y.shape}; expected ({len(x)}, {len(self._about['targets'])})")
        return x, np.require(Y, np.float64, "A")

    def _known_rows(self, X: ArrayLike, y: Any) -> tuple[Array, Array]:
        return self._judged(X, y)

    def _log_density(self, X: ArrayLike, y: ArrayLike, extra: Optional[ArrayLike], x_sd: Any = None) -> Array:
        _, Y = self._judged(X, y)
        core, x = self._placed(X, x_sd)
        return core.log_density(x, Y, extra=self._extra(extra, len(x), self._extra_name))

    def _sample(
        self,
        X: ArrayLike,
        n_samples: int,
        random_state: Any,
        method: str,
        extra: Optional[ArrayLike],
        x_sd: Any = None,
    ) -> Array:
        core, x = self._placed(X, x_sd)
        seed = drawn_seed(random_state)
        n_samples = whole("n_samples", n_samples, 1)
        further = self._extra(extra, len(x), self._extra_name)
        if method == "joint":
            draws = core.sample_y(x, n_samples, seed, extra=further)
        elif method == "pathwise":
            draws = core.sample_y_by_functions(x, n_samples, 1024, seed, extra=further)
        else:
            raise ValueError(f"method is {method!r}; it must be 'joint' or 'pathwise'")
        return draws[:, :, 0].T if self._y_ndim == 1 else np.moveaxis(draws, 0, -1)

    def log_predictive_density(
        self, X: ArrayLike, y: ArrayLike, *, x_sd: Any = None, **further: Optional[ArrayLike]
    ) -> Array:
        """log p(y | X, training data) of every row, in the units of y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        x_sd, **further
            What :meth:`predict` takes of every row.

        Returns
        -------
        array of shape (n_samples,)
            Summed over the outputs.
        """
        return self._log_density(X, y, self._own("log_predictive_density", further), x_sd)

    def loo(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: Optional[ArrayLike] = None,
        **further: Optional[ArrayLike],
    ) -> tuple[Array, Array, Array]:
        """Leave-one-out: every training row as the others predict it, without refitting (at the
        hyperparameters found). Exact for Gaussian noise; else by the model's own approximation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the training.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
        **further
            What :meth:`fit` takes of every row.

        Returns
        -------
        mean, std, log_density : arrays of shape (n_samples,) or (n_samples, n_outputs)
            Of the row's own observation.

        Raises
        ------
        ValueError
            If the rows are not those of the training, as far as can be checked.
        """
        own = self._own("loo", further)
        x, Y = self._judged(X, y)
        weights = self._weights(sample_weight, x)
        extra = self._extra(own, len(x), self._extra_name)
        mean, variance, density = self.fitted_.leave_one_out(x, Y, weights=weights, extra=extra)
        return self._flat(mean), self._flat(np.sqrt(variance)), self._flat(density)

    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: Any = 0,
        method: str = "joint",
        x_sd: Any = None,
        **further: Optional[ArrayLike],
    ) -> Array:
        """Joint draws of new observations.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
        n_samples : int
            Number of draws.
        random_state : int, RandomState instance or None
        method : {"joint", "pathwise"}
            By a factor of the covariance of the rows, which takes O(n_samples_X³), or by functions of random
            Fourier features (:meth:`sample_f`), for many rows.
        x_sd, **further
            What :meth:`predict` takes of every row.

        Returns
        -------
        array of shape (n_samples_X, n_samples), or (n_samples_X, n_outputs, n_samples)
        """
        return self._sample(X, n_samples, random_state, method, self._own("sample_y", further), x_sd)
