use super::{Bound, Setting, Targets};
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::kernels::{Kernel, Tape};
use crate::likelihoods::Gaussian;
use crate::linalg::{Cholesky, Jitter, Mat, dot};
use crate::means;
use crate::methods::find;
use crate::model::{Model, inducing_param};
use crate::psi::tests::{kernel, spot};
use crate::psi::{Psi, Uncertain};
use crate::terms::{REGISTRY, Spherical, Term, Titsias2009, Titsias2025};

const Q: usize = 2;
const SPECS: [&str; 3] = [
    "rbf(variance=1.3, lengthscales=[0.8, 1.4])",
    "rbf(variance=0.7, lengthscales=0.9) + linear(variance=[0.7, 1.4]) + constant(variance=0.4) + white(variance=0.2)",
    "constant(variance=0.8) * (rbf(variance=0.7, lengthscales=0.9) + rbf(lengthscales=[0.5], active_dims=[1]))",
];
const JITTER: Jitter = Jitter::Relative(1e-6);

struct Problem {
    z: Mat<f64>,
    mean: Mat<f64>,
    variance: Mat<f64>,
    y: Mat<f64>,
}

/// Rows with three columns of targets; `missing` leaves cells out.
fn problem(n: usize, m: usize, missing: bool) -> Problem {
    let mean = Mat::from_fn(n, Q, |i, q| 4.0 * spot(i, 3 * q) - 2.0);
    let y = Mat::from_fn(n, 3, |i, p| {
        let gone = missing && (spot(i, 40 + p) < 0.3 || i == 2);
        let value =
            (1.3 * mean[(i, 0)] + p as f64).sin() + 0.5 * mean[(i, 1)] + 0.2 * spot(i, 50 + p);
        if gone && i != p { f64::NAN } else { value }
    });
    Problem {
        z: Mat::from_fn(m, Q, |i, q| 4.0 * spot(i + 31, 2 * q + 5) - 2.0),
        variance: Mat::from_fn(n, Q, |i, q| 0.05 + 0.6 * spot(i + 7, q + 11)),
        mean,
        y,
    }
}

fn setting<'a>(kernel: &'a dyn Kernel, z: &'a Mat<f64>, term: &'static dyn Term) -> Setting<'a> {
    Setting { kernel, points: z.as_ref(), noise: 0.17, term, jitter: JITTER, block: None }
}

impl Problem {
    fn x(&self) -> Uncertain<'_> {
        Uncertain::new(self.mean.as_ref(), self.variance.as_ref()).unwrap()
    }
}

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} for {b}");
}

#[test]
fn slopes_are_those_of_differences() {
    for missing in [false, true] {
        let own = problem(9, 4, missing);
        let targets = Targets::new(own.y.as_ref()).unwrap();
        for (spec, term) in SPECS.iter().flat_map(|spec| REGISTRY.iter().map(move |t| (spec, *t))) {
            let k = kernel(spec, Q);
            let what = format!("{spec} {} {missing}", term.name());
            let value =
                |k: &dyn Kernel, noise: f64, z: &Mat<f64>, mean: &Mat<f64>, s: &Mat<f64>| {
                    let setting = Setting { noise, ..setting(k, z, term) };
                    let x = Uncertain::new(mean.as_ref(), s.as_ref()).unwrap();
                    Bound::new(setting, x, &targets).unwrap().value()
                };
            let bound = Bound::new(setting(&*k, &own.z, term), own.x(), &targets).unwrap();
            let slopes = bound.gradient().unwrap();
            let h = 1e-5;
            let check = |own: f64, f: &dyn Fn(f64) -> f64, by: &str| {
                let difference = (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h);
                near(own, difference, 2e-6, &format!("{what}: {by}"));
            };
            let moved = |a: &Mat<f64>, i: usize, q: usize, h: f64| {
                let mut a = a.clone();
                a[(i, q)] += h;
                a
            };
            for q in 0..Q {
                for i in 0..own.z.nrows() {
                    let f = |h| value(&*k, 0.17, &moved(&own.z, i, q, h), &own.mean, &own.variance);
                    check(slopes.points[(i, q)], &f, "points");
                }
                for i in 0..own.mean.nrows() {
                    let f = |h| value(&*k, 0.17, &own.z, &moved(&own.mean, i, q, h), &own.variance);
                    check(slopes.mean[(i, q)], &f, "mean");
                    let f = |h| value(&*k, 0.17, &own.z, &own.mean, &moved(&own.variance, i, q, h));
                    check(slopes.variance[(i, q)], &f, "variance");
                }
            }
            let f = |h| value(&*k, 0.17 + h, &own.z, &own.mean, &own.variance);
            check(slopes.noise, &f, "noise");
            for place in 0..k.num_params() {
                let f = |h: f64| {
                    let (mut k, mut at) = (k.clone(), 0);
                    k.visit_mut(&mut |_, p| {
                        let own = at..at + p.len();
                        at = own.end;
                        if own.contains(&place) {
                            p.value_mut()[place - own.start] += h;
                        }
                    });
                    value(&*k, 0.17, &own.z, &own.mean, &own.variance)
                };
                check(slopes.kernel[place], &f, "kernel");
            }
        }
    }
}

