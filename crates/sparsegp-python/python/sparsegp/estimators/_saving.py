"""Model files: how estimators are written, and which of them a file holds."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _core
from ..kernels import Kernel, as_kernel
from ..likelihoods import Likelihood, as_likelihood
from ..means import Mean, as_mean
from ._arguments import Path
from ._holidays import rows_of_holidays
from ._learnt import Learnt

S = TypeVar("S", bound="Saved")
C = TypeVar("C", bound=type[Any])

# what a file may hold: estimators by name, and by the likelihoods of files that the command line wrote
_BY_NAME: dict[str, Any] = {}
_BY_LIKELIHOOD: dict[str, Any] = {}


def in_files(*likelihoods: str) -> Callable[[C], C]:
    """An estimator that files hold; those of the command line with these likelihoods become one of it (``"classes"`` are all
    that have classes)."""

    def known(cls: C) -> C:
        _BY_NAME[cls.__name__] = cls
        _BY_LIKELIHOOD.update(dict.fromkeys(likelihoods, cls))
        return cls

    return known


def read(path: Path) -> Any:
    """The estimator that a file holds."""
    try:
        fitted = _core.load(os.fspath(path))
    except ValueError as error:
        if "holds a GP-LVM" not in str(error):
            raise
        return _BY_NAME["BayesianGPLVM"]._load(os.fspath(path))
    about = json.loads(fitted.describe())
    kept = json.loads(about["annotations"].get("python", "{}"))
    if kept:
        cls = _BY_NAME.get(kept["estimator"], _BY_NAME["GPRegressor"])
        params = {k: v for k, v in kept["params"].items() if k in cls._get_param_names()}
        for name, of in (("kernel", as_kernel), ("likelihood", as_likelihood), ("mean", as_mean)):
            given = params.get(name)
            if isinstance(given, str) and given.startswith("{"):
                params[name] = of(given)
            elif isinstance(given, list):
                params[name] = [
                    of(one) if isinstance(one, str) and one.startswith("{") else one for one in given
                ]
        params["fixed"] = tuple(params.get("fixed", ()))
    else:
        own = "classes" if about["class_count"] else about["kind"]
        cls = _BY_LIKELIHOOD.get(own, _BY_NAME["GPRegressor"])
        params = {
            "kernel": [as_kernel(json.dumps(kernel)) for kernel in about["kernels"]],
            "likelihood": as_likelihood(json.dumps(about["likelihood"])),
            "method": about["method"],
        }
        if len(params["kernel"]) == 1:
            params["kernel"] = params["kernel"][0]
        kept = {"feature_names": about["inputs"], "of_file": True}
    estimator = cls(**params)
    estimator._set_fitted(fitted)
    estimator._restore(kept)
    return estimator


class Saved(Learnt):
    """Writing and reading model files."""

    def _annotations(self) -> dict[str, str]:
        params = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, (Kernel, Likelihood, Mean)):
                value = value.to_json()
            elif isinstance(value, (list, tuple)):
                value = [v.to_json() if isinstance(v, Kernel) else v for v in value]
            elif isinstance(value, os.PathLike):
                value = os.fspath(value)
            if name == "holidays":
                value = rows_of_holidays(value)
            if name == "callback" or isinstance(value, np.random.RandomState):
                continue
            params[name] = value
        names = getattr(self, "feature_names_in_", None)
        about = {
            "estimator": type(self).__name__,
            "params": params,
            "feature_names": None if names is None else list(names),
            "outputs": getattr(self, "_y_ndim", 1),
            "seen": getattr(self, "n_samples_seen_", None),
            "of_file": self._of_file,
            **self._annotated(),
        }
        return {"python": json.dumps(about, default=_plain)}

    def _annotated(self) -> dict[str, Any]:
        return {}

    def save(self, path: Path) -> None:
        """Writes a model file, which :func:`sparsegp.load` and the command line read.

        Parameters
        ----------
        path : str or path
            By custom it ends in ``.safetensors``.
        """
        check_is_fitted(self, "fitted_")
        self._whole.annotated(self._annotations()).save(os.fspath(path))

    @classmethod
    def load(cls: type[S], path: Path) -> S:
        """Reads a model file that an estimator of this kind or the command line wrote.

        Raises
        ------
        ValueError
            If the file holds a model of another kind, or none.
        """
        estimator = read(path)
        if not isinstance(estimator, cls):
            raise ValueError(f"{os.fspath(path)} holds a {type(estimator).__name__}, not a {cls.__name__}")
        return estimator


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and priors, in JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"a model file cannot hold the {type(value).__name__} {value!r}")
