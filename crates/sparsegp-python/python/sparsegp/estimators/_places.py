"""Places on Earth: pairs of columns of latitude and longitude as points of a sphere, in kilometres."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
from sklearn.utils.validation import check_array

from .. import _core
from .._arrays import Array
from . import _frames
from ._filled import is_filled_number

# columns, their numbers in rows, and the names of these
Encoded = tuple[list[_frames.Column], Array, list[str]]


def pairs_of(given: Any, names: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of columns by name, of these: those of arrays are ``x0``, ``x1``, … and may be given by their indices.

    Raises
    ------
    TypeError
        For anything but pairs of names or indices.
    ValueError
        For columns that are not there, and columns in two places.
    """
    if given is None:
        return []
    wrong = TypeError(
        "places is a list of pairs of columns, latitude and longitude, such as [('lat', 'long')] for a frame and "
        f"[(0, 1)] for an array, not {given!r}"
    )
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise wrong
    pairs: list[tuple[str, str]] = []
    for pair in given:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise wrong
        found = []
        for column in pair:
            index = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
            name = str(column)
            if index and name not in names and 0 <= column < len(names):
                name = names[column]
            if name not in names:
                raise ValueError(
                    f"places: there is no column {column!r}; there are {', '.join(map(repr, names))}"
                )
            found.append(name)
        pairs.append((found[0], found[1]))
    used = [name for pair in pairs for name in pair]
    twice = [name for name in used if used.count(name) > 1]
    if twice:
        raise ValueError(
            f"places: column {twice[0]!r} is given twice: a place is a latitude and a longitude, each a column "
            "that no other place has"
        )
    return pairs


def with_places(X: Any, found: Optional[Encoded], given: Any) -> Optional[Encoded]:
    """What :func:`_frames.encoded` found, with places: points for latitudes and longitudes.

    Raises
    ------
    ValueError
        For columns that hold no numbers in degrees, latitudes and longitudes beyond their ends, and as for :func:`pairs_of`.
    """
    if given is None or not len(given):
        return found
    if found is None:
        found = _of_numbers(X)
    columns, rows, inputs = found
    names = [column["name"] for column in columns]
    pairs = pairs_of(given, names)
    first = np.cumsum([0, *(len(_frames.input_names(column)) for column in columns)])
    for name in (name for pair in pairs for name in pair):
        column = columns[names.index(name)]
        if column["encoding"] != "number":
            if is_filled_number(column):
                raise ValueError(
                    f"places: column {name!r} has missing cells, and places are not filled: leave such rows out"
                )
            what = "dates" if _frames.is_date(column) else "text"
            raise ValueError(f"places: column {name!r} holds {what}, and places are numbers in degrees")
    longitudes = {longitude for _, longitude in pairs}
    of_latitude = dict(pairs)
    all_columns: list[_frames.Column] = []
    parts: list[Array] = []
    all_inputs: list[str] = []
    for at, (name, column) in enumerate(zip(names, columns)):
        if name in longitudes:
            continue
        own = rows[:, first[at] : first[at + 1]]
        if name in of_latitude:
            longitude = of_latitude[name]
            own = points(own[:, 0], rows[:, first[names.index(longitude)]], name, longitude)
            column = {"name": name, "encoding": {"place": {"longitude": longitude}}}
        all_columns.append(column)
        parts.append(own)
        all_inputs += _frames.input_names(column)
    return all_columns, np.hstack(parts), all_inputs


def points(latitude: Any, longitude: Any, *names: str) -> Array:
    """Points of the sphere, N×3 in kilometres."""
    numbers = [check_array(np.asarray(own, dtype=np.float64)[:, None])[:, 0] for own in (latitude, longitude)]
    found: Array = _core.place_points(
        np.ascontiguousarray(numbers[0]), np.ascontiguousarray(numbers[1]), names[0], names[1]
    )
    return found


def _of_numbers(X: Any) -> Encoded:
    """The columns of a frame or an array of numbers."""
    date = _frames.date_column(X)
    if date is not None:
        raise ValueError(_frames.durations(date))
    names = [str(name) for name in _frames.columns_of(X)]
    rows: Array = check_array(X, dtype=np.float64)
    if not names:
        names = [f"x{index}" for index in range(rows.shape[1])]
    return [{"name": name, "encoding": "number"} for name in names], rows, names


def sources(column: _frames.Column) -> list[str]:
    """The columns of a table that a column of a model is read from."""
    encoding = column["encoding"]
    if isinstance(encoding, dict) and "place" in encoding:
        return [column["name"], encoding["place"]["longitude"]]
    return [column["name"]]


def _are_of_array(names: list[str]) -> bool:
    return all(re.fullmatch(r"x\d+", name) for name in names)


def as_learnt(latitude: Array, longitude: Array, names: list[str]) -> Array:
    """An array of places as a model takes it that has learnt from places only, in columns of these names."""
    if not _are_of_array(names):
        return points(latitude, longitude, *names)
    both = np.column_stack([latitude, longitude])
    rows: Array = both if int(names[0][1:]) < int(names[1][1:]) else both[:, ::-1]
    return rows


def of_array(X: Any, columns: list[_frames.Column]) -> Optional[Any]:
    """The columns of an array by name, where a model with places has learnt from an array; none otherwise.

    Raises
    ------
    ValueError
        For another number of columns.
    """
    names = [name for column in columns for name in sources(column)]
    places = len(names) > len(columns)
    if not places or _frames.columns_of(X) or not _are_of_array(names):
        return None
    rows = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
    if rows.shape[1] != len(names):
        raise ValueError(
            f"X has {rows.shape[1]} features, but the model has learnt from {len(names)}, latitudes and longitudes among "
            "them"
        )
    return {name: rows[:, int(name[1:])] for name in names}
