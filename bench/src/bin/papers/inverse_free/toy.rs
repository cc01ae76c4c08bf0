//! Variants of the parameterisation on two small tables, by iteration (Figure 1).

use sparsegp::data::{Batches, InMemory, Minibatch, ShuffledInMemory};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{Dataset, FitOptions, prepare};
use sparsegp::inverse_free::{Preconditioner, Schedule, SolverOptions};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods::{Following, Step, Uncollapsed, find};
use sparsegp::model::Model;
use sparsegp::optim::{Adam, AdamOptions, Objective, Optimiser};
use sparsegp::variational::Variational;
use sparsegp::{likelihoods, means};
use sparsegp_bench::load;

/// A variant: name, method, preconditioner, whether natural-gradient steps move L.
pub struct Variant(pub &'static str, &'static str, Preconditioner, bool);

/// All of them.
pub const VARIANTS: [Variant; 7] = [
    Variant("W-SVGP", "svgp", Preconditioner::Inverse, false),
    Variant("L-SVGP", "lsvgp", Preconditioner::Identity, false),
    Variant("L-SVGP (P)", "lsvgp", Preconditioner::Inverse, false),
    Variant("R-SVGP", "rsvgp", Preconditioner::Identity, false),
    Variant("R-SVGP (N)", "rsvgp", Preconditioner::Identity, true),
    Variant("R-SVGP (P)", "rsvgp", Preconditioner::Inverse, false),
    Variant("R-SVGP (NP)", "rsvgp", Preconditioner::Inverse, true),
];

/// Rows, starting model and rate of a panel (App. S5).
pub struct Toy {
    pub(super) data: InMemory,
    pub(super) start: Model,
    pub(super) rate: f64,
    pub(super) points: usize,
}

/// The negative bound of a minibatch, as Adam sees it.
struct Loss<'a> {
    model: &'a mut Model,
    batch: &'a Minibatch,
    step: &'a mut Step,
    slopes: &'a mut Vec<f64>,
    following: &'a Following,
}

impl Objective for Loss<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        self.model.set_free_values(x);
        let method = Uncollapsed::of(self.model.method).expect("uncollapsed");
        let (step, how) = (&mut *self.step, self.following);
        let want = Want::Adjoints { statistics: false };
        method.follow(step, self.model, &Cpu::default(), self.batch, want, how)?;
        self.slopes.resize(self.model.num_params(), 0.0);
        step.gradient(self.model, self.slopes);
        self.model.free_gradient(self.slopes, gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
        Ok(-step.value)
    }
}

impl Toy {
    /// Reads a table.
    pub fn new(name: &str) -> sparsegp::Result<Self> {
        let (loaded, rate) = match name {
            "snelson" => (load(name, false), 5e-3),
            _ => (load(name, true), 1e-2),
        };
        let data = InMemory::new(loaded.x, loaded.y)?;
        let (n, d) = (data.x.nrows(), data.x.ncols());
        let (z, likelihood) = if name == "snelson" {
            let column = || (0..n).map(|i| data.x[(i, 0)]);
            let (low, high) = (
                column().fold(f64::INFINITY, f64::min),
                column().fold(f64::NEG_INFINITY, f64::max),
            );
            let grid = Mat::from_fn(10, 1, |i, _| low + (high - low) * i as f64 / 9.0);
            (grid, likelihoods::parse("gaussian")?)
        } else {
            let options = FitOptions {
                inducing: Some(64),
                pilot: 0,
                kernel: "rbf".into(),
                method: "svgp".into(),
                ..FitOptions::default()
            };
            let copy = Dataset::from_arrays(data.x.clone(), data.y.clone(), false)?;
            let start = prepare(&copy, &options, &Cpu::default(), &mut ())?;
            (start.model.inducing_points()?, likelihoods::parse("bernoulli")?)
        };
        let mut start = Model::builder(parse("rbf", Inputs::unnamed(d))?, find("svgp")?.method)
            .mean(means::by_name("zero", d, 1)?)
            .likelihood(likelihood)
            .inducing(z.as_ref())
            .jitter(Jitter::Relative(1e-6))
            .build(d, 1)?;
        // variances, lengthscales and noise 1, as GPflow starts
        start.set("kernel.variance", &[1.0])?;
        start.set("kernel.lengthscales", &vec![1.0; d])?;
        if name == "snelson" {
            start.set("likelihood.variance", &[1.0])?;
        }
        start.for_group("inducing", |param| param.frozen = true)?;
        Ok(Self { data, start, rate, points: z.nrows() })
    }

    /// Trains a variant; returns the negative bound of all rows every hundredth of the way. Of L one unit step per
    /// iteration; minibatches have as many rows as there are inducing points.
    pub fn curve(
        &self,
        Variant(_, method, preconditioner, natural): &Variant,
        iterations: usize,
        seed: u64,
    ) -> sparsegp::Result<Vec<(f64, f64)>> {
        let (mut model, m) = (self.start.clone(), self.points);
        model.method = find(method)?.method;
        let mut q = match *method {
            "svgp" => Variational::prior(m, 1, false),
            _ => Variational::pseudo_observations(m, 1, *preconditioner, *method == "rsvgp"),
        };
        if let (Some(root), false) = (&mut q.root, natural) {
            // Adam moves L; from where its diagonal does not change sign with the first step
            root.frozen = false;
            let start = Mat::from_fn(m, m, |i, j| if i == j { 0.1 } else { 0.0 });
            q.set_t_root(start.as_ref());
        }
        model.q = Some(q);
        let engine = Cpu::default();
        let mut batches = ShuffledInMemory::new(&self.data, m, seed)?;
        let (mut rows, mut step, mut slopes) = (Minibatch::new(), Step::default(), Vec::new());
        let solver = SolverOptions {
            schedule: Schedule::Constant(1.0),
            tolerance: 1e-300,
            most: 1,
            stall: false,
            ..SolverOptions::default()
        };
        let following = Following { solver, ..Following::default() };
        let method = Uncollapsed::of(model.method).expect("uncollapsed");
        if method.follows(&model) {
            method.settle(&mut model, &SolverOptions::default())?;
        }
        let options = AdamOptions { learning_rate: self.rate, ..AdamOptions::default() };
        let mut adam = Adam::new(model.free_values(), options);
        let mut curve = Vec::new();
        for iteration in 0..=iterations {
            if iteration % (iterations / 100).max(1) == 0 {
                let mut whole = Step::default();
                method.follow(
                    &mut whole,
                    &mut model,
                    &engine,
                    &self.data,
                    Want::Value,
                    &following,
                )?;
                curve.push((iteration as f64, -whole.value));
            }
            batches.next(&mut rows)?;
            let (model, step, slopes) = (&mut model, &mut step, &mut slopes);
            adam.step(&mut Loss { model, batch: &rows, step, slopes, following: &following })?;
        }
        Ok(curve)
    }
}
