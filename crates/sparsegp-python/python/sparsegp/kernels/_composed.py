"""Kernels made of other kernels, beside sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

from .._spec import Spec
from ._kernel import Composite, Dims, Kernel, Value, as_kernel, dims_of
from ._radial import RBF


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
        ``"gpflow"`` has ``r = Σ_d |sin(π (x_d − x′_d)/p_d)|/ℓ_d`` where the base is not :class:`RBF`, as GPflow. With
        more than one column that is not positive definite in general: use it only to compare.
    """

    _type = "periodic"
    period: Value
    form: Optional[str]

    def __init__(
        self, base: Union[None, Kernel, str] = None, period: Value = None, *, form: Optional[str] = None
    ) -> None:
        super().__init__(base=RBF() if base is None else as_kernel(base), period=period, form=form)


class Additive(_WithBase):
    """Functions of one input each and, with ``order``, of two or more: Σ_d v_d e_d(κ₁, …, κ_D)/C(D, d).

    e_d is the sum of the products of d of the one-dimensional kernels ``κ_q = κ(|x_q − x′_q|/ℓ_q)``, C(D, d) their
    number, v_d the variance of order d. Predictions extrapolate along every input by what other rows say of
    it, and have parts for the inputs.

    Parameters
    ----------
    base : Kernel or str, optional
        κ, without values: one of :class:`RBF`, :class:`Matern12`, :class:`Matern32`, :class:`Matern52` and
        :class:`Exponential`. By default :class:`RBF`.
    order : int, optional
        Most inputs that act together, by default 1.
    variances : float, sequence of float or Parameter, optional
        One for each order; by default from the data.
    lengthscales : float, sequence of float or Parameter, optional
        One for all input columns or one for each; by default one for each, from the data.
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees, by index or name; by default all.
    ard : bool, optional
        Whether each input column has its own lengthscale.
    """

    _type = "additive"
    order: Optional[int]
    variances: Value
    lengthscales: Value
    active_dims: Dims
    ard: Optional[bool]

    def __init__(
        self,
        base: Union[None, Kernel, str] = None,
        order: Optional[int] = None,
        variances: Value = None,
        lengthscales: Value = None,
        *,
        active_dims: Dims = None,
        ard: Optional[bool] = None,
    ) -> None:
        super().__init__(
            base=RBF() if base is None else as_kernel(base),
            order=order,
            variances=variances,
            lengthscales=lengthscales,
            active_dims=dims_of(active_dims),
            ard=ard,
        )


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
        Whether each channel has its own patches (the default) or a patch has all channels.
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
            active_dims=dims_of(active_dims),
        )


class Warped(_WithBase):
    """Inputs that are bent by two numbers each before another kernel sees them, so that a function may vary faster at one
    end than at the other: far away w is a line, with slope a on the left and b on the right (Snoek et al. 2014, on logits).

    Parameters
    ----------
    base : Kernel or str, optional
        The kernel of the bent inputs. By default :class:`RBF`.
    a, b : float, sequence of float or Parameter, optional
        One for all columns or one for each; by default one for each, from 1, with a log-normal prior about it.
    location, scale : float, sequence of float or Parameter, optional
        Where columns are bent about, and how wide they are; by default means and standard deviations of the rows, which
        training leaves unchanged.
    active_dims : sequence of int or str, optional
        The input columns that are bent, by index or name; by default all.
    """

    _type = "warped"
    a: Value
    b: Value
    location: Value
    scale: Value
    active_dims: Dims

    def __init__(
        self,
        base: Union[None, Kernel, str] = None,
        a: Value = None,
        b: Value = None,
        *,
        location: Value = None,
        scale: Value = None,
        active_dims: Dims = None,
    ) -> None:
        super().__init__(
            base=RBF() if base is None else as_kernel(base),
            a=a,
            b=b,
            location=location,
            scale=scale,
            active_dims=dims_of(active_dims),
        )


class ChangePoints(Composite):
    """Kernels that take over from one another along one input column: Σ_c w_c(x) k_c(x, x′) w_c(x′), where w_c rises at
    one location and falls at the next as a sigmoid of this steepness.

    Parameters
    ----------
    kernels : sequence of Kernel or str
        At least two; in :meth:`Kernel.with_params` (and scikit-learn's ``set_params``) ``k1``, ``k2``, ….
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
        Spec.__init__(self, locations=locations, steepness=steepness, active_dims=dims_of(active_dims))
