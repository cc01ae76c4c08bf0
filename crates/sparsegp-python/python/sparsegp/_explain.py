"""What a fitted model has learnt of its inputs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from . import _core
from ._arrays import Array, whole

# how large a correlation has to be for a warning
_CORRELATED = 0.7


@dataclass(frozen=True)
class Share:
    """An estimate with its 95 % interval; the interval is NaN where none is known."""

    mean: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Effect:
    """How a response depends on one input."""

    #: Name of the input.
    input: str
    #: Name of the response: the target, or ``p_LABEL``.
    response: str
    #: ``"numbers"``, ``"dates"`` or ``"categories"``.
    kind: str
    #: Whether the mean over the rows is 0 (accumulated effects).
    centred: bool
    #: Values of the input, of shape (k,): numbers, ``datetime64`` or labels.
    values: Any
    #: Of shape (k,), in the target's units.
    mean: Array
    #: Lower ends of the 95 % intervals.
    lower: Array
    #: Upper ends.
    upper: Array


@dataclass(frozen=True)
class Explanation:
    """What a model has learnt of its inputs, as :func:`sparsegp.explain` finds it."""

    #: Names of what is predicted.
    responses: list[str]
    #: By response: the standard deviation of its predictions over the rows.
    deviation: dict[str, float]
    #: By response and input: the share of the variance that an input explains by itself.
    first: dict[str, dict[str, Share]]
    #: By response and input: the share with all interactions of the input.
    total: dict[str, dict[str, Share]]
    #: An effect for every response and input.
    effects: list[Effect]

    def effect(self, input: str, response: Optional[str] = None) -> Effect:
        """Return the effect of an input, on the first response unless another is named.

        Raises
        ------
        KeyError
            For an input without an effect, or a response that is not there.
        """
        name = self.responses[0] if response is None else response
        for own in self.effects:
            if own.input == input and own.response == name:
                return own
        raise KeyError(f"no effect of {input!r} on {name!r}")

    def __str__(self) -> str:
        lines = []
        for response in self.responses:
            lines.append(
                f"shares of the variance of predictions of {response}, whose standard deviation is "
                f"{self.deviation[response]:.3g}: alone, with interactions"
            )
            total = self.total[response]
            for name in sorted(total, key=lambda own: -total[own].mean):
                lines.append(f"  {name}: {self.first[response][name].mean:.2f}, {total[name].mean:.2f}")
        return "\n".join(lines)


def _array(values: Sequence[Optional[float]]) -> Array:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _share(own: dict[str, Optional[float]]) -> Share:
    mean, lower, upper = _array([own["mean"], own["lower"], own["upper"]]).tolist()
    return Share(mean, lower, upper)


def _effect(own: dict[str, Any]) -> Effect:
    values = np.asarray(own["values"])
    if own["kind"] == "dates":
        values = np.round(values * 86_400_000_000).astype(np.int64).astype("datetime64[us]")
    ends = [_array(own[name]) for name in ("mean", "lower", "upper")]
    return Effect(own["input"], own["response"], own["kind"], own["centred"], values, *ends)


def explain(
    estimator: Any,
    X: Any,
    *,
    inputs: Optional[Sequence[str]] = None,
    accumulated: bool = False,
    points: int = 20,
    rows: int = 200,
    draws: int = 400,
    samples: int = 1024,
    functions: int = 50,
    random_state: int = 0,
) -> Explanation:
    """Return how predictions depend on every input, and what share of their variation each explains.

    Effects are of the expected observation, in the target's units (of classes: of their probabilities), with 95 % intervals of
    what is not known of the function. Shares are Sobol indices; they take inputs as independent of each other, and a warning
    names inputs that are not.

    Parameters
    ----------
    estimator : fitted estimator
    X : frame or array of shape (n, d)
        Rows over which effects are averages, complete ones; those of the training, say.
    inputs : sequence of str, optional
        Effects of these columns only. Columns of an array are called ``x0``, ``x1``, ….
    accumulated : bool
        Accumulated local effects (Apley & Zhu 2020), centred, for inputs that depend on each other, instead of partial
        dependence (Friedman 2001), the average prediction were an input the same in all rows.
    points : int
        Values of an input of numbers at which its effect is evaluated.
    rows : int
        Rows of ``X``, picked at random, that effects are averages over.
    draws : int
        Joint draws of which intervals of effects are quantiles.
    samples : int
        Rows of each design that shares are estimated from (Saltelli et al. 2010).
    functions : int
        Drawn functions that shares are averages over.
    random_state : int
        Seed of everything random.

    Returns
    -------
    Explanation

    Raises
    ------
    TypeError
        For anything but an estimator of this package, such as a pipeline.
    ValueError
        For inputs that are not the model's, missing values, and numbers that are too small.

    Examples
    --------
    >>> import numpy as np, sparsegp
    >>> X = np.random.default_rng(0).uniform(-1, 1, (150, 2))
    >>> model = sparsegp.GPRegressor().fit(X, 3 * X[:, 0] + X[:, 1] ** 2)
    >>> found = sparsegp.explain(model, X)
    >>> bool(found.total[found.responses[0]]["x0"].mean > 0.9)
    True
    """
    if not hasattr(estimator, "_inputs"):
        raise TypeError(
            f"explain takes a regressor or classifier of sparsegp, not {type(estimator).__name__}: of a pipeline give the last step, "
            "with X as that sees it"
        )
    x = estimator._inputs(X)
    names = None if inputs is None else [str(name) for name in inputs]
    text = _core.explain(
        estimator.fitted_,
        x,
        inputs=names,
        accumulated=bool(accumulated),
        points=whole("points", points, 2),
        rows=whole("rows", rows, 1),
        draws=whole("draws", draws, 2),
        samples=whole("samples", samples, 2),
        functions=whole("functions", functions, 2),
        seed=whole("random_state", random_state, 0),
    )
    found = json.loads(text)
    correlated = found["correlated"]
    if correlated is not None and abs(correlated[2]) > _CORRELATED:
        one, other, how = correlated
        warnings.warn(
            f"{one!r} and {other!r} are not independent (their correlation is {how:.2f}): shares of such inputs cannot be "
            "separated, and effects are better taken with accumulated=True",
            UserWarning,
            stacklevel=2,
        )
    if found["no_intervals"] is not None:
        warnings.warn(f"shares have no intervals: {found['no_intervals']}", UserWarning, stacklevel=2)
    by_input = {
        kind: {
            own["response"]: {each["input"]: _share(each[kind]) for each in own["inputs"]}
            for own in found["shares"]
        }
        for kind in ("first", "total")
    }
    return Explanation(
        found["responses"],
        {own["response"]: float(_array([own["deviation"]])[0]) for own in found["shares"]},
        by_input["first"],
        by_input["total"],
        [_effect(own) for own in found["effects"]],
    )
