"""Learning from files, which need not fit into memory."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Optional, TypeVar, Union

from sklearn.utils.validation import check_array

from .. import _core
from .._arrays import aligned
from .._progress import watching
from . import _missing
from ._arguments import Path, one_character, texts
from ._holidays import rows_of_holidays
from ._learnt import Learnt

T = TypeVar("T", bound="FromTables")


class FromTables(Learnt):
    """Learning from files."""

    def fit_file(
        self: T,
        path: Path,
        target: Union[str, Sequence[str]],
        *,
        features: Optional[Sequence[str]] = None,
        ignore: Sequence[str] = (),
        sample_weight: Optional[str] = None,
        further: Optional[str] = None,
        missing: Optional[str] = None,
        stream: Optional[bool] = None,
        categorical: Sequence[str] = (),
        decimal: str = ".",
        thousands: Optional[str] = None,
        missing_words: Sequence[str] = (),
        kept_words: Sequence[str] = (),
        date_format: Union[str, Sequence[str]] = (),
        levels: Sequence[str] = (),
        encoding: Optional[str] = None,
        input_sd: Optional[dict[str, str]] = None,
    ) -> T:
        """Learns from a CSV (plain or gzip) or Parquet file, which need not fit into memory.

        Parameters
        ----------
        path : str or path
            A file, or a folder or pattern such as ``"rows/*.parquet"`` for several files as one table; folders called
            ``year=2024`` give their rows a column ``year``.
        target : str or sequence of str
            Columns to learn.
        features : sequence of str, optional
            Input columns; by default all others.
        ignore : sequence of str
            Columns that are not inputs.
        sample_weight, further : str, optional
            Column of weights, and of the extra number of every row: noise variance, exposure, trials.
        missing : {"refuse", "drop", "keep", "mean", "indicator", "category"}, optional
            What to do with missing cells; by default what the estimator was made with.
        stream : bool, optional
            Whether to read the file again and again, in bounded memory; by default for more than 1 GB. Minibatches
            come from all over the file, unless it is compressed by gzip: that is read in order.
        categorical : sequence of str
            Input columns that are categories although they look like numbers, dates or names. Other columns of words are,
            without being named.
        decimal : {".", ","}
            Decimal separator of the numbers in a file of text.
        thousands : {",", ".", "'", " "}, optional
            Separator between groups of three digits.
        missing_words : sequence of str
            Words that mean a missing value, beside the usual ones (``NA``, ``N/A``, ``null``, ``None``, ``?``; among numbers
            also ``-``, ``.``, ``#DIV/0!`` and the like).
        kept_words : sequence of str
            Words that are categories or classes, although they mean a missing value otherwise, such as ``"NA"`` or
            ``"None"``; ``"*"`` for all. Among numbers they mean it still.
        date_format : str or sequence of str
            Formats of dates such as ``"%d/%m/%Y"``, or ``"column=%d/%m/%Y"`` for one column. Dates such as 2024-12-31 need
            none.
        levels : sequence of str
            Classes of the target in their order, lowest first, for the likelihood ``"ordinal"``; they need not all occur.
        encoding : str, optional
            Encoding of a text file that is not UTF-8 and has no byte order mark, such as ``"latin1"``.
        input_sd : dict, optional
            Columns with the standard deviations of the errors of inputs, ``{"depth": "depth_sd"}``: see ``x_sd`` of
            :meth:`GPRegressor.fit`. Frames that have these columns are predicted with them.

        Notes
        -----
        A column of numbers stays one where some cells are words: those that mean a missing value are counted as such, others
        are an error that names the cell. Text that looks like numbers or dates in another notation, and text that differs in
        nearly every row, is refused with the argument that would read it.

        Dates become days since 1970-01-01, categories one input each (`colour=red`; of two only the
        second; one column of codes for a kernel that reads labels), at most 100 of a column:
        `feature_names_in_` has the names. What uses the model takes these inputs, or a frame with
        the columns of the file.

        Returns
        -------
        self
        """
        missing = self.missing if missing is None else missing
        _missing.check(missing)
        targets = [target] if isinstance(target, str) else list(target)
        if len(levels) > 0 and not self._labels:
            raise ValueError(
                "levels are the classes of a GPClassifier, such as GPClassifier(likelihood='ordinal')"
            )
        self._columns = None
        likelihood = self._spec()
        columns: dict[str, Any] = {
            "targets": targets,
            "inputs": None if features is None else list(features),
            "ignore": list(ignore),
            "weight": sample_weight,
            "extra": further,
            "labels": self._labels,
            "stream": None if stream is None else bool(stream),
            "missing": missing,
            "standardise": bool(self.standardise),
            "categorical": texts("categorical", categorical),
            "levels": texts("levels", levels),
            "decimal": one_character("decimal", decimal),
            "thousands": None if thousands is None else one_character("thousands", thousands),
            "missing_words": texts("missing_words", missing_words),
            "kept_words": texts("kept_words", kept_words),
            "encoding": encoding,
            "input_sd": [] if input_sd is None else [[str(k), str(v)] for k, v in input_sd.items()],
            "holidays": rows_of_holidays(self.holidays),
            "places": [] if self.places is None else [[str(own) for own in pair] for pair in self.places],
            "date_formats": [date_format] if isinstance(date_format, str) else list(date_format),
        }
        options = self._options(likelihood, self._seed())
        if self.early_stopping:
            options["method"] = self._stops_early(likelihood, further is None and not self._labels)
            columns["aside"] = self.early_stopping
        with watching(self._progress(), self.callback) as seen:
            fitted, error = _core.fit_table(
                os.fspath(path),
                json.dumps(options),
                json.dumps(columns),
                points=None if isinstance(self.inducing, str) else aligned(check_array(self.inducing)),
                callback=seen,
            )
        self._keep(fitted, error, of_file=True, options=options)
        return self
