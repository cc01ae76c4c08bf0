"""Estimators on Dask: the fits of one machine, to the same bits whatever happens to workers and driver."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from test_shards import INPUTS, Here, parts_of, table

import sparsegp
from sparsegp import shards

pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")

import dask  # noqa: E402
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

from sparsegp import dask as on_dask  # noqa: E402

LOOPBACK = dict(dashboard_address=None, host="127.0.0.1", processes=True, threads_per_worker=1)
# no sockets at all
WITHIN = dict(dashboard_address=None, processes=False, n_workers=1, threads_per_worker=2)


def collection(frame, count=5):
    """The same partition as :func:`parts_of`."""
    pieces = np.array_split(np.arange(len(frame)), count)
    return dd.concat([dd.from_pandas(frame.iloc[p], npartitions=1) for p in pieces])


def bits(model):
    """Everything that was learnt."""
    return {path: np.asarray(value).tobytes() for path, value in model.model_.parameters.items()}


SMALL = dict(kernel="matern52", method="titsias2025", n_inducing=20, pilot=100)


def fitted_here(frame, **settings):
    model = sparsegp.GPRegressor(**{**SMALL, **settings})
    shards.fit(model, sparsegp.GPRegressor, Here(parts_of(frame, INPUTS, "y")))
    return model


def many_processes(workers):
    return distributed.LocalCluster(n_workers=workers, **LOOPBACK)


@pytest.fixture(scope="module")
def client():
    """A scheduler and a worker in this process: quick, for what does not depend on where the rows are."""
    with distributed.LocalCluster(**WITHIN) as cluster, distributed.Client(cluster) as own:
        yield own


def test_mixed_precision_is_for_rows_in_memory(client):
    frame = table()
    rows = collection(frame)
    model = on_dask.GPRegressor(**SMALL, max_iter=2).fit(rows[INPUTS], rows["y"])
    with pytest.raises(ValueError, match="precision is for rows in memory"):
        model.predict(rows[INPUTS], return_std=True, precision="mixed")
    here = model.predict(frame[INPUTS], return_std=True, precision="mixed")
    np.testing.assert_allclose(here[1], model.predict(frame[INPUTS], return_std=True)[1], rtol=1e-2)


# -- bits ------------------------------------------------------------------------------------------


def test_the_same_bits_on_any_number_of_workers():
    frame = table()
    expected = bits(fitted_here(frame, max_iter=6))
    with many_processes(1) as cluster, distributed.Client(cluster) as own:
        # two more processes are started beside the first, which have no rows yet
        for workers in (1, 3):
            cluster.scale(workers)
            own.wait_for_workers(workers)
            rows = collection(frame)
            model = on_dask.GPRegressor(**SMALL, max_iter=6).fit(rows[INPUTS], rows["y"])
            assert len(own.run(os.getpid)) == workers
            assert bits(model) == expected, workers


def test_a_killed_worker_changes_no_bit():
    frame = table()
    expected = bits(fitted_here(frame, max_iter=8))
    killed = []
    with many_processes(2) as cluster, distributed.Client(cluster) as own:
        rows = collection(frame)

        def kill(event):
            if event["event"] == "iteration" and event["iteration"] == 3 and not killed:
                killed.extend(own.run(os.getpid).values())
                os.kill(killed[0], signal.SIGKILL)

        model = on_dask.GPRegressor(**SMALL, max_iter=8, callback=kill).fit(rows[INPUTS], rows["y"])
        assert len(killed) == 2 and killed[0] not in own.run(os.getpid).values()
    assert bits(model) == expected


DRIVER = """
    import os, signal, sys
    import distributed
    sys.path.insert(0, {tests!r})
    from test_dask import SMALL, WITHIN, INPUTS, collection, table
    from sparsegp.dask import GPRegressor

    def kill(event):
        if event["event"] == "iteration" and event["iteration"] == 6:
            os.kill(os.getpid(), signal.SIGKILL)

    if __name__ == "__main__":
        with distributed.LocalCluster(**WITHIN) as cluster, distributed.Client(cluster):
            rows = collection(table())
            GPRegressor(**SMALL, max_iter=9, checkpoint={file!r}, callback=kill).fit(rows[INPUTS], rows["y"])
