use super::embed::Places;
use super::global::Global;
use super::model::Trainable;
use super::{FittedGplvm, GplvmBatches, GplvmOptions, Targets, fit_gplvm, fit_gplvm_watched};
use crate::linalg::Mat;
use crate::optim::Objective;
use crate::params::{listed, listed_mut};
use crate::psi::Uncertain;
use crate::psi::tests::{kernel, spot};
use crate::rng::{stream, uniform};
use crate::terms::{Term, Titsias2009, Titsias2025};
use rand_distr::{Distribution, StandardNormal};

/// Smooth functions of two hidden numbers with noise, in odd units.
fn sheet(n: usize, p: usize) -> Mat<f64> {
    let mut rng = stream(3, "sheet");
    let hidden = Mat::from_fn(n, 2, |_, _| 3.0 * uniform(&mut rng) - 1.5);
    Mat::from_fn(n, p, |i, j| {
        let phase = 0.9 * j as f64;
        let noise: f64 = StandardNormal.sample(&mut rng);
        let wave = (1.3 * hidden[(i, 0)] + phase).sin() + (0.8 * hidden[(i, 1)] - phase).cos();
        -20.0 + 7.0 * wave + 0.7 * noise
    })
}

fn options() -> GplvmOptions {
    GplvmOptions { inducing: 9, iterations: 40, ..GplvmOptions::default() }
}

/// A model of 40 rows with gaps, and targets on its scale.
fn trained() -> (FittedGplvm, Targets) {
    let mut y = sheet(40, 5);
    for i in 0..40 {
        (1..3).filter(|j| spot(i, 90 + j) < 0.2).for_each(|j| y[(i, j)] = f64::NAN);
    }
    let mut fitted = fit_gplvm(y.as_ref(), &options()).unwrap();
    // no number near the end of its range
    fitted.model.kernel =
        kernel("rbf(variance=0.8, lengthscales=[0.9, 1.6]) + linear(variance=0.3)", 2);
    fitted.model.noise.value_mut()[0] = 0.13;
    let of = |i: usize, j: usize| (y[(i, j)] - fitted.centre[j]) / fitted.scale[j];
    let targets = Targets::new(Mat::from_fn(40, 5, of).as_ref()).unwrap();
    (fitted, targets)
}

const TERMS: [&dyn Term; 2] = [&Titsias2009, &Titsias2025];

fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} is not {b}");
}

/// At the best q(u) the bound is the collapsed one, with its slopes; a step of length 1 by all rows leads there from anywhere; any
/// other q(u) is below; and batches are unbiased.
#[test]
fn the_best_q_gives_the_collapsed_bound() {
    let (fitted, targets) = trained();
    for term in TERMS {
        let mut model = fitted.model.clone();
        model.term = term;
        let (x, bound) = (model.latent().unwrap(), model.bound(&targets).unwrap());
        let best = Global::best(&bound);
        let (value, slopes) = best.evaluate(&model, (x, &targets), 1.0).unwrap();
        close(value, bound.value(), 1e-10, term.name());
        let (_, all) = model.evaluate(&targets).unwrap();
        let largest = all.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        for (k, (own, other)) in slopes.iter().zip(&all).enumerate() {
            assert!((own - other).abs() < 1e-7 * largest, "{} {k}: {own} {other}", term.name());
        }

        let mut other = best.clone();
        other.mean = Mat::from_fn(9, 5, |i, j| best.mean[(i, j)] + 0.1 * spot(i, j));
        let posterior = other.posterior(&model).unwrap();
        let (below, _) = other.evaluate(&model, (x, &targets), 1.0).unwrap();
        assert!(below < value - 0.01, "{below} {value}");
        let halves: Vec<Vec<usize>> =
            vec![(0..40).step_by(2).collect(), (1..40).step_by(2).collect()];
        let mut sum = 0.0;
        for rows in &halves {
            let (mean, variance) =
                (super::batches::rows_of(x.mean, rows), super::batches::rows_of(x.variance, rows));
            let own = Uncertain::new(mean.as_ref(), variance.as_ref()).unwrap();
            sum += other.evaluate(&model, (own, &targets.some(rows)), 2.0).unwrap().0;
        }
        close(0.5 * sum, below, 1e-10, "batches");
        other.step(&posterior, (x, &targets), (1.0, 1.0)).unwrap();
        close(other.evaluate(&model, (x, &targets), 1.0).unwrap().0, value, 1e-9, "a step");
    }
}

