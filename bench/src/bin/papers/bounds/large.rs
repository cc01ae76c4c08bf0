//! Fits by minibatches, which Tables 2 and 4 share.

use crate::common::{fifths, judge};
use sparsegp::data::Loaded;
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, fit};
use sparsegp::optim::AdamOptions;
use sparsegp::train::StochasticOptions;
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Data, Run};
use std::error::Error;

/// The data sets at hand.
pub const DATA: &[Data] = &[Data::Bundled("kin40k"), Data::Bundled("protein")];

/// Those that are not: KeggDirected and so on, by the file that a folder may have.
pub const OTHERS: &[Data] = &[
    folder("keggdirected.csv", (48_827, 20), "UCI, KEGG Metabolic Relation Network (Directed)"),
    folder("keggu.csv", (63_608, 27), "UCI, KEGG Metabolic Reaction Network (Undirected)"),
    folder("3droad.csv", (434_874, 3), "UCI, 3D Road Network"),
    folder("song.csv", (515_345, 90), "UCI, YearPredictionMSD"),
    folder("buzz.csv", (583_250, 77), "UCI, Buzz in social media (Twitter)"),
    folder(
        "houseelectric.csv",
        (2_049_280, 9),
        "UCI, Individual household electric power consumption",
    ),
];

const fn folder(file: &'static str, size: (usize, usize), from: &'static str) -> Data {
    Data::Folder { file, size, from }
}

/// How both tables are made.
pub const PROTOCOL: &str = "a fifth to test, a fifth of the rest left out; everything standardised; Matérn 3/2 with one \
     lengthscale; whitened q; minibatches of 1024; Adam at 0.01 for everything; σ = 0.51, σ_f = 0.69, ℓ = 1; k-means";

/// What both tables leave out.
pub const SCALED: &str = "ODVGP and SOLVE-GP are not built";

/// The two bounds and their names in the paper.
pub const METHODS: [(&str, &str); 2] = [("svgp", "SVGP"), ("svgp2025", "SVGP-new")];

/// Log density, RMSE and seconds of a training.
pub type Scored = (f64, f64, f64);
/// Scores of a data set: for every method those of all splits.
pub type Scores = (String, [Vec<Scored>; 2]);

/// Returns the tables of a run: those that are bundled, or those that its folder has.
fn tables(run: &Run<'_>, bundled: bool) -> Result<Vec<(String, Loaded)>, Box<dyn Error>> {
    match bundled {
        true => Ok(["kin40k", "protein"].map(|name| (name.to_owned(), load(name, false))).into()),
        false => run.folder(false),
    }
}

/// Trains both methods on all splits of all data sets with M inducing points.
fn scores(run: &mut Run<'_>, bundled: bool) -> Result<Vec<Scores>, Box<dyn Error>> {
    let m = run.sized("inducing points", [8, 256, 1024, 1024]);
    let epochs = run.sized("epochs", [1, 40, 100, 100]);
    let rows = run.size([200, 100_000, usize::MAX, usize::MAX]);
    let splits = run.size([1, 2, 3, 5]);
    let mut found = Vec::new();
    for (name, all) in tables(run, bundled)? {
        let mut each = [Vec::new(), Vec::new()];
        for seed in (0..splits).map(|k| run.seed() + k) {
            let split = fifths(&all, seed, rows);
            let dataset = Dataset::from_arrays(split.x.clone(), split.y.clone(), true)?;
            for ((method, _), scores) in METHODS.iter().zip(&mut each) {
                let adam = AdamOptions { learning_rate: 0.01, ..AdamOptions::default() };
                let training = StochasticOptions {
                    epochs: Some(epochs),
                    adam,
                    natural: None,
                    ..StochasticOptions::default()
                };
                let options = FitOptions {
                    kernel: "matern32(variance=0.4761, lengthscales=1.0, ard=false)".into(),
                    method: (*method).into(),
                    inducing: Some(m),
                    set: vec![("likelihood.variance".into(), vec![0.51 * 0.51])],
                    seed,
                    pilot: 0,
                    batches: Some(BatchOptions { size: 1024, training }),
                    ..FitOptions::default()
                };
                let fitted = fit(&dataset, &options, &Cpu::default(), &mut ())?;
                let (density, rmse) = judge(&fitted, &split)?;
                scores.push((
                    density,
                    rmse,
                    fitted.report.as_ref().map_or(f64::NAN, |r| r.seconds),
                ));
            }
        }
        found.push((name, each));
    }
    Ok(found)
}

/// One of the two scores of a table.
pub struct Score {
    /// What it is.
    pub name: &'static str,
    /// Its part of the pair.
    pub of: fn(&Scored) -> f64,
    /// 1 where more is better, else −1.
    pub sign: f64,
    /// Whether it is of the tables that are bundled.
    pub bundled: bool,
    /// Whether times are judged too.
    pub timed: bool,
}

/// Judges the score and adds its table.
pub fn judged(run: &mut Run<'_>, score: &Score) -> Drawn {
    use crate::common::{average, averaged};
    use sparsegp_bench::papers::{Scale, Table};
    let all = scores(run, score.bundled)?;
    let mut table = Table::new(score.name, &["data", "SVGP", "SVGP-new", "difference"]);
    for (name, each) in &all {
        let own = each.each_ref().map(|pairs| pairs.iter().map(score.of).collect::<Vec<f64>>());
        let gains: Vec<f64> =
            own[0].iter().zip(&own[1]).map(|(old, new)| score.sign * (new - old)).collect();
        let (gain, error) = average(&gains);
        let mut cells = vec![name.clone()];
        cells.extend(own.iter().map(|values| averaged(values, 3)));
        cells.push(averaged(&gains.iter().map(|g| score.sign * g).collect::<Vec<_>>(), 4));
        table.row(cells);
        run.holds(
            &format!("{name}: new against old"),
            "SVGP-new is better",
            format!("by {gain:.4} ± {error:.4}"),
            gain > 0.0,
        );
        if run.settings.scale == Scale::Full {
            for (values, (_, label)) in own.iter().zip(METHODS) {
                let (mean, error) = average(values);
                run.number(&format!("{name}, {label}"), mean, error);
            }
        }
    }
    run.table(table);
    if score.timed {
        let seconds =
            |at: usize| all.iter().flat_map(|(_, each)| &each[at]).map(|s| s.2).sum::<f64>();
        let ratio = seconds(1) / seconds(0);
        let ours = format!("{:.0} and {:.0} s: {ratio:.2} times", seconds(1), seconds(0));
        run.holds("cost", "no change in the computational cost", ours, ratio < 1.05);
    }
    Ok(())
}
