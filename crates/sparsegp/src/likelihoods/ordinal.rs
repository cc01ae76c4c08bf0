//! Ordered classes (Chu & Ghahramani 2005): P(y ≤ k | f) = Φ((eₖ − f)/σ) with edges e₀ < e₁ < ….
//!
//! The edges are e₀ and positive widths, so that they stay in order.

use super::registry::{Args, Entry};
use super::single::{OPTIONS, Scalar, Single, start};
use super::{Likelihood, Support, Target};
use crate::error::Result;
use crate::metrics::standard_normal_quantile;
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut};
use crate::special::{log_normal_interval, normal_cdf};
use rand::RngExt;
use serde_json::{Value, json};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "ordinal",
    aliases: &["ordered"],
    about: "ordered classes: intervals of a latent number, ordinal(classes=5)",
    targets: "classes 0, 1, …, in order",
    latents: "1",
    augmented: false,
    build,
};

const EDGE: Transform = Transform::Identity;
const SIGMA: Transform = Transform::Softplus { lower: 1e-6 };
/// What is added to every probability where there is a floor.
const ADDED: f64 = 1e-6;

/// Intervals of f + σε, ε ~ N(0, 1).
#[derive(Clone, Debug)]
pub struct Ordinal {
    /// e₀.
    pub first_edge: Param,
    /// e₁ − e₀, e₂ − e₁, …: two fewer than there are classes.
    pub widths: Param,
    /// σ, above 10⁻⁶.
    pub sigma: Param,
    /// Squashing for comparisons with programs that do it, 0 for none: log p is that of
    /// (1 − 2·floor)·p + 10⁻⁶, which does not sum to 1; moments and draws are those of p.
    pub floor: f64,
}

fn build(args: Args<'_>) -> Result<Box<dyn Likelihood>> {
    args.allow(&["classes", "bin_edges", "first_edge", "widths", "sigma", "floor"], &OPTIONS)?;
    let edges = match args.get("bin_edges") {
        None => None,
        Some(given) => {
            let numbers: Option<Vec<f64>> =
                given.as_array().and_then(|items| items.iter().map(Value::as_f64).collect());
            match numbers {
                Some(edges) if !edges.is_empty() && edges.windows(2).all(|e| e[0] < e[1]) => {
                    Some(edges)
                }
                _ => {
                    return Err(args.wrong(format!(
                        "`bin_edges` is a list of increasing numbers, not {given}"
                    )));
                }
            }
        }
    };
    if edges.is_some() && (args.get("first_edge").is_some() || args.get("widths").is_some()) {
        return Err(args.wrong("`bin_edges` stands for `first_edge` and `widths`: give one".into()));
    }
    let classes = match (args.whole("classes", 2)?, &edges) {
        (Some(classes), Some(edges)) if edges.len() + 1 != classes => {
            return Err(args.wrong(format!(
                "`classes` is {classes}, but `bin_edges` has {} edges, one fewer is needed",
                edges.len()
            )));
        }
        (Some(classes), _) => classes,
        (None, Some(edges)) => edges.len() + 1,
        (None, None) => {
            return Err(args.wrong("say how many: `classes`, as in ordinal(classes=5)".into()));
        }
    };
    // equal shares of a normal of twice the variance, until there are data
    let default: Vec<f64> = (1..classes)
        .map(|k| 2_f64.sqrt() * standard_normal_quantile(k as f64 / classes as f64))
        .collect();
    let (first, widths) = split(edges.as_ref().unwrap_or(&default));
    let mut model = Ordinal {
        first_edge: Param::with(vec![first], Shape::Scalar, EDGE),
        widths: Param::positive_vector(widths),
        sigma: args.scalar("sigma", 1.0, SIGMA)?,
        floor: args.floor()?.unwrap_or(0.0),
    };
    model.first_edge.given = edges.is_some();
    model.widths.given = edges.is_some();
    args.read("first_edge", &mut model.first_edge)?;
    if classes > 2 {
        args.read("widths", &mut model.widths)?;
    } else if args.get("widths").is_some() {
        return Err(args.wrong("`widths`: two classes have one edge and no widths".into()));
    }
    Single::boxed(model, &args)
}

