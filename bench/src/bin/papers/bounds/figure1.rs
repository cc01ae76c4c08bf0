//! Figure 1: fits to 40 of Snelson's rows, the objective and the noise on the way.

use super::snelson::{METHODS, START, fitted, rows};
use crate::common::traces;
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::linalg::Mat;
use sparsegp::model::Model;
use sparsegp::optim::AdamOptions;
use sparsegp::train::{OptimiserKind, TrainOptions};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "bounds-figure1",
    paper: "bounds",
    item: "Figure 1",
    panels: 3,
    shows: "fits to 40 of Snelson's rows by exact inference, the old bound and the new one",
    data: &[Data::Bundled("snelson")],
    protocol: "rows 0, 5, …, 195, as they are; squared exponential; M = 7 from the paper's start; Adam at 0.01",
    rule: "the bounds end in the order of the paper; the noise of the new bound and its predictions are \
           nearer to exact inference than those of the old one",
    body: Body::Program(run),
    ..BLANK
};

/// A trained method: what it predicts on the grid, where its points are, and its traces.
struct Fit {
    mean: Vec<f64>,
    deviation: Vec<f64>,
    z: Vec<f64>,
    traces: [Vec<(f64, f64)>; 2],
}

const GRID: usize = 181;

fn across(i: usize) -> f64 {
    -0.6 + 7.2 * i as f64 / (GRID - 1) as f64
}

fn predicted(
    model: &Model,
    data: &InMemory,
    traces: [Vec<(f64, f64)>; 2],
) -> sparsegp::Result<Fit> {
    let posterior = model.posterior(&Cpu::default(), data)?;
    let grid = Mat::from_fn(GRID, 1, |i, _| across(i));
    let (mean, variance) = posterior.predict_y(grid.as_ref(), &[])?;
    let z = model.inducing_points().map_or(Vec::new(), |z| z.col_as_slice(0).to_vec());
    Ok(Fit {
        mean: mean.col_as_slice(0).to_vec(),
        deviation: variance.col_as_slice(0).iter().map(|v| v.sqrt()).collect(),
        z,
        traces,
    })
}

fn run(run: &mut Run<'_>) -> Drawn {
    let data = rows()?;
    let steps = run.sized("steps of Adam", [50, 10_000, 10_000, 10_000]);
    let adam = AdamOptions { learning_rate: 0.01, ..AdamOptions::default() };
    let options = TrainOptions {
        optimiser: OptimiserKind::Adam(adam),
        max_iterations: steps,
        ..TrainOptions::default()
    };
    let mut fits = Vec::new();
    for (method, _) in METHODS {
        let (model, report) = fitted(method, &data, &options)?;
        let own = traces(&model, &report, "likelihood.variance");
        fits.push(predicted(&model, &data, own)?);
    }
    let end = |fit: &Fit, which: usize| fit.traces[which].last().map_or(f64::NAN, |p| p.1);
    let away = |fit: &Fit, of: fn(&Fit) -> &Vec<f64>| -> f64 {
        let pairs = of(fit).iter().zip(of(&fits[0]));
        (pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>() / GRID as f64).sqrt()
    };
    let mut table =
        Table::new("", &["method", "objective", "σ²", "means from exact", "deviations from exact"]);
    for ((_, name), fit) in METHODS.iter().zip(&fits) {
        let numbers =
            [end(fit, 0), end(fit, 1), away(fit, |f| &f.mean), away(fit, |f| &f.deviation)];
        let cells = numbers.iter().map(|v| format!("{v:.4}")).collect();
        table.row([vec![(*name).to_owned()], cells].concat());
    }
    run.table(table);
    let [exact, old, new] = [0, 1, 2].map(|i| (end(&fits[i], 0), end(&fits[i], 1)));
    run.holds(
        "objectives (e)",
        "SGPR < SGPR-new < exact",
        format!("{:.2} < {:.2} < {:.2}", old.0, new.0, exact.0),
        old.0 < new.0 && new.0 < exact.0,
    );
    run.holds(
        "σ² (f)",
        "that of SGPR-new is nearer to exact",
        format!("exact {:.4}, new {:.4}, old {:.4}", exact.1, new.1, old.1),
        (new.1 - exact.1).abs() < (old.1 - exact.1).abs(),
    );
    for (what, of) in [
        ("means (d)", (|f| &f.mean) as fn(&Fit) -> &Vec<f64>),
        ("deviations (d)", |f| &f.deviation),
    ] {
        let (new, old) = (away(&fits[2], of), away(&fits[1], of));
        let ours = format!("off by {new:.4} and {old:.4}");
        run.holds(what, "those of SGPR-new are nearer to exact than SGPR's", ours, new < old);
    }
    let left = |fit: &Fit| {
        let pairs = fit.deviation.iter().zip(&fits[0].deviation).enumerate();
        let own: Vec<f64> =
            pairs.filter(|(i, _)| across(*i) < 5.0).map(|(_, (a, b))| (a - b).powi(2)).collect();
        (own.iter().sum::<f64>() / own.len() as f64).sqrt()
    };
    let last = |fit: &Fit| fit.z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    run.note(format!(
        "Deviations are compared from −0.6 to 6.6. The last inducing points of SGPR and SGPR-new are at {:.2} and {:.2}; beyond \
         them the larger σ_f² of the new bound widens its band. To the left of 5 its deviations are off by {:.4}, those of SGPR \
         by {:.4}.",
        last(&fits[1]),
        last(&fits[2]),
        left(&fits[2]),
        left(&fits[1])
    ));
    run.figure("", 3, &panels(&data, &fits))
}

