//! Room for new inducing points, which those give up that no row has come near for long.

use super::{State, UpdateOptions};
use crate::error::Result;
use crate::fit::Fitted;
use crate::fit::covering::Variances;
use crate::inducing::select::oips::{accept, normalised};
use crate::kernels::{self, Kernel, covariances};
use crate::linalg::{Cholesky, Jitter, Mat, MatRef, column};
use crate::online::{Moments, Prior, Site};

/// The annotation that keeps when points were visited.
const VISITED: &str = "visited";
/// Prior correlation from which on a row is near a point.
const NEAR: f64 = 0.5;
/// Rows for each point that come without being near it before it may be given up.
const LONG: usize = 2;

/// Returns when a row last came near every point, by the rows taken up; the present where that is
/// not known.
pub(super) fn visited(fitted: &Fitted, points: usize) -> Vec<usize> {
    let kept = fitted.annotations.get(VISITED).and_then(|text| serde_json::from_str(text).ok());
    let kept: Option<Vec<usize>> = kept;
    kept.filter(|own| own.len() == points).unwrap_or_else(|| vec![fitted.rows; points])
}

/// Notes it in the model.
pub(super) fn keep(visited: &[usize], fitted: &mut Fitted) {
    let text = serde_json::to_string(visited).unwrap_or_default();
    fitted.annotations.insert(VISITED.into(), text);
}

impl State<'_> {
    /// Adds rows that no point is near to, in the place of points that none has come near for long if need be; how many found
    /// no room.
    pub(super) fn grow(&mut self, x: MatRef<f64>, options: &UpdateOptions) -> Result<usize> {
        if options.correlation == 0.0 {
            return Ok(0);
        }
        let now = self.taken + x.nrows();
        self.visit(x, now);
        let (mut chosen, mut beyond) = self.apart(x, options.correlation)?;
        if beyond > 0 {
            let old = |j: &usize| self.visited[*j] + LONG * self.z.nrows() <= self.taken;
            let mut behind: Vec<usize> = (0..self.z.nrows()).filter(old).collect();
            behind.sort_by_key(|j| self.visited[*j]);
            behind.truncate(beyond);
            if !behind.is_empty() {
                self.give_up(&behind)?;
                (chosen, beyond) = self.apart(x, options.correlation)?;
            }
        }
        if !chosen.is_empty() {
            let m = self.z.nrows();
            self.z = Mat::from_fn(m + chosen.len(), x.ncols(), |i, q| match i.checked_sub(m) {
                None => self.z[(i, q)],
                Some(new) => x[(chosen[new], q)],
            });
            self.visited.resize(m + chosen.len(), now);
            self.added += chosen.len();
        }
        Ok(beyond)
    }

    /// Returns rows that are apart from all points, as far as there is room, and how many more
    /// there are.
    fn apart(&self, x: MatRef<f64>, correlation: f64) -> Result<(Vec<usize>, usize)> {
        let kernels = &self.model.kernels;
        let room = self.most - self.z.nrows();
        let of = |kernel: &dyn Kernel| Variances::new(kernel, self.z.as_ref(), x);
        let known: Vec<Variances> = kernels.iter().map(|kernel| of(&**kernel)).collect();
        let mut nearest: Vec<Vec<f64>> = kernels
            .iter()
            .zip(&known)
            .map(|(kernel, own)| own.nearest(&**kernel, x, self.z.as_ref()))
            .collect();
        let mut correlations = |i: usize| {
            let each = kernels.iter().zip(&known);
            Ok(each.map(|(kernel, own)| own.with_row(&**kernel, x, i)).collect())
        };
        accept(&mut nearest, correlation, room, &mut correlations)
    }

    /// Notes which points rows are near to.
    fn visit(&mut self, x: MatRef<f64>, now: usize) {
        for kernel in &self.model.kernels {
            let k = covariances(&**kernel, x, Some(self.z.as_ref()));
            let variance = |row: MatRef<f64>| covariances(&**kernel, row, Some(row))[(0, 0)];
            let rows: Vec<f64> = (0..x.nrows()).map(|i| variance(x.subrows(i, 1))).collect();
            for j in 0..self.z.nrows() {
                let own = variance(self.z.as_ref().subrows(j, 1));
                let c = normalised(column(k.as_ref(), j), &rows, own);
                if c.into_iter().any(|c| c >= NEAR) {
                    self.visited[j] = now;
                }
            }
        }
    }

    /// Leaves out points: what rows said of the values at the others is the marginal of what they said of all.
    fn give_up(&mut self, gone: &[usize]) -> Result<()> {
        let stay: Vec<usize> = (0..self.z.nrows()).filter(|j| !gone.contains(j)).collect();
        let (model, z) = (&self.model, &self.z);
        let kept = Mat::from_fn(stay.len(), z.ncols(), |i, q| z[(stay[i], q)]);
        let of = |(l, site): (usize, &Site)| {
            let kernel = model.kernel_of(l);
            let prior = Prior::new(kernel, z.as_ref(), model.jitter, Some(site))?;
            let none = Mat::zeros(z.nrows(), 0);
            let q = prior.posterior(none.as_ref(), &[], &[])?.q;
            let (mean, covariance) = q.of_values(&prior.factor);
            let mean: Vec<f64> = stay.iter().map(|j| mean[*j]).collect();
            let covariance =
                Mat::from_fn(stay.len(), stay.len(), |i, j| covariance[(stay[i], stay[j])]);
            let factor = kernels::factor(kernel, kept.as_ref(), model.jitter, "Kuu")?;
            let own = Moments::whitened(&factor, &mean, covariance.as_ref())?;
            let root = Cholesky::new(own.covariance.as_ref(), Jitter::Absolute(0.0), "S")?;
            Site::of_posterior(kept.as_ref(), &factor, &own.mean, root.l.as_ref())
        };
        self.sites = self.sites.iter().enumerate().map(of).collect::<Result<_>>()?;
        self.visited = stay.iter().map(|j| self.visited[*j]).collect();
        self.given_up += gone.len();
        self.z = kept;
        Ok(())
    }
}
