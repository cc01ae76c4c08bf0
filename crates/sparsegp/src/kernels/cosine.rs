//! Cosine: k = σ² cos(2π Σ_q (x_q − x′_q)/ℓ_q), waves along one direction (GPflow's convention: a sum of signed
//! differences, no distance).
//!
//! With the phase a(x) = 2π Σ_q x_q/ℓ_q it is σ² {cos a cos a′ + sin a sin a′}, of rank 2.

use super::registry::{Args, Entry, object};
use super::state_space::{self, StateSpace, Waves};
use super::{Cotangents, Kernel, Tape, Unit};
use crate::error::Result;
use crate::linalg::{Mat, MatMut, MatRef, column, column_mut};
use crate::params::{Param, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use serde_json::Value;
use std::f64::consts::TAU;

/// Registry entry.
pub const ENTRY: Entry = Entry {
    name: "cosine",
    aliases: &["cos"],
    about: "cosine, variance·cos(2π Σ (x − x′)/lengthscale): one wave of any phase",
    build,
};

/// The cosine kernel, with one wavelength or one for each active input.
#[derive(Clone, Debug)]
pub struct Cosine {
    variance: Param,
    lengthscales: Param,
    dims: Vec<usize>,
    dims_given: bool,
}

fn build(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    args.allow(&["variance", "lengthscales", "active_dims", "ard"])?;
    let (dims, dims_given) = args.active_dims()?;
    let ard = args.ard(true)?;
    let variance = args.positive("variance", None, false)?;
    let lengthscales = args.positive("lengthscales", Some(dims.len()), ard)?;
    Ok(Box::new(Cosine { variance, lengthscales, dims, dims_given }))
}

impl Cosine {
    fn slot(&self, q: usize) -> usize {
        if self.lengthscales.len() == 1 { 0 } else { q }
    }

    fn lengthscale(&self, q: usize) -> f64 {
        self.lengthscales.value()[self.slot(q)]
    }

    /// Returns the cosines and sines of the phases, B×2.
    fn waves(&self, x: MatRef<f64>, tape: &mut Tape) -> Mat<f64> {
        let mut waves = tape.buffer(x.nrows(), 2);
        waves.fill(0.0);
        for (q, &d) in self.dims.iter().enumerate() {
            let factor = TAU / self.lengthscale(q);
            for (phase, v) in waves.col_as_slice_mut(0).iter_mut().zip(column(x, d)) {
                *phase += factor * v;
            }
        }
        for i in 0..x.nrows() {
            let (sin, cos) = waves[(i, 0)].clamp(-f64::MAX, f64::MAX).sin_cos();
            (waves[(i, 0)], waves[(i, 1)]) = (cos, sin);
        }
        waves
    }

    /// Pulls cotangents of phases back to lengthscales and inputs: ∂a/∂x_q = 2π/ℓ_q, ∂a/∂ℓ_q = −2π
    /// x_q/ℓ_q².
    fn pull_phases(
        &self,
        x: MatRef<f64>,
        phases: &[f64],
        params: &mut [f64],
        sink: Option<&mut MatMut<'_, f64>>,
    ) {
        for (q, &d) in self.dims.iter().enumerate() {
            let factor = TAU / self.lengthscale(q);
            let along: f64 = phases.iter().zip(column(x, d)).map(|(a, v)| a * v).sum();
            params[1 + self.slot(q)] -= factor / self.lengthscale(q) * along;
        }
        let Some(sink) = sink else { return };
        for (q, &d) in self.dims.iter().enumerate() {
            let factor = TAU / self.lengthscale(q);
            for (t, a) in column_mut(sink.rb_mut(), d).iter_mut().zip(phases) {
                *t += factor * a;
            }
        }
    }
}

impl Kernel for Cosine {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.variance);
        visitor(&"lengthscales", &self.lengthscales);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.variance);
        visitor(&"lengthscales", &mut self.lengthscales);
    }

    fn evaluate(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        mut out: MatMut<f64>,
        tape: &mut Tape,
    ) {
        let (own, other) = (self.waves(x, tape), self.waves(z.unwrap_or(x), tape));
        let variance = self.variance.scalar();
        let (cos, sin) = (own.col_as_slice(0), own.col_as_slice(1));
        for j in 0..other.nrows() {
            let (c, s) = (other[(j, 0)], other[(j, 1)]);
            for ((o, ci), si) in column_mut(out.rb_mut(), j).iter_mut().zip(cos).zip(sin) {
                *o = variance * (ci * c + si * s);
            }
            if z.is_none() {
                out[(j, j)] = variance;
            }
        }
        [own, other].into_iter().for_each(|used| tape.recycle(used));
    }

    fn vjp(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        k: MatRef<f64>,
        k_bar: MatMut<f64>,
        tape: &mut Tape,
        sinks: &mut Cotangents<'_>,
    ) {
        let k_bar = k_bar.as_ref();
        let second = z.unwrap_or(x);
        let (own, other) = (self.waves(x, tape), self.waves(second, tape));
        let (cos, sin) = (own.col_as_slice(0), own.col_as_slice(1));
        let mut phases = [tape.buffer(x.nrows(), 1), tape.buffer(second.nrows(), 1)];
        let [first, last] = &mut phases;
        first.fill(0.0);
        let variance = self.variance.scalar();
        sinks.params[0] += crate::linalg::dot(k_bar, k) / variance;
        for j in 0..second.nrows() {
            let (c, s) = (other[(j, 0)], other[(j, 1)]);
            let mut sum = 0.0;
            let waves = cos.iter().zip(sin).zip(column(k_bar, j));
            for (a, ((ci, si), bar)) in first.col_as_slice_mut(0).iter_mut().zip(waves) {
                // ∂k/∂a = −σ² sin(a − a′) = −∂k/∂a′
                let slope = bar * variance * (ci * s - si * c);
                *a += slope;
                sum -= slope;
            }
            last[(j, 0)] = sum;
        }
        let [first, last] = &phases;
        self.pull_phases(x, first.col_as_slice(0), sinks.params, sinks.x.as_mut());
        let sink = if z.is_none() { sinks.x.as_mut() } else { sinks.z.as_mut() };
        self.pull_phases(second, last.col_as_slice(0), sinks.params, sink);
        phases.into_iter().chain([own, other]).for_each(|used| tape.recycle(used));
    }

    fn diag(&self, _: MatRef<f64>, out: &mut [f64]) {
        out.fill(self.variance.scalar());
    }

    fn diag_vjp(&self, _: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        sinks.params[0] += weights.iter().sum::<f64>();
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let own = self.lengthscales.len() == self.dims.len();
        let dims = self.dims.iter().map(|&d| own.then_some(Unit::input(d, 1)));
        std::iter::once(Some(Unit::VARIANCE)).chain(dims.take(self.lengthscales.len())).collect()
    }

    fn relevance(&self, relevance: &mut [f64]) {
        // near its top a wave is as flat as a squared exponential with ℓ/2π
        for (q, &d) in self.dims.iter().enumerate() {
            relevance[d] = relevance[d].max(TAU / self.lengthscale(q));
        }
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        // half of the range of evenly spread values, as for periods
        let own: Vec<f64> = self.dims.iter().map(|&d| 3.0_f64.sqrt() * spreads[d]).collect();
        let values = if self.lengthscales.len() == 1 {
            vec![(own.iter().map(|l| l.ln()).sum::<f64>() / own.len() as f64).exp()]
        } else {
            own
        };
        super::spec::initialise(&mut self.lengthscales, &values);
        super::spec::initialise(&mut self.variance, &[variance]);
    }

    fn other_starts(&self, x: MatRef<f64>, y: MatRef<f64>) -> Vec<Box<dyn Kernel>> {
        let [d] = self.dims[..] else { return Vec::new() };
        let periods = super::periods::others(column(x, d), y, 1, self.lengthscales.value()[0]);
        let of = |period: f64| -> Box<dyn Kernel> {
            let mut other = self.clone();
            super::spec::initialise(&mut other.lengthscales, &[period]);
            Box::new(other)
        };
        periods.into_iter().map(of).collect()
    }

    fn take_out(&self, x: MatRef<f64>, y: MatMut<f64>) {
        if let [d] = self.dims[..] {
            super::periods::take_out(column(x, d), y, self.lengthscales.value()[0], 1);
        }
    }

    fn initialise_from_rows(&mut self, x: MatRef<f64>, y: MatRef<f64>) {
        // with several columns the wave has a direction, which looks along columns do not find
        if let [d] = self.dims[..]
            && let Some(period) = super::periodogram::strongest_period(column(x, d), y, 1)
        {
            super::spec::initialise(&mut self.lengthscales, &[period]);
        }
    }

    /// Gives one frequency.
    fn spectral(&self, mut out: MatMut<f64>, _: &mut dyn rand::Rng) -> Result<f64> {
        for (q, &d) in self.dims.iter().enumerate() {
            let frequency = TAU / self.lengthscale(q);
            column_mut(out.rb_mut(), d).iter_mut().for_each(|w| *w += frequency);
        }
        Ok(self.variance.scalar())
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(self.name(), &self.dims, x)
    }

    fn state_space(&self) -> Result<Box<dyn StateSpace>> {
        let input = state_space::one_input(self.name(), &self.dims)?;
        Ok(Box::new(Waves::one(input, self.variance.scalar(), self.lengthscale(0))))
    }

    fn to_json(&self) -> Value {
        object(
            ENTRY.name,
            &[("variance", &self.variance), ("lengthscales", &self.lengthscales)],
            self.dims_given.then_some(&self.dims),
        )
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
