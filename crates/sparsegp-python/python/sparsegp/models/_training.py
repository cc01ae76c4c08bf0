"""The objective of a model and its training."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any, Callable, Optional

from numpy.typing import ArrayLike

from .._arrays import Array, matrix, vector, whole
from .._progress import Progress, watching
from ._parameters import Parameters

Data = tuple[ArrayLike, ArrayLike]

_TRAINING = """Trains every parameter that is not frozen.

        Parameters
        ----------
        data : (X, Y), optional
            Of models that do not keep their data.
        extra, weights : array-like, optional
            The further number of every row, and how often its term counts.
        batch_size : int, optional
            Rows of a minibatch, for Adam and natural-gradient steps; by default all rows at once, by
            L-BFGS (or, for sites, in rounds of steps of q and L-BFGS).
        optimiser : {"lbfgs", "adam"}
            For all rows at once.
        max_iterations : int
            Most iterations of that.
        tolerance : float, optional
            Ends where ten iterations of L-BFGS raise the objective by no more than this fraction of its size (or nats
            per target, whichever is less) and the gradient promises no more; ``--tolerance`` of the command line and
            ``tol`` of the estimators, which take 1e-4. By default training continues to the
            optimum's last digits.
        iterations, epochs : int, optional
            How many minibatches to learn from (rounded up to whole passes), or how many passes. Without
            minibatches ``iterations`` is another name of ``max_iterations``.
        learning_rate, natural_rate : float, optional
            Of Adam (by default 0.03 for minibatches, 0.01 for all rows at once); of natural-gradient steps of q (0:
            Adam on q too).
        time_limit : float, optional
            Seconds after which the training ends with the best found so far; it is looked at between evaluations. Rates of
            minibatches have fallen by then, so that such a training does not repeat to the bit.
        seed : int
            Of the order of minibatches.
        callback : callable, optional
            Gets a dictionary of every event; returning True ends the training.
        verbose : int
            Whether to show progress.

        Returns
        -------
        dict
            How it went: ``"stopped"``, ``"converged"``, ``"iterations"``, ``"objective"``,
            ``"seconds"``, ``"trace"`` and more. A parameter that ends at a bound is warned of.

        Raises
        ------
        KeyboardInterrupt
            On Ctrl-C; the model has the best parameters found.
        sparsegp.NumericalError
            If the start cannot be evaluated.
        """


def targets_of(y: ArrayLike) -> Array:
    """Targets, one column each."""
    return matrix(y, "Y")


class Trained(Parameters):
    """The objective, and what makes it larger."""

    def _rows(
        self, data: Optional[Data], extra: Optional[ArrayLike], weights: Optional[ArrayLike]
    ) -> tuple[Array, Array, dict[str, Any]]:
        if data is not None:
            further = {"extra": vector(extra, "extra"), "weights": vector(weights, "weights")}
            return matrix(data[0]), targets_of(data[1]), {**further, "population": self._num_data}
        if self._data is None:
            raise ValueError("this model does not keep data: give `data=(X, Y)`")
        if extra is not None or weights is not None:
            raise ValueError("extra and weights belong to `data`: give all of them")
        return (*self._data, {**self._further, "population": self._num_data})

    def elbo(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> float:
        """The bound on the log evidence (for :class:`GPR` that itself) at the present parameters, without
        priors. For rows of a larger data set the sum over rows is scaled by num_data/N. ``extra`` is the
        further number of every row, ``weights`` how often its term counts."""
        x, y, further = self._rows(data, extra, weights)
        return self._model.evaluate(x, y, gradients=False, **further)[0]

    def elbo_and_gradients(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> tuple[float, dict[str, Array]]:
        """:meth:`elbo`, and its gradients with respect to the constrained values, by path. Zeros stand for what gradients do
        not move: sites (``q.lambda1``, ``q.lambda2``), which have their own steps, and ``q.t_sqrt``
        of ``rsvgp``."""
        x, y, further = self._rows(data, extra, weights)
        value, gradients = self._model.evaluate(x, y, **further)
        return value, gradients or {}

    def gradients(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> dict[str, Array]:
        """The gradients of :meth:`elbo`."""
        return self.elbo_and_gradients(data, extra=extra, weights=weights)[1]

    def optimise(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
        batch_size: Optional[int] = None,
        optimiser: str = "lbfgs",
        max_iterations: int = 1000,
        tolerance: Optional[float] = None,
        iterations: Optional[int] = None,
        epochs: Optional[int] = None,
        learning_rate: Optional[float] = None,
        natural_rate: Optional[float] = None,
        time_limit: Optional[float] = None,
        seed: int = 0,
        callback: Optional[Callable[[dict[str, Any]], Optional[bool]]] = None,
        verbose: int = 0,
    ) -> dict[str, Any]:
        x, y, further = self._rows(data, extra, weights)
        batch_size = None if batch_size is None else whole("batch_size", batch_size, 1)
        epochs = None if epochs is None else whole("epochs", epochs, 1)
        iterations = None if iterations is None else whole("iterations", iterations, 0)
        if batch_size is None and epochs is not None:
            raise ValueError("epochs are of minibatches: give batch_size too")
        if batch_size is None and iterations is not None:
            max_iterations = iterations
        max_iterations = whole("max_iterations", max_iterations, 0)
        if tolerance is not None and not 0 <= tolerance < math.inf:
            raise ValueError(f"tolerance is {tolerance}; it is a positive number")
        if tolerance is not None and (batch_size is not None or optimiser != "lbfgs"):
            raise ValueError("tolerance is for L-BFGS on all rows: leave out it, batch_size or optimiser")
        options: dict[str, Any] = {
            "optimiser": optimiser,
            "max_iter": max_iterations,
            "tol": tolerance,
            "random_state": whole("seed", seed, 0),
        }
        progress = Progress(max_iterations) if verbose else None
        if batch_size is not None:
            per_epoch = -(-len(x) // max(1, min(batch_size, len(x))))
            if iterations is not None and epochs is None:
                epochs = -(-iterations // per_epoch)
            options.update(batch_size=batch_size, epochs=epochs)
            progress = Progress(max_iterations, batch_size, time_limit=time_limit) if verbose else None
        options.update(learning_rate=learning_rate, natural_rate=natural_rate, time_limit=time_limit)
        given = {name: value for name, value in options.items() if value is not None}
        with watching(progress, callback) as seen:
            report, error = self._model.optimise(x, y, json.dumps(given), callback=seen, **further)
        if error is not None:
            raise error
        found: dict[str, Any] = json.loads(report)
        for text in self._model.at_bounds():
            warnings.warn(text, UserWarning, stacklevel=2)
        return found

    optimise.__doc__ = _TRAINING
