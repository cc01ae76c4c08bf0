//! Values far from all others of their column, in starting values and in words.

use super::Dataset;
use crate::data::{InMemory, Isolated};
use crate::likelihoods::Likelihood;
use std::borrow::Cow;

/// Most columns that are named one by one.
const NAMED: usize = 3;

impl Dataset {
    /// Returns what starting values should look at: these rows as [`drawn_in`](Self::drawn_in)
    /// makes them, with nothing in inputs that vary only by rounding.
    pub(super) fn for_starts<'a>(
        &self,
        rows: &'a InMemory,
        likelihood: &dyn Likelihood,
    ) -> Cow<'a, InMemory> {
        let mut seen = self.drawn_in(rows, likelihood);
        for &j in &self.rounded {
            seen.to_mut().x.col_as_slice_mut(j).fill(0.0);
        }
        seen
    }

    /// Returns these rows of the data set with isolated values drawn in to the others (of targets
    /// where the likelihood bears outliers).
    pub(super) fn drawn_in<'a>(
        &self,
        rows: &'a InMemory,
        likelihood: &dyn Likelihood,
    ) -> Cow<'a, InMemory> {
        let mut seen = Cow::Borrowed(rows);
        let scaler = &self.scaler;
        for own in &self.isolated {
            let j = own.column;
            if own.target && !likelihood.bears_outliers() {
                continue;
            }
            // where constant targets are left out, others have moved up
            let all = rows.y.ncols() == self.target_names.len();
            let gone = |j: usize| (0..j).filter(|&p| scaler.is_constant(p)).count();
            let at = if own.target && !all { j - gone(j) } else { j };
            let scaled = |value: f64| match own.target {
                true => (value - scaler.y_mean[j]) / scaler.y_scale[j],
                false => scaler.scaled_input(j, value),
            };
            let (low, high) = (scaled(own.body.0), scaled(own.body.1));
            let data = seen.to_mut();
            let column = if own.target { &mut data.y } else { &mut data.x };
            column.col_as_slice_mut(at).iter_mut().for_each(|v| *v = v.clamp(low, high));
        }
        seen
    }

    /// Returns what to say of isolated values.
    pub(super) fn isolated_remarks(&self, likelihood: &dyn Likelihood) -> Vec<String> {
        let inputs: Vec<&Isolated> = self.isolated.iter().filter(|own| !own.target).collect();
        let mut remarks = Vec::new();
        for own in inputs.iter().take(NAMED) {
            remarks.push(format!(
                "input column `{}` holds {}, and all its other values are from {} to {}: if that stands for a missing \
                 value, leave it empty and leave such rows out (`--missing drop`), or leave the rows out; scales and \
                 starting values are those of the other rows",
                self.input_names[own.column],
                self.held(own),
                own.body.0,
                own.body.1
            ));
        }
        if inputs.len() > NAMED {
            let more = inputs.len() - NAMED;
            remarks.push(format!("{more} more input columns hold such values far from all others"));
        }
        for own in self.isolated.iter().filter(|own| own.target) {
            let what = match (likelihood.bears_outliers(), likelihood.standardises()) {
                (true, _) => "scales and starting values are those of the other rows".to_owned(),
                (false, true) => format!(
                    "under the likelihood `{}` that decides about the scale of everything; leave such rows out if they \
                     are errors or stand for missing values, or choose a likelihood with heavy tails, `student-t`",
                    likelihood.name()
                ),
                (false, false) => {
                    "leave such rows out if they are errors or stand for missing values".to_owned()
                }
            };
            remarks.push(format!(
                "target column `{}` holds {}, and all its other values are from {} to {}: {what}",
                self.target_names[own.column],
                self.held(own),
                own.body.0,
                own.body.1
            ));
        }
        remarks
    }

    /// Returns the values, and in how many rows they are.
    fn held(&self, own: &Isolated) -> String {
        let one = |&(value, count): &(f64, usize)| {
            let value = match value.abs() {
                size if (1e-4..1e9).contains(&size) || size == 0.0 => format!("{value}"),
                _ => format!("{value:e}"),
            };
            format!("{value} in {count}")
        };
        let values: Vec<String> = own.values.iter().map(one).collect();
        format!("{} of {} rows", values.join(", "), self.rows)
    }
}
