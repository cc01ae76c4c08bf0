//! Which rows become points: how many, what they explain, and how probable they are (Galy-Fajou & Opper 2020, Figures 3 to 5).

use crate::common::{
    Area, COLOURS, Drawn, Line, covariances, head, lines, number, option, rbf, row,
};
use plotters::prelude::*;
use sparsegp::data::{Selection, Table};
use sparsegp::inducing::select::oips::{expected_points, most_in_cube, oips, trace_bound};
use sparsegp::inducing::select::{kdpp_draw, kdpp_log_probability};
use sparsegp::kernels::Kernel;
use sparsegp::linalg::{Cholesky, Jitter, Mat, MatRef, symmetric_eigen};
use sparsegp::rng;

fn uniform(n: usize, d: usize, seed: u64) -> Mat<f64> {
    let mut generator = rng::stream(seed, "rows");
    Mat::from_fn(n, d, |_, _| rng::uniform(&mut generator))
}

/// The rows that OIPS takes, all it wants.
fn chosen(kernel: &dyn Kernel, x: MatRef<f64>, rho: f64) -> Mat<f64> {
    let mut diag = vec![0.0; x.nrows()];
    kernel.diag(x, &mut diag);
    let mut columns = |rows: &[usize]| {
        let z = Mat::from_fn(rows.len(), x.ncols(), |i, q| x[(rows[i], q)]);
        Ok(covariances(kernel, x, z.as_ref()))
    };
    oips(x, x.nrows(), rho, &diag, &mut columns).expect("points").points
}

/// M against N with its bounds: three inputs, ρ = 0.7, ℓ = 0.3 (Figure 4).
pub fn count(arguments: &[String], area: &Area<'_>) -> Drawn {
    let draws = number(arguments, "--draws", 10.0) as u64;
    let (d, rho, length) = (3, 0.7, 0.3);
    let radius = length * (-2.0 * f64::ln(rho)).sqrt();
    let kernel = rbf(1.0, length, d);
    println!("\n### Number of points, D = 3, ρ = 0.7, ℓ = 0.3, {draws} draws");
    head(&[
        "N",
        "points",
        "least",
        "most",
        "bound on the mean",
        "printed bound",
        "in the cube at most",
    ]);
    let (mut own, mut bounds, mut printed) = (Vec::new(), Vec::new(), Vec::new());
    for n in [10, 30, 100, 300, 1000, 3000] {
        let sizes: Vec<f64> = (0..draws)
            .map(|seed| chosen(&*kernel, uniform(n, d, seed).as_ref(), rho).nrows() as f64)
            .collect();
        let mean = sizes.iter().sum::<f64>() / draws as f64;
        let bound = expected_points(n, d, radius, 1.0);
        // theorem 1 as printed, with h = √2 ℓ: r = h √(−log ρ), α = (r √D / 2)ᴰ
        let alpha = (radius * (d as f64).sqrt() / 2.0).powi(d as i32);
        let theirs = (1.0 - (1.0 - alpha).powi(n as i32 + 1)) / alpha;
        let ends = |f: fn(f64, f64) -> f64, from: f64| sizes.iter().copied().fold(from, f);
        row(&[
            format!("{n}"),
            format!("{mean:.1}"),
            format!("{}", ends(f64::min, f64::INFINITY)),
            format!("{}", ends(f64::max, 0.0)),
            format!("{bound:.1}"),
            format!("{theirs:.1}"),
            format!("{:.0}", most_in_cube(d, radius, 1.0)),
        ]);
        own.push((n as f64, mean));
        bounds.push((n as f64, bound));
        printed.push((n as f64, theirs));
    }
    let all = [
        Line { name: "points", points: own },
        Line { name: "bound", points: bounds },
        Line { name: "as printed", points: printed },
    ];
    lines(area, ("Number of points", "N", "M"), &all, [true, true])
}

/// ‖K − Q‖ against its bounds (Figure 5).
pub fn nystroem(arguments: &[String], area: &Area<'_>) -> Drawn {
    let most = number(arguments, "--most", 1000.0) as usize;
    let (rho, length) = (0.7, 0.3);
    let kernel = rbf(1.0, length, 3);
    println!("\n### What the points leave, D = 3, ρ = 0.7, ℓ = 0.3");
    head(&[
        "N",
        "M",
        "Frobenius",
        "trace",
        "(N − M)(1 − ρ²)",
        "by Gershgorin",
        "as printed",
        "k-DPP",
    ]);
    let mut curves: [Vec<(f64, f64)>; 5] = Default::default();
    for n in [50, 100, 200, 400, 700, 1000].into_iter().filter(|n| *n <= most) {
        let x = uniform(n, 3, 11);
        let z = chosen(&*kernel, x.as_ref(), rho);
        let m = z.nrows();
        let k = covariances(&*kernel, x.as_ref(), x.as_ref());
        let kuf = covariances(&*kernel, z.as_ref(), x.as_ref());
        let kuu = covariances(&*kernel, z.as_ref(), z.as_ref());
        let factor =
            Cholesky::new(kuu.as_ref(), Jitter::Absolute(0.0), "Kuu").expect("points apart");
        let rest = &k - kuf.transpose() * factor.solve(kuf.as_ref());
        let trace: f64 = (0..n).map(|i| rest[(i, i)]).sum();
        let (rows, m1) = ((n - m) as f64, (m - 1) as f64);
        let by = |size: f64| rows * (1.0 - rho * rho / (1.0 + size * rho));
        let (values, _) = symmetric_eigen(k.as_ref()).expect("eigenvalues");
        let left: f64 = values.iter().take(n - m).sum();
        let numbers = [
            rest.norm_l2(),
            trace,
            trace_bound(1.0, n, m, rho),
            by(m1),
            by(m as f64 * m1),
            (m + 1) as f64 * left,
        ];
        let mut cells = vec![format!("{n}"), format!("{m}")];
        cells.extend(numbers.iter().map(|v| format!("{v:.2}")));
        row(&cells);
        assert!(numbers.windows(2).take(4).all(|pair| pair[0] <= pair[1]), "the bounds' order");
        for (curve, value) in curves.iter_mut().zip([0, 1, 2, 4, 5].map(|i| numbers[i])) {
            curve.push((n as f64, value));
        }
    }
    let names = ["Frobenius norm", "trace", "bound", "as printed", "k-DPP, mean"];
    let all: Vec<Line> =
        names.iter().zip(curves).map(|(name, points)| Line { name, points }).collect();
    lines(area, ("‖K − Q‖ and bounds", "N", ""), &all, [true, true])
}

