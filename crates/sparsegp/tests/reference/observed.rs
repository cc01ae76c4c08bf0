//! Likelihoods of the other programs' files, and what these programs predict with them.

use crate::support::{
    Outcome, Report, by_rows, entries, get, items, matrix, number, numbers, own, text,
};
use crate::{likelihood, likelihood_multi};
use serde_json::Value;
use sparsegp::likelihoods::multi_points::Points;
use sparsegp::likelihoods::quadrature::Nodes;
use sparsegp::likelihoods::softmax::Softmax;
use sparsegp::likelihoods::{Extra, Likelihood, Slopes, Support, Target};
use sparsegp::linalg::Mat;
use sparsegp::model::Posterior;
use sparsegp::params::{Visitor, VisitorMut};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Softmax with its own draws for every row: the further number of a row is its place among them.
#[derive(Clone, Debug)]
pub struct ByRow {
    inner: Softmax,
    points: Arc<Vec<Points>>,
}

impl ByRow {
    /// From draws S×N×C as the files have them.
    pub fn new(inner: Softmax, eps: &Value) -> Outcome<Self> {
        let classes = inner.latents();
        let mut rows: Vec<Vec<f64>> = Vec::new();
        for draw in items(eps)? {
            for (i, row) in items(draw)?.iter().enumerate() {
                rows.resize(rows.len().max(i + 1), Vec::new());
                rows[i].extend(numbers(row)?);
            }
        }
        let points = rows.into_iter().map(|row| own(Points::given(row, classes)));
        Ok(Self { inner, points: Arc::new(points.collect::<Outcome<_>>()?) })
    }

    fn points(&self, target: Target) -> &Points {
        &self.points[target.extra as usize]
    }
}

impl Likelihood for ByRow {
    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn latents(&self) -> usize {
        self.inner.latents()
    }
    fn classes(&self) -> Option<usize> {
        self.inner.classes()
    }
    fn extra(&self) -> Option<Extra> {
        // draws that all rows share need no row
        Some(Extra { name: "row", default: (self.points.len() == 1).then_some(0.0) })
    }
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        self.inner.visit(visitor);
    }
    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        self.inner.visit_mut(visitor);
    }
    fn initialise(&mut self, targets: &[Target]) -> Vec<f64> {
        self.inner.initialise(targets)
    }
    fn check(&self, target: Target) -> Result<(), String> {
        self.inner.check(target)
    }
    fn log_prob(&self, target: Target, f: &[f64]) -> f64 {
        self.inner.log_prob(target, f)
    }
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], out: Slopes<'_>) -> f64 {
        self.inner.expect_with(self.points(target), target, mean, variance, out)
    }
    fn predict(&self, extra: f64, mean: &[f64], variance: &[f64]) -> (f64, f64) {
        self.inner.predict(extra, mean, variance)
    }
    fn predict_log_density(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        self.inner.predict_log_density_with(self.points(target), target, mean, variance)
    }
    fn support(&self, extra: f64) -> Support {
        self.inner.support(extra)
    }
    fn cdf(&self, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        self.inner.cdf(target, mean, variance)
    }
    fn probabilities(&self, mean: &[f64], variance: &[f64], out: &mut [f64]) {
        match self.points.as_slice() {
            [all] => self.inner.probabilities_with(all, mean, variance, out),
            _ => self.inner.probabilities(mean, variance, out),
        }
    }
    fn sample(&self, extra: f64, f: &[f64], rng: &mut dyn rand::Rng) -> f64 {
        self.inner.sample(extra, f, rng)
    }
    fn to_json(&self) -> Value {
        self.inner.to_json()
    }
    fn clone_box(&self) -> Box<dyn Likelihood> {
        Box::new(self.clone())
    }
}

/// Nodes and weights of the standard normal.
struct Rule {
    nodes: Nodes,
    /// Sum of the probabilities given f.
    mass: f64,
}

impl Rule {
    /// The trapezoidal rule, so fine that no digits are missing.
    fn fine() -> Self {
        let step = 0.01;
        let x: Vec<f64> = (-1200..=1200).map(|i| step * f64::from(i)).collect();
        let w = x.iter().map(|x| step * (-0.5 * x * x).exp() / TAU.sqrt()).collect();
        Self { nodes: Nodes { x, w }, mass: 1.0 }
    }

    fn each(&self) -> impl Iterator<Item = (f64, f64)> {
        self.nodes.x.iter().copied().zip(self.nodes.w.iter().copied())
    }
}

/// How the other program integrates what it predicts.
enum Integral {
    /// In closed form.
    Closed,
    /// By few points from what holds given f.
    Rule(Rule),
    /// As the likelihood here does, with the options it was given. The probabilities of all classes,
    /// which here are made to have the sum 1, may differ by so much.
    Same { probabilities: f64 },
    /// By the draws of the rows, which class probabilities here do not know.
    Draws,
}

