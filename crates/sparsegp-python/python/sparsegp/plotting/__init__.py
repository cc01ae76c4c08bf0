"""Pictures with matplotlib, which is asked for only here: ``pip install "sparsegp[plot]"``.

Every function draws into ``ax``, or makes axes, and returns them.
"""

from __future__ import annotations

from ._pictures import (
    plot_1d,
    plot_calibration,
    plot_effect,
    plot_layers,
    plot_map,
    plot_predictions,
    plot_relevance,
    plot_shares,
    plot_trace,
)
from ._report import report
from ._series import plot_forecast

__all__ = [
    "plot_1d",
    "plot_calibration",
    "plot_effect",
    "plot_forecast",
    "plot_map",
    "plot_predictions",
    "plot_layers",
    "plot_relevance",
    "plot_shares",
    "plot_trace",
    "report",
]
