"""Mean functions that are classes of Python: the same models as with the built-in ones, files, and what is refused."""

import pickle

import numpy as np
import pytest
from own_means import Decay, Line, Two
from sklearn.base import clone

import sparsegp
from sparsegp import GPRegressor, means, models, testing
from sparsegp.kernels import RBF
from sparsegp.priors import Parameter

X = np.random.default_rng(0).uniform(-3.0, 3.0, (60, 2))
Y = np.sin(X[:, 0]) + 2.0 * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=60)


def test_full_checks():
    testing.check_mean(Line(slopes=[2.3, -0.4], offset=1.7), X[:6])
    testing.check_mean(Line(slopes=[2.3, -0.4], offset=1.7), X[:6], outputs=3)
    testing.check_mean(Decay(2.5, height=-1.3, rate=0.3), X[:6])
    testing.check_mean(Two(slope=1.9), X[:6], outputs=2)


@pytest.mark.parametrize("package", ["jax", "autograd"])
def test_slopes_by_other_packages(package):
    pytest.importorskip(package)
    if package == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        np_ = jax.numpy
    else:
        import autograd.numpy as np_

    class Wave(means.Custom):
        positive = {"height": 0.7}
        real = {"w": [0.3, -1.2]}
        per_input = ("w",)
        differentiation = package

        def value(self, X, height, w):
            return height * np_.sin(np_.dot(X, w))

    testing.check_mean(Wave(height=2.5), X[:6])
    testing.check_mean(Wave(height=2.5), X[:6], outputs=2)


@pytest.mark.parametrize("method", ["exact", "titsias2025", "svgp2025", "tvgp"])
def test_fits_are_those_of_the_built_in_mean_function(method):
    sparse = {} if method in ("exact", "tvgp") else {"n_inducing": 20, "full_batch": True}
    own, reference = (
        GPRegressor("rbf", mean=mean, method=method, **sparse).fit(X, Y) for mean in (Line(), "linear")
    )
    # searches end in different places, as good as each other
    assert own.score(X, Y) == pytest.approx(reference.score(X, Y), abs=0.01) and own.score(X, Y) > 0.9
    assert "mean.slopes" in own.summary()
    assert "mean function Line: slopes by central differences of its values" in own.summary()


def test_models_have_the_values_and_slopes_of_the_built_in():
    data = (X, Y[:, None])
    kernel = RBF([0.6, 1.7], 1.4)
    of = {"type": "linear", "weights": [0.3, 1.2], "constant": 0.7}
    own = models.GPR(data, kernel, noise_variance=0.3, mean=Line(slopes=[0.3, 1.2], offset=0.7))
    reference = models.GPR(data, kernel, noise_variance=0.3, mean=of)
    # a bound is without the priors, of which the offset has one
    assert own.elbo() == pytest.approx(reference.elbo(), rel=1e-10)
    assert own.log_prior() != 0.0
    np.testing.assert_allclose(own.predict_f(X[:4])[0], reference.predict_f(X[:4])[0], rtol=1e-9)
    own["mean.slopes"] = [0.4, 1.1]
    reference["mean.weights"] = [[0.4], [1.1]]
    np.testing.assert_allclose(own.predict_f(X[:4])[0], reference.predict_f(X[:4])[0], rtol=1e-9)
    own["mean.offset"] = 0.0
    own.optimise()
    assert own["mean.slopes"][1] == pytest.approx(2.0, abs=0.4)


