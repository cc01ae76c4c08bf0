//! Checks for kernels, likelihoods and mean functions of other crates: what those of this one are tested with (feature `testing`).
//!
//! ```
//! # #[cfg(feature = "testing")] {
//! use sparsegp::kernels::{Inputs, parse};
//! use sparsegp::linalg::Mat;
//! use sparsegp::testing::check_kernel;
//!
//! let kernel = parse("rbf(variance=1.7, lengthscales=[0.8, 1.9])", Inputs::unnamed(2)).unwrap();
//! let x = Mat::from_fn(7, 2, |i, j| (1.7 * i as f64 + j as f64).sin());
//! let z = Mat::from_fn(4, 2, |i, j| (0.9 * i as f64 - j as f64).cos());
//! check_kernel(&*kernel, x.as_ref(), z.as_ref()).unwrap();
//! # }
//! ```

use crate::kernels::{Cotangents, Kernel, Tape};
use crate::likelihoods::{Likelihood, Slopes, Target};
use crate::linalg::{Mat, MatRef, dot};
use crate::means::Mean;
use crate::params::Param;
use std::f64::consts::TAU;

/// What a check found, as a sentence.
pub type Found = std::result::Result<(), String>;

/// Step of differences.
const STEP: f64 = 1e-3;
/// Slopes agree with differences to this, relative to 1 and them.
const SLOPES: f64 = 2e-7;

