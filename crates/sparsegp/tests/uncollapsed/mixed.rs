//! Targets that are mixtures of common latent functions.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sparsegp::data::{InMemory, Minibatch, Source};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{Dataset, FitOptions, Of, fit};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods;
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::means::by_name;
use sparsegp::methods::{Evaluation, Uncollapsed, find};
use sparsegp::model::{Model, inducing_param};
use sparsegp::variational::{Tying, Variational};

const OUTPUTS: usize = 3;
const LATENTS: usize = 2;

fn matrix(rows: usize, columns: usize, rng: &mut ChaCha8Rng) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| rng.random_range(-1.5..1.5))
}

/// A model of three columns of counts (or of numbers) and a q away from the prior, with separate
/// points and kernels for two latent functions, and a mean function of the targets.
fn model(spec: &str, method: &str, whiten: bool) -> (Model, InMemory) {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let (x, noise) = (matrix(24, 2, &mut rng), matrix(24, OUTPUTS, &mut rng));
    let counts = spec == "poisson";
    let y = Mat::from_fn(24, OUTPUTS, |i, p| {
        let f = (x[(i, 0)] + p as f64).sin() + 0.4 * noise[(i, p)];
        if counts { (2.0 * f.exp()).floor() } else { f }
    });
    let mixed =
        format!("coregionalised(likelihood=\"{spec}\", outputs={OUTPUTS}, latents={LATENTS})");
    // no two of them near
    let points = |l: usize| {
        let at = |i: usize, q: usize| [i as f64 * 0.65, (2 * i % 5) as f64 * 0.6][q];
        Mat::from_fn(5, 2, |i, q| at(i, q) - 1.3 + 0.17 * l as f64)
    };
    let inducing = (0..LATENTS).map(|l| inducing_param(points(l).as_ref())).collect();
    let q = match method {
        "svgp" => {
            let mut root = || {
                let a = matrix(5, 5, &mut rng);
                Mat::from_fn(5, 5, |i, j| match i.cmp(&j) {
                    std::cmp::Ordering::Less => 0.0,
                    std::cmp::Ordering::Equal => 0.6 + 0.3 * a[(i, j)].abs(),
                    std::cmp::Ordering::Greater => 0.2 * a[(i, j)],
                })
            };
            let roots = [root(), root()];
            let means = matrix(5, LATENTS, &mut rng);
            Variational::new(means.as_ref(), &roots, false, whiten).expect("they fit")
        }
        _ => Variational::sites(5, LATENTS, Tying::Natural),
    };
    let mut model = Model {
        kernels: ["rbf(variance=1.3, lengthscales=[0.9, 1.4])", "matern52(variance=0.6)"]
            .map(|spec| parse(spec, Inputs::unnamed(2)).expect("a kernel"))
            .into(),
        mean: by_name("linear", 2, OUTPUTS).expect("a mean"),
        likelihood: likelihoods::parse(&mixed).expect(&mixed),
        inducing,
        q: Some(q),
        method: find(method).expect("registered").method,
        jitter: Jitter::Relative(1e-6),
        hidden: Vec::new(),
    };
    model.set("likelihood.mixing", &[1.0, -0.3, 0.5, 0.2, 0.9, -0.7]).expect("as many");
    let weights: Vec<f64> = (0..2 * OUTPUTS).map(|i| 0.3 * (2.0 + i as f64).cos()).collect();
    model.set("mean.weights", &weights).expect("as many");
    let mut data = InMemory::new(x, y).expect("rows");
    data.weights = (0..24).map(|i| 0.5 + 0.1 * i as f64).collect();
    data.y[(3, 1)] = f64::NAN;
    (model, data)
}

fn evaluate(model: &Model, data: &dyn Source) -> Evaluation {
    model.evaluate(&Cpu::default(), data).expect("well posed")
}

