"""Markov chains on densities of Python."""

import sys
import warnings

import numpy as np
import pytest

from sparsegp import NumericalError, sampling

scipy_stats = pytest.importorskip("scipy.stats")

MEAN = np.array([40.0, -0.3, 2.0])
SCALE = np.array([7.0, 0.02, 1.3])
CORRELATION = np.array([[1.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 1.0]])
COVARIANCE = CORRELATION * np.outer(SCALE, SCALE)
PRECISION = np.linalg.inv(COVARIANCE)


def gaussian(x):
    d = x - MEAN
    return -0.5 * np.sum(d @ PRECISION * d, axis=1), -d @ PRECISION


def standard(x):
    return -0.5 * np.sum(x**2, axis=1), -x


def held(draws, expected, what):
    """The mean of draws (chains, draws) to 4.5 standard errors."""
    n = draws.shape[1]
    # batch means: 20 batches of each chain are nearly independent
    batches = draws[:, : n - n % 20].reshape(len(draws), 20, -1).mean(axis=2).ravel()
    error = batches.std(ddof=1) / np.sqrt(len(batches))
    assert abs(draws.mean() - expected) < 4.5 * error, (what, draws.mean(), expected, error)


@pytest.mark.parametrize("method", ["nuts", "hmc"])
def test_a_gaussian_of_any_scale(method):
    found = sampling.sample(gaussian, 3, method=method, draws=3000, seed=4)
    assert found.draws.shape == (4, 3000, 3) and found.divergences == 0
    assert np.all(found.rhat < 1.01) and np.all(found.ess_bulk > 800) and np.all(found.ess_tail > 400)
    np.testing.assert_array_less(np.abs(found.mean - MEAN), 4.5 * found.error)
    for i in range(3):
        for j in range(i + 1):
            product = (found.draws[:, :, i] - MEAN[i]) * (found.draws[:, :, j] - MEAN[j])
            held(product, COVARIANCE[i, j], (i, j))
        step = int(np.ceil(2 * found.draws[:, :, 0].size / found.ess_bulk[i]))
        thinned = found.draws[:, ::step, i].ravel()
        assert len(thinned) > 300
        assert scipy_stats.kstest(thinned, "norm", (MEAN[i], SCALE[i])).pvalue > 1e-4
    np.testing.assert_allclose(found.log_density.ravel(), gaussian(found.draws.reshape(-1, 3))[0])
    np.testing.assert_allclose(found.mean, found.draws.mean(axis=(0, 1)))
    np.testing.assert_allclose(found.std, found.draws.std(axis=(0, 1), ddof=1), rtol=1e-3)
    assert found.step_size.shape == (4,) and found.acceptance.shape == found.evaluations.shape == (4, 3000)
    assert 0.6 < found.acceptance.mean() < 1 and np.all(found.evaluations >= 1)


def test_elliptical_has_the_conjugate_posterior():
    # one observation of the sum of all, of a correlated prior with a mean
    y, noise = 45.0, 2.0
    a = np.array([1.0, 3.0, 1.0])
    with_sum = COVARIANCE @ a
    spread = a @ with_sum + noise
    mean = MEAN + with_sum * (y - a @ MEAN) / spread
    covariance = COVARIANCE - np.outer(with_sum, with_sum) / spread
    found = sampling.sample(
        lambda x: -0.5 * (y - x @ a) ** 2 / noise,
        3,
        method="elliptical",
        prior=(MEAN, COVARIANCE),
        draws=5000,
    )
    np.testing.assert_array_less(np.abs(found.mean - mean), 4.5 * found.error)
    assert np.all(found.error < 0.05 * np.sqrt(np.diag(covariance)))
    for i in range(3):
        held((found.draws[:, :, i] - mean[i]) ** 2, covariance[i, i], i)
        step = int(np.ceil(2 * 20000 / found.ess_bulk[i]))
        thinned = found.draws[:, ::step, i].ravel()
        assert scipy_stats.kstest(thinned, "norm", (mean[i], np.sqrt(covariance[i, i]))).pvalue > 1e-4
    assert found.step_size is None and "divergences" not in found.summary()


def test_a_random_walk():
    found = sampling.sample(
        lambda x: standard(x)[0], 2, method="metropolis", draws=4000, thin=4, start=[1.0, -1.0]
    )
    np.testing.assert_array_less(np.abs(found.mean), 4.5 * found.error)
    for i in range(2):
        held(found.draws[:, :, i] ** 2, 1.0, i)
    assert 0.1 < found.acceptance.mean() < 0.5 and found.evaluations.max() == 1