/// Returns a derivative by differences of fourth order.
fn difference(f: impl Fn(f64) -> f64, h: f64) -> f64 {
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

fn close(own: f64, other: f64, tolerance: f64, what: impl FnOnce() -> String) -> Found {
    match (own - other).abs() < tolerance * (1.0 + other.abs()) {
        true => Ok(()),
        false => Err(format!("{}: {own}, and it should be {other}", what())),
    }
}

fn covariances(k: &dyn Kernel, x: MatRef<f64>, z: Option<MatRef<f64>>) -> Mat<f64> {
    // what is not written shows
    let mut out = Mat::full(x.nrows(), z.map_or(x.nrows(), |z| z.nrows()), f64::NAN);
    k.evaluate(x, z, out.as_mut(), &mut Tape::off());
    out
}

fn variances(k: &dyn Kernel, x: MatRef<f64>) -> Vec<f64> {
    let mut out = vec![f64::NAN; x.nrows()];
    k.diag(x, &mut out);
    out
}

/// Returns a kernel with one of its numbers moved.
fn moved(k: &dyn Kernel, index: usize, h: f64) -> Box<dyn Kernel> {
    let mut k = k.clone_box();
    move_one(k.params_mut().into_iter().map(|(_, param)| param), index, h);
    k
}

fn shifted(a: MatRef<f64>, i: usize, j: usize, h: f64) -> Mat<f64> {
    let mut b = a.to_owned();
    b[(i, j)] += h;
    b
}

/// Returns a matrix of numbers that repeat nothing.
fn weights(rows: usize, columns: usize) -> Mat<f64> {
    Mat::from_fn(rows, columns, |i, j| (1.7 * i as f64 + 5.06 * j as f64 + 2.2).sin() * 1.3)
}

/// Checks a kernel at rows `x` (N×D) and `z` (M×D): K(X) is symmetric, positive semi-definite and has the diagonal of
/// [`Kernel::diag`]; K(X, X′) agrees with it off the diagonal; clones agree; every pull-back agrees with differences, in all
/// parameters and both inputs. Parameters should be far from 1 and from the ends of their ranges, rows apart by some lengthscales.
///
/// # Errors
/// The first that is wrong, as a sentence.
pub fn check_kernel(kernel: &dyn Kernel, x: MatRef<f64>, z: MatRef<f64>) -> Found {
    let name = kernel.to_json().to_string();
    let n = x.nrows();
    let (own, cross) = (covariances(kernel, x, None), covariances(kernel, x, Some(x)));
    let diag = variances(kernel, x);
    let again = covariances(&*kernel.clone_box(), x, None);
    for i in 0..n {
        close(own[(i, i)], diag[i], 1e-12, || format!("{name}: K({i}, {i}) by `diag`"))?;
        for j in 0..n {
            let what = |of: &str| format!("{name}: K({i}, {j}) {of}");
            if own[(i, j)] != own[(j, i)] {
                return Err(format!(
                    "{} is not its mirror {}",
                    what("is not symmetric: it"),
                    own[(j, i)]
                ));
            }
            close(again[(i, j)], own[(i, j)], 1e-15, || what("of a clone"))?;
            // a kernel that looks at identity, not at place, has its own diagonal
            if i != j {
                close(own[(i, j)], cross[(i, j)], 1e-7, || what("against K(X, X′)"))?;
            }
        }
    }
    let eigenvalues = own.self_adjoint_eigenvalues(faer::Side::Lower);
    let eigenvalues = eigenvalues.map_err(|e| format!("{name}: no eigenvalues ({e:?})"))?;
    let largest = diag.iter().fold(1.0_f64, |m, v| m.max(*v));
    if let Some(least) = eigenvalues.first().filter(|v| **v < -1e-12 * n as f64 * largest) {
        return Err(format!("{name}: K is not positive semi-definite: an eigenvalue is {least}"));
    }
    check_pull_back(kernel, x, Some(z), &name)?;
    check_pull_back(kernel, x, None, &name)?;
    check_pull_back_of_diagonal(kernel, x, &name)
}

/// Returns Σ W∘K with its slopes, against differences.
fn check_pull_back(k: &dyn Kernel, x: MatRef<f64>, z: Option<MatRef<f64>>, name: &str) -> Found {
    let columns = z.map_or(x.nrows(), |z| z.nrows());
    let raw = weights(x.nrows(), columns);
    // a symmetric cotangent for a symmetric matrix
    let w = Mat::from_fn(x.nrows(), columns, |i, j| match z {
        Some(_) => raw[(i, j)],
        None => 0.5 * (raw[(i, j)] + raw[(j, i)]),
    });
    let total = |k: &dyn Kernel, x: MatRef<f64>, z: Option<MatRef<f64>>| {
        dot(covariances(k, x, z).as_ref(), w.as_ref())
    };
    let mut tape = Tape::recording();
    let mut out = Mat::zeros(x.nrows(), columns);
    let mut params = vec![0.0; k.num_params()];
    let (mut x_bar, mut z_bar) = (Mat::zeros(x.nrows(), x.ncols()), Mat::zeros(columns, x.ncols()));
    // twice: the buffers of the tape are used again
    for _ in 0..2 {
        params.fill(0.0);
        x_bar.fill(0.0);
        z_bar.fill(0.0);
        let mut bar = w.clone();
        k.evaluate(x, z, out.as_mut(), &mut tape);
        let mut sinks =
            Cotangents { params: &mut params, x: Some(x_bar.as_mut()), z: Some(z_bar.as_mut()) };
        k.vjp(x, z, out.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
    }
    let of = if z.is_some() { "K(X, Z)" } else { "K(X)" };
    for (index, own) in params.iter().enumerate() {
        let slope = difference(|h| total(&*moved(k, index, h), x, z), STEP);
        close(*own, slope, SLOPES, || format!("{name}: slope of {of} in parameter {index}"))?;
    }
    for (i, q) in (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |q| (i, q))) {
        let slope = difference(|h| total(k, shifted(x, i, q, h).as_ref(), z), STEP);
        let what = || format!("{name}: slope of {of} in row {i}, input {q} of X");
        close(x_bar[(i, q)], slope, SLOPES, what)?;
    }
    let Some(z) = z else { return Ok(()) };
    for (j, q) in (0..z.nrows()).flat_map(|j| (0..z.ncols()).map(move |q| (j, q))) {
        let slope = difference(|h| total(k, x, Some(shifted(z, j, q, h).as_ref())), STEP);
        let what = || format!("{name}: slope of {of} in row {j}, input {q} of Z");
        close(z_bar[(j, q)], slope, SLOPES, what)?;
    }
    Ok(())
}

fn check_pull_back_of_diagonal(k: &dyn Kernel, x: MatRef<f64>, name: &str) -> Found {
    let weights: Vec<f64> = (0..x.nrows()).map(|i| (i as f64 * 0.9).cos()).collect();
    let total = |k: &dyn Kernel, x: MatRef<f64>| -> f64 {
        variances(k, x).iter().zip(&weights).map(|(a, b)| a * b).sum()
    };
    let mut params = vec![0.0; k.num_params()];
    let mut x_bar = Mat::zeros(x.nrows(), x.ncols());
    let mut sinks = Cotangents { params: &mut params, x: Some(x_bar.as_mut()), z: None };
    k.diag_vjp(x, &weights, &mut sinks);
    for (index, own) in params.iter().enumerate() {
        let slope = difference(|h| total(&*moved(k, index, h), x), STEP);
        close(*own, slope, SLOPES, || format!("{name}: slope of `diag` in parameter {index}"))?;
    }
    for (i, q) in (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |q| (i, q))) {
        let slope = difference(|h| total(k, shifted(x, i, q, h).as_ref()), STEP);
        let what = || format!("{name}: slope of `diag` in row {i}, input {q}");
        close(x_bar[(i, q)], slope, SLOPES, what)?;
    }
    Ok(())
}

