"""scikit-learn's models."""

from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from worker import fit


def regression(d, job):
    kernel = ConstantKernel(d.variance) * RBF(d.lengthscales) + WhiteKernel(d.noise)
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(d.X, d.y[:, 0])
    theta = model.kernel_.theta
    return lambda: model.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)[0]


def regressor(d, job):
    kernel = ConstantKernel(d.variance) * RBF(d.lengthscales, (1e-3, 1e5)) + WhiteKernel(d.noise, (1e-8, 1e2))
    model = GaussianProcessRegressor(kernel).fit(d.X, d.y[:, 0])

    def predict(x):
        mean, deviation = model.predict(x, return_std=True)
        return mean, deviation**2

    return predict


def classify(d, job):
    return fit(d, lambda: GaussianProcessClassifier(ConstantKernel(d.variance) * RBF(d.lengthscales)))
