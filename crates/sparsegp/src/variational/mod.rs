//! The Gaussian q(u) over inducing variables, as parameters that are trained.
//!
//! Every latent function l has u_l = f_l(Z) − m_l(Z) at M inducing points, and q(u_l) = N(m_l, R_l R_lᵀ).
//! It is stored *whitened* (of v = L⁻¹u, with Kuu = L Lᵀ; the prior is N(0, I)) or *marginal* (of u
//! itself), with a full lower-triangular root or with standard deviations only. Whatever is stored,
//! inference sees the whitened form: m_v = L⁻¹m, R_v = L⁻¹R ([`Variational::whitened`]), and its
//! adjoints come back the same way ([`Variational::pull`]).

mod natural;
mod pseudo;
pub mod sites;

pub use natural::{NaturalStep, Statistics};
use sites::At;
pub use sites::Tying;

use crate::error::{Error, Result};
use crate::inverse_free::Preconditioner;
use crate::linalg::{
    Accum, Cholesky, Mat, MatRef, clear_upper, column, gemm, par_for, product, sized, solve_lower,
    solve_lower_transpose, sum_of_products,
};
use crate::params::{Param, Role, Shape, Transform, Visitor, VisitorMut};
use std::ops::Range;

/// q(u) of all latent functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Variational {
    /// Means, M×L; of sites the first statistics (N×L where they are untied).
    pub first: Param,
    /// Lower roots of the covariances ([`Shape::Lower`]), or standard deviations, M×L; of sites the lower
    /// triangles of the second statistics, which are symmetric (N×L where they are untied); of
    /// pseudo-observations their noise variances, M.
    pub second: Param,
    /// The lower root of R-SVGP's auxiliary T, M×M, which follows the other parameters.
    pub root: Option<Param>,
    /// Factors of the conditional variance of f given u, one per latent function, where the bound has
    /// them (Titsias 2025, Eq. 22).
    pub v: Option<Param>,
    /// What of.
    pub form: Form,
    /// Smallest precision of a row's site in steps that move only sites (Adam et al. 2021 take
    /// 2·10⁻⁸).
    pub floor: f64,
}

/// What is stored of q(u).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Moments of v = L⁻¹u.
    Whitened,
    /// Moments of u itself.
    Marginal,
    /// Sites: what the prior is multiplied with ([`sites`]).
    Sites(Tying),
    /// What pseudo-observations with their own noise variances make of the prior: L-SVGP
    /// ([`crate::inverse_free`]).
    Likelihood(Preconditioner),
    /// The same without factorisations: R-SVGP.
    Relaxed(Preconditioner),
}

impl Form {
    /// Returns the names of the two parameters.
    fn names(self) -> [&'static str; 2] {
        match self {
            Form::Whitened | Form::Marginal => ["mu", "sqrt"],
            Form::Sites(_) => ["lambda1", "lambda2"],
            Form::Likelihood(_) | Form::Relaxed(_) => ["mu", "lambda"],
        }
    }
}

/// What inference sees of some latent functions that share their inducing points: whitened means
/// (M×l) and lower roots (M×M each).
#[derive(Clone, Debug)]
pub struct Parts {
    /// Means.
    pub mean: Mat<f64>,
    /// Roots.
    pub roots: Vec<Mat<f64>>,
}

impl Default for Parts {
    fn default() -> Self {
        Self { mean: Mat::new(), roots: Vec::new() }
    }
}

impl Parts {
    /// Gives it a shape; the contents are arbitrary.
    pub fn sized(&mut self, points: usize, latents: usize) {
        sized(&mut self.mean, points, latents);
        self.roots.resize_with(latents, Mat::new);
        self.roots.iter_mut().for_each(|root| sized(root, points, points));
    }
}

impl Variational {
    fn assemble(first: Param, second: Param, form: Form) -> Self {
        let [first, second] = [first, second].map(|param| param.of(Role::Variational));
        Self { first, second, root: None, v: None, form, floor: 0.0 }
    }

    /// Creates the prior in whitened form: means 0, roots I.
    pub fn prior(points: usize, latents: usize, diagonal: bool) -> Self {
        let mu = vec![0.0; points * latents];
        let shape = Shape::Matrix(points, latents);
        let sqrt = if diagonal {
            Param::with(vec![1.0; points * latents], shape, Transform::Identity)
        } else {
            let identity = Mat::<f64>::identity(points, points);
            let one = packed(identity.as_ref());
            Param::with(one.repeat(latents), Shape::Lower(latents, points), Transform::Identity)
        };
        let first = Param::with(mu, shape, Transform::Identity);
        Self::assemble(first, sqrt, Form::Whitened)
    }

