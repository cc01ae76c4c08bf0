//! From files to rows: columns, splits, and whether a table is held in memory.

use crate::fail::{Fail, Result};
use crate::kind;
use clap::ValueEnum;
use sparsegp::Error;
use sparsegp::data::{Block, Classes, Fill, Mask, Missing, Selected, Selection, Table, Unknown};
use sparsegp::fit::{Dataset, Fitted, Purpose, Scaling};
use sparsegp::likelihoods::{Likelihood, Target};
use std::path::Path;
use std::sync::Arc;

/// Rows per block of predicting and scoring.
pub const BLOCK: usize = 1 << 13;

/// What to do with rows in which a number is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MissingChoice {
    /// Refuse the file, naming the cell
    #[default]
    Refuse,
    /// Leave such rows out, and say how many
    Drop,
}

/// The same for predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MissingInPredict {
    /// Refuse the file, naming the cell
    #[default]
    Refuse,
    /// Leave such rows out, and say how many
    Drop,
    /// Keep such rows, with empty predictions: as many rows come out as went in
    Keep,
}

/// What to do with categories that no training row had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum UnknownChoice {
    /// Refuse the file, naming the cell
    #[default]
    Refuse,
    /// Take them for one more category, as far from the others as these are from each other, and say how many
    Ignore,
}

impl From<UnknownChoice> for Unknown {
    fn from(choice: UnknownChoice) -> Self {
        match choice {
            UnknownChoice::Refuse => Unknown::Refuse,
            UnknownChoice::Ignore => Unknown::Ignore,
        }
    }
}

impl From<MissingInPredict> for Missing {
    fn from(choice: MissingInPredict) -> Self {
        match choice {
            MissingInPredict::Refuse => Missing::Refuse,
            MissingInPredict::Drop => Missing::Drop,
            MissingInPredict::Keep => Missing::Keep,
        }
    }
}

impl From<MissingChoice> for Missing {
    fn from(choice: MissingChoice) -> Self {
        match choice {
            MissingChoice::Refuse => Missing::Refuse,
            MissingChoice::Drop => Missing::Drop,
        }
    }
}

/// The same for learning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum MissingInFit {
    /// Refuse the file, naming the cell
    #[default]
    Refuse,
    /// Leave such rows out, and say how many
    Drop,
    /// Keep rows of which a target is missing (svgp methods): with several targets the others count
    Keep,
    /// Fill missing inputs: a number or date by the mean of its column, a category by one more category. Rows without a
    /// target are left out. The model fills the same columns of rows to predict
    Mean,
    /// The same, with an input COLUMN=missing beside every such column of numbers or dates, 1 where the cell is missing
    Indicator,
    /// Missing categories are one more category; missing numbers are refused
    Category,
}

impl MissingInFit {
    /// Returns how missing inputs are filled, if they are.
    pub fn fill(self) -> Option<Fill> {
        match self {
            MissingInFit::Refuse | MissingInFit::Drop | MissingInFit::Keep => None,
            MissingInFit::Mean => Some(Fill::Mean),
            MissingInFit::Indicator => Some(Fill::Indicator),
            MissingInFit::Category => Some(Fill::Category),
        }
    }
}

impl From<MissingInFit> for Missing {
    fn from(choice: MissingInFit) -> Self {
        match (choice.fill(), choice) {
            (Some(how), _) => how.of_rows(),
            (None, MissingInFit::Drop) => Missing::Drop,
            (None, MissingInFit::Keep) => Missing::Keep,
            (None, _) => Missing::Refuse,
        }
    }
}

/// How test rows are held out.
pub enum Split<'a> {
    /// Not at all.
    None,
    /// This fraction, drawn with this seed.
    Random(f64, u64),
    /// `FILE:COLUMN`.
    Mask(&'a str),
    /// These rows to learn from, and those to test on; there may be others.
    Given(Arc<Mask>, Arc<Mask>),
}

