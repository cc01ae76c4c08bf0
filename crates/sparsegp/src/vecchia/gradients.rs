//! Conjugate gradients for the precision of rows, and the law that draws from it describe.
//!
//! With A = Q + Λ, Q = VᵀV ([`Root`]), systems are solved by conjugate gradients with the incomplete factor as a preconditioner
//! P = UUᵀ. What a sparse factor would give exactly follows from some of them:
//!
//! - **Draws** x = A⁻¹(Vᵀε + Λ^½ε′) ~ N(0, A⁻¹) (Papandreou & Yuille 2010).
//! - **Covariances** of few rows C, given all others exactly, and averaged over the draws of these (Sidén, Lindgren, Bolin & Villani 2018,
//!   §3, "block RBMC"), where r = Ax is known:
//!
//! ```text
//! Cov f_C ≈ A_CC⁻¹ + 1/S Σₛ gₛgₛᵀ      gₛ = A_CC⁻¹r_C − x_C = A_CC⁻¹A_C∂ x_∂
//! ```
//!
//! - **log |A|** = log |P| + tr log P^-½AP^-½, the latter by Lanczos' method on draws of N(0, P), whose matrices conjugate gradients
//!   give (Gardner, Pleiss, Bindel, Weinberger & Wilson 2018, §4; Kündig & Sigrist 2025, §3.2, for Vecchia's approximation).
//!
//! Normal numbers are the same at each call, so that all of this is a smooth function of the hyperparameters.

use super::law::{Draw, Law, Pairs};
use super::plan::Plan;
use super::root::{Incomplete, LANES, Lanes, Root};
use crate::error::{Error, Result};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatMut, MatRef, Par, gram_lower, mirror_lower, product,
    solve_lower, solve_lower_transpose, symmetric_eigen,
};
use crate::rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use std::sync::Arc;

/// Draws of the covariances while a training climbs, and of those that predictions take.
pub(super) const DRAWS: usize = 64;
pub(super) const DRAWS_OF_PREDICTIONS: usize = 256;
/// Draws of the log determinant, which one chunk solves for beside the mean, and another.
pub(super) const PROBES: usize = 2 * LANES - 1;
/// Part of a right-hand side that is left, in the norm of P⁻¹: of the mean, and of draws.
const LEFT: f64 = 1e-10;
const LEFT_OF_DRAWS: f64 = 1e-5;
/// Most steps of conjugate gradients; some twenty are taken.
const MOST_STEPS: usize = 1000;
/// A variance is not more than that of a row with so many times the prior variance, given its own factor.
const WIDER: f64 = 2.0;
const MATRIX: &str = "precision of rows given their neighbours, by conjugate gradients";
const SEED: u64 = 0x7665_6363;

/// A normal law of the rows with the precision Q + Λ, described by draws. Rows are in the order of the plan.
#[derive(Debug)]
pub(super) struct Draws {
    root: Arc<Root>,
    plan: Arc<Plan>,
    /// λ₂.
    second: Vec<f64>,
    /// The prior variances.
    prior: Vec<f64>,
    /// Draws, and what A makes of them, in chunks: their errors are far above single precision.
    x: Vec<Vec<[f32; LANES]>>,
    r: Vec<Vec<[f32; LANES]>>,
}

/// What is found for given factors, in the order of the plan.
pub(super) struct Found {
    pub(super) mean: Vec<f64>,
    /// log |A| − log |Q|, and its standard error.
    pub(super) log_det: f64,
    pub(super) noise: f64,
    pub(super) law: Draws,
}

/// What conjugate gradients tell of A: the coefficients of their steps.
struct Krylov {
    /// bᵀP⁻¹b.
    first: Lanes,
    alphas: Vec<Lanes>,
    betas: Vec<Lanes>,
    /// Steps of every vector.
    steps: [usize; LANES],
}

/// A system with its preconditioner.
struct System<'a> {
    root: &'a Root,
    second: &'a [f64],
    near: Incomplete<'a>,
}

