//! Figure 7.1: how the error of CAVI decays.

use crate::thesis::augmented::kernel;
use sparsegp::data::InMemory;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::methods::{Tvgp, find};
use sparsegp::model::Model;
use sparsegp::rng::{stream, uniform};
use sparsegp::variational::{Tying, Variational};
use sparsegp_bench::page::{Drawn, normal};
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "more-figure7.1",
    paper: "more",
    item: "Figure 7.1",
    shows: "how the error of CAVI decays, by likelihood",
    data: &[Data::Simulated("100 rows along a line: a sine with noise, or classes by its sign")],
    protocol: "no inducing points, ℓ = 1, variance 1; updates of all local variables and of q in turn; \
               the error is the bound after \
               300 updates minus that after so many",
    scaled: "the toy of the thesis is not printed",
    rule: "for every likelihood the logarithm of the error between 1e-2 and 1e-8 of its start lies on a \
               line with R² of at \
           least 0.98",
    body: Body::Program(run),
    ..BLANK
};

const LIKELIHOODS: [(&str, &str); 4] = [
    ("logistic", "bernoulli(link=logit)"),
    ("Student-t", "student-t(df=3, scale=0.5)"),
    ("Laplace", "laplace(scale=0.5)"),
    ("Matérn 3/2", "matern32(scale=0.5)"),
];

/// Rows, and a model of them with a site for each.
fn start(classes: bool, likelihood: &str, seed: u64) -> sparsegp::Result<(Model, InMemory)> {
    let mut rng = stream(seed, "line");
    let x = Mat::from_fn(100, 1, |_, _| -5.0 + 10.0 * uniform(&mut rng));
    let y = Mat::from_fn(100, 1, |i, _| {
        let f = (1.5 * x[(i, 0)]).sin() + 0.3 * normal(&mut rng);
        if classes { f64::from(u8::from(f > 0.0)) } else { f }
    });
    let kernel = parse(&kernel(1.0, 1.0), Inputs::unnamed(1))?;
    let model = Model::builder(kernel, find("cavi-full")?.method)
        .likelihood(likelihoods::parse(likelihood)?)
        .q(Variational::sites(100, 1, Tying::Untied))
        .build(1, 1)?;
    Ok((model, InMemory::new(x, y)?))
}

/// Slope, intercept and R² of a line through points.
fn line(points: &[(f64, f64)]) -> (f64, f64, f64) {
    let n = points.len() as f64;
    let (mx, my) =
        (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let over = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>();
    let xx = over(&|p| (p.0 - mx).powi(2));
    let xy = over(&|p| (p.0 - mx) * (p.1 - my));
    let yy = over(&|p| (p.1 - my).powi(2));
    let slope = xy / xx;
    (slope, my - slope * mx, xy * xy / (xx * yy))
}

fn run(run: &mut Run<'_>) -> Drawn {
    let updates = run.size([30, 300, 300, 300]);
    let mut table = Table::new("", &["likelihood", "exponent", "R²"]);
    let mut panels = Vec::new();
    for (name, likelihood) in LIKELIHOODS {
        let (mut model, rows) = start(name == "logistic", likelihood, run.seed())?;
        let method = Tvgp::of(find("cavi-full")?.method)?;
        let mut values = vec![method.value(&model, &rows)?];
        for _ in 0..updates {
            method.step(&mut model, &rows, 1.0)?;
            values.push(method.value(&model, &rows)?);
        }
        let last = values[updates];
        let errors = values.iter().enumerate().map(|(t, v)| (t as f64, last - v));
        let errors: Vec<(f64, f64)> = errors.filter(|(_, e)| *e > 0.0).collect();
        let begin = errors[0].1;
        let within = |e: f64| e < 1e-2 * begin && e > 1e-8 * begin;
        let logs: Vec<(f64, f64)> =
            errors.iter().filter(|(_, e)| within(*e)).map(|(t, e)| (*t, e.ln())).collect();
        let (slope, intercept, r2) = line(&logs);
        table.row(vec![name.into(), format!("{slope:.3}"), format!("{r2:.4}")]);
        let ours = format!("exponent {slope:.3}, R² {r2:.4}, {} updates", logs.len());
        run.holds(name, "C exp(ct)", ours, r2 >= 0.98 && logs.len() >= 3);
        let to = logs.last().map_or(1.0, |p| p.0);
        let fit = vec![(0.0, intercept.exp()), (to, (intercept + slope * to).exp())];
        let y = Axis::new("error of the bound").log().from_to(1e-10 * begin.max(1.0), 10.0 * begin);
        let series = vec![
            Series::new("error", Kind::Line, 0, errors),
            Series::new(format!("exponent {slope:.2}"), Kind::Line, 2, fit),
        ];
        let x = Axis::new("update").from_to(0.0, 1.5 * to);
        panels.push(Panel { title: name.into(), x, y, series });
    }
    run.table(table);
    run.figure("", 4, &panels)
}
