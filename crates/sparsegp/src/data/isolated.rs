//! Values that lie far from all others of their column: codes for missing values such as −999, and gross errors.
//!
//! A column is judged by a sample of its rows and by its smallest and largest distinct values. The body of the values
//! grows outwards from the middle nine tenths (less where one extreme value is repeated more often than that): a value
//! belongs to it unless the gap before it is more than ten times what the body spans. A geometric grid of steps of ten is whole by this rule,
//! and a column of few values that is isolated at both ends is one of a design.

/// A value that is isolated, or several on one side.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Isolated {
    /// Index of the column among inputs, or among targets.
    pub column: usize,
    /// Whether it is a target.
    pub target: bool,
    /// The values, at most eight on either side, with the number of rows that have them.
    pub values: Vec<(f64, usize)>,
    /// Least and largest of all other values.
    pub body: (f64, f64),
}

/// How many times the span of the body a gap must be.
const GAP: f64 = 10.0;
/// Part of the rows on either side that the middle is without.
const TAIL: f64 = 0.05;
/// Part of the rows that one extreme value may have and still be a code.
const CODE: f64 = 0.4;
/// Rows of which nothing is said.
const FEW: f64 = 20.0;
/// Distinct values that are kept at either end of a column.
const ENDS: usize = 8;
/// Rows of the sample, at most.
const SAMPLE: usize = 4096;
/// Numbers of the sample, at most (32 MB), and its rows then.
const NUMBERS: usize = 1 << 22;
const FEWEST: usize = 64;

/// What [`Isolated`] values are found by: gathered in one pass, row by row, whatever the chunks.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Sketch {
    rows: u64,
    /// Every 2^thinned-th row is in the sample, by a hash of its number.
    thinned: u32,
    places: Vec<u64>,
    columns: Vec<Column>,
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Column {
    sample: Vec<f64>,
    /// Distinct values with their numbers of rows, from the outermost inwards.
    low: Vec<(f64, usize)>,
    high: Vec<(f64, usize)>,
}

impl Column {
    fn push(&mut self, value: f64) {
        push_end(&mut self.low, value, |a, b| a < b);
        push_end(&mut self.high, value, |a, b| a > b);
    }
}

fn push_end(end: &mut Vec<(f64, usize)>, value: f64, before: impl Fn(f64, f64) -> bool) {
    if end.len() == ENDS && before(end[ENDS - 1].0, value) {
        return;
    }
    let at = end.partition_point(|&(other, _)| before(other, value));
    match end.get_mut(at) {
        Some((other, count)) if *other == value => *count += 1,
        _ => {
            end.insert(at, (value, 1));
            end.truncate(ENDS);
        }
    }
}

