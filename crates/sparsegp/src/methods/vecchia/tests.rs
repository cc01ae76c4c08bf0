//! Other likelihoods, against sites of all rows by dense matrices, and against differences.

use crate::data::InMemory;
use crate::engine::Cpu;
use crate::kernels::{self, Inputs};
use crate::likelihoods;
use crate::linalg::{Jitter, Mat};
use crate::methods::{Tvgp, find};
use crate::model::Model;
use crate::rng;
use crate::variational::{Tying, Variational};

const ROWS: usize = 55;

/// Places in a plane, some of them twice, with weights, of which some are 0.
fn rows(columns: usize, target: impl Fn(f64, usize) -> f64) -> InMemory {
    let mut rng = rng::stream(23, "sited");
    let mut x = Mat::from_fn(ROWS, 2, |_, _| 3.0 * rng::uniform(&mut rng) - 1.5);
    for (copy, of) in [(20, 4), (31, 4), (50, 17)] {
        (0..2).for_each(|q| x[(copy, q)] = x[(of, q)]);
    }
    let y = Mat::from_fn(ROWS, columns, |i, p| {
        target(2.0 * x[(i, 0)] - x[(i, 1)], (7 * i + 3 * p) % 11)
    });
    let weights = (0..ROWS).map(|i| if i % 9 == 4 { 0.0 } else { 0.5 + 0.3 * (i % 4) as f64 });
    InMemory { x, y, weights: weights.collect(), extra: Vec::new() }
}

fn model(method: &str, kernels: &[&str], likelihood: &str, columns: usize, jitter: f64) -> Model {
    let parse = |own: &&str| kernels::parse(own, Inputs::unnamed(2)).unwrap();
    let likelihood = likelihoods::parse(likelihood).unwrap();
    let latents = columns * likelihood.latents();
    let builder = Model::builder(parse(&kernels[0]), find(method).unwrap().method)
        .kernels(kernels.iter().map(parse).collect())
        .likelihood(likelihood)
        .jitter(Jitter::Absolute(jitter));
    let n = (0..ROWS).filter(|i| i % 9 != 4).count();
    let builder = match method {
        "tvgp" => builder.q(Variational::sites(n, latents, Tying::Untied)),
        _ => builder,
    };
    builder.build(2, columns).unwrap()
}

