//! All statistics.

use crate::dense::{apart, dense, problem};
use crate::rules::{ByR, ByS, all};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::linalg::Mat;

/// Rounding of 1100 terms: √N ε ≈ 10⁻¹⁴ of the sum of their sizes, which exceeds the sum less than a
/// hundredfold here, times the condition of L (at most √(M/JITTER) ≈ 80).
const ROUNDING: f64 = 1e-10;

#[test]
fn sums_match_dense_formulas() {
    let scale = 2.75;
    for p in 1..=3 {
        let problem = problem(1100, 7, p);
        let parts = problem.parts();
        for rule in all(p) {
            for q in [Some(problem.q()), None] {
                let expected = dense(&problem, &problem.theta, &rule, q.is_some());
                let sums = parts
                    .statistics(&Cpu::default(), q, &rule, &problem.data, scale)
                    .expect("rows in memory");
                let what = format!("{rule:?}, q {}", q.is_some());
                for (own, sum) in sums.sums.iter().zip(expected.sums) {
                    let sum = scale * sum;
                    assert!(
                        (own - sum).abs() <= ROUNDING * (1.0 + sum.abs()),
                        "{what}: {own} {sum}"
                    );
                }
                let scaled = |a: Mat<f64>| times(&a, scale);
                assert!(apart(&sums.phi_a, &scaled(expected.phi_a())) < ROUNDING, "{what}");
                let constant_b = matches!(rule.s, ByS::Constant(_));
                let gram = expected.gram(|row| if constant_b { 1.0 } else { row.b });
                assert!(apart(&sums.gram, &scaled(gram)) < ROUNDING, "{what}");
                let constant_c = matches!(rule.r, ByR::Constant(_));
                assert_eq!(sums.gram_c.is_none(), constant_b && constant_c, "{what}");
                if let Some(gram_c) = &sums.gram_c {
                    let gram = expected.gram(|row| if constant_c { 1.0 } else { row.c });
                    assert!(apart(gram_c, &scaled(gram)) < ROUNDING, "{what}");
                }
            }
        }
    }
}

fn times(a: &Mat<f64>, factor: f64) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| factor * a[(i, j)])
}

/// Rows `i` with i mod `of` = `part`.
fn part(data: &InMemory, part: usize, of: usize) -> InMemory {
    let rows: Vec<usize> = (part..data.x.nrows()).step_by(of).collect();
    InMemory::new(
        Mat::from_fn(rows.len(), data.x.ncols(), |i, q| data.x[(rows[i], q)]),
        Mat::from_fn(rows.len(), data.y.ncols(), |i, p| data.y[(rows[i], p)]),
    )
    .expect("as many targets as inputs")
}

/// Minibatches of equal size, scaled by N/B, have the full result as their mean.
#[test]
fn minibatches_are_unbiased() {
    let (n, batches) = (1100, 11);
    let problem = problem(n, 7, 2);
    let parts = problem.parts();
    let engine = Cpu::default();
    let share = 1.0 / batches as f64;
    for rule in all(2) {
        let q = problem.q();
        let whole = parts.statistics(&engine, Some(q), &rule, &problem.data, 1.0).expect("rows");
        let back = parts.gradients(&engine, q, &rule, &problem.data, 1.0).expect("rows");
        let mut phi_a = Mat::zeros(7, 2);
        let (mut gram, mut gram_c) = (Mat::zeros(7, 7), Mat::zeros(7, 7));
        let mut sums = vec![0.0; whole.sums.len()];
        let mut slopes = vec![0.0; back.kernel.len() + back.mean.len()];
        let mut z = Mat::zeros(7, 2);
        for index in 0..batches {
            let batch = part(&problem.data, index, batches);
            let scale = n as f64 / batch.x.nrows() as f64;
            assert_eq!(scale, batches as f64);
            let own = parts.statistics(&engine, Some(q), &rule, &batch, scale).expect("rows");
            phi_a += times(&own.phi_a, share);
            gram += times(&own.gram, share);
            if let Some(own) = &own.gram_c {
                gram_c += times(own, share);
            }
            let pulled = parts.gradients(&engine, q, &rule, &batch, scale).expect("rows");
            // the sums of both passes are scaled alike (r is not formed in all of them)
            assert!((pulled.sums[0] - own.sums[0]).abs() <= ROUNDING * own.sums[0].abs().max(1.0));
            sums.iter_mut().zip(&own.sums).for_each(|(t, v)| *t += share * v);
            let all = pulled.kernel.iter().chain(&pulled.mean);
            slopes.iter_mut().zip(all).for_each(|(t, v)| *t += share * v);
            z += times(&pulled.z, share);
        }
        assert!(apart(&phi_a, &whole.phi_a) < ROUNDING, "{rule:?}");
        assert!(apart(&gram, &whole.gram) < ROUNDING, "{rule:?}");
        assert!(whole.gram_c.as_ref().is_none_or(|c| apart(&gram_c, c) < ROUNDING), "{rule:?}");
        assert!(apart(&z, &back.z) < ROUNDING, "{rule:?}");
        let size = slopes.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
        for (mean, whole) in slopes.iter().zip(back.kernel.iter().chain(&back.mean)) {
            assert!((mean - whole).abs() < ROUNDING * size, "{rule:?}: {mean} {whole}");
        }
        for (mean, whole) in sums.iter().zip(&whole.sums) {
            assert!((mean - whole).abs() < ROUNDING * (1.0 + whole.abs()), "{rule:?}");
        }
    }
}

/// Asked to stop, a sweep over the rows ends with an error, once; the next one is whole again.
#[test]
fn a_sweep_stops_when_asked() {
    use sparsegp::Error;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let problem = problem(1100, 7, 2);
    let parts = problem.parts();
    let stop = Arc::new(AtomicBool::new(false));
    let engine = Cpu::stopped_by(stop.clone());
    for rule in all(2) {
        let statistics = || parts.statistics(&engine, Some(problem.q()), &rule, &problem.data, 1.0);
        let gradients = || parts.gradients(&engine, problem.q(), &rule, &problem.data, 1.0);
        let (sums, back) = (statistics().expect("whole"), gradients().expect("whole"));
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(statistics(), Err(Error::Interrupted)));
        assert_eq!(statistics().expect("whole again").sums, sums.sums);
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(gradients(), Err(Error::Interrupted)));
        assert_eq!(gradients().expect("whole again").kernel, back.kernel);
        assert!(!stop.load(Ordering::Relaxed));
    }
}

/// The same of exact inference.
#[test]
fn exact_inference_stops_when_asked() {
    use sparsegp::Error;
    use sparsegp::fit::{Dataset, FitOptions, prepare};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    let problem = problem(60, 7, 2);
    let (x, y) = (problem.data.x.clone(), problem.data.y.clone());
    let dataset = Dataset::from_arrays(x, y, true).unwrap();
    let options = FitOptions { method: "exact".into(), ..FitOptions::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let engine = Cpu::stopped_by(stop.clone());
    let model = prepare(&dataset, &options, &engine, &mut ()).unwrap().model;
    let value = || model.evaluate(&engine, &*dataset.source).map(|found| found.value);
    let whole = value().unwrap();
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(value(), Err(Error::Interrupted)));
    assert_eq!(value().unwrap(), whole);
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(model.posterior(&engine, &*dataset.source), Err(Error::Interrupted)));
    assert!(!stop.load(Ordering::Relaxed));
}
