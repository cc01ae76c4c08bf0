"""Bayesian optimisation: the next points to try of a function that is expensive to evaluate.

:class:`Optimiser` gives points (``ask``) and takes what came of them (``tell``), over numbers, whole numbers and categories, with
constraints, failures and trials in parallel; :func:`minimise` is the loop around it. :mod:`sparsegp.optuna` has a sampler for Optuna.

>>> from sparsegp.bayesopt import Categorical, Optimiser, Real
>>> optimiser = Optimiser({"x": Real(-2, 3), "kind": Categorical(["plain", "tilted"])}, random_state=1)
>>> for _ in range(15):
...     point = optimiser.ask()
...     value = (point["x"] - 1) ** 2 + (point["x"] if point["kind"] == "tilted" else 1.5)
...     optimiser.tell(point, value)
>>> best = optimiser.best()
>>> best.point["kind"], bool(abs(best.point["x"] - 0.5) < 0.1)
('tilted', True)
"""

from __future__ import annotations

import json
import math
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arrays import Array, vector, whole

__all__ = [
    "Best",
    "Categorical",
    "Integer",
    "Optimiser",
    "Real",
    "Trial",
    "log_expected_improvement",
    "log_probability_below",
    "minimise",
]

Point = dict[str, Any]


@dataclass(frozen=True)
class Real:
    """A number from ``low`` to ``high``; with ``log`` factors count, not differences."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Integer:
    """A whole number from ``low`` to ``high``, both included; with ``log`` factors count, not differences."""

    low: int
    high: int
    log: bool = False


@dataclass(frozen=True)
class Categorical:
    """One of some choices: strings, numbers, truth values or None."""

    choices: Sequence[Any]


Dimension = Union[Real, Integer, Categorical]


class Best(NamedTuple):
    """The best trial: ``mean`` and ``std`` are those of the objective without its noise, where there is a model."""

    point: Point
    value: float
    mean: float
    std: float


class Trial(NamedTuple):
    """A trial: ``value`` is None if it failed or is under way (``pending``)."""

    point: Point
    value: Optional[float]
    outcomes: dict[str, float]
    pending: bool


def _written(name: str, dimension: Any) -> dict[str, Any]:
    """A dimension as the core reads it."""
    if isinstance(dimension, Real):
        own = {"low": float(dimension.low), "high": float(dimension.high), "log": bool(dimension.log)}
        if not all(math.isfinite(own[end]) for end in ("low", "high")):
            raise ValueError(f"input {name!r}: the range of a Real has two finite ends, not {dimension}")
        return {"name": name, "range": {"real": own}}
    if isinstance(dimension, Integer):
        ends = {"low": dimension.low, "high": dimension.high}
        if any(not math.isfinite(end) or int(end) != end for end in ends.values()):
            raise ValueError(f"input {name!r}: the range of an Integer has whole ends, not {dimension}")
        whole_ends: dict[str, Any] = {key: int(end) for key, end in ends.items()}
        return {"name": name, "range": {"integer": {**whole_ends, "log": bool(dimension.log)}}}
    if isinstance(dimension, Categorical):
        choices = [_plain(choice) for choice in dimension.choices]
        if not all(choice is None or isinstance(choice, (str, int, float)) for choice in choices):
            raise TypeError(
                f"input {name!r}: choices are strings, numbers, truth values or None; give names of other objects"
            )
        return {"name": name, "range": {"categories": [json.dumps(choice) for choice in choices]}}
    raise TypeError(
        f"input {name!r} is {dimension!r}; it must be Real(low, high), Integer(low, high) or Categorical(choices)"
    )


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _read(own: Mapping[str, Any]) -> Dimension:
    """A dimension as the core wrote it."""
    ((kind, made),) = own["range"].items()
    if kind == "categories":
        return Categorical([json.loads(choice) for choice in made])
    return (Real if kind == "real" else Integer)(**made)


class Optimiser:
    """Bayesian optimisation by ask and tell.

    A Gaussian process says what the trials so far tell of the objective elsewhere, and the point is tried next that promises most.
    Points that were asked for and not yet reported are under way, and others keep away from them. The same trials and ``random_state``
    give the same points.

    Parameters
    ----------
    space : mapping of names to Real, Integer or Categorical
    maximise : bool
        Whether large values are better.
    acquisition : str
        ``"ei"`` (the logarithm of the expected improvement), ``"ucb"`` or ``"ucb(beta=3)"`` (the upper confidence bound),
        ``"thompson"`` (the best point of a function drawn from the posterior).
    initial : int, optional
        Trials before there are models, from a Latin hypercube; by default three more than there are inputs.
    constraints : sequence of str
        Bounds of further outcomes, such as ``"weight<=3"`` or ``"strength>=40"``.
    kernel : str
        Kernel of all models.
    noise : float, optional
        Standard deviation of the noise of the objective, 0 for none; by default it is learnt.
    repeats : bool
        Whether points may be tried again.
    random_state : int

    Examples
    --------
    >>> from sparsegp.bayesopt import Integer, Optimiser, Real
    >>> space = {"rate": Real(1e-5, 1, log=True), "layers": Integer(1, 5)}
    >>> optimiser = Optimiser(space, maximise=True, constraints=["seconds<=60"])
    >>> points = optimiser.ask(4)
    >>> for point in points[:3]:
    ...     optimiser.tell(point, 1 / point["layers"], {"seconds": 20 * point["layers"]})
    >>> optimiser.tell(points[3], float("nan"), {"seconds": 100})  # it failed
    >>> [trial.pending for trial in optimiser.trials]
    [False, False, False, False]
    """

    def __init__(
        self,
        space: Mapping[str, Dimension],
        *,
        maximise: bool = False,
        acquisition: str = "ei",
        initial: Optional[int] = None,
        constraints: Iterable[str] = (),
        kernel: str = "matern52",
        noise: Optional[float] = None,
        repeats: bool = False,
        random_state: int = 0,
    ) -> None:
        if isinstance(constraints, str):
            raise TypeError(f"constraints is {constraints!r}; give a list of bounds, [{constraints!r}]")
        options = {
            "goal": "maximise" if maximise else "minimise",
            "acquisition": acquisition,
            "initial": None if initial is None else whole("initial", initial, 1),
            "constraints": list(constraints),
            "kernel": str(kernel),
            "noise": None if noise is None else float(noise),
            "repeats": bool(repeats),
            "seed": whole("random_state", random_state, 0),
        }
        dimensions = [_written(name, dimension) for name, dimension in dict(space).items()]
        self._set(_core.Search(json.dumps(dimensions), json.dumps(options)), space, options["constraints"])

    def _set(self, search: _core.Search, space: Mapping[str, Dimension], constraints: Any) -> None:
        self._search = search
        self.space: dict[str, Dimension] = dict(space)
        self._outcomes = [_core.parse_constraint(text)[0] for text in constraints]

    def ask(self, count: Optional[int] = None) -> Any:
        """Gives the next points to try, which are under way from now on.

        Parameters
        ----------
        count : int, optional
            How many, to be tried at once.

        Returns
        -------
        dict, or a list of dicts if ``count`` is given
        """
        found = self._search.ask(1 if count is None else whole("count", count, 1))
        points = [self._named(point) for point in found]
        return points[0] if count is None else points

    def tell(
        self, point: Mapping[str, Any], value: Optional[float], outcomes: Optional[Mapping[str, float]] = None
    ) -> None:
        """Takes what came of a point, which need not have been asked for.

        Parameters
        ----------
        point : mapping
        value : float or None
            The objective; NaN or None if the trial failed: points like it are avoided from then on.
        outcomes : mapping, optional
            The outcome of every constraint by its name; NaN or None where it is not known.
        """
        given = dict(outcomes or {})
        missing = [name for name in self._outcomes if name not in given]
        if missing or len(given) != len(self._outcomes):
            raise ValueError(
                f"outcomes has {sorted(given)}; the constraints are on {self._outcomes}: give each of them, NaN if unknown"
            )
        values = [value, *(given[name] for name in self._outcomes)]
        self._search.tell(self._numbers(point), [math.nan if v is None else float(v) for v in values])

    def begin(self, point: Mapping[str, Any]) -> None:
        """Notes a point as under way that was not asked for."""
        self._search.begin(self._numbers(point))

    def forget(self, point: Mapping[str, Any]) -> None:
        """Gives up a point that is under way, whose result will never be reported."""
        if not self._search.forget(self._numbers(point)):
            raise ValueError(f"{dict(point)} is not under way")

    def best(self) -> Optional[Best]:
        """The best trial of those that keep the constraints, by the posterior mean of the objective; None if there is none."""
        found = self._search.best()
        if found is None:
            return None
        _, point, value, mean, std = found
        return Best(self._named(point), value, mean, std)

    def predict(self, points: Iterable[Mapping[str, Any]]) -> tuple[Array, Array, Array]:
        """Predicts the objective, without its noise, and whether points are feasible.

        Returns
        -------
        mean, std, feasible : arrays
            ``feasible`` has the probabilities that all constraints hold and that a trial does not fail.
        """
        mean, std, feasible = self._search.predict([self._numbers(point) for point in points])
        return np.asarray(mean), np.asarray(std), np.asarray(feasible)

    @property
    def trials(self) -> list[Trial]:
        """Return all trials, in the order in which they were asked for or reported."""
        return [self._trial(point, values) for point, values in self._search.trials()]

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes the search as a file of JSON, to resume elsewhere (:meth:`load`)."""
        target = pathlib.Path(path)
        beside = target.with_name(target.name + ".part")
        beside.write_text(self._search.to_json(), encoding="utf-8")
        beside.replace(target)

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]]) -> Optimiser:
        """Reads what :meth:`save` wrote."""
        made = cls.__new__(cls)
        made.__setstate__(pathlib.Path(path).read_text(encoding="utf-8"))
        return made

    def __getstate__(self) -> str:
        return self._search.to_json()

    def __setstate__(self, text: str) -> None:
        search = _core.Search.from_json(text)
        state = json.loads(text)
        space = {own["name"]: _read(own) for own in state["space"]["dimensions"]}
        self._set(search, space, state["options"]["constraints"])

    def __repr__(self) -> str:
        return f"Optimiser({', '.join(self.space)}; {len(self._search.trials())} trials)"

    def _named(self, point: Sequence[float]) -> Point:
        """A point by the names of its inputs."""
        named: Point = {}
        for (name, dimension), value in zip(self.space.items(), point):
            if isinstance(dimension, Categorical):
                named[name] = dimension.choices[int(value)]
            else:
                named[name] = int(value) if isinstance(dimension, Integer) else value
        return named

    def _numbers(self, point: Mapping[str, Any]) -> list[float]:
        """A point as the core takes it."""
        if set(point) != set(self.space):
            raise ValueError(f"a point has the inputs {list(self.space)}, not {list(point)}")
        numbers = []
        for name, dimension in self.space.items():
            value = _plain(point[name])
            if not isinstance(dimension, Categorical):
                numbers.append(float(value))
                continue
            # True is not 1 here
            places = [
                i for i, c in enumerate(dimension.choices) if type(_plain(c)) is type(value) and c == value
            ]
            if not places:
                raise ValueError(f"input {name!r} is {value!r}; it must be one of {list(dimension.choices)}")
            numbers.append(float(places[0]))
        return numbers

    def _trial(self, point: list[float], values: Optional[list[Optional[float]]]) -> Trial:
        if values is None:
            return Trial(self._named(point), None, {}, True)
        known = {name: value for name, value in zip(self._outcomes, values[1:]) if value is not None}
        return Trial(self._named(point), values[0], known, False)


