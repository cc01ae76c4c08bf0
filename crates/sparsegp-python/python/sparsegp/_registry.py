"""What there is by name."""

from __future__ import annotations

import json
from typing import Any

from . import _core


def registry() -> dict[str, list[dict[str, Any]]]:
    """Kernels, likelihoods and methods: dictionaries with ``name``, ``aliases`` and ``about``, and for
    methods ``cost`` and ``source``."""
    found: dict[str, list[dict[str, Any]]] = json.loads(_core.registry())
    return found
