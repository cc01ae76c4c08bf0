//! Whether new rows are predicted worse than those before them.

use std::collections::VecDeque;

/// Batches that are remembered.
const MEMORY: usize = 50;
/// Batches before anything is judged.
const LEAST: usize = 10;
/// Chance of taking a batch for a change where there is none; two in succession make one.
const CHANCE: f64 = 1e-3;

/// A change of how well rows are predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Mean loss of the batches before.
    pub before: f64,
    /// Mean loss of the two batches that showed it.
    pub now: f64,
    /// How many batches ago it began: 2, the one that was just added among them.
    pub batches: usize,
}

/// Watches the mean losses of batches (negative log densities of rows before they are learnt). A batch is suspect where its loss
/// is above those of at most 50 before it by a one-sided t test; two in succession are a change. The spread of
/// whole batches is what counts, so that heavy tails and rows that resemble their neighbours raise no alarm.
#[derive(Clone, Debug, Default)]
pub struct Drift {
    losses: VecDeque<f64>,
    suspect: Option<f64>,
}

impl Drift {
    /// Adds a batch; a loss that is not finite counts for nothing. After a change the watch begins
    /// again.
    pub fn add(&mut self, loss: f64) -> Option<Change> {
        if !loss.is_finite() {
            return None;
        }
        let n = self.losses.len();
        if n >= LEAST {
            let mean = self.losses.iter().sum::<f64>() / n as f64;
            let squares: f64 = self.losses.iter().map(|l| (l - mean).powi(2)).sum();
            let sd = (squares / (n - 1) as f64 * (1.0 + 1.0 / n as f64)).sqrt();
            // losses that are all the same do not measure spread
            let sd = sd.max(1e-6 * (1.0 + mean.abs()));
            if above((loss - mean) / sd, (n - 1) as f64) < CHANCE {
                let first = self.suspect.replace(loss)?;
                *self = Self { losses: VecDeque::from([first, loss]), suspect: None };
                return Some(Change { before: mean, now: 0.5 * (first + loss), batches: 2 });
            }
        }
        // a single one was chance, or a few odd rows
        self.suspect = None;
        self.losses.push_back(loss);
        if self.losses.len() > MEMORY {
            self.losses.pop_front();
        }
        None
    }
}

/// Returns P(T > t) of Student's t with `df` degrees of freedom.
fn above(t: f64, df: f64) -> f64 {
    let tail = 0.5 * statrs::function::beta::beta_reg(0.5 * df, 0.5, df / (df + t * t));
    if t > 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    fn noise(rng: &mut rand_chacha::ChaCha8Rng) -> f64 {
        // heavy tails: the ratio of a normal and a uniform number
        let normal: f64 = (0..12).map(|_| rng::uniform(rng)).sum::<f64>() - 6.0;
        normal / (0.2 + rng::uniform(rng))
    }

    #[test]
    fn tails_of_students_t() {
        // scipy.stats.t.sf(2.5, 9) and (-1.3, 4)
        assert!((above(2.5, 9.0) - 0.016_930_913_841_492_867).abs() < 1e-14, "{}", above(2.5, 9.0));
        assert!((above(-1.3, 4.0) - 0.868_274_201_764_388).abs() < 1e-13, "{}", above(-1.3, 4.0));
    }

    #[test]
    fn changes_are_found_and_chance_is_not() {
        let mut rng = rng::stream(4, "drift");
        let mut alarms = 0;
        for _ in 0..40 {
            let mut drift = Drift::default();
            alarms += (0..200).filter(|_| drift.add(3.0 + 0.4 * noise(&mut rng)).is_some()).count();
        }
        assert!(alarms <= 1, "{alarms} false alarms in 8000 batches");
        let mut found = 0;
        for _ in 0..40 {
            let mut drift = Drift::default();
            for _ in 0..60 {
                drift.add(3.0 + 0.1 * noise(&mut rng));
            }
            let mut after = (0..4).filter_map(|_| drift.add(6.0 + 0.1 * noise(&mut rng)));
            if let Some(change) = after.next() {
                assert!(change.now > change.before + 2.0, "{change:?}");
                found += 1;
            }
        }
        assert!(found >= 38, "{found} of 40 changes");
    }

    #[test]
    fn single_batches_better_ones_and_nan_are_not_a_change() {
        let mut drift = Drift::default();
        for t in 0..60 {
            let odd = if t % 17 == 16 { 50.0 } else { 0.0 };
            assert_eq!(drift.add(1.0 + 0.01 * f64::from(t % 5) + odd), None);
        }
        assert_eq!([drift.add(f64::NAN), drift.add(-9.0), drift.add(-9.0)], [None; 3]);
        let mut same = Drift::default();
        assert!((0..30).all(|_| same.add(0.5).is_none()));
        assert_eq!(same.add(0.6), None);
        assert!(same.add(0.6).is_some());
    }
}
