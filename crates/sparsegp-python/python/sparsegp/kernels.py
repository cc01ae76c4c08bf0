"""Covariance functions: small immutable objects with ``+`` and ``*``.

>>> from sparsegp.kernels import Linear, Matern52
>>> kernel = Matern52(lengthscales=[0.5, 2.0], variance=1.3) + Linear(active_dims=[0])
>>> kernel([[0.0, 1.0], [1.0, 1.0]]).shape
(2, 2)

Values that are not given start from the data; :class:`sparsegp.priors.Parameter` gives priors, bounds and
fixed values. Wherever a kernel is expected, its short form does too: ``"matern52 + linear(active_dims=[0])"``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._registry import entries as entries_of
from ._spec import Spec
from .priors import Parameter

__all__ = [
    "ArcCosine",
    "ChangePoints",
    "Constant",
    "Convolutional",
    "Coregion",
    "Cosine",
    "Exponential",
    "GammaExponential",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Polynomial",
    "Product",
    "RBF",
    "RationalQuadratic",
    "SquaredExponential",
    "Sum",
    "White",
    "as_kernel",
]

Array = NDArray[np.float64]
Value = Union[None, float, Sequence[float], Parameter]
Scalar = Union[None, float, Parameter]
Matrix = Union[None, float, Sequence[Sequence[float]], Array, Parameter]
Dims = Union[None, int, str, Sequence[Union[int, str]]]
Bounds = Union[None, str, tuple[float, float]]


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


def _whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least so much."""
    if isinstance(value, bool) or int(value) != value or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number from {least}")
    return int(value)


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
    # NumPy's numbers leave `2 * k` and `2 + k` to the kernel
    __array_ufunc__ = None

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
    if isinstance(dims, range):
        return tuple(dims)
    if isinstance(dims, slice):
        raise TypeError("active_dims is a list of columns, not a slice; give list(range(...))")
    return dims


def _bounded(value: Value, bounds: Bounds) -> Value:
    """Lengthscales with bounds as scikit-learn writes them."""
    if bounds is None:
        return value
    known = value if isinstance(value, Parameter) else Parameter(value)
    if isinstance(bounds, str):
        if bounds != "fixed":
            raise ValueError(f'lengthscale_bounds is {bounds!r}; it must be a pair of numbers or "fixed"')
        return Parameter(known.value, prior=known.prior, fixed=True, min=known.min, max=known.max)
    if np.shape(bounds) != (2,):
        raise ValueError(
            f"lengthscale_bounds is {bounds!r}; it must be one pair of numbers for all lengthscales"
        )
    low, high = bounds
    return Parameter(known.value, prior=known.prior, fixed=known.fixed, min=low, max=high)


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
    lengthscale_bounds : (float, float) or "fixed", optional
        Bounds of all lengthscales, on the scale of the lengthscales: those of
        :class:`~sparsegp.priors.Parameter` in the spelling of scikit-learn's ``length_scale_bounds``.
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
        lengthscale_bounds: Bounds = None,
    ) -> None:
        lengthscales = _bounded(lengthscales, lengthscale_bounds)
        super().__init__(lengthscales=lengthscales, variance=variance, active_dims=_dims(active_dims), ard=ard)

    @classmethod
    def _names(cls) -> list[str]:
        # these bounds are part of the lengthscales
        return [name for name in super()._names() if name != "lengthscale_bounds"]


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


class Exponential(_Radial):
    """Exponential: σ² exp(−r/2), as in GPflow: :class:`Matern12` with twice the lengthscale."""

    _type = "exponential"


class RationalQuadratic(_Radial):
    """Rational quadratic: σ² (1 + r²/2α)^−α. Smooth functions on many scales at once.

    Parameters
    ----------
    lengthscales : float, sequence of float or Parameter, optional
        One for all input columns or one for each; by default one for each, from the data.
    variance : float or Parameter, optional
        By default from the data.
    alpha : float or Parameter, optional
        How alike the scales are: with a large one the kernel is :class:`RBF`. By default 1.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees, by index or name; by default all.
    ard : bool, optional
        Whether each input column has a lengthscale of its own.
    lengthscale_bounds : (float, float) or "fixed", optional
        Bounds of all lengthscales, on the scale of the lengthscales: those of
        :class:`~sparsegp.priors.Parameter` in the spelling of scikit-learn's ``length_scale_bounds``.
    """

    _type = "rational_quadratic"
    alpha: Scalar

    def __init__(
        self,
        lengthscales: Value = None,
        variance: Scalar = None,
        alpha: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
        lengthscale_bounds: Bounds = None,
    ) -> None:
        super().__init__(
            lengthscales, variance, active_dims=active_dims, ard=ard, lengthscale_bounds=lengthscale_bounds
        )
        Spec.__init__(self, alpha=alpha)


