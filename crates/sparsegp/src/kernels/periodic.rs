//! Periodic kernels (MacKay 1998): a stationary kernel σ²κ(ϱ²) of ϱ² = Σ_q sin²(π(x_q − x′_q)/p_q)/ℓ_q².
//!
//! ϱ is the distance of the points (cos φ, sin φ)/2ℓ on circles, φ = 2πx/p: 4 sin²(½(φ − φ′)) = |e^{iφ} −
//! e^{iφ′}|². So whatever is positive definite for the base in twice as many dimensions is so here.
//! With the base `rbf` it is exp(−½ Σ sin²(…)/ℓ²), GPflow's convention; scikit-learn's `ExpSineSquared` has
//! a factor 2 for ½, lengthscales twice as long.
//!
//! The form `gpflow` takes ϱ = Σ_q |sin(π(x_q − x′_q)/p_q)|/ℓ_q, as GPflow does for Matérn bases. With one input
//! column it is the same; with more it is **not positive definite** in general, and is there only for
//! comparison with models from elsewhere.

use super::radial::Stationary;
use super::registry::{Args, Entry, build as build_kernel};
use super::state_space::{self, StateSpace};
use super::{Cotangents, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::exp::{Vectorised, dispatch};
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut};
use crate::params::{Param, Role, Transform, Visitor, VisitorMut, prefixed, prefixed_mut};
use faer::reborrow::ReborrowMut;
use rand_distr::{Distribution, Poisson};
use serde_json::{Value, json};
use std::f64::consts::PI;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "periodic",
    aliases: &[],
    about: "periodic, a stationary base of ϱ² = Σ (sin(π(x − x′)/period)/lengthscale)²: repeats exactly",
    build,
};

/// Harmonics by which starting values of the period are compared: of a function that repeats, the second or third may be the
/// strongest.
const HARMONICS: usize = 3;
/// The lengthscale of a wave that is nearly a sine, on the scale of sin.
const SMOOTH: f64 = 2.0;

/// How sines of several columns make one distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// ϱ² = Σ s².
    Circles,
    /// ϱ = Σ |s|, unless the base is `rbf`.
    Gpflow,
}

/// A periodic kernel, with one period or one for each active input of its base.
#[derive(Clone, Debug)]
pub struct Periodic {
    base: Box<dyn Stationary>,
    period: Param,
    form: Form,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["base", "period", "form"])?;
    let base = build_kernel(args.get("base").unwrap_or(&json!("rbf")), args.inputs)?;
    let name = base.name();
    let Some(base) = base.into_stationary() else {
        return Err(args.wrong(format!(
            "its base is a kernel of distances, such as `rbf` or `matern52`, not `{name}`"
        )));
    };
    let form = match args.get("form").map(|form| (form, form.as_str())) {
        None | Some((_, Some("circles"))) => Form::Circles,
        Some((_, Some("gpflow"))) => Form::Gpflow,
        Some((other, _)) => {
            return Err(args.wrong(format!(
                "`form` is `circles`, or `gpflow` for sums of absolute sines with bases other than \
                 `rbf`, not {other}"
            )));
        }
    };
    let period = args.positive("period", Some(base.dims().len()), true)?;
    Ok(Box::new(Periodic { base, period, form }))
}

/// Sines and cosines of πx/p of one column.
struct Waves {
    sin: Mat<f64>,
    cos: Mat<f64>,
}

impl Waves {
    fn recycle(self, tape: &mut Tape) {
        tape.recycle(self.sin);
        tape.recycle(self.cos);
    }

    /// Returns (sin, cos) of row j and active column q.
    fn at(&self, j: usize, q: usize) -> (f64, f64) {
        (self.sin[(j, q)], self.cos[(j, q)])
    }
}

/// Adds s² or |s| of one column, s = sin(π(x − z)/p)/ℓ.
struct Sines<'a> {
    out: &'a mut [f64],
    sin: &'a [f64],
    cos: &'a [f64],
    at: (f64, f64),
    inverse: f64,
    absolute: bool,
}

