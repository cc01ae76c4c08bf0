//! Latent functions of a layer that share a kernel and inducing points: what of them comes before and after the rows. These
//! are the shallow formulas, of [`crate::methods::uncollapsed`] for W and M and of [`crate::inverse_free`] for L and R.

use crate::engine::{Basis, CholeskyBasis, Either, Rounded, Spread};
use crate::error::{Error, Result};
use crate::inverse_free::{Adjoints, LSpace, Solved, SolverOptions, Tilde};
use crate::kernels::inducing::{Points, Variables};
use crate::kernels::{Kernel, Tape};
use crate::linalg::{Jitter, Mat, MatRef, Precision, by_columns, column, sized, zeroed};
use crate::params::{Visitor, VisitorMut, count, prefixed, prefixed_mut};
use crate::variational::{self, Form, Parts, Variational};

/// Latent functions that share a kernel, M inducing points and the form of their q.
#[derive(Clone, Debug)]
pub struct Group {
    /// The kernel with the M inducing variables.
    pub inducing: Box<dyn Variables>,
    /// q(u), with one column of its mean for every function. Its form is the kind of the layer: whitened (W), marginal
    /// (M), of pseudo-observations (L) or relaxed (R).
    pub q: Variational,
}

impl Group {
    /// Makes it of a kernel, Z (M×D) and q.
    ///
    /// # Errors
    /// [`Error::Shape`] if q has another number of points, [`Error::Invalid`] for a q of sites, one without functions, or
    /// factors v of pseudo-observations, whose variances have no part r.
    pub fn new(kernel: Box<dyn Kernel>, z: MatRef<f64>, q: Variational) -> Result<Self> {
        Self::with(Box::new(Points::new(kernel, z)), q)
    }

    /// Creates the same with any inducing variables.
    ///
    /// # Errors
    /// As for [`Group::new`], and what the variables say of themselves.
    pub fn with(inducing: Box<dyn Variables>, q: Variational) -> Result<Self> {
        let group = Self { inducing, q };
        group.check()?;
        Ok(group)
    }

