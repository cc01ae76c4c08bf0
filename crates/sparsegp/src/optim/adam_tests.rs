use super::*;
use crate::optim::Schedule;
use crate::optim::test_functions::{Barrier, FailsAt, Quadratic, Refusal, Rosenbrock, Scalar};
use crate::rng;

fn rate(learning_rate: f64) -> AdamOptions {
    AdamOptions { learning_rate, ..Default::default() }
}

/// Steps until the end, at most `most` times.
fn minimise(
    objective: &mut dyn Objective,
    x0: Vec<f64>,
    options: AdamOptions,
    most: usize,
) -> Adam {
    let mut adam = Adam::new(x0, options);
    let mut lowest = f64::INFINITY;
    for _ in 0..most {
        let step = adam.step(objective).unwrap();
        lowest = lowest.min(step.value);
        assert_eq!(adam.best().unwrap().1, lowest);
        if step.status.is_final() {
            break;
        }
    }
    adam
}

#[test]
fn the_first_steps_are_those_of_the_paper() {
    let options = AdamOptions { multipliers: vec![1.0, 10.0], ..rate(0.1) };
    let mut adam = Adam::new(vec![1.0, -2.0], options);
    let mut objective = Quadratic::new(vec![1.0, 3.0]);
    let (mut x, mut m, mut v) = ([1.0, -2.0], [0.0; 2], [0.0; 2]);
    for t in 1..=5 {
        let step = adam.step(&mut objective).unwrap();
        let mut length: f64 = 0.0;
        for i in 0..2 {
            let g = [1.0, 3.0][i] * x[i];
            m[i] = 0.9 * m[i] + 0.1 * g;
            v[i] = 0.999 * v[i] + 0.001 * g * g;
            let (mh, vh): (f64, f64) =
                (m[i] / (1.0 - 0.9_f64.powi(t)), v[i] / (1.0 - 0.999_f64.powi(t)));
            let change = [0.1, 1.0][i] * mh / (vh.sqrt() + 1e-8);
            x[i] -= change;
            length = length.hypot(change);
            assert!((adam.x()[i] - x[i]).abs() < 1e-12, "{t}");
        }
        assert!((step.step_length - length).abs() < 1e-12);
        assert_eq!(step.evaluations, 1);
    }
}

#[test]
fn rosenbrock_in_two_and_fifty_dimensions() {
    for (dim, most) in [(2, 20_000), (50, 40_000)] {
        let options =
            AdamOptions { schedule: Schedule::Cosine { steps: most, last: 1e-3 }, ..rate(0.05) };
        let start = Rosenbrock(dim).start();
        let adam = minimise(&mut Rosenbrock(dim), start, options, most);
        let (x, value) = adam.best().unwrap();
        assert!(value < 1e-6, "{dim}: {value}");
        assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-2), "{dim}: {x:?}");
    }
}

#[test]
fn a_badly_scaled_quadratic() {
    let weights: Vec<f64> = (0..20).map(|i| 10_f64.powf(6.0 * f64::from(i) / 19.0)).collect();
    let options = AdamOptions { schedule: Schedule::Exponential { factor: 0.998 }, ..rate(0.1) };
    let adam = minimise(&mut Quadratic::new(weights), vec![1.0; 20], options, 10_000);
    assert!(adam.best().unwrap().1 < 1e-5, "{:?}", adam.best());
}

#[test]
fn a_zero_multiplier_freezes() {
    let options = AdamOptions { multipliers: vec![1.0, 0.0], ..rate(0.1) };
    let adam = minimise(&mut Quadratic::new(vec![1.0, 1.0]), vec![1.0, 1.0], options, 100);
    assert!(adam.x()[0].abs() < 0.5);
    assert_eq!(adam.x()[1], 1.0);
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
        let mut objective = Barrier { weight: 1.0, ..Barrier::new(refusal) };
        let schedule = Schedule::Exponential { factor: 0.998 };
        let options = AdamOptions { schedule, ..rate(0.3) };
        let adam = minimise(&mut objective, vec![-3.0, 0.0, -0.1], options, 10_000);
        let (x, expected) = (adam.best().unwrap().0, objective.minimiser());
        assert!(objective.refused > 0, "{refusal:?}");
        assert!(!adam.status().is_final(), "{}", adam.status());
        assert!(x.iter().all(|x| (x - expected).abs() < 5e-3), "{refusal:?}: {x:?} {expected}");
    }
}

#[test]
fn an_infeasible_start_is_an_error() {
    let mut adam = Adam::new(vec![9.0; 3], AdamOptions::default());
    let before = adam.clone();
    let error = adam.step(&mut Barrier::new(Refusal::Error)).unwrap_err();
    assert!(matches!(error, Error::NotPositiveDefinite { .. }));
    assert_eq!(adam, before);
}

