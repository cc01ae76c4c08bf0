//! The kernel that the rows ask for: `auto` fits a handful of candidates to a sample of the rows, and the best is trained.
//!
//! Candidates are judged by their evidence (or bound) at the optimum on the same rows, less [`PRICE`] nats for every
//! hyperparameter that the rows determine. That is Laplace's approximation to the evidence with the hyperparameters integrated
//! out (MacKay 1992): each costs log(τ/s) nats where a prior of standard deviation τ becomes a posterior of standard deviation s.
//! A lengthscale that the rows say nothing about keeps its prior, and costs nothing. Where inference is exact, the best are then judged
//! [again] on more rows.

mod again;
mod periods;
mod structure;
mod values;

use structure::{Change, Structure, Term};
use values::{lengthscales, shorten, start_at, start_beside, start_likelihood, start_slow};

use super::quiet::Quiet;
use super::start::prepare_start;
use super::trial::Trial;
use super::{
    AUTO_EXACT, AUTO_WHOLE, Dataset, FitOptions, Start, calendar, checkpoint, choice,
    likelihood_for, sample_rows, seasons, series,
};
use crate::data::holidays::inputs_of_holidays;
use crate::data::sphere::places_of;
use crate::data::{Classes, Source};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::methods;
use crate::params::{Role, assumed_log_prior};
use crate::train::{Event, KernelChoice, KernelScore, Observer};

/// The name by which a kernel is to be chosen.
pub(super) const AUTO: &str = "auto";
/// What is taken where nothing is to be judged, and what the others must beat.
const USUAL: &str = "rbf";
/// The same for a series: it has a state-space form.
const USUAL_OF_SERIES: &str = "matern52";
/// Straight lines and nothing else.
const LINE: &str = "linear";
/// Nats that a hyperparameter costs.
const PRICE: f64 = 1.5;
/// Nats by which another kernel must be better than the usual one.
const LEAST_GAIN: f64 = 2.0;
/// Nats within which two candidates are alike.
const ALIKE: f64 = 2.0;
/// Lengthscales at which an input has lost its part, in multiples of where they start.
const UNUSED: f64 = 2.0;
/// Part of the operations of the training that follows which the choice may take.
const PART: f64 = 0.25;
/// Share of a time limit after which no further kernel is tried.
const MOST_TIME: f64 = 0.25;
/// Rows that candidates see at least, if there are so many.
const LEAST_ROWS: usize = 200;
/// Iterations of the usual kernel.
const FIRST: usize = 30;
/// Iterations of only the variances, and of all, for each of the others from the values of the best
/// so far.
const SETTLING: usize = 5;
const TRAINED: usize = 20;
/// Iterations after which one may be hopeless, and by how many nats it then is behind.
const GLIMPSE: usize = 8;
const HOPELESS: f64 = 12.0;
/// What the lengthscales are multiplied by that a term beside straight lines may start at: what these leave unexplained varies
/// faster than the whole, and from a start far too long all of it looks like noise.
const SHORTER: [f64; 3] = [1.0, 0.3, 0.1];
/// Variance that straight lines leave to another term where nothing says how large the noise is.
const REST: f64 = 0.1;
/// Least noise variance, as a part of the starting one.
const LEAST_NOISE: f64 = 1e-5;

/// Returns whether a specification asks for a choice.
pub fn is_automatic(kernel: &str) -> bool {
    kernel.trim() == AUTO
}

