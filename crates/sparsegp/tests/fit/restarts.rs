//! Trainings from several starts.

use crate::support::{bits, fit, options, value};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted};
use sparsegp::linalg::Mat;
use sparsegp::train::{Event, Observer};
use std::ops::ControlFlow;

/// A fast wave, which is taken for noise from a start with the lengthscales that the inputs' spreads suggest: its own
/// is a tenth of that.
fn wave(n: usize, speed: f64) -> Dataset {
    let x = Mat::from_fn(n, 1, |i, _| 6.0 * (i as f64 * 0.754_877).fract());
    let y = Mat::from_fn(n, 1, |i, _| {
        let noise = ((i as f64 * 12.9898).sin() * 43_758.545).fract();
        (speed * x[(i, 0)]).sin() + 0.6 * (noise.abs() - 0.5)
    });
    Dataset::from_arrays(x, y, true).expect("a table")
}

fn with(method: &str, restarts: usize) -> FitOptions {
    FitOptions { restarts, inducing: (method != "exact").then_some(30), ..options(method, 200) }
}

fn objective(fitted: &Fitted) -> f64 {
    fitted.report.as_ref().expect("a report").objective
}

#[test]
fn restarts_find_what_the_first_start_misses() {
    let dataset = wave(60, 4.0);
    let with = |restarts| FitOptions { seed: 0, pilot: 0, ..with("exact", restarts) };
    let first = fit(&dataset, &with(0)).expect("a fit");
    let best = fit(&dataset, &with(6)).expect("a fit");
    // all noise: −½·60·(1 + log 2π) = −85.1
    assert!((objective(&first) + 85.136).abs() < 0.01, "{}", objective(&first));
    assert!(objective(&best) > objective(&first) + 50.0, "{}", objective(&best));
    assert!(value(&best.model, "likelihood.variance")[0] < 0.3);
    assert!(value(&best.model, "kernel.lengthscales")[0] < 0.5);
    let starts = &best.report.as_ref().expect("a report").starts;
    assert_eq!((starts.len(), starts[0].to_bits()), (7, objective(&first).to_bits()));
    let largest = starts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(largest, objective(&best));
    assert!(first.report.expect("a report").starts.is_empty());
}

/// The same without restarts, by the common scale of lengthscales that a few rows like best; given ones stay.
#[test]
fn the_first_lengthscales_are_those_that_explain_the_rows() {
    let dataset = wave(60, 4.0);
    for (kernel, least) in [("rbf", -30.0), ("matern52", -40.0), ("rbf + matern32", -30.0)] {
        let own = FitOptions { kernel: kernel.into(), ..with("exact", 0) };
        let fitted = fit(&dataset, &own).expect("a fit");
        assert!(objective(&fitted) > least, "{kernel}: {}", objective(&fitted));
    }
    let sparse = fit(&dataset, &with("titsias2025", 0)).expect("a fit");
    assert!(objective(&sparse) > -40.0, "{}", objective(&sparse));
    // much noise is not a function of short lengthscales
    let x = Mat::from_fn(150, 1, |i, _| 6.0 * (i as f64 * 0.754_877).fract());
    let y = Mat::from_fn(150, 1, |i, _| {
        let noise = ((i as f64 * 12.9898).sin() * 43_758.545).fract();
        (0.7 * x[(i, 0)]).sin() + 9.0 * (noise.abs() - 0.5)
    });
    let noisy = Dataset::from_arrays(x, y, true).expect("a table");
    let fitted = fit(&noisy, &with("exact", 0)).expect("a fit");
    assert_eq!(fitted.report.as_ref().expect("a report").judged[0].start, "spreads of the inputs");
    let plain = fit(&noisy, &FitOptions { pilot: 0, ..with("exact", 0) }).expect("a fit");
    assert!(objective(&fitted) > objective(&plain) - 0.1, "{}", objective(&fitted));
    let set = vec![("kernel.lengthscales".into(), vec![2.5])];
    let given = fit(&dataset, &FitOptions { set, ..with("exact", 0) }).expect("a fit");
    // a constant at −85.136, which other starts have mended
    assert!(objective(&given) > -30.0, "{}", objective(&given));
    let judged = &given.report.as_ref().expect("a report").judged;
    assert!(judged.iter().all(|own| !own.start.contains('×')), "{judged:?}");
}

