//! One pass over rows at a model's q.

use super::forms::{self, Form, pseudo::Following, row_sites::Recording};
use super::mixed::MixedRows;
use super::prepared::{Prepared, prepare};
use super::rows::{LikelihoodRows, sum};
use super::step::Step;
use super::{Uncollapsed, variational};
use crate::data::Source;
use crate::engine::{Engine, Job, Pointwise, Process, Want};
use crate::error::{Error, Result};
use crate::likelihoods::mixing_shape;
use crate::linalg::{Mat, Precision};
use crate::means::{Mean, Zero};
use crate::model::{Diagnostics, Model, finite};
use std::sync::PoisonError;

impl Uncollapsed {
    /// Makes one pass over `data` at the model's parameters.
    ///
    /// # Errors
    /// As for [`crate::methods::Method::evaluate`].
    pub fn step(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
        want: Want,
    ) -> Result<Step> {
        let mut step = Step::default();
        self.renew(&mut step, model, engine, data, want)?;
        Ok(step)
    }

    /// Ties the sites of a model, if it has untied ones, by their natural parameters: q(u) stays what
    /// it is, and stands without the rows.
    ///
    /// # Errors
    /// As for [`crate::methods::Method::evaluate`].
    pub fn tie(&self, model: &mut Model, engine: &dyn Engine, data: &dyn Source) -> Result<()> {
        if let Some(q) = model.q.as_ref().filter(|q| forms::of(q).sees_rows()) {
            let step = self.step(model, engine, data, Want::Value)?;
            if let Some(tied) = forms::of(q).tied(&step, q) {
                model.q = Some(tied);
            }
        }
        Ok(())
    }

    /// Does the same in the memory of an earlier step. After an error the step holds nothing of
    /// use.
    ///
    /// # Errors
    /// As for [`crate::methods::Method::evaluate`].
    pub fn renew(
        &self,
        step: &mut Step,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
        want: Want,
    ) -> Result<()> {
        self.pass(step, model, engine, [data, data], want)
    }

    /// Returns whether r + s may be computed by V only, whose entries are too large for single
    /// precision.
    fn goes_through(&self, engine: &dyn Engine) -> bool {
        engine.precision() == Precision::Double && self.bound.equal_slopes()
    }

    /// Moves only the untied sites of some rows, by a step of size `rate` (Adam et al. 2021,
    /// without the factor N/B: a site is visited once in a while, and stays meanwhile). `all` are
    /// the rows of the sites, `some` those at `places` among them.
    ///
    /// # Errors
    /// As for [`Uncollapsed::renew`]; [`Error::Invalid`] if sites are tied, or for other places.
    pub fn visit_rows(
        &self,
        step: &mut Step,
        model: &mut Model,
        engine: &dyn Engine,
        (all, some, places): (&dyn Source, &dyn Source, &[usize]),
        rate: f64,
    ) -> Result<()> {
        let fits = places.len() == some.rows() && places.iter().all(|place| *place < all.rows());
        if !forms::of(variational(model)?).sees_rows() || !fits {
            return Err(Error::Invalid(
                "rows are visited by their places among untied sites".into(),
            ));
        }
        self.pass(step, model, engine, [all, some], Want::Statistics)?;
        let Some(q) = &mut model.q else { return variational(model).map(|_| ()) };
        step.seen.get_mut().unwrap_or_else(PoisonError::into_inner).step_at(q, places, rate);
        Ok(())
    }

    /// Makes one pass over rows, at the q of untied sites of others.
    fn pass(
        &self,
        step: &mut Step,
        model: &Model,
        engine: &dyn Engine,
        [of_sites, data]: [&dyn Source; 2],
        want: Want,
    ) -> Result<()> {
        self.prepare_step(step, model, data, want, None)?;
        let q = variational(model)?;
        let memory = &mut step.of_sites;
        forms::of(q).prepare_from_rows(
            &mut step.processes,
            memory,
            (model, q),
            (engine, of_sites),
        )?;
        self.sum(step, model, engine, data, want)
    }

    /// Does what comes before the rows.
    pub(super) fn prepare_step(
        &self,
        step: &mut Step,
        model: &Model,
        data: &dyn Source,
        want: Want,
        following: Option<&Following>,
    ) -> Result<()> {
        self.bound.check(&*model.likelihood)?;
        self.check_mixing(model, Some(data.outputs()))?;
        let q = variational(model)?;
        let latents = model.latents(data.outputs());
        if q.latents() != latents {
            return Err(Error::Shape {
                what: "q.mu".into(),
                expected: format!("{latents} columns, one per latent function"),
                found: format!("{}", q.latents()),
            });
        }
        self.check_shared(model)?;
        step.check_choice(model)?;
        step.clipped = forms::of(q).clips() && want == Want::Statistics;
        let following = following.map(|how| (how, Some(data)));
        step.solved = prepare(model, want.gradients(), following, &mut step.processes)?;
        Ok(())
    }

