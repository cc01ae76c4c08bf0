"""Times after the last of a series, of the kind in which they came."""

import os
import subprocess

import numpy as np
import pytest

import sparsegp
from sparsegp import GPRegressor

pd = pytest.importorskip("pandas")
CLI = os.environ.get("SPARSEGP_CLI")
DAYS = np.array(["2024-01-31", "2023-12-31", "2024-02-29"], "datetime64[D]")
NEXT = ["2024-03-31", "2024-04-30"]


def texts(values):
    return list(np.asarray(values).astype("datetime64[D]").astype(str).ravel())


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_stay_frames(kind):
    frames = pytest.importorskip(kind)
    X = (frames.table if kind == "pyarrow" else frames.DataFrame)({"day": DAYS})
    new = sparsegp.future(X, "2mo")
    assert type(new) is type(X) and len(new) == 2
    column = new["day"]
    assert getattr(column, "dtype", getattr(column, "type", 0)) == getattr(
        X["day"], "dtype", getattr(X["day"], "type", 1)
    )
    assert texts(column) == NEXT
    both = (frames.table if kind == "pyarrow" else frames.DataFrame)({"day": DAYS, "x": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="2 columns"):
        sparsegp.future(both, 2)


def test_zones_and_hours_are_kept():
    hours = pd.date_range("2024-03-30 22:00", periods=4, freq="h", tz="Europe/Berlin")
    new = sparsegp.future(pd.DataFrame({"t": hours}), "3h")
    assert list(new["t"]) == list(pd.date_range("2024-03-31 03:00", periods=3, freq="h", tz="Europe/Berlin"))


def test_arrays_keep_their_shape():
    assert texts(sparsegp.future(DAYS, 2)) == NEXT
    assert sparsegp.future(DAYS[:, None], 2).shape == (2, 1)
    np.testing.assert_allclose(sparsegp.future([3.0, 1.0, 2.0], 2, step=0.25), [3.25, 3.5])
    assert sparsegp.future(np.array([[1], [3]]), 1).tolist() == [[5.0]]


@pytest.mark.parametrize(
    ("X", "horizon", "step", "match"),
    [
        (DAYS, "2 moons", None, "horizon `2 moons`"),
        (DAYS, 0, None, "horizon `0`"),
        (DAYS[:1], 3, None, "give a step"),
        ([1.0, 2.0], "1y", None, "horizon `1y`"),
        ([1.0, 2.0], 3, "-1", "step `-1`"),
        ([1.0, np.nan], 3, None, "not all are numbers"),
        (np.array(["2024-01-01", "NaT"], "datetime64[D]"), 3, None, "missing times"),
        (["a", "b"], 3, None, "neither numbers nor dates"),
        (np.ones((3, 2)), 3, None, "one column"),
    ],
)
def test_invalid_horizons_steps_and_times_are_refused(X, horizon, step, match):
    with pytest.raises(ValueError, match=match):
        sparsegp.future(X, horizon, step)


def test_a_forecast_is_that_of_the_command_line(tmp_path):
    days = pd.date_range("2021-01-03", periods=120, freq="7D")
    turn = np.arange(120) * 7 * 2 * np.pi / 365.25
    y = 300 + 40 * np.sin(turn) + 5 * np.random.default_rng(2).normal(size=120)
    X = pd.DataFrame({"day": days})
    model = GPRegressor("matern52 + periodic", random_state=0).fit(X, y)
    new = sparsegp.future(X, "10w")
    mean, std = model.predict(new, return_std=True)
    assert texts(new["day"])[0] == "2023-04-23" and len(mean) == 10
    assert np.all(np.abs(mean - (300 + 40 * np.sin(np.arange(120, 130) * 7 * 2 * np.pi / 365.25))) < 25)
    if CLI is None:
        return
    model.save(tmp_path / "m.safetensors")
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    line = [CLI, "forecast", tmp_path / "m.safetensors", tmp_path / "rows.csv", "--horizon", "10w"]
    out = tmp_path / "out.csv"
    subprocess.run([*line, "-o", out], check=True)
    found = pd.read_csv(out)
    assert list(found["day"]) == texts(new["day"])
    np.testing.assert_allclose(found["mean"], mean, rtol=1e-9)
    np.testing.assert_allclose(found["sd"], std, rtol=1e-9)
