//! Against exact inference by Cholesky factors.

use super::{Places, Rows, Smoothed, evidence, log_evidence, order};
use crate::kernels::{Cotangents, Inputs, Kernel, Tape, covariances, parse};
use crate::linalg::{Cholesky, Jitter, Mat, column};
use std::f64::consts::TAU;

pub(super) const SPECS: &[&str] = &[
    "matern12(variance=1.7, lengthscales=0.6)",
    "matern32(variance=0.4, lengthscales=2.3)",
    "matern52(variance=2.6, lengthscales=0.9)",
    "exponential(variance=0.7, lengthscales=1.3)",
    "cosine(variance=1.2, lengthscales=1.9)",
    "periodic(base=rbf(variance=1.4, lengthscales=0.8), period=1.7)",
    "matern52(variance=1.3, lengthscales=0.7) + matern12(variance=0.4, lengthscales=3.1) + constant(variance=2.1)",
    "matern32(variance=1.3, lengthscales=4.0) * cosine(variance=0.6, lengthscales=1.1) + white(variance=0.3)",
    "matern52(variance=0.8, lengthscales=5.0) * periodic(base=rbf(variance=1.1, lengthscales=0.9), period=1.3) + linear(variance=0.2)",
    "matern12(variance=1.3, lengthscales=1.9) * matern32(variance=0.7, lengthscales=2.2) * linear(variance=0.5)",
    "matern32(variance=0.9, lengthscales=1.3, active_dims=[0]) * coregion(W=[[0.8, 0.1], [-0.5, 0.6], [0.3, -0.9]], kappa=[0.3, 0.5, 0.2], active_dims=[1])",
    "matern52(variance=0.7, lengthscales=0.8, active_dims=[0]) * coregion(W=[0.8, -0.5, 0.3], kappa=[0.3, 0.5, 0.2], active_dims=[1]) + coregion(W=[0.4, 0.9, 1.3], kappa=[0.6, 0.1, 0.4], active_dims=[1]) * (matern12(variance=0.6, lengthscales=3.0, active_dims=[0]) + white(variance=0.2)) + linear(variance=0.2, active_dims=[0])",
];

/// Places with steps of all sizes, some of them 0, and `near`.
pub(super) fn places(n: usize, unit: f64, near: f64) -> Vec<f64> {
    let step = |i: usize| match i % 7 {
        3 => 0.0,
        5 => near,
        r => 0.05 + 0.13 * r as f64 * (0.7 * i as f64).sin().abs(),
    };
    let mut at = -1.3;
    (0..n)
        .map(|i| {
            at += step(i);
            unit * at
        })
        .collect()
}

/// Rows of inputs: times, and labels in disorder where a kernel reads some.
pub(super) fn inputs(spec: &str, t: &[f64]) -> Mat<f64> {
    let labels = usize::from(spec.contains("coregion"));
    let label = |i: usize| ((i * i + i / 4) % 3) as f64;
    Mat::from_fn(t.len(), 1 + labels, |i, q| if q == 0 { t[i] } else { label(i) })
}

pub(super) struct Problem {
    pub(super) kernel: Box<dyn Kernel>,
    /// Times, and labels where a kernel reads some.
    pub(super) x: Mat<f64>,
    pub(super) y: Mat<f64>,
    pub(super) noise: Vec<f64>,
}

impl Problem {
    pub(super) fn new(spec: &str, n: usize, columns: usize) -> Self {
        Self::at(places(n, 1.0, 1e-6), spec, columns)
    }

    pub(super) fn at(t: Vec<f64>, spec: &str, columns: usize) -> Self {
        let (n, x) = (t.len(), inputs(spec, &t));
        let wave =
            |i: usize, p: usize| (1.9 * t[i] + p as f64).sin() + 0.3 * (7.0 * i as f64).cos();
        Self {
            kernel: parse(spec, Inputs::unnamed(x.ncols())).unwrap(),
            y: Mat::from_fn(n, columns, wave),
            noise: (0..n).map(|i| 0.02 + 0.1 * (i % 3) as f64).collect(),
            x,
        }
    }

