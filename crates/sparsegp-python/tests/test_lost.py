"""What cannot be had is an exception that says so: memory, labels, names, and mistakes of the library itself."""

import subprocess
import sys

import numpy as np
import pandas
import polars
import pytest

from sparsegp import GPClassifier, GPRegressor, _core, kernels, load
from sparsegp.likelihoods import Gaussian
from sparsegp.models import GPR

rng = np.random.default_rng(0)
X = rng.uniform(0, 5, (50, 2))
y = np.sin(X[:, 0])
MANY = rng.uniform(0, 5, (3_000_000, 2))


@pytest.fixture(scope="module")
def model():
    return GPRegressor().fit(X, y)


@pytest.fixture(scope="module")
def by_hand():
    return GPR((X, y[:, None]), kernels.RBF(1.0, 1.0), noise_variance=0.1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda m, g: m.predict(MANY, return_cov=True),
        lambda m, g: m.sample_y(MANY),
        lambda m, g: m.sample_y(X, n_samples=10**12),
        lambda m, g: g.predict_f(MANY, full_cov=True),
        lambda m, g: g.predict_f_samples(MANY, 3),
        lambda m, g: g.predict_f_samples(X, 10**12),
        lambda m, g: kernels.RBF(1.0, 1.0)(MANY),
        lambda m, g: kernels.RBF(1.0, 1.0)(MANY, MANY),
        lambda m, g: g.sample_functions(10**12),
    ],
)
def test_what_does_not_fit_into_memory_is_refused_with_its_size(model, by_hand, ask):
    with pytest.raises(MemoryError, match=r"[TPE]B(?s:.)*available"):
        ask(model, by_hand)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_a_limit_of_the_process_is_known():
    code = (
        "import resource, numpy as np; from sparsegp import GPRegressor\n"
        "x = np.linspace(0, 9, 50)[:, None]; m = GPRegressor(max_iter=3).fit(x, np.sin(x[:, 0]))\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30,) * 2)\n"
        "try: m.sample_y(np.linspace(0, 9, 1000)[:, None], n_samples=10**6)\n"
        "except MemoryError as error: print('refused', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "refused" in done.stdout and "GB" in done.stdout, done.stdout


def test_what_fits_is_given(model, by_hand):
    few = MANY[:200]
    assert model.predict(few, return_cov=True)[1].shape == (200, 200)
    assert model.sample_y(few, n_samples=7).shape == (200, 7)
    assert kernels.RBF(1.0, 1.0)(few).shape == (200, 200)


def test_a_failure_inside_is_an_exception_like_any_other():
    with pytest.raises(RuntimeError, match="on purpose(?s:.)*please report"):
        _core.fail_inside()


@pytest.mark.parametrize(
    "labels",
    [
        ["a", None, "b", None] * 3,
        pandas.Series(["a", None, "b", None] * 3),
        pandas.Series(["a", pandas.NA, "b", "a"] * 3, dtype="string"),
        polars.Series(["a", None, "b", "a"] * 3),
    ],
)
def test_labels_that_are_missing_are_named_by_row(labels):
    x = np.arange(12.0)[:, None]
    with pytest.raises(ValueError, match=r"no label in row 1 and \d more(?s:.)*leave such rows out"):
        GPClassifier().fit(x, labels)
    known = GPClassifier().fit(x, ["a", "b"] * 6)
    with pytest.raises(ValueError, match="no label in row 1"):
        known.log_predictive_density(x, labels)


@pytest.mark.parametrize(
    "make, hint",
    [
        (lambda: GPRegressor(optimizer="adam"), "'optimiser'"),
        (lambda: GPRegressor(standardize=True), "'standardise'"),
        (lambda: GPRegressor(normalize_y=True), "'standardise'"),
        (lambda: GPClassifier(lengthscale=1.0), r"rbf\(lengthscales=0.5\)"),
        (lambda: GPRegressor(alpha=0.1), r"gaussian\(variance=0.1\)"),
        (lambda: GPRegressor(n_induced=5), "did you mean 'n_inducing'"),
        (lambda: kernels.RBF(lengthscale=1.0), "'lengthscales'"),
        (lambda: kernels.Matern52(length_scale=1.0), "'lengthscales'"),
        (lambda: Gaussian(noise=1.0), "known are|did you mean|called"),
    ],
)
def test_names_of_other_libraries_get_a_hint(make, hint):
    with pytest.raises(TypeError, match=hint):
        make()


def test_unknown_parameters_that_are_set_get_a_hint():
    with pytest.raises(ValueError, match="'optimiser'"):
        GPRegressor().set_params(optimizer="adam")


def test_a_flipped_bit_is_an_error(model, tmp_path):
    path = tmp_path / "m.safetensors"
    model.save(path)
    content = bytearray(path.read_bytes())
    content[-100] ^= 8
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="is damaged: tensor"):
        load(path)
