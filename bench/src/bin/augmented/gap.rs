//! What local variables cost: bounds and log evidence against lengthscales, without inducing points, on nine tenths of
//! `heart`; and what predictions lose, on the rest.
//!
//! The log evidence is an average over draws of the q without local variables, whose sites (a, λ) it has:
//! p(y) = E₀ · E_q ∏ p(yᵢ | fᵢ)/exp(aᵢfᵢ − ½λᵢfᵢ²), with E₀ the normaliser of the sites.

use crate::common::{Table, digits, kernel, number, option, problem};
use crate::folds::folds;
use plotters::prelude::*;
use sparsegp::data::InMemory;
use sparsegp::likelihoods::{Target, augmented::Site};
use sparsegp::linalg::{Cholesky, Mat};
use sparsegp::methods::{Tvgp, find};
use sparsegp::model::Model;
use sparsegp::rng::stream;
use sparsegp::samplers::conditional::{Conditional, Features};
use sparsegp::variational::{Tying, Variational};
use sparsegp_bench::load;

/// The bound of a method after so many steps, with the model at its q.
fn ascended(model: &mut Model, rows: &InMemory, method: &str, steps: usize, rate: f64) -> f64 {
    model.method = find(method).expect("a method").method;
    let own = Tvgp::of(model.method).expect("sites of all rows");
    model.q = Some(Variational::sites(rows.x.nrows(), 1, Tying::Untied));
    for _ in 0..steps {
        own.step(model, rows, rate).expect("a step");
    }
    own.value(model, rows).expect("a bound")
}

fn score(model: &Model, rows: &InMemory, test: &InMemory) -> f64 {
    let own = Tvgp::of(model.method).expect("sites of all rows");
    let at = own.posterior_at(model, &rows.x).expect("a posterior");
    let density = at.predict_log_density(test.x.as_ref(), test.y.as_ref(), &[]).expect("scores");
    -density.iter().sum::<f64>() / density.len() as f64
}

/// log p(y) from the sites of a model, with a standard error.
fn evidence(model: &Model, rows: &InMemory, draws: usize) -> (f64, f64) {
    let n = rows.x.nrows();
    let mut k = Mat::zeros(n, n);
    let mut tape = sparsegp::kernels::Tape::off();
    model.kernel().evaluate(rows.x.as_ref(), None, k.as_mut(), &mut tape);
    let factor = Cholesky::new(k.as_ref(), model.jitter, "K").expect("a factor");
    (0..n).for_each(|i| k[(i, i)] += factor.jitter);
    let features = Features { a: factor.l, k, unexplained: vec![0.0; n] };
    let params = model.params();
    let of = |path: &str| params.iter().find(|(p, _)| p == path).expect("a site").1.value();
    let (first, second) = (of("q.lambda1"), of("q.lambda2"));
    let sites: Vec<Site> = first
        .iter()
        .zip(second)
        .map(|(potential, precision)| Site { potential: *potential, precision: *precision })
        .collect();
    let mut conditional = Conditional::default();
    let energy =
        conditional.renew(&features, &sites, &vec![0.0; n], 0.0).expect("sites that are finite");
    let mut rng = stream(0, "evidence");
    let logs: Vec<f64> = (0..draws)
        .map(|_| {
            conditional.draw(&features, &mut rng);
            let each = conditional.rows().iter().zip(&sites).enumerate();
            each.map(|(i, (f, site))| {
                let target = Target { y: rows.y[(i, 0)], extra: 1.0 };
                let log = model.likelihood.log_prob(target, &[*f]);
                log - site.potential * f + 0.5 * site.precision * f * f
            })
            .sum()
        })
        .collect();
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|l| (l - top).exp()).collect();
    let count = draws as f64;
    let mean = weights.iter().sum::<f64>() / count;
    let spread = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / count;
    (energy + top + mean.ln(), (spread / count).sqrt() / mean)
}

/// Runs it.
pub fn run(arguments: &[String]) {
    let points = number(arguments, "--points", 13.0) as usize;
    let variance = number(arguments, "--variance", 0.1);
    let draws = number(arguments, "--draws", 1000.0) as usize;
    let all = load("heart", true);
    let (training, test) = folds(&all, 10).swap_remove(0);
    let header = [
        "lengthscale",
        "bound with local variables",
        "bound without",
        "log evidence",
        "its error",
        "NLL with",
        "NLL without",
    ];
    let mut table = Table::new(arguments, &header);
    let mut curves = [vec![], vec![], vec![]];
    for at in 0..points {
        let lengthscale = 10_f64.powf(-1.0 + 3.0 * at as f64 / (points.max(2) - 1) as f64);
        let spec = kernel(lengthscale, variance);
        let (mut model, rows, scaler) =
            problem(&training, "bernoulli(link=logit)", &spec, "cavi-full");
        let mut x = test.x.clone();
        scaler.scale_x(x.as_mut()).expect("the same columns");
        let test = InMemory::new(x, test.y.clone()).expect("shapes that fit");
        let with = ascended(&mut model, &rows, "cavi-full", 30, 1.0);
        let loss_with = score(&model, &rows, &test);
        let without = ascended(&mut model, &rows, "tvgp", 100, 0.5);
        let loss_without = score(&model, &rows, &test);
        let (log, error) = evidence(&model, &rows, draws);
        for (curve, value) in curves.iter_mut().zip([with, without, log]) {
            curve.push((lengthscale, value));
        }
        let exact = [with, without, log].map(|v| format!("{v:.3}"));
        let mut cells = vec![digits(lengthscale)];
        cells.extend(exact);
        cells.push(format!("{error:.1e}"));
        cells.extend([loss_with, loss_without].map(|v| format!("{v:.4}")));
        table.row(&cells);
    }
    if let Some(path) = option(arguments, "--svg") {
        draw(&path, &curves).expect("a picture");
    }
}

type Curve = Vec<(f64, f64)>;

fn draw(path: &str, curves: &[Curve; 3]) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (640, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let values = || curves.iter().flatten();
    let (low, high) = (
        values().map(|p| p.1).fold(f64::INFINITY, f64::min),
        values().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max),
    );
    let ends = values().fold((f64::INFINITY, 0.0_f64), |(a, b), p| (a.min(p.0), b.max(p.0)));
    let margin = 0.05 * (high - low);
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((ends.0..ends.1).log_scale(), low - margin..high + margin)?;
    chart.configure_mesh().disable_mesh().x_desc("lengthscale").y_desc("nats").draw()?;
    let names = ["bound with local variables", "bound without", "log evidence"];
    let colours = [RGBColor(213, 94, 0), RGBColor(0, 114, 178), BLACK];
    for ((curve, name), colour) in curves.iter().zip(names).zip(colours) {
        let line = LineSeries::new(curve.iter().copied(), colour.stroke_width(2));
        chart.draw_series(line)?.label(name).legend(move |(x, y)| {
            PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
        });
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).draw()?;
    root.present()?;
    Ok(())
}