fn known(kernel: Box<dyn Kernel>, own: &Problem, method: &str) -> (Model, InMemory) {
    let model = Model {
        kernels: vec![kernel],
        mean: means::by_name("zero", Q, 3).unwrap(),
        likelihood: Box::new(Gaussian::new(0.17)),
        inducing: vec![inducing_param(own.z.as_ref())],
        q: None,
        method: find(method).unwrap().method,
        jitter: JITTER,
        hidden: Vec::new(),
    };
    (model, InMemory::new(own.mean.clone(), own.y.clone()).unwrap())
}

#[test]
fn known_inputs_have_the_bounds_of_regression() {
    let own = problem(40, 6, false);
    let targets = Targets::new(own.y.as_ref()).unwrap();
    let zeros = Mat::zeros(40, Q);
    let x = Uncertain::new(own.mean.as_ref(), zeros.as_ref()).unwrap();
    for (spec, term) in SPECS.iter().flat_map(|spec| REGISTRY.iter().map(move |t| (spec, *t))) {
        let k = kernel(spec, Q);
        let bound = Bound::new(setting(&*k, &own.z, term), x, &targets).unwrap();
        let (model, data) = known(k.clone(), &own, term.name());
        let known = model.evaluate(&Cpu::default(), &data).unwrap();
        near(bound.data(), known.value, 1e-10, spec);
        assert_eq!(bound.negative(), 0);
        // hyperparameters, noise and points; inputs that are known have slopes of only the data
        // part
        let mut gradient = known.gradient;
        let own_slopes = bound.data_gradient().unwrap();
        let parts = model.parts_of(&mut gradient);
        for (a, b) in own_slopes.kernel.iter().zip(&*parts.kernel) {
            near(*a, *b, 1e-7, spec);
        }
        near(own_slopes.noise, parts.likelihood[0], 1e-7, spec);
        for (q, column) in parts.inducing.chunks_exact(own.z.nrows()).enumerate() {
            for (m, by_z) in column.iter().enumerate() {
                near(own_slopes.points[(m, q)], *by_z, 1e-7, spec);
            }
        }
        assert!(bound.gradient().is_err());
    }
}

#[test]
fn the_new_bound_is_above_the_old_one() {
    for seed in 0..12 {
        let n = 12 + seed;
        let mut own = problem(n, 3 + seed % 4, seed % 2 == 1);
        own.variance = Mat::from_fn(n, Q, |i, q| 0.01 + 1.5 * spot(i + 13 * seed, q + 3));
        let targets = Targets::new(own.y.as_ref()).unwrap();
        let k = kernel(SPECS[seed % 3], Q);
        let of = |term: &'static dyn Term| {
            Bound::new(setting(&*k, &own.z, term), own.x(), &targets).unwrap().value()
        };
        let (old, pooled, new) = (of(&Titsias2009), of(&Spherical), of(&Titsias2025));
        assert!(old < pooled && pooled < new, "{old} {pooled} {new}");
    }
}

/// F by dense matrices of the rows that each column has, without whitening, from ψ-statistics row by row.
fn dense(k: &dyn Kernel, own: &Problem, noise: f64) -> f64 {
    let (n, m) = (own.y.nrows(), own.z.nrows());
    let psi = Psi::new(k, own.z.as_ref()).unwrap();
    let (psi0, psi1) = (psi.psi0(own.x()).unwrap(), psi.psi1(own.x()).unwrap());
    let each = psi.fold(own.x(), Mat::zeros(n, 0).as_ref(), Mat::identity(n, n).as_ref(), &[]);
    let psi2 = each.unwrap().psi2;
    let mut kuu = Mat::zeros(m, m);
    k.evaluate(own.z.as_ref(), None, kuu.as_mut(), &mut Tape::off());
    let relative = 1e-6 * (0..m).map(|i| kuu[(i, i)]).sum::<f64>() / m as f64;
    (0..m).for_each(|i| kuu[(i, i)] += relative);
    let factor = |a: &Mat<f64>| Cholesky::new(a.as_ref(), Jitter::Absolute(0.0), "A").unwrap();
    let prior = factor(&kuu);
    let mut value = 0.0;
    for p in 0..own.y.ncols() {
        let mut r = kuu.clone();
        let mut projected = Mat::zeros(m, 1);
        for i in (0..n).filter(|i| !own.y[(*i, p)].is_nan()) {
            let y = own.y[(i, p)];
            r += &psi2[i] * faer::Scale(1.0 / noise);
            (0..m).for_each(|j| projected[(j, 0)] += y * psi1[(i, j)] / noise);
            let d = psi0[i] - dot(prior.inverse().as_ref(), psi2[i].as_ref());
            value -= 0.5 * ((std::f64::consts::TAU * noise).ln() + y * y / noise);
            value -= 0.5 * (d / noise).ln_1p();
        }
        let r = factor(&r);
        let solved = r.solve(projected.as_ref());
        value += 0.5 * (prior.log_det() - r.log_det() + dot(solved.as_ref(), projected.as_ref()));
    }
    value
}

