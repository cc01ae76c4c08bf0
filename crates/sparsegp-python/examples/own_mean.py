"""A mean function of your own: a physical law with unknown constants, and a Gaussian process for what it misses."""

import numpy as np

from sparsegp import GPRegressor, means, testing


class Cooling(means.Custom):
    """Newton's law: temperature over time falls to that of the room."""

    real = {"room": 15.0, "excess": 50.0}
    positive = {"rate": 0.2}

    def value(self, X, room, excess, rate):
        return room + excess * np.exp(-rate * X[:, 0])

    # without it slopes are differences
    def gradients(self, G, X, room, excess, rate):
        decay = np.exp(-rate * X[:, 0])
        return {
            "room": G.sum(),
            "excess": G @ decay,
            "rate": -excess * (G * X[:, 0]) @ decay,
            "X": (-excess * rate * G * decay)[:, None],
        }


testing.check_mean(Cooling(room=2.5, excess=-3.0, rate=0.4), np.linspace(-1, 3, 6)[:, None])

rng = np.random.default_rng(0)
X = np.linspace(0, 10, 60)[:, None]


def truth(t):
    return 21 + 64 * np.exp(-0.31 * t)


y = truth(X[:, 0]) + 0.2 * rng.normal(size=60)

# a law in the units of the data: neither inputs nor targets are scaled
model = GPRegressor("rbf", mean=Cooling(), standardise=False).fit(X, y)
print(model.summary())
found = model.predict([[25.0]])[0]
print(f"after 25 minutes {found:.2f}, and truly {truth(25.0):.2f}")
assert abs(found - truth(25.0)) < 1.0
