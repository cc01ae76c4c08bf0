//! The laws of chains on densities of the caller, and what such densities may do wrong.

use super::density::{BatchDensity, DensityDraws, Parallel, Summary, Values};
use super::elliptical::{self, EllipticalOptions, GaussianPrior};
use super::hmc::{self, HmcOptions, Path};
use super::joint::LogDensity;
use super::metropolis::{self, MetropolisOptions};
use crate::error::{Error, Result};
use crate::linalg::Mat;
use statrs::function::erf::erfc;
use std::f64::consts::{PI, SQRT_2};
use std::ops::ControlFlow;

type Watch = fn(usize, usize) -> ControlFlow<()>;
const ON: Watch = |_, _| ControlFlow::Continue(());
const NO_TURN: Path = Path::NoUTurn { depth: 10 };

/// N(m, (diag(s) R diag(s))) of two variables with correlation r, of scales that differ, up to a constant; NaN or another
/// number where the first variable is below a bound.
#[derive(Clone)]
struct Normal {
    mean: [f64; 2],
    scale: [f64; 2],
    r: f64,
    bound: f64,
    outside: f64,
}

const NORMAL: Normal = Normal {
    mean: [40.0, -0.3],
    scale: [7.0, 0.02],
    r: 0.8,
    bound: f64::NEG_INFINITY,
    outside: 0.0,
};

impl LogDensity for Normal {
    fn dim(&self) -> usize {
        2
    }

    fn value(&mut self, x: &[f64]) -> f64 {
        self.evaluate(x, &mut [0.0; 2])
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let a = (x[0] - self.mean[0]) / self.scale[0];
        let b = (x[1] - self.mean[1]) / self.scale[1];
        let rest = 1.0 - self.r * self.r;
        gradient[0] = -(a - self.r * b) / rest / self.scale[0];
        gradient[1] = -(b - self.r * a) / rest / self.scale[1];
        if x[0] < self.bound {
            return self.outside;
        }
        -0.5 * (a * a - 2.0 * self.r * a * b + b * b) / rest
    }
}

/// Holds the mean of a function of the draws against a number, to 4.5 standard errors, which must be small enough.
fn holds(what: &str, draws: &DensityDraws, g: &dyn Fn(&[f64]) -> f64, expected: f64, most: f64) {
    let of = |chain: &Vec<f64>| chain.chunks(draws.dim).map(g).collect();
    let chains: Vec<Vec<f64>> = draws.positions.iter().map(of).collect();
    let found = Summary::of(&chains);
    let apart = (found.mean - expected).abs();
    assert!(apart < 4.5 * found.error, "{what}: {} for {expected} ± {}", found.mean, found.error);
    assert!(found.error < most, "{what}: ± {}", found.error);
    assert!(found.rhat < 1.02, "{what}: {found:?}");
}

/// Kolmogorov's distance of thinned draws from a normal law is below its quantile of 1 − 10⁻⁴.
fn normal_law(what: &str, draws: &DensityDraws, at: usize, mean: f64, deviation: f64) {
    let chains = draws.variable(at);
    let size: usize = chains.iter().map(Vec::len).sum();
    let step = (2.0 * size as f64 / Summary::of(&chains).ess_bulk).ceil() as usize;
    let mut kept: Vec<f64> = chains.iter().flatten().step_by(step).copied().collect();
    kept.sort_by(f64::total_cmp);
    let n = kept.len() as f64;
    assert!(n > 300.0, "{what}: {n}");
    let distance = kept.iter().enumerate().fold(0.0_f64, |most, (i, x)| {
        let p = 0.5 * erfc((mean - x) / deviation / SQRT_2);
        most.max((p - i as f64 / n).abs()).max((p - (i + 1) as f64 / n).abs())
    });
    assert!(distance < 2.23 / n.sqrt(), "{what}: {distance} of {n}");
}

