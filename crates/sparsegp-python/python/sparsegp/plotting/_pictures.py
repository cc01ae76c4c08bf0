"""The pictures, one function each."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike

from ..estimators._frames import is_date
from ._places import of_place, on_map, to_learnt


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "sparsegp[plot]"') from error
    return plt.subplots()[1]


def _label(axis: Any, estimator: Any, input: int) -> None:
    """Labels an axis with an input's name, and shows days as dates where the input holds dates."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        axis.set_label_text(names[input])
        columns = estimator._about["columns"]
        if any(column["name"] == names[input] and is_date(column) for column in columns):
            axis.axis_date()


def plot_1d(
    estimator: Any,
    X: Optional[ArrayLike] = None,
    y: Optional[ArrayLike] = None,
    *,
    num: int = 300,
    level: float = 0.95,
    ax: Any = None,
) -> Any:
    """The predictions of an estimator of one input, with rows.

    Parameters
    ----------
    estimator : fitted estimator
        Of one input. A regressor is drawn with its mean and the interval of observations; a classifier with
        the probability of its classes.
    X, y : array-like, optional
        Rows to draw; ``X`` says from where to where.
    num : int
        Number of points of the curve.
    level : float
        Probability of the interval.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    if estimator.n_features_in_ != 1:
        raise ValueError(f"the estimator has {estimator.n_features_in_} inputs; plot_1d is for one")
    ax = _axes(ax)
    if X is None:
        if estimator.inducing_points_ is None:
            raise ValueError("give X: it says from where to where to draw")
        column = estimator.inducing_points_[:, 0]
    else:
        column = estimator._inputs(X)[:, 0]
    low, high = column.min(), column.max()
    margin = 0.05 * (high - low or 1.0)
    grid = np.linspace(low - margin, high + margin, num)
    points = grid[:, None]
    if hasattr(estimator, "predict_proba"):
        for label, p in zip(estimator.classes_, _quiet(estimator.predict_proba, points).T):
            ax.plot(grid, p, label=f"p({label})")
        if y is not None:
            codes = np.searchsorted(estimator.classes_, np.asarray(y))
            ax.plot(column, codes / max(1, len(estimator.classes_) - 1), "k.", ms=3, alpha=0.5)
        ax.set_ylim(-0.05, 1.05)
        ax.set_ylabel("probability")
        _label(ax.xaxis, estimator, 0)
        ax.legend()
        return ax
    tail = (1 - level) / 2
    mean, bounds = _quiet(estimator.predict, points, return_quantiles=[tail, 1 - tail])
    if mean.ndim > 1:
        raise ValueError("the estimator has several outputs; plot_1d is for one")
    ax.fill_between(
        grid, bounds[:, 0], bounds[:, 1], alpha=0.25, lw=0, label=f"{100 * level:g} % of observations"
    )
    ax.plot(grid, mean, label="mean")
    if y is not None:
        ax.plot(column, np.asarray(y, dtype=float), "k.", ms=3, alpha=0.5, label="rows")
    if estimator.inducing_points_ is not None:
        z = estimator.inducing_points_[:, 0]
        ax.plot(z, np.full(len(z), bounds.min()), "|", color="C3", label="inducing points")
    _label(ax.xaxis, estimator, 0)
    ax.legend()
    return ax


def plot_map(
    estimator: Any,
    X: Optional[ArrayLike] = None,
    y: Optional[ArrayLike] = None,
    *,
    num: int = 80,
    ax: Any = None,
) -> Any:
    """The predictions of an estimator of two inputs as colours, with rows.

    A regressor is drawn with its mean as colours and the standard deviation of observations as lines; a classifier
    of two classes with the probability of the second, one of more with the most probable class.

    Parameters
    ----------
    estimator : fitted estimator
        Of two inputs that are numbers, or of places (``places=``), which are drawn by longitude and latitude.
    X, y : array-like, optional
        Rows to draw; ``X`` says from where to where.
    num : int
        Number of places along each input.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    place = of_place(estimator)
    if place is None and estimator.n_features_in_ != 2:
        raise ValueError(f"the estimator has {estimator.n_features_in_} inputs; plot_map is for two")
    ax = _axes(ax)
    z = estimator.inducing_points_
    if X is None and z is None:
        raise ValueError("give X: it says from where to where to draw")
    rows = z if X is None else estimator._inputs(X)
    if place is not None:
        rows, least = on_map(rows)
        z = None if z is None else on_map(z, least)[0]
    low, high = rows.min(axis=0), rows.max(axis=0)
    margin = 0.05 * np.where(high > low, high - low, 1.0)
    if place is not None:
        margin[1] = min(margin[1], 90 - high[1], low[1] + 90)
    sides = [np.linspace(a, b, num) for a, b in zip(low - margin, high + margin)]
    points = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    if place is not None:
        points = to_learnt(points, place)
    colours = None if y is None else np.asarray(y)
    if hasattr(estimator, "predict_proba"):
        probabilities = _quiet(estimator.predict_proba, points)
        count = len(estimator.classes_)
        of_two = count == 2
        field = probabilities[:, 1] if of_two else probabilities.argmax(axis=1)
        name = f"p({estimator.classes_[1]})" if of_two else "most probable class"
        limits = (0.0, 1.0 if of_two else count - 1.0)
        colours = None if colours is None else np.searchsorted(estimator.classes_, colours)
    else:
        field, deviation = _quiet(estimator.predict, points, return_std=True)
        if field.ndim > 1:
            raise ValueError("the estimator has several outputs; plot_map is for one")
        lines = ax.contour(*sides, deviation.reshape(num, num), colors="0.25", linewidths=0.7)
        ax.clabel(lines, fontsize=7)
        name = "mean (lines: standard deviation of observations)"
        known = field if colours is None else np.concatenate([field, colours.astype(float)])
        limits = (np.nanmin(known), np.nanmax(known))
    mesh = ax.pcolormesh(
        *sides, field.reshape(num, num), vmin=limits[0], vmax=limits[1], shading="nearest", zorder=0
    )
    ax.figure.colorbar(mesh, ax=ax, label=name)
    if X is not None and colours is not None:
        own = dict(c=colours, vmin=limits[0], vmax=limits[1], edgecolors="k", linewidths=0.4, s=14)
        ax.scatter(rows[:, 0], rows[:, 1], label="rows", **own)
    if z is not None:
        ax.plot(z[:, 0], z[:, 1], "x", color="C3", ms=4, label="inducing points")
    if place is not None:
        ax.set(xlabel=place[1], ylabel=place[0])
        return ax
    _label(ax.xaxis, estimator, 0)
    _label(ax.yaxis, estimator, 1)
    return ax


