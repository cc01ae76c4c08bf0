//! Linear model of coregionalisation (Journel & Huijbregts 1978; Álvarez, Rosasco & Lawrence 2012, §4): the P
//! target columns share Q latent functions g, f = W g, and each is observed by itself with the same likelihood
//! p(y_p | f_p). The mixing matrix W (P×Q) is a parameter.
//!
//! What a single target asks of a likelihood is that of the one inside. Whoever sums over rows mixes: see
//! `methods::uncollapsed`, and [`crate::model::Posterior`] for predictions.

use super::registry::{Args, Entry, build as build_inner, parse};
use super::{Extra, Likelihood, Slopes, Support, Target};
use crate::error::Result;
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut};
use serde_json::{Value, json};

/// Returns P and Q of a mixing matrix ([`Likelihood::mixing`]).
pub fn shape(mixing: &Param) -> (usize, usize) {
    match mixing.shape() {
        Shape::Matrix(outputs, latents) => (outputs, latents),
        _ => (mixing.len(), 1),
    }
}

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "coregionalised",
    aliases: &["lmc", "coregionalized", "linear-coregionalisation"],
    about: "several targets as mixtures of common latent functions: coregionalised(likelihood=gaussian, outputs=3, \
            latents=2)",
    targets: "several columns, as the likelihood inside has them",
    latents: "as many as asked for, common to all targets",
    augmented: false,
    build,
};

/// A likelihood for every target column, with common latent functions.
#[derive(Clone, Debug)]
pub struct Coregionalised {
    inner: Box<dyn Likelihood>,
    /// W, P×Q.
    mixing: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["likelihood", "outputs", "latents", "mixing"], &[])?;
    let inner = match args.get("likelihood") {
        None => parse("gaussian")?,
        Some(Value::String(spec)) => parse(spec)?,
        Some(json) => build_inner(json)?,
    };
    if inner.latents() != 1 || inner.mixing().is_some() {
        return Err(args.wrong(format!(
            "`{}` has several latent functions for a target; those with one can be mixed",
            inner.name()
        )));
    }
    let outputs = args.whole("outputs", 1)?.unwrap_or(1);
    let latents = args.whole("latents", 1)?.unwrap_or(1);
    // every target has a share in every latent function, none as another
    let start = |at: usize| {
        let (p, q) = (at % outputs, at / outputs);
        if p % latents == q { 1.0 } else { 0.3 }
    };
    let values = (0..outputs * latents).map(start).collect();
    let mut mixing = Param::with(values, Shape::Matrix(outputs, latents), Transform::Identity);
    args.read("mixing", &mut mixing)?;
    Ok(Box::new(Coregionalised { inner, mixing }))
}

impl Coregionalised {
    /// Creates the likelihood from a likelihood of one latent function and W (P×Q, column by
    /// column).
    pub fn new(inner: Box<dyn Likelihood>, outputs: usize, mixing: Vec<f64>) -> Self {
        let latents = mixing.len() / outputs.max(1);
        let mixing = Param::with(mixing, Shape::Matrix(outputs, latents), Transform::Identity);
        Self { inner, mixing }
    }
}

impl Likelihood for Coregionalised {
    fn name(&self) -> &'static str {
        ENTRY.name
    }
    fn classes(&self) -> Option<usize> {
        self.inner.classes()
    }
    fn mixing(&self) -> Option<&Param> {
        Some(&self.mixing)
    }
    fn mixing_mut(&mut self) -> Option<&mut Param> {
        Some(&mut self.mixing)
    }
    fn separate_kernels(&self) -> bool {
        true
    }
    fn standardises(&self) -> bool {
        self.inner.standardises()
    }
    fn bears_outliers(&self) -> bool {
        self.inner.bears_outliers()
    }
    fn normalised(&self) -> bool {
        self.inner.normalised()
    }
    fn extra(&self) -> Option<Extra> {
        self.inner.extra()
    }
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.inner.visit(visitor);
        visitor(&"mixing", &self.mixing);
    }
    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        self.inner.visit_mut(visitor);
        visitor(&"mixing", &mut self.mixing);
    }
    fn units(&self) -> Vec<i32> {
        let mut units = self.inner.units();
        units.extend(std::iter::repeat_n(1, self.mixing.len()));
        units
    }
    fn adopt_unit(&mut self, targets: &[Target]) {
        self.inner.adopt_unit(targets);
    }

    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        self.inner.initialise(targets)
    }
    fn check(&self, target: Target) -> std::result::Result<(), String> {
        self.inner.check(target)
    }
    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        self.inner.log_prob(target, f)
    }
    /// Leaves the slopes in W at 0: they are of all targets of a row together.
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        let (own, mixing) = out.params.split_at_mut(self.inner.num_params());
        mixing.fill(0.0);
        let slopes = Slopes { mean: out.mean, variance: out.variance, params: own };
        self.inner.expect(target, mean, variance, slopes)
    }
    fn predict(&self, extra: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        self.inner.predict(extra, mean, variance)
    }
    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        self.inner.predict_log_density(target, mean, variance)
    }
    fn support(&self, extra: f64) -> Support {
        self.inner.support(extra)
    }
    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        self.inner.cdf(target, mean, variance)
    }
    fn quantile(&self, extra: f64, mean: &[f64], variance: &[f64], level: f64) -> f64 {
        self.inner.quantile(extra, mean, variance, level)
    }
    fn probabilities(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        self.inner.probabilities(mean, variance, out);
    }
    fn sample(&self, extra: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        self.inner.sample(extra, f, rng)
    }
    fn to_json(&self) -> Value {
        let (outputs, latents) = self.shape();
        json!({
            "type": ENTRY.name,
            "likelihood": self.inner.to_json(),
            "outputs": outputs,
            "latents": latents,
            "mixing": self.mixing.to_json(Transform::Identity),
        })
    }
    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

impl Coregionalised {
    fn shape(&self) -> (usize, usize) {
        match self.mixing.shape() {
            Shape::Matrix(outputs, latents) => (outputs, latents),
            _ => (self.mixing.len(), 1),
        }
    }
}