/// The further numbers of rows.
#[derive(Clone, Copy)]
enum Further {
    None,
    Constant(f64),
    Place,
}

/// A likelihood as a file describes it.
pub struct Observed {
    /// With the quadrature of that program.
    pub likelihood: Box<dyn Likelihood>,
    integral: Integral,
    further: Further,
}

impl Observed {
    /// The likelihood among a file's inputs; `squashed` where probits have GPflow's floor.
    pub fn read(inputs: &Value, squashed: bool) -> Outcome<Self> {
        let description = get(inputs, "likelihood")?;
        let kind = text(get(description, "type")?)?;
        let several = ["Heteroskedastic", "Softmax", "MultiClass"];
        if several.iter().any(|start| kind.starts_with(start)) {
            return Ok(match likelihood_multi::model(inputs)? {
                likelihood_multi::Model::Plain(likelihood)
                | likelihood_multi::Model::Classes(likelihood) => {
                    let by_class = kind == "MultiClass";
                    let probabilities = if by_class { likelihood::RULE } else { 1e-8 };
                    let integral = Integral::Same { probabilities };
                    Self { likelihood, integral, further: Further::None }
                }
                likelihood_multi::Model::Draws(softmax, _) => Self {
                    likelihood: Box::new(ByRow::new(softmax, get(inputs, "eps")?)?),
                    integral: Integral::Draws,
                    further: Further::Place,
                },
            });
        }
        let (likelihood, extra) = likelihood::read(description, squashed)?;
        let link = description.get("link").map(text).transpose()?;
        let integral = match (kind, link) {
            ("Gaussian", _) | ("Bernoulli", Some("probit")) => Integral::Closed,
            _ => Integral::Rule(Rule {
                nodes: Nodes::gauss_hermite(likelihood::POINTS),
                mass: if kind == "Ordinal" { likelihood::ORDINAL_MASS } else { 1.0 },
            }),
        };
        let further = match likelihood.extra() {
            Some(_) => Further::Constant(extra),
            None => Further::None,
        };
        Ok(Self { likelihood, integral, further })
    }

    /// The further numbers of so many rows that stand first in their batch.
    pub fn extra(&self, rows: usize) -> Vec<f64> {
        match self.further {
            Further::None => Vec::new(),
            Further::Constant(value) => vec![value; rows],
            Further::Place => (0..rows).map(|i| i as f64).collect(),
        }
    }

    /// Whether classes are given by their indicators.
    fn indicators(&self) -> bool {
        self.likelihood.classes().is_some() && self.likelihood.latents() > 1
    }

    /// Means and variances of an observation: of y, or of the indicators of all classes. By `rule`
    /// where the other program integrates by one.
    fn moments(
        &self,
        rule: &Rule,
        extra: f64,
        mean: &[f64],
        variance: &[f64],
    ) -> (Vec<f64>, Vec<f64>) {
        let l = &*self.likelihood;
        if self.indicators() {
            let classes = 0..l.classes().unwrap_or(0);
            let target = |k| Target { y: k as f64, extra };
            let p: Vec<f64> =
                classes.map(|k| l.predict_log_density(target(k), mean, variance).exp()).collect();
            let variances = p.iter().map(|p| p - p * p).collect();
            return (p, variances);
        }
        let (mean, variance) = match &self.integral {
            Integral::Rule(_) => {
                let at = |f: f64| {
                    let (m, v) = l.predict(extra, &[f], &[0.0]);
                    (rule.mass * m, rule.mass * (v + m * m))
                };
                let deviation = variance[0].sqrt();
                let sum = rule.each().fold((0.0, 0.0), |(first, second), (x, w)| {
                    let (m, square) = at(mean[0] + deviation * x);
                    (first + w * m, second + w * square)
                });
                (sum.0, sum.1 - sum.0 * sum.0)
            }
            _ => l.predict(extra, mean, variance),
        };
        (vec![mean], vec![variance])
    }

    /// log E p(y | f), likewise.
    fn log_density(&self, rule: &Rule, target: Target, mean: &[f64], variance: &[f64]) -> f64 {
        let l = &*self.likelihood;
        match &self.integral {
            Integral::Rule(_) => {
                let deviation = variance[0].sqrt();
                let density = |x| l.log_prob(target, &[mean[0] + deviation * x]).exp();
                rule.each().map(|(x, w)| w * density(x)).sum::<f64>().ln()
            }
            _ => l.predict_log_density(target, mean, variance),
        }
    }

