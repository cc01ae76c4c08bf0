//! The cubic traces of R-SVGP's bound: exactly, or by Hutchinson's estimate from random probes.
//!
//! For probes Ξ (M×p) of independent signs, E[ξᵀAξ] = tr A. The gradient is that of the estimate with the
//! probes held fixed, hence unbiased too.

use crate::linalg::Mat;
use crate::rng;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// How traces are had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traces {
    /// As they are: M³ operations.
    #[default]
    Exact,
    /// By so many probes; as they are where that is M or more.
    Probes(usize, Estimate),
}

/// What the probes are applied to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimate {
    /// tr(E(I + E − J)): its variance vanishes with E.
    #[default]
    LSpace,
    /// tr(K̃T) − tr(CKuu), the paper's.
    Plain,
}

impl Traces {
    /// Returns how many probes there are for a matrix of this size; none where traces are exact.
    pub fn probes(self, size: usize) -> usize {
        match self {
            Traces::Probes(count, _) if count < size => count,
            _ => 0,
        }
    }

    /// Returns what they are applied to.
    pub fn estimate(self) -> Estimate {
        match self {
            Traces::Exact => Estimate::LSpace,
            Traces::Probes(_, estimate) => estimate,
        }
    }
}

/// Draws independent signs, M×p, that depend only on the seed and the number of the evaluation.
pub fn probes(size: usize, count: usize, seed: u64, evaluation: u64, out: &mut Mat<f64>) {
    crate::linalg::sized(out, size, count);
    if count == 0 {
        return;
    }
    // the name `probes/…` without allocating: this is done in every step
    let mut name = *b"probes/....................";
    let mut rest = evaluation;
    for digit in name[7..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let name = std::str::from_utf8(&name).unwrap_or("probes");
    let mut generator = rng::stream(seed, name);
    for j in 0..count {
        for chunk in out.col_as_slice_mut(j).chunks_mut(64) {
            let mut bits = generator.next_u64();
            for v in chunk {
                *v = if bits & 1 == 0 { 1.0 } else { -1.0 };
                bits >>= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_signs_that_seed_and_number_decide() {
        let draw = |seed, evaluation| {
            let mut out = Mat::new();
            probes(130, 7, seed, evaluation, &mut out);
            out
        };
        let own = draw(3, 5);
        assert_eq!(own, draw(3, 5));
        assert!(own != draw(3, 6) && own != draw(4, 5));
        let mut sum = 0.0;
        for j in 0..7 {
            for i in 0..130 {
                assert_eq!(own[(i, j)].abs(), 1.0);
                sum += own[(i, j)];
            }
        }
        // 910 signs: five standard deviations
        assert!(f64::abs(sum) < 5.0 * 910_f64.sqrt());
    }

    #[test]
    fn as_many_probes_as_rows_are_none() {
        let traces = Traces::Probes(8, Estimate::LSpace);
        assert_eq!((traces.probes(8), traces.probes(9), Traces::Exact.probes(4)), (0, 8, 0));
    }
}
