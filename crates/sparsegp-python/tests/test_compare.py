"""`bench/compare.py`: its jobs do what they say, and its table what it must. Nothing is timed in earnest."""

import importlib.util
import json
import math
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

REPO = Path(__file__).parents[3]
WORKER = REPO / "bench" / "compare" / "worker.py"
pytestmark = pytest.mark.skipif(not WORKER.exists(), reason="the comparison is not in this tree")

SMALL = {
    "sgpr": {"n": 300, "m": 20},
    "gpr": {"n": 120},
    "svgp": {"n": 2000, "m": 20, "b": 50},
    "predict": {"n": 300, "m": 20, "new": 200},
    "classify": {"way": "TSVGP"},
    "table": {"table": "yacht", "splits": 1},
    "deep": {"n": 300, "m": 10, "b": 100, "layers": 2, "way": "L"},
}


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def compare():
    return module_of(REPO / "bench" / "compare.py")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("compare") / "data.npz"
    run("--make-data", path, REPO / "testdata", "yacht")
    return path


def run(*arguments):
    command = [sys.executable, WORKER, *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def job(data, peer, kind, precision="double"):
    asked = {
        "peer": peer,
        "kind": kind,
        "precision": precision,
        "threads": 1,
        "data": str(data),
        "seconds": 0.01,
        "way": "",
        **SMALL[kind],
    }
    return json.loads(run(json.dumps(asked)).splitlines()[-1].removeprefix("RESULT "))


ASKED = [
    *((kind, "double") for kind in SMALL),
    *((kind, "single") for kind in ("sgpr", "svgp", "classify", "deep", "predict")),
]


@pytest.mark.parametrize("kind, precision", ASKED)
def test_jobs_of_ours(data, kind, precision):
    result = job(data, "sparsegp", kind, precision)
    assert {"cores", "others"} <= result.keys()
    if kind == "classify":
        seconds, scores = zip(*result["trace"])
        assert min(seconds) > 0
        # far better than chance after one iteration, and better still later
        assert min(scores) < scores[0] < 0.5 * math.log(2)
        return
    assert result["seconds"] > 0
    if kind == "table":
        assert len(result["scores"]["RMSE"]) == 1 and result["scores"]["RMSE"][0] < 2
    elif kind not in ("svgp", "deep"):
        assert math.isfinite(result["value"])


def test_mixed_precision_predicts_the_same_but_for_rounding(data):
    double, mixed = (job(data, "sparsegp", "predict", p)["value"] for p in ("double", "single"))
    assert mixed != double and mixed == pytest.approx(double, rel=1e-4)


def test_a_fit_that_goes_back_to_double_precision_has_no_number():
    sys.path.insert(0, str(WORKER.parent))
    try:
        with warnings.catch_warnings():
            mixed = module_of(WORKER.parent / "peer_sparsegp_mixed.py")
            rows = np.random.default_rng(1).standard_normal((200, 2))
            d = SimpleNamespace(X=rows, y=rows[:, :1], Z=rows[:50], variance=1.0, noise=1e-8)
            d.lengthscales = np.full(2, 10.0)
            with pytest.raises(UserWarning, match="in double precision"):
                mixed.sgpr(d, {"seconds": 0.01})
    finally:
        sys.path.remove(str(WORKER.parent))


def test_peers_in_single_precision_are_given_float32(data):
    worker = module_of(WORKER)
    asked = {"kind": "sgpr", "data": str(data), "n": 10, "m": 3}
    for peer, precision, expected in [
        ("gpjax", "single", "float32"),
        ("gpjax", "double", "float64"),
        ("sparsegp", "single", "float64"),
    ]:
        d = worker.load({**asked, "peer": peer, "precision": precision})
        assert {a.dtype.name for a in vars(d).values() if hasattr(a, "dtype")} == {expected}


def test_the_meter_counts_this_process_and_not_what_waits():
    meter, start = module_of(WORKER).Meter(), time.process_time()
    while time.process_time() < start + 0.5:
        pass
    busy = meter.report()
    # however much else runs, one thread keeps no more than one core
    assert 0 < busy["cores"] < 1.1
    meter = module_of(WORKER).Meter()
    time.sleep(0.3)
    assert meter.report()["cores"] < busy["cores"]


def test_jobs_have_the_values_of_scikit_learn(data):
    ours, theirs = (job(data, peer, "gpr")["value"] for peer in ("sparsegp", "scikit-learn"))
    assert ours == pytest.approx(theirs, rel=1e-8)
    ours, theirs = (job(data, peer, "table")["scores"]["RMSE"][0] for peer in ("sparsegp", "scikit-learn"))
    assert ours == pytest.approx(theirs, rel=0.2)


def test_ratios_are_to_the_fastest_peer(compare):
    row = compare.table_row("job", 2, {"sparsegp": 2.0, "gpflow": 9.0, "gpjax": 5.0, "gpytorch": None})
    assert row == ["job", 2, "2.00", "9.00", "5.00", "-", "2.50 (gpjax)"]
    row = compare.table_row("job", 2, {"sparsegp": 2.0, "gpflow": 9.0}, {"gpflow"})
    assert row[-2:] == ["9.00?", "4.50? (gpflow)"]
    assert compare.table_row("job", 1, {"sparsegp": None, "gpflow": 9.0})[-1] == "-"
    assert compare.table_row("job", 1, {"sparsegp": 1.0})[-1] == "-"


def test_scores_stop_the_clock(compare):
    args = SimpleNamespace(nll=0.25)
    assert compare.seconds_of({"trace": [(1, 0.4), (2, 0.24), (3, 0.2)]}, args) == 2
    with pytest.raises(compare.Failure, match="0.3000"):
        compare.seconds_of({"trace": [(1, 0.4), (2, 0.3)]}, args)
    assert compare.seconds_of({"seconds": 3.0}, args) == 3.0


def test_values_that_differ_are_reported(compare):
    cells = {}
    for peer, value in (("sparsegp", -10.0), ("gpflow", -10.0005), ("gpjax", -11.0)):
        cells[peer] = compare.Cell(peer, "gpr-2000", 1, True)
        cells[peer].ways = cells[peer].ways[:1]
        cells[peer].runs[cells[peer].ways[0]] = [(1.0, {"value": value})]
    notes = list(compare.notes_of("gpr-2000", 1, cells))
    assert len(notes) == 1 and "gpjax: VALUE" in notes[0]
    cells["gpflow"].runs[cells["gpflow"].ways[0]] = [(1.0, {"value": -10.005})]
    assert len(list(compare.notes_of("gpr-2000", 1, cells))) == 2
    assert len(list(compare.notes_of("gpr-2000", 1, cells, "single"))) == 1


def test_jobs_of_single_precision_are_those_that_ours_has(compare, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["compare.py", "--precision", "single"])
    args = compare.arguments()
    assert {name.split("-")[0] for name in args.jobs} == {"sgpr", "svgp", "classify", "deep", "predict"}
    assert "scikit-learn" not in args.peers and args.without == ["scikit-learn"]
    monkeypatch.setattr(sys, "argv", ["compare.py", "--precision", "single", "--only", "gpr-*"])
    with pytest.raises(SystemExit):
        compare.arguments()
    assert "no single-precision job" in capsys.readouterr().err


def test_a_missing_way_is_reported_and_the_other_continues(compare, monkeypatch, tmp_path):
    def run(*command, limit, threads):
        if "LargeBatch" in command[-1]:
            raise compare.Failure("GPyTorch 1.14 has no LargeBatchVariationalStrategy")
        return 'RESULT {"seconds": 1.0}'

    monkeypatch.setattr(compare, "run", run)
    args = SimpleNamespace(peers=["gpytorch"], rounds=2, quick=True, limit=1, nll=0.2, precision="double")
    cells = compare.measure("svgp-256", 1, {"gpytorch": (tmp_path, {}, 0)}, tmp_path, args)
    assert cells["gpytorch"].seconds == 1.0 and len(cells["gpytorch"].runs["VariationalStrategy"]) == 2
    assert "has no Large" in "".join(compare.notes_of("svgp-256", 1, cells))


def test_turns_are_reported_one_by_one_and_the_table_has_the_median(compare, monkeypatch, capsys, tmp_path):
    results = iter(f'RESULT {{"seconds": {seconds}}}' for seconds in (1.0, 2.0, 9.0))
    monkeypatch.setattr(compare, "run", lambda *command, limit, threads: next(results))
    args = SimpleNamespace(peers=["sparsegp"], rounds=3, quick=True, limit=1, nll=0.2, precision="double")
    cells = compare.measure("svgp-256", 1, {"sparsegp": (tmp_path, {}, 0)}, tmp_path, args)
    assert cells["sparsegp"].seconds == 2.0
    printed = capsys.readouterr()
    turns = [line.split("sparsegp ")[1] for line in (printed.out + printed.err).splitlines()]
    assert turns == ["1000 ms", "2000 ms", "9000 ms"]
