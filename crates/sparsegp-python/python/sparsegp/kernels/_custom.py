"""User-defined kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _own as own
from .._arrays import Array
from ._kernel import Dims, Kernel, dims_of


class Custom(own.Own, Kernel):
    """A kernel of your own: a subclass that says what parameters it has, and computes values.

    >>> import numpy as np
    >>> from sparsegp import kernels
    >>> class Cauchy(kernels.Custom):
    ...     positive = {"variance": None, "lengthscale": None, "beta": 0.5}
    ...
    ...     def value(self, X, Z, variance, lengthscale, beta):
    ...         squares = ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2) / lengthscale**2
    ...         return variance * (1 + squares) ** -beta
    >>> kernel = Cauchy(variance=2.0, lengthscale=1.0) + kernels.Linear()
    >>> Cauchy(variance=2.0, lengthscale=1.0).K([[0.0], [1.0]]).round(3)
    array([[2.   , 1.414],
           [1.414, 2.   ]])

    It goes wherever the other kernels do, in sums and products too; what needs more than values (Markov forms, spectral
    densities, inputs with errors) refuses it by name. Estimators standardise inputs, and call ``value`` with standardised
    rows. Before a fit the kernel is tried at a few rows: values that are not finite, not symmetric or not positive
    semi-definite are refused, and so are slopes that are not theirs. :func:`sparsegp.testing.check_kernel` does that in full.

    A model file names the class by the path that it is imported from, and where it is loaded the class must be there: put
    it into a module, not into a script or a notebook.

    Methods may be called from several threads, one at a time, with other values of the parameters every time: they must not
    keep anything in ``self``.

    Attributes
    ----------
    positive, real : dict
        Parameters by name, with the values (or :class:`sparsegp.priors.Parameter`) that they start from, and stay positive or
        may be any number. None for ``"variance"``, ``"lengthscale"`` and ``"lengthscales"`` is a start from the data.
    per_input : collection of str
        The parameters that have a number for each column.
    differentiation : {"differences", "jax", "autograd"}
        How slopes are found unless the class defines ``gradients``: by central differences of ``value``, at the price of two
        evaluations for each number and (where inducing points move) each column; or by one of these packages, of which
        ``value`` then uses the functions.

    Parameters
    ----------
    active_dims : sequence of int or str, optional
        The input columns that the kernel sees, by index or name; by default all.
    **values : float, sequence of float or Parameter
        Where parameters start, by name. A subclass may take further arguments (its own ``__init__`` sets them as attributes of
        the same names): numbers and texts that are not parameters.
    """

    _type = "python"
    _what = "kernel"
    _required = "value(self, X, Z, …)"
    _from_data = frozenset({"variance", "lengthscale", "lengthscales"})
    _further = ("active_dims",)
    active_dims: Dims

    def __init__(self, *, active_dims: Dims = None, **values: Any) -> None:
        super().__init__(active_dims=dims_of(active_dims), **values)

    # what the subclass defines

    def value(self, X: Array, Z: Array, **parameters: Any) -> Any:
        """Covariances N×M of the rows of ``X`` (N×d) and ``Z`` (M×d), which may be the same array. Parameters come by
        name: a float, or an array for those in ``per_input``."""
        raise NotImplementedError

    def diag(self, X: Array, **parameters: Any) -> Any:
        """Variances of the rows of ``X``, N numbers. Without it they are taken from ``value``."""
        raise NotImplementedError

    def gradients(self, G: Array, X: Array, Z: Array, **parameters: Any) -> Mapping[str, Any]:
        """Slopes of ``sum(G * value(X, Z))`` (``G`` is N×M) by name: of every parameter, and ``"X"`` (N×d) and ``"Z"`` (M×d),
        each as if the other were fixed. Without it they are found as ``differentiation`` says."""
        raise NotImplementedError

    # what the core asks for

    def _has_variances(self) -> bool:
        return self._defines("diag")

    def _has_gradients(self) -> bool:
        return self._defines("gradients") or self.differentiation != "differences"

    def _values(self, X: Array, Z: Array, numbers: list[Array]) -> Array:
        found = self._array("value(X, Z)", self.value(X, Z, **self._named(numbers)), (len(X), len(Z)))
        # far more than what rounding does
        if X is Z and found.size and np.any(np.abs(found - found.T) > 1e-6 * np.abs(found).max()):
            raise ValueError(f"kernel {type(self).__name__}: value(X, X) is not symmetric")
        return found

    def _variances(self, X: Array, numbers: list[Array]) -> Array:
        return self._array("diag(X)", self.diag(X, **self._named(numbers)), (len(X),))

    def _pulled(self, G: Array, X: Array, Z: Array, numbers: list[Array]) -> tuple[Array, Array, Array]:
        named = self._named(numbers)
        if self._defines("gradients"):
            found = self.gradients(G, X, Z, **named)
        else:
            arrays = {"X": X, "Z": Z}
            found = own.pulled(self.differentiation, self.value, G, arrays, named)
        self._known("gradients(G, X, Z)", found, (*named, "X", "Z"))
        x, z = (
            self._array(f"the slope of {name}", found[name], rows.shape) for name, rows in (("X", X), ("Z", Z))
        )
        return self._of_parameters(found, named), x, z


def made(path: str, options: str) -> Custom:
    """The object of a class by its path, for the core, which keeps the parameters itself."""
    return own.made(Custom, path, options)  # type: ignore[no-any-return]


def custom_parts(kernel: Kernel) -> list[Custom]:
    """The user-defined kernels that a kernel is made of."""
    if isinstance(kernel, Custom):
        return [kernel]
    inside: Any = [getattr(kernel, "base", None), *getattr(kernel, "kernels", ())]
    return [found for part in inside if isinstance(part, Kernel) for found in custom_parts(part)]


def slopes_of_parts(kernel: Kernel) -> list[str]:
    """A sentence for each user-defined kernel that does not give its slopes itself."""
    return [text for part in custom_parts(kernel) for text in own.slopes_said(part, "gradients", "values")]
