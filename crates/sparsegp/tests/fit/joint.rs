//! Training at the best sites for every point: sites and hyperparameters together.

use crate::stochastic::{dataset, draws};
use crate::support::{fit, options, prepare};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{Dataset, FitOptions};
use sparsegp::methods::{Tvgp, Uncollapsed};
use sparsegp::model::Model;
use sparsegp::train::{EmOptions, TrainOptions, train};
use sparsegp::variational::Tying;

const CASES: [(&str, &str); 6] = [
    ("tsvgp", "bernoulli"),
    ("tsvgp", "student-t"),
    ("tsvgp", "poisson"),
    ("tvgp", "bernoulli"),
    ("tvgp", "laplace"),
    ("tsvgp", "softmax(classes=3)"),
];

fn rows(likelihood: &str) -> Dataset {
    let latents = |x: f64| -> Vec<f64> {
        let count = if likelihood.contains("classes=3") { 3 } else { 1 };
        (0..count).map(|k| 1.4 * (1.7 * x + 1.3 * f64::from(k)).sin()).collect()
    };
    dataset(draws(90, likelihood, 1.0, latents), false)
}

fn all_rows(method: &str, likelihood: &str, iterations: usize) -> FitOptions {
    FitOptions {
        batches: None,
        pilot: 0,
        likelihood: Some(likelihood.into()),
        inducing: (method == "tsvgp").then_some(9),
        ..options(method, iterations)
    }
}

/// All but the sites.
fn freeze(model: &mut Model, frozen: bool) {
    let own = model.params_mut().into_iter().filter(|(path, _)| !path.starts_with("q."));
    own.for_each(|(_, param)| param.frozen = frozen);
}

/// Moves the sites of `model` to their best, all else fixed, and returns the bound there.
fn at_the_best_sites(model: &Model, data: &Dataset, free: &[f64]) -> (Model, f64) {
    let mut settled = model.clone();
    settled.set_free_values(free);
    freeze(&mut settled, true);
    let em = EmOptions { e_steps: 3000, tolerance: 1e-14, ..EmOptions::default() };
    let options = TrainOptions { em, ..TrainOptions::default() };
    let report = train(&mut settled, &Cpu::default(), &*data.source, &options, &mut ());
    freeze(&mut settled, false);
    (settled, report.expect("a training").objective)
}

/// The envelope theorem, and that q stands where it must for it: the gradient at fixed sites is that of the bound at the
/// best sites.
#[test]
fn the_gradient_at_the_best_sites_is_that_at_fixed_sites() {
    for (method, likelihood) in CASES {
        let data = rows(likelihood);
        let (model, ..) = prepare(&data, &all_rows(method, likelihood, 0)).expect("a model");
        let free: Vec<f64> = model
            .free_values()
            .iter()
            .enumerate()
            .map(|(i, v)| v + 0.1 * (i as f64).cos())
            .collect();
        let (settled, _) = at_the_best_sites(&model, &data, &free);
        let (_, gradient) =
            settled.evaluate_free(&Cpu::default(), &*data.source).expect("a gradient");
        let scale = gradient.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        for (i, own) in gradient.iter().enumerate() {
            let at = |h: f64| {
                let mut moved = free.clone();
                moved[i] += h;
                at_the_best_sites(&settled, &data, &moved).1
            };
            let h = 1e-3;
            let slope = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            assert!(
                (own - slope).abs() < 1e-5 * scale,
                "{method} {likelihood} {i}: {own} for {slope}"
            );
        }
    }
}

/// Rounds to the end are the paper's way to the same optimum; they crawl, so the bound ends at theirs or above.
#[test]
fn together_they_end_no_lower_than_in_turn() {
    let mut gains = 0.0;
    for (method, likelihood) in CASES {
        let data = rows(likelihood);
        let together = all_rows(method, likelihood, 400);
        let mut in_turn = together.clone();
        in_turn.train.em.rounds = None;
        let [own, other] = [&together, &in_turn].map(|options| {
            let report = fit(&data, options).expect("a fit").report.expect("a report");
            let passed = report.trace.windows(2).all(|p| p[0].iteration < p[1].iteration);
            assert!(passed, "{method} {likelihood}: the trace counts on");
            report
        });
        // steps of q within the climb are counted, in the trace as in the report
        let last = own.trace.last().expect("a trace");
        let counted = 2 * last.iteration..=own.evaluations;
        assert!(counted.contains(&last.evaluations), "{counted:?} {}", last.evaluations);
        assert!(own.converged, "{method} {likelihood}: {}", own.stopped);
        let gain = own.objective - other.objective;
        assert!(gain > -0.02, "{method} {likelihood}: {} for {}", own.objective, other.objective);
        gains += gain.max(0.0);
    }
    assert!(gains > 0.05, "{gains}");
}

