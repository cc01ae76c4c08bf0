"""Rows as users give them: what is checked of them, and the inputs that they become."""

from __future__ import annotations

import warnings
from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    check_X_y,
    column_or_1d,
    validate_data,
)

from .. import _core
from .._arrays import Array, aligned
from . import _frames, _missing
from ._arguments import kernel_text, level_of_caller
from ._filled import filled_numbers, is_filled_number
from ._holidays import holidays_text
from ._noisy import deviations
from ._parameters import Parameters
from ._places import of_array, points, sources, with_places
from ._refused import cells_named, check_columns


class Rows(Parameters):
    """Inputs, targets and what else a row has, as the core takes them."""

    # whether frames are read as the table of a file is
    _of_file = False
    # the columns of the frame that is learnt from, where some hold no numbers
    _columns: Optional[list[_frames.Column]] = None
    _about: dict[str, Any]
    fitted_: _core.Fitted

    def _inputs(self, X: Any) -> Array:
        check_is_fitted(self, "fitted_")
        x: Array = aligned(self._validated(X, dtype=np.float64, reset=False))
        return x

    def _validated(self, X: Any, *y: Any, reset: bool, **how: Any) -> Any:
        """scikit-learn's checks of inputs, with targets or without."""
        X = _frames.without_index(X)
        for targets in y:
            _frames.refuse_times("y", targets)
        columns = self._about["columns"] if self._of_file and not reset else None
        with cells_named(X, *y, missing=self.missing, columns=columns, fitted=not reset):
            return self._checked(X, *y, reset=reset, **how)

    def _checked(self, X: Any, *y: Any, reset: bool, **how: Any) -> Any:
        """Inputs, with targets or without, whose cells errors do not name yet."""
        if reset:
            self._columns = None
            _missing.check_unknown(self.unknown)
            fill = _missing.fill(self.missing)
            found = _frames.encoded(X, kernel_text(self.kernel), holidays_text(self.holidays), fill)
            if found is None and fill is not None:
                found = _missing.filled_array(X, fill)
            found = with_places(X, found, self.places)
            if found is not None:
                columns, rows, inputs = found
                checked = check_X_y(rows, *y, **how) if y else check_array(rows, **how)
                self.feature_names_in_ = np.array(inputs, dtype=object)
                self.n_features_in_ = len(inputs)
                self._columns = columns
                return checked
        encoded = None if reset else self._encoded(X, new=not y)
        if not reset and encoded is None:
            check_columns(X, list(getattr(self, "feature_names_in_", ())))
        if encoded is None:
            date = _frames.date_column(X)
            if date is not None:
                raise ValueError(_frames.durations(date))
            try:
                return validate_data(self, X, *y, reset=reset, **how)
            except ValueError as error:
                if "could not convert" not in str(error):
                    raise
                column = _frames.text_column(X)
                if column is None and not reset and self._of_file:
                    raise ValueError(
                        f"X is an array with texts: pass a frame with the columns that were learnt from ({error})"
                    ) from error
                if column is None:
                    raise
                raise ValueError(
                    f"column {column!r} holds text, and numbers were learnt from: {error}"
                ) from error
        # these are the model's inputs by name; as an array they would be warned of
        return check_X_y(encoded, *y, **how) if y else check_array(encoded, **how)

    def _encoded(self, X: Any, new: bool) -> Optional[Array]:
        """The inputs, if X is a frame with the columns of the file that was learnt from; `new` to predict at."""
        if not self._of_file:
            return None
        columns = self._about["columns"]
        # standard deviations of inputs are not inputs
        columns = columns[: len(columns) - len(self._about["input_sd"])]
        array = _missing.array_as_learnt(X, columns)
        if array is not None:
            return array
        of_frame = {str(name) for name in _frames.columns_of(X)}
        if len(X) > 0 and not of_frame:
            by_name = of_array(X, columns)
            if by_name is not None:
                X, of_frame = by_name, set(by_name)
        learnt = [name for column in columns for name in sources(column)]
        if not of_frame.issuperset(learnt):
            check_columns(X, learnt, list(self.feature_names_in_))
            return None
        if len(X) == 0:
            return np.empty((0, self.n_features_in_))
        parts = []
        for column in columns:
            name = column["name"]
            of = sources(column)
            if len(of) > 1:
                parts.append(points(*(X[source] for source in of), *of))
                continue
            values = np.asarray(X[name])
            if column["encoding"] == "number" and values.dtype.kind in "mM":
                raise ValueError(_frames.durations(name))
            own = _frames.numbers(values) if is_filled_number(column) else None
            if own is not None:
                values = filled_numbers(column, own)
            elif column["encoding"] != "number":
                _missing.check_unknown(self.unknown)
                ignore = self.unknown == "ignore"
                values = np.array(self.fitted_.encoded(name, _frames.cells(values), new, ignore))
            try:
                parts.append(np.asarray(values, dtype=np.float64).reshape(len(values), -1))
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"column {name!r} holds text, and numbers were learnt from: {error}"
                ) from error
        return np.hstack(parts)

    def _points_of(self, points: Any) -> Array:
        """Inducing points that were given, as inputs; with places as points of the sphere, or as rows of X are."""
        width = np.shape(points)[1:] if np.ndim(points) == 2 else ()
        if self.places is not None and width != (self.n_features_in_,):
            found = with_places(points, None, self.places)
            if found is not None:
                return found[1]
        checked: Array = check_array(points, dtype=np.float64)
        return checked

    def _extra(self, extra: Optional[ArrayLike], rows: int, name: Optional[str]) -> Optional[Array]:
        if extra is None:
            return None
        if name is None:
            raise ValueError("this likelihood takes no extra number per row (noise variance, exposure, trials)")
        _frames.refuse_times(name, extra)
        array = column_or_1d(check_array(extra, ensure_2d=False, dtype=np.float64))
        if len(array) != rows:
            raise ValueError(f"{name} has {len(array)} values for {rows} rows")
        if (array < 0).any() or (name != "noise_variance" and (array == 0).any()):
            least = "at least 0" if name == "noise_variance" else "positive"
            raise ValueError(f"{name} holds {array.min()}; it must be {least}")
        return np.require(array, np.float64, "A")

    def _known_rows(self, X: ArrayLike, y: Any) -> tuple[Array, Array]:
        """Inputs and targets (two-dimensional) as the core takes them."""
        raise NotImplementedError

    def _weights(self, sample_weight: Optional[ArrayLike], x: Array) -> Optional[Array]:
        if sample_weight is None:
            return None
        _frames.refuse_times("sample_weight", sample_weight)
        weights: Array = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        return weights

    def _placed(
        self, X: Any, x_sd: Any, precision: str = "double", *, only_means: bool = False
    ) -> tuple[_core.Fitted, Array]:
        """What predicts at these rows, and the rows as it takes them; means have no products in another precision."""
        x = self._inputs(X)
        for remark in self.fitted_.remarks(x):
            warnings.warn(remark, UserWarning, stacklevel=level_of_caller())
        if precision not in ("double", "mixed"):
            raise ValueError(f"precision is {precision!r}; it must be 'double' or 'mixed'")
        own = dict(self._about["input_sd"])
        columns = {str(name) for name in getattr(X, "columns", [])}
        if x_sd is None and own and columns.issuperset(own.values()):
            # the columns that were named when it was fitted
            x_sd = own
        names = [str(name) for name in self._about["inputs"]]
        found = deviations(x_sd, names, len(x), X)
        if found is None and precision == "double":
            return self.fitted_, x
        if found is None and only_means and self._about["standardises"]:
            self.fitted_.check_mixed_precision()
            return self.fitted_, x
        if found is None:
            core, reason = self.fitted_.in_mixed_precision(x)
            if reason is not None:
                warnings.warn(reason, UserWarning, stacklevel=level_of_caller())
            return core, x
        if precision == "mixed":
            raise ValueError("rows with x_sd are predicted in double precision: leave out precision='mixed'")
        pairs, values = found
        return self.fitted_.with_input_sd(pairs), np.asfortranarray(np.hstack([x, values]))