class GammaExponential(_Radial):
    """γ-exponential: σ² exp(−r^γ), 0 < γ < 2. The smoother the larger γ; γ = 1 is :class:`Matern12`.

    Parameters
    ----------
    lengthscales : float, sequence of float or Parameter, optional
        One for all input columns or one for each; by default one for each, from the data.
    variance : float or Parameter, optional
        By default from the data.
    gamma : float or Parameter, optional
        By default 1.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees, by index or name; by default all.
    ard : bool, optional
        Whether each input column has a lengthscale of its own.
    lengthscale_bounds : (float, float) or "fixed", optional
        Bounds of all lengthscales, on the scale of the lengthscales: those of
        :class:`~sparsegp.priors.Parameter` in the spelling of scikit-learn's ``length_scale_bounds``.
    """

    _type = "gamma_exponential"
    gamma: Scalar

    def __init__(
        self,
        lengthscales: Value = None,
        variance: Scalar = None,
        gamma: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
        lengthscale_bounds: Bounds = None,
    ) -> None:
        super().__init__(
            lengthscales, variance, active_dims=active_dims, ard=ard, lengthscale_bounds=lengthscale_bounds
        )
        Spec.__init__(self, gamma=gamma)


class _WithBase(Kernel):
    """A kernel made of another one, whose arguments are reached as ``base__variance``."""

    base: Kernel

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params = super().get_params(deep=False)
        if deep:
            params.update({f"base__{name}": value for name, value in self.base.get_params().items()})
        return params

    def with_params(self, **changes: Any) -> Kernel:
        nested = {name[len("base__") :]: v for name, v in changes.items() if name.startswith("base__")}
        own = {name: v for name, v in changes.items() if not name.startswith("base__")}
        if nested:
            own["base"] = as_kernel(own.get("base", self.base)).with_params(**nested)
        return super().with_params(**own)


class Periodic(_WithBase):
    """Functions that repeat: the base's σ²κ(r) with r² = Σ_d sin²(π (x_d − x′_d)/p_d)/ℓ_d².

    scikit-learn's ``ExpSineSquared`` is the base :class:`RBF` with half of its ``length_scale``.

    Parameters
    ----------
    base : Kernel or str, optional
        A kernel of distances; its lengthscales are those of the sines, and its active columns those that
        repeat. By default :class:`RBF`.
    period : float, sequence of float or Parameter, optional
        One for all active columns or one for each; by default one for each, from the strongest wave in the
        data. Estimators standardise inputs: then a value given here is in standard deviations of the column.
    form : {"circles", "gpflow"}, optional
        ``"gpflow"`` has r = Σ_d |sin(π (x_d − x′_d)/p_d)|/ℓ_d where the base is not :class:`RBF`, as GPflow. With
        more than one column that is not positive definite in general: use it only to compare.
    """

    _type = "periodic"
    period: Value
    form: Optional[str]

    def __init__(
        self, base: Union[None, Kernel, str] = None, period: Value = None, *, form: Optional[str] = None
    ) -> None:
        super().__init__(base=RBF() if base is None else as_kernel(base), period=period, form=form)


