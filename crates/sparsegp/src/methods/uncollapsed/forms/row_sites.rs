//! q as the prior times sites that are kept row by row: what they sum up to, and how the sums move with hyperparameters.
//!
//! γ₁ = Φλ₁ and Γ₂ = Φ diag(λ₂) Φᵀ are a pass over the rows with the sites as slopes. At fixed sites they
//! move with Φ, which adds (Sp − f) λ₁ᵀ + 2 Y Φ diag(λ₂) to Φ̄, with Y = ½(S − 2SH)S − ½S − ½{(Sp − f)eᵀ +
//! e(Sp − f)ᵀ} in the notation of [`crate::variational::sites`].

use super::{FollowingRows, Form, Pull, Stepping};
use crate::data::Source;
use crate::engine::{
    Block, Engine, Job, Passed, Plan, Pointwise, Process, ProcessSums, Slope, Slopes, Spread, Want,
};
use crate::error::{Error, Result};
use crate::inverse_free::Solved;
use crate::kernels::inducing::AtPoints;
use crate::linalg::{Mat, column};
use crate::means::{Mean, Zero};
use crate::methods::uncollapsed::prepared::{Prepared, statistics};
use crate::methods::uncollapsed::rows::LikelihoodRows;
use crate::methods::uncollapsed::step::Step;
use crate::model::Model;
use crate::variational::sites::{At, Tying};
use crate::variational::{Statistics, Variational};
use std::sync::{Mutex, PoisonError};

/// Returns the numbers of a latent function.
fn own(values: &[f64], latent: usize, rows: usize) -> &[f64] {
    &values[latent * rows..(latent + 1) * rows]
}

/// Sites as slopes, of latent functions from one on.
struct AsSlopes<'a> {
    q: &'a Variational,
    from: usize,
}

impl Pointwise for AsSlopes<'_> {
    fn plan(&self) -> Plan<'_> {
        Plan { variances: false, c: Some(Slope::Constant(0.0)), ..Plan::by_rows(0) }
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let (n, start) = (self.q.points(), block.rows.start);
        let (first, second) = (self.q.first.value(), self.q.second.value());
        for l in 0..out.a.ncols() {
            for i in 0..out.a.nrows() {
                out.a[(i, l)] = own(first, self.from + l, n)[start + i];
                out.b[(i, l)] = own(second, self.from + l, n)[start + i];
            }
        }
    }
}

/// What a step of untied sites needs of every row: ∂ℓ/∂μ, ∂ℓ/∂s and μ without the mean function.
#[derive(Debug, Default)]
pub(in super::super) struct Seen {
    a: Vec<f64>,
    b: Vec<f64>,
    mu: Vec<f64>,
}

/// Keeps what it sees.
pub(in super::super) struct Recording<'a> {
    pub(in super::super) inner: &'a LikelihoodRows<'a>,
    pub(in super::super) mean: &'a dyn Mean,
    pub(in super::super) rows: usize,
    pub(in super::super) seen: &'a Mutex<Seen>,
}

impl Pointwise for Recording<'_> {
    fn plan(&self) -> Plan<'_> {
        // no latent function is left out
        Plan { counts: None, ..self.inner.needs() }
    }

    fn rows(&self, block: Block<'_>, mut out: Slopes<'_>) {
        let (n, latents, start) = (block.mu.nrows(), block.mu.ncols(), block.rows.start);
        let mut offset = Mat::zeros(n, latents);
        self.mean.evaluate(block.rows.x, offset.as_mut());
        let mu = Mat::from_fn(n, latents, |i, l| block.mu[(i, l)] - offset[(i, l)]);
        {
            let out = Slopes {
                a: out.a.as_mut(),
                b: out.b.as_mut(),
                c: out.c.as_mut(),
                sums: &mut *out.sums,
                scratch: &mut *out.scratch,
            };
            self.inner.rows(block, out);
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Seen { a, b, mu: kept } = &mut *seen;
        for values in [&mut *a, &mut *b, &mut *kept] {
            values.resize(self.rows * latents, 0.0);
        }
        for l in 0..latents {
            let at = l * self.rows + start..l * self.rows + start + n;
            a[at.clone()].copy_from_slice(column(out.a.as_ref(), l));
            b[at.clone()].copy_from_slice(column(out.b.as_ref(), l));
            kept[at].copy_from_slice(column(mu.as_ref(), l));
        }
    }
}

impl Seen {
    /// Sets λ ← (1 − ρ)λ + ρ(a − 2bμ, −2b) of the rows at these places among all.
    pub(in super::super) fn step_at(&self, q: &mut Variational, places: &[usize], rate: f64) {
        let (all, some) = (q.points(), places.len());
        let (first, second) = (q.first.value_mut(), q.second.value_mut());
        for (at, ((a, b), mu)) in self.a.iter().zip(&self.b).zip(&self.mu).enumerate() {
            let place = at / some * all + places[at % some];
            first[place] += rate * (a - 2.0 * b * mu - first[place]);
            second[place] += rate * (-2.0 * b - second[place]);
        }
    }

    /// Does [`SiteWork::centre`](crate::variational::sites::SiteWork::centre) of the sites: where
    /// latent functions are q(f) = Φᵀe with e = Φd, d = λ₁ − λ₂μ, they move together by the average
    /// of d.
    pub(in super::super) fn centre(&mut self, q: &mut Variational, each: usize) {
        let n = q.points();
        let (first, second) = (q.first.value_mut(), q.second.value());
        for group in 0..first.len() / (n * each) {
            for i in 0..n {
                let places = (group * each..(group + 1) * each).map(|l| l * n + i);
                let mean =
                    |of: &dyn Fn(usize) -> f64| places.clone().map(of).sum::<f64>() / each as f64;
                let d = mean(&|at| first[at] - second[at] * self.mu[at]);
                let shift = mean(&|at| self.mu[at]);
                for at in places {
                    first[at] -= d + second[at] * shift;
                    self.mu[at] -= shift;
                }
            }
        }
    }

