//! Options of training by minibatches.

use super::Pace;
use crate::inverse_free::{Estimate, Traces};
use crate::methods::Following;
use crate::model::Model;
use crate::optim::{AdamOptions, PlateauRate, Schedule};
use crate::params::{Role, Transform};

/// How to train by minibatches.
#[derive(Clone, Debug)]
pub struct StochasticOptions {
    /// Most epochs; by default [`EPOCHS`], or as many as it takes to make
    /// [`LEAST_ITERATIONS`] iterations ([`StochasticOptions::least`]).
    pub epochs: Option<usize>,
    /// Adam; its `multipliers` are for the free numbers. Where they are empty, hyperparameters move
    /// on the scale of their logarithm, inducing points by lengthscales.
    pub adam: AdamOptions,
    /// Share of the learning rate that is left at the end: it falls along half a cosine over all
    /// epochs, or over the time that a limit leaves where that ends first ([`crate::optim::Progress`]),
    /// unless `adam` has its own schedule. 1 for a constant rate.
    pub last_rate: f64,
    /// Factor of the learning rate for inducing points, beside what the lengthscales make of it.
    pub inducing_rate: f64,
    /// Size of natural-gradient steps of q, 0 < ρ ≤ 1; the schedule of `adam` applies to it too. None
    /// to train q by Adam.
    pub natural: Option<f64>,
    /// Whether the size of these steps follows the noise of the natural gradients, and training ends when q no
    /// longer changes (Ranganath et al. 2013; Wenzel et al. 2019). None for what the method does: `svi` does, the others do
    /// not.
    pub adaptive: Option<bool>,
    /// E-steps and M-steps on every minibatch: so many natural-gradient steps of q, then so many of Adam
    /// on the rest, each from its own pass (stochastic partial EM: Adam et al. 2021, Alg. 2). None
    /// for one of each from one pass. Where q is trained by Adam, only the second number counts.
    pub em: Option<(usize, usize)>,
    /// How many classes move in a step, for `svi` with many classes: so many of the latent functions are drawn for
    /// every minibatch, alike and independently of its labels, and make a natural-gradient step, with gradients for
    /// Adam that are unbiased ([`Step::choose`](crate::methods::Step::choose); Galy-Fajou 2022, §7.4). The others cost
    /// their means and variances at the rows of the minibatch. None for all.
    pub classes_per_step: Option<usize>,
    /// Seed of the classes that are drawn; [`fit`](crate::fit::fit) takes that of its options.
    pub seed: u64,
    /// Epochs without a better density of held-out rows after which training ends; the best state is
    /// kept. Without held-out rows it has no effect.
    pub patience: usize,
    /// Seconds between checkpoints, if somebody takes them.
    pub checkpoint_seconds: f64,
    /// Epochs, and iterations for which there are more of them where data are few, unless `epochs` is given.
    pub least: (usize, usize),
    /// Rates of inducing points, and on plateaus.
    pub pace: Pace,
    /// How R-SVGP's T follows the other parameters; of no effect for other methods.
    pub following: Following,
}

/// Epochs, unless a number is given.
pub const EPOCHS: usize = 100;
/// Iterations for which there are more epochs than that where data are few.
pub const LEAST_ITERATIONS: usize = 2000;

impl Default for StochasticOptions {
    fn default() -> Self {
        Self {
            epochs: None,
            adam: AdamOptions { learning_rate: 0.03, ..AdamOptions::default() },
            last_rate: 0.02,
            inducing_rate: 1.0,
            natural: Some(0.1),
            adaptive: None,
            em: None,
            classes_per_step: None,
            seed: 0,
            patience: 10,
            checkpoint_seconds: 60.0,
            least: (EPOCHS, LEAST_ITERATIONS),
            pace: Pace::default(),
            following: Following::default(),
        }
    }
}