/// Five-point differences, to 10⁻⁷ of the gradient's size.
fn check_gradient(model: &Model, data: &dyn Source) {
    let evaluation = evaluate(model, data);
    let size = evaluation.gradient.iter().fold(1.0_f64, |m, g| m.max(g.abs()));
    let mut own = evaluation.gradient.iter();
    for (path, param) in model.params() {
        for index in 0..param.len() {
            let g = own.next().expect("one for each number");
            let at = |h: f64| {
                let mut moved = model.clone();
                let mut values = param.value().to_vec();
                values[index] += h;
                moved.set(&path, &values).expect("a small step");
                evaluate(&moved, data).value
            };
            let h = 1e-3 * param.value()[index].abs().max(0.3);
            let slope = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            assert!((g - slope).abs() < 1e-7 * size, "{path}[{index}]: {g} {slope} of {size}");
        }
    }
    assert!(own.next().is_none());
}

#[test]
fn gradients_match_differences() {
    for whiten in [true, false] {
        for spec in ["gaussian(variance=0.4)", "poisson"] {
            let (model, data) = model(spec, "svgp", whiten);
            check_gradient(&model, &data);
            let rows = data.picked(&[1, 3, 4, 9, 12]);
            check_gradient(&model, &Minibatch { rows, population: 24 });
        }
    }
}

/// With W = I every target has its own latent function.
#[test]
fn the_identity_mixes_nothing() {
    let (mut mixed, data) = model("poisson", "svgp", true);
    let keep = |a: &Mat<f64>| a.as_ref().subcols(0, LATENTS).to_owned();
    let data = InMemory { y: keep(&data.y), ..data };
    mixed.mean = by_name("linear", 2, LATENTS).expect("a mean");
    mixed.set("mean.weights", &[0.2, -0.3, 0.4, 0.1]).expect("as many");
    let plain =
        Model { likelihood: likelihoods::parse("poisson").expect("known"), ..mixed.clone() };
    let spec = "coregionalised(likelihood=poisson, outputs=2, latents=2)";
    mixed.likelihood = likelihoods::parse(spec).expect(spec);
    mixed.set("likelihood.mixing", &[1.0, 0.0, 0.0, 1.0]).expect("as many");
    let (a, b) = (evaluate(&mixed, &data), evaluate(&plain, &data));
    assert!((a.value - b.value).abs() < 1e-10 * b.value.abs());
    let by_path = |model: &Model, gradient: &[f64]| -> Vec<(String, Vec<f64>)> {
        let mut rest = gradient.to_vec();
        let split = model.params().into_iter().map(|(path, param)| {
            let tail = rest.split_off(param.len());
            (path, std::mem::replace(&mut rest, tail))
        });
        split.filter(|(path, _)| path != "likelihood.mixing").collect()
    };
    let (ours, theirs) = (by_path(&mixed, &a.gradient), by_path(&plain, &b.gradient));
    assert_eq!(ours.len(), theirs.len());
    for ((path, a), (other, b)) in ours.iter().zip(&theirs) {
        assert_eq!(path, other);
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{path} {a} {b}");
        }
    }
    let engine = Cpu::default();
    let (p, q) = (mixed.posterior(&engine, &data), plain.posterior(&engine, &data));
    let (p, q) = (p.expect("posed"), q.expect("posed"));
    let x = data.x.as_ref();
    let close = |a: &Mat<f64>, b: &Mat<f64>| assert!((a - b).norm_max() < 1e-10);
    let (m, v) = p.predict_f(x).expect("inputs");
    let (m0, v0) = q.predict_f(x).expect("inputs");
    close(&m, &m0);
    close(&v, &v0);
    let (a, b) = (p.predict_gradients(x).expect("inputs"), q.predict_gradients(x).expect("inputs"));
    for l in 0..2 {
        close(&a.mean[l], &b.mean[l]);
        close(&a.variance[l], &b.variance[l]);
    }
}

