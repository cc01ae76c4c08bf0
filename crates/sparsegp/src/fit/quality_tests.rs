use super::*;
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::kernels::{self, Inputs, Tape};
use crate::likelihoods::{self, Gaussian};
use crate::linalg::{Jitter, Mat, MatRef};
use crate::means;
use crate::model::inducing_param;
use crate::rng;

const SPEC: &str = "rbf(variance=0.7, lengthscales=[0.3, 0.8]) + linear(variance=0.45)";
const NOISE: f64 = 0.07;

fn data(n: usize) -> InMemory {
    let mut generator = rng::stream(3, "quality");
    let x = Mat::from_fn(n, 2, |_, _| 2.0 * rng::uniform(&mut generator) - 1.0);
    let y = Mat::from_fn(n, 1, |i, _| {
        (4.0 * x[(i, 0)]).sin() + x[(i, 1)] + 0.8 * (rng::uniform(&mut generator) - 0.5)
    });
    InMemory::new(x, y).unwrap()
}

fn model(points: MatRef<'_, f64>, method: &str) -> Model {
    Model {
        kernels: vec![kernels::parse(SPEC, Inputs::unnamed(2)).unwrap()],
        mean: means::by_name("zero", 2, 1).unwrap(),
        likelihood: Box::new(Gaussian::new(NOISE)),
        inducing: vec![inducing_param(points)],
        q: None,
        method: methods::find(method).unwrap().method,
        jitter: Jitter::Absolute(1e-9),
        hidden: Vec::new(),
    }
}

fn judge(model: &Model, data: &InMemory, options: &QualityOptions) -> Quality {
    quality(model, &Cpu::default(), data, options).unwrap()
}

/// kᵢᵢ and rᵢ, by elimination.
fn by_hand(model: &Model, x: MatRef<'_, f64>) -> (Vec<f64>, Vec<f64>) {
    let z = model.inducing_points().unwrap();
    let k = |a: MatRef<'_, f64>, b: MatRef<'_, f64>| {
        let mut k = Mat::zeros(a.nrows(), b.nrows());
        model.kernel().evaluate(a, Some(b), k.as_mut(), &mut Tape::off());
        k
    };
    let m = z.nrows();
    let (kuu, kfu) = (k(z.as_ref(), z.as_ref()), k(x, z.as_ref()));
    let diag: Vec<f64> =
        (0..x.nrows()).map(|i| k(x.subrows(i, 1), x.subrows(i, 1))[(0, 0)]).collect();
    let left = (0..x.nrows()).map(|i| {
        let mut a = Mat::from_fn(m, m + 1, |p, q| match q < m {
            true => kuu[(p, q)] + if p == q { 1e-9 } else { 0.0 },
            false => kfu[(i, p)],
        });
        for p in 0..m {
            let pivot = a[(p, p)];
            (p..=m).for_each(|q| a[(p, q)] /= pivot);
            for other in (0..m).filter(|other| *other != p) {
                let weight = a[(other, p)];
                (p..=m).for_each(|q| a[(other, q)] -= weight * a[(p, q)]);
            }
        }
        diag[i] - (0..m).map(|p| kfu[(i, p)] * a[(p, m)]).sum::<f64>()
    });
    (diag.clone(), left.collect())
}

#[test]
fn traces_and_shares_are_those_of_the_definition() {
    let data = data(700);
    let model = model(data.x.as_ref().subrows(0, 9), "titsias2025");
    let found = judge(&model, &data, &QualityOptions::default());
    assert_eq!(found.processes.len(), 1);
    let own = &found.processes[0];
    let (k, r) = by_hand(&model, data.x.as_ref());
    let sum = |v: &[f64]| v.iter().sum::<f64>();
    assert_eq!((own.points, own.rows), (9, 700));
    assert!((own.prior_variance - sum(&k)).abs() < 1e-9 * sum(&k));
    assert!((own.unexplained - sum(&r)).abs() < 1e-7 * sum(&k), "{}", own.unexplained);
    assert!((own.trace_residual() - sum(&r) / sum(&k)).abs() < 1e-7);
    let shares: Vec<f64> = k.iter().zip(&r).map(|(k, r)| r / k).collect();
    let largest = shares.iter().copied().fold(0.0, f64::max);
    assert!((own.largest - largest).abs() < 1e-7);
    let Histogram { edges, counts } = &own.shares;
    assert_eq!((edges.len(), counts.len()), (34, 33));
    assert_eq!((edges[0], edges[1], edges[33]), (0.0, 1e-8, 1.0));
    assert_eq!(counts.iter().sum::<u64>(), 700);
    // bins well above rounding agree with counting
    for (bin, count) in counts.iter().enumerate().filter(|(bin, _)| edges[*bin] > 1e-5) {
        let within = shares.iter().filter(|s| **s > edges[bin] && **s <= edges[bin + 1]).count();
        assert_eq!(*count, within as u64, "{} to {}", edges[bin], edges[bin + 1]);
    }
    for edge in [0.1, 0.01] {
        let above = shares.iter().filter(|s| **s > edge).count() as f64 / 700.0;
        assert!((own.shares.above(edge) - above).abs() < 1e-12, "{edge}");
    }
    assert!(own.shares.above(0.1) > 0.05, "few points leave something to see");
}