    pub(super) fn t(&self) -> &[f64] {
        column(self.x.as_ref(), 0)
    }

    pub(super) fn places(&self) -> Places<'_> {
        Places::new(self.x.as_ref(), 0)
    }

    pub(super) fn rows(&self) -> Rows<'_> {
        Rows { places: self.places(), y: self.y.as_ref(), noise: &self.noise, start: None }
    }

    fn factor(&self) -> Cholesky {
        let mut k = covariances(&*self.kernel, self.x.as_ref(), None);
        self.noise.iter().enumerate().for_each(|(i, s)| k[(i, i)] += s);
        Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "G").unwrap()
    }

    /// Value, gradient, α and the diagonal of G⁻¹.
    fn exact(&self) -> (f64, Vec<f64>, Mat<f64>, Vec<f64>) {
        let (n, p) = (self.x.nrows(), self.y.ncols());
        let factor = self.factor();
        let alpha = factor.solve(self.y.as_ref());
        let inverse = factor.solve(Mat::<f64>::identity(n, n).as_ref());
        let quadratic: f64 =
            (0..p).flat_map(|q| (0..n).map(move |i| (i, q))).map(|at| self.y[at] * alpha[at]).sum();
        let value = -0.5 * (p as f64 * (n as f64 * TAU.ln() + factor.log_det()) + quadratic);
        let mut k_bar = Mat::from_fn(n, n, |i, j| {
            let squares: f64 = (0..p).map(|q| alpha[(i, q)] * alpha[(j, q)]).sum();
            0.5 * (squares - p as f64 * inverse[(i, j)])
        });
        let (x, mut tape) = (&self.x, Tape::recording());
        let mut k = Mat::zeros(n, n);
        self.kernel.evaluate(x.as_ref(), None, k.as_mut(), &mut tape);
        let mut params = vec![0.0; self.kernel.num_params()];
        let mut sinks = Cotangents { params: &mut params, x: None, z: None };
        self.kernel.vjp(x.as_ref(), None, k.as_ref(), k_bar.as_mut(), &mut tape, &mut sinks);
        (value, params, alpha, (0..n).map(|i| inverse[(i, i)]).collect())
    }

    /// Means and covariance of f at places.
    fn predicted(&self, places: &Mat<f64>) -> (Mat<f64>, Mat<f64>) {
        let k = covariances(&*self.kernel, places.as_ref(), Some(self.x.as_ref()));
        let factor = self.factor();
        let mean = &k * factor.solve(self.y.as_ref());
        let own = covariances(&*self.kernel, places.as_ref(), None);
        let covariance = own - &k * factor.solve(k.transpose());
        (mean, covariance)
    }
}

pub(super) fn close(found: f64, right: f64, scale: f64, what: &str) {
    assert!((found - right).abs() <= 1e-9 * (scale + right.abs()), "{what}: {found} and {right}");
}

#[test]
fn evidence_and_gradient_are_those_of_exact_inference() {
    for (spec, columns) in SPECS.iter().flat_map(|spec| [(spec, 1), (spec, 2)]) {
        // nearer rows cost the pull-backs of kernels with a kink their digits
        let problem = Problem::at(places(300, 1.0, 0.02), spec, columns);
        let space = problem.kernel.state_space().unwrap();
        let found =
            evidence(&*space, problem.rows(), problem.kernel.num_params(), &|| Ok(())).unwrap();
        let (value, params, alpha, precision) = problem.exact();
        close(found.value, value, 1.0, spec);
        let alone = log_evidence(&*space, problem.rows(), &|| Ok(())).unwrap();
        assert_eq!(found.value.to_bits(), alone.to_bits());
        let size = params.iter().fold(0.0_f64, |all, g| all.max(g.abs()));
        found.params.iter().zip(&params).for_each(|(own, right)| {
            close(
                *own,
                *right,
                size,
                &format!("slope of {spec}, {:?} and {params:?}", found.params),
            )
        });
        for i in 0..300 {
            (0..columns).for_each(|p| {
                close(found.alpha[(i, p)], alpha[(i, p)], 10.0, &format!("alpha of {spec}"))
            });
            close(found.precision[i], precision[i], 1.0, &format!("precision of {spec}"));
        }
    }
}

