//! Stein variational gradient descent (Liu & Wang 2016): x_k ← x_k + (η/N) Σ_j [−k(x_j, x_k) g_j + ∇_{x_j} k(x_j,
//! x_k)].
//!
//! With K the kernel's values, the sums are
//!
//! ```text
//! xᵀx′ + 1                 X − G(XᵀX + 11ᵀ)/N
//! zᵀz′ + 1, z = x − m      Z − G(ZᵀZ + 11ᵀ)/N, the flow of Gaussian particles
//! e^{−‖x − x′‖²/2ℓ²}       [−GK + (X diag(K1) − XK)/ℓ²]/N
//! ```
//! There is no free energy. Of off-centre densities the first diverges unless steps are small at the start.

use crate::error::{Error, Result};
use crate::flow::optimiser::{FlowOptimiser, Rule, Scale, check_rates, check_schedule};
use crate::flow::particles::Particles;
use crate::flow::run::{Progress, Solver};
use crate::flow::target::{Evaluation, Target, check_count, check_dim, check_finite};
use crate::linalg::{Accum, Mat, MatRef, column, gemm, par_for};
use crate::optim::Schedule;

/// A kernel between particles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SvgdKernel {
    /// xᵀx′ + 1.
    Linear,
    /// (x − m)ᵀ(x′ − m) + 1, where m counts as a constant.
    CentredLinear,
    /// e^{−‖x − x′‖²/2ℓ²}.
    SquaredExponential {
        /// ℓ; none for ℓ² = median_{i<j} ‖xᵢ − xⱼ‖² / (2 log(N + 1)) in every step.
        length: Option<f64>,
    },
}

/// How particles move.
#[derive(Clone, Debug, PartialEq)]
pub struct SvgdOptions {
    /// The kernel.
    pub kernel: SvgdKernel,
    /// η.
    pub rate: f64,
    /// How flows become moves, with a scale for every coordinate of every particle.
    pub rule: Rule,
    /// How the rate changes.
    pub schedule: Schedule,
}

impl Default for SvgdOptions {
    fn default() -> Self {
        Self {
            kernel: SvgdKernel::SquaredExponential { length: None },
            rate: 0.05,
            rule: Rule::ada_grad(),
            schedule: Schedule::Constant,
        }
    }
}

/// Particles that move.
#[derive(Clone, Debug)]
pub struct Svgd {
    particles: Particles,
    options: SvgdOptions,
    optimiser: FlowOptimiser,
}

