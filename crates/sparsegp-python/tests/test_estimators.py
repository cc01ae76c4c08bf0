"""The estimators against scikit-learn's own checks, and what they promise beyond those."""

import json
import os
import pickle
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import sparsegp
from sparsegp import (
    GPClassifier,
    GPCountRegressor,
    GPRegressor,
    HeteroscedasticGPRegressor,
    RobustGPRegressor,
)
from sparsegp.kernels import RBF, Categorical, Linear, Matern52
from sparsegp.priors import Parameter

ROOT = Path(__file__).resolve().parents[3]
ALL = [
    GPClassifier,
    GPCountRegressor,
    GPRegressor,
    HeteroscedasticGPRegressor,
    RobustGPRegressor,
]


# no check is skipped or expected to fail; fewer iterations than the default, and starting values from fewer rows, for time
@parametrize_with_checks(
    [
        GPRegressor(),
        GPCountRegressor(pilot=25),
        GPClassifier(max_iter=10, pilot=25),
        RobustGPRegressor(max_iter=10, pilot=25),
        HeteroscedasticGPRegressor(max_iter=10, pilot=25),
    ]
)
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


def waves(n=120, noise=0.1, seed=0, inputs=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (n, inputs)) * np.linspace(1, 30, inputs)
    return X, 7 + 3 * np.sin(X[:, 0]) + noise * rng.standard_normal(n)


def test_predictions_equal_scikit_learns_at_the_same_hyperparameters():
    X, y = waves()
    ours = GPRegressor(
        RBF([1.3, 20.0], 2.4),
        standardise=False,
        fixed=["kernel", "likelihood"],
        initial={"likelihood.variance": 0.3},
        max_iter=0,
        mean="zero",
    ).fit(X, y)
    theirs = GaussianProcessRegressor(
        sk.ConstantKernel(2.4) * sk.RBF([1.3, 20.0]) + sk.WhiteKernel(0.3), optimizer=None, alpha=0
    ).fit(X, y)
    new = waves(40, seed=1)[0]
    mean, cov = ours.predict(new, return_cov=True)
    expected_mean, expected_cov = theirs.predict(new, return_cov=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-8)
    np.testing.assert_allclose(cov, expected_cov, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.predict(new), mean, rtol=1e-12)
    std = ours.predict(new, return_std=True)[1]
    np.testing.assert_allclose(std, theirs.predict(new, return_std=True)[1], rtol=1e-8)
    value = theirs.log_marginal_likelihood_value_
    np.testing.assert_allclose(ours.objective_, value, rtol=1e-8)


def test_quantiles_and_densities_are_those_of_the_predictive_normal():
    X, y = waves(noise=0.5)
    model = GPRegressor(hyperparameters="plug-in").fit(X, y)
    new, truth = waves(30, noise=0.5, seed=2)
    mean, std = model.predict(new, return_std=True)
    _, quantiles = model.predict(new, return_quantiles=[0.05, 0.8])
    normal = stats.norm(mean[:, None], std[:, None])
    np.testing.assert_allclose(quantiles, normal.ppf([0.05, 0.8]), rtol=1e-8)
    density = model.log_predictive_density(new, truth)
    np.testing.assert_allclose(density, stats.norm(mean, std).logpdf(truth), rtol=1e-8)
    latent_mean, latent_variance = model.latent_mean_and_variance(new)
    np.testing.assert_allclose(latent_mean, mean, rtol=1e-10)
    np.testing.assert_allclose(latent_variance + model.noise_variance_, std**2, rtol=1e-8)
    # 4000 draws: five standard errors of a mean, and of a variance
    draws = model.sample_y(new[:5], 4000, random_state=3)
    assert draws.shape == (5, 4000)
    assert np.all(abs(draws.mean(1) - mean[:5]) < 5 * std[:5] / 4000**0.5)
    assert np.all(abs(draws.var(1) / std[:5] ** 2 - 1) < 5 * (2 / 4000) ** 0.5)


def test_several_outputs():
    X, y = waves()
    Y = np.column_stack([y, -2 * y + 100])
    model = GPRegressor(hyperparameters="plug-in").fit(X, Y)
    new = X[:7]
    mean, std, quantiles = model.predict(new, return_std=True, return_quantiles=[0.1, 0.5, 0.9])
    assert (mean.shape, std.shape, quantiles.shape) == ((7, 2), (7, 2), (7, 3, 2))
    assert model.predict(new, return_cov=True)[1].shape == (7, 7, 2)
    assert model.sample_y(new, 3).shape == (7, 2, 3)
    np.testing.assert_allclose(mean[:, 1], -2 * mean[:, 0] + 100, rtol=1e-6)
    np.testing.assert_allclose(quantiles[:, 1], mean, rtol=1e-9)
    assert model.log_predictive_density(new, Y[:7]).shape == (7,)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_are_known_by_column_name(kind):
    library = pytest.importorskip(kind)
    X, y = waves()
    columns = {"age": X[:, 0], "height": X[:, 1]}
    if kind == "pyarrow":
        frame, changed = library.table(columns), library.table({"height": X[:, 1], "age": X[:, 0]})
    else:
        frame = library.DataFrame(columns)
        changed = library.DataFrame({"height": X[:, 1], "age": X[:, 0]})
    model = GPRegressor(Matern52(active_dims=["age"]) + Linear(active_dims=["height"])).fit(frame, y)
    assert list(model.feature_names_in_) == ["age", "height"]
    np.testing.assert_allclose(
        model.predict(frame),
        GPRegressor(Matern52(active_dims=[0]) + Linear(active_dims=[1])).fit(X, y).predict(X),
        rtol=1e-10,
    )
    with pytest.raises(ValueError, match="(?i)feature names"):
        model.predict(changed)


def test_pipelines_searches_and_clones():
    X, y = waves(80)
    pipe = make_pipeline(StandardScaler(), GPRegressor("matern52"))
    assert cross_val_score(pipe, X, y, cv=3).min() > 0.9
    search = GridSearchCV(
        GPRegressor(RBF(lengthscales=Parameter(1.0, fixed=True))),
        {"kernel__lengthscales": [Parameter(v, fixed=True) for v in (1e-3, 0.6)]},
        cv=3,
    ).fit(X, y)
    assert search.best_estimator_.kernel.lengthscales.value == 0.6
    assert search.best_estimator_.kernel_.lengthscales.value == 0.6
    nested = GPRegressor(RBF() + Linear()).set_params(kernel__k2__variance=0.3)
    assert nested.kernel == RBF() + Linear(0.3)
    assert clone(nested).kernel == nested.kernel
    with pytest.raises(ValueError, match="k7"):
        nested.set_params(kernel__k7__variance=1.0)


@pytest.mark.parametrize("cls", ALL)
def test_saving_pickling_and_telling(cls, tmp_path):
    X, y = waves(60)
    y = {GPClassifier: np.where(y > 7, "up", "down"), GPCountRegressor: np.round(y)}.get(cls, y)
    model = cls("matern52", max_iter=20)
    assert "matern52" in repr(model) and "objective" not in repr(model)
    model.fit(X, y)
    assert ".lengthscales[" in repr(model) and "objective" in model.summary()
    html = model._repr_mimebundle_()["text/html"]
    assert "<table>" in html and ".variance" in html
    file = tmp_path / "model.safetensors"
    model.save(file)
    for other in (pickle.loads(pickle.dumps(model)), cls.load(file), sparsegp.load(file)):
        assert type(other) is cls
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.log_predictive_density(X, y), model.log_predictive_density(X, y))
        assert other.summary() == model.summary() and other.get_params() == model.get_params()
    wrong = GPClassifier if cls is not GPClassifier else GPRegressor
    with pytest.raises(ValueError, match=f"holds a {cls.__name__}, not a {wrong.__name__}"):
        wrong.load(file)
    with pytest.raises(FileNotFoundError):
        sparsegp.load(tmp_path / "none.safetensors")
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(ValueError, match="model"):
        sparsegp.load(file)
    with pytest.raises(NotFittedError):
        cls().save(file)


def command_line():
    """The `sparsegp` command: what the environment names, what is on the path, what was built here."""
    given = os.environ.get("SPARSEGP_CLI")
    built = [ROOT / "target" / kind / "sparsegp" for kind in ("release", "debug")]
    built = sorted((p for p in built if p.exists()), key=lambda p: p.stat().st_mtime)
    return given or (str(built[-1]) if built else shutil.which("sparsegp"))


@pytest.fixture
def cli(tmp_path):
    program = command_line()
    if program is None:
        pytest.skip("the command line is not built")

    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("labels", [("no", "yes"), (3, 10), (False, True), (1.0, 2.0)])
