//! How a comparison divides the rows of a file, time and again.

use crate::fail::{Fail, Result};
use sparsegp::data::{CutOff, CutOffs, Mask, ReadOptions};
use sparsegp::rng;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows to learn from and rows to test on.
#[derive(Clone, Debug)]
pub struct Fold {
    /// `fold 1`, `split 3`, …
    pub name: String,
    /// Rows to learn from.
    pub train: Arc<Mask>,
    /// Rows to test on.
    pub test: Arc<Mask>,
}

/// How rows are divided.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// Every row is tested on once: k random folds of nearly equal size.
    Folds(usize),
    /// So many random splits that hold out this fraction.
    Splits(usize, f64),
    /// Splits from `FILE:COLUMN` each.
    Masks(Vec<String>),
    /// k folds that keep rows with equal labels together.
    Groups(usize, Vec<String>),
    /// Rows in the order of these keys, in k + 1 blocks: a block is tested on after learning from all that
    /// come before it.
    Ordered(usize, Vec<Key>),
    /// Rows up to cut-offs, and those within this horizon after each.
    CutOffs(CutOffs, String),
}

/// Where a row stands in an order: numbers before dates before other text, which goes by its characters.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub enum Key {
    /// A number.
    Number(f64),
    /// A date or a moment, as days.
    Date(f64),
    /// Anything else.
    Text(String),
}

impl Key {
    /// Says whether it is a text other than a date; an empty cell is none.
    pub fn is_word(&self) -> bool {
        matches!(self, Key::Text(text) if !text.trim().is_empty())
    }

    /// Creates the key of a cell of a column, read as these options say.
    pub fn of(cell: String, column: &str, options: &ReadOptions) -> Self {
        match options.number(cell.trim()) {
            Some(number) if !number.is_nan() => Key::Number(number),
            _ => options.date(column, &cell).map_or(Key::Text(cell), Key::Date),
        }
    }
}

impl Protocol {
    /// Describes it in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Folds(k) => format!("{k} random folds"),
            Self::Splits(n, fraction) => {
                format!("{n} random splits that hold out {:.0} % of the rows", 100.0 * fraction)
            }
            Self::Masks(masks) => {
                let plural = if masks.len() == 1 { "" } else { "s" };
                format!("{} split{plural} from files", masks.len())
            }
            Self::Groups(k, _) => format!("{k} folds of whole groups"),
            Self::Ordered(k, _) => format!("{k} blocks in order, each after all before it"),
            Self::CutOffs(own, horizon) => {
                format!("{} cut-offs, each with the rows within {horizon} after it", own.cuts.len())
            }
        }
    }

    /// Returns the divisions of so many rows.
    pub fn folds(&self, rows: usize, seed: u64) -> Result<Vec<Fold>> {
        match self {
            Self::Folds(k) => {
                enough(*k, rows, "row")?;
                let order = rng::permutation(&mut rng::stream(seed, "folds"), rows, rows);
                let mut fold = vec![0; rows];
                order.iter().enumerate().for_each(|(place, row)| fold[*row] = place % k);
                Ok(by_number(&fold, *k))
            }
            Self::Splits(count, fraction) => (0..*count as u64)
                .map(|i| {
                    let test = Mask::random(rows, *fraction, seed.wrapping_add(i))?;
                    Ok(of_test(format!("split {}", i + 1), test))
                })
                .collect(),
            Self::Masks(specs) => {
                specs.iter().map(|spec| Ok(of_test(short(spec), Mask::open(spec)?))).collect()
            }
            Self::CutOffs(own, _) => Ok(at_cut_offs(own, rows)),
            Self::Groups(k, labels) => Ok(by_number(&whole_groups(labels, *k)?, *k)),
            Self::Ordered(k, keys) => {
                enough(k + 1, rows, "row")?;
                let mut order: Vec<usize> = (0..rows).collect();
                // rows with equal keys stay in the order of the file
                order.sort_by(|a, b| {
                    keys[*a].partial_cmp(&keys[*b]).unwrap_or(std::cmp::Ordering::Equal)
                });
                let mut block = vec![0; rows];
                for (place, row) in order.iter().enumerate() {
                    block[*row] = place * (k + 1) / rows;
                }
                let fold = |b: usize| Fold {
                    name: format!("block {b}"),
                    train: mask("rows before", block.iter().map(|own| *own < b)),
                    test: mask("rows of the block", block.iter().map(|own| *own == b)),
                };
                Ok((1..=*k).map(fold).collect())
            }
        }
    }
}

/// Returns times in the place of keys, and whether they are dates; none where some are neither
/// numbers nor dates, or both are there. Empty cells have no time.
pub fn times(keys: &[Key]) -> Option<(Vec<f64>, bool)> {
    let dates = keys.iter().any(|key| matches!(key, Key::Date(_)));
    let time = |key: &Key| match key {
        Key::Number(time) if !dates => Some(*time),
        Key::Date(time) => Some(*time),
        Key::Text(text) if text.trim().is_empty() => Some(f64::NAN),
        _ => None,
    };
    Some((keys.iter().map(time).collect::<Option<_>>()?, dates))
}

