//! Points that stand for a posterior of hyperparameters, beside sums over a grid.

use super::evidence::Posterior;
use super::laplace::{Integration, integrate};
use super::slice::Hyperparameters;
use crate::data::InMemory;
use crate::engine::Cpu;
use crate::kernels::{Inputs, parse};
use crate::linalg::{Jitter, Mat};
use crate::model::{Model, hyperparameter_names};
use crate::params::Prior;
use crate::rng::stream;
use crate::{likelihoods, means, methods};
use rand_distr::{Distribution, StandardNormal};

/// Rows of a curve with noise, away from unit scales.
fn rows(n: usize, inputs: usize) -> InMemory {
    let mut rng = stream(3, "rows");
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let x = Mat::from_fn(n, inputs, |_, _| 1.3 * normal());
    let y = Mat::from_fn(n, 1, |i, _| 2.0 * (1.4 * x[(i, 0)]).sin() + 0.7 * normal());
    InMemory::new(x, y).unwrap()
}

fn model(kernel: &str, inputs: usize) -> Model {
    Model {
        kernels: vec![parse(kernel, Inputs::unnamed(inputs)).unwrap()],
        mean: means::from_json(&serde_json::json!({"type": "zero"}), inputs, 1).unwrap(),
        likelihood: likelihoods::parse("gaussian(variance=0.4)").unwrap(),
        inducing: Vec::new(),
        q: None,
        method: methods::find("exact").unwrap().method,
        jitter: Jitter::Absolute(0.0),
        hidden: Vec::new(),
    }
}

fn with(model: &mut Model, path: &str, change: impl Fn(&mut crate::params::Param)) {
    let (_, param) = model.params_mut().into_iter().find(|(own, _)| own == path).unwrap();
    change(param);
}

/// Mean and standard deviation of the logarithm of one of the hyperparameters.
fn moments(found: &Integration, at: usize) -> (f64, f64) {
    let count: usize = found.times.iter().sum();
    let each =
        || found.hyperparameters.iter().zip(&found.times).map(|(h, t)| (h[at].ln(), *t as f64));
    let mean = each().map(|(v, t)| t * v).sum::<f64>() / count as f64;
    let square = each().map(|(v, t)| t * (v - mean).powi(2)).sum::<f64>() / count as f64;
    (mean, square.sqrt())
}

#[test]
fn moments_are_those_of_a_grid() {
    let rows = rows(30, 1);
    let mut model = model("rbf(lengthscales=0.8, variance=1.7)", 1);
    with(&mut model, "kernel.variance", |param| param.frozen = true);
    with(&mut model, "kernel.lengthscales", |param| {
        param.prior = Some(Prior::LogNormal { loc: 0.2, scale: 0.9 });
    });
    with(&mut model, "likelihood.variance", |param| {
        param.prior = Some(Prior::Gamma { concentration: 1.6, rate: 2.3 });
    });
    let found = integrate(&model, &rows).unwrap().unwrap();
    let names = hyperparameter_names(&model);
    let place = |name: &str| names.iter().position(|own| own == name).unwrap();
    let (length, noise) = (place("kernel.lengthscales"), place("likelihood.variance"));
    // sums over a grid in both logarithms; two standard errors of 32 components are a third of a deviation, and a quarter of it
    let steps = 90;
    let grid = |i: usize, low: f64, high: f64| low + (high - low) * i as f64 / (steps - 1) as f64;
    let mut all = Vec::new();
    for i in 0..steps {
        for j in 0..steps {
            let (a, b) = (grid(i, -4.0, 3.0), grid(j, -4.5, 3.0));
            with(&mut model, "kernel.lengthscales", |param| param.value_mut()[0] = a.exp());
            with(&mut model, "likelihood.variance", |param| param.value_mut()[0] = b.exp());
            let value = model.method.evaluate(&model, &Cpu::default(), &rows).unwrap().value;
            all.push((value + model.log_prior() + a + b, a, b));
        }
    }
    let largest = all.iter().fold(f64::NEG_INFINITY, |m, own| m.max(own.0));
    let total: f64 = all.iter().map(|own| (own.0 - largest).exp()).sum();
    let expected = |of: &dyn Fn(&(f64, f64, f64)) -> f64| {
        all.iter().map(|own| (own.0 - largest).exp() / total * of(own)).sum::<f64>()
    };
    let mut watch = |_, _| std::ops::ControlFlow::Continue(());
    let mut centre = model.clone();
    with(&mut centre, "kernel.lengthscales", |param| param.value_mut()[0] = 0.8);
    with(&mut centre, "likelihood.variance", |param| param.value_mut()[0] = 0.4);
    let chains = super::marginal::sample(&centre, &rows, 5, &mut watch).unwrap().unwrap();
    assert!(chains.rhat() < 1.03 && chains.divergences == 0 && !chains.stopped, "{chains:?}");
    assert_eq!(chains.settings.times, [1; 32]);
    for (summary, of) in chains.summaries.iter().zip([1, 2]) {
        let value = |own: &(f64, f64, f64)| if of == 1 { own.1 } else { own.2 };
        let mean = expected(&value);
        let deviation = expected(&|own| (value(own) - mean).powi(2)).sqrt();
        assert!((summary.mean - mean).abs() < 4.0 * summary.error, "{summary:?}, grid {mean}");
        assert!(summary.error < 0.15 * deviation, "{summary:?}");
        assert!((summary.deviation / deviation - 1.0).abs() < 0.15, "{summary:?}, {deviation}");
    }
    for (at, of) in [(length, 1), (noise, 2)] {
        let (own_mean, own_deviation) = moments(&chains.settings, at);
        let (mean, deviation) = (chains.summaries[of - 1].mean, chains.summaries[of - 1].deviation);
        // 32 of 512 draws
        assert!((own_mean - mean).abs() < 0.55 * deviation, "{own_mean} {mean} {deviation}");
        assert!((own_deviation / deviation - 1.0).abs() < 0.4, "{own_deviation} {deviation}");
        let value = |own: &(f64, f64, f64)| if of == 1 { own.1 } else { own.2 };
        let mean = expected(&value);
        let deviation = expected(&|own| (value(own) - mean).powi(2)).sqrt();
        let (own_mean, own_deviation) = moments(&found, at);
        assert!(
            (own_mean - mean).abs() < 0.25 * deviation,
            "{at}: {own_mean}, grid {mean} ± {deviation}"
        );
        assert!(
            (own_deviation / deviation - 1.0).abs() < 0.25,
            "{at}: {own_deviation}, grid {deviation}"
        );
    }
    assert!(found.effective > 0.3 && found.effective <= 1.0, "{}", found.effective);
    assert_eq!(found.times.iter().sum::<usize>(), 32);
    // and the same ones again
    with(&mut model, "kernel.lengthscales", |param| param.value_mut()[0] = 0.8);
    with(&mut model, "likelihood.variance", |param| param.value_mut()[0] = 0.4);
    assert_eq!(integrate(&model, &rows).unwrap(), Some(found));
}

