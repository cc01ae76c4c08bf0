//! Copies of rows, targets included, where targets are numbers with many values.
//!
//! Given a row, its copy has the density N(0; 0, 2σ²) at small σ, however rough the function: a few copies among a thousand rows
//! ended with a noise variance of 10⁻⁸ of the targets', and with test rows of density 0. That a row was written twice says nothing
//! about noise: where copies are few, hyperparameters of exact inference are learnt from the distinct rows. The posterior knows all.

use super::Dataset;
use crate::data::InMemory;
use std::collections::HashSet;

/// Part of the rows that copies are, at most: where they are more, somebody means them, as weights do.
const COPIES: f64 = 0.1;
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

fn distinct(rows: &InMemory) -> Option<InMemory> {
    let n = rows.x.nrows();
    // −0 is 0
    let bits = |v: f64| (v + 0.0).to_bits();
    let targets = |i: usize| (0..rows.y.ncols()).map(move |p| bits(rows.y[(i, p)]));
    let row = |i: usize| -> Vec<u64> {
        (0..rows.x.ncols()).map(|q| bits(rows.x[(i, q)])).chain(targets(i)).collect()
    };
    let mut seen = HashSet::new();
    let kept: Vec<usize> = (0..n).filter(|i| seen.insert(row(*i))).collect();
    let all = if rows.weights.is_empty() { n as f64 } else { rows.weights.iter().sum() };
    let copies = all - kept.len() as f64;
    if copies < 1.0 || copies > COPIES * all {
        return None;
    }
    let values: HashSet<Vec<u64>> = kept.iter().map(|i| targets(*i).collect()).collect();
    let continuous = values.len() as f64 >= CONTINUOUS * kept.len() as f64;
    continuous.then(|| InMemory { weights: Vec::new(), ..rows.picked(&kept) })
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
