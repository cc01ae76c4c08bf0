use super::{Bars, Psi, Uncertain};
use crate::kernels::{self, Inputs, Kernel};
use crate::linalg::{Mat, MatRef};

const Q: usize = 3;
const SPECS: [&str; 7] = [
    "rbf(variance=1.3, lengthscales=[0.8, 1.7, 0.6])",
    "linear(variance=[0.7, 1.4, 0.3])",
    "rbf(variance=0.9, lengthscales=[0.8, 1.7], active_dims=[0, 2]) + linear(variance=0.6, active_dims=[1, 0])",
    "rbf(variance=1.3, lengthscales=1.2) + rbf(variance=0.4, lengthscales=[0.5, 0.9], active_dims=[2, 1])",
    "rbf(variance=0.7, lengthscales=0.9) + linear(variance=[0.7, 1.4, 0.3]) + constant(variance=0.8) + white(variance=0.3)",
    "constant(variance=0.6) * (rbf(variance=1.3, lengthscales=[0.8, 1.7, 0.6]) + linear(variance=0.5) + white(variance=0.2))",
    "constant(variance=0.6) * constant(variance=1.7) + white",
];

pub(crate) fn kernel(spec: &str, inputs: usize) -> Box<dyn Kernel> {
    kernels::parse(spec, Inputs::unnamed(inputs)).unwrap()
}

/// Deterministic numbers in (0, 1).
pub(crate) fn spot(i: usize, j: usize) -> f64 {
    ((i as f64 + 1.3) * 0.618_033_988_749_895 + (j as f64 + 0.7) * 0.414_213_562_373_095).fract()
}

fn inputs(n: usize) -> (Mat<f64>, Mat<f64>) {
    let mean = Mat::from_fn(n, Q, |i, q| 3.0 * spot(i, 3 * q) - 1.5);
    (mean, Mat::from_fn(n, Q, |i, q| 0.1 + 0.8 * spot(i + 7, q + 11)))
}

fn points(m: usize) -> Mat<f64> {
    Mat::from_fn(m, Q, |i, q| 3.0 * spot(i + 31, 2 * q + 5) - 1.5)
}

/// Nodes and weights for the standard normal: the trapezoid rule, which for such smooth functions is exact to rounding.
fn rule() -> Vec<(f64, f64)> {
    let step = 0.25;
    let node = |i: i32| step * f64::from(i);
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (-38..=38).map(|i| (node(i), step * density(node(i)))).collect()
}

/// ψ₀, ψ₁ and ψ₂ of one row on a grid.
fn by_grid(
    k: &dyn Kernel,
    z: MatRef<f64>,
    mean: &[f64],
    variance: &[f64],
) -> (f64, Vec<f64>, Mat<f64>) {
    let (rule, m) = (rule(), z.nrows());
    let (mut psi0, mut psi1, mut psi2) = (0.0, vec![0.0; m], Mat::zeros(m, m));
    for (a, wa) in &rule {
        // a block of rows at once
        let count = rule.len() * rule.len();
        let at = |i: usize| [*a, rule[i / rule.len()].0, rule[i % rule.len()].0];
        let x = Mat::from_fn(count, Q, |i, q| mean[q] + variance[q].sqrt() * at(i)[q]);
        let mut values = Mat::zeros(count, m);
        let mut diag = vec![0.0; count];
        k.evaluate(x.as_ref(), Some(z), values.as_mut(), &mut kernels::Tape::off());
        k.diag(x.as_ref(), &mut diag);
        for i in 0..count {
            let w = wa * rule[i / rule.len()].1 * rule[i % rule.len()].1;
            psi0 += w * diag[i];
            for j in 0..m {
                psi1[j] += w * values[(i, j)];
                (0..m).for_each(|l| psi2[(j, l)] += w * values[(i, j)] * values[(i, l)]);
            }
        }
    }
    (psi0, psi1, psi2)
}

fn near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}: {a} for {b}");
}

#[test]
fn expectations_are_those_of_a_grid() {
    let (mean, variance) = inputs(1);
    let x = Uncertain::new(mean.as_ref(), variance.as_ref()).unwrap();
    let row = |a: &Mat<f64>| (0..Q).map(|q| a[(0, q)]).collect::<Vec<_>>();
    let z = points(3);
    for spec in SPECS {
        let k = kernel(spec, Q);
        let psi = Psi::new(&*k, z.as_ref()).unwrap();
        let (psi0, psi1, psi2) = by_grid(&*k, z.as_ref(), &row(&mean), &row(&variance));
        near(psi.psi0(x).unwrap()[0], psi0, 1e-11, spec);
        let own = psi.psi1(x).unwrap();
        (0..3).for_each(|m| near(own[(0, m)], psi1[m], 1e-11, spec));
        let one = Mat::from_fn(1, 1, |_, _| 1.0);
        let a = Mat::from_fn(3, 3, |i, j| 1.0 / (1.0 + i as f64 + j as f64));
        let folded = psi.fold(x, one.as_ref(), one.as_ref(), std::slice::from_ref(&a)).unwrap();
        let mut trace = 0.0;
        for i in 0..3 {
            near(folded.psi1_y[(i, 0)], psi1[i], 1e-11, spec);
            for j in 0..3 {
                near(folded.psi2[0][(i, j)], psi2[(i, j)], 1e-11, spec);
                trace += a[(i, j)] * psi2[(i, j)];
            }
        }
        near(folded.traces[(0, 0)], trace, 1e-11, spec);
    }
}

