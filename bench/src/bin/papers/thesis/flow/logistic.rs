//! Figures 6 and A1: logistic regression with a Gaussian prior on small tables.

use super::methods::{Law, MEDIAN, Method, Start, follow};
use crate::common::pick;
use sparsegp::flow::targets::Logistic;
use sparsegp::flow::{MeanFlow, Rule};
use sparsegp::linalg::Mat;
use sparsegp::rng;
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// Plain steps.
pub const PLAIN: Entry = Entry {
    name: "flow-figure6",
    item: "Figure 6",
    shows: "NLL of logistic regression by time, plain steps",
    body: Body::Program(|run| tables(run, Rule::Plain, 1e-4)),
    ..BOTH
};

/// RMSProp.
pub const RMS_PROP: Entry = Entry {
    name: "flow-figure-a1",
    item: "Figure A1",
    shows: "NLL of logistic regression by time, RMSProp",
    body: Body::Program(|run| tables(run, Rule::rms_prop(), 1e-2)),
    ..BOTH
};

const BOTH: Entry = Entry {
    paper: "flow",
    data: &[
        Data::Bundled("ionosphere"),
        Data::Substitute { of: "spam, krkp and mushroom", by: "sonar" },
        Data::Substitute { of: "spam, krkp and mushroom", by: "heart" },
    ],
    protocol: "prior variance 10, minibatches of 100 rows, ten folds; mean field, and as many particles \
               as weights and one; NLL of \
               new rows by 1000 draws",
    scaled: "two tables stand for three; RMSProp at 0.01 for 0.0001; the precisions of IBLR have the rate 0.01",
    rule: "for every table the NLL of GPF, mean field and whole, ends within 0.03 of the best rival of \
               its kind, or below",
    ..BLANK
};

const TABLES: [&str; 3] = ["ionosphere", "sonar", "heart"];
/// The first four are of mean field.
const METHODS: [Method; 8] = [
    Method::GpfMeanField,
    Method::GfMeanField,
    Method::DsviMeanField,
    Method::IblrMeanField,
    Method::Gpf(MeanFlow::Plain),
    Method::Gf(MeanFlow::Plain),
    Method::Fcs,
    Method::Svgd(MEDIAN),
];

/// Seconds, NLL and error by time.
type Curve = Vec<(f64, f64, f64)>;

/// A standardised design with a column of ones, and labels −1 and 1.
fn read(name: &str) -> (Mat<f64>, Vec<f64>) {
    let table = load(name, true);
    let (n, d) = (table.x.nrows(), table.x.ncols());
    let column = |q: usize| {
        let values: Vec<f64> = (0..n).map(|i| table.x[(i, q)]).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let size = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        (mean, if size > 0.0 { size } else { 1.0 })
    };
    let scales: Vec<(f64, f64)> = (0..d).map(column).collect();
    let x = Mat::from_fn(n, d + 1, |i, q| match scales.get(q) {
        Some((mean, size)) => (table.x[(i, q)] - mean) / size,
        None => 1.0,
    });
    (x, (0..n).map(|i| 2.0 * table.y[(i, 0)] - 1.0).collect())
}

/// Mean negative log likelihood and error of new rows.
fn judged(target: &Logistic, law: &Law, x: &Mat<f64>, y: &[f64]) -> sparsegp::Result<(f64, f64)> {
    let Law::Draws(w) = law else { return Ok((f64::NAN, f64::NAN)) };
    let p = target.probabilities(w.as_ref(), x.as_ref())?;
    let of = |i: usize| if y[i] > 0.0 { p[i] } else { 1.0 - p[i] };
    let n = y.len() as f64;
    let nll = (0..y.len()).map(|i| -of(i).max(1e-300).ln()).sum::<f64>() / n;
    Ok((nll, (0..y.len()).filter(|i| of(*i) < 0.5).count() as f64 / n))
}

