//! Figure 1: marginals of X-GPC against a long chain.

use crate::common::thin;
use crate::thesis::augmented::{folds, kernel, problem};
use sparsegp::linalg::Mat;
use sparsegp::methods::{Tvgp, find};
use sparsegp::samplers::gibbs::{self, GibbsOptions};
use sparsegp::variational::{Tying, Variational};
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};
use std::ops::ControlFlow;

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "xgpc-figure1",
    paper: "xgpc",
    item: "Figure 1",
    shows: "posterior mean, variance and predictive marginals against MCMC, on diabetes",
    data: &[Data::Bundled("diabetes")],
    protocol: "nine tenths of the rows, logistic likelihood, squared exponential with ℓ = 3 and \
               variance 1, no inducing points; \
               `cavi-full` to convergence against Gibbs at the same hyperparameters, on the training rows",
    scaled: "hyperparameters are fixed",
    rule: "the correlation with the chain is at least 0.98 for μ, σ and p, and the root mean square \
               difference of p below 0.02",
    body: Body::Program(run),
    ..BLANK
};

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let (ma, mb) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let product = |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    product(a, ma, b, mb) / (product(a, ma, a, ma) * product(b, mb, b, mb)).sqrt()
}

fn run(run: &mut Run<'_>) -> Drawn {
    let draws = run.size([50, 1000, 5000, 10_000]);
    let all = load("diabetes", true);
    let (training, _) = folds(&all, 10, run.seed())?.swap_remove(0);
    let (mut model, rows, _) =
        problem(&training, "bernoulli(link=logit)", &kernel(3.0, 1.0), "cavi-full")?;
    let n = rows.x.nrows();
    model.q = Some(Variational::sites(n, 1, Tying::Untied));
    let method = Tvgp::of(find("cavi-full")?.method)?;
    for _ in 0..run.size([5, 60, 60, 60]) {
        method.step(&mut model, &rows, 1.0)?;
    }
    let posterior = method.posterior_at(&model, &rows.x)?;
    let (mean, variance) = posterior.predict_f(rows.x.as_ref())?;
    let p = posterior.predict_proba(rows.x.as_ref())?;
    let column = |m: &Mat<f64>, c: usize| m.col_as_slice(c).to_vec();
    let ours =
        [column(&mean, 0), column(&variance, 0).iter().map(|v| v.sqrt()).collect(), column(&p, 1)];
    model.method = find("gibbs")?.method;
    let options = GibbsOptions {
        chains: 4,
        draws,
        burn_in: 200,
        seed: run.seed(),
        ..GibbsOptions::default()
    };
    let found = gibbs::sample(&model, &rows, &options, &mut |_, _| ControlFlow::Continue(()))?;
    let f: Vec<&Mat<f64>> = found.f.iter().flatten().collect();
    let count = f.len() as f64;
    let over = |of: &dyn Fn(f64) -> f64| -> Vec<f64> {
        (0..n).map(|i| f.iter().map(|f| of(f[(i, 0)])).sum::<f64>() / count).collect()
    };
    let (first, second) = (over(&|f| f), over(&|f| f * f));
    let deviation = first.iter().zip(&second).map(|(m, s)| (s - m * m).max(0.0).sqrt()).collect();
    let theirs = [first, deviation, over(&|f| 1.0 / (1.0 + (-f).exp()))];
    let mut table = Table::new("", &["", "correlation", "root mean square difference"]);
    let mut panels = Vec::new();
    for ((name, ours), theirs) in ["μ", "σ", "p"].into_iter().zip(&ours).zip(&theirs) {
        let r = correlation(ours, theirs);
        let squares: f64 = ours.iter().zip(theirs).map(|(a, b)| (a - b).powi(2)).sum();
        let off = (squares / n as f64).sqrt();
        table.row(vec![name.into(), format!("{r:.4}"), format!("{off:.4}")]);
        let near = r >= 0.98 && (name != "p" || off < 0.02);
        let text = format!("correlation {r:.4}, off by {off:.4}");
        run.holds(name, "very close to the chain", text, near);
        let points: Vec<(f64, f64)> = theirs.iter().copied().zip(ours.iter().copied()).collect();
        let (low, high) = theirs
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        let series = vec![
            Series::new("", Kind::Dots, 0, thin(points, 250)),
            Series::new("", Kind::Thin, 7, vec![(low, low), (high, high)]),
        ];
        let (x, y) = (Axis::new("MCMC"), Axis::new("X-GPC"));
        panels.push(Panel { title: name.into(), x, y, series });
    }
    run.table(table);
    run.figure("", 3, &panels)
}
