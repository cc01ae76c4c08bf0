"""A series: trend, season and noise; a forecast of half a year with its interval, and the parts."""

import numpy as np
import pandas as pd

from sparsegp import GPRegressor

days = pd.date_range("2021-01-01", periods=3 * 365, freq="D")
t = np.arange(len(days))
rng = np.random.default_rng(0)
sales = 100 + 0.02 * t + 10 * np.sin(2 * np.pi * t / 365.25) + 2 * rng.standard_normal(len(t))

# dates are days to a kernel; the period is in the units of the data
kernel = "matern52 + linear + periodic(period={value: 365.25, frozen: true})"
model = GPRegressor(kernel, kernel_units="data", method="markov", max_iter=30)
model.fit(pd.DataFrame({"day": days}), sales)

later = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=180, freq="D")})
mean, bounds = model.predict(later, return_quantiles=[0.025, 0.975])
truth = 100 + 0.02 * (len(t) + np.arange(180)) + 10 * np.sin(2 * np.pi * (len(t) + np.arange(180)) / 365.25)
for i in range(0, 180, 30):
    print(f"{later['day'][i]:%Y-%m-%d}  {mean[i]:6.1f}  ({bounds[i, 0]:.1f} to {bounds[i, 1]:.1f})")
assert np.abs(mean - truth).max() < 4.0

parts = model.predict_terms(later)
print("parts on the first day:", {name: round(float(part[0][0]), 1) for name, part in parts.items()})
