//! Gaussian particle flow (Galy-Fajou, Perrone & Opper 2021, Algorithm 2; eq. 13 with the signs of its derivation).
//!
//! ```text
//! X ← X − η₁ d 1ᵀ + η₂ (Z − ΨZ)      d = ḡ or C ḡ
//! ```
//! Nothing is drawn after the start. For a Gaussian target of precision Λ with condition number κ the covariance
//! needs η₂ < 2/(κ + 1/κ) near the optimum; far away a direction with u = λc goes u ← u(1 + η₂(1 − u))², which
//! diverges for u > 1 + 2/η₂. So the start should be no wider than the target, or rates be controlled ([`Control`]).

use super::blocks::Blocks;
use super::energy::{free_energy, log_determinants};
use super::field::{Field, MeanFlow};
use super::optimiser::{FlowOptimiser, Rule, Scale, check_rates, check_schedule};
use super::particles::Particles;
use super::run::{Progress, Solver};
use super::target::{Evaluation, Target, check_dim};
use crate::error::{Error, Result};
use crate::linalg::{Mat, column, column_mut};
use crate::optim::Schedule;

/// What keeps steps from going too far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Nothing.
    #[default]
    Free,
    /// η₂ is at most ½/‖Ψ − Π‖_F.
    Cap,
    /// Moves are halved while they raise the free energy. Only for targets without noise, and for
    /// rules whose moves go down: not for Adam's momentum, of which a half need not go down either.
    Halve,
}

/// How particles flow.
#[derive(Clone, Debug, PartialEq)]
pub struct GpfOptions {
    /// η₁.
    pub mean_rate: f64,
    /// η₂.
    pub spread_rate: f64,
    /// Which way the mean goes.
    pub mean_flow: MeanFlow,
    /// Which coordinates are dependent.
    pub blocks: Blocks,
    /// How flows become moves; anything but [`Rule::Plain`] has a scale for every dimension.
    pub rule: Rule,
    /// Whether mean and spread have separate optimisers; else one sees both, and there is one rate
    /// η₁ = η₂. No matter for [`Rule::Plain`].
    pub apart: bool,
    /// How rates change.
    pub schedule: Schedule,
    /// What keeps steps from going too far.
    pub control: Control,
    /// Whether flows are measured by the curvature that the particles see ([`Field::preconditioned`]): for
    /// [`Blocks::Whole`], [`Rule::Plain`] and more particles than dimensions.
    pub preconditioned: bool,
}

impl Default for GpfOptions {
    fn default() -> Self {
        Self {
            mean_rate: 0.05,
            spread_rate: 0.05,
            mean_flow: MeanFlow::Plain,
            blocks: Blocks::Whole,
            rule: Rule::Plain,
            apart: false,
            schedule: Schedule::Constant,
            control: Control::Free,
            preconditioned: false,
        }
    }
}

/// Halvings of one move before the flow counts as stalled.
const HALVINGS: usize = 40;

/// Particles that flow.
#[derive(Clone, Debug)]
pub struct Gpf {
    particles: Particles,
    options: GpfOptions,
    /// Of both, or of the mean and of the spread.
    optimisers: Vec<FlowOptimiser>,
    /// Values at the particles of the target that moved them, only for [`Solver::advance_on`].
    evaluation: Option<Evaluation>,
    /// What the last move was multiplied by.
    scale: f64,
}

/// Where a flow stands: values, gradients, free energy and flow at the particles.
#[derive(Clone, Debug)]
pub struct GpfState {
    /// φ and ∇φ.
    pub evaluation: Evaluation,
    /// log|C_b|, or log|R_b| where that is singular, of every block.
    pub log_determinants: Vec<f64>,
    /// F̃.
    pub free_energy: f64,
    /// The flow.
    pub field: Field,
}