    /// Does the same for all rows.
    pub(in super::super) fn step(&self, q: &mut Variational, rate: f64) {
        let places: Vec<usize> = (0..q.points()).collect();
        self.step_at(q, &places, rate);
    }
}

/// Sites of all rows.
pub(in super::super) struct RowSites;

impl Form for RowSites {
    fn prepare(
        &self,
        own: &mut Prepared,
        model: &Model,
        _: &Variational,
        _: Option<FollowingRows<'_>>,
    ) -> Result<Option<Solved>> {
        // q itself takes a pass
        own.basis.renew(own.kuu.as_ref(), model.jitter, "Kuu")?;
        Ok(None)
    }

    fn prepare_from_rows(
        &self,
        processes: &mut [Prepared],
        memory: &mut Passed,
        (model, q): (&Model, &Variational),
        (engine, data): (&dyn Engine, &dyn Source),
    ) -> Result<()> {
        let (own, rows) = (q.points(), data.rows());
        if own != rows {
            return Err(Error::Invalid(format!(
                "untied sites are of all {own} rows at once, not of {rows}; for minibatches use another tying"
            )));
        }
        let zeros: Vec<Mat<f64>> =
            processes.iter().map(|p| Mat::zeros(p.z.nrows(), p.latents.len())).collect();
        let inducing: Vec<AtPoints<'_>> = processes.iter().map(|p| p.inducing(model)).collect();
        let mut all: Vec<Process<'_>> = Vec::new();
        for ((p, inducing), zero) in processes.iter().zip(&inducing).zip(&zeros) {
            let spread = Spread::Roots(&[]);
            all.push(Process { mean: zero.as_ref(), spread, ..p.whitened_process(inducing) });
        }
        let job = Job {
            processes: &all,
            mean: &Zero,
            pointwise: &AsSlopes { q, from: 0 },
            scale: 1.0,
            want: Want::Statistics,
        };
        engine.pass(&job, data, memory)?;
        drop(all);
        for (own, sums) in processes.iter_mut().zip(&memory.processes) {
            own.sites.posterior_of(statistics(sums), &mut own.parts)?;
        }
        Ok(())
    }

    /// Accepts any number: there are as many as rows.
    fn check_points(&self, _: &Variational, _: usize) -> Result<()> {
        Ok(())
    }

    fn mixes(&self) -> bool {
        false
    }

    fn clips(&self) -> bool {
        true
    }

    fn sees_rows(&self) -> bool {
        true
    }

    fn pull(
        &self,
        own: &mut Prepared,
        _: &Variational,
        sums: &mut ProcessSums,
        _: Pull,
        _: &mut [f64],
    ) {
        own.with_psi(sums, |own, sums, psi, _| {
            own.sites.add_psi(Tying::Untied, &own.parts, statistics(sums), psi.as_mut());
        });
    }

    fn add_gradients(
        &self,
        step: &mut Step,
        (model, q): (&Model, &Variational),
        (engine, data): (&dyn Engine, &dyn Source),
    ) -> Result<()> {
        let mut passed = Passed::default();
        for (own, sums) in step.processes.iter_mut().zip(&mut step.passed.processes) {
            for (at, latent) in own.latents.clone().enumerate() {
                let (mean, y) = own.sites.back(&own.parts, statistics(sums), at);
                let spread = Spread::Shared(Some(y.as_ref()));
                let inducing = own.inducing(model);
                let process =
                    Process { mean: mean.as_ref(), spread, ..own.whitened_process(&inducing) };
                let job = Job {
                    processes: &[process],
                    mean: &Zero,
                    pointwise: &AsSlopes { q, from: latent },
                    scale: 1.0,
                    want: Want::GradientsAlone,
                };
                engine.pass(&job, data, &mut passed)?;
                let found = &passed.processes[0].inducing;
                sums.inducing.iter_mut().zip(found).for_each(|(t, v)| *t += v);
            }
        }
        Ok(())
    }

    fn step(&self, q: &mut Variational, how: Stepping<'_>) -> Result<()> {
        how.seen.step(q, how.rate);
        Ok(())
    }

    fn centre(&self, own: &mut Prepared, q: &mut Variational, seen: &mut Seen, each: usize) -> f64 {
        // first: it reads what is stored
        seen.centre(q, each);
        own.centre(q, Tying::Untied, each)
    }

    /// Ties them by their natural parameters.
    fn tied(&self, step: &Step, q: &Variational) -> Option<Variational> {
        let m = step.processes.first().map_or(0, |p| p.z.nrows());
        let mut tied = Variational::sites(m, q.latents(), Tying::Natural);
        for (own, sums) in step.processes.iter().zip(&step.of_sites.processes) {
            // a whole step from any q to sites with a = γ₁ at q = 0 and b = −½ diag(Γ₂)
            let mut at_zero = own.parts.clone();
            at_zero.mean.fill(0.0);
            let grams: Vec<Mat<f64>> = sums.grams.iter().map(|g| faer::Scale(-0.5) * g).collect();
            let rows = Statistics { grams: &grams, ..statistics(sums) };
            let (latents, factor) = (own.latents.clone(), own.basis.factor());
            let mut work = own.sites.clone();
            let at = At { tying: Tying::Natural, latents, factor };
            work.step(&mut tied, &at, &at_zero, rows, 1.0);
        }
        tied.v = q.v.clone();
        Some(tied)
    }
}