def test_files_are_shared_with_the_command_line(cli, tmp_path, labels):
    pd = pytest.importorskip("pandas")
    X, y = waves(80)
    frame = pd.DataFrame(X, columns=["a", "b"])
    label = np.array(labels)[(y > 7).astype(int)]
    table = tmp_path / "data.csv"
    frame.assign(y=label).to_csv(table, index=False)
    # ours for them
    ours = GPClassifier(max_iter=20).fit(frame, label)
    ours.save(tmp_path / "ours.safetensors")
    cli("predict", "ours.safetensors", table, "-o", "predicted.csv")
    predicted = pd.read_csv(tmp_path / "predicted.csv", dtype={"label": str})
    probabilities = predicted[[c for c in predicted if c.startswith("p_")]].to_numpy()
    np.testing.assert_allclose(probabilities, ours.predict_proba(frame), rtol=1e-12)
    scores = json.loads(cli("score", "ours.safetensors", table, "--json"))
    assert scores
    # theirs for us
    cli("fit", table, "--target", "y", "--classes", "--max-iterations", 20, "-o", "theirs.safetensors")
    theirs = sparsegp.load(tmp_path / "theirs.safetensors")
    assert isinstance(theirs, GPClassifier)
    assert theirs.classes_.tolist() == list(labels)
    cli("predict", "theirs.safetensors", table, "-o", "predicted.csv")
    predicted = pd.read_csv(tmp_path / "predicted.csv")
    probabilities = predicted[[c for c in predicted if c.startswith("p_")]].to_numpy()
    np.testing.assert_allclose(theirs.predict_proba(frame), probabilities, rtol=1e-12)


def test_regressions_are_shared_with_the_command_line(cli, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = waves(80)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.assign(y=y, w=1.0 + (y > 7)).to_csv(tmp_path / "data.csv", index=False)
    cli("fit", "data.csv", "--target", "y", "--weight", "w", "-o", "theirs.safetensors")
    cli("predict", "theirs.safetensors", "data.csv", "-o", "predicted.csv")
    expected = pd.read_csv(tmp_path / "predicted.csv")
    theirs = sparsegp.load(tmp_path / "theirs.safetensors")
    assert isinstance(theirs, GPRegressor) and theirs.method_ == "exact"
    mean, std = theirs.predict(frame, return_std=True)
    np.testing.assert_allclose(mean, expected["mean"], rtol=1e-12)
    np.testing.assert_allclose(std, expected["sd"], rtol=1e-12)
    from_file = GPRegressor().fit_file(tmp_path / "data.csv", "y", sample_weight="w")
    np.testing.assert_allclose(from_file.predict(frame), mean, rtol=1e-12)


def test_every_method_by_name():
    X, y = waves(90)
    names = [entry["name"] for entry in sparsegp.registry()["methods"]]
    assert "exact" in names and "tvgp" in names
    # series have one input: tested below
    for name in (name for name in names if "markov" not in name):
        # the recipe of rsvgp is one of many small steps
        epochs = 3000 if name == "rsvgp" else 300
        # Gaussian noise needs no local variables, and a random walk needs many steps
        more = {"likelihood": "laplace"} if name.endswith("-augmented") else {}
        if name == "metropolis":
            more["sampling"] = {"burn_in": 4000}
        elif name.startswith("nuts"):
            # each of its draws is a path of many steps
            more["sampling"] = {"burn_in": 100, "draws": 50}
        points = None if name in ("exact", "tvgp", "vecchia") else 30
        model = GPRegressor(method=name, n_inducing=points, epochs=epochs, **more)
        model.fit(X, y)
        assert model.method_ == name
        assert model.score(X, y) > 0.99, name
    with pytest.raises(ValueError, match="nearest: titsias2025"):
        GPRegressor(method="titsias2024").fit(X, y)


def test_full_scale_has_points_and_neighbours(tmp_path):
    X, y = waves(90)
    exact = GPRegressor("rbf", method="exact").fit(X, y)
    model = GPRegressor("rbf", method="full-scale(neighbours=100)", n_inducing=15).fit(X, y)
    assert model.method_ == "full-scale(neighbours=100)" and "15" in model.summary()
    for found, expected in zip(model.predict(X, return_std=True), exact.predict(X, return_std=True)):
        np.testing.assert_allclose(found, expected, atol=2e-2)
    model.save(tmp_path / "model.safetensors")
    loaded = sparsegp.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="n_inducing=9"):
        GPRegressor(method="vecchia(points=9)").fit(X, y)


def test_neighbours_take_classes_and_counts(tmp_path):
    X, y = waves(120)
    kernel, few = "matern32", {"pilot": 40}
    for estimator, target, likelihood in (
        (GPClassifier, y > np.median(y), few),
        (GPRegressor, np.floor(np.exp(y - y.mean())), {"likelihood": "poisson", **few}),
    ):
        every = estimator(kernel, method="tvgp", **likelihood).fit(X, target)
        near = estimator(kernel, method="vecchia(neighbours=20)", **likelihood).fit(X, target)
        assert near.method_ == "vecchia(neighbours=20)"
        predict = "predict_proba" if estimator is GPClassifier else "predict"
        found, expected = getattr(near, predict)(X), getattr(every, predict)(X)
        np.testing.assert_allclose(found, expected, rtol=0.1, atol=0.05)
        near.save(tmp_path / "model.safetensors")
        loaded = sparsegp.load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(getattr(loaded, predict)(X), found)
        by_draws = estimator(kernel, method="vecchia(solver=iterative)", **likelihood)
        found = getattr(by_draws.fit(X, target), predict)(X)
        np.testing.assert_allclose(found, expected, rtol=0.15, atol=0.1)
    with pytest.raises(ValueError, match="full-scale.*poisson"):
        GPRegressor(kernel, method="full-scale", likelihood="poisson").fit(X, np.ones(len(X)))


def test_series_are_those_of_exact_inference(tmp_path):
    rng = np.random.default_rng(5)
    t = rng.permutation(400) * 0.025 - 5.0
    y = 4 * np.sin(5 * t) + 0.3 * t + rng.normal(0, 0.5, 400)
    X, new = t[:, None], np.linspace(-7, 12, 60)[:, None]
    # as they are, so that values learnt by the one can be given to the other
    plain = {"standardise": False, "hyperparameters": "plug-in", "mean": "zero"}
    model = GPRegressor("matern32 + linear", method="markov", **plain).fit(X, y)
    exact = GPRegressor(
        "matern32 + linear", method="exact", initial=model.parameters_, pilot=0, max_iter=0, **plain
    ).fit(X, y)
    for own, right in zip(model.predict(new, return_std=True), exact.predict(new, return_std=True)):
        np.testing.assert_allclose(own, right, rtol=1e-6, atol=1e-9)
    model.save(tmp_path / "series.gp")
    np.testing.assert_array_equal(GPRegressor.load(tmp_path / "series.gp").predict(new), model.predict(new))
    with pytest.raises(ValueError, match="state-space"):
        GPRegressor("rational_quadratic", method="markov").fit(X, y)
    # many rows of one input are a series by default
    t = np.arange(5000) / 10
    long = GPRegressor("matern32", max_iter=20).fit(t[:, None], np.sin(3 * t) + rng.normal(0, 0.3, 5000))
    assert long.method_ == "markov"
    assert np.abs(long.predict(t[::50, None]) - np.sin(3 * t[::50])).max() < 0.5


