//! Predictions from the rows of a series, all of them or the last ones after others that have left.

use super::{Factors, Markov, Series, search, sites, space};
use crate::data::InMemory;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::kernels::of_latent;
use crate::linalg::{Mat, MatRef};
use crate::markov::{self, Past, Places, Smoothed};
use crate::model::{Conditional, Left, Model, Moments, RowNoise};
use std::sync::Arc;

/// Predictions from rows in the order of their places: of all latent functions at once, or of one after the other.
#[derive(Debug)]
pub(super) struct Known {
    /// The method, by which they are found again.
    method: Markov,
    all: Vec<Smoothed>,
    /// Positions of the rows as they came, in the order of their places.
    order: Vec<usize>,
    objective: f64,
    /// What rows say that have left.
    past: Option<Past>,
}

impl Known {
    /// Conditions on rows, after others that have left.
    ///
    /// # Errors
    /// [`Error::Invalid`] for rows before those that have left; what the passes and `go_on` give.
    pub(super) fn new(
        method: Markov,
        model: &Model,
        rows: &InMemory,
        past: Option<Past>,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let mut series = Series::new(model, rows, past.as_ref())?;
        let (factors, mut objective) = match model.likelihood.as_gaussian() {
            Some(own) => {
                let noise = RowNoise::new(own.variance.scalar(), &series.rows);
                let all = series.gaussian(&noise);
                let beside = beside_densities(&all, &noise);
                (all, beside)
            }
            None => {
                let before = series.centre()?;
                let found =
                    sites::best(&series, model, method.bound, &search(method.bound), go_on)?;
                let (mut factors, value) = (series.sited(found.factors), found.value);
                if let Some((means, starts)) = before {
                    for own in &mut factors {
                        let l = own.first;
                        (0..own.noise.len()).for_each(|i| own.y[(i, 0)] += means[(i, l)]);
                        own.start = starts.get(l).cloned();
                    }
                }
                (factors, value)
            }
        };
        let mut all = Vec::new();
        for own in &factors {
            let space = space(&**of_latent(&model.kernels, own.first))?;
            all.push(Smoothed::new(space, series.seen(own), go_on)?);
        }
        if model.likelihood.as_gaussian().is_some() {
            let known = Self::of(method, all, objective, series.order.len(), past);
            return Ok(Self { order: series.order, ..known });
        }
        objective += past.as_ref().map_or(0.0, |past| past.objective);
        Ok(Self { method, all, order: series.order, objective, past })
    }

    /// Creates what is known of Gaussian factors of rows in the order of their places, with what is
    /// beside their densities.
    fn of(
        method: Markov,
        all: Vec<Smoothed>,
        beside: f64,
        rows: usize,
        past: Option<Past>,
    ) -> Self {
        let densities: f64 = all.iter().map(Smoothed::log_evidence).sum();
        let objective = beside + densities + past.as_ref().map_or(0.0, |past| past.objective);
        Self { method, all, order: (0..rows).collect(), objective, past }
    }

    /// Returns the input that is the time.
    fn time(&self) -> usize {
        self.all[0].time()
    }
}

/// Returns what weights add to the log densities of Gaussian factors.
fn beside_densities(all: &[Factors], noise: &RowNoise) -> f64 {
    let of =
        |own: &Factors| own.y.ncols() as f64 * noise.factors_where(|i| own.noise[i].is_finite()).0;
    all.iter().map(of).sum()
}

/// Returns the moments of functions side by side.
fn beside(all: Vec<markov::Moments>) -> Moments {
    let (rows, latents) =
        (all[0].0.nrows(), all.iter().map(|(mean, _)| mean.ncols()).sum::<usize>());
    let (mut means, mut variances) = (Mat::zeros(rows, latents), Mat::zeros(rows, latents));
    let mut first = 0;
    for (mean, variance) in all {
        for l in 0..mean.ncols() {
            variances.col_as_slice_mut(first + l).copy_from_slice(&variance);
        }
        means.as_mut().subcols_mut(first, mean.ncols()).copy_from(&mean);
        first += mean.ncols();
    }
    (means, variances)
}

impl Conditional for Known {
    fn moments(&self, x: MatRef<f64>) -> Result<Moments> {
        Ok(beside(self.all.iter().map(|own| own.moments(x)).collect::<Result<_>>()?))
    }

    fn joint(&self, x: MatRef<f64>) -> Result<(Mat<f64>, Vec<Mat<f64>>)> {
        let all: Vec<_> = self.all.iter().map(|own| own.joint(x)).collect::<Result<_>>()?;
        let mean = beside(all.iter().map(|own| (own.0.clone(), vec![0.0; x.nrows()])).collect()).0;
        Ok((mean, all.into_iter().map(|own| own.1).collect()))
    }