impl Vectorised for Sines<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { out, sin, cos, at: (sz, cz), inverse, absolute } = self;
        for ((o, s), c) in out.iter_mut().zip(sin).zip(cos) {
            // not fused: equal points must be at distance 0
            let s = (s * cz - c * sz) * inverse;
            *o += if absolute { s.abs() } else { s * s };
        }
    }
}

/// From H = ∂/∂ϱ² to the angles φ = πx/p of one column: adds to those of the rows, returns the sum for
/// z (without its sign) and Σ h s ∂ϱ²/∂s.
struct Turn<'a> {
    h: &'a [f64],
    /// ϱ of the form that adds absolute sines.
    sums: Option<&'a [f64]>,
    sin: &'a [f64],
    cos: &'a [f64],
    at: (f64, f64),
    inverse: f64,
    angles: &'a mut [f64],
}

impl Vectorised for Turn<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run<const FMA: bool>(self) -> (f64, f64) {
        let Self { h, sums, sin, cos, at: (sz, cz), inverse, angles } = self;
        let (mut turned, mut weighted) = (0.0, 0.0);
        let rows = h.iter().zip(sin).zip(cos).zip(angles);
        for (i, (((h, s), c), angle)) in rows.enumerate() {
            let own = (s * cz - c * sz) * inverse;
            let slope = (c * cz + s * sz) * inverse;
            // ∂ϱ²/∂s: 2s, or 2ϱ sign(s) with 0 at the kink
            let outer = match sums {
                None => 2.0 * h * own,
                Some(sums) if own != 0.0 => 2.0 * h * sums[i] * own.signum(),
                Some(_) => 0.0,
            };
            *angle += outer * slope;
            turned += outer * slope;
            weighted += outer * own;
        }
        (turned, weighted)
    }
}

impl Periodic {
    fn slot(&self, q: usize) -> usize {
        if self.period.len() == 1 { 0 } else { q }
    }

    fn frequency(&self, q: usize) -> f64 {
        PI / self.period.value()[self.slot(q)]
    }

    /// Returns whether ϱ is a sum of absolute sines.
    fn absolute(&self) -> bool {
        self.form == Form::Gpflow && self.base.name() != super::squared_exponential::ENTRY.name
    }

    fn waves(&self, x: MatRef<f64>, tape: &mut Tape) -> Waves {
        let dims = self.base.dims();
        let mut sin = tape.buffer(x.nrows(), dims.len());
        let mut cos = tape.buffer(x.nrows(), dims.len());
        for (q, &d) in dims.iter().enumerate() {
            let frequency = self.frequency(q);
            for (i, v) in column(x, d).iter().enumerate() {
                let angle = (frequency * v).clamp(-f64::MAX, f64::MAX);
                (sin[(i, q)], cos[(i, q)]) = angle.sin_cos();
            }
        }
        Waves { sin, cos }
    }

    /// Adds Σ s² or Σ |s|.
    fn add_sines(&self, x: &Waves, z: &Waves, mut out: MatMut<f64>) {
        out.fill(0.0);
        let absolute = self.absolute();
        for j in 0..z.sin.nrows() {
            for q in 0..self.base.dims().len() {
                dispatch(Sines {
                    out: column_mut(out.rb_mut(), j),
                    sin: x.sin.col_as_slice(q),
                    cos: x.cos.col_as_slice(q),
                    at: z.at(j, q),
                    inverse: 1.0 / self.base.lengthscale(q),
                    absolute,
                });
            }
        }
    }

    /// Pulls cotangents of angles back to periods and inputs: ∂φ/∂x = π/p, ∂φ/∂p = −πx/p².
    fn pull_angles(
        &self,
        x: MatRef<f64>,
        angles: &Mat<f64>,
        periods: &mut [f64],
        mut sink: Option<&mut MatMut<'_, f64>>,
    ) {
        for (q, &d) in self.base.dims().iter().enumerate() {
            let (frequency, angles) = (self.frequency(q), angles.col_as_slice(q));
            let along: f64 = angles.iter().zip(column(x, d)).map(|(a, v)| a * v).sum();
            periods[self.slot(q)] -= frequency * frequency / PI * along;
            if let Some(sink) = sink.as_deref_mut() {
                for (t, a) in column_mut(sink.rb_mut(), d).iter_mut().zip(angles) {
                    *t += frequency * a;
                }
            }
        }
    }
}