def test_series_of_several_outputs_are_those_of_exact_inference(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(9)
    time, site = np.repeat(np.linspace(0, 20, 80), 2), rng.choice(["a", "b", "c"], 160)
    size = np.select([site == "a", site == "b"], [1.0, -0.8], 0.6)
    y = size * np.sin(time) + rng.normal(0, 0.2, 160)
    X = pd.DataFrame({"time": time, "site": site})
    new = pd.DataFrame({"time": np.linspace(-2, 23, 30), "site": ["a", "b", "c"] * 10})
    kernel = "matern32(active_dims=[time]) * coregion(output_dim=3, rank=2, active_dims=[site])"
    plain = {"standardise": False, "hyperparameters": "plug-in", "mean": "zero"}
    model = GPRegressor(kernel, method="markov", **plain).fit(X, y)
    exact = GPRegressor(kernel, method="exact", initial=model.parameters_, pilot=0, max_iter=0, **plain).fit(
        X, y
    )
    for own, right in zip(model.predict(new, return_std=True), exact.predict(new, return_std=True)):
        np.testing.assert_allclose(own, right, rtol=1e-6, atol=1e-8)
    model.save(tmp_path / "outputs.gp")
    np.testing.assert_array_equal(GPRegressor.load(tmp_path / "outputs.gp").predict(new), model.predict(new))
    with pytest.raises(ValueError, match="active_dims"):
        GPRegressor("matern32 * coregion(output_dim=3, active_dims=[site])", method="markov").fit(X, y)
    with pytest.raises(ValueError, match="one input beside labels"):
        more = X.assign(depth=rng.normal(size=160))
        GPRegressor(kernel, method="markov").fit(more, y)


def test_local_variables_of_a_series_are_those_of_all_rows():
    rng = np.random.default_rng(10)
    t = rng.permutation(200) * 0.1
    y = np.sin(t) + np.where(np.arange(200) % 17 == 3, 4.0, 0.1 * rng.standard_normal(200))
    X, new = t[:, None], np.linspace(-1, 21, 40)[:, None]
    model, dense = (
        GPRegressor("matern32", method=method, likelihood="student-t").fit(X, y)
        for method in ("cavi-markov", "cavi-full")
    )
    assert model.method_ == "cavi-markov"
    np.testing.assert_allclose(model.predict(new), dense.predict(new), atol=0.05)


def test_series_of_counts_are_those_of_sites_of_all_rows(tmp_path):
    rng = np.random.default_rng(6)
    t = rng.permutation(300) * 0.1
    y = rng.poisson(np.exp(0.8 + np.sin(t / 2)))
    X, new = t[:, None], np.linspace(-2, 33, 40)[:, None]
    model, dense = (
        GPCountRegressor(kernel="matern32", method=method).fit(X, y) for method in ("markov", "tvgp")
    )
    np.testing.assert_allclose(model.predict(new), dense.predict(new), rtol=0.02)
    model.save(tmp_path / "counts.gp")
    loaded = GPCountRegressor.load(tmp_path / "counts.gp")
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    # many rows of one input are a series by default
    t = np.arange(2500) / 10
    y = rng.poisson(np.exp(0.8 + np.sin(t / 2)))
    long = GPCountRegressor(kernel="matern32", max_iter=20, pilot=200).fit(t[:, None], y)
    assert long.method_ == "markov"
    assert np.abs(np.log(long.predict(t[:, None])) - 0.8 - np.sin(t / 2)).mean() < 0.2


# few draws, for the sake of time
@pytest.mark.filterwarnings("ignore:the chains have not mixed well", "ignore:no prior was given")
def test_local_variables_and_chains(tmp_path):
    X, y = waves(150)
    high = y > 7
    reference = GPClassifier("rbf", likelihood="bernoulli(link=logit)").fit(X, high).predict_proba(X)
    for method in ("cavi", "cavi-full", "svi"):
        model = GPClassifier("rbf", method=method, n_inducing=40, pilot=40).fit(X, high)
        assert model.likelihood_.link == "logit" and model.method_ == method
        assert abs(model.predict_proba(X) - reference).mean() < 0.1, method
    sampling = {"chains": 2, "draws": 60, "burn_in": 30}
    few = {"kernel": "rbf", "method": "gibbs", "pilot": 40}
    events = []
    model = GPClassifier(**few, sampling=sampling, callback=events.append).fit(X, high)
    assert abs(model.predict_proba(X) - reference).mean() < 0.1
    assert [e for e in events if e["event"] == "sampling"][-1]["sweep"] == 90
    model.save(tmp_path / "m.gp")
    np.testing.assert_array_equal(GPClassifier.load(tmp_path / "m.gp").predict_proba(X), model.predict_proba(X))
    again = GPClassifier(**few, sampling=sampling).fit(X, high)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    robust = RobustGPRegressor(method="gibbs-sparse", n_inducing=30, sampling={**sampling, "law": "fitc"})
    assert robust.fit(X, y).score(X, y) > 0.95
    model = GPClassifier(**few, sampling={**sampling, "hyperparameters": True}).fit(X, high)
    assert abs(model.predict_proba(X) - reference).mean() < 0.1
    model.save(tmp_path / "h.gp")
    np.testing.assert_allclose(
        GPClassifier.load(tmp_path / "h.gp").predict_proba(X), model.predict_proba(X), atol=1e-12
    )
    with pytest.raises(ValueError, match="unknown entry 'chain'; known: chains"):
        GPClassifier(method="gibbs", sampling={"chain": 2}).fit(X, high)
    with pytest.raises(ValueError, match=r"sampling\['law'\] is `x`"):
        GPClassifier(method="gibbs", sampling={"law": "x"}).fit(X, high)
    with pytest.raises(ValueError, match="local variables"):
        GPClassifier(method="cavi", likelihood="bernoulli").fit(X, high)


def test_some_of_the_classes_move_in_a_step():
    X, _ = waves(160)
    labels = np.digitize(X[:, 0], np.quantile(X[:, 0], [0.25, 0.5, 0.75]))
    model = GPClassifier(
        likelihood="logistic-softmax",
        method="svi",
        n_inducing=20,
        batch_size=40,
        epochs=150,
        classes_per_step=2,
        pilot=40,
    )
    assert model.fit(X, labels).score(X, labels) > 0.9
    with pytest.raises(ValueError, match="between 1 and 4"):
        model.set_params(classes_per_step=5).fit(X, labels)
    with pytest.raises(ValueError, match="natural-gradient steps of `svi`"):
        GPClassifier(method="svgp", classes_per_step=2).fit(X, labels)


def test_rows_are_left_out():
    X, y = waves(60)
    # a row that is there twice, which the model keeps as one of weight 2
    X, y = np.vstack([X, X[:1]]), np.append(y, y[0])
    model = GPRegressor("matern52").fit(X, y)
    mean, std, density = model.loo(X, y)
    values = {
        path: model.model_[path] for path in ("kernel.lengthscales", "kernel.variance", "likelihood.variance")
    }
    for i in (0, 17, 60):
        kept = np.arange(61) != i
        # on the scale of all rows
        scaler = model._about["scaler"]
        centre, scale = scaler["y_mean"][0], scaler["y_scale"][0]
        inputs = (X - scaler["x_mean"]) / scaler["x_scale"]
        others = sparsegp.models.GPR((inputs[kept], (y[kept] - centre) / scale), "matern52")
        for path, value in values.items():
            others[path] = value
        m, v = others.predict_y(inputs[i : i + 1])
        assert mean[i] == pytest.approx(centre + scale * m[0, 0], rel=1e-6)
        assert std[i] == pytest.approx(scale * np.sqrt(v[0, 0]), rel=1e-6)
        expected = -0.5 * (np.log(2 * np.pi * std[i] ** 2) + ((y[i] - mean[i]) / std[i]) ** 2)
        assert density[i] == pytest.approx(expected, rel=1e-8)
    with pytest.raises(ValueError, match="trained on 61"):
        model.loo(X[:50], y[:50])
    both = np.column_stack([y, -y])
    mean, std, density = GPRegressor(method="titsias2025", n_inducing=20).fit(X, both).loo(X, both)
    assert mean.shape == std.shape == density.shape == (61, 2)
    labels = np.where(y > 7, "high", "low")
    classifier = GPClassifier().fit(X, labels)
    density = classifier.loo(X, labels)
    assert density.shape == (61,) and (density < 0).all()
    assert density.mean() < classifier.log_predictive_density(X, labels).mean()


def test_slopes_of_predictions():
    X, y = waves(60)
    for model in (GPRegressor().fit(X, y), GPClassifier(epochs=20).fit(X, y > 7)):
        mean, variance = model.predict_gradients(X[:5] + 0.01)
        assert mean.shape == variance.shape == (5, 2)
        for q in range(2):
            h = 1e-5 * np.eye(2)[q]
            up, down = (model.latent_mean_and_variance(X[:5] + 0.01 + s * h) for s in (1, -1))
            np.testing.assert_allclose(mean[:, q], (up[0] - down[0]) / 2e-5, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(variance[:, q], (up[1] - down[1]) / 2e-5, rtol=1e-4, atol=1e-5)
    both = GPRegressor().fit(X, np.column_stack([y, -2 * y]))
    mean, variance = both.predict_gradients(X[:3])
    assert mean.shape == (3, 2, 2)
    np.testing.assert_allclose(mean[:, :, 1], -2 * mean[:, :, 0], rtol=1e-8)
    with pytest.raises(NotFittedError):
        GPRegressor().predict_gradients(X)


def test_groups_of_a_frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(8)
    t, shop = rng.uniform(-3, 3, 150), rng.integers(0, 12, 150)
    level = 2 * np.sin(2.7 * np.arange(12))
    frame = pd.DataFrame({"t": t, "shop": [f"shop {s}" for s in shop]})
    y = np.sin(1.5 * t) + level[shop] + rng.normal(scale=0.1, size=150)
    for kernel in ("rbf + categorical(active_dims=[shop])", RBF() + Categorical(active_dims="shop")):
        model = GPRegressor(kernel=kernel).fit(frame, y)
        new = pd.DataFrame({"t": [0.4, 0.4, 0.4], "shop": ["shop 5", "another", "shop 99"]})
        mean, std = model.predict(new, return_std=True)
        assert mean[0] == pytest.approx(np.sin(0.6) + level[5], abs=0.2) and std[0] < 0.3
        assert mean[1] == mean[2] and std[1] == std[2] > 0.8
        assert list(model.predict_terms(new)) == ["mean function", "rbf(t)", "categorical(shop)"]
        with pytest.raises(ValueError, match="`another` is none of"):
            model.partial_fit(new, mean)


def test_terms_of_a_sum():
    X, y = waves(60)
    model = GPRegressor(kernel="rbf + additive(order=2)").fit(X, y)
    terms = model.predict_terms(X[:7])
    assert list(terms) == ["mean function", "rbf", "additive(x0)", "additive(x1)", "additive order 2"]
    mean, _ = model.latent_mean_and_variance(X[:7])
    np.testing.assert_allclose(sum(own for own, _ in terms.values()), mean, rtol=1e-8)
    # a function of one feature does not see the others
    moved = X[:7] + [[0.0, 0.3]]
    np.testing.assert_allclose(model.predict_terms(moved)["additive(x0)"], terms["additive(x0)"], rtol=1e-8)
    centred = model.predict_terms(X[:7], centred=True)
    np.testing.assert_allclose(sum(own for own, _ in centred.values()), mean, rtol=1e-8)
    assert (centred["additive(x0)"][1] < terms["additive(x0)"][1]).all()
    own = model.predict_terms(X, centred=True)["additive(x0)"][0]
    assert abs(own.mean()) < 1e-9
    # the only term is the function, with its uncertainty
    single = GPRegressor(kernel="matern52", mean="zero").fit(X, y)
    mean, variance = single.latent_mean_and_variance(X[:7])
    own, std = single.predict_terms(X[:7])["matern52"]
    shift = single.predict_terms(X[:7])["mean function"][0]
    np.testing.assert_allclose((own + shift, std**2), (mean, variance), rtol=1e-8)
    # two latent functions, each with its own kernel
    both = GPRegressor(kernel="rbf + linear; matern32", likelihood="heteroscedastic").fit(X, y)
    terms = both.predict_terms(X[:7])
    assert list(terms) == ["mean function", "rbf", "linear", "matern32"]
    assert np.isnan(terms["matern32"][0][:, 0]).all() and np.isfinite(terms["matern32"][0][:, 1]).all()
    with pytest.raises(ValueError, match="a prediction of terms"):
        GPRegressor(method="nuts", sampling={"draws": 4, "burn_in": 4}).fit(X[:20], y[:20]).predict_terms(X[:3])
    with pytest.raises(NotFittedError):
        GPRegressor().predict_terms(X)


def test_functions_are_drawn():
    X, y = waves(60)
    # functions are those of the best hyperparameters
    model = GPRegressor(hyperparameters="plug-in").fit(X, y)
    functions = model.sample_f(2000, random_state=3, waves=200)
    assert len(functions) == 2000
    values = functions(X[:4])
    assert values.shape == (2000, 4, 1)
    np.testing.assert_allclose(functions(X[2:3]), values[:, 2:3], rtol=1e-8, atol=1e-8)
    mean, variance = model.latent_mean_and_variance(X[:4])
    error = np.sqrt(variance / 2000)
    assert (abs(values[:, :, 0].mean(axis=0) - mean) < 5 * error).all()
    assert (abs(values[:, :, 0].var(axis=0) / variance - 1) < 5 * np.sqrt(2 / 2000)).all()
    draws = model.sample_y(X[:4], 2000, random_state=3, method="pathwise")
    mean, std = model.predict(X[:4], return_std=True)
    assert draws.shape == (4, 2000)
    assert (abs(draws.mean(axis=1) - mean) < 5 * std / np.sqrt(2000)).all()
    again = model.sample_y(X[:4], 2000, random_state=3, method="pathwise")
    np.testing.assert_array_equal(draws, again)
    with pytest.raises(ValueError, match="'joint' or 'pathwise'"):
        model.sample_y(X, method="other")
    with pytest.raises(ValueError, match="`arccosine`.*jointly"):
        GPRegressor("rbf + arccosine").fit(X, y).sample_f()
    own = model.model_.sample_functions(3, seed=1, waves=50)
    assert own(X[:5]).shape == (3, 5, 1)


def test_fixed_values_given_points_and_seeds():
    X, y = waves()
    points = X[:15]
    model = GPRegressor(
        RBF(lengthscales=Parameter([0.5, 2.0], fixed=True)),
        inducing=points,
        fixed=["inducing.points"],
        initial={"likelihood.variance": 0.2},
    ).fit(X, y)
    np.testing.assert_allclose(model.inducing_points_, points, rtol=1e-12)
    assert list(model.kernel_.lengthscales.value) == [0.5, 2.0]
    assert model.method_ == "titsias2025"
    a, b = (GPClassifier(method="svgp", epochs=3, pilot=40, random_state=s).fit(X, y > 7) for s in (4, 4))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))
    c = GPClassifier(method="svgp", epochs=3, pilot=40, batch_size=30, random_state=5).fit(X, y > 7)
    assert abs(c.predict_proba(X) - a.predict_proba(X)).max() > 1e-6


