//! Inputs whose logarithms are learnt from.
//!
//! To a kernel of differences, nearly all rows are in one place where an input runs over powers of ten. Whether its logarithm
//! explains the targets better is a matter of the evidence on a sample of the rows, which the input itself and its logarithm have
//! in the same units.

use super::checks::over_decades;
use super::target_transform::sampled_evidence;
use super::{Dataset, FitOptions, is_automatic, sample_rows, seasons};
use crate::data::holidays::inputs_of_holidays;
use crate::data::log_inputs::log_unit;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::inducing::select::Selection;
use crate::kernels::{self, Inputs};
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
    /// Those of these names; of an empty list nothing is left to be decided.
    Named(Vec<String>),
}

/// Rows of the sample.
const ROWS: usize = 200;
/// Parts of the size of an input that are a rest of zero, and that are lost beside its mean.
const ROUNDING: f64 = 1e-9;
const LOST: f64 = 1e-12;
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

/// Returns why inputs cannot be replaced by their logarithms, if so.
pub(super) fn obstacle(dataset: &Dataset) -> Option<&'static str> {
    match () {
        () if dataset.deviations.is_some() => Some("inputs have standard deviations"),
        () if dataset.held_out.is_some() => Some("early stopping holds rows out"),
        () if dataset.source.sharded().is_some() => Some("rows are in other processes"),
        () if !dataset.source.is_resident() => Some("rows are read from files again and again"),
        () => None,
    }
}

/// Returns whether values were given that are of the inputs as they are: of the kernel, the mean
/// function or inducing points.
fn has_values(dataset: &Dataset, options: &FitOptions) -> bool {
    let deep =
        methods::find(&options.method).is_ok_and(|entry| entry.method.architecture().is_some());
    let groups = inputs_of_holidays(&dataset.columns);
    let inputs = Inputs { groups: &groups, ..Inputs::named(&dataset.input_names) };
    let given = |spec: &str| match kernels::parse(spec.trim(), inputs) {
        Ok(kernel) => kernel
            .params()
            .iter()
            .any(|(_, param)| param.given || param.prior.is_some() || param.bounds().any()),
        // what cannot be read is refused later
        Err(_) => true,
    };
    let of_inputs = |path: &str| !path.starts_with("likelihood");
    deep || options.kernel_in_data_units
        || !is_automatic(&options.kernel) && options.kernel.split(';').any(given)
        || options.mean.as_deref().is_some_and(|mean| mean.trim_start().starts_with('{'))
        || options.set.iter().any(|(path, _)| of_inputs(path))
        || matches!(options.selection, Selection::Given(_))
}

/// Returns the data set with the logarithms that the options ask for, none where it is unchanged, and the options with what
/// was decided.
///
/// # Errors
/// [`Error::Invalid`] for a name that no input has, negative values, and where rows cannot be rewritten; what
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
                    "logarithms of inputs cannot be taken: {why}; leave out `--log-inputs` (`log_inputs` in Python)"
                )));
            }
            let inputs =
                names.iter().map(|name| place(dataset, name)).collect::<Result<Vec<_>>>()?;
            let units = units(dataset, &inputs)?;
            check(dataset, &inputs, &units)?;
            Ok((Some(dataset.with_logarithms(units)?), settled))
        }
        LogInputs::Auto => {
            let given = has_values(dataset, options) || dataset.part || options.pilot == 0;
            let given = given || !seasons::named(options).is_empty();
            if obstacle(dataset).is_some() || !standardised || given {
                return undecided();
            }
            let sample = dataset.sampled(ROWS, options.seed)?;
            let rows = sample_rows(&*sample.source, ROWS, options.seed)?;
            let mut inputs = over_decades(&sample, rows.x.as_ref());
            let known = units(dataset, &inputs)?;
            inputs.retain(|q| known[*q].is_some());
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

/// Returns the inputs whose logarithms make the evidence larger, one after the other.
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

/// Returns the unit of the logarithm of each of these inputs, by all rows; none for one that has
/// none.
fn units(dataset: &Dataset, inputs: &[usize]) -> Result<Vec<Option<f64>>> {
    let rows = sample_rows(&*dataset.source, 1 << 14, 0)?;
    let mut all = vec![None; dataset.input_names.len()];
    for &q in inputs {
        let own = |v: &f64| dataset.scaler.unscaled_input(q, *v);
        let values: Vec<f64> = column(rows.x.as_ref(), q).iter().map(own).collect();
        // scaling and back leaves a rest of a zero, and loses what is far smaller than the mean
        let rest = dataset.scaler.x_mean[q].abs() + dataset.scaler.x_scale[q];
        let negative = least(dataset, q)? < -ROUNDING * rest;
        let lost = |c: &f64| *c < LOST * rest;
        all[q] = log_unit(&values).filter(|c| !negative && !lost(c));
    }
    Ok(all)
}

/// Returns the smallest value of an input.
fn least(dataset: &Dataset, q: usize) -> Result<f64> {
    let mut least = f64::INFINITY;
    dataset.source.for_each_chunk(1 << 14, &mut |rows| {
        least = column(rows.x, q).iter().fold(least, |m, v| m.min(*v));
        Ok(())
    })?;
    Ok(dataset.scaler.unscaled_input(q, least))
}

/// Refuses inputs without a unit.
fn check(dataset: &Dataset, inputs: &[usize], units: &[Option<f64>]) -> Result<()> {
    let Some(q) = inputs.iter().find(|q| units[**q].is_none()) else { return Ok(()) };
    Err(Error::Invalid(format!(
        "log inputs: `{}` has no logarithm: its values are down to {:e}, and it is for inputs that are not negative, and not \
         smaller than 10⁻¹² of their mean, which is lost before; take the logarithm in the table",
        dataset.input_names[*q],
        least(dataset, *q)?
    )))
}