    /// Creates q from means (M×L) and roots: L lower-triangular matrices, or one M×L matrix of
    /// standard deviations.
    ///
    /// # Errors
    /// [`Error::Shape`] if they do not fit together.
    pub fn new(
        mu: MatRef<f64>,
        roots: &[Mat<f64>],
        diagonal: bool,
        whitened: bool,
    ) -> Result<Self> {
        let (m, l) = (mu.nrows(), mu.ncols());
        let (count, rows, cols) = if diagonal { (1, m, l) } else { (l, m, m) };
        let fits = |r: &Mat<f64>| r.nrows() == rows && r.ncols() == cols;
        if roots.len() != count || !roots.iter().all(fits) {
            return Err(Error::Shape {
                what: "q.sqrt".into(),
                expected: format!("{count} of {rows}×{cols}"),
                found: roots
                    .iter()
                    .map(|r| format!("{}×{}", r.nrows(), r.ncols()))
                    .collect::<Vec<_>>()
                    .join(", "),
            });
        }
        let by_columns = |a: MatRef<f64>| -> Vec<f64> {
            (0..a.ncols()).flat_map(|j| (0..a.nrows()).map(move |i| a[(i, j)])).collect()
        };
        let shape = Shape::Matrix(m, l);
        let sqrt = if diagonal {
            Param::with(by_columns(roots[0].as_ref()), shape, Transform::Identity)
        } else {
            let values = roots.iter().flat_map(|r| packed(r.as_ref())).collect();
            Param::with(values, Shape::Lower(l, m), Transform::Identity)
        };
        let mu = Param::with(by_columns(mu), shape, Transform::Identity);
        let form = if whitened { Form::Whitened } else { Form::Marginal };
        Ok(Self::assemble(mu, sqrt, form))
    }

    /// Adds factors v, one for each latent function, that start at 1.
    #[must_use]
    pub fn with_factors(mut self) -> Self {
        let shape = Shape::Vector(self.latents());
        let ones = vec![1.0; self.latents()];
        let v = Param::with(ones, shape, Transform::Exp { lower: 0.0 });
        self.v = Some(v.of(Role::Factors));
        self
    }

