use super::tests::{KERNELS, Problem, places};
use super::*;
use crate::kernels::covariances;
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, dot, product};
use crate::rng;

/// The least jitter for which Kuu of every kernel here has a factor: what is left of it is left of the function at the points.
const JITTER: Jitter = Jitter::Relative(1e-9);

/// Rows, their points, and neighbours.
struct Full {
    problem: Problem,
    z: Mat<f64>,
    plan: Plan,
}

impl Full {
    fn new(kernel: &str, (rows, points, neighbours): (usize, usize, usize), inputs: usize) -> Self {
        let problem = Problem::new(kernel, rows, inputs);
        let plan = problem.plan(neighbours);
        let mut rng = rng::stream(23, "points");
        let z = Mat::from_fn(points, inputs, |_, _| 2.0 * rng::uniform(&mut rng) - 1.0);
        Self { problem, z, plan }
    }

    fn with<T>(&self, ask: impl FnOnce(FullScale<'_>) -> T) -> T {
        let kernel = &*self.problem.kernel;
        let features = &Features::new(kernel, self.z.clone(), JITTER).unwrap();
        let phi = &features.of(kernel, self.problem.x.as_ref());
        let (rows, watch) = (self.problem.rows(), &|| Ok(()));
        ask(FullScale { kernel, features, phi, plan: &self.plan, rows, watch })
    }

    fn value(&self) -> f64 {
        self.with(|own| own.density().unwrap().0.value)
    }

    fn with_slopes(&self) -> (f64, Slopes) {
        let (density, slopes) = self.with(|own| own.with_slopes().unwrap());
        (density.value, slopes)
    }

    fn nearest(&self, neighbours: usize) -> Nearest {
        let own = &self.problem;
        self.with(|all| {
            let (_, common) = all.density().unwrap();
            let nearest = Nearest::new(own.kernel.clone(), own.rows(), neighbours).unwrap();
            nearest.with_points(all.features.clone(), all.phi.clone(), common)
        })
    }

    /// The covariance of rows, and of rows with others, that the points leave, without noise; and the features of both.
    fn left(&self, a: MatRef<f64>, b: MatRef<f64>) -> (Mat<f64>, [Mat<f64>; 2]) {
        let kernel = &*self.problem.kernel;
        let mut kuu = covariances(kernel, self.z.as_ref(), None);
        let factor = Cholesky::new(kuu.as_ref(), JITTER, "Kuu").unwrap();
        (0..kuu.nrows()).for_each(|i| kuu[(i, i)] += factor.jitter);
        let of = |x: MatRef<f64>| {
            let mut phi = covariances(kernel, self.z.as_ref(), Some(x));
            crate::linalg::solve_lower(factor.l.as_ref(), phi.as_mut(), crate::linalg::Par::Seq);
            phi
        };
        let phi = [of(a), of(b)];
        let k = if a == b { covariances(kernel, a, None) } else { covariances(kernel, a, Some(b)) };
        (k - product(phi[0].transpose(), phi[1].as_ref()), phi)
    }

    /// (I − B)ᵀD⁻¹(I − B), row by row of the plan.
    fn precision(&self) -> Mat<f64> {
        let own = &self.problem;
        let n = own.x.nrows();
        let (mut g, _) = self.left(own.x.as_ref(), own.x.as_ref());
        own.noise.iter().enumerate().for_each(|(i, s)| g[(i, i)] += s);
        let mut q = Mat::<f64>::zeros(n, n);
        for block in (0..self.plan.blocks()).map(|index| self.plan.block(index)) {
            for (j, row) in block.rows.iter().enumerate().filter(|(j, _)| block.responds[*j]) {
                let before: Vec<usize> = block.rows[..j].iter().map(|own| *own as usize).collect();
                let row = *row as usize;
                let (u, d) = given(&g, &before, row);
                for a in &u {
                    for b in &u {
                        q[(a.0, b.0)] += a.1 * b.1 / d;
                    }
                }
            }
        }
        q
    }

    /// Σ = ΦᵀΦ + ((I − B)ᵀD⁻¹(I − B))⁻¹.
    fn covariance(&self) -> Mat<f64> {
        let (_, [phi, _]) = self.left(self.problem.x.as_ref(), self.problem.x.as_ref());
        let q = Cholesky::new(self.precision().as_ref(), Jitter::Absolute(0.0), "Q").unwrap();
        product(phi.transpose(), phi.as_ref()) + q.inverse()
    }
}

/// (1, −b) at a row and those before it, and its variance given them.
fn given(g: &Mat<f64>, before: &[usize], row: usize) -> (Vec<(usize, f64)>, f64) {
    let mut all = vec![(row, 1.0)];
    if before.is_empty() {
        return (all, g[(row, row)]);
    }
    let own = Mat::from_fn(before.len(), before.len(), |i, j| g[(before[i], before[j])]);
    let k = Mat::from_fn(before.len(), 1, |i, _| g[(before[i], row)]);
    let factor = Cholesky::new(own.as_ref(), Jitter::Absolute(0.0), "G").unwrap();
    let b = factor.solve(k.as_ref());
    all.extend(before.iter().enumerate().map(|(i, other)| (*other, -b[(i, 0)])));
    (all, g[(row, row)] - dot(k.as_ref(), b.as_ref()))
}

#[test]
fn it_is_the_density_of_points_and_neighbours() {
    for (inputs, kernel) in KERNELS {
        let own = Full::new(kernel, (60, 9, 5), *inputs);
        let residual = &own.problem.residual;
        let sigma = own.covariance();
        let factor = Cholesky::new(sigma.as_ref(), Jitter::Absolute(0.0), "Σ").unwrap();
        let alpha = factor.solve(residual.as_ref());
        let log = 60.0 * (2.0 * std::f64::consts::PI).ln() + factor.log_det();
        let dense = -0.5 * (2.0 * log + dot(residual.as_ref(), alpha.as_ref()));
        let (value, slopes) = own.with_slopes();
        let close = |a: f64, b: f64, what: &str| {
            assert!((a - b).abs() < 1e-7 * b.abs().max(1.0), "{kernel}, {what}: {a} {b}");
        };
        close(value, dense, "value");
        close(own.value(), value, "only value");
        assert!((slopes.residual + &alpha).norm_max() < 1e-6 * alpha.norm_max(), "{kernel}");
        let (mean, variance) = own.with(|own| own.leave_one_out().unwrap());
        let inverse = factor.inverse();
        for i in 0..60 {
            let total = 1.0 / inverse[(i, i)];
            close(variance[i], (total - own.problem.noise[i]).max(0.0), "left out");
            close(mean[(i, 1)], residual[(i, 1)] - alpha[(i, 1)] * total, "left out");
        }
    }
}

/// A place is a row after all others, of which it is given the nearest; its noise is 0.
#[test]
fn predictions_are_of_points_and_neighbours() {
    for (inputs, kernel) in KERNELS {
        let own = Full::new(kernel, (60, 9, 5), *inputs);
        let (x, new) = (own.problem.x.as_ref(), places(8, *inputs));
        let (q, sigma) = (own.precision(), own.covariance());
        let factor = Cholesky::new(sigma.as_ref(), Jitter::Absolute(0.0), "Σ").unwrap();
        let (mean, variance) = own.nearest(7).marginals(new.as_ref()).unwrap();
        let tree = tree::Tree::new(&own.plan.metric().places(x), own.plan.metric().dims());
        let at = own.plan.metric().places(new.as_ref());
        let dims = own.plan.metric().dims();
        let q = Cholesky::new(q.as_ref(), Jitter::Absolute(0.0), "Q").unwrap();
        let of_rows = q.inverse();
        for i in 0..8 {
            let near = tree.nearest(&at[i * dims..][..dims], 7, u32::MAX);
            let near: Vec<usize> = near.iter().map(|near| near.point as usize).collect();
            let place = new.as_ref().subrows(i, 1).to_owned();
            let all =
                Mat::from_fn(61, *inputs, |r, c| if r < 60 { x[(r, c)] } else { place[(0, c)] });
            // the last row is the place, with the covariances of g that neighbours give it
            let (mut g, _) = own.left(all.as_ref(), all.as_ref());
            own.problem.noise.iter().enumerate().for_each(|(i, s)| g[(i, i)] += s);
            let (weights, d) = given(&g, &near, 60);
            let b = Mat::from_fn(60, 1, |r, _| {
                weights.iter().filter(|own| own.0 == r).map(|own| -own.1).sum::<f64>()
            });
            let (_, [phi, at]) = own.left(x, place.as_ref());
            let with =
                product(phi.transpose(), at.as_ref()) + product(of_rows.as_ref(), b.as_ref());
            let prior = dot(at.as_ref(), at.as_ref())
                + d
                + dot(b.as_ref(), product(of_rows.as_ref(), b.as_ref()).as_ref());
            let solved = factor.solve(with.as_ref());
            let v = prior - dot(with.as_ref(), solved.as_ref());
            let size = prior.max(1.0);
            assert!((variance[i] - v).abs() < 1e-7 * size, "{kernel}: {} {v}", variance[i]);
            let m = product(solved.transpose(), own.problem.residual.as_ref());
            assert!((mean[(i, 0)] - m[(0, 0)]).abs() < 1e-6, "{kernel}");
            assert!((mean[(i, 1)] - m[(0, 1)]).abs() < 1e-6, "{kernel}");
        }
    }
}

/// Compares a density and what is predicted from it with exact inference.
fn is_exact(own: &Full, neighbours: usize, kernel: &str, size: f64) {
    let (problem, inputs) = (&own.problem, own.problem.x.ncols());
    let n = problem.x.nrows();
    let (exact, exact_slopes) = problem.exact();
    let near = |a: f64, b: f64, what: &str| {
        assert!((a - b).abs() < size * b.abs().max(1.0), "{kernel}, {what}: {a} {b}");
    };
    near(own.value(), exact, "value");
    let new = places(12, inputs);
    let nearest = own.nearest(neighbours);
    let (mean, covariance) = problem.exact_at(new.as_ref());
    let (own_mean, variance) = nearest.marginals(new.as_ref()).unwrap();
    let joint = nearest.joint(new.as_ref()).unwrap();
    let (joint_mean, joint_covariance) = (joint.mean(), joint.covariance());
    for i in 0..12 {
        near(own_mean[(i, 1)], mean[(i, 1)], "mean");
        near(joint_mean[(i, 1)], mean[(i, 1)], "joint mean");
        near(variance[i], covariance[(i, i)], "variance");
        (0..12).for_each(|j| near(joint_covariance[(i, j)], covariance[(i, j)], "covariance"));
    }
    let (mean, variance) = own.with(|own| own.leave_one_out().unwrap());
    let inverse = problem.factor().inverse();
    for i in 0..n {
        let total = 1.0 / inverse[(i, i)];
        near(variance[i], total - problem.noise[i], "variance left out");
        let left = problem.residual[(i, 0)] + exact_slopes.residual[(i, 0)] * total;
        near(mean[(i, 0)], left, "left out");
    }
}

#[test]
fn with_all_rows_before_it_is_exact_whatever_the_points() {
    for (inputs, kernel) in KERNELS {
        let own = Full::new(kernel, (70, 11, 69), *inputs);
        is_exact(&own, 70, kernel, 1e-6);
        let (_, slopes) = own.with_slopes();
        let (_, exact) = own.problem.exact();
        let largest = exact.kernel.iter().fold(1.0_f64, |m, v| m.max(v.abs()));
        for (a, b) in slopes.kernel.iter().zip(&exact.kernel) {
            assert!((a - b).abs() < 1e-5 * largest, "{kernel}: {a} {b}");
        }
        for (a, b) in slopes.noise.iter().zip(&exact.noise) {
            assert!((a - b).abs() < 1e-5 * b.abs().max(1.0), "{kernel}: {a} {b}");
        }
        // points matter to nobody then
        let largest = slopes.points.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        assert!(largest < 1e-4, "{kernel}: {largest}");
    }
}

#[test]
fn with_points_at_all_rows_it_is_exact() {
    for (inputs, kernel) in KERNELS.iter().filter(|(_, kernel)| !kernel.contains("white")) {
        let mut own = Full::new(kernel, (40, 40, 3), *inputs);
        own.z = own.problem.x.clone();
        let mut rows = own.problem;
        // places far enough from the points that none is certain
        rows.noise.iter_mut().for_each(|s| *s += 0.1);
        own.problem = rows;
        let (exact, _) = own.problem.exact();
        let value = own.value();
        assert!((value - exact).abs() < 1e-5 * exact.abs(), "{kernel}: {value} {exact}");
    }
}

#[test]
fn slopes_are_those_of_differences() {
    for (inputs, kernel) in KERNELS {
        let mut own = Full::new(kernel, (60, 7, 6), *inputs);
        let (_, slopes) = own.with_slopes();
        let difference = |own: &mut Full, change: &dyn Fn(&mut Full, f64), step: f64| {
            let ends = [step, -step].map(|step| {
                change(own, step);
                let value = own.value();
                change(own, -step);
                value
            });
            (ends[0] - ends[1]) / (2.0 * step)
        };
        let agree = |found: f64, slope: f64, what: &str| {
            let size = slope.abs().max(1.0);
            assert!((found - slope).abs() < 5e-6 * size, "{kernel}, {what}: {found} {slope}");
        };
        for at in 0..own.problem.kernel.num_params() {
            let change = |own: &mut Full, step: f64| {
                let mut left = at;
                for (_, param) in own.problem.kernel.params_mut() {
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
            agree(difference(&mut own, &change, 1e-5), slopes.kernel[at], &format!("{at}"));
        }
        for at in 0..7 * inputs {
            let change = |own: &mut Full, step: f64| own.z[(at % 7, at / 7)] += step;
            agree(difference(&mut own, &change, 1e-5), slopes.points[at], &format!("Z {at}"));
        }
        for row in [0, 3, 31, 58, 59] {
            let noise = |own: &mut Full, step: f64| own.problem.noise[row] += step;
            agree(difference(&mut own, &noise, 1e-6), slopes.noise[row], "noise");
            for j in 0..2 {
                let target = |own: &mut Full, step: f64| own.problem.residual[(row, j)] += step;
                agree(difference(&mut own, &target, 1e-5), slopes.residual[(row, j)], "r");
            }
        }
    }
}

#[test]
fn points_see_what_neighbours_cannot() {
    // smooth beside the distances, much noise: five neighbours cannot average it
    let mut own = Full::new("rbf(variance=1.7, lengthscales=[0.6, 0.9])", (400, 40, 5), 2);
    own.problem.noise.fill(0.6);
    // the divergence from the exact law, as of targets 0
    own.problem.residual.fill(0.0);
    let exact = own.problem.exact().0;
    let near = log_density(&*own.problem.kernel, &own.plan, own.problem.rows(), &|| Ok(()));
    let [near, both] = [near.unwrap().value, own.value()].map(|value| exact - value);
    assert!(both > -1e-6 && both < 0.05 * near, "{both} {near}");
}

#[test]
fn bits_do_not_depend_on_threads() {
    let own = Full::new("matern52(variance=2.3, lengthscales=[0.4, 1.3])", (3000, 40, 7), 2);
    let all = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (value, slopes) = own.with_slopes();
            let (mean, variance) = own.nearest(7).marginals(places(700, 2).as_ref()).unwrap();
            let slopes = (slopes.kernel, slopes.noise, slopes.residual, slopes.points);
            (value, slopes, mean, variance)
        })
    });
    assert!(all[0] == all[1] && all[0] == all[2]);
}

