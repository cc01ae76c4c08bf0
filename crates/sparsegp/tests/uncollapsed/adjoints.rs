//! Adjoints that rows sum themselves against those that are made of their statistics.

use crate::problem::{Draw, problem};
use crate::support::{part, random_q, with_q};
use rand::RngExt;
use sparsegp::data::{Minibatch, Source};
use sparsegp::engine::{Cpu, Want};
use sparsegp::likelihoods;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods::{Step, Uncollapsed, find};
use sparsegp::model::Model;
use sparsegp::params;
use sparsegp::variational::{Variational, sites::Tying};

fn gradient(model: &Model, data: &dyn Source, want: Want, chosen: Option<&[bool]>) -> Vec<f64> {
    let mut step = Step::default();
    step.choose(chosen.map(<[bool]>::to_vec));
    Uncollapsed::of(model.method)
        .unwrap()
        .renew(&mut step, model, &Cpu::default(), data, want)
        .unwrap();
    let mut gradient = vec![f64::NAN; model.num_params()];
    step.gradient(model, &mut gradient);
    gradient.push(step.value);
    gradient
}

/// The same gradients in every way; those of a frozen q are left out with statistics, and of a choice always.
fn agree(model: &Model, data: &dyn Source, chosen: Option<&[bool]>, what: &str) {
    let expected = gradient(model, data, Want::Gradients, chosen);
    let frozen = model.q.as_ref().unwrap().stays();
    let of_q = params::count(|v| model.q.as_ref().unwrap().visit(v));
    let largest = expected.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
    for statistics in [false, true] {
        let own = gradient(model, data, Want::Adjoints { statistics }, chosen);
        assert_eq!(own.last(), expected.last(), "{what}");
        let left_out = chosen.is_some() || frozen && statistics;
        let counted = model.num_params() - if left_out { of_q } else { 0 };
        for (at, (own, expected)) in own.iter().zip(&expected).enumerate().take(counted) {
            let room = 1e-11 * largest;
            assert!((own - expected).abs() < room, "{what} {statistics} {at}: {own} {expected}");
        }
    }
}

/// Whether rows summed the adjoints of the roots: then there are no statistics for a step of q.
fn by_rows(model: &Model, data: &dyn Source) -> bool {
    let method = Uncollapsed::of(model.method).unwrap();
    let mut step = Step::default();
    let want = Want::Adjoints { statistics: false };
    method.renew(&mut step, model, &Cpu::default(), data, want).unwrap();
    let without = step.natural(&mut model.clone(), 0.1);
    method
        .renew(&mut step, model, &Cpu::default(), data, Want::Adjoints { statistics: true })
        .unwrap();
    step.natural(&mut model.clone(), 0.1).expect("a step");
    without.is_err_and(|error| error.to_string().contains("statistics"))
}

fn few(draw: &Draw, data: &sparsegp::data::InMemory) -> Minibatch {
    let batch = part(data, 1, 5);
    assert!(3 * batch.rows() < 5 * draw.m);
    batch
}

#[test]
fn of_gaussian_noise_in_all_forms() {
    let draw = Draw { n: 30, m: 6, d: 2, p: 2, kernel: "rbf + linear", mean: "linear", seed: 3 };
    for method in ["svgp", "svgp2025", "svgp-spherical"] {
        for (diagonal, whitened) in [(false, true), (false, false), (true, true), (true, false)] {
            let mut problem = problem(&draw);
            let mut q = random_q(draw.m, draw.p, diagonal, whitened, &mut problem.rng);
            if method == "svgp-spherical" {
                q = q.with_factors();
            }
            let mut model = with_q(&problem, method, q);
            let mut data = problem.data.clone();
            data.weights = (0..draw.n).map(|_| problem.rng.random_range(0.0..2.5)).collect();
            data.extra = (0..draw.n).map(|_| problem.rng.random_range(0.0..0.4)).collect();
            data.y[(1, 0)] = f64::NAN;
            let what = format!("{method} {diagonal} {whitened}");
            let batch = few(&draw, &data);
            agree(&model, &batch, None, &what);
            agree(&model, &data, None, &what);
            if !diagonal {
                assert!(by_rows(&model, &batch), "{what}");
                // many rows: only where the slopes of s and r differ
                let many = part(&data, 0, 1);
                assert_eq!(by_rows(&model, &many), method != "svgp", "{what}");
            }
            if let Some(q) = &mut model.q {
                (q.first.frozen, q.second.frozen) = (true, true);
            }
            agree(&model, &batch, None, &format!("{what} frozen"));
        }
    }
}

