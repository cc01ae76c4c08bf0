//! Methods that flows are compared with (Galy-Fajou, Perrone & Opper 2021, §4), one a file. All gradients are of the
//! free energy.
//!
//! | method | q | source |
//! | --- | --- | --- |
//! | [`Dsvi`] | μ and a triangular or diagonal root | Titsias & Lázaro-Gredilla 2014 |
//! | [`Fcs`] | μ and BBᵀ + diag(d²) | Ong, Nott & Smith 2018 |
//! | [`Iblr`] | μ and a precision, whole or diagonal | Lin, Schmidt & Khan 2020 |
//! | [`Svgd`] | particles, with no Gaussian behind them | Liu & Wang 2016 |
//! | [`Swag`] | moments of the path of stochastic gradients | Maddox et al. 2019 |
//! | [`Elrgvi`] | μ, variances and a few directions of every layer | Tomczak, Swaroop & Turner 2020 |
//! | [`Laplace`] | the mode and the Hessian there | MacKay 1992 |

mod dsvi;
mod elrgvi;
mod fcs;
mod iblr;
mod laplace;
mod svgd;
mod swag;

pub use dsvi::{Dsvi, DsviGradient, Root};
pub use elrgvi::{Elrgvi, ElrgviLayer};
pub use fcs::{Entropy, Fcs, FcsGradient};
pub use iblr::{Curvature, Iblr, IblrOptions, Precision};
pub use laplace::{Laplace, Map, MapOptions, map};
pub use svgd::{Svgd, SvgdKernel, SvgdOptions};
pub use swag::{Swag, SwagMoments, SwagOptions};

use super::optimiser::{Rule, check_rates, check_schedule};
use crate::error::{Error, Result};
use crate::optim::Schedule;

/// How methods descend by gradients at drawn positions.
#[derive(Clone, Debug, PartialEq)]
pub struct DescentOptions {
    /// η.
    pub rate: f64,
    /// How gradients become moves, with a scale for every parameter.
    pub rule: Rule,
    /// How the rate changes.
    pub schedule: Schedule,
    /// S, positions of every step.
    pub draws: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for DescentOptions {
    fn default() -> Self {
        Self {
            rate: 0.01,
            rule: Rule::rms_prop(),
            schedule: Schedule::Constant,
            draws: 10,
            seed: 0,
        }
    }
}

impl DescentOptions {
    fn check(&self) -> Result<()> {
        check_rates(&[self.rate])?;
        self.rule.check()?;
        check_schedule(self.schedule)?;
        match self.draws {
            0 => Err(Error::Invalid("a step takes one draw or more, not 0".into())),
            _ => Ok(()),
        }
    }
}

/// Returns the largest of 1, ½, ¼, … by which moves keep positive numbers above 0; 0 if there is
/// none.
fn kept_positive<'a>(pairs: impl Iterator<Item = (&'a f64, &'a f64)> + Clone) -> f64 {
    let mut scale = 1.0;
    for _ in 0..60 {
        if pairs.clone().all(|(value, by)| value + scale * by > 0.0) {
            return scale;
        }
        // NaN is for the guard to find
        if pairs.clone().any(|(value, by)| (value + by).is_nan()) {
            return 1.0;
        }
        scale *= 0.5;
    }
    0.0
}
