"""The same numbers as GPflow (2.x), where it is installed.

Both add the same jitter to Kuu, 1e-6, absolutely, and see the same parameters and the same rule of
integration (Gauss–Hermite of 20 points for expectations). What remains are rounding errors: Kuu has a
condition number up to some 1e7 with that jitter, so that results agree to about 1e-9 of their size, and
gradients, which have Kuu⁻¹ twice, to about 1e-7.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pytest

try:
    import gpflow
    import tensorflow as tf
except ImportError:
    pytest.skip("GPflow is not installed", allow_module_level=True)

from sparsegp import kernels, likelihoods  # noqa: E402
from sparsegp.models import GPR, SGPR, SVGP  # noqa: E402

# TensorFlow and its neighbours warn of themselves
pytestmark = pytest.mark.filterwarnings("default")

RTOL = 1e-8
GRADIENT_RTOL = 1e-6
JITTER = gpflow.config.default_jitter()
SEEDS = [0, 1, 2]
N, M, D = 30, 8, 2


class Problem:
    """Rows, parameters and a q, none of them special."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.x = rng.uniform(-2, 2, (N, D))
        self.z = rng.uniform(-2, 2, (M, D))
        self.xnew = rng.uniform(-2.5, 2.5, (11, D))
        self.lengthscales = rng.uniform(0.5, 1.9, D)
        self.variance = rng.uniform(0.4, 2.5)
        self.noise = rng.uniform(0.1, 0.6)
        f = np.sin(2 * self.x[:, :1]) + 0.5 * self.x[:, 1:]
        self.y = f + 0.4 * rng.normal(size=(N, 1))
        self.ynew = rng.normal(size=(11, 1))
        self.counts = rng.poisson(np.exp(0.5 * f)).astype(float)
        self.counts_new = rng.poisson(1.7, (11, 1)).astype(float)
        self.labels = (self.y > 0).astype(float)
        self.labels_new = (self.ynew > 0).astype(float)
        self.q_mu = 0.5 * rng.normal(size=(M, 1))
        self.q_sqrt = np.tril(0.2 * rng.normal(size=(1, M, M)))
        self.q_sqrt[0, np.arange(M), np.arange(M)] = rng.uniform(0.3, 0.9, M)


KERNELS = {
    "rbf": (kernels.RBF, gpflow.kernels.SquaredExponential),
    "matern12": (kernels.Matern12, gpflow.kernels.Matern12),
    "matern32": (kernels.Matern32, gpflow.kernels.Matern32),
    "matern52": (kernels.Matern52, gpflow.kernels.Matern52),
}


def both_kernels(problem, name="rbf"):
    ours, theirs = KERNELS[name]
    return (
        ours(problem.lengthscales.tolist(), problem.variance),
        theirs(lengthscales=problem.lengthscales, variance=problem.variance),
    )


def composite(problem):
    ours, theirs = both_kernels(problem, "matern52")
    ours = ours * kernels.Linear([0.3, 0.8], ard=True) + kernels.Constant(0.4)
    theirs = theirs * gpflow.kernels.Linear(variance=[0.3, 0.8]) + gpflow.kernels.Constant(0.4)
    return ours, theirs


def close(found, expected, rtol=RTOL, what=""):
    """To a fraction of the largest: entries that are near 0 by cancellation have no digits."""
    expected = np.asarray(expected)
    size = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size, err_msg=what)


def constrained(tape_gradient, parameter):
    """A gradient with respect to the value, from that with respect to the free variable."""
    free = parameter.unconstrained_variable
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(parameter.transform.forward(free))
    return (tape_gradient / tape.gradient(value, free)).numpy()


@pytest.mark.parametrize("name", [*KERNELS, "composite"])
def test_kernels(name):
    problem = Problem(0)
    ours, theirs = composite(problem) if name == "composite" else both_kernels(problem, name)
    np.testing.assert_allclose(ours(problem.x), theirs(problem.x).numpy(), rtol=1e-12)
    expected = theirs(problem.x, problem.xnew).numpy()
    np.testing.assert_allclose(ours(problem.x, problem.xnew), expected, rtol=1e-11)
    expected = theirs(problem.x, full_cov=False).numpy()
    np.testing.assert_allclose(ours.K_diag(problem.x), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["rbf", "matern32", "composite"])
