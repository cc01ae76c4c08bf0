//! What is known of the latent functions, as predictions see it: one object, whatever it was found
//! by.
//!
//! Of the functions at a row it is an even mixture of *components*, in each of which they are
//! independent and normal: a single one for a Gaussian process, one for each draw of a sampler, for
//! each path through hidden layers, for each node of inputs with errors. All that is said of
//! observations is averaged over components, and joint draws are of one at a time.

use super::closed_form::ClosedForm;
use super::conditioned::Conditioned;
use super::gaussian::Gaussian;
use super::gradients::InputGradients;
use super::pathwise::Bundle;
use super::terms::PredictedTerm;
use crate::error::{Error, Result};
use crate::likelihoods::Likelihood;
use crate::linalg::{Mat, MatRef, column, column_mut};
use crate::variational::Variational;
use rand::Rng;
use std::sync::Arc;

/// Means and variances of the latent functions at rows, B×L each.
#[derive(Clone, Debug)]
pub(in crate::model) struct Marginals {
    pub(in crate::model) mean: Mat<f64>,
    pub(in crate::model) variance: Mat<f64>,
}

/// Moments of an even mixture whose components come one after the other.
pub(super) struct Pooled {
    moments: Marginals,
    count: f64,
}

/// Means of the latent functions (B×L) and their covariances over rows.
pub(super) struct Joint {
    pub(super) mean: Mat<f64>,
    /// B×B for every function that has a q: those that are mixed, else all.
    pub(super) own: Vec<Mat<f64>>,
    /// W, where there is mixing.
    pub(super) mixing: Option<Mat<f64>>,
}

/// A joint draw of the latent functions.
pub(super) struct Drawn<'a> {
    /// That of the component, where components have their own.
    pub(super) likelihood: Option<&'a dyn Likelihood>,
    /// B×L.
    pub(super) f: Mat<f64>,
}

/// What is done with every component: its likelihood, where components have their own, and what is
/// known there.
pub(super) type Work<'w, 'a> = &'w mut dyn FnMut(Option<&'a dyn Likelihood>, &Marginals);

/// What is known of the latent functions. [`Law::joint`], [`Law::gradients`] and [`Law::hidden`]
/// check rows themselves; those of all else have passed [`Law::check`].
pub(super) trait Law: std::fmt::Debug + Send + Sync {
    /// Returns the Gaussian process of points inside: all there is, the moments of draws, or the
    /// last of several layers; none where rows are kept instead.
    fn gaussian(&self) -> Option<&Gaussian> {
        None
    }

    /// Returns the rows that are kept, with what predicts from them.
    fn conditioned(&self) -> Option<&Conditioned> {
        None
    }

