//! How often intervals of series hold what they are to hold: `cargo run -p sparsegp-bench --bin series_coverage -- [OPTION …]`.
//!
//! Of every likelihood so many series are drawn: a function of the prior with one of five kernels, a lengthscale of 1/100 to 1/10 of
//! the span, at even, random or clustered times, and targets with noise of several sizes. The kernel is named to the fit (or `auto`),
//! everything else is the default; with `--known` the hyperparameters are those that the series was drawn with. At 100 random places
//! in the span the function and a new target are compared with the central intervals of 50, 90 and 95 %; targets that are counts by a
//! uniform number between P(Y < y) and P(Y ≤ y). Errors are those over series.

use clap::Parser;
use rayon::prelude::*;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, Standardise, fit};
use sparsegp::kernels::{Inputs, Kernel, parse};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::markov::{self, Sorted};
use sparsegp::rng::{stream, uniform};
use sparsegp::train::TrainOptions;

const LEVELS: [f64; 3] = [0.5, 0.9, 0.95];
const SPAN: f64 = 30.0;
const PLACES: usize = 100;
const FAMILIES: [&str; 5] = ["matern12", "matern32", "matern52", "rbf", "matern52 + matern12"];

/// How often intervals of series hold what they are to hold
#[derive(Parser)]
struct Options {
    /// Series of every likelihood
    #[arg(long, default_value_t = 200)]
    series: usize,
    /// Rows of a series
    #[arg(long, default_value_t = 300)]
    rows: usize,
    /// Method of the fits
    #[arg(long, default_value = "markov")]
    method: String,
    /// Kernel of the fits, instead of that of the series
    #[arg(long)]
    kernel: Option<String>,
    /// Only likelihoods whose name begins so
    #[arg(long, default_value = "")]
    only: String,
    /// Hyperparameters that the series was drawn with
    #[arg(long)]
    known: bool,
    /// A line for each kernel of the series too
    #[arg(long)]
    by_kernel: bool,
}

/// A likelihood: its name for a fit, and that with its parameters for a size of the noise; the mean and variance of the function.
struct Kind {
    name: &'static str,
    with: fn(f64) -> String,
    mean: f64,
    variance: f64,
    /// Whether a target has an interval, which a class has not.
    targets: bool,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "gaussian",
        with: |size| format!("gaussian(variance={})", size * size),
        mean: 0.0,
        variance: 1.0,
        targets: true,
    },
    Kind {
        name: "student-t(df=4)",
        with: |size| format!("student-t(df=4, scale={size})"),
        mean: 0.0,
        variance: 1.0,
        targets: true,
    },
    Kind { name: "poisson", with: |_| "poisson".into(), mean: 1.0, variance: 0.6, targets: true },
    Kind {
        name: "bernoulli(link=logit)",
        with: |_| "bernoulli(link=logit)".into(),
        mean: 0.0,
        variance: 3.0,
        targets: false,
    },
];

/// Whether each interval holds the function, and the target, on average over places.
type Held = [[f64; 3]; 2];

/// Times of rows: even, random, or in clusters.
fn times(rows: usize, how: usize, rng: &mut impl rand::Rng) -> Vec<f64> {
    let mut t: Vec<f64> = match how {
        0 => (0..rows).map(|i| (i as f64 + 0.5) / rows as f64 * SPAN).collect(),
        1 => (0..rows).map(|_| SPAN * uniform(rng)).collect(),
        _ => {
            let centres: Vec<f64> = (0..12).map(|_| SPAN * uniform(rng)).collect();
            let near = |i: usize, u: f64| (centres[i % 12] + 2.0 * (u - 0.5)).clamp(0.0, SPAN);
            (0..rows).map(|i| near(i, uniform(rng))).collect()
        }
    };
    t.sort_by(f64::total_cmp);
    t
}

