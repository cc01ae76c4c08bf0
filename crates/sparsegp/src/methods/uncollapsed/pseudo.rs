//! L-SVGP and R-SVGP among the uncollapsed bounds: the same pass over the rows, at features φ = Lᵀk.
//!
//! The mathematics is in [`crate::inverse_free`]; what is here brings it together with models, and lets T
//! follow the other parameters.

use super::{Prepared, Step, Uncollapsed, variational};
use crate::data::Source;
use crate::engine::{Engine, Process, Want};
use crate::error::{Error, Result};
use crate::inverse_free::{
    Adjoints, Enough, LSpace, Solved, SolverOptions, Tilde, Traces, probes, variance_slacks,
};
use crate::kernels::{Kernel, Tape};
use crate::linalg::{Jitter, Mat, MatRef, dot};
use crate::model::Model;
use crate::variational::{Form, Variational};
use serde::{Deserialize, Serialize};

/// How R-SVGP's T follows the other parameters in training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Following {
    /// Steps of L and when they end.
    pub solver: SolverOptions,
    /// With Gaussian noise: end them too where Σ Δᵢ/2σ²n, a bound on what the variances of the batch cost per
    /// row, is no more than this (Cortinovis et al., Proposition 3).
    pub slack: Option<f64>,
    /// Traces of the bound.
    pub traces: Traces,
    /// Seed of the probes.
    pub seed: u64,
    /// Number of the evaluation, which decides the probes with the seed.
    pub evaluation: u64,
}

/// What pseudo-observations take of memory beside [`LSpace`].
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) lspace: LSpace,
    /// L before steps.
    root: Option<Mat<f64>>,
}

/// Only an absolute jitter is added: neither method needs one.
pub(crate) fn jitter(model: &Model) -> f64 {
    match model.jitter {
        Jitter::Absolute(jitter) => jitter,
        Jitter::Relative(_) => 0.0,
    }
}

/// Rows of a variance criterion.
struct Slack<'a> {
    kernel: &'a dyn Kernel,
    z: MatRef<'a, f64>,
    data: &'a dyn Source,
    /// s = min λ, σ² and the bound on what a row may cost.
    smallest: f64,
    noise: f64,
    most: f64,
}

impl Slack<'_> {
    /// Whether Σ Δᵢ/2σ²n is small enough.
    fn holds(&self, l: MatRef<f64>, product: MatRef<f64>) -> Result<bool> {
        let (mut sum, mut count) = (0.0, 0.0);
        let (mut features, mut slack, mut slacks) = (Mat::new(), Mat::new(), Vec::new());
        self.data.for_each_chunk(512, &mut |rows| {
            let mut k = Mat::zeros(rows.x.nrows(), self.z.nrows());
            self.kernel.evaluate(rows.x, Some(self.z), k.as_mut(), &mut Tape::off());
            let (k, memory) = (k.as_ref(), (&mut features, &mut slack));
            variance_slacks(k, l, product, self.smallest, memory.0, memory.1, &mut slacks);
            sum += slacks.iter().sum::<f64>();
            count += slacks.len() as f64;
            Ok(())
        })?;
        Ok(sum <= 2.0 * self.noise * count * self.most)
    }
}

