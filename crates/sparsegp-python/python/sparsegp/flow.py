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
import warnings
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
    settled : dict or None
        How far from the optimum it is by 1000 draws that did not move the particles: ``"mean"``, standard deviations by which
        the mean is off, and ``"spread"``, the part by which variances are; both are 0 at the optimum. None for ``noisy``
        densities and with ``blocks``.
    """

    def __init__(self, particles: Array, report: dict[str, Any]) -> None:
        self.particles = particles
        self.mean: Array = particles.mean(axis=0)
        spread = particles - self.mean
        self._spread = spread
        self.std: Array = np.sqrt(np.mean(spread**2, axis=0))
        self.free_energy = float(report["free_energy"])
        self.bound = report["bound"]
        self.ended = str(report["ended"])
        self.reason = str(report["reason"])
        self.steps = int(report["steps"])
        self.settled: Optional[dict[str, float]] = report["settled"]
        columns = np.array(report["trace"], dtype=np.float64).reshape(-1, 4)
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
    spread_rate: Optional[float] = None,
    natural_mean: bool = True,
    preconditioned: bool = True,
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
        ``dim + 1`` are enough to find a Gaussian density exactly; others are found the better, the more there are. By
        default ten times as many as there are dimensions, at least 100 and at most 1000, but 100 for more than 500
        dimensions: then the covariance has rank 99.
    mean, std : array-like of shape (dim,), optional
        Where particles start; no wider than the density. With more particles than dimensions these have exactly this mean
        and covariance, else they are drawn from it.
    steps : int
    tolerance : float
        It ends where the stationarity is no larger; 0 for all steps.
    mean_rate, spread_rate : float
        Lengths of steps; by default 1 where they are preconditioned, else 0.5 for natural means and 0.1 for others, which must
        be below 2 over the largest curvature. Moves are halved where the free energy would rise, unless ``noisy``.
    natural_mean : bool
        Whether the mean goes along the natural gradient. With few particles that stays in their span.
    preconditioned : bool
        Whether steps are measured by the curvature that the particles see, as in Newton's method: coordinates of unlike scales
        then take no longer than others. Not with fewer particles than ``dim + 1``, ``blocks`` or ``noisy``.
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

    Warns
    -----
    UserWarning
        Where the result is not the nearest Gaussian: too few steps or particles, or a density without an integral.

    Raises
    ------
    ValueError
        For options that do not fit, where the density gives arrays of other shapes, and where its gradient is not that of its
        values, by differences at the start.
    NumericalError
        Where the density or its gradient is not finite at the start, or the start has no spread in some direction.
    """
    dim = whole("dim", dim, 1)
    if n_particles is not None:
        count = whole("n_particles", n_particles, 2)
    else:
        count = min(max(100, 10 * dim), 1000) if dim <= 500 else 100
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

    seed = whole("random_state", random_state, 0)
    if not noisy:
        _check_gradient(log_density_and_gradient, start, deviations, seed)
    natural = bool(natural_mean) and count > dim
    curved = bool(preconditioned) and natural and blocks is None and not noisy
    if mean_rate is None:
        mean_rate = 1.0 if curved else 0.5 if natural else 0.1
    if spread_rate is None:
        spread_rate = 1.0 if curved else 0.1
    options = {
        "steps": whole("steps", steps, 1),
        "tolerance": float(tolerance),
        "mean_rate": float(mean_rate),
        "spread_rate": float(spread_rate),
        "natural_mean": natural,
        "preconditioned": curved,
        "control": "cap" if noisy else "halve",
        "blocks": None
        if blocks is None or isinstance(blocks, str)
        else [[int(i) for i in block] for block in blocks],
        "diagonal": blocks == "diagonal" if isinstance(blocks, str) else False,
        "noisy": bool(noisy),
        "seed": seed,
        "particles": count,
    }
    watch = None if callback is None else (lambda event: bool(callback(json.loads(event))))
    particles, report = _core.flow(
        density,
        np.ascontiguousarray(start),
        np.ascontiguousarray(deviations),
        json.dumps(options),
        callback=watch,
    )
    found = Flowed(particles, json.loads(report))
    _warn(found)
    return found


def _check_gradient(
    function: Callable[[Array], tuple[Any, Any]], mean: Array, deviations: Array, seed: int
) -> None:
    """Compares the gradient with differences at a few positions about the start."""
    rng = np.random.default_rng(seed)
    at = mean + deviations * rng.standard_normal((4, len(mean)))
    along = deviations * rng.standard_normal(at.shape)
    gradient = np.asarray(function(at)[1], dtype=np.float64)
    if gradient.shape != at.shape:
        return  # what is wrong with it the flow says
    slope = np.sum(gradient * along, axis=1)
    right = np.zeros(len(at), dtype=bool)
    shown = slope
    for step in (1e-3, 1e-5):
        values = np.asarray(function(np.concatenate([at + step * along, at - step * along]))[0])
        rounding = np.finfo(values.dtype).eps if values.dtype.kind == "f" else 0.0
        if values.shape != (2 * len(at),) or not np.all(np.isfinite(values)):
            return
        values = values.astype(np.float64)
        shown = (values[: len(at)] - values[len(at) :]) / (2 * step)
        allowed = 0.02 * np.maximum(np.abs(slope), np.abs(shown)) + 10 * rounding * np.abs(values).max() / step
        right |= np.abs(slope - shown) <= allowed
    if right.sum() <= 1:
        worst = int(np.argmax(np.abs(slope - shown)))
        raise ValueError(
            "the gradient is not that of the log density: in a direction where the values change by "
            f"{shown[worst]:.6g} the gradient says {slope[worst]:.6g}. Return the gradient of the log density (of its sign), "
            "or noisy=True if values differ from call to call"
        )


def _warn(found: Flowed) -> None:
    """What a person should know about a Gaussian that is not the nearest one."""
    count, dim = found.particles.shape
    settled = found.settled
    if settled is None or found.ended == "interrupted":
        return
    text = None
    if count <= dim:
        text = (
            f"{count} particles have a covariance of rank {count - 1} in {dim} dimensions: standard deviations are too small. "
            f"Take n_particles={dim + 1} or more, or blocks='diagonal'"
        )
    elif "error" in settled:
        text = f"the density cannot be evaluated at draws from the Gaussian: {settled['error']}"
    elif not settled["near"]:
        remedy = {
            "all steps": "Take more steps, another start (mean, std), or coordinates in which the density is nearer to a Gaussian",
            "restored": f"The flow was put back ({found.reason}). Take a narrower start or smaller rates",
        }.get(found.ended, "Take more particles (n_particles)")
        text = (
            f"this is not the Gaussian that is nearest to the density: by 1000 draws its mean is off by {settled['mean']:.2g} "
            f"standard deviations, and its variances by {100 * settled['spread']:.2g} %. {remedy}. (A density without an integral "
            "has no such Gaussian)"
        )
    if text is not None:
        warnings.warn(text, UserWarning, stacklevel=3)
