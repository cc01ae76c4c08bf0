"""Rows in partitions that stay where they are: what :mod:`sparsegp.dask`, :mod:`sparsegp.mpi` and others have in common.

A partition is looked at where it is (:func:`survey`), the driver settles columns, labels and encodings over all of them
(:func:`agree`), every partition becomes a :class:`Shard` (:func:`make`), and the core fits by rounds of requests:
``shard.answer(request)`` where the rows are, and :func:`total` for the sum. What carries functions to the partitions is a
:class:`Partitions`; here it is the process itself:

>>> import numpy as np
>>> from sparsegp import GPRegressor, shards
>>> class Here:
...     def __init__(self, parts):
...         self.parts = parts
...     def count(self):
...         return len(self.parts)
...     def ask(self, function, arguments):
...         return [function(part, *own) for part, own in zip(self.parts, arguments)]
...     def keep(self, function, arguments):
...         self.shards = [function(self.parts[i], *arguments[i]) for i in sorted(arguments)]
...     def ask_shards(self, function, *arguments):
...         return [function(shard, *arguments) for shard in self.shards]
...     def change(self, function, arguments):
...         self.shards = [function(shard, *own) for shard, own in zip(self.shards, arguments)]
...     def round(self, request):
...         return shards.total([shard.answer(request) for shard in self.shards])
...     def take(self, wanted):
...         return np.concatenate([self.shards[i].take(places) for i, places in wanted])
>>> X = np.linspace(0, 6, 300)[:, None]
>>> parts = [shards.Part(X[i : i + 100], np.sin(X[i : i + 100, 0])) for i in (0, 100, 200)]
>>> model = GPRegressor(n_inducing=20)
>>> shards.fit(model, GPRegressor, Here(parts))
>>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.01)
True
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from . import _core
from ._arrays import Array, aligned
from ._core import Shard, total
from .estimators import _frames
from .estimators._arguments import kernel_text, names, target_names
from .estimators._base import BaseGP
from .estimators._classifier import GPClassifier, _refuse_missing, levels, texts
from .estimators._regression import Regressor

__all__ = ["Part", "Partitions", "Plan", "Shard", "Sum", "agree", "fit", "make", "survey", "total"]


# cells that tell what a column of texts holds, as for a file
_PEEK = 1000
# distinct texts of a column of a partition that are kept: more are too many categories in any case
_MOST_TEXTS = 2000
# shards from which on a round is mostly messages
_MANY = 1000


class Part(NamedTuple):
    """Rows of a partition, as the user has them."""

    X: Any
    y: Any
    sample_weight: Any = None
    extra: Any = None


class Partitions(Protocol):
    """Partitions wherever they are, and the shards that are made of them."""

    def count(self) -> int:
        """Number of partitions."""

    def ask(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What ``function(part, *arguments[i])`` gives for every partition, in their order."""

    def keep(self, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> None:
        """Makes shards, ``function(part, *arguments[i])`` for these partitions, which stay there; the partitions are let go."""

    def ask_shards(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What ``function(shard, *arguments)`` gives for every shard, in their order."""

    def change(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
        """Puts ``function(shard, *arguments[i])`` in the place of every shard."""

    def round(self, request: bytes) -> Array:
        """The sum of all shards' answers along the binary tree over their indices."""

    def take(self, wanted: list[tuple[int, NDArray[np.int64]]]) -> Array:
        """Rows at places in shards, one after the other."""


class Plan(NamedTuple):
    """What all partitions have in common."""

    cls: type[BaseGP]
    params: dict[str, Any]
    # names of the columns of frames, None for arrays
    frame: Optional[list[str]]
    # how columns become numbers, where some hold none
    columns: Optional[list[_frames.Column]]
    inputs: list[str]
    classes: Optional[NDArray[Any]]
    y_ndim: int


class Sum:
    """Answers of some shards, which may be added in any order: with all of them the bits are those of :func:`total`.

    Parameters
    ----------
    index : int
        Index of the shard, from 0.
    answer : array
    count : int
        Number of shards.
    """

    def __init__(self, index: int, answer: Array, count: int) -> None:
        self.count = count
        # sums of aligned runs of 2^level shards that cannot be added up further yet
        self.nodes = {(0, index): answer}
        self._climb()

    def _climb(self) -> None:
        for level in range(self.count.bit_length() + 1):
            width = -(-self.count // 2**level)
            if width == 1:
                return
            for i in sorted(i for own, i in self.nodes if own == level):
                single = i % 2 == 0 and i == width - 1
                if single:
                    self.nodes[level + 1, i // 2] = self.nodes.pop((level, i))
                elif i % 2 == 0 and (level, i + 1) in self.nodes:
                    pair = [self.nodes.pop((level, i)), self.nodes.pop((level, i + 1))]
                    self.nodes[level + 1, i // 2] = total(pair)

    def __add__(self, other: Sum) -> Sum:
        both = Sum.__new__(Sum)
        both.count, both.nodes = self.count, {**self.nodes, **other.nodes}
        both._climb()
        return both

    def value(self) -> Array:
        """The sum of all answers.

        Raises
        ------
        ValueError
            If some are missing.
        """
        if len(self.nodes) != 1 or -(-self.count // 2 ** next(iter(self.nodes))[0]) != 1:
            raise ValueError(f"some of {self.count} answers are missing")
        return next(iter(self.nodes.values()))


# -- where the partitions are ----------------------------------------------------------------------


def _rows(values: Any) -> int:
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)


def survey(part: Part, cls: type[BaseGP], release: str) -> dict[str, Any]:
    """Looks at a partition: what the driver needs to know before any row becomes a number."""
    own = _core.__version__
    if own != release:
        raise ValueError(
            f"its worker has sparsegp {own}, and the driver {release}: install the same release everywhere"
        )
    X, y = _frames.without_index(part.X), part.y
    count = _rows(X)
    for name, values in (("y", y), ("sample_weight", part.sample_weight), ("the further number", part.extra)):
        if values is not None and _rows(values) != count:
            raise ValueError(f"X has {count} rows, and {name} has {_rows(values)}")
    frame = [str(name) for name in _frames.columns_of(X)] or None
    about: dict[str, Any] = {
        "rows": count,
        "frame": frame,
        "inputs": len(frame) if frame else (X.shape[1] if np.ndim(X) == 2 else None),
        "texts": {},
        "categorical": [],
        "targets": target_names(y),
        "y_ndim": int(np.ndim(y)),
        "outputs": 1 if np.ndim(y) < 2 else int(y.shape[1]),
        "given": (part.sample_weight is not None, part.extra is not None),
        "names": [next(iter(target_names(v)), None) for v in (part.sample_weight, part.extra)],
    }
    if about["inputs"] is None:
        raise ValueError(f"X has {np.ndim(X)} dimensions; it must have two")
    if count == 0:
        return about
    if frame:
        date = _frames.date_column(X)
        repeated = next((name for i, name in enumerate(frame) if name in frame[:i]), None)
        if repeated is not None:
            raise ValueError(f"several columns are called {repeated!r}: give each its own name")
        for name in frame:
            column = X[_frames._named(_frames.columns_of(X), name)]
            values = np.asarray(column)
            category = _frames._is_categorical(column) or _frames._is_bool(column, values)
            if _frames._number_type(values) and not category:
                if values.dtype.kind == "m":
                    raise ValueError(_frames.durations(date))
                continue
            cells = _frames.cells(values)
            # texts that could all be numbers are such, unless another partition shows otherwise
            convertible = not category and _frames.numbers(values) is not None
            about["texts"][name] = (cells[:_PEEK], sorted(set(cells))[:_MOST_TEXTS], convertible)
            if category:
                about["categorical"].append(name)
    if issubclass(cls, GPClassifier):
        _refuse_missing(y)
        labels = np.asarray(y).ravel()
        about["labels"], about["levels"] = np.unique(labels), levels(y)
    else:
        values = _finite(np.asarray(y, dtype=np.float64).reshape(count, -1), about["targets"], "target")
        about["whole"] = bool(np.all(values % 1 == 0))
    return about


def _finite(x: Array, inputs: Sequence[str], what: str) -> Array:
    bad = np.argwhere(~np.isfinite(x))
    if len(bad):
        row, column = bad[0]
        name = inputs[column] if column < len(inputs) else str(column)
        raise ValueError(f"row {row}, {what} {name!r} is {x[row, column]}")
    return x


def numbers_of(X: Any, plan: Plan) -> Array:
    """The inputs of a partition."""
    X = _frames.without_index(X)
    if plan.frame is None:
        x = np.asarray(X, dtype=np.float64)
    else:
        parts = []
        plain: list[_frames.Column] = [{"name": name, "encoding": "number"} for name in plan.frame]
        for column in plan.columns or plain:
            values = np.asarray(X[_frames._named(_frames.columns_of(X), column["name"])])
            if column["encoding"] == "number" and _frames.numbers(values) is None and not plan.columns:
                # what is missing has no number in columns of objects
                values = np.array([np.nan if cell == "" else cell for cell in _frames.cells(values)])
            if column["encoding"] == "number" and _frames.numbers(values) is not None:
                parts.append(np.asarray(values, dtype=np.float64)[:, None])
            else:
                found = _core.encoded(json.dumps(column), _frames.cells(values))
                parts.append(np.array(found, dtype=np.float64).reshape(len(values), -1))
        x = np.hstack(parts)
    return _finite(x, plan.inputs, "input")


def _codes(labels: NDArray[Any], classes: NDArray[Any]) -> Array:
    order = np.argsort(classes, kind="stable")
    places = np.searchsorted(classes[order], labels)
    codes = order[np.minimum(places, len(order) - 1)]
    known = classes[codes] == labels
    if not np.all(known):
        raise ValueError(f"y holds the class {labels[~known][0]!r}, which is none of {list(classes)}")
    return codes.astype(np.float64)[:, None]


def make(part: Part, plan: Plan) -> Shard:
    """Turns a partition into a shard, in the data's units."""
    estimator = plan.cls(**plan.params)
    x = numbers_of(part.X, plan)
    if plan.classes is not None:
        Y = _codes(np.asarray(part.y).ravel(), plan.classes)
    else:
        Y = np.asarray(part.y, dtype=np.float64).reshape(len(x), -1)
        Y = estimator._targets(Y)  # type: ignore[attr-defined]
    weights = None
    if part.sample_weight is not None:
        weights = np.asarray(part.sample_weight, dtype=np.float64).ravel()
        if not np.isfinite(weights).all() or (weights < 0).any():
            wrong = weights[~((weights >= 0) & np.isfinite(weights))][0]
            raise ValueError(f"sample_weight holds {wrong}; weights are at least 0")
    extra = None
    if part.extra is not None:
        name = getattr(estimator, "_extra_name", None)
        extra = estimator._extra(np.asarray(part.extra, dtype=np.float64).ravel(), len(x), name)
    return Shard(aligned(x), aligned(Y), weights=aligned(weights), extra=extra)


def statistics(shard: Shard) -> bytes:
    """Tells the statistics of a shard."""
    return shard.statistics()


def bodies(shard: Shard, all_rows: bytes) -> bytes:
    """Makes the second pass over a shard."""
    return shard.bodies(all_rows)


def scaled(shard: Shard, preparation: bytes, index: int, first: int) -> Shard:
    """Puts a shard on the model's scale."""
    return shard.scaled(preparation, index, first)


# -- the driver ------------------------------------------------------------------------------------


def _same(surveys: list[dict[str, Any]], key: str, what: str) -> Any:
    """What all partitions with rows agree on."""
    first, value = next((i, s[key]) for i, s in enumerate(surveys) if s["rows"])
    for i, own in enumerate(surveys):
        if own["rows"] and own[key] != value:
            raise ValueError(f"partition {i} has {what} {own[key]}, and partition {first} has {value}")
    return value


def _encodings(
    surveys: list[dict[str, Any]], frame: list[str], kernel: str
) -> tuple[Optional[list[_frames.Column]], list[str]]:
    """The columns of all partitions and the inputs that they become."""
    found_in = {name for s in surveys for name, own in s["texts"].items() if not own[2]}
    texts_of = sorted(found_in, key=frame.index)
    if not texts_of:
        return None, frame
    with_rows = [(i, s) for i, s in enumerate(surveys) if s["rows"]]
    columns: dict[str, _frames.Column] = {}
    for name in texts_of:
        lacking = next((i for i, s in with_rows if name not in s["texts"]), None)
        if lacking is not None:
            having = next(i for i, s in with_rows if name in s["texts"] and not s["texts"][name][2])
            raise ValueError(
                f"column {name!r} holds numbers in partition {lacking}, and texts or dates in partition {having}: give it "
                "one type in all partitions"
            )
        peeked = [cell for _, s in with_rows for cell in s["texts"][name][0]][:_PEEK]
        # what the first rows have not shown
        distinct = {cell for _, s in with_rows for cell in s["texts"][name][1]}.difference(peeked)
        categorical = [name] if any(name in s["categorical"] for _, s in with_rows) else []
        try:
            found, _ = _core.encode(frame, [(name, peeked + sorted(distinct))], categorical, kernel)
        except ValueError as error:
            raise ValueError(_frames.in_words_of_frames(str(error), name)) from None
        columns[name] = json.loads(found)[0]
    listed = [columns.get(name, {"name": name, "encoding": "number"}) for name in frame]
    return listed, [own for column in listed for own in _frames.input_names(column)]


def _classes(surveys: list[dict[str, Any]]) -> tuple[NDArray[Any], bool]:
    """The labels of all partitions, and whether they have their own order."""
    given = [s for s in surveys if s["rows"]]
    ordered = _same(surveys, "levels", "the levels")
    if ordered is not None:
        return np.array(ordered), True
    kinds = {s["labels"].dtype.kind in "OUS" for s in given}
    if len(kinds) > 1:
        raise ValueError("y holds texts in some partitions and numbers in others")
    labels = np.unique(np.concatenate([s["labels"] for s in given]))
    check_classification_targets(labels)
    return labels, False


def agree(estimator: BaseGP, cls: type[BaseGP], surveys: list[dict[str, Any]]) -> Plan:
    """Settles what all partitions have in common, as one machine would find it."""
    if not any(s["rows"] for s in surveys):
        raise ValueError("there are no rows: all partitions are empty")
    frame = _same(surveys, "frame", "the columns")
    count = _same(surveys, "inputs", "columns:")
    columns: Optional[list[_frames.Column]] = None
    if frame:
        columns, inputs = _encodings(surveys, frame, kernel_text(estimator.kernel))
    else:
        inputs = names(None, "x", count)
    classes = _classes(surveys)[0] if issubclass(cls, GPClassifier) else None
    if estimator.holidays is not None:
        raise ValueError("holidays are for rows in one process: add columns of 0 and 1 for them")
    if estimator.missing != "refuse":
        raise ValueError(
            f"missing={estimator.missing!r} is for rows in one process: leave rows with missing cells out, or fill them"
        )
    if estimator.places is not None:
        raise ValueError(
            "places are for rows in one process: add the columns cos(lat)·cos(long), cos(lat)·sin(long) and sin(lat)"
        )
    params = {k: v for k, v in estimator.get_params(deep=False).items() if k not in ("callback", "checkpoint")}
    y_ndim = _same(surveys, "y_ndim", "targets of this many dimensions:")
    return Plan(cls, params, frame, columns, inputs, classes, y_ndim)


def _classifier_likelihood(estimator: GPClassifier, plan: Plan, ordered: bool) -> Any:
    """The likelihood of a classifier of these classes, by its own rules."""
    taken: dict[str, Any] = {}

    def learn(*_: Any, **how: Any) -> None:
        taken.update(how)

    estimator._learn = learn  # type: ignore[method-assign]
    try:
        assert plan.classes is not None
        x = np.zeros((len(plan.classes), len(plan.inputs)))
        estimator._fit_labels(x, plan.classes, None, plan.classes, "y", partial=False, ordered=ordered)
    finally:
        del estimator._learn
    return taken["likelihood"]


def fit(estimator: BaseGP, cls: type[BaseGP], rows: Partitions, progress: Any = None) -> None:
    """Fits an estimator (of the local class ``cls`` or one derived from it) to rows in partitions."""
    refuse(estimator)
    count = rows.count()
    if count > _MANY:
        warnings.warn(
            f"the rows are in {count} partitions, and each costs a message in every round: repartition them, to a few for every "
            "worker",
            UserWarning,
            stacklevel=4,
        )
    surveys = rows.ask(survey, [(cls, _core.__version__)] * count)
    plan = agree(estimator, cls, surveys)
    present = [i for i, own in enumerate(surveys) if own["rows"]]
    sizes = [surveys[i]["rows"] for i in present]
    if sum(sizes) < 2:
        raise ValueError("there is one row only: at least two are needed to learn anything")
    estimator._columns = plan.columns
    estimator.n_features_in_ = len(plan.inputs)
    if plan.frame:
        estimator.feature_names_in_ = np.array(plan.inputs, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    first = surveys[present[0]]
    targets = first["targets"]
    columns: dict[str, Any] = {"inputs": plan.inputs, "standardise": bool(estimator.standardise)}
    if plan.columns is not None:
        columns["columns"] = plan.columns
    likelihood: Any
    if isinstance(estimator, GPClassifier):
        assert plan.classes is not None
        likelihood = _classifier_likelihood(estimator, plan, first["levels"] is not None)
        columns["classes"] = texts(plan.classes)
        columns["targets"] = [(targets or ["y"])[0]]
    else:
        assert isinstance(estimator, Regressor)
        estimator._y_ndim = plan.y_ndim
        whole = all(surveys[i]["whole"] for i in present)
        likelihood = estimator._likelihood(np.array([[1.0 if whole else 0.5]]))
        outputs = _same(surveys, "outputs", "targets:")
        columns["targets"] = targets if len(targets) == outputs else names(None, "y", outputs)
        if outputs == 1:
            estimator._y_ndim = 1
    given = _same(surveys, "given", "(weights, further numbers):")
    for key, at in (("weight", 0), ("extra", 1)):
        if given[at]:
            columns[key] = first["names"][at] or key
    rows.keep(make, {i: (plan,) for i in present})
    given = estimator._options(likelihood, estimator._seed())
    options, about = json.dumps(given), json.dumps(columns)
    gathered, again = _core.gathered(rows.ask_shards(statistics))
    if again:
        gathered = _core.with_bodies(gathered, rows.ask_shards(bodies, gathered))
    preparation = _core.preparation(gathered, options, about)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rows.change(scaled, [(preparation, i, int(start)) for i, start in zip(present, starts)])
    points = None
    if not isinstance(estimator.inducing, str):
        points = aligned(check_array(estimator.inducing, dtype=np.float64))
    fitted, error = _core.fit_elsewhere(
        sizes,
        gathered,
        preparation,
        options,
        about,
        round=rows.round,
        take=rows.take,
        points=points,
        callback=progress,
    )
    if fitted is not None:
        estimator._of_file = plan.columns is not None
    estimator._keep(fitted, error, options=given)


def refuse(estimator: BaseGP) -> None:
    """Refuses what is not there for rows in partitions."""
    for name in ("early_stopping", "online"):
        if getattr(estimator, name):
            raise ValueError(
                f"{name} is for rows on one machine: leave it out, or fit the estimator of `sparsegp` to a sample"
            )