/// A kernel that has no finite state: near to exact inference, with the slopes of its evidence.
#[test]
fn a_squared_exponential_has_slopes_of_its_evidence() {
    for spec in [
        "rbf(variance=1.8, lengthscales=0.7)",
        "rbf(variance=0.9, lengthscales=2.1) * cosine(variance=1.2, lengthscales=1.4) + matern12(variance=0.2, lengthscales=0.5)",
    ] {
        for unit in [1.0, 1e4, 1e-4] {
            let mut problem = Problem::at(places(300, 1.0, 1e-6), spec, 2);
            problem.x.col_as_slice_mut(0).iter_mut().for_each(|t| *t *= unit);
            for (path, param) in problem.kernel.params_mut() {
                if path.ends_with("lengthscales") {
                    let own: Vec<f64> = param.value().iter().map(|v| v * unit).collect();
                    param.set(&path, &own).unwrap();
                }
            }
            let of = |kernel: &dyn Kernel| {
                log_evidence(&*kernel.state_space().unwrap(), problem.rows(), &|| Ok(())).unwrap()
            };
            let space = problem.kernel.state_space().unwrap();
            let found =
                evidence(&*space, problem.rows(), problem.kernel.num_params(), &|| Ok(())).unwrap();
            assert_eq!(found.value.to_bits(), of(&*problem.kernel).to_bits());
            let exact = problem.exact().0;
            assert!((found.value - exact).abs() < 1e-4 * exact.abs(), "{} {exact}", found.value);
            // every parameter is one number
            assert_eq!(found.params.len(), problem.kernel.params().len());
            for (index, (path, param)) in problem.kernel.params().iter().enumerate() {
                let moved = |by: f64| {
                    let mut kernel = problem.kernel.clone();
                    kernel.params_mut()[index].1.set(path, &[param.scalar() * (1.0 + by)]).unwrap();
                    of(&*kernel)
                };
                let right = (moved(1e-5) - moved(-1e-5)) / (2e-5 * param.scalar());
                let size = 1.0 / param.scalar();
                let own = found.params[index];
                assert!((own - right).abs() < 1e-5 * (size + right.abs()), "{path}: {own} {right}");
            }
        }
    }
}

#[test]
fn near_rows_cost_no_digits() {
    for spec in SPECS {
        let problem = Problem::new(spec, 300, 1);
        let space = problem.kernel.state_space().unwrap();
        let found = log_evidence(&*space, problem.rows(), &|| Ok(())).unwrap();
        close(found, problem.exact().0, 1.0, spec);
    }
}

#[test]
fn predictions_are_those_of_exact_inference() {
    for spec in SPECS {
        let problem = Problem::new(spec, 300, 2);
        let space = problem.kernel.state_space().unwrap();
        let known = Smoothed::new(space, problem.rows(), &|| Ok(())).unwrap();
        // before, between, at and after rows, in disorder, two of them twice
        let mut t = vec![
            -7.0,
            -1.4,
            300.0,
            problem.t()[0],
            problem.t()[129],
            problem.t()[128],
            problem.t()[299],
            2.0,
            2.0,
        ];
        t.extend((0..60).map(|i| -2.0 + 0.41 * f64::from((i * 37) % 60)));
        let x = inputs(spec, &t);
        let (mean, covariance) = problem.predicted(&x);
        let (found, variances) = known.moments(x.as_ref()).unwrap();
        let (again, joint) = known.joint(x.as_ref()).unwrap();
        for i in 0..t.len() {
            for p in 0..2 {
                close(found[(i, p)], mean[(i, p)], 1.0, &format!("mean of {spec} at {}", t[i]));
                close(
                    again[(i, p)],
                    mean[(i, p)],
                    1.0,
                    &format!("joint mean of {spec} at {}", t[i]),
                );
            }
            close(
                variances[i],
                covariance[(i, i)],
                1.0,
                &format!("variance of {spec} at {}", t[i]),
            );
            for j in 0..t.len() {
                close(
                    joint[(i, j)],
                    covariance[(i, j)],
                    1.0,
                    &format!("covariance of {spec} at {} and {}", t[i], t[j]),
                );
            }
        }
    }
}