impl Gpf {
    /// Starts from particles.
    ///
    /// # Errors
    /// [`Error::Invalid`] for options that do not go together, [`Error::NotPositiveDefinite`] for particles that are
    /// affinely dependent.
    pub fn new(particles: Particles, options: GpfOptions) -> Result<Self> {
        let (mean, spread) = (options.mean_rate, options.spread_rate);
        check_rates(&[mean, spread])?;
        check_schedule(options.schedule)?;
        if options.rule != Rule::Plain && !options.apart && mean != spread {
            return Err(Error::Invalid(format!(
                "one optimiser has one rate, not {mean} for the mean and {spread} for the spread: set `apart`, or \
                 both to the same"
            )));
        }
        if options.control == Control::Halve && matches!(options.rule, Rule::Adam { .. }) {
            return Err(Error::Invalid(
                "Adam's momentum may point up, and no half of such a move goes down: take `Control::Cap`, or `Rule::Plain`, \
                 AdaGrad or RMSProp with `Control::Halve`"
                    .into(),
            ));
        }
        let whole = options.blocks == Blocks::Whole && particles.count() > particles.dim();
        if options.preconditioned && !(whole && options.rule == Rule::Plain) {
            return Err(Error::Invalid(format!(
                "a preconditioned flow needs more particles than the {} dimensions, all of them in one block, and plain steps",
                particles.dim()
            )));
        }
        particles.check_independent(&options.blocks)?;
        let count = if options.apart { 2 } else { 1 };
        let optimiser = || FlowOptimiser::new(options.rule, Scale::Dimension);
        let optimisers = (0..count).map(|_| optimiser()).collect::<Result<_>>()?;
        Ok(Self { particles, options, optimisers, evaluation: None, scale: 1.0 })
    }

    /// Returns the particles.
    pub fn particles(&self) -> &Particles {
        &self.particles
    }

    /// Returns the options.
    pub fn options(&self) -> &GpfOptions {
        &self.options
    }

    /// Computes where the flow stands, with the rows of the data that the target has now.
    ///
    /// # Errors
    /// As for [`Evaluation::of`] and [`log_determinants`].
    pub fn state(&self, target: &mut dyn Target) -> Result<GpfState> {
        self.state_with(Evaluation::of(target, self.particles.x())?)
    }

    fn state_with(&self, evaluation: Evaluation) -> Result<GpfState> {
        let (x, blocks) = (self.particles.x(), &self.options.blocks);
        let log_determinants = log_determinants(self.particles.deviations().as_ref(), blocks)?;
        let gradient = evaluation.gradient.as_ref();
        let field = match self.options.preconditioned {
            true => Field::preconditioned(x, gradient)?,
            false => Field::new(x, gradient, blocks, self.options.mean_flow)?,
        };
        let free_energy = free_energy(evaluation.mean_phi(), &log_determinants);
        Ok(GpfState { evaluation, log_determinants, free_energy, field })
    }

    /// Returns the move along a flow, D×N, and what the spread's rate was multiplied by.
    fn moves(&mut self, field: &Field, step: usize) -> Result<(Mat<f64>, f64)> {
        let factor = self.options.schedule.factor(step);
        let (mean_rate, mut rate) =
            (factor * self.options.mean_rate, factor * self.options.spread_rate);
        let mut scale = 1.0;
        if self.options.control == Control::Cap {
            let cap = 0.5 / field.residual.sqrt();
            if cap < rate {
                scale = cap / rate;
                rate = cap;
            }
        }
        if self.options.rule == Rule::Plain {
            let spread = &field.spread;
            let move_of = |i: usize, n: usize| mean_rate * field.mean[i] + rate * spread[(i, n)];
            return Ok((Mat::from_fn(spread.nrows(), spread.ncols(), move_of), scale));
        }
        if let [of_mean, of_spread] = &mut self.optimisers[..] {
            let mean = of_mean.step_vector(&field.mean, mean_rate)?;
            let spread = of_spread.step(field.spread.as_ref(), rate)?;
            return Ok((super::particles::shifted(spread, &mean), scale));
        }
        let flow = super::particles::shifted(field.spread.clone(), &field.mean);
        Ok((self.optimisers[0].step(flow.as_ref(), rate)?, scale))
    }

    fn place(&mut self, from: &Mat<f64>, by: &Mat<f64>, scale: f64) {
        let x = self.particles.x_mut();
        for n in 0..from.ncols() {
            let (from, by) = (column(from.as_ref(), n), column(by.as_ref(), n));
            let to = column_mut(x.as_mut(), n).iter_mut();
            to.zip(from).zip(by).for_each(|((to, from), by)| *to = from + scale * by);
        }
    }