    /// Returns the inputs of the rows that it is of, where neither of these has them.
    fn points(&self) -> Option<MatRef<'_, f64>> {
        None
    }

    /// Returns that Gaussian process where it is all there is.
    fn alone(&self) -> Option<&Gaussian> {
        None
    }

    /// Returns the number of input columns D.
    fn inputs(&self) -> usize {
        self.gaussian().map_or(0, Gaussian::inputs)
    }

    /// Returns the number of latent functions L, mixed ones where there is mixing.
    fn latents(&self) -> usize {
        self.gaussian().map_or(0, Gaussian::latents)
    }

    /// Refuses rows that nothing can be predicted at.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns, and what kernels refuse.
    fn check(&self, x: MatRef<f64>) -> Result<()> {
        self.gaussian().map_or(Ok(()), |own| own.check(x))
    }

    /// Returns how many components there are.
    fn count(&self) -> usize {
        1
    }

    /// Calls `work` with every component, in an order that is always the same.
    ///
    /// # Errors
    /// What layers or inputs with errors refuse.
    fn components<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<()>;

    /// Returns whether the targets of a row are together in a component: else they are independent
    /// of each other.
    fn joins_targets(&self) -> bool {
        false
    }

    /// Returns the moments of the mixture where there is a closed form that is better than the
    /// average over components.
    ///
    /// # Errors
    /// As for [`Law::components`].
    fn exact(&self, _x: MatRef<f64>) -> Result<Option<Marginals>> {
        Ok(None)
    }

    /// Calls `work` with every component, and returns the moments of the mixture: what
    /// [`Law::marginals`] gives, by one pass.
    ///
    /// # Errors
    /// As for [`Law::components`].
    fn sweep<'a>(&'a self, x: MatRef<'_, f64>, work: Work<'_, 'a>) -> Result<Marginals> {
        if let Some(exact) = self.exact(x)? {
            self.components(x, work)?;
            return Ok(exact);
        }
        let mut pooled = Pooled::new(x.nrows(), self.latents());
        self.components(x, &mut |likelihood, at| {
            pooled.add(at);
            work(likelihood, at);
        })?;
        Ok(pooled.moments)
    }

    /// Returns the moments of the mixture.
    ///
    /// # Errors
    /// As for [`Law::components`].
    fn marginals(&self, x: MatRef<f64>) -> Result<Marginals> {
        match self.exact(x)? {
            Some(exact) => Ok(exact),
            None => self.sweep(x, &mut |_, _| {}),
        }
    }

    /// Returns only its means, B×L.
    ///
    /// # Errors
    /// As for [`Law::components`].
    fn means(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        Ok(self.marginals(x)?.mean)
    }

    /// Draws the latent functions jointly.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`], and as for [`Law::components`].
    fn sample<'a>(
        &'a self,
        x: MatRef<'_, f64>,
        samples: usize,
        rng: &mut dyn Rng,
    ) -> Result<Vec<Drawn<'a>>>;

    /// Says why something is not known.
    fn refusal(&self, what: &str) -> Error {
        Error::Invalid(format!("{what} is not known of this posterior"))
    }

    /// Returns the means and full covariances.
    ///
    /// # Errors
    /// [`Error::Invalid`] where they are not known, else as for [`Law::check`].
    fn joint(&self, _x: MatRef<f64>) -> Result<Joint> {
        Err(self.refusal("a covariance of rows"))
    }

    /// Returns the slopes of the moments in the inputs.
    ///
    /// # Errors
    /// [`Error::Invalid`] where they are not known, else as for [`Law::check`].
    fn gradients(&self, _x: MatRef<f64>) -> Result<InputGradients> {
        Err(self.refusal("a slope of predictions"))
    }

    /// Returns the moments of the terms of the latent functions, centred if so said; `names` are
    /// those of the inputs.
    ///
    /// # Errors
    /// [`Error::Invalid`] where they are not known, else as for [`Law::check`].
    fn terms(
        &self,
        _: MatRef<f64>,
        _names: &[String],
        _centred: bool,
    ) -> Result<Vec<PredictedTerm>> {
        Err(self.refusal("a prediction of terms"))
    }

    /// Returns what components predict with, where that is a closed formula; `likelihood` is that
    /// of all which have no separate one.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it is none.
    fn closed_forms<'a>(&'a self, _: &'a dyn Likelihood) -> Result<Vec<ClosedForm<'a>>> {
        Err(self.refusal("a closed formula of predictions"))
    }

    /// Returns what drawn functions are made of, for every process of the Gaussian inside.
    ///
    /// # Errors
    /// [`Error::Invalid`] where there are none.
    fn functions(&self, _samples: usize, _waves: usize, _rng: &mut dyn Rng) -> Result<Vec<Bundle>> {
        Err(self.refusal("a function drawn by its features"))
    }

    /// Draws of the whitened variables, M×L each, where it is of draws.
    fn draws(&self) -> &[Mat<f64>] {
        &[]
    }

    /// Returns the hyperparameters of every draw, where they were sampled too, or of every part of
    /// an average over them.
    fn hyperparameters(&self) -> &[Vec<f64>] {
        &[]
    }

    /// Returns q of each of these, where the method keeps sites of all rows.
    fn sites(&self) -> &[Variational] {
        &[]
    }

    /// Returns how many components have each of these.
    fn times(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns the moments of what every hidden layer gives, B×P each.
    ///
    /// # Errors
    /// As for [`Law::check`].
    fn hidden(&self, _x: MatRef<f64>) -> Result<Vec<Marginals>> {
        Ok(Vec::new())
    }

    /// Returns what is known at inputs without errors, where this is of inputs with some.
    fn without_errors(&self) -> Option<&Arc<dyn Law>> {
        None
    }
}

