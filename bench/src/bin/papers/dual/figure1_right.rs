//! Figure 1, right: coordinate ascent in the plane of variance and lengthscale.

use super::em::{climb, freeze, settle};
use super::toy::{NATURAL, PLAIN, Shape, WHITENED, with};
use sparsegp::data::InMemory;
use sparsegp::kernels::{Inputs, parse};
use sparsegp::linalg::Mat;
use sparsegp::methods::find;
use sparsegp::model::Model;
use sparsegp::{likelihoods, rng};
use sparsegp_bench::load;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{
    Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table, contours,
};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "dual-figure1-right",
    paper: "dual",
    item: "Figure 1, right",
    shows: "paths of coordinate ascent in variance and lengthscale by three forms of q",
    data: &[Data::Bundled("banana")],
    protocol: "400 rows, logistic likelihood, squared exponential with one lengthscale, 50 random rows \
               as inducing points \
               that stay; from (1, 1), E-step to convergence, then M-step over both to convergence",
    scaled: "which rows are inducing points and how many is not printed",
    rule: "t-SVGP needs the fewest rounds to be within 0.5 nats of the best bound found",
    body: Body::Program(run),
    ..BLANK
};

fn start() -> sparsegp::Result<(InMemory, Model)> {
    let all = load("banana", true);
    let rows = rng::permutation(&mut rng::stream(0, "points"), all.x.nrows(), 50);
    let z = crate::common::pick(&all.x, &rows);
    let kernel = parse("rbf(variance=1.0, lengthscales=1.0, ard=false)", Inputs::unnamed(2))?;
    let mut model = Model::builder(kernel, find("svgp")?.method)
        .likelihood(likelihoods::parse("bernoulli(link=logit)")?)
        .mean(sparsegp::means::by_name("zero", 2, 1)?)
        .inducing(z.as_ref())
        .build(2, 1)?;
    model.for_group("inducing", |param| param.frozen = true)?;
    Ok((InMemory::new(all.x, all.y)?, model))
}

fn place(model: &Model) -> (f64, f64) {
    let params = model.params();
    let of =
        |path: &str| params.iter().find(|(p, _)| p == path).map_or(f64::NAN, |(_, v)| v.scalar());
    (of("kernel.variance"), of("kernel.lengthscales"))
}

/// Variances and lengthscales of a path, and the bound after every E-step.
type Path = (Vec<(f64, f64)>, Vec<f64>);

/// Returns the path of EM.
fn path(shape: &Shape, model: &Model, data: &InMemory, rounds: usize) -> sparsegp::Result<Path> {
    let mut model = with(shape, model, data.x.nrows())?;
    let (mut places, mut bounds) = (vec![place(&model)], Vec::new());
    for _ in 0..rounds {
        bounds.push(settle(&mut model, data, 60)?);
        freeze(&mut model, true);
        model.for_group("inducing", |param| param.frozen = true)?;
        climb(&mut model, data)?;
        places.push(place(&model));
    }
    bounds.push(settle(&mut model, data, 60)?);
    Ok((places, bounds))
}

fn run(run: &mut Run<'_>) -> Drawn {
    let (data, model) = start()?;
    let rounds = run.size([1, 10, 20, 20]);
    let shapes = [NATURAL, WHITENED, PLAIN];
    let (mut series, mut all) = (Vec::new(), Vec::new());
    for (colour, shape) in shapes.iter().enumerate() {
        let (places, bounds) = path(shape, &model, &data, rounds)?;
        series.push(Series::new(shape.name, Kind::Line, colour, places.clone()));
        series.push(Series::new("", Kind::Dots, colour, places));
        all.push(bounds);
    }
    let best = all.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    let needed = |bounds: &[f64]| bounds.iter().position(|b| *b > best - 0.5);
    let mut table = Table::new(
        "Bound after so many rounds",
        &[&["rounds"][..], &shapes.each_ref().map(|shape| shape.name)].concat(),
    );
    for round in 0..=rounds {
        let cells = all.iter().map(|bounds| format!("{:.3}", bounds[round]));
        table.row([round.to_string()].into_iter().chain(cells).collect());
    }
    run.table(table);
    let counts: Vec<usize> = all.iter().map(|b| needed(b).unwrap_or(usize::MAX)).collect();
    let words: Vec<String> = counts
        .iter()
        .map(|c| if *c == usize::MAX { format!("more than {rounds}") } else { c.to_string() })
        .collect();
    let ours = format!("t {}, q whitened {}, q {}", words[0], words[1], words[2]);
    let fewest = counts[0] < counts[1].min(counts[2]);
    run.holds("rounds", "t-SVGP takes longer steps and is there first", ours, fewest);
    let side = run.size([3, 13, 25, 25]);
    let xs: Vec<f64> =
        (0..side).map(|i| 10_f64.powf(-0.3 + 2.3 * i as f64 / (side - 1) as f64)).collect();
    let ys: Vec<f64> =
        (0..side).map(|i| 10_f64.powf(-0.6 + 0.9 * i as f64 / (side - 1) as f64)).collect();
    let mut values = Mat::zeros(side, side);
    for (i, x) in xs.iter().enumerate() {
        for (j, y) in ys.iter().enumerate() {
            let mut moved = with(&NATURAL, &model, 400)?;
            moved.set("kernel.variance", &[*x])?;
            moved.set("kernel.lengthscales", &[*y])?;
            values[(i, j)] = settle(&mut moved, &data, 30)?;
        }
    }
    let levels = [0.5, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0].map(|below| best - below);
    series.insert(0, Series::new("", Kind::Segments, 6, contours(&xs, &ys, &values, &levels)));
    let title = "E and M to convergence, from (1, 1)".to_owned();
    let (x, y) = (Axis::new("variance").log(), Axis::new("lengthscale").log());
    run.figure("", 1, &[Panel { title, x, y, series }])
}
