"""User-defined mean functions, in a module as users would have them (its name is in model files)."""

import numpy as np

from sparsegp import means
from sparsegp.priors import Normal, Parameter


class Line(means.Custom):
    """As ``linear`` is for one output, which is the reference."""

    real = {"slopes": 0.1, "offset": Parameter(0.2, prior=Normal(0.0, 30.0))}
    per_input = ("slopes",)

    def value(self, X, slopes, offset):
        return X @ slopes + offset


class Decay(means.Custom):
    """An exponential of the first input, with its own slopes and an argument that is not a parameter."""

    real = {"height": 1.0}
    positive = {"rate": 0.5}

    def __init__(self, unit=1.0, **values):
        super().__init__(**values)
        self.unit = unit

    def value(self, X, height, rate):
        return height * np.exp(-rate * X[:, 0] / self.unit)

    def gradients(self, G, X, height, rate):
        x = X[:, 0] / self.unit
        decay = np.exp(-rate * x)
        of_x = np.zeros_like(X)
        of_x[:, 0] = -G * height * rate * decay / self.unit
        return {"height": G @ decay, "rate": -G @ (height * x * decay), "X": of_x}


class Two(means.Custom):
    """Two outputs, one minus the other's square."""

    real = {"slope": 0.7}
    outputs = 2

    def value(self, X, slope):
        line = slope * X[:, 0]
        return np.stack([line, -(line**2)], axis=1)
