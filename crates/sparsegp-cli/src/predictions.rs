//! Predictions as cells, and as lines of CSV.

use crate::fail::{Fail, Result};
use crate::kind::{Kind, labels};
use crate::report::latent_names;
use crate::values::fraction;
use clap::Args;
use sparsegp::data::Block;
use sparsegp::fit::{Fitted, Of};
use sparsegp::linalg::Mat;
use sparsegp::metrics::standard_normal_quantile;
use std::path::Path;

/// Returns a field of CSV, quoted if need be.
pub fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// What predictions are of, and which numbers of them are written.
#[derive(Debug, Args)]
pub struct FormArgs {
    /// Quantiles of the predictive distribution (not of classes)
    #[arg(long, allow_negative_numbers = true, value_name = "P,…", value_delimiter = ',', value_parser = fraction,
          default_values_t = [0.025, 0.975])]
    pub quantiles: Vec<f64>,
    /// Predict the latent function rather than new observations (no observation noise)
    #[arg(long)]
    pub latent: bool,
    /// Add mean and sd of the parts of the latent function: of its mean function and of every term of the kernel
    #[arg(long)]
    pub terms: bool,
}

impl FormArgs {
    /// Returns the form of a model's predictions after the columns `ids`.
    ///
    /// # Errors
    /// As for [`Form::with_terms`], where terms are asked for.
    pub fn form(&self, fitted: &Fitted, ids: &[String], centred: bool) -> Result<Form> {
        let of = if self.latent { Of::Latent } else { Of::Observations };
        let form = Form::new(fitted, of, ids, &self.quantiles);
        if self.terms { form.with_terms(fitted, centred) } else { Ok(form) }
    }
}

/// A cell of the predictions.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A label.
    Text(String),
    Number(f64),
}

