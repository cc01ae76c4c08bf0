//! Sums and products.

use super::StateSpace;
use crate::linalg::RowRef;
use std::ops::Range;

/// The parts of a kernel, with the places of their parameters among its own.
type Parts = Vec<(Box<dyn StateSpace>, Range<usize>)>;

/// Returns the process of a sum: states side by side.
pub fn sum(parts: Parts) -> Box<dyn StateSpace> {
    Box::new(Sum { parts })
}

/// Returns the process of a product: every number of the one times every number of the other. The
/// factor whose steps fall into smaller blocks comes first, as its blocks are those of the product
/// then.
pub fn product(parts: Parts) -> Box<dyn StateSpace> {
    let mut parts = parts.into_iter();
    let Some((mut all, mut params)) = parts.next() else { return sum(Vec::new()) };
    for second in parts {
        let first = (all, params.clone());
        params = params.start..second.1.end;
        let part = |of: &dyn StateSpace| {
            of.blocks().iter().max().copied().unwrap_or(1) as f64 / of.size().max(1) as f64
        };
        let [first, second] = match part(&*first.0) <= part(&*second.0) {
            true => [first, second],
            false => [second, first],
        };
        all = Box::new(Product { first, second });
    }
    all
}

#[derive(Debug)]
struct Sum {
    parts: Parts,
}

impl Sum {
    /// Calls `f` with every part, the parameters of it and the place of its states.
    fn each(&self, mut f: impl FnMut(&dyn StateSpace, &Range<usize>, usize)) {
        let mut at = 0;
        for (part, params) in &self.parts {
            f(&**part, params, at);
            at += part.size();
        }
    }

    /// Fills the blocks of the parts along the diagonal.
    fn fill(&self, out: &mut [f64], block: impl Fn(&dyn StateSpace, &mut [f64])) {
        let n = self.size();
        out.fill(0.0);
        self.each(|part, _, at| {
            let m = part.size();
            let mut own = vec![0.0; m * m];
            block(part, &mut own);
            for i in 0..m {
                out[(at + i) * n + at..][..m].copy_from_slice(&own[i * m..][..m]);
            }
        });
    }
}

/// Returns the m×m block at a place of the diagonal.
fn block(of: &[f64], n: usize, at: usize, m: usize) -> Vec<f64> {
    (0..m).flat_map(|i| of[(at + i) * n + at..][..m].iter().copied()).collect()
}

impl StateSpace for Sum {
    fn size(&self) -> usize {
        self.parts.iter().map(|(part, _)| part.size()).sum()
    }

    fn blocks(&self) -> Vec<usize> {
        self.parts.iter().flat_map(|(part, _)| part.blocks()).collect()
    }

    fn stationary(&self, out: &mut [f64]) {
        self.fill(out, |part, own| part.stationary(own));
    }

    fn transition(&self, step: f64, out: &mut [f64]) {
        self.fill(out, |part, own| part.transition(step, own));
    }

    fn noise(&self, step: f64, out: &mut [f64]) {
        self.fill(out, |part, own| part.noise(step, own));
    }

    fn output_moves(&self) -> bool {
        self.parts.iter().any(|(part, _)| part.output_moves())
    }

    fn times(&self, all: &mut Vec<usize>) {
        self.parts.iter().for_each(|(part, _)| part.times(all));
    }

    fn output(&self, x: RowRef<'_, f64>, out: &mut [f64]) {
        self.each(|part, _, at| part.output(x, &mut out[at..][..part.size()]));
    }

    fn terms(&self, x: RowRef<'_, f64>, (first, n): (usize, usize), all: &mut Vec<Vec<f64>>) {
        self.each(|part, _, at| part.terms(x, (first + at, n), all));
    }

    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]) {
        let n = self.size();
        self.each(|part, own, at| {
            part.pull_stationary(&block(bar, n, at, part.size()), &mut params[own.clone()]);
        });
    }

    fn pull_transition(&self, step: f64, a: &[f64], bar: &[f64], params: &mut [f64]) {
        let n = self.size();
        self.each(|part, own, at| {
            let m = part.size();
            let (a, bar) = (block(a, n, at, m), block(bar, n, at, m));
            part.pull_transition(step, &a, &bar, &mut params[own.clone()]);
        });
    }

    fn error(&self) -> f64 {
        self.parts.iter().map(|(part, _)| part.error()).fold(0.0, f64::max)
    }

    fn remarks(&self, all: &mut Vec<String>) {
        self.parts.iter().for_each(|(part, _)| part.remarks(all));
    }
}

#[derive(Debug)]
struct Product {
    first: (Box<dyn StateSpace>, Range<usize>),
    second: (Box<dyn StateSpace>, Range<usize>),
}

/// Returns a matrix of one of the two factors.
fn of(part: &dyn StateSpace, write: impl Fn(&dyn StateSpace, &mut [f64])) -> Vec<f64> {
    let mut own = vec![0.0; part.size().pow(2)];
    write(part, &mut own);
    own
}

