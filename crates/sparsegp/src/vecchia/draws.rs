//! The law of rows by draws, where a sparse factor of their precision would cost too much.
//!
//! With A = Q + Λ, Q = VᵀV ([`Root`]), everything that a factor would give exactly follows from systems that conjugate
//! gradients solve ([`super::gradients`]):
//!
//! - **Draws** x = A⁻¹(Vᵀε + Λ^½ε′) ~ N(0, A⁻¹) (Papandreou & Yuille 2010).
//! - **Covariances** of few rows C, given all others exactly, and averaged over the draws of these (Sidén, Lindgren, Bolin & Villani 2018,
//!   "block RBMC"), where r = Ax is known:
//!
//! ```text
//! Cov f_C ≈ A_CC⁻¹ + 1/S Σₛ gₛgₛᵀ      gₛ = A_CC⁻¹r_C − x_C = A_CC⁻¹A_C∂ x_∂
//! ```
//!
//! - **Slopes** need L⁻¹ Cov(f_C) L⁻ᵀ in the entries of rows that respond, with the factor of their block under the prior. Where rows
//!   say little, it is nearly what it is under the prior, the identity, and what the rows have taken from that is averaged:
//!
//! ```text
//! t = Λ^½ε′ − Λx ~ N(0, Λ − ΛA⁻¹Λ)      y = Q⁻¹t ~ N(0, Q⁻¹ − A⁻¹)      I − 1/S Σₛ zₛzₛᵀ with z = L⁻¹y_C
//! ```
//!
//!   Its variance is that of the directions in which rows say something, and of the draws x themselves that of the others: y is taken where
//!   the mean of 1 − λᵢvᵢ is above a half. (A slope ½ tr dQ Cov has the variance ½ tr (dQ Cov y)²/S, or with x in the place of y. Of a
//!   smooth kernel the other directions are many, and their slopes large.)
//!
//! - **log |A|** = log |P| + tr log U⁻¹AU⁻ᵀ, the latter by Lanczos' method on draws of N(0, P), whose matrices conjugate gradients
//!   give (Gardner, Pleiss, Bindel, Weinberger & Wilson 2018; Kündig & Sigrist 2025, for Vecchia's approximation).
//!
//! Normal numbers are the same at each call, so that all of this is a function of the hyperparameters.

use super::gradients::{Krylov, MATRIX, System, in_lanes, normals};
use super::law::{Draw, Law, Pairs};
use super::plan::Plan;
use super::root::{LANES, Lanes, Root};
use crate::error::Result;
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatMut, MatRef, Par, gram_lower, mirror_lower, product,
    solve_lower, solve_lower_transpose,
};
use faer::reborrow::ReborrowMut;
use rayon::prelude::*;
use std::sync::Arc;

/// Draws while a training climbs, and for predictions.
pub(super) const DRAWS: usize = 64;
pub(super) const DRAWS_OF_PREDICTIONS: usize = 256;
/// Draws of the log determinant: with the mean they fill two chunks.
pub(super) const PROBES: usize = 2 * LANES - 1;
/// Relative tolerances of the mean, and of draws.
const LEFT: f64 = 1e-10;
const LEFT_OF_DRAWS: f64 = 1e-5;
/// A variance is not more than that of a row with so many times the prior variance, given its own factor.
const WIDER: f64 = 2.0;

/// Numbers of single precision, a chunk of vectors side by side: the errors of averages are far above its rounding.
type Single = Vec<[f32; LANES]>;

/// A normal law of the rows with the precision Q + Λ, described by draws. Rows are in the order of the plan.
#[derive(Debug)]
pub(super) struct Draws {
    root: Arc<Root>,
    plan: Arc<Plan>,
    /// λ₂.
    second: Vec<f64>,
    /// The prior variances.
    prior: Vec<f64>,
    /// x, r = Ax, and y where slopes are asked for; chunk by chunk.
    x: Vec<Single>,
    r: Vec<Single>,
    y: Vec<Single>,
}

/// What a chunk of vectors gives.
enum Chunk {
    Draws {
        x: Single,
        r: Single,
        y: Option<Single>,
    },
    /// The mean, of the first chunk, and logs of the probes.
    Logs {
        mean: Option<Vec<f64>>,
        logs: Vec<f64>,
    },
}

