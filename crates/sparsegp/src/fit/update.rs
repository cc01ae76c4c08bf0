//! New rows for a model that keeps what old ones said, without the old ones: one pass, and training
//! only where it is asked for.

use super::{DEFAULT_INDUCING, Dataset, Fitted, checks, sample_rows};
use crate::data::InMemory;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Jitter, Mat, column};
use crate::methods;
use crate::model::{Model, Posterior, inducing_param};
use crate::online::{self, Batch, Moments, Site, SolveOptions, Solved, Update};
use crate::variational::Variational;
pub use kept::KeptRows;
use std::ops::Range;

mod judged;
mod kept;
mod learning;
mod recorded;
mod room;
mod rows;

/// Rows that are taken up together.
const PART: usize = 4096;

/// A last step of sites that raises the bound by less, in nats, leaves them settled.
const SETTLED: f64 = 1e-3;

/// How new rows are taken up.
#[derive(Clone, Debug)]
pub struct UpdateOptions {
    /// A new row becomes an inducing point where its prior correlation with all of them is below this (Galy-Fajou &
    /// Opper 2020), in (0, 1); 0 to keep the points as they are.
    pub correlation: f64,
    /// Most inducing points; none for the model's number or 512, whichever is more.
    pub most_points: Option<usize>,
    /// What is left of what old rows said, in (0, 1]: 1 forgets nothing.
    pub forget: f64,
    /// How sites are found where the noise is not Gaussian.
    pub solve: SolveOptions,
    /// Most iterations of L-BFGS on kernels and likelihood for every part of the new rows, with what old rows said held;
    /// 0 to keep them.
    pub train: usize,
    /// Whether these move the inducing points too.
    pub train_points: bool,
    /// How many of the latest rows a model of method `markov` keeps, at least: of those before, what they say of later places stays.
    /// 0 and none for all.
    pub keep_rows: Option<usize>,
}

impl Default for UpdateOptions {
    fn default() -> Self {
        Self {
            correlation: 0.8,
            most_points: None,
            forget: 1.0,
            solve: SolveOptions::default(),
            train: 0,
            train_points: false,
            keep_rows: None,
        }
    }
}

impl UpdateOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for one that is out of its range.
    pub fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.correlation) {
            return Err(Error::InvalidParameter {
                path: "correlation".into(),
                reason: format!("{} is not at least 0 and below 1", self.correlation),
            });
        }
        if !(self.forget > 0.0 && self.forget <= 1.0) {
            return Err(Error::InvalidParameter {
                path: "forget".into(),
                reason: format!("{} is not above 0 and at most 1", self.forget),
            });
        }
        Ok(())
    }
}

/// What an update did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateReport {
    /// Rows that were taken up.
    pub rows: usize,
    /// Inducing points afterwards, and how many of them are new.
    pub points: usize,
    /// New ones among them.
    pub added: usize,
    /// Points that were given up for new ones, as no row had come near for long.
    pub given_up: usize,
    /// Rows that have left a series, which keeps what they say of later places.
    pub left: usize,
    /// Rows that should have become points and did not, because there were enough.
    pub uncovered: usize,
    /// About log p(new rows | old rows), in nats, in the data's units.
    pub bound: f64,
    /// Share of the new targets that 95 % intervals held before they were learnt; none for labels.
    pub inside: Option<f64>,
    /// What was odd, in sentences.
    pub warnings: Vec<String>,
}

