//! R-SVGP trains by products only: the routines that factorise and solve count their calls.

use sparsegp::data::{Batches, InMemory, Minibatch, ShuffledInMemory};
use sparsegp::engine::{Cpu, Want};
use sparsegp::inverse_free::{Estimate, Preconditioner, Traces};
use sparsegp::kernels::{self, Inputs};
use sparsegp::likelihoods;
use sparsegp::linalg::{Jitter, Mat, counts};
use sparsegp::means;
use sparsegp::methods::{self, Following, Step, Uncollapsed};
use sparsegp::model::{Model, inducing_param};
use sparsegp::optim::{Adam, AdamOptions, Objective, Optimiser};
use sparsegp::variational::Variational;

/// The bound of a minibatch, after T has followed.
struct Bound<'a> {
    model: &'a mut Model,
    engine: &'a Cpu,
    batch: &'a Minibatch,
    step: &'a mut Step,
    following: Following,
}

impl Objective for Bound<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        self.model.set_free_values(x);
        let method = Uncollapsed::of(self.model.method).expect("it trains q");
        let (step, how) = (&mut *self.step, &self.following);
        method.follow(step, self.model, self.engine, self.batch, Want::Gradients, how)?;
        let mut slopes = vec![0.0; self.model.num_params()];
        step.gradient(self.model, &mut slopes);
        let value = step.value + self.model.free_gradient(&mut slopes, gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
        Ok(-value)
    }
}

/// The only test of this program, as the counts are of all threads.
#[test]
fn a_training_step_neither_factorises_nor_solves() {
    let (n, d, m) = (900, 3, 70);
    let x = Mat::from_fn(n, d, |i, j| (0.37 * i as f64 + 1.7 * j as f64).sin());
    let engine = Cpu::default();
    for (likelihood, outputs, method, traces) in [
        ("gaussian", 1, "rsvgp", Traces::Exact),
        ("gaussian", 3, "rsvgp", Traces::Probes(8, Estimate::LSpace)),
        ("poisson", 1, "rsvgp", Traces::Probes(8, Estimate::Plain)),
        ("robust-max(classes=3)", 1, "rsvgp", Traces::Exact),
        // what the counts are worth
        ("gaussian", 1, "lsvgp", Traces::Exact),
    ] {
        let what = format!("{likelihood} {method} {traces:?}");
        let likelihood = likelihoods::parse(likelihood).unwrap();
        let latents = likelihood.latents() * outputs;
        let y = Mat::from_fn(n, outputs, |i, p| ((i + p) % 2) as f64);
        let data = InMemory::new(x.clone(), y).unwrap();
        let relaxed = method == "rsvgp";
        let mut model = Model {
            kernels: vec![kernels::parse("rbf", Inputs::unnamed(d)).unwrap()],
            mean: means::by_name("constant", d, latents).unwrap(),
            likelihood,
            inducing: vec![inducing_param(x.as_ref().subrows(0, m))],
            q: Some(Variational::pseudo_observations(m, latents, Preconditioner::Inverse, relaxed)),
            method: methods::find(method).unwrap().method,
            jitter: Jitter::default(),
            hidden: Vec::new(),
        };
        let mut adam = Adam::new(model.free_values(), AdamOptions::default());
        let mut batches = ShuffledInMemory::new(&data, 200, 3).unwrap();
        let (mut batch, mut step) = (Minibatch::new(), Step::default());
        let before = counts();
        let (mut first, mut last, mut inner) = (f64::NAN, f64::NAN, 0);
        for evaluation in 0..20 {
            batches.next(&mut batch).unwrap();
            let following = Following { traces, evaluation, ..Following::default() };
            let (model, step) = (&mut model, &mut step);
            let mut bound = Bound { model, engine: &engine, batch: &batch, step, following };
            last = adam.step(&mut bound).unwrap().value;
            if evaluation == 0 {
                first = last;
            }
            inner += bound.step.solved.map_or(0, |solved| solved.steps);
        }
        let after = counts();
        let made = (after.0 - before.0, after.1 - before.1);
        assert!(last.is_finite() && last != first, "{what}: nothing happens");
        if relaxed {
            assert_eq!(made, (0, 0), "{what}");
            assert!(inner >= 20, "{what}: T does not follow: {inner} steps");
        } else {
            assert!(made.0 >= 20 && made.1 >= 20, "{what}: the counter does not count: {made:?}");
        }
        // nor does a prediction
        let posterior = model.posterior(&engine, &data).unwrap();
        let predicted = posterior.predict_f(x.as_ref()).unwrap().1;
        assert!(predicted[(0, 0)] > 0.0);
        if relaxed {
            assert_eq!(counts(), after, "{what}");
        }
    }
}
