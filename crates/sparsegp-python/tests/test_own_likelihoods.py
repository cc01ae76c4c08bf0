"""Likelihoods that are classes of Python: the same models as with the built-in ones, files, and what is refused."""

import pickle

import numpy as np
import pytest
from own_likelihoods import Poisson, Scaled, Sides, StudentT

import sparsegp
from sparsegp import GPClassifier, GPRegressor, likelihoods, models, testing
from sparsegp.kernels import RBF


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_t(3, n)


PAIRS = [
    (StudentT(df=5.0, scale=0.7), likelihoods.StudentT(5.0, 0.7), [-0.4, 2.1, 0.3]),
    (Poisson(), likelihoods.Poisson(), [0.0, 3.0, 1.0]),
]


@pytest.mark.parametrize("own, reference, y", PAIRS, ids=["StudentT", "Poisson"])
def test_expectations_and_predictions_are_those_of_the_built_in(own, reference, y):
    mean, variance = np.array([[0.3], [-0.5], [0.8]]), np.array([[0.4], [1.1], [0.0]])
    np.testing.assert_allclose(own.log_prob(mean, y), reference.log_prob(mean, y), rtol=1e-12)
    (a, slopes), (b, expected) = (
        likelihood.variational_expectations_and_gradients(mean, variance, y) for likelihood in (own, reference)
    )
    np.testing.assert_allclose(a, b, atol=1e-8)
    assert set(slopes) == set(expected)
    for name, slope in expected.items():
        np.testing.assert_allclose(slopes[name], slope, atol=1e-7, err_msg=name)
    for ask in (
        lambda p: p.predict_mean_and_var(mean, variance),
        lambda p: p.predict_log_density(mean, variance, y),
        lambda p: p.predict_cdf(mean, variance, y),
        lambda p: p.predict_quantile(mean, variance, 0.9),
    ):
        np.testing.assert_allclose(ask(own), ask(reference), rtol=1e-6, atol=1e-7)
    draws = own.sample(np.full((3000, 1), 0.4), seed=1)
    assert np.median(draws) == pytest.approx(
        np.median(reference.sample(np.full((3000, 1), 0.4), seed=2)), abs=0.06
    )


def test_full_checks():
    testing.check_likelihood(StudentT(df=7.0, scale=1.4), [-0.4, 2.1])
    testing.check_likelihood(Poisson(1.7), [0.0, 4.0])
    testing.check_likelihood(Scaled(scale=0.7), [-0.4, 2.1])
    testing.check_likelihood(Sides(), [0.0, 1.0])
    testing.check_likelihood("gamma(shape=2.3)", [0.4, 2.1])


@pytest.mark.parametrize("package", ["jax", "autograd"])
def test_slopes_by_other_packages(package):
    pytest.importorskip(package)
    if package == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        np_ = jax.numpy
    else:
        import autograd.numpy as np_

    class Cauchy(likelihoods.Custom):
        positive = {"width": 0.7}
        differentiation = package

        def log_density(self, y, f, width):
            return -np_.log(1 + ((y - f) / width) ** 2) - np_.log(np.pi * width)

    testing.check_likelihood(Cauchy(width=2.5), [-0.4, 2.1])


@pytest.mark.parametrize("method", ["svgp", "tsvgp", "tvgp"])
def test_fits_are_those_of_the_built_in_likelihood(method):
    X, y = table()
    sparse = {"max_iter": 15} if method == "tvgp" else {"n_inducing": 12, "epochs": 15}
    own, reference = (
        GPRegressor("rbf", likelihood=likelihood, method=method, **sparse).fit(X, y)
        for likelihood in (StudentT(df=4.0), likelihoods.StudentT(4.0))
    )
    new = np.linspace(-2.5, 2.5, 5)[:, None]
    # searches end in different places, as good as each other
    np.testing.assert_allclose(own.predict(new), reference.predict(new), atol=0.1)
    assert own.score(X, y) == pytest.approx(reference.score(X, y), abs=0.01)
    found = own.likelihood_
    assert isinstance(found, StudentT)
    if method == "svgp":
        assert "likelihood StudentT: slopes by central differences of its log density" in own.summary()


