use super::*;
use crate::kernels::{self, Inputs, Kernel};
use crate::likelihoods::{self, Likelihood};
use crate::linalg::{Jitter, Mat, MatRef};

const JITTER: Jitter = Jitter::Relative(1e-6);

fn kernels_of(specs: &[&str]) -> Vec<Box<dyn Kernel>> {
    specs.iter().map(|spec| kernels::parse(spec, Inputs::unnamed(2)).unwrap()).collect()
}

/// Deterministic numbers in (0, 1).
fn spot(i: usize, j: usize) -> f64 {
    ((i as f64 + 1.3) * 0.618_033_988_749_895 + (j as f64 + 0.7) * 0.414_213_562_373_095).fract()
}

fn rows(n: usize, from: usize) -> (Mat<f64>, Vec<f64>) {
    let x = Mat::from_fn(n, 2, |i, j| 3.0 * spot(i + from, 3 * j));
    let y = (0..n)
        .map(|i| (2.0 * x[(i, 0)]).sin() + 0.4 * x[(i, 1)] + 0.3 * (spot(i + from, 9) - 0.5))
        .collect();
    (x, y)
}

fn points(m: usize, seed: usize) -> Mat<f64> {
    Mat::from_fn(m, 2, |i, j| 3.0 * spot(7 * i + seed, j + 5))
}

fn batch<'a>(x: &'a Mat<f64>, y: &'a [f64]) -> Batch<'a> {
    Batch { x: x.as_ref(), y, extra: &[], weights: &[], mean: None }
}

fn part(a: &Mat<f64>, from: usize, to: usize) -> Mat<f64> {
    a.as_ref().subrows(from, to - from).to_owned()
}

fn largest(a: MatRef<f64>) -> f64 {
    (0..a.nrows()).flat_map(|i| (0..a.ncols()).map(move |j| a[(i, j)].abs())).fold(0.0, f64::max)
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} is not {b}");
}

fn gaussian() -> Box<dyn Likelihood> {
    likelihoods::parse("gaussian(variance=0.07)").unwrap()
}

const RBF: &str = "rbf(variance=1.6, lengthscales=[0.9, 1.7])";

/// Batches in any order and one batch of all rows, with the same points and kernel: the bounds add up, q is the same.
#[test]
fn batches_add_up_in_any_order() {
    let (x, y) = rows(60, 0);
    let (z, of, noise) = (points(9, 0), kernels_of(&[RBF]), gaussian());
    let mut all = Update::new(&of, &*noise, z.as_ref(), JITTER, &[], batch(&x, &y)).unwrap();
    let whole = all.solve(&SolveOptions::default()).unwrap();
    assert!(whole.converged && whole.steps <= 2);
    for cuts in [[(0, 25), (25, 31), (31, 60)], [(31, 60), (0, 25), (25, 31)]] {
        let (mut sites, mut sum) = (Vec::new(), 0.0);
        for (from, to) in cuts {
            let x = part(&x, from, to);
            let of_rows = batch(&x, &y[from..to]);
            let mut own = Update::new(&of, &*noise, z.as_ref(), JITTER, &sites, of_rows).unwrap();
            sum += own.solve(&SolveOptions::default()).unwrap().bound.total();
            // q is that of only the carried site
            sites = own.sites();
            assert!(sites[0].root.is_none() && own.priors()[0].lost() == 0.0);
        }
        close(sum, whole.bound.total(), 1e-9);
        let none = Mat::zeros(0, 2);
        let carried =
            Update::new(&of, &*noise, z.as_ref(), JITTER, &sites, batch(&none, &[])).unwrap();
        let (a, b) = (&carried.moments()[0], &all.moments()[0]);
        assert!(largest((&a.covariance - &b.covariance).as_ref()) < 1e-9);
        a.mean.iter().zip(&b.mean).for_each(|(a, b)| close(*a, *b, 1e-8));
    }
}

/// The bound of one batch is Titsias's (2009), against its formula with dense matrices; and it is below log p(y).
#[test]
fn one_batch_is_the_collapsed_bound() {
    let (x, y) = rows(30, 4);
    let (z, of, noise) = (points(8, 2), kernels_of(&[RBF]), gaussian());
    let mut own = Update::new(&of, &*noise, z.as_ref(), JITTER, &[], batch(&x, &y)).unwrap();
    let bound = own.solve(&SolveOptions::default()).unwrap().bound;
    let (w, diag) = own.priors()[0].rows(&*of[0], z.as_ref(), x.as_ref());
    let normal = |mut k: Mat<f64>| {
        (0..30).for_each(|i| k[(i, i)] += 0.07);
        let factor = crate::linalg::Cholesky::new(k.as_ref(), Jitter::Absolute(0.0), "K").unwrap();
        let column = Mat::from_fn(30, 1, |i, _| y[i]);
        let solved = factor.solve(column.as_ref());
        let square: f64 = (0..30).map(|i| y[i] * solved[(i, 0)]).sum();
        -0.5 * (square + factor.log_det() + 30.0 * std::f64::consts::TAU.ln())
    };
    let q = w.transpose() * &w;
    let trace: f64 = (0..30).map(|i| diag[i] - q[(i, i)]).sum();
    close(bound.total(), normal(q) - trace / (2.0 * 0.07), 1e-9);
    let exact = normal(crate::kernels::covariances(&*of[0], x.as_ref(), None));
    assert!(bound.total() < exact, "{bound:?} {exact}");
}

