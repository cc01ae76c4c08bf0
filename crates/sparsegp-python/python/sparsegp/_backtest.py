"""Series divided at cut-offs: a splitter for scikit-learn, and how well a model predicts after each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from . import _core
from ._arrays import Array
from ._future import as_datetimes, as_numbers, without_zone
from .estimators import _frames

__all__ = ["Backtest", "CutOffs", "backtest"]

# places of rows
Places = NDArray[np.int64]


def _time_of(X: Any, time: Union[int, str, None]) -> Any:
    """The column of X that is time."""
    X = _frames.checked(X)
    names = _frames.columns_of(X)
    if not names:
        values = np.asarray(X)
        if values.ndim == 2 and (time is not None or values.shape[1] == 1):
            return values[:, 0 if time is None else int(time)]
        if values.ndim != 1:
            raise ValueError(f"X has {values.shape[-1]} columns: say which is time, such as time=0")
        return X
    if time is not None:
        if time not in names:
            raise ValueError(f"time is {time!r}, and X has the columns {', '.join(map(str, names))}")
        return X[time]
    if len(names) == 1:
        return X[names[0]]
    single = [X.select([name]) if hasattr(X, "select") else X[[name]] for name in names]
    dates = [name for name, own in zip(names, single) if _frames.date_column(own) is not None]
    if len(dates) == 1:
        return X[dates[0]]
    index = getattr(X, "index", None)
    if not dates and getattr(getattr(index, "dtype", None), "kind", "") == "M":
        return index
    raise ValueError(
        f"X has the columns {', '.join(map(str, names))}: say which is time, such as time={names[0]!r}"
    )


def _divided(
    X: Any, horizon: Any, count: int, every: Any, time: Union[int, str, None], parts: int
) -> tuple[_core.CutOffs, Any, bool]:
    """The divisions of the rows, their times, and whether these are dates."""
    column = _time_of(X, time)
    if getattr(column, "tz", None) is not None:  # an index
        column = column.tz_convert("UTC").tz_localize(None)
    times, dates = as_numbers(without_zone(column))
    missing = int(np.count_nonzero(~np.isfinite(times)))
    if missing:
        warnings.warn(f"{missing} row(s) without a time are in no division", stacklevel=4)
    own = _core.CutOffs(
        np.ascontiguousarray(times), dates, str(horizon), count, None if every is None else str(every), parts
    )
    return own, times, dates


class CutOffs:
    """Divide a series at cut-offs, for ``cv=`` of scikit-learn: learn from rows up to each, test on those after it.

    Parameters
    ----------
    horizon : int or str
        How far the test rows reach after a cut-off: a number of steps, or of dates a length of time such as ``"36h"``,
        ``"26w"``, ``"6mo"`` or ``"1y"``.
    n_splits : int
        Number of cut-offs. The last one is a horizon before the last time.
    every : int or str, optional
        Distance of the cut-offs, as the horizon is given. By default the horizon, so that no row is tested on twice.
    time : str or int, optional
        Column of X that is time. By default the only one, or the only one with dates; of a frame of pandas without dates the
        index, if it holds some.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegp import CutOffs
    >>> [(train.tolist(), test.tolist()) for train, test in CutOffs(2, n_splits=2).split(np.arange(6.0)[:, None])]
    [([0, 1], [2, 3]), ([0, 1, 2, 3], [4, 5])]
    """

    def __init__(
        self,
        horizon: Union[int, str],
        n_splits: int = 5,
        every: Union[int, str, None] = None,
        time: Union[int, str, None] = None,
    ) -> None:
        self.horizon = horizon
        self.n_splits = n_splits
        self.every = every
        self.time = time

    def __repr__(self) -> str:
        return f"CutOffs(horizon={self.horizon!r}, n_splits={self.n_splits}, every={self.every!r}, time={self.time!r})"

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Places, Places]]:
        """Yield the places of training and test rows, the earliest cut-off first.

        Parameters
        ----------
        X : frame or array
            Rows in any order. Those without a time are in no division, with a warning.
        y, groups : ignored

        Raises
        ------
        ValueError
            For a horizon that cannot be read or is too long, more cut-offs than fit, and a horizon without rows.
        """
        own, _, _ = _divided(X, self.horizon, self.n_splits, self.every, self.time, 1)
        for index in range(self.n_splits):
            train, test, _ = own.rows(index)
            yield train, test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of cut-offs."""
        return self.n_splits


