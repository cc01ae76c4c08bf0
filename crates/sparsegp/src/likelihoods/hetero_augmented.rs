//! Local variables for noise of the precision λσ(g) with the logistic function σ, g the second latent
//! function (Galy-Fajou 2022, §7.2 with its errata).
//!
//! Normal noise: E over q(f) first, then e^{−λσ(g)R/2} = e^{−λR/2} Σₙ σ(−g)ⁿ … (a second bound), R = (y − μ_f)² + v_f:
//!
//! ```text
//! ψ = σ̃(−μ_g, v_g)    ℓ = ½ log λ/2π + ½ log σ̃(μ_g, v_g) − ½λR(1 − ψ)
//! f: precision λ(1 − ψ), potential λ(1 − ψ) y      g: precision (½ + n̄) θ(c), potential ½(½ − n̄), n̄ = ½λRψ
//! ```
//! Student's t with ν degrees of freedom is normal of precision λσ(g)ξ with ξ ~ Ga(ν/2, ν/2); its bound has
//! ξ̄ = (ν + 1)/(ν + λ(1 − ψ)R), and −½(ν + 1) log(1 + λ(1 − ψ)R/ν) for −½λR(1 − ψ).
//!
//! λ is in closed form N/Σ ξ̄(1 − ψ)R, with ξ̄ = 1 for normal noise; else ξ̄ is that of the present λ.
//!
//! g moves first: its counts n and Pólya-Gamma variables belong to the present f, and are integrated out of the
//! step of f, which follows at the new g.

use super::augmented::{Augmented, Ratios, Site, polya_gamma};
use super::hetero_noise::{Normal, StudentT};
use super::heteroscedastic::Heteroscedastic;
use super::{Slopes, Target};
use crate::distributions::functions::{log_sigma_tilde, one_minus_sigma_tilde, pg_mean};
use rand_distr::{Distribution, Gamma};
use statrs::function::gamma::{digamma, ln_gamma};
use std::f64::consts::{PI, TAU};

/// What both shapes share at moments of f and g.
struct At {
    /// λ.
    precision: f64,
    /// R.
    square: f64,
    /// 1 − ψ.
    share: f64,
    /// ψ.
    psi: f64,
    /// c.
    tilt: f64,
}

impl At {
    fn new(precision: Option<f64>, target: Target, mean: &[f64], variance: &[f64]) -> Self {
        let residual = target.y - mean[0];
        let (m, v) = (mean[1], variance[1]);
        Self {
            precision: precision.expect("a logistic precision"),
            square: residual * residual + variance[0],
            share: one_minus_sigma_tilde(-m, v),
            psi: log_sigma_tilde(-m, v).exp(),
            tilt: (m * m + v).sqrt(),
        }
    }

    /// Computes slopes by both latent functions, with ξ̄.
    fn slopes(&self, target: Target, mean: &[f64], weight: f64, out: &mut Slopes<'_>) {
        let precision = self.precision * self.share * weight;
        (out.mean[0], out.variance[0]) = (precision * (target.y - mean[0]), -0.5 * precision);
        let events = 0.5 * self.precision * self.square * self.psi * weight;
        let precision = (0.5 + events) * pg_mean(self.tilt);
        (out.mean[1], out.variance[1]) =
            (0.5 * (0.5 - events) - precision * mean[1], -0.5 * precision);
    }

    /// Returns the site of g with so many counts.
    fn site_of_scale(&self, events: f64, rng: &mut dyn rand::Rng) -> Site {
        let precision = polya_gamma(0.5 + events, self.tilt, rng);
        Site { potential: 0.5 * (0.5 - events), precision }
    }

    /// Returns the site of f with ξ.
    fn site_of_mean(&self, target: Target, weight: f64) -> Site {
        let precision = self.precision * self.share * weight;
        Site { potential: precision * target.y, precision }
    }
}