/// The mean curve of a method over the folds, and in how many it lost itself.
fn curve(
    run: &Run<'_>,
    (x, y): &(Mat<f64>, Vec<f64>),
    method: Method,
    (rule, rate): (Rule, f64),
) -> sparsegp::Result<(Curve, usize)> {
    let (n, d) = (x.nrows(), x.ncols());
    let folds = run.size([1, 3, 10, 10]);
    let steps = run.size([50, 2000, 5000, 5000]);
    let order = rng::permutation(&mut rng::stream(run.seed(), "flows/folds"), n, n);
    let (mut curve, mut lost) = (Curve::new(), 0);
    for fold in 0..folds {
        let (test, train): (Vec<usize>, Vec<usize>) = (0..n).partition(|at| at % 10 == fold);
        let rows = |of: &[usize]| of.iter().map(|at| order[*at]).collect::<Vec<_>>();
        let (test, train) = (rows(&test), rows(&train));
        let labels = |of: &[usize]| of.iter().map(|i| y[*i]).collect::<Vec<_>>();
        let seed = run.seed() + fold as u64;
        let of_fold = Logistic::new(pick(x, &train), labels(&train), 10.0)?;
        let mut target = of_fold.in_batches(100, seed)?;
        let start = Start {
            mean: vec![0.0; d],
            deviation: 1.0,
            particles: 100.min(d + 1),
            // the rule of the precision has another rate
            rate: if method == Method::IblrMeanField { 0.01 } else { rate },
            of_particles: rule,
            of_parameters: rule,
            seed,
        };
        let plan = (steps, (steps / 20).max(1));
        let (path, gone) = follow(method, &start, &mut target, plan, Some(1000))?;
        lost += usize::from(gone.is_some());
        let (x, y) = (pick(x, &test), labels(&test));
        curve.resize(curve.len().max(path.len()), (0.0, 0.0, 0.0));
        for (sum, (_, seconds, law)) in curve.iter_mut().zip(&path) {
            let (nll, error) = judged(&target, law, &x, &y)?;
            let share = 1.0 / folds as f64;
            *sum = (sum.0 + share * seconds, sum.1 + share * nll, sum.2 + share * error);
        }
    }
    Ok((curve, lost))
}

fn tables(run: &mut Run<'_>, rule: Rule, rate: f64) -> Drawn {
    run.smaller("two tables stand for three");
    run.sized("steps", [50, 2000, 5000, 5000]);
    let mut table = Table::new("", &["data", "method", "NLL half way", "at the end", "error"]);
    let mut panels = Vec::new();
    for name in TABLES {
        let rows = read(name);
        let (mut series, mut ends) = (Vec::new(), Vec::new());
        for (colour, method) in METHODS.into_iter().enumerate() {
            let (curve, lost) = curve(run, &rows, method, (rule, rate))?;
            let last = curve.last().copied().unwrap_or_default();
            let end =
                if lost == 0 { format!("{:.3}", last.1) } else { format!("lost in {lost} folds") };
            table.row(vec![
                name.into(),
                method.name().into(),
                format!("{:.3}", curve[curve.len() / 2].1),
                end,
                format!("{:.3}", last.2),
            ]);
            ends.push(if lost == 0 { last.1 } else { f64::INFINITY });
            let points = curve.iter().skip(1).map(|(s, nll, _)| (*s, *nll)).collect();
            series.push(Series::new(method.name(), Kind::Line, colour, points));
        }
        for (kind, own) in ["mean field", "whole"].into_iter().zip(ends.chunks(4)) {
            let best = own[1..].iter().copied().fold(f64::INFINITY, f64::min);
            let ours = format!("GPF {:.3}, the best rival {best:.3}", own[0]);
            run.holds(&format!("{name}, {kind}"), "on par", ours, own[0] < best + 0.03);
        }
        let least = ends.iter().copied().fold(f64::INFINITY, f64::min);
        let y = Axis::new("NLL of new rows").from_to(0.95 * least, 2.0 * least);
        panels.push(Panel { title: name.into(), x: Axis::new("seconds").log(), y, series });
    }
    run.table(table);
    run.figure("", 3, &panels)
}