/// Checks a mean function at rows `x` (N×D), with P outputs: its values are finite, those of a row do not depend on the others,
/// clones agree, and slopes agree with differences, in all parameters and in the inputs. Parameters should be far from 0 and 1.
///
/// # Errors
/// The first that is wrong, as a sentence.
pub fn check_mean(mean: &dyn Mean, x: MatRef<f64>, outputs: usize) -> Found {
    let name = mean.to_json().to_string();
    let values = |mean: &dyn Mean, x: MatRef<f64>| {
        let mut out = Mat::full(x.nrows(), outputs, f64::NAN);
        mean.evaluate(x, out.as_mut());
        out
    };
    let (own, again) = (values(mean, x), values(&*mean.clone_box(), x));
    for (i, p) in (0..x.nrows()).flat_map(|i| (0..outputs).map(move |p| (i, p))) {
        let value = own[(i, p)];
        let what = |of: &str| format!("{name}: m({i}) of output {p} {of}");
        if !value.is_finite() {
            return Err(format!("{}: {value}", what("is not finite")));
        }
        close(again[(i, p)], value, 1e-15, || what("of a clone"))?;
        let alone = values(mean, x.subrows(i, 1));
        close(alone[(0, p)], value, 1e-9, || what("of a single row"))?;
    }
    let w = weights(x.nrows(), outputs);
    let total = |mean: &dyn Mean, x: MatRef<f64>| dot(values(mean, x).as_ref(), w.as_ref());
    let mut params = vec![0.0; mean.num_params()];
    mean.vjp(x, w.as_ref(), &mut params);
    for (index, own) in params.iter().enumerate() {
        let of = |h: f64| {
            let mut other = mean.clone_box();
            move_one(other.params_mut().into_iter().map(|(_, param)| param), index, h);
            total(&*other, x)
        };
        close(*own, difference(of, STEP), SLOPES, || {
            format!("{name}: slope in parameter {index}")
        })?;
    }
    let mut pulled = Mat::zeros(x.nrows(), x.ncols());
    mean.pull_inputs(x, w.as_ref(), pulled.as_mut());
    let slopes: Vec<Mat<f64>> = (0..outputs)
        .map(|output| {
            let mut own = Mat::zeros(x.nrows(), x.ncols());
            mean.add_slopes(x, output, own.as_mut());
            own
        })
        .collect();
    for (i, q) in (0..x.nrows()).flat_map(|i| (0..x.ncols()).map(move |q| (i, q))) {
        let what = |of: &str| format!("{name}: slope {of} in row {i}, input {q}");
        let slope = difference(|h| total(mean, shifted(x, i, q, h).as_ref()), STEP);
        close(pulled[(i, q)], slope, SLOPES, || what("of a weighted sum"))?;
        for (output, own) in slopes.iter().enumerate() {
            let of = |h| values(mean, shifted(x, i, q, h).as_ref())[(i, output)];
            let what = || what(&format!("of output {output}"));
            close(own[(i, q)], difference(of, STEP), SLOPES, what)?;
        }
    }
    Ok(())
}

