//! Whether numbers are counts: whole, not negative, few different ones, and about their means as counts are.

use super::numbers::Errors;
use crate::train::Finding;

/// Different numbers that there may be, as a part of the rows and at most: more of them are nearly as good as any number.
const PART: f64 = 0.5;
const MOST: usize = 50;
/// What a whole number may miss by rounding, as a part of its size and 1.
const ROUNDING: f64 = 1e-6;
/// Mean square of the errors, in means of the targets, from which these may be counts, and from which they vary more than those of
/// Poisson's law, for which it is 1. Grades and the like have less.
const LEAST: f64 = 0.6;
const DISPERSED: f64 = 1.6;

/// Returns how many different numbers there are, no more than `most + 1`; none are equal to within rounding.
fn different(values: &[f64], most: usize) -> usize {
    let mut found: Vec<f64> = Vec::new();
    for value in values {
        let near = |own: &f64| (own - value).abs() < ROUNDING * (1.0 + value.abs());
        if found.len() <= most && !found.iter().any(near) {
            found.push(*value);
        }
    }
    found.len()
}

/// Returns whether targets have two values: those are classes, or nothing but where they jump.
pub(super) fn are_two(errors: &Errors) -> bool {
    different(&errors.y, 2) == 2
}

/// Finds targets that are counts.
pub(super) fn counts(target: &str, errors: &Errors) -> Option<Finding> {
    let y = &errors.y;
    let whole = |y: &f64| *y > -0.5 && (y - y.round()).abs() < ROUNDING * (1.0 + y.abs());
    if !y.iter().all(whole) || different(y, MOST) as f64 > (PART * y.len() as f64).min(MOST as f64)
    {
        return None;
    }
    let squares: f64 = y.iter().zip(&errors.mean).map(|(y, mean)| (y - mean).powi(2)).sum();
    let ratio = squares / y.iter().sum::<f64>();
    // all of them 0 gives no number
    if ratio.is_nan() || ratio <= LEAST {
        return None;
    }
    let (poisson, further) = ("poisson", "negative-binomial");
    let (remedies, how) = match ratio > DISPERSED {
        true => {
            ([further, poisson], "`negative-binomial`, or `poisson` where more inputs are known")
        }
        false => ([poisson, further], "`poisson`, or `negative-binomial` where they vary more"),
    };
    Some(Finding {
        name: "counts".into(),
        target: target.into(),
        text: format!(
            "`{target}`: all targets are whole numbers and not negative, and rows that are left out vary about their predictions \
             as counts do (the mean square of the errors is {ratio:.1} times the mean of the targets): if they are counts, try \
             the likelihood {how}"
        ),
        remedies: remedies.map(str::to_owned).into(),
        gain: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(y: &[f64], mean: &[f64]) -> Errors {
        let sd = vec![1.0; y.len()];
        let z = y.iter().zip(mean).map(|(y, mean)| y - mean).collect();
        Errors { y: y.to_vec(), mean: mean.to_vec(), sd, z }
    }

    #[test]
    fn counts_are_whole_few_and_vary_as_counts_do() {
        // 0, 1, 2, 3 about 1.5, of the variance 1.25
        let y: Vec<f64> = (0..40).map(|i| f64::from(i % 4)).collect();
        let found = counts("n", &errors(&y, &[1.5; 40])).expect("a finding");
        assert_eq!(found.remedies, ["poisson", "negative-binomial"]);
        // 0 and 6 about 3
        let wide: Vec<f64> = (0..40).map(|i| f64::from(6 * (i % 2))).collect();
        let found = counts("n", &errors(&wide, &[3.0; 40])).expect("a finding");
        assert_eq!(found.remedies, ["negative-binomial", "poisson"]);
        assert!(are_two(&errors(&wide, &[3.0; 40])) && !are_two(&errors(&y, &[1.5; 40])));
        let none = |y: Vec<f64>, mean: f64| counts("n", &errors(&y, &[mean; 40])).is_none();
        // grades, halves, numbers below 0, and as many numbers as rows
        assert!(none(y.iter().map(|y| y + 3.0).collect(), 4.5));
        assert!(none(y.iter().map(|y| 0.5 * y).collect(), 0.75));
        assert!(none(y.iter().map(|y| y - 1.0).collect(), 0.5));
        assert!(none((0..40).map(f64::from).collect(), 19.5));
        assert!(none(vec![0.0; 40], 0.0));
    }
}
