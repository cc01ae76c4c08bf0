"""Predictions of a fitted model as code for elsewhere."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from typing import Any, Optional, Union

from sklearn.utils.validation import check_is_fitted

from . import _core


@dataclass(frozen=True)
class Exported:
    """What :func:`sparsegp.export` has written."""

    #: The file.
    path: str
    #: Format: ``"c"`` or ``"onnx"``.
    format: str
    #: Beginning of all names in C.
    name: str
    #: Names of the inputs, in the order in which the exported function takes them.
    inputs: list[str]
    #: By input: what its number is, such as ``"number"`` or ``"days since 1970-01-01 00:00 UTC"``.
    kinds: dict[str, str]
    #: By output (``mean`` and ``sd`` of observations or ``probabilities`` of classes, ``latent_mean``, ``latent_sd``): names
    #: of its columns.
    outputs: dict[str, list[str]]


def export(
    estimator: Any,
    path: Union[str, os.PathLike[str]],
    *,
    format: Optional[str] = None,
    name: Optional[str] = None,
) -> Exported:
    """Write the predictions of a fitted model as code that needs nothing of this package.

    The closed formula of mean and standard deviation, from the inputs in the units of the training, is compared with the
    model's predictions inside and far outside of the data before it is written.

    A header of C (C99, only ``<math.h>``, no allocation, safe for threads) has
    ``NAME_predict(x, mean, sd)`` of an observation, or ``NAME_probabilities(x, p)`` of two classes, and
    ``NAME_latent(x, mean, sd)`` of the latent functions. A model of ONNX (operators of version 17,
    64-bit floats) takes ``x`` of shape (n, d), and gives ``mean`` and ``sd`` or ``probabilities``,
    ``latent_mean`` and ``latent_sd``.

    Parameters
    ----------
    estimator : fitted estimator
        Sparse or exact, or an average over hyperparameters.
    path : str or path
        File to write; its ending (``.h``, ``.onnx``) says the format.
    format : {"c", "onnx"}, optional
        Format, where the ending does not say it.
    name : str, optional
        Beginning of all names in C; by default the name of the file.

    Returns
    -------
    Exported

    Raises
    ------
    TypeError
        For anything but an estimator of this package, such as a pipeline.
    ValueError
        For models without such a formula, and formats and names that there are not; says what to use instead.
    OSError
        For a file that cannot be written.

    Examples
    --------
    >>> import numpy as np, sparsegp, tempfile, pathlib
    >>> X = np.linspace(0, 10, 80)[:, None]
    >>> model = sparsegp.GPRegressor(method="titsias2025", n_inducing=12).fit(X, np.sin(X[:, 0]))
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> found = sparsegp.export(model, folder / "wave.h")
    >>> found.inputs, "wave_predict" in (folder / "wave.h").read_text()
    (['x0'], True)
    """
    if not hasattr(estimator, "_inputs"):
        raise TypeError(
            f"export takes a regressor or classifier of sparsegp, not {type(estimator).__name__}: of a pipeline give the last step, "
            "whose inputs are then those of the exported function"
        )
    place = os.fspath(path)
    check_is_fitted(estimator, "fitted_")
    found = json.loads(_core.export(estimator.fitted_, place, format=format, name=name))
    if found["remark"] is not None:
        warnings.warn(found["remark"], UserWarning, stacklevel=2)
    return Exported(
        place,
        found["format"],
        found["name"],
        [one["name"] for one in found["inputs"]],
        {one["name"]: one["kind"] for one in found["inputs"]},
        {one["name"]: one["columns"] for one in found["outputs"]},
    )
