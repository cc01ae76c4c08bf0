//! Requests: what the shards are to sum up, in bytes.

use crate::engine::description::{Description, stays};
use crate::engine::{Basis, CholeskyBasis, Job, Process, Spread, Through, Want};
use crate::error::{Error, Result};
use crate::kernels::inducing::{AtPoints, Inducing};
use crate::kernels::{self, Inputs, Kernel, points_fit};
use crate::linalg::{Cholesky, Mat, MatRef, Precision, column, mirror_lower};
use crate::means::{self, Mean};
use serde::{Deserialize, Serialize};

/// What every request begins with; the release of the program follows, as bits are those of one release.
const MAGIC: &[u8] = b"sparsegp request\n";
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// A matrix, column after column.
#[derive(Serialize, Deserialize)]
pub struct Full {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Full {
    fn of(a: MatRef<'_, f64>) -> Self {
        let values = (0..a.ncols()).flat_map(|j| column(a, j)).copied().collect();
        Self { rows: a.nrows(), columns: a.ncols(), values }
    }

    fn read(&self) -> Result<Mat<f64>> {
        if self.rows.checked_mul(self.columns) != Some(self.values.len()) {
            return Err(damaged());
        }
        Ok(Mat::from_fn(self.rows, self.columns, |i, j| self.values[j * self.rows + i]))
    }
}

/// The lower triangle of a square matrix.
#[derive(Serialize, Deserialize)]
pub struct Lower {
    size: usize,
    values: Vec<f64>,
}

impl Lower {
    fn of(a: MatRef<'_, f64>) -> Self {
        let values = (0..a.ncols()).flat_map(|j| &column(a, j)[j..]).copied().collect();
        Self { size: a.nrows(), values }
    }

    fn read(&self) -> Result<Mat<f64>> {
        let m = self.size;
        if m.checked_mul(m + 1).map(|twice| twice / 2) != Some(self.values.len()) {
            return Err(damaged());
        }
        let mut a = Mat::zeros(m, m);
        let mut rest = &self.values[..];
        for j in 0..m {
            let (own, tail) = rest.split_at(m - j);
            a.col_as_slice_mut(j)[j..].copy_from_slice(own);
            rest = tail;
        }
        Ok(a)
    }

    fn symmetric(&self) -> Result<Mat<f64>> {
        let mut a = self.read()?;
        mirror_lower(a.as_mut());
        Ok(a)
    }
}

/// Kernel, inducing inputs and the factor of Kuu.
#[derive(Serialize, Deserialize)]
pub struct SentFeatures {
    kernel: String,
    z: Full,
    factor: Lower,
}

impl SentFeatures {
    fn of(inducing: &dyn Inducing, basis: &dyn Basis) -> Result<Self> {
        let Some(AtPoints { kernel, z }) = inducing.at_points() else {
            return stays("their inducing variables are not values at points");
        };
        let json = kernel.to_json().to_string();
        // a kernel that only this program knows is found out here, not by every worker
        kernels::parse(&json, Inputs::unnamed(inducing.inputs())).map_err(|error| {
            Error::Invalid(format!(
                "the rows are in other processes, which do not know this kernel: {error}"
            ))
        })?;
        let Some(factor) = basis.lower_factor() else {
            return stays(
                "`lsvgp` and `rsvgp` on all rows at once are not for them: train by minibatches, or take `svgp`",
            );
        };
        Ok(Self { kernel: json, z: Full::of(z), factor: Lower::of(factor) })
    }

    /// Reads the kernel with the inducing inputs and the basis, for rows of D inputs.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other rows.
    pub fn read(&self, inputs: usize) -> Result<Features> {
        let z = self.z.read()?;
        let kernel = kernels::parse(&self.kernel, Inputs::unnamed(inputs))?;
        let (m, columns) = (z.nrows(), z.ncols());
        fits(points_fit(&*kernel, columns, inputs) && m > 0 && self.factor.size == m)?;
        let basis = CholeskyBasis::of_factor(Cholesky::of_factor(self.factor.read()?));
        Ok(Features { kernel, z, basis })
    }
}

impl Features {
    /// Returns the inducing variables.
    pub fn inducing(&self) -> AtPoints<'_> {
        AtPoints { kernel: &*self.kernel, z: self.z.as_ref() }
    }
}

/// What features are made of.
pub struct Features {
    /// Covariance function.
    pub kernel: Box<dyn Kernel>,
    /// Inducing inputs.
    pub z: Mat<f64>,
    /// From inducing covariances to features.
    pub basis: CholeskyBasis,
}

/// A mean function, with its numbers of inputs and outputs.
#[derive(Serialize, Deserialize)]
pub struct SentMean(String, usize, usize);

impl SentMean {
    fn of(mean: &dyn Mean, inputs: usize, outputs: usize) -> Self {
        Self(means::to_json(mean).to_string(), inputs, outputs)
    }

    /// Reads the mean function of D inputs and so many outputs.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other rows.
    pub fn read(&self, inputs: usize, outputs: usize) -> Result<Box<dyn Mean>> {
        fits((self.1, self.2) == (inputs, outputs))?;
        let json = serde_json::from_str(&self.0).map_err(|_| damaged())?;
        means::from_json(&json, self.1, self.2)
    }
}

/// Where the variances s come from.
#[derive(Serialize, Deserialize)]
pub enum SentSpread {
    /// [`Spread::Roots`].
    Roots(Vec<Lower>),
    /// [`Spread::Through`].
    Through(Full, Vec<Full>),
    /// [`Spread::Shared`].
    Shared(Option<Lower>),
}

