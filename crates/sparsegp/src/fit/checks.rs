//! Refusals and warnings about rows, targets and kernels before anything is trained.

use super::pilot::span;
use super::{Dataset, FitOptions, Fitted, LogInputs, log_inputs, seasons};
use crate::data::sphere::inputs_of_places;
use crate::data::{InMemory, Rows, Scaler};
use crate::engine::{Description, Sweep, sweep};
use crate::error::{Error, Result, in_shell};
use crate::kernels::{self, Inputs, Kernel};
use crate::likelihoods::{self, Extra, Likelihood, Target};
use crate::linalg::{MatRef, column};
use crate::methods;
use crate::params::Role;

/// Refuses a model whose columns or scales are not those of the data.
pub(super) fn same_columns(fitted: &Fitted, dataset: &Dataset) -> Result<()> {
    let lists = [
        ("inputs", fitted.measured_names(), &dataset.input_names[..]),
        ("targets", &fitted.target_names[..], &dataset.target_names[..]),
    ];
    for (what, own, given) in lists {
        if own != given {
            return Err(Error::Invalid(format!(
                "the model's {what} are {}, those of the data {}",
                own.join(", "),
                given.join(", ")
            )));
        }
    }
    if fitted.classes != dataset.classes {
        return Err(Error::Invalid("the model knows other classes than the data have".into()));
    }
    let known = fitted.measured_names().len();
    if fitted.scaler.clone().first_inputs(known) != dataset.scaler {
        return Err(Error::Invalid(
            "the data are not scaled as the model's were: other rows, or give the model's scaler"
                .into(),
        ));
    }
    Ok(())
}

/// Standard deviations of the rows that a model began with beyond which others lie far from them.
const FAR: f64 = 5.0;

/// Says that more than a tenth of the rows lie far from those by which a model's scales, and its inducing points, were chosen.
///
/// # Errors
/// What reading gives.
pub(super) fn beyond(dataset: &Dataset) -> Result<Option<String>> {
    if dataset.source.sharded().is_some() {
        return Ok(None);
    }
    let mut counts = vec![0; dataset.input_names.len()];
    dataset.source.for_each_chunk(1 << 13, &mut |rows| {
        for (q, count) in counts.iter_mut().enumerate() {
            *count += column(rows.x, q).iter().filter(|v| v.abs() > FAR).count();
        }
        Ok(())
    })?;
    let rows = dataset.source.rows();
    let widest = counts.iter().enumerate().max_by_key(|(_, count)| **count);
    Ok(widest.filter(|(_, count)| **count * 10 > rows).map(|(q, count)| {
        format!(
            "in {count} of {rows} rows `{}` lies more than {FAR} standard deviations from the mean of the rows that were learnt \
             first: scale, kernel and inducing points are of those, and predictions may be far off. Begin with rows from \
             everywhere, or let the points follow the rows (`sparsegp update`; `online=True` in Python)",
            dataset.input_names[q]
        )
    }))
}

/// Refuses targets that are standardised or classes where the likelihood needs others.
pub(super) fn check_fits(dataset: &Dataset, likelihood: &dyn Likelihood) -> Result<()> {
    if !likelihood.standardises() && dataset.scaler != dataset.scaler.clone().without_targets() {
        return Err(Error::Invalid(format!(
            "the likelihood `{}` needs its targets as they stand, and they are standardised; make \
             the data set with `Standardise::all_that(&*likelihood)`",
            likelihood.name()
        )));
    }
    check_levels(dataset, likelihood)
}

/// Refuses a target that the likelihood does not know, and rows without the further number that it
/// needs. Returns how many targets are missing.
pub(super) fn check_targets(dataset: &Dataset, likelihood: &dyn Likelihood) -> Result<usize> {
    let check = TargetCheck {
        likelihood: likelihood.clone_box(),
        scaler: dataset.scaler.clone(),
        names: dataset.target_names.clone(),
    };
    let missing = sweep(&*dataset.source, &check)?[0];
    Ok(missing as usize)
}

/// The check of all targets. Its sum is how many are missing.
struct TargetCheck {
    likelihood: Box<dyn Likelihood>,
    scaler: Scaler,
    names: Vec<String>,
}

/// Kind of the description of [`TargetCheck`].
const TARGETS: &str = "check of targets";

impl Sweep for TargetCheck {
    fn sums(&self) -> usize {
        1
    }

