"""Regression: predictions with intervals, scores on held-out rows, a model file."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from sparsegp import GPRegressor, load

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, (300, 2))
y = np.sin(X[:, 0]) + 0.2 * X[:, 1] + 0.1 * rng.standard_normal(300)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = GPRegressor("matern52").fit(X_train, y_train)
mean, bounds = model.predict(X_test, return_quantiles=[0.025, 0.975])
inside = np.mean((bounds[:, 0] <= y_test) & (y_test <= bounds[:, 1]))
print(model)
print(f"R² {model.score(X_test, y_test):.3f}, {100 * inside:.0f} % of test rows in their 95 % intervals")
assert model.score(X_test, y_test) > 0.95 and inside > 0.85

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.safetensors"
    model.save(path)  # the command line reads it too
    assert np.array_equal(load(path).predict(X_test), mean)
