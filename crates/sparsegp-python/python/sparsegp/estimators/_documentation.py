"""What the constructors of all estimators take, and what all of them have learnt."""

from __future__ import annotations

from typing import Any, TypeVar

C = TypeVar("C", bound=type[Any])

_PARAMETERS = """
    Parameters
    ----------
    kernel : str, Kernel or list of these
        Covariance function: an object of :mod:`sparsegp.kernels`, or its short form such as
        ``"matern52 + linear"``. A list has one for each latent function. ``"auto"`` tries several on a sample of the rows
        and takes the best (``kernel_choice_``).
    kernel_units : {"model", "data"}
        Units of the values given in the kernel, their bounds and priors: the model's scale, that of standardised columns
        unless ``standardise=False``, or the data's units, as in ``periodic(period=365.25)`` for days.
    method : str
        ``"auto"``, or a name in ``sparsegp.registry()["methods"]``: ``"exact"``, ``"titsias2009"``,
        ``"spherical"``, ``"titsias2025"``, ``"fitc"``, ``"pep(alpha=0.5)"``, ``"svgp"``, ``"svgp2025"``,
        ``"svgp-spherical"``, ``"tsvgp"``, ``"lsvgp"``, ``"rsvgp"``, ``"tvgp"``, ``"deep(layers=3)"`` (options:
        ``layers``, ``width``, ``kind``, ``samples``, ``functions``, ``skip``, ``kernels``); for likelihoods with local
        variables also ``"cavi"``, ``"cavi-full"``, ``"svi"``, ``"gibbs"``, ``"gibbs-sparse"``, of a series
        ``"cavi-markov"`` and ``"gibbs-markov"``; draws from the posterior under any
        likelihood by ``"nuts"``, ``"nuts-sparse"`` (with inducing points), ``"hmc"``, ``"ess"``, ``"metropolis"``, with local variables beside f
        ``"nuts-augmented"``, ``"hmc-augmented"``; ``"gpf"`` draws from the Gaussian of
        a particle flow. ``"auto"`` is
        ``"exact"`` for Gaussian noise and at most 4300 rows, ``"titsias2025"`` for more (for many rows after
        minibatches of ``"svgp2025"``), and for other likelihoods ``"tsvgp"`` on all rows, or ``"svgp"`` by
        minibatches where that costs less.
    likelihood : str or Likelihood
        Observation model: an object of :mod:`sparsegp.likelihoods` or its short form.
    mean : str or Mean, optional
        ``"zero"``, ``"constant"`` or ``"linear"``, or one of your own (:class:`sparsegp.means.Custom`).
    season : str, float or sequence of these, optional
        Lengths after which a term of the kernel repeats itself: ``"1y"``, ``"1w"``, ``"12h"`` of the column that holds dates, a
        number such as ``24`` in the units of the only input, or with the name of the input ``"day=1y"``.
    holidays : frame or mapping, optional
        Days with their own effects, each an input of 0 and 1 beside the only column of dates: a
        frame with the columns ``date`` and ``name`` (and ``before`` and ``after``, days around them
        that have effects too), a dict of names with their dates, or a calendar of the package
        ``holidays``. One variance of the effects is learnt. The model keeps the calendar; days
        after its end are predicted as days without a holiday, with a warning.
    missing : {"refuse", "drop", "keep", "mean", "indicator", "category"}
        What to do with missing cells (NaN, None, NaT). ``"drop"`` leaves their rows out. ``"keep"`` keeps rows of which a target
        is missing: of several targets the others count (methods that train q, such as ``"tsvgp"``). ``"mean"`` fills inputs: a
        number or date by the mean of its column, a category by one more category; ``"indicator"`` does the same and adds an
        input ``column=missing``, 1 where a number or date is missing; ``"category"`` fills categories only. With the first two
        of these rows without a target are left out. The model fills the same columns of rows to predict; a cell of a column
        that was complete in training is refused.
    unknown : {"refuse", "ignore"}
        What to do with categories that no training row had, in rows to predict. ``"ignore"`` takes them for one more category, as
        far from the others as these are from each other (of two, half of each), and warns of how many there are. It can be set
        after ``fit``. A column of labels for ``coregion`` refuses them in either case.
    places : sequence of pairs, optional
        Columns of latitude and longitude in degrees that are places on Earth: ``[("lat", "long")]`` of a frame, ``[(0, 1)]`` of an
        array. Both become a point of the sphere, so that distances are kilometres, also across the date line and near the poles,
        and have one lengthscale. What uses the model takes the columns as they are.
    log_inputs : str or sequence of str
        Inputs to learn from by their logarithms: names (``x0``, ``x1``, … of arrays), ``"none"``, or ``"auto"`` for positive
        ones whose values run over powers of ten, where a sample of the rows is explained better by that. Below the small end
        of the values of training asinh continues the logarithm, so that every number can be predicted at. ``log_inputs_``
        names those that were taken.
    target_transform : {"none", "log", "yeo-johnson", "auto"}
        Function of the targets that is learnt, under Gaussian noise; predictions, intervals, densities, draws and scores are of
        the targets. ``"yeo-johnson"`` takes the power that a sample of the rows asks for, ``"auto"`` the best of all
        (``target_transform_``).
    n_inducing : int, optional
        Number of inducing points; by default 512, for methods that train q a quarter of the rows up to
        200, then about 7 times their square root, from 50 to 512; 100 in every layer of ``"deep"``; never more than
        there are rows.
    inducing : str or array of shape (n_inducing, n_features)
        How inducing points are chosen: ``"kmeans"``, ``"random"``, ``"greedy-variance"``, ``"greedy-elbo"``
        (by the bound, for Gaussian noise), ``"k-dpp"`` (rows that repel each other),
        ``"oips(0.8)"`` (rows with correlations below that), ``"grid"`` (for few inputs), or these points, in the
        units of X.
    fixed : sequence of str
        Parameters to keep as they are, by path or group: ``"inducing.points"``,
        ``"likelihood.variance"``, ``"kernel"``.
    initial : dict, optional
        Values of parameters to start from (or, if fixed, to keep) by path, on the model's scale.
    standardise : bool
        Whether inputs and, where the likelihood allows, targets get mean 0 and variance 1 inside the
        model. Predictions are in the data's units in any case.
    n_restarts_optimizer : int
        Train from this many additional starts, whose hyperparameters are drawn from their priors, or over a wide range
        about the plain start; the best objective wins.
    optimiser : {"lbfgs", "adam"}
        For training on all rows at once.
    max_iter : int
        Most iterations of that.
    tol : float
        It ends where ten iterations of L-BFGS together have raised the objective by no more than this part of its
        size (or nats per target, if that is less) and the gradient promises no more: hardly anything changes in the predictions. Smaller numbers ask for more digits of the hyperparameters.
    full_batch : bool
        Whether methods that could train by minibatches see all rows at once.
    batch_size : int, optional
        Rows of a minibatch; by default 1024, for ``"rsvgp"`` 100.
    epochs : int, optional
        Passes over the rows of minibatch training; by default 100, more for few rows, and for ``"deep"`` as many as make
        5000 steps.
    learning_rate : float, optional
        Learning rate of Adam; by default 0.03 for minibatches (0.01 for ``"deep"``), 0.01 for all rows at once.
    natural_rate : float, optional
        Size of natural-gradient steps of q, from 0 (none: Adam on q too) to 1.
    classes_per_step : int, optional
        For the method ``"svi"`` with many classes: how many of them, redrawn for every
        minibatch, move in a step, which is the cheaper for it; by default all.
    sampling : dict, optional
        For the methods that draw (``"nuts"``, ``"hmc"``, ``"ess"``, ``"gibbs"`` and their kin, ``"gpf"``): ``chains`` (4), ``draws`` of every chain (500),
        ``burn_in`` sweeps (200), sweeps for every draw, ``thin`` (1), ``particles`` of ``"gpf"`` (ten for each variable), with inducing points ``law``
        (``"variational"`` or ``"fitc"``), and ``hyperparameters`` (False): whether those that are not fixed are
        sampled too, under their priors or, where there are none, weak ones about their starting values. Predictions
        average over all draws, of a large model over as many as take 512 MiB (a warning says how many).
    early_stopping : float
        Fraction of the rows to put aside; training, which is by minibatches then, ends when these are
        predicted no better for ``patience`` epochs. 0 for none.
    patience : int
        See ``early_stopping``.
    online : bool or dict
        Whether later calls of ``partial_fit`` are updates, which keep what all rows before said and leave kernel and noise as
        the first call found them (see ``update``), in place of further training. A dict has the options of ``update``:
        ``correlation``, ``most_points``, ``forget``, ``train``, ``train_points`` and ``keep_rows``. The first call fits with inducing points (100 by default).
    pilot : int
        Most random rows that starting values are judged by (of a series up to twice as many, in windows of neighbours):
        several starts get a few iterations each, and training continues from the best (``start_`` says which). 0 takes the
        plain start unseen.
    lengthscale_prior : bool
        Whether the lengthscales of several inputs have a weak log-normal prior in training, with its mode at √D
        standard deviations; not those that have a value or their own prior. ``objective_`` is
        without it.
    hyperparameters : {"auto", "plug-in", "laplace", "nuts"}
        What predictions do about hyperparameters that few rows leave open: take the values that training found for the
        truth (``"plug-in"``), or average over settings that stand for their posterior, about its mode (``"laplace"``, for
        the methods ``"exact"`` and ``"tvgp"``) or by chains (``"nuts"``, likewise, and many times slower). ``"auto"`` averages by ``"laplace"`` for at most
        300 rows and 64 hyperparameters of exact inference. Leaving rows out and ``kernel_`` are those of the best values.
    precision : {"double", "mixed"}
        What products of rows are made in while a model with inducing points is trained. ``"mixed"`` takes 24 bits for them,
        which is up to twice as fast with many inducing points. Some rows are passed in both precisions before and after: where
        the bound loses digits, the fit is in double precision and a warning says so. ``objective_``, but for the estimate of
        layers, is in double precision, and so are predictions unless ``predict`` is asked for others. For methods with sums
        over rows only, such as ``"titsias2025"``, ``"svgp"`` and ``"deep"``.
    relative_weights : bool
        Whether ``sample_weight`` says how much rows matter beside each other: then it is divided by its mean. Without it
        a row of weight 2 counts as two.
    jitter : float, optional
        Fraction of the mean variance that is added to the diagonal of covariances of inducing points.
    checkpoint : str or path, optional
        File to which training by minibatches, or chains, write their state, and from which they
        resume. If it can no longer be written, a warning says so and the training continues.
    time_limit : float, optional
        Seconds after which the training ends, preparation included, with the best found so far: ``stopped_``
        says so. It is looked at between evaluations; taking over the data comes on top. Rates of minibatches have fallen by then, so that such a
        training does not repeat to the bit. With ``checkpoint`` the next call of ``fit`` resumes.
    random_state : int, RandomState instance or None
        Seed of everything random; the same seed gives the same bits on any number of threads.
    verbose : int
        Whether to show progress.
    callback : callable, optional
        Called with a dictionary of every event of the training (``event["event"]`` is ``"iteration"``,
        ``"batch"``, …); returning True ends the training with the best state, raising an exception too.
"""

