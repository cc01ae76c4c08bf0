"""User-defined likelihoods, in a module as users would have them (its name is in model files)."""

import numpy as np
from scipy import special

from sparsegp import likelihoods
from sparsegp.priors import LogNormal, Parameter


class StudentT(likelihoods.Custom):
    """As ``student-t`` is, which is the reference."""

    positive = {"df": 4.0, "scale": Parameter(0.4, prior=LogNormal(0.0, 1.0))}
    standardises = True

    def log_density(self, y, f, df, scale):
        z = (y - f) / scale
        constant = (
            special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - 0.5 * np.log(df * np.pi) - np.log(scale)
        )
        return constant - (df + 1) / 2 * np.log1p(z**2 / df)


class Poisson(likelihoods.Custom):
    """As ``poisson`` is, with its own slopes and moments, and an argument that is not a parameter."""

    support = "counts"

    def __init__(self, unit=1.0, **values):
        super().__init__(**values)
        self.unit = unit

    def log_density(self, y, f):
        return y * (f + np.log(self.unit)) - self.unit * np.exp(f) - special.gammaln(y + 1)

    def slopes(self, y, f):
        return {"f": y - self.unit * np.exp(f)}

    def moments(self, f):
        return self.unit * np.exp(f), self.unit * np.exp(f)

    def start(self, y):
        return np.log(y.mean() / self.unit + 0.1)


class Scaled(likelihoods.Custom):
    """Two latent functions: the mean, and the logarithm of the deviation over ``scale``."""

    latents = 2
    positive = {"scale": 0.6}

    def log_density(self, y, f, scale):
        deviation = scale * np.exp(f[:, 1])
        return -0.5 * ((y - f[:, 0]) / deviation) ** 2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)


class Sides(likelihoods.Custom):
    """Two classes by the logistic function."""

    support = ("classes", 2)

    def log_density(self, y, f):
        return -np.logaddexp(0.0, np.where(y == 1, -f, f))
