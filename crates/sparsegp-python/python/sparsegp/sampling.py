"""Markov chains on any density: NUTS, Hamiltonian Monte Carlo, elliptical slice sampling, random walks.

>>> import numpy as np
>>> from sparsegp import sampling
>>> scale = np.array([0.1, 20.0])
>>> def log_density(x):
...     return -0.5 * np.sum((x / scale) ** 2, axis=1), -x / scale**2
>>> found = sampling.sample(log_density, 2, seed=1)
>>> found.draws.shape
(4, 1000, 2)
>>> bool(np.all(np.abs(found.std / scale - 1) < 0.1) and np.all(found.rhat < 1.02))
True
"""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Sequence
from typing import Any, Callable, Optional

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arrays import Array, whole
from ._progress import Progress, watching

__all__ = ["Samples", "sample"]

# above it the core, too, says of the models it samples that chains have not mixed
_MIXED = 1.05
_METHODS = ("nuts", "hmc", "elliptical", "metropolis")


class Samples:
    """Draws of Markov chains.

    Attributes
    ----------
    draws : array of shape (chains, draws, dim)
    log_density : array of shape (chains, draws)
        At the draws; for ``"elliptical"`` the log likelihood.
    mean, std : arrays of shape (dim,)
        Over all draws.
    error : array of shape (dim,)
        Monte-Carlo standard error of the mean.
    rhat, ess_bulk, ess_tail : arrays of shape (dim,)
        Rank-normalised R̂ and effective sample sizes (Vehtari et al. 2021); NaN for fewer than 8 draws and for variables that do
        not vary.
    diverging : array of bool of shape (chains, draws)
        Whether the integrator lost the energy on the way to a draw.
    divergences : int
        How many draws that were.
    acceptance : array of shape (chains, draws)
        Probability of acceptance: for ``"nuts"`` its mean over the path, for ``"elliptical"`` the share of the proposals.
    evaluations : array of int of shape (chains, draws)
        Densities that the sweep to a draw took.
    step_size : array of shape (chains,) or None
        After the warmup; None for ``"elliptical"``.
    method : str
    names : list of str
        Of the variables.
    """

    def __init__(self, found: tuple[Any, ...], method: str, names: Optional[list[str]]) -> None:
        draws, log_density, acceptance, evaluations, diverging, columns, report = found
        self.method = method
        self.draws: Array = draws
        self.log_density: Array = log_density
        self.acceptance: Array = acceptance
        self.evaluations: NDArray[np.int64] = evaluations.astype(np.int64)
        self.diverging: NDArray[np.bool_] = diverging > 0
        self.divergences = int(self.diverging.sum())
        self.mean, self.std, self.error, self.rhat, self.ess_bulk, self.ess_tail = columns.T.copy()
        steps = json.loads(report)["steps"]
        self.step_size: Optional[Array] = None if None in steps else np.array(steps, dtype=np.float64)
        self._named = names is not None
        self.names = [f"x[{i}]" for i in range(draws.shape[2])] if names is None else names

    def summary(self) -> str:
        """A table with a row for every variable: mean, standard deviation, standard error of the mean, the quantiles of 5 % and
        95 %, R̂, bulk and tail effective sample size; and a line about the chains.

        Returns
        -------
        str
        """
        chains, count, dim = self.draws.shape
        low, high = np.quantile(self.draws.reshape(-1, dim), [0.05, 0.95], axis=0)
        heads = ["", "mean", "std", "error", "5%", "95%", "rhat", "ess_bulk", "ess_tail"]
        rows = [heads]
        for i, name in enumerate(self.names):
            numbers = (self.mean[i], self.std[i], self.error[i], low[i], high[i])
            sizes = (f"{self.ess_bulk[i]:.0f}", f"{self.ess_tail[i]:.0f}")
            rows.append([name, *(f"{v:.4g}" for v in numbers), f"{self.rhat[i]:.3f}", *sizes])
        widths = [max(len(row[j]) for row in rows) for j in range(len(heads))]
        lines = []
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:]))]
            lines.append("  ".join(cells).rstrip())
        last = f"{self.method}: {chains} chains of {count} draws, mean acceptance {self.acceptance.mean():.2f}"
        if self.step_size is not None:
            last += f", step {self.step_size.mean():.3g}"
        if self.method in ("nuts", "hmc"):
            last += f", {self.divergences} divergences"
        return "\n".join([*lines, last])

    def to_arviz(self) -> Any:
        """The draws for ArviZ, which must be installed.

        Returns
        -------
        arviz.InferenceData
            (What stands in its place in ArviZ 1: a tree of data sets.) Its posterior has a variable ``x`` with ``dim`` entries,
            or one for each name; ``sample_stats`` has ``lp``, ``acceptance_rate``, ``n_steps`` and what the method has of
            ``diverging`` and ``step_size``.

        Raises
        ------
        ImportError
            Without ArviZ.
        """
        named = {name: self.draws[:, :, i] for i, name in enumerate(self.names)}
        posterior = named if self._named else {"x": self.draws}
        stats: dict[str, NDArray[Any]] = {
            "lp": self.log_density,
            "acceptance_rate": self.acceptance,
            "n_steps": self.evaluations,
        }
        if self.method in ("nuts", "hmc"):
            stats["diverging"] = self.diverging
        if self.step_size is not None:
            stats["step_size"] = np.repeat(self.step_size[:, None], self.draws.shape[1], axis=1)
        return to_arviz({"posterior": posterior, "sample_stats": stats})

    def __repr__(self) -> str:
        chains, count, dim = self.draws.shape
        return f"Samples({self.method}, {chains} chains, {count} draws, {dim} variables)"


