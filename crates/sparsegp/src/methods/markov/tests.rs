//! Against sites of all rows by dense matrices, and against themselves where these have no counterpart.

use crate::data::{InMemory, Source};
use crate::engine::{Cpu, Engine, Job, Passed, Shelf};
use crate::error::Result;
use crate::kernels::{self, Inputs};
use crate::likelihoods;
use crate::linalg::{Mat, Precision};
use crate::methods::{Tvgp, find, sites};
use crate::model::Model;
use crate::params::Param;
use crate::variational::{Tying, Variational};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The inputs that a kernel reads: times, and labels where it reads some.
fn inputs(kernel: &str) -> usize {
    1 + usize::from(kernel.contains("coregion"))
}

/// Times, with labels beside them where a kernel reads some.
pub(super) fn with_labels(kernel: &str, t: &Mat<f64>) -> Mat<f64> {
    let label = |i: usize| ((i * i + i / 4) % 3) as f64;
    Mat::from_fn(t.nrows(), inputs(kernel), |i, q| if q == 0 { t[(i, 0)] } else { label(i) })
}

/// Places in disorder, some of them twice.
fn rows(kernel: &str, n: usize, columns: usize, target: impl Fn(f64, usize) -> f64) -> InMemory {
    let at = |i: usize| {
        let i = (i * 37) % n;
        0.11 * i as f64 + 0.4 * ((i / 9) as f64).sin() - if i % 8 == 5 { 0.11 } else { 0.0 }
    };
    let x = Mat::from_fn(n, 1, |i, _| at(i));
    let x = with_labels(kernel, &x);
    let y = Mat::from_fn(n, columns, |i, p| target(x[(i, 0)], (i + 3 * p) % 11));
    let weights = (0..n).map(|i| if i % 9 == 4 { 0.0 } else { 0.5 + 0.3 * (i % 4) as f64 });
    InMemory { x, y, weights: weights.collect(), extra: Vec::new() }
}

fn model(method: &str, kernel: &str, likelihood: &str, columns: usize, n: usize) -> Model {
    let inputs = inputs(kernel);
    let kernel = kernels::parse(kernel, Inputs::unnamed(inputs)).unwrap();
    let likelihood = likelihoods::parse(likelihood).unwrap();
    let latents = columns * likelihood.latents();
    let builder = Model::builder(kernel, find(method).unwrap().method).likelihood(likelihood);
    let builder = match method {
        "tvgp" | "cavi-full" => builder.q(Variational::sites(n, latents, Tying::Untied)),
        _ => builder,
    };
    builder.build(inputs, columns).unwrap()
}

/// Each with targets from a wave and a number below 11.
type Case = (&'static str, &'static str, fn(f64, usize) -> f64, usize);

const CASES: &[Case] = &[
    (
        "poisson",
        "matern32(variance=0.7, lengthscales=1.3)",
        |x, r| ((1.5 * x.sin()).exp() + r as f64 / 5.0).floor(),
        1,
    ),
    (
        "bernoulli",
        "matern52(variance=1.9, lengthscales=0.8) + matern12(variance=0.3, lengthscales=2.0)",
        |x, r| f64::from(x.sin() + 0.2 * (r as f64 - 5.0) > 0.0),
        2,
    ),
    (
        "student-t(scale=0.3, df=3.5)",
        "matern32(variance=1.4, lengthscales=1.1)",
        |x, r| x.sin() + if r == 7 { 3.0 } else { 0.05 * r as f64 },
        1,
    ),
    (
        "negative-binomial",
        "matern12(variance=1.1, lengthscales=1.7)",
        |x, r| ((1.0 + x.cos()).exp() + r as f64).floor(),
        1,
    ),
    (
        "softmax(classes=3)",
        "matern32(variance=1.2, lengthscales=0.9)",
        |x, r| f64::from((x.sin() * 1.5 + 1.5) as i32 + i32::from(r == 3)).min(2.0),
        1,
    ),
    (
        "heteroscedastic",
        "matern52(variance=1.2, lengthscales=0.9)",
        |x, r| x.sin() + 0.1 * (r as f64 - 5.0) * x.cos().abs(),
        1,
    ),
    (
        "poisson",
        "matern32(variance=0.9, lengthscales=1.3, active_dims=[0]) * coregion(W=[[0.8, 0.1], [-0.5, 0.6], [0.3, -0.9]], kappa=[0.3, 0.5, \
         0.2], active_dims=[1])",
        |x, r| ((1.5 * x.sin()).exp() + r as f64 / 5.0).floor(),
        1,
    ),
];

