//! Step size and mass of Hamiltonian samplers, found during burn-in.
//!
//! The step by dual averaging (Hoffman & Gelman 2014, §3.2), the diagonal mass from variances within windows that
//! double, as in Stan (Carpenter et al. 2017; reference manual, "HMC algorithm parameters"): 75 sweeps for the step,
//! windows of 25, 50, 100, … for the mass, 50 sweeps for the last step; less of each for short burn-ins, and of those
//! below 20 sweeps all for the step.

use serde::{Deserialize, Serialize};

/// Hoffman & Gelman 2014, §3.2.1.
const GAMMA: f64 = 0.05;
const T0: f64 = 10.0;
const KAPPA: f64 = 0.75;

/// Dual averaging of the logarithm of a step towards a mean acceptance.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct DualAveraging {
    centre: f64,
    count: f64,
    error: f64,
    log_mean: f64,
}

impl DualAveraging {
    fn new(step: f64) -> Self {
        Self { centre: (10.0 * step).ln(), count: 0.0, error: 0.0, log_mean: 0.0 }
    }

    /// Returns the step to try next.
    fn update(&mut self, acceptance: f64, wanted: f64) -> f64 {
        self.count += 1.0;
        let weight = 1.0 / (self.count + T0);
        self.error = (1.0 - weight) * self.error + weight * (wanted - acceptance);
        let log = self.centre - self.count.sqrt() / GAMMA * self.error;
        let share = self.count.powf(-KAPPA);
        self.log_mean = share * log + (1.0 - share) * self.log_mean;
        log.exp()
    }
}

/// What is adapted, and how far it has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Adaptation {
    wanted: f64,
    averaging: DualAveraging,
    /// The sweeps whose positions count for the mass end here.
    last: usize,
    /// First sweep and end of the present window.
    window: (usize, usize),
    burn_in: usize,
    /// Of the present window: count, means, sums of squares about them.
    moments: (f64, Vec<f64>, Vec<f64>),
}

/// Sweeps below which there is no window for the mass: after one there would be none to find the step again.
const LEAST_FOR_MASS: usize = 20;

impl Adaptation {
    /// Creates the adaptation for so many sweeps of burn-in from a first step, towards a mean
    /// acceptance.
    pub fn new(burn_in: usize, dim: usize, step: f64, wanted: f64) -> Self {
        let (first, base, end) = if burn_in >= 150 {
            (75, 25, 50)
        } else if burn_in < LEAST_FOR_MASS {
            (0, 0, burn_in)
        } else {
            let (first, end) = (burn_in * 15 / 100, burn_in / 10);
            (first, burn_in - first - end, end)
        };
        Self {
            wanted,
            averaging: DualAveraging::new(step),
            last: burn_in - end,
            window: (first, first + base),
            burn_in,
            moments: (0.0, vec![0.0; dim], vec![0.0; dim]),
        }
    }

    /// Returns whether it is of so many variables.
    pub fn is_of(&self, dim: usize) -> bool {
        self.moments.1.len() == dim && self.moments.2.len() == dim
    }

    /// Takes what a sweep of the burn-in did, and changes step and inverse mass (variances).
    pub fn update(
        &mut self,
        sweep: usize,
        acceptance: f64,
        position: &[f64],
        step: &mut f64,
        inverse_mass: &mut [f64],
    ) {
        *step = self.averaging.update(acceptance, self.wanted);
        if (self.window.0..self.last).contains(&sweep) {
            let (count, means, squares) = &mut self.moments;
            *count += 1.0;
            for ((x, mean), square) in position.iter().zip(means).zip(squares) {
                let apart = x - *mean;
                *mean += apart / *count;
                *square += apart * (x - *mean);
            }
            if sweep + 1 == self.window.1.min(self.last) {
                self.close(step, inverse_mass);
            }
        }
        if sweep + 1 == self.burn_in {
            *step = self.averaging.log_mean.exp();
        }
    }

    /// Ends a window: its variances, drawn a little to 10⁻³, and the next window.
    fn close(&mut self, step: &mut f64, inverse_mass: &mut [f64]) {
        let (count, means, squares) = &mut self.moments;
        if *count > 1.0 {
            let share = *count / (*count + 5.0);
            for (mass, square) in inverse_mass.iter_mut().zip(squares.iter()) {
                *mass = share * square / (*count - 1.0) + 1e-3 * (1.0 - share);
            }
        }
        *count = 0.0;
        means.fill(0.0);
        squares.fill(0.0);
        let (start, end) = self.window;
        let length = 2 * (end - start);
        // a window that would leave too little for its successor takes its place too
        let next = if end + 3 * length > self.last { self.last } else { end + length };
        self.window = (end, next);
        self.averaging = DualAveraging::new(*step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_double_and_the_last_one_ends_where_they_should() {
        let mut adaptation = Adaptation::new(1000, 1, 0.1, 0.8);
        let (mut step, mut mass) = (0.1, vec![1.0]);
        let mut ends = Vec::new();
        for sweep in 0..1000 {
            let before = adaptation.window;
            // positions of variance 4, but for the first sweeps
            let x = if sweep < 75 { 1e6 } else { [-2.0, 2.0][sweep % 2] };
            adaptation.update(sweep, 0.8, &[x], &mut step, &mut mass);
            if adaptation.window != before {
                ends.push(sweep + 1);
            }
        }
        assert_eq!(ends, [100, 150, 250, 450, 950]);
        assert!((mass[0] - 4.0).abs() < 0.1, "{mass:?}");
    }

    /// However short it is, what was learnt of the step is kept.
    #[test]
    fn a_short_burn_in_leaves_a_step_that_is_accepted() {
        for burn_in in 1..LEAST_FOR_MASS {
            let mut adaptation = Adaptation::new(burn_in, 1, 1e-3, 0.7);
            let (mut step, mut mass) = (1e-3, vec![1.0]);
            for sweep in 0..burn_in {
                // 0.7 at the first step
                let acceptance = 0.7_f64.powf(step / 1e-3);
                adaptation.update(sweep, acceptance, &[0.1], &mut step, &mut mass);
            }
            assert!(step < 0.02 && mass == [1.0], "{burn_in}: {step}, {mass:?}");
        }
    }

    #[test]
    fn the_step_finds_the_acceptance_that_is_wanted() {
        for burn_in in [60, 400] {
            let mut adaptation = Adaptation::new(burn_in, 1, 3.0, 0.7);
            let (mut step, mut mass) = (3.0, vec![1.0]);
            for sweep in 0..burn_in {
                // acceptance falls with the step: 0.7 at 0.2
                let acceptance = 0.7_f64.powf(step / 0.2);
                adaptation.update(sweep, acceptance, &[0.0], &mut step, &mut mass);
            }
            assert!((0.13..0.3).contains(&step), "{burn_in}: {step}");
        }
    }
}
