"""Bayesian optimisation by ask and tell."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from sparsegp import GPRegressor
from sparsegp.bayesopt import (
    Categorical,
    Integer,
    Optimiser,
    Real,
    log_expected_improvement,
    log_probability_below,
    minimise,
)


def mixed():
    return {
        "rate": Real(1e-5, 1, log=True),
        "layers": Integer(1, 6),
        "kind": Categorical(["a", None, True]),
    }


def loss(rate, layers, kind):
    return (math.log10(rate) + 3) ** 2 + 0.3 * (layers - 4) ** 2 + {"a": 1, None: 0, True: 2}[kind]


def test_mixed_spaces_are_searched():
    found = minimise(loss, mixed(), 30, random_state=1)
    best = found.best()
    assert best.value < 0.1 and best.point["layers"] == 4 and best.point["kind"] is None
    assert abs(best.mean - best.value) < 0.2 and best.std >= 0
    for trial in found.trials:
        assert type(trial.point["layers"]) is int and trial.value == loss(**trial.point)
    mean, std, feasible = found.predict([best.point, {"rate": 1.0, "layers": 1, "kind": True}])
    assert mean[1] > mean[0] + 5 and np.all(std > 0) and np.all(feasible == 1)


def test_batches_are_apart_and_trials_under_way_are_known():
    optimiser = Optimiser({"x": Real(0, 1), "y": Real(0, 1)}, initial=6, random_state=2)
    for point in optimiser.ask(6):
        optimiser.tell(point, (point["x"] - 0.2) ** 2 + (point["y"] - 0.7) ** 2)
    batch = optimiser.ask(3)
    places = np.array([[p["x"], p["y"]] for p in batch])
    gaps = [np.linalg.norm(places[i] - places[j]) for i in range(3) for j in range(i)]
    assert min(gaps) > 0.01
    assert [trial.pending for trial in optimiser.trials] == [False] * 6 + [True] * 3
    optimiser.tell(batch[1], 0.5)
    optimiser.forget(batch[0])
    optimiser.begin({"x": 0.5, "y": 0.5})
    assert [trial.pending for trial in optimiser.trials] == [False] * 7 + [True] * 2
    with pytest.raises(ValueError, match="not under way"):
        optimiser.forget(batch[0])


def test_constraints_and_failures():
    def run(a, b):
        return (math.nan if a > 0.6 else a + b), {"load": a + 2 * b, "grip": a}

    space = {"a": Real(0, 1), "b": Real(0, 1)}
    found = minimise(run, space, 25, maximise=True, constraints=["load<=1.5", "grip>=0.1"], random_state=3)
    best = found.best()
    # the best is a = 0.6, b = 0.45
    assert best.value > 1.0 and best.point["a"] <= 0.6
    assert best.point["a"] + 2 * best.point["b"] <= 1.5
    feasible = found.predict([{"a": 0.4, "b": 0.2}, {"a": 0.95, "b": 0.2}, {"a": 0.3, "b": 0.9}])[2]
    assert feasible[0] > 0.8 and feasible[1] < 0.3 and feasible[2] < 0.2
    failed = [trial for trial in found.trials if trial.value is None]
    assert failed and all(trial.point["a"] > 0.6 and "load" in trial.outcomes for trial in failed)


@pytest.mark.parametrize("acquisition", ["ei", "ucb(beta=1.5)", "thompson"])
def test_a_search_resumes_from_a_file_and_a_pickle(tmp_path, acquisition):
    a = minimise(loss, mixed(), 10, acquisition=acquisition, random_state=4)
    a.save(tmp_path / "search.json")
    b = Optimiser.load(tmp_path / "search.json")
    c = pickle.loads(pickle.dumps(a))
    assert a.trials == b.trials == c.trials and b.space == a.space
    assert a.ask(2) == b.ask(2) == c.ask(2)
    assert "10 trials" in repr(minimise(loss, mixed(), 10))


def test_what_is_wrong_is_said():
    for space, part in [
        ({}, "at least one input"),
        ({"x": Real(1, 0)}, "smaller one first"),
        ({"x": Real(0, math.inf)}, "two finite ends"),
        ({"x": Integer(0, 3, log=True)}, "begins at 1"),
        ({"x": Integer(0.5, 3)}, "whole ends"),
        ({"x": Categorical(["a"])}, "at least two"),
    ]:
        with pytest.raises(ValueError, match=part):
            Optimiser(space)
    with pytest.raises(TypeError, match=r"must be Real\(low, high\)"):
        Optimiser({"x": (0, 1)})
    with pytest.raises(TypeError, match="give names of other objects"):
        Optimiser({"x": Categorical([object(), 1])})
    for options, part in [
        (dict(acquisition="pi"), "choose `ei`"),
        (dict(constraints=["x"]), "weight<=3"),
        (dict(initial=0), "initial"),
        (dict(noise=-1), "noise"),
    ]:
        with pytest.raises(ValueError, match=part):
            Optimiser(mixed(), **options)
    with pytest.raises(TypeError, match="give a list"):
        Optimiser(mixed(), constraints="a<=1")
    own = Optimiser(mixed(), constraints=["a<=1"])
    point = own.ask()
    with pytest.raises(ValueError, match="give each of them"):
        own.tell(point, 1.0)
    with pytest.raises(ValueError, match="say NaN"):
        own.tell(point, math.inf, {"a": 0})
    with pytest.raises(ValueError, match="one of"):
        own.tell({**point, "kind": "b"}, 1.0, {"a": 0})
    with pytest.raises(ValueError, match="has the inputs"):
        own.tell({"rate": 0.1}, 1.0, {"a": 0})
    with pytest.raises(ValueError, match="a whole number from 1 to 6"):
        own.tell({**point, "layers": 7}, 1.0, {"a": 0})
    with pytest.raises(ValueError, match="no model yet"):
        own.predict([point])
    assert own.best() is None


def test_acquisition_functions_have_slopes():
    """In the inputs of a fitted model, by the chain rule, against differences."""
    X = np.random.default_rng(0).uniform(-2, 2, (15, 2))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2
    model = GPRegressor(kernel="matern52", hyperparameters="plug-in").fit(X, y)

    def moments(x):
        mean, variance = model.latent_mean_and_variance(x)
        return mean, np.sqrt(variance)

    def value(x):
        mean, std = moments(x)
        return log_expected_improvement(-mean, std, -y.min()) + log_probability_below(mean, std, 1.5)

    x = np.array([[0.3, -0.8], [1.9, 1.9]])
    mean, std = moments(x)
    _, a, b = log_expected_improvement(-mean, std, -y.min(), return_slopes=True)
    _, c, d = log_probability_below(mean, std, 1.5, return_slopes=True)
    of_mean, of_variance = model.predict_gradients(x)
    slopes = (c - a)[:, None] * of_mean + ((b + d) / (2 * std))[:, None] * of_variance
    for q in range(2):
        step = 1e-5 * np.eye(2)[q]
        numeric = (value(x + step) - value(x - step)) / 2e-5
        np.testing.assert_allclose(slopes[:, q], numeric, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="above 0"):
        log_expected_improvement([0.0], [0.0], 1.0)