_ATTRIBUTES = """
    Attributes
    ----------
    kernel_ : Kernel or list of Kernel
        With the values learnt, on the model's (standardised) scale.
    averaged_ : dict or None
        Where predictions average over hyperparameters: the number of ``settings``, of ``components`` that they make, and the
        ``effective`` share of the points that were weighed, near 1 where their posterior is near a normal one.
    precision_ : {"double", "mixed"}
        What the training ended in, whatever was asked for with ``precision``.
    log_inputs_ : list of str
        Inputs whose logarithms were learnt from.
    kernel_choice_ : dict or None
        With ``kernel="auto"``: the specification that was taken (``kernel``), why (``reason``), the number of ``rows`` that it was
        judged on, and the ``candidates``, each with ``kernel``, ``evidence``, ``parameters`` and ``score``, the best first.
    findings_ : list of dict
        What the rows say against the likelihood, each with its ``name`` (``"tails"``, ``"spread"``, ``"skew"``, ``"shares"``,
        ``"counts"``, ``"dispersion"`` or ``"zeros"``), ``target``, ``text``, ``remedies`` and, where it was asked, the ``gain`` in
        nats a row that a density of the first remedy's kind has. They are warnings, too.
    target_transform_ : None, str or dict
        The function of the targets that was learnt: ``"log"``, or ``{"yeo-johnson": {...}}`` with its ``lambda``; a list for
        several targets.
    likelihood_ : Likelihood
        With the values learnt, on the model's scale.
    parameters_ : dict
        Values by path, in the data's units where they have one.
    method_ : str
        The method that was used; ``reason_`` says why.
    objective_ : float
        Log evidence or bound of the training rows, in the data's units.
    trace_ : dict of arrays
        ``"iteration"``, ``"objective"``, ``"held_out"`` (mean log density of the rows put aside; both in
        the data's units), ``"seconds"`` and more, one number per iteration (epoch).
    n_iter_ : int
        Iterations made; ``converged_`` and ``stopped_`` tell how they ended.
    start_ : list of (str, float)
        The starts that were judged with their objectives after a few iterations on some of the rows, the one taken
        first; empty where there was nothing to judge.
    inducing_points_ : array of shape (n_inducing, n_features) or None
        In the units of X.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
"""


def document(cls: C) -> C:
    """Says of a class what all of them have in common."""
    cls.__doc__ = (cls.__doc__ or "") + _PARAMETERS + _ATTRIBUTES
    return cls