/// Moves one of the numbers of parameters.
fn move_one<'a>(params: impl Iterator<Item = &'a mut Param>, index: usize, h: f64) {
    let mut rest = index;
    for param in params {
        if rest < param.len() {
            param.value_mut()[rest] += h;
            break;
        }
        rest -= param.len();
    }
}

/// Means and variances of every latent function that likelihoods are looked at under.
const MARGINALS: [(f64, f64); 4] = [(0.3, 0.4), (-1.1, 0.07), (0.8, 1.3), (-0.2, 0.9)];

/// Checks a likelihood at targets that it takes: slopes of E[log p] in means, variances and parameters agree with differences; a
/// latent function that is known leaves log p; and of one latent function `E[log p]` and `log E[p]` agree with sums on a fine grid, to 10⁻⁶.
///
/// # Errors
/// The first that is wrong, as a sentence.
pub fn check_likelihood(likelihood: &dyn Likelihood, targets: &[Target]) -> Found {
    let name = likelihood.to_json().to_string();
    let latents = likelihood.latents();
    for target in targets {
        likelihood.check(*target).map_err(|why| format!("{name}: y = {} {why}", target.y))?;
        for first in 0..MARGINALS.len() {
            let of = |l: usize| MARGINALS[(first + l) % MARGINALS.len()];
            let (mean, variance): (Vec<f64>, Vec<f64>) = (0..latents).map(of).unzip();
            let at = format!("{name} at y = {}, means {mean:?}, variances {variance:?}", target.y);
            check_slopes(likelihood, *target, (&mean, &variance), &at)?;
            let known = expect(likelihood, *target, &mean, &vec![0.0; latents]).0;
            let log = likelihood.log_prob(*target, &mean);
            close(known, log, 1e-6, || format!("{at}: E[log p] without variance"))?;
            if latents == 1 {
                check_on_a_grid(likelihood, *target, (mean[0], variance[0]), &at)?;
            }
        }
    }
    Ok(())
}

/// Returns E[log p] with slopes in means, variances and parameters.
fn expect(
    likelihood: &dyn Likelihood,
    target: Target,
    mean: &[f64],
    variance: &[f64],
) -> (f64, [Vec<f64>; 3]) {
    let (mut a, mut b) = (vec![f64::NAN; mean.len()], vec![f64::NAN; mean.len()]);
    let mut c = vec![f64::NAN; likelihood.num_params()];
    let out = Slopes { mean: &mut a, variance: &mut b, params: &mut c };
    let value = likelihood.expect(target, mean, variance, out);
    (value, [a, b, c])
}

fn check_slopes(
    likelihood: &dyn Likelihood,
    target: Target,
    (mean, variance): (&[f64], &[f64]),
    at: &str,
) -> Found {
    // rules of quadrature move with what they integrate
    const TOLERANCE: f64 = 1e-5;
    let (_, [by_mean, by_variance, by_params]) = expect(likelihood, target, mean, variance);
    let plus = |a: &[f64], l: usize, h: f64| {
        let mut a = a.to_vec();
        a[l] += h;
        a
    };
    for l in 0..mean.len() {
        let of = |h| expect(likelihood, target, &plus(mean, l, h), variance).0;
        close(by_mean[l], difference(of, STEP), TOLERANCE, || format!("{at}: slope in mean {l}"))?;
        let of = |h| expect(likelihood, target, mean, &plus(variance, l, h)).0;
        let what = || format!("{at}: slope in variance {l}");
        close(by_variance[l], difference(of, STEP), TOLERANCE, what)?;
    }
    for (index, own) in by_params.iter().enumerate() {
        let of = |h: f64| {
            let mut other = likelihood.clone_box();
            move_one(other.params_mut().into_iter().map(|(_, param)| param), index, h);
            expect(&*other, target, mean, variance).0
        };
        let what = || format!("{at}: slope in parameter {index}");
        close(*own, difference(of, STEP), TOLERANCE, what)?;
    }
    Ok(())
}

