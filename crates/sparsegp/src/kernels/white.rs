//! White noise: K(X) = σ² I, K(X, X′) = 0 whatever the points.

use super::registry::{Args, Entry, object};
use super::state_space::{self, StateSpace};
use super::{Cotangents, Form, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{MatMut, MatRef};
use crate::params::{Param, Visitor, VisitorMut};
use serde_json::Value;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "white",
    aliases: &["noise", "white_noise"],
    about: "white noise: an independent part of every observation of the function",
    build,
};

/// The white-noise kernel.
#[derive(Clone, Debug)]
pub struct White {
    variance: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["variance"])?;
    Ok(Box::new(White { variance: args.positive("variance", None, false)? }))
}

impl Kernel for White {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.variance);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.variance);
    }

    fn evaluate(&self, _: MatRef<f64>, z: Option<MatRef<f64>>, mut out: MatMut<f64>, _: &mut Tape) {
        out.fill(0.0);
        if z.is_none() {
            for i in 0..out.nrows() {
                out[(i, i)] = self.variance.scalar();
            }
        }
    }

    fn vjp(
        &self,
        _: MatRef<f64>,
        z: Option<MatRef<f64>>,
        _: MatRef<f64>,
        k_bar: MatMut<f64>,
        _: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        if z.is_none() {
            sinks.params[0] += (0..k_bar.nrows()).map(|i| k_bar[(i, i)]).sum::<f64>();
        }
    }

    fn diag(&self, _: MatRef<f64>, out: &mut [f64]) {
        out.fill(self.variance.scalar());
    }

    fn diag_vjp(&self, _: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        sinks.params[0] += weights.iter().sum::<f64>();
    }

    fn units(&self) -> Vec<Option<Unit>> {
        vec![Some(Unit::VARIANCE)]
    }

    fn initialise(&mut self, _: &[f64], variance: f64) {
        super::spec::initialise(&mut self.variance, &[0.1 * variance]);
    }

    fn state_space(&self) -> Result<Box<dyn StateSpace>> {
        Ok(Box::new(state_space::White { variance: self.variance.scalar() }))
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(Form::White { variance: &self.variance })
    }

    fn to_json(&self) -> Value {
        object(ENTRY.name, &[("variance", &self.variance)], None)
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
