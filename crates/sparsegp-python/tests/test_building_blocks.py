"""Kernels, likelihoods, priors and the registry, each against formulas written here."""

import copy
import functools
import inspect
import itertools
import json
import pickle
import re

import numpy as np
import pytest
from scipy import special, stats
from sklearn.base import clone

import sparsegp
from sparsegp import _core as core
from sparsegp import kernels, likelihoods, priors
from sparsegp.kernels import (
    RBF,
    ArcCosine,
    ChangePoints,
    Constant,
    Coregion,
    Cosine,
    GammaExponential,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Sum,
    White,
    as_kernel,
)
from sparsegp.likelihoods import (
    Bernoulli,
    Beta,
    Binomial,
    Exponential,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    HeteroscedasticStudentT,
    Laplace,
    LogisticSoftmax,
    LogNormal,
    NegativeBinomial,
    Ordinal,
    Poisson,
    RobustMax,
    Softmax,
    StudentT,
    ZeroInflatedPoisson,
    as_likelihood,
)
from sparsegp.priors import Parameter


def slope(f, x, h):
    """f′(x) by a central difference of fourth order."""
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def slopes(f, x, h=1e-3):
    """The gradient of a function of an array, entry by entry."""
    x = np.asarray(x, dtype=float)
    found = np.empty_like(x)
    for at in np.ndindex(x.shape):

        def moved(v, at=at):
            other = x.copy()
            other[at] = v
            return f(other)

        found[at] = slope(moved, x[at], h)
    return found


# -- kernels -----------------------------------------------------------------------------------


def rows(n, d, seed):
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (n, d))


def distance(x, x2, lengthscales, dims=None):
    dims = range(x.shape[1]) if dims is None else dims
    lengthscales = np.broadcast_to(lengthscales, len(dims))
    square = sum(((x[:, None, d] - x2[None, :, d]) / scale) ** 2 for d, scale in zip(dims, lengthscales))
    return np.sqrt(square)