    /// Makes the pass over the rows.
    pub(super) fn sum(
        &self,
        step: &mut Step,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
        want: Want,
    ) -> Result<()> {
        let q = variational(model)?;
        let latents = q.latents();
        let form = forms::of(q);
        let Step { processes, v, passed, seen, clipped, chosen, .. } = step;
        v.clear();
        let mixing = model.likelihood.mixing();
        // one for every latent function that the likelihood sees
        let seen_by_rows = mixing.map_or(latents, |w| mixing_shape(w).0);
        let factor = |l: usize| if self.bound.has_factors() { q.factor_of(l) } else { 1.0 };
        v.extend((0..seen_by_rows).map(factor));
        let rows = LikelihoodRows {
            likelihood: &*model.likelihood,
            bound: self.bound,
            v,
            params: model.likelihood.num_params(),
            // R-SVGP's φᵀφ may be more than the prior variance: what is left of E is in s
            rounding: if form.overshoots() { f64::INFINITY } else { 1e-8 * least(processes) },
            // where only sites are moved: they stay precisions
            most: if *clipped { -0.5 * q.floor } else { f64::INFINITY },
            chosen: chosen.as_deref(),
            // they are of all rows
            ratios: match want {
                Want::Value => self.bound.closed_form(&*model.likelihood),
                _ => None,
            },
        };
        let by_rows = processes.iter().all(|p| p.by_rows(form, &rows, data.rows()));
        let want = match want {
            Want::Adjoints { .. } if !by_rows => Want::Gradients,
            want => want,
        };
        let products = want == Want::Gradients && chosen.is_none() && self.goes_through(engine);
        let (through, n) = (products && form.goes_through(), data.rows());
        processes.iter_mut().for_each(|own| own.prepare_through(through && !own.few(n)));
        let (scale, mean, inputs) = (data.scale(), &*model.mean, data.inputs());
        let recording = Recording { inner: &rows, mean, rows: data.rows(), seen };
        let mixed = mixing.map(|mixing| MixedRows { inner: &rows, mixing, mean, inputs });
        let (pointwise, mean): (&dyn Pointwise, &dyn Mean) = match &mixed {
            // the mean is that of the targets
            Some(mixed) => (mixed, &Zero),
            None if form.sees_rows() => (&recording, mean),
            None => (&rows, mean),
        };
        match processes.as_slice() {
            // the usual case, which needs no list
            [one] => {
                let inducing = one.inducing(model);
                let processes = &[form.process(one, &inducing)];
                engine.pass(&Job { processes, mean, pointwise, scale, want }, data, passed)
            }
            many => {
                let inducing: Vec<_> = many.iter().map(|p| p.inducing(model)).collect();
                let pairs = many.iter().zip(&inducing);
                let all: Vec<Process<'_>> = pairs.map(|(p, u)| form.process(p, u)).collect();
                let processes = &all[..];
                engine.pass(&Job { processes, mean, pointwise, scale, want }, data, passed)
            }
        }?;
        let mut value = passed.sums[sum::VALUE];
        value -= processes.iter().map(|p| form.kl(p)).sum::<f64>();
        step.updated = rows.updated(&passed.sums);
        for (l, v) in rows.v.iter().enumerate() {
            value -= 0.5 * passed.sums[rows.observed() + l] * (v - v.ln() - 1.0);
        }
        step.diagnostics = diagnostics(processes, form, &passed.sums);
        step.value = finite(value, "the bound")?;
        match want {
            Want::Gradients => form.add_gradients(step, (model, q), (engine, data)),
            _ => Ok(()),
        }
    }
}

/// Returns the least mean of prior variances at the inducing points of a process.
fn least(processes: &[Prepared]) -> f64 {
    let mean =
        |k: &Mat<f64>| (0..k.nrows()).map(|i| k[(i, i)]).sum::<f64>() / k.nrows().max(1) as f64;
    processes.iter().map(|p| mean(&p.kuu)).fold(f64::INFINITY, f64::min)
}

fn diagnostics(processes: &[Prepared], form: &dyn Form, sums: &[f64]) -> Diagnostics {
    Diagnostics {
        jitter: processes.iter().map(|p| p.basis.factor().jitter).fold(0.0, f64::max),
        unexplained: sums[sum::UNEXPLAINED],
        prior_variance: None,
        negative: sums[sum::NEGATIVE] as usize,
        residual: processes.first().and_then(|p| form.residual(p)),
        ..Diagnostics::default()
    }
}
