//! Waves: k(τ) = Σⱼ cⱼ cos(jωτ), a constant and pairs of numbers that turn (Solin & Särkkä 2014).

use super::super::Tape;
use super::super::radial::Stationary;
use super::StateSpace;
use crate::error::{Error, Result};
use crate::linalg::{Mat, RowRef};
use std::f64::consts::{PI, TAU};
use std::sync::LazyLock;

/// Most harmonics of a periodic kernel.
pub const MOST_HARMONICS: usize = 24;
/// Harmonics that together have less than this part of the variance are left out.
const SMALL: f64 = 1e-13;
/// What the harmonics that there are may lack at most.
const LARGEST_ERROR: f64 = 1e-6;
/// What they may lack before it is worth a warning.
const LACKING: f64 = 1e-9;
/// Places in a period at which a periodic kernel is looked at.
const PLACES: usize = 512;

/// Cosines of the angles of these places.
static COSINES: LazyLock<Vec<f64>> =
    LazyLock::new(|| (0..PLACES).map(|m| (TAU * m as f64 / PLACES as f64).cos()).collect());

/// cⱼ and ω, with the slopes of cⱼ in parameters.
#[derive(Clone, Debug)]
pub struct Waves {
    /// The input that is the time.
    input: usize,
    /// j and cⱼ.
    terms: Vec<(usize, f64)>,
    /// Parameters that the cⱼ depend on, with the slopes of each cⱼ.
    slopes: Vec<(usize, Vec<f64>)>,
    frequency: f64,
    /// The parameter that the frequency is 2π over.
    period: (usize, f64),
    error: f64,
}

impl Waves {
    /// Creates one wave along an input, of variance and wavelength, parameters 0 and 1.
    pub fn one(input: usize, variance: f64, wavelength: f64) -> Self {
        Self {
            input,
            terms: vec![(1, variance)],
            slopes: vec![(0, vec![1.0])],
            frequency: TAU / wavelength,
            period: (1, wavelength),
            error: 0.0,
        }
    }

    /// Returns the places of the states of each wave, with its number.
    fn places(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let mut at = 0;
        self.terms.iter().map(move |(j, c)| {
            let own = at;
            at += if *j == 0 { 1 } else { 2 };
            (own, *j, *c)
        })
    }
}

/// Returns the coefficients of cosines of a function of the angle in [0, 2π) that is given at
/// [`PLACES`] places.
fn harmonics(values: &[f64]) -> Vec<f64> {
    let n = values.len() as f64;
    let of = |j: usize| {
        let wave = |m: usize| COSINES[j * m % PLACES];
        let sum: f64 = values.iter().enumerate().map(|(m, v)| v * wave(m)).sum();
        sum * if j == 0 { 1.0 } else { 2.0 } / n
    };
    (0..values.len() / 4).map(of).collect()
}

/// Returns the waves of σ²κ(sin²(πτ/p)/ℓ²) along an input. Parameters are those of the base, then the period.
///
/// # Errors
/// [`Error::NonFinite`], which is recoverable, where more than [`MOST_HARMONICS`] would be needed.
pub fn periodic(input: usize, base: &dyn Stationary, period: f64) -> Result<Waves> {
    let lengthscale = base.lengthscale(0);
    let sines = |m: usize| (PI * m as f64 / PLACES as f64).sin() / lengthscale;
    let squares = Mat::from_fn(PLACES, 1, |m, _| sines(m).powi(2));
    let (mut k, mut tape) = (squares.clone(), Tape::recording());
    base.correlate(k.as_mut(), &mut tape);
    // slopes in ϱ², at one place after the other
    let count = base.num_params();
    let mut by_param = vec![vec![0.0; PLACES]; count];
    let slot = base.lengthscale_slot(0);
    for m in 0..PLACES {
        let mut tape = Tape::recording();
        let (mut own, mut bar) =
            (Mat::from_fn(1, 1, |_, _| squares[(m, 0)]), Mat::from_fn(1, 1, |_, _| 1.0));
        base.correlate(own.as_mut(), &mut tape);
        let mut params = vec![0.0; count];
        base.pull(own.as_ref(), bar.as_mut(), &mut tape, &mut params);
        params[slot] -= 2.0 * bar[(0, 0)] * squares[(m, 0)] / lengthscale;
        by_param.iter_mut().zip(params).for_each(|(all, own)| all[m] = own);
    }
    let all = harmonics(k.col_as_slice(0));
    let total: f64 = all.iter().sum();
    let mut left = all.iter().map(|c| c.abs()).sum::<f64>();
    let mut kept = 0;
    while kept < all.len() && left > SMALL * total && kept <= MOST_HARMONICS {
        left -= all[kept].abs();
        kept += 1;
    }
    let error = left.max(0.0) / total;
    if error.is_nan() || error > LARGEST_ERROR {
        return Err(Error::NonFinite {
            what: format!(
                "a periodic kernel of more than {MOST_HARMONICS} harmonics (a smooth base and a longer lengthscale need fewer)"
            ),
            value: error,
        });
    }
    let slopes =
        by_param.iter().enumerate().map(|(param, own)| (param, harmonics(own)[..kept].to_vec()));
    Ok(Waves {
        input,
        terms: all[..kept].iter().map(|c| c.max(0.0)).enumerate().collect(),
        slopes: slopes.collect(),
        frequency: TAU / period,
        period: (count, period),
        error,
    })
}

