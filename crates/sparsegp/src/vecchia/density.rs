//! The approximate log density of rows, with its adjoint.

use super::factored::{Factored, gather};
use super::rounds::{Part, Rounds};
use super::{Block, Plan};
use crate::error::{Error, Result};
use crate::kernels::{Cotangents, Kernel};
use crate::linalg::{Accum, Mat, MatRef, Par, gemm, sized, solve_lower, solve_lower_transpose};

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
    /// In the inducing points, column by column; none where there are none.
    pub points: Vec<f64>,
}

impl Density {
    pub(super) fn add(&mut self, other: Density) {
        self.value += other.value;
        self.rounding += other.rounding;
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
    in_rounds(kernel, plan, rows, (false, watch), &mut |part| density.add(part.density))?;
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
    let mut slopes = Slopes::zeros(kernel, rows);
    let mut density = Density::default();
    in_rounds(kernel, plan, rows, (true, watch), &mut |part| {
        density.add(part.density);
        slopes.add(part, &mut |_, _| ());
    })?;
    Ok((density, slopes))
}

impl Slopes {
    pub(super) fn zeros(kernel: &dyn Kernel, rows: Rows<'_>) -> Self {
        let (n, p) = (rows.x.nrows(), rows.residual.ncols());
        Self {
            kernel: vec![0.0; kernel.num_params()],
            residual: Mat::zeros(n, p),
            noise: vec![0.0; n],
            points: Vec::new(),
        }
    }

    /// Adds those of a part, whose numbers of a row are the slope in its noise, those in its residuals, and others, which `further`
    /// takes.
    pub(super) fn add(&mut self, part: &Part, further: &mut dyn FnMut(usize, &[f64])) {
        let p = self.residual.ncols();
        self.kernel.iter_mut().zip(&part.kernel).for_each(|(sum, own)| *sum += own);
        for (row, own) in part.rows() {
            self.noise[row] += own[0];
            (0..p).for_each(|j| self.residual[(row, j)] += own[1 + j]);
            further(row, &own[1 + p..]);
        }
    }
}

/// Calls `add` with the contributions of all blocks, always in the same order.
fn in_rounds(
    kernel: &dyn Kernel,
    plan: &Plan,
    rows: Rows<'_>,
    (slopes, watch): (bool, &dyn Fn() -> Result<()>),
    add: &mut dyn FnMut(&Part),
) -> Result<()> {
    rows.check()?;
    let (n, width) = (rows.x.nrows(), 1 + rows.residual.ncols());
    let params = if slopes { kernel.num_params() } else { 0 };
    let rounds = Rounds { plan, rows: n, params, width, watch };
    let work = |scratch: &mut Scratch, block: Block<'_>, part: &mut Part| {
        scratch.block(kernel, block, rows, part)
    };
    rounds.run(|| Scratch::new(slopes), work, add)
}

/// The memory of one thread.
pub(super) struct Scratch {
    slopes: bool,
    pub(super) own: Factored,
    z: Mat<f64>,
    /// [VᵀWᵀ Vᵀ], columns by rows that respond.
    sides: Mat<f64>,
    /// The same with both halves exchanged.
    others: Mat<f64>,
    pub(super) k_bar: Mat<f64>,
    r_bar: Mat<f64>,
    scores: Mat<f64>,
}

impl Scratch {
    pub(super) fn new(slopes: bool) -> Self {
        let new = Mat::new;
        Self {
            slopes,
            own: Factored::new(slopes),
            z: new(),
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
        gather(&mut self.z, rows.residual, block.rows);
        self.own.renew(kernel, block.rows, rows, Mat::<f64>::new().as_ref())?;
        let l = self.own.factor.l.as_ref();
        solve_lower(l, self.z.as_mut(), Par::Seq);
        let z = self.z.as_ref();
        let responding = || (0..n).filter(|j| block.responds[*j]);
        for j in responding() {
            let square: f64 = (0..p).map(|t| z[(j, t)] * z[(j, t)]).sum();
            let log = (2.0 * std::f64::consts::PI).ln() + 2.0 * l[(j, j)].ln();
            part.density.value -= 0.5 * block.weight * (p as f64 * log + square);
            part.density.rounding +=
                block.weight * f64::EPSILON * self.own.k[(j, j)] / (l[(j, j)] * l[(j, j)]);
        }
        if self.slopes {
            self.pull(kernel, block, p, part);
        }
        Ok(())
    }

    /// Computes Ḡ = sym(VᵀWV) over the rows j that respond, in `k_bar`, with `products` for zᵢᵀzⱼ
    /// (i ≤ j) of so many targets.
    pub(super) fn weigh(
        &mut self,
        block: Block<'_>,
        targets: usize,
        products: impl Fn(&Mat<f64>, usize, usize) -> f64,
    ) {
        let (n, l) = (block.rows.len(), self.own.factor.l.as_ref());
        let responding = || (0..n).filter(|j| block.responds[*j]);
        let count = responding().count();
        sized(&mut self.sides, n, 2 * count);
        self.sides.fill(0.0);
        for (at, j) in responding().enumerate() {
            for i in 0..=j {
                let product = products(&self.z, i, j);
                let own = if i == j { 0.5 * (product - targets as f64) } else { product };
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
        let half = 0.5 * block.weight;
        gemm(self.k_bar.as_mut(), Accum::Replace, sides, others.transpose(), half, Par::Seq);
    }

    /// Computes Ḡ and r̄ = −Σⱼ vⱼzⱼᵀ over the rows j that respond.
    fn pull(&mut self, kernel: &dyn Kernel, block: Block<'_>, p: usize, part: &mut Part) {
        self.weigh(block, p, |z, i, j| (0..p).map(|t| z[(i, t)] * z[(j, t)]).sum());
        let n = block.rows.len();
        let responding = || (0..n).filter(|j| block.responds[*j]);
        let count = responding().count();
        let sides = self.sides.as_ref();
        sized(&mut self.r_bar, n, p);
        sized(&mut self.scores, count, p);
        for (at, j) in responding().enumerate() {
            (0..p).for_each(|t| self.scores[(at, t)] = self.z[(j, t)]);
        }
        let (v, weight) = (sides.subcols(count, count), block.weight);
        gemm(self.r_bar.as_mut(), Accum::Replace, v, self.scores.as_ref(), -weight, Par::Seq);
        for (i, row) in block.rows.iter().enumerate() {
            let own = part.of(*row);
            own[0] += self.k_bar[(i, i)];
            (0..p).for_each(|t| own[1 + t] += self.r_bar[(i, t)]);
        }
        let mut sinks = Cotangents { params: &mut part.kernel, x: None, z: None };
        let (x, k) = (self.own.x.as_ref(), self.own.k.as_ref());
        kernel.vjp(x, None, k, self.k_bar.as_mut(), &mut self.own.tape, &mut sinks);
    }
}