def minimise(
    function: Callable[..., Any],
    space: Mapping[str, Dimension],
    trials: int = 50,
    *,
    callback: Optional[Callable[[Optimiser], Optional[bool]]] = None,
    **options: Any,
) -> Optimiser:
    """Minimises a function by Bayesian optimisation.

    Parameters
    ----------
    function : callable
        Takes the inputs by name; gives the value, or with constraints a pair of the value and a mapping of their outcomes. NaN or
        None is a failure. Exceptions are not caught.
    space : mapping of names to Real, Integer or Categorical
    trials : int
    callback : callable, optional
        Called with the optimiser after every trial; True ends the search.
    **options
        As for :class:`Optimiser`.

    Returns
    -------
    Optimiser
        With all trials; ``best()`` has the best.

    Examples
    --------
    >>> from sparsegp.bayesopt import Real, minimise
    >>> found = minimise(lambda x: (x - 0.3) ** 2, {"x": Real(-1, 1)}, 12).best()
    >>> bool(abs(found.point["x"] - 0.3) < 0.05)
    True
    """
    optimiser = Optimiser(space, **options)
    for _ in range(whole("trials", trials, 1)):
        point = optimiser.ask()
        found = function(**point)
        optimiser.tell(point, *(found if isinstance(found, tuple) else (found,)))
        if callback is not None and callback(optimiser):
            break
    return optimiser


