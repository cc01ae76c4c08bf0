//! Constant: k = σ².

use super::registry::{Args, Entry, object};
use super::state_space::{Fixed, StateSpace};
use super::{Cotangents, Form, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{MatMut, MatRef, column};
use crate::params::{Param, Visitor, VisitorMut};
use serde_json::Value;

/// Registry entry.
pub const ENTRY: Entry =
    Entry { name: "constant", aliases: &["bias"], about: "constant: an unknown offset", build };

/// The constant kernel.
#[derive(Clone, Debug)]
pub struct Constant {
    variance: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["variance"])?;
    Ok(Box::new(Constant { variance: args.positive("variance", None, false)? }))
}

impl Kernel for Constant {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.variance);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.variance);
    }

    fn evaluate(&self, _: MatRef<f64>, _: Option<MatRef<f64>>, mut out: MatMut<f64>, _: &mut Tape) {
        out.fill(self.variance.scalar());
    }

    fn vjp(
        &self,
        _: MatRef<f64>,
        _: Option<MatRef<f64>>,
        _: MatRef<f64>,
        k_bar: MatMut<f64>,
        _: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let k_bar = k_bar.as_ref();
        sinks.params[0] +=
            (0..k_bar.ncols()).map(|j| column(k_bar, j).iter().sum::<f64>()).sum::<f64>();
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
        super::spec::initialise(&mut self.variance, &[variance]);
    }

    /// Gives the frequency 0.
    fn spectral(&self, _: MatMut<f64>, _: &mut dyn rand::Rng) -> Result<f64> {
        Ok(self.variance.scalar())
    }

    fn state_space(&self) -> Result<Box<dyn StateSpace>> {
        Ok(Box::new(Fixed { variance: self.variance.scalar(), slope: None }))
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(Form::Constant { variance: &self.variance })
    }

    fn to_json(&self) -> Value {
        object(ENTRY.name, &[("variance", &self.variance)], None)
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