"""


def test_a_killed_driver_resumes_elsewhere(tmp_path, client):
    """Stopped on these workers, resumed by a driver that is killed, ended without any cluster."""
    frame, file = table(), str(tmp_path / "run.ckpt")
    expected = bits(fitted_here(frame, max_iter=9))
    rows = collection(frame)

    def stop(event):
        return event["event"] == "iteration" and event["iteration"] == 4

    on_dask.GPRegressor(**SMALL, max_iter=9, checkpoint=file, callback=stop).fit(rows[INPUTS], rows["y"])
    script = textwrap.dedent(DRIVER).format(tests=os.path.dirname(__file__), file=file)
    path = tmp_path / "driver.py"
    path.write_text(script)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=100)
    assert done.returncode == -signal.SIGKILL, done.stderr
    resumed = fitted_here(frame, max_iter=9, checkpoint=file)
    assert resumed.trace_["iteration"][-1] == 9
    assert bits(resumed) == expected
    # another partition of the same rows is another training
    other = sparsegp.GPRegressor(**SMALL, max_iter=9, checkpoint=file)
    with pytest.raises(ValueError, match="not a checkpoint of this training"):
        shards.fit(other, sparsegp.GPRegressor, Here(parts_of(frame, INPUTS, "y", count=3)))


# -- the same as on one machine --------------------------------------------------------------------


def test_a_fit_is_that_of_one_machine(client):
    frame = table(2500)
    settings = dict(kernel="matern52", n_inducing=25, pilot=200)
    local = sparsegp.GPRegressor(**settings).fit(frame[INPUTS], frame["y"])
    rows = collection(frame)
    model = on_dask.GPRegressor(**settings).fit(rows[INPUTS], rows["y"])
    assert model.method_ == local.method_ == "titsias2025"
    assert list(model.feature_names_in_) == INPUTS
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-5)
    mean, std = model.predict(rows[INPUTS], return_std=True)
    own = model.to_local()
    assert type(own) is sparsegp.GPRegressor
    expected = own.predict(frame[INPUTS], return_std=True)
    np.testing.assert_allclose(mean.compute(), expected[0], rtol=1e-12)
    np.testing.assert_allclose(std.compute(), expected[1], rtol=1e-12)
    np.testing.assert_allclose(expected[0], local.predict(frame[INPUTS]), rtol=1e-3)
    assert list(mean.compute().index) == list(frame.index)
    score = own.score(frame[INPUTS], frame["y"])
    np.testing.assert_allclose(model.score(rows[INPUTS], rows["y"]), score, rtol=1e-12)
    density = model.log_predictive_density(rows[INPUTS], rows["y"]).compute()
    np.testing.assert_allclose(
        density, own.log_predictive_density(frame[INPUTS], frame["y"].to_numpy()), rtol=1e-12
    )
    # rows in memory are predicted at once
    np.testing.assert_array_equal(model.predict(frame[INPUTS]), expected[0])
    # pickled without its client
    model.client = client
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame[INPUTS]), expected[0])


def test_parquet_is_read_where_it_is(client, tmp_path):
    """Row groups are the partition, whatever columns are read of them."""
    pytest.importorskip("pyarrow")
    frame = table(1000)
    frame["weight"] = 1.0
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    rows = dd.read_parquet(tmp_path / "rows.parquet", split_row_groups=True)
    settings = dict(method="svgp", full_batch=True, n_inducing=10, max_iter=3, pilot=0)
    model = on_dask.GPRegressor(**settings).fit(rows[INPUTS], rows["y"], sample_weight=rows["weight"])
    here = sparsegp.GPRegressor(**settings)
    parts = parts_of(frame, INPUTS, "y", 5, sample_weight=frame["weight"])
    shards.fit(here, sparsegp.GPRegressor, Here(parts))
    assert bits(model) == bits(here)
    found = model.predict(rows[INPUTS]).compute()
    np.testing.assert_allclose(found, here.predict(frame[INPUTS]), rtol=1e-12)
    score = model.score(rows[INPUTS], rows["y"], sample_weight=rows["weight"])
    assert score == pytest.approx(here.score(frame[INPUTS], frame["y"]), rel=1e-12)


def test_minibatches_are_those_of_one_machine(client):
    frame = table(900)
    settings = dict(method="svgp", n_inducing=15, epochs=3, batch_size=200, pilot=0)
    rows = collection(frame, 4)
    model = on_dask.GPCountRegressor(**settings).fit(rows[INPUTS], rows["count"])
    local = sparsegp.GPCountRegressor(**settings).fit(frame[INPUTS], frame["count"])
    found, expected = model.predict(frame[INPUTS]), local.predict(frame[INPUTS])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_texts_and_labels_that_only_one_partition_has(client):
    frame = table(600)
    frame["colour"] = np.where(np.arange(600) < 500, "red", "green")
    frame.loc[590:, "colour"] = "blue"
    frame.loc[:20, "label"] = "none"
    inputs = ["a", "colour"]
    rows = collection(frame, 6)
    settings = dict(method="tsvgp", full_batch=True, n_inducing=15, max_iter=5, pilot=40)
    model = on_dask.GPClassifier(**settings).fit(rows[inputs], rows["label"])
    local = sparsegp.GPClassifier(**settings).fit(frame[inputs], frame["label"])
    assert (
        list(model.feature_names_in_)
        == list(local.feature_names_in_)
        == [
            "a",
            "colour=blue",
            "colour=green",
            "colour=red",
        ]
    )
    assert list(model.classes_) == list(local.classes_) == ["high", "low", "none"]
    found = model.predict_proba(rows[inputs]).compute()
    np.testing.assert_allclose(found, local.predict_proba(frame[inputs]), atol=1e-4)
    assert list(found.columns) == ["high", "low", "none"]
    labels = model.predict(rows[inputs]).compute()
    assert list(labels) == list(model.to_local().predict(frame[inputs]))
    expected = model.to_local().score(frame[inputs], frame["label"])
    assert model.score(rows[inputs], rows["label"]) == pytest.approx(expected, rel=1e-12)


def test_every_estimator_on_arrays_and_parts(client):
    frame = table(400)
    X = da.from_array(frame[INPUTS].to_numpy().astype(np.float32), chunks=(150, 1))
    few = dict(n_inducing=10, max_iter=3, pilot=0, full_batch=True)
    exposure = da.from_array(1.0 + np.arange(400) % 3, chunks=150)
    count = da.from_array(frame["count"].to_numpy(), chunks=150)
    model = on_dask.GPCountRegressor(method="tsvgp", **few).fit(X, count, exposure=exposure)
    mean = model.predict(X, exposure=exposure)
    assert mean.shape == (400,) and (mean.compute() > 0).all()
    y = da.from_array(frame["y"].to_numpy(), chunks=150)
    weight = da.from_array(1.0 + np.arange(400) % 2, chunks=150)
    for cls in (on_dask.RobustGPRegressor, on_dask.HeteroscedasticGPRegressor):
        own = cls(method="tsvgp", **few).fit(X, y, sample_weight=weight)
        mean, std, quantiles = own.predict(X, return_std=True, return_quantiles=[0.1, 0.9])
        assert quantiles.shape == (400, 2)
        found = dask.compute(mean, std, quantiles)
        assert all(np.isfinite(values).all() for values in found)
    two = da.stack([y, 2 * y + 1], axis=1).rechunk((150, 2))
    both = on_dask.GPRegressor(method="titsias2009", n_inducing=10, max_iter=3, pilot=0).fit(X, two)
    assert both.predict(X).compute().shape == (400, 2)
    assert both.score(X, two) > 0
    # a list of delayed frames, of which one is empty
    pieces = [frame[:200], frame[:0], frame[200:].astype({"count": np.int32})]
    inputs = [dask.delayed(piece[INPUTS]) for piece in pieces]
    targets = [dask.delayed(piece["y"]) for piece in pieces]
    listed = on_dask.GPRegressor(**SMALL, max_iter=3).fit(inputs, targets)
    means = dask.compute(*listed.predict(inputs))
    assert [len(part) for part in means] == [200, 0, 200]


# -- errors ----------------------------------------------------------------------------------------


def broken():
    raise OSError("the disk is gone")


def test_errors_name_the_partition(client):
    frame = table(300)
    settings = dict(method="titsias2009", n_inducing=5, max_iter=2, pilot=0)

    def fails(pieces, words, cls=on_dask.GPRegressor, target="y", **more):
        inputs = [dask.delayed(p[INPUTS]) if p is not None else dask.delayed(broken)() for p in pieces]
        targets = [dask.delayed(p[target]) if p is not None else dask.delayed(broken)() for p in pieces]
        with pytest.raises((ValueError, RuntimeError), match=words):
            cls(**{**settings, **more}).fit(inputs, targets)

    first, second = frame[:150], frame[150:]
    fails([first, None], "partition 1: the disk is gone")
    fails([first, second.assign(a=[np.nan] + [1.0] * 149)], "partition 1: row 0, input 'a' is nan")
    fails([first, second.assign(y=np.inf)], "partition 1: row 0, target .* is inf")
    fails([first, second.assign(a="x")], "holds numbers in partition 0, and texts or dates in partition 1")
    fails([first[:0], second[:0]], "all partitions are empty")
    swapped = [dask.delayed(first[INPUTS]), dask.delayed(second[INPUTS[::-1]])]
    with pytest.raises(ValueError, match=r"partition 1 has the columns \['b', 'a'\]"):
        on_dask.GPRegressor(**settings).fit(swapped, [dask.delayed(first["y"]), dask.delayed(second["y"])])
    counts = dict(cls=on_dask.GPCountRegressor, target="count", method="tsvgp", full_batch=True)
    fails([first, second.assign(count=-2)], "partition 1: y holds -2", **counts)
    fails([first, second.assign(label=1)], "texts in some partitions", on_dask.GPClassifier, "label")
    fails([first, second], "needs all of them at once", method="exact")
    fails([first, second], "early_stopping", early_stopping=0.1)


def test_what_is_not_there_is_said(client):
    frame = table(60)
    rows = collection(frame, 3)
    with pytest.raises(TypeError, match="estimators of `sparsegp`"):
        on_dask.GPRegressor().fit(frame[INPUTS], frame["y"])
    with pytest.raises(ValueError, match="3 partitions, and y 2"):
        on_dask.GPRegressor().fit(rows[INPUTS], dd.from_pandas(frame["y"], npartitions=2))
    for name in ("partial_fit", "update", "loo", "fit_file"):
        with pytest.raises(NotImplementedError, match="machine"):
            getattr(on_dask.GPRegressor(), name)(rows, rows)
    part = shards.Part(frame[INPUTS], frame["y"])
    with pytest.raises(ValueError, match="install the same release"):
        shards.survey(part, sparsegp.GPRegressor, "0.0.0")


def test_a_request_that_was_lost_is_sent_again(client):
    """A request that only one worker had goes with it: the round is repeated, and a round that is always lost ends."""
    from sparsegp.dask._partitions import Partitions

    class Losing(Partitions):
        left = 1

        def _result(self, future):
            if self.left > 0:
                self.left -= 1
                future.cancel()
            return super()._result(future)

    frame = table(300)
    expected = sparsegp.GPRegressor(**SMALL, max_iter=2)
    shards.fit(expected, sparsegp.GPRegressor, Here(parts_of(frame, INPUTS, "y", 2)))
    parts = [dask.delayed(part) for part in parts_of(frame, INPUTS, "y", 2)]
    model = sparsegp.GPRegressor(**SMALL, max_iter=2)
    shards.fit(model, sparsegp.GPRegressor, Losing(client, parts))
    assert bits(model) == bits(expected)
    always = Losing(client, parts)
    always.left = 10**9
    with pytest.raises(RuntimeError, match="lost 3 times"):
        shards.fit(model, sparsegp.GPRegressor, always)
