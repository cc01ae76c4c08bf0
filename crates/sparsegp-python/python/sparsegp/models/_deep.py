"""Deep Gaussian processes."""

from __future__ import annotations

import json
import warnings
from typing import Any, Callable, Optional, Union

from numpy.typing import ArrayLike

from .. import _core
from .._arrays import matrix, one_of, vector, whole
from .._progress import Progress, watching
from ..kernels import Kernel, as_kernel
from ..likelihoods import Likelihood, as_likelihood
from ._model import Model
from ._training import Data, targets_of


class DeepGP(Model):
    """A doubly stochastic deep Gaussian process (Salimbeni & Deisenroth 2017): functions of functions. Nothing is scaled.

    Where it starts depends on the rows that it is to learn from: there are no parameters before :meth:`optimise`. Predictions
    are mixtures over paths through the hidden layers.

    Parameters
    ----------
    layers : int
        Layers, the last one included; 1 is a sparse variational GP.
    width : int, optional
        Functions of every hidden layer; by default as many as there are inputs, at most 30.
    kind : {"l", "w", "m", "r"}
        What q of the layers is made of: pseudo-observations without inverses (L, R), or whitened (W) or plain (M) moments.
    kernel : Kernel or str
        Of every layer; its values are where they start.
    likelihood : Likelihood or str
    n_inducing : int
        Inducing points of every layer.
    samples : int
        Paths of every training step.
    """

    def __init__(
        self,
        layers: int = 2,
        *,
        width: Optional[int] = None,
        kind: str = "l",
        kernel: Union[str, Kernel] = "rbf",
        likelihood: Union[str, Likelihood] = "gaussian",
        n_inducing: int = 100,
        samples: int = 1,
    ) -> None:
        one_of("kind", kind, ("l", "w", "m", "r"))
        method = (
            f"deep(layers={whole('layers', layers, 1)}, kind={kind}, samples={whole('samples', samples, 1)}"
        )
        if width is not None:
            method += f", width={whole('width', width, 1)}"
        self._spec = {
            "method": method + ")",
            "kernel": as_kernel(kernel).to_json(),
            "likelihood": as_likelihood(likelihood).to_json(),
            "n_inducing": whole("n_inducing", n_inducing, 1),
        }

    def _condition(self) -> None:
        if not hasattr(self, "_model"):
            raise ValueError("the model has seen no rows: call optimise first")
        super()._condition()

    def optimise(  # type: ignore[override]
        self,
        data: Data,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
        batch_size: int = 1024,
        epochs: Optional[int] = None,
        learning_rate: Optional[float] = None,
        natural_rate: Optional[float] = None,
        time_limit: Optional[float] = None,
        seed: int = 0,
        callback: Optional[Callable[[dict[str, Any]], Optional[bool]]] = None,
        verbose: int = 0,
    ) -> dict[str, Any]:
        """Starts from the rows, and trains all parameters by minibatches. A further call starts again.

        Parameters
        ----------
        data : (X, Y)
        extra, weights : array-like, optional
            The further number of every row, and how often its term counts.
        batch_size : int
        epochs : int, optional
            Passes over the rows; by default as many as make 5000 steps.
        learning_rate, natural_rate : float, optional
            Of Adam (by default 0.01), and of natural-gradient steps of the last layer's q (for the kinds W and M; 0: Adam).
        time_limit : float, optional
            Seconds after which the training ends. The learning rate has fallen by then, so that such a training does not
            repeat to the bit.
        seed : int
        callback : callable, optional
            Gets a dictionary of every event; returning True ends the training.
        verbose : int
            Whether to show progress.

        Returns
        -------
        dict
            How it went, as of other models.

        Raises
        ------
        KeyboardInterrupt
            On Ctrl-C; the model has the parameters of then.
        """
        x, y = matrix(data[0]), targets_of(data[1])
        options = {
            **self._spec,
            "random_state": whole("seed", seed, 0),
            "batch_size": whole("batch_size", batch_size, 1),
            "epochs": None if epochs is None else whole("epochs", epochs, 1),
            "learning_rate": learning_rate,
            "natural_rate": natural_rate,
            "time_limit": time_limit,
        }
        columns = {
            "inputs": [f"x{q}" for q in range(x.shape[1])],
            "targets": [f"y{p}" for p in range(y.shape[1])],
            "standardise": False,
        }
        with watching(Progress(0, batch_size) if verbose else None, callback) as seen:
            fitted, error = _core.fit(
                x,
                y,
                json.dumps({name: value for name, value in options.items() if value is not None}),
                json.dumps(columns),
                weights=vector(weights, "weights"),
                extra=vector(extra, "extra"),
                callback=seen,
            )
        if fitted is not None:
            self._model = fitted.model()
        if error is not None:
            raise error
        assert fitted is not None  # without an error there is a model
        about = json.loads(fitted.describe())
        for text in about["warnings"]:
            warnings.warn(text, UserWarning, stacklevel=2)
        report: dict[str, Any] = about["report"]
        return report
