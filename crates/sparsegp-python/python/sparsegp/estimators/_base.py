"""What all estimators have in common."""

from __future__ import annotations

import html
import json
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Callable, Optional, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, column_or_1d, validate_data

from .. import _core
from .._hints import hint, hinted
from .._progress import Progress, watch
from .._registry import entries as entries_of
from ..kernels import Kernel, _whole, as_kernel
from ..likelihoods import Likelihood, as_likelihood
from ..models import Functions
from . import _frames
from ._noisy import WithNoisyInputs, deviations

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
Array = NDArray[np.float64]
KernelLike = Union[str, Kernel, Sequence[Union[str, Kernel]]]
LikelihoodLike = Union[None, str, Likelihood]
Path = Union[str, "os.PathLike[str]"]
E = TypeVar("E", bound="BaseGP")


def _names(what: str) -> frozenset[str]:
    """Names and aliases of the methods of which the registry says so."""
    methods = entries_of("methods")
    return frozenset(n for m in methods if m[what] for n in (m["name"], *m["aliases"]))


# methods that train q, by minibatches if they are to
_IN_BATCHES = _names("minibatches")


def _is_in_batches(method: str) -> bool:
    """Whether a method, with its options as in ``"deep(layers=3)"``, is trained by minibatches."""
    return method.lower().partition("(")[0].strip() in _IN_BATCHES


# parameters that are shown by their shape
_BULKY = re.compile(r"(layers\[\d+\]\.)?(inducing|q\.)|layers\[\d+\]\.mean\.weights")

# methods whose likelihood needs local variables
_AUGMENTED = _names("augmented")

