//! Forwards over rows: the Kalman filter.
//!
//! With m, P of the state before a row whose output is h and whose noise has the variance s,
//!
//! ```text
//! S = hᵀPh + s      K = Ph/S      v = y − hᵀm      m ← m + Kv      P ← (I − Khᵀ)P(I − Khᵀ)ᵀ + sKKᵀ
//! ```
//!
//! Joseph's form of the last keeps P positive semi-definite; the evidence is −½ Σ {log 2π|S| + v²/S}.
//! A row of infinite s is missing; one of negative s, a factor of the function that grows away from y, needs S < 0 (for it to leave
//! a density).

use super::small::{Blocks, Square, Vector, dot, read, symmetrise, times, zeros};
use super::{Rows, Start, unknown_variance};
use crate::error::Result;
use crate::kernels::StateSpace;
use crate::linalg::{Mat, RowRef};
use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::Arc;

/// A and Q of a step, kept while steps are alike.
pub(super) struct Steps<'a, const N: usize> {
    pub(super) space: &'a dyn StateSpace,
    pub(super) blocks: Blocks<N>,
    length: f64,
    /// Rows that it leads to keep it.
    pub(super) a: Arc<Square<N>>,
    pub(super) q: Square<N>,
    /// H where it is the same everywhere.
    h: Option<Vector<N>>,
    scratch: Vec<f64>,
}

impl<'a, const N: usize> Steps<'a, N> {
    pub(super) fn new(space: &'a dyn StateSpace) -> Self {
        let scratch = vec![0.0; space.size().pow(2).max(space.size())];
        let blocks = Blocks::new(&space.blocks());
        let (length, a) = (f64::NAN, Arc::new(zeros()));
        let mut own = Self { space, blocks, length, a, q: zeros(), h: None, scratch };
        own.h = (!space.output_moves()).then(|| own.output(RowRef::from_slice(&[])));
        own
    }

    /// Takes the steps of this length.
    pub(super) fn of(&mut self, length: f64) {
        if self.length.to_bits() != length.to_bits() {
            let n = self.space.size();
            self.length = length;
            self.space.transition(length, &mut self.scratch[..n * n]);
            if Arc::get_mut(&mut self.a).is_none() {
                self.a = Arc::new(zeros());
            }
            let own = Arc::get_mut(&mut self.a).expect("the only owner");
            read(&self.scratch, n, own);
            self.space.noise(length, &mut self.scratch[..n * n]);
            read(&self.scratch, n, &mut self.q);
        }
    }

    /// Returns P at every place before rows are seen.
    pub(super) fn stationary(&mut self) -> Square<N> {
        let (n, mut p) = (self.space.size(), zeros());
        self.space.stationary(&mut self.scratch[..n * n]);
        read(&self.scratch, n, &mut p);
        p
    }

    pub(super) fn output(&mut self, x: RowRef<'_, f64>) -> Vector<N> {
        if let Some(h) = self.h {
            return h;
        }
        let (n, mut h) = (self.space.size(), [0.0; N]);
        self.space.output(x, &mut h[..n]);
        h
    }

    /// Moves a state by a step of [`Steps::of`].
    pub(super) fn advance(&self, state: &mut State<N>) {
        state.mean.iter_mut().for_each(|m| *m = self.blocks.times(&self.a, m));
        self.blocks.sandwich(&self.a, &mut state.covariance);
        for i in 0..N {
            for j in 0..N {
                state.covariance[i][j] += self.q[i][j];
            }
        }
    }
}

/// What is known of the state at a place: a mean for every target column, and the covariance.
#[derive(Debug)]
pub(super) struct State<const N: usize> {
    pub(super) mean: Vec<Vector<N>>,
    pub(super) covariance: Square<N>,
}

impl<const N: usize> Clone for State<N> {
    fn clone(&self) -> Self {
        Self { mean: self.mean.clone(), covariance: self.covariance }
    }

    fn clone_from(&mut self, from: &Self) {
        self.mean.clone_from(&from.mean);
        self.covariance = from.covariance;
    }
}

/// A row on the way forwards.
#[derive(Clone, Debug)]
pub(super) struct Passed<const N: usize> {
    /// From the row before.
    pub(super) a: Arc<Square<N>>,
    pub(super) h: Vector<N>,
    /// Before the row is seen.
    pub(super) before: State<N>,
    /// After it.
    pub(super) after: State<N>,
    pub(super) gain: Vector<N>,
    /// S.
    pub(super) spread: f64,
    /// v of every column.
    pub(super) innovations: Vec<f64>,
}

impl<const N: usize> Passed<N> {
    pub(super) fn empty() -> Self {
        let none = || State { mean: Vec::new(), covariance: zeros() };
        let [h, gain] = [[0.0; N]; 2];
        Self {
            a: Arc::new(zeros()),
            h,
            before: none(),
            after: none(),
            gain,
            spread: 0.0,
            innovations: Vec::new(),
        }
    }
}

