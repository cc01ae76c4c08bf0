//! The formula of a fitted model's predictions.

use super::graph::{Binary, Graph, Id, Unary};
use super::kernels::{Pair, covariance, groups};
use super::observe::{self, in_own_units};
use super::program::{Lower, Output, Program, Sum, columns_of, image};
use crate::error::{Error, Result};
use crate::fit::Fitted;
use crate::kernels::place_of;
use crate::linalg::column;
use crate::means::Mean;
use crate::model::{ClosedForm, ClosedProcess, ClosedTrend, Explained};

/// Most coefficients of a mean function whose uncertainty is written down.
const MOST_COEFFICIENTS: usize = 64;

/// Mean and variance.
type Moments = (Id, Id);

/// Returns inputs as the model sees them.
fn scaled_inputs(graph: &mut Graph, fitted: &Fitted) -> Vec<Id> {
    let scaler = &fitted.scaler;
    let one = |d: usize| {
        let mut x = graph.input(d);
        if let Some(c) = scaler.log_unit(d) {
            x = graph.times(x, 1.0 / c);
            x = graph.unary(Unary::Asinh, x);
        }
        let from = graph.plus(x, -scaler.x_mean[d]);
        let scale = graph.constant(scaler.x_scale[d]);
        graph.div(from, scale)
    };
    (0..scaler.x_mean.len()).map(one).collect()
}

/// Returns the values of the mean function.
fn mean_function(graph: &mut Graph, mean: &dyn Mean, x: &[Id], outputs: usize) -> Result<Vec<Id>> {
    let of = |name: &str| {
        let found = mean.params().into_iter().find(|(path, _)| path == name);
        found.map(|(_, param)| param.value().to_vec()).unwrap_or_default()
    };
    let (weights, constant) = (of("weights"), of("constant"));
    let fits = match mean.name() {
        "zero" => true,
        "constant" => constant.len() == outputs,
        "linear" => constant.len() == outputs && weights.len() == outputs * x.len(),
        name => {
            return Err(Error::Invalid(format!(
                "the mean function `{name}` cannot be exported: there are formulas of zero, constant and linear ones; fit with \
                 one of these"
            )));
        }
    };
    if !fits {
        return Err(Error::Invalid("the mean function is of other outputs than the model".into()));
    }
    let mut value = |p: usize| {
        let mut sum = graph.constant(constant.get(p).copied().unwrap_or(0.0));
        for (d, w) in weights.iter().skip(p * x.len()).take(x.len()).enumerate() {
            let part = graph.times(x[d], *w);
            sum = graph.add(sum, part);
        }
        sum
    };
    Ok((0..outputs).map(&mut value).collect())
}

/// Returns what of a variance the points explain.
fn explained(of: &Explained<'_>) -> Vec<Sum> {
    match of {
        Explained::Product(g) => vec![Sum::Product(Lower::of(*g, true))],
        Explained::Solution(l, None) => vec![Sum::Solution(Lower::of(*l, false))],
        Explained::Solution(l, Some(root)) => {
            let (rows, a) = image(*l, *root);
            vec![Sum::Solution(Lower::of(*l, false)), Sum::Image(rows, a)]
        }
    }
}

/// Returns the middle value of every column: distances are taken from there.
fn centre(columns: &[Vec<f64>]) -> Vec<f64> {
    let middle = |column: &Vec<f64>| {
        let mut sorted = column.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    };
    columns.iter().map(middle).collect()
}

