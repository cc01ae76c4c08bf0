use super::tree::Tree;
use super::*;
use crate::kernels::{Cotangents, Inputs, Kernel, Tape, covariances, parse};
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, dot, product};
use crate::rng;

use rand_distr::{Distribution, StandardNormal};

/// Kernels of one to three inputs, with values far from 1.
pub(super) const KERNELS: &[(usize, &str)] = &[
    (1, "matern32(variance=1.7, lengthscales=0.3)"),
    (1, "rbf(variance=0.8, lengthscales=0.4) + linear(variance=0.3) * matern12(lengthscales=2.1)"),
    (2, "matern52(variance=2.3, lengthscales=[0.4, 1.3])"),
    (
        2,
        "matern12(lengthscales=0.7, active_dims=[0]) * periodic(base=rbf(lengthscales=0.6, active_dims=[1]), period=0.9)",
    ),
    (
        2,
        "rbf(variance=1.4, lengthscales=[0.5, 0.2]) + white(variance=0.11) + constant(variance=0.6)",
    ),
    (
        3,
        "matern32(variance=1.3, lengthscales=[0.6, 0.9, 2.2]) + linear(variance=0.2, active_dims=[1])",
    ),
    (3, "rational_quadratic(variance=0.7, lengthscales=[0.8, 0.5, 1.1], alpha=0.9)"),
];

pub(super) struct Problem {
    pub(super) kernel: Box<dyn Kernel>,
    pub(super) x: Mat<f64>,
    pub(super) residual: Mat<f64>,
    pub(super) noise: Vec<f64>,
}

impl Problem {
    /// Rows that are not evenly spread, two of them equal, with two targets and a noise each.
    pub(super) fn new(kernel: &str, rows: usize, inputs: usize) -> Self {
        let kernel = parse(kernel, Inputs::unnamed(inputs)).unwrap();
        let mut rng = rng::stream(17, "vecchia");
        let mut x = Mat::from_fn(rows, inputs, |_, _| 2.0 * rng::uniform(&mut rng).powf(1.5) - 1.0);
        if rows > 5 {
            (0..inputs).for_each(|q| x[(rows - 2, q)] = x[(3, q)]);
        }
        let wave = |i: usize, j: usize| (3.0 * x[(i, 0)] + j as f64).sin();
        let noise: Vec<f64> = (0..rows).map(|i| 0.02 + 0.05 * ((i % 7) as f64)).collect();
        let residual = Mat::from_fn(rows, 2, |i, j| {
            let normal: f64 = StandardNormal.sample(&mut rng);
            1.3 * wave(i, j) + noise[i].sqrt() * normal
        });
        Self { kernel, x, residual, noise }
    }

