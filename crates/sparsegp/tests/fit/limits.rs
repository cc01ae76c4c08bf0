//! Time limits of every way to train. Limits that are over at once make tests that do not depend on time.

use crate::support::{bits, fit, options, table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{FitOptions, Fitted, go_on};
use sparsegp::samplers::gibbs::GibbsOptions;
use sparsegp::train::{Event, Observer};
use std::ops::ControlFlow;

/// A limit that is over whenever somebody looks.
const OVER: Option<f64> = Some(1e-9);

fn cases() -> Vec<(&'static str, FitOptions)> {
    let whole = |method: &str| FitOptions { batches: None, ..options(method, 40) };
    let chains = FitOptions {
        likelihood: Some("student-t".into()),
        inducing: None,
        gibbs: GibbsOptions { chains: 1, draws: 20, burn_in: 10, ..GibbsOptions::default() },
        ..options("gibbs", 5)
    };
    let mut rounds = whole("tsvgp");
    rounds.likelihood = Some("student-t".into());
    rounds.train.em.m_steps = 3;
    vec![
        ("exact", options("exact", 40)),
        ("restarts", FitOptions { restarts: 3, ..options("exact", 40) }),
        ("titsias2025", options("titsias2025", 40)),
        ("svgp on all rows", whole("svgp")),
        ("rounds", rounds),
        ("minibatches", options("svgp", 40)),
        ("chains", chains),
    ]
}

fn said(fitted: &Fitted) -> (&str, bool, usize) {
    let report = fitted.report.as_ref().expect("a report");
    (&report.stopped, report.converged, report.iterations)
}

#[test]
fn every_training_ends_at_the_limit_with_what_it_has() {
    let data = table(60, 1);
    for (name, own) in cases() {
        let limited = FitOptions { time_limit: OVER, ..own.clone() };
        let fitted = fit(&data, &limited).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (stopped, converged, iterations) = said(&fitted);
        assert!(
            stopped.starts_with("stopped at the time limit of 0 s; the best"),
            "{name}: {stopped}"
        );
        assert!(!converged && iterations <= 1, "{name}: {iterations}");
        let report = fitted.report.as_ref().expect("a report");
        assert!(report.objective.is_finite() && report.starts.len() <= 1, "{name}");
        // what is not over changes nothing
        let ample =
            fit(&data, &FitOptions { time_limit: Some(1e6), ..own.clone() }).expect("a fit");
        let free = fit(&data, &own).expect("a fit");
        assert_eq!(bits(&ample.model), bits(&free.model), "{name}");
        assert_eq!(said(&ample), said(&free), "{name}");
    }
}

/// The choice of a kernel leaves the time to the training: with a limit that is over only the usual kernel and straight lines are
/// tried.
#[test]
fn a_limit_ends_the_choice_of_a_kernel() {
    let data = table(120, 1);
    let auto = FitOptions { kernel: "auto".into(), ..options("exact", 20) };
    let tried = |time_limit| {
        let fitted = fit(&data, &FitOptions { time_limit, ..auto.clone() }).expect("a fit");
        let kernels = fitted.report.expect("a report").kernels.expect("a choice");
        kernels.candidates.iter().map(|own| own.kernel.clone()).collect::<Vec<_>>()
    };
    let (few, all) = (tried(OVER), tried(Some(1e6)));
    assert!(few.len() <= 2 && few.iter().all(|own| own == "rbf" || own == "linear"), "{few:?}");
    assert!(all.len() > 3 && all == tried(None), "{all:?}");
}

/// Ends after some iterations.
struct After(usize);

impl Observer for After {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Iteration(point) if point.iteration >= self.0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// A run that the limit ends keeps what earlier runs had found, and the last one ends at the same bits as one without
/// interruptions.
#[test]
fn a_checkpoint_resumes_over_limits() {
    let data = table(60, 1);
    let folder = tempfile::tempdir().expect("a folder");
    for (name, own) in cases() {
        if ["restarts", "minibatches", "chains"].contains(&name) {
            continue;
        }
        let checkpoint = Some(folder.path().join(name));
        let kept = FitOptions { checkpoint, pilot: 0, ..own.clone() };
        let free = fit(&data, &FitOptions { pilot: 0, ..own }).expect("a fit");
        let part =
            sparsegp::fit::fit(&data, &kept, &Cpu::default(), &mut After(10)).expect("a fit");
        let objective = part.report.expect("a report").objective;
        let limited = FitOptions { time_limit: OVER, ..kept.clone() };
        for _ in 0..2 {
            let fitted = fit(&data, &limited).unwrap_or_else(|e| panic!("{name}: {e}"));
            let report = fitted.report.as_ref().expect("a report");
            assert!(
                report.stopped.contains("resumes from its checkpoint"),
                "{name}: {}",
                report.stopped
            );
            let lost = objective - report.objective;
            // steps of q after the interruption are not in a checkpoint within a climb
            let least = if name == "rounds" { 1e-6 } else { 1e-9 };
            assert!(
                lost <= least * objective.abs(),
                "{name}: {} after {objective}",
                report.objective
            );
        }
        let resumed = fit(&data, &kept).expect("a fit");
        assert_eq!(bits(&resumed.model), bits(&free.model), "{name}");
        assert_eq!(said(&resumed), said(&free), "{name}");
    }
}

#[test]
fn continuing_a_model_has_limits_too_and_impossible_ones_are_refused() {
    let data = table(60, 1);
    let own = FitOptions { time_limit: OVER, ..options("exact", 40) };
    let fitted = fit(&data, &FitOptions { pilot: 0, ..options("exact", 3) }).expect("a fit");
    let fitted = go_on(fitted, &data, &own, &Cpu::default(), &mut ()).expect("a fit");
    assert!(said(&fitted).0.contains("time limit"));
    for limit in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let own = FitOptions { time_limit: Some(limit), ..options("exact", 3) };
        let error = fit(&data, &own).expect_err("refused").to_string();
        assert!(error.contains("time limit") && error.contains("positive"), "{error}");
    }
}
