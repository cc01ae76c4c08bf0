"""Counts: accidents per year in towns of many sizes; the exposure is the number of people."""

import numpy as np

from sparsegp import GPCountRegressor

rng = np.random.default_rng(0)
density = rng.uniform(0.1, 5.0, 150)  # of traffic
people = rng.uniform(1.0, 50.0, 150)  # thousands
rate = 0.5 + density**2 / 10
accidents = rng.poisson(people * rate)

model = GPCountRegressor("rbf", likelihood="poisson", n_inducing=20)
model.fit(density[:, None], accidents, exposure=people)

new = np.array([[1.0], [3.0], [4.5]])
per_thousand = model.predict(new, exposure=np.ones(3))
low, high = model.predict(new, exposure=np.full(3, 20.0), return_quantiles=[0.025, 0.975])[1].T
for x, mean, a, b in zip(new[:, 0], per_thousand, low, high):
    print(f"density {x}: {mean:.2f} a year for 1000 people; for 20 000 from {a:.0f} to {b:.0f} (95 %)")
assert np.allclose(per_thousand, 0.5 + new[:, 0] ** 2 / 10, rtol=0.15)
