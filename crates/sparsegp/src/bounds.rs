//! What a row contributes to each uncollapsed bound, given the marginal N(μ, s + r) of its latent
//! functions: s comes from q(u), r is what the inducing points leave unexplained.
//!
//! | bound | ℓ | source |
//! | --- | --- | --- |
//! | [`Hensman`] | E[log p(y ∣ f)], f ~ N(μ, s + r) | Hensman, Matthews & Ghahramani 2015 |
//! | [`Titsias2025`] | Gaussian noise: log N(y; μ, σ²) − s/2σ² − ½ log(1 + r/σ²) | Titsias 2025, Eq. 18–19 |
//! | [`Spherical`] | E[log p(y ∣ f)], f ~ N(μ, s + v r), less ½(v − log v − 1) per row | Titsias 2025, Eq. 22–23 |
//! | [`Augmented`] | the bound on E[log p(y ∣ f)] that local variables leave | Galy-Fajou, Wenzel & Opper 2020 |
//!
//! Hensman's is the smallest of a family with a factor on r; the other two are at their best factor for
//! each row, or have one factor v for each latent function as a parameter.

use crate::error::{Error, Result};
use crate::likelihoods::{self, Likelihood, Slopes, Target};

/// One row and target column: its target, and K latent functions.
#[derive(Debug)]
pub struct Row<'a> {
    /// The target.
    pub target: Target,
    /// Weight of its term.
    pub weight: f64,
    /// Means.
    pub mu: &'a [f64],
    /// Variances from q.
    pub s: &'a [f64],
    /// Unexplained variances.
    pub r: &'a [f64],
    /// Factors of r.
    pub v: &'a [f64],
}

/// Slopes of a row's contribution, weight included: K numbers each, and one for every parameter of the
/// likelihood.
#[derive(Debug)]
pub struct RowSlopes<'a> {
    /// ∂/∂μ.
    pub a: &'a mut [f64],
    /// ∂/∂s.
    pub b: &'a mut [f64],
    /// ∂/∂r.
    pub c: &'a mut [f64],
    /// ∂/∂v, without the penalty.
    pub v: &'a mut [f64],
    /// With respect to the likelihood's parameters.
    pub params: &'a mut [f64],
}

/// An uncollapsed bound.
pub trait Bound: Send + Sync {
    /// Returns its name in requests.
    fn name(&self) -> &'static str;

    /// Returns whether ∂ℓ/∂r = ∂ℓ/∂s.
    fn equal_slopes(&self) -> bool;

    /// Returns whether it has factors v.
    fn has_factors(&self) -> bool {
        false
    }

    /// Returns whether it needs a likelihood with local variables.
    fn augments(&self) -> bool {
        false
    }

    /// Returns in how many turns q is to move, each at what the turns before left.
    fn turns(&self, likelihood: &dyn Likelihood) -> usize {
        let _ = likelihood;
        1
    }

    /// Returns the turn of a latent value of a target.
    fn turn(&self, likelihood: &dyn Likelihood, latent: usize) -> usize {
        let _ = (likelihood, latent);
        0
    }

    /// Returns whether natural-gradient steps of any size up to 1 on all rows, in their turns,
    /// cannot lower the bound.
    fn never_falls(&self, likelihood: &dyn Likelihood) -> bool {
        // with Gaussian noise it is a constant − KL(q‖q*), which falls all along the straight line to
        // q* in the natural parameters
        likelihood.as_gaussian().is_some()
    }

    /// Returns the local variables, if the bound has them and some parameter of the likelihood has
    /// an update in closed form.
    fn closed_form<'a>(
        &self,
        likelihood: &'a dyn Likelihood,
    ) -> Option<&'a dyn likelihoods::augmented::Augmented> {
        let _ = likelihood;
        None
    }

    /// Refuses a likelihood that it is not for.
    ///
    /// # Errors
    /// [`Error::Invalid`] that says what is.
    fn check(&self, likelihood: &dyn Likelihood) -> Result<()> {
        let _ = likelihood;
        Ok(())
    }

    /// Returns ℓ with its slopes; `variance` is scratch of K numbers.
    fn row(
        &self,
        likelihood: &dyn Likelihood,
        row: &Row<'_>,
        out: RowSlopes<'_>,
        variance: &mut [f64],
    ) -> f64;
}

/// Every bound.
const REGISTRY: &[&dyn Bound] = &[&Hensman, &Titsias2025, &Spherical, &Augmented];

/// Returns the bound of a name.
///
/// # Errors
/// [`Error::Invalid`] for a name that none has.
pub fn find(name: &str) -> Result<&'static dyn Bound> {
    let own = REGISTRY.iter().find(|bound| bound.name() == name);
    own.copied().ok_or_else(|| Error::Invalid(format!("there is no bound `{name}`")))
}

impl Row<'_> {
    /// Returns E[log p(y | f)] at these variances, times the row's weight; so are the slopes a, b
    /// and those of the likelihood's parameters.
    fn expectation(
        &self,
        likelihood: &dyn Likelihood,
        variance: &[f64],
        out: &mut RowSlopes<'_>,
    ) -> f64 {
        self.weighted(out, |slopes| likelihood.expect(self.target, self.mu, variance, slopes))
    }

    /// Returns what `expect` gives, times the row's weight.
    fn weighted(&self, out: &mut RowSlopes<'_>, expect: impl FnOnce(Slopes<'_>) -> f64) -> f64 {
        let value = expect(Slopes { mean: out.a, variance: out.b, params: out.params });
        if self.weight != 1.0 {
            let all = [&mut *out.a, &mut *out.b, &mut *out.params];
            all.into_iter().flatten().for_each(|v| *v *= self.weight);
        }
        self.weight * value
    }
}

