//! Table 1: deep models on kin40k.

use crate::common::{average, averaged};
use sparsegp::data::{Loaded, Mask};
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, fit};
use sparsegp::methods;
use sparsegp::rng::{permutation, stream};
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Data, Entry, Printed, Run, Scale, Table};
use std::time::Instant;

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "inverse-free-table1",
    paper: "inverse-free",
    item: "Table 1",
    shows: "test NLPD of deep models on kin40k by layers and methods",
    data: &[Data::Bundled("kin40k")],
    protocol: "nine tenths of the rows, minibatches of 1000, squared exponential with a lengthscale per \
               input; of targets with \
               a standard deviation of 1",
    printed: &[
        Printed { what: "1 layers, W", value: -0.38, error: 0.005 },
        Printed { what: "1 layers, L", value: -0.39, error: 0.005 },
        Printed { what: "1 layers, R", value: -0.39, error: 0.005 },
        Printed { what: "2 layers, W", value: -1.86, error: 0.03 },
        Printed { what: "2 layers, L", value: -1.88, error: 0.03 },
        Printed { what: "2 layers, R", value: -1.88, error: 0.03 },
        Printed { what: "3 layers, W", value: -2.39, error: 0.03 },
        Printed { what: "3 layers, L", value: -2.64, error: 0.01 },
        Printed { what: "3 layers, R", value: -2.64, error: 0.01 },
    ],
    rule: "for every kind, each layer lowers the NLPD; with two and three layers L and R are not worse \
               than W; at full scale \
           every number",
    body: Body::Program(run),
    ..BLANK
};

/// Splits off a tenth of the rows.
pub fn split(all: &Loaded, tests: usize, seed: u64) -> sparsegp::Result<(Loaded, Loaded)> {
    let n = all.y.nrows();
    let mut own = vec![false; n];
    for row in permutation(&mut stream(seed, "test rows"), n, tests) {
        own[row] = true;
    }
    let mask = Mask::new("test rows", own);
    Ok((all.rows_where(&mask, false)?, all.rows_where(&mask, true)?))
}

fn run(run: &mut Run<'_>) -> Drawn {
    let steps = run.sized("steps", [20_usize, 1000, 50_000, 200_000]);
    let points = run.sized("inducing points", [10, 50, 300, 500]);
    let repeats = run.size([1, 1, 3, 5]);
    let all = load("kin40k", false);
    let mut table = Table::new("", &["layers", "kind", "NLPD", "seconds", "paper"]);
    let mut means = Vec::new();
    for (layers, printed) in (1..=3).zip(ENTRY.printed.chunks(3)) {
        for (kind, printed) in ["w", "l", "r"].into_iter().zip(printed) {
            let (mut scores, mut seconds) = (Vec::new(), 0.0);
            for seed in (0..repeats).map(|k| run.seed() + k) {
                let (training, test) = split(&all, all.y.nrows() / 10, seed)?;
                let dataset = Dataset::from_loaded(training, true)?;
                let method = format!("deep(layers={layers}, kind={kind})");
                let mut batches =
                    BatchOptions { size: 1000, ..BatchOptions::of(methods::find(&method)?.method) };
                let per_epoch = dataset.source.rows().div_ceil(1000);
                batches.training.epochs = Some(steps.div_ceil(per_epoch));
                let options = FitOptions {
                    method,
                    inducing: Some(points),
                    batches: Some(batches),
                    seed,
                    kernel: "rbf".into(),
                    ..FitOptions::default()
                };
                let clock = Instant::now();
                let fitted = fit(&dataset, &options, &Cpu::default(), &mut ())?;
                seconds += clock.elapsed().as_secs_f64() / repeats as f64;
                let log = fitted.log_density(test.x.as_ref(), test.y.as_ref(), &[])?;
                // of targets with a standard deviation of 1, as the paper's
                let unit = fitted.scaler.y_scale[0].ln();
                scores.push(-log.iter().sum::<f64>() / log.len() as f64 - unit);
            }
            let (mean, error) = average(&scores);
            if run.settings.scale == Scale::Full {
                run.number(printed.what, mean, error);
            }
            table.row(vec![
                layers.to_string(),
                kind.to_uppercase(),
                averaged(&scores, 2),
                format!("{seconds:.0}"),
                printed.value.to_string(),
            ]);
            means.push(mean);
        }
    }
    run.table(table);
    for (k, kind) in ["W", "L", "R"].into_iter().enumerate() {
        let own = [means[k], means[k + 3], means[k + 6]];
        let ours = own.map(|v| format!("{v:.2}")).join(" > ");
        let helps = own[0] > own[1] && own[1] > own[2];
        run.holds(&format!("layers of kind {kind}"), "every layer helps", ours, helps);
    }
    for (layers, own) in means.chunks(3).enumerate().skip(1) {
        let ours = format!("W {:.2}, L {:.2}, R {:.2}", own[0], own[1], own[2]);
        let what = format!("kinds, {} layers", layers + 1);
        let ahead = own[1].max(own[2]) <= own[0] + 0.02;
        run.holds(&what, "L and R are not worse than W", ours, ahead);
    }
    Ok(())
}
