"""What there is by name."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from . import _core


@cache
def entries(kind: str) -> tuple[dict[str, Any], ...]:
    """Those of a kind, read once: they are asked for with every row of a stream."""
    return tuple(json.loads(_core.registry())[kind])


def registry() -> dict[str, list[dict[str, Any]]]:
    """Kernels, likelihoods and methods: dictionaries with ``name``, ``aliases`` and ``about``, and for
    methods ``cost`` and ``source``. And the settings of a fit, with their names as arguments (``python``) and at the command
    line (``option``), what is ``allowed``, and the ``default``, None where it is left to the method or the data."""
    found: dict[str, list[dict[str, Any]]] = json.loads(_core.registry())
    return found
