//! Which columns of a table are inputs, targets and identifiers: asked for by name, found by name.

use crate::data::encoding::{Encoding, InputColumn};
use crate::error::{Error, Result, nearest};
use std::collections::BTreeMap;
use std::path::Path;

/// The columns to read, by name. Only these are ever parsed; their order in the file is of no
/// importance, and other columns may be there.
///
/// ```
/// # use sparsegp::data::Selection;
/// let all_but_y = Selection::targets(["y"]);
/// let two = Selection::targets(["y"]).inputs(["age", "mass"]).ids(["patient"]);
/// # assert_ne!(all_but_y, two);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Input columns in this order, or `None` for every named column that is neither a target nor an
    /// identifier nor a weight nor the further number nor ignored. (An index written by pandas, which has no name in a CSV, is `Unnamed: 0` once it
    /// has been read and written again, and `__index_level_0__` in Parquet, is an input only if it is asked for.)
    pub inputs: Option<Vec<String>>,
    /// Target columns in this order; may be empty, for prediction.
    pub targets: Vec<String>,
    /// Columns to pass through as text.
    pub ids: Vec<String>,
    /// The column of the rows' weights.
    pub weight: Option<String>,
    /// The column of the further number that the observation model takes: an exposure, a number of
    /// trials, a known noise variance.
    pub extra: Option<String>,
    /// Whether the target is a label: see [`Selection::categorical`].
    pub labels: bool,
    /// Columns that are not inputs when `inputs` is `None`.
    pub ignored: Vec<String>,
    /// Whether a file without the targets is fine (then all of them are left out).
    pub optional_targets: bool,
    /// How input columns that hold no numbers become some; all others are numbers.
    pub encodings: BTreeMap<String, Encoding>,
    /// Whether there are targets and no inputs: see [`Selection::targets_alone`].
    pub alone: bool,
    /// Inputs with the columns that hold the standard deviations of their errors: see [`Selection::deviations`].
    pub deviations: Vec<(String, String)>,
    /// Whether a model has these columns already: see [`Selection::of_model`].
    pub of_model: bool,
}

fn owned(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    names.into_iter().map(Into::into).collect()
}

impl Selection {
    /// Selects these targets; every other column is an input until [`Selection::inputs`] says
    /// otherwise.
    pub fn targets(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { targets: owned(names), ..Self::default() }
    }

    /// Selects these columns as targets, and no inputs: for what explains columns by nothing that
    /// is in the table.
    pub fn targets_alone(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { targets: owned(names), inputs: Some(Vec::new()), alone: true, ..Self::default() }
    }

    /// Selects no targets; every column is an input until [`Selection::inputs`] says otherwise.
    pub fn all_inputs() -> Self {
        Self::default()
    }

    /// Sets exactly these inputs, in this order.
    #[must_use]
    pub fn inputs(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.inputs = Some(owned(names));
        self
    }

    /// Sets exactly these inputs, in this order, with their encodings.
    #[must_use]
    pub fn columns(mut self, columns: impl IntoIterator<Item = InputColumn>) -> Self {
        self.encodings.clear();
        let names = columns.into_iter().map(|InputColumn { name, encoding }| {
            if encoding != Encoding::Number {
                self.encodings.insert(name.clone(), encoding);
            }
            name
        });
        self.inputs = Some(names.collect());
        self
    }

    /// Weighs the rows by this column: numbers ≥ 0.
    #[must_use]
    pub fn weight(mut self, name: impl Into<String>) -> Self {
        self.weight = Some(name.into());
        self
    }

    /// Reads this column as the further number of every row.
    #[must_use]
    pub fn extra(mut self, name: impl Into<String>) -> Self {
        self.extra = Some(name.into());
        self
    }

    /// Reads the standard deviations of the errors of these inputs from these columns (`(input, column)`), which follow all other
    /// inputs in this order.
    #[must_use]
    pub fn deviations(mut self, pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        self.deviations = pairs.into_iter().collect();
        self
    }

    /// Says that a model has these columns already: what they hold was decided when it was fitted, and no refusal of a cell says
    /// how to decide otherwise.
    #[must_use]
    pub fn of_model(mut self) -> Self {
        self.of_model = true;
        self
    }

    /// Reads the target, of which there is one at most, as a label (text, whole number, truth value):
    /// what is read are codes 0, 1, …, see [`Classes`](crate::data::Classes).
    #[must_use]
    pub fn categorical(mut self) -> Self {
        self.labels = true;
        self
    }

    /// Passes these columns through as text.
    #[must_use]
    pub fn ids(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.ids = owned(names);
        self
    }

    /// Leaves these columns out of the inputs.
    #[must_use]
    pub fn ignore(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.ignored = owned(names);
        self
    }

    /// Reads the targets if the file has all of them, and none of them otherwise.
    #[must_use]
    pub fn targets_if_present(mut self) -> Self {
        self.optional_targets = true;
        self
    }

