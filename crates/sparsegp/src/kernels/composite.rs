//! What sums and products of kernels share.

use super::registry::Args;
use super::state_space::{self, StateSpace};
use super::terms::{Term, name};
use super::{Cotangents, Form, Kernel, Tape, Unit, no_spectrum, slopes};
use crate::error::Result;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut};
use crate::params::{Role, Visitor, VisitorMut, prefixed, prefixed_mut};
use faer::reborrow::ReborrowMut;
use serde_json::{Value, json};
use std::ops::Range;

/// How children are combined, entry by entry.
pub trait Operation: Copy + Send + Sync + std::fmt::Debug + 'static {
    /// Name of the kernel.
    const NAME: &'static str;
    /// The value of no children.
    const NEUTRAL: f64;
    /// Combines two values.
    fn combine(a: f64, b: f64) -> f64;
    /// Whether a child's cotangent is multiplied by the values of its siblings.
    const MULTIPLIES: bool;
    /// Returns the variance that child `index` of `count` starts with, where all should have
    /// `variance`.
    fn share(variance: f64, index: usize, count: usize) -> f64;
}

/// Children combined by an [`Operation`].
#[derive(Clone, Debug)]
pub struct Composite<O: Operation> {
    children: Vec<Box<dyn Kernel>>,
    operation: std::marker::PhantomData<O>,
}

/// Builds a composite from its JSON entries.
///
/// # Errors
/// As for [`super::build`].
pub fn build<O: Operation>(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["kernels"])?;
    Ok(Box::new(Composite::<O> { children: args.children()?, operation: std::marker::PhantomData }))
}

impl<O: Operation> Composite<O> {
    /// Returns the children with their ranges among the composite's parameters.
    fn children(&self) -> Vec<(&dyn Kernel, Range<usize>)> {
        let mut offset = 0;
        self.children
            .iter()
            .map(|child| {
                let start = offset;
                offset += child.num_params();
                (child.as_ref(), start..offset)
            })
            .collect()
    }

    fn diags(&self, x: MatRef<f64>) -> Vec<Vec<f64>> {
        self.children
            .iter()
            .map(|child| {
                let mut own = vec![0.0; x.nrows()];
                child.diag(x, &mut own);
                own
            })
            .collect()
    }
}

/// Between the lengthscales at which equal children start.
const APART: f64 = 3.0;

impl<O: Operation> Composite<O> {
    /// Returns a start in which every child of a sum has the last of its other starts for what
    /// those before it leave: one wave after the other. None where fewer than two have any.
    fn in_turn(&self, x: MatRef<f64>, y: MatRef<f64>) -> Option<Box<dyn Kernel>> {
        if O::MULTIPLIES {
            return None;
        }
        let (mut all, mut left, mut moved) = (self.clone(), y.to_owned(), 0);
        for child in &mut all.children {
            if let Some(start) = child.other_starts(x, left.as_ref()).pop() {
                start.take_out(x, left.as_mut());
                *child = start;
                moved += 1;
            }
        }
        (moved > 1).then(|| Box::new(all) as Box<dyn Kernel>)
    }

    /// Parts equal children, which would have equal slopes, and stay equal forever: each starts
    /// with lengthscales [`APART`] times shorter than the one before it, where they are not given.
    fn part_equals(&mut self) {
        let shown: Vec<String> = self.children.iter().map(|c| c.to_json().to_string()).collect();
        for (index, child) in self.children.iter_mut().enumerate() {
            let before = shown[..index].iter().filter(|other| **other == shown[index]).count();
            let shorter = APART.powi(before as i32);
            child.visit_mut(&mut |_, param| {
                if before > 0 && param.role() == Role::Lengthscales {
                    let values: Vec<f64> = param.value().iter().map(|l| l / shorter).collect();
                    super::spec::initialise(param, &values);
                }
            });
        }
    }
}

fn combine_columns<O: Operation>(mut a: MatMut<f64>, b: MatRef<f64>) {
    for j in 0..a.ncols() {
        let target = column_mut(a.rb_mut(), j);
        target.iter_mut().zip(column(b, j)).for_each(|(t, v)| *t = O::combine(*t, *v));
    }
}

