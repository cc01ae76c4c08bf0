//! Old rows that are kept with what each of them said.
//!
//! A site of a row whose noise is not Gaussian holds near the q that it was found at. Of a class that was certain it says
//! next to nothing there, though its likelihood is a wall further away: rows that contradict it would meet no
//! resistance. So a random sample of all rows stays, and their sites are found again together with
//! those of new rows; only the sites of the others are held.

use crate::data::InMemory;
use crate::linalg::Mat;
use crate::rng;

/// Most rows that are kept.
const MOST: usize = 512;

/// A random sample of the rows that were taken up, on the model's scale, with their sites.
#[derive(Clone, Debug)]
pub struct KeptRows {
    /// The rows; weights and further numbers are there for all of them or for none.
    pub rows: InMemory,
    /// λ and β of the rows, of every latent function.
    pub first: Vec<Vec<f64>>,
    /// β.
    pub second: Vec<Vec<f64>>,
    /// Random numbers of the rows: those with the largest stay.
    pub ranks: Vec<f64>,
}

impl Default for KeptRows {
    fn default() -> Self {
        let none = Mat::zeros(0, 0);
        let rows = InMemory { x: none.clone(), y: none, weights: Vec::new(), extra: Vec::new() };
        Self { rows, first: Vec::new(), second: Vec::new(), ranks: Vec::new() }
    }
}

impl KeptRows {
    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.ranks.len()
    }

    /// Returns these rows with others behind them.
    pub(super) fn with(&self, part: &InMemory) -> InMemory {
        let (k, n) = (self.count(), part.x.nrows());
        if k == 0 {
            return part.clone();
        }
        let stacked = |a: &Mat<f64>, b: &Mat<f64>| {
            Mat::from_fn(k + n, b.ncols(), |i, j| if i < k { a[(i, j)] } else { b[(i - k, j)] })
        };
        let joined = |a: &[f64], b: &[f64]| match a.is_empty() && b.is_empty() {
            true => Vec::new(),
            false => {
                let or_ones = |own: &[f64], count| match own.is_empty() {
                    true => vec![1.0; count],
                    false => own.to_vec(),
                };
                [or_ones(a, k), or_ones(b, n)].concat()
            }
        };
        let own = &self.rows;
        InMemory {
            x: stacked(&own.x, &part.x),
            y: stacked(&own.y, &part.y),
            weights: joined(&own.weights, &part.weights),
            // a likelihood has them for all rows or none
            extra: [&own.extra[..], &part.extra[..]].concat(),
        }
    }

    /// Forgets: what rows said, and how much they count, times `factor`.
    pub(super) fn forget(&mut self, factor: f64) {
        if self.count() == 0 {
            return;
        }
        if self.rows.weights.is_empty() {
            self.rows.weights = vec![1.0; self.count()];
        }
        let sites = self.first.iter_mut().chain(&mut self.second);
        sites.chain([&mut self.rows.weights]).flatten().for_each(|own| *own *= factor);
    }

    /// Draws the sample of all rows, of which these are the first, without their sites, and which
    /// of them are in it.
    pub(super) fn sampled(&self, all: &InMemory, (seed, seen): (u64, usize)) -> (Self, Vec<bool>) {
        let n = all.x.nrows();
        let mut rng = rng::stream(seed, &format!("kept rows after {seen}"));
        let new = (self.count()..n).map(|_| rng::uniform(&mut rng));
        let ranks: Vec<f64> = self.ranks.iter().copied().chain(new).collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| ranks[*b].total_cmp(&ranks[*a]));
        order.truncate(MOST);
        order.sort_unstable();
        let mut stays = vec![false; n];
        order.iter().for_each(|i| stays[*i] = true);
        let some = |own: &[f64]| -> Vec<f64> {
            order.iter().filter_map(|i| own.get(*i).copied()).collect()
        };
        let rows_of = |a: &Mat<f64>| Mat::from_fn(order.len(), a.ncols(), |i, j| a[(order[i], j)]);
        let rows = InMemory {
            x: rows_of(&all.x),
            y: rows_of(&all.y),
            weights: some(&all.weights),
            extra: some(&all.extra),
        };
        (Self { rows, ranks: some(&ranks), ..Self::default() }, stays)
    }
}
