//! Conformance of likelihoods of several latent functions, and of the user-defined one.

use super::custom::{Custom, LogProb, Parameter, Support};
use super::dual::Real;
use super::heteroscedastic::{HeteroscedasticGaussian, HeteroscedasticStudentT, Options, Scale};
use super::logistic_softmax::LogisticSoftmax;
use super::multi_points::{Integration, Points};
use super::quadrature::{Rule, Slope};
use super::robust_max::RobustMax;
use super::softmax::Softmax;
use super::{Likelihood, Slopes, Target};
use crate::params::Transform;
use crate::rng::stream;
use serde_json::Value;

/// Cauchy noise.
#[derive(Clone, Debug)]
struct Cauchy;

impl LogProb for Cauchy {
    fn name(&self) -> &'static str {
        "cauchy"
    }
    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::positive("width", 0.37)]
    }
    fn log_prob<T: Real>(&self, y: f64, _: f64, f: &[T], params: &[T]) -> T {
        let z = (f[0] - y) / params[0];
        -(z * z).ln_1p() - params[0].ln() - std::f64::consts::PI.ln()
    }
}

/// Skewed positive targets: log y normal with mean f₀ and standard deviation softplus(f₁)·a + b; five
/// derivatives are more than are computed at once.
#[derive(Clone, Debug)]
struct LogNormal;

impl LogProb for LogNormal {
    fn name(&self) -> &'static str {
        "log-normal"
    }
    fn latents(&self) -> usize {
        2
    }
    fn support(&self) -> Support {
        Support::Positive
    }
    fn parameters(&self) -> Vec<Parameter> {
        let shift = Parameter { name: "c", start: -0.4, transform: Transform::Identity, unit: 0 };
        vec![Parameter::positive("a", 0.6), Parameter::positive("b", 0.15), shift]
    }
    fn log_prob<T: Real>(&self, y: f64, _: f64, f: &[T], params: &[T]) -> T {
        let sd = f[1].softplus() * params[0] + params[1];
        let z = (f[0] + params[2] - y.ln()) / sd;
        -(z * z) * 0.5 - sd.ln() - 0.5 * std::f64::consts::TAU.ln() - y.ln()
    }
}

/// Counts with mean softplus(f): Poisson.
#[derive(Clone, Debug)]
struct Counts;

impl LogProb for Counts {
    fn name(&self) -> &'static str {
        "counts"
    }
    fn support(&self) -> Support {
        Support::Counts
    }
    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::positive("rate", 2.3)]
    }
    fn log_prob<T: Real>(&self, y: f64, _: f64, f: &[T], params: &[T]) -> T {
        let mean = f[0].softplus() * params[0];
        mean.ln() * y - mean - T::constant(y + 1.0).ln_gamma()
    }
    fn moments(&self, _: f64, f: &[f64], params: &[f64]) -> Option<(f64, f64)> {
        let mean = f[0].softplus() * params[0];
        Some((mean, mean))
    }
}

/// Three classes by softmax.
#[derive(Clone, Debug)]
struct Three;

impl LogProb for Three {
    fn name(&self) -> &'static str {
        "three"
    }
    fn latents(&self) -> usize {
        3
    }
    fn support(&self) -> Support {
        Support::Classes(3)
    }
    fn log_prob<T: Real>(&self, y: f64, _: f64, f: &[T], _: &[T]) -> T {
        let largest = f.iter().fold(f64::NEG_INFINITY, |a, f| a.max(f.value()));
        let sum = f.iter().fold(T::constant(0.0), |sum, f| sum + (*f - largest).exp());
        f[y as usize] - largest - sum.ln()
    }
}

fn boxed(likelihood: impl Likelihood + 'static) -> Box<dyn Likelihood> {
    Box::new(likelihood)
}

fn hetero(scale: Scale, tensor: bool, slope: Slope) -> Options {
    Options { scale, points: 20, tensor, slope, unit: None }
}

/// All of them, with slopes of one kind.
pub(super) fn zoo(slope: Slope) -> Vec<Box<dyn Likelihood>> {
    let mut all = Vec::new();
    for scale in [Scale::Exp, Scale::Softplus] {
        for tensor in [false, true] {
            let options = hetero(scale, tensor, slope);
            all.push(boxed(HeteroscedasticGaussian::with(options).unwrap()));
            all.push(boxed(HeteroscedasticStudentT::new(3.3, options).unwrap()));
        }
    }
    let logistic = hetero(Scale::Logistic, false, slope);
    for mut own in [
        boxed(HeteroscedasticGaussian::with(logistic).unwrap()),
        boxed(HeteroscedasticStudentT::new(3.3, logistic).unwrap()),
    ] {
        for (path, param) in own.params_mut() {
            if path == "precision" {
                param.set("precision", &[2.6]).unwrap();
            }
        }
        all.push(own);
    }
    let tensor = Integration::Tensor(12);
    for rule in [Integration::Draws { count: 100, seed: 5 }, tensor, Integration::Laplace] {
        all.push(boxed(Softmax::with(3, rule, slope).unwrap()));
        all.push(boxed(LogisticSoftmax::with(3, rule, slope).unwrap()));
        all.extend(weighted(rule, slope).map(boxed));
    }
    let fixed = Rule::GaussHermite(20);
    for (rule, squash) in [(fixed, 0.0), (fixed, 1e-6), (Rule::Trapezoid, 0.0)] {
        let mut own = RobustMax::with(4, rule, slope, squash).unwrap();
        own.epsilon.set("epsilon", &[0.03]).unwrap();
        all.push(boxed(own));
    }
    all.push(boxed(Custom::with(Cauchy, Rule::Trapezoid, slope).unwrap()));
    all.push(boxed(Custom::with(LogNormal, Rule::GaussHermite(30), slope).unwrap()));
    all.push(boxed(Custom::with(Counts, Rule::default(), slope).unwrap()));
    all.push(boxed(Custom::with(Three, Rule::GaussHermite(9), slope).unwrap()));
    all
}

