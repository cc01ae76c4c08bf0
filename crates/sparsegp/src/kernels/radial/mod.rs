//! Stationary kernels of the scaled distance: k(x, x′) = σ² κ(ϱ²), ϱ² = Σ_q (x_q − x′_q)²/ℓ_q².
//!
//! Everything is written in ϱ² and the slope κ′ = ∂κ/∂ϱ², so that ϱ itself is never differentiated.
//! A new kernel is a [`Profile`]; one with its own shape parameters is a [`Correlation`].

mod far;
mod loops;
mod profile;
mod stationary;

pub(super) use loops::FLOOR;
pub use profile::{Correlation, Profile};
pub use stationary::Stationary;

use super::registry::{Args, object};
use super::state_space::{self, Matern, SquaredExponential, StateSpace};
use super::{Cotangents, Form, Inputs, Kernel, Tape, Unit, no_spectrum};
use crate::error::Result;
use crate::linalg::exp::dispatch;
use crate::linalg::{Accum, Mat, MatMut, MatRef, Par, column, column_mut, gemm};
use crate::params::{Param, Visitor, VisitorMut};
use faer::reborrow::ReborrowMut;
use far::{Pairs, is_far};
use loops::{Column, Of, Values, Weighing, squared_norms};
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;

/// Rows whose median is the centre.
const CENTRE: usize = 31;

/// With at most this many active inputs, distances are sums of squared differences; with more, the
/// product ‖x‖² − 2xᵀz + ‖z‖² by GEMM is faster.
const DIRECT_DIMS: usize = 4;

/// Squared norms of scaled inputs above which differences are taken in any case, on the way back too: the product form is wrong by
/// some ε‖x‖², and with more than 10⁻⁷ of that near points lose the positive definiteness that jitter gives.
/// (Lengthscales far below every distance, which an optimiser may try, come here.)
const FAR: f64 = 1e8;

/// A stationary kernel with variance and one lengthscale, or one per active input, and the shape
/// parameters of its κ.
#[derive(Clone, Debug)]
pub struct Radial<C: Correlation> {
    variance: Param,
    lengthscales: Param,
    shapes: Vec<(&'static str, Param)>,
    dims: Vec<usize>,
    dims_given: bool,
    correlation: C,
}

/// Builds a radial kernel from its JSON entries.
///
/// # Errors
/// As for [`super::build`].
pub fn build<C: Correlation + Default>(args: Args<'_>) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Radial::read(C::default(), &args)?))
}

impl<C: Correlation> Radial<C> {
    /// Creates a kernel of all inputs with a lengthscale for each, which starts with ones.
    ///
    /// # Errors
    /// None that inputs can cause.
    pub fn new(correlation: C, inputs: Inputs<'_>) -> Result<Self> {
        let name = correlation.name();
        Self::read(correlation, &Args::new(name, &serde_json::Map::new(), inputs))
    }

    /// Reads what [`Kernel::to_json`] writes. κ itself is code and comes with `correlation`.
    ///
    /// # Errors
    /// As for [`super::build`].
    pub fn read(correlation: C, args: &Args<'_>) -> Result<Self> {
        let mut shapes = correlation.shapes();
        let own = ["variance", "lengthscales", "active_dims", "ard"];
        let known: Vec<&str> = own.into_iter().chain(shapes.iter().map(|s| s.0)).collect();
        args.allow(&known)?;
        let (dims, dims_given) = args.active_dims()?;
        let ard = args.ard(true)?;
        for (name, param) in &mut shapes {
            args.read(name, param)?;
        }
        Ok(Self {
            variance: args.positive("variance", None, false)?,
            lengthscales: args.positive("lengthscales", Some(dims.len()), ard)?,
            shapes,
            dims,
            dims_given,
            correlation,
        })
    }

    fn inverse_lengthscale(&self, q: usize) -> f64 {
        let values = self.lengthscales.value();
        1.0 / if values.len() == 1 { values[0] } else { values[q] }
    }

