"""Constructors and modules that know how other libraries call things."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import Any, Callable, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

# what else a name may be called, the first that the constructor has
_FOREIGN: dict[str, tuple[str, ...]] = {
    "optimizer": ("optimiser",),
    "standardize": ("standardise",),
    "normalize": ("standardise",),
    "normalize_y": ("standardise",),
    "lengthscale": ("lengthscales", "kernel"),
    "length_scale": ("lengthscales", "kernel"),
    "ls": ("lengthscales", "kernel"),
    "outputscale": ("variance", "kernel"),
    "alpha": ("noise_variance", "likelihood"),
    "noise": ("noise_variance", "likelihood"),
    "noise_variance": ("likelihood",),
    "max_iters": ("max_iter",),
    "maxiter": ("max_iter",),
    "n_iter": ("max_iter",),
    "iterations": ("max_iter",),
    "num_inducing": ("n_inducing",),
    "inducing_points": ("inducing",),
    "inducing_variable": ("inducing",),
    "lr": ("learning_rate",),
    "minibatch_size": ("batch_size",),
    "n_restarts": ("n_restarts_optimizer",),
    "num_restarts": ("n_restarts_optimizer",),
    "seed": ("random_state",),
    "tolerance": ("tol",),
    "mean_function": ("mean",),
    "return_interval": ("return_quantiles", "return_std"),
    "return_intervals": ("return_quantiles", "return_std"),
    "return_var": ("return_std",),
    "return_variance": ("return_std",),
}
# the same of classes
_CLASSES = {
    "GaussianProcessRegressor": "sparsegp.GPRegressor",
    "GaussianProcessClassifier": "sparsegp.GPClassifier",
    "GPR": "sparsegp.models.GPR",
    "SGPR": "sparsegp.models.SGPR",
    "SVGP": "sparsegp.models.SVGP",
    "VGP": "sparsegp.models.TVGP",
    "DeepGP": "sparsegp.models.DeepGP",
    "Matern": "Matern12, Matern32 or Matern52, of nu = 0.5, 1.5 and 2.5",
    "WhiteKernel": "White",
    "ConstantKernel": "Constant",
    "DotProduct": "Linear",
    "ExpSineSquared": "Periodic",
}
# how to say it where the argument is of another kind
_HOW = {
    "kernel": "give it to the kernel, as in kernel='rbf(lengthscales=0.5)'",
    "likelihood": (
        "the likelihood has it, as in likelihood='gaussian(variance=0.1)'; a known variance of each row goes to fit"
    ),
}


def hint(name: str, known: list[str]) -> str:
    """What somebody may have meant who wrote a name that is not known."""
    for other in _FOREIGN.get(name, ()):
        if other in known:
            return _HOW.get(other, f"it is called {other!r} here")
    near = difflib.get_close_matches(name, known, 1, 0.7)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"


def no_attribute(module: str, name: str, known: list[str]) -> AttributeError:
    """The error for a name that a module lacks, with what somebody may have meant."""
    text = f"module {module!r} has no attribute {name!r}"
    near = difflib.get_close_matches(name, known, 1, 0.7)
    if name in _CLASSES:
        return AttributeError(f"{text}: it is {_CLASSES[name]}")
    return AttributeError(f"{text}; did you mean {near[0]!r}?" if near else text)


def hinted(init: F) -> F:
    """A constructor or method whose error for an unknown argument says what it is called here."""
    parameters = list(inspect.signature(init).parameters.values())[1:]
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return init
    known = [p.name for p in parameters if p.kind is not inspect.Parameter.VAR_POSITIONAL]

    @functools.wraps(init)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                what = type(self).__name__ + ("" if init.__name__ == "__init__" else f".{init.__name__}")
                raise TypeError(f"{what} has no argument {name!r}: {hint(name, known)}")
        return init(self, *args, **kwargs)

    return cast(F, wrapped)