    /// `field` of observations at `x`, from latent means and variances there.
    fn observations(
        &self,
        rule: &Rule,
        (mean, variance): (&Mat<f64>, &Mat<f64>),
        y: Option<&Mat<f64>>,
        field: &str,
    ) -> Vec<f64> {
        let extra = self.extra(mean.nrows());
        let k = self.likelihood.latents();
        let mut all = Vec::new();
        for i in 0..mean.nrows() {
            let extra = extra.get(i).copied().unwrap_or(0.0);
            let mut density = 0.0;
            for p in 0..mean.ncols() / k {
                let part =
                    |a: &Mat<f64>| -> Vec<f64> { (0..k).map(|l| a[(i, p * k + l)]).collect() };
                let (mean, variance) = (part(mean), part(variance));
                if let Some(y) = y {
                    let target = Target { y: y[(i, p)], extra };
                    density += self.log_density(rule, target, &mean, &variance);
                    continue;
                }
                let (means, variances) = self.moments(rule, extra, &mean, &variance);
                all.extend(if field == "predict_y_mean" { means } else { variances });
            }
            if y.is_some() {
                all.push(density);
            }
        }
        all
    }

    /// Compares a prediction of observations at `Xnew`, if `field` is one: what the other program makes
    /// of the latent means and variances found here, and what the library makes of them. Where that
    /// program has a rule of a few points, the library is held against a fine one.
    pub fn prediction(
        &self,
        field: &str,
        posterior: &Posterior,
        inputs: &Value,
        reference: &Value,
        report: &mut Report,
    ) -> Outcome<bool> {
        if !["predict_y_mean", "predict_y_var", "predict_log_density"].contains(&field) {
            return Ok(false);
        }
        let x = matrix(get(inputs, "Xnew")?)?;
        let x = x.as_ref();
        let (mean, variance) = own(posterior.predict_f(x))?;
        let latent = (&mean, &variance);
        let density = field == "predict_log_density";
        let y = if density { Some(matrix(get(inputs, "Ynew")?)?) } else { None };
        let reference = numbers(reference)?;
        let fine = Rule::fine();
        let rule = if let Integral::Rule(rule) = &self.integral { rule } else { &fine };
        let theirs = self.observations(rule, latent, y.as_ref(), field);
        report.close(field, &theirs, &reference);
        let extra = self.extra(x.nrows());
        let ours = match &y {
            Some(y) => own(posterior.predict_log_density(x, y.as_ref(), &extra))?,
            None if self.indicators() => {
                let p = by_rows(own(posterior.predict_proba(x))?.as_ref());
                let variance = |p: &f64| p - p * p;
                if field == "predict_y_mean" { p } else { p.iter().map(variance).collect() }
            }
            None => {
                let (means, variances) = own(posterior.predict_y(x, &extra))?;
                by_rows(if field == "predict_y_mean" { means.as_ref() } else { variances.as_ref() })
            }
        };
        let tolerance = match &self.integral {
            Integral::Same { probabilities } if !density && self.indicators() => *probabilities,
            // the probabilities are by other draws
            Integral::Draws if !density => return Ok(true),
            _ => report.tolerance,
        };
        let exact = self.observations(&fine, latent, y.as_ref(), field);
        report.close_to(&format!("{field}, ours"), &ours, &exact, tolerance);
        Ok(true)
    }
}

/// A likelihood of the family `bounds`: `name` with its numbers, and so many points of Gauss–Hermite.
pub fn bounds(json: &Value, points: usize) -> Outcome<Box<dyn Likelihood>> {
    let mut spec = serde_json::json!({ "rule": points });
    for key in entries(json)?.keys() {
        match (text(get(json, "name")?)?, key.as_str()) {
            ("poisson", "name") => spec["type"] = "poisson".into(),
            ("bernoulli_logit", "name") => {
                spec["type"] = "bernoulli".into();
                spec["link"] = "logit".into();
            }
            ("bernoulli_probit", "name") => {
                spec["type"] = "bernoulli".into();
                spec["link"] = "probit".into();
            }
            ("gaussian", "name") => {
                let variance = number(get(json, "variance")?)?;
                spec = serde_json::json!({ "type": "gaussian", "variance": variance });
            }
            ("gaussian", "variance") => {}
            ("student_t", "name") => {
                let number = |key| -> Outcome<f64> { number(get(json, key)?) };
                let (df, scale) = (number("df")?, number("scale")?);
                spec["type"] = "student-t".into();
                // the curvature itself, which may be negative, is averaged
                spec["slope"] = "price".into();
                (spec["df"], spec["scale"]) = (df.into(), scale.into());
            }
            ("student_t", "df" | "scale") => {}
            (name, key) => return Err(format!("`{key}` of the likelihood {name} is not known")),
        }
    }
    own(sparsegp::likelihoods::build(&spec))
}
