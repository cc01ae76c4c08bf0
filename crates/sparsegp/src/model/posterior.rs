//! What a model believes after seeing data.

mod closed_form;
mod conditioned;
mod draws;
mod gaussian;
mod gradients;
mod hidden;
mod law;
mod mixing;
mod noisy;
mod observations;
mod of_functions;
mod operands;
mod paths;
mod pathwise;
mod process;
mod quantiles;
mod rounding;
mod sampled;
mod single;
mod terms;
mod trend;
mod whitened;

pub(crate) use closed_form::{ClosedForm, ClosedProcess, ClosedTrend, Explained};
pub use conditioned::{Conditional, ConditioningRows, Left, Moments};
pub use gradients::InputGradients;
pub use observations::Judgement;
pub use pathwise::{DEFAULT_WAVES, Functions};
pub use quantiles::Predicted;
pub use terms::PredictedTerm;

pub(super) use conditioned::Conditioned;
pub(super) use gaussian::{Gaussian, Split};
#[cfg(feature = "files")]
pub(crate) use trend::SavedTrend;

use super::Model;
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::likelihoods::Likelihood;
use crate::linalg::{Cholesky, Mat, MatRef};
use crate::markov::Past;
use crate::variational::Variational;
use draws::Draws;
use hidden::Hidden;
use law::{Law, Marginals};
use noisy::Noisy;
use paths::Paths;
use process::Process;
use sampled::Sampled;
use std::sync::{Arc, LazyLock};
use whitened::Whitened;

/// What is known of the latent functions after data were seen, and the observation model:
/// everything that is predicted.
///
/// The functions may be a conditioned Gaussian process, or an even mixture: of draws, of draws with
/// hyperparameters each, of paths through hidden layers, of inputs with errors.
#[derive(Clone, Debug)]
pub struct Posterior {
    likelihood: Box<dyn Likelihood>,
    law: Arc<dyn Law>,
}

/// Returns no numbers.
fn nothing<'a>() -> MatRef<'a, f64> {
    MatRef::from_column_major_slice(&[], 0, 0)
}

impl Posterior {
    fn of_law(model: &Model, law: impl Law + 'static) -> Self {
        Self { likelihood: model.likelihood.clone(), law: Arc::new(law) }
    }

    /// Creates the posterior where all latent functions share everything, from its parts: points
    /// (M×D), factor of their covariance, whitened mean (M×L) and, but for exact inference, lower
    /// root of the whitened covariance (M×M).
    pub fn new(
        model: &Model,
        points: Mat<f64>,
        factor: Cholesky,
        q_mu: Mat<f64>,
        q_sqrt: Option<Mat<f64>>,
    ) -> Self {
        let kernel = model.kernels[0].clone();
        let noise = q_sqrt.is_none().then(|| model.noise()).filter(|v| !v.is_nan());
        let roots = q_sqrt.into_iter().collect();
        let process = Process::new(0..q_mu.ncols(), kernel, points, factor, roots, q_mu.as_ref());
        Self::of_law(model, Gaussian { noise, ..Gaussian::new(model, q_mu, vec![process]) })
    }

    /// Creates the posterior from a model whose q(u) is a parameter.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if it has none, or if hidden layers have other inducing variables
    /// than points; [`crate::Error::NotPositiveDefinite`].
    pub fn of_q(model: &Model) -> Result<Self> {
        let last = Gaussian::of_q(model)?;
        Ok(match model.hidden.is_empty() {
            true => Self::of_law(model, last),
            false => Self::of_law(model, Hidden::new(model, last)?),
        })
    }

    /// Creates the posterior of rows that are kept, and what predicts from them.
    pub(crate) fn of_kept_rows(model: &Model, rows: InMemory, known: Arc<dyn Conditional>) -> Self {
        Self::of_law(model, Conditioned::new(model, rows, known))
    }

    /// Creates the posterior without inducing points: at the inputs of all rows, from a factor L
    /// and a mean m for every latent function, q(f(x)) = N(m(x) + φᵀm, k(x, x) − ‖φ‖²) with φ =
    /// L⁻¹k(X, x).
    pub(crate) fn of_rows(model: &Model, x: &Mat<f64>, factors: Vec<(Cholesky, Mat<f64>)>) -> Self {
        let mut q_mu = Mat::zeros(x.nrows(), factors.len());
        let mut processes = Vec::with_capacity(factors.len());
        for (l, (factor, mean)) in factors.into_iter().enumerate() {
            q_mu.as_mut().subcols_mut(l, 1).copy_from(&mean);
            let kernel = model.kernel_of(l).clone_box();
            let own = l..l + 1;
            processes.push(Process::new(own, kernel, x.clone(), factor, vec![], mean.as_ref()));
        }
        Self::of_law(model, Gaussian::new(model, q_mu, processes))
    }

