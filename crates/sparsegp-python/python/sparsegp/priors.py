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

__all__ = ["Gamma", "HalfNormal", "InverseGamma", "LogNormal", "Normal", "Parameter", "Prior"]


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


_PRIORS = {c.__name__.lower(): c for c in (Gamma, LogNormal, Normal, HalfNormal, InverseGamma)}


class Parameter:
    """A hyperparameter's value with its prior, or fixed.

    Parameters
    ----------
    value : float or sequence of float, optional
        Where training starts (or what it stays at); by default a value is taken from the data.
    prior : Prior, optional
        Its log density is added to the objective.
    fixed : bool
        Whether training leaves the value alone.
    """

    __slots__ = ("value", "prior", "fixed")

    value: Union[None, float, Sequence[float], Sequence[Sequence[float]]]
    prior: Optional[Prior]
    fixed: bool

    def __init__(
        self,
        value: Union[None, float, Sequence[float], Sequence[Sequence[float]]] = None,
        *,
        prior: Optional[Prior] = None,
        fixed: bool = False,
    ) -> None:
        if value is None and fixed:
            raise ValueError("a fixed parameter needs a value")
        if isinstance(value, (list, np.ndarray)):
            array = np.asarray(value, dtype=float)
            value = _tuples(array.tolist() if array.ndim == 2 else array.ravel().tolist())
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "fixed", fixed)

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
        return entries

    @classmethod
    def of(cls, entry: Any) -> Any:
        """What :meth:`to_dict` gave; anything else as it is."""
        if not isinstance(entry, dict) or not entry.keys() <= {"value", "prior", "assumed", "frozen"}:
            return _tuples(entry)
        # a prior that the library assumed is not the user's
        prior = {} if entry.get("assumed") else dict(entry.get("prior") or {})
        kind = prior.pop("type", None)
        value = entry.get("value")
        if entry.get("assumed") and not entry.get("frozen"):
            return _tuples(value)
        return cls(
            _tuples(value),
            prior=_PRIORS[kind.lower()](**prior) if kind else None,
            fixed=bool(entry.get("frozen", False)),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameter) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.prior, self.fixed))

    def __repr__(self) -> str:
        parts = [] if self.value is None else [repr(plain(self.value))]
        if self.prior is not None:
            parts.append(f"prior={self.prior!r}")
        if self.fixed:
            parts.append("fixed=True")
        return f"Parameter({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _parameter, (self.value, self.prior, self.fixed)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _parameter(value: Any, prior: Optional[Prior], fixed: bool) -> Parameter:
    return Parameter(value, prior=prior, fixed=fixed)


def plain(value: Any) -> Any:
    """Numbers and arrays as JSON knows them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value
