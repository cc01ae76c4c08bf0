"""Estimators with scikit-learn's conventions."""

from ._classifier import GPClassifier
from ._files import load
from ._regressors import (
    GPCountRegressor,
    GPRegressor,
    HeteroscedasticGPRegressor,
    RobustGPRegressor,
)

__all__ = [
    "GPClassifier",
    "GPCountRegressor",
    "GPRegressor",
    "HeteroscedasticGPRegressor",
    "RobustGPRegressor",
    "load",
]