    /// Returns where most rows are, about: distances are computed from there, which keeps the
    /// product form accurate when the data lie far from the origin. The median of a few rows,
    /// because a mean follows one absurd value, and all others would then lose their digits.
    fn centre(&self, x: MatRef<f64>, q: usize) -> f64 {
        let (all, mut few) = (column(x, self.dims[q]), [0.0; CENTRE]);
        let count = CENTRE.min(all.len());
        for (i, value) in few[..count].iter_mut().enumerate() {
            // spread evenly: rows may be sorted
            *value = all[(2 * i + 1) * all.len() / (2 * count)];
        }
        few[..count].sort_unstable_by(f64::total_cmp);
        few[..count].get(count / 2).copied().filter(|v| v.is_finite()).unwrap_or(0.0)
    }

    /// Returns the active columns, less the centre of `around` and divided by their lengthscales.
    fn scaled(&self, x: MatRef<f64>, around: MatRef<f64>, tape: &mut Tape) -> Mat<f64> {
        let mut scaled = tape.buffer(x.nrows(), self.dims.len());
        for (q, &d) in self.dims.iter().enumerate() {
            let (centre, factor) = (self.centre(around, q), self.inverse_lengthscale(q));
            for (s, v) in column_mut(scaled.as_mut(), q).iter_mut().zip(column(x, d)) {
                // what overflows is as far as there are numbers, and no difference of infinities
                *s = ((v - centre) * factor).clamp(-f64::MAX, f64::MAX);
            }
        }
        scaled
    }

    /// Returns both arguments of a covariance, scaled.
    fn both(&self, x: MatRef<f64>, z: Option<MatRef<f64>>, tape: &mut Tape) -> [Mat<f64>; 2] {
        let around = z.unwrap_or(x);
        [self.scaled(x, around, tape), self.scaled(around, around, tape)]
    }

    fn direct(&self) -> bool {
        C::EXACT_DISTANCES || self.dims.len() <= DIRECT_DIMS
    }

    /// Returns κ at the present shape.
    fn correlation(&self) -> C {
        self.correlation.at(&self.shapes)
    }

    /// Returns where a pull-back's needs go, if there will be one: slopes in ϱ² (B×M), and in the
    /// shape parameters (B×MS, those of a column side by side).
    fn records(&self, rows: usize, cols: usize, tape: &mut Tape) -> [Option<Mat<f64>>; 2] {
        let recording = tape.is_recording();
        let slopes = recording && C::SLOPE_OVER_VALUE.is_none();
        let shapes = recording && !self.shapes.is_empty();
        [
            slopes.then(|| tape.buffer(rows, cols)),
            shapes.then(|| tape.buffer(rows, cols * self.shapes.len())),
        ]
    }

    /// Returns the loop over one column of squared distances.
    fn values<'a>(&self, correlation: &C, out: &'a mut [f64], records: Of<'a>) -> Values<'a, C> {
        let Of { slopes, shapes } = records;
        let (variance, correlation) = (self.variance.scalar(), correlation.clone());
        Values { out, slopes, shapes, variance, correlation }
    }