class Convolutional(_WithBase):
    """Images whose columns are pixels: Σ_p Σ_q w_p w_q k(patch p of x, patch q of x′), a function of patches summed
    over an image.

    Parameters
    ----------
    image : (int, int, int), optional
        Height, width and channels; columns run over rows, then columns of pixels, then channels. By default a
        square of one channel.
    patch : (int, int), optional
        Height and width of a patch. By default 3 × 3.
    stride : int, optional
        Pixels from one patch to the next. By default 1.
    colour : {"channels", "joint"}, optional
        Whether each channel has patches of its own (the default) or a patch has all channels.
    normalise : bool, optional
        Whether the sum is divided by the number of patches, as by default.
    weighted : bool, optional
        Whether the weights w of patches are trained. By default they are 1.
    weights : sequence of float or Parameter, optional
        The weights themselves, one for each patch; they are trained unless they are fixed.
    base : Kernel or str, optional
        The kernel k of patches. By default :class:`RBF`.
    active_dims : sequence of int or str, optional
        The columns of pixels; by default all.
    """

    _type = "convolutional"
    image: Optional[Sequence[int]]
    patch: Optional[Sequence[int]]
    stride: Optional[int]
    colour: Optional[str]
    normalise: Optional[bool]
    weighted: Optional[bool]
    weights: Value
    active_dims: Dims

    def __init__(
        self,
        image: Optional[Sequence[int]] = None,
        patch: Optional[Sequence[int]] = None,
        *,
        stride: Optional[int] = None,
        colour: Optional[str] = None,
        normalise: Optional[bool] = None,
        weighted: Optional[bool] = None,
        weights: Value = None,
        base: Union[None, Kernel, str] = None,
        active_dims: Dims = None,
    ) -> None:
        super().__init__(
            image=image,
            patch=patch,
            stride=stride,
            colour=colour,
            normalise=normalise,
            weighted=weighted,
            weights=weights,
            base=RBF() if base is None else as_kernel(base),
            active_dims=_dims(active_dims),
        )


class Cosine(_Radial):
    """One wave of any phase: σ² cos(2π Σ_d (x_d − x′_d)/ℓ_d). Its lengthscales are wavelengths.

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
    lengthscale_bounds : (float, float) or "fixed", optional
        Bounds of all lengthscales, on the scale of the lengthscales: those of
        :class:`~sparsegp.priors.Parameter` in the spelling of scikit-learn's ``length_scale_bounds``.
    """

    _type = "cosine"


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


class Polynomial(Kernel):
    """Polynomials: (Σ_d σ_d² x_d x′_d + offset)^degree.

    Parameters
    ----------
    degree : int, optional
        By default 3.
    variance : float, sequence of float or Parameter, optional
        One for all input columns or one for each (with ``ard``).
    offset : float or Parameter, optional
        By default from the data.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees; by default all.
    ard : bool, optional
        Whether each input column has a variance of its own.
    """

    _type = "polynomial"
    degree: Optional[int]
    variance: Value
    offset: Scalar
    active_dims: Dims
    ard: Optional[bool]

    def __init__(
        self,
        degree: Optional[int] = None,
        variance: Value = None,
        offset: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
    ) -> None:
        super().__init__(
            degree=degree, variance=variance, offset=offset, active_dims=_dims(active_dims), ard=ard
        )


class ArcCosine(Kernel):
    """A layer of infinitely many steps (order 0), ramps (1) or squared ramps (2): σ² π⁻¹ (s s′)^{n/2} J_n(θ), where
    θ is the angle of x and x′ in ⟨x, x′⟩ = Σ_d w_d x_d x′_d + b, and s = ⟨x, x⟩.

    Parameters
    ----------
    order : {0, 1, 2}, optional
        By default 0.
    variance : float or Parameter, optional
        σ², by default from the data.
    weight_variances : float, sequence of float or Parameter, optional
        w, one for all input columns or one for each (with ``ard``).
    bias_variance : float or Parameter, optional
        b.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees; by default all.
    ard : bool, optional
        Whether each input column has a variance of its own.
    """

    _type = "arccosine"
    order: Optional[int]
    variance: Scalar
    weight_variances: Value
    bias_variance: Scalar
    active_dims: Dims
    ard: Optional[bool]

    def __init__(
        self,
        order: Optional[int] = None,
        variance: Scalar = None,
        weight_variances: Value = None,
        bias_variance: Scalar = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
    ) -> None:
        super().__init__(
            order=order,
            variance=variance,
            weight_variances=weight_variances,
            bias_variance=bias_variance,
            active_dims=_dims(active_dims),
            ard=ard,
        )