impl Cell {
    /// Returns it as a field of CSV.
    fn field(&self) -> String {
        match self {
            Self::Text(text) => field(text),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// A column of the predictions.
enum Part {
    /// Index of the latent function or target; mean and deviation, then quantiles.
    Number(usize, String),
    /// Label and probabilities of the classes.
    Classes(Vec<String>),
}

/// How a model predicts, and which columns are passed through.
pub struct Form {
    of: Of,
    kind: Kind,
    parts: Vec<Part>,
    ids: Vec<String>,
    /// Names of the terms, where they are asked for.
    terms: Vec<String>,
    /// Whether they are centred.
    centred: bool,
    quantiles: Vec<f64>,
    /// Standard deviations of the quantiles from the mean, where all is Gaussian.
    widths: Vec<f64>,
}

impl Form {
    /// Creates the form for the columns `ids` of the table, then mean, deviation and quantiles, or
    /// label and probabilities.
    pub fn new(fitted: &Fitted, of: Of, ids: &[String], quantiles: &[f64]) -> Self {
        let kind = Kind::of(fitted);
        let latent = of == Of::Latent;
        let names = if latent { latent_names(fitted) } else { fitted.target_names.clone() };
        let single = names.len() == 1;
        let number =
            |(i, name)| Part::Number(i, if single { String::new() } else { format!("{name}_") });
        let parts = match (latent, kind) {
            (false, Kind::Classes) => vec![Part::Classes(labels(fitted))],
            _ => names.into_iter().enumerate().map(number).collect(),
        };
        let widths = quantiles.iter().map(|q| standard_normal_quantile(*q)).collect();
        let (ids, quantiles) = (ids.to_vec(), quantiles.to_vec());
        Self { of, kind, parts, ids, terms: Vec::new(), centred: false, quantiles, widths }
    }

    /// Adds mean and deviation of the terms of the latent functions.
    ///
    /// # Errors
    /// If there are none for this model.
    pub fn with_terms(self, fitted: &Fitted, centred: bool) -> Result<Self> {
        // anywhere that something is known: the names are the same
        let latest = fitted.posterior.past().and_then(|_| fitted.posterior.kept_rows());
        let at = |q| latest.map_or(0.0, |rows| rows.x[(rows.x.nrows() - 1, q)]);
        let centre = |_, q| fitted.scaler.unscaled_input(q, at(q));
        let row = Mat::from_fn(1, fitted.scaler.x_mean.len(), centre);
        let latents = latent_names(fitted);
        let prefix = |latent: usize| match latents.len() {
            1 => String::new(),
            _ => format!("{}_", latents[latent]),
        };
        let terms = fitted.predict_terms(row.as_ref(), false)?.into_iter();
        let terms = terms.map(|term| prefix(term.latent) + &term.name).collect();
        Ok(Self { terms, centred, ..self })
    }

    /// Returns the names of the columns beside those that are passed through.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for part in &self.parts {
            match part {
                Part::Number(_, prefix) => {
                    names.extend([format!("{prefix}mean"), format!("{prefix}sd")]);
                    names.extend(self.quantiles.iter().map(|q| format!("{prefix}q{q}")));
                }
                Part::Classes(labels) => {
                    names.push("label".into());
                    names.extend(labels.iter().map(|label| format!("p_{label}")));
                }
            }
        }
        names.extend(
            self.terms.iter().flat_map(|name| ["mean", "sd"].map(|of| format!("{name}_{of}"))),
        );
        names
    }

    /// Returns the line of names.
    ///
    /// # Errors
    /// If a column that is passed through has the name of a prediction.
    pub fn header(&self) -> Result<String> {
        let names = self.names();
        if let Some(both) = self.ids.iter().find(|id| names.contains(id)) {
            return Err(Fail::usage(format!(
                "--id {both}: a column of the predictions has that name too; rename it in the table"
            )));
        }
        let all: Vec<String> = self.ids.iter().chain(&names).map(|name| field(name)).collect();
        Ok(all.join(",") + "\n")
    }

    /// Returns the number of columns beside those that are passed through.
    pub fn width(&self) -> usize {
        let one = |part: &Part| match part {
            Part::Number(..) => 2 + self.quantiles.len(),
            Part::Classes(labels) => 1 + labels.len(),
        };
        self.parts.iter().map(one).sum::<usize>() + 2 * self.terms.len()
    }

    /// Returns the lines for a block, one for each row.
    pub fn lines(&self, path: &Path, fitted: &Fitted, block: &Block) -> Result<Vec<String>> {
        let rows = self.cells(&path.display().to_string(), fitted, block)?;
        let line = |(i, cells): (usize, Vec<Cell>)| {
            let ids = block.ids.iter().map(|texts| field(&texts[i]));
            ids.chain(cells.iter().map(Cell::field)).collect::<Vec<_>>().join(",") + "\n"
        };
        Ok(rows.into_iter().enumerate().map(line).collect())
    }

    /// Returns the cells of a block, row by row, without those that are passed through; `source` is
    /// where its rows come from.
    ///
    /// # Errors
    /// If a prediction is not a number, with its row.
    pub fn cells(&self, source: &str, fitted: &Fitted, block: &Block) -> Result<Vec<Vec<Cell>>> {
        let mut rows = match &self.parts[..] {
            [Part::Classes(labels)] => self.classes(labels, source, fitted, block)?,
            _ => self.numbers(source, fitted, block)?,
        };
        let terms = match self.terms.is_empty() {
            true => Vec::new(),
            false => fitted.predict_terms(block.x.as_ref(), self.centred)?,
        };
        for (i, cells) in rows.iter_mut().enumerate() {
            for term in &terms {
                let (mean, sd) = (term.mean[i], term.variance[i].sqrt());
                if !(mean.is_finite() && sd.is_finite()) {
                    return Err(not_finite(source, block, i, mean, sd));
                }
                cells.extend([mean, sd].map(Cell::Number));
            }
        }
        Ok(rows)
    }

    /// Returns the most probable class and the probabilities of all.
    fn classes(
        &self,
        labels: &[String],
        source: &str,
        fitted: &Fitted,
        block: &Block,
    ) -> Result<Vec<Vec<Cell>>> {
        let probabilities = fitted.predict_proba(block.x.as_ref())?;
        let mut rows = Vec::with_capacity(block.rows.len());
        for i in 0..block.rows.len() {
            let p = |c: usize| probabilities[(i, c)];
            if let Some(c) = (0..labels.len()).find(|c| !p(*c).is_finite()) {
                return Err(not_finite(source, block, i, p(c), f64::NAN));
            }
            let larger = |a: usize, b: usize| if p(b) > p(a) { b } else { a };
            let label = labels[(0..labels.len()).fold(0, larger)].clone();
            let all = (0..labels.len()).map(|c| Cell::Number(p(c)));
            rows.push(std::iter::once(Cell::Text(label)).chain(all).collect());
        }
        Ok(rows)
    }

    /// Returns means, deviations and quantiles.
    fn numbers(&self, source: &str, fitted: &Fitted, block: &Block) -> Result<Vec<Vec<Cell>>> {
        // draws are a mixture, and so are paths through hidden layers and errors of inputs
        let one = fitted.posterior.components_count() == 1;
        let gaussian = one && (self.of == Of::Latent || self.kind == Kind::Gaussian);
        let levels = if gaussian { &[][..] } else { &self.quantiles };
        let (x, extra) = (block.x.as_ref(), &block.extra[..]);
        let known = fitted.predict_with_quantiles(x, extra, levels, self.of)?;
        let mut rows = vec![Vec::new(); block.rows.len()];
        for (i, cells) in rows.iter_mut().enumerate() {
            for part in &self.parts {
                let Part::Number(p, _) = part else { continue };
                let (mean, sd) = (known.mean[(i, *p)], known.variance[(i, *p)].sqrt());
                // heavy tails may have no variance, which is not a fault
                if !mean.is_finite() || sd.is_nan() || (gaussian && !sd.is_finite()) {
                    return Err(not_finite(source, block, i, mean, sd));
                }
                cells.extend([mean, sd].map(Cell::Number));
                if gaussian {
                    cells.extend(self.widths.iter().map(|w| Cell::Number(mean + w * sd)));
                }
                cells.extend(known.quantiles.iter().map(|q| Cell::Number(q[(i, *p)])));
            }
        }
        Ok(rows)
    }
}

fn not_finite(source: &str, block: &Block, i: usize, mean: f64, sd: f64) -> Fail {
    Fail::Work(format!(
        "{source}: row {}: the prediction is not finite ({mean} ± {sd}); its inputs are too far from any \
         data",
        block.rows[i] + 1
    ))
}
