"""What there is of observation models, and how texts become likelihoods."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, Optional, Union

from numpy.typing import ArrayLike

from .. import _core
from .._arrays import Array, matrix, vector
from .._registry import entries as entries_of
from .._spec import Spec
from ..priors import Parameter

Scalar = Union[None, float, Parameter]
Link = Optional[str]


class Likelihood(Spec):
    """An observation model. All functions are of one target column."""

    _classes: ClassVar[dict[str, type[Likelihood]]] = {}

    def _core(self) -> _core.Likelihood:
        return _core.Likelihood(self.to_json())

    @property
    def num_latents(self) -> int:
        """Number K of latent values that a target depends on."""
        return self._core().num_latents

    @property
    def num_classes(self) -> Optional[int]:
        """Number of classes, if targets are classes (0, 1, …)."""
        return self._core().num_classes

    @property
    def extra(self) -> Optional[str]:
        """What the further number of a row is, if it may have one."""
        return self._core().extra

    def log_prob(self, F: ArrayLike, Y: ArrayLike, extra: Optional[ArrayLike] = None) -> Array:
        """log p(y | f) of every row."""
        return self._core().log_prob(matrix(F, "F"), vector(Y), extra=vector(extra, "extra"))

    def variational_expectations(
        self, Fmu: ArrayLike, Fvar: ArrayLike, Y: ArrayLike, extra: Optional[ArrayLike] = None
    ) -> Array:
        """E[log p(y | f)] of every row under f ~ N(Fmu, Fvar)."""
        return self.variational_expectations_and_gradients(Fmu, Fvar, Y, extra)[0]

    def variational_expectations_and_gradients(
        self, Fmu: ArrayLike, Fvar: ArrayLike, Y: ArrayLike, extra: Optional[ArrayLike] = None
    ) -> tuple[Array, dict[str, Array]]:
        """The same with gradients: ``"Fmu"`` and ``"Fvar"`` of every row (N×K), and of the sum of all
        rows with respect to the likelihood's parameters, by name."""
        values, by_mean, by_variance, params = self._core().variational_expectations(
            matrix(Fmu, "Fmu"), matrix(Fvar, "Fvar"), vector(Y), extra=vector(extra, "extra")
        )
        return values, {"Fmu": by_mean, "Fvar": by_variance, **params}

    def predict_mean_and_var(
        self, Fmu: ArrayLike, Fvar: ArrayLike, extra: Optional[ArrayLike] = None
    ) -> tuple[Array, Array]:
        """Mean and variance of y in every row."""
        return self._core().predict_mean_and_var(
            matrix(Fmu, "Fmu"), matrix(Fvar, "Fvar"), extra=vector(extra, "extra")
        )

    def predict_log_density(
        self, Fmu: ArrayLike, Fvar: ArrayLike, Y: ArrayLike, extra: Optional[ArrayLike] = None
    ) -> Array:
        """log E[p(y | f)] of every row."""
        return self._core().predict_log_density(
            matrix(Fmu, "Fmu"), matrix(Fvar, "Fvar"), vector(Y), extra=vector(extra, "extra")
        )

    def predict_cdf(
        self, Fmu: ArrayLike, Fvar: ArrayLike, Y: ArrayLike, extra: Optional[ArrayLike] = None
    ) -> Array:
        """P(Y ≤ y) in every row, for any numbers; of classes, of their index."""
        return self._core().cdf(
            matrix(Fmu, "Fmu"), matrix(Fvar, "Fvar"), vector(Y), extra=vector(extra, "extra")
        )

    def predict_quantile(
        self, Fmu: ArrayLike, Fvar: ArrayLike, level: float, extra: Optional[ArrayLike] = None
    ) -> Array:
        """The ``level`` quantile of y in every row."""
        return self._core().quantile(
            matrix(Fmu, "Fmu"), matrix(Fvar, "Fvar"), level, extra=vector(extra, "extra")
        )

    def predict_proba(self, Fmu: ArrayLike, Fvar: ArrayLike) -> Array:
        """Probabilities of the classes, N×C."""
        return self._core().predict_proba(matrix(Fmu, "Fmu"), matrix(Fvar, "Fvar"))

    def sample(self, F: ArrayLike, seed: int = 0, extra: Optional[ArrayLike] = None) -> Array:
        """One draw of y in every row."""
        return self._core().sample(matrix(F, "F"), seed, extra=vector(extra, "extra"))


class Gaussian(Likelihood):
    """y = f + noise of variance ``variance`` (and of the known variance ``extra``, where given)."""

    _type = "gaussian"

    def __init__(self, variance: Scalar = None) -> None:
        super().__init__(variance=variance)


