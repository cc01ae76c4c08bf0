//! The latent form: the function is conditioned on its own values at rows, and not on noisy targets.
//!
//! With the factors of every block at s = 0, V_R the rows of L⁻¹ that respond, the prior of f at the rows is normal with a
//! sparse precision (Datta, Banerjee, Finley & Gelfand 2016; Katzfuss & Guinness 2021),
//!
//! ```text
//! Q = Σ_blocks V_RᵀV_R      log|Q| = −2 Σⱼ log Lⱼⱼ
//! ```
//!
//! so that normal factors exp(λ₁ᵢfᵢ − ½λ₂ᵢfᵢ²) of the rows make it N(m, S) with S = (Q + Λ₂)⁻¹, m = Sλ₁, exactly: rows far away
//! and weak factors are not lost, as they are to a few neighbours of noisy targets. Marginals and the pairs of a block are
//! entries of S that a sparse factor gives ([`SparseCholesky::inverse`]), or draws, where the factor would cost too much
//! ([`super::draws`]). At fixed factors the log normaliser has the slopes of E log p(f) under N(m, S): those
//! of the response form with E = S + mmᵀ in the place of rrᵀ (the formulas of [`super`], P = 1).
//!
//! A place is conditioned on its nearest rows: mean bᵀm_c and variance d + bᵀS_cc b, of which the last is ‖L⁻¹b‖² and costs what
//! lies on the way from c to the end of the factor.
//!
//! The jitter is a part of every prior variance (or a number), without which rows that follow from others leave Q without digits. Where
//! the prior has no variance it is that of the mean, whose slope is left out: it is of the size of the jitter.

use super::coupled::Prepared;
use super::density::{Rows, Scratch};
use super::draws::{DRAWS, DRAWS_OF_PREDICTIONS, Draws, Found};
use super::factored::Factored;
use super::fields::Fields;
use super::law::{Law, Pairs};
use super::root::Root;
use super::rounds::{Part, Rounds};
use super::{Block, Coupled, Nearest};
use crate::error::{Error, Result};
use crate::kernels::{Cotangents, Kernel};
use crate::linalg::{
    Accum, Jitter, Mat, MatRef, Par, Pattern, SparseCholesky, gram_lower, sized, solve_lower,
    solve_lower_transpose,
};
use rayon::prelude::*;
use std::sync::Arc;

/// Numbers of the precisions of blocks that wait to be added, at most.
const WAITING: usize = 1 << 22;
/// A row with less than this part of the mean prior variance has the jitter of the mean.
const NOTHING: f64 = 1e-12;
const PRECISION: &str = "precision of rows given their neighbours";

/// The precision of rows.
#[derive(Debug)]
enum Precision {
    /// Its numbers, and log |Q|.
    Entries(Arc<Pattern>, Vec<f64>, f64),
    Root(Arc<Root>),
}

/// The prior of a function at rows.
#[derive(Debug)]
pub struct Latent {
    kernel: Box<dyn Kernel>,
    coupled: Arc<Coupled>,
    x: Mat<f64>,
    jitter: Jitter,
    /// What is added to the prior variances.
    added: Vec<f64>,
    precision: Precision,
    /// Draws that describe the law of the rows where no factor does.
    draws: usize,
}

/// Covariances of rows that are neighbours, given all factors.
pub struct Covariances<'a>(Box<dyn Pairs + 'a>);

/// The function at the rows, given normal factors.
#[derive(Debug)]
pub struct Sited {
    pub(super) law: Box<dyn Law>,
    /// m, a number for each row.
    pub mean: Vec<f64>,
    /// log |I + Λ₂Q⁻¹|.
    pub log_det: f64,
    /// Its standard error, where it averages over draws.
    pub noise: f64,
}

