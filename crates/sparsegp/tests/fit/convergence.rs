//! Convergence says the truth: about gradients, whatever the units, and about q.

use sparsegp::data::InMemory;
use sparsegp::engine::{Cpu, Want};
use sparsegp::kernels::{self, Inputs};
use sparsegp::linalg::{Jitter, Mat};
use sparsegp::methods::{Tvgp, Uncollapsed};
use sparsegp::model::{Model, inducing_param};
use sparsegp::train::{TrainOptions, TrainReport, natural_step, train};
use sparsegp::variational::{Tying, Variational};
use sparsegp::{likelihoods, means, methods};

const COUNTS: [f64; 20] =
    [1., 0., 2., 3., 1., 4., 6., 5., 3., 2., 0., 1., 1., 0., 2., 1., 5., 8., 7., 4.];

fn counts() -> InMemory {
    let x = Mat::from_fn(20, 1, |i, _| -2.0 + 4.0 * i as f64 / 19.0);
    InMemory::new(x, Mat::from_fn(20, 1, |i, _| COUNTS[i])).expect("rows")
}

/// A model by hand, with ten of the rows as inducing points where there are such.
fn model(method: &str, kernel: &str, likelihood: &str, mean: &str, data: &InMemory) -> Model {
    let entry = methods::find(method).expect("a method");
    let likelihood = likelihoods::parse(likelihood).expect("a likelihood");
    let (n, d, latents) = (data.x.nrows(), data.x.ncols(), likelihood.latents());
    let kernel = kernels::parse(kernel, Inputs::unnamed(d)).expect("a kernel");
    let kernels = vec![kernel; if likelihood.separate_kernels() { latents } else { 1 }];
    let points = Mat::from_fn(n / 2, d, |i, j| data.x[(2 * i, j)]);
    let q = entry.method.with_q().map(|q| q.start([n, n / 2, latents], Tying::Natural, false));
    Model {
        kernels,
        mean: means::by_name(mean, d, latents).expect("a mean"),
        likelihood,
        inducing: match entry.method.is_sparse() {
            true => vec![inducing_param(points.as_ref())],
            false => Vec::new(),
        },
        q,
        method: entry.method,
        jitter: Jitter::default(),
        hidden: Vec::new(),
    }
}

fn trained(model: &mut Model, data: &InMemory, options: &TrainOptions) -> TrainReport {
    train(model, &Cpu::default(), data, options, &mut ()).expect("a training")
}

/// Under a wide prior E[exp f] is up to e⁴⁵⁰: no natural-gradient step from the prior leads anywhere. The optima are from SciPy's BFGS over the
/// parameters of Opper & Archambeau (2009), without gradients of ours.
#[test]
fn wide_priors_with_exponential_links_end_at_the_optimum() {
    let data = counts();
    for (variance, optimum) in [(1.0, -41.90704), (100.0, -46.98573), (900.0, -54.65732)] {
        let kernel = format!("rbf(variance={variance}, lengthscales=1)");
        let mut with_points = Vec::new();
        for method in ["tvgp", "tsvgp", "svgp"] {
            let mut own = model(method, &kernel, "poisson", "zero", &data);
            own.freeze("kernel", true).expect("a kernel");
            if method != "tvgp" {
                own.freeze("inducing.points", true).expect("points");
                // ten points for a smooth function leave little unexplained, but of a wide prior
                own.jitter = Jitter::Absolute(1e-9 * variance);
            }
            let report = trained(&mut own, &data, &TrainOptions::default());
            assert!(report.converged, "{method} {variance}: {}", report.stopped);
            let apart = report.objective - optimum;
            if method == "tvgp" {
                assert!((-1e-4..1e-3).contains(&apart), "{variance}: {} {apart}", report.objective);
            } else {
                assert!(apart < 1e-3, "{method} {variance}: {} {apart}", report.objective);
                with_points.push(report.objective);
            }
        }
        // with ten points the optimum is another, to which sites and moments come by different ways
        let apart = with_points[0] - with_points[1];
        assert!(apart.abs() < 1e-3, "{variance}: {with_points:?}");
    }
    // two latent functions, and other links
    for likelihood in ["heteroscedastic", "exponential", "gamma"] {
        let positive = InMemory::new(data.x.clone(), &data.y + Mat::from_fn(20, 1, |_, _| 0.3));
        let positive = positive.expect("rows");
        let ends = ["tvgp", "tsvgp", "svgp"].map(|method| {
            let mut own =
                model(method, "rbf(variance=60, lengthscales=1)", likelihood, "zero", &positive);
            own.freeze("kernel", true).expect("a kernel");
            if method != "tvgp" {
                own.freeze("inducing.points", true).expect("points");
            }
            own.freeze("likelihood", true).ok();
            let report = trained(&mut own, &positive, &TrainOptions::default());
            assert!(
                report.converged || method == "svgp",
                "{likelihood} {method}: {}",
                report.stopped
            );
            report.objective
        });
        assert!(ends[0] > -200.0 && (ends[1] - ends[2]).abs() < 0.05, "{likelihood}: {ends:?}");
        assert!(ends[0] > ends[1] - 1e-3, "{likelihood}: {ends:?}");
    }
}

