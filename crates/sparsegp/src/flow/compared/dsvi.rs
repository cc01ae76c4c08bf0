//! Doubly stochastic variational inference (Titsias & Lázaro-Gredilla 2014).
//!
//! With x = μ + Lε the gradients of F = E[φ] − log|L| are ∇μ = ḡ and ∇L = tril(GEᵀ)/S − diag(1/Lᵢᵢ); of a diagonal root
//! ∇σ = E[g∘ε] − 1/σ.

use super::{DescentOptions, kept_positive};
use crate::error::{Error, Result};
use crate::flow::optimiser::{FlowOptimiser, Scale};
use crate::flow::particles::{normals, shifted};
use crate::flow::run::{Progress, Solver};
use crate::flow::target::{Evaluation, Target, check_dim, check_finite, check_finite_matrix};
use crate::linalg::{Mat, MatRef, column, product};
use crate::rng::stream;
use rand::Rng;

/// A root of a covariance, with a diagonal above 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Root {
    /// L, D×D and lower triangular.
    Lower(Mat<f64>),
    /// σ, D numbers.
    Diagonal(Vec<f64>),
}

impl Root {
    fn diagonal(&self) -> Vec<f64> {
        match self {
            Root::Lower(l) => (0..l.nrows()).map(|i| l[(i, i)]).collect(),
            Root::Diagonal(sigma) => sigma.clone(),
        }
    }

    fn as_matrix(&self) -> Mat<f64> {
        match self {
            Root::Lower(l) => l.clone(),
            Root::Diagonal(sigma) => Mat::from_fn(sigma.len(), 1, |i, _| sigma[i]),
        }
    }
}

/// q = N(μ, LLᵀ) that descends.
#[derive(Clone, Debug)]
pub struct Dsvi {
    mean: Vec<f64>,
    root: Root,
    options: DescentOptions,
    /// Of the mean and of the root.
    optimisers: [FlowOptimiser; 2],
}

/// Gradients of the free energy.
#[derive(Clone, Debug)]
pub struct DsviGradient {
    /// By μ, D numbers.
    pub mean: Vec<f64>,
    /// By the root, in its shape.
    pub root: Root,
    /// The estimate of F itself.
    pub free_energy: f64,
}

impl Dsvi {
    /// Starts from a mean (D numbers) and a root.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NonFinite`], and [`Error::Invalid`] for a root whose diagonal is not above 0 or
    /// that is not lower triangular, and for options out of range.
    pub fn new(mean: Vec<f64>, root: Root, options: DescentOptions) -> Result<Self> {
        options.check()?;
        check_finite("the mean of a Gaussian", &mean)?;
        match &root {
            Root::Lower(l) => {
                check_dim("rows of a root", l.nrows(), mean.len())?;
                check_dim("columns of a root", l.ncols(), mean.len())?;
                check_finite_matrix("a root of a covariance", l.as_ref())?;
                if (0..l.ncols()).any(|j| (0..j).any(|i| l[(i, j)] != 0.0)) {
                    let text = "a root is lower triangular, with zeros above its diagonal";
                    return Err(Error::Invalid(text.into()));
                }
            }
            Root::Diagonal(sigma) => {
                check_dim("standard deviations", sigma.len(), mean.len())?;
                check_finite("a standard deviation", sigma)?;
            }
        }
        if let Some(least) = root.diagonal().iter().find(|v| **v <= 0.0) {
            let text = format!("a root has a diagonal above 0, not {least}");
            return Err(Error::Invalid(text));
        }
        let optimiser = || FlowOptimiser::new(options.rule, Scale::Element);
        let optimisers = [optimiser()?, optimiser()?];
        Ok(Self { mean, root, options, optimisers })
    }

    /// Returns μ, D numbers.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Returns the root.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns μ1ᵀ + LE (D×S) for E of D×S.
    fn positions(&self, e: MatRef<'_, f64>) -> Mat<f64> {
        let centred = match &self.root {
            Root::Lower(l) => product(l.as_ref(), e),
            Root::Diagonal(sigma) => {
                Mat::from_fn(e.nrows(), e.ncols(), |i, s| sigma[i] * e[(i, s)])
            }
        };
        shifted(centred, &self.mean)
    }

    /// Draws S positions of q, D×S.
    pub fn draw(&self, count: usize, rng: &mut impl Rng) -> Mat<f64> {
        self.positions(normals(self.mean.len(), count, rng).as_ref())
    }

    /// Computes the gradients for given draws E (D×S).
    ///
    /// # Errors
    /// [`Error::Shape`] for draws of another dimension; as for [`Evaluation::of`].
    pub fn gradient(&self, target: &mut dyn Target, e: MatRef<'_, f64>) -> Result<DsviGradient> {
        check_dim("rows of draws", e.nrows(), self.mean.len())?;
        let own = Evaluation::of(target, self.positions(e).as_ref())?;
        let (g, d) = (own.gradient.as_ref(), self.root.diagonal());
        let scale = 1.0 / e.ncols() as f64;
        let root = match &self.root {
            Root::Lower(_) => {
                let mut by = product(g, e.transpose()) * faer::Scale(scale);
                crate::linalg::clear_upper(by.as_mut());
                d.iter().enumerate().for_each(|(i, l)| by[(i, i)] -= 1.0 / l);
                Root::Lower(by)
            }
            Root::Diagonal(_) => {
                let mean = |i: usize| (0..e.ncols()).map(|s| g[(i, s)] * e[(i, s)]).sum::<f64>();
                Root::Diagonal(
                    d.iter().enumerate().map(|(i, s)| scale * mean(i) - 1.0 / s).collect(),
                )
            }
        };
        let entropy: f64 = d.iter().map(|v| v.ln()).sum();
        let free_energy = own.mean_phi() - entropy;
        Ok(DsviGradient { mean: own.mean_gradient(), root, free_energy })
    }
}

impl Solver for Dsvi {
    fn advance(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress> {
        check_dim("the target", target.dim(), self.mean.len())?;
        target.renew(step);
        let mut rng = stream(self.options.seed, &format!("flow/draws/{step}"));
        let e = normals(self.mean.len(), self.options.draws, &mut rng);
        let gradient = self.gradient(target, e.as_ref())?;
        let rate = self.options.rate * self.options.schedule.factor(step);
        let [of_mean, of_root] = &mut self.optimisers;
        let by = of_mean.step_vector(&gradient.mean, -rate)?;
        self.mean.iter_mut().zip(by).for_each(|(m, by)| *m += by);
        let slopes = gradient.root.as_matrix();
        let by = of_root.step(slopes.as_ref(), -rate)?;
        let diagonal = self.root.diagonal();
        let along: Vec<f64> = match &self.root {
            Root::Lower(_) => (0..diagonal.len()).map(|i| by[(i, i)]).collect(),
            Root::Diagonal(_) => column(by.as_ref(), 0).to_vec(),
        };
        let scale = kept_positive(diagonal.iter().zip(&along));
        match &mut self.root {
            Root::Lower(l) => *l += by * faer::Scale(scale),
            Root::Diagonal(sigma) => {
                sigma.iter_mut().zip(along).for_each(|(s, by)| *s += scale * by);
            }
        }
        let square: f64 = gradient.mean.iter().map(|g| g * g).sum();
        Ok(Progress {
            free_energy: Some(gradient.free_energy),
            stationarity: square + slopes.squared_norm_l2(),
            scale,
            stalled: false,
        })
    }

    fn is_finite(&self) -> bool {
        check_finite("", &self.mean).is_ok()
            && check_finite_matrix("", self.root.as_matrix().as_ref()).is_ok()
    }
}
