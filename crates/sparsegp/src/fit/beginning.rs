//! The model before anything is judged: likelihood, mean function and kernels with starting values from the rows.

use super::checks::check_labels;
use super::moments::{moments, spread};
use super::{Dataset, FitOptions, spreads, units};
use crate::data::holidays::inputs_of_holidays;
use crate::data::{InMemory, Scaler};
use crate::error::{Error, Result};
use crate::kernels::{self, Inputs, Kernel};
use crate::likelihoods::{self, Likelihood, Target};
use crate::linalg::column;
use crate::means::{self, Mean};
use crate::params::Role;

/// Returns the known targets of every column with their further numbers; one that can be anything
/// where a column has none.
pub(super) fn targets_of(sample: &InMemory, likelihood: &dyn Likelihood) -> Vec<Vec<Target>> {
    let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
    let of_column = |j: usize| {
        let values = column(sample.y.as_ref(), j).iter().enumerate();
        let extra = |i: usize| sample.extra.get(i).copied().unwrap_or(default);
        let known = values.filter(|(_, y)| !y.is_nan());
        let mut own: Vec<Target> = known.map(|(i, y)| Target { y: *y, extra: extra(i) }).collect();
        if own.is_empty() {
            own.push(Target { y: 0.0, extra: default });
        }
        own
    };
    (0..sample.y.ncols()).map(of_column).collect()
}

/// Returns whether rows bring noise variances.
pub(super) fn knows_noise(likelihood: &dyn Likelihood, sample: &InMemory) -> bool {
    likelihood.as_gaussian().is_some() && !sample.extra.is_empty()
}

/// Gives the likelihood its starting values. Returns where latent functions start.
pub(super) fn latent_starts(
    likelihood: &mut dyn Likelihood,
    targets: &[Vec<Target>],
    sample: &InMemory,
) -> Result<Vec<f64>> {
    likelihood.adopt_unit(&targets.concat());
    let of_column = |own: &Vec<Target>| likelihood.clone_box().initialise(own);
    let mut starts: Vec<f64> = targets.iter().flat_map(of_column).collect();
    if knows_noise(likelihood, sample) {
        // rows of much noise would move the others' mean
        let own = moments(sample, true).into_iter().map(|(centre, _)| centre);
        starts.iter_mut().zip(own).for_each(|(start, centre)| *start = centre);
    }
    likelihood.initialise(&targets.concat());
    likelihood.trial(&targets.concat())?;
    Ok(starts)
}

/// Returns how many latent functions there are, of as many starts.
pub(super) fn latent_functions(
    likelihood: &dyn Likelihood,
    starts: usize,
    outputs: usize,
) -> Result<usize> {
    match likelihood.mixing().map(likelihoods::mixing_shape) {
        None => Ok(starts),
        Some((rows, latents)) if rows == outputs => Ok(latents),
        Some((rows, _)) => Err(Error::Shape {
            what: "targets of the likelihood `coregionalised`".into(),
            expected: format!("outputs={outputs}, as many as there are target columns"),
            found: format!("{rows}"),
        }),
    }
}

/// Returns whether targets are about 0, so that no mean function is needed.
pub(super) fn is_centred(
    dataset: &Dataset,
    likelihood: &dyn Likelihood,
    sample: &InMemory,
) -> bool {
    let (d, p) = (dataset.source.inputs(), sample.y.ncols());
    // a scaler knows nothing of the noise of rows
    let single = likelihood.latents() == 1 && !knows_noise(likelihood, sample);
    dataset.scaler != Scaler::identity(d, p) && likelihood.standardises() && single
}

/// Makes the kernels that were asked for, with starting values. Returns them with the variance that
/// Gaussian noise starts from.
pub(super) fn started_kernels(
    dataset: &Dataset,
    options: &FitOptions,
    likelihood: &dyn Likelihood,
    latents: usize,
    targets: &[Vec<Target>],
    seen: &InMemory,
) -> Result<(Vec<Box<dyn Kernel>>, f64)> {
    let mut kernels = kernels(asked_kernels(dataset, options)?, likelihood, latents)?;
    if options.kernel_in_data_units {
        units::from_data(&mut kernels, &dataset.scaler, likelihood.latents())?;
    }
    let variance = match likelihood.standardises() {
        true => spread(&moments(seen, knows_noise(likelihood, seen))),
        false => likelihood.latent_variance(&targets.concat()),
    };
    let spreads = spreads(seen.x.as_ref());
    check_labels(dataset, &kernels)?;
    for (l, kernel) in kernels.iter_mut().enumerate() {
        // of latent functions that differ in kind the first has the unit of the targets
        let first = !likelihood.separate_kernels() || l % likelihood.latents() == 0;
        kernel.initialise(&spreads, if first { variance } else { 1.0 });
        kernel.initialise_from_rows(seen.x.as_ref(), seen.y.as_ref());
        kernel.trial(seen.x.as_ref())?;
    }
    Ok((kernels, variance))
}

/// Returns the mean function that was asked for, with its constants at the latent functions'
/// starts. Without a wish it is zero for standardised targets, else constant.
pub(super) fn mean(
    dataset: &Dataset,
    options: &FitOptions,
    plain: bool,
    starts: &[f64],
    seen: &InMemory,
) -> Result<Box<dyn Mean>> {
    let d = dataset.source.inputs();
    let name = options.mean.as_deref().unwrap_or(if plain { "zero" } else { "constant" });
    let mut mean = if name.trim_start().starts_with('{') {
        let json = serde_json::from_str(name)
            .map_err(|e| Error::Invalid(format!("mean {name}: not valid JSON: {e}")))?;
        means::from_json(&json, d, starts.len())?
    } else {
        means::by_name(name, d, starts.len())?
    };
    for (_, param) in mean.params_mut() {
        // a parameter of another crate's may be called `constant` too
        if param.role() == Role::Constant && !param.given {
            param.start(starts);
        }
    }
    mean.trial(seen.x.as_ref(), starts.len())?;
    Ok(mean)
}

/// Returns the kernels that are asked for, separated by `;`.
///
/// # Errors
/// Those of [`kernels::parse`].
pub(super) fn asked_kernels(
    dataset: &Dataset,
    options: &FitOptions,
) -> Result<Vec<Box<dyn Kernel>>> {
    let (names, d) = (&dataset.input_names, dataset.source.inputs());
    let inputs = if names.len() == d { Inputs::named(names) } else { Inputs::unnamed(d) };
    // holidays have their own term
    let groups = inputs_of_holidays(&dataset.columns);
    let inputs = Inputs { groups: &groups, ..inputs };
    options.kernel.split(';').map(|part| kernels::parse(part.trim(), inputs)).collect()
}

/// Returns one kernel for all latent functions, or one for each.
fn kernels(
    mut all: Vec<Box<dyn Kernel>>,
    likelihood: &dyn Likelihood,
    latents: usize,
) -> Result<Vec<Box<dyn Kernel>>> {
    if all.len() == 1 && likelihood.separate_kernels() {
        all = vec![all[0].clone(); latents];
    }
    if all.len() != 1 && all.len() != latents {
        return Err(Error::Invalid(format!(
            "{} kernels were given; {latents} latent functions need one for all or one for each",
            all.len()
        )));
    }
    Ok(all)
}