    /// Refuses what does not fit together.
    pub(super) fn check(&self) -> Result<()> {
        self.inducing.check()?;
        let m = self.inducing.len();
        if self.q.tying().is_some() {
            return Err(Error::Invalid(
                "a deep layer keeps q by moments or as pseudo-observations, not as sites".into(),
            ));
        }
        if self.q.points() != m || m == 0 {
            return Err(Error::Shape {
                what: "q.mu of a deep layer".into(),
                expected: format!("{m} rows, one per inducing point, and at least one"),
                found: format!("{}", self.q.points()),
            });
        }
        if self.q.latents() == 0 {
            return Err(Error::Invalid("a deep layer has at least one function, found 0".into()));
        }
        if self.q.v.is_some() && self.q.pseudo().is_some() {
            return Err(Error::Invalid(
                "factors v are of the variances r that the inducing points leave, which L and R layers do not have apart: \
                 keep q by its moments"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Returns the number of functions.
    pub fn outputs(&self) -> usize {
        self.q.latents()
    }

    /// Returns whether variances come in one piece v = s + r, the same for all functions (L and R).
    pub fn shares(&self) -> bool {
        self.q.pseudo().is_some()
    }

    /// Shows the parameters; paths have `index` where a layer has several groups.
    pub(super) fn visit<'a>(&'a self, index: &str, visitor: Visitor<'a, '_>) {
        self.inducing.visit(index, visitor);
        prefixed(&format!("q{index}"), visitor, |v| self.q.visit(v));
    }

    /// Shows the same, to change them.
    pub(super) fn visit_mut<'a>(&'a mut self, index: &str, visitor: VisitorMut<'a, '_>) {
        self.inducing.visit_mut(index, visitor);
        prefixed_mut(&format!("q{index}"), visitor, |v| self.q.visit_mut(v));
    }

    /// Returns the number of numbers among the parameters.
    pub(super) fn num_params(&self) -> usize {
        count(|v| self.visit("", v))
    }

    /// Returns the part of a jitter that pseudo-observations take: an absolute one; they need none.
    fn absolute(jitter: Jitter) -> f64 {
        match jitter {
            Jitter::Absolute(jitter) => jitter,
            Jitter::Relative(_) => 0.0,
        }
    }

    /// Brings T of an R layer up to date by natural-gradient steps (Cortinovis et al., Eq. 6); none for the other kinds.
    pub(super) fn settle(
        &mut self,
        jitter: Jitter,
        options: &SolverOptions,
        work: &mut Prepared,
    ) -> Result<Option<Solved>> {
        let Form::Relaxed(preconditioner) = self.q.form else { return Ok(None) };
        work.covariances(self, false);
        let mut root = Mat::new();
        self.q.read_t_root(&mut root)?;
        let tilde = Tilde {
            kuu: work.kuu.as_ref(),
            jitter: Self::absolute(jitter),
            lambda: self.q.second.value(),
        };
        let m = self.q.pseudo_targets();
        let solved = work.space.settled(tilde, root.as_ref(), m, preconditioner, options, None)?;
        if let Some(l) = work.space.lower() {
            self.q.set_t_root(l);
        }
        Ok(Some(solved))
    }
}

/// What a group's rows leave.
#[derive(Debug)]
pub(super) struct Sums {
    /// Whether anything has been added: the large matrices hold nothing before.
    pub(super) used: bool,
    /// Φa, M×P.
    pub(super) phi_a: Mat<f64>,
    /// Lower triangle of Ψ = Φ̄Φᵀ; of L and R that of Φ diag(β) Φᵀ.
    pub(super) psi: Mat<f64>,
    /// What the rows add to R̄, lower triangles.
    pub(super) roots: Vec<Mat<f64>>,
    /// Φ diag(b) Φᵀ, lower triangles, where a natural-gradient step asks for them.
    pub(super) grams: Vec<Mat<f64>>,
    /// Of the parameters of the inducing variables.
    pub(super) inducing: Vec<f64>,
}

impl Default for Sums {
    fn default() -> Self {
        let none = Mat::new;
        Self {
            used: false,
            phi_a: none(),
            psi: none(),
            roots: Vec::new(),
            grams: Vec::new(),
            inducing: Vec::new(),
        }
    }
}

fn add(to: &mut Mat<f64>, other: &Mat<f64>, lower: bool) {
    for j in 0..to.ncols() {
        let from = if lower { j } else { 0 };
        let target = &mut to.col_as_slice_mut(j)[from..];
        target.iter_mut().zip(&column(other.as_ref(), j)[from..]).for_each(|(t, v)| *t += v);
    }
}

impl Sums {
    /// Begins again, in the memory there is.
    pub(super) fn begin(&mut self, group: &Group, grams: bool) {
        let m = group.inducing.len();
        let outputs = group.outputs();
        self.used = false;
        sized(&mut self.phi_a, m, outputs);
        sized(&mut self.psi, m, m);
        self.roots.resize_with(if group.shares() { 0 } else { outputs }, Mat::new);
        self.grams.resize_with(if grams { outputs } else { 0 }, Mat::new);
        let squares = self.roots.iter_mut().chain(&mut self.grams);
        squares.for_each(|a| sized(a, m, m));
        zeroed(&mut self.inducing, group.inducing.num_params());
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        if !other.used {
            return;
        }
        if !self.used {
            self.used = true;
            self.phi_a.copy_from(&other.phi_a);
            self.psi.copy_from(&other.psi);
            let pairs = self.roots.iter_mut().zip(&other.roots);
            pairs.chain(self.grams.iter_mut().zip(&other.grams)).for_each(|(a, b)| a.copy_from(b));
        } else {
            add(&mut self.phi_a, &other.phi_a, false);
            add(&mut self.psi, &other.psi, true);
            let pairs = self.roots.iter_mut().zip(&other.roots);
            pairs.chain(self.grams.iter_mut().zip(&other.grams)).for_each(|(a, b)| add(a, b, true));
        }
        self.inducing.iter_mut().zip(&other.inducing).for_each(|(t, v)| *t += v);
    }

    /// Sets the sums of no rows: all is 0.
    pub(super) fn settle(&mut self) {
        if !self.used {
            self.used = true;
            let squares = self.roots.iter_mut().chain(&mut self.grams);
            squares.for_each(|a| a.fill(0.0));
            self.phi_a.fill(0.0);
            self.psi.fill(0.0);
        }
    }
}

/// A group with all M×M work that comes before the rows.
#[derive(Debug)]
pub(super) struct Prepared {
    kuu: Mat<f64>,
    tape: Tape,
    /// Of W and M layers.
    pub(super) basis: CholeskyBasis,
    pub(super) parts: Parts,
    bars: Parts,
    /// Of L and R layers.
    pub(super) space: LSpace,
    /// What of it is of single precision for the rows.
    rounded: Rounded,
    kuu_bar: Mat<f64>,
    /// KL divergence of q from the prior; of R layers its bound.
    pub(super) kl: f64,
}

impl Default for Prepared {
    fn default() -> Self {
        Self {
            kuu: Mat::new(),
            tape: Tape::off(),
            basis: CholeskyBasis::default(),
            parts: Parts::default(),
            bars: Parts::default(),
            space: LSpace::default(),
            rounded: Rounded::default(),
            kuu_bar: Mat::new(),
            kl: 0.0,
        }
    }
}

impl Prepared {
    fn covariances(&mut self, group: &Group, record: bool) {
        let m = group.inducing.len();
        self.tape.restart(record);
        sized(&mut self.kuu, m, m);
        group.inducing.kuu(self.kuu.as_mut(), &mut self.tape);
    }

    /// Prepares Kuu, its factor and q as the rows see it, with products of rows in a precision.
    pub(super) fn prepare(
        &mut self,
        group: &Group,
        (jitter, precision): (Jitter, Precision),
        record: bool,
    ) -> Result<()> {
        self.covariances(group, record);
        let q = &group.q;
        let tilde = Tilde {
            kuu: self.kuu.as_ref(),
            jitter: Group::absolute(jitter),
            lambda: q.second.value(),
        };
        match q.form {
            Form::Likelihood(preconditioner) => {
                self.space.likelihood(tilde, q.pseudo_targets(), preconditioner)?;
                self.kl = self.space.kl();
            }
            Form::Relaxed(preconditioner) => {
                let mut root = Mat::new();
                q.read_t_root(&mut root)?;
                self.space.relaxed(tilde, root.as_ref(), q.pseudo_targets(), preconditioner);
                self.kl = self.space.kl();
            }
            _ => {
                self.basis.renew(self.kuu.as_ref(), jitter, "Kuu")?;
                let latents = 0..q.latents();
                q.read_whitened(latents.clone(), self.basis.factor(), &mut self.parts)?;
                let Parts { mean, roots } = &self.parts;
                let one = |l: usize| variational::kl(column(mean.as_ref(), l), roots[l].as_ref());
                self.kl = latents.map(one).sum();
            }
        }
        let mut rounded = std::mem::take(&mut self.rounded);
        let (basis, _, spread) = self.of_rows(group);
        rounded.renew(basis, spread, precision);
        self.rounded = rounded;
        Ok(())
    }

    /// Returns basis, whitened means and spread: what rows see, as in a pass of an engine.
    fn of_rows(&self, group: &Group) -> (&dyn Basis, MatRef<'_, f64>, Spread<'_>) {
        match group.shares() {
            true => (self.space.root(), self.space.mean(), self.space.spread()),
            false => (&self.basis, self.parts.mean.as_ref(), Spread::Roots(&self.parts.roots)),
        }
    }

    /// Returns what blocks of rows are multiplied by. (Those of R layers are of double precision,
    /// as their T is.)
    pub(super) fn operands(&self, group: &Group) -> Either<'_> {
        let (basis, mean, spread) = self.of_rows(group);
        Either::of(basis, mean, spread, &self.rounded)
    }

    /// Goes from what the rows left to the gradient, in the order of the parameters, at the slope κ
    /// in the KL divergence. The slopes of factors v are not among it.
    pub(super) fn finish(
        &mut self,
        group: &Group,
        sums: &mut Sums,
        kappa: f64,
        gradient: &mut [f64],
    ) {
        sums.settle();
        let (inducing, q) = gradient.split_at_mut(group.inducing.num_params());
        if group.shares() {
            let (mean, rest) = q.split_at_mut(group.q.first.len());
            let (lambda, rest) = rest.split_at_mut(group.q.second.len());
            let root = group.q.root.as_ref();
            let root = root.filter(|r| !r.frozen).map(|r| &mut rest[..r.len()]);
            let out = Adjoints { kuu: &mut self.kuu_bar, mean, lambda, root };
            self.space.pull(kappa, sums.phi_a.as_ref(), sums.psi.as_ref(), out);
        } else {
            self.pull_moments(group, sums, kappa, q);
        }
        let (k, bar) = (self.kuu.as_ref(), self.kuu_bar.as_mut());
        group.inducing.pull_kuu(k, bar, &mut self.tape, &mut sums.inducing);
        inducing.copy_from_slice(&sums.inducing);
    }

    /// Computes m̄ = Φa + κm, R̄ = tril(2Φ diag(b) ΦᵀR + κR) − κ diag(1/Rⱼⱼ) and K̄uu = −½L⁻ᵀ
    /// mirror(Ψ) L⁻¹ (the shallow bound's, Hensman et al. 2013, 2015, at slopes of these rows).
    fn pull_moments(&mut self, group: &Group, sums: &mut Sums, kappa: f64, q: &mut [f64]) {
        let Parts { mean, roots } = &self.parts;
        let (m, latents) = (mean.nrows(), mean.ncols());
        self.bars.sized(m, latents);
        for (l, (root, own)) in roots.iter().zip(&mut sums.roots).enumerate() {
            let bar = self.bars.mean.col_as_slice_mut(l);
            let (phi_a, mean) = (column(sums.phi_a.as_ref(), l), column(mean.as_ref(), l));
            bar.iter_mut().zip(phi_a.iter().zip(mean)).for_each(|(b, (p, m))| *b = p + kappa * m);
            let root = root.as_ref();
            by_columns(own.as_mut(), &mut vec![(); m], &|j, own, ()| {
                let root = &column(root, j)[j..];
                own[j..].iter_mut().zip(root).for_each(|(b, r)| *b += kappa * r);
                own[j] -= kappa / root[0];
            });
            std::mem::swap(own, &mut self.bars.roots[l]);
        }
        let mut psi = std::mem::replace(&mut sums.psi, Mat::new());
        let factor = self.basis.factor();
        group.q.pull(0..latents, factor, &self.parts, &mut self.bars, &mut psi, q);
        self.kuu_bar = self.basis.kuu_bar(psi);
    }
}