/// The columns and rows of a file to learn from.
pub struct Opened {
    /// The table.
    pub table: Table,
    /// Training rows.
    pub train: Selected,
    /// What pictures call them: where it is not known whether the model has seen them, only "rows".
    pub named: &'static str,
    /// Training rows that are kept aside to tell when to stop.
    pub aside: Option<Selected>,
    /// Test rows.
    pub test: Option<Selected>,
    /// Which rows of the file are test rows, and which are kept aside.
    pub masks: (Option<Arc<Mask>>, Option<Arc<Mask>>),
    /// Input columns whose missing cells are filled, with how many these are.
    pub filled: Vec<(String, usize)>,
}

/// Returns the failure for an error of the library that does not name the file itself.
fn in_file(path: &Path, error: Error) -> Fail {
    match error {
        Error::Invalid(reason) => Error::File { path: path.into(), reason }.into(),
        other => other.into(),
    }
}

/// Opens a file and divides its rows.
pub fn open(
    table: Table,
    selection: &Selection,
    missing: Missing,
    split: &Split,
) -> Result<Opened> {
    let all = table.select(selection)?.missing(missing);
    let opened = |table, train, test, masks| {
        let (named, filled) = ("training rows", Vec::new());
        Ok(Opened { table, train, named, aside: None, test, masks, filled })
    };
    let mask = match split {
        Split::None => return opened(table, all, None, (None, None)),
        Split::Random(fraction, seed) => {
            let rows = all.count_rows()?;
            Mask::random(rows, *fraction, *seed).map_err(|e| in_file(table.path(), e))?
        }
        Split::Mask(spec) => Mask::open(spec)?,
        Split::Given(learnt, tested) => {
            let test = all.clone().rows_where(tested.clone(), true);
            let train = all.rows_where(learnt.clone(), true);
            return opened(table, train, Some(test), (Some(tested.clone()), None));
        }
    };
    let mask = Arc::new(mask);
    let test = all.clone().rows_where(mask.clone(), true);
    let masks = (Some(mask.clone()), None);
    opened(table, all.rows_where(mask, false), Some(test), masks)
}

impl Opened {
    /// Puts a fraction of the training rows aside.
    pub fn put_aside(&mut self, fraction: f64, split: &Split, seed: u64) -> Result<()> {
        let path = self.table.path();
        let rows = self.train.count_rows()?;
        let own = match split {
            Split::None => (0..rows).collect(),
            Split::Random(fraction, seed) => {
                Mask::random(rows, *fraction, *seed).map_err(|e| in_file(path, e))?.indices(false)
            }
            Split::Mask(spec) => Mask::open(spec)?.indices(false),
            Split::Given(learnt, _) => learnt.indices(true),
        };
        // another stream than that of the test rows
        let drawn = Mask::random(own.len(), fraction, seed ^ 0x5eed_0a51_de00)
            .map_err(|e| in_file(path, e))?;
        let (mut aside, mut learnt) = (vec![false; rows], vec![false; rows]);
        for (i, row) in own.into_iter().enumerate() {
            let flags = if drawn.get(i) == Some(true) { &mut aside } else { &mut learnt };
            flags[row] = true;
        }
        let name = |what: &str| format!("{what} with seed {seed}");
        let (aside, learnt) = (
            Mask::new(name("rows kept aside"), aside),
            Mask::new(name("rows to learn from"), learnt),
        );
        let aside = Arc::new(aside);
        self.masks.1 = Some(aside.clone());
        self.aside = Some(self.train.clone().rows_where(aside, true));
        self.train = self.train.clone().rows_where(Arc::new(learnt), true);
        Ok(())
    }

    /// Returns whether the numbers are too many to hold: more than 2 GB.
    pub fn is_large(&self) -> Result<bool> {
        const MOST_BYTES: usize = 2_000_000_000;
        // A file below this size cannot hold so many numbers, unless gzip is very lucky.
        const SMALL_FILE: u64 = 100_000_000;
        let rows = match self.table.rows() {
            Some(rows) => rows,
            None => {
                if self.table.bytes()? < SMALL_FILE {
                    return Ok(false);
                }
                self.train.count_rows()?
            }
        };
        let columns = self.train.input_names().len() + self.train.target_names().len();
        Ok(rows.saturating_mul(columns) > MOST_BYTES / 8)
    }

