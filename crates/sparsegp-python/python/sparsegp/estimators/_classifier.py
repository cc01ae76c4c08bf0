"""The classifier."""

from __future__ import annotations

from typing import Any, Optional, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._arrays import Array, whole
from .._core import NumericalError
from ..likelihoods import as_likelihood
from . import _frames, _missing
from ._arguments import AUGMENTED, drawn_seed, target_names
from ._base import BaseGP
from ._documentation import document
from ._saving import in_files

C = TypeVar("C", bound="GPClassifier")


def texts(classes: NDArray[Any]) -> list[str]:
    """Labels as a model file keeps them."""
    if classes.dtype.kind == "b":
        return ["true" if label else "false" for label in classes]
    return [str(label) for label in classes.tolist()]


def _refuse_missing(y: Any) -> None:
    """Refuses labels among which some are missing, by the row of the first."""
    labels = np.asarray(_frames.checked(y, "y"))
    if labels.dtype != object or labels.ndim == 0:
        return

    def missing(label: Any) -> bool:
        return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)

    rows = [i for i, label in enumerate(labels.ravel()) if missing(label)]
    if rows:
        others = "" if len(rows) == 1 else f" and {len(rows) - 1} more"
        raise ValueError(
            f"y holds no label in row {rows[0]}{others} ({labels.ravel()[rows[0]]!r}): leave such rows out of X and y"
        )


def levels(y: Any) -> Optional[list[Any]]:
    """The categories of an ordered categorical of pandas or an Enum of Polars, in their order; none of other labels."""
    dtype = getattr(y, "dtype", None)
    categories = getattr(dtype, "categories", None)
    if categories is None or not (getattr(dtype, "ordered", False) or str(dtype).startswith("Enum")):
        return None
    return list(categories)