def to_arviz(groups: dict[str, Any]) -> Any:
    """Groups of variables, arrays of shape (chains, draws, ...), as ArviZ has them."""
    try:
        arviz: Any = importlib.import_module("arviz")
    except ImportError as error:
        raise ImportError("to_arviz needs the package arviz: pip install arviz") from error
    # since version 1 they are one argument
    if int(arviz.__version__.split(".")[0]) < 1:
        return arviz.from_dict(**groups)
    return arviz.from_dict(groups)


def sample(
    log_density: Callable[[Array], Any],
    dim: int,
    *,
    method: str = "nuts",
    chains: int = 4,
    draws: int = 1000,
    warmup: int = 1000,
    thin: int = 1,
    start: Optional[ArrayLike] = None,
    seed: int = 0,
    prior: Optional[tuple[ArrayLike, ArrayLike]] = None,
    vectorized: bool = True,
    step_size: Optional[float] = None,
    target_acceptance: Optional[float] = None,
    max_depth: Optional[int] = None,
    steps: Optional[int] = None,
    names: Optional[Sequence[str]] = None,
    verbose: int = 0,
) -> Samples:
    """Draws from a density by Markov chains.

    The chains advance together: the function is called with one position of every chain. The same seed and function give
    the same bits.

    Parameters
    ----------
    log_density : callable
        Takes positions of shape (n, dim), n at most ``chains``, and returns their log densities (n,), without a constant or
        with it; for ``"nuts"`` and ``"hmc"`` a tuple of these and the gradients (n, dim). Arrays of NumPy, JAX or PyTorch, or
        lists. For ``"elliptical"`` it is only the log likelihood: the prior is ``prior``. After the
        start, what is not finite counts as −∞: no chain goes there.
    dim : int
        Number of variables. They are unbounded: take logarithms of positive ones, and add the Jacobian.
    method : {"nuts", "hmc", "elliptical", "metropolis"}
        Hamiltonian paths without U-turns (Hoffman & Gelman 2014), paths of ``steps`` steps, elliptical slice sampling (Murray,
        Adams & MacKay 2010) for Gaussian priors, or a random walk, whose proposals have one scale for all variables.
    chains, draws : int
        Draws are kept of every chain.
    warmup : int
        Sweeps of every chain that are dropped; steps and, for ``"nuts"`` and ``"hmc"``, a diagonal mass adapt meanwhile.
    thin : int
        Sweeps for every draw that is kept.
    start : array-like of shape (dim,) or (chains, dim), optional
        By default draws of N(0, I), or of the prior for ``"elliptical"``. Different starts make R̂ tell more.
    seed : int
    prior : tuple of array-likes, optional
        Mean, (dim,) or a number, and covariance, (dim, dim), for ``"elliptical"``; by default N(0, I).
    vectorized : bool
        Whether the function takes (n, dim) positions. If not, it is called with one position (dim,) at a time, and returns a
        number, with a gradient (dim,) for ``"nuts"`` and ``"hmc"``.
    step_size : float, optional
        Fixed, in the place of one that is found during the warmup (which has no mass then).
    target_acceptance : float, optional
        Mean acceptance that the step of ``"nuts"`` and ``"hmc"`` is sought for; 0.8 by default. More makes smaller steps.
    max_depth : int, optional
        A path of ``"nuts"`` has fewer than 2**max_depth points; 10 by default.
    steps : int, optional
        Leapfrog steps of a path of ``"hmc"``; 10 by default. Their size differs by up to 20 % from path to path, so that no path
        is periodic.
    names : sequence of str, optional
        Of the variables, for tables and ArviZ.
    verbose : int
        With 1, a line tells how far it is.

    Returns
    -------
    Samples

    Raises
    ------
    ValueError
        For options that do not fit the method, and where the function gives other shapes than it should.
    NumericalError
        Where the log density or its gradient is not finite at the start of a chain.

    Warns
    -----
    UserWarning
        If R̂ of a variable is above 1.05 or not known, if there were divergences, or if the function gave NaN or +∞.
    """
    if method not in _METHODS:
        raise ValueError(f"method is {method!r}; it must be one of {', '.join(_METHODS)}")
    hamiltonian = method in ("nuts", "hmc")
    fitting = {
        "prior": (prior, method == "elliptical"),
        "step_size": (step_size, method != "elliptical"),
        "target_acceptance": (target_acceptance, hamiltonian),
        "max_depth": (max_depth, method == "nuts"),
        "steps": (steps, method == "hmc"),
    }
    for name, (value, fits) in fitting.items():
        if value is not None and not fits:
            raise ValueError(f"{name} does not apply to method {method!r}")
    dim, chains = whole("dim", dim, 1), whole("chains", chains, 1)
    if names is not None:
        names = [str(name) for name in names]
        if len(names) != dim or len(set(names)) != dim:
            raise ValueError(f"names has {len(set(names))} different names; expected {dim}")
    starts = None
    if start is not None:
        starts = np.asarray(start, dtype=np.float64)
        if starts.shape not in ((dim,), (chains, dim)):
            raise ValueError(f"start has shape {starts.shape}; expected ({dim},) or ({chains}, {dim})")
        starts = starts.ravel()
    options: dict[str, Any] = {
        "method": method,
        "dim": dim,
        "chains": chains,
        "draws": whole("draws", draws, 1),
        "warmup": whole("warmup", warmup, 0),
        "thin": whole("thin", thin, 1),
        "seed": whole("seed", seed, 0),
        "steps": 10 if steps is None else whole("steps", steps, 1),
        "max_depth": 10 if max_depth is None else whole("max_depth", max_depth, 1),
        "step_size": None if step_size is None else _positive("step_size", step_size),
        "target_acceptance": 0.8 if target_acceptance is None else float(target_acceptance),
    }
    if not 0 < options["target_acceptance"] < 1:
        raise ValueError(f"target_acceptance is {target_acceptance}; it must be between 0 and 1")
    with watching(Progress(0) if verbose else None, None) as seen:
        found = _core.sample(
            _Function(log_density, dim, method, hamiltonian, vectorized),
            json.dumps(options),
            starts=starts,
            prior=None if prior is None else _prior(prior, dim),
            callback=seen,
        )
    samples = Samples(found, method, names)
    _warn(samples, json.loads(found[-1]))
    return samples