class Backtest:
    """What :func:`backtest` found.

    Attributes
    ----------
    scores : DataFrame or dict of arrays
        For every part of the horizon (``ahead``), and for all of it, and every ``forecast``, the model's and the simple ones:
        the number of ``rows``, ``rmse``, ``mae``, ``nlpd``, ``crps`` and ``in_95``, the share of the rows in the central 95 %
        interval. NaN where a forecast has no such score: simple ones have no densities, and only normal predictions a ``crps``.
    predictions : DataFrame or dict of arrays
        A row for every prediction: ``cutoff``, ``ahead``, ``time``, ``observed``, ``mean``, ``std``, ``lower``, ``upper``,
        and ``row``, its place in X.
    """

    def __init__(self, scores: Any, predictions: Any) -> None:
        self.scores = scores
        self.predictions = predictions

    def __repr__(self) -> str:
        if hasattr(self.scores, "to_string"):
            return str(self.scores.to_string(index=False, float_format=lambda v: f"{v:.4g}"))
        names = list(self.scores)
        lines = [names, *zip(*(self.scores[name] for name in names))]
        return "\n".join(
            "  ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in line) for line in lines
        )


def _frame(columns: dict[str, Any]) -> Any:
    try:
        import pandas as pd
    except ImportError:
        return {name: np.asarray(values) for name, values in columns.items()}
    return pd.DataFrame(columns)


def _rows(values: Any, places: Places) -> Any:
    """Some rows of a frame or an array."""
    if hasattr(values, "iloc"):
        return values.iloc[places]
    if hasattr(values, "take") and not isinstance(values, np.ndarray) and _frames.columns_of(values):
        return values.take(places)  # Arrow
    return values[places] if hasattr(values, "shape") else np.asarray(values)[places]


def _seasons(model: Any) -> list[str]:
    season = getattr(model, "season", None)
    return [season] if isinstance(season, str) else list(season or ())


def _scored(p: dict[str, Array], chosen: Any, normal: bool) -> dict[str, float]:
    """Scores of the model on some of its predictions."""
    error = p["observed"][chosen] - p["mean"][chosen]
    inside = (p["observed"] >= p["lower"]) & (p["observed"] <= p["upper"])
    own = [np.ascontiguousarray(p[name][chosen]) for name in ("observed", "mean", "std")]
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "nlpd": float(-np.mean(p["density"][chosen])),
        "crps": _core.normal_crps(own[0], own[1], own[2] ** 2) if normal else np.nan,
        "in_95": float(np.mean(inside[chosen])),
    }


def _predicted(
    own: _core.CutOffs, model: Any, X: Any, y: Array, simple: dict[str, Optional[str]], further: dict[str, Any]
) -> tuple[dict[str, Array], bool]:
    """What is predicted after every cut-off, and whether predictions are normal."""
    found: dict[str, list[Array]] = {}
    normal = True
    for index, cut in enumerate(own.times):
        train, test, part = own.rows(index)
        first, later = ({name: np.asarray(v)[at] for name, v in further.items()} for at in (train, test))
        fitted = clone(model).fit(_rows(X, train), y[train], **first)
        rows = _rows(X, test)
        mean, std, bounds = fitted.predict(rows, return_std=True, return_quantiles=[0.025, 0.975], **later)
        normal = normal and bool(fitted._about["normal"])
        new = {
            "observed": y[test],
            "mean": mean,
            "std": std,
            "lower": bounds[:, 0],
            "upper": bounds[:, 1],
            "density": fitted.log_predictive_density(rows, y[test], **later),
            "cutoff": np.full(len(test), cut),
            "part": part,
            "row": test,
        }
        new.update({name: own.simple(index, y, season) for name, season in simple.items()})
        for name, values in new.items():
            found.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in found.items()}, normal


