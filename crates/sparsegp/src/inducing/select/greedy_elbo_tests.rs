use super::super::distinct_rows;
use super::super::test_data::{bits, in_pools, uniform};
use super::*;
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::kernels::{Inputs, Tape};
use crate::likelihoods::Gaussian;
use crate::linalg::Jitter;
use crate::model::{Model, inducing_param};
use crate::{kernels, means, methods};

const SPEC: &str = "rbf(variance=0.7, lengthscales=[0.3, 0.8]) + linear(variance=0.45)";
const NOISE: f64 = 0.07;

fn data(n: usize, outputs: usize) -> InMemory {
    let x = uniform(41, n, 2);
    let e = uniform(42, n, outputs);
    let y = Mat::from_fn(n, outputs, |i, p| {
        (7.0 * x[(i, 0)] + p as f64).sin() + 0.5 * x[(i, 1)] + 0.6 * (e[(i, p)] - 0.5)
    });
    InMemory::new(x, y).unwrap()
}

fn select(data: &InMemory, m: usize, candidates: usize, seed: u64) -> Result<(Selected, Vec<f64>)> {
    let kernel = kernels::parse(SPEC, Inputs::unnamed(2)).unwrap();
    let x = data.x.as_ref();
    let mut diag = vec![0.0; x.nrows()];
    kernel.diag(x, &mut diag);
    let columns = &mut |rows: &[usize]| {
        let mut k = Mat::zeros(x.nrows(), rows.len());
        kernel.evaluate(x, Some(gather(x, rows).as_ref()), k.as_mut(), &mut Tape::off());
        Ok(k)
    };
    let targets = Targets { residuals: data.y.as_ref(), noise: NOISE };
    greedy_elbo(x, m, &diag, columns, targets, candidates, &mut rng::stream(seed, "greedy"))
}

/// The collapsed bound from scratch, by the method that models train with.
fn from_scratch(data: &InMemory, points: MatRef<'_, f64>) -> f64 {
    let model = Model {
        kernels: vec![kernels::parse(SPEC, Inputs::unnamed(2)).unwrap()],
        mean: means::by_name("zero", 2, data.y.ncols()).unwrap(),
        likelihood: Box::new(Gaussian::new(NOISE)),
        inducing: vec![inducing_param(points)],
        q: None,
        method: methods::find("titsias2009").unwrap().method,
        jitter: Jitter::Absolute(0.0),
        hidden: Vec::new(),
    };
    model.evaluate(&Cpu::default(), data).unwrap().value
}

/// The identity that the increments rest on, and that no point costs anything.
#[test]
fn every_bound_is_the_collapsed_one_and_none_falls() {
    for outputs in [1, 3] {
        let data = data(90, outputs);
        let (selected, bounds) = select(&data, 14, 9, 3).unwrap();
        assert_eq!((selected.points.nrows(), bounds.len()), (14, 15));
        for m in 1..=14 {
            let scratch = from_scratch(&data, selected.points.as_ref().subrows(0, m));
            let error = (bounds[m] - scratch).abs() / scratch.abs();
            assert!(error < 1e-8, "{m} points: {} {scratch}", bounds[m]);
            assert!(bounds[m] >= bounds[m - 1], "{m}: {} {}", bounds[m], bounds[m - 1]);
        }
        // without points Q = 0
        let squares: f64 = (0..outputs).map(|p| sum(column(data.y.as_ref(), p), |v| v * v)).sum();
        let trace: f64 = {
            let kernel = kernels::parse(SPEC, Inputs::unnamed(2)).unwrap();
            let mut diag = vec![0.0; 90];
            kernel.diag(data.x.as_ref(), &mut diag);
            diag.iter().sum()
        };
        let p = outputs as f64;
        let none = -0.5
            * (90.0 * p * (2.0 * std::f64::consts::PI * NOISE).ln()
                + squares / NOISE
                + p * trace / NOISE);
        assert!((bounds[0] - none).abs() < 1e-10 * none.abs());
    }
}

/// With all rows as candidates every step is the best there is.
#[test]
fn the_best_candidate_is_chosen() {
    let data = data(25, 2);
    let (selected, bounds) = select(&data, 4, 25, 1).unwrap();
    let mut points = Mat::zeros(0, 2);
    for m in 0..4 {
        let with = |row: usize| {
            let z = Mat::from_fn(
                m + 1,
                2,
                |i, q| if i < m { points[(i, q)] } else { data.x[(row, q)] },
            );
            from_scratch(&data, z.as_ref())
        };
        let taken = |row: usize| (0..m).any(|i| points[(i, 0)] == data.x[(row, 0)]);
        let best = (0..25).filter(|&i| !taken(i)).map(with).fold(f64::NEG_INFINITY, f64::max);
        assert!((bounds[m + 1] - best).abs() < 1e-8 * best.abs(), "{m}: {} {best}", bounds[m + 1]);
        points = selected.points.as_ref().subrows(0, m + 1).to_owned();
    }
    // more to choose from is no worse for a single point
    let few = select(&data, 1, 2, 1).unwrap().1;
    assert!(few[1] <= bounds[1]);
}

#[test]
fn rows_of_equal_inputs_are_taken_once() {
    let once = data(12, 1);
    let twice = once.picked(&(0..24).map(|i| i % 12).collect::<Vec<_>>());
    let (selected, bounds) = select(&twice, 20, 30, 2).unwrap();
    assert_eq!(selected.points.nrows(), 12);
    assert_eq!(distinct_rows(selected.points.as_ref(), 24).len(), 12);
    assert_eq!(bounds.len(), 13);
    assert!(selected.note.unwrap().contains("20 inducing points were asked for, but 12"));
    assert!(selected.trace_left.unwrap() < 1e-9);
}

#[test]
fn does_not_depend_on_threads() {
    let data = data(3000, 2);
    let all = in_pools(|| {
        let (selected, bounds) = select(&data, 20, 8, 1).unwrap();
        (bits(&selected.points), bounds.into_iter().map(f64::to_bits).collect::<Vec<_>>())
    });
    assert!(all.iter().all(|one| *one == all[0]));
    assert_ne!(bits(&select(&data, 20, 8, 2).unwrap().0.points), all[0].0);
}

#[test]
fn unusable_targets_are_sentences() {
    let data = data(10, 1);
    let x = data.x.as_ref();
    let run = |residuals: &Mat<f64>, noise: f64, candidates: usize| {
        let columns = &mut |rows: &[usize]| Ok(Mat::full(10, rows.len(), 1.0));
        let targets = Targets { residuals: residuals.as_ref(), noise };
        let generator = &mut rng::stream(1, "greedy");
        let outcome = greedy_elbo(x, 2, &[1.0; 10], columns, targets, candidates, generator);
        outcome.unwrap_err().to_string()
    };
    assert!(run(&data.y, 0.0, 3).contains("noise variance must be a positive number, found 0"));
    assert!(run(&data.y, 0.1, 0).contains("at least one candidate"));
    assert!(run(&Mat::zeros(9, 1), 0.1, 3).contains("10 values, one per row"));
    assert!(run(&Mat::full(10, 1, f64::NAN), 0.1, 3).contains("row 1, is not finite"));
    assert!(run(&Mat::zeros(10, 0), 0.1, 3).contains("no targets"));
}