#[test]
fn chains_have_the_law_of_a_normal_density_of_any_scale() {
    let moments = |what: &str, draws: &DensityDraws| {
        for j in 0..2 {
            let (m, s) = (NORMAL.mean[j], NORMAL.scale[j]);
            holds(what, draws, &|x| (x[j] - m) / s, 0.0, 0.1);
            holds(what, draws, &|x| ((x[j] - m) / s).powi(2), 1.0, 0.15);
            normal_law(what, draws, j, m, s);
        }
        let [m, s] = [NORMAL.mean, NORMAL.scale];
        holds(what, draws, &|x| (x[0] - m[0]) * (x[1] - m[1]) / s[0] / s[1], 0.8, 0.15);
    };
    for path in [NO_TURN, Path::Steps(12)] {
        let options = HmcOptions { burn_in: 1000, draws: 2000, path, ..HmcOptions::default() };
        let mut density = Parallel::new(&NORMAL, 4);
        let draws = hmc::sample_density(&mut density, None, &options, &mut ON.clone()).unwrap();
        moments(&format!("{path:?}"), &draws);
        assert_eq!((draws.draws(), draws.divergences(), draws.steps.len()), (2000, 0, 4));
        let evaluations: usize = draws.evaluations.iter().flatten().sum();
        assert!(evaluations >= 8000, "{evaluations}");
        // the log density that is kept is that of the draw
        for (chain, values) in draws.positions.iter().zip(&draws.log_density) {
            for (x, value) in chain.chunks(2).zip(values) {
                assert_eq!(NORMAL.clone().value(x), *value);
            }
        }
    }
    // a random walk has one scale for both: here they are of one size
    let even = Normal { mean: [3.0, -1.0], scale: [2.0, 1.5], ..NORMAL };
    let options = MetropolisOptions { draws: 4000, thin: 5, ..MetropolisOptions::default() };
    let mut density = Parallel::new(&even, 4);
    let draws = metropolis::sample_density(&mut density, None, &options, &mut ON.clone()).unwrap();
    for j in 0..2 {
        let (m, s) = (even.mean[j], even.scale[j]);
        holds("random walk", &draws, &|x| (x[j] - m) / s, 0.0, 0.1);
        holds("random walk", &draws, &|x| ((x[j] - m) / s).powi(2), 1.0, 0.15);
        normal_law("random walk", &draws, j, m, s);
    }
}

/// Mean and covariance of x ~ N(m, LLᵀ) given y = aᵀx + ε, ε ~ N(0, v).
fn posterior(m: &[f64], l: &Mat<f64>, a: &[f64], y: f64, v: f64) -> (Vec<f64>, Mat<f64>) {
    let n = m.len();
    let prior = l * l.transpose();
    let with: Vec<f64> = (0..n).map(|i| (0..n).map(|j| prior[(i, j)] * a[j]).sum()).collect();
    let spread = v + (0..n).map(|i| a[i] * with[i]).sum::<f64>();
    let residual = y - (0..n).map(|i| a[i] * m[i]).sum::<f64>();
    let mean = (0..n).map(|i| m[i] + with[i] * residual / spread).collect();
    (mean, Mat::from_fn(n, n, |i, j| prior[(i, j)] - with[i] * with[j] / spread))
}

#[test]
fn jitter_mixes_what_paths_of_one_length_do_not() {
    // ten steps of about π/10: paths end on the other side, at the radius where they began
    let round = Normal { mean: [3.0, -1.0], scale: [1.0; 2], r: 0.0, ..NORMAL };
    let radii = |jitter: f64| {
        let path = Path::Steps(10);
        let step = Some(PI / 10.0);
        let options = HmcOptions { step, path, jitter, draws: 1000, ..HmcOptions::default() };
        let mut density = Parallel::new(&round, 4);
        let draws = hmc::sample_density(&mut density, None, &options, &mut ON.clone()).unwrap();
        let of = |x: &[f64]| (x[0] - 3.0).powi(2) + (x[1] + 1.0).powi(2);
        let chains = |chain: &Vec<f64>| chain.chunks(2).map(of).collect();
        let radii: Vec<Vec<f64>> = draws.positions.iter().map(chains).collect();
        (Summary::of(&radii), draws)
    };
    let ((stuck, _), (mixed, draws)) = (radii(0.0), radii(0.2));
    assert!(stuck.ess_bulk < 0.1 * mixed.ess_bulk, "{stuck:?} {mixed:?}");
    holds("radius", &draws, &|x| (x[0] - 3.0).powi(2) + (x[1] + 1.0).powi(2), 2.0, 0.2);
}