/// Means, variances and covariances of f = m(x) + Wg from those of g, and draws of f in both ways: moments of 6000
/// within five (functions: six) standard errors.
#[test]
fn predictions_are_mixtures() {
    let (model, data) = model("gaussian(variance=0.4)", "svgp", true);
    let posterior = model.posterior(&Cpu::default(), &data).expect("posed");
    assert_eq!((posterior.latents(), posterior.outputs()), (OUTPUTS, OUTPUTS));
    let x = data.x.as_ref().subrows(2, 2);
    let (mean, joint) = posterior.predict_f_joint(x).expect("inputs");
    // only g
    let plain = Model {
        likelihood: likelihoods::parse("gaussian").expect("known"),
        mean: by_name("zero", 2, LATENTS).expect("a mean"),
        ..model.clone()
    };
    let g = plain.posterior(&Cpu::default(), &data).expect("posed");
    let (g_mean, g_full) = g.predict_f_full(x).expect("inputs");
    let w = model.likelihood.mixing().expect("mixes").value().to_vec();
    let mut offset = Mat::zeros(2, OUTPUTS);
    model.mean.evaluate(x, offset.as_mut());
    for p in 0..OUTPUTS {
        for i in 0..2 {
            let f: f64 = (0..LATENTS).map(|q| w[q * OUTPUTS + p] * g_mean[(i, q)]).sum();
            assert!((mean[(i, p)] - f - offset[(i, p)]).abs() < 1e-12);
            for o in 0..OUTPUTS {
                for j in 0..2 {
                    let c: f64 = (0..LATENTS)
                        .map(|q| w[q * OUTPUTS + p] * w[q * OUTPUTS + o] * g_full[q][(i, j)])
                        .sum();
                    assert!((joint[(p * 2 + i, o * 2 + j)] - c).abs() < 1e-12);
                }
            }
        }
    }
    let (full_mean, full) = posterior.predict_f_full(x).expect("inputs");
    let (plain_mean, variance) = posterior.predict_f(x).expect("inputs");
    assert!((&full_mean - &mean).norm_max() < 1e-12 && (&plain_mean - &mean).norm_max() < 1e-12);
    assert_eq!(posterior.predict_mean(x).expect("inputs"), plain_mean);
    for p in 0..OUTPUTS {
        for i in 0..2 {
            assert!((full[p][(i, i)] - joint[(p * 2 + i, p * 2 + i)]).abs() < 1e-12);
            assert!((variance[(i, p)] - full[p][(i, i)]).abs() < 1e-10);
        }
    }
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let jointly = posterior.sample_f(x, 6000, &mut rng).expect("inputs");
    let functions = posterior.sample_functions(6000, 200, &mut rng).expect("spectral");
    let by_functions = functions.evaluate(x).expect("inputs");
    for (draws, room) in [(jointly, 5.0), (by_functions, 6.0)] {
        let flat = |d: &Mat<f64>, a: usize| d[(a % 2, a / 2)] - mean[(a % 2, a / 2)];
        for a in 0..2 * OUTPUTS {
            let average = draws.iter().map(|d| flat(d, a)).sum::<f64>() / 6000.0;
            assert!(average.abs() < room * (joint[(a, a)] / 6000.0).sqrt());
            for b in 0..=a {
                let second = draws.iter().map(|d| flat(d, a) * flat(d, b)).sum::<f64>() / 6000.0;
                let error =
                    ((joint[(a, a)] * joint[(b, b)] + joint[(a, b)].powi(2)) / 6000.0).sqrt();
                assert!((second - joint[(a, b)]).abs() < room * error, "{a} {b}");
            }
        }
    }
}

/// Natural-gradient steps of either form of q raise the bound, to the same one. With Gaussian noise the bound is a
/// quadratic function of the means; steps for all latent functions at once are those of Jacobi's method, which
/// below 2/Q of their full size do not overshoot.
#[test]
fn natural_steps_go_up() {
    let mut ends = Vec::new();
    for method in ["svgp", "tsvgp"] {
        let (mut model, data) = model("gaussian(variance=0.4)", method, true);
        let own = Uncollapsed::of(model.method).expect("has a q");
        let mut last = f64::NEG_INFINITY;
        for _ in 0..300 {
            let mut step =
                own.step(&model, &Cpu::default(), &data, Want::Statistics).expect("a pass");
            assert!(step.value > last - 1e-9, "{method}: {} after {last}", step.value);
            last = step.value;
            step.natural(&mut model, 0.3).expect("a step");
        }
        ends.push(last);
    }
    assert!((ends[0] - ends[1]).abs() < 1e-8 * ends[0].abs(), "{ends:?}");
}