def test_other_models():
    X, y = table()
    counts = np.random.default_rng(1).poisson(np.exp(1 + y)).astype(float)
    few = dict(method="svgp", pilot=40)
    own, reference = (
        GPRegressor("rbf", likelihood=likelihood, n_inducing=10, epochs=8, batch_size=60, **few).fit(X, counts)
        for likelihood in (Poisson(), "poisson")
    )
    np.testing.assert_allclose(own.predict(X[:5]), reference.predict(X[:5]), rtol=0.1)
    two = GPRegressor("rbf", likelihood=Scaled(), n_inducing=8, epochs=3, **few).fit(X, y)
    assert np.isfinite(two.predict(X[:3])).all()
    classes = GPClassifier("rbf", likelihood=Sides(), n_inducing=8, epochs=12, **few).fit(X, y > 0)
    assert classes.score(X, y > 0) > 0.85
    model = models.SVGP(RBF(1.0, 1.0), Poisson(), inducing_points=X[:10], num_data=len(X))
    same = models.SVGP(RBF(1.0, 1.0), likelihoods.Poisson(), inducing_points=X[:10], num_data=len(X))
    data = (X, counts[:, None])
    assert model.elbo(data) == pytest.approx(same.elbo(data), rel=1e-6)


def test_pickles_and_files_keep_the_class_by_its_path(tmp_path):
    X, y = table()
    counts = np.round(np.exp(1 + y))
    model = GPRegressor("rbf", likelihood=Poisson(2.0), method="svgp", n_inducing=8, epochs=5).fit(X, counts)
    assert model.likelihood_.unit == 2.0
    expected = model.predict(X[:4])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X[:4]), expected)
    path = tmp_path / "model.safetensors"
    model.save(path)
    np.testing.assert_array_equal(sparsegp.load(path).predict(X[:4]), expected)
    assert b"own_likelihoods:Poisson" in path.read_bytes()
    for name, words in [
        ("no.such:Own", "cannot be imported"),
        ("own_likelihoods:Missing", "no likelihood `Missing`"),
    ]:
        with pytest.raises(ValueError, match=words):
            sparsegp._core.Likelihood(f'{{"type": "python", "class": "{name}"}}')


class Mistaken(StudentT):
    """Goes wrong in a way that an argument chooses."""

    def __init__(self, how="", **values):
        super().__init__(**values)
        self.how = how

    def log_density(self, y, f, df, scale):
        log = super().log_density(y, f, df, scale)
        if self.how == "raises" or self.how == "later" and scale != 0.4:
            raise KeyError("on purpose")
        return {"nan": log * np.nan, "constant": log + 0.3, "shape": log[:-1], "single": log.astype("f4")}.get(
            self.how, log
        )


@pytest.mark.parametrize(
    "how, words",
    [
        ("nan", "`Mistaken` has the log density NaN"),
        ("constant", "`Mistaken` has a density whose integral"),
        ("shape", r"Mistaken: log_density\(y, f\) has shape"),
        ("single", "float32"),
    ],
)
def test_what_is_not_a_density_is_refused(how, words):
    with pytest.raises(ValueError, match=words):
        GPRegressor("rbf", likelihood=Mistaken(how), method="svgp", n_inducing=8, epochs=2).fit(*table())


@pytest.mark.parametrize("how", ["raises", "later"])
def test_exceptions_come_out_as_they_are(how):
    with pytest.raises(KeyError, match="on purpose"):
        GPRegressor("rbf", likelihood=Mistaken(how), method="svgp", n_inducing=8, epochs=2).fit(*table())


def test_declarations_and_targets_are_checked():
    for words, own in [
        ("support is 'many'", {"support": "many"}),
        ("support is", {"support": ("interval", 1.0)}),
        ("latents is 0", {"latents": 0}),
        ("needs a value to start from", {"positive": {"variance": None}}),
    ]:
        with pytest.raises(TypeError, match=words):
            type("Own", (likelihoods.Custom,), own)
    with pytest.raises(TypeError, match="does not define `log_density"):
        type("Own", (likelihoods.Custom,), {})()
    X, y = table()
    with pytest.raises(ValueError, match="count"):
        GPRegressor("rbf", likelihood=Poisson(), method="svgp", n_inducing=8, epochs=2).fit(X, y)

    class Wrong(Poisson):
        def slopes(self, y, f):
            return {"f": 1.1 * (y - self.unit * np.exp(f))}

    with pytest.raises(ValueError, match="`Wrong` has the slope .* in f for y"):
        GPRegressor("rbf", likelihood=Wrong(), method="svgp", n_inducing=8, epochs=2).fit(
            X, np.round(np.exp(1 + y))
        )
    # methods that need Gaussian noise or local variables
    for method in ("titsias2025", "cavi"):
        with pytest.raises(ValueError, match="StudentT"):
            GPRegressor("rbf", likelihood=StudentT(), method=method).fit(X, y)
