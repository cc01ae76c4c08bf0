"""The peers of `against.py`, with their defaults, on one thread. Each is a function of a split that trains and returns a
function that predicts the test rows."""

import importlib
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special, stats

# of the quantiles by which intervals and CRPS are judged
LEVELS = np.arange(1, 100) / 100


class Unsupported(Exception):
    """Why a peer cannot learn such a target."""


class Answer:
    """What a peer says about test rows: a mean, and what it knows of the rest; of classes their probabilities."""

    def __init__(self, mean=None, log_density=None, quantiles=None, interval=None, chances=None):
        self.mean, self.log_density, self.quantiles, self.chances = mean, log_density, quantiles, chances
        if interval is None and quantiles is not None:
            interval = quantiles[:, 4], quantiles[:, 94]
        self.interval = interval


def gaussian(split, mean, sd, interval=None):
    """Predictions with Gaussian noise."""
    sd = np.broadcast_to(sd, mean.shape)
    quantiles = mean[:, None] + sd[:, None] * special.ndtri(LEVELS)
    return Answer(mean, stats.norm.logpdf(split.new_y, mean, sd), quantiles, interval)


def poisson(split, mean):
    """Predictions of counts with Poisson noise."""
    mean = np.maximum(mean, 1e-12)
    quantiles = stats.poisson.ppf(LEVELS, mean[:, None])
    return Answer(mean, stats.poisson.logpmf(split.new_y, mean), quantiles)


def classes_only(split, what):
    if split.kind == "classification":
        raise Unsupported(f"{what} is not for classes")


# ---- ours ------------------------------------------------------------------------------------------------


def sparsegp(split, **options):
    from sparsegp import GPClassifier, GPCountRegressor, GPRegressor

    # categories of test rows that no training row has are unknown to everyone
    options["unknown"] = "ignore"
    if split.kind == "classification":
        model = GPClassifier(**options).fit(split.x, split.y)
        return lambda: Answer(chances=model.predict_proba(split.new_x))
    own = GPCountRegressor if split.kind == "counts" else GPRegressor
    model = own(**options).fit(split.x, split.y)

    def predict():
        mean, quantiles = model.predict(split.new_x, return_quantiles=LEVELS)
        return Answer(mean, model.log_predictive_density(split.new_x, split.new_y), quantiles)

    return predict


def sparsegp_rbf(split):
    return sparsegp(split, kernel="rbf")


# ---- trees -----------------------------------------------------------------------------------------------