    /// Goes from the cotangent of k to H, that of ϱ², in place; its row and column sums; slopes in
    /// variance and shape. Threads share chunks of so many columns.
    fn pull_values(
        &self,
        k: MatRef<f64>,
        k_bar: MatMut<f64>,
        tape: &mut Tape,
        params: &mut [f64],
        [row_sums, column_sums]: [&mut [f64]; 2],
        chunk: usize,
    ) {
        if !self.shapes.is_empty() {
            let shapes = tape.pop();
            for j in 0..k.ncols() {
                let bars = column(k_bar.as_ref(), j);
                for s in 0..self.shapes.len() {
                    let slopes = shapes.col_as_slice(j * self.shapes.len() + s);
                    let sum: f64 = bars.iter().zip(slopes).map(|(b, s)| b * s).sum();
                    params[1 + self.lengthscales.len() + s] += sum;
                }
            }
            tape.recycle(shapes);
        }
        let slopes = C::SLOPE_OVER_VALUE.is_none().then(|| tape.pop());
        let mut sums = tape.buffer(k.nrows(), k.ncols().div_ceil(chunk));
        let all = Weighing {
            k,
            k_bar,
            slopes: slopes.as_ref().map(|slopes| slopes.as_ref()),
            factor: C::SLOPE_OVER_VALUE.unwrap_or(1.0),
            row_sums: sums.as_mut(),
            column_sums,
        };
        let weighted = all.run(chunk);
        row_sums.fill(0.0);
        for j in 0..sums.ncols() {
            row_sums.iter_mut().zip(sums.col_as_slice(j)).for_each(|(sum, own)| *sum += own);
        }
        tape.recycle(sums);
        if let Some(slopes) = slopes {
            tape.recycle(slopes);
        }
        params[0] += weighted / self.variance.scalar();
    }
}

/// Returns the number of columns that one thread works on. A block of rows is one thread's work, a
/// large K(X) that of all.
fn chunk(z: Option<MatRef<f64>>, columns: usize) -> usize {
    const CHUNK: usize = 256;
    if z.is_none() { CHUNK } else { columns.max(1) }
}

impl<C: Correlation> Kernel for Radial<C> {
    fn name(&self) -> &'static str {
        self.correlation.name()
    }

    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        visitor(&"variance", &self.variance);
        visitor(&"lengthscales", &self.lengthscales);
        self.shapes.iter().for_each(|(name, shape)| visitor(name, shape));
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        visitor(&"variance", &mut self.variance);
        visitor(&"lengthscales", &mut self.lengthscales);
        self.shapes.iter_mut().for_each(|(name, shape)| visitor(name, shape));
    }

    fn evaluate(
        &self,
        x: MatRef<f64>,
        z: Option<MatRef<f64>>,
        mut out: MatMut<f64>,
        tape: &mut Tape,
    ) {
        let [xs, zs] = self.both(x, z, tape);
        let (mut x_norms, mut z_norms) = (tape.buffer(x.nrows(), 1), tape.buffer(zs.nrows(), 1));
        let mut direct = self.direct();
        if !direct {
            squared_norms(xs.as_ref(), x_norms.col_as_slice_mut(0));
            squared_norms(zs.as_ref(), z_norms.col_as_slice_mut(0));
            let norms = x_norms.col_as_slice(0).iter().chain(z_norms.col_as_slice(0));
            direct = norms.fold(0.0_f64, |largest, norm| largest.max(*norm)) > FAR;
        }
        if !direct {
            // one block of rows is one thread's work; a large K(X) uses them all
            let par = if z.is_none() { crate::linalg::par_for(x.nrows()) } else { Par::Seq };
            gemm(out.rb_mut(), Accum::Replace, xs.as_ref(), zs.transpose(), -2.0, par);
        }
        let (variance, correlation) = (self.variance.scalar(), self.correlation());
        let mut records = self.records(x.nrows(), zs.nrows(), tape);
        let of_column = |j: usize, out: &mut [f64], mut records: Of<'_>| {
            dispatch(Column {
                values: self.values(&correlation, &mut *out, records.rb_mut()),
                x: xs.as_ref(),
                z: zs.as_ref(),
                j,
                x_norms: x_norms.col_as_slice(0),
                z_norm: z_norms[(j, 0)],
                direct,
            });
            if z.is_none() {
                // the product form leaves rounding here, which the slope of a kink would magnify
                let (value, slope) = correlation.value_and_slope::<false>(0.0);
                out[j] = variance * value;
                if let Some(slopes) = records.slopes {
                    slopes[j] = variance * slope;
                }
                if let Some(mut shapes) = records.shapes {
                    for s in 0..shapes.ncols() {
                        let slope = correlation.shape_slope::<false>(s, 0.0);
                        shapes[(j, s)] = variance * slope;
                    }
                }
            }
        };
        let [slopes, shapes] = &mut records;
        let records_of_all = [slopes, shapes].map(|record| record.as_mut().map(|r| r.as_mut()));
        loops::fill_columns(out, records_of_all, 0, chunk(z, zs.nrows()), &of_column);
        records.into_iter().flatten().for_each(|used| tape.push(used));
        [xs, zs, x_norms, z_norms].into_iter().for_each(|used| tape.recycle(used));
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
        let [xs, zs] = self.both(x, z, tape);
        // H = K̄ ∘ σ²κ′, in place; Σ K̄∘K; row and column sums of H
        let (mut row_sums, mut column_sums) =
            (tape.buffer(x.nrows(), 1), tape.buffer(zs.nrows(), 1));
        let sums = [row_sums.col_as_slice_mut(0), column_sums.col_as_slice_mut(0)];
        let chunk = chunk(z, zs.nrows());
        self.pull_values(k, k_bar.rb_mut(), tape, sinks.params, sums, chunk);

        let h = k_bar.as_ref();
        let far = is_far(xs.as_ref()) || is_far(zs.as_ref());
        if far || C::EXACT_DISTANCES {
            let mut memory = [tape.buffer(x.nrows(), 1), tape.buffer(x.nrows(), 1)];
            let rows = Pairs { x: xs.as_ref(), z: zs.as_ref(), same: z.is_none(), far };
            self.pull_differences(rows, [h, k], sinks, &mut memory);
            memory.into_iter().for_each(|used| tape.recycle(used));
            [xs, zs, row_sums, column_sums].into_iter().for_each(|used| tape.recycle(used));
            return;
        }
        let d = self.dims.len();
        // X̃ᵀH (d×M): Σᵢ x̃ᵢ hᵢⱼ, enough for lengthscales and z. Not HᵀX̃, for which the product would transpose all of H
        let par = if z.is_none() { crate::linalg::par_for(x.nrows()) } else { Par::Seq };
        let mut xth = tape.buffer(d, zs.nrows());
        gemm(xth.as_mut(), Accum::Replace, xs.transpose(), h, 1.0, par);
        let (by_row, by_column) = (row_sums.col_as_slice(0), column_sums.col_as_slice(0));
        for q in 0..d {
            // Σ h (x̃ − z̃)² = Σ x̃² row sum + Σ z̃² column sum − 2 Σ z̃ (HᵀX̃)
            let mut total = 0.0;
            for (v, s) in column(xs.as_ref(), q).iter().zip(by_row) {
                total += v * v * s;
            }
            for (j, (v, s)) in column(zs.as_ref(), q).iter().zip(by_column).enumerate() {
                total += v * v * s - 2.0 * v * xth[(q, j)];
            }
            // ∂ϱ²/∂ℓ = −2 (x̃ − z̃)²/ℓ
            let slot = 1 + q.min(self.lengthscales.len() - 1);
            sinks.params[slot] -= 2.0 * self.inverse_lengthscale(q) * total;
        }
        // ∂ϱ²/∂z = 2 (z̃ − x̃)/ℓ, ∂ϱ²/∂x = 2 (x̃ − z̃)/ℓ
        let to_z = |sink: &mut MatMut<'_, f64>| {
            for q in 0..d {
                let factor = 2.0 * self.inverse_lengthscale(q);
                let target = column_mut(sink.rb_mut(), self.dims[q]);
                let zq = column(zs.as_ref(), q);
                for (j, ((t, v), s)) in target.iter_mut().zip(zq).zip(by_column).enumerate() {
                    *t += factor * (v * s - xth[(q, j)]);
                }
            }
        };
        if z.is_none() {
            if let Some(sink) = &mut sinks.x {
                to_z(sink);
            }
        } else if let Some(sink) = &mut sinks.z {
            to_z(sink);
        }
        if let Some(sink) = &mut sinks.x {
            let mut hz = tape.buffer(x.nrows(), d);
            gemm(hz.as_mut(), Accum::Replace, h, zs.as_ref(), 1.0, par);
            for q in 0..d {
                let factor = 2.0 * self.inverse_lengthscale(q);
                let target = column_mut(sink.rb_mut(), self.dims[q]);
                let xq = column(xs.as_ref(), q);
                let cross = column(hz.as_ref(), q);
                for (((t, v), s), c) in target.iter_mut().zip(xq).zip(by_row).zip(cross) {
                    *t += factor * (v * s - c);
                }
            }
            tape.recycle(hz);
        }
        [xs, zs, row_sums, column_sums, xth].into_iter().for_each(|used| tape.recycle(used));
    }

    fn diag(&self, _: MatRef<f64>, out: &mut [f64]) {
        out.fill(self.variance.scalar() * self.correlation().value_and_slope::<false>(0.0).0);
    }

    fn diag_vjp(&self, _: MatRef<f64>, weights: &[f64], sinks: &mut Cotangents<'_>) {
        sinks.params[0] +=
            weights.iter().sum::<f64>() * self.correlation().value_and_slope::<false>(0.0).0;
    }

    fn units(&self) -> Vec<Option<Unit>> {
        let mut units = vec![Some(Unit::VARIANCE)];
        if self.lengthscales.len() == self.dims.len() {
            let lengths = self.dims.iter().map(|&d| Some(Unit::input(d, 1)));
            units.extend(lengths);
        } else {
            units.push(None);
        }
        units.extend(self.shapes.iter().map(|_| Some(Unit::NONE)));
        units
    }

    fn relevance(&self, relevance: &mut [f64]) {
        for (q, &d) in self.dims.iter().enumerate() {
            relevance[d] = relevance[d].max(self.inverse_lengthscale(q));
        }
    }

    fn initialise(&mut self, spreads: &[f64], variance: f64) {
        // with ℓ = √d standard deviations two random rows have ϱ² near 2, whatever d is
        let factor = (self.dims.len() as f64).sqrt();
        let own: Vec<f64> = self.dims.iter().map(|&d| factor * spreads[d]).collect();
        let values = if self.lengthscales.len() == 1 {
            // one for all: the geometric mean
            vec![(own.iter().map(|l| l.ln()).sum::<f64>() / own.len() as f64).exp()]
        } else {
            own
        };
        super::spec::initialise(&mut self.lengthscales, &values);
        super::spec::initialise(&mut self.variance, &[variance]);
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        super::check_columns(self.name(), &self.dims, x)
    }

    fn to_json(&self) -> Value {
        let mut json = object(
            self.name(),
            &[("variance", &self.variance), ("lengthscales", &self.lengthscales)],
            self.dims_given.then_some(&self.dims),
        );
        for ((name, shape), (_, start)) in self.shapes.iter().zip(self.correlation.shapes()) {
            json[*name] = shape.to_json(start.transform());
        }
        json
    }

    fn spectral(&self, mut out: MatMut<f64>, rng: &mut dyn rand::Rng) -> Result<f64> {
        let correlation = self.correlation();
        for j in 0..out.nrows() {
            let scale = correlation.frequency_scale(&mut *rng);
            let scale = scale.ok_or_else(|| no_spectrum(self.name()))?;
            for (q, &d) in self.dims.iter().enumerate() {
                let z: f64 = StandardNormal.sample(&mut *rng);
                out[(j, d)] += scale * z * self.inverse_lengthscale(q);
            }
        }
        Ok(self.variance.scalar())
    }

    fn state_space(&self) -> Result<Box<dyn StateSpace>> {
        if C::STATES.is_none() && !C::IS_SQUARED_EXPONENTIAL {
            return Err(state_space::none(self.name()));
        }
        let input = state_space::one_input(self.name(), &self.dims)?;
        let (variance, lengthscale) = (self.variance.scalar(), self.lengthscales.value()[0]);
        let Some((size, rate)) = C::STATES else {
            return Ok(Box::new(SquaredExponential { input, variance, lengthscale }));
        };
        Ok(Box::new(Matern { input, size, rate, variance, lengthscale }))
    }

    fn form(&self) -> Option<Form<'_>> {
        C::IS_SQUARED_EXPONENTIAL.then_some(Form::SquaredExponential {
            variance: &self.variance,
            lengthscales: &self.lengthscales,
            dims: &self.dims,
        })
    }

    fn into_stationary(self: Box<Self>) -> Option<Box<dyn Stationary>> {
        Some(self)
    }

    fn clone_box(&self) -> Box<dyn Kernel> {
        Box::new(self.clone())
    }
}
