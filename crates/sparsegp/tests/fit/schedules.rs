//! Rates fall by the planned steps or by a time limit, whichever ends first. The time is made up: nothing depends on a clock.

use crate::stochastic::{draws, stochastic};
use crate::support::{arrays, bits, fit, table};
use sparsegp::deep::{LastBound, StepOptions};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted, prepare};
use sparsegp::methods;
use sparsegp::optim::Optimiser;
use sparsegp::train::{
    Event, Observer, StochasticOptions, Surroundings, TrainingState, train_batches, train_layers,
};
use std::ops::ControlFlow;

/// A time limit that lets so many minibatches be made, after preparation took a share of it.
struct Limit {
    batches: usize,
    preparation: f64,
    done: usize,
    /// Whether anybody hears how much of it is used.
    says: bool,
}

impl Limit {
    fn of(batches: usize) -> Self {
        Self { batches, preparation: 0.25, done: 0, says: true }
    }
}

impl Observer for Limit {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        self.done += usize::from(matches!(event, Event::Batch { .. }));
        ControlFlow::Continue(())
    }

    fn interrupted(&self) -> bool {
        self.done >= self.batches
    }

    fn time_used(&self) -> Option<f64> {
        let share = self.done as f64 / self.batches as f64;
        self.says.then_some(self.preparation + (1.0 - self.preparation) * share)
    }
}

fn watched(dataset: &Dataset, options: &FitOptions, observer: &mut dyn Observer) -> Fitted {
    sparsegp::fit::fit(dataset, options, &Cpu::default(), observer).expect("a fit")
}

fn epochs(options: &FitOptions, epochs: usize) -> FitOptions {
    let mut own = options.clone();
    own.batches.as_mut().expect("minibatches").training.epochs = Some(epochs);
    own
}

/// Ways to train with their rows, of which four minibatches make an epoch.
fn cases() -> Vec<(&'static str, Dataset, FitOptions)> {
    let counts = || {
        let rows = draws(90, "poisson", 1.0, |x| vec![2.0 + x.sin()]);
        Dataset::from_rows(rows, false).expect("a table")
    };
    let mut adam = stochastic("poisson", "svgp", 23, 4);
    adam.batches.as_mut().expect("minibatches").training.natural = None;
    let deep = |method: &str| {
        let entry = methods::find(method).expect("a method");
        let batches = BatchOptions { size: 15, ..BatchOptions::of(entry.method) };
        FitOptions {
            method: method.into(),
            inducing: Some(8),
            batches: Some(batches),
            ..FitOptions::default()
        }
    };
    let mut natural = deep("deep(kind=w)");
    natural.batches.as_mut().expect("minibatches").training.natural = Some(0.05);
    vec![
        ("natural gradients", counts(), stochastic("poisson", "svgp", 23, 4)),
        ("Adam", counts(), adam),
        ("deep", table(60, 1), deep("deep")),
        ("deep with natural gradients", table(60, 1), natural),
    ]
}

/// Sixteen minibatches of very many are to the bit sixteen that were planned, if the limit says how much time is used, and
/// else they are not. Without a limit, and with one that is far away, nothing changes.
#[test]
fn a_limit_is_a_plan_of_as_many_steps() {
    for (name, dataset, options) in cases() {
        let planned = fit(&dataset, &epochs(&options, 4)).expect("a fit");
        let steps = |fitted: &Fitted| fitted.report.as_ref().expect("a report").iterations;
        assert_eq!(steps(&planned), 16, "{name}");
        // a multiple of three, so that a third of the steps is one of the time
        let many = epochs(&options, 1200);
        let limited = watched(&dataset, &many, &mut Limit::of(16));
        assert_eq!(steps(&limited), 16, "{name}");
        assert!(bits(&limited.model) == bits(&planned.model), "{name}");
        let silent = watched(&dataset, &many, &mut Limit { says: false, ..Limit::of(16) });
        assert!(bits(&silent.model) != bits(&planned.model), "{name}");
        for mut limit in
            [Limit { says: false, ..Limit::of(usize::MAX) }, Limit::of(16), Limit::of(100)]
        {
            // steps that are on time
            let own = watched(&dataset, &epochs(&options, 4), &mut limit);
            assert!(bits(&own.model) == bits(&planned.model), "{name} {}", limit.batches);
        }
    }
}

