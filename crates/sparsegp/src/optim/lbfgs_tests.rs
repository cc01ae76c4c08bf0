use super::*;
use crate::error::Error;
use crate::optim::test_functions::{
    Barrier, FailsAt, Quadratic, Refusal, Rosenbrock, Scalar, no_value,
};

/// Tolerances that ask for as much as rounding allows.
fn sharp() -> LbfgsOptions {
    LbfgsOptions { gradient_tolerance: 1e-9, objective_tolerance: 0.0, ..Default::default() }
}

/// Steps until the end; values must never rise by more than rounding.
fn minimise(objective: &mut dyn Objective, x0: Vec<f64>, options: LbfgsOptions) -> Lbfgs {
    let mut lbfgs = Lbfgs::new(x0, options);
    let mut last = f64::INFINITY;
    for _ in 0..20_000 {
        let step = lbfgs.step(objective).unwrap();
        assert!(step.value <= last + 1e-11 * last.abs(), "{last} -> {}", step.value);
        last = step.value;
        if step.status.is_final() {
            return lbfgs;
        }
    }
    panic!("no end: {} {}", last, max_norm(lbfgs.gradient().unwrap()));
}

fn converged_by_gradient(lbfgs: &Lbfgs) -> bool {
    matches!(lbfgs.status(), Status::Converged(Reason::Gradient { .. }))
}

#[test]
fn rosenbrock() {
    for (dim, most) in [(2, 60), (50, 600)] {
        let mut objective = Rosenbrock(dim);
        let start = objective.start();
        let lbfgs = minimise(&mut objective, start, sharp());
        assert!(converged_by_gradient(&lbfgs), "{}", lbfgs.status());
        assert!(lbfgs.x().iter().all(|x| (x - 1.0).abs() < 1e-7), "{:?}", lbfgs.x());
        assert!(lbfgs.evaluations() <= most, "{dim}: {}", lbfgs.evaluations());
        assert!(lbfgs.gradient().unwrap().iter().all(|slope| slope.abs() <= 1e-9));
    }
}

#[test]
fn a_badly_scaled_quadratic() {
    let weights: Vec<f64> = (0..20).map(|i| 10_f64.powf(6.0 * f64::from(i) / 19.0)).collect();
    for (memory, curvature) in [(40, 0.9), (10, 0.9), (10, 0.1), (5, 0.9)] {
        let mut objective = Quadratic::new(weights.clone());
        let options = LbfgsOptions { memory, curvature, gradient_tolerance: 1e-6, ..sharp() };
        let lbfgs = minimise(&mut objective, vec![1.0; 20], options);
        assert!(converged_by_gradient(&lbfgs), "{memory}: {}", lbfgs.status());
        assert!(lbfgs.x().iter().all(|x| x.abs() <= 1e-6), "{:?}", lbfgs.x());
        assert_eq!(objective.calls, lbfgs.evaluations());
        assert!(lbfgs.state.pairs.len() <= memory);
        // A short memory needs many when eigenvalues spread over six decades: so is the method.
        assert!(
            lbfgs.evaluations() < if memory < 20 { 12_000 } else { 500 },
            "{memory}: {}",
            lbfgs.evaluations()
        );
    }
}

#[test]
fn no_memory_is_steepest_descent() {
    let options = LbfgsOptions { memory: 0, ..sharp() };
    let lbfgs = minimise(&mut Quadratic::new(vec![1.0, 4.0]), vec![1.0, 1.0], options);
    assert!(converged_by_gradient(&lbfgs) && lbfgs.state.pairs.is_empty());
}

#[test]
fn scales_of_values_and_parameters_do_not_matter() {
    for scale in [1e-6, 1e6, 1e12] {
        for size in [1e-6, 1.0, 1e6] {
            let weights = vec![scale / (size * size), 3.0 * scale / (size * size)];
            let mut objective = Quadratic::new(weights);
            let options = LbfgsOptions { gradient_tolerance: 0.0, ..Default::default() };
            let options = LbfgsOptions { objective_tolerance: 1e-14 * scale.min(1.0), ..options };
            let lbfgs = minimise(&mut objective, vec![size, -2.0 * size], options);
            let end = lbfgs.best().unwrap();
            assert!(end.1 <= 1e-6 * scale, "{scale:e} {size:e}: {} {end:?}", lbfgs.status());
        }
    }
}