impl<O: Operation> Kernel for Composite<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        for (i, child) in self.children.iter().enumerate() {
            prefixed(&format_args!("kernels[{i}]"), visitor, |v| child.visit(v));
        }
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        for (i, child) in self.children.iter_mut().enumerate() {
            prefixed_mut(&format_args!("kernels[{i}]"), visitor, |v| child.visit_mut(v));
        }
    }

    fn evaluate(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        mut out: MatMut<f64>,
        tape: &mut Tape,
    ) {
        // the children's values are put on the tape above the children's own records, so that all
        // of them are at hand before the first child is pulled back
        let mut values: Vec<Mat<f64>> = Vec::with_capacity(self.children.len());
        for (index, child) in self.children.iter().enumerate() {
            let mut k = tape.buffer(out.nrows(), out.ncols());
            child.evaluate(x, z, k.as_mut(), tape);
            if index == 0 {
                out.copy_from(k.as_ref());
            } else {
                combine_columns::<O>(out.rb_mut(), k.as_ref());
            }
            if tape.is_recording() { values.push(k) } else { tape.recycle(k) }
        }
        values.into_iter().for_each(|k| tape.push(k));
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
        let mut values: Vec<Mat<f64>> = self.children.iter().map(|_| tape.pop()).collect();
        values.reverse();
        for (index, (child, range)) in self.children().into_iter().enumerate().rev() {
            let mut bar = tape.buffer(k_bar.nrows(), k_bar.ncols());
            bar.copy_from(k_bar.as_ref());
            if O::MULTIPLIES {
                for (_, value) in values.iter().enumerate().filter(|(other, _)| *other != index) {
                    combine_columns::<O>(bar.as_mut(), value.as_ref());
                }
            }
            let k = values[index].as_ref();
            child.vjp(x, z, k, bar.as_mut(), tape, &mut sinks.child(range));
            tape.recycle(bar);
        }
        values.into_iter().for_each(|k| tape.recycle(k));
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        out.fill(O::NEUTRAL);
        for own in self.diags(x) {
            out.iter_mut().zip(&own).for_each(|(o, v)| *o = O::combine(*o, *v));
        }
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        let diags = if O::MULTIPLIES { self.diags(x) } else { Vec::new() };
        for (index, (child, range)) in self.children().into_iter().enumerate() {
            let mut own = weights.to_vec();
            for (_, value) in diags.iter().enumerate().filter(|(other, _)| *other != index) {
                own.iter_mut().zip(value).for_each(|(o, v)| *o *= v);
            }
            child.diag_vjp(x, &own, &mut sinks.child(range));
        }
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let child_units = |(index, child): (usize, &dyn Kernel)| {
            // the first factor of a product carries the target's unit, the others are pure numbers
            let pure = O::MULTIPLIES && index > 0;
            let units = child.units().into_iter();
            units
                .map(|u| u.map(|u| if pure { Unit { output: 0, ..u } } else { u }))
                .collect::<Vec<_>>()
        };
        let children = self.children.iter().map(|child| &**child);
        children.enumerate().flat_map(child_units).collect()
    }

    fn relevance(&self, relevance: &mut [f64]) {
        self.children.iter().for_each(|child| child.relevance(relevance));
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        let count = self.children.len();
        for (index, child) in self.children.iter_mut().enumerate() {
            child.initialise(spreads, O::share(variance, index, count));
        }
    }

    fn initialise_from_rows(&mut self, x: MatRef<f64>, y: MatRef<f64>) {
        for index in 0..self.children.len() {
            // each looks at what those before it leave
            let before = self.children[..index].iter().map(|child| child.as_ref());
            let left = super::periods::left_by(before, x, y);
            self.children[index].initialise_from_rows(x, left.as_ref());
        }
        self.part_equals();
    }

    fn other_starts(&self, x: MatRef<f64>, y: MatRef<f64>) -> Vec<Box<dyn Kernel>> {
        let mut all: Vec<Box<dyn Kernel>> = Vec::new();
        for (index, child) in self.children.iter().enumerate() {
            let rest = self.children.iter().enumerate().filter(|(other, _)| *other != index);
            let left = super::periods::left_by(rest.map(|(_, child)| child.as_ref()), x, y);
            for start in child.other_starts(x, left.as_ref()) {
                let mut other = self.clone();
                other.children[index] = start;
                all.push(Box::new(other));
            }
        }
        all.extend(self.in_turn(x, y));
        all
    }

    fn take_out(&self, x: MatRef<f64>, mut y: MatMut<f64>) {
        self.children.iter().for_each(|child| child.take_out(x, y.rb_mut()));
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
        self.children.iter().try_for_each(|child| child.check(x))
    }

    fn trial(&self, x: MatRef<f64>) -> Result<()> {
        self.children.iter().try_for_each(|child| child.trial(x))
    }

    /// Draws for a sum from a mixture, in proportion to the variances, of the terms that are not
    /// linear ([`slopes`]); for a product from a convolution: frequencies add.
    fn spectral(&self, mut out: MatMut<f64>, rng: &mut dyn rand::Rng) -> Result<f64> {
        if O::MULTIPLIES {
            let mut variance = 1.0;
            for child in &self.children {
                if slopes(child.as_ref(), out.ncols()).iter().any(|v| *v > 0.0) {
                    return Err(no_spectrum(child.name()));
                }
                variance *= child.spectral(out.rb_mut(), &mut *rng)?;
            }
            return Ok(variance);
        }
        let mut drawn = Vec::with_capacity(self.children.len());
        for child in &self.children {
            if matches!(child.form(), Some(Form::Linear { .. })) {
                continue;
            }
            let mut own = Mat::zeros(out.nrows(), out.ncols());
            drawn.push((child.spectral(own.as_mut(), &mut *rng)?, own));
        }
        let total: f64 = drawn.iter().map(|(variance, _)| variance).sum();
        for j in 0..out.nrows() {
            let mut left = total * crate::rng::uniform(&mut *rng);
            let found = drawn.iter().find(|(variance, _)| {
                left -= variance;
                left < 0.0
            });
            let Some((_, own)) = found.or(drawn.last()) else { continue };
            (0..out.ncols()).for_each(|q| out[(j, q)] += own[(j, q)]);
        }
        Ok(total)
    }

    fn terms(&self, names: &[String]) -> Vec<Term> {
        if O::MULTIPLIES {
            return vec![Term { name: name(&self.to_json(), names), kernel: self.clone_box() }];
        }
        self.children.iter().flat_map(|child| child.terms(names)).collect()
    }

    fn state_space(&self) -> Result<Box<dyn StateSpace>> {
        let of = |(child, params): (&dyn Kernel, _)| Ok((child.state_space()?, params));
        let parts = self.children().into_iter().map(of).collect::<Result<_>>()?;
        Ok(if O::MULTIPLIES { state_space::product(parts) } else { state_space::sum(parts) })
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(if O::MULTIPLIES { Form::Product(&self.children) } else { Form::Sum(&self.children) })
    }

    fn to_json(&self) -> Value {
        let children: Vec<Value> = self.children.iter().map(|c| c.to_json()).collect();
        json!({ "type": O::NAME, "kernels": children })
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
