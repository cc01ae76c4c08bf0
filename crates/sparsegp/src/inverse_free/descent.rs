//! The steps of [`super::Inversion`], in double or single precision.

use super::inversion::{Enough, Solved, Stopped, infinity_norm, scaled_identity};
use super::schedule::{Schedule, SolverOptions};
use crate::error::{Error, Result};
use crate::linalg::{
    Accum, Mat, MatRef, Real, Structure, by_columns, column, mirror_lower, par_for, shared, sized,
    sum_of_products,
};

const WHOLE: Structure = Structure::Rectangular;
const LOWER: Structure = Structure::TriangularLower;
const UPPER: Structure = Structure::TriangularUpper;

/// Most halvings of a step.
const HALVINGS: usize = 30;
/// Power iterations for λmax(H).
const POWER: usize = 8;
/// ‖E‖_F below which a unit step contracts: (3/2)‖E‖² + ‖E‖³/√2 < ‖E‖ up to 0.53.
const CONTRACTS: f64 = 0.5;
/// Eigenvalue up to which a unit step is safe.
const SAFE: f64 = 2.0;

/// K̃L and E of some L.
#[derive(Clone, Debug)]
struct Look<T> {
    product: Mat<T>,
    /// The lower triangle of E, and the upper one once it has been asked for: steps do without.
    residual: Mat<T>,
    mirrored: bool,
    /// Of the columns of E.
    squares: Vec<f64>,
}

impl<T: Real> Default for Look<T> {
    fn default() -> Self {
        Self { product: Mat::new(), residual: Mat::new(), mirrored: true, squares: Vec::new() }
    }
}

impl<T: Real> Look<T> {
    /// Returns ‖E‖_F/√M. M³ operations for K̃L, a third of that for the lower triangle of Lᵀ(K̃L).
    fn at(&mut self, k: MatRef<T>, l: MatRef<T>) -> f64 {
        let m = l.nrows();
        let (par, one) = (par_for(m), T::of(1.0));
        sized(&mut self.product, m, m);
        sized(&mut self.residual, m, m);
        let product = (self.product.as_mut(), WHOLE);
        shared(product, Accum::Replace, (k, WHOLE), (l, LOWER), one, par);
        let (lt, product) = ((l.transpose(), UPPER), (self.product.as_ref(), WHOLE));
        shared((self.residual.as_mut(), LOWER), Accum::Replace, lt, product, one, par);
        self.mirrored = false;
        self.squares.resize(m, 0.0);
        by_columns(self.residual.as_mut(), &mut self.squares, &|j, own, squares| {
            let own = &mut own[j..];
            own[0] -= one;
            let diagonal: f64 = own[0].into();
            *squares = diagonal * diagonal + 2.0 * sum_of_products(&own[1..], &own[1..]);
        });
        (self.squares.iter().sum::<f64>() / m.max(1) as f64).sqrt()
    }

    fn mirror(&mut self) {
        if !self.mirrored {
            mirror_lower(self.residual.as_mut());
            self.mirrored = true;
        }
    }

    fn diagonal(&self, j: usize) -> f64 {
        self.residual[(j, j)].into()
    }
}

/// Natural-gradient steps of L, with the memory they take.
#[derive(Clone, Debug)]
pub(super) struct Descent<T> {
    now: Look<T>,
    trial: Look<T>,
    /// L after a step.
    moved: Mat<T>,
    /// W = Φ(E), only for the line search.
    direction: Mat<T>,
    vector: Vec<f64>,
    /// Of power iterations; factors of columns.
    image: Vec<f64>,
    /// L and K̃L as a caller's criterion sees them.
    shown: [Mat<f64>; 2],
}

impl<T: Real> Default for Descent<T> {
    fn default() -> Self {
        Self {
            now: Look::default(),
            trial: Look::default(),
            moved: Mat::new(),
            direction: Mat::new(),
            vector: Vec::new(),
            image: Vec::new(),
            shown: [Mat::new(), Mat::new()],
        }
    }
}

impl<T: Real> Descent<T> {
    /// Looks at some L; returns ‖E‖_F/√M.
    pub(super) fn look(&mut self, k: MatRef<T>, l: MatRef<T>) -> f64 {
        let residual = self.now.at(k, l);
        self.now.mirror();
        residual
    }

