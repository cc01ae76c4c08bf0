//! Targets that data make: gradients, minibatches, and what the rest of the library knows of the same posteriors.

use super::gradients::check;
use super::*;
use crate::flow::targets::{Logistic, Network, Whitened, WhitenedRows};
use crate::kernels::{self, Inputs, Kernel};
use crate::likelihoods;
use crate::samplers::OfDensity;
use crate::samplers::joint::{Joint, Variables};
use crate::samplers::{self, Setting};

fn logistic() -> Logistic {
    let labels = (0..11).map(|i| if i % 3 == 1 { 1.0 } else { -1.0 }).collect();
    Logistic::new(normals(11, 3, 1), labels, 2.3).unwrap()
}

fn network() -> Network {
    let classes = (0..9).map(|i| (i * i) % 3).collect();
    Network::new(vec![2, 4, 3], normals(9, 2, 2), classes, 0.7).unwrap()
}

fn kernel(spec: &str) -> Box<dyn Kernel> {
    kernels::parse(spec, Inputs::unnamed(1)).unwrap()
}

const RBF: &str = "rbf(variance=1.4, lengthscales=0.8)";

/// Six rows, with a target missing.
fn rows(y: &[f64]) -> (Mat<f64>, Mat<f64>) {
    let x = Mat::from_fn(6, 1, |i, _| [0.2, 1.1, -0.7, 2.0, 1.5, -1.3][i]);
    (x, Mat::from_fn(6, y.len() / 6, |i, p| y[i + 6 * p]))
}

fn whitened(spec: &str, y: &[f64], points: usize) -> Whitened {
    let likelihood = likelihoods::parse(spec).unwrap();
    let (x, y) = rows(y);
    let latents = likelihood.latents() * y.ncols();
    let kernels: Vec<_> = (0..latents)
        .map(|l| kernel(&format!("rbf(variance={}, lengthscales=0.8)", 1.4 + 0.3 * l as f64)))
        .collect();
    let z = Mat::from_fn(points, 1, |i, _| -1.0 + 1.1 * i as f64);
    let mean = Mat::from_fn(6, latents, |i, l| 0.1 * i as f64 - 0.3 * l as f64);
    let weights = [1.0, 0.5, 2.0, 1.0, 1.3, 0.8];
    let data = WhitenedRows {
        x: x.as_ref(),
        y: y.as_ref(),
        extra: &[],
        weights: &weights,
        mean: Some(mean.as_ref()),
    };
    let inducing = (points > 0).then(|| z.as_ref());
    Whitened::new(&kernels, &*likelihood, inducing, Jitter::Absolute(1e-8), data).unwrap()
}

const ANY: [f64; 6] = [0.3, -0.8, f64::NAN, 1.9, 0.4, -1.1];
const COUNTS: [f64; 6] = [1.0, 0.0, f64::NAN, 4.0, 2.0, 1.0];
const BINARY: [f64; 6] = [1.0, 0.0, f64::NAN, 1.0, 1.0, 0.0];

#[test]
fn gradients_of_regressions_and_networks() {
    check(&mut logistic(), &normals(3, 3, 3), 1e-7);
    check(&mut logistic().in_batches(4, 7).unwrap(), &normals(3, 3, 3), 1e-7);
    check(&mut network(), &normals(27, 2, 4), 1e-7);
    check(&mut network().scaled(3.1).unwrap().in_batches(4, 1).unwrap(), &normals(27, 2, 4), 1e-7);
    // far from 0 nothing overflows
    let far = normals(3, 2, 3) * faer::Scale(1e4);
    assert!(Evaluation::of(&mut logistic(), far.as_ref()).is_ok());
    let far = normals(27, 2, 4) * faer::Scale(1e4);
    assert!(Evaluation::of(&mut network(), far.as_ref()).is_ok());
}

#[test]
fn gradients_of_gaussian_processes() {
    let both: Vec<f64> = ANY.iter().chain(&ANY).copied().collect();
    for points in [3, 0] {
        for (spec, y) in [
            ("gaussian(variance=0.3)", &ANY[..]),
            ("gaussian(variance=0.3)", &both[..]),
            ("poisson", &COUNTS[..]),
            ("bernoulli(link=logit, rule=30, slope=price)", &BINARY[..]),
            ("student_t(scale=0.6, df=4)", &ANY[..]),
            ("heteroscedastic", &ANY[..]),
            ("softmax(classes=3)", &[1.0, 0.0, f64::NAN, 2.0, 2.0, 1.0][..]),
        ] {
            let mut target = whitened(spec, y, points);
            let x = normals(target.dim(), 3, 5);
            // differences are good to 1e-9
            check(&mut target, &x, 1e-8);
            check(&mut target.in_batches(4, 3).unwrap(), &x, 1e-8);
        }
    }
}

