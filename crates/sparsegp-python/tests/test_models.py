"""The models of `sparsegp.models` against dense formulas in NumPy and against scikit-learn."""

import copy
import math
import pickle

import numpy as np
import pytest
from scipy import linalg, special, stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as other

import sparsegp
from sparsegp import likelihoods, priors
from sparsegp.kernels import RBF, Constant, Linear, Matern12, Matern32, Matern52, White
from sparsegp.models import GPR, SGPR, SVGP, TSVGP, TVGP, Model
from sparsegp.priors import Parameter

LENGTHSCALES, VARIANCE, NOISE, JITTER = np.array([0.6, 1.7]), 1.4, 0.23, 1e-6
KERNEL = RBF(LENGTHSCALES.tolist(), VARIANCE)


def rbf(x, x2, lengthscales=LENGTHSCALES, variance=VARIANCE):
    square = (((x[:, None] - x2[None]) / lengthscales) ** 2).sum(axis=-1)
    return variance * np.exp(-0.5 * square)


def problem(n, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 2))
    f = np.sin(2 * x[:, :1]) + 0.4 * x[:, 1:] * np.arange(1, outputs + 1)
    return x, f + 0.4 * rng.normal(size=(n, outputs))


X, Y = problem(40)
XNEW = np.random.default_rng(1).uniform(-2.5, 2.5, (9, 2))
YNEW = np.random.default_rng(2).normal(size=(9, 1))
Z = np.random.default_rng(3).uniform(-2, 2, (7, 2))


def log_normal(y, covariance):
    """log N(y; 0, covariance), summed over columns."""
    factor = np.linalg.cholesky(covariance)
    white = linalg.solve_triangular(factor, y, lower=True)
    columns = y.shape[1]
    return (
        -0.5 * np.sum(white**2) - columns * np.log(np.diag(factor)).sum() - 0.5 * y.size * math.log(2 * math.pi)
    )


def slope(f, x, h):
    """f′(x) by a central difference of fourth order."""
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def check_gradients(model, data=None, skip=(), rtol=1e-6):
    """Gradients of the bound against differences, for every parameter."""
    value, found = model.elbo_and_gradients(data)
    # the value by itself may be summed in another order
    assert value == pytest.approx(model.elbo(data), rel=1e-12)
    again = model.gradients(data)
    assert set(found) == set(model.parameters) == set(again)
    for path, start in model.parameters.items():
        if path in skip:
            continue
        start = np.array(start)
        assert found[path].shape == start.shape, path
        np.testing.assert_array_equal(found[path], again[path], err_msg=path)
        expected = np.zeros_like(start)
        for at in np.ndindex(start.shape):
            if path == "q.sqrt" and start.ndim == 3 and at[2] > at[1]:
                continue

            def moved(v, at=at):
                changed = start.copy()
                changed[at] = v
                model[path] = changed
                return model.elbo(data)

            positive = path.startswith(("kernel", "likelihood", "q.v"))
            expected[at] = slope(moved, start[at], 2e-3 * (start[at] if positive else 1.0))
        model[path] = start
        scale = np.abs(expected).max() + 1e-3
        np.testing.assert_allclose(found[path], expected, rtol=rtol, atol=1e-7 * scale, err_msg=path)


# -- exact inference ---------------------------------------------------------------------------

SKLEARN = {
    "rbf": (KERNEL, other.RBF(LENGTHSCALES)),
    "matern12": (Matern12(LENGTHSCALES.tolist(), VARIANCE), other.Matern(LENGTHSCALES, nu=0.5)),
    "matern32": (Matern32(LENGTHSCALES.tolist(), VARIANCE), other.Matern(LENGTHSCALES, nu=1.5)),
    "matern52": (Matern52(LENGTHSCALES.tolist(), VARIANCE), other.Matern(LENGTHSCALES, nu=2.5)),
}


@pytest.mark.parametrize("name", SKLEARN)
def test_exact_inference_is_that_of_scikit_learn(name):
    kernel, theirs = SKLEARN[name]
    theirs = other.ConstantKernel(VARIANCE) * theirs + other.WhiteKernel(NOISE)
    peer = GaussianProcessRegressor(theirs, alpha=0.0, optimizer=None).fit(X, Y[:, 0])
    model = GPR((X, Y), kernel, noise_variance=NOISE)
    value, slopes = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    found, gradients = model.log_marginal_likelihood_and_gradients()
    assert found == pytest.approx(value, rel=1e-12)
    assert model.log_marginal_likelihood() == found
    # theirs are of the logarithms
    own = [
        VARIANCE * gradients["kernel.variance"],
        *(LENGTHSCALES * gradients["kernel.lengthscales"]),
        NOISE * gradients["likelihood.variance"],
    ]
    np.testing.assert_allclose(own, slopes, rtol=1e-9)
    mean, covariance = peer.predict(XNEW, return_cov=True)
    _, deviation = peer.predict(XNEW, return_std=True)
    own_mean, own_variance = model.predict_y(XNEW)
    np.testing.assert_allclose(own_mean[:, 0], mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.sqrt(own_variance[:, 0]), deviation, rtol=1e-9)
    f_mean, f_covariance = model.predict_f(XNEW, full_cov=True)
    np.testing.assert_allclose(f_mean, own_mean, rtol=1e-13)
    np.testing.assert_allclose(f_covariance[0] + NOISE * np.eye(9), covariance, rtol=1e-9, atol=1e-12)


def test_exact_inference_is_its_formula():
    model = GPR((X, Y), KERNEL, noise_variance=NOISE)
    g = rbf(X, X) + NOISE * np.eye(40)
    assert model.elbo() == pytest.approx(log_normal(Y, g), rel=1e-12)
    cross = rbf(XNEW, X)
    mean, covariance = model.predict_f(XNEW, full_cov=True)
    expected = rbf(XNEW, XNEW) - cross @ np.linalg.solve(g, cross.T)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(g, Y), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(covariance[0], expected, rtol=1e-10, atol=1e-12)
    # gradients: ½ tr((αα' − G⁻¹) ∂G)
    inverse = np.linalg.inv(g)
    alpha = inverse @ Y
    adjoint = 0.5 * (alpha @ alpha.T - inverse)
    found = model.gradients()
    k = rbf(X, X)
    square = (X[:, None] - X[None]) ** 2
    np.testing.assert_allclose(found["likelihood.variance"], np.trace(adjoint), rtol=1e-9)
    np.testing.assert_allclose(found["kernel.variance"], np.sum(adjoint * k) / VARIANCE, rtol=1e-9)
    expected = np.einsum("ij,ij,ijd->d", adjoint, k, square) / LENGTHSCALES**3
    np.testing.assert_allclose(found["kernel.lengthscales"], expected, rtol=1e-9)


