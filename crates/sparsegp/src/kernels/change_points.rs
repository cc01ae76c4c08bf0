//! Change points (Saatçi, Turner & Rasmussen 2010; in the form of GPflow): one kernel hands over to the next at
//! places along one input column, k = Σ_c w_c(x) k_c(x, x′) w_c(x′).
//!
//! With the locations in order and sigmoids σ_m(x) = 1/(1 + exp(−s_m(x − location_m))), w_c = σ_{c−1}(1 − σ_c): the
//! first kernel has nothing before it (σ₋₁ = 1), the last nothing after (σ = 0).

use super::registry::{Args, Entry};
use super::{Cotangents, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut};
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut, prefixed, prefixed_mut};
use faer::reborrow::ReborrowMut;
use serde_json::{Value, json};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "changepoints",
    aliases: &["change_points", "change-points"],
    about: "change points, kernels=[…] that take over from one another at locations, with a steepness",
    build,
};

/// Powers of the parts of the rows at which places of a change are tried: of a single one near 10, 20, 35, 50, 65, 80 and 90 %.
const PLACES: [f64; 7] = [3.3, 2.3, 1.5, 1.0, 0.62, 0.32, 0.15];
/// How many times steeper a change is tried too.
const STEEPER: f64 = 6.0;

/// Kernels that take over from one another.
#[derive(Clone, Debug)]
pub struct ChangePoints {
    children: Vec<Box<dyn Kernel>>,
    locations: Param,
    steepness: Param,
    dim: usize,
    dim_given: bool,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["kernels", "locations", "steepness", "active_dims"])?;
    let (dim, dim_given) = args.active_dim()?;
    let children = args.children()?;
    let count = children.len() - 1;
    if count == 0 {
        return Err(args.wrong("`kernels` are at least two: there is nothing to change to".into()));
    }
    let listed = |name: &str| match args.get(name) {
        Some(Value::Object(object)) => object.get("value").and_then(Value::as_array).map(Vec::len),
        Some(other) => other.as_array().map(Vec::len),
        None => None,
    };
    for name in ["locations", "steepness"] {
        if let Some(values) = listed(name).filter(|values| *values != count) {
            return Err(args.wrong(format!(
                "`{name}` has {values} values for {count} change points, one less than kernels"
            )));
        }
    }
    // in order and apart, so that two of them do not stay the same
    let places = (1..=count).map(|m| 2.0 * m as f64 / (count + 1) as f64 - 1.0).collect();
    let mut locations = Param::with(places, Shape::Vector(count), Transform::Identity);
    args.read("locations", &mut locations)?;
    let mut steepness = match listed("steepness") {
        Some(_) => Param::positive_vector(vec![1.0; count]),
        None => Param::positive(1.0),
    };
    args.read("steepness", &mut steepness)?;
    Ok(Box::new(ChangePoints { children, locations, steepness, dim, dim_given }))
}

fn sigmoid(u: f64) -> f64 {
    1.0 / (1.0 + (-u).exp())
}

impl ChangePoints {
    /// Returns the indices of the locations in the order of their values.
    fn order(&self) -> Vec<usize> {
        let values = self.locations.value();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        order
    }

    fn steepness(&self, m: usize) -> f64 {
        self.steepness.value()[self.steepness_slot(m)]
    }

    fn steepness_slot(&self, m: usize) -> usize {
        if self.steepness.len() == 1 { 0 } else { m }
    }

    /// Returns w_c(x), B×C.
    fn weights(&self, x: MatRef<f64>, tape: &mut Tape) -> Mat<f64> {
        let mut weights = tape.buffer(x.nrows(), self.children.len());
        weights.fill(1.0);
        for (m, &at) in self.order().iter().enumerate() {
            let (location, s) = (self.locations.value()[at], self.steepness(at));
            for (i, v) in column(x, self.dim).iter().enumerate() {
                let u = s * (v - location);
                weights[(i, m)] *= sigmoid(-u);
                weights[(i, m + 1)] *= sigmoid(u);
            }
        }
        weights
    }

    /// Pulls the cotangents of the weights (B×C) back to locations, steepness and x.
    fn pull_weights(
        &self,
        x: MatRef<f64>,
        bars: &Mat<f64>,
        params: &mut [f64],
        mut sink: Option<&mut MatMut<'_, f64>>,
    ) {
        let (locations, steepness) = params.split_at_mut(self.locations.len());
        let order = self.order();
        // σ of the change point that is m-th in order, 1 before the first and 0 after the last
        let place =
            |m: usize| order.get(m).map(|&at| (self.locations.value()[at], self.steepness(at)));
        for (m, &at) in order.iter().enumerate() {
            let (location, s) = (self.locations.value()[at], self.steepness(at));
            let before = m.checked_sub(1).and_then(place);
            let after = place(m + 1);
            for (i, v) in column(x, self.dim).iter().enumerate() {
                let start = before.map_or(1.0, |(at, s)| sigmoid(s * (v - at)));
                let stop = after.map_or(1.0, |(at, s)| sigmoid(-s * (v - at)));
                // w_m = start (1 − σ), w_{m+1} = σ stop
                let u = s * (v - location);
                let bar = bars[(i, m + 1)] * stop - bars[(i, m)] * start;
                let slope = bar * sigmoid(u) * sigmoid(-u);
                steepness[self.steepness_slot(at)] += slope * (v - location);
                locations[at] -= slope * s;
                if let Some(sink) = sink.as_deref_mut() {
                    sink[(i, self.dim)] += slope * s;
                }
            }
        }
    }

