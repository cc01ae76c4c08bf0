//! Figures 3 and 6: NLL by time with local variables and without.

use sparsegp::data::{InMemory, Mask};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise, prepare};
use sparsegp::likelihoods;
use sparsegp::model::{Model, Posterior};
use sparsegp::train::{Surroundings, TrainingState, train_batches};
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use std::time::Instant;

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "aaci-figure3",
    paper: "aaci",
    item: "Figures 3 and 6",
    shows: "NLL by time for likelihoods with local variables, by `svi` and by `svgp`",
    data: &[Data::Substitute { of: "Protein, Airline, Covtype and SUSY", by: "protein" }],
    protocol: "every tenth row to predict, one thread, M = 200, minibatches of 100, 300 iterations; \
               looks at test rows are not \
               counted",
    scaled: "one table for four, without the logistic likelihood; 20 000 rows",
    rule: "`svi` is within 0.01 of its last NLL at least ten times as soon as `svgp`; a check for every likelihood",
    body: Body::Program(run),
    ..BLANK
};

/// Mean negative log density of test rows.
fn score(model: &Model, test: &InMemory) -> sparsegp::Result<f64> {
    let at = Posterior::of_q(model)?;
    let (n, mut sum) = (test.x.nrows(), 0.0);
    for start in (0..n).step_by(256) {
        let count = 256.min(n - start);
        let (x, y) = (test.x.as_ref().subrows(start, count), test.y.as_ref().subrows(start, count));
        sum -= at.predict_log_density(x, y, &[])?.iter().sum::<f64>();
    }
    Ok(sum / n as f64)
}

/// Seconds and NLL every ten iterations.
fn curve(
    run: &Run<'_>,
    likelihood: &str,
    method: &str,
    m: usize,
) -> sparsegp::Result<Vec<(f64, f64)>> {
    let built = likelihoods::parse(likelihood)?;
    let all = load("protein", false);
    let n = all.x.nrows();
    let step = n.div_ceil(run.size([400, 20_000, 50_000, 50_000]));
    let chosen = Mask::new("some", (0..n).map(|i| i.is_multiple_of(step)));
    let all = all.rows_where(&chosen, true)?;
    let tests = Mask::new("a tenth", (0..n).map(|i| (i / step).is_multiple_of(10)));
    let (training, test) = (all.rows_where(&tests, false)?, all.rows_where(&tests, true)?);
    let dataset = Dataset::from_loaded(training, Standardise::all_that(&*built))?;
    let options = FitOptions {
        kernel: "rbf".into(),
        likelihood: Some(likelihood.into()),
        method: method.into(),
        inducing: Some(m),
        pilot: 0,
        seed: run.seed(),
        ..FitOptions::default()
    };
    let engine = Cpu::default();
    let mut model = prepare(&dataset, &options, &engine, &mut ())?.model;
    let (mut x, mut y) = (test.x.clone(), test.y.clone());
    dataset.scaler.scale_x(x.as_mut())?;
    dataset.scaler.scale_y(y.as_mut())?;
    let held = InMemory::new(x, y)?;
    let mut training = BatchOptions::default().training;
    let iterations = run.size([20_usize, 300, 3000, 3000]);
    training.epochs = Some(iterations.div_ceil(dataset.source.rows().div_ceil(100)).max(1));
    training.checkpoint_seconds = 0.0;
    // whoever takes checkpoints sees the model after every minibatch; its own time does not count
    let (mut apart, mut curve, clock) = (0.0, Vec::new(), Instant::now());
    let mut look = |model: &Model, state: &TrainingState| {
        let start = Instant::now();
        if state.iterations.is_multiple_of(10) {
            curve.push((clock.elapsed().as_secs_f64() - apart, score(model, &held)?));
        }
        apart += start.elapsed().as_secs_f64();
        Ok(())
    };
    let mut source = dataset.source.batches(100, run.seed())?;
    let around = Surroundings { checkpoint: Some(&mut look), ..Surroundings::default() };
    train_batches(&mut model, &engine, &mut *source, &training, around, &mut ())?;
    Ok(curve)
}

/// When a curve is within 0.01 of its end for good.
fn there(curve: &[(f64, f64)]) -> f64 {
    let last = curve.last().map_or(f64::NAN, |p| p.1);
    let far = curve.iter().rposition(|p| (p.1 - last).abs() > 0.01);
    curve.get(far.map_or(0, |at| at + 1)).map_or(f64::NAN, |p| p.0)
}

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("one table for four");
    let m = run.sized("inducing points", [10, 100, 200, 200]);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let head = ["likelihood", "method", "seconds to within 0.01", "seconds", "NLL"];
    let (mut table, mut panels) = (Table::new("", &head), Vec::new());
    for likelihood in ["student-t", "laplace", "matern32"] {
        let (mut series, mut times) = (Vec::new(), Vec::new());
        for (colour, method) in ["svi", "svgp"].into_iter().enumerate() {
            let curve = pool.install(|| curve(run, likelihood, method, m))?;
            let last = curve.last().copied().unwrap_or((f64::NAN, f64::NAN));
            table.row(vec![
                likelihood.into(),
                format!("`{method}`"),
                format!("{:.2}", there(&curve)),
                format!("{:.2}", last.0),
                format!("{:.3}", last.1),
            ]);
            times.push(there(&curve));
            series.push(Series::new(method, Kind::Line, colour, curve));
        }
        let ratio = times[1] / times[0];
        let ours = format!("{:.2} and {:.2} s: {ratio:.1} times", times[0], times[1]);
        run.holds(likelihood, "up to two orders of magnitude", ours, ratio >= 10.0);
        let x = Axis::new("seconds");
        panels.push(Panel { title: likelihood.into(), x, y: Axis::new("NLL"), series });
    }
    run.table(table);
    run.figure("", 3, &panels)
}
