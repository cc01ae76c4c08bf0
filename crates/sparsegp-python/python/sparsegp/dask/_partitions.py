"""Partitions as futures of Dask: shards that are made again where a worker is lost, and rounds of requests to them."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any, Callable, Optional

import numpy as np
from distributed import Client, KilledWorker, get_worker, wait
from numpy.typing import NDArray

from .. import _core
from .._arrays import Array
from .._progress import Progress

# bytes of a request that go with every task; larger ones are put on a worker first
_SMALL = 1 << 16
# answers that one task adds up: an aligned run of the tree over all of them
_TOGETHER = 8
# times that a round is tried
_TRIES = 3

_numbers = itertools.count()
_session = uuid.uuid4().hex


def _key(what: str) -> str:
    """Names a task as none before, of any driver."""
    return f"sparsegp-{what}-{_session}-{next(_numbers)}"


# -- what workers do -------------------------------------------------------------------------------


def take_threads() -> None:
    """Gives the core the threads of this worker, once."""
    try:
        threads = get_worker().state.nthreads
    except (AttributeError, ValueError):
        return
    if _core.num_threads() != threads:
        _core.set_num_threads(threads)


def _answer(shard: _core.Shard, request: bytes) -> Array:
    take_threads()
    return shard.answer(request)


def _total(answers: list[Array]) -> Array:
    return _core.total(answers)


def _take(shard: _core.Shard, places: NDArray[np.int64]) -> Array:
    return shard.take(places)


# -- partitions ------------------------------------------------------------------------------------


class _Lost(Exception):
    """A round whose request or answers went with a worker."""


class Partitions:
    """Partitions that are futures; what is lost with a worker is made again from the user's collection."""

    def __init__(self, client: Client, parts: Sequence[Any]) -> None:
        self.client = client
        self.parts: list[Any] = client.compute(list(parts))
        self.shards: list[Any] = []
        self.indices: list[int] = []

    def count(self) -> int:
        return len(self.parts)

    def _gathered(self, futures: list[Any], indices: Sequence[int]) -> list[Any]:
        """The results of futures; the first error names its partition."""
        wait(futures)
        for future, index in zip(futures, indices):
            if future.status == "error":
                cause = future.exception()
                text = str(cause) or type(cause).__name__
                if isinstance(cause, KilledWorker):
                    text = f"every worker that took it died (too little memory?): {text}"
                named = text if text.startswith("partition ") else f"partition {index}: {text}"
                kind = type(cause) if isinstance(cause, ValueError) else RuntimeError
                raise kind(named) from cause
        return list(self.client.gather(futures))

    def _submitted(self, function: Callable[..., Any], what: str, *arguments: Any) -> Any:
        return self.client.submit(function, *arguments, key=_key(what), pure=False)

    def ask(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        futures = [self._submitted(function, "survey", p, *own) for p, own in zip(self.parts, arguments)]
        return self._gathered(futures, range(len(futures)))

    def keep(self, function: Callable[..., Any], arguments: dict[int, tuple[Any, ...]]) -> None:
        self.indices = sorted(arguments)
        self.shards = [self._submitted(function, "shard", self.parts[i], *arguments[i]) for i in self.indices]
        self._settle()
        self.parts = []

    def _settle(self) -> None:
        """Waits for the shards; an error names the partition."""
        wait(self.shards)
        failed = [(f, i) for f, i in zip(self.shards, self.indices) if f.status == "error"]
        if failed:
            self._gathered([failed[0][0]], [failed[0][1]])

    def ask_shards(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        futures = [self._submitted(function, "look", shard, *arguments) for shard in self.shards]
        return self._gathered(futures, self.indices)

    def change(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
        self.shards = [self._submitted(function, "rows", s, *own) for s, own in zip(self.shards, arguments)]
        self._settle()

    def _again(self, work: Callable[[], Array]) -> Array:
        """Does some work again where a worker took a message with it."""
        lost: Optional[BaseException] = None
        for _ in range(_TRIES):
            try:
                return work()
            except (_Lost, CancelledError) as error:
                lost = error
        raise RuntimeError(
            f"a round was lost {_TRIES} times: rows that only a worker had, which is gone, cannot be read again; make "
            "the collection from files, or persist it on more workers"
        ) from lost

    def _result(self, future: Any) -> Any:
        wait([future])
        if future.status in ("cancelled", "lost"):
            raise _Lost
        if future.status == "error":
            cause = future.exception()
            # a message that is gone is an error of whoever waits for it
            if type(cause).__name__ in ("CancelledError", "FutureCancelledError", "FuturesCancelledError"):
                raise _Lost from cause
            raise cause
        return future.result()

    def round(self, request: bytes) -> Array:
        def once() -> Array:
            sent: Any = request
            if len(request) > _SMALL:
                sent = self.client.scatter(request, hash=False, broadcast=False)
            answers = [self._submitted(_answer, "answer", shard, sent) for shard in self.shards]
            while len(answers) > 1:
                runs = range(0, len(answers), _TOGETHER)
                answers = [self._submitted(_total, "sum", answers[i : i + _TOGETHER]) for i in runs]
            found: Array = self._result(answers[0])
            return found

        return self._again(once)

    def take(self, wanted: list[tuple[int, NDArray[np.int64]]]) -> Array:
        def once() -> Array:
            futures = [self._submitted(_take, "take", self.shards[i], places) for i, places in wanted]
            return np.concatenate([self._result(future) for future in futures])

        return self._again(once)


class WorkersProgress(Progress):
    """Progress that says how many workers there are."""

    def __init__(
        self, iterations: int, batch_size: int, partitions: Partitions, time_limit: Optional[float] = None
    ) -> None:
        super().__init__(iterations, batch_size, time_limit=time_limit)
        self.partitions = partitions

    def _write(self, text: str, due: bool = False) -> None:
        workers = len(self.partitions.client.scheduler_info(n_workers=-1)["workers"])
        super()._write(f"{text}; {len(self.partitions.shards)} shards on {workers} workers", due)
