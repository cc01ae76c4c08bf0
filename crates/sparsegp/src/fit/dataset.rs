//! Rows to learn from.

use super::noisy_inputs::{InputDeviations, take_deviations};
use super::{places, target_transform, weights};
use crate::data::holidays::inputs_of_holidays;
use crate::data::shards::Shape;
use crate::data::sphere::{inputs_of_places, places_in};
use crate::data::{
    Classes, InMemory, InputColumn, Isolated, Loaded, Scaler, ShardedRows, Shards, Source,
    Statistics, duplicate_rows,
};
use crate::error::{Error, Result};
use crate::kernels::{alike_columns, label_columns};
use crate::likelihoods::Likelihood;
use crate::linalg::Mat;

/// Which columns get mean 0 and standard deviation 1. Counts and the like must stay as they are; labels
/// do in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standardise {
    /// Inputs.
    pub inputs: bool,
    /// Targets.
    pub targets: bool,
    /// Whether isolated targets ([`Statistics::isolated`]) are left out of their mean and standard deviation, for a
    /// likelihood that bears outliers.
    pub robust: bool,
    /// Whether a target that is constant beside others is left out ([`Scaler::y_constant`]); not where rows that are
    /// yet to come may tell otherwise.
    pub constants: bool,
}

impl Standardise {
    /// Returns what a likelihood allows: inputs always, targets where that changes nothing about
    /// the family of densities ([`crate::likelihoods::Likelihood::standardises`]).
    pub fn all_that(likelihood: &dyn Likelihood) -> Self {
        let robust = likelihood.bears_outliers();
        let targets = likelihood.standardises();
        Self { inputs: true, targets, robust, constants: true }
    }

    /// Returns the same for kernels of this specification (one, or several separated by `;`): input
    /// columns that they read as labels ([`crate::kernels::Kernel::labels`]) stay as they are, and
    /// those of one kind ([`crate::kernels::Kernel::alike`]) have one mean and one scale.
    pub fn for_kernel(self, specification: &str) -> Scaling {
        Scaling::For(self, specification.to_owned())
    }
}

/// How the columns of a data set are scaled.
#[derive(Clone, Debug, PartialEq)]
pub enum Scaling {
    /// By the statistics of the rows themselves.
    Own(Standardise),
    /// By the statistics of the rows, except for input columns that kernels of this specification
    /// read as labels.
    For(Standardise, String),
    /// As for another data set: that of a model which is to continue learning.
    Given(Scaler),
}

/// All columns or none.
impl From<bool> for Scaling {
    fn from(all: bool) -> Self {
        Self::Own(Standardise { inputs: all, targets: all, robust: false, constants: true })
    }
}

impl From<Standardise> for Scaling {
    fn from(chosen: Standardise) -> Self {
        Self::Own(chosen)
    }
}

impl From<Scaler> for Scaling {
    fn from(scaler: Scaler) -> Self {
        Self::Given(scaler)
    }
}

impl Scaling {
    /// Returns inputs that a kernel takes together, such as the pixels of an image: some of them
    /// may well be constant.
    pub(super) fn together(&self, inputs: &[String]) -> Vec<usize> {
        match self {
            Self::For(_, kernel) => alike_columns(kernel, inputs).concat(),
            _ => Vec::new(),
        }
    }

    /// Returns the scaler for rows of these statistics, with these labels (if the target is one)
    /// and names of inputs.
    pub fn scaler(
        self,
        statistics: &Statistics,
        classes: Option<&Classes>,
        inputs: &[String],
    ) -> Scaler {
        let (chosen, labels, alike) = match self {
            Self::Given(scaler) => return scaler,
            Self::Own(chosen) => (chosen, Vec::new(), Vec::new()),
            Self::For(chosen, kernel) => {
                (chosen, label_columns(&kernel, inputs), alike_columns(&kernel, inputs))
            }
        };
        let all = if chosen.robust { statistics.robust_scaler() } else { statistics.scaler() };
        let constants = statistics.constant_targets();
        let some = chosen.constants && constants.len() < statistics.present_targets().len();
        let constants = if some { &constants[..] } else { &[] };
        let mut scaler = all.with_constants(constants).without_columns(&labels);
        for group in &alike {
            scaler = scaler.with_one_scale(group, statistics.pooled(group));
        }
        let mut same = statistics.constant_inputs();
        same.extend(statistics.rounded_inputs().iter().map(|(index, _)| *index));
        scaler = scaler.with_places(&places_in(inputs), |q| same.contains(&q));
        if !chosen.inputs {
            scaler = scaler.without_inputs();
        }
        if !chosen.targets || classes.is_some() {
            scaler = scaler.without_targets();
        }
        scaler
    }
}

