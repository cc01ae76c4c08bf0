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
//! entries of S that a sparse factor gives ([`SparseCholesky::inverse`]). At fixed factors the log normaliser has the slopes of E log p(f) under N(m, S): those
//! of the response form with E = S + mmᵀ in the place of rrᵀ (the formulas of [`super`], P = 1).
//!
//! A place is conditioned on its nearest rows: mean bᵀm_c and variance d + bᵀS_cc b, of which the last is ‖L⁻¹b‖² and costs what
//! lies on the way from c to the end of the factor.
//!
//! The jitter is a part of every prior variance (or a number), without which rows that follow from others leave Q without digits. Where
//! the prior has no variance it is that of the mean, whose slope is left out: it is of the size of the jitter.

use super::density::{Rows, Scratch};
use super::factored::Factored;
use super::nearest::Link;
use super::rounds::{Part, Rounds};
use super::{Block, Nearest, Plan};
use crate::error::{Error, Result};
use crate::kernels::{Cotangents, Kernel};
use crate::linalg::{
    Accum, Jitter, Mat, MatRef, Par, Pattern, SelectedInverse, SparseCholesky, gram_lower, product,
    sized, solve_lower, solve_lower_transpose,
};
use rayon::prelude::*;
use std::sync::Arc;

/// Numbers of the precisions of blocks that wait to be added, at most.
const WAITING: usize = 1 << 22;
/// Draws and places whose vectors are solved for at once.
const TOGETHER: usize = 64;
/// A row with less than this part of the mean prior variance has the jitter of the mean.
const NOTHING: f64 = 1e-12;
/// Places whose weights are kept at once.
const PLACES: usize = 8192;
/// Most numbers of a factor: 4 GiB, and as many of its inverse.
const MOST_NUMBERS: usize = 1 << 29;
const PRECISION: &str = "precision of rows given their neighbours";

/// A plan, and where the precision of its rows is not zero. Rows are in the order of the plan there.
#[derive(Debug)]
pub struct Coupled {
    plan: Arc<Plan>,
    pattern: Arc<Pattern>,
    /// The place of every row in the order.
    ranks: Vec<u32>,
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
    /// Q.
    entries: Vec<f64>,
    log_det: f64,
}

/// The function at the rows, given normal factors.
#[derive(Debug)]
pub struct Sited {
    factor: SparseCholesky,
    /// m, a number for each row.
    pub mean: Vec<f64>,
    /// log |I + Λ₂Q⁻¹|.
    pub log_det: f64,
}

impl Coupled {
    /// Finds the pattern of a plan, for a factor of each of so many functions.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the factor does not fit in memory.
    pub fn new(plan: Arc<Plan>, functions: usize) -> Result<Self> {
        Self::within(plan, MOST_NUMBERS / functions.max(1))
    }

    /// Creates the same with so many numbers in the factor, at most.
    pub(super) fn within(plan: Arc<Plan>, most: usize) -> Result<Self> {
        let mut ranks = vec![0; plan.rows()];
        plan.order().iter().enumerate().for_each(|(rank, row)| ranks[*row as usize] = rank as u32);
        let members = |block: usize| plan.block(block).rows.iter().map(|row| ranks[*row as usize]);
        let cliques: Vec<Vec<u32>> = (0..plan.blocks()).map(|own| members(own).collect()).collect();
        let pattern = Pattern::of_cliques(plan.rows(), cliques.iter().map(|own| &own[..]))?;
        if pattern.factor_entries() > most {
            return Err(Error::Invalid(format!(
                "the neighbours of {} rows need a factor of {:.1} GiB for each latent function; use fewer of them, as in \
                 `vecchia(neighbours={})`, or a sparse method such as `svgp`",
                plan.rows(),
                pattern.factor_entries() as f64 * 8.0 / (1u64 << 30) as f64,
                (plan.neighbours() / 2).max(1),
            )));
        }
        Ok(Self { plan, pattern: Arc::new(pattern), ranks })
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Estimates the multiplications of a factorisation.
    pub fn work(&self) -> f64 {
        self.pattern.work()
    }

    fn ranked(&self, rows: &[u32]) -> Vec<u32> {
        rows.iter().map(|row| self.ranks[*row as usize]).collect()
    }

    /// Returns the numbers of rows in the order of the plan.
    fn in_order(&self, values: &[f64]) -> Vec<f64> {
        self.plan.order().iter().map(|row| values[*row as usize]).collect()
    }

    /// Returns numbers in the order of the plan, row by row.
    fn by_row(&self, values: &[f64]) -> Vec<f64> {
        self.ranks.iter().map(|rank| values[*rank as usize]).collect()
    }
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
        let (pattern, plan) = (Arc::clone(&coupled.pattern), Arc::clone(&coupled.plan));
        let (mut entries, mut log_det) = (vec![0.0; pattern.entries()], 0.0);
        let (kernel, x) = (kernel.clone_box(), x.to_owned());
        let none = Mat::zeros(x.nrows(), 0);
        let rows = Rows { x: x.as_ref(), residual: none.as_ref(), noise: &added };
        rows.check()?;
        if plan.rows() != x.nrows() {
            return Err(Error::shape("rows of a plan", x.nrows().to_string(), plan.rows()));
        }
        let largest = (0..plan.blocks()).map(|own| plan.block(own).rows.len()).max().unwrap_or(1);
        let round = (WAITING / (largest * largest)).max(1);
        for first in (0..plan.blocks()).step_by(round) {
            watch()?;
            let own = (first..plan.blocks().min(first + round)).into_par_iter();
            let own = own.map_init(
                || (Factored::new(false), Mat::new()),
                |(scratch, sides), block| {
                    precision(&*kernel, plan.block(block), rows, scratch, sides)
                },
            );
            // in order, whoever was the first to finish
            for (block, (own, of_block)) in (first..).zip(own.collect::<Result<Vec<_>>>()?) {
                let rows = coupled.ranked(plan.block(block).rows);
                pattern.add(&mut entries, &rows, own.as_ref());
                log_det += of_block;
            }
        }
        Ok(Self { kernel, coupled, x, jitter, added, entries, log_det })
    }

