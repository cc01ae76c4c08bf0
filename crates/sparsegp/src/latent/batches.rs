//! Training by minibatches: many rows, of which each is seen a few times.
//!
//! Some rows are trained at once; the others start near those that they are like ([`Posterior::embed`](super::Posterior::embed)).
//! Then, batch by batch: q(x) of its rows by a few iterations at the present q(u), a natural-gradient step of q(u)
//! ([`Global`]), and a step of Adam for kernel, noise and points. In the end q(u) is the best one for all rows, and the bound that of
//! all rows.

use super::embed::{EmbedOptions, Places};
use super::fit::{GplvmOptions, GplvmProgress};
use super::global::Global;
use super::model::Gplvm;
use super::targets::{Group, Targets};
use crate::error::{Error, Result};
use crate::linalg::{Mat, MatRef};
use crate::optim::{Adam, AdamOptions, Lbfgs, LbfgsOptions, Objective, Optimiser, Schedule};
use crate::params::{
    Param, Transform, Visitor, VisitorMut, free_count, free_gradient, free_values, log_prior,
    prefixed, prefixed_mut, set_free_values,
};
use crate::psi::Uncertain;
use crate::rng::{permutation, stream};
use crate::terms::Pooling;

/// How minibatches are made, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct GplvmBatches {
    /// Rows of a batch; with as many rows as there are all are trained at once.
    pub rows: usize,
    /// How often every row is seen.
    pub epochs: usize,
    /// Rows that are trained at once to begin with.
    pub first: usize,
    /// Adam's rate for kernel, noise and points; a tenth of it is left in the end.
    pub learning_rate: f64,
    /// Iterations for the places of a batch's rows.
    pub iterations: usize,
}

impl Default for GplvmBatches {
    fn default() -> Self {
        Self { rows: 500, epochs: 20, first: 1000, learning_rate: 0.02, iterations: 5 }
    }
}

impl GplvmBatches {
    /// Refuses numbers that are not possible.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub(super) fn check(&self, options: &GplvmOptions, pooling: Pooling) -> Result<()> {
        if [self.rows, self.epochs, self.first].contains(&0) || self.iterations == 0 {
            return Err(Error::Invalid(
                "minibatches of a GP-LVM need at least one row, epoch, first row and iteration"
                    .into(),
            ));
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return Err(Error::Invalid(format!(
                "the learning rate of minibatches is a positive number, not {}",
                self.learning_rate
            )));
        }
        // linear in the pooled number is a sum over rows
        if pooling == Pooling::Total && options.method != "titsias2009" {
            return Err(Error::Invalid(format!(
                "the bound `{}` is not a sum over rows and takes no minibatches: use `titsias2025` or `titsias2009`",
                options.method
            )));
        }
        Ok(())
    }

    /// Returns rows to begin with, in which every column has a value.
    pub(super) fn first_rows(&self, y: MatRef<f64>, seed: u64) -> Vec<usize> {
        let (n, p) = (y.nrows(), y.ncols());
        let order = permutation(&mut stream(seed, "latent/first"), n, n);
        let mut chosen = order[..self.first.min(n)].to_vec();
        for j in 0..p {
            if chosen.iter().all(|i| y[(*i, j)].is_nan()) {
                chosen.extend(order.iter().find(|i| !y[(**i, j)].is_nan()));
            }
        }
        chosen
    }
}

/// Returns the rows of a matrix.
pub(super) fn rows_of(a: MatRef<f64>, rows: &[usize]) -> Mat<f64> {
    Mat::from_fn(rows.len(), a.ncols(), |i, j| a[(rows[i], j)])
}

impl Targets {
    /// Returns some rows, in the groups of all.
    pub(super) fn some(&self, rows: &[usize]) -> Self {
        let has = rows_of(self.has.as_ref(), rows);
        let count = |c: usize| has.col_as_slice(c).iter().sum::<f64>() as usize;
        let groups = self.groups.iter().enumerate();
        Self {
            y: rows_of(self.y.as_ref(), rows),
            cells: rows.iter().map(|i| self.cells[*i]).collect(),
            groups: groups
                .map(|(c, group)| Group { columns: group.columns.clone(), rows: count(c) })
                .collect(),
            has,
        }
    }
}

fn visit<'a>(model: &'a Gplvm, visitor: Visitor<'a, '_>) {
    prefixed(&"kernel", visitor, |v| model.kernel.visit(v));
    visitor(&"likelihood.variance", &model.noise);
    visitor(&"inducing.points", &model.points);
}

fn visit_mut<'a>(model: &'a mut Gplvm, visitor: VisitorMut<'a, '_>) {
    prefixed_mut(&"kernel", visitor, |v| model.kernel.visit_mut(v));
    visitor(&"likelihood.variance", &mut model.noise);
    visitor(&"inducing.points", &mut model.points);
}

/// Minus the bound of a batch as a function of kernel, noise and points.
struct Batch<'a> {
    model: &'a mut Gplvm,
    global: &'a Global,
    x: Uncertain<'a>,
    targets: &'a Targets,
    weight: f64,
}

impl Objective for Batch<'_> {
    fn dim(&self) -> usize {
        free_count(|v| visit(self.model, v))
    }

    fn evaluate(&mut self, at: &[f64], gradient: &mut [f64]) -> Result<f64> {
        set_free_values(|v| visit_mut(self.model, v), at);
        let rows = (self.x, self.targets);
        let (value, mut slopes) = self.global.evaluate(self.model, rows, self.weight)?;
        let prior = log_prior(|v| visit(self.model, v), &mut slopes);
        free_gradient(|v| visit(self.model, v), &slopes, gradient);
        gradient.iter_mut().for_each(|slope| *slope = -*slope);
        Ok(-value - prior)
    }
}

