"""Model files."""

from __future__ import annotations

import json
import os
from typing import Union

from .. import _core
from ..kernels import as_kernel
from ..likelihoods import as_likelihood
from ._base import Path
from ._classifier import GPClassifier
from ._gplvm import BayesianGPLVM
from ._regressors import (
    GPCountRegressor,
    GPRegressor,
    HeteroscedasticGPRegressor,
    RobustGPRegressor,
)

# what a model file may hold
Estimator = Union[GPClassifier, GPCountRegressor, GPRegressor, HeteroscedasticGPRegressor, RobustGPRegressor]

_CLASSES: dict[str, type[Estimator]] = {
    c.__name__: c
    for c in (
        GPClassifier,
        GPCountRegressor,
        GPRegressor,
        HeteroscedasticGPRegressor,
        RobustGPRegressor,
    )
}

_KINDS: dict[str, type[Estimator]] = {
    "poisson": GPCountRegressor,
    "negative-binomial": GPCountRegressor,
    "zero-inflated-poisson": GPCountRegressor,
    "binomial": GPCountRegressor,
    "student-t": RobustGPRegressor,
    "laplace": RobustGPRegressor,
    "heteroscedastic": HeteroscedasticGPRegressor,
    "heteroscedastic-student-t": HeteroscedasticGPRegressor,
}


def load(path: Path) -> Union[Estimator, BayesianGPLVM]:
    """Reads a model file that an estimator or the command line wrote.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        The estimator that was saved; for a file of the command line one of the same likelihood.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no model file, or damaged.
    """
    try:
        fitted = _core.load(os.fspath(path))
    except ValueError as error:
        if "holds a GP-LVM" not in str(error):
            raise
        return BayesianGPLVM._load(os.fspath(path))
    about = json.loads(fitted.describe())
    kept = json.loads(about["annotations"].get("python", "{}"))
    if kept:
        cls: type[Estimator] = _CLASSES.get(kept["estimator"], GPRegressor)
        params = {k: v for k, v in kept["params"].items() if k in cls._get_param_names()}
        for name, read in (("kernel", as_kernel), ("likelihood", as_likelihood)):
            given = params.get(name)
            if isinstance(given, str) and given.startswith("{"):
                params[name] = read(given)
            elif isinstance(given, list):
                params[name] = [
                    read(one) if isinstance(one, str) and one.startswith("{") else one for one in given
                ]
        params["fixed"] = tuple(params.get("fixed", ()))
    else:
        cls = GPClassifier if about["class_count"] else _KINDS.get(about["kind"], GPRegressor)
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
