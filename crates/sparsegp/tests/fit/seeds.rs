//! One seed, one result.

use crate::support::{bits, fit, options, predict, prepare, table, value};
use sparsegp::engine::Cpu;
use sparsegp::fit::{FitOptions, Fitted};
use sparsegp::inducing::select::Selection;
use sparsegp::linalg::Mat;
use sparsegp::methods::upper_bound;

fn all(fitted: &Fitted) -> (Vec<u64>, Vec<u64>) {
    let places = Mat::from_fn(40, 2, |i, q| (i as f64 * 0.83 + q as f64).sin() * 3.0);
    let (mean, variance) = predict(fitted, &places);
    let report = fitted.report.as_ref().expect("a report");
    let trace = report.trace.iter().map(|point| point.objective);
    let rest = mean.into_iter().chain(variance).chain(trace).map(f64::to_bits).collect();
    (bits(&fitted.model), rest)
}

fn on(threads: usize, own: &FitOptions) -> Fitted {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let work = || fit(&table(1300, 2), own).expect("a fit");
    pool.expect("a pool of threads").install(work)
}

/// Several blocks of rows, and a pilot.
#[test]
fn a_seed_gives_the_same_bits_on_any_number_of_threads() {
    for selection in [
        Selection::KMeans,
        Selection::Random,
        Selection::GreedyVariance,
        Selection::GreedyElbo,
        Selection::KDpp,
        Selection::Grid,
    ] {
        let mut own = options("titsias2025", 6);
        own.pilot = 60;
        own.selection = selection.clone();
        own.kernel = "rbf + linear".into();
        let one = on(1, &own);
        assert_eq!(all(&one), all(&on(2, &own)), "{selection}: two threads");
        let other = on(1, &FitOptions { seed: own.seed + 1, ..own });
        if selection == Selection::Grid {
            // from edge to edge, whatever the seed
            continue;
        }
        // another pilot and (but for greedy selection) other points
        let path = "inducing.points";
        assert_ne!(value(&one.model, path), value(&other.model, path), "{selection}");
    }
}

/// A factorisation with all threads in every evaluation.
#[test]
fn exact_inference_gives_the_same_bits_on_any_number_of_threads() {
    let own = options("exact", 2);
    assert_eq!(all(&on(1, &own)), all(&on(2, &own)));
}

/// Matrices that are worked on by all threads (768 points and more), with a single target.
#[test]
fn many_points_give_the_same_bits_on_any_number_of_threads() {
    let own = FitOptions { inducing: Some(780), pilot: 0, ..options("titsias2025", 0) };
    let dataset = table(800, 2);
    let (model, ..) = prepare(&dataset, &own).expect("a model");
    let places = Mat::from_fn(790, 2, |i, q| (i as f64 * 0.83 + q as f64).sin());
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("a pool of threads").install(|| {
            let engine = Cpu::default();
            let upper = upper_bound(&model, &engine, &*dataset.source).expect("well posed");
            let lower = model.evaluate(&engine, &*dataset.source).expect("well posed");
            let posterior = model.posterior(&engine, &*dataset.source).expect("well posed");
            let (u, mut covariance) = posterior.q_u().expect("sparse");
            let covariance = covariance.remove(0);
            let (mean, mut full) = posterior.predict_f_full(places.as_ref()).expect("two columns");
            let full = full.remove(0);
            let matrices = [u, covariance, mean, full];
            let numbers = matrices.iter().flat_map(|a| {
                (0..a.ncols()).flat_map(|j| a.col_as_slice(j).to_vec()).collect::<Vec<_>>()
            });
            let values = [upper, lower]
                .into_iter()
                .flat_map(|e| std::iter::once(e.value).chain(e.gradient).collect::<Vec<_>>());
            values.chain(numbers).map(f64::to_bits).collect::<Vec<u64>>()
        })
    };
    let one = on(1);
    assert_eq!(one.iter().zip(&on(2)).position(|(a, b)| a != b), None, "two threads");
    assert_eq!(one.iter().zip(&on(3)).position(|(a, b)| a != b), None, "three threads");
}
