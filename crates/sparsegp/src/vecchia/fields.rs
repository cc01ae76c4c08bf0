//! What functions at the rows, given normal factors, say of other places.

use super::nearest::Link;
use super::{Coupled, Nearest, Sited};
use crate::error::Result;
use crate::linalg::{Mat, MatRef};
use rayon::prelude::*;
use std::sync::Arc;

/// Draws and places whose vectors are solved for at once.
const TOGETHER: usize = 64;
/// Places whose weights are kept at once.
const PLACES: usize = 8192;

/// Functions with the same prior, each given its factors.
#[derive(Debug)]
pub struct Fields {
    nearest: Nearest,
    coupled: Arc<Coupled>,
    all: Vec<Sited>,
}

impl Fields {
    pub(super) fn new(nearest: Nearest, coupled: Arc<Coupled>, all: Vec<Sited>) -> Self {
        Self { nearest, coupled, all }
    }

    /// Returns means, less the mean function, and variances at places (B×D), B×P each.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`].
    pub fn marginals(&self, x: MatRef<'_, f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let (n, p) = (x.nrows(), self.all.len());
        let (mut means, mut variances) = (Mat::zeros(n, p), Mat::zeros(n, p));
        for start in (0..n).step_by(PLACES) {
            let links = self.nearest.links(x.subrows(start, PLACES.min(n - start)))?;
            let of = |work: &mut Mat<f64>, part: &[Link]| -> Result<Vec<Vec<f64>>> {
                let rank = |(row, b): &(u32, f64)| (self.coupled.rank(*row), *b);
                let vector = |link: &Link| link.rows.iter().map(rank).collect();
                let vectors: Vec<Vec<(u32, f64)>> = part.iter().map(vector).collect();
                self.all.iter().map(|own| own.law.forms(&vectors, work)).collect()
            };
            let forms = links.par_chunks(TOGETHER).map_init(Mat::new, of);
            let forms = forms.collect::<Result<Vec<_>>>()?;
            for (i, link) in links.iter().enumerate() {
                for t in 0..p {
                    means[(start + i, t)] = link.fixed[t];
                    variances[(start + i, t)] =
                        link.variance + forms[i / TOGETHER][t][i % TOGETHER];
                }
            }
        }
        Ok((means, variances))
    }

    /// Returns means (B×P), and the covariance (B×B) of every function.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`].
    pub fn joint(&self, x: MatRef<'_, f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let joint = self.nearest.joint(x)?;
        let given = joint.covariance();
        // what multiplies the function at the rows
        let mut weights = Mat::<f64>::zeros(self.coupled.rows(), x.nrows());
        for link in joint.links() {
            let mut own = vec![0.0; self.coupled.rows()];
            for (row, b) in &link.rows {
                own[self.coupled.rank(*row) as usize] += b;
            }
            for (earlier, b) in &link.earlier {
                let from = weights.col_as_slice(*earlier);
                own.iter_mut().zip(from).for_each(|(own, from)| *own += b * from);
            }
            weights.col_as_slice_mut(link.place).copy_from_slice(&own);
        }
        let one = |own: &Sited| Ok(&given + own.law.covariance(weights.as_ref())?);
        Ok((joint.mean(), self.all.iter().map(one).collect::<Result<_>>()?))
    }

    /// Returns joint draws, less the mean function, of every function in turn, B×S; `normal` gives a matrix of normal numbers of a shape.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`].
    pub fn draws(
        &self,
        x: MatRef<'_, f64>,
        samples: usize,
        normal: &mut dyn FnMut(usize, usize) -> Mat<f64>,
    ) -> Result<Vec<Mat<f64>>> {
        let joint = self.nearest.joint(x)?;
        let mut one = |own: &Sited| -> Result<Mat<f64>> {
            let mut out = Mat::zeros(x.nrows(), samples);
            for first in (0..samples).step_by(TOGETHER) {
                let count = TOGETHER.min(samples - first);
                let apart = own.law.drawn(count, normal)?;
                let given = normal(x.nrows(), count);
                for s in 0..count {
                    let (apart, out) = (apart.col_as_slice(s), out.col_as_slice_mut(first + s));
                    let at =
                        |row: u32| own.mean[row as usize] + apart[self.coupled.rank(row) as usize];
                    for link in joint.links() {
                        let by_rows: f64 = link.rows.iter().map(|(row, b)| b * at(*row)).sum();
                        let by_places: f64 = link.earlier.iter().map(|(e, b)| b * out[*e]).sum();
                        let own = link.variance.sqrt() * given[(link.place, s)];
                        out[link.place] = by_rows + by_places + own;
                    }
                }
            }
            Ok(out)
        };
        self.all.iter().map(&mut one).collect()
    }
}
