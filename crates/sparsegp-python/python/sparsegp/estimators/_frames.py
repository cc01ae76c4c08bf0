"""Frames of pandas and Polars and Arrow tables: which columns hold no numbers, and what becomes of them."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays import Array
from ._filled import Column as Column
from ._filled import filled_column, filled_numbers


def columns_of(X: Any) -> list[Any]:
    """Names of the columns of a frame; none of anything else."""
    found = getattr(X, "column_names", getattr(X, "columns", ()))
    return [] if callable(found) else list(found)


def checked(X: Any, name: str = "X") -> Any:
    """X, if it is a frame that can be read.

    Raises
    ------
    TypeError
        For a query whose rows are not there yet.
    """
    kind = type(X).__name__
    if hasattr(X, "collect") and not hasattr(X, "__len__") and kind == "LazyFrame":
        raise TypeError(f"{name} is a LazyFrame, whose rows are not there yet: pass {name}.collect()")
    if kind in ("DuckDBPyRelation", "DuckDBPyConnection"):
        what = "relation" if kind.endswith("Relation") else "result"
        raise TypeError(
            f"{name} is a {what} of DuckDB, whose rows are not there yet: pass {name}.df(), {name}.pl() or {name}.arrow()"
        )
    return X


def _is_index(name: Any) -> bool:
    """Whether a column is the index of a frame that was written as a table."""
    return isinstance(name, str) and (name == "Unnamed: 0" or name.startswith("__index_level_"))


def without_index(X: Any) -> Any:
    """The frame without columns that are an index, as files are read."""
    names = columns_of(checked(X))
    kept = [name for name in names if not _is_index(name)]
    if len(kept) == len(names) or not kept:
        return X
    return X.select(kept) if hasattr(X, "select") else X[kept]


def text_column(X: Any) -> Any:
    """The first column of a frame that does not hold numbers."""
    for name in columns_of(X):
        try:
            np.asarray(X[name], dtype=np.float64)
        except (TypeError, ValueError):
            return name
    return None


def date_column(X: Any) -> Any:
    """The first column of a frame (or the whole of an array) that holds dates or times."""
    if isinstance(X, np.ndarray):
        return "X" if X.dtype.kind in "mM" else None
    if hasattr(X, "dtypes") and hasattr(X.dtypes, "items"):  # pandas
        kinds = [(name, getattr(dtype, "kind", "")) for name, dtype in X.dtypes.items()]
        return next((name for name, kind in kinds if kind in ("m", "M")), None)
    schema: Any = getattr(X, "schema", None)
    if hasattr(schema, "items"):  # Polars
        types = [(name, str(dtype)) for name, dtype in schema.items()]
    else:  # Arrow
        types = [(field.name, str(field.type)) for field in schema or ()]
    times = ("date", "time", "duration")
    return next((name for name, dtype in types if dtype.lower().startswith(times)), None)


def cells(values: NDArray[Any]) -> list[str]:
    """As a file would have them; nothing where a value is missing."""

    def cell(value: Any) -> str:
        if isinstance(value, (bytes, list, tuple, dict, set, np.ndarray)):
            raise ValueError(
                f"it holds {type(value).__name__}: decode bytes to text, and give every entry of a list a column"
            )
        if isinstance(value, (datetime.timedelta, np.timedelta64)):
            raise ValueError("it holds durations: turn it into numbers in a unit of your own, such as days")
        if isinstance(value, (bool, np.bool_)):
            return "true" if value else "false"
        text = str(value)
        missing = not isinstance(value, str) and text in ("None", "nan", "NaT", "<NA>")
        return "" if missing else text

    return [cell(value) for value in values]


def _is_categorical(column: Any) -> bool:
    """Whether the type of a column says that it holds categories."""
    kind = str(getattr(column, "dtype", getattr(column, "type", "")))
    return kind.startswith(("category", "Categorical", "Enum", "dictionary"))


def _number_type(values: NDArray[Any]) -> bool:
    """Whether values are numbers or durations by their type."""
    return values.dtype.kind in "biufcm"


def _is_bool(column: Any, values: NDArray[Any]) -> bool:
    """Whether a column holds truth values, which are categories as in files."""
    kind = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if values.dtype.kind == "O" and kind == "object":
        return all(isinstance(value, (bool, np.bool_)) for value in values)
    return values.dtype.kind == "b" or kind.startswith("bool")


def numbers(values: NDArray[Any]) -> Optional[Array]:
    """The values as numbers, if all of them are some; texts are read as those of files are."""
    if values.dtype.kind in "mMSUT" or any(isinstance(value, (str, bytes)) for value in values.flat):
        return None
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def in_words_of_frames(text: str, name: str) -> str:
    """A message about a column of a file, with remedies for a frame."""
    own = f"X[{name!r}]"
    for option, remedy in (
        (
            r"`--date-format ('[^`]*')`",
            rf"dates (`pandas.to_datetime({own}, format=\1)`, or `str.to_date` of Polars)",
        ),
        (
            r"pass `--(?:decimal|thousands).*",
            "turn the column into numbers, as `decimal` and `thousands` of `pandas.read_csv` do",
        ),
        (r"`--missing-words WORD,…`", "None"),
        (
            r"`--categorical [^`]*`",
            f"{own} as a categorical (`astype('category')` of pandas, `cast(pl.Categorical)` of Polars)",
        ),
        (r"leave it out \(`--ignore[^)]*\)", "leave it out of X"),
    ):
        text = re.sub(option, remedy, text, flags=re.DOTALL)
    return text


def is_date(column: Column) -> bool:
    """Whether a column holds dates, with holidays or without."""
    encoding = column["encoding"]
    if not isinstance(encoding, dict):
        return bool(encoding == "date")
    return "calendar" in encoding or bool("filled" in encoding and encoding["filled"]["date"])


def encoded(
    X: Any, kernel: str, holidays: Optional[str] = None, fill: Optional[str] = None
) -> Optional[tuple[list[Column], Array, list[str]]]:
    """The columns of a frame with texts, dates, categories or filled cells, its rows as numbers, and the names of these;
    the only date with holidays, where some are given.

    None where all columns hold numbers that are there, and for anything but a frame.

    Raises
    ------
    ValueError
        For texts that look like numbers or dates, or differ in nearly every row, as for a file; for holidays without
        a single column of dates.
    """
    found = _encoded(X, kernel, holidays, fill)
    dates = [column["name"] for column in found[0] if is_date(column)] if found else []
    if holidays is not None and len(dates) != 1:
        which = (
            f"has {len(dates)} ({', '.join(dates)})"
            if dates
            else "has none, as a frame of pandas or Polars has"
        )
        raise ValueError(f"holidays are days of the one column of X that holds dates, and X {which}")
    return found


def _encoded(
    X: Any, kernel: str, holidays: Optional[str], fill: Optional[str]
) -> Optional[tuple[list[Column], Array, list[str]]]:
    names = columns_of(X)
    if not names or len(X) == 0 or len(set(map(str, names))) < len(names):
        return None
    read: dict[str, Array] = {}
    texts: list[tuple[str, list[str]]] = []
    categorical = []
    for name in names:
        column = X[name]
        try:
            values = np.asarray(column)
        except Exception as error:
            raise ValueError(
                f"column {name!r} cannot be read ({error}): turn it into floats or texts"
            ) from error
        as_text = _is_categorical(column) or (values.ndim == 1 and _is_bool(column, values))
        if values.ndim != 1 or (_number_type(values) and not as_text):
            continue
        found = None if as_text else numbers(values)
        if found is None:
            if isinstance(name, tuple):
                raise ValueError(
                    "the names of columns are tuples (a MultiIndex): flatten them, as in "
                    "X.columns = ['_'.join(map(str, name)) for name in X.columns]"
                )
            try:
                texts.append((str(name), cells(values)))
            except ValueError as error:
                raise ValueError(f"column {name!r}: {error}") from None
            if as_text:
                categorical.append(str(name))
        else:
            read[str(name)] = found
    filled = _filled_of(X, names, read, texts, fill)
    if not texts and not filled:
        return None
    columns = dict(filled)
    for name, own in texts:
        try:
            text, found_rows = _core.encode(
                [str(n) for n in names], [(name, own)], categorical, kernel, holidays, fill
            )
        except ValueError as error:
            raise ValueError(in_words_of_frames(str(error), name)) from None
        columns[name] = (json.loads(text)[0], np.array(found_rows[0], dtype=np.float64))
    all_columns: list[Column] = []
    parts: list[Array] = []
    inputs: list[str] = []
    for name in map(str, names):
        if name in columns:
            column, rows = columns[name]
            all_columns.append(column)
            parts.append(rows)
            inputs += input_names(column)
            continue
        values = read[name] if name in read else np.asarray(X[_named(names, name)])
        if values.dtype.kind == "m":
            raise ValueError(durations(name))
        all_columns.append({"name": name, "encoding": "number"})
        parts.append(np.asarray(values, dtype=np.float64)[:, None])
        inputs.append(name)
    return all_columns, np.hstack(parts), inputs


def _filled_of(
    X: Any, names: list[Any], read: dict[str, Array], texts: list[tuple[str, list[str]]], fill: Optional[str]
) -> dict[str, tuple[Column, Array]]:
    """The columns of numbers with missing cells, and the inputs that they become with these filled."""
    if fill is None:
        return {}
    found = {}
    text = {name for name, _ in texts}
    for own in names:
        name = str(own)
        values = read[name] if name in read else np.asarray(X[own])
        if name in text or values.dtype.kind not in "biuf" or values.ndim != 1:
            continue
        values = np.asarray(values, dtype=np.float64)
        column = filled_column(name, values, fill)
        if column is not None:
            found[name] = (column, filled_numbers(column, values))
    return found


def _named(names: list[Any], text: str) -> Any:
    return next(name for name in names if str(name) == text)


def input_names(column: Column) -> list[str]:
    """Names of the inputs that a column becomes."""
    name, encoding = column["name"], column["encoding"]
    if isinstance(encoding, dict) and "calendar" in encoding:
        return [name, *(f"{name}={holiday}" for holiday in encoding["calendar"])]
    if isinstance(encoding, dict) and "place" in encoding:
        title = f"place({name}, {encoding['place']['longitude']})"
        return [f"{title}={coordinate}" for coordinate in "xyz"]
    if isinstance(encoding, dict) and "one-hot" in encoding:
        labels = encoding["one-hot"]
        # the empty label is that of missing cells
        gap = "(missing)" if "missing" in labels else "missing"
        # one of two says it all
        return [f"{name}={label or gap}" for label in (labels[1:] if len(labels) == 2 else labels)]
    if isinstance(encoding, dict) and "filled" in encoding:
        return [name, f"{name}=missing"] if encoding["filled"]["indicator"] else [name]
    return [name]


def refuse_times(name: str, values: Any) -> None:
    """Refuses dates and durations where numbers are needed: as numbers they are counts in whatever unit they are stored."""
    try:
        array = np.asarray(checked(values, name))
    except TypeError:
        raise
    except Exception as error:
        raise ValueError(f"{name} cannot be read ({error}): turn it into floats or texts") from error
    if array.dtype.kind in "mM":
        raise ValueError(durations(name))


def durations(name: Any) -> str:
    """What to do about a column whose numbers depend on how they are stored."""
    return (
        f"column {name!r} holds dates or times, whose numbers depend on how they are stored: turn it into "
        "numbers in a unit of your own, such as days ((X - X.min()) / np.timedelta64(1, 'D'))"
    )
