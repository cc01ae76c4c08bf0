"""Collections of Dask: their partitions, and what is computed of them lazily."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import dask
import numpy as np
from dask import delayed
from numpy.typing import NDArray

from .. import _core
from .._arrays import Array
from ..shards import Part
from ._partitions import take_threads


def _part(X: Any, y: Any, sample_weight: Any, extra: Any) -> Part:
    return Part(X, y, sample_weight, extra)


def is_frame(collection: Any) -> bool:
    return hasattr(collection, "map_partitions") and hasattr(collection, "npartitions")


def _is_array(collection: Any) -> bool:
    return hasattr(collection, "map_blocks") and hasattr(collection, "chunks")


def _delayed(collection: Any, name: str) -> list[Any]:
    """The partitions of a collection, none of them read."""
    if _is_array(collection) and not is_frame(collection):
        if collection.ndim > 1:
            collection = collection.rechunk({axis: -1 for axis in range(1, collection.ndim)})
        return list(np.ravel(collection.to_delayed()))
    if hasattr(collection, "simplify"):
        # columns are chosen where they are read, and no more: a frame of few columns would be read in fewer, larger parts than
        # another frame of the same files
        return list(collection.simplify().to_delayed(optimize_graph=False))
    if hasattr(collection, "to_delayed"):
        return list(collection.to_delayed())
    if isinstance(collection, (list, tuple)) and all(dask.is_dask_collection(part) for part in collection):
        return list(collection)
    raise TypeError(
        f"{name} is a {type(collection).__name__}; give a Dask frame, a Dask array or a list of delayed parts. "
        "For rows in memory there are the estimators of `sparsegp`"
    )


def parts(X: Any, y: Any, sample_weight: Any, extra: Any) -> list[Any]:
    """Delayed partitions of all that belongs to the rows."""
    all_parts = []
    columns = {"X": X, "y": y, "sample_weight": sample_weight, "the further number": extra}
    inputs = _delayed(X, "X")
    for name, collection in columns.items():
        own = [None] * len(inputs) if collection is None else _delayed(collection, name)
        if len(own) != len(inputs):
            raise ValueError(
                f"X has {len(inputs)} partitions, and {name} {len(own)}: take both from one collection, or rechunk"
            )
        all_parts.append(own)
    pack = delayed(_part, pure=False)
    return [pack(*own) for own in zip(*all_parts)]


def is_lazy(X: Any) -> bool:
    return (
        is_frame(X)
        or _is_array(X)
        or isinstance(X, (list, tuple))
        and bool(X)
        and dask.is_dask_collection(X[0])
    )


def by_partition(
    function: Callable[..., Any], model: Any, columns: Sequence[Any], names: list[str], dtype: Any = np.float64
) -> Any:
    """Gives lazily what ``function(model, *parts)`` (n×k values) does, as X is: columns of a frame, an array, or parts."""
    X = columns[0]
    given = [c for c in columns if c is not None]
    places = [i for i, c in enumerate(columns) if c is not None]
    own = delayed(model)
    if is_frame(X):
        import pandas as pd

        meta = pd.DataFrame({name: np.empty(0, dtype=dtype) for name in names})
        about = (function, own, places, len(columns), names, dtype)
        return X.map_partitions(_of_frame, *about, *given[1:], meta=meta)
    call = delayed(_of_parts, pure=False)
    computed = [
        call(function, own, places, len(columns), len(names), dtype, *part)
        for part in zip(*(_delayed(c, "X") for c in given))
    ]
    if not _is_array(X):
        return computed
    import dask.array as da

    blocks = [
        da.from_delayed(part, shape=(rows, len(names)), dtype=dtype)
        for rows, part in zip(X.chunks[0], computed)
    ]
    return da.concatenate(blocks, axis=0)


def _of_parts(
    function: Callable[..., Any], model: Any, places: list[int], count: int, width: int, dtype: Any, *parts: Any
) -> NDArray[Any]:
    arguments: list[Any] = [None] * count
    for place, part in zip(places, parts):
        arguments[place] = part
    if len(parts[0]) == 0:
        return np.empty((0, width), dtype=dtype)
    take_threads()
    found = np.asarray(function(model, *arguments))
    return found.reshape(len(found), width)


def _of_frame(
    X: Any,
    function: Callable[..., Any],
    model: Any,
    places: list[int],
    count: int,
    names: list[str],
    dtype: Any,
    *others: Any,
) -> Any:
    import pandas as pd

    found = _of_parts(function, model, places, count, len(names), dtype, X, *others)
    return pd.DataFrame(found, columns=names, index=X.index)


def moments(std: bool, levels: Sequence[float], model: Any, X: Any, extra: Any) -> Array:
    """Means, standard deviations and quantiles of a partition, side by side."""
    further = None if extra is None else {model._extra_name: np.asarray(extra)}
    quantiles = list(levels) or None
    found = model.predict(X, return_std=std, return_quantiles=quantiles, **(further or {}))
    parts = found if isinstance(found, tuple) else (found,)
    return np.hstack([np.asarray(part).reshape(len(part), -1) for part in parts])


def labels(model: Any, X: Any) -> NDArray[Any]:
    return np.asarray(model.predict(X))[:, None]


def probabilities(model: Any, X: Any) -> Array:
    found: Array = model.predict_proba(X)
    return found


def densities(model: Any, X: Any, y: Any, extra: Any = None) -> Array:
    further = {} if extra is None else {model._extra_name: np.asarray(extra)}
    return np.asarray(model.log_predictive_density(X, np.asarray(y), **further))[:, None]


def _weights(sample_weight: Any, rows: int) -> Array:
    return np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64).ravel()


def squares(centre: Array, model: Any, X: Any, y: Any, sample_weight: Any, extra: Any) -> Array:
    """Σw, Σw(y − c), Σw(y − c)² and Σw(y − ŷ)² of a partition, for every target."""
    Y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
    if len(X) == 0:
        return np.zeros((4, Y.shape[1])).ravel()
    w = _weights(sample_weight, len(Y))[:, None]
    error, shifted = Y - moments(False, (), model, X, extra), Y - centre
    total = np.full(Y.shape[1], w.sum())
    sums = [total, (w * shifted).sum(0), (w * shifted**2).sum(0), (w * error**2).sum(0)]
    return np.array(sums).ravel()


def right(model: Any, X: Any, y: Any, sample_weight: Any) -> Array:
    """Σw and Σw of the rows whose class is predicted."""
    if len(X) == 0:
        return np.zeros(2)
    w = _weights(sample_weight, len(X))
    return np.array([w.sum(), w[model.predict(X) == np.asarray(y).ravel()].sum()])


def sums(function: Callable[..., Any], model: Any, *columns: Any) -> Array:
    """The sum of what ``function(model, *parts)`` gives for every partition."""
    all_parts = [None if c is None else _delayed(c, "X") for c in columns]
    counts = {len(own) for own in all_parts if own is not None}
    if len(counts) > 1:
        raise ValueError(f"the rows are in different numbers of partitions: {sorted(counts)}")
    lists = [[None] * max(counts) if own is None else own for own in all_parts]
    own_model, call = delayed(model), delayed(function, pure=False)
    return _core.total(list(dask.compute(*(call(own_model, *part) for part in zip(*lists)))))


def first(found: Any) -> Any:
    """The one column of what was found."""
    if isinstance(found, list):
        return found
    return found[found.columns[0]] if is_frame(found) else found[:, 0]