#[test]
fn a_minimum_near_an_infeasible_region() {
    for refusal in [
        Refusal::Error,
        Refusal::Nan,
        Refusal::Infinity,
        Refusal::MinusInfinity,
        Refusal::NanGradient,
    ] {
        for weight in [1e-4, 1e-2, 1.0] {
            for start in [-1e3, -1.0, 0.33] {
                let mut objective = Barrier { weight, ..Barrier::new(refusal) };
                let options = LbfgsOptions { gradient_tolerance: 1e-7, ..sharp() };
                let lbfgs = minimise(&mut objective, vec![start, 0.0, -0.1], options);
                let expected = objective.minimiser();
                assert!(
                    lbfgs.best().unwrap().0.iter().all(|x| (x - expected).abs() < 1e-6),
                    "{refusal:?} {weight} {start}: {} {:?} {expected}",
                    lbfgs.status(),
                    lbfgs.x()
                );
                assert!(objective.refused > 0 || weight == 1.0);
                assert!(lbfgs.evaluations() < 400, "{}", lbfgs.evaluations());
            }
        }
    }
}

#[test]
fn an_infeasible_start_is_an_error() {
    let mut lbfgs = Lbfgs::new(vec![9.0; 3], LbfgsOptions::default());
    let before = lbfgs.clone();
    let error = lbfgs.step(&mut Barrier::new(Refusal::Error)).unwrap_err();
    assert!(matches!(error, Error::NotPositiveDefinite { .. }));
    let error = lbfgs.step(&mut Barrier::new(Refusal::NanGradient)).unwrap_err();
    assert_eq!(error.to_string(), "component 1 of the gradient is not finite (NaN)");
    assert_eq!(lbfgs, before);
}

#[test]
fn a_fatal_error_passes_through_and_leaves_the_state() {
    // Every single call of the run fails once, and the run ends like the undisturbed one.
    let undisturbed = minimise(&mut Rosenbrock(2), Rosenbrock(2).start(), sharp());
    for at in 1..=undisturbed.evaluations() {
        let mut objective = FailsAt { inner: Rosenbrock(2), at, calls: 0 };
        let mut lbfgs = Lbfgs::new(Rosenbrock(2).start(), sharp());
        let mut failures = 0;
        while !lbfgs.status().is_final() {
            let before = lbfgs.clone();
            if let Err(error) = lbfgs.step(&mut objective) {
                assert!(matches!(error, Error::Interrupted));
                assert_eq!(lbfgs, before);
                failures += 1;
            }
        }
        assert_eq!(failures, 1);
        assert_eq!(lbfgs, undisturbed);
    }
}

#[test]
fn a_stored_run_resumes_bit_for_bit() {
    let mut objective = Rosenbrock(7);
    let start = objective.start();
    let mut whole = Lbfgs::new(start.clone(), sharp());
    let mut stored = serde_json::to_string(&whole).unwrap();
    let bits = |lbfgs: &Lbfgs| -> Vec<u64> {
        let numbers = lbfgs.x().iter().chain(lbfgs.gradient().unwrap());
        numbers.chain([&lbfgs.value().unwrap()]).map(|x| x.to_bits()).collect()
    };
    while !whole.status().is_final() {
        let mut resumed: Lbfgs = serde_json::from_str(&stored).unwrap();
        assert_eq!(resumed, whole);
        let step = whole.step(&mut objective).unwrap();
        assert_eq!(resumed.step(&mut objective).unwrap(), step);
        assert_eq!(bits(&resumed), bits(&whole));
        assert_eq!(resumed, whole);
        stored = serde_json::to_string(&resumed).unwrap();
    }
    // And twice the same is the same.
    assert_eq!(minimise(&mut objective, start, sharp()), whole);
}