/// Nothing helps q here: that is said.
#[test]
fn a_q_that_cannot_be_settled_is_not_convergence() {
    let data = counts();
    let mut own = model("tvgp", "rbf(variance=100, lengthscales=1)", "poisson", "zero", &data);
    own.freeze("kernel", true).expect("a kernel");
    let mut options = TrainOptions::default();
    // steps that are far too short
    options.em.rate = Some(1e-9);
    let report = trained(&mut own, &data, &options);
    assert!(!report.converged, "{}", report.stopped);
    assert!(report.stopped.contains("not an optimum"), "{}", report.stopped);
}

/// `natural_step` takes back what leads to no bound; a shorter step is taken.
#[test]
fn a_step_without_a_bound_is_taken_back() {
    let data = counts();
    for method in ["tvgp", "tsvgp", "svgp"] {
        let mut own = model(method, "rbf(variance=400, lengthscales=1)", "poisson", "zero", &data);
        // as many points as rows: with fewer the step has a bound
        if method != "tvgp" {
            own.inducing = vec![inducing_param(data.x.as_ref())];
            own.q = Some(match method {
                "tsvgp" => Variational::sites(20, 1, Tying::Natural),
                _ => Variational::prior(20, 1, false),
            });
        }
        let before = own.q.clone();
        let engine = Cpu::default();
        let first = natural_step(&mut own, &engine, &data, 1.0);
        assert!(first.is_err_and(|e| e.is_recoverable()), "{method}");
        assert_eq!(own.q, before, "{method}");
        let value = natural_step(&mut own, &engine, &data, 1e-90).expect("a short step");
        let moved = natural_step(&mut own, &engine, &data, 1e-90).expect("a short step");
        assert!(own.q != before && moved > value, "{method}: {value} {moved}");
    }
}

/// The first-order rise along a natural-gradient step is its squared length, by differences.
#[test]
fn what_a_step_promises_is_its_slope() {
    let data = counts();
    for (method, likelihood) in
        [("tsvgp", "poisson"), ("svgp", "poisson"), ("tsvgp", "bernoulli"), ("tvgp", "poisson")]
    {
        let binary = InMemory::new(
            data.x.clone(),
            Mat::from_fn(20, 1, |i, _| f64::from(u8::from(COUNTS[i] > 2.0))),
        );
        let data = if likelihood == "bernoulli" { binary.expect("rows") } else { data.clone() };
        let mut own =
            model(method, "rbf(variance=1.7, lengthscales=0.8)", likelihood, "zero", &data);
        let engine = Cpu::default();
        natural_step(&mut own, &engine, &data, 0.4).expect("a step");
        let at = |rate: f64| {
            let mut moved = own.clone();
            natural_step(&mut moved, &engine, &data, rate).expect("a step");
            match Tvgp::of(moved.method) {
                Ok(method) => method.value(&moved, &data).expect("a bound"),
                Err(_) => {
                    let method = Uncollapsed::of(moved.method).expect("a method with q");
                    method.step(&moved, &engine, &data, Want::Value).expect("a bound").value
                }
            }
        };
        let (promise, value) = match Tvgp::of(own.method) {
            Ok(method) => {
                let look = method.look(&own, &data).expect("a look");
                (method.promise(&look, &own, &data.x).expect("a promise"), look.value)
            }
            Err(_) => {
                let method = Uncollapsed::of(own.method).expect("a method with q");
                let step = method.step(&own, &engine, &data, Want::Statistics).expect("a step");
                (step.promise(), step.value)
            }
        };
        // Richardson's extrapolation of one-sided differences
        let slope = |h: f64| (at(h) - value) / h;
        let h = 1e-3;
        let slope = (8.0 * slope(h / 4.0) - 6.0 * slope(h / 2.0) + slope(h)) / 3.0;
        assert!((promise / slope - 1.0).abs() < 1e-5, "{method} {likelihood}: {promise} {slope}");
    }
}

/// Numbers, and the same in other units: kernel, noise and mean begin there, too.
fn in_units(method: &str, mean: &str, unit: f64) -> (TrainReport, Model, InMemory) {
    let x = Mat::from_fn(60, 1, |i, _| 1900.0 + 2.0 * i as f64);
    let noise = |i: usize| ((i * i + 7) as f64 * 0.7311).fract() - 0.5;
    let y = Mat::from_fn(60, 1, |i, _| {
        unit * (14.0 + 0.02 * (x[(i, 0)] - 1960.0) + 0.4 * (0.3 * i as f64).sin() + 0.3 * noise(i))
    });
    let data = InMemory::new(x, y).expect("rows");
    let kernel = format!("rbf(variance={:e}, lengthscales=6)", 0.3 * unit * unit);
    let likelihood = format!("gaussian(variance={:e})", 0.02 * unit * unit);
    let mut own = model(method, &kernel, &likelihood, mean, &data);
    let report = trained(&mut own, &data, &TrainOptions::default());
    (report, own, data)
}