    /// Shows the parameters with their paths: `mu` and `sqrt`, or `lambda1` and `lambda2` of sites, or `mu`
    /// and `lambda` of pseudo-observations, and, if it has them, `t_sqrt` and `v`.
    pub fn visit<'a>(&'a self, visitor: Visitor<'a, '_>) {
        let [first, second] = self.form.names();
        visitor(&first, &self.first);
        visitor(&second, &self.second);
        self.root.iter().for_each(|root| visitor(&"t_sqrt", root));
        self.v.iter().for_each(|v| visitor(&"v", v));
    }

    /// Shows the same, to change them.
    pub fn visit_mut<'a>(&'a mut self, visitor: VisitorMut<'a, '_>) {
        let [first, second] = self.form.names();
        visitor(&first, &mut self.first);
        visitor(&second, &mut self.second);
        self.root.iter_mut().for_each(|root| visitor(&"t_sqrt", root));
        self.v.iter_mut().for_each(|v| visitor(&"v", v));
    }

    /// Returns the number of inducing points M.
    pub fn points(&self) -> usize {
        match self.first.shape() {
            Shape::Matrix(m, _) => m,
            _ => self.first.len(),
        }
    }

    /// Returns the number of latent functions L.
    pub fn latents(&self) -> usize {
        self.first.len() / self.points().max(1)
    }

    /// Returns whether an optimiser of parameters leaves it as it is.
    pub fn stays(&self) -> bool {
        self.first.frozen && self.second.frozen
    }

    /// Returns whether the covariances are diagonal (in the stored form).
    pub fn is_diagonal(&self) -> bool {
        !matches!(self.second.shape(), Shape::Lower(..))
    }

    /// Returns the factor v of a latent function; 1 where there is none.
    pub fn factor_of(&self, latent: usize) -> f64 {
        self.v.as_ref().map_or(1.0, |v| v.value()[latent])
    }

    /// Returns the means as stored, M×L.
    pub fn mean(&self) -> Mat<f64> {
        let m = self.points();
        Mat::from_fn(m, self.latents(), |i, l| self.first.value()[l * m + i])
    }

    /// Returns the root of a latent function as stored, lower triangular (diagonal if only standard
    /// deviations are stored).
    pub fn root(&self, latent: usize) -> Mat<f64> {
        let m = self.points();
        let mut root = Mat::zeros(m, m);
        self.read_root(latent, &mut root);
        root
    }

    /// Reads the same, into an M×M matrix.
    fn read_root(&self, latent: usize, root: &mut Mat<f64>) {
        let m = self.points();
        let diagonal = self.is_diagonal();
        let size = if diagonal { m } else { m * (m + 1) / 2 };
        let mut rest = &self.second.value()[latent * size..(latent + 1) * size];
        for j in 0..m {
            let (own, tail) = rest.split_at(if diagonal { 1 } else { m - j });
            let target = root.col_as_slice_mut(j);
            target[..j].fill(0.0);
            target[j..j + own.len()].copy_from_slice(own);
            target[j + own.len()..].fill(0.0);
            rest = tail;
        }
    }

    /// Returns the whitened means and roots of some latent functions that share Kuu with this
    /// factor.
    ///
    /// # Errors
    /// As for [`Variational::read_whitened`].
    pub fn whitened(&self, latents: Range<usize>, factor: &Cholesky) -> Result<Parts> {
        let mut parts = Parts::default();
        self.read_whitened(latents, factor, &mut parts)?;
        Ok(parts)
    }

    /// Reads the same, into `out`.
    ///
    /// # Errors
    /// Sites may be of no normal: see [`sites::SiteWork::posterior`]. [`Error::Invalid`] for
    /// pseudo-observations.
    pub fn read_whitened(
        &self,
        latents: Range<usize>,
        factor: &Cholesky,
        out: &mut Parts,
    ) -> Result<()> {
        let m = self.points();
        out.sized(m, latents.len());
        if self.pseudo().is_some() {
            return Err(Error::Invalid("pseudo-observations have no whitened moments".into()));
        }
        if let Form::Sites(tying) = self.form {
            return sites::SiteWork::default().posterior(self, &At { tying, latents, factor }, out);
        }
        for (at, latent) in latents.enumerate() {
            let own = &self.first.value()[latent * m..(latent + 1) * m];
            out.mean.col_as_slice_mut(at).copy_from_slice(own);
            self.read_root(latent, &mut out.roots[at]);
        }
        if self.form == Form::Marginal {
            let (l, par) = (factor.l.as_ref(), par_for(m));
            solve_lower(l, out.mean.as_mut(), par);
            for root in &mut out.roots {
                solve_lower(l, root.as_mut(), par);
                clear_upper(root.as_mut());
            }
        }
        Ok(())
    }

    /// Returns the means and variances of every coordinate, as stored: what tells whether q still
    /// changes.
    pub fn means_and_variances(&self) -> Vec<f64> {
        let m = self.points();
        let mut all = self.first.value().to_vec();
        for l in 0..self.latents() {
            let root = self.root(l);
            all.extend((0..m).map(|i| (0..=i).map(|j| root[(i, j)] * root[(i, j)]).sum::<f64>()));
        }
        all
    }

    /// Takes the values of another q of the same shapes.
    pub fn copy_from(&mut self, other: &Self) {
        self.first.value_mut().copy_from_slice(other.first.value());
        self.second.value_mut().copy_from_slice(other.second.value());
        for (own, other) in [(&mut self.v, &other.v), (&mut self.root, &other.root)] {
            if let (Some(own), Some(other)) = (own, other) {
                own.value_mut().copy_from_slice(other.value());
            }
        }
    }

    /// Takes those of only some latent functions.
    pub fn copy_latents(&mut self, other: &Self, latents: &[usize]) {
        let count = self.latents();
        for (own, other) in [(&mut self.first, &other.first), (&mut self.second, &other.second)] {
            let size = own.len() / count.max(1);
            for l in latents {
                let range = l * size..(l + 1) * size;
                own.value_mut()[range.clone()].copy_from_slice(&other.value()[range]);
            }
        }
    }

    /// Writes whitened means and roots of some latent functions back into what is stored. `parts` may
    /// be changed.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the covariances are diagonal.
    pub fn set_whitened(
        &mut self,
        latents: Range<usize>,
        factor: &Cholesky,
        parts: &mut Parts,
    ) -> Result<()> {
        if self.is_diagonal() {
            return Err(Error::Invalid(
                "q has diagonal covariances, which cannot hold a full one".into(),
            ));
        }
        let m = self.points();
        if self.form == Form::Marginal {
            let stored = |a: &Mat<f64>| product(factor.l.as_ref(), a.as_ref());
            parts.mean = stored(&parts.mean);
            parts.roots.iter_mut().for_each(|root| *root = stored(root));
        }
        let size = m * (m + 1) / 2;
        for (at, latent) in latents.enumerate() {
            let mean = column(parts.mean.as_ref(), at);
            self.first.value_mut()[latent * m..(latent + 1) * m].copy_from_slice(mean);
            let mut rest = &mut self.second.value_mut()[latent * size..(latent + 1) * size];
            for j in 0..m {
                let (target, tail) = rest.split_at_mut(m - j);
                target.copy_from_slice(&column(parts.roots[at].as_ref(), j)[j..]);
                rest = tail;
            }
        }
        Ok(())
    }

    /// Pulls adjoints of the whitened means and roots (of which the lower triangles are read) back to
    /// what is stored, into `gradient` (in the order of [`Variational::visit`]). In the marginal form
    /// m_v = L⁻¹m, R_v = L⁻¹R depend on Kuu too: L̄ = −tril(L⁻ᵀ(m̄_v m_vᵀ + R̄_v R_vᵀ)), so these
    /// products are added to `psi` ([`crate::engine::CholeskyBasis::kuu_bar`]).
    pub fn pull(
        &self,
        latents: Range<usize>,
        factor: &Cholesky,
        parts: &Parts,
        bars: &mut Parts,
        psi: &mut Mat<f64>,
        gradient: &mut [f64],
    ) {
        let m = self.points();
        let par = par_for(m);
        if self.form == Form::Marginal {
            bars.roots.iter_mut().for_each(|root| clear_upper(root.as_mut()));
            let add = |psi: &mut Mat<f64>, a: &Mat<f64>, b: &Mat<f64>| {
                gemm(psi.as_mut(), Accum::Add, a.as_ref(), b.transpose(), 1.0, par);
            };
            add(psi, &bars.mean, &parts.mean);
            let l = factor.l.as_ref();
            solve_lower_transpose(l, bars.mean.as_mut(), par);
            for (bar, root) in bars.roots.iter_mut().zip(&parts.roots) {
                add(psi, bar, root);
                solve_lower_transpose(l, bar.as_mut(), par);
            }
        }
        let (mu, sqrt) = gradient.split_at_mut(self.first.len());
        let size = m * (m + 1) / 2;
        for (at, latent) in latents.enumerate() {
            mu[latent * m..(latent + 1) * m].copy_from_slice(column(bars.mean.as_ref(), at));
            let bar = bars.roots[at].as_ref();
            if self.is_diagonal() {
                (0..m).for_each(|i| sqrt[latent * m + i] = bar[(i, i)]);
                continue;
            }
            let mut rest = &mut sqrt[latent * size..(latent + 1) * size];
            for j in 0..m {
                let (target, tail) = rest.split_at_mut(m - j);
                target.copy_from_slice(&column(bar, j)[j..]);
                rest = tail;
            }
        }
    }
}

/// Returns KL(q‖p) of whitened q = N(m, RRᵀ) against N(0, I): ½(‖R‖² + ‖m‖² − M) − Σ log|Rⱼⱼ|, of
/// one latent function.
pub fn kl(mean: &[f64], root: MatRef<f64>) -> f64 {
    let m = mean.len();
    let square = |a: &[f64]| sum_of_products(a, a);
    let squares = square(mean) + (0..m).map(|j| square(&column(root, j)[j..])).sum::<f64>();
    let log_det: f64 = (0..m).map(|j| root[(j, j)].abs().ln()).sum();
    0.5 * (squares - m as f64) - log_det
}

/// Returns a lower triangle column by column, from the diagonal down.
fn packed(a: MatRef<f64>) -> Vec<f64> {
    (0..a.ncols()).flat_map(|j| (j..a.nrows()).map(move |i| a[(i, j)])).collect()
}
