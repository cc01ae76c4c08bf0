"""The estimators for rows on many machines, by Dask: frames, arrays and delayed parts are learnt from where they are.

::

    from dask.distributed import Client
    import dask.dataframe as dd
    from sparsegp.dask import GPRegressor

    client = Client("tcp://scheduler:8786")
    rows = dd.read_parquet("s3://bucket/rows/")
    model = GPRegressor("matern52").fit(rows[["a", "b"]], rows["y"])
    mean = model.predict(rows[["a", "b"]])  # lazy
    model.to_local().save("model.safetensors")

The arguments of the constructors are those of the estimators in :mod:`sparsegp`, and so is what they learn. The same partition of
the rows gives the same bits on any number of workers, also when one of them dies. ``checkpoint`` is a file of the process that
calls ``fit``. Needs ``pip install 'sparsegp[dask]'``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Optional, TypeVar

import numpy as np

try:
    import dask  # noqa: F401
    from distributed import Client, get_client
except ImportError as error:  # pragma: no cover
    raise ImportError(
        f"sparsegp.dask needs Dask ({error}): pip install 'sparsegp[dask]', or 'dask[dataframe]' and distributed"
    ) from error

from .. import estimators, shards
from .._progress import watching
from ..estimators._base import BaseGP
from ..estimators._regression import Regressor
from . import _lazy
from ._partitions import Partitions, WorkersProgress

__all__ = [
    "GPClassifier",
    "GPCountRegressor",
    "GPRegressor",
    "HeteroscedasticGPRegressor",
    "RobustGPRegressor",
]

E = TypeVar("E", bound="_OnDask")

_ELSEWHERE = "is for rows on one machine: `to_local()` has the estimator that can"


def _in_memory(x_sd: Any, precision: str = "double") -> None:
    if x_sd is not None:
        raise ValueError("x_sd is for rows in memory: `to_local()` gives an estimator that takes it")
    if precision != "double":
        raise ValueError("precision is for rows in memory: `to_local()` gives an estimator that takes it")


class _OnDask(BaseGP):
    """What the estimators on Dask have in common."""

    #: the client whose workers do the work; by default the one that is current
    client: Optional[Client] = None
    _local: type[BaseGP]

    def _fit_on(self: E, X: Any, y: Any, sample_weight: Any, extra: Any) -> E:
        shards.refuse(self)
        try:
            client = get_client() if self.client is None else self.client
        except ValueError as error:
            raise ValueError(
                "there is no Dask client: make one, such as `Client(LocalCluster())` of dask.distributed, or set `client`"
            ) from error
        partitions = Partitions(client, _lazy.parts(X, y, sample_weight, extra))
        progress = (
            WorkersProgress(self.max_iter, self.batch_size or 0, partitions, self.time_limit)
            if self.verbose
            else None
        )
        with watching(progress, self.callback) as seen:
            shards.fit(self, self._local, partitions, seen)
        return self

    def to_local(self) -> Any:
        """Gives the estimator of :mod:`sparsegp` that has learnt the same, for rows in memory and for files."""
        own = self._local(**self.get_params(deep=False))
        learnt = {k: v for k, v in vars(self).items() if k not in own.get_params(deep=False) and k != "client"}
        own.__dict__.update(learnt)
        return own

    def _lent(self) -> Any:
        """The estimator that workers are sent."""
        own = self.to_local()
        own.callback = None
        return own

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("client", None)
        return state

    def partial_fit(self, *_: Any, **__: Any) -> Any:
        """Is not for rows in partitions."""
        raise NotImplementedError(f"partial_fit {_ELSEWHERE}")

    def fit_file(self, *_: Any, **__: Any) -> Any:
        """Is not for rows in partitions: read the files with ``dask.dataframe``."""
        raise NotImplementedError("fit_file is for one machine: read the files by dask.dataframe, and call fit")

    def update(self, *_: Any, **__: Any) -> Any:
        """Is not for rows in partitions."""
        raise NotImplementedError(f"update {_ELSEWHERE}")

    def loo(self, *_: Any, **__: Any) -> Any:
        """Is not for rows in partitions."""
        raise NotImplementedError(f"loo {_ELSEWHERE}")


class _Regression(_OnDask, Regressor):
    """What regressors on Dask have in common."""

    def _predict_on(
        self,
        X: Any,
        return_std: bool,
        return_cov: bool,
        return_quantiles: Optional[Sequence[float]],
        extra: Any,
        x_sd: Any = None,
        precision: str = "double",
    ) -> Any:
        _in_memory(x_sd, precision)
        if return_cov:
            raise ValueError("return_cov is for rows in memory: `to_local().predict`")
        targets, levels = self._about["targets"], [float(v) for v in return_quantiles or ()]
        if levels and len(targets) > 1:
            raise ValueError("quantiles of several targets are for rows in memory: `to_local().predict`")
        groups = [[f"mean of {t}" for t in targets]]
        groups += [[f"std of {t}" for t in targets]] if return_std else []
        groups += [[f"quantile {level:g}" for level in levels]] if levels else []
        every = [name for group in groups for name in group]
        work = functools.partial(_lazy.moments, return_std, levels)
        found = _lazy.by_partition(work, self._lent(), (X, extra), every)
        if isinstance(found, list):
            return found
        flat = self._y_ndim == 1
        parts, first = [], 0
        for group in groups:
            one = flat and not group[0].startswith("quantile")
            if _lazy.is_frame(found):
                parts.append(found[group[0]] if one else found[group])
            else:
                columns = found[:, first : first + len(group)]
                parts.append(columns[:, 0] if one else columns)
            first += len(group)
        return parts[0] if len(parts) == 1 else tuple(parts)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        if not _lazy.is_lazy(X):
            return float(self.to_local().score(X, y, sample_weight))
        return self._score_on(X, y, sample_weight, None)

    def _score_on(self, X: Any, y: Any, sample_weight: Any, extra: Any) -> float:
        centre = np.array(self._about["scaler"]["y_mean"])
        sums = _lazy.sums(functools.partial(_lazy.squares, centre), self._lent(), X, y, sample_weight, extra)
        total, first, second, error = sums.reshape(4, -1)
        return float(np.mean(1.0 - error / (second - first**2 / total)))

    def log_predictive_density(self, X: Any, y: Any, **further: Any) -> Any:
        """Gives log p(y | X, training data) of every row, lazily for a Dask collection."""
        if not _lazy.is_lazy(X):
            return super().log_predictive_density(X, y, **further)
        columns = (X, y, self._own("log_predictive_density", further))
        return _lazy.first(_lazy.by_partition(_lazy.densities, self._lent(), columns, ["log density"]))


_FIT = """Learns from the partitions of Dask frames, Dask arrays or lists of delayed parts, where they are.

        Parameters
        ----------
        X, y{further}
            Collections with the same partitions. Texts, categories and dates of frames become inputs as those of one frame do; a
            category or label that only one partition has is known to all.

        Returns
        -------
        self
        """

_PREDICT = """Predicts for the partitions of a collection, lazily: what is returned is computed where the rows are.

        Parameters
        ----------
        X : Dask frame, Dask array, or list of delayed parts
            Rows in memory are predicted at once, as :mod:`sparsegp` does.
        return_std : bool
            Whether to return standard deviations of observations too.
        return_quantiles : sequence of float, optional
            Levels of quantiles to return too.{further}

        Returns
        -------
        mean, std, quantiles
            Series or columns of a frame, or arrays, as X is.
        """

_SCORE = """Computes R² of the predicted means, partition by partition."""


def _documented(cls: type[E], further: str = "", predicts: bool = True) -> type[E]:
    cls.fit.__doc__ = _FIT.format(further=further)  # type: ignore[attr-defined]
    if predicts:
        cls.predict.__doc__ = _PREDICT.format(further="\n        " + further.strip(", ") if further else "")  # type: ignore[attr-defined]
        cls.score.__doc__ = _SCORE  # type: ignore[attr-defined]
    lines = (cls._local.__doc__ or "").split("\n    Parameters\n")
    cls.__doc__ = (cls.__doc__ or "") + "\n    Parameters\n" + lines[-1]
    return cls


class GPRegressor(_Regression, estimators.GPRegressor):
    """Gaussian-process regression of rows on many machines."""

    _local = estimators.GPRegressor

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, noise_variance: Any = None, x_sd: Any = None
    ) -> GPRegressor:
        _in_memory(x_sd)
        return self._fit_on(X, y, sample_weight, noise_variance)

    def predict(  # type: ignore[override]
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        noise_variance: Any = None,
        x_sd: Any = None,
        precision: str = "double",
    ) -> Any:
        further = (noise_variance, x_sd, precision)
        if not _lazy.is_lazy(X):
            return self.to_local().predict(X, return_std, return_cov, return_quantiles, *further)
        return self._predict_on(X, return_std, return_cov, return_quantiles, *further)


class _PlainOnDask(_Regression):
    def fit(self: E, X: Any, y: Any, sample_weight: Any = None) -> E:
        return self._fit_on(X, y, sample_weight, None)

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        x_sd: Any = None,
        precision: str = "double",
    ) -> Any:
        if not _lazy.is_lazy(X):
            return self.to_local().predict(X, return_std, return_cov, return_quantiles, x_sd, precision)
        return self._predict_on(X, return_std, return_cov, return_quantiles, None, x_sd, precision)


class RobustGPRegressor(_PlainOnDask, estimators.RobustGPRegressor):  # type: ignore[misc]
    """Regression with noise of heavy tails, of rows on many machines."""

    _local = estimators.RobustGPRegressor


class HeteroscedasticGPRegressor(_PlainOnDask, estimators.HeteroscedasticGPRegressor):  # type: ignore[misc]
    """Regression with noise that is a function of the inputs, of rows on many machines."""

    _local = estimators.HeteroscedasticGPRegressor


class GPCountRegressor(_Regression, estimators.GPCountRegressor):
    """Regression of counts, of rows on many machines."""

    _local = estimators.GPCountRegressor

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, trials: Any = None
    ) -> GPCountRegressor:
        return self._fit_on(X, y, sample_weight, self._further(exposure, trials))

    def predict(  # type: ignore[override]
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        return_quantiles: Optional[Sequence[float]] = None,
        exposure: Any = None,
        trials: Any = None,
        x_sd: Any = None,
        precision: str = "double",
    ) -> Any:
        how = (x_sd, precision)
        if not _lazy.is_lazy(X):
            own = self.to_local()
            return own.predict(X, return_std, return_cov, return_quantiles, exposure, trials, *how)
        further = self._further(exposure, trials)
        return self._predict_on(X, return_std, return_cov, return_quantiles, further, *how)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, trials: Any = None
    ) -> float:
        if not _lazy.is_lazy(X):
            return float(self.to_local().score(X, y, sample_weight, exposure, trials))
        return self._score_on(X, y, sample_weight, self._further(exposure, trials))


class GPClassifier(_OnDask, estimators.GPClassifier):
    """Classification of rows on many machines."""

    _local = estimators.GPClassifier

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GPClassifier:
        return self._fit_on(X, y, sample_weight, None)

    def predict_proba(self, X: Any, x_sd: Any = None, precision: str = "double") -> Any:
        """Gives probabilities of the classes, lazily for a Dask collection: columns in the order of ``classes_``."""
        if not _lazy.is_lazy(X):
            return super().predict_proba(X, x_sd, precision)
        _in_memory(x_sd, precision)
        return _lazy.by_partition(_lazy.probabilities, self._lent(), (X,), [str(c) for c in self.classes_])

    def predict(self, X: Any, x_sd: Any = None, precision: str = "double") -> Any:
        """Gives the most probable class of every row, lazily for a Dask collection."""
        if not _lazy.is_lazy(X):
            return self.to_local().predict(X, x_sd, precision)
        _in_memory(x_sd, precision)
        found = _lazy.by_partition(_lazy.labels, self._lent(), (X,), ["class"], self.classes_.dtype)
        return _lazy.first(found)

    def log_predictive_density(self, X: Any, y: Any) -> Any:
        """Gives the logarithm of the probability of the class of every row, lazily for a Dask collection."""
        if not _lazy.is_lazy(X):
            return super().log_predictive_density(X, y)
        return _lazy.first(_lazy.by_partition(_lazy.densities, self._lent(), (X, y), ["log density"]))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Computes the part of the rows whose class is predicted, partition by partition."""
        if not _lazy.is_lazy(X):
            return float(self.to_local().score(X, y, sample_weight))
        total, right = _lazy.sums(_lazy.right, self._lent(), X, y, sample_weight)
        return float(right / total)


_documented(GPRegressor, ", sample_weight, noise_variance")
_documented(RobustGPRegressor, ", sample_weight")
_documented(HeteroscedasticGPRegressor, ", sample_weight")
_documented(GPCountRegressor, ", sample_weight, exposure, trials")
_documented(GPClassifier, ", sample_weight", predicts=False)
