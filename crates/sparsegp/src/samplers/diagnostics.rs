//! Diagnostics of Markov chains: autocorrelation, potential scale reduction, effective sample size.
//!
//! Chains are slices of draws of one number, all of the same length n ≥ 4, one or more of them (m).
//!
//! | here | source |
//! | --- | --- |
//! | [`autocorrelation`], [`lag_one`] | |
//! | [`gelman_rubin`] R̂ | Gelman & Rubin 1992, without the correction for sampling variability |
//! | [`split_gelman_rubin`] | Gelman et al. 2013, §11.4 |
//! | [`effective_sample_size`], of halves [`split_size`] | Geyer 1992, §3.3; Vehtari et al. 2021, §3.2 |
//! | [`rank_rhat`], [`bulk_size`], [`tail_size`] | Vehtari et al. 2021, §4 |
//!
//! A number that does not vary within the chains has R̂ = ∞, or NaN if the chains agree, and a NaN
//! for an effective sample size.

use crate::error::{Error, Result};
use crate::metrics::standard_normal_quantile;

/// Returns ρ̂ₖ for k = 0, …, `lags`: Σ (xₜ − x̄)(xₜ₊ₖ − x̄) / Σ (xₜ − x̄)². NaN if the chain does
/// not vary, 0 for lags beyond its length.
pub fn autocorrelation(chain: &[f64], lags: usize) -> Vec<f64> {
    let mean = mean(chain);
    let variance = autocovariance(chain, mean, 0);
    (0..=lags).map(|lag| autocovariance(chain, mean, lag) / variance).collect()
}

/// Returns the mean of ρ̂₁ over chains, which may be of different numbers (such as the values of a
/// latent function). NaN if one does not vary or there are none.
pub fn lag_one<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let each = chains.iter().map(|chain| autocorrelation(chain.as_ref(), 1)[1]);
    each.sum::<f64>() / chains.len() as f64
}

/// Returns R̂ = √(V̂/W), V̂ = (n − 1)W/n + B/n, with W the mean of the variances within chains
/// (divisor n − 1) and B/n the variance of their means (divisor m − 1).
///
/// # Errors
/// [`Error::Invalid`] for fewer than two chains, [`Error::Shape`] for lengths that differ or are below 4.
pub fn gelman_rubin<C: AsRef<[f64]>>(chains: &[C]) -> Result<f64> {
    if chains.len() < 2 {
        return Err(Error::Invalid(format!(
            "the scale reduction of {} chain(s) needs two or more; split one with split_gelman_rubin",
            chains.len()
        )));
    }
    let variances = Variances::of(chains)?;
    Ok((variances.total / variances.within).sqrt())
}

/// Returns R̂ of the halves of the chains, of which there may be one; of an odd number of draws,
/// the middle one is left out.
///
/// # Errors
/// [`Error::Invalid`] for no chains, [`Error::Shape`] for lengths that differ or are below 8.
pub fn split_gelman_rubin<C: AsRef<[f64]>>(chains: &[C]) -> Result<f64> {
    gelman_rubin(&halves(chains)?)
}

/// Returns the halves of chains, without the middle draw of an odd number.
fn halves<C: AsRef<[f64]>>(chains: &[C]) -> Result<Vec<&[f64]>> {
    length(chains, 8)?;
    let both = chains.iter().map(AsRef::as_ref).flat_map(|chain| {
        let half = chain.len() / 2;
        [&chain[..half], &chain[chain.len() - half..]]
    });
    Ok(both.collect())
}

/// Computes the rank-normalised R̂: the larger of the split R̂ of the normal scores of the draws and of those of their distances
/// from the median, which sees chains of different spreads too. It needs no finite variance.
///
/// # Errors
/// As for [`split_gelman_rubin`].
pub fn rank_rhat<C: AsRef<[f64]>>(chains: &[C]) -> Result<f64> {
    let halves = halves(chains)?;
    let location = gelman_rubin(&normal_scores(&halves))?;
    let median = quantile(&halves, 0.5);
    let of = |half: &&[f64]| half.iter().map(|v| (v - median).abs()).collect::<Vec<f64>>();
    let folded: Vec<Vec<f64>> = halves.iter().map(of).collect();
    let spread = gelman_rubin(&normal_scores(&folded))?;
    // NaN where one of them is, which `max` would hide
    Ok(if location.is_nan() || location > spread { location } else { spread })
}

