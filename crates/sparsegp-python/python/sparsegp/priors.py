"""Priors of hyperparameters, and :class:`Parameter`, which says more of a value than a number does.

>>> from sparsegp import kernels, priors
>>> kernels.RBF(lengthscales=priors.Parameter(2.0, prior=priors.LogNormal(0.0, 1.0)))
RBF(lengthscales=Parameter(2.0, prior=LogNormal(loc=0.0, scale=1.0)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Optional, Union

import numpy as np

__all__ = [
    "Gamma",
    "HalfCauchy",
    "HalfNormal",
    "Horseshoe",
    "InverseGamma",
    "LogNormal",
    "Normal",
    "Parameter",
    "Prior",
    "Uniform",
]


@dataclass(frozen=True)
class Prior:
    """A density of a constrained value (no Jacobian of the transform is added)."""

    def to_dict(self) -> dict[str, Any]:
        """The prior as model files and the command line write it."""
        return {"type": type(self).__name__.lower(), **asdict(self)}


@dataclass(frozen=True)
class Gamma(Prior):
    """Shape ``concentration`` and inverse scale ``rate``."""

    concentration: float
    rate: float


@dataclass(frozen=True)
class LogNormal(Prior):
    """The logarithm is normal with mean ``loc`` and standard deviation ``scale``."""

    loc: float
    scale: float


@dataclass(frozen=True)
class Normal(Prior):
    """Mean ``loc``, standard deviation ``scale``."""

    loc: float
    scale: float


@dataclass(frozen=True)
class HalfNormal(Prior):
    """Normal with mean 0, folded to the positive numbers."""

    scale: float


@dataclass(frozen=True)
class InverseGamma(Prior):
    """Shape ``concentration`` and ``scale``."""

    concentration: float
    scale: float


@dataclass(frozen=True)
class HalfCauchy(Prior):
    """Cauchy about 0 and folded to the positive numbers, with the median ``scale`` (Gelman 2006): for scales and variances
    that may be near 0 or large."""

    scale: float


@dataclass(frozen=True)
class Uniform(Prior):
    """Uniform from ``low`` to ``high``, between which the parameter then stays."""

    low: float
    high: float


@dataclass(frozen=True)
class Horseshoe(Prior):
    """Normal about 0 with a half-Cauchy standard deviation of the median ``scale`` (Carvalho, Polson & Scott 2010): most
    numbers near 0, few of them large. At 0 its density is infinite."""

    scale: float


_PRIORS = {
    c.__name__.lower(): c
    for c in (Gamma, LogNormal, Normal, HalfNormal, InverseGamma, HalfCauchy, Uniform, Horseshoe)
}


class Parameter:
    """A hyperparameter's value with its prior and bounds, or fixed.

    Parameters
    ----------
    value : float or sequence of float, optional
        Where training starts (or what it stays at); by default a value is taken from the data.
    prior : Prior, optional
        Its log density is added to the objective.
    fixed : bool
        Whether training leaves the value unchanged.
    min, max : float, optional
        Bounds between which the value (each, of several) stays, on the model's scale as values are: estimators
        standardise inputs and targets. A fit that ends at a bound warns.
    """

    __slots__ = ("value", "prior", "fixed", "min", "max")

    value: Union[None, float, Sequence[float], Sequence[Sequence[float]]]
    prior: Optional[Prior]
    fixed: bool
    min: Optional[float]
    max: Optional[float]

    def __init__(
        self,
        value: Union[None, float, Sequence[float], Sequence[Sequence[float]]] = None,
        *,
        prior: Optional[Prior] = None,
        fixed: bool = False,
        min: Optional[float] = None,
        max: Optional[float] = None,
    ) -> None:
        if value is None and fixed:
            raise ValueError("a fixed parameter needs a value")
        bounds = {name: _bound(name, bound) for name, bound in (("min", min), ("max", max))}
        if min is not None and max is not None and min >= max:
            raise ValueError(f"min is {min} and max is {max}; min must be less than max")
        if isinstance(value, (list, np.ndarray)):
            array = np.asarray(value, dtype=float)
            value = _tuples(array.tolist() if array.ndim == 2 else array.ravel().tolist())
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "fixed", fixed)
        for name, bound in bounds.items():
            object.__setattr__(self, name, bound)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Parameter cannot be changed; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Parameter cannot be changed; make a new one")

    def to_dict(self) -> dict[str, Any]:
        """The parameter as model files and the command line write it."""
        entries: dict[str, Any] = {}
        if self.value is not None:
            entries["value"] = plain(self.value)
        if self.prior is not None:
            entries["prior"] = self.prior.to_dict()
        if self.fixed:
            entries["frozen"] = True
        for name in ("min", "max"):
            if getattr(self, name) is not None:
                entries[name] = getattr(self, name)
        return entries

    @classmethod
    def of(cls, entry: Any) -> Any:
        """What :meth:`to_dict` gave; anything else as it is."""
        known = {"value", "prior", "assumed", "alike", "frozen", "min", "max"}
        if not isinstance(entry, dict) or not entry.keys() <= known:
            return _tuples(entry)
        # a prior that the library assumed is not the user's
        prior = {} if entry.get("assumed") else dict(entry.get("prior") or {})
        kind = prior.pop("type", None)
        value = entry.get("value")
        bounded = entry.get("min") is not None or entry.get("max") is not None
        if entry.get("assumed") and not entry.get("frozen") and not bounded:
            return _tuples(value)
        return cls(
            _tuples(value),
            prior=_PRIORS[kind.lower()](**prior) if kind else None,
            fixed=bool(entry.get("frozen", False)),
            min=entry.get("min"),
            max=entry.get("max"),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameter) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.prior, self.fixed, self.min, self.max))

    def __repr__(self) -> str:
        parts = [] if self.value is None else [repr(plain(self.value))]
        if self.prior is not None:
            parts.append(f"prior={self.prior!r}")
        if self.fixed:
            parts.append("fixed=True")
        parts += [
            f"{name}={getattr(self, name)!r}" for name in ("min", "max") if getattr(self, name) is not None
        ]
        return f"Parameter({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _parameter, (self.value, self.prior, self.fixed, self.min, self.max)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _parameter(
    value: Any, prior: Optional[Prior], fixed: bool, min: Optional[float] = None, max: Optional[float] = None
) -> Parameter:
    return Parameter(value, prior=prior, fixed=fixed, min=min, max=max)


def _bound(name: str, value: Any) -> Optional[float]:
    if value is None:
        return None
    bound = float(value)
    if not np.isfinite(bound):
        raise ValueError(f"{name} is {value}; it must be a finite number (None for no bound)")
    return bound


def plain(value: Any) -> Any:
    """Numbers and arrays as JSON knows them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value
