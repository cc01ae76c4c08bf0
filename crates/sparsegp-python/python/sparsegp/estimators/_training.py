"""Learning from rows in memory: all at once, part by part, and taking up new ones."""

from __future__ import annotations

import json
from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .. import _core
from .._arrays import Array, aligned, whole
from .._hints import hint
from .._progress import watch, watching
from ._arguments import LikelihoodLike, is_in_batches, names
from ._learnt import Learnt
from ._noisy import deviations


class Trained(Learnt):
    """Learning from rows in memory."""

    # how new rows are taken up, while they are
    _taking_up: Optional[dict[str, Any]] = None

    def _learn(
        self,
        X: Array,
        Y: Array,
        *,
        weights: Optional[Array],
        extra: Optional[Array],
        targets: list[str],
        classes: Optional[list[str]] = None,
        likelihood: LikelihoodLike,
        method: Optional[str] = None,
        names_of: Optional[dict[str, str]] = None,
        part: bool = False,
        count: Optional[int] = None,
        x_sd: Any = None,
        frame: Any = None,
    ) -> None:
        X, Y, weights = aligned(X), aligned(Y), aligned(weights)
        seed = self._seed()
        options = self._options(likelihood, seed)
        if self.early_stopping:
            own = self._stops_early(likelihood, classes is None and extra is None)
            method = own if method is None else method
        if method is not None:
            options["method"] = method
        if self.online and not part and self.n_inducing is None and isinstance(self.inducing, str):
            # what later rows are taken up by
            count = min(512, len(X))
        if count is not None:
            options["n_inducing"] = count
        columns: dict[str, Any] = {
            "inputs": names(getattr(self, "feature_names_in_", None), "x", X.shape[1]),
            "targets": targets,
            "standardise": bool(self.standardise),
            "part": part,
            **(names_of or {}),
        }
        if classes is not None:
            columns["classes"] = classes
        if self._columns is not None:
            columns["columns"] = self._columns
        noisy = deviations(x_sd, columns["inputs"], len(X), frame)
        if noisy is not None and self.early_stopping:
            raise ValueError("x_sd is not for training by minibatches: leave early_stopping out")
        points = None
        if not isinstance(self.inducing, str):
            points = aligned(self._points_of(self.inducing))
        held_out = None
        if self.early_stopping:
            # rows of weight 0 are as good as absent
            counted = np.arange(len(X)) if weights is None else np.flatnonzero(weights)
            chosen = np.random.RandomState(seed).permutation(counted)
            aside = chosen[: max(1, round(self.early_stopping * len(chosen)))]
            kept = np.setdiff1d(chosen, aside)
            held_out = (
                X[aside],
                Y[aside],
                None if weights is None else weights[aside],
                None if extra is None else extra[aside],
            )
            X, Y = X[kept], Y[kept]
            weights = None if weights is None else weights[kept]
            extra = None if extra is None else extra[kept]
        with watching(self._progress(), self.callback) as seen:
            fitted, error = _core.fit(
                X,
                Y,
                json.dumps(options),
                json.dumps(columns),
                weights=weights,
                extra=extra,
                points=points,
                held_out=held_out,
                deviations=noisy,
                callback=seen,
            )
        if fitted is not None:
            self._of_file = self._columns is not None
        self._keep(fitted, error, options=options)

    def update(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        correlation: float = 0.8,
        most_points: Optional[int] = None,
        forget: float = 1.0,
        train: int = 0,
        train_points: bool = False,
        keep_rows: Optional[int] = None,
        **rows: Any,
    ) -> Any:
        """Takes up new rows and keeps what old ones said, without the old ones, in one pass.

        The posterior becomes that of old and new rows together (streaming sparse GPs; Bui, Nguyen and Turner 2017), for
        Gaussian noise and inducing points that stay exactly. Scales stay as they were, and kernel and noise too without
        ``train``: ``fit`` again when they no longer suit. Every call counts its rows once more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or (n_samples, n_outputs) where ``fit`` takes that
        correlation : float, default=0.8
            A new row becomes an inducing point where its prior correlation with all of them is below this; 0 for none.
        most_points : int, optional
            Most inducing points; by default the model's number or 512, whichever is more.
        forget : float, default=1.0
            What is left of what old rows said, above 0: 1 forgets nothing.
        train : int, default=0
            Most iterations on kernel and noise, with what old rows said held; 0 keeps them.
        train_points : bool, default=False
            Whether these iterations move the inducing points too.
        keep_rows : int, optional
            How many of its latest rows a model of method ``"markov"`` keeps, at least; by default, and with 0, all. Of those
            before it keeps what they say of later times, so that predictions from there on are those of all rows; earlier times
            are refused.
        **rows
            What ``partial_fit`` takes beside ``X`` and ``y``, such as ``sample_weight``.

        Returns
        -------
        self
            With ``update_report_``: rows, inducing points (or rows that are kept), new ones among them, rows far from all of
            them, rows that have left (``keep_rows``), and ``bound``, about log p(new rows | old rows) in nats.
        """
        check_is_fitted(self)
        self._taking_up = dict(
            correlation=correlation,
            most_points=most_points,
            forget=forget,
            train=whole("train", train, 0),
            train_points=bool(train_points),
            keep_rows=None if keep_rows is None else whole("keep_rows", keep_rows, 0),
        )
        try:
            self.partial_fit(X, y, **rows)  # type: ignore[attr-defined]
        finally:
            del self._taking_up
        return self

    def _learn_more(
        self,
        X: Array,
        Y: Array,
        *,
        weights: Optional[Array],
        extra: Optional[Array],
        targets: list[str],
        classes: Optional[list[str]] = None,
        likelihood: LikelihoodLike,
        names_of: Optional[dict[str, str]] = None,
    ) -> None:
        """Learns from one more part of the rows."""
        first = not hasattr(self, "fitted_")
        if not first and self._about["input_sd"]:
            raise ValueError(
                "a model of inputs with standard deviations takes up no further rows: refit it to all rows"
            )
        if not first and self.relative_weights and weights is not None and (weights > 0).any():
            weights = weights / weights[weights > 0].mean()
        taking_up = self._taking_up
        if not first and taking_up is None and (self.online or not is_in_batches(self.method_)):
            # what was learnt from all rows at once is kept, and new rows are added to it
            taking_up = self._online()
        if taking_up is not None:
            fitted, report, error = _core.update(
                self.fitted_,
                aligned(X),
                aligned(Y),
                weights=aligned(weights),
                extra=extra,
                **taking_up,
            )
            self._keep(fitted, error)
            self.update_report_ = json.loads(report)
            self.n_samples_seen_ = self._about["rows"]
            return
        begin: dict[str, Any] = {}
        if self.online:
            # a later part may lie elsewhere: points, and more of them than rows there are now
            self._online()
            begin["count"] = (
                min(100, len(X)) if self.n_inducing is None and isinstance(self.inducing, str) else None
            )
        if first:
            if not self.online:
                begin["method"] = self._in_batches(likelihood, classes is None and extra is None, "partial_fit")
            self._learn(
                X,
                Y,
                weights=weights,
                extra=extra,
                targets=targets,
                classes=classes,
                likelihood=likelihood,
                names_of=names_of,
                part=True,
                **begin,
            )
            self.n_samples_seen_ = len(X)
            return
        seen = getattr(self, "n_samples_seen_", self._about["rows"]) + len(X)
        options = self._options(None, self._seed() + seen)
        own = ("random_state", "batch_size", "learning_rate", "natural_rate", "time_limit")
        chosen = {name: options[name] for name in own if name in options}
        # a part may be small: steps that one of them can bear
        chosen.setdefault("learning_rate", 0.005)
        chosen.update(last_rate=1.0, epochs=self.epochs or 1)
        fitted, error = _core.go_on(
            self.fitted_,
            aligned(X),
            aligned(Y),
            json.dumps(chosen),
            population=seen,
            weights=aligned(weights),
            extra=extra,
            callback=watch(None, self.callback),
        )
        self._keep(fitted, error)
        self.n_samples_seen_ = seen

    def _online(self) -> dict[str, Any]:
        """The options of updates."""
        options = {
            "correlation": 0.8,
            "most_points": None,
            "forget": 1.0,
            "train": 0,
            "train_points": False,
            "keep_rows": None,
        }
        if isinstance(self.online, dict):
            for name in self.online:
                if name not in options:
                    raise ValueError(f"online has no option {name!r}: {hint(name, list(options))}")
            options.update(self.online)
        return options