/// A series: rows, and what is to be predicted.
struct Drawn {
    /// The kernel and the likelihood with their parameters.
    kernel: String,
    likelihood: String,
    x: Mat<f64>,
    y: Mat<f64>,
    new_x: Mat<f64>,
    new_f: Vec<f64>,
    new_y: Mat<f64>,
}

fn column(v: &[f64]) -> Mat<f64> {
    Mat::from_fn(v.len(), 1, |i, _| v[i])
}

/// A kernel of a family with parameters drawn at random.
fn kernel(family: &str, v: f64, rng: &mut impl rand::Rng) -> String {
    let length = SPAN / 100.0 * 10.0_f64.powf(uniform(rng));
    match family {
        "matern52 + matern12" => format!(
            "matern52(variance={}, lengthscales={length}) + matern12(variance={}, lengthscales={})",
            0.7 * v,
            0.3 * v,
            0.3 * length
        ),
        one => format!("{one}(variance={v}, lengthscales={length})"),
    }
}

/// Values of a function of the prior at places in any order.
fn path(
    kernel: &dyn Kernel,
    places: &[f64],
    rng: &mut impl rand::Rng,
) -> sparsegp::Result<Vec<f64>> {
    let sorted = Sorted::new(Mat::from_fn(places.len(), 1, |i, _| places[i]).as_ref(), 0);
    let (seen, space) = (sorted.places(), kernel.state_space()?);
    let n = seen.len();
    // no row says anything
    let none = (vec![0.0; n], vec![f64::INFINITY; n]);
    let states = markov::draw(&*space, (seen, &none.0, &none.1), rng)?;
    let (mut f, mut h) = (vec![0.0; n], vec![0.0; space.size()]);
    for (k, i) in sorted.order.iter().enumerate() {
        space.output(seen.row(k), &mut h);
        let own = &states[k * h.len()..];
        f[*i] = h.iter().zip(own).map(|(h, s)| h * s).sum();
    }
    Ok(f)
}

fn drawn(kind: &Kind, at: usize, rows: usize, rng: &mut impl rand::Rng) -> sparsegp::Result<Drawn> {
    let spec = kernel(FAMILIES[at % FAMILIES.len()], kind.variance, rng);
    let size = 10.0_f64.powf(uniform(&mut *rng) - 1.0);
    let t = times(rows, (at / FAMILIES.len()) % 3, rng);
    let new: Vec<f64> = (0..PLACES).map(|_| SPAN * uniform(&mut *rng)).collect();
    let together: Vec<f64> = t.iter().chain(&new).copied().collect();
    let mut f = path(&*parse(&spec, Inputs::unnamed(1))?, &together, rng)?;
    f.iter_mut().for_each(|f| *f += kind.mean);
    let specification = (kind.with)(size);
    let likelihood = likelihoods::parse(&specification)?;
    let extra = likelihood.extra().and_then(|own| own.default).unwrap_or(1.0);
    let y: Vec<f64> = f.iter().map(|f| likelihood.sample(extra, &[*f], rng)).collect();
    let (seen, later) = y.split_at(t.len());
    Ok(Drawn {
        kernel: spec,
        likelihood: specification,
        x: column(&t),
        y: column(seen),
        new_x: column(&new),
        new_f: f[t.len()..].to_vec(),
        new_y: column(later),
    })
}