#[test]
fn slopes_of_the_density_are_its_differences() {
    let rows = rows(9, 3);
    let mut model = model("rbf(lengthscales=[0.8, 1.9, 2.4], variance=1.7)", 3);
    with(&mut model, "kernel.lengthscales", |param| {
        param.prior = Some(Prior::LogNormal { loc: 0.4, scale: 0.8 });
        param.groups.push(vec![1, 2]);
    });
    with(&mut model, "kernel.variance", |param| {
        param.prior = Some(Prior::Gamma { concentration: 1.6, rate: 2.3 });
    });
    with(&mut model, "likelihood.variance", |param| {
        param.prior = Some(Prior::LogNormal { loc: -0.4, scale: 1.8 });
    });
    let sampled = Hyperparameters::new(&model, 1).unwrap();
    let mut density = Posterior::new(&model, &rows, &sampled).unwrap();
    let at = density.position();
    assert_eq!(at.len(), 5);
    let mut slopes = vec![0.0; 5];
    let value = density.at(&at, Some(&mut slopes)).unwrap();
    assert!((value - density.at(&at, None).unwrap()).abs() < 1e-10 * value.abs());
    for j in 0..5 {
        let mut beside = |step: f64| {
            let mut moved = at.clone();
            moved[j] += step;
            density.at(&moved, None).unwrap()
        };
        let step = 1e-4;
        let slope = (beside(step) - beside(-step)) / (2.0 * step);
        assert!(
            (slopes[j] - slope).abs() < 1e-5 * (1.0 + slope.abs()),
            "{j}: {} {slope}",
            slopes[j]
        );
    }
}

#[test]
fn nothing_is_averaged_where_all_is_frozen() {
    let rows = rows(9, 1);
    let mut model = model("matern52(lengthscales=0.8, variance=1.7)", 1);
    for path in ["kernel.lengthscales", "kernel.variance", "likelihood.variance"] {
        with(&mut model, path, |param| param.frozen = true);
    }
    assert_eq!(integrate(&model, &rows).unwrap(), None);
}

#[test]
fn other_noise_is_refused() {
    let rows = rows(9, 1);
    let mut model = model("rbf", 1);
    assert!(integrate(&model, &rows).unwrap().is_some());
    model.likelihood = likelihoods::parse("student-t(df=4)").unwrap();
    let error = integrate(&model, &rows).unwrap_err().to_string();
    assert!(error.contains("Gaussian noise"), "{error}");
}
