//! Figures 1.1 and 1.2: Neal's funnel in two representations.

use sparsegp::linalg::Mat;
use sparsegp::samplers::density::{DensityDraws, Parallel};
use sparsegp::samplers::hmc::{HmcOptions, Path, sample_density};
use sparsegp::samplers::joint::LogDensity;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{
    Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table, contours,
};
use std::ops::ControlFlow;

/// Centred.
pub const CENTRED: Entry = Entry {
    name: "basics-figure1.1",
    item: "Figure 1.1",
    shows: "Neal's funnel, centred, with samples",
    rule: "draws of NUTS stay out of the neck: their least v is above that of as many draws without the funnel",
    body: Body::Program(|run| show(run, true)),
    ..BOTH
};

/// Not centred.
pub const NOT_CENTRED: Entry = Entry {
    name: "basics-figure1.2",
    item: "Figure 1.2",
    shows: "Neal's funnel, not centred, with samples",
    rule: "the effective size of v is at least three times that of the centred form",
    body: Body::Program(|run| show(run, false)),
    ..BOTH
};

const BOTH: Entry = Entry {
    paper: "basics",
    data: &[Data::Simulated("Neal's funnel: v ~ N(0, 9), nine x ~ N(0, e^v)")],
    protocol: "four chains of 1000 draws of NUTS after 1000, of v and x or of their standard normal sources",
    scaled: "the thesis shows the densities and says which is easier to sample; effective sizes are our addition",
    ..BLANK
};

const DIM: usize = 10;

/// The funnel, centred or as standard normal numbers that it is made of.
#[derive(Clone)]
struct Funnel {
    centred: bool,
}

impl LogDensity for Funnel {
    fn dim(&self) -> usize {
        DIM
    }

    fn value(&mut self, at: &[f64]) -> f64 {
        self.evaluate(at, &mut [0.0; DIM])
    }

    fn evaluate(&mut self, at: &[f64], gradient: &mut [f64]) -> f64 {
        if !self.centred {
            gradient.iter_mut().zip(at).for_each(|(g, z)| *g = -z);
            return -0.5 * at.iter().map(|z| z * z).sum::<f64>();
        }
        let (v, x) = (at[0], &at[1..]);
        let squares: f64 = x.iter().map(|x| x * x).sum();
        let scale = (-v).exp();
        let count = x.len() as f64;
        gradient[0] = -v / 9.0 - 0.5 * count + 0.5 * scale * squares;
        gradient[1..].iter_mut().zip(x).for_each(|(g, x)| *g = -scale * x);
        -v * v / 18.0 - 0.5 * count * v - 0.5 * scale * squares
    }
}

fn sample(centred: bool, draws: usize, seed: u64) -> sparsegp::Result<DensityDraws> {
    let path = Path::NoUTurn { depth: 10 };
    let options = HmcOptions { burn_in: draws, draws, path, seed, ..HmcOptions::default() };
    let mut density = Parallel::new(&Funnel { centred }, options.chains);
    sample_density(&mut density, None, &options, &mut |_, _| ControlFlow::Continue(()))
}

fn show(run: &mut Run<'_>, centred: bool) -> Drawn {
    let draws = run.size([50, 1000, 1000, 1000]);
    let forms = [true, false].map(|centred| sample(centred, draws, run.seed()));
    let [of_funnel, of_normal] = forms;
    let (of_funnel, of_normal) = (of_funnel?, of_normal?);
    let names = ["centred", "not centred"];
    let mut table = Table::new("v", &["form", "bulk ESS", "R̂", "divergences", "deviation (3)"]);
    let mut sizes = Vec::new();
    for (name, (found, scale)) in names.iter().zip([(&of_funnel, 1.0), (&of_normal, 3.0)]) {
        let own = found.summaries()[0];
        sizes.push(own.ess_bulk);
        table.row(vec![
            (*name).into(),
            format!("{:.0}", own.ess_bulk),
            format!("{:.3}", own.rhat),
            found.divergences().to_string(),
            format!("{:.2}", scale * own.deviation),
        ]);
    }
    run.table(table);
    let flat = |found: &DensityDraws, at: usize| found.variable(at).concat();
    let v = [flat(&of_funnel, 0), flat(&of_normal, 0).iter().map(|z| 3.0 * z).collect()];
    let least = v.each_ref().map(|v: &Vec<f64>| v.iter().copied().fold(f64::INFINITY, f64::min));
    if centred {
        let ours = format!("least v {:.1}, of the other form {:.1}", least[0], least[1]);
        run.holds("neck", "hard to sample", ours, least[0] > least[1]);
    } else {
        let ours = format!("{:.0} and {:.0}", sizes[1], sizes[0]);
        run.holds("effective size of v", "easy to sample", ours, sizes[1] > 3.0 * sizes[0]);
    }
    let which = usize::from(!centred);
    let x = flat([&of_funnel, &of_normal][which], 1);
    let other: Vec<f64> =
        if centred { v[0].clone() } else { v[1].iter().map(|v| v / 3.0).collect() };
    let points = x.iter().copied().zip(other).step_by(10).collect();
    let grid: Vec<f64> = (0..40).map(|i| -10.0 + 20.0 * f64::from(i) / 39.0).collect();
    let small: Vec<f64> = (0..40).map(|i| -4.0 + 8.0 * f64::from(i) / 39.0).collect();
    let (gx, gy) = if centred { (&grid, &grid) } else { (&small, &small) };
    // the density of v and one x
    let log = |x: f64, v: f64| match centred {
        true => -v * v / 18.0 - 0.5 * v - 0.5 * x * x * (-v).exp(),
        false => -0.5 * (x * x + v * v),
    };
    let values = Mat::from_fn(40, 40, |i, j| log(gx[i], gy[j]));
    let top = (0..40).flat_map(|i| (0..40).map(move |j| (i, j))).map(|at| values[at]);
    let top = top.fold(f64::NEG_INFINITY, f64::max);
    let levels = [0.5, 1.5, 3.0, 5.0].map(|below| top - below);
    let series = vec![
        Series::new("", Kind::Dots, 1, points),
        Series::new("", Kind::Segments, 0, contours(gx, gy, &values, &levels)),
    ];
    let (wide, title) = if centred { (10.0, "centred") } else { (4.0, "not centred") };
    let names = if centred { ["x", "v"] } else { ["source of x", "source of v"] };
    let [x, y] = names.map(|name| Axis::new(name).from_to(-wide, wide));
    run.figure("", 1, &[Panel { title: title.into(), x, y, series }])
}
