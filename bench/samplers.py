"""NUTS against NUTS: smallest effective sample size per second on three densities, of sparsegp and of peers on JAX.

    scripts/python-env .venv && .venv/bin/pip install numpyro blackjax nutpie pymc numba arviz
    .venv/bin/python bench/samplers.py

Four chains of 1000 draws after 1000 of warm-up, in float64. Densities are functions of NumPy for sparsegp, of JAX for NumPyro and BlackJAX, models of
PyMC compiled by Numba for nutpie; compilation is not counted. ESS is ArviZ's bulk ESS, the smallest of all variables; of the funnel that of its neck, v.
"""

from __future__ import annotations

import os
import time
import warnings

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np

from sparsegp import sampling

jax.config.update("jax_enable_x64", True)
CHAINS, WARM, DRAWS = 4, 1000, 1000


def funnel():
    """Neal's funnel: v ~ N(0, 9), nine x ~ N(0, eᵛ)."""

    def numpy(z):
        v, x = z[:, 0], z[:, 1:]
        scaled = x * np.exp(-v)[:, None]
        value = -(v**2) / 18 - 4.5 * v - 0.5 * (x * scaled).sum(1)
        return value, np.column_stack([-v / 9 - 4.5 + 0.5 * (x * scaled).sum(1), -scaled])

    def of_jax(z):
        v, x = z[0], z[1:]
        return -(v**2) / 18 - 4.5 * v - 0.5 * jnp.exp(-v) * (x**2).sum()

    return "Neal's funnel, 10 variables", 10, numpy, of_jax, slice(0, 1)


def logistic():
    """1000 rows, 25 weights under N(0, 1)."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1000, 25)) * np.linspace(0.3, 2, 25)
    y = np.where(rng.random(1000) < 1 / (1 + np.exp(-A @ rng.standard_normal(25))), 1.0, -1.0)
    signed = y[:, None] * A

    def numpy(w):
        margins = w @ signed.T
        value = -np.logaddexp(0, -margins).sum(1) - 0.5 * (w**2).sum(1)
        return value, (0.5 * (1 - np.tanh(margins / 2))) @ signed - w

    def of_jax(w):
        return -jnp.logaddexp(0, -signed @ w).sum() - 0.5 * (w**2).sum()

    of_jax.signed = signed
    return "logistic regression, 25 variables", 25, numpy, of_jax, slice(None)


def process():
    """Classes of 200 rows: the whitened values of a Gaussian process, at fixed hyperparameters."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 10, 200))
    K = 4 * np.exp(-0.5 * (x[:, None] - x) ** 2) + 1e-8 * np.eye(200)
    L = np.linalg.cholesky(K)
    y = np.where(rng.random(200) < 1 / (1 + np.exp(-2 * np.sin(x))), 1.0, -1.0)
    signed = y[:, None] * L

    def numpy(z):
        margins = z @ signed.T
        value = -np.logaddexp(0, -margins).sum(1) - 0.5 * (z**2).sum(1)
        return value, (0.5 * (1 - np.tanh(margins / 2))) @ signed - z

    def of_jax(z):
        return -jnp.logaddexp(0, -signed @ z).sum() - 0.5 * (z**2).sum()

    of_jax.signed = signed
    return "Gaussian process, 200 variables", 200, numpy, of_jax, slice(None)


def by_sparsegp(dim, numpy, of_jax, seed):
    return sampling.sample(numpy, dim, chains=CHAINS, warmup=WARM, draws=DRAWS, seed=seed).draws


def by_numpyro(dim, numpy, of_jax, seed):
    from numpyro.infer import MCMC, NUTS

    kernel = NUTS(potential_fn=lambda z: -of_jax(z))
    mcmc = by_numpyro.kept.setdefault(
        dim,
        MCMC(
            kernel,
            num_warmup=WARM,
            num_samples=DRAWS,
            num_chains=CHAINS,
            chain_method="parallel" if CHAINS <= jax.local_device_count() else "vectorized",
            progress_bar=False,
        ),
    )
    start = jax.random.normal(jax.random.PRNGKey(seed), (CHAINS, dim))
    mcmc.run(jax.random.PRNGKey(seed + 1), init_params=start)
    return np.asarray(mcmc.get_samples(group_by_chain=True))


by_numpyro.kept = {}


def by_blackjax(dim, numpy, of_jax, seed):
    import blackjax

    if dim not in by_blackjax.kept:

        @jax.jit
        @jax.vmap
        def run(key, start):
            warm = blackjax.window_adaptation(blackjax.nuts, of_jax)
            first, second = jax.random.split(key)
            (state, parameters), _ = warm.run(first, start, num_steps=WARM)
            step = blackjax.nuts(of_jax, **parameters).step

            def one(state, key):
                state, _ = step(key, state)
                return state, state.position

            return jax.lax.scan(one, state, jax.random.split(second, DRAWS))[1]

        by_blackjax.kept[dim] = run
    key = jax.random.PRNGKey(seed)
    start = jax.random.normal(key, (CHAINS, dim))
    return np.asarray(by_blackjax.kept[dim](jax.random.split(key, CHAINS), start))


by_blackjax.kept = {}


def by_nutpie(dim, numpy, of_jax, seed):
    import nutpie
    import pymc as pm
    from pytensor.tensor import exp, softplus

    if dim not in by_nutpie.kept:
        with pm.Model() as model:
            if hasattr(of_jax, "signed"):
                x = pm.Normal("x", 0, 1, shape=dim)
                pm.Potential("likelihood", -softplus(-of_jax.signed @ x).sum())
            else:
                v = pm.Normal("v", 0, 3)
                pm.Normal("x", 0, exp(v / 2), shape=dim - 1)
        by_nutpie.kept[dim] = nutpie.compile_pymc_model(model)
    drawn = nutpie.sample(
        by_nutpie.kept[dim], draws=DRAWS, tune=WARM, chains=CHAINS, cores=2, seed=seed, progress_bar=False
    )
    # of the funnel only the neck is looked at
    return (
        np.asarray(drawn.posterior["v"])[:, :, None]
        if "v" in drawn.posterior
        else np.asarray(drawn.posterior["x"])
    )


by_nutpie.kept = {}


def main():
    warnings.simplefilter("ignore")
    print("| density | sampler | ESS | worst R̂ | seconds | ESS/s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for of in (funnel, logistic, process):
        name, dim, numpy, of_jax, looked_at = of()
        samplers = (
            ("sparsegp", by_sparsegp),
            ("NumPyro", by_numpyro),
            ("BlackJAX", by_blackjax),
            ("nutpie", by_nutpie),
        )
        for label, sampler in samplers:
            found = []
            for seed in range(4):
                start = time.perf_counter()
                draws = sampler(dim, numpy, of_jax, seed)
                seconds = time.perf_counter() - start
                own = az.convert_to_dataset(draws[:, :, looked_at])
                ess = float(az.ess(own)["x"].min())
                found.append((ess / seconds, ess, float(az.rhat(own)["x"].max()), seconds))
            # the first run compiles
            rate, ess, rhat, seconds = sorted(found[1:])[1]
            print(f"| {name} | {label} | {ess:.0f} | {rhat:.3f} | {seconds:.2f} | {rate:.0f} |", flush=True)


if __name__ == "__main__":
    main()