impl Latent {
    /// Finds the prior of a function at rows (N×D). `watch` is asked now and then, and may end it.
    ///
    /// # Errors
    /// [`Error::Shape`] for a plan of other rows, [`Error::NotPositiveDefinite`], and those of `watch`.
    pub fn new(
        kernel: &dyn Kernel,
        coupled: Arc<Coupled>,
        x: MatRef<'_, f64>,
        jitter: Jitter,
        watch: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let mut added = vec![0.0; x.nrows()];
        kernel.diag(x, &mut added);
        match jitter {
            Jitter::Relative(part) => {
                let mean = added.iter().sum::<f64>() / added.len().max(1) as f64;
                let raised = |own: f64| if own > NOTHING * mean { own } else { mean };
                added.iter_mut().for_each(|own| *own = part * raised(*own));
            }
            Jitter::Absolute(all) => added.fill(all),
        }
        let plan = Arc::clone(&coupled.plan);
        let (kernel, x) = (kernel.clone_box(), x.to_owned());
        let none = Mat::zeros(x.nrows(), 0);
        let rows = Rows { x: x.as_ref(), residual: none.as_ref(), noise: &added };
        rows.check()?;
        if plan.rows() != x.nrows() {
            return Err(Error::shape("rows of a plan", x.nrows().to_string(), plan.rows()));
        }
        let precision = Precision::new(&*kernel, &coupled, rows, watch)?;
        Ok(Self { kernel, coupled, x, jitter, added, precision, draws: DRAWS })
    }

    /// Takes as many draws as predictions are to have, where no factor describes the law of the rows.
    #[must_use]
    pub fn for_predictions(self) -> Self {
        Self { draws: DRAWS_OF_PREDICTIONS, ..self }
    }

    /// Returns the mean of the function given factors as of [`Latent::sited`]: with conjugate gradients a small part of its work.
    ///
    /// # Errors
    /// As for [`Latent::sited`].
    pub fn mean(&self, first: &[f64], second: &[f64]) -> Result<Vec<f64>> {
        let own = &*self.coupled;
        match &self.precision {
            Precision::Entries(..) => Ok(self.sited(first, second)?.mean),
            Precision::Root(root) => {
                let mean = Draws::mean(root, &own.in_order(first), &own.in_order(second))?;
                Ok(own.by_row(&mean))
            }
        }
    }

    /// Returns the function given a factor of every row with these λ₁ and λ₂, of which the latter may be negative.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] where no density is left, and with conjugate gradients for a negative λ₂.
    pub fn sited(&self, first: &[f64], second: &[f64]) -> Result<Sited> {
        let own = &*self.coupled;
        let (first, second) = (own.in_order(first), own.in_order(second));
        match &self.precision {
            Precision::Entries(pattern, entries, log_det) => {
                let mut entries = entries.clone();
                for (at, by) in pattern.diagonal().iter().zip(second) {
                    entries[*at] += by;
                }
                let factor = SparseCholesky::new(pattern, &entries, PRECISION)?;
                let mut mean = Mat::from_fn(first.len(), 1, |i, _| first[i]);
                factor.solve(&mut mean);
                let (mean, log_det) =
                    (own.by_row(mean.col_as_slice(0)), factor.log_det() - log_det);
                Ok(Sited { law: Box::new(factor), mean, log_det, noise: 0.0 })
            }
            Precision::Root(root) => {
                let Found { mean, log_det, noise, law } = self.drawn(root, &first, &second)?;
                Ok(Sited { law: Box::new(law), mean: own.by_row(&mean), log_det, noise })
            }
        }
    }

    /// Returns what draws find for factors in the order of the plan.
    fn drawn(&self, root: &Arc<Root>, first: &[f64], second: &[f64]) -> Result<Found> {
        let mut prior = vec![0.0; self.x.nrows()];
        self.kernel.diag(self.x.as_ref(), &mut prior);
        prior.iter_mut().zip(&self.added).for_each(|(own, added)| *own += added);
        let prior = self.coupled.in_order(&prior);
        Draws::find(
            root,
            &self.coupled.plan,
            &prior,
            (first, second),
            (self.draws, self.draws == DRAWS),
        )
    }

