"""`bench/compare.py`: its jobs do what they say, and its table what it must. Nothing is timed in earnest."""

import importlib.util
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

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


def job(data, peer, kind):
    asked = {
        "peer": peer,
        "kind": kind,
        "threads": 1,
        "data": str(data),
        "seconds": 0.01,
        "way": "",
        **SMALL[kind],
    }
    return json.loads(run(json.dumps(asked)).splitlines()[-1].removeprefix("RESULT "))


@pytest.mark.parametrize("kind", SMALL)
def test_jobs_of_ours(data, kind):
    result = job(data, "sparsegp", kind)
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
    elif kind != "svgp":
        assert math.isfinite(result["value"])


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


def test_values_that_differ_are_told(compare):
    cells = {}
    for peer, value in (("sparsegp", -10.0), ("gpflow", -10.0005), ("gpjax", -11.0)):
        cells[peer] = compare.Cell(peer, "gpr-2000", 1, True)
        cells[peer].ways = cells[peer].ways[:1]
        cells[peer].runs[cells[peer].ways[0]] = [(1.0, {"value": value})]
    told = list(compare.notes_of("gpr-2000", 1, cells))
    assert len(told) == 1 and "gpjax: VALUE" in told[0]


def test_turns_are_told_one_by_one_and_the_table_has_the_median(compare, monkeypatch, capsys, tmp_path):
    results = iter(f'RESULT {{"seconds": {seconds}}}' for seconds in (1.0, 2.0, 9.0))
    monkeypatch.setattr(compare, "run", lambda *command, limit, threads: next(results))
    args = SimpleNamespace(peers=["sparsegp"], rounds=3, quick=True, limit=1, nll=0.2)
    cells = compare.measure("svgp-256", 1, {"sparsegp": (tmp_path, {}, 0)}, tmp_path, args)
    assert cells["sparsegp"].seconds == 2.0
    printed = capsys.readouterr()
    told = [line.split("sparsegp ")[1] for line in (printed.out + printed.err).splitlines()]
    assert told == ["1000 ms", "2000 ms", "9000 ms"]
