//! Settings of a training as Python sends them.

use crate::errors::exception;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};
use sparsegp::fit::FitOptions;
use sparsegp::fit::settings::{self, Asked, Door, Way};
use sparsegp::inducing::select::Selection;
use sparsegp::linalg::Mat;
use sparsegp::train::{StochasticOptions, TrainOptions};

/// Values by the names of their settings; what is not given has the library's default.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Options {
    values: Map<String, Value>,
    /// Share of the learning rate of minibatches at the end.
    last_rate: Option<f64>,
}

impl TryFrom<Map<String, Value>> for Options {
    type Error = String;

    fn try_from(given: Map<String, Value>) -> Result<Self, String> {
        let mut own = Self::default();
        for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
            if name == "last_rate" {
                own.last_rate = value.as_f64();
                continue;
            }
            let called = |own: &&settings::Setting| match own.python {
                Some(_) => own.called(Door::Python) == name,
                None => own.name == name,
            };
            let setting = settings::all()
                .find(called)
                .ok_or_else(|| format!("there is no setting `{name}`"))?;
            match (setting.name, value.as_f64()) {
                // Adam on q too
                ("natural_rate", Some(0.0)) => own.values.insert("no_natural".into(), true.into()),
                _ => own.values.insert(setting.name.into(), value),
            };
        }
        Ok(own)
    }
}

impl Options {
    /// Puts everything into options.
    fn put(&self, mut options: FitOptions) -> PyResult<FitOptions> {
        settings::apply(&mut options, &self.values, Door::Python).map_err(exception)?;
        if let (Some(rate), Some(batches)) = (self.last_rate, &mut options.batches) {
            batches.training.last_rate = rate;
        }
        Ok(options)
    }

    /// Returns the options of training by minibatches.
    pub fn stochastic(&self) -> PyResult<StochasticOptions> {
        let batches = self.put(settings::defaults_of(self.method()))?.batches.unwrap_or_default();
        Ok(StochasticOptions { seed: self.seed(), ..batches.training })
    }

    /// Returns the options of training on all rows at once, without a tolerance to the optimum's
    /// last digits.
    pub fn whole(&self) -> PyResult<TrainOptions> {
        let train = TrainOptions::default();
        Ok(self.put(FitOptions { train, ..FitOptions::default() })?.train)
    }

    /// Returns the options for [`sparsegp::fit`].
    pub fn fit_options(&self, points: Option<Mat<f64>>) -> PyResult<FitOptions> {
        let mut options = self.put(settings::defaults_of(self.method()))?;
        if let Some(points) = points {
            options.selection = Selection::Given(points);
        }
        Ok(options)
    }

    /// Returns the options for [`sparsegp::fit::go_on`] with `rows` that stand for `population`:
    /// unless a rate is given, no minibatch moves q by more than its share.
    pub fn part_options(&self, rows: usize, population: usize) -> PyResult<FitOptions> {
        let mut options = self.fit_options(None)?;
        if let (false, Some(batches)) =
            (self.values.contains_key("natural_rate"), &mut options.batches)
        {
            let share = batches.size.min(rows) as f64 / population as f64;
            let natural = &mut batches.training.natural;
            *natural = natural.map(|rate| rate.min(share));
        }
        Ok(options)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// Returns the number of rows of a minibatch, if there are to be minibatches.
    pub fn batch_size(&self) -> Option<usize> {
        self.values.get("batch")?.as_u64()?.try_into().ok()
    }

    /// Returns the kernel, empty if none is given.
    pub fn kernel(&self) -> &str {
        self.text("kernel").unwrap_or_default()
    }

    /// Returns the method.
    pub fn method(&self) -> &str {
        self.text("method").unwrap_or("auto")
    }

    /// Returns whether a number of inducing points is given.
    pub fn asks_for_inducing(&self) -> bool {
        self.values.contains_key("inducing")
    }

    /// Returns the likelihood, if it is given.
    pub fn likelihood(&self) -> Option<&str> {
        self.text("likelihood")
    }

    /// Returns seconds that there are, if they are limited.
    pub fn time_limit(&self) -> Option<f64> {
        self.values.get("time_limit")?.as_f64()
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.values.get("seed").and_then(Value::as_u64).unwrap_or_default()
    }
}

/// Returns what is to be said of settings that have no effect with the method that was taken in the
/// end, of those that are not as by default; `options` is JSON.
#[pyfunction]
pub fn without_effect(options: &str, taken: &str, rows: usize) -> PyResult<Vec<String>> {
    let Options { mut values, .. } = crate::errors::read_json(options)?;
    let is = |name: &str| values.get(name) == Some(&Value::Bool(true));
    let way = Way {
        full_batch: is("full_batch"),
        adam: values.get("optimiser").is_some_and(|own| own == "adam"),
        q_by_adam: is("no_natural"),
    };
    let asked = values.get("method").and_then(Value::as_str).unwrap_or("auto").to_owned();
    values.retain(|name, value| {
        settings::find(name).is_some_and(|own| own.default_value() != *value)
    });
    let ways = settings::possible(&asked, &[taken], rows, way).map_err(exception)?;
    let by_auto = asked == "auto";
    let method = if by_auto { taken } else { &asked };
    let asked = Asked { door: Door::Python, method, by_auto, way };
    Ok(settings::without_effect(&values, &ways, &asked))
}