/// A likelihood, kernels, targets from a wave and a number below 11, and their columns.
type Case = (&'static str, &'static [&'static str], fn(f64, usize) -> f64, usize);

const CASES: &[Case] = &[
    (
        "poisson",
        &["matern32(variance=0.7, lengthscales=[1.3, 0.6])"],
        |x, r| ((1.5 * x.sin()).exp() + r as f64 / 5.0).floor(),
        1,
    ),
    (
        "bernoulli",
        &[
            "matern52(variance=1.9, lengthscales=[0.8, 1.1]) + matern12(variance=0.3, lengthscales=2.0)",
        ],
        |x, r| f64::from(x.sin() + 0.2 * (r as f64 - 5.0) > 0.0),
        2,
    ),
    (
        "negative-binomial",
        &["matern12(variance=1.1, lengthscales=[1.7, 0.9])"],
        |x, r| ((1.0 + x.cos()).exp() + r as f64).floor(),
        1,
    ),
    (
        "softmax(classes=3)",
        &["matern32(variance=1.2, lengthscales=[0.9, 1.4])"],
        |x, r| f64::from((x.sin() * 1.5 + 1.5) as i32 + i32::from(r == 3)).min(2.0),
        1,
    ),
    (
        "heteroscedastic",
        &[
            "matern52(variance=1.2, lengthscales=[0.9, 0.7])",
            "matern32(variance=0.6, lengthscales=[2.1, 1.3])",
        ],
        |x, r| x.sin() + 0.1 * (r as f64 - 5.0) * x.cos().abs(),
        1,
    ),
];

/// Under Gaussian noise one step of the sites is enough.
#[test]
fn gaussian_noise_in_the_latent_form_is_exact_with_all_rows_for_neighbours() {
    let kernel: &[&str] = &["matern32(variance=0.7, lengthscales=[1.3, 0.6])"];
    let likelihood = "gaussian(variance=0.3)";
    let data = rows(2, |x, r| x.sin() + 0.1 * r as f64);
    let engine = Cpu::default();
    let exact = model("exact", kernel, likelihood, 2, 1e-6);
    let own = model("vecchia(neighbours=60, latent=true)", kernel, likelihood, 2, 1e-6);
    let right = exact.evaluate(&engine, &counted(&data)).unwrap();
    let found = own.evaluate(&engine, &data).unwrap();
    close(found.value, right.value, 1e-5, "evidence");
    for (a, b) in found.gradient.iter().zip(&right.gradient) {
        close(*a, *b, 1e-4, "slope");
    }
    // with few neighbours both forms are near
    let few = |form: &str| {
        let own = model(&format!("vecchia(neighbours=12{form})"), kernel, likelihood, 2, 1e-6);
        own.evaluate(&engine, &data).unwrap().value
    };
    let (latent, response) = (few(", latent=true"), few(""));
    assert!((latent - right.value).abs() < 0.5 && (response - right.value).abs() < 2.0);
    assert_ne!(latent, response);
}

fn counted(data: &InMemory) -> InMemory {
    let own: Vec<usize> = (0..data.x.nrows()).filter(|i| data.weights[*i] != 0.0).collect();
    data.picked(&own)
}

fn close(found: f64, right: f64, tolerance: f64, what: &str) {
    assert!(
        (found - right).abs() <= tolerance * (1.0 + right.abs()),
        "{what}: {found} and {right}"
    );
}

#[test]
fn with_all_rows_for_neighbours_the_bound_is_that_of_dense_sites() {
    for (likelihood, kernels, target, columns) in CASES {
        let data = rows(*columns, target);
        let dense_rows = counted(&data);
        let mut dense = model("tvgp", kernels, likelihood, *columns, 1e-6);
        let method = Tvgp::of(dense.method).unwrap();
        for _ in 0..400 {
            let mut look = method.look(&dense, &dense_rows).unwrap();
            method.centre(&mut look, &mut dense);
            method.move_from(&look, &mut dense, &dense_rows, 0.5).unwrap();
        }
        let engine = Cpu::default();
        let right = dense.evaluate(&engine, &dense_rows).unwrap();
        let own = model("vecchia(neighbours=60)", kernels, likelihood, *columns, 1e-5);
        let found = own.evaluate(&engine, &data).unwrap();
        // rows at the same place have one jitter here and one each there
        close(found.value, right.value, 2e-5, likelihood);
        for (k, (a, b)) in found.gradient.iter().zip(&right.gradient).enumerate() {
            close(*a, *b, 2e-4, &format!("{likelihood}, slope {k}"));
        }
        let places = Mat::from_fn(12, 2, |i, q| 0.3 * i as f64 - 1.7 + q as f64);
        let posterior = own.method.posterior(&own, &engine, &data).unwrap();
        let other = dense.method.posterior(&dense, &engine, &dense_rows).unwrap();
        let (mean, variance) = posterior.predict_f(places.as_ref()).unwrap();
        let (right, spread) = other.predict_f(places.as_ref()).unwrap();
        for l in 0..mean.ncols() {
            for i in 0..12 {
                close(mean[(i, l)], right[(i, l)], 1e-4, likelihood);
                close(variance[(i, l)], spread[(i, l)], 1e-4, likelihood);
            }
        }
        let (_, joint) = posterior.predict_f_full(places.as_ref()).unwrap();
        let (_, right) = other.predict_f_full(places.as_ref()).unwrap();
        for (own, right) in joint.iter().zip(&right) {
            assert!((own - right).norm_max() < 1e-4, "{likelihood}");
        }
        let left = posterior.leave_one_out(&own, &dense_rows).unwrap();
        let right = other.leave_one_out(&dense, &dense_rows).unwrap();
        for i in 0..dense_rows.x.nrows() {
            close(left.log_density[(i, 0)], right.log_density[(i, 0)], 1e-3, likelihood);
        }
    }
}

#[test]
fn slopes_are_those_of_differences() {
    for (likelihood, kernels, target, columns) in CASES {
        let data = rows(*columns, target);
        let own = model("vecchia(neighbours=5)", kernels, likelihood, *columns, 1e-4);
        let engine = Cpu::default();
        // neighbours are held, as in a training: those of the moved lengthscales may be others
        assert!(own.method.hold(&own, &engine, &data).unwrap());
        assert!(!own.method.hold(&own, &engine, &data).unwrap());
        let found = own.evaluate(&engine, &data).unwrap();
        let paths: Vec<(String, usize)> =
            own.params().into_iter().map(|(path, own)| (path, own.len())).collect();
        assert_eq!(paths.iter().map(|own| own.1).sum::<usize>(), found.gradient.len());
        let h = 1e-4;
        let slots = paths.iter().flat_map(|(path, len)| (0..*len).map(move |k| (path, k)));
        for (slot, (path, k)) in slots.enumerate() {
            let at = |by: f64| {
                let mut moved = own.clone();
                let mut params = moved.params_mut();
                let param = &mut params.iter_mut().find(|(own, _)| own == path).unwrap().1;
                param.value_mut()[k] += by;
                drop(params);
                moved.evaluate(&engine, &data).unwrap().value
            };
            let right = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            close(found.gradient[slot], right, 2e-5, &format!("{likelihood}, {path}"));
        }
    }
}

/// Rows whose targets are missing are rows that are not there, a mean function is learnt, and threads change no bit.
#[test]
fn missing_targets_mean_functions_and_threads() {
    let (likelihood, kernels, target, _) = CASES[0];
    let mut data = rows(1, target);
    let gone: Vec<usize> = (0..ROWS).filter(|i| i % 6 == 2).collect();
    let left: Vec<usize> = (0..ROWS).filter(|i| i % 6 != 2).collect();
    let engine = Cpu::default();
    let mut own = model("vecchia(neighbours=60)", kernels, likelihood, 1, 1e-6);
    own.mean = crate::means::by_name("constant", 2, 1).unwrap();
    let right = own.evaluate(&engine, &data.picked(&left)).unwrap();
    gone.iter().for_each(|i| data.y[(*i, 0)] = f64::NAN);
    let found = own.evaluate(&engine, &data).unwrap();
    close(found.value, right.value, 1e-8, "bound");
    for (a, b) in found.gradient.iter().zip(&right.gradient) {
        close(*a, *b, 1e-5, "slope");
    }
    let before = own.params().into_iter().take_while(|own| !own.0.starts_with("mean"));
    let index: usize = before.map(|(_, own)| own.len()).sum();
    let at = |by: f64| {
        let mut moved = own.clone();
        let mut params = moved.params_mut();
        let (_, param) = params.iter_mut().find(|own| own.0.starts_with("mean")).unwrap();
        param.value_mut()[0] += by;
        drop(params);
        moved.evaluate(&engine, &data).unwrap().value
    };
    let slope = (at(1e-4) - at(-1e-4)) / 2e-4;
    close(found.gradient[index], slope, 1e-5, "slope of the mean");
    assert!(slope.abs() > 0.1, "{slope}");
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| own.evaluate(&engine, &data).unwrap().gradient)
    };
    assert_eq!(with(1), with(3));
}

