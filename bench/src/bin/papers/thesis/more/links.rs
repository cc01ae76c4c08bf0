//! Figures 7.4 and 7.5: three classes along a line, by the bijective link and by one function for each class.

use super::toys::{GRID, ROWS, fitted, functions, grid};
use crate::common::average;
use sparsegp::linalg::Mat;
use sparsegp::rng;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The bijective link.
pub const BIJECTIVE: Entry = Entry {
    name: "more-figure7.4",
    item: "Figure 7.4",
    shows: "classes by the bijective link, by VI and Gibbs, against the truth",
    rule: "mean absolute errors of the probabilities are below 0.1 by VI and by Gibbs, in the mean over \
               the draws, and below those \
           of the other link",
    body: Body::Program(|run| show(run, 0)),
    ..BOTH
};

/// One function for each class.
pub const OVER: Entry = Entry {
    name: "more-figure7.5",
    item: "Figure 7.5",
    shows: "classes by one function for each, by VI and Gibbs, against the truth",
    rule: "mean absolute errors of the probabilities are below 0.1 by VI and by Gibbs, in the mean over the draws",
    body: Body::Program(|run| show(run, 1)),
    ..BOTH
};

const BOTH: Entry = Entry {
    paper: "more",
    data: &[Data::Simulated("200 classes with probabilities in proportion to σ(f₁), σ(f₂) and ½")],
    protocol: "logistic-softmax with the kernel that the functions were drawn from; `cavi-full` and \
               `gibbs`; several draws, the first \
               is drawn",
    scaled: "the toy of the thesis is not printed",
    ..BLANK
};

const LINKS: [(&str, &str); 2] = [
    ("bijective", "logistic-softmax(classes=3, constant=0.5)"),
    ("over-parametrised", "logistic-softmax(classes=3)"),
];

/// Probabilities at the grid, the grid of them by a method, and by the truth.
struct Fits {
    truth: Mat<f64>,
    /// By the links, and of each by VI and Gibbs.
    found: [[Mat<f64>; 2]; 2],
}

fn probabilities(f: &Mat<f64>, i: usize) -> [f64; 3] {
    let sigma = |f: f64| 1.0 / (1.0 + (-f).exp());
    let scores = [sigma(f[(i, 0)]), sigma(f[(i, 1)]), 0.5];
    scores.map(|s| s / scores.iter().sum::<f64>())
}

fn fits(seed: u64, draws: usize) -> sparsegp::Result<Fits> {
    let drawn = functions(2, seed)?;
    let mut rng = rng::stream(seed, "classes");
    let y = Mat::from_fn(ROWS, 1, |i, _| {
        let (p, u) = (probabilities(&drawn.f, GRID + i), rng::uniform(&mut rng));
        if u < p[0] { 0.0 } else { f64::from(1 + u8::from(u >= p[0] + p[1])) }
    });
    let truth = Mat::from_fn(GRID, 3, |i, k| probabilities(&drawn.f, i)[k]);
    let of = |link: usize, method: &str| {
        let fitted = fitted(&drawn.x, &y, LINKS[link].1, method, draws)?;
        fitted.predict_proba(grid().as_ref())
    };
    let both = |link: usize| Ok::<_, sparsegp::Error>([of(link, "cavi-full")?, of(link, "gibbs")?]);
    Ok(Fits { truth, found: [both(0)?, both(1)?] })
}

fn error(p: &Mat<f64>, truth: &Mat<f64>) -> f64 {
    let all = (0..GRID).flat_map(|i| (0..3).map(move |k| (i, k)));
    all.map(|at| (p[at] - truth[at]).abs()).sum::<f64>() / (3 * GRID) as f64
}

fn show(run: &mut Run<'_>, own: usize) -> Drawn {
    let count = run.size([1, 3, 10, 10]);
    let draws = run.size([20, 200, 1000, 1000]);
    let seeds = (0..count).map(|k| run.seed() + k);
    let all: sparsegp::Result<Vec<Fits>> = seeds.map(|seed| fits(seed, draws)).collect();
    let all = all?;
    let mut table = Table::new("Mean absolute errors of probabilities", &["link", "VI", "Gibbs"]);
    let mut means = [[0.0; 2]; 2];
    for (link, (name, _)) in LINKS.iter().enumerate() {
        let mut cells = vec![(*name).to_owned()];
        for (method, of_method) in means[link].iter_mut().enumerate() {
            let errors: Vec<f64> =
                all.iter().map(|fits| error(&fits.found[link][method], &fits.truth)).collect();
            let (mean, of_mean) = average(&errors);
            *of_method = mean;
            cells.push(format!("{mean:.3} ± {of_mean:.3}"));
        }
        table.row(cells);
    }
    run.table(table);
    for (method, name) in ["VI", "Gibbs"].into_iter().enumerate() {
        let ours = format!("off by {:.3}", means[own][method]);
        run.holds(name, "fits the probabilities", ours, means[own][method] < 0.1);
        if own == 0 {
            let ours = format!("{:.3} and {:.3}", means[0][method], means[1][method]);
            let nearer = means[0][method] < means[1][method];
            run.holds(
                &format!("{name}: links"),
                "the bijective one is more accurate",
                ours,
                nearer,
            );
        }
    }
    let x = grid();
    let panels = ["VI", "Gibbs"].into_iter().enumerate().map(|(method, name)| {
        let line = |p: &Mat<f64>, k: usize| (0..GRID).map(|i| (x[(i, 0)], p[(i, k)])).collect();
        let series = (0..3).flat_map(|k| {
            let label = if method == 0 { format!("class {k}") } else { String::new() };
            [
                Series::new(label, Kind::Line, k, line(&all[0].truth, k)),
                Series::new("", Kind::Thin, k, line(&all[0].found[own][method], k)),
            ]
        });
        Panel {
            title: format!("{name}: true (thick) and predicted"),
            x: Axis::new("x"),
            y: Axis::new("p").from_to(0.0, 1.0),
            series: series.collect(),
        }
    });
    run.figure("", 2, &panels.collect::<Vec<_>>())
}
