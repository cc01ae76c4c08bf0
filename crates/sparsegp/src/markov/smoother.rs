//! Backwards over rows: the adjoints of the filter, which are the sums of the fixed-interval smoother (de Jong 1989; Koopman &
//! Shephard 1992 for the gradient).
//!
//! With r = ∂F/∂m and N = −∂²F/∂m² for the mean m of the state before a row (r⁺, N⁺ after it),
//!
//! ```text
//! e = v/S − Kᵀr⁺      r = r⁺ + he      D = 1/S + KᵀN⁺K      N = (I − Khᵀ)ᵀN⁺(I − Khᵀ) + hhᵀ/S
//! ```
//!
//! e is α = G⁻¹(y − m) of the row and D the diagonal of G⁻¹, the smoothed state is N(m + Pr, P − PNP), and F has the slopes
//! U = ½(rrᵀ − N) in P, so that of A and of the stationary covariance P∞, as P = A(P⁺ − P∞)Aᵀ + P∞ with P⁺ after the row before:
//!
//! ```text
//! Ā = rm⁺ᵀ + 2UA(P⁺ − P∞)      P̄∞ = U − AᵀUA, and U at the first row
//! ```

use super::filter::{Passed, Steps};
use super::small::{Blocks, Square, Vector, add, dot, times, write, zeros};

/// r of every target column, and N.
#[derive(Clone, Debug)]
pub(super) struct Adjoint<const N: usize> {
    pub(super) r: Vec<Vector<N>>,
    pub(super) n: Square<N>,
}

impl<const N: usize> Adjoint<N> {
    /// Returns what is known after the last row.
    pub(super) fn none(columns: usize) -> Self {
        Self { r: vec![[0.0; N]; columns], n: zeros() }
    }

    /// Goes back by a step with this A.
    pub(super) fn back(&mut self, a: &Square<N>, blocks: &Blocks<N>) {
        self.r.iter_mut().for_each(|r| *r = blocks.transposed_times(a, r));
        self.n = blocks.inner(a, &blocks.right(&self.n, a));
    }

    /// Goes from after a row to before it; e of every column goes to `alpha`. Returns D.
    pub(super) fn unsee(&mut self, row: &Passed<N>, mut alpha: impl FnMut(usize, f64)) -> f64 {
        for (p, (r, v)) in self.r.iter_mut().zip(&row.innovations).enumerate() {
            let e = v / row.spread - dot(&row.gain, r);
            (0..N).for_each(|i| r[i] += row.h[i] * e);
            alpha(p, e);
        }
        let image = times(&self.n, &row.gain);
        let d = 1.0 / row.spread + dot(&row.gain, &image);
        for i in 0..N {
            for j in 0..N {
                self.n[i][j] += d * row.h[i] * row.h[j] - row.h[i] * image[j] - image[i] * row.h[j];
            }
        }
        d
    }

    /// Returns U.
    fn slopes(&self) -> Square<N> {
        let mut u = self.n;
        let half = -0.5 * self.r.len() as f64;
        u.as_flattened_mut().iter_mut().for_each(|n| *n *= half);
        self.r.iter().for_each(|r| add_outer(&mut u, 0.5, r, r));
        u
    }
}

/// Adds a multiple of abᵀ.
fn add_outer<const N: usize>(to: &mut Square<N>, times: f64, a: &Vector<N>, b: &Vector<N>) {
    for i in 0..N {
        let factor = times * a[i];
        for j in 0..N {
            to[i][j] += factor * b[j];
        }
    }
}

/// The gradient with respect to the hyperparameters of a kernel, from the last row to the first.
pub(super) struct Slopes<'a, const N: usize> {
    steps: Steps<'a, N>,
    stationary: Square<N>,
    stationary_bar: Square<N>,
    /// The length of the steps of which `bar` is the cotangent, and of which U adds up to `u`.
    length: f64,
    a: Square<N>,
    bar: Square<N>,
    u: Square<N>,
    /// Memory for A and its cotangent, n² each.
    scratch: [Vec<f64>; 2],
    pub(super) params: Vec<f64>,
}

impl<'a, const N: usize> Slopes<'a, N> {
    pub(super) fn new(mut steps: Steps<'a, N>, params: usize) -> Self {
        let (stationary, n) = (steps.stationary(), steps.space.size());
        Self {
            steps,
            stationary,
            stationary_bar: zeros(),
            length: f64::NAN,
            a: zeros(),
            bar: zeros(),
            u: zeros(),
            scratch: [vec![0.0; n * n], vec![0.0; n * n]],
            params: vec![0.0; params],
        }
    }

    /// Takes in what a row says of the step that leads to it, from the row before.
    pub(super) fn add(
        &mut self,
        own: &Adjoint<N>,
        length: f64,
        a: &Square<N>,
        before: (&[Vector<N>], &Square<N>),
    ) {
        if length.to_bits() != self.length.to_bits() {
            self.flush();
            (self.length, self.a) = (length, *a);
        }
        let (u, mut apart) = (own.slopes(), *before.1);
        add(&mut self.u, 1.0, &u);
        add(&mut apart, -1.0, &self.stationary);
        own.r.iter().zip(before.0).for_each(|(r, m)| add_outer(&mut self.bar, 1.0, r, m));
        let image = self.steps.blocks.right(&u, a);
        self.steps.blocks.add_product(&image, &apart, 2.0, &mut self.bar);
    }

    /// Takes in what the first row says of the stationary state.
    pub(super) fn add_first(&mut self, own: &Adjoint<N>) {
        add(&mut self.stationary_bar, 1.0, &own.slopes());
    }

    /// Pulls the cotangent of the steps so far.
    fn flush(&mut self) {
        if self.length.is_nan() {
            return;
        }
        let (space, blocks) = (self.steps.space, &self.steps.blocks);
        let inner = blocks.inner(&self.a, &blocks.right(&self.u, &self.a));
        add(&mut self.stationary_bar, 1.0, &self.u);
        add(&mut self.stationary_bar, -1.0, &inner);
        let [a, bar] = &mut self.scratch;
        write(&self.a, space.size(), a);
        write(&self.bar, space.size(), bar);
        space.pull_transition(self.length, a, bar, &mut self.params);
        (self.bar, self.u) = (zeros(), zeros());
    }

    /// Returns the gradient.
    pub(super) fn finish(mut self) -> Vec<f64> {
        self.flush();
        let space = self.steps.space;
        let n = space.size();
        let mut bar = vec![0.0; n * n];
        write(&self.stationary_bar, n, &mut bar);
        space.pull_stationary(&bar, &mut self.params);
        self.params
    }
}
