"""GPyTorch's models, through its standard classes."""

import contextlib
import sys

import gpytorch
import torch

LARGE = "LargeBatchVariationalStrategy"  # not in older versions; made for GPUs


def floats(name):
    torch.set_default_dtype(getattr(torch, name))


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
        strategy = gpytorch.variational.VariationalStrategy
        if job["way"] == LARGE:
            if not hasattr(gpytorch.variational, LARGE):
                sys.exit(f"GPyTorch {gpytorch.__version__} has no {LARGE}")
            strategy = getattr(gpytorch.variational, LARGE)
        q = gpytorch.variational.CholeskyVariationalDistribution(len(d.Z))
        super().__init__(strategy(self, torch.tensor(d.Z), q, learn_inducing_locations=True))
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


class Latent(gpytorch.models.gplvm.bayesian_gplvm.BayesianGPLVM):
    """Its documented pieces: a point of q(X) is drawn, and q(u) is trained beside it."""

    def __init__(self, d, job):
        (n, q), p = d.mean.shape, d.Y.shape[1]
        batch = torch.Size([p])
        Z = torch.tensor(d.Z).repeat(p, 1, 1)
        of_u = gpytorch.variational.CholeskyVariationalDistribution(len(d.Z), batch_shape=batch)
        strategy = gpytorch.variational.VariationalStrategy(self, Z, of_u, learn_inducing_locations=True)
        prior = gpytorch.priors.NormalPrior(torch.zeros(n, q), torch.ones(n, q))
        X = gpytorch.models.gplvm.VariationalLatentVariable(n, p, q, torch.tensor(d.mean), prior)
        super().__init__(X, strategy)
        self.mean_module = gpytorch.means.ZeroMean(batch_shape=batch)
        self.covar_module = setup(d, job)

    forward = forward


def gplvm_step(d, job):
    model, likelihood = (
        Latent(d, job),
        gpytorch.likelihoods.GaussianLikelihood(batch_shape=torch.Size([d.Y.shape[1]])),
    )
    mll, Y = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(d.Y)), torch.tensor(d.Y).T
    model.train()

    def run():
        model.zero_grad()
        loss = -mll(model(model.sample_latent_variable()), Y).sum()
        loss.backward()
        return loss.item()

    return run


class Layer(gpytorch.models.deep_gps.DeepGPLayer):
    """With one kernel and one set of inducing points for all functions, which is faster than one for each."""

    forward = forward

    def __init__(self, d, outputs):
        inputs = d.X.shape[1]
        batch = torch.Size([] if outputs is None else [outputs])
        q = gpytorch.variational.CholeskyVariationalDistribution(len(d.Z), batch_shape=batch)
        strategy = gpytorch.variational.VariationalStrategy(
            self, torch.tensor(d.Z), q, learn_inducing_locations=True
        )
        super().__init__(strategy, inputs, outputs)
        self.mean_module = gpytorch.means.ZeroMean() if outputs is None else gpytorch.means.LinearMean(inputs)
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=inputs))


class Deep(gpytorch.models.deep_gps.DeepGP):
    def __init__(self, d, layers):
        super().__init__()
        self.hidden = torch.nn.ModuleList(Layer(d, d.X.shape[1]) for _ in range(layers - 1))
        self.last = Layer(d, None)

    def forward(self, x):
        for layer in self.hidden:
            x = layer(x)
        return self.last(x)


def deep_step(d, job):
    setup(d, job)
    model, likelihood = Deep(d, job["layers"]), gpytorch.likelihoods.GaussianLikelihood()
    mll = gpytorch.mlls.DeepApproximateMLL(gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(d.X)))
    adam = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    X, y = torch.tensor(d.X), torch.tensor(d.y[:, 0])
    model.train()

    def run():
        rows = torch.randperm(len(X))[: job["b"]]
        with gpytorch.settings.num_likelihood_samples(1):
            adam.zero_grad()
            loss = -mll(model(X[rows]), y[rows])
            loss.backward()
            adam.step()
        return loss.item()

    return run


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