#[test]
fn of_other_likelihoods_and_separate_kernels() {
    for spec in ["bernoulli", "student-t", "softmax(classes=3)", "heteroscedastic"] {
        let draw = Draw { n: 30, m: 7, d: 2, p: 1, kernel: "matern52", mean: "zero", seed: 11 };
        let mut problem = problem(&draw);
        let likelihood = likelihoods::parse(spec).unwrap();
        let latents = likelihood.latents();
        let mut data = problem.data.clone();
        if spec.starts_with("softmax") || spec == "bernoulli" {
            let classes = latents.max(2);
            (0..draw.n).for_each(|i| data.y[(i, 0)] = problem.rng.random_range(0..classes) as f64);
        }
        let q = random_q(draw.m, latents, false, true, &mut problem.rng);
        let mean = sparsegp::means::by_name("zero", draw.d, latents).unwrap();
        let method = find("svgp").unwrap().method;
        let mut model = Model { likelihood, mean, method, q: Some(q), ..problem.model.clone() };
        for own_kernels in [false, true] {
            if own_kernels {
                model.kernels = (0..latents).map(|_| model.kernels[0].clone()).collect();
                for (l, kernel) in model.kernels.iter_mut().enumerate() {
                    kernel.initialise(&[0.5 + 0.2 * l as f64, 0.8], 1.3);
                }
            }
            let what = format!("{spec} {own_kernels}");
            let batch = few(&draw, &data);
            assert!(by_rows(&model, &batch), "{what}");
            agree(&model, &batch, None, &what);
            agree(&model, &data, None, &what);
        }
    }
}

#[test]
fn of_some_of_the_classes() {
    let draw = Draw { n: 30, m: 6, d: 2, p: 1, kernel: "rbf", mean: "zero", seed: 5 };
    let mut problem = problem(&draw);
    let likelihood = likelihoods::parse("logistic-softmax(classes=4)").unwrap();
    let latents = likelihood.latents();
    let mut data = problem.data.clone();
    (0..draw.n).for_each(|i| data.y[(i, 0)] = problem.rng.random_range(0..4) as f64);
    let q = random_q(draw.m, latents, false, true, &mut problem.rng);
    let mean = sparsegp::means::by_name("zero", draw.d, latents).unwrap();
    let method = find("svi").unwrap().method;
    let model = Model { likelihood, mean, method, q: Some(q), ..problem.model.clone() };
    let batch = few(&draw, &data);
    let mut chosen = vec![false; latents];
    (chosen[0], chosen[2]) = (true, true);
    agree(&model, &batch, Some(&chosen), "two of the classes");
}

/// Many rows go through M×M matrices made beforehand, few do not: minibatches of a division of the rows have on
/// average the gradient of all of them, whose largest part is returned too.
fn average(model: &Model, data: &sparsegp::data::InMemory, parts: usize) -> (f64, f64) {
    let want = Want::Adjoints { statistics: false };
    let points: usize = model.inducing_points().unwrap().nrows();
    let latents = if model.kernels.len() == 1 { model.q.as_ref().unwrap().latents() } else { 1 };
    assert!(3 * data.x.nrows() >= 5 * points * latents, "many rows");
    let whole = gradient(model, data, want, None);
    let mut mean = vec![0.0; whole.len()];
    for from in 0..parts {
        let batch = part(data, from, parts);
        assert_eq!(batch.rows() * parts, data.x.nrows());
        assert!(3 * batch.rows() < 5 * points * latents, "few rows");
        let own = gradient(model, &batch, want, None);
        mean.iter_mut().zip(&own).for_each(|(m, v)| *m += v / parts as f64);
    }
    let largest = whole.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let error = whole.iter().zip(&mean).fold(0.0_f64, |m, (a, b)| m.max((a - b).abs()));
    (error, largest)
}

#[test]
fn of_many_rows_are_the_average_of_few() {
    for spec in ["gaussian", "student-t", "softmax(classes=3)", "heteroscedastic", "tsvgp"] {
        let draw = Draw { n: 120, m: 7, d: 2, p: 1, kernel: "matern52", mean: "zero", seed: 31 };
        let mut problem = problem(&draw);
        let mut data = problem.data.clone();
        let sites = spec == "tsvgp";
        let likelihood = likelihoods::parse(if sites { "poisson" } else { spec }).unwrap();
        let latents = likelihood.latents();
        if spec.starts_with("softmax") || sites {
            (0..draw.n).for_each(|i| data.y[(i, 0)] = problem.rng.random_range(0..3) as f64);
        }
        let method = find(if sites { "tsvgp" } else { "svgp" }).unwrap().method;
        let q = match sites {
            true => Variational::sites(draw.m, latents, Tying::Natural),
            false => random_q(draw.m, latents, false, true, &mut problem.rng),
        };
        let mean = sparsegp::means::by_name("linear", draw.d, latents).unwrap();
        let mut model = Model { likelihood, mean, method, q: Some(q), ..problem.model.clone() };
        if sites {
            let method = Uncollapsed::of(model.method).unwrap();
            let mut step = method.step(&model, &Cpu::default(), &data, Want::Statistics).unwrap();
            step.natural(&mut model, 0.7).unwrap();
        }
        let (error, largest) = average(&model, &data, 12);
        assert!(error < 1e-12 * largest, "{spec}: {error} of {largest}");
    }
}