PROFILES = {
    RBF: lambda r: np.exp(-0.5 * r**2),
    Matern12: lambda r: np.exp(-r),
    kernels.Exponential: lambda r: np.exp(-r / 2),
    # with α = γ = 1, where they start
    RationalQuadratic: lambda r: 1 / (1 + 0.5 * r**2),
    GammaExponential: lambda r: np.exp(-r),
    Matern32: lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
    Matern52: lambda r: (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
}


@pytest.mark.parametrize("cls", PROFILES)
@pytest.mark.parametrize("columns", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("ard", [False, True])
def test_stationary_kernels_are_their_formulas(cls, columns, ard):
    x, x2 = rows(7, columns, 1), rows(4, columns, 2)
    lengthscales = np.linspace(0.6, 2.1, columns).tolist() if ard else 0.83
    kernel = cls(lengthscales, 1.7)
    expected = 1.7 * PROFILES[cls](distance(x, x2, lengthscales))
    np.testing.assert_allclose(kernel.K(x, x2), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(x, x2), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(x), 1.7 * PROFILES[cls](distance(x, x, lengthscales)), rtol=1e-12)
    np.testing.assert_array_equal(kernel.K_diag(x), np.full(7, 1.7))
    np.testing.assert_array_equal(np.diag(kernel(x)), kernel.K_diag(x))
    np.testing.assert_array_equal(kernel(x), kernel(x).T)


@pytest.mark.parametrize("cls", PROFILES)
def test_stationary_kernels_see_their_active_columns(cls):
    x, x2 = rows(6, 4, 3), rows(5, 4, 4)
    kernel = cls([0.4, 1.9], 0.6, active_dims=[3, 1])
    expected = 0.6 * PROFILES[cls](distance(x, x2, [0.4, 1.9], [3, 1]))
    np.testing.assert_allclose(kernel(x, x2), expected, rtol=1e-12)
    gradients = kernel.K_gradients(rows(6, 5, 5), x, x2)
    assert gradients["lengthscales"].shape == (2,)
    assert not gradients["X"][:, [0, 2]].any() and not gradients["X2"][:, [0, 2]].any()
    assert gradients["X"][:, [1, 3]].all()


def test_linear_constant_and_white_are_their_formulas():
    x, x2 = rows(6, 3, 5), rows(4, 3, 6)
    np.testing.assert_allclose(Linear(0.7)(x, x2), 0.7 * x @ x2.T, rtol=1e-13)
    own = Linear([0.7, 0.2, 1.9], ard=True)
    np.testing.assert_allclose(own(x, x2), x * [0.7, 0.2, 1.9] @ x2.T, rtol=1e-12)
    np.testing.assert_allclose(own.K_diag(x), (x**2) @ [0.7, 0.2, 1.9], rtol=1e-13)
    some = Linear(0.7, active_dims=[2])
    np.testing.assert_allclose(some(x, x2), 0.7 * np.outer(x[:, 2], x2[:, 2]), rtol=1e-13)
    np.testing.assert_array_equal(Constant(0.3)(x, x2), np.full((6, 4), 0.3))
    np.testing.assert_array_equal(Constant(0.3).K_diag(x), np.full(6, 0.3))
    # noise looks at which row it is, not at where
    np.testing.assert_array_equal(White(0.3)(x), 0.3 * np.eye(6))
    np.testing.assert_array_equal(White(0.3)(x, x), np.zeros((6, 6)))
    np.testing.assert_array_equal(White(0.3).K_diag(x), np.full(6, 0.3))


def check_values(kernel, formula, x, x2):
    """Values between rows, of rows with themselves and on the diagonal."""
    np.testing.assert_allclose(kernel(x, x2), formula(x, x2), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(kernel(x), formula(x, x), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(kernel(x), kernel(x).T)
    np.testing.assert_allclose(kernel.K_diag(x), np.diag(formula(x, x)), rtol=1e-12)


def test_kernels_with_a_shape_are_their_formulas():
    x, x2 = rows(7, 3, 21), rows(4, 3, 22)
    scales = [0.6, 1.4, 2.1]
    for alpha in (0.3, 2.7, 40.0):
        check_values(
            RationalQuadratic(scales, 1.7, alpha),
            lambda a, b, alpha=alpha: 1.7 * (1 + distance(a, b, scales) ** 2 / (2 * alpha)) ** -alpha,
            x,
            x2,
        )
    for gamma in (0.3, 1.2, 1.9):
        check_values(
            GammaExponential(scales, 1.7, gamma),
            lambda a, b, gamma=gamma: 1.7 * np.exp(-(distance(a, b, scales) ** gamma)),
            x,
            x2,
        )


def sines(x, x2, periods, lengthscales, dims):
    difference = x[:, None, dims] - x2[None, :, dims]
    return np.sin(np.pi * difference / np.array(periods)) / np.array(lengthscales)


@pytest.mark.parametrize("base", [RBF, Matern12, Matern32, Matern52, kernels.Exponential])
def test_periodic_kernels_are_their_formulas(base):
    x, x2 = rows(7, 3, 23), rows(4, 3, 24)

    def circles(a, b):
        s = sines(a, b, [0.7, 1.6], [0.4, 1.2], [2, 0])
        return 1.3 * PROFILES[base](np.sqrt((s**2).sum(-1)))

    def absolute(a, b):
        s = sines(a, b, [0.7, 1.6], [0.4, 1.2], [2, 0])
        r = np.sqrt((s**2).sum(-1)) if base is RBF else np.abs(s).sum(-1)
        return 1.3 * PROFILES[base](r)

    inner = base([0.4, 1.2], 1.3, active_dims=[2, 0])
    check_values(Periodic(inner, [0.7, 1.6]), circles, x, x2)
    check_values(Periodic(inner, [0.7, 1.6], form="gpflow"), absolute, x, x2)
    one = Periodic(base(0.8, 1.3), 0.9)
    s = sines(x, x2, 0.9, 0.8, [0, 1, 2])
    np.testing.assert_allclose(one(x, x2), 1.3 * PROFILES[base](np.sqrt((s**2).sum(-1))), rtol=1e-11)
    moved = x2 + [0.9, -1.8, 0.0]
    np.testing.assert_allclose(one(x, moved), one(x, x2), rtol=1e-10)
    with pytest.raises(ValueError, match="kernel of distances"):
        Periodic(Linear())(x)
    assert Periodic() == Periodic("rbf") == as_kernel("periodic") == as_kernel("periodic(base=rbf)")


def test_cosine_and_polynomial_are_their_formulas():
    x, x2 = rows(7, 2, 25), rows(4, 2, 26)

    def wave(a, b):
        return 1.3 * np.cos(2 * np.pi * ((a[:, None] - b[None]) / [0.8, 1.7]).sum(-1))

    check_values(Cosine([0.8, 1.7], 1.3), wave, x, x2)
    for degree in (1, 2, 3, 5):
        check_values(
            Polynomial(degree, [0.3, 0.8], 1.4, ard=True),
            lambda a, b, degree=degree: (a * [0.3, 0.8] @ b.T + 1.4) ** degree,
            x,
            x2,
        )
    check_values(
        Polynomial(variance=0.6, offset=0.7, active_dims=1),
        lambda a, b: (0.6 * np.outer(a[:, 1], b[:, 1]) + 0.7) ** 3,
        x,
        x2,
    )


def test_additive_kernels_are_means_of_products():
    x, x2 = rows(7, 4, 27), rows(5, 4, 28)
    lengthscales, variances = np.array([0.8, 1.7, 0.6, 1.2]), [1.3, 0.4, 2.1]

    def own(a, b):
        z = PROFILES[Matern52](np.abs(a[:, None] - b[None]) / lengthscales)
        parts = [
            np.mean([z[:, :, list(some)].prod(-1) for some in itertools.combinations(range(4), d + 1)], axis=0)
            for d in range(3)
        ]
        return sum(v * part for v, part in zip(variances, parts))

    check_values(kernels.Additive("matern52", 3, variances, lengthscales), own, x, x2)
    assert kernels.Additive() == as_kernel("additive")
    with pytest.raises(ValueError, match="entries of `additive` itself"):
        as_kernel("additive(base=rbf(lengthscales=2))")(x)
    with pytest.raises(ValueError, match="`order` is 5"):
        kernels.Additive(order=5)(x)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_kernels_are_layers_of_random_units(order):
    x, x2 = rows(5, 2, 27), rows(4, 2, 28)
    kernel = ArcCosine(order, 1.3, [0.4, 1.7], 0.6, ard=True)

    def formula(a, b):
        inner = a * [0.4, 1.7] @ b.T + 0.6
        s, t = ((v**2) @ [0.4, 1.7] + 0.6 for v in (a, b))
        size = np.sqrt(np.outer(s, t))
        cos = np.clip(inner / size, -1, 1)
        angle = np.arccos(cos)
        rest = np.pi - angle
        j = [rest, np.sin(angle) + rest * cos, 3 * np.sin(angle) * cos + rest * (1 + 2 * cos**2)][order]
        return 1.3 / np.pi * size**order * j

    np.testing.assert_allclose(kernel(x, x2), formula(x, x2), rtol=1e-11)
    # an arc cosine near 1 knows half of the digits, which order 0 shows
    np.testing.assert_allclose(kernel(x), formula(x, x), rtol=1e-7 if order == 0 else 1e-11)
    np.testing.assert_allclose(kernel.K_diag(x), np.diag(kernel(x)), rtol=1e-13)
    # 2 E[h(w·x) h(w·x′)] over w ~ N(0, diag(w, b)), h the order-th power of a ramp (Cho & Saul, Eq. 1)
    w = np.random.default_rng(29).normal(size=(400_000, 3)) * np.sqrt([0.4, 1.7, 0.6])
    units = [np.heaviside(h, 0.5) * h**order for h in (np.c_[v, np.ones(len(v))] @ w.T for v in (x, x2))]
    sampled = 1.3 * 2 * units[0] @ units[1].T / len(w)
    spread = 1.3 * 2 * np.sqrt((units[0] ** 2) @ (units[1] ** 2).T / len(w)) / np.sqrt(len(w))
    assert (np.abs(kernel(x, x2) - sampled) < 5 * spread).all()


def test_change_points_hand_over():
    x, x2 = rows(7, 2, 30), rows(4, 2, 31)
    parts = [RBF([0.4, 1.2], 1.3), Linear(0.7), Matern32(0.9, 0.6)]

    def weights(v):
        first, second = (special.expit(s * (v[:, 1] - at)) for s, at in ((2.5, -0.6), (6.0, 0.4)))
        return np.array([1 - first, first * (1 - second), second])

    def formula(a, b):
        return sum(np.outer(u, v) * k(a, b) for k, u, v in zip(parts, weights(a), weights(b)))

    check_values(ChangePoints(parts, [-0.6, 0.4], [2.5, 6.0], active_dims=1), formula, x, x2)
    # in whatever order the places are given
    check_values(ChangePoints(parts, [0.4, -0.6], [6.0, 2.5], active_dims=[1]), formula, x, x2)


def test_warped_inputs_are_bent_before_their_base():
    x, x2 = rows(7, 2, 32), rows(4, 2, 33)
    base = Matern32([0.9, 1.4], 0.6)

    def bent(v):
        # Kumaraswamy's distribution function of a logistic one, back by the logit
        t = (v[:, 1] - 0.3) / 1.7
        u = 1 - (1 - special.expit(t) ** 0.6) ** 1.8
        return np.column_stack([v[:, 0], 0.3 + 1.7 * special.logit(u)])

    kernel = kernels.Warped(base, 0.6, [1.8], location=0.3, scale=1.7, active_dims=1)
    check_values(kernel, lambda a, b: base(bent(a), bent(b)), x, x2)


def test_coregion_is_a_matrix_of_labels():
    w, kappa = np.array([[0.4, -1.2], [0.9, 0.7], [-0.5, 0.8]]), [0.3, 1.4, 0.7]
    b = w @ w.T + np.diag(kappa)
    x, x2 = np.array([[0.4, 2.0], [1.2, 0.0], [0.3, 1.0], [0.9, 2.0]]), np.array([[0.3, 1.0], [0.6, 2.0]])
    i, j = x[:, 1].astype(int), x2[:, 1].astype(int)
    kernel = Coregion(W=w, kappa=kappa, active_dims=1)
    assert kernel == Coregion(3, 2, W=w.tolist(), kappa=kappa, active_dims=[1]).replace(
        output_dim=None, rank=None
    )
    np.testing.assert_allclose(kernel(x, x2), b[np.ix_(i, j)], rtol=1e-14)
    np.testing.assert_allclose(kernel(x), b[np.ix_(i, i)], rtol=1e-14)
    np.testing.assert_allclose(kernel.K_diag(x), np.diag(b)[i], rtol=1e-14)
    both = RBF(0.7, 1.3, active_dims=[0]) * kernel
    np.testing.assert_allclose(both(x, x2), RBF(0.7, 1.3, active_dims=[0])(x, x2) * b[np.ix_(i, j)], rtol=1e-13)
    weights = np.random.default_rng(32).normal(size=(4, 2))
    found = kernel.K_gradients(weights, x, x2)
    assert found["W"].shape == (3, 2) and found["kappa"].shape == (3,)
    expected = slopes(lambda v: np.sum(weights * kernel.with_params(W=v)(x, x2)), w)
    np.testing.assert_allclose(found["W"], expected, rtol=1e-9, atol=1e-10)
    expected = slopes(lambda v: np.sum(weights * kernel.with_params(kappa=v)(x, x2)), kappa)
    np.testing.assert_allclose(found["kappa"], expected, rtol=1e-9, atol=1e-10)
    assert not found["X"].any() and not found["X2"].any()
    fixed = Coregion(W=Parameter(w, fixed=True), kappa=kappa, active_dims=1)
    np.testing.assert_array_equal(fixed(x, x2), kernel(x, x2))
    with pytest.raises(ValueError, match="3 in input column 1 is none of the labels 0, …, 2"):
        kernel([[0.4, 3.0]])
    with pytest.raises(ValueError, match="how many labels"):
        Coregion(active_dims=0)(x)


def test_estimators_find_periods_and_leave_labels_alone():
    draw = np.random.default_rng(35)
    t, site = draw.uniform(0, 400, 240), np.arange(240) % 2
    y = np.where(site == 0, 1.0, -0.6) * np.sin(2 * np.pi * t / 31.0) + 0.1 * draw.normal(size=240)
    x = np.column_stack([site, t])
    kernel = Periodic(RBF(active_dims=[1])) * Coregion(2, active_dims=[0])
    model = sparsegp.GPRegressor(kernel, max_iter=60).fit(x, y)
    periodic, labels = model.kernel_.kernels
    assert isinstance(periodic, Periodic) and isinstance(labels, Coregion)
    scale = np.std(t)
    assert abs(float(np.ravel(periodic.period)[0]) * scale / 31.0 - 1) < 0.01
    # and what is learnt is a kernel for itself, on the model's scale
    w, kappa = np.array(labels.W), np.array(labels.kappa)
    np.testing.assert_allclose(
        labels.replace(active_dims=None)([[0.0], [1.0]]), w @ w.T + np.diag(kappa), rtol=1e-12
    )
    new = np.array([[0, 500.0], [1, 500.0]])
    wave = np.sin(2 * np.pi * 500 / 31.0)
    np.testing.assert_allclose(model.predict(new), [wave, -0.6 * wave], atol=0.2)
    with pytest.raises(ValueError, match="none of the labels 0, …, 1"):
        model.predict([[2.0, 1.0]])


def test_kernels_agree_with_scikit_learn():
    theirs = pytest.importorskip("sklearn.gaussian_process.kernels")
    x, x2 = rows(7, 3, 33), rows(4, 3, 34)
    for ours, other, columns in [
        (RationalQuadratic(0.8, 1.0, 0.6), theirs.RationalQuadratic(0.8, 0.6), 3),
        # theirs has sin² twice for our half
        (Periodic(RBF(0.45, 1.0), 1.3), theirs.ExpSineSquared(0.9, 1.3), 1),
        (Polynomial(2, 1.0, 0.7**2), theirs.DotProduct(0.7) ** 2, 3),
        (GammaExponential([0.7, 1.2, 0.4], 1.0, 1.0), theirs.Matern([0.7, 1.2, 0.4], nu=0.5), 3),
    ]:
        a, b = x[:, :columns], x2[:, :columns]
        np.testing.assert_allclose(ours(a, b), other(a, b), rtol=1e-12)
        np.testing.assert_allclose(ours(a), other(a), rtol=1e-12)


def test_parts_of_kernels_are_parameters():
    kernel = ChangePoints([Periodic("matern32(lengthscales=0.4)", 0.7), "linear"], [0.3], active_dims=0)
    params = kernel.get_params()
    assert (
        params["k1__base__lengthscales"] == 0.4
        and params["k1__period"] == 0.7
        and params["locations"] == (0.3,)
    )
    other = kernel.with_params(k1__base__lengthscales=0.9, k1__period=1.4, k2__variance=2.0, steepness=5.0)
    assert other == as_kernel(
        "changepoints(kernels=[periodic(base=matern32(lengthscales=0.9), period=1.4), linear(variance=2.0)], "
        "locations=[0.3], steepness=5.0, active_dims=[0])"
    )
    assert kernel.with_params(k1=Linear()).kernels[0] == Linear()
    assert Periodic().with_params(base="matern12", base__variance=0.4) == Periodic(Matern12(variance=0.4))
    with pytest.raises(ValueError, match="no argument 'lengthscales'"):
        Periodic().with_params(lengthscales=0.4)


def test_sums_and_products_are_sums_and_products():
    x, x2 = rows(6, 2, 7), rows(4, 2, 8)
    a, b, c = RBF([0.5, 1.4], 1.3), Linear(0.4, active_dims=[1]), Matern32(0.9, 0.8)
    np.testing.assert_allclose((a + b)(x, x2), a(x, x2) + b(x, x2), rtol=1e-13)
    np.testing.assert_allclose((a * b)(x, x2), a(x, x2) * b(x, x2), rtol=1e-13)
    np.testing.assert_allclose(
        (a * (b + c) + b * c)(x, x2),
        a(x, x2) * (b(x, x2) + c(x, x2)) + b(x, x2) * c(x, x2),
        rtol=1e-12,
    )
    both = a * b + White(0.3) + c
    np.testing.assert_allclose(both(x), a(x) * b(x) + 0.3 * np.eye(6) + c(x), rtol=1e-12)
    np.testing.assert_allclose(both(x, x), both(x) - 0.3 * np.eye(6), rtol=1e-12)
    np.testing.assert_allclose(both.K_diag(x), np.diag(both(x)), rtol=1e-12)
    # texts are kernels on either side
    assert a + "linear(variance=0.4, active_dims=[1])" == a + b
    assert "linear(variance=0.4, active_dims=[1])" + a == b + a
    assert a * "white(variance=0.3)" == a * White(0.3)
    assert "white(variance=0.3)" * a == White(0.3) * a
    # sums of sums are one sum; brackets keep their sense
    assert a + (b + c) == Sum((a, b, c)) and (a * b) * c == Product((a, b, c))
    assert a * (b + c) == Product((a, Sum((b, c))))


GRADIENT_KERNELS = {
    "rbf": RBF([0.7, 1.9], 1.3),
    "one lengthscale": RBF(0.8, 1.3),
    "matern12": Matern12([0.7, 1.9], 0.4),
    "matern32": Matern32([0.7, 1.9], 1.3, active_dims=[1, 0]),
    "matern52": Matern52([0.6], 2.3, active_dims=[1]),
    "linear": Linear([0.3, 1.7], ard=True),
    "one linear": Linear(0.3),
    "constant": Constant(0.6),
    "white": White(0.6),
    "exponential": kernels.Exponential([0.7, 1.9], 0.4),
    "rational quadratic": RationalQuadratic([0.7, 1.9], 1.3, 0.6),
    "gamma exponential": GammaExponential(0.8, 1.3, 1.6),
    "periodic": Periodic(Matern52([0.7, 1.9], 1.3), [2.4, 3.1]),
    "one period": Periodic(RationalQuadratic(0.9, 1.3, 0.6, active_dims=[1]), 2.8),
    "gpflow's periodic": Periodic(Matern52([0.7, 1.9], 1.3), 2.4, form="gpflow"),
    "additive": kernels.Additive("matern52", 2, [0.4, 1.3], [0.7, 1.9]),
    "cosine": Cosine([1.7, 2.9], 0.6),
    "polynomial": Polynomial(2, [0.3, 0.8], 1.4, ard=True),
    "arc-cosine 0": ArcCosine(0, 1.3, 0.6, 0.4),
    "arc-cosine 1": ArcCosine(1, 1.3, [0.6, 1.2], 0.4, ard=True),
    "arc-cosine 2": ArcCosine(2, 0.3, 0.6, 0.4, active_dims=[0]),
    "warped": kernels.Warped(Matern52([0.7, 1.9], 1.3), [0.6, 1.7], 1.3, location=[0.2, -0.4], scale=0.8),
    "change points": ChangePoints(
        [RBF(0.8, 1.3), Periodic(Matern32(0.7, 0.4), 1.4), Linear(0.3)],
        [0.4, -0.3],
        [3.0, 1.8],
        active_dims=[1],
    ),
    "nested": RBF([0.7, 1.9], 1.3) * (Linear(0.4) + Constant(0.3)) + White(0.2) + Matern52(1.1, 0.5),
}


def name_of(path):
    """The name in `with_params` of a parameter's path."""
    *parts, last = path.split(".")
    heads = [f"k{int(p[len('kernels[') : -1]) + 1}" if p.startswith("kernels[") else p for p in parts]
    return "__".join([*heads, last])


@pytest.mark.parametrize("name", GRADIENT_KERNELS)
@pytest.mark.parametrize("second", [False, True])
def test_gradients_of_covariances_are_slopes(name, second):
    kernel = GRADIENT_KERNELS[name]
    x, x2 = rows(5, 2, 9), rows(4, 2, 10) if second else None
    weights = np.random.default_rng(11).normal(size=(5, 4 if second else 5))
    assert second or not np.allclose(weights, weights.T)

    def total(kernel, x, x2):
        return np.sum(weights * kernel(x, x2))

    found = kernel.K_gradients(weights, x, x2)
    assert set(found) - {"X", "X2"} == set(values_by_path(kernel))
    for path, value in values_by_path(kernel).items():
        expected = slopes(lambda v: total(kernel.with_params(**{name_of(path): plain(v)}), x, x2), value)
        np.testing.assert_allclose(found[path], expected, rtol=1e-8, atol=1e-9, err_msg=path)
    np.testing.assert_allclose(found["X"], slopes(lambda v: total(kernel, v, x2), x), rtol=1e-8, atol=1e-9)
    if second:
        np.testing.assert_allclose(found["X2"], slopes(lambda v: total(kernel, x, v), x2), rtol=1e-8, atol=1e-9)
    else:
        assert "X2" not in found


@pytest.mark.parametrize("name", GRADIENT_KERNELS)
def test_gradients_of_variances_are_slopes(name):
    kernel, x = GRADIENT_KERNELS[name], rows(5, 2, 12)
    weights = np.random.default_rng(13).normal(size=5)

    def total(kernel, x):
        return weights @ kernel.K_diag(x)

    found = kernel.K_diag_gradients(weights, x)
    assert set(found) - {"X"} == set(values_by_path(kernel))
    for path, value in values_by_path(kernel).items():
        expected = slopes(lambda v: total(kernel.with_params(**{name_of(path): plain(v)}), x), value)
        np.testing.assert_allclose(found[path], expected, rtol=1e-8, atol=1e-9, err_msg=path)
    expected = slopes(lambda v: total(kernel, v), x)
    np.testing.assert_allclose(found["X"], expected, rtol=1e-8, atol=1e-9)


def plain(value):
    return float(value) if np.ndim(value) == 0 else [float(v) for v in value]


def values_by_path(kernel, prefix=""):
    """Hyperparameters as arrays, by the paths that they should have."""
    found = {}
    for i, part in enumerate(getattr(kernel, "kernels", ())):
        found.update(values_by_path(part, f"{prefix}kernels[{i}]."))
    if isinstance(kernel, (Periodic, kernels.Warped)):
        found.update(values_by_path(kernel.base, f"{prefix}base."))
    names = set(kernel.get_params(deep=False)) - {
        "kernels",
        "base",
        "form",
        "active_dims",
        "ard",
        "degree",
        "order",
    }
    return {**found, **{prefix + n: np.array(getattr(kernel, n), dtype=float) for n in names}}


def test_coincident_points_have_finite_gradients():
    x = np.repeat(rows(2, 2, 14), 2, axis=0)
    for cls in PROFILES:
        found = cls([0.7, 1.9], 1.3).K_gradients(np.ones((4, 4)), x)
        assert all(np.isfinite(g).all() for g in found.values())


def test_covariances_take_what_arrays_there_are():
    x = rows(6, 2, 15)
    kernel = RBF([0.7, 1.9], 1.3) + Linear(0.3)
    expected = kernel(x)
    views = {
        "list": x.tolist(),
        "Fortran order": np.asfortranarray(x),
        "every other row": np.repeat(x, 2, axis=0)[::2],
        "backwards": x[::-1].copy()[::-1],
        "transposed": np.ascontiguousarray(x.T).T,
        "big-endian": x.astype(">f8"),
        "objects": x.astype(object),
    }
    for name, view in views.items():
        np.testing.assert_array_equal(kernel(view), expected, err_msg=name)
        np.testing.assert_array_equal(kernel(view, view), kernel(x, x), err_msg=name)
        np.testing.assert_array_equal(kernel.K_diag(view), kernel.K_diag(x), err_msg=name)
    np.testing.assert_array_equal(kernel(x.astype(np.float32)), kernel(x.astype(np.float32).astype(float)))
    one = RBF(0.8, 1.3)
    np.testing.assert_array_equal(one([0.1, 0.5]), one([[0.1], [0.5]]))
    assert kernel(np.empty((0, 2))).shape == (0, 0)
    assert kernel(x, np.empty((0, 2))).shape == (6, 0)
    assert kernel.K_diag(np.empty((0, 2))).shape == (0,)


def test_kernels_refuse_what_cannot_be():
    x = rows(4, 2, 16)
    kernel = RBF([0.7, 1.9], 1.3)
    with pytest.raises(ValueError, match="2 columns"):
        kernel(x, x[:, :1])
    with pytest.raises(ValueError, match="dimensions"):
        kernel(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="4×4"):
        kernel.K_gradients(np.ones((3, 4)), x)
    with pytest.raises(ValueError, match="expected 4"):
        kernel.K_diag_gradients(np.ones(3), x)
    with pytest.raises(ValueError, match="2 values for 3"):
        kernel(rows(4, 3, 17))
    with pytest.raises(ValueError, match="out of range"):
        RBF(0.7, 1.3, active_dims=[2])(x)
    with pytest.raises(ValueError, match="variance.*-1.3"):
        RBF(0.7, -1.3)(x)
    with pytest.raises(ValueError, match="could not convert"):
        kernel([["a", "b"]])
    with pytest.raises(ValueError, match="unknown kernel `matern51`.*matern52"):
        as_kernel("matern51")
    with pytest.raises(ValueError, match="`lengthscale`.*lengthscales"):
        as_kernel("rbf(lengthscale=2.0)")
    with pytest.raises(ValueError, match="position 4"):
        as_kernel("rbf+")
    with pytest.raises(TypeError, match="None"):
        as_kernel(None)
    with pytest.raises(ValueError, match="'lengthscale'.*lengthscales"):
        kernel.replace(lengthscale=2.0)
    with pytest.raises(ValueError, match="'k1'"):
        kernel.with_params(k1__variance=2.0)
    with pytest.raises(ValueError, match="'k3'"):
        (kernel + Linear(0.3)).with_params(k3__variance=2.0)


def test_weights_of_variances_of_a_wrong_shape_are_a_value_error():
    with pytest.raises(ValueError):
        RBF(0.7, 1.3).K_diag_gradients(np.ones((4, 2)), rows(4, 2, 18))


# -- the registry ------------------------------------------------------------------------------


def classes_of(module, base):
    found = {
        value
        for name in module.__all__
        if inspect.isclass(value := getattr(module, name)) and issubclass(value, base)
    }
    # the user-defined one stands for no name
    return found - {base, kernels.Custom, likelihoods.Custom}


SHAPED = Parameter([0.4, 2.5], prior=priors.HalfNormal(1.7))
KERNEL_EXAMPLES = {
    "rbf": RBF(SHAPED, Parameter(1.3, fixed=True), active_dims=[0, 1]),
    "matern12": Matern12(0.4, 1.3, ard=True),
    "matern32": Matern32([0.4, 2.5], Parameter(prior=priors.InverseGamma(2.5, 0.7))),
    "matern52": Matern52(np.array([0.4, 2.5]), np.float64(1.3), active_dims=("age", "height")),
    "exponential": kernels.Exponential(0.4, 1.3, active_dims=1),
    "gamma_exponential": GammaExponential([0.4, 2.5], 1.3, Parameter(1.4, fixed=True)),
    "rational_quadratic": RationalQuadratic(0.4, 1.3, Parameter(0.6, prior=priors.HalfNormal(1.7))),
    "periodic": Periodic(Matern32(SHAPED, 1.3), Parameter([0.7, 1.4], fixed=True), form="gpflow"),
    "convolutional": kernels.Convolutional(
        [1, 3, 1], (1, 2), weights=Parameter([0.7, -0.4], fixed=True), base=Matern32(SHAPED, 1.3)
    ),
    "additive": kernels.Additive("matern32", 2, Parameter([0.4, 1.3], fixed=True), SHAPED),
    "cosine": Cosine(np.array([0.4, 2.5]), 1.3, active_dims=["age", "height"]),
    "polynomial": Polynomial(2, 0.4, Parameter(0.7, fixed=True)),
    "arccosine": ArcCosine(1, 0.4, [0.3, 1.2], 0.7, ard=True),
    "categorical": kernels.Categorical(0.4, Parameter(0.3, fixed=True), active_dims="age"),
    "coregion": Coregion(W=Parameter([[0.4, 1.3], [0.2, -0.7]], fixed=True), kappa=[0.3, 0.9], active_dims=1),
    "changepoints": ChangePoints(
        [RBF(0.4, 1.3), Periodic("matern12", 0.7) * Constant()],
        Parameter([0.4], prior=priors.Normal(0.3, 0.8)),
        3.0,
        active_dims="age",
    ),
    "warped": kernels.Warped(
        RBF(0.4, 1.3),
        Parameter([0.7, 1.6], fixed=True),
        Parameter(1.4, prior=priors.Normal(1.0, 0.2)),
        scale=2.5,
    ),
    "linear": Linear(Parameter(0.4, prior=priors.Normal(0.3, 0.8)), ard=True),
    "constant": Constant(0.7),
    "white": White(Parameter(0.7, prior=priors.HalfNormal(0.8), fixed=True)),
    "sum": RBF(0.4, 1.3) * Linear(0.3) + White(0.2),
    "product": (RBF(0.4, 1.3) + Linear()) * Constant(0.2),
}
LIKELIHOOD_EXAMPLES = {
    "gaussian": Gaussian(Parameter(0.3, prior=priors.HalfNormal(0.8))),
    "student-t": StudentT(Parameter(4.5, fixed=True), 0.6),
    "laplace": Laplace(np.float64(0.7)),
    "matern32": likelihoods.Matern32(Parameter(0.7, fixed=True)),
    "logistic": likelihoods.Logistic(0.4),
    "pseudo-huber": likelihoods.PseudoHuber(0.9, Parameter(0.6, prior=priors.HalfNormal(0.8))),
    "svm": likelihoods.SVM(),
    "poisson-logistic": likelihoods.PoissonLogistic(3.1),
    "log-normal": LogNormal(0.3),
    "bernoulli": Bernoulli("probit", floor=1e-3),
    "binomial": Binomial("probit"),
    "poisson": Poisson("softplus", whole=False),
    "negative-binomial": NegativeBinomial(Parameter(0.4, prior=priors.Normal(0.5, 0.3))),
    "zero-inflated-poisson": ZeroInflatedPoisson(0.3),
    "gamma": Gamma(2.4, "softplus"),
    "exponential": Exponential("softplus"),
    "beta": Beta(7.5, "probit", floor=0.01),
    "ordinal": Ordinal(bin_edges=[-0.7, 0.4, 1.9], sigma=0.6),
    "heteroscedastic": HeteroscedasticGaussian(scale="softplus", points=30),
    "heteroscedastic-student-t": HeteroscedasticStudentT(df=5.5),
    "softmax": Softmax(3, slope="price"),
    "robust-max": RobustMax(4, epsilon=Parameter(0.02, fixed=True)),
    "coregionalised": likelihoods.Coregionalised(Poisson("softplus"), 3, 2, mixing=[0.3, 1, 2, 0.1, -1, 0.5]),
    "logistic-softmax": LogisticSoftmax(
        3, scales=Parameter([1.3, 2.1, 0.4], fixed=True), constant=0.6, integration="laplace"
    ),
}
# a kernel and a likelihood may have the same name
EXAMPLES = {
    f"{what} {name}": example
    for what, examples in (("kernel", KERNEL_EXAMPLES), ("likelihood", LIKELIHOOD_EXAMPLES))
    for name, example in examples.items()
}


@pytest.mark.parametrize(
    "what, module, base, examples",
    [
        ("kernels", kernels, kernels.Kernel, KERNEL_EXAMPLES),
        ("likelihoods", likelihoods, likelihoods.Likelihood, LIKELIHOOD_EXAMPLES),
    ],
)
def test_registry_and_classes_are_one_to_one(what, module, base, examples):
    names = [entry["name"] for entry in sparsegp.registry()[what]]
    assert len(set(names)) == len(names)
    by_name = {}
    for cls in classes_of(module, base):
        assert cls._type not in by_name, f"{cls} and {by_name[cls._type]}"
        by_name[cls._type] = cls
    assert set(by_name) == set(names)
    assert set(examples) == set(names)
    for name, example in examples.items():
        assert type(example) is by_name[name]


# entries that the core reads and no class has an argument for: they are given as text
WITHOUT_ARGUMENT = {
    "kernels": {},
    "likelihoods": {"": {"rule", "slope"}, "ordinal": {"first_edge", "widths", "floor"}},
}


def refusal(what, entries):
    """Why the core refuses a specification; nothing if it does not."""
    make = core.Likelihood if what == "likelihoods" else functools.partial(core.Kernel, inputs=2)
    try:
        make(json.dumps(entries))
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "what, name",
    [(what, entry["name"]) for what in WITHOUT_ARGUMENT for entry in sparsegp.registry()[what]],
)
def test_arguments_of_classes_are_entries_of_the_registry(what, name):
    """The core names the entries that it knows when it refuses another one."""
    base = kernels.Kernel if what == "kernels" else likelihoods.Likelihood
    cls = next(c for c in classes_of(kernels if what == "kernels" else likelihoods, base) if c._type == name)
    signature = inspect.signature(cls).parameters
    # scikit-learn's spelling of a part of the lengthscales
    own = {n for n, p in signature.items() if p.kind is not p.VAR_KEYWORD} - {"lengthscale_bounds"}
    refused = refusal(what, {"type": name, "no such": 0})
    assert "unknown entry `no such`" in refused
    for argument in own:
        assert f"unknown entry `{argument}`" not in refusal(what, {"type": name, argument: {}})
    if any(p.kind is p.VAR_KEYWORD for p in signature.values()):
        return  # takes whatever the core knows
    listed = re.search(r"; known: (.+)$", refused)
    assert listed or refused.endswith("there are none")
    known = set(listed[1].split(", ")) if listed else set()
    further = WITHOUT_ARGUMENT[what].get("", set()) | WITHOUT_ARGUMENT[what].get(name, set())
    assert known - further == own


@pytest.mark.parametrize("what", ["kernels", "likelihoods"])
def test_every_name_and_alias_is_read(what):
    read = as_kernel if what == "kernels" else as_likelihood
    module = kernels if what == "kernels" else likelihoods
    classes = {
        "ordinal": "classes=4",
        "softmax": "classes=4",
        "robust-max": "classes=4",
        "logistic-softmax": "classes=4",
        "convolutional": "image=[1, 2, 1], patch=[1, 1]",
        "coregion": "output_dim=3, active_dims=[1]",
        "changepoints": "kernels=[rbf, linear], active_dims=[1]",
    }
    for entry in sparsegp.registry()[what]:
        if entry["name"] in ("sum", "product"):
            continue
        for name in (entry["name"], *entry["aliases"], entry["name"].upper()):
            found = read(f"{name}({classes.get(entry['name'], '')})")
            assert found._type == entry["name"], name
            assert type(found).__name__ in module.__all__, name
            assert json.loads(found._core(2).json() if what == "kernels" else found._core().json())
        assert entry["about"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_specifications_survive_every_way_of_copying(name):
    example = EXAMPLES[name]
    kernel = name.startswith("kernel")
    read, module = (as_kernel, kernels) if kernel else (as_likelihood, likelihoods)
    again = read(example.to_json())
    assert again == example and type(again) is type(example)
    assert again.to_dict() == example.to_dict()
    for other in (
        pickle.loads(pickle.dumps(example)),
        copy.copy(example),
        copy.deepcopy(example),
        clone(example),
        example.replace(),
        type(example)(**example.get_params(deep=False)),
    ):
        assert other == example and type(other) is type(example)
        assert hash(other) == hash(example)
    names = {**vars(module), "Parameter": Parameter}
    names.update({n: getattr(priors, n) for n in ("HalfNormal", "InverseGamma", "Normal")}, array=np.array)
    assert eval(repr(example), names) == example
    assert example != EXAMPLES["kernel rbf" if name != "kernel rbf" else "kernel linear"]
    assert example != name and example != example.to_dict()
    assert read(example) is example


@pytest.mark.parametrize("name", EXAMPLES)
def test_specifications_cannot_be_changed(name):
    example = EXAMPLES[name]
    before = example.to_json()
    for attribute in (*example.get_params(deep=False), "something_new"):
        with pytest.raises(AttributeError, match="replace"):
            setattr(example, attribute, 1.0)
    assert example.to_json() == before


def test_arguments_cannot_be_deleted():
    for example in (RBF(0.4, 1.3), Poisson("softplus"), Parameter(0.4)):
        attribute = {RBF: "variance", Poisson: "link", Parameter: "value"}[type(example)]
        before = repr(example)
        with pytest.raises(AttributeError):
            delattr(example, attribute)
        assert repr(example) == before


def test_arguments_that_change_later_do_not_change_a_kernel():
    lengthscales = np.array([0.4, 2.5])
    kernel = RBF(lengthscales, 1.3)
    before, key = kernel.to_json(), hash(kernel)
    lengthscales[0] = 9.0
    assert kernel.to_json() == before and hash(kernel) == key
    dims = [0, 1]
    kernel = RBF(0.4, 1.3, active_dims=dims)
    before = kernel.to_json()
    dims.pop()
    assert kernel.to_json() == before


def test_equal_specifications_have_equal_hashes():
    pairs = [
        (RBF(variance=2), RBF(variance=2.0)),
        (RBF([1, 2]), RBF([1.0, 2.0])),
        (Parameter(2), Parameter(2.0)),
        (RBF(np.array([0.5, 1.5])), RBF((0.5, 1.5))),
        (Parameter(np.array([0.5, 1.5])), Parameter([0.5, 1.5])),
        (
            as_likelihood("heteroscedastic(scale=softplus, points=30)"),
            HeteroscedasticGaussian(scale="softplus", points=30),
        ),
    ]
    for a, b in pairs:
        assert a == b
        assert hash(a) == hash(b), f"{a!r} and {b!r}"


def test_replace_and_with_params_make_others():
    kernel = RBF([0.4, 2.5], 1.3)
    other = kernel.replace(variance=0.7)
    assert other == RBF([0.4, 2.5], 0.7) and kernel.variance == 1.3
    both = RBF(0.4, 1.3) * Linear(0.3) + White(0.2)
    changed = both.with_params(k1__k2__variance=0.9, k2="constant(variance=0.8)")
    assert changed == RBF(0.4, 1.3) * Linear(0.9) + Constant(0.8)
    # a part that is replaced gets the rest of its changes too
    changed = both.with_params(k2="constant", k2__variance=0.4)
    assert changed == RBF(0.4, 1.3) * Linear(0.3) + Constant(0.4)
    params = both.get_params(deep=True)
    assert params["k1__k2__variance"] == 0.3 and params["k2"] == White(0.2)
    assert StudentT(4.5, 0.6).replace(scale=0.7) == StudentT(4.5, 0.7)
    assert Softmax(3).replace(classes=5) == Softmax(5)


def test_entries_without_a_name_in_the_signature_can_be_replaced():
    assert Softmax(3).replace(slope="price") == Softmax(3, slope="price")
    replaced = HeteroscedasticGaussian().replace(scale="softplus")
    assert replaced == HeteroscedasticGaussian(scale="softplus")


def test_likelihoods_without_an_argument_for_an_option_know_their_type():
    found = as_likelihood("student-t(df=4.5, scale=0.6, rule=50)")
    assert found.to_dict() == {"type": "student-t", "df": 4.5, "scale": 0.6, "rule": 50}
    assert found == pickle.loads(pickle.dumps(found)) and found._type == "student-t"


def test_options_of_counts_reach_the_estimator():
    # the estimator of counts asks its likelihood for its type
    x = rows(30, 1, 19)
    y = np.random.default_rng(20).poisson(np.exp(0.3 + x[:, 0]))
    model = sparsegp.GPCountRegressor(likelihood="poisson(rule=50)", max_iter=3).fit(x, y)
    assert model.likelihood_.to_dict()["type"] == "poisson"


def test_parameters():
    parameter = Parameter([0.4, 2.5], prior=priors.LogNormal(0.3, 0.8), fixed=True)
    assert parameter.to_dict() == {
        "value": [0.4, 2.5],
        "prior": {"type": "lognormal", "loc": 0.3, "scale": 0.8},
        "frozen": True,
    }
    assert Parameter.of(parameter.to_dict()) == parameter
    for other in (pickle.loads(pickle.dumps(parameter)), copy.deepcopy(parameter)):
        assert other == parameter and hash(other) == hash(parameter)
    assert eval(repr(parameter), vars(priors)) == parameter
    for name in ("value", "prior", "fixed"):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(parameter, name, 1.0)
    with pytest.raises(ValueError, match="needs a value"):
        Parameter(fixed=True)
    for prior in (
        priors.Gamma(2.5, 0.7),
        priors.LogNormal(0.3, 0.8),
        priors.Normal(0.3, 0.8),
        priors.HalfNormal(0.8),
        priors.InverseGamma(2.5, 0.7),
    ):
        kernel = RBF(0.4, Parameter(1.3, prior=prior))
        assert as_kernel(kernel.to_json()).variance.prior == prior
        # the core reads it, and keeps it
        core = json.loads(kernel._core(1).json())
        assert core["variance"]["value"] == 1.3
        kept = {k: v for k, v in core["variance"]["prior"].items() if k != "type"}
        assert kept == {k: v for k, v in prior.to_dict().items() if k != "type"}
        assert Parameter.of(core["variance"]).prior == prior
    with pytest.raises(AttributeError):
        priors.HalfNormal(0.8).scale = 2.0
    with pytest.raises(ValueError, match="concentration"):
        RBF(0.4, Parameter(1.3, prior=priors.Gamma(-2.0, 0.7)))([[0.0]])


# -- likelihoods of one latent value -----------------------------------------------------------


def softplus(f):
    return np.logaddexp(0.0, f)


def log_difference(a, b):
    """log(Φ(b) − Φ(a)) for a < b, in the tail where differences have their digits."""
    a, b = np.where(a + b > 0, -b, a), np.where(a + b > 0, -a, b)
    top = special.log_ndtr(b)
    return top + np.log1p(-np.exp(special.log_ndtr(a) - top))


class Trials:
    """Successes in n trials, by log p and log(1 − p)."""

    def __init__(self, n, log_p, log_q):
        self.n, self.log_p, self.log_q = n, log_p, log_q
        self.law = stats.binom(n, np.exp(log_p))

    def logpmf(self, y):
        ways = special.gammaln(self.n + 1) - special.gammaln(y + 1)
        ways = ways - special.gammaln(self.n - y + 1)
        return ways + y * self.log_p + (self.n - y) * self.log_q

    def cdf(self, y):
        return self.law.cdf(y)

    def mean(self):
        return self.n * np.exp(self.log_p)

    def var(self):
        return self.n * np.exp(self.log_p + self.log_q)


class Mixture:
    """Zeros with a probability, else counts of a Poisson law."""

    def __init__(self, zero, rate):
        self.zero, self.rate, self.counts = zero, rate, stats.poisson(rate)

    def logpmf(self, y):
        counted = np.log1p(-self.zero) + y * np.log(self.rate) - self.rate - special.gammaln(y + 1)
        return np.logaddexp(np.log(self.zero), counted) if y == 0 else counted

    def cdf(self, y):
        return self.zero * (y >= 0) + (1 - self.zero) * self.counts.cdf(y)

    def mean(self):
        return (1 - self.zero) * self.rate

    def var(self):
        return (1 - self.zero) * (self.rate + self.rate**2) - self.mean() ** 2


EDGES, SIGMA = [-0.7, 0.4, 1.9], 0.6


class Ordered:
    """Classes by the interval in which f + σε lies."""

    def __init__(self, f, _):
        ends = np.array([-np.inf, *EDGES, np.inf])
        self.ends = [(end - f) / SIGMA for end in ends]

    def logpmf(self, y):
        return log_difference(self.ends[int(y)], self.ends[int(y) + 1])

    def cdf(self, y):
        return special.ndtr(self.ends[int(y) + 1])

    def moment(self, power):
        return sum(y**power * np.exp(self.logpmf(y)) for y in range(4))

    def mean(self):
        return self.moment(1)

    def var(self):
        return self.moment(2) - self.moment(1) ** 2


class MaternNoise:
    """y - f of density sqrt(3)/4r (1 + u) exp(-u), u = sqrt(3) |y - f| / r."""

    def __init__(self, f, r):
        self.f, self.r = f, r

    def u(self, y):
        return np.sqrt(3) * np.abs(y - self.f) / self.r

    def logpdf(self, y):
        return np.log(np.sqrt(3) / (4 * self.r)) + np.log1p(self.u(y)) - self.u(y)

    def cdf(self, y):
        tail = 0.5 * np.exp(-self.u(y)) * (1 + 0.5 * self.u(y))
        return np.where(y < self.f, tail, 1 - tail)

    def mean(self):
        return self.f

    def var(self):
        return 4 / 3 * self.r**2 + 0 * self.f


REAL = [-1.3, 0.2, 2.9]
COUNTS = [0.0, 2.0, 7.0]
POSITIVE = [0.08, 0.9, 6.3]
# likelihood; law of y given f and the further number; targets; further numbers
SCALARS = {
    "gaussian": (Gaussian(0.37), lambda f, _: stats.norm(f, np.sqrt(0.37)), REAL, None),
    "gaussian of known noise": (
        Gaussian(0.37),
        lambda f, e: stats.norm(f, np.sqrt(0.37 + e)),
        REAL,
        [0.0, 0.4, 1.9],
    ),
    "student-t": (StudentT(4.7, 0.6), lambda f, _: stats.t(4.7, f, 0.6), REAL, None),
    "laplace": (Laplace(0.7), lambda f, _: stats.laplace(f, 0.7), REAL, None),
    "matern32": (likelihoods.Matern32(0.7), lambda f, _: MaternNoise(f, 0.7), REAL, None),
    "logistic": (likelihoods.Logistic(0.4), lambda f, _: stats.logistic(f, 0.4), REAL, None),
    "pseudo-huber": (
        likelihoods.PseudoHuber(0.9, 0.6),
        lambda f, _: stats.genhyperbolic(1, (0.9 / 0.6) ** 2, 0, f, 0.9),
        REAL,
        None,
    ),
    "poisson-logistic": (
        likelihoods.PoissonLogistic(3.1),
        lambda f, e: stats.poisson(3.1 * e * special.expit(f)),
        COUNTS,
        [0.4, 2.5, 1.7],
    ),
    "log-normal": (
        LogNormal(0.37),
        lambda f, _: stats.lognorm(np.sqrt(0.37), scale=np.exp(f)),
        POSITIVE,
        None,
    ),
    "bernoulli": (
        Bernoulli(),
        lambda f, _: Trials(1, special.log_ndtr(f), special.log_ndtr(-f)),
        [0.0, 1.0, 1.0],
        None,
    ),
    "bernoulli probit with floor": (
        Bernoulli("probit", floor=0.03),
        lambda f, _: stats.bernoulli(0.94 * special.ndtr(f) + 0.03),
        [0.0, 1.0, 1.0],
        None,
    ),
    "bernoulli logit": (
        Bernoulli("logit"),
        lambda f, _: Trials(1, special.log_expit(f), special.log_expit(-f)),
        [0.0, 1.0, 1.0],
        None,
    ),
    "binomial": (
        Binomial(),
        lambda f, n: Trials(n, special.log_expit(f), special.log_expit(-f)),
        [0.0, 3.0, 7.0],
        [5.0, 4.0, 7.0],
    ),
    "binomial probit": (
        Binomial("probit"),
        lambda f, n: Trials(n, special.log_ndtr(f), special.log_ndtr(-f)),
        [0.0, 3.0, 7.0],
        [5.0, 4.0, 7.0],
    ),
    "poisson": (Poisson(), lambda f, _: stats.poisson(np.exp(f)), COUNTS, None),
    "poisson with exposure": (
        Poisson(),
        lambda f, e: stats.poisson(e * np.exp(f)),
        COUNTS,
        [0.4, 2.5, 1.7],
    ),
    "poisson softplus": (
        Poisson("softplus"),
        lambda f, e: stats.poisson(e * softplus(f)),
        COUNTS,
        [0.4, 2.5, 1.7],
    ),
    "negative-binomial": (
        NegativeBinomial(0.45),
        lambda f, e: stats.nbinom(1 / 0.45, 1 / (1 + 0.45 * e * np.exp(f))),
        COUNTS,
        [0.4, 2.5, 1.7],
    ),
    "zero-inflated-poisson": (
        ZeroInflatedPoisson(0.3),
        lambda f, e: Mixture(0.3, e * np.exp(f)),
        COUNTS,
        [0.4, 2.5, 1.7],
    ),
    "gamma": (Gamma(2.4), lambda f, _: stats.gamma(2.4, scale=np.exp(f)), POSITIVE, None),
    "gamma softplus": (
        Gamma(2.4, "softplus"),
        lambda f, _: stats.gamma(2.4, scale=softplus(f)),
        POSITIVE,
        None,
    ),
    "exponential": (Exponential(), lambda f, _: stats.expon(scale=np.exp(f)), POSITIVE, None),
    "exponential softplus": (
        Exponential("softplus"),
        lambda f, _: stats.expon(scale=softplus(f)),
        POSITIVE,
        None,
    ),
    "beta": (
        Beta(7.5),
        lambda f, _: stats.beta(7.5 * special.expit(f), 7.5 * special.expit(-f)),
        [0.04, 0.5, 0.93],
        None,
    ),
    "beta probit": (
        Beta(7.5, "probit"),
        lambda f, _: stats.beta(7.5 * special.ndtr(f), 7.5 * special.ndtr(-f)),
        [0.04, 0.5, 0.93],
        None,
    ),
    "ordinal": (Ordinal(bin_edges=EDGES, sigma=SIGMA), Ordered, [0.0, 2.0, 3.0], None),
}
MEAN, VARIANCE = np.array([-0.4, 0.7, 1.2]), np.array([0.3, 1.7, 0.05])
# where log p(y | f) is integrated by twenty points of Gauss–Hermite unless stated otherwise
BY_RULE = [
    "bernoulli",
    "bernoulli probit with floor",
    "bernoulli logit",
    "binomial",
    "binomial probit",
    "poisson softplus",
    "poisson-logistic",
    "negative-binomial",
    "zero-inflated-poisson",
    "gamma softplus",
    "exponential softplus",
    "beta",
    "beta probit",
    "ordinal",
]


def log_density(law, y):
    return law.logpdf(y) if hasattr(law, "logpdf") else law.logpmf(y)


def test_every_likelihood_of_one_latent_value_has_a_case():
    one = {n for n, example in LIKELIHOOD_EXAMPLES.items() if example.num_latents == 1}
    # the last is what the likelihood inside it is
    assert {case[0]._type for case in SCALARS.values()} | {"svm", "coregionalised"} == one
    two = {n for n, example in LIKELIHOOD_EXAMPLES.items() if example.num_classes == 2}
    assert two == {"bernoulli", "svm"}


def test_the_hinge_loss_is_a_pseudo_likelihood():
    f = np.array([-1.4, 0.3, 2.2])
    for y, sign in ((0.0, -1), (1.0, 1)):
        found = likelihoods.SVM().log_prob(f, np.full(3, y))
        np.testing.assert_allclose(found, -2 * np.maximum(0, 1 - sign * f), atol=1e-15)
    p = likelihoods.SVM().predict_proba(f, np.full(3, 0.4))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.diff(p[:, 1]) > 0).all()


@pytest.mark.parametrize("name", SCALARS)
def test_log_prob_is_the_log_density(name):
    likelihood, law, y, extra = SCALARS[name]
    f = np.array([-1.1, 0.4, 1.6])
    further = [None] * 3 if extra is None else extra
    expected = [
        float(log_density(law(f[i], 1.0 if further[i] is None else further[i]), y[i])) for i in range(3)
    ]
    np.testing.assert_allclose(likelihood.log_prob(f, y, extra), expected, rtol=1e-11)
    np.testing.assert_array_equal(
        likelihood.log_prob(f[:, None], np.array(y)[:, None], extra),
        likelihood.log_prob(f, y, extra),
    )


def test_rates_have_the_density_of_counts():
    f, y, exposure = np.array([-1.1, 0.4]), np.array([0.3, 2.7]), np.array([0.4, 2.5])
    rate = exposure * np.exp(f)
    expected = y * np.log(rate) - rate - special.gammaln(y + 1)
    np.testing.assert_allclose(Poisson(whole=False).log_prob(f, y, exposure), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="0.3"):
        Poisson().log_prob(f, y, exposure)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def expectation(g, mean, variance, kinks=()):
    """E[g(f)], for g of an array: Gauss–Legendre on 100 pieces of ±9.5 deviations, and more pieces
    where g has kinks."""
    deviation = np.sqrt(variance)
    low, high = mean - 9.5 * deviation, mean + 9.5 * deviation
    ends = np.unique([*np.linspace(low, high, 101), *(k for k in kinks if low < k < high)])
    half = 0.5 * np.diff(ends)[:, None]
    f = (ends[:-1, None] + half * (1 + NODES)).ravel()
    weights = (half * WEIGHTS).ravel() * stats.norm.pdf(f, mean, deviation)
    return float(weights @ g(f))


def each(name):
    """Rows of a case."""
    likelihood, law, y, extra = SCALARS[name]
    for i in range(3):
        e = 1.0 if extra is None else extra[i]
        yield i, (lambda f, e=e: law(f, e)), y[i]


def with_rule(likelihood, rule):
    return as_likelihood(json.dumps({**likelihood.to_dict(), "rule": rule}))


@pytest.mark.parametrize("name", SCALARS)
def test_expectations_are_integrals(name):
    likelihood, _, y, extra = SCALARS[name]
    if name in BY_RULE:
        likelihood = with_rule(likelihood, "trapezoid")
    found = likelihood.variational_expectations(MEAN, VARIANCE, y, extra)
    expected = [
        expectation(lambda f: log_density(law(f), target), MEAN[i], VARIANCE[i], [target])
        for i, law, target in each(name)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("name", BY_RULE)
def test_the_default_rule_is_gauss_hermite_of_twenty_points(name):
    likelihood, _, y, extra = SCALARS[name]
    x, w = np.polynomial.hermite_e.hermegauss(20)
    w = w / w.sum()
    expected = [
        w @ log_density(law(MEAN[i] + np.sqrt(VARIANCE[i]) * x), target) for i, law, target in each(name)
    ]
    found = likelihood.variational_expectations(MEAN, VARIANCE, y, extra)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    more = with_rule(likelihood, 100).variational_expectations(MEAN, VARIANCE, y, extra)
    np.testing.assert_allclose(found, more, rtol=2e-3)
    assert (found != more).any()


def parameters(likelihood):
    return {
        name: value
        for name, value in likelihood.get_params(deep=False).items()
        if isinstance(value, float) and name != "floor"
    }


@pytest.mark.parametrize("name", SCALARS)
def test_gradients_of_expectations_are_slopes(name):
    likelihood, _, y, extra = SCALARS[name]
    value, found = likelihood.variational_expectations_and_gradients(MEAN, VARIANCE, y, extra)
    np.testing.assert_array_equal(value, likelihood.variational_expectations(MEAN, VARIANCE, y, extra))
    assert found["Fmu"].shape == found["Fvar"].shape == (3, 1)

    def at(mean, variance, likelihood=likelihood):
        return likelihood.variational_expectations(mean, variance, y, extra)

    np.testing.assert_allclose(
        found["Fmu"][:, 0],
        [
            slope(lambda m: at(np.where(np.arange(3) == i, m, MEAN), VARIANCE)[i], MEAN[i], 1e-3)
            for i in range(3)
        ],
        rtol=1e-7,
        atol=1e-9,
    )
    np.testing.assert_allclose(
        found["Fvar"][:, 0],
        [
            slope(lambda v: at(MEAN, np.where(np.arange(3) == i, v, VARIANCE))[i], VARIANCE[i], 1e-3)
            for i in range(3)
        ],
        rtol=1e-7,
        atol=1e-9,
    )
    own = parameters(likelihood)
    if name == "ordinal":
        assert set(found) == {"Fmu", "Fvar", "first_edge", "widths", "sigma"}
    else:
        assert set(found) == {"Fmu", "Fvar", *own}
    for parameter, value in own.items():
        expected = slope(lambda v: at(MEAN, VARIANCE, likelihood.replace(**{parameter: v})).sum(), value, 1e-3)
        np.testing.assert_allclose(found[parameter], expected, rtol=1e-7, err_msg=parameter)


def test_gradients_of_edges_are_slopes():
    likelihood, _, y, _ = SCALARS["ordinal"]
    _, found = likelihood.variational_expectations_and_gradients(MEAN, VARIANCE, y)
    start = np.array([EDGES[0], *np.diff(EDGES)])

    def total(v):
        other = Ordinal(bin_edges=np.cumsum(v).tolist(), sigma=SIGMA)
        return other.variational_expectations(MEAN, VARIANCE, y).sum()

    expected = slopes(total, start)
    np.testing.assert_allclose(found["first_edge"], expected[0], rtol=1e-7)
    np.testing.assert_allclose(found["widths"], expected[1:], rtol=1e-7)


@pytest.mark.parametrize("name", SCALARS)
def test_moments_of_observations_are_integrals(name):
    likelihood, _, _, extra = SCALARS[name]
    mean, variance = likelihood.predict_mean_and_var(MEAN, VARIANCE, extra)
    for i, law, _ in each(name):
        first = expectation(lambda f: law(f).mean(), MEAN[i], VARIANCE[i])
        within = expectation(lambda f: law(f).var(), MEAN[i], VARIANCE[i])
        between = expectation(lambda f: (law(f).mean() - first) ** 2, MEAN[i], VARIANCE[i])
        np.testing.assert_allclose(mean[i], first, rtol=1e-9)
        np.testing.assert_allclose(variance[i], within + between, rtol=1e-9)


@pytest.mark.parametrize("name", SCALARS)
def test_log_densities_of_observations_are_integrals(name):
    likelihood, _, y, extra = SCALARS[name]
    found = likelihood.predict_log_density(MEAN, VARIANCE, y, extra)
    for i, law, target in each(name):
        expected = expectation(lambda f: np.exp(log_density(law(f), target)), MEAN[i], VARIANCE[i], [target])
        np.testing.assert_allclose(found[i], np.log(expected), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", SCALARS)
def test_distribution_functions_are_integrals(name):
    likelihood, _, y, extra = SCALARS[name]
    for at in (np.asarray(y, float), np.asarray(y) + 0.4):
        found = likelihood.predict_cdf(MEAN, VARIANCE, at, extra)
        for i, law, _ in each(name):
            expected = expectation(lambda f, i=i, law=law: law(f).cdf(at[i]), MEAN[i], VARIANCE[i], [at[i]])
            np.testing.assert_allclose(found[i], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("level", [0.03, 0.5, 0.9])
def test_quantiles_invert_the_distribution(name, level):
    likelihood, _, _, extra = SCALARS[name]
    found = likelihood.predict_quantile(MEAN, VARIANCE, level, extra)
    for i, law, _ in each(name):

        def below(q, i=i, law=law):
            return expectation(lambda f: law(f).cdf(q), MEAN[i], VARIANCE[i], [q])

        if not hasattr(law(0.0), "logpdf"):
            q = found[i]
            assert q == int(q) >= 0
            assert below(q) >= level - 1e-12
            assert q == 0 or below(q - 1) < level
        else:
            np.testing.assert_allclose(below(found[i]), level, rtol=1e-9)


@pytest.mark.parametrize("name", SCALARS)
def test_draws_have_the_distribution(name):
    likelihood, law, _, extra = SCALARS[name]
    n, f, e = 20_000, 0.6, 1.0 if extra is None else extra[1]
    further = None if extra is None else np.full(n, e)
    draws = likelihood.sample(np.full(n, f), seed=5, extra=further)
    own = law(f, e)
    mean, variance = float(own.mean()), float(own.var())
    # five standard errors
    assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / n)
    fourth = np.mean((draws - mean) ** 4)
    assert abs(draws.var() - variance) < 5 * np.sqrt((fourth - variance**2) / n)
    if hasattr(own, "logpdf"):
        assert stats.kstest(draws, own.cdf).pvalue > 1e-4
    else:
        assert (draws == draws.astype(int)).all()
        for y in np.unique(draws)[:6]:
            p = np.exp(float(own.logpmf(y)))
            assert abs((draws == y).mean() - p) < 5 * np.sqrt(p * (1 - p) / n)
    np.testing.assert_array_equal(draws, likelihood.sample(np.full(n, f), seed=5, extra=further))
    assert (draws != likelihood.sample(np.full(n, f), seed=6, extra=further)).any()


def test_probabilities_of_two_classes():
    for likelihood in (Bernoulli(), Bernoulli("logit"), Bernoulli("probit", floor=0.03)):
        found = likelihood.predict_proba(MEAN, VARIANCE)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
        np.testing.assert_allclose(found[:, 1], likelihood.predict_mean_and_var(MEAN, VARIANCE)[0], rtol=1e-12)
    probit = Bernoulli().predict_proba(MEAN, VARIANCE)[:, 1]
    np.testing.assert_allclose(probit, special.ndtr(MEAN / np.sqrt(1 + VARIANCE)), rtol=1e-13)


def test_a_known_value_needs_no_integral():
    for name, (likelihood, _, y, extra) in SCALARS.items():
        zero = np.zeros(3)
        found, slopes_ = likelihood.variational_expectations_and_gradients(MEAN, zero, y, extra)
        np.testing.assert_allclose(found, likelihood.log_prob(MEAN, y, extra), rtol=1e-12, err_msg=name)
        assert np.isfinite(slopes_["Fmu"]).all() and np.isfinite(slopes_["Fvar"]).all(), name
        density = likelihood.predict_log_density(MEAN, zero, y, extra)
        np.testing.assert_allclose(density, found, rtol=1e-12, err_msg=name)


# -- likelihoods of several latent values -----------------------------------------------------


def test_heteroscedastic_noise():
    f, y = np.array([[0.4, -0.6], [-1.1, 0.3]]), np.array([0.1, 1.7])
    expected = stats.norm(f[:, 0], np.exp(f[:, 1])).logpdf(y)
    np.testing.assert_allclose(HeteroscedasticGaussian().log_prob(f, y), expected, rtol=1e-12)
    expected = stats.norm(f[:, 0], softplus(f[:, 1])).logpdf(y)
    np.testing.assert_allclose(HeteroscedasticGaussian(scale="softplus").log_prob(f, y), expected, rtol=1e-12)
    expected = stats.t(5.5, f[:, 0], np.exp(f[:, 1])).logpdf(y)
    np.testing.assert_allclose(HeteroscedasticStudentT(df=5.5).log_prob(f, y), expected, rtol=1e-12)
    # E log N(y; f₀, e^{2f₁}) = −½ log 2π − μ₁ − ½ ((y − μ₀)² + v₀) e^{−2μ₁ + 2v₁}
    mean, variance = f, np.array([[0.3, 0.2], [0.9, 0.05]])
    precision = np.exp(-2 * mean[:, 1] + 2 * variance[:, 1])
    square = (y - mean[:, 0]) ** 2 + variance[:, 0]
    expected = -0.5 * np.log(2 * np.pi) - mean[:, 1] - 0.5 * square * precision
    likelihood = HeteroscedasticGaussian()
    assert likelihood.num_latents == 2
    found = likelihood.variational_expectations(mean, variance, y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    moments = likelihood.predict_mean_and_var(mean, variance)
    np.testing.assert_allclose(moments[0], mean[:, 0], rtol=1e-14)
    np.testing.assert_allclose(
        moments[1], variance[:, 0] + np.exp(2 * mean[:, 1] + 2 * variance[:, 1]), rtol=1e-12
    )


def several(k, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(3, k)), rng.uniform(0.2, 0.8, (3, k))


SEVERAL = {
    "heteroscedastic": (HeteroscedasticGaussian(), [0.1, 1.7, -0.4]),
    "heteroscedastic softplus": (HeteroscedasticGaussian(scale="softplus"), [0.1, 1.7, -0.4]),
    "heteroscedastic-student-t": (HeteroscedasticStudentT(df=5.5), [0.1, 1.7, -0.4]),
    "softmax": (Softmax(3), [0.0, 2.0, 1.0]),
    "logistic-softmax": (LogisticSoftmax(3), [0.0, 2.0, 1.0]),
    "logistic-softmax fewer": (LogisticSoftmax(3, scales=[1.3, 2.1, 0.4], constant=0.6), [0.0, 2.0, 1.0]),
    "robust-max": (RobustMax(3, epsilon=0.02), [0.0, 2.0, 1.0]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_gradients_of_expectations_of_several_values_are_slopes(name):
    likelihood, y = SEVERAL[name]
    mean, variance = several(likelihood.num_latents, 21)
    _, found = likelihood.variational_expectations_and_gradients(mean, variance, y)

    def total(mean, variance, likelihood=likelihood):
        return likelihood.variational_expectations(mean, variance, y).sum()

    assert found["Fmu"].shape == found["Fvar"].shape == mean.shape
    np.testing.assert_allclose(found["Fmu"], slopes(lambda m: total(m, variance), mean), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found["Fvar"], slopes(lambda v: total(mean, v), variance), rtol=1e-7, atol=1e-9)
    own = {"robust-max": ("epsilon", 0.02), "heteroscedastic-student-t": ("df", 5.5)}.get(name)
    if own is not None:
        entry, value = own
        params = likelihood.get_params(deep=False)
        expected = slope(
            lambda v: total(mean, variance, type(likelihood)(**{**params, entry: v})),
            value,
            value * 1e-3,
        )
        np.testing.assert_allclose(found[entry], expected, rtol=1e-7)


def test_classes_have_their_probabilities():
    f = np.array([[0.4, -0.6, 1.3], [-1.1, 0.3, 0.2]])
    y = np.array([2.0, 0.0])
    p = special.softmax(f, axis=1)
    at = np.arange(2), y.astype(int)
    np.testing.assert_allclose(Softmax(3).log_prob(f, y), np.log(p[at]), rtol=1e-12)
    score = special.expit(f)
    p = score / score.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(LogisticSoftmax(3).log_prob(f, y), np.log(p[at]), rtol=1e-12)
    np.testing.assert_allclose(RobustMax(3, epsilon=0.02).log_prob(f, y), np.log([0.98, 0.01]), rtol=1e-12)
    for likelihood in (Softmax(3), LogisticSoftmax(3), RobustMax(3, epsilon=0.02)):
        assert likelihood.num_classes == likelihood.num_latents == 3
        found = likelihood.predict_proba(f, np.full((2, 3), 0.4))
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
        assert found[0].argmax() == 2 and found.shape == (2, 3)


def test_classes_may_have_weights_and_the_last_no_latent_function():
    f = np.array([[0.4, -0.6], [-1.1, 0.3], [2.0, 0.1]])
    y = np.array([2.0, 0.0, 1.0])
    scales = np.array([1.3, 2.1, 0.4])
    likelihood = LogisticSoftmax(3, scales=scales, constant=0.6)
    assert (likelihood.num_classes, likelihood.num_latents) == (3, 2)
    score = scales * np.column_stack([special.expit(f), np.full(3, 0.6)])
    p = score / score.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(likelihood.predict_proba(f, np.zeros((3, 2))), p, rtol=1e-12)
    at = np.arange(3), y.astype(int)
    np.testing.assert_allclose(likelihood.log_prob(f, y), np.log(p[at]), rtol=1e-12)
    _, found = likelihood.variational_expectations_and_gradients(f, np.zeros((3, 2)), y)
    # of the sum of log p: (1[y = k] - p_k) / scale
    hits = np.eye(3)[y.astype(int)]
    np.testing.assert_allclose(found["scales"], ((hits - p) / scales).sum(axis=0), rtol=1e-10)
    assert likelihood.replace(constant=None, augmentation="mean-field").num_latents == 3
    # a multiple of all weights says nothing, where all classes have latent functions
    same = LogisticSoftmax(2, scales=[3.0, 3.0]).log_prob(f, [0.0, 1.0, 1.0])
    np.testing.assert_allclose(same, LogisticSoftmax(2).log_prob(f, [0.0, 1.0, 1.0]), rtol=1e-12)
    for wrong, part in (
        ({"constant": 1.5}, "at most 1"),
        ({"scales": [1.0, 2.0]}, "2 were given"),
        ({"augmentation": "none"}, "augmentation"),
    ):
        with pytest.raises(ValueError, match=part):
            LogisticSoftmax(3, **wrong).log_prob(f, y)


def test_robust_max_is_an_integral():
    mean, variance = several(3, 22)
    y = np.array([0.0, 2.0, 1.0])
    # of 200 points, so that the rule is exact
    likelihood = RobustMax(3, epsilon=0.02, rule=200)
    expected, density = [], []
    for i in range(3):
        own = int(y[i])
        others = [k for k in range(3) if k != own]

        def product(f, i=i, others=others):
            tails = [special.ndtr((f - mean[i, k]) / variance[i, k] ** 0.5) for k in others]
            return np.prod(tails, axis=0)

        largest = expectation(product, mean[i, own], variance[i, own])
        expected.append(largest * np.log(0.98) + (1 - largest) * np.log(0.01))
        density.append(np.log(largest * 0.98 + (1 - largest) * 0.01))
    found = likelihood.variational_expectations(mean, variance, y)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    found = likelihood.predict_log_density(mean, variance, y)
    np.testing.assert_allclose(found, density, rtol=1e-9)


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "likelihood, y, message",
    [
        (Gaussian(0.3), np.inf, "finite"),
        (StudentT(4.5, 0.6), np.inf, "finite"),
        (LogNormal(0.3), 0.0, "positive"),
        (Bernoulli(), 0.5, "class"),
        (Poisson(), 1.5, "count"),
        (Poisson(), -1.0, "count"),
        (Poisson(whole=False), -0.5, "≥ 0"),
        (NegativeBinomial(0.4), 1.5, "count"),
        (ZeroInflatedPoisson(0.3), -2.0, "count"),
        (Gamma(2.4), 0.0, "positive"),
        (Exponential(), -1.0, "positive"),
        (Beta(7.5), 1.0, "between 0 and 1"),
        (Beta(7.5), 0.0, "between 0 and 1"),
        (Ordinal(4), 4.0, "class"),
        (Softmax(3), 3.0, "class"),
        (RobustMax(3), 0.5, "class"),
    ],
)
def test_targets_that_cannot_be_are_named(likelihood, y, message):
    k = likelihood.num_latents
    for call in (
        lambda: likelihood.log_prob(np.zeros((1, k)), [y]),
        lambda: likelihood.variational_expectations(np.zeros((1, k)), np.ones((1, k)), [y]),
        lambda: likelihood.predict_log_density(np.zeros((1, k)), np.ones((1, k)), [y]),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_likelihoods_refuse_what_cannot_be():
    poisson, gaussian = Poisson(), Gaussian(0.3)
    with pytest.raises(ValueError, match="1 column"):
        poisson.log_prob([[0.1, 0.2]], [1])
    with pytest.raises(ValueError, match="rows"):
        poisson.log_prob([0.1], [1, 2])
    with pytest.raises(ValueError, match="one number per row"):
        poisson.log_prob([0.1], [[1, 2]])
    with pytest.raises(ValueError, match="rows"):
        poisson.variational_expectations([0.1, 0.2], [1.0], [1, 2])
    with pytest.raises(ValueError, match="rows"):
        poisson.log_prob([0.1], [1], extra=[1.0, 2.0])
    with pytest.raises(ValueError, match="exposure"):
        poisson.log_prob([0.1], [1], extra=[0.0])
    with pytest.raises(ValueError, match="-0.4"):
        gaussian.predict_mean_and_var([0.1], [-0.4])
    with pytest.raises(ValueError, match="nan|NaN"):
        gaussian.predict_mean_and_var([0.1], [np.nan])
    for level in (0.0, 1.0, -0.2, np.nan):
        with pytest.raises(ValueError, match="level"):
            gaussian.predict_quantile([0.1], [0.4], level)
    with pytest.raises(ValueError, match="no class probabilities"):
        gaussian.predict_proba([0.1], [0.4])
    with pytest.raises(ValueError, match="trials"):
        Binomial().log_prob([0.1], [1])
    with pytest.raises(ValueError, match="trials"):
        Binomial().log_prob([0.1], [1], extra=[2.5])
    with pytest.raises(ValueError, match="0 to its trials"):
        Binomial().log_prob([0.1], [4], extra=[3])
    with pytest.raises(ValueError, match="df"):
        StudentT(1.5, 0.6).log_prob([0.1], [0.2])
    with pytest.raises(ValueError, match="variance"):
        Gaussian(-0.3).log_prob([0.1], [0.2])
    with pytest.raises(ValueError, match="probit"):
        Bernoulli("logit", floor=0.1).log_prob([0.1], [1])
    with pytest.raises(ValueError, match="logit or probit"):
        Bernoulli("cloglog").log_prob([0.1], [1])
    with pytest.raises(ValueError, match="classes"):
        Softmax().log_prob([[0.1, 0.2]], [1])
    with pytest.raises(ValueError, match="increasing"):
        Ordinal(bin_edges=[0.4, 0.1]).log_prob([0.1], [1])
    with pytest.raises(ValueError, match="unknown likelihood `poison`; nearest: poisson"):
        as_likelihood("poison").num_latents
    with pytest.raises(ValueError, match="`lnk`; nearest: link"):
        as_likelihood("poisson(lnk=exp)").num_latents
    with pytest.raises(ValueError, match="position"):
        as_likelihood("poisson(")
    with pytest.raises(TypeError, match="3"):
        as_likelihood(3)
    with pytest.raises(ValueError, match="'sd'.*variance"):
        gaussian.replace(sd=0.3)


def test_a_further_number_that_a_likelihood_does_not_take_is_refused():
    assert StudentT().extra is None and Poisson().extra == "exposure"
    with pytest.raises(ValueError):
        StudentT(4.5, 0.6).log_prob([0.1], [0.2], extra=[0.4])


def test_no_rows_give_no_rows():
    for name, example in LIKELIHOOD_EXAMPLES.items():
        none = np.empty((0, example.num_latents))
        extra = [] if name == "binomial" else None
        assert example.log_prob(none, [], extra).shape == (0,)
        value, found = example.variational_expectations_and_gradients(none, none, [], extra)
        assert value.shape == (0,) and found["Fmu"].shape == none.shape
        assert example.predict_mean_and_var(none, none, extra)[0].shape == (0,)
        assert example.predict_log_density(none, none, [], extra).shape == (0,)
        assert example.predict_quantile(none, none, 0.3, extra).shape == (0,)
        assert example.sample(none, extra=extra).shape == (0,)


def test_numpys_numbers_and_ranges_are_numbers_and_lists():
    a, b = RBF(lengthscales=0.5), Matern32(variance=2.0)
    for two in (np.float32(2), np.float64(2), np.int64(2)):
        assert a * two == a * 2.0 and two * a == 2.0 * a
        assert a + two == a + 2.0 and two + a == 2.0 + a
    assert sum([a, b]) == a + b and sum([a]) == a
    assert RBF(active_dims=range(1, 3)) == RBF(active_dims=[1, 2])


def test_endless_brackets_are_an_error():
    assert as_kernel("(" * 30 + "rbf" + ")" * 30) == RBF()
    for spec in ("(" * 100_000, "(" * 40 + "rbf" + ")" * 40, "periodic(base=" * 50 + "rbf" + ")" * 50):
        with pytest.raises(ValueError, match="more than 32 brackets within each other"):
            as_kernel(spec)


def test_a_convolutional_kernel_is_the_sum_over_patches_of_the_base():
    base = Matern32(0.9, 1.3)
    images = np.random.default_rng(3).normal(size=(4, 3 * 4 * 2))
    shaped = images.reshape(4, 3, 4, 2)
    for colour in ("channels", "joint"):
        # windows: images × 2 × 3 places × channels × 2 × 2 pixels
        windows = np.lib.stride_tricks.sliding_window_view(shaped, (2, 2), axis=(1, 2))
        if colour == "joint":
            patches = np.moveaxis(windows, 3, -1).reshape(4, 6, 8)
        else:
            patches = windows.reshape(4, 12, 4)
        each = base(patches.reshape(-1, patches.shape[2]))
        wanted = each.reshape(4, patches.shape[1], 4, -1).sum(axis=(1, 3))
        kernel = kernels.Convolutional([3, 4, 2], [2, 2], colour=colour, normalise=False, base=base)
        np.testing.assert_allclose(kernel(images), wanted, rtol=1e-12)
    assert kernel.with_params(base__variance=2.6)(images)[0, 1] == pytest.approx(2 * wanted[0, 1])
    assert kernel.get_params()["base__lengthscales"] == 0.9


def test_pixels_are_standardised_together():
    rng = np.random.default_rng(5)
    # pixels of one image with different spreads, a constant one, and a column that is not a pixel
    X = np.column_stack([rng.normal(size=(60, 4)) * [0.3, 4.0, 1.0, 0.0] + 2.0, rng.normal(40.0, 9.0, 60)])
    y = X[:, :4].mean(axis=1) + 0.1 * X[:, 4] + rng.normal(0.0, 0.2, 60)
    kernel = kernels.Convolutional([2, 2, 1], [1, 2], active_dims=[0, 1, 2, 3]) + RBF(active_dims=[4])
    with pytest.warns(UserWarning):
        model = sparsegp.GPRegressor(kernel=kernel, max_iter=5).fit(X, y)
    scaler = model._about["scaler"]
    np.testing.assert_allclose(scaler["x_mean"], [*[X[:, :4].mean()] * 4, X[:, 4].mean()])
    np.testing.assert_allclose(scaler["x_scale"], [*[X[:, :4].std()] * 4, X[:, 4].std()])
