//! Fits by minibatches, which Tables 2 and 4 share.

use super::orthogonal::{Form, rates};
use crate::common::{Split, average, averaged, fifths, judge};
use sparsegp::data::Loaded;
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, fit, prepare};
use sparsegp::optim::AdamOptions;
use sparsegp::train::StochasticOptions;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Data, Run, Scale, Table};
use sparsegp_bench::{load, processor_seconds};
use std::error::Error;
use std::sync::Mutex;

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
pub const SCALED: &str = "ODVGP of 1024 + 8096 points is left out; ODVGP and SOLVE-GP are trained as an SVGP of 2M points whose \
     q(u) has their form, which costs more than their own algorithms, so their times are not compared";

/// How the verdict of both tables comes about.
pub const ORDER: &str = "pairs of methods are in the printed order, by the mean difference of the splits (pairs that are printed as \
     equal: within two standard errors); at full scale every number";

/// A method of the tables.
pub struct Way {
    /// Its name in the paper.
    pub name: &'static str,
    method: &'static str,
    /// M, or 2M.
    twice: bool,
    form: Form,
}

/// The methods: SVGP and SVGP-new of M and 2M points, and two whose 2M points are of two kinds.
pub const WAYS: [Way; 6] = [
    Way { name: "SVGP", method: "svgp", twice: false, form: Form::Free },
    Way { name: "SVGP-new", method: "svgp2025", twice: false, form: Form::Free },
    Way { name: "ODVGP, M + M", method: "svgp", twice: true, form: Form::Decoupled },
    Way { name: "SOLVE-GP, M + M", method: "svgp", twice: true, form: Form::Orthogonal },
    Way { name: "SVGP, 2M", method: "svgp", twice: true, form: Form::Free },
    Way { name: "SVGP-new, 2M", method: "svgp2025", twice: true, form: Form::Free },
];

/// Pairs of methods that are compared.
const PAIRS: [[usize; 2]; 4] = [[1, 0], [5, 4], [5, 3], [3, 2]];

/// Log density, RMSE and seconds of the processor of a training.
pub type Scored = (f64, f64, f64);
/// Scores of a data set: for every method those of all splits.
pub type Scores = (String, Vec<Vec<Scored>>);

/// Returns the tables of a run: those that are bundled, or those that its folder has.
fn tables(run: &mut Run<'_>, bundled: bool) -> Result<Vec<(String, Loaded)>, Box<dyn Error>> {
    match bundled {
        true => Ok(["kin40k", "protein"].map(|name| (name.to_owned(), load(name, false))).into()),
        false => run.folder(false),
    }
}

/// The last scores with the sizes and the seed they are of: both tables have the same trainings.
static LAST: Mutex<Option<(String, Vec<Scores>)>> = Mutex::new(None);

/// Trains all methods on all splits of all data sets.
fn scores(run: &mut Run<'_>, bundled: bool) -> Result<Vec<Scores>, Box<dyn Error>> {
    let m = run.sized("inducing points M", [8, 128, 512, 1024]);
    let epochs = run.sized("epochs", [1, 40, 60, 100]);
    let rows = run.size([200, 100_000, usize::MAX, usize::MAX]);
    let splits = run.size([1, 2, 3, 5]);
    let key = format!("{m} {epochs} {rows} {splits} {bundled} {:?}", run.settings);
    let mut last = LAST.lock().unwrap_or_else(|broken| broken.into_inner());
    if let Some((_, scores)) = last.as_ref().filter(|(of, _)| *of == key) {
        return Ok(scores.clone());
    }
    let mut found = Vec::new();
    for (name, all) in tables(run, bundled)? {
        let mut each = vec![Vec::new(); WAYS.len()];
        for seed in (0..splits).map(|k| run.seed() + k) {
            let split = fifths(&all, seed, rows);
            for (way, scores) in WAYS.iter().zip(&mut each) {
                scores.push(trained(&split, way, m, epochs, seed)?);
            }
        }
        found.push((name, each));
    }
    *last = Some((key, found.clone()));
    Ok(found)
}

/// Trains a method on a split and scores it.
fn trained(
    split: &Split,
    way: &Way,
    m: usize,
    epochs: usize,
    seed: u64,
) -> sparsegp::Result<Scored> {
    let dataset = Dataset::from_arrays(split.x.clone(), split.y.clone(), true)?;
    let adam = AdamOptions { learning_rate: 0.01, ..AdamOptions::default() };
    let training = StochasticOptions {
        epochs: Some(epochs),
        adam,
        natural: None,
        ..StochasticOptions::default()
    };
    let mut options = FitOptions {
        kernel: "matern32(variance=0.4761, lengthscales=1.0, ard=false)".into(),
        method: way.method.into(),
        inducing: Some(if way.twice { 2 * m } else { m }),
        set: vec![("likelihood.variance".into(), vec![0.51 * 0.51])],
        seed,
        pilot: 0,
        batches: Some(BatchOptions { size: 1024, training }),
        ..FitOptions::default()
    };
    let engine = Cpu::default();
    if way.form != Form::Free {
        let start = prepare(&dataset, &options, &engine, &mut ())?.model;
        if let Some(batches) = &mut options.batches {
            batches.training.adam.multipliers = rates(&start, m, way.form);
        }
    }
    let begun = processor_seconds();
    let fitted = fit(&dataset, &options, &engine, &mut ())?;
    let seconds = processor_seconds() - begun;
    let (density, rmse) = judge(&fitted, split)?;
    Ok((density, rmse, seconds))
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
    let all = scores(run, score.bundled)?;
    let mut head = vec!["data"];
    head.extend(WAYS.iter().map(|way| way.name));
    let mut table = Table::new(score.name, &head);
    for (name, each) in &all {
        let own: Vec<Vec<f64>> =
            each.iter().map(|scored| scored.iter().map(score.of).collect()).collect();
        let mut cells = vec![name.clone()];
        cells.extend(own.iter().map(|values| averaged(values, 3)));
        table.row(cells);
        for pair in PAIRS {
            compared(run, score, name, pair, &own);
        }
        if run.settings.scale == Scale::Full {
            for (values, way) in own.iter().zip(&WAYS) {
                let (mean, error) = average(values);
                run.number(&format!("{name}, {}", way.name), mean, error);
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

/// Judges whether two methods are in the printed order on a data set.
fn compared(
    run: &mut Run<'_>,
    score: &Score,
    name: &str,
    [one, other]: [usize; 2],
    own: &[Vec<f64>],
) {
    let [first, second] = [one, other].map(|at| WAYS[at].name);
    let printed = |of: &str| run.printed(&format!("{name}, {of}"));
    let (Some(a), Some(b)) = (printed(first), printed(second)) else { return };
    let gains: Vec<f64> =
        own[one].iter().zip(&own[other]).map(|(a, b)| score.sign * (a - b)).collect();
    let (gain, error) = average(&gains);
    let holds = match score.sign * (a - b) {
        0.0 => gain.abs() <= 2.0 * error,
        difference => gain * difference > 0.0,
    };
    let what = format!("{name}: {first} against {second}");
    let ours = format!("better by {gain:.4} ± {error:.4}");
    run.holds(&what, &format!("{a} and {b}"), ours, holds);
}