/// Classes whose weights differ, with a latent function each and with one fewer.
fn weighted(integration: Integration, slope: Slope) -> [LogisticSoftmax; 2] {
    let spec = serde_json::json!({
        "type": "logistic-softmax",
        "classes": 3,
        "scales": [1.3, 2.1, 0.4],
        "integration": integration,
        "slope": slope,
    });
    let mut fewer = spec.clone();
    fewer["constant"] = 0.6.into();
    [spec, fewer].map(|spec| LogisticSoftmax::from_json(&spec).unwrap())
}

pub(super) fn label(likelihood: &dyn Likelihood) -> String {
    likelihood.to_json().to_string()
}

/// Targets to try.
fn targets(likelihood: &dyn Likelihood) -> Vec<Target> {
    let y: Vec<f64> = match likelihood.classes() {
        Some(c) => (0..c).map(|k| k as f64).collect(),
        None if likelihood.name() == "counts" => vec![0.0, 1.0, 7.0],
        None if likelihood.name() == "log-normal" => vec![0.21, 1.0, 6.5],
        None => vec![-1.7, 0.4, 2.9],
    };
    y.into_iter().map(|y| Target { y, extra: 0.0 }).collect()
}

/// Means and variances to try, of the first K latent functions.
const PLACES: [([f64; 4], [f64; 4]); 3] = [
    ([0.3, -0.6, 0.9, 0.1], [0.4, 0.25, 0.9, 0.3]),
    ([-1.2, 0.4, 0.2, -0.3], [1.3, 0.6, 0.15, 0.7]),
    ([0.8, 0.1, -1.4, 1.1], [0.08, 0.11, 0.05, 0.2]),
];

pub(super) fn places(k: usize) -> impl Iterator<Item = (Vec<f64>, Vec<f64>)> {
    PLACES.iter().map(move |(m, v)| (m[..k].to_vec(), v[..k].to_vec()))
}

struct Expectation {
    value: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
    params: Vec<f64>,
}

fn expect(likelihood: &dyn Likelihood, t: Target, m: &[f64], v: &[f64]) -> Expectation {
    // what is there before must not matter
    let (mut mean, mut variance) = (vec![f64::NAN; m.len()], vec![f64::NAN; m.len()]);
    let mut params = vec![f64::NAN; likelihood.num_params()];
    let out = Slopes { mean: &mut mean, variance: &mut variance, params: &mut params };
    let value = likelihood.expect(t, m, v, out);
    Expectation { value, mean, variance, params }
}

/// Five-point difference.
pub(super) fn difference(x: f64, h: f64, f: impl Fn(f64) -> f64) -> f64 {
    (8.0 * (f(x + h) - f(x - h)) - f(x + 2.0 * h) + f(x - 2.0 * h)) / (12.0 * h)
}

/// Relative to the larger of both, absolute below 1.
fn close(label: &str, what: &str, own: f64, other: f64, tolerance: f64) {
    let size = own.abs().max(other.abs()).max(1.0);
    assert!((own - other).abs() <= tolerance * size, "{label} {what}: {own:e} for {other:e}");
}

#[test]
fn slopes_are_those_of_the_computed_value() {
    for likelihood in zoo(Slope::Rule) {
        let name = label(&*likelihood);
        for t in targets(&*likelihood) {
            for (m, v) in places(likelihood.latents()) {
                let own = expect(&*likelihood, t, &m, &v);
                let value = |m: &[f64], v: &[f64]| expect(&*likelihood, t, m, v).value;
                for k in 0..m.len() {
                    let by = difference(m[k], 1e-3, |x| {
                        let mut m = m.clone();
                        m[k] = x;
                        value(&m, &v)
                    });
                    close(
                        &name,
                        &format!("∂mean[{k}] at {t:?} {m:?} {v:?}"),
                        own.mean[k],
                        by,
                        3e-8,
                    );
                    let by = difference(v[k], 1e-3 * v[k], |x| {
                        let mut v = v.clone();
                        v[k] = x;
                        value(&m, &v)
                    });
                    let what = format!("∂variance[{k}] at {t:?} {m:?} {v:?}");
                    close(&name, &what, own.variance[k], by, 3e-7);
                }
                let params = likelihood.params();
                let entries = params.iter().enumerate();
                let entries = entries.flat_map(|(i, (_, p))| (0..p.len()).map(move |at| (i, at)));
                for ((i, at), slope) in entries.zip(&own.params) {
                    let values = params[i].1.value().to_vec();
                    let now = values[at];
                    let by = difference(now, 1e-3 * now.abs(), |x| {
                        let mut moved = likelihood.clone();
                        let mut values = values.clone();
                        values[at] = x;
                        moved.params_mut()[i].1.set("p", &values).unwrap();
                        expect(&*moved, t, &m, &v).value
                    });
                    close(&name, &format!("∂param[{i}][{at}] at {t:?}"), *slope, by, 1e-7);
                }
            }
        }
    }
}