#[test]
fn units_of_the_targets_do_not_matter() {
    for (method, mean) in [("exact", "constant"), ("exact", "linear"), ("titsias2025", "linear")] {
        let (one, ..) = in_units(method, mean, 1.0);
        assert!(one.converged, "{method} {mean}: {}", one.stopped);
        for unit in [1e3, 1e6] {
            let (other, ..) = in_units(method, mean, unit);
            assert!(other.converged, "{method} {mean} {unit}: {}", other.stopped);
            let level = 60.0 * f64::ln(unit);
            // of a hundred iterations the last may differ by rounding
            let pairs = one.trace.iter().zip(&other.trace).take(12);
            for (a, b) in pairs {
                let apart = a.objective - b.objective - level;
                assert!(apart.abs() < 1e-5, "{method} {mean} {unit} {}: {apart}", a.iteration);
            }
            let apart = one.objective - other.objective - level;
            assert!(apart.abs() < 1e-5, "{method} {mean} {unit}: {apart}");
            assert!(one.iterations.abs_diff(other.iterations) <= 2, "{method} {mean} {unit}");
        }
    }
}

/// At an optimum constant and slope are those of generalised least squares, (HᵀK⁻¹H)⁻¹HᵀK⁻¹y at the kernel found.
#[test]
fn trained_means_are_generalised_least_squares() {
    for unit in [1.0, 3e4] {
        let (report, own, data) = in_units("exact", "linear", unit);
        assert!(report.converged, "{}", report.stopped);
        let n = data.x.nrows();
        let of = |path: &str| {
            own.params().iter().find(|(p, _)| p == path).expect("a parameter").1.value()[0]
        };
        let (variance, length) = (of("kernel.variance"), of("kernel.lengthscales"));
        let k = Mat::from_fn(n, n, |i, j| {
            let apart = (data.x[(i, 0)] - data.x[(j, 0)]) / length;
            let noise = if i == j { of("likelihood.variance") } else { 0.0 };
            variance * (-0.5 * apart * apart).exp() + noise
        });
        let factor =
            sparsegp::linalg::Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K").expect("K");
        let h = Mat::from_fn(n, 2, |i, j| if j == 0 { 1.0 } else { data.x[(i, 0)] - 1960.0 });
        let (kh, ky) = (factor.solve(h.as_ref()), factor.solve(data.y.as_ref()));
        let (a, b) = (h.transpose() * &kh, h.transpose() * &ky);
        let determinant = a[(0, 0)] * a[(1, 1)] - a[(0, 1)] * a[(1, 0)];
        let level = (a[(1, 1)] * b[(0, 0)] - a[(0, 1)] * b[(1, 0)]) / determinant;
        let slope = (a[(0, 0)] * b[(1, 0)] - a[(1, 0)] * b[(0, 0)]) / determinant;
        let (own_slope, own_level) =
            (of("mean.weights"), of("mean.constant") + 1960.0 * of("mean.weights"));
        assert!((own_slope - slope).abs() < 1e-4 * slope.abs(), "{own_slope} {slope}");
        assert!((own_level - level).abs() < 1e-5 * level.abs(), "{own_level} {level}");
    }
}

/// Steps of one size end sites of two classes 10⁻⁵ nats below their optimum; the last digits are there without a tolerance, or
/// with a small one.
#[test]
fn a_tolerance_is_for_q_too() {
    let x = Mat::from_fn(30, 1, |i, _| i as f64 / 2.9);
    let y = Mat::from_fn(30, 1, |i, _| f64::from(u8::from((i as f64 / 2.9).sin() > 0.0)));
    let data = InMemory::new(x, y).expect("rows");
    let end = |options: &TrainOptions| {
        let kernel = "rbf(variance=25, lengthscales=1.33)";
        let mut own = model("tvgp", kernel, "bernoulli(link=logit)", "zero", &data);
        own.freeze("kernel", true).expect("a kernel");
        let report = trained(&mut own, &data, options);
        assert!(report.converged, "{}", report.stopped);
        let start = report.objective;
        for _ in 0..300 {
            natural_step(&mut own, &Cpu::default(), &data, 0.3).expect("a step");
        }
        own.evaluate(&Cpu::default(), &data).expect("a bound").value - start
    };
    let (usual, sharp) = (end(&TrainOptions::default()), end(&TrainOptions::ending_at(1e-11)));
    assert!(usual.abs() < 1e-7, "{usual}");
    assert!(sharp.abs() < 1e-8, "{sharp}");
    let coarse = end(&TrainOptions::ending_at(1e-3));
    assert!(coarse > 10.0 * usual.abs().max(1e-9), "{coarse}");
}
