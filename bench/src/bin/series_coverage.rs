//! How often intervals of series hold what they are to hold: `cargo run -p sparsegp-bench --bin series_coverage -- [OPTION …]`.
//!
//! Of every likelihood so many series are drawn: a function of the prior with one of five kernels, a lengthscale of 1/100 to 1/10 of
//! the span, at even, random or clustered times, and targets with noise of several sizes. The kernel is named to the fit (or `auto`),
//! everything else is the default; with `--known` the hyperparameters are those that the series was drawn with. At 100 random places
//! in the span the function and a new target are compared with the central intervals of 50, 90 and 95 %; targets that are counts by a
//! uniform number between P(Y < y) and P(Y ≤ y). Errors are those over series.
//!
//! Options: `--series 200`, `--rows 300`, `--method markov`, `--only student-t`, `--kernel auto`, `--known`, `--by-kernel`.

use rayon::prelude::*;
use sparsegp::engine::Cpu;
use sparsegp::fit::{Dataset, FitOptions, Of, Standardise, fit};
use sparsegp::kernels::{Inputs, parse};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::markov;
use sparsegp::rng::{stream, uniform};

const LEVELS: [f64; 3] = [0.5, 0.9, 0.95];
const SPAN: f64 = 30.0;
const PLACES: usize = 100;
const FAMILIES: [&str; 5] = ["matern12", "matern32", "matern52", "rbf", "matern52 + matern12"];

/// What the arguments ask for.
struct Options {
    series: usize,
    rows: usize,
    method: String,
    kernel: Option<String>,
    known: bool,
}

/// A likelihood: its name for a fit, and that with its parameters for a size of the noise; the mean and variance of the function.
struct Kind {
    name: &'static str,
    with: fn(f64) -> String,
    mean: f64,
    variance: f64,
    /// Whether a target has an interval of its own.
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

/// One series, fitted and judged.
fn judge(kind: &Kind, at: usize, options: &Options) -> sparsegp::Result<Held> {
    let mut rng = stream(at as u64, kind.name);
    let family = FAMILIES[at % FAMILIES.len()];
    let length = SPAN / 100.0 * 10.0_f64.powf(uniform(&mut rng));
    let size = 10.0_f64.powf(uniform(&mut rng) - 1.0);
    let v = kind.variance;
    let truth = match family {
        "matern52 + matern12" => format!(
            "matern52(variance={}, lengthscales={length}) + matern12(variance={}, lengthscales={})",
            0.7 * v,
            0.3 * v,
            0.3 * length
        ),
        one => format!("{one}(variance={v}, lengthscales={length})"),
    };
    let kernel = parse(&truth, Inputs::unnamed(1))?;
    let t = times(options.rows, (at / FAMILIES.len()) % 3, &mut rng);
    let new: Vec<f64> = (0..PLACES).map(|_| SPAN * uniform(&mut rng)).collect();
    // a path of the prior: no row says anything
    let together: Vec<f64> = t.iter().chain(&new).copied().collect();
    let order = markov::order(&together);
    let sorted: Vec<f64> = order.iter().map(|i| together[*i]).collect();
    let space = kernel.state_space()?;
    let n = sorted.len();
    let none = (vec![0.0; n], vec![f64::INFINITY; n]);
    let states = markov::draw(&*space, (&sorted, &none.0, &none.1), &mut rng)?;
    let mut f = vec![0.0; n];
    let mut h = vec![0.0; space.size()];
    for (k, i) in order.iter().enumerate() {
        space.output(sorted[k], &mut h);
        let own = &states[k * h.len()..];
        f[*i] = kind.mean + h.iter().zip(own).map(|(h, s)| h * s).sum::<f64>();
    }
    let specification = (kind.with)(size);
    let likelihood = likelihoods::parse(&specification)?;
    let extra = likelihood.extra().and_then(|own| own.default).unwrap_or(1.0);
    let y: Vec<f64> = f.iter().map(|f| likelihood.sample(extra, &[*f], &mut rng)).collect();

    let own = FitOptions {
        kernel: match (&options.kernel, options.known) {
            (_, true) => truth,
            (Some(kernel), _) => kernel.clone(),
            (None, _) => family.into(),
        },
        likelihood: Some(if options.known { specification } else { kind.name.into() }),
        method: options.method.clone(),
        inducing: None,
        seed: at as u64,
        ..FitOptions::default()
    };
    let column = |v: &[f64]| Mat::from_fn(v.len(), 1, |i, _| v[i]);
    let (x, seen) = (column(&t), column(&y[..t.len()]));
    let data = match options.known {
        true => Dataset::from_arrays(x, seen, false)?,
        false => Dataset::from_arrays(x, seen, Standardise::all_that(&*likelihood))?,
    };
    let own = match options.known {
        true => FitOptions {
            mean: Some("constant".into()),
            set: vec![("mean.constant".into(), vec![kind.mean])],
            pilot: 0,
            train: sparsegp::train::TrainOptions { max_iterations: 0, ..own.train.clone() },
            ..own
        },
        false => own,
    };
    let fitted = fit(&data, &own, &Cpu::default(), &mut ())?;
    let x = column(&new);
    let edges: Vec<f64> = LEVELS.iter().flat_map(|c| [0.5 - 0.5 * c, 0.5 + 0.5 * c]).collect();
    let bounds = fitted.quantiles(x.as_ref(), &[], &edges, Of::Latent)?;
    let target = column(&y[t.len()..]);
    let (below, up_to) = fitted.cdf(x.as_ref(), target.as_ref(), &[])?;
    let mut held = [[0.0; 3]; 2];
    for i in 0..PLACES {
        let (f, share) = (f[t.len() + i], uniform(&mut rng));
        let place = below[(i, 0)] + share * (up_to[(i, 0)] - below[(i, 0)]);
        for (k, level) in LEVELS.iter().enumerate() {
            let inside = bounds[2 * k][(i, 0)] <= f && f <= bounds[2 * k + 1][(i, 0)];
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

/// The text after an option.
fn argument(name: &str) -> Option<String> {
    let all: Vec<String> = std::env::args().collect();
    all.iter().position(|own| own == name).and_then(|at| all.get(at + 1).cloned())
}

fn main() {
    let number =
        |name: &str, usual: usize| argument(name).and_then(|own| own.parse().ok()).unwrap_or(usual);
    let has = |name: &str| std::env::args().any(|own| own == name);
    let options = Options {
        series: number("--series", 200),
        rows: number("--rows", 300),
        method: argument("--method").unwrap_or_else(|| "markov".into()),
        kernel: argument("--kernel"),
        known: has("--known"),
    };
    let only = argument("--only");
    println!("| targets | series | function, 50 % | 90 % | 95 % | target, 50 % | 90 % | 95 % |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for kind in KINDS.iter().filter(|own| only.as_ref().is_none_or(|o| own.name.starts_with(o))) {
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
        for (k, family) in FAMILIES.iter().enumerate().filter(|_| has("--by-kernel")) {
            let some = all.iter().filter(|(at, _)| at % FAMILIES.len() == k);
            let held: Vec<&Held> = some.map(|(_, held)| held).collect();
            row(&format!("`{}`, `{family}`", kind.name), kind.targets, &held);
        }
    }
}
