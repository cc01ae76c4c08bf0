//! Whether new rows are as the model expects them, from the first one on.
//!
//! A row that is predicted before it is learnt has a law p, and the mean of q(y)/p(y) under p is 1 for any
//! other law q. Where the model is right, products of such ratios over rows are therefore seldom large: ever above 1/α
//! with probability α at most (Ville's inequality). Here logs of products are summed for a few q,
//! and begin again at 0 where they fall below it, so that a change counts from where it began (an
//! e-detector; Shin, Ramdas & Rinaldo 2023): a model that is right raises one alarm in 1/α batches
//! or fewer, whatever their sizes. The stream before is not the yardstick: what the model promises
//! is, so a slow change, or one before the first row, is seen as well as a sudden one.

use serde::{Deserialize, Serialize};

/// Laws that are compared with the model's.
const LAWS: usize = 4;
/// Wider laws of z = Φ⁻¹(P(Y ≤ y)): their standard deviations. Where z has one of less than 1.2 (95 % intervals hold 90 % or
/// more) the first of them does not gain.
const WIDER: [f64; 2] = [1.5, 4.0];
/// A law of z beside the model's.
const SHIFT: f64 = 1.5;
/// Parts of the labels that are drawn without looking at the inputs.
const CHANCE: [f64; 2] = [0.1, 0.4];
/// Most that the log of a ratio counts: no single row is an alarm. A ratio that is smaller keeps the bound.
const MOST: f64 = 4.0;
/// α: alarms in a batch where there should be none.
const ALPHA: f64 = 1e-5;

/// What is known of a row that was predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    logs: [f64; LAWS],
    /// What was looked at, and its mean under the model.
    found: f64,
    expected: f64,
    /// How much it counts, in (0, 1].
    weight: f64,
}

impl Seen {
    /// Creates a number with P(Y ≤ y) = `share` (of whole numbers a random one between P(Y < y) and
    /// that). `weight` is 1 over the rows that say the same of the function: with the powers of
    /// dependent ratios the mean stays at most 1 (Hölder).
    pub fn number(share: f64, weight: f64) -> Self {
        let z = crate::metrics::standard_normal_quantile(share.clamp(1e-15, 1.0 - 1e-15));
        let wider = |s: f64| -s.ln() + 0.5 * z * z * (1.0 - 1.0 / (s * s));
        let beside = |shift: f64| shift * z - 0.5 * shift * shift;
        let logs = [wider(WIDER[0]), wider(WIDER[1]), beside(SHIFT), beside(-SHIFT)];
        let inside = (0.025..=0.975).contains(&share);
        Self::new(logs, f64::from(u8::from(inside)), 0.95, weight)
    }

    /// Creates a label to which the model gives a probability, which it expects to be `expected`,
    /// among so many.
    pub fn label(probability: f64, expected: f64, classes: usize, weight: f64) -> Self {
        let chance = |part: f64| {
            let log = (1.0 - part + part / (classes as f64 * probability.max(1e-300))).ln();
            log.min(MOST)
        };
        let logs = [chance(CHANCE[0]), chance(CHANCE[1]), f64::NEG_INFINITY, f64::NEG_INFINITY];
        Self::new(logs, probability, expected, weight)
    }

    fn new(logs: [f64; LAWS], found: f64, expected: f64, weight: f64) -> Self {
        let logs = logs.map(|log| weight * log.min(MOST));
        Self { logs, found, expected, weight }
    }
}

/// The sum for one law, and the rows since it was 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sum {
    log: f64,
    rows: usize,
    found: f64,
    expected: f64,
}

/// Rows that are not as the model expects them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Miss {
    /// The last rows, of which that many are meant.
    pub rows: usize,
    /// Of numbers the share within 95 % intervals, of labels their mean probability.
    pub found: f64,
    /// What the model expects in its place.
    pub expected: f64,
}

/// Watches rows that were predicted before they were learnt, batch by batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    sums: [Sum; LAWS],
}

