//! Every component of every gradient against differences.

use crate::problem::{Draw, KERNELS, Problem, draws, objective, problem, rounding};
use proptest::prelude::*;
use sparsegp::model::Model;

/// The model with one number of one parameter moved.
fn moved(model: &Model, path: &str, index: usize, h: f64) -> Model {
    let mut model = model.clone();
    for (p, param) in model.params_mut() {
        if p == path {
            let mut values = param.value().to_vec();
            values[index] += h;
            param.set(&p, &values).expect("a small step stays in range");
        }
    }
    model
}

/// Five-point difference with step h: error h⁴F⁽⁵⁾/30.
fn difference(f: impl Fn(f64) -> f64, h: f64) -> f64 {
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

/// Compares one objective's gradient with differences, component by component.
///
/// Steps are h = 10⁻³ of a positive parameter's value (10⁻⁴ with waves, of which up to 14 lie between two
/// points), 10⁻³ for means, and 2·10⁻⁴ for inducing points, whose kernels vary over distances down to
/// 0.014 (the least distance between points). The difference carries a truncation error of which the
/// difference with step 2h has 16 times as much, so that 1/15 of their disagreement estimates it: it is taken
/// away (Richardson), and still allowed for, since what is left of it is not known.
/// Rounding of the gradient is what [`rounding`] says, and 10⁻⁶ of the gradient's size is left for that of
/// the differences (ε|F|/h, amplified by the factorisations). A wrong term would be of the gradient's size
/// itself; more than 10⁻⁴ of that is never allowed.
pub fn check(name: &str, problem: &Problem, model: &Model) -> Result<(), TestCaseError> {
    let evaluation = objective(name, model, &problem.data);
    let size = evaluation.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
    let lost = rounding(name, problem, &evaluation);
    let kernel = model.kernel().to_json().to_string();
    let waves = ["periodic", "cosine"].iter().any(|name| kernel.contains(name));
    let part = if waves { 1e-4 } else { 1e-3 };
    let mut own = evaluation.gradient.iter();
    for (path, param) in model.params() {
        for (index, value) in param.value().iter().enumerate() {
            let g = own.next().expect("one entry per number");
            let h = match path.as_str() {
                "inducing.points" => 2e-4,
                path if path.starts_with("mean") => 1e-3,
                _ => part * value,
            };
            let f = |h: f64| objective(name, &moved(model, &path, index, h), &problem.data).value;
            let of = |h: f64| {
                let (fine, coarse) = (difference(f, h), difference(f, 2.0 * h));
                (fine, (fine - coarse) / 15.0)
            };
            // points that are nearly whole periods apart are as near as their remainder, which no step knows
            let (fine, truncation) = match of(h) {
                (_, truncation) if truncation.abs() > 1e-5 * size => of(h / 20.0),
                found => found,
            };
            let best = fine + truncation;
            let allowed = (1e-6 * size + lost + 4.0 * truncation.abs()).min(1e-4 * size);
            prop_assert!(
                (g - best).abs() <= allowed,
                "{name} {path}[{index}]: {g} against {best}, allowed {allowed:e}"
            );
        }
    }
    prop_assert!(own.next().is_none());
    Ok(())
}

proptest! {
    #![proptest_config(crate::config())]

    /// Relative jitter (the default) included: it moves with the kernel's variance.
    #[test]
    fn gradients_match_differences(draw in draws(KERNELS)) {
        let problem = problem(&draw);
        let own = ["exact", "titsias2009", "spherical", "titsias2025", "fitc", "pep(alpha=0.3)", "upper"];
        for name in own {
            let model = problem.with(if name == "upper" { "titsias2009" } else { name });
            check(name, &problem, &model)?;
        }
    }
}

/// Many waves of a period lie between the points: without Richardson's correction the differences are off by 10⁻⁴.
#[test]
fn a_gradient_that_is_hard_to_difference() {
    let draw = Draw {
        n: 13,
        m: 8,
        d: 1,
        p: 2,
        kernel: "periodic",
        mean: "zero",
        seed: 5076407855196930437,
    };
    let problem = problem(&draw);
    check("fitc", &problem, &problem.with("fitc")).unwrap();
}

/// Two points differ by nearly whole periods.
#[test]
fn points_that_are_near_by_their_period() {
    let draw = Draw {
        n: 58,
        m: 8,
        d: 2,
        p: 1,
        kernel: "periodic",
        mean: "zero",
        seed: 11512074435588396310,
    };
    let problem = problem(&draw);
    check("titsias2009", &problem, &problem.with("titsias2009")).unwrap();
}