#[test]
fn no_value_anywhere_near_is_a_stall_at_the_last_good_point() {
    let mut adam = Adam::new(vec![0.0], AdamOptions::default());
    let mut objective = Scalar(|x: f64| (x == 0.0).then_some((2.0, -1.0)));
    assert_eq!(adam.step(&mut objective).unwrap().status, Status::Running);
    let step = adam.step(&mut objective).unwrap();
    let Status::Stalled(Stall::Infeasible { halvings, cause }) = &step.status else {
        panic!("{}", step.status);
    };
    assert_eq!((*halvings, step.evaluations), (20, 21));
    assert!(cause.contains("Kuu"));
    assert_eq!((adam.x()[0], adam.value(), adam.evaluations()), (0.0, Some(2.0), 22));
    assert_eq!(adam.best(), Some((&[0.0][..], 2.0)));
    // It can be restarted.
    adam.restart();
    adam.step(&mut Quadratic::new(vec![1.0])).unwrap();
}

#[test]
fn halving_is_bounded_by_the_option() {
    let options = AdamOptions { halvings: 0, ..rate(0.1) };
    let mut adam = Adam::new(vec![0.0], options);
    let mut objective = Scalar(|x: f64| (x == 0.0).then_some((2.0, -1.0)));
    adam.step(&mut objective).unwrap();
    let step = adam.step(&mut objective).unwrap();
    assert!(step.status.is_final() && step.evaluations == 1);
}

#[test]
fn a_fatal_error_passes_through_and_leaves_the_state() {
    let make = || (Barrier::new(Refusal::Error), Adam::new(vec![-0.3, 0.0, -0.1], rate(0.1)));
    let (mut plain, mut undisturbed) = make();
    for _ in 0..30 {
        undisturbed.step(&mut plain).unwrap();
    }
    assert!(plain.refused > 0);
    for at in 1..=undisturbed.evaluations() {
        let (inner, mut adam) = make();
        let mut objective = FailsAt { inner, at, calls: 0 };
        let mut failures = 0;
        while adam.iterations() < 30 {
            let before = adam.clone();
            if let Err(error) = adam.step(&mut objective) {
                assert!(matches!(error, Error::Interrupted));
                assert_eq!(adam, before);
                failures += 1;
            }
        }
        assert_eq!(failures, 1);
        assert_eq!(adam, undisturbed);
    }
}

#[test]
fn a_stored_run_resumes_bit_for_bit() {
    let mut objective = Barrier::new(Refusal::Error);
    let options = AdamOptions {
        schedule: Schedule::Cosine { steps: 100, last: 0.1 },
        plateau: Some(Plateau { window: 7, tolerance: -1.0 }),
        multipliers: vec![1.0, 0.3, 2.0],
        ..rate(0.1)
    };
    let mut whole = Adam::new(vec![-0.3, 0.01, -0.1], options);
    let mut stored = serde_json::to_string(&whole).unwrap();
    for _ in 0..120 {
        let mut resumed: Adam = serde_json::from_str(&stored).unwrap();
        assert_eq!(resumed, whole);
        let step = whole.step(&mut objective).unwrap();
        assert_eq!(resumed.step(&mut objective).unwrap(), step);
        let bits = |adam: &Adam| adam.x().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&resumed), bits(&whole));
        stored = serde_json::to_string(&resumed).unwrap();
    }
    assert!(objective.refused > 0);
}

#[test]
fn nothing_to_optimise() {
    let mut adam = Adam::new(vec![], AdamOptions::default());
    let step = adam.step(&mut Quadratic::new(vec![])).unwrap();
    assert_eq!(step.status, Status::Converged(Reason::NoParameters));
    assert_eq!(adam.best(), Some((&[][..], 0.0)));
}

#[test]
fn a_start_at_the_optimum_ends_at_once() {
    let mut objective = Quadratic::new(vec![1.0, 2.0]);
    let mut adam = Adam::new(vec![0.0, 0.0], AdamOptions::default());
    let step = adam.step(&mut objective).unwrap();
    assert!(matches!(step.status, Status::Converged(Reason::Gradient { .. })));
    let again = adam.step(&mut objective).unwrap();
    assert_eq!(again, Step { evaluations: 0, ..step });
    assert_eq!((objective.calls, adam.x()), (1, &[0.0, 0.0][..]));
}

#[test]
fn the_plateau_criterion_ends_a_noisy_run_but_not_a_falling_one() {
    let mut noise = rng::stream(11, "adam");
    struct Noisy<'a>(&'a mut rand_chacha::ChaCha8Rng);
    impl Objective for Noisy<'_> {
        fn dim(&self) -> usize {
            1
        }
        fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
            let shift = rng::uniform(self.0) - 0.5;
            gradient[0] = 2.0 * (x[0] - shift);
            Ok((x[0] - shift).powi(2))
        }
    }
    let plateau = Some(Plateau { window: 100, tolerance: 1e-2 });
    let options = AdamOptions { plateau, ..rate(0.02) };
    let adam = minimise(&mut Noisy(&mut noise), vec![10.0], options.clone(), 100_000);
    assert!(matches!(adam.status(), Status::Converged(Reason::Plateau { window: 100, .. })));
    assert_eq!(adam.iterations() % 100, 0);
    assert!(adam.x()[0].abs() < 0.5, "{:?}", adam.x());
    // Unbounded below by a linear fall: relative progress dies out, so it ends as well.
    let mut linear = Scalar(|x: f64| Some((x, 1.0)));
    let adam = minimise(&mut linear, vec![0.0], options, 100_000);
    assert!(adam.status().is_final() && adam.value().unwrap() < -50.0, "{:?}", adam.value());
}

