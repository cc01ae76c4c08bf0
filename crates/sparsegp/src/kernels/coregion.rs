//! Coregionalisation (Bonilla, Chai & Williams 2008; Álvarez, Rosasco & Lawrence 2012, Sec. 4.2): a covariance of
//! labels, k(i, j) = B_ij with B = W Wᵀ + diag κ, of any positive definite form.
//!
//! One input column holds labels 0, …, P − 1: which output, site or category a row belongs to. Times a
//! kernel of the other columns it is the intrinsic coregionalisation model; sums of such products are the
//! linear model.

use super::registry::{Args, Entry};
use super::state_space::{Labelled, StateSpace};
use super::{Cotangents, Kernel, Tape, Unit};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatMut, MatRef, RowRef, column, column_mut};
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use serde_json::{Value, json};
use std::f64::consts::PI;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "coregion",
    aliases: &["coregionalisation", "coregionalization", "index"],
    about: "coregionalisation, (W·Wᵀ + diag kappa)[i, j] of a column of labels 0, …, output_dim − 1",
    build,
};

/// Most labels, and columns of W: B is a full matrix.
const MOST: usize = 4096;

/// The coregionalisation kernel: W is P×R, κ has P values.
#[derive(Clone, Debug)]
pub struct Coregion {
    w: Param,
    kappa: Param,
    dim: usize,
    dim_given: bool,
}

/// Returns the value of an entry: of `{"value": …}` what is there.
fn value_of(json: &Value) -> Option<&Value> {
    json.as_object().map_or(Some(json), |object| object.get("value"))
}

/// Replaces the value of an entry.
fn with_value(json: &Value, value: Value) -> Value {
    let mut json = json.clone();
    match json.as_object_mut() {
        Some(object) => {
            object.insert("value".into(), value);
        }
        None => json = value,
    }
    json
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["output_dim", "rank", "W", "kappa", "active_dims"])?;
    let (dim, dim_given) = args.active_dim()?;
    let given = |name: &str| args.get(name).and_then(value_of).and_then(Value::as_array);
    let known = |listed: Option<usize>, name: &str, otherwise: Option<u32>| {
        let asked = args.whole(name, 1)?.or(otherwise);
        match (asked.map(|asked| asked as usize), listed) {
            (Some(asked), Some(listed)) if asked != listed && args.get(name).is_some() => {
                Err(args.wrong(format!("`{name}` is {asked}, and {listed} are given")))
            }
            (asked, listed) => match listed.or(asked) {
                Some(count) if count <= MOST => Ok(count),
                Some(count) => Err(args.wrong(format!("`{name}` is {count}; at most {MOST}"))),
                None => Err(args.wrong(format!(
                    "say how many labels there are, such as `{name}=3` for 0, 1 and 2"
                ))),
            },
        }
    };
    let rows = given("W");
    let listed = rows.or_else(|| given("kappa")).map(Vec::len);
    let outputs = known(listed, "output_dim", None)?;
    let columns = rows.and_then(|rows| rows.first()).map(|row| row.as_array().map_or(1, Vec::len));
    let rank = known(columns, "rank", Some(1))?;
    let shape = Shape::Matrix(outputs, rank);
    let mut w = Param::with(start(outputs, rank, 1.0), shape, Transform::Identity);
    if let (Some(json), Some(rows)) = (args.get("W"), rows) {
        // row by row here, column by column in parameters
        let cell = |i: usize, r: usize| match &rows[i] {
            Value::Array(row) if row.len() == rank => Ok(row[r].clone()),
            row @ Value::Number(_) if rank == 1 => Ok(row.clone()),
            row => Err(args.wrong(format!("`W` is a list of rows of {rank} numbers, not {row}"))),
        };
        let cells: Result<Vec<Value>> = (0..rank)
            .flat_map(|r| (0..rows.len()).map(move |i| (i, r)))
            .map(|(i, r)| cell(i, r))
            .collect();
        w.read_json("W", &with_value(json, cells?.into()))?;
        w.given = true;
    } else {
        args.read("W", &mut w)?;
    }
    let mut kappa = Param::positive_vector(vec![0.5; outputs]);
    args.read("kappa", &mut kappa)?;
    Ok(Box::new(Coregion { w, kappa, dim, dim_given }))
}

/// Returns W to start with, column by column: half of the variance is common to all labels; further
/// columns differ in sign and number of waves over the labels, since equal ones would stay equal.
fn start(outputs: usize, rank: usize, variance: f64) -> Vec<f64> {
    let wave = |p: usize, r: usize| (PI * r as f64 * (p as f64 + 0.5) / outputs as f64).cos();
    let scale = |r: usize| (0.5 * variance).sqrt() * if r == 0 { 1.0 } else { 0.2 };
    (0..rank).flat_map(|r| (0..outputs).map(move |p| scale(r) * wave(p, r))).collect()
}

impl Coregion {
    fn outputs(&self) -> usize {
        self.kappa.len()
    }