/// A cotangent of everything: two columns of weights, two symmetric matrices.
struct Problem {
    psi0: Vec<f64>,
    left: Mat<f64>,
    right: Mat<f64>,
    weights: Mat<f64>,
    psi2: Vec<Mat<f64>>,
}

fn problem(n: usize, m: usize) -> Problem {
    let centred = |i, j| spot(i, j) - 0.4;
    Problem {
        psi0: (0..n).map(|i| centred(i, 50)).collect(),
        left: Mat::from_fn(n, 2, |i, j| centred(i, 60 + j)),
        right: Mat::from_fn(m, 2, |i, j| centred(i, 70 + j)),
        weights: Mat::from_fn(n, 2, |i, j| centred(i, 80 + j)),
        psi2: (0..2)
            .map(|c| Mat::from_fn(m, m, |i, j| centred(i * j, 90 + c) + centred(i + j, 91 + c)))
            .collect(),
    }
}

impl Problem {
    fn bars(&self) -> Bars<'_> {
        Bars {
            psi0: &self.psi0,
            psi1: (self.left.as_ref(), self.right.as_ref()),
            weights: self.weights.as_ref(),
            psi2: &self.psi2,
            kept: Some(1),
        }
    }

    fn value(&self, psi: &Psi, x: Uncertain<'_>) -> f64 {
        let folded = psi.fold(x, self.left.as_ref(), self.weights.as_ref(), &[]).unwrap();
        let psi0 = psi.psi0(x).unwrap();
        let mut value: f64 = psi0.iter().zip(&self.psi0).map(|(a, b)| a * b).sum();
        value += crate::linalg::dot(folded.psi1_y.as_ref(), self.right.as_ref());
        for (a, b) in folded.psi2.iter().zip(&self.psi2) {
            value += crate::linalg::dot(a.as_ref(), b.as_ref());
        }
        value
    }
}

#[test]
fn slopes_are_those_of_differences() {
    let (n, m) = (11, 4);
    let (mean, variance) = inputs(n);
    let z = points(m);
    let problem = problem(n, m);
    for spec in SPECS {
        let k = kernel(spec, Q);
        let value = |k: &dyn Kernel, z: &Mat<f64>, mean: &Mat<f64>, variance: &Mat<f64>| {
            let psi = Psi::new(k, z.as_ref()).unwrap();
            problem.value(&psi, Uncertain::new(mean.as_ref(), variance.as_ref()).unwrap())
        };
        let psi = Psi::new(&*k, z.as_ref()).unwrap().with_block(4);
        let x = Uncertain::new(mean.as_ref(), variance.as_ref()).unwrap();
        let slopes = psi.pull(x, &problem.bars()).unwrap();
        let h = 1e-5;
        let check = |own: f64, f: &dyn Fn(f64) -> f64, what: &str| {
            near(own, (f(h) - f(-h)) / (2.0 * h), 3e-8, &format!("{spec}: {what}"));
        };
        let moved = |a: &Mat<f64>, i: usize, q: usize, h: f64| {
            let mut a = a.clone();
            a[(i, q)] += h;
            a
        };
        for q in 0..Q {
            for i in 0..m {
                let f = |h| value(&*k, &moved(&z, i, q, h), &mean, &variance);
                check(slopes.points[(i, q)], &f, "points");
            }
            for i in 0..n {
                let f = |h| value(&*k, &z, &moved(&mean, i, q, h), &variance);
                check(slopes.mean[(i, q)], &f, "mean");
                let f = |h| value(&*k, &z, &mean, &moved(&variance, i, q, h));
                check(slopes.variance[(i, q)], &f, "variance");
            }
        }
        for place in 0..k.num_params() {
            let f = |h: f64| {
                let mut k = k.clone();
                let mut at = 0;
                k.visit_mut(&mut |_, p| {
                    let own = at..at + p.len();
                    at = own.end;
                    if own.contains(&place) {
                        p.value_mut()[place - own.start] += h;
                    }
                });
                value(&*k, &z, &mean, &variance)
            };
            check(slopes.kernel[place], &f, "kernel");
        }
        let folded = psi.fold(x, problem.left.as_ref(), problem.weights.as_ref(), &[]).unwrap();
        let kept = slopes.kept.unwrap();
        assert!((&kept - &folded.psi2[1]).norm_max() < 1e-12, "{spec}");
    }
}

