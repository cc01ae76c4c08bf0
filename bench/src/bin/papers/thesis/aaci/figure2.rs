//! Figures 2 and 5: what local variables cost, by lengthscale.
//!
//! The log evidence is an average over draws of the q without local variables, whose sites (a, λ) it has:
//! p(y) = E₀ · E_q ∏ p(yᵢ | fᵢ)/exp(aᵢfᵢ − ½λᵢfᵢ²), with E₀ the normaliser of the sites.

use crate::thesis::augmented::{folds, kernel, problem};
use sparsegp::data::InMemory;
use sparsegp::likelihoods::{Target, augmented::Site};
use sparsegp::linalg::{Cholesky, Mat};
use sparsegp::methods::{Tvgp, find};
use sparsegp::model::Model;
use sparsegp::rng::stream;
use sparsegp::samplers::conditional::{Conditional, Features};
use sparsegp::variational::{Tying, Variational};
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "aaci-figure2",
    paper: "aaci",
    item: "Figures 2 and 5",
    shows: "bound and NLL by lengthscale, with local variables and without",
    data: &[Data::Substitute { of: "heart with 303 rows", by: "heart" }, Data::Bundled("housing")],
    protocol: "nine tenths of the rows, no inducing points, variance 0.1; the bound with local \
               variables, without, and the log \
               evidence by importance sampling",
    scaled: "the log evidence is our addition",
    rule: "the bound with local variables is below that without at every lengthscale, by less than 5 \
               nats, and test NLLs differ by \
           less than 0.02",
    body: Body::Program(run),
    ..BLANK
};

const PROBLEMS: [(&str, &str, &str); 4] = [
    ("Laplace", "housing", "laplace(scale=1)"),
    ("Student-t", "housing", "student-t(df=3, scale=1)"),
    ("Matérn 3/2", "housing", "matern32(scale=1)"),
    ("logistic", "heart", "bernoulli(link=logit)"),
];

/// The bound of a method after so many steps, with the model at its q.
fn ascended(
    model: &mut Model,
    rows: &InMemory,
    method: &str,
    steps: usize,
    rate: f64,
) -> sparsegp::Result<f64> {
    model.method = find(method)?.method;
    let own = Tvgp::of(model.method)?;
    model.q = Some(Variational::sites(rows.x.nrows(), 1, Tying::Untied));
    for _ in 0..steps {
        own.step(model, rows, rate)?;
    }
    own.value(model, rows)
}

fn score(model: &Model, rows: &InMemory, test: &InMemory) -> sparsegp::Result<f64> {
    let own = Tvgp::of(model.method)?;
    let at = own.posterior_at(model, &rows.x)?;
    let density = at.predict_log_density(test.x.as_ref(), test.y.as_ref(), &[])?;
    Ok(-density.iter().sum::<f64>() / density.len() as f64)
}

/// log p(y) from the sites of a model, with a standard error.
fn evidence(model: &Model, rows: &InMemory, draws: usize) -> sparsegp::Result<(f64, f64)> {
    let n = rows.x.nrows();
    let mut k = Mat::zeros(n, n);
    let mut tape = sparsegp::kernels::Tape::off();
    model.kernel().evaluate(rows.x.as_ref(), None, k.as_mut(), &mut tape);
    let factor = Cholesky::new(k.as_ref(), model.jitter, "K")?;
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
    let energy = conditional.renew(&features, &sites, &vec![0.0; n], 0.0)?;
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
    Ok((energy + top + mean.ln(), (spread / count).sqrt() / mean))
}

fn run(run: &mut Run<'_>) -> Drawn {
    let points = run.size([2, 7, 13, 25]);
    let draws = run.size([50, 500, 1000, 1000]);
    let steps = run.size([3, 100, 200, 200]);
    let head =
        ["likelihood", "lengthscale", "with", "without", "log evidence", "NLL with", "NLL without"];
    let (mut table, mut top, mut bottom) = (Table::new("", &head), Vec::new(), Vec::new());
    for (name, data, likelihood) in PROBLEMS {
        let all = load(data, data == "heart");
        let (training, test) = folds(&all, 10, run.seed())?.swap_remove(0);
        let mut curves: [Vec<(f64, f64)>; 5] = Default::default();
        for at in 0..points {
            let lengthscale = 10_f64.powf(-1.0 + 3.0 * at as f64 / (points - 1) as f64);
            let (mut model, rows, scaler) =
                problem(&training, likelihood, &kernel(lengthscale, 0.1), "cavi-full")?;
            let (mut x, mut y) = (test.x.clone(), test.y.clone());
            scaler.scale_x(x.as_mut())?;
            scaler.scale_y(y.as_mut())?;
            let test = InMemory::new(x, y)?;
            let with = ascended(&mut model, &rows, "cavi-full", steps, 1.0)?;
            let loss_with = score(&model, &rows, &test)?;
            let without = ascended(&mut model, &rows, "tvgp", steps, 0.5)?;
            let loss_without = score(&model, &rows, &test)?;
            let (log, _) = evidence(&model, &rows, draws)?;
            let numbers = [with, without, log, loss_with, loss_without];
            curves.iter_mut().zip(numbers).for_each(|(c, v)| c.push((lengthscale, v)));
            let cells = [3, 3, 3, 4, 4].into_iter().zip(numbers);
            let cells: Vec<String> = cells.map(|(d, v)| format!("{v:.d$}")).collect();
            table.row([vec![name.to_owned(), format!("{lengthscale:.3}")], cells].concat());
        }
        let gaps = |a: usize, b: usize| curves[a].iter().zip(&curves[b]).map(|(a, b)| b.1 - a.1);
        let most = gaps(0, 1).fold(f64::NEG_INFINITY, f64::max);
        let least = gaps(0, 1).fold(f64::INFINITY, f64::min);
        let ours = format!("{least:.3} to {most:.3} nats below");
        run.holds(&format!("{name}: bound"), "slightly looser", ours, least > -1e-6 && most < 5.0);
        let off = gaps(3, 4).map(f64::abs).fold(0.0, f64::max);
        run.holds(
            &format!("{name}: NLL"),
            "the same",
            format!("off by at most {off:.4}"),
            off < 0.02,
        );
        let names =
            ["with local variables", "without", "log evidence", "with local variables", "without"];
        let mut series: Vec<Series> = curves
            .into_iter()
            .zip(names)
            .zip([1, 0, 7, 1, 0])
            .map(|((points, name), colour)| Series::new(name, Kind::Line, colour, points))
            .collect();
        let losses = series.split_off(3);
        let x = || Axis::new("lengthscale").log();
        top.push(Panel { title: name.into(), x: x(), y: Axis::new("bound"), series });
        bottom.push(Panel { title: String::new(), x: x(), y: Axis::new("NLL"), series: losses });
    }
    run.table(table);
    run.note(
        "The log evidence is an average over draws from a Gaussian. Where tails are heavy (Student-t) it is a poor estimate, \
         and may fall below the bounds.",
    );
    top.extend(bottom);
    run.figure("", 4, &top)
}