#[test]
fn shifts_of_all_latent_values_matter_where_they_are_said_to() {
    let mut invariant = Vec::new();
    for likelihood in zoo(Slope::Rule) {
        let (name, mut largest) = (label(&*likelihood), 0.0_f64);
        for t in targets(&*likelihood) {
            for (m, v) in places(likelihood.latents()) {
                let shifted: Vec<f64> = m.iter().map(|m| m + 0.83).collect();
                let of = |m: &[f64]| {
                    let Expectation { value, mean, variance, params } =
                        expect(&*likelihood, t, m, &v);
                    [vec![value], mean, variance, params].concat()
                };
                let (own, other) = (of(&m), of(&shifted));
                for (own, other) in own.iter().zip(other) {
                    largest = largest.max((own - other).abs() / own.abs().max(1.0));
                }
            }
        }
        if likelihood.shift_invariant() {
            assert!(largest < 1e-10, "{name}: {largest}");
            invariant.push(likelihood.name().to_owned());
        } else if super::REGISTRY.iter().any(|entry| entry.name == likelihood.name()) {
            assert!(largest > 1e-3, "{name}: {largest}");
        }
    }
    invariant.sort();
    invariant.dedup();
    assert_eq!(invariant, ["robust-max", "softmax"]);
}

/// E g by the trapezoidal rule with fine steps (two latent functions: narrow densities and poles are
/// resolved), by the tensor product of 40-point rules (more).
fn brute(k: usize, m: &[f64], v: &[f64], mut g: impl FnMut(&[f64]) -> f64) -> f64 {
    let fine = if k < 3 { Points::trapezoid(0.03, k) } else { Points::tensor(40, k) };
    let points = fine.unwrap();
    let mut f = vec![0.0; k];
    points
        .iter()
        .map(|(x, w)| {
            for k in 0..k {
                f[k] = m[k] + v[k].sqrt() * x[k];
            }
            w * g(&f)
        })
        .sum()
}

/// Those whose values are meant to be exact, with an allowance for their rule.
fn exact(slope: Slope) -> Vec<(Box<dyn Likelihood>, f64)> {
    let mut all = Vec::new();
    for scale in [Scale::Exp, Scale::Softplus] {
        let options = Options { points: 40, ..hetero(scale, false, slope) };
        all.push((boxed(HeteroscedasticGaussian::with(options).unwrap()), 1e-9));
        // the poles limit the rule in f₁ and the 200 points of the comparison
        all.push((boxed(HeteroscedasticStudentT::new(8.7, options).unwrap()), 2e-6));
    }
    all.push((boxed(Softmax::with(3, Integration::Laplace, slope).unwrap()), 1e-9));
    all.push((boxed(LogisticSoftmax::with(3, Integration::Laplace, slope).unwrap()), 1e-9));
    all.extend(weighted(Integration::Laplace, slope).map(|own| (boxed(own), 1e-9)));
    all.push((boxed(Softmax::with(2, Integration::Tensor(40), slope).unwrap()), 1e-9));
    all.push((boxed(Custom::with(LogNormal, Rule::GaussHermite(60), slope).unwrap()), 1e-7));
    all
}

#[test]
fn expectations_and_densities_agree_with_brute_force() {
    for (likelihood, tolerance) in exact(Slope::Rule) {
        let (k, name) = (likelihood.latents(), label(&*likelihood));
        for t in targets(&*likelihood) {
            for (m, v) in places(k) {
                let by = brute(k, &m, &v, |f| likelihood.log_prob(t, f));
                close(&name, "expect", expect(&*likelihood, t, &m, &v).value, by, tolerance);
                let by = brute(k, &m, &v, |f| likelihood.log_prob(t, f).exp());
                let own = likelihood.predict_log_density(t, &m, &v).exp();
                // Gauss–Hermite in f₀ too, of densities narrower than its nodes are apart
                let tolerance = if name.contains("log-normal") { 3e-4 } else { tolerance };
                close(&name, &format!("density {t:?} {m:?} {v:?}"), own, by, tolerance.max(1e-6));
            }
        }
    }
}

