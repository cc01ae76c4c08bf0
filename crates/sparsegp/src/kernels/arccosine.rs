//! Arc-cosine kernels of order n = 0, 1, 2 (Cho & Saul 2009, Eqs. 3–6): what infinitely many random units with
//! step, ramp and quadratic ramp make, k = σ² π⁻¹ (s s′)^{n/2} J_n(θ).
//!
//! With ⟨x, x′⟩ = Σ_q w_q x_q x′_q + b, c = ⟨x, x′⟩, s = ⟨x, x⟩, s′ = ⟨x′, x′⟩ the angle is cos θ = c/√(s s′), and
//! J₀ = π − θ, J₁ = sin θ + (π − θ) cos θ, J₂ = 3 sin θ cos θ + (π − θ)(1 + 2 cos² θ).
//!
//! Slopes: J₀′ = −1, J₁′ = −(π − θ) sin θ, J₂′ = −4 sin θ J₁, and ∂θ/∂c = −1/(√(s s′) sin θ) give g = ∂k/∂c below. k is
//! homogeneous: of degree n/2 in s at a fixed angle, so ∂k/∂s = (n k − g c)/2s.

use super::inner::Inner;
use super::registry::{Args, Entry, object};
use super::{Cotangents, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut};
use crate::params::{Param, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use serde_json::{Value, json};
use std::f64::consts::PI;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "arccosine",
    aliases: &["arc_cosine", "arc-cosine"],
    about: "arc-cosine of order 0, 1 or 2: a layer of infinitely many steps, ramps or squared ramps",
    build,
};

/// Cosines above which angles are computed from differences: an arc cosine loses half of the digits there.
const NEAR: f64 = 0.999;

/// The arc-cosine kernel, with one variance of the weights or one per active input.
#[derive(Clone, Debug)]
pub struct ArcCosine {
    order: i32,
    variance: Param,
    inner: Inner,
    bias: Param,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["order", "variance", "weight_variances", "bias_variance", "active_dims", "ard"])?;
    let order = args.whole("order", 0)?.unwrap_or(0);
    if order > 2 {
        return Err(args.wrong(format!("`order` is 0, 1 or 2, not {order}")));
    }
    Ok(Box::new(ArcCosine {
        order: order as i32,
        variance: args.positive("variance", None, false)?,
        inner: Inner::read(&args, "weight_variances")?,
        bias: args.positive("bias_variance", None, false)?,
    }))
}

/// An angle with its cosine and sine.
struct Angle {
    theta: f64,
    cos: f64,
    sin: f64,
}

impl Angle {
    const NONE: Angle = Angle { theta: 0.0, cos: 1.0, sin: 0.0 };

    fn of_cosine(cos: f64) -> Self {
        let cos = cos.clamp(-1.0, 1.0);
        Self { theta: cos.acos(), cos, sin: ((1.0 - cos) * (1.0 + cos)).sqrt() }
    }

    /// Creates the angle from the squared distance of unit vectors, |u − v|² = 4 sin²(θ/2).
    fn of_chord(square: f64) -> Self {
        let half = 0.5 * square.sqrt();
        let sin = (square * (1.0 - 0.25 * square)).sqrt();
        Self { theta: 2.0 * half.asin(), cos: 1.0 - 0.5 * square, sin }
    }
}

impl ArcCosine {
    /// Computes ⟨x, x⟩.
    fn squares(&self, x: MatRef<f64>, out: &mut [f64]) {
        out.fill(self.bias.scalar());
        self.inner.add_squares(x, out);
    }

    fn norms(&self, x: MatRef<f64>, tape: &mut Tape) -> Mat<f64> {
        let mut norms = tape.buffer(x.nrows(), 1);
        self.squares(x, norms.col_as_slice_mut(0));
        norms
    }

    /// Returns |u − v|² of ⟨·, ·⟩ for u = x/√⟨x, x⟩ of row i, v of row j.
    fn chord(
        &self,
        (x, i, s): (MatRef<f64>, usize, f64),
        (z, j, t): (MatRef<f64>, usize, f64),
    ) -> f64 {
        let (u, v) = (1.0 / s.sqrt(), 1.0 / t.sqrt());
        let weights = self.inner.weights.value();
        let mut total = self.bias.scalar() * (u - v) * (u - v);
        for (q, &d) in self.inner.dims.iter().enumerate() {
            let difference = x[(i, d)] * u - z[(j, d)] * v;
            total += weights[if weights.len() == 1 { 0 } else { q }] * difference * difference;
        }
        total
    }