impl StochasticOptions {
    /// Returns the paper's recipe for R-SVGP on regressions (Cortinovis et al., §4.2 and App. S5.4;
    /// what their text leaves open is of their released configuration):
    ///
    /// | what | value | from |
    /// | --- | --- | --- |
    /// | learning rate of Adam, constant | 5·10⁻³ | released configuration |
    /// | iterations | 20 000 | released configuration |
    /// | rows of a minibatch ([`StochasticOptions::inverse_free_batch`]) | 100 | released configuration |
    /// | iterations without inducing points | 1000 | released configuration; "the first few" in §3.4 |
    /// | learning rate and β₁ of inducing points | 10⁻³, 0.99 | released configuration; §3.4, item 3 |
    /// | fall of that rate after 100 iterations without a better bound | 0.95, to no less than 10⁻⁶ | App. S5.4; released configuration |
    /// | steps of L | γ = 1, to a residual of 5·10⁻³, at most 100 | §4.2; here γ is less where 1 is not safe |
    /// | probes of the traces | 256 | released configuration; here in L-space |
    ///
    /// It stops L's steps at rounding too, and restarts L where it has lost touch
    /// ([`SolverOptions`]).
    ///
    /// [`SolverOptions`]: crate::inverse_free::SolverOptions
    pub fn inverse_free() -> Self {
        let rate = 5e-3;
        Self {
            adam: AdamOptions { learning_rate: rate, ..AdamOptions::default() },
            last_rate: 1.0,
            inducing_rate: 1e-3 / rate,
            natural: None,
            least: (1, 20_000),
            pace: Pace {
                frozen: 1000,
                beta1: Some(0.99),
                inducing: Some(PlateauRate { factor: 0.95, patience: 100, least: 1e-6 }),
                all: None,
            },
            following: Following {
                traces: Traces::Probes(256, Estimate::LSpace),
                ..Following::default()
            },
            ..Self::default()
        }
    }

    /// Returns the number of rows of a minibatch of that recipe.
    pub const fn inverse_free_batch() -> usize {
        100
    }

    /// Returns the most epochs where so many minibatches make one.
    pub fn epochs(&self, per_epoch: usize) -> usize {
        let (epochs, iterations) = self.least;
        self.epochs.unwrap_or_else(|| epochs.max(iterations.div_ceil(per_epoch)))
    }

    /// Returns the number of steps of Adam on every minibatch.
    pub(super) fn m_steps(&self) -> usize {
        self.em.map_or(1, |(_, m)| m)
    }

    /// Returns Adam's options for this model and so many iterations.
    pub(super) fn adam(&self, model: &Model, iterations: usize) -> AdamOptions {
        let mut adam = self.adam.clone();
        if adam.multipliers.is_empty() {
            adam.multipliers = multipliers(model, self.inducing_rate);
        }
        if adam.schedule == Schedule::Constant && self.last_rate != 1.0 {
            let steps = (iterations * self.m_steps()).max(1);
            adam.schedule = Schedule::Cosine { steps, last: self.last_rate };
        }
        adam
    }
}

/// Largest factor of the learning rate.
const LARGEST_FACTOR: f64 = 10.0;

/// Returns the factors of the learning rate for the free numbers. A hyperparameter is to move on
/// the scale of its logarithm, but a softplus is nearly linear where its value is large: without a
/// factor a lengthscale of 30 would never become one of 100. Inducing points move by lengthscales
/// where those are shorter than the spread of the rows.
fn multipliers(model: &Model, inducing_rate: f64) -> Vec<f64> {
    let mut relevance = vec![0.0; model.inducing_points().map_or(0, |z| z.ncols())];
    model.kernels.iter().for_each(|kernel| kernel.relevance(&mut relevance));
    let mut factors = Vec::new();
    for (_, param) in model.params().into_iter().filter(|(_, p)| !p.frozen) {
        if param.role() == Role::Points {
            let m = param.len() / relevance.len().max(1);
            for r in &relevance {
                factors.extend(std::iter::repeat_n(inducing_rate / r.max(1.0), m));
            }
            continue;
        }
        let transform = param.transform();
        let bounds = param.ruler();
        let values = param.free_places().map(|at| &param.value()[at]);
        factors.extend(values.map(|v| match (transform, bounds) {
            (Transform::Identity, _) => 1.0,
            (_, None) => (v / transform.slope_at(*v)).clamp(1.0, LARGEST_FACTOR),
            // near a bound the slope vanishes: no more than a move in the middle of the interval takes
            (_, Some(ruler)) => {
                let middle = ruler.middle(*v);
                let slope = transform.slope_at(ruler.value(middle));
                (ruler.slope(middle) / slope).clamp(1.0, LARGEST_FACTOR)
            }
        }));
    }
    factors
}