    pub(super) fn rows(&self) -> Rows<'_> {
        Rows { x: self.x.as_ref(), residual: self.residual.as_ref(), noise: &self.noise }
    }

    pub(super) fn plan(&self, neighbours: usize) -> Plan {
        let metric = Metric::of(&*self.kernel, self.x.ncols());
        Plan::new(self.x.as_ref(), metric, neighbours)
    }

    fn single(&self, neighbours: usize) -> Plan {
        let metric = Metric::of(&*self.kernel, self.x.ncols());
        Plan::of_single(self.x.as_ref(), metric, neighbours)
    }

    fn value(&self, plan: &Plan) -> f64 {
        log_density(&*self.kernel, plan, self.rows(), &|| Ok(())).unwrap().value
    }

    fn with_slopes(&self, plan: &Plan) -> (f64, Slopes) {
        let own = with_slopes(&*self.kernel, plan, self.rows(), &|| Ok(())).unwrap();
        (own.0.value, own.1)
    }

    fn conditional(&self, neighbours: usize) -> Nearest {
        Nearest::new(self.kernel.clone(), self.rows(), neighbours).unwrap()
    }

    /// The factor of K + diag s.
    pub(super) fn factor(&self) -> Cholesky {
        let mut g = covariances(&*self.kernel, self.x.as_ref(), None);
        self.noise.iter().enumerate().for_each(|(i, s)| g[(i, i)] += s);
        Cholesky::new(g.as_ref(), Jitter::Absolute(0.0), "G").unwrap()
    }

    /// Rasmussen & Williams 2006, Eq. 2.30 and 5.9.
    pub(super) fn exact(&self) -> (f64, Slopes) {
        let (n, p) = (self.x.nrows(), self.residual.ncols());
        let factor = self.factor();
        let alpha = factor.solve(self.residual.as_ref());
        let quadratic = dot(self.residual.as_ref(), alpha.as_ref());
        let log = n as f64 * (2.0 * std::f64::consts::PI).ln() + factor.log_det();
        let inverse = factor.inverse();
        let outer = product(alpha.as_ref(), alpha.transpose());
        let mut bar = Mat::from_fn(n, n, |i, j| 0.5 * (outer[(i, j)] - p as f64 * inverse[(i, j)]));
        let noise = (0..n).map(|i| bar[(i, i)]).collect();
        let mut kernel = vec![0.0; self.kernel.num_params()];
        let (mut tape, mut k) = (Tape::recording(), Mat::zeros(n, n));
        self.kernel.evaluate(self.x.as_ref(), None, k.as_mut(), &mut tape);
        let mut sinks = Cotangents { params: &mut kernel, x: None, z: None };
        let x = self.x.as_ref();
        self.kernel.vjp(x, None, k.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
        let residual = -alpha;
        let points = Vec::new();
        (-0.5 * (p as f64 * log + quadratic), Slopes { kernel, residual, noise, points })
    }

    /// Means and the covariance at places.
    pub(super) fn exact_at(&self, x: MatRef<f64>) -> (Mat<f64>, Mat<f64>) {
        let factor = self.factor();
        let k = covariances(&*self.kernel, self.x.as_ref(), Some(x));
        let mean = product(k.transpose(), factor.solve(self.residual.as_ref()).as_ref());
        let explained = product(k.transpose(), factor.solve(k.as_ref()).as_ref());
        (mean, covariances(&*self.kernel, x, None) - explained)
    }
}

pub(super) fn places(count: usize, inputs: usize) -> Mat<f64> {
    let mut rng = rng::stream(5, "places");
    Mat::from_fn(count, inputs, |_, _| 2.4 * rng::uniform(&mut rng) - 1.2)
}

pub(super) fn close(a: f64, b: f64, size: f64, what: &str) {
    assert!((a - b).abs() <= 1e-10 * size.max(1.0), "{what}: {a} and {b}");
}

pub(super) fn same(a: &Mat<f64>, b: &Mat<f64>, what: &str) {
    assert!((a - b).norm_max() <= 1e-10 * b.norm_max().max(1.0), "{what}");
}

fn close_slopes(a: &Slopes, b: &Slopes, what: &str) {
    let largest = |v: &[f64]| v.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    for (own, other) in [(&a.kernel, &b.kernel), (&a.noise, &b.noise)] {
        assert_eq!(own.len(), other.len());
        for (x, y) in own.iter().zip(other) {
            close(*x, *y, largest(other), what);
        }
    }
    same(&a.residual, &b.residual, what);
}

