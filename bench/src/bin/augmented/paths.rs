//! Twenty steps of Gibbs and of Hamiltonian chains on Rosenbrock's density in two dimensions (Galy-Fajou 2022, Figures 2.3 and
//! 2.4), from the same start.

use crate::common::{number, option};
use plotters::coord::Shift;
use plotters::prelude::*;
use rand_distr::{Distribution, StandardNormal};
use sparsegp::rng::{stream, uniform};
use sparsegp::samplers::hmc::Point;
use sparsegp::samplers::joint::LogDensity;

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

/// Runs both.
pub fn run(arguments: &[String]) {
    let seed = number(arguments, "--seed", 1.0) as u64;
    let one = gibbs(seed);
    let (other, accepted) = hamiltonian(seed, 40, 0.06);
    for (name, chain) in [("Gibbs", &one), ("HMC, 40 steps of 0.06", &other)] {
        let far = |(a, b): (&(f64, f64), &(f64, f64))| (a.0 - b.0).hypot(a.1 - b.1);
        let moved: f64 = chain.points.iter().zip(&chain.points[1..]).map(far).sum();
        println!("{name}: mean distance of a step {:.2}", moved / STEPS as f64);
    }
    println!("{accepted} of {STEPS} Hamiltonian paths were accepted");
    if let Some(path) = option(arguments, "--svg") {
        draw(&path, &one, &other).expect("a picture");
    }
}

fn draw(path: &str, one: &Chain, other: &Chain) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (860, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(430);
    panel(&left, "Gibbs", one)?;
    panel(&right, "HMC", other)?;
    root.present()?;
    Ok(())
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    name: &str,
    chain: &Chain,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .caption(name, ("sans-serif", 16))
        .x_label_area_size(24)
        .y_label_area_size(30)
        .build_cartesian_2d(-3.0..3.5, -1.5..8.0)?;
    chart.configure_mesh().disable_mesh().draw()?;
    // what the density is, by shades
    let (columns, rows) = (78, 76);
    let (wide, high) = (6.5 / columns as f64, 9.5 / rows as f64);
    let cells = (0..columns).flat_map(|i| (0..rows).map(move |j| (i, j)));
    chart.draw_series(cells.filter_map(|(i, j)| {
        let (x, y) = (-3.0 + wide * i as f64, -1.5 + high * j as f64);
        let density = Rosenbrock.value(&[x + 0.5 * wide, y + 0.5 * high]).exp();
        let colour = RGBColor(0, 114, 178).mix(0.5 * density);
        let cell = || Rectangle::new([(x, y), (x + wide, y + high)], colour.filled());
        (density > 0.01).then(cell)
    }))?;
    for line in &chain.lines {
        chart.draw_series(LineSeries::new(line.iter().copied(), BLACK.mix(0.35)))?;
    }
    let dots = chain.points.iter().map(|at| Circle::new(*at, 3, RGBColor(213, 94, 0).filled()));
    chart.draw_series(dots)?;
    Ok(())
}