    /// Creates the posterior from draws of the whitened variables of points (one set for every
    /// kernel; training inputs where there are no inducing points), or for a series of the states
    /// at its rows. Means and variances of latent functions are those of the mixture; so are means,
    /// variances, densities, probabilities and distribution functions of observations, each an
    /// average over the draws, and quantiles by the last.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for draws that do not fit, [`crate::Error::NotPositiveDefinite`].
    pub fn of_draws(model: &Model, x: Option<&Mat<f64>>, draws: Vec<Mat<f64>>) -> Result<Self> {
        match x.filter(|_| model.method.is_of_series()) {
            Some(x) => Ok(Self::of_law(model, Paths::new(model, x, draws)?)),
            None => Ok(Self::of_law(model, Draws::new(model, x, draws)?)),
        }
    }

    /// Creates the posterior from draws with their own hyperparameters: as [`Posterior::of_draws`],
    /// with a factor for every draw. The moments of q(u) are those under the model's
    /// hyperparameters.
    ///
    /// # Errors
    /// As for [`Posterior::of_draws`]; [`crate::Error::Shape`] for hyperparameters that are not the
    /// model's.
    pub fn of_sampled(
        model: &Model,
        x: Option<&Mat<f64>>,
        draws: Vec<Mat<f64>>,
        hyperparameters: Vec<Vec<f64>>,
    ) -> Result<Self> {
        Ok(Self::of_law(model, Sampled::new(model, x, draws, hyperparameters)?))
    }

    /// Averages exact inference, or that by sites of all rows, over other hyperparameters, each of which counts so many `times`, with
    /// its own `sites` where there are such. Leaving rows out, drawn
    /// functions and inputs with errors stay with the model's own. `weighted` says that noises of rows differ by weights.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for other posteriors than these; what conditioning gives.
    pub(crate) fn integrated(
        self,
        model: &Model,
        hyperparameters: Vec<Vec<f64>>,
        times: &[usize],
        sites: Vec<Variational>,
        weighted: bool,
    ) -> Result<Self> {
        let Some(own) = self.law.alone().filter(|own| own.is_exact()) else {
            return Err(self.law.refusal("an average over hyperparameters"));
        };
        let law = Sampled::integrated(model, own.clone(), hyperparameters, times, sites, weighted)?;
        Ok(Self { law: Arc::new(law), ..self })
    }

    /// Sets the variances of the noise, of exact inference on rows whose noise differs, to be kept
    /// with the inputs.
    #[must_use]
    pub fn with_row_noise(self, row_noise: Vec<f64>) -> Self {
        match self.law.alone() {
            Some(own) => Self { law: Arc::new(Gaussian { row_noise, ..own.clone() }), ..self },
            None => self,
        }
    }

    /// Returns the posterior for rows that have, after their inputs, the standard deviations of
    /// some: all predictions are then of x ~ N(t, diag e²). `of` names the inputs whose deviations
    /// these are, in the order of their columns. Means and variances are exact for kernels with
    /// expectations in closed form (`rbf`, `linear`, `constant`, their sums) and a mean that is
    /// constant; all else is averaged over a hundred nodes.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for an input that is not there, a deep model and a posterior of
    /// draws.
    pub fn with_input_deviations(self, of: Vec<usize>) -> Result<Self> {
        if self.law.alone().is_some_and(|own| own.single.is_some()) {
            return Err(Error::Invalid(
                "predictions at inputs with standard deviations are in double precision: do not ask for mixed precision"
                    .into(),
            ));
        }
        let noisy = Noisy::new(self.law, of)?;
        Ok(Self { law: Arc::new(noisy), ..self })
    }

    /// Returns the posterior for inputs that are known exactly.
    #[must_use]
    pub fn without_input_deviations(self) -> Self {
        let law = self.law.without_errors().unwrap_or(&self.law).clone();
        Self { law, ..self }
    }

    /// Returns the observation model.
    pub fn likelihood(&self) -> &dyn Likelihood {
        &*self.likelihood
    }

    /// Returns the Gaussian process where it is all that is known.
    pub(super) fn alone(&self) -> Option<&Gaussian> {
        self.law.alone()
    }

    /// Returns the rows that are kept, with what predicts from them.
    pub(super) fn conditioned(&self) -> Option<&Conditioned> {
        self.law.conditioned()
    }

    /// Returns the objective that the rows have that are kept; none where there are none.
    pub(crate) fn kept_objective(&self) -> Option<f64> {
        self.law.conditioned().map(|own| own.known.objective())
    }

