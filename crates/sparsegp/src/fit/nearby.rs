//! Whether `auto` conditions rows on their nearest neighbours or on inducing points, for many rows of few inputs.
//!
//! Both approximate the log evidence of the same model from below: the collapsed bound for any rows (Titsias 2025), the log density of
//! neighbours in the mean over rows of that model, as that of any other distribution (Gibbs' inequality). So the larger one is
//! nearer to it. Points are better where a few hundred explain all but the noise, neighbours where the function is rough beside
//! the distances of the rows. Each is evaluated once on all rows, at the hyperparameters of its
//! start, which need not be the same.

use super::choice::{Choice, Known};
use super::{AUTO_EXACT, Dataset, FitOptions, choice};
use crate::data::Source;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::methods;
use crate::model::Model;
use crate::train::{Event, Observer};
use crate::vecchia::Metric;

/// The method that conditions on neighbours.
pub(super) const METHOD: &str = "vecchia";

/// Rows up to which they are tried: all are in memory, with their neighbours.
const MOST_ROWS: usize = 1_000_000;
/// Share of a time limit that may be used before they are tried: the rest belongs to the training.
const MOST_TIME: f64 = 0.25;

/// Returns whether neighbours may be tried for these rows.
pub(super) fn possible(dataset: &Dataset, options: &FitOptions) -> bool {
    let data = &*dataset.source;
    // a place has three coordinates, and is on a surface
    let few = (2..=choice::NEARBY).contains(&dataset.dimensions());
    let many = (AUTO_EXACT + 1..=MOST_ROWS).contains(&data.rows());
    let own = options.method == "auto" && choice::asked(options).is_none();
    few && many && own && dataset.deviations.is_none() && data.sharded().is_none()
}

/// Inputs up to which neighbours may be taken under any likelihood: a factor of rows with more has few zeros.
const MOST_INPUTS: usize = 3;

/// Returns the inputs of rows for which neighbours may be taken under any likelihood; none for others.
pub(super) fn inputs(dataset: &Dataset, options: &FitOptions) -> Option<usize> {
    let data = &*dataset.source;
    let own = options.method == "auto" && choice::asked(options).is_none();
    let known = dataset.deviations.is_none() && data.sharded().is_none();
    let few = (2..=MOST_INPUTS).contains(&dataset.dimensions());
    // with a number of epochs somebody asks for minibatches
    let epochs = options.batches.as_ref().and_then(|own| own.training.epochs);
    let all = !options.diagonal && dataset.held_out.is_none() && epochs.is_none();
    (few && own && known && all && data.rows() <= MOST_ROWS).then(|| dataset.dimensions())
}

