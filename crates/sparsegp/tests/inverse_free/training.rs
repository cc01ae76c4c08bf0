//! Training: where it ends, that it is reproducible, and what is refused.

use crate::problem::{Draw, problem};
use sparsegp::data::{Batches, ShuffledInMemory};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, fit};
use sparsegp::inverse_free::{Estimate, Schedule, SolverOptions, Traces};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::methods::{Following, Uncollapsed, find};
use sparsegp::optim::{AdamOptions, PlateauRate};
use sparsegp::train::{Pace, StochasticOptions, TrainOptions, TrainReport};

fn waves(n: usize) -> (Mat<f64>, Mat<f64>) {
    let x = Mat::from_fn(n, 2, |i, j| (0.61 * i as f64 * (1.0 + j as f64)).sin() * 2.0);
    let y = Mat::from_fn(n, 1, |i, _| {
        (1.7 * x[(i, 0)]).sin() + 0.4 * x[(i, 1)] + 0.1 * (7.3 * i as f64).cos()
    });
    (x, y)
}

fn options(method: &str) -> FitOptions {
    FitOptions {
        method: method.into(),
        inducing: Some(15),
        pilot: 0,
        seed: 4,
        train: TrainOptions { max_iterations: 150, ..TrainOptions::default() },
        ..FitOptions::default()
    }
}

#[test]
fn on_all_rows_both_go_the_same_way() {
    let (x, y) = waves(120);
    let data = Dataset::from_arrays(x, y, true).unwrap();
    let run = |method: &str| {
        let options = FitOptions { batches: None, ..options(method) };
        fit(&data, &options, &Cpu::default(), &mut ()).unwrap()
    };
    let (l, r) = (run("lsvgp"), run("rsvgp"));
    let trace = |f: &sparsegp::fit::Fitted| -> Vec<f64> {
        f.report.as_ref().unwrap().trace.iter().map(|point| point.objective).collect()
    };
    let (of_l, of_r) = (trace(&l), trace(&r));
    // rounding is all that tells them apart; L-BFGS makes more of it with time
    for (at, (l, r)) in of_l.iter().zip(&of_r).take(20).enumerate() {
        assert!((l - r).abs() < 1e-6 * (1.0 + l.abs()), "{at}: {l} {r}");
    }
    let (last_l, last_r) = (of_l[of_l.len() - 1], of_r[of_r.len() - 1]);
    assert!(last_l > of_l[0] + 100.0 && (last_l - last_r).abs() < 0.1, "{last_l} {last_r}");
    // T has followed: what is left says so
    let residual = r.report.as_ref().unwrap().diagnostics.residual.unwrap();
    assert!(residual < 1e-6, "{residual}");
    assert!(l.report.as_ref().unwrap().diagnostics.residual.is_none());
}

/// A training by minibatches.
fn by_batches(
    schedule: Schedule,
    traces: Traces,
    seed: u64,
) -> (sparsegp::model::Model, TrainReport) {
    let draw = Draw { n: 60, m: 10, d: 2, p: 2, kernel: "rbf", mean: "constant", seed: 8 };
    let mut own = problem(&draw);
    let mut model = crate::support::pseudo(
        &mut own,
        2,
        sparsegp::inverse_free::Preconditioner::Inverse,
        Some(0.2),
    );
    if let Some(root) = model.q.as_mut().and_then(|q| q.root.as_mut()) {
        root.frozen = true;
    }
    let training = StochasticOptions {
        epochs: Some(30),
        adam: AdamOptions { learning_rate: 0.02, ..AdamOptions::default() },
        pace: Pace {
            frozen: 40,
            beta1: Some(0.99),
            inducing: Some(PlateauRate { factor: 0.9, patience: 10, least: 1e-4 }),
            all: Some(PlateauRate { factor: 0.95, patience: 30, least: 1e-4 }),
        },
        following: Following {
            solver: SolverOptions { schedule, ..SolverOptions::default() },
            traces,
            seed,
            ..Following::default()
        },
        ..StochasticOptions::default()
    };
    let mut batches = ShuffledInMemory::new(&own.data, 20, 1).unwrap();
    let engine = Cpu::default();
    let batches: &mut dyn Batches = &mut batches;
    let report = sparsegp::train::train_batches(
        &mut model,
        &engine,
        batches,
        &training,
        Default::default(),
        &mut (),
    );
    (model, report.unwrap())
}

fn all(model: &sparsegp::model::Model) -> Vec<f64> {
    model.params().iter().flat_map(|(_, p)| p.value().to_vec()).collect()
}

#[test]
fn minibatches_are_reproducible_and_every_schedule_gets_there() {
    let probes = Traces::Probes(4, Estimate::LSpace);
    let first = by_batches(Schedule::Adaptive, probes, 3);
    assert_eq!(all(&first.0), all(&by_batches(Schedule::Adaptive, probes, 3).0));
    let other = by_batches(Schedule::Adaptive, probes, 4);
    assert!(all(&first.0) != all(&other.0), "the seed of the probes has no effect");
    let exact = by_batches(Schedule::Adaptive, Traces::Exact, 3).1.objective;
    for (schedule, traces) in [
        (Schedule::LOG_LINEAR, Traces::Exact),
        (Schedule::LineSearch, Traces::Exact),
        (Schedule::Constant(1.0), Traces::Exact),
        (Schedule::Adaptive, probes),
    ] {
        let objective = by_batches(schedule, traces, 3).1.objective;
        assert!((objective - exact).abs() < 0.1 * exact.abs(), "{schedule:?}: {objective} {exact}");
    }
}

