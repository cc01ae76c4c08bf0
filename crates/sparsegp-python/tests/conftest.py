"""Common to all tests."""

import os

# scikit-learn skips one of its checks without it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