class StudentT(Likelihood):
    """Robust: Student-t noise with ``df`` degrees of freedom."""

    _type = "student-t"

    def __init__(self, df: Scalar = None, scale: Scalar = None) -> None:
        super().__init__(df=df, scale=scale)


class Laplace(Likelihood):
    """Robust: Laplace noise."""

    _type = "laplace"

    def __init__(self, scale: Scalar = None) -> None:
        super().__init__(scale=scale)


class Matern32(Likelihood):
    """Robust: noise with exponential tails, smooth at 0."""

    _type = "matern32"

    def __init__(self, scale: Scalar = None) -> None:
        super().__init__(scale=scale)


class Logistic(Likelihood):
    """Robust: logistic noise."""

    _type = "logistic"

    def __init__(self, scale: Scalar = None) -> None:
        super().__init__(scale=scale)


class PseudoHuber(Likelihood):
    """Robust: noise that is normal near 0, with exponential tails from ``delta`` on."""

    _type = "pseudo-huber"

    def __init__(self, delta: Scalar = None, scale: Scalar = None) -> None:
        super().__init__(delta=delta, scale=scale)


class SVM(Likelihood):
    """Two classes by the hinge loss: the Bayesian support vector machine. A pseudo-likelihood."""

    _type = "svm"

    def __init__(self) -> None:
        super().__init__()


class PoissonLogistic(Likelihood):
    """Counts of the bounded rate ``exposure * rate * sigmoid(f)``."""

    _type = "poisson-logistic"

    def __init__(self, rate: Scalar = None) -> None:
        super().__init__(rate=rate)


class LogNormal(Likelihood):
    """Positive numbers whose logarithm is f plus Gaussian noise."""

    _type = "log-normal"

    def __init__(self, variance: Scalar = None) -> None:
        super().__init__(variance=variance)


class Bernoulli(Likelihood):
    """Two classes, 0 and 1; ``link`` is ``"probit"`` or ``"logit"``."""

    _type = "bernoulli"

    def __init__(self, link: Link = None, *, floor: Optional[float] = None) -> None:
        super().__init__(link=link, floor=floor)


class Binomial(Likelihood):
    """Successes out of ``extra`` trials; ``link`` is ``"probit"`` or ``"logit"``."""

    _type = "binomial"

    def __init__(self, link: Link = None, *, floor: Optional[float] = None) -> None:
        super().__init__(link=link, floor=floor)


class Poisson(Likelihood):
    """Counts of rate exp(f) or unit·softplus(f) (``link``), times the exposure ``extra``. The ``unit`` is the
    pooled rate by default. With ``whole=False`` targets need not be whole numbers."""

    _type = "poisson"

    def __init__(
        self, link: Link = None, *, whole: Optional[bool] = None, unit: Optional[float] = None
    ) -> None:
        super().__init__(link=link, whole=whole, unit=unit)


class NegativeBinomial(Likelihood):
    """Counts of rate exp(f) times the exposure ``extra``, of variance rate + dispersion·rate²."""

    _type = "negative-binomial"

    def __init__(self, dispersion: Scalar = None) -> None:
        super().__init__(dispersion=dispersion)


class ZeroInflatedPoisson(Likelihood):
    """Counts that are 0 with probability ``zero``, else Poisson."""

    _type = "zero-inflated-poisson"

    def __init__(self, zero: Scalar = None) -> None:
        super().__init__(zero=zero)


class Gamma(Likelihood):
    """Positive numbers of this ``shape`` and of the scale exp(f) or unit·softplus(f) (``link``); the ``unit`` is
    by default what makes the mean that of the targets."""

    _type = "gamma"

    def __init__(self, shape: Scalar = None, link: Link = None, *, unit: Optional[float] = None) -> None:
        super().__init__(shape=shape, link=link, unit=unit)


class Exponential(Likelihood):
    """Positive numbers, exponentially distributed, of the mean exp(f) or unit·softplus(f) (``link``); the ``unit`` is
    by default the mean of the targets."""

    _type = "exponential"

    def __init__(self, link: Link = None, *, unit: Optional[float] = None) -> None:
        super().__init__(link=link, unit=unit)


class Beta(Likelihood):
    """Numbers between 0 and 1."""

    _type = "beta"

    def __init__(self, scale: Scalar = None, link: Link = None, *, floor: Optional[float] = None) -> None:
        super().__init__(scale=scale, link=link, floor=floor)


class Ordinal(Likelihood):
    """Ordered classes 0, 1, …."""

    _type = "ordinal"

    def __init__(
        self,
        classes: Optional[int] = None,
        *,
        bin_edges: Optional[Sequence[float]] = None,
        sigma: Scalar = None,
    ) -> None:
        super().__init__(classes=classes, bin_edges=bin_edges, sigma=sigma)