/// Likelihoods with local variables, of one level and of several.
const AUGMENTED: &[Case] = &[
    (
        "bernoulli(link=logit)",
        "matern52(variance=1.9, lengthscales=0.8) + matern12(variance=0.3, lengthscales=2.0)",
        |x, r| f64::from(x.sin() + 0.2 * (r as f64 - 5.0) > 0.0),
        2,
    ),
    (
        "student-t(scale=0.3, df=3.5)",
        "matern32(variance=1.4, lengthscales=1.1)",
        |x, r| x.sin() + if r == 7 { 3.0 } else { 0.05 * r as f64 },
        1,
    ),
    (
        "laplace(scale=0.4)",
        "matern32(variance=1.1, lengthscales=1.6)",
        |x, r| x.cos() + if r == 3 { 2.0 } else { 0.07 * r as f64 },
        1,
    ),
    (
        "poisson-logistic",
        "matern32(variance=0.7, lengthscales=1.3)",
        |x, r| ((1.5 * x.sin()).exp() + r as f64 / 5.0).floor(),
        1,
    ),
    (
        "negative-binomial",
        "matern12(variance=1.1, lengthscales=1.7)",
        |x, r| ((1.0 + x.cos()).exp() + r as f64).floor(),
        1,
    ),
    (
        "logistic-softmax(classes=3)",
        "matern32(variance=1.2, lengthscales=0.9)",
        |x, r| f64::from((x.sin() * 1.5 + 1.5) as i32 + i32::from(r == 3)).min(2.0),
        1,
    ),
    (
        "heteroscedastic(scale=logistic)",
        "matern52(variance=1.2, lengthscales=0.9)",
        |x, r| x.sin() + 0.1 * (r as f64 - 5.0) * x.cos().abs(),
        1,
    ),
];

/// The dense model with sites at their fixed point, reached by small steps.
fn dense(method: &str, case: &Case, data: &InMemory) -> Model {
    let (likelihood, kernel, _, columns) = *case;
    let counted: Vec<usize> = (0..data.x.nrows()).filter(|i| data.weights[*i] != 0.0).collect();
    let data = data.picked(&counted);
    let mut model = model(method, kernel, likelihood, columns, data.x.nrows());
    let method = Tvgp::of(model.method).unwrap();
    for _ in 0..400 {
        let mut look = method.look(&model, &data).unwrap();
        method.centre(&mut look, &mut model);
        method.move_from(&look, &mut model, &data, 0.5).unwrap();
    }
    model
}

fn close(found: f64, right: f64, tolerance: f64, what: &str) {
    assert!(
        (found - right).abs() <= tolerance * (1.0 + right.abs()),
        "{what}: {found} and {right}"
    );
}