def with_held_out_noise(split, make, x, new_x, categorical=None):
    """A regression by squared error with quantile models beside it: its noise is that of a tenth of the rows, held out."""
    order = np.random.default_rng(0).permutation(len(split.y))
    held, kept = order[: len(order) // 10], order[len(order) // 10 :]
    part = make(None).fit(x.iloc[kept], split.y[kept])
    sd = np.sqrt(np.mean((part.predict(x.iloc[held]) - split.y[held]) ** 2))
    whole, low, high = (make(level).fit(x, split.y) for level in (None, 0.05, 0.95))
    return lambda: gaussian(split, whole.predict(new_x), sd, (low.predict(new_x), high.predict(new_x)))


def hgb(split):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    usual = {"categorical_features": "from_dtype", "random_state": 0}
    if split.kind == "classification":
        model = HistGradientBoostingClassifier(**usual).fit(split.x, split.y)
        return lambda: Answer(chances=model.predict_proba(split.new_x))
    if split.kind == "counts":
        model = HistGradientBoostingRegressor(loss="poisson", **usual).fit(split.x, split.y)
        return lambda: poisson(split, model.predict(split.new_x))

    def make(level):
        loss = {} if level is None else {"loss": "quantile", "quantile": level}
        return HistGradientBoostingRegressor(**loss, **usual)

    return with_held_out_noise(split, make, split.x, split.new_x)


def lightgbm(split):
    from lightgbm import LGBMClassifier, LGBMRegressor

    usual = {"n_jobs": 1, "verbose": -1, "random_state": 0}
    plain = {column: f"x{i}" for i, column in enumerate(split.x)}  # it refuses some names
    x, new_x = split.x.rename(columns=plain), split.new_x.rename(columns=plain)
    if split.kind == "classification":
        model = LGBMClassifier(**usual).fit(x, split.y)
        return lambda: Answer(chances=model.predict_proba(new_x))
    if split.kind == "counts":
        model = LGBMRegressor(objective="poisson", **usual).fit(x, split.y)
        return lambda: poisson(split, model.predict(new_x))

    def make(level):
        loss = {} if level is None else {"objective": "quantile", "alpha": level}
        return LGBMRegressor(**loss, **usual)

    return with_held_out_noise(split, make, x, new_x)


def catboost(split):
    from catboost import CatBoostClassifier, CatBoostRegressor

    texts = [column for column in split.x if split.x[column].dtype == "category"]
    usual = {"thread_count": 1, "verbose": False, "allow_writing_files": False, "random_seed": 0}
    usual["cat_features"] = texts
    if split.kind == "classification":
        several = {"loss_function": "MultiClass"} if split.y.max() > 1 else {}
        model = CatBoostClassifier(**several, **usual).fit(split.x, split.y)
        return lambda: Answer(chances=model.predict_proba(split.new_x))
    if split.kind == "counts":
        model = CatBoostRegressor(loss_function="Poisson", **usual).fit(split.x, split.y)
        return lambda: poisson(split, model.predict(split.new_x, prediction_type="Exponent"))
    model = CatBoostRegressor(loss_function="RMSEWithUncertainty", **usual).fit(split.x, split.y)

    def predict():
        mean, variance = model.predict(split.new_x).T
        return gaussian(split, mean, np.sqrt(variance))

    return predict


def ngboost(split):
    from ngboost import NGBClassifier, NGBRegressor
    from ngboost.distns import Poisson, k_categorical

    x, new_x = split.numbers()
    usual = {"verbose": False, "random_state": 0}
    if split.kind == "classification":
        model = NGBClassifier(Dist=k_categorical(int(split.y.max()) + 1), **usual).fit(x, split.y)
        return lambda: Answer(chances=model.predict_proba(new_x))
    if split.kind == "counts":
        model = NGBRegressor(Dist=Poisson, **usual).fit(x, split.y.astype(int))
        return lambda: poisson(split, model.predict(new_x))
    model = NGBRegressor(**usual).fit(x, split.y)

    def predict():
        own = model.pred_dist(new_x).params
        return gaussian(split, own["loc"], own["scale"])

    return predict


def forest(split):
    if split.kind == "classification":
        from sklearn.ensemble import RandomForestClassifier

        x, new_x = split.numbers()
        model = RandomForestClassifier(n_jobs=1, random_state=0).fit(x, split.y)
        return lambda: Answer(chances=model.predict_proba(new_x))
    from quantile_forest import RandomForestQuantileRegressor

    x, new_x = split.numbers()
    model = RandomForestQuantileRegressor(n_jobs=1, random_state=0).fit(x, split.y)

    def predict():
        return Answer(model.predict(new_x, quantiles="mean"), None, model.predict(new_x, quantiles=[*LEVELS]))

    return predict


# ---- Gaussian processes and lines ------------------------------------------------------------------------


def gpboost(split):
    import gpboost

    if split.kind == "classification" and split.y.max() > 1:
        raise Unsupported("gpboost has no more than two classes")
    x, new_x = split.numbers()
    likelihood = {"regression": "gaussian", "classification": "bernoulli_logit", "counts": "poisson"}
    model = gpboost.GPModel(
        gp_coords=x,
        cov_function="matern_ard",
        cov_fct_shape=1.5,
        gp_approx="vecchia",
        likelihood=likelihood[split.kind],
        num_parallel_threads=1,
        seed=0,
    )
    model.fit(y=split.y.astype(float), X=np.ones((len(x), 1)))

    def predict():
        own = model.predict(
            gp_coords_pred=new_x, X_pred=np.ones((len(new_x), 1)), predict_var=True, predict_response=True
        )
        mean = np.asarray(own["mu"])
        if split.kind == "classification":
            return Answer(chances=np.column_stack([1 - mean, mean]))
        if split.kind == "counts":
            return poisson(split, mean)
        return gaussian(split, mean, np.sqrt(np.asarray(own["var"])))

    return predict


def sklearn_gp(split):
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    x, new_x = split.numbers()
    kernel = ConstantKernel() * RBF(np.full(x.shape[1], np.sqrt(x.shape[1])))
    if split.kind == "classification":
        model = GaussianProcessClassifier(kernel, random_state=0).fit(x, split.y)
        return lambda: Answer(chances=model.predict_proba(new_x))
    if split.kind == "counts":
        raise Unsupported("scikit-learn has no Gaussian processes for counts")
    model = GaussianProcessRegressor(kernel + WhiteKernel(), normalize_y=True, random_state=0).fit(x, split.y)
    return lambda: gaussian(split, *model.predict(new_x, return_std=True))


def linear(split):
    from sklearn.linear_model import BayesianRidge, LogisticRegression, PoissonRegressor

    x, new_x = split.numbers()
    if split.kind == "classification":
        model = LogisticRegression(max_iter=1000).fit(x, split.y)
        return lambda: Answer(chances=model.predict_proba(new_x))
    if split.kind == "counts":
        model = PoissonRegressor(max_iter=1000).fit(x, split.y)
        return lambda: poisson(split, model.predict(new_x))
    model = BayesianRidge().fit(x, split.y)
    return lambda: gaussian(split, *model.predict(new_x, return_std=True))


class Peer(NamedTuple):
    """A peer: its function, the package whose version counts, the modules to load before the clock starts, what the page says."""

    learn: Callable
    package: str
    modules: tuple
    about: str


OWN = ("sparsegp", ("sparsegp",))
LEARN = ("scikit-learn", ("sklearn.ensemble", "sklearn.gaussian_process", "sklearn.linear_model"))
PEERS = {
    "sparsegp": Peer(sparsegp, *OWN, 'all defaults but `unknown="ignore"`'),
    "sparsegp-rbf": Peer(sparsegp_rbf, *OWN, "the kernel `rbf`, all else by default"),
    "hgb": Peer(hgb, *LEARN, "HistGradientBoosting, with quantile models for the interval"),
    "lightgbm": Peer(lightgbm, "lightgbm", ("lightgbm",), "with quantile models for the interval"),
    "catboost": Peer(catboost, "catboost", ("catboost",), "`RMSEWithUncertainty`; Poisson for counts"),
    "ngboost": Peer(ngboost, "ngboost", ("ngboost",), "Normal; Poisson for counts"),
    "forest": Peer(
        forest,
        "quantile-forest",
        ("quantile_forest", "sklearn.ensemble"),
        "quantile-forest, 99 quantiles and no density; for classes scikit-learn's random forest",
    ),
    "gpboost": Peer(gpboost, "gpboost", ("gpboost",), "Vecchia, Matérn-3/2 with a lengthscale per input"),
    "sklearn-gp": Peer(sklearn_gp, *LEARN, "`ConstantKernel * RBF + WhiteKernel`, a lengthscale per input"),
    "linear": Peer(linear, *LEARN, "BayesianRidge, LogisticRegression or PoissonRegressor"),
}


def scores(split, answer):
    """Scores of a peer's answer."""
    if split.kind == "classification":
        return of_classes(split, answer.chances)
    # regressions in units of the standard deviation of the training targets
    unit = split.y.std() if split.kind == "regression" else 1.0
    error = (split.new_y - answer.mean) / unit
    found = {"rmse": float(np.sqrt(np.mean(error**2)))}
    if answer.log_density is not None:
        found["nlpd"] = float(-np.mean(answer.log_density) - np.log(unit))
    if answer.quantiles is not None:
        gap = split.new_y[:, None] - answer.quantiles
        found["crps"] = float(2 * np.mean(np.maximum(LEVELS * gap, (LEVELS - 1) * gap)) / unit)
    low, high = answer.interval
    found["coverage"] = float(np.mean((low <= split.new_y) & (split.new_y <= high)))
    found["width"] = float(np.mean(high - low) / unit)
    return found


def of_classes(split, chances):
    """Scores of probabilities of classes; calibration of the likeliest one in ten bins of equal width."""
    known = np.unique(split.y)
    own = np.searchsorted(known, split.new_y)
    if chances.shape[1] != len(known):
        chances = chances[:, known]
    likeliest, confidence = chances.argmax(1), chances.max(1)
    right = likeliest == own
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = [abs(right[bins == b].sum() - confidence[bins == b].sum()) for b in range(10)]
    chance = np.maximum(chances[np.arange(len(own)), own], 1e-15)
    return {
        "log_loss": float(-np.log(chance).mean()),
        "error": float(1 - right.mean()),
        "ece": float(sum(gaps) / len(own)),
    }


def judged(name, split):
    """Trains a peer, and judges it: its scores, and the seconds of processor time of training and predicting."""
    peer = PEERS[name]
    for module in peer.modules:
        importlib.import_module(module)
    begun = time.process_time()
    predict = peer.learn(split)
    fitted = time.process_time()
    answer = predict()
    predicted = time.process_time()
    return {**scores(split, answer), "seconds": fitted - begun, "predict_seconds": predicted - fitted}