#[test]
fn elliptical_chains_have_the_conjugate_posterior() {
    let m = vec![2.0, -1.0, 30.0];
    let l = Mat::from_fn(3, 3, |i, j| {
        // what is above the diagonal must not be read
        [[1.5, 9.9, 9.9], [-0.4, 0.6, 9.9], [5.0, -3.0, 8.0]][i][j]
    });
    let lower = Mat::from_fn(3, 3, |i, j| if i >= j { l[(i, j)] } else { 0.0 });
    let (a, y, v) = ([0.7, -1.2, 0.11], 9.5, 0.6);
    let (mean, covariance) = posterior(&m, &lower, &a, y, v);
    let prior = GaussianPrior::new(m, l).unwrap();
    let log = move |x: &[f64]| {
        let f: f64 = x.iter().zip(&a).map(|(x, a)| x * a).sum();
        -0.5 * (y - f) * (y - f) / v
    };
    let options = EllipticalOptions { draws: 8000, ..EllipticalOptions::default() };
    let run = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = EllipticalOptions { seed, ..options.clone() };
        let mut likelihood = Values::new(3, log);
        pool.install(|| {
            elliptical::sample_density(&mut likelihood, &prior, None, &options, &mut ON.clone())
        })
        .unwrap()
    };
    let draws = run(1, 0);
    for i in 0..3 {
        let deviation = covariance[(i, i)].sqrt();
        let (centre, most) = (mean[i], 0.1 * deviation);
        holds("mean", &draws, &|x| x[i], centre, most);
        for j in 0..=i {
            let scale = 0.1 * deviation * covariance[(j, j)].sqrt();
            let product = |x: &[f64]| (x[i] - mean[i]) * (x[j] - mean[j]);
            holds("covariance", &draws, &product, covariance[(i, j)], scale);
        }
        normal_law("marginal", &draws, i, centre, deviation);
    }
    assert_eq!(draws.log_density[1][7], log(&draws.positions[1][21..24]));
    assert_eq!(draws.steps, [None; 4]);
    // draws depend only on the seed
    assert_eq!(run(3, 0), draws);
    assert_ne!(run(1, 1), draws);
    // without a likelihood the law is the prior, at the first ellipse
    let mut flat = Values::new(3, |_: &[f64]| 0.0);
    let free =
        elliptical::sample_density(&mut flat, &prior, None, &options, &mut ON.clone()).unwrap();
    assert!(free.acceptance.iter().flatten().all(|a| *a == 1.0));
    normal_law("prior", &free, 2, 30.0, 98.0_f64.sqrt());
}

#[test]
fn chains_in_parallel_have_the_same_bits_on_any_number_of_threads() {
    let run = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options =
            HmcOptions { seed, burn_in: 50, draws: 40, path: NO_TURN, ..Default::default() };
        let mut density = Parallel::new(&NORMAL, 4);
        pool.install(|| hmc::sample_density(&mut density, None, &options, &mut ON.clone())).unwrap()
    };
    assert_eq!(run(1, 0), run(3, 0));
    assert_ne!(run(1, 0), run(1, 1));
    // a chain does not see the others
    let alone =
        HmcOptions { chains: 1, burn_in: 50, draws: 40, path: NO_TURN, ..HmcOptions::default() };
    let mut density = Parallel::new(&NORMAL, 1);
    let one = hmc::sample_density(&mut density, None, &alone, &mut ON.clone()).unwrap();
    assert_eq!(one.positions[0], run(1, 0).positions[0]);
}

