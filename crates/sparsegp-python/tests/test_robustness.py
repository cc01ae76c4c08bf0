"""Threads, forks, signals, exceptions, odd arrays and long lives."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsegp
from sparsegp import (
    GPClassifier,
    GPCountRegressor,
    GPRegressor,
    HeteroscedasticGPRegressor,
    RobustGPRegressor,
    likelihoods,
    sampling,
)
from sparsegp.kernels import RBF
from sparsegp.models import GPR, SGPR, SVGP

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only on Linux")


def problem(n, seed=0, columns=2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (n, columns))
    return x, np.sin(2 * x[:, 0]) + 0.4 * x[:, 1] + 0.3 * rng.normal(size=n)


def script(text, timeout=120, **environment):
    """Runs a separate program; what it prints. A hang ends the test."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", text],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


PROBLEM = """
import numpy as np

def problem(n, seed=0, columns=2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (n, columns))
    return x, np.sin(2 * x[:, 0]) + 0.4 * x[:, 1] + 0.3 * rng.normal(size=n)
"""


# -- threads -----------------------------------------------------------------------------------


def estimators():
    """Each with targets made of those of the problem."""
    few = dict(max_iter=15, n_inducing=12, pilot=30)
    return {
        "exact": (GPRegressor(method="exact", **few), lambda y: y),
        "sparse": (GPRegressor("matern32", method="titsias2025", **few), lambda y: y),
        "minibatches": (
            GPRegressor(method="svgp", epochs=3, batch_size=32, **few),
            lambda y: y,
        ),
        "classes": (GPClassifier(**few), lambda y: np.where(y > 0, "up", "down")),
        "counts": (GPCountRegressor(**few), lambda y: np.floor(np.exp(y))),
        "robust": (RobustGPRegressor(**few), lambda y: y),
        "heteroscedastic": (HeteroscedasticGPRegressor(**few), lambda y: y),
    }


def fitted(name, seed):
    estimator, change = estimators()[name]
    x, y = problem(90, seed)
    estimator.fit(x, change(y))
    if name == "classes":
        return estimator.predict_proba(x), estimator.objective_
    return *estimator.predict(x, return_std=True), estimator.objective_


def same(found, expected):
    for one, two in zip(found, expected):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", ["exact", "sparse", "minibatches", "classes"])
def test_eight_threads_fit_at_once(name):
    expected = [fitted(name, seed) for seed in range(8)]
    together = threading.Barrier(8)

    def work(seed):
        together.wait()
        return fitted(name, seed)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    for one, two in zip(found, expected):
        same(one, two)
    assert len({objective for *_, objective in found}) == 8


def test_eight_threads_fit_models_of_different_kinds_at_once():
    names = [*estimators(), "exact"]
    expected = [fitted(name, 3) for name in names]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: fitted(name, 3), names))
    for one, two in zip(found, expected):
        same(one, two)


def test_eight_threads_predict_with_one_model():
    x, y = problem(90)
    model = GPRegressor(max_iter=15).fit(x, y)
    parts = [problem(300, seed)[0] for seed in range(8)]
    expected = [model.predict(part, return_std=True) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda part: model.predict(part, return_std=True), parts))
    for one, two in zip(found, expected):
        same(one, two)
    lower = SVGP(RBF([0.6, 1.7], 1.4), "poisson", x[:9])
    counts = np.floor(np.exp(y))
    value = lower.elbo((x, counts))
    with ThreadPoolExecutor(8) as pool:
        # the first of them finds the posterior
        assert set(pool.map(lambda _: lower.elbo((x, counts)), range(8))) == {value}
        both = list(pool.map(lambda part: lower.predict_y(part), parts))
    for one, part in zip(both, parts):
        same(one, lower.predict_y(part))


def test_the_number_of_threads_does_not_matter():
    threads = sparsegp.num_threads()
    try:
        found = {}
        for n in (1, 2, 5):
            sparsegp.set_num_threads(n)
            assert sparsegp.num_threads() == n
            found[n] = [fitted(name, 4) for name in ("exact", "sparse", "minibatches")]
        for n in (2, 5):
            for one, two in zip(found[n], found[1]):
                same(one, two)
    finally:
        sparsegp.set_num_threads(threads)
    with pytest.raises(ValueError, match="at least 1"):
        sparsegp.set_num_threads(0)
    assert sparsegp.num_threads() == threads


