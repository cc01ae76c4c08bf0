//! The approximate log density of rows, with its adjoint.

use super::{Block, Plan};
use crate::error::{Error, Result};
use crate::kernels::{Cotangents, Kernel, Tape};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, column_mut, gemm, sized, solve_lower,
    solve_lower_transpose,
};
use rayon::prelude::*;

/// Blocks that are one thread's work at once, with a sum each; and how many of these sums wait to be added. The bits depend
/// on the first, the memory on both.
const PART: usize = 64;
const ROUND: usize = 64;

/// The matrix that is factorised.
const MATRIX: &str = "K + σ²I of neighbours";

/// Rows with Gaussian noise.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Inputs, N×D.
    pub x: MatRef<'a, f64>,
    /// Targets less their mean function, N×P.
    pub residual: MatRef<'a, f64>,
    /// Variances of the noise.
    pub noise: &'a [f64],
}

/// The log density, and what rounding leaves of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Density {
    /// log p(y).
    pub value: f64,
    /// The size of what rounding changes in it, in nats: ε Σ kᵢᵢ/dᵢ. No variance dᵢ is known to less than εkᵢᵢ.
    pub rounding: f64,
}

/// Slopes of the log density.
#[derive(Clone, Debug)]
pub struct Slopes {
    /// In the kernel's parameters.
    pub kernel: Vec<f64>,
    /// In the residuals, N×P: of exact inference −G⁻¹r.
    pub residual: Mat<f64>,
    /// In the noise variance of every row: of exact inference ½(αᵢ² − [G⁻¹]ᵢᵢ), summed over targets.
    pub noise: Vec<f64>,
}

impl Density {
    fn add(&mut self, part: &Part) {
        self.value += part.density.value;
        self.rounding += part.density.rounding;
    }
}

impl Rows<'_> {
    /// Refuses parts of different lengths.
    ///
    /// # Errors
    /// [`Error::Shape`] that names the part.
    pub(super) fn check(&self) -> Result<()> {
        let n = self.x.nrows();
        let parts = [("residuals", self.residual.nrows()), ("noise variances", self.noise.len())];
        match parts.iter().find(|(_, len)| *len != n) {
            Some((what, len)) => Err(Error::shape(*what, format!("{n} rows"), *len)),
            None => Ok(()),
        }
    }
}

/// Returns log p(y) of rows in the approximation of a plan that is theirs. `watch` is asked now and then, and may end it.
///
/// # Errors
/// [`Error::Shape`], [`Error::NotPositiveDefinite`], and those of `watch`.
pub fn log_density(
    kernel: &dyn Kernel,
    plan: &Plan,
    rows: Rows<'_>,
    watch: &dyn Fn() -> Result<()>,
) -> Result<Density> {
    let mut density = Density::default();
    in_rounds(kernel, plan, rows, false, watch, &mut |part| density.add(part))?;
    Ok(density)
}

/// Returns log p(y) with its slopes.
///
/// # Errors
/// As for [`log_density`].
pub fn with_slopes(
    kernel: &dyn Kernel,
    plan: &Plan,
    rows: Rows<'_>,
    watch: &dyn Fn() -> Result<()>,
) -> Result<(Density, Slopes)> {
    let (n, p) = (rows.x.nrows(), rows.residual.ncols());
    let mut slopes = Slopes {
        kernel: vec![0.0; kernel.num_params()],
        residual: Mat::zeros(n, p),
        noise: vec![0.0; n],
    };
    let mut density = Density::default();
    in_rounds(kernel, plan, rows, true, watch, &mut |part| {
        density.add(part);
        slopes.kernel.iter_mut().zip(&part.kernel).for_each(|(sum, own)| *sum += own);
        let mut own = part.members.chunks_exact(1 + p);
        for row in part.blocks.clone().flat_map(|block| plan.block(block).rows) {
            let row = *row as usize;
            let Some((noise, residual)) = own.next().and_then(|own| own.split_first()) else {
                break;
            };
            slopes.noise[row] += noise;
            (0..p).for_each(|j| slopes.residual[(row, j)] += residual[j]);
        }
    })?;
    Ok((density, slopes))
}

/// What some blocks contribute.
struct Part {
    blocks: std::ops::Range<usize>,
    density: Density,
    kernel: Vec<f64>,
    /// The slopes in noise and residuals of every member of every block, one after the other.
    members: Vec<f64>,
}

/// Calls `add` with the contributions of all blocks, always in the same order.
fn in_rounds(
    kernel: &dyn Kernel,
    plan: &Plan,
    rows: Rows<'_>,
    slopes: bool,
    watch: &dyn Fn() -> Result<()>,
    add: &mut dyn FnMut(&Part),
) -> Result<()> {
    rows.check()?;
    if plan.rows() != rows.x.nrows() {
        return Err(Error::shape("rows of a plan", plan.rows().to_string(), rows.x.nrows()));
    }
    let parts = plan.blocks().div_ceil(PART);
    for round in (0..parts).step_by(ROUND) {
        watch()?;
        let own = (round..parts.min(round + ROUND)).into_par_iter().map_init(
            || Scratch::new(slopes),
            |scratch, part| {
                let blocks = part * PART..plan.blocks().min((part + 1) * PART);
                let kernel_slopes = vec![0.0; if slopes { kernel.num_params() } else { 0 }];
                let mut own = Part {
                    blocks,
                    density: Density::default(),
                    kernel: kernel_slopes,
                    members: Vec::new(),
                };
                for block in own.blocks.clone() {
                    scratch.block(kernel, plan.block(block), rows, &mut own)?;
                }
                Ok(own)
            },
        );
        // in order, whoever was the first to finish
        own.collect::<Result<Vec<_>>>()?.iter().for_each(&mut *add);
    }
    Ok(())
}

