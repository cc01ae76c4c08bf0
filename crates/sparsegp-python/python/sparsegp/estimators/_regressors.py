"""Regressors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Optional, TypeVar, Union, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d

from ..kernels import _whole
from ..likelihoods import as_likelihood
from ._base import Array, BaseGP, LikelihoodLike, document, names, target_names


def names_of(**columns: Any) -> dict[str, str]:
    """The names that columns have of their own."""
    own = {key: target_names(column) for key, column in columns.items()}
    return {key: found[0] for key, found in own.items() if len(found) == 1}


R = TypeVar("R", bound="Regressor")


class Regressor(RegressorMixin, BaseGP):
    """What regressors have in common."""

    _extra_name: Optional[str] = None
    _multi_output = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        return tags

    def _targets(self, y: Array) -> Array:
        """Targets that are no mistake."""
        return y

    def _likelihood(self, y: Array) -> LikelihoodLike:
        """The likelihood for these targets."""
        return self._spec()

    def _rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike], first: bool
    ) -> tuple[Array, Array, Optional[Array]]:
        """Checked inputs, targets (two-dimensional) and weights."""
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
        if not self._multi_output or (targets.ndim == 2 and targets.shape[1] == 1):
            targets = column_or_1d(targets, warn=True)
        self._y_ndim = targets.ndim
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
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
    ) -> Any:
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        core, x = self._placed(X, x_sd)
        further = self._extra(extra, len(x), self._extra_name)
        found: list[Array] = []
        if return_cov:
            mean, cov = core.predict_covariance(x, extra=further)
            found += [self._flat(mean), cov[0] if self._y_ndim == 1 else np.moveaxis(cov, 0, -1)]
        elif not return_std and self._about["standardises"]:
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
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        n_samples = _whole("n_samples", n_samples, 1)
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
        unknown = set(further) - {self._extra_name}
        if unknown:
            raise TypeError(f"log_predictive_density got unknown arguments {sorted(unknown)}")
        return self._log_density(X, y, further.get(self._extra_name or ""), x_sd)

    def loo(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: Optional[ArrayLike] = None,
        **further: Optional[ArrayLike],
    ) -> tuple[Array, Array, Array]:
        """Leave-one-out: every training row as the others predict it, without training anew (at the
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
            If the rows are not those of the training, as far as can be told.
        """
        unknown = set(further) - {self._extra_name}
        if unknown:
            raise TypeError(f"loo got unknown arguments {sorted(unknown)}")
        x, Y = self._judged(X, y)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        extra = self._extra(further.get(self._extra_name or ""), len(x), self._extra_name)
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
        unknown = set(further) - {self._extra_name}
        if unknown:
            raise TypeError(f"sample_y got unknown arguments {sorted(unknown)}")
        return self._sample(X, n_samples, random_state, method, further.get(self._extra_name or ""), x_sd)


_PREDICT = """Predictions for new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std, return_cov : bool
            Whether to return the standard deviation of observations too, or their covariance.
        return_quantiles : sequence of float, optional
            Levels between 0 and 1 of the quantiles of observations to return too.{further}
        x_sd : array-like of shape (n_samples, n_features), or dict, optional
            Standard deviations of the inputs, 0 where they are known exactly; a dict has those of some features, by name or
            place: an array, one number, or the name of a column of X. Predictions are averages over the inputs. Without it
            inputs are taken for exact (but for frames with the columns that ``fit_file`` was told of).

        Returns
        -------
        mean : array of shape (n_samples,) or (n_samples, n_outputs)
        std : array like mean
            With ``return_std``.
        cov : array of shape (n_samples, n_samples) or (n_samples, n_samples, n_outputs)
            With ``return_cov``; the noise is on the diagonal.
        quantiles : array of shape (n_samples, n_levels) or (n_samples, n_levels, n_outputs)
            With ``return_quantiles``.
        """

_FIT = """{what}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Arrays, pandas and Polars frames, Arrow tables. Texts, categories and dates of frames become inputs as those of
            files do (:meth:`fit_file`); truth values are 0 and 1.
        y : array-like of shape (n_samples,){outputs}
        sample_weight : array-like of shape (n_samples,), optional
            How often the term of a row counts.{further}

        Returns
        -------
        self
        """

_WHAT = "Learns from rows. An interrupted training (Ctrl-C) keeps the best state found, and raises."
_PART = """Learns from one more part of the rows: the first call fits, later ones make a pass over the
        new rows (``epochs`` passes), which stand for all rows seen so far. Inducing points and scales
        start from the first part, which should be a fair sample. With ``online`` later calls keep what all rows
        before said, and train nothing."""


def _tell(cls: type[R], outputs: bool, further: str, of_fit: str = "") -> type[R]:
    both = " or (n_samples, n_outputs)" if outputs else ""
    cls.fit.__doc__ = _FIT.format(what=_WHAT, outputs=both, further=further + of_fit)
    cls.partial_fit.__doc__ = _FIT.format(what=_PART, outputs=both, further=further)
    cls.predict.__doc__ = _PREDICT.format(further=further)
    return document(cls)


class _WithNoise(Regressor):
    """Regressors whose rows may bring a known variance of their noise."""

    @property
    def _extra_name(self) -> Optional[str]:  # type: ignore[override]
        spec = self._spec()
        extra = None if spec is None else as_likelihood(spec).extra
        return "noise_variance" if extra == "variance" else None

    def fit(
        self: R,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: Optional[ArrayLike] = None,
        noise_variance: Optional[ArrayLike] = None,
        x_sd: Any = None,
    ) -> R:
        return self._fit(X, y, sample_weight, noise_variance, x_sd=x_sd, frame=X)

    def partial_fit(
        self: R,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: Optional[ArrayLike] = None,
        noise_variance: Optional[ArrayLike] = None,
    ) -> R:
        return self._fit(X, y, sample_weight, noise_variance, partial=True)

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[False] = False,
        return_cov: Literal[False] = False,
        return_quantiles: None = None,
        noise_variance: Optional[ArrayLike] = None,
        x_sd: Any = None,
    ) -> Array: ...

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[True],
        return_cov: Literal[False] = False,
        return_quantiles: None = None,
        noise_variance: Optional[ArrayLike] = None,
        x_sd: Any = None,
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        noise_variance: Optional[ArrayLike] = None,
        x_sd: Any = None,
    ) -> Union[Array, tuple[Array, ...]]: ...

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        noise_variance: Optional[ArrayLike] = None,
        x_sd: Any = None,
    ) -> Any:
        return self._predict(X, return_std, return_cov, return_quantiles, noise_variance, x_sd)


class _Plain(Regressor):
    """Regressors whose rows are inputs and targets."""

    def fit(self: R, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike] = None) -> R:
        return self._fit(X, y, sample_weight, None)

    def partial_fit(self: R, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike] = None) -> R:
        return self._fit(X, y, sample_weight, None, partial=True)

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[False] = False,
        return_cov: Literal[False] = False,
        return_quantiles: None = None,
        x_sd: Any = None,
    ) -> Array: ...

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[True],
        return_cov: Literal[False] = False,
        return_quantiles: None = None,
        x_sd: Any = None,
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        x_sd: Any = None,
    ) -> Union[Array, tuple[Array, ...]]: ...

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        x_sd: Any = None,
    ) -> Any:
        return self._predict(X, return_std, return_cov, return_quantiles, None, x_sd)


class GPRegressor(_WithNoise):
    """Gaussian-process regression: exact for few rows, sparse for many.

    The noise is Gaussian unless ``likelihood`` says otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegp import GPRegressor
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = GPRegressor("matern52").fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[1.5]], return_std=True)
    >>> mean.round(2)
    array([1.])
    """

    _default_likelihood = "gaussian"


class RobustGPRegressor(_Plain):
    """Regression with noise of heavy tails (Student-t): outliers count little.

    ``likelihood="laplace"`` is the other choice.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegp import RobustGPRegressor
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[::10] += 5.0
    >>> bool(abs(RobustGPRegressor().fit(X, y).predict([[1.5]])[0] - np.sin(1.5)) < 0.1)
    True
    """

    _default_likelihood = "student-t"


class HeteroscedasticGPRegressor(_Plain):
    """Regression with noise that is a function of the inputs too.

    There are two latent functions for each output: the mean, and the logarithm of the noise's scale.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegp import HeteroscedasticGPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 300)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.2 * X[:, 0] * rng.standard_normal(300)
    >>> _, std = HeteroscedasticGPRegressor().fit(X, y).predict([[0.5], [5.5]], return_std=True)
    >>> bool(std[1] > 2 * std[0])
    True
    """

    _default_likelihood = "heteroscedastic"


_SCORE = """R² of the predicted means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight, exposure, trials : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """


class GPCountRegressor(Regressor):
    """Regression of counts: Poisson, or ``likelihood="negative-binomial"`` for more spread,
    ``"zero-inflated-poisson"`` for more zeros, ``"binomial"`` for successes out of ``trials``.

    Targets that are no whole numbers (rates) are accepted, with a warning, for Poisson.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegp import GPCountRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = GPCountRegressor().fit(X, rng.poisson(np.exp(np.sin(X[:, 0]))))
    >>> bool(abs(model.predict([[1.5]])[0] - np.exp(np.sin(1.5))) < 0.7)
    True
    """

    _default_likelihood = "poisson"
    _multi_output = False

    @property
    def _extra_name(self) -> str:  # type: ignore[override]
        spec = self._spec()
        return "trials" if as_likelihood(spec)._type == "binomial" else "exposure"  # type: ignore[arg-type]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _targets(self, y: Array) -> Array:
        if (y < 0).any():
            raise ValueError(f"y holds {y.min()}; counts are at least 0")
        return y

    def _likelihood(self, y: Array) -> LikelihoodLike:
        spec = as_likelihood(self._spec())  # type: ignore[arg-type]
        if spec._type == "poisson" and (y % 1 != 0).any():
            warnings.warn(
                "y holds numbers that are no counts (0, 1, 2, …): they are taken as rates; for counts "
                "over times or areas give the counts, and `exposure`",
                UserWarning,
                stacklevel=4,
            )
            return spec.replace(whole=False)
        return spec

    def _further(self, exposure: Optional[ArrayLike], trials: Optional[ArrayLike]) -> Any:
        given = {"exposure": exposure, "trials": trials}
        other = given.pop(self._extra_name)
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"this likelihood takes {self._extra_name}, not {name}")
        return other

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: Optional[ArrayLike] = None,
        exposure: Optional[ArrayLike] = None,
        trials: Optional[ArrayLike] = None,
    ) -> GPCountRegressor:
        return self._fit(X, y, sample_weight, self._further(exposure, trials))

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: Optional[ArrayLike] = None,
        exposure: Optional[ArrayLike] = None,
        trials: Optional[ArrayLike] = None,
    ) -> GPCountRegressor:
        return self._fit(X, y, sample_weight, self._further(exposure, trials), partial=True)

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[False] = False,
        return_cov: Literal[False] = False,
        return_quantiles: None = None,
        exposure: Optional[ArrayLike] = None,
        trials: Optional[ArrayLike] = None,
        x_sd: Any = None,
    ) -> Array: ...

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[True],
        return_cov: Literal[False] = False,
        return_quantiles: None = None,
        exposure: Optional[ArrayLike] = None,
        trials: Optional[ArrayLike] = None,
        x_sd: Any = None,
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        exposure: Optional[ArrayLike] = None,
        trials: Optional[ArrayLike] = None,
        x_sd: Any = None,
    ) -> Union[Array, tuple[Array, ...]]: ...

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        exposure: Optional[ArrayLike] = None,
        trials: Optional[ArrayLike] = None,
        x_sd: Any = None,
    ) -> Any:
        further = self._further(exposure, trials)
        return self._predict(X, return_std, return_cov, return_quantiles, further, x_sd)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: Optional[ArrayLike] = None,
        exposure: Optional[ArrayLike] = None,
        trials: Optional[ArrayLike] = None,
    ) -> float:
        from sklearn.metrics import r2_score

        mean = self.predict(X, exposure=exposure, trials=trials)
        return float(r2_score(y, mean, sample_weight=sample_weight))

    score.__doc__ = _SCORE


_NOISE = """
        noise_variance : array-like of shape (n_samples,), optional
            Known variance of the noise of every row, beside the common one."""
_ERRORS = """
        x_sd : array-like of shape (n_samples, n_features), or dict, optional
            Standard deviations of the errors of the inputs, 0 where they are known exactly; a dict has those of some features,
            by name or place: an array, one number, or the name of a column of X. The fit looks through the errors (errors in
            variables). For Gaussian noise, and kernels of rbf, linear and constant; the methods are ``"titsias2025"`` (by
            default), ``"titsias2009"`` and ``"spherical"``."""
_COUNTS = """
        exposure, trials : array-like of shape (n_samples,), optional
            The time, area or population that a count is of, or (binomial) the number of trials."""

_tell(GPRegressor, True, _NOISE, _ERRORS)
_tell(RobustGPRegressor, True, "")
_tell(HeteroscedasticGPRegressor, True, "")
_tell(GPCountRegressor, False, _COUNTS)