/// Replaces the kernel `auto` by one for these rows; other options stay. The choice depends on rows, options and seed only.
pub(super) fn resolved(
    dataset: &Dataset,
    options: &FitOptions,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<(FitOptions, Option<KernelChoice>)> {
    if !is_automatic(&options.kernel) {
        return Ok((seasons::added(dataset, options)?, None));
    }
    let settled = settled(dataset, options)?;
    let found = match settled {
        Some(_) => Vec::new(),
        None => calendar::found(dataset, options)?,
    };
    if !found.is_empty() {
        let own = FitOptions { seasons: found.clone(), ..options.clone() };
        let (own, choice) = among(dataset, &own, None, engine, observer)?;
        let remark = calendar::remark(&found);
        let said =
            |own: KernelChoice| KernelChoice { reason: format!("{}; {remark}", own.reason), ..own };
        return Ok((own, choice.map(said)));
    }
    among(dataset, options, settled, engine, observer)
}

/// Chooses a kernel beside the seasons of the options, unless something has settled it.
fn among(
    dataset: &Dataset,
    options: &FitOptions,
    settled: Option<String>,
    engine: &dyn Engine,
    observer: &mut dyn Observer,
) -> Result<(FitOptions, Option<KernelChoice>)> {
    let with = |kernel: &str| FitOptions { kernel: kernel.into(), ..options.clone() };
    let seasons = seasons::terms(dataset, options)?;
    let of_series = of_series(dataset, options);
    let family = if of_series { USUAL_OF_SERIES } else { USUAL };
    let kernel = format!("{family}{seasons}");
    let usual = |reason: String| {
        let choice =
            KernelChoice { kernel: kernel.clone(), reason, rows: 0, candidates: Vec::new() };
        Ok((with(&kernel), Some(choice)))
    };
    if let Some(reason) = settled {
        return usual(reason);
    }
    let rows = rows(dataset, options)?;
    if observer.event(Event::Kernels { rows }).is_break() {
        return Err(Error::Interrupted);
    }
    // a kernel that is chosen reads no labels
    let time = (of_series && dataset.source.inputs() == 1).then_some(0);
    let sample = series::sample(&*dataset.source, rows, time, options.seed)?;
    let own = match of_series {
        true => FitOptions { method: "markov".into(), ..options.clone() },
        false => options.clone(),
    };
    let sample = dataset.of_sample(sample)?;
    let holidays = usize::from(!inputs_of_holidays(&dataset.columns).is_empty());
    let known = seasons::named(options).len() + holidays;
    let search =
        Search { sample, options: &own, rows, usual: family, seasons, known, engine, observer };
    let Some(judged) = search.judged()? else {
        return usual("there are too few rows to judge kernels by".into());
    };
    let (scores, rows) = again::scores(judged, dataset, options, rows, engine, observer)?;
    let mut choice = chosen(scores, rows.min(dataset.source.rows()), &kernel);
    // a time limit may have ended the choice of the run before
    if let Some(kept) = checkpoint::setting(options, "kernel").filter(|kept| *kept != choice.kernel)
    {
        (choice.kernel, choice.reason) = (kept, "as in the checkpoint".into());
    }
    Ok((with(&choice.kernel), Some(choice)))
}

/// Returns why there is nothing to choose, if so.
fn settled(dataset: &Dataset, options: &FitOptions) -> Result<Option<String>> {
    let of_kernel = |path: &String| path.trim_start_matches("layers[").contains("kernel");
    let given = options.set.iter().map(|(path, _)| path).chain(&options.freeze).any(of_kernel);
    let deep = options.method != "auto" && {
        let entry = methods::find(&options.method)?;
        entry.method.architecture().is_some()
    };
    Ok(match () {
        () if given => Some("values or names of its hyperparameters were given".into()),
        () if deep => Some("the layers of a deep model make up for it".into()),
        () if dataset.deviations.is_some() => {
            Some("inputs with standard deviations ask for a kernel with known expectations".into())
        }
        () if options.pilot == 0 => Some("no rows were to be looked at beforehand".into()),
        () => None,
    })
}

/// Returns whether rows will be passed in their order, by what was asked for or by what `auto`
/// takes.
fn of_series(dataset: &Dataset, options: &FitOptions) -> bool {
    let taken = || {
        let classes = dataset.classes.as_ref().map(Classes::count);
        let own = likelihood_for(&options.method, options.likelihood.as_deref(), classes);
        own.is_ok_and(|own| {
            let known = dataset.absent.iter().all(|w| *w == 0.0);
            let exact = own.as_gaussian().is_some() && known;
            let most = if exact { AUTO_EXACT } else { AUTO_WHOLE };
            dataset.source.rows() > most && series::takes(&*own)
        })
    };
    let possible =
        || choice::asked(options).is_none() && series::possible(dataset, &options.kernel);
    series::asked(options) || options.method == "auto" && possible() && taken()
}

/// Returns the number of rows that candidates are judged by: as many as keep the choice to a part
/// of the operations of the training, by the counts of [`choice`].
fn rows(dataset: &Dataset, options: &FitOptions) -> Result<usize> {
    let n = dataset.source.rows();
    if of_series(dataset, options) {
        let classes = dataset.classes.as_ref().map(Classes::count);
        let own = likelihood_for(&options.method, options.likelihood.as_deref(), classes)?;
        return Ok(series::judged(&*own, options.pilot).min(n));
    }
    let planned = choice::of_training(dataset, options);
    let evaluations = (FIRST + CANDIDATES * (TRAINED + SETTLING)) as f64;
    let affordable = choice::rows_of_exact(PART * planned / evaluations);
    Ok(affordable.max(LEAST_ROWS).min(options.pilot).min(n))
}

/// Candidates that there are, about.
const CANDIDATES: usize = 9;

/// A structure whose trial is trained.
#[derive(Clone)]
struct Judged {
    structure: Structure,
    trial: Trial,
    score: KernelScore,
}

impl Judged {
    fn by_score(&self, other: &Self) -> std::cmp::Ordering {
        self.score.score.total_cmp(&other.score.score)
    }
}

/// Passes over a candidate that a method or the numerics do not allow.
fn passed_over(error: Error) -> Result<Option<Judged>> {
    match error.is_recoverable() || matches!(error, Error::Invalid(_)) {
        true => Ok(None),
        false => Err(error),
    }
}

/// The trials of all candidates.
struct Search<'a> {
    sample: Dataset,
    options: &'a FitOptions,
    rows: usize,
    usual: &'static str,
    /// Terms that every candidate has, and how many they are.
    seasons: String,
    known: usize,
    engine: &'a dyn Engine,
    observer: &'a mut dyn Observer,
}