#[test]
fn a_seed_gives_the_same_bits_and_more_restarts_are_no_worse() {
    let dataset = wave(40, 8.0);
    let all: Vec<Fitted> =
        [0, 1, 4].map(|restarts| fit(&dataset, &with("exact", restarts)).expect("a fit")).into();
    assert!(objective(&all[0]) <= objective(&all[1]) && objective(&all[1]) <= objective(&all[2]));
    let again = fit(&dataset, &with("exact", 4)).expect("a fit");
    assert_eq!(bits(&again.model), bits(&all[2].model));
    // a start is that of its number, however many others there are
    let starts = |of: &Fitted| of.report.as_ref().expect("a report").starts.clone();
    assert_eq!(starts(&all[1]), starts(&all[2])[..2]);
    let other = FitOptions { seed: 99, ..with("exact", 4) };
    assert_ne!(starts(&fit(&dataset, &other).expect("a fit")), starts(&again));
}

/// Sparse methods choose their inducing points again; minibatches and sites count by their bounds
/// on all rows.
#[test]
fn every_way_of_training_has_restarts() {
    let dataset = wave(60, 8.0);
    for method in ["titsias2025", "tsvgp", "svgp"] {
        let mut own = with(method, 3);
        own.train.max_iterations = 60;
        if let Some(batches) = &mut own.batches {
            batches.training.epochs = Some(60);
        }
        let best = fit(&dataset, &own).expect("a fit");
        let first = fit(&dataset, &FitOptions { restarts: 0, ..own.clone() }).expect("a fit");
        let starts = best.report.as_ref().expect("a report").starts.clone();
        assert_eq!(starts.len(), 4, "{method}");
        assert_eq!(starts[0].to_bits(), objective(&first).to_bits(), "{method}");
        assert!(objective(&best) >= objective(&first), "{method}");
    }
}

/// What is frozen or has nothing to draw stays.
#[test]
fn frozen_values_stay_in_every_start() {
    let mut own = with("exact", 3);
    own.set = vec![("likelihood.variance".into(), vec![0.07])];
    own.freeze = vec!["likelihood".into()];
    let fitted = fit(&wave(40, 8.0), &own).expect("a fit");
    assert_eq!(value(&fitted.model, "likelihood.variance"), [0.07]);
}

/// Ends all after so many iterations; counts the restarts that it receives.
struct Until {
    left: usize,
    restarts: Vec<(usize, usize)>,
    ended: bool,
}

impl Observer for Until {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        if let Event::Restart { restart, of, best } = event {
            assert!(best.is_some());
            self.restarts.push((restart, of));
        }
        if matches!(event, Event::Iteration(_)) {
            self.left = self.left.saturating_sub(1);
            self.ended |= self.left == 0;
        }
        if self.ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn interrupted(&self) -> bool {
        self.ended
    }
}

#[test]
fn an_interruption_keeps_the_best_and_checkpoints_resume_to_the_same_bits() {
    let dataset = wave(50, 8.0);
    let whole = fit(&dataset, &with("exact", 3)).expect("a fit");
    let folder = tempfile::tempdir().expect("a folder");
    for stop in [3, 40, 90] {
        let path = folder.path().join(format!("checkpoint-{stop}"));
        let mut own = with("exact", 3);
        own.checkpoint = Some(path.clone());
        own.train.checkpoint_seconds = 0.0;
        let mut until = Until { left: stop, restarts: Vec::new(), ended: false };
        let ended = sparsegp::fit::fit(&dataset, &own, &Cpu::default(), &mut until);
        assert!(objective(&ended.expect("what there was")).is_finite());
        assert!(path.exists());
        let gone_on = fit(&dataset, &own).expect("a fit");
        assert_eq!(bits(&gone_on.model), bits(&whole.model), "after {stop} iterations");
        let starts = |of: &Fitted| of.report.as_ref().expect("a report").starts.clone();
        assert_eq!(starts(&gone_on), starts(&whole));
        for restart in 1..=3 {
            let own = folder.path().join(format!("checkpoint-{stop}.restart-{restart}"));
            assert!(own.exists(), "{restart}");
        }
    }
    let mut until = Until { left: usize::MAX, restarts: Vec::new(), ended: false };
    sparsegp::fit::fit(&dataset, &with("exact", 3), &Cpu::default(), &mut until).expect("a fit");
    assert_eq!(until.restarts, [(1, 3), (2, 3), (3, 3)]);
}
