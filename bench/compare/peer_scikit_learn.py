"""scikit-learn's models."""

from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from worker import fit


def regression(d, job):
    kernel = ConstantKernel(d.variance) * RBF(d.lengthscales) + WhiteKernel(d.noise)
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(d.X, d.y[:, 0])
    theta = model.kernel_.theta
    return lambda: model.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)[0]


def classify(d, job):
    return fit(d, lambda: GaussianProcessClassifier(ConstantKernel(d.variance) * RBF(d.lengthscales)))