/// Returns the divisions at cut-offs of a series of so many rows, the earliest first.
pub fn at_cut_offs(cuts: &CutOffs, rows: usize) -> Vec<Fold> {
    let flags = |own: &[usize]| {
        let mut flags = vec![false; rows];
        own.iter().for_each(|row| flags[*row] = true);
        flags.into_iter()
    };
    let fold = |(i, cut): (usize, &CutOff)| Fold {
        name: format!("cut-off {}", i + 1),
        train: mask("rows up to the cut-off", flags(&cut.train)),
        test: mask("rows within the horizon", flags(&cut.test)),
    };
    cuts.cuts.iter().enumerate().map(fold).collect()
}

/// Returns the column of `FILE:COLUMN`.
fn short(spec: &str) -> String {
    spec.rsplit_once(':').map_or(spec, |(_, column)| column).to_owned()
}

fn mask(name: &str, flags: impl Iterator<Item = bool>) -> Arc<Mask> {
    Arc::new(Mask::new(name, flags))
}

fn of_test(name: String, test: Mask) -> Fold {
    let train = mask("rows to learn from", (0..test.rows()).map(|i| test.get(i) == Some(false)));
    Fold { name, train, test: Arc::new(test) }
}

fn by_number(fold: &[usize], k: usize) -> Vec<Fold> {
    let one = |f: usize| Fold {
        name: format!("fold {}", f + 1),
        train: mask("rows to learn from", fold.iter().map(|own| *own != f)),
        test: mask("rows of the fold", fold.iter().map(|own| *own == f)),
    };
    (0..k).map(one).collect()
}

fn enough(wanted: usize, there: usize, what: &str) -> Result<()> {
    if wanted <= there {
        return Ok(());
    }
    Err(Fail::usage(format!(
        "{there} {what}(s) cannot make {wanted} parts; choose fewer with --folds"
    )))
}

/// Returns the fold of every row: groups, the largest first, go to the fold that has the fewest
/// rows so far.
fn whole_groups(labels: &[String], k: usize) -> Result<Vec<usize>> {
    let mut groups: Vec<(&str, usize)> = Vec::new();
    let mut place: HashMap<&str, usize> = HashMap::new();
    for label in labels {
        let at = *place.entry(label).or_insert_with(|| {
            groups.push((label, 0));
            groups.len() - 1
        });
        groups[at].1 += 1;
    }
    enough(k, groups.len(), "group")?;
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|g| std::cmp::Reverse(groups[*g].1));
    let (mut sizes, mut fold) = (vec![0; k], vec![0; groups.len()]);
    for g in order {
        let smallest = (0..k).min_by_key(|f| sizes[*f]).unwrap_or(0);
        fold[g] = smallest;
        sizes[smallest] += groups[g].1;
    }
    Ok(labels.iter().map(|label| fold[place[label.as_str()]]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[&str]) -> Vec<String> {
        values.iter().map(|v| (*v).to_owned()).collect()
    }

    #[test]
    fn every_row_is_tested_on_once_and_never_learnt_from_then() {
        let groups = texts(&["a", "b", "a", "c", "c", "c", "b", "d", "e", "e", "a"]);
        for protocol in [Protocol::Folds(4), Protocol::Groups(3, groups.clone())] {
            let folds = protocol.folds(11, 5).unwrap();
            for row in 0..11 {
                let tested: Vec<_> =
                    folds.iter().filter(|f| f.test.get(row) == Some(true)).collect();
                assert_eq!(tested.len(), 1, "{protocol:?} {row}");
                assert!(folds.iter().all(|f| f.test.get(row) != f.train.get(row)));
            }
            let sizes: Vec<usize> = folds.iter().map(|f| f.test.count(true)).collect();
            assert!(sizes.iter().all(|s| (2..=4).contains(s)), "{sizes:?}");
        }
        let folds = Protocol::Groups(3, groups.clone()).folds(11, 0).unwrap();
        for f in &folds {
            for (i, j) in (0..11).flat_map(|i| (0..11).map(move |j| (i, j))) {
                if groups[i] == groups[j] {
                    assert_eq!(f.test.get(i), f.test.get(j));
                }
            }
        }
    }

    #[test]
    fn folds_are_those_of_the_seed() {
        let tests = |seed| -> Vec<Vec<usize>> {
            let folds = Protocol::Folds(3).folds(20, seed).unwrap();
            folds.iter().map(|f| f.test.indices(true)).collect()
        };
        assert_eq!(tests(4), tests(4));
        assert_ne!(tests(4), tests(5));
    }

    #[test]
    fn what_is_ordered_is_learnt_from_before_it_is_tested_on() {
        // the second moment is the earlier one: its clock is ahead
        let keys: Vec<Key> =
            texts(&["10", "2", "2024-01-02T00:30Z", "1", "30", "2024-01-02T01:00+02:00"])
                .into_iter()
                .map(|cell| Key::of(cell, "t", &ReadOptions::default()))
                .collect();
        let folds = Protocol::Ordered(2, keys).folds(6, 0).unwrap();
        // 1, 2 | 10, 30 | the dates, the earlier first
        assert_eq!(folds[0].train.indices(true), [1, 3]);
        assert_eq!(folds[0].test.indices(true), [0, 4]);
        assert_eq!(folds[1].train.indices(true), [0, 1, 3, 4]);
        assert_eq!(folds[1].test.indices(true), [2, 5]);
    }

    #[test]
    fn too_few_rows_or_groups_are_refused() {
        assert!(Protocol::Folds(4).folds(3, 0).is_err());
        assert!(Protocol::Groups(3, texts(&["a", "a", "b"])).folds(3, 0).is_err());
        assert!(Protocol::Ordered(3, vec![Key::Number(0.0); 3]).folds(3, 0).is_err());
    }
}
