//! Figures 2 and 4 to 6: error and NLL by time; Figure 3: by the number of inducing points.

use crate::thesis::augmented::{above_the_median, folds_of};
use crate::thesis::curves::{Point, averaged, cells, end, panels, point, sooner};
use sparsegp::data::Loaded;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Standardise};
use sparsegp::linalg::Mat;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{BLANK, Body, Data, Entry, Run, Table};
use sparsegp_bench::{load, load_digits};

/// Figure 2.
pub const SELECTED: Entry = Entry {
    name: "xgpc-figure2",
    item: "Figure 2",
    shows: "NLL and error by time on Electricity, Cod RNA and SUSY",
    data: &[
        Data::Substitute { of: "Electricity", by: "kin40k, above its median or below" },
        Data::Substitute { of: "Cod RNA", by: "protein, above its median or below" },
        Data::Substitute { of: "SUSY", by: "mnist-t10k, odd or even digits" },
    ],
    body: Body::Program(|run| by_time(run, &["kin40k", "protein", "mnist-t10k"])),
    ..BOTH
};

/// Figures 4 to 6.
pub const OTHERS: Entry = Entry {
    name: "xgpc-figures4-6",
    item: "Figures 4 to 6",
    panels: 3,
    shows: "NLL and error by time on the other ten tables",
    data: &[
        Data::Bundled("diabetes"),
        Data::Substitute { of: "German", by: "heart" },
        Data::Substitute { of: "aXa", by: "ionosphere" },
        Data::Substitute { of: "the other seven", by: "banana" },
    ],
    body: Body::Program(|run| by_time(run, &["diabetes", "heart", "ionosphere", "banana"])),
    ..BOTH
};

const BOTH: Entry = Entry {
    paper: "xgpc",
    protocol: "a tenth of the rows to predict, in turn; logistic likelihood, squared exponential with a lengthscale per input, \
               M = 100 by k-means, minibatches of 100; whole trainings of 1, 2, 4, … epochs; X-GPC is `svi`, SVGPC `svgp` with \
               natural gradients",
    scaled: "other tables; EPGPC is run for Table 1 only, as it sees all rows at once here",
    rule: "on each table X-GPC comes within 0.02 of the last NLL of SVGPC in a tenth of its time",
    ..BLANK
};

/// Figure 3.
pub const POINTS: Entry = Entry {
    name: "xgpc-figure3",
    paper: "xgpc",
    item: "Figure 3",
    shows: "error and time by the number of inducing points on Shuttle",
    data: &[Data::Substitute { of: "Shuttle", by: "mnist-t10k, odd or even digits" }],
    protocol: "as for Figure 2, with M = 16, 32, 64 and 128",
    scaled: "another table; EPGPC is run for Table 1 only",
    rule: "for each M X-GPC comes within 0.01 of the last error of SVGPC in a tenth of its time; its last errors fall from \
           M = 16 to 128",
    body: Body::Program(by_points),
    ..BLANK
};

const METHODS: [(&str, &str); 2] = [("X-GPC", "svi"), ("SVGPC", "svgp")];

/// Returns a table whose target is one of two classes; of others the digits that are odd, or what is above the median.
fn two_classes(name: &str) -> Loaded {
    let numbers = matches!(name, "kin40k" | "protein");
    if name == "mnist-t10k" {
        let mut all = load_digits();
        all.y = Mat::from_fn(all.y.nrows(), 1, |i, _| all.y[(i, 0)] % 2.0);
        return all;
    }
    let all = load(name, !numbers);
    if numbers { above_the_median(all) } else { all }
}

/// Returns the curves of all methods, averaged over folds.
fn curves(run: &Run<'_>, name: &str, inducing: usize) -> sparsegp::Result<Vec<Vec<Point>>> {
    let budgets: &[usize] = match run.size([0, 1, 2, 2]) {
        0 => &[1],
        1 => &[1, 2, 4, 8, 16],
        _ => &[1, 2, 4, 8, 16, 32, 64],
    };
    let most = run.size([200, 4000, 20_000, usize::MAX]);
    let count = run.size([1, 2, 3, 10]);
    let pixels = name == "mnist-t10k";
    let splits = folds_of(&two_classes(name), most, 10, run.seed())?;
    let mut found = vec![Vec::new(); METHODS.len()];
    for (training, test) in &splits[..count] {
        let scaling =
            Standardise { inputs: !pixels, targets: false, robust: false, constants: true };
        let dataset = Dataset::from_loaded(training.clone(), scaling)?;
        for ((_, method), found) in METHODS.iter().zip(&mut found) {
            let own = budgets.iter().map(|epochs| {
                let mut batches = BatchOptions { size: 100, ..BatchOptions::default() };
                batches.training.epochs = Some(*epochs);
                let options = FitOptions {
                    kernel: if pixels { "rbf(ard=false, lengthscales=5)" } else { "rbf" }.into(),
                    likelihood: Some("bernoulli(link=logit)".into()),
                    method: (*method).into(),
                    inducing: Some(inducing),
                    pilot: 0,
                    seed: run.seed(),
                    batches: Some(batches),
                    ..FitOptions::default()
                };
                point(&dataset, test, &options)
            });
            found.push(own.collect::<sparsegp::Result<Vec<Point>>>()?);
        }
    }
    Ok(found.iter().map(|own| averaged(own)).collect())
}

fn rows(table: &mut Table, of: &str, curves: &[Vec<Point>]) {
    for ((name, _), curve) in METHODS.iter().zip(curves) {
        for point in curve {
            table.row([&[of.to_owned(), (*name).to_owned()][..], &cells(point)].concat());
        }
    }
}

fn by_time(run: &mut Run<'_>, names: &[&str]) -> Drawn {
    run.smaller("other tables, and fewer");
    let inducing = run.size([10, 100, 100, 100]);
    let mut table = Table::new("", &["data", "method", "seconds", "error", "NLL"]);
    let mut drawn = Vec::new();
    for name in names {
        let found = curves(run, name, inducing)?;
        rows(&mut table, name, &found);
        let (ours, holds) = sooner(&found[0], &found[1], |p| p.nll, 0.02, 0.1);
        run.holds(name, "one to two orders of magnitude faster", ours, holds);
        drawn.extend(panels(name, &METHODS.map(|method| method.0), &found));
    }
    run.table(table);
    run.figure("", 2, &drawn)
}

fn by_points(run: &mut Run<'_>) -> Drawn {
    run.smaller("`mnist-t10k` for Shuttle");
    let mut table = Table::new("", &["M", "method", "seconds", "error", "NLL"]);
    let (mut drawn, mut errors) = (Vec::new(), Vec::new());
    let points: &[usize] =
        run.size([&[4, 8], &[16, 32, 64, 128], &[16, 32, 64, 128], &[16, 32, 64, 128]]);
    for m in points {
        let found = curves(run, "mnist-t10k", *m)?;
        rows(&mut table, &m.to_string(), &found);
        let (ours, holds) = sooner(&found[0], &found[1], |p| p.error, 0.01, 0.1);
        run.holds(&format!("M = {m}"), "one to two orders of magnitude faster", ours, holds);
        errors.push(end(&found[0]).error);
        let [error, _] = panels(&format!("M = {m}"), &METHODS.map(|method| method.0), &found);
        drawn.push(error);
    }
    run.table(table);
    let text: Vec<String> = errors.iter().map(|e| format!("{e:.3}")).collect();
    let fall = errors[errors.len() - 1] < errors[0];
    run.holds("errors by M", "better with more points", text.join(", "), fall);
    run.figure("", 2, &drawn)
}