    /// Returns the function given a factor of every row with these λ₁ and λ₂, of which the latter may be negative.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`] where no density is left.
    pub fn sited(&self, first: &[f64], second: &[f64]) -> Result<Sited> {
        let (own, mut entries) = (&*self.coupled, self.entries.clone());
        for (at, by) in own.pattern.diagonal().iter().zip(own.in_order(second)) {
            entries[*at] += by;
        }
        let factor = SparseCholesky::new(&own.pattern, &entries, PRECISION)?;
        let first = own.in_order(first);
        let mut mean = Mat::from_fn(first.len(), 1, |i, _| first[i]);
        factor.solve(&mut mean);
        let log_det = factor.log_det() - self.log_det;
        Ok(Sited { factor, mean: own.by_row(mean.col_as_slice(0)), log_det })
    }

    /// Returns the variances at the rows, diag S, with the S that [`Latent::slopes`] needs.
    ///
    /// # Errors
    /// Those of `watch`.
    pub fn variances(
        &self,
        sited: &Sited,
        watch: &dyn Fn() -> Result<()>,
    ) -> Result<(Vec<f64>, SelectedInverse)> {
        let inverse = sited.factor.inverse(watch)?;
        Ok((self.coupled.by_row(&inverse.diagonal()), inverse))
    }

