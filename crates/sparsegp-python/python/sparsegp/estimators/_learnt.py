"""What a training leaves behind: the attributes of a fitted estimator, and how it is shown."""

from __future__ import annotations

import html
import json
import re
import warnings
from typing import Any, Optional

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .. import _core
from ..kernels import as_kernel
from ..kernels._custom import slopes_of_parts
from ..likelihoods import as_likelihood
from ..likelihoods._custom import slopes_of
from ..means import slopes_of_mean
from ..models import Model
from ._arguments import level_of_caller
from ._rows import Rows

# parameters that are shown by their shape
_BULKY = re.compile(r"(layers\[\d+\]\.)?(inducing|q\.)|layers\[\d+\]\.mean\.weights")


class Learnt(Rows):
    """What was learnt."""

    def _keep(
        self,
        fitted: Optional[_core.Fitted],
        error: Optional[BaseException],
        of_file: bool = False,
        options: Optional[dict[str, Any]] = None,
    ) -> None:
        """Keeps what was learnt, also if the training was interrupted, and raises what interrupted it. Warns of settings
        among ``options`` that the method has nothing of."""
        if fitted is not None:
            self._set_fitted(fitted)
            if of_file:
                self._restore({"feature_names": self._about["inputs"], "of_file": True})
        if error is not None:
            raise error
        level = level_of_caller()
        if "most allowed" in self.stopped_:
            text = f"training {self.stopped_}: raise max_iter ({self.max_iter})"
            warnings.warn(text, ConvergenceWarning, stacklevel=level)
        if "time limit" in self.stopped_:
            text = f"training {self.stopped_}: raise time_limit ({self.time_limit})"
            warnings.warn(text, ConvergenceWarning, stacklevel=level)
        texts = list(self._about["warnings"])
        if options is not None:
            texts += _core.without_effect(json.dumps(options), self.method_, self._about["rows"])
        for text in texts:
            warnings.warn(text, UserWarning, stacklevel=level)

    def _set_fitted(self, fitted: _core.Fitted) -> None:
        # what is saved, and what predicts at inputs that are known exactly
        self._whole = fitted
        self.fitted_ = fitted.without_input_sd()
        about = json.loads(fitted.describe())
        self._about = about
        kernels = [as_kernel(json.dumps(kernel)) for kernel in by_index(about)]
        self.kernel_ = kernels[0] if len(kernels) == 1 else kernels
        self.likelihood_ = as_likelihood(json.dumps(about["likelihood"]))
        self.method_ = about["method"]
        self.reason_ = about["reason"]
        self.objective_ = about["objective"]
        report = about["report"] or {}
        if hasattr(self, "n_samples_seen_"):
            del self.n_samples_seen_
        self.n_iter_ = max(1, int(report.get("iterations", 1)))
        self.converged_ = bool(report.get("converged", False))
        self.stopped_ = str(report.get("stopped", ""))
        self.start_ = [(str(one["start"]), float(one["objective"])) for one in report.get("judged", [])]
        self.kernel_choice_ = report.get("kernels")
        self.averaged_ = report.get("averaged")
        # "single" is what products were of
        self.precision_ = "mixed" if report.get("precision") == "single" else "double"
        logs = about["scaler"].get("x_log") or []
        self.log_inputs_ = [name for name, unit in zip(about["inputs"], logs) if unit is not None]
        self.findings_ = report.get("findings", [])
        transforms = about["scaler"].get("y_transform") or [None] * len(about["targets"])
        self.target_transform_ = transforms[0] if len(transforms) == 1 else transforms
        trace = report.get("trace", [])
        columns = ("iteration", "evaluations", "objective", "gradient_norm", "seconds", "held_out")
        self.trace_ = {name: np.array([p.get(name) for p in trace], dtype=np.float64) for name in columns}
        if report and about["objective"] is not None:
            # from the model's scale to the data's
            self.trace_["objective"] += about["objective"] - report["objective"]
            scales = np.array(about["scaler"]["y_scale"])
            varying = ~np.array(about["scaler"].get("y_constant") or [False] * len(scales))
            self.trace_["held_out"] -= np.log(scales[varying]).sum()
        self.inducing_points_ = fitted.inducing_points()
        self.parameters_ = {}
        for row in about["parameters"]:
            value = row["value"] if row["data_units"] is None else row["data_units"]
            if not _BULKY.match(row["path"]):
                scalar = row["shape"] == "scalar"
                self.parameters_[row["path"]] = value[0] if scalar else np.array(value)
        if about["kind"] == "gaussian":
            self.noise_variance_ = self.parameters_["likelihood.variance"]

    def _restore(self, about: dict[str, Any]) -> None:
        names = about.get("feature_names")
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(self._about["inputs"])
        # files of before this was written down: where columns were encoded it was a file
        encoded = any(column["encoding"] != "number" for column in self._about["columns"])
        self._of_file = bool(about.get("of_file", encoded))
        if about.get("seen") is not None:
            self.n_samples_seen_ = about["seen"]
        self._y_ndim = about.get("outputs", 1 if len(self._about["targets"]) == 1 else 2)

    @property
    def model_(self) -> Model:
        """The model for closer work (:class:`sparsegp.models.Model`), on its own (standardised) scale."""
        check_is_fitted(self, "fitted_")
        return Model._of(self.fitted_.model())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    # -- how it is shown -----------------------------------------------------------------------

    def summary(self) -> str:
        """What was learnt, as a table."""
        check_is_fitted(self, "fitted_")
        about = self._about
        lines = [
            f"{about['method']} ({about['reason']}), {about['rows']} rows, "
            f"{len(about['inputs'])} input{'s' * (len(about['inputs']) != 1)}, likelihood {about['kind']}"
        ]
        if about["objective"] is not None:
            lines.append(f"objective {about['objective']:.6g}; {self.stopped_}")
        kernels = self.kernel_ if isinstance(self.kernel_, list) else [self.kernel_]
        lines += sorted({own for kernel in kernels for own in slopes_of_parts(kernel)})
        lines += slopes_of(self.likelihood_)
        lines += slopes_of_mean(getattr(self, "mean", None))
        rows = [("parameter", "model's scale", "data's units")]
        rows += [(path, model, units or "") for path, model, units in self._table()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        for row in rows:
            lines.append(f"  {row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}".rstrip())
        return "\n".join(lines)

    def _table(self) -> list[tuple[str, str, Optional[str]]]:
        rows: list[tuple[str, str, Optional[str]]] = []
        names, parameters = self._about["inputs"], self._about["parameters"]
        # of a deep model only the first layer sees the inputs
        deep = any(row["path"].startswith("layers[") for row in parameters)
        of_inputs = "layers[0].kernel" if deep else "kernel"
        for row in parameters:
            value, units = row["value"], row["data_units"]
            if _BULKY.match(row["path"]):
                rows.append((row["path"], row["shape"], None))
                continue
            known = (of_inputs,) if deep else (of_inputs, "mean.weights")
            named = row["path"].startswith(known) and len(value) == len(names)
            for i, v in enumerate(value[:10]):
                path = row["path"]
                if len(value) > 1:
                    path += f"[{names[i] if named else i}]"
                if row["frozen"]:
                    path += " (fixed)"
                rows.append((path, _number(v), None if units is None else _number(units[i])))
            if len(value) > 10:
                rows.append((f"{row['path']}: {len(value) - 10} more", "", None))
        return rows

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX=N_CHAR_MAX)
        return f"{text}\n{self.summary()}" if hasattr(self, "fitted_") else text

    def _table_html(self) -> str:
        cells = "".join(
            f"<tr><td style='text-align:left'>{html.escape(path)}</td><td>{html.escape(model)}</td>"
            f"<td>{html.escape(units or '')}</td></tr>"
            for path, model, units in self._table()
        )
        head = html.escape(self.summary().split("\n  parameter")[0]).replace("\n", "<br>")
        return (
            f"<p>{head}</p><table><thead><tr><th>parameter</th><th>model's scale</th>"
            f"<th>data's units</th></tr></thead><tbody>{cells}</tbody></table>"
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = dict(super()._repr_mimebundle_(**kwargs))
        bundle["text/plain"] = repr(self)
        if hasattr(self, "fitted_"):
            bundle["text/html"] = bundle.get("text/html", "") + self._table_html()
        return bundle


def _number(value: float) -> str:
    return f"{value:.4g}"


def by_index(about: dict[str, Any]) -> list[dict[str, Any]]:
    """Kernels with their input columns by index, which is all that unnamed arrays know."""
    names = {name: i for i, name in enumerate(about["inputs"])}

    def changed(kernel: dict[str, Any]) -> dict[str, Any]:
        kernel = dict(kernel)
        if "kernels" in kernel:
            kernel["kernels"] = [changed(part) for part in kernel["kernels"]]
        if "active_dims" in kernel:
            kernel["active_dims"] = [names.get(d, d) for d in kernel["active_dims"]]
        return kernel

    return [changed(kernel) for kernel in about["kernels"]]
