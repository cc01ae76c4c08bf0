//! Polynomial: k = (Σ_q v_q x_q x′_q + c)ⁿ, polynomials of degree n (GPflow's convention).

use super::inner::Inner;
use super::registry::{Args, Entry, object};
use super::{Cotangents, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{MatMut, MatRef, column, column_mut};
use crate::params::{Param, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use serde_json::{Value, json};

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "polynomial",
    aliases: &["poly"],
    about: "polynomial, (Σ variance·x·x′ + offset)^degree: polynomials of a degree, 3 by default",
    build,
};

/// Highest degree: beyond, values overflow before they help.
const HIGHEST: u32 = 50;

/// The polynomial kernel, with one variance or one per active input.
#[derive(Clone, Debug)]
pub struct Polynomial {
    inner: Inner,
    offset: Param,
    degree: i32,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["degree", "variance", "offset", "active_dims", "ard"])?;
    let degree = args.whole("degree", 1)?.unwrap_or(3);
    if degree > HIGHEST {
        return Err(args.wrong(format!("`degree` is {degree}; it is at most {HIGHEST}")));
    }
    Ok(Box::new(Polynomial {
        inner: Inner::read(&args, "variance")?,
        offset: args.positive("offset", None, false)?,
        degree: degree as i32,
    }))
}

impl Polynomial {
    /// Computes Σ v x² + c.
    fn squares(&self, x: MatRef<f64>, out: &mut [f64]) {
        out.fill(self.offset.scalar());
        self.inner.add_squares(x, out);
    }

    fn slope(&self, s: f64) -> f64 {
        f64::from(self.degree) * s.powi(self.degree - 1)
    }
}

impl Kernel for Polynomial {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.inner.weights);
        visitor(&"offset", &self.offset);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.inner.weights);
        visitor(&"offset", &mut self.offset);
    }

    fn evaluate(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        mut out: MatMut<f64>,
        tape: &mut Tape,
    ) {
        self.inner.products(x, z, out.rb_mut(), tape);
        let offset = self.offset.scalar();
        let mut slopes = tape.is_recording().then(|| tape.buffer(out.nrows(), out.ncols()));
        let mut below = tape.buffer(out.nrows(), 1);
        for j in 0..out.ncols() {
            let values = column_mut(out.rb_mut(), j);
            values.iter_mut().for_each(|v| *v += offset);
            // the power below the degree, factor by factor: column after column in vectors
            let below = below.col_as_slice_mut(0);
            below.fill(1.0);
            for _ in 1..self.degree {
                below.iter_mut().zip(values.iter()).for_each(|(b, v)| *b *= v);
            }
            if let Some(slopes) = &mut slopes {
                let targets = slopes.col_as_slice_mut(j).iter_mut().zip(below.iter());
                targets.for_each(|(t, b)| *t = f64::from(self.degree) * b);
            }
            values.iter_mut().zip(below.iter()).for_each(|(v, b)| *v *= b);
        }
        tape.recycle(below);
        if let Some(slopes) = slopes {
            tape.push(slopes);
        }
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        _: MatRef<f64>,
        mut k_bar: MatMut<f64>,
        tape: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let slopes = tape.pop();
        let mut total = 0.0;
        for j in 0..k_bar.ncols() {
            for (b, s) in column_mut(k_bar.rb_mut(), j).iter_mut().zip(column(slopes.as_ref(), j)) {
                *b *= s;
                total += *b;
            }
        }
        tape.recycle(slopes);
        let (weights, offset) = sinks.params.split_at_mut(self.inner.weights.len());
        offset[0] += total;
        let inputs = [sinks.x.as_mut(), sinks.z.as_mut()];
        self.inner.pull(x, z, k_bar.as_ref(), tape, weights, inputs);
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.squares(x, out);
        out.iter_mut().for_each(|s| *s = s.powi(self.degree));
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        let mut bars = vec![0.0; x.nrows()];
        self.squares(x, &mut bars);
        bars.iter_mut().zip(weights).for_each(|(s, w)| *s = w * self.slope(*s));
        let (own, offset) = sinks.params.split_at_mut(self.inner.weights.len());
        offset[0] += bars.iter().sum::<f64>();
        self.inner.pull_squares(x, &bars, own, sinks.x.as_mut());
    }

    fn units(&self) -> Vec<Option<Unit>> {
        // the n-th root of a variance
        let output = (2 % self.degree == 0).then_some(2 / self.degree);
        let mut units = self.inner.units(output);
        units.push(output.map(|output| Unit::NONE.times_output(output)));
        units
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        // half of the variance's n-th root for the offset, half for the mean of Σ v x²
        let half = 0.5 * variance.powf(1.0 / f64::from(self.degree));
        let start = half / self.inner.squares(spreads);
        super::spec::initialise(&mut self.inner.weights, &[start]);
        super::spec::initialise(&mut self.offset, &[half]);
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(self.name(), &self.inner.dims, x)
    }

    fn to_json(&self) -> Value {
        let Inner { weights, dims, dims_given } = &self.inner;
        let params = [("variance", weights), ("offset", &self.offset)];
        let mut json = object(ENTRY.name, &params, dims_given.then_some(dims));
        json["degree"] = json!(self.degree);
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
