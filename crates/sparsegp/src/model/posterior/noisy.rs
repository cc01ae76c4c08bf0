//! Predictions at inputs that are known up to a standard deviation: what is expected over x ~ N(t,
//! diag e²).
//!
//! Rows have the measured inputs t and after them the deviations e of some. Means and variances of
//! a Gaussian process whose kernel has expectations in closed form are exact (Girard, Rasmussen,
//! Quiñonero-Candela & Murray-Smith 2003; the ψ-statistics of [`Psi`]):
//!
//! ```text
//! ⟨f⟩ = ψ₁b      var f = ψ₀ + tr (bbᵀ − A)ψ₂ − ⟨f⟩²      A = L⁻ᵀ(I − RRᵀ)L⁻¹
//! ```
//!
//! All else is an even mixture over nodes: the same standard normal numbers for every row, as many
//! below 0 as above, with variance 1, evenly spread.

use super::gaussian::Gaussian;
use super::law::{Drawn, Law, Marginals, Work, check_columns, refused};
use crate::error::{Error, Result};
use crate::linalg::{
    Accum, Mat, MatRef, column, column_mut, gemm, invert_lower, not_below_0, par_for, product,
    symmetrise,
};
use crate::psi::{Psi, Uncertain};
use crate::variational::Variational;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use statrs::function::erf::erfc_inv;
use std::sync::Arc;

/// Nodes of the mixture.
const NODES: usize = 100;

/// Most dimensions in which nodes are made uncorrelated.
const WHITENED: usize = 10;

/// Inputs with errors before what is known at inputs without.
#[derive(Debug)]
pub(super) struct Noisy {
    /// What is known at inputs without errors.
    whole: Arc<dyn Law>,
    /// The same, or of an average over hyperparameters that with the model's own.
    base: Arc<dyn Law>,
    /// The inputs whose deviations follow them, in this order.
    of: Vec<usize>,
    /// Standard normal numbers, NODES×U.
    nodes: Mat<f64>,
    moments: Option<Moments>,
}

/// What exact moments are made of.
#[derive(Debug)]
struct Moments {
    psi: Psi,
    /// bbᵀ − A of every latent function, M×M.
    against: Vec<Mat<f64>>,
    /// b, M×L.
    weights: Mat<f64>,
}

/// Most of what rounding may take from a variance, as a part of the prior's.
const ROUNDING: f64 = 1e-6;

impl Moments {
    /// Creates the moments; none where the kernel has no expectations in closed form, the posterior
    /// is of another form, or too much would be lost to rounding.
    fn of(base: &Gaussian) -> Option<Self> {
        let [process] = &base.processes[..] else { return None };
        let constant = ["zero", "constant"].contains(&base.mean.name());
        if process.pseudo.is_some() || base.mixing.is_some() || !constant {
            return None;
        }
        let psi = Psi::new(&*process.kernel, process.points.as_ref()).ok()?;
        let m = process.points.nrows();
        let largest = (0..process.weights.ncols())
            .map(|l| column(process.weights.as_ref(), l).iter().map(|b| b * b).sum::<f64>())
            .fold(0.0, f64::max);
        let mut prior = vec![0.0; m];
        process.kernel.diag(process.points.as_ref(), &mut prior);
        let prior = prior.iter().sum::<f64>() / m as f64;
        // errors of sums of b_i b_j ψ₂_ij with random signs
        if 4.0 * f64::EPSILON * largest * prior > ROUNDING {
            return None;
        }
        let mut inverse = Mat::zeros(m, m);
        invert_lower(inverse.as_mut(), process.factor.l.as_ref(), par_for(m));
        let a = |root: Option<&Mat<f64>>| {
            let mut all = product(inverse.transpose(), inverse.as_ref());
            if let Some(root) = root {
                let half = product(inverse.transpose(), root.as_ref());
                gemm(all.as_mut(), Accum::Add, half.as_ref(), half.transpose(), -1.0, par_for(m));
            }
            symmetrise(all.as_mut());
            all
        };
        let shared = (process.roots.len() <= 1).then(|| a(process.root(0)));
        let against = |l: usize| {
            let own = shared.clone().unwrap_or_else(|| a(process.root(l)));
            let b = column(process.weights.as_ref(), l);
            Mat::from_fn(m, m, |i, j| b[i] * b[j] - own[(i, j)])
        };
        let against = (0..process.latents.len()).map(against).collect();
        Some(Self { psi, against, weights: process.weights.clone() })
    }

