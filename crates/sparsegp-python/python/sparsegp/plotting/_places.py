"""Places on Earth as longitude and latitude, for maps."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from .._arrays import Array
from ..estimators._places import as_learnt, sources


def of_place(estimator: Any) -> Optional[list[str]]:
    """The columns of latitude and longitude where these are all that an estimator has learnt from."""
    columns = estimator._about["columns"]
    names = sources(columns[0]) if len(columns) == 1 else []
    return names if len(names) > 1 else None


def first_longitude(longitudes: Array) -> float:
    """The middle of the widest gap between longitudes: those that are less count as 360 more."""
    ordered = np.sort(longitudes)
    gaps = np.diff(ordered)
    if len(gaps) == 0 or gaps.max() <= ordered[0] + 360 - ordered[-1]:
        return -180.0
    at = int(gaps.argmax())
    return float(0.5 * (ordered[at] + ordered[at + 1]))


def on_map(points: Array, least: Optional[float] = None) -> tuple[Array, float]:
    """Longitude and latitude of points, N×2, and the longitude that they are counted from."""
    x, y, z = points.T
    longitude = np.degrees(np.arctan2(y, x))
    if least is None:
        least = first_longitude(longitude)
    longitude = np.where(longitude < least, longitude + 360, longitude)
    return np.column_stack([longitude, np.degrees(np.arctan2(z, np.hypot(x, y)))]), least


def to_learnt(places: Array, names: list[str]) -> Array:
    """Longitudes and latitudes, N×2, as an estimator takes them as an array."""
    return as_learnt(places[:, 1], places[:, 0], names)
