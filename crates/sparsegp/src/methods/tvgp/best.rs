//! The best sites of all rows at any hyperparameters.

use super::{Sited, Tvgp, covariances, sites};
use crate::data::InMemory;
use crate::error::Result;
use crate::kernels::{Tape, of_latent};
use crate::linalg::Mat;
use crate::markov::Marginals;
use crate::methods::sites::{Factors, Prior, Search, Sites, best};
use crate::model::Model;
use crate::variational::Variational;

/// Rows with their covariances, in full.
struct Dense<'a> {
    rows: &'a InMemory,
    mean: Mat<f64>,
    covariances: Vec<(Mat<f64>, Mat<f64>, Tape)>,
}

impl Prior for Dense<'_> {
    fn rows(&self) -> &InMemory {
        self.rows
    }

    fn mean(&self) -> &Mat<f64> {
        &self.mean
    }

    fn alike(&self) -> bool {
        self.covariances.len() == 1
    }

    fn marginals(&self, latent: usize, own: &Factors) -> Result<Marginals> {
        let (_, k, _) = of_latent(&self.covariances, latent);
        let sited = Sited::new(k, &own.first(), &own.second())?;
        let rest = sited.rest(k);
        let log_det = sited.factor.log_det();
        Ok(Marginals { mean: sited.m, variance: sited.v, alpha: sited.d, rest, log_det })
    }
}

impl Tvgp {
    /// Gives a model the best sites for its hyperparameters, to be found from those of `start`, until a step promises no more than
    /// `ended` nats or that many steps are taken, and returns the bound there. Precisions are not below the least of q ([`Variational::floor`]).
    ///
    /// # Errors
    /// As for [`crate::methods::Method::evaluate`].
    pub(crate) fn settle(
        &self,
        model: &mut Model,
        rows: &InMemory,
        start: &Variational,
        (ended, steps): (f64, usize),
    ) -> Result<f64> {
        self.bound.check(&*model.likelihood)?;
        self.check_mixing(model)?;
        let q = sites(model)?;
        let (n, latents) = (q.points(), q.latents());
        let matrix = |values: &[f64]| Mat::from_fn(n, latents, |i, l| values[l * n + i]);
        let first =
            Sites { first: matrix(start.first.value()), second: matrix(start.second.value()) };
        let start = Some(first);
        let search = Search { start, least: vec![q.floor], ended, steps, ..Search::default() };
        let mut mean = Mat::zeros(n, latents);
        model.mean.evaluate(rows.x.as_ref(), mean.as_mut());
        let prior = Dense { rows, mean, covariances: covariances(model, &rows.x, false) };
        let found = best(&prior, model, self.bound, &search, &|| Ok(()))?;
        if let Some(q) = &mut model.q {
            for (to, from) in
                [(&mut q.first, &found.sites.first), (&mut q.second, &found.sites.second)]
            {
                for (l, own) in to.value_mut().chunks_mut(n).enumerate() {
                    own.copy_from_slice(from.col_as_slice(l));
                }
            }
        }
        Ok(found.value)
    }
}
