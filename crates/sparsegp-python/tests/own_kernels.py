"""User-defined kernels, in a module as users would have them (its name is in model files)."""

import numpy as np

from sparsegp import kernels
from sparsegp.priors import LogNormal, Parameter


def squares(X, Z):
    return ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)


class Bell(kernels.Custom):
    """The squared exponential, whose reference is ``RBF``."""

    positive = {"variance": None, "lengthscales": None}
    per_input = ("lengthscales",)

    def value(self, X, Z, variance, lengthscales):
        return variance * np.exp(-0.5 * squares(X / lengthscales, Z / lengthscales))


class Sloped(Bell):
    """The same with its own variances and slopes."""

    def diag(self, X, variance, lengthscales):
        return np.full(len(X), variance)

    def gradients(self, G, X, Z, variance, lengthscales):
        weighted = G * self.value(X, Z, variance, lengthscales)
        apart = (X[:, None, :] - Z[None, :, :]) / lengthscales
        return {
            "variance": weighted.sum() / variance,
            "lengthscales": (weighted[:, :, None] * apart**2).sum(axis=(0, 1)) / lengthscales,
            "X": -(weighted[:, :, None] * apart).sum(axis=1) / lengthscales,
            "Z": (weighted[:, :, None] * apart).sum(axis=0) / lengthscales,
        }


class Cauchy(kernels.Custom):
    """(1 + r²)^-beta about a power, with an argument that is not a parameter, a prior and a real number."""

    positive = {"variance": None, "beta": Parameter(0.5, prior=LogNormal(0.0, 1.0))}
    real = {"shift": 0.0}

    def __init__(self, degree=2, **values):
        super().__init__(**values)
        self.degree = degree

    def value(self, X, Z, variance, beta, shift):
        trend = 0.1 * (X[:, :1] - shift) @ (Z[:, :1] - shift).T
        return variance * (1 + squares(X, Z)) ** -beta + trend**self.degree
