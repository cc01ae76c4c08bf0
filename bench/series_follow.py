"""Cost of `sparsegp follow` on a series (`--method markov`): seconds, memory and bytes of the model over rows of the stream.

    cargo build --bin sparsegp && python bench/series_follow.py
    python bench/series_follow.py --rows 10000 100000 --kernel "matern52 + periodic" --keep-rows all

Every run is a separate process, whose peak resident memory the system counts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path

FIRST = 2000


def write(folder: Path, rows: int) -> None:
    """Writes the rows of the fit, `first.csv`, and those of the stream, `rows.csv`: a wave with noise at uneven times."""
    draw, t = random.Random(1), 0.0
    with open(folder / "first.csv", "w") as first, open(folder / "rows.csv", "w") as rest:
        for file in (first, rest):
            file.write("t,y\n")
        for i in range(FIRST + rows):
            t += 0.05 + 0.1 * draw.random()
            y = math.sin(0.3 * t) + 0.3 * draw.gauss(0, 1)
            (first if i < FIRST else rest).write(f"{t:.5f},{y:.5f}\n")


def timed(command: list[str], folder: Path) -> tuple[dict, float, float]:
    """Returns what a command replied, its seconds and its highest resident memory in MB."""
    begun = time.perf_counter()
    with open(folder / "reply.json", "w") as reply, open(os.devnull, "w") as nothing:
        child = subprocess.Popen(command, cwd=folder, stdout=reply, stderr=nothing)
        _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)} ended with status {status}")
    spent = time.perf_counter() - begun
    return json.loads((folder / "reply.json").read_text()), spent, usage.ru_maxrss / 1024


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/debug/sparsegp")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--kernel", default="matern32")
    parser.add_argument("--keep-rows", nargs="+", default=["1000", "10000"])
    parser.add_argument("--batch", default="100")
    args = parser.parse_args()
    program = str(Path(args.program).resolve())
    print("| rows | kept | seconds | µs a row | memory, MB | model, kB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for rows in args.rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, rows)
            fit = [program, "--json", "fit", "first.csv", "--target", "y", "--method", "markov"]
            timed([*fit, "--kernel", args.kernel, "-o", "model.safetensors"], folder)
            for keep in args.keep_rows:
                follow = [program, "--json", "follow", "model.safetensors", "rows.csv"]
                options = ["--keep-rows", keep, "--batch", args.batch, "-o", "after.safetensors"]
                report, spent, memory = timed([*follow, *options], folder)
                assert report["rows"] == rows
                size = (folder / "after.safetensors").stat().st_size / 1024
                each = 1e6 * spent / rows
                print(f"| {rows} | {keep} | {spent:.2f} | {each:.1f} | {memory:.1f} | {size:.0f} |", flush=True)


if __name__ == "__main__":
    main()
