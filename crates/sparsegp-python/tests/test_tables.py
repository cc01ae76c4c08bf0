"""What the table itself does to a fit: its order, equal rows, constant targets, codes for missing values, outliers."""

import os
import subprocess
import warnings

import numpy as np
import pytest

from sparsegp import GPClassifier, GPRegressor, RobustGPRegressor, load

CLI = os.environ.get("SPARSEGP_CLI")


def quiet(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **kwargs)


@pytest.mark.skipif(CLI is None, reason="SPARSEGP_CLI names no command")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_equal_rows_give_one_answer_through_both_doors(tmp_path):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0, 10, (50, 1)), np.exp(rng.normal(0, 1.5, 50))
    rows = rng.integers(0, 50, 50)
    X, Y = x[rows], y[rows]
    table, file = tmp_path / "t.csv", tmp_path / "t.safetensors"
    np.savetxt(table, np.c_[X, Y], delimiter=",", header="x,y", comments="", fmt="%.17g")
    subprocess.run([CLI, "fit", table, "--target", "y", "-o", file], check=True, capture_output=True)
    command, own = load(file), quiet(GPRegressor(), X, Y)
    assert command.objective_ == own.objective_
    places = [[5.0], [100.0]]
    for a, b in zip(command.predict(places, return_std=True), own.predict(places, return_std=True)):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(own._about["scaler"]["y_mean"], [Y.mean()], rtol=1e-13)
    np.testing.assert_allclose(own._about["scaler"]["y_scale"], [Y.std()], rtol=1e-13)
    assert own._about["rows"] == 50


def test_one_row_many_times():
    for count in (2, 50):
        model = quiet(GPRegressor(), np.ones((count, 2)), np.full(count, 3.0))
        np.testing.assert_allclose(model.predict([[1.0, 1.0]]), 3.0, rtol=1e-9)
        assert model._about["rows"] == count
    with pytest.raises(ValueError, match=r"1 training row\(s\) of a weight above 0, of 3"):
        GPRegressor().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], sample_weight=[0, 1, 0])


@pytest.mark.filterwarnings("ignore:target column `y2`")
@pytest.mark.parametrize("method", ["auto", "titsias2025"])
def test_a_constant_target_leaves_the_others_alone(method):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (80, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=80)
    separate = quiet(GPRegressor(method=method), X, y)
    with pytest.warns(UserWarning, match="`y1` is 2 in all rows"):
        beside = GPRegressor(method=method).fit(X, np.column_stack([y, np.full(80, 2.0), np.full(80, -1.5)]))
    np.testing.assert_allclose(beside.objective_, separate.objective_, rtol=1e-9)
    mean, sd = beside.predict(X, return_std=True)
    expected = separate.predict(X, return_std=True)
    np.testing.assert_allclose(mean[:, 0], expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sd[:, 0], expected[1], rtol=1e-6)
    np.testing.assert_allclose(mean[:, 1:], [[2.0, -1.5]] * 80, rtol=1e-9)
    assert sd[:, 1:].max() < 1e-9


def test_a_code_for_missing_values_does_not_cost_the_column():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 30, (300, 4))
    y = np.sin(X[:, 0] / 2) + 0.1 * X[:, 1] + 0.1 * rng.normal(size=300)
    T = rng.uniform(0, 30, (300, 4))
    X[:3, 0] = -999.0
    with pytest.warns(UserWarning, match="`x0` holds -999 in 3 of 300 rows"):
        model = GPRegressor("rbf").fit(X, y)
    error = model.predict(T) - np.sin(T[:, 0] / 2) - 0.1 * T[:, 1]
    assert np.sqrt(np.mean(error**2)) < 0.04


