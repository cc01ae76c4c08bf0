//! Inducing points for what is far, neighbours for the rest.
//!
//! With u = Lv of inducing points, v ~ N(0, I), and φᵢ = L⁻¹k(Z, xᵢ), a function of mean 0 is φᵢᵀv + gᵢ, where g has the
//! covariance k(xᵢ, xⱼ) − φᵢᵀφⱼ and is independent of v. Only g, with the noise, is
//! approximated by neighbours (Sang & Huang 2012; Zhang, Sang & Huang 2019; with Vecchia's approximation
//! Gyger, Furrer & Sigrist 2025). For row i, given the rows c among those before it, with
//! G_cc = K_cc − Φ_cᵀΦ_c + diag s_c,
//!
//! ```text
//! eᵢ = (rᵢ − bᵢᵀr_c)/√dᵢ      Eᵢ = (φᵢ − Φ_c bᵢ)/√dᵢ      rows of e (N×P) and columns of E (M×N)
//! log p(y) ≈ −½ P Σ log 2πdᵢ − ½‖e‖² + ½ gᵀA⁻¹g − ½ P log|A|      A = I + EEᵀ,  g = Ee
//! ```
//!
//! and v given y is N(μ, A⁻¹), μ = A⁻¹g. Of these −½‖e‖² + ½gᵀμ = −½‖e − Eᵀμ‖² − ½‖μ‖², where nothing cancels. It is exact with all rows
//! before a row for neighbours, and where the points explain all: each is independent of the others then, given v.
//!
//! **Adjoint.** Slopes in e and E are ē = −(e − Eᵀμ) and Ē = −μēᵀ − P A⁻¹E. Of a block with the factor L and V = L⁻¹, (e, E) of a row j
//! that responds is vⱼᵀ(r_c, Φ_cᵀ), so that as in [`super`], with tⱼ = r_c ēⱼ + Φ_cᵀĒⱼ in the place of −z zⱼ,
//!
//! ```text
//! Ḡ = sym(VᵀWV)      Wⱼᵢ = −[L⁻¹tⱼ]ᵢ (i < j)      Wⱼⱼ = −½([L⁻¹tⱼ]ⱼ + P)
//! r̄ = Σⱼ vⱼēⱼ        Φ̄ = Σⱼ Ēⱼvⱼᵀ − 2Φ_cḠ         the last from G
//! ```
//!
//! A block of n rows, c of which respond, takes n²M multiplications for ΦᵀΦ and O(cnM) for all else.

use super::density::{Density, Rows, Slopes};
use super::factored::{Factored, gather};
use super::rounds::{Part, Rounds};
use super::{Block, Features, Plan};
use crate::error::Result;
use crate::kernels::{Cotangents, Kernel};
use crate::linalg::{
    Accum, Cholesky, Jitter, Mat, MatRef, Par, column, dot, gemm, gram_lower, not_below_0, par_for,
    product, sized, solve_lower, solve_lower_transpose, sum_of_products,
};

/// What rows say of whitened inducing variables: v ~ N(μ, A⁻¹) for every target.
#[derive(Clone, Debug)]
pub struct Common {
    /// μ, M×P.
    pub mean: Mat<f64>,
    /// Of A.
    pub factor: Cholesky,
}

/// Rows, what they are conditioned on, and their features.
#[derive(Clone, Copy)]
pub struct FullScale<'a> {
    /// The kernel of the functions.
    pub kernel: &'a dyn Kernel,
    /// Inducing points.
    pub features: &'a Features,
    /// Features of the rows ([`Features::of`]), M×N.
    pub phi: &'a Mat<f64>,
    /// The plan of the rows.
    pub plan: &'a Plan,
    /// The rows.
    pub rows: Rows<'a>,
    /// Is asked now and then, and may end it.
    pub watch: &'a (dyn Fn() -> Result<()> + Sync),
}

/// e, E and what follows from them.
struct Whitened {
    density: Density,
    /// E, M×N.
    common: Mat<f64>,
    /// ē, N×P.
    bar: Mat<f64>,
    known: Common,
}

