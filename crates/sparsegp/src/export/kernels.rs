//! Covariance functions as formulas, from what model files have of them.

use super::graph::{Binary, Graph, Id, Unary};
use crate::error::{Error, Result};
use serde_json::Value;
use std::f64::consts::{PI, TAU};

/// Squared distances and correlations between which kernels of distances are kept, as the library does.
const FARTHEST: f64 = 1e280;
/// Most labels of `coregion`.
const MOST_LABELS: usize = 64;

/// The kernels that have a formula here.
const KNOWN: &str = "rbf, matern12, matern32, matern52, exponential, gamma_exponential, rational_quadratic, additive, periodic, \
                     cosine, linear, polynomial, constant, white, coregion, categorical, changepoints, and their sums and products";

/// Those of distances.
const RADIAL: [&str; 7] = [
    "rbf",
    "matern12",
    "matern32",
    "matern52",
    "exponential",
    "gamma_exponential",
    "rational_quadratic",
];

fn unknown(name: &str) -> Error {
    Error::Invalid(format!(
        "the kernel `{name}` cannot be exported: there are formulas of {KNOWN}; fit with one of these"
    ))
}

/// Both arguments of a covariance: a row, and a line of points, or the same row.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    /// Inputs of the row, D.
    pub(super) x: &'a [Id],
    /// Inputs of the point; none for the variance k(x, x).
    pub(super) z: Option<&'a [Id]>,
    /// Where points are, about: distances are taken from there.
    pub(super) centre: &'a [f64],
    /// Columns that kernels of groups were given.
    pub(super) groups: &'a [usize],
}

/// Returns the columns that kernels of groups were given, anywhere in a kernel: others leave them
/// out.
pub(super) fn groups(json: &Value) -> Vec<usize> {
    let mut all = Vec::new();
    if json["type"] == "categorical" && json.get("active_dims").is_some() {
        all.extend(whole_numbers(&json["active_dims"]));
    }
    for key in ["kernels", "base"] {
        match &json[key] {
            Value::Array(inner) => all.extend(inner.iter().flat_map(groups)),
            inner @ Value::Object(_) => all.extend(groups(inner)),
            _ => {}
        }
    }
    all
}

fn whole_numbers(json: &Value) -> Vec<usize> {
    let all = json.as_array().into_iter().flatten();
    all.filter_map(Value::as_u64).map(|d| d as usize).collect()
}

/// Returns what is in the place of a number that is not there.
fn unreadable(name: &str, entry: &str) -> Error {
    Error::Invalid(format!("the kernel `{name}` has no numbers `{entry}` that can be exported"))
}

/// A kernel as JSON.
struct Entries<'a> {
    name: &'a str,
    json: &'a Value,
    pair: Pair<'a>,
}

impl Entries<'_> {
    /// Returns numbers, whether they stand alone or with what is known of them.
    fn numbers(&self, entry: &str) -> Result<Vec<f64>> {
        let json = &self.json[entry];
        let value = json.get("value").unwrap_or(json);
        let all = match value {
            Value::Array(all) => all.iter().map(Value::as_f64).collect(),
            one => one.as_f64().map(|v| vec![v]),
        };
        all.filter(|all: &Vec<f64>| !all.is_empty()).ok_or_else(|| unreadable(self.name, entry))
    }

    fn number(&self, entry: &str) -> Result<f64> {
        Ok(self.numbers(entry)?[0])
    }

    fn dims(&self) -> Vec<usize> {
        match self.json.get("active_dims") {
            Some(given) => whole_numbers(given),
            None => (0..self.pair.x.len()).filter(|d| !self.pair.groups.contains(d)).collect(),
        }
    }

    /// Returns the only column; the first unless one was given.
    fn dim(&self) -> Result<usize> {
        let dims = self.dims();
        dims.first().copied().ok_or_else(|| unreadable(self.name, "active_dims"))
    }

    /// Returns one number for each column.
    fn each(&self, entry: &str, count: usize) -> Result<Vec<f64>> {
        let all = self.numbers(entry)?;
        match all.len() {
            1 => Ok(vec![all[0]; count]),
            len if len == count => Ok(all),
            _ => Err(unreadable(self.name, entry)),
        }
    }

    fn children(&self) -> Result<&[Value]> {
        let all = self.json["kernels"].as_array().filter(|all| !all.is_empty());
        all.map(Vec::as_slice).ok_or_else(|| unreadable(self.name, "kernels"))
    }
}