/// A resumed run has its own limit: its rate begins where its steps are, and falls again.
#[test]
fn every_run_has_its_own_limit() {
    let (x, y) = arrays(90, 1);
    let dataset = Dataset::from_arrays(x, y, true).expect("a table");
    let mut options = stochastic("gaussian", "svgp", 23, 1200);
    options.batches.as_mut().expect("minibatches").training.natural = None;
    let engine = Cpu::default();
    let mut model = prepare(&dataset, &options, &engine, &mut ()).expect("a model").model;
    let mut training = options.batches.expect("minibatches").training;
    training.checkpoint_seconds = 0.0;
    let mut run = |resume: Option<TrainingState>| {
        let mut states: Vec<TrainingState> = resume.iter().cloned().collect();
        let mut keep = |_: &_, state: &TrainingState| {
            states.push(state.clone());
            Ok(())
        };
        let mut batches = dataset.source.batches(23, 3).expect("minibatches");
        let surroundings =
            Surroundings { resume, checkpoint: Some(&mut keep), ..Surroundings::default() };
        let mut limit = Limit { preparation: 0.0, ..Limit::of(64) };
        train_batches(&mut model, &engine, &mut *batches, &training, surroundings, &mut limit)
            .expect("it trains");
        let moves: Vec<f64> = states
            .windows(2)
            .map(|pair| {
                let (a, b) = (pair[0].adam.x(), pair[1].adam.x());
                a.iter().zip(b).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()))
            })
            .filter(|length| *length > 0.0)
            .collect();
        (moves, states.pop().expect("the last"))
    };
    let (first, state) = run(None);
    let (second, state) = run(Some(state));
    assert_eq!((state.iterations, second.len()), (128, 64));
    let mean = |moves: &[f64]| moves.iter().sum::<f64>() / moves.len() as f64;
    for (whole, last) in [(&first[..8], &first[60 - 1..]), (&second[..8], &second[60..])] {
        assert!(mean(whole) > 10.0 * mean(last), "{} {}", mean(whole), mean(last));
    }
}

/// The same of layers by themselves, whose rates can be looked at.
#[test]
fn every_run_of_layers_has_its_own_limit() {
    let dataset = table(60, 1);
    let (_, _, options) = cases().swap_remove(2);
    let fitted = fit(&dataset, &epochs(&options, 1)).expect("a fit");
    let mut layers = fitted.model.to_deep(LastBound::Expectation).expect("layers");
    let training = StochasticOptions {
        epochs: Some(250),
        checkpoint_seconds: 0.0,
        ..StochasticOptions::default()
    };
    let mut run = |resume: Option<TrainingState>, says: bool| {
        let mut states = Vec::new();
        let mut keep = |_: &_, state: &TrainingState| {
            states.push(state.clone());
            Ok(())
        };
        let surroundings =
            Surroundings { resume, checkpoint: Some(&mut keep), ..Surroundings::default() };
        let mut limit = Limit { preparation: 0.0, says, ..Limit::of(8) };
        let mut batches = dataset.source.batches(15, 0).expect("minibatches");
        let (method, how) = (fitted.model.method, (&StepOptions::default(), &training));
        train_layers(&mut layers, method, &mut *batches, how, surroundings, &mut limit)
            .expect("a training");
        let rates: Vec<f64> = states.iter().map(|s| s.adam.options.learning_rate).collect();
        (rates, states.pop())
    };
    let (free, _) = run(None, false);
    assert_eq!(free, [0.01; 9]);
    // in the last third of the time
    let (rates, state) = run(None, true);
    assert_eq!((&rates[..6], &rates[6..]), (&[0.01; 6][..], &[0.003; 3][..]));
    let (rates, state) = run(state, true);
    assert_eq!((&rates[..6], &rates[6..]), (&[0.01; 6][..], &[0.003; 3][..]));
    let (rates, _) = run(state, false);
    assert_eq!(rates, [0.01; 9]);
}
