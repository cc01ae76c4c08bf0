//! What blocks of rows are multiplied by, in the precision of their products.

use crate::engine::{Basis, Factors, Process, Projection, Spread, Through};
use crate::linalg::{Mat, MatRef, Precision, Real, sized};

/// From covariances to features and back.
#[derive(Clone, Copy)]
pub(crate) enum Lead<'a, T> {
    /// φ = L⁻¹k, with L as it lies best on the way to features, and back.
    Solve(MatRef<'a, T>, MatRef<'a, T>),
    /// φ = Lᵀk.
    Product(MatRef<'a, T>),
}

/// [`Spread`] in the precision of products.
#[derive(Clone, Copy)]
pub(crate) enum Form<'a, T> {
    /// A lower root of every latent function.
    Roots(&'a [Mat<T>]),
    /// Weights, and V of every latent function.
    Through(MatRef<'a, f64>, &'a [Mat<T>]),
    /// One symmetric E for all.
    Shared(Option<MatRef<'a, T>>),
}

/// What the blocks of one process are multiplied by.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a, T> {
    /// Whitened means, M×l.
    pub(super) mean: MatRef<'a, f64>,
    pub(super) lead: Lead<'a, T>,
    pub(super) form: Form<'a, T>,
    /// What covariances between 0 and it are rounded to.
    pub(super) floor: f64,
}

/// The operands of a process.
#[derive(Clone, Copy)]
pub(crate) enum Either<'a> {
    Double(Operands<'a, f64>),
    Single(Operands<'a, f32>),
}

/// No correlation is below this in single precision: products of smaller ones would be subnormal.
const FLOOR: f64 = 1e-18;

/// The matrices of one process in single precision, rounded once for all blocks.
#[derive(Debug, Default)]
pub(crate) struct Rounded {
    /// L by rows, L, and then those of the spread.
    matrices: Vec<Mat<f32>>,
    active: bool,
    floor: f64,
}

/// How many of the matrices of [`Rounded`] are of L.
const OF_LEAD: usize = 2;

impl Rounded {
    /// Rounds what a process has, if its products are to be of single precision. Those through V are not: its entries
    /// are as large as those of Kuu⁻¹, and what they add up to is a small difference.
    pub(crate) fn renew(&mut self, basis: &dyn Basis, spread: Spread<'_>, precision: Precision) {
        self.active = precision == Precision::Single
            && !matches!(spread, Spread::Through(_) | Spread::Products(_));
        if !self.active {
            return;
        }
        let (forward, back) = match basis.projection() {
            Projection::Solve(forward, back) => (forward, back),
            Projection::Product(l) => (l, l),
        };
        self.floor = FLOOR * back[(0, 0)] * back[(0, 0)];
        self.keep(0, forward);
        self.keep(1, back);
        match spread {
            Spread::Roots(roots) => {
                (roots.iter().enumerate())
                    .for_each(|(j, root)| self.keep(OF_LEAD + j, root.as_ref()));
                self.matrices.truncate(OF_LEAD + roots.len());
            }
            Spread::Shared(Some(e)) => self.keep(OF_LEAD, e),
            _ => {}
        }
    }

    /// Keeps a matrix as it lies: by its columns, or its transpose.
    fn keep(&mut self, at: usize, a: MatRef<'_, f64>) {
        while self.matrices.len() <= at {
            self.matrices.push(Mat::new());
        }
        let a = if a.row_stride() == 1 { a } else { a.transpose() };
        let own = &mut self.matrices[at];
        sized(own, a.nrows(), a.ncols());
        f32::rounded(a, own);
    }

    fn operands<'a>(
        &'a self,
        (basis, mean): (&dyn Basis, MatRef<'a, f64>),
        spread: Spread<'_>,
    ) -> Operands<'a, f32> {
        let [forward, back] = [&self.matrices[0], &self.matrices[1]];
        let lead = match basis.projection() {
            Projection::Solve(l, _) if l.row_stride() == 1 => {
                Lead::Solve(forward.as_ref(), back.as_ref())
            }
            Projection::Solve(..) => Lead::Solve(forward.transpose(), back.as_ref()),
            Projection::Product(_) => Lead::Product(back.as_ref()),
        };
        let rest = &self.matrices[OF_LEAD..];
        let form = match spread {
            Spread::Roots(_) => Form::Roots(rest),
            Spread::Shared(Some(_)) => Form::Shared(Some(rest[0].as_ref())),
            _ => Form::Shared(None),
        };
        Operands { mean, lead, form, floor: self.floor }
    }
}

/// Rounds what the processes of a job have.
pub(super) fn round(processes: &[Process<'_>], precision: Precision, memory: &mut Vec<Rounded>) {
    memory.resize_with(processes.len(), Rounded::default);
    for (process, own) in processes.iter().zip(memory) {
        own.renew(process.basis, process.spread, precision);
    }
}

impl<'a> Either<'a> {
    /// Creates what blocks are multiplied by: a basis, whitened means (M×l) and a spread, of which
    /// `rounded` are those of single precision.
    pub(crate) fn of(
        basis: &'a dyn Basis,
        mean: MatRef<'a, f64>,
        spread: Spread<'a>,
        rounded: &'a Rounded,
    ) -> Self {
        if rounded.active {
            return Either::Single(rounded.operands((basis, mean), spread));
        }
        let lead = match basis.projection() {
            Projection::Solve(forward, back) => Lead::Solve(forward, back),
            Projection::Product(l) => Lead::Product(l),
        };
        let double = |lead, form| Either::Double(Operands { mean, lead, form, floor: 0.0 });
        match spread {
            Spread::Roots(roots) => double(lead, Form::Roots(roots)),
            Spread::Through(Through { weights, forms }) => {
                double(lead, Form::Through(weights, forms))
            }
            Spread::Shared(e) => double(lead, Form::Shared(e)),
            Spread::Products(Factors::Double(l, e)) => {
                double(Lead::Product(l), Form::Shared(Some(e)))
            }
            Spread::Products(Factors::Single(l, e)) => Either::Single(Operands {
                mean,
                lead: Lead::Product(l),
                form: Form::Shared(Some(e)),
                floor: 0.0,
            }),
        }
    }

    /// Returns the same for functions at other means (M×l), with s = 0.
    pub(crate) fn at(self, mean: MatRef<'a, f64>) -> Self {
        match self {
            Either::Double(own) => {
                Either::Double(Operands { mean, form: Form::Shared(None), ..own })
            }
            Either::Single(own) => {
                Either::Single(Operands { mean, form: Form::Shared(None), ..own })
            }
        }
    }
}
