"""What takes the place of missing cells of columns of numbers."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from .._arrays import Array

# a column of a table as a model keeps it: its name, and how it becomes numbers
Column = dict[str, Any]


def missing_cells(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values of an array are missing: NaN, NaT and None."""
    found: NDArray[np.bool_]
    if values.dtype.kind in "fc":
        found = np.isnan(values)
        return found
    if values.dtype.kind in "mM":
        found = np.isnat(values)
        return found
    if values.dtype.kind != "O":
        return np.zeros(values.shape, bool)
    cells = [not isinstance(v, str) and str(v) in ("None", "nan", "NaT", "<NA>") for v in values.flat]
    return np.array(cells, bool).reshape(values.shape)


def filled_column(name: str, values: Array, how: str) -> Optional[Column]:
    """The column of numbers with what fills its missing cells, if there are some.

    Raises
    ------
    ValueError
        Where all cells are missing.
    """
    gaps = np.isnan(values)
    if how == "category" or not gaps.any():
        return None
    if gaps.all():
        raise ValueError(f"column {name!r} is missing in all rows; leave it out")
    mean = float(np.mean(values[~gaps]))
    own = {"value": mean, "date": False, "indicator": how == "indicator"}
    return {"name": name, "encoding": {"filled": own}}


def filled_numbers(column: Column, values: Array) -> Array:
    """The inputs that numbers of a column become, as many rows as there are, whose missing cells are filled."""
    own = column["encoding"]["filled"]
    gaps = np.isnan(values)
    inputs = np.where(gaps, own["value"], values)[:, None]
    return np.hstack([inputs, gaps[:, None].astype(float)]) if own["indicator"] else inputs


def is_filled_number(column: Column) -> bool:
    """Whether a column holds numbers whose missing cells are filled."""
    encoding = column["encoding"]
    return isinstance(encoding, dict) and "filled" in encoding and not encoding["filled"]["date"]
