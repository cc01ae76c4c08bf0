"""Calendars of holidays in the forms in which people have them, as rows of dates with names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from . import _frames


def _days(name: Any, dates: Any) -> list[int]:
    """Days since 1970-01-01."""
    try:
        days = np.asarray(dates).astype("datetime64[D]")
    except (TypeError, ValueError):
        raise ValueError(f"holidays: {name!r} has {dates!r}, which is not a date") from None
    if np.isnat(days).any():
        raise ValueError(f"holidays: {name!r} has a missing date")
    return [int(day) for day in np.atleast_1d(days).ravel().astype(np.int64)]


def _of_frame(frame: Any) -> list[dict[str, Any]]:
    columns = [str(name) for name in _frames.columns_of(frame)]
    for name in ("date", "name"):
        if name not in columns:
            raise ValueError(f"holidays has the columns {', '.join(columns)}: it needs `date` and `name`")
    count = len(frame)
    windows = {}
    for side in ("before", "after"):
        numbers = np.asarray(frame[side], dtype=np.float64) if side in columns else np.zeros(count)
        numbers = np.nan_to_num(numbers)
        if (numbers < 0).any() or (numbers % 1 != 0).any():
            raise ValueError(f"holidays: `{side}` is a whole number of days, at least 0")
        windows[side] = numbers.astype(int)
    names, dates = np.asarray(frame["name"]), np.asarray(frame["date"])
    return [
        {
            "name": str(names[i]),
            "day": _days(names[i], dates[i : i + 1])[0],
            "before": int(windows["before"][i]),
            "after": int(windows["after"][i]),
        }
        for i in range(count)
    ]


def _of_mapping(given: Mapping[Any, Any]) -> list[dict[str, Any]]:
    rows = []
    for key, value in given.items():
        # of the package `holidays`: a date has a name, or several
        if isinstance(value, str):
            pairs = [(part.strip(), key) for part in value.split(";")]
        else:
            pairs = [(str(key), value)]
        rows += [{"name": name, "day": day} for name, dates in pairs for day in _days(name, dates)]
    return rows


def rows_of_holidays(given: Any) -> Optional[list[dict[str, Any]]]:
    """Holidays as rows with `name`, `day` (since 1970-01-01), and where there are such `before` and `after`, as model files keep them.

    Raises
    ------
    TypeError
        For anything but a frame, a mapping, or such rows.
    ValueError
        For dates that are none, and columns that are missing.
    """
    if given is None or (isinstance(given, list) and all(isinstance(row, dict) for row in given)):
        return given
    if _frames.columns_of(given):
        return _of_frame(given)
    if isinstance(given, Mapping):
        return _of_mapping(given)
    raise TypeError(
        "holidays is a frame with the columns `date` and `name`, a dict of names with their dates, or a calendar of the "
        f"package holidays, not a {type(given).__name__}"
    )


def holidays_text(given: Any) -> Optional[str]:
    """Holidays as the core reads them, as for :func:`rows_of_holidays`."""
    rows = rows_of_holidays(given)
    return None if rows is None else json.dumps(rows)