/// More points than before keep all that was said; fewer cost what is reported.
#[test]
fn new_points_keep_what_old_ones_said() {
    let (x, y) = rows(40, 0);
    let (z, of, noise) = (points(7, 1), kernels_of(&[RBF]), gaussian());
    let tight = Jitter::Relative(1e-10);
    let mut first = Update::new(&of, &*noise, z.as_ref(), tight, &[], batch(&x, &y)).unwrap();
    first.solve(&SolveOptions::default()).unwrap();
    let sites = first.sites();
    let more = Mat::from_fn(10, 2, |i, j| if i < 7 { z[(i, j)] } else { points(3, 5)[(i - 7, j)] });
    let none = Mat::zeros(0, 2);
    let of_none = batch(&none, &[]);
    let wider = Update::new(&of, &*noise, more.as_ref(), tight, &sites, of_none).unwrap();
    assert!(wider.priors()[0].lost().abs() < 1e-4, "{}", wider.priors()[0].lost());
    let at = points(12, 3);
    let ((a, va), (b, vb)) = (first.predict(at.as_ref()), wider.predict(at.as_ref()));
    assert!(largest((&a - &b).as_ref()) < 1e-5 && largest((&va - &vb).as_ref()) < 1e-5);
    let fewer = part(&z, 0, 4);
    let narrow = Update::new(&of, &*noise, fewer.as_ref(), tight, &sites, of_none).unwrap();
    assert!(narrow.priors()[0].lost() > 0.1);
}

/// The site of a posterior given as moments is the one that was carried, and the two give the same bound.
#[test]
fn sites_of_moments_are_those_that_are_carried() {
    let (x, y) = rows(40, 0);
    let (z, of) = (points(7, 1), kernels_of(&[RBF]));
    let student = likelihoods::parse("student_t(scale=0.3, df=5)").unwrap();
    let mut first = Update::new(&of, &*student, z.as_ref(), JITTER, &[], batch(&x, &y)).unwrap();
    let options = SolveOptions { step: 0.6, ..SolveOptions::default() };
    assert!(first.solve(&options).unwrap().converged);
    let carried = first.sites().remove(0);
    let prior = &first.priors()[0];
    let q = &first.moments()[0];
    let root = crate::linalg::Cholesky::new(q.covariance.as_ref(), Jitter::Absolute(0.0), "S");
    let root = root.unwrap().l;
    let made = Site::of_posterior(z.as_ref(), &prior.factor, &q.mean, root.as_ref()).unwrap();
    let plain = made.of_values();
    let size = largest(carried.precision.as_ref());
    assert!(largest((&plain.precision - &carried.precision).as_ref()) < 1e-6 * size);
    close(made.constant, carried.constant, 1e-9);
    let (x, y) = rows(20, 50);
    let z = points(8, 11);
    let total = |site: &Site| {
        let sites = std::slice::from_ref(site);
        let mut own =
            Update::new(&of, &*student, z.as_ref(), JITTER, sites, batch(&x, &y)).unwrap();
        own.solve(&options).unwrap().bound.total()
    };
    close(total(&made), total(&carried), 1e-8);
    // counted from another prior mean and back
    let shift: Vec<f64> = (0..7).map(|i| 0.3 * spot(i, 2) - 0.4).collect();
    let back: Vec<f64> = shift.iter().map(|s| -s).collect();
    for site in [&made, &carried] {
        let moved = site.recentred(&shift);
        assert!((moved.constant - site.constant).abs() > 1e-3);
        close(total(&moved.recentred(&back)), total(site), 1e-8);
    }
}

