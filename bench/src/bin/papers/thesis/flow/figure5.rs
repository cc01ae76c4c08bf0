//! Figure 5: particles on a banana, by rules of steps.

use super::methods::shown;
use sparsegp::flow::targets::Banana;
use sparsegp::flow::{Evaluation, Gpf, GpfOptions, Particles, Rule, Solver};
use sparsegp::linalg::Mat;
use sparsegp_bench::page::Drawn;
use sparsegp_bench::papers::{
    Axis, BLANK, Body, Data, Entry, Kind, Panel, Run, Series, Table, contours,
};

/// The experiment.
pub const ENTRY: Entry = Entry {
    name: "flow-figure5",
    paper: "flow",
    item: "Figure 5",
    shows: "particles on a banana by plain steps, by Adam for whole dimensions and by Adam for every element, beside the \
            best Gaussian",
    data: &[Data::Simulated("a banana-shaped density")],
    protocol: "3 to 50 particles from N((0, 5), I), 2000 steps",
    rule: "plain steps and Adam for dimensions keep the particles an affine image of their start (residual below 1e-8); \
           Adam for every element does not (above 1e-3), for ten particles and more; by plain steps, mean and covariance \
           of 50 particles are nearer to those of the best Gaussian (VGA) than those of 3, 5 and 10",
    body: Body::Program(run),
    ..BLANK
};

/// A rule of steps.
#[derive(Clone, Copy)]
enum Steps {
    /// As the library has them.
    Whole(Rule, f64),
    /// Adam with a step size for every coordinate of every particle.
    Elements(f64),
}

const RULES: [(&str, Steps); 3] = [
    ("plain, 0.02", Steps::Whole(Rule::Plain, 0.02)),
    ("Adam, 0.1", Steps::Whole(Rule::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }, 0.1)),
    ("Adam for every element, 0.1", Steps::Elements(0.1)),
];

fn options(rule: Rule, rate: f64) -> GpfOptions {
    GpfOptions { mean_rate: rate, spread_rate: rate, rule, ..GpfOptions::default() }
}

/// Returns the particles after so many steps.
fn moved(start: &Particles, how: Steps, steps: usize) -> sparsegp::Result<Particles> {
    let mut target = Banana::default();
    let rate = match how {
        Steps::Whole(rule, rate) => {
            let mut gpf = Gpf::new(start.clone(), options(rule, rate))?;
            for step in 0..steps {
                gpf.advance(&mut target, step)?;
            }
            return Ok(gpf.particles().clone());
        }
        Steps::Elements(rate) => rate,
    };
    // the flow at the particles, from a plain step so small that it is one of Euler's
    const SMALL: f64 = 1e-6;
    let mut x = start.x().to_owned();
    let count = x.ncols();
    let (mut first, mut second) = (Mat::<f64>::zeros(2, count), Mat::<f64>::zeros(2, count));
    for step in 0..steps {
        let mut gpf = Gpf::new(Particles::new(x.clone())?, options(Rule::Plain, SMALL))?;
        gpf.advance(&mut target, 0)?;
        let after = gpf.particles().x();
        let (b1, b2) = (0.9_f64, 0.999_f64);
        let own = |b: f64| 1.0 - b.powi(step as i32 + 1);
        for n in 0..count {
            for q in 0..2 {
                let flow = (after[(q, n)] - x[(q, n)]) / SMALL;
                first[(q, n)] = b1 * first[(q, n)] + (1.0 - b1) * flow;
                second[(q, n)] = b2 * second[(q, n)] + (1.0 - b2) * flow * flow;
                let size: f64 = second[(q, n)] / own(b2);
                x[(q, n)] += rate * first[(q, n)] / own(b1) / (size.sqrt() + 1e-8);
            }
        }
    }
    Particles::new(x)
}