    /// Leaves out every row's own factor. Without its own factor, of which α = G⁻¹y and D of the
    /// diagonal of G⁻¹ are known, the variance v of a row becomes v/(sD), and its mean falls by as
    /// much times α: Rasmussen & Williams 2006, Eq. 5.12, and the cavities of other likelihoods.
    fn left_out(&self) -> Result<Moments> {
        let one = |own: &Smoothed| {
            let mut own = own.at_rows()?;
            for i in 0..own.variance.len() {
                own.variance[i] /= own.rest[i];
                for p in 0..own.mean.ncols() {
                    own.mean[(i, p)] -= own.variance[i] * own.alpha[(i, p)];
                }
            }
            Ok(markov::unsorted(&self.order, (own.mean, own.variance)))
        };
        Ok(beside(self.all.iter().map(one).collect::<Result<_>>()?))
    }

    fn objective(&self) -> f64 {
        self.objective
    }

    fn terms(&self, x: MatRef<f64>) -> Result<Option<Vec<Moments>>> {
        let all: Vec<Vec<markov::Moments>> =
            self.all.iter().map(|own| own.terms(x)).collect::<Result<_>>()?;
        // functions of several kernels have other terms each
        if all.iter().any(|own| own.len() != all[0].len()) {
            return Ok(None);
        }
        let term = |k: usize| beside(all.iter().map(|own| own[k].clone()).collect());
        Ok(Some((0..all[0].len()).map(term).collect()))
    }

    fn check(&self, x: MatRef<f64>) -> Result<()> {
        match self.all.first().and_then(Smoothed::start) {
            Some(start) => start.check(x, self.time()),
            None => Ok(()),
        }
    }

    fn past(&self) -> Option<&Past> {
        self.past.as_ref()
    }

    /// Continues the filter after the last row under Gaussian noise. The sites of other likelihoods
    /// are of all kept rows together.
    fn extended(&self, model: &Model, rows: &InMemory) -> Result<Option<Arc<dyn Conditional>>> {
        let (n, own) = (self.order.len(), model.likelihood.as_gaussian());
        let Some(own) = own.filter(|_| self.order.is_sorted()) else { return Ok(None) };
        if !Places::new(rows.x.as_ref(), self.time()).t()[n.max(1) - 1..].is_sorted() {
            return Ok(None);
        }
        let series = Series::new(model, rows, self.past.as_ref())?;
        let noise = RowNoise::new(own.variance.scalar(), &series.rows);
        let factors = series.gaussian(&noise);
        if factors.len() != self.all.len() {
            return Ok(None);
        }
        let mut all = Vec::new();
        for (own, known) in factors.iter().zip(&self.all) {
            let seen = series.seen(own);
            let new = markov::Rows {
                places: seen.places.part(n..seen.places.len()),
                y: seen.y.subrows(n, seen.y.nrows() - n),
                noise: &seen.noise[n..],
                start: None,
            };
            all.push(known.with(new)?);
        }
        let (beside, past) = (beside_densities(&factors, &noise), self.past.clone());
        Ok(Some(Arc::new(Self::of(self.method, all, beside, series.order.len(), past))))
    }

    /// Leaves out the first rows. Of other likelihoods the rows that leave have the sites that they
    /// have now, for good; those of the others are found again, as they will be when a file is
    /// read.
    fn without_first(&self, model: &Model, rows: &InMemory, most: usize) -> Result<Option<Left>> {
        if !self.order.is_sorted() {
            return Ok(None);
        }
        let left = self.all.iter().map(|own| own.without_first(most));
        let (mut count, mut value, mut all) = (0, 0.0, Vec::new());
        for (rows, added, own) in left {
            (count, value) = (rows, value + added);
            all.push(own);
        }
        if count == 0 {
            return Ok(None);
        }
        let before = self.past.as_ref();
        let mut past = Past {
            rows: before.map_or(0, |past| past.rows) + count,
            objective: before.map_or(0.0, |past| past.objective),
            starts: all.iter().filter_map(|own| own.start().cloned()).collect(),
        };
        let some = |from: usize, to: usize| rows.picked(&(from..to).collect::<Vec<_>>());
        let (first, rest) = (some(0, count), some(count, self.order.len()));
        let Some(own) = model.likelihood.as_gaussian() else {
            past.objective = 0.0;
            let mut known = Self::new(self.method, model, &rest, Some(past), &|| Ok(()))?;
            // what is said of all rows stays what it was
            if let Some(past) = &mut known.past {
                past.objective = self.objective - known.objective;
                known.objective += past.objective;
            }
            return Ok(Some((count, Arc::new(known))));
        };
        let beside = |rows: &InMemory| -> Result<f64> {
            let series = Series::new(model, rows, None)?;
            let noise = RowNoise::new(own.variance.scalar(), &series.rows);
            let factors = match self.all.len() {
                1 => series.gaussian(&noise),
                _ => series.by_column(&noise),
            };
            Ok(beside_densities(&factors, &noise))
        };
        past.objective += value + beside(&first)?;
        let known = Self::of(self.method, all, beside(&rest)?, rest.x.nrows(), Some(past));
        Ok(Some((count, Arc::new(known))))
    }
}