def test_exact_inference(seed, name):
    problem = Problem(seed)
    ours, theirs = composite(problem) if name == "composite" else both_kernels(problem, name)
    model = GPR((problem.x, problem.y), ours, noise_variance=problem.noise)
    peer = gpflow.models.GPR((problem.x, problem.y), theirs, noise_variance=problem.noise)
    close(model.elbo(), peer.log_marginal_likelihood())
    for found, expected in zip(model.predict_f(problem.xnew), peer.predict_f(problem.xnew)):
        close(found, expected)
    mean, covariance = peer.predict_f(problem.xnew, full_cov=True)
    close(model.predict_f(problem.xnew, full_cov=True)[1], covariance)
    new = problem.xnew, problem.ynew
    close(model.predict_log_density(new), peer.predict_log_density(new))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["rbf", "matern12", "composite"])
def test_the_collapsed_bound(seed, name):
    problem = Problem(seed)
    ours, theirs = composite(problem) if name == "composite" else both_kernels(problem, name)
    data = problem.x, problem.y
    model = SGPR(data, ours, problem.z, noise_variance=problem.noise, bound="titsias2009", jitter=JITTER)
    peer = gpflow.models.SGPR(data, theirs, problem.z, noise_variance=problem.noise)
    close(model.elbo(), peer.elbo())
    close(model.upper_bound(), peer.upper_bound())
    for found, expected in zip(model.predict_f(problem.xnew), peer.predict_f(problem.xnew)):
        close(found, expected)
    for found, expected in zip(model.predict_y(problem.xnew), peer.predict_y(problem.xnew)):
        close(found, expected)
    _, covariance = peer.predict_f(problem.xnew, full_cov=True)
    close(model.predict_f(problem.xnew, full_cov=True)[1], covariance)
    new = problem.xnew, problem.ynew
    close(model.predict_log_density(new), peer.predict_log_density(new))
    mean, covariance = peer.compute_qu()
    # theirs has Kuu⁻¹ twice
    close(model.q_u[0], mean, 1e-6)
    close(model.q_u[1][0], covariance, 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_of_the_collapsed_bound(seed):
    problem = Problem(seed)
    ours, theirs = both_kernels(problem)
    data = problem.x, problem.y
    model = SGPR(data, ours, problem.z, noise_variance=problem.noise, bound="titsias2009", jitter=JITTER)
    peer = gpflow.models.SGPR(data, theirs, problem.z, noise_variance=problem.noise)
    parameters = {
        "kernel.variance": peer.kernel.variance,
        "kernel.lengthscales": peer.kernel.lengthscales,
        "likelihood.variance": peer.likelihood.variance,
        "inducing.points": peer.inducing_variable.Z,
    }
    check_gradients(model.gradients(), peer.elbo, parameters)


def check_gradients(found, objective, parameters):
    with tf.GradientTape() as tape:
        value = objective()
    free = {path: parameter.unconstrained_variable for path, parameter in parameters.items()}
    expected = tape.gradient(value, free)
    for path, parameter in parameters.items():
        if path == "q.sqrt":
            # the free numbers are the triangle's, in another order
            own = parameter.transform.inverse(found[path]).numpy()
            close(own, expected[path], GRADIENT_RTOL, path)
        else:
            close(found[path], constrained(expected[path], parameter), GRADIENT_RTOL, path)


def cases(problem):
    """Our likelihood, theirs, targets, new targets."""
    return {
        "gaussian": (
            likelihoods.Gaussian(problem.noise),
            gpflow.likelihoods.Gaussian(problem.noise),
            problem.y,
            problem.ynew,
        ),
        # theirs is the probit squeezed between 0.001 and 0.999
        "bernoulli": (
            likelihoods.Bernoulli("probit", floor=1e-3),
            gpflow.likelihoods.Bernoulli(),
            problem.labels,
            problem.labels_new,
        ),
        "poisson": (
            likelihoods.Poisson(),
            gpflow.likelihoods.Poisson(),
            problem.counts,
            problem.counts_new,
        ),
        # by default ours is integrated by a rule of more points
        "student-t": (
            likelihoods.as_likelihood("student-t(df=4.5, scale=0.8, rule=20)"),
            gpflow.likelihoods.StudentT(scale=0.8, df=4.5),
            problem.y,
            problem.ynew,
        ),
    }


def uncollapsed(problem, name, whiten, num_data=None):
    ours, theirs, y, ynew = cases(problem)[name]
    kernel, peer_kernel = both_kernels(problem)
    q_mu, q_sqrt = problem.q_mu, problem.q_sqrt
    if not whiten:
        # a q that knows how smooth functions are: else the variances are in the hundreds
        factor = np.linalg.cholesky(kernel(problem.z) + JITTER * np.eye(M))
        q_mu, q_sqrt = factor @ q_mu + 0.1, 0.9 * factor @ q_sqrt
    model = SVGP(
        kernel,
        ours,
        problem.z,
        num_data=num_data,
        whiten=whiten,
        q_mu=q_mu,
        q_sqrt=q_sqrt,
        jitter=JITTER,
    )
    peer = gpflow.models.SVGP(
        peer_kernel,
        theirs,
        problem.z,
        num_data=num_data,
        whiten=whiten,
        q_mu=q_mu,
        q_sqrt=q_sqrt,
    )
    return model, peer, (problem.x, y), (problem.xnew, ynew)


NAMES = ["gaussian", "bernoulli", "poisson", "student-t"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("whiten", [True, False])
def test_the_uncollapsed_bound(seed, name, whiten):
    model, peer, data, _ = uncollapsed(Problem(seed), name, whiten)
    close(model.elbo(data), peer.elbo(data))
    model, peer, data, _ = uncollapsed(Problem(seed), name, whiten, num_data=250)
    close(model.elbo(data), peer.elbo(data))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("whiten", [True, False])
def test_predictions(seed, name, whiten):
    model, peer, _, new = uncollapsed(Problem(seed), name, whiten)
    for found, expected in zip(model.predict_f(new[0]), peer.predict_f(new[0])):
        close(found, expected)
    mean, covariance = peer.predict_f(new[0], full_cov=True)
    close(model.predict_f(new[0], full_cov=True)[1], covariance)
    if name in ("poisson", "student-t"):
        # predictions of ours are exact: theirs with more points than 20
        peer.likelihood.quadrature = gpflow.quadrature.NDiagGHQuadrature(1, 200)
    for found, expected in zip(model.predict_y(new[0]), peer.predict_y(new[0])):
        close(found, expected)
    close(model.predict_log_density(new), peer.predict_log_density(new))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("whiten", [True, False])
def test_gradients_of_the_uncollapsed_bound(name, whiten):
    model, peer, data, _ = uncollapsed(Problem(3), name, whiten, num_data=250)
    parameters = {
        "kernel.variance": peer.kernel.variance,
        "kernel.lengthscales": peer.kernel.lengthscales,
        "inducing.points": peer.inducing_variable.Z,
        "q.mu": peer.q_mu,
        "q.sqrt": peer.q_sqrt,
    }
    if name == "gaussian":
        parameters["likelihood.variance"] = peer.likelihood.variance
    if name == "student-t":
        parameters["likelihood.scale"] = peer.likelihood.scale
    check_gradients(model.gradients(data), lambda: peer.elbo(data), parameters)


@pytest.mark.parametrize("name", ["gaussian", "bernoulli", "poisson"])
def test_steps_of_natural_gradients(name):
    problem = Problem(4)
    model, peer, data, _ = uncollapsed(problem, name, True)
    step = gpflow.optimizers.NaturalGradient(gamma=0.3)
    loss = peer.training_loss_closure(data)
    for _ in range(3):
        step.minimize(loss, [(peer.q_mu, peer.q_sqrt)])
        model.natural_gradient_step(data, rate=0.3)
        # ours is in closed form, theirs through expectation parameters
        close(model.elbo(data), peer.elbo(data), 1e-7)
    root, expected = model.q_sqrt, peer.q_sqrt.numpy()
    close(root @ root.transpose(0, 2, 1), expected @ expected.transpose(0, 2, 1), 1e-6)
    close(model.q_mu, peer.q_mu.numpy(), 1e-6)
