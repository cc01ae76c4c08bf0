"""The recipes for Ray and Spark, run on stand-ins of a few lines: the same calls, in this process.

Answers come in a random order, as they do there. With Ray or Spark at hand run the recipes themselves.
"""

from __future__ import annotations

import functools
import importlib.util
import random
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from test_shards import Here

from sparsegp import GPRegressor, shards

RECIPES = Path(__file__).resolve().parents[3] / "docs" / "recipes"


def recipe(name):
    spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parts():
    X = np.random.default_rng(0).uniform(0, 10, (600, 2))
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    return [shards.Part(X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100)]


def settings():
    return dict(method="titsias2025", n_inducing=12, max_iter=4, pilot=50)


def bits(partitions):
    model = GPRegressor(**settings())
    shards.fit(model, GPRegressor, partitions)
    return {path: np.asarray(value).tobytes() for path, value in model.model_.parameters.items()}


def ray():
    """Actors that are objects; futures that are results."""

    class Method:
        def __init__(self, function):
            self.remote = function

    class Actor:
        def __init__(self, own):
            self.own = own

        def __getattr__(self, name):
            return Method(getattr(self.own, name))

    def remote(**_):
        def wrapped(cls):
            return types.SimpleNamespace(remote=lambda *own: Actor(cls(*own)))

        return wrapped

    def wait(futures):
        chosen = random.Random(len(futures)).randrange(len(futures))
        return [futures[chosen]], futures[:chosen] + futures[chosen + 1 :]

    module = types.ModuleType("ray")
    module.remote, module.wait = remote, wait
    module.get = module.put = lambda value: value
    return module


class Rdd:
    """Pairs in this process."""

    def __init__(self, pairs):
        self.pairs = list(pairs)

    def cache(self):
        return self

    def count(self):
        return len(self.pairs)

    def collect(self):
        return random.Random(0).sample(self.pairs, len(self.pairs))

    def map(self, function):
        return Rdd(map(function, self.pairs))

    def filter(self, function):
        return Rdd(filter(function, self.pairs))

    def treeReduce(self, function):
        return functools.reduce(function, random.Random(1).sample(self.pairs, len(self.pairs)))


def test_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", ray())
    assert bits(recipe("ray_fit").OnRay(parts())) == bits(Here(parts()))


def test_spark():
    context = types.SimpleNamespace(broadcast=lambda value: types.SimpleNamespace(value=value))
    own = recipe("spark_fit")
    assert bits(own.OnSpark(context, Rdd(enumerate(parts())))) == bits(Here(parts()))
    part = dict(own.part_of(3, [(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)]))[3]
    assert part.X.tolist() == [[1.0, 2.0], [4.0, 5.0]] and part.y.tolist() == [3.0, 6.0]


@pytest.mark.parametrize("name", ["ray_fit", "spark_fit"])
def test_recipes_are_short(name):
    lines = [line for line in (RECIPES / f"{name}.py").read_text().splitlines() if line.strip()]
    assert len(lines) < 70