impl FullScale<'_> {
    fn rounds(&self, params: usize) -> Rounds<'_> {
        let width = 1 + self.rows.residual.ncols() + self.features.points();
        Rounds { plan: self.plan, rows: self.rows.x.nrows(), params, width, watch: self.watch }
    }

    /// Returns log p(y), and what the rows say of the inducing variables.
    ///
    /// # Errors
    /// As for [`super::log_density`].
    pub fn density(&self) -> Result<(Density, Common)> {
        let own = self.whitened()?;
        Ok((own.density, own.known))
    }

    fn whitened(&self) -> Result<Whitened> {
        self.rows.check()?;
        let (n, p, m) = (self.rows.x.nrows(), self.rows.residual.ncols(), self.features.points());
        let (mut e, mut common) = (Mat::zeros(n, p), Mat::zeros(m, n));
        let mut density = Density::default();
        let work = |scratch: &mut Scratch, block: Block<'_>, part: &mut Part| {
            scratch.factorise(self, block)?;
            scratch.whiten(self, block, part);
            Ok(())
        };
        self.rounds(0).run(|| Scratch::new(false), work, &mut |part| {
            density.add(part.density);
            for (row, own) in part.rows() {
                (0..p).for_each(|t| e[(row, t)] = own[1 + t]);
                common.col_as_slice_mut(row).copy_from_slice(&own[1 + p..]);
            }
        })?;
        let mut a = Mat::identity(m, m);
        let rows = common.transpose();
        gram_lower(a.as_mut(), Accum::Add, rows, rows, 1.0, par_for(m));
        let factor = Cholesky::new(a.as_ref(), Jitter::Relative(0.0), "A = I + EEᵀ")?;
        let mean = factor.solve(product(common.as_ref(), e.as_ref()).as_ref());
        let mut bar = -e;
        gemm(bar.as_mut(), Accum::Add, rows, mean.as_ref(), 1.0, par_for(n));
        let squares = dot(bar.as_ref(), bar.as_ref()) + dot(mean.as_ref(), mean.as_ref());
        density.value -= 0.5 * (squares + p as f64 * factor.log_det());
        Ok(Whitened { density, common, bar, known: Common { mean, factor } })
    }

    /// Returns log p(y) with its slopes.
    ///
    /// # Errors
    /// As for [`super::log_density`].
    pub fn with_slopes(&self) -> Result<(Density, Slopes)> {
        let Whitened { density, common, bar, known } = self.whitened()?;
        let (m, p) = (common.nrows(), bar.ncols());
        let mut common_bar = common;
        let (l, par) = (known.factor.l.as_ref(), par_for(m));
        solve_lower(l, common_bar.as_mut(), par);
        solve_lower_transpose(l, common_bar.as_mut(), par);
        common_bar *= faer::Scale(-(p as f64));
        gemm(common_bar.as_mut(), Accum::Add, known.mean.as_ref(), bar.transpose(), -1.0, par);
        let mut slopes = Slopes::zeros(self.kernel, self.rows);
        let mut phi_bar = Mat::zeros(m, self.phi.ncols());
        let bars = (bar.as_ref(), common_bar.as_ref());
        let work = |scratch: &mut Scratch, block: Block<'_>, part: &mut Part| {
            scratch.factorise(self, block)?;
            scratch.pull(self, block, bars, part);
            Ok(())
        };
        let rounds = self.rounds(self.kernel.num_params());
        rounds.run(|| Scratch::new(true), work, &mut |part| {
            slopes.add(part, &mut |row, own| {
                let sum = phi_bar.col_as_slice_mut(row);
                sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            });
        })?;
        let (kernel, points) = self.features.pull(self.kernel, self.rows.x, self.phi, &phi_bar);
        slopes.kernel.iter_mut().zip(kernel).for_each(|(sum, own)| *sum += own);
        slopes.points = points;
        Ok((density, slopes))
    }

    /// Returns means, less the mean function (N×P), and variances of the function at every row given all other rows, in the law whose
    /// density this is: with its covariance Σ, rᵢ − [Σ⁻¹r]ᵢ/[Σ⁻¹]ᵢᵢ and 1/[Σ⁻¹]ᵢᵢ − sᵢ (Rasmussen & Williams 2006, Eq. 5.12). With
    /// Q = Σⱼ vⱼvⱼᵀ over all rows and H = ΦQ, Σ⁻¹ = Q − HᵀA⁻¹H.
    ///
    /// # Errors
    /// As for [`super::log_density`].
    pub fn leave_one_out(&self) -> Result<(Mat<f64>, Vec<f64>)> {
        let Whitened { common, bar, known, .. } = self.whitened()?;
        let (n, m, p) = (bar.nrows(), common.nrows(), bar.ncols());
        let mut own = Slopes::zeros(self.kernel, self.rows);
        let mut h = Mat::zeros(m, n);
        let bars = (bar.as_ref(), common.as_ref());
        let work = |scratch: &mut Scratch, block: Block<'_>, part: &mut Part| {
            scratch.factorise(self, block)?;
            scratch.precisions(block, bars, part);
            Ok(())
        };
        // the slot of the noise holds the diagonal of Q
        self.rounds(0).run(|| Scratch::new(false), work, &mut |part| {
            own.add(part, &mut |row, own| {
                let sum = h.col_as_slice_mut(row);
                sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            });
        })?;
        solve_lower(known.factor.l.as_ref(), h.as_mut(), par_for(m));
        let (mut mean, mut variance) = (self.rows.residual.to_owned(), vec![0.0; n]);
        for i in 0..n {
            let explained = column(h.as_ref(), i);
            let precision = own.noise[i] - sum_of_products(explained, explained);
            variance[i] = not_below_0(1.0 / precision - self.rows.noise[i]);
            // r̄ is −Σ⁻¹r
            (0..p).for_each(|t| mean[(i, t)] += own.residual[(i, t)] / precision);
        }
        Ok((mean, variance))
    }
}

