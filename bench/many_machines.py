"""Rows on many machines: what a round costs, the rate of several workers against one process, minibatches of shipped rows.

    scripts/python-env .venv && .venv/bin/pip install 'dask[dataframe]' distributed psutil
    .venv/bin/python bench/many_machines.py [round] [rate] [batches] [--rows 10000000]

Schedulers and workers are processes of this machine, on its loopback: relations count, not milliseconds. A round of many shards is
simulated by shards of a few rows, so that it is only messages and sums.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from distributed import Client, LocalCluster

from sparsegp import GPCountRegressor, GPRegressor, _core, shards
from sparsegp.dask import GPCountRegressor as DaskGPCountRegressor
from sparsegp.dask._partitions import Partitions

D = 8


class Here:
    """Partitions in this process, which keeps the requests."""

    def __init__(self, parts):
        self.parts, self.requests = parts, []

    def count(self):
        return len(self.parts)

    def ask(self, function, arguments):
        return [function(part, *own) for part, own in zip(self.parts, arguments)]

    def keep(self, function, arguments):
        self.shards = [function(self.parts[i], *arguments[i]) for i in sorted(arguments)]

    def ask_shards(self, function, *arguments):
        return [function(shard, *arguments) for shard in self.shards]

    def change(self, function, arguments):
        self.shards = [function(shard, *own) for shard, own in zip(self.shards, arguments)]

    def round(self, request):
        self.requests.append(request)
        return shards.total([shard.answer(request) for shard in self.shards])

    def take(self, wanted):
        return np.concatenate([self.shards[i].take(places) for i, places in wanted])


def rows(count, seed=0):
    """Rows on the model's scale."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, D))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(count)


def requests(points):
    """The two requests of an evaluation of the bound of 2025 with so many inducing points."""
    here = Here([shards.Part(*rows(max(2500, 2 * points)))])
    model = GPRegressor("matern52", method="titsias2025", n_inducing=points, max_iter=1, pilot=0)
    shards.fit(model, GPRegressor, here)
    large = [request for request in here.requests if len(request) > 4 * points * points]
    # without q and with it
    return min(large, key=len), max(large, key=len)


def make(seed, count, index):
    X, y = rows(count, seed)
    return _core.Shard(X, y[:, None], index=index)


class Made(Partitions):
    """Shards that the workers make themselves."""

    def __init__(self, client, count, each):
        super().__init__(client, [])
        self.shards = [self._submitted(make, "made", i, each, i) for i in range(count)]
        self.indices = list(range(count))
        self._settle()


def median_of(work, times):
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def cluster(workers):
    return LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)


def rounds():
    print(
        "| workers | shards | M | request | answer | round, ms | of it sums and messages |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for points, counts in ((256, (4, 16, 256, 1024)), (1024, (4, 16))):
        first, second = requests(points)
        with cluster(4) as own, Client(own) as client:
            for count in counts:
                partitions = Made(client, count, 16)
                answer = partitions.round(first)
                _core.set_num_threads(1)
                single = make(0, 16, 0)
                work = median_of(lambda: single.answer(first), 5)  # noqa: B023
                took = median_of(lambda: partitions.round(first), 9)  # noqa: B023
                print(
                    f"| 4 | {count} | {points} | {len(first) / 1e6:.2f} MB | {answer.nbytes / 1e6:.2f} MB | "
                    f"{1e3 * took:.0f} | {1e3 * (took - work * count / 2):.0f} |",
                    flush=True,
                )


def rate(total):
    points = 128
    pair = requests(points)
    shards_of_each = 4
    print(f"{total} rows, M = {points}: an evaluation, s (medians of 3, in turn)")
    each = total // (2 * shards_of_each)
    with cluster(2) as own, Client(own) as client:
        partitions = Made(client, 2 * shards_of_each, each)
        both = median_of(lambda: [partitions.round(request) for request in pair], 3)
        # what messages and sums cost beside the rows
        memory = client.run(resident)
    _core.set_num_threads(2)
    single = make(0, each * 2 * shards_of_each, 0)
    one = median_of(lambda: [single.answer(request) for request in pair], 3)
    print(
        "| two workers of a thread | a process of two threads | rate | memory of a worker |\n| --- | --- | --- | --- |"
    )
    print(f"| {both:.2f} | {one:.2f} | {100 * one / both:.0f} % | {max(memory.values()) / 1e9:.2f} GB |")


def resident():
    import psutil

    return psutil.Process().memory_info().rss


def batches():
    import dask.array as da

    X, y = rows(200_000)
    counts = np.random.default_rng(1).poisson(np.exp(y))
    settings = dict(method="svgp", n_inducing=100, epochs=3, pilot=0)
    print("| minibatches of 1024 rows, M = 100 | steps/s |\n| --- | --- |")
    _core.set_num_threads(1)
    steps = 3 * -(-len(X) // 1024)
    with cluster(2) as own, Client(own):
        inputs, targets = da.from_array(X, chunks=(50_000, D)), da.from_array(counts, chunks=50_000)
        for name, fit in (
            ("local", lambda: GPCountRegressor(**settings).fit(X, counts)),
            ("rows from 4 shards on 2 workers", lambda: DaskGPCountRegressor(**settings).fit(inputs, targets)),
        ):
            found = []
            for _ in range(3):
                model = fit()
                # of only the training: the shards are made before
                seconds = model.trace_["seconds"]
                found.append((steps - steps // 3) / (seconds[-1] - seconds[0]))
            print(f"| {name} | {statistics.median(found):.0f} |", flush=True)
    print(f"bytes of a step: {1024 * (D + 1) * 8}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["round", "rate", "batches"])
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    for what in options.what:
        {"round": rounds, "rate": lambda: rate(options.rows), "batches": batches}[what]()
