//! Options of `sparsegp fit` for `rsvgp` alone: how the inverse by products follows the other parameters.

use crate::values;
use clap::{Args, ValueEnum};
use sparsegp::inverse_free::{Estimate, Schedule, Traces};
use sparsegp::linalg::Precision;
use sparsegp::train::StochasticOptions;

const HEADING: &str = "Training of rsvgp by minibatches";

/// Options for the inverse by products.
#[derive(Debug, Args)]
pub struct RelaxedArgs {
    /// Residual ‖LᵀK̃L − I‖/√M at which the steps of L end [default: 0.005]
    #[arg(long, allow_negative_numbers = true, value_name = "R", value_parser = values::positive, help_heading = HEADING)]
    pub inverse_tolerance: Option<f64>,
    /// Most steps of L in an iteration [default: 100]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::at_least_one, help_heading = HEADING)]
    pub inverse_steps: Option<usize>,
    /// How long the steps of L are [default: adaptive]
    #[arg(long, value_enum, value_name = "HOW", help_heading = HEADING)]
    pub inverse_schedule: Option<ScheduleChoice>,
    /// With Gaussian noise: end the steps of L too where the variances of the batch cost no more than this
    /// per row
    #[arg(long, allow_negative_numbers = true, value_name = "NATS", value_parser = values::positive, help_heading = HEADING)]
    pub inverse_slack: Option<f64>,
    /// Random probes for the traces of the bound; 0 for exact traces [default: 256]
    #[arg(long, allow_negative_numbers = true, value_name = "P", value_parser = values::whole, help_heading = HEADING)]
    pub probes: Option<usize>,
    /// Multiply matrices in single precision: twice as fast, bound accurate to about five digits; λ must exceed
    /// 1 % of the kernel variance
    #[arg(long, help_heading = HEADING)]
    pub single: bool,
    /// Iterations for which inducing points stay where they are [default: 1000]
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = values::whole, help_heading = HEADING)]
    pub inducing_wait: Option<usize>,
}

/// Schedules of the steps of L.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScheduleChoice {
    /// 1 where that is safe, else as long as is
    Adaptive,
    /// Always 1
    Constant,
    /// From 1e-5 to 1 over ten steps
    LogLinear,
    /// The best along the direction
    LineSearch,
}

impl From<ScheduleChoice> for Schedule {
    fn from(choice: ScheduleChoice) -> Self {
        match choice {
            ScheduleChoice::Adaptive => Schedule::Adaptive,
            ScheduleChoice::Constant => Schedule::Constant(1.0),
            ScheduleChoice::LogLinear => Schedule::LOG_LINEAR,
            ScheduleChoice::LineSearch => Schedule::LineSearch,
        }
    }
}

impl RelaxedArgs {
    /// The first option given.
    pub fn given(&self) -> Option<&'static str> {
        [
            ("--inverse-tolerance", self.inverse_tolerance.is_some()),
            ("--inverse-steps", self.inverse_steps.is_some()),
            ("--inverse-schedule", self.inverse_schedule.is_some()),
            ("--inverse-slack", self.inverse_slack.is_some()),
            ("--probes", self.probes.is_some()),
            ("--inducing-wait", self.inducing_wait.is_some()),
            ("--single", self.single),
        ]
        .into_iter()
        .find_map(|(name, given)| given.then_some(name))
    }

    /// Puts what was given into the options.
    pub fn apply(&self, training: &mut StochasticOptions, seed: u64) {
        let following = &mut training.following;
        following.seed = seed;
        following.slack = self.inverse_slack.or(following.slack);
        let solver = &mut following.solver;
        solver.tolerance = self.inverse_tolerance.unwrap_or(solver.tolerance);
        solver.most = self.inverse_steps.unwrap_or(solver.most);
        solver.schedule = self.inverse_schedule.map_or(solver.schedule, Schedule::from);
        if self.single {
            solver.products = Precision::Single;
        }
        match self.probes {
            None => {}
            Some(0) => following.traces = Traces::Exact,
            Some(count) => following.traces = Traces::Probes(count, Estimate::LSpace),
        }
        if let Some(wait) = self.inducing_wait {
            training.pace.frozen = wait;
        }
    }
}
