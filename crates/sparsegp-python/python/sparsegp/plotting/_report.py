"""A fitted estimator on one page of HTML that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._explain import Explanation, explain
from . import _pictures

# inputs that are explained, each of which is work, and effects that are drawn
_MOST_INPUTS = 100
_MOST_EFFECTS = 4

_STYLE = """:root{color-scheme:light dark;--ink:#2d2d32;--paper:#fff;--note:#8a4b00;--pale:#777}
@media (prefers-color-scheme:dark){:root{--ink:#e4e4e9;--paper:#17181c;--note:#f0b060;--pale:#9a9aa2}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:940px;margin:2em auto;
padding:0 1em}h1{font-size:1.6em}h2{font-size:1.2em;margin-top:2em}p.lead{font-size:1.15em}
table{border-collapse:collapse}th{text-align:left;font-weight:600;vertical-align:top;padding:.15em 1.2em .15em 0;
white-space:nowrap}td{vertical-align:top;padding:.15em 1.2em .15em 0;overflow-wrap:anywhere}
figure{margin:0}img{max-width:100%;height:auto}p.note{color:var(--note)}
footer{color:var(--pale);margin-top:3em;font-size:13px}
@media (max-width:600px){body{margin:1em auto}th{white-space:normal}}
@media print{:root{--ink:#000;--paper:#fff}body{max-width:none;margin:0}figure{break-inside:avoid}h2{break-after:avoid}}"""

# what the share of targets within intervals of 95 % may be off by, beside three standard errors of chance
_OFF = 0.02


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    def line(row: tuple[str, ...]) -> str:
        cells = "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        return f"<tr><th>{html.escape(row[0])}</th>{cells}</tr>"

    return "<table>\n" + "\n".join(map(line, rows)) + "\n</table>"


def _drawing(found: Explanation, name: str) -> Callable[[Any], Any]:
    return lambda ax: _pictures.plot_effect(found, name, ax=ax)


def _explained(estimator: Any, X: Any) -> list[tuple[Callable[[Any], Any], str]]:
    """Pictures of what inputs explain, and of the effects of those that explain most."""
    if not 1 < len(estimator._about["inputs"]) <= _MOST_INPUTS:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = explain(estimator, X)
        except ValueError:
            # inputs with errors, say: the report has its other pictures
            return []
    response = found.responses[0]
    shares = found.total[response]
    order = sorted(shares, key=lambda name: -shares[name].mean)[:_MOST_EFFECTS]
    pictures: list[tuple[Callable[[Any], Any], str]] = [
        (lambda ax: _pictures.plot_shares(found, ax=ax), f"what explains the predictions of {response}")
    ]
    for name in order:
        pictures.append((_drawing(found, name), f"{response} and {name}"))
    return pictures


def _scores(estimator: Any, X: Any, y: Any) -> list[tuple[str, str]]:
    """What the predictions of rows are worth."""
    density = -float(np.mean(estimator.log_predictive_density(X, y)))
    if hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(X)
        truth = np.asarray(y)[:, None] == estimator.classes_
        brier = float(((probabilities - truth) ** 2).sum(axis=1).mean())
        return [
            ("accuracy", f"{estimator.score(X, y):.4g}"),
            ("log loss", f"{density:.4g}"),
            ("Brier score", f"{brier:.4g}"),
        ]
    targets = np.asarray(y, dtype=float)
    mean = estimator.predict(X)
    error = mean - targets
    found = [
        ("RMSE", f"{float(np.sqrt(np.mean(error**2))):.4g}"),
        ("MAE", f"{float(np.mean(np.abs(error))):.4g}"),
        ("R²", f"{estimator.score(X, y):.4g}"),
        ("mean negative log density", f"{density:.4g}"),
    ]
    if targets.ndim == 1:
        for level in (0.5, 0.95):
            tail = (1 - level) / 2
            bounds = estimator.predict(X, return_quantiles=[tail, 1 - tail])[1]
            inside = np.mean((bounds[:, 0] <= targets) & (targets <= bounds[:, 1]))
            found.append((f"within {100 * level:g} % intervals", f"{100 * inside:.1f} %"))
    return found


def _lead(estimator: Any, X: Any, y: Any) -> str:
    """What the predictions of rows come to, in a sentence or two."""
    targets, rows = np.asarray(y), len(np.asarray(y))
    name = ", ".join(estimator._about["targets"])
    if hasattr(estimator, "predict_proba"):
        classes, counts = np.unique(targets, return_counts=True)
        return (
            f"The most probable class of {name} is the true one for {100 * estimator.score(X, y):.1f} % of {rows} rows; always "
            f"saying {classes[counts.argmax()]} would be right for {100 * counts.max() / rows:.1f} %."
        )
    error = float(np.mean(np.abs(estimator.predict(X) - targets.astype(float))))
    explained = round(100 * estimator.score(X, y))
    part = f"and explain {explained} % of the variance" if explained > 0 else "no better than their mean"
    said = f"Predictions of {name} are off by {error:.3g} on average, {part}, on {rows} rows."
    if targets.ndim > 1:
        return said
    bounds = estimator.predict(X, return_quantiles=[0.025, 0.975])[1]
    held = float(np.mean((bounds[:, 0] <= targets) & (targets <= bounds[:, 1])))
    bar = max(_OFF, 3 * np.sqrt(0.95 * 0.05 / rows))
    narrow = ": they are too narrow" if held < 0.95 - bar else ""
    wide = ": they are wider than they need to be" if held > 0.95 + bar else ""
    return f"{said} Intervals of 95 % hold {100 * held:.1f} % of them{narrow}{wide}."


def _picture(draw: Callable[[Any], Any], name: str) -> Optional[str]:
    """A picture as HTML; nothing where there is none of such a model."""
    import matplotlib

    figure = matplotlib.figure.Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.subplots()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            draw(axes)
    except ValueError:
        return None
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=110)
    data = base64.b64encode(content.getvalue()).decode("ascii")
    return f'<figure><img alt="{html.escape(name)}" src="data:image/png;base64,{data}"></figure>'


def report(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    path: Union[str, os.PathLike[str]],
    *,
    title: Optional[str] = None,
) -> None:
    """Writes a page of HTML about a fitted estimator: what was learnt, scores on rows, pictures; a file that needs nothing else.

    Parameters
    ----------
    estimator : fitted estimator
    X : array-like of shape (n_samples, n_features)
        Rows that the estimator has not seen: the scores are of them.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    path : str or path
        The file, by custom ``.html``.
    title : str, optional

    Raises
    ------
    ImportError
        Without matplotlib.
    ValueError
        For rows that the estimator cannot predict.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError('pictures need matplotlib: pip install "sparsegp[plot]"') from error
    about = estimator._about
    name = title or f"{type(estimator).__name__} of {', '.join(about['targets'])}"
    rows = len(np.asarray(y))
    scores = _scores(estimator, X, y)
    facts = [
        ("method", f"{about['method']} ({about['reason']})"),
        ("likelihood", about["kind"]),
        ("inputs", ", ".join(about["inputs"])),
        ("rows learnt from", str(about["rows"])),
        ("training", estimator.stopped_),
    ]
    if about["objective"] is not None:
        facts.insert(4, ("objective", f"{about['objective']:.6g} nats"))
    pictures = [
        (lambda ax: _pictures.plot_1d(estimator, X, y, ax=ax), "the fit"),
        (lambda ax: _pictures.plot_map(estimator, X, y, ax=ax), "the fit"),
        (lambda ax: _pictures.plot_predictions(estimator, X, y, ax=ax), "predictions and observations"),
        (lambda ax: _pictures.plot_calibration(estimator, X, y, ax=ax), "calibration"),
        (lambda ax: _pictures.plot_relevance(estimator, ax=ax), "relevance of the inputs"),
        (lambda ax: _pictures.plot_layers(estimator, X, ax=ax), "the first hidden layer"),
        (lambda ax: _pictures.plot_trace(estimator, ax=ax), "training"),
    ]
    explained = _explained(estimator, X)
    pictures[4:4] = explained[1:]
    pictures[:0] = explained[:1]
    drawn = [(_picture(draw, what), what) for draw, what in pictures]
    shown = "\n".join(f"<h2>{html.escape(what)}</h2>\n{own}" for own, what in drawn if own)
    notes = "\n".join(f'<p class="note">{html.escape(text)}</p>' for text in about["warnings"])
    parameters = [("parameter", "model's scale", "data's units")]
    parameters += [(path_, model, units or "") for path_, model, units in estimator._table()]
    version = f"sparsegp {_core.__version__}, Python {sys.version.split()[0]}"
    page = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{html.escape(name)}</title><style>{_STYLE}</style></head><body>
<h1>{html.escape(name)}</h1>
<p class="lead">{html.escape(_lead(estimator, X, y))}</p>
{notes}
{shown}
<h2>How good it is</h2>
<p>On the {rows} rows that were given to the report; where the estimator has learnt from them, it looks better than it is.</p>
{_table(scores)}
<h2>The model</h2>
{_table(facts)}
<h2>What was learnt</h2>
{_table(parameters)}
<footer>{html.escape(version)}</footer>
</body></html>
"""
    # whole or not at all
    temporary = f"{os.fspath(path)}.part"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(page)
    os.replace(temporary, path)
