//! Resuming a training by minibatches: every bit as if it had not been interrupted.

use crate::stochastic::{draws, stochastic};
use crate::support::{bits, fit};
use sparsegp::data::{Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, prepare};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::model::Model;
use sparsegp::train::{Event, Observer, Surroundings, TrainingState, train_batches};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Ends the training after so many minibatches.
struct Until(usize);

impl Observer for Until {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        if matches!(event, Event::Batch { .. }) {
            self.0 -= 1;
            if self.0 == 0 {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("sparsegp-resume-{}-{name}", std::process::id()))
}

/// 90 counts, in memory or streamed from a file.
fn data(streamed: Option<&Path>) -> Dataset {
    counts(90, streamed)
}

fn counts(n: usize, streamed: Option<&Path>) -> Dataset {
    let rows = draws(n, "poisson", 1.0, |x| vec![2.0 + x.sin()]);
    let Some(path) = streamed else {
        return Dataset::from_arrays(rows.x, rows.y, false).expect("a table");
    };
    let line = |i: usize| format!("{:?},{:?}\n", rows.x[(i, 0)], rows.y[(i, 0)]);
    let text: String = std::iter::once("x,y\n".into()).chain((0..n).map(line)).collect();
    std::fs::write(path, text).expect("a file");
    let table = Table::open(path).expect("the file");
    let selected = table.select(&Selection::targets(["y"])).expect("its columns");
    Dataset::from_table(selected.stream().expect("its rows"), false).expect("a table")
}

/// Natural gradients and Adam, whole and diagonal q, sites by partial EM; cosine over four epochs of four batches.
fn cases() -> Vec<FitOptions> {
    let natural = stochastic("poisson", "svgp-spherical", 23, 4);
    let mut adam = stochastic("negative-binomial", "svgp", 23, 4);
    adam.batches.as_mut().expect("minibatches").training.natural = None;
    adam.diagonal = true;
    let mut sites = stochastic("poisson", "tsvgp", 23, 4);
    sites.batches.as_mut().expect("minibatches").training.em = Some((2, 2));
    vec![natural, sites, adam]
}

fn objectives(state: &TrainingState) -> Vec<u64> {
    state.trace.iter().map(|point| point.objective.to_bits()).collect()
}

#[test]
fn in_memory_from_every_position() {
    for options in cases() {
        let data = data(None);
        let engine = Cpu::default();
        let start = prepare(&data, &options, &engine, &mut ()).expect("a model").model;
        let mut training = options.batches.clone().expect("minibatches").training;
        training.checkpoint_seconds = 0.0;
        // trains from a state, or from the start, and keeps all that it could resume from
        let run = |model: &Model, resume: Option<TrainingState>| {
            let mut model = model.clone();
            let mut states = Vec::new();
            let mut keep = |model: &Model, state: &TrainingState| {
                states.push((model.clone(), state.clone()));
                Ok(())
            };
            let mut batches = data.source.batches(23, 3).expect("minibatches");
            let surroundings =
                Surroundings { resume, checkpoint: Some(&mut keep), ..Surroundings::default() };
            train_batches(&mut model, &engine, &mut *batches, &training, surroundings, &mut ())
                .expect("it trains");
            (model, states)
        };
        let (whole, states) = run(&start, None);
        assert_eq!(states.len(), 17, "one after each of 16 batches, one at the end");
        for (model, state) in &states {
            let (own, later) = run(model, Some(state.clone()));
            assert!(bits(&own) == bits(&whole), "from {:?}", state.position);
            let last = &later[later.len() - 1].1;
            assert_eq!(objectives(last), objectives(&states[16].1));
            assert_eq!(last.iterations, 16);
        }
    }
}

#[test]
fn through_files_from_several_positions() {
    let (table, checkpoint) = (file("rows.csv"), file("checkpoint"));
    for streamed in [None, Some(&*table)] {
        for options in cases() {
            let whole = fit(&data(streamed), &options).expect("a fit");
            // where it stops does not depend on where rows come from
            let stops: &[usize] = if streamed.is_some() { &[4, 11] } else { &[1, 4, 6, 11, 16] };
            for &batches in stops {
                let _ = std::fs::remove_file(&checkpoint);
                let kept = FitOptions { checkpoint: Some(checkpoint.clone()), ..options.clone() };
                let data = data(streamed);
                let mut until = Until(batches);
                let part = sparsegp::fit::fit(&data, &kept, &Cpu::default(), &mut until);
                assert_eq!(part.expect("a part").report.expect("a report").iterations, batches);
                let (_, state) = io::load_checkpoint(&checkpoint).expect("a checkpoint");
                assert_eq!(state.expect("a state").iterations, batches);
                let own = fit(&data, &kept).expect("the rest");
                assert!(bits(&own.model) == bits(&whole.model), "{streamed:?} {batches}");
                let starts = |f: &Fitted| f.report.as_ref().expect("a report").judged.clone();
                assert_eq!(starts(&own), starts(&whole));
                assert!(!starts(&own).is_empty());
                let objective = |f: &Fitted| f.report.as_ref().expect("a report").objective;
                assert_eq!(objective(&own).to_bits(), objective(&whole).to_bits());
            }
        }
    }
    // a checkpoint of other rows is refused
    let kept =
        FitOptions { checkpoint: Some(checkpoint.clone()), ..cases().pop().expect("the last") };
    let x = Mat::from_fn(50, 1, |i, _| i as f64);
    let y = Mat::from_fn(50, 1, |i, _| (i % 5) as f64);
    let mut other = Dataset::from_arrays(x, y, false).expect("a table");
    let columns = data(Some(&table));
    (other.input_names, other.target_names) = (columns.input_names, columns.target_names);
    let error = fit(&other, &kept).expect_err("another training").to_string();
    assert!(error.contains("90 rows") && error.contains("50"), "{error}");
    // and one with other settings: they would be ignored in silence
    let own = data(Some(&table));
    type Change = fn(&mut FitOptions);
    let changes: [(&str, Change); 5] = [
        ("kernel", |o| o.kernel = "matern32".into()),
        ("likelihood", |o| o.likelihood = Some("poisson".into())),
        ("method", |o| o.method = "svgp-spherical".into()),
        ("inducing", |o| o.inducing = Some(7)),
        ("minibatch", |o| o.batches.as_mut().expect("minibatches").size = 19),
    ];
    for (what, change) in changes {
        let mut other = kept.clone();
        change(&mut other);
        let error = fit(&own, &other).expect_err("another training").to_string();
        assert!(error.contains("not a checkpoint of this training"), "{what}: {error}");
        assert!(error.contains(what), "{what}: {error}");
    }
    let _ = (std::fs::remove_file(&table), std::fs::remove_file(&checkpoint));
}

/// Ends the sampling after so many sweeps.
struct Sweeps(usize);

impl Observer for Sweeps {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Sampling { done, .. } if done >= self.0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn chains_from_several_sweeps() {
    let checkpoint = file("chains");
    let data = counts(40, None);
    for (method, likelihood, hyperparameters) in [
        ("gibbs", "poisson-logistic", false),
        ("gibbs", "poisson-logistic", true),
        ("gibbs-sparse", "poisson-logistic", true),
        ("gibbs-markov", "poisson-logistic", false),
        ("ess", "poisson", false),
        ("hmc", "poisson", false),
        ("metropolis", "poisson", false),
        ("nuts-augmented", "laplace", false),
        ("nuts", "poisson", true),
        ("nuts-sparse", "poisson", true),
        // hyperparameters under their evidence
        ("nuts", "gaussian", true),
    ] {
        let mut options = FitOptions {
            method: method.into(),
            likelihood: Some(likelihood.into()),
            inducing: method.ends_with("sparse").then_some(8),
            seed: 3,
            pilot: 0,
            ..FitOptions::default()
        };
        // what counts comes after the training
        options.train.max_iterations = 3;
        options.gibbs.chains = 2;
        options.gibbs.burn_in = 9;
        options.gibbs.draws = 12;
        options.gibbs.thin = 2;
        options.gibbs.hyperparameters = hyperparameters;
        let whole = fit(&data, &options).expect("a fit");
        options.checkpoint = Some(checkpoint.clone());
        options.gibbs.checkpoint_seconds = 0.0;
        // while it adapts, and while it draws
        for sweeps in [7, 16] {
            let _ = std::fs::remove_file(&checkpoint);
            let part = sparsegp::fit::fit(&data, &options, &Cpu::default(), &mut Sweeps(sweeps));
            let done = io::load_sampling(&checkpoint).expect("a file").1.expect("a state").sweeps;
            assert!(done >= sweeps && done < 33, "{done}");
            assert!(part.expect("a part").posterior.draws().len() < 24);
            let own = fit(&data, &options).expect("the rest");
            assert_eq!(own.posterior.draws(), whole.posterior.draws(), "{method} {sweeps}");
            assert_eq!(own.posterior.draws().len(), 24);
            let (a, b) = (own.posterior.hyperparameters(), whole.posterior.hyperparameters());
            assert_eq!(a, b, "{method} {sweeps}");
            assert_eq!(a.is_empty(), !hyperparameters);
            let mixing = |f: &Fitted| f.report.clone().and_then(|r| r.mixing).expect("chains");
            assert_eq!(mixing(&own).effective, mixing(&whole).effective);
            assert_eq!(own.warnings, whole.warnings);
        }
        // what has ended continues where more draws are asked for, and not where anything else is
        let more = |draws: usize, thin: usize| {
            let mut other = options.clone();
            (other.gibbs.draws, other.gibbs.thin) = (draws, thin);
            fit(&data, &other)
        };
        let error = more(12, 3).expect_err("other chains").to_string();
        assert!(error.contains("its chains: 2 of law"), "{error}");
        let longer = more(15, 2).expect("more draws");
        assert_eq!(longer.posterior.draws().len(), 30);
        assert_eq!(longer.posterior.draws()[..12], whole.posterior.draws()[..12]);
    }
    let _ = std::fs::remove_file(&checkpoint);
}
