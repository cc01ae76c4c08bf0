"""What kernels and likelihoods have in common: small immutable objects that stand for a specification."""

from __future__ import annotations

import inspect
import json
from typing import Any, ClassVar, TypeVar

import numpy as np

from ._hints import hinted
from .priors import Parameter, plain

S = TypeVar("S", bound="Spec")


class Spec:
    """A name with entries, which the core understands as JSON. It cannot be changed; :meth:`replace` makes
    another one."""

    _type: ClassVar[str]
    # the classes by the names that specifications have for them; kernels and likelihoods have one each
    _classes: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_type" in cls.__dict__:
            # a class of somebody else does not take the place of one of ours
            cls._classes.setdefault(cls._type, cls)
        if "__init__" in cls.__dict__:
            # names of other libraries get a hint; the signature stays as it is
            setattr(cls, "__init__", hinted(cls.__dict__["__init__"]))  # noqa: B010 (mypy refuses the assignment)

    def __init__(self, **entries: Any) -> None:
        for name, value in entries.items():
            if isinstance(value, (list, np.ndarray)):
                value = _frozen(plain(value))
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__} cannot be changed; `replace({name}=...)` makes another one"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __sklearn_clone__(self: S) -> S:
        # what cannot be changed needs no copy
        return self

    def __copy__(self: S) -> S:
        return self

    def __deepcopy__(self: S, memo: Any) -> S:
        return self

    @classmethod
    def _names(cls) -> list[str]:
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [p.name for p in parameters if p.name != "self" and p.kind in kinds]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor by name, as scikit-learn's tools ask for them."""
        return {name: getattr(self, name) for name in self._names()}

    def replace(self: S, **changes: Any) -> S:
        """The same with other arguments."""
        params = self.get_params(deep=False)
        kinds = [p.kind for p in inspect.signature(type(self).__init__).parameters.values()]
        unknown = sorted(set(changes) - set(params))
        if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
            raise ValueError(
                f"{type(self).__name__} has no argument {', '.join(map(repr, unknown))}; "
                f"it has {', '.join(params) or 'none'}"
            )
        return type(self)(**{**params, **changes})

    def to_dict(self) -> dict[str, Any]:
        """The specification as model files and the command line write it."""
        entries: dict[str, Any] = {"type": self._type}
        for name, value in self.get_params(deep=False).items():
            if value is not None:
                entries[name] = _entry(value)
        return entries

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(json.dumps(_as_floats(self.to_dict()), sort_keys=True))

    def __repr__(self) -> str:
        given = [
            f"{name}={plain(value)!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not None
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (type(self), self.get_params(deep=False))


def _entry(value: Any) -> Any:
    if isinstance(value, (Parameter, Spec)):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_entry(v) for v in value]
    return plain(value)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value


def _as_floats(value: Any) -> Any:
    """2 and 2.0 are equal, and so must be what is made of them."""
    if isinstance(value, dict):
        return {name: _as_floats(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_floats(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _make(cls: type[Spec], params: dict[str, Any]) -> Spec:
    return cls(**params)
