//! Groups: k = σ² {s + (1 − s)[same group]}, functions of a group that differ from a common one by equal parts.
//!
//! Rows are of one group where all active columns are equal. Without a similarity s = 0: a random intercept of every group
//! where it is added, a function of every group's own where it multiplies. Any value is a group; one that no row had has
//! the prior (and, by s, what all groups have in common).

use super::registry::{Args, Entry, object};
use super::{Cotangents, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{MatMut, MatRef, column_mut};
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use serde_json::Value;
use std::collections::HashMap;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "categorical",
    aliases: &["groups"],
    about: "groups, variance within a group of equal labels and, with `similarity`, that part of it between groups: random \
            intercepts; times a kernel, a function for every group",
    build,
};

/// The similarity that a fit starts from.
const SIMILARITY: f64 = 0.5;

/// The kernel of groups.
#[derive(Clone, Debug)]
pub struct Categorical {
    variance: Param,
    similarity: Option<Param>,
    dims: Vec<usize>,
    dims_given: bool,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["variance", "similarity", "active_dims"])?;
    let (dims, dims_given) = args.active_dims()?;
    let mut similarity = None;
    if args.get("similarity").is_some() {
        let between = Transform::Interval { lower: 0.0, upper: 1.0 };
        let mut param = Param::with(vec![SIMILARITY], Shape::Scalar, between);
        args.read("similarity", &mut param)?;
        similarity = Some(param);
    }
    let variance = args.positive("variance", None, false)?;
    Ok(Box::new(Categorical { variance, similarity, dims, dims_given }))
}

impl Categorical {
    fn similarity(&self) -> f64 {
        self.similarity.as_ref().map_or(0.0, Param::scalar)
    }

    /// Returns the groups of rows, and of others, as numbers.
    fn groups(&self, x: MatRef<f64>, z: Option<MatRef<f64>>) -> [Vec<usize>; 2] {
        let mut all: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut of = |x: MatRef<f64>| -> Vec<usize> {
            let group = |i: usize| {
                // −0 is 0
                let key = self.dims.iter().map(|&d| (x[(i, d)] + 0.0).to_bits()).collect();
                let next = all.len();
                *all.entry(key).or_insert(next)
            };
            (0..x.nrows()).map(group).collect()
        };
        let own = of(x);
        let other = z.map_or_else(|| own.clone(), of);
        [own, other]
    }
}

impl Kernel for Categorical {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.variance);
        if let Some(similarity) = &self.similarity {
            visitor(&"similarity", similarity);
        }
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.variance);
        if let Some(similarity) = &mut self.similarity {
            visitor(&"similarity", similarity);
        }
    }

    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, mut out: MatMut<f64>, _: &mut Tape) {
        let [own, other] = self.groups(x, z);
        let variance = self.variance.scalar();
        let between = variance * self.similarity();
        for (j, second) in other.iter().enumerate() {
            for (o, first) in column_mut(out.rb_mut(), j).iter_mut().zip(&own) {
                *o = if first == second { variance } else { between };
            }
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
        let [own, other] = self.groups(x, z);
        let (mut within, mut between) = (0.0, 0.0);
        for (j, second) in other.iter().enumerate() {
            for (bar, first) in crate::linalg::column(k_bar.as_ref(), j).iter().zip(&own) {
                *(if first == second { &mut within } else { &mut between }) += bar;
            }
        }
        sinks.params[0] += within + self.similarity() * between;
        if self.similarity.is_some() {
            sinks.params[1] += self.variance.scalar() * between;
        }
    }

    fn diag(&self, _: MatRef<f64>, out: &mut [f64]) {
        out.fill(self.variance.scalar());
    }

    fn diag_vjp(&self, _: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        sinks.params[0] += weights.iter().sum::<f64>();
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let similarity = self.similarity.iter().map(|_| Some(Unit::NONE));
        std::iter::once(Some(Unit::VARIANCE)).chain(similarity).collect()
    }

    fn initialise(&mut self, _: &[f64], variance: f64) {
        super::spec::initialise(&mut self.variance, &[variance]);
    }

    fn labels(&self) -> Vec<usize> {
        self.dims.clone()
    }

    fn open_labels(&self) -> Vec<usize> {
        self.dims.clone()
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(self.name(), &self.dims, x)
    }

    fn to_json(&self) -> Value {
        let dims = self.dims_given.then_some(&self.dims[..]);
        let mut json = object(ENTRY.name, &[("variance", &self.variance)], dims);
        if let Some(similarity) = &self.similarity {
            let between = Transform::Interval { lower: 0.0, upper: 1.0 };
            json["similarity"] = similarity.to_json(between);
        }
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