/// The memory of one thread.
struct Scratch {
    own: Factored,
    r: Mat<f64>,
    /// [VᵀWᵀ Vᵀ], columns by rows that respond.
    sides: Mat<f64>,
    /// The same with both halves exchanged.
    others: Mat<f64>,
    /// e or ē of the rows that respond, and E or Ē.
    e: Mat<f64>,
    common: Mat<f64>,
    /// Φ_cVᵀWᵀ and Φ_cVᵀ.
    products: Mat<f64>,
    k_bar: Mat<f64>,
    r_bar: Mat<f64>,
    phi_bar: Mat<f64>,
}

impl Scratch {
    fn new(slopes: bool) -> Self {
        let new = Mat::new;
        Self {
            own: Factored::new(slopes),
            r: new(),
            sides: new(),
            others: new(),
            e: new(),
            common: new(),
            products: new(),
            k_bar: new(),
            r_bar: new(),
            phi_bar: new(),
        }
    }

    /// Finds the factor of a block, its residuals, and V of the rows that respond, in the right half of `sides`.
    fn factorise(&mut self, of: &FullScale<'_>, block: Block<'_>) -> Result<()> {
        self.own.renew(of.kernel, block.rows, of.rows, of.phi.as_ref())?;
        gather(&mut self.r, of.rows.residual, block.rows);
        let count = responding(block).count();
        sized(&mut self.sides, block.rows.len(), 2 * count);
        self.sides.fill(0.0);
        responding(block).enumerate().for_each(|(at, j)| self.sides[(j, count + at)] = 1.0);
        let v = self.sides.as_mut().subcols_mut(count, count);
        solve_lower_transpose(self.own.factor.l.as_ref(), v, Par::Seq);
        Ok(())
    }

    /// Computes e and E of the rows that respond, and what else they contribute.
    fn whiten(&mut self, of: &FullScale<'_>, block: Block<'_>, part: &mut Part) {
        let (p, m, count) = (self.r.ncols(), of.features.points(), responding(block).count());
        let (l, k) = (self.own.factor.l.as_ref(), &self.own.k);
        for j in responding(block) {
            let log = (2.0 * std::f64::consts::PI).ln() + 2.0 * l[(j, j)].ln();
            part.density.value -= 0.5 * p as f64 * log;
            part.density.rounding += f64::EPSILON * k[(j, j)] / (l[(j, j)] * l[(j, j)]);
        }
        let v = self.sides.as_ref().subcols(count, count);
        sized(&mut self.e, p, count);
        gemm(self.e.as_mut(), Accum::Replace, self.r.transpose(), v, 1.0, Par::Seq);
        sized(&mut self.common, m, count);
        gemm(self.common.as_mut(), Accum::Replace, self.own.phi.as_ref(), v, 1.0, Par::Seq);
        for (at, j) in responding(block).enumerate() {
            let own = &mut part.of(block.rows[j])[1..];
            own[..p].copy_from_slice(column(self.e.as_ref(), at));
            own[p..].copy_from_slice(column(self.common.as_ref(), at));
        }
    }

    /// Takes ē (c×P) and Ē (M×c) of the rows that respond.
    fn take(&mut self, block: Block<'_>, (e, common): (MatRef<'_, f64>, MatRef<'_, f64>)) {
        let count = responding(block).count();
        sized(&mut self.e, count, e.ncols());
        sized(&mut self.common, common.nrows(), count);
        for (at, j) in responding(block).enumerate() {
            let row = block.rows[j] as usize;
            (0..e.ncols()).for_each(|t| self.e[(at, t)] = e[(row, t)]);
            self.common.col_as_slice_mut(at).copy_from_slice(column(common, row));
        }
    }

