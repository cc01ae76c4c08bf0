"""What user-defined kernels, likelihoods and mean functions share: parameters, and classes by paths."""

from __future__ import annotations

import importlib
import json
import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import numpy as np

from ._arrays import Array
from ._spec import Spec
from .priors import Parameter

# the classes by the paths under which model files know them: one that is defined again takes the place of the old one
_CLASSES: weakref.WeakValueDictionary[str, type[Own]] = weakref.WeakValueDictionary()

_RESERVED = frozenset(
    {"type", "class", "options", "active_dims", "X", "Z", "y", "f", "self", "kernels", "base"}
)


class Own(Spec):
    """A specification whose numbers are computed by a subclass that somebody else writes."""

    # what it is, and what it must define
    _what: ClassVar[str]
    _required: ClassVar[str]
    # parameters that may start from the data
    _from_data: ClassVar[frozenset[str]] = frozenset()
    # arguments of the base that are not parameters
    _further: ClassVar[tuple[str, ...]] = ()

    positive: ClassVar[Mapping[str, Any]] = {}
    real: ClassVar[Mapping[str, Any]] = {}
    per_input: ClassVar[Collection[str]] = ()
    differentiation: ClassVar[str] = "differences"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        where = f"{cls._what} {cls.__name__}"
        both = sorted(set(cls.positive) & set(cls.real))
        if both:
            raise TypeError(f"{where}: {', '.join(both)} is positive or real, not both")
        base = next(own for own in cls.__mro__ if "_type" in own.__dict__)
        for name, start in {**cls.positive, **cls.real}.items():
            if not name.isidentifier() or name in _RESERVED or hasattr(base, name):
                raise TypeError(
                    f"{where}: {name!r} cannot be the name of a parameter, as it has another meaning here: choose another one"
                )
            if start is None and name not in cls._from_data:
                raise TypeError(f"{where}: the parameter {name!r} needs a value to start from")
        unknown = sorted(set(cls.per_input) - set(cls._declared_names()))
        if unknown:
            raise TypeError(f"{where}: per_input names {', '.join(unknown)}, which is not a parameter")
        if cls.differentiation not in ("differences", "jax", "autograd"):
            raise TypeError(
                f"{where}: differentiation is {cls.differentiation!r}; it must be one of "
                "'differences', 'jax', 'autograd'"
            )
        _CLASSES[_path(cls)] = cls

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        if "_type" in cls.__dict__:
            raise TypeError(f"{cls.__name__} is for subclasses, which define `{cls._required}`")
        if not self._defines(cls._required.partition("(")[0]):
            raise TypeError(f"{cls._what} {cls.__name__} does not define `{cls._required}`")
        known = [*cls._declared_names(), *cls._further]
        unknown = sorted(set(values) - set(known))
        if unknown:
            raise TypeError(
                f"{cls.__name__} has no parameter {', '.join(map(repr, unknown))}; it has {', '.join(known) or 'none'}"
            )
        super().__init__(**{name: values.get(name) for name in known})

    def __setattr__(self, name: str, value: object) -> None:
        # a constructor sets its arguments once
        if name in self.__dict__:
            super().__setattr__(name, value)
        Spec.__init__(self, **{name: value})

    def _defines(self, method: str) -> bool:
        """Return whether the subclass defines a method."""
        base = next(cls for cls in type(self).__mro__ if "_type" in cls.__dict__)
        return getattr(type(self), method) is not getattr(base, method)

    @classmethod
    def _declared_names(cls) -> list[str]:
        return [*cls.positive, *cls.real]

    @classmethod
    def _options(cls) -> list[str]:
        taken = (*cls._declared_names(), *cls._further)
        return [name for name in super()._names() if name not in taken]

    @classmethod
    def _names(cls) -> list[str]:
        return [*cls._declared_names(), *cls._options(), *cls._further]

    # what the core asks for

    def _declared(self) -> str:
        """Parameters as the core builds them: name, range, whether there is one for each column, start."""
        declared = []
        for kind, starts in (("positive", self.positive), ("real", self.real)):
            for name, start in starts.items():
                entry = start.to_dict() if isinstance(start, Parameter) else start
                entry = entry.tolist() if isinstance(entry, (np.ndarray, np.generic)) else entry
                declared.append((name, kind, name in self.per_input, entry))
        return json.dumps(declared)

    def _named(self, numbers: list[Array]) -> dict[str, Any]:
        names = self._declared_names()
        return {name: own if name in self.per_input else float(own[0]) for name, own in zip(names, numbers)}

    def _array(self, what: str, found: Any, shape: tuple[int, ...]) -> Array:
        """Numbers that a method gave, of the shape that they must have."""
        array = np.asarray(found)
        where = f"{self._what} {type(self).__name__}: {what}"
        if array.shape != shape:
            raise ValueError(f"{where} has shape {array.shape}; it must be {shape}")
        if array.dtype in (np.float32, np.float16):
            remedy = ': set jax.config.update("jax_enable_x64", True)' if self.differentiation == "jax" else ""
            raise ValueError(f"{where} has {array.dtype} numbers, whose rounding is too large{remedy}")
        if not np.can_cast(array.dtype, np.float64, "same_kind"):
            raise ValueError(f"{where} has {array.dtype} elements; they must be real numbers")
        return np.ascontiguousarray(array, dtype=np.float64)

    def _known(self, what: str, found: Mapping[str, Any], names: Collection[str]) -> None:
        """Refuses slopes by name, as a method gave them, of which some are missing."""
        missing = [name for name in names if name not in found]
        if missing:
            raise ValueError(f"{self._what} {type(self).__name__}: {what} lacks {', '.join(missing)}")

    def _of_parameters(self, found: Mapping[str, Any], named: Mapping[str, Any]) -> Array:
        """Slopes of all parameters, one after the other."""
        slopes = [
            np.atleast_1d(self._array(f"the slope of {name}", found[name], np.shape(value)))
            for name, value in named.items()
        ]
        return np.concatenate(slopes) if slopes else np.zeros(0)

    # specifications

    def to_dict(self) -> dict[str, Any]:
        entries = super().to_dict()
        options = {name: entries.pop(name, None) for name in self._options()}
        entries["class"] = _path(type(self))
        if options:
            entries["options"] = options
            try:
                json.dumps(options)
            except TypeError:
                raise TypeError(
                    f"{self._what} {type(self).__name__}: its arguments {', '.join(options)} must be numbers, texts, or "
                    "lists of these, which model files can hold"
                ) from None
        return entries

    @classmethod
    def _of_entries(cls, entries: dict[str, Any]) -> Any:
        own = dict(entries)
        found = found_class(cls, str(own.pop("class", "")))
        options = own.pop("options", {})
        return found(**options, **{name: Parameter.of(value) for name, value in own.items()})


