//! A stream against minibatches and against all rows at once; a million rows; rows that change.

use crate::common::{Drawn, JITTER, Learn, Stream, cut, head, normal, number, option, rbf, row};
use rand_chacha::ChaCha8Rng;
use sparsegp::data::{InMemory, Sample};
use sparsegp::engine::{Cpu, Want};
use sparsegp::fit::{Dataset, FitOptions, Fitted, Scaling, UpdateOptions, fit, update};
use sparsegp::inducing::select::kmeans;
use sparsegp::likelihoods;
use sparsegp::linalg::{Mat, MatRef};
use sparsegp::methods::Uncollapsed;
use sparsegp::model::{Model, inducing_param};
use sparsegp::train::TrainOptions;
use sparsegp::variational::Variational;
use sparsegp::{means, methods, rng};
use std::time::Instant;

fn rows(n: usize, generator: &mut ChaCha8Rng) -> (Mat<f64>, Vec<f64>) {
    let x = Mat::from_fn(n, 2, |_, _| 6.0 * rng::uniform(generator) - 3.0);
    let f = |i: usize| (1.5 * x[(i, 0)]).sin() + 0.5 * (2.0 * x[(i, 1)]).cos();
    let y = (0..n).map(|i| f(i) + 0.2 * normal(generator)).collect();
    (x, y)
}

fn loss(mean: &[f64], variance: &[f64], noise: f64, y: &[f64]) -> f64 {
    let one = |i: usize| {
        let v = variance[i] + noise;
        0.5 * ((std::f64::consts::TAU * v).ln() + (y[i] - mean[i]).powi(2) / v)
    };
    (0..y.len()).map(one).sum::<f64>() / y.len() as f64
}

