"""Rows in partitions, without anything that carries messages: what Dask, MPI and others have in common."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import sparsegp
from sparsegp import shards

pd = pytest.importorskip("pandas")


class Here:
    """Partitions in this process, which count what is asked of them."""

    def __init__(self, parts):
        self.parts = parts
        self.rounds = self.rows = 0

    def count(self):
        return len(self.parts)

    def ask(self, function, arguments):
        return [function(part, *own) for part, own in zip(self.parts, arguments)]

    def keep(self, function, arguments):
        self.shards = [function(self.parts[i], *arguments[i]) for i in sorted(arguments)]

    def ask_shards(self, function, *arguments):
        return [function(shard, *arguments) for shard in self.shards]

    def change(self, function, arguments):
        # as they are when they travel
        self.shards = [pickle.loads(pickle.dumps(function(s, *own))) for s, own in zip(self.shards, arguments)]

    def round(self, request):
        self.rounds += 1
        return shards.total([shard.answer(request) for shard in self.shards])

    def take(self, wanted):
        self.rows += sum(len(places) for _, places in wanted)
        return np.concatenate([self.shards[i].take(places) for i, places in wanted])


def table(rows=1500, seed=0):
    """Numbers, counts, labels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.uniform(0, 10, rows), "b": 30 * rng.standard_normal(rows) + 7})
    wave = np.sin(frame.a) + 0.02 * frame.b
    frame["y"] = 50 + 3 * wave + 0.5 * rng.standard_normal(rows)
    frame["count"] = rng.poisson(np.exp(0.7 * wave))
    frame["label"] = np.where(wave + 0.4 * rng.standard_normal(rows) > 0.3, "high", "low")
    return frame


INPUTS = ["a", "b"]


def parts_of(frame, inputs, target, count=5, **more):
    pieces = np.array_split(np.arange(len(frame)), count)
    own = {name: np.asarray(values) for name, values in more.items()}
    return [
        shards.Part(frame[inputs].iloc[p], frame[target].iloc[p], **{k: v[p] for k, v in own.items()})
        for p in pieces
    ]


def fitted(cls, frame, target, count=5, inputs=INPUTS, more=None, **settings):
    model = cls(**settings)
    shards.fit(model, cls, Here(parts_of(frame, inputs, target, count, **(more or {}))))
    return model


def test_sums_in_any_order_have_the_bits_of_the_tree():
    rng = np.random.default_rng(1)
    for count in (1, 2, 3, 7, 12, 33):
        answers = [rng.standard_normal(5) * 10.0 ** rng.integers(-9, 9) for _ in range(count)]
        sums = [shards.Sum(i, answer, count) for i, answer in enumerate(answers)]
        while len(sums) > 1:
            one, other = (sums.pop(rng.integers(len(sums))) for _ in range(2))
            sums.append(one + other)
        assert sums[0].value().tobytes() == shards.total(answers).tobytes()
    with pytest.raises(ValueError, match="some of 3 answers"):
        shards.Sum(0, answers[0], 3).value()


def test_shards_tell_and_give_their_rows():
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)[:, None]
    shard = shards.Shard(X, y, weights=np.full(6, 2.0), extra=np.full(6, 0.5))
    assert len(shard) == 6
    taken = shard.take(np.array([4, 1]))
    assert taken.tolist() == [[8, 9, 4, 2, 0.5], [2, 3, 1, 2, 0.5]]
    assert pickle.loads(pickle.dumps(shard)).take(np.array([5])).tolist() == [[10, 11, 5, 2, 0.5]]
    with pytest.raises(ValueError, match="row 6 was asked for"):
        shard.take(np.array([6]))
    with pytest.raises(ValueError, match="weights has 2 values for 6 rows"):
        shards.Shard(X, y, weights=np.ones(2))
    with pytest.raises(ValueError, match="damaged"):
        shard.answer(b"nothing")


@pytest.mark.parametrize(
    ("name", "target", "settings"),
    [
        ("GPRegressor", "y", dict(method="titsias2025")),
        ("GPRegressor", "y", dict(method="svgp", epochs=2, batch_size=300)),
        ("RobustGPRegressor", "y", dict(method="tsvgp", full_batch=True)),
        ("HeteroscedasticGPRegressor", "y", dict(method="svgp", epochs=2, batch_size=300)),
        ("GPCountRegressor", "count", dict(method="svgp", full_batch=True)),
        ("GPClassifier", "label", dict(method="cavi", full_batch=True)),
    ],
)
def test_fits_are_those_of_one_machine(name, target, settings):
    frame, cls = table(900), getattr(sparsegp, name)
    settings = dict(settings, n_inducing=15, max_iter=4, pilot=0)
    model = fitted(cls, frame, target, **settings)
    local = cls(**settings).fit(frame[INPUTS], frame[target])
    predict = "predict_proba" if name == "GPClassifier" else "predict"
    found, expected = (getattr(own, predict)(frame[INPUTS]) for own in (model, local))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-8)
    assert model.summary().splitlines()[0] == local.summary().splitlines()[0]


def test_the_driver_sees_few_rows():
    frame = table(3000)
    here = Here(parts_of(frame, INPUTS, "y"))
    model = sparsegp.GPRegressor(n_inducing=10, max_iter=10, pilot=50)
    shards.fit(model, sparsegp.GPRegressor, here)
    # all rows are a sample here; three looks at it, and one at the 50 rows that kernels are judged by
    assert here.rows <= 3 * 3000 + 50
    assert here.rounds >= 20


