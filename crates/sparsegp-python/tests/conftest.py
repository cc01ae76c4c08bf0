"""Common to all tests."""

import os

# scikit-learn skips a check of its own without it
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