def test_the_funnel_diverges_and_says_so():
    def funnel(x):
        v, rest, shrink = x[:, 0], x[:, 1:], np.exp(-x[:, 0])
        squares = np.sum(rest**2, axis=1)
        slope = np.concatenate(
            [(-v / 9 - 4.5 + 0.5 * squares * shrink)[:, None], -rest * shrink[:, None]], axis=1
        )
        return -(v**2) / 18 - 4.5 * v - 0.5 * squares * shrink, slope

    with pytest.warns(UserWarning) as caught:
        found = sampling.sample(funnel, 10, draws=500, warmup=500, seed=2)
    texts = [str(warning.message) for warning in caught]
    assert found.divergences > 0 and found.diverging.sum() == found.divergences
    assert any(f"{found.divergences} of 2000 draws diverged" in t and "target_acceptance" in t for t in texts)
    assert f"{found.divergences} divergences" in found.summary()
    # whoever looks for the place of a warning finds the call
    assert all(warning.filename == __file__ for warning in caught)

    # the remedy: other coordinates
    def whitened(z):
        return -(z[:, 0] ** 2) / 18 - 0.5 * np.sum(z[:, 1:] ** 2, axis=1), -z / np.array([9.0] + 9 * [1.0])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = sampling.sample(whitened, 10, draws=500, warmup=500, seed=2)
    assert other.divergences == 0
    held(other.draws[:, :, 0] ** 2, 9.0, "v")


def test_a_logistic_regression_is_the_same_by_all_samplers():
    rng = np.random.default_rng(8)
    A = rng.standard_normal((150, 3)) * [1.0, 0.3, 2.0]
    y = np.where(rng.random(150) < 1 / (1 + np.exp(-A @ [1.0, -2.0, 0.5])), 1.0, -1.0)
    prior = np.diag([4.0, 9.0, 1.0])

    def likelihood(w):
        return -np.sum(np.logaddexp(0, -y * (w @ A.T)), axis=1)

    def posterior(w):
        # without overflow: 1/(1 + exp m)
        weights = y * 0.5 * (1 - np.tanh(y * (w @ A.T) / 2))
        value = likelihood(w) - 0.5 * np.sum(w**2 / np.diag(prior), axis=1)
        return value, weights @ A - w / np.diag(prior)

    nuts = sampling.sample(posterior, 3, draws=2000)
    others = [
        sampling.sample(posterior, 3, method="hmc", draws=2000),
        sampling.sample(likelihood, 3, method="elliptical", prior=(0.0, prior), draws=6000),
        sampling.sample(lambda w: posterior(w)[0], 3, method="metropolis", draws=3000, thin=5),
    ]
    assert np.all(nuts.error < 0.05 * nuts.std)
    for other in others:
        error = np.hypot(nuts.error, other.error)
        np.testing.assert_array_less(np.abs(nuts.mean - other.mean), 4.5 * error)
        np.testing.assert_allclose(nuts.std, other.std, rtol=0.1)
        assert np.all(other.error < 0.1 * nuts.std) and np.all(other.rhat < 1.03)


def test_seeds_starts_and_single_positions():
    def even(x):
        return -0.5 * np.sum((x - MEAN) ** 2, axis=1) / 9, -(x - MEAN) / 9

    def run(function=even, **options):
        return sampling.sample(function, 3, draws=50, warmup=100, **options).draws

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = run(seed=5)
        np.testing.assert_array_equal(first, run(seed=5))
        assert np.any(first != run(seed=6))
        counts = []

        def one(x):
            counts.append(x.shape)
            value, slope = even(x[None])
            return value[0], slope[0].tolist()

        single = run(one, seed=5, vectorized=False)
        assert set(counts) == {(3,)} and single.shape == first.shape
        # starts, for all or for each
        held_at = []

        def seen(x):
            held_at.append(x.copy())
            return even(x)

        run(seen, start=MEAN)
        np.testing.assert_array_equal(held_at[0], np.tile(MEAN, (4, 1)))
        held_at.clear()
        each = MEAN + np.arange(12).reshape(4, 3)
        run(seen, start=each)
        np.testing.assert_array_equal(held_at[0], each)
        assert max(len(x) for x in held_at) == 4


def test_wrong_use_is_refused():
    def refused(text, function=standard, dim=2, error=ValueError, **options):
        with pytest.raises(error, match=text):
            sampling.sample(function, dim, draws=20, warmup=20, **options)

    refused("one of nuts, hmc, elliptical, metropolis", method="gibbs")
    refused(r"shape \(3,\); expected \(2,\) or \(4, 2\)", start=[0.0, 0.0, 0.0])
    refused(r"log densities of shape \(\); expected \(4,\)", lambda x: (0.0, x))
    refused(r"gradients of shape \(2, 4\); expected \(4, 2\)", lambda x: (np.zeros(4), x.T))
    refused(r"log densities of shape \(2,\); expected \(\)", lambda x: (x, x), vectorized=False)
    refused("'nuts' takes a tuple .* gave ndarray", lambda x: standard(x)[0])
    refused("'elliptical' takes only log densities", method="elliptical")
    refused(
        "target_acceptance does not apply to method 'metropolis'", method="metropolis", target_acceptance=0.9
    )
    refused("prior does not apply to method 'nuts'", prior=(0.0, np.eye(2)))
    refused("steps does not apply", steps=4)
    refused("target_acceptance is 1.5", target_acceptance=1.5)
    refused("step_size is -1", step_size=-1)
    refused("draws is 0|chains is 0", chains=0)
    refused("2 different|1 different names; expected 2", names=["a", "a"])
    value = {"function": lambda x: np.zeros(len(x)), "method": "elliptical"}
    refused(r"covariance has shape \(3, 3\); expected \(2, 2\)", prior=(0.0, np.eye(3)), **value)
    refused("not symmetric", prior=(0.0, [[1.0, 0.5], [0.0, 1.0]]), **value)
    refused("not positive definite", prior=(0.0, [[1.0, 2.0], [2.0, 1.0]]), **value)
    start = "log density at the start of chain 0 is not finite"
    refused(rf"{start} \(NaN\)", lambda x: (np.full(len(x), np.nan), x), error=NumericalError)
    refused(rf"{start} \(-inf\)", lambda x: (np.full(len(x), -np.inf), x), error=NumericalError)
    slope = "gradient of the log density at the start of chain 0"
    refused(slope, lambda x: (np.zeros(len(x)), x * np.nan), error=NumericalError)
    refused("division", lambda x: 1 / 0, error=ZeroDivisionError)