class Ticking:
    """Another Python thread, which counts. It gets its turn only where the main one gives it away: in
    between, nobody is asked to."""

    def __enter__(self):
        self.ticks, self.over = 0, threading.Event()
        self.interval = sys.getswitchinterval()
        self.thread = threading.Thread(target=self.count)
        self.thread.start()
        sys.setswitchinterval(1000.0)
        return self

    def count(self):
        while not self.over.wait(0.0005):
            self.ticks += 1

    def __exit__(self, *_):
        sys.setswitchinterval(self.interval)
        self.over.set()
        self.thread.join()


@pytest.mark.alone
def test_other_threads_run_while_a_model_is_fitted():
    x, y = problem(500)
    with Ticking() as other:
        start = other.ticks
        # it would continue for long, but the other thread has got somewhere
        model = GPRegressor(
            method="exact", max_iter=100_000, tol=1e-300, callback=lambda _: other.ticks > start + 20
        ).fit(x, y)
        assert other.ticks > start + 20
    assert model.stopped_ and not model.converged_


@pytest.mark.alone
def test_other_threads_run_while_a_model_predicts():
    x, y = problem(500)
    model = GPRegressor(method="exact", max_iter=2).fit(x, y)
    new = problem(60_000, 1)[0]
    lower = GPR((x, y), RBF([0.6, 1.7], 1.4), noise_variance=0.1)
    with Ticking() as other:
        for call in (
            lambda: model.fitted_.predict(new),
            lambda: model.fitted_.quantiles(new, [0.1]),
            lambda: lower._model.condition(*lower._data) or lower._model.predict_y(new),
        ):
            before = other.ticks
            call()
            assert other.ticks > before + 2


# -- forks -------------------------------------------------------------------------------------


@linux
def test_forks():
    text = (
        PROBLEM
        + '''
import multiprocessing, os, sys, warnings
import sparsegp
from sparsegp import GPRegressor
warnings.simplefilter("ignore", DeprecationWarning)

x, y = problem(120)

def fit(seed):
    x, y = problem(120, seed)
    model = GPRegressor(method="titsias2025", n_inducing=12, pilot=40, max_iter=10).fit(x, y)
    return model.predict(x[:5], return_std=True)

def child(work):
    """Does some work in a fork; what it returned."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(writing, b"".join(a.tobytes() for a in work()))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        content = stream.read()
    assert os.waitpid(pid, 0)[1] == 0
    return content

def bytes_of(arrays):
    return b"".join(a.tobytes() for a in arrays)

# after only the import
first = child(lambda: fit(1))
expected = bytes_of(fit(1))
assert first == expected
# after a fit, whose threads the fork has not
model = GPRegressor(method="exact", max_iter=10).fit(x, y)
predicted = bytes_of(model.predict(x, return_std=True))
assert child(lambda: fit(1)) == expected
assert child(lambda: model.predict(x, return_std=True)) == predicted
# of a fork of a fork
assert child(lambda: [np.frombuffer(child(lambda: fit(1)))]) == expected
# another number of threads in the child
def three():
    sparsegp.set_num_threads(3)
    return fit(1)
assert child(three) == expected
# the parent continues
assert bytes_of(model.predict(x, return_std=True)) == predicted
assert bytes_of(fit(1)) == expected
with multiprocessing.get_context("fork").Pool(2) as pool:
    for seed, found in enumerate(pool.map(fit, range(4))):
        assert bytes_of(found) == bytes_of(fit(seed))
print("done")
'''
    )
    assert script(text) == "done\n"


# -- exceptions and signals --------------------------------------------------------------------


class Mine(Exception):
    pass