#[test]
fn price_slopes_are_half_of_mean_curvatures() {
    for (likelihood, tolerance) in exact(Slope::Price) {
        let (k, name) = (likelihood.latents(), label(&*likelihood));
        for t in targets(&*likelihood) {
            // an integral over three functions takes as long as twenty over two
            for (m, v) in places(k).take(if k > 2 { 1 } else { 2 }) {
                let own = expect(&*likelihood, t, &m, &v);
                for j in 0..k {
                    let by = brute(k, &m, &v, |f| {
                        let g = |x: f64| {
                            let mut f = f.to_vec();
                            f[j] = x;
                            likelihood.log_prob(t, &f)
                        };
                        let h = 3e-3;
                        0.5 * (g(f[j] + h) - 2.0 * g(f[j]) + g(f[j] - h)) / (h * h)
                    });
                    // the second difference is good to h²
                    let what = format!("price[{j}] {t:?} {m:?} {v:?}");
                    close(&name, &what, own.variance[j], by, 3e-5_f64.max(20.0 * tolerance));
                }
            }
        }
    }
    // and agree with the slopes of the value where that is converged
    for (price, rule) in zoo(Slope::Price).iter().zip(zoo(Slope::Rule)) {
        let name = label(&**price);
        let rough = ["draws", "tensor\":true", "gauss-hermite", "cauchy"];
        if rough.iter().any(|r| name.contains(r)) {
            continue;
        }
        let (m, v) = places(price.latents()).last().unwrap();
        for t in targets(&**price) {
            let (a, b) = (expect(&**price, t, &m, &v), expect(&*rule, t, &m, &v));
            for k in 0..m.len() {
                close(&name, "price for rule", a.variance[k], b.variance[k], 1e-6);
                close(&name, "mean", a.mean[k], b.mean[k], 1e-12);
            }
        }
    }
}

#[test]
fn probabilities_sum_to_one_even_at_extremes() {
    for likelihood in zoo(Slope::Rule).into_iter().filter(|l| l.classes().is_some()) {
        let c = likelihood.classes().unwrap();
        let name = label(&*likelihood);
        let k = likelihood.latents();
        let extreme = [40.0, -40.0, 3.0, 40.0];
        for (m, v) in places(k).chain([(extreme[..k].to_vec(), vec![0.5; k])]) {
            let mut p = vec![f64::NAN; c];
            likelihood.probabilities(&m, &v, &mut p);
            close(&name, "sum", p.iter().sum(), 1.0, 1e-14);
            assert!(p.iter().all(|p| (0.0..=1.0).contains(p)), "{name} {p:?}");
            let sum: f64 = targets(&*likelihood)
                .iter()
                .map(|t| likelihood.predict_log_density(*t, &m, &v).exp())
                .sum();
            // squashed robust-max by Gauss–Hermite: an integral over steps, with 20 points
            let tolerance = match (name.contains("robust-max"), name.contains("1e-6")) {
                (true, true) => 1e-3,
                (true, false) => 1e-10,
                _ => 1e-12,
            };
            close(&name, "sum of densities", sum, 1.0, tolerance);
            let mean: f64 = p.iter().enumerate().map(|(k, p)| k as f64 * p).sum();
            close(&name, "mean", likelihood.predict(0.0, &m, &v).0, mean, 1e-13);
            let mut below = 0.0;
            for (k, p) in p.iter().enumerate() {
                if *p > 1e-6 {
                    let level = below + 0.5 * p;
                    assert_eq!(likelihood.quantile(0.0, &m, &v, level), k as f64, "{name}");
                }
                below += p;
            }
            let sum: f64 =
                targets(&*likelihood).iter().map(|t| likelihood.log_prob(*t, &m).exp()).sum();
            close(&name, "sum of p(y | f)", sum, 1.0, 1e-14);
        }
    }
}