/// Returns the first of the edges and their distances.
fn split(edges: &[f64]) -> (f64, Vec<f64>) {
    (edges[0], edges.windows(2).map(|e| e[1] - e[0]).collect())
}

impl Ordinal {
    /// Ends of the interval of a class.
    fn ends(&self, class: usize) -> (f64, f64) {
        let widths = self.widths.value();
        let edge = |k: usize| self.first_edge.scalar() + widths[..k].iter().sum::<f64>();
        let low = if class == 0 { f64::NEG_INFINITY } else { edge(class - 1) };
        let high = if class == widths.len() + 1 { f64::INFINITY } else { edge(class) };
        (low, high)
    }

    fn count(&self) -> usize {
        self.widths.len() + 2
    }

    /// Returns log P(y | f) for a normal of deviation `sigma`, with slopes by the lower and upper
    /// end in units of `sigma` and the ends in these units.
    fn interval(&self, y: f64, f: f64, sigma: f64) -> ([f64; 3], f64, f64) {
        let (low, high) = self.ends(y as usize);
        let (a, b) = ((low - f) / sigma, (high - f) / sigma);
        let [log, at_a, at_b] = log_normal_interval(a, b);
        if self.floor == 0.0 {
            return ([log, at_a, at_b], a, b);
        }
        let scale = 1.0 - 2.0 * self.floor;
        let p = scale * log.exp() + ADDED;
        let share = scale * log.exp() / p;
        ([p.ln(), share * at_a, share * at_b], a, b)
    }

    fn probability(&self, class: usize, f: f64, sigma: f64) -> f64 {
        let (low, high) = self.ends(class);
        log_normal_interval((low - f) / sigma, (high - f) / sigma)[0].exp()
    }

    /// Returns the mean and variance of the class for a normal of deviation `sigma`.
    fn class_moments(&self, f: f64, sigma: f64) -> (f64, f64) {
        let (mut mean, mut square) = (0.0, 0.0);
        for class in 1..self.count() {
            let (p, k) = (self.probability(class, f, sigma), class as f64);
            mean += p * k;
            square += p * k * k;
        }
        (mean, (square - mean * mean).max(0.0))
    }

    fn total(&self, variance: f64) -> f64 {
        (self.sigma.scalar().powi(2) + variance).sqrt()
    }
}

/// Returns x·w, which is 0 where w is: the density at an infinite end.
fn product(x: f64, w: f64) -> f64 {
    if w == 0.0 { 0.0 } else { x * w }
}