/// Rows to learn from, with the names and scales of their columns.
pub struct Dataset {
    /// The rows, standardised by `scaler`.
    pub source: Box<dyn Source>,
    /// From the data's units to the model's.
    pub scaler: Scaler,
    /// Names of the inputs.
    pub input_names: Vec<String>,
    /// The columns of a table that they come from.
    pub columns: Vec<InputColumn>,
    /// Names of the target columns.
    pub target_names: Vec<String>,
    /// Name of the column of weights.
    pub weight_name: Option<String>,
    /// Sum of the weights of the rows, where they have weights.
    pub total_weight: Option<f64>,
    /// Of every target the sum of the weights of the rows in which it is missing; empty where none is.
    pub absent: Vec<f64>,
    /// Sum of the logarithms of the slopes of transformed targets ([`Scaler::y_transform`]), weighted; 0 without.
    pub log_slope: f64,
    /// Name of the column of further numbers.
    pub extra_name: Option<String>,
    /// The labels whose codes the target holds, if it is a label.
    pub classes: Option<Classes>,
    /// Means of the targets in their own units.
    pub target_mean: Vec<f64>,
    /// Variances of the targets in their own units.
    pub target_variance: Vec<f64>,
    /// Rows held out of training, on the same scale: their density decides when training by
    /// minibatches stops.
    pub held_out: Option<Box<dyn Source>>,
    /// Rows of the table: more than those of `source` where equal rows were made one ([`Dataset::for_purpose`]).
    pub rows: usize,
    /// Values that lie far from all others of their column, in the data's units.
    pub isolated: Vec<Isolated>,
    /// Inputs whose values differ only by rounding.
    pub rounded: Vec<usize>,
    /// Rows with the same inputs as an earlier row, which count as repeated observations; 0 where nobody looked.
    pub repeated: usize,
    /// Standard deviations of the errors of inputs, where some have them ([`Loaded::deviations`]).
    pub deviations: Option<InputDeviations>,
    /// What was odd about the data and handled.
    pub warnings: Vec<String>,
    /// Whether more rows are to come, on the same scales.
    pub(super) part: bool,
    /// Fingerprint of the cells, in the data's units.
    pub(super) cells: u64,
    /// Rows of a weight above 0.
    pub(super) counted: usize,
}

/// Names of the columns by their roles.
pub(super) struct Names {
    pub(super) inputs: Vec<String>,
    pub(super) columns: Vec<InputColumn>,
    pub(super) targets: Vec<String>,
    pub(super) weight: Option<String>,
    pub(super) extra: Option<String>,
    /// Inputs of which a constant is nothing to tell of.
    pub(super) together: Vec<usize>,
}

impl Names {
    fn taken(loaded: &mut Loaded, together: Vec<usize>) -> Self {
        Self {
            together,
            columns: match std::mem::take(&mut loaded.columns) {
                none if none.is_empty() => {
                    loaded.input_names.iter().map(InputColumn::number).collect()
                }
                columns => columns,
            },
            inputs: std::mem::take(&mut loaded.input_names),
            targets: std::mem::take(&mut loaded.target_names),
            weight: loaded.weight_name.take(),
            extra: loaded.extra_name.take(),
        }
    }
}

impl Dataset {
    /// Creates a data set from a table in memory.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two rows (with a scaling that is given, for none) or no target.
    pub fn from_loaded(loaded: Loaded, scaling: impl Into<Scaling>) -> Result<Self> {
        let (rows, repeated) = (loaded.x.nrows(), duplicate_rows(loaded.x.as_ref()));
        let counted = counted(&loaded);
        Self::of_rows(loaded, scaling.into(), rows, counted, repeated)
    }