def _path(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def found_class(base: type[Own], path: str) -> type[Any]:
    """The subclass of a path, imported where it is not known yet."""
    known = _CLASSES.get(path)
    if known is not None and issubclass(known, base):
        return known
    module, _, name = path.partition(":")
    what = base._what
    if not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(f"the class of the {what} is said to be {path!r}, which is not a path to a class")
    if module == "__main__" or "<locals>" in name:
        raise ValueError(
            f"the {what}'s class `{name}` was defined in a {'script or notebook' if module == '__main__' else 'function'}, "
            "from which it cannot be imported: define it again before, or move it to a module and fit again"
        )
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise ValueError(
            f"the {what}'s class `{name}` is in the module `{module}`, which cannot be imported ({error}): install it, or "
            "put its folder on the path (PYTHONPATH)"
        ) from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(
            f"the module `{module}` has no {what} `{name}` (a subclass of {base.__module__.replace('._custom', '')}.Custom)"
        )
    return found


def pulled(
    by: str, value: Callable[..., Any], G: Array, arrays: Mapping[str, Array], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Slopes of ``sum(G * value(*arrays, **named))`` by name, with the package ``by``: jax or autograd."""
    names = list(named)

    def of(everything: tuple[Any, ...]) -> Any:
        count = len(arrays)
        return value(*everything[:count], **dict(zip(names, everything[count:])))

    start = (*arrays.values(), *named.values())
    if by == "jax":
        jax = importlib.import_module("jax")
        found, pull = jax.vjp(of, start)
        (slopes,) = pull(jax.numpy.asarray(G, dtype=found.dtype))
    else:
        pull, _ = importlib.import_module("autograd").make_vjp(of)(start)
        slopes = pull(G)
    return dict(zip([*arrays, *names], slopes))


def slopes_said(part: Own, method: str, of: str) -> list[str]:
    """A sentence for what does not say its slopes by a method itself; ``of`` is what differences are of."""
    if part._defines(method):
        return []
    way = f"central differences of its {of}" if part.differentiation == "differences" else part.differentiation
    return [f"{part._what} {type(part).__name__}: slopes by {way}"]


def made(base: type[Own], path: str, options: str) -> Any:
    """The object of a class by its path, for the core, which keeps the parameters itself."""
    return found_class(base, path)(**json.loads(options))