/// Returns bits that do not follow the order of rows (Steele, Lea & Flood 2014, the finaliser of
/// SplitMix64).
fn hash(row: u64) -> u64 {
    let mut z = row.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Sketch {
    pub fn new(columns: usize) -> Self {
        let columns = vec![Column::default(); columns];
        Self { rows: 0, thinned: 0, places: Vec::new(), columns }
    }

    /// Returns whether it is of so many columns, with a sample of every one.
    pub fn fits(&self, columns: usize) -> bool {
        let sampled = |column: &Column| column.sample.len() == self.places.len();
        let ends = |column: &Column| column.low.len() <= ENDS && column.high.len() <= ENDS;
        self.columns.len() == columns
            && self.thinned < u64::BITS
            && self.columns.iter().all(|own| sampled(own) && ends(own))
    }

    /// Adds rows; `value` gives the number of a column in one of them. What is missing is NaN.
    pub fn add_rows(&mut self, rows: usize, value: impl Fn(usize, usize) -> f64) {
        for (j, column) in self.columns.iter_mut().enumerate() {
            (0..rows).map(|i| value(j, i)).filter(|v| !v.is_nan()).for_each(|v| column.push(v));
        }
        for i in 0..rows {
            let place = self.rows + i as u64;
            if !self.has(place) {
                continue;
            }
            self.places.push(place);
            for (j, column) in self.columns.iter_mut().enumerate() {
                // infinite numbers are nobody's: these stand for what is missing, and equal themselves
                let value = value(j, i);
                column.sample.push(if value.is_nan() { f64::INFINITY } else { value });
            }
            let most = (NUMBERS / self.columns.len().max(1)).clamp(FEWEST, SAMPLE);
            while self.places.len() > most {
                self.thinned += 1;
                self.thin();
            }
        }
        self.rows += rows as u64;
    }

    fn has(&self, place: u64) -> bool {
        hash(place) & ((1 << self.thinned) - 1) == 0
    }

    fn thin(&mut self) {
        let kept: Vec<bool> = self.places.iter().map(|&place| self.has(place)).collect();
        for column in &mut self.columns {
            let mut flags = kept.iter();
            column.sample.retain(|_| flags.next() == Some(&true));
        }
        let mut flags = kept.iter();
        self.places.retain(|_| flags.next() == Some(&true));
    }

    /// Adds what another has seen of further rows.
    pub fn merge(&mut self, other: &Self) {
        let thinned = self.thinned.max(other.thinned);
        let mut other = other.clone();
        for own in [&mut *self, &mut other] {
            own.thinned = thinned;
            own.thin();
        }
        for (own, more) in self.columns.iter_mut().zip(other.columns) {
            own.sample.extend(more.sample);
            for &(value, count) in &more.low {
                (0..count).for_each(|_| push_end(&mut own.low, value, |a, b| a < b));
            }
            for &(value, count) in &more.high {
                (0..count).for_each(|_| push_end(&mut own.high, value, |a, b| a > b));
            }
        }
        self.places.extend(other.places);
        self.rows += other.rows;
    }

    /// Returns the isolated values of every column that has some; the first `inputs` columns are
    /// inputs.
    pub fn isolated(&self, inputs: usize) -> Vec<Isolated> {
        let mut found = Vec::new();
        for (j, column) in self.columns.iter().enumerate() {
            let (values, seam) = column.values(self.thinned);
            if let Some(body) = body(&values, seam) {
                let ends = [values[0].0 < body.0, values[values.len() - 1].0 > body.1];
                if ends == [true; 2] && values.len() < ENDS {
                    // levels of a design
                    continue;
                }
                let far = values.iter().filter(|v| v.0 < body.0 || v.0 > body.1).copied();
                let target = j >= inputs;
                let column = if target { j - inputs } else { j };
                found.push(Isolated { column, target, values: far.collect(), body });
            }
        }
        found
    }
}

/// Two neighbours (the indices of the lower ones) between which there may be values that nobody kept.
type Seam = [Option<usize>; 2];

impl Column {
    /// Returns the distinct values in order, with their numbers of rows: exact at the ends, by the
    /// sample between.
    fn values(&self, thinned: u32) -> (Vec<(f64, usize)>, Seam) {
        if self.low.len() < ENDS {
            return (self.low.clone(), [None; 2]);
        }
        let (low, high) = (self.low[ENDS - 1].0, self.high[ENDS - 1].0);
        let mut between: Vec<f64> =
            self.sample.iter().copied().filter(|v| *v > low && *v < high).collect();
        between.sort_unstable_by(f64::total_cmp);
        let mut values = self.low.clone();
        for value in between {
            match values.last_mut() {
                Some((last, count)) if *last == value => *count += 1 << thinned,
                _ => values.push((value, 1 << thinned)),
            }
        }
        let upper = values.len() - 1;
        // few distinct values may be at both ends
        let last = values[upper].0;
        values.extend(self.high.iter().rev().filter(|(value, _)| *value > last.max(low)));
        let seam = match thinned {
            0 => [None; 2],
            _ => [Some(ENDS - 1), Some(upper)],
        };
        (values, seam)
    }
}

/// Returns the least and largest value of the body, if something is outside.
fn body(values: &[(f64, usize)], seam: Seam) -> Option<(f64, f64)> {
    let (mut first, mut end) = (0, values.len());
    // where one code is gone another may show
    for _ in 0..4 {
        let Some((from, to)) = grown(values, seam, first, end) else { break };
        if (from, to) == (first, end) {
            break;
        }
        (first, end) = (from, to);
    }
    (first > 0 || end < values.len()).then(|| (values[first].0, values[end - 1].0))
}

/// Returns what is left of the values `first..end`.
fn grown(values: &[(f64, usize)], seam: Seam, first: usize, end: usize) -> Option<(usize, usize)> {
    let own = &values[first..end];
    let rows = own.iter().map(|v| v.1).sum::<usize>() as f64;
    if rows < FEW {
        return None;
    }
    // how many distinct values the middle is without at one side
    let tail = |counts: &mut dyn Iterator<Item = usize>| {
        let (mut left, mut taken) = (TAIL * rows, 0);
        for count in counts {
            let count = count as f64;
            if count > left {
                // a value that many rows have is a tail by itself
                return taken + usize::from(count > TAIL * rows && count <= CODE * rows);
            }
            left -= count;
            taken += 1;
        }
        taken
    };
    let mut low = first + tail(&mut own.iter().map(|v| v.1));
    let mut high = end.checked_sub(1 + tail(&mut own.iter().rev().map(|v| v.1)))?;
    if low >= high {
        return None;
    }
    loop {
        // halves, as the span of all numbers overflows
        let span = values[high].0 / 2.0 - values[low].0 / 2.0;
        let joins = |lower: usize| {
            let gap = values[lower + 1].0 / 2.0 - values[lower].0 / 2.0;
            seam.contains(&Some(lower)) || gap <= GAP * span
        };
        if low > first && joins(low - 1) {
            low -= 1;
        } else if high + 1 < end && joins(high) {
            high += 1;
        } else {
            return Some((low, high + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform(n: usize) -> Vec<f64> {
        let mut generator = crate::rng::stream(1, "isolated");
        (0..n).map(|_| crate::rng::uniform(&mut generator)).collect()
    }

    fn found(values: &[f64]) -> Option<Isolated> {
        let mut sketch = Sketch::new(1);
        for part in values.chunks(1000) {
            sketch.add_rows(part.len(), |_, i| part[i]);
        }
        sketch.isolated(1).pop()
    }

    fn with(mut values: Vec<f64>, others: &[(f64, usize)]) -> Vec<f64> {
        for &(value, count) in others {
            let step = values.len() / (count + 1);
            (0..count).for_each(|k| values.insert((k + 1) * step, value));
        }
        values
    }

    fn scaled(n: usize, by: f64, plus: f64) -> Vec<f64> {
        uniform(n).into_iter().map(|v| plus + by * v).collect()
    }

    /// Five positions of a design, the outer ones far from the others; the same with one code is
    /// not a design.
    #[test]
    fn levels_of_a_design_are_not_codes() {
        let own = [(-2.62, 56), (-0.02, 42), (0.08, 140), (0.18, 14), (2.38, 56)];
        let of = |levels: &[(f64, usize)]| -> Vec<f64> {
            levels.iter().flat_map(|&(value, count)| vec![value; count]).collect()
        };
        assert_eq!(found(&of(&own)), None);
        let coded = found(&of(&[(-999.0, 20), (1.0, 90), (2.0, 90), (3.0, 90)])).unwrap();
        assert_eq!(coded.values, [(-999.0, 20)]);
    }

    #[test]
    fn codes_are_found_few_or_many_single_or_together_in_small_and_large_columns() {
        for n in [80, 300, 5000, 100_000] {
            let plain = scaled(n, 30.0, 0.0);
            for codes in [
                vec![(-999.0, 1)],
                vec![(-999.0, 3)],
                vec![(-9999.0, n / 3)],
                vec![(1e20, 2)],
                vec![(-1.797e308, 1)],
                vec![(-999.0, 3), (9999.0, 2)],
                vec![(-9999.0, n / 50), (-999.0, n / 5)],
            ] {
                let one = found(&with(plain.clone(), &codes)).unwrap();
                let mut values = one.values.clone();
                values.sort_by(|a, b| a.0.total_cmp(&b.0));
                assert_eq!(values, codes, "{n}");
                assert!(one.body.0 >= 0.0 && one.body.1 <= 30.0);
                assert_eq!((one.column, one.target), (0, false));
            }
        }
    }

    #[test]
    fn heavy_tails_grids_and_few_values_are_unchanged() {
        let normal_like = |n: usize| -> Vec<f64> {
            uniform(12 * n).chunks(12).map(|u| u.iter().sum::<f64>() - 6.0).collect()
        };
        let columns: Vec<Vec<f64>> = vec![
            scaled(300, 5.0, 1e6),
            normal_like(2000),
            // log-normal, exponential
            normal_like(3000).into_iter().map(|z| (2.0 * z).exp()).collect(),
            uniform(50_000).into_iter().map(|u| -u.ln()).collect(),
            // Pareto with index 1: the second largest is near half of the largest
            (0..20_000).map(|i| 1.0 / (i as f64 + 0.5)).collect(),
            (0..7 * 20).map(|i| 10f64.powi(i % 7)).collect(),
            (0..400).map(|i| f64::from(i % 2) * 1000.0).collect(),
            (0..400).map(|i| f64::from(u8::from(i % 40 == 7))).collect(),
            (0..400).map(|i| f64::from(i % 5)).collect(),
            vec![3.0; 100],
            vec![1.0, 2.0, 900.0],
            vec![],
        ];
        for (i, values) in columns.iter().enumerate() {
            assert_eq!(found(values), None, "{i}");
        }
    }

    #[test]
    fn chunks_and_missing_values_do_not_matter() {
        let values = with(scaled(30_000, 2.0, 5.0), &[(-999.0, 4)]);
        let mut whole = Sketch::new(2);
        whole.add_rows(values.len(), |j, i| if j == 0 { values[i] } else { f64::NAN });
        let mut parts = Sketch::new(2);
        for part in values.chunks(77) {
            parts.add_rows(part.len(), |j, i| if j == 0 { part[i] } else { f64::NAN });
        }
        assert!(whole == parts);
        assert!(whole.places.len() <= SAMPLE && whole.places.len() > SAMPLE / 3);
        let mut merged = Sketch::new(2);
        merged.merge(&whole);
        merged.merge(&parts);
        assert_eq!(merged.isolated(1)[0].values, [(-999.0, 8)]);
        assert_eq!(merged.isolated(0)[0].values, [(-999.0, 8)]);
    }
}