    fn at(&self, base: &Gaussian, x: Uncertain<'_>) -> Result<Marginals> {
        let (n, latents) = (x.mean.nrows(), self.against.len());
        let centred = product(self.psi.psi1(x)?.as_ref(), self.weights.as_ref());
        let (psi0, none) = (self.psi.psi0(x)?, Mat::zeros(n, 0));
        let traces = self.psi.fold(x, none.as_ref(), none.as_ref(), &self.against)?.traces;
        let variance = Mat::from_fn(n, latents, |i, l| {
            not_below_0(psi0[i] + traces[(i, l)] - centred[(i, l)].powi(2))
        });
        Ok(Marginals { mean: base.start(x.mean) + centred, variance })
    }
}

/// Returns so many standard normal numbers in so many dimensions, spread evenly.
fn nodes(dimensions: usize) -> Mat<f64> {
    // the additive recurrence of the plastic number's relatives fills every cube evenly (Roberts 2018)
    let mut root = 2.0_f64;
    for _ in 0..64 {
        root = (1.0 + root).powf(1.0 / (dimensions as f64 + 1.0));
    }
    let mut all = Mat::zeros(NODES, dimensions);
    for d in 0..dimensions {
        let step = root.powi(-(d as i32 + 1));
        for t in 0..NODES / 2 {
            let share = match dimensions {
                1 => (t as f64 + 0.5) / NODES as f64,
                _ => (0.5 + (t as f64 + 1.0) * step).fract(),
            };
            let normal = -std::f64::consts::SQRT_2 * erfc_inv(2.0 * share);
            (all[(t, d)], all[(NODES - 1 - t, d)]) = (normal, -normal);
        }
    }
    // with few dimensions every product of two numbers averages to what it should
    for d in 0..dimensions {
        for before in 0..if dimensions <= WHITENED { d } else { 0 } {
            let other = all.col_as_slice(before).to_vec();
            let own = all.col_as_slice_mut(d);
            let along = own.iter().zip(&other).map(|(a, b)| a * b).sum::<f64>() / NODES as f64;
            own.iter_mut().zip(&other).for_each(|(a, b)| *a -= along * b);
        }
        let own = all.col_as_slice_mut(d);
        let size = (own.iter().map(|v| v * v).sum::<f64>() / NODES as f64).sqrt();
        own.iter_mut().for_each(|v| *v /= size);
    }
    all
}

/// Returns the rows of which no input has an error.
fn known(variance: &Mat<f64>) -> Vec<usize> {
    let exact = |i: &usize| (0..variance.ncols()).all(|q| variance[(*i, q)] == 0.0);
    (0..variance.nrows()).filter(exact).collect()
}

impl Noisy {
    /// Creates the law; `of` names the inputs whose deviations follow the inputs of a row.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an input that is not there, and for several components.
    pub(super) fn new(whole: Arc<dyn Law>, of: Vec<usize>) -> Result<Self> {
        let base = match whole.alone() {
            Some(own) if whole.count() > 1 => Arc::new(own.clone()),
            _ => whole.clone(),
        };
        if base.count() > 1 {
            return Err(Error::Invalid(
                "predictions at inputs with standard deviations are for models of one layer whose posterior is not a set of \
                 draws: leave the deviations out, or fit another method"
                    .into(),
            ));
        }
        if let Some(q) = of.iter().find(|q| **q >= base.inputs()) {
            return Err(Error::Invalid(format!(
                "there is no input {q} that could have a standard deviation: there are {}",
                base.inputs()
            )));
        }
        // what is not known of a mean function has no such form
        let moments = base.gaussian().filter(|own| own.trend.is_none()).and_then(Moments::of);
        let nodes = nodes(of.len());
        Ok(Self { whole, base, of, nodes, moments })
    }

    /// Returns the measured inputs (B×D) and variances of their errors (B×D).
    fn split(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (n, d) = (x.nrows(), self.base.inputs());
        let measured = x.subcols(0, d).to_owned();
        let mut variance = Mat::zeros(n, d);
        for (at, q) in self.of.iter().enumerate() {
            let own = column(x, d + at);
            if let Some(i) = own.iter().position(|e| !(*e >= 0.0 && e.is_finite())) {
                return Err(Error::Invalid(format!(
                    "the standard deviation {} of input {q} in row {i} (counted from 0) is not a number of at least 0",
                    own[i]
                )));
            }
            let target = column_mut(variance.as_mut(), *q);
            target.iter_mut().zip(own).for_each(|(v, e)| *v += e * e);
        }
        Ok((measured, variance))
    }

