//! Trainings on all rows resume from checkpoints to the same bits.

use crate::support::{bits, fit, options, table};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted};
use sparsegp::linalg::Mat;
use sparsegp::optim::AdamOptions;
use sparsegp::samplers::gibbs::GibbsOptions;
use sparsegp::train::{Event, Observer, OptimiserKind, TracePoint};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Ends a training after so many iterations, or in the middle of one, after so many looks at the flag.
struct Ending {
    iterations: usize,
    looks: Cell<usize>,
}

impl Observer for Ending {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Iteration(point) if point.iteration >= self.iterations => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn interrupted(&self) -> bool {
        self.looks.set(self.looks.get().saturating_sub(1));
        self.looks.get() == 0
    }
}

fn after(iterations: usize) -> Ending {
    Ending { iterations, looks: Cell::new(usize::MAX) }
}

fn in_the_middle(looks: usize) -> Ending {
    Ending { iterations: usize::MAX, looks: Cell::new(looks) }
}

/// A way to train, and where it is ended.
fn cases() -> Vec<(&'static str, FitOptions)> {
    let all_rows = |method: &str, iterations| FitOptions {
        batches: None,
        // whose evaluations would be counted too
        pilot: 0,
        inducing: (!["tvgp", "exact", "vecchia(neighbours=6)"].contains(&method)).then_some(8),
        ..options(method, iterations)
    };
    let mut adam = all_rows("titsias2025", 25);
    adam.train.optimiser =
        OptimiserKind::Adam(AdamOptions { learning_rate: 0.05, ..AdamOptions::default() });
    let mut classes = all_rows("tsvgp", 40);
    classes.likelihood = Some("student-t".into());
    classes.train.em.m_steps = 3;
    let mut dense = all_rows("tvgp", 30);
    dense.likelihood = Some("laplace".into());
    dense.train.em.m_steps = 4;
    vec![
        ("exact", all_rows("exact", 30)),
        ("vecchia", all_rows("vecchia(neighbours=6)", 60)),
        ("full-scale", all_rows("full-scale(neighbours=6)", 40)),
        ("titsias2025", all_rows("titsias2025", 25)),
        ("Adam", adam),
        ("svgp", all_rows("svgp", 20)),
        ("rsvgp", all_rows("rsvgp", 12)),
        ("tsvgp", classes),
        ("tvgp", dense),
    ]
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("sparsegp-whole-{}-{name}", std::process::id()))
}

fn with(dataset: &Dataset, options: &FitOptions, observer: &mut dyn Observer) -> Fitted {
    sparsegp::fit::fit(dataset, options, &Cpu::default(), observer).expect("a fit")
}

/// A trace but for its seconds.
fn timeless(fitted: &Fitted) -> Vec<TracePoint> {
    let report = fitted.report.as_ref().expect("a report");
    report.trace.iter().map(|p| TracePoint { seconds: 0.0, ..p.clone() }).collect()
}

#[test]
fn an_interrupted_training_resumes_to_the_same_bits() {
    let dataset = table(60, 2);
    for (name, options) in cases() {
        let whole = fit(&dataset, &options).expect("a fit");
        let report = whole.report.as_ref().expect("a report");
        assert!(report.iterations > 10, "{name}: {}", report.iterations);
        let path = file(name);
        let kept = FitOptions { checkpoint: Some(path.clone()), ..options.clone() };
        // at the end of an iteration, twice; and in the middle of one
        // (rounds of sites look more often, and only whole ones are gone on from)
        let looks = match name {
            "tsvgp" => 70,
            "tvgp" => 90,
            _ => 12,
        };
        for mut endings in [vec![after(5), after(9)], vec![in_the_middle(looks)]] {
            let _ = std::fs::remove_file(&path);
            for ending in &mut endings {
                let part = with(&dataset, &kept, ending);
                assert!(part.report.expect("a report").iterations < report.iterations, "{name}");
                assert!(path.exists(), "{name}");
            }
            let resumed = with(&dataset, &kept, &mut ());
            let own = resumed.report.as_ref().expect("a report");
            assert_eq!(bits(&resumed.model), bits(&whole.model), "{name}");
            assert_eq!(own.objective.to_bits(), report.objective.to_bits(), "{name}");
            assert_eq!(
                (own.iterations, &own.stopped),
                (report.iterations, &report.stopped),
                "{name}"
            );
            assert_eq!(timeless(&resumed), timeless(&whole), "{name}");
            // what has ended stays as it is
            let again = with(&dataset, &kept, &mut ());
            assert_eq!(bits(&again.model), bits(&whole.model), "{name}");
        }
        let _ = std::fs::remove_file(&path);
    }
}

/// Where the most iterations end the climb at the best sites, the climb continues, with its memory.
#[test]
fn more_iterations_continue_within_the_climb() {
    let dataset = table(60, 2);
    let path = file("climb");
    for (name, options) in cases().into_iter().filter(|(name, _)| ["tsvgp", "tvgp"].contains(name))
    {
        let _ = std::fs::remove_file(&path);
        let at_most = |max_iterations| {
            let mut options = FitOptions { checkpoint: Some(path.clone()), ..options.clone() };
            options.train.max_iterations = max_iterations;
            options
        };
        // two rounds of 3 or 4 iterations come before it
        for iterations in [10, 14] {
            let part =
                fit(&dataset, &at_most(iterations)).expect("a fit").report.expect("a report");
            assert!(part.iterations == iterations && !part.converged, "{name}: {}", part.stopped);
        }
        let longer = fit(&dataset, &at_most(20)).expect("a fit");
        let mut options = options.clone();
        options.train.max_iterations = 20;
        let at_once = fit(&dataset, &options).expect("a fit");
        assert_eq!(bits(&longer.model), bits(&at_once.model), "{name}");
        assert_eq!(timeless(&longer), timeless(&at_once), "{name}");
    }
    let _ = std::fs::remove_file(&path);
}