/// Returns the value of a method's objective for a model on all rows; nothing where matrices have no factors.
fn value(model: &Model, engine: &dyn Engine, rows: &dyn Source) -> Result<Option<f64>> {
    match model.evaluate(engine, rows) {
        Ok(evaluation) => Ok(Some(evaluation.value).filter(|value| value.is_finite())),
        Err(error) if error.is_recoverable() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns a model of neighbours, and why, where its log density is above the collapsed bound of a start with inducing points.
/// `direct` is a start that knows nothing of points. Within a time limit they are tried only where most of it is left.
pub(super) fn nearer(
    sparse: &Model,
    direct: Model,
    (known, choice): (Known<'_>, &Choice),
    engine: &dyn Engine,
    rows: &dyn Source,
    observer: &mut dyn Observer,
) -> Result<Option<(Model, Choice)>> {
    let bounds = ["titsias2025", "svgp2025"];
    if !known.nearby || !bounds.contains(&choice.entry.name) {
        return Ok(None);
    }
    let entry = methods::find(METHOD)?;
    let near = Model { method: entry.method, inducing: Vec::new(), q: None, ..direct };
    let inputs = rows.inputs();
    // a column without a lengthscale has no say in what is near
    if near.kernels.len() != 1
        || Metric::of(near.kernel(), inputs).dims() != inputs
        || near.method.check(&near).is_err()
    {
        return Ok(None);
    }
    if observer.time_used().is_some_and(|used| used > MOST_TIME) {
        return Ok(None);
    }
    if observer.event(Event::Neighbours { rows: rows.rows() }).is_break() {
        return Err(Error::Interrupted);
    }
    let collapsed = methods::find("titsias2025")?.method;
    let sparse = Model { method: collapsed, q: None, ..sparse.clone() };
    let Some(density) = value(&near, engine, rows)? else { return Ok(None) };
    let bound = value(&sparse, engine, rows)?.unwrap_or(f64::NEG_INFINITY);
    if density <= bound {
        return Ok(None);
    }
    let reason = format!(
        "{} rows are too many for exact inference, and their nearest neighbours say more than {} inducing points: their log \
         density is {:.3} nats a row higher than the bound where both start",
        known.rows,
        choice.inducing,
        (density - bound) / known.rows as f64
    );
    Ok(Some((near, Choice { entry, inducing: 0, reason })))
}

#[cfg(test)]
mod tests {
    use super::super::start::prepare_start;
    use super::*;
    use crate::engine::Cpu;
    use crate::linalg::Mat;
    use crate::rng::{stream, uniform};
    use std::f64::consts::TAU;

    /// A time limit of which a third is used.
    struct Late;

    impl Observer for Late {
        fn time_used(&self) -> Option<f64> {
            Some(0.33)
        }
    }

    /// More rows of three inputs in a cube of side 100 than exact inference takes, of waves whose lengths are `shortest` or more.
    fn table(shortest: f64) -> Dataset {
        let (mut rng, rows) = (stream(3, "rows"), AUTO_EXACT + 50);
        let waves: Vec<[f64; 4]> = (0..60)
            .map(|_| {
                let length = shortest * (1.0 + 3.0 * uniform(&mut rng));
                let mut along = || TAU / length * (2.0 * uniform(&mut rng) - 1.0);
                [along(), along(), along(), TAU * uniform(&mut rng)]
            })
            .collect();
        let x = Mat::from_fn(rows, 3, |_, _| 100.0 * uniform(&mut rng) - 40.0);
        let y = Mat::from_fn(rows, 1, |i, _| {
            let wave =
                |[a, b, c, d]: &[f64; 4]| (a * x[(i, 0)] + b * x[(i, 1)] + c * x[(i, 2)] + d).sin();
            500.0 + waves.iter().map(wave).sum::<f64>() + uniform(&mut rng)
        });
        Dataset::from_arrays(x, y, true).expect("a table")
    }

    #[test]
    fn auto_takes_neighbours_where_points_miss_what_rows_know() {
        let options = FitOptions { kernel: "matern52".into(), pilot: 400, ..FitOptions::default() };
        let method = |data: &Dataset, options: &FitOptions, restart: usize| {
            let start = prepare_start(data, options, &Cpu::default(), &mut (), restart);
            start.map(|own| (own.model.method.name(), own.reason)).expect("a start")
        };
        let (rough, smooth) = (table(25.0), table(300.0));
        let (name, reason) = method(&rough, &options, 0);
        assert!(name == "vecchia" && reason.contains("nats a row higher"), "{name}: {reason}");
        assert_eq!(method(&rough, &options, 1), (name, reason));
        assert_eq!(method(&smooth, &options, 0).0, "titsias2025");
        let late = prepare_start(&rough, &options, &Cpu::default(), &mut Late, 0).expect("a start");
        assert_eq!(late.model.method.name(), "titsias2025");
        let asked = FitOptions { inducing: Some(100), ..options };
        assert_eq!(method(&rough, &asked, 0).0, "titsias2025");
    }

    /// Counts on a plane whose rate changes over short distances, and over long ones.
    #[test]
    fn auto_takes_neighbours_for_counts_that_need_too_many_points() {
        let counts = |length: f64| {
            let mut rng = stream(3, "counts");
            let rows = 1500;
            let x = Mat::from_fn(rows, 2, |_, _| uniform(&mut rng));
            let y = Mat::from_fn(rows, 1, |i, _| {
                let at = |q: usize| (TAU * x[(i, q)] / length).sin();
                (30.0 * (at(0) * at(1)).exp() + 8.0 * (uniform(&mut rng) - 0.5)).round()
            });
            let rows = crate::data::InMemory::new(x, y).expect("rows");
            let dataset = Dataset::from_rows(rows, false).expect("a table");
            let options = FitOptions {
                likelihood: Some("poisson".into()),
                kernel: "matern32".into(),
                ..FitOptions::default()
            };
            let start = prepare_start(&dataset, &options, &Cpu::default(), &mut (), 0);
            start.map(|own| (own.model.method.name(), own.reason)).expect("a start")
        };
        let (name, reason) = counts(0.3);
        assert!(name == "vecchia" && reason.contains("nearest neighbours"), "{name}: {reason}");
        let (name, reason) = counts(20.0);
        assert!(name == "tsvgp", "{name}: {reason}");
    }
}
