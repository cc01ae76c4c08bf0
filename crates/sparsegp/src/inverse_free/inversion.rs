//! Inversion by products: a lower-triangular L with LLᵀ ≈ K̃⁻¹.
//!
//! ℓ(L) = KL[N(0, LLᵀ) ‖ N(0, K̃⁻¹)] = ½ (tr H − log|K̃| − M) − Σ log Lⱼⱼ with H = LᵀK̃L is strictly convex in
//! L, and its natural gradient needs products alone (Cortinovis et al., Proposition 1):
//!
//! ```text
//! E = H − I      W = Φ(E), the lower triangle of E with halved diagonal      L ← L − γ L W
//! ```
//!
//! A step keeps L lower triangular, and its diagonal positive where γ(Hⱼⱼ − 1) < 2. At γ = 1, E₊ = −E² + WWᵀ +
//! WᵀEW, so that ‖E₊‖ ≤ (3/2)‖E‖² + ‖E‖³/√2 in Frobenius' norm: quadratic convergence from ‖E‖ < 0.53 on.

use super::schedule::{Schedule, SolverOptions};
use crate::error::{Error, Result};
use crate::linalg::structured;
use crate::linalg::{
    Accum, Mat, MatRef, Precision, Structure, column, gemm, mirror_lower, par_for, sized,
    structured_in,
};
use serde::{Deserialize, Serialize};

/// Why steps ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The residual is small enough.
    Tolerance,
    /// The caller's own criterion holds.
    Enough,
    /// Rounding allows no smaller residual.
    Stall,
    /// The most steps allowed were made.
    Most,
}

/// How an inversion went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solved {
    /// Steps made.
    pub steps: usize,
    /// r = ‖E‖_F/√M at the end.
    pub residual: f64,
    /// Why it ended.
    pub stopped: Stopped,
    /// Whether L was started anew from the scaled identity.
    pub restarted: bool,
    /// How often a step was halved.
    pub halvings: usize,
}

