"""The quick-start: ``python -m sparsegp`` fits a small real data set, judges it, saves it and draws it."""

from __future__ import annotations

import gzip
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

NAMES = ["frequency", "angle", "chord", "velocity", "thickness"]


def airfoil() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Noise of airfoil sections in a wind tunnel: 1503 rows of 5 inputs, and the sound pressure in dB, all centred.
    Brooks, Pope & Marcolini (NASA, 1989), UCI Machine Learning Repository, CC BY 4.0."""
    with gzip.open(Path(__file__).parent / "data" / "airfoil.csv.gz", "rt") as file:
        rows = np.loadtxt(file, delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1]


def main() -> None:
    """Runs it; files go to a new folder."""
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import train_test_split

    import sparsegp
    from sparsegp import GPRegressor

    X, y = airfoil()
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    print("Noise of airfoil sections in a wind tunnel: dB from " + ", ".join(NAMES) + "\n")
    start = time.perf_counter()
    model = GPRegressor("matern52").fit(train, y_train)
    seconds = time.perf_counter() - start
    print(f"GPRegressor('matern52').fit(X, y) on {len(train)} rows: {seconds:.1f} s\n")
    print(model.summary(), "\n")
    mean, bounds = model.predict(test, return_quantiles=[0.025, 0.975])
    inside = np.mean((bounds[:, 0] <= y_test) & (y_test <= bounds[:, 1]))
    linear = LinearRegression().fit(train, y_train)
    print(f"on {len(test)} rows held out")
    print(f"  R²                          {model.score(test, y_test):.3f}")
    print(f"  R² of a linear regression   {linear.score(test, y_test):.3f}")
    print(f"  in the 95 % interval        {100 * inside:.0f} %")
    print(f"  mean log density            {model.log_predictive_density(test, y_test).mean():.3f}\n")
    folder = Path(tempfile.mkdtemp(prefix="sparsegp-"))
    file = folder / "airfoil.safetensors"
    model.save(file)
    assert np.array_equal(sparsegp.load(file).predict(test), mean)
    print(f"model saved to   {file}  (the command line reads it too)")
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError:
        print('for pictures: pip install "sparsegp[plot]"')
        return
    from sparsegp.plotting import plot_calibration

    axes = plot_calibration(model, test, y_test)
    axes.figure.savefig(folder / "calibration.png", dpi=120)
    print(f"picture          {folder / 'calibration.png'}")


if __name__ == "__main__":
    main()