impl Draws {
    /// Returns the law with these factors, of rows with these prior variances.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], for negative λ₂ too.
    pub(super) fn new(
        root: &Arc<Root>,
        plan: &Arc<Plan>,
        prior: &[f64],
        (first, second): (&[f64], &[f64]),
        draws: usize,
    ) -> Result<Found> {
        if let Some(pivot) = second.iter().position(|own| !(*own >= 0.0)) {
            return Err(failed(second.len(), pivot));
        }
        let system = System { root, second, near: root.incomplete(second) };
        let chunks = draws.div_ceil(LANES);
        let own = (0..chunks + (1 + PROBES) / LANES).into_par_iter().map(|chunk| {
            if chunk < chunks {
                let normal = |what: &str| normals(&format!("vecchia/{what}/{chunk}"), second.len());
                let r = system.drawn(&normal("rows"), &normal("factors"));
                let (x, krylov) = system.solve(&r, &[LEFT_OF_DRAWS; LANES])?;
                return Ok((x, r, krylov));
            }
            let chunk = chunk - chunks;
            let probes = normals(&format!("vecchia/determinant/{chunk}"), second.len());
            let (mut b, mut left) = (system.near.times(&probes), [LEFT_OF_DRAWS; LANES]);
            if chunk == 0 {
                b.iter_mut().zip(first).for_each(|(own, first)| own[0] = *first);
                left[0] = LEFT;
            }
            let (x, krylov) = system.solve(&b, &left)?;
            Ok((x, Vec::new(), krylov))
        });
        let mut all = own.collect::<Result<Vec<_>>>()?;
        let of_probes = all.split_off(chunks);
        let mean = of_probes[0].0.iter().map(|own| own[0]).collect();
        let lanes = (1..LANES * of_probes.len()).map(|lane| (lane / LANES, lane % LANES));
        let logs = lanes.map(|(chunk, lane)| of_probes[chunk].2.log(lane));
        let logs = logs.collect::<Result<Vec<_>>>()?;
        let average = logs.iter().sum::<f64>() / PROBES as f64;
        let apart: f64 = logs.iter().map(|own| (own - average).powi(2)).sum();
        let noise = (apart / (PROBES * (PROBES - 1)) as f64).sqrt();
        let log_det = system.near.log_det() - root.log_det() + average;
        let single = |own: Vec<Lanes>| own.iter().map(|own| own.map(|own| own as f32)).collect();
        let (x, r) = all.into_iter().map(|(x, r, _)| (single(x), single(r))).unzip();
        let (root, plan) = (Arc::clone(root), Arc::clone(plan));
        let law = Self { root, plan, second: second.to_vec(), prior: prior.to_vec(), x, r };
        Ok(Found { mean, log_det, noise, law })
    }

    /// Returns the mean with these factors: one system.
    ///
    /// # Errors
    /// As for [`Draws::new`].
    pub(super) fn mean(root: &Root, first: &[f64], second: &[f64]) -> Result<Vec<f64>> {
        let system = System { root, second, near: root.incomplete(second) };
        let b: Vec<Lanes> = first
            .iter()
            .map(|own| std::array::from_fn(|l| if l == 0 { *own } else { 0.0 }))
            .collect();
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

    fn system(&self) -> System<'_> {
        System { root: &self.root, second: &self.second, near: self.root.incomplete(&self.second) }
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
        Ok(Box::new(Averaged { law: self, diagonal }))
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
        let system = self.system();
        let solved = in_lanes(w, |b| Ok(system.solve(b, &[LEFT; LANES])?.0))?;
        let both = product(w.transpose(), solved.as_ref());
        // rounding of the two halves
        Ok(Mat::from_fn(both.nrows(), both.nrows(), |i, j| 0.5 * (both[(i, j)] + both[(j, i)])))
    }

    fn drawn(&self, count: usize, normal: &mut Draw<'_>) -> Result<Mat<f64>> {
        let (system, n) = (self.system(), self.second.len());
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
}

impl Pairs for Averaged<'_> {
    fn diagonal(&self) -> Vec<f64> {
        self.diagonal.clone()
    }

    fn of_clique(&self, rows: &[u32], mut out: MatMut<'_, f64>) -> Result<()> {
        let unit = Mat::<f64>::identity(rows.len(), rows.len());
        let (mut all, g) = self.law.given_others(rows, &unit, &mut Scratch::new())?;
        let (draws, share) = (g.transpose(), 1.0 / g.ncols() as f64);
        gram_lower(all.as_mut(), Accum::Add, draws, draws, share, Par::Seq);
        mirror_lower(all.as_mut());
        out.copy_from(&all);
        Ok(())
    }
}

