"""Common to all tests."""

import os
import sys

import pytest

# scikit-learn skips one of its checks without it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    """Figures of a test, or of a page, do not pile up for the next ones: matplotlib warns of more than 20."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