/// Returns k of both arguments.
///
/// # Errors
/// [`Error::Invalid`] that names a kernel without a formula here.
pub(super) fn covariance(graph: &mut Graph, json: &Value, pair: Pair<'_>) -> Result<Id> {
    let name = json["type"].as_str().unwrap_or_default();
    let own = Entries { name, json, pair };
    match name {
        "sum" | "product" => {
            let all: Result<Vec<Id>> =
                own.children()?.iter().map(|child| covariance(graph, child, pair)).collect();
            let f = if name == "sum" { Binary::Add } else { Binary::Mul };
            let mut all = all?.into_iter();
            let first = all.next().unwrap_or_else(|| graph.constant(0.0));
            Ok(all.fold(first, |a, b| graph.binary(f, a, b)))
        }
        "constant" => Ok(graph.constant(own.number("variance")?)),
        "white" => {
            let variance = if pair.z.is_some() { 0.0 } else { own.number("variance")? };
            Ok(graph.constant(variance))
        }
        "linear" => inner(graph, &own, "variance"),
        "polynomial" => {
            let product = inner(graph, &own, "variance")?;
            let base = graph.plus(product, own.number("offset")?);
            let degree = json["degree"].as_u64().unwrap_or(3);
            Ok((1..degree).fold(base, |power, _| graph.mul(power, base)))
        }
        "cosine" => cosine(graph, &own),
        "periodic" => periodic(graph, &own),
        "additive" => additive(graph, &own),
        "coregion" => coregion(graph, &own),
        "categorical" => categorical(graph, &own),
        "changepoints" => change_points(graph, &own),
        name if !RADIAL.contains(&name) => Err(unknown(name)),
        _ => {
            let square = squared_distance(graph, &own)?;
            let value = correlation(graph, &own, square)?;
            Ok(graph.times(value, own.number("variance")?))
        }
    }
}

/// Returns κ(ϱ²) of a kernel of distances.
fn correlation(graph: &mut Graph, own: &Entries<'_>, square: Id) -> Result<Id> {
    let (far, third) = (graph.constant(FARTHEST), 5.0 / 3.0);
    let square = graph.binary(Binary::Min, square, far);
    // with ϱ times this factor
    let decay = |graph: &mut Graph, factor: f64| {
        let root = graph.sqrt(square);
        let t = graph.times(root, factor);
        let minus = graph.times(t, -1.0);
        (t, graph.exp(minus))
    };
    Ok(match own.name {
        "rbf" => {
            let half = graph.times(square, -0.5);
            graph.exp(half)
        }
        "matern12" => decay(graph, 1.0).1,
        "exponential" => decay(graph, 0.5).1,
        "matern32" => {
            let (t, e) = decay(graph, 3.0_f64.sqrt());
            let factor = graph.plus(t, 1.0);
            graph.mul(factor, e)
        }
        "matern52" => {
            let (t, e) = decay(graph, 5.0_f64.sqrt());
            let (most, rest) = (graph.plus(t, 1.0), graph.times(square, third));
            let factor = graph.add(most, rest);
            graph.mul(factor, e)
        }
        "gamma_exponential" => {
            let power = graph.constant(0.5 * own.number("gamma")?);
            let power = graph.binary(Binary::Pow, square, power);
            let minus = graph.times(power, -1.0);
            graph.exp(minus)
        }
        "rational_quadratic" => {
            let alpha = own.number("alpha")?;
            let t = graph.times(square, 0.5 / alpha);
            let base = graph.plus(t, 1.0);
            let log = graph.unary(Unary::Log, base);
            let power = graph.times(log, -alpha);
            graph.exp(power)
        }
        name => return Err(unknown(name)),
    })
}

/// Returns (x − z)/ℓ of one column; none for k(x, x).
fn difference(graph: &mut Graph, pair: Pair<'_>, d: usize, lengthscale: f64) -> Option<Id> {
    let (z, inverse) = (pair.z?, 1.0 / lengthscale);
    let [x, z] = [pair.x[d], z[d]].map(|v| {
        let from = graph.plus(v, -pair.centre[d]);
        graph.times(from, inverse)
    });
    Some(graph.sub(x, z))
}

