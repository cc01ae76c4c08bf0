"""Scalable Gaussian processes: scikit-learn's conventions on a Rust core.

Estimators: :class:`GPRegressor`, :class:`GPClassifier`, :class:`GPCountRegressor`,
:class:`RobustGPRegressor`, :class:`HeteroscedasticGPRegressor`, :class:`BayesianGPLVM`, and :func:`load` for what they (or the
command line) saved. Building blocks: :mod:`sparsegp.kernels`, :mod:`sparsegp.likelihoods`, :mod:`sparsegp.means`,
:mod:`sparsegp.priors`; models made of them by hand: :mod:`sparsegp.models`. For any density: the nearest Gaussian
:mod:`sparsegp.flow`, Markov chains :mod:`sparsegp.sampling`. The next points to try of an expensive function:
:mod:`sparsegp.bayesopt`. Pictures: :mod:`sparsegp.plotting` (needs matplotlib). Times to forecast: :func:`future`;
forecasts judged from several times on: :func:`backtest`, :class:`CutOffs`.
Effects of inputs: :func:`explain`. Predictions as code for elsewhere: :func:`export`.
Small tables to try it on: :mod:`sparsegp.data`.

>>> import numpy as np
>>> from sparsegp import GPRegressor
>>> X = np.linspace(0, 10, 200)[:, None]
>>> y = np.sin(X[:, 0]) + 0.1 * np.cos(37 * X[:, 0])
>>> mean, std = GPRegressor().fit(X, y).predict([[5.0]], return_std=True)
>>> bool(abs(mean[0] - np.sin(5.0)) < 0.1)
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._core import NumericalError, __version__, num_threads, set_num_threads
from ._hints import no_attribute

if TYPE_CHECKING:
    from . import bayesopt, data, flow, kernels, likelihoods, means, models, plotting, priors, sampling
    from ._backtest import Backtest, CutOffs, backtest
    from ._explain import explain
    from ._export import export
    from ._future import future
    from ._registry import registry
    from .estimators import (
        BayesianGPLVM,
        GPClassifier,
        GPCountRegressor,
        GPRegressor,
        HeteroscedasticGPRegressor,
        RobustGPRegressor,
        load,
    )

# scikit-learn takes most of a second to import: it waits until an estimator is asked for
_LAZY = {
    "Backtest": "_backtest",
    "CutOffs": "_backtest",
    "backtest": "_backtest",
    "BayesianGPLVM": "estimators",
    "GPRegressor": "estimators",
    "GPClassifier": "estimators",
    "GPCountRegressor": "estimators",
    "RobustGPRegressor": "estimators",
    "HeteroscedasticGPRegressor": "estimators",
    "load": "estimators",
    "explain": "_explain",
    "export": "_export",
    "future": "_future",
    "registry": "_registry",
}
_MODULES = (
    "bayesopt",
    "data",
    "estimators",
    "flow",
    "kernels",
    "likelihoods",
    "means",
    "models",
    "plotting",
    "priors",
    "sampling",
    "testing",
)

__all__ = [
    "Backtest",
    "BayesianGPLVM",
    "CutOffs",
    "GPClassifier",
    "GPCountRegressor",
    "GPRegressor",
    "HeteroscedasticGPRegressor",
    "NumericalError",
    "RobustGPRegressor",
    "__version__",
    "backtest",
    "bayesopt",
    "data",
    "explain",
    "export",
    "flow",
    "future",
    "kernels",
    "likelihoods",
    "means",
    "load",
    "models",
    "num_threads",
    "plotting",
    "priors",
    "registry",
    "sampling",
    "set_num_threads",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise no_attribute(__name__, name, __all__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