    /// Lets all rows of this file take their labels from these classes.
    pub fn know(&mut self, classes: Option<&Classes>) {
        let sets = [Some(&mut self.train), self.aside.as_mut(), self.test.as_mut()];
        for rows in sets.into_iter().flatten() {
            *rows = kind::with_classes(rows.clone(), classes);
        }
    }

    /// Returns the training rows on the scale of a model, and how many were left out.
    pub fn on_scale_of(&self, fitted: &Fitted) -> Result<(Dataset, usize)> {
        let scaling = Scaling::Given(fitted.scaler.clone());
        let (dataset, dropped) = if self.is_large()? {
            let source = self.train.stream()?;
            let dropped = source.dropped();
            (Dataset::from_table(source, scaling), dropped)
        } else {
            let loaded = self.train.read_all()?;
            let dropped = loaded.dropped;
            (Dataset::from_loaded(loaded, scaling), dropped)
        };
        Ok((dataset.map_err(|e| in_file(self.table.path(), e))?, dropped))
    }

    /// Returns the training rows, and how many rows of the file were left out. The other rows are
    /// checked too: a bad cell should not be found after an hour of training. Without a purpose
    /// equal rows stay apart.
    pub fn dataset(
        &mut self,
        scaling: Scaling,
        stream: bool,
        purpose: Option<Purpose<'_>>,
    ) -> Result<(Dataset, usize)> {
        let path = self.table.path().to_owned();
        let read = |rows: &Selected, scaling: Scaling, purpose| -> Result<(Dataset, usize)> {
            let (dataset, dropped) = if stream {
                let source = rows.stream()?;
                let dropped = source.dropped();
                (Dataset::from_table(source, scaling), dropped)
            } else {
                let loaded = rows.read_all()?;
                let dropped = loaded.dropped;
                let dataset = match purpose {
                    Some(purpose) => Dataset::for_purpose(loaded, scaling, purpose),
                    None => Dataset::from_loaded(loaded, scaling),
                };
                (dataset, dropped)
            };
            Ok((dataset.map_err(|e| in_file(&path, e))?, dropped))
        };
        let (mut dataset, mut dropped) = read(&self.train, scaling, purpose)?;
        self.know(dataset.classes.as_ref());
        if let Some(aside) = &self.aside {
            let (aside, more) = read(aside, dataset.scaler.clone().into(), None)?;
            dropped += more;
            dataset.held_out = Some(aside.source);
        }
        if let Some(test) = &self.test {
            dropped += test.stream()?.dropped();
        }
        Ok((dataset, dropped))
    }

    /// Refuses a cell that the likelihood does not know, before anything is learnt.
    pub fn check(&self, likelihood: &dyn Likelihood) -> Result<()> {
        let sets = [Some(&self.train), self.aside.as_ref(), self.test.as_ref()];
        for rows in sets.into_iter().flatten() {
            for block in rows.blocks(BLOCK, None)? {
                self.check_block(likelihood, &block?)?;
            }
        }
        Ok(())
    }

    fn check_block(&self, likelihood: &dyn Likelihood, block: &Block) -> Result<()> {
        let default = likelihood.extra().and_then(|e| e.default).unwrap_or(1.0);
        let names = self.train.target_names();
        for (p, name) in names.iter().enumerate() {
            for i in (0..block.rows.len()).filter(|i| !block.y[(*i, p)].is_nan()) {
                let y = block.y[(i, p)];
                let extra = block.extra.get(i).copied().unwrap_or(default);
                likelihood.check(Target { y, extra }).map_err(|reason| Error::Cell {
                    path: self.table.path().into(),
                    row: block.rows[i] + 1,
                    column: name.clone(),
                    reason: format!(
                        "`{y}` {reason}; correct the row, or choose a likelihood for such numbers \
                         in place of `{}` (see `sparsegp likelihoods`)",
                        likelihood.name()
                    ),
                })?;
            }
        }
        Ok(())
    }
}
