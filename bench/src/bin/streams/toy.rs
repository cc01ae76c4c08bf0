//! Small streams: the toy series of Galy-Fajou & Opper 2020 (§4, Figures 1 and 2), a long one, and the regression and
//! classification streams of Bui, Nguyen & Turner 2017.

use crate::common::{
    Area, Drawn, JITTER, Learn, Line, Stream, cut, head, lines, normal, number, rbf, row, stacked,
};
use plotters::prelude::*;
use sparsegp::data::{InMemory, Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::inducing::select::oips::{accept, normalised};
use sparsegp::inducing::select::{AdaptiveGrid, kmeans};
use sparsegp::kernels::Kernel;
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::model::{Model, inducing_param};
use sparsegp::train::{TrainOptions, train};
use sparsegp::{means, methods, rng};

/// Rows to learn from in their order, and rows to test on.
struct Data {
    name: &'static str,
    x: Mat<f64>,
    y: Vec<f64>,
    test_x: Mat<f64>,
    test_y: Vec<f64>,
}

const ROWS: usize = 200;

fn toy(name: &'static str, seed: u64) -> Data {
    let mut generator = rng::stream(seed, name);
    let d = if name == "C" { 3 } else { 1 };
    let mut rows = |n: usize, ordered: bool| {
        let mut x = match name {
            "A" => (0..n).map(|i| vec![20.0 * (i as f64 + 0.5) / n as f64]).collect(),
            "B" => {
                // two stretches with a gap, unevenly seen
                let mut at: Vec<f64> = (0..n)
                    .map(|i| {
                        let u = rng::uniform(&mut generator);
                        if i < n / 2 { 6.0 * u } else { 13.0 + 7.0 * u }
                    })
                    .collect();
                if ordered {
                    at.sort_by(f64::total_cmp);
                }
                at.into_iter().map(|v| vec![v]).collect()
            }
            _ => (0..n)
                .map(|_| (0..3).map(|_| normal(&mut generator)).collect::<Vec<f64>>())
                .collect::<Vec<_>>(),
        };
        let f = |x: &[f64]| {
            let r = x.iter().map(|v| v * v).sum::<f64>().sqrt();
            if d == 1 { x[0].sin() } else { r.sin() / r.max(1e-9) }
        };
        let y: Vec<f64> =
            x.iter().map(|x: &Vec<f64>| f(x) + 0.1 * normal(&mut generator)).collect();
        let own = Mat::from_fn(n, d, |i, q| x[i][q]);
        x.clear();
        (own, y)
    };
    let ((x, y), (test_x, test_y)) = (rows(ROWS, true), rows(ROWS, false));
    Data { name, x, y, test_x, test_y }
}

/// The median distance of the rows.
fn median_distance(x: &Mat<f64>) -> f64 {
    let distance = |i: usize, j: usize| {
        (0..x.ncols()).map(|q| (x[(i, q)] - x[(j, q)]).powi(2)).sum::<f64>().sqrt()
    };
    let mut all: Vec<f64> = (0..x.nrows())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .map(|(i, j)| distance(i, j))
        .collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Old points with rows that none of them is near to.
pub fn grown(kernel: &dyn Kernel, z: &Mat<f64>, x: &Mat<f64>, rho: f64) -> Mat<f64> {
    let mut diag = vec![0.0; x.nrows()];
    kernel.diag(x.as_ref(), &mut diag);
    let mut nearest = vec![-1.0_f64; x.nrows()];
    for j in 0..z.nrows() {
        let point = z.as_ref().subrows(j, 1);
        let mut own = [0.0];
        kernel.diag(point, &mut own);
        let k = crate::common::covariances(kernel, x.as_ref(), point);
        let c = normalised(k.col_as_slice(0), &diag, own[0]);
        nearest.iter_mut().zip(c).for_each(|(most, c)| *most = most.max(c));
    }
    let mut correlations = |i: usize| {
        let k = crate::common::covariances(kernel, x.as_ref(), x.as_ref().subrows(i, 1));
        let mut c = normalised(k.col_as_slice(0), &diag, diag[i]);
        c[i] = 1.0;
        Ok(vec![c])
    };
    let (rows, _) = accept(&mut [nearest], rho, usize::MAX, &mut correlations).expect("points");
    let new = Mat::from_fn(rows.len(), x.ncols(), |i, q| x[(rows[i], q)]);
    stacked(z.as_ref(), new.as_ref())
}

/// Four ways to have points, on three toy streams of four batches: test scores after every batch.
pub fn toys(arguments: &[String], areas: &[Area<'_>]) -> Drawn {
    let seeds = number(arguments, "--seeds", 5.0) as u64;
    let steps = number(arguments, "--steps", 100.0) as usize;
    println!("\n### Toy streams, 4 batches of 50, mean test NLL after each, {seeds} draws");
    head(&["stream", "points", "M", "1", "2", "3", "4"]);
    for (name, area) in ["A", "B", "C"].into_iter().zip(areas) {
        let (fixed, per) = if name == "C" { (50, 10) } else { (25, 25) };
        let ways = ["grid", "k-means + Adam", "OIPS", "OIPS + Adam"];
        let mut curves: Vec<Line> = Vec::new();
        for way in ways {
            let (mut scores, mut points) = ([0.0; 4], 0.0);
            for seed in 0..seeds {
                let data = toy(name, seed);
                let batch = ROWS / 4;
                let first = cut(&data.x, 0, batch);
                let length = median_distance(&first) / 2_f64.sqrt();
                let kernel = rbf(1.0, length, data.x.ncols());
                let mut stream = Stream::new(1.0, length, Some(0.01), data.x.ncols());
                let mut seen = AdaptiveGrid::default();
                for (b, score) in scores.iter_mut().enumerate() {
                    let x = cut(&data.x, b * batch, batch);
                    let y = &data.y[b * batch..(b + 1) * batch];
                    let learn = Learn::Points(steps, 0.01);
                    let (z, learn) = match way {
                        "grid" => {
                            seen.see(x.as_ref())?;
                            (seen.nodes(per)?, Learn::Nothing)
                        }
                        "OIPS" => (grown(&*kernel, &stream.z, &x, 0.8), Learn::Nothing),
                        "OIPS + Adam" => (grown(&*kernel, &stream.z, &x, 0.8), learn),
                        _ if b == 0 => {
                            let mut generator = rng::stream(seed, "k-means");
                            (kmeans(x.as_ref(), fixed, &mut generator)?.points, learn)
                        }
                        _ => (stream.z.clone(), learn),
                    };
                    stream.take(&x, y, z, learn)?;
                    *score += stream.score(&data.test_x, &data.test_y).0 / seeds as f64;
                }
                points += stream.z.nrows() as f64 / seeds as f64;
                assert_eq!(data.name, name);
            }
            let mut cells = vec![name.into(), way.into(), format!("{points:.0}")];
            cells.extend(scores.iter().map(|s| format!("{s:.3}")));
            row(&cells);
            let points = scores.iter().enumerate().map(|(b, s)| ((b + 1) as f64, *s)).collect();
            curves.push(Line { name: way, points });
        }
        lines(area, (&format!("Stream {name}"), "batches", "test NLL"), &curves, [false; 2])?;
    }
    Ok(())
}

/// 1000 rows of a noisy sine in batches of 100, others to test on (as Figure 1).
pub fn long(_: &[String], areas: &[Area<'_>]) -> Drawn {
    let mut generator = rng::stream(1, "long");
    let n = 2000;
    let x: Vec<f64> = (0..n).map(|i| 20.0 * i as f64 / (n - 1) as f64).collect();
    let y: Vec<f64> = x.iter().map(|x| x.sin() + 0.1 * normal(&mut generator)).collect();
    let half = |odd: usize| {
        let x = Mat::from_fn(n / 2, 1, |i, _| x[2 * i + odd]);
        (x, (0..n / 2).map(|i| y[2 * i + odd]).collect::<Vec<f64>>())
    };
    let ((x, y), (test_x, test_y)) = (half(0), half(1));
    let kernel = rbf(1.0, 1.0, 1);
    let mut stream = Stream::new(1.0, 1.0, Some(0.01), 1);
    println!("\n### A long series, batches of 100, OIPS at 0.8, kernel fixed");
    head(&["batch", "points", "NLL of the rows so far", "RMSE", "NLL of all test rows"]);
    let mut areas = areas.iter();
    for b in 0..10 {
        let own = cut(&x, 100 * b, 100);
        let z = grown(&*kernel, &stream.z, &own, 0.8);
        stream.take(&own, &y[100 * b..100 * (b + 1)], z, Learn::Nothing)?;
        let seen = 100 * (b + 1);
        let (loss, error) = stream.score(&cut(&test_x, 0, seen), &test_y[..seen]);
        let all = stream.score(&test_x, &test_y).0;
        row(&[
            format!("{}", b + 1),
            format!("{}", stream.z.nrows()),
            format!("{loss:.3}"),
            format!("{error:.4}"),
            format!("{all:.3}"),
        ]);
        if [1, 4, 9].contains(&b) {
            let area = areas.next().expect("three areas");
            picture(
                area,
                &format!("after {} rows", 100 * (b + 1)),
                &stream,
                &cut(&x, 0, seen),
                &y,
            )?;
        }
    }
    Ok(())
}

/// Rows, the mean with two standard deviations of f, and inducing points.
fn picture(area: &Area<'_>, title: &str, stream: &Stream, x: &Mat<f64>, y: &[f64]) -> Drawn {
    let grid = Mat::from_fn(300, 1, |i, _| 20.0 * i as f64 / 299.0);
    let (mean, variance) = stream.predict(&grid);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(26)
        .y_label_area_size(34)
        .build_cartesian_2d(0.0..20.0, -2.4..2.4)?;
    chart.configure_mesh().disable_mesh().x_labels(6).y_labels(5).draw()?;
    let at = |i: usize, k: f64| (grid[(i, 0)], mean[i] + k * variance[i].max(0.0).sqrt());
    let band: Vec<(f64, f64)> =
        (0..300).map(|i| at(i, 2.0)).chain((0..300).rev().map(|i| at(i, -2.0))).collect();
    let blue = crate::common::COLOURS[0];
    chart.draw_series(std::iter::once(Polygon::new(band, blue.mix(0.2).filled())))?;
    chart
        .draw_series((0..x.nrows()).map(|i| {
            Circle::new((x[(i, 0)], y[i]), 1, RGBColor(120, 120, 120).mix(0.5).filled())
        }))?;
    chart.draw_series(LineSeries::new((0..300).map(|i| at(i, 0.0)), blue.stroke_width(2)))?;
    let orange = crate::common::COLOURS[1];
    chart.draw_series(
        (0..stream.z.nrows())
            .map(|i| TriangleMarker::new((stream.z[(i, 0)], -2.2), 5, orange.filled())),
    )?;
    Ok(())
}

/// Old points and new rows in the shares of Bui et al.: `kept` of the old ones, the rest drawn from the rows.
fn mixed(stream: &Stream, x: &Mat<f64>, m: usize, kept: f64, seed: u64) -> Mat<f64> {
    let mut generator = rng::stream(seed, "mixed");
    let old = ((m as f64 * kept).round() as usize).min(stream.z.nrows());
    let pick = |a: &Mat<f64>, rows: Vec<usize>| {
        Mat::from_fn(rows.len(), a.ncols(), |i, q| a[(rows[i], q)])
    };
    let first = pick(&stream.z, rng::permutation(&mut generator, stream.z.nrows(), old));
    let rest = pick(x, rng::permutation(&mut generator, x.nrows(), m - old));
    stacked(first.as_ref(), rest.as_ref())
}

/// 150 rows in three blocks with gaps, ten points, everything learnt at every block (Bui et al. 2017, Figure 1).
pub fn regression(_: &[String], areas: &[Area<'_>]) -> Drawn {
    let mut generator = rng::stream(3, "blocks");
    let (m, block) = (10, 50);
    let at: Vec<f64> =
        (0..150).map(|i| (i / block) as f64 * 3.0 + 2.0 * (i % block) as f64 / 49.0).collect();
    let f = |x: f64| (2.0 * x).sin() + 0.3 * (5.0 * x).cos();
    let y: Vec<f64> = at.iter().map(|x| f(*x) + 0.15 * normal(&mut generator)).collect();
    let x = Mat::from_fn(150, 1, |i, _| at[i]);
    let test = Mat::from_fn(150, 1, |i, _| at[i] + 0.5 * (2.0 / 49.0));
    let test_y: Vec<f64> =
        (0..150).map(|i| f(test[(i, 0)]) + 0.15 * normal(&mut generator)).collect();
    println!(
        "\n### Regression in three blocks of 50, M = 10, kernel, noise and points learnt at each"
    );
    head(&[
        "rows seen",
        "variance",
        "lengthscale",
        "noise variance",
        "test NLL",
        "test RMSE",
        "batch NLL",
        "batch RMSE",
    ]);
    let mut stream = Stream::new(1.0, 0.8, Some(1e-3), 1);
    for (b, area) in (0..3).zip(areas) {
        let own = cut(&x, b * block, block);
        let z = mixed(&stream, &own, m, 0.7, b as u64);
        let rows = &y[b * block..(b + 1) * block];
        // the first batch needs a start of the noise that is not a thousandth
        stream.take(&own, rows, z, Learn::All(200))?;
        let seen = (b + 1) * block;
        let (loss, error) = stream.score(&cut(&test, 0, seen), &test_y[..seen]);
        let (whole, of_whole) =
            batch_of(&cut(&x, 0, seen), &y[..seen], &cut(&test, 0, seen), &test_y[..seen], m)?;
        row(&[
            format!("{seen}"),
            format!("{:.3}", stream.variance),
            format!("{:.3}", stream.lengthscale),
            format!("{:.4}", stream.noise.unwrap_or(0.0)),
            format!("{loss:.3}"),
            format!("{error:.3}"),
            format!("{whole:.3}"),
            format!("{of_whole:.3}"),
        ]);
        let (mean, variance) = stream.predict(&Mat::from_fn(200, 1, |i, _| 8.0 * i as f64 / 199.0));
        let line = |k: f64| -> Vec<(f64, f64)> {
            (0..200).map(|i| (8.0 * i as f64 / 199.0, mean[i] + k * variance[i].sqrt())).collect()
        };
        let truth = (0..200).map(|i| (8.0 * i as f64 / 199.0, f(8.0 * i as f64 / 199.0))).collect();
        let all = [
            Line { name: "mean", points: line(0.0) },
            Line { name: "+2 sd", points: line(2.0) },
            Line { name: "−2 sd", points: line(-2.0) },
            Line { name: "truth", points: truth },
        ];
        lines(area, (&format!("after {seen} rows"), "x", "f"), &all, [false; 2])?;
    }
    Ok(())
}

/// A fit to all rows at once by the bound of 2009, from the same start.
fn batch_of(
    x: &Mat<f64>,
    y: &[f64],
    test: &Mat<f64>,
    test_y: &[f64],
    m: usize,
) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let data = InMemory::new(x.clone(), Mat::from_fn(y.len(), 1, |i, _| y[i]))?;
    let z = Mat::from_fn(m, 1, |i, _| x[(i * (x.nrows() - 1) / (m - 1), 0)]);
    let mut model = Model {
        kernels: vec![rbf(1.0, 0.8, 1)],
        mean: Box::new(means::Zero),
        likelihood: likelihoods::parse("gaussian(variance=0.001)")?,
        inducing: vec![inducing_param(z.as_ref())],
        q: None,
        method: methods::find("titsias2009")?.method,
        jitter: JITTER,
        hidden: Vec::new(),
    };
    let options = TrainOptions { max_iterations: 200, ..TrainOptions::default() };
    train(&mut model, &Cpu::default(), &data, &options, &mut ())?;
    let posterior = model.posterior(&Cpu::default(), &data)?;
    let (mean, variance) = posterior.predict_f(test.as_ref())?;
    let noise = model.noise();
    let (mut loss, mut square) = (0.0, 0.0);
    for i in 0..test_y.len() {
        let (v, off) = (variance[(i, 0)] + noise, test_y[i] - mean[(i, 0)]);
        loss += 0.5 * ((std::f64::consts::TAU * v).ln() + off * off / v);
        square += off * off;
    }
    let n = test_y.len() as f64;
    Ok((loss / n, (square / n).sqrt()))
}

/// Two classes in three batches, shuffled and sorted, 30 points (Bui et al. 2017, §5).
pub fn classes(arguments: &[String]) -> Drawn {
    let m = number(arguments, "--inducing", 30.0) as usize;
    let load = |name: &str| -> Result<(Mat<f64>, Vec<f64>), Box<dyn std::error::Error>> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../testdata/data/{name}.csv.gz"));
        let table = Table::open(path)?;
        let all = table.select(&Selection::targets(["y"]))?.read_all()?;
        let y = all.y.col_as_slice(0).iter().map(|y| f64::from(*y > 0.0)).collect();
        Ok((all.x, y))
    };
    let ((x, y), (test_x, test_y)) = (load("banana")?, load("banana-test")?);
    let n = x.nrows();
    println!(
        "\n### Two classes (banana, {n} and {} rows), M = {m}, kernel and points learnt at each batch",
        test_y.len()
    );
    head(&["order", "rows seen", "test NLL", "test error", "batch NLL", "batch error"]);
    for order in ["shuffled", "sorted"] {
        let mut rows = rng::permutation(&mut rng::stream(2, "shuffled"), n, n);
        if order == "sorted" {
            rows.sort_by(|a, b| x[(*a, 0)].total_cmp(&x[(*b, 0)]));
        }
        let pick = |from: usize, to: usize| {
            let own = &rows[from..to];
            let y: Vec<f64> = own.iter().map(|i| y[*i]).collect();
            (Mat::from_fn(own.len(), 2, |i, q| x[(own[i], q)]), y)
        };
        let mut stream = Stream::new(1.0, 1.0, None, 2);
        for b in 0..3 {
            let (own, labels) = pick(b * n / 3, (b + 1) * n / 3);
            let z = mixed(&stream, &own, m, 0.8, b as u64);
            stream.take(&own, &labels, z, Learn::All(100))?;
            let (loss, error) = stream.score(&test_x, &test_y);
            // all rows so far at once, from the same start
            let (all, labels) = pick(0, (b + 1) * n / 3);
            let mut whole = Stream::new(1.0, 1.0, None, 2);
            let z = mixed(&whole, &all, m, 0.8, b as u64);
            whole.take(&all, &labels, z, Learn::All(100))?;
            let (whole_loss, whole_error) = whole.score(&test_x, &test_y);
            row(&[
                order.into(),
                format!("{}", all.nrows()),
                format!("{loss:.4}"),
                format!("{error:.4}"),
                format!("{whole_loss:.4}"),
                format!("{whole_error:.4}"),
            ]);
        }
    }
    Ok(())
}