def _lines(parts: list[str], p: dict[str, Array], simple: list[str], normal: bool) -> list[dict[str, Any]]:
    """Scores of every part of the horizon and of all, of the model and of simple forecasts."""
    lines: list[dict[str, Any]] = []
    everything = np.ones(len(p["row"]), bool)
    all_parts = [(f"to {label}", p["part"] == i) for i, label in enumerate(parts)]
    for ahead, chosen in [*all_parts, ("all", everything)]:
        head = {"ahead": ahead, "rows": int(chosen.sum())}
        if head["rows"] == 0:
            continue
        lines.append({**head, "forecast": "model", **_scored(p, chosen, normal)})
        for name in simple:
            error = p["observed"][chosen] - p[name][chosen]
            known = {"rmse": float(np.sqrt(np.mean(error**2))), "mae": float(np.mean(np.abs(error)))}
            lines.append({**head, "forecast": name, **known})
    return lines


def backtest(
    model: Any,
    X: Any,
    y: Any,
    *,
    horizon: Union[int, str],
    cutoffs: int = 5,
    every: Union[int, str, None] = None,
    time: Union[int, str, None] = None,
    parts: int = 4,
    **further: Any,
) -> Backtest:
    """Judge forecasts of a series: learn up to several cut-offs, and score what is predicted after each.

    A clone of the model is fitted to the rows up to every cut-off, so that scales, choices of ``auto``, kernel and hyperparameters
    know nothing of later rows. Beside its scores are those of simple forecasts: the last value, and for every ``season`` of the
    model the value one season before (or more, until it is known).

    Parameters
    ----------
    model : regressor of this package
        It is not changed.
    X : frame or array
        Rows in any order. Other columns than time are taken to be known in advance.
    y : array-like of shape (n_samples,)
    horizon, every, time
        As for :class:`CutOffs`.
    cutoffs : int
        Number of cut-offs.
    parts : int
        Number of parts of the horizon that are scored apart.
    **further
        What ``fit`` and ``predict`` take of every row, such as ``exposure``.

    Returns
    -------
    Backtest

    Raises
    ------
    ValueError
        As for :meth:`CutOffs.split`; for a classifier, several outputs and targets that are not finite.

    Examples
    --------
    >>> import numpy as np, sparsegp
    >>> X = np.arange(60.0)[:, None]
    >>> y = np.sin(X[:, 0] / 3) + 0.1 * np.cos(7 * X[:, 0])
    >>> found = sparsegp.backtest(sparsegp.GPRegressor("rbf"), X, y, horizon=4, cutoffs=3, parts=2)
    >>> list(found.scores["ahead"][:2]), int(found.scores["rows"][0])
    (['to 2 steps', 'to 2 steps'], 6)
    """
    if hasattr(model, "predict_proba"):
        raise ValueError("a backtest is for numbers and counts, and the model is a classifier")
    targets = np.asarray(y, dtype=np.float64)
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if targets.ndim != 1:
        raise ValueError(f"y has the shape {targets.shape}: a backtest is for one output")
    if not np.isfinite(targets).all():
        raise ValueError("y has missing or infinite values: leave those rows out")
    own, times, dates = _divided(X, horizon, cutoffs, every, time, parts)
    if len(times) != len(targets):
        raise ValueError(f"X has {len(times)} rows, and y {len(targets)}")
    seasons = [text.split("=")[-1].strip() for text in _seasons(model)]
    simple: dict[str, Optional[str]] = {
        "last value": None,
        **{f"value {text} before": text for text in seasons},
    }
    p, normal = _predicted(own, model, X, targets, simple, further)
    for name in [name for name in simple if np.isnan(p[name]).any()]:
        warnings.warn(
            f"{name}: not every row that is predicted has a known one a whole number of seasons before it",
            stacklevel=2,
        )
        del simple[name]
    lines = _lines(own.parts, p, list(simple), normal)
    scores = _frame({name: [line.get(name, np.nan) for line in lines] for name in lines[0]})
    shown = as_datetimes if dates else np.asarray
    predictions = {
        "cutoff": shown(p["cutoff"]),
        "ahead": np.array(own.parts)[p["part"]],
        "time": shown(times[p["row"]]),
        **{name: p[name] for name in ("observed", "mean", "std", "lower", "upper", *simple)},
        "row": p["row"],
    }
    return Backtest(scores, _frame(predictions))
