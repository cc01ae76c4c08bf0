"""Small tables of real data, which the tutorials run on. They need pandas, and no network.

=============== ==== ================================================== =======================================
name            rows inputs                                             target
=============== ==== ================================================== =======================================
``airfoil``     1503 frequency, angle, chord, velocity, thickness as    ``y``, sound pressure in dB (centred)
                     ``x0`` to ``x4`` (centred)
``bikes-daily`` 500  ``temp_actual``, ``temp_feel`` (°F),               ``y``, rides a day
                     ``humidity`` (%), ``windspeed`` (miles an hour)
``co2``         521  ``year``                                           ``y``, monthly CO₂ at Mauna Loa in ppm
``coal``        112  ``year``                                           ``y``, disasters in British mines
``heart``       270  13 of a patient, ``x0`` to ``x12``                 ``y``, 1 with a heart disease
``lung-deaths`` 72   ``year``                                           ``female``, ``male``: a month's deaths from
                                                                        lung diseases in the United Kingdom
``mcycle``      133  ``x0``, milliseconds after the impact              ``y``, acceleration of a head in g
``nile``        100  ``year``                                           ``y``, flow at Aswan in 10⁸ m³
``oil-flow``    100  ``x0`` to ``x11``, sensors of a pipe               ``phase``, one of three kinds of flow
``quakes``      1000 ``latitude``, ``longitude`` (degrees, 0 to 360),   ``depth`` in km
                     ``magnitude``, ``stations``
=============== ==== ================================================== =======================================

>>> from sparsegp import data
>>> data.load("co2").shape
(521, 2)
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

__all__ = ["load", "names"]

_FOLDER = Path(__file__).parent
_END = ".csv.gz"


def names() -> list[str]:
    """Return the names of the tables, sorted."""
    return sorted(path.name[: -len(_END)] for path in _FOLDER.glob(f"*{_END}"))


def load(name: str) -> Any:
    """Read a table.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    pandas.DataFrame
        Inputs and targets, nothing standardised.

    Raises
    ------
    ValueError
        If there is no table of this name.
    ImportError
        Without pandas.
    """
    known = names()
    if name not in known:
        near = difflib.get_close_matches(str(name), known, 1)
        meant = f"did you mean '{near[0]}'? " if near else ""
        raise ValueError(f"there is no table {name!r}; {meant}There are {', '.join(known)}")
    try:
        import pandas
    except ImportError as error:
        raise ImportError("the bundled tables are read with pandas: pip install pandas") from error
    return pandas.read_csv(_FOLDER / f"{name}{_END}")