#[test]
fn inducing_points_wait_and_then_move() {
    let draw = Draw { n: 40, m: 6, d: 1, p: 1, kernel: "rbf", mean: "zero", seed: 2 };
    let mut own = problem(&draw);
    let inverse = sparsegp::inverse_free::Preconditioner::Inverse;
    let start = crate::support::pseudo(&mut own, 1, inverse, None);
    let run = |epochs: usize, frozen: usize| {
        let training = StochasticOptions {
            epochs: Some(epochs),
            pace: Pace { frozen, ..Pace::default() },
            ..StochasticOptions::default()
        };
        let mut batches = ShuffledInMemory::new(&own.data, 20, 1).unwrap();
        let mut model = start.clone();
        let (engine, around) = (Cpu::default(), Default::default());
        sparsegp::train::train_batches(
            &mut model,
            &engine,
            &mut batches,
            &training,
            around,
            &mut (),
        )
        .unwrap();
        model
    };
    let z = |model: &sparsegp::model::Model| model.inducing[0].value().to_vec();
    // two batches make an epoch
    let waited = run(5, 10);
    assert_eq!(z(&waited), z(&start));
    assert!(waited.kernel().params()[0].1.value() != start.kernel().params()[0].1.value());
    assert!(z(&run(6, 10)) != z(&start));
}

#[test]
fn a_saved_model_predicts_the_same() {
    let (x, y) = waves(150);
    let data = Dataset::from_arrays(x.clone(), y, true).unwrap();
    for method in ["lsvgp", "rsvgp"] {
        let mut batches = BatchOptions::of(find(method).unwrap().method);
        batches.training.epochs = Some(20);
        let options = FitOptions { batches: Some(batches), ..options(method) };
        let fitted = fit(&data, &options, &Cpu::default(), &mut ()).unwrap();
        let read = io::from_bytes(&io::to_bytes(&fitted).unwrap()).unwrap();
        assert_eq!(all(&read.model), all(&fitted.model), "{method}");
        let at = |f: &sparsegp::fit::Fitted| f.posterior.predict_f(x.as_ref()).unwrap();
        assert_eq!(at(&read), at(&fitted), "{method}");
    }
}

#[test]
fn the_paper_s_recipe_is_the_default_of_the_method() {
    let recipe = BatchOptions::of(find("rsvgp").unwrap().method);
    assert_eq!((recipe.size, recipe.training.epochs(130)), (100, 154));
    let training = &recipe.training;
    let rate = training.adam.learning_rate;
    assert_eq!((rate, training.last_rate, training.natural), (5e-3, 1.0, None));
    assert!((training.inducing_rate * rate - 1e-3).abs() < 1e-18);
    assert_eq!((training.pace.frozen, training.pace.beta1), (1000, Some(0.99)));
    let falls = PlateauRate { factor: 0.95, patience: 100, least: 1e-6 };
    assert_eq!(training.pace.inducing, Some(falls));
    let solver = training.following.solver;
    assert_eq!((solver.tolerance, solver.most), (5e-3, 100));
    assert_eq!(training.following.traces, Traces::Probes(256, Estimate::LSpace));
    assert_eq!(BatchOptions::of(find("svgp").unwrap().method).size, BatchOptions::default().size);
}

#[test]
fn what_cannot_be_is_refused_with_the_remedy() {
    let draw = Draw { n: 20, m: 4, d: 1, p: 2, kernel: "rbf", mean: "zero", seed: 2 };
    let mut own = problem(&draw);
    let inverse = sparsegp::inverse_free::Preconditioner::Inverse;
    let mut model = crate::support::pseudo(&mut own, 2, inverse, Some(0.1));
    let engine = Cpu::default();
    let method = Uncollapsed::of(model.method).unwrap();
    let want = sparsegp::engine::Want::Gradients;
    let mut step = method.step(&model, &engine, &own.data, want).unwrap();
    let error = step.natural(&mut model, 0.5).unwrap_err().to_string();
    assert!(error.contains("Adam"), "{error}");
    let mut wrong = model.clone();
    wrong.set("q.t_sqrt", &[-1.0]).unwrap();
    let error = wrong.evaluate(&engine, &own.data).unwrap_err().to_string();
    assert!(error.contains("q.t_sqrt") && error.contains("-1"), "{error}");
    let mut several = model.clone();
    several.kernels = vec![model.kernels[0].clone(), model.kernels[0].clone()];
    let error = several.evaluate(&engine, &own.data).unwrap_err().to_string();
    assert!(error.contains("svgp") && error.contains("2 kernels"), "{error}");
    // an L that an optimiser moves is left to it
    let mut first = sparsegp::methods::Step::default();
    let value = sparsegp::engine::Want::Value;
    let mut left = model.clone();
    method.follow(&mut first, &mut left, &engine, &own.data, value, &Following::default()).unwrap();
    assert!(first.solved.is_none() && all(&left) == all(&model));
    if let Some(root) = model.q.as_mut().and_then(|q| q.root.as_mut()) {
        root.frozen = true;
    }
    // the variance criterion ends the steps of L earlier than a tiny residual does
    let solver = SolverOptions { tolerance: 1e-12, ..SolverOptions::default() };
    let mut steps = |slack: Option<f64>| {
        let how = Following { solver, slack, ..Following::default() };
        let mut own_model = model.clone();
        let want = sparsegp::engine::Want::Value;
        method.follow(&mut first, &mut own_model, &engine, &own.data, want, &how).unwrap();
        first.solved.unwrap().steps
    };
    assert!(steps(Some(1e-2)) < steps(None));
}
