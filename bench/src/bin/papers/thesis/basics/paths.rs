//! Figures 2.3 and 2.4: twenty steps of Gibbs and of Hamiltonian chains on Rosenbrock's density, from the same start.

use rand_distr::{Distribution, StandardNormal};
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};
use sparsegp::samplers::hmc::Point;
use sparsegp::samplers::joint::LogDensity;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, contours};

/// Gibbs.
pub const GIBBS: Entry = Entry {
    name: "basics-figure2.3",
    item: "Figure 2.3",
    shows: "twenty Gibbs steps on Rosenbrock's density",
    rule: "steps follow the axes, and in the mean are shorter than Hamiltonian paths",
    body: Body::Program(|run| show(run, true)),
    ..BOTH
};

/// Hamiltonian.
pub const HAMILTONIAN: Entry = Entry {
    name: "basics-figure2.4",
    item: "Figure 2.4",
    shows: "twenty Hamiltonian paths on Rosenbrock's density",
    rule: "in the mean paths are longer than Gibbs steps, and at least 15 of 20 are accepted",
    body: Body::Program(|run| show(run, false)),
    ..BOTH
};

const BOTH: Entry = Entry {
    paper: "basics",
    data: &[Data::Simulated("Rosenbrock's density, exp −((1 − x)² + 100 (y − x²)²)/20")],
    protocol: "from (−1.2, 2); paths of 40 leapfrog steps of 0.06",
    scaled: "start and steps are not printed",
    ..BLANK
};

const STEPS: usize = 20;
const START: (f64, f64) = (-1.2, 2.0);

/// log π = −((1 − x)² + 100 (y − x²)²)/20: y given x is N(x², 0.1).
struct Rosenbrock;

impl LogDensity for Rosenbrock {
    fn dim(&self) -> usize {
        2
    }

    fn value(&mut self, at: &[f64]) -> f64 {
        -((1.0 - at[0]).powi(2) + 100.0 * (at[1] - at[0] * at[0]).powi(2)) / 20.0
    }

    fn evaluate(&mut self, at: &[f64], gradient: &mut [f64]) -> f64 {
        let off = at[1] - at[0] * at[0];
        gradient[0] = (1.0 - at[0]) / 10.0 + 20.0 * off * at[0];
        gradient[1] = -10.0 * off;
        self.value(at)
    }
}

/// Where a chain was, with the lines between.
struct Chain {
    points: Vec<(f64, f64)>,
    lines: Vec<Vec<(f64, f64)>>,
}

/// Each coordinate given the other, in turn; x on a fine grid, y exactly.
fn gibbs(seed: u64) -> Chain {
    let mut rng = stream(seed, "paths/gibbs");
    let (mut x, mut y) = START;
    let mut found = Chain { points: vec![START], lines: vec![] };
    for _ in 0..STEPS {
        let mut corner = vec![(x, y)];
        let grid: Vec<f64> = (0..8001).map(|i| -4.0 + i as f64 * 1e-3).collect();
        let weights: Vec<f64> = grid.iter().map(|x| Rosenbrock.value(&[*x, y]).exp()).collect();
        let mut rest = uniform(&mut rng) * weights.iter().sum::<f64>();
        let at = weights.iter().position(|w| {
            rest -= w;
            rest < 0.0
        });
        x = grid[at.unwrap_or(grid.len() - 1)];
        corner.push((x, y));
        let normal: f64 = StandardNormal.sample(&mut rng);
        y = x * x + 0.1_f64.sqrt() * normal;
        corner.push((x, y));
        found.points.push((x, y));
        found.lines.push(corner);
    }
    found
}

/// Leapfrog paths; how many were accepted.
fn hamiltonian(seed: u64, steps: usize, size: f64) -> (Chain, usize) {
    let mut rng = stream(seed, "paths/hamiltonian");
    let mut point = Point::new(&mut Rosenbrock, vec![START.0, START.1]);
    let (mut found, mut accepted) = (Chain { points: vec![START], lines: vec![] }, 0);
    let mass = [1.0, 1.0];
    for _ in 0..STEPS {
        let mut momentum: Vec<f64> = StandardNormal.sample_iter(&mut rng).take(2).collect();
        let before = point.energy(&momentum, &mass);
        let (mut end, mut line) = (point.clone(), vec![(point.position[0], point.position[1])]);
        for _ in 0..steps {
            end.leapfrog(&mut Rosenbrock, &mut momentum, &mass, size, 1);
            line.push((end.position[0], end.position[1]));
        }
        if uniform(&mut rng) < (before - end.energy(&momentum, &mass)).exp() {
            point = end;
            accepted += 1;
        }
        found.points.push((point.position[0], point.position[1]));
        found.lines.push(line);
    }
    (found, accepted)
}

fn show(run: &mut Run<'_>, by_gibbs: bool) -> Drawn {
    let one = gibbs(run.seed() + 1);
    let (other, accepted) = hamiltonian(run.seed() + 1, 40, 0.06);
    let moved = |chain: &Chain| {
        let far = |(a, b): (&(f64, f64), &(f64, f64))| (a.0 - b.0).hypot(a.1 - b.1);
        chain.points.iter().zip(&chain.points[1..]).map(far).sum::<f64>() / STEPS as f64
    };
    let ours = format!("mean distance {:.2}, of Gibbs {:.2}", moved(&other), moved(&one));
    run.holds("distance", "Hamiltonian paths go further", ours, moved(&other) > moved(&one));
    if !by_gibbs {
        let ours = format!("{accepted} of {STEPS}");
        run.holds("acceptance", "most are accepted", ours, accepted >= 15);
    }
    let (chain, title) = if by_gibbs { (one, "Gibbs") } else { (other, "HMC") };
    let axis = |low: f64, high: f64, k: usize| low + (high - low) * k as f64 / 47.0;
    let x: Vec<f64> = (0..48).map(|k| axis(-3.0, 3.5, k)).collect();
    let y: Vec<f64> = (0..48).map(|k| axis(-1.5, 8.0, k)).collect();
    let values = Mat::from_fn(48, 48, |i, j| Rosenbrock.value(&[x[i], y[j]]));
    let levels = [-0.3, -1.0, -3.0, -8.0];
    let mut series = vec![Series::new("", Kind::Segments, 0, contours(&x, &y, &values, &levels))];
    series.extend(chain.lines.into_iter().map(|line| Series::new("", Kind::Thin, 7, line)));
    series.push(Series::new("", Kind::Dots, 1, chain.points));
    let (x, y) = (Axis::new("x").from_to(-3.0, 3.5), Axis::new("y").from_to(-1.5, 8.0));
    run.figure("", 1, &[Panel { title: title.into(), x, y, series }])
}