#[test]
fn more_iterations_may_be_asked_for_and_other_trainings_are_refused() {
    let dataset = table(40, 1);
    let path = file("more");
    let _ = std::fs::remove_file(&path);
    let at_most = |iterations| FitOptions {
        checkpoint: Some(path.clone()),
        ..options("titsias2025", iterations)
    };
    fit(&dataset, &at_most(3)).expect("a fit");
    let longer = fit(&dataset, &at_most(12)).expect("a fit");
    let at_once = fit(&dataset, &options("titsias2025", 12)).expect("a fit");
    assert_eq!(bits(&longer.model), bits(&at_once.model));
    let others = [
        (table(41, 1), at_most(12), "other rows"),
        (table(40, 1), FitOptions { seed: 9, ..at_most(12) }, "another seed"),
        (table(40, 1), FitOptions { kernel: "matern52".into(), ..at_most(12) }, "kernel"),
        (table(40, 1), FitOptions { method: "svgp".into(), ..at_most(12) }, "method"),
        (
            table(40, 1),
            FitOptions { set: vec![("likelihood.variance".into(), vec![0.3])], ..at_most(12) },
            "values given",
        ),
    ];
    for (dataset, options, word) in others {
        let error = fit(&dataset, &options).unwrap_err().to_string();
        assert!(
            error.contains("not a checkpoint of this training") && error.contains(word),
            "{error}"
        );
    }
    // damage is an error, not a panic
    let mut content = std::fs::read(&path).expect("a file");
    content.truncate(content.len() / 2);
    std::fs::write(&path, content).expect("space");
    let error = fit(&dataset, &at_most(12)).unwrap_err().to_string();
    assert!(error.contains("not a checkpoint of this training"), "{error}");
    let _ = std::fs::remove_file(&path);
}

/// A checkpoint is of the cells that it was made of: targets, weights and further numbers count, whatever the scaler is.
#[test]
fn a_checkpoint_of_other_cells_is_refused() {
    let rows = || {
        let x = Mat::from_fn(40, 1, |i, _| i as f64 / 4.0);
        let y = Mat::from_fn(40, 1, |i, _| f64::from((i as f64 / 6.0).sin() > 0.0));
        let mut rows = InMemory::new(x, y).expect("rows");
        rows.weights = (0..40).map(|i| 1.0 + f64::from(i % 2 == 0)).collect();
        rows
    };
    let path = file("cells");
    let stochastic = BatchOptions { size: 10, training: Default::default() };
    for (likelihood, method, batches) in [
        ("bernoulli", "svgp", None),
        ("bernoulli", "svgp", Some(stochastic)),
        ("bernoulli(link=logit)", "cavi", None),
        ("poisson", "svgp", None),
    ] {
        let kept = FitOptions {
            likelihood: Some(likelihood.into()),
            checkpoint: Some(path.clone()),
            batches: batches.clone(),
            pilot: 0,
            inducing: Some(5),
            ..options(method, 5)
        };
        let _ = std::fs::remove_file(&path);
        let of = |rows: InMemory| Dataset::from_rows(rows, false).expect("a table");
        fit(&of(rows()), &kept).expect("a fit");
        fit(&of(rows()), &kept).expect("the end of the same training");
        type Change = fn(&mut InMemory);
        let changes: [(&str, Change); 4] = [
            ("targets", |own| own.y.col_as_slice_mut(0).iter_mut().for_each(|y| *y = 1.0 - *y)),
            ("weights", |own| own.weights.reverse()),
            ("inputs", |own| own.x.col_as_slice_mut(0).swap(3, 4)),
            ("exposures", |own| own.extra = vec![2.0; 40]),
        ];
        for (what, change) in changes {
            if what == "exposures" && likelihood != "poisson" {
                continue;
            }
            let mut other = rows();
            change(&mut other);
            let error = fit(&of(other), &kept).expect_err(what).to_string();
            assert!(error.contains("not a checkpoint of this training (cells"), "{what}: {error}");
        }
    }
    let _ = std::fs::remove_file(&path);
}

/// Default priors are about the values of the start, wherever a training before the chains was interrupted.
#[test]
fn assumed_priors_are_those_of_the_start() {
    let dataset = table(30, 1);
    let mut own = FitOptions { pilot: 0, ..options("gibbs", 20) };
    own.likelihood = Some("student-t".into());
    own.inducing = None;
    own.gibbs =
        GibbsOptions { chains: 1, burn_in: 2, draws: 3, hyperparameters: true, ..own.gibbs };
    let priors = |fitted: &Fitted| -> Vec<String> {
        fitted.model.params().iter().map(|(path, p)| format!("{path} {:?}", p.prior)).collect()
    };
    let whole = fit(&dataset, &own).expect("a fit");
    let path = file("priors");
    let _ = std::fs::remove_file(&path);
    let kept = FitOptions { checkpoint: Some(path.clone()), ..own };
    let part = with(&dataset, &kept, &mut in_the_middle(12));
    assert!(part.posterior.draws().is_empty());
    let resumed = with(&dataset, &kept, &mut ());
    assert_eq!(priors(&resumed), priors(&whole));
    assert_eq!(bits(&resumed.model), bits(&whole.model));
    let _ = std::fs::remove_file(&path);
}
