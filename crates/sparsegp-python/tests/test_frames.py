"""Frames with texts, dates and categories are learnt from as files are."""

import os
import subprocess
import warnings

import numpy as np
import pytest

from sparsegp import GPClassifier, GPRegressor, future, load

pd = pytest.importorskip("pandas")
CLI = os.environ.get("SPARSEGP_CLI")
FAST = dict(max_iter=20, pilot=0)


def columns(n=120):
    rng = np.random.default_rng(3)
    day = np.datetime64("2023-11-20") + rng.integers(0, 200, n)
    colour, size = rng.choice(["red", "blue", "green"], n), rng.normal(size=n)
    y = 4.0 * (colour == "red") + 2.0 * np.sin(size) + 0.02 * day.astype(float)
    return dict(size=size, colour=colour, day=day), y


def quiet(model, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args)


def framed(kind, table):
    frames = pytest.importorskip(kind)
    return (frames.table if kind == "pyarrow" else frames.DataFrame)(table)


NAMES = ["size", "colour=blue", "colour=green", "colour=red", "day"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_learnt_from_as_its_file_is(kind, tmp_path):
    table, y = columns()
    X, path = framed(kind, table), tmp_path / "rows.csv"
    pd.DataFrame(table).assign(y=y).to_csv(path, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = GPRegressor(random_state=0).fit(X, y)
        mean = model.predict(X)
    assert list(model.feature_names_in_) == NAMES and model.n_features_in_ == 5
    of_file = GPRegressor(random_state=0).fit_file(path, "y")
    np.testing.assert_allclose(mean, of_file.predict(X), rtol=1e-9)
    assert model.score(X, y) > 0.99
    # other columns may stand beside them, in any order
    table = {"other": table["colour"], "day": table["day"], "size": table["size"], "colour": table["colour"]}
    np.testing.assert_array_equal(mean, model.predict(framed(kind, table)))
    with pytest.raises(ValueError, match="row 0, column `colour`: `pink` is none of"):
        model.predict(framed(kind, {name: own[:1] for name, own in table.items()} | {"colour": ["pink"]}))
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(mean, load(tmp_path / "m.safetensors").predict(X))
    if CLI is not None:
        line = [CLI, "predict", tmp_path / "m.safetensors", path]
        subprocess.run(line, check=True, capture_output=True)
    again = model.fit(np.arange(20.0)[:, None], np.arange(20.0))
    assert again.n_features_in_ == 1 and again.predict([[3.0]]).shape == (1,)


def test_categories_by_their_type_and_labels():
    table, _ = columns()
    kit = np.arange(120) % 3
    y = np.where(kit == 1, "up", "down")
    pl = pytest.importorskip("polars")
    texts = pd.Series(kit).astype(str)
    for X in [
        pd.DataFrame({"size": table["size"], "kit": pd.Categorical(kit)}),
        pl.DataFrame({"size": table["size"], "kit": pl.Series(texts.to_list(), dtype=pl.Categorical)}),
    ]:
        model = GPClassifier(**FAST)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        assert list(model.feature_names_in_) == ["size", "kit=0", "kit=1", "kit=2"]
        assert model.score(X, y) == 1.0
    # truth values are 0 and 1 by the name of the second, and texts that are numbers are numbers
    X = pd.DataFrame({"flag": kit == 1, "code": texts, "name": np.where(kit == 0, "a", "b")})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GPRegressor(**FAST).fit(X, kit)
    assert list(model.feature_names_in_) == ["flag=true", "code", "name=b"]


def test_parts_of_a_frame():
    table, y = columns()
    X = pd.DataFrame(table)
    model = GPRegressor(method="svgp", n_inducing=20, batch_size=32)
    model.partial_fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    assert model.n_samples_seen_ == 120 and list(model.feature_names_in_) == NAMES


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (
            ["12,5", "7,25"] * 20,
            "row 0, column `c`: `12,5` has a comma: turn the column into numbers, .*read_csv",
        ),
        (
            [f"name {i}" for i in range(40)],
            "different text in nearly every row.*leave it out of X.*categorical",
        ),
        (["31/12/2024", "01/02/2024"] * 20, r"to_datetime\(X\['c'\], format='%d/%m/%Y'\)"),
        ([str(i) for i in range(16)] + ["unknown"] * 24, "pass None for words that mean a missing value"),
        (["red", None] + ["blue"] * 38, "row 1, column `c`: is missing"),
        ([1.0, "x"] + [2.0] * 38, "row 1, column `c`: `x` is not a number"),
    ],
)
def test_what_is_unclear_is_refused(cells, words):
    X = pd.DataFrame({"a": np.arange(40.0), "c": cells})
    with pytest.raises(ValueError, match=words):
        GPRegressor(**FAST).fit(X, np.arange(40.0))


