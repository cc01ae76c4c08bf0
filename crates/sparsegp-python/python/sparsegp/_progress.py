"""One line that tells how far a training is: in terminals and notebooks it is rewritten, elsewhere lines
are printed now and then."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable, Optional, TextIO

Callback = Callable[[dict[str, Any]], Optional[bool]]


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "under 1 s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _rewritable(stream: TextIO) -> bool:
    if hasattr(stream, "isatty") and stream.isatty():
        return True
    return type(stream).__module__.split(".")[0] == "ipykernel"


class Progress:
    """Shows events of a training.

    Parameters
    ----------
    iterations : int
        Most iterations on all rows at once.
    batch_size : int
        Rows of a minibatch.
    time_limit : float, optional
        Seconds after which it ends.
    """

    def __init__(
        self,
        iterations: int,
        batch_size: int = 0,
        stream: Optional[TextIO] = None,
        time_limit: Optional[float] = None,
    ) -> None:
        self.deadline = None if time_limit is None else time.perf_counter() + time_limit
        self.iterations, self.batch_size = iterations, batch_size
        self.stream = sys.stderr if stream is None else stream
        self.rewritable = _rewritable(self.stream)
        self.width = 0
        self.last = 0.0
        self.first: Optional[tuple[float, int]] = None
        self.held_out = ""

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "pilot":
            self._write(f"starting values: exact inference on {event['rows']} rows")
        elif kind == "kernels":
            self._write(f"judging kernels on {event['rows']} rows")
        elif kind == "restart":
            best = "" if event["best"] is None else f", best objective so far {event['best']:.7g}"
            self.first, self.held_out = None, ""
            self._write(f"restart {event['restart']} of {event['restarts']}{best}")
        elif kind == "checkpoint_failed":
            self._write(event["reason"])
        elif kind == "inducing":
            self._write(f"choosing {event['count']} inducing points")
        elif kind == "neighbours":
            self._write(f"comparing inducing points with neighbours on {event['rows']} rows")
        elif kind == "iteration" and self.first is not None:
            if event["held_out"] is not None:
                self.held_out = f", log density of rows aside {event['held_out']:.4g}"
        elif kind == "iteration":
            done, left = event["iteration"], self.iterations - event["iteration"]
            rate = done / max(event["seconds"], 1e-9)
            due = done in (1, 10, 100, 1000)
            self._write(
                f"iteration {done} of at most {self.iterations}, objective "
                f"{event['objective']:.7g}, {rate:.3g}/s, ends in "
                f"{self._latest(left / max(rate, 1e-9))} at the latest",
                due,
            )
        elif kind == "sampling":
            done, total = event["sweep"], event["sweeps"]
            rate = done / max(event["seconds"], 1e-9)
            self._write(
                f"sweep {done} of {total} of every chain, {rate:.3g}/s, "
                f"ends in {self._latest((total - done) / max(rate, 1e-9))}",
                done == total,
            )
        elif kind == "batch":
            epochs = event["epochs"]
            done = event["epoch"] * event["batches"] + event["batch"] + 1
            if self.first is None:
                self.first = (time.perf_counter(), done)
            start, before = self.first
            rate = (done - before) / max(time.perf_counter() - start, 1e-9)
            pace = ""
            if done > before:
                left = (epochs * event["batches"] - done) / max(rate, 1e-9)
                speed = f"{rate * self.batch_size:.3g} rows/s" if self.batch_size else f"{rate:.3g} batches/s"
                pace = f", {speed}, ends in {self._latest(left)} at the latest"
            self._write(
                f"epoch {event['epoch'] + 1} of {epochs}, objective about "
                f"{event['objective']:.6g}{self.held_out}{pace}",
                done == 1,
            )

    def _latest(self, left: float) -> str:
        if self.deadline is not None:
            left = min(left, max(self.deadline - time.perf_counter(), 0.0))
        return _duration(left)

    def _write(self, text: str, due: bool = False) -> None:
        now = time.perf_counter()
        if self.rewritable:
            if now - self.last < 0.1 and not due:
                return
            self.stream.write("\r" + text.ljust(self.width))
            self.width = len(text)
        else:
            if now - self.last < 5 and not due:
                return
            self.stream.write(text + "\n")
        self.last = now
        self.stream.flush()

    def close(self) -> None:
        """Removes the line."""
        if self.rewritable and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()


class Watch:
    """What the core calls: progress and the user's callback."""

    def __init__(self, progress: Optional[Progress], callback: Optional[Callback]) -> None:
        self.progress, self.callback = progress, callback

    def __call__(self, text: str) -> bool:
        event = json.loads(text)
        if self.progress is not None:
            self.progress(event)
        return bool(self.callback(event)) if self.callback is not None else False


def watch(progress: Optional[Progress], callback: Optional[Callback]) -> Optional[Watch]:
    """The core's callback; none if nobody watches."""
    return Watch(progress, callback) if progress or callback else None


@contextlib.contextmanager
def watching(progress: Optional[Progress], callback: Optional[Callback]) -> Iterator[Optional[Watch]]:
    """The core's callback while it works; the line that tells how far it is goes with it."""
    try:
        yield watch(progress, callback)
    finally:
        if progress is not None:
            progress.close()
