"""Predictions as code for elsewhere."""

import shutil
import subprocess

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsegp import GPClassifier, GPRegressor, export


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    X = rng.uniform([100, -1], [300, 1], (90, 2))
    return X, 7 * np.sin(X[:, 0] / 40) + X[:, 1] + 0.1 * rng.normal(size=90)


# inside, and far outside
AT = np.array([[150.0, 0.2], [222.2, -0.9], [300.0, 1.0], [-1000.0, 4.0], [1e6, -50.0]])


def compiled(folder, header, calls):
    """What calls of functions of a header give at each row of ``AT``."""
    values = ", ".join("{" + ", ".join(repr(float(v)) for v in row) + "}" for row in AT)
    source = f'#include "{header}"\n#include <stdio.h>\nint main(void) {{ double a[3], b[3]; int i;\n'
    source += f"static const double x[{len(AT)}][2] = {{{values}}};\nfor (i = 0; i < {len(AT)}; i++) {{ {calls} }} return 0; }}\n"
    (folder / "main.c").write_text(source, encoding="utf-8")
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *flags, "main.c", "-o", "main", "-lm"], cwd=folder, check=True)
    out = subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout
    return np.array([[float(v) for v in line.split()] for line in out.splitlines()])


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@needs_compiler
@pytest.mark.parametrize("method", ["auto", "titsias2025"])
def test_a_compiled_header_predicts_as_the_estimator(rows, tmp_path, method):
    X, y = rows
    model = GPRegressor(method=method, n_inducing=None if method == "auto" else 20).fit(X, y)
    found = export(model, tmp_path / "wave height.h")
    assert (found.name, found.format, found.inputs) == ("wave_height", "c", ["x0", "x1"])
    assert found.kinds["x0"] == "number" and found.outputs["sd"] == ["y0"]
    call = 'wave_height_predict(x[i], a, b); printf("%.17g %.17g\\n", a[0], b[0]);'
    mean, sd = compiled(tmp_path, "wave height.h", call).T
    expected, deviation = model.predict(AT, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sd, deviation, rtol=1e-8)


@needs_compiler
def test_probabilities_are_in_the_order_of_the_classes(rows, tmp_path):
    X, y = rows
    model = GPClassifier().fit(X, np.where(y > 0, "up", "down"))
    found = export(model, tmp_path / "m.txt", format="c", name="tide")
    assert found.outputs["probabilities"] == list(model.classes_) == ["down", "up"]
    shown = compiled(tmp_path, "m.txt", 'tide_probabilities(x[i], a); printf("%.17g %.17g\\n", a[0], a[1]);')
    np.testing.assert_allclose(shown, model.predict_proba(AT), atol=1e-9)


def test_inputs_of_frames_have_their_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    day = pandas.date_range("2020-01-05", periods=80, freq="D")
    colour = rng.choice(["red", "green", "blue"], 80)
    X = pandas.DataFrame({"day": day, "colour": colour, "size": rng.uniform(0, 3, 80)})
    model = GPRegressor().fit(X, X["size"] + (colour == "red"))
    found = export(model, tmp_path / "m.h")
    assert found.inputs == ["day", "colour=blue", "colour=green", "colour=red", "size"]
    assert found.kinds["colour=red"] == "1 where column `colour` is `red`, else 0"
    assert found.kinds["day"].startswith("days since 1970-01-01")


def test_what_cannot_be_exported_is_refused(rows, tmp_path):
    X, y = rows
    model = GPRegressor(kernel="arccosine").fit(X, y)
    with pytest.raises(ValueError, match="the kernel `arccosine` cannot be exported"):
        export(model, tmp_path / "m.h")
    model = GPRegressor(kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="ending of .* says no format"):
        export(model, tmp_path / "m.txt")
    with pytest.raises(ValueError, match="format must be one of"):
        export(model, tmp_path / "m.h", format="fortran")
    with pytest.raises(ValueError, match="is no name of C"):
        export(model, tmp_path / "m.h", name="a b")
    with pytest.raises(FileNotFoundError):
        export(model, tmp_path / "nowhere" / "m.h")
    with pytest.raises(NotFittedError):
        export(GPRegressor(), tmp_path / "m.h")
    with pytest.raises(TypeError, match="not Pipeline"):
        export(make_pipeline(StandardScaler(), model), tmp_path / "m.h")
    assert list(tmp_path.iterdir()) == []
