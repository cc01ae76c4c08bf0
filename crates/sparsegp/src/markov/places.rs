//! What is known of the function at any places, given the rows.

use super::filter::{Filter, Passed, State, Steps};
use super::kept::Sized;
use super::small::{Square, Vector, dot, product, times, transposed_times};
use super::smoother::Adjoint;
use super::{BLOCK, Marginals, Places, Rows, Sorted, Start, with_size};
use crate::error::Result;
use crate::kernels::StateSpace;
use crate::linalg::{Mat, MatRef, RowRef, each};
use std::fmt::Debug;
use std::sync::Arc;

/// Means (B×P) and variances of a function at places.
pub type Moments = (Mat<f64>, Vec<f64>);

/// A function given rows.
#[derive(Clone, Debug)]
pub struct Smoothed {
    own: Arc<dyn Known>,
}

/// What is known, whatever the size of the state.
trait Known: Debug + Send + Sync {
    fn time(&self) -> usize;
    fn moments(&self, places: Places<'_>) -> Result<Moments>;
    fn terms(&self, places: Places<'_>) -> Result<Vec<Moments>>;
    fn at_rows(&self) -> Result<Marginals>;
    fn log_evidence(&self) -> f64;
    fn joint(&self, places: Places<'_>) -> Result<(Mat<f64>, Mat<f64>)>;
    fn start(&self) -> Option<&Start>;
    fn with(&self, rows: Rows<'_>) -> Result<Arc<dyn Known>>;
    fn without_first(&self, blocks: usize) -> (f64, Arc<dyn Known>);
}

impl Smoothed {
    /// Conditions on rows, in the order of their places.
    ///
    /// # Errors
    /// As for [`super::log_evidence`].
    pub fn new(
        space: Box<dyn StateSpace>,
        rows: Rows<'_>,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let space = Arc::from(space);
        with_size!(StateSpace::size(&*space), N => Ok(Self { own: Arc::new(Sized::<N>::new(space, rows, go_on)?) }))
    }

    /// Takes up rows behind the last one, in the order of their places, at a cost of only these
    /// rows, but for copies.
    ///
    /// # Errors
    /// As for [`super::log_evidence`].
    pub fn with(&self, rows: Rows<'_>) -> Result<Self> {
        Ok(Self { own: self.own.with(rows)? })
    }

    /// Lets the first rows go, of which the state after them stays: so many at most, in whole blocks. Returns how many went, what they
    /// add to the log density, and what is known from there on.
    pub fn without_first(&self, most: usize) -> (usize, f64, Self) {
        let blocks = most / BLOCK;
        let (value, own) = self.own.without_first(blocks);
        (blocks * BLOCK, value, Self { own })
    }

    /// Returns the input that is the time.
    pub fn time(&self) -> usize {
        self.own.time()
    }

    /// Returns the state after rows that were let go, if some were.
    pub fn start(&self) -> Option<&Start> {
        self.own.start()
    }

    /// Returns rows of inputs in the order of their times, none of which is before what is known.
    fn sorted(&self, x: MatRef<'_, f64>) -> Result<Sorted> {
        let time = self.time();
        if let Some(start) = self.start() {
            start.check(x, time)?;
        }
        Ok(Sorted::new(x, time))
    }

    /// Returns means (B×P) and variances of the function at rows of inputs (B×D) in any order. O(1) for each, in blocks of the
    /// rows that are known.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for places before rows that were let go.
    pub fn moments(&self, x: MatRef<'_, f64>) -> Result<Moments> {
        let sorted = self.sorted(x)?;
        Ok(unsorted(&sorted.order, self.own.moments(sorted.places())?))
    }

    /// Returns means (B×P) and variances of the summands of the function, in the order of
    /// [`crate::kernels::Kernel::terms`], at rows of inputs (B×D) in any order.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for places before rows that were let go.
    pub fn terms(&self, x: MatRef<'_, f64>) -> Result<Vec<Moments>> {
        let sorted = self.sorted(x)?;
        let all = self.own.terms(sorted.places())?.into_iter();
        Ok(all.map(|own| unsorted(&sorted.order, own)).collect())
    }

    /// Returns the log density of the rows.
    pub fn log_evidence(&self) -> f64 {
        self.own.log_evidence()
    }

    /// Returns what is known at the rows, in their order.
    ///
    /// # Errors
    /// None: the rows were passed before.
    pub fn at_rows(&self) -> Result<Marginals> {
        self.own.at_rows()
    }

    /// Returns means (B×P) and the covariance (B×B) of the function at rows of inputs (B×D) in any order.
    /// O(N + B²).
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] for places before rows that were let go.
    pub fn joint(&self, x: MatRef<'_, f64>) -> Result<(Mat<f64>, Mat<f64>)> {
        let sorted = self.sorted(x)?;
        let (means, all) = self.own.joint(sorted.places())?;
        let (mut mean, mut covariance) =
            (Mat::zeros(x.nrows(), means.ncols()), Mat::zeros(x.nrows(), x.nrows()));
        let order = &sorted.order;
        for (a, i) in order.iter().enumerate() {
            (0..means.ncols()).for_each(|p| mean[(*i, p)] = means[(a, p)]);
            order.iter().enumerate().for_each(|(b, j)| covariance[(*i, *j)] = all[(a, b)]);
        }
        Ok((mean, covariance))
    }
}

/// Returns the moments of sorted places, in the order that the places had.
pub(crate) fn unsorted(order: &[usize], (means, variances): Moments) -> Moments {
    let (mut mean, mut variance) = (means.clone(), variances.clone());
    for (at, i) in order.iter().enumerate() {
        (0..means.ncols()).for_each(|p| mean[(*i, p)] = means[(at, p)]);
        variance[*i] = variances[at];
    }
    (mean, variance)
}

/// A place between rows: the state given the rows before it, and what those after it say.
struct Place<const N: usize> {
    h: Vector<N>,
    state: State<N>,
    after: Adjoint<N>,
    /// Ph.
    image: Vector<N>,
}

impl<const N: usize> Place<N> {
    fn means(&self) -> Vec<f64> {
        let both = self.state.mean.iter().zip(&self.after.r);
        both.map(|(m, r)| dot(&self.h, m) + dot(&self.image, r)).collect()
    }

    fn variance(&self) -> f64 {
        let explained = dot(&self.image, &times(&self.after.n, &self.image));
        (dot(&self.h, &self.image) - explained).max(0.0)
    }

    /// Returns h − NPh, by which errors of the state before move the function.
    fn left(&self) -> Vector<N> {
        let (mut left, explained) = (self.h, times(&self.after.n, &self.image));
        (0..N).for_each(|i| left[i] -= explained[i]);
        left
    }
}

impl<const N: usize> Sized<N> {
    /// Returns the block of the last row at or before a place; the first where there is none.
    fn block_of(&self, t: f64) -> usize {
        self.rows.t().partition_point(|own| *own <= t).saturating_sub(1) / BLOCK
    }

    /// Returns what is known at places whose times do not fall, as `take` sees it.
    fn places<T: Send>(
        &self,
        places: Places<'_>,
        take: &(dyn Fn(RowRef<'_, f64>, Place<N>) -> T + Sync),
    ) -> Result<Vec<T>> {
        let alike = |a: &f64, b: &f64| self.block_of(*a) == self.block_of(*b);
        let mut first = 0;
        let by_block: Vec<Places<'_>> = places
            .t()
            .chunk_by(alike)
            .map(|own| {
                first += own.len();
                places.part(first - own.len()..first)
            })
            .collect();
        let parts: Result<Vec<Vec<T>>> =
            each(by_block.len(), |b| self.places_in(by_block[b], take)).into_iter().collect();
        Ok(parts?.into_iter().flatten().collect())
    }

    /// Returns the same within one block.
    fn places_in<T>(
        &self,
        places: Places<'_>,
        take: &dyn Fn(RowRef<'_, f64>, Place<N>) -> T,
    ) -> Result<Vec<T>> {
        let (t, known) = (places.t(), self.rows.t());
        let (n, block) = (known.len(), self.block_of(t[0]));
        let range = block * BLOCK..(block * BLOCK + BLOCK).min(n);
        let (start, end) = (range.start, range.end);
        let (seen, mut kept) = (self.rows.rows(), vec![Passed::empty(); range.len()]);
        let mut filter: Filter<'_, N> = Filter::new(&*self.space, &seen);
        let mut steps: Steps<'_, N> = Steps::new(&*self.space);
        let unseen = filter.state.clone();
        let begin = self.rows.start.as_ref().map(|own| own.t);
        if end < n {
            steps.of(known[end] - known[end - 1]);
        }
        let step = (end < n).then(|| Arc::clone(&steps.a));
        let after = self.after(block)?;
        let (before, last) = (&self.forwards[block], after.clone());
        let all = Self::back(&mut filter, before, range, step, after, &mut kept)?;
        let one = |(k, at): (usize, &f64)| {
            // rows at or before the place
            let count = known.partition_point(|own| own <= at);
            let state = match count.checked_sub(1) {
                None => {
                    let mut state = unseen.clone();
                    if let Some(begin) = begin {
                        steps.of(at - begin);
                        steps.advance(&mut state);
                    }
                    state
                }
                Some(i) => {
                    let mut state = kept[i - start].after.clone();
                    steps.of(at - known[i]);
                    steps.advance(&mut state);
                    state
                }
            };
            let mut after = if count < end { all[count - start].clone() } else { last.clone() };
            if count < n {
                steps.of(known[count] - at);
                after.back(&steps.a, &steps.blocks);
            }
            let x = places.row(k);
            let h = steps.output(x);
            let image = times(&state.covariance, &h);
            take(x, Place { h, state, after, image })
        };
        Ok(t.iter().enumerate().map(one).collect())
    }

    /// Returns for each place but the first, by what errors of the state at the one before move the
    /// state there.
    fn moves(&self, t: &[f64]) -> Result<Vec<Square<N>>> {
        let (seen, known) = (self.rows.rows(), self.rows.t());
        let mut filter: Filter<'_, N> = Filter::new(&*self.space, &seen);
        let mut steps: Steps<'_, N> = Steps::new(&*self.space);
        let mut kept = vec![Passed::empty(); 1];
        let mut next = usize::MAX;
        let mut all = Vec::with_capacity(t.len());
        for pair in t.windows(2) {
            let of = |at: f64| known.partition_point(|own| *own <= at);
            let (first, last) = (of(pair[0]), of(pair[1]));
            let mut from = pair[0];
            let mut moved: Option<Square<N>> = None;
            for (i, own_t) in (first..last).zip(&known[first..last]) {
                if next != i {
                    // from the beginning of a block
                    let block = i / BLOCK;
                    filter.state.clone_from(&self.forwards[block]);
                    filter.pass(block * BLOCK..i, &mut [])?;
                }
                filter.pass(i..i + 1, &mut kept)?;
                next = i + 1;
                steps.of(own_t - from);
                let mut own = match &moved {
                    None => *steps.a,
                    Some(moved) => product(&steps.a, moved),
                };
                let (h, gain) = (kept[0].h, kept[0].gain);
                let along = transposed_times(&own, &h);
                for r in 0..N {
                    (0..N).for_each(|c| own[r][c] -= gain[r] * along[c]);
                }
                moved = Some(own);
                from = *own_t;
            }
            steps.of(pair[1] - from);
            all.push(match &moved {
                None => *steps.a,
                Some(moved) => product(&steps.a, moved),
            });
        }
        Ok(all)
    }
}

impl<const N: usize> Known for Sized<N> {
    fn time(&self) -> usize {
        self.rows.places().time()
    }

    fn moments(&self, places: Places<'_>) -> Result<Moments> {
        let all = self.places(places, &|_, place| (place.means(), place.variance()))?;
        let mean = Mat::from_fn(places.len(), self.rows.y.ncols(), |i, p| all[i].0[p]);
        Ok((mean, all.iter().map(|own| own.1).collect()))
    }

    fn terms(&self, places: Places<'_>) -> Result<Vec<Moments>> {
        let n = self.space.size();
        let take = |x: RowRef<'_, f64>, place: Place<N>| {
            let mut outputs = Vec::new();
            self.space.terms(x, (0, n), &mut outputs);
            let of = |own: Vec<f64>| {
                let mut h = [0.0; N];
                h[..n].copy_from_slice(&own);
                let image = times(&place.state.covariance, &h);
                let place =
                    Place { h, image, state: place.state.clone(), after: place.after.clone() };
                (place.means(), place.variance())
            };
            outputs.into_iter().map(of).collect::<Vec<_>>()
        };
        let all = self.places(places, &take)?;
        let count = all.first().map_or(0, Vec::len);
        let of = |term: usize| {
            let mean = |i: usize, p: usize| all[i][term].0[p];
            let mean = Mat::from_fn(places.len(), self.rows.y.ncols(), mean);
            (mean, all.iter().map(|own| own[term].1).collect())
        };
        Ok((0..count).map(of).collect())
    }

    fn log_evidence(&self) -> f64 {
        self.values.iter().sum()
    }

    fn start(&self) -> Option<&Start> {
        self.rows.start.as_ref()
    }

    fn with(&self, rows: Rows<'_>) -> Result<Arc<dyn Known>> {
        Ok(Arc::new(Sized::with(self, rows)?))
    }

    fn without_first(&self, blocks: usize) -> (f64, Arc<dyn Known>) {
        let (value, own) = Sized::without_first(self, blocks);
        (value, Arc::new(own))
    }

    fn at_rows(&self) -> Result<Marginals> {
        super::marginals_of::<N>(&*self.space, self.rows.rows(), &|| Ok(()))
    }

    fn joint(&self, places: Places<'_>) -> Result<(Mat<f64>, Mat<f64>)> {
        let t = places.t();
        let take = |_: RowRef<'_, f64>, place: Place<N>| {
            (place.means(), place.variance(), place.image, place.left())
        };
        let (places, moves) = (self.places(places, &take)?, self.moves(t)?);
        let mean = Mat::from_fn(t.len(), self.rows.y.ncols(), |i, p| places[i].0[p]);
        let column = |a: usize| {
            let mut image = places[a].2;
            let mut own = vec![places[a].1];
            for b in a + 1..t.len() {
                image = times(&moves[b - 1], &image);
                own.push(dot(&image, &places[b].3));
            }
            own
        };
        let all: Vec<Vec<f64>> = each(t.len(), column);
        let covariance = Mat::from_fn(t.len(), t.len(), |i, j| all[i.min(j)][i.abs_diff(j)]);
        Ok((mean, covariance))
    }
}