/// The memory of one thread.
struct Scratch {
    slopes: bool,
    x: Mat<f64>,
    k: Mat<f64>,
    g: Mat<f64>,
    z: Mat<f64>,
    tape: Tape,
    factor: Cholesky,
    /// [VᵀWᵀ Vᵀ], columns by rows that respond.
    sides: Mat<f64>,
    /// The same with both halves exchanged.
    others: Mat<f64>,
    k_bar: Mat<f64>,
    r_bar: Mat<f64>,
    scores: Mat<f64>,
}

impl Scratch {
    fn new(slopes: bool) -> Self {
        let new = Mat::new;
        Self {
            slopes,
            x: new(),
            k: new(),
            g: new(),
            z: new(),
            tape: if slopes { Tape::recording() } else { Tape::off() },
            factor: Cholesky::of_factor(new()),
            sides: new(),
            others: new(),
            k_bar: new(),
            r_bar: new(),
            scores: new(),
        }
    }

    fn block(
        &mut self,
        kernel: &dyn Kernel,
        block: Block<'_>,
        rows: Rows<'_>,
        part: &mut Part,
    ) -> Result<()> {
        let (n, p) = (block.rows.len(), rows.residual.ncols());
        gather(&mut self.x, rows.x, block.rows);
        gather(&mut self.z, rows.residual, block.rows);
        sized(&mut self.k, n, n);
        kernel.evaluate(self.x.as_ref(), None, self.k.as_mut(), &mut self.tape);
        sized(&mut self.g, n, n);
        self.g.copy_from(&self.k);
        for (i, row) in block.rows.iter().enumerate() {
            self.g[(i, i)] += rows.noise[*row as usize];
        }
        // no jitter: with one it would be the model of another noise
        self.factor.renew(self.g.as_ref(), Jitter::Absolute(0.0), MATRIX)?;
        let l = self.factor.l.as_ref();
        solve_lower(l, self.z.as_mut(), Par::Seq);
        let z = self.z.as_ref();
        let responding = || (0..n).filter(|j| block.responds[*j]);
        for j in responding() {
            let square: f64 = (0..p).map(|t| z[(j, t)] * z[(j, t)]).sum();
            let log = (2.0 * std::f64::consts::PI).ln() + 2.0 * l[(j, j)].ln();
            part.density.value -= 0.5 * (p as f64 * log + square);
            part.density.rounding += f64::EPSILON * self.k[(j, j)] / (l[(j, j)] * l[(j, j)]);
        }
        if self.slopes {
            self.pull(kernel, block, p, part);
        }
        Ok(())
    }

    /// Ḡ = sym(VᵀWV) and r̄ = −Σⱼ vⱼzⱼᵀ over the rows j that respond.
    fn pull(&mut self, kernel: &dyn Kernel, block: Block<'_>, p: usize, part: &mut Part) {
        let (n, l) = (block.rows.len(), self.factor.l.as_ref());
        let responding = || (0..n).filter(|j| block.responds[*j]);
        let count = responding().count();
        sized(&mut self.sides, n, 2 * count);
        self.sides.fill(0.0);
        for (at, j) in responding().enumerate() {
            for i in 0..=j {
                let product: f64 = (0..p).map(|t| self.z[(i, t)] * self.z[(j, t)]).sum();
                let own = if i == j { 0.5 * (product - p as f64) } else { product };
                self.sides[(i, at)] = own;
            }
            self.sides[(j, count + at)] = 1.0;
        }
        solve_lower_transpose(l, self.sides.as_mut(), Par::Seq);
        sized(&mut self.others, n, 2 * count);
        for at in 0..2 * count {
            let source = self.sides.col_as_slice((at + count) % (2 * count));
            self.others.col_as_slice_mut(at).copy_from_slice(source);
        }
        sized(&mut self.k_bar, n, n);
        let (sides, others) = (self.sides.as_ref(), self.others.as_ref());
        gemm(self.k_bar.as_mut(), Accum::Replace, sides, others.transpose(), 0.5, Par::Seq);
        sized(&mut self.r_bar, n, p);
        sized(&mut self.scores, count, p);
        for (at, j) in responding().enumerate() {
            (0..p).for_each(|t| self.scores[(at, t)] = self.z[(j, t)]);
        }
        let v = sides.subcols(count, count);
        gemm(self.r_bar.as_mut(), Accum::Replace, v, self.scores.as_ref(), -1.0, Par::Seq);
        for i in 0..n {
            part.members.push(self.k_bar[(i, i)]);
            part.members.extend((0..p).map(|t| self.r_bar[(i, t)]));
        }
        let mut sinks = Cotangents { params: &mut part.kernel, x: None, z: None };
        let (x, k) = (self.x.as_ref(), self.k.as_ref());
        kernel.vjp(x, None, k, self.k_bar.as_mut(), &mut self.tape, &mut sinks);
    }
}

/// Copies rows of a matrix.
fn gather(out: &mut Mat<f64>, from: MatRef<'_, f64>, rows: &[u32]) {
    sized(out, rows.len(), from.ncols());
    for j in 0..from.ncols() {
        for (own, row) in column_mut(out.as_mut(), j).iter_mut().zip(rows) {
            *own = from[(*row as usize, j)];
        }
    }
}
