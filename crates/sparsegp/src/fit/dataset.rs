//! Rows to learn from.

use crate::data::{InMemory, Loaded, Scaler, Source, Statistics, TableSource, duplicate_rows};
use crate::error::{Error, Result};
use crate::linalg::Mat;

/// Rows to learn from, with the names and scales of their columns.
pub struct Dataset {
    /// The rows, standardised by `scaler`.
    pub source: Box<dyn Source>,
    /// From the data's units to the model's.
    pub scaler: Scaler,
    /// Names of the input columns.
    pub input_names: Vec<String>,
    /// Names of the target columns.
    pub target_names: Vec<String>,
    /// Means of the targets in their own units.
    pub target_mean: Vec<f64>,
    /// Variances of the targets in their own units.
    pub target_variance: Vec<f64>,
    /// Rows held out of training, on the same scale: their density decides when training by
    /// minibatches stops.
    pub held_out: Option<Box<dyn Source>>,
    /// What was odd about the data and handled.
    pub warnings: Vec<String>,
}

impl Dataset {
    /// From a table in memory.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two rows or no target.
    pub fn from_loaded(loaded: Loaded, standardise: bool) -> Result<Self> {
        let statistics = loaded.statistics();
        let duplicates = duplicate_rows(loaded.x.as_ref());
        let scaler = if standardise {
            statistics.scaler()
        } else {
            Scaler::identity(loaded.x.ncols(), loaded.y.ncols())
        };
        let (input_names, target_names) = (loaded.input_names.clone(), loaded.target_names.clone());
        let mut data = loaded.into_source();
        scaler.scale_x(data.x.as_mut())?;
        scaler.scale_y(data.y.as_mut())?;
        let mut dataset =
            Self::new(Box::new(data), scaler, input_names, target_names, &statistics)?;
        if duplicates > 0 {
            dataset.warnings.push(format!(
                "{duplicates} rows have the same inputs as an earlier row; they count as repeated \
                 observations"
            ));
        }
        Ok(dataset)
    }

    /// From a file that is streamed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two rows or no target.
    pub fn from_table(table: TableSource, standardise: bool) -> Result<Self> {
        let table = if standardise { table.standardised() } else { table };
        let scaler = table.scaler().clone();
        let statistics = table.statistics().clone();
        let input_names = table.selected().input_names();
        let target_names = table.selected().target_names();
        Self::new(Box::new(table), scaler, input_names, target_names, &statistics)
    }

    /// From inputs (N×D) and targets (N×P) without names: columns are called `x0`, …, `y0`, ….
    ///
    /// # Errors
    /// [`Error::Shape`] if the numbers of rows differ; as for [`Dataset::from_loaded`].
    pub fn from_arrays(x: Mat<f64>, y: Mat<f64>, standardise: bool) -> Result<Self> {
        let data = InMemory::new(x, y)?;
        let names = |prefix: &str, count| (0..count).map(|i| format!("{prefix}{i}")).collect();
        let loaded = Loaded {
            input_names: names("x", data.x.ncols()),
            target_names: names("y", data.y.ncols()),
            weights: data.weights,
            extra: data.extra,
            id_names: Vec::new(),
            ids: Vec::new(),
            rows: (0..data.x.nrows()).collect(),
            dropped: 0,
            x: data.x,
            y: data.y,
        };
        Self::from_loaded(loaded, standardise)
    }

    fn new(
        source: Box<dyn Source>,
        scaler: Scaler,
        input_names: Vec<String>,
        target_names: Vec<String>,
        statistics: &Statistics,
    ) -> Result<Self> {
        if target_names.is_empty() {
            return Err(Error::Invalid("there is no target column to learn".into()));
        }
        if source.rows() < 2 {
            return Err(Error::Invalid(format!(
                "{} training row(s): at least two are needed to learn anything",
                source.rows()
            )));
        }
        let mut warnings = Vec::new();
        for index in statistics.constant_inputs() {
            warnings.push(format!(
                "input column `{}` is constant: it cannot help and is kept without effect",
                input_names[index]
            ));
        }
        for index in statistics.constant_targets() {
            warnings.push(format!("target column `{}` is constant", target_names[index]));
        }
        let (target_mean, target_variance) = statistics.target_mean_and_variance();
        Ok(Self {
            source,
            scaler,
            input_names,
            target_names,
            target_mean,
            target_variance,
            held_out: None,
            warnings,
        })
    }
}
