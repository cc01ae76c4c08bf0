"""A fit on Ray: an actor for every partition; `Sum` adds answers in the order in which they come, to the same bits.

pip install ray; python docs/recipes/ray_fit.py
"""

import numpy as np
import ray

from sparsegp import GPRegressor, shards


@ray.remote(max_restarts=0)
class Holder:
    """A partition, and the shard that it becomes. Where actors may die, make the part here from its file."""

    def __init__(self, part):
        self.own = part

    def ask(self, function, *arguments):
        return function(self.own, *arguments)

    def change(self, function, *arguments):
        self.own = function(self.own, *arguments)

    def answer(self, request, index, count):
        return shards.Sum(index, self.own.answer(request), count)


class OnRay:
    def __init__(self, parts):
        self.holders = [Holder.remote(part) for part in parts]

    def count(self):
        return len(self.holders)

    def ask(self, function, arguments):
        return ray.get([holder.ask.remote(function, *own) for holder, own in zip(self.holders, arguments)])

    def change(self, function, arguments):
        ray.get([holder.change.remote(function, *own) for holder, own in zip(self.holders, arguments)])

    def keep(self, function, arguments):
        self.holders = [self.holders[i] for i in sorted(arguments)]
        self.change(function, [arguments[i] for i in sorted(arguments)])

    def ask_shards(self, function, *arguments):
        return self.ask(function, [arguments] * self.count())

    def round(self, request):
        sent, count = ray.put(request), self.count()
        waiting = [holder.answer.remote(sent, i, count) for i, holder in enumerate(self.holders)]
        total = None
        while waiting:
            [done], waiting = ray.wait(waiting)
            total = ray.get(done) if total is None else total + ray.get(done)
        return total.value()

    def take(self, wanted):
        rows = [self.holders[i].ask.remote(shards.Shard.take, places) for i, places in wanted]
        return np.concatenate(ray.get(rows))


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    X = np.random.default_rng(0).uniform(0, 10, (20_000, 2))
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.1 * np.random.default_rng(1).standard_normal(len(X))
    parts = [shards.Part(X[i : i + 5000], y[i : i + 5000]) for i in range(0, len(X), 5000)]
    model = GPRegressor("matern52", method="titsias2025", n_inducing=50, max_iter=20)
    shards.fit(model, GPRegressor, OnRay(parts))
    print(f"R² {model.score(X, y):.3f}")