    /// Returns E of the L last looked at, both triangles.
    pub(super) fn residual(&self) -> MatRef<'_, T> {
        debug_assert!(self.now.mirrored);
        self.now.residual.as_ref()
    }

    /// Returns K̃L of the L last looked at.
    pub(super) fn product(&self) -> MatRef<'_, T> {
        self.now.product.as_ref()
    }

    /// Returns ½ tr E − Σ log Lⱼⱼ of the L last looked at: ℓ up to a constant.
    pub(super) fn objective(&self, l: MatRef<T>) -> f64 {
        objective(&self.now, l)
    }

    /// Returns L Φ(E) at the L last looked at.
    pub(super) fn natural_gradient(&mut self, l: MatRef<T>) -> Mat<T> {
        self.move_to(l, -1.0);
        let mut all = Mat::zeros(l.nrows(), l.nrows());
        for j in 0..l.nrows() {
            for i in j..l.nrows() {
                all[(i, j)] = self.moved[(i, j)] - l[(i, j)];
            }
        }
        all
    }

    /// Returns λmax(H) by power iterations from where the last ones ended.
    pub(super) fn largest_eigenvalue(&mut self) -> f64 {
        let m = self.now.residual.nrows();
        if self.vector.len() != m {
            self.start_power(m);
        }
        self.now.mirror();
        let mut norm = 0.0;
        for _ in 0..POWER {
            self.image.clone_from(&self.vector);
            for (j, v) in self.vector.iter().enumerate() {
                let own = column(self.now.residual.as_ref(), j);
                self.image.iter_mut().zip(own).for_each(|(t, e)| *t += v * (*e).into());
            }
            norm = self.image.iter().map(|v| v * v).sum::<f64>().sqrt();
            let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
            self.vector.iter_mut().zip(&self.image).for_each(|(t, v)| *t = scale * v);
        }
        norm
    }

    fn start_power(&mut self, m: usize) {
        self.vector.clear();
        self.vector.resize(m, 1.0 / (m as f64).sqrt());
    }

    /// Returns the largest entry of the diagonal of W = Φ(E), or 0.
    fn steepest(&self) -> f64 {
        (0..self.now.residual.nrows()).map(|j| 0.5 * self.now.diagonal(j)).fold(0.0, f64::max)
    }

    /// Moves to L − γ L W, a third of M³ operations. W is the lower triangle of E less half its
    /// diagonal, and what that half gives is a factor of the columns of L.
    fn move_to(&mut self, l: MatRef<T>, rate: f64) {
        let m = l.nrows();
        if self.moved.nrows() != m {
            // above the diagonal nothing is ever written
            sized(&mut self.moved, m, m);
            self.moved.fill(T::of(0.0));
        }
        self.image.resize(m, 0.0);
        (0..m).for_each(|j| self.image[j] = 1.0 + 0.5 * rate * self.now.diagonal(j));
        by_columns(self.moved.as_mut(), &mut self.image, &|j, own, factor| {
            let (factor, pairs) = (T::of(*factor), own[j..].iter_mut().zip(&column(l, j)[j..]));
            pairs.for_each(|(t, v)| *t = factor * *v);
        });
        let (target, e) = ((self.moved.as_mut(), LOWER), (self.now.residual.as_ref(), LOWER));
        shared(target, Accum::Add, (l, LOWER), e, T::of(-rate), par_for(m));
    }

    /// Returns the γ that is best along L − γ L W: ℓ(γ) − ℓ(0) = −γ tr(HW) + ½γ² tr(WᵀHW) − Σ log(1
    /// − γWⱼⱼ).
    pub(super) fn best_rate(&mut self) -> f64 {
        let m = self.now.residual.nrows();
        self.now.mirror();
        sized(&mut self.direction, m, m);
        for j in 0..m {
            let target = self.direction.col_as_slice_mut(j);
            let own = column(self.now.residual.as_ref(), j);
            target[..j].fill(T::of(0.0));
            target[j] = T::of(0.5) * own[j];
            target[j + 1..].copy_from_slice(&own[j + 1..]);
        }
        // HW = W + EW, in memory that the look at a step has after this
        let image = &mut self.trial.product;
        sized(image, m, m);
        image.copy_from(&self.direction);
        let factors = ((self.now.residual.as_ref(), WHOLE), (self.direction.as_ref(), LOWER));
        shared((image.as_mut(), WHOLE), Accum::Add, factors.0, factors.1, T::of(1.0), par_for(m));
        let linear: f64 = (0..m).map(|j| image[(j, j)].into()).sum();
        let square: f64 = (0..m)
            .map(|j| sum_of_products(column(self.direction.as_ref(), j), column(image.as_ref(), j)))
            .sum();
        let diagonal = |j: usize| 0.5 * self.now.diagonal(j);
        let slope = |rate: f64| {
            let logs: f64 = (0..m).map(|j| diagonal(j) / (1.0 - rate * diagonal(j))).sum();
            -linear + rate * square + logs
        };
        let steepest = self.steepest();
        let mut high = if steepest > 0.0 { 1.0 / steepest } else { 1.0 };
        while steepest <= 0.0 && slope(high) < 0.0 && high < 1e100 {
            high *= 2.0;
        }
        let mut low = 0.0;
        // the slope rises from below 0: halving the interval finds where it is 0, to the last bit
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if slope(middle) < 0.0 { low = middle } else { high = middle }
        }
        low
    }

    /// Returns γ of a step.
    fn rate(&mut self, schedule: Schedule, step: usize) -> f64 {
        match schedule.rate(step) {
            Some(rate) => rate,
            None if schedule == Schedule::LineSearch => self.best_rate(),
            None => {
                let largest = self.largest_eigenvalue();
                if largest <= SAFE { 1.0 } else { 1.0 / largest }
            }
        }
    }

    /// Makes a step that keeps the diagonal positive, and for schedules that look at the matrix ℓ from
    /// rising; halves it if need be. Returns the new residual and the halvings; none if no step is possible.
    fn step(
        &mut self,
        k: MatRef<T>,
        l: &mut Mat<T>,
        mut rate: f64,
        monotone: bool,
    ) -> Option<(f64, usize)> {
        let m = l.nrows();
        let steepest = self.steepest();
        let before = objective(&self.now, l.as_ref());
        let room = 1e-13 * (before.abs() + m as f64);
        for halvings in 0..=HALVINGS {
            if rate * steepest < 1.0 {
                self.move_to(l.as_ref(), rate);
                let residual = self.trial.at(k, self.moved.as_ref());
                let after = objective(&self.trial, self.moved.as_ref());
                let falls = !monotone || after <= before + room;
                if residual.is_finite() && after.is_finite() && falls {
                    std::mem::swap(&mut self.now, &mut self.trial);
                    std::mem::swap(l, &mut self.moved);
                    return Some((residual, halvings));
                }
            }
            rate *= 0.5;
        }
        None
    }

    /// Does what [`super::Inversion::solve`] does, all of it in this precision.
    pub(super) fn solve(
        &mut self,
        k: MatRef<T>,
        l: &mut Mat<T>,
        options: &SolverOptions,
        mut enough: Option<Enough<'_>>,
    ) -> Result<Solved> {
        let m = k.nrows();
        let norm = infinity_norm(k);
        if !norm.is_finite() {
            return Err(Error::NonFinite { what: "Kuu + Λ".into(), value: norm });
        }
        // from the same vector for the same matrix, whatever came before
        self.start_power(m);
        let fits = l.nrows() == m && (0..m).all(|j| l[(j, j)].into() > 0.0);
        let (mut restarted, mut halvings, mut steps) = (!fits, 0, 0);
        if restarted {
            scaled_identity(k, l);
        }
        let mut residual = self.now.at(k, l.as_ref());
        if residual.is_nan() || residual > options.restart_above {
            restarted = true;
            scaled_identity(k, l);
            residual = self.now.at(k, l.as_ref());
        }
        let mut stalled = false;
        let stopped = loop {
            if let Some(enough) = &mut enough {
                let [root, product] = &mut self.shown;
                let root = T::doubled(l.as_ref(), root);
                if enough(root, T::doubled(self.now.product.as_ref(), product))? {
                    break Stopped::Enough;
                }
            }
            if residual <= options.tolerance {
                break Stopped::Tolerance;
            }
            if stalled && options.stall {
                break Stopped::Stall;
            }
            if steps >= options.most {
                break Stopped::Most;
            }
            // where a unit step contracts for certain there is nothing to choose, and ℓ differs by rounding
            let near = residual * (m as f64).sqrt() < CONTRACTS;
            let chosen = options.schedule.rate(steps).is_none();
            let rate = if chosen && near { 1.0 } else { self.rate(options.schedule, steps) };
            let monotone = chosen && !near;
            match self.step(k, l, rate, monotone) {
                Some((next, halved)) => {
                    // a full step from nearby that does not halve the residual has met rounding
                    let full = halved == 0 && rate >= 0.99;
                    stalled = full && residual < 0.1 && next > 0.5 * residual;
                    residual = next;
                    halvings += halved;
                    steps += 1;
                }
                None if !restarted => {
                    restarted = true;
                    scaled_identity(k, l);
                    residual = self.now.at(k, l.as_ref());
                }
                // only rounding is left to move in
                None if residual < 0.1 => break Stopped::Stall,
                None => {
                    let what = "the inverse of Kuu + Λ, by products,".into();
                    return Err(Error::NonFinite { what, value: residual });
                }
            }
        };
        self.now.mirror();
        Ok(Solved { steps, residual, stopped, restarted, halvings })
    }
}

/// Returns ½ tr E − Σ log Lⱼⱼ.
fn objective<T: Real>(look: &Look<T>, l: MatRef<T>) -> f64 {
    (0..l.nrows()).map(|j| 0.5 * look.diagonal(j) - l[(j, j)].into().ln()).sum()
}