/// The mean over an epoch is the whole; seeds and steps say which rows.
#[test]
fn minibatches_add_up_to_all_rows() {
    let x = normals(3, 2, 3);
    let whole = Evaluation::of(&mut logistic(), x.as_ref()).unwrap();
    let mut target = logistic().in_batches(4, 7).unwrap();
    assert!(target.is_noisy() && !logistic().in_batches(20, 7).unwrap().is_noisy());
    let mut data = [0.0; 2];
    let prior = |n: usize| (0..3).map(|i| x[(i, n)].powi(2)).sum::<f64>() / (2.0 * 2.3);
    let (mut seen, mut first) = (Vec::new(), Vec::new());
    for step in 0..3 {
        target.renew(step);
        let (weight, count) = (target.subsample.weight(), target.subsample.count());
        close(weight, 11.0 / count as f64, 1e-15);
        seen.extend((0..count).map(|at| target.subsample.row(at)));
        let own = Evaluation::of(&mut target, x.as_ref()).unwrap();
        (0..2).for_each(|n| data[n] += (own.phi[n] - prior(n)) / weight);
        first.push(own.phi[0]);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..11).collect::<Vec<_>>());
    (0..2).for_each(|n| close(data[n] + prior(n), whole.phi[n], 1e-12));
    // those that training takes
    let at = Mat::from_fn(11, 1, |i, _| i as f64);
    let all = crate::data::InMemory::new(at.clone(), at).unwrap();
    let mut batches = crate::data::ShuffledInMemory::new(&all, 4, 7).unwrap();
    let mut batch = crate::data::Minibatch::new();
    for step in 0..7 {
        target.renew(step);
        crate::data::Batches::next(&mut batches, &mut batch).unwrap();
        let own = (0..target.subsample.count()).map(|at| target.subsample.row(at) as f64);
        assert_eq!(own.collect::<Vec<_>>(), batch.rows.x.col_as_slice(0));
    }
    // any step again, in any order
    target.renew(7);
    target.renew(1);
    assert_eq!(Evaluation::of(&mut target, x.as_ref()).unwrap().phi[0], first[1]);
}

/// The density that samplers have of the same model, but for its constant.
#[test]
fn whitened_targets_are_the_joint_densities_of_samplers() {
    for points in [Some(Mat::from_fn(2, 1, |i, _| 0.1 + 0.9 * i as f64)), None] {
        let likelihood = likelihoods::parse("student_t(scale=0.6, df=4)").unwrap();
        let model = samplers::test_models::model(likelihood, points.as_ref());
        let data = samplers::test_models::rows(&[0.4, -0.3, 1.2], 1.0);
        let setting = Setting::new(&model, &data, samplers::Target::Variational).unwrap();
        let joint = Joint::new(&setting, Variables::Original).unwrap();
        let mut mean = Mat::zeros(3, 1);
        model.mean.evaluate(data.x.as_ref(), mean.as_mut());
        let rows = WhitenedRows {
            x: data.x.as_ref(),
            y: data.y.as_ref(),
            extra: &[],
            weights: &[],
            mean: Some(mean.as_ref()),
        };
        let z = points.as_ref().map(Mat::as_ref);
        let mut own =
            Whitened::new(&model.kernels, &*model.likelihood, z, model.jitter, rows).unwrap();
        let x = normals(own.dim(), 4, 1);
        let a = Evaluation::of(&mut own, x.as_ref()).unwrap();
        let b = Evaluation::of(&mut OfDensity(joint), x.as_ref()).unwrap();
        let constant = 0.5 * own.dim() as f64 * std::f64::consts::TAU.ln();
        (0..4).for_each(|n| close(a.phi[n] + constant, b.phi[n], 1e-9));
        assert!(largest((&a.gradient - &b.gradient).as_ref()) < 1e-8);
    }
}

