//! Where a schedule is when time may end before its steps do.

/// Where a schedule over planned steps is: at the step that is made or, where a time limit will end the training before
/// all steps are made, at the same share of the steps as of the time. So a rate that falls has fallen when either ends.
///
/// The time counts from the first share that is seen: what was used before was for preparation. Shares are cut to whole
/// steps, so that a limit changes no bit of a training while its time is not ahead of its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Share of the limit that was used when the first one was seen.
    first: Option<f64>,
    /// Share of the rest that is used.
    share: f64,
}

impl Progress {
    /// Notes the share of the time limit that is used, from 0 to 1; none where there is no limit.
    pub fn see(&mut self, used: Option<f64>) {
        let Some(used) = used.filter(|used| used.is_finite()) else { return };
        let first = *self.first.get_or_insert(used);
        let share = if first < 1.0 { (used - first) / (1.0 - first) } else { 1.0 };
        self.share = share.clamp(self.share, 1.0);
    }

    /// Returns the step at which a schedule over `planned` steps is, when step `step` = 0, 1, … is made.
    pub fn step(&self, step: usize, planned: usize) -> usize {
        step.max((self.share * planned as f64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_where_steps_or_time_are_whichever_is_more() {
        let mut progress = Progress::default();
        progress.see(None);
        assert_eq!([0, 7, 200].map(|step| progress.step(step, 100)), [0, 7, 200]);
        // a quarter of the time was for preparation
        for (used, expected) in [(0.25, 3), (0.279, 3), (0.625, 50), (0.5, 50), (1.0, 100)] {
            progress.see(Some(used));
            assert_eq!(progress.step(3, 100), expected, "{used}");
            assert_eq!(progress.step(100, 100), 100, "{used}");
        }
        progress.see(None);
        progress.see(Some(f64::NAN));
        assert_eq!(progress.step(3, 100), 100);
    }

    #[test]
    fn a_limit_that_is_over_or_far_away_is_not_a_trap() {
        let mut over = Progress::default();
        over.see(Some(1.0));
        assert_eq!(
            [over.step(0, 100), over.step(0, 0), over.step(0, usize::MAX)],
            [100, 0, usize::MAX]
        );
        let mut far = Progress::default();
        for used in [-1.0, f64::INFINITY, 7.0] {
            far.see(Some(used));
        }
        assert_eq!(far.step(0, 10), 10);
        let mut ample = Progress::default();
        for used in [1e-9, 1e-4] {
            ample.see(Some(used));
        }
        assert_eq!(ample.step(0, 1000), 0);
    }
}
