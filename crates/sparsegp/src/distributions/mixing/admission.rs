//! Whether a function can be the Laplace transform of a mixing distribution.

use super::{Complex64, Mixing};
use crate::distributions::{Euler, Tilted};
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Jitter, Mat};
use crate::rng::{stream, uniform};

/// How negative an eigenvalue may be, as a part of the trace.
const SEMIDEFINITE: f64 = 1e-10;
/// How negative the density may be, in units of 1/mean.
const DENSITY: f64 = 1e-8;

/// Checks necessary conditions for φ to be completely monotone with φ(0) = 1, on a range of r about
/// the scale where φ falls to 1/e:
///
/// 1. φ(0) = 1;
/// 2. the real and the complex form agree, and ω̄ = −(log φ)′ is what differences of log φ give;
/// 3. ω̄ > 0 does not increase, and κ₂ is what differences of ω̄ give;
/// 4. the matrices [φ(rᵢ + rⱼ)] and [ω̄φ(rᵢ + rⱼ)] are positive semidefinite for random r (Bernstein's
///    theorem: φ and −φ′ are mixtures of e^{−rω}, each of which gives rank one);
/// 5. the density found by inversion is not negative.
///
/// # Errors
/// [`Error::Invalid`] that names the condition which fails, with the numbers.
pub fn check(mixing: &dyn Mixing) -> Result<()> {
    let at_zero = mixing.log_phi(0.0);
    if at_zero.is_nan() || at_zero.abs() > 1e-12 {
        return Err(fails(format!("φ(0) must be 1, but log φ(0) = {at_zero}")));
    }
    let scale = scale(mixing)?;
    let grid: Vec<f64> = (-24..=12).map(|k| scale * 10f64.powf(f64::from(k) / 4.0)).collect();
    forms(mixing, &grid)?;
    falling(mixing, &grid)?;
    matrices(mixing, scale)?;
    density(mixing, scale)
}

fn fails(what: String) -> Error {
    Error::Invalid(format!("this is not a completely monotone φ: {what}"))
}

/// Returns the r with log φ(r) = −1, or near enough.
fn scale(mixing: &dyn Mixing) -> Result<f64> {
    let (mut low, mut high) = (-300.0, 300.0);
    if mixing.log_phi(1e300) > -1.0 || mixing.log_phi(1e-300) < -1.0 {
        return Err(fails(format!(
            "φ must fall from 1 to 0 (a limit above 0 is a point mass at ω = 0), but log φ is {} at 1e-300 and {} at 1e300",
            mixing.log_phi(1e-300),
            mixing.log_phi(1e300)
        )));
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if mixing.log_phi(10f64.powf(middle)) > -1.0 { low = middle } else { high = middle }
    }
    Ok(10f64.powf(low))
}

/// Returns whether two numbers differ by no more than that; a NaN is near nothing.
fn near(a: f64, b: f64, allowed: f64) -> bool {
    (a - b).abs() <= allowed
}

fn forms(mixing: &dyn Mixing, grid: &[f64]) -> Result<()> {
    for &r in grid {
        let (real, complex) = (mixing.log_phi(r), mixing.log_phi_complex(Complex64::new(r, 0.0)));
        let allowed = 1e-10 * (1.0 + real.abs());
        if !(near(real, complex.re, allowed) && near(complex.im, 0.0, allowed)) {
            return Err(fails(format!(
                "the real and the complex form must agree, but log φ({r:e}) is {real} and {complex}"
            )));
        }
        // Simpson's rule over one step of the grid: ∫ ω̄ = −log φ |
        let end = 1.1 * r;
        let parts = 8;
        let h = (end - r) / f64::from(parts);
        let integral = |f: &dyn Fn(f64) -> f64| -> f64 {
            let weight = |i| match i {
                0 => 1.0,
                _ if i == parts => 1.0,
                _ if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            (0..=parts).map(|i| weight(i) * f(r + f64::from(i) * h)).sum::<f64>() * h / 3.0
        };
        let (fall, mean) = (real - mixing.log_phi(end), integral(&|r| mixing.mean(r)));
        if !near(fall, mean, 1e-5 * mean.abs() + 1e-13 * (1.0 + real.abs())) {
            return Err(fails(format!(
                "the mean must be −(log φ)′, but its integral from {r:e} to {end:e} is {mean:e}, and log φ falls by {fall:e}"
            )));
        }
        let (fall, variance) =
            (mixing.mean(r) - mixing.mean(end), integral(&|r| mixing.variance(r)));
        if !near(fall, variance, 1e-5 * variance.abs() + 1e-9 * mixing.mean(r)) {
            return Err(fails(format!(
                "the variance must be (log φ)″, but its integral from {r:e} to {end:e} is {variance:e}, and the mean falls by {fall:e}"
            )));
        }
    }
    Ok(())
}

fn falling(mixing: &dyn Mixing, grid: &[f64]) -> Result<()> {
    let mut before = f64::INFINITY;
    for &r in grid {
        let mean = mixing.mean(r);
        if !(mean > 0.0 && mean <= before * (1.0 + 1e-9)) {
            return Err(fails(format!(
                "−(log φ)′ must be above 0 and not increase, but it is {mean:e} at {r:e} and {before:e} before"
            )));
        }
        before = mean;
    }
    Ok(())
}

fn matrices(mixing: &dyn Mixing, scale: f64) -> Result<()> {
    let mut rng = stream(0, "mixing");
    for _ in 0..8 {
        let r: Vec<f64> =
            (0..8).map(|_| scale * 10f64.powf(4.0 * uniform(&mut rng) - 3.0)).collect();
        for weighted in [false, true] {
            let entry = |i: usize, j: usize| {
                let sum = r[i] + r[j];
                mixing.log_phi(sum).exp() * if weighted { mixing.mean(sum) } else { 1.0 }
            };
            let matrix = Mat::from_fn(r.len(), r.len(), entry);
            let trace: f64 = (0..r.len()).map(|i| entry(i, i)).sum();
            let jitter = Jitter::Absolute(SEMIDEFINITE * trace);
            Cholesky::new(matrix.as_ref(), jitter, "[φ(rᵢ + rⱼ)]").map_err(|error| {
                let what = if weighted { "−φ′" } else { "φ" };
                fails(format!(
                    "the matrix of {what}(rᵢ + rⱼ) must be positive semidefinite for r = {r:?} ({error})"
                ))
            })?;
        }
    }
    Ok(())
}

fn density(mixing: &dyn Mixing, scale: f64) -> Result<()> {
    let c = (0.1 * scale).sqrt();
    let tilted = Tilted::new(mixing, c)?;
    let mean = tilted.mean();
    for k in 1..=40 {
        let x = mean * 0.15 * f64::from(k);
        let density = tilted.euler(x, &Euler::REFERENCE).density;
        if density.is_nan() || density * mean < -DENSITY {
            return Err(fails(format!(
                "the density of ω must not be negative, but it is {density:e} at {x:e} for c = {c:e}"
            )));
        }
    }
    Ok(())
}
