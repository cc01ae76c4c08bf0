"""Model files."""

from __future__ import annotations

from typing import Union

from ._arguments import Path
from ._classifier import GPClassifier
from ._gplvm import BayesianGPLVM
from ._regressors import (
    GPCountRegressor,
    GPRegressor,
    HeteroscedasticGPRegressor,
    RobustGPRegressor,
)
from ._saving import read

# what a model file may hold
Estimator = Union[GPClassifier, GPCountRegressor, GPRegressor, HeteroscedasticGPRegressor, RobustGPRegressor]


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
        If it is not a model file, or damaged.
    """
    estimator: Union[Estimator, BayesianGPLVM] = read(path)
    return estimator
