//! What kind of numbers a likelihood is about, and which columns its models need.

use crate::fail::{Fail, Result};
use sparsegp::data::{Classes, Encoding, InputColumn, Selected, Selection, Table};
use sparsegp::fit::Fitted;
use sparsegp::likelihoods::{Likelihood, Support};

/// What predictions, scores and pictures depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Gaussian noise.
    Gaussian,
    /// Classes.
    Classes,
    /// Counts without an upper end.
    Counts,
    /// Anything else that has a density.
    Other,
}

impl Kind {
    /// Returns the kind of a model.
    pub fn of(fitted: &Fitted) -> Self {
        match Self::of_likelihood(&*fitted.model.likelihood) {
            // what hidden layers, errors of inputs and functions of the targets make of it is not Gaussian
            Self::Gaussian if !fitted.predicts_normal() => Self::Other,
            own => own,
        }
    }

    /// Returns the kind of a likelihood.
    pub fn of_likelihood(likelihood: &dyn Likelihood) -> Self {
        match likelihood.classes() {
            _ if likelihood.as_gaussian().is_some() => Self::Gaussian,
            Some(_) => Self::Classes,
            None if likelihood.support(1.0) == Support::Counts => Self::Counts,
            None => Self::Other,
        }
    }
}

/// Returns the option that gives a likelihood's further number its column.
pub fn option_of(extra: &str) -> &'static str {
    match extra {
        "exposure" => "--exposure",
        "trials" => "--trials",
        _ => "--noise-variance",
    }
}

/// Returns the labels of the classes; their indices where the targets were never labels.
pub fn labels(fitted: &Fitted) -> Vec<String> {
    match (&fitted.classes, fitted.model.likelihood.classes()) {
        (Some(classes), _) => classes.labels().to_vec(),
        (None, count) => (0..count.unwrap_or(0)).map(|class| class.to_string()).collect(),
    }
}

/// Adds the column of the further number that the model was trained with, if the table has it. Without
/// it the likelihood's default holds, which is worth a note.
pub fn with_extra(
    fitted: &Fitted,
    table: &Table,
    selection: Selection,
) -> (Selection, Option<String>) {
    let (Some(name), Some(extra)) = (&fitted.extra_name, fitted.model.likelihood.extra()) else {
        return (selection, None);
    };
    match extra.default {
        Some(default) if !table.columns().contains(name) => {
            let note = format!(
                "{}: there is no column `{name}` ({}): every row is taken to have {default}",
                table.path().display(),
                extra.name
            );
            (selection, Some(note))
        }
        _ => (selection.extra(name), None),
    }
}

/// Returns the model's inputs and targets in a table.
pub fn with_targets(fitted: &Fitted) -> Selection {
    Selection { targets: fitted.target_names.clone(), ..fitted.selection() }
}

/// Returns whether some inputs are categories, between which there is nothing.
pub fn has_categories(fitted: &Fitted) -> bool {
    let labels = fitted.model.input_kernels().into_iter().any(|kernel| !kernel.labels().is_empty());
    let of =
        |column: &InputColumn| matches!(column.encoding, Encoding::OneHot(_) | Encoding::Code(_));
    labels || fitted.columns.iter().any(of)
}

/// Returns the columns with which a model is judged: inputs, targets, further number.
pub fn judged(fitted: &Fitted, table: &Table) -> (Selection, Option<String>) {
    let targets = fitted.target_names.clone();
    let mut selection = Selection { targets, ..fitted.selection_of_new() };
    if fitted.classes.is_some() {
        selection = selection.categorical();
    }
    with_extra(fitted, table, selection)
}

/// Returns the same rows with the classes that the model knows.
pub fn with_classes(rows: Selected, classes: Option<&Classes>) -> Selected {
    match classes {
        Some(classes) => rows.classes(classes.clone()),
        None => rows,
    }
}

/// Refuses classes of another number than the likelihood is for.
pub fn check_classes(
    likelihood: &dyn Likelihood,
    classes: Option<&Classes>,
    table: &Table,
    target: &str,
) -> Result<()> {
    let (Some(wanted), Some(found)) = (likelihood.classes(), classes) else { return Ok(()) };
    if wanted == found.count() {
        return Ok(());
    }
    let shown: Vec<String> = found.labels().iter().take(6).map(|l| format!("`{l}`")).collect();
    let more = if found.count() > shown.len() { ", …" } else { "" };
    let remedy = match wanted < found.count() {
        true => "use --likelihood softmax, or correct the label that is none",
        false => "give the likelihood that number of classes, or leave it out",
    };
    Err(Fail::Work(format!(
        "{}: column `{target}` has {} classes ({}{more}), and the likelihood `{}` is for {wanted}; \
         {remedy}",
        table.path().display(),
        found.count(),
        shown.join(", "),
        likelihood.name()
    )))
}
