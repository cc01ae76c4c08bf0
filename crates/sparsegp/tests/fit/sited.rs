//! Nearest neighbours under other likelihoods than Gaussian noise, and in the latent form.

use crate::support::{fit, predict};
use crate::vecchia::{at, field, options};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, UpdateOptions, update};
use sparsegp::io;
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};

/// Counts about the exponential of a rough field, some places twice.
fn counts(n: usize, seed: &str) -> InMemory {
    let mut rows = field(n, seed);
    let mut rng = stream(4, seed);
    for i in 0..n {
        let mean = (rows.y[(i, 0)] - 3.0).exp();
        // of a Poisson distribution, by its times of arrival
        let (mut sum, mut count) = (-uniform(&mut rng).ln(), 0.0);
        while sum < mean {
            (sum, count) = (sum - uniform(&mut rng).ln(), count + 1.0);
        }
        rows.y[(i, 0)] = count;
    }
    for q in 0..2 {
        rows.x[(n - 1, q)] = rows.x[(0, q)];
    }
    rows
}

fn classes(n: usize, seed: &str) -> InMemory {
    let mut rows = field(n, seed);
    (0..n).for_each(|i| rows.y[(i, 0)] = f64::from(rows.y[(i, 0)] > 3.0));
    rows
}

fn table(rows: &InMemory) -> Dataset {
    Dataset::from_rows(rows.clone(), false).expect("a table")
}

fn fitted(rows: &InMemory, method: &str, likelihood: &str) -> Fitted {
    let options = FitOptions { likelihood: Some(likelihood.into()), ..options(method) };
    fit(&table(rows), &options).expect("a fit")
}

/// Joint draws of the function on the model's scale of the inputs, which are not scaled here.
fn draws(own: &Fitted, x: &Mat<f64>, samples: usize) -> Vec<Mat<f64>> {
    own.posterior.sample_f(x.as_ref(), samples, &mut stream(5, "draws")).expect("draws")
}

#[test]
fn few_neighbours_predict_counts_as_sites_of_all_rows_do() {
    let (rows, new) = (counts(220, "rows"), counts(400, "new"));
    let dense = fitted(&rows, "tvgp", "poisson");
    let near = fitted(&rows, "vecchia(neighbours=12)", "poisson");
    let density = |own: &Fitted| -> f64 {
        let all = own.log_density(new.x.as_ref(), new.y.as_ref(), &[]).expect("densities");
        all.iter().sum::<f64>() / 400.0
    };
    let (all, few) = (density(&dense), density(&near));
    assert!((all - few).abs() < 0.01, "{all} and {few}");
    let objective = |own: &Fitted| own.report.as_ref().expect("a report").objective;
    assert!((objective(&dense) - objective(&near)).abs() < 1.5);
    // with all rows for neighbours nothing is approximated
    let whole = at(&near.model, "vecchia(neighbours=250)");
    let engine = Cpu::default();
    let value = whole.evaluate(&engine, &*table(&rows).source).expect("a value").value;
    assert!((value - objective(&near)).abs() < 0.5, "{value}");
}

/// Draws in the place of a factor find nearly the same model, in about as many evaluations.
#[test]
fn counts_by_draws_are_those_by_a_factor() {
    let (rows, new) = (counts(400, "rows"), counts(200, "new"));
    let factor = fitted(&rows, "vecchia(neighbours=10, solver=cholesky)", "poisson");
    let drawn = fitted(&rows, "vecchia(neighbours=10, solver=iterative)", "poisson");
    let report = |own: &Fitted| own.report.clone().expect("a report");
    let (right, found) = (report(&factor), report(&drawn));
    assert!(
        (right.objective - found.objective).abs() < 2.0,
        "{} {}",
        right.objective,
        found.objective
    );
    assert!(
        found.evaluations <= 2 * right.evaluations,
        "{} {}",
        right.evaluations,
        found.evaluations
    );
    let (mean, variance) = factor.predict(new.x.as_ref(), Of::Latent).expect("predictions");
    let (other, spread) = drawn.predict(new.x.as_ref(), Of::Latent).expect("predictions");
    let mut apart = 0.0;
    for i in 0..200 {
        apart += (mean[(i, 0)] - other[(i, 0)]).powi(2) / variance[(i, 0)] / 200.0;
        let ratio = spread[(i, 0)] / variance[(i, 0)];
        assert!((0.6..1.7).contains(&ratio), "{ratio}");
    }
    assert!(apart < 0.02, "{apart}");
    // they average over the same draws each time, and say how far that leaves the bound
    let evaluate =
        || drawn.model.evaluate(&Cpu::default(), &*table(&rows).source).expect("a value");
    let values = [evaluate(), evaluate()].map(|own| (own.value, own.gradient));
    assert_eq!(values[0], values[1]);
    let noise = evaluate().diagnostics.noise;
    assert!(noise > 0.0 && noise < 1.0, "{noise}");
}