#[test]
fn what_does_not_mix_is_refused() {
    let (model, data) = model("gaussian", "svgp", true);
    for name in ["svgp-spherical", "lsvgp", "tvgp", "exact", "titsias2025", "svgp2025"] {
        let other = Model { method: find(name).expect("registered").method, ..model.clone() };
        let error = other.method.check(&other).expect_err(name).to_string();
        assert!(error.contains("svgp"), "{name}: {error}");
    }
    let two = InMemory::new(data.x.clone(), Mat::zeros(24, 2)).expect("rows");
    let error = model.evaluate(&Cpu::default(), &two).expect_err("two columns").to_string();
    assert!(error.contains("likelihood.mixing") && error.contains('2'), "{error}");
    let posterior = model.posterior(&Cpu::default(), &data).expect("posed");
    let error = posterior.leave_one_out(&model, &data).expect_err("mixed").to_string();
    assert!(error.contains("share"), "{error}");
    for (spec, culprit) in [
        ("coregionalised(outputs=2, mixing=[0.3, 0.4, 0.5])", "mixing"),
        ("coregionalised(likelihood=softmax, outputs=2, latents=1)", "softmax"),
        ("coregionalised(likelihood=\"heteroscedastic\", outputs=2, latents=1)", "heteroscedastic"),
    ] {
        let error = likelihoods::parse(spec).expect_err(spec).to_string();
        assert!(error.contains(culprit), "{spec}: {error}");
    }
}

/// From rows to a file and back: three targets that are mixtures of two functions are learnt, better than the
/// targets' own variance by far.
#[test]
fn a_model_is_fitted_saved_and_loaded() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let x = matrix(90, 1, &mut rng);
    let noise = matrix(90, OUTPUTS, &mut rng);
    let y = Mat::from_fn(90, OUTPUTS, |i, p| {
        let (a, b) = ((3.0 * x[(i, 0)]).sin(), x[(i, 0)].powi(2));
        [5.0 + 2.0 * a, 0.1 * b - 0.2 * a, 30.0 * b][p] * (1.0 + 0.0 * noise[(i, p)])
            + [0.1, 0.02, 1.0][p] * noise[(i, p)]
    });
    let dataset = Dataset::from_arrays(x.clone(), y.clone(), true).expect("rows");
    let options = FitOptions {
        likelihood: Some("coregionalised(likelihood=gaussian, outputs=3, latents=2)".into()),
        inducing: Some(15),
        ..FitOptions::default()
    };
    let fitted = fit(&dataset, &options, &Cpu::default(), &mut ()).expect("fits");
    assert_eq!(fitted.model.kernels.len(), 2);
    let (mean, _) = fitted.predict(x.as_ref(), Of::Latent).expect("inputs");
    for p in 0..OUTPUTS {
        let spread = fitted.target_variance[p];
        let error: f64 = (0..90).map(|i| (mean[(i, p)] - y[(i, p)]).powi(2)).sum::<f64>() / 90.0;
        assert!(error < 0.1 * spread, "target {p}: {error} of {spread}");
    }
    let bytes = sparsegp::io::to_bytes(&fitted).expect("writes");
    let again = sparsegp::io::from_bytes(&bytes).expect("reads");
    let (same, _) = again.predict(x.as_ref(), Of::Latent).expect("inputs");
    assert_eq!(mean, same);
    let wrong = FitOptions {
        likelihood: Some("coregionalised(outputs=2, latents=2)".into()),
        ..FitOptions::default()
    };
    let error = fit(&dataset, &wrong, &Cpu::default(), &mut ()).expect_err("three").to_string();
    assert!(error.contains("outputs=3"), "{error}");
}
