//! Inputs that were measured with errors: a sparse Gaussian process with Gaussian noise whose inputs are known up to a
//! standard deviation (Damianou, Titsias & Lawrence 2016, §4.1; Titsias 2025, §B.5).
//!
//! A measured input tᵢ with standard deviation eᵢ says p(xᵢ) = N(tᵢ, eᵢ²) before the target is seen. The best Gaussian
//! q(xᵢ) = N(tᵢ + eᵢaᵢ, eᵢ²rᵢ) is found with everything else, by the bound F − KL with
//!
//! ```text
//! KL(q(X) ‖ p(X)) = ½ Σ (a² + r − log r − 1)
//! ```
//!
//! over the cells that are not known exactly: in the units of their errors it is that of the GP-LVM.

use super::bound::{Bound, Setting};
use super::model::{Trainable, owned};
use super::targets::Targets;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::linalg::{Jitter, Mat, MatRef};
use crate::params::{Param, Shape, Transform, Visitor, VisitorMut, prefixed, prefixed_mut};
use crate::psi::Uncertain;
use crate::terms::Term;

/// A regression on noisy inputs: kernel, noise, inducing points and q(X), all of them parameters.
#[derive(Clone)]
pub struct NoisyInputs {
    /// The kernel of all target columns.
    pub kernel: Box<dyn Kernel>,
    /// σ².
    pub noise: Param,
    /// Inducing points, M×D.
    pub points: Param,
    /// a: how far the mean of q(xᵢ) is from what was measured, in standard deviations, of every uncertain cell.
    pub shift: Param,
    /// r: variance of q(xᵢ), as a part of that of the measurement, of every uncertain cell.
    pub ratio: Param,
    /// What tells the bound from the others.
    pub term: &'static dyn Term,
    /// Jitter of Kuu.
    pub jitter: Jitter,
    measured: Mat<f64>,
    deviations: Mat<f64>,
    /// Rows and columns of the uncertain cells, column by column.
    cells: Vec<(usize, usize)>,
}

impl std::fmt::Debug for NoisyInputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kernel, noise, term, cells, .. } = self;
        let (noise, cells, term) = (noise.scalar(), cells.len(), term.name());
        write!(f, "NoisyInputs({kernel:?}, σ² = {noise}, {cells} uncertain cells, {term})")
    }
}

impl NoisyInputs {
    /// Makes it of what was measured and the standard deviations of its errors (N×D each, 0 where a cell is known exactly).
    /// q(X) starts at the measurements, p(X).
    ///
    /// # Errors
    /// [`Error::Shape`] if they are not alike; [`Error::NonFinite`] and [`Error::Invalid`] for numbers that are none, or
    /// deviations below 0.
    pub fn new(
        kernel: Box<dyn Kernel>,
        (noise, points): (Param, Param),
        measured: MatRef<'_, f64>,
        deviations: MatRef<'_, f64>,
        term: &'static dyn Term,
        jitter: Jitter,
    ) -> Result<Self> {
        // the same conditions as for variances
        Uncertain::new(measured, deviations)?;
        let (n, d) = (measured.nrows(), measured.ncols());
        let all = (0..d).flat_map(|q| (0..n).map(move |i| (i, q)));
        let cells: Vec<_> = all.filter(|(i, q)| deviations[(*i, *q)] > 0.0).collect();
        let of = |value: f64, transform: Transform| {
            Param::with(vec![value; cells.len()], Shape::Vector(cells.len()), transform)
        };
        Ok(Self {
            kernel,
            noise,
            points,
            shift: of(0.0, Transform::Identity),
            ratio: of(1.0, Transform::Exp { lower: 0.0 }),
            term,
            jitter,
            measured: owned(measured),
            deviations: owned(deviations),
            cells,
        })
    }

    /// Returns how many cells are not known exactly.
    pub fn uncertain(&self) -> usize {
        self.cells.len()
    }

    /// Returns q(X): means and variances, N×D each; the variance of a cell that is known exactly
    /// is 0.
    pub fn inputs(&self) -> (Mat<f64>, Mat<f64>) {
        let mut mean = self.measured.clone();
        let mut variance = Mat::zeros(mean.nrows(), mean.ncols());
        let both = self.shift.value().iter().zip(self.ratio.value());
        for (&(i, q), (shift, ratio)) in self.cells.iter().zip(both) {
            let own = self.deviations[(i, q)];
            mean[(i, q)] += own * shift;
            variance[(i, q)] = own * own * ratio;
        }
        (mean, variance)
    }

    /// Returns KL(q(X) ‖ p(X)).
    pub fn divergence(&self) -> f64 {
        let both = self.shift.value().iter().zip(self.ratio.value());
        both.map(|(a, r)| 0.5 * (a * a + r - r.ln() - 1.0)).sum()
    }

    /// Calls `work` with the bound of the data part, after its first pass.
    ///
    /// # Errors
    /// As for [`Bound::new`]; those of `work`.
    pub fn with_bound<T>(
        &self,
        targets: &Targets,
        work: impl FnOnce(&Bound<'_>) -> Result<T>,
    ) -> Result<T> {
        let (mean, variance) = self.inputs();
        let setting = Setting {
            kernel: &*self.kernel,
            points: self.points.matrix(),
            noise: self.noise.scalar(),
            term: self.term,
            jitter: self.jitter,
            block: None,
        };
        let x = Uncertain::new(mean.as_ref(), variance.as_ref())?;
        work(&Bound::new(setting, x, targets)?)
    }
}

impl Trainable for NoisyInputs {
    fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        prefixed(&"kernel", visitor, |v| self.kernel.visit(v));
        visitor(&"likelihood.variance", &self.noise);
        visitor(&"inducing.points", &self.points);
        visitor(&"latent.shift", &self.shift);
        visitor(&"latent.ratio", &self.ratio);
    }

    fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        prefixed_mut(&"kernel", visitor, |v| self.kernel.visit_mut(v));
        visitor(&"likelihood.variance", &mut self.noise);
        visitor(&"inducing.points", &mut self.points);
        visitor(&"latent.shift", &mut self.shift);
        visitor(&"latent.ratio", &mut self.ratio);
    }

    fn evaluate(&self, targets: &Targets) -> Result<(f64, Vec<f64>)> {
        let (data, slopes) = self.with_bound(targets, |b| Ok((b.data(), b.data_gradient()?)))?;
        let mut all = slopes.kernel;
        all.push(slopes.noise);
        let points = slopes.points.as_ref();
        (0..points.ncols()).for_each(|j| all.extend_from_slice(slopes.points.col_as_slice(j)));
        let by_shift = self.cells.iter().zip(self.shift.value());
        all.extend(by_shift.map(|(&cell, a)| self.deviations[cell] * slopes.mean[cell] - a));
        let by_ratio = self.cells.iter().zip(self.ratio.value());
        all.extend(by_ratio.map(|(&cell, r)| {
            self.deviations[cell].powi(2) * slopes.variance[cell] - 0.5 * (1.0 - 1.0 / r)
        }));
        let value = data - self.divergence();
        if value.is_finite() {
            return Ok((value, all));
        }
        Err(Error::NonFinite { what: "the bound".into(), value })
    }

    fn value(&self, targets: &Targets) -> Result<f64> {
        Ok(self.with_bound(targets, |bound| Ok(bound.data()))? - self.divergence())
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Training;
    use super::*;
    use crate::kernels::{Inputs, parse};
    use crate::optim::Objective;
    use crate::terms::{Titsias2009, Titsias2025};

    fn model(term: &'static dyn Term) -> (NoisyInputs, Targets) {
        let n = 17;
        let t = Mat::from_fn(n, 2, |i, q| ((3 * i + 5 * q) as f64 * 0.37).sin() * 1.7);
        let sd = Mat::from_fn(n, 2, |i, q| match (i % 4, q) {
            (0, _) => 0.0,
            (_, 0) => 0.2 + 0.02 * i as f64,
            _ => 0.4,
        });
        let y = Mat::from_fn(n, 2, |i, p| (t[(i, 0)] + p as f64).sin() + 0.3 * t[(i, 1)]);
        let kernel = parse("rbf(variance=1.3, lengthscales=[0.8, 1.7])", Inputs::unnamed(2));
        let points = Mat::from_fn(5, 2, |i, q| 0.6 * i as f64 - 1.2 + 0.3 * q as f64);
        let noise = Param::positive(0.07);
        let points = Param::of_matrix(points.as_ref(), Transform::Identity);
        let of = (noise, points);
        let jitter = Jitter::Absolute(1e-8);
        let own = NoisyInputs::new(kernel.expect("one"), of, t.as_ref(), sd.as_ref(), term, jitter);
        let mut own = own.expect("a model");
        let count = own.uncertain();
        assert_eq!(count, 24);
        own.shift
            .set("shift", &(0..count).map(|i| (i as f64).cos()).collect::<Vec<_>>())
            .expect("");
        let ratio: Vec<f64> = (0..count).map(|i| 0.3 + 0.1 * (i % 9) as f64).collect();
        own.ratio.set("ratio", &ratio).expect("");
        (own, Targets::new(y.as_ref()).expect("targets"))
    }

    #[test]
    fn slopes_are_those_of_the_value() {
        for term in [&Titsias2009 as &'static dyn Term, &Titsias2025] {
            let (model, targets) = model(term);
            let start = crate::params::free_values(|v| model.visit(v));
            let mut training = Training { model, targets: &targets };
            let mut slopes = vec![0.0; start.len()];
            training.evaluate(&start, &mut slopes).expect("a value");
            let mut none = vec![0.0; start.len()];
            for (i, slope) in slopes.iter().enumerate() {
                let mut at = |step: f64| {
                    let mut moved = start.clone();
                    moved[i] += step;
                    training.evaluate(&moved, &mut none).expect("a value")
                };
                let h = 1e-5;
                let found = (8.0 * (at(h) - at(-h)) - at(2.0 * h) + at(-2.0 * h)) / (12.0 * h);
                assert!((found - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{i}: {found} {slope}");
            }
        }
    }

    #[test]
    fn the_divergence_is_that_of_two_gaussians() {
        let (model, _) = model(&Titsias2025);
        let (mean, variance) = model.inputs();
        let mut all = 0.0;
        for (cell, sd) in model.cells.iter().map(|cell| (*cell, model.deviations[*cell])) {
            let (m, s) = (mean[cell] - model.measured[cell], variance[cell]);
            all += 0.5 * ((s + m * m) / (sd * sd) - 1.0 - (s / (sd * sd)).ln());
        }
        assert!((model.divergence() - all).abs() < 1e-12 * all);
        // the new bound is above the old one, at the same parameters
        let (old, targets) = self::model(&Titsias2009);
        let (old, new) = (old.value(&targets).expect("old"), model.value(&targets).expect("new"));
        assert!(new > old + 1e-3, "{new} {old}");
    }
}
