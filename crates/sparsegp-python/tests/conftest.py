"""Common to all tests."""

import os
import sys

import pytest

# scikit-learn skips one of its checks without it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# tests run side by side, and the threads of NumPy's products wait for each other without sleeping
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def closed_figures():
    """Figures of a test, or of a page, do not pile up for the next ones: matplotlib warns of more than 20."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