fn fitted(kind: &Kind, at: usize, own: &Drawn, options: &Options) -> sparsegp::Result<Fitted> {
    let plain = FitOptions {
        method: options.method.clone(),
        inducing: None,
        seed: at as u64,
        ..FitOptions::default()
    };
    let (x, y) = (own.x.clone(), own.y.clone());
    if options.known {
        let own = FitOptions {
            kernel: own.kernel.clone(),
            likelihood: Some(own.likelihood.clone()),
            mean: Some("constant".into()),
            set: vec![("mean.constant".into(), vec![kind.mean])],
            pilot: 0,
            train: TrainOptions { max_iterations: 0, ..plain.train.clone() },
            ..plain
        };
        return fit(&Dataset::from_arrays(x, y, false)?, &own, &Cpu::default(), &mut ());
    }
    let likelihood = likelihoods::parse(&own.likelihood)?;
    let family = FAMILIES[at % FAMILIES.len()];
    let own = FitOptions {
        kernel: options.kernel.clone().unwrap_or_else(|| family.into()),
        likelihood: Some(kind.name.into()),
        ..plain
    };
    let data = Dataset::from_arrays(x, y, Standardise::all_that(&*likelihood))?;
    fit(&data, &own, &Cpu::default(), &mut ())
}

/// One series, fitted and judged.
fn judge(kind: &Kind, at: usize, options: &Options) -> sparsegp::Result<Held> {
    let mut rng = stream(at as u64, kind.name);
    let own = drawn(kind, at, options.rows, &mut rng)?;
    let fitted = fitted(kind, at, &own, options)?;
    let edges: Vec<f64> = LEVELS.iter().flat_map(|c| [0.5 - 0.5 * c, 0.5 + 0.5 * c]).collect();
    let bounds = fitted.quantiles(own.new_x.as_ref(), &[], &edges, Of::Latent)?;
    let (below, up_to) = fitted.cdf(own.new_x.as_ref(), own.new_y.as_ref(), &[])?;
    let mut held = [[0.0; 3]; 2];
    for (i, f) in own.new_f.iter().enumerate() {
        let place = below[(i, 0)] + uniform(&mut rng) * (up_to[(i, 0)] - below[(i, 0)]);
        for (k, level) in LEVELS.iter().enumerate() {
            let inside = (bounds[2 * k][(i, 0)]..=bounds[2 * k + 1][(i, 0)]).contains(f);
            held[0][k] += f64::from(u8::from(inside)) / PLACES as f64;
            held[1][k] += f64::from(u8::from((place - 0.5).abs() < 0.5 * level)) / PLACES as f64;
        }
    }
    Ok(held)
}

/// A share with its error, both in per cent.
fn share(all: &[f64]) -> String {
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let square = all.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0).max(1.0);
    format!("{:.1} ± {:.1}", 100.0 * mean, 100.0 * (square / n).sqrt())
}

fn row(name: &str, targets: bool, all: &[&Held]) {
    let of = |what: usize, k: usize| share(&all.iter().map(|own| own[what][k]).collect::<Vec<_>>());
    let cell =
        |what: usize, k: usize| if what == 0 || targets { of(what, k) } else { "–".into() };
    let cells: Vec<String> =
        (0..2).flat_map(|what| (0..3).map(move |k| (what, k))).map(|(w, k)| cell(w, k)).collect();
    println!("| {name} | {} | {} |", all.len(), cells.join(" | "));
}

fn main() {
    let options = Options::parse();
    println!("| targets | series | function, 50 % | 90 % | 95 % | target, 50 % | 90 % | 95 % |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for kind in KINDS.iter().filter(|own| own.name.starts_with(&options.only)) {
        let one = |at: usize| match judge(kind, at, &options) {
            Ok(held) => Some((at, held)),
            Err(error) => {
                eprintln!("{} {at}: {error}", kind.name);
                None
            }
        };
        let all: Vec<(usize, Held)> = (0..options.series).into_par_iter().filter_map(one).collect();
        let held: Vec<&Held> = all.iter().map(|(_, held)| held).collect();
        row(&format!("`{}`", kind.name), kind.targets, &held);
        for (k, family) in FAMILIES.iter().enumerate().filter(|_| options.by_kernel) {
            let some = all.iter().filter(|(at, _)| at % FAMILIES.len() == k);
            let held: Vec<&Held> = some.map(|(_, held)| held).collect();
            row(&format!("`{}`, `{family}`", kind.name), kind.targets, &held);
        }
    }
}