#[test]
fn nothing_to_optimise() {
    let mut lbfgs = Lbfgs::new(vec![], LbfgsOptions::default());
    let step = lbfgs.step(&mut Quadratic::new(vec![])).unwrap();
    assert_eq!(step.status, Status::Converged(Reason::NoParameters));
    assert_eq!((step.value, step.evaluations, step.step_length), (0.0, 1, 0.0));
    assert_eq!(lbfgs.best(), Some((&[][..], 0.0)));
}

#[test]
fn a_start_at_the_optimum_ends_at_once() {
    let mut objective = Quadratic::new(vec![1.0, 2.0]);
    let mut lbfgs = Lbfgs::new(vec![0.0, 0.0], LbfgsOptions::default());
    let step = lbfgs.step(&mut objective).unwrap();
    assert!(converged_by_gradient(&lbfgs));
    assert_eq!((step.evaluations, step.step_length, step.gradient_norm), (1, 0.0, 0.0));
    // Once more evaluates nothing and says the same.
    let again = lbfgs.step(&mut objective).unwrap();
    assert_eq!(again, Step { evaluations: 0, ..step });
    assert_eq!(objective.calls, 1);
}

#[test]
fn a_linear_function_is_called_unbounded() {
    for slope in [1e-3, 1.0, 1e6] {
        let mut objective = Scalar(|x: f64| Some((slope * x, slope)));
        let lbfgs = minimise(&mut objective, vec![0.0], LbfgsOptions::default());
        assert!(
            matches!(lbfgs.status(), Status::Stalled(Stall::Unbounded { .. })),
            "{slope}: {}",
            lbfgs.status()
        );
        assert!(lbfgs.evaluations() <= 80);
    }
    // Exponentially unbounded: the value overflows, and still there is an end.
    let mut objective = Scalar(|x: f64| Some((-x.exp(), -x.exp())));
    let lbfgs = minimise(&mut objective, vec![0.0], LbfgsOptions::default());
    assert!(lbfgs.value().unwrap() < -1e100);
}

#[test]
fn a_wall_that_the_optimum_lies_beyond_ends_the_run() {
    // the minimum is at (2, 3), and nothing can be evaluated from 1 on in the first direction
    struct Walled(usize);
    impl Objective for Walled {
        fn dim(&self) -> usize {
            2
        }
        fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
            self.0 += 1;
            if x[0] >= 1.0 {
                return Err(Error::NonFinite { what: "beyond the wall".into(), value: f64::NAN });
            }
            gradient[0] = 20.0 * (x[0] - 2.0);
            gradient[1] = 2.0 * (x[1] - 3.0);
            Ok(10.0 * (x[0] - 2.0).powi(2) + (x[1] - 3.0).powi(2))
        }
    }
    for options in [LbfgsOptions::default(), LbfgsOptions::fitting()] {
        let mut objective = Walled(0);
        let lbfgs = minimise(&mut objective, vec![0.5, 0.3], options);
        let Status::Stalled(Stall::Wall { iterations, cause }) = lbfgs.status() else {
            panic!("{}", lbfgs.status());
        };
        assert!(*iterations >= 10 && cause.contains("beyond the wall"), "{}", lbfgs.status());
        assert!(
            lbfgs.iterations() < 100 && objective.0 < 1000,
            "{} {}",
            lbfgs.iterations(),
            objective.0
        );
        assert!(lbfgs.x()[0] > 0.99, "{:?}", lbfgs.x());
    }
}

#[test]
fn a_wrong_gradient_stalls_and_keeps_the_best_point() {
    let mut objective = Scalar(|x: f64| Some((x * x, -2.0 * x)));
    let mut lbfgs = Lbfgs::new(vec![3.0], LbfgsOptions::default());
    let step = lbfgs.step(&mut objective).unwrap();
    assert!(matches!(step.status, Status::Stalled(Stall::LineSearch { .. })), "{}", step.status);
    assert_eq!(lbfgs.best(), Some((&[3.0][..], 9.0)));
    assert_eq!((lbfgs.x()[0], lbfgs.value()), (3.0, Some(9.0)));
}

