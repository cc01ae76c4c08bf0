//! Linear: k = Σ_q v_q x_q x′_q.

use super::inner::Inner;
use super::registry::{Args, Entry, object};
use super::state_space::{self, Fixed, StateSpace};
use super::{Cotangents, Form, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{MatMut, MatRef};
use crate::params::{Visitor, VisitorMut};
use serde_json::Value;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "linear",
    aliases: &["dot_product", "dotproduct"],
    about: "linear, Σ variance·x·x′: linear functions through the origin",
    build,
};

/// The linear kernel, with one variance or one per active input.
#[derive(Clone, Debug)]
pub struct Linear {
    inner: Inner,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["variance", "active_dims", "ard"])?;
    Ok(Box::new(Linear { inner: Inner::read(&args, "variance")? }))
}

impl Kernel for Linear {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.inner.weights);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.inner.weights);
    }

    fn evaluate(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, out: MatMut<f64>, tape: &mut Tape) {
        self.inner.products(x, z, out, tape);
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
        let inputs = [sinks.x.as_mut(), sinks.z.as_mut()];
        self.inner.pull(x, z, k_bar.as_ref(), tape, sinks.params, inputs);
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        out.fill(0.0);
        self.inner.add_squares(x, out);
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        self.inner.pull_squares(x, weights, sinks.params, sinks.x.as_mut());
    }

    fn units(&self) -> Vec<Option<Unit>> {
        self.inner.units(Some(2))
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        // the mean of Σ v x² over rows is `variance` for centred columns
        let start = variance / self.inner.squares(spreads);
        super::spec::initialise(&mut self.inner.weights, &[start]);
    }

    fn state_space(&self) -> Result<Box<dyn StateSpace>> {
        let input = state_space::one_input(self.name(), &self.inner.dims)?;
        Ok(Box::new(Fixed { variance: self.inner.weights.value()[0], slope: Some(input) }))
    }

    fn form(&self) -> Option<Form<'_>> {
        Some(Form::Linear { weights: &self.inner.weights, dims: &self.inner.dims })
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(self.name(), &self.inner.dims, x)
    }

    fn to_json(&self) -> Value {
        let Inner { weights, dims, dims_given } = &self.inner;
        object(ENTRY.name, &[("variance", weights)], dims_given.then_some(dims))
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
