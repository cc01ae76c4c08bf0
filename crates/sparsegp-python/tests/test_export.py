"""Predictions as code for elsewhere."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsegp
from sparsegp import GPClassifier, GPCountRegressor, GPRegressor, export


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
    source = f'#include "{header}"\n#include <stdio.h>\nint main(void) {{ double a[3], b[3]; int i; (void)b;\n'
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
    with pytest.raises(ValueError, match="is not a name of C"):
        export(model, tmp_path / "m.h", name="a b")
    with pytest.raises(FileNotFoundError):
        export(model, tmp_path / "nowhere" / "m.h")
    with pytest.raises(NotFittedError):
        export(GPRegressor(), tmp_path / "m.h")
    with pytest.raises(TypeError, match="not Pipeline"):
        export(make_pipeline(StandardScaler(), model), tmp_path / "m.h")
    assert list(tmp_path.iterdir()) == []


def run_onnx(path, X):
    """What a runtime gives at rows, by the names of the outputs."""
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(None, {"x": np.ascontiguousarray(X, dtype=np.float64)})
    return dict(zip([own.name for own in session.get_outputs()], found))


def assert_onnx(model, path, X, rtol=1e-8):
    """A runtime gives what the estimator predicts: of many rows, and of one."""
    mean, sd = model.predict(X, return_std=True)
    for rows in (slice(None), slice(1, 2)):
        found = run_onnx(path, X[rows])
        np.testing.assert_allclose(found["mean"][:, 0], mean[rows], rtol=rtol, atol=1e-8)
        np.testing.assert_allclose(found["sd"][:, 0], sd[rows], rtol=rtol)


KERNELS = [
    "rbf",
    "constant",
    "matern12 + linear(active_dims=[0])",
    "matern32(ard=false) * constant + white",
    "matern52 + exponential(active_dims=[1])",
    "rational_quadratic + polynomial(degree=2, active_dims=[0])",
    "gamma_exponential(gamma=1.3)",
    "additive(base=matern52, order=2)",
    "periodic(base=matern32(active_dims=[0])) * rbf + cosine(active_dims=[1])",
    "periodic(base=matern52(active_dims=[0]), form=gpflow) + rbf",
    "changepoints(kernels=[rbf, matern32], active_dims=[0])",
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", ["exact", "titsias2025"])
def test_onnx_predicts_as_the_estimator(rows, tmp_path, kernel, method):
    X, y = rows
    size = None if method == "exact" else 18
    model = GPRegressor(
        kernel=kernel, method=method, n_inducing=size, max_iter=8, hyperparameters="plug-in", pilot=0
    ).fit(X, y)
    found = export(model, tmp_path / "m.onnx")
    assert found.format == "onnx" and found.inputs == ["x0", "x1"]
    path = str(tmp_path / "m.onnx")
    at = AT if "polynomial" not in kernel else AT[:4]
    assert_onnx(model, path, at)
    # many rows, with the latent function
    many = np.random.default_rng(5).uniform([50, -2], [400, 2], (500, 2))
    assert_onnx(model, path, many)
    mean, variance = model.latent_mean_and_variance(many)
    found = run_onnx(path, many)
    np.testing.assert_allclose(found["latent_mean"][:, 0], mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found["latent_sd"][:, 0] ** 2, variance, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("transform", ["none", "log", "yeo-johnson"])
def test_onnx_of_averages_and_transformed_targets(rows, tmp_path, transform):
    X, y = rows
    model = GPRegressor(target_transform=transform, mean="linear").fit(X[:50], np.exp(y[:50] / 7))
    export(model, tmp_path / "m.onnx")
    assert_onnx(model, str(tmp_path / "m.onnx"), AT[:3], rtol=1e-7)


@pytest.mark.parametrize("likelihood", ["bernoulli", "bernoulli(link=logit)", "bernoulli(floor=0.01)"])
def test_onnx_of_classes_has_probabilities(rows, tmp_path, likelihood):
    X, y = rows
    model = GPClassifier(likelihood=likelihood).fit(X, np.where(y > 0, "up", "down"))
    found = export(model, tmp_path / "m.onnx")
    assert found.outputs["probabilities"] == ["down", "up"]
    shown = run_onnx(str(tmp_path / "m.onnx"), AT)["probabilities"]
    np.testing.assert_allclose(shown, model.predict_proba(AT), rtol=1e-7, atol=1e-9)


def test_onnx_of_counts_has_rates(rows, tmp_path):
    X, y = rows
    model = GPCountRegressor(max_iter=20).fit(X, np.round(np.exp(y / 4)))
    export(model, tmp_path / "m.onnx")
    found = run_onnx(str(tmp_path / "m.onnx"), AT[:3])
    np.testing.assert_allclose(found["mean"][:, 0], model.predict(AT[:3]), rtol=1e-8)


def test_onnx_says_what_it_is(rows, tmp_path):
    onnx = pytest.importorskip("onnx")
    X, y = rows
    model = GPRegressor(kernel="rbf + linear", method="titsias2025", n_inducing=10, max_iter=5).fit(X, y)
    export(model, tmp_path / "m.onnx")
    own = onnx.load(str(tmp_path / "m.onnx"))
    about = {entry.key: entry.value for entry in own.metadata_props}
    assert own.producer_name == "sparsegp" and own.producer_version == sparsegp.__version__
    assert about["kernel"] == "rbf + linear" and about["likelihood"] == "gaussian"
    assert json.loads(about["inputs"])[1] == {"name": "x1", "kind": "number"}
    assert json.loads(about["outputs"])["sd"] == ["y0"]
    assert own.opset_import[0].version >= 17
    dims = own.graph.input[0].type.tensor_type.shape.dim
    assert dims[0].dim_param == "N" and dims[1].dim_value == 2


def test_onnx_of_nearly_singular_covariances(tmp_path):
    x = np.sort(np.concatenate([np.linspace(0, 1, 40), np.linspace(0, 1, 40) + 1e-6]))[:, None]
    model = GPRegressor(
        kernel="rbf(lengthscales=3)",
        method="exact",
        initial={"likelihood.variance": 1e-6},
        max_iter=0,
        hyperparameters="plug-in",
    ).fit(x, np.sin(5 * x[:, 0]))
    export(model, tmp_path / "m.onnx")
    at = np.array([[0.5], [0.501], [-1.0], [3.0], [100.0]])
    assert_onnx(model, str(tmp_path / "m.onnx"), at, rtol=1e-6)