/// Computes the effective sample size of the halves of the chains, which sees drifts that all chains share.
///
/// # Errors
/// As for [`split_gelman_rubin`].
pub fn split_size<C: AsRef<[f64]>>(chains: &[C]) -> Result<f64> {
    effective_sample_size(&halves(chains)?)
}

/// Computes the bulk effective sample size: that of the normal scores of the halves of the chains.
///
/// # Errors
/// As for [`split_gelman_rubin`].
pub fn bulk_size<C: AsRef<[f64]>>(chains: &[C]) -> Result<f64> {
    effective_sample_size(&normal_scores(&halves(chains)?))
}

/// Computes the tail effective sample size: the smaller one of those of the indicators x ≤ q at the quantiles q of 5 % and 95 %,
/// over the halves of the chains.
///
/// # Errors
/// As for [`split_gelman_rubin`].
pub fn tail_size<C: AsRef<[f64]>>(chains: &[C]) -> Result<f64> {
    let halves = halves(chains)?;
    let at = |level: f64| {
        let q = quantile(&halves, level);
        let of = |half: &&[f64]| half.iter().map(|v| f64::from(u8::from(*v <= q))).collect();
        let below: Vec<Vec<f64>> = halves.iter().map(of).collect();
        effective_sample_size(&below)
    };
    let (low, high) = (at(0.05)?, at(0.95)?);
    Ok(if low.is_nan() || low < high { low } else { high })
}

