//! Which columns hold standard deviations of inputs, for the commands that predict.

use crate::fail::{Fail, Result};
use crate::values;
use clap::Args;
use sparsegp::fit::Fitted;

/// Options of tables whose inputs have errors.
#[derive(Clone, Debug, Args)]
pub struct NoisyArgs {
    /// Column with the standard deviation of the error of an input, such as --input-sd depth=depth_sd; repeatable, and by
    /// default those of the fit. What is predicted is then the average over inputs within their errors
    #[arg(long, value_name = "INPUT=COLUMN", value_parser = values::pair, conflicts_with = "exact_inputs")]
    pub input_sd: Vec<(String, String)>,
    /// Take inputs for exact although the fit had standard deviations of them
    #[arg(long)]
    pub exact_inputs: bool,
}

impl NoisyArgs {
    /// Returns the model for tables with these columns.
    ///
    /// # Errors
    /// As for [`Fitted::with_input_deviations_of`].
    pub fn of(&self, fitted: Fitted) -> Result<Fitted> {
        if self.exact_inputs {
            return Ok(fitted.without_input_deviations());
        }
        match self.input_sd.is_empty() {
            true => Ok(fitted),
            false => fitted.with_input_deviations_of(&self.input_sd).map_err(Fail::of_usage),
        }
    }
}