class _Function:
    """The user's function, with its shapes checked."""

    def __init__(
        self, function: Callable[[Array], Any], dim: int, method: str, gradients: bool, vectorized: bool
    ) -> None:
        self.function, self.dim, self.method = function, dim, method
        self.gradients, self.vectorized = gradients, vectorized

    def __call__(self, x: Array) -> Any:
        if self.vectorized:
            return self._checked(self.function(x), (len(x),), (len(x), self.dim))
        each = [self._checked(self.function(one), (), (self.dim,)) for one in x]
        if not self.gradients:
            return np.array(each, dtype=np.float64)
        return np.array([value for value, _ in each]), np.array([slope for _, slope in each])

    def _checked(self, found: Any, values: tuple[int, ...], slopes: tuple[int, ...]) -> Any:
        pair = isinstance(found, (tuple, list)) and len(found) == 2
        if not self.gradients:
            if isinstance(found, tuple):
                raise ValueError(
                    f"the function gave a tuple of {len(found)}; method {self.method!r} takes only log densities"
                )
            return _shaped("log densities", found, values)
        if not pair:
            raise ValueError(
                f"method {self.method!r} takes a tuple of log densities and gradients, and the function gave "
                f"{type(found).__name__}; 'metropolis' and 'elliptical' need no gradients"
            )
        return _shaped("log densities", found[0], values), _shaped("gradients", found[1], slopes)