    /// Returns the positions of the selected columns in `header`.
    pub(super) fn resolve(&self, path: &Path, header: &[String]) -> Result<Roles> {
        let find = |name: &String| position(path, header, name);
        let targets = match &self.targets[..] {
            names if self.optional_targets && names.iter().any(|name| !header.contains(name)) => {
                Vec::new()
            }
            names => distinct(path, names, find, "target")?,
        };
        if let (true, [_, second, ..]) = (self.labels, &targets[..]) {
            let reason = "is a second target; classes can be learnt of one target only";
            return Err(column(path, &header[*second], reason));
        }
        let ids = distinct(path, &self.ids, find, "identifier")?;
        let weight = self.weight.as_ref().map(find).transpose()?;
        let extra = self.extra.as_ref().map(find).transpose()?;
        for name in self.ignored.iter().filter(|name| !header.contains(name) && !name.is_empty()) {
            find(name)?;
        }
        let inputs = match &self.inputs {
            Some(names) => distinct(path, names, find, "input")?,
            None => (0..header.len())
                // An absent optional target is absent; a present one is never an input.
                .filter(|i| !self.targets.contains(&header[*i]))
                .filter(|i| !ids.contains(i) && !self.ignored.contains(&header[*i]))
                .filter(|i| !is_index(&header[*i]))
                .filter(|&i| weight != Some(i) && extra != Some(i))
                .collect(),
        };
        let inputs = self.with_deviations(path, header, inputs)?;
        if self.inputs.is_none() {
            let mut names = std::collections::HashSet::new();
            if let Some(&twice) = inputs.iter().find(|&&i| !names.insert(&header[i])) {
                check_single(path, header, twice)?;
            }
        }
        if inputs.is_empty() && (targets.is_empty() || !self.alone) {
            return Err(Error::File {
                path: path.into(),
                reason: format!(
                    "no input column is left of the {} in the file ({}); choose at least one that \
                     is not a target",
                    header.len(),
                    quoted(header)
                ),
            });
        }
        if let Some(both) = inputs.iter().find(|i| targets.contains(i)) {
            return Err(column(
                path,
                &header[*both],
                "is both an input and a target; choose one of the two",
            ));
        }
        for (side, role) in [(weight, "the weight"), (extra, "the further number")] {
            // By name: an optional target may be left out.
            if let Some(i) = side.filter(|&i| self.targets.contains(&header[i])) {
                let reason = format!("is both a target and {role} of a row; choose one of the two");
                return Err(column(path, &header[i], reason));
            }
        }
        Ok(Roles { inputs, targets, weight, extra, ids })
    }

    /// Refuses standard deviations that are not numbers.
    pub(super) fn check_deviations(&self, path: &Path) -> Result<()> {
        for (input, name) in &self.deviations {
            let holds = match self.encodings.get(name) {
                None | Some(Encoding::Number) => continue,
                Some(own) if own.is_date() => "dates",
                Some(_) => "text",
            };
            let reason = format!(
                "holds {holds}, and the standard deviations of `{input}` are numbers of at least 0, in the unit of `{input}`"
            );
            return Err(column(path, name, reason));
        }
        Ok(())
    }

    /// Returns inputs with those last that are standard deviations of others.
    fn with_deviations(
        &self,
        path: &Path,
        header: &[String],
        mut inputs: Vec<usize>,
    ) -> Result<Vec<usize>> {
        let mut last = Vec::with_capacity(self.deviations.len());
        for (input, name) in &self.deviations {
            let (of, own) = (position(path, header, input)?, position(path, header, name)?);
            let reason = match (inputs.contains(&of), last.contains(&own)) {
                _ if of == own => "cannot be its own standard deviation".into(),
                (false, _) => {
                    format!("is not an input, and `{name}` cannot be its standard deviation")
                }
                (_, true) => format!("cannot share the standard deviations `{name}` with another"),
                _ => {
                    last.push(own);
                    continue;
                }
            };
            return Err(column(path, input, reason));
        }
        inputs.retain(|index| !last.contains(index));
        inputs.extend(last);
        Ok(inputs)
    }
}

fn is_index(name: &str) -> bool {
    name.is_empty() || name == "Unnamed: 0" || name.starts_with("__index_level_")
}

/// Positions of the selected columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Roles {
    pub inputs: Vec<usize>,
    pub targets: Vec<usize>,
    pub weight: Option<usize>,
    pub extra: Option<usize>,
    pub ids: Vec<usize>,
}

