//! Conjugate gradients and draws against dense matrices.

use super::coupled::Limits;
use super::draws::{DRAWS, Draws, PROBES, say_little};
use super::latent_tests::{dense_precision, factors, inverse, latent, moved, raised};
use super::root::{LANES, Lanes};
use super::tests::{KERNELS, Problem};
use super::*;
use crate::kernels::Kernel;
use crate::linalg::{Jitter, Mat, product, symmetric_eigen};
use std::sync::Arc;

const ROWS: usize = 50;
const JITTER: Jitter = Jitter::Relative(2e-3);

/// A problem whose rows have few neighbours, with its dense matrices.
struct Dense {
    own: Problem,
    plan: Plan,
    q: Mat<f64>,
    log_q: f64,
    /// Q + Λ.
    a: Mat<f64>,
    s: Mat<f64>,
    log_a: f64,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Dense {
    fn new((inputs, name): (usize, &str), neighbours: usize) -> Self {
        let own = Problem::new(name, ROWS, inputs);
        let plan = own.plan(neighbours);
        let q = dense_precision(&plan, &raised(&*own.kernel, &own.x, JITTER));
        let (first, second) = factors(ROWS);
        let second: Vec<f64> = second.iter().map(|own| own.abs()).collect();
        let at = |i: usize, j: usize| q[(i, j)] + if i == j { second[i] } else { 0.0 };
        let a = Mat::from_fn(ROWS, ROWS, at);
        let ((s, log_a), (_, log_q)) = (inverse(&a), inverse(&q));
        Self { own, plan, q, log_q, a, s, log_a, first, second }
    }

    /// Takes so much of the factors.
    fn weaken(&mut self, part: f64) {
        self.first.iter_mut().chain(&mut self.second).for_each(|own| *own *= part);
        let (q, second) = (&self.q, &self.second);
        let at = |i: usize, j: usize| q[(i, j)] + if i == j { second[i] } else { 0.0 };
        self.a = Mat::from_fn(ROWS, ROWS, at);
        (self.s, self.log_a) = inverse(&self.a);
    }

    fn prior(&self, kernel: &dyn Kernel) -> Latent {
        let plan = Arc::new(self.plan.clone());
        let coupled = Arc::new(Coupled::new(plan, 1, Solver::Iterative).unwrap());
        latent(kernel, &coupled, &self.own.x, JITTER)
    }

    /// Returns what the iterative solver makes of the problem's factors.
    fn sited(&self) -> (Latent, Sited) {
        let prior = self.prior(&*self.own.kernel);
        let sited = prior.sited(&self.first, &self.second).unwrap();
        (prior, sited)
    }
}

/// With all rows for neighbours the incomplete factor is complete, and nothing is left to chance but the covariances.
#[test]
fn with_all_rows_for_neighbours_the_factor_is_exact() {
    for kernel in KERNELS {
        let dense = Dense::new(*kernel, ROWS);
        let (_, sited) = dense.sited();
        let right = dense.log_a - dense.log_q;
        assert!((sited.log_det - right).abs() < 1e-6, "{}: {}, {right}", kernel.1, sited.log_det);
        let mean = product(dense.s.as_ref(), Mat::from_fn(ROWS, 1, |i, _| dense.first[i]).as_ref());
        let apart = (0..ROWS).map(|i| (sited.mean[i] - mean[(i, 0)]).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-8, "{}: {apart}", kernel.1);
    }
}

/// U of a law's preconditioner, rows and columns in the order of the plan.
fn incomplete(draws: &Draws) -> Mat<f64> {
    let near = draws.root().incomplete(draws.second());
    let mut u = Mat::zeros(ROWS, ROWS);
    for start in (0..ROWS).step_by(LANES) {
        let unit = |i: usize| std::array::from_fn(|l| f64::from(u8::from(start + l == i)));
        let unit: Vec<Lanes> = (0..ROWS).map(unit).collect();
        for (i, own) in near.times(&unit).iter().enumerate() {
            (0..LANES.min(ROWS - start)).for_each(|l| u[(i, start + l)] = own[l]);
        }
    }
    u
}

#[test]
fn means_are_exact_and_determinants_within_their_error() {
    let mut all = Vec::new();
    for (kernel, neighbours) in KERNELS.iter().zip([4, 5, 6, 7, 5, 6, 8]) {
        let dense = Dense::new(*kernel, neighbours);
        let (_, sited) = dense.sited();
        let mean = product(dense.s.as_ref(), Mat::from_fn(ROWS, 1, |i, _| dense.first[i]).as_ref());
        let apart = (0..ROWS).map(|i| (sited.mean[i] - mean[(i, 0)]).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-7, "{}: {apart}", kernel.1);
        // log U⁻¹AU⁻ᵀ, whose trace is estimated with the variance 2‖·‖² of a draw
        let order = dense.plan.order();
        let draws = dense.prior(&*dense.own.kernel).draws(&dense.first, &dense.second);
        let u = incomplete(&draws);
        let near = product(u.as_ref(), u.transpose());
        let a = Mat::from_fn(ROWS, ROWS, |i, j| dense.a[(order[i] as usize, order[j] as usize)]);
        let (inner, log_near) = inverse(&near);
        let root = symmetric_root(&inner);
        let m = product(root.as_ref(), product(a.as_ref(), root.as_ref()).as_ref());
        let logs: Vec<f64> =
            symmetric_eigen(m.as_ref()).unwrap().0.iter().map(|own| own.ln()).collect();
        let right = dense.log_a - dense.log_q;
        assert!((log_near + logs.iter().sum::<f64>() - dense.log_a).abs() < 1e-6, "{}", kernel.1);
        let deviation =
            (2.0 * logs.iter().map(|own| own * own).sum::<f64>() / PROBES as f64).sqrt();
        // the standard error is that of fifteen draws
        let ratio = (sited.noise + 1e-9) / (deviation + 1e-9);
        assert!((0.4..2.0).contains(&ratio), "{}: {} {deviation}", kernel.1, sited.noise);
        let z = (sited.log_det - right) / (deviation + 1e-9);
        assert!(z.abs() < 4.0, "{}: {z}, {deviation}", kernel.1);
        all.push(z);
    }
    let square = all.iter().map(|z| z * z).sum::<f64>() / all.len() as f64;
    assert!((0.1..4.0).contains(&square), "{all:?}");
}

/// A^½.
fn symmetric_root(a: &Mat<f64>) -> Mat<f64> {
    let (values, vectors) = symmetric_eigen(a.as_ref()).unwrap();
    let scaled = Mat::from_fn(ROWS, ROWS, |i, j| vectors[(i, j)] * values[j].sqrt());
    product(scaled.as_ref(), vectors.transpose())
}

/// What rows outside a block add to a variance is χ² with a degree of freedom for each draw.
#[test]
fn variances_are_within_their_error() {
    for (kernel, neighbours) in KERNELS.iter().zip([4, 5, 6, 7, 5, 6, 8]) {
        let dense = Dense::new(*kernel, neighbours);
        let (prior, sited) = dense.sited();
        let (variances, _) = prior.variances(&sited, &|| Ok(())).unwrap();
        let (mut sum, mut count) = (0.0, 0.0);
        for block in (0..dense.plan.blocks()).map(|own| dense.plan.block(own)) {
            let rows: Vec<usize> = block.rows.iter().map(|row| *row as usize).collect();
            let n = rows.len();
            let (inner, _) = inverse(&Mat::from_fn(n, n, |i, j| dense.a[(rows[i], rows[j])]));
            for (i, row) in rows.iter().enumerate().filter(|(i, _)| block.responds[*i]) {
                let (right, inner) = (dense.s[(*row, *row)], inner[(i, i)]);
                let (own, outer) = (variances[*row], right - inner);
                assert!(own >= inner * (1.0 - 1e-9), "{}", kernel.1);
                let z = (own - right) / (outer * (2.0 / DRAWS as f64).sqrt() + 1e-9 * right);
                assert!(z.abs() < 5.0, "{}, row {row}: {own}, {right}, {z}", kernel.1);
                sum += z;
                count += 1.0;
            }
        }
        assert!((sum / count).abs() < 1.5, "{}: {}", kernel.1, sum / count);
    }
}

/// Slopes differ from those of a factor by what averages of draws differ, at most.
#[test]
fn slopes_are_within_their_error() {
    let (mut all, mut kinds) = (Vec::new(), [0; 2]);
    let cases = KERNELS.iter().zip([4, 5, 6, 7, 5, 6, 8]);
    for ((kernel, neighbours), weak) in cases.clone().zip([200.0; 7]).chain(cases.zip([0.2; 7])) {
        let mut dense = Dense::new(*kernel, neighbours);
        dense.weaken(weak);
        let (prior, sited) = dense.sited();
        let (variances, pairs) = prior.variances(&sited, &|| Ok(())).unwrap();
        let slopes = prior.slopes(&sited, &pairs, &|| Ok(())).unwrap();
        let order = |own: &[f64]| -> Vec<f64> {
            dense.plan.order().iter().map(|row| own[*row as usize]).collect()
        };
        let little = say_little(&order(&dense.second), &order(&variances));
        kinds[usize::from(little)] += 1;
        let averaged = if little { &inverse(&dense.q).0 - &dense.s } else { dense.s.clone() };
        let plan = Arc::new(dense.plan.clone());
        let coupled = Arc::new(Coupled::new(plan, 1, Solver::Cholesky).unwrap());
        let prior = latent(&*dense.own.kernel, &coupled, &dense.own.x, JITTER);
        let sited = prior.sited(&dense.first, &dense.second).unwrap();
        let (_, pairs) = prior.variances(&sited, &|| Ok(())).unwrap();
        let right = prior.slopes(&sited, &pairs, &|| Ok(())).unwrap();
        for (k, (slope, right)) in slopes.iter().zip(&right).enumerate() {
            let moved = moved(&*dense.own.kernel, k, 1e-5);
            let q = dense_precision(&dense.plan, &raised(&*moved, &dense.own.x, JITTER));
            let square = |s: &Mat<f64>| -> f64 {
                let ds = product(((&q - &dense.q) * 1e5).as_ref(), s.as_ref());
                (0..ROWS).map(|i| (0..ROWS).map(|j| ds[(i, j)] * ds[(j, i)]).sum::<f64>()).sum()
            };
            let deviation = (0.5 * square(&averaged) / DRAWS as f64).sqrt();
            let z = (slope - right) / (deviation + 1e-6 * (1.0 + right.abs()));
            assert!(z.abs() < 4.0, "{}, {k}: {slope}, {right}, {z}", kernel.1);
            all.push(z);
        }
    }
    let square = all.iter().map(|z| z * z).sum::<f64>() / all.len() as f64;
    assert!((0.2..3.0).contains(&square), "{square}: {all:?}");
    assert!(kinds[0] > 0 && kinds[1] > 0, "{kinds:?}");
}

/// Without factors nothing is learnt, and nothing is left to chance but the variances.
#[test]
fn without_factors_the_law_is_the_prior() {
    for kernel in KERNELS {
        let dense = Dense::new(*kernel, 6);
        let prior = dense.prior(&*dense.own.kernel);
        let sited = prior.sited(&[0.0; ROWS], &[0.0; ROWS]).unwrap();
        assert!(sited.log_det.abs() < 1e-9 && sited.noise < 1e-9, "{}", kernel.1);
        assert!(sited.mean.iter().all(|own| *own == 0.0));
        let (_, pairs) = prior.variances(&sited, &|| Ok(())).unwrap();
        let slopes = prior.slopes(&sited, &pairs, &|| Ok(())).unwrap();
        assert!(slopes.iter().all(|own| own.abs() < 1e-3), "{}: {slopes:?}", kernel.1);
    }
}

#[test]
fn what_is_no_precision_of_a_factor_is_refused() {
    let dense = Dense::new(KERNELS[2], 6);
    let prior = dense.prior(&*dense.own.kernel);
    for wrong in [-0.01, f64::NAN, f64::INFINITY] {
        let mut second = dense.second.clone();
        second[7] = wrong;
        let error = prior.sited(&dense.first, &second).unwrap_err();
        assert!(error.is_recoverable(), "{error}");
        let error = prior.mean(&dense.first, &second).unwrap_err();
        assert!(error.is_recoverable(), "{error}");
    }
    // nor are numbers that overflow taken for a solution
    let huge: Vec<f64> = dense.first.iter().map(|own| own * 1e300).collect();
    assert!(prior.mean(&huge, &dense.second).is_err());
}

/// Large factors are as good as exact: they leave nothing to the draws.
#[test]
fn strong_factors_decide() {
    let dense = Dense::new(KERNELS[2], 6);
    let second = [1e8; ROWS];
    let prior = dense.prior(&*dense.own.kernel);
    let sited = prior.sited(&dense.first.iter().map(|own| own * 1e8).collect::<Vec<_>>(), &second);
    let sited = sited.unwrap();
    let (variances, _) = prior.variances(&sited, &|| Ok(())).unwrap();
    for (i, own) in variances.iter().enumerate() {
        assert!((sited.mean[i] - dense.first[i]).abs() < 1e-4, "{i}");
        assert!((own * 1e8 - 1.0).abs() < 1e-4, "{i}: {own}");
    }
}

/// Rows that need no factor are not refused for its size; and what draws need is.
#[test]
fn what_a_solver_needs_decides() {
    let own = Problem::new(KERNELS[5].1, 120, 3);
    let within = |solver, numbers, work| {
        Coupled::within(Arc::new(own.plan(10)), solver, Limits { numbers, work })
    };
    let any = usize::MAX;
    assert!(!within(Solver::Auto, any, 1e9).unwrap().is_iterative());
    assert!(within(Solver::Auto, any, 1e4).unwrap().is_iterative());
    // so few multiplications that no order is looked for
    assert!(within(Solver::Auto, any, 1.0).unwrap().is_iterative());
    assert!(!within(Solver::Cholesky, any, 1.0).unwrap().is_iterative());
    assert!(within(Solver::Iterative, any, 1e9).unwrap().is_iterative());
    let error = within(Solver::Iterative, 100, 1e9).unwrap_err().to_string();
    assert!(error.contains("draws of") && error.contains("svgp"), "{error}");
    let error = within(Solver::Cholesky, 100, 1e9).unwrap_err().to_string();
    assert!(error.contains("a factor of"), "{error}");
}
