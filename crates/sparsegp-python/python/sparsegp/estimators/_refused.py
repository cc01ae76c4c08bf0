"""What is refused of rows, in words that name columns and cells: columns that are not there, missing cells, infinities."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from . import _frames
from ._filled import Column, missing_cells

# names that a message lists at most
_MOST_NAMES = 20


def _listed(names: Sequence[str], sign: str = "") -> str:
    shown = ", ".join(f"{sign}{name}{sign}" for name in names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def _nearest(name: str, among: Sequence[str]) -> Optional[str]:
    """The name among these that is likely to mean the same, in whatever case it is written."""
    lower = {other.strip().lower(): other for other in reversed(among)}
    near = difflib.get_close_matches(name.strip().lower(), list(lower), 1, 0.6)
    return lower[near[0]] if near else None


def check_columns(X: Any, learnt: Sequence[str], inputs: Sequence[str] = ()) -> None:
    """Refuses frames without some of the columns that were learnt from, unless they have the model's inputs instead; frames
    whose columns have no names are taken for arrays.

    Raises
    ------
    ValueError
        With the columns that are missing, and what may be meant instead.
    """
    given = _frames.columns_of(X)
    there = [str(name) for name in given]
    lacking = [name for name in learnt if name not in there]
    as_inputs = len(inputs) > 0 and set(inputs) <= set(there)
    named = all(isinstance(name, str) for name in given) or len(lacking) < len(learnt)
    if not there or not lacking or as_inputs or not named:
        return
    others = [name for name in there if name not in learnt]
    near = list(dict.fromkeys(own for own in (_nearest(name, others) for name in lacking) if own is not None))
    several = len(lacking) > 1
    raise ValueError(
        f"column{'s' * several} {_listed(lacking, '`')} {'are' if several else 'is'} missing from the frame; the model was "
        f"fitted on column{'s' * (len(learnt) > 1)} {_listed(learnt)}"
        + (f"; nearest: {_listed(near, '`')}" if near else "")
    )


def _infinite_cells(values: NDArray[Any]) -> NDArray[np.bool_]:
    own = values if values.dtype.kind in "biuf" else _frames.numbers(values)
    return np.zeros(values.shape, bool) if own is None else np.isinf(own)


def _parts(values: Any) -> list[tuple[Any, NDArray[Any]]]:
    """The columns of a frame by name, those of an array by index; the values of one column by none."""
    names = _frames.columns_of(values)
    if names:
        return [(f"`{name}`", np.asarray(values[name])) for name in dict.fromkeys(names)]
    array = np.asarray(values)
    return list(enumerate(array.T)) if array.ndim == 2 else [(None, array)]


def _is_filled(column: Column) -> bool:
    """Whether a model fills missing cells of a column."""
    encoding = column["encoding"]
    return isinstance(encoding, dict) and ("filled" in encoding or "" in encoding.get("one-hot", ()))


def _is_category(values: NDArray[Any]) -> bool:
    return values.dtype.kind != "M" and _frames.numbers(values) is None


def _first(found: list[tuple[Any, NDArray[np.bool_]]], what: str) -> Optional[str]:
    """Where the first of the cells that were found is, and how many there are."""
    count = sum(int(cells.sum()) for _, cells in found)
    if count == 0:
        return None
    rows = [
        (int(np.argmax(cells.reshape(len(cells), -1).any(axis=1))), name)
        for name, cells in found
        if cells.any()
    ]
    row, name = min(rows, key=lambda own: own[0])
    place = f"row {row}" if name is None else f"row {row}, column {name}"
    return f"{place}: is {what} ({f'the first of {count} such cells' if count > 1 else 'the only such cell'})"


_INFINITE = "leave such rows out, or put a number in the place of such cells"
_PREDICTED = (
    "leave such rows out, or fill them in; a model that is fitted with missing='mean', 'indicator' or 'category' fills "
    "the columns that had missing cells then"
)
_FITTED = (
    "pass missing='drop' to leave such rows out, missing='mean' or 'indicator' to fill such cells ('category' fills those of "
    "texts only), or fill them in before"
)
_TARGETS = "pass missing='drop' to leave such rows out, or fill them in before"


def _infinity(name: str, values: Any, among: Optional[NDArray[np.bool_]] = None) -> Optional[str]:
    found = [(own, _infinite_cells(cells)) for own, cells in _parts(values)]
    if among is not None:
        found = [(own, (cells.T & among).T) for own, cells in found]
    first = _first(found, "infinite")
    return first and f"Input {name} contains infinity: {first}: {_INFINITE}"


def check_infinity(name: str, values: Any, among: NDArray[np.bool_]) -> None:
    """Refuses infinities in some of the rows, before the others are left out."""
    text = _infinity(name, values, among)
    if text is not None:
        raise ValueError(text)


def _gaps(name: str, values: Any, missing: str, columns: Optional[list[Column]], fitted: bool) -> Optional[str]:
    parts = _parts(values)
    found = [(own, missing_cells(cells)) for own, cells in parts]
    if columns is not None:
        filled = {f"`{column['name']}`" for column in columns if _is_filled(column)}
        own_filled = [j for j, column in enumerate(columns) if _is_filled(column)]
        found = [(own, cells) for own, cells in found if own not in filled and own not in own_filled]
    elif missing == "category":
        found = [own for own, (_, cells) in zip(found, parts) if not _is_category(cells)]
    first = _first(found, "missing")
    remedy = _TARGETS if name == "y" else _PREDICTED if fitted else _FITTED
    return first and f"Input {name} contains NaN: {first}: {remedy}"


@contextmanager
def cells_named(X: Any, *y: Any, missing: str, columns: Optional[list[Column]], fitted: bool) -> Iterator[None]:
    """Errors about missing cells and infinities say where the first is, and what to do; ``columns`` are those of a model
    that predicts.

    Raises
    ------
    ValueError
        Those errors, and all others as they are.
    """
    try:
        yield
    except ValueError as error:
        own, text = str(error), None
        of_targets = own.startswith("Input y") and len(y) > 0
        name, values = ("y", y[0]) if of_targets else ("X", X)
        if "contains infinity" in own:
            text = _infinity(name, values)
        elif "contains NaN" in own or ": is missing: " in own:
            text = _gaps(name, values, missing, columns, fitted)
        if text is None:
            raise
        raise ValueError(text) from None