    /// Computes slopes from those in e and E.
    fn pull(
        &mut self,
        of: &FullScale<'_>,
        block: Block<'_>,
        bars: (MatRef<'_, f64>, MatRef<'_, f64>),
        part: &mut Part,
    ) {
        self.take(block, bars);
        let (n, p, m) = (block.rows.len(), self.r.ncols(), of.features.points());
        let (count, l) = (responding(block).count(), self.own.factor.l.as_ref());
        let phi = self.own.phi.as_ref();
        let mut w = self.sides.as_mut().subcols_mut(0, count);
        gemm(w.as_mut(), Accum::Replace, self.r.as_ref(), self.e.transpose(), 1.0, Par::Seq);
        gemm(w.as_mut(), Accum::Add, phi.transpose(), self.common.as_ref(), 1.0, Par::Seq);
        solve_lower(l, w.as_mut(), Par::Seq);
        for (at, j) in responding(block).enumerate() {
            let own = w.as_mut().col_mut(at).try_as_col_major_mut().map(|own| own.as_slice_mut());
            let Some(own) = own else { continue };
            own[..j].iter_mut().for_each(|v| *v = -*v);
            own[j] = -0.5 * (own[j] + p as f64);
            own[j + 1..].fill(0.0);
        }
        solve_lower_transpose(l, w, Par::Seq);
        sized(&mut self.others, n, 2 * count);
        for at in 0..2 * count {
            let source = self.sides.col_as_slice((at + count) % (2 * count));
            self.others.col_as_slice_mut(at).copy_from_slice(source);
        }
        let (sides, others) = (self.sides.as_ref(), self.others.as_ref());
        sized(&mut self.k_bar, n, n);
        gemm(self.k_bar.as_mut(), Accum::Replace, sides, others.transpose(), 0.5, Par::Seq);
        let v = sides.subcols(count, count);
        sized(&mut self.r_bar, n, p);
        gemm(self.r_bar.as_mut(), Accum::Replace, v, self.e.as_ref(), 1.0, Par::Seq);
        // 2Φ_cḠ = Φ_c sides othersᵀ
        sized(&mut self.products, m, 2 * count);
        gemm(self.products.as_mut(), Accum::Replace, phi, sides, 1.0, Par::Seq);
        for at in 0..count {
            let bar = self.common.col_as_slice(at);
            let own = self.products.col_as_slice_mut(at);
            own.iter_mut().zip(bar).for_each(|(own, bar)| *own -= bar);
        }
        sized(&mut self.phi_bar, m, n);
        let products = self.products.as_ref();
        gemm(self.phi_bar.as_mut(), Accum::Replace, products, others.transpose(), -1.0, Par::Seq);
        self.add(block, |i| self.k_bar[(i, i)], part);
        let mut sinks = Cotangents { params: &mut part.kernel, x: None, z: None };
        let (x, k) = (self.own.x.as_ref(), self.own.k.as_ref());
        of.kernel.vjp(x, None, k, self.k_bar.as_mut(), &mut self.own.tape, &mut sinks);
    }

    /// Computes what the rows that respond add to the diagonal of Q, to −Σ⁻¹r = Σⱼ vⱼēⱼ, and to H =
    /// Σⱼ Eⱼvⱼᵀ.
    fn precisions(
        &mut self,
        block: Block<'_>,
        bars: (MatRef<'_, f64>, MatRef<'_, f64>),
        part: &mut Part,
    ) {
        self.take(block, bars);
        let (n, p, count) = (block.rows.len(), self.r.ncols(), responding(block).count());
        let v = self.sides.as_ref().subcols(count, count);
        sized(&mut self.r_bar, n, p);
        gemm(self.r_bar.as_mut(), Accum::Replace, v, self.e.as_ref(), 1.0, Par::Seq);
        sized(&mut self.phi_bar, self.common.nrows(), n);
        let common = self.common.as_ref();
        gemm(self.phi_bar.as_mut(), Accum::Replace, common, v.transpose(), 1.0, Par::Seq);
        self.add(block, |i| (0..count).map(|at| v[(i, at)] * v[(i, at)]).sum(), part);
    }

    /// Adds a number of every member, and what is in `r_bar` and `phi_bar`.
    fn add(&self, block: Block<'_>, first: impl Fn(usize) -> f64, part: &mut Part) {
        let p = self.r_bar.ncols();
        for (i, row) in block.rows.iter().enumerate() {
            let own = part.of(*row);
            own[0] += first(i);
            (0..p).for_each(|t| own[1 + t] += self.r_bar[(i, t)]);
            let of_phi = self.phi_bar.col_as_slice(i);
            own[1 + p..].iter_mut().zip(of_phi).for_each(|(sum, own)| *sum += own);
        }
    }
}

/// Returns members that respond.
fn responding(block: Block<'_>) -> impl Iterator<Item = usize> + '_ {
    (0..block.rows.len()).filter(move |j| block.responds[*j])
}