#[test]
fn blocks_of_any_size_give_the_same() {
    let (n, m) = (53, 5);
    let (mean, variance) = inputs(n);
    let x = Uncertain::new(mean.as_ref(), variance.as_ref()).unwrap();
    let problem = problem(n, m);
    for spec in SPECS {
        let of = |rows: usize| {
            let psi = Psi::new(&*kernel(spec, Q), points(m).as_ref()).unwrap().with_block(rows);
            let folded =
                psi.fold(x, problem.left.as_ref(), problem.weights.as_ref(), &problem.psi2);
            (folded.unwrap(), psi.pull(x, &problem.bars()).unwrap(), psi.psi1(x).unwrap())
        };
        let (whole, slopes, psi1) = of(n);
        for rows in [1, 7, 8, 13, 1000] {
            let (folded, own, own_psi1) = of(rows);
            let close = |a: &Mat<f64>, b: &Mat<f64>| {
                assert!((a - b).norm_max() <= 1e-12 * (1.0 + b.norm_max()), "{spec} {rows}");
            };
            close(&own_psi1, &psi1);
            close(&folded.psi1_y, &whole.psi1_y);
            close(&folded.traces, &whole.traces);
            (0..2).for_each(|c| close(&folded.psi2[c], &whole.psi2[c]));
            close(&own.points, &slopes.points);
            close(&own.mean, &slopes.mean);
            close(&own.variance, &slopes.variance);
            for (a, b) in own.kernel.iter().zip(&slopes.kernel) {
                near(*a, *b, 1e-12, spec);
            }
        }
    }
}

#[test]
fn kernels_without_expectations_are_named() {
    let z = points(4);
    for (spec, named) in [
        ("matern52", "`matern52`"),
        ("rbf + cosine(active_dims=[0])", "`cosine`"),
        ("rbf * linear", "`rbf` and `linear`"),
        ("constant * rbf * rbf", "`rbf` and `rbf`"),
        ("white * rbf", "`white` and `rbf`"),
    ] {
        let error = Psi::new(&*kernel(spec, Q), z.as_ref()).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("possible are"), "{error}");
    }
    assert!(
        Psi::new(&*kernel("rbf", 5), z.as_ref()).unwrap_err().to_string().contains("at least 5")
    );
    assert!(Psi::new(&*kernel("rbf", Q), z.as_ref().subrows(0, 0)).is_err());
    let (mean, mut variance) = inputs(2);
    variance[(1, 0)] = -0.1;
    assert!(Uncertain::new(mean.as_ref(), variance.as_ref()).is_err());
    variance[(1, 0)] = f64::NAN;
    assert!(Uncertain::new(mean.as_ref(), variance.as_ref()).is_err());
}

/// Matrices beyond M×M and columns that are not there are refused, not read past.
#[test]
fn matrices_of_another_size() {
    let (mean, variance) = inputs(5);
    let x = Uncertain::new(mean.as_ref(), variance.as_ref()).unwrap();
    let psi = Psi::new(&*kernel(SPECS[2], Q), points(4).as_ref()).unwrap();
    let (y, weights) = (Mat::zeros(5, 2), Mat::full(5, 1, 1.0));
    for size in [(3, 4), (4, 3), (5, 5), (2, 8)] {
        let wrong = [Mat::zeros(size.0, size.1)];
        let error = psi.fold(x, y.as_ref(), weights.as_ref(), &wrong).unwrap_err().to_string();
        assert!(error.contains("4×4"), "{error}");
        let right = Mat::zeros(4, 2);
        let bars = |psi2, kept| Bars {
            psi0: &[0.0; 5],
            psi1: (y.as_ref(), right.as_ref()),
            weights: weights.as_ref(),
            psi2,
            kept,
        };
        let error = psi.pull(x, &bars(&wrong, None)).unwrap_err().to_string();
        assert!(error.contains("4×4"), "{error}");
        let whole = [Mat::zeros(4, 4)];
        assert!(psi.pull(x, &bars(&whole, Some(0))).is_ok());
        let error = psi.pull(x, &bars(&whole, Some(1))).unwrap_err().to_string();
        assert!(error.contains("one of 1"), "{error}");
    }
}

#[test]
fn inputs_that_are_not_numbers_are_reported_by_their_place() {
    let message = |mean: f64, variance: f64| {
        let (mut m, mut s) = inputs(3);
        (m[(2, 1)], s[(2, 1)]) = (mean, variance);
        Uncertain::new(m.as_ref(), s.as_ref()).unwrap_err().to_string()
    };
    for (mean, variance, what) in [
        (f64::NAN, 1.0, "the mean"),
        (0.0, f64::INFINITY, "the variance"),
        (0.0, f64::NAN, "the variance"),
        (0.0, -0.5, "below 0"),
    ] {
        let text = message(mean, variance);
        assert!(text.contains(what) && text.contains("row 3, latent dimension 2"), "{text}");
    }
}
