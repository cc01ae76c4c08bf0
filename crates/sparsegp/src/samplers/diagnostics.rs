//! Diagnostics of Markov chains: autocorrelation, potential scale reduction, effective sample size.
//!
//! Chains are slices of draws of one number, all of the same length n ≥ 4, one or more of them (m).
//!
//! | here | source |
//! | --- | --- |
//! | [`autocorrelation`], [`lag_one`] | |
//! | [`gelman_rubin`] R̂ | Gelman & Rubin 1992, without the correction for sampling variability |
//! | [`split_gelman_rubin`] | Gelman et al. 2013, §11.4 |
//! | [`effective_sample_size`] | Geyer 1992, §3.3; Vehtari et al. 2021, §3.2 |
//!
//! A number that does not vary within the chains has R̂ = ∞, or NaN if the chains agree, and a NaN
//! for an effective sample size.

use crate::error::{Error, Result};

/// ρ̂ₖ for k = 0, …, `lags`: Σ (xₜ − x̄)(xₜ₊ₖ − x̄) / Σ (xₜ − x̄)². NaN if the chain does not vary, 0 for
/// lags beyond its length.
pub fn autocorrelation(chain: &[f64], lags: usize) -> Vec<f64> {
    let mean = mean(chain);
    let variance = autocovariance(chain, mean, 0);
    (0..=lags).map(|lag| autocovariance(chain, mean, lag) / variance).collect()
}

/// Mean of ρ̂₁ over chains, which may be of different numbers (such as the values of a latent function).
/// NaN if one does not vary or there are none.
pub fn lag_one<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let each = chains.iter().map(|chain| autocorrelation(chain.as_ref(), 1)[1]);
    each.sum::<f64>() / chains.len() as f64
}

/// R̂ = √(V̂/W), V̂ = (n − 1)W/n + B/n, with W the mean of the variances within chains (divisor n − 1) and
/// B/n the variance of their means (divisor m − 1).
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

/// R̂ of the halves of the chains, of which there may be one; of an odd number of draws, the middle one is
/// left out.
///
/// # Errors
/// [`Error::Invalid`] for no chains, [`Error::Shape`] for lengths that differ or are below 8.
pub fn split_gelman_rubin<C: AsRef<[f64]>>(chains: &[C]) -> Result<f64> {
    length(chains, 8)?;
    let halves: Vec<&[f64]> = chains
        .iter()
        .map(AsRef::as_ref)
        .flat_map(|chain| {
            let half = chain.len() / 2;
            [&chain[..half], &chain[chain.len() - half..]]
        })
        .collect();
    gelman_rubin(&halves)
}

/// The number of independent draws that would estimate the mean as well as all chains together:
/// mn / max(2 Σ Γₖ − 1, 1/log₁₀ mn), Γₖ = ρ̂₂ₖ + ρ̂₂ₖ₊₁ up to the first negative one and not increasing,
/// ρ̂ₜ = 1 − (W − n γ̄ₜ/(n − 1))/V̂ with the mean autocovariance γ̄ₜ (divisor n), ρ̂₀ = 1.
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

/// The common length.
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

/// Σ (xₜ − x̄)(xₜ₊ₖ − x̄).
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
        let stuck = [vec![1.5; 9], vec![2.5; 9]];
        assert_eq!(gelman_rubin(&stuck).unwrap(), f64::INFINITY);
        assert_eq!(autocorrelation(&[1.0, 2.0, 4.0], 5)[3..], [0.0; 3]);
    }
}