    fn add(&self, rows: &Rows<'_>, sums: &mut [f64]) -> Result<()> {
        let likelihood = &*self.likelihood;
        let default = match likelihood.extra() {
            Some(Extra { default: None, name }) if rows.extra.is_empty() => {
                let name =
                    format!("the likelihood `{}` needs a column of {name}", likelihood.name());
                return Err(Error::Invalid(name));
            }
            other => other.and_then(|e| e.default).unwrap_or(1.0),
        };
        for p in (0..rows.y.ncols()).filter(|&p| !self.scaler.is_constant(p)) {
            for (i, y) in column(rows.y, p).iter().enumerate() {
                if y.is_nan() {
                    sums[0] += 1.0;
                    continue;
                }
                let target = Target { y: *y, extra: rows.extra.get(i).copied().unwrap_or(default) };
                likelihood.check(target).map_err(|reason| {
                    let own = self.scaler.y_mean[p] + self.scaler.y_scale[p] * y;
                    Error::Invalid(format!(
                        "row {} of those to learn from: `{}` = {own} {reason} (likelihood `{}`)",
                        rows.start + i + 1,
                        self.names[p],
                        likelihood.name()
                    ))
                })?;
            }
        }
        Ok(())
    }

    fn describe(&self) -> Result<Description> {
        let likelihood = self.likelihood.to_json().to_string();
        Description::new(TARGETS, &(likelihood, &self.scaler, &self.names))
    }
}

/// Returns the check of one target column of that many inputs, for tests of shards.
#[cfg(test)]
pub(crate) fn tests_of_targets(likelihood: &dyn Likelihood, inputs: usize) -> Description {
    let scaler = Scaler::identity(inputs, 1);
    let check = TargetCheck { likelihood: likelihood.clone_box(), scaler, names: vec!["y".into()] };
    check.describe().expect("a description")
}

/// The check of inputs that kernels read as labels.
struct LabelCheck(Vec<Box<dyn Kernel>>);

/// Kind of the description of [`LabelCheck`].
const LABELS: &str = "check of labels";

impl Sweep for LabelCheck {
    fn sums(&self) -> usize {
        0
    }

    fn add(&self, rows: &Rows<'_>, _: &mut [f64]) -> Result<()> {
        self.0.iter().try_for_each(|kernel| kernel.check(rows.x))
    }

    fn describe(&self) -> Result<Description> {
        let kernels: Vec<String> = self.0.iter().map(|k| k.to_json().to_string()).collect();
        Description::new(LABELS, &kernels)
    }
}

/// Returns the check of a description, for rows of D inputs and P targets; none for another sweep.
pub(crate) fn described(
    description: &Description,
    inputs: usize,
    outputs: usize,
) -> Option<Result<Box<dyn Sweep>>> {
    let made = || -> Result<Box<dyn Sweep>> {
        if description.kind == TARGETS {
            let (likelihood, scaler, names): (String, Scaler, Vec<String>) = description.state()?;
            let likelihood = likelihoods::parse(&likelihood)?;
            scaler.check(inputs, outputs)?;
            if names.len() != outputs {
                return Err(Error::Invalid("the request is of other rows".into()));
            }
            return Ok(Box::new(TargetCheck { likelihood, scaler, names }));
        }
        let own: Vec<String> = description.state()?;
        let kernels = own.iter().map(|k| kernels::parse(k, Inputs::unnamed(inputs)));
        Ok(Box::new(LabelCheck(kernels.collect::<Result<_>>()?)))
    };
    [TARGETS, LABELS].contains(&description.kind.as_str()).then(made)
}

/// Refuses levels whose order nobody gave: that of texts is the alphabet.
pub(super) fn check_levels(dataset: &Dataset, likelihood: &dyn Likelihood) -> Result<()> {
    let Some(classes) = dataset.classes.as_ref().filter(|classes| !classes.is_ordered()) else {
        return Ok(());
    };
    if likelihood.name() != "ordinal" || classes.count() == 2 {
        return Ok(());
    }
    let labels = classes.labels();
    Err(Error::Invalid(format!(
        "the levels of `{}` are texts, whose order is not known (`{}`): give all of them, the lowest first, as `--levels \
         LOWEST,…,HIGHEST`",
        dataset.target_names[0],
        labels[..labels.len().min(6)].join("`, `")
    )))
}

/// Classes that need no word; each costs a latent function.
const MANY_CLASSES: usize = 30;
/// The same where all of them are numbers: more of these are often a quantity.
const MANY_NUMBERS: usize = 20;

