"""Arrays and numbers as the core takes them."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def aligned(array: Any) -> Any:
    """Numbers that do not lie crooked in memory: a copy of those that do."""
    return None if array is None else np.require(array, np.float64, "A")


def matrix(x: ArrayLike, what: str = "X") -> Array:
    """Rows and columns; a list of numbers is one column."""
    array = np.require(x, np.float64, "A")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{what} has {array.ndim} dimensions; it must have 2: rows and columns")
    return array


def vector(y: Optional[ArrayLike], what: str = "Y") -> Any:
    """One number per row, or none at all."""
    if y is None:
        return None
    array = np.require(y, np.float64, "A")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{what} has shape {array.shape}; it must be one number per row")
    return array


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least so much."""
    if isinstance(value, bool) or int(value) != value or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number from {least}")
    return int(value)


def one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuses a word that is none of the known ones."""
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, known))}")
