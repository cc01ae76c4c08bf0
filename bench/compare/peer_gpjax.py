"""GPJax's models: a jitted function each."""

import equinox as eqx
import gpjax as gpx
import jax
import jax.numpy as jnp
import numpy as np
import optax

BLOCK = 2000  # rows of a prediction: faster than 10 000, and than all at once


def floats(name):
    jax.config.update("jax_enable_x64", name == "float64")


def prior(d):
    kernel = gpx.kernels.RBF(lengthscale=jnp.asarray(d.lengthscales), variance=d.variance)
    return gpx.gps.Prior(kernel=kernel, mean_function=gpx.mean_functions.Zero())


def gaussian(d):
    return prior(d) * gpx.likelihoods.Gaussian(obs_stddev=jnp.sqrt(d.noise))


def collapsed(d):
    return gpx.variational_families.CollapsedVariationalGaussian(gaussian(d), jnp.asarray(d.Z))


def regression(d, job):
    if job["kind"] == "gpr":
        model, objective = gaussian(d), gpx.objectives.conjugate_mll
    else:
        model, objective = collapsed(d), gpx.objectives.collapsed_elbo
    data = gpx.Dataset(jnp.asarray(d.X), jnp.asarray(d.y))
    both = eqx.filter_jit(eqx.filter_value_and_grad(objective))
    return lambda: jax.block_until_ready(both(model, data))[0]


@eqx.filter_jit
def moments(posterior, x):
    f = posterior(x, covariance="diagonal")
    return f.mean, f.variance


def classifier(d, job, rate):
    model = gpx.variational_families.WhitenedVariationalGaussian(
        prior(d) * gpx.likelihoods.Bernoulli(), jnp.asarray(d.Z)
    )
    # without this, literals in the model have weak types, and the second step compiles once more
    model = jax.tree.map(lambda a: jax.lax.convert_element_type(a, d.Z.dtype), model)
    adam = optax.adam(rate)
    state = [model, adam.init(eqx.filter(model, eqx.is_array))]

    @eqx.filter_jit(donate="all")
    def update(model, averages, x, y):
        batch = gpx.Dataset(x, y, n_total=len(d.X))
        loss, gradient = eqx.filter_value_and_grad(lambda q: -gpx.objectives.elbo(q, batch))(model)
        change, averages = adam.update(gradient, averages)
        return eqx.apply_updates(model, change), averages, loss

    def step(x, y):
        state[0], state[1], loss = update(*state, jnp.array(x), jnp.array(y))
        return float(loss)

    return step, lambda: moments(state[0].condition(None), jnp.asarray(d.Xtest))


def predictor(d, job):
    data = gpx.Dataset(jnp.asarray(d.X), jnp.asarray(d.y))
    posterior = eqx.filter_jit(lambda q: q.condition(data))(collapsed(d))
    blocks = [jnp.asarray(d.Xnew[i : i + BLOCK]) for i in range(0, len(d.Xnew), BLOCK)]

    def run():
        out = [moments(posterior, x) for x in blocks]
        return [np.concatenate([np.asarray(o[i]) for o in out]) for i in (0, 1)]

    return run