impl Augmented for Heteroscedastic<Normal> {
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], mut out: Slopes<'_>) -> f64 {
        let at = At::new(self.most_precise(), target, mean, variance);
        at.slopes(target, mean, 1.0, &mut out);
        out.params[0] = 0.5 / at.precision - 0.5 * at.square * at.share;
        0.5 * (at.precision / TAU).ln() + 0.5 * log_sigma_tilde(mean[1], variance[1])
            - 0.5 * at.precision * at.square * at.share
    }

    fn powers(&self) -> Vec<Option<f64>> {
        vec![Some(1.0)]
    }

    fn add_ratios(&self, target: Target, mean: &[f64], variance: &[f64], out: &mut Ratios<'_>) {
        let at = At::new(self.most_precise(), target, mean, variance);
        out.add(0, 1.0, at.square * at.share);
    }

    fn turns(&self) -> usize {
        2
    }

    fn turn(&self, latent: usize) -> usize {
        1 - latent
    }

    fn draw(
        &self,
        turn: usize,
        target: Target,
        f: &[f64],
        variance: &[f64],
        rng: &mut dyn rand::Rng,
        out: &mut [Site],
    ) {
        let at = At::new(self.most_precise(), target, f, variance);
        if turn == 1 {
            out[0] = at.site_of_mean(target, 1.0);
            return;
        }
        let events = super::poisson::draw(0.5 * at.precision * at.square * at.psi, rng);
        out[1] = at.site_of_scale(events, rng);
    }
}

/// Returns a draw of Ga(shape, rate).
fn gamma(shape: f64, rate: f64, rng: &mut dyn rand::Rng) -> f64 {
    Gamma::new(shape, 1.0 / rate).map_or(f64::NAN, |gamma| gamma.sample(rng))
}

impl Augmented for Heteroscedastic<StudentT> {
    fn expect(&self, target: Target, mean: &[f64], variance: &[f64], mut out: Slopes<'_>) -> f64 {
        let at = At::new(self.most_precise(), target, mean, variance);
        let df = self.noise.df.scalar();
        let half = 0.5 * (df + 1.0);
        let q = at.precision * at.share * at.square / df;
        let weight = 2.0 * half / (df * (1.0 + q));
        at.slopes(target, mean, weight, &mut out);
        let share = q / (1.0 + q);
        out.params[0] =
            0.5 * (digamma(half) - digamma(0.5 * df) - 1.0 / df - q.ln_1p()) + half / df * share;
        out.params[1] = (0.5 - half * share) / at.precision;
        ln_gamma(half) - ln_gamma(0.5 * df) - 0.5 * (PI * df).ln()
            + 0.5 * at.precision.ln()
            + 0.5 * log_sigma_tilde(mean[1], variance[1])
            - half * q.ln_1p()
    }

    fn powers(&self) -> Vec<Option<f64>> {
        vec![None, Some(1.0)]
    }

    fn add_ratios(&self, target: Target, mean: &[f64], variance: &[f64], out: &mut Ratios<'_>) {
        let at = At::new(self.most_precise(), target, mean, variance);
        let df = self.noise.df.scalar();
        let xi = (df + 1.0) / (df + at.precision * at.share * at.square);
        out.add(1, 1.0, xi * at.square * at.share);
    }

    fn turns(&self) -> usize {
        2
    }

    fn turn(&self, latent: usize) -> usize {
        1 - latent
    }

    fn draw(
        &self,
        turn: usize,
        target: Target,
        f: &[f64],
        variance: &[f64],
        rng: &mut dyn rand::Rng,
        out: &mut [Site],
    ) {
        let at = At::new(self.most_precise(), target, f, variance);
        let df = self.noise.df.scalar();
        let half = 0.5 * (df + 1.0);
        if turn == 1 {
            let weight = gamma(half, 0.5 * (df + at.precision * at.share * at.square), rng);
            out[0] = at.site_of_mean(target, weight);
            return;
        }
        // ξ integrated out: the counts are negative binomial of σ(−g)Δ/(1 + Δ), Δ = λR/ν, which is a Poisson
        // whose rate is a gamma variable
        let delta = at.precision * at.square / df;
        let odds = delta * at.psi / (1.0 + delta * at.share);
        let events =
            if odds > 0.0 { super::poisson::draw(gamma(half, 1.0 / odds, rng), rng) } else { 0.0 };
        out[1] = at.site_of_scale(events, rng);
    }
}
