"""Models made by hand, for people who know Gaussian processes: every part is given, nothing is scaled,
every parameter is a path.

>>> import numpy as np
>>> from sparsegp import kernels, models
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(0, 5, (100, 1))
>>> Y = np.sin(X) + 0.1 * rng.standard_normal((100, 1))
>>> model = models.SGPR((X, Y), kernels.RBF(1.0, 1.0), inducing_points=X[:10], noise_variance=0.1)
>>> model.elbo() < models.GPR((X, Y), kernels.RBF(1.0, 1.0), noise_variance=0.1).log_marginal_likelihood()
True
>>> report = model.optimise()
>>> mean, variance = model.predict_y([[2.0]])
>>> bool(abs(mean[0, 0] - np.sin(2.0)) < 0.1)
True

Inputs ``X`` are N×D, targets ``Y`` N×P (or N numbers). A target column has the K latent functions that
its likelihood asks for, L = K·P in all. Paths are ``kernel.lengthscales``, ``likelihood.variance``,
``inducing.points``, ``q.mu``, ``q.sqrt``, ``mean.constant``, and so on: ``model.parameters`` has all.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from typing import Any, Callable, Optional, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._progress import Progress, watch
from .kernels import Kernel, _matrix, _vector, _whole, as_kernel
from .likelihoods import Gaussian, Likelihood, as_likelihood
from .priors import Parameter, Prior

__all__ = ["GPR", "SGPR", "SVGP", "TSVGP", "TVGP", "DeepGP", "Functions", "Model", "gplvm_bound"]

Array = NDArray[np.float64]
Data = tuple[ArrayLike, ArrayLike]
KernelLike = Union[str, Kernel, Sequence[Union[str, Kernel]]]
LikelihoodLike = Union[str, Likelihood]
Mean = Union[str, dict[str, Any]]
M = TypeVar("M", bound="Model")

_TRAINING = """Trains every parameter that is not frozen.

        Parameters
        ----------
        data : (X, Y), optional
            Of models that do not keep their data.
        extra, weights : array-like, optional
            The further number of every row, and how often its term counts.
        batch_size : int, optional
            Rows of a minibatch, for Adam and natural-gradient steps; by default all rows at once, by
            L-BFGS (or, for sites, in rounds of steps of q and L-BFGS).
        optimiser : {"lbfgs", "adam"}
            For all rows at once.
        max_iterations : int
            Most iterations of that.
        tolerance : float, optional
            Ends where ten iterations of L-BFGS raise the objective by no more than this fraction of its size (or nats
            per target, whichever is less) and the gradient promises no more; ``--tolerance`` of the command line and
            ``tol`` of the estimators, which take 1e-4. By default training goes on to the optimum's last digits.
        iterations, epochs : int, optional
            How many minibatches to learn from (rounded up to whole passes), or how many passes. Without
            minibatches ``iterations`` is another name of ``max_iterations``.
        learning_rate, natural_rate : float, optional
            Of Adam (by default 0.03 for minibatches, 0.01 for all rows at once); of natural-gradient steps of q (0:
            Adam on q too).
        time_limit : float, optional
            Seconds after which the training ends with the best found so far; it is looked at between evaluations.
        seed : int
            Of the order of minibatches.
        callback : callable, optional
            Gets a dictionary of every event; returning True ends the training.
        verbose : int
            Whether to show progress.

        Returns
        -------
        dict
            How it went: ``"stopped"``, ``"converged"``, ``"iterations"``, ``"objective"``,
            ``"seconds"``, ``"trace"`` and more. A parameter that ends at a bound is warned of.

        Raises
        ------
        KeyboardInterrupt
            On Ctrl-C; the model has the best parameters found.
        sparsegp.NumericalError
            If the start cannot be evaluated.
        """


def _y(y: ArrayLike) -> Array:
    return _matrix(y, "Y")


class Functions:
    """Draws of the latent functions of a posterior: call them with inputs N×D for their values, draws×N×L."""

    def __init__(self, functions: _core.Functions) -> None:
        self._functions = functions

    def __len__(self) -> int:
        return len(self._functions)

    def __call__(self, Xnew: ArrayLike) -> Array:
        """Values at ``Xnew``, the same whenever they are asked for."""
        return self._functions.evaluate(_matrix(Xnew, "Xnew"))


class Model:
    """What all models have in common. Make one of the others."""

    _model: _core.Model
    _data: Optional[tuple[Array, Array]] = None
    _further: dict[str, Optional[Array]] = {}
    _num_data: Optional[int] = None
    # the specification and the inducing points that it was made of
    _made: Optional[tuple[str, Optional[list[Array]]]] = None

    def __init__(self) -> None:
        raise TypeError("make a GPR, SGPR, SVGP, TSVGP, TVGP or DeepGP")

    @classmethod
    def _of(cls: type[M], model: _core.Model) -> M:
        own = cls.__new__(cls)
        own._model = model
        return own

    def _build(
        self,
        method: str,
        kernel: KernelLike,
        likelihood: LikelihoodLike,
        mean: Mean,
        inputs: int,
        outputs: int,
        rows: int = 0,
        points: Optional[list[Array]] = None,
        *,
        whiten: bool = True,
        q_diag: bool = False,
        tying: Optional[str] = None,
        jitter: Optional[float] = None,
        q_mu: Optional[ArrayLike] = None,
        q_sqrt: Optional[ArrayLike] = None,
    ) -> None:
        if isinstance(kernel, (str, Kernel)):
            kernel = [kernel]
        if jitter is not None and not 0 <= jitter < np.inf:
            raise ValueError(f"jitter is {jitter!r}; it must be a number from 0")
        spec = {
            "method": method,
            "kernels": [as_kernel(k).to_json() for k in kernel],
            "likelihood": as_likelihood(likelihood).to_json(),
            "mean": {"type": mean} if isinstance(mean, str) else mean,
            "inputs": inputs,
            "outputs": outputs,
            "rows": rows,
            "whiten": whiten,
            "diagonal": q_diag,
            "tying": tying,
            "jitter": jitter,
        }
        root = None
        if q_sqrt is not None:
            root = np.require(q_sqrt, np.float64, "A")
            root = root[None] if root.ndim == 2 else root
        mu = None if q_mu is None else _matrix(q_mu, "q_mu")
        text = json.dumps(spec)
        self._made = (text, points)
        self._model = _core.Model(text, points, mu, root)

    def _rows(
        self, data: Optional[Data], extra: Optional[ArrayLike], weights: Optional[ArrayLike]
    ) -> tuple[Array, Array, dict[str, Any]]:
        if data is not None:
            further = {"extra": _vector(extra, "extra"), "weights": _vector(weights, "weights")}
            return _matrix(data[0]), _y(data[1]), {**further, "population": self._num_data}
        if self._data is None:
            raise ValueError("this model does not keep data: give `data=(X, Y)`")
        if extra is not None or weights is not None:
            raise ValueError("extra and weights belong to `data`: give all of them")
        return (*self._data, {**self._further, "population": self._num_data})

    # -- parameters ----------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Array]:
        """Constrained values by path; matrices in their shapes, q's roots L×M×M."""
        return {row["path"]: self._model.get(row["path"]) for row in self._table()}

    def _table(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self._model.describe())["parameters"]
        return rows

    def __getitem__(self, path: str) -> Array:
        return self._model.get(path)

    def __setitem__(self, path: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._model.set_prior(path, None if value.prior is None else json.dumps(value.prior.to_dict()))
            self._model.freeze(path, value.fixed)
            if value.value is None:
                return
            value = value.value
        own, given = self[path].shape, np.require(value, np.float64, ["C", "A"])
        # a transposed matrix has the right number of values in the wrong places
        if given.ndim > 1 and [n for n in given.shape if n != 1] != [n for n in own if n != 1]:
            raise ValueError(f"{path} has the shape {own}, not {given.shape}")
        self._model.set(path, given.ravel())

    def freeze(self, group: str) -> None:
        """Excludes from training a parameter, or all whose path begins with ``group``."""
        self._model.freeze(group, True)

    def unfreeze(self, group: str) -> None:
        """Undoes :meth:`freeze`."""
        self._model.freeze(group, False)

    def set_prior(self, path: str, prior: Optional[Prior]) -> None:
        """Gives a parameter a prior (or none)."""
        self._model.set_prior(path, None if prior is None else json.dumps(prior.to_dict()))

    def log_prior(self) -> float:
        """Sum of the log densities of the priors."""
        return self._model.log_prior()

    def copy(self: M) -> M:
        """A model of its own with the same parameters."""
        own = type(self)._of(self._model.copy())
        own._data, own._further, own._num_data = self._data, self._further, self._num_data
        own._made = self._made
        return own

    def __getstate__(self) -> dict[str, Any]:
        """For :mod:`pickle` and :func:`copy.deepcopy`: everything, the data that it keeps included."""
        if self._made is None:
            raise TypeError("the model of an estimator has no state of its own: pickle or save the estimator")
        rows = [{key: row[key] for key in ("path", "frozen", "prior")} for row in self._table()]
        return {
            "made": self._made,
            "parameters": [(row, self._model.get(row["path"])) for row in rows],
            "data": (self._data, self._further, self._num_data),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._made = state["made"]
        self._data, self._further, self._num_data = state["data"]
        self._model = _core.Model(*state["made"])
        frozen = {row["path"]: row["frozen"] for row in self._table()}
        for row, value in state["parameters"]:
            path, prior = row["path"], row["prior"]
            self[path] = value
            if row["frozen"] != frozen[path]:  # of sites nothing may be said
                self._model.freeze(path, row["frozen"])
            self._model.set_prior(path, None if prior is None else json.dumps(prior))

    # -- objective -----------------------------------------------------------------------------

    def elbo(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> float:
        """The bound on the log evidence (for :class:`GPR` that itself) at the present parameters, without
        priors. For rows of a larger data set the sum over rows is scaled by num_data/N. ``extra`` is the
        further number of every row, ``weights`` how often its term counts."""
        x, y, further = self._rows(data, extra, weights)
        return self._model.evaluate(x, y, gradients=False, **further)[0]

    def elbo_and_gradients(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> tuple[float, dict[str, Array]]:
        """:meth:`elbo`, and its gradients with respect to the constrained values, by path. Zeros stand for what gradients do
        not move: sites (``q.lambda1``, ``q.lambda2``), which have steps of their own, and ``q.t_sqrt`` of ``rsvgp``."""
        x, y, further = self._rows(data, extra, weights)
        value, gradients = self._model.evaluate(x, y, **further)
        return value, gradients or {}

    def gradients(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> dict[str, Array]:
        """The gradients of :meth:`elbo`."""
        return self.elbo_and_gradients(data, extra=extra, weights=weights)[1]

    # -- training ------------------------------------------------------------------------------

    def optimise(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
        batch_size: Optional[int] = None,
        optimiser: str = "lbfgs",
        max_iterations: int = 1000,
        tolerance: Optional[float] = None,
        iterations: Optional[int] = None,
        epochs: Optional[int] = None,
        learning_rate: Optional[float] = None,
        natural_rate: Optional[float] = None,
        time_limit: Optional[float] = None,
        seed: int = 0,
        callback: Optional[Callable[[dict[str, Any]], Optional[bool]]] = None,
        verbose: int = 0,
    ) -> dict[str, Any]:
        x, y, further = self._rows(data, extra, weights)
        batch_size = None if batch_size is None else _whole("batch_size", batch_size, 1)
        epochs = None if epochs is None else _whole("epochs", epochs, 1)
        iterations = None if iterations is None else _whole("iterations", iterations, 0)
        if batch_size is None and epochs is not None:
            raise ValueError("epochs are of minibatches: give batch_size too")
        if batch_size is None and iterations is not None:
            max_iterations = iterations
        max_iterations = _whole("max_iterations", max_iterations, 0)
        if tolerance is not None and not 0 <= tolerance < math.inf:
            raise ValueError(f"tolerance is {tolerance}; it is a positive number")
        if tolerance is not None and (batch_size is not None or optimiser != "lbfgs"):
            raise ValueError("tolerance is for L-BFGS on all rows: leave out it, batch_size or optimiser")
        options: dict[str, Any] = {
            "optimiser": optimiser,
            "max_iterations": max_iterations,
            "tolerance": tolerance,
            "seed": _whole("seed", seed, 0),
        }
        progress = Progress(max_iterations) if verbose else None
        if batch_size is not None:
            per_epoch = -(-len(x) // max(1, min(batch_size, len(x))))
            if iterations is not None and epochs is None:
                epochs = -(-iterations // per_epoch)
            options.update(batch_size=batch_size, epochs=epochs)
            progress = Progress(max_iterations, batch_size) if verbose else None
        options.update(learning_rate=learning_rate, natural_rate=natural_rate, time_limit=time_limit)
        given = {name: value for name, value in options.items() if value is not None}
        try:
            report, error = self._model.optimise(
                x, y, json.dumps(given), callback=watch(progress, callback), **further
            )
        finally:
            if progress is not None:
                progress.close()
        if error is not None:
            raise error
        found: dict[str, Any] = json.loads(report)
        for text in self._model.at_bounds():
            warnings.warn(text, UserWarning, stacklevel=2)
        return found

    optimise.__doc__ = _TRAINING

    # -- prediction ----------------------------------------------------------------------------

    def _condition(self) -> None:
        if not self._model.is_conditioned:
            if self._data is None:
                self._model.condition()
            else:
                self._model.condition(*self._data, **self._further)

    def predict_f(self, Xnew: ArrayLike, full_cov: bool = False) -> tuple[Array, Array]:
        """Means N×L and variances N×L of the latent functions, or with ``full_cov`` covariances L×N×N. What
        prediction needs is computed once and kept until a parameter changes."""
        self._condition()
        x = _matrix(Xnew, "Xnew")
        return self._model.predict_f_full(x) if full_cov else self._model.predict_f(x)

    def predict_f_gradients(self, Xnew: ArrayLike) -> tuple[Array, Array]:
        """Slopes of the means and variances of :meth:`predict_f` in the inputs, L×N×D each."""
        self._condition()
        return self._model.predict_gradients(_matrix(Xnew, "Xnew"))

    def loo(
        self,
        data: Optional[Data] = None,
        *,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> dict[str, Array]:
        """Leave-one-out: every row as the others predict it, at the present parameters, without conditioning
        anew. For Gaussian noise that is exact; else the row's own site is taken from q, which must be at its
        optimum.

        Parameters
        ----------
        data : (X, Y), optional
            The rows that the model was trained on, for models that do not keep their data.
        extra, weights : array-like, optional
            The further number of every row, and how often its term counts.

        Returns
        -------
        dict
            ``"mean"``, ``"variance"`` and ``"log_density"`` of the observations, N×P, and ``"f_mean"`` and
            ``"f_variance"`` of the latent functions, N×L.

        Raises
        ------
        ValueError
            For models whose posterior is not made of sites of rows, and for rows that another posterior must have seen. Not
            all other rows can be told from those of training: give the latter.
        """
        self._condition()
        x, y, further = self._rows(data, extra, weights)
        further.pop("population")
        return self._model.leave_one_out(x, y, **further)

    def inducing_quality(
        self,
        data: Optional[Data] = None,
        *,
        fraction: float = 0.01,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> dict[str, Any]:
        """How well the inducing points stand for the rows, at the present hyperparameters.

        Parameters
        ----------
        data : (X, Y), optional
            Rows, for models that do not keep their data.
        fraction : float
            The points are enough where they leave at most this fraction of the noise variance (for another
            likelihood than Gaussian noise, of the prior variance) unexplained in the mean row.
        extra, weights : array-like, optional
            The further number of every row, and how often its term counts.

        Returns
        -------
        dict
            ``"processes"``, one for each kernel with its points: ``"trace_residual"``, the share of the prior
            variance that is left unexplained, ``"largest"`` of the rows' shares and their histogram
            ``"shares"``, and ``"suggestion"``, how many points would be enough. ``"gap"``: the log evidence lies
            between ``"lower"`` and ``"upper"``; none unless the noise is Gaussian and the same in all rows.
        """
        x, y, further = self._rows(data, extra, weights)
        further.pop("population")
        found: dict[str, Any] = json.loads(self._model.inducing_quality(x, y, float(fraction), **further))
        return found

    def predict_y(self, Xnew: ArrayLike, extra: Optional[ArrayLike] = None) -> tuple[Array, Array]:
        """Means and variances of observations, N×P each. ``extra`` is the further number of every row."""
        self._condition()
        return self._model.predict_y(_matrix(Xnew, "Xnew"), extra=_vector(extra, "extra"))

    def predict_proba(self, Xnew: ArrayLike) -> Array:
        """Probabilities of the classes, N×C, where targets are classes; N×P×C for several columns of them."""
        self._condition()
        x, known = _matrix(Xnew, "Xnew"), json.loads(self._model.describe())
        if known["outputs"] == 1:
            return self._model.predict_proba(x)
        f, own = self._model.predict_f(x), int(known["latents"])
        likelihood = as_likelihood(json.dumps(known["specification"]))
        columns = [slice(first, first + own) for first in range(0, f[0].shape[1], own)]
        return np.stack([likelihood.predict_proba(*(a[:, c] for a in f)) for c in columns], axis=1)

    def predict_log_density(self, data: Data, extra: Optional[ArrayLike] = None) -> Array:
        """log p(y) of every row of ``(X, Y)``, summed over the columns of Y."""
        self._condition()
        return self._model.predict_log_density(_matrix(data[0]), _y(data[1]), extra=_vector(extra, "extra"))

    def predict_f_samples(self, Xnew: ArrayLike, num_samples: int = 1, seed: int = 0) -> Array:
        """Joint draws of the latent functions, num_samples×N×L."""
        self._condition()
        num_samples, seed = _whole("num_samples", num_samples, 1), _whole("seed", seed, 0)
        return self._model.predict_f_samples(_matrix(Xnew, "Xnew"), num_samples, seed)

    def sample_functions(self, num_samples: int = 1, seed: int = 0, waves: int = 1024) -> Functions:
        """Draws of the latent functions that can be evaluated anywhere, in O(waves + M) for every value, where
        :meth:`predict_f_samples` takes O(N³) for N of them: by Matheron's rule with random Fourier features.

        Returns
        -------
        Functions
            A callable: ``functions(Xnew)`` is num_samples×N×L, the same values for the same inputs.

        Raises
        ------
        ValueError
            For kernels without a spectral density; stationary ones, their sums and products have one.
        """
        self._condition()
        num_samples, seed = _whole("num_samples", num_samples, 1), _whole("seed", seed, 0)
        return Functions(self._model.sample_functions(num_samples, _whole("waves", waves, 1), seed))

    @property
    def q_u(self) -> Optional[tuple[Array, Array]]:
        """Mean M×L and covariances L×M×M of u = f(Z) − mean(Z); None for exact inference."""
        self._condition()
        return self._model.q_u()

    def _q(self, path: str) -> Optional[Array]:
        """A parameter of q, if it is one."""
        paths = {row["path"] for row in self._table()}
        if not any(known.startswith("inducing.points") for known in paths):
            raise AttributeError(
                f"{type(self).__name__} has no inducing points, and so no q(u): "
                "predict_f(X, full_cov=True) has the posterior of f at the rows of training"
            )
        return self._model.get(path) if path in paths else None

    @property
    def q_mu(self) -> Array:
        """Mean of q, M×L: as it is stored (``q.mu``) where it is a parameter, else of the whitened u. Models without inducing points
        have none."""
        stored = self._q("q.mu")
        if stored is None:
            self._condition()
            stored = self._model.q()[0]
        return stored

    @property
    def q_sqrt(self) -> Array:
        """Lower roots of q's covariances, L×M×M (standard deviations M×L for ``q_diag``), as
        :attr:`q_mu`."""
        stored = self._q("q.sqrt")
        if stored is None:
            self._condition()
            mean, roots = self._model.q()
            # the columns of a collapsed bound have one covariance
            stored = np.broadcast_to(roots, (mean.shape[1], *roots.shape[1:])).copy()
        return stored

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ({json.loads(self._model.describe())['method']})"]
        rows = []
        for row in self._table():
            value = self._model.get(row["path"])
            text = np.array2string(value, precision=4, threshold=6) if value.ndim < 2 else ""
            notes = [row["shape"], row["transform"]]
            if row["prior"]:
                notes.append(f"prior {row['prior']['type']}")
            if row["frozen"]:
                notes.append("fixed")
            rows.append((row["path"], text, ", ".join(notes)))
        widths = [max(len(r[i]) for r in rows) for i in range(2)] if rows else [0, 0]
        lines += [f"  {p:<{widths[0]}}  {v:<{widths[1]}}  {n}" for p, v, n in rows]
        return "\n".join(lines)


class _Kept(Model):
    """Models that keep their data."""

    def _keep(
        self,
        data: Data,
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> tuple[int, int, int]:
        # its own: what happens to the arrays later is not of the model
        x, y = _matrix(data[0]).copy(), _y(data[1]).copy()
        further = {"extra": _vector(extra, "extra"), "weights": _vector(weights, "weights")}
        self._further = {name: None if v is None else v.copy() for name, v in further.items()}
        if len(x) != len(y):
            raise ValueError(f"X has {len(x)} rows, Y has {len(y)}")
        self._data = (x, y)
        return x.shape[1], y.shape[1], len(x)


class _WithQ(Model):
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


def _noise(noise_variance: Union[float, Parameter]) -> Likelihood:
    return Gaussian(variance=noise_variance)


class GPR(_Kept):
    """Exact Gaussian-process regression: O(N³).

    Parameters
    ----------
    data : (X, Y)
    kernel : Kernel or str
    noise_variance : float or Parameter
        Any positive number, or 0, which is kept: the model then goes through every row.
    mean : str or dict
        ``"zero"``, ``"constant"``, ``"linear"``.
    extra, weights : array-like, optional
        Known variance of the noise of every row (beside ``noise_variance``), and how often its term
        counts.
    """

    def __init__(
        self,
        data: Data,
        kernel: KernelLike,
        *,
        noise_variance: Union[float, Parameter] = 1.0,
        mean: Mean = "zero",
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
    ) -> None:
        inputs, outputs, _ = self._keep(data, extra, weights)
        self._build("exact", kernel, _noise(noise_variance), mean, inputs, outputs)

    def log_marginal_likelihood(self) -> float:
        """log p(Y)."""
        return self.elbo()

    def log_marginal_likelihood_and_gradients(self) -> tuple[float, dict[str, Array]]:
        """log p(Y), and its gradients with respect to the constrained values, by path."""
        return self.elbo_and_gradients()


class SGPR(_Kept):
    """Sparse regression by a collapsed bound (or by FITC or power EP, which are not bounds): O(NM²).

    Parameters
    ----------
    data : (X, Y)
    kernel : Kernel or str
    inducing_points : array of shape (M, D)
    noise_variance : float or Parameter
    bound : {"titsias2025", "spherical", "titsias2009", "fitc", "pep"}
        The tightest first. The last two are approximations of the log evidence that may be above it:
        ``elbo`` is not a bound then.
    alpha : float, optional
        Power of ``"pep"``, 0 < alpha ≤ 1; by default 0.5. Towards 0 it is ``"titsias2009"``, at 1
        ``"fitc"``.
    mean : str or dict
    jitter : float, optional
        Absolute jitter of Kuu; by default 1e-6 of its mean diagonal, more where needed.
    """

    def __init__(
        self,
        data: Data,
        kernel: KernelLike,
        inducing_points: ArrayLike,
        *,
        noise_variance: Union[float, Parameter] = 1.0,
        bound: str = "titsias2025",
        alpha: Optional[float] = None,
        mean: Mean = "zero",
        jitter: Optional[float] = None,
    ) -> None:
        _one_of("bound", bound, ("titsias2025", "spherical", "titsias2009", "fitc", "pep"))
        if alpha is not None:
            if bound != "pep":
                raise ValueError(f"alpha is the power of 'pep', and bound is {bound!r}")
            bound = f"pep(alpha={float(alpha)!r})"
        inputs, outputs, _ = self._keep(data)
        points = [_matrix(inducing_points, "inducing_points")]
        likelihood = _noise(noise_variance)
        self._build(bound, kernel, likelihood, mean, inputs, outputs, points=points, jitter=jitter)

    def predict_f_high_cost(self, Xnew: ArrayLike) -> tuple[Array, Array]:
        """Means and variances of the latent functions, N×L, by the q(f | u) that the bounds ``"titsias2025"``
        and ``"spherical"`` have in mind, which takes the rows: O(N³), for up to 4096 of them. The means are
        those of :meth:`predict_f`, the variances are smaller.

        Raises
        ------
        ValueError
            For more rows, and for FITC and power EP.
        """
        x, y, _ = self._rows(None, None, None)
        return self._model.predict_high_cost(x, y, _matrix(Xnew, "Xnew"))

    def upper_bound(self) -> float:
        """An upper bound on the log evidence."""
        x, y, _ = self._rows(None, None, None)
        return self._model.upper_bound(x, y)


class SVGP(_WithQ):
    """Sparse variational inference with a trained q(u): any likelihood, minibatches.

    Parameters
    ----------
    kernel : Kernel, str, or a list of one for each latent function
    likelihood : Likelihood or str
    inducing_points : array of shape (M, D), or a list of one for each latent function
    num_data : int, optional
        Number N of rows that a minibatch stands for; by default those given.
    num_outputs : int
        Columns of Y.
    bound : {"svgp", "svgp2025", "svgp-spherical"}
    whiten : bool
        Whether q is of v with u = Lv.
    q_diag : bool
        Whether q has standard deviations only.
    q_mu, q_sqrt : arrays, optional
        M×L and L×M×M (M×L for ``q_diag``): where q starts; by default the prior (if whitened).
    mean : str or dict
    jitter : float, optional
    """

    def __init__(
        self,
        kernel: KernelLike,
        likelihood: LikelihoodLike,
        inducing_points: Union[ArrayLike, list[Array]],
        *,
        num_data: Optional[int] = None,
        num_outputs: int = 1,
        bound: str = "svgp",
        whiten: bool = True,
        q_diag: bool = False,
        q_mu: Optional[ArrayLike] = None,
        q_sqrt: Optional[ArrayLike] = None,
        mean: Mean = "zero",
        jitter: Optional[float] = None,
    ) -> None:
        _one_of("bound", bound, ("svgp", "svgp2025", "svgp-spherical"))
        points = _sets(inducing_points)
        self._num_data = None if num_data is None else _whole("num_data", num_data, 1)
        self._build(
            bound,
            kernel,
            likelihood,
            mean,
            points[0].shape[1],
            num_outputs,
            points=points,
            whiten=whiten,
            q_diag=q_diag,
            jitter=jitter,
            q_mu=q_mu,
            q_sqrt=q_sqrt,
        )


class TSVGP(_WithQ):
    """Sparse variational inference with q kept as the prior times sites (dual parameters).

    Parameters
    ----------
    kernel, likelihood, inducing_points, num_data, num_outputs, mean, jitter
        As for :class:`SVGP`.
    tying : {"natural", "kernel", "whitened"}
        Which site statistics stay fixed while hyperparameters change.
    """

    def __init__(
        self,
        kernel: KernelLike,
        likelihood: LikelihoodLike,
        inducing_points: Union[ArrayLike, list[Array]],
        *,
        num_data: Optional[int] = None,
        num_outputs: int = 1,
        tying: str = "natural",
        mean: Mean = "zero",
        jitter: Optional[float] = None,
    ) -> None:
        if tying == "untied":
            raise ValueError(
                'tying="untied" keeps two numbers for every row, which `TSVGP` does not: use "natural"; on the command '
                "line `sparsegp fit --method tsvgp --tying untied --full-batch` has it, and `TVGP` is the model with "
                "sites of all rows and without inducing points"
            )
        points = _sets(inducing_points)
        self._num_data = None if num_data is None else _whole("num_data", num_data, 1)
        dim = points[0].shape[1]
        self._build(
            "tsvgp",
            kernel,
            likelihood,
            mean,
            dim,
            num_outputs,
            points=points,
            tying=tying,
            jitter=jitter,
        )


class TVGP(_Kept, _WithQ):
    """Variational inference for any likelihood with a site for every row, without inducing points:
    O(N³).

    Parameters
    ----------
    data : (X, Y)
    kernel : Kernel, str, or a list of one for each latent function
    likelihood : Likelihood or str
    mean : str or dict
    extra, weights : array-like, optional
        The further number of every row, and how often its term counts.
    jitter : float, optional
    """

    def __init__(
        self,
        data: Data,
        kernel: KernelLike,
        likelihood: LikelihoodLike,
        *,
        mean: Mean = "zero",
        extra: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
        jitter: Optional[float] = None,
    ) -> None:
        inputs, outputs, rows = self._keep(data, extra, weights)
        self._build("tvgp", kernel, likelihood, mean, inputs, outputs, rows, jitter=jitter)


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, known))}")


def _sets(points: Union[ArrayLike, list[Array]]) -> list[Array]:
    if isinstance(points, list) and points and isinstance(points[0], np.ndarray) and points[0].ndim == 2:
        return [_matrix(z, "inducing_points") for z in points]
    return [_matrix(points, "inducing_points")]  # type: ignore[arg-type]


def gplvm_bound(
    Y: ArrayLike,
    X_mean: ArrayLike,
    X_variance: ArrayLike,
    kernel: Union[str, Kernel],
    inducing_points: ArrayLike,
    *,
    noise_variance: float = 1.0,
    bound: str = "titsias2025",
) -> tuple[float, dict[str, Array]]:
    """The bound of a Bayesian GP-LVM at given parameters, and its gradients.

    Parameters
    ----------
    Y : array of shape (N, P)
        Targets; NaN where a cell is missing.
    X_mean, X_variance : arrays of shape (N, Q)
        Of q(X), whose prior is N(0, I).
    kernel : Kernel or str
        Of squared exponentials, linear and constant ones, their sums and products with constants.
    inducing_points : array of shape (M, Q)
    noise_variance : float
    bound : {"titsias2025", "spherical", "titsias2009"}

    Returns
    -------
    value : float
    gradients : dict of arrays
        With respect to the constrained values, by path: ``kernel.…``, ``likelihood.variance``, ``inducing.points`` (M×Q),
        ``latent.mean``, ``latent.variance`` (N×Q).
    """
    _one_of("bound", bound, ("titsias2025", "spherical", "titsias2009"))
    mean, variance, points = _matrix(X_mean), _matrix(X_variance), _matrix(inducing_points)
    targets = np.require(Y, np.float64, "A")
    value, found = _core.gplvm_bound(
        targets, mean, variance, points, as_kernel(kernel).to_json(), float(noise_variance), bound
    )
    shapes = {"inducing.points": points.shape, "latent.mean": mean.shape, "latent.variance": mean.shape}
    gradients = {}
    for path, numbers in found.items():
        own = np.array(numbers)
        gradients[path] = own.reshape(shapes[path], order="F") if path in shapes else own
    return value, gradients


# at the end: it is a model of this module
from ._deep import DeepGP  # noqa: E402
