//! Figure 3: how probable chosen sets are under the k-DPP.

use super::points::chosen;
use crate::common::{average, histogram};
use sparsegp::data::{Selection, Table as File};
use sparsegp::inducing::select::{kdpp_draw, kdpp_log_probability};
use sparsegp::linalg::Mat;
use sparsegp::rng;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series};
use sparsegp_bench::streams::{covariances, rbf};
use std::path::Path;

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "oips-figure3",
    paper: "oips",
    item: "Figure 3",
    shows: "log probabilities of sets that OIPS chooses, and of draws, under the k-DPP",
    data: &[Data::Substitute { of: "Abalone (4177 rows, 7 inputs)", by: "energy" }],
    protocol: "inputs standardised, ℓ = √D, ρ = 0.8; sets of OIPS in many orders of the rows, draws of as many points",
    rule: "sets of OIPS are more probable in the mean, by two standard errors, and vary less",
    body: Body::Program(run),
    ..BLANK
};

fn inputs(name: &str) -> Result<Vec<Vec<f64>>, Box<dyn std::error::Error>> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../testdata/data/{name}.csv.gz"));
    let table = File::open(path)?;
    let last = table.columns().last().cloned().ok_or("columns")?;
    let all = table.select(&Selection::targets([last.as_str()]))?.read_all()?;
    let n = all.x.nrows() as f64;
    let standardised = |q: usize| {
        let own = all.x.col_as_slice(q);
        let mean = own.iter().sum::<f64>() / n;
        let sd = (own.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        own.iter().map(|v| (v - mean) / sd.max(1e-12)).collect()
    };
    Ok((0..all.x.ncols()).map(standardised).collect())
}

fn run(run: &mut Run<'_>) -> Drawn {
    run.smaller("`energy` for Abalone");
    let x = inputs("energy")?;
    let (d, n) = (x.len(), x[0].len());
    let rows = n.min(run.size([60, 768, 768, 768]));
    let draws = run.size([2, 20, 100, 1000]);
    let kernel = rbf(1.0, (d as f64).sqrt(), d);
    let mut found = [Vec::new(), Vec::new()];
    for seed in (0..draws).map(|k| run.seed() + k) {
        let mut generator = rng::stream(seed, "shuffled");
        let order = rng::permutation(&mut generator, n, rows);
        let own = Mat::from_fn(rows, d, |i, q| x[q][order[i]]);
        let mut k = covariances(&*kernel, own.as_ref(), own.as_ref());
        (0..rows).for_each(|i| k[(i, i)] += 1e-6);
        let z = chosen(&*kernel, own.as_ref(), 0.8)?;
        let same = |i: usize, j: usize| (0..d).all(|q| own[(i, q)] == z[(j, q)]);
        let row = |j: usize| (0..rows).find(|i| same(*i, j)).expect("a row");
        let set: Vec<usize> = (0..z.nrows()).map(row).collect();
        found[0].push(kdpp_log_probability(k.as_ref(), &set)?);
        let drawn = kdpp_draw(k.as_ref(), z.nrows(), &mut generator)?;
        found[1].push(kdpp_log_probability(k.as_ref(), &drawn)?);
    }
    let [own, other] = found.each_ref().map(|values| average(values));
    let ours = format!("{:.1} ± {:.1} and {:.1} ± {:.1}", own.0, own.1, other.0, other.1);
    let above = own.0 - other.0 > 2.0 * own.1.hypot(other.1);
    run.holds("mean log probability", "sets of OIPS are more probable", ours, above);
    let root = (draws as f64).sqrt();
    let ours = format!("deviations {:.1} and {:.1}", own.1 * root, other.1 * root);
    run.holds("spread", "and vary less", ours, own.1 < other.1);
    let all = || found.iter().flatten().copied();
    let ends =
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max) + 1e-9);
    let series = found
        .iter()
        .zip(["OIPS", "k-DPP draws"])
        .enumerate()
        .map(|(k, (own, name))| Series::new(name, Kind::Bars, k, histogram(own, ends, 25)))
        .collect::<Vec<_>>();
    let top = series.iter().flat_map(|s| &s.points).map(|p| p.1).fold(0.0, f64::max);
    let y = Axis::new("share of sets").from_to(0.0, 1.05 * top);
    let title = "log P of sets under the k-DPP".to_owned();
    run.figure("", 1, &[Panel { title, x: Axis::new("log P"), y, series }])
}