#[test]
fn with_all_rows_before_it_is_exact() {
    for (inputs, kernel) in KERNELS {
        let problem = Problem::new(kernel, 70, *inputs);
        let plan = problem.plan(69);
        let (value, slopes) = problem.with_slopes(&plan);
        let (exact, exact_slopes) = problem.exact();
        close(value, exact, exact.abs(), kernel);
        close(problem.value(&plan), exact, exact.abs(), kernel);
        close_slopes(&slopes, &exact_slopes, kernel);

        let new = places(12, *inputs);
        let conditional = problem.conditional(70);
        let (mean, variance) = conditional.marginals(new.as_ref()).unwrap();
        let (exact_mean, exact_covariance) = problem.exact_at(new.as_ref());
        same(&mean, &exact_mean, kernel);
        for (i, v) in variance.iter().enumerate() {
            close(*v, exact_covariance[(i, i)], 1.0, kernel);
        }
        let (mean, variance) = conditional.leave_one_out().unwrap();
        let inverse = problem.factor().inverse();
        for (i, v) in variance.iter().enumerate() {
            // Rasmussen & Williams 2006, Eq. 5.12; α = −r̄
            let total = 1.0 / inverse[(i, i)];
            close(*v, total - problem.noise[i], 1.0, kernel);
            for j in 0..2 {
                let own = problem.residual[(i, j)] + exact_slopes.residual[(i, j)] * total;
                close(mean[(i, j)], own, 1.0, kernel);
            }
        }
        let joint = conditional.joint(new.as_ref()).unwrap();
        same(&joint.mean(), &exact_mean, kernel);
        same(&joint.covariance(), &exact_covariance, kernel);
    }
}

#[test]
fn slopes_are_those_of_differences() {
    for (inputs, kernel) in KERNELS {
        let mut problem = Problem::new(kernel, 60, *inputs);
        let plan = problem.plan(6);
        let (value, slopes) = problem.with_slopes(&plan);
        assert_eq!(value, problem.value(&plan));
        let difference = |problem: &mut Problem, change: &dyn Fn(&mut Problem, f64), size: f64| {
            let step = 1e-5 * size;
            let mut ends = [step, -step].map(|step| {
                change(problem, step);
                let value = problem.value(&plan);
                change(problem, -step);
                value
            });
            ends[0] -= ends[1];
            ends[0] / (2.0 * step)
        };
        let agree = |found: f64, slope: f64, what: &str| {
            assert!((found - slope).abs() < 2e-6 * slope.abs().max(1.0), "{what}: {found} {slope}");
        };
        for at in 0..problem.kernel.num_params() {
            let change = |problem: &mut Problem, step: f64| {
                let mut left = at;
                for (_, param) in problem.kernel.params_mut() {
                    let len = param.len();
                    if left < len {
                        let mut values = param.value().to_vec();
                        values[left] += step;
                        param.set("", &values).unwrap();
                        return;
                    }
                    left -= len;
                }
            };
            let slope = slopes.kernel[at];
            agree(difference(&mut problem, &change, 1.0), slope, &format!("{kernel} {at}"));
        }
        for row in [0, 3, 31, 58, 59] {
            let noise = |problem: &mut Problem, step: f64| problem.noise[row] += step;
            agree(difference(&mut problem, &noise, 0.1), slopes.noise[row], "noise");
            for j in 0..2 {
                let target = |problem: &mut Problem, step: f64| problem.residual[(row, j)] += step;
                agree(difference(&mut problem, &target, 1.0), slopes.residual[(row, j)], "r");
            }
        }
    }
}

/// The divergence of the exact density from the approximation is ½(Σ log dᵢ − log|G|), what the log densities of targets 0
/// differ by; it cannot grow with the neighbours of a row (Schäfer, Katzfuss & Owhadi 2021, §3).
#[test]
fn more_neighbours_are_nearer_to_exact_inference() {
    let mut problem = Problem::new("matern32(variance=1.7, lengthscales=[0.3, 0.5])", 600, 2);
    let new = places(200, 2);
    let (_, slopes) = problem.exact();
    let (exact_mean, exact_covariance) = problem.exact_at(new.as_ref());
    let sizes = [5, 10, 20, 40, 80];
    let mut errors: Vec<[f64; 3]> = Vec::new();
    let mut of_slopes = Vec::new();
    for m in sizes {
        let (_, own) = problem.with_slopes(&problem.plan(m));
        let (mean, variance) = problem.conditional(m).marginals(new.as_ref()).unwrap();
        let apart = own.kernel.iter().zip(&slopes.kernel).map(|(a, b)| (a - b) * (a - b));
        of_slopes.push(apart.sum::<f64>().sqrt());
        let variances = variance.iter().enumerate();
        let variances = variances.map(|(i, v)| (v - exact_covariance[(i, i)]).abs());
        errors.push([0.0, (mean - &exact_mean).norm_l2(), variances.sum()]);
    }
    problem.residual.fill(0.0);
    let exact = problem.exact().0;
    for (m, errors) in sizes.into_iter().zip(&mut errors) {
        let [single, blocks] =
            [problem.single(m), problem.plan(m)].map(|plan| problem.value(&plan));
        errors[0] = exact - blocks;
        assert!(blocks > single, "{single} {blocks}");
    }
    for pair in errors.windows(2) {
        for (more, fewer) in pair[1].iter().zip(&pair[0]) {
            assert!(*more > 0.0 && more < &(0.7 * fewer), "{errors:?}");
        }
    }
    // of two targets
    assert!(errors[4][0] < 0.02, "{errors:?}");
    assert!(of_slopes[4] < 0.01 * of_slopes[0], "{of_slopes:?}");
}