#[test]
fn a_failing_memory_is_reset_once() {
    // After some steps the objective turns into another one, whose values lie higher along every
    // remembered direction but fall along the new gradient.
    let mut lbfgs = Lbfgs::new(vec![-1.2, 1.0], sharp());
    for _ in 0..10 {
        lbfgs.step(&mut Rosenbrock(2)).unwrap();
    }
    assert!(!lbfgs.state.pairs.is_empty());
    // Pairs that point uphill for the next gradient.
    let gradient = lbfgs.gradient().unwrap().to_vec();
    for pair in &mut lbfgs.state.pairs {
        pair.rho = -pair.rho;
    }
    assert_eq!(quasi_newton(&lbfgs.state.pairs, &gradient), None);
    let value = lbfgs.value().unwrap();
    assert!(lbfgs.step(&mut Rosenbrock(2)).unwrap().value < value);
    // Pairs that point downhill by far too much, through a wall.
    lbfgs.state.pairs.clear();
    let huge = 1e290;
    lbfgs.state.pairs.push_back(Pair { s: vec![huge, huge], y: vec![1.0, 1.0], rho: 0.5 / huge });
    let value = lbfgs.value().unwrap();
    let step = lbfgs.step(&mut Rosenbrock(2)).unwrap();
    assert!(step.value < value && step.status == Status::Running, "{}", step.status);
    assert!(step.evaluations > 25);
    assert!(lbfgs.state.pairs.len() <= 1);
}

#[test]
fn the_objective_criterion_waits_for_its_patience() {
    let options = LbfgsOptions {
        gradient_tolerance: 0.0,
        objective_tolerance: 1e-3,
        patience: 4,
        ..Default::default()
    };
    let mut lbfgs = Lbfgs::new(vec![1.0; 30], options);
    let mut objective = Quadratic::new((0..30).map(|i| 1.5_f64.powi(i)).collect());
    let mut values = vec![];
    while !lbfgs.status().is_final() {
        values.push(lbfgs.step(&mut objective).unwrap().value);
    }
    let Status::Converged(Reason::Objective { change, tolerance, iterations }) = lbfgs.status()
    else {
        panic!("{}", lbfgs.status());
    };
    assert!(*change <= 1e-3 && *tolerance == 1e-3 && *iterations == 4);
    let changes: Vec<f64> = values
        .windows(2)
        .map(|pair| (pair[0] - pair[1]).abs() / pair[0].abs().max(pair[1].abs()).max(1.0))
        .collect();
    let small = changes.iter().rev().take_while(|change| **change <= 1e-3).count();
    assert_eq!(small, 4);
}

#[test]
fn restart_forgets_all_but_the_point_and_the_counts() {
    let mut lbfgs = minimise(&mut Quadratic::new(vec![1.0, 2.0]), vec![3.0, 4.0], sharp());
    let (x, counts) = (lbfgs.x().to_vec(), (lbfgs.iterations(), lbfgs.evaluations()));
    lbfgs.restart();
    assert_eq!(lbfgs.x(), x);
    assert_eq!((lbfgs.iterations(), lbfgs.evaluations()), counts);
    assert!(lbfgs.value().is_none() && lbfgs.best().is_none());
    assert_eq!(lbfgs.status(), &Status::Running);
    // Another objective can follow.
    let mut other = Scalar2;
    while !lbfgs.step(&mut other).unwrap().status.is_final() {}
    assert!((lbfgs.x()[0] - 1.0).abs() < 1e-6 && (lbfgs.x()[1] + 1.0).abs() < 1e-6);
}

/// (x₀ − 1)² + (x₁ + 1)².
struct Scalar2;

impl Objective for Scalar2 {
    fn dim(&self) -> usize {
        2
    }
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        gradient.copy_from_slice(&[2.0 * (x[0] - 1.0), 2.0 * (x[1] + 1.0)]);
        Ok((x[0] - 1.0).powi(2) + (x[1] + 1.0).powi(2))
    }
}

#[test]
fn impossible_options_are_refused() {
    for options in [
        LbfgsOptions { gradient_tolerance: -1.0, ..Default::default() },
        LbfgsOptions { objective_tolerance: f64::NAN, ..Default::default() },
        LbfgsOptions { curvature: 1e-4, ..Default::default() },
        LbfgsOptions { curvature: 1.0, ..Default::default() },
        LbfgsOptions { patience: 0, ..Default::default() },
        LbfgsOptions { line_search_evaluations: 0, ..Default::default() },
        LbfgsOptions { plateau: Some(Plateau { window: 0, tolerance: 0.1 }), ..Default::default() },
        LbfgsOptions { plateau: Some(LbfgsOptions::plateau(f64::NAN)), ..Default::default() },
    ] {
        let error = Lbfgs::new(vec![1.0], options).step(&mut Quadratic::new(vec![1.0]));
        assert!(matches!(error, Err(Error::Invalid(_))));
    }
}