#[test]
fn missing_cells_are_left_out_of_dense_matrices_too() {
    let own = problem(14, 4, true);
    let targets = Targets::new(own.y.as_ref()).unwrap();
    assert!(targets.groups().len() > 1 && targets.cells() < 14 * 3);
    for spec in SPECS {
        let k = kernel(spec, Q);
        let of = |block| {
            let setting = Setting { block, ..setting(&*k, &own.z, &Titsias2025) };
            Bound::new(setting, own.x(), &targets).unwrap()
        };
        let bound = of(None);
        near(bound.data(), dense(&*k, &own, 0.17), 1e-9, spec);
        for rows in [1, 5, 8] {
            near(of(Some(rows)).value(), bound.value(), 1e-12, spec);
        }
    }
}

#[test]
fn threads_change_nothing() {
    let own = problem(600, 5, true);
    let targets = Targets::new(own.y.as_ref()).unwrap();
    let k = kernel(SPECS[1], Q);
    let of = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let bound = Bound::new(setting(&*k, &own.z, &Titsias2025), own.x(), &targets).unwrap();
            let slopes = bound.gradient().unwrap();
            (bound.value(), slopes.kernel, slopes.points, slopes.mean, slopes.variance)
        })
    };
    assert!(of(1) == of(3));
}

/// Lengthscales far below and above every distance, inputs next to certain and next to unknown, places far from the origin.
#[test]
fn extremes_are_numbers_with_slopes_of_differences() {
    for (length, spread, shift) in [
        (1e-3, 1e-6, 0.0),
        (1e-2, 30.0, 0.0),
        (300.0, 1e-8, 0.0),
        (0.7, 0.3, 100.0),
        (5.0, 1e4, 0.0),
    ] {
        let mut own = problem(12, 4, true);
        own.variance = Mat::from_fn(12, Q, |i, q| spread * (1.0 + spot(i, q)));
        own.mean = Mat::from_fn(12, Q, |i, q| own.mean[(i, q)] + shift);
        own.z = Mat::from_fn(4, Q, |i, q| own.z[(i, q)] + shift);
        let targets = Targets::new(own.y.as_ref()).unwrap();
        let what = format!("{length} {spread} {shift}");
        let k = kernel(&format!("rbf(variance=1.3, lengthscales={length}) + rbf"), Q);
        let data = |mean: &Mat<f64>, term: &'static dyn Term| {
            let x = Uncertain::new(mean.as_ref(), own.variance.as_ref()).unwrap();
            Bound::new(setting(&*k, &own.z, term), x, &targets).unwrap().data()
        };
        let bound = Bound::new(setting(&*k, &own.z, &Titsias2025), own.x(), &targets).unwrap();
        let slopes = bound.data_gradient().unwrap();
        assert!(data(&own.mean, &Titsias2009) <= bound.data() + 1e-9, "{what}");
        assert_eq!(bound.negative(), 0, "{what}");
        let by = [&slopes.points, &slopes.mean, &slopes.variance];
        assert!(by.iter().all(|a| a.norm_max().is_finite()), "{what}");
        let h = 1e-4 * f64::min(length, 1.0);
        for i in 0..12 {
            let of = |h: f64| {
                let mut mean = own.mean.clone();
                mean[(i, 1)] += h;
                data(&mean, &Titsias2025)
            };
            let difference = (8.0 * (of(h) - of(-h)) - (of(2.0 * h) - of(-2.0 * h))) / (12.0 * h);
            near(slopes.mean[(i, 1)], difference, 1e-5 * (1.0 + 1e-6 / h), &what);
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let mut own = problem(6, 3, false);
    let targets = Targets::new(own.y.as_ref()).unwrap();
    let k = kernel("matern32", Q);
    let error = Bound::new(setting(&*k, &own.z, &Titsias2025), own.x(), &targets).unwrap_err();
    assert!(error.to_string().contains("`matern32`"), "{error}");
    let k = kernel("rbf", Q);
    let noisy = Setting { noise: 0.0, ..setting(&*k, &own.z, &Titsias2025) };
    assert!(Bound::new(noisy, own.x(), &targets).is_err());
    let other = problem(7, 3, false);
    assert!(Bound::new(setting(&*k, &own.z, &Titsias2025), other.x(), &targets).is_err());
    (0..6).for_each(|i| own.y[(i, 1)] = f64::NAN);
    assert!(Targets::new(own.y.as_ref()).unwrap_err().to_string().contains("column 2"));
    own.y[(0, 1)] = f64::INFINITY;
    assert!(Targets::new(own.y.as_ref()).is_err());
}