impl<const N: usize> State<N> {
    /// Returns the state after rows that are not there.
    pub(super) fn after(start: &Start) -> Self {
        let n = start.covariance.nrows();
        let mut state = State { mean: vec![[0.0; N]; start.mean.ncols()], covariance: zeros() };
        for i in 0..n {
            (0..n).for_each(|j| state.covariance[i][j] = start.covariance[(i, j)]);
            state.mean.iter_mut().enumerate().for_each(|(p, m)| m[i] = start.mean[(i, p)]);
        }
        state
    }

    /// Returns the first n numbers of the state at a place.
    pub(super) fn start(&self, t: f64, n: usize) -> Start {
        Start {
            t,
            mean: Mat::from_fn(n, self.mean.len(), |i, p| self.mean[p][i]),
            covariance: Mat::from_fn(n, n, |i, j| self.covariance[i][j]),
        }
    }

    /// Takes in a row. Returns K, S and the v.
    pub(super) fn see(
        &mut self,
        h: &Vector<N>,
        targets: impl Iterator<Item = f64>,
        noise: f64,
        innovations: &mut Vec<f64>,
    ) -> (Vector<N>, f64) {
        let image = times(&self.covariance, h);
        let spread = dot(h, &image) + noise;
        innovations.clear();
        if spread == f64::INFINITY {
            innovations.resize(self.mean.len(), 0.0);
            return ([0.0; N], spread);
        }
        let mut gain = image;
        gain.iter_mut().for_each(|g| *g /= spread);
        for (m, y) in self.mean.iter_mut().zip(targets) {
            let v = y - dot(h, m);
            (0..N).for_each(|i| m[i] += gain[i] * v);
            innovations.push(v);
        }
        let p = &mut self.covariance;
        for i in 0..N {
            for j in 0..N {
                p[i][j] -= gain[i] * image[j];
            }
        }
        let left = times(p, h);
        for i in 0..N {
            for j in 0..N {
                p[i][j] += (noise * gain[i] - left[i]) * gain[j];
            }
        }
        symmetrise(p);
        (gain, spread)
    }
}

/// The filter over rows, from where it stands.
pub(super) struct Filter<'a, const N: usize> {
    pub(super) steps: Steps<'a, N>,
    rows: &'a Rows<'a>,
    pub(super) state: State<N>,
    /// −½ Σ {log 2π|S| + v²/S} of the rows so far.
    pub(super) value: f64,
}

impl<'a, const N: usize> Filter<'a, N> {
    /// Creates the filter before the first row, at the place of its `start` if there is one.
    pub(super) fn new(space: &'a dyn StateSpace, rows: &'a Rows<'a>) -> Self {
        let mut steps = Steps::new(space);
        let state = match rows.start {
            Some(start) => State::after(start),
            None => State { mean: vec![[0.0; N]; rows.y.ncols()], covariance: steps.stationary() },
        };
        Self { steps, rows, state, value: 0.0 }
    }

    /// Passes rows, and writes what it sees into the first of `kept`, if there are any.
    ///
    /// # Errors
    /// [`crate::Error::NotPositiveDefinite`] where a row has no variance, or one that is not finite.
    pub(super) fn pass(&mut self, range: Range<usize>, kept: &mut [Passed<N>]) -> Result<()> {
        let (columns, first) = (self.rows.y.ncols(), range.start);
        let (places, t) = (self.rows.places, self.rows.places.t());
        let mut innovations = Vec::with_capacity(columns);
        for i in range {
            let before = match i {
                0 => self.rows.start.map(|start| start.t),
                _ => Some(t[i - 1]),
            };
            if let Some(before) = before {
                self.steps.of(t[i] - before);
                self.steps.advance(&mut self.state);
            }
            let h = self.steps.output(places.row(i));
            let mut row = kept.get_mut(i - first);
            if let Some(row) = &mut row {
                row.before.clone_from(&self.state);
            }
            let targets = (0..columns).map(|p| self.rows.y[(i, p)]);
            let (gain, spread) = self.state.see(&h, targets, self.rows.noise[i], &mut innovations);
            let sign = spread * self.rows.noise[i].signum();
            if sign <= 0.0 || sign.is_nan() {
                return Err(unknown_variance(t.len(), i));
            }
            if spread != f64::INFINITY {
                let squares: f64 = innovations.iter().map(|v| v * v).sum();
                let log = (TAU * spread.abs()).ln();
                self.value -= 0.5 * (columns as f64 * log + squares / spread);
            }
            if let Some(row) = row {
                row.a.clone_from(&self.steps.a);
                (row.h, row.gain, row.spread) = (h, gain, spread);
                row.after.clone_from(&self.state);
                row.innovations.clone_from(&innovations);
            }
        }
        Ok(())
    }
}
