//! Training at the best sites for every point: sites and hyperparameters together.

use crate::stochastic::{dataset, draws};
use crate::support::{fit, options, prepare};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions};
use sparsegp::model::Model;
use sparsegp::train::{EmOptions, TrainOptions, train};

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
        let count = if likelihood.starts_with("softmax") { 3 } else { 1 };
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
