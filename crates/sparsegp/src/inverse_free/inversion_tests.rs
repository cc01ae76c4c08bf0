use super::super::schedule::Schedule;
use super::*;
use crate::linalg::{Cholesky, Jitter, product};
use crate::rng;

/// Squared-exponential covariances of points on a line, with a noise on the diagonal: ill-conditioned.
fn covariances(m: usize, lengthscale: f64, noise: f64, shift: f64) -> Mat<f64> {
    let at = |i: usize| 0.1 * i as f64 + shift * (1.3 * i as f64).sin();
    Mat::from_fn(m, m, |i, j| {
        let d = (at(i) - at(j)) / lengthscale;
        1.7 * (-0.5 * d * d).exp() + if i == j { noise * (1.0 + 0.1 * i as f64) } else { 0.0 }
    })
}

fn random_lower(m: usize, seed: u64) -> Mat<f64> {
    let mut generator = rng::stream(seed, "a root");
    Mat::from_fn(m, m, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 0.4 + rng::uniform(&mut generator),
        std::cmp::Ordering::Greater => rng::uniform(&mut generator) - 0.5,
    })
}

fn log_det(k: &Mat<f64>) -> f64 {
    Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K").unwrap().log_det()
}

/// The root of the inverse by a factorisation.
fn exact_root(k: &Mat<f64>) -> Mat<f64> {
    Cholesky::inverse_root(k.as_ref(), Jitter::Absolute(0.0), "K").unwrap()
}

#[test]
fn fifty_unit_steps_from_a_thousandth_invert_an_ill_conditioned_matrix() {
    let k = covariances(40, 0.5, 1e-4, 0.0);
    let eigenvalues = k.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
    assert!(eigenvalues[39] / eigenvalues[0] > 1e5, "{eigenvalues:?}");
    let mut l = Mat::<f64>::identity(40, 40) * faer::Scale(1e-3);
    let options = SolverOptions {
        schedule: Schedule::Constant(1.0),
        tolerance: 1e-300,
        most: 50,
        stall: false,
        ..SolverOptions::default()
    };
    let mut inversion = Inversion::default();
    let solved = inversion.solve(k.as_ref(), &mut l, &options, None).unwrap();
    assert_eq!((solved.steps, solved.stopped, solved.restarted), (50, Stopped::Most, false));
    // what rounding leaves: some units of it times the condition number
    let condition = eigenvalues[39] / eigenvalues[0];
    assert!(solved.residual < 3.0 * f64::EPSILON * condition, "{}", solved.residual);
    let exact = exact_root(&k);
    let size = crate::linalg::dot(exact.as_ref(), exact.as_ref()).sqrt();
    let apart = &l - &exact;
    assert!(crate::linalg::dot(apart.as_ref(), apart.as_ref()).sqrt() < 1e-8 * size);
}

#[test]
fn convergence_is_quadratic_with_the_constants_of_the_bound() {
    for seed in 0..40 {
        let m = 3 + seed as usize % 9;
        let root = random_lower(m, seed);
        let k = product(root.as_ref(), root.transpose());
        // near the root of the inverse, further and further away
        let far = 0.02 * (1 + seed) as f64;
        let mut l = exact_root(&k);
        let noise = random_lower(m, seed + 100);
        l = &l + &l * (&noise * faer::Scale(far / m as f64));
        let mut inversion = Inversion::default();
        for _ in 0..5 {
            inversion.look(k.as_ref(), l.as_ref());
            let before = inversion.frobenius();
            l = &l - inversion.natural_gradient(l.as_ref());
            inversion.look(k.as_ref(), l.as_ref());
            let after = inversion.frobenius();
            let bound = 1.5 * before * before + before.powi(3) / 2_f64.sqrt();
            assert!(after <= bound * (1.0 + 1e-9) + 1e-12, "{seed}: {after} {bound}");
            if before < 0.5 {
                assert!(after < before || before < 1e-12, "{seed}: {before} {after}");
            }
        }
    }
}

