"""Places on Earth: of frames, arrays and files, on both sides of the date line."""

import os
import subprocess
import warnings

import numpy as np
import pytest

import sparsegp
from sparsegp import GPClassifier, GPCountRegressor, GPRegressor
from sparsegp.estimators._places import points

pd = pytest.importorskip("pandas")
CLI = os.environ.get("SPARSEGP_CLI")
R = 6371.0088
rng = np.random.default_rng(3)
LAT = rng.uniform(-40, -10, 80)
LONG = (rng.uniform(165, 190, 80) + 180) % 360 - 180
Y = 10 + 3 * np.sin(np.radians(LONG) * 9) + np.cos(LAT / 7) + 0.1 * rng.normal(size=80)
FRAME = pd.DataFrame({"long": LONG, "depth": rng.normal(size=80), "lat": LAT})
BOTH = FRAME[["lat", "long"]]


def by_hand(latitude, longitude):
    a, b = np.radians(latitude), np.radians(longitude)
    return R * np.column_stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)])


def test_points_are_kilometres_on_a_sphere():
    np.testing.assert_allclose(points(LAT, LONG, "a", "b"), by_hand(LAT, LONG), rtol=0, atol=1e-9)
    for latitude, longitude, match in [
        ([91.0], [0.0], "row 0, column `a`: the latitude `91`.*LATITUDE,LONGITUDE"),
        ([0.0], [361.0], "row 0, column `b`: the longitude `361`"),
        ([np.nan], [0.0], "NaN"),
    ]:
        with pytest.raises(ValueError, match=match):
            points(latitude, longitude, "a", "b")


def test_predictions_are_those_of_coordinates_computed_by_hand(tmp_path):
    kernel = "matern32(variance=2, lengthscales=600)"
    X = by_hand(LAT, LONG)
    other = GPRegressor(kernel, standardise=False, max_iter=0, fixed=["kernel", "likelihood"], mean="zero")
    own = GPRegressor(
        kernel,
        places=[("lat", "long")],
        standardise=False,
        max_iter=0,
        fixed=["kernel", "likelihood"],
        mean="zero",
    )
    expected = other.fit(X, Y).predict(by_hand([-20, -20, 70], [179.99, -179.99, 12]))
    new = pd.DataFrame({"lat": [-20, -20, 70], "long": [179.99, -179.99, 12]})
    found = own.fit(BOTH, Y).predict(new)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert abs(found[0] - found[1]) < 0.05
    assert list(own.feature_names_in_) == [f"place(lat, long)={q}" for q in "xyz"]
    # of an array it is the same, and where columns come in another order
    array = GPRegressor(**{**own.get_params(), "places": [(1, 0)]}).fit(np.column_stack([LONG, LAT]), Y)
    np.testing.assert_allclose(array.predict(new[["long", "lat"]].to_numpy()), expected, rtol=1e-9)
    with pytest.raises(ValueError, match="X has 3 features, but the model has learnt from 2"):
        array.predict(np.zeros((2, 3)))
    for model, rows in ((own, new), (array, new[["long", "lat"]].to_numpy())):
        model.save(tmp_path / "m.safetensors")
        again = sparsegp.load(tmp_path / "m.safetensors")
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
        assert [tuple(pair) for pair in again.places] == [tuple(pair) for pair in model.places]


def test_a_place_has_one_lengthscale_in_kilometres():
    model = GPRegressor("matern32", places=[("lat", "long")], max_iter=50)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(FRAME, Y)
    assert not [w for w in caught if "look like places" in str(w.message)]
    assert list(model.feature_names_in_)[0] == "depth"
    lengths = model.parameters_["kernel.lengthscales"]
    assert lengths[1] == lengths[2] == lengths[3] and 100 < lengths[1] < 20000
    for kernel in ("rbf(lengthscales=[3, 800])", "rbf(lengthscales=[3, 800, 800, 800])"):
        given = GPRegressor(kernel, kernel_units="data", places=[("lat", "long")], max_iter=0).fit(FRAME, Y)
        np.testing.assert_allclose(given.parameters_["kernel.lengthscales"], [3, 800, 800, 800])
    with pytest.warns(UserWarning, match="`lat` and `long` look like places on Earth.*places="):
        GPRegressor("rbf", max_iter=1).fit(BOTH, Y)


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ([("lat", "lon")], ValueError, "no column 'lon'; there are 'long', 'depth', 'lat'"),
        ([("lat", "long"), ("depth", "lat")], ValueError, "'lat' is given twice"),
        ([("long", "lat")], ValueError, "column `long`: the latitude .*LATITUDE,LONGITUDE"),
        ("lat,long", TypeError, "a list of pairs"),
        ([("lat",)], TypeError, "a list of pairs"),
        ([(7, 0)], ValueError, "no column 7"),
    ],
)
def test_what_is_not_a_place_is_refused(given, error, match):
    with pytest.raises(error, match=match):
        GPRegressor("rbf", places=given, max_iter=1).fit(FRAME, Y)