/// Returns E[log p] and log E[p] by sums over ten deviations.
fn check_on_a_grid(
    likelihood: &dyn Likelihood,
    target: Target,
    (mean, variance): (f64, f64),
    at: &str,
) -> Found {
    const NODES: i32 = 20_000;
    let deviation = variance.sqrt();
    let nodes: Vec<f64> =
        (-NODES..=NODES).map(|k| 10.0 * f64::from(k) / f64::from(NODES)).collect();
    let f: Vec<f64> = nodes.iter().map(|t| mean + deviation * t).collect();
    let mut logs = vec![f64::NAN; f.len()];
    likelihood.log_probs(&vec![target; f.len()], &f, &mut logs);
    let (mut log, mut density) = (0.0, 0.0);
    for (t, own) in nodes.iter().zip(&logs) {
        let weight = (-0.5 * t * t).exp() / TAU.sqrt() * 10.0 / f64::from(NODES);
        log += weight * own;
        density += weight * own.exp();
    }
    let (value, _) = expect(likelihood, target, &[mean], &[variance]);
    close(value, log, 1e-6, || format!("{at}: E[log p]"))?;
    let own = likelihood.predict_log_density(target, &[mean], &[variance]);
    close(own, density.ln(), 1e-6, || format!("{at}: log E[p]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::radial::{Profile, Radial};
    use crate::kernels::{Inputs, parse};
    use crate::likelihoods;

    /// A squared exponential whose slope is two per cent off.
    #[derive(Clone, Copy, Debug, Default)]
    struct Wrong;

    impl Profile for Wrong {
        const NAME: &'static str = "wrong";
        const SLOPE_OVER_VALUE: Option<f64> = None;
        const EXACT_DISTANCES: bool = false;

        fn value_and_slope<const FMA: bool>(d2: f64) -> (f64, f64) {
            let value = (-0.5 * d2).exp();
            (value, -0.49 * value)
        }
    }

    /// A check that cannot fail is none.
    #[test]
    fn what_is_wrong_is_found() {
        let x = Mat::from_fn(5, 2, |i, j| (1.7 * i as f64 + j as f64).sin());
        let z = Mat::from_fn(3, 2, |i, j| (0.9 * i as f64 - j as f64).cos());
        let kernel = parse("rbf(variance=1.7, lengthscales=[0.8, 1.9])", Inputs::unnamed(2));
        check_kernel(&*kernel.unwrap(), x.as_ref(), z.as_ref()).unwrap();
        let mut wrong = Radial::new(Wrong, Inputs::unnamed(2)).unwrap();
        wrong.initialise(&[0.8, 1.9], 1.7);
        let error = check_kernel(&wrong, x.as_ref(), z.as_ref()).unwrap_err();
        assert!(error.contains("slope of K(X, Z) in parameter 1"), "{error}");

        let target = |y| Target { y, extra: 1.0 };
        for (spec, targets) in [
            ("poisson", [1.0, 3.0]),
            ("bernoulli(link=logit)", [0.0, 1.0]),
            ("student-t(scale=0.4, df=5)", [0.7, -2.0]),
            ("heteroscedastic", [0.7, -2.0]),
        ] {
            check_likelihood(&*likelihoods::parse(spec).unwrap(), &targets.map(target)).unwrap();
        }
        let counts = likelihoods::parse("poisson").unwrap();
        let error = check_likelihood(&*counts, &[target(-1.0)]).unwrap_err();
        assert!(error.contains("y = -1"), "{error}");
    }
}
