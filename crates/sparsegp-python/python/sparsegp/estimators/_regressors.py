"""Regressors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Optional, TypeVar, Union, overload

from numpy.typing import ArrayLike

from .._arrays import Array
from .._hints import hinted
from ..likelihoods import as_likelihood
from ._arguments import LikelihoodLike
from ._documentation import document
from ._regression import Regressor
from ._saving import in_files

R = TypeVar("R", bound=Regressor)

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
            inputs are taken for exact (but for frames with the columns that ``fit_file`` was
            given).
        precision : {{"double", "mixed"}}
            What products of rows with inducing points are made in, whatever the model was trained in. ``"mixed"`` takes 24
            bits for them, in up to half the time, with sparse methods of one layer: for many rows at a time and many
            inducing points. Some hundred of the rows are predicted in both precisions before; where a standard deviation
            would change by more than 1 %, all are in double precision and a warning says so. Means and covariances are in
            double precision always.

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
        start from the first part, which should be a fair sample; parts that lie far from it are warned of. With
        ``online``, and after a ``fit`` that saw all rows at once, calls keep what all rows before said, and train
        nothing (``update``)."""


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
        precision: str = "double",
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
        precision: str = "double",
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
        precision: str = "double",
    ) -> Union[Array, tuple[Array, ...]]: ...

    @hinted
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        noise_variance: Optional[ArrayLike] = None,
        x_sd: Any = None,
        precision: str = "double",
    ) -> Any:
        return self._predict(X, return_std, return_cov, return_quantiles, noise_variance, x_sd, precision)


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
        precision: str = "double",
    ) -> Array: ...

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[True],
        return_cov: Literal[False] = False,
        return_quantiles: None = None,
        x_sd: Any = None,
        precision: str = "double",
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        x_sd: Any = None,
        precision: str = "double",
    ) -> Union[Array, tuple[Array, ...]]: ...

    @hinted
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        x_sd: Any = None,
        precision: str = "double",
    ) -> Any:
        return self._predict(X, return_std, return_cov, return_quantiles, None, x_sd, precision)


@in_files()
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


@in_files("student-t", "laplace")
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


@in_files("heteroscedastic", "heteroscedastic-student-t")
class HeteroscedasticGPRegressor(_Plain):
    """Regression with noise that is a function of the inputs too.

    There are two latent functions for each output: the mean, and the logarithm of the noise's scale.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegp import HeteroscedasticGPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 150)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.2 * X[:, 0] * rng.standard_normal(150)
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


@in_files("poisson", "negative-binomial", "zero-inflated-poisson", "binomial")
class GPCountRegressor(Regressor):
    """Regression of counts: Poisson, or ``likelihood="negative-binomial"`` for more spread,
    ``"zero-inflated-poisson"`` for more zeros, ``"binomial"`` for successes out of ``trials``.

    Targets that are not whole numbers (rates) are accepted, with a warning, for Poisson.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegp import GPCountRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0, 6, 100)[:, None]
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
                "y holds numbers that are not counts (0, 1, 2, …): they are taken as rates; for counts "
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
        precision: str = "double",
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
        precision: str = "double",
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
        precision: str = "double",
    ) -> Union[Array, tuple[Array, ...]]: ...

    @hinted
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        exposure: Optional[ArrayLike] = None,
        trials: Optional[ArrayLike] = None,
        x_sd: Any = None,
        precision: str = "double",
    ) -> Any:
        further = self._further(exposure, trials)
        return self._predict(X, return_std, return_cov, return_quantiles, further, x_sd, precision)

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