    /// Returns the cosine of rows whose squares overflow, each measured by its largest entry.
    fn far_cosine(&self, (x, i): (MatRef<f64>, usize), (z, j): (MatRef<f64>, usize)) -> f64 {
        let largest = |x: MatRef<f64>, i: usize| {
            self.inner.dims.iter().fold(1.0_f64, |most, &d| most.max(x[(i, d)].abs()))
        };
        let (g, h) = (1.0 / largest(x, i), 1.0 / largest(z, j));
        let weights = self.inner.weights.value();
        let bias = self.bias.scalar();
        let (mut c, mut s, mut t) = (bias * g * h, bias * g * g, bias * h * h);
        for (q, &d) in self.inner.dims.iter().enumerate() {
            let w = weights[if weights.len() == 1 { 0 } else { q }];
            let (u, v) = (g * x[(i, d)], h * z[(j, d)]);
            (c, s, t) = (c + w * u * v, s + w * u * u, t + w * v * v);
        }
        c / (s.sqrt() * t.sqrt())
    }

    /// Returns π⁻¹ J_n at θ = 0.
    fn top(&self) -> f64 {
        if self.order == 2 { 3.0 } else { 1.0 }
    }

    /// Returns k and g = ∂k/∂c, where `size` is √(s s′).
    fn value_and_slope(&self, angle: &Angle, size: f64) -> (f64, f64) {
        let Angle { theta, cos, sin } = *angle;
        let (scale, rest) = (self.variance.scalar() / PI, PI - theta);
        let ramp = sin + rest * cos;
        match self.order {
            // coincident points exert no force, as a subgradient
            0 => (scale * rest, if sin > 0.0 { scale / (size * sin) } else { 0.0 }),
            1 => (scale * size * ramp, scale * rest),
            _ => {
                let value = 3.0 * sin * cos + rest * (1.0 + 2.0 * cos * cos);
                (scale * size * size * value, 4.0 * scale * size * ramp)
            }
        }
    }
}

