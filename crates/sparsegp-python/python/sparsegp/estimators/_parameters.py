"""The constructor of all estimators, and what it asks the core for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Callable, Optional, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from .._arrays import whole
from .._hints import hint, hinted
from .._progress import Progress
from .._registry import entries as entries_of
from ..kernels import Kernel, as_kernel
from ..likelihoods import as_likelihood
from ..means import Mean, mean_text
from ._arguments import KernelLike, LikelihoodLike, Path, is_in_batches, kernel_text, seed_of

P = TypeVar("P", bound="Parameters")


def seasons(given: Union[str, float, Sequence[Union[str, float]], None]) -> list[str]:
    """Lengths as they are written, of one or several that may be numbers."""
    several = [] if given is None else [given] if isinstance(given, (str, int, float)) else given
    return [own if isinstance(own, str) else repr(float(own)) for own in several]


class Parameters(BaseEstimator):
    """The parameters of the constructor, and the options of a training that they make."""

    _default_likelihood: LikelihoodLike = None
    # whether targets are labels
    _labels = False

    @hinted
    def __init__(
        self,
        kernel: KernelLike = "auto",
        *,
        kernel_units: str = "model",
        method: str = "auto",
        likelihood: LikelihoodLike = None,
        mean: Union[None, str, Mean] = None,
        season: Union[str, float, Sequence[Union[str, float]], None] = None,
        holidays: Any = None,
        missing: str = "refuse",
        unknown: str = "refuse",
        places: Optional[Sequence[tuple[Any, Any]]] = None,
        log_inputs: Union[str, Sequence[str]] = "auto",
        target_transform: str = "none",
        n_inducing: Optional[int] = None,
        inducing: Union[str, ArrayLike] = "kmeans",
        fixed: Sequence[str] = (),
        initial: Optional[dict[str, Any]] = None,
        standardise: bool = True,
        n_restarts_optimizer: int = 0,
        optimiser: str = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-4,
        full_batch: bool = False,
        batch_size: Optional[int] = None,
        epochs: Optional[int] = None,
        learning_rate: Optional[float] = None,
        natural_rate: Optional[float] = None,
        classes_per_step: Optional[int] = None,
        sampling: Optional[dict[str, Any]] = None,
        early_stopping: float = 0.0,
        patience: int = 10,
        online: Union[bool, dict[str, Any]] = False,
        pilot: int = 1000,
        lengthscale_prior: bool = True,
        hyperparameters: str = "auto",
        precision: str = "double",
        relative_weights: bool = False,
        jitter: Optional[float] = None,
        checkpoint: Optional[Path] = None,
        time_limit: Optional[float] = None,
        random_state: Any = 0,
        verbose: int = 0,
        callback: Optional[Callable[[dict[str, Any]], Optional[bool]]] = None,
    ) -> None:
        self.kernel = kernel
        self.kernel_units = kernel_units
        self.method = method
        self.likelihood = likelihood
        self.mean = mean
        self.season = season
        self.holidays = holidays
        self.missing = missing
        self.unknown = unknown
        self.places = places
        self.log_inputs = log_inputs
        self.target_transform = target_transform
        self.n_inducing = n_inducing
        self.inducing = inducing
        self.fixed = fixed
        self.initial = initial
        self.standardise = standardise
        self.n_restarts_optimizer = n_restarts_optimizer
        self.optimiser = optimiser
        self.max_iter = max_iter
        self.tol = tol
        self.full_batch = full_batch
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.natural_rate = natural_rate
        self.classes_per_step = classes_per_step
        self.sampling = sampling
        self.early_stopping = early_stopping
        self.patience = patience
        self.online = online
        self.pilot = pilot
        self.lengthscale_prior = lengthscale_prior
        self.hyperparameters = hyperparameters
        self.precision = precision
        self.relative_weights = relative_weights
        self.jitter = jitter
        self.checkpoint = checkpoint
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def set_params(self: P, **params: Any) -> P:
        """Sets arguments of the constructor; ``kernel__lengthscales`` and the like make another kernel."""
        nested = {k[len("kernel__") :]: params.pop(k) for k in list(params) if k.startswith("kernel__")}
        known = self._get_param_names()
        for name in params:
            if name.partition("__")[0] not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: {hint(name, known)}")
        super().set_params(**params)
        if nested:
            if not isinstance(self.kernel, (str, Kernel)):
                raise ValueError("kernel is a list: set the whole of it")
            self.kernel = as_kernel(self.kernel).with_params(**nested)
        return self

    def _spec(self) -> LikelihoodLike:
        """The likelihood that was asked for, before the targets are known; none if they decide."""
        return self._default_likelihood if self.likelihood is None else self.likelihood

    def _options(self, likelihood: LikelihoodLike, seed: int) -> dict[str, Any]:
        """The settings that are given, by their names here; those of chains beside the others."""
        sampling = self.sampling or {}
        known = [entry["python"] for entry in entries_of("settings") if entry["of_sampling"]]
        for name in sampling:
            if name not in known:
                raise ValueError(f"sampling has the unknown entry {name!r}; known: {', '.join(known)}")
        in_words: dict[str, Any] = {
            "kernel": kernel_text(self.kernel),
            "mean": mean_text(self.mean),
            # numbers have Gaussian noise unless somebody chooses another law: then nothing is said against the choice
            "likelihood": None
            if likelihood is None or (self.likelihood is None and likelihood == "gaussian")
            else as_likelihood(likelihood).to_json(),
            "inducing": self.inducing if isinstance(self.inducing, str) else None,
            "initial": [
                [path, np.ravel(np.asarray(value, dtype=np.float64), order="F").tolist()]
                for path, value in (self.initial or {}).items()
            ],
            "fixed": [self.fixed] if isinstance(self.fixed, str) else list(self.fixed),
            "season": seasons(self.season),
            "log_inputs": self.log_inputs
            if isinstance(self.log_inputs, str)
            else ",".join(self.log_inputs) or "none",
            "early_stopping": self.early_stopping or None,
            "checkpoint": None if self.checkpoint is None else os.fspath(self.checkpoint),
            "random_state": seed,
        }
        options = {}
        for entry in entries_of("settings"):
            name = entry["python"]
            if name is None:
                continue
            value = sampling.get(name) if entry["of_sampling"] else in_words.get(name, getattr(self, name))
            if value is None:
                continue
            if entry["kind"] == "whole":
                value = whole(entry["called"], value, entry["least"])
            elif entry["kind"] == "flag":
                value = bool(value)
            elif entry["kind"] == "number" and not isinstance(value, str):
                value = float(value)
            options[entry["called"]] = value
        return options

    def _seed(self) -> int:
        return seed_of(self.random_state)

    def _progress(self) -> Optional[Progress]:
        if not self.verbose:
            return None
        return Progress(self.max_iter, self.batch_size or 0, time_limit=self.time_limit)

    def _stops_early(self, likelihood: LikelihoodLike, plain: bool) -> str:
        """The method of a training that rows put aside watch."""
        if not 0 < self.early_stopping < 1:
            raise ValueError(f"early_stopping is {self.early_stopping}; it is a fraction of the rows")
        return self._in_batches(likelihood, plain, "early_stopping")

    def _in_batches(self, likelihood: LikelihoodLike, plain: bool, what: str) -> str:
        """A method that can see rows piece by piece; plain rows have neither labels nor a further number."""
        if self.method == "auto":
            gaussian = likelihood is None or as_likelihood(likelihood)._type == "gaussian"
            return "svgp2025" if gaussian and plain else "svgp"
        if not is_in_batches(self.method) or self.full_batch:
            raise ValueError(
                f"{what} needs training by minibatches: a method such as 'svgp', and not full_batch; "
                f"method is {self.method!r}, full_batch is {self.full_batch}"
            )
        return self.method