    /// Returns what rows say that have left the posterior of a series; none where all are kept.
    pub fn past(&self) -> Option<&Past> {
        self.law.conditioned().and_then(|own| own.known.past())
    }

    /// Takes up rows of which the first are those that are kept, if that costs less than
    /// conditioning again.
    ///
    /// # Errors
    /// What conditioning gives.
    pub(crate) fn extended(&self, model: &Model, rows: &InMemory) -> Result<Option<Self>> {
        let Some(own) = self.law.conditioned() else { return Ok(None) };
        let known = own.known.extended(model, rows)?;
        Ok(known.map(|known| Self::of_kept_rows(model, rows.clone(), known)))
    }

    /// Lets the first of the rows that are kept go until about `keep` are left, and keeps what they say. Returns how many went; none
    /// where rows do not leave.
    ///
    /// # Errors
    /// What conditioning gives.
    pub(crate) fn with_last(&self, model: &Model, keep: usize) -> Result<Option<(Self, usize)>> {
        let Some(own) = self.law.conditioned() else { return Ok(None) };
        let n = own.rows.x.nrows();
        let most = n.saturating_sub(keep.max(1));
        let Some((left, known)) = own.known.without_first(model, &own.rows, most)? else {
            return Ok(None);
        };
        let rest: Vec<usize> = (left..n).collect();
        Ok(Some((Self::of_kept_rows(model, own.rows.picked(&rest), known), left)))
    }

    /// Returns the variances of the noise of the rows of exact inference, where they differ; else
    /// empty.
    pub fn row_noise(&self) -> &[f64] {
        self.law.gaussian().map_or(&[], |own| &own.row_noise)
    }

    /// Returns the number of latent functions L, mixed ones where [`Likelihood::mixing`] says so.
    pub fn latents(&self) -> usize {
        self.law.latents()
    }

    /// Returns the number of target columns P.
    pub fn outputs(&self) -> usize {
        self.latents() / self.likelihood.latents()
    }

    /// Returns the number of input columns D.
    pub fn inputs(&self) -> usize {
        self.law.inputs()
    }

    /// Returns how many laws the predictions are an even mixture of; 1 where they are not a
    /// mixture.
    pub fn components_count(&self) -> usize {
        self.law.count()
    }

