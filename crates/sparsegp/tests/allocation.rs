//! What must not allocate does not.

use sparsegp::data::{Batches, InMemory, Minibatch, ShuffledInMemory};
use sparsegp::engine::{Cpu, Want};
use sparsegp::inverse_free::Preconditioner;
use sparsegp::kernels::{self, Inputs};
use sparsegp::likelihoods;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::means;
use sparsegp::methods::{self, Following, Step, Uncollapsed};
use sparsegp::model::{Model, inducing_param};
use sparsegp::optim::{Adam, AdamOptions, Objective, Optimiser};
use sparsegp::variational::{Tying, Variational};

#[test]
fn minibatches_from_memory_allocate_only_at_first() {
    let n = 1003;
    let mut data = InMemory::new(
        Mat::from_fn(n, 4, |i, j| (i + 7 * j) as f64),
        Mat::from_fn(n, 2, |i, j| (i * (j + 1)) as f64),
    )
    .unwrap();
    data.weights = vec![0.5; n];
    data.extra = vec![2.0; n];
    let mut batches = ShuffledInMemory::new(&data, 100, 3).unwrap();
    let mut batch = Minibatch::new();
    let first = allocation_counter::measure(|| batches.next(&mut batch).unwrap());
    assert!(first.count_total > 0, "the counter does not count");
    // To the end of the twelfth epoch: the number of digits in an epoch's name grows too.
    let later = allocation_counter::measure(|| {
        for _ in 0..12 * batches.per_epoch() {
            batches.next(&mut batch).unwrap();
        }
    });
    assert_eq!((later.count_total, batches.position().epoch), (0, 12));
}

/// As `train_batches` asks for where q moves by natural-gradient steps.
const WANT: Want = Want::Adjoints { statistics: true };

/// A whole iteration of training by hand, as `train_batches` does it but for its look whether q moved too
/// far: a minibatch is drawn, Adam
/// evaluates the bound with all gradients on it and moves the hyperparameters, and q moves by a
/// natural-gradient step.
struct Iteration<'a> {
    model: Model,
    engine: Cpu,
    batch: &'a Minibatch,
    step: Step,
    slopes: Vec<f64>,
}

impl Objective for Iteration<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        self.model.set_free_values(x);
        let method = Uncollapsed::of(self.model.method).unwrap();
        let (step, how) = (&mut self.step, Following::default());
        method.follow(step, &mut self.model, &self.engine, self.batch, WANT, &how)?;
        self.slopes.resize(self.model.num_params(), 0.0);
        self.step.gradient(&self.model, &mut self.slopes);
        let value = self.step.value + self.model.free_gradient(&mut self.slopes, gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
        Ok(-value)
    }
}

