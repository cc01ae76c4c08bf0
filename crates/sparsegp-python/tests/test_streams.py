"""Streams in Python: what the model promised is held against new rows, and few wrong labels are outvoted."""

import warnings

import numpy as np
import pytest

from sparsegp import GPClassifier, GPRegressor

rng = np.random.default_rng(5)
X = rng.normal(size=(400, 2))
LABELS = (X[:, 0] > 0).astype(int)
NEW = rng.normal(size=(300, 2))


def quietly(work):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in said]


def test_a_few_wrong_labels_are_outvoted_and_reported(tmp_path):
    model = GPClassifier(online=True).partial_fit(X[:100], LABELS[:100])
    said = quietly(lambda: [model.partial_fit(X[a : a + 50], LABELS[a : a + 50]) for a in range(100, 350, 50)])
    assert said == []
    model.save(tmp_path / "m.safetensors")
    again = GPClassifier.load(tmp_path / "m.safetensors")
    said = quietly(lambda: model.partial_fit(X[350:360], 1 - LABELS[350:360]))
    assert any("the model gave their labels" in text for text in said)
    assert model.score(NEW, NEW[:, 0] > 0) > 0.95
    quietly(lambda: again.update(X[350:360], 1 - LABELS[350:360]))
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.parametrize("shift, noise", [(0.5, 0.1), (0.0, 0.5)])
def test_rows_that_are_off_from_the_first_one_on_are_reported(shift, noise):
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
    model = GPRegressor(online=True).fit(X[:200], y[:200])
    assert quietly(lambda: model.partial_fit(X[200:300], y[200:300])) == []
    off = np.sin(X[300:, 0]) + shift + noise * rng.normal(size=100)
    said = quietly(lambda: model.partial_fit(X[300:], off))
    assert any("95 % intervals held" in text for text in said)


def test_fit_with_online_can_be_continued():
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
    model = GPRegressor(online=True).fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert model.score(X, y) > 0.9 and model.n_samples_seen_ == 400
