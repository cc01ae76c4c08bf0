//! A try.

#[path = "/tmp/wt-a/bench/src/bin/papers/thesis/ep/mod.rs"]
mod ep;

use sparsegp::data::{Loaded, Mask};
use sparsegp::fit::{Dataset, Standardise};
use sparsegp::inducing::select::kmeans;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::metrics::classes::{ClassMetrics, ClassOptions};
use sparsegp::rng::{below, permutation, stream, uniform};
use sparsegp_bench::{class_scores, load};
use std::f64::consts::TAU;
use std::time::Instant;

fn clusters(variance: f64, rows: usize, name: &str, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = stream(seed, &format!("{name}/{variance}"));
    let (mut x, mut y) = (Mat::zeros(rows, 2), Mat::zeros(rows, 1));
    for i in 0..rows {
        let class = below(&mut rng, 3) as f64;
        let radius = (-2.0 * variance * (1.0 - uniform(&mut rng)).ln()).sqrt();
        let turn = TAU * uniform(&mut rng);
        x[(i, 0)] = (TAU * class / 3.0).cos() + radius * turn.cos();
        x[(i, 1)] = (TAU * class / 3.0).sin() + radius * turn.sin();
        y[(i, 0)] = class;
    }
    (x, y)
}

fn folds(all: &Loaded, count: usize, seed: u64) -> sparsegp::Result<Vec<(Loaded, Loaded)>> {
    let n = all.x.nrows();
    let mut fold = vec![0; n];
    let order = permutation(&mut stream(seed, "folds"), n, n);
    order.iter().enumerate().for_each(|(at, row)| fold[*row] = at % count);
    let part = |k| {
        let mask = Mask::new("fold", fold.iter().map(|f| *f == k));
        Ok((all.rows_where(&mask, false)?, all.rows_where(&mask, true)?))
    };
    (0..count).map(part).collect()
}

fn main() -> sparsegp::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    if args[1] == "clusters" {
        for v in &args[2..] {
            let variance: f64 = v.parse().unwrap();
            let (mut x, y) = clusters(
                variance,
                std::env::var("ROWS").map_or(500, |r| r.parse().unwrap()),
                "training",
                0,
            );
            let (mut new_x, new_y) = clusters(variance, 2000, "test", 0);
            let likelihood = likelihoods::parse("softmax(classes=3)")?;
            let data =
                Dataset::from_arrays(x.clone(), y.clone(), Standardise::all_that(&*likelihood))?;
            data.scaler.scale_x(x.as_mut())?;
            data.scaler.scale_x(new_x.as_mut())?;
            let clock = Instant::now();
            let kernel = parse("rbf(ard=false)", Inputs::unnamed(2))?;
            let fitted = ep::Heaviside::train(kernel, x, y.col_as_slice(0), 100)?;
            let seconds = clock.elapsed().as_secs_f64();
            let p = fitted.predict_proba(new_x.as_ref());
            let mut scores = ClassMetrics::new(3, ClassOptions { bins: 10, auc: false })?;
            scores.add(new_y.col_as_slice(0), p.as_ref(), None)?;
            let found = scores.finish()?;
            println!(
                "{variance}: error {:.4} NLL {:.4} ECE {:.4}; {seconds:.1} s",
                1.0 - found.accuracy,
                found.log_loss,
                found.ece,
                fitted.log_evidence,
                fitted.hyperparameters()
            );
        }
    } else {
        let likelihood = likelihoods::parse("bernoulli(link=logit)")?;
        let mut all = Vec::new();
        for (training, test) in folds(&load("diabetes", true), 10, 0)? {
            let data = Dataset::from_loaded(training.clone(), Standardise::all_that(&*likelihood))?;
            let (mut x, mut new_x) = (training.x.clone(), test.x.clone());
            let clock = Instant::now();
            data.scaler.scale_x(x.as_mut())?;
            data.scaler.scale_x(new_x.as_mut())?;
            let z = kmeans(x.as_ref(), 100, &mut stream(0, "inducing"))?.points;
            let kernel = parse("rbf", Inputs::unnamed(x.ncols()))?;
            let fitted = ep::Probit::train(kernel, x, training.y.col_as_slice(0), z, 100)?;
            let seconds = clock.elapsed().as_secs_f64();
            let (wrong, log) = class_scores(&fitted.predict_proba(new_x.as_ref()), &test.y);
            println!("error {wrong:.4} NLL {log:.4}; {seconds:.2} s", fitted.log_evidence);
            all.push([wrong, log, seconds]);
        }
        for k in 0..3 {
            let m = all.iter().map(|a| a[k]).sum::<f64>() / 10.0;
            let s = (all.iter().map(|a| (a[k] - m).powi(2)).sum::<f64>() / 90.0).sqrt();
            println!("{m:.4} ± {s:.4}");
        }
    }
    Ok(())
}