def test_counts_with_exposure_and_trials():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 150)[:, None]
    rate, exposure = np.exp(np.sin(X[:, 0])), rng.uniform(0.5, 20, 150)
    model = GPCountRegressor(pilot=40).fit(X, rng.poisson(rate * exposure), exposure=exposure)
    once, tenfold = model.predict(X), model.predict(X, exposure=np.full(150, 10.0))
    np.testing.assert_allclose(tenfold, 10 * once, rtol=1e-10)
    assert abs(once / rate - 1).mean() < 0.15
    trials = rng.integers(1, 30, 150)
    successes = rng.binomial(trials, 1 / (1 + np.exp(-np.sin(X[:, 0]))))
    share = GPCountRegressor(likelihood="binomial", pilot=40).fit(X, successes, trials=trials)
    found = share.predict(X, trials=np.full(150, 100.0)) / 100
    assert abs(found - 1 / (1 + np.exp(-np.sin(X[:, 0])))).mean() < 0.06
    with pytest.raises(ValueError, match="takes trials, not exposure"):
        share.predict(X, exposure=trials)
    with pytest.warns(UserWarning, match="not counts"):
        GPCountRegressor(max_iter=3, pilot=40).fit(X, rate)
    with pytest.raises(ValueError, match="at least 0"):
        GPCountRegressor().fit(X, rate - 10)


def test_weights_count_terms_and_known_noise_counts():
    X, y = waves(50, noise=0.4)
    weights = np.random.default_rng(1).integers(0, 4, 50)
    weighted = GPRegressor().fit(X, y, sample_weight=weights)
    repeated = GPRegressor().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.method_ == "exact"
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-12)
    bad = np.where(np.arange(50) % 5 == 0, 50.0, 0.0)
    with_errors = y + bad
    known = GPRegressor().fit(X, with_errors, noise_variance=bad**2)
    assert known.score(X, y) > 0.9 > GPRegressor().fit(X, with_errors).score(X, y)


def test_heteroscedastic_and_robust():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 400)[:, None]
    spread = 0.05 + 0.2 * X[:, 0]
    y = np.sin(X[:, 0]) + spread * rng.standard_normal(400)
    model = HeteroscedasticGPRegressor(pilot=80).fit(X, y)
    latent, std = model.predict(X, return_std=True)
    assert abs(np.log(std / spread)).mean() < 0.3
    assert model.latent_mean_and_variance(X)[0].shape == (400, 2)
    clean = np.sin(X[:, 0])
    dirty = clean + 0.05 * rng.standard_normal(400) + 8.0 * (np.arange(400) % 10 == 0)
    robust = RobustGPRegressor(pilot=80).fit(X, dirty)
    plain = GPRegressor().fit(X, dirty)
    assert abs(robust.predict(X) - clean).mean() < 0.1 < abs(plain.predict(X) - clean).mean()