/// Refuses another number of columns.
pub(super) fn check_columns(x: MatRef<f64>, inputs: usize) -> Result<()> {
    if x.ncols() == inputs {
        return Ok(());
    }
    Err(Error::Shape {
        what: "inputs to predict at".into(),
        expected: format!("{inputs} columns"),
        found: format!("{} columns", x.ncols()),
    })
}

/// Refuses what is known only of some posteriors; of others the rest is.
pub(super) fn refused(what: &str, of: &str, others: &str) -> Error {
    Error::Invalid(format!(
        "{what} is for {of}; {others} there are means, variances, quantiles, densities and draws"
    ))
}

/// Takes a component into mean and variance of an even mixture, of which its share is `share`:
/// Welford's sums, which for one component are its moments.
pub(super) fn pool(share: f64, (mean, variance): (&mut f64, &mut f64), (own, within): (f64, f64)) {
    let apart = own - *mean;
    *mean += share * apart;
    let between = (1.0 - share) * apart * apart;
    *variance += share * (within + between - *variance);
}

impl Marginals {
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        Self { mean: Mat::zeros(rows, columns), variance: Mat::zeros(rows, columns) }
    }
}

impl Pooled {
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        Self { moments: Marginals::zeros(rows, columns), count: 0.0 }
    }

    pub(super) fn mean(&self) -> Mat<f64> {
        self.moments.mean.clone()
    }

    pub(super) fn add(&mut self, own: &Marginals) {
        self.count += 1.0;
        for l in 0..own.mean.ncols() {
            let means = column(own.mean.as_ref(), l);
            let within = means.iter().zip(column(own.variance.as_ref(), l));
            let mean = column_mut(self.moments.mean.as_mut(), l).iter_mut();
            let all = mean.zip(column_mut(self.moments.variance.as_mut(), l)).zip(within);
            all.for_each(|((m, v), (own, within))| {
                pool(1.0 / self.count, (m, v), (*own, *within));
            });
        }
    }
}

impl Joint {
    /// Returns the covariance of every latent function, B×B.
    pub(super) fn each(self) -> Vec<Mat<f64>> {
        match &self.mixing {
            Some(w) => super::mixing::mixed_matrices(w, &self.own, |w| w * w),
            None => self.own,
        }
    }

    /// Returns the covariance of all latent functions at all rows, BL×BL: function l at row i has
    /// the index l·B + i.
    pub(super) fn whole(&self) -> Mat<f64> {
        let (n, l) = (self.mean.nrows(), self.mean.ncols());
        let w = self.mixing.clone().unwrap_or_else(|| Mat::identity(l, l));
        let mut joint = Mat::zeros(n * l, n * l);
        for (q, c) in self.own.iter().enumerate() {
            for a in (0..l).filter(|a| w[(*a, q)] != 0.0) {
                for b in (0..l).filter(|b| w[(*b, q)] != 0.0) {
                    let mut block = joint.as_mut().submatrix_mut(a * n, b * n, n, n);
                    block += faer::Scale(w[(a, q)] * w[(b, q)]) * c;
                }
            }
        }
        joint
    }
}

#[cfg(test)]
#[path = "law_tests.rs"]
mod tests;