impl Kernel for Periodic {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        prefixed(&"base", visitor, |v| self.base.visit(v));
        visitor(&"period", &self.period);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        prefixed_mut(&"base", visitor, |v| self.base.visit_mut(v));
        visitor(&"period", &mut self.period);
    }

    fn evaluate(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        mut out: MatMut<f64>,
        tape: &mut Tape,
    ) {
        let (own, other) = (self.waves(x, tape), self.waves(z.unwrap_or(x), tape));
        self.add_sines(&own, &other, out.rb_mut());
        if self.absolute() {
            for j in 0..out.ncols() {
                column_mut(out.rb_mut(), j).iter_mut().for_each(|o| *o *= *o);
            }
        }
        self.base.correlate(out, tape);
        own.recycle(tape);
        other.recycle(tape);
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
        let second = z.unwrap_or(x);
        let (own, other) = (self.waves(x, tape), self.waves(second, tape));
        let (base_params, periods) = sinks.params.split_at_mut(self.base.num_params());
        self.base.pull(k, k_bar.rb_mut(), tape, base_params);
        let sums = self.absolute().then(|| {
            let mut sums = tape.buffer(k.nrows(), k.ncols());
            self.add_sines(&own, &other, sums.as_mut());
            sums
        });
        let d = self.base.dims().len();
        let mut angles = [tape.buffer(x.nrows(), d), tape.buffer(second.nrows(), d)];
        let [first, last] = &mut angles;
        first.fill(0.0);
        for q in 0..d {
            let inverse = 1.0 / self.base.lengthscale(q);
            let mut scaled = 0.0;
            for j in 0..second.nrows() {
                let (turned, weighted) = dispatch(Turn {
                    h: column(k_bar.as_ref(), j),
                    sums: sums.as_ref().map(|sums| sums.col_as_slice(j)),
                    sin: own.sin.col_as_slice(q),
                    cos: own.cos.col_as_slice(q),
                    at: other.at(j, q),
                    inverse,
                    angles: first.col_as_slice_mut(q),
                });
                last[(j, q)] = -turned;
                scaled += weighted;
            }
            // ∂s/∂ℓ = −s/ℓ
            base_params[self.base.lengthscale_slot(q)] -= inverse * scaled;
        }
        let [first, last] = &angles;
        self.pull_angles(x, first, periods, sinks.x.as_mut());
        let sink = if z.is_none() { sinks.x.as_mut() } else { sinks.z.as_mut() };
        self.pull_angles(second, last, periods, sink);
        angles.into_iter().chain(sums).for_each(|used| tape.recycle(used));
        own.recycle(tape);
        other.recycle(tape);
    }

    fn diag(&self, x: MatRef<f64>, out: &mut [f64]) {
        self.base.diag(x, out);
    }

    fn diag_vjp(&self, x: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        self.base.diag_vjp(x, weights, &mut sinks.child(0..self.base.num_params()));
    }

    fn units(&self) -> Vec<Option<Unit>> {
        // sines are pure numbers, and so are their lengthscales
        let base = self.base.units().into_iter();
        let mut units: Vec<_> = base
            .map(|unit| Some(Unit::NONE.times_output(unit.map_or(0, |unit| unit.output))))
            .collect();
        let dims = self.base.dims();
        let own = self.period.len() == dims.len();
        let periods = dims.iter().map(|&d| own.then_some(Unit::input(d, 1)));
        units.extend(periods.take(self.period.len()));
        units
    }

    /// Draws the number of a harmonic. With the base `rbf` and z = 1/(4ℓ²) the correlation is
    /// exp(−z(1 − cos θ)) = e⁻ᶻ Σₖ Iₖ(z) cos kθ, θ = 2π(x − x′)/p: the number k of the harmonic is
    /// the difference of two Poisson numbers of mean z/2 (Skellam 1946).
    fn spectral(&self, mut out: MatMut<f64>, rng: &mut dyn rand::Rng) -> Result<f64> {
        let base = self.base.form();
        let Some(super::Form::SquaredExponential { variance, .. }) = base else {
            return Err(super::no_spectrum(self.name()));
        };
        for (q, &d) in self.base.dims().iter().enumerate() {
            let mean = 0.125 / self.base.lengthscale(q).powi(2);
            let count = Poisson::new(mean).map_err(|_| super::no_spectrum(self.name()))?;
            for j in 0..out.nrows() {
                let harmonic: f64 = count.sample(&mut *rng) - count.sample(&mut *rng);
                out[(j, d)] += 2.0 * harmonic * self.frequency(q);
            }
        }
        Ok(variance.scalar())
    }

    fn relevance(&self, relevance: &mut [f64]) {
        // nearby, sin(π(x − x′)/p)/ℓ is π(x − x′)/pℓ
        for (q, &d) in self.base.dims().iter().enumerate() {
            relevance[d] = relevance[d].max(self.frequency(q) / self.base.lengthscale(q));
        }
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        // the standard deviation of sin over a period
        self.base.initialise(&vec![0.5_f64.sqrt(); spreads.len()], variance);
        // half of the range of evenly spread values
        let own: Vec<f64> = self.base.dims().iter().map(|&d| 3.0_f64.sqrt() * spreads[d]).collect();
        let values = if self.period.len() == 1 {
            vec![(own.iter().map(|p| p.ln()).sum::<f64>() / own.len() as f64).exp()]
        } else {
            own
        };
        super::spec::initialise(&mut self.period, &values);
    }

    fn initialise_from_rows(&mut self, x: MatRef<f64>, y: MatRef<f64>) {
        let find = |d: &usize| super::periodogram::strongest_period(column(x, *d), y, HARMONICS);
        let found: Vec<Option<f64>> = self.base.dims().iter().map(find).collect();
        let values: Vec<f64> = if self.period.len() == found.len() {
            let starts = self.period.value().iter();
            starts.zip(&found).map(|(start, found)| found.unwrap_or(*start)).collect()
        } else {
            found.into_iter().flatten().take(1).collect()
        };
        if !values.is_empty() {
            super::spec::initialise(&mut self.period, &values);
        }
    }

    fn other_starts(&self, x: MatRef<f64>, y: MatRef<f64>) -> Vec<Box<dyn Kernel>> {
        let &[d] = self.base.dims() else { return Vec::new() };
        let own = self.period.value()[0];
        let mut all: Vec<Box<dyn Kernel>> = Vec::new();
        for period in super::periods::others(column(x, d), y, HARMONICS, own) {
            let mut other = self.clone();
            super::spec::initialise(&mut other.period, &[period]);
            all.push(Box::new(other));
        }
        // a wave with few harmonics; those with many are among the shorter lengthscales
        let mut smooth = self.clone();
        smooth.base.visit_mut(&mut |_, param| {
            if param.role() == Role::Lengthscales {
                super::spec::initialise(param, &[SMOOTH]);
            }
        });
        all.push(Box::new(smooth.clone()));
        // of two waves a common multiple of their periods explains both by its harmonics: the stronger wave by itself
        if let Some(period) = super::periodogram::strongest_period(column(x, d), y, 1) {
            super::spec::initialise(&mut smooth.period, &[period]);
            all.push(Box::new(smooth));
        }
        all
    }

    fn take_out(&self, x: MatRef<f64>, y: MatMut<f64>) {
        let mut harmonics = HARMONICS;
        self.base.visit(&mut |_, param| {
            if param.role() == Role::Lengthscales && param.value().iter().all(|l| *l >= SMOOTH) {
                harmonics = 1;
            }
        });
        if let &[d] = self.base.dims() {
            super::periods::take_out(column(x, d), y, self.period.value()[0], harmonics);
        }
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(self.name(), self.base.dims(), x)
    }

    fn state_space(&self) -> Result<Box<dyn StateSpace>> {
        let input = state_space::one_input(self.name(), self.base.dims())?;
        Ok(Box::new(state_space::periodic(input, &*self.base, self.period.value()[0])?))
    }

    fn to_json(&self) -> Value {
        let mut json = json!({ "type": ENTRY.name, "base": self.base.to_json() });
        json["period"] = self.period.to_json(Transform::POSITIVE);
        if self.form == Form::Gpflow {
            json["form"] = json!("gpflow");
        }
        json
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