/// Takes up new rows: q becomes what old and new rows say together (Bui, Nguyen & Turner 2017). Hyperparameters stay. The
/// model is an `svgp` afterwards, whatever it was trained by, or an `svi` where its method has local variables: then the new rows'
/// are in closed form. `watch` receives how many rows are done, and may end it; then nothing has
/// changed.
///
/// # Errors
/// [`Error::Invalid`] for models without inducing points (but those of exact inference with Gaussian noise, which have their rows),
/// with a set of them for each latent function, with mixed latent functions or draws, and for rows of other columns; those of `watch`.
pub fn update(
    fitted: &Fitted,
    dataset: &Dataset,
    options: &UpdateOptions,
    watch: &mut dyn FnMut(usize, usize) -> Result<()>,
) -> Result<(Fitted, UpdateReport)> {
    checks::same_columns(fitted, dataset)?;
    fitted.check_certain("taking up new rows")?;
    fitted.check_updates()?;
    if fitted.posterior.kept_rows().is_some() {
        return rows::extend(fitted, dataset, options, watch);
    }
    if fitted.posterior.points().ncols() != fitted.posterior.inputs() {
        return Err(Error::Invalid(format!(
            "taking up new rows has inducing points that are rows, and those of the kernel `{}` are not: refit it to all rows",
            fitted.model.kernel().name()
        )));
    }
    fitted.model.check_shallow("taking up new rows")?;
    options.check()?;
    if options.keep_rows.is_some_and(|keep| keep > 0) {
        return Err(rows::keeps_all(
            &fitted.model,
            "keeps inducing points in the place of its rows",
        ));
    }
    let mut state = State::new(fitted, options)?;
    let rows = sample_rows(&*dataset.source, dataset.source.rows(), 0)?;
    let n = rows.x.nrows();
    let judged = judged::judge(fitted, &rows)?;
    let (inside, warnings) = (judged.inside, judged.warnings.clone());
    let mut report =
        UpdateReport { rows: dataset.rows, inside, warnings, ..UpdateReport::default() };
    let (mut clipped, mut unsettled) = (0, 0);
    for from in (0..n).step_by(PART) {
        watch(from, n)?;
        let part = cut(&rows, from, PART.min(n - from));
        report.uncovered += state.grow(part.x.as_ref(), options)?;
        if options.train > 0 {
            learning::train(&mut state, &part, options)?;
        }
        let (bound, settled, kept) = state.take(&part, &options.solve)?;
        report.bound += bound;
        unsettled += usize::from(!settled);
        clipped += kept;
    }
    report.points = state.z.nrows();
    (report.added, report.given_up) = (state.added, state.given_up);
    let bound = report.bound;
    report.bound -= log_units(fitted, &rows);
    if unsettled > 0 {
        report.warnings.push(format!(
            "what the new rows say had not settled after {} steps: the posterior is approximate beyond the usual",
            options.solve.steps
        ));
    }
    if clipped > 0 {
        report.warnings.push(format!(
            "{clipped} rows would have made the posterior wider, as outliers under `{}` do, and were held at no information",
            fitted.model.likelihood.name()
        ));
    }
    if report.given_up > 0 {
        report.warnings.push(format!(
            "{} inducing points that no row has come near for long were given up for new ones: predictions there are those of \
             the prior again; allow more to keep them",
            report.given_up
        ));
    }
    if report.uncovered > 0 {
        report.warnings.push(format!(
            "{} new rows lie where no inducing point is near, and there are {} of them already: predictions there stay \
             uncertain; allow more",
            report.uncovered, report.points
        ));
    }
    let mut updated = state.fitted(dataset, &report, bound)?;
    judged.keep(&mut updated);
    Ok((updated, report))
}

/// Returns what the units of the targets add to minus the log density of these rows: the logs of
/// the scales, as often as the targets that are known count.
fn log_units(fitted: &Fitted, rows: &InMemory) -> f64 {
    let scaler = &fitted.scaler;
    let all = rows.y.ncols() == scaler.y_scale.len();
    // a constant target may have no column
    let varying = (0..scaler.y_scale.len()).filter(|&p| all || !scaler.is_constant(p));
    let one = |(column, p): (usize, usize)| {
        let y = rows.y.col_as_slice(column);
        let weight = |i: usize| rows.weights.get(i).copied().unwrap_or(1.0);
        let known = (0..y.len()).filter(|i| !y[*i].is_nan()).map(weight);
        scaler.y_scale[p].ln() * known.sum::<f64>()
    };
    varying.enumerate().take(rows.y.ncols()).map(one).sum()
}

fn cut(rows: &InMemory, from: usize, count: usize) -> InMemory {
    let some = |all: &[f64]| all.get(from..from + count).unwrap_or_default().to_vec();
    InMemory {
        x: rows.x.as_ref().subrows(from, count).to_owned(),
        y: rows.y.as_ref().subrows(from, count).to_owned(),
        weights: some(&rows.weights),
        extra: some(&rows.extra),
    }
}

/// Sees the latent functions of a target, the new rows among old ones, and what their steps came to.
type Met<'a> = dyn FnMut(Range<usize>, &Update<'_>, &Solved) -> Result<()> + 'a;

/// What is carried from one part to the next.
pub(super) struct State<'a> {
    fitted: &'a Fitted,
    /// The model, without its q.
    model: Model,
    z: Mat<f64>,
    /// Of every latent function.
    sites: Vec<Site>,
    /// Rows that these are not of, and how many rows were taken up.
    kept: KeptRows,
    taken: usize,
    q: Vec<Moments>,
    most: usize,
    /// How many rows had been taken up when the last one came near, of every point.
    visited: Vec<usize>,
    added: usize,
    given_up: usize,
}