#[test]
fn files_updates_and_draws_are_those_of_the_model() {
    for method in ["vecchia(neighbours=10)", "vecchia(neighbours=10, solver=iterative)"] {
        files_updates_and_draws(method);
    }
}

fn files_updates_and_draws(method: &str) {
    let (rows, more) = (classes(200, "rows"), classes(50, "more"));
    let own = fitted(&rows, method, "bernoulli");
    let path = std::env::temp_dir().join(format!("sparsegp-sited-{}", std::process::id()));
    io::save(&own, &path).expect("a file");
    let loaded = io::load(&path).expect("the model");
    let _ = std::fs::remove_file(&path);
    let x = field(40, "new").x;
    assert_eq!(predict(&own, &x), predict(&loaded, &x));
    assert_eq!(draws(&own, &x, 2), draws(&loaded, &x, 2));
    let plain = UpdateOptions::default();
    let (updated, report) =
        update(&own, &table(&more), &plain, &mut |_, _| Ok(())).expect("an update");
    assert_eq!((report.rows, updated.rows), (50, 250));
    let both = |a: &Mat<f64>, b: &Mat<f64>| {
        Mat::from_fn(250, a.ncols(), |i, j| if i < 200 { a[(i, j)] } else { b[(i - 200, j)] })
    };
    let all = InMemory::new(both(&rows.x, &more.x), both(&rows.y, &more.y)).expect("rows");
    let posterior =
        own.model.posterior(&Cpu::default(), &*table(&all).source).expect("a posterior");
    let [a, b] =
        [&updated.posterior, &posterior].map(|own| own.predict_f(x.as_ref()).expect("moments"));
    assert!((&a.0 - &b.0).norm_max() < 1e-9 && (&a.1 - &b.1).norm_max() < 1e-9);
}

/// A map of thousands of places is drawn at the cost of its neighbours.
#[test]
fn draws_at_many_places_have_the_moments_of_predictions() {
    let own = fitted(&counts(250, "rows"), "vecchia(neighbours=10)", "poisson");
    let x = field(2000, "places").x;
    let (mean, variance) = own.predict(x.as_ref(), Of::Latent).expect("predictions");
    let draws = draws(&own, &x, 40);
    let mut square = 0.0;
    for draw in &draws {
        let each = (0..2000).map(|i| (draw[(i, 0)] - mean[(i, 0)]).powi(2) / variance[(i, 0)]);
        square += each.sum::<f64>() / 2000.0 / 40.0;
    }
    assert!((square - 1.0).abs() < 0.1, "{square}");
}

#[test]
fn gaussian_noise_may_be_taken_in_the_latent_form() {
    let rows = field(180, "rows");
    let exact = fitted(&rows, "exact", "gaussian");
    let latent = fitted(&rows, "vecchia(neighbours=14, latent=true)", "gaussian");
    assert_eq!(latent.model.method.name(), "vecchia(neighbours=14, latent=true)");
    // at the same hyperparameters
    let (engine, x) = (Cpu::default(), field(60, "new").x);
    let own = at(&exact.model, "vecchia(neighbours=40, latent=true)");
    let near = own.posterior(&engine, &*table(&rows).source).expect("a posterior");
    let [(a, u), (b, v)] =
        [&exact.posterior, &near].map(|own| own.predict_f(x.as_ref()).expect("moments"));
    for i in 0..60 {
        assert!((a[(i, 0)] - b[(i, 0)]).abs() < 0.1 * u[(i, 0)].sqrt(), "{i}");
        assert!((u[(i, 0)] / v[(i, 0)] - 1.0).abs() < 0.05, "{i}");
    }
    let value = own.evaluate(&engine, &*table(&rows).source).expect("a value").value;
    let objective = exact.report.as_ref().expect("a report").objective;
    assert!((value - objective).abs() < 0.5, "{value} {objective}");
}
