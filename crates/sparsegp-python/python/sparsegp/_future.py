"""Times after the last of a series."""

from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np

from . import _core
from .estimators import _frames

_DAY = 86_400_000_000


def as_numbers(values: Any) -> tuple[Any, bool]:
    """Times as numbers, and whether they are dates, which become days since 1970-01-01; NaN where one is missing."""
    if values.dtype == object:
        try:
            # dates of the standard library, or texts
            values = values.astype("datetime64[us]")
        except (TypeError, ValueError):
            raise ValueError("X holds neither numbers nor dates: turn it into either") from None
    if values.dtype.kind in "OUSmb":
        raise ValueError("X holds neither numbers nor dates: turn it into either")
    if values.dtype.kind != "M":
        return np.asarray(values, dtype=np.float64), False
    micros = values.astype("datetime64[us]")
    return np.where(np.isnat(micros), np.nan, micros.astype(np.int64) / _DAY), True


def as_datetimes(days: Any) -> Any:
    return np.round(days * _DAY).astype(np.int64).astype("datetime64[us]")


def _column(X: Any) -> Any:
    """The values of the only column."""
    names = _frames.columns_of(X)
    if names and len(names) != 1:
        raise ValueError(
            f"X has {len(names)} columns ({', '.join(map(str, names))}): the future of all but time is not known here; "
            "make a frame with the times of `future(X[[time]], ...)` and the other columns"
        )
    values = without_zone(X[names[0]] if names else X)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"X has the shape {values.shape}: give only the times, one column")
    return values


def without_zone(column: Any) -> Any:
    """The values of a column; times of a zone as those of UTC."""
    if _zone(column) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return np.asarray(column)


def _zone(column: Any) -> Any:
    """The time zone of a column of pandas."""
    return getattr(getattr(column, "dt", None), "tz", None)


def _like(X: Any, name: Any, new: Any) -> Any:
    """A frame of the kind of X with other values in its only column."""
    column = X[name]
    if hasattr(X, "iloc"):
        import pandas as pd

        made = pd.Series(new)
        if _zone(column) is not None:
            made = made.dt.tz_localize("UTC").dt.tz_convert(_zone(column))
        elif column.dtype.kind in "Mf":
            made = made.astype(column.dtype)
        return pd.DataFrame({name: made})
    if type(X).__module__.startswith("polars"):
        import polars as pl

        made = pl.Series(name, new)
        own = column.dtype
        return pl.DataFrame({name: made.cast(own) if own.is_temporal() or own.is_float() else made})
    import pyarrow as pa

    made = pa.array(new)
    temporal = pa.types.is_temporal(column.type) or pa.types.is_floating(column.type)
    return pa.table({name: made.cast(column.type) if temporal else made})


def future(X: Any, horizon: Union[int, str], step: Optional[Union[float, str]] = None) -> Any:
    """Return the times after the last of a series, as new rows for ``predict``.

    Parameters
    ----------
    X : frame or array of one column
        Times that have been observed, in any order: dates (pandas or Polars, or an array of ``datetime64``) or numbers.
    horizon : int or str
        How far: a number of steps, or of dates a length of time such as ``"90min"``, ``"36h"``, ``"10d"``, ``"52w"``,
        ``"6mo"``, ``"4q"`` or ``"1y"``.
    step : float or str, optional
        Distance of the times, in the units of ``X`` (of dates: days) or as a length such as ``"1d"``. By default the median
        distance, or calendar months, quarters or years where dates follow each other so.

    Returns
    -------
    frame or array
        Of the kind of ``X``: the new times. Columns that hold days keep no time of day.

    Raises
    ------
    ValueError
        For several columns, missing times, a horizon or step that cannot be read, and a horizon shorter than a step or
        longer than a million.

    Examples
    --------
    >>> import numpy as np, sparsegp
    >>> sparsegp.future(np.array([[1.0], [1.5], [2.0]]), 2).tolist()
    [[2.5], [3.0]]
    >>> sparsegp.future(np.array(["2024-01-31", "2024-02-29"], "datetime64[D]"), "1q").astype("datetime64[D]").astype(str).tolist()
    ['2024-03-31', '2024-04-30', '2024-05-31']
    """
    values = _column(_frames.checked(X))
    known, dates = as_numbers(values)
    if dates and np.isnan(known).any():
        raise ValueError("X has missing times: leave those rows out")
    found = _core.future(known, dates, str(horizon), None if step is None else str(step))
    new = as_datetimes(found) if dates else found
    names = _frames.columns_of(X)
    if not names:
        return new[:, None] if getattr(X, "ndim", 1) == 2 else new
    return _like(X, names[0], new)