/// Returns mean and variances of the Gaussian with the smallest free energy, mean of φ less ½ ln det C, for the density of the
/// thesis, φ(x) = ½(0.01 x₁² + 0.1(x₂ + 0.1 x₁² − 10)²). By symmetry x₁ has the mean 0, and C is diagonal, of α and β. Then φ has
/// the mean ½(0.01 α + 0.1(β + 0.02 α² + (m₂ + 0.1 α − 10)²)), and m₂ = 10 − 0.1 α, β = 10 and 0.002 α² + 0.005 α = ½ are best.
fn best_gaussian() -> ([f64; 2], [f64; 2]) {
    let alpha = ((0.005_f64.powi(2) + 0.004).sqrt() - 0.005) / 0.004;
    ([0.0, 10.0 - 0.1 * alpha], [alpha, 10.0])
}

/// Returns how far mean and covariance of the particles are from those of the best Gaussian, ‖m − μ‖² + ‖C − Σ‖².
fn off(particles: &Particles) -> f64 {
    let (mean, variances) = best_gaussian();
    let (own, covariance) = (particles.mean(), particles.covariance());
    let of_mean: f64 = own.iter().zip(mean).map(|(a, b)| (a - b).powi(2)).sum();
    let of = |i: usize, j: usize| if i == j { variances[i] } else { 0.0 };
    let entries = (0..4).map(|k| (k / 2, k % 2));
    of_mean + entries.map(|(i, j)| (covariance[(i, j)] - of(i, j)).powi(2)).sum::<f64>()
}

/// Returns the panel of the best Gaussian: ellipses of one and two standard deviations.
fn of_the_best(lines: &[(f64, f64)]) -> Panel {
    let (mean, variances) = best_gaussian();
    let mut series = vec![Series::new("", Kind::Segments, 6, lines.to_vec())];
    for radius in [1.0, 2.0] {
        let turn = |k: usize| std::f64::consts::TAU * k as f64 / 100.0;
        let at = |k: usize| {
            let (sin, cos) = turn(k).sin_cos();
            (
                mean[0] + radius * variances[0].sqrt() * cos,
                mean[1] + radius * variances[1].sqrt() * sin,
            )
        };
        series.push(Series::new("", Kind::Line, 0, (0..=100).map(at).collect()));
    }
    let (x, y) = (Axis::new("").from_to(-25.0, 25.0), Axis::new("").from_to(-12.0, 16.0));
    Panel { title: "VGA".into(), x, y, series }
}