#[test]
fn slopes_are_those_of_differences() {
    let (fitted, targets) = trained();
    let mut model = fitted.model.clone();
    for term in TERMS {
        model.term = term;
        let mut global = Global::best(&model.bound(&targets).unwrap());
        global.mean = Mat::from_fn(9, 5, |i, j| global.mean[(i, j)] + 0.2 * spot(i, j + 3));
        let rows: Vec<usize> = (3..31).collect();
        let (mean, variance) = {
            let x = model.latent().unwrap();
            (super::batches::rows_of(x.mean, &rows), super::batches::rows_of(x.variance, &rows))
        };
        let x = Uncertain::new(mean.as_ref(), variance.as_ref()).unwrap();
        let own = targets.some(&rows);
        let (_, slopes) = global.evaluate(&model, (x, &own), 1.7).unwrap();
        let shared = listed(|v| model.visit(v));
        let shared = shared.iter().take_while(|(path, _)| path != "latent.mean");
        let lengths: Vec<usize> = shared.map(|(_, param)| param.len()).collect();
        let mut at = 0;
        for (param, length) in lengths.iter().enumerate() {
            for k in 0..*length {
                let of = |h: f64| {
                    let mut other = model.clone();
                    let mut all = listed_mut(|v| other.visit_mut(v));
                    all[param].1.value_mut()[k] += h;
                    global.evaluate(&other, (x, &own), 1.7).unwrap().0
                };
                let h = 1e-5;
                let difference = (of(h) - of(-h)) / (2.0 * h);
                close(slopes[at], difference, 1e-5, &format!("{} {param} {k}", term.name()));
                at += 1;
            }
        }
        assert_eq!(at, slopes.len());

        // places of rows together
        let posterior = global.posterior(&model).unwrap();
        let grams = posterior.grams();
        let mut places = Places::of_targets(&posterior, &own, &grams);
        let at: Vec<f64> = (0..places.dim()).map(|k| 1.5 * spot(k, 4) - 1.0).collect();
        let mut gradient = vec![0.0; at.len()];
        places.evaluate(&at, &mut gradient).unwrap();
        for k in (0..at.len()).step_by(7) {
            let mut of = |h: f64| {
                let mut other = at.clone();
                other[k] += h;
                places.evaluate(&other, &mut vec![0.0; at.len()]).unwrap()
            };
            let difference = (of(1e-5) - of(-1e-5)) / 2e-5;
            close(gradient[k], difference, 1e-6, "places");
        }
    }
}

/// Batches come near the bound of a training on all rows at once, from a tenth of the rows; the same numbers for any number of threads.
#[test]
fn batches_come_near_all_rows_at_once() {
    let mut y = sheet(400, 8);
    (0..400).filter(|i| i % 9 == 2).for_each(|i| y[(i, 3)] = f64::NAN);
    let all = GplvmOptions { inducing: 16, iterations: 200, ..GplvmOptions::default() };
    let whole = fit_gplvm(y.as_ref(), &all).unwrap();
    let batches = GplvmBatches { rows: 50, epochs: 12, first: 40, ..GplvmBatches::default() };
    let own = GplvmOptions { batches: Some(batches), ..all.clone() };
    let start = GplvmOptions {
        batches: Some(GplvmBatches {
            epochs: 1,
            learning_rate: 1e-9,
            ..own.batches.clone().unwrap()
        }),
        ..own.clone()
    };
    let begun = fit_gplvm(y.as_ref(), &start).unwrap();
    let mut epochs = Vec::new();
    let found = fit_gplvm_watched(y.as_ref(), &own, &mut |at| {
        epochs.extend(at.epoch);
        true
    });
    let found = found.unwrap();
    assert_eq!((epochs.len(), epochs[0], *epochs.last().unwrap()), (96, 1, 12));
    println!("{} {} {}", begun.bound, found.bound, whole.bound);
    assert!(found.bound > begun.bound);
    assert!(found.bound > whole.bound - 0.03 * whole.bound.abs());
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let again = one.install(|| fit_gplvm(y.as_ref(), &own)).unwrap();
    assert_eq!(again.bound, found.bound);
    // what the files and predictions need is there
    assert_eq!(found.latent().unwrap().0.nrows(), 400);
}

#[test]
fn batches_that_are_not_possible_are_refused() {
    let y = sheet(30, 4);
    let refused = |method: &str, batches: GplvmBatches| {
        let own = GplvmOptions { batches: Some(batches), method: method.into(), ..options() };
        fit_gplvm(y.as_ref(), &own).unwrap_err().to_string()
    };
    let few = GplvmBatches { rows: 10, ..GplvmBatches::default() };
    assert!(refused("spherical", few.clone()).contains("`spherical` is not a sum over rows"));
    let text = refused("titsias2025", GplvmBatches { epochs: 0, ..few.clone() });
    assert!(text.contains("at least one row"), "{text}");
    let text = refused("titsias2025", GplvmBatches { learning_rate: -1.0, ..few.clone() });
    assert!(text.contains("not -1"), "{text}");
    // a watcher ends it, before any batch
    let own = GplvmOptions { batches: Some(few), ..options() };
    let mut seen = 0;
    let ended = fit_gplvm_watched(y.as_ref(), &own, &mut |at| {
        seen += usize::from(at.epoch.is_some());
        at.iteration < 3
    });
    assert_eq!((seen, ended.unwrap().latent().unwrap().0.nrows()), (0, 30));
}
