//! Numbers of a parameter that are one, such as the lengthscales of the coordinates of places on a sphere.

use super::{Group, Param};
use crate::error::{Error, Result};

/// Relative differences of tied numbers that rounding explains.
const ROUNDING: f64 = 1e-12;

/// Returns whether places are those of so many values, each at most once.
pub(super) fn are_distinct(groups: &[Group], count: usize) -> bool {
    let mut known = vec![false; count];
    groups
        .iter()
        .flatten()
        .all(|at| known.get_mut(*at).is_some_and(|one| !std::mem::replace(one, true)))
}

impl Param {
    /// Makes the numbers at each of these lists of places one: they keep the same value, and optimisers see it once. Starting
    /// values that differ become their root mean square.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for places that are none, or in two groups.
    pub fn tie(&mut self, path: &str, groups: Vec<Group>) -> Result<()> {
        if !are_distinct(&groups, self.len()) {
            let reason = "tied: places are those of values, each at most once".into();
            return Err(Error::InvalidParameter { path: path.to_owned(), reason });
        }
        self.tied = groups.into_iter().filter(|group| group.len() > 1).collect();
        let mut value = self.value.clone();
        self.level(&mut value);
        self.value = value;
        Ok(())
    }

    /// Returns the places of numbers that are one.
    pub fn tied(&self) -> &[Group] {
        &self.tied
    }

    /// Returns how many free numbers it has where it is not frozen.
    pub fn free_len(&self) -> usize {
        self.len() - self.tied.iter().map(|group| group.len() - 1).sum::<usize>()
    }

    /// Returns whether the number at a place is one by itself or the first of those that are one.
    pub fn is_first(&self, at: usize) -> bool {
        !self.tied.iter().any(|group| group[1..].contains(&at))
    }

    /// Returns the places of the numbers that stand for all, in order.
    pub fn free_places(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter(|at| self.tied.is_empty() || self.is_first(*at))
    }

    /// Returns the numbers that are one with that at a place, it included.
    fn group_of(&self, at: usize) -> Option<&Group> {
        self.tied.iter().find(|group| group.contains(&at))
    }

    /// Gives tied ones among starting values their root mean square.
    pub(crate) fn level(&self, values: &mut [f64]) {
        if values.len() != self.len() {
            return;
        }
        for group in &self.tied {
            let first = values[group[0]];
            if group.iter().any(|at| values[*at] != first) {
                let squares: f64 = group.iter().map(|at| values[*at] * values[*at]).sum();
                let mean = (squares / group.len() as f64).sqrt();
                group.iter().for_each(|at| values[*at] = mean);
            }
        }
    }

    /// Refuses values that differ and are one.
    pub(super) fn check_tied(&self, values: &[f64]) -> std::result::Result<(), String> {
        for group in &self.tied {
            let first = values[group[0]];
            if let Some(at) =
                group.iter().find(|at| (values[**at] - first).abs() > ROUNDING * first.abs())
            {
                return Err(format!(
                    "numbers {} and {at} (from 0) are one, and {first} and {} were given: give both the same",
                    group[0], values[*at]
                ));
            }
        }
        Ok(())
    }

    /// Sets the number at a place and those that are one with it.
    pub(crate) fn set_one(&mut self, at: usize, value: f64) {
        match self.group_of(at).cloned() {
            Some(group) => group.into_iter().for_each(|at| self.value[at] = value),
            None => self.value[at] = value,
        }
    }

    /// Returns the slope by the number at a place, of slopes by each.
    pub(crate) fn slope_of(&self, at: usize, slopes: &[f64]) -> f64 {
        self.group_of(at).map_or(slopes[at], |group| group.iter().map(|at| slopes[*at]).sum())
    }

    /// Sets the values from free numbers.
    pub(super) fn set_free(&mut self, free: &[f64]) {
        let places: Vec<usize> = self.free_places().collect();
        for (at, free) in places.into_iter().zip(free) {
            let value = self.transform.to_constrained(*free);
            self.set_one(at, value);
        }
    }

    /// Computes the gradient by free numbers from that by values.
    pub(super) fn pull(&self, slopes: &[f64], free: &mut [f64]) {
        for (at, to) in self.free_places().zip(free) {
            *to = self.slope_of(at, slopes) * self.transform.slope_at(self.value[at]);
        }
    }
}