fn panels(data: &InMemory, fits: &[Fit]) -> Vec<Panel> {
    let edge = |fit: &Fit, k: f64| -> Vec<(f64, f64)> {
        (0..GRID).map(|i| (across(i), fit.mean[i] + k * fit.deviation[i])).collect()
    };
    let rows = || {
        Series::new("", Kind::Dots, 7, (0..40).map(|i| (data.x[(i, 0)], data.y[(i, 0)])).collect())
    };
    let axes = || (Axis::new("x"), Axis::new("y").from_to(-3.2, 2.6));
    let mut panels = Vec::new();
    for (((_, name), fit), letter) in METHODS.iter().zip(fits).zip(["a", "b", "c"]) {
        let band = [edge(fit, 2.0), edge(fit, -2.0)].concat();
        let mut series = vec![
            Series::new("", Kind::Band, 0, band),
            Series::new("", Kind::Line, 0, edge(fit, 0.0)),
            rows(),
        ];
        if !fit.z.is_empty() {
            let start = START.iter().map(|z| (*z, 2.4)).collect();
            series.push(Series::new("", Kind::Crosses, 7, start));
            let end = fit.z.iter().map(|z| (*z, -3.0)).collect();
            series.push(Series::new("", Kind::Crosses, 1, end));
        }
        let (x, y) = axes();
        panels.push(Panel { title: format!("({letter}) {name}"), x, y, series });
    }
    let mut series = vec![rows()];
    for (((_, name), fit), colour) in METHODS.iter().zip(fits).zip([7, 0, 1]) {
        series.push(Series::new(*name, Kind::Line, colour, edge(fit, 0.0)));
        series.push(Series::new("", Kind::Thin, colour, edge(fit, 2.0)));
        series.push(Series::new("", Kind::Thin, colour, edge(fit, -2.0)));
    }
    let (x, y) = axes();
    panels.push(Panel { title: "(d) all".into(), x, y, series });
    for (which, (title, y)) in [
        ("(e) objective", Axis::new("ELBO").from_to(-60.0, -15.0)),
        ("(f) noise variance", Axis::new("σ²").from_to(0.05, 0.3)),
    ]
    .into_iter()
    .enumerate()
    {
        let series = METHODS.iter().zip(fits).zip([7, 0, 1]).map(|(((_, name), fit), colour)| {
            Series::new(*name, Kind::Line, colour, fit.traces[which].clone())
        });
        let x = Axis::new("step");
        panels.push(Panel { title: title.into(), x, y, series: series.collect() });
    }
    panels
}
