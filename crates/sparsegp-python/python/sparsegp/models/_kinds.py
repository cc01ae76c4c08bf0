"""Models that keep their data, or have a q that is trained."""

from __future__ import annotations

from typing import Optional

from numpy.typing import ArrayLike

from .._arrays import matrix, vector
from ._model import Model
from ._training import Data, targets_of


class Kept(Model):
    """Models that keep their data."""

    def _keep(
        self,
        data: Data,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> tuple[int, int, int]:
        # its own: what happens to the arrays later is not of the model
        x, y = matrix(data[0]).copy(), targets_of(data[1]).copy()
        further = {"extra": vector(extra, "extra"), "weights": vector(weights, "weights")}
        self._further = {name: None if v is None else v.copy() for name, v in further.items()}
        if len(x) != len(y):
            raise ValueError(f"X has {len(x)} rows, Y has {len(y)}")
        self._data = (x, y)
        return x.shape[1], y.shape[1], len(x)


class WithQ(Model):
    """Models with a q that is trained."""

    def natural_gradient_step(
        self,
        data: Optional[Data] = None,
        rate: float = 1.0,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> float:
        """Moves q by a natural-gradient step of size 0 < ``rate`` ≤ 1. Returns the bound before it.

        Raises
        ------
        sparsegp.NumericalError
            If the step leads to no covariance or no finite bound; q stays then, and a shorter step may do.
        """
        x, y, further = self._rows(data, extra, weights)
        return self._model.natural_gradient_step(x, y, rate, **further)