    /// Creates a data set from a table in memory that stands for so many rows, of which so many
    /// count and so many repeat an earlier one.
    pub(super) fn of_rows(
        mut loaded: Loaded,
        scaling: Scaling,
        rows: usize,
        counted: usize,
        repeated: usize,
    ) -> Result<Self> {
        let own = take_deviations(&mut loaded)?;
        let scaling = match (scaling, &own) {
            // that of a model whose rows have deviations too
            (Scaling::Given(scaler), Some(_)) => {
                Scaling::Given(scaler.first_inputs(loaded.x.ncols()))
            }
            (scaling, _) => scaling,
        };
        let statistics = loaded.statistics();
        let part = matches!(scaling, Scaling::Given(_));
        let mut together = scaling.together(&loaded.input_names);
        together.extend(inputs_of_holidays(&loaded.columns));
        together.extend(inputs_of_places(&loaded.columns));
        let scaler = {
            let classes = loaded.classes.as_ref();
            let scaler = scaling.scaler(&statistics, classes, &loaded.input_names);
            // the effects of all holidays have the same variance
            scaler.without_columns(&inputs_of_holidays(&loaded.columns))
        };
        let names = Names::taken(&mut loaded, together);
        let classes = loaded.classes.take();
        let remarks = std::mem::take(&mut loaded.remarks);
        if !loaded.weights.is_empty() && loaded.weights.iter().all(|&weight| weight == 0.0) {
            return Err(Error::Invalid("the weights of all rows are 0: nothing counts".into()));
        }
        let mut data = loaded.into_source();
        scaler.scale_x(data.x.as_mut())?;
        let log_slope = target_transform::log_slope(&scaler, data.y.as_ref(), &data.weights);
        scaler.scale_y(data.y.as_mut())?;
        scaler.scale_extra(&mut data.extra);
        let counts = (rows, counted);
        let mut dataset =
            Self::new(Box::new(data), scaler, names, classes, &statistics, part, counts)?;
        dataset.repeated = repeated;
        dataset.log_slope = log_slope;
        dataset.warnings.extend(remarks);
        if let Some(mut own) = own {
            let cells = Statistics::of(own.values.as_ref(), Mat::zeros(0, 0).as_ref(), &[]);
            dataset.cells ^= cells.cells().value();
            for (at, q) in own.of.iter().enumerate() {
                let scale = dataset.scaler.x_scale[*q];
                own.values.col_as_slice_mut(at).iter_mut().for_each(|sd| *sd /= scale);
            }
            dataset.deviations = Some(own);
        }
        Ok(dataset)
    }

    /// Creates a data set from rows in other processes ([`crate::shards`]), which have been scaled
    /// by `scaler`. `head` is their table without rows, `statistics` are those of the unscaled
    /// rows.
    ///
    /// # Errors
    /// As for [`Dataset::from_loaded`]; [`Error::Invalid`] for a constant target beside others.
    pub fn from_shards(
        mut head: Loaded,
        shards: Box<dyn Shards>,
        sizes: &[usize],
        statistics: &Statistics,
        scaler: Scaler,
    ) -> Result<Self> {
        let (classes, names) = (head.classes.take(), Names::taken(&mut head, Vec::new()));
        if scaler.is_transformed() {
            return Err(Error::Invalid(
                "the targets of the model are transformed, which needs all rows in one process"
                    .into(),
            ));
        }
        if let Some(p) = (0..names.targets.len()).find(|&p| scaler.is_constant(p)) {
            return Err(Error::Invalid(format!(
                "target column `{}` is {} in all rows: leave it out where rows are in other processes",
                names.targets[p], scaler.y_mean[p]
            )));
        }
        let shape = Shape {
            inputs: names.inputs.len(),
            outputs: names.targets.len(),
            weights: names.weight.is_some(),
            extra: names.extra.is_some(),
        };
        let source = Box::new(ShardedRows::new(shards, sizes, shape)?);
        let counts = (source.rows(), statistics.counted());
        if names.weight.is_some() && statistics.total_weight() == 0.0 {
            return Err(Error::Invalid("the weights of all rows are 0: nothing counts".into()));
        }
        let mut dataset = Self::new(source, scaler, names, classes, statistics, false, counts)?;
        dataset.warnings.extend(head.remarks);
        Ok(dataset)
    }

    /// Creates a data set from inputs (N×D) and targets (N×P) without names: columns are called
    /// `x0`, …, `y0`, ….
    ///
    /// # Errors
    /// [`Error::Shape`] if the numbers of rows differ; as for [`Dataset::from_loaded`].
    pub fn from_arrays(x: Mat<f64>, y: Mat<f64>, scaling: impl Into<Scaling>) -> Result<Self> {
        Self::from_rows(InMemory::new(x, y)?, scaling)
    }

    /// Creates a data set from rows in memory, with their weights and further numbers. Columns are
    /// called `x0`, …, `y0`, …, `weight` and `extra`.
    ///
    /// # Errors
    /// As for [`Dataset::from_loaded`].
    pub fn from_rows(data: InMemory, scaling: impl Into<Scaling>) -> Result<Self> {
        let names = |prefix: &str, count| (0..count).map(|i| format!("{prefix}{i}")).collect();
        let loaded = Loaded {
            input_names: names("x", data.x.ncols()),
            columns: Vec::new(),
            target_names: names("y", data.y.ncols()),
            weight_name: (!data.weights.is_empty()).then(|| "weight".into()),
            extra_name: (!data.extra.is_empty()).then(|| "extra".into()),
            weights: data.weights,
            extra: data.extra,
            classes: None,
            id_names: Vec::new(),
            ids: Vec::new(),
            rows: (0..data.x.nrows()).collect(),
            deviations: Vec::new(),
            dropped: 0,
            remarks: Vec::new(),
            x: data.x,
            y: data.y,
        };
        Self::from_loaded(loaded, scaling)
    }