fn squared_distance(graph: &mut Graph, own: &Entries<'_>) -> Result<Id> {
    let dims = own.dims();
    let lengthscales = own.each("lengthscales", dims.len())?;
    let mut all = Vec::with_capacity(dims.len());
    for (d, lengthscale) in dims.into_iter().zip(lengthscales) {
        if let Some(apart) = difference(graph, own.pair, d, lengthscale) {
            all.push(graph.square(apart));
        }
    }
    Ok(graph.sum(all))
}

/// Returns Σ w x x′.
fn inner(graph: &mut Graph, own: &Entries<'_>, weights: &str) -> Result<Id> {
    let dims = own.dims();
    let weights = own.each(weights, dims.len())?;
    let z = own.pair.z.unwrap_or(own.pair.x);
    let mut all = Vec::with_capacity(dims.len());
    for (d, w) in dims.into_iter().zip(weights) {
        let x = graph.times(own.pair.x[d], w);
        all.push(graph.mul(x, z[d]));
    }
    Ok(graph.sum(all))
}

fn cosine(graph: &mut Graph, own: &Entries<'_>) -> Result<Id> {
    let dims = own.dims();
    let lengthscales = own.each("lengthscales", dims.len())?;
    let mut phase = Vec::with_capacity(dims.len());
    for (d, lengthscale) in dims.into_iter().zip(lengthscales) {
        phase.extend(difference(graph, own.pair, d, lengthscale / TAU));
    }
    let phase = graph.sum(phase);
    let wave = graph.unary(Unary::Cos, phase);
    Ok(graph.times(wave, own.number("variance")?))
}

fn periodic(graph: &mut Graph, own: &Entries<'_>) -> Result<Id> {
    let json = &own.json["base"];
    let base = Entries { name: json["type"].as_str().unwrap_or_default(), json, pair: own.pair };
    let dims = base.dims();
    let (lengthscales, periods) =
        (base.each("lengthscales", dims.len())?, own.each("period", dims.len())?);
    let absolute = own.json["form"] == "gpflow" && base.name != "rbf";
    let mut all = Vec::with_capacity(dims.len());
    for (q, &d) in dims.iter().enumerate() {
        let Some(z) = own.pair.z else { break };
        // sin(a − b) = sin a cos b − cos a sin b: only sines of single numbers
        let [[sx, cx], [sz, cz]] = [own.pair.x[d], z[d]].map(|v| {
            let angle = graph.times(v, PI / periods[q]);
            [graph.unary(Unary::Sin, angle), graph.unary(Unary::Cos, angle)]
        });
        let (a, b) = (graph.mul(sx, cz), graph.mul(cx, sz));
        let apart = graph.sub(a, b);
        let apart = graph.times(apart, 1.0 / lengthscales[q]);
        all.push(match absolute {
            true => graph.unary(Unary::Abs, apart),
            false => graph.square(apart),
        });
    }
    let sum = graph.sum(all);
    let square = if absolute { graph.square(sum) } else { sum };
    let value = correlation(graph, &base, square)?;
    Ok(graph.times(value, base.number("variance")?))
}

/// Returns the elementary symmetric polynomials of kernels of one column each, input by input.
fn additive(graph: &mut Graph, own: &Entries<'_>) -> Result<Id> {
    let json = own.json;
    let base = Entries { name: json["base"].as_str().unwrap_or_default(), ..*own };
    let (dims, variances) = (own.dims(), own.numbers("variances")?);
    let lengthscales = own.each("lengthscales", dims.len())?;
    let zero = graph.constant(0.0);
    let mut sums = vec![zero; variances.len() + 1];
    sums[0] = graph.constant(1.0);
    for (&d, lengthscale) in dims.iter().zip(lengthscales) {
        let square = match difference(graph, own.pair, d, lengthscale) {
            Some(apart) => graph.square(apart),
            None => zero,
        };
        let z = correlation(graph, &base, square)?;
        for order in (1..sums.len()).rev() {
            let more = graph.mul(z, sums[order - 1]);
            sums[order] = graph.add(sums[order], more);
        }
    }
    let mut all = Vec::with_capacity(variances.len());
    for (order, variance) in variances.iter().enumerate() {
        let count = (0..=order).fold(1.0, |c, i| c * (dims.len() - i) as f64 / (i + 1) as f64);
        all.push(graph.times(sums[order + 1], variance / count));
    }
    Ok(graph.sum(all))
}