/// Bounds, slopes and predictions by draws are those by a factor but for the error of 64 draws, and threads change no bit.
#[test]
fn draws_are_near_a_factor() {
    let engine = Cpu::default();
    let places = Mat::from_fn(12, 2, |i, q| 0.3 * i as f64 - 1.7 + q as f64);
    for (likelihood, kernels, target, columns) in &CASES[..4] {
        let data = rows(*columns, target);
        let of = |solver: &str| {
            let name = format!("vecchia(neighbours=7, solver={solver})");
            let own = model(&name, kernels, likelihood, *columns, 1e-5);
            assert_eq!(own.method.name(), name);
            own
        };
        let (drawn, exact) = (of("iterative"), of("cholesky"));
        let (found, right) =
            (drawn.evaluate(&engine, &data).unwrap(), exact.evaluate(&engine, &data).unwrap());
        let latents = exact.latents(*columns) as f64;
        assert!(
            (found.value - right.value).abs() < latents,
            "{likelihood}: {} and {}",
            found.value,
            right.value
        );
        assert_ne!(found.value, right.value);
        for (a, b) in found.gradient.iter().zip(&right.gradient) {
            assert!((a - b).abs() < 0.5 * latents + 0.1 * b.abs(), "{likelihood}: {a} and {b}");
        }
        let predict = |own: &Model| {
            own.method.posterior(own, &engine, &data).unwrap().predict_f(places.as_ref()).unwrap()
        };
        let ((mean, variance), (right, spread)) = (predict(&drawn), predict(&exact));
        for l in 0..mean.ncols() {
            for i in 0..12 {
                let apart = (mean[(i, l)] - right[(i, l)]).abs() / spread[(i, l)].sqrt();
                let ratio = variance[(i, l)] / spread[(i, l)];
                assert!(
                    apart < 0.1 && (0.7..1.4).contains(&ratio),
                    "{likelihood}: {apart}, {ratio}"
                );
            }
        }
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| drawn.evaluate(&engine, &data).unwrap().gradient)
        };
        assert_eq!(with(1), with(3));
    }
}

/// A count that is far too large for the first Newton step ends no training.
#[test]
fn a_count_far_from_all_others_is_taken() {
    let (likelihood, kernels, _, _) = CASES[0];
    let mut data = rows(1, |_, _| 0.0);
    data.y[(6, 0)] = 1e4;
    let value = |solver: &str| {
        let name = format!("vecchia(neighbours=9, solver={solver})");
        model(&name, kernels, likelihood, 1, 1e-5).evaluate(&Cpu::default(), &data).unwrap().value
    };
    let (drawn, exact) = (value("iterative"), value("cholesky"));
    assert!((drawn - exact).abs() < 1e-3 * exact.abs(), "{drawn} and {exact}");
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let error = find("vecchia(solver=lu)").map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("auto, cholesky or iterative"), "{error}");
    let error = find("full-scale(solver=iterative)").map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("`solver` is unknown"), "{error}");
    let parse = |own: &str| kernels::parse(own, Inputs::unnamed(2)).unwrap();
    let build = |method: &str, likelihood: &str, kernels: Vec<Box<dyn kernels::Kernel>>| {
        Model::builder(parse("rbf"), find(method).unwrap().method)
            .kernels(kernels)
            .likelihood(likelihoods::parse(likelihood).unwrap())
            .build(2, 2)
            .map(|_| ())
    };
    let two = || vec![parse("rbf"), parse("matern32")];
    let error = build("vecchia", "gaussian", two()).unwrap_err().to_string();
    assert!(error.contains("2 kernels") && error.contains("one with Gaussian noise"), "{error}");
    assert!(build("vecchia", "poisson", two()).is_ok());
    let error = build("full-scale", "poisson", vec![parse("rbf")]).unwrap_err().to_string();
    assert!(error.contains("full-scale"), "{error}");
}
