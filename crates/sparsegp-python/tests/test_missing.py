"""Missing cells: left out, kept, filled."""

import io
import json
import os
import subprocess

import numpy as np
import pytest

import sparsegp
from sparsegp import GPClassifier, GPCountRegressor, GPRegressor

pd = pytest.importorskip("pandas")
N = 150
i = np.arange(N)
POWER = np.where(i % 7 == 3, np.nan, 50 + 100 * np.modf(i * 0.618033988749895)[0])
MAKE = np.array(["a", "b", None], object)[i % 3]
NOISE = np.modf(i * 0.414213562373095)[0] - 0.5
Y = np.where(i % 7 == 3, 30.0, 40 - 0.15 * POWER) + np.array([0.0, 4.0, -3.0])[i % 3] + NOISE
FRAME = pd.DataFrame({"power": POWER, "make": MAKE, "doors": i % 5})
NEW = pd.DataFrame({"power": [np.nan, np.nan, 100, 100], "make": ["a", "b", None, "a"], "doors": [1, 1, 1, 1]})
EXPECTED = [30.0, 34.0, 22.0, 25.0]
CLI = os.environ.get("SPARSEGP_CLI")
HOW = {"kernel": "matern52", "max_iter": 60}


def test_filled_frames_are_learnt_from_and_predicted(tmp_path):
    with pytest.raises(ValueError, match="missing"):
        GPRegressor(**HOW).fit(FRAME, Y)
    model = GPRegressor(**HOW, missing="indicator").fit(FRAME, Y)
    names = ["power", "power=missing", "make=missing", "make=a", "make=b", "doors"]
    assert list(model.feature_names_in_) == names
    np.testing.assert_allclose(model.predict(NEW), EXPECTED, atol=1)
    path = tmp_path / "m.safetensors"
    model.save(path)
    np.testing.assert_array_equal(sparsegp.load(path).predict(NEW), model.predict(NEW))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(NEW.assign(doors=[1, 1, np.nan, 1]))
    # the same as from a file
    FRAME.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    of_file = GPRegressor(**HOW).fit_file(tmp_path / "t.csv", "y", missing="indicator")
    np.testing.assert_allclose(of_file.predict(NEW), model.predict(NEW), rtol=1e-6)


def test_other_frames():
    pl = pytest.importorskip("polars")
    model = GPRegressor(**HOW, missing="indicator").fit(FRAME, Y)
    frame = pl.from_pandas(FRAME)
    other = GPRegressor(**HOW, missing="indicator").fit(frame, Y)
    np.testing.assert_allclose(other.predict(pl.from_pandas(NEW)), model.predict(NEW), rtol=1e-8)


def test_arrays():
    X = np.column_stack([POWER, i % 5])
    new = [[np.nan, 1], [100, 1]]
    for missing, inputs in (("mean", 2), ("indicator", 3)):
        model = GPRegressor(**HOW, missing=missing).fit(X, Y)
        assert model.n_features_in_ == inputs
        assert abs(model.predict(new)[1] - 25) < 4
        filled = X.copy()
        filled[:, 0] = np.where(np.isnan(POWER), np.nanmean(POWER), POWER)
        if missing == "indicator":
            filled = np.column_stack([filled[:, 0], np.isnan(POWER), X[:, 1]])
        by_hand = GPRegressor(**HOW).fit(filled, Y)
        np.testing.assert_allclose(model.predict(X), by_hand.predict(filled), rtol=1e-8)
        with pytest.raises(ValueError, match="NaN"):
            model.predict([[100, np.nan]])
    # a column that is complete is as without
    plain = GPRegressor(**HOW, missing="mean").fit(X[:, 1:], Y)
    assert plain.n_features_in_ == 1


