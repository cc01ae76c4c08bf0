//! Figure 7.3: how fast chains forget where they were.

use crate::thesis::aaci::chains::autocorrelation;
use crate::thesis::augmented::{kernel, problem};
use sparsegp::linalg::Mat;
use sparsegp::samplers::gibbs::{self, GibbsOptions};
use sparsegp::samplers::hmc::{self, HmcOptions, Path};
use sparsegp::samplers::joint::Variables;
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use std::ops::ControlFlow;
use std::time::Instant;

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "more-figure7.3",
    paper: "more",
    item: "Figure 7.3",
    shows: "autocorrelations of five samplers for Student-t noise",
    data: &[Data::Bundled("housing")],
    protocol: "Student-t noise (ν = 3, scale 1), ℓ = 3, variance 1, one chain of each sampler, one \
               thread; mean over the rows with \
               a band of a standard deviation",
    scaled: "HMC and NUTS move whitened variables",
    rule: "Gibbs has the smallest correlation at lag 1 in size, and takes at most a third of the time \
               of HMC (20 s and 12 min in \
           the thesis)",
    body: Body::Program(run),
    ..BLANK
};

/// Lags that are looked at.
const LAGS: usize = 20;

fn run(run: &mut Run<'_>) -> Drawn {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let draws = run.sized("draws", [40, 1000, 2000, 2000]);
    let seed = run.seed();
    let found = pool.install(|| chains(draws, seed))?;
    let mut table = Table::new("", &["sampler", "seconds", "lag 1", "lag 5", "lag 10"]);
    let (mut series, mut ends) = (Vec::new(), Vec::new());
    for (colour, (name, f, seconds)) in found.into_iter().enumerate() {
        let curve = autocorrelation(&f, LAGS);
        let at = |lag: usize| format!("{:.3}", curve[lag].0);
        table.row(vec![name.clone(), format!("{seconds:.1}"), at(1), at(5), at(10)]);
        ends.push((curve[1].0.abs(), seconds));
        let edge =
            |sign: f64| curve.iter().enumerate().map(move |(l, (m, d))| (l as f64, m + sign * d));
        let middle = curve.iter().enumerate().map(|(l, (m, _))| (l as f64, *m)).collect();
        series.push(Series::new("", Kind::Band, colour, edge(1.0).chain(edge(-1.0)).collect()));
        series.push(Series::new(name, Kind::Line, colour, middle));
    }
    run.table(table);
    let others = ends[1..].iter().map(|e| e.0).fold(f64::INFINITY, f64::min);
    let ours = format!("{:.3}, the next {others:.3}", ends[0].0);
    run.holds("lag 1", "Gibbs has the smallest", ours, ends[0].0 < others);
    let ours = format!("Gibbs {:.1} s, HMC {:.1} s, NUTS {:.1} s", ends[0].1, ends[3].1, ends[4].1);
    run.holds("time", "20 s and 12 min", ours, 3.0 * ends[0].1 < ends[3].1);
    let (x, y) = (Axis::new("lag"), Axis::new("autocorrelation of f"));
    run.figure("", 1, &[Panel { title: "housing, Student-t".into(), x, y, series }])
}

type Found = Vec<(String, Vec<Mat<f64>>, f64)>;

fn chains(draws: usize, seed: u64) -> sparsegp::Result<Found> {
    let likelihood = "student-t(df=3, scale=1)";
    let (model, rows, _) =
        problem(&load("housing", false), likelihood, &kernel(3.0, 1.0), "gibbs")?;
    let burn_in = draws.min(500);
    let options = GibbsOptions { chains: 1, draws, burn_in, seed, ..GibbsOptions::default() };
    let clock = Instant::now();
    let mut watch = |_, _| ControlFlow::Continue(());
    let own = gibbs::sample(&model, &rows, &options, &mut watch)?;
    let mut found = vec![("Gibbs".to_owned(), own.f[0].clone(), clock.elapsed().as_secs_f64())];
    for (variables, form) in
        [(Variables::Augmented, "augmented"), (Variables::Original, "original")]
    {
        for (path, name) in [(Path::Steps(10), "HMC"), (Path::NoUTurn { depth: 10 }, "NUTS")] {
            let options = HmcOptions {
                chains: 1,
                draws,
                burn_in,
                variables,
                path,
                seed,
                ..HmcOptions::default()
            };
            let clock = Instant::now();
            let own = hmc::sample(&model, &rows, &options, &mut watch)?;
            let seconds = clock.elapsed().as_secs_f64();
            found.push((format!("{name}, {form} model"), own.draws.f[0].clone(), seconds));
        }
    }
    Ok(found)
}