#[test]
fn nothing_overflows_at_extremes() {
    for slope in [Slope::Rule, Slope::Price] {
        for likelihood in zoo(slope) {
            let name = label(&*likelihood);
            let k = likelihood.latents();
            for sign in [1.0, -1.0] {
                let m: Vec<f64> =
                    (0..k).map(|i| if i % 2 == 0 { sign * 40.0 } else { -sign * 40.0 }).collect();
                for v in [0.0, 1e-14, 0.3] {
                    for t in targets(&*likelihood) {
                        let own = expect(&*likelihood, t, &m, &vec![v; k]);
                        let numbers =
                            [own.mean, own.variance, own.params, vec![own.value]].concat();
                        assert!(
                            numbers.iter().all(|x| x.is_finite()),
                            "{name} {t:?} {m:?} {v} {numbers:?}"
                        );
                        let density = likelihood.predict_log_density(t, &m, &vec![v; k]);
                        assert!(
                            !density.is_nan() && density < f64::INFINITY,
                            "{name} {t:?} {m:?} {v}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn without_variance_expectations_are_log_densities() {
    for likelihood in zoo(Slope::Rule) {
        let name = label(&*likelihood);
        for (m, _) in places(likelihood.latents()) {
            for t in targets(&*likelihood) {
                let zero = vec![0.0; m.len()];
                let (own, log) = (expect(&*likelihood, t, &m, &zero), likelihood.log_prob(t, &m));
                // robust-max squashed
                let tolerance = if name.contains("1e-6") { 1e-4 } else { 1e-11 };
                close(&name, "value", own.value, log, tolerance);
                let mut slope = vec![f64::NAN; m.len()];
                close(&name, "value", likelihood.log_prob_slope(t, &m, &mut slope), log, tolerance);
                assert_eq!(slope, own.mean, "{name}");
                let density = likelihood.predict_log_density(t, &m, &zero);
                close(&name, "density", density, log, tolerance);
                // the slope in the variance is the limit from above; with draws, the slope of the
                // value also sees that draws of different latent functions correlate a little
                if ["robust-max", "laplace", "draws"].iter().any(|part| name.contains(part)) {
                    continue;
                }
                let near = expect(&*likelihood, t, &m, &vec![1e-7; m.len()]);
                for k in 0..m.len() {
                    let size = 1e-4 * (1.0 + own.mean[k].abs());
                    close(&name, "∂variance at 0", own.variance[k], near.variance[k], size);
                }
            }
        }
    }
}

/// Nodes and weights of ∫ g(y) dy, by sinh substitution with a step of 12 over `half`.
fn nodes(centre: f64, half: i32) -> impl Iterator<Item = (f64, f64)> {
    let h = 12.0 / f64::from(half);
    (-half..=half).map(move |i| {
        let x = f64::from(i) * h;
        (centre + x.sinh(), h * x.cosh())
    })
}

#[test]
fn heteroscedastic_densities_integrate_and_have_the_predicted_moments() {
    for likelihood in zoo(Slope::Rule).into_iter().take(8) {
        let name = label(&*likelihood);
        for ((m, v), level) in places(2).zip([0.01, 0.9, 0.5]) {
            let density =
                |y: f64| likelihood.predict_log_density(Target { y, extra: 0.0 }, &m, &v).exp();
            // densities are what costs time: each of them serves all moments
            let masses: Vec<(f64, f64)> =
                nodes(m[0], 600).map(|(y, w)| (y, w * density(y))).collect();
            let integral = |g: &dyn Fn(f64) -> f64| masses.iter().map(|(y, p)| p * g(*y)).sum();
            close(&name, "mass", integral(&|_| 1.0), 1.0, 1e-8);
            let (mean, variance) = likelihood.predict(0.0, &m, &v);
            close(&name, "mean", m[0] + integral(&|y| y - m[0]), mean, 1e-6);
            if !name.contains("student") {
                close(&name, "variance", variance, integral(&|y| (y - mean).powi(2)), 1e-6);
            }
            if name.contains("tensor\":true") {
                continue;
            }
            let q = likelihood.quantile(0.0, &m, &v, level);
            let up_to = nodes(q, 2400).take_while(|(y, _)| *y <= q);
            let below = up_to.map(|(y, w)| w * density(y) * if y < q { 1.0 } else { 0.5 }).sum();
            // the trapezoidal rule up to a point is good to h²
            close(&name, &format!("quantile {level}"), below, level, 1e-5);
        }
    }
}

#[test]
fn custom_laws_have_the_right_mass_moments_and_quantiles() {
    let cauchy = Custom::new(Cauchy).unwrap();
    for f in [0.3, -40.0, 1e4] {
        close("cauchy", "mass", cauchy.mass(0.0, &[f]), 1.0, 1e-9);
        for level in [1e-3, 0.25, 0.5, 0.9, 0.9999] {
            let expected = f + 0.37 * (std::f64::consts::PI * (level - 0.5)).tan();
            let own = cauchy.quantile(0.0, &[f], &[0.0], level);
            assert!(
                (own - expected).abs() < 1e-6 * (own - f).abs().max(0.1),
                "{f} {level}: {own} {expected}"
            );
        }
    }
    let own = Custom::new(LogNormal).unwrap();
    for f in [[0.3, -0.6], [40.0, -40.0], [-40.0, 1.3]] {
        close("log-normal", "mass", own.mass(0.0, &f), 1.0, 1e-9);
        let sd = 0.6 * Real::softplus(f[1]) + 0.15;
        let (mean, variance) = own.predict(0.0, &f, &[0.0, 0.0]);
        let expected = (f[0] - 0.4 + 0.5 * sd * sd).exp();
        assert!((mean / expected - 1.0).abs() < 1e-8, "{f:?}: {mean} {expected}");
        let expected = (sd * sd).exp_m1() * expected * expected;
        assert!((variance / expected - 1.0).abs() < 1e-7, "{f:?}: {variance} {expected}");
        let median = own.quantile(0.0, &f, &[0.0, 0.0], 0.5);
        assert!((median / (f[0] - 0.4).exp() - 1.0).abs() < 1e-8, "{median}");
    }
    // counts: moments by the user's function and by the sum over the support
    let own = Custom::new(Counts).unwrap();
    close("counts", "mass", own.mass(0.0, &[3.0]), 1.0, 1e-12);
    let (mean, variance) = own.predict(0.0, &[0.4], &[0.7]);
    let density = |y: f64| own.predict_log_density(Target { y, extra: 0.0 }, &[0.4], &[0.7]).exp();
    let sum: f64 = (0..400).map(|k| f64::from(k) * density(f64::from(k))).sum();
    close("counts", "mean", mean, sum, 1e-12);
    let sum: f64 = (0..400).map(|k| (f64::from(k) - mean).powi(2) * density(f64::from(k))).sum();
    close("counts", "variance", variance, sum, 1e-11);
}

/// χ² of counts against probabilities must stay below its mean by five standard deviations more.
fn chi_square(name: &str, counts: &[f64], p: &[f64]) {
    let n: f64 = counts.iter().sum();
    let (mut sum, mut cells) = (0.0, 0.0);
    for (count, p) in counts.iter().zip(p) {
        if n * p < 5.0 {
            // a rare cell: no more than a few
            assert!(*count < 25.0, "{name}: {count} for {}", n * p);
            continue;
        }
        sum += (count - n * p).powi(2) / (n * p);
        cells += 1.0;
    }
    let most = cells + 5.0 * (2.0_f64 * cells).sqrt() + 10.0;
    assert!(sum < most, "{name}: χ² {sum} of {cells} cells");
}

#[test]
fn samples_follow_the_density() {
    let mut rng = stream(11, "samples");
    for likelihood in zoo(Slope::Rule) {
        let name = label(&*likelihood);
        let (m, _) = places(likelihood.latents()).next().unwrap();
        let zero = vec![0.0; m.len()];
        let numeric = likelihood.name() == "log-normal" || likelihood.name() == "cauchy";
        let n = if numeric { 400 } else { 20_000 };
        let draws: Vec<f64> = (0..n).map(|_| likelihood.sample(0.0, &m, &mut rng)).collect();
        if likelihood.classes().is_some() || likelihood.name() == "counts" {
            let cells = likelihood.classes().unwrap_or(12);
            let mut counts = vec![0.0; cells + 1];
            draws.iter().for_each(|y| counts[(*y as usize).min(cells)] += 1.0);
            let p = |k: usize| likelihood.log_prob(Target { y: k as f64, extra: 0.0 }, &m).exp();
            let mut p: Vec<f64> = (0..cells).map(p).collect();
            p.push(1.0 - p.iter().sum::<f64>());
            chi_square(&name, &counts, &p);
            continue;
        }
        // ten cells of equal probability
        let edges: Vec<f64> =
            (1..10).map(|i| likelihood.quantile(0.0, &m, &zero, f64::from(i) / 10.0)).collect();
        let mut counts = vec![0.0; 10];
        draws.iter().for_each(|y| counts[edges.iter().filter(|e| y > e).count()] += 1.0);
        chi_square(&name, &counts, &[0.1; 10]);
    }
}

#[test]
fn json_is_read_back() {
    let same = |own: &dyn Likelihood, read: &dyn Likelihood| {
        assert_eq!(own.to_json(), read.to_json());
        for t in targets(own) {
            let (m, v) = places(own.latents()).next().unwrap();
            let (a, b) = (expect(own, t, &m, &v), expect(read, t, &m, &v));
            assert_eq!(a.value, b.value);
            assert_eq!(a.params, b.params);
        }
    };
    for own in zoo(Slope::Price) {
        let json: Value = serde_json::from_str(&own.to_json().to_string()).unwrap();
        let read = match own.name() {
            "heteroscedastic" => boxed(HeteroscedasticGaussian::from_json(&json).unwrap()),
            "heteroscedastic-student-t" => {
                boxed(HeteroscedasticStudentT::from_json(&json).unwrap())
            }
            "softmax" => boxed(Softmax::from_json(&json).unwrap()),
            "logistic-softmax" => boxed(LogisticSoftmax::from_json(&json).unwrap()),
            "robust-max" => boxed(RobustMax::from_json(&json).unwrap()),
            "cauchy" => boxed(Custom::from_json(Cauchy, &json).unwrap()),
            "log-normal" => boxed(Custom::from_json(LogNormal, &json).unwrap()),
            "counts" => boxed(Custom::from_json(Counts, &json).unwrap()),
            "three" => boxed(Custom::from_json(Three, &json).unwrap()),
            other => panic!("no reader for {other}"),
        };
        same(&*own, &*read);
    }
    let wrong = |text: &str, part: &str| {
        let json = serde_json::from_str(text).unwrap();
        let error = Softmax::from_json(&json).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    wrong(r#"{"type":"softmax"}"#, "classes");
    wrong(r#"{"type":"softmax","classes":1}"#, "1 classes");
    wrong(r#"{"type":"softmax","classes":3,"sloppe":"rule"}"#, "nearest: slope");
    wrong(r#"{"type":"softmax","classes":9,"integration":{"tensor":20}}"#, "20^9");
    wrong(r#"{"type":"softmax","classes":3,"scales":true}"#, "unknown entry `scales`");
}

#[test]
fn weights_of_classes_are_read_and_refused() {
    let read = |spec: &str| super::parse(&format!("logistic-softmax(classes=3{spec})"));
    let scales = |spec: &str| {
        let own = read(spec).unwrap();
        let found = own.params().into_iter().map(|(path, param)| (path, param.clone())).next();
        let (path, param) = found.unwrap();
        assert_eq!(path, "scales");
        (param.value().to_vec(), param.frozen)
    };
    assert_eq!(scales(""), (vec![1.0; 3], true));
    assert_eq!(scales(", scales=false"), (vec![1.0; 3], true));
    assert_eq!(scales(", scales=true"), (vec![1.0; 3], false));
    assert_eq!(scales(", scales=[1.0, 2.0, 0.5]"), (vec![1.0, 2.0, 0.5], false));
    assert_eq!(
        scales(", scales={value: [1.0, 2.0, 0.5], frozen: true}"),
        (vec![1.0, 2.0, 0.5], true)
    );
    // without options the specification is what it was before there were any
    let plain = read("").unwrap().to_json();
    assert_eq!(plain.as_object().unwrap().len(), 4, "{plain}");
    for spec in ["", ", scales=true", ", scales={value: [1.0, 2.0, 0.5], frozen: true}, constant=1"]
    {
        let own = read(spec).unwrap();
        let again = super::build(&own.to_json()).unwrap();
        assert_eq!(again.to_json(), own.to_json());
        assert_eq!(again.params()[0].1.frozen, own.params()[0].1.frozen, "{spec}");
        assert_eq!(again.params()[0].1.value(), own.params()[0].1.value(), "{spec}");
    }
    for (spec, part) in [
        (", scales=[1.0, 2.0]", "2 were given"),
        (", scales=[1.0, 2.0, -0.5]", "-0.5 is outside"),
        (", constant=0", "`constant` is a number above 0, at most 1, not 0"),
        (", constant=1.5", "at most 1, not 1.5"),
        (", augmentation=none", "augmentation"),
    ] {
        let error = read(spec).unwrap_err().to_string();
        assert!(error.contains(part), "{spec}: {error}");
    }
}

#[test]
fn classes_are_checked_and_starts_are_not_surprising() {
    let softmax = Softmax::new(3).unwrap();
    for y in [-1.0, 3.0, 0.5, f64::NAN, f64::INFINITY] {
        let reason = softmax.check(Target { y, extra: 0.0 }).unwrap_err();
        assert!(reason.contains("3 classes"), "{reason}");
    }
    let rows = [0.0, 0.0, 2.0, f64::NAN, 2.0, 2.0, 2.0].map(|y| Target { y, extra: 0.0 });
    // 2, 0 and 4 of 6, each with half an observation more
    let expected = [2.5 / 7.5, 0.5 / 7.5, 4.5 / 7.5];
    for mut own in [boxed(softmax), boxed(LogisticSoftmax::new(3).unwrap())] {
        let f = own.initialise(&rows);
        for (k, p) in expected.iter().enumerate() {
            let own = own.log_prob(Target { y: k as f64, extra: 0.0 }, &f).exp();
            close("start", "probability", own, *p, 1e-13);
        }
    }
    for own in weighted(Integration::default(), Slope::Rule) {
        let mut own = boxed(own);
        let f = own.initialise(&rows);
        assert_eq!(f.len(), own.latents());
        for (k, p) in expected.iter().enumerate() {
            let own = own.log_prob(Target { y: k as f64, extra: 0.0 }, &f).exp();
            close("start with weights", "probability", own, *p, 1e-13);
        }
    }
    // more than this class can have beside the one without a latent function
    let many: Vec<Target> = (0..99).map(|_| Target { y: 1.0, extra: 0.0 }).collect();
    let mut own = boxed(weighted(Integration::default(), Slope::Rule)[1].clone());
    let f = own.initialise(&many);
    let log = |y: f64| own.log_prob(Target { y, extra: 0.0 }, &f);
    assert!(f.iter().all(|f| f.abs() < 5.0) && log(1.0) > 0.7_f64.ln(), "{f:?}");
    let rows: Vec<Target> =
        (0..50).map(|i| Target { y: 7.0 + 0.3 * f64::from(i % 5), extra: 0.0 }).collect();
    for own in zoo(Slope::Rule).iter_mut().take(8) {
        let f = own.initialise(&rows);
        let (mean, variance) = own.predict(0.0, &f, &[0.0, 0.0]);
        close("start", "mean", mean, 7.6, 1e-13);
        close("start", "variance", variance, 0.18, 1e-12);
    }
}

#[test]
fn draws_are_fixed_antithetic_and_of_unit_second_moment() {
    let points = Points::draws(99, 3, 5).unwrap();
    assert_eq!(points, Points::draws(99, 3, 5).unwrap());
    assert_ne!(points, Points::draws(99, 4, 5).unwrap());
    assert_eq!(points.iter().count(), 100);
    for k in 0..5 {
        let moment = |p: i32| points.iter().map(|(x, w)| w * x[k].powi(p)).sum::<f64>();
        assert!(moment(1).abs() < 1e-15 && moment(3).abs() < 1e-14);
        close("draws", "second moment", moment(2), 1.0, 1e-14);
        // kurtosis 3 with standard error √(96/100)
        assert!((moment(4) - 3.0).abs() < 4.0, "{}", moment(4));
    }
    // many draws come to the exact value
    let (m, v) = ([0.3, -0.6, 0.9], [0.4, 0.25, 0.9]);
    let many = Integration::Draws { count: 200_000, seed: 1 };
    let many = Softmax::with(3, many, Slope::Rule).unwrap();
    let exact = Softmax::with(3, Integration::Laplace, Slope::Rule).unwrap();
    let t = Target { y: 1.0, extra: 0.0 };
    let (a, b) = (expect(&many, t, &m, &v), expect(&exact, t, &m, &v));
    // five standard errors of the part that pairs do not cancel (below 0.5/√100 000)
    assert!((a.value - b.value).abs() < 8e-3, "{} {}", a.value, b.value);
}

#[test]
fn probabilities_of_weighted_classes_are_means_over_draws() {
    for own in weighted(Integration::Laplace, Slope::Rule) {
        let (k, name) = (own.latents(), label(&own));
        let draws = Points::draws(40_000, 17, k).unwrap();
        for (m, v) in places(k) {
            let mut exact = [0.0; 3];
            own.probabilities(&m, &v, &mut exact);
            let mut sums = [[0.0; 2]; 3];
            for (x, w) in draws.iter() {
                let f: Vec<f64> = (0..k).map(|j| m[j] + v[j].sqrt() * x[j]).collect();
                let mut p = [0.0; 3];
                own.conditional(&f, &mut p);
                for (sum, p) in sums.iter_mut().zip(p) {
                    sum[0] += w * p;
                    sum[1] += w * p * p;
                }
            }
            for (j, [mean, square]) in sums.into_iter().enumerate() {
                // pairs of opposite draws do no harm, as p is monotone in every f
                let error = ((square - mean * mean) / 40_000.0).sqrt();
                let away = (mean - exact[j]).abs();
                assert!(away < 4.5 * error, "{name} {j}: {mean} {}", exact[j]);
                let t = Target { y: j as f64, extra: 0.0 };
                close(&name, "density", own.predict_log_density(t, &m, &v).exp(), exact[j], 1e-12);
            }
        }
    }
}

/// Draws are for training: predictions do not have their error, which is the same in every row and depends on the order of
/// the classes.
#[test]
fn predictions_of_classes_are_integrals() {
    let softmax = |rule| Softmax::with(3, rule, Slope::Rule).unwrap();
    let (own, tensor) = (softmax(Integration::default()), softmax(Integration::Tensor(60)));
    let mut p = [0.0; 3];
    own.probabilities(&[0.0; 3], &[10.0; 3], &mut p);
    p.iter().for_each(|p| close("alike", "p", *p, 1.0 / 3.0, 1e-12));
    let (m, v) = ([0.3, -0.5, 1.0], [0.5, 1.2, 0.3]);
    let mut other = [0.0; 3];
    own.probabilities(&m, &v, &mut p);
    tensor.probabilities(&m, &v, &mut other);
    for (j, (p, other)) in p.iter().zip(other).enumerate() {
        close("tensor", "p", *p, other, 1e-10);
        let t = Target { y: j as f64, extra: 0.0 };
        close("tensor", "density", own.predict_log_density(t, &m, &v), other.ln(), 1e-10);
    }
}

#[test]
fn a_hundred_classes_work() {
    let c = 100;
    let m: Vec<f64> = (0..c).map(|k| (k as f64 * 0.37).sin()).collect();
    let v: Vec<f64> = (0..c).map(|k| 0.2 + 0.1 * (k % 7) as f64).collect();
    let t = Target { y: 17.0, extra: 0.0 };
    let exact = expect(&Softmax::with(c, Integration::Laplace, Slope::Rule).unwrap(), t, &m, &v);
    let draws = Integration::Draws { count: 2000, seed: 2 };
    let drawn = expect(&Softmax::with(c, draws, Slope::Rule).unwrap(), t, &m, &v);
    // log Σ eᶠ of a hundred has a standard deviation near 0.12; five standard errors
    assert!((exact.value - drawn.value).abs() < 0.015, "{} {}", exact.value, drawn.value);
    close("100", "Σ ∂mean", exact.mean.iter().sum(), 0.0, 1e-9);
    let robust = RobustMax::with(c, Rule::Trapezoid, Slope::Rule, 0.0).unwrap();
    let sum: f64 = (0..c).map(|k| robust.largest(k, &m, &v)).sum();
    // a hundred values, each good to 1e-12
    close("100", "Σ ϖ", sum, 1.0, 1e-10);
}
