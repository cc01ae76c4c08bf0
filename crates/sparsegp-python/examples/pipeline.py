"""In a pipeline of scikit-learn, with a grid search over kernels and numbers of inducing points."""

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from sparsegp import GPRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (150, 2))
y = X[:, 0] * X[:, 1] + 0.05 * rng.standard_normal(150)

pipeline = make_pipeline(
    PolynomialFeatures(2, include_bias=False), GPRegressor(method="titsias2025", max_iter=50)
)
choices = {"gpregressor__kernel": ["rbf", "linear"], "gpregressor__n_inducing": [10, 30]}
search = GridSearchCV(pipeline, choices, cv=3).fit(X, y)
print(search.best_params_, f"R² {search.best_score_:.3f}")
assert search.best_score_ > 0.9
