//! Training on digits by rounds of E- and M-steps, which Figures 4 and 5 and Table 1 share.

use super::em::{Negated, freeze};
use sparsegp::data::{Batches, Loaded, Minibatch};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise, prepare};
use sparsegp::methods::{Step, Uncollapsed};
use sparsegp::model::{Model, Posterior};
use sparsegp::optim::{Adam, AdamOptions, Optimiser};
use sparsegp_bench::split_digits;
use std::time::Instant;

/// The two methods and their names.
pub const METHODS: [(&str, &str); 2] = [("tsvgp", "t-SVGP"), ("svgp", "q-SVGP")];

/// Learning rates and steps of a round.
#[derive(Clone, Copy)]
pub struct Rounds {
    /// Rate of the natural gradients.
    pub e_rate: f64,
    /// Rate of Adam.
    pub m_rate: f64,
    /// E-steps of a round.
    pub e_steps: usize,
    /// M-steps of a round.
    pub m_steps: usize,
}

/// Digits to learn from and to predict.
pub struct Digits {
    dataset: Dataset,
    test: Loaded,
}

/// A training that continues.
pub struct Training<'a> {
    rows: f64,
    model: Model,
    batches: Box<dyn Batches + 'a>,
    batch: Minibatch,
    step: Step,
    adam: Adam,
    /// Seconds spent in steps.
    pub seconds: f64,
    /// The mean of the estimates of the bound since it was last asked for, a row.
    bounds: Vec<f64>,
}

impl Digits {
    /// Reads them: the first 8000 to learn from, of the other 2000 so many to predict.
    pub fn new(test: usize) -> sparsegp::Result<Self> {
        let (training, test) = split_digits(8000, test)?;
        let scaling = Standardise { inputs: false, targets: false, robust: false, constants: true };
        let dataset = Dataset::from_loaded(training, scaling)?;
        Ok(Self { dataset, test })
    }

    /// Begins a training with M points, by k-means, and these rates.
    pub fn begin(
        &self,
        method: &str,
        inducing: usize,
        rounds: Rounds,
        seed: u64,
    ) -> sparsegp::Result<Training<'_>> {
        let dataset = &self.dataset;
        let options = FitOptions {
            kernel: "matern52(ard=false, lengthscales=10)".into(),
            likelihood: Some("softmax(classes=10)".into()),
            mean: Some("zero".into()),
            method: method.into(),
            inducing: Some(inducing),
            pilot: 0,
            seed,
            batches: Some(BatchOptions { size: 200, ..BatchOptions::default() }),
            ..FitOptions::default()
        };
        let mut model = prepare(dataset, &options, &Cpu::default(), &mut ())?.model;
        freeze(&mut model, true);
        let batches = dataset.source.batches(200, seed)?;
        let options = AdamOptions { learning_rate: rounds.m_rate, ..AdamOptions::default() };
        let adam = Adam::new(model.free_values(), options);
        let (batch, step) = (Minibatch::new(), Step::default());
        let rows = dataset.source.rows() as f64;
        Ok(Training { rows, model, batches, batch, step, adam, seconds: 0.0, bounds: Vec::new() })
    }

    /// Returns the NLPD of the digits to predict.
    pub fn nlpd(&self, training: &Training<'_>) -> sparsegp::Result<f64> {
        let at = Posterior::of_q(&training.model)?;
        let density = at.predict_log_density(self.test.x.as_ref(), self.test.y.as_ref(), &[])?;
        Ok(-density.iter().sum::<f64>() / density.len() as f64)
    }
}

impl Training<'_> {
    /// Makes a round, a new minibatch for every step.
    pub fn round(&mut self, rounds: Rounds) -> sparsegp::Result<()> {
        let method = Uncollapsed::of(self.model.method).expect("a method with a q");
        let engine = Cpu::default();
        for _ in 0..rounds.e_steps {
            self.batches.next(&mut self.batch)?;
            let clock = Instant::now();
            method.renew(&mut self.step, &self.model, &engine, &self.batch, Want::Statistics)?;
            self.step.natural(&mut self.model, rounds.e_rate)?;
            self.seconds += clock.elapsed().as_secs_f64();
            self.bounds.push(self.step.value / self.rows);
        }
        for _ in 0..rounds.m_steps {
            if rounds.e_steps > 1 || rounds.m_steps > 1 {
                self.batches.next(&mut self.batch)?;
            }
            let clock = Instant::now();
            self.adam.step(&mut Negated { model: &mut self.model, data: &self.batch })?;
            self.model.set_free_values(self.adam.x());
            self.seconds += clock.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// Returns the mean of the estimates of the bound since the last call, a row.
    pub fn bound(&mut self) -> f64 {
        let all = std::mem::take(&mut self.bounds);
        all.iter().sum::<f64>() / all.len() as f64
    }
}