impl SvgdKernel {
    fn check(self) -> Result<()> {
        match self {
            SvgdKernel::SquaredExponential { length: Some(length) }
                if !(length > 0.0 && length.is_finite()) =>
            {
                Err(Error::Invalid(format!("a kernel has a length above 0, not {length}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns ℓ for particles (D×N), where there is one.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a length that is not above 0, and where more than half of all pairs of particles coincide, so
    /// that the median is 0; for a median, [`Error::Shape`] for fewer than two particles and [`Error::NonFinite`] where it
    /// is none.
    pub fn length(self, x: MatRef<'_, f64>) -> Result<Option<f64>> {
        self.check()?;
        match self {
            SvgdKernel::SquaredExponential { length: None } => {
                let n = x.ncols();
                if n < 2 {
                    return Err(Error::Shape {
                        what: "particles".into(),
                        expected: "at least two, for the median of their distances".into(),
                        found: format!("{n}"),
                    });
                }
                let squares = squared_distances(x);
                let mut all: Vec<f64> = (0..n)
                    .flat_map(|j| (0..j).map(move |i| (i, j)))
                    .map(|at| squares[at])
                    .collect();
                all.sort_by(f64::total_cmp);
                let middle = all.len() / 2;
                let odd = all.len() % 2 == 1;
                let median = if odd { all[middle] } else { 0.5 * (all[middle - 1] + all[middle]) };
                // NaN comes last in the order, so that the median may be a number all the same
                check_finite("a distance between particles", &all)?;
                if median == 0.0 {
                    return Err(Error::Invalid(
                        "half of all pairs of particles coincide: give a length instead of the median".into(),
                    ));
                }
                Ok(Some((median / (2.0 * ((n + 1) as f64).ln())).sqrt()))
            }
            SvgdKernel::SquaredExponential { length } => Ok(length),
            SvgdKernel::Linear | SvgdKernel::CentredLinear => Ok(None),
        }
    }

    /// Returns the flow (D×N) of particles X with gradients G (D×N each).
    ///
    /// # Errors
    /// [`Error::Shape`] if X and G differ in shape; as for [`SvgdKernel::length`].
    pub fn flow(self, x: MatRef<'_, f64>, g: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let (d, n) = (x.nrows(), x.ncols());
        check_dim("gradients", g.nrows(), d)?;
        check_count("gradients", g.ncols(), n)?;
        let scale = 1.0 / n as f64;
        let Some(length) = self.length(x)? else {
            let centred = match self {
                SvgdKernel::CentredLinear => {
                    let mean = crate::flow::target::row_means(x);
                    crate::flow::target::centred(x, &mean)
                }
                _ => x.to_owned(),
            };
            let mut k = Mat::full(n, n, 1.0);
            let z = centred.as_ref();
            gemm(k.as_mut(), Accum::Add, z.transpose(), z, 1.0, par_for(n));
            let mut out = centred.clone();
            gemm(out.as_mut(), Accum::Add, g, k.as_ref(), -scale, par_for(d));
            return Ok(out);
        };
        let precision = 1.0 / (length * length);
        let squares = squared_distances(x);
        let k = Mat::from_fn(n, n, |i, j| (-0.5 * squares[(i, j)] * precision).exp());
        let sums: Vec<f64> = (0..n).map(|j| column(k.as_ref(), j).iter().sum()).collect();
        let mut out = Mat::from_fn(d, n, |i, j| scale * precision * x[(i, j)] * sums[j]);
        gemm(out.as_mut(), Accum::Add, x, k.as_ref(), -scale * precision, par_for(d));
        gemm(out.as_mut(), Accum::Add, g, k.as_ref(), -scale, par_for(d));
        Ok(out)
    }
}

/// Returns ‖xᵢ − xⱼ‖², N×N, from differences: particles that coincide are at 0.
fn squared_distances(x: MatRef<'_, f64>) -> Mat<f64> {
    let square = |i: usize, j: usize| {
        let (a, b) = (column(x, i), column(x, j));
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
    };
    Mat::from_fn(x.ncols(), x.ncols(), square)
}

impl Svgd {
    /// Starts from particles.
    ///
    /// # Errors
    /// [`Error::Invalid`] for options out of range.
    pub fn new(particles: Particles, options: SvgdOptions) -> Result<Self> {
        check_rates(&[options.rate])?;
        check_schedule(options.schedule)?;
        options.kernel.check()?;
        let optimiser = FlowOptimiser::new(options.rule, Scale::Element)?;
        Ok(Self { particles, options, optimiser })
    }

    /// Returns the particles.
    pub fn particles(&self) -> &Particles {
        &self.particles
    }
}

impl Solver for Svgd {
    fn advance(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress> {
        check_dim("the target", target.dim(), self.particles.dim())?;
        target.renew(step);
        let own = Evaluation::of(target, self.particles.x())?;
        let flow = self.options.kernel.flow(self.particles.x(), own.gradient.as_ref())?;
        let rate = self.options.rate * self.options.schedule.factor(step);
        let by = self.optimiser.step(flow.as_ref(), rate)?;
        *self.particles.x_mut() += by;
        let stationarity = flow.squared_norm_l2() / self.particles.count() as f64;
        Ok(Progress { free_energy: None, stationarity, scale: 1.0, stalled: false })
    }

    fn is_finite(&self) -> bool {
        self.particles.is_finite()
    }
}