/// Particles of a full posterior with Gaussian noise predict what exact inference does.
#[test]
fn predictions_of_gaussian_noise_are_exact() {
    let noise = 0.3;
    let likelihood = likelihoods::parse("gaussian(variance=0.3)").unwrap();
    let (x, y) = rows(&[0.3, -0.8, 0.6, 1.9, 0.4, -1.1]);
    let data = WhitenedRows { x: x.as_ref(), y: y.as_ref(), extra: &[], weights: &[], mean: None };
    let kernels = [kernel(RBF)];
    let none = Jitter::Absolute(1e-10);
    let mut target = Whitened::new(&kernels, &*likelihood, None, none, data).unwrap();
    let root = Mat::from_fn(6, 6, |i, j| if i == j { 0.3 } else { 0.0 });
    let start = Particles::matched(&[0.0; 6], root.as_ref(), 7, 1).unwrap();
    let options = GpfOptions { mean_rate: 0.1, spread_rate: 0.1, ..GpfOptions::default() };
    let mut gpf = Gpf::new(start, options).unwrap();
    flow(&mut gpf, &mut target, 4000);
    let new = Mat::from_fn(3, 1, |i, _| 0.4 + 0.7 * i as f64);
    let (means, variances) = target.predict(gpf.particles(), new.as_ref()).unwrap();
    let covariances = |a: &Mat<f64>, b: Option<&Mat<f64>>| {
        let mut out = Mat::zeros(a.nrows(), b.map_or(a.nrows(), Mat::nrows));
        let tape = &mut kernels::Tape::off();
        kernels[0].evaluate(a.as_ref(), b.map(Mat::as_ref), out.as_mut(), tape);
        out
    };
    let mut k = covariances(&x, None);
    (0..6).for_each(|i| k[(i, i)] += noise);
    let factor = Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K").unwrap();
    let cross = covariances(&new, Some(&x));
    let expected = product(cross.as_ref(), factor.solve(y.as_ref()).as_ref());
    let explained = factor.solve(cross.transpose().to_owned().as_ref());
    for i in 0..3 {
        close(means[(i, 0)], expected[(i, 0)], 1e-8);
        let less: f64 = (0..6).map(|j| cross[(i, j)] * explained[(j, i)]).sum();
        close(variances[(i, 0)], 1.4 - less, 1e-8);
    }
    // the evidence: −F + M/2
    let energy = gpf.state(&mut target).unwrap().free_energy;
    let square: f64 = (0..6).map(|i| y[(i, 0)] * factor.solve(y.as_ref())[(i, 0)]).sum();
    let evidence = -0.5 * (square + factor.log_det() + 6.0 * std::f64::consts::TAU.ln());
    close(3.0 - energy, evidence, 1e-8);
}

#[test]
fn data_that_do_not_fit() {
    let text = |result: crate::Result<Logistic>| result.unwrap_err().to_string();
    assert!(text(Logistic::new(Mat::zeros(3, 2), vec![1.0; 2], 1.0)).contains("as many labels"));
    assert!(text(Logistic::new(Mat::zeros(2, 2), vec![1.0, 0.0], 1.0)).contains("2y − 1"));
    assert!(text(Logistic::new(Mat::zeros(1, 2), vec![1.0], -1.0)).contains("above 0"));
    let nan = Mat::full(1, 2, f64::NAN);
    assert!(text(Logistic::new(nan, vec![1.0], 1.0)).contains("not finite"));
    assert!(text(logistic().in_batches(0, 1)).contains("one row or more"));
    assert!(logistic().subsample.choose(vec![11]).unwrap_err().to_string().contains("11"));
    let of = |sizes: Vec<usize>, classes: Vec<usize>| {
        Network::new(sizes, Mat::zeros(2, 2), classes, 1.0).unwrap_err().to_string()
    };
    assert!(of(vec![3, 2], vec![0, 1]).contains("2 inputs"));
    assert!(of(vec![2], vec![0, 1]).contains("2 inputs"));
    assert!(of(vec![2, 2], vec![0, 2]).contains("no class 2"));
    assert!(network().scaled(0.0).unwrap_err().to_string().contains("above 0"));
    let with = |spec: &str, y: Mat<f64>, kernels: usize, mean: Option<MatRef<'_, f64>>| {
        let likelihood = likelihoods::parse(spec).unwrap();
        let x = Mat::from_fn(2, 1, |i, _| i as f64);
        let kernels: Vec<_> = (0..kernels).map(|_| kernel(RBF)).collect();
        let (x, y) = (x.as_ref(), y.as_ref());
        let rows = WhitenedRows { x, y, extra: &[], weights: &[], mean };
        let jitter = Jitter::default();
        Whitened::new(&kernels, &*likelihood, None, jitter, rows).unwrap_err().to_string()
    };
    assert!(with("poisson", Mat::full(2, 1, -1.0), 1, None).contains("row 0, target 0"));
    assert!(with("poisson", Mat::zeros(3, 1), 1, None).contains("rows of targets"));
    assert!(with("poisson", Mat::zeros(2, 1), 2, None).contains("kernels"));
    assert!(with("poisson", Mat::zeros(2, 0), 1, None).contains("one of each"));
    let mean = Mat::zeros(2, 3);
    assert!(with("poisson", Mat::zeros(2, 1), 1, Some(mean.as_ref())).contains("prior means"));
    // probabilities
    let own = logistic().probabilities(normals(3, 5, 1).as_ref(), normals(4, 3, 2).as_ref());
    assert!(own.unwrap().iter().all(|p| (0.0..=1.0).contains(p)));
    let own = network().probabilities(normals(27, 5, 1).as_ref(), normals(4, 2, 2).as_ref());
    let own = own.unwrap();
    (0..4).for_each(|i| close((0..3).map(|c| own[(i, c)]).sum(), 1.0, 1e-13));
    assert!(network().probabilities(Mat::zeros(26, 1).as_ref(), own.as_ref()).is_err());
}