/// q(X) of rows: means and variances.
struct Held {
    mean: Mat<f64>,
    variance: Mat<f64>,
}

impl Held {
    fn x(&self) -> Result<Uncertain<'_>> {
        Uncertain::new(self.mean.as_ref(), self.variance.as_ref())
    }

    /// Returns the model with these rows.
    fn in_model(&self, model: &Gplvm) -> Gplvm {
        let mean = Param::of_matrix(self.mean.as_ref(), Transform::Identity);
        let variance = Param::of_matrix(self.variance.as_ref(), Transform::Exp { lower: 0.0 });
        Gplvm { mean, variance, ..model.clone() }
    }

    /// Puts some rows back.
    fn put(&mut self, rows: &[usize], some: &Self) {
        for (all, own) in [(&mut self.mean, &some.mean), (&mut self.variance, &some.variance)] {
            for j in 0..all.ncols() {
                rows.iter().enumerate().for_each(|(i, row)| all[(*row, j)] = own[(i, j)]);
            }
        }
    }

    /// Moves them to where their bound is higher, q(u) held.
    fn improve(&mut self, mut places: Places<'_>, iterations: usize) -> Result<()> {
        let (n, q) = (self.mean.nrows(), self.mean.ncols());
        let each = || (0..q).flat_map(|j| (0..n).map(move |i| (i, j)));
        let means = each().map(|at| self.mean[at]);
        let start = means.chain(each().map(|at| self.variance[at].ln())).collect();
        let mut lbfgs = Lbfgs::new(start, LbfgsOptions::default());
        for _ in 0..iterations {
            if lbfgs.step(&mut places)?.status.is_final() {
                break;
            }
        }
        if let Some((best, _)) = lbfgs.best() {
            for (k, at) in each().enumerate() {
                self.mean[at] = best[k];
                self.variance[at] = best[n * q + k].exp();
            }
        }
        Ok(())
    }
}

/// Places the rows of a batch at the present q(u), and makes a natural-gradient step of it.
fn settle(
    global: &mut Global,
    model: &Gplvm,
    held: &mut Held,
    targets: &Targets,
    (weight, length, iterations): (f64, f64, usize),
) -> Result<()> {
    let posterior = global.posterior(model)?;
    let grams = posterior.grams();
    held.improve(Places::of_targets(&posterior, targets, &grams), iterations)?;
    global.step(&posterior, (held.x()?, targets), (weight, length))
}

/// Trains all rows by minibatches, from a model that some of them have trained: the model with q(X) of all, and its bound. Where the bound did
/// not rise that is the start, with every row placed. `watch` sees
/// every step, and ends the training by false.
///
/// # Errors
/// As for [`Bound::new`](super::Bound::new) at the start.
pub(super) fn train(
    first: &Gplvm,
    known: &Targets,
    (y, targets): (MatRef<f64>, &Targets),
    options: &GplvmOptions,
    how: &GplvmBatches,
    watch: &mut dyn FnMut(GplvmProgress) -> bool,
) -> Result<(Gplvm, f64)> {
    let n = targets.rows();
    // every row starts near one that is placed
    let posterior = first.bound(known)?.posterior();
    let near = EmbedOptions { starts: 1, iterations: 1, ..EmbedOptions::default() };
    let placed = posterior.embed(y, first.latent()?, &near)?;
    let mut all = Held { mean: placed.mean, variance: placed.variance };
    let start = all.in_model(first);
    let (mut global, begun) = {
        let bound = start.bound(targets)?;
        (Global::best(&bound), bound.value())
    };
    let mut model = first.clone();

    let batch = how.rows.min(n);
    let each = n.div_ceil(batch);
    let steps = each * how.epochs;
    let adam = AdamOptions {
        learning_rate: how.learning_rate,
        schedule: Schedule::Cosine { steps, last: 0.1 },
        ..AdamOptions::default()
    };
    let mut adam = Adam::new(free_values(|v| visit(&model, v)), adam);
    let mut step = 0;
    'epochs: for epoch in 1..=how.epochs {
        let order = permutation(&mut stream(options.seed, &format!("latent/{epoch}")), n, n);
        let mut sum = 0.0;
        for (at, rows) in order.chunks(batch).enumerate() {
            let own = targets.some(rows);
            let weight = n as f64 / rows.len() as f64;
            let mut held = Held {
                mean: rows_of(all.mean.as_ref(), rows),
                variance: rows_of(all.variance.as_ref(), rows),
            };
            step += 1;
            let length = ((step + each) as f64).powf(-0.5);
            match settle(&mut global, &model, &mut held, &own, (weight, length, how.iterations)) {
                // Adam's last move was too long, and is halved where the bound has no value
                Err(error) if error.is_recoverable() => {}
                outcome => outcome?,
            }
            let x = held.x()?;
            let mut objective =
                Batch { model: &mut model, global: &global, x, targets: &own, weight };
            let taken = adam.step(&mut objective)?;
            set_free_values(|v| visit_mut(&mut model, v), adam.x());
            all.put(rows, &held);
            sum += -taken.value;
            let continues = watch(GplvmProgress {
                restart: options.restarts - 1,
                iteration: step,
                bound: sum / (at + 1) as f64,
                gradient: taken.gradient_norm,
                epoch: Some(epoch),
            });
            if !continues {
                break 'epochs;
            }
        }
    }
    let model = all.in_model(&model);
    let value = model.bound(targets).map(|bound| bound.value());
    match value {
        Ok(value) if value > begun => Ok((model, value)),
        _ => Ok((start, begun)),
    }
}