def test_exceptions_of_the_function_come_out_in_the_middle_too():
    calls = []

    def fails(x):
        calls.append(1)
        if len(calls) == 30:
            raise KeyError("the thirtieth")
        return standard(x)

    with pytest.raises(KeyError, match="thirtieth"):
        sampling.sample(fails, 2)
    assert len(calls) == 30


def test_what_is_not_a_number_is_counted():
    def half(x):
        value, slope = standard(x)
        return np.where(x[:, 0] < 0, np.nan, value), slope

    with pytest.warns(UserWarning, match=r"NaN or \+inf at \d+ of \d+ positions"):
        found = sampling.sample(half, 1, start=[1.0], method="hmc", step_size=0.5, steps=3, draws=2000)
    assert np.all(found.draws >= 0)
    held(found.draws[:, :, 0], np.sqrt(2 / np.pi), "half")

    # -inf is how one says that there is nothing: no warning but for the paths that hit the wall
    def walled(x):
        return np.where(x[:, 0] < 0, -np.inf, standard(x)[0])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        walk = sampling.sample(walled, 1, start=[1.0], method="metropolis", draws=4000, thin=4)
    assert np.all(walk.draws >= 0)


def test_chains_apart_are_warned_of():
    # two modes that no chain leaves
    def two(x):
        return -0.5 * (np.abs(x[:, 0]) - 50) ** 2, (-np.sign(x) * (np.abs(x) - 50))

    with pytest.warns(UserWarning, match=r"not mixed: R̂ of weight is .*at most 1.05") as caught:
        found = sampling.sample(
            two, 1, start=[[50.0], [-50.0]], chains=2, names=["weight"], draws=200, warmup=200
        )
    assert found.rhat[0] > 1.5 and "more draws" in str(caught[0].message)
    with pytest.warns(UserWarning, match="is nan"):
        few = sampling.sample(standard, 1, draws=5)
    assert np.isnan(few.rhat[0])


def test_tables_and_progress(capsys):
    found = sampling.sample(standard, 2, draws=100, warmup=200, names=["left", "right"], verbose=1)
    printed = capsys.readouterr().err
    assert "300 of 300" in printed and "/s, ends in" in printed
    lines = found.summary().splitlines()
    assert lines[0].split() == ["mean", "std", "error", "5%", "95%", "rhat", "ess_bulk", "ess_tail"]
    assert [line.split()[0] for line in lines[1:]] == ["left", "right", "nuts:"]
    assert float(lines[1].split()[1]) == pytest.approx(found.mean[0], rel=1e-3)
    assert "4 chains of 100 draws" in lines[3] and "0 divergences" in lines[3]
    assert repr(found) == "Samples(nuts, 4 chains, 100 draws, 2 variables)"


def test_arviz_sees_the_same():
    arviz = pytest.importorskip("arviz")
    found = sampling.sample(gaussian, 3, draws=400, warmup=400)
    data = found.to_arviz()
    np.testing.assert_array_equal(data.posterior["x"].values, found.draws)
    np.testing.assert_array_equal(data.sample_stats["diverging"].values, found.diverging)
    np.testing.assert_array_equal(data.sample_stats["lp"].values, found.log_density)
    np.testing.assert_array_equal(data.sample_stats["step_size"].values[:, 7], found.step_size)
    np.testing.assert_allclose(arviz.rhat(data)["x"].values, found.rhat, rtol=1e-6)
    # sums of autocorrelations end in another way
    np.testing.assert_allclose(arviz.ess(data, method="bulk")["x"].values, found.ess_bulk, rtol=0.05)
    np.testing.assert_allclose(arviz.ess(data, method="tail")["x"].values, found.ess_tail, rtol=0.05)
    named = sampling.sample(gaussian, 3, draws=50, names=["a", "b", "c"]).to_arviz()
    assert set(named.posterior.data_vars) == {"a", "b", "c"}


def test_without_arviz_the_package_is_named(monkeypatch):
    found = sampling.sample(standard, 1, draws=50, warmup=100)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        found.to_arviz()
