//! Moments and probabilities of observations as formulas of those of latent functions.

use super::graph::{Graph, Id, Unary};
use super::program::{Program, Sum};
use crate::data::{Scaler, TargetTransform};
use crate::likelihoods::Likelihood;
use crate::likelihoods::quadrature::Nodes;
use serde_json::Value;

/// Mean and variance.
pub(super) type Pair = (Id, Id);

/// Points of the rule by which moments of transformed targets are those of their functions, as for predictions.
const POINTS: usize = 40;
/// Standard deviations to either side, and nodes to either side, of the trapezoidal rule for the logistic link: with a step h of
/// a deviation s its error is exp(−2π²/hs), 10⁻⁹ for s = 40 (Trefethen & Weideman 2014).
const REACH: f64 = 9.0;
const STEPS: i32 = 400;

/// Returns what is known of observations that are a latent value and noise of a variance that is
/// the same everywhere: that variance.
fn additive_noise(likelihood: &dyn Likelihood) -> Option<f64> {
    if !likelihood.standardises() || likelihood.latents() != 1 {
        return None;
    }
    let extra = likelihood.extra().map_or(1.0, |own| own.default.unwrap_or(f64::NAN));
    let at = |m: f64, v: f64| likelihood.predict(extra, &[m], &[v]);
    let (_, noise) = at(0.0, 0.0);
    let fits = |(m, v): &(f64, f64)| {
        let (mean, variance) = at(*m, *v);
        let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-11 * (a.abs() + b.abs());
        near(mean, *m) && near(variance, v + noise)
    };
    [(0.3, 0.0), (-1.7, 0.4), (6.0, 25.0), (-40.0, 1e-3)].iter().all(fits).then_some(noise)
}

/// Returns the moments of an observation at the default of the number that rows may bring, where
/// there is a formula.
pub(super) fn moments(
    graph: &mut Graph,
    likelihood: &dyn Likelihood,
    (mean, variance): Pair,
) -> Option<Pair> {
    if let Some(noise) = additive_noise(likelihood) {
        return Some((mean, graph.plus(variance, noise)));
    }
    let json = likelihood.to_json();
    if likelihood.name() == "poisson" && json.get("link").is_none() {
        let half = graph.times(variance, 0.5);
        let log = graph.add(mean, half);
        let rate = graph.exp(log);
        let (square, more) = (graph.square(rate), graph.unary(Unary::Expm1, variance));
        let spread = graph.mul(square, more);
        return Some((rate, graph.add(rate, spread)));
    }
    None
}

/// Returns the probabilities of the classes of a target of two, where there is a formula.
pub(super) fn probabilities(
    program: &mut Program,
    likelihood: &dyn Likelihood,
    (mean, variance): Pair,
) -> Option<[Id; 2]> {
    if likelihood.name() != "bernoulli" {
        return None;
    }
    let json = likelihood.to_json();
    let link = json.get("link").and_then(Value::as_str)?;
    let graph = &mut program.graph;
    if link == "probit" {
        let floor = json.get("floor").and_then(Value::as_f64).unwrap_or(0.0);
        let within = graph.plus(variance, 1.0);
        let root = graph.sqrt(within);
        let z = graph.div(mean, root);
        return Some([-1.0, 1.0].map(|sign| {
            let z = graph.times(z, sign);
            let p = graph.unary(Unary::NormalCdf, z);
            let p = graph.times(p, 1.0 - 2.0 * floor);
            graph.plus(p, floor)
        }));
    }
    let deviation = graph.sqrt(variance);
    let step = REACH / f64::from(STEPS);
    let x: Vec<f64> = (-STEPS..=STEPS).map(|j| step * f64::from(j)).collect();
    let density: Vec<f64> = x.iter().map(|x| (-0.5 * x * x).exp()).collect();
    let total: f64 = density.iter().sum();
    let weights: Vec<f64> = density.iter().map(|d| d / total).collect();
    Some([-1.0, 1.0].map(|sign| {
        let graph = &mut program.graph;
        let node = graph.column(0);
        let apart = graph.mul(deviation, node);
        let f = graph.add(mean, apart);
        let f = graph.times(f, sign);
        let p = graph.sigmoid(f);
        program.block(std::slice::from_ref(&x), p, vec![Sum::Weighted(weights.clone())])[0]
    }))
}

/// Returns the moments of a target, from those on the model's scale.
pub(super) fn in_own_units(
    program: &mut Program,
    scaler: &Scaler,
    target: usize,
    (mean, variance): Pair,
) -> Pair {
    let (centre, unit) = (scaler.y_mean[target], scaler.y_scale[target]);
    let graph = &mut program.graph;
    let mean = graph.times(mean, unit);
    let mean = graph.plus(mean, centre);
    // twice, because unit² may over- or underflow where the product does not
    let variance = graph.times(variance, unit);
    let variance = graph.times(variance, unit);
    match scaler.transform(target) {
        None => (mean, variance),
        Some(TargetTransform::Log) => {
            let half = graph.times(variance, 0.5);
            let log = graph.add(mean, half);
            let own = graph.exp(log);
            let (square, more) = (graph.square(own), graph.unary(Unary::Expm1, variance));
            (own, graph.mul(square, more))
        }
        Some(TargetTransform::YeoJohnson { lambda, centre, scale }) => {
            let nodes = Nodes::gauss_hermite(POINTS);
            let deviation = graph.sqrt(variance);
            let node = graph.column(0);
            let apart = graph.mul(deviation, node);
            let g = graph.add(mean, apart);
            let z = power_inverse(graph, g, *lambda);
            let columns = [nodes.x.clone()];
            let [first] = program.block(&columns, z, vec![Sum::Weighted(nodes.w.clone())])[..]
            else {
                return (mean, variance);
            };
            let graph = &mut program.graph;
            let from = graph.sub(z, first);
            let square = graph.square(from);
            let [second] = program.block(&columns, square, vec![Sum::Weighted(nodes.w)])[..] else {
                return (mean, variance);
            };
            let graph = &mut program.graph;
            let mean = graph.times(first, *scale);
            let variance = graph.times(second, *scale);
            (graph.plus(mean, *centre), graph.times(variance, *scale))
        }
    }
}

/// Returns the inverse of Yeo & Johnson's function: that of either sign, of which one is 0.
fn power_inverse(graph: &mut Graph, g: Id, lambda: f64) -> Id {
    let zero = graph.constant(0.0);
    let minus = graph.times(g, -1.0);
    let mut side = |g: Id, lambda: f64| {
        let g = graph.max(g, zero);
        let log = if lambda == 0.0 {
            g
        } else {
            let power = graph.times(g, lambda);
            let base = graph.plus(power, 1.0);
            let log = graph.unary(Unary::Log, base);
            graph.times(log, 1.0 / lambda)
        };
        graph.unary(Unary::Expm1, log)
    };
    let (above, below) = (side(g, lambda), side(minus, 2.0 - lambda));
    graph.sub(above, below)
}