#[test]
fn steps_by_minibatches_allocate_only_at_first() {
    // 600 rows are two blocks; 40 inducing points
    let (n, d, m, size) = (2400, 3, 40, 600);
    let x = Mat::from_fn(n, d, |i, j| (0.37 * i as f64 + 1.7 * j as f64).sin());
    for (kernel, likelihood, method) in [
        ("rbf", "gaussian", "svgp"),
        ("matern32", "gaussian", "svgp2025"),
        ("matern52(ard=false)", "bernoulli", "svgp"),
        ("matern12", "student-t", "svgp-spherical"),
        ("rbf", "poisson", "svgp-spherical"),
        ("rbf", "bernoulli", "tsvgp"),
        ("matern32", "softmax(classes=3)", "tsvgp"),
        ("rbf", "negative-binomial", "svgp"),
        ("rbf", "heteroscedastic", "svgp"),
        ("rbf", "softmax(classes=3)", "svgp"),
        ("rbf", "logistic-softmax(classes=3)", "svgp"),
        ("rbf", "poisson", "lsvgp"),
        ("rbf", "softmax(classes=3)", "lsvgp"),
        ("matern32", "gaussian", "rsvgp"),
        ("rbf", "softmax(classes=3)", "rsvgp"),
        ("rbf", "logistic-softmax(classes=3, scales=true, constant=0.5)", "svi"),
    ] {
        let what = format!("{kernel} {likelihood} {method}");
        let likelihood = likelihoods::parse(likelihood).unwrap();
        let latents = likelihood.latents();
        let y = Mat::from_fn(n, 1, |i, _| (i % 2) as f64);
        let data = InMemory::new(x.clone(), y).unwrap();
        let mut q = Variational::prior(m, latents, false);
        if method == "svgp-spherical" {
            q = q.with_factors();
        }
        if method == "tsvgp" {
            q = Variational::sites(m, latents, Tying::Natural);
        }
        let pseudo = ["lsvgp", "rsvgp"].contains(&method);
        if pseudo {
            let relaxed = method == "rsvgp";
            q = Variational::pseudo_observations(m, latents, Preconditioner::Inverse, relaxed);
        } else {
            // natural gradients move q
            (q.first.frozen, q.second.frozen) = (true, true);
        }
        let model = Model {
            kernels: vec![kernels::parse(kernel, Inputs::unnamed(d)).unwrap()],
            mean: means::by_name("constant", d, latents).unwrap(),
            likelihood,
            inducing: vec![inducing_param(x.as_ref().subrows(0, m))],
            q: Some(q),
            method: methods::find(method).unwrap().method,
            jitter: Jitter::default(),
            hidden: Vec::new(),
        };
        let mut adam = Adam::new(model.free_values(), AdamOptions::default());
        let mut batches = ShuffledInMemory::new(&data, size, 3).unwrap();
        let mut batch = Minibatch::new();
        let mut memory = (Some((model, Cpu::default(), Step::default())), Vec::new());
        let mut iterate = || {
            batches.next(&mut batch).unwrap();
            let ((model, engine, step), slopes) =
                (memory.0.take().unwrap(), std::mem::take(&mut memory.1));
            let mut own = Iteration { model, engine, batch: &batch, step, slopes };
            let value = adam.step(&mut own).unwrap().value;
            let Iteration { mut model, engine, mut step, slopes, .. } = own;
            // of likelihoods that are not log-concave a step may be refused
            assert!(pseudo || step.natural(&mut model, 0.1).is_ok() || latents > 1, "{what}");
            memory = (Some((model, engine, step)), slopes);
            value
        };
        // one thread, which rayon is not asked to wake
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(|| {
            let start = iterate();
            for _ in 0..3 {
                iterate();
            }
            let mut end = start;
            let later = allocation_counter::measure(|| {
                for _ in 0..20 {
                    end = iterate();
                }
            });
            assert!(end.is_finite() && end != start, "{what}: nothing happens");
            assert_eq!((later.count_total, later.bytes_total), (0, 0), "{what}");
        });
    }
}

/// Exact inference takes its matrices from the evaluation before, and what it finds there says nothing.
#[test]
fn exact_evaluations_leave_their_matrices_to_the_next() {
    let problem = |n: usize, noise: f64| {
        let x = Mat::from_fn(n, 2, |i, j| (0.37 * i as f64 + 1.7 * j as f64).sin());
        let y = Mat::from_fn(n, 1, |i, _| (0.9 * i as f64).cos());
        let model = Model {
            kernels: vec![kernels::parse("matern52 + linear", Inputs::unnamed(2)).unwrap()],
            mean: means::by_name("constant", 2, 1).unwrap(),
            likelihood: Box::new(likelihoods::Gaussian::new(noise)),
            inducing: Vec::new(),
            q: None,
            method: methods::find("exact").unwrap().method,
            jitter: Jitter::default(),
            hidden: Vec::new(),
        };
        (model, InMemory::new(x, y).unwrap())
    };
    let engine = Cpu::default();
    for (n, noise) in [(90, 0.3), (40, 0.2), (40, 0.7), (90, 0.3)] {
        let (model, data) = problem(n, noise);
        let own = model.evaluate(&engine, &data).unwrap();
        let fresh = model.evaluate(&Cpu::default(), &data).unwrap();
        assert_eq!((own.value, own.gradient), (fresh.value, fresh.gradient), "{n}");
        let moments = |engine| model.posterior(engine, &data).unwrap().predict_f(data.x.as_ref());
        assert_eq!(moments(&engine).unwrap(), moments(&Cpu::default()).unwrap(), "{n}");
    }
    let n = 200;
    let (model, data) = problem(n, 0.3);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let bytes = || {
        let work = || model.evaluate(&engine, &data).unwrap();
        pool.install(|| allocation_counter::measure(|| drop(work()))).bytes_total as usize
    };
    let (first, second) = (bytes(), bytes());
    assert!(first > 4 * 8 * n * n, "{first}");
    assert!(second < 8 * n * n / 2, "{second}");
}