impl Prepared {
    /// What of pseudo-observations comes before the rows; Kuu is there.
    pub(super) fn prepare_pseudo(
        &mut self,
        model: &Model,
        q: &Variational,
        following: Option<(&Following, Option<&dyn Source>)>,
    ) -> Result<Option<Solved>> {
        let tilde =
            Tilde { kuu: self.kuu.as_ref(), jitter: jitter(model), lambda: q.second.value() };
        let Memory { lspace, root } = &mut self.pseudo;
        let m = q.pseudo_targets();
        let preconditioner = match q.form {
            Form::Relaxed(preconditioner) => preconditioner,
            _ => {
                let preconditioner = q.pseudo().unwrap_or_default();
                return lspace.likelihood(tilde, m, preconditioner).map(|()| None);
            }
        };
        let root = root.get_or_insert_with(Mat::new);
        q.read_t_root(root)?;
        let Some((how, data)) = following else {
            lspace.set_probes(Default::default(), |probes| *probes = Mat::new());
            lspace.relaxed(tilde, root.as_ref(), m, preconditioner);
            return Ok(None);
        };
        let count = how.traces.probes(q.points());
        lspace.set_probes(how.traces.estimate(), |out| {
            probes(q.points(), count, how.seed, how.evaluation, out);
        });
        let noise = model.likelihood.as_gaussian().map(|g| g.variance.scalar());
        let criterion = how.slack.zip(noise).zip(data);
        let slack = criterion.map(|((most, noise), data)| Slack {
            kernel: &*model.kernels[self.kernel],
            z: self.z.as_ref(),
            data,
            smallest: q.second.value().iter().copied().fold(f64::INFINITY, f64::min),
            noise,
            most,
        });
        let mut holds = slack.map(|slack| {
            move |l: MatRef<'_, f64>, product: MatRef<'_, f64>| slack.holds(l, product)
        });
        let solved = lspace.settled(
            tilde,
            root.as_ref(),
            m,
            preconditioner,
            &how.solver,
            holds.as_mut().map(|holds| holds as Enough<'_>),
        )?;
        Ok(Some(solved))
    }

    /// As the engine wants it.
    pub(super) fn pseudo_process<'a>(&'a self, model: &'a Model) -> Process<'a> {
        let lspace = &self.pseudo.lspace;
        Process {
            kernel: &*model.kernels[self.kernel],
            z: self.z.as_ref(),
            basis: lspace.root(),
            mean: lspace.mean(),
            spread: lspace.spread(),
        }
    }

    /// ‖E‖_F/√M of R-SVGP.
    pub(super) fn pseudo_residual(&self) -> Option<f64> {
        let e = self.pseudo.lspace.residual()?;
        Some((dot(e, e) / e.nrows().max(1) as f64).sqrt())
    }

    /// K̄uu without the part through Kuf, and the gradient of q's parameters.
    pub(super) fn pull_pseudo(
        &mut self,
        q: &Variational,
        phi_a: MatRef<f64>,
        gram: MatRef<f64>,
        gradient: &mut [f64],
    ) {
        let (mean, rest) = gradient.split_at_mut(q.first.len());
        let (lambda, rest) = rest.split_at_mut(q.second.len());
        // T follows: where no optimiser moves it, nobody asks for its gradient
        let wanted = q.root.as_ref().is_some_and(|root| !root.frozen);
        let root = if wanted { Some(rest) } else { None };
        let kuu = &mut self.kuu_bar;
        self.pseudo.lspace.pull(-1.0, phi_a, gram, Adjoints { kuu, mean, lambda, root });
    }
}

impl Uncollapsed {
    /// Whether T of this model follows its other parameters: R-SVGP, unless an optimiser moves L itself.
    pub fn follows(&self, model: &Model) -> bool {
        model.q.as_ref().and_then(|q| q.root.as_ref()).is_some_and(|root| root.frozen)
    }

    /// As [`Uncollapsed::renew`], after natural-gradient steps of R-SVGP's L at the model's other parameters,
    /// which the model keeps. What the last step saw of K̃ serves the bound too. Where T does not follow
    /// ([`Uncollapsed::follows`]) it is [`Uncollapsed::renew`].
    ///
    /// # Errors
    /// As for [`Uncollapsed::renew`]; [`Error::NonFinite`] if Kuu + Λ has no inverse to working precision.
    pub fn follow(
        &self,
        step: &mut Step,
        model: &mut Model,
        engine: &dyn Engine,
        data: &dyn Source,
        want: Want,
        how: &Following,
    ) -> Result<()> {
        if !self.follows(model) {
            return self.renew(step, model, engine, data, want);
        }
        self.prepare_step(step, model, data, want, Some(how))?;
        if let (Some(q), [one]) = (&mut model.q, &step.processes[..])
            && let Some(l) = one.pseudo.lspace.lower()
        {
            q.set_t_root(l);
        }
        self.sum(step, model, engine, data, want)
    }

    /// Brings R-SVGP's T up to date with the other parameters; nothing for other methods.
    ///
    /// # Errors
    /// As for [`Uncollapsed::follow`].
    pub fn settle(&self, model: &mut Model, options: &SolverOptions) -> Result<Option<Solved>> {
        let Some(q) = model.q.as_ref().filter(|q| q.root.is_some()) else { return Ok(None) };
        self.check_pseudo(model)?;
        let mut own = Prepared { latents: 0..q.latents(), ..Prepared::default() };
        own.covariances(model, false)?;
        let how = Following { solver: *options, ..Following::default() };
        let solved = own.prepare_pseudo(model, q, Some((&how, None)))?;
        if let (Some(q), Some(l)) = (&mut model.q, own.pseudo.lspace.lower()) {
            q.set_t_root(l);
        }
        Ok(solved)
    }

    /// Refuses what pseudo-observations cannot be of.
    pub(super) fn check_pseudo(&self, model: &Model) -> Result<()> {
        let kept = model.q.as_ref().is_none_or(|q| q.pseudo().is_some());
        if kept && (model.kernels.len() > 1 || model.inducing.len() > 1) {
            return Err(Error::Invalid(format!(
                "the latent functions of `{}` share kernel and inducing points; for {} kernels use `svgp`",
                self.name,
                model.kernels.len()
            )));
        }
        Ok(())
    }
}

/// Inducing points and the parts of q(f) = N(k(x, Z) a, k(x, x) − φᵀφ + φᵀEφ) of a model whose q is kept as pseudo-observations.
pub(crate) fn prediction(model: &Model) -> Result<(Mat<f64>, LSpace)> {
    let q = variational(model)?;
    let mut own = Prepared { latents: 0..q.latents(), ..Prepared::default() };
    own.covariances(model, false)?;
    own.prepare_pseudo(model, q, None)?;
    Ok((own.z, own.pseudo.lspace))
}