def test_dates_and_labels():
    days = pd.Series(pd.date_range("2024-01-01", periods=N)).where(i % 10 != 4)
    frame = pd.DataFrame({"day": days, "a": i % 5})
    model = GPRegressor(**HOW, missing="indicator").fit(frame, Y)
    assert list(model.feature_names_in_) == ["day", "day=missing", "a"]
    assert np.isfinite(model.predict(frame)).all()
    labels = np.where(Y > 30, "good", "bad").astype(object)
    labels[5] = None
    with pytest.raises(ValueError, match="row 5"):
        GPClassifier(missing="category").fit(FRAME[["make", "doors"]], labels)
    with pytest.warns(UserWarning, match="1 of 150 rows"):
        classifier = GPClassifier(missing="mean", max_iter=20).fit(FRAME, labels)
    assert classifier._about["rows"] == N - 1
    assert (classifier.predict(FRAME) == np.where(Y > 30, "good", "bad")).mean() > 0.7


def test_rows_that_are_left_out():
    weights = np.linspace(1, 2, N)
    with pytest.warns(UserWarning, match="64 of 150 rows"):
        model = GPRegressor(**HOW, missing="drop").fit(FRAME, Y, sample_weight=weights)
    there = FRAME.notna().all(axis=1).to_numpy()
    assert there.sum() == N - 64
    kept = GPRegressor(**HOW).fit(FRAME[there], Y[there], sample_weight=weights[there])
    np.testing.assert_array_equal(model.predict(NEW[3:]), kept.predict(NEW[3:]))
    counts = (i % 4).astype(float)
    counts[7] = np.nan
    with pytest.warns(UserWarning, match="1 of 150 rows"):
        model = GPCountRegressor(missing="drop", max_iter=5).fit(i[:, None], counts, exposure=weights)
    assert model._about["rows"] == N - 1
    with pytest.raises(ValueError, match="no row is left"):
        GPRegressor(missing="drop").fit(i[:, None], np.full(N, np.nan))


def test_targets_that_are_kept():
    x = np.linspace(0, 6, 60)[:, None]
    both = np.column_stack([np.sin(x[:, 0]), np.cos(x[:, 0])]) + 0.05 * NOISE[:60, None]
    both[::3, 1] = np.nan
    both[5] = np.nan
    model = GPRegressor(missing="keep", method="tvgp", **HOW).fit(x, both)
    found = model.predict(x)
    assert np.abs(found - np.column_stack([np.sin(x[:, 0]), np.cos(x[:, 0])])).max() < 0.15
    whole = ~np.isnan(both[:, 0])
    with pytest.raises(ValueError, match="missing"):
        GPRegressor(missing="keep", method="exact").fit(x, both)
    with pytest.raises(ValueError, match="NaN"):
        GPRegressor(method="tvgp").fit(x[whole], both[whole])


def test_words_that_are_not_choices():
    with pytest.raises(ValueError, match="'zero'.*'indicator'"):
        GPRegressor(missing="zero").fit(i[:, None], Y)
    with pytest.raises(ValueError, match="'zero'"):
        GPRegressor().fit_file("t.csv", "y", missing="zero")
    with pytest.raises(ValueError, match="`?x`?.*missing in all rows"):
        GPRegressor(missing="mean").fit(pd.DataFrame({"x": np.full(N, np.nan), "a": i}), Y)


def test_descriptions_have_the_words_of_a_table():
    model = GPRegressor(**HOW, missing="mean").fit(FRAME, Y)
    columns = json.dumps(model._about["columns"])
    assert '"filled"' in columns and '"one-hot": ["", "a", "b"]' in columns