impl Search<'_> {
    /// Returns all candidates that could be had, the usual kernel first; none where even that is
    /// not to be had. Every change is tried on the best so far, from its values.
    fn judged(mut self) -> Result<Option<Vec<Judged>>> {
        // holidays have their own term
        let d = self.sample.source.inputs() - inputs_of_holidays(&self.sample.columns).len();
        let Some(mut best) = self.plain(self.usual, self.options.pilot)? else { return Ok(None) };
        let mut all = vec![best.clone()];
        // training does not come from a function that bends to straight lines: the evidence has two optima. Bounds of other likelihoods
        // are not equally tight: with local variables that of lines was the larger one for classes that no line tells apart
        let line = match best.trial.model.likelihood.as_gaussian() {
            Some(_) => self.plain(LINE, 0).or_else(passed_over)?,
            None => None,
        };
        all.extend(line.clone());
        let mut changes = match self.usual {
            USUAL => vec![Change::Family("matern52"), Change::Family("matern32")],
            _ => vec![Change::Family("matern32"), Change::Family("matern12")],
        };
        // functions of single coordinates of a place, and of pairs, depend on where the axes of the Earth are
        let places = places_of(&self.sample.columns).len();
        if d > 1 && places == 0 {
            changes.push(Change::OfPairs);
        }
        if d - 2 * places > 1 {
            changes.push(Change::Shared);
        }
        changes.push(Change::Plus(Term::Linear));
        // a trend beside what varies fast: without it a forecast of years is one of months
        if d == 1 {
            changes.push(Change::Plus(Term::Slow));
        }
        match d {
            1 if !self.seasons.contains("periodic") => changes.push(Change::Plus(Term::Periodic)),
            1 => {}
            _ if places > 0 => changes.push(Change::Own),
            _ => changes.extend([Change::Plus(Term::OfEachInput), Change::Own]),
        }
        for change in changes {
            // at a time limit the best so far will do
            if self.observer.time_used().is_some_and(|used| used > MOST_TIME) {
                break;
            }
            if self.observer.interrupted() {
                return Err(Error::Interrupted);
            }
            if !best.structure.may(change) {
                continue;
            }
            let by_wave =
                self.usual == USUAL_OF_SERIES && matches!(change, Change::Plus(Term::Periodic));
            let mut found = match by_wave {
                true => self.period(&best, &mut all)?,
                false => self.changed(&best, change, d).or_else(passed_over)?,
            };
            if let (Change::Plus(Term::Linear), Some(line)) = (change, &line) {
                let other = self.beside(line, &best.structure).or_else(passed_over)?;
                found = found.into_iter().chain(other).max_by(Judged::by_score);
            }
            if let Some(found) = found {
                all.push(found.clone());
                if found.score.score > best.score.score {
                    best = found;
                }
            }
        }
        Ok(Some(all))
    }

    /// Returns a kernel by itself, trained from its own start.
    fn plain(&mut self, family: &'static str, pilot: usize) -> Result<Option<Judged>> {
        let seasons = self.seasons.clone();
        let structure =
            Structure { family, of_pairs: false, shared: false, terms: Vec::new(), seasons };
        let spec = structure.specification();
        let Some(mut trial) = self.trial(&spec, pilot)? else { return Ok(None) };
        let objective = trial.climb(FIRST, self.engine, self.observer)?;
        let score = objective.map(|objective| scored(&spec, objective, &trial));
        Ok(score.map(|score| Judged { structure, trial, score }))
    }

    /// Returns a structure beside straight lines, from their values and its own start in what they
    /// leave unexplained.
    fn beside(&mut self, line: &Judged, structure: &Structure) -> Result<Option<Judged>> {
        let structure = structure.with(Change::Plus(Term::Linear));
        let spec = structure.specification();
        let Some(mut trial) = self.trial(&spec, 0)? else { return Ok(None) };
        let from = &line.trial.model;
        let left = from.likelihood.as_gaussian().map_or(REST, |noise| noise.variance.scalar());
        let kernels = trial.model.kernels.iter_mut().zip(&from.kernels);
        kernels.for_each(|(own, line)| start_beside(&mut **own, &**line, left, self.known));
        start_likelihood(&mut trial.model, from);
        let trial = self.settled(trial)?;
        self.trained(structure, &spec, trial, line.score.score)
    }

    /// Returns a trial with straight lines after it has settled, from the best of some lengthscales of the terms before these.
    fn settled(&mut self, trial: Trial) -> Result<Trial> {
        let mut best: Option<(f64, Trial)> = None;
        for by in SHORTER {
            let mut own = trial.clone();
            own.model.kernels.iter_mut().for_each(|k| shorten(&mut **k, by, self.known));
            let objective = own.settle(SETTLING, self.engine, self.observer)?;
            let most = best.as_ref().map_or(f64::NEG_INFINITY, |(most, _)| *most);
            if let Some(objective) = objective.filter(|own| *own > most) {
                best = Some((objective, own));
            }
        }
        Ok(best.map_or(trial, |(_, own)| own))
    }

    /// Returns a model with this kernel on the rows.
    fn trial(&mut self, spec: &str, pilot: usize) -> Result<Option<Trial>> {
        let own = FitOptions {
            kernel: spec.into(),
            pilot,
            checkpoint: None,
            restarts: 0,
            ..self.options.clone()
        };
        let quiet = &mut Quiet(&*self.observer);
        let Start { model, .. } = prepare_start(&self.sample, &own, self.engine, quiet, 0)?;
        let varying = self.sample.varying();
        let narrow = model.mean.num_params() == 0 && model.likelihood.mixing().is_none();
        let source: &dyn Source = if narrow { &varying } else { &*self.sample.source };
        let rows = sample_rows(source, self.rows, self.options.seed)?;
        let gaussian = model.likelihood.as_gaussian().is_some();
        let rows = self.sample.distinct(&rows).filter(|_| gaussian).unwrap_or(rows);
        let mut trial = Trial::new(&model, &rows, self.rows, self.options)?;
        if let Some(trial) = &mut trial {
            trial.limit_noise(LEAST_NOISE)?;
        }
        Ok(trial)
    }

    /// Returns the best so far with a change, trained from its values.
    fn changed(&mut self, best: &Judged, change: Change, d: usize) -> Result<Option<Judged>> {
        // a period is not to be had from values without one
        if matches!(change, Change::Plus(Term::Periodic | Term::Wave)) {
            let structure = best.structure.with(change);
            let spec = structure.specification();
            let Some(trial) = self.trial(&spec, self.options.pilot)? else { return Ok(None) };
            return self.trained(structure, &spec, trial, best.score.score);
        }
        self.continued(best, change, d)
    }

    /// Returns the best so far with a change, where all that it has stays at its values.
    fn continued(&mut self, best: &Judged, change: Change, d: usize) -> Result<Option<Judged>> {
        let structure = best.structure.with(change);
        let spec = structure.specification();
        let Some(mut trial) = self.trial(&spec, 0)? else { return Ok(None) };
        let lengths = lengthscales(&best.trial.model, d);
        let kernels = trial.model.kernels.iter_mut().zip(&best.trial.model.kernels);
        let slow = matches!(change, Change::Plus(Term::Slow));
        for (own, before) in kernels {
            start_at(&mut **own, &**before, &lengths, self.known);
            if slow {
                start_slow(&mut **own, self.known);
            }
        }
        start_likelihood(&mut trial.model, &best.trial.model);
        if !matches!(change, Change::Family(_)) {
            trial.settle(SETTLING, self.engine, self.observer)?;
        }
        self.trained(structure, &spec, trial, best.score.score)
    }

    /// Trains a candidate, and one that is hopeless for a few iterations only.
    fn trained(
        &mut self,
        structure: Structure,
        spec: &str,
        mut trial: Trial,
        most: f64,
    ) -> Result<Option<Judged>> {
        let mut score = None;
        for iterations in [GLIMPSE, TRAINED - GLIMPSE] {
            let Some(objective) = trial.climb(iterations, self.engine, self.observer)? else {
                break;
            };
            let own = scored(spec, objective, &trial);
            let hopeless = own.score < most - HOPELESS;
            score = Some(own);
            if hopeless {
                break;
            }
        }
        Ok(score.map(|score| Judged { structure, trial, score }))
    }
}

