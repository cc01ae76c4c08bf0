"""Inputs that are known up to a standard deviation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d

from .._arrays import Array
from .._hints import hint

# inputs by their places, with the names of the columns of their standard deviations
Pairs = list[tuple[int, str]]


def deviations(x_sd: Any, names: list[str], rows: int, frame: Any = None) -> Optional[tuple[Pairs, Array]]:
    """Which inputs have standard deviations, and what these are (rows × inputs); none where all are 0.

    ``x_sd`` is an array (all features, or the only one), or a mapping from features, by name or place, to standard deviations:
    an array, one number for all rows, or the name of a column of ``frame``.
    """
    if x_sd is None:
        return None
    if isinstance(x_sd, Mapping):
        pairs: Pairs = []
        columns = []
        for feature, given in x_sd.items():
            place = feature
            if not isinstance(feature, (int, np.integer)):
                if feature not in names:
                    raise ValueError(f"x_sd names the feature {feature!r}: {hint(str(feature), names)}")
                place = names.index(feature)
            if not 0 <= int(place) < len(names):
                raise ValueError(f"x_sd names the feature {feature}; there are {len(names)}")
            name = f"{names[int(place)]} sd"
            if isinstance(given, str):
                if frame is None or given not in [str(c) for c in getattr(frame, "columns", [])]:
                    raise ValueError(
                        f"x_sd[{feature!r}] is {given!r}, which is not a column of X: give the standard deviations themselves"
                    )
                name, given = given, np.asarray(frame[given])
            if np.ndim(given) == 0:
                given = np.full(rows, given)
            pairs.append((int(place), name))
            columns.append(column_or_1d(check_array(given, ensure_2d=False, dtype=np.float64)))
            if len(columns[-1]) != rows:
                raise ValueError(f"x_sd[{feature!r}] has {len(columns[-1])} values for {rows} rows")
        values = np.column_stack(columns) if columns else np.empty((rows, 0))
    else:
        values = check_array(x_sd, ensure_2d=False, dtype=np.float64)
        if values.ndim == 1 and len(names) == 1:
            values = values[:, None]
        if values.shape != (rows, len(names)):
            raise ValueError(f"x_sd has shape {values.shape}; expected ({rows}, {len(names)}), as X")
        pairs = [(place, f"{name} sd") for place, name in enumerate(names)]
    if (values < 0).any():
        row, at = np.argwhere(values < 0)[0]
        raise ValueError(
            f"x_sd of the feature {names[pairs[at][0]]!r} is {values[row, at]} in row {row}; it must be at least 0"
        )
    some = np.flatnonzero(values.any(axis=0))
    if some.size == 0:
        return None
    return [pairs[at] for at in some], np.asfortranarray(values[:, some])
