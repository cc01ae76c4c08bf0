"""Pictures along time."""

from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from .._future import as_datetimes, future
from ..estimators._frames import is_date
from ._pictures import _axes, _label, _quiet

# horizons of the past that are drawn, at most
_SHOWN = 10


def plot_forecast(
    estimator: Any,
    X: Any,
    y: Optional[ArrayLike],
    horizon: Union[int, str],
    step: Union[float, str, None] = None,
    *,
    num: int = 1600,
    level: float = 0.95,
    ax: Any = None,
) -> Any:
    """The last rows of a series, the mean with the interval of observations there, and the forecast after them.

    Of a long series the last ten horizons are drawn.

    Parameters
    ----------
    estimator : fitted regressor
        Of one input, which is a date or a number that means time, and one output.
    X : frame or array of one column
        Times that have been observed.
    y : array-like of shape (n_samples,), optional
        What was observed then.
    horizon, step
        How far, and the distance of the times, as for :func:`sparsegp.future`.
    num : int
        Number of points of the curve.
    level : float
        Probability of the interval.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Raises
    ------
    ValueError
        For a classifier, several inputs or outputs, and a horizon that :func:`sparsegp.future` refuses.
    """
    if hasattr(estimator, "predict_proba"):
        raise ValueError("the targets are classes, which have no band along time: see plot_1d")
    columns = estimator._about["columns"]
    calendar = len(columns) == 1 and is_date(columns[0]) and estimator.n_features_in_ > 1
    if estimator.n_features_in_ != 1 and not calendar:
        raise ValueError(
            f"the estimator has {estimator.n_features_in_} inputs; plot_forecast is for a single input, time"
        )
    known = estimator._inputs(X)[:, 0]
    end = float(estimator._inputs(future(X, horizon, step))[-1, 0])
    last = float(known.max())
    start = max(float(known.min()), last - _SHOWN * (end - last))
    tail = (1 - level) / 2
    ax = _axes(ax)
    # the last row belongs to both parts
    of_past = max(2, int(num * (last - start) / (end - start)))
    past, ahead = np.linspace(start, last, of_past), np.linspace(last, end, max(2, num - of_past))
    if calendar:
        # holidays are whole days
        past, ahead = np.arange(np.floor(start), last + 1), np.arange(np.floor(last), end + 1)
    for grid, colour, label in ((past, "C0", "mean of what is known"), (ahead, "C1", "forecast")):
        rows = grid[:, None]
        if calendar:
            cells = [str(day) for day in as_datetimes(grid).astype("datetime64[s]")]
            rows = np.array(estimator.fitted_.encoded(columns[0]["name"], cells, True))
        mean, bounds = _quiet(estimator.predict, rows, return_quantiles=[tail, 1 - tail])
        if mean.ndim > 1:
            raise ValueError("the estimator has several outputs; plot_forecast is for one")
        own = f"{100 * level:g} % of observations" if grid is past else None
        ax.fill_between(grid, bounds[:, 0], bounds[:, 1], color=colour, alpha=0.25, lw=0, label=own)
        ax.plot(grid, mean, color=colour, label=label)
    if y is not None:
        shown = known >= start
        ax.plot(known[shown], np.asarray(y, dtype=float)[shown], "k.", ms=3, alpha=0.5, label="rows")
    ax.axvline(last, color="0.6", lw=1)
    _label(ax.xaxis, estimator, 0)
    ax.legend()
    return ax
