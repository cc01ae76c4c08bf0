//! Log-normal: log y = f + ε, ε ~ N(0, σ²): Gaussian noise on the logarithm, in closed form.

use super::registry::{Args, Entry};
use super::single::positive;
use super::{Gaussian, Likelihood, Slopes, Support, Target};
use crate::error::Result;
use crate::params::{Visitor, VisitorMut};
use crate::special::inverse_softplus;
use serde_json::{Value, json};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "log-normal",
    aliases: &["lognormal", "log_normal"],
    about: "positive numbers whose logarithm has Gaussian noise",
    targets: "positive numbers",
    latents: "1",
    augmented: false,
    build,
};

/// Gaussian noise on log y.
#[derive(Clone, Debug)]
pub struct LogNormal {
    /// The noise of log y.
    pub log: Gaussian,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["variance"], &[])?;
    let mut log = Gaussian::new(1.0);
    args.read("variance", &mut log.variance)?;
    Ok(Box::new(LogNormal { log }))
}

/// Returns the logarithm of a target.
fn logarithm(target: Target) -> Target {
    Target { y: target.y.ln(), extra: 0.0 }
}

impl Likelihood for LogNormal {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.log.visit(visitor);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        self.log.visit_mut(visitor);
    }

    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        let logarithms: Vec<Target> =
            targets.iter().filter(|t| positive(**t).is_ok()).map(|t| logarithm(*t)).collect();
        self.log.initialise(&logarithms)
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        positive(target)
    }

    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        self.log.log_prob(logarithm(target), f) - target.y.ln()
    }

    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        self.log.expect(logarithm(target), mean, variance, out) - target.y.ln()
    }

    fn predict(&self, _: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        let (mean, variance) = self.log.predict(0.0, mean, variance);
        let expected = (mean + 0.5 * variance).exp();
        // in logarithms: nothing times infinity
        (expected, (2.0 * mean + variance + inverse_softplus(variance)).exp())
    }

    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        self.log.predict_log_density(logarithm(target), mean, variance) - target.y.ln()
    }

    fn support(&self, _: f64) -> Support {
        Support::Positive
    }

    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let certain = Support::Positive.certain(target.y);
        certain.unwrap_or_else(|| self.log.cdf(logarithm(target), mean, variance))
    }

    fn quantile(&self, _: f64, mean: &[f64], variance: &[f64], level: f64) -> f64 {
        self.log.quantile(0.0, mean, variance, level).exp()
    }

    fn sample(&self, _: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        self.log.sample(0.0, f, rng).exp()
    }

    fn to_json(&self) -> Value {
        json!({
            "type": ENTRY.name,
            "variance": self.log.variance.to_json(Gaussian::TRANSFORM),
        })
    }

    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}
