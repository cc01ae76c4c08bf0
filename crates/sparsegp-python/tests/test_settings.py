"""Arguments of the estimators against the registry of settings, and what is said of those without effect."""

import inspect
import re
import warnings

import numpy as np
import pytest

import sparsegp
from sparsegp import (
    GPClassifier,
    GPCountRegressor,
    GPRegressor,
    HeteroscedasticGPRegressor,
    RobustGPRegressor,
)

ESTIMATORS = [
    GPRegressor,
    RobustGPRegressor,
    HeteroscedasticGPRegressor,
    GPCountRegressor,
    GPClassifier,
]
SETTINGS = [entry for entry in sparsegp.registry()["settings"] if entry["python"] is not None]
# what estimators have beside the settings of a fit
OTHERS = {
    "standardise",
    "holidays",
    "missing",
    "unknown",
    "places",
    "sampling",
    "online",
    "verbose",
    "callback",
}


def rows(n=40):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_arguments_are_the_settings_with_their_defaults(estimator):
    parameters = inspect.signature(estimator.__init__).parameters
    own = {name for name in parameters if name != "self"}
    assert own == {entry["python"] for entry in SETTINGS if not entry["of_sampling"]} | OTHERS
    for entry in SETTINGS:
        if entry["of_sampling"]:
            continue
        # None and what is empty are for what the core decides
        given = parameters[entry["python"]].default
        default = entry["default"] if entry["default"] is not None else given
        assert given is None or given == default or not (given or default), entry["python"]
        if entry["default"] is None:
            assert not given, entry["python"]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_setting_is_documented(estimator):
    text = inspect.getdoc(estimator)
    of_sampling = text[text.index("sampling : ") : text.index("early_stopping : ")]
    for entry in SETTINGS:
        name, default = entry["python"], entry["default"]
        if not entry["of_sampling"]:
            assert re.search(rf"^{name} : ", text, re.M), name
        elif isinstance(default, (bool, int)):
            assert re.search(rf"``{name}``[^`]* \({default}\)", of_sampling), name
        else:
            assert f"``{name}``" in of_sampling, name


def warned(model, X, y):
    """What warnings say of settings without effect."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(w.message) for w in seen if "has no effect" in str(w.message)]


@pytest.mark.parametrize(
    "method, given, parts",
    [
        ("exact", dict(epochs=5), ["epochs has no effect", 'method="exact"', "minibatches", "svgp"]),
        ("exact", dict(n_inducing=5), ["n_inducing", "inducing points"]),
        ("exact", dict(sampling={"draws": 9}), ["sampling['draws']", "nuts"]),
        ("auto", dict(batch_size=5), ["batch_size", 'exact, which method="auto" took']),
        ("svgp", dict(max_iter=7, epochs=2), ["max_iter", "full_batch"]),
        ("svgp", dict(full_batch=True, epochs=2, max_iter=3), ["epochs", "full_batch"]),
        ("tvgp", dict(jitter=1e-4, max_iter=3), ["jitter"]),
        ("lsvgp", dict(natural_rate=0.5, epochs=2), ["natural_rate"]),
        ("titsias2025", dict(learning_rate=0.1, max_iter=3), ["learning_rate", "optimiser"]),
        ("deep", dict(pilot=10, epochs=2), ["pilot", "one layer"]),
    ],
)
def test_settings_without_effect_are_reported_by_name(method, given, parts):
    (text,) = warned(GPRegressor(method=method, **given), *rows())
    for part in parts:
        assert part in text, text


def test_svi_finds_its_rate_itself():
    X, y = rows()
    (text,) = warned(GPClassifier(method="svi", natural_rate=0.5, epochs=2), X, y > 0)
    assert "natural_rate" in text and "svi" in text


@pytest.mark.parametrize(
    "method, given",
    [
        ("auto", {}),
        ("exact", dict(max_iter=3, tol=1e-3, random_state=7, epochs=None)),
        ("svgp", dict(epochs=2, batch_size=10, natural_rate=0.0)),
        ("svgp", dict(full_batch=True, max_iter=3)),
        ("titsias2025", dict(n_inducing=5, jitter=1e-4, optimiser="adam", learning_rate=0.1, max_iter=3)),
        ("rsvgp", dict(epochs=1, early_stopping=0.2, patience=2)),
        ("deep", dict(epochs=2, early_stopping=0.2, patience=2)),
    ],
)
def test_nothing_is_said_of_what_acts(method, given):
    assert warned(GPRegressor(method=method, **given), *rows()) == []


def test_settings_of_parts_are_reported_once():
    X, y = rows()
    model = GPRegressor(method="svgp", max_iter=7, epochs=1, n_inducing=5)
    with pytest.warns(UserWarning, match="max_iter has no effect"):
        model.partial_fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X, y)


@pytest.mark.parametrize(
    "given, text",
    [
        (dict(learning_rate=0.0), "learning_rate is 0.0; it must be a positive number"),
        (dict(tol=-1.0), "tol is -1.0; it must be a number, 0 or more"),
        (dict(natural_rate=1.5), "natural_rate is 1.5; it must be a number above 0 and at most 1"),
        (dict(optimiser="sgd"), "optimiser is `sgd`; it must be one of `lbfgs`, `adam`"),
        (dict(sampling={"law": "other"}), r"sampling\['law'\] is `other`"),
        (dict(n_inducing=0), "n_inducing is 0; it must be a whole number from 1"),
    ],
)
def test_values_out_of_bounds_are_refused_by_name(given, text):
    with pytest.raises(ValueError, match=text):
        GPRegressor(**given).fit(*rows())


def test_hyperparameters_are_refused_before_the_training():
    X, y = rows()
    seen = []
    model = GPRegressor(method="ess", sampling={"hyperparameters": True}, callback=seen.append)
    with pytest.raises(ValueError, match="use the method `nuts` or `hmc`"):
        model.fit(X, y)
    assert seen == []