def _shaped(what: str, found: Any, shape: tuple[int, ...]) -> Array:
    array = np.require(np.asarray(found), np.float64, "A")
    if array.shape != shape:
        raise ValueError(f"the function gave {what} of shape {array.shape}; expected {shape}")
    return array


def _positive(name: str, value: float) -> float:
    if not 0 < float(value) < np.inf:
        raise ValueError(f"{name} is {value}; it must be positive")
    return float(value)


def _prior(prior: tuple[ArrayLike, ArrayLike], dim: int) -> tuple[Array, Array]:
    """Mean and lower Cholesky factor."""
    mean = np.ascontiguousarray(np.broadcast_to(np.asarray(prior[0], dtype=np.float64), (dim,)))
    covariance = np.asarray(prior[1], dtype=np.float64)
    if covariance.shape != (dim, dim):
        raise ValueError(f"the prior's covariance has shape {covariance.shape}; expected ({dim}, {dim})")
    variances = np.abs(np.diag(covariance))
    if not np.all(np.abs(covariance - covariance.T) <= 1e-10 * np.sqrt(np.outer(variances, variances))):
        raise ValueError("the prior's covariance is not symmetric")
    try:
        factor: Array = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise ValueError("the prior's covariance is not positive definite") from error
    return mean, factor


def _warn(found: Samples, report: dict[str, Any]) -> None:
    """What a person should know about the chains."""
    count = found.diverging.size
    if found.divergences:
        warnings.warn(
            f"{found.divergences} of {count} draws diverged: the draws may miss a region where the density is sharply curved. "
            f"Use smaller steps (target_acceptance=0.95 or more), or other coordinates, such as x = mean + scale * z with z "
            "as the variable in hierarchical models",
            UserWarning,
            stacklevel=3,
        )
    unmixed = [i for i, r in enumerate(found.rhat) if not r <= _MIXED]
    if unmixed:
        worst = max(unmixed, key=lambda i: np.inf if np.isnan(found.rhat[i]) else found.rhat[i])
        more = f" and {len(unmixed) - 1} more variables" if len(unmixed) > 1 else ""
        warnings.warn(
            f"the chains have not mixed: R̂ of {found.names[worst]} is {found.rhat[worst]:.3f}{more}; at most {_MIXED} is wanted. "
            "Take more draws and a longer warmup, or variables of similar scale and little correlation",
            UserWarning,
            stacklevel=3,
        )
    if report["not_numbers"]:
        warnings.warn(
            f"the function gave NaN or +inf at {report['not_numbers']} of {report['positions']} positions; they count as −inf. "
            "If that is meant, return -inf there",
            UserWarning,
            stacklevel=3,
        )