    /// Returns the inducing points, or training inputs for exact inference and where rows are kept;
    /// the first set of several.
    pub fn points(&self) -> MatRef<'_, f64> {
        match (self.law.gaussian(), self.law.conditioned()) {
            (Some(own), _) => own.points().0,
            (None, Some(own)) => own.rows.x.as_ref(),
            (None, None) => self.law.points().unwrap_or_else(nothing),
        }
    }

    /// Returns the rows that are kept, of methods with neither inducing points nor a factor of all
    /// rows.
    pub fn kept_rows(&self) -> Option<&InMemory> {
        self.law.conditioned().map(|own| &*own.rows)
    }

    /// Returns the whitened mean of q, M×L; for L-SVGP and R-SVGP in the coordinates of their
    /// features. Empty where rows are kept.
    pub fn q_mu(&self) -> MatRef<'_, f64> {
        self.law.gaussian().map_or(nothing(), |own| own.q_mu.as_ref())
    }

    /// Returns the lower roots of the whitened covariances of q, M×M each: one that all latent
    /// functions share or one for each; none for exact inference, L-SVGP and R-SVGP.
    pub fn q_sqrt(&self) -> Vec<MatRef<'_, f64>> {
        self.law.gaussian().map_or_else(Vec::new, Gaussian::roots)
    }

    /// Returns the factor of Kuu (of K + σ²I for exact inference, of Kuu + Λ for L-SVGP); the first
    /// of several. That of R-SVGP, which has none, is empty, and so is it where rows are kept.
    pub fn factor(&self) -> &Cholesky {
        static NONE: LazyLock<Cholesky> = LazyLock::new(|| Cholesky::of_factor(Mat::new()));
        self.law.gaussian().map_or(&NONE, |own| own.points().1)
    }

    /// Returns q(u) = N(L m, L R Rᵀ Lᵀ) of the inducing variables u = f(Z) − m(Z): means M×L and
    /// the covariance of every latent function, M×M. None for exact inference.
    pub fn q_u(&self) -> Option<(Mat<f64>, Vec<Mat<f64>>)> {
        self.law.gaussian()?.q_u()
    }

    /// Shows the whitened q of latent function `l`; none for exact inference, pseudo-observations
    /// and draws.
    pub fn whitened(&self, l: usize) -> Option<Whitened<'_>> {
        self.law.alone()?.whitened(l)
    }

    /// Draws of the whitened variables, M×L each, where the posterior was sampled; else empty.
    pub fn draws(&self) -> &[Mat<f64>] {
        self.law.draws()
    }

    /// Returns the hyperparameters of every draw, where they were sampled too, or of every part of
    /// an average over them, in the order of the parameters but for inducing points and q; else
    /// empty.
    pub fn hyperparameters(&self) -> &[Vec<f64>] {
        self.law.hyperparameters()
    }

    /// Returns how many of the components have each of the [`Posterior::hyperparameters`]; empty
    /// where these are plugged in.
    pub fn times(&self) -> Vec<usize> {
        self.law.times()
    }

    /// Returns q of each of the [`Posterior::hyperparameters`], where the method keeps sites of all
    /// rows; else empty.
    pub fn sites(&self) -> &[Variational] {
        self.law.sites()
    }

    /// Estimates what rounding changes in the log evidence of exact inference, in nats
    /// ([`super::precision`]); none for other methods. O(N²).
    pub(crate) fn rounding(&self) -> Option<f64> {
        self.law.gaussian()?.rounding()
    }

    /// Returns only means of the latent functions, B×L. 2M multiply-adds per row and function.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs.
    pub fn predict_mean(&self, x: MatRef<f64>) -> Result<Mat<f64>> {
        self.law.check(x)?;
        self.law.means(x)
    }

    /// Returns the means and variances of the latent functions, B×L each. No variance is below its
    /// rounding, some (4 + √M)2⁻⁵² of the prior variance.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs.
    pub fn predict_f(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        self.law.check(x)?;
        let Marginals { mean, variance } = self.law.marginals(x)?;
        Ok((mean, variance))
    }

    /// Returns means (B×L) and the full covariance (B×B) of every latent function.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs; [`crate::Error::Invalid`] for deep
    /// models and inputs with errors.
    pub fn predict_f_full(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let mut joint = self.law.joint(x)?;
        let mean = std::mem::replace(&mut joint.mean, Mat::new());
        Ok((mean, joint.each()))
    }

    /// Returns means (B×L) and the covariance of all latent functions at all rows, BL×BL: function
    /// l at row i has the index l·B + i. Between functions that nothing mixes it is 0.
    ///
    /// # Errors
    /// As for [`Posterior::predict_f_full`].
    pub fn predict_f_joint(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let joint = self.law.joint(x)?;
        let whole = joint.whole();
        Ok((joint.mean, whole))
    }

    /// Returns the slopes of what [`Posterior::predict_f`] gives in the inputs, B×D for every
    /// latent function; those of variances as if none were below 0 by rounding. Where a kernel has
    /// a kink (Matérn 1/2 at a point of the posterior) the slope is one of those on either side, or
    /// between. O(M²) per row and function.
    ///
    /// # Errors
    /// As for [`Posterior::predict_f_full`].
    pub fn predict_gradients(&self, x: MatRef<f64>) -> Result<InputGradients> {
        self.law.gradients(x)
    }

    /// Returns means and variances of what every hidden layer gives at rows (B×D): B×P each,
    /// moments over the paths after the first layer. None for a posterior of one layer.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for another number of columns.
    pub fn hidden_layers(&self, x: MatRef<f64>) -> Result<Vec<(Mat<f64>, Mat<f64>)>> {
        let all = self.law.hidden(x)?;
        Ok(all.into_iter().map(|own| (own.mean, own.variance)).collect())
    }

    /// Returns the means of the latent functions given every draw of a sampled posterior, in the
    /// order of the draws, B×L each; one of a posterior that was not sampled.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs.
    pub fn predict_f_of_draws(&self, x: MatRef<f64>) -> Result<Vec<Mat<f64>>> {
        let mut all = Vec::new();
        self.components(x, |_, known| all.push(known.mean.clone()))?;
        Ok(all)
    }

    /// Draws joint samples of the latent functions: one B×L matrix per sample. Where the posterior
    /// was sampled each is of one of its draws; of a deep model all layers are drawn.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if the number of columns differs,
    /// [`crate::Error::NotPositiveDefinite`] if the covariance cannot be factorised.
    pub fn sample_f(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<Vec<Mat<f64>>> {
        Ok(self.sample_with(x, samples, rng)?.into_iter().map(|(f, _)| f).collect())
    }

    /// Draws the same with the likelihood of observations given each.
    pub(crate) fn sample_with(
        &self,
        x: MatRef<f64>,
        samples: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<Vec<(Mat<f64>, &dyn Likelihood)>> {
        self.law.check(x)?;
        let drawn = self.law.sample(x, samples, rng)?.into_iter();
        Ok(drawn.map(|own| (own.f, own.likelihood.unwrap_or(&*self.likelihood))).collect())
    }
}