def test_formulas_in_units_of_the_data_and_several_outputs():
    x = np.linspace(0.0, 9.0, 40)[:, None]
    y = 3.0 * np.exp(-0.7 * x[:, 0])
    model = GPRegressor("rbf", mean=Decay(), standardise=False).fit(x, y)
    found = model.predict([[0.5], [30.0]])
    np.testing.assert_allclose(found, [3.0 * np.exp(-0.35), 0.0], atol=0.1)
    fixed = Decay(height=Parameter(3.0, fixed=True), rate=0.7)
    kept = GPRegressor("rbf", mean=fixed, standardise=False).fit(x, y)
    values = {path: value for path, value, *_ in kept._table()}
    assert values["mean.height (fixed)"] == "3" and float(values["mean.rate"]) == pytest.approx(0.7, abs=1e-3)
    both = np.stack([y, -(y**2)], axis=1)
    two = GPRegressor("rbf", mean=Two(), standardise=False).fit(x, both)
    np.testing.assert_allclose(two.predict(x[:3]), both[:3], atol=0.1)
    # slopes of each output, by differences
    slopes = np.asarray(two.predict_gradients(x[:3])[0])
    apart = (two.predict(x[:3] + 1e-3) - two.predict(x[:3] - 1e-3)) / 2e-3
    np.testing.assert_allclose(slopes.reshape(3, -1), apart, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="Two has 2 outputs, and 1 are needed"):
        GPRegressor("rbf", mean=Two()).fit(x, y)


def test_pickles_clones_and_files_keep_the_class_by_its_path(tmp_path):
    model = GPRegressor("rbf", mean=Decay(2.0), method="titsias2025", n_inducing=10).fit(X, Y)
    expected = model.predict(X[:4])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X[:4]), expected)
    assert clone(model).mean == Decay(2.0)
    path = tmp_path / "model.safetensors"
    model.save(path)
    read = sparsegp.load(path)
    np.testing.assert_array_equal(read.predict(X[:4]), expected)
    assert read.mean == Decay(2.0)
    assert b"own_means:Decay" in path.read_bytes()
    for name, words in [
        ("no.such:Own", "cannot be imported"),
        ("own_means:Missing", "no mean function `Missing`"),
    ]:
        spec = f'{{"type": "python", "class": "{name}"}}'
        with pytest.raises(ValueError, match=words):
            sparsegp._core.check_mean(spec, X, 1)


class Mistaken(Line):
    """Goes wrong in a way that an argument chooses."""

    def __init__(self, how="", **values):
        super().__init__(**values)
        self.how = how

    def value(self, X, slopes, offset):
        value = super().value(X, slopes, offset)
        if self.how == "raises":
            raise KeyError("on purpose")
        return {
            "nan": value * np.nan,
            "rows": value - value.mean() + len(X),
            "shape": value[:, None],
            "single": value.astype("f4"),
        }.get(self.how, value)


class Wrong(Decay):
    def gradients(self, G, X, height, rate):
        found = super().gradients(G, X, height, rate)
        return {**found, "rate": 1.01 * found["rate"] + 0.1}


@pytest.mark.parametrize(
    "mean, words",
    [
        (Mistaken("nan"), "`Mistaken` is NaN"),
        (Mistaken("rows"), "must look at every row by itself"),
        (Mistaken("shape"), r"Mistaken: value\(X\) has shape"),
        (Mistaken("single"), "float32"),
        (Wrong(), "`Wrong` has the slope .* in `rate`"),
    ],
)
def test_what_is_not_a_mean_function_is_refused(mean, words):
    with pytest.raises(ValueError, match=words):
        GPRegressor("rbf", mean=mean, method="exact").fit(X, Y)
    with pytest.raises((ValueError, AssertionError)):
        testing.check_mean(mean, X[:5])


def test_exceptions_and_declarations():
    with pytest.raises(KeyError, match="on purpose"):
        GPRegressor("rbf", mean=Mistaken("raises")).fit(X, Y)
    with pytest.raises(TypeError, match="outputs is 0"):
        type("Own", (means.Custom,), {"outputs": 0})
    with pytest.raises(TypeError, match="needs a value to start from"):
        type("Own", (means.Custom,), {"real": {"height": None}})
    with pytest.raises(TypeError, match="there is a mean function of this name"):
        type("linear", (means.Custom,), {})
    with pytest.raises(TypeError, match="no parameter 'speed'"):
        Line(speed=1.0)
    with pytest.raises(TypeError, match="for subclasses"):
        means.Custom()