/// The matrices of a spread.
pub enum OwnSpread {
    /// [`Spread::Roots`].
    Roots(Vec<Mat<f64>>),
    /// [`Spread::Through`].
    Through(Mat<f64>, Vec<Mat<f64>>),
    /// [`Spread::Shared`].
    Shared(Option<Mat<f64>>),
}

impl OwnSpread {
    /// Returns it as an engine takes it.
    pub fn spread(&self) -> Spread<'_> {
        match self {
            Self::Roots(roots) => Spread::Roots(roots),
            Self::Through(weights, forms) => {
                Spread::Through(Through { weights: weights.as_ref(), forms })
            }
            Self::Shared(covariance) => Spread::Shared(covariance.as_ref().map(Mat::as_ref)),
        }
    }
}

/// Latent functions with their q.
#[derive(Serialize, Deserialize)]
pub struct SentProcess {
    features: SentFeatures,
    mean: Full,
    spread: SentSpread,
}

impl SentProcess {
    fn of(process: &Process<'_>) -> Result<Self> {
        let all = |roots: &[Mat<f64>]| roots.iter().map(|r| Lower::of(r.as_ref())).collect();
        let spread = match process.spread {
            Spread::Roots(roots) => SentSpread::Roots(all(roots)),
            Spread::Through(own) => SentSpread::Through(
                Full::of(own.weights),
                own.forms.iter().map(|form| Full::of(form.as_ref())).collect(),
            ),
            Spread::Shared(covariance) => SentSpread::Shared(covariance.map(Lower::of)),
            Spread::Products(_) => {
                return stays(
                    "`rsvgp` on all rows at once is not for them: train by minibatches, or take `svgp`",
                );
            }
        };
        let features = SentFeatures::of(process.inducing, process.basis)?;
        Ok(Self { features, mean: Full::of(process.mean), spread })
    }

    /// Returns the number of latent functions.
    pub fn latents(&self) -> usize {
        self.mean.columns
    }

    /// Reads features, means and spread, for rows of D inputs.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other rows, and matrices of other sizes.
    pub fn read(&self, inputs: usize) -> Result<(Features, Mat<f64>, OwnSpread)> {
        let (m, l) = (self.mean.rows, self.mean.columns);
        let square = |own: &Full| (own.rows, own.columns) == (m, m);
        fits(match &self.spread {
            SentSpread::Roots(roots) => {
                (roots.is_empty() || roots.len() == l) && roots.iter().all(|own| own.size == m)
            }
            SentSpread::Through(weights, forms) => {
                (weights.rows, weights.columns) == (m, l)
                    && forms.len() == l
                    && forms.iter().all(square)
            }
            SentSpread::Shared(own) => own.as_ref().is_none_or(|own| own.size == m),
        })?;
        let spread = match &self.spread {
            SentSpread::Roots(roots) => {
                OwnSpread::Roots(roots.iter().map(Lower::read).collect::<Result<_>>()?)
            }
            SentSpread::Through(weights, forms) => OwnSpread::Through(
                weights.read()?,
                forms.iter().map(Full::read).collect::<Result<_>>()?,
            ),
            SentSpread::Shared(covariance) => {
                OwnSpread::Shared(covariance.as_ref().map(Lower::symmetric).transpose()?)
            }
        };
        let features = self.features.read(inputs)?;
        fits(features.z.nrows() == m)?;
        Ok((features, self.mean.read()?, spread))
    }
}

/// What [`crate::engine::Engine::pass`] is given.
#[derive(Serialize, Deserialize)]
pub struct SentJob {
    /// What products of rows are made in.
    pub precision: Precision,
    /// Latent functions.
    pub processes: Vec<SentProcess>,
    /// Mean function.
    pub mean: SentMean,
    /// The [`crate::engine::Pointwise`].
    pub pointwise: Description,
    /// Factor of the sums.
    pub scale: f64,
    /// What is asked for.
    pub want: Want,
}

impl SentJob {
    pub(super) fn of(precision: Precision, job: &Job<'_>, inputs: usize) -> Result<Self> {
        let outputs = job.processes.iter().map(|p| p.mean.ncols()).sum();
        Ok(Self {
            precision,
            processes: job.processes.iter().map(SentProcess::of).collect::<Result<_>>()?,
            mean: SentMean::of(job.mean, inputs, outputs),
            pointwise: job.pointwise.describe()?,
            scale: job.scale,
            want: job.want,
        })
    }
}

/// What shards are to do.
#[derive(Serialize, Deserialize)]
pub enum Work {
    /// [`crate::engine::Engine::pass`].
    Pass(SentJob),
    /// [`super::super::sweep`].
    Sweep(Description),
}

/// Refuses what is not of these rows.
fn fits(holds: bool) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Invalid("the request is of other rows".into())) }
}

fn damaged() -> Error {
    Error::Invalid("the request is damaged".into())
}

impl Work {
    /// Returns the request in bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`], which is a bug.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(RELEASE.len() as u8);
        bytes.extend(RELEASE.as_bytes());
        postcard::to_extend(self, bytes)
            .map_err(|e| Error::Invalid(format!("the request cannot be written: {e}")))
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`Error::Invalid`] for one of another release, and for other bytes.
    pub fn from_bytes(request: &[u8]) -> Result<Self> {
        let rest = request.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (&length, rest) = rest.split_first().ok_or_else(damaged)?;
        let (release, rest) = rest.split_at_checked(length.into()).ok_or_else(damaged)?;
        if release != RELEASE.as_bytes() {
            return Err(Error::Invalid(format!(
                "this worker has sparsegp {RELEASE}, and the driver {}: install the same release everywhere",
                String::from_utf8_lossy(release)
            )));
        }
        postcard::from_bytes(rest).map_err(|_| damaged())
    }
}
