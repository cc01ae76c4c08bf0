"""The sampler for Optuna, where that is installed."""

from __future__ import annotations

import math

import pytest

optuna = pytest.importorskip("optuna")

from sparsegp.optuna import Sampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


def study(direction="minimize", **options):
    return optuna.create_study(direction=direction, sampler=Sampler(**options))


def test_parameters_of_every_kind_are_sampled():
    def objective(trial):
        rate = trial.suggest_float("rate", 1e-5, 1, log=True)
        layers = trial.suggest_int("layers", 1, 6)
        width = trial.suggest_int("width", 8, 64, step=8)
        kind = trial.suggest_categorical("kind", ["a", None, (1, 2)])
        drop = trial.suggest_float("drop", 0.0, 0.9, step=0.1)
        trial.suggest_float("fixed", 2.0, 2.0)
        extra = 0 if kind is None else 1
        return (math.log10(rate) + 3) ** 2 + 0.2 * (layers - 4) ** 2 + (width / 32 - 1) ** 2 + extra + drop

    found = study(seed=1)
    found.optimize(objective, n_trials=45)
    assert found.best_value < 0.3
    assert found.best_params["kind"] is None and found.best_params["layers"] == 4
    again = study(seed=1)
    again.optimize(objective, n_trials=12)
    assert [t.params for t in again.trials] == [t.params for t in found.trials[:12]]


def test_constraints_failures_and_pruned_trials():
    def objective(trial):
        a, b = trial.suggest_float("a", 0, 1), trial.suggest_float("b", 0, 1)
        trial.set_user_attr("bound", a + b - 1)
        if a > 0.8:
            raise ArithmeticError
        trial.report(a + b, 1)
        if b > 0.9:
            raise optuna.TrialPruned
        return a + 2 * b

    found = study("maximize", seed=2, constraints_func=lambda trial: [trial.user_attrs["bound"]])
    found.optimize(objective, n_trials=25, catch=ArithmeticError)
    best = max(
        (t for t in found.get_trials(states=[optuna.trial.TrialState.COMPLETE]) if t.user_attrs["bound"] <= 0),
        key=lambda t: t.value,
    )
    # the best has a = 0.1, b = 0.9
    assert best.value > 1.7


def test_finite_and_conditional_spaces_continue():
    def small(trial):
        return trial.suggest_int("n", 0, 3) ** 2

    found = study(seed=3)
    found.optimize(small, n_trials=8)
    assert {t.params["n"] for t in found.trials} == {0, 1, 2, 3}

    def conditional(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return trial.suggest_float("x", 0, 1)
        return 1 + trial.suggest_float("y", 0, 1)

    found = study(seed=4)
    found.optimize(conditional, n_trials=15)
    assert found.best_params["kind"] == "a"


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="choose `ei`"):
        Sampler(acquisition="pi")
    several = optuna.create_study(directions=["minimize", "minimize"], sampler=Sampler())
    with pytest.raises(ValueError, match="one objective"):
        several.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=1)


def test_the_upper_end_of_steps_can_be_reached():
    # 3 * 0.1 is a little more than 0.3
    found = study("maximize", seed=2)
    found.optimize(lambda trial: trial.suggest_float("x", 0.0, 0.3, step=0.1), n_trials=12)
    values = [trial.params["x"] for trial in found.trials]
    assert found.best_value == 0.3 and max(values) <= 0.3
    # all four are tried before one is repeated
    assert len({round(10 * value) for value in values[:5]}) == 4


def test_infinite_objectives_are_failures():
    def objective(trial):
        x = trial.suggest_float("x", -1.0, 1.0)
        return math.inf if x < -0.5 else (x - 0.2) ** 2

    found = study(seed=5)
    found.optimize(objective, n_trials=14)
    assert len(found.trials) == 14 and found.best_value < 0.01
