"""Arguments as users give them, in the words of the core."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
from sklearn.utils import check_random_state

from .._registry import entries as entries_of
from ..kernels import Kernel, as_kernel
from ..kernels._kernel import remedy_for
from ..likelihoods import Likelihood

KernelLike = Union[str, Kernel, Sequence[Union[str, Kernel]]]
LikelihoodLike = Union[None, str, Likelihood]
Path = Union[str, "os.PathLike[str]"]


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def level_of_caller() -> int:
    """The ``stacklevel`` with which the caller of this warns at the line outside the package that asked for the work."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def _names(what: str) -> frozenset[str]:
    """Names and aliases of the methods of which the registry says so."""
    methods = entries_of("methods")
    return frozenset(n for m in methods if m[what] for n in (m["name"], *m["aliases"]))


# methods that train q, by minibatches if they are to
_IN_BATCHES = _names("minibatches")


def is_in_batches(method: str) -> bool:
    """Whether a method, with its options as in ``"deep(layers=3)"``, is trained by minibatches."""
    return method.lower().partition("(")[0].strip() in _IN_BATCHES


# methods whose likelihood needs local variables
AUGMENTED = _names("augmented")


def kernel_text(kernel: KernelLike) -> str:
    if isinstance(kernel, Kernel):
        return kernel.to_json()
    if isinstance(kernel, str) and kernel.strip() == "auto":
        return "auto"
    if isinstance(kernel, str):
        return ";".join(as_kernel(part).to_json() for part in kernel.split(";"))
    if isinstance(kernel, (list, tuple)):
        return ";".join(as_kernel(part).to_json() for part in kernel)
    raise TypeError(f"kernel is a Kernel, a text or a list of these, not {kernel!r}{remedy_for(kernel)}")


def seed_of(random_state: Any) -> int:
    """The seed itself where ``random_state`` is one, else one that it draws."""
    if isinstance(random_state, (int, np.integer)):
        if random_state < 0:
            raise ValueError(f"random_state is {random_state}; it must be at least 0")
        return int(random_state)
    return drawn_seed(random_state)


def drawn_seed(random_state: Any) -> int:
    """A seed that ``random_state`` draws."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def names(columns: Any, prefix: str, count: int) -> list[str]:
    if columns is None:
        return [f"{prefix}{i}" for i in range(count)]
    return [str(name) for name in columns]


def target_names(y: Any) -> list[str]:
    """Names of target columns, where y has them."""
    columns = getattr(y, "columns", None)
    if columns is not None and not callable(columns):
        return [str(name) for name in columns]
    name = getattr(y, "name", None)
    return [name] if isinstance(name, str) and name else []


def names_of(**columns: Any) -> dict[str, str]:
    """The names that the columns themselves have."""
    own = {key: target_names(column) for key, column in columns.items()}
    return {key: found[0] for key, found in own.items() if len(found) == 1}


def one_character(name: str, character: str) -> str:
    """A single character."""
    if not isinstance(character, str) or len(character) != 1:
        raise ValueError(f"{name} is {character!r}; it must be one character")
    return character


def texts(name: str, values: Sequence[str]) -> list[str]:
    """Several texts, which a single one is often mistaken for."""
    if isinstance(values, str):
        raise ValueError(f"{name} is the text {values!r}; give a list, such as [{values!r}]")
    return [str(value) for value in values]
