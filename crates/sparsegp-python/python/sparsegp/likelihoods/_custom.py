"""User-defined likelihoods."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Union

import numpy as np

from .. import _own as own
from .._arrays import Array
from ._likelihood import Likelihood

SUPPORTS = ("real", "positive", "counts", "interval", "classes")


class Custom(own.Own, Likelihood):
    """A likelihood of your own: a subclass that says what parameters it has, and computes log densities of arrays.

    >>> import numpy as np
    >>> from sparsegp import likelihoods
    >>> class Cauchy(likelihoods.Custom):
    ...     positive = {"width": 0.3}
    ...     standardises = True
    ...
    ...     def log_density(self, y, f, width):
    ...         return -np.log1p(((y - f) / width) ** 2) - np.log(np.pi * width)
    >>> Cauchy().log_prob(F=[[0.0], [1.0]], Y=[0.3, 0.3]).round(3)
    array([-0.634, -1.804])

    It goes wherever likelihoods of no closed form do: sparse variational methods, and ``tvgp`` for few rows. Expectations over one
    latent function are computed to about seven digits, for many rows in one call: with 41 values of f for each row where the log
    density is smooth, and more where it has a kink or the density is narrow. It must be continuous in f. Expectations over
    several latent functions take ``points`` of Gauss–Hermite for each, which suits smooth log densities.

    Means, quantiles and draws of y come from integrals over its support, some 40,000 evaluations or more for each row; ``moments``
    gives means and variances at once. Predictions are NaN where the density, once learnt, does not integrate to 1. Before a fit
    the density is tried at a few targets: it must be finite and integrate to 1 over y.

    A model file names the class by the path that it is imported from, and where it is loaded the class must be there: put
    it into a module, not into a script or a notebook. Methods may be called from several threads, one at a time, with other
    values of the parameters every time: they must not keep anything in ``self``.

    Attributes
    ----------
    positive, real : dict
        Parameters by name, with the values (or :class:`sparsegp.priors.Parameter`) that they start from, and stay positive or
        may be any number.
    latents : int
        Number K of latent functions, by default 1.
    points : int
        Points of quadrature for each of several latent functions, by default 20: K of them take ``points ** K`` values of f.
    support : str or tuple
        Where y can lie: ``"real"`` (the default), ``"positive"``, ``"counts"``, ``("interval", low, high)`` or
        ``("classes", count)``.
    standardises : bool
        Whether targets may be shifted and scaled, as those of additive noise may. By default not.
    differentiation : {"differences", "jax", "autograd"}
        How slopes are found unless the class defines ``slopes``.
    """

    _type = "python"
    _what = "likelihood"
    _required = "log_density(self, y, f, …)"

    latents: ClassVar[int] = 1
    points: ClassVar[int] = 20
    support: ClassVar[Union[str, tuple[Any, ...]]] = "real"
    standardises: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        where = f"likelihood {cls.__name__}"
        kind, ends = _support(cls.support)
        wanted = {"interval": 2, "classes": 1}.get(kind, 0)
        if kind not in SUPPORTS or len(ends) != wanted:
            raise TypeError(
                f"{where}: support is {cls.support!r}; it must be 'real', 'positive', 'counts', ('interval', low, high) "
                "or ('classes', count)"
            )
        if kind == "interval" and not (all(map(math.isfinite, ends)) and ends[0] < ends[1]):
            raise TypeError(
                f"{where}: an interval goes from one finite number to a larger one, not {cls.support!r}"
            )
        if kind == "classes" and (isinstance(ends[0], bool) or not isinstance(ends[0], int) or ends[0] < 2):
            raise TypeError(f"{where}: the number of classes is a whole number from 2, not {ends[0]!r}")
        for name in ("latents", "points"):
            number = getattr(cls, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise TypeError(f"{where}: {name} is {number!r}; it must be a whole number from 1")

    # what the subclass defines

    def log_density(self, y: Array, f: Array, **parameters: Any) -> Any:
        """log p(y | f) of N pairs, with all constants: ``y`` has N numbers, and so has ``f``, or N×K with K latent functions.
        Parameters come by name."""
        raise NotImplementedError

    def slopes(self, y: Array, f: Array, **parameters: Any) -> Mapping[str, Any]:
        """Slopes of ``log_density`` by name: ``"f"`` (of the shape of ``f``), and N numbers for every parameter. Without it they
        are found as ``differentiation`` says."""
        raise NotImplementedError

    def moments(self, f: Array, **parameters: Any) -> tuple[Any, Any]:
        """Mean and variance of y given ``f``, N numbers each. Without it they are integrals over the support."""
        raise NotImplementedError

    def start(self, y: Array) -> Any:
        """Where the latent functions start, by the known targets: a number, or K of them. By default 0."""
        return np.zeros(self.latents)

    # what the core asks for

    def _about(self) -> str:
        kind, ends = _support(self.support)
        numbers = [*map(float, ends), 0.0, 0.0][:2]
        slopes = self._defines("slopes") or self.differentiation != "differences"
        return json.dumps(
            {
                "latents": self.latents,
                "points": self.points,
                "support": kind,
                "ends": numbers,
                "standardises": self.standardises,
                "has_slopes": slopes,
                "has_moments": self._defines("moments"),
            }
        )

    def _latent(self, f: Array) -> Array:
        return f[:, 0] if self.latents == 1 else f

    def _log_density(self, y: Array, f: Array, numbers: list[Array]) -> Array:
        found = self.log_density(y, self._latent(f), **self._named(numbers))
        return self._array("log_density(y, f)", found, (len(y),))

    def _slopes(self, y: Array, f: Array, numbers: list[Array]) -> tuple[Array, Array]:
        named, latent = self._named(numbers), self._latent(f)
        if self._defines("slopes"):
            found = self.slopes(y, latent, **named)
        else:
            # rows are independent: separate parameters for each give the slope of every row
            ones = np.ones(len(y))
            rows = {name: value * ones for name, value in named.items()}
            value = functools.partial(self.log_density, y)
            found = own.pulled(self.differentiation, value, ones, {"f": latent}, rows)
        self._known("slopes(y, f)", found, (*named, "f"))
        own_slopes = [self._array(f"the slope of {name}", found[name], (len(y),)) for name in named]
        of_f = self._array("the slope of f", found["f"], latent.shape).reshape(len(y), -1)
        return of_f, np.stack(own_slopes, axis=1) if own_slopes else np.zeros((len(y), 0))

    def _moments(self, f: Array, numbers: list[Array]) -> tuple[Array, Array]:
        mean, variance = self.moments(self._latent(f), **self._named(numbers))
        return self._array("the mean", mean, (len(f),)), self._array("the variance", variance, (len(f),))

    def _start(self, y: Array) -> list[float]:
        found = np.atleast_1d(np.asarray(self.start(y), dtype=float))
        return self._array("start(y)", found, (self.latents,)).tolist()  # type: ignore[no-any-return]


def _support(support: Union[str, tuple[Any, ...]]) -> tuple[str, tuple[Any, ...]]:
    if isinstance(support, str):
        return support, ()
    return (str(support[0]), tuple(support[1:])) if support else ("", ())


def made(path: str, options: str) -> Custom:
    """The object of a class by its path, for the core, which keeps the parameters itself."""
    return own.made(Custom, path, options)  # type: ignore[no-any-return]


def slopes_of(likelihood: Any) -> list[str]:
    """A sentence for a user-defined likelihood that does not give its slopes itself."""
    return own.slopes_said(likelihood, "slopes", "log density") if isinstance(likelihood, Custom) else []
