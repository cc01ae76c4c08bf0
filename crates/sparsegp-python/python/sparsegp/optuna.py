"""A sampler for Optuna, which searches by Gaussian processes without PyTorch.

    import optuna
    from sparsegp.optuna import Sampler

    study = optuna.create_study(sampler=Sampler(seed=1))
    study.optimize(objective, n_trials=50)

It is for studies of one objective. Trials of other samplers in the same study count; pruned trials count by their last intermediate
value, failed ones as failures. Needs ``pip install optuna``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Callable, Optional

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .bayesopt import Categorical, Dimension, Integer, Optimiser, Real

__all__ = ["Sampler"]

# where Optuna keeps the values of constraints
_CONSTRAINTS = "constraints"


def _finite(value: Optional[float]) -> float:
    """The value; NaN, of a trial that failed, if it is infinite."""
    return math.nan if value is None or not math.isfinite(value) else value


class _Steps:
    """Numbers that are steps apart, as whole numbers from 0."""

    def __init__(self, own: Any) -> None:
        self.low, self.high, self.step = own.low, own.high, own.step
        self.whole = isinstance(own, IntDistribution)
        self.last = round((own.high - own.low) / own.step)

    def dimension(self) -> Dimension:
        return Integer(0, self.last)

    def inner(self, value: Any) -> int:
        return int(round((value - self.low) / self.step))

    def outer(self, value: Any) -> Any:
        # rounding may lead beyond the end
        value = min(self.low + value * self.step, self.high)
        return int(value) if self.whole else value


class _Same:
    """Numbers as they are."""

    def __init__(self, own: Any) -> None:
        kind = Integer if isinstance(own, IntDistribution) else Real
        self.own: Dimension = kind(own.low, own.high, own.log)

    def dimension(self) -> Dimension:
        return self.own

    def inner(self, value: Any) -> Any:
        return value

    def outer(self, value: Any) -> Any:
        return value


class _Choices:
    """Choices of any kind, by their places."""

    def __init__(self, own: CategoricalDistribution) -> None:
        self.own = own

    def dimension(self) -> Dimension:
        return Categorical(list(range(len(self.own.choices))))

    def inner(self, value: Any) -> int:
        return int(self.own.to_internal_repr(value))

    def outer(self, value: Any) -> Any:
        return self.own.to_external_repr(value)


def _translated(own: BaseDistribution) -> Any:
    if isinstance(own, CategoricalDistribution):
        return _Choices(own)
    if isinstance(own, IntDistribution) and own.step == 1:
        return _Same(own)
    if isinstance(own, FloatDistribution) and own.step is None:
        return _Same(own)
    return _Steps(own)


def _bounds(trial: FrozenTrial) -> dict[str, float]:
    """Values of the constraints of a trial by their names."""
    if hasattr(trial, "constraints"):
        return dict(trial.constraints)
    # before Optuna 5
    return {str(i): value for i, value in enumerate(trial.system_attrs.get(_CONSTRAINTS) or ())}


def _exhausted(space: dict[str, Dimension], optimiser: Optimiser) -> bool:
    """Whether every point of a finite space was tried."""
    points = 1
    for own in space.values():
        if isinstance(own, Real):
            return False
        points *= len(own.choices) if isinstance(own, Categorical) else own.high - own.low + 1
    return len({tuple(trial.point.values()) for trial in optimiser.trials}) >= points


class Sampler(BaseSampler):
    """Samples parameters by Bayesian optimisation (:class:`sparsegp.bayesopt.Optimiser`).

    Parameters that not every trial so far has (of conditional spaces) are sampled at random, as other samplers do.

    Parameters
    ----------
    seed : int
    n_startup_trials : int, optional
        Trials before there are models; by default three more than there are parameters.
    constraints_func : callable, optional
        Gives the values of constraints of a finished trial; a trial is feasible if none is above 0. Those of
        ``Trial.set_constraint`` (Optuna 5) count without it.
    acquisition, kernel, noise
        As for :class:`sparsegp.bayesopt.Optimiser`.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        n_startup_trials: Optional[int] = None,
        constraints_func: Optional[Callable[[FrozenTrial], Sequence[float]]] = None,
        acquisition: str = "ei",
        kernel: str = "matern52",
        noise: Optional[float] = None,
    ) -> None:
        self._options = dict(
            acquisition=acquisition,
            initial=n_startup_trials,
            kernel=kernel,
            noise=noise,
            random_state=seed,
        )
        # refuses what does not fit now, and not in the middle of a study
        Optimiser({"x": Real(0, 1)}, **self._options)  # type: ignore[arg-type]
        self._constraints_func = constraints_func
        self._random = RandomSampler(seed=seed)
        self._space = IntersectionSearchSpace()

    def reseed_rng(self) -> None:
        """Has other random numbers in a copy that another thread uses."""
        self._random.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that all trials have and that have more than one value."""
        found = self._space.calculate(study)
        return {name: own for name, own in found.items() if not own.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values of these parameters for a trial."""
        if len(study.directions) > 1:
            raise ValueError("sparsegp.optuna.Sampler is for one objective; this study has several")
        if not search_space:
            return {}
        known = {name: _translated(own) for name, own in search_space.items()}
        known_trials = [own for own in study.get_trials(deepcopy=False) if own.number != trial.number]
        bounds = sorted({key for own in known_trials for key in _bounds(own)})
        space = {name: own.dimension() for name, own in known.items()}
        for repeats in (False, True):
            optimiser = Optimiser(
                space,
                maximise=study.direction == StudyDirection.MAXIMIZE,
                constraints=[f"c{i}<=0" for i in range(len(bounds))],
                repeats=repeats,
                **self._options,  # type: ignore[arg-type]
            )
            for own in known_trials:
                self._tell(optimiser, own, known, search_space, bounds)
            # a study continues where all points of a finite space were tried
            if not _exhausted(space, optimiser):
                break
        point = optimiser.ask()
        return {name: own.outer(point[name]) for name, own in known.items()}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value, for a parameter that not all trials have."""
        return self._random.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Optional[Sequence[float]]
    ) -> None:
        """Notes the values of constraints."""
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            found = [float(value) for value in self._constraints_func(trial)]
            study._storage.set_trial_system_attr(trial._trial_id, _CONSTRAINTS, tuple(found))

    def _tell(
        self,
        optimiser: Optimiser,
        trial: FrozenTrial,
        known: dict[str, Any],
        space: dict[str, BaseDistribution],
        bounds: list[str],
    ) -> None:
        """Tells of a trial, if it has values of all parameters within their present ranges."""
        inside = (
            name in trial.params and own._contains(own.to_internal_repr(trial.params[name]))
            for name, own in space.items()
        )
        if not all(inside):
            return
        point = {name: own.inner(trial.params[name]) for name, own in known.items()}
        value = trial.value if trial.state == TrialState.COMPLETE else math.nan
        if trial.state == TrialState.PRUNED and trial.intermediate_values:
            value = trial.intermediate_values[max(trial.intermediate_values)]
        if trial.state in (TrialState.RUNNING, TrialState.WAITING):
            optimiser.begin(point)
            return
        own = _bounds(trial)
        outcomes = {f"c{i}": _finite(own.get(key, math.nan)) for i, key in enumerate(bounds)}
        optimiser.tell(point, _finite(value), outcomes)
