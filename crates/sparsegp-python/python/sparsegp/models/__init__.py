"""Models made by hand, for people who know Gaussian processes: every part is given, nothing is scaled,
every parameter is a path.

>>> import numpy as np
>>> from sparsegp import kernels, models
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(0, 5, (100, 1))
>>> Y = np.sin(X) + 0.1 * rng.standard_normal((100, 1))
>>> model = models.SGPR((X, Y), kernels.RBF(1.0, 1.0), inducing_points=X[:10], noise_variance=0.1)
>>> model.elbo() < models.GPR((X, Y), kernels.RBF(1.0, 1.0), noise_variance=0.1).log_marginal_likelihood()
True
>>> report = model.optimise()
>>> mean, variance = model.predict_y([[2.0]])
>>> bool(abs(mean[0, 0] - np.sin(2.0)) < 0.1)
True

Inputs ``X`` are N×D, targets ``Y`` N×P (or N numbers). A target column has the K latent functions that
its likelihood asks for, L = K·P in all. Paths are ``kernel.lengthscales``, ``likelihood.variance``,
``inducing.points``, ``q.mu``, ``q.sqrt``, ``mean.constant``, and so on: ``model.parameters`` has all.
"""

from __future__ import annotations

from ._deep import DeepGP
from ._gplvm import gplvm_bound
from ._model import Functions, Model
from ._regression import GPR, SGPR
from ._variational import SVGP, TSVGP, TVGP

__all__ = ["GPR", "SGPR", "SVGP", "TSVGP", "TVGP", "DeepGP", "Functions", "Model", "gplvm_bound"]