    /// Returns the law itself that draws describe, for factors of the rows.
    #[cfg(test)]
    pub(super) fn draws(&self, first: &[f64], second: &[f64]) -> Draws {
        let own = &*self.coupled;
        let Precision::Root(root) = &self.precision else { panic!("no conjugate gradients") };
        self.drawn(root, &own.in_order(first), &own.in_order(second)).unwrap().law
    }

    /// Returns the variances at the rows, diag S, with the S that [`Latent::slopes`] needs.
    ///
    /// # Errors
    /// Those of `watch`, and where conjugate gradients do not end.
    pub fn variances<'a>(
        &self,
        sited: &'a Sited,
        watch: &dyn Fn() -> Result<()>,
    ) -> Result<(Vec<f64>, Covariances<'a>)> {
        let pairs = sited.law.pairs(watch)?;
        Ok((self.coupled.by_row(&pairs.diagonal()), Covariances(pairs)))
    }

    /// Returns the slopes of the log normaliser of fixed factors in the kernel's parameters.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], and those of `watch`.
    pub fn slopes(
        &self,
        sited: &Sited,
        covariances: &Covariances<'_>,
        watch: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<f64>> {
        let (kernel, own) = (&*self.kernel, &*self.coupled);
        let params = kernel.num_params();
        let rounds = Rounds { plan: &own.plan, rows: self.x.nrows(), params, width: 1, watch };
        let none = Mat::zeros(self.x.nrows(), 0);
        let rows = Rows { x: self.x.as_ref(), residual: none.as_ref(), noise: &self.added };
        let mut slopes = vec![0.0; params];
        let part_of_prior = match self.jitter {
            Jitter::Relative(part) => 1.0 + part,
            Jitter::Absolute(_) => 1.0,
        };
        rounds.run(
            || (Scratch::new(true), Mat::new(), Mat::new()),
            |(scratch, e, mean), block, part: &mut Part| {
                let n = block.rows.len();
                renew(&mut scratch.own, kernel, block, rows)?;
                sized(e, n, n);
                sized(mean, n, 1);
                let l = scratch.own.factor.l.as_ref();
                covariances.0.whitened(&own.ranked(block.rows), l, e.as_mut())?;
                (0..n).for_each(|i| mean[(i, 0)] = sited.mean[block.rows[i] as usize]);
                solve_lower(l, mean.as_mut(), Par::Seq);
                scratch.weigh(block, 1, |_, i, j| e[(i, j)] + mean[(i, 0)] * mean[(j, 0)]);
                (0..n).for_each(|i| scratch.k_bar[(i, i)] *= part_of_prior);
                let mut sinks = Cotangents { params: &mut part.kernel, x: None, z: None };
                let Scratch { own, k_bar, .. } = scratch;
                kernel.vjp(
                    own.x.as_ref(),
                    None,
                    own.k.as_ref(),
                    k_bar.as_mut(),
                    &mut own.tape,
                    &mut sinks,
                );
                Ok(())
            },
            &mut |part| slopes.iter_mut().zip(&part.kernel).for_each(|(sum, own)| *sum += own),
        )?;
        Ok(slopes)
    }

    /// Returns what predicts functions with this prior, given their factors, at other places.
    ///
    /// # Errors
    /// As for [`Nearest::new`].
    pub fn into_fields(self, all: Vec<Sited>) -> Result<Fields> {
        let n = self.x.nrows();
        let mean = Mat::from_fn(n, all.len(), |i, p| all[p].mean[i]);
        let rows = Rows { x: self.x.as_ref(), residual: mean.as_ref(), noise: &self.added };
        let neighbours = self.coupled.plan.neighbours();
        let nearest = Nearest::new(self.kernel, rows, neighbours)?;
        Ok(Fields::new(nearest, self.coupled, all))
    }
}

