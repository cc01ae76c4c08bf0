//! q(u) as what pseudo-observations make of the prior: m̃, λ and, for R-SVGP, L.

use super::{Form, Variational};
use crate::error::{Error, Result};
use crate::inverse_free::{LSpace, Preconditioner, Tilde};
use crate::linalg::{Mat, MatRef, column, sized};
use crate::params::{Param, Role, Shape, Transform};

/// Where the noise variances λ start (Cortinovis et al., App. S5.3, released configuration).
const LAMBDA: f64 = 1e-4;
/// L starts at this multiple of the identity (the same); larger K̃ make the first solve restart.
const ROOT: f64 = 1e-3;

impl Variational {
    /// Sets m̃ = 0 and λ = 10⁻⁴, for L-SVGP or, `relaxed`, R-SVGP (with L = 10⁻³I, which optimisers
    /// do not change).
    pub fn pseudo_observations(
        points: usize,
        latents: usize,
        preconditioner: Preconditioner,
        relaxed: bool,
    ) -> Self {
        let first = Param::with(
            vec![0.0; points * latents],
            Shape::Matrix(points, latents),
            Transform::Identity,
        );
        let second =
            Param::with(vec![LAMBDA; points], Shape::Vector(points), Transform::Exp { lower: 0.0 });
        let form =
            if relaxed { Form::Relaxed(preconditioner) } else { Form::Likelihood(preconditioner) };
        let mut q = Self::assemble(first, second, form);
        if relaxed {
            let shape = Shape::Lower(1, points);
            let zeros = vec![0.0; points * (points + 1) / 2];
            let mut root = Param::with(zeros, shape, Transform::Identity).of(Role::Variational);
            root.frozen = true;
            q.root = Some(root);
            q.set_t_root((Mat::<f64>::identity(points, points) * faer::Scale(ROOT)).as_ref());
        }
        q
    }

    /// Returns how m̃ becomes the mean of q, if q is kept as pseudo-observations.
    pub fn pseudo(&self) -> Option<Preconditioner> {
        match self.form {
            Form::Likelihood(preconditioner) | Form::Relaxed(preconditioner) => {
                Some(preconditioner)
            }
            Form::Whitened | Form::Marginal | Form::Sites(_) => None,
        }
    }

    /// Brings `lspace` to this q at Kuu with a jitter on its diagonal, with L of R-SVGP as it is; `root` is memory.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`]; as for [`Variational::read_t_root`].
    pub fn read_lspace(
        &self,
        kuu: MatRef<f64>,
        jitter: f64,
        root: &mut Mat<f64>,
        lspace: &mut LSpace,
    ) -> Result<()> {
        let tilde = Tilde { kuu, jitter, lambda: self.second.value() };
        let targets = self.pseudo_targets();
        if let Form::Relaxed(preconditioner) = self.form {
            self.read_t_root(root)?;
            lspace.set_probes(Default::default(), |probes| *probes = Mat::new());
            lspace.relaxed(tilde, root.as_ref(), targets, preconditioner);
            return Ok(());
        }
        lspace.likelihood(tilde, targets, self.pseudo().unwrap_or_default())
    }

    /// Returns m̃, M×L.
    pub fn pseudo_targets(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(self.first.value(), self.points(), self.latents())
    }

    /// Reads L of R-SVGP, lower triangular, into `out`.
    ///
    /// # Errors
    /// [`Error::NonFinite`] if its diagonal is not positive; [`Error::Invalid`] if there is none.
    pub fn read_t_root(&self, out: &mut Mat<f64>) -> Result<()> {
        let m = self.points();
        let root =
            self.root.as_ref().ok_or_else(|| Error::Invalid("q has no auxiliary T".into()))?;
        sized(out, m, m);
        let mut rest = root.value();
        for j in 0..m {
            let (own, tail) = rest.split_at(m - j);
            let target = out.col_as_slice_mut(j);
            target[..j].fill(0.0);
            target[j..].copy_from_slice(own);
            rest = tail;
            if !(target[j] > 0.0 && target[j].is_finite()) {
                // optimisers that move L itself go back from here
                return Err(Error::NonFinite {
                    what: format!("the logarithm of {} on the diagonal of q.t_sqrt", target[j]),
                    value: target[j].ln(),
                });
            }
        }
        Ok(())
    }

    /// Sets L of R-SVGP from a lower-triangular matrix; nothing where q has none.
    pub fn set_t_root(&mut self, l: MatRef<f64>) {
        let Some(root) = &mut self.root else { return };
        let mut rest = root.value_mut();
        for j in 0..l.ncols() {
            let (target, tail) = rest.split_at_mut(l.nrows() - j);
            target.copy_from_slice(&column(l, j)[j..]);
            rest = tail;
        }
    }
}