class HeteroscedasticGaussian(Likelihood):
    """Gaussian noise whose scale is a second function of the inputs. ``entries`` are those of the
    specification."""

    _type = "heteroscedastic"

    def __init__(self, **entries: Any) -> None:
        super().__init__(**entries)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self.__dict__)


class HeteroscedasticStudentT(HeteroscedasticGaussian):
    """Student-t noise whose scale is a second function of the inputs."""

    _type = "heteroscedastic-student-t"


class _Classes(Likelihood):
    """Classes 0, …, ``classes`` − 1, with a latent function each. Further ``entries`` are those of the
    specification."""

    def __init__(self, classes: Optional[int] = None, **entries: Any) -> None:
        super().__init__(classes=classes, **entries)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self.__dict__)


class Softmax(_Classes):
    """Softmax of the latent functions.

    ``integration`` says how expectations are found in training: by default over 100 draws, the same for every row
    (``{"draws": {"count": 400, "seed": 0}}`` for other ones); ``"laplace"`` is exact and slower, ``{"tensor": 20}``
    takes so many points for every function. Predictions are exact (by the points of a ``"tensor"``)."""

    _type = "softmax"


class RobustMax(_Classes):
    """The largest latent function wins, up to a small error."""

    _type = "robust-max"


class LogisticSoftmax(_Classes):
    """Logistic functions of the latent functions, normalised.

    ``scales`` are weights of the classes: ``True`` to train them from 1, or their values, one per class.
    With ``constant``, a number above 0, at most 1, the last class has no latent function: this number
    stands for its logistic function. ``augmentation="mean-field"`` has the methods with local variables
    use the looser bound of the first publication. ``integration`` as for :class:`Softmax`."""

    _type = "logistic-softmax"

    def __init__(
        self,
        classes: Optional[int] = None,
        *,
        scales: Union[None, bool, Sequence[float], Parameter] = None,
        constant: Optional[float] = None,
        augmentation: Optional[str] = None,
        **entries: Any,
    ) -> None:
        super().__init__(
            classes=classes, scales=scales, constant=constant, augmentation=augmentation, **entries
        )


class Coregionalised(Likelihood):
    """Several targets, each with this ``likelihood``, as mixtures W g of common latent functions g: the linear
    model of coregionalisation, for :class:`sparsegp.models.SVGP` and :class:`~sparsegp.models.TSVGP` (and
    estimators with ``method="svgp"`` or ``"tsvgp"``). ``mixing`` is W, one column after the other, where it is to
    start from given values; ``latents`` is the number of functions, each with its own kernel."""

    _type = "coregionalised"

    def __init__(
        self,
        likelihood: Union[str, dict[str, Any], Likelihood] = "gaussian",
        outputs: int = 1,
        latents: int = 1,
        *,
        mixing: Union[None, Sequence[float], Parameter] = None,
        **entries: Any,
    ) -> None:
        if isinstance(likelihood, dict):
            likelihood = json.dumps(likelihood)
        likelihood = as_likelihood(likelihood)
        super().__init__(likelihood=likelihood, outputs=outputs, latents=latents, mixing=mixing, **entries)


class _Other(Likelihood):
    """A likelihood by a specification that its class has no argument for."""

    def __init__(self, entries: dict[str, Any]) -> None:
        super().__init__(entries=entries, _type=str(entries["type"]))

    def to_dict(self) -> dict[str, Any]:
        return dict(self.entries)  # type: ignore[attr-defined,no-any-return]


def as_likelihood(spec: Union[Likelihood, str]) -> Likelihood:
    """A likelihood from its short form (``"student-t(df=4)"``) or JSON; a likelihood as it is."""
    if isinstance(spec, Likelihood):
        return spec
    if not isinstance(spec, str):
        raise TypeError(f"a likelihood is a Likelihood or a text such as 'poisson', not {spec!r}")
    entries = json.loads(_core.parse_likelihood(spec))
    named = Likelihood._classes.get(str(entries["type"]))
    if named is not None and hasattr(named, "_of_entries"):
        return named._of_entries({k: v for k, v in entries.items() if k != "type"})  # type: ignore[no-any-return]
    for entry in entries_of("likelihoods"):
        if str(entries["type"]).lower() in (entry["name"], *entry["aliases"]):
            entries["type"] = entry["name"]
    # a likelihood inside has a type, a parameter has none
    inside = {k: v for k, v in entries.items() if isinstance(v, dict) and "type" in v}
    own = {k: inside.get(k, Parameter.of(v)) for k, v in entries.items() if k != "type"}
    try:
        return Likelihood._classes[entries["type"]](**own)
    except (KeyError, TypeError):
        # the core knows more, or says what is wrong
        return _Other(entries)