/// Computes the covariance of the function at the rows of a block.
fn renew(own: &mut Factored, kernel: &dyn Kernel, block: Block<'_>, rows: Rows<'_>) -> Result<()> {
    let outcome = own.renew(kernel, block.rows, rows, Mat::<f64>::new().as_ref());
    outcome.map_err(|error| match error {
        Error::NotPositiveDefinite { size, pivot, jitter, .. } => Error::NotPositiveDefinite {
            matrix: "K of neighbours",
            size,
            pivot,
            jitter,
            hint: "likely causes: rows that nearly follow from others under a very smooth kernel; a rougher kernel, such as \
                   matern52, helps",
        },
        other => other,
    })
}

impl Precision {
    fn new(
        kernel: &dyn Kernel,
        coupled: &Coupled,
        rows: Rows<'_>,
        watch: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        match &coupled.prepared {
            Prepared::Cholesky(pattern) => {
                let (mut entries, mut log_det) = (vec![0.0; pattern.entries()], 0.0);
                let make = |block: Block<'_>, sides: Mat<f64>| {
                    let n = block.rows.len();
                    let (mut all, v) = (Mat::zeros(n, n), sides.transpose());
                    gram_lower(all.as_mut(), Accum::Replace, v, v, 1.0, Par::Seq);
                    let logs = responding(block).enumerate().map(|(side, j)| sides[(j, side)].ln());
                    (all, 2.0 * logs.sum::<f64>())
                };
                roots(kernel, coupled, rows, watch, &make, &mut |block, (own, of_block)| {
                    pattern.add(&mut entries, &coupled.ranked(block.rows), own.as_ref());
                    log_det += of_block;
                })?;
                Ok(Self::Entries(Arc::clone(pattern), entries, log_det))
            }
            Prepared::Iterative(pattern) => {
                let mut values = vec![0.0; pattern.entries()];
                let make = |_: Block<'_>, sides: Mat<f64>| sides;
                roots(kernel, coupled, rows, watch, &make, &mut |block, sides| {
                    for (side, j) in responding(block).enumerate() {
                        let range = pattern.range(coupled.rank(block.rows[j]) as usize);
                        values[range].copy_from_slice(&sides.col_as_slice(side)[..=j]);
                    }
                })?;
                Ok(Self::Root(Arc::new(Root::new(Arc::clone(pattern), values))))
            }
        }
    }
}

/// Returns which rows of a block respond.
fn responding(block: Block<'_>) -> impl Iterator<Item = usize> {
    (0..block.rows.len()).filter(move |j| block.responds[*j])
}

/// Calls `add` with what `make` makes of V_Rᵀ of every block, in order.
fn roots<T: Send>(
    kernel: &dyn Kernel,
    coupled: &Coupled,
    rows: Rows<'_>,
    watch: &dyn Fn() -> Result<()>,
    make: &(impl Fn(Block<'_>, Mat<f64>) -> T + Sync),
    add: &mut dyn FnMut(Block<'_>, T),
) -> Result<()> {
    let plan = &*coupled.plan;
    let largest = (0..plan.blocks()).map(|own| plan.block(own).rows.len()).max().unwrap_or(1);
    let round = (WAITING / (largest * largest)).max(1);
    for first in (0..plan.blocks()).step_by(round) {
        watch()?;
        let own = (first..plan.blocks().min(first + round)).into_par_iter();
        let own = own.map_init(
            || Factored::new(false),
            |own, block| {
                let block = plan.block(block);
                renew(own, kernel, block, rows)?;
                let mut sides = Mat::zeros(block.rows.len(), responding(block).count());
                responding(block).enumerate().for_each(|(at, j)| sides[(j, at)] = 1.0);
                solve_lower_transpose(own.factor.l.as_ref(), sides.as_mut(), Par::Seq);
                Ok(make(block, sides))
            },
        );
        // in order, whoever was the first to finish
        for (block, own) in (first..).zip(own.collect::<Result<Vec<_>>>()?) {
            add(plan.block(block), own);
        }
    }
    Ok(())
}