/// All rows forgotten but for a share: precisions and their constants shrink, and 1 forgets nothing.
#[test]
fn forgetting_shrinks_what_is_carried() {
    let (x, y) = rows(40, 0);
    let (z, of, noise) = (points(7, 1), kernels_of(&[RBF]), gaussian());
    let mut own = Update::new(&of, &*noise, z.as_ref(), JITTER, &[], batch(&x, &y)).unwrap();
    own.solve(&SolveOptions::default()).unwrap();
    let site = own.sites().remove(0);
    let mut same = site.clone();
    same.forget(1.0, &*of[0], JITTER).unwrap();
    close(same.constant, site.constant, 1e-9);
    let mut less = site.clone();
    less.forget(0.25, &*of[0], JITTER).unwrap();
    close(less.precision[(2, 3)], 0.25 * site.precision[(2, 3)], 1e-12);
    // a quarter of what four times the noise would say
    let quiet = likelihoods::parse("gaussian(variance=0.28)").unwrap();
    let mut own = Update::new(&of, &*quiet, z.as_ref(), JITTER, &[], batch(&x, &y)).unwrap();
    own.solve(&SolveOptions::default()).unwrap();
    close(less.constant, own.sites()[0].constant, 1e-9);
    for wrong in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(less.forget(wrong, &*of[0], JITTER).is_err(), "{wrong}");
    }
}

/// Every slope by central differences, at the q that the sites have, of likelihoods with one and two latent functions.
#[test]
fn slopes_are_those_of_differences() {
    let (x, y) = rows(30, 0);
    let z = points(6, 1);
    let two: &[&str] = &[RBF, "matern52(variance=0.7, lengthscales=[2.1, 1.4])"];
    for (spec, specs, same) in [
        ("gaussian(variance=0.07)", &two[..1], false),
        ("student_t(scale=0.3, df=5)", &two[..1], true),
        ("heteroscedastic", two, false),
    ] {
        let of = kernels_of(specs);
        let likelihood = likelihoods::parse(spec).unwrap();
        let mut first =
            Update::new(&of, &*likelihood, z.as_ref(), JITTER, &[], batch(&x, &y)).unwrap();
        let options = SolveOptions { step: 0.5, steps: 2000, tolerance: 1e-15 };
        first.solve(&options).unwrap();
        let sites = first.sites();
        let (new_x, new_y) = rows(12, 70);
        let new_z = if same { z.clone() } else { points(7, 4) };
        let of_rows = batch(&new_x, &new_y);
        let best = |of: &[Box<dyn Kernel>], likelihood: &dyn Likelihood, z: &Mat<f64>| {
            let mut own = Update::new(of, likelihood, z.as_ref(), JITTER, &sites, of_rows).unwrap();
            own.solve(&options).unwrap().bound.total()
        };
        let mut own =
            Update::new(&of, &*likelihood, new_z.as_ref(), JITTER, &sites, of_rows).unwrap();
        own.solve(&options).unwrap();
        let gradient = own.gradient_at(&own.moments()).unwrap();
        let (h, tolerance) = (1e-5, 2e-5);
        for l in 0..of.len() {
            for k in 0..of[l].num_params() {
                let at = |by: f64| {
                    let mut of = of.clone();
                    shift_kernel(&mut *of[l], k, by);
                    best(&of, &*likelihood, &new_z)
                };
                close(gradient.kernels[l][k], (at(h) - at(-h)) / (2.0 * h), tolerance);
            }
        }
        for k in 0..likelihood.num_params() {
            let at = |by: f64| {
                let mut likelihood = likelihood.clone();
                shift_likelihood(&mut *likelihood, k, by);
                best(&of, &*likelihood, &new_z)
            };
            close(gradient.likelihood[k], (at(h) - at(-h)) / (2.0 * h), tolerance);
        }
        // the old points are where they are: new ones that leave them are others
        for (i, j) in (0..if same { 0 } else { new_z.nrows() }).flat_map(|i| [(i, 0), (i, 1)]) {
            let at = |by: f64| {
                let mut z = new_z.clone();
                z[(i, j)] += by;
                best(&of, &*likelihood, &z)
            };
            close(gradient.z[(i, j)], (at(h) - at(-h)) / (2.0 * h), tolerance);
        }
        // at the best q its own slopes are 0
        for (l, slopes) in own.adjoints_at(&own.moments()).unwrap().iter().enumerate() {
            assert!(slopes.mean.iter().all(|m| m.abs() < 1e-4), "{spec} {:?}", slopes.mean);
            // of whitened covariances, whose prior is I
            let lower = &own.priors()[l].factor.l;
            let white = lower.transpose() * &slopes.covariance * lower;
            assert!(largest(white.as_ref()) < 1e-4, "{spec} {}", largest(white.as_ref()));
        }
    }
}

fn shift_kernel(kernel: &mut dyn Kernel, k: usize, by: f64) {
    let mut at = 0;
    kernel.visit_mut(&mut |_, param| shifted(param, &mut at, k, by));
}

fn shift_likelihood(likelihood: &mut dyn Likelihood, k: usize, by: f64) {
    let mut at = 0;
    likelihood.visit_mut(&mut |_, param| shifted(param, &mut at, k, by));
}