def test_categories_that_no_training_row_had_are_predicted_where_that_is_asked_for(tmp_path):
    make = np.array(["a", "b", "c", "d"])[i % 4]
    y = np.array([0.0, 4.0, -3.0, 1.0])[i % 4] + 0.1 * NOISE
    model = GPRegressor(kernel="rbf", max_iter=60).fit(pd.DataFrame({"make": make, "x": i % 7}), y)
    new = pd.DataFrame({"make": ["a", "z", "q"], "x": [2, 2, 3]})
    with pytest.raises(ValueError, match="row 1, column `make`: `z`.*unknown='ignore'"):
        model.predict(new)
    model.set_params(unknown="ignore")
    with pytest.warns(UserWarning, match="no training row had: 2 of `make`"):
        mean, sd = model.predict(new, return_std=True)
    assert abs(mean[0]) < 0.2 and -3 < mean[1] < 4
    assert sd[0] < 0.2 and (sd[1:] > 1).all()
    # the command line says the same
    if CLI is not None:
        model.save(tmp_path / "m.st")
        new.to_csv(tmp_path / "new.csv", index=False)
        out = subprocess.run(
            [CLI, "predict", tmp_path / "m.st", tmp_path / "new.csv", "--unknown", "ignore"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        np.testing.assert_allclose(pd.read_csv(io.StringIO(out))["mean"], mean, rtol=1e-9)
    with pytest.raises(ValueError, match="unknown is 'drop'"):
        model.set_params(unknown="drop").fit(pd.DataFrame({"make": make}), y)


def refused(call, *words):
    with pytest.raises(ValueError) as caught:
        call()
    for own in words:
        assert own in str(caught.value)


def test_cells_that_are_refused_are_named():
    quick = {"max_iter": 2, "pilot": 0}
    rows = pd.DataFrame({"a": i * 0.1, "b": np.cos(i)})
    text = rows.assign(make=np.where(i % 2, "u", "v"))
    gaps, holes = rows.copy(), text.copy()
    gaps.loc[[7, 20, 9], "b"] = np.nan
    holes.loc[[9, 4], "make"] = None
    remedies = ("leave such rows out", "'mean'", "'indicator'", "'category'")
    b = ("Input X contains NaN: row 7, column `b`: is missing", "3 such cells", *remedies)
    array = ("Input X contains NaN: row 7, column 1: is missing", "3 such cells", *remedies)
    make = ("Input X contains NaN: row 4, column `make`: is missing", "2 such cells", *remedies)
    for kind, y in ((GPRegressor, Y), (GPClassifier, Y > 30)):
        model, of_text = kind(**quick).fit(rows, y), kind(**quick).fit(text, y)
        plain = kind(**quick).fit(rows.to_numpy(), y)
        for own in (lambda k=kind, y=y: k(**quick).fit(gaps, y), lambda m=model: m.predict(gaps)):
            refused(own, *b)
        for own in (
            lambda k=kind, y=y: k(**quick).fit(gaps.to_numpy(), y),
            lambda m=plain: m.predict(gaps.to_numpy().tolist()),
        ):
            refused(own, *array)
        for own in (lambda k=kind, y=y: k(**quick).fit(holes, y), lambda m=of_text: m.predict(holes)):
            refused(own, *make)
        refused(lambda m=of_text: m.predict(text.assign(b=gaps["b"])), *b)
        far = gaps.replace(np.nan, -np.inf)
        infinite = ("Input X contains infinity: row 7, column `b`: is infinite", "3 such cells")
        refused(lambda k=kind, y=y: k(**quick).fit(far, y), *infinite)
        refused(lambda m=model: m.predict(far), *infinite)
    # texts are filled, and the others are not
    of_words = GPRegressor(**quick, missing="category")
    refused(lambda: of_words.fit(holes.assign(b=gaps["b"]), Y), "row 7, column `b`", "3 such cells", "'drop'")
    of_words.fit(holes, Y)
    refused(lambda: of_words.predict(holes.assign(b=gaps["b"])), "row 7, column `b`", "3 such cells")
    # rows as they are given, also where some are left out
    some = np.where(i == 2, np.nan, Y)
    far = rows.assign(b=np.where(i == 9, np.inf, rows["b"]))
    refused(
        lambda: GPRegressor(missing="drop").fit(far, some),
        "row 9, column `b`: is infinite (the only such cell)",
    )
    refused(lambda: GPRegressor().fit(rows, some), "Input y contains NaN: row 2: is missing", "'drop'")
    refused(lambda: GPRegressor().fit(rows, np.where(i == 2, np.inf, Y)), "Input y contains infinity: row 2")