/// What is found for given factors, in the order of the plan.
pub(super) struct Found {
    pub(super) mean: Vec<f64>,
    /// log |A| − log |Q|, and its standard error.
    pub(super) log_det: f64,
    pub(super) noise: f64,
    pub(super) law: Draws,
}

impl Draws {
    /// Returns the law with these factors, of rows with these prior variances.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`], for λ₂ that are negative or not finite too.
    pub(super) fn find(
        root: &Arc<Root>,
        plan: &Arc<Plan>,
        prior: &[f64],
        (first, second): (&[f64], &[f64]),
        (draws, slopes): (usize, bool),
    ) -> Result<Found> {
        let system = System::new(root, second)?;
        let chunks = draws.div_ceil(LANES);
        let logs = (1 + PROBES) / LANES;
        // those with the mean, which take the longest, come first
        let own = (0..logs + chunks).into_par_iter().map(|chunk| match chunk.checked_sub(logs) {
            None => Self::logs(&system, chunk, (chunk == 0).then_some(first)),
            Some(chunk) => Self::chunk(&system, root, chunk, slopes),
        });
        let (mut x, mut r, mut y, mut all, mut mean) = (vec![], vec![], vec![], vec![], vec![]);
        for own in own.collect::<Result<Vec<_>>>()? {
            match own {
                Chunk::Draws { x: own, r: of_a, y: taken } => {
                    x.push(own);
                    r.push(of_a);
                    y.extend(taken);
                }
                Chunk::Logs { mean: own, logs } => {
                    mean = own.unwrap_or(mean);
                    all.extend(logs);
                }
            }
        }
        let average = all.iter().sum::<f64>() / PROBES as f64;
        let apart: f64 = all.iter().map(|own| (own - average).powi(2)).sum();
        let noise = (apart / (PROBES * (PROBES - 1)) as f64).sqrt();
        let log_det = system.near.log_det() - root.log_det() + average;
        let (root, plan) = (Arc::clone(root), Arc::clone(plan));
        let (second, prior) = (second.to_vec(), prior.to_vec());
        let law = Self { root, plan, second, prior, x, r, y };
        Ok(Found { mean, log_det, noise, law })
    }

    /// Solves for a chunk of draws.
    fn chunk(system: &System<'_>, root: &Root, chunk: usize, slopes: bool) -> Result<Chunk> {
        let normal = |what: &str| normals(&format!("vecchia/{what}/{chunk}"), root.size());
        let single = |own: &[Lanes]| own.iter().map(|own| own.map(|own| own as f32)).collect();
        let of_factors = normal("factors");
        let r = system.drawn(&normal("rows"), &of_factors);
        let (x, _) = system.solve(&r, &[LEFT_OF_DRAWS; LANES])?;
        let y = slopes.then(|| single(&root.solved(&system.taken(&of_factors, &x))));
        Ok(Chunk::Draws { x: single(&x), r: single(&r), y })
    }

    /// Solves for a chunk of probes; for the mean given λ₁ in the place of the first, where that is given.
    fn logs(system: &System<'_>, chunk: usize, first: Option<&[f64]>) -> Result<Chunk> {
        let probes = normals(&format!("vecchia/determinant/{chunk}"), system.size());
        let (mut b, mut left) = (system.near.times(&probes), [LEFT_OF_DRAWS; LANES]);
        if let Some(first) = first {
            b.iter_mut().zip(first).for_each(|(own, first)| own[0] = *first);
            left[0] = LEFT;
        }
        let (x, krylov): (_, Krylov) = system.solve(&b, &left)?;
        let logs = (usize::from(first.is_some())..LANES).map(|lane| krylov.log(lane));
        let logs = logs.collect::<Result<_>>()?;
        Ok(Chunk::Logs { mean: first.map(|_| x.iter().map(|own| own[0]).collect()), logs })
    }

    /// Returns the mean with these factors: one system.
    ///
    /// # Errors
    /// As for [`Draws::find`].
    pub(super) fn mean(root: &Root, first: &[f64], second: &[f64]) -> Result<Vec<f64>> {
        let system = System::new(root, second)?;
        let only = |own: &f64| std::array::from_fn(|l| if l == 0 { *own } else { 0.0 });
        let b: Vec<Lanes> = first.iter().map(only).collect();
        let (x, _) = system.solve(&b, &[LEFT; LANES])?;
        Ok(x.iter().map(|own| own[0]).collect())
    }