def test_the_index_of_a_frame_is_left_out():
    arrow = pytest.importorskip("pyarrow")
    # a value that comes twice: numbers of the rows are warned of
    a = np.minimum(np.arange(30.0), 28.0)
    frame = pd.DataFrame({"a": a, "b": np.arange(30) % 7 * 1.0}, index=np.arange(30) * 2)
    y = np.sin(frame["a"].to_numpy())
    table = arrow.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = GPRegressor(max_iter=300).fit(table, y)
        np.testing.assert_array_equal(model.predict(table), model.predict(table.select(["a", "b"])))
    assert model.n_features_in_ == 2
    model = GPRegressor(max_iter=300).fit(frame.assign(**{"Unnamed: 0": y}), y)
    assert list(model.feature_names_in_) == ["a", "b"]


def test_many_numbers_as_classes_are_a_warning():
    X = np.linspace(0, 1, 60)[:, None]
    with pytest.warns(UserWarning, match="`y` has 30 classes, and all of them are numbers"):
        GPClassifier(max_iter=1, pilot=0).fit(X, np.arange(60) % 30)


def test_a_file_in_latin1(tmp_path):
    rows = "".join(f"{i},{'Köln' if i % 3 else 'Zürich'},{2 * i}\n" for i in range(40))
    path = tmp_path / "l.csv"
    path.write_text("Größe,Ort,y\n" + rows, encoding="latin1")
    model = GPRegressor(**FAST)
    with pytest.raises(ValueError, match="is not UTF-8 text: pass `encoding='latin1'`"):
        model.fit_file(path, "y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit_file(path, "y", encoding="latin1")
    assert list(model.feature_names_in_) == ["Größe", "Ort=Zürich"]
    file = tmp_path / "m.safetensors"
    model.save(file)
    if CLI is not None:
        # the model remembers the encoding
        subprocess.run([CLI, "predict", file, path], check=True, capture_output=True)


def test_kernels_take_values_in_the_units_of_the_data():
    day = np.arange(0.0, 2000.0, 9.0)[:, None]
    y = np.sin(2 * np.pi * day[:, 0] / 365.25)
    model = GPRegressor("periodic(period=365.25)", kernel_units="data", fixed="kernel.period")
    quiet(model, day, y + 0.05 * np.cos(7.0 * day[:, 0]))
    assert model.parameters_["kernel.period"] == pytest.approx(365.25)
    assert model.score(day + 365.25, y) > 0.99
    with pytest.raises(ValueError, match="kernel_units is `days`"):
        GPRegressor(kernel_units="days").fit(day, y)


def test_seasons_are_terms_of_known_periods():
    day = pd.date_range("2021-01-03", periods=140, freq="7D")
    wave = np.sin(2 * np.pi * np.arange(140) * 7 / 365.2425)
    X, y = pd.DataFrame({"day": day}), 300 + 40 * wave + np.random.default_rng(0).normal(0, 3, 140)
    model = quiet(GPRegressor("matern52", season="1y", max_iter=60), X, y)
    periods = [value for path, value in model.parameters_.items() if path.endswith("period")]
    assert len(periods) == 1
    ahead = np.asarray(model.predict(future(X, "52w")))
    assert 325 < ahead.max() < 355 and 245 < ahead.min() < 275
    with pytest.raises(ValueError, match="season `7`: `day` holds dates"):
        GPRegressor(season=["7"]).fit(X, y)
    hours = np.arange(100.0)
    array = quiet(GPRegressor(season=["x0=24"], max_iter=20), hours[:, None], np.sin(hours * np.pi / 12))
    assert any(path.endswith("period") for path in array.parameters_)


def test_a_season_that_dates_show_is_found():
    at = pd.date_range("2021-01-03", periods=256, freq="3h")
    hours = np.arange(256) * 3.0
    X, y = (
        pd.DataFrame({"at": at}),
        20 + 4 * np.sin(hours * np.pi / 12) + np.random.default_rng(0).normal(0, 0.5, 256),
    )
    model = quiet(GPRegressor(), X[:240], y[:240])
    periods = [value for path, value in model.parameters_.items() if path.endswith("period")]
    assert len(periods) == 1
    ahead = np.asarray(model.predict(X[240:]))
    np.testing.assert_allclose(ahead, 20 + 4 * np.sin(hours[240:] * np.pi / 12), atol=1.0)
    plain = quiet(GPRegressor(season="none"), X[:240], y[:240])
    assert not any(
        path.endswith("period") and abs(value - periods[0]) < 1e-12 for path, value in plain.parameters_.items()
    )


@pytest.mark.parametrize("word", ["NA", "None", "null", "nan", "inf", "?"])
def test_levels_may_be_called_like_a_missing_value(word, tmp_path):
    pd = pytest.importorskip("pandas")
    x = np.linspace(0, 6, 60)
    level = np.arange(60) % 3

    def frame(name):
        names = np.array(["red", "blue", name], dtype=object)[level]
        return pd.DataFrame({"x": x, "c": names, "d": pd.Categorical(names)})

    y = np.sin(x) + (level == 2)
    model = GPRegressor(max_iter=20).fit(frame(word), y)
    assert (
        abs(model.score(frame(word), y) - GPRegressor(max_iter=20).fit(frame("zz"), y).score(frame("zz"), y))
        < 1e-3
    )
    # what the model knows is read from files, too
    frame(word).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    kept = GPRegressor(max_iter=20).fit_file(tmp_path / "rows.csv", "y", kept_words=[word])
    np.testing.assert_allclose(kept.predict(frame(word)), model.predict(frame(word)), rtol=1e-6)
    with pytest.raises(ValueError, match="is missing"):
        model.predict(frame(None))


def test_truth_values_are_categories():
    pd = pytest.importorskip("pandas")
    x = np.linspace(0, 6, 40)
    flag = x % 2 > 1
    for column in (flag, pd.array(flag, dtype="boolean"), flag.astype(object)):
        model = GPRegressor(max_iter=5).fit(pd.DataFrame({"x": x, "b": column}), np.sin(x) + flag)
        assert list(model.feature_names_in_) == ["x", "b=true"]
    whole = GPRegressor(max_iter=5).fit(np.column_stack([x, flag]), np.sin(x) + flag)
    np.testing.assert_allclose(
        model.predict(pd.DataFrame({"x": x, "b": flag})), whole.predict(np.column_stack([x, flag]))
    )


def test_what_is_not_a_table_of_numbers_and_texts_is_refused():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    x = np.linspace(0, 6, 40)
    rows = pl.DataFrame({"x": x, "c": ["u", "v"] * 20})
    model = GPRegressor(max_iter=2).fit(rows, x)
    lazy = rows.select("c").lazy()
    for call in (
        lambda: GPRegressor().fit(rows.lazy(), x),
        lambda: model.predict(rows.lazy()),
        lambda: GPRegressor().fit(rows, lazy),
        lambda: GPClassifier().fit(rows, lazy),
        lambda: GPRegressor().fit(rows, x, sample_weight=lazy),
    ):
        with pytest.raises(TypeError, match="collect"):
            call()
    wide = pl.Series("w", range(40)).cast(pl.Int128)
    for call in (
        lambda: GPRegressor().fit(rows.with_columns(wide), x),
        lambda: GPRegressor().fit(rows, wide),
        lambda: GPRegressor().fit(rows, x, sample_weight=wide),
    ):
        with pytest.raises(ValueError, match="cannot be read .* turn it into floats"):
            call()
    for values, words in (
        ([b"a", b"b"] * 20, "bytes"),
        ([[1, 2], [3]] * 20, "list"),
        (pd.Series(pd.to_timedelta([1, 2] * 20, unit="h").to_pytimedelta(), dtype=object), "durations"),
    ):
        with pytest.raises(ValueError, match=words):
            GPRegressor().fit(pd.DataFrame({"x": x, "q": pd.Series(values, dtype=object)}), x)
    named = pd.DataFrame({("a", 1): x, ("a", 2): ["u", "v"] * 20})
    with pytest.raises(ValueError, match="MultiIndex"):
        GPRegressor().fit(named, x)
    # as in files: no number
    own = GPRegressor(max_iter=2).fit(pd.DataFrame({"x": x, "q": ["1_000", "2_000"] * 20}), x)
    assert list(own.feature_names_in_) == ["x", "q=2_000"]


def test_times_are_not_numbers_of_a_model():
    pd = pytest.importorskip("pandas")
    x = np.arange(40.0)
    rows = pd.DataFrame({"x": x, "c": ["u", "v"] * 20})
    model = GPRegressor(max_iter=2).fit(rows, x)
    for times in (pd.to_timedelta(x, unit="h"), pd.to_datetime(x, unit="h")):
        with pytest.raises(ValueError, match="dates or times"):
            model.predict(rows.assign(x=times))
        with pytest.raises(ValueError, match="dates or times"):
            GPRegressor().fit(rows[["x"]], times)
        with pytest.raises(ValueError, match="dates or times"):
            GPRegressor().fit(rows[["x"]], x, sample_weight=times)


def test_labels_are_numbers_where_they_give_the_texts_back():
    from sparsegp.estimators._classifier import labels_of

    for labels, kind in (
        (["1", "2", "10"], "i"),
        (["1", "1.5"], "f"),
        (["0.1", "1e-07"], "f"),
        (["01", "02", "10"], "U"),
        (["01", "1", "1.50"], "U"),
        (["1_000", "1000"], "U"),
        (["1e3", "1000"], "U"),
        (["nan", "1.5"], "U"),
        (["false", "true"], "b"),
    ):
        own = labels_of(labels)
        assert own.dtype.kind == kind, labels
        assert len(set(own.tolist())) == len(labels)