/// One pass over a stream, natural-gradient steps on minibatches of 100 (Hoffman et al. 2013), all rows at once; kernel, noise and
/// points fixed.
pub fn against(arguments: &[String]) -> Drawn {
    let n = number(arguments, "--rows", 20_000.0) as usize;
    let m = number(arguments, "--inducing", 100.0) as usize;
    let mut generator = rng::stream(8, "scaling");
    let ((x, y), (test_x, test_y)) = (rows(n, &mut generator), rows(2000, &mut generator));
    let (noise, length) = (0.04, 1.0);
    let z = kmeans(cut(&x, 0, 2000).as_ref(), m, &mut rng::stream(0, "points"))?.points;
    let data = InMemory::new(x.clone(), Mat::from_fn(n, 1, |i, _| y[i]))?;
    let model = |method: &str| -> Result<Model, Box<dyn std::error::Error>> {
        let entry = methods::find(method)?;
        let q = entry.method.has_q().then(|| Variational::prior(m, 1, false));
        Ok(Model {
            kernels: vec![rbf(1.0, length, 2)],
            mean: Box::new(means::Zero),
            likelihood: likelihoods::parse(&format!("gaussian(variance={noise})"))?,
            inducing: vec![inducing_param(z.as_ref())],
            q,
            method: entry.method,
            jitter: JITTER,
            hidden: Vec::new(),
        })
    };
    println!("\n### {n} rows × 2, M = {m}, kernel, noise and points fixed");
    head(&["", "seconds", "test NLL", "largest difference of means", "of variances"]);
    let begun = Instant::now();
    let whole = model("titsias2009")?.posterior(&Cpu::default(), &data)?;
    let seconds = begun.elapsed().as_secs_f64();
    let (mean, variance) = whole.predict_f(test_x.as_ref())?;
    let (mean, variance) = (mean.col_as_slice(0).to_vec(), variance.col_as_slice(0).to_vec());
    let tell = |name: &str, seconds: f64, own: (Vec<f64>, Vec<f64>)| {
        let far =
            |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        row(&[
            name.into(),
            format!("{seconds:.3}"),
            format!("{:.4}", loss(&own.0, &own.1, noise, &test_y)),
            format!("{:.1e}", far(&own.0, &mean)),
            format!("{:.1e}", far(&own.1, &variance)),
        ]);
    };
    tell("all rows at once", seconds, (mean.clone(), variance.clone()));
    for batch in [100, 1000] {
        let begun = Instant::now();
        let mut stream = Stream::new(1.0, length, Some(noise), 2);
        for from in (0..n).step_by(batch) {
            let count = batch.min(n - from);
            stream.take(
                &cut(&x, from, count),
                &y[from..from + count],
                z.clone(),
                Learn::Nothing,
            )?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        tell(&format!("stream, batches of {batch}"), seconds, stream.predict(&test_x));
    }
    for (rate, epochs) in [(0.1, 1), (0.1, 5), (0.02, 5)] {
        let mut own = model("svgp")?;
        let method = Uncollapsed::of(own.method).map_err(|_| "no q")?;
        let begun = Instant::now();
        for epoch in 0..epochs {
            let order = rng::permutation(&mut rng::stream(epoch, "minibatches"), n, n);
            for picked in order.chunks(100) {
                let part = InMemory::new(
                    Mat::from_fn(picked.len(), 2, |i, q| x[(picked[i], q)]),
                    Mat::from_fn(picked.len(), 1, |i, _| y[picked[i]]),
                )?;
                let part = Sample { rows: Box::new(part), population: n };
                let mut step = method.step(&own, &Cpu::default(), &part, Want::Statistics)?;
                step.natural(&mut own, rate)?;
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let (mean, variance) = own.posterior(&Cpu::default(), &data)?.predict_f(test_x.as_ref())?;
        let own = (mean.col_as_slice(0).to_vec(), variance.col_as_slice(0).to_vec());
        tell(&format!("minibatches of 100, rate {rate}, {epochs} epochs"), seconds, own);
    }
    Ok(())
}

/// Load of a grid by minutes, as it might be: hours, days, temperature; `t` in [0, 1] is where in the stream.
fn load_row(i: usize, n: usize, generator: &mut ChaCha8Rng) -> ([f64; 3], f64) {
    let tau = std::f64::consts::TAU;
    let (hour, day) = ((i as f64 / 60.0) % 24.0, ((i / 1440) % 7) as f64);
    let season = (tau * 3.0 * i as f64 / n as f64).sin();
    let temperature = 15.0 + 10.0 * season + 3.0 * (tau * hour / 24.0).sin() + normal(generator);
    let daily = (tau * hour / 24.0).sin() + 0.4 * (2.0 * tau * hour / 24.0).sin();
    let weather = 0.05 * (temperature - 20.0).max(0.0)
        + 0.02 * (8.0 - temperature).max(0.0) * (tau * hour / 24.0).cos();
    let weekend = if day >= 5.0 { 0.3 } else { 0.0 };
    ([hour, day, temperature], daily + weather + weekend + 0.15 * normal(generator))
}

fn table(rows: &[([f64; 3], f64)]) -> (Mat<f64>, Mat<f64>) {
    (
        Mat::from_fn(rows.len(), 3, |i, q| rows[i].0[q]),
        Mat::from_fn(rows.len(), 1, |i, _| rows[i].1),
    )
}

fn score(fitted: &Fitted, x: MatRef<f64>, y: MatRef<f64>) -> f64 {
    let density = fitted.log_density(x, y, &[]).expect("densities");
    -density.iter().sum::<f64>() / density.len() as f64
}

/// The rows on the scales of a model.
fn scaled(fitted: &Fitted, rows: &[([f64; 3], f64)]) -> Dataset {
    let (x, y) = table(rows);
    Dataset::from_arrays(x, y, Scaling::Given(fitted.scaler.clone())).expect("rows")
}

/// A million rows in batches of 1000 after a fit to the first few, against the posterior of all of them at once.
pub fn electricity(arguments: &[String]) -> Drawn {
    let n = number(arguments, "--rows", 1e6) as usize;
    let m = number(arguments, "--inducing", 300.0) as usize;
    let batch = number(arguments, "--batch", 1000.0) as usize;
    let correlation = number(arguments, "--correlation", 0.0);
    let mut generator = rng::stream(2, "load");
    let all: Vec<([f64; 3], f64)> = (0..n).map(|i| load_row(i, n, &mut generator)).collect();
    let test: Vec<([f64; 3], f64)> =
        (0..5000).map(|i| load_row(i * (n / 5000), n, &mut generator)).collect();
    let (test_x, test_y) = table(&test);
    // a sample of the stream, as a history would be
    let start: Vec<([f64; 3], f64)> =
        rng::permutation(&mut generator, n, 4000).into_iter().map(|i| all[i]).collect();
    let (x, y) = table(&start);
    let dataset = Dataset::from_arrays(x, y, true)?;
    let options = FitOptions {
        method: "titsias2009".into(),
        inducing: Some(m),
        train: TrainOptions { max_iterations: 100, ..TrainOptions::default() },
        kernel: "rbf".into(),
        ..FitOptions::default()
    };
    let first = fit(&dataset, &options, &Cpu::default(), &mut ())?;
    // what the history said is part of the stream: the stream begins with nothing
    let mut stream = first.clone();
    let options = UpdateOptions { correlation, most_points: Some(m), ..UpdateOptions::default() };
    println!(
        "\n### {n} rows × 3 in batches of {batch}, M ≤ {m}, kernel and noise of a fit to 4000 rows"
    );
    let (mut learning, mut predicting, mut before) = (0.0, 0.0, 0.0);
    for part in all.chunks(batch) {
        let (x, y) = table(part);
        let begun = Instant::now();
        before += score(&stream, x.as_ref(), y.as_ref()) * part.len() as f64;
        predicting += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let rows = scaled(&stream, part);
        stream = update(&stream, &rows, &options, &mut |_, _| Ok(()))?.0;
        learning += begun.elapsed().as_secs_f64();
    }
    let whole = scaled(&first, &all);
    let begun = Instant::now();
    let posterior = first.model.posterior(&Cpu::default(), &*whole.source)?;
    let at_once = Fitted { posterior, ..first.clone() };
    let of_batch = begun.elapsed().as_secs_f64();
    head(&["", "test NLL", "seconds", "rows/s"]);
    let tell = |name: &str, loss: f64, seconds: f64| {
        let rate = format!("{:.0}", n as f64 / seconds);
        row(&[name.into(), format!("{loss:.4}"), format!("{seconds:.1}"), rate]);
    };
    let of = |fitted: &Fitted| score(fitted, test_x.as_ref(), test_y.as_ref());
    row(&["the 4000 rows".into(), format!("{:.4}", of(&first)), "–".into(), "–".into()]);
    tell("stream, learning", of(&stream), learning);
    tell("stream, predictions before learning", before / n as f64, predicting);
    tell("stream, both", of(&stream), learning + predicting);
    tell("all rows at once", of(&at_once), of_batch);
    Ok(())
}

/// A relation that turns in the middle of the stream, by what is left of old rows.
pub fn drift(arguments: &[String]) -> Drawn {
    let n = number(arguments, "--rows", 20_000.0) as usize;
    let factors = option(arguments, "--forget").unwrap_or_else(|| "1,0.99,0.95,0.9,0.8".into());
    let factors: Vec<f64> = factors.split(',').map(|f| f.parse().expect("numbers")).collect();
    println!(
        "\n### A stream of {n} rows of which the relation turns, batches of 100, NLL before learning"
    );
    head(&["forgetting", "still", "slow turn", "sudden turn"]);
    for factor in factors {
        let mut cells = vec![format!("{factor}")];
        for kind in ["still", "slow", "sudden"] {
            let mut generator = rng::stream(5, "drift");
            let phase = |i: usize| match kind {
                "still" => 0.0,
                "slow" => 2.0 * i as f64 / n as f64,
                _ => f64::from(i > n / 2) * 2.0,
            };
            let z = Mat::from_fn(25, 1, |i, _| i as f64 / 2.4 - 5.0);
            let mut stream = Stream::new(1.0, 1.0, Some(0.04), 1);
            let (mut loss, mut count) = (0.0, 0.0);
            for from in (0..n).step_by(100) {
                let x = Mat::from_fn(100, 1, |_, _| 10.0 * rng::uniform(&mut generator) - 5.0);
                let f = |i: usize| (x[(i, 0)] + phase(from + i)).sin();
                let y: Vec<f64> = (0..100).map(|i| f(i) + 0.2 * normal(&mut generator)).collect();
                if from > 0 {
                    loss += stream.score(&x, &y).0;
                    count += 1.0;
                    if factor < 1.0 {
                        let kernel = stream.kernel();
                        stream.sites[0].forget(factor, &*kernel, JITTER)?;
                    }
                }
                stream.take(&x, &y, z.clone(), Learn::Nothing)?;
            }
            cells.push(format!("{:.4}", loss / count));
        }
        row(&cells);
    }
    Ok(())
}
