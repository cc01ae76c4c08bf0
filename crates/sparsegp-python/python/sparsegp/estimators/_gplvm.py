"""The Bayesian GP-LVM as a transformer."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, Callable, Optional, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .. import _core
from .._arrays import Array, whole
from .._hints import hinted
from .._progress import Progress, watching
from ..kernels import Kernel, as_kernel
from ._arguments import seed_of
from ._refused import cells_named, check_columns
from ._saving import in_files

G = TypeVar("G", bound="BayesianGPLVM")


@in_files()
class BayesianGPLVM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Places of rows in a few dimensions, such that smooth functions of the place explain all columns.

    The Bayesian Gaussian process latent variable model (Titsias and Lawrence 2010), by the bound of 2025 or that of 2009.
    Every row gets a place with its uncertainty; dimensions that nothing needs are switched off (``relevance_``). Cells may be
    missing (NaN): see :meth:`impute`.

    Parameters
    ----------
    n_components : int
        Dimensions, at most.
    n_inducing : int
        Inducing points; no more than there are rows.
    kernel : Kernel or str
        ``rbf``, ``linear``, ``constant`` and ``white``, their sums, and products with constants.
    method : {"titsias2025", "titsias2009", "spherical"}
    init : {"pca", "random"}
        Where places start.
    n_restarts : int
        Trainings, each from another start, of which the best is kept: there are many local optima. With several, of two
        components or more, one more begins from the best map of fewer.
    standardise : bool
        Whether each column is divided by its own standard deviation; else all by one number.
    max_iter : int
        Most iterations of a training.
    batch_size : int, optional
        Rows of a minibatch, for tables of tens of thousands of rows: 1000 rows are trained at once, all others start near those
        that they are like, and batches train all of them. None for all rows at once.
    epochs : int
        How often minibatches see every row.
    random_state : int, RandomState instance or None
    verbose : int
        Whether to show progress.
    callback : callable, optional
        Called with a dictionary of every iteration; returning True ends the training with the best state.

    Attributes
    ----------
    embedding_, embedding_std_ : arrays of shape (n_samples, n_components)
        Means and standard deviations of the places of the rows that were learnt.
    relevance_ : array of shape (n_components,)
        Prior variance of the functions' slope along each dimension; the largest is 1, and 0 where all places are 0 ± 1, those
        of the prior. A map without any other dimension is empty, which a warning says.
    noise_variance_ : array of shape (n_features,)
    bound_ : float
        Lower bound on the log evidence, in the units of X; ``bounds_`` has those of all trainings.
    n_iter_ : int or None
        Iterations of all trainings; none of a file that does not say, such as those of the command line.
    converged_ : bool
        ``stopped_`` says how the training ended. Of minibatches, which end after their epochs, False.
    inducing_points_ : array of shape (n_inducing, n_components)
    """

    @hinted
    def __init__(
        self,
        n_components: int = 2,
        *,
        n_inducing: int = 50,
        kernel: Union[Kernel, str] = "rbf",
        method: str = "titsias2025",
        init: str = "pca",
        n_restarts: int = 5,
        standardise: bool = True,
        max_iter: int = 5000,
        batch_size: Optional[int] = None,
        epochs: int = 20,
        random_state: Any = 0,
        verbose: int = 0,
        callback: Optional[Callable[[dict[str, Any]], Optional[bool]]] = None,
    ) -> None:
        self.n_components = n_components
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.method = method
        self.init = init
        self.n_restarts = n_restarts
        self.standardise = standardise
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.epochs = epochs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _checked(self, X: ArrayLike, reset: bool) -> Array:
        least = 2 if reset else 1
        if not reset:
            check_columns(X, list(getattr(self, "feature_names_in_", ())))
        with cells_named(X, missing="keep", columns=None, fitted=not reset):
            x = validate_data(
                self, X, dtype=np.float64, reset=reset, ensure_all_finite="allow-nan", ensure_min_samples=least
            )
        return np.require(x, np.float64, "A")

    def fit(self: G, X: ArrayLike, y: Any = None) -> G:
        """Finds places for rows and functions that explain the columns. An interrupted training (Ctrl-C) keeps the best state
        found, and raises.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where cells are missing.
        y : ignored

        Returns
        -------
        self
        """
        if self.init not in ("pca", "random"):
            raise ValueError(f"init is {self.init!r}; it must be 'pca' or 'random'")
        x = self._checked(X, reset=True)
        kernel = as_kernel(self.kernel)
        options = {
            "dimensions": whole("n_components", self.n_components, 1),
            "inducing": whole("n_inducing", self.n_inducing, 1),
            # the registry's text of a kernel is JSON; the core reads either
            "kernel": self.kernel if isinstance(self.kernel, str) else kernel.to_json(),
            "method": self.method,
            "random_start": self.init == "random",
            "restarts": whole("n_restarts", self.n_restarts, 1),
            "iterations": whole("max_iter", self.max_iter, 1),
            "batch_size": None if self.batch_size is None else whole("batch_size", self.batch_size, 1),
            "epochs": whole("epochs", self.epochs, 1),
            "standardise": bool(self.standardise),
            "seed": seed_of(self.random_state),
        }
        in_batches = self.batch_size is not None and self.batch_size < len(x)
        self.n_iter_ = 0
        ended = False
        with watching(Progress(self.max_iter) if self.verbose else None, self.callback) as seen:

            def counted(event: str) -> bool:
                nonlocal ended
                self.n_iter_ += 1
                ended = seen(event) if seen is not None else False
                return ended

            core, error = _core.fit_gplvm(x, json.dumps(options), callback=counted)
        if core is not None:
            self._keep(core)
        if error is not None:
            raise error
        if in_batches:
            self.stopped_ = "was ended by its callback" if ended else f"ended after {self.epochs} epochs"
        elif not self.converged_:
            text = f"the training {self.stopped_}: raise max_iter ({self.max_iter})"
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        if self._emptiness is not None:
            warnings.warn(self._emptiness, UserWarning, stacklevel=2)
        return self

    def _keep(self, core: _core.Gplvm) -> None:
        self._core = core
        about = json.loads(core.describe())
        mean, variance = core.latent()
        self.embedding_, self.embedding_std_ = mean, np.sqrt(variance)
        self.relevance_ = np.array(about["relevance"])
        self._emptiness: Optional[str] = about["emptiness"]
        self.noise_variance_ = np.array(about["noise"])
        self.bound_ = float(about["bound"])
        self.bounds_ = np.array([-np.inf if b is None else b for b in about["restarts"]])
        self.stopped_ = str(about["status"])
        self.converged_ = bool(about["converged"])
        self.inducing_points_ = core.points()
        self.kernel_ = as_kernel(json.dumps(about["kernel"]))
        self._n_features_out = mean.shape[1]

    def fit_transform(self, X: ArrayLike, y: Any = None) -> Array:
        """Learns, and places the rows by their cells as :meth:`transform` does; ``embedding_`` has the places that were learnt,
        which are the same where the training has converged.

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        places: Array = self.fit(X).transform(X)
        return places

    def transform(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Places rows by their cells, without training.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where cells are missing; a row without any stays at 0 ± 1.
        return_std : bool
            Whether to return standard deviations too.

        Returns
        -------
        mean : array of shape (n_samples, n_components)
        std : array like mean
            With ``return_std``.
        """
        check_is_fitted(self, "_core")
        mean, variance, _, converged = self._core.embed(self._checked(X, reset=False))
        if not all(converged):
            text = f"the places of {converged.count(False)} rows had not settled"
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        return (mean, np.sqrt(variance)) if return_std else mean

    def inverse_transform(self, Z: ArrayLike, return_std: bool = False) -> Any:
        """What the columns hold at places.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
        return_std : bool
            Whether to return the standard deviations of observations too.

        Returns
        -------
        mean : array of shape (n_samples, n_features)
        std : array like mean
            With ``return_std``.
        """
        check_is_fitted(self, "_core")
        z = np.require(check_array(Z, dtype=np.float64), np.float64, "A")
        if z.shape[1] != self._n_features_out:
            raise ValueError(f"Z has {z.shape[1]} columns; there are {self._n_features_out} dimensions")
        mean, variance = self._core.predict(z, np.zeros_like(z))
        return (mean, np.sqrt(variance + self.noise_variance_)) if return_std else mean

    def impute(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Fills in missing cells from those that rows have.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN where cells are missing.
        return_std : bool
            Whether to return the standard deviations of what was missing too.

        Returns
        -------
        X : array of shape (n_samples, n_features)
            Cells that are there as they are.
        std : array like X
            With ``return_std``; 0 for cells that are there.
        """
        check_is_fitted(self, "_core")
        filled, variance = self._core.impute(self._checked(X, reset=False))
        return (filled, np.sqrt(variance)) if return_std else filled

    def score_samples(self, X: ArrayLike) -> Array:
        """Lower bounds on the log densities of rows (of the cells that they have), in the units of X.

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self, "_core")
        return np.array(self._core.embed(self._checked(X, reset=False))[2])

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """The mean of :meth:`score_samples`; larger is better."""
        return float(self.score_samples(X).mean())

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a file that :func:`sparsegp.load` and ``sparsegp embed --with`` read.

        Parameters
        ----------
        path : str or path
        """
        check_is_fitted(self, "_core")
        names = getattr(self, "feature_names_in_", None)
        count = self.n_features_in_
        texts = [f"x{i}" for i in range(count)] if names is None else [str(n) for n in names]
        params = {k: v for k, v in self.get_params(deep=False).items() if k != "callback"}
        params["kernel"] = self.kernel if isinstance(self.kernel, str) else self.kernel.to_json()
        if not isinstance(self.random_state, (int, np.integer, type(None))):
            params["random_state"] = None
        kept = json.dumps(
            {"params": params, "named": names is not None, "n_iter": self.n_iter_},
            default=lambda value: value.item(),
        )
        self._core.named(texts, kept).save(os.fspath(path))

    @classmethod
    def _load(cls: type[G], path: str) -> G:
        core = _core.load_gplvm(path)
        about = json.loads(core.describe())
        kept = json.loads(about["annotations"].get("estimator", "{}"))
        params = {k: v for k, v in kept.get("params", {}).items() if k in cls._get_param_names()}
        if params.get("kernel", "").startswith("{"):
            params["kernel"] = as_kernel(params["kernel"])
        own = cls(**params)
        if not params:
            own.set_params(kernel=as_kernel(json.dumps(about["kernel"])), method=about["method"])
        own._keep(core)
        own.n_iter_ = kept.get("n_iter")
        if not params:
            own.n_components = own._n_features_out
        own.n_features_in_ = len(about["names"])
        if kept.get("named", not params):
            own.feature_names_in_ = np.array(about["names"], dtype=object)
        return own