#[test]
fn the_order_has_every_row_once_and_is_as_far_apart_as_can_be() {
    for dims in 1..4 {
        let problem = Problem::new("matern32(lengthscales=0.5)", 300, dims);
        let plan = problem.plan(5);
        let mut sorted = plan.order().to_vec();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..300));
        let places = plan.metric().places(problem.x.as_ref());
        let square = |a: u32, b: u32| -> f64 {
            let of = |row: u32| &places[row as usize * dims..][..dims];
            of(a).iter().zip(of(b)).map(|(a, b)| (a - b) * (a - b)).sum()
        };
        for (rank, row) in plan.order().iter().enumerate().skip(1) {
            let before = &plan.order()[..rank];
            let apart = |row: u32| before.iter().map(|b| square(row, *b)).fold(f64::MAX, f64::min);
            let own = apart(*row);
            for other in &plan.order()[rank..] {
                let others = apart(*other);
                assert!(others < own || (others == own && row <= other), "{rank}");
            }
        }
    }
}

/// The block in which every row responds.
fn block_of(plan: &Plan) -> Vec<Block<'_>> {
    let mut all = vec![None; plan.rows()];
    for block in (0..plan.blocks()).map(|index| plan.block(index)) {
        for (row, _) in block.rows.iter().zip(block.responds).filter(|(_, responds)| **responds) {
            all[*row as usize] = Some(block);
        }
    }
    all.into_iter().map(|block| block.expect("a block")).collect()
}

#[test]
fn neighbours_are_the_nearest_before_a_row() {
    for dims in 1..4 {
        let mut problem = Problem::new("matern32(lengthscales=0.5)", 400, dims);
        // on a grid many are equally far, and some equal
        for q in 0..dims {
            problem.x.col_as_slice_mut(q).iter_mut().for_each(|v| *v = (*v * 6.0).round() / 6.0);
        }
        let plan = problem.single(9);
        let block_of = block_of(&plan);
        let places = plan.metric().places(problem.x.as_ref());
        let tree = Tree::new(&places, dims).ranked(plan.order());
        for rank in 0..400 {
            let row = plan.order()[rank] as usize;
            let at = &places[row * dims..][..dims];
            let square = |other: u32| -> f64 {
                let of = &places[other as usize * dims..][..dims];
                of.iter().zip(at).map(|(a, b)| (a - b) * (a - b)).sum()
            };
            let mut all: Vec<(f64, usize)> =
                (0..rank).map(|rank| (square(plan.order()[rank]), rank)).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            all.truncate(9);
            let found = tree.nearest(at, 9, rank as u32);
            let found: Vec<(f64, usize)> =
                found.iter().map(|near| (near.square(), near.rank as usize)).collect();
            assert_eq!(found, all);
            let mut members: Vec<u32> = all.iter().map(|(_, rank)| plan.order()[*rank]).collect();
            members.sort_by_key(|row| plan.order().iter().position(|own| own == row));
            members.push(row as u32);
            assert_eq!(block_of[row].rows, members);
        }
    }
}