#[test]
fn the_bound_with_its_slopes_and_predictions_are_those_of_dense_sites() {
    let all = CASES.iter().map(|case| ("markov", "tvgp", case));
    for (name, full, case) in all.chain(AUGMENTED.iter().map(|c| ("cavi-markov", "cavi-full", c))) {
        let (likelihood, kernel, target, columns) = *case;
        let data = rows(kernel, 70, columns, target);
        let dense = dense(full, case, &data);
        let counted: Vec<usize> = (0..70).filter(|i| data.weights[*i] != 0.0).collect();
        let engine = Cpu::default();
        let right = dense.evaluate(&engine, &data.picked(&counted)).unwrap();
        let own = model(name, kernel, likelihood, columns, 70);
        let found = own.evaluate(&engine, &data).unwrap();
        if likelihood.starts_with("student") && name == "markov" {
            // dense sites are cut at the smallest precision
            let gain = found.value - right.value;
            assert!(gain > 0.0 && gain < 0.01, "{gain}");
            continue;
        }
        close(found.value, right.value, 1e-8, likelihood);
        // those of q come last
        for (k, (a, b)) in found.gradient.iter().zip(&right.gradient).enumerate() {
            close(*a, *b, 2e-5, &format!("{likelihood}, slope {k}"));
        }
        // coordinate ascent nears its end by a part of what is left, and ends where the bound does not move
        let ended = if name == "markov" { 1e-5 } else { 1e-4 };
        let places = Mat::from_fn(15, 1, |i, _| 0.7 * i as f64 - 1.0);
        let places = with_labels(kernel, &places);
        let posterior = own.method.posterior(&own, &engine, &data).unwrap();
        let other = dense.method.posterior(&dense, &engine, &data.picked(&counted)).unwrap();
        let (mean, variance) = posterior.predict_f(places.as_ref()).unwrap();
        let (right, spread) = other.predict_f(places.as_ref()).unwrap();
        for l in 0..mean.ncols() {
            for i in 0..15 {
                close(mean[(i, l)], right[(i, l)], ended, likelihood);
                close(variance[(i, l)], spread[(i, l)], ended, likelihood);
            }
        }
        let (_, joint) = posterior.predict_f_full(places.as_ref()).unwrap();
        let (_, right) = other.predict_f_full(places.as_ref()).unwrap();
        assert!((&joint[0] - &right[0]).norm_max() < ended, "{likelihood}");
        let left = posterior.leave_one_out(&own, &data.picked(&counted)).unwrap();
        let right = other.leave_one_out(&dense, &data.picked(&counted)).unwrap();
        for i in 0..counted.len() {
            close(left.log_density[(i, 0)], right.log_density[(i, 0)], 10.0 * ended, likelihood);
        }
    }
}

#[test]
fn slopes_are_those_of_differences() {
    let all = CASES.iter().map(|case| ("markov", case));
    for (name, case) in all.chain(AUGMENTED.iter().map(|case| ("cavi-markov", case))) {
        let (likelihood, kernel, target, columns) = case;
        let mut data = rows(kernel, 60, *columns, target);
        data.y[(7, 0)] = f64::NAN;
        let own = model(name, kernel, likelihood, *columns, 60);
        let engine = Cpu::default();
        let gradient = own.evaluate(&engine, &data).unwrap().gradient;
        let paths: Vec<String> = own.params().into_iter().map(|(path, _)| path).collect();
        let mut slot = 0;
        for path in paths {
            let count = own.params().iter().find(|(own, _)| *own == path).unwrap().1.len();
            for k in 0..count {
                let value = |by: f64| {
                    let mut changed = own.clone();
                    let mut params = changed.params_mut();
                    let param = &mut params.iter_mut().find(|(own, _)| *own == path).unwrap().1;
                    param.value_mut()[k] += by;
                    drop(params);
                    changed.evaluate(&engine, &data).unwrap().value
                };
                let step = 1e-4;
                let slope = (value(step) - value(-step)) / (2.0 * step);
                close(gradient[slot], slope, 3e-5, &format!("{likelihood}, {path}"));
                slot += 1;
            }
        }
        own.check(inputs(kernel), *columns).unwrap();
    }
}

/// Rows whose targets are missing are rows that are not there; and every column may miss others.
#[test]
fn missing_targets_change_nothing() {
    for likelihood in ["gaussian(variance=0.2)", "poisson"] {
        let kernel = "matern32(variance=0.7, lengthscales=1.3)";
        let mut data = rows(kernel, 50, 1, |x, r| (2.0 + x.sin() + 0.3 * r as f64).floor());
        let own = model("markov", kernel, likelihood, 1, 50);
        let gone: Vec<usize> = (0..50).filter(|i| i % 6 == 2).collect();
        let left: Vec<usize> = (0..50).filter(|i| i % 6 != 2).collect();
        let engine = Cpu::default();
        let right = own.evaluate(&engine, &data.picked(&left)).unwrap();
        gone.iter().for_each(|i| data.y[(*i, 0)] = f64::NAN);
        let found = own.evaluate(&engine, &data).unwrap();
        close(found.value, right.value, 1e-12, likelihood);
        found
            .gradient
            .iter()
            .zip(&right.gradient)
            .for_each(|(a, b)| close(*a, *b, 1e-9, likelihood));
        let posterior = own.method.posterior(&own, &engine, &data).unwrap();
        let other = own.method.posterior(&own, &engine, &data.picked(&left)).unwrap();
        let (mean, variance) = posterior.predict_f(data.x.as_ref()).unwrap();
        let (right, spread) = other.predict_f(data.x.as_ref()).unwrap();
        assert!((&mean - &right).norm_max() < 1e-10 && (&variance - &spread).norm_max() < 1e-10);
        let whole = posterior.leave_one_out(&own, &data).unwrap();
        let part = other.leave_one_out(&own, &data.picked(&left)).unwrap();
        for (at, i) in left.iter().enumerate() {
            close(whole.log_density[(*i, 0)], part.log_density[(at, 0)], 1e-9, likelihood);
        }
        assert!(gone.iter().all(|i| whole.log_density[(*i, 0)].is_nan()));
    }
}