_PARAMETERS = """
    Parameters
    ----------
    kernel : str, Kernel or list of these
        Covariance function: an object of :mod:`sparsegp.kernels`, or its short form such as
        ``"matern52 + linear"``. A list has one for each latent function.
    kernel_units : {"model", "data"}
        Units of the values given in the kernel, their bounds and priors: the model's scale, that of standardised columns
        unless ``standardise=False``, or the data's units, as in ``periodic(period=365.25)`` for days.
    method : str
        ``"auto"``, or a name in ``sparsegp.registry()["methods"]``: ``"exact"``, ``"titsias2009"``,
        ``"spherical"``, ``"titsias2025"``, ``"fitc"``, ``"pep(alpha=0.5)"``, ``"svgp"``, ``"svgp2025"``,
        ``"svgp-spherical"``, ``"tsvgp"``, ``"lsvgp"``, ``"rsvgp"``, ``"tvgp"``, ``"deep(layers=3)"`` (options:
        ``layers``, ``width``, ``kind``, ``samples``, ``functions``, ``skip``, ``kernels``); for likelihoods with local
        variables also ``"cavi"``, ``"cavi-full"``, ``"svi"``, ``"gibbs"``, ``"gibbs-sparse"``; draws from the posterior under any
        likelihood by ``"nuts"``, ``"nuts-sparse"`` (with inducing points), ``"hmc"``, ``"ess"``, ``"metropolis"``, with local variables beside f
        ``"nuts-augmented"``, ``"hmc-augmented"``; ``"gpf"`` draws from the Gaussian of
        a particle flow. ``"auto"`` is
        ``"exact"`` for Gaussian noise and at most 2000 rows, ``"titsias2025"`` for more (for many rows after
        minibatches of ``"svgp2025"``), and for other likelihoods ``"tsvgp"`` on all rows, or ``"svgp"`` by
        minibatches where that costs less.
    likelihood : str or Likelihood
        Observation model: an object of :mod:`sparsegp.likelihoods` or its short form.
    mean : str, optional
        ``"zero"``, ``"constant"`` or ``"linear"``.
    n_inducing : int, optional
        Number of inducing points; by default 512, for methods that train q a quarter of the rows up to
        200, then about 7 times their square root, from 50 to 512; 100 in every layer of ``"deep"``; never more than
        there are rows.
    inducing : str or array of shape (n_inducing, n_features)
        How inducing points are chosen: ``"kmeans"``, ``"random"``, ``"greedy-variance"``, ``"greedy-elbo"``
        (by the bound, for Gaussian noise), ``"k-dpp"`` (rows that repel each other),
        ``"oips(0.8)"`` (rows with correlations below that), ``"grid"`` (for few inputs), or these points, in the
        units of X.
    fixed : sequence of str
        Parameters to keep as they are, by path or group: ``"inducing.points"``,
        ``"likelihood.variance"``, ``"kernel"``.
    initial : dict, optional
        Values of parameters to start from (or, if fixed, to keep) by path, on the model's scale.
    standardise : bool
        Whether inputs and, where the likelihood allows, targets get mean 0 and variance 1 inside the
        model. Predictions are in the data's units in any case.
    n_restarts_optimizer : int
        Train from this many additional starts, whose hyperparameters are drawn from their priors, or over a wide range
        about the plain start; the best objective wins.
    optimiser : {"lbfgs", "adam"}
        For training on all rows at once.
    max_iter : int
        Most iterations of that.
    tol : float
        It ends where ten iterations of L-BFGS together have raised the objective by no more than this part of its
        size (or nats per target, if that is less) and the gradient promises no more: hardly anything changes in the predictions. Smaller numbers ask for more digits of the hyperparameters.
    full_batch : bool
        Whether methods that could train by minibatches see all rows at once.
    batch_size : int, optional
        Rows of a minibatch; by default 1024, for ``"rsvgp"`` 100.
    epochs : int, optional
        Passes over the rows of minibatch training; by default 100, more for few rows, and for ``"deep"`` as many as make
        5000 steps.
    learning_rate : float, optional
        Learning rate of Adam; by default 0.03 for minibatches (0.01 for ``"deep"``), 0.01 for all rows at once.
    natural_rate : float, optional
        Size of natural-gradient steps of q, from 0 (none: Adam on q too) to 1.
    classes_per_step : int, optional
        For the method ``"svi"`` with many classes: how many of them, drawn anew for every minibatch, move in a
        step, which is the cheaper for it; by default all.
    sampling : dict, optional
        For the methods that draw (``"nuts"``, ``"hmc"``, ``"ess"``, ``"gibbs"`` and their kin, ``"gpf"``): ``chains`` (4), ``draws`` of every chain (500),
        ``burn_in`` sweeps (200), sweeps for every draw, ``thin`` (1), with inducing points ``law``
        (``"variational"`` or ``"fitc"``), and ``hyperparameters`` (False): whether those that are not fixed are
        sampled too, under their priors or, where there are none, weak ones about their starting values. Predictions
        average over all draws, of a large model over as many as take 512 MiB (a warning says how many).
    early_stopping : float
        Fraction of the rows to put aside; training, which is by minibatches then, ends when these are
        predicted no better for ``patience`` epochs. 0 for none.
    patience : int
        See ``early_stopping``.
    online : bool or dict
        Whether later calls of ``partial_fit`` are updates, which keep what all rows before said and leave kernel and noise as
        the first call found them (see :meth:`update`), in place of further training. A dict has the options of ``update``:
        ``correlation``, ``most_points``, ``forget``, ``train`` and ``train_points``. The first call fits with inducing points (100 by default).
    pilot : int
        Most random rows that starting values are judged by: several starts get a few iterations each, and the best
        goes on (``start_`` says which). 0 takes the plain start unseen.
    lengthscale_prior : bool
        Whether the lengthscales of several inputs have a weak log-normal prior in training, with its mode at √D
        standard deviations; not those that have a value or a prior of their own. ``objective_`` is without it.
    jitter : float, optional
        Fraction of the mean variance that is added to the diagonal of covariances of inducing points.
    checkpoint : str or path, optional
        File to which training by minibatches, or chains, write their state, and from which they go on. If it can no
        longer be written, a warning says so and the training goes on.
    time_limit : float, optional
        Seconds after which the training ends, preparation included, with the best found so far: ``stopped_``
        says so. It is looked at between evaluations. With ``checkpoint`` the next call of ``fit`` resumes.
    random_state : int, RandomState instance or None
        Seed of everything random; the same seed gives the same bits on any number of threads.
    verbose : int
        Whether to show progress.
    callback : callable, optional
        Called with a dictionary of every event of the training (``event["event"]`` is ``"iteration"``,
        ``"batch"``, …); returning True ends the training with the best state, raising an exception too.
"""