impl Kernel for ArcCosine {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.variance);
        visitor(&"weight_variances", &self.inner.weights);
        visitor(&"bias_variance", &self.bias);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.variance);
        visitor(&"weight_variances", &mut self.inner.weights);
        visitor(&"bias_variance", &mut self.bias);
    }

    fn evaluate(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        mut out: MatMut<f64>,
        tape: &mut Tape,
    ) {
        let second = z.unwrap_or(x);
        let (own, other) = (self.norms(x, tape), self.norms(second, tape));
        self.inner.products(x, z, out.rb_mut(), tape);
        let bias = self.bias.scalar();
        let mut records = tape.is_recording().then(|| {
            [tape.buffer(out.nrows(), out.ncols()), tape.buffer(out.nrows(), out.ncols())]
        });
        for j in 0..out.ncols() {
            let t = other[(j, 0)];
            for (i, o) in column_mut(out.rb_mut(), j).iter_mut().enumerate() {
                let (s, c) = (own[(i, 0)], *o + bias);
                let product = s * t;
                let size = if product.is_finite() { product.sqrt() } else { s.sqrt() * t.sqrt() };
                let angle = match c / size {
                    _ if z.is_none() && i == j => Angle::NONE,
                    _ if !size.is_finite() => {
                        Angle::of_cosine(self.far_cosine((x, i), (second, j)))
                    }
                    cos if cos > NEAR => Angle::of_chord(self.chord((x, i, s), (second, j, t))),
                    cos => Angle::of_cosine(cos),
                };
                let (value, slope) = self.value_and_slope(&angle, size);
                *o = value;
                if let Some([products, slopes]) = &mut records {
                    (products[(i, j)], slopes[(i, j)]) = (c, slope);
                }
            }
        }
        for record in records.into_iter().flatten() {
            tape.push(record);
        }
        [own, other].into_iter().for_each(|used| tape.recycle(used));
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        k: MatRef<f64>,
        mut k_bar: MatMut<f64>,
        tape: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let (slopes, products) = (tape.pop(), tape.pop());
        let second = z.unwrap_or(x);
        // H = K̄ ∘ g in place; Σ (n k̄k − h c)/2s by rows and by columns are the cotangents of s and s′
        let mut own = tape.buffer(x.nrows(), 1);
        let mut other = tape.buffer(second.nrows(), 1);
        own.fill(0.0);
        let order = f64::from(self.order);
        let (mut by_variance, mut by_bias) = (0.0, 0.0);
        for j in 0..k.ncols() {
            let bars = column_mut(k_bar.rb_mut(), j).iter_mut().zip(column(k, j));
            let records = slopes.col_as_slice(j).iter().zip(products.col_as_slice(j));
            let mut sum = 0.0;
            for (((b, k), (g, c)), row) in bars.zip(records).zip(own.col_as_slice_mut(0)) {
                let weighted = *b * k;
                by_variance += weighted;
                *b *= g;
                by_bias += *b;
                let part = order * weighted - *b * c;
                *row += part;
                sum += part;
            }
            other[(j, 0)] = sum;
        }
        for (sums, points) in [(&mut own, x), (&mut other, second)] {
            let norms = self.norms(points, tape);
            let pairs = sums.col_as_slice_mut(0).iter_mut().zip(norms.col_as_slice(0));
            pairs.for_each(|(sum, s)| *sum *= 0.5 / s);
            by_bias += sums.col_as_slice(0).iter().sum::<f64>();
            tape.recycle(norms);
        }
        sinks.params[0] += by_variance / self.variance.scalar();
        let (weights, bias) = sinks.params[1..].split_at_mut(self.inner.weights.len());
        bias[0] += by_bias;
        let inputs = [sinks.x.as_mut(), sinks.z.as_mut()];
        self.inner.pull(x, z, k_bar.as_ref(), tape, weights, inputs);
        self.inner.pull_squares(x, own.col_as_slice(0), weights, sinks.x.as_mut());
        let sink = if z.is_none() { sinks.x.as_mut() } else { sinks.z.as_mut() };
        self.inner.pull_squares(second, other.col_as_slice(0), weights, sink);
        [slopes, products, own, other].into_iter().for_each(|used| tape.recycle(used));
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.squares(x, out);
        let factor = self.variance.scalar() * self.top();
        out.iter_mut().for_each(|s| *s = factor * s.powi(self.order));
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        let mut bars = vec![0.0; x.nrows()];
        self.squares(x, &mut bars);
        let (top, variance) = (self.top(), self.variance.scalar());
        for (s, w) in bars.iter_mut().zip(weights) {
            let value = w * top * s.powi(self.order);
            sinks.params[0] += value;
            // k is σ² top sⁿ
            *s = variance * f64::from(self.order) * value / *s;
        }
        let (own, bias) = sinks.params[1..].split_at_mut(self.inner.weights.len());
        bias[0] += bars.iter().sum::<f64>();
        self.inner.pull_squares(x, &bars, own, sinks.x.as_mut());
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let mut units = vec![Some(Unit::VARIANCE)];
        units.extend(self.inner.units(Some(0)));
        units.push(Some(Unit::NONE));
        units
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        // ⟨x, x⟩ = 1 + 1 in the mean
        let dims = &self.inner.dims;
        let starts = if self.inner.weights.len() == dims.len() {
            dims.iter().map(|&d| 1.0 / (dims.len() as f64 * spreads[d] * spreads[d])).collect()
        } else {
            vec![1.0 / self.inner.squares(spreads)]
        };
        super::spec::initialise(&mut self.inner.weights, &starts);
        super::spec::initialise(&mut self.bias, &[1.0]);
        let start = variance / (self.top() * 2.0_f64.powi(self.order));
        super::spec::initialise(&mut self.variance, &[start]);
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(self.name(), &self.inner.dims, x)
    }

    fn to_json(&self) -> Value {
        let Inner { weights, dims, dims_given } = &self.inner;
        let params = [
            ("variance", &self.variance),
            ("weight_variances", weights),
            ("bias_variance", &self.bias),
        ];
        let mut json = object(ENTRY.name, &params, dims_given.then_some(dims));
        json["order"] = json!(self.order);
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