@in_files("classes")
@document
class GPClassifier(ClassifierMixin, BaseGP):
    """Gaussian-process classification of two or more classes.

    The likelihood is ``"bernoulli"`` (probit) for two classes and ``"softmax"`` for more, unless
    ``likelihood`` says otherwise: ``"bernoulli(link=logit)"``, ``"robust-max"``, ``"logistic-softmax"``.
    After ``fit``, ``classes_`` are the labels in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegp import GPClassifier
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = GPClassifier().fit(X, np.where(np.sin(X[:, 0]) > 0, "up", "down"))
    >>> print(model.predict([[1.5], [4.5]]))
    ['up' 'down']
    """

    _labels = True

    def _rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike], first: bool
    ) -> tuple[Array, NDArray[Any], Optional[Array]]:
        _refuse_missing(y)
        found: tuple[Array, NDArray[Any]] = self._validated(
            X, y, dtype=np.float64, reset=first, ensure_min_samples=2 if first else 1
        )
        x, labels = found
        check_classification_targets(labels)
        labels = column_or_1d(labels, warn=True)
        weights = self._weights(sample_weight, x)
        return x, labels, weights

    def _codes(self, y: NDArray[Any]) -> Array:
        order = np.argsort(self.classes_, kind="stable")
        places = np.searchsorted(self.classes_[order], y)
        codes = order[np.minimum(places, len(order) - 1)]
        known = self.classes_[codes] == y
        if not np.all(known):
            raise ValueError(f"y holds the class {y[~known][0]!r}, which is none of {self.classes_}")
        return codes.astype(np.float64)[:, None]

    def _codes_of(self, y: Any) -> Array:
        _refuse_missing(y)
        return self._codes(column_or_1d(y))

    def _known_rows(self, X: ArrayLike, y: Any) -> tuple[Array, Array]:
        return self._inputs(X), self._codes_of(y)

    def fit(self: C, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike] = None) -> C:
        """Learns from rows. An interrupted training (Ctrl-C) keeps the best state found, and raises.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Arrays, pandas and Polars frames, Arrow tables. Texts, categories and dates of frames become inputs as those of
            files do (:meth:`fit_file`); truth values are 0 and 1.
        y : array-like of shape (n_samples,)
            Labels: numbers, texts or truth values. An ordered categorical of pandas, or an Enum of Polars, gives the classes
            and their order, also of those that do not occur; for the likelihood ``"ordinal"`` texts need one.
        sample_weight : array-like of shape (n_samples,), optional
            How often the term of a row counts.

        Returns
        -------
        self
        """
        name = (target_names(y) or ["y"])[0]
        X, y, sample_weight = _missing.complete(self.missing, X, y, sample_weight)
        x, labels, weights = self._rows(X, y, sample_weight, True)
        found = levels(y)
        classes = np.unique(labels) if found is None else np.array(found, dtype=labels.dtype)
        return self._fit_labels(x, labels, weights, classes, name, partial=False, ordered=found is not None)

    def _fit_labels(
        self: C,
        x: Array,
        labels: NDArray[Any],
        weights: Optional[Array],
        classes: NDArray[Any],
        name: str,
        partial: bool,
        ordered: bool = False,
    ) -> C:
        if len(classes) < 2:
            only = classes.tolist()[0]
            raise ValueError(f"y holds one class only, {only!r}: a classifier needs at least two classes")
        self.classes_ = classes
        likelihood = self.likelihood
        if likelihood is None:
            augmented = self.method.lower() in AUGMENTED
            if len(classes) == 2:
                likelihood = "bernoulli(link=logit)" if augmented else "bernoulli"
            else:
                softmax = "logistic-softmax" if augmented else "softmax"
                likelihood = f"{softmax}(classes={len(classes)})"
        else:
            spec = as_likelihood(likelihood)
            if "classes" in spec.get_params() and getattr(spec, "classes", None) is None:
                likelihood = spec.replace(classes=len(classes))
            if (
                spec._type == "ordinal"
                and not ordered
                and len(classes) > 2
                and not np.issubdtype(classes.dtype, np.number)
            ):
                shown = [str(label) for label in classes[:6]]
                raise ValueError(
                    f"the levels of y are texts, whose order is not known ({', '.join(map(repr, shown))}): give y as an ordered "
                    f"categorical, such as pandas.Categorical(y, categories={shown}, ordered=True) with the lowest first, "
                    "or as an Enum of Polars"
                )
            found = as_likelihood(likelihood).num_classes
            if found is None:
                raise ValueError(f"the likelihood {self.likelihood!r} is none of classes")
            if found < len(classes):
                raise ValueError(
                    f"the likelihood {self.likelihood!r} is of {found} classes; y has {len(classes)}"
                )
        learn = self._learn_more if partial else self._learn
        learn(
            x,
            self._codes(labels),
            weights=weights,
            extra=None,
            targets=[name],
            classes=texts(classes),
            likelihood=likelihood,
        )
        return self

    def partial_fit(
        self: C,
        X: ArrayLike,
        y: ArrayLike,
        classes: Optional[ArrayLike] = None,
        sample_weight: Optional[ArrayLike] = None,
    ) -> C:
        """Learns from one more part of the rows: the first call fits, later ones make a pass over the
        new rows (``epochs`` passes), which stand for all rows seen so far. With ``online`` later calls keep what all
        rows before said, and train nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All labels that there will be; needed in the first call if that has not all of them.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "fitted_")
        name = (target_names(y) or ["y"])[0]
        X, y, sample_weight = _missing.complete(self.missing, X, y, sample_weight)
        x, labels, weights = self._rows(X, y, sample_weight, first)
        if first:
            known = np.unique(labels) if classes is None else np.unique(np.asarray(classes))
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
                raise ValueError(f"classes are {classes}; in the first call they were {known}")
        return self._fit_labels(x, labels, weights, known, name, partial=True)

    def predict_proba(self, X: ArrayLike, x_sd: Any = None, precision: str = "double") -> Array:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        x_sd : array-like of shape (n_samples, n_features), or dict, optional
            Standard deviations of the inputs, 0 where they are known exactly; a dict has those of some features, by name or
            place. Probabilities are averages over the inputs.
        precision : {"double", "mixed"}
            What products of rows with inducing points are made in (see :meth:`GPRegressor.predict`).

        Returns
        -------
        array of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        core, x = self._placed(X, x_sd, precision)
        return core.predict_proba(x)

    def predict(self, X: ArrayLike, x_sd: Any = None, precision: str = "double") -> NDArray[Any]:
        """The most probable class of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        x_sd : array-like of shape (n_samples, n_features), or dict, optional
            See :meth:`predict_proba`.
        precision : {"double", "mixed"}
            See :meth:`predict_proba`.

        Returns
        -------
        array of shape (n_samples,)

        Raises
        ------
        sparsegp.NumericalError
            If the probabilities of a row are not numbers.
        """
        # whoever overrides it need not know of deviations and precisions
        further = {} if x_sd is None else {"x_sd": x_sd}
        further.update({} if precision == "double" else {"precision": precision})
        probabilities = self.predict_proba(X, **further)
        lost = np.flatnonzero(np.isnan(probabilities).any(axis=1))
        if lost.size:
            raise NumericalError(f"the probabilities of row {lost[0]} are not numbers: no class is the largest")
        return self.classes_[np.argmax(probabilities, axis=1)]  # type: ignore[no-any-return]

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> Array:
        """log p(y | X, training data) of every row: the logarithm of the probability of its class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        array of shape (n_samples,)
        """
        x = self._inputs(X)
        return self.fitted_.log_density(x, self._codes_of(y))

    def loo(self, X: ArrayLike, y: ArrayLike, sample_weight: Optional[ArrayLike] = None) -> Array:
        """Leave-one-out: log p(y | X, the other rows) of every training row, without refitting (at the
        hyperparameters found, by the model's own approximation).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the training.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        array of shape (n_samples,)

        Raises
        ------
        ValueError
            If the rows are not those of the training, as far as can be checked.
        """
        x = self._inputs(X)
        weights = self._weights(sample_weight, x)
        return self.fitted_.leave_one_out(x, self._codes_of(y), weights=weights)[2][:, 0]

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0) -> NDArray[Any]:
        """Joint draws of labels.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
        n_samples : int
            Number of draws.
        random_state : int, RandomState instance or None

        Returns
        -------
        array of shape (n_samples_X, n_samples)
        """
        seed = drawn_seed(random_state)
        x = self._inputs(X)
        draws = self.fitted_.sample_y(x, whole("n_samples", n_samples, 1), seed)
        return self.classes_[draws[:, :, 0].T.astype(int)]  # type: ignore[no-any-return]

    def _annotated(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "dtype": self.classes_.dtype.str}

    def _restore(self, about: dict[str, Any]) -> None:
        super()._restore(about)
        if "classes" in about:
            self.classes_ = np.array(about["classes"], dtype=np.dtype(about["dtype"]))
            return
        labels = self._about["classes"] or [str(i) for i in range(self._about["class_count"])]
        self.classes_ = labels_of(labels)


def labels_of(labels: list[str]) -> NDArray[Any]:
    """Labels that another program kept as texts: numbers and truth values where all of them give the texts back."""
    if sorted(labels) == ["false", "true"]:
        return np.array([label == "true" for label in labels])
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return np.array(labels)
    if all(label.isdecimal() or label[:1] == "-" and label[1:].isdecimal() for label in labels):
        whole = [int(label) for label in labels]
        return np.array(whole if [str(label) for label in whole] == labels else labels)
    # 1 beside 1.5 is a number, 01 and 1.50 are names
    same = [text in (repr(number), repr(number).removesuffix(".0")) for text, number in zip(labels, numbers)]
    return np.array(numbers) if all(same) and np.isfinite(numbers).all() else np.array(labels)