#[test]
fn the_objective_has_the_gradient_and_the_natural_gradient_descends() {
    let (m, k) = (6, covariances(6, 0.3, 0.05, 0.0));
    let l = random_lower(m, 3);
    let constant = log_det(&k);
    let objective = |l: &Mat<f64>| {
        let mut inversion = Inversion::default();
        inversion.look(k.as_ref(), l.as_ref());
        inversion.divergence(l.as_ref(), constant)
    };
    // KL[N(0, LLᵀ) ‖ N(0, K⁻¹)] from its definition
    let t = product(l.as_ref(), l.transpose());
    let trace: f64 = (0..m).map(|i| product(k.as_ref(), t.as_ref())[(i, i)]).sum();
    let defined = 0.5 * (trace - m as f64 - constant - log_det(&t));
    assert!((objective(&l) - defined).abs() < 1e-11 * defined.abs().max(1.0));
    let mut inversion = Inversion::default();
    inversion.look(k.as_ref(), l.as_ref());
    let kl = inversion.product().to_owned();
    let natural = inversion.natural_gradient(l.as_ref());
    // the Fisher metric of dL = L·W: Σ_{i>j} W² + 2Σ W_jj², at which the gradient is ⟨natural, ·⟩
    let w = {
        let mut w = natural.clone();
        crate::linalg::solve_lower(l.as_ref(), w.as_mut(), crate::linalg::Par::Seq);
        w
    };
    for i in 0..m {
        for j in 0..=i {
            let moved = |h: f64| {
                // along L·e_i e_jᵀ
                let mut l2 = l.clone();
                (0..m).for_each(|r| l2[(r, j)] += h * l[(r, i)]);
                objective(&l2)
            };
            let slope = (8.0 * (moved(1e-4) - moved(-1e-4)) - (moved(2e-4) - moved(-2e-4))) / 12e-4;
            let metric = if i == j { 2.0 } else { 1.0 };
            assert!((slope - metric * w[(i, j)]).abs() < 1e-7 * (1.0 + slope.abs()), "{i} {j}");
            // and in the entries of L themselves: tril(K̃L) − diag(1/L)
            let entry = |h: f64| {
                let mut l2 = l.clone();
                l2[(i, j)] += h;
                objective(&l2)
            };
            let slope = (8.0 * (entry(1e-4) - entry(-1e-4)) - (entry(2e-4) - entry(-2e-4))) / 12e-4;
            let own = kl[(i, j)] - if i == j { 1.0 / l[(j, j)] } else { 0.0 };
            assert!((slope - own).abs() < 1e-7 * (1.0 + slope.abs()), "{i} {j}");
        }
    }
}

#[test]
fn adaptive_steps_never_rise_and_need_no_more_than_the_schedule() {
    let m = 30;
    let k = covariances(m, 0.4, 1e-3, 0.0);
    let start = exact_root(&k);
    for shift in [1e-4, 3e-3, 1e-2, 0.05, 0.2] {
        // the points have moved: a warm start
        let moved = covariances(m, 0.4, 1e-3, shift);
        let constant = log_det(&moved);
        let mut inversion = Inversion::default();
        let mut l = start.clone();
        let one = SolverOptions {
            tolerance: 1e-6,
            most: 1,
            restart_above: f64::INFINITY,
            ..SolverOptions::default()
        };
        let mut before = f64::INFINITY;
        let mut steps = 0;
        for _ in 0..100 {
            let solved = inversion.solve(moved.as_ref(), &mut l, &one, None).unwrap();
            let now = inversion.divergence(l.as_ref(), constant);
            assert!(now <= before + 1e-9 * before.abs().min(1e9), "{shift}: {now} {before}");
            assert!((0..m).all(|j| l[(j, j)] > 0.0));
            before = now;
            steps += solved.steps;
            if solved.stopped == Stopped::Tolerance {
                break;
            }
        }
        let count = |schedule| {
            let options = SolverOptions {
                schedule,
                tolerance: 1e-6,
                restart_above: f64::INFINITY,
                ..SolverOptions::default()
            };
            let mut l = start.clone();
            let solved =
                Inversion::default().solve(moved.as_ref(), &mut l, &options, None).unwrap();
            assert_eq!(solved.stopped, Stopped::Tolerance, "{schedule:?} {shift}");
            solved.steps
        };
        let adaptive = count(Schedule::Adaptive);
        assert!(adaptive <= count(Schedule::LOG_LINEAR), "{shift}: {adaptive}");
        assert!(steps <= 100 && count(Schedule::LineSearch) <= 100);
        // with the restart it never takes much longer than from scratch
        let mut fresh = Mat::new();
        scaled_identity(moved.as_ref(), &mut fresh);
        let options = SolverOptions { tolerance: 1e-6, ..SolverOptions::default() };
        let of_fresh = inversion.solve(moved.as_ref(), &mut fresh, &options, None).unwrap();
        let mut l = start.clone();
        let of_warm = inversion.solve(moved.as_ref(), &mut l, &options, None).unwrap();
        assert!(of_warm.steps <= of_fresh.steps + 3, "{shift}: {of_warm:?} {of_fresh:?}");
    }
}

