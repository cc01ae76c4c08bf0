"""Classification: three classes, probabilities, cross-validation as for any estimator of scikit-learn."""

import numpy as np
from sklearn.model_selection import cross_val_score

from sparsegp import GPClassifier

rng = np.random.default_rng(0)
centres = np.array([[0.0, 0.0], [2.0, 0.5], [0.5, 2.0]])
labels = np.repeat(["ash", "birch", "cedar"], 40)
X = np.repeat(centres, 40, axis=0) + 0.5 * rng.standard_normal((120, 2))

model = GPClassifier("rbf", n_inducing=20)
accuracy = cross_val_score(model, X, labels, cv=3)
print(f"accuracy of three folds: {accuracy.round(2)}")
assert accuracy.min() > 0.85

probabilities = model.fit(X, labels).predict_proba([[0.0, 0.0], [1.0, 1.0]])
for name, p in zip(model.classes_, probabilities.T):
    print(f"{name:6} {p.round(2)}")
assert probabilities[0, 0] > 0.9 > probabilities[1].max()