def test_exact_inference_of_several_targets():
    x, y = problem(30, outputs=3)
    model = GPR((x, y), KERNEL, noise_variance=NOISE)
    single = [GPR((x, y[:, p]), KERNEL, noise_variance=NOISE) for p in range(3)]
    assert model.elbo() == pytest.approx(sum(one.elbo() for one in single), rel=1e-12)
    mean, variance = model.predict_y(XNEW)
    assert mean.shape == variance.shape == (9, 3)
    for p, one in enumerate(single):
        own_mean, own_variance = one.predict_y(XNEW)
        np.testing.assert_allclose(mean[:, p], own_mean[:, 0], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(variance[:, p], own_variance[:, 0], rtol=1e-12)
    ynew = np.random.default_rng(4).normal(size=(9, 3))
    expected = stats.norm(mean, np.sqrt(variance)).logpdf(ynew).sum(axis=1)
    np.testing.assert_allclose(model.predict_log_density((XNEW, ynew)), expected, rtol=1e-12)
    assert model.predict_f(XNEW, full_cov=True)[1].shape == (3, 9, 9)
    assert model.predict_f_samples(XNEW, 5).shape == (5, 9, 3)


def test_composite_kernels_and_means():
    kernel = KERNEL * (Linear(0.4, active_dims=[1]) + Constant(0.3)) + White(0.15)
    model = GPR((X, Y), kernel, noise_variance=NOISE, mean="linear")
    weights, constant = np.array([[0.7], [-0.4]]), 0.35
    model["mean.weights"], model["mean.constant"] = weights, constant
    product = rbf(X, X) * (0.4 * np.outer(X[:, 1], X[:, 1]) + 0.3)
    g = product + (0.15 + NOISE) * np.eye(40)
    residual = Y - X @ weights - constant
    assert model.elbo() == pytest.approx(log_normal(residual, g), rel=1e-12)
    cross = rbf(XNEW, X) * (0.4 * np.outer(XNEW[:, 1], X[:, 1]) + 0.3)
    expected = XNEW @ weights + constant + cross @ np.linalg.solve(g, residual)
    np.testing.assert_allclose(model.predict_f(XNEW)[0], expected, rtol=1e-9, atol=1e-12)
    check_gradients(model)


def test_known_noise_and_weights_of_exact_inference_are_on_the_diagonal():
    known = np.linspace(0.0, 0.5, 40)
    found = GPR((X, Y), KERNEL, noise_variance=NOISE, extra=known).elbo()
    expected = log_normal(Y, rbf(X, X) + np.diag(NOISE + known))
    assert found == pytest.approx(expected, rel=1e-10)
    twice = np.where(np.arange(40) % 3 == 0, 2, 1)
    x, y = np.repeat(X, twice, axis=0), np.repeat(Y, twice, axis=0)
    found = GPR((X, Y), KERNEL, noise_variance=NOISE, weights=twice).elbo()
    assert found == pytest.approx(log_normal(y, rbf(x, x) + NOISE * np.eye(len(x))), rel=1e-10)


# -- collapsed bounds --------------------------------------------------------------------------


def sparse_parts(jitter=JITTER, x=X):
    kuu = rbf(Z, Z) + jitter * np.eye(len(Z))
    kuf = rbf(Z, x)
    q = kuf.T @ np.linalg.solve(kuu, kuf)
    return kuu, kuf, q, VARIANCE - np.diag(q)


def bound_formula(bound, q, r, y):
    n = len(y)
    value = log_normal(y, q + NOISE * np.eye(n))
    if bound == "titsias2009":
        return value - y.shape[1] * r.sum() / (2 * NOISE)
    if bound == "spherical":
        return value - y.shape[1] * n / 2 * np.log1p(r.sum() / (n * NOISE))
    return value - y.shape[1] * 0.5 * np.log1p(r / NOISE).sum()


BOUNDS = ["titsias2009", "spherical", "titsias2025"]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_collapsed_bounds_are_their_formulas(bound, outputs):
    x, y = problem(40, outputs)
    model = SGPR((x, y), KERNEL, Z, noise_variance=NOISE, bound=bound, jitter=JITTER)
    kuu, kuf, q, r = sparse_parts(x=x)
    assert model.elbo() == pytest.approx(bound_formula(bound, q, r, y), rel=1e-9)
    # q(u) = N(Kuu Σ⁻¹ Kuf y/σ², Kuu Σ⁻¹ Kuu), Σ = Kuu + KufKfu/σ²
    sigma = kuu + kuf @ kuf.T / NOISE
    mean_u = kuu @ np.linalg.solve(sigma, kuf @ y) / NOISE
    cov_u = kuu @ np.linalg.solve(sigma, kuu)
    found_mean, found_cov = model.q_u
    np.testing.assert_allclose(found_mean, mean_u, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found_cov[0], cov_u, rtol=1e-6, atol=1e-8)
    cross = rbf(XNEW, Z)
    a = np.linalg.solve(kuu, cross.T)
    mean, covariance = model.predict_f(XNEW, full_cov=True)
    np.testing.assert_allclose(mean, a.T @ mean_u, rtol=1e-7, atol=1e-9)
    expected = rbf(XNEW, XNEW) - cross @ a + a.T @ cov_u @ a
    for one in covariance:
        np.testing.assert_allclose(one, expected, rtol=1e-7, atol=1e-9)
    _, variance = model.predict_y(XNEW)
    expected = np.repeat((np.diag(expected) + NOISE)[:, None], outputs, axis=1)
    np.testing.assert_allclose(variance, expected, rtol=1e-7)


def test_the_default_jitter_is_relative_to_the_variance():
    model = SGPR((X, Y), KERNEL, Z, noise_variance=NOISE)
    _, _, q, r = sparse_parts(1e-6 * VARIANCE)
    assert model.elbo() == pytest.approx(bound_formula("titsias2025", q, r, Y), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_in_order(seed):
    x, y = problem(50, seed=seed)
    z = x[:6] + 0.1
    values = [SGPR((x, y), KERNEL, z, noise_variance=NOISE, bound=bound).elbo() for bound in BOUNDS]
    values.append(GPR((x, y), KERNEL, noise_variance=NOISE).elbo())
    values.append(SGPR((x, y), KERNEL, z, noise_variance=NOISE).upper_bound())
    assert (np.diff(values) > 0.01).all(), values


@pytest.mark.parametrize("alpha", [0.05, 0.4, 1.0])
def test_power_ep_is_its_formula(alpha):
    model = SGPR((X, Y), KERNEL, Z, noise_variance=NOISE, bound="pep", alpha=alpha, jitter=JITTER)
    _, _, q, r = sparse_parts()
    wide = q + np.diag(NOISE + alpha * r)
    _, determinant = np.linalg.slogdet(wide)
    expected = -0.5 * (40 * math.log(2 * math.pi) + determinant + (Y.T @ np.linalg.solve(wide, Y)).item())
    expected -= (1 - alpha) / (2 * alpha) * np.log1p(alpha * r / NOISE).sum()
    assert model.elbo() == pytest.approx(expected, rel=1e-9)
    check_gradients(model)
    if alpha == 1.0:
        fitc = SGPR((X, Y), KERNEL, Z, noise_variance=NOISE, bound="fitc", jitter=JITTER)
        assert fitc.elbo() == model.elbo()
        for found, expected in zip(fitc.predict_f(XNEW), model.predict_f(XNEW)):
            np.testing.assert_array_equal(found, expected)


def test_only_pep_has_a_power():
    with pytest.raises(ValueError, match="alpha is the power of 'pep'"):
        SGPR((X, Y), KERNEL, Z, bound="fitc", alpha=0.5)
    with pytest.raises(ValueError, match="at most 1"):
        SGPR((X, Y), KERNEL, Z, bound="pep", alpha=1.5)


def test_the_upper_bound_is_its_formula():
    model = SGPR((X, Y), KERNEL, Z, noise_variance=NOISE, jitter=JITTER)
    _, _, q, r = sparse_parts()
    _, determinant = np.linalg.slogdet(q + NOISE * np.eye(40))
    wide = q + (NOISE + r.sum()) * np.eye(40)
    expected = -0.5 * (40 * math.log(2 * math.pi) + determinant + (Y.T @ np.linalg.solve(wide, Y)).item())
    assert model.upper_bound() == pytest.approx(expected, rel=1e-9)


def test_the_quality_of_inducing_points_is_its_formula():
    model = SGPR((X, Y), KERNEL, Z, noise_variance=NOISE, jitter=JITTER)
    _, _, _, r = sparse_parts()
    found = model.inducing_quality()
    own = found["processes"][0]
    assert own["trace_residual"] == pytest.approx(r.sum() / (40 * VARIANCE), rel=1e-6)
    assert own["largest"] == pytest.approx(r.max() / VARIANCE, rel=1e-6)
    assert sum(own["shares"]["counts"]) == 40 and len(own["shares"]["edges"]) == 34
    assert found["gap"]["lower"] == pytest.approx(model.elbo(), rel=1e-9)
    assert found["gap"]["upper"] == pytest.approx(model.upper_bound(), rel=1e-9)
    few = own["suggestion"]["points"]
    assert model.inducing_quality(fraction=1e-6)["processes"][0]["suggestion"]["points"] > few
    with pytest.raises(ValueError, match="positive number"):
        model.inducing_quality(fraction=0.0)
    with pytest.raises(ValueError, match="inducing points"):
        GPR((X, Y), KERNEL).inducing_quality()


@pytest.mark.parametrize("bound", BOUNDS)
def test_inducing_points_at_all_rows_are_exact(bound):
    # on a grid, so that Kuu is well conditioned
    x = np.stack(np.meshgrid(np.arange(5) * 0.9, np.arange(4) * 2.4), axis=-1).reshape(-1, 2)
    y = np.sin(x[:, :1]) + 0.3 * np.random.default_rng(5).normal(size=(20, 1))
    exact = GPR((x, y), KERNEL, noise_variance=NOISE)
    sparse = SGPR((x, y), KERNEL, x, noise_variance=NOISE, bound=bound, jitter=1e-11)
    assert sparse.elbo() == pytest.approx(exact.elbo(), rel=1e-9)
    assert sparse.upper_bound() == pytest.approx(exact.elbo(), rel=1e-9)
    for found, expected in zip(sparse.predict_f(XNEW, True), exact.predict_f(XNEW, True)):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    expected = exact.gradients()
    for path, gradient in sparse.gradients().items():
        if path != "inducing.points":
            np.testing.assert_allclose(gradient, expected[path], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("jitter", [None, 1e-5])
def test_gradients_of_collapsed_bounds_are_slopes(bound, jitter):
    x, y = problem(25, 2)
    kernel = KERNEL + Matern52(0.9, 0.4) * Linear(0.3)
    model = SGPR((x, y), kernel, Z[:5], noise_variance=NOISE, bound=bound, mean="linear", jitter=jitter)
    model["mean.weights"] = np.array([[0.3, -0.2], [0.1, 0.5]])
    model["mean.constant"] = [0.4, -0.1]
    check_gradients(model)


# -- uncollapsed bounds ------------------------------------------------------------------------


def gaussian_q(seed=6, latents=1, m=7):
    """A q that is nothing special."""
    rng = np.random.default_rng(seed)
    mean = 0.5 * rng.normal(size=(m, latents))
    root = np.tril(0.2 * rng.normal(size=(latents, m, m)))
    root[:, np.arange(m), np.arange(m)] = rng.uniform(0.3, 0.9, (latents, m))
    return mean, root


COUNTS = np.random.default_rng(7).poisson(np.exp(0.3 + 0.5 * np.sin(2 * X[:, :1]))).astype(float)


def kl(mean, covariance, prior):
    """KL(N(mean, covariance) ‖ N(0, prior))."""
    _, own = np.linalg.slogdet(covariance)
    _, theirs = np.linalg.slogdet(prior)
    return 0.5 * (
        np.trace(np.linalg.solve(prior, covariance))
        + (mean.T @ np.linalg.solve(prior, mean)).item()
        - len(mean)
        + theirs
        - own
    )


def marginals(mean_u, cov_u, x, jitter=JITTER):
    kuu = rbf(Z, Z) + jitter * np.eye(len(Z))
    a = np.linalg.solve(kuu, rbf(Z, x))
    return a.T @ mean_u, VARIANCE - np.sum(rbf(Z, x) * a, axis=0) + np.sum(a * (cov_u @ a), axis=0)


@pytest.mark.parametrize("whiten", [True, False])
def test_the_uncollapsed_bound_is_its_formula(whiten):
    mean, root = gaussian_q()
    model = SVGP(KERNEL, "poisson", Z, whiten=whiten, q_mu=mean, q_sqrt=root, jitter=JITTER)
    kuu = rbf(Z, Z) + JITTER * np.eye(7)
    factor = np.linalg.cholesky(kuu) if whiten else np.eye(7)
    mean_u, root_u = factor @ mean, factor @ root[0]
    cov_u = root_u @ root_u.T
    mu, variance = marginals(mean_u, cov_u, X)
    mu, y = mu[:, 0], COUNTS[:, 0]
    expectations = y * mu - np.exp(mu + variance / 2) - special.gammaln(y + 1)
    expected = expectations.sum() - kl(mean_u, cov_u, kuu)
    assert model.elbo((X, COUNTS)) == pytest.approx(expected, rel=1e-9)
    found_mean, found_cov = model.q_u
    np.testing.assert_allclose(found_mean, mean_u, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found_cov[0], cov_u, rtol=1e-8, atol=1e-11)
    np.testing.assert_array_equal(model.q_mu, mean)
    np.testing.assert_array_equal(model.q_sqrt, root)
    mu, variance = marginals(mean_u, cov_u, XNEW)
    f_mean, f_variance = model.predict_f(XNEW)
    np.testing.assert_allclose(f_mean, mu, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(f_variance[:, 0], variance, rtol=1e-7, atol=1e-9)
    # of a Poisson law of a log-normal rate
    rate = np.exp(mu[:, 0] + variance / 2)
    y_mean, y_variance = model.predict_y(XNEW)
    np.testing.assert_allclose(y_mean[:, 0], rate, rtol=1e-7)
    np.testing.assert_allclose(y_variance[:, 0], rate + rate**2 * np.expm1(variance), rtol=1e-6)


@pytest.mark.parametrize("likelihood", ["gaussian(variance=0.23)", "poisson", "student-t(df=4.5, scale=0.4)"])
def test_whitened_and_marginal_q_agree(likelihood):
    mean, root = gaussian_q()
    factor = np.linalg.cholesky(rbf(Z, Z) + JITTER * np.eye(7))
    y = COUNTS if likelihood == "poisson" else Y
    white = SVGP(KERNEL, likelihood, Z, q_mu=mean, q_sqrt=root, jitter=JITTER)
    plain = SVGP(
        KERNEL,
        likelihood,
        Z,
        whiten=False,
        q_mu=factor @ mean,
        q_sqrt=factor @ root[0],
        jitter=JITTER,
    )
    assert plain.elbo((X, y)) == pytest.approx(white.elbo((X, y)), rel=1e-9)
    for one, two in zip(plain.predict_f(XNEW, True), white.predict_f(XNEW, True)):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-9)
    # and after steps too
    for model in (plain, white):
        model.natural_gradient_step((X, y), rate=0.4)
    assert plain.elbo((X, y)) == pytest.approx(white.elbo((X, y)), rel=1e-8)


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize("bound", [("svgp", "titsias2009"), ("svgp2025", "titsias2025")])
def test_a_full_step_of_gaussian_noise_is_the_collapsed_bound(whiten, bound):
    x, y = problem(40, 2)
    model = SVGP(
        KERNEL,
        likelihoods.Gaussian(NOISE),
        Z,
        num_outputs=2,
        bound=bound[0],
        whiten=whiten,
        mean="constant",
        jitter=JITTER,
    )
    collapsed = SGPR((x, y), KERNEL, Z, noise_variance=NOISE, bound=bound[1], mean="constant", jitter=JITTER)
    for m in (model, collapsed):
        m["mean.constant"] = [0.3, -0.4]
    before = model.elbo((x, y))
    assert model.natural_gradient_step((x, y), rate=1.0) == pytest.approx(before, rel=1e-12)
    assert model.elbo((x, y)) == pytest.approx(collapsed.elbo(), rel=1e-9)
    assert collapsed.elbo() > before
    for found, expected in zip(model.predict_f(XNEW, True), collapsed.predict_f(XNEW, True)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    for found, expected in zip(model.predict_y(XNEW), collapsed.predict_y(XNEW)):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    gradients, expected = model.gradients((x, y)), collapsed.gradients()
    for path, gradient in expected.items():
        if whiten:  # elsewhere q moves otherwise
            np.testing.assert_allclose(gradients[path], gradient, rtol=1e-5, atol=1e-5)
    scale = max(np.abs(g).max() for g in expected.values())
    assert np.abs(gradients["q.mu"]).max() < 1e-6 * scale
    # the step has come to its end
    model.natural_gradient_step((x, y), rate=1.0)
    assert model.elbo((x, y)) == pytest.approx(collapsed.elbo(), rel=1e-9)


@pytest.mark.parametrize("likelihood", ["poisson", "bernoulli", "gaussian(variance=0.23)"])
def test_minibatches_stand_for_all_rows(likelihood):
    mean, root = gaussian_q()
    y = {"poisson": COUNTS, "bernoulli": (Y > 0).astype(float)}.get(likelihood, Y)
    model = SVGP(KERNEL, likelihood, Z, num_data=40, q_mu=mean, q_sqrt=root)
    whole = model.elbo((X, y))
    parts = [model.elbo((X[i : i + 8], y[i : i + 8])) for i in range(0, 40, 8)]
    assert np.mean(parts) == pytest.approx(whole, rel=1e-12)
    assert np.std(parts) > 0.1
    # parts of different sizes count by these
    cuts = [0, 3, 20, 40]
    sizes = np.diff(cuts)
    parts = [model.elbo((X[a:b], y[a:b])) for a, b in zip(cuts, cuts[1:])]
    assert np.average(parts, weights=sizes) == pytest.approx(whole, rel=1e-12)
    gradients = [model.gradients((X[a:b], y[a:b])) for a, b in zip(cuts, cuts[1:])]
    for path, expected in model.gradients((X, y)).items():
        found = np.average([g[path] for g in gradients], axis=0, weights=sizes)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10, err_msg=path)
    # without num_data rows stand for themselves
    separate = SVGP(KERNEL, likelihood, Z, q_mu=mean, q_sqrt=root)
    assert separate.elbo((X, y)) == pytest.approx(whole, rel=1e-13)
    assert separate.elbo((X[:8], y[:8])) > model.elbo((X[:8], y[:8]))


@pytest.mark.parametrize("whiten", [True, False])
def test_a_diagonal_q_is_a_full_one_with_a_diagonal(whiten):
    mean, root = gaussian_q(latents=2)
    deviations = np.stack([np.diag(one) for one in root], axis=1)
    full = np.stack([np.diag(d) for d in deviations.T])
    x, y = problem(40, 2)
    common = dict(num_outputs=2, whiten=whiten, q_mu=mean, jitter=JITTER)
    likelihood = likelihoods.StudentT(4.5, 0.4)
    one = SVGP(KERNEL, likelihood, Z, q_diag=True, q_sqrt=deviations, **common)
    two = SVGP(KERNEL, likelihood, Z, q_sqrt=full, **common)
    assert one.q_sqrt.shape == (7, 2) and two.q_sqrt.shape == (2, 7, 7)
    assert one.elbo((x, y)) == pytest.approx(two.elbo((x, y)), rel=1e-11)
    for found, expected in zip(one.predict_f(XNEW, True), two.predict_f(XNEW, True)):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
    expected = np.stack([np.diag(g) for g in two.gradients((x, y))["q.sqrt"]], axis=1)
    np.testing.assert_allclose(one.gradients((x, y))["q.sqrt"], expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.q_u[1], two.q_u[1], rtol=1e-9, atol=1e-11)


UNCOLLAPSED = {
    "svgp": dict(),
    "marginal": dict(whiten=False),
    "diagonal": dict(q_diag=True),
    "svgp-spherical": dict(bound="svgp-spherical"),
    "default jitter": dict(jitter=None),
}


@pytest.mark.parametrize("name", UNCOLLAPSED)
@pytest.mark.parametrize("likelihood", ["student-t(df=4.5, scale=0.4)", "poisson"])
def test_gradients_of_uncollapsed_bounds_are_slopes(name, likelihood):
    options = {"jitter": 1e-5, **UNCOLLAPSED[name]}
    mean, root = gaussian_q(m=4)
    if name == "diagonal":
        root = np.diag(root[0])[:, None]
    model = SVGP(KERNEL, likelihood, Z[:4], num_data=60, mean="constant", q_mu=mean, q_sqrt=root, **options)
    model["mean.constant"] = 0.3
    if name == "svgp-spherical":
        model["q.v"] = 0.6
    check_gradients(model, (X[:15], COUNTS[:15]))


@pytest.mark.parametrize("bound", ["svgp", "svgp2025", "svgp-spherical"])
def test_gradients_of_bounds_for_gaussian_noise_are_slopes(bound):
    mean, root = gaussian_q(latents=2, m=4)
    x, y = problem(15, 2)
    model = SVGP(
        KERNEL,
        likelihoods.Gaussian(NOISE),
        Z[:4],
        num_outputs=2,
        bound=bound,
        q_mu=mean,
        q_sqrt=root,
    )
    check_gradients(model, (x, y))


def test_several_latent_functions_with_their_own_parts():
    mean, root = gaussian_q(latents=2, m=4)
    model = SVGP(
        [KERNEL, Matern32(0.9, 0.5)],
        "heteroscedastic",
        [Z[:4], Z[3:]],
        q_mu=mean,
        q_sqrt=root,
        jitter=1e-6,
    )
    assert {p.split(".")[0] for p in model.parameters} == {"kernels[0]", "kernels[1]", "inducing", "q"}
    check_gradients(model, (X[:15], Y[:15]))
    # the first latent function is that of a separate model
    separate = SVGP(KERNEL, "gaussian", Z[:4], q_mu=mean[:, :1], q_sqrt=root[:1], jitter=1e-6)
    found, expected = model.predict_f(XNEW), separate.predict_f(XNEW)
    np.testing.assert_allclose(found[0][:, :1], expected[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found[1][:, :1], expected[1], rtol=1e-10)
    # E[y] = μ₀, var y = v₀ + e^{2μ₁ + 2v₁}
    f_mean, f_variance = model.predict_f(XNEW)
    y_mean, y_variance = model.predict_y(XNEW)
    np.testing.assert_allclose(y_mean[:, 0], f_mean[:, 0], rtol=1e-13)
    np.testing.assert_allclose(
        y_variance[:, 0],
        f_variance[:, 0] + np.exp(2 * f_mean[:, 1] + 2 * f_variance[:, 1]),
        rtol=1e-11,
    )


def test_factors_tighten_the_bound():
    mean, root = gaussian_q()
    arguments = dict(q_mu=mean, q_sqrt=root, jitter=JITTER)
    plain = SVGP(KERNEL, "poisson", Z, **arguments)
    tight = SVGP(KERNEL, "poisson", Z, bound="svgp-spherical", **arguments)
    data = (X, COUNTS)
    assert tight["q.v"].shape == (1,)
    tight["q.v"] = 1.0
    assert tight.elbo(data) == pytest.approx(plain.elbo(data), rel=1e-12)
    # less ½(v − log v − 1) for every row, of v times the unexplained variance
    tight["q.v"] = 0.7
    factor = np.linalg.cholesky(rbf(Z, Z) + JITTER * np.eye(7))
    mean_u, root_u = factor @ mean, factor @ root[0]
    mu, variance = marginals(mean_u, root_u @ root_u.T, X)
    _, _, _, r = sparse_parts()
    mu, variance, y = mu[:, 0], variance - 0.3 * r, COUNTS[:, 0]
    expected = np.sum(y * mu - np.exp(mu + variance / 2) - special.gammaln(y + 1))
    expected -= 40 * 0.5 * (0.7 - math.log(0.7) - 1)
    expected -= kl(mean, root[0] @ root[0].T, np.eye(7))
    assert tight.elbo(data) == pytest.approx(expected, rel=1e-8)
    assert tight.gradients(data)["q.v"][0] != 0.0
    gaussian = likelihoods.Gaussian(NOISE)
    loose = SVGP(KERNEL, gaussian, Z, **arguments)
    assert SVGP(KERNEL, gaussian, Z, bound="svgp2025", **arguments).elbo((X, Y)) > loose.elbo((X, Y)) + 1.0


# -- sites -------------------------------------------------------------------------------------


@pytest.mark.parametrize("tying", ["natural", "kernel", "whitened"])
def test_a_full_step_of_sites_is_the_collapsed_bound(tying):
    model = TSVGP(KERNEL, likelihoods.Gaussian(NOISE), Z, tying=tying, jitter=JITTER)
    collapsed = SGPR((X, Y), KERNEL, Z, noise_variance=NOISE, bound="titsias2009", jitter=JITTER)
    before = model.elbo((X, Y))
    assert model.natural_gradient_step((X, Y), rate=1.0) == pytest.approx(before, rel=1e-12)
    assert model.elbo((X, Y)) == pytest.approx(collapsed.elbo(), rel=1e-8) and collapsed.elbo() > before
    for found, expected in zip(model.predict_f(XNEW, True), collapsed.predict_f(XNEW, True)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_sites_and_moments_step_alike():
    svgp = SVGP(KERNEL, "poisson", Z, jitter=JITTER)
    tsvgp = TSVGP(KERNEL, "poisson", Z, jitter=JITTER)
    for _ in range(4):
        svgp.natural_gradient_step((X, COUNTS), rate=0.5)
        tsvgp.natural_gradient_step((X, COUNTS), rate=0.5)
        assert tsvgp.elbo((X, COUNTS)) == pytest.approx(svgp.elbo((X, COUNTS)), rel=1e-8)
    for found, expected in zip(tsvgp.predict_y(XNEW), svgp.predict_y(XNEW)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_sites_of_all_rows_are_exact_for_gaussian_noise():
    model = TVGP((X, Y), KERNEL, likelihoods.Gaussian(NOISE), mean="constant")
    exact = GPR((X, Y), KERNEL, noise_variance=NOISE, mean="constant")
    for m in (model, exact):
        m["mean.constant"] = 0.3
    before = model.elbo()
    assert model.natural_gradient_step(rate=1.0) == pytest.approx(before, rel=1e-12)
    assert model.elbo() == pytest.approx(exact.elbo(), rel=1e-10) and exact.elbo() > before
    for found, expected in zip(model.predict_f(XNEW, True), exact.predict_f(XNEW, True)):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        model.gradients()["kernel.lengthscales"],
        exact.gradients()["kernel.lengthscales"],
        rtol=1e-7,
    )


def test_sites_of_all_rows_find_the_best_gaussian():
    x = np.stack(np.meshgrid(np.arange(5) * 0.9, np.arange(4) * 2.4), axis=-1).reshape(-1, 2)
    y = (np.sin(x[:, :1]) > 0).astype(float)
    dual = TVGP((x, y), KERNEL, "bernoulli")
    sparse = SVGP(KERNEL, "bernoulli", x, jitter=1e-11)
    for _ in range(40):
        dual.natural_gradient_step(rate=0.7)
        sparse.natural_gradient_step((x, y), rate=0.7)
    assert dual.elbo() == pytest.approx(sparse.elbo((x, y)), rel=1e-8)
    for found, expected in zip(dual.predict_f(XNEW, True), sparse.predict_f(XNEW, True)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    # the rows have sites, and these are of the optimum: λ₂ = −2 ∂E/∂v, of means and variances there
    mean, variance = dual.predict_f(x)
    _, slopes = likelihoods.Bernoulli().variational_expectations_and_gradients(mean, variance, y)
    np.testing.assert_allclose(dual["q.lambda2"], -2 * slopes["Fvar"], rtol=1e-6)


@pytest.mark.parametrize("tying", ["natural", "kernel", "whitened"])
def test_gradients_of_bounds_by_sites_are_slopes(tying):
    model = TSVGP(KERNEL, "poisson", Z[:4], tying=tying, num_data=60, mean="constant", jitter=1e-5)
    data = (X[:15], COUNTS[:15])
    for _ in range(2):
        model.natural_gradient_step(data, rate=0.4)
    # the sites themselves are moved only by natural steps
    check_gradients(model, data, skip=("q.lambda1", "q.lambda2"))


def test_gradients_of_the_bound_by_sites_of_all_rows_are_slopes():
    model = TVGP((X[:15], Y[:15]), KERNEL, "student-t(df=4.5, scale=0.4)", mean="linear")
    for _ in range(3):
        model.natural_gradient_step(rate=0.4)
    check_gradients(model, skip=("q.lambda1", "q.lambda2"))


# -- training ----------------------------------------------------------------------------------


def models():
    """One of each kind with its data (None: it keeps them)."""
    gaussian = likelihoods.Gaussian(NOISE)
    return {
        "gpr": (GPR((X, Y), KERNEL, noise_variance=NOISE), None),
        "sgpr": (SGPR((X, Y), KERNEL, Z, noise_variance=NOISE), None),
        "svgp": (SVGP(KERNEL, gaussian, Z, bound="svgp2025"), (X, Y)),
        "svgp poisson": (SVGP(KERNEL, "poisson", Z), (X, COUNTS)),
        "tsvgp": (TSVGP(KERNEL, "poisson", Z), (X, COUNTS)),
        "tvgp": (TVGP((X, Y), KERNEL, "student-t(df=4.5, scale=0.4)"), None),
    }


KINDS = list(models())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimiser", ["lbfgs", "adam"])
def test_training_raises_the_objective(kind, optimiser):
    model, data = models()[kind]
    before, start = model.elbo(data), model["kernel.lengthscales"]
    report = model.optimise(data, max_iterations=30, optimiser=optimiser)
    assert model.elbo(data) > before + 0.1
    assert report["objective"] == pytest.approx(model.elbo(data), rel=1e-6)
    assert 0 < report["iterations"] <= 30
    assert (model["kernel.lengthscales"] != start).any()
    assert len(report["trace"]) == report["iterations"]


@pytest.mark.parametrize("kind", KINDS)
def test_models_come_back_from_pickle(kind):
    model, data = models()[kind]
    model.set_prior("kernel.variance", priors.LogNormal(0.3, 0.9))
    model.freeze("kernel.lengthscales")
    model.optimise(data, max_iterations=4)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.deepcopy(model.copy())):
        assert type(again) is type(model) and list(again.parameters) == list(model.parameters)
        for path, value in model.parameters.items():
            np.testing.assert_array_equal(again[path], value, err_msg=path)
        assert again.elbo(data) == model.elbo(data) and again.log_prior() == model.log_prior() != 0
        if data is None:
            for own, other_one in zip(again.predict_f(XNEW), model.predict_f(XNEW)):
                np.testing.assert_array_equal(own, other_one)
        # one continues as the other would, and neither changes the other
        before, trained = model["kernel.variance"], model.copy()
        for each in (again, trained):
            each.optimise(data, max_iterations=3)
        assert (model["kernel.variance"] == before).all() and (again["kernel.variance"] != before).all()
        for path, value in trained.parameters.items():
            np.testing.assert_array_equal(again[path], value, err_msg=path)
        np.testing.assert_array_equal(again["kernel.lengthscales"], model["kernel.lengthscales"])
    fitted = sparsegp.GPRegressor(max_iter=2).fit(X, Y[:, 0])
    with pytest.raises(TypeError, match="pickle or save the estimator"):
        pickle.dumps(fitted.model_)


@pytest.mark.parametrize("kind", ["svgp", "svgp poisson", "tsvgp"])
def test_training_by_minibatches_raises_the_objective(kind):
    model, data = models()[kind]
    before = model.elbo(data)
    report = model.optimise(data, batch_size=10, epochs=30, learning_rate=0.02)
    assert report["iterations"] == 120
    assert model.elbo(data) > before + 0.1
    other, _ = models()[kind]
    other.optimise(data, batch_size=10, epochs=30, learning_rate=0.02)
    for path, value in model.parameters.items():
        np.testing.assert_array_equal(other[path], value, err_msg=path)
    third, _ = models()[kind]
    third.optimise(data, batch_size=10, iterations=117, learning_rate=0.02)
    np.testing.assert_array_equal(third["kernel.lengthscales"], model["kernel.lengthscales"])
    third, _ = models()[kind]
    third.optimise(data, batch_size=10, epochs=30, learning_rate=0.02, seed=5)
    assert (third["kernel.lengthscales"] != model["kernel.lengthscales"]).any()


def test_training_ends_where_gradients_vanish():
    model = GPR((X, Y), KERNEL, noise_variance=NOISE)
    report = model.optimise()
    assert report["converged"]
    gradients = model.gradients()
    start = GPR((X, Y), KERNEL, noise_variance=NOISE).gradients()
    for path in gradients:
        scaled = np.abs(gradients[path] * model[path]).max()
        assert scaled < 1e-2 < np.abs(start[path]).max(), path
    # scikit-learn's optimiser ends at no higher place
    theirs = other.ConstantKernel(VARIANCE) * other.RBF(LENGTHSCALES) + other.WhiteKernel(NOISE)
    peer = GaussianProcessRegressor(theirs, alpha=0.0).fit(X, Y[:, 0])
    assert model.elbo() == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_parameters_stay(kind):
    model, data = models()[kind]
    model.freeze("kernel")
    kept = {p: v for p, v in model.parameters.items() if p.startswith("kernel")}
    assert kept and "fixed" in repr(model)
    before = model.elbo(data)
    model.optimise(data, max_iterations=5)
    for path, value in kept.items():
        np.testing.assert_array_equal(model[path], value)
    if kind != "svgp poisson" and kind != "tsvgp":
        assert (model["likelihood." + ("df" if kind == "tvgp" else "variance")] != NOISE).all()
    assert model.elbo(data) > before
    model.unfreeze("kernel.lengthscales")
    model.optimise(data, max_iterations=5)
    assert model["kernel.variance"] == VARIANCE
    assert (model["kernel.lengthscales"] != LENGTHSCALES).all()


PRIORS = {
    priors.Gamma(2.5, 0.7): stats.gamma(2.5, scale=1 / 0.7),
    priors.LogNormal(0.3, 0.8): stats.lognorm(0.8, scale=math.exp(0.3)),
    priors.Normal(0.3, 0.8): stats.norm(0.3, 0.8),
    priors.HalfNormal(0.8): stats.halfnorm(scale=0.8),
    priors.InverseGamma(2.5, 0.7): stats.invgamma(2.5, scale=0.7),
    priors.HalfCauchy(0.8): stats.halfcauchy(scale=0.8),
    priors.Uniform(0.05, 6.5): stats.uniform(0.05, 6.45),
}


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
def test_priors_have_their_densities(prior):
    model = GPR((X, Y), KERNEL, noise_variance=NOISE)
    assert model.log_prior() == 0.0
    model.set_prior("kernel.lengthscales", prior)
    expected = PRIORS[prior].logpdf(LENGTHSCALES).sum()
    assert model.log_prior() == pytest.approx(expected, rel=1e-12)
    model["likelihood.variance"] = Parameter(0.31, prior=prior)
    assert model["likelihood.variance"] == 0.31
    assert model.log_prior() == pytest.approx(expected + PRIORS[prior].logpdf(0.31), rel=1e-12)
    assert type(prior).__name__.lower() in repr(model)
    model.set_prior("kernel.lengthscales", None)
    assert model.log_prior() == pytest.approx(PRIORS[prior].logpdf(0.31), rel=1e-12)
    # a bound is without them
    assert model.elbo() == pytest.approx(GPR((X, Y), KERNEL, noise_variance=0.31).elbo(), rel=1e-13)


@pytest.mark.parametrize(
    "prior", [p for p in PRIORS if not isinstance(p, priors.Uniform)], ids=lambda p: type(p).__name__
)
def test_priors_move_what_is_learnt(prior):
    model = GPR((X, Y), KERNEL, noise_variance=NOISE)
    model.optimise()
    free = float(model["kernel.variance"])
    model.set_prior("kernel.variance", prior)
    model.optimise()
    value = float(model["kernel.variance"])
    assert abs(value - free) > 1e-3
    # where the slope of the evidence and that of the prior add to nothing
    own = slope(PRIORS[prior].logpdf, value, 1e-3)
    assert value * (model.gradients()["kernel.variance"] + own) == pytest.approx(0.0, abs=1e-2)
    assert abs(value * own) > 3e-2


def test_a_uniform_prior_bounds_what_is_learnt():
    model = GPR((X, Y), KERNEL, noise_variance=NOISE)
    model.optimise()
    free = float(model["kernel.variance"])
    model.set_prior("kernel.variance", priors.Uniform(0.1 * free, 0.5 * free))
    model.optimise()
    assert 0.45 * free < float(model["kernel.variance"]) < 0.5 * free
    model.set_prior("kernel.variance", None)
    model.optimise()
    assert float(model["kernel.variance"]) == pytest.approx(free, rel=1e-2)
    # most of the horseshoe is near 0: the density at 1 is E₁(½) e^½ / √(2π³)
    model.set_prior("kernel.variance", priors.Horseshoe(1.0))
    model["kernel.variance"] = 1.0
    assert model.log_prior() == pytest.approx(
        math.log(0.5597736 * math.exp(0.5) / math.sqrt(2 * math.pi**3)), abs=1e-6
    )


def test_a_parameter_with_a_prior_comes_with_the_kernel():
    prior = priors.LogNormal(0.3, 0.8)
    kernel = RBF(Parameter([0.6, 1.7], prior=prior), Parameter(1.4, fixed=True))
    model = GPR((X, Y), kernel, noise_variance=Parameter(NOISE, fixed=True))
    assert model.log_prior() == pytest.approx(PRIORS[prior].logpdf(LENGTHSCALES).sum(), rel=1e-12)
    model.optimise(max_iterations=5)
    assert model["kernel.variance"] == 1.4 and model["likelihood.variance"] == NOISE
    assert (model["kernel.lengthscales"] != LENGTHSCALES).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_size", [None, 10])
def test_a_callback_stops_the_training(kind, batch_size):
    if batch_size and kind in ("gpr", "sgpr", "tvgp"):
        pytest.skip("no minibatches")
    found = []
    for _ in range(2):
        model, data = models()[kind]
        events = []

        def stop(event, events=events):
            events.append(event)
            iterations = [e["iteration"] for e in events if e["event"] == "iteration"]
            return event["event"] == "iteration" and len(iterations) == 2

        options = {} if batch_size is None else dict(batch_size=10, epochs=500)
        report = model.optimise(data, callback=stop, **options)
        assert not report["converged"] and report["stopped"]
        assert all(np.isfinite(e["objective"]) for e in events)
        # where it was asked to, not a while later
        second = [e["iteration"] for e in events if e["event"] == "iteration"][1]
        # a report counts minibatches, four to the epoch
        assert report["iterations"] == second * (1 if batch_size is None else 4)
        found.append((report["iterations"], model.parameters))
    # so it is the same model every time
    for path, value in found[0][1].items():
        np.testing.assert_array_equal(found[1][1][path], value, err_msg=path)


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_in_a_callback_comes_out_and_the_best_stays(kind):
    model, data = models()[kind]
    before = model.elbo(data)
    error = LookupError("mine")

    def fail(event):
        if event["event"] == "iteration" and event["iteration"] >= 3:
            raise error

    with pytest.raises(LookupError) as caught:
        model.optimise(data, callback=fail)
    assert caught.value is error
    middle = model.elbo(data)
    assert middle > before
    assert np.isfinite(model.predict_f(XNEW)[0]).all()
    # and it can continue
    model.optimise(data, max_iterations=20)
    assert model.elbo(data) >= middle


# -- prediction --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_of_one_model_agree(kind):
    model, data = models()[kind]
    if data is not None or kind == "tvgp":
        model.natural_gradient_step(data, rate=0.8)
    mean, variance = model.predict_f(XNEW)
    full_mean, covariance = model.predict_f(XNEW, full_cov=True)
    np.testing.assert_allclose(full_mean, mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.diagonal(covariance, axis1=1, axis2=2).T, variance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(covariance, covariance.transpose(0, 2, 1), rtol=1e-12)
    assert (np.linalg.eigvalsh(covariance) > -1e-10).all()
    # joint draws have these moments: five standard errors
    draws = model.predict_f_samples(XNEW, 4000, seed=3)
    assert draws.shape == (4000, 9, 1)
    error = np.sqrt(variance / 4000)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * error).all()
    found = np.cov(draws[:, :, 0].T)
    spread = np.sqrt((covariance[0] ** 2 + np.outer(variance, variance)) / 4000)
    assert (np.abs(found - covariance[0]) < 5 * spread).all()
    np.testing.assert_array_equal(draws, model.predict_f_samples(XNEW, 4000, seed=3))
    assert (draws != model.predict_f_samples(XNEW, 4000, seed=4)).all()
    # parts of the rows are predicted as all of them
    for i in range(9):
        one = model.predict_f(XNEW[i : i + 1])
        np.testing.assert_allclose(one[0][0], mean[i], rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(one[1][0], variance[i], rtol=1e-10)


def test_log_densities_are_those_of_the_prediction():
    for kind in ("gpr", "sgpr", "svgp"):
        model, data = models()[kind]
        if data is not None:
            model.natural_gradient_step(data, rate=0.8)
        mean, variance = model.predict_f(XNEW)
        expected = stats.norm(mean, np.sqrt(variance + NOISE)).logpdf(YNEW)[:, 0]
        found = model.predict_log_density((XNEW, YNEW))
        np.testing.assert_allclose(found, expected, rtol=1e-11)
        np.testing.assert_allclose(model.predict_y(XNEW)[1], variance + NOISE, rtol=1e-12)
    model, data = models()["svgp poisson"]
    model.natural_gradient_step(data, rate=0.8)
    mean, variance = model.predict_f(XNEW)
    x, w = np.polynomial.hermite_e.hermegauss(120)
    y = np.arange(9.0)[:, None]
    rate = np.exp(mean + np.sqrt(variance) * x)
    expected = np.log(stats.poisson(rate).pmf(y) @ (w / w.sum()))
    np.testing.assert_allclose(model.predict_log_density((XNEW, y)), expected, rtol=1e-9)


def test_known_noise_of_new_rows_is_added():
    model = GPR((X, Y), KERNEL, noise_variance=NOISE)
    extra = np.linspace(0.1, 0.9, 9)
    _, variance = model.predict_f(XNEW)
    np.testing.assert_allclose(
        model.predict_y(XNEW, extra)[1][:, 0], variance[:, 0] + NOISE + extra, rtol=1e-12
    )
    expected = stats.norm(model.predict_f(XNEW)[0], np.sqrt(variance + NOISE + extra[:, None]))
    np.testing.assert_allclose(
        model.predict_log_density((XNEW, YNEW), extra), expected.logpdf(YNEW)[:, 0], rtol=1e-11
    )
    with pytest.raises(ValueError, match="8 further numbers for 9 rows"):
        model.predict_y(XNEW, extra[:8])


def test_a_change_is_seen_by_the_next_prediction():
    model = GPR((X, Y), KERNEL, noise_variance=NOISE)
    before = model.predict_f(XNEW)
    model["kernel.variance"] = 2.6
    changed = GPR((X, Y), KERNEL.replace(variance=2.6), noise_variance=NOISE)
    for found, expected, old in zip(model.predict_f(XNEW), changed.predict_f(XNEW), before):
        np.testing.assert_array_equal(found, expected)
        assert (found != old).all()
    model.optimise(max_iterations=3)
    assert (model.predict_f(XNEW)[0] != changed.predict_f(XNEW)[0]).all()


# -- parameters and mistakes -------------------------------------------------------------------


def test_parameters_by_path():
    mean, root = gaussian_q()
    model = SVGP(KERNEL, "student-t(df=4.5, scale=0.4)", Z, q_mu=mean, q_sqrt=root)
    values = model.parameters
    assert set(values) == {
        "kernel.variance",
        "kernel.lengthscales",
        "likelihood.df",
        "likelihood.scale",
        "inducing.points",
        "q.mu",
        "q.sqrt",
    }
    np.testing.assert_array_equal(values["inducing.points"], Z)
    np.testing.assert_array_equal(values["q.mu"], mean)
    np.testing.assert_array_equal(values["q.sqrt"], root)
    for path, value in values.items():
        model[path] = value
        np.testing.assert_array_equal(model[path], value, err_msg=path)
        model[path] = np.asfortranarray(value * 1.5)
        np.testing.assert_allclose(model[path], value * 1.5, rtol=1e-15, err_msg=path)
        assert path in repr(model)
    model["kernel.lengthscales"] = 0.8
    np.testing.assert_array_equal(model["kernel.lengthscales"], [0.8, 0.8])
    assert model["likelihood.df"].shape == ()


@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_independent(kind):
    model, data = models()[kind]
    value, prediction = model.elbo(data), model.predict_f(XNEW)
    copied = model.copy()
    assert type(copied) is type(model) and copied.elbo(data) == value
    copied["kernel.variance"] = 0.4
    copied.freeze("kernel")
    copied.set_prior("kernel.variance", priors.HalfNormal(0.8))
    copied.optimise(data, max_iterations=3)
    assert model.elbo(data) == value and model["kernel.variance"] == VARIANCE
    assert model.log_prior() == 0.0 and "fixed" not in repr(model).split("q.")[0]
    for found, expected in zip(model.predict_f(XNEW), prediction):
        np.testing.assert_array_equal(found, expected)
    again = model.copy()
    model["kernel.variance"] = 0.4
    assert again.elbo(data) == value


def test_data_that_change_later_do_not_change_a_model():
    x, y = X.copy(), Y.copy()
    model = SGPR((x, y), KERNEL, Z, noise_variance=NOISE)
    value = model.elbo()
    x[0], y[0] = 50.0, -50.0
    assert model.elbo() == value


def test_unknown_paths_are_key_errors_that_name_the_nearest():
    model = GPR((X, Y), KERNEL, noise_variance=NOISE)
    for call in (
        lambda: model["kernel.lengthscale"],
        lambda: model.__setitem__("kernel.lengthscale", 0.3),
        lambda: model.set_prior("kernel.lengthscale", priors.HalfNormal(0.8)),
    ):
        with pytest.raises(KeyError, match="unknown.*`kernel.lengthscale`.*`kernel.lengthscales`"):
            call()
    for call in (model.freeze, model.unfreeze):
        with pytest.raises(ValueError, match="`likelihod`.*likelihood"):
            call("likelihod")


def test_values_that_cannot_be_are_refused():
    model = GPR((X, Y), KERNEL, noise_variance=NOISE)
    for path, value in (
        ("kernel.variance", -1.0),
        ("kernel.variance", 0.0),
        ("kernel.variance", np.nan),
        ("kernel.variance", np.inf),
        ("kernel.variance", [1.0, 2.0]),
        ("kernel.lengthscales", [1.0, 2.0, 3.0]),
        ("likelihood.variance", 0.0),
    ):
        with pytest.raises(ValueError, match=path):
            model[path] = value
    with pytest.raises(ValueError, match="concentration"):
        model.set_prior("kernel.variance", priors.Gamma(-1.0, 0.7))
    assert model.elbo() == GPR((X, Y), KERNEL, noise_variance=NOISE).elbo()
    for kernel in (RBF(0.5, -1.3), "rbf(variance=-1.3)", RBF([0.5, 0.6, 0.7], 1.3)):
        with pytest.raises(ValueError):
            GPR((X, Y), kernel)


def test_wrong_shapes_at_the_start_are_value_errors():
    mean, root = gaussian_q()
    for call in (
        lambda: GPR((X, Y[:5]), KERNEL),
        lambda: SGPR((X[:5], Y), KERNEL, Z),
        lambda: GPR((X.reshape(2, 20, 2), Y), KERNEL),
        lambda: SGPR((X, Y), KERNEL, Z[:, :1]),
        lambda: SGPR((X, Y), KERNEL, np.empty((0, 2))),
        lambda: SVGP(KERNEL, "poisson", Z, q_mu=mean[:6]),
        lambda: SVGP(KERNEL, "poisson", Z, q_mu=np.c_[mean, mean]),
        lambda: SVGP(KERNEL, "poisson", Z, q_sqrt=root[:, :6, :6]),
        lambda: SVGP(KERNEL, "poisson", Z, q_sqrt=np.ones((7, 2)), q_diag=True),
        lambda: SVGP(KERNEL, "poisson", Z, num_outputs=2, q_mu=mean),
        lambda: TVGP((X, Y[:5]), KERNEL, "student-t"),
    ):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 3])
def test_rows_of_another_width_are_value_errors(kind, columns):
    model, data = models()[kind]
    y = (model._data if data is None else data)[1]
    x = np.ones((40, columns)) * np.linspace(0, 1, 40)[:, None]
    before = {path: value.copy() for path, value in model.parameters.items()}
    for call in (model.elbo, model.gradients, model.optimise, *steps(model)):
        with pytest.raises(ValueError, match="column"):
            call((x, y))
    for call in (
        model.predict_f,
        model.predict_y,
        lambda x: model.predict_f(x, full_cov=True),
        lambda x: model.predict_f_samples(x, 2),
        lambda x: model.predict_log_density((x, y)),
    ):
        with pytest.raises(ValueError, match="columns"):
            call(x)
    for path, value in before.items():
        np.testing.assert_array_equal(model[path], value)


def steps(model):
    return [model.natural_gradient_step] if hasattr(model, "natural_gradient_step") else []


@pytest.mark.parametrize("kind", KINDS)
def test_targets_of_another_length_are_value_errors(kind):
    model, data = models()[kind]
    x, y = model._data if data is None else data
    for call in (model.elbo, model.gradients, model.optimise, *steps(model)):
        with pytest.raises(ValueError, match="rows"):
            call((x, y[:7]))
    with pytest.raises(ValueError):
        model.predict_log_density((x, y[:7]))
    with pytest.raises(ValueError):
        model.predict_log_density((x, np.c_[y, y]))


def test_arguments_that_cannot_be_are_refused():
    svgp, data = models()["svgp poisson"]
    for rate in (0.0, -0.4, 1.5, np.nan):
        with pytest.raises(ValueError, match="step of q"):
            svgp.natural_gradient_step(data, rate=rate)
    for arguments, message in (
        (dict(optimiser="sgd"), "sgd.*lbfgs.*adam"),
        (dict(batch_size=0), "batch_size"),
        (dict(batch_size=7, epochs=2, learning_rate=-1.0), "learning_rate"),
        (dict(batch_size=7, epochs=2, natural_rate=2.0), "natural_rate"),
        (dict(max_iterations=-1), "-1"),
    ):
        with pytest.raises(ValueError, match=message):
            svgp.optimise(data, **arguments)
    with pytest.raises(ValueError, match="does not keep data"):
        svgp.elbo()
    with pytest.raises(ValueError, match="'svpg'.*'svgp'"):
        SVGP(KERNEL, "poisson", Z, bound="svpg")
    with pytest.raises(ValueError, match="Gaussian.*poisson"):
        SVGP(KERNEL, "poisson", Z, bound="svgp2025")
    with pytest.raises(ValueError, match="unknown mean.*linear"):
        GPR((X, Y), KERNEL, mean="linaer")
    with pytest.raises(ValueError, match="tying.*natural"):
        TSVGP(KERNEL, "poisson", Z, tying="natrual")
    with pytest.raises(ValueError, match="TVGP"):
        TSVGP(KERNEL, "poisson", Z, tying="untied")
    with pytest.raises(ValueError, match="3 kernels"):
        SVGP([KERNEL] * 3, "heteroscedastic", Z).elbo((X, Y))
    with pytest.raises(TypeError, match="GPR"):
        Model()
    assert not hasattr(GPR((X, Y), KERNEL), "natural_gradient_step")


@pytest.mark.parametrize("cls, bound", [(SGPR, "svgp"), (SGPR, "exact"), (SVGP, "titsias2009")])
def test_bounds_of_another_class_are_refused(cls, bound):
    with pytest.raises(ValueError, match=bound):
        if cls is SGPR:
            SGPR((X, Y), KERNEL, Z, bound=bound)
        else:
            SVGP(KERNEL, "gaussian", Z, bound=bound)


def test_negative_jitter_is_refused():
    for call in (
        lambda: SGPR((X, Y), KERNEL, Z, jitter=-1e-3).elbo(),
        lambda: SVGP(KERNEL, "poisson", Z, jitter=-1e-3).elbo((X, COUNTS)),
    ):
        with pytest.raises(ValueError, match="jitter"):
            call()


def test_exact_inference_refuses_a_kernel_for_each_of_several_targets():
    # it has one for all: the second must not be forgotten in silence
    x, y = problem(20, 2)
    with pytest.raises(ValueError, match="kernel"):
        GPR((x, y), [KERNEL, Matern32(0.9, 0.5)]).elbo()


def test_inducing_points_of_different_numbers_are_refused():
    with pytest.raises(ValueError):
        SVGP([KERNEL, KERNEL], "heteroscedastic", [Z, Z[:3]]).predict_f(XNEW)


def test_numbers_of_rows_and_targets_are_at_least_one():
    with pytest.raises(ValueError):
        SVGP(KERNEL, "poisson", Z, num_outputs=0)
    with pytest.raises(ValueError):
        SVGP(KERNEL, "poisson", Z, num_data=0).elbo((X, COUNTS))


@pytest.mark.parametrize(
    "likelihood, bad",
    [
        ("bernoulli", -1.0),
        ("bernoulli", 0.5),
        ("poisson", -1.0),
        ("poisson", 1.5),
        ("gamma", 0.0),
        ("beta", 1.5),
        ("softmax(classes=3)", 3.0),
    ],
)
def test_targets_that_cannot_be_are_value_errors(likelihood, bad):
    model = SVGP(KERNEL, likelihood, Z)
    y = np.full((40, 1), 0.5 if likelihood == "beta" else 1.0)
    assert np.isfinite(model.elbo((X, y)))
    y[3] = bad
    for call in (model.elbo, model.gradients, model.natural_gradient_step, model.optimise):
        with pytest.raises(ValueError, match=f"{bad:g}"):
            call((X, y))
    with pytest.raises(ValueError, match=f"{bad:g}"):
        model.predict_log_density((X, y))


def test_further_numbers_that_are_needed_are_asked_for():
    # a binomial likelihood cannot do without trials: 1 would be a guess
    successes = (Y > 0).astype(float)
    with pytest.raises(ValueError, match="trials"):
        likelihoods.Binomial().log_prob(Y, successes)
    with pytest.raises(ValueError, match="trials"):
        SVGP(KERNEL, "binomial", Z).elbo((X, successes))


def test_numerical_errors_are_arithmetic_errors():
    assert issubclass(sparsegp.NumericalError, ArithmeticError)
    assert not issubclass(sparsegp.NumericalError, ValueError)
    twice = SGPR((X, Y), KERNEL, np.r_[Z, Z], noise_variance=NOISE, jitter=0.0)
    for call in (twice.elbo, twice.gradients, twice.optimise, lambda: twice.predict_f(XNEW)):
        with pytest.raises(sparsegp.NumericalError, match="not positive definite"):
            call()
    # by default jitter helps
    assert np.isfinite(SGPR((X, Y), KERNEL, np.r_[Z, Z], noise_variance=NOISE).elbo())
    error = pickle.loads(pickle.dumps(sparsegp.NumericalError("text")))
    assert type(error) is sparsegp.NumericalError and error.args == ("text",)


def test_no_rows_are_the_prior():
    none = np.empty((0, 2)), np.empty((0, 1))
    exact = GPR(none, KERNEL, noise_variance=NOISE)
    assert exact.elbo() == 0.0
    mean, variance = exact.predict_f(XNEW)
    np.testing.assert_array_equal(mean, np.zeros((9, 1)))
    np.testing.assert_allclose(variance, VARIANCE, rtol=1e-12)
    assert SGPR(none, KERNEL, Z, noise_variance=NOISE).elbo() == 0.0
    model, data = models()["svgp"]
    assert model.elbo(none) == pytest.approx(0.0, abs=1e-9)
    for kind in KINDS:
        model, _ = models()[kind]
        assert model.predict_f(none[0])[0].shape == (0, 1)
        assert model.predict_f(none[0], full_cov=True)[1].shape == (1, 0, 0)
        assert model.predict_y(none[0])[1].shape == (0, 1)
        assert model.predict_log_density(none).shape == (0,)
        assert model.predict_f_samples(none[0], 3).shape == (3, 0, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_that_are_not_numbers_are_value_errors(kind):
    model, data = models()[kind]
    x, y = model._data if data is None else data
    for bad in (np.nan, np.inf, -np.inf):
        wrong = x.copy()
        wrong[3, 1] = bad
        for call in (model.elbo, model.gradients, *steps(model)):
            with pytest.raises(ValueError, match="finite|NaN|inf"):
                call((wrong, y))
        for call in (model.predict_f, model.predict_y):
            with pytest.raises(ValueError, match="finite|NaN|inf"):
                call(wrong)


@pytest.mark.parametrize("kind", ["gpr", "sgpr", "svgp", "tvgp"])
def test_targets_that_are_infinite_are_value_errors(kind):
    model, data = models()[kind]
    x, y = model._data if data is None else data
    wrong = y.copy()
    wrong[3] = np.inf
    for call in (model.elbo, model.gradients, *steps(model)):
        with pytest.raises(ValueError, match="finite"):
            call((x, wrong))


@pytest.mark.parametrize("kind", ["gpr", "sgpr"])
def test_missing_targets_do_not_make_a_bound_of_nan(kind):
    model, _ = models()[kind]
    wrong = Y.copy()
    wrong[3] = np.nan
    with pytest.raises(ValueError, match="finite|NaN|missing"):
        model.elbo((X, wrong))


def test_missing_targets_are_left_out_of_uncollapsed_bounds():
    mean, root = gaussian_q()
    model = SVGP(KERNEL, likelihoods.Gaussian(NOISE), Z, q_mu=mean, q_sqrt=root)
    missing = Y.copy()
    missing[3] = np.nan
    kept = np.delete(np.arange(40), 3)
    assert model.elbo((X, missing)) == pytest.approx(model.elbo((X[kept], Y[kept])), rel=1e-12)


# -- leaving rows out, slopes in inputs, predictions by q(f | u) -------------------------------------


def test_leaving_a_row_out_is_conditioning_on_the_others():
    noise = np.linspace(0.0, 0.4, 40)
    for model in (
        GPR((X, Y), KERNEL, noise_variance=NOISE, mean="constant"),
        GPR((X, Y), KERNEL, noise_variance=NOISE, extra=noise),
        SGPR((X, Y), KERNEL, Z, noise_variance=NOISE, jitter=JITTER),
        SGPR((X, Y), KERNEL, Z, noise_variance=NOISE, bound="fitc", jitter=JITTER),
    ):
        found = model.loo()
        extra = noise if model._further["extra"] is not None else None
        for i in range(0, 40, 5):
            kept = np.arange(40) != i
            others = model.copy()
            others._data = (X[kept], Y[kept])
            others["kernel.variance"] = others["kernel.variance"]  # conditioned again
            if extra is not None:
                others._further = {**others._further, "extra": extra[kept]}
            own = None if extra is None else extra[i : i + 1]
            mean, variance = others.predict_y(X[i : i + 1], extra=own)
            density = others.predict_log_density((X[i : i + 1], Y[i : i + 1]), extra=own)
            assert found["mean"][i, 0] == pytest.approx(mean[0, 0], rel=1e-8)
            assert found["variance"][i, 0] == pytest.approx(variance[0, 0], rel=1e-8)
            assert found["log_density"][i, 0] == pytest.approx(density[0], rel=1e-8)


def test_leaving_out_needs_sites_of_rows():
    model = SVGP(KERNEL, "gaussian", Z)
    with pytest.raises(ValueError, match="do not|keep data"):
        model.loo()
    model.natural_gradient_step((X, Y), 1.0)
    expected = SGPR((X, Y), KERNEL, Z, noise_variance=1.0).loo()
    for name, values in model.loo((X, Y)).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-7)
    with pytest.raises(ValueError, match="row 1 cannot be left out"):
        GPR((X, Y), KERNEL, noise_variance=NOISE).loo((X + 100.0, Y))


def test_slopes_of_predictions_are_differences():
    new = XNEW + 0.013
    for model in (
        GPR((X, Y), KERNEL, noise_variance=NOISE, mean="linear"),
        SGPR((X, Y), KERNEL, Z, noise_variance=NOISE),
    ):
        mean, variance = model.predict_f_gradients(new)
        assert mean.shape == variance.shape == (1, len(new), 2)
        for q in range(2):
            h = np.eye(2)[q] * 1e-5
            (up, v_up), (down, v_down) = model.predict_f(new + h), model.predict_f(new - h)
            np.testing.assert_allclose(mean[0, :, q], (up - down)[:, 0] / 2e-5, rtol=1e-5, atol=1e-7)
            np.testing.assert_allclose(variance[0, :, q], (v_up - v_down)[:, 0] / 2e-5, rtol=1e-5, atol=1e-7)


def test_predictions_by_the_rows_are_their_formula():
    for bound in ("titsias2025", "spherical", "titsias2009"):
        model = SGPR((X, Y), KERNEL, Z, noise_variance=NOISE, bound=bound, jitter=JITTER)
        mean, variance = model.predict_f_high_cost(XNEW)
        plain_mean, plain = model.predict_f(XNEW)
        np.testing.assert_array_equal(mean, plain_mean)
        kuu = KERNEL(Z) + JITTER * np.eye(len(Z))
        kuf, kun = KERNEL(Z, X), KERNEL(Z, XNEW)
        rest = KERNEL(X) - kuf.T @ np.linalg.solve(kuu, kuf)
        across = KERNEL(X, XNEW) - kuf.T @ np.linalg.solve(kuu, kun)
        values, vectors = np.linalg.eigh(rest)
        kept = values > 1e-12 * values.max()
        root = vectors[:, kept] / np.sqrt(values[kept]) @ vectors[:, kept].T
        r = np.diag(rest)
        v = {
            "titsias2025": 1 / (1 + r / NOISE),
            "spherical": np.full(40, 1 / (1 + r.mean() / NOISE)),
            "titsias2009": np.ones(40),
        }[bound]
        expected = plain[:, 0] - ((1 - v)[:, None] * (root @ across) ** 2).sum(axis=0)
        np.testing.assert_allclose(variance[:, 0], expected, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="titsias2025"):
        SGPR((X, Y), KERNEL, Z, noise_variance=NOISE, bound="fitc").predict_f_high_cost(XNEW)


# -- mixtures of common latent functions ----------------------------------------------------------------


def test_targets_that_are_mixtures():
    rng = np.random.default_rng(2)
    mixing = np.array([[1.0, 0.2], [-0.4, 0.8], [0.5, -1.2]])
    latent = np.column_stack([np.sin(X[:, 0]), np.cos(2 * X[:, 1])])
    targets = latent @ mixing.T + 0.1 * rng.normal(size=(40, 3))
    likelihood = likelihoods.Coregionalised("gaussian", 3, 2)
    model = SVGP([KERNEL, "matern32"], likelihood, Z, num_outputs=3)
    assert model["likelihood.mixing"].shape == (3, 2)
    assert model.q_mu.shape == (7, 2)
    model["likelihood.mixing"] = mixing
    model["likelihood.variance"] = 0.3
    check_gradients(model, (X, targets))
    before = model.elbo((X, targets))
    model.optimise((X, targets), max_iterations=200)
    assert model.elbo((X, targets)) > before + 50
    mean, variance = model.predict_y(X)
    assert mean.shape == variance.shape == (40, 3)
    assert ((mean - targets) ** 2).mean() < 0.1 * targets.var()
    with pytest.raises(ValueError, match="svgp"):
        SVGP(KERNEL, likelihood, Z, num_outputs=3, bound="svgp-spherical")


@pytest.mark.parametrize(
    "likelihood",
    [
        likelihoods.Softmax(3),
        likelihoods.LogisticSoftmax(3),
        likelihoods.RobustMax(3),
        "softmax(classes=3, integration={tensor: 20})",
    ],
)
def test_probabilities_of_several_latent_functions(likelihood):
    rng = np.random.default_rng(4)
    x, q_mu = rng.normal(size=(9, 2)), rng.normal(size=(5, 3))
    model = SVGP(RBF([0.7, 1.9], 1.3), likelihood, x[:5], q_mu=q_mu)
    p = model.predict_proba(x)
    mean, variance = model.predict_f(x)
    f = mean[:, None] + np.sqrt(variance)[:, None] * rng.normal(size=(1, 20_000, 3))
    own = likelihoods.as_likelihood(likelihood)
    assert p.shape == (9, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    if "obust" not in repr(own):
        scores = special.log_expit(f) if "ogistic" in repr(own) else f
        drawn = special.softmax(scores, axis=2)
        error = drawn.std(axis=1) / math.sqrt(20_000)
        assert np.abs((p - drawn.mean(axis=1)) / error).max() < 4.5
    # equal functions are equally probable
    alike = own.predict_proba([[0.0] * 3], [[10.0] * 3])
    np.testing.assert_allclose(alike, 1 / 3, atol=1e-9)


def test_probabilities_of_several_columns_of_classes():
    rng = np.random.default_rng(8)
    x, q_mu = rng.normal(size=(9, 2)), rng.normal(size=(5, 6))
    both = SVGP(RBF([0.7, 1.9], 1.3), likelihoods.Softmax(3), x[:5], q_mu=q_mu, num_outputs=2)
    p = both.predict_proba(x)
    assert p.shape == (9, 2, 3) and both.predict_proba(x[:0]).shape == (0, 2, 3)
    for column in range(2):
        mu = q_mu[:, 3 * column : 3 * column + 3]
        one = SVGP(RBF([0.7, 1.9], 1.3), likelihoods.Softmax(3), x[:5], q_mu=mu)
        np.testing.assert_allclose(p[:, column], one.predict_proba(x), rtol=1e-12)
        assert one.predict_proba(x[:0]).shape == (0, 3)
    with pytest.raises(ValueError, match="class"):
        SVGP(RBF([0.7, 1.9], 1.3), "poisson", x[:5]).predict_proba(x)


def test_q_is_what_predictions_come_from():
    x, y = problem(40, 2)
    model = SGPR((x, y), KERNEL, Z, noise_variance=NOISE, jitter=JITTER)
    mean_u, cov_u = model.q_u
    factor = np.linalg.cholesky(rbf(Z, Z) + JITTER * np.eye(len(Z)))
    assert model.q_mu.shape == (len(Z), 2) and model.q_sqrt.shape == cov_u.shape == (2, len(Z), len(Z))
    np.testing.assert_allclose(factor @ model.q_mu, mean_u, rtol=1e-8, atol=1e-9)
    for root, covariance in zip(model.q_sqrt, cov_u):
        np.testing.assert_allclose(factor @ root @ root.T @ factor.T, covariance, rtol=1e-7, atol=1e-9)
    for without in (GPR((x, y), KERNEL, noise_variance=NOISE), TVGP((x, y), KERNEL, "student-t")):
        for name in ("q_mu", "q_sqrt"):
            with pytest.raises(AttributeError, match="no inducing points.*predict_f"):
                getattr(without, name)


def test_arrays_of_another_shape_are_refused():
    model = SVGP(RBF([0.7, 1.9], 1.3), "gaussian", np.arange(6.0).reshape(3, 2))
    for path, value in [("inducing.points", np.ones((2, 3))), ("q.mu", np.ones((1, 2, 3)))]:
        before = model[path]
        with pytest.raises(ValueError, match=path):
            model[path] = value
        np.testing.assert_array_equal(model[path], before)
    model["inducing.points"] = np.arange(6.0).reshape(3, 2) + 1.0
    model["q.mu"] = [[0.1], [0.2], [0.3]]
    np.testing.assert_array_equal(model["q.mu"].ravel(), [0.1, 0.2, 0.3])
    model["q.mu"] = [0.3, 0.2, 0.1]
    assert model["inducing.points"][0, 1] == 2.0


def test_numbers_that_cannot_be_are_named():
    model = SVGP(KERNEL, "poisson", X[:5])
    for call, text in (
        (
            lambda: SVGP(KERNEL, "poisson", X[:5], num_data=-1),
            "num_data is -1; it must be a whole number from 1",
        ),
        (lambda: model.predict_f_samples(X, -2), "num_samples is -2; it must be a whole number from 1"),
        (lambda: model.predict_f_samples(X, seed=-1), "seed is -1; it must be a whole number from 0"),
        (lambda: model.sample_functions(1.5), "num_samples is 1.5; it must be a whole number from 1"),
        (lambda: model.sample_functions(waves=0), "waves is 0; it must be a whole number from 1"),
        (lambda: model.optimise((X, COUNTS), seed=-3), "seed is -3; it must be a whole number from 0"),
        (
            lambda: model.optimise((X, COUNTS), max_iterations=-1),
            "max_iterations is -1; it must be a whole number",
        ),
        (
            lambda: model.optimise((X, COUNTS), batch_size=0),
            "batch_size is 0; it must be a whole number from 1",
        ),
        (lambda: SVGP(KERNEL, "poisson", X[:5], jitter=np.nan), "jitter is nan; it must be a number from 0"),
    ):
        with pytest.raises(ValueError, match=text):
            call()


def test_kernel_names_all_kernels():
    model = SVGP([KERNEL, KERNEL], "heteroscedastic", Z)
    before = model.parameters
    kernels = [path for path in before if path.startswith("kernels[")]
    assert len(kernels) >= 4
    model.freeze("kernel")
    model.optimise((X, Y), max_iterations=3)
    assert not np.array_equal(model.parameters["q.mu"], before["q.mu"])
    for path in kernels:
        assert np.array_equal(model.parameters[path], before[path]), path
    model.unfreeze("kernel")
    model.optimise((X, Y), max_iterations=3)
    for path in kernels:
        assert not np.array_equal(model.parameters[path], before[path]), path


def test_deep_models_learn_what_one_layer_cannot():
    from sparsegp.models import DeepGP

    rng = np.random.default_rng(0)
    X = np.linspace(-1, 1, 200)[:, None]
    Y = np.where(X > 0.1, 1.0, -1.0) + 0.05 * rng.normal(size=X.shape)
    model = DeepGP(layers=2, width=1, n_inducing=20, likelihood="gaussian(variance=0.05)")
    with pytest.raises(ValueError, match="call optimise first"):
        model.predict_y(X)
    report = model.optimise((X, Y), batch_size=200, epochs=400)
    assert report["iterations"] == 400 and report["trace"][-1]["objective"] > report["trace"][0]["objective"]
    mean, variance = model.predict_y([[-0.5], [0.5]])
    assert mean[0, 0] < -0.8 and mean[1, 0] > 0.8 and (variance < 0.3).all()
    assert any(path.startswith("layers[0].kernel") for path in model.parameters)
    again = DeepGP(layers=2, width=1, n_inducing=20, likelihood="gaussian(variance=0.05)")
    again.optimise((X, Y), batch_size=200, epochs=400)
    np.testing.assert_array_equal(again.predict_y(X)[0], model.predict_y(X)[0])
    with pytest.raises(ValueError, match="kind"):
        DeepGP(kind="z")
