//! The regression and classification streams of Bui, Nguyen & Turner 2017.

use crate::common::{
    Area, Drawn, JITTER, Learn, Line, Stream, cut, head, lines, normal, number, rbf, row, stacked,
};
use sparsegp::data::{InMemory, Selection, Table};
use sparsegp::engine::Cpu;
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::model::{Model, inducing_param};
use sparsegp::train::{TrainOptions, train};
use sparsegp::{means, methods, rng};

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
