"""A fit on Spark: `mapPartitions` makes the shards, `treeReduce` adds their answers; `Sum` gives the same bits in any order.

pip install pyspark; python docs/recipes/spark_fit.py     # Spark needs Java
"""

import operator
import os
import sys

import numpy as np

from sparsegp import GPRegressor, shards


class OnSpark:
    """Parts in an RDD of pairs (index, part). What an executor loses, Spark makes again."""

    def __init__(self, context, parts):
        self.context, self.rows = context, parts.cache()

    def count(self):
        return self.rows.count()

    def ask(self, function, arguments):
        found = dict(self.rows.map(lambda own: (own[0], function(own[1], *arguments[own[0]]))).collect())
        return [found[i] for i in sorted(found)]

    def keep(self, function, arguments):
        place = {i: at for at, i in enumerate(sorted(arguments))}
        kept = self.rows.filter(lambda own: own[0] in place)
        self.rows = kept.map(lambda own: (place[own[0]], function(own[1], *arguments[own[0]]))).cache()

    def change(self, function, arguments):
        self.rows = self.rows.map(lambda own: (own[0], function(own[1], *arguments[own[0]]))).cache()

    def ask_shards(self, function, *arguments):
        return self.ask(function, [arguments] * self.count())

    def round(self, request):
        sent, count = self.context.broadcast(request), self.count()
        sums = self.rows.map(lambda own: shards.Sum(own[0], own[1].answer(sent.value), count))
        return sums.treeReduce(operator.add).value()

    def take(self, wanted):
        of = dict(wanted)
        holders = self.rows.filter(lambda own: own[0] in of)
        found = dict(holders.map(lambda own: (own[0], own[1].take(of[own[0]]))).collect())
        return np.concatenate([found[i] for i, _ in wanted])


def part_of(index, rows):
    """The rows of a partition of a frame as one part; its last column is the target."""
    table = np.array([list(row) for row in rows], dtype=float).reshape(-1, 3)
    yield index, shards.Part(table[:, :-1], table[:, -1])


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    X = np.random.default_rng(0).uniform(0, 10, (20_000, 2))
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.1 * np.random.default_rng(1).standard_normal(len(X))
    frame = spark.createDataFrame([(float(a), float(b), float(c)) for (a, b), c in zip(X, y)], ["a", "b", "y"])
    parts = frame.rdd.repartition(4).mapPartitionsWithIndex(part_of)
    model = GPRegressor("matern52", method="titsias2025", n_inducing=50, max_iter=20)
    shards.fit(model, GPRegressor, OnSpark(spark.sparkContext, parts))
    print(f"R² {model.score(X, y):.3f}")