/// Adds a⊗b, whose sizes are n and m.
fn add_kronecker(out: &mut [f64], a: &[f64], b: &[f64], [n, m]: [usize; 2]) {
    for i in 0..n {
        for j in 0..n {
            let scale = a[i * n + j];
            for k in 0..m {
                let row = &mut out[(i * m + k) * n * m + j * m..][..m];
                row.iter_mut().zip(&b[k * m..][..m]).for_each(|(o, v)| *o += scale * v);
            }
        }
    }
}

/// Returns the cotangents of a and b from that of a⊗b.
fn pull_kronecker(bar: &[f64], a: &[f64], b: &[f64], [n, m]: [usize; 2]) -> [Vec<f64>; 2] {
    let (mut to_a, mut to_b) = (vec![0.0; n * n], vec![0.0; m * m]);
    for i in 0..n {
        for j in 0..n {
            for k in 0..m {
                let row = &bar[(i * m + k) * n * m + j * m..][..m];
                for (l, v) in row.iter().enumerate() {
                    to_a[i * n + j] += v * b[k * m + l];
                    to_b[k * m + l] += v * a[i * n + j];
                }
            }
        }
    }
    [to_a, to_b]
}

impl Product {
    fn sizes(&self) -> [usize; 2] {
        [self.first.0.size(), self.second.0.size()]
    }
}

impl StateSpace for Product {
    fn size(&self) -> usize {
        self.first.0.size() * self.second.0.size()
    }

    /// Returns the sizes of the blocks: numbers of a block of the first times all of the second
    /// stay among each other.
    fn blocks(&self) -> Vec<usize> {
        self.first.0.blocks().into_iter().map(|own| own * self.second.0.size()).collect()
    }

    fn stationary(&self, out: &mut [f64]) {
        out.fill(0.0);
        let [a, b] = [&self.first, &self.second].map(|p| of(&*p.0, |p, own| p.stationary(own)));
        add_kronecker(out, &a, &b, self.sizes());
    }

    fn transition(&self, step: f64, out: &mut [f64]) {
        out.fill(0.0);
        let [a, b] =
            [&self.first, &self.second].map(|p| of(&*p.0, |p, own| p.transition(step, own)));
        add_kronecker(out, &a, &b, self.sizes());
    }

    /// Computes Q₁⊗P₂ + (P₁ − Q₁)⊗Q₂, where P₁ − Q₁ = A₁P₁A₁ᵀ.
    fn noise(&self, step: f64, out: &mut [f64]) {
        out.fill(0.0);
        let [q1, q2] = [&self.first, &self.second].map(|p| of(&*p.0, |p, own| p.noise(step, own)));
        let [mut p1, p2] =
            [&self.first, &self.second].map(|p| of(&*p.0, |p, own| p.stationary(own)));
        add_kronecker(out, &q1, &p2, self.sizes());
        p1.iter_mut().zip(&q1).for_each(|(p, q)| *p -= q);
        add_kronecker(out, &p1, &q2, self.sizes());
    }

    fn output_moves(&self) -> bool {
        self.first.0.output_moves() || self.second.0.output_moves()
    }

    fn times(&self, all: &mut Vec<usize>) {
        self.first.0.times(all);
        self.second.0.times(all);
    }

    fn output(&self, x: RowRef<'_, f64>, out: &mut [f64]) {
        let [n, m] = self.sizes();
        let (mut a, mut b) = (vec![0.0; n], vec![0.0; m]);
        self.first.0.output(x, &mut a);
        self.second.0.output(x, &mut b);
        (0..n * m).for_each(|i| out[i] = a[i / m] * b[i % m]);
    }

    fn pull_stationary(&self, bar: &[f64], params: &mut [f64]) {
        let [a, b] = [&self.first, &self.second].map(|p| of(&*p.0, |p, own| p.stationary(own)));
        let [to_a, to_b] = pull_kronecker(bar, &a, &b, self.sizes());
        self.first.0.pull_stationary(&to_a, &mut params[self.first.1.clone()]);
        self.second.0.pull_stationary(&to_b, &mut params[self.second.1.clone()]);
    }

    fn pull_transition(&self, step: f64, _: &[f64], bar: &[f64], params: &mut [f64]) {
        let [a, b] =
            [&self.first, &self.second].map(|p| of(&*p.0, |p, own| p.transition(step, own)));
        let [to_a, to_b] = pull_kronecker(bar, &a, &b, self.sizes());
        self.first.0.pull_transition(step, &a, &to_a, &mut params[self.first.1.clone()]);
        self.second.0.pull_transition(step, &b, &to_b, &mut params[self.second.1.clone()]);
    }

    fn error(&self) -> f64 {
        self.first.0.error() + self.second.0.error()
    }

    fn remarks(&self, all: &mut Vec<String>) {
        self.first.0.remarks(all);
        self.second.0.remarks(all);
    }
}