    /// Returns the nearest label.
    fn label(&self, value: f64) -> usize {
        // casts saturate: what is below 0 is 0
        (value.round() as usize).min(self.outputs() - 1)
    }

    /// Returns the labels of all rows.
    fn labels_of(&self, x: MatRef<f64>) -> Vec<usize> {
        column(x, self.dim).iter().map(|v| self.label(*v)).collect()
    }

    /// Returns the label of one row.
    pub(super) fn label_of(&self, x: RowRef<'_, f64>) -> usize {
        self.label(x[self.dim])
    }

    /// Returns B.
    pub(super) fn covariances(&self) -> Mat<f64> {
        let (p, w) = (self.outputs(), self.w.value());
        Mat::from_fn(p, p, |i, j| {
            let common: f64 = (0..w.len() / p).map(|r| w[r * p + i] * w[r * p + j]).sum();
            common + if i == j { self.kappa.value()[i] } else { 0.0 }
        })
    }

    /// Pulls the cotangent of B back to W and κ.
    pub(super) fn pull(&self, bars: &Mat<f64>, params: &mut [f64]) {
        let (p, w) = (self.outputs(), self.w.value());
        let (w_bar, kappa_bar) = params.split_at_mut(w.len());
        for (at, target) in w_bar.iter_mut().enumerate() {
            let (r, i) = (at / p, at % p);
            *target += (0..p).map(|j| (bars[(i, j)] + bars[(j, i)]) * w[r * p + j]).sum::<f64>();
        }
        kappa_bar.iter_mut().enumerate().for_each(|(i, target)| *target += bars[(i, i)]);
    }
}

impl Kernel for Coregion {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"W", &self.w);
        visitor(&"kappa", &self.kappa);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"W", &mut self.w);
        visitor(&"kappa", &mut self.kappa);
    }

    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, mut out: MatMut<f64>, _: &mut Tape) {
        let b = self.covariances();
        let rows = self.labels_of(x);
        for (j, second) in column(z.unwrap_or(x), self.dim).iter().enumerate() {
            let own = b.col_as_slice(self.label(*second));
            let out = column_mut(out.rb_mut(), j).iter_mut();
            out.zip(&rows).for_each(|(o, first)| *o = own[*first]);
        }
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        _: MatRef<f64>,
        k_bar: MatMut<f64>,
        _: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let mut bars = Mat::zeros(self.outputs(), self.outputs());
        let rows = self.labels_of(x);
        for (j, second) in column(z.unwrap_or(x), self.dim).iter().enumerate() {
            let own = bars.col_as_slice_mut(self.label(*second));
            let bars = column(k_bar.as_ref(), j).iter();
            bars.zip(&rows).for_each(|(bar, first)| own[*first] += bar);
        }
        self.pull(&bars, sinks.params);
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        let b = self.covariances();
        for (o, v) in out.iter_mut().zip(column(x, self.dim)) {
            *o = b[(self.label(*v), self.label(*v))];
        }
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        let mut bars = Mat::zeros(self.outputs(), self.outputs());
        for (weight, v) in weights.iter().zip(column(x, self.dim)) {
            bars[(self.label(*v), self.label(*v))] += weight;
        }
        self.pull(&bars, sinks.params);
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let w = self.w.value().iter().map(|_| Some(Unit::NONE.times_output(1)));
        w.chain(self.kappa.value().iter().map(|_| Some(Unit::VARIANCE))).collect()
    }

    fn initialise(&mut self, _: &[f64], variance: f64) {
        let rank = self.w.len() / self.outputs();
        let columns = start(self.outputs(), rank, variance);
        super::spec::initialise(&mut self.w, &columns);
        super::spec::initialise(&mut self.kappa, &[0.5 * variance]);
    }

    fn labels(&self) -> Vec<usize> {
        vec![self.dim]
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(ENTRY.name, &[self.dim], x)?;
        let last = (self.outputs() - 1) as f64;
        match column(x, self.dim).iter().find(|v| !(v.fract() == 0.0 && (0.0..=last).contains(*v)))
        {
            None => Ok(()),
            Some(value) => Err(Error::Invalid(format!(
                "kernel `{}`: {value} in input column {} is none of the labels 0, …, {last}",
                ENTRY.name, self.dim
            ))),
        }
    }

    fn state_space(&self) -> Result<Box<dyn StateSpace>> {
        Ok(Box::new(Labelled::new(self.clone())))
    }

    fn to_json(&self) -> Value {
        let outputs = self.outputs();
        let w = self.w.value();
        let row = |i: usize| w[i..].iter().step_by(outputs).copied().collect::<Vec<f64>>();
        let rows: Vec<Vec<f64>> = (0..outputs).map(row).collect();
        let mut json =
            json!({ "type": ENTRY.name, "kappa": self.kappa.to_json(Transform::POSITIVE) });
        json["W"] = with_value(&self.w.to_json(Transform::Identity), json!(rows));
        if self.dim_given {
            json["active_dims"] = json!([self.dim]);
        }
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