#[test]
fn the_gap_holds_the_evidence() {
    let data = data(120);
    let mut exact = model(data.x.as_ref().subrows(0, 1), "exact");
    exact.inducing.clear();
    let evidence = exact.evaluate(&Cpu::default(), &data).unwrap().value;
    let mut widths = Vec::new();
    for m in [4, 12, 60] {
        for method in ["titsias2009", "titsias2025", "fitc"] {
            let model = model(data.x.as_ref().subrows(0, m), method);
            let gap = judge(&model, &data, &QualityOptions::default()).gap.unwrap();
            assert!(
                gap.lower <= evidence && evidence <= gap.upper,
                "{m} {method}: {gap:?} {evidence}"
            );
            assert_eq!(gap.width(), gap.upper - gap.lower);
            widths.push(gap.width());
        }
    }
    assert!(widths[3] < widths[0] && widths[6] < widths[3], "{widths:?}");
    assert!(widths[1] <= widths[0], "the bound of 2025 is tighter: {widths:?}");
    assert_eq!(widths[2], widths[0], "fitc is not a bound: that of 2009 stands in");
}

/// As many rows as are suggested leave so little, one fewer does not.
#[test]
fn the_suggestion_is_the_smallest_number_that_is_enough() {
    let data = data(400);
    let model = model(data.x.as_ref().subrows(0, 5), "titsias2009");
    let mut numbers = Vec::new();
    for fraction in [0.5, 0.01, 1e-4] {
        let options = QualityOptions { fraction, ..QualityOptions::default() };
        let own = judge(&model, &data, &options).processes[0].suggestion;
        assert!(own.reached && own.of_noise && own.rows == 400);
        assert_eq!(own.enough, fraction * NOISE);
        let left = |m: usize| {
            let mut diag = vec![0.0; 400];
            model.kernel().diag(data.x.as_ref(), &mut diag);
            let mut column = |i: usize| {
                Ok(columns(model.kernel(), data.x.as_ref(), &[i])?.col_as_slice(0).to_vec())
            };
            let x = data.x.as_ref();
            let chosen =
                crate::inducing::select::greedy_variance(x, m, &diag, &mut column, 1e-12).unwrap();
            chosen.trace_left.unwrap() / 400.0
        };
        assert!(left(own.points) <= own.enough);
        assert!(left(own.points - 1) > own.enough, "{fraction}: {}", own.points);
        numbers.push(own.points);
    }
    assert!(numbers[0] < numbers[1] && numbers[1] < numbers[2], "{numbers:?}");
    // no more than were allowed
    let options = QualityOptions { fraction: 1e-4, most: 4, ..QualityOptions::default() };
    let own = judge(&model, &data, &options).processes[0].suggestion;
    assert_eq!((own.points, own.reached), (4, false));
    // of some of the rows
    let options = QualityOptions { rows: 50, ..QualityOptions::default() };
    assert_eq!(judge(&model, &data, &options).processes[0].suggestion.rows, 50);
}

#[test]
fn other_likelihoods_have_no_gap_and_no_noise() {
    let data = data(60);
    let mut model = model(data.x.as_ref().subrows(0, 5), "svgp");
    model.likelihood = likelihoods::parse("student-t").unwrap();
    let found = judge(&model, &data, &QualityOptions::default());
    assert_eq!(found.gap, None);
    let own = &found.processes[0];
    assert!(!own.suggestion.of_noise);
    assert!((own.suggestion.enough - 0.01 * own.prior_variance / 60.0).abs() < 1e-12);
}

/// Every latent function with a separate kernel is judged by that kernel.
#[test]
fn kernels_are_judged_one_by_one() {
    let data = data(60);
    let mut model = model(data.x.as_ref().subrows(0, 5), "svgp");
    model
        .kernels
        .push(kernels::parse("rbf(variance=2.0, lengthscales=9.0)", Inputs::unnamed(2)).unwrap());
    let found = judge(&model, &data, &QualityOptions::default());
    assert_eq!((found.processes.len(), found.gap), (2, None));
    assert!(found.processes[1].trace_residual() < 0.1 * found.processes[0].trace_residual());
    assert!((found.processes[1].prior_variance - 120.0).abs() < 1e-9);
}

#[test]
fn what_cannot_be_judged_is_a_sentence() {
    let data = data(20);
    let model = model(data.x.as_ref().subrows(0, 5), "titsias2009");
    let fails = |model: &Model, data: &InMemory, options: QualityOptions, part: &str| {
        let error = quality(model, &Cpu::default(), data, &options).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let usual = QualityOptions::default();
    let mut without = model.clone();
    without.inducing.clear();
    fails(&without, &data, usual, "needs inducing points");
    let narrow = InMemory::new(Mat::zeros(4, 1), Mat::zeros(4, 1)).unwrap();
    fails(&model, &narrow, usual, "expected 2 columns");
    fails(&model, &data, QualityOptions { fraction: 0.0, ..usual }, "positive number, found 0");
    fails(&model, &data, QualityOptions { most: 0, ..usual }, "found 0");
}
