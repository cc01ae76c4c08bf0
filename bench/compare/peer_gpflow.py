"""GPflow's models: a `tf.function` each, with or without `jit_compile`."""

import gpflow
import numpy as np
import tensorflow as tf
import tf_keras

BLOCK = 2000  # rows of a prediction: faster than 10 000, and than all at once


def floats(name):
    gpflow.config.set_default_float(getattr(np, name))


def compiled(function, job):
    return tf.function(function, jit_compile="jit_compile" in job["way"])


def setup(d, job):
    """The kernel, and before it the number of threads."""
    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(job["threads"])
    return gpflow.kernels.SquaredExponential(variance=d.variance, lengthscales=d.lengthscales)


def value_of(model, job):
    """Evaluates the objective with its gradient, and returns the objective."""

    def both():
        with tf.GradientTape() as tape:
            loss = model.training_loss()
        return loss, tape.gradient(loss, model.trainable_variables)

    both = compiled(both, job)
    return lambda: -both()[0].numpy()


def regression(d, job):
    kernel = setup(d, job)
    if job["kind"] == "gpr":
        model = gpflow.models.GPR((d.X, d.y), kernel, noise_variance=d.noise)
    else:
        model = gpflow.models.SGPR((d.X, d.y), kernel, d.Z, noise_variance=d.noise)
    return value_of(model, job)


def gplvm_step(d, job):
    kernel = setup(d, job)  # before any tensor
    model = gpflow.models.BayesianGPLVM(
        tf.constant(d.Y), tf.constant(d.mean), tf.constant(d.sd2), kernel, inducing_variable=d.Z.copy()
    )
    model.likelihood.variance.assign(d.noise)
    return value_of(model, job)


def regressor(d, job):
    model = gpflow.models.GPR((d.X, d.y), setup(d, job), noise_variance=d.noise)
    loss = compiled(model.training_loss, job)
    options = {"maxiter": 1000}
    gpflow.optimizers.Scipy().minimize(loss, model.trainable_variables, options=options, compile=False)
    return lambda x: [a.numpy() for a in model.predict_y(x)]


def classifier(d, job, rate):
    model = gpflow.models.SVGP(setup(d, job), gpflow.likelihoods.Bernoulli(), d.Z, num_data=len(d.X))
    natural = "natural gradients" in job["way"]
    q, of_q = [(model.q_mu, model.q_sqrt)], gpflow.optimizers.NaturalGradient(gamma=0.5)
    if natural:
        gpflow.set_trainable(model.q_mu, False)
        gpflow.set_trainable(model.q_sqrt, False)
    adam = tf_keras.optimizers.Adam(rate)
    adam.build(model.trainable_variables)

    def update(x, y):
        if natural:
            of_q.minimize(lambda: model.training_loss((x, y)), q)
        with tf.GradientTape() as tape:
            loss = model.training_loss((x, y))
        gradient = tape.gradient(loss, model.trainable_variables)
        adam.apply_gradients(zip(gradient, model.trainable_variables))
        return loss

    update, predict = compiled(update, job), tf.function(model.predict_f)

    def step(x, y):
        return update(tf.constant(x), tf.constant(y)).numpy()

    return step, lambda: [a.numpy() for a in predict(tf.constant(d.Xtest))]


def predictor(d, job):
    model = gpflow.models.SGPR((d.X, d.y), setup(d, job), d.Z, noise_variance=d.noise)
    posterior = model.posterior()  # caches what does not depend on the new rows
    predict = compiled(lambda x: posterior.predict_f(x), job)
    blocks = [tf.constant(d.Xnew[i : i + BLOCK]) for i in range(0, len(d.Xnew), BLOCK)]

    def run():
        out = [predict(x) for x in blocks]
        return [np.concatenate([o[i].numpy() for o in out]) for i in (0, 1)]

    return run