impl Scalar for Ordinal {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn classes(&self) -> Option<usize> {
        Some(self.count())
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"first_edge", &self.first_edge);
        if !self.widths.is_empty() {
            visitor(&"widths", &self.widths);
        }
        visitor(&"sigma", &self.sigma);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"first_edge", &mut self.first_edge);
        if !self.widths.is_empty() {
            visitor(&"widths", &mut self.widths);
        }
        visitor(&"sigma", &mut self.sigma);
    }

    fn initialise(&mut self, targets: &[Target]) -> f64 {
        // edges at the normal quantiles of the cumulative shares, for f of variance σ²; half a
        // target more in every class
        let classes = self.count();
        let total = targets.len() as f64 + 0.5 * classes as f64;
        let deviation = 2_f64.sqrt() * self.sigma.scalar();
        let mut below = 0.0;
        let mut edges = Vec::with_capacity(classes - 1);
        for class in 0..classes - 1 {
            below += targets.iter().filter(|t| t.y == class as f64).count() as f64 + 0.5;
            edges.push(deviation * standard_normal_quantile(below / total));
        }
        let (first, widths) = split(&edges);
        start(&mut self.first_edge, first);
        if !self.widths.given && !widths.is_empty() {
            self.widths.start(&widths);
        }
        if self.first_edge.given && self.widths.given {
            // the median class at the edges that were given
            let middle = targets.iter().map(|t| t.y).sum::<f64>() / targets.len() as f64;
            let (low, high) = self.ends(middle.round() as usize);
            let sigma = self.sigma.scalar();
            return match (low.is_finite(), high.is_finite()) {
                (true, true) => 0.5 * (low + high),
                (false, _) => high - sigma,
                (_, false) => low + sigma,
            };
        }
        0.0
    }

    fn check(&self, target: Target) -> std::result::Result<(), String> {
        let last = self.count() - 1;
        if crate::special::is_count(target.y) && target.y <= last as f64 {
            Ok(())
        } else if last == 1 {
            Err("is not a class (0 or 1)".into())
        } else {
            Err(format!("is not a class (0, 1, …, {last})"))
        }
    }

    fn write(&self, json: &mut Value) {
        json["classes"] = json!(self.count());
        json["first_edge"] = self.first_edge.to_json(EDGE);
        if !self.widths.is_empty() {
            json["widths"] = self.widths.to_json(Transform::POSITIVE);
        }
        json["sigma"] = self.sigma.to_json(SIGMA);
        if self.floor != 0.0 {
            json["floor"] = json!(self.floor);
        }
    }

    fn at(&self, target: Target, f: f64) -> [f64; 3] {
        let sigma = self.sigma.scalar();
        let ([log, at_a, at_b], a, b) = self.interval(target.y, f, sigma);
        let first = at_b - at_a;
        let second = product(a, at_a) - product(b, at_b) - first * first;
        // log-concave without the floor: what is above 0 is rounding
        let second = if self.floor == 0.0 { second.min(0.0) } else { second };
        [log, -first / sigma, second / (sigma * sigma)]
    }

    fn add_slopes(&self, target: Target, f: f64, weight: f64, out: &mut [f64]) {
        let sigma = self.sigma.scalar();
        let class = target.y as usize;
        let ([_, at_a, at_b], a, b) = self.interval(target.y, f, sigma);
        let (low, high) = (-weight * at_a / sigma, weight * at_b / sigma);
        // e_k = e₀ + Σ_{j<k} w_j; infinite ends have slope 0
        let widths = self.widths.len();
        out[0] += low + high;
        for (j, slope) in out[1..=widths].iter_mut().enumerate() {
            *slope += if j < class { high } else { 0.0 };
            *slope += if j + 1 < class { low } else { 0.0 };
        }
        out[widths + 1] += weight * (product(a, at_a) - product(b, at_b)) / sigma;
    }

    fn pole(&self) -> f64 {
        self.sigma.scalar() * if self.floor == 0.0 { 2.5 } else { 0.8 }
    }

    fn moments(&self, _: f64, f: f64) -> (f64, f64) {
        self.class_moments(f, self.sigma.scalar())
    }

    fn closed_moments(&self, _: f64, mean: f64, variance: f64) -> Option<(f64, f64)> {
        Some(self.class_moments(mean, self.total(variance)))
    }

    fn closed_log_density(&self, target: Target, mean: f64, variance: f64) -> Option<f64> {
        Some(self.interval(target.y, mean, self.total(variance)).0[0])
    }

    fn cdf(&self, extra: f64, y: f64, f: f64) -> f64 {
        self.closed_cdf(extra, y, f, 0.0).unwrap_or(f64::NAN)
    }

    fn closed_cdf(&self, _: f64, y: f64, mean: f64, variance: f64) -> Option<f64> {
        if y < 0.0 {
            return Some(0.0);
        }
        let (_, high) = self.ends((y as usize).min(self.count() - 1));
        Some(normal_cdf((high - mean) / self.total(variance)))
    }

    fn support(&self, _: f64) -> Support {
        Support::Classes(self.count())
    }

    fn sample(&self, _: f64, f: f64, rng: &mut dyn rand::Rng) -> f64 {
        let level: f64 = rng.random();
        let reached = |class: &usize| self.cdf(0.0, *class as f64, f) > level;
        (0..self.count() - 1).find(reached).unwrap_or(self.count() - 1) as f64
    }
}
