"""Types: the package is checked strictly, and the stub of the core says what the core has."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments):
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed():
    pytest.importorskip("mypy")
    run("mypy", "python/sparsegp")


def test_the_stub_is_the_cores():
    pytest.importorskip("mypy")
    run("mypy.stubtest", "sparsegp._core")


def test_importing_is_light():
    """NumPy comes along; scikit-learn, pandas and matplotlib wait until they are needed."""
    code = (
        "import sys, numpy, sparsegp; before = set(sys.modules); "
        "heavy = [m for m in ('sklearn', 'scipy', 'pandas', 'matplotlib') if m in sys.modules]; "
        "assert not heavy, heavy; from sparsegp import GPRegressor; assert 'sklearn' in sys.modules; "
        "assert 'matplotlib' not in sys.modules; "
        "import sparsegp as s; assert set(s.__all__) <= set(dir(s)); "
        "[getattr(s, name) for name in s.__all__]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