impl Fitted {
    /// Refuses a model that cannot take up rows, whatever they are: of a function of the targets, or with a posterior of draws.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_updates(&self) -> Result<()> {
        self.check_untransformed("taking up new rows")?;
        if self.posterior.draws().is_empty() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "taking up new rows is not known of draws, which `{}` has: refit it to all rows, or use a method without draws",
            self.model.method.name()
        )))
    }
}

/// Returns whether what is known is exact: of the values at all rows, each of which was seen with
/// noise.
fn of_rows(model: &Model, posterior: &Posterior) -> bool {
    let gaussian = model.likelihood.as_gaussian().is_some_and(|own| own.variance.scalar() > 0.0);
    gaussian && !model.method.is_sparse() && posterior.draws().is_empty()
}

/// Returns what the rows of exact inference said of the functions at their places: what they are,
/// with the precision of their noise.
fn sites_of_rows(model: &Model, posterior: &Posterior) -> Result<Vec<Site>> {
    let (z, seen) = (posterior.points(), posterior.factor().l.as_ref() * posterior.q_mu());
    let (n, known) = (z.nrows(), posterior.row_noise());
    let precision = |i: usize| 1.0 / known.get(i).copied().unwrap_or(model.noise());
    let none = Mat::zeros(n, 0);
    let site = |l: usize| {
        let mut site = Site {
            z: z.to_owned(),
            precision: Mat::from_fn(n, n, |i, j| if i == j { precision(i) } else { 0.0 }),
            linear: (0..n).map(|i| precision(i) * seen[(i, l)]).collect(),
            constant: 0.0,
            root: None,
        };
        let prior = online::Prior::new(model.kernel_of(l), z, model.jitter, Some(&site))?;
        site.constant = -prior.posterior(none.as_ref(), &[], &[])?.gain;
        Ok(site)
    };
    (0..posterior.latents()).map(site).collect()
}

impl<'a> State<'a> {
    fn new(fitted: &'a Fitted, options: &UpdateOptions) -> Result<Self> {
        let (model, posterior) = (&fitted.model, &fitted.posterior);
        let refuse =
            |why: &str| Err(Error::Invalid(format!("this model takes up no new rows: {why}")));
        if model.likelihood.mixing().is_some() {
            return refuse("its latent functions are mixed");
        }
        if model.inducing.len() > 1 {
            return refuse("each of its latent functions has its own inducing points");
        }
        let latents = posterior.latents();
        let z = model.inducing_points();
        let carried = fitted.carried.iter();
        let (z, mut sites, mut kept) = match z {
            Ok(z) if latents == carried.len() && carried.clone().all(|site| site.z == z) => {
                (z, fitted.carried.clone(), fitted.kept_rows.clone())
            }
            _ if of_rows(model, posterior) => {
                let sites = sites_of_rows(model, posterior)?;
                (posterior.points().to_owned(), sites, KeptRows::default())
            }
            _ => {
                let of = |l: usize| posterior.whitened(l);
                let Some(parts) = (0..latents).map(of).collect::<Option<Vec<_>>>() else {
                    return refuse(&format!(
                        "`{}` keeps no posterior of inducing variables; fit one with inducing points (for instance \
                         `--inducing 100`, or `n_inducing=100` in Python)",
                        model.method.name()
                    ));
                };
                let mut sites = Vec::new();
                for part in &parts {
                    let root = part.root.as_ref();
                    sites.push(Site::of_posterior(part.points, part.factor, part.mean, root)?);
                }
                (parts[0].points.to_owned(), sites, KeptRows::default())
            }
        };
        if options.forget < 1.0 {
            for (l, site) in sites.iter_mut().enumerate() {
                let kernel = model.kernel_of(l);
                site.forget(options.forget, kernel, model.jitter)?;
            }
            kept.forget(options.forget);
        }
        // the number of rows as points is not one that anybody chose
        let usual = match of_rows(model, posterior) {
            true => z.nrows() + DEFAULT_INDUCING,
            false => z.nrows().max(DEFAULT_INDUCING),
        };
        let most = options.most_points.unwrap_or(usual).max(z.nrows());
        let model = Model { q: None, ..model.clone() };
        let (visited, taken) = (room::visited(fitted, z.nrows()), fitted.rows);
        let q = Vec::new();
        let (added, given_up) = (0, 0);
        Ok(Self { fitted, model, z, sites, kept, taken, q, most, visited, added, given_up })
    }

