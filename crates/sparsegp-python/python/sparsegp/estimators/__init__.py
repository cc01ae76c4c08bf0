"""Estimators with scikit-learn's conventions."""

from ._classifier import GPClassifier
from ._files import load
from ._gplvm import BayesianGPLVM
from ._regressors import (
    GPCountRegressor,
    GPRegressor,
    HeteroscedasticGPRegressor,
    RobustGPRegressor,
)

__all__ = [
    "BayesianGPLVM",
    "GPClassifier",
    "GPCountRegressor",
    "GPRegressor",
    "HeteroscedasticGPRegressor",
    "RobustGPRegressor",
    "load",
]
