//! Inputs whose logarithms are learnt from.
//!
//! To a kernel of differences, nearly all rows are in one place where an input runs over powers of ten. Whether its logarithm
//! explains the targets better is a matter of the evidence on a sample of the rows, which the input itself and its logarithm have
//! in the same units.

use super::checks::over_decades;
use super::target_transform::sampled_evidence;
use super::{Dataset, FitOptions, sample_rows};
use crate::data::log_inputs::log_unit;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::linalg::column;
use crate::methods;
use crate::train::Observer;

/// Which inputs are learnt from by their logarithms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogInputs {
    /// Those that are positive and run over powers of ten, where the evidence of a sample of the rows is better by that.
    #[default]
    Auto,
    /// None.
    None,
    /// Those of these names.
    Named(Vec<String>),
}

/// Rows of the sample.
const ROWS: usize = 200;
/// Nats by which logarithms must be better.
const LEAST_GAIN: f64 = 2.0;

impl LogInputs {
    /// Reads `auto`, `none`, or names with commas between them.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "auto" => Self::Auto,
            "none" => Self::None,
            names => Self::Named(names.split(',').map(|name| name.trim().to_owned()).collect()),
        }
    }

    /// Returns what [`LogInputs::parse`] reads.
    pub fn text(&self) -> String {
        match self {
            Self::Auto => "auto".into(),
            Self::None => "none".into(),
            Self::Named(names) => names.join(","),
        }
    }
}

/// Why there are no logarithms of inputs, if so.
fn obstacle(dataset: &Dataset) -> Option<&'static str> {
    match () {
        () if dataset.deviations.is_some() => Some("inputs have standard deviations"),
        () if dataset.held_out.is_some() => Some("early stopping holds rows out"),
        () if dataset.source.sharded().is_some() => Some("rows are in other processes"),
        () if !dataset.source.is_resident() => Some("rows are read from files again and again"),
        () => None,
    }
}

/// Whether lengthscales or points were given on the scale of the inputs as they are.
fn has_values(options: &FitOptions) -> bool {
    let given =
        ["lengthscale", "period", "location"].iter().any(|own| options.kernel.contains(own));
    let deep =
        methods::find(&options.method).is_ok_and(|entry| entry.method.architecture().is_some());
    given
        || deep
        || options.kernel_in_data_units
        || options.set.iter().any(|(path, _)| path.contains("kernel") || path.contains("inducing"))
        || matches!(options.selection, Selection::Given(_))
}

/// Returns the data set with the logarithms that the options ask for, none where it stays as it is, and the options with what
/// was decided.
///
/// # Errors
/// [`Error::Invalid`] for a name that no input has, values that are not positive, and where logarithms cannot be had; what
/// reading and judging the rows gives.
pub(super) fn resolved(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &dyn Observer,
) -> Result<(Option<Dataset>, FitOptions)> {
    let undecided = || Ok((None, options.clone()));
    let settled = FitOptions { log_inputs: LogInputs::Named(Vec::new()), ..options.clone() };
    let standardised = dataset.scaler.x_scale.iter().any(|scale| *scale != 1.0);
    match &options.log_inputs {
        LogInputs::None => undecided(),
        LogInputs::Named(names) if names.is_empty() => undecided(),
        LogInputs::Named(names) => {
            if let Some(why) = obstacle(dataset) {
                return Err(Error::Invalid(format!(
                    "logarithms of inputs are not to be had: {why}; leave out `--log-inputs` (`log_inputs` in Python)"
                )));
            }
            let inputs =
                names.iter().map(|name| place(dataset, name)).collect::<Result<Vec<_>>>()?;
            Ok((Some(dataset.with_logarithms(units(dataset, &inputs)?)?), settled))
        }
        LogInputs::Auto => {
            let given = has_values(options) || dataset.part || options.pilot == 0;
            if obstacle(dataset).is_some() || !standardised || given {
                return undecided();
            }
            let sample = dataset.sampled(ROWS, options.seed)?;
            let rows = sample_rows(&*sample.source, ROWS, options.seed)?;
            let inputs = over_decades(&sample, rows.x.as_ref());
            if inputs.is_empty() {
                return undecided();
            }
            let kept = better(dataset, &sample, options, &inputs, (engine, observer))?;
            let own = match kept.is_empty() {
                true => None,
                false => Some(dataset.with_logarithms(units(dataset, &kept)?)?),
            };
            Ok((own, settled))
        }
    }
}

/// The inputs whose logarithms make the evidence larger, one after the other.
fn better(
    dataset: &Dataset,
    sample: &Dataset,
    options: &FitOptions,
    inputs: &[usize],
    (engine, observer): (&dyn Engine, &dyn Observer),
) -> Result<Vec<usize>> {
    let mut kept = Vec::new();
    let mut best = sampled_evidence(sample, options, engine, observer)?;
    for q in inputs {
        let mut own = kept.clone();
        own.push(*q);
        let with = sample.with_logarithms(units(dataset, &own)?)?;
        let evidence = sampled_evidence(&with, options, engine, observer)?;
        if evidence > best + LEAST_GAIN {
            (kept, best) = (own, evidence);
        }
    }
    Ok(kept)
}

fn place(dataset: &Dataset, name: &str) -> Result<usize> {
    let known = &dataset.input_names;
    known.iter().position(|own| own == name).ok_or_else(|| {
        Error::Invalid(format!(
            "log inputs: there is no input `{name}`; inputs are {}",
            known.iter().map(|own| format!("`{own}`")).collect::<Vec<_>>().join(", ")
        ))
    })
}

/// The unit of the logarithm of each of these inputs, by all rows.
fn units(dataset: &Dataset, inputs: &[usize]) -> Result<Vec<Option<f64>>> {
    let rows = sample_rows(&*dataset.source, 1 << 14, 0)?;
    let mut all = vec![None; dataset.input_names.len()];
    for &q in inputs {
        let own = |v: &f64| dataset.scaler.unscaled_input(q, *v);
        let values: Vec<f64> = column(rows.x.as_ref(), q).iter().map(own).collect();
        // scaling and back may leave a rest of a zero
        let zero = -1e-9 * (dataset.scaler.x_mean[q].abs() + dataset.scaler.x_scale[q]);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let unit = log_unit(&values).filter(|_| least >= zero);
        all[q] = Some(unit.ok_or_else(|| {
            Error::Invalid(format!(
                "log inputs: values of `{}` are down to {least:e}: logarithms are for inputs that are not negative",
                dataset.input_names[q]
            ))
        })?);
    }
    Ok(all)
}