#[test]
fn what_is_not_finite_is_refused_at_the_start_and_has_no_mass_afterwards() {
    // half of a normal law: mean √(2/π)
    let bounded =
        |outside: f64| Normal { mean: [0.0; 2], scale: [1.0; 2], r: 0.0, bound: 0.0, outside };
    for outside in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let half = bounded(outside);
        let starts = Some(&[0.5, 0.0][..]);
        let mut density = Parallel::new(&half, 4);
        let options = MetropolisOptions { draws: 3000, thin: 5, ..MetropolisOptions::default() };
        let walk = metropolis::sample_density(&mut density, starts, &options, &mut ON.clone());
        let (step, path) = (Some(0.5), Path::Steps(3));
        let options = HmcOptions { draws: 6000, step, path, ..HmcOptions::default() };
        let paths = hmc::sample_density(&mut density, starts, &options, &mut ON.clone());
        let prior = GaussianPrior::standard(2);
        let mut edge = Values::new(2, move |x: &[f64]| if x[0] < 0.0 { outside } else { 0.0 });
        let options = EllipticalOptions { draws: 4000, ..EllipticalOptions::default() };
        let ellipses =
            elliptical::sample_density(&mut edge, &prior, starts, &options, &mut ON.clone());
        for (what, draws) in [("walk", walk), ("paths", paths), ("ellipses", ellipses)] {
            let draws = draws.unwrap();
            assert!(draws.positions.iter().flatten().step_by(2).all(|x| *x >= 0.0), "{what}");
            holds(what, &draws, &|x| x[0], (2.0 / PI).sqrt(), 0.05);
            holds(what, &draws, &|x| x[0] * x[0], 1.0, 0.1);
        }
        let error = hmc::sample_density(
            &mut Parallel::new(&half, 2),
            Some(&[0.5, 0.0, -0.5, 0.0]),
            &HmcOptions { chains: 2, ..HmcOptions::default() },
            &mut ON.clone(),
        );
        let error = error.unwrap_err();
        assert!(matches!(&error, Error::NonFinite { .. }), "{error}");
        assert!(error.to_string().contains("log density at the start of chain 1"), "{error}");
        let error = elliptical::sample_density(
            &mut edge,
            &prior,
            Some(&[-1.0, 0.0]),
            &EllipticalOptions::default(),
            &mut ON.clone(),
        );
        assert!(error.unwrap_err().to_string().contains("start of chain 0"));
    }
}

/// NaN in the gradient where the value is finite.
struct Broken;

impl BatchDensity for Broken {
    fn dim(&self) -> usize {
        1
    }

    fn evaluate(
        &mut self,
        _: &[f64],
        values: &mut [f64],
        slopes: Option<&mut [f64]>,
    ) -> Result<()> {
        values.fill(1.0);
        slopes.into_iter().for_each(|slopes| slopes.fill(f64::NAN));
        Ok(())
    }
}

#[test]
fn wrong_starts_priors_and_numbers_are_refused() {
    let mut options = HmcOptions { burn_in: 5, draws: 5, ..HmcOptions::default() };
    let message = |result: Result<DensityDraws>| result.unwrap_err().to_string();
    let mut density = Parallel::new(&NORMAL, 4);
    let mut run = |starts, options: &HmcOptions| {
        message(hmc::sample_density(&mut density, starts, options, &mut ON.clone()))
    };
    let wrong = run(Some(&[1.0; 3]), &options);
    assert!(wrong.contains("expected 2 numbers, or 2 for each of 4 chains, found 3"), "{wrong}");
    assert!(run(Some(&[1.0, f64::NAN]), &options).contains("the start of chain 0"));
    options.chains = 5;
    assert!(run(None, &options).contains("at most 4"));
    options.chains = 0;
    assert!(run(None, &options).contains("0 chains"));
    options = HmcOptions { draws: 0, ..HmcOptions::default() };
    assert!(run(None, &options).contains("at least one draw"));
    options = HmcOptions { step: Some(-1.0), ..HmcOptions::default() };
    assert!(run(None, &options).contains("positive size"));
    options = HmcOptions { jitter: 1.0, ..HmcOptions::default() };
    assert!(run(None, &options).contains("jitter"));
    options = HmcOptions::default();
    let wrong = message(hmc::sample_density(&mut Broken, None, &options, &mut ON.clone()));
    assert!(wrong.contains("gradient of the log density at the start of chain 0"), "{wrong}");
    let mut values = Values::new(2, |_: &[f64]| 0.0);
    assert!(
        message(hmc::sample_density(&mut values, None, &options, &mut ON.clone()))
            .contains("no gradient")
    );
    let prior = GaussianPrior::standard(3);
    let options = EllipticalOptions::default();
    let wrong = elliptical::sample_density(&mut values, &prior, None, &options, &mut ON.clone());
    assert!(message(wrong).contains("expected 2 variables, as the likelihood has, found 3"));
    let factor = |diagonal: f64| Mat::from_fn(2, 2, |i, j| if i == j { diagonal } else { 0.5 });
    assert!(GaussianPrior::new(vec![0.0; 3], factor(1.0)).unwrap_err().to_string().contains("3×3"));
    assert!(GaussianPrior::new(vec![0.0; 2], factor(0.0)).is_err());
    assert!(GaussianPrior::new(vec![0.0; 2], factor(f64::NAN)).is_err());
    assert!(GaussianPrior::new(vec![f64::INFINITY, 0.0], factor(1.0)).is_err());
}

