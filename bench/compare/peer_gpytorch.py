"""GPyTorch's models, through its standard classes."""

import contextlib

import gpytorch
import torch

torch.set_default_dtype(torch.float64)


def setup(d, job):
    """The kernel, and before it the number of threads."""
    torch.set_num_threads(job["threads"])
    torch.set_num_interop_threads(1)
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=len(d.lengthscales)))
    kernel.base_kernel.lengthscale, kernel.outputscale = torch.tensor(d.lengthscales), d.variance
    return kernel


def forward(self, x):
    return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Regression(gpytorch.models.ExactGP):
    forward = forward

    def __init__(self, d, job):
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        likelihood.noise = d.noise
        super().__init__(torch.tensor(d.X), torch.tensor(d.y[:, 0]), likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), setup(d, job)
        if job["kind"] != "gpr":
            self.covar_module = gpytorch.kernels.InducingPointKernel(
                self.covar_module, inducing_points=torch.tensor(d.Z), likelihood=likelihood
            )


class Classification(gpytorch.models.ApproximateGP):
    forward = forward

    def __init__(self, d, job):
        q = gpytorch.variational.CholeskyVariationalDistribution(len(d.Z))
        Z = torch.tensor(d.Z)
        super().__init__(gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True))
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), setup(d, job)


def regression(d, job):
    model = Regression(d, job)
    model.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    settings = contextlib.nullcontext()  # beyond 800 rows: conjugate gradients and random probes
    if job["way"] == "Cholesky":
        settings = gpytorch.settings.fast_computations(False, False, False)

    def run():
        with settings:
            model.zero_grad()
            value = mll(model(model.train_inputs[0]), model.train_targets)
            value.backward()
            return value.item() * len(d.X)  # GPyTorch divides by the number of rows

    return run


def classifier(d, job, rate):
    model, likelihood = Classification(d, job), gpytorch.likelihoods.BernoulliLikelihood()
    mll = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(d.X))
    adam = torch.optim.Adam(model.parameters(), lr=rate)
    model.train()

    def step(x, y):
        adam.zero_grad()
        loss = -mll(model(torch.from_numpy(x)), torch.from_numpy(y[:, 0]))
        loss.backward()
        adam.step()
        return loss.item()

    def latent():
        model.eval()
        with torch.no_grad():
            f = model(torch.from_numpy(d.Xtest))
            moments = f.mean, f.variance
        model.train()
        return moments

    return step, latent


def predictor(d, job):
    """All rows at once, faster than blocks here. `fast_pred_var` changes nothing for this kernel."""
    model, Xnew = Regression(d, job), torch.tensor(d.Xnew)
    model.eval()
    # By default GPyTorch caches the mean of FITC's posterior in place of the one of Titsias' bound. With
    # this setting the cache is right, and without it the variances are: it is for the cache only.
    with torch.no_grad(), gpytorch.settings.sgpr_diagonal_correction(False):
        model(Xnew[:2]).mean  # noqa: B018

    def run():
        with torch.no_grad():
            f = model(Xnew)
            return f.mean, f.variance

    return run