#[test]
fn a_window_compares_means() {
    let plateau = Plateau { window: 2, tolerance: 0.1 };
    let mut window = Window::default();
    let mut add = |value| window.add(value, plateau);
    assert_eq!((add(10.0), add(20.0)), (None, None));
    assert_eq!((add(12.0), add(12.0)), (None, None));
    assert_eq!(add(13.0), None);
    let Some(Reason::Plateau { fall, tolerance, window }) = add(10.0) else { panic!() };
    assert!((fall - 0.5 / 11.5).abs() < 1e-15);
    assert_eq!((tolerance, window), (0.1, 2));
}

#[test]
fn huge_gradients_do_not_overflow() {
    let mut objective = Quadratic::new(vec![1e200, 1e-200]);
    let adam = minimise(&mut objective, vec![1e3, 1e3], rate(1.0), 3000);
    assert!(adam.best().unwrap().1 < 1e203);
    assert!(adam.x().iter().all(|x| x.is_finite()));
}

/// Groups of rates and momenta, and more parameters than one thread takes, against one loop over all of them.
#[test]
fn many_parameters_in_groups_move_as_one_by_one() {
    struct Slopes(usize);
    impl Objective for Slopes {
        fn dim(&self) -> usize {
            self.0
        }
        fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
            for (i, (g, x)) in gradient.iter_mut().zip(x).enumerate() {
                *g = x - (i as f64 * 0.37).sin();
            }
            Ok(gradient.iter().map(|g| 0.5 * g * g).sum())
        }
    }
    // no multiple of what the machine moves at once
    let n = 40_005;
    let group = |i: usize| [0, 1, 1, 0, 2][i * 5 / n];
    let multipliers: Vec<f64> = (0..n).map(|i| [1.0, 0.3, 2.0][group(i)]).collect();
    let momenta: Vec<f64> = (0..n).map(|i| [0.9, 0.5, 0.8][group(i)]).collect();
    for (multipliers, momenta) in [(vec![], vec![]), (multipliers, momenta)] {
        let options = AdamOptions {
            multipliers: multipliers.clone(),
            momenta: momenta.clone(),
            ..rate(0.02)
        };
        let mut adam = Adam::new(vec![0.2; n], options.clone());
        let mut expected = vec![(0.2, 0.0, 0.0); n];
        let threads = |count| rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
        let mut on_three = adam.clone();
        for step in 1..=3 {
            let before = adam.x().to_vec();
            let made = threads(1).install(|| adam.step(&mut Slopes(n))).unwrap();
            let length = distance(adam.x(), &before);
            assert!((made.step_length / length - 1.0).abs() < 1e-12, "{}", made.step_length);
            let same = threads(3).install(|| on_three.step(&mut Slopes(n))).unwrap();
            assert_eq!((same.step_length, on_three.x()), (made.step_length, adam.x()));
            for (i, (x, first, second)) in expected.iter_mut().enumerate() {
                let beta1 = momenta.get(i).copied().unwrap_or(options.beta1);
                let slope = *x - (i as f64 * 0.37).sin();
                *first = beta1 * *first + (1.0 - beta1) * slope;
                *second = options.beta2 * *second + (1.0 - options.beta2) * slope * slope;
                let size: f64 = *second / (1.0 - options.beta2.powi(step));
                let direction = *first / (1.0 - beta1.powi(step)) / (size.sqrt() + options.epsilon);
                *x -= 0.02 * multipliers.get(i).copied().unwrap_or(1.0) * direction;
            }
        }
        for (i, (own, (x, ..))) in adam.x().iter().zip(&expected).enumerate() {
            assert!((own - x).abs() < 1e-13, "{i}: {own} {x}");
        }
    }
}

/// Lengths whose squares are too small or too large for numbers.
#[test]
fn lengths_of_moves_survive_extreme_scales() {
    for scale in [1e-200, 1e-160, 1e160, 1e200] {
        let options = AdamOptions { gradient_tolerance: 0.0, ..rate(scale) };
        let mut adam = Adam::new(vec![scale; 19], options);
        let step = adam.step(&mut Quadratic::new(vec![1.0 / scale; 19])).unwrap();
        assert!((step.step_length / (scale * 19_f64.sqrt()) - 1.0).abs() < 1e-6, "{step:?}");
    }
}