fn shifted(param: &mut crate::params::Param, at: &mut usize, k: usize, by: f64) {
    let mut values = param.value().to_vec();
    if (*at..*at + values.len()).contains(&k) {
        values[k - *at] += by;
        param.set("it", &values).unwrap();
    }
    *at += values.len();
}

/// Steps climb, whatever the step, and sizes that do not fit are errors.
#[test]
fn steps_climb_and_wrong_sizes_are_refused() {
    let (x, _) = rows(30, 0);
    let y: Vec<f64> = (0..30).map(|i| f64::from(u8::from(spot(i, 1) > 0.5))).collect();
    let (z, of) = (points(6, 1), kernels_of(&[RBF]));
    let classes = likelihoods::parse("bernoulli").unwrap();
    let mut own = Update::new(&of, &*classes, z.as_ref(), JITTER, &[], batch(&x, &y)).unwrap();
    let mut bound = own.bound().total();
    for _ in 0..20 {
        assert_eq!(own.step(0.5).unwrap(), 0);
        let next = own.bound().total();
        assert!(next >= bound - 1e-9, "{next} {bound}");
        bound = next;
    }
    assert!(Update::new(&of, &*classes, z.as_ref(), JITTER, &[], batch(&x, &y[..9])).is_err());
    let wrong = points(4, 0).as_ref().subcols(0, 1).to_owned();
    let site = Site {
        z: wrong,
        precision: Mat::identity(4, 4),
        linear: vec![0.0; 4],
        constant: 0.0,
        root: None,
    };
    let sites = [site];
    assert!(Update::new(&of, &*classes, z.as_ref(), JITTER, &sites, batch(&x, &y)).is_err());
}

/// Local variables: sites that have settled are those of the closed forms (Pólya-Gamma; gamma of Student's t), steps of length 1
/// never lower the bound, also where some latent functions move before others, and the bound is below that without them.
#[test]
fn local_variables_have_sites_in_closed_form() {
    let (x, y) = rows(40, 3);
    let classes: Vec<f64> = (0..40).map(|i| f64::from(u8::from(spot(i, 1) > 0.4))).collect();
    let z = points(7, 1);
    let mean = Mat::from_fn(40, 1, |i, _| 0.3 * spot(i, 2));
    let (scale, nu) = (0.4, 5.0);
    let student = format!("student-t(scale={scale}, df={nu})");
    for (spec, y) in [("bernoulli(link=logit)", &classes), (student.as_str(), &y)] {
        let (of, own) = (kernels_of(&[RBF]), likelihoods::parse(spec).unwrap());
        let rows = Batch { mean: Some(mean.as_ref()), ..batch(&x, y) };
        let begin = || Update::new(&of, &*own, z.as_ref(), JITTER, &[], rows).unwrap();
        let options = SolveOptions { tolerance: 0.0, ..SolveOptions::default() };
        let mut local = begin().with_local_variables().unwrap();
        let found = local.solve(&options).unwrap();
        assert_eq!(found.clipped, 0, "{spec}");
        assert!(found.bound.total() < begin().solve(&options).unwrap().bound.total(), "{spec}");
        let (mu, v) = local.predict(x.as_ref());
        for i in 0..40 {
            let m = mu[(i, 0)] + mean[(i, 0)];
            let (precision, site) = match spec.starts_with("bernoulli") {
                true => {
                    let tilt = (m * m + v[(i, 0)]).sqrt();
                    (0.5 / tilt * (0.5 * tilt).tanh(), y[i] - 0.5)
                }
                false => {
                    let square = (y[i] - m).powi(2) + v[(i, 0)];
                    let precision = (nu + 1.0) / (nu * scale * scale + square);
                    (precision, precision * y[i])
                }
            };
            close(local.second[0][i], precision, 1e-6);
            // counted from the prior mean
            close(local.first[0][i], site - precision * mean[(i, 0)], 1e-6);
        }
    }
    let (of, own) =
        (kernels_of(&[RBF, RBF]), likelihoods::parse("heteroscedastic(scale=logistic)").unwrap());
    let begin = Update::new(&of, &*own, z.as_ref(), JITTER, &[], batch(&x, &y)).unwrap();
    let mut local = begin.with_local_variables().unwrap();
    let mut bound = local.bound().total();
    for _ in 0..30 {
        assert_eq!(local.step(1.0).unwrap(), 0);
        let next = local.bound().total();
        assert!(next >= bound - 1e-10 * bound.abs(), "{next} {bound}");
        bound = next;
    }
    let probit = likelihoods::parse("bernoulli(link=probit)").unwrap();
    let of = kernels_of(&[RBF]);
    let begin = Update::new(&of, &*probit, z.as_ref(), JITTER, &[], batch(&x, &classes)).unwrap();
    assert!(begin.with_local_variables().unwrap_err().to_string().contains("no local variables"));
}