impl System<'_> {
    /// Returns Vᵀε + Λ^½ε′, which has the covariance A.
    fn drawn(&self, of_rows: &[Lanes], of_factors: &[Lanes]) -> Vec<Lanes> {
        let root = |(own, by): (&Lanes, &f64)| own.map(|own| own * by.sqrt());
        let mut r: Vec<Lanes> = of_factors.iter().zip(self.second).map(root).collect();
        self.root.add_transposed(of_rows, &mut r);
        r
    }

    /// Solves Ax = b by conjugate gradients (Hestenes & Stiefel 1952) until such parts are left.
    fn solve(&self, b: &[Lanes], left: &Lanes) -> Result<(Vec<Lanes>, Krylov)> {
        let n = b.len();
        let (mut x, mut r, mut q) = (vec![[0.0; LANES]; n], b.to_vec(), vec![[0.0; LANES]; n]);
        let mut z = r.clone();
        self.near.solve(&mut z);
        let mut p = z.clone();
        let mut rz = dots(&r, &z);
        let first = rz;
        let enough: [f64; LANES] = std::array::from_fn(|l| first[l] * left[l] * left[l]);
        let mut krylov = Krylov { first, alphas: vec![], betas: vec![], steps: [0; LANES] };
        for step in 0..MOST_STEPS {
            let open: [bool; LANES] = std::array::from_fn(|l| rz[l] > enough[l]);
            if open == [false; LANES] {
                return Ok((x, krylov));
            }
            self.root.times(self.second, &p, &mut q);
            let curved = dots(&p, &q);
            if (0..LANES).any(|l| open[l] && !(curved[l] > 0.0)) {
                break;
            }
            let alpha = std::array::from_fn(|l| if open[l] { rz[l] / curved[l] } else { 0.0 });
            for i in 0..n {
                for l in 0..LANES {
                    x[i][l] += alpha[l] * p[i][l];
                    r[i][l] -= alpha[l] * q[i][l];
                }
            }
            z.copy_from_slice(&r);
            self.near.solve(&mut z);
            let next = dots(&r, &z);
            let beta = std::array::from_fn(|l| if open[l] { next[l] / rz[l] } else { 0.0 });
            for i in 0..n {
                for l in 0..LANES {
                    p[i][l] = z[i][l] + beta[l] * p[i][l];
                }
            }
            for l in (0..LANES).filter(|l| open[*l]) {
                (rz[l], krylov.steps[l]) = (next[l], step + 1);
            }
            krylov.alphas.push(alpha);
            krylov.betas.push(beta);
        }
        Err(failed(n, 0))
    }
}

impl Krylov {
    /// Returns zᵀP^-½ log(P^-½AP^-½) P^-½z of a vector z, by Gauss quadrature with Lanczos' matrix (Golub & Meurant 2010, §12): in
    /// the coefficients of conjugate gradients (Saad 2003, §6.7.3).
    fn log(&self, lane: usize) -> Result<f64> {
        let steps = self.steps[lane];
        if steps == 0 {
            return Ok(0.0);
        }
        let (alpha, beta) = (|k: usize| self.alphas[k][lane], |k: usize| self.betas[k][lane]);
        let t = Mat::from_fn(steps, steps, |i, j| match i.abs_diff(j) {
            0 if i == 0 => 1.0 / alpha(0),
            0 => 1.0 / alpha(i) + beta(i - 1) / alpha(i - 1),
            1 => beta(i.min(j)).sqrt() / alpha(i.min(j)),
            _ => 0.0,
        });
        let (values, vectors) = symmetric_eigen(t.as_ref())?;
        let of = |k: usize| vectors[(0, k)].powi(2) * values[k].ln();
        Ok(self.first[lane] * (0..steps).map(of).sum::<f64>())
    }
}

/// Returns normal numbers of a name, always the same.
fn normals(name: &str, rows: usize) -> Vec<Lanes> {
    let mut rng = rng::stream(SEED, name);
    (0..rows).map(|_| std::array::from_fn(|_| StandardNormal.sample(&mut rng))).collect()
}

/// Returns the products of two sets of vectors, one for each.
fn dots(a: &[Lanes], b: &[Lanes]) -> Lanes {
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        (0..LANES).for_each(|l| sums[l] += a[l] * b[l]);
    }
    sums
}

/// Returns what is made of the columns of a matrix, some at a time on all threads.
fn in_lanes(
    all: MatRef<'_, f64>,
    make: impl Fn(&[Lanes]) -> Result<Vec<Lanes>> + Sync,
) -> Result<Mat<f64>> {
    let (n, columns) = (all.nrows(), all.ncols());
    let chunk = |start: usize| {
        let at = |i: usize, l: usize| if start + l < columns { all[(i, start + l)] } else { 0.0 };
        let own: Vec<Lanes> = (0..n).map(|i| std::array::from_fn(|l| at(i, l))).collect();
        make(&own)
    };
    let starts: Vec<usize> = (0..columns).step_by(LANES).collect();
    let made = starts.into_par_iter().map(chunk).collect::<Result<Vec<_>>>()?;
    let rows = made.first().map_or(0, Vec::len);
    Ok(Mat::from_fn(rows, columns, |i, s| made[s / LANES][i][s % LANES]))
}

fn failed(size: usize, pivot: usize) -> Error {
    Error::NotPositiveDefinite {
        matrix: MATRIX,
        size,
        pivot,
        jitter: 0.0,
        hint: "likely causes: rows that nearly follow from others under a very smooth kernel; a rougher kernel, such as matern52, helps",
    }
}