/// Two columns with a kernel each are two models.
#[test]
fn every_column_may_have_a_kernel_to_itself() {
    let specs =
        ["matern32(variance=0.7, lengthscales=1.3)", "matern12(variance=1.7, lengthscales=0.4)"];
    for likelihood in ["gaussian(variance=0.2)", "poisson"] {
        let data = rows(specs[0], 50, 2, |x, r| (2.0 + x.sin() + 0.3 * r as f64).floor());
        let engine = Cpu::default();
        let mut both = model("markov", specs[0], likelihood, 2, 50);
        both.kernels.push(kernels::parse(specs[1], Inputs::unnamed(1)).unwrap());
        both.check(1, 2).unwrap();
        let found = both.evaluate(&engine, &data).unwrap();
        let mut value = 0.0;
        for (p, spec) in specs.iter().enumerate() {
            let own = model("markov", spec, likelihood, 1, 50);
            let y = data.y.as_ref().subcols(p, 1).to_owned();
            let part = own.evaluate(&engine, &InMemory { y, ..data.clone() }).unwrap();
            value += part.value;
            for k in 0..2 {
                // steps of the sites end a little earlier or later
                close(found.gradient[2 * p + k], part.gradient[k], 1e-5, likelihood);
            }
        }
        close(found.value, value, 1e-12, likelihood);
    }
}

/// Searches that begin where the last one ended end where others do, and look less often.
#[test]
fn remembered_sites_are_a_start() {
    for (likelihood, kernel, target, columns) in CASES {
        let data = rows(kernel, 60, *columns, target);
        let mut model = model("markov", kernel, likelihood, *columns, 60);
        let engine = Counted::default();
        let values = |model: &Model| {
            let before = engine.looks.load(Ordering::Relaxed);
            let found = model.method.evaluate(model, &engine, &data).unwrap();
            (found.value, found.gradient, engine.looks.load(Ordering::Relaxed) - before)
        };
        let near = model.clone();
        let longer = |own: &mut Param| {
            let values: Vec<f64> = own.value().iter().map(|value| 1.03 * value).collect();
            own.start(&values);
        };
        model.for_group("kernel", longer).unwrap();
        let fresh = values(&model);
        let again = {
            let _remembered = sites::remember(&engine);
            assert!(values(&near).0 != fresh.0);
            values(&model)
        };
        assert_eq!(values(&model), fresh, "{likelihood}: forgotten");
        assert!((again.0 - fresh.0).abs() < 1e-8 * fresh.0.abs(), "{likelihood}");
        for (a, b) in again.1.iter().zip(&fresh.1) {
            assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{likelihood}: {a} {b}");
        }
        assert!(again.2 < fresh.2, "{likelihood}: {} of {}", again.2, fresh.2);
    }
}

/// Counts how often a method asks whether to continue.
#[derive(Default)]
struct Counted {
    cpu: Cpu,
    looks: AtomicUsize,
}

impl Engine for Counted {
    fn shelf(&self) -> &Shelf {
        self.cpu.shelf()
    }

    fn pass_in(
        &self,
        precision: Precision,
        job: &Job<'_>,
        data: &dyn Source,
        out: &mut Passed,
    ) -> Result<()> {
        self.cpu.pass_in(precision, job, data, out)
    }

    fn go_on(&self) -> Result<()> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
