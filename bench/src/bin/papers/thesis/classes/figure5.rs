//! Figure 5: two variational methods against Gibbs on wine.

use crate::thesis::augmented::folds;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, Standardise, fit};
use sparsegp::linalg::Mat;
use sparsegp::samplers::gibbs::GibbsOptions;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use sparsegp_bench::{class_scores, load};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "classes-figure5",
    paper: "classes",
    item: "Figure 5",
    shows: "p, μ and σ² of two variational methods against Gibbs on wine",
    data: &[Data::Bundled("wine")],
    protocol: "nine tenths of the rows, logistic-softmax, ℓ = 3 and variance 1; `tvgp` (without local \
               variables) and `cavi-full` against \
               `gibbs`, at the other rows",
    scaled: "hyperparameters are fixed",
    rule: "probabilities of both methods are within 0.1 of those of Gibbs in the mean, and accuracies within 0.05",
    body: Body::Program(run),
    ..BLANK
};

const METHODS: [(&str, &str); 3] =
    [("tvgp", "VI"), ("cavi-full", "augmented VI"), ("gibbs", "Gibbs")];

fn run(run: &mut Run<'_>) -> Drawn {
    let (training, test) = folds(&load("wine", true), 10, run.seed())?.swap_remove(0);
    let scaling = Standardise { inputs: true, targets: false, robust: false, constants: true };
    let dataset = Dataset::from_loaded(training, scaling)?;
    let draws = run.size([20, 500, 5000, 10_000]);
    let mut found = Vec::new();
    let mut table = Table::new("", &["method", "accuracy", "paper"]);
    for ((method, name), printed) in METHODS.into_iter().zip([".98", ".96", ".96"]) {
        let options = FitOptions {
            kernel: "rbf(ard=false, lengthscales=3, variance=1)".into(),
            likelihood: Some("logistic-softmax(classes=3)".into()),
            mean: Some("zero".into()),
            method: method.into(),
            freeze: vec!["kernel".into()],
            pilot: 0,
            gibbs: GibbsOptions { chains: 2, draws, burn_in: 100, ..GibbsOptions::default() },
            ..FitOptions::default()
        };
        let fitted = fit(&dataset, &options, &Cpu::default(), &mut ())?;
        let p = fitted.predict_proba(test.x.as_ref())?;
        let (mean, variance) = fitted.predict(test.x.as_ref(), Of::Latent)?;
        let accuracy = 1.0 - class_scores(&p, &test.y).0;
        table.row(vec![name.into(), format!("{accuracy:.3}"), printed.into()]);
        found.push(([p, mean, variance], accuracy));
    }
    run.table(table);
    let flat =
        |m: &Mat<f64>| (0..m.ncols()).flat_map(|k| m.col_as_slice(k).to_vec()).collect::<Vec<_>>();
    let chain = found.swap_remove(2);
    for ((_, name), own) in METHODS.iter().zip(&found) {
        let (a, b) = (flat(&own.0[0]), flat(&chain.0[0]));
        let off = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).sum::<f64>() / a.len() as f64;
        let ours = format!("p off by {off:.3}, accuracy {:.3} and {:.3}", own.1, chain.1);
        let near = off < 0.1 && (own.1 - chain.1).abs() < 0.05;
        run.holds(name, "close to Gibbs", ours, near);
    }
    let panels = ["p", "μ", "σ²"].into_iter().enumerate().map(|(which, title)| {
        let theirs = flat(&chain.0[which]);
        let series = METHODS.iter().zip(&found).enumerate().map(|(colour, ((_, name), own))| {
            let points = theirs.iter().copied().zip(flat(&own.0[which])).collect();
            Series::new(*name, Kind::Dots, colour, points)
        });
        let (x, y) = (Axis::new("Gibbs"), Axis::new("variational"));
        Panel { title: title.into(), x, y, series: series.collect() }
    });
    run.figure("", 3, &panels.collect::<Vec<_>>())
}
