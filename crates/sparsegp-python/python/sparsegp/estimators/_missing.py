"""Missing cells: rows that are left out, and what takes the place of others."""

from __future__ import annotations

import warnings
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from .._arrays import Array
from . import _frames
from ._arguments import level_of_caller
from ._filled import filled_column, filled_numbers, is_filled_number, missing_cells
from ._refused import check_infinity

# what fills missing inputs, and what there is besides
_FILLS = ("mean", "indicator", "category")
_CHOICES = ("refuse", "drop", "keep", *_FILLS)


def check(missing: Any) -> None:
    """Refuses words that are not among the choices."""
    if missing not in _CHOICES:
        raise ValueError(f"missing is {missing!r}; it must be one of {', '.join(map(repr, _CHOICES))}")


def check_unknown(unknown: Any) -> None:
    """Refuses words that are not among the choices for categories that no training row had."""
    if unknown not in ("refuse", "ignore"):
        raise ValueError(f"unknown is {unknown!r}; it must be 'refuse' or 'ignore'")


def fill(missing: str) -> Optional[str]:
    """How missing inputs are filled, if they are."""
    return missing if missing in _FILLS else None


def _rows_with_gaps(values: Any) -> NDArray[np.bool_]:
    """Which rows of an array or a frame have a missing cell."""
    columns = _frames.columns_of(values)
    parts = [values[name] for name in dict.fromkeys(columns)] if columns else [values]
    found = [missing_cells(np.asarray(part)).reshape(len(values), -1).any(axis=1) for part in parts]
    any_of: NDArray[np.bool_] = np.logical_or.reduce(found)
    return any_of


def complete(missing: str, X: Any, y: Any, *others: Any) -> tuple[Any, ...]:
    """Inputs, targets and what else rows have, without the rows that ``missing`` leaves out.

    Of a dict what has as many entries as there are rows is divided.

    Raises
    ------
    ValueError
        Where no row is left.
    """
    check(missing)
    if missing not in ("drop", "mean", "indicator"):
        return (X, y, *others)
    gaps = _rows_with_gaps(y)
    # what does not fit together is refused later, by name
    if missing == "drop" and len(X) == len(gaps):
        gaps = gaps | _rows_with_gaps(_frames.without_index(X))
    if not gaps.any() or len(X) != len(gaps):
        return (X, y, *others)
    kept = np.flatnonzero(~gaps)
    if len(kept) == 0:
        raise ValueError("no row is left: every one has a missing cell")
    # by their rows before some are left out
    check_infinity("X", X, ~gaps)
    check_infinity("y", y, ~gaps)
    warnings.warn(
        f"{len(gaps) - len(kept)} of {len(gaps)} rows with missing values are left out",
        UserWarning,
        stacklevel=level_of_caller(),
    )

    def part(of: Any) -> Any:
        if isinstance(of, dict):
            return {key: part(value) for key, value in of.items()}
        divided = of is not None and not isinstance(of, str) and hasattr(of, "__len__")
        return _safe_indexing(of, kept) if divided and len(of) == len(gaps) else of

    return tuple(part(of) for of in (X, y, *others))


def filled_array(X: Any, how: str) -> Optional[tuple[list[_frames.Column], Array, list[str]]]:
    """Columns, rows and names of inputs of an array with missing cells; none where nothing is missing, or X is not an array."""
    if _frames.columns_of(X):
        return None
    try:
        values = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if values.ndim != 2 or not np.isnan(values).any():
        return None
    columns, parts = [], []
    for j, own in enumerate(values.T):
        name = f"x{j}"
        column = filled_column(name, own, how)
        columns.append(column or {"name": name, "encoding": "number"})
        parts.append(own[:, None] if column is None else filled_numbers(column, own))
    return columns, np.hstack(parts), [name for own in columns for name in _frames.input_names(own)]


def array_as_learnt(X: Any, columns: list[_frames.Column]) -> Optional[Array]:
    """The inputs of an array that has the columns of one that was learnt from with missing cells; none of anything else."""
    plain = all(own["encoding"] == "number" or is_filled_number(own) for own in columns)
    filled = any(is_filled_number(own) for own in columns)
    if _frames.columns_of(X) or not (plain and filled):
        return None
    try:
        values = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if values.ndim != 2 or values.shape[1] != len(columns):
        return None
    parts = [
        filled_numbers(column, own) if is_filled_number(column) else own[:, None]
        for column, own in zip(columns, values.T)
    ]
    return np.hstack(parts)