    /// Returns the slopes of the log normaliser of fixed factors in the kernel's parameters.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], and those of `watch`.
    pub fn slopes(
        &self,
        sited: &Sited,
        inverse: &SelectedInverse,
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
            |(scratch, e, turned), block, part: &mut Part| {
                let n = block.rows.len();
                renew(&mut scratch.own, kernel, block, rows)?;
                sized(e, n, n);
                inverse.of_clique(&own.ranked(block.rows), e.as_mut());
                let mean = |i: usize| sited.mean[block.rows[i] as usize];
                for j in 0..n {
                    (0..n).for_each(|i| e[(i, j)] += mean(i) * mean(j));
                }
                let l = scratch.own.factor.l.as_ref();
                solve_lower(l, e.as_mut(), Par::Seq);
                sized(turned, n, n);
                turned.copy_from(e.transpose());
                solve_lower(l, turned.as_mut(), Par::Seq);
                scratch.weigh(block, 1, |_, i, j| turned[(i, j)]);
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
        Ok(Fields { nearest, coupled: self.coupled, all })
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

/// Returns V_RᵀV_R of a block, the lower triangle, and its part of log |Q|.
fn precision(
    kernel: &dyn Kernel,
    block: Block<'_>,
    rows: Rows<'_>,
    own: &mut Factored,
    sides: &mut Mat<f64>,
) -> Result<(Mat<f64>, f64)> {
    let n = block.rows.len();
    renew(own, kernel, block, rows)?;
    let l = own.factor.l.as_ref();
    let responding = || (0..n).filter(|j| block.responds[*j]);
    sized(sides, n, responding().count());
    sides.fill(0.0);
    responding().enumerate().for_each(|(at, j)| sides[(j, at)] = 1.0);
    solve_lower_transpose(l, sides.as_mut(), Par::Seq);
    let (mut all, rows) = (Mat::zeros(n, n), sides.transpose());
    gram_lower(all.as_mut(), Accum::Replace, rows, rows, 1.0, Par::Seq);
    Ok((all, -2.0 * responding().map(|j| l[(j, j)].ln()).sum::<f64>()))
}

/// Functions with the same prior, each given its factors.
#[derive(Debug)]
pub struct Fields {
    nearest: Nearest,
    coupled: Arc<Coupled>,
    all: Vec<Sited>,
}

impl Fields {
    /// Returns means, less the mean function, and variances at places (B×D), B×P each.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`].
    pub fn marginals(&self, x: MatRef<'_, f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (n, p) = (x.nrows(), self.all.len());
        let (mut means, mut variances) = (Mat::zeros(n, p), Mat::zeros(n, p));
        for start in (0..n).step_by(PLACES) {
            let links = self.nearest.links(x.subrows(start, PLACES.min(n - start)))?;
            let of = |work: &mut Mat<f64>, part: &[Link]| -> Vec<Vec<f64>> {
                let rank = |(row, b): &(u32, f64)| (self.coupled.ranks[*row as usize], *b);
                let vector = |link: &Link| link.rows.iter().map(rank).collect();
                let vectors: Vec<Vec<(u32, f64)>> = part.iter().map(vector).collect();
                self.all.iter().map(|own| own.factor.forms(&vectors, work)).collect()
            };
            let work = || Mat::zeros(self.coupled.ranks.len(), TOGETHER);
            let forms: Vec<_> = links.par_chunks(TOGETHER).map_init(work, of).collect();
            for (i, link) in links.iter().enumerate() {
                for t in 0..p {
                    means[(start + i, t)] = link.fixed[t];
                    variances[(start + i, t)] =
                        link.variance + forms[i / TOGETHER][t][i % TOGETHER];
                }
            }
        }
        Ok((means, variances))
    }

    /// Returns means (B×P), and the covariance (B×B) of every function.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`].
    pub fn joint(&self, x: MatRef<'_, f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let joint = self.nearest.joint(x)?;
        let given = joint.covariance();
        // what multiplies the function at the rows
        let mut weights = Mat::<f64>::zeros(self.coupled.ranks.len(), x.nrows());
        for link in joint.links() {
            let mut own = vec![0.0; self.coupled.ranks.len()];
            for (row, b) in &link.rows {
                own[self.coupled.ranks[*row as usize] as usize] += b;
            }
            for (earlier, b) in &link.earlier {
                let from = weights.col_as_slice(*earlier);
                own.iter_mut().zip(from).for_each(|(own, from)| *own += b * from);
            }
            weights.col_as_slice_mut(link.place).copy_from_slice(&own);
        }
        let one = |own: &Sited| {
            let w = own.factor.whitened(weights.as_ref());
            &given + product(w.transpose(), w.as_ref())
        };
        Ok((joint.mean(), self.all.iter().map(one).collect()))
    }

    /// Returns joint draws, less the mean function, of every function in turn, B×S; `normal` gives a matrix of normal numbers of a shape.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`].
    pub fn draws(
        &self,
        x: MatRef<'_, f64>,
        samples: usize,
        normal: &mut dyn FnMut(usize, usize) -> Mat<f64>,
    ) -> Result<Vec<Mat<f64>>> {
        let joint = self.nearest.joint(x)?;
        let n = self.coupled.ranks.len();
        let mut one = |own: &Sited| {
            let mut out = Mat::zeros(x.nrows(), samples);
            for first in (0..samples).step_by(TOGETHER) {
                let count = TOGETHER.min(samples - first);
                let (apart, given) = (own.factor.drawn(normal(n, count)), normal(x.nrows(), count));
                for s in 0..count {
                    let (apart, out) = (apart.col_as_slice(s), out.col_as_slice_mut(first + s));
                    let at = |row: u32| {
                        let row = row as usize;
                        own.mean[row] + apart[self.coupled.ranks[row] as usize]
                    };
                    for link in joint.links() {
                        let by_rows: f64 = link.rows.iter().map(|(row, b)| b * at(*row)).sum();
                        let by_places: f64 = link.earlier.iter().map(|(e, b)| b * out[*e]).sum();
                        let own = link.variance.sqrt() * given[(link.place, s)];
                        out[link.place] = by_rows + by_places + own;
                    }
                }
            }
            out
        };
        Ok(self.all.iter().map(&mut one).collect())
    }
}