/// Sites after three steps from the start, at which latent functions have an average.
fn stepped(likelihood: &str, method: &str, tying: Tying) -> (Dataset, Model) {
    let data = rows(likelihood);
    let (mut model, ..) =
        prepare(&data, &FitOptions { tying, ..all_rows(method, likelihood, 0) }).expect("a model");
    for rate in [0.7, 0.9, 0.4] {
        match Tvgp::of(model.method) {
            Ok(own) => drop(own.step(&mut model, &*data.source, rate).expect("a step")),
            Err(_) => {
                let own = Uncollapsed::of(model.method).expect("sites");
                let step = own.step(&model, &Cpu::default(), &*data.source, Want::Statistics);
                step.expect("a pass").natural(&mut model, rate).expect("a step");
            }
        }
    }
    (data, model)
}

/// Bounds before and after, as the moved look has it and as one at the moved sites has, and the largest average of the
/// latent functions before and after.
fn centred(data: &Dataset, model: &mut Model) -> ([f64; 3], [f64; 2], [Vec<f64>; 2]) {
    let engine = Cpu::default();
    let average = |model: &Model| {
        let x = sparsegp::linalg::Mat::from_fn(5, 1, |i, _| -1.9 + 0.8 * i as f64);
        let posterior = model.posterior(&engine, &*data.source).expect("a posterior");
        let (mean, _) = posterior.predict_f(x.as_ref()).expect("predictions");
        let mut offset = sparsegp::linalg::Mat::zeros(5, mean.ncols());
        model.mean.evaluate(x.as_ref(), offset.as_mut());
        (0..5)
            .map(|i| {
                let sum: f64 = (0..mean.ncols()).map(|l| mean[(i, l)] - offset[(i, l)]).sum();
                (sum / mean.ncols() as f64).abs()
            })
            .fold(0.0, f64::max)
    };
    let before = average(model);
    let (values, slopes) = match Tvgp::of(model.method) {
        Ok(own) => {
            let mut look = own.look(model, &*data.source).expect("a look");
            let first = look.value;
            own.centre(&mut look, model);
            let again = own.look(model, &*data.source).expect("a look");
            ([first, look.value, again.value], [look.mean_slopes(), again.mean_slopes()])
        }
        Err(_) => {
            let own = Uncollapsed::of(model.method).expect("sites");
            let look = |model: &Model| {
                own.step(model, &engine, &*data.source, Want::Statistics).expect("a pass")
            };
            let mut step = look(model);
            let first = step.value;
            step.centre(model);
            let again = look(model);
            ([first, step.value, again.value], [step.mean_slopes(), again.mean_slopes()])
        }
    };
    (values, [before, average(model)], slopes)
}

/// Where only differences matter, latent functions of average 0 have the same likelihood and the least KL divergence.
#[test]
fn centred_sites_raise_the_bound_by_what_the_divergence_falls() {
    let tyings = Tying::ALL.map(|(_, tying)| ("tsvgp", tying));
    for (method, tying) in tyings.into_iter().chain([("tvgp", Tying::Untied)]) {
        for likelihood in ["softmax(classes=3)", "robust-max(classes=3)"] {
            let (data, mut model) = stepped(likelihood, method, tying);
            let what = format!("{method} {tying:?} {likelihood}");
            let ([first, moved, again], [before, after], [own, other]) = centred(&data, &mut model);
            assert!(before > 1e-3, "{what}: {before}");
            assert!(after < 1e-7 * before.max(1.0), "{what}: {after}");
            assert!(moved > first + 1e-4, "{what}: {first} {moved}");
            let close = |own: f64, other: f64, tolerance: f64| {
                (own - other).abs() <= tolerance * other.abs().max(1.0)
            };
            assert!(close(moved, again, 1e-9), "{what}: {moved} {again}");
            let mut pairs = own.iter().zip(&other);
            assert!(pairs.all(|(own, other)| close(*own, *other, 1e-6)), "{what}");
        }
    }
}

#[test]
fn where_more_than_differences_matters_sites_stay() {
    for (likelihood, method) in [
        ("logistic-softmax(classes=3)", "tsvgp"),
        ("logistic-softmax(classes=3)", "tvgp"),
        ("poisson", "tsvgp"),
    ] {
        let (data, mut model) = stepped(likelihood, method, Tying::Natural);
        let q = model.q.clone();
        let ([first, moved, _], ..) = centred(&data, &mut model);
        assert_eq!(first.to_bits(), moved.to_bits(), "{likelihood} {method}");
        assert!(model.q == q, "{likelihood} {method}");
    }
}