    fn child_params(&self) -> usize {
        self.children.iter().map(|child| child.num_params()).sum()
    }
}

/// Computes `target = source ∘ u vᵀ`.
fn weigh(mut target: MatMut<f64>, source: MatRef<f64>, u: &[f64], v: &[f64]) {
    for (j, v) in v.iter().enumerate() {
        let values = column(source, j).iter().zip(u);
        for (t, (s, u)) in column_mut(target.rb_mut(), j).iter_mut().zip(values) {
            *t = s * u * v;
        }
    }
}

impl Kernel for ChangePoints {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        for (i, child) in self.children.iter().enumerate() {
            prefixed(&format_args!("kernels[{i}]"), visitor, |v| child.visit(v));
        }
        visitor(&"locations", &self.locations);
        visitor(&"steepness", &self.steepness);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        for (i, child) in self.children.iter_mut().enumerate() {
            prefixed_mut(&format_args!("kernels[{i}]"), visitor, |v| child.visit_mut(v));
        }
        visitor(&"locations", &mut self.locations);
        visitor(&"steepness", &mut self.steepness);
    }

    fn evaluate(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        mut out: MatMut<f64>,
        tape: &mut Tape,
    ) {
        let (own, other) = (self.weights(x, tape), self.weights(z.unwrap_or(x), tape));
        out.fill(0.0);
        // as in sums and products, values lie above what the children recorded
        let mut values: Vec<Mat<f64>> = Vec::with_capacity(self.children.len());
        for (c, child) in self.children.iter().enumerate() {
            let mut k = tape.buffer(out.nrows(), out.ncols());
            child.evaluate(x, z, k.as_mut(), tape);
            let u = own.col_as_slice(c);
            for (j, v) in other.col_as_slice(c).iter().enumerate() {
                let terms = column(k.as_ref(), j).iter().zip(u);
                for (o, (k, u)) in column_mut(out.rb_mut(), j).iter_mut().zip(terms) {
                    // u·v first: that is symmetric to the last bit
                    *o += k * (u * v);
                }
            }
            if tape.is_recording() { values.push(k) } else { tape.recycle(k) }
        }
        values.into_iter().for_each(|k| tape.push(k));
        [own, other].into_iter().for_each(|used| tape.recycle(used));
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        _: MatRef<f64>,
        k_bar: MatMut<f64>,
        tape: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let second = z.unwrap_or(x);
        let (own, other) = (self.weights(x, tape), self.weights(second, tape));
        let mut own_bars = tape.buffer(own.nrows(), own.ncols());
        let mut other_bars = tape.buffer(other.nrows(), other.ncols());
        own_bars.fill(0.0);
        let mut values: Vec<Mat<f64>> = self.children.iter().map(|_| tape.pop()).collect();
        values.reverse();
        let mut end = self.child_params();
        for (c, child) in self.children.iter().enumerate().rev() {
            let (u, v) = (own.col_as_slice(c), other.col_as_slice(c));
            let k = values[c].as_ref();
            for (j, v) in v.iter().enumerate() {
                let pairs = column(k_bar.as_ref(), j).iter().zip(column(k, j));
                let mut sum = 0.0;
                for ((bar, u), (b, k)) in own_bars.col_as_slice_mut(c).iter_mut().zip(u).zip(pairs)
                {
                    *bar += b * k * v;
                    sum += b * k * u;
                }
                other_bars[(j, c)] = sum;
            }
            let mut bar = tape.buffer(k_bar.nrows(), k_bar.ncols());
            weigh(bar.as_mut(), k_bar.as_ref(), u, v);
            let range = end - child.num_params()..end;
            end = range.start;
            child.vjp(x, z, k, bar.as_mut(), tape, &mut sinks.child(range));
            tape.recycle(bar);
        }
        let from = self.child_params();
        self.pull_weights(x, &own_bars, &mut sinks.params[from..], sinks.x.as_mut());
        let sink = if z.is_none() { sinks.x.as_mut() } else { sinks.z.as_mut() };
        self.pull_weights(second, &other_bars, &mut sinks.params[from..], sink);
        let used = values.into_iter().chain([own, other, own_bars, other_bars]);
        used.for_each(|used| tape.recycle(used));
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        let weights = self.weights(x, &mut Tape::off());
        let mut own = vec![0.0; x.nrows()];
        out.fill(0.0);
        for (c, child) in self.children.iter().enumerate() {
            child.diag(x, &mut own);
            for ((o, k), w) in out.iter_mut().zip(&own).zip(weights.col_as_slice(c)) {
                *o += k * (w * w);
            }
        }
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        let own = self.weights(x, &mut Tape::off());
        let mut bars = Mat::zeros(x.nrows(), self.children.len());
        let mut values = vec![0.0; x.nrows()];
        let mut start = 0;
        for (c, child) in self.children.iter().enumerate() {
            child.diag(x, &mut values);
            let w = own.col_as_slice(c);
            for (i, bar) in bars.col_as_slice_mut(c).iter_mut().enumerate() {
                *bar = 2.0 * weights[i] * values[i] * w[i];
            }
            let inner: Vec<f64> = weights.iter().zip(w).map(|(b, w)| b * w * w).collect();
            let range = start..start + child.num_params();
            start = range.end;
            child.diag_vjp(x, &inner, &mut sinks.child(range));
        }
        self.pull_weights(x, &bars, &mut sinks.params[start..], sinks.x.as_mut());
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let mut units: Vec<_> = self.children.iter().flat_map(|child| child.units()).collect();
        units.extend(self.locations.value().iter().map(|_| Some(Unit::place(self.dim))));
        units.extend(self.steepness.value().iter().map(|_| Some(Unit::input(self.dim, -1))));
        units
    }

    fn relevance(&self, relevance: &mut [f64]) {
        self.children.iter().for_each(|child| child.relevance(relevance));
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        // wherever one is, it is to explain all
        self.children.iter_mut().for_each(|child| child.initialise(spreads, variance));
        // nine tenths of the way within three quarters of a standard deviation
        super::spec::initialise(&mut self.steepness, &[8.0 / spreads[self.dim]]);
    }

    fn initialise_from_rows(&mut self, x: MatRef<f64>, y: MatRef<f64>) {
        self.children.iter_mut().for_each(|child| child.initialise_from_rows(x, y));
        let mut places = column(x, self.dim).to_vec();
        places.sort_unstable_by(f64::total_cmp);
        if let Some(last) = places.len().checked_sub(1) {
            // as many rows for every kernel
            let parts = self.children.len();
            let starts: Vec<f64> = (1..parts).map(|m| places[m * last / parts]).collect();
            super::spec::initialise(&mut self.locations, &starts);
        }
    }

    fn other_starts(&self, x: MatRef<f64>, y: MatRef<f64>) -> Vec<Box<dyn Kernel>> {
        let mut all: Vec<Box<dyn Kernel>> = Vec::new();
        let mut places = column(x, self.dim).to_vec();
        places.sort_unstable_by(f64::total_cmp);
        let Some(last) = places.len().checked_sub(1) else { return all };
        let parts = self.children.len() as f64;
        let at = |part: f64| places[(part * last as f64) as usize];
        // evenly over the rows, drawn to the first or to the last of them
        let drawn = |power: f64| -> Vec<f64> {
            (1..self.children.len()).map(|m| at((m as f64 / parts).powf(power))).collect()
        };
        for (power, steeper) in PLACES.iter().flat_map(|power| [(*power, 1.0), (*power, STEEPER)]) {
            let mut other = self.clone();
            let steepness = self.steepness.value().iter().map(|s| steeper * s).collect::<Vec<_>>();
            super::spec::initialise(&mut other.locations, &drawn(power));
            super::spec::initialise(&mut other.steepness, &steepness);
            all.push(Box::new(other));
        }
        for (index, child) in self.children.iter().enumerate() {
            for start in child.other_starts(x, y) {
                let mut other = self.clone();
                other.children[index] = start;
                all.push(Box::new(other));
            }
        }
        all
    }

    fn labels(&self) -> Vec<usize> {
        self.children.iter().flat_map(|child| child.labels()).collect()
    }

    fn open_labels(&self) -> Vec<usize> {
        self.children.iter().flat_map(|child| child.open_labels()).collect()
    }

    fn alike(&self) -> Vec<Vec<usize>> {
        self.children.iter().flat_map(|child| child.alike()).collect()
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(ENTRY.name, &[self.dim], x)?;
        self.children.iter().try_for_each(|child| child.check(x))
    }

    fn trial(&self, x: MatRef<f64>) -> Result<()> {
        self.children.iter().try_for_each(|child| child.trial(x))
    }

    fn to_json(&self) -> Value {
        let children: Vec<Value> = self.children.iter().map(|c| c.to_json()).collect();
        let mut json = json!({ "type": ENTRY.name, "kernels": children });
        json["locations"] = self.locations.to_json(Transform::Identity);
        json["steepness"] = self.steepness.to_json(Transform::POSITIVE);
        if self.dim_given {
            json["active_dims"] = json!([self.dim]);
        }
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