/// Returns the score of a trained trial.
fn scored(spec: &str, objective: f64, trial: &Trial) -> KernelScore {
    let (model, rows) = (&trial.model, trial.rows().x.nrows());
    let evidence = objective - model.assumed_log_prior();
    // what claims to be without noise must be better by more
    let of_noise = assumed_log_prior(|v| model.likelihood.visit(v));
    let parameters = model.kernels.iter().map(|kernel| determined(&**kernel)).sum();
    let score = evidence - PRICE * parameters as f64 + of_noise;
    KernelScore { kernel: spec.into(), rows, evidence, parameters, score }
}

/// Returns the number of hyperparameters of a kernel that rows determine: all but lengthscales that
/// are far beyond where they start.
fn determined(kernel: &dyn Kernel) -> usize {
    let free = kernel.params().into_iter().filter(|(_, param)| !param.frozen);
    free.map(|(_, param)| match param.role() {
        Role::Lengthscales if param.len() > 1 => {
            let most = UNUSED * (param.len() as f64).sqrt();
            param.free_places().filter(|at| param.value()[*at] < most).count()
        }
        _ => param.free_len(),
    })
    .sum()
}

/// Returns the best candidate, or the usual one, where none is clearly better.
fn chosen(mut scores: Vec<KernelScore>, rows: usize, usual_name: &str) -> KernelChoice {
    let usual = scores[0].score;
    // those that few rows have left behind come last
    let most = scores[0].rows;
    scores
        .sort_by(|a, b| (b.rows == most).cmp(&(a.rows == most)).then(b.score.total_cmp(&a.score)));
    let best = &scores[0];
    let (kernel, reason) = if best.kernel == usual_name {
        (usual_name.to_owned(), format!("no other of {} kernels is better", scores.len()))
    } else if best.score < usual + LEAST_GAIN {
        let gain = best.score - usual;
        let reason = format!("`{}` is better by no more than {gain:.1} nats", best.kernel);
        (usual_name.to_owned(), reason)
    } else {
        let alike = |own: &&KernelScore| own.rows == most && own.score > best.score - ALIKE;
        let alike = scores.iter().filter(alike).count() - 1;
        let also = match alike {
            0 => String::new(),
            1 => "; one other is as good within noise".into(),
            more => format!("; {more} others are as good within noise"),
        };
        let gain = best.score - usual;
        (
            best.kernel.clone(),
            format!("better than `{usual_name}` by {gain:.1} nats on {rows} rows{also}"),
        )
    };
    KernelChoice { kernel, reason, rows, candidates: scores }
}
