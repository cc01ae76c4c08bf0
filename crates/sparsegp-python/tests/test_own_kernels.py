"""Kernels that are classes of Python: the same models as with the built-in ones, files, threads, and what is refused."""

import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from own_kernels import Bell, Cauchy, Sloped, squares

import sparsegp
from sparsegp import GPClassifier, GPCountRegressor, GPRegressor, kernels, models, testing
from sparsegp.kernels import RBF, Linear, Matern52
from sparsegp.priors import Parameter

HERE = Path(__file__).parent


def table(n=90, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, d))
    return X, np.sin(X[:, 0] + 0.5 * X[:, -1]) + 0.1 * rng.normal(size=n)


def fitted(kernel, method="exact", **further):
    X, y = table()
    return GPRegressor(kernel=kernel, method=method, random_state=0, **{"max_iter": 200, **further}).fit(X, y)


def run(code, **environment):
    """Another program that knows the kernels of this folder."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**__import__("os").environ, "PYTHONPATH": str(HERE), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


# -- values and slopes ---------------------------------------------------------------------------


@pytest.mark.parametrize("own", [Bell, Sloped])
def test_covariances_and_slopes_are_those_of_the_formula(own):
    X, Z = table(7)[0], table(4, seed=1)[0]
    kernel = own(variance=1.7, lengthscales=[0.8, 1.9])
    reference = RBF(variance=1.7, lengthscales=[0.8, 1.9])
    np.testing.assert_allclose(kernel(X), reference(X), rtol=1e-13)
    np.testing.assert_allclose(kernel(X, Z), reference(X, Z), rtol=1e-13)
    np.testing.assert_allclose(kernel.K_diag(X), reference.K_diag(X), rtol=1e-13)
    weights = np.random.default_rng(2).normal(size=(7, 4))
    for arguments in ((weights, X, Z), (weights @ weights.T, X)):
        found, expected = kernel.K_gradients(*arguments), reference.K_gradients(*arguments)
        assert set(found) == set(expected)
        for name, slope in expected.items():
            np.testing.assert_allclose(found[name], slope, rtol=1e-7, atol=1e-7, err_msg=name)
    testing.check_kernel(kernel, X, Z)
    testing.check_kernel(kernel * Linear(0.7) + Cauchy(3, variance=0.4, beta=1.3, shift=0.3), X, Z)


def test_active_columns():
    X, Z = table(6, 3)[0], table(3, 3, seed=1)[0]
    own = Sloped(variance=1.3, lengthscales=[0.5, 2.0], active_dims=[2, 0])
    reference = RBF([0.5, 2.0], 1.3, active_dims=[2, 0])
    np.testing.assert_allclose(own(X, Z), reference(X, Z), rtol=1e-13)
    testing.check_kernel(own, X, Z)


@pytest.mark.parametrize("package", ["jax", "autograd"])
def test_slopes_by_other_packages(package):
    pytest.importorskip(package)
    if package == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        np_ = jax.numpy
    else:
        import autograd.numpy as np_

    class Differentiated(kernels.Custom):
        positive = {"variance": 1.0, "lengthscales": 1.0}
        per_input = ("lengthscales",)
        differentiation = package

        def value(self, X, Z, variance, lengthscales):
            apart = (X[:, None, :] - Z[None, :, :]) / lengthscales
            return variance * np_.exp(-0.5 * np_.sum(apart**2, axis=2))

    X, Z = table(7)[0], table(4, seed=1)[0]
    testing.check_kernel(Differentiated(variance=1.7, lengthscales=[0.8, 1.9]), X, Z)


# -- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "own, reference, method, further",
    [
        (Bell(), RBF(), "exact", {}),
        (Sloped() + Linear(), RBF() + Linear(), "exact", {}),
        # inducing points move: in hundreds of iterations slopes by differences lead elsewhere in the last digits
        (Bell(), RBF(), "titsias2025", {"n_inducing": 12, "max_iter": 40}),
        (
            Sloped() * Matern52(active_dims=[1]),
            RBF() * Matern52(active_dims=[1]),
            "svgp",
            {"n_inducing": 12, "epochs": 60},
        ),
        (Sloped(), RBF(), "vecchia", {}),
        (Sloped(), RBF(), "full-scale", {"n_inducing": 12}),
    ],
)
def test_fits_are_those_of_the_built_in_kernel(own, reference, method, further):
    new = table(8, seed=5)[0]
    a, b = (fitted(kernel, method, **further) for kernel in (own, reference))
    for found, expected in zip(a.predict(new, return_std=True), b.predict(new, return_std=True)):
        np.testing.assert_allclose(found, expected, atol=3e-2 if method in ("svgp", "full-scale") else 3e-3)
    assert a.score(*table(seed=7)) == pytest.approx(b.score(*table(seed=7)), abs=1e-2)
    kernel = a.kernel_
    assert isinstance(kernel, type(own))
    text = "slopes by central differences" if isinstance(own, Bell) and type(own) is Bell else None
    assert (text is None) or f"kernel Bell: {text} of its values" in a.summary()


def test_other_likelihoods_and_models():
    X, y = table()
    classes = GPClassifier(kernel=Bell() + Linear(), max_iter=15, pilot=30).fit(X, y > 0)
    assert classes.score(X, y > 0) > 0.9
    counts = GPCountRegressor(kernel=Sloped(), max_iter=15, pilot=30).fit(X, np.round(np.exp(y)))
    assert np.isfinite(counts.predict(X)).all()
    values = dict(variance=1.3, lengthscales=[0.8, 1.9])
    own, reference = (
        models.SGPR((X, y[:, None]), kernel(**values), inducing_points=X[:10], noise_variance=0.1)
        for kernel in (Bell, RBF)
    )
    assert own.elbo() == pytest.approx(reference.elbo(), rel=1e-10)
    for model in (own, reference):
        model.optimise(max_iterations=20)
    assert own.elbo() == pytest.approx(reference.elbo(), abs=1e-2)


def test_starting_values_priors_and_arguments():
    X, y = table()
    kernel = Cauchy(4, beta=Parameter(0.7, min=0.5, max=2.0), shift=0.2)
    assert kernel.get_params() == {
        "variance": None,
        "beta": Parameter(0.7, min=0.5, max=2.0),
        "shift": 0.2,
        "degree": 4,
        "active_dims": None,
    }
    assert repr(kernel) == "Cauchy(beta=Parameter(0.7, min=0.5, max=2.0), shift=0.2, degree=4)"
    assert kernel == kernel.replace() and kernel != kernel.replace(degree=2)
    model = GPRegressor(kernel=kernel, method="exact", max_iter=30).fit(X, y)
    found = model.kernel_
    assert isinstance(found, Cauchy) and found.degree == 4
    assert 0.5 <= found.beta.value <= 2.0 and (found.beta.min, found.beta.max) == (0.5, 2.0)
    # the class's own prior
    plain = GPRegressor(kernel=Cauchy(), method="exact", max_iter=5).fit(X, y)
    assert plain.kernel_.beta.prior is not None
    model = GPRegressor(kernel=Cauchy(), method="exact", max_iter=5).set_params(kernel__beta=1.5)
    assert model.kernel.beta == 1.5
    frozen = GPRegressor(kernel=Cauchy(), fixed=["kernel.beta"], method="exact", max_iter=5).fit(X, y)
    value = frozen.kernel_.beta
    assert getattr(value, "value", value) == 0.5


# -- files ---------------------------------------------------------------------------------------


def test_pickles_and_files_keep_the_class_by_its_path(tmp_path):
    new = table(6, seed=5)[0]
    model = fitted(Cauchy(3) + Bell(), max_iter=10, pilot=0)
    expected = model.predict(new)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(new), expected)
    path = tmp_path / "model.safetensors"
    model.save(path)
    np.testing.assert_array_equal(sparsegp.load(path).predict(new), expected)
    assert b"own_kernels:Cauchy" in path.read_bytes()
    # another program, which imports the module by itself
    code = f"""
        import numpy as np, sparsegp
        model = sparsegp.load({str(path)!r})
        print(model.predict(np.array({new.tolist()})).tolist(), type(model.kernel_.kernels[0]).__name__)
    """
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("] ")[1].strip() == "Cauchy"
    np.testing.assert_array_equal(eval(done.stdout.split("] ")[0] + "]"), expected)
    # one that cannot
    done = run(code, PYTHONPATH="")
    assert "ValueError" in done.stderr and "module `own_kernels`, which cannot be imported" in done.stderr
    assert "PYTHONPATH" in done.stderr


def test_classes_of_scripts_are_not_found_elsewhere(tmp_path):
    path = tmp_path / "model.safetensors"
    code = f"""
        import numpy as np, pickle, sparsegp
        from own_kernels import Bell
        class Own(Bell): pass
        X = np.linspace(0, 5, 30)[:, None]
        model = sparsegp.GPRegressor(kernel=Own(), max_iter=3).fit(X, np.sin(X[:, 0]))
        model.save({str(path)!r})
        again = sparsegp.load({str(path)!r})
        assert (again.predict(X) == model.predict(X)).all() and type(again.kernel_) is Own
    """
    done = run(code)
    assert done.returncode == 0, done.stderr
    with pytest.raises(ValueError, match="`Own` was defined in a script or notebook"):
        sparsegp.load(path)


def test_files_name_no_other_classes():
    for path, words in [
        ("os:system", "no kernel `system`"),
        ("sparsegp.kernels:RBF", "no kernel `RBF`"),
        ("no.such.module:Own", "cannot be imported"),
        ("own_kernels:Missing", "no kernel `Missing`"),
        ("own kernels:Bell", "not a path to a class"),
    ]:
        with pytest.raises(ValueError, match=words):
            sparsegp._core.Kernel(f'{{"type": "python", "class": "{path}"}}', 2)


# -- threads -------------------------------------------------------------------------------------


def test_threads_of_the_core_and_of_python():
    code = """
        import threading, numpy as np, sparsegp
        from sparsegp import GPRegressor, kernels
        from own_kernels import Bell
        assert sparsegp.num_threads() == 2

        class Nested(Bell):
            # a kernel may ask the package itself
            def value(self, X, Z, variance, lengthscales):
                return kernels.RBF(list(lengthscales), variance)(X, Z)

        rng = np.random.default_rng(0)
        X = rng.uniform(-3, 3, (80, 2)); y = np.sin(X[:, 0])
        seen = []
        def work(kernel):
            model = GPRegressor(kernel=kernel, method="titsias2025", n_inducing=8, max_iter=2, pilot=50).fit(X, y)
            seen.append(float(model.predict(X[:3])[0]))
        threads = [threading.Thread(target=work, args=(k,)) for k in (Bell(), Nested(), Bell(), Nested())]
        [t.start() for t in threads]; [t.join() for t in threads]
        print(len(seen), max(seen) - min(seen) < 1e-3)
    """
    done = run(code, SPARSEGP_NUM_THREADS="2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "True"]


# -- refusals ------------------------------------------------------------------------------------


class Mistaken(Bell):
    """Goes wrong in a way that an argument chooses."""

    def __init__(self, how="", **values):
        super().__init__(**values)
        self.how = how

    def value(self, X, Z, variance, lengthscales):
        if self.how == "raises":
            raise KeyError("on purpose")
        if self.how == "later" and variance != 1.0 and len(X) > 60:
            raise KeyError("on purpose")
        k = super().value(X, Z, variance, lengthscales)
        return {
            "shape": lambda: k[:, :-1],
            "nan": lambda: np.where(squares(X, Z) > 4, np.nan, k),
            "skew": lambda: k * (1 + 0.1 * X[:, :1]),
            "indefinite": lambda: np.where(squares(X, Z) > 0, -0.9, 1.0) * variance,
            "single": lambda: k.astype(np.float32),
            "words": lambda: np.full(k.shape, "a"),
            "complex": lambda: k * 1j,
        }.get(self.how, lambda: k)()


@pytest.mark.parametrize(
    "how, words",
    [
        ("shape", r"value\(X, Z\) has shape \(5, 4\); it must be \(5, 5\)"),
        ("nan", "`Mistaken` is NaN for rows"),
        ("skew", r"Mistaken: value\(X, X\) is not symmetric"),
        ("indefinite", "`Mistaken` is not positive semi-definite"),
        ("single", "float32 numbers"),
        ("words", "must be real numbers"),
        ("complex", "must be real numbers"),
    ],
)
def test_what_is_not_a_covariance_is_refused(how, words):
    for kernel in (Mistaken(how), Matern52() + Mistaken(how)):
        with pytest.raises(ValueError, match=words):
            fitted(kernel)


def test_wrong_slopes_are_refused():
    class Wrong(Sloped):
        def gradients(self, G, X, Z, **parameters):
            found = super().gradients(G, X, Z, **parameters)
            return {**found, "variance": 1.1 * found["variance"]}

    class Incomplete(Sloped):
        def gradients(self, G, X, Z, **parameters):
            return {"variance": 0.0}

    with pytest.raises(ValueError, match="`Wrong` has the slope .* in `variance`, where differences"):
        fitted(Wrong())
    with pytest.raises(ValueError, match=r"Incomplete: gradients\(G, X, Z\) lacks lengthscales, X, Z"):
        fitted(Incomplete())
    with pytest.raises((AssertionError, ValueError), match="Wrong"):
        testing.check_kernel(Wrong(variance=1.7, lengthscales=[0.8, 1.9]), table(7)[0])


@pytest.mark.parametrize("how", ["raises", "later"])
@pytest.mark.parametrize("method", ["exact", "svgp"])
def test_exceptions_come_out_as_they_are(how, method):
    with pytest.raises(KeyError, match="on purpose"):
        fitted(Mistaken(how), method)
    # and nothing is broken afterwards
    assert np.isfinite(fitted(Bell(), max_iter=5).predict(table(3)[0])).all()
    with pytest.raises(KeyError, match="on purpose"):
        Mistaken("raises", variance=1.0, lengthscales=1.0)(table(3)[0])


def test_declarations_are_checked():
    for words, own in [
        ("needs a value to start from", {"positive": {"beta": None}}),
        ("is positive or real, not both", {"positive": {"a": 1.0}, "real": {"a": 1.0}}),
        ("cannot be the name", {"positive": {"active_dims": 1.0}}),
        ("per_input names b", {"positive": {"a": 1.0}, "per_input": ("b",)}),
        ("differentiation is 'magic'", {"differentiation": "magic"}),
    ]:
        with pytest.raises(TypeError, match=words):
            type("Own", (kernels.Custom,), own)
    with pytest.raises(TypeError, match="does not define `value"):
        type("Own", (kernels.Custom,), {})()
    with pytest.raises(TypeError, match="Custom is for subclasses"):
        kernels.Custom()
    with pytest.raises(
        TypeError, match="has no parameter 'lengthscale'; it has variance, lengthscales, active_dims"
    ):
        Bell(lengthscale=2.0)
    with pytest.raises(ValueError, match="variance"):
        Bell(variance=-1.0).K([[0.0]])
    with pytest.raises(TypeError, match="numbers, texts, or lists"):
        Cauchy(degree=object()).to_json()


@pytest.mark.parametrize("method", ["markov"])
def test_what_needs_more_than_values_refuses_by_name(method):
    X, y = table(40, 1)
    with pytest.raises(ValueError, match="Bell"):
        GPRegressor(kernel=Bell(), method=method).fit(X, y)
    model = GPRegressor(kernel=Bell(), method="exact", max_iter=3).fit(X, y)
    with pytest.raises(ValueError, match="`Bell` has no spectral density"):
        model.sample_f(2)