    /// Meets the rows of a part, behind those that are kept, with what others said, for every target, and
    /// tells of it.
    pub(super) fn meet(
        &self,
        part: &InMemory,
        options: &SolveOptions,
        each: &mut Met<'_>,
    ) -> Result<()> {
        let model = &self.model;
        let (k, latents) = (model.likelihood.latents(), self.sites.len());
        let part = &self.kept.with(part);
        let mut mean = Mat::zeros(part.x.nrows(), latents);
        model.mean.evaluate(part.x.as_ref(), mean.as_mut());
        for p in 0..part.y.ncols() {
            let own = p * k..(p + 1) * k;
            let kernels = match model.kernels.len() {
                1 => &model.kernels[..],
                _ => &model.kernels[own.clone()],
            };
            let batch = Batch {
                x: part.x.as_ref(),
                y: column(part.y.as_ref(), p),
                extra: &part.extra,
                weights: &part.weights,
                mean: Some(mean.as_ref().subcols(own.start, k)),
            };
            let (old, likelihood) = (&self.sites[own.clone()], &*model.likelihood);
            let mut update =
                Update::new(kernels, likelihood, self.z.as_ref(), model.jitter, old, batch)?;
            if model.method.augments() {
                update = update.with_local_variables()?;
            }
            if self.kept.count() > 0 {
                update.begin_at(&self.kept.first[own.clone()], &self.kept.second[own.clone()])?;
            }
            let solved = update.solve(options)?;
            each(own, &update, &solved)?;
        }
        Ok(())
    }

    /// Takes up a part: its bound, whether all settled, and sites that were held at 0.
    fn take(&mut self, part: &InMemory, options: &SolveOptions) -> Result<(f64, bool, usize)> {
        let (mut bound, mut settled, mut clipped) = (0.0, true, 0);
        // what the rows that are kept add is not new
        if self.kept.count() > 0 {
            let none = cut(part, 0, 0);
            self.meet(&none, options, &mut |_, _, solved| {
                bound -= solved.bound.total();
                Ok(())
            })?;
        }
        let all = self.kept.with(part);
        // sites of Gaussian noise hold everywhere
        let gaussian = self.model.likelihood.as_gaussian().is_some();
        let (kept, again) = match gaussian {
            true => (KeptRows::default(), vec![false; all.x.nrows()]),
            false => {
                let of = (self.fitted.seed, self.taken);
                self.kept.sampled(&all, of)
            }
        };
        let (mut sites, mut q, mut first, mut second) = (vec![], vec![], vec![], vec![]);
        self.meet(part, options, &mut |_, update, solved| {
            bound += solved.bound.total();
            settled &= solved.converged || solved.rise < SETTLED;
            clipped += solved.clipped;
            sites.extend(update.sites_without(&again)?);
            q.extend(update.moments());
            let stay = |own: &Vec<f64>| {
                let own = own.iter().zip(&again).filter(|(_, again)| **again);
                own.map(|(own, _)| *own).collect::<Vec<f64>>()
            };
            first.extend(update.first.iter().map(stay));
            second.extend(update.second.iter().map(stay));
            Ok(())
        })?;
        (self.sites, self.q) = (sites, q);
        self.kept = KeptRows { first, second, ..kept };
        self.taken += part.x.nrows();
        Ok((bound, settled, clipped))
    }

    /// Returns the model with all rows; `bound` is that of the new ones on the model's scale.
    fn fitted(self, dataset: &Dataset, report: &UpdateReport, bound: f64) -> Result<Fitted> {
        let mut fitted = self.fitted.clone();
        if self.q.is_empty() {
            return Ok(fitted);
        }
        let (m, latents) = (self.z.nrows(), self.q.len());
        let mean = Mat::from_fn(m, latents, |i, l| self.q[l].mean[i]);
        let root =
            |q: &Moments| Ok(Cholesky::new(q.covariance.as_ref(), Jitter::Absolute(0.0), "S")?.l);
        let roots: Vec<Mat<f64>> = self.q.iter().map(root).collect::<Result<_>>()?;
        room::keep(&self.visited, &mut fitted);
        fitted.model = self.model;
        let model = &mut fitted.model;
        let mut points = inducing_param(self.z.as_ref());
        points.frozen = model.inducing.first().is_some_and(|own| own.frozen);
        model.inducing = vec![points];
        model.q = Some(Variational::new(mean.as_ref(), &roots, false, true)?);
        // a q by moments, under the bound that found it
        let name = if model.method.augments() { "svi" } else { "svgp" };
        model.method = methods::find(name)?.method;
        fitted.carried = self.sites;
        let certain = fitted.posterior.lost_trend();
        fitted.kept_rows = self.kept;
        fitted.posterior = Posterior::of_q(model)?;
        recorded::record(&mut fitted, dataset, report, bound);
        fitted.warnings.extend(certain);
        Ok(fitted)
    }
}