impl Calibration {
    /// Adds a batch. After an alarm the watch begins again.
    pub fn add(&mut self, batch: &[Seen]) -> Option<Miss> {
        let total = |of: &dyn Fn(&Seen) -> f64| batch.iter().map(of).sum::<f64>();
        let (found, expected) = (total(&|seen| seen.found), total(&|seen| seen.expected));
        for (k, sum) in self.sums.iter_mut().enumerate() {
            let before = if sum.log > 0.0 { *sum } else { Sum::default() };
            *sum = Sum {
                log: before.log + total(&|seen| seen.logs[k]),
                rows: before.rows + batch.len(),
                found: before.found + found,
                expected: before.expected + expected,
            };
            // a number for files, whatever a law that is not compared has
            sum.log = sum.log.max(-1.0);
        }
        let largest = self.sums.iter().max_by(|a, b| a.log.total_cmp(&b.log)).copied()?;
        if largest.log <= (LAWS as f64 / ALPHA).ln() {
            return None;
        }
        *self = Self::default();
        let Sum { rows, found, expected, .. } = largest;
        Some(Miss { rows, found: found / rows as f64, expected: expected / rows as f64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use rand_distr::{Distribution, StandardNormal};

    /// Alarms of a stream of batches of 20 rows, z as `of` makes them from a normal number at a batch.
    fn alarms(batches: usize, seed: u64, of: impl Fn(usize, f64) -> f64) -> Vec<(usize, Miss)> {
        let mut rng = rng::stream(seed, "calibration");
        let mut watch = Calibration::default();
        let mut found = Vec::new();
        for t in 0..batches {
            let mut seen = || {
                let z: f64 = StandardNormal.sample(&mut rng);
                Seen::number(crate::special::normal_cdf(of(t, z)), 1.0)
            };
            let batch: Vec<Seen> = (0..20).map(|_| seen()).collect();
            found.extend(watch.add(&batch).map(|miss| (t, miss)));
        }
        found
    }

    #[test]
    fn what_a_model_promises_raises_no_alarm() {
        let count: usize = (0..10).map(|seed| alarms(1000, seed, |_, z| z).len()).sum();
        assert!(count <= 1, "{count} alarms in 10 000 batches");
        // a little off, and too careful
        assert!(alarms(1000, 3, |_, z| 1.1 * z + 0.2).is_empty());
        assert!(alarms(1000, 4, |_, z| 0.3 * z).is_empty());
    }

    #[test]
    fn what_is_off_from_the_first_row_or_slowly_is_seen() {
        for seed in 0..20 {
            let noise = alarms(5, seed, |_, z| 3.0 * z);
            assert!(noise.first().is_some_and(|(t, _)| *t <= 1), "{noise:?}");
            let beside = alarms(5, seed, |_, z| z - 2.0);
            assert!(
                beside.first().is_some_and(|(t, miss)| *t <= 1 && miss.found < 0.9),
                "{beside:?}"
            );
            let slow = alarms(200, seed, |t, z| z + 0.02 * t as f64);
            assert!(slow.first().is_some_and(|(t, _)| *t < 100), "{slow:?}");
        }
    }

    #[test]
    fn rows_that_say_the_same_count_once() {
        let far = |weight: f64| Calibration::default().add(&[Seen::number(0.999, weight); 30]);
        assert!(far(1.0).is_some());
        assert_eq!(far(1.0 / 30.0), None);
    }

    #[test]
    fn labels_are_judged_by_their_probabilities() {
        let mut rng = rng::stream(1, "labels");
        let mut watch = Calibration::default();
        for t in 0..5000 {
            let p = 0.5 + 0.5 * rng::uniform(&mut rng);
            let right = rng::uniform(&mut rng) < p;
            let own = if right { p } else { 1.0 - p };
            let seen = Seen::label(own, p * p + (1.0 - p).powi(2), 2, 1.0);
            assert_eq!(watch.add(&[seen]), None, "{t}");
        }
        // sure and right costs little, sure and wrong is an alarm after a few
        let right = Seen::label(0.999, 0.998, 2, 1.0);
        assert!((0..100).all(|_| watch.add(&[right]).is_none()));
        let wrong = Seen::label(0.001, 0.998, 2, 1.0);
        let miss = watch.add(&[wrong; 5]).expect("an alarm");
        assert!(miss.rows == 5 && miss.found < 0.01 && miss.expected > 0.9, "{miss:?}");
        // after it the watch begins again, and a single odd row raises none
        assert_eq!(watch.add(&[wrong]), None);
    }
}