_ATTRIBUTES = """
    Attributes
    ----------
    kernel_ : Kernel or list of Kernel
        With the values learnt, on the model's (standardised) scale.
    likelihood_ : Likelihood
        With the values learnt, on the model's scale.
    parameters_ : dict
        Values by path, in the data's units where they have one.
    method_ : str
        The method that was used; ``reason_`` says why.
    objective_ : float
        Log evidence or bound of the training rows, in the data's units.
    trace_ : dict of arrays
        ``"iteration"``, ``"objective"``, ``"held_out"`` (mean log density of the rows put aside; both in
        the data's units), ``"seconds"`` and more, one number per iteration (epoch).
    n_iter_ : int
        Iterations made; ``converged_`` and ``stopped_`` tell how they ended.
    start_ : list of (str, float)
        The starts that were judged with their objectives after a few iterations on some of the rows, the one taken
        first; empty where there was nothing to judge.
    inducing_points_ : array of shape (n_inducing, n_features) or None
        In the units of X.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
"""


def document(cls: type[E]) -> type[E]:
    cls.__doc__ = (cls.__doc__ or "") + _PARAMETERS + _ATTRIBUTES
    return cls


def _kernel_text(kernel: KernelLike) -> str:
    if isinstance(kernel, Kernel):
        return kernel.to_json()
    if isinstance(kernel, str):
        return ";".join(as_kernel(part).to_json() for part in kernel.split(";"))
    if isinstance(kernel, (list, tuple)):
        return ";".join(as_kernel(part).to_json() for part in kernel)
    raise TypeError(f"kernel is a Kernel, a text or a list of these, not {kernel!r}")


def names(columns: Any, prefix: str, count: int) -> list[str]:
    if columns is None:
        return [f"{prefix}{i}" for i in range(count)]
    return [str(name) for name in columns]


def target_names(y: Any) -> list[str]:
    """Names of target columns, where y has them."""
    columns = getattr(y, "columns", None)
    if columns is not None and not callable(columns):
        return [str(name) for name in columns]
    name = getattr(y, "name", None)
    return [name] if isinstance(name, str) and name else []


def _one(name: str, character: str) -> str:
    """A single character."""
    if not isinstance(character, str) or len(character) != 1:
        raise ValueError(f"{name} is {character!r}; it must be one character")
    return character


def _texts(name: str, values: Sequence[str]) -> list[str]:
    """Several texts, which a single one is often mistaken for."""
    if isinstance(values, str):
        raise ValueError(f"{name} is the text {values!r}; give a list, such as [{values!r}]")
    return [str(value) for value in values]


def _aligned(array: Any) -> Any:
    """A copy of what lies crooked in memory."""
    return None if array is None else np.require(array, np.float64, "A")


def _number(value: float) -> str:
    return f"{value:.4g}"