#[test]
fn one_row_and_rows_of_a_block_are_enough() {
    for n in [1, 2, 127, 128, 129, 256] {
        let problem = Problem::new(SPECS[2], n, 1);
        let space = problem.kernel.state_space().unwrap();
        let found = evidence(&*space, problem.rows(), 2, &|| Ok(())).unwrap();
        close(found.value, problem.exact().0, 1.0, &format!("{n} rows"));
        let known = Smoothed::new(space, problem.rows(), &|| Ok(())).unwrap();
        let t = [-3.0, 0.4, problem.t()[n - 1], 9.0];
        let x = inputs(SPECS[2], &t);
        let (mean, covariance) = problem.predicted(&x);
        let (found, variances) = known.moments(x.as_ref()).unwrap();
        for i in 0..t.len() {
            close(found[(i, 0)], mean[(i, 0)], 1.0, "mean");
            close(variances[i], covariance[(i, i)], 1.0, "variance");
        }
    }
}

#[test]
fn units_change_nothing() {
    for unit in [1e-4, 1e4] {
        let problem = Problem::new(SPECS[6], 200, 1);
        let spec = format!(
            "matern52(variance=1.3, lengthscales={}) + matern12(variance=0.4, lengthscales={}) + constant(variance=2.1)",
            0.7 * unit,
            3.1 * unit
        );
        let t = places(200, unit, 1e-6);
        let scaled = parse(&spec, Inputs::unnamed(1)).unwrap().state_space().unwrap();
        let rows = Rows { places: Places::of_times(&t), ..problem.rows() };
        let plain = problem.kernel.state_space().unwrap();
        let right = log_evidence(&*plain, problem.rows(), &|| Ok(())).unwrap();
        close(log_evidence(&*scaled, rows, &|| Ok(())).unwrap(), right, 1.0, &spec);
    }
}

#[test]
fn rows_without_a_variance_are_refused_and_interruptions_are_heard() {
    let mut problem = Problem::new("constant(variance=2.0)", 200, 1);
    problem.noise.fill(0.0);
    let space = problem.kernel.state_space().unwrap();
    let error = log_evidence(&*space, problem.rows(), &|| Ok(())).unwrap_err();
    assert!(error.is_recoverable(), "{error}");
    let stop = || Err(crate::Error::Interrupted);
    let problem = Problem::new(SPECS[1], 300, 1);
    let space = problem.kernel.state_space().unwrap();
    assert!(log_evidence(&*space, problem.rows(), &stop).is_err());
}

#[test]
fn order_keeps_equal_places_as_they_come() {
    assert_eq!(order(&[0.3, -1.0, 0.3, 0.2]), [1, 3, 0, 2]);
    assert_eq!(order(&[0.0, 0.0, 1.0]), [0, 1, 2]);
}

#[test]
fn threads_change_no_bit() {
    let problem = Problem::new(SPECS[8], 700, 1);
    let all = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let space = problem.kernel.state_space().unwrap();
            let known = Smoothed::new(space, problem.rows(), &|| Ok(())).unwrap();
            let t: Vec<f64> = (0..300).map(|i| 0.21 * f64::from(i) - 2.0).collect();
            let (mean, variance) = known.moments(inputs(SPECS[8], &t).as_ref()).unwrap();
            let joint = known.joint(inputs(SPECS[8], &t[..40]).as_ref()).unwrap().1;
            let means = (0..300).map(|i| mean[(i, 0)]);
            let joint = (0..40).map(|i| joint[(i, 39)]);
            means.chain(variance.clone()).chain(joint).map(f64::to_bits).collect::<Vec<_>>()
        })
    };
    assert_eq!(all(1), all(3));
}