    /// Returns what is known at inputs without errors.
    fn known(&self, x: MatRef<f64>) -> Result<Marginals> {
        self.base.check(x)?;
        self.base.marginals(x)
    }

    /// Returns the measured inputs with a deviation each.
    fn moved(&self, measured: &Mat<f64>, x: MatRef<f64>, by: impl Fn(usize) -> f64) -> Mat<f64> {
        let mut own = measured.clone();
        for (at, q) in self.of.iter().enumerate() {
            let (by, deviations) = (by(at), column(x, measured.ncols() + at));
            let target = column_mut(own.as_mut(), *q);
            target.iter_mut().zip(deviations).for_each(|(v, e)| *v += by * e);
        }
        own
    }

    /// Draws inputs, independently of each other.
    fn drawn(&self, x: MatRef<f64>, rng: &mut dyn Rng) -> Result<Mat<f64>> {
        let (mut own, _) = self.split(x)?;
        for (at, q) in self.of.iter().enumerate() {
            for i in 0..x.nrows() {
                let normal: f64 = StandardNormal.sample(rng);
                own[(i, *q)] += x[(i, self.base.inputs() + at)] * normal;
            }
        }
        Ok(own)
    }
}

impl Law for Noisy {
    fn gaussian(&self) -> Option<&Gaussian> {
        self.base.gaussian()
    }

    fn inputs(&self) -> usize {
        self.base.inputs() + self.of.len()
    }

    /// Lets kernels look at rows without the deviations.
    fn check(&self, x: MatRef<f64>) -> Result<()> {
        check_columns(x, self.inputs())
    }

    fn count(&self) -> usize {
        NODES
    }

    fn joins_targets(&self) -> bool {
        true
    }

    fn components<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<()> {
        let (measured, variance) = self.split(x)?;
        if known(&variance).len() == x.nrows() {
            let own = self.known(measured.as_ref())?;
            (0..NODES).for_each(|_| work(None, &own));
            return Ok(());
        }
        for t in 0..NODES {
            let moved = self.moved(&measured, x, |at| self.nodes[(t, at)]);
            work(None, &self.known(moved.as_ref())?);
        }
        Ok(())
    }

    /// Returns the moments where no row has an error, and where the kernel has expectations in
    /// closed form.
    fn exact(&self, x: MatRef<f64>) -> Result<Option<Marginals>> {
        let (measured, variance) = self.split(x)?;
        let known = known(&variance);
        if known.len() == x.nrows() {
            return self.known(measured.as_ref()).map(Some);
        }
        let Some(moments) = &self.moments else { return Ok(None) };
        self.base.check(measured.as_ref())?;
        let x = Uncertain::new(measured.as_ref(), variance.as_ref())?;
        let Some(base) = self.base.gaussian() else { return Ok(None) };
        let mut all = moments.at(base, x)?;
        // rows without an error are not to have the rounding of those with one
        let exact = Mat::from_fn(known.len(), measured.ncols(), |i, q| measured[(known[i], q)]);
        let own = self.known(exact.as_ref())?;
        for l in 0..all.mean.ncols() {
            for (at, i) in known.iter().enumerate() {
                all.mean[(*i, l)] = own.mean[(at, l)];
                all.variance[(*i, l)] = own.variance[(at, l)];
            }
        }
        Ok(Some(all))
    }

    fn sample<'a>(
        &'a self,
        x: MatRef<'_, f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Vec<Drawn<'a>>> {
        let mut all = Vec::with_capacity(samples);
        for _ in 0..samples {
            let own = self.drawn(x, rng)?;
            self.base.check(own.as_ref())?;
            all.extend(self.base.sample(own.as_ref(), 1, rng)?);
        }
        Ok(all)
    }

    fn refusal(&self, what: &str) -> Error {
        refused(what, "inputs without standard deviations", "at others, of single rows,")
    }

    fn draws(&self) -> &[Mat<f64>] {
        self.whole.draws()
    }

    fn hyperparameters(&self) -> &[Vec<f64>] {
        self.whole.hyperparameters()
    }

    fn sites(&self) -> &[Variational] {
        self.whole.sites()
    }

    fn times(&self) -> Vec<usize> {
        self.whole.times()
    }

    fn without_errors(&self) -> Option<&Arc<dyn Law>> {
        Some(&self.whole)
    }
}