#[test]
fn joint_draws_have_the_joint_moments() {
    let own = Full::new("rbf(variance=1.4, lengthscales=[0.5, 0.4])", (80, 12, 20), 2);
    let new = places(6, 2);
    let joint = own.nearest(9).joint(new.as_ref()).unwrap();
    let (mean, covariance) = (joint.mean(), joint.covariance());
    let (marginal, variance) = own.nearest(9).marginals(new.as_ref()).unwrap();
    // the first place of the order is given only its rows
    let first = (0..6).filter(|i| (variance[*i] - covariance[(*i, *i)]).abs() < 1e-12);
    let first: Vec<usize> = first.collect();
    assert!(!first.is_empty());
    for i in first {
        assert!((marginal[(i, 0)] - mean[(i, 0)]).abs() < 1e-12, "{i}");
    }
    let mut rng = rng::stream(3, "draws");
    let count = 40_000;
    let mut second = Mat::<f64>::zeros(6, 6);
    for _ in 0..count {
        let apart = (joint.draw(&mut rng) - &mean).subcols(1, 1).to_owned();
        second += faer::Scale(1.0 / f64::from(count)) * (&apart * apart.transpose());
    }
    for i in 0..6 {
        for j in 0..6 {
            let size = (covariance[(i, i)] * covariance[(j, j)]).sqrt();
            let apart = (second[(i, j)] - covariance[(i, j)]).abs();
            // five standard errors
            assert!(apart < 5.0 * 1.42 * size / f64::from(count).sqrt() + 1e-9, "{i} {j} {apart}");
        }
    }
}