def test_weights_are_those_of_a_table_that_is_read_again_and_again(tmp_path):
    """(In memory rows that are equal become one, in another order: another start.)"""
    pytest.importorskip("pyarrow")
    frame = table(900)
    frame["w"] = 0.5 * (np.arange(900) % 4)
    frame["exposure"] = 1.0 + np.arange(900) % 3
    frame[[*INPUTS, "count", "w", "exposure"]].to_parquet(tmp_path / "rows.parquet")
    settings = dict(method="svgp", full_batch=True, n_inducing=12, max_iter=4, pilot=0)
    more = dict(sample_weight=frame["w"], extra=frame["exposure"])
    model = fitted(sparsegp.GPCountRegressor, frame, "count", more=more, **settings)
    local = sparsegp.GPCountRegressor(**settings)
    local.fit_file(tmp_path / "rows.parquet", "count", sample_weight="w", further="exposure", stream=True)
    own = [m.predict(frame[INPUTS], exposure=frame["exposure"]) for m in (model, local)]
    np.testing.assert_allclose(own[0], own[1], rtol=1e-6)
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-9)


def test_rows_with_known_noise_and_isolated_values():
    frame = table(600)
    frame.loc[17, "b"] = 1e7
    noise = 0.01 + 0.1 * (np.arange(600) % 3)
    settings = dict(method="svgp", full_batch=True, n_inducing=12, max_iter=3, pilot=0)
    with pytest.warns(UserWarning, match="10000000"):
        model = fitted(sparsegp.GPRegressor, frame, "y", more=dict(extra=noise), **settings)
    with pytest.warns(UserWarning, match="10000000"):
        local = sparsegp.GPRegressor(**settings).fit(frame[INPUTS], frame["y"], noise_variance=noise)
    np.testing.assert_allclose(model.predict(frame[INPUTS]), local.predict(frame[INPUTS]), rtol=1e-6)
    np.testing.assert_allclose(
        model.parameters_["kernel.lengthscales"], local.parameters_["kernel.lengthscales"]
    )


def test_ugly_partitions_are_read_as_one_frame_is_or_refused():
    frame = table(120)
    settings = dict(method="svgp", full_batch=True, n_inducing=8, max_iter=1, pilot=0)

    def own(X, **more):
        pieces = np.array_split(np.arange(120), 3)
        parts = [shards.Part(X.iloc[p], frame["y"].iloc[p]) for p in pieces]
        model = sparsegp.GPRegressor(**settings, **more)
        shards.fit(model, sparsegp.GPRegressor, Here(parts))
        local = sparsegp.GPRegressor(**settings, **more).fit(X, frame["y"])
        assert list(model.feature_names_in_) == list(local.feature_names_in_)
        np.testing.assert_allclose(model.predict(X), local.predict(X), rtol=1e-5)

    def fails(X, words, **more):
        with pytest.raises(ValueError, match=words):
            own(X, **more)

    X = frame[INPUTS]
    digits = pd.Series(np.arange(120) % 7)
    own(X.assign(c=digits.astype(bool)))
    own(X.assign(c=digits.astype("Int64")))
    own(X.assign(c=digits.astype(str)))
    own(X.assign(c=digits.astype(object)))
    own(X.assign(c=digits.astype("category")))
    own(X.assign(c=pd.date_range("2020-01-01", periods=120)))
    own(X.assign(c=np.array(list("xyz"))[np.arange(120) % 3]).convert_dtypes())
    own(X.assign(c=1.0, d=digits.astype(np.float32)))
    # labels of a kernel, one of which a partition lacks
    labels = np.array(list("xyz"))[np.where(np.arange(120) < 80, np.arange(120) % 2, 2)]
    kernel = 'rbf(active_dims=["a"]) * coregion(output_dim=3, active_dims=["c"])'
    own(X.assign(c=labels), kernel=kernel)
    own(X, kernel='periodic(period=6.28, base=rbf(active_dims=["a"]))', kernel_units="data")
    fails(X.assign(c=["?" if i == 5 else str(i) for i in range(120)]), "row 5, column `c`: is missing")
    fails(
        X.assign(c=pd.array([pd.NA if i == 50 else i for i in range(120)], dtype="Int64")), "input 'c' is nan"
    )
    fails(X.assign(c=[f"id{i}" for i in range(120)]), "different text in nearly every row")
    fails(pd.concat([X, X["a"]], axis=1), "several columns are called 'a'")
    fails(X.assign(c=pd.to_timedelta(np.arange(120), unit="D")), "how they are stored")


def test_targets_that_are_not_classes_are_refused():
    frame = table(60)
    model = sparsegp.GPClassifier(method="svgp", full_batch=True)
    with pytest.raises(ValueError, match="continuous"):
        shards.fit(model, sparsegp.GPClassifier, Here(parts_of(frame, INPUTS, "y", 2)))
    frame["label"] = "high"
    with pytest.raises(ValueError, match="one class only"):
        shards.fit(model, sparsegp.GPClassifier, Here(parts_of(frame, INPUTS, "label", 2)))