class Coregion(Kernel):
    """Covariances (W Wᵀ + diag κ)[i, j] of a column of labels 0, …, ``output_dim`` − 1: which output, site or
    category a row belongs to. Estimators leave that column as it is.

    Parameters
    ----------
    output_dim : int, optional
        How many labels there are; needed unless ``W`` or a list ``kappa`` says it.
    rank : int, optional
        Columns of ``W``, by default 1.
    W : sequence of sequence of float, or Parameter, optional
        One row for each label.
    kappa : float, sequence of float or Parameter, optional
        What is each label's own.
    active_dims : int or str, optional
        The column of labels; needed where there are others.
    """

    _type = "coregion"
    output_dim: Optional[int]
    rank: Optional[int]
    W: Matrix
    kappa: Value
    active_dims: Dims

    def __init__(
        self,
        output_dim: Optional[int] = None,
        rank: Optional[int] = None,
        *,
        W: Matrix = None,
        kappa: Value = None,
        active_dims: Dims = None,
    ) -> None:
        super().__init__(output_dim=output_dim, rank=rank, W=W, kappa=kappa, active_dims=_dims(active_dims))


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


class _Operation(_Composite):
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


class ChangePoints(_Composite):
    """Kernels that take over from one another along one input column: Σ_c w_c(x) k_c(x, x′) w_c(x′), where w_c rises at
    one location and falls at the next as a sigmoid of this steepness.

    Parameters
    ----------
    kernels : sequence of Kernel or str
        At least two; in :meth:`with_params` (and scikit-learn's ``set_params``) ``k1``, ``k2``, ….
    locations : sequence of float or Parameter, optional
        One less than kernels; by default from the data. Estimators standardise inputs: then a value given here
        is in standard deviations from the column's mean.
    steepness : float, sequence of float or Parameter, optional
        One for all locations or one for each; by default from the data.
    active_dims : int or str, optional
        The column along which they change; needed where there are others.
    """

    _type = "changepoints"
    locations: Value
    steepness: Value
    active_dims: Dims

    def __init__(
        self,
        kernels: Sequence[Union[Kernel, str]],
        locations: Value = None,
        steepness: Value = None,
        *,
        active_dims: Dims = None,
    ) -> None:
        super().__init__([as_kernel(kernel) for kernel in kernels])
        Spec.__init__(self, locations=locations, steepness=steepness, active_dims=_dims(active_dims))


_CLASSES: dict[str, type[Kernel]] = {
    c._type: c
    for c in (
        RBF,
        Matern12,
        Matern32,
        Matern52,
        Exponential,
        GammaExponential,
        RationalQuadratic,
        Periodic,
        Convolutional,
        Cosine,
        Linear,
        Polynomial,
        ArcCosine,
        Constant,
        White,
        Coregion,
        ChangePoints,
        Sum,
        Product,
    )
}


def _of(entries: Union[str, dict[str, Any]]) -> Kernel:
    if isinstance(entries, str):
        return as_kernel(entries)
    entries = dict(entries)
    kind = str(entries.pop("type")).lower()
    for entry in entries_of("kernels"):
        if kind in entry["aliases"]:
            kind = entry["name"]
    if kind not in _CLASSES:
        _core.Kernel(json.dumps({"type": kind}), 1)  # the core names the nearest
        raise ValueError(f"the kernel `{kind}` has no class here")
    if "kernels" in entries:
        entries["kernels"] = tuple(_of(part) for part in entries["kernels"])
    if "base" in entries:
        entries["base"] = _of(entries["base"])
    cls = _CLASSES[kind]
    unknown = sorted(set(entries) - set(cls._names()))
    if unknown:
        raise ValueError(
            f"kernel `{kind}`: unknown entry {', '.join(f'`{name}`' for name in unknown)}; "
            f"known: {', '.join(cls._names())}"
        )
    parts = {k: Parameter.of(v) if k not in ("kernels", "base") else v for k, v in entries.items()}
    return cls(**parts)


def as_kernel(spec: Union[Kernel, str, float]) -> Kernel:
    """A kernel from its short form (``"matern52 + linear"``) or JSON; a number is a constant; a kernel stays
    as it is."""
    if isinstance(spec, Kernel):
        return spec
    if isinstance(spec, (int, float, np.integer, np.floating)) and not isinstance(spec, bool):
        return Constant(float(spec))
    if isinstance(spec, str):
        return _of(json.loads(_core.parse_kernel(spec)))
    raise TypeError(f"a kernel is a Kernel or a text such as 'matern52 + linear', not {spec!r}")