class BaseGP(WithNoisyInputs, BaseEstimator):
    """What all estimators have in common."""

    _default_likelihood: LikelihoodLike = None

    @hinted
    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        kernel_units: str = "model",
        method: str = "auto",
        likelihood: LikelihoodLike = None,
        mean: Optional[str] = None,
        n_inducing: Optional[int] = None,
        inducing: Union[str, ArrayLike] = "kmeans",
        fixed: Sequence[str] = (),
        initial: Optional[dict[str, Any]] = None,
        standardise: bool = True,
        n_restarts_optimizer: int = 0,
        optimiser: str = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-4,
        full_batch: bool = False,
        batch_size: Optional[int] = None,
        epochs: Optional[int] = None,
        learning_rate: Optional[float] = None,
        natural_rate: Optional[float] = None,
        classes_per_step: Optional[int] = None,
        sampling: Optional[dict[str, Any]] = None,
        early_stopping: float = 0.0,
        patience: int = 10,
        online: Union[bool, dict[str, Any]] = False,
        pilot: int = 1000,
        lengthscale_prior: bool = True,
        jitter: Optional[float] = None,
        checkpoint: Optional[Path] = None,
        time_limit: Optional[float] = None,
        random_state: Any = 0,
        verbose: int = 0,
        callback: Optional[Callable[[dict[str, Any]], Optional[bool]]] = None,
    ) -> None:
        self.kernel = kernel
        self.kernel_units = kernel_units
        self.method = method
        self.likelihood = likelihood
        self.mean = mean
        self.n_inducing = n_inducing
        self.inducing = inducing
        self.fixed = fixed
        self.initial = initial
        self.standardise = standardise
        self.n_restarts_optimizer = n_restarts_optimizer
        self.optimiser = optimiser
        self.max_iter = max_iter
        self.tol = tol
        self.full_batch = full_batch
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.natural_rate = natural_rate
        self.classes_per_step = classes_per_step
        self.sampling = sampling
        self.early_stopping = early_stopping
        self.patience = patience
        self.online = online
        self.pilot = pilot
        self.lengthscale_prior = lengthscale_prior
        self.jitter = jitter
        self.checkpoint = checkpoint
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    # -- parameters of the constructor ---------------------------------------------------------

    def set_params(self: E, **params: Any) -> E:
        """Sets arguments of the constructor; ``kernel__lengthscales`` and the like make another kernel."""
        nested = {k[len("kernel__") :]: params.pop(k) for k in list(params) if k.startswith("kernel__")}
        known = self._get_param_names()
        for name in params:
            if name.partition("__")[0] not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}: {hint(name, known)}")
        super().set_params(**params)
        if nested:
            if not isinstance(self.kernel, (str, Kernel)):
                raise ValueError("kernel is a list: set the whole of it")
            self.kernel = as_kernel(self.kernel).with_params(**nested)
        return self

    def _spec(self) -> LikelihoodLike:
        """The likelihood that was asked for, before the targets are known; none if they decide."""
        return self._default_likelihood if self.likelihood is None else self.likelihood

    def _options(self, likelihood: LikelihoodLike, seed: int) -> dict[str, Any]:
        if self.kernel_units not in ("model", "data"):
            raise ValueError(f"kernel_units is {self.kernel_units!r}; it must be 'model' or 'data'")
        options: dict[str, Any] = {
            "kernel": _kernel_text(self.kernel),
            "kernel_in_data_units": self.kernel_units == "data",
            "likelihood": None if likelihood is None else as_likelihood(likelihood).to_json(),
            "mean": self.mean,
            "method": self.method,
            "inducing": None if self.n_inducing is None else _whole("n_inducing", self.n_inducing, 1),
            "selection": self.inducing if isinstance(self.inducing, str) else None,
            "seed": seed,
            "jitter": self.jitter,
            "set": [
                [path, np.ravel(np.asarray(value, dtype=np.float64), order="F").tolist()]
                for path, value in (self.initial or {}).items()
            ],
            "freeze": [self.fixed] if isinstance(self.fixed, str) else list(self.fixed),
            "pilot": _whole("pilot", self.pilot, 0),
            "lengthscale_prior": bool(self.lengthscale_prior),
            "restarts": _whole("n_restarts_optimizer", self.n_restarts_optimizer, 0),
            "optimiser": self.optimiser,
            "max_iterations": _whole("max_iter", self.max_iter, 0),
            "tolerance": self.tol,
            "full_batch": bool(self.full_batch),
            "batch_size": None if self.batch_size is None else _whole("batch_size", self.batch_size, 1),
            "epochs": None if self.epochs is None else _whole("epochs", self.epochs, 1),
            "learning_rate": self.learning_rate,
            "natural_rate": self.natural_rate,
            "classes_per_step": (
                None if self.classes_per_step is None else _whole("classes_per_step", self.classes_per_step, 1)
            ),
            "patience": _whole("patience", self.patience, 1),
            "checkpoint": None if self.checkpoint is None else os.fspath(self.checkpoint),
            "time_limit": self.time_limit,
        }
        known = ("chains", "draws", "burn_in", "thin", "law", "hyperparameters")
        for name, value in (self.sampling or {}).items():
            if name not in known:
                raise ValueError(f"sampling has the unknown entry {name!r}; known: {', '.join(known)}")
            least = 0 if name == "burn_in" else 1
            if name == "hyperparameters":
                options[name] = bool(value)
            else:
                options[name] = value if name == "law" else _whole(f"sampling[{name!r}]", value, least)
        return {name: value for name, value in options.items() if value is not None}

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            if self.random_state < 0:
                raise ValueError(f"random_state is {self.random_state}; it must be at least 0")
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _progress(self) -> Optional[Progress]:
        if not self.verbose:
            return None
        return Progress(self.max_iter, self.batch_size or 0)

    # -- learning ------------------------------------------------------------------------------

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
        X, Y, weights = _aligned(X), _aligned(Y), _aligned(weights)
        seed = self._seed()
        options = self._options(likelihood, seed)
        if self.early_stopping:
            own = self._stops_early(likelihood, classes is None and extra is None)
            method = own if method is None else method
        if method is not None:
            options["method"] = method
        if count is not None:
            options["inducing"] = count
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
            points = _aligned(check_array(self.inducing, dtype=np.float64))
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
        progress = self._progress()
        try:
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
                callback=watch(progress, self.callback),
            )
        finally:
            if progress is not None:
                progress.close()
        if fitted is not None:
            self._of_file = self._columns is not None
        self._keep(fitted, error)

    def fit_file(
        self: E,
        path: Path,
        target: Union[str, Sequence[str]],
        *,
        features: Optional[Sequence[str]] = None,
        ignore: Sequence[str] = (),
        sample_weight: Optional[str] = None,
        further: Optional[str] = None,
        missing: str = "refuse",
        stream: Optional[bool] = None,
        categorical: Sequence[str] = (),
        decimal: str = ".",
        thousands: Optional[str] = None,
        missing_words: Sequence[str] = (),
        date_format: Union[str, Sequence[str]] = (),
        levels: Sequence[str] = (),
        encoding: Optional[str] = None,
        input_sd: Optional[dict[str, str]] = None,
    ) -> E:
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
            Columns that are no inputs.
        sample_weight, further : str, optional
            Column of weights, and of the extra number of every row: noise variance, exposure, trials.
        missing : {"refuse", "drop"}
            What to do with rows in which a number is missing.
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

        Dates become days since 1970-01-01, categories one input each (`colour=red`; of two the second alone; one column of
        codes for a kernel that reads labels), at most 100 of a column: `feature_names_in_` has the names. What uses the model takes these inputs, or a frame with the
        columns of the file.

        Returns
        -------
        self
        """
        if missing not in ("refuse", "drop"):
            raise ValueError(f"missing is {missing!r}; it must be 'refuse' or 'drop'")
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
            "drop_missing": missing == "drop",
            "standardise": bool(self.standardise),
            "categorical": _texts("categorical", categorical),
            "levels": _texts("levels", levels),
            "decimal": _one("decimal", decimal),
            "thousands": None if thousands is None else _one("thousands", thousands),
            "missing_words": _texts("missing_words", missing_words),
            "encoding": encoding,
            "input_sd": [] if input_sd is None else [[str(k), str(v)] for k, v in input_sd.items()],
            "date_formats": [date_format] if isinstance(date_format, str) else list(date_format),
        }
        options = self._options(likelihood, self._seed())
        if self.early_stopping:
            options["method"] = self._stops_early(likelihood, further is None and not self._labels)
            columns["aside"] = self.early_stopping
        progress = self._progress()
        try:
            fitted, error = _core.fit_table(
                os.fspath(path),
                json.dumps(options),
                json.dumps(columns),
                points=None if isinstance(self.inducing, str) else _aligned(check_array(self.inducing)),
                callback=watch(progress, self.callback),
            )
        finally:
            if progress is not None:
                progress.close()
        self._keep(fitted, error, of_file=True)
        return self

    # whether targets are labels
    _labels = False
    # whether frames are read as the table of a file is
    _of_file = False
    # the columns of the frame that is learnt from, where some hold no numbers
    _columns: Optional[list[_frames.Column]] = None

    # how new rows are taken up, while they are
    _taking_up: Optional[dict[str, Any]] = None

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
        **rows
            What ``partial_fit`` takes beside ``X`` and ``y``, such as ``sample_weight``.

        Returns
        -------
        self
            With ``update_report_``: rows, inducing points, new ones among them, rows far from all of them, and ``bound``, about
            log p(new rows | old rows) in nats.
        """
        check_is_fitted(self)
        self._taking_up = dict(
            correlation=correlation,
            most_points=most_points,
            forget=forget,
            train=_whole("train", train, 0),
            train_points=bool(train_points),
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
                "a model of inputs with standard deviations takes up no further rows: fit it anew to all"
            )
        taking_up = self._taking_up
        if self.online and not first and taking_up is None:
            taking_up = self._online()
        if taking_up is not None:
            fitted, told, error = _core.update(
                self.fitted_,
                _aligned(X),
                _aligned(Y),
                weights=_aligned(weights),
                extra=extra,
                **taking_up,
            )
            self._keep(fitted, error)
            self.update_report_ = json.loads(told)
            self.n_samples_seen_ = self._about["rows"]
            return
        begin: dict[str, Any] = {}
        if self.online:
            # a later part may lie elsewhere: points, and more of them than rows there are now
            self._online()
            begin["count"] = (
                min(100, len(X)) if self.n_inducing is None and isinstance(self.inducing, str) else None
            )
        elif not first and not _is_in_batches(self.method_):
            if any(column["encoding"] != "number" for column in self._about["columns"]):
                raise ValueError(
                    f"this model of a file with texts was fitted by `{self.method_}`, which sees all rows at once: learn "
                    "from the file by a method such as 'svgp', which partial_fit can continue"
                )
            warnings.warn(
                f"this model was fitted by `{self.method_}`, which sees all rows at once: partial_fit starts "
                "anew from these rows alone. Begin with partial_fit, or fit with a method such as 'svgp'",
                UserWarning,
                stacklevel=4,
            )
            first = True
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
        own = ("seed", "batch_size", "learning_rate", "natural_rate", "time_limit")
        chosen = {name: options[name] for name in own if name in options}
        # a part may be small: steps that one of them can bear
        chosen.setdefault("learning_rate", 0.005)
        chosen.update(last_rate=1.0, epochs=self.epochs or 1)
        fitted, error = _core.go_on(
            self.fitted_,
            _aligned(X),
            _aligned(Y),
            json.dumps(chosen),
            population=seen,
            weights=_aligned(weights),
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
        }
        if isinstance(self.online, dict):
            for name in self.online:
                if name not in options:
                    raise ValueError(f"online has no option {name!r}: {hint(name, list(options))}")
            options.update(self.online)
        return options

    def _stops_early(self, likelihood: LikelihoodLike, plain: bool) -> str:
        """The method of a training that rows put aside watch."""
        if not 0 < self.early_stopping < 1:
            raise ValueError(f"early_stopping is {self.early_stopping}; it is a fraction of the rows")
        return self._in_batches(likelihood, plain, "early_stopping")

    def _in_batches(self, likelihood: LikelihoodLike, plain: bool, what: str) -> str:
        """A method that can see rows piece by piece; plain rows have neither labels nor a further number."""
        if self.method == "auto":
            gaussian = likelihood is None or as_likelihood(likelihood)._type == "gaussian"
            return "svgp2025" if gaussian and plain else "svgp"
        if not _is_in_batches(self.method) or self.full_batch:
            raise ValueError(
                f"{what} needs training by minibatches: a method such as 'svgp', and not full_batch; "
                f"method is {self.method!r}, full_batch is {self.full_batch}"
            )
        return self.method

    def _keep(
        self, fitted: Optional[_core.Fitted], error: Optional[BaseException], of_file: bool = False
    ) -> None:
        """Keeps what was learnt, also if the training was interrupted, and raises what interrupted it."""
        if fitted is not None:
            self._set_fitted(fitted)
            if of_file:
                self._restore({"feature_names": self._about["inputs"], "of_file": True})
        if error is not None:
            raise error
        # of the line that asked for it
        level, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
            level, frame = level + 1, frame.f_back
        if "most allowed" in self.stopped_:
            text = f"training {self.stopped_}: raise max_iter ({self.max_iter})"
            warnings.warn(text, ConvergenceWarning, stacklevel=level)
        if "time limit" in self.stopped_:
            text = f"training {self.stopped_}: raise time_limit ({self.time_limit})"
            warnings.warn(text, ConvergenceWarning, stacklevel=level)
        for text in self._about["warnings"]:
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

    # -- using ---------------------------------------------------------------------------------

    def _inputs(self, X: Any) -> Array:
        check_is_fitted(self, "fitted_")
        x: Array = _aligned(self._validated(X, dtype=np.float64, reset=False))
        return x

    def _validated(self, X: Any, *y: Any, reset: bool, **how: Any) -> Any:
        """scikit-learn's checks of inputs, with targets or without."""
        X = _frames.without_index(X)
        if reset:
            self._columns = None
            found = _frames.encoded(X, _kernel_text(self.kernel))
            if found is not None:
                columns, rows, inputs = found
                checked = check_X_y(rows, *y, **how) if y else check_array(rows, **how)
                self.feature_names_in_ = np.array(inputs, dtype=object)
                self.n_features_in_ = len(inputs)
                self._columns = columns
                return checked
        encoded = None if reset else self._encoded(X)
        if encoded is None:
            date = _frames.date_column(X)
            if date is not None:
                raise ValueError(_frames.durations(date))
            try:
                return validate_data(self, X, *y, reset=reset, **how)
            except ValueError as error:
                column = _frames.text_column(X) if "could not convert" in str(error) else None
                if column is None:
                    raise
                raise ValueError(
                    f"column {column!r} holds text, and numbers were learnt from: {error}"
                ) from error
        # these are the model's inputs by name; as an array they would be warned of
        return check_X_y(encoded, *y, **how) if y else check_array(encoded, **how)

    def _encoded(self, X: Any) -> Optional[Array]:
        """The inputs, if X is a frame with the columns of the file that was learnt from."""
        if not self._of_file:
            return None
        columns = self._about["columns"]
        # standard deviations of inputs are no inputs
        columns = columns[: len(columns) - len(self._about["input_sd"])]
        of_frame = {str(name) for name in _frames.columns_of(X)}
        if not of_frame.issuperset(column["name"] for column in columns):
            return None
        if len(X) == 0:
            return np.empty((0, self.n_features_in_))
        parts = []
        for column in columns:
            name = column["name"]
            values = np.asarray(X[name])
            if column["encoding"] != "number":
                values = np.array(self.fitted_.encoded(name, _frames.cells(values)))
            try:
                parts.append(np.asarray(values, dtype=np.float64).reshape(len(values), -1))
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"column {name!r} holds text, and numbers were learnt from: {error}"
                ) from error
        return np.hstack(parts)

    def _extra(self, extra: Optional[ArrayLike], rows: int, name: Optional[str]) -> Optional[Array]:
        if extra is None:
            return None
        if name is None:
            raise ValueError("this likelihood takes no extra number per row (noise variance, exposure, trials)")
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

    def hidden_layers(self, X: ArrayLike) -> list[tuple[Array, Array]]:
        """What the hidden layers of a deep model give.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        list of (mean, std)
            For every hidden layer arrays of shape (n_samples, n_outputs), on the layer's own scale; after the first layer they are
            moments over paths. Empty for a model of one layer.
        """
        found = self.fitted_.hidden_layers(self._inputs(X))
        return [(mean, np.sqrt(variance)) for mean, variance in found]

    def inducing_quality(self, X: ArrayLike, y: Any, fraction: float = 0.01) -> dict[str, Any]:
        """How well the inducing points stand for rows, at the hyperparameters found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of the training.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        fraction : float
            The points are enough where they leave at most this fraction of the noise variance (for another
            likelihood than Gaussian noise, of the prior variance) unexplained in the mean row.

        Returns
        -------
        dict
            ``"processes"``, one for each kernel with its points: ``"trace_residual"``, the share of the prior
            variance that is left unexplained, ``"largest"`` of the rows' shares and their histogram
            ``"shares"``, and ``"suggestion"``, how many points would be enough. ``"gap"``, in the units of y: the
            log evidence of the rows lies between ``"lower"`` and ``"upper"``; none unless the noise is Gaussian
            and the same in all rows.

        Raises
        ------
        ValueError
            If the model has no inducing points.
        """
        x, Y = self._known_rows(X, y)
        found: dict[str, Any] = json.loads(self.fitted_.inducing_quality(x, Y, float(fraction)))
        return found

    def latent_mean_and_variance(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of the latent functions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        mean, variance : arrays of shape (n_samples,), or (n_samples, n_latents) if there are several
            In the units of y where there is one latent function for each target; else on the model's
            scale.
        """
        x = self._inputs(X)
        mean, variance = self.fitted_.predict(x, latent=True)
        if mean.shape[1] == 1:
            return mean[:, 0], variance[:, 0]
        return mean, variance

    def predict_gradients(self, X: ArrayLike) -> tuple[Array, Array]:
        """Slopes of mean and variance of the latent functions in the inputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        mean, variance : arrays of shape (n_samples, n_features), or (n_samples, n_features, n_latents) if \
there are several
            Of :meth:`latent_mean_and_variance`, per unit of each feature.
        """
        mean, variance = self.fitted_.predict_gradients(self._inputs(X))
        if len(mean) == 1:
            return mean[0], variance[0]
        return np.moveaxis(mean, 0, -1), np.moveaxis(variance, 0, -1)

    def sample_f(self, n_samples: int = 1, random_state: Any = 0, waves: int = 1024) -> Functions:
        """Draws of the latent functions that can be evaluated anywhere, cheaply: by Matheron's rule with random
        Fourier features.

        Parameters
        ----------
        n_samples : int
            Number of draws.
        random_state : int, RandomState instance or None
        waves : int
            Waves that the prior part of every function is made of.

        Returns
        -------
        sparsegp.models.Functions
            A callable: ``functions(X)`` has the shape (n_samples, len(X), n_latents), in the units of
            :meth:`latent_mean_and_variance`.

        Raises
        ------
        ValueError
            For kernels without a spectral density; stationary ones, their sums and products have one.
        """
        check_is_fitted(self, "fitted_")
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        draws = self.fitted_.sample_functions(
            _whole("n_samples", n_samples, 1), _whole("waves", waves, 1), seed
        )
        return Functions(draws)

    @property
    def model_(self) -> Any:
        """The model for closer work (:class:`sparsegp.models.Model`), on its own (standardised) scale."""
        from ..models import Model

        check_is_fitted(self, "fitted_")
        return Model._of(self.fitted_.model())

    # -- files ---------------------------------------------------------------------------------

    def _annotations(self) -> dict[str, str]:
        params = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, (Kernel, Likelihood)):
                value = value.to_json()
            elif isinstance(value, (list, tuple)):
                value = [v.to_json() if isinstance(v, Kernel) else v for v in value]
            elif isinstance(value, os.PathLike):
                value = os.fspath(value)
            if name == "callback" or isinstance(value, np.random.RandomState):
                continue
            params[name] = value
        names = getattr(self, "feature_names_in_", None)
        about = {
            "estimator": type(self).__name__,
            "params": params,
            "feature_names": None if names is None else list(names),
            "outputs": getattr(self, "_y_ndim", 1),
            "seen": getattr(self, "n_samples_seen_", None),
            "of_file": self._of_file,
            **self._annotated(),
        }
        return {"python": json.dumps(about, default=_plain)}

    def _annotated(self) -> dict[str, Any]:
        return {}

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

    def save(self, path: Path) -> None:
        """Writes a model file, which :func:`sparsegp.load` and the command line read.

        Parameters
        ----------
        path : str or path
            By custom it ends in ``.safetensors``.
        """
        check_is_fitted(self, "fitted_")
        self._whole.annotated(self._annotations()).save(os.fspath(path))

    @classmethod
    def load(cls: type[E], path: Path) -> E:
        """Reads a model file that an estimator of this kind or the command line wrote.

        Raises
        ------
        ValueError
            If the file holds a model of another kind, or none.
        """
        from ._files import load

        estimator = load(path)
        if not isinstance(estimator, cls):
            raise ValueError(f"{os.fspath(path)} holds a {type(estimator).__name__}, not a {cls.__name__}")
        return estimator

    # -- telling -------------------------------------------------------------------------------

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
        rows = [("parameter", "model's scale", "data's units")]
        rows += [(path, model, units or "") for path, model, units in self._table()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        for row in rows:
            lines.append(f"  {row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}".rstrip())
        return "\n".join(lines)

    def _table(self) -> list[tuple[str, str, Optional[str]]]:
        rows: list[tuple[str, str, Optional[str]]] = []
        names, parameters = self._about["inputs"], self._about["parameters"]
        # of a deep model the first layer alone sees the inputs
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, and priors, in JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"a model file cannot hold the {type(value).__name__} {value!r}")


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