/// A criterion of the caller's, asked before every step: it sees L and E of it.
pub type Enough<'a> = &'a mut dyn FnMut(MatRef<'_, f64>, &Inversion) -> Result<bool>;

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
struct Look {
    product: Mat<f64>,
    residual: Mat<f64>,
}

impl Default for Look {
    fn default() -> Self {
        Self { product: Mat::new(), residual: Mat::new() }
    }
}

impl Look {
    /// Returns ‖E‖_F/√M. M³ operations for K̃L, a third of that for the lower triangle of Lᵀ(K̃L).
    fn at(&mut self, k: MatRef<f64>, l: MatRef<f64>, products: Precision) -> f64 {
        let m = l.nrows();
        let par = par_for(m);
        sized(&mut self.product, m, m);
        sized(&mut self.residual, m, m);
        let (whole, lower) = (Structure::Rectangular, Structure::TriangularLower);
        let upper = Structure::TriangularUpper;
        let product = (self.product.as_mut(), whole);
        structured_in(products, product, Accum::Replace, (k, whole), (l, lower), 1.0, par);
        let (lt, product) = ((l.transpose(), upper), (self.product.as_ref(), whole));
        let target = (self.residual.as_mut(), lower);
        structured_in(products, target, Accum::Replace, lt, product, 1.0, par);
        let mut squares = 0.0;
        for j in 0..m {
            let own = &mut self.residual.col_as_slice_mut(j)[j..];
            own[0] -= 1.0;
            squares += own[0] * own[0] + 2.0 * own[1..].iter().map(|v| v * v).sum::<f64>();
        }
        mirror_lower(self.residual.as_mut());
        (squares / m.max(1) as f64).sqrt()
    }

    /// ½ tr E − Σ log Lⱼⱼ: ℓ up to a constant.
    fn objective(&self, l: MatRef<f64>) -> f64 {
        (0..l.nrows()).map(|j| 0.5 * self.residual[(j, j)] - l[(j, j)].ln()).sum()
    }
}

/// Natural-gradient steps of L, with the memory they take.
#[derive(Clone, Debug)]
pub struct Inversion {
    now: Look,
    trial: Look,
    /// W = Φ(E).
    direction: Mat<f64>,
    /// L after a step.
    moved: Mat<f64>,
    vector: Vec<f64>,
    image: Vec<f64>,
}

impl Default for Inversion {
    fn default() -> Self {
        Self {
            now: Look::default(),
            trial: Look::default(),
            direction: Mat::new(),
            moved: Mat::new(),
            vector: Vec::new(),
            image: Vec::new(),
        }
    }
}

/// The largest sum of absolute values of a row, ‖K‖_∞ ≥ ‖K‖₂.
pub fn infinity_norm(k: MatRef<f64>) -> f64 {
    // of a symmetric matrix columns are as good as rows, and contiguous
    (0..k.ncols())
        .map(|j| column(k, j).iter().map(|v| v.abs()).sum::<f64>())
        .fold(0.0, |m, v| if v.is_nan() { v } else { f64::max(m, v) })
}

/// L = I/√‖K̃‖_∞, with 0 < H ≤ I: from there unit steps converge.
pub fn scaled_identity(k: MatRef<f64>, l: &mut Mat<f64>) {
    let m = k.nrows();
    sized(l, m, m);
    l.fill(0.0);
    let scale = 1.0 / infinity_norm(k).sqrt();
    (0..m).for_each(|j| l[(j, j)] = scale);
}

impl Inversion {
    /// Looks at some L. Returns the normalised residual ‖E‖_F/√M (Cortinovis et al., Eq. 8).
    pub fn look(&mut self, k: MatRef<f64>, l: MatRef<f64>) -> f64 {
        self.now.at(k, l, Precision::Double)
    }

    /// E = LᵀK̃L − I of the L last looked at, both triangles.
    pub fn residual(&self) -> MatRef<'_, f64> {
        self.now.residual.as_ref()
    }

    /// K̃L of the L last looked at.
    pub fn product(&self) -> MatRef<'_, f64> {
        self.now.product.as_ref()
    }

    /// ℓ of the L last looked at, given log|K̃|.
    pub fn divergence(&self, l: MatRef<f64>, log_det: f64) -> f64 {
        self.now.objective(l) - 0.5 * log_det
    }

    /// L Φ(E) at the L last looked at: the natural gradient (Cortinovis et al., Eq. 6).
    pub fn natural_gradient(&mut self, l: MatRef<f64>) -> Mat<f64> {
        self.aim();
        self.move_to(l, -1.0, Precision::Double);
        let mut all = Mat::zeros(l.nrows(), l.nrows());
        for j in 0..l.nrows() {
            for i in j..l.nrows() {
                all[(i, j)] = self.moved[(i, j)] - l[(i, j)];
            }
        }
        all
    }

    /// λmax(H) by power iterations from where the last ones ended; it is a little too small.
    pub fn largest_eigenvalue(&mut self) -> f64 {
        let m = self.now.residual.nrows();
        if self.vector.len() != m {
            self.start_power(m);
        }
        let mut norm = 0.0;
        for _ in 0..POWER {
            self.image.clone_from(&self.vector);
            for (j, v) in self.vector.iter().enumerate() {
                let own = column(self.now.residual.as_ref(), j);
                self.image.iter_mut().zip(own).for_each(|(t, e)| *t += v * e);
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

    /// W = Φ(E).
    fn aim(&mut self) {
        let m = self.now.residual.nrows();
        sized(&mut self.direction, m, m);
        for j in 0..m {
            let target = self.direction.col_as_slice_mut(j);
            let own = column(self.now.residual.as_ref(), j);
            target[..j].fill(0.0);
            target[j] = 0.5 * own[j];
            target[j + 1..].copy_from_slice(&own[j + 1..]);
        }
    }

    /// L − γ L W, a third of M³ operations.
    fn move_to(&mut self, l: MatRef<f64>, rate: f64, products: Precision) {
        let m = l.nrows();
        sized(&mut self.moved, m, m);
        self.moved.copy_from(l);
        let lower = Structure::TriangularLower;
        let (target, w) = ((self.moved.as_mut(), lower), (self.direction.as_ref(), lower));
        structured_in(products, target, Accum::Add, (l, lower), w, -rate, par_for(m));
    }

    /// The γ that is best along L − γ L W: ℓ(γ) − ℓ(0) = −γ tr(HW) + ½γ² tr(WᵀHW) − Σ log(1 − γWⱼⱼ).
    fn best_rate(&mut self) -> f64 {
        let m = self.direction.nrows();
        // HW = W + EW, in the memory of the step
        sized(&mut self.moved, m, m);
        self.moved.copy_from(&self.direction);
        let (whole, lower) = (Structure::Rectangular, Structure::TriangularLower);
        structured(
            (self.moved.as_mut(), whole),
            Accum::Add,
            (self.now.residual.as_ref(), whole),
            (self.direction.as_ref(), lower),
            1.0,
            par_for(m),
        );
        let linear: f64 = (0..m).map(|j| self.moved[(j, j)]).sum();
        let square = crate::linalg::dot(self.direction.as_ref(), self.moved.as_ref());
        let diagonal = |j: usize| self.direction[(j, j)];
        let slope = |rate: f64| {
            let logs: f64 = (0..m).map(|j| diagonal(j) / (1.0 - rate * diagonal(j))).sum();
            -linear + rate * square + logs
        };
        let steepest = (0..m).map(diagonal).fold(0.0, f64::max);
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

    /// γ of a step; the direction is known.
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
        k: MatRef<f64>,
        l: &mut Mat<f64>,
        mut rate: f64,
        (monotone, products): (bool, Precision),
    ) -> Option<(f64, usize)> {
        let m = l.nrows();
        let steepest = (0..m).map(|j| self.direction[(j, j)]).fold(0.0, f64::max);
        let before = self.now.objective(l.as_ref());
        let room = 1e-13 * (before.abs() + m as f64);
        for halvings in 0..=HALVINGS {
            if rate * steepest < 1.0 {
                self.move_to(l.as_ref(), rate, products);
                let residual = self.trial.at(k, self.moved.as_ref(), products);
                let after = self.trial.objective(self.moved.as_ref());
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

    /// Moves L towards the root of K̃⁻¹ until a criterion holds. It is tested before every step, so that
    /// [`Inversion::residual`] and [`Inversion::product`] are those of the L that is left.
    ///
    /// # Errors
    /// [`Error::NonFinite`] if K̃ is not finite or not positive definite to working precision; errors of
    /// `enough`. L is of no use then.
    pub fn solve(
        &mut self,
        k: MatRef<f64>,
        l: &mut Mat<f64>,
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
        let fits = l.nrows() == m && (0..m).all(|j| l[(j, j)] > 0.0);
        let (mut restarted, mut halvings, mut steps) = (!fits, 0, 0);
        if restarted {
            scaled_identity(k, l);
        }
        let products = options.products;
        let mut residual = self.now.at(k, l.as_ref(), products);
        if residual.is_nan() || residual > options.restart_above {
            restarted = true;
            scaled_identity(k, l);
            residual = self.now.at(k, l.as_ref(), products);
        }
        let mut stalled = false;
        let stopped = loop {
            if let Some(enough) = &mut enough
                && enough(l.as_ref(), self)?
            {
                break Stopped::Enough;
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
            self.aim();
            // where a unit step contracts for certain there is nothing to choose, and ℓ differs by rounding
            let near = residual * (m as f64).sqrt() < CONTRACTS;
            let chosen = options.schedule.rate(steps).is_none();
            let rate = if chosen && near { 1.0 } else { self.rate(options.schedule, steps) };
            let monotone = chosen && !near;
            match self.step(k, l, rate, (monotone, products)) {
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
                    residual = self.now.at(k, l.as_ref(), products);
                }
                // only rounding is left to move in
                None if residual < 0.1 => break Stopped::Stall,
                None => {
                    let what = "the inverse of Kuu + Λ, by products,".into();
                    return Err(Error::NonFinite { what, value: residual });
                }
            }
        };
        if products == Precision::Single {
            residual = self.look(k, l.as_ref());
        }
        Ok(Solved { steps, residual, stopped, restarted, halvings })
    }

    /// ‖E‖_F of the L last looked at, which is no less than ‖E‖₂.
    pub fn frobenius(&self) -> f64 {
        crate::linalg::dot(self.residual(), self.residual()).sqrt()
    }

    /// E·x for a matrix of few columns, into `out` (added).
    pub(super) fn add_times(&self, x: MatRef<f64>, out: &mut Mat<f64>, factor: f64) {
        let par = par_for(x.nrows());
        gemm(out.as_mut(), Accum::Add, self.residual(), x, factor, par);
    }
}

#[cfg(test)]
#[path = "inversion_tests.rs"]
mod tests;