#[test]
fn blocks_are_fewer_and_every_row_responds_once() {
    let problem = Problem::new("matern32(variance=1.7, lengthscales=[0.3, 0.5])", 2000, 2);
    let (plan, single) = (problem.plan(20), problem.single(20));
    let alone = block_of(&single);
    assert_eq!((single.blocks(), plan.rows()), (2000, 2000));
    assert!(plan.blocks() < 1000, "{}", plan.blocks());
    let mut rank = vec![0; 2000];
    plan.order().iter().enumerate().for_each(|(at, row)| rank[*row as usize] = at);
    let mut seen = vec![0; 2000];
    for block in (0..plan.blocks()).map(|index| plan.block(index)) {
        let ranks: Vec<usize> = block.rows.iter().map(|row| rank[*row as usize]).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]));
        for (row, _) in block.rows.iter().zip(block.responds).filter(|(_, responds)| **responds) {
            seen[*row as usize] += 1;
            // all of its neighbours are there
            let own = alone[*row as usize].rows;
            assert!(own.iter().all(|near| block.rows.contains(near)));
        }
    }
    assert!(seen.iter().all(|times| *times == 1));
}

#[test]
fn few_rows_and_equal_rows_are_rows_too() {
    let kernel = "matern32(variance=1.7, lengthscales=0.3)";
    for rows in [1, 2, 5] {
        let problem = Problem::new(kernel, rows, 1);
        let (value, slopes) = problem.with_slopes(&problem.plan(30));
        let (exact, exact_slopes) = problem.exact();
        close(value, exact, exact.abs(), kernel);
        close_slopes(&slopes, &exact_slopes, kernel);
        let new = places(3, 1);
        let (mean, _) = problem.conditional(30).marginals(new.as_ref()).unwrap();
        same(&mean, &problem.exact_at(new.as_ref()).0, kernel);
    }
    let mut problem = Problem::new(kernel, 40, 1);
    problem.x.fill(0.37);
    let (value, slopes) = problem.with_slopes(&problem.plan(39));
    let (exact, exact_slopes) = problem.exact();
    close(value, exact, exact.abs(), kernel);
    close_slopes(&slopes, &exact_slopes, kernel);
    // without noise nothing is known of a copy
    problem.noise.fill(0.0);
    let nothing = log_density(&*problem.kernel, &problem.plan(5), problem.rows(), &|| Ok(()));
    assert!(nothing.unwrap_err().is_recoverable());
    // no rows contribute nothing
    let none = Problem::new(kernel, 0, 1);
    assert_eq!(none.value(&none.plan(5)), 0.0);
}

#[test]
fn copies_are_one_row_of_less_noise() {
    let kernel = "matern32(variance=1.7, lengthscales=[0.3, 0.6])";
    let mut problem = Problem::new(kernel, 90, 2);
    // places of one to nine rows
    let x = problem.x.clone();
    let place = |i: usize| if i < 60 { (i * i / 60) % 40 } else { i };
    problem.x = Mat::from_fn(90, 2, |i, j| x[(place(i), j)]);
    let copies = Copies::find(&*problem.kernel, problem.x.as_ref()).expect("copies");
    let merged = copies.merge(problem.rows()).expect("noise");
    let metric = Metric::of(&*problem.kernel, 2);
    let plan = Plan::new(merged.x.as_ref(), metric, 89);
    assert!(plan.rows() < 75);
    let (density, slopes) =
        with_slopes(&*problem.kernel, &plan, merged.rows(), &|| Ok(())).unwrap();
    let (exact, exact_slopes) = problem.exact();
    close(density.value + merged.log_factors, exact, exact.abs(), kernel);
    close_slopes(&copies.pull(problem.rows(), &merged, slopes), &exact_slopes, kernel);
    // rows left out
    let nearest = Nearest::new(problem.kernel.clone(), merged.rows(), 89).unwrap();
    let (mean, variance) = nearest.leave_one_out().unwrap();
    let (mean, variance) = copies.left_out(problem.rows(), &merged, (&mean, &variance));
    let inverse = problem.factor().inverse();
    for (i, v) in variance.iter().enumerate() {
        let total = 1.0 / inverse[(i, i)];
        close(*v, total - problem.noise[i], 1.0, kernel);
        let own = problem.residual[(i, 1)] + exact_slopes.residual[(i, 1)] * total;
        close(mean[(i, 1)], own, 1.0, kernel);
    }
    // white noise is another one at every row, and without noise there is nothing to add
    let white = parse("matern32 + white(variance=0.3)", Inputs::unnamed(2)).unwrap();
    assert!(Copies::find(&*white, problem.x.as_ref()).is_none());
    assert!(Copies::find(&*problem.kernel, x.subrows(0, 50)).is_none());
    problem.noise[4] = 0.0;
    assert!(copies.merge(problem.rows()).is_none());
}

