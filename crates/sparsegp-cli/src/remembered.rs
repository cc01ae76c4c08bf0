//! Which rows of a table a model has seen: what a fit held out is remembered, so that no page takes known rows for new ones.

use crate::data::{self, Opened, Split};
use crate::fail::Result;
use crate::format::count;
use crate::kind;
use sparsegp::data::{Mask, Missing, Selected, Selection, Table};
use sparsegp::fit::{Division, Fitted};
use std::sync::Arc;

/// What is known about the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// A mask divides them.
    Masked,
    /// The fit held some out, or rows have been added since: so many are unseen, of which so many were added.
    Unseen(usize, usize),
    /// The model learnt from all of them.
    Learnt,
    /// Nothing: another table, or a model that does not remember.
    Unknown,
}

impl Rows {
    /// Returns what the rows are called that a model is judged by, where some are apart.
    pub fn tested(self) -> &'static str {
        match self {
            Self::Unseen(all, added) if all == added => "added",
            Self::Unseen(_, 0) => "held out",
            Self::Unseen(..) => "held out, added",
            _ => "test",
        }
    }

    /// Returns what the other rows are called.
    pub fn others(self) -> &'static str {
        match self {
            Self::Masked | Self::Unseen(..) | Self::Learnt => "train",
            Self::Unknown => "rows",
        }
    }

    /// Says in a sentence which rows are judged.
    pub fn sentence(self) -> String {
        match self {
            Self::Masked => "The test rows are those that the mask marks.".into(),
            Self::Unseen(all, 0) => {
                format!("Judged by {} that the fit held out.", count(all, "row"))
            }
            Self::Unseen(all, added) if all == added => {
                format!(
                    "Judged by {} that were added to the table since the fit.",
                    count(all, "row")
                )
            }
            Self::Unseen(all, added) => format!(
                "Judged by {} that the model has not seen: {} held out by the fit, {} added since.",
                count(all, "row"),
                count(all - added, "row"),
                count(added, "row")
            ),
            Self::Learnt => "The model learnt from all rows of this table.".into(),
            Self::Unknown => {
                "Whether the model has seen these rows is not known: the table is not the one of \
                              the fit, or the fit did not keep which rows it learnt from."
                    .into()
            }
        }
    }
}

/// Keeps with a model which rows of its table it learnt from.
pub fn keep(fitted: &mut Fitted, opened: &Opened) -> Result<()> {
    let rows = opened.train.count_rows()?;
    let sets = [Some(&opened.train), opened.aside.as_ref(), opened.test.as_ref()];
    let sets: Vec<&Selected> = sets.into_iter().flatten().collect();
    let mask = |mask: &Option<Arc<Mask>>| mask.as_deref().cloned();
    fitted.division = Some(Division {
        rows,
        held_out: mask(&opened.masks.0),
        aside: mask(&opened.masks.1),
        fingerprint: Division::fingerprint(&sets, rows)?,
    });
    Ok(())
}

/// Opens the rows of a table as a model knows them; a mask that is given comes first.
pub fn open(
    table: Table,
    selection: &Selection,
    missing: Missing,
    fitted: &Fitted,
    mask: Option<&str>,
) -> Result<(Opened, Rows)> {
    let classes = fitted.classes.as_ref();
    let known = |split: &Split, table: Table| -> Result<Opened> {
        let mut opened = data::open(table, selection, missing, split)?;
        opened.know(classes);
        Ok(opened)
    };
    if let Some(spec) = mask {
        return Ok((known(&Split::Mask(spec), table)?, Rows::Masked));
    }
    let Some(division) = &fitted.division else {
        return Ok((known(&Split::None, table)?, Rows::Unknown));
    };
    let all = kind::with_classes(table.select(selection)?.missing(missing), classes);
    let Some(rows) = division.recognises(&all)? else {
        return Ok((known(&Split::None, table)?, Rows::Unknown));
    };
    let (learnt, unseen) = division.masks(rows);
    let apart = unseen.count(true);
    if apart == 0 {
        return Ok((known(&Split::None, table)?, Rows::Learnt));
    }
    let split = Split::Given(Arc::new(learnt), Arc::new(unseen));
    Ok((known(&split, table)?, Rows::Unseen(apart, rows - division.rows)))
}