/// Returns B of two labels: of every label that it is the row's, times B of it and the point's.
fn coregion(graph: &mut Graph, own: &Entries<'_>) -> Result<Id> {
    let d = own.dim()?;
    let kappa = own.numbers("kappa")?;
    let json = &own.json["W"];
    let rows =
        json.get("value").unwrap_or(json).as_array().ok_or_else(|| unreadable(own.name, "W"))?;
    let row =
        |row: &Value| row.as_array().map(|all| all.iter().filter_map(Value::as_f64).collect());
    let w: Option<Vec<Vec<f64>>> = rows.iter().map(row).collect();
    let w = w.filter(|w| w.len() == kappa.len()).ok_or_else(|| unreadable(own.name, "W"))?;
    if w.len() > MOST_LABELS {
        return Err(Error::Invalid(format!(
            "the kernel `coregion` has {} labels; one of at most {MOST_LABELS} can be exported",
            w.len()
        )));
    }
    let covariance = |i: usize, j: usize| {
        let common: f64 = w[i].iter().zip(&w[j]).map(|(a, b)| a * b).sum();
        common + if i == j { kappa[i] } else { 0.0 }
    };
    let (mut all, mut matches) = (Vec::new(), Vec::new());
    for i in 0..w.len() {
        let label = graph.constant(i as f64);
        let is_row = graph.equal(own.pair.x[d], label);
        matches.push(is_row);
        let value = match own.pair.z {
            None => graph.constant(covariance(i, i)),
            Some(z) => {
                let mut of_point = Vec::with_capacity(w.len());
                for j in 0..w.len() {
                    let label = graph.constant(j as f64);
                    let is_point = graph.equal(z[d], label);
                    of_point.push(graph.times(is_point, covariance(i, j)));
                }
                graph.sum(of_point)
            }
        };
        all.push(graph.mul(is_row, value));
    }
    // a number that is not a label, which predictions refuse, is 0/0
    let (value, known) = (graph.sum(all), graph.sum(matches));
    Ok(graph.div(value, known))
}

/// Returns k of the same group in all columns, or of another.
fn categorical(graph: &mut Graph, own: &Entries<'_>) -> Result<Id> {
    let variance = own.number("variance")?;
    let similarity =
        if own.json.get("similarity").is_some() { own.number("similarity")? } else { 0.0 };
    let Some(z) = own.pair.z else { return Ok(graph.constant(variance)) };
    let mut same = graph.constant(1.0);
    let dims = match own.json.get("active_dims") {
        Some(given) => whole_numbers(given),
        None => (0..own.pair.x.len()).collect(),
    };
    for d in dims {
        let equal = graph.equal(own.pair.x[d], z[d]);
        same = graph.mul(same, equal);
    }
    let more = graph.times(same, variance * (1.0 - similarity));
    Ok(graph.plus(more, variance * similarity))
}

fn change_points(graph: &mut Graph, own: &Entries<'_>) -> Result<Id> {
    let (d, locations) = (own.dim()?, own.numbers("locations")?);
    let steepness = own.each("steepness", locations.len())?;
    let mut order: Vec<usize> = (0..locations.len()).collect();
    order.sort_by(|&a, &b| locations[a].total_cmp(&locations[b]));
    let mut weights = |v: Id| {
        let one = graph.constant(1.0);
        let mut all = vec![one; locations.len() + 1];
        for (m, &at) in order.iter().enumerate() {
            let from = graph.plus(v, -locations[at]);
            for (c, sign) in [(m, -1.0), (m + 1, 1.0)] {
                let u = graph.times(from, sign * steepness[at]);
                let own = graph.sigmoid(u);
                all[c] = graph.mul(all[c], own);
            }
        }
        all
    };
    let x = weights(own.pair.x[d]);
    let z = match own.pair.z {
        Some(z) => weights(z[d]),
        None => x.clone(),
    };
    let children = own.children()?;
    if children.len() != x.len() {
        return Err(unreadable(own.name, "kernels"));
    }
    let mut all = Vec::with_capacity(x.len());
    for (c, child) in children.iter().enumerate() {
        let value = covariance(graph, child, own.pair)?;
        let both = graph.mul(x[c], z[c]);
        all.push(graph.mul(both, value));
    }
    Ok(graph.sum(all))
}