/// Returns Φ⁻¹((r − 3/8)/(S + 1/4)) of the ranks r = 1, …, S among all draws, the mean rank for
/// equal ones.
fn normal_scores<C: AsRef<[f64]>>(chains: &[C]) -> Vec<Vec<f64>> {
    let mut scores: Vec<Vec<f64>> = chains.iter().map(|c| vec![0.0; c.as_ref().len()]).collect();
    let each = chains.iter().enumerate();
    let mut all: Vec<(f64, usize, usize)> = each
        .flat_map(|(c, chain)| chain.as_ref().iter().enumerate().map(move |(t, v)| (*v, c, t)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut first = 0;
    for equal in all.chunk_by(|a, b| a.0 == b.0) {
        let rank = first as f64 + (equal.len() as f64 + 1.0) / 2.0;
        let score = standard_normal_quantile((rank - 0.375) / (all.len() as f64 + 0.25));
        equal.iter().for_each(|(_, c, t)| scores[*c][*t] = score);
        first += equal.len();
    }
    scores
}

/// Returns a quantile of all draws, linear between two of them.
fn quantile<C: AsRef<[f64]>>(chains: &[C], level: f64) -> f64 {
    let mut all: Vec<f64> = chains.iter().flat_map(|c| c.as_ref().iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let place = level * (all.len() - 1) as f64;
    let (below, above) = (all[place.floor() as usize], all[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// Returns the number of independent draws that would estimate the mean as well as all chains
/// together: mn / max(2 Σ Γₖ − 1, 1/log₁₀ mn), Γₖ = ρ̂₂ₖ + ρ̂₂ₖ₊₁ up to the first negative one and
/// not increasing, ρ̂ₜ = 1 − (W − n γ̄ₜ/(n − 1))/V̂ with the mean autocovariance γ̄ₜ (divisor n),
/// ρ̂₀ = 1.
///
/// More than mn is possible: chains whose draws alternate. The time is O(mn) for each lag that is
/// needed.
///
/// # Errors
/// [`Error::Invalid`] for no chains, [`Error::Shape`] for lengths that differ or are below 4.
pub fn effective_sample_size<C: AsRef<[f64]>>(chains: &[C]) -> Result<f64> {
    let n = length(chains, 4)?;
    let Variances { within, total, means } = Variances::of(chains)?;
    let correlation = |lag: usize| {
        if lag == 0 {
            return 1.0;
        }
        let each = chains.iter().zip(&means);
        let sum: f64 = each.map(|(chain, mean)| autocovariance(chain.as_ref(), *mean, lag)).sum();
        // γ̄ with divisor n, times n/(n − 1)
        1.0 - (within - sum / ((n - 1) * chains.len()) as f64) / total
    };
    let (mut sum, mut before) = (0.0, f64::INFINITY);
    for k in 0..n / 2 {
        let pair = correlation(2 * k) + correlation(2 * k + 1);
        if pair.is_nan() {
            return Ok(f64::NAN);
        }
        if pair < 0.0 {
            break;
        }
        before = pair.min(before);
        sum += before;
    }
    let draws = (n * chains.len()) as f64;
    Ok(draws / (2.0 * sum - 1.0).max(1.0 / draws.log10()))
}

/// Within and between chains.
struct Variances {
    /// W.
    within: f64,
    /// V̂.
    total: f64,
    means: Vec<f64>,
}

impl Variances {
    fn of<C: AsRef<[f64]>>(chains: &[C]) -> Result<Self> {
        let (n, m) = (length(chains, 4)? as f64, chains.len() as f64);
        let means: Vec<f64> = chains.iter().map(|chain| mean(chain.as_ref())).collect();
        let each = chains.iter().zip(&means);
        let within =
            each.map(|(chain, mean)| autocovariance(chain.as_ref(), *mean, 0)).sum::<f64>()
                / (m * (n - 1.0));
        let centre = mean(&means);
        let between =
            if chains.len() > 1 { autocovariance(&means, centre, 0) / (m - 1.0) } else { 0.0 };
        Ok(Self { within, total: (n - 1.0) / n * within + between, means })
    }
}

/// Returns the common length.
fn length<C: AsRef<[f64]>>(chains: &[C], least: usize) -> Result<usize> {
    let Some(first) = chains.first() else {
        return Err(Error::Invalid("diagnostics of no chains".into()));
    };
    let n = first.as_ref().len();
    for (i, chain) in chains.iter().enumerate() {
        let found = chain.as_ref().len();
        if found != n || found < least {
            return Err(Error::Shape {
                what: format!("chain {i}"),
                expected: format!("{} draws", n.max(least)),
                found: found.to_string(),
            });
        }
    }
    Ok(n)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns Σ (xₜ − x̄)(xₜ₊ₖ − x̄).
fn autocovariance(chain: &[f64], mean: f64, lag: usize) -> f64 {
    let later = chain.get(lag..).unwrap_or_default();
    chain.iter().zip(later).map(|(a, b)| (a - mean) * (b - mean)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;
    use rand_distr::{Distribution, StandardNormal};

    /// A stationary autoregressive chain x′ = φx + √(1 − φ²) ε about `centre`.
    fn autoregressive(phi: f64, centre: f64, n: usize, name: &str) -> Vec<f64> {
        let mut rng = stream(3, name);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let mut x = normal();
        (0..n)
            .map(|_| {
                x = phi * x + (1.0 - phi * phi).sqrt() * normal();
                centre + 2.5 * x
            })
            .collect()
    }

    #[test]
    fn autoregressive_chains_have_known_diagnostics() {
        let n = 20_000;
        for phi in [0.0, 0.6, 0.9, -0.4] {
            let chains: Vec<_> =
                (0..4).map(|i| autoregressive(phi, 7.0, n, &format!("{phi}/{i}"))).collect();
            let lag = autocorrelation(&chains[0], 3);
            for (k, own) in lag.iter().enumerate() {
                // standard errors of ρ̂ are below √((1 + φ²)/(1 − φ²)/n)
                assert!((own - f64::powi(phi, k as i32)).abs() < 0.05, "{phi} {k}: {own}");
            }
            assert!((lag_one(&chains) - phi).abs() < 0.015);
            assert!(gelman_rubin(&chains).unwrap() < 1.01);
            assert!(split_gelman_rubin(&chains).unwrap() < 1.01);
            let expected = 4.0 * n as f64 * (1.0 - phi) / (1.0 + phi);
            let own = effective_sample_size(&chains).unwrap();
            assert!((own / expected - 1.0).abs() < 0.1, "{phi}: {own} for {expected}");
        }
    }

    #[test]
    fn chains_apart_and_chains_that_drift_are_seen() {
        let apart: Vec<_> =
            (0..3).map(|i| autoregressive(0.3, 4.0 * f64::from(i), 500, "a")).collect();
        assert!(gelman_rubin(&apart).unwrap() > 1.5);
        assert!(effective_sample_size(&apart).unwrap() < 20.0);
        // the same drift in every chain: only the halves tell
        let drift: Vec<Vec<f64>> = (0..3)
            .map(|i| {
                let chain = autoregressive(0.3, 0.0, 501, &format!("d{i}"));
                chain.iter().enumerate().map(|(t, x)| x + 0.02 * t as f64).collect()
            })
            .collect();
        assert!(gelman_rubin(&drift).unwrap() < 1.05);
        assert!(split_gelman_rubin(&drift).unwrap() > 1.3);
        assert!(split_gelman_rubin(&drift[..1]).unwrap() > 1.3);
    }

    #[test]
    fn ranks_see_spreads_heavy_tails_and_what_arviz_sees() {
        // exponentials of waves: ArviZ 0.23 gives these numbers; its sums of autocorrelations end in another way
        let wave = |k: f64, t: f64| {
            (1.5 * ((1.7 * t * t + 0.9 * k).sin() + 0.6 * (0.35 * t + k).sin() + 0.2 * k)).exp()
        };
        let chain = |k: u32| (0..40).map(|t| wave(f64::from(k), f64::from(t))).collect();
        let waves: Vec<Vec<f64>> = (0..3).map(chain).collect();
        assert!((rank_rhat(&waves).unwrap() - 1.017_035_827_799_747).abs() < 1e-9);
        assert!((split_gelman_rubin(&waves).unwrap() - 1.002_885_205_696_971).abs() < 1e-12);
        for (own, theirs) in [
            (bulk_size(&waves).unwrap(), 51.102_848),
            (tail_size(&waves).unwrap(), 79.474_129),
            (split_size(&waves).unwrap(), 61.301_773),
        ] {
            assert!((own / theirs - 1.0).abs() < 0.04, "{own} for {theirs}");
        }
        // chains of one mean and different spreads: only the distances from the median tell
        let mut spreads: Vec<Vec<f64>> =
            (0..4).map(|i| autoregressive(0.2, 0.0, 1000, &format!("s{i}"))).collect();
        spreads[3].iter_mut().for_each(|x| *x *= 5.0);
        assert!(split_gelman_rubin(&spreads).unwrap() < 1.01);
        assert!(rank_rhat(&spreads).unwrap() > 1.05);
        // ranks are those of any increasing function of the draws
        let cubes: Vec<Vec<f64>> =
            waves.iter().map(|c| c.iter().map(|x| x.powi(3)).collect()).collect();
        assert_eq!(bulk_size(&cubes).unwrap(), bulk_size(&waves).unwrap());
        assert_eq!(tail_size(&cubes).unwrap(), tail_size(&waves).unwrap());
        // equal draws have equal ranks
        let (first, again) = (vec![1.0, 2.0, 2.0, 3.0], vec![2.0, 1.0, 3.0, 2.0]);
        let scores = normal_scores(&[&first, &again]);
        assert_eq!(scores[0][1], scores[1][3]);
        assert!(scores[0][1].abs() < 1e-12 && (scores[0][0] + scores[0][3]).abs() < 1e-9);
    }

    #[test]
    fn bad_chains_are_errors_and_constant_ones_have_no_numbers() {
        let none: [Vec<f64>; 0] = [];
        assert!(effective_sample_size(&none).unwrap_err().to_string().contains("no chains"));
        let uneven = [vec![0.0, 1.0, 2.0, 3.0], vec![0.0; 5]];
        let message = gelman_rubin(&uneven).unwrap_err().to_string();
        assert!(message.contains("chain 1") && message.contains('5'), "{message}");
        assert!(gelman_rubin(&uneven[..1]).unwrap_err().to_string().contains("split"));
        let constant = [vec![1.5; 9], vec![1.5; 9]];
        assert!(gelman_rubin(&constant).unwrap().is_nan());
        assert!(effective_sample_size(&constant).unwrap().is_nan());
        for own in [rank_rhat(&constant), bulk_size(&constant), tail_size(&constant)] {
            assert!(own.unwrap().is_nan());
        }
        for own in [rank_rhat(&uneven), bulk_size(&uneven), tail_size(&uneven)] {
            assert!(own.unwrap_err().to_string().contains("chain"));
        }
        let stuck = [vec![1.5; 9], vec![2.5; 9]];
        assert_eq!(gelman_rubin(&stuck).unwrap(), f64::INFINITY);
        assert_eq!(autocorrelation(&[1.0, 2.0, 4.0], 5)[3..], [0.0; 3]);
    }
}