pub(super) fn column(path: &Path, name: &str, reason: impl Into<String>) -> Error {
    Error::Column { path: path.into(), column: name.into(), reason: reason.into() }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Finds a column; no other may have its name.
pub(super) fn position(path: &Path, header: &[String], name: &str) -> Result<usize> {
    let found = header.iter().position(|candidate| candidate == name).ok_or_else(|| {
        let near = nearest(name, header.iter().map(String::as_str));
        let numbers = header.iter().all(|name| name.parse::<f64>().is_ok());
        let hint = match numbers {
            true => " (the first line holds numbers: is the header missing?)",
            false => "",
        };
        column(path, name, format!("is not in the file; nearest: {}{hint}", quoted(&near)))
    })?;
    check_single(path, header, found)?;
    Ok(found)
}

/// Refuses a column whose name another one has: it could not be chosen by it.
fn check_single(path: &Path, header: &[String], index: usize) -> Result<()> {
    let name = &header[index];
    let mut all = (0..header.len()).filter(|&i| header[i] == *name);
    match (all.next(), all.next()) {
        (Some(first), Some(second)) => Err(column(
            path,
            name,
            format!(
                "stands at positions {} and {} of the header; rename one of the two, or leave both out (`--ignore \
                 {name}`)",
                first + 1,
                second + 1
            ),
        )),
        _ => Ok(()),
    }
}

fn distinct(
    path: &Path,
    names: &[String],
    find: impl Fn(&String) -> Result<usize>,
    role: &str,
) -> Result<Vec<usize>> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let index = find(name)?;
        if found.contains(&index) {
            return Err(column(path, name, format!("is given twice as {role}; give it once")));
        }
        found.push(index);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Vec<String> {
        owned(["id", "age", "mass", "y", "", "note", "__index_level_0__"])
    }

    fn resolve(selection: &Selection) -> Result<Roles> {
        selection.resolve(Path::new("a.csv"), &header())
    }

    fn fails(selection: Selection, parts: &[&str]) {
        let text = resolve(&selection).unwrap_err().to_string();
        for part in parts {
            assert!(text.contains(part), "`{text}` lacks `{part}`");
        }
    }

    #[test]
    fn all_but_targets_ids_ignored_and_unnamed() {
        let roles = resolve(&Selection::targets(["y"]).ids(["id"]).ignore(["note"])).unwrap();
        assert_eq!(
            roles,
            Roles { inputs: vec![1, 2], targets: vec![3], weight: None, extra: None, ids: vec![0] }
        );
    }

    #[test]
    fn inputs_keep_the_order_asked_for_and_may_name_the_unnamed() {
        let roles = resolve(&Selection::targets(["y"]).inputs(["mass", "", "age"])).unwrap();
        assert_eq!(roles.inputs, [2, 4, 1]);
    }

    #[test]
    fn an_id_may_also_be_an_input_or_a_target() {
        let roles = resolve(&Selection::targets(["y"]).inputs(["age"]).ids(["y", "age"])).unwrap();
        assert_eq!(roles.ids, [3, 1]);
    }

    #[test]
    fn optional_targets_are_all_or_none() {
        let both = Selection::targets(["y", "z"]).inputs(["age"]);
        fails(both.clone(), &["a.csv", "column `z`", "not in the file", "nearest:"]);
        assert!(resolve(&both.targets_if_present()).unwrap().targets.is_empty());
        let one = Selection::targets(["y"]).inputs(["age"]).targets_if_present();
        assert_eq!(resolve(&one).unwrap().targets, [3]);
        // The target that is there does not turn into an input because another one is missing.
        let roles = resolve(&Selection::targets(["y", "z"]).targets_if_present()).unwrap();
        assert_eq!(roles.inputs, [0, 1, 2, 5]);
    }

    #[test]
    fn refusals_say_what_to_do() {
        fails(
            Selection::targets(["y"]).inputs(["agee"]),
            &["column `agee`", "nearest: `age`", "a.csv"],
        );
        fails(Selection::targets(["y"]).inputs(["age", "age"]), &["`age`", "twice as input"]);
        fails(
            Selection::targets(["y"]).inputs(["age", "y"]),
            &["`y`", "both an input and a target"],
        );
        fails(
            Selection::targets(["y"]).inputs(Vec::<String>::new()),
            &["no input column", "`mass`"],
        );
        fails(
            Selection::targets(["y"]).ignore(["id", "age", "mass", "note"]),
            &["no input column is left of the 7"],
        );
        fails(Selection::targets(["y"]).ignore(["nte"]), &["column `nte`", "`note`"]);
    }

    #[test]
    fn a_doubled_name_is_refused_where_it_is_chosen() {
        let header = owned(["a", "b", "c", "b", "", ""]);
        let resolve = |selection: Selection| selection.resolve(Path::new("b.csv"), &header);
        for selection in [
            Selection::targets(["a"]),
            Selection::targets(["b"]),
            Selection::targets(["a"]).inputs(["b"]),
        ] {
            let text = resolve(selection).unwrap_err().to_string();
            assert!(text.contains("b.csv: column `b` stands at positions 2 and 4"), "{text}");
        }
        assert_eq!(resolve(Selection::targets(["a"]).ignore(["b"])).unwrap().inputs, [2]);
    }
}