def _moments(mean: ArrayLike, std: ArrayLike) -> tuple[Array, Array]:
    mean, std = np.broadcast_arrays(np.atleast_1d(mean), np.atleast_1d(std))
    means, deviations = vector(mean, "mean"), vector(std, "std")
    if not np.all(deviations > 0):
        raise ValueError("std must be above 0 everywhere")
    return means, deviations


def log_expected_improvement(
    mean: ArrayLike, std: ArrayLike, best: float, *, return_slopes: bool = False
) -> Union[Array, tuple[Array, Array, Array]]:
    """Returns the log of the expected improvement of f ~ N(mean, std²) on ``best``, where large values are better.

    It keeps its digits wherever the mean is (Ament et al. 2023). To minimise, give ``-mean`` and ``-best``.

    Parameters
    ----------
    mean, std : arrays of shape (n,)
    best : float
    return_slopes : bool
        Whether to return the slopes in mean and std as well: with those of ``GPRegressor.predict_gradients`` they make the slopes
        in the inputs.

    Returns
    -------
    array of shape (n,), or three

    Examples
    --------
    >>> from sparsegp.bayesopt import log_expected_improvement
    >>> [round(float(v), 3) for v in log_expected_improvement([0.0, -5.0], [1.0, 0.1], 0.0)]
    [-0.919, -1261.047]
    """
    value, by_mean, by_std = _core.log_expected_improvement(*_moments(mean, std), float(best))
    return (value, by_mean, by_std) if return_slopes else value


def log_probability_below(
    mean: ArrayLike, std: ArrayLike, bound: float, *, return_slopes: bool = False
) -> Union[Array, tuple[Array, Array, Array]]:
    """Returns the log of the probability that c ~ N(mean, std²) is at most ``bound``: what a constraint adds to the log of the
    expected improvement. As for :func:`log_expected_improvement`."""
    value, by_mean, by_std = _core.log_probability_below(*_moments(mean, std), float(bound))
    return (value, by_mean, by_std) if return_slopes else value