    /// Returns how many draws there are.
    fn count(&self) -> usize {
        self.x.len() * LANES
    }

    #[cfg(test)]
    pub(super) fn root(&self) -> &Root {
        &self.root
    }

    #[cfg(test)]
    pub(super) fn second(&self) -> &[f64] {
        &self.second
    }

    fn system(&self) -> Result<System<'_>> {
        System::new(&self.root, &self.second)
    }

    /// Computes A_CC of some rows.
    fn precision(&self, clique: &[u32], scratch: &mut Scratch) {
        let n = clique.len();
        scratch.seen.clear();
        for (at, row) in clique.iter().enumerate() {
            scratch.seen.extend(self.root.users(*row).map(|(user, v)| (user, at as u32, v)));
        }
        scratch.seen.sort_unstable_by_key(|(user, at, _)| (*user, *at));
        let mut a = Mat::zeros(n, n);
        clique.iter().enumerate().for_each(|(i, row)| a[(i, i)] = self.second[*row as usize]);
        for together in scratch.seen.chunk_by(|a, b| a.0 == b.0) {
            for (b, (_, j, v)) in together.iter().enumerate() {
                for (_, i, w) in &together[b..] {
                    a[(*i as usize, *j as usize)] += v * w;
                }
            }
        }
        scratch.a = a;
    }

    /// Returns BᵀA_CC⁻¹B of B (n×K), and the products of its columns with gₛ of all draws, K×S.
    fn given_others(
        &self,
        clique: &[u32],
        b: &Mat<f64>,
        scratch: &mut Scratch,
    ) -> Result<(Mat<f64>, Mat<f64>)> {
        self.precision(clique, scratch);
        scratch.factor.renew(scratch.a.as_ref(), Jitter::Absolute(0.0), MATRIX)?;
        let (mut w, l) = (b.clone(), scratch.factor.l.as_ref());
        solve_lower(l, w.as_mut(), Par::Seq);
        solve_lower_transpose(l, w.as_mut(), Par::Seq);
        let mut g = Mat::zeros(b.ncols(), self.count());
        for (chunk, (r, x)) in self.r.iter().zip(&self.x).enumerate() {
            for k in 0..b.ncols() {
                let (w, b) = (w.col_as_slice(k), b.col_as_slice(k));
                let mut own = [0.0; LANES];
                for (i, row) in clique.iter().enumerate() {
                    let (r, x) = (&r[*row as usize], &x[*row as usize]);
                    for l in 0..LANES {
                        own[l] += w[i] * f64::from(r[l]) - b[i] * f64::from(x[l]);
                    }
                }
                (0..LANES).for_each(|l| g[(k, chunk * LANES + l)] = own[l]);
            }
        }
        Ok((product(b.transpose(), w.as_ref()), g))
    }

    /// Returns variances of the rows of a block that respond.
    fn of_block(
        &self,
        block: usize,
        ranks: &[u32],
        scratch: &mut Scratch,
    ) -> Result<Vec<(u32, f64)>> {
        let block = self.plan.block(block);
        let clique: Vec<u32> = block.rows.iter().map(|row| ranks[*row as usize]).collect();
        let responding: Vec<usize> = (0..clique.len()).filter(|i| block.responds[*i]).collect();
        let mut unit = Mat::zeros(clique.len(), responding.len());
        responding.iter().enumerate().for_each(|(k, i)| unit[(*i, k)] = 1.0);
        let (inner, g) = self.given_others(&clique, &unit, scratch)?;
        let one = |(k, i): (usize, &usize)| {
            let (row, most) = (clique[*i] as usize, WIDER * self.prior[clique[*i] as usize]);
            let most = most / (1.0 + self.second[row] * most);
            (clique[*i], (inner[(k, k)] + mean_square(&g, k)).min(most))
        };
        Ok(responding.iter().enumerate().map(one).collect())
    }
}

/// Returns the mean square of a row.
fn mean_square(g: &Mat<f64>, row: usize) -> f64 {
    (0..g.ncols()).map(|s| g[(row, s)] * g[(row, s)]).sum::<f64>() / g.ncols() as f64
}

/// The memory of one thread.
struct Scratch {
    /// Rows that are conditioned on some of a clique: which of these, and their numbers.
    seen: Vec<(u32, u32, f64)>,
    a: Mat<f64>,
    factor: Cholesky,
}

