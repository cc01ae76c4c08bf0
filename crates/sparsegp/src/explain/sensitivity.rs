//! Shares of the variance of predictions that columns explain.

use super::background::Explainer;
use crate::error::Result;
use crate::linalg::Mat;
use crate::model::{DEFAULT_WAVES, Functions};
use crate::rng::{below, stream};

/// Standard deviations up to which values are the same, as a share of the largest.
const ROUNDING: f64 = 1e-12;

/// An estimate with a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The mean over drawn functions.
    pub mean: f64,
    /// Lower end; no number where no functions can be drawn.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// How a response depends on every column.
#[derive(Clone, Debug)]
pub struct Sensitivity {
    /// The standard deviation of what is expected of rows, in the data's units.
    pub deviation: f64,
    /// First-order indices: what a column explains by itself.
    pub first: Vec<Share>,
    /// Total indices: with all its interactions.
    pub total: Vec<Share>,
}

/// Indices of one function: its moments, then those of every column.
struct Indices {
    mean: f64,
    variance: f64,
    first: Vec<f64>,
    total: Vec<f64>,
}

/// What is evaluated.
enum Evaluated {
    Functions(Functions),
    /// The posterior mean, where functions cannot be drawn, and why.
    Mean(String),
}

/// Sensitivities of every response, and why they have no intervals, if they have none.
pub type Sensitivities = (Vec<Sensitivity>, Option<String>);

impl Explainer<'_> {
    /// Estimates Sobol indices of every response by the estimators of Saltelli et al. (2010, Table 2 b) and Jansen (1999; Table 2 f). Columns
    /// vary as over the rows, and *independently* of each other: see [`Explainer::most_correlated`]. Indices are those of drawn
    /// functions (Le Gratiet, Cannamela & Iooss 2014), their mean with the 95 % interval of what is not known of the function;
    /// where none can be drawn, those of the posterior mean without an interval, with a text that says why.
    ///
    /// `check` is asked between columns whether to proceed.
    ///
    /// # Errors
    /// What predictions give, and what `check` says.
    pub fn sensitivity(&self, check: &dyn Fn() -> Result<()>) -> Result<Sensitivities> {
        let (count, seed) = (self.options.samples, self.options.seed);
        let mut rng = stream(seed, "explain/designs");
        let mut design = || {
            let mut x = Mat::zeros(count, self.all.ncols());
            for column in &self.columns {
                for i in 0..count {
                    let row = below(&mut rng, self.all.nrows());
                    column.inputs.clone().for_each(|q| x[(i, q)] = self.all[(row, q)]);
                }
            }
            x
        };
        let (a, b) = (design(), design());
        let drawn = self.fitted.sample_functions(self.options.functions, DEFAULT_WAVES, seed);
        let evaluated = match drawn {
            Ok(functions) => Evaluated::Functions(functions),
            Err(why) => Evaluated::Mean(why.to_string()),
        };
        let of = |x: &Mat<f64>| {
            let x = self.inputs(x);
            match &evaluated {
                Evaluated::Functions(all) => self.fitted.evaluate_responses(all, x.as_ref()),
                Evaluated::Mean(_) => Ok(vec![self.fitted.predict_responses(x.as_ref())?]),
            }
        };
        let (at_a, at_b) = (of(&a)?, of(&b)?);
        let responses = at_a[0].ncols();
        let begin = |f: usize, c: usize| {
            let both_of = || at_a[f].col_as_slice(c).iter().chain(at_b[f].col_as_slice(c));
            let mean = both_of().sum::<f64>() / (2 * count) as f64;
            let squares = both_of().map(|v| (v - mean) * (v - mean)).sum::<f64>();
            // rounding gives a constant a tiny variance
            let largest = both_of().fold(0.0, |m: f64, v| m.max(v.abs()));
            let variance = squares / (2 * count - 1) as f64;
            let variance = if variance.sqrt() <= ROUNDING * largest { 0.0 } else { variance };
            Indices { mean, variance, first: vec![], total: vec![] }
        };
        // for every response those of every function
        let mut all: Vec<Vec<Indices>> =
            (0..responses).map(|c| (0..at_a.len()).map(|f| begin(f, c)).collect()).collect();
        for column in &self.columns {
            check()?;
            let mut mixed = a.clone();
            for q in column.inputs.clone() {
                mixed.col_as_slice_mut(q).copy_from_slice(b.col_as_slice(q));
            }
            let at_mixed = of(&mixed)?;
            for (c, own) in all.iter_mut().enumerate() {
                for (f, indices) in own.iter_mut().enumerate() {
                    let rows = || {
                        let others = at_a[f].col_as_slice(c).iter().zip(at_b[f].col_as_slice(c));
                        at_mixed[f].col_as_slice(c).iter().zip(others)
                    };
                    let of_all = |sum: f64| sum / count as f64;
                    let own = rows().map(|(m, (a, b))| (b - indices.mean) * (m - a)).sum();
                    let all = rows().map(|(m, (a, _))| 0.5 * (m - a) * (m - a)).sum();
                    let share = |part: f64| match indices.variance > 0.0 {
                        true => part / indices.variance,
                        false => 0.0,
                    };
                    let (first, total) = (share(of_all(own)), share(of_all(all)));
                    indices.first.push(first);
                    indices.total.push(total);
                }
            }
        }
        let why = match evaluated {
            Evaluated::Functions(_) => None,
            Evaluated::Mean(why) => Some(why),
        };
        let summary = |own: &Vec<Indices>| self.summary(own, why.is_none());
        Ok((all.iter().map(summary).collect(), why))
    }

    fn summary(&self, functions: &[Indices], interval: bool) -> Sensitivity {
        let share = |of: &dyn Fn(&Indices) -> f64| {
            let mut all: Vec<f64> = functions.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let end = |level: f64| match interval {
                true => super::curves::quantile(&all, level),
                false => f64::NAN,
            };
            Share { mean, lower: end(0.025), upper: end(0.975) }
        };
        let columns = 0..self.columns.len();
        let variance = functions.iter().map(|own| own.variance).sum::<f64>();
        Sensitivity {
            deviation: (variance / functions.len() as f64).sqrt(),
            first: columns.clone().map(|j| share(&|own| own.first[j])).collect(),
            total: columns.map(|j| share(&|own| own.total[j])).collect(),
        }
    }
}
