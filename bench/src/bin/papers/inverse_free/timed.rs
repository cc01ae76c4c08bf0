//! Trainings by minibatches that end by the processor's clock, which Figures 2 and S1 share.

use crate::common::pick;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, prepare};
use sparsegp::inducing::select::Selection;
use sparsegp::inverse_free::Traces;
use sparsegp::optim::AdamOptions;
use sparsegp::rng;
use sparsegp::train::{Event, Observer, StochasticOptions, Surroundings, train_batches};
use sparsegp_bench::{load, processor_seconds};
use std::ops::ControlFlow;

/// What a training has.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Inducing points.
    pub points: usize,
    /// Rows of a minibatch.
    pub batch: usize,
    /// Rate of Adam.
    pub rate: f64,
    /// Seconds of the processor.
    pub seconds: f64,
    /// Seed.
    pub seed: u64,
    /// How R-SVGP takes traces, if not as its recipe does.
    pub traces: Option<Traces>,
}

/// NLPD of held-out rows by seconds, and steps made.
pub struct Timed {
    /// Seconds of the processor and NLPD, after every epoch.
    pub curve: Vec<(f64, f64)>,
    /// Steps.
    pub steps: usize,
}

impl Timed {
    /// Returns the last NLPD.
    pub fn end(&self) -> f64 {
        self.curve.last().map_or(f64::NAN, |point| point.1)
    }

    /// Returns milliseconds of a step.
    pub fn each(&self) -> f64 {
        1e3 * self.curve.last().map_or(f64::NAN, |point| point.0) / self.steps.max(1) as f64
    }
}

/// Ends a training after so many seconds of the processor, and keeps when its epochs ended.
struct Budget {
    start: f64,
    seconds: f64,
    epochs: Vec<f64>,
    steps: usize,
}

impl Observer for Budget {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Batch { .. } => self.steps += 1,
            Event::Iteration(_) => {
                let spent = processor_seconds() - self.start;
                self.epochs.push(spent);
                if spent > self.seconds {
                    return ControlFlow::Break(());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Trains on nine tenths of a table, on one thread: Adam at the same rate for all methods, k-means; `rsvgp` follows its
/// recipe otherwise. Looks at the other rows after every epoch, which counts as time.
pub fn train(name: &str, method: &str, plan: &Plan) -> Result<Timed, Box<dyn std::error::Error>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    Ok(pool.install(|| on_this_thread(name, method, plan))?)
}

fn on_this_thread(name: &str, method: &str, plan: &Plan) -> sparsegp::Result<Timed> {
    let loaded = load(name, false);
    let n = loaded.x.nrows();
    let order = rng::permutation(&mut rng::stream(plan.seed, "split"), n, n);
    let (test, training) = order.split_at(n / 10);
    let dataset = Dataset::from_arrays(pick(&loaded.x, training), pick(&loaded.y, training), true)?;
    let (mut x_test, mut y_test) = (pick(&loaded.x, test), pick(&loaded.y, test));
    dataset.scaler.scale_x(x_test.as_mut())?;
    dataset.scaler.scale_y(y_test.as_mut())?;
    let held_out = InMemory::new(x_test, y_test)?;
    let ones = ["kernel.variance", "kernel.lengthscales", "likelihood.variance"];
    let options = FitOptions {
        method: method.into(),
        inducing: Some(plan.points),
        selection: Selection::KMeans,
        pilot: 0,
        seed: plan.seed,
        set: ones.map(|path| (path.into(), vec![1.0])).into(),
        kernel: "rbf".into(),
        ..FitOptions::default()
    };
    let engine = Cpu::default();
    let mut model = prepare(&dataset, &options, &engine, &mut ())?.model;
    let recipe = StochasticOptions::inverse_free();
    let adam = AdamOptions { learning_rate: plan.rate, ..recipe.adam.clone() };
    let mut training = match method {
        "rsvgp" => {
            // inducing points at the same rate as in the recipe, whatever that of all else
            let inducing_rate = recipe.inducing_rate * recipe.adam.learning_rate / plan.rate;
            StochasticOptions { adam, inducing_rate, ..recipe }
        }
        _ => StochasticOptions {
            adam,
            last_rate: 1.0,
            natural: None,
            ..StochasticOptions::default()
        },
    };
    let mut batches = dataset.source.batches(plan.batch, plan.seed)?;
    training.epochs = Some(1_000_000);
    training.patience = usize::MAX / 2;
    training.following.seed = plan.seed;
    if let Some(traces) = plan.traces {
        training.following.traces = traces;
    }
    let around = Surroundings { held_out: Some(&held_out), ..Surroundings::default() };
    let start = processor_seconds();
    let mut budget = Budget { start, seconds: plan.seconds, epochs: Vec::new(), steps: 0 };
    let watched = &mut budget;
    let report = train_batches(&mut model, &engine, &mut *batches, &training, around, watched)?;
    let curve = budget.epochs.iter().zip(&report.trace);
    let curve = curve.filter_map(|(seconds, point)| point.held_out.map(|d| (*seconds, -d)));
    Ok(Timed { curve: curve.collect(), steps: budget.steps })
}