impl Scratch {
    fn new() -> Self {
        Self { seen: Vec::new(), a: Mat::new(), factor: Cholesky::of_factor(Mat::new()) }
    }
}

impl Law for Draws {
    fn pairs(&self, watch: &dyn Fn() -> Result<()>) -> Result<Box<dyn Pairs + '_>> {
        watch()?;
        let mut ranks = vec![0; self.plan.rows()];
        let order = self.plan.order().iter().enumerate();
        order.for_each(|(rank, row)| ranks[*row as usize] = rank as u32);
        let blocks = (0..self.plan.blocks()).into_par_iter();
        let all = blocks.map_init(Scratch::new, |own, block| self.of_block(block, &ranks, own));
        let all = all.collect::<Result<Vec<_>>>()?;
        let mut diagonal = vec![0.0; ranks.len()];
        all.into_iter().flatten().for_each(|(row, own)| diagonal[row as usize] = own);
        let little = !self.y.is_empty() && say_little(&self.second, &diagonal);
        Ok(Box::new(Averaged { law: self, diagonal, little }))
    }

    fn forms(&self, vectors: &[Vec<(u32, f64)>], _: &mut Mat<f64>) -> Result<Vec<f64>> {
        let mut scratch = Scratch::new();
        let one = |vector: &Vec<(u32, f64)>| {
            let clique: Vec<u32> = vector.iter().map(|(row, _)| *row).collect();
            let b = Mat::from_fn(clique.len(), 1, |i, _| vector[i].1);
            let (inner, g) = self.given_others(&clique, &b, &mut scratch)?;
            Ok(inner[(0, 0)] + mean_square(&g, 0))
        };
        vectors.iter().map(one).collect()
    }

    fn covariance(&self, w: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let system = self.system()?;
        let solved = in_lanes(w, |b| Ok(system.solve(b, &[LEFT; LANES])?.0))?;
        let both = product(w.transpose(), solved.as_ref());
        // rounding of the two halves
        Ok(Mat::from_fn(both.nrows(), both.nrows(), |i, j| 0.5 * (both[(i, j)] + both[(j, i)])))
    }

    fn drawn(&self, count: usize, normal: &mut Draw<'_>) -> Result<Mat<f64>> {
        let (system, n) = (self.system()?, self.second.len());
        let (of_rows, of_factors) = (normal(n, count), normal(n, count));
        let own = Mat::from_fn(2 * n, count, |i, s| {
            if i < n { of_rows[(i, s)] } else { of_factors[(i - n, s)] }
        });
        in_lanes(own.as_ref(), |both| {
            let r = system.drawn(&both[..n], &both[n..]);
            Ok(system.solve(&r, &[LEFT; LANES])?.0)
        })
    }
}

/// Covariances by averages over draws.
struct Averaged<'a> {
    law: &'a Draws,
    diagonal: Vec<f64>,
    /// Whether slopes average what the rows have taken from the prior.
    little: bool,
}

/// Returns whether rows with these λ₂ and variances say little.
pub(super) fn say_little(second: &[f64], variances: &[f64]) -> bool {
    let left: f64 = second.iter().zip(variances).map(|(by, own)| 1.0 - by * own).sum();
    left > 0.5 * variances.len() as f64
}

impl Pairs for Averaged<'_> {
    fn diagonal(&self) -> Vec<f64> {
        self.diagonal.clone()
    }

    fn whitened(&self, rows: &[u32], l: MatRef<'_, f64>, mut out: MatMut<'_, f64>) -> Result<()> {
        let (all, sign) = if self.little { (&self.law.y, -1.0) } else { (&self.law.x, 1.0) };
        let at = |i: usize, s: usize| f64::from(all[s / LANES][rows[i] as usize][s % LANES]);
        let mut z = Mat::from_fn(rows.len(), LANES * all.len(), at);
        solve_lower(l, z.as_mut(), Par::Seq);
        out.fill(0.0);
        if self.little {
            (0..rows.len()).for_each(|i| out[(i, i)] = 1.0);
        }
        let share = sign / z.ncols() as f64;
        gram_lower(out.rb_mut(), Accum::Add, z.transpose(), z.transpose(), share, Par::Seq);
        mirror_lower(out);
        Ok(())
    }
}
