//! Every method and every likelihood on tables that are odd in one way: what is not learnt is
//! reported, what is refused is refused before any training, and everything ends.

use sparsegp::data::Loaded;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, Purpose, Standardise, fit};
use sparsegp::likelihoods::{self, Likelihood};
use sparsegp::linalg::Mat;
use sparsegp::methods;
use sparsegp::train::{Event, Observer, TrainOptions};
use std::ops::ControlFlow;

/// What is odd about a table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Odd {
    Nothing,
    FarInput,
    EqualRows,
    Weights,
    Units(f64, f64),
    Constant,
    OneRow,
}

const ODD: [Odd; 8] = [
    Odd::Nothing,
    Odd::FarInput,
    Odd::EqualRows,
    Odd::Weights,
    Odd::Units(1e4, 1e-4),
    Odd::Units(1e-4, 1e4),
    Odd::Constant,
    Odd::OneRow,
];

/// Most events of a run with these few iterations.
const MOST: usize = 20_000;

/// Counts what trains, and ends what does not end.
#[derive(Default)]
struct Seen {
    trained: usize,
    events: usize,
}

impl Observer for Seen {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        self.trained += usize::from(matches!(event, Event::Iteration(_) | Event::Batch { .. }));
        self.events += 1;
        ControlFlow::Continue(())
    }
    fn interrupted(&self) -> bool {
        self.events > MOST
    }
}

/// f of 40 places, a step that no likelihood takes for noise.
fn f(i: usize) -> f64 {
    if i % 40 >= 22 { 1.5 } else { -1.5 }
}

/// Rows whose targets a likelihood takes.
fn table(likelihood: &dyn Likelihood, odd: Odd) -> Loaded {
    let n = if odd == Odd::OneRow { 1 } else { 40 };
    let copies = if odd == Odd::EqualRows { 2 } else { 1 };
    let (a, b) = if let Odd::Units(a, b) = odd { (a, b) } else { (1.0, 1.0) };
    let classes = likelihood.classes();
    let value = |i: usize| {
        let f = if odd == Odd::Constant { 1.5 } else { f(i) };
        let noise = 0.2 * ((i * i) as f64 * 0.618).fract() - 0.1;
        let candidates = [
            // numbers that may have any sign, counts, shares and what is positive
            if likelihood.standardises() { b * (f + noise) } else { f + noise },
            (1.0 + f.exp()).round(),
            0.5 + 0.25 * f + 0.5 * noise,
            f.exp(),
        ];
        let y = match classes {
            Some(classes) if f > 0.0 => (classes - 1) as f64,
            Some(_) => 0.0,
            None => candidates
                .into_iter()
                .find(|y| likelihood.check(likelihoods::Target { y: *y, extra: 8.0 }).is_ok())
                .unwrap_or(1.0),
        };
        if odd == Odd::Constant && classes.is_none() && noise != 0.0 { y.round() } else { y }
    };
    let x = |i: usize| match odd {
        Odd::FarInput if i == 3 => 1e6,
        _ => a * (0.1 * i as f64 - 2.0),
    };
    let rows = n * copies;
    let mut loaded = Loaded::head(vec!["x".into()], vec!["y".into()]);
    loaded.x = Mat::from_fn(rows, 1, |i, _| x(i % n));
    loaded.y = Mat::from_fn(rows, 1, |i, _| value(i % n));
    loaded.rows = (0..rows).collect();
    if odd == Odd::Weights {
        loaded.weights = (0..rows).map(|i| [0.5, 1.0, 1.5][i % 3]).collect();
    }
    if likelihood.extra().is_some_and(|extra| extra.default.is_none()) {
        loaded.extra = vec![8.0; rows];
    }
    loaded
}

fn options(method: &str, likelihood: &str, odd: Odd) -> FitOptions {
    let entry = methods::find(method).ok();
    // the choice of a kernel sees columns that are scaled, and costs more than all the rest
    let plain = matches!(odd, Odd::Units(..));
    let mut own = FitOptions {
        kernel: if plain { "rbf".into() } else { "auto".into() },
        method: method.into(),
        likelihood: Some(likelihood.into()),
        inducing: entry.is_some_and(|entry| entry.method.is_sparse()).then_some(10),
        seed: 1,
        train: TrainOptions { max_iterations: 15, ..TrainOptions::default() },
        ..FitOptions::default()
    };
    (own.gibbs.chains, own.gibbs.draws, own.gibbs.burn_in) = (1, 20, 30);
    if let Some(batches) = &mut own.batches {
        batches.training.epochs = Some(250);
    }
    // a row of these costs what fifty of the others do: sums over two functions, or a law without a closed form
    if ["pseudo-huber", "heteroscedastic-student-t"].contains(&likelihood) {
        own.pilot = 10;
    }
    own
}