/// Inducing covariances of condition 10⁷ and a q far narrower than the prior.
#[test]
fn of_many_rows_where_inducing_points_say_all() {
    let draw = Draw { n: 400, m: 40, d: 1, p: 1, kernel: "rbf", mean: "zero", seed: 17 };
    let mut problem = problem(&draw);
    problem.model.kernels[0].initialise(&[5.0], 1.7);
    problem.model.jitter = Jitter::default();
    let wide = random_q(draw.m, 1, false, true, &mut problem.rng);
    let mean = Mat::from_fn(draw.m, 1, |i, _| wide.first.value()[i]);
    let root = Mat::from_fn(draw.m, draw.m, |i, j| 1e-4 * wide.root(0)[(i, j)]);
    let q = Variational::new(mean.as_ref(), &[root], false, true).unwrap();
    let model = with_q(&problem, "svgp", q);
    let (error, largest) = average(&model, &problem.data, 10);
    println!("{error} of {largest}");
    assert!(error < 1e-10 * largest, "{error} of {largest}");
}

/// Sums over several blocks of rows, on several threads.
#[test]
fn of_many_rows() {
    let draw = Draw { n: 9000, m: 5, d: 2, p: 2, kernel: "matern32", mean: "zero", seed: 8 };
    let mut problem = problem(&draw);
    let q = random_q(draw.m, draw.p, false, true, &mut problem.rng);
    let model = with_q(&problem, "svgp2025", q);
    agree(&model, &problem.data, None, "many rows");
}

/// Of whitened sites the rows give Ψ; others have only statistics.
#[test]
fn of_sites() {
    let draw = Draw { n: 12, m: 9, d: 2, p: 1, kernel: "rbf", mean: "zero", seed: 6 };
    let problem = problem(&draw);
    for tying in [Tying::Whitened, Tying::Natural, Tying::Kernel] {
        let mut model = with_q(&problem, "tsvgp", Variational::sites(draw.m, draw.p, tying));
        let method = Uncollapsed::of(model.method).unwrap();
        let mut step =
            method.step(&model, &Cpu::default(), &problem.data, Want::Statistics).unwrap();
        step.natural(&mut model, 0.7).unwrap();
        agree(&model, &problem.data, None, &format!("{tying:?}"));
    }
}

/// One step in the same memory, whatever was asked of it before, and of however many rows.
#[test]
fn memory_leaves_no_trace() {
    let draw = Draw { n: 30, m: 6, d: 2, p: 2, kernel: "matern52", mean: "zero", seed: 9 };
    for method in ["svgp", "svgp2025"] {
        let mut problem = problem(&draw);
        let q = random_q(draw.m, draw.p, false, true, &mut problem.rng);
        let model = with_q(&problem, method, q);
        let method = Uncollapsed::of(model.method).unwrap();
        let (few, many) = (part(&problem.data, 1, 5), part(&problem.data, 0, 1));
        let mut step = Step::default();
        let wants = [
            Want::Adjoints { statistics: false },
            Want::Statistics,
            Want::Gradients,
            Want::Adjoints { statistics: true },
            Want::Value,
        ];
        for (i, first) in wants.into_iter().enumerate() {
            for then in wants {
                let (before, data) = if i % 2 == 0 { (&few, &many) } else { (&many, &few) };
                for (want, data) in [(first, before), (then, data), (then, before)] {
                    method.renew(&mut step, &model, &Cpu::default(), data, want).unwrap();
                    let natural = step.natural_gradients();
                    if want.gradients() {
                        let mut own = vec![f64::NAN; model.num_params()];
                        step.gradient(&model, &mut own);
                        own.push(step.value);
                        assert_eq!(own, gradient(&model, data, want, None), "{first:?} {then:?}");
                    }
                    let mut fresh = Step::default();
                    method.renew(&mut fresh, &model, &Cpu::default(), data, want).unwrap();
                    assert_eq!(natural, fresh.natural_gradients(), "{first:?} {then:?}");
                }
            }
        }
    }
}