    /// Returns what to add to an objective on these rows on the model's scale to have it in the data's units.
    pub fn log_jacobian(&self) -> f64 {
        let weight = self.total_weight.unwrap_or(self.rows as f64);
        self.scaler.log_jacobian_of(weight, &self.absent) + self.log_slope
    }

    pub(super) fn new(
        source: Box<dyn Source>,
        scaler: Scaler,
        names: Names,
        classes: Option<Classes>,
        statistics: &Statistics,
        // whether a model knows other rows already: these may be few and alike
        part: bool,
        (rows, counted): (usize, usize),
    ) -> Result<Self> {
        let Names { inputs: input_names, columns, targets: target_names, weight, extra, together } =
            names;
        if target_names.is_empty() {
            return Err(Error::Invalid("there is no target column to learn".into()));
        }
        if counted < if part { 1 } else { 2 } {
            let of = match counted < rows {
                true => format!(" of a weight above 0, of {rows}"),
                false => String::new(),
            };
            return Err(Error::Invalid(format!(
                "{counted} training row(s){of}: at least two are needed to learn anything"
            )));
        }
        if let Some(j) = statistics.present_targets().iter().position(|&present| present == 0) {
            let name = &target_names[j];
            return Err(Error::Invalid(format!(
                "target column `{name}` is missing in all rows: there is nothing to learn from"
            )));
        }
        let mut warnings =
            if part { Vec::new() } else { of_inputs(&input_names, &together, &scaler, statistics) };
        if !part {
            warnings.extend(places::remarks(&columns, statistics));
        }
        warnings.extend(of_targets(&target_names, &scaler, statistics, part));
        let rounded = if part { Vec::new() } else { statistics.rounded_inputs() };
        let (means, variances) = statistics.target_mean_and_variance();
        let total_weight = weight.is_some().then(|| statistics.total_weight());
        let warning = total_weight.filter(|_| !part).and_then(|total| weights::odd(total, counted));
        warnings.extend(warning);
        Ok(Self {
            rows,
            isolated: if part { Vec::new() } else { statistics.isolated().to_vec() },
            rounded: rounded.into_iter().map(|(index, _)| index).collect(),
            total_weight,
            absent: statistics.absent_weights(),
            log_slope: 0.0,
            source,
            scaler,
            input_names,
            columns,
            target_names,
            weight_name: weight,
            extra_name: extra,
            classes,
            target_mean: means,
            target_variance: variances,
            held_out: None,
            repeated: 0,
            deviations: None,
            warnings,
            part,
            cells: statistics.cells().value(),
            counted,
        })
    }
}

/// Returns the number of rows of a weight above 0.
pub(super) fn counted(loaded: &Loaded) -> usize {
    match loaded.weights.is_empty() {
        true => loaded.x.nrows(),
        false => loaded.weights.iter().filter(|weight| **weight > 0.0).count(),
    }
}

/// Returns what is odd of the inputs of these names, of which some belong together.
fn of_inputs(
    input_names: &[String],
    together: &[usize],
    scaler: &Scaler,
    statistics: &Statistics,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut constant = statistics.constant_inputs();
    constant.retain(|index| !together.contains(index));
    if constant.len() > 3 {
        warnings.push(format!(
            "{} input columns are constant (`{}`, `{}`, …): they cannot help and are kept without \
             effect",
            constant.len(),
            input_names[constant[0]],
            input_names[constant[1]]
        ));
    } else {
        warnings.extend(constant.into_iter().map(|index| {
            format!(
                "input column `{}` is constant: it cannot help and is kept without effect",
                input_names[index]
            )
        }));
    }
    for (index, range) in statistics.rounded_inputs().into_iter().take(3) {
        warnings.push(format!(
            "input column `{}` varies by no more than rounding ({range:e} at {}): it is not scaled up, and cannot help",
            input_names[index], scaler.x_mean[index]
        ));
    }
    warnings
}

/// Returns what is odd of the targets of these names; of a part of the rows little is.
fn of_targets(
    target_names: &[String],
    scaler: &Scaler,
    statistics: &Statistics,
    part: bool,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let (means, variances) = statistics.target_mean_and_variance();
    for (p, name) in target_names.iter().enumerate() {
        let (constant, value) = (variances[p] == 0.0, scaler.y_mean[p]);
        if scaler.is_constant(p) && !(constant && means[p] == value) {
            warnings.push(format!(
                "target column `{name}` was {value} in all rows of before: it is still predicted as that"
            ));
        } else if scaler.is_constant(p) {
            warnings.push(format!(
                "target column `{name}` is {value} in all rows: nothing is learnt of it, and it is predicted as that"
            ));
        } else if constant && !part {
            warnings.push(format!("target column `{name}` is constant"));
        }
    }
    warnings
}
