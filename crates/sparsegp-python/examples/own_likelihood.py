"""A likelihood of your own: noise that is now and then ten times as wide, by its log density on arrays."""

import numpy as np
from scipy.stats import norm

from sparsegp import GPRegressor, likelihoods, testing


class Mixed(likelihoods.Custom):
    """y = f + noise that is narrow for most rows, and ten times as wide for a share of them."""

    positive = {"scale": 0.2}
    real = {"logit": -2.0}
    standardises = True

    def log_density(self, y, f, scale, logit):
        share = 1 / (1 + np.exp(-logit))
        narrow = np.log1p(-share) + norm.logpdf(y, f, scale)
        wide = np.log(share) + norm.logpdf(y, f, 10 * scale)
        return np.logaddexp(narrow, wide)

    def moments(self, f, scale, logit):
        share = 1 / (1 + np.exp(-logit))
        return f, np.full(len(f), scale**2 * (1 + 99 * share))


testing.check_likelihood(Mixed(scale=0.6, logit=-1.1), [-0.4, 1.9])

rng = np.random.default_rng(0)
X = np.linspace(0, 10, 200)[:, None]
truth = np.sin(X[:, 0])
outliers = rng.random(200) < 0.15
y = truth + np.where(outliers, 1.0, 0.1) * rng.normal(size=200)

model = GPRegressor("rbf", likelihood=Mixed(), method="svgp", n_inducing=20, epochs=60, pilot=50).fit(X, y)
plain = GPRegressor("rbf").fit(X, y)
print(model.summary())
error, of_plain = (np.abs(m.predict(X) - truth).mean() for m in (model, plain))
print(f"mean error {error:.3f}, with Gaussian noise {of_plain:.3f}")
assert error < of_plain and error < 0.06
