//! Copies of rows, targets included, where targets are numbers with many values.
//!
//! Given a row, its copy has the density N(0; 0, 2σ²) at small σ, however rough the function: a few copies among a thousand rows
//! ended with a noise variance of 10⁻⁸ of the targets', and with test rows of density 0. That a row was written twice says nothing
//! about noise: where copies are few, hyperparameters of exact inference are learnt from the distinct rows. The posterior knows all.

use super::Dataset;
use crate::data::InMemory;
use crate::likelihoods::Likelihood;
use std::collections::HashSet;

/// Part of the rows that copies are, at most: where they are more, somebody means them, as weights do.
const COPIES: f64 = 0.1;
/// Part of all that rows count, from which copies and weights above 1 leave nothing to learn noise from.
const MOSTLY: f64 = 0.3;
/// Fewest rows from which anything is said of copies.
const FEWEST: usize = 20;
/// Different targets as a part of the distinct rows, from which targets count as continuous.
const CONTINUOUS: f64 = 0.5;

impl Dataset {
    /// Returns the distinct ones of these rows, where there are copies; none for targets of few values, and for rows with weights of
    /// the table or further numbers. Rows of which copies were merged have weights that count them.
    pub(super) fn distinct(&self, rows: &InMemory) -> Option<InMemory> {
        let weighted = rows.weights.iter().any(|w| *w != 1.0);
        if weighted && self.weight_name.is_some() || !rows.extra.is_empty() {
            return None;
        }
        distinct(rows)
    }
}

/// Says that much of what rows count is copies, by rows or by weights of the table, where targets are numbers with many values.
pub(super) fn many_copies(
    rows: &InMemory,
    by_weights: bool,
    likelihood: &dyn Likelihood,
) -> Option<String> {
    let n = rows.x.nrows();
    if n < FEWEST || likelihood.as_gaussian().is_none() || !rows.extra.is_empty() {
        return None;
    }
    let kept = firsts(rows);
    let all = counted(rows);
    if all - (kept.len() as f64) < MOSTLY * all || !is_continuous(rows, &kept) {
        return None;
    }
    let ending = "The noise that is learnt from them ends near 0, and intervals are far too narrow";
    // copies that were merged have weights too
    let weighted = by_weights && ((n - kept.len()) as f64) < MOSTLY * n as f64;
    Some(if weighted {
        let mean = all / n as f64;
        format!(
            "weights count repeated measurements, and measured numbers are hardly ever equal: a row counts {mean:.3} times on \
             average. {ending}; if weights are relative, or numbers of measurements whose mean a row is, `--relative-weights` \
             (`relative_weights=True` in Python) divides them by their mean"
        )
    } else {
        format!(
            "{:.0} % of the rows are copies of others, target included, and measured numbers are hardly ever equal. {ending}, and \
             scores by held-out rows that are copies too look perfect; leave copies out (`drop_duplicates()` in pandas)",
            100.0 * (1.0 - kept.len() as f64 / all)
        )
    })
}

/// Returns the first of rows that are equal, targets included.
fn firsts(rows: &InMemory) -> Vec<usize> {
    let row = |i: usize| -> Vec<u64> {
        (0..rows.x.ncols()).map(|q| bits(rows.x[(i, q)])).chain(targets(rows, i)).collect()
    };
    let mut seen = HashSet::new();
    (0..rows.x.nrows()).filter(|i| seen.insert(row(*i))).collect()
}

/// Returns how many rows these count as.
fn counted(rows: &InMemory) -> f64 {
    if rows.weights.is_empty() { rows.x.nrows() as f64 } else { rows.weights.iter().sum() }
}

/// Returns whether the targets of these rows have many values.
fn is_continuous(rows: &InMemory, kept: &[usize]) -> bool {
    let values: HashSet<Vec<u64>> = kept.iter().map(|i| targets(rows, *i).collect()).collect();
    values.len() as f64 >= CONTINUOUS * kept.len() as f64
}

/// −0 is 0.
fn bits(value: f64) -> u64 {
    (value + 0.0).to_bits()
}

fn targets(rows: &InMemory, i: usize) -> impl Iterator<Item = u64> + '_ {
    (0..rows.y.ncols()).map(move |p| bits(rows.y[(i, p)]))
}

fn distinct(rows: &InMemory) -> Option<InMemory> {
    let kept = firsts(rows);
    let all = counted(rows);
    let copies = all - kept.len() as f64;
    if copies < 1.0 || copies > COPIES * all || !is_continuous(rows, &kept) {
        return None;
    }
    Some(InMemory { weights: Vec::new(), ..rows.picked(&kept) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::likelihoods::{Gaussian, parse};
    use crate::linalg::Mat;

    #[test]
    fn copies_of_rows_are_left_out_where_targets_have_many_values() {
        let of = |y: fn(usize) -> f64| {
            let x = Mat::from_fn(22, 2, |i, q| [0.0, 1.5][q] + (i % 20) as f64);
            InMemory::new(x, Mat::from_fn(22, 1, |i, _| y(i))).unwrap()
        };
        let found = distinct(&of(|i| (i % 20) as f64 * 0.37)).unwrap();
        assert_eq!((found.x.nrows(), found.y[(9, 0)]), (20, 9.0 * 0.37));
        // rows of equal inputs and other targets are not copies; few values are equal by chance
        assert!(distinct(&of(|i| i as f64)).is_none());
        assert!(distinct(&of(|i| f64::from(i % 20 > 9))).is_none());
        // copies that were merged are counted by weights
        let mut rows = of(|i| i as f64);
        rows.weights = (0..22).map(|i| if i == 7 { 3.0 } else { 1.0 }).collect();
        let found = distinct(&rows).unwrap();
        assert_eq!((found.x.nrows(), found.weights.len()), (22, 0));
        // many copies are meant
        rows.weights = (0..22).map(|i| f64::from(1 + i % 2)).collect();
        assert!(distinct(&rows).is_none());
    }

    #[test]
    fn rows_that_are_mostly_copies_are_named() {
        let of = |n: usize, copies: usize| {
            let x = Mat::from_fn(n, 1, |i, _| (i / copies) as f64);
            InMemory::new(x, Mat::from_fn(n, 1, |i, _| (i / copies) as f64 * 0.37)).unwrap()
        };
        let gaussian = Gaussian::new(0.3);
        let text = |rows: &InMemory| {
            many_copies(rows, !rows.weights.is_empty(), &gaussian).unwrap_or_default()
        };
        assert!(
            text(&of(40, 2)).starts_with("50 % of the rows are copies"),
            "{}",
            text(&of(40, 2))
        );
        assert_eq!(text(&of(40, 1)), "");
        assert_eq!(text(&of(10, 2)), "");
        // weights say the same, unless they are 1 on average
        let weighted = |large: f64, small: f64| {
            let mut rows = of(40, 1);
            rows.weights = (0..40).map(|i| if i % 2 == 0 { large } else { small }).collect();
            rows
        };
        assert!(
            text(&weighted(2.0, 3.0)).contains("counts 2.500 times"),
            "{:?}",
            text(&weighted(2.0, 3.0))
        );
        assert_eq!(text(&weighted(1.5, 0.5)), "");
        // of few values, and of counts, equal ones are not copies
        let mut few = of(40, 2);
        few.y = Mat::from_fn(40, 1, |i, _| f64::from(i % 8 > 3));
        assert_eq!(text(&few), "");
        assert!(many_copies(&of(40, 2), false, &*parse("poisson").unwrap()).is_none());
    }
}