/// Hensman's bound.
#[derive(Debug)]
pub struct Hensman;

impl Bound for Hensman {
    fn name(&self) -> &'static str {
        "hensman"
    }

    fn equal_slopes(&self) -> bool {
        true
    }

    fn row(
        &self,
        likelihood: &dyn Likelihood,
        row: &Row<'_>,
        mut out: RowSlopes<'_>,
        variance: &mut [f64],
    ) -> f64 {
        // r is no less than 0 but by rounding, which must not reach a square root
        variance.iter_mut().zip(row.s).zip(row.r).for_each(|((v, s), r)| *v = (s + r).max(0.0));
        let value = row.expectation(likelihood, variance, &mut out);
        out.c.copy_from_slice(out.b);
        out.v.fill(0.0);
        value
    }
}

/// The tighter bound for Gaussian noise. A row of weight w has the best factor 1/(1 + w r/σ²) and
/// contributes −½ log(1 + w r/σ²) through r.
#[derive(Debug)]
pub struct Titsias2025;

impl Bound for Titsias2025 {
    fn name(&self) -> &'static str {
        "titsias2025"
    }

    fn equal_slopes(&self) -> bool {
        false
    }

    fn check(&self, likelihood: &dyn Likelihood) -> Result<()> {
        if likelihood.as_gaussian().is_some() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "method `svgp2025` is for Gaussian noise, and the likelihood is `{}`; \
             `svgp-spherical` is the tighter bound for any likelihood",
            likelihood.name()
        )))
    }

    fn row(
        &self,
        likelihood: &dyn Likelihood,
        row: &Row<'_>,
        mut out: RowSlopes<'_>,
        _: &mut [f64],
    ) -> f64 {
        let value = row.expectation(likelihood, row.s, &mut out);
        // with weight: b = −w/2σ², of which w/σ² is −2b
        let precision = -2.0 * out.b[0];
        let share = row.r[0] * precision;
        out.c[0] = -0.5 * precision / (1.0 + share);
        // ∂/∂σ² of −½ log(1 + w r/σ²); σ² = w/precision
        out.params[0] += 0.5 * share * precision / (row.weight * (1.0 + share));
        out.v.fill(0.0);
        value - 0.5 * share.ln_1p()
    }
}

/// One factor v per latent function, for any likelihood.
#[derive(Debug)]
pub struct Spherical;

impl Bound for Spherical {
    fn name(&self) -> &'static str {
        "spherical"
    }

    fn equal_slopes(&self) -> bool {
        false
    }

    fn has_factors(&self) -> bool {
        true
    }

    fn row(
        &self,
        likelihood: &dyn Likelihood,
        row: &Row<'_>,
        mut out: RowSlopes<'_>,
        variance: &mut [f64],
    ) -> f64 {
        let parts = row.s.iter().zip(row.r).zip(row.v);
        variance.iter_mut().zip(parts).for_each(|(t, ((s, r), v))| *t = (s + v * r).max(0.0));
        let value = row.expectation(likelihood, variance, &mut out);
        for k in 0..out.b.len() {
            out.c[k] = row.v[k] * out.b[k];
            out.v[k] = row.r[k] * out.b[k];
        }
        value
    }
}

/// Hensman's bound with local variables that make the likelihood Gaussian, at the optimum of their q
/// ([`crate::likelihoods::augmented`]). A step of q of size 1 on all rows is one of coordinate ascent.
#[derive(Debug)]
pub struct Augmented;

impl Bound for Augmented {
    fn name(&self) -> &'static str {
        "augmented"
    }

    fn equal_slopes(&self) -> bool {
        true
    }

    fn never_falls(&self, likelihood: &dyn Likelihood) -> bool {
        // at fixed local variables it is quadratic as for Gaussian noise, and their update raises it
        likelihood.augmented().is_some()
    }

    fn augments(&self) -> bool {
        true
    }

    fn closed_form<'a>(
        &self,
        likelihood: &'a dyn Likelihood,
    ) -> Option<&'a dyn likelihoods::augmented::Augmented> {
        likelihood.augmented().filter(|own| own.powers().iter().any(Option::is_some))
    }

    fn turns(&self, likelihood: &dyn Likelihood) -> usize {
        likelihood.augmented().map_or(1, |augmented| augmented.turns())
    }

    fn turn(&self, likelihood: &dyn Likelihood, latent: usize) -> usize {
        likelihood.augmented().map_or(0, |augmented| augmented.turn(latent))
    }

    fn check(&self, likelihood: &dyn Likelihood) -> Result<()> {
        if likelihood.augmented().is_some() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "`{}` has no local variables that would make it Gaussian{}; these have: {}",
            likelihood.to_json(),
            match likelihood.name() {
                "bernoulli" | "binomial" => " (with `link=logit` it has)",
                _ => "",
            },
            likelihoods::augmented::names().join(", ")
        )))
    }

    fn row(
        &self,
        likelihood: &dyn Likelihood,
        row: &Row<'_>,
        mut out: RowSlopes<'_>,
        variance: &mut [f64],
    ) -> f64 {
        variance.iter_mut().zip(row.s).zip(row.r).for_each(|((v, s), r)| *v = (s + r).max(0.0));
        let augmented = likelihood.augmented().expect("the likelihood was checked");
        let value =
            row.weighted(&mut out, |slopes| augmented.expect(row.target, row.mu, variance, slopes));
        out.c.copy_from_slice(out.b);
        out.v.fill(0.0);
        value
    }
}