fn run(run: &mut Run<'_>) -> Drawn {
    let steps = run.sized("steps", [50, 2000, 2000, 2000]);
    let head = ["particles", "rule", "free energy", "variances", "from VGA", "affine residual"];
    let (mut table, mut panels) = (Table::new("", &head), Vec::new());
    let axis = |low: f64, high: f64, k: usize| low + (high - low) * k as f64 / 69.0;
    let xs: Vec<f64> = (0..70).map(|k| axis(-25.0, 25.0, k)).collect();
    let ys: Vec<f64> = (0..70).map(|k| axis(-12.0, 16.0, k)).collect();
    let grid = Mat::from_fn(2, 4900, |q, k| if q == 0 { xs[k / 70] } else { ys[k % 70] });
    let phi = Evaluation::of(&mut Banana::default(), grid.as_ref())?.phi;
    let values = Mat::from_fn(70, 70, |i, j| -phi[70 * i + j]);
    let top = phi.iter().copied().fold(f64::INFINITY, f64::min);
    let levels = [0.5, 1.5, 3.0, 5.0].map(|below| -top - below);
    let lines = contours(&xs, &ys, &values, &levels);
    let (mut kept, mut twisted, mut distances) = (0.0_f64, f64::INFINITY, Vec::new());
    for count in [3, 5, 10, 20, 50] {
        let root = Mat::<f64>::identity(2, 2);
        let start = Particles::matched(&[0.0, 5.0], root.as_ref(), count, run.seed() + 1)?;
        let mut series = vec![Series::new("", Kind::Segments, 6, lines.clone())];
        for (colour, (name, how)) in RULES.into_iter().enumerate() {
            let own = moved(&start, how, steps)?;
            let residual = start.affine_residual(&own)?;
            let gpf = Gpf::new(own.clone(), options(Rule::Plain, 0.02))?;
            let energy = gpf.state(&mut Banana::default())?.free_energy;
            let variances = own.variances();
            table.row(vec![
                count.to_string(),
                name.into(),
                format!("{energy:.4}"),
                format!("{:.2}, {:.2}", variances[0], variances[1]),
                format!("{:.3}", off(&own).sqrt()),
                shown(residual),
            ]);
            if matches!(how, Steps::Whole(Rule::Plain, _)) {
                distances.push(off(&own).sqrt());
            }
            match how {
                Steps::Whole(..) => kept = kept.max(residual),
                Steps::Elements(_) if count >= 10 => twisted = twisted.min(residual),
                Steps::Elements(_) => {}
            }
            let points = (0..count).map(|n| (own.x()[(0, n)], own.x()[(1, n)])).collect();
            let label = if count == 3 { name } else { "" };
            series.push(Series::new(label, Kind::Dots, [0, 2, 1][colour], points));
        }
        let (x, y) = (Axis::new("").from_to(-25.0, 25.0), Axis::new("").from_to(-12.0, 16.0));
        panels.push(Panel { title: format!("{count} particles"), x, y, series });
    }
    run.table(table);
    let ours = format!("residual at most {}", shown(kept));
    run.holds("plain steps, Adam for dimensions", "stay affine", ours, kept < 1e-8);
    let ours = format!("residual at least {}", shown(twisted));
    run.holds("Adam for every element", "twists the particles", ours, twisted > 1e-3);
    let least = distances[..3].iter().copied().fold(f64::INFINITY, f64::min);
    let text: Vec<String> = distances.iter().map(|d| format!("{d:.3}")).collect();
    run.holds(
        "from VGA, by particles",
        "increasingly closer to the optimal VGA",
        format!("3, 5, 10, 20, 50 particles: {}", text.join(", ")),
        distances[4] < least,
    );
    panels.push(of_the_best(&lines));
    run.figure("", 6, &panels)
}

#[cfg(test)]
mod tests {
    use super::best_gaussian;

    /// The free energy by a Gauss–Hermite rule of three nodes a dimension, which is exact for polynomials of degree 5.
    fn free_energy(mean: [f64; 2], [a, b]: [f64; 2], covariance: f64) -> f64 {
        let nodes = [(-3.0_f64.sqrt(), 1.0 / 6.0), (0.0, 2.0 / 3.0), (3.0_f64.sqrt(), 1.0 / 6.0)];
        let (l11, l21) = (a.sqrt(), covariance / a.sqrt());
        let l22 = (b - l21 * l21).sqrt();
        let mut expected = 0.0;
        for (e1, w1) in nodes {
            for (e2, w2) in nodes {
                let x1 = mean[0] + l11 * e1;
                let x2 = mean[1] + l21 * e1 + l22 * e2;
                let bend = x2 + 0.1 * x1 * x1 - 10.0;
                expected += w1 * w2 * 0.5 * (0.01 * x1 * x1 + 0.1 * bend * bend);
            }
        }
        expected - (l11 * l22).ln()
    }

    #[test]
    fn no_gaussian_nearby_has_a_smaller_free_energy() {
        let (mean, [a, b]) = best_gaussian();
        let best = free_energy(mean, [a, b], 0.0);
        for k in 1..200 {
            let turn = |q: f64| (1.7 * k as f64 * q).sin();
            let near = [mean[0] + turn(0.3), mean[1] + turn(0.7)];
            let scales = [a * (0.4 * turn(1.1)).exp(), b * (0.4 * turn(1.3)).exp()];
            assert!(free_energy(near, scales, 2.0 * turn(1.9)) > best);
        }
    }
}