/// What is wrong with the way a method takes a table, if something is.
fn fault(method: &str, likelihood: &str, odd: Odd) -> Option<String> {
    let known = likelihoods::parse(likelihood).expect("a likelihood");
    let loaded = table(&*known, odd);
    let (x, extra) = (loaded.x.clone(), loaded.extra.clone());
    let purpose = Purpose { method, likelihood: &*known, inducing: false };
    let own = options(method, likelihood, odd);
    let mut seen = Seen::default();
    let outcome = Dataset::for_purpose(loaded, Standardise::all_that(&*known), purpose)
        .and_then(|dataset| fit(&dataset, &own, &Cpu::default(), &mut seen));
    if seen.events > MOST {
        return Some(format!("{} events", seen.events));
    }
    let model = match outcome {
        // a refusal, or numbers that ended: neither is silent, but the first has to come first
        Err(error) if seen.trained > 0 && !error.is_recoverable() => {
            return Some(format!("refused after {} steps: {error}", seen.trained));
        }
        Err(_) => return None,
        Ok(model) => model,
    };
    let (mean, _) = match model.predict_with(x.as_ref(), &extra, Of::Observations) {
        Err(error) => return Some(format!("cannot predict: {error}")),
        Ok(found) => found,
    };
    let mean: Vec<f64> = (0..x.nrows()).map(|i| mean[(i, 0)]).collect();
    if mean.iter().any(|m| !m.is_finite()) {
        return Some("predictions are not finite".into());
    }
    if matches!(odd, Odd::Constant | Odd::OneRow) {
        return None;
    }
    // the two sides of the step, of which the far row is on none
    let side = |above: bool| {
        let own: Vec<f64> = (0..mean.len())
            .filter(|i| (f(i % 40) > 0.0) == above && x[(*i, 0)].abs() < 1e5)
            .map(|i| mean[i])
            .collect();
        own.iter().sum::<f64>() / own.len() as f64
    };
    let size = mean.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let learnt = side(true) - side(false) > 0.05 * size;
    // what is said of the table is not said of the model
    let said = model.warnings.iter().any(|text| !text.contains("column"));
    (!learnt && !said).then(|| format!("a constant without a word: {mean:?}"))
}

fn walk(pairs: impl Iterator<Item = (String, String)>, odd: &[Odd]) {
    let mut faults = Vec::new();
    for (method, likelihood) in pairs {
        for &odd in odd {
            if let Some(what) = fault(&method, &likelihood, odd) {
                faults.push(format!("{method}, {likelihood}, {odd:?}: {what}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A likelihood that a method takes.
fn of_method(method: &str) -> &'static str {
    let takes = |likelihood: &&&str| {
        let known = likelihoods::parse(likelihood).expect("a likelihood");
        let loaded = table(&*known, Odd::Nothing);
        let purpose = Purpose { method, likelihood: &*known, inducing: false };
        let dataset = Dataset::for_purpose(loaded, Standardise::all_that(&*known), purpose);
        let own = FitOptions { pilot: 0, ..options(method, likelihood, Odd::Nothing) };
        sparsegp::fit::prepare(&dataset.expect("a table"), &own, &Cpu::default(), &mut ()).is_ok()
    };
    ["gaussian", "bernoulli(link=logit)"].iter().find(takes).copied().unwrap_or("gaussian")
}

#[test]
fn methods_take_odd_tables_or_say_why_not() {
    let all = methods::REGISTRY.iter().map(|entry| entry.name);
    walk(all.map(|method| (method.into(), of_method(method).into())), &ODD);
}

#[test]
fn likelihoods_take_odd_tables_or_say_why_not() {
    let plain = |entry: &&likelihoods::Entry| likelihoods::parse(entry.name).is_ok();
    let all = likelihoods::REGISTRY.iter().filter(plain).map(|entry| entry.name);
    // those that are a likelihood's matter
    let odd = [Odd::FarInput, Odd::Units(1e-4, 1e4), Odd::Constant, Odd::OneRow];
    walk(all.map(|likelihood| ("auto".into(), likelihood.into())), &odd);
}
