//! upper ≥ exact ≥ titsias2025 ≥ spherical ≥ titsias2009, with equality where Z = X.

use crate::problem::{KERNELS, ROUGH, draws, problem};
use proptest::prelude::*;
use sparsegp::engine::Cpu;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::model::inducing_param;

/// From the highest to the lowest.
const LADDER: [&str; 5] = ["upper", "exact", "titsias2025", "spherical", "titsias2009"];

proptest! {
    #![proptest_config(crate::config())]

    /// The order holds for any jitter: Kuu + jitter·I belongs to the inducing variables f(Z) + noise,
    /// which are as legitimate. All that can break it is rounding. A value is a difference of sums of
    /// at most 180 terms, each below y²/σ² ≤ 10³ in size: 180·10³·ε ≈ 4·10⁻¹¹ at worst; 10⁻⁹ relative
    /// to the values leaves room for the factorisations.
    #[test]
    fn bounds_are_ordered(draw in draws(KERNELS)) {
        let problem = problem(&draw);
        let values = LADDER.map(|name| problem.evaluate(name).value);
        for (pair, names) in values.windows(2).zip(LADDER.windows(2)) {
            let room = 1e-9 * (1.0 + pair[0].abs() + pair[1].abs());
            prop_assert!(pair[0] >= pair[1] - room, "{:?} {:?} {:?}", names, pair, draw);
        }
    }

    /// With Z = X and no jitter nothing is unexplained: every rung has the exact value, and the
    /// posteriors agree. rᵢ is then rounding, ε·k·(a few), and is multiplied by at most N/2σ² ≤ 3000;
    /// solves with Kuu, whose condition is below 10⁶ for these kernels and points, lose six digits
    /// of the predictions at worst: 10⁻⁸ holds both.
    #[test]
    fn inducing_points_at_the_inputs_make_everything_exact(draw in draws(ROUGH)) {
        let mut problem = problem(&draw);
        problem.model.inducing = vec![inducing_param(problem.data.x.as_ref())];
        problem.model.jitter = Jitter::Absolute(0.0);
        let exact = problem.evaluate("exact").value;
        let new = crate::problem::points(9, draw.d, 0.3, &mut problem.rng);
        let engine = Cpu::default();
        let predict = |name: &str| {
            let posterior = problem.with(name).posterior(&engine, &problem.data).unwrap();
            posterior.predict_f_full(new.as_ref()).unwrap()
        };
        let (mean, covariance) = predict("exact");
        let close = |a: &Mat<f64>, b: &Mat<f64>| {
            let difference = a - b;
            difference.norm_max() < 1e-8 * (1.0 + a.norm_max())
        };
        for name in LADDER {
            let value = problem.evaluate(name).value;
            prop_assert!((value - exact).abs() < 1e-8 * (1.0 + exact.abs()), "{name} {value} {exact}");
            if name != "upper" {
                let (m, c) = predict(name);
                prop_assert!(close(&mean, &m) && close(&covariance[0], &c[0]), "{name} {draw:?}");
            }
        }
    }
}
