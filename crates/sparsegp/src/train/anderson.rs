//! Anderson's mixing of the steps of q (Anderson 1965; Walker & Ni 2011): where latent functions overshoot together, or
//! sites creep, the steps made before tell where they lead.

use crate::linalg::{Cholesky, Jitter, Mat, column, sum_of_products};
use crate::variational::Variational;
use std::collections::VecDeque;

/// How many steps are mixed. Each is remembered, as long as q.
const MEMORY: usize = 3;

/// A step of q: where it led, and the slopes of the bound where it began, which are to be 0.
struct Made {
    to: [Vec<f64>; 2],
    slopes: Vec<f64>,
}

/// The last steps of q at fixed hyperparameters.
#[derive(Default)]
pub(super) struct Mixing {
    made: VecDeque<Made>,
}

impl Mixing {
    /// Forgets all steps.
    pub(super) fn clear(&mut self) {
        self.made.clear();
    }

    /// Moves q from where its newest step led to where the last ones lead together: to Σ αᵢ (where step i led) with Σ αᵢ = 1
    /// and the least ‖Σ αᵢ (slopes where step i began)‖.
    ///
    /// Natural parameters mix; whether the sum is a q at all, and its bound, is for the next pass to say.
    pub(super) fn mix(&mut self, q: &mut Variational, slopes: Vec<f64>) {
        if self.made.len() == MEMORY {
            self.made.pop_front();
        }
        let to = [q.first.value().to_vec(), q.second.value().to_vec()];
        self.made.push_back(Made { to, slopes });
        let last = self.made.len() - 1;
        if last == 0 {
            return;
        }
        // least squares in the differences from the newest
        let newest = &self.made[last].slopes;
        let differences: Vec<Vec<f64>> = (0..last)
            .map(|i| newest.iter().zip(&self.made[i].slopes).map(|(a, b)| a - b).collect())
            .collect();
        let normal =
            Mat::from_fn(last, last, |i, j| sum_of_products(&differences[i], &differences[j]));
        let right = Mat::from_fn(last, 1, |i, _| sum_of_products(&differences[i], newest));
        // steps that repeat others get no separate weight
        let trace: f64 = (0..last).map(|i| normal[(i, i)]).sum();
        let Ok(factor) = Cholesky::new(normal.as_ref(), Jitter::Absolute(1e-10 * trace), "mixing")
        else {
            return;
        };
        let weights = factor.solve(right.as_ref());
        let weights = column(weights.as_ref(), 0);
        if !weights.iter().all(|w| w.is_finite()) {
            return;
        }
        let own = 1.0 - weights.iter().sum::<f64>();
        for (part, param) in [&mut q.first, &mut q.second].into_iter().enumerate() {
            let value = param.value_mut();
            value.iter_mut().for_each(|v| *v *= own);
            for (made, weight) in self.made.iter().zip(weights) {
                value.iter_mut().zip(&made.to[part]).for_each(|(v, to)| *v += weight * to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variational::Tying;

    /// x ← Ax + b in two dimensions, which overshoots in one direction and creeps in the other.
    fn step(q: &mut Variational) -> Vec<f64> {
        let x = q.first.value().to_vec();
        let to = [-1.5 * x[0] + 0.2 * x[1] + 1.0, 0.1 * x[0] + 0.98 * x[1] - 0.3];
        q.first.value_mut().copy_from_slice(&to);
        // what is stored beside follows
        q.second.value_mut()[0] = 2.0 * to[0] - to[1] + 0.5;
        to.iter().zip(&x).map(|(to, x)| to - x).collect()
    }

    #[test]
    fn three_steps_of_a_linear_map_of_two_numbers_lead_to_where_it_stays() {
        let mut q = Variational::sites(2, 1, Tying::Natural);
        let mut mixing = Mixing::default();
        for _ in 0..4 {
            let slopes = step(&mut q);
            mixing.mix(&mut q, slopes);
        }
        // (I − A)⁻¹b
        let determinant = 2.5 * 0.02 - 0.2 * 0.1;
        let fixed = [(0.02 - 0.2 * 0.3) / determinant, (0.1 - 2.5 * 0.3) / determinant];
        for (own, other) in q.first.value().iter().zip(fixed) {
            assert!((own - other).abs() < 1e-6 * other.abs().max(1.0), "{own} {other}");
        }
        let beside = 2.0 * fixed[0] - fixed[1] + 0.5;
        assert!((q.second.value()[0] - beside).abs() < 1e-5, "{} {beside}", q.second.value()[0]);
        // steps without mixing diverge
        let mut alone = Variational::sites(2, 1, Tying::Natural);
        (0..9).for_each(|_| drop(step(&mut alone)));
        let off = (alone.first.value()[0] - fixed[0]).abs();
        assert!(off > 2.0 * fixed[0].abs(), "{off}");
    }

    #[test]
    fn one_step_is_what_it_is_and_so_are_steps_that_bring_nothing_new() {
        let mut q = Variational::sites(2, 1, Tying::Natural);
        let mut mixing = Mixing::default();
        for round in 0..3 {
            q.first.value_mut().copy_from_slice(&[0.5, -2.0]);
            mixing.mix(&mut q, vec![0.3, 0.1]);
            assert_eq!(q.first.value(), [0.5, -2.0], "{round}");
        }
        mixing.clear();
        q.first.value_mut().copy_from_slice(&[7.0, 1.0]);
        mixing.mix(&mut q, vec![1.0, 1.0]);
        assert_eq!(q.first.value(), [7.0, 1.0]);
    }
}