/// Warns of a target that became more classes than anybody has at hand: it may be a name, a code or a number.
pub(super) fn many_classes(dataset: &Dataset) -> Option<String> {
    let classes = dataset.classes.as_ref()?;
    let (name, count) = (&dataset.target_names[0], classes.count());
    let numbers = || classes.labels().iter().all(|label| label.parse::<f64>().is_ok());
    if count > MANY_NUMBERS && numbers() {
        return Some(format!(
            "target column `{name}` has {count} classes, and all of them are numbers: if it is a quantity, learn it as a \
             number, without classes"
        ));
    }
    (count > MANY_CLASSES).then(|| {
        format!(
            "`{name}` is learnt as {count} classes, and each costs a latent function: if it is a name or a code, choose \
             another target; if it is a number, write it as one"
        )
    })
}

/// Warns of an only target of two values that is learnt as numbers by default.
pub(super) fn two_values(
    dataset: &Dataset,
    options: &FitOptions,
    sample: &InMemory,
    likelihood: &dyn Likelihood,
) -> Option<String> {
    let [name] = &dataset.target_names[..] else { return None };
    if options.likelihood.is_some() || likelihood.as_gaussian().is_none() || sample.y.ncols() != 1 {
        return None;
    }
    let mut values: Vec<f64> = Vec::new();
    for value in column(sample.y.as_ref(), 0).iter().filter(|value| !value.is_nan()) {
        if values.len() < 3 && !values.contains(value) {
            values.push(*value);
        }
    }
    (values.len() == 2 && sample.y.nrows() > 2).then(|| {
        format!(
            "`{name}` has two values and is learnt as numbers; if they are classes, learn them as such (`--classes`, in Python \
             `GPClassifier`)"
        )
    })
}

/// Refuses rows that bring more or less than the method can do with.
pub(super) fn check_rows(
    dataset: &Dataset,
    entry: &methods::Entry,
    missing: usize,
    sample: &InMemory,
) -> Result<()> {
    if missing > 0 && !entry.method.takes_missing() {
        return Err(Error::Invalid(format!(
            "{missing} targets are missing, and method `{}` needs them all; leave such rows out, or use \
             `svgp`",
            entry.name
        )));
    }
    let scaler = &dataset.scaler;
    let varying = (0..scaler.y_scale.len()).filter(|&p| !scaler.is_constant(p));
    let other = |p: usize| scaler.y_scale[p] != scaler.first_scale();
    if !sample.extra.is_empty() && varying.into_iter().any(other) {
        return Err(Error::Invalid(
            "one known noise variance per row cannot serve several targets of different scales: fit \
             them one by one, or leave the targets as they are"
                .into(),
        ));
    }
    Ok(())
}

/// Refuses labels that are scaled, and inputs that a kernel knows nothing of.
pub(super) fn check_labels(dataset: &Dataset, kernels: &[Box<dyn Kernel>]) -> Result<()> {
    let labels: Vec<usize> = kernels.iter().flat_map(|kernel| kernel.labels()).collect();
    let scaler = &dataset.scaler;
    let scaled = |q: &&usize| scaler.x_mean[**q] != 0.0 || scaler.x_scale[**q] != 1.0;
    if let Some(&q) = labels.iter().find(scaled) {
        return Err(Error::Invalid(format!(
            "the kernel reads input column `{}` as labels, and it is standardised; make the data set with \
             `Standardise::for_kernel`",
            dataset.input_names[q]
        )));
    }
    if labels.is_empty() {
        return Ok(());
    }
    sweep(&*dataset.source, &LabelCheck(kernels.to_vec())).map(|_| ())
}

/// Warns of periods that are longer than what the rows span: they were meant in the units of the data.
pub(super) fn long_periods(
    kernels: &[Box<dyn Kernel>],
    x: MatRef<f64>,
    options: &FitOptions,
) -> Vec<String> {
    let span = (0..x.ncols()).map(|q| span(x, q)).fold(0.0, f64::max);
    let mut found = Vec::new();
    for kernel in kernels {
        for (path, param) in kernel.params() {
            let path = path.to_string();
            let longest = param.value().iter().fold(0.0_f64, |a, b| a.max(*b));
            // the checks of seasons report theirs
            let of_season = param.frozen && !seasons::named(options).is_empty();
            if param.role() == Role::Period && param.given && !of_season && longest > span {
                let text = match options.kernel_in_data_units {
                    true => format!(
                        "kernel: the {path} is {:.3} times what the rows span: they do not show whether anything repeats",
                        longest / span
                    ),
                    false => format!(
                        "kernel: the {path} {longest} is more than the rows span, {span:.3}: values in a kernel are on \
                         the scale of the standardised inputs; for values in the data's units add `--kernel-units data` \
                         (`kernel_units=\"data\"` in Python), or do not standardise (`--no-standardise`, `standardise=False`)"
                    ),
                };
                // latent functions may have the same kernel
                if !found.contains(&text) {
                    found.push(text);
                }
            }
        }
    }
    found
}