#[test]
fn the_line_search_finds_the_lowest_point_of_its_line() {
    let k = covariances(8, 0.4, 0.1, 0.0);
    let l = random_lower(8, 11);
    let mut inversion = Inversion::default();
    inversion.look(k.as_ref(), l.as_ref());
    let direction = inversion.natural_gradient(l.as_ref());
    let best = inversion.double.best_rate();
    let at = |rate: f64| {
        let moved = &l - &direction * faer::Scale(rate);
        let mut other = Inversion::default();
        other.look(k.as_ref(), moved.as_ref());
        other.divergence(moved.as_ref(), 0.0)
    };
    for factor in [0.2, 0.7, 0.99, 1.01, 1.2] {
        let other = at(best * factor);
        assert!(other.is_nan() || at(best) < other, "{best} {factor}");
    }
}

#[test]
fn steps_end_for_the_reasons_given() {
    let k = covariances(20, 0.4, 1e-6, 0.0);
    let solve = |l: &mut Mat<f64>, options: SolverOptions| {
        Inversion::default().solve(k.as_ref(), l, &options, None).unwrap()
    };
    // rounding: cond(K) is 10⁷ and more, no residual of 10⁻¹⁵ is to be had
    let strict = SolverOptions { tolerance: 1e-15, most: 1000, ..SolverOptions::default() };
    let mut l = Mat::new();
    let solved = solve(&mut l, strict);
    assert!(solved.stopped == Stopped::Stall && solved.steps < 60, "{solved:?}");
    assert!(solved.restarted, "there was no L to start from");
    // where nothing is to be done no step is made
    let solved = solve(&mut l, SolverOptions::default());
    assert_eq!((solved.steps, solved.stopped), (0, Stopped::Tolerance));
    // a criterion of the caller's, which sees the L that is left
    let mut l = Mat::new();
    let mut seen = 0;
    let mut enough = |l: MatRef<'_, f64>, image: MatRef<'_, f64>| {
        seen += 1;
        let apart = product(k.as_ref(), l) - image;
        assert!(crate::linalg::dot(apart.as_ref(), apart.as_ref()).sqrt() < 1e-12);
        Ok(seen == 4)
    };
    let mut inversion = Inversion::default();
    let solved = inversion.solve(k.as_ref(), &mut l, &strict, Some(&mut enough)).unwrap();
    assert_eq!((solved.steps, solved.stopped), (3, Stopped::Enough));
    let residual = solved.residual;
    assert_eq!(residual, Inversion::default().look(k.as_ref(), l.as_ref()));
    // an L that has nothing to do with K is given up
    let mut wild = random_lower(20, 5) * faer::Scale(100.0);
    assert!(solve(&mut wild, SolverOptions::default()).restarted);
    let mut negative = Mat::<f64>::identity(20, 20);
    negative[(3, 3)] = -0.2;
    assert!(solve(&mut negative, SolverOptions::default()).restarted);
}

#[test]
fn what_has_no_inverse_is_an_error_that_optimisers_recover_from() {
    let mut k = covariances(5, 0.4, 0.1, 0.0);
    k[(1, 2)] = f64::NAN;
    k[(2, 1)] = f64::NAN;
    let error = Inversion::default()
        .solve(k.as_ref(), &mut Mat::new(), &SolverOptions::default(), None)
        .unwrap_err();
    assert!(error.is_recoverable() && error.to_string().contains("Kuu + Λ"), "{error}");
}

#[test]
fn single_precision_stalls_where_it_is_said_to() {
    let single =
        SolverOptions { tolerance: 1e-12, products: Precision::Single, ..SolverOptions::default() };
    for noise in [1.0, 0.1, 1e-2, 1e-3] {
        let k = covariances(40, 0.5, noise, 0.0);
        let eigenvalues = k.self_adjoint_eigenvalues(faer::Side::Lower).unwrap();
        let condition = eigenvalues[39] / eigenvalues[0];
        let mut l = Mat::new();
        let solved = Inversion::default().solve(k.as_ref(), &mut l, &single, None).unwrap();
        assert!(solved.stopped == Stopped::Stall && solved.steps < 40, "{noise}: {solved:?}");
        // the reported residual is of double precision, and as small as rounding allows
        let exact = Inversion::default().look(k.as_ref(), l.as_ref());
        assert_eq!(solved.residual, exact);
        let floor = crate::linalg::SINGLE_ROUNDING * condition;
        assert!(exact < floor, "{noise}: {exact} {floor}");
        // from there double precision takes a step or two
        let double = SolverOptions { tolerance: 1e-9, ..SolverOptions::default() };
        let solved = Inversion::default().solve(k.as_ref(), &mut l, &double, None).unwrap();
        assert!(solved.steps <= 2 && solved.residual < 1e-9, "{noise}: {solved:?}");
    }
}