#[test]
fn huge_gradients_do_not_overflow() {
    let mut objective = Quadratic::new(vec![1e200, 1e190]);
    let lbfgs = minimise(&mut objective, vec![1e3, 1e3], LbfgsOptions::default());
    assert!(lbfgs.value().unwrap() < 1e190, "{} {:?}", lbfgs.status(), lbfgs.value());
}

#[test]
fn the_two_loop_recursion_is_the_inverse_hessian_of_bfgs() {
    // Dense BFGS, equation (6.17), from γI with (7.20).
    let hessian = [[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]];
    let moves = [[1.0, 0.2, 0.0], [0.3, -1.0, 0.4], [0.5, 0.5, 1.0]];
    let mut pairs = VecDeque::new();
    for s in moves {
        let y: Vec<f64> = hessian.iter().map(|row| dot(row, &s)).collect();
        pairs.push_back(Pair { s: s.to_vec(), rho: 1.0 / dot(&s, &y), y });
    }
    let last = pairs.back().unwrap();
    let gamma = 1.0 / (last.rho * dot(&last.y, &last.y));
    let mut h = [[gamma, 0.0, 0.0], [0.0, gamma, 0.0], [0.0, 0.0, gamma]];
    for Pair { s, y, rho } in &pairs {
        let mut next = [[0.0; 3]; 3];
        let left = |i: usize, k: usize| f64::from(u8::from(i == k)) - rho * s[i] * y[k];
        for (i, row) in next.iter_mut().enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                *entry = rho * s[i] * s[j];
                for (k, line) in h.iter().enumerate() {
                    for (l, value) in line.iter().enumerate() {
                        *entry += left(i, k) * value * left(j, l);
                    }
                }
            }
        }
        h = next;
    }
    let gradient = [0.3, -2.0, 1.1];
    let direction = quasi_newton(&pairs, &gradient).unwrap();
    for (row, d) in h.iter().zip(&direction) {
        assert!((dot(row, &gradient) + d).abs() < 1e-13);
    }
    assert_eq!(quasi_newton(&VecDeque::new(), &gradient), None);
}

#[test]
fn the_recoverable_error_is_recoverable() {
    assert!(no_value().is_recoverable());
}

#[test]
fn no_component_moves_further_than_allowed() {
    // 100 apart from the minimum in one component, 1 in the other
    struct Bowl;
    impl Objective for Bowl {
        fn dim(&self) -> usize {
            2
        }
        fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
            gradient[0] = 2.0 * (x[0] - 100.0);
            gradient[1] = 6.0 * (x[1] + 1.0);
            Ok((x[0] - 100.0).powi(2) + 3.0 * (x[1] + 1.0).powi(2))
        }
    }
    let options = LbfgsOptions { largest_move: Some(7.0), ..LbfgsOptions::default() };
    let mut lbfgs = Lbfgs::new(vec![0.0, 0.0], options);
    let mut at = lbfgs.x().to_vec();
    let mut longest: f64 = 0.0;
    while !lbfgs.step(&mut Bowl).unwrap().status.is_final() {
        for (before, after) in at.iter().zip(lbfgs.x()) {
            assert!((after - before).abs() <= 7.0 * (1.0 + 1e-12), "{before} to {after}");
            longest = longest.max((after - before).abs());
        }
        at = lbfgs.x().to_vec();
    }
    assert!(longest > 6.9, "the limit was never reached: {longest}");
    assert!((lbfgs.x()[0] - 100.0).abs() < 1e-4 && (lbfgs.x()[1] + 1.0).abs() < 1e-4);
    let options = LbfgsOptions { largest_move: Some(0.0), ..LbfgsOptions::default() };
    let error = Lbfgs::new(vec![0.0, 0.0], options).step(&mut Bowl).unwrap_err().to_string();
    assert!(error.contains("largest_move"), "{error}");
}

