"""The parameters of a model by their paths: what it is made of, its copies and pickles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Optional, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, matrix
from ..kernels import Kernel, as_kernel
from ..likelihoods import Likelihood, as_likelihood
from ..means import Mean
from ..priors import Parameter, Prior

KernelLike = Union[str, Kernel, Sequence[Union[str, Kernel]]]
LikelihoodLike = Union[str, Likelihood]
MeanLike = Union[str, dict[str, Any], Mean]
M = TypeVar("M", bound="Parameters")


class Parameters:
    """Values by path, and how they are read, set, frozen and copied."""

    _model: _core.Model
    _data: Optional[tuple[Array, Array]] = None
    _further: dict[str, Optional[Array]] = {}
    _num_data: Optional[int] = None
    # the specification and the inducing points that it was made of
    _made: Optional[tuple[str, Optional[list[Array]]]] = None

    def __init__(self) -> None:
        raise TypeError("make a GPR, SGPR, SVGP, TSVGP, TVGP or DeepGP")

    @classmethod
    def _of(cls: type[M], model: _core.Model) -> M:
        own = cls.__new__(cls)
        own._model = model
        return own

    def _build(
        self,
        method: str,
        kernel: KernelLike,
        likelihood: LikelihoodLike,
        mean: MeanLike,
        inputs: int,
        outputs: int,
        rows: int = 0,
        points: Optional[list[Array]] = None,
        *,
        whiten: bool = True,
        q_diag: bool = False,
        tying: Optional[str] = None,
        jitter: Optional[float] = None,
        q_mu: Optional[ArrayLike] = None,
        q_sqrt: Optional[ArrayLike] = None,
    ) -> None:
        if isinstance(kernel, (str, Kernel)):
            kernel = [kernel]
        if jitter is not None and not 0 <= jitter < np.inf:
            raise ValueError(f"jitter is {jitter!r}; it must be a number from 0")
        spec = {
            "method": method,
            "kernels": [as_kernel(k).to_json() for k in kernel],
            "likelihood": as_likelihood(likelihood).to_json(),
            "mean": {"type": mean}
            if isinstance(mean, str)
            else mean.to_dict()
            if isinstance(mean, Mean)
            else mean,
            "inputs": inputs,
            "outputs": outputs,
            "rows": rows,
            "whiten": whiten,
            "diagonal": q_diag,
            "tying": tying,
            "jitter": jitter,
        }
        root = None
        if q_sqrt is not None:
            root = np.require(q_sqrt, np.float64, "A")
            root = root[None] if root.ndim == 2 else root
        mu = None if q_mu is None else matrix(q_mu, "q_mu")
        text = json.dumps(spec)
        self._made = (text, points)
        self._model = _core.Model(text, points, mu, root)

    @property
    def parameters(self) -> dict[str, Array]:
        """Constrained values by path; matrices in their shapes, q's roots L×M×M."""
        return {row["path"]: self._model.get(row["path"]) for row in self._table()}

    def _table(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self._model.describe())["parameters"]
        return rows

    def __getitem__(self, path: str) -> Array:
        return self._model.get(path)

    def __setitem__(self, path: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._model.set_prior(path, None if value.prior is None else json.dumps(value.prior.to_dict()))
            self._model.freeze(path, value.fixed)
            if value.value is None:
                return
            value = value.value
        own, given = self[path].shape, np.require(value, np.float64, ["C", "A"])
        # a transposed matrix has the right number of values in the wrong places
        if given.ndim > 1 and [n for n in given.shape if n != 1] != [n for n in own if n != 1]:
            raise ValueError(f"{path} has the shape {own}, not {given.shape}")
        self._model.set(path, given.ravel())

    def freeze(self, group: str) -> None:
        """Excludes from training a parameter, or all whose path begins with ``group``."""
        self._model.freeze(group, True)

    def unfreeze(self, group: str) -> None:
        """Undoes :meth:`freeze`."""
        self._model.freeze(group, False)

    def set_prior(self, path: str, prior: Optional[Prior]) -> None:
        """Gives a parameter a prior (or none)."""
        self._model.set_prior(path, None if prior is None else json.dumps(prior.to_dict()))

    def log_prior(self) -> float:
        """Sum of the log densities of the priors."""
        return self._model.log_prior()

    def copy(self: M) -> M:
        """A separate model with the same parameters."""
        own = type(self)._of(self._model.copy())
        own._data, own._further, own._num_data = self._data, self._further, self._num_data
        own._made = self._made
        return own

    def __getstate__(self) -> dict[str, Any]:
        """For :mod:`pickle` and :func:`copy.deepcopy`: everything, the data that it keeps included."""
        if self._made is None:
            raise TypeError("the model of an estimator has no separate state: pickle or save the estimator")
        rows = [{key: row[key] for key in ("path", "frozen", "prior")} for row in self._table()]
        return {
            "made": self._made,
            "parameters": [(row, self._model.get(row["path"])) for row in rows],
            "data": (self._data, self._further, self._num_data),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._made = state["made"]
        self._data, self._further, self._num_data = state["data"]
        self._model = _core.Model(*state["made"])
        frozen = {row["path"]: row["frozen"] for row in self._table()}
        for row, value in state["parameters"]:
            path, prior = row["path"], row["prior"]
            self[path] = value
            if row["frozen"] != frozen[path]:  # of sites nothing may be said
                self._model.freeze(path, row["frozen"])
            self._model.set_prior(path, None if prior is None else json.dumps(prior))

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ({json.loads(self._model.describe())['method']})"]
        rows = []
        for row in self._table():
            value = self._model.get(row["path"])
            text = np.array2string(value, precision=4, threshold=6) if value.ndim < 2 else ""
            notes = [row["shape"], row["transform"]]
            if row["prior"]:
                notes.append(f"prior {row['prior']['type']}")
            if row["frozen"]:
                notes.append("fixed")
            rows.append((row["path"], text, ", ".join(notes)))
        widths = [max(len(r[i]) for r in rows) for i in range(2)] if rows else [0, 0]
        lines += [f"  {p:<{widths[0]}}  {v:<{widths[1]}}  {n}" for p, v, n in rows]
        return "\n".join(lines)
