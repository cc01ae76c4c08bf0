"""Observation models p(y | f): small immutable objects.

>>> from sparsegp.likelihoods import Poisson
>>> Poisson().log_prob(F=[[0.3]], Y=[2]).round(4)
array([-1.443])

A target has K latent values (:attr:`Likelihood.num_latents`): ``F``, ``Fmu`` and ``Fvar`` are N×K,
``Y`` has N targets. ``extra`` is the further number of every row, where the likelihood knows one:
exposure, trials, known noise variance. Wherever a likelihood is expected, its short form does too:
``"student-t(df=4)"``.
"""

from __future__ import annotations

from ._custom import Custom
from ._likelihood import (
    SVM,
    Bernoulli,
    Beta,
    Binomial,
    Coregionalised,
    Exponential,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    HeteroscedasticStudentT,
    Laplace,
    Likelihood,
    Logistic,
    LogisticSoftmax,
    LogNormal,
    Matern32,
    NegativeBinomial,
    Ordinal,
    Poisson,
    PoissonLogistic,
    PseudoHuber,
    RobustMax,
    Softmax,
    StudentT,
    ZeroInflatedPoisson,
    as_likelihood,
)

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Coregionalised",
    "Custom",
    "Exponential",
    "Gamma",
    "Gaussian",
    "HeteroscedasticGaussian",
    "HeteroscedasticStudentT",
    "Laplace",
    "Likelihood",
    "LogNormal",
    "Logistic",
    "LogisticSoftmax",
    "Matern32",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "PoissonLogistic",
    "PseudoHuber",
    "RobustMax",
    "SVM",
    "Softmax",
    "StudentT",
    "ZeroInflatedPoisson",
    "as_likelihood",
]