/// Log probabilities of OIPS's sets and of draws under the k-DPP (Figure 3).
pub fn probable(arguments: &[String], area: &Area<'_>) -> Drawn {
    let rows = number(arguments, "--rows", 1000.0) as usize;
    let draws = number(arguments, "--draws", 40.0) as u64;
    let name = option(arguments, "--data").unwrap_or_else(|| "energy".into());
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../testdata/data/{name}.csv.gz"));
    let table = Table::open(path)?;
    let last = table.columns().last().cloned().expect("columns");
    let all = table.select(&Selection::targets([last.as_str()]))?.read_all()?;
    let (n, d) = (all.x.nrows(), all.x.ncols());
    let standardised = |q: usize| {
        let own = all.x.col_as_slice(q);
        let mean = own.iter().sum::<f64>() / n as f64;
        let sd = (own.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        own.iter().map(|v| (v - mean) / sd.max(1e-12)).collect::<Vec<f64>>()
    };
    let x: Vec<Vec<f64>> = (0..d).map(standardised).collect();
    let kernel = rbf(1.0, (d as f64).sqrt(), d);
    println!("\n### log P of sets under the k-DPP: {name}, {} rows × {d}, ρ = 0.8", rows.min(n));
    head(&["", "draws", "M", "mean", "sd", "least", "most"]);
    let mut found = [Vec::new(), Vec::new()];
    let mut sizes = [f64::INFINITY, 0.0];
    for seed in 0..draws {
        let mut generator = rng::stream(seed, "shuffled");
        let order = rng::permutation(&mut generator, n, rows.min(n));
        let own = Mat::from_fn(order.len(), d, |i, q| x[q][order[i]]);
        let mut k = covariances(&*kernel, own.as_ref(), own.as_ref());
        (0..order.len()).for_each(|i| k[(i, i)] += 1e-6);
        let z = chosen(&*kernel, own.as_ref(), 0.8);
        let m = z.nrows();
        sizes = [sizes[0].min(m as f64), sizes[1].max(m as f64)];
        let same = |i: usize, j: usize| (0..d).all(|q| own[(i, q)] == z[(j, q)]);
        let set: Vec<usize> =
            (0..m).map(|j| (0..order.len()).find(|i| same(*i, j)).expect("a row")).collect();
        found[0].push(kdpp_log_probability(k.as_ref(), &set)?);
        let drawn = kdpp_draw(k.as_ref(), m, &mut generator)?;
        found[1].push(kdpp_log_probability(k.as_ref(), &drawn)?);
    }
    for (name, own) in ["OIPS", "k-DPP"].iter().zip(&found) {
        let count = own.len() as f64;
        let mean = own.iter().sum::<f64>() / count;
        let sd = (own.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt();
        let ends = |f: fn(f64, f64) -> f64, from: f64| own.iter().copied().fold(from, f);
        row(&[
            (*name).into(),
            format!("{draws}"),
            format!("{} to {}", sizes[0], sizes[1]),
            format!("{mean:.1}"),
            format!("{sd:.1}"),
            format!("{:.1}", ends(f64::min, f64::INFINITY)),
            format!("{:.1}", ends(f64::max, f64::NEG_INFINITY)),
        ]);
    }
    histograms(area, &found)
}

fn histograms(area: &Area<'_>, found: &[Vec<f64>; 2]) -> Drawn {
    const BINS: usize = 30;
    let values = || found.iter().flatten().copied();
    let (low, high) =
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let width = (high - low).max(1e-9) / BINS as f64;
    let counts = found.each_ref().map(|own| {
        let mut counts = [0_usize; BINS];
        own.iter().for_each(|v| counts[(((v - low) / width) as usize).min(BINS - 1)] += 1);
        counts
    });
    let top = counts.iter().flatten().copied().max().unwrap_or(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption("log P of sets under the k-DPP", ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(38)
        .y_label_area_size(40)
        .build_cartesian_2d(low - width..high + width, 0.0..top * 1.05)?;
    chart.configure_mesh().disable_mesh().x_desc("log P").y_desc("sets").x_labels(6).draw()?;
    for ((counts, colour), name) in counts.iter().zip(COLOURS).zip(["OIPS", "k-DPP draws"]) {
        let bar = |(bin, count): (usize, &usize)| {
            let left = low + bin as f64 * width;
            Rectangle::new([(left, 0.0), (left + width, *count as f64)], colour.mix(0.6).filled())
        };
        chart
            .draw_series(counts.iter().enumerate().map(bar))?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled()));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).draw()?;
    Ok(())
}
