//! Figures 2 and 4: objective and noise by iteration, and what the new bound has for v, with 1024 and 2048 points.

use super::medium::{METHODS, NAMES, fitted, sizes, split};
use crate::common::{histogram, traces, unexplained};
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// Figure 2.
pub const ENTRY: Entry = Entry {
    name: "bounds-figure2",
    item: "Figure 2",
    shows: "objective and noise by iteration and the values of v on pol, bike and elevators, M = 1024",
    body: Body::Program(|run| {
        let m = run.sized("inducing points", [8, 128, 512, 1024]);
        curves(run, m)
    }),
    ..BOTH
};

/// Figure 4.
pub const OF_2048: Entry = Entry {
    name: "bounds-figure4",
    item: "Figure 4",
    shows: "objective and noise by iteration and the values of v on pol, bike and elevators, M = 2048",
    body: Body::Program(|run| {
        let m = run.sized("inducing points", [12, 256, 1024, 2048]);
        curves(run, m)
    }),
    ..BOTH
};

const BOTH: Entry = Entry {
    paper: "bounds",
    panels: 3,
    data: &[Data::Bundled("pol"), Data::Bundled("bike"), Data::Bundled("elevators")],
    protocol: "as for Table 1; one split",
    scaled: "one split, where the figure has the mean of five",
    rule: "SGPR < SGPR-artemev < SGPR-new < exact at the end of training; σ² in the opposite order; the mean of v is \
           larger on elevators than on pol and bike",
    ..BLANK
};

fn curves(run: &mut Run<'_>, m: usize) -> Drawn {
    let sizes = sizes(run, 200);
    let few = sizes.rows <= 2000 || sizes.adam;
    let mut table = Table::new("", &["data", "method", "objective", "σ²", "mean of v"]);
    let (mut rows, mut means) = ([Vec::new(), Vec::new(), Vec::new()], Vec::new());
    for name in NAMES {
        let split = split(name, run.seed(), &sizes);
        let (mut lines, mut ends, mut bars) = ([Vec::new(), Vec::new()], Vec::new(), Vec::new());
        for (colour, (method, label)) in METHODS.into_iter().enumerate() {
            if method == "exact" && !few {
                continue;
            }
            let fitted = fitted(&split, method, m, &sizes, run.seed())?;
            let report = fitted.report.as_ref().ok_or("it was trained")?;
            for (lines, trace) in
                lines.iter_mut().zip(traces(&fitted.model, report, "likelihood.variance"))
            {
                lines.push(Series::new(label, Kind::Line, [7, 0, 2, 1][colour], trace));
            }
            let noise = fitted.model.noise();
            ends.push((report.objective, noise));
            let mut v = String::new();
            if method == "titsias2025" {
                let mut x = split.x.clone();
                fitted.scaler.scale_x(x.as_mut())?;
                let left = unexplained(&fitted.model, &x)?;
                let all: Vec<f64> = left.iter().map(|r| 1.0 / (1.0 + r / noise)).collect();
                let mean = all.iter().sum::<f64>() / all.len() as f64;
                means.push(mean);
                v = format!("{mean:.3}");
                bars = histogram(&all, (0.0, 1.0), 25);
            }
            let cells =
                [name, label, &format!("{:.1}", report.objective), &format!("{noise:.4}"), &v];
            table.row(cells.map(str::to_owned).to_vec());
        }
        let sparse = &ends[usize::from(few)..];
        let higher = |a: &(f64, f64), b: &(f64, f64)| a.0 <= b.0 + 0.01 * (1.0 + b.0.abs()).sqrt();
        let mut ordered = sparse.windows(2).all(|pair| higher(&pair[0], &pair[1]));
        let mut quieter = sparse[2].1 <= 1.002 * sparse[0].1;
        if few {
            ordered &= higher(&sparse[2], &ends[0]);
            quieter &= ends[0].1 <= 1.002 * sparse[2].1;
        }
        let texts = |of: fn(&(f64, f64)) -> f64, digits: usize| {
            let all: Vec<String> = ends.iter().map(|end| format!("{:.digits$}", of(end))).collect();
            all.join(", ")
        };
        let head = if few { "exact, old, artemev, new" } else { "old, artemev, new" };
        let tighter = higher(&sparse[0], &sparse[2]) && (!few || higher(&sparse[2], &ends[0]));
        let ours = format!("{head}: {}", texts(|end| end.0, 1));
        run.holds(&format!("{name}: new against old"), "old < new < exact", ours.clone(), tighter);
        run.holds(&format!("{name}: objective"), "old < artemev < new < exact", ours, ordered);
        let ours = format!("{head}: {}", texts(|end| end.1, 4));
        run.holds(&format!("{name}: σ²"), "exact < new < old", ours, quieter);
        let [objective, noise] = lines;
        // the first iterations are far below what matters
        let last = ends.iter().map(|end| end.0).fold(f64::NEG_INFINITY, f64::max);
        let least = ends.iter().map(|end| end.0).fold(f64::INFINITY, f64::min);
        let low = least - 2.0 * (last - least) - 0.1 * last.abs();
        let y = Axis::new("ELBO").from_to(low, last + 0.1 * (last - low));
        rows[0].push(Panel { title: name.into(), x: Axis::new("iteration"), y, series: objective });
        let y = Axis::new("σ²").log();
        rows[1].push(Panel { title: name.into(), x: Axis::new("iteration"), y, series: noise });
        let top = bars.iter().map(|bar| bar.1).fold(0.0, f64::max);
        let y = Axis::new("share of rows").from_to(0.0, 1.05 * top);
        let series = vec![Series::new("", Kind::Bars, 1, bars)];
        rows[2].push(Panel { title: name.into(), x: Axis::new("v").from_to(0.0, 1.0), y, series });
    }
    run.table(table);
    run.holds(
        "v",
        "concentrated at 1 on elevators, smaller on pol and bike",
        format!("means: pol {:.3}, bike {:.3}, elevators {:.3}", means[0], means[1], means[2]),
        means[2] > means[0].max(means[1]),
    );
    run.figure("", 3, &rows.concat())
}
