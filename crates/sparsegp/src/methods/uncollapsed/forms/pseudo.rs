//! L-SVGP and R-SVGP among the uncollapsed bounds: the same pass over the rows, at features φ = Lᵀk.
//!
//! The mathematics is in [`crate::inverse_free`]; what is here brings it together with models, and lets T
//! follow the other parameters.

use super::{FollowingRows, Form, Pull, Stepping};
use crate::data::Source;
use crate::engine::{Engine, Process, ProcessSums, Want};
use crate::error::{Error, Result};
use crate::inverse_free::{
    Adjoints, Enough, LSpace, Solved, SolverOptions, Tilde, Traces, probes, variance_slacks,
};
use crate::kernels::Tape;
use crate::kernels::inducing::{AtPoints, Inducing};
use crate::linalg::{Mat, MatRef, dot};
use crate::methods::uncollapsed::Uncollapsed;
use crate::methods::uncollapsed::prepared::{Prepared, at};
use crate::methods::uncollapsed::step::Step;
use crate::model::Model;
use crate::variational::{self, Variational};
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
pub(in super::super) struct Memory {
    pub(in super::super) lspace: LSpace,
    /// L before steps.
    root: Option<Mat<f64>>,
}

/// Rows of a variance criterion.
struct Slack<'a> {
    inducing: AtPoints<'a>,
    data: &'a dyn Source,
    /// s = min λ, σ² and the bound on what a row may cost.
    smallest: f64,
    noise: f64,
    most: f64,
}

impl Slack<'_> {
    /// Returns whether Σ Δᵢ/2σ²n is small enough.
    fn holds(&self, l: MatRef<f64>, product: MatRef<f64>) -> Result<bool> {
        let (mut sum, mut count) = (0.0, 0.0);
        let (mut features, mut slack, mut slacks) = (Mat::new(), Mat::new(), Vec::new());
        self.data.for_each_chunk(512, &mut |rows| {
            let mut k = Mat::zeros(rows.x.nrows(), self.inducing.len());
            self.inducing.kuf(rows.x, k.as_mut(), &mut Tape::off());
            let (k, memory) = (k.as_ref(), (&mut features, &mut slack));
            variance_slacks(k, l, product, self.smallest, memory.0, memory.1, &mut slacks);
            sum += slacks.iter().sum::<f64>();
            count += slacks.len() as f64;
            Ok(())
        })?;
        Ok(sum <= 2.0 * self.noise * count * self.most)
    }
}

/// Pseudo-observations, with an auxiliary T or without.
pub(in super::super) struct Pseudo {
    pub(super) relaxed: bool,
}

impl Form for Pseudo {
    fn prepare(
        &self,
        own: &mut Prepared,
        model: &Model,
        q: &Variational,
        following: Option<FollowingRows<'_>>,
    ) -> Result<Option<Solved>> {
        let jitter = model.jitter.absolute();
        let Memory { lspace, root } = &mut own.pseudo;
        let root = root.get_or_insert_with(Mat::new);
        let (variational::Form::Relaxed(preconditioner), Some((how, data))) = (q.form, following)
        else {
            q.read_lspace(own.kuu.as_ref(), jitter, root, lspace)?;
            return Ok(None);
        };
        let tilde = Tilde { kuu: own.kuu.as_ref(), jitter, lambda: q.second.value() };
        q.read_t_root(root)?;
        let count = how.traces.probes(q.points());
        lspace.set_probes(how.traces.estimate(), |out| {
            probes(q.points(), count, how.seed, how.evaluation, out);
        });
        let noise = model.likelihood.as_gaussian().map(|g| g.variance.scalar());
        let criterion = how.slack.zip(noise).zip(data);
        let slack = criterion.map(|((most, noise), data)| Slack {
            inducing: at(model, own.kernel, &own.z),
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
            q.pseudo_targets(),
            preconditioner,
            &how.solver,
            holds.as_mut().map(|holds| holds as Enough<'_>),
        )?;
        Ok(Some(solved))
    }

    fn process<'a>(&self, own: &'a Prepared, inducing: &'a dyn Inducing) -> Process<'a> {
        let lspace = &own.pseudo.lspace;
        Process { inducing, basis: lspace.root(), mean: lspace.mean(), spread: lspace.spread() }
    }

    fn kl(&self, own: &Prepared) -> f64 {
        own.pseudo.lspace.kl()
    }

    fn mixes(&self) -> bool {
        false
    }

    fn takes_adjoints(&self) -> bool {
        true
    }

    fn goes_through(&self) -> bool {
        false
    }

    /// Returns `true` for R-SVGP: what is left of E is in s.
    fn overshoots(&self) -> bool {
        self.relaxed
    }

    fn residual(&self, own: &Prepared) -> Option<f64> {
        let e = own.pseudo.lspace.residual()?;
        Some((dot(e, e) / e.nrows().max(1) as f64).sqrt())
    }

    fn pull(
        &self,
        own: &mut Prepared,
        q: &Variational,
        sums: &mut ProcessSums,
        _: Pull,
        gradient: &mut [f64],
    ) {
        let (mean, rest) = gradient.split_at_mut(q.first.len());
        let (lambda, rest) = rest.split_at_mut(q.second.len());
        // T follows: where no optimiser moves it, nobody asks for its gradient
        let wanted = q.root.as_ref().is_some_and(|root| !root.frozen);
        let root = if wanted { Some(rest) } else { None };
        let kuu = &mut own.kuu_bar;
        let (phi_a, gram) = (sums.phi_a.as_ref(), sums.grams[0].as_ref());
        own.pseudo.lspace.pull(-1.0, phi_a, gram, Adjoints { kuu, mean, lambda, root });
    }

    fn check_steps(&self) -> Result<()> {
        Err(no_steps())
    }

    fn step(&self, _: &mut Variational, _: Stepping<'_>) -> Result<()> {
        Err(no_steps())
    }

    fn takes_guesses(&self, _: &Variational) -> bool {
        false
    }
}

fn no_steps() -> Error {
    Error::Invalid(
        "pseudo-observations move by Adam: there are no natural-gradient steps of them".into(),
    )
}

impl Uncollapsed {
    /// Returns whether T of this model follows its other parameters: R-SVGP, unless an optimiser
    /// moves L itself.
    pub fn follows(&self, model: &Model) -> bool {
        model.q.as_ref().and_then(|q| q.root.as_ref()).is_some_and(|root| root.frozen)
    }

    /// Does what [`Uncollapsed::renew`] does, after natural-gradient steps of R-SVGP's L at the
    /// model's other parameters, which the model keeps. What the last step saw of K̃ serves the
    /// bound too. Where T does not follow ([`Uncollapsed::follows`]) it is [`Uncollapsed::renew`].
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
        self.check_shared(model)?;
        let mut own = Prepared { latents: 0..q.latents(), ..Prepared::default() };
        own.covariances(model, false)?;
        let how = Following { solver: *options, ..Following::default() };
        let solved = Pseudo { relaxed: true }.prepare(&mut own, model, q, Some((&how, None)))?;
        if let (Some(q), Some(l)) = (&mut model.q, own.pseudo.lspace.lower()) {
            q.set_t_root(l);
        }
        Ok(solved)
    }
}
