"""Mean functions of your own. The built-in ones go by their names: ``mean="zero"``, ``"constant"``, ``"linear"``.

>>> import numpy as np
>>> from sparsegp import GPRegressor, means
>>> class Decay(means.Custom):
...     real = {"height": 1.0}
...     positive = {"rate": 0.5}
...
...     def value(self, X, height, rate):
...         return height * np.exp(-rate * X[:, 0])
>>> X = np.linspace(0.0, 9.0, 40)[:, None]
>>> model = GPRegressor(mean=Decay(), standardise=False).fit(X, 3.0 * np.exp(-0.7 * X[:, 0]))
>>> bool(abs(model.predict([[20.0]])[0]) < 0.1)
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Optional, Union

import numpy as np

from . import _own as own
from ._arrays import Array
from ._spec import Spec

__all__ = ["Custom", "Mean"]


class Mean(Spec):
    """What mean functions of your own have in common."""

    _classes: ClassVar[dict[str, type[Any]]] = {}


class Custom(own.Own, Mean):
    """A mean function of your own: a subclass that says what parameters it has, and computes values.

    It goes wherever mean functions go: ``mean=`` of the estimators and of :mod:`sparsegp.models`. Its parameters are learnt with
    the others, under paths such as ``mean.rate``. Estimators standardise inputs and targets: they call ``value`` with standardised
    rows and take standardised values. For a formula in the data's own units say ``standardise=False``.

    Before a fit the mean function is tried at a few rows: values that are not finite or that depend on the other rows are
    refused, and so are slopes that are not theirs. :func:`sparsegp.testing.check_mean` does that in full.

    A model file names the class by the path that it is imported from, and where it is loaded the class must be there: put
    it into a module, not into a script or a notebook. Methods may be called from several threads, one at a time, with other
    values of the parameters every time: they must not keep anything in ``self``.

    Attributes
    ----------
    positive, real : dict
        Parameters by name, with the values (or :class:`sparsegp.priors.Parameter`) that they start from, and stay positive or
        may be any number.
    per_input : collection of str
        The parameters that have a number for each column.
    outputs : int, optional
        None, the default: ``value`` gives N numbers, which hold for every target column alike. Else the number P of target
        columns (times that of latent functions of each), of which ``value`` gives N×P numbers.
    differentiation : {"differences", "jax", "autograd"}
        How slopes are found unless the class defines ``gradients``: by central differences of ``value``, or by one of these
        packages, of which ``value`` then uses the functions.
    """

    _type = "python"
    _what = "mean function"
    _required = "value(self, X, …)"

    outputs: ClassVar[Optional[int]] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        where = f"mean function {cls.__name__}"
        if cls.outputs is not None and (
            isinstance(cls.outputs, bool) or not isinstance(cls.outputs, int) or cls.outputs < 1
        ):
            raise TypeError(f"{where}: outputs is {cls.outputs!r}; it must be None or a whole number from 1")
        if cls.__name__ in ("zero", "constant", "linear"):
            raise TypeError(f"{where}: there is a mean function of this name; give the class another one")

    # what the subclass defines

    def value(self, X: Array, **parameters: Any) -> Any:
        """Values at the rows of ``X`` (N×D): N numbers, or N×P with ``outputs``. Parameters come by name: a float, or an array
        for those in ``per_input``. A row's value must not depend on the other rows."""
        raise NotImplementedError

    def gradients(self, G: Array, X: Array, **parameters: Any) -> Mapping[str, Any]:
        """Slopes of ``sum(G * value(X))`` (``G`` has the shape of ``value(X)``) by name: of every parameter, and ``"X"`` (N×D).
        Without it they are found as ``differentiation`` says."""
        raise NotImplementedError

    # what the core asks for

    def _has_gradients(self) -> bool:
        return self._defines("gradients") or self.differentiation != "differences"

    def _values(self, X: Array, outputs: int, numbers: list[Array]) -> Array:
        if self.outputs not in (None, outputs):
            raise ValueError(
                f"mean function {type(self).__name__} has {self.outputs} outputs, and {outputs} are needed here"
            )
        shape = (len(X),) if self.outputs is None else (len(X), outputs)
        found = self._array("value(X)", self.value(X, **self._named(numbers)), shape)
        return found if self.outputs else np.repeat(found[:, None], outputs, axis=1)

    def _pulled(self, G: Array, X: Array, numbers: list[Array]) -> tuple[Array, Array]:
        named = self._named(numbers)
        own_g = G if self.outputs else G.sum(axis=1)
        if self._defines("gradients"):
            found = self.gradients(own_g, X, **named)
        else:
            found = own.pulled(self.differentiation, self.value, own_g, {"X": X}, named)
        self._known("gradients(G, X)", found, (*named, "X"))
        x = self._array("the slope of X", found["X"], X.shape)
        return self._of_parameters(found, named), x


def made(path: str, options: str) -> Custom:
    """The object of a class by its path, for the core, which keeps the parameters itself."""
    return own.made(Custom, path, options)  # type: ignore[no-any-return]


def mean_text(mean: Union[None, str, Mean]) -> Optional[str]:
    """A mean function as options have it."""
    return mean.to_json() if isinstance(mean, Mean) else mean


def as_mean(text: str) -> Union[str, Mean]:
    """What :func:`mean_text` wrote: specifications of built-in mean functions stay texts."""
    entries = json.loads(text)
    return Custom._of_entries({k: v for k, v in entries.items() if k != "type"}) if "class" in entries else text


def slopes_of_mean(mean: object) -> list[str]:
    """A sentence for a user-defined mean function that does not give its slopes itself."""
    return own.slopes_said(mean, "gradients", "values") if isinstance(mean, Custom) else []
