"""The layer below the estimators: a model made by hand, its bound with gradients, natural-gradient steps."""

import numpy as np

from sparsegp import kernels, likelihoods, models

rng = np.random.default_rng(0)
X = rng.uniform(0, 5, (500, 1))
Y = rng.poisson(np.exp(np.sin(2 * X))).astype(float)

kernel = kernels.RBF(lengthscales=0.5, variance=1.0)
model = models.SVGP(kernel, likelihoods.Poisson(), X[:20], num_data=len(X))
value, gradients = model.elbo_and_gradients((X, Y))
print(f"bound {value:.1f}; gradients of", ", ".join(gradients))

for _ in range(10):  # of q only
    model.natural_gradient_step((X, Y), rate=0.5)
print(f"bound {model.elbo((X, Y)):.1f} after natural-gradient steps")

model.optimise((X, Y), batch_size=100, epochs=20)
print(f"bound {model.elbo((X, Y)):.1f} after training")
mean, variance = model.predict_y(np.array([[1.0], [2.5]]))
print("expected counts", mean[:, 0].round(2), "variances", variance[:, 0].round(2))
assert model.elbo((X, Y)) > value
