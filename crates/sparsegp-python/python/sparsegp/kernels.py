"""Covariance functions: small immutable objects with ``+`` and ``*``.

>>> from sparsegp.kernels import Linear, Matern52
>>> kernel = Matern52(lengthscales=[0.5, 2.0], variance=1.3) + Linear(active_dims=[0])
>>> kernel([[0.0, 1.0], [1.0, 1.0]]).shape
(2, 2)

Values that are not given start from the data; :class:`sparsegp.priors.Parameter` gives priors and fixed
values. Wherever a kernel is expected, its short form does too: ``"matern52 + linear(active_dims=[0])"``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._spec import Spec
from .priors import Parameter

__all__ = [
    "Constant",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Product",
    "RBF",
    "SquaredExponential",
    "Sum",
    "White",
    "as_kernel",
]

Array = NDArray[np.float64]
Value = Union[None, float, Sequence[float], Parameter]
Scalar = Union[None, float, Parameter]
Dims = Union[None, int, str, Sequence[Union[int, str]]]


def _matrix(x: ArrayLike, what: str = "X") -> Array:
    # aligned: what lies crooked in memory is copied
    array = np.require(x, np.float64, "A")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{what} has {array.ndim} dimensions; it must have 2: rows and columns")
    return array


def _vector(y: Optional[ArrayLike], what: str = "Y") -> Any:
    if y is None:
        return None
    array = np.require(y, np.float64, "A")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{what} has shape {array.shape}; it must be one number per row")
    return array


class Kernel(Spec):
    """A covariance function. ``k(X)`` and ``k(X, X2)`` are covariances of rows."""

    def _core(self, inputs: int) -> _core.Kernel:
        return _core.Kernel(self.to_json(), inputs)

    def K(self, X: ArrayLike, X2: Optional[ArrayLike] = None) -> Array:
        """Covariances N×M of the rows of ``X`` (N×D) and ``X2`` (M×D); without ``X2`` those of ``X`` with
        itself, N×N."""
        x = _matrix(X)
        return self._core(x.shape[1]).covariances(x, None if X2 is None else _matrix(X2, "X2"))

    def K_diag(self, X: ArrayLike) -> Array:
        """Variances of the rows of ``X``: the diagonal of ``K(X)``."""
        x = _matrix(X)
        return self._core(x.shape[1]).diagonal(x)

    __call__ = K

    def K_gradients(self, K_bar: ArrayLike, X: ArrayLike, X2: Optional[ArrayLike] = None) -> dict[str, Array]:
        """Gradients of ``sum(K_bar * K(X, X2))`` by name: the hyperparameters by their paths, ``"X"``,
        and ``"X2"`` if it is given. (Without it, ``"X"`` has both parts.)"""
        x = _matrix(X)
        second = None if X2 is None else _matrix(X2, "X2")
        params, x_bar, x2_bar = self._core(x.shape[1]).gradients(_matrix(K_bar, "K_bar"), x, second)
        found = {**params, "X": x_bar}
        if x2_bar is not None:
            found["X2"] = x2_bar
        return found

    def K_diag_gradients(self, weights: ArrayLike, X: ArrayLike) -> dict[str, Array]:
        """Gradients of ``sum(weights * K_diag(X))`` by name, as for :meth:`K_gradients`."""
        x = _matrix(X)
        params, x_bar = self._core(x.shape[1]).diagonal_gradients(_vector(weights, "weights"), x)
        return {**params, "X": x_bar}

    def __add__(self, other: Union[Kernel, str, float]) -> Sum:
        return Sum((*_parts(self, Sum), *_parts(as_kernel(other), Sum)))

    def __radd__(self, other: Union[str, float]) -> Sum:
        return as_kernel(other) + self

    def __mul__(self, other: Union[Kernel, str, float]) -> Product:
        return Product((*_parts(self, Product), *_parts(as_kernel(other), Product)))

    def __rmul__(self, other: Union[str, float]) -> Product:
        return as_kernel(other) * self

    def with_params(self, **changes: Any) -> Kernel:
        """:meth:`replace` that also reaches into parts: ``k1__variance`` is an argument of the first."""
        own: dict[str, Any] = {}
        nested: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            head, _, rest = name.partition("__")
            if rest:
                nested.setdefault(head, {})[rest] = value
            else:
                own[name] = value
        if nested:
            raise ValueError(f"{type(self).__name__} has no part {', '.join(map(repr, nested))}")
        return self.replace(**own)


def _parts(kernel: Kernel, kind: type[_Composite]) -> tuple[Kernel, ...]:
    return kernel.kernels if type(kernel) is kind else (kernel,)  # type: ignore[attr-defined,no-any-return]


def _dims(dims: Any) -> Any:
    """One column may go without a list."""
    if isinstance(dims, (int, str)) and not isinstance(dims, bool):
        return (dims,)
    if isinstance(dims, slice):
        raise TypeError("active_dims is a list of columns, not a slice; give list(range(...))")
    return dims


class _Radial(Kernel):
    """A kernel of the distance between inputs divided by lengthscales.

    Parameters
    ----------
    lengthscales : float, sequence of float or Parameter, optional
        One for all input columns or one for each; by default one for each, from the data.
    variance : float or Parameter, optional
        By default from the data.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees, by index or name; by default all.
    ard : bool, optional
        Whether each input column has a lengthscale of its own.
    """

    lengthscales: Value
    variance: Scalar
    active_dims: Dims
    ard: Optional[bool]

    def __init__(
        self,
        lengthscales: Value = None,
        variance: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
    ) -> None:
        super().__init__(lengthscales=lengthscales, variance=variance, active_dims=_dims(active_dims), ard=ard)


class RBF(_Radial):
    """Squared exponential: σ² exp(−r²/2). Infinitely differentiable functions."""

    _type = "rbf"


SquaredExponential = RBF


class Matern12(_Radial):
    """Matérn ½, exponential: σ² exp(−r). Rough functions."""

    _type = "matern12"


class Matern32(_Radial):
    """Matérn 3/2: σ² (1 + √3 r) exp(−√3 r). Once differentiable functions."""

    _type = "matern32"


class Matern52(_Radial):
    """Matérn 5/2: σ² (1 + √5 r + 5r²/3) exp(−√5 r). Twice differentiable functions."""

    _type = "matern52"


class Linear(Kernel):
    """Linear functions: Σ_d σ_d² x_d x′_d.

    Parameters
    ----------
    variance : float, sequence of float or Parameter, optional
        One for all input columns or one for each (with ``ard``).
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees; by default all.
    ard : bool, optional
        Whether each input column has a variance of its own.
    """

    _type = "linear"
    variance: Value
    active_dims: Dims
    ard: Optional[bool]

    def __init__(self, variance: Value = None, *, active_dims: Dims = None, ard: Optional[bool] = None) -> None:
        super().__init__(variance=variance, active_dims=_dims(active_dims), ard=ard)


class Constant(Kernel):
    """An unknown offset of this variance."""

    _type = "constant"
    variance: Scalar

    def __init__(self, variance: Scalar = None) -> None:
        super().__init__(variance=variance)


class White(Kernel):
    """Independent noise of this variance at every row."""

    _type = "white"
    variance: Scalar

    def __init__(self, variance: Scalar = None) -> None:
        super().__init__(variance=variance)


class _Composite(Kernel):
    """Several kernels taken together.

    Parameters
    ----------
    kernels : sequence of Kernel
        The parts; in :meth:`with_params` (and scikit-learn's ``set_params``) ``k1``, ``k2``, ….
    """

    kernels: tuple[Kernel, ...]

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        super().__init__(kernels=tuple(kernels))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params: dict[str, Any] = {"kernels": self.kernels}
        if deep:
            for i, kernel in enumerate(self.kernels, 1):
                params[f"k{i}"] = kernel
                for name, value in kernel.get_params().items():
                    params[f"k{i}__{name}"] = value
        return params

    def with_params(self, **changes: Any) -> Kernel:
        kernels = list(changes.pop("kernels", self.kernels))
        nested: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            head, _, rest = name.partition("__")
            if head not in {f"k{i}" for i in range(1, len(kernels) + 1)}:
                raise ValueError(f"{type(self).__name__} has no part {head!r}; it has k1, k2, …")
            if rest:
                nested.setdefault(head, {})[rest] = value
            else:
                kernels[int(head[1:]) - 1] = as_kernel(value)
        for head, own in nested.items():
            at = int(head[1:]) - 1
            kernels[at] = kernels[at].with_params(**own)
        return type(self)(tuple(kernels))

    def to_dict(self) -> dict[str, Any]:
        return {"type": self._type, "kernels": [kernel.to_dict() for kernel in self.kernels]}

    def __repr__(self) -> str:
        parts = [f"({k!r})" if type(k) is Sum else repr(k) for k in self.kernels]
        return (" + " if self._type == "sum" else " * ").join(parts)


class Sum(_Composite):
    """The sum of kernels: independent functions added up."""

    _type = "sum"


class Product(_Composite):
    """The product of kernels."""

    _type = "product"


_CLASSES: dict[str, type[Kernel]] = {
    c._type: c for c in (RBF, Matern12, Matern32, Matern52, Linear, Constant, White, Sum, Product)
}


def _of(entries: dict[str, Any]) -> Kernel:
    entries = dict(entries)
    kind = str(entries.pop("type")).lower()
    for entry in json.loads(_core.registry())["kernels"]:
        if kind in entry["aliases"]:
            kind = entry["name"]
    if kind not in _CLASSES:
        _core.Kernel(json.dumps({"type": kind}), 1)  # the core names the nearest
        raise ValueError(f"the kernel `{kind}` has no class here")
    if "kernels" in entries:
        entries["kernels"] = tuple(_of(part) for part in entries["kernels"])
    cls = _CLASSES[kind]
    unknown = sorted(set(entries) - set(cls._names()))
    if unknown:
        raise ValueError(
            f"kernel `{kind}`: unknown entry {', '.join(f'`{name}`' for name in unknown)}; "
            f"known: {', '.join(cls._names())}"
        )
    parts = {k: Parameter.of(v) if k != "kernels" else v for k, v in entries.items()}
    return cls(**parts)


def as_kernel(spec: Union[Kernel, str, float]) -> Kernel:
    """A kernel from its short form (``"matern52 + linear"``) or JSON; a number is a constant; a kernel stays
    as it is."""
    if isinstance(spec, Kernel):
        return spec
    if isinstance(spec, (int, float)) and not isinstance(spec, bool):
        return Constant(float(spec))
    if isinstance(spec, str):
        return _of(json.loads(_core.parse_kernel(spec)))
    raise TypeError(f"a kernel is a Kernel or a text such as 'matern52 + linear', not {spec!r}")