def test_one_gross_outlier():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 150))[:, None]
    y = 2 * np.sin(x[:, 0]) + 0.1 * rng.standard_normal(150)
    y[70] = 1e6
    places = np.linspace(0.3, 9.7, 80)[:, None]
    with pytest.warns(UserWarning, match="holds 1000000 in 1 of 150 rows"):
        model = RobustGPRegressor().fit(x, y)
    assert np.sqrt(np.mean((model.predict(places) - 2 * np.sin(places[:, 0])) ** 2)) < 0.05
    with pytest.warns(UserWarning, match="`student-t`"):
        GPRegressor(max_iter=2).fit(x, y)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_sorted_file_is_streamed_from_all_over(tmp_path):
    rng = np.random.default_rng(1)
    # more than are mixed in memory
    n = 265_000
    x = rng.uniform(-2, 2, n).round(4)
    y = np.sin(2 * x) + 0.1 * rng.normal(size=n)
    order = np.argsort(y)
    table = tmp_path / "sorted.csv"
    np.savetxt(table, np.c_[x[order], y[order]], delimiter=",", header="x,y", comments="", fmt="%.5g")
    model = GPRegressor(method="svgp", n_inducing=15, epochs=1, batch_size=2000, pilot=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit_file(table, "y", stream=True)
    places = np.linspace(-1.8, 1.8, 50)[:, None]
    assert np.sqrt(np.mean((model.predict(places) - np.sin(2 * places[:, 0])) ** 2)) < 0.05


def written(path, rows, header="a;b;y", between=";"):
    path.write_text("\n".join([header, *(between.join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def plane(count=60):
    return [(i * 7 % count * 25.5, i * 11 % count / 4, i * 7 % count * 12.5 - i % 4) for i in range(count)]


def test_numbers_in_other_notations_are_refused_or_read(tmp_path):
    model = GPRegressor(max_iter=2, pilot=0)
    points = written(tmp_path / "p.csv", [[f"{v:.2f}" for v in row] for row in plane()])
    commas = written(tmp_path / "c.csv", [[f"{v:.2f}".replace(".", ",") for v in row] for row in plane()])
    with pytest.raises(ValueError, match=r"c\.csv: row 1, column `a`: `0,00` has a comma: pass `decimal=','`"):
        model.fit_file(commas, "y")
    objective = quiet_file(model, points, "y").objective_
    assert quiet_file(model, commas, "y", decimal=",").objective_ == objective
    grouped = written(tmp_path / "g.csv", [[f"{v:,.2f}" for v in row] for row in plane()])
    with pytest.raises(ValueError, match="thousands=','"):
        model.fit_file(grouped, "y")
    assert quiet_file(model, grouped, "y", thousands=",").objective_ == objective
    with pytest.raises(ValueError, match="decimal separator is `;`"):
        model.fit_file(commas, "y", decimal=";")
    with pytest.raises(ValueError, match="one character"):
        model.fit_file(commas, "y", decimal=",,")


def quiet_file(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit_file(*args, **kwargs)


def test_words_among_numbers_are_missing_or_named(tmp_path):
    model = GPRegressor(max_iter=2, pilot=0)
    rows = [[f"{v:.2f}" for v in row] for row in plane()]
    rows[4][1], rows[9][1] = "unknown", "-"
    table = written(tmp_path / "w.csv", rows)
    with pytest.raises(ValueError, match=r"row 5, column `b`: `unknown`.*`missing_words=\['unknown'\]`"):
        model.fit_file(table, "y", missing="drop")
    with pytest.raises(ValueError, match="missing_words is the text"):
        model.fit_file(table, "y", missing_words="unknown")
    with pytest.warns(
        UserWarning, match=r"column `b`.*`-` in 1 row \(first: row 10\).*`unknown` in 1 row \(first: row 5\)"
    ):
        model.fit_file(table, "y", missing="drop", missing_words=["unknown"])
    assert model._about["rows"] == 58 and list(model.feature_names_in_) == ["a", "b"]
    with pytest.raises(
        ValueError, match=r"row 5, column `b`: `unknown` is a missing value; pass `missing='drop'`"
    ):
        model.fit_file(table, "y", missing_words=["unknown"])


def test_dates_take_a_format(tmp_path):
    rows = [[f"{1 + i % 28:02}/{1 + i // 28:02}/2024", str(i)] for i in range(50)]
    table = written(tmp_path / "d.csv", rows, "when,y", ",")
    model = GPRegressor(max_iter=2, pilot=0)
    with pytest.raises(ValueError, match="`date_format='%d/%m/%Y'`"):
        model.fit_file(table, "y")
    for date_format in ("%d/%m/%Y", ["when=%d/%m/%Y"]):
        quiet_file(model, table, "y", date_format=date_format)
        assert model._about["columns"][0]["encoding"] == "date"


def levels_table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 6, 120)
    y = np.array(["low", "medium", "high"])[np.clip((x + 0.3 * rng.normal(size=120)) / 2, 0, 2).astype(int)]
    return x[:, None], y, written(tmp_path / "o.csv", [[f"{a}", b] for a, b in zip(x, y)], "x,y", ",")


def test_ordered_levels_take_their_order(tmp_path):
    x, y, table = levels_table(tmp_path)
    order = ["low", "medium", "high", "extreme"]
    model = GPClassifier(likelihood="ordinal", max_iter=20, pilot=40)
    with pytest.raises(ValueError, match="levels of `y` are texts"):
        model.fit_file(table, "y")
    quiet_file(model, table, "y", levels=order)
    assert list(model.classes_) == order and model.score(x, y) > 0.7
    with pytest.raises(ValueError, match="ordered categorical"):
        model.fit(x, y)
    with pytest.raises(ValueError, match="levels are the classes"):
        GPRegressor().fit_file(table, "y", levels=order)
    pandas = pytest.importorskip("pandas")
    frames = [pandas.Series(pandas.Categorical(y, categories=order, ordered=True), name="y")]
    try:
        import polars

        frames.append(polars.Series("y", y.tolist(), dtype=polars.Enum(order)))
    except ImportError:
        pass
    for levels in frames:
        quiet(model, x, levels)
        assert list(model.classes_) == order and model.score(x, y) > 0.7
        model.save(tmp_path / "m")
        again = load(tmp_path / "m")
        assert list(again.classes_) == order
        assert list(again.predict([[0.5], [5.5]])) == ["low", "high"]


def test_checksums_of_pages_are_verified(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    x = np.random.default_rng(0).normal(size=64)
    path = tmp_path / "rows.parquet"
    parquet.write_table(
        pa.table({"x": x, "y": np.sin(x)}),
        path,
        write_page_checksum=True,
        use_dictionary=False,
        compression="none",
    )
    content = bytearray(path.read_bytes())
    # a bit of a value
    content[content.index(x[10].tobytes()) + 6] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="(?i)checksum"):
        GPRegressor(max_iter=2).fit_file(path, "y")


def test_durations_in_files_are_refused_from_every_writer(tmp_path):
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    y = np.sin(np.arange(20))
    path = tmp_path / "rows.parquet"
    gaps = pd.to_timedelta(np.arange(20), unit="s")
    for write in (
        lambda: pd.DataFrame({"t": gaps, "y": y}).to_parquet(path),
        lambda: pl.DataFrame({"t": list(gaps.to_pytimedelta()), "y": y}).write_parquet(path),
    ):
        write()
        with pytest.raises(ValueError, match="column `t` holds durations"):
            GPRegressor(max_iter=2).fit_file(path, "y")