def test_partial_fit_learns_piece_by_piece():
    X, y = waves(3000, noise=0.3)
    model = GPRegressor(n_inducing=40)
    for part in np.split(np.arange(3000), 10):
        model.partial_fit(X[part], y[part])
    assert model.n_samples_seen_ == 3000 and model.method_ == "svgp2025"
    assert model.score(X, y) > 0.97
    # what was learnt from all rows at once is kept
    exact = GPRegressor().fit(X[:100], y[:100])
    before = exact.score(X[200:], y[200:])
    exact.partial_fit(X[100:200], y[100:200])
    assert exact.n_samples_seen_ == 200 and exact.score(X[200:], y[200:]) > before
    with pytest.raises(ValueError, match="needs training by minibatches"):
        GPRegressor(method="titsias2025").partial_fit(X, y)
    labels = GPClassifier(n_inducing=30)
    labels.partial_fit(X[:100], np.where(y[:100] > 7, "a", "b"), ["a", "b", "c"])
    labels.partial_fit(X[100:200], np.where(y[100:200] > 7, "a", "b"))
    assert labels.predict_proba(X[:3]).shape == (3, 3)
    with pytest.raises(ValueError, match="none of"):
        labels.partial_fit(X[:10], np.full(10, "d"))


def test_parts_that_widen_are_named():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=600)
    for order, warned in (
        (np.arange(600), False),
        (np.argsort(X[:, 0]), True),
        (np.argsort(abs(X[:, 0])), True),
    ):
        model = GPRegressor(n_inducing=20, epochs=1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for part in np.split(order, 6):
                model.partial_fit(X[part], y[part])
        assert any("learnt first" in str(own.message) for own in caught) == warned


def test_a_fit_with_online_can_be_continued():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (300, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    model = GPRegressor(online=True).fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    assert model.n_samples_seen_ == 300
    assert model.score(X, y) > 0.95


def test_weights_that_sum_to_one_are_named():
    X, y = waves(100)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 100)
    with pytest.warns(UserWarning, match="weights of 100 rows sum to"):
        GPRegressor(max_iter=2).fit(X, y, sample_weight=weights / weights.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = GPRegressor(method="exact").fit(X, y, sample_weight=weights / weights.mean())
        same = GPRegressor(method="exact", relative_weights=True).fit(
            X, y, sample_weight=weights / weights.sum()
        )
    np.testing.assert_allclose(same.predict(X), plain.predict(X), rtol=1e-6)


def test_mixed_precision_agrees_or_says_why_not():
    X, y = waves(300)
    options = dict(kernel="rbf", method="titsias2025", n_inducing=40, max_iter=60)
    double = GPRegressor(**options).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixed = GPRegressor(**options, precision="mixed").fit(X, y)
    assert (double.precision_, mixed.precision_) == ("double", "mixed")
    np.testing.assert_allclose(mixed.objective_, double.objective_, rtol=1e-2)
    mean, deviation = double.predict(X, return_std=True)
    assert np.abs(mixed.predict(X) - mean).max() < 0.05 * deviation.max()
    precise = dict(initial={"likelihood.variance": 1e-8}, fixed=["likelihood.variance"])
    with pytest.warns(UserWarning, match="in double precision"):
        fitted = GPRegressor(**options, **precise, precision="mixed").fit(X, y)
    assert fitted.precision_ == "double"
    with pytest.raises(ValueError, match="precision"):
        GPRegressor(method="svgp", precision="half").fit(X, y)


def test_predictions_in_mixed_precision_agree_or_say_why_not():
    X, y = waves(300)
    options = dict(method="titsias2025", n_inducing=30, max_iter=20)
    model = GPRegressor(**options).fit(X, y)
    mean, deviation = model.predict(X, return_std=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other, rounded = model.predict(X, return_std=True, precision="mixed")
    np.testing.assert_allclose(other, mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rounded, deviation, rtol=1e-2)
    assert (rounded != deviation).any()
    precise = dict(initial={"likelihood.variance": 1e-8}, fixed=["likelihood.variance"])
    precise = GPRegressor(**options, **precise).fit(X, y)
    with pytest.warns(UserWarning, match="predictions are in double precision") as caught:
        same = precise.predict(X, return_std=True, precision="mixed")
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(same, precise.predict(X, return_std=True))
    with pytest.raises(ValueError, match="`exact` has no mixed precision"):
        GPRegressor(method="exact", max_iter=2).fit(X, y).predict(X, precision="mixed")
    with pytest.raises(ValueError, match="covariances are in double precision"):
        model.predict(X[:3], return_cov=True, precision="mixed")
    with pytest.raises(ValueError, match="precision is 'half'"):
        model.predict(X, precision="half")
    with pytest.raises(ValueError, match="x_sd are predicted in double precision"):
        model.predict(X, x_sd=0.1 * np.ones(X.shape), precision="mixed")
    classes = GPClassifier(method="svgp", n_inducing=20, epochs=3, pilot=40).fit(X, y > np.median(y))
    proba = classes.predict_proba(X)
    np.testing.assert_allclose(classes.predict_proba(X, precision="mixed"), proba, atol=1e-3)
    assert (classes.predict(X, precision="mixed") == classes.predict(X)).all()


def test_files_are_streamed_to_the_same_model(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y = waves(500)
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=["a", "b"]).assign(target=y, id=np.arange(500)).to_parquet(path)
    options = dict(method="svgp2025", n_inducing=20, epochs=20, batch_size=100)
    memory = GPRegressor(**options).fit_file(path, "target", ignore=["id"], stream=False)
    streamed = GPRegressor(**options).fit_file(path, "target", ignore=["id"], stream=True)
    assert list(streamed.feature_names_in_) == ["a", "b"]
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert memory.score(frame, y) > 0.9 and streamed.score(frame, y) > 0.9
    with pytest.raises(ValueError, match="targte.*target"):
        GPRegressor().fit_file(path, "targte")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_file_with_texts_and_dates(kind, tmp_path):
    frames = pytest.importorskip(kind)
    rng = np.random.default_rng(3)
    n = 150
    day = np.datetime64("2023-11-20") + rng.integers(0, 200, n)
    colour, kit = rng.choice(["red", "blue", "green"], n), rng.integers(1, 3, n)
    size = rng.normal(size=n)
    y = 4.0 * (colour == "red") - 3.0 * (kit == 2) + 2.0 * np.sin(size) + 0.02 * day.astype(float)
    path = tmp_path / "rows.csv"
    rows = zip(size, colour, day, kit, y)
    path.write_text("size,colour,day,kit,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    model = GPRegressor().fit_file(path, "y", categorical=["kit"])
    assert list(model.feature_names_in_) == [
        "size",
        "colour=blue",
        "colour=green",
        "colour=red",
        "day",
        "kit=2",
    ]

    def frame(**columns):
        return (frames.table if kind == "pyarrow" else frames.DataFrame)(columns)

    columns = dict(day=day, size=size, colour=colour, kit=kit, other=colour)
    if kind == "polars":
        columns["colour"] = frames.Series(colour, dtype=frames.Categorical)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict(frame(**columns))
        assert model.score(frame(**columns), y) > 0.99
    encoded = [size, colour == "blue", colour == "green", colour == "red", day.astype(float), kit == 2]
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(found, model.predict(np.column_stack(encoded)))
    with pytest.raises(ValueError, match="row 0, column `colour`: `pink` is none of .*blue"):
        model.predict(frame(**{key: values[:1] for key, values in columns.items()} | {"colour": ["pink"]}))
    with pytest.raises(ValueError, match="row 0, column `colour`: is missing"):
        model.predict(frame(**{key: values[:1] for key, values in columns.items()} | {"colour": [None]}))
    in_parts = GPRegressor(method="svgp", n_inducing=30).fit_file(path, "y", categorical=["kit"])
    in_parts.partial_fit(frame(**columns), y)
    assert in_parts.n_samples_seen_ == 2 * n
    assert in_parts.score(frame(**columns), y) > 0.9
    # what was learnt from all rows at once is kept
    model.partial_fit(frame(**columns), y)
    assert model.n_samples_seen_ == 2 * n and model.score(frame(**columns), y) > 0.99
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        model.predict(frame(**{key: values[:0] for key, values in columns.items()}))
    with pytest.raises(ValueError, match="column 'size' holds text"):
        model.predict(frame(**{key: values[:1] for key, values in columns.items()} | {"size": ["big"]}))


def test_text_in_an_array_is_refused():
    with pytest.raises(ValueError, match="could not convert"):
        GPRegressor().fit([["a"], ["b"], ["c"]], [1.0, 2.0, 3.0])


def test_files_hold_what_numpy_made(tmp_path):
    X, y = waves(60)
    kernels = [RBF(lengthscales=[0.5, 0.7]), "matern32"]
    start = {"likelihood.variance": np.float32(0.25), "kernel.lengthscales": np.array([0.5, 0.7])}
    model = GPRegressor(initial=start, max_iter=np.int64(3), random_state=np.int32(4)).fit(X, y)
    model.save(tmp_path / "one")
    again = sparsegp.load(tmp_path / "one")
    assert again.get_params()["initial"]["kernel.lengthscales"] == [0.5, 0.7]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    several = HeteroscedasticGPRegressor(kernel=kernels, max_iter=2).fit(X, y)
    several.save(tmp_path / "two")
    assert sparsegp.load(tmp_path / "two").kernel == kernels
    strange = GPRegressor(initial={"likelihood.variance": 0.3}, max_iter=1).fit(X, y)
    strange.initial = {"likelihood.variance": object()}
    with pytest.raises(TypeError, match="a model file cannot hold"):
        strange.save(tmp_path / "three")


def test_rows_of_a_file_are_kept_aside(tmp_path):
    X, y = waves(400, noise=1.5)
    exposure = np.random.default_rng(0).uniform(0.5, 2.0, 400)
    counts = np.random.default_rng(1).poisson(exposure * np.exp(y / 10))
    path = tmp_path / "rows.csv"
    np.savetxt(
        path, np.column_stack([X, y, y > 0, counts, exposure]), delimiter=",", header="a,b,y,l,c,e", comments=""
    )
    options = dict(method="svgp", early_stopping=0.2, patience=3, batch_size=64, epochs=400, learning_rate=0.1)
    options |= dict(n_inducing=40, pilot=100)
    for stream in (False, True):
        model = GPRegressor("rbf", **options).fit_file(path, "y", ignore=["l", "c", "e"], stream=stream)
        assert "held-out rows" in model.stopped_ and np.isfinite(model.trace_["held_out"]).all()
        assert model._about["rows"] == 320
    options["epochs"] = 5
    labels = GPClassifier("rbf", **options).fit_file(path, "l", ignore=["y", "c", "e"])
    assert np.isfinite(labels.trace_["held_out"]).all() and len(labels.classes_) == 2
    from_file = GPCountRegressor("rbf", **options).fit_file(path, "c", ignore=["y", "l"], further="e")
    from_arrays = GPCountRegressor("rbf", **options).fit(X, counts, exposure=exposure)
    for model in (from_file, from_arrays):
        assert np.isfinite(model.trace_["held_out"]).all() and model._about["rows"] == 320
    with pytest.raises(ValueError, match="fraction"):
        GPRegressor(early_stopping=2.0).fit_file(path, "y")
    with pytest.raises(ValueError, match="fraction"):
        GPRegressor(early_stopping=2.0).partial_fit(X, y)
    path.write_text("a,y\n" + "".join(f"{i},{i % 3}\n" for i in range(12)))
    with pytest.raises(ValueError, match="keeps 1 of 12 rows aside; at least two"):
        GPRegressor(early_stopping=0.1).fit_file(path, "y")
    path.write_text("a,l\n" + "".join(f"{i},{'rare' if i == 7 else i % 2}\n" for i in range(40)))
    for seed in range(60):
        try:
            GPClassifier(early_stopping=0.2, epochs=1, random_state=seed).fit_file(path, "l")
        except ValueError as error:
            assert "`rare` is none of the classes" in str(error) and "another seed" in str(error)
            break
    else:
        raise AssertionError("the rare label was never put aside")


def test_checkpoints_resume_to_the_same_bits(tmp_path):
    X, y = waves(300)
    options = dict(method="svgp", n_inducing=20, batch_size=50, epochs=30)
    whole = GPRegressor(**options).fit(X, y)
    file = tmp_path / "run.safetensors"
    stop = lambda event: event["event"] == "iteration" and event["iteration"] == 10  # noqa: E731
    part = GPRegressor(**options, checkpoint=file, callback=stop).fit(X, y)
    assert part.n_iter_ < whole.n_iter_ and file.exists()
    rest = GPRegressor(**options, checkpoint=file).fit(X, y)
    np.testing.assert_array_equal(rest.predict(X), whole.predict(X))


def test_a_frame_of_the_file_will_do(tmp_path):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    X, y = waves(80)
    frame = pandas.DataFrame({"y": y, "a": X[:, 0], "b": X[:, 1]})
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    model = GPRegressor(max_iter=5).fit_file(path, "y")
    model.save(tmp_path / "model")
    for own in (model, sparsegp.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        expected = own.predict(frame[["a", "b"]])
        for other in (frame, frame[["b", "y", "a"]], polars.from_pandas(frame)):
            np.testing.assert_array_equal(own.predict(other), expected)
        assert own.score(frame, y) == own.score(frame[["a", "b"]], y)
        with pytest.raises(ValueError, match="column `b` is missing from the frame"):
            own.predict(frame[["a", "y"]])
    # frames that were learnt from are scikit-learn's matter
    model.fit(frame[["a", "b"]], y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame)
    path.write_text("a,y\n1,2\n,3\n4,5\n6,7\n")
    with pytest.raises(ValueError, match="row 2, column `a`.*pass `missing='drop'` to leave"):
        model.fit_file(path, "y")
    assert model.fit_file(path, "y", missing="drop")._about["rows"] == 3


def test_dates_are_refused_where_they_have_no_unit():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    y = np.arange(30.0)
    days = pandas.date_range("2020-01-01", periods=30)
    frame = pandas.DataFrame({"a": y, "when": days})
    model = GPRegressor(max_iter=2).fit(frame[["a"]], y)
    dates = [
        (frame, "when"),
        (frame[["when"]], "when"),
        (polars.from_pandas(frame), "when"),
        (arrow.Table.from_pandas(frame), "when"),
        (days.to_numpy()[:, None], "X"),
        (frame.assign(when=days - days[0]), "when"),
    ]
    for X, _ in dates:
        with pytest.raises(ValueError, match="dates or times|column `a` is missing from the frame"):
            model.predict(X)
    for X, name in dates[4:]:
        with pytest.raises(ValueError, match=f"column '{name}' holds dates or times.*numbers"):
            GPRegressor().fit(X, y)


def test_training_ends_where_nothing_visible_changes():
    X, y = waves(300, noise=0.5)
    # the size is that of the objective with its assumed prior, which reports leave out
    settings = dict(n_inducing=20, lengthscale_prior=False)
    usual = GPRegressor("rbf", **settings).fit(X, y)
    sharp = GPRegressor("rbf", tol=1e-9, **settings).fit(X, y)
    assert usual.converged_ and "the last 10 iterations" in usual.stopped_
    assert usual.n_iter_ < sharp.n_iter_ and usual.objective_ <= sharp.objective_
    std = sharp.predict(X, return_std=True)[1]
    assert np.abs(usual.predict(X) - sharp.predict(X)).max() < 0.1 * std.min()
    fall = usual.trace_["objective"][-1] - usual.trace_["objective"][-11]
    before = usual.trace_["objective"][-2] - usual.trace_["objective"][-12]
    # the trace is in the units of the data, the size that counts is the model's
    size = abs(usual.objective_ + len(y) * np.log(y.std()))
    assert fall <= 1.001e-4 * size < before * 1.01
    with pytest.raises(ValueError, match="tol is -1.0"):
        GPRegressor(tol=-1.0).fit(X, y)


def test_later_parts_may_be_single_rows():
    X, y = waves(200)
    model = GPRegressor(method="svgp", n_inducing=15, epochs=20).fit(X, y)
    labels = GPClassifier(method="svgp", n_inducing=15, epochs=20).fit(X, y > y.mean())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(3):
            model.partial_fit(X[i : i + 1], y[i : i + 1])
            labels.partial_fit(X[i : i + 1], y[i : i + 1] > y.mean())
        model.partial_fit(X[:4], np.full(4, y[0]))
    assert model.n_samples_seen_ == 207 and labels.n_samples_seen_ == 203
    # a row that is seen again and again stands for no more than its share
    assert model.score(X, y) > 0.5


def test_early_stopping_keeps_rows_aside():
    X, y = waves(400, noise=1.5)
    model = GPRegressor(
        method="svgp", early_stopping=0.2, patience=3, batch_size=64, epochs=400, learning_rate=0.1
    ).fit(X, y)
    assert "held-out rows" in model.stopped_ and np.isfinite(model.trace_["held_out"]).all()
    with pytest.raises(ValueError, match="fraction"):
        GPRegressor(early_stopping=2.0).fit(X, y)
    with pytest.raises(ValueError, match="early_stopping needs training by minibatches"):
        GPRegressor(method="exact", early_stopping=0.2).fit(X, y)
    chosen = GPRegressor(early_stopping=0.2, epochs=2, inducing=X[:9], fixed="inducing").fit(X, y)
    assert chosen.method_ == "svgp2025"
    np.testing.assert_allclose(chosen.inducing_points_, X[:9], rtol=1e-12)


def test_rows_kept_aside_count_by_their_weights():
    X, y = waves(300, noise=1.5)
    weights = np.random.default_rng(3).uniform(0.2, 5.0, 300)
    options = dict(method="svgp", n_inducing=15, early_stopping=0.3, epochs=6, batch_size=64, random_state=7)
    model = GPRegressor(**options).fit(X, y, sample_weight=weights)
    aside = np.random.RandomState(7).permutation(300)[:90]
    density = model.log_predictive_density(X[aside], y[aside])
    best = model.trace_["held_out"].max()
    np.testing.assert_allclose(best, np.average(density, weights=weights[aside]), rtol=1e-9)
    assert abs(best - density.mean()) > 1e-4
    # a row of weight 0, however unlikely, is none
    more = np.r_[X, X[:50] + 9.0], np.r_[y, np.full(50, 1e6)], np.r_[weights, np.zeros(50)]
    same = GPRegressor(**options).fit(more[0], more[1], sample_weight=more[2])
    np.testing.assert_array_equal(same.trace_["held_out"], model.trace_["held_out"])


def test_a_period_in_the_units_of_the_data_warns(tmp_path):
    from sparsegp.kernels import Periodic

    X = np.linspace(0, 96, 120)[:, None]
    y = np.sin(2 * np.pi * X[:, 0] / 12)
    with pytest.warns(
        UserWarning, match="period 12 is more than the rows span, 3.4.*standardise=False"
    ) as record:
        model = GPRegressor(Periodic(RBF(), period=12.0), max_iter=3).fit(X, y)
    assert record[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GPRegressor(Periodic(RBF(), period=12.0), standardise=False).fit(X, y)
        GPRegressor(Periodic(RBF(), period=0.43)).fit(X, y)
        # said once, when it was learnt
        model.save(tmp_path / "m.safetensors")
        sparsegp.load(tmp_path / "m.safetensors")


def test_a_training_that_did_not_end_warns():
    X, y = waves(60)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = GPRegressor(max_iter=2).fit(X, y)
    assert not model.converged_
    # the objective of the trace is that of the result, in the units of y
    np.testing.assert_allclose(model.trace_["objective"][-1], model.objective_, rtol=1e-12)


def test_inputs_that_do_not_matter_do_not_take_long():
    """A lengthscale that has to become large does so in few iterations."""
    X, y = make_friedman1(400, n_features=8, noise=1.0, random_state=0)
    # without the prior, which keeps them from becoming so large
    model = GPRegressor(lengthscale_prior=False).fit(X, y)
    assert model.converged_ and model.n_iter_ < 200
    ls = model.parameters_["kernel.lengthscales"]
    assert ls[5:].min() > 10 * ls[:5].max()


def test_only_likelihoods_of_classes_make_classifiers():
    X, y = waves(60)
    with pytest.raises(ValueError, match="none of classes"):
        GPClassifier(likelihood="gaussian").fit(X, y > 7)
    with pytest.raises(ValueError, match="of 2 classes; y has 3"):
        GPClassifier(likelihood="bernoulli").fit(X, np.digitize(y, [6, 8]))
    three = GPClassifier(likelihood="robust-max", max_iter=5).fit(X, np.digitize(y, [6, 8]))
    assert three.predict_proba(X).shape == (60, 3)


def test_progress_tells_what_happens(capsys):
    X, y = waves(60)
    GPRegressor(verbose=1).fit(X, y)
    printed = capsys.readouterr().err
    assert "iteration 1 of at most 1000" in printed and "objective" in printed
    GPRegressor(verbose=1, method="svgp", epochs=5).fit(X, y)
    assert "epoch 1 of 5" in capsys.readouterr().err
    GPRegressor().fit(X, y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "options, text",
    [
        (dict(kernel="matern72"), "unknown kernel `matern72`; nearest: .*matern52"),
        (dict(kernel=RBF(lengthscales=[1.0, 2.0, 3.0])), "3 values for 2"),
        (dict(likelihood="poison"), "unknown likelihood `poison`.*nearest"),
        (dict(likelihood="poisson"), "not a count|standardised|whole"),
        (dict(fixed=["kernel.lengthscale"]), "kernel.lengthscales"),
        (dict(initial={"kernel.variance": -1.0}), "outside"),
        (dict(inducing="gird"), "`gird`.*did you mean `grid`"),
        (dict(batch_size=0), "batch_size"),
        (dict(learning_rate=-1.0), "learning_rate"),
        (dict(optimiser="sgd"), "lbfgs"),
        (dict(inducing=np.zeros((3, 5))), "5 columns"),
    ],
)
def test_mistakes_get_a_clear_error(options, text):
    X, y = waves(30)
    with pytest.raises(ValueError, match=text):
        GPRegressor(**options).fit(X, y)


@pytest.mark.parametrize("inducing", ["greedy-elbo", "k-dpp", "grid"])
def test_inducing_points_can_be_chosen_and_judged(inducing):
    rng = np.random.default_rng(8)
    X = rng.uniform(-3, 3, (120, 2))
    y = 40 + 5 * np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=120)
    model = GPRegressor(method="titsias2025", n_inducing=16, inducing=inducing, max_iter=20, pilot=0).fit(X, y)
    found = model.inducing_quality(X, y)
    assert found["gap"]["lower"] == pytest.approx(model.objective_, rel=1e-8)
    assert found["gap"]["width"] == pytest.approx(found["gap"]["upper"] - found["gap"]["lower"])
    own = found["processes"][0]
    assert own["rows"] == 120 and own["points"] == len(model.inducing_points_)
    assert 0 <= own["trace_residual"] < 1
    with pytest.raises(ValueError, match="unknown selection"):
        GPRegressor(method="titsias2025", n_inducing=5, inducing="greedy").fit(X, y)
    exact = GPRegressor(method="exact", max_iter=2).fit(X, y)
    with pytest.raises(ValueError, match="inducing points"):
        exact.inducing_quality(X, y)


def test_restarts_are_no_worse_and_repeat():
    i = np.arange(60)
    X = 6 * np.mod(i * 0.754877, 1)[:, None]
    y = np.sin(8 * X[:, 0]) + 0.6 * (np.mod(np.sin(i * 12.9898) * 43758.545, 1) - 0.5)
    first = GPRegressor(method="exact").fit(X, y)
    seen = []
    best = GPRegressor(method="exact", n_restarts_optimizer=6, callback=lambda e: seen.append(e["event"]))
    best.fit(X, y)
    assert best.objective_ >= first.objective_
    assert seen.count("restart") == 6
    again = GPRegressor(method="exact", n_restarts_optimizer=6).fit(X, y)
    assert again.objective_ == best.objective_
    with pytest.raises(ValueError, match="n_restarts_optimizer"):
        GPRegressor(n_restarts_optimizer=-1).fit(X, y)


def test_numbers_of_draws_and_levels_that_are_none_are_named():
    X, y = waves(40)
    regressor = GPRegressor(max_iter=2).fit(X, y)
    classifier = GPClassifier(max_iter=2).fit(X, y > np.median(y))
    for model in (regressor, classifier):
        for count in (0, -1, 2.7, True):
            with pytest.raises(ValueError, match=f"n_samples is {count}; it must be a whole number from 1"):
                model.sample_y(X, count)
    with pytest.raises(ValueError, match=r"return_quantiles is \[\]; give levels between 0 and 1"):
        regressor.predict(X, return_quantiles=[])


def test_constant_targets_have_no_noise_to_learn():
    X, _ = waves(40)
    with pytest.raises(ValueError, match="the targets are constant: there is no noise to learn.*gaussian"):
        HeteroscedasticGPRegressor().fit(X, np.full(40, 3.0))
    # others can, and a part may be
    shared = "coregionalised(likelihood=laplace, outputs=2, latents=1)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        GPRegressor(likelihood=shared, max_iter=3).fit(X, np.full((40, 2), 3.0))
        HeteroscedasticGPRegressor().partial_fit(X[:5], np.full(5, 3.0)).partial_fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="is constant"):
        assert np.allclose(GPRegressor().fit(X, np.full(40, 3.0)).predict(X), 3.0)


def test_a_linear_mean_that_separates_the_classes_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(60) > 0
    with pytest.warns(UserWarning, match="the linear mean separates the classes.*`rbf \\+ linear`"):
        sure = GPClassifier(mean="linear").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        held = GPClassifier("rbf + linear").fit(X, y)
        # classes that overlap are none that it separates
        GPClassifier(mean="linear").fit(X, y ^ (rng.uniform(size=60) < 0.2))
    other = rng.normal(size=(400, 2))
    truth = other[:, 0] + 0.1 * rng.standard_normal(400) > 0
    assert log_loss(truth, held.predict_proba(other)) < 0.5 * log_loss(truth, sure.predict_proba(other))


def test_a_kernel_is_chosen_by_default():
    rng = np.random.default_rng(3)
    X = rng.uniform(-20, 20, size=(150, 3))
    y = 300 + 20 * np.sin(X[:, 0] / 6) + 0.2 * X[:, 1] ** 2 - 3 * X[:, 2] + rng.normal(size=150)
    model = sparsegp.GPRegressor().fit(X, y)
    choice = model.kernel_choice_
    assert "additive" in choice["kernel"] and choice["rows"] == 150
    scores = [one["score"] for one in choice["candidates"]]
    assert scores == sorted(scores, reverse=True) and len(scores) > 4
    assert sparsegp.GPRegressor(kernel="rbf").fit(X, y).kernel_choice_ is None
    with pytest.raises(ValueError, match="auto"):
        sparsegp.GPRegressor(kernel="auto + rbf").fit(X, y)


def test_functions_of_targets_are_learnt_and_undone(tmp_path):
    rng = np.random.default_rng(6)
    X = rng.uniform(0, 6, size=(120, 1))
    y = np.exp(2 * np.sin(X[:, 0]) + 0.4 * rng.normal(size=120))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = sparsegp.GPRegressor("rbf").fit(X, y)
    model = sparsegp.GPRegressor("rbf", target_transform="log", hyperparameters="plug-in").fit(X, y)
    other = sparsegp.GPRegressor("rbf", hyperparameters="plug-in").fit(X, np.log(y))
    assert model.target_transform_ == "log" and plain.target_transform_ is None
    new = rng.uniform(0, 6, size=(50, 1))
    m, s = other.predict(new, return_std=True)
    mean, std, q = model.predict(new, return_std=True, return_quantiles=[0.05, 0.95])
    np.testing.assert_allclose(mean, np.exp(m + s**2 / 2), rtol=1e-6)
    np.testing.assert_allclose(std, mean * np.sqrt(np.expm1(s**2)), rtol=1e-6)
    np.testing.assert_allclose(q, np.exp(other.predict(new, return_quantiles=[0.05, 0.95])[1]), rtol=1e-6)
    np.testing.assert_allclose(
        model.log_predictive_density(X, y), other.log_predictive_density(X, np.log(y)) - np.log(y), atol=1e-6
    )
    np.testing.assert_allclose(model.predict(new), mean)
    assert (model.sample_y(new, 20) > 0).all()
    model.save(tmp_path / "m.gp")
    again = sparsegp.load(tmp_path / "m.gp")
    assert again.target_transform_ == "log"
    np.testing.assert_array_equal(again.predict(new), mean)
    power = sparsegp.GPRegressor("rbf", target_transform="yeo-johnson").fit(X, y).target_transform_
    assert 0 <= power["yeo-johnson"]["lambda"] < 0.8
    assert sparsegp.GPRegressor("rbf", target_transform="auto").fit(X, y).target_transform_ == "log"
    with pytest.raises(ValueError, match="poisson"):
        sparsegp.GPCountRegressor(target_transform="log").fit(X, np.round(y))


def test_what_rows_say_against_a_likelihood_is_named():
    rng = np.random.default_rng(7)
    X = rng.uniform(0, 6, size=(200, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_t(2, size=200)
    with pytest.warns(UserWarning, match="heavier tails than Gaussian noise"):
        model = sparsegp.GPRegressor("rbf").fit(X, y)
    (found,) = model.findings_
    assert found["name"] == "tails" and found["remedies"] == ["student-t"] and found["gain"] > 0.03
    assert sparsegp.RobustGPRegressor("rbf").fit(X, y).findings_ == []


def test_inputs_that_are_hardly_meant_are_named():
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 6, size=(100, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(100)
    options = dict(kernel="rbf", max_iter=5)
    with pytest.warns(UserWarning, match="input column `x2` gives the target `y.*` away"):
        GPRegressor(**options).fit(np.c_[X, 32.0 + 1.8 * y], y)
    with pytest.warns(UserWarning, match="input column `x2` numbers the rows"):
        GPRegressor(**options).fit(np.c_[X, np.arange(100.0)], y)


def test_counts_and_classes_that_are_learnt_as_numbers_are_named():
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 6, size=(200, 1))
    counts = rng.poisson(np.exp(np.sin(X[:, 0])))
    with pytest.warns(UserWarning, match="`poisson`"):
        model = GPRegressor("rbf").fit(X, counts)
    assert [own["name"] for own in model.findings_] == ["counts"]
    with pytest.warns(UserWarning, match="has two values.*GPClassifier"):
        model = GPRegressor("rbf").fit(X, (counts > 1).astype(float))
    assert model.findings_ == []
    # nothing is said against a choice
    chosen = GPRegressor("rbf", likelihood="gaussian").fit(X, counts)
    assert "counts" not in [own["name"] for own in chosen.findings_]


def test_inputs_over_powers_of_ten_are_learnt_from_by_their_logarithms():
    rng = np.random.default_rng(4)
    u = rng.uniform(0, 10, 90)
    X = np.c_[2 * np.exp(u), rng.uniform(0, 1, 90)]
    y = np.sin(0.9 * u) + 0.1 * rng.standard_normal(90)
    model = GPRegressor("rbf").fit(X, y)
    assert model.log_inputs_ == ["x0"]
    with pytest.warns(UserWarning, match="powers of ten"):
        plain = GPRegressor("rbf", log_inputs="none").fit(X, y)
    assert plain.log_inputs_ == []
    assert model.score(X, y) > 0.9
    assert np.isfinite(model.predict([[0.0, 0.5], [-3.0, 0.5]])).all()
    assert GPRegressor("rbf", log_inputs=["x0"]).fit(X, y).log_inputs_ == ["x0"]
    with pytest.raises(ValueError, match="`x9`"):
        GPRegressor("rbf", log_inputs=["x9"]).fit(X, y)
    # one sentinel far below leaves the input as it is
    X[17, 0] = -1
    assert GPRegressor("rbf").fit(X, y).log_inputs_ == []


def test_few_rows_average_over_hyperparameters():
    X, y = np.linspace(0, 3, 20)[:, None], np.sin(np.linspace(0, 5, 20))
    y = y + 0.2 * np.random.default_rng(2).standard_normal(20)
    model = GPRegressor("rbf").fit(X, y)
    assert model.averaged_["settings"] <= model.averaged_["components"] == 32
    plug_in = GPRegressor("rbf", hyperparameters="plug-in").fit(X, y)
    assert plug_in.averaged_ is None
    new = [[4.5]]
    assert model.predict(new, return_std=True)[1] > plug_in.predict(new, return_std=True)[1]
    # weights of 1 are none
    same = GPRegressor("rbf").fit(X, y, sample_weight=np.ones(20))
    np.testing.assert_allclose(
        same.predict(new, return_std=True), model.predict(new, return_std=True), rtol=1e-6
    )
    with pytest.raises(ValueError, match="laplace"):
        GPRegressor("rbf", method="tsvgp", hyperparameters="laplace").fit(X, y)


def test_seasons_are_numbers_too():
    X = np.arange(60.0)[:, None]
    y = np.sin(2 * np.pi * X[:, 0] / 12)
    texts = GPRegressor("rbf", season="12", max_iter=5).fit(X, y)
    for season in (12, 12.0, [12], np.float64(12)):
        same = GPRegressor("rbf", season=season, max_iter=5).fit(X, y)
        np.testing.assert_array_equal(same.predict(X), texts.predict(X))


def test_few_classes_and_counts_average_over_hyperparameters(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (40, 2))
    score = 2 * np.sin(1.5 * X[:, 0])
    classes = (rng.random(40) < 1 / (1 + np.exp(-score))).astype(int)
    new = rng.uniform(-3, 3, (200, 2))
    usual = {"kernel": "rbf", "method": "tvgp"}
    for cls, y in ((GPClassifier, classes), (GPCountRegressor, rng.poisson(np.exp(0.5 * score + 0.5)))):
        model = cls(**usual, hyperparameters="laplace").fit(X, y)
        plug_in = cls(**usual, hyperparameters="plug-in").fit(X, y)
        assert plug_in.averaged_ is None and model.averaged_["components"] == 32
        file = tmp_path / "model.safetensors"
        model.save(file)
        again = sparsegp.load(file)
        if cls is GPClassifier:
            chance = model.predict_proba(new)
            np.testing.assert_array_equal(again.predict_proba(new), chance)
            apart = np.abs(chance - plug_in.predict_proba(new))
            assert 0.01 < apart.max() < 0.3
        else:
            np.testing.assert_array_equal(again.predict(new), model.predict(new))
            # a rate of which less is known: mixtures of the settings, none of them by itself
            np.testing.assert_allclose(model.predict(X).mean(), y.mean(), rtol=0.15)