#[test]
fn bits_do_not_depend_on_threads() {
    let problem = Problem::new("matern52(variance=2.3, lengthscales=[0.4, 1.3])", 9000, 2);
    let all = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let plan = problem.plan(7);
            let (value, slopes) = problem.with_slopes(&plan);
            let (mean, variance) =
                problem.conditional(7).marginals(places(700, 2).as_ref()).unwrap();
            (
                plan.order().to_vec(),
                value,
                slopes.kernel,
                slopes.noise,
                slopes.residual,
                mean,
                variance,
            )
        })
    });
    assert!(all[0] == all[1] && all[0] == all[2]);
}

#[test]
fn joint_draws_have_the_joint_moments() {
    let problem = Problem::new("rbf(variance=1.4, lengthscales=[0.5, 0.4])", 80, 2);
    let mut new = places(25, 2);
    // equal places, and one that is nearly so
    for q in 0..2 {
        (new[(7, q)], new[(8, q)], new[(9, q)]) = (new[(2, q)], new[(2, q)], new[(2, q)] + 1e-9);
    }
    let joint = problem.conditional(105).joint(new.as_ref()).unwrap();
    let (mean, covariance) = problem.exact_at(new.as_ref());
    assert!((joint.mean() - &mean).norm_max() < 1e-6);
    assert!((joint.covariance() - &covariance).norm_max() < 1e-6);
    let mut rng = rng::stream(3, "draws");
    let count = 20_000;
    let mut second = Mat::<f64>::zeros(25, 25);
    for _ in 0..count {
        let draw = joint.draw(&mut rng);
        assert!((draw[(7, 0)] - draw[(2, 0)]).abs() < 1e-4);
        assert!((draw[(9, 1)] - draw[(8, 1)]).abs() < 1e-4);
        let apart = (draw - &mean).subcols(0, 1).to_owned();
        second += faer::Scale(1.0 / f64::from(count)) * (&apart * apart.transpose());
    }
    for i in 0..25 {
        for j in 0..25 {
            let size = (covariance[(i, i)] * covariance[(j, j)]).sqrt();
            let apart = (second[(i, j)] - covariance[(i, j)]).abs();
            // five standard errors
            assert!(apart < 5.0 * 1.42 * size / f64::from(count).sqrt() + 1e-7, "{i} {j} {apart}");
        }
    }
}

#[test]
fn the_metric_is_that_of_lengthscales() {
    let kernel = "matern32(lengthscales=[0.5, 2], active_dims=[0, 2]) + linear(active_dims=[1])";
    let metric = Metric::of(&*parse(kernel, Inputs::unnamed(3)).unwrap(), 3);
    assert_eq!((metric.scales(), metric.dims()), (&[1.0, 0.0, 0.25][..], 2));
    let lines = Metric::of(&*parse("linear", Inputs::unnamed(2)).unwrap(), 2);
    assert_eq!(lines.scales(), [1.0, 1.0]);
    let twice = Metric::of(&*parse("rbf(lengthscales=[1, 2])", Inputs::unnamed(2)).unwrap(), 2);
    let other = Metric::of(&*parse("rbf(lengthscales=[3, 9])", Inputs::unnamed(2)).unwrap(), 2);
    assert!((twice.apart(&other, 1e-3) - 1.5).abs() < 1e-12);
}