def plot_predictions(estimator: Any, X: ArrayLike, y: ArrayLike, *, level: float = 0.95, ax: Any = None) -> Any:
    """Predictions against observations, with intervals: on rows that the estimator has not seen.

    Parameters
    ----------
    estimator : fitted regressor
        Of one output.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    level : float
        Probability of the intervals of new observations.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    if hasattr(estimator, "predict_proba"):
        raise ValueError("the targets are classes: see plot_calibration")
    ax = _axes(ax)
    tail = (1 - level) / 2
    mean, bounds = estimator.predict(X, return_quantiles=[tail, 1 - tail])
    if mean.ndim > 1:
        raise ValueError("the estimator has several outputs; plot_predictions is for one")
    observed = np.asarray(y, dtype=float)
    # the mean of a skewed distribution may be outside its own interval
    lengths = np.maximum(0.0, np.stack([mean - bounds[:, 0], bounds[:, 1] - mean]))
    label = f"mean and {100 * level:g} % of observations"
    ax.errorbar(observed, mean, yerr=lengths, fmt="k.", ms=3, elinewidth=0.5, alpha=0.5, label=label)
    ends = [np.nanmin([observed, mean]), np.nanmax([observed, mean])]
    ax.plot(ends, ends, color="0.6", lw=1)
    ax.set_xlabel("observed")
    ax.set_ylabel("predicted")
    ax.legend()
    return ax


def _quiet(function: Any, *args: Any, **kwargs: Any) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return function(*args, **kwargs)


# least rows of a bin whose share is shown
_BIN = 20


def plot_calibration(estimator: Any, X: ArrayLike, y: ArrayLike, *, ax: Any = None) -> Any:
    """Whether predicted probabilities come true, on rows that the estimator has not seen.

    For a regressor: the share of rows below every predicted quantile, which should be its level. For a
    classifier: how often the predicted class is right where it is predicted with some probability, in
    up to ten bins with as many rows each, and at least twenty; grey bars hold 95 % of what these
    probabilities would give by chance.

    Parameters
    ----------
    estimator : fitted estimator
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = _axes(ax)
    ax.plot([0, 1], [0, 1], color="0.6", lw=1)
    if hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(X)
        best = probabilities.max(axis=1)
        right = estimator.classes_[probabilities.argmax(axis=1)] == np.asarray(y)
        # as many rows in every bin, or bins of one row would be joined by a line as if they said something
        parts = np.array_split(np.argsort(best, kind="stable"), np.clip(len(best) // _BIN, 1, 10))
        promised = np.array([best[rows].mean() for rows in parts])
        spread = [np.sqrt((best[rows] * (1.0 - best[rows])).sum()) / len(rows) for rows in parts]
        ax.errorbar(promised, promised, yerr=1.96 * np.array(spread), fmt="none", color="0.6", capsize=3)
        ax.plot(promised, [right[rows].mean() for rows in parts], "o-")
        ax.set_xlabel("probability of the predicted class")
        ax.set_ylabel("share that is right")
        return ax
    levels = np.linspace(0.05, 0.95, 19)
    _, quantiles = estimator.predict(X, return_quantiles=levels)
    shares = (np.asarray(y, dtype=float)[:, None] <= quantiles).mean(axis=0)
    ax.plot(levels, shares, "o-")
    ax.set_xlabel("level of the predicted quantile")
    ax.set_ylabel("share of rows below")
    return ax


def plot_relevance(estimator: Any, *, most: int = 16, ax: Any = None) -> Any:
    """How finely the function varies along every input: bars of 1/lengthscale on the model's scale, the largest first.

    Parameters
    ----------
    estimator : fitted estimator
        With a kernel that has lengthscales.
    most : int
        Most bars; the least relevant inputs are left out.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    about = estimator._about
    pairs = [(r, name) for r, name in zip(about["relevance"], about["inputs"]) if r > 0]
    if not pairs:
        raise ValueError("the kernel has no lengthscales, by which inputs are compared")
    shown = sorted(pairs, key=lambda pair: -pair[0])[:most][::-1]
    ax = _axes(ax)
    ax.barh([name for _, name in shown], [r for r, _ in shown])
    ax.set_xlabel("1/lengthscale, model's scale")
    return ax


def plot_effect(explanation: Any, input: str, *, response: Optional[str] = None, ax: Any = None) -> Any:
    """The effect of one input with its 95 % interval.

    Parameters
    ----------
    explanation : Explanation
        Of :func:`sparsegp.explain`.
    input : str
        Name of the input.
    response : str, optional
        What is predicted; by default the first of ``explanation.responses``.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    own = explanation.effect(input, response)
    ax = _axes(ax)
    if own.kind == "categories":
        places = range(len(own.values))
        ax.errorbar(places, own.mean, [own.mean - own.lower, own.upper - own.mean], fmt="o", capsize=4)
        ax.set_xticks(list(places), [str(value) for value in own.values])
    else:
        (line,) = ax.plot(own.values, own.mean)
        ax.fill_between(own.values, own.lower, own.upper, color=line.get_color(), alpha=0.2)
    ax.set_xlabel(own.input)
    ax.set_ylabel(f"change of {own.response}" if own.centred else own.response)
    return ax


def plot_shares(explanation: Any, *, response: Optional[str] = None, most: int = 16, ax: Any = None) -> Any:
    """What share of the variance of predictions every input explains, with its interactions, as bars with 95 % intervals.

    Parameters
    ----------
    explanation : Explanation
        Of :func:`sparsegp.explain`.
    response : str, optional
        What is predicted; by default the first of ``explanation.responses``.
    most : int
        Most bars; the smallest shares are left out.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    shares = explanation.total[explanation.responses[0] if response is None else response]
    names = sorted(shares, key=lambda name: -shares[name].mean)[:most][::-1]
    ax = _axes(ax)
    below = [max(0.0, shares[name].mean - shares[name].lower) for name in names]
    above = [max(0.0, shares[name].upper - shares[name].mean) for name in names]
    known = not np.isnan(below).any()
    ax.barh(names, [shares[name].mean for name in names], xerr=[below, above] if known else None, alpha=0.7)
    ax.set_xlabel("share of the variance of predictions")
    return ax


def plot_layers(
    estimator: Any, X: ArrayLike, *, layer: int = 0, feature: Optional[int] = None, ax: Any = None
) -> Any:
    """What a hidden layer of a deep model does to one input: its functions with two standard deviations, the other inputs at
    their medians.

    Parameters
    ----------
    estimator : fitted estimator
        Of the method ``"deep"``.
    X : array-like of shape (n_samples, n_features)
        Rows, which say from where to where and where the medians are.
    layer : int
        The hidden layer, from 0.
    feature : int, optional
        The input; by default the one that the first layer varies most along.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    rows = estimator._inputs(X)
    about = estimator._about
    if feature is None:
        feature = int(np.argmax(about["relevance"]))
    grid = np.tile(np.median(rows, axis=0), (200, 1))
    grid[:, feature] = np.linspace(rows[:, feature].min(), rows[:, feature].max(), 200)
    layers = _quiet(estimator.hidden_layers, grid)
    if not 0 <= layer < len(layers):
        raise ValueError(f"there is no hidden layer {layer}: the model has {len(layers)}")
    mean, std = layers[layer]
    ax = _axes(ax)
    for p in range(mean.shape[1]):
        (line,) = ax.plot(grid[:, feature], mean[:, p])
        low, high = mean[:, p] - 2 * std[:, p], mean[:, p] + 2 * std[:, p]
        ax.fill_between(grid[:, feature], low, high, color=line.get_color(), alpha=0.15)
    ax.set_xlabel(about["inputs"][feature])
    ax.set_ylabel(f"hidden layer {layer + 1}, model's scale")
    return ax


def plot_trace(estimator: Any, *, ax: Any = None) -> Any:
    """The objective over the training.

    Parameters
    ----------
    estimator : fitted estimator
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    ax = _axes(ax)
    trace = estimator.trace_
    ax.plot(trace["iteration"], trace["objective"], ".-")
    ax.set_xlabel("iteration")
    ax.set_ylabel("objective, nats")
    return ax