/// Returns means, without the mean function, and variances of functions that share kernel and
/// points.
fn process(
    program: &mut Program,
    own: &ClosedProcess<'_>,
    x: &[Id],
    trend: Option<(&ClosedTrend<'_>, &[Id])>,
) -> Result<Vec<Moments>> {
    let json = own.kernel.to_json();
    let columns = columns_of(own.points);
    if columns.len() != x.len() {
        return Err(Error::Invalid(format!(
            "inducing variables of the kernel `{}` that are not points of its inputs cannot be exported: fit with points",
            own.kernel.name()
        )));
    }
    let (centre, groups) = (centre(&columns), groups(&json));
    let z: Vec<Id> = (0..columns.len()).map(|d| program.graph.column(d)).collect();
    let mut pair = Pair { x, z: Some(&z), centre: &centre, groups: &groups };
    let body = covariance(&mut program.graph, &json, pair)?;
    pair.z = None;
    let prior = covariance(&mut program.graph, &json, pair)?;

    let count = own.latents.len();
    let mut sums: Vec<Sum> =
        (0..count).map(|l| Sum::Weighted(column(own.weights, l).to_vec())).collect();
    if let Some((trend, _)) = trend {
        for l in own.latents.clone() {
            let weights = trend.own[l].0;
            sums.extend(
                (0..weights.ncols()).map(|k| Sum::Weighted(weights.col_as_slice(k).to_vec())),
            );
        }
    }
    // functions with a root each share the factor of the points: it is solved with once
    let mut places: Vec<(usize, Option<usize>)> = Vec::new();
    let mut solved: Option<(*const f64, usize)> = None;
    for of in &own.explained {
        let mut all = explained(of).into_iter();
        let factor = match of {
            Explained::Solution(l, _) => Some(l.as_ptr()),
            Explained::Product(_) => None,
        };
        let known = solved.filter(|(own, _)| Some(*own) == factor).map(|(_, place)| place);
        let sum = all.next();
        let place = known.unwrap_or(sums.len());
        if known.is_none() {
            sums.extend(sum);
            solved = factor.map(|own| (own, place)).or(solved);
        }
        places.push((place, (all.len() > 0).then_some(sums.len())));
        sums.extend(all);
    }
    let found = program.block(&columns, body, sums);
    let graph = &mut program.graph;
    let floor = graph.times(prior, own.floor);
    let mut all = Vec::with_capacity(count);
    for at in 0..count {
        let (place, image) = places[place_of(places.len(), at)];
        let mut variance = graph.sub(prior, found[place]);
        if let Some(image) = image {
            variance = graph.add(variance, found[image]);
        }
        variance = graph.max(variance, floor);
        if let Some((trend, basis)) = trend {
            let l = own.latents.start + at;
            let k = basis.len();
            let sums = &found[count + at * k..count + (at + 1) * k];
            let more = moved(graph, trend.own[l].1, basis, sums);
            variance = graph.add(variance, more);
        }
        all.push((found[at], variance));
    }
    Ok(all)
}

/// Returns ‖Cᵀ(h − Wᵀk)‖².
fn moved(graph: &mut Graph, root: &crate::linalg::Mat<f64>, basis: &[Id], sums: &[Id]) -> Id {
    let rest: Vec<Id> = basis.iter().zip(sums).map(|(h, s)| graph.sub(*h, *s)).collect();
    let mut all = Vec::with_capacity(basis.len());
    for j in 0..root.ncols() {
        let parts: Vec<Id> =
            rest.iter().enumerate().map(|(i, r)| graph.times(*r, root[(i, j)])).collect();
        let sum = graph.sum(parts);
        all.push(graph.square(sum));
    }
    graph.sum(all)
}

/// Returns the moments of all latent functions of a component, mixed ones where there is mixing.
fn component(program: &mut Program, own: &ClosedForm<'_>, x: &[Id]) -> Result<Vec<Moments>> {
    let one = program.graph.constant(1.0);
    let mut basis = Vec::new();
    if let Some(trend) = &own.trend {
        basis.extend(x.iter().filter(|_| trend.slopes));
        basis.extend(trend.constant.then_some(one));
        if basis.len() > MOST_COEFFICIENTS {
            return Err(Error::Invalid(format!(
                "the mean function has {} coefficients that are not known exactly; the uncertainty of at most \
                 {MOST_COEFFICIENTS} can be exported: fit with `--mean constant`, and the kernel `linear` for slopes",
                basis.len()
            )));
        }
    }
    let trend = own.trend.as_ref().map(|trend| (trend, &basis[..]));
    let mut all = Vec::new();
    for p in &own.processes {
        all.extend(process(program, p, x, trend)?);
    }
    let graph = &mut program.graph;
    let outputs = own.mixing.map_or(all.len(), |w| w.nrows());
    let means = mean_function(graph, own.mean, x, outputs)?;
    let Some(w) = own.mixing else {
        let raised = all.iter().zip(means).map(|((mean, v), m)| (graph.add(m, *mean), *v));
        return Ok(raised.collect());
    };
    let mixed = |(p, m): (usize, Id)| {
        let (mut mean, mut variance) = (m, graph.constant(0.0));
        for (q, (g, v)) in all.iter().enumerate() {
            let (g, v) = (graph.times(*g, w[(p, q)]), graph.times(*v, w[(p, q)] * w[(p, q)]));
            (mean, variance) = (graph.add(mean, g), graph.add(variance, v));
        }
        (mean, variance)
    };
    Ok(means.into_iter().enumerate().map(mixed).collect())
}

/// Returns the moments of an even mixture of components, given with their shares.
fn pooled(graph: &mut Graph, all: &[(f64, Moments)]) -> Moments {
    if let [(_, own)] = all {
        return *own;
    }
    let parts: Vec<Id> = all.iter().map(|(share, (m, _))| graph.times(*m, *share)).collect();
    let mean = graph.sum(parts);
    let mut parts = Vec::with_capacity(all.len());
    for (share, (m, v)) in all {
        let apart = graph.sub(*m, mean);
        let square = graph.square(apart);
        let within = graph.add(*v, square);
        parts.push(graph.times(within, *share));
    }
    (mean, graph.sum(parts))
}

/// A part of a mixture, and its share.
type Shared<'a> = (f64, &'a ClosedForm<'a>, Vec<Moments>);

/// Returns moments in the units of the data: of latent functions or, where there are formulas, of
/// observations.
fn reported(
    program: &mut Program,
    fitted: &Fitted,
    all: &[Shared<'_>],
    latent: bool,
) -> Option<Vec<Moments>> {
    let each = if latent { 1 } else { fitted.model.likelihood.latents() };
    let columns = all.first().map_or(0, |(_, _, own)| own.len() / each);
    let own_units = !latent || fitted.model.likelihood.latents() == 1;
    let transformed = fitted.scaler.is_transformed();
    let mut found = Vec::with_capacity(columns);
    for p in 0..columns {
        let mut parts = Vec::with_capacity(all.len());
        for (share, form, moments) in all {
            let mut own = moments[p * each];
            if !latent {
                own = observe::moments(&mut program.graph, form.likelihood, own)?;
            }
            // each component has its own moments of a transformed target
            if own_units && transformed {
                own = in_own_units(program, &fitted.scaler, p, own);
            }
            parts.push((*share, own));
        }
        let mut own = pooled(&mut program.graph, &parts);
        if own_units && !transformed {
            own = in_own_units(program, &fitted.scaler, p, own);
        }
        found.push(own);
    }
    Some(found)
}

fn probabilities(program: &mut Program, all: &[Shared<'_>]) -> Option<Vec<Id>> {
    let mut sums = [program.graph.constant(0.0); 2];
    for (share, form, moments) in all {
        let [own] = moments[..] else { return None };
        let found = observe::probabilities(program, form.likelihood, own)?;
        for (sum, p) in sums.iter_mut().zip(found) {
            let part = program.graph.times(p, *share);
            *sum = program.graph.add(*sum, part);
        }
    }
    Some(sums.to_vec())
}

/// Returns the standard deviations.
fn deviations(graph: &mut Graph, moments: &[Moments]) -> Vec<Id> {
    let zero = graph.constant(0.0);
    let mut root = |v: Id| {
        let v = graph.binary(Binary::Max, v, zero);
        graph.sqrt(v)
    };
    moments.iter().map(|(_, v)| root(*v)).collect()
}

/// Returns the program that predicts as a model does.
///
/// # Errors
/// [`Error::Invalid`] that names what has no formula here, and what to do.
pub(super) fn program(fitted: &Fitted) -> Result<Program> {
    if !fitted.input_deviations.is_empty() {
        return Err(Error::Invalid(
            "predictions at inputs with standard deviations have no closed formula here: take inputs for exact (`--exact-inputs`, \
             `Fitted::without_input_deviations`)".into(),
        ));
    }
    let forms = fitted.posterior.closed_forms()?;
    let total: usize = forms.iter().map(|own| own.times).sum();
    let mut program = Program::default();
    let x = scaled_inputs(&mut program.graph, fitted);
    let mut all: Vec<Shared<'_>> = Vec::with_capacity(forms.len());
    for form in &forms {
        let share = form.times as f64 / total.max(1) as f64;
        all.push((share, form, component(&mut program, form, &x)?));
    }
    let add = |program: &mut Program, names: [&'static str; 2], moments: Vec<Moments>| {
        let sd = deviations(&mut program.graph, &moments);
        let mean = moments.into_iter().map(|(mean, _)| mean).collect();
        program.outputs.push(Output { name: names[0], values: mean });
        program.outputs.push(Output { name: names[1], values: sd });
    };
    if fitted.model.likelihood.classes().is_some() {
        if let Some(values) = probabilities(&mut program, &all) {
            program.outputs.push(Output { name: "probabilities", values });
        }
    } else if let Some(moments) = reported(&mut program, fitted, &all, false) {
        add(&mut program, ["mean", "sd"], moments);
    }
    if let Some(moments) = reported(&mut program, fitted, &all, true) {
        add(&mut program, ["latent_mean", "latent_sd"], moments);
    }
    program.prune();
    Ok(program)
}