#[test]
fn the_plateau_looks_at_its_window_as_a_whole() {
    // a long valley: every iteration brings a little, none of them nothing
    let fitting = |tolerance| LbfgsOptions {
        gradient_tolerance: 0.0,
        plateau: Some(Plateau { window: 6, tolerance }),
        memory: 2,
        ..Default::default()
    };
    let (mut objective, tolerance) = (Rosenbrock(12), 0.3);
    let mut lbfgs = Lbfgs::new(objective.start(), fitting(tolerance));
    let mut values = vec![objective.evaluate(lbfgs.x(), &mut [0.0; 12]).unwrap()];
    while !lbfgs.status().is_final() {
        values.push(lbfgs.step(&mut objective).unwrap().value);
    }
    let falls: Vec<f64> = values.windows(7).map(|v| (v[0] - v[6]) / v[6].abs().max(1.0)).collect();
    let (last, before) = falls.split_last().unwrap();
    assert!(before.iter().all(|fall| *fall > tolerance), "{falls:?}");
    let expected = Reason::Slow { fall: *last, tolerance, iterations: 6 };
    assert_eq!(lbfgs.status(), &Status::Converged(expected));
    // and without it the run continues to the optimum, at zero
    assert!(*values.last().unwrap() > 1e-3);
    let whole = LbfgsOptions { plateau: None, ..fitting(tolerance) };
    let start = objective.start();
    let lbfgs = minimise(&mut objective, start, whole);
    assert!(lbfgs.value().unwrap() < 1e-9, "{} {:?}", lbfgs.status(), lbfgs.value());
}

/// A bowl on a high floor, as a sum of few terms.
struct HighFloor {
    floor: f64,
    terms: Option<f64>,
}

impl Objective for HighFloor {
    fn dim(&self) -> usize {
        2
    }
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
        gradient.copy_from_slice(&[x[0], 100.0 * x[1]]);
        Ok(self.floor + 0.5 * x[0] * x[0] + 50.0 * x[1] * x[1])
    }
    fn terms(&self) -> Option<f64> {
        self.terms
    }
}

/// What counts as small depends on the number of terms, not by a value that units and constants
/// move.
#[test]
fn a_high_value_makes_no_gradient_small() {
    let ends = |floor, terms| {
        let mut objective = HighFloor { floor, terms };
        let mut lbfgs = Lbfgs::new(vec![3.0, 0.4], LbfgsOptions::default());
        for _ in 0..100 {
            if lbfgs.status().is_final() {
                break;
            }
            lbfgs.step(&mut objective).unwrap();
        }
        assert!(matches!(lbfgs.status(), Status::Converged(_)), "{floor}: {}", lbfgs.status());
        max_norm(lbfgs.gradient().unwrap())
    };
    for floor in [-1e9, -30.0, 0.0, 1e9] {
        assert!(ends(floor, Some(10.0)) < 2e-3, "{floor}");
    }
    // without terms the value is all that is known
    assert!(ends(1e9, None) > 1.0);
}

/// Values that fall by little because every step runs into a wall are not an optimum.
#[test]
fn steps_that_fail_are_not_a_plateau() {
    /// Falls with slope 1 towards a wall that is always near.
    struct Wall(f64);
    impl Objective for Wall {
        fn dim(&self) -> usize {
            1
        }
        fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
            if x[0] > self.0 {
                return Err(Error::NonFinite { what: "the wall".into(), value: x[0] });
            }
            gradient[0] = -1e6;
            Ok(-1e6 * x[0])
        }
        fn terms(&self) -> Option<f64> {
            Some(1e5)
        }
    }
    let mut lbfgs = Lbfgs::new(vec![0.0], LbfgsOptions::ending_at(1e-3));
    let mut objective = Wall(1e-9);
    for _ in 0..60 {
        if lbfgs.status().is_final() {
            break;
        }
        lbfgs.step(&mut objective).unwrap();
    }
    assert!(!matches!(lbfgs.status(), Status::Converged(_)), "{}", lbfgs.status());
}
