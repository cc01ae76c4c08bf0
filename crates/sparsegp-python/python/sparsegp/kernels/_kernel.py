"""What kernels have in common, their sums and products, and how texts become kernels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, matrix, vector
from .._registry import entries as entries_of
from .._spec import Spec
from ..priors import Parameter

Value = Union[None, float, Sequence[float], Parameter]
Scalar = Union[None, float, Parameter]
Matrix = Union[None, float, Sequence[Sequence[float]], Array, Parameter]
Dims = Union[None, int, str, Sequence[Union[int, str]]]
Bounds = Union[None, str, tuple[float, float]]


class Kernel(Spec):
    """A covariance function. ``k(X)`` and ``k(X, X2)`` are covariances of rows."""

    _classes: ClassVar[dict[str, type[Kernel]]] = {}

    def _core(self, inputs: int) -> _core.Kernel:
        return _core.Kernel(self.to_json(), inputs)

    def K(self, X: ArrayLike, X2: Optional[ArrayLike] = None) -> Array:
        """Covariances N×M of the rows of ``X`` (N×D) and ``X2`` (M×D); without ``X2`` those of ``X`` with
        itself, N×N."""
        x = matrix(X)
        return self._core(x.shape[1]).covariances(x, None if X2 is None else matrix(X2, "X2"))

    def K_diag(self, X: ArrayLike) -> Array:
        """Variances of the rows of ``X``: the diagonal of ``K(X)``."""
        x = matrix(X)
        return self._core(x.shape[1]).diagonal(x)

    __call__ = K
    # NumPy's numbers leave `2 * k` and `2 + k` to the kernel
    __array_ufunc__ = None

    def K_gradients(self, K_bar: ArrayLike, X: ArrayLike, X2: Optional[ArrayLike] = None) -> dict[str, Array]:
        """Gradients of ``sum(K_bar * K(X, X2))`` by name: the hyperparameters by their paths, ``"X"``,
        and ``"X2"`` if it is given. (Without it, ``"X"`` has both parts.)"""
        x = matrix(X)
        second = None if X2 is None else matrix(X2, "X2")
        params, x_bar, x2_bar = self._core(x.shape[1]).gradients(matrix(K_bar, "K_bar"), x, second)
        found = {**params, "X": x_bar}
        if x2_bar is not None:
            found["X2"] = x2_bar
        return found

    def K_diag_gradients(self, weights: ArrayLike, X: ArrayLike) -> dict[str, Array]:
        """Gradients of ``sum(weights * K_diag(X))`` by name, as for :meth:`K_gradients`."""
        x = matrix(X)
        params, x_bar = self._core(x.shape[1]).diagonal_gradients(vector(weights, "weights"), x)
        return {**params, "X": x_bar}

    def __add__(self, other: Union[Kernel, str, float]) -> Sum:
        return Sum((*_parts(self, Sum), *_parts(as_kernel(other), Sum)))

    def __radd__(self, other: Union[str, float]) -> Kernel:
        # `sum` of Python starts at 0
        if isinstance(other, (int, np.integer)) and other == 0:
            return self
        return as_kernel(other) + self

    def __mul__(self, other: Union[Kernel, str, float]) -> Product:
        return Product((*_parts(self, Product), *_parts(as_kernel(other), Product)))

    def __rmul__(self, other: Union[str, float]) -> Product:
        return as_kernel(other) * self

    def with_params(self, **changes: Any) -> Kernel:
        """:meth:`Kernel.replace` that also reaches into parts: ``k1__variance`` is an argument of the first."""
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


def _parts(kernel: Kernel, kind: type[Composite]) -> tuple[Kernel, ...]:
    return kernel.kernels if type(kernel) is kind else (kernel,)  # type: ignore[attr-defined,no-any-return]


def dims_of(dims: Any) -> Any:
    """One column may go without a list."""
    if isinstance(dims, (int, str)) and not isinstance(dims, bool):
        return (dims,)
    if isinstance(dims, range):
        return tuple(dims)
    if isinstance(dims, slice):
        raise TypeError("active_dims is a list of columns, not a slice; give list(range(...))")
    return dims


class Composite(Kernel):
    """Several kernels taken together.

    Parameters
    ----------
    kernels : sequence of Kernel
        The parts; in :meth:`Kernel.with_params` (and scikit-learn's ``set_params``) ``k1``, ``k2``, ….
    """

    kernels: tuple[Kernel, ...]

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        super().__init__(kernels=tuple(kernels))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params = super().get_params(deep=False)
        if deep:
            for i, kernel in enumerate(self.kernels, 1):
                params[f"k{i}"] = kernel
                for name, value in kernel.get_params().items():
                    params[f"k{i}__{name}"] = value
        return params

    def with_params(self, **changes: Any) -> Kernel:
        kernels = list(changes.pop("kernels", self.kernels))
        own = {name: changes.pop(name) for name in self._names() if name in changes}
        nested: dict[str, dict[str, Any]] = {}
        for name, value in changes.items():
            head, _, rest = name.partition("__")
            if head not in {f"k{i}" for i in range(1, len(kernels) + 1)}:
                raise ValueError(f"{type(self).__name__} has no part {head!r}; it has k1, k2, …")
            if rest:
                nested.setdefault(head, {})[rest] = value
            else:
                kernels[int(head[1:]) - 1] = as_kernel(value)
        for head, inner in nested.items():
            at = int(head[1:]) - 1
            kernels[at] = kernels[at].with_params(**inner)
        return self.replace(kernels=tuple(kernels), **own)


class _Operation(Composite):
    """Kernels with a sign between them."""

    def __repr__(self) -> str:
        parts = [f"({k!r})" if type(k) is Sum else repr(k) for k in self.kernels]
        return (" + " if self._type == "sum" else " * ").join(parts)


class Sum(_Operation):
    """The sum of kernels: independent functions added up."""

    _type = "sum"


class Product(_Operation):
    """The product of kernels."""

    _type = "product"


def _refuse_unknown(kind: str) -> None:
    """Refuses kernels that the core does not know, with the names that it says are nearest."""
    try:
        _core.Kernel(json.dumps({"type": kind}), 1)
    except ValueError as error:
        # positions are of JSON that the user did not write
        text = str(error)
        raise ValueError(text[max(0, text.find("unknown kernel")) :]) from None


def _of(entries: Union[str, dict[str, Any]]) -> Kernel:
    if isinstance(entries, str):
        return as_kernel(entries)
    entries = dict(entries)
    kind = str(entries.pop("type")).lower()
    for entry in entries_of("kernels"):
        if kind in entry["aliases"]:
            kind = entry["name"]
    if kind not in Kernel._classes:
        _refuse_unknown(kind)
        raise ValueError(f"the kernel `{kind}` has no class here")
    if "kernels" in entries:
        entries["kernels"] = tuple(_of(part) for part in entries["kernels"])
    if "base" in entries:
        entries["base"] = _of(entries["base"])
    cls = Kernel._classes[kind]
    if hasattr(cls, "_of_entries"):
        return cls._of_entries(entries)  # type: ignore[no-any-return]
    unknown = sorted(set(entries) - set(cls._names()))
    if unknown:
        raise ValueError(
            f"kernel `{kind}`: unknown entry {', '.join(f'`{name}`' for name in unknown)}; "
            f"known: {', '.join(cls._names())}"
        )
    parts = {k: Parameter.of(v) if k not in ("kernels", "base") else v for k, v in entries.items()}
    return cls(**parts)


def remedy_for(spec: Any) -> str:
    """Returns what to write in the place of an object of another kind."""
    if isinstance(spec, type) and issubclass(spec, Kernel):
        return f": write {spec.__name__}()"
    if type(spec).__module__.startswith("sklearn."):
        return ": take a kernel of sparsegp.kernels, such as RBF(lengthscales=1.0)"
    return ""


def as_kernel(spec: Union[Kernel, str, float]) -> Kernel:
    """A kernel from its short form (``"matern52 + linear"``) or JSON; a number is a constant; a kernel stays
    as it is."""
    if isinstance(spec, Kernel):
        return spec
    if isinstance(spec, (int, float, np.integer, np.floating)) and not isinstance(spec, bool):
        return _of({"type": "constant", "variance": float(spec)})
    if isinstance(spec, str):
        return _of(json.loads(_core.parse_kernel(spec)))
    raise TypeError(
        f"a kernel is a Kernel or a text such as 'matern52 + linear', not {spec!r}{remedy_for(spec)}"
    )