impl StateSpace for Waves {
    fn size(&self) -> usize {
        self.blocks().iter().sum()
    }

    fn blocks(&self) -> Vec<usize> {
        self.terms.iter().map(|(j, _)| if *j == 0 { 1 } else { 2 }).collect()
    }

    fn stationary(&self, out: &mut [f64]) {
        let n = self.size();
        out.fill(0.0);
        for (at, j, c) in self.places() {
            out[at * (n + 1)] = c;
            if j > 0 {
                out[(at + 1) * (n + 1)] = c;
            }
        }
    }

    fn transition(&self, step: f64, out: &mut [f64]) {
        let n = self.size();
        out.fill(0.0);
        for (at, j, _) in self.places() {
            let (sin, cos) = (j as f64 * self.frequency * step).sin_cos();
            out[at * (n + 1)] = cos;
            if j > 0 {
                out[at * n + at + 1] = -sin;
                out[(at + 1) * n + at] = sin;
                out[(at + 1) * (n + 1)] = cos;
            }
        }
    }

    fn noise(&self, _: f64, out: &mut [f64]) {
        out.fill(0.0);
    }

    fn times(&self, all: &mut Vec<usize>) {
        all.push(self.input);
    }

    fn output(&self, _: RowRef<'_, f64>, out: &mut [f64]) {
        out.fill(0.0);
        self.places().for_each(|(at, _, _)| out[at] = 1.0);
    }

    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]) {
        let n = self.size();
        for (index, (at, j, _)) in self.places().enumerate() {
            let second = if j > 0 { bar[(at + 1) * (n + 1)] } else { 0.0 };
            let own = bar[at * (n + 1)] + second;
            self.slopes.iter().for_each(|(param, slopes)| params[*param] += own * slopes[index]);
        }
    }

    /// Uses that ∂A/∂ω turns by a quarter: columns (cos, sin) become (−sin, cos), times jΔ.
    fn pull_transition(&self, step: f64, a: &[f64], bar: &[f64], params: &mut [f64]) {
        let n = self.size();
        let mut along = 0.0;
        for (at, j, _) in self.places().filter(|(_, j, _)| *j > 0) {
            let (cos, sin) = (a[at * (n + 1)], a[(at + 1) * n + at]);
            let diagonal = bar[at * (n + 1)] + bar[(at + 1) * (n + 1)];
            let crossed = bar[(at + 1) * n + at] - bar[at * n + at + 1];
            along += j as f64 * step * (crossed * cos - diagonal * sin);
        }
        let (param, period) = self.period;
        params[param] -= along * self.frequency / period;
    }

    fn error(&self) -> f64 {
        self.error
    }

    fn remarks(&self, all: &mut Vec<String>) {
        if self.error > LACKING {
            all.push(format!(
                "`periodic` is cut at {MOST_HARMONICS} harmonics, which lack up to {:.0e} of its variance: it changes faster than that \
                 within a period; `exact` on fewer rows has all of it",
                self.error
            ));
        }
    }
}