    /// Moves by the longest of the move, its half, its quarter, … that does not raise the free energy. False if there
    /// is none.
    fn descend(&mut self, target: &mut dyn Target, by: &Mat<f64>, before: f64) -> Result<bool> {
        let from = self.particles.x().to_owned();
        // what rounding may add
        let bar = before + 1e-13 * (1.0 + before.abs());
        self.scale = (2.0 * self.scale).min(1.0);
        for _ in 0..HALVINGS {
            self.place(&from, by, self.scale);
            let outcome = self
                .particles
                .is_finite()
                .then(|| Evaluation::of(target, self.particles.x()))
                .transpose()
                .and_then(|evaluation| {
                    let Some(evaluation) = evaluation else { return Ok(None) };
                    let (z, blocks) = (self.particles.deviations(), &self.options.blocks);
                    let value =
                        free_energy(evaluation.mean_phi(), &log_determinants(z.as_ref(), blocks)?);
                    Ok((value <= bar).then_some(evaluation))
                });
            match outcome {
                Ok(Some(evaluation)) => {
                    self.evaluation = Some(evaluation);
                    return Ok(true);
                }
                Ok(None) => {}
                Err(error) if error.is_recoverable() => {}
                Err(error) => return Err(error),
            }
            self.scale *= 0.5;
        }
        self.place(&from, by, 0.0);
        Ok(false)
    }
}

impl Solver for Gpf {
    fn advance(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress> {
        // another target, or other data of the same one, have other values at the particles
        self.evaluation = None;
        self.advance_on(target, step)
    }

    fn advance_on(&mut self, target: &mut dyn Target, step: usize) -> Result<Progress> {
        check_dim("the target", target.dim(), self.particles.dim())?;
        let halves = self.options.control == Control::Halve;
        if halves && target.is_noisy() {
            return Err(Error::Invalid(
                "free energies of minibatches say nothing about a move: take `Control::Cap`, or \
                 all rows at a time"
                    .into(),
            ));
        }
        target.renew(step);
        let known = self.evaluation.take().filter(|_| !target.is_noisy());
        let evaluation = known.map_or_else(|| Evaluation::of(target, self.particles.x()), Ok)?;
        let state = self.state_with(evaluation)?;
        let (by, scale) = self.moves(&state.field, step)?;
        let mut progress = Progress {
            free_energy: Some(state.free_energy),
            stationarity: state.field.slope_square + state.field.residual,
            scale,
            stalled: false,
        };
        if halves {
            progress.stalled = !self.descend(target, &by, state.free_energy)?;
            progress.scale = scale * self.scale;
        } else {
            let from = self.particles.x().to_owned();
            self.place(&from, &by, 1.0);
        }
        Ok(progress)
    }

    fn is_finite(&self) -> bool {
        self.particles.is_finite()
    }

    fn check(&self, target: &mut dyn Target, _: usize) -> Result<()> {
        // halved moves are kept for their finite values
        if self.evaluation.is_some() && !target.is_noisy() {
            return Ok(());
        }
        self.state(target).map(drop)
    }
}

/// Follows the flow in continuous time, ẋ = −d + (I − Ψ)(x − m), by so many Runge–Kutta steps of order 4: for what is
/// known of its rates (Galy-Fajou, Perrone & Opper 2021, §3.4). With [`GpfOptions::default`]'s blocks and mean.
///
/// # Errors
/// [`Error::Invalid`] for no steps or a time that is negative or not finite; as for [`Evaluation::of`] on the way.
pub fn follow(
    particles: &Particles,
    target: &mut dyn Target,
    time: f64,
    steps: usize,
) -> Result<Particles> {
    if steps == 0 || !(time >= 0.0 && time.is_finite()) {
        let text =
            format!("a time from 0 on is followed in one step or more, not {time} in {steps}");
        return Err(Error::Invalid(text));
    }
    let h = time / steps as f64;
    let mut x = particles.x().to_owned();
    let mut field = |x: &Mat<f64>| {
        let own = Evaluation::of(target, x.as_ref())?;
        let field = Field::new(x.as_ref(), own.gradient.as_ref(), &Blocks::Whole, MeanFlow::Plain)?;
        Ok::<_, Error>(super::particles::shifted(field.spread, &field.mean))
    };
    for _ in 0..steps {
        let first = field(&x)?;
        let second = field(&(&x + &first * faer::Scale(0.5 * h)))?;
        let third = field(&(&x + &second * faer::Scale(0.5 * h)))?;
        let fourth = field(&(&x + &third * faer::Scale(h)))?;
        x += (first + fourth + (second + third) * faer::Scale(2.0)) * faer::Scale(h / 6.0);
    }
    Particles::new(x)
}