/// The larger quantile of an input over its median, and the median over the smaller, from which its values are spread over powers
/// of ten.
const DECADES: [f64; 2] = [6.0, 3.0];
/// Rows from which quantiles are looked at.
const ROWS: usize = 20;

/// Returns the positive inputs whose values are spread over powers of ten: nearly all rows are in one place to a kernel of
/// differences. Rows are as the model sees them; of other inputs it sees the logarithm already.
pub(super) fn over_decades(dataset: &Dataset, x: MatRef<f64>) -> Vec<usize> {
    let (scaler, places) = (&dataset.scaler, inputs_of_places(&dataset.columns));
    let over = |q: &usize| {
        if scaler.log_unit(*q).is_some() || places.contains(q) {
            return false;
        }
        let (mean, scale) = (scaler.x_mean[*q], scaler.x_scale[*q]);
        let mut values: Vec<f64> = column(x, *q).iter().map(|v| mean + scale * v).collect();
        values.sort_unstable_by(f64::total_cmp);
        let rounding = 1e-9 * (mean.abs() + scale);
        // zeros are as many people or as much money as there can be
        if values.len() < ROWS || values[0] < -rounding {
            return false;
        }
        values.retain(|v| *v > rounding);
        let at = |part: f64| values[((values.len() - 1) as f64 * part) as usize];
        2 * values.len() > x.nrows()
            && at(0.95) > DECADES[0] * at(0.5)
            && at(0.5) > DECADES[1] * at(0.05)
    };
    (0..x.ncols()).filter(over).collect()
}

/// Warns of such inputs, where nothing was decided about them.
pub(super) fn decades(dataset: &Dataset, options: &FitOptions, x: MatRef<f64>) -> Option<String> {
    if options.log_inputs == LogInputs::Named(Vec::new()) {
        return None;
    }
    let found = over_decades(dataset, x).into_iter();
    let names: Vec<&str> =
        found.filter_map(|q| dataset.input_names.get(q).map(String::as_str)).collect();
    (!names.is_empty()).then(|| {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let remedy = match log_inputs::obstacle(dataset) {
            None => {
                let names = in_shell(&names.join(","));
                format!("(`--log-inputs {names}`, in Python `log_inputs`)")
            }
            Some(_) => "(of 1 + the value where there are zeros), as a column of the table".into(),
        };
        format!(
            "values of {} are spread over powers of ten, so that nearly all rows are in one place to the kernel: learn from \
             the logarithm {remedy}",
            quoted.join(", ")
        )
    })
}

/// Part of the rows that are few (at least one row), and of the squares that they may hold.
const FEW: f64 = 0.01;
const SQUARES: f64 = 0.5;

/// Returns what to say where few rows hold most of the squared deviations of a target, and the noise is Gaussian: they decide
/// what is learnt.
pub(super) fn few_decide(
    dataset: &Dataset,
    sample: &InMemory,
    likelihood: &dyn Likelihood,
) -> Option<String> {
    likelihood.as_gaussian()?;
    let isolated = |p: usize| dataset.isolated.iter().any(|own| own.target && own.column == p);
    let share = |p: usize| {
        let mut values: Vec<f64> = column(sample.y.as_ref(), p).to_vec();
        values.retain(|v| !v.is_nan());
        let few = ((FEW * values.len() as f64) as usize).max(1);
        values.sort_unstable_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        let mut squares: Vec<f64> = values.iter().map(|v| (v - median).powi(2)).collect();
        squares.sort_unstable_by(|a, b| b.total_cmp(a));
        let total: f64 = squares.iter().sum();
        let share = squares[..few].iter().sum::<f64>() / total;
        (squares.len() >= ROWS && share > SQUARES).then_some((few, squares.len(), share))
    };
    let all = sample.y.ncols() == dataset.target_names.len();
    let judged = (0..sample.y.ncols()).filter(|&p| all && !isolated(p));
    let (p, (few, rows, share)) = judged.filter_map(|p| Some((p, share(p)?))).next()?;
    let of = match dataset.target_names.len() {
        1 => "the target".into(),
        _ => format!("`{}`", dataset.target_names[p]),
    };
    Some(format!(
        "{few} of {rows} rows hold {:.0} % of the squared deviations of {of} from its median, and decide what is learnt: learn the \
         logarithm (the likelihood `log-normal` does so for positive targets), or take a likelihood with heavy tails \
         (`student-t`)",
        100.0 * share
    ))
}