#[test]
fn whoever_watches_may_end_the_sampling_with_the_draws_made() {
    let options = HmcOptions { burn_in: 20, draws: 100, path: NO_TURN, ..HmcOptions::default() };
    let mut seen = (0, 0);
    let mut watch = |done, total| {
        assert!(done >= seen.0);
        seen = (done, total);
        if done < 50 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let mut density = Parallel::new(&NORMAL, 4);
    let draws = hmc::sample_density(&mut density, None, &options, &mut watch).unwrap();
    assert_eq!((seen, draws.draws()), ((50, 120), 30));
    let whole = hmc::sample_density(&mut density, None, &options, &mut ON.clone()).unwrap();
    for (part, whole) in draws.positions.iter().zip(&whole.positions) {
        assert_eq!(part[..], whole[..60]);
    }
}

/// Neal 2003, §8: v ~ N(0, 9), x | v ~ N(0, eᵛ) in nine dimensions.
#[derive(Clone)]
struct Funnel;

impl LogDensity for Funnel {
    fn dim(&self) -> usize {
        10
    }

    fn value(&mut self, x: &[f64]) -> f64 {
        self.evaluate(x, &mut [0.0; 10])
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> f64 {
        let (v, shrink) = (x[0], (-x[0]).exp());
        let squares: f64 = x[1..].iter().map(|x| x * x).sum();
        gradient[0] = -v / 9.0 - 4.5 + 0.5 * squares * shrink;
        gradient[1..].iter_mut().zip(&x[1..]).for_each(|(g, x)| *g = -x * shrink);
        -v * v / 18.0 - 4.5 * v - 0.5 * squares * shrink
    }
}

#[test]
fn the_neck_of_a_funnel_makes_paths_diverge() {
    for path in [NO_TURN, Path::Steps(10)] {
        let options = HmcOptions { path, ..HmcOptions::default() };
        let mut density = Parallel::new(&Funnel, 4);
        let draws = hmc::sample_density(&mut density, None, &options, &mut ON.clone()).unwrap();
        assert!(draws.divergences() > 0, "{path:?}");
        // thinned draws keep what happened between them
        let options = HmcOptions { path, draws: 100, thin: 5, ..HmcOptions::default() };
        let thin = hmc::sample_density(&mut density, None, &options, &mut ON.clone()).unwrap();
        for (all, thinned) in draws.diverging.iter().zip(&thin.diverging) {
            let any: Vec<bool> = all.chunks(5).map(|five| five.contains(&true)).collect();
            assert_eq!(any, *thinned);
        }
    }
}

#[test]
fn a_likelihood_that_changes_from_call_to_call_ends_no_program() {
    // it never comes back to the level of the start
    let calls = std::sync::atomic::AtomicU64::new(0);
    let falling =
        |_: &[f64]| -1e6 * calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as f64;
    let prior = GaussianPrior::standard(1);
    let options = EllipticalOptions { chains: 1, burn_in: 0, draws: 3, ..Default::default() };
    let mut density = Values::new(1, falling);
    let draws =
        elliptical::sample_density(&mut density, &prior, None, &options, &mut ON.clone()).unwrap();
    assert_eq!(draws.acceptance[0], [0.0; 3]);
    assert_eq!(draws.positions[0][0], draws.positions[0][2]);
}