def test_columns_of_texts_and_gaps_are_refused():
    with pytest.raises(ValueError, match="'lat' holds text"):
        GPRegressor("rbf", places=[("lat", "long")]).fit(BOTH.assign(lat=["a", "b"] * 40), Y)
    with pytest.raises(ValueError, match="'long' holds dates"):
        days = pd.date_range("2024-01-01", periods=80)
        GPRegressor("rbf", places=[("lat", "long")]).fit(BOTH.assign(long=days), Y)
    with pytest.raises(ValueError, match="NaN"):
        GPRegressor("rbf", places=[("lat", "long")]).fit(BOTH.assign(lat=np.nan), Y)
    model = GPRegressor("rbf", places=[("lat", "long")], max_iter=1).fit(BOTH, Y)
    with pytest.raises(ValueError, match="row 1, column `lat`: the latitude `-99`"):
        model.predict(pd.DataFrame({"lat": [1.0, -99.0], "long": [1.0, 2.0]}))


def test_other_estimators_files_and_texts_beside_places(tmp_path):
    frame = FRAME.assign(kind=np.where(np.arange(80) % 3, "a", "b"))
    model = GPRegressor("matern32", places=[("lat", "long")], max_iter=10).fit(frame, Y)
    assert [str(name) for name in model.feature_names_in_][-1] == "kind=b"
    frame.assign(y=Y).to_csv(tmp_path / "rows.csv", index=False)
    of_file = GPRegressor("matern32", places=[("lat", "long")], max_iter=10).fit_file(
        tmp_path / "rows.csv", "y"
    )
    np.testing.assert_allclose(of_file.predict(frame[:9]), model.predict(frame[:9]), rtol=1e-6)
    counts = GPCountRegressor("rbf", places=[("lat", "long")], max_iter=5).fit(BOTH, np.round(Y))
    classes = GPClassifier("rbf", places=[("lat", "long")], method="vecchia", max_iter=3).fit(BOTH, Y > 10)
    assert counts.predict(BOTH[:3]).shape == classes.predict(BOTH[:3]).shape == (3,)
    points = GPRegressor(
        "rbf", places=[("lat", "long")], method="titsias2025", inducing=BOTH[:9], max_iter=3
    ).fit(BOTH, Y)
    assert points.inducing_points_.shape == (9, 3)
    again = GPRegressor(
        "rbf", places=[("lat", "long")], method="titsias2025", inducing=points.inducing_points_, max_iter=3
    )
    assert again.fit(BOTH, Y).inducing_points_.shape == (9, 3)
    found = sparsegp.explain(model, frame, rows=10, functions=4, samples=32, draws=10)
    assert {"lat", "long"} <= {own.input for own in found.effects}
    if CLI is None:
        return
    line = [CLI, "fit", tmp_path / "rows.csv", "--target", "y", "--places", "lat,long", "--kernel", "matern32"]
    line += ["--max-iterations", "10", "-o", tmp_path / "c.safetensors"]
    subprocess.run(line, check=True, capture_output=True)
    loaded = sparsegp.load(tmp_path / "c.safetensors")
    np.testing.assert_allclose(loaded.predict(frame[:9]), model.predict(frame[:9]), rtol=1e-6)


def test_maps_have_longitude_across_and_latitude_up():
    pytest.importorskip("matplotlib")
    for X, places in ((BOTH, [("lat", "long")]), (BOTH.to_numpy(), [(0, 1)])):
        model = GPRegressor("rbf", places=places, max_iter=5).fit(X, Y)
        axes = sparsegp.plotting.plot_map(model, X, Y, num=9)
        low, high = axes.get_xlim()
        # not once round the Earth
        assert 160 < low < high < 195
        assert axes.get_xlabel() == ("long" if places[0][0] == "lat" else "x1")