@pytest.mark.parametrize("error", [Mine("mine"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("name", ["exact", "sparse", "robust"])
def test_exceptions_of_a_callback_come_out_and_the_best_state_stays(error, name):
    estimator, _ = estimators()[name]
    x, y = problem(200)
    objectives = []

    def fail(event):
        if event["event"] == "iteration":
            objectives.append(event["objective"])
            if len(objectives) >= 4:
                raise error

    estimator.set_params(callback=fail, standardise=False, max_iter=1000)
    with pytest.raises(type(error)) as caught:
        estimator.fit(x, y)
    assert caught.value is error
    # the best of what was reported, or better
    assert len(objectives) >= 4 and estimator.objective_ >= max(objectives) - 1e-9
    mean, std = estimator.predict(x, return_std=True)
    assert np.isfinite(mean).all() and (std > 0).all()
    assert estimator.score(x, y) > 0
    again = pickle.loads(pickle.dumps(estimator.set_params(callback=None)))
    np.testing.assert_array_equal(again.predict(x), mean)
    # it can be fitted again
    assert estimator.set_params(max_iter=30).fit(x, y).objective_ > objectives[3]


@pytest.mark.parametrize("way", ["raises", "returns"])
@pytest.mark.parametrize("name", ["exact", "sparse", "robust"])
def test_a_callback_that_ended_the_training_is_not_called_again(name, way):
    estimator, _ = estimators()[name]
    x, y = problem(200)
    events = []

    def end(event):
        events.append(event)
        if event["event"] == "iteration" and event["iteration"] >= 4:
            if way == "raises":
                raise Mine("mine")
            return True
        return False

    estimator.set_params(callback=end, max_iter=1000)
    if way == "raises":
        with pytest.raises(Mine):
            estimator.fit(x, y)
    else:
        estimator.fit(x, y)
    assert [e["iteration"] for e in events if e["event"] == "iteration"] == [1, 2, 3, 4]


def test_exceptions_of_a_callback_end_training_by_minibatches():
    x, y = problem(200)
    seen = []

    def fail(event):
        seen.append(event["event"])
        if seen.count("iteration") == 2:
            raise Mine("mine")

    model = GPRegressor(method="svgp", n_inducing=12, batch_size=20, epochs=100_000, callback=fail, pilot=30)
    with pytest.raises(Mine):
        model.fit(x, y)
    assert seen.count("batch") > 0
    assert np.isfinite(model.predict(x)).all() and not model.converged_


@pytest.mark.parametrize("event", ["pilot", "inducing"])
def test_an_exception_before_there_is_a_model_comes_out(event):
    x, y = problem(200)
    seen = []

    def fail(given):
        seen.append(given["event"])
        if given["event"] == event:
            raise Mine("mine")

    model = GPRegressor(method="svgp", n_inducing=12, epochs=100_000, callback=fail, pilot=100, random_state=3)
    with pytest.raises(Mine, match="mine"):
        model.fit(x, y)
    assert event in seen
    if not hasattr(model, "fitted_"):
        with pytest.raises(NotFittedError):
            model.predict(x)
    # the same object learns as if nothing had been
    model.set_params(callback=None, epochs=2).fit(x, y)
    other = GPRegressor(method="svgp", n_inducing=12, epochs=2, pilot=100, random_state=3).fit(x, y)
    np.testing.assert_array_equal(model.predict(x), other.predict(x))


@pytest.mark.parametrize("method", ["exact", "titsias2025", "svgp", "tsvgp"])
def test_a_callback_that_always_wants_an_end_is_not_an_interrupt(method):
    x, y = problem(200)
    # from the first event on, whichever that is
    model = GPRegressor(method=method, n_inducing=12, epochs=100_000, pilot=100, callback=lambda _: True)
    try:
        model.fit(x, y)
    except KeyboardInterrupt:
        pytest.fail("a KeyboardInterrupt, though nobody pressed Ctrl-C")
    assert model.stopped_ and not model.converged_
    assert np.isfinite(model.predict(x)).all()


def test_a_callback_ends_the_training_where_it_says():
    x, y = problem(200)

    def stop(event):
        return event["event"] == "iteration" and event["iteration"] == 3

    fits = [
        GPRegressor(method="titsias2025", n_inducing=12, pilot=0, callback=stop).fit(x, y) for _ in range(2)
    ]
    assert [model.n_iter_ for model in fits] == [3, 3]
    np.testing.assert_array_equal(fits[0].predict(x), fits[1].predict(x))


def test_a_callback_may_use_models():
    # also where the training has all threads there are
    text = (
        PROBLEM
        + """
import sparsegp
from sparsegp import GPRegressor
from sparsegp import likelihoods
from sparsegp.kernels import RBF

x, y = problem(150)
small = GPRegressor(method="exact", max_iter=3)
expected = small.fit(x[:40], y[:40]).predict(x[:3])
options = dict(method="titsias2025", n_inducing=12, max_iter=10)
plain = GPRegressor(**options).fit(x, y).predict(x)
for threads in (1, 2):
    sparsegp.set_num_threads(threads)
    found = []

    def callback(event):
        if len(found) < 3:
            inner = GPRegressor(method="exact", max_iter=3).fit(x[:40], y[:40])
            found.append(inner.predict(x[:3]))
            RBF(0.6, 1.4)(x)

    outer = GPRegressor(callback=callback, **options).fit(x, y)
    assert len(found) == 3 and all((f == expected).all() for f in found)
    assert (outer.predict(x) == plain).all()
print("done")
"""
    )
    assert script(text) == "done\n"


@pytest.mark.alone
@linux
def test_ctrl_c_ends_a_fit_and_the_best_state_stays():
    # each would continue for hours; the signal comes while an evaluation is being computed
    text = (
        PROBLEM
        + '''
import os, signal, threading
from sklearn.exceptions import NotFittedError
from sparsegp import GPRegressor
from sparsegp import likelihoods
from sparsegp.kernels import RBF
from sparsegp.models import GPR

# shells let what they run in the background ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupted(fit, event):
    """Runs a fit that gets a signal a while after some event."""
    armed = []
    def callback(given):
        if given["event"] == event and not armed:
            timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
            armed.append(timer)
            timer.start()
    try:
        fit(callback)
    except KeyboardInterrupt:
        armed[0].join()
        return
    raise AssertionError("not interrupted")

def estimator(n, event, **options):
    x, y = problem(n)
    model = GPRegressor(tol=1e-300, max_iter=10**6, standardise=False, pilot=0, **options)
    interrupted(lambda callback: model.set_params(callback=callback).fit(x, y), event)
    assert model.stopped_ and not model.converged_
    mean, std = model.predict(x[:100], return_std=True)
    assert np.isfinite(mean).all() and (std > 0).all()
    objectives = model.trace_["objective"]
    if options["method"] != "svgp":
        assert model.score(x[:1000], y[:1000]) > 0.2
        assert model.objective_ >= np.nanmax(objectives) - 1e-9
    print(options["method"])

estimator(1500, "iteration", method="exact")
estimator(100_000, "iteration", method="titsias2025", n_inducing=300, inducing="random")
estimator(100_000, "batch", method="svgp", n_inducing=50, inducing="random", epochs=10**6)
x, y = problem(1000)
model = GPR((x, y), RBF([2.5, 0.4], 0.6), noise_variance=1.3)
before = model.elbo()
interrupted(lambda callback: model.optimise(callback=callback, max_iterations=10**6, optimiser="adam"), "iteration")
assert model.elbo() > before and np.isfinite(model.predict_y(x[:5])[0]).all()
print("model")

# before there is a model there is none to keep
x, y = problem(20_000)
model = GPRegressor(method="titsias2025", n_inducing=200, pilot=1500)
def early(event):
    assert event["event"] in ("kernels", "pilot", "inducing")
    os.kill(os.getpid(), signal.SIGINT)
try:
    model.set_params(callback=early).fit(x, y)
except KeyboardInterrupt:
    pass
else:
    raise AssertionError("not interrupted")
try:
    model.predict(x[:3])
except NotFittedError:
    pass
else:
    raise AssertionError("fitted")
model.set_params(callback=None, pilot=50, n_inducing=12, max_iter=3).fit(x[:200], y[:200])
assert np.isfinite(model.predict(x)).all()
print("none")
'''
    )
    assert script(text).split() == ["exact", "titsias2025", "svgp", "model", "none"]


# -- arrays ------------------------------------------------------------------------------------


class Own(np.ndarray):
    pass


def mapped(array, folder):
    path = folder / f"{len(list(folder.iterdir()))}.dat"
    array.tofile(path)
    return np.memmap(path, dtype=float, mode="r", shape=array.shape)


def locked(array, _):
    array = array.copy()
    array.flags.writeable = False
    return array


def backwards(array, _):
    turned = tuple(slice(None, None, -1) for _ in array.shape)
    return np.ascontiguousarray(array[turned])[turned]


def spread(array, _):
    wide = np.full(tuple(3 * n for n in array.shape), np.nan)
    every = tuple(slice(None, None, 3) for _ in array.shape)
    wide[every] = array
    return wide[every]


def unaligned(array, _):
    found = np.frombuffer(b"\0" + array.tobytes(), dtype=np.uint8)[1:].view(float)
    return found.reshape(array.shape)


# the same numbers in many ways
LAYOUTS = {
    "Fortran order": lambda array, _: np.asfortranarray(array),
    "negative strides": backwards,
    "every third": spread,
    "read-only": locked,
    "memory map": mapped,
    "not aligned": unaligned,
    "big-endian": lambda array, _: array.astype(">f8"),
    "objects": lambda array, _: array.astype(object),
    "long doubles": lambda array, _: array.astype(np.longdouble),
    "list": lambda array, _: array.tolist(),
    "subclass": lambda array, _: array.view(Own),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["exact", "sparse", "classes", "counts"])
def test_the_layout_of_arrays_does_not_matter(layout, name, tmp_path):
    x, y = problem(80)
    weights = np.linspace(0.5, 1.5, 80)
    first, change = estimators()[name]
    other, _ = estimators()[name]
    y = change(y)

    def laid(array):
        return LAYOUTS[layout](array, tmp_path)

    rows, targets = laid(x), y if name == "classes" else laid(y)
    for model in (first, other):
        model.set_params(max_iter=4)
    expected = first.fit(x, y).predict(x)
    np.testing.assert_array_equal(other.fit(rows, targets).predict(rows), expected)
    np.testing.assert_array_equal(np.array(rows, dtype=float), x)
    if name == "exact":
        same(other.predict(rows, return_cov=True), first.predict(x, return_cov=True))
        density = first.log_predictive_density(x, y)
        np.testing.assert_array_equal(other.log_predictive_density(rows, targets), density)
        np.testing.assert_array_equal(other.sample_y(rows, 3), first.sample_y(x, 3))
        noise = weights * 0.2
        first.fit(x, y, noise_variance=noise)
        other.fit(rows, targets, noise_variance=laid(noise))
        same(other.predict(rows, return_std=True), first.predict(x, return_std=True))
    if name != "sparse":
        expected = first.fit(x, y, sample_weight=weights).predict(x)
        found = other.fit(rows, targets, sample_weight=laid(weights)).predict(rows)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", ["exact", "titsias2025", "svgp", "svgp2025", "tsvgp"])
def test_weights_of_one_change_nothing(method):
    x, y = problem(80)
    model = GPRegressor(method=method, n_inducing=12, max_iter=4, epochs=2)
    expected = model.fit(x, y).predict(x)
    found = model.fit(x, y, sample_weight=np.ones(80)).predict(x)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_arrays_does_not_matter_to_models(layout, tmp_path):
    def laid(array):
        return LAYOUTS[layout](array, tmp_path)

    x, y = problem(60)
    y = y[:, None]
    kernel = RBF([0.6, 1.7], 1.4)
    q = np.tril(np.linspace(0.1, 0.9, 49).reshape(7, 7))
    found = []
    for rows, targets, points, q_sqrt in ((x, y, x[:7], q), map(laid, (x, y, x[:7], q))):
        model = SGPR((rows, targets), kernel, points, noise_variance=0.2)
        svgp = SVGP(kernel, "student-t(df=4.5)", points, q_sqrt=q_sqrt)
        svgp.natural_gradient_step((rows, targets), rate=0.5)
        own = [model.elbo(), *model.predict_y(rows), *svgp.predict_f(rows), svgp["q.sqrt"]]
        own.append(svgp.predict_log_density((rows, targets)))
        svgp["inducing.points"] = points
        svgp["q.sqrt"] = np.asarray(q_sqrt)[None]
        own += [svgp["q.sqrt"], svgp.elbo((rows, targets)), kernel(rows), kernel(rows, points)]
        found.append(own)
    same(found[1], found[0])
    np.testing.assert_array_equal(found[0][-4][0], q)


def test_single_precision_is_its_numbers_in_double():
    x, y = problem(80)
    x32, y32 = x.astype(np.float32), y.astype(np.float32)
    model = GPRegressor(method="exact", max_iter=4).fit(x32, y32)
    other = GPRegressor(method="exact", max_iter=4).fit(x32.astype(float), y32.astype(float))
    np.testing.assert_array_equal(model.predict(x32), other.predict(x32.astype(float)))
    assert model.predict(x32).dtype == np.float64
    for kind in (np.float16, np.int32, np.uint8, bool):
        rows = np.abs(x).astype(kind)
        found = model.predict(rows)
        np.testing.assert_array_equal(found, model.predict(rows.astype(float)))


def test_zero_rows():
    x, y = problem(40)
    none = np.empty((0, 2))
    for name in estimators():
        estimator, change = estimators()[name]
        with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
            estimator.fit(none, y[:0])
        estimator.set_params(max_iter=2, epochs=1).fit(x, change(y))
        with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
            estimator.predict(none)
        with pytest.raises(ValueError, match=r"Found array with 0 feature\(s\)"):
            estimator.fit(np.empty((40, 0)), change(y))
    for view in (none, np.asfortranarray(none), np.ones((4, 2))[4:], np.ones((4, 2))[:0:-1][3:]):
        model = GPR((x, y), RBF([0.6, 1.7], 1.4), noise_variance=0.2)
        mean, variance = model.predict_y(view)
        assert mean.shape == variance.shape == (0, 1)
        assert RBF(0.6, 1.4)(view, x).shape == (0, 40)


def test_one_row_is_too_few_to_fit():
    x, y = problem(40)
    for name in estimators():
        estimator, change = estimators()[name]
        with pytest.raises(ValueError, match="minimum of 2 is required"):
            estimator.fit(x[:1], change(y)[:1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_value_errors(bad):
    x, y = problem(40)
    wrong = x.copy()
    wrong[7, 1] = bad
    for name in estimators():
        estimator, change = estimators()[name]
        estimator.set_params(max_iter=2, epochs=1)
        targets = change(y)
        with pytest.raises(ValueError, match="NaN|infinity"):
            estimator.fit(wrong, targets)
        if name != "classes":
            with pytest.raises(ValueError, match="NaN|infinity"):
                estimator.fit(x, np.where(np.arange(40) == 3, bad, targets))
        with pytest.raises(ValueError, match="NaN|infinity"):
            estimator.fit(x, targets, sample_weight=np.where(np.arange(40) == 3, bad, 1.0))
        estimator.fit(x, targets)
        with pytest.raises(ValueError, match="NaN|infinity"):
            estimator.predict(wrong)
        for refused in (x.astype(object), np.array([["a", "b"]] * 40), x + 1j):
            if refused.dtype == object:
                refused[0, 0] = "text"
            with pytest.raises((ValueError, TypeError)):
                estimator.predict(refused)


def test_huge_and_tiny_numbers_do_not_crash():
    x, y = problem(40)
    for scale in (1e-300, 1e-150, 1e150, 1e300):
        for rows, targets in ((x * scale, y), (x, y * scale)):
            try:
                mean, std = GPRegressor(max_iter=5).fit(rows, targets).predict(rows, return_std=True)
            except (ValueError, ArithmeticError):
                continue
            assert np.isfinite(mean).all() and not np.isnan(std).any(), scale


@pytest.mark.alone
@linux
def test_many_rows_are_predicted_in_parts():
    # of a million rows by 150: 1.2 GB if they were made at once
    text = (
        PROBLEM
        + """
import resource
from sparsegp import GPRegressor

x, y = problem(150)
new = problem(1_000_000, 1)[0]
models = [
    GPRegressor(method="exact", max_iter=2).fit(x, y),
    GPRegressor(method="titsias2025", n_inducing=40, max_iter=2, pilot=50).fit(x, y),
]
for model in models:
    model.predict(new[:2000], return_std=True)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

# memory in use, not addresses: a product reserves twice the third-level cache for each thread
before = peak()
for model, form in zip(models, (np.ascontiguousarray, np.asfortranarray)):
    mean, std = model.predict(form(new), return_std=True)
    assert mean.shape == std.shape == (1_000_000,)
    for part in (slice(0, 1000), slice(777_000, 777_100), slice(999_990, None)):
        own_mean, own_std = model.predict(new[part], return_std=True)
        np.testing.assert_allclose(mean[part], own_mean, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(std[part], own_std, rtol=1e-10)
assert peak() - before < 500 * 2**20, (before, peak())
print("done")
"""
    )
    assert script(text) == "done\n"


# -- long lives --------------------------------------------------------------------------------


@pytest.mark.alone
@linux
def test_nothing_leaks():
    text = (
        PROBLEM
        + """
import gc, os, pickle, resource, tempfile, time
import sparsegp
from sparsegp import GPClassifier, GPCountRegressor, GPRegressor, HeteroscedasticGPRegressor
from sparsegp.kernels import RBF, Linear
from sparsegp.likelihoods import StudentT
from sparsegp.models import GPR, SGPR, SVGP

x, y = problem(60)
counts = np.floor(np.exp(y))
path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
few = dict(max_iter=2, n_inducing=10, epochs=1, pilot=20)

class Mine(Exception):
    pass

def fail(event):
    # something that a leak would keep
    content = np.ones(20_000)
    raise Mine(content)

def once():
    model = GPRegressor(method="exact", max_iter=2).fit(x, y)
    model.predict(x, return_cov=True)
    model.predict(x, return_quantiles=[0.1, 0.9])
    model.sample_y(x, 5)
    again = pickle.loads(pickle.dumps(model))
    again.save(path)
    sparsegp.load(path).predict(x)
    repr(again), again.summary(), again.model_.parameters
    sparse = GPRegressor(method="titsias2025", callback=lambda event: None, **few).fit(x, y)
    sparse.predict(x)
    GPCountRegressor(**few).fit(x, counts).predict(x)
    GPClassifier(**few).fit(x, counts > 1).predict_proba(x)
    GPRegressor(method="svgp", batch_size=16, **few).fit(x, y).partial_fit(x, y)
    kernel = RBF([0.6, 1.7], 1.4) + Linear(0.3)
    kernel.K_gradients(np.ones((60, 60)), x)
    StudentT(4.5, 0.6).variational_expectations_and_gradients(y, y**2, y)
    exact = GPR((x, y), kernel, noise_variance=0.2)
    exact.gradients()
    exact.predict_f(x, full_cov=True)
    exact.predict_f_samples(x, 5)
    svgp = SVGP(kernel, "poisson", x[:10])
    svgp.natural_gradient_step((x, counts[:, None]))
    svgp.copy().optimise((x, counts[:, None]), max_iterations=2)
    for call in (
        lambda: GPRegressor(method="exact", callback=fail, max_iter=2).fit(x, y),
        lambda: GPRegressor(kernel="rbf(").fit(x, y),
        lambda: GPRegressor(max_iter=2, likelihood="gamma").fit(x, -abs(y)),
        lambda: SGPR((x, y), kernel, np.zeros((9, 2)), jitter=0.0).elbo(),
        lambda: exact["nothing"],
        lambda: kernel(x[:, :1]),
        lambda: sparsegp.load(__file__ if "__file__" in globals() else "/nowhere"),
    ):
        try:
            call()
        except (Mine, ValueError, ArithmeticError, KeyError, OSError):
            pass
        else:
            raise AssertionError("an error was expected")

def size():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

def counted(what):
    return len(os.listdir(f"/proc/self/{what}"))

def no_more(what, most):
    # threads that have ended are there for another moment
    return any(counted(what) <= most or time.sleep(0.05) for _ in range(100))

for _ in range(10):
    once()
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + 200 * 2**20,) * 2)
threads, files = counted("task"), counted("fd")
sizes = []
for _ in range(40):
    once()
    sizes.append(size())
assert no_more("task", threads) and no_more("fd", files)
# what the allocator keeps goes up and down by some MB from round to round: its least is what stays
print((min(sizes[-10:]) - min(sizes[:10])) / 2**20)
"""
    )
    grown = float(script(text, SPARSEGP_NUM_THREADS="2"))
    # in MB, of 300 models and 210 errors
    assert grown < 2, grown


@pytest.mark.alone
def test_the_end_of_the_process_is_quiet():
    # fits in threads that nobody waits for, models that live until the end
    text = (
        PROBLEM
        + """
import atexit, threading
from sparsegp import GPRegressor

x, y = problem(100)
model = GPRegressor(max_iter=3).fit(x, y)
atexit.register(lambda: model.predict(x))
endless = GPRegressor(method="exact", max_iter=10**7, tol=1e-300)
threading.Thread(target=lambda: endless.fit(x, y), daemon=True).start()
print("done")
"""
    )
    assert script(text) == "done\n"


# -- scikit-learn's workers --------------------------------------------------------------------


def test_a_search_with_two_workers():
    x, y = problem(90)
    pipeline = make_pipeline(StandardScaler(), GPRegressor(max_iter=5))
    grid = {
        "gpregressor__kernel": ["rbf", "matern32", RBF(variance=1.3)],
        "gpregressor__kernel__lengthscales": [0.4, 2.5],
    }
    found = [GridSearchCV(pipeline, grid, n_jobs=jobs, cv=3).fit(x, y) for jobs in (1, 2)]
    for column in ("mean_test_score", "split0_test_score"):
        one, two = (search.cv_results_[column] for search in found)
        np.testing.assert_array_equal(one, two)
        assert len(set(one)) > 3
    assert repr(found[0].best_params_) == repr(found[1].best_params_)
    np.testing.assert_array_equal(found[0].predict(x), found[1].predict(x))


def test_classes_far_from_the_data_have_probabilities() -> None:
    wide = np.array([[500.0, -300.0, 20.0], [1e300, -1e300, 0.0]])
    for likelihood in (likelihoods.Softmax(3), likelihoods.LogisticSoftmax(3), likelihoods.RobustMax(3)):
        for variance in (1.0, 1e5, 1e300):
            v = np.full(wide.shape, variance)
            p = likelihood.predict_proba(wide, v)
            np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
            log = likelihood.predict_log_density(wide, v, [[0], [0]])
            np.testing.assert_allclose(log, np.log(p[:, 0]), atol=1e-9)


def test_no_class_is_chosen_among_numbers_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.linspace(0, 1, 20)[:, None]
    model = sparsegp.GPClassifier().fit(X, np.arange(20) // 7)
    p = model.predict_proba(X)
    p[3] = np.nan
    monkeypatch.setattr(model, "predict_proba", lambda X: p)
    with pytest.raises(sparsegp.NumericalError, match="row 3"):
        model.predict(X)


@pytest.mark.filterwarnings("ignore:target column `y0` is constant")
def test_counts_that_are_all_zero_are_not_certain() -> None:
    X = np.linspace(0, 1, 50)[:, None]
    with pytest.warns(UserWarning, match="all targets are 0"):
        model = sparsegp.GPRegressor(likelihood="poisson").fit(X, np.zeros(50))
    mean, std = model.predict(X, return_std=True)
    # one event in all rows, about
    assert (mean > 0.2 / 50).all() and (mean < 4 / 50).all() and (std > np.sqrt(0.2 / 50)).all()


@pytest.mark.alone
@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
def test_ctrl_c_ends_chains_of_a_density():
    # whatever other tests have made of the handler
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sampling.sample(lambda x: (-0.5 * (x**2).sum(axis=1), -x), 2, draws=10_000_000)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
