"""The Gaussian that is nearest to a density, from the density's gradients.

Particles flow to it (Gaussian particle flow; Galy-Fajou, Perrone and Opper 2021): no second derivatives, no inverses, and
any function of Python will do.

>>> import numpy as np
>>> from sparsegp import flow
>>> precision = np.array([[2.0, 0.6], [0.6, 1.0]])
>>> def density(x):
...     return -0.5 * np.sum(x @ precision * x, axis=1), -x @ precision
>>> found = flow.fit(density, 2)
>>> bool(np.allclose(found.covariance, np.linalg.inv(precision), atol=1e-4))
True
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._arrays import Array, whole

__all__ = ["Flowed", "fit"]


class Flowed:
    """A Gaussian, as particles.

    Attributes
    ----------
    particles : array of shape (n_particles, dim)
    mean : array of shape (dim,)
    covariance : array of shape (dim, dim)
        Of rank ``n_particles - 1`` at most; made when it is asked for.
    std : array of shape (dim,)
    free_energy : float
    bound : float or None
        Lower bound on the log of the density's integral; none with fewer than ``dim + 1`` particles, where the free energy is
        that of a subspace.
    ended : str
        ``"converged"``, ``"all steps"``, ``"stalled"`` (no move lowers the free energy), ``"interrupted"`` or ``"restored"``:
        the last state that was finite; ``reason`` says more.
    steps : int
    trace : dict of arrays
        ``"step"``, ``"free_energy"``, ``"stationarity"`` (0 at an optimum) and ``"scale"`` of the steps.
    """

    def __init__(self, particles: Array, told: dict[str, Any]) -> None:
        self.particles = particles
        self.mean: Array = particles.mean(axis=0)
        spread = particles - self.mean
        self._spread = spread
        self.std: Array = np.sqrt(np.mean(spread**2, axis=0))
        self.free_energy = float(told["free_energy"])
        self.bound = told["bound"]
        self.ended = str(told["ended"])
        self.reason = str(told["reason"])
        self.steps = int(told["steps"])
        columns = np.array(told["trace"], dtype=np.float64).reshape(-1, 4)
        names = ("step", "free_energy", "stationarity", "scale")
        self.trace = {name: columns[:, i] for i, name in enumerate(names)}

    @property
    def covariance(self) -> Array:
        # dim by dim numbers, which a fit of many dimensions by few particles has no room for
        made: Array = self._spread.T @ self._spread / len(self.particles)
        return made

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws from the Gaussian.

        Parameters
        ----------
        n_samples : int
        random_state : int, numpy Generator or None

        Returns
        -------
        array of shape (n_samples, dim)
        """
        rng = np.random.default_rng(random_state)
        weights = rng.standard_normal((whole("n_samples", n_samples, 1), len(self.particles)))
        drawn: Array = self.mean + weights @ self._spread / np.sqrt(len(self.particles))
        return drawn

    def __repr__(self) -> str:
        count, dim = self.particles.shape
        return f"Flowed({count} particles, {dim} dimensions, {self.ended} after {self.steps} steps)"


def fit(
    log_density_and_gradient: Callable[[Array], tuple[Any, Any]],
    dim: int,
    *,
    n_particles: Optional[int] = None,
    mean: Optional[ArrayLike] = None,
    std: Union[float, ArrayLike] = 1.0,
    steps: int = 2000,
    tolerance: float = 1e-8,
    mean_rate: Optional[float] = None,
    spread_rate: float = 0.1,
    natural_mean: bool = True,
    blocks: Union[None, str, Sequence[Sequence[int]]] = None,
    noisy: bool = False,
    random_state: int = 0,
    callback: Optional[Callable[[dict[str, Any]], Optional[bool]]] = None,
) -> Flowed:
    """Finds the Gaussian nearest to a density (in KL(q || p)).

    Parameters
    ----------
    log_density_and_gradient : callable
        Takes positions of shape (n, dim) and returns their log densities (n,), without a constant or with it, and gradients
        (n, dim): arrays of NumPy, JAX or PyTorch.
    dim : int
    n_particles : int, optional
        By default ``dim + 1``, with which a Gaussian density is found exactly, but 100 for more than 100 dimensions: then the
        covariance has rank 99.
    mean, std : array-like of shape (dim,), optional
        Where particles start; no wider than the density. With more particles than dimensions these have exactly this mean
        and covariance, else they are drawn from it.
    steps : int
    tolerance : float
        It ends where the stationarity is no larger; 0 for all steps.
    mean_rate, spread_rate : float
        Lengths of steps; by default 0.5 for natural means, 0.1 for others, which must be below 2 over the largest curvature.
        Moves are halved where the free energy would rise, unless ``noisy``.
    natural_mean : bool
        Whether the mean goes along the natural gradient. With few particles that stays in their span.
    blocks : "diagonal" or list of lists of int, optional
        Coordinates that are dependent; by default all.
    noisy : bool
        Whether values differ from call to call, as with minibatches: nothing is compared then.
    random_state : int
    callback : callable, optional
        Called with a dictionary of every step; returning True ends the run.

    Returns
    -------
    Flowed

    Raises
    ------
    ValueError
        For options that do not fit, and where the density gives arrays of other shapes.
    NumericalError
        Where the density or its gradient is not finite at the start, or the start has no spread in some direction.
    """
    dim = whole("dim", dim, 1)
    count = (dim + 1 if dim <= 100 else 100) if n_particles is None else whole("n_particles", n_particles, 2)
    start = np.zeros(dim) if mean is None else np.asarray(mean, dtype=np.float64)
    deviations = np.broadcast_to(np.asarray(std, dtype=np.float64), (dim,))
    if start.shape != (dim,):
        raise ValueError(f"mean has shape {start.shape}; expected ({dim},)")
    if not np.all(deviations > 0):
        raise ValueError("std must be positive")
    if isinstance(blocks, str) and blocks != "diagonal":
        raise ValueError(f"blocks is {blocks!r}; it must be 'diagonal' or a list of lists of coordinates")

    def density(x: Array) -> tuple[Array, Array]:
        values, gradient = log_density_and_gradient(x)
        return (
            np.require(np.asarray(values), np.float64, "A"),
            np.require(np.asarray(gradient), np.float64, "A"),
        )

    natural = bool(natural_mean) and count > dim
    if mean_rate is None:
        mean_rate = 0.5 if natural else 0.1
    options = {
        "steps": whole("steps", steps, 1),
        "tolerance": float(tolerance),
        "mean_rate": float(mean_rate),
        "spread_rate": float(spread_rate),
        "natural_mean": natural,
        "control": "cap" if noisy else "halve",
        "blocks": None
        if blocks is None or isinstance(blocks, str)
        else [[int(i) for i in block] for block in blocks],
        "diagonal": blocks == "diagonal" if isinstance(blocks, str) else False,
        "noisy": bool(noisy),
        "seed": whole("random_state", random_state, 0),
        "particles": count,
    }
    told = None if callback is None else (lambda event: bool(callback(json.loads(event))))
    particles, report = _core.flow(
        density,
        np.ascontiguousarray(start),
        np.ascontiguousarray(deviations),
        json.dumps(options),
        callback=told,
    )
    return Flowed(particles, json.loads(report))
