//! upper ≥ exact ≥ titsias2025 ≥ spherical ≥ titsias2009, with equality where Z = X.

use crate::problem::{KERNELS, ROUGH, draws, problem, rounding};
use proptest::prelude::*;
use sparsegp::engine::Cpu;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods::Evaluation;
use sparsegp::model::inducing_param;

/// From the highest to the lowest. FITC and power expectation propagation have no place in it: they may be
/// above the log evidence or below every bound.
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
        for name in LADDER.into_iter().chain(["fitc", "pep(alpha=0.2)"]) {
            let value = problem.evaluate(name).value;
            prop_assert!((value - exact).abs() < 1e-8 * (1.0 + exact.abs()), "{name} {value} {exact}");
            if name != "upper" {
                let (m, c) = predict(name);
                prop_assert!(close(&mean, &m) && close(&covariance[0], &c[0]), "{name} {draw:?}");
            }
        }
    }

    /// α of power expectation propagation goes from `titsias2009`, its limit at 0, to FITC, the case 1. At
    /// α = 10⁻⁹ the difference from the limit is α times the slope in α, of the size Σr/σ²(1 + r/σ²) times
    /// the value at most.
    #[test]
    fn power_ep_goes_from_the_bound_of_2009_to_fitc(draw in draws(KERNELS)) {
        let problem = problem(&draw);
        let same = |a: &Evaluation, b: &Evaluation, room: f64| {
            let size = b.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
            (a.value - b.value).abs() <= room * (1.0 + b.value.abs())
                && a.gradient.iter().zip(&b.gradient).all(|(a, b)| (a - b).abs() <= room * size)
        };
        let (one, fitc) = (problem.evaluate("pep(alpha=1)"), problem.evaluate("fitc"));
        prop_assert!(same(&one, &fitc, 0.0), "{draw:?}");
        let (small, limit) = (problem.evaluate("pep(alpha=1e-9)"), problem.evaluate("titsias2009"));
        let noise = problem.model.noise();
        let unexplained = limit.diagnostics.unexplained / noise;
        let room = 1e-9 * (10.0 + unexplained * (10.0 + unexplained));
        let lost = rounding("titsias2009", &problem, &limit);
        prop_assert!(same(&small, &limit, room + lost), "{} {} {draw:?}", small.value, limit.value);
    }
}

#[test]
fn the_power_is_read_from_the_name() {
    use sparsegp::methods::find;
    for (text, name) in [
        ("pep", "pep"),
        ("power-ep", "pep"),
        ("PEP(alpha=0.5)", "pep"),
        ("pep( alpha = 0.25 )", "pep(alpha=0.25)"),
        ("fitc", "fitc"),
    ] {
        let entry = find(text).expect(text);
        assert_eq!((entry.name, entry.method.name()), (name, name), "{text}");
        assert!(!entry.method.is_bound(), "{text}");
    }
    // asked for twice, made once
    let found = || find("pep(alpha=0.125)").expect("known").method;
    assert!(std::ptr::eq(found(), found()));
    for (text, culprit, remedy) in [
        ("pep(alpha=0)", "alpha of `pep` is 0", "titsias2009"),
        ("pep(alpha=1.5)", "alpha of `pep` is 1.5", "at most 1"),
        ("pep(alpha=a)", "`a` is not a number", "pep(alpha=a)"),
        ("pep(beta=1)", "pep(beta=1)", "pep(alpha=0.3)"),
        ("titsias2009(alpha=1)", "titsias2009(alpha=1)", "pep(alpha=0.3)"),
        ("pop(alpha=0.3)", "pop", "pep"),
    ] {
        let message = find(text).err().expect(text).to_string();
        assert!(message.contains(culprit) && message.contains(remedy), "{text}: {message}");
    }
}
