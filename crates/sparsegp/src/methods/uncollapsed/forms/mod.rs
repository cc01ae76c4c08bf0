//! What the forms of q are in a pass over rows: one file each, and one line in [`of`].
//!
//! A pass knows latent functions that share covariances ([`Prepared`]) and what rows sum for them. A [`Form`] says how its
//! numbers become what rows see, what its part of the bound is, how gradients come back, and how it steps.

pub(super) mod moments;
pub(crate) mod pseudo;
pub(super) mod row_sites;
pub(super) mod tied;

use super::prepared::Prepared;
use super::step::Step;
use crate::data::Source;
use crate::engine::{Engine, Passed, Process, ProcessSums};
use crate::error::{Error, Result};
use crate::inverse_free::Solved;
use crate::kernels::inducing::Inducing;
use crate::linalg::column;
use crate::model::Model;
use crate::variational::sites::Tying;
use crate::variational::{self, Variational};
use moments::Moments;
use pseudo::{Following, Pseudo};
use row_sites::{RowSites, Seen};
use tied::Tied;

/// How T follows, and the rows that a criterion may look at.
pub(super) type FollowingRows<'a> = (&'a Following, Option<&'a dyn Source>);

/// What gradients have to know of the pass beside its sums.
#[derive(Clone, Copy)]
pub(super) struct Pull {
    /// Whether some of the latent functions of a target move and others do not.
    pub(super) chosen: bool,
    /// By how much gradients through those that move are to be multiplied.
    pub(super) share: f64,
}

/// What a natural-gradient step is made of.
pub(super) struct Stepping<'a> {
    pub(super) processes: &'a mut [Prepared],
    pub(super) sums: &'a [ProcessSums],
    pub(super) seen: &'a Seen,
    pub(super) rate: f64,
}

/// What a form of q is in a pass over rows.
pub(super) trait Form: Sync {
    /// Brings what rows are seen through into `own`, whose Kuu is there, and factors it where that is needed.
    ///
    /// # Errors
    /// As for [`crate::methods::Method::evaluate`].
    fn prepare(
        &self,
        own: &mut Prepared,
        model: &Model,
        q: &Variational,
        following: Option<FollowingRows<'_>>,
    ) -> Result<Option<Solved>>;

    /// Prepares what takes a pass over the rows that q's numbers are of, before the pass that was
    /// asked for.
    ///
    /// # Errors
    /// As for [`crate::methods::Method::evaluate`]; [`Error::Invalid`] for other rows than those.
    fn prepare_from_rows(
        &self,
        _processes: &mut [Prepared],
        _memory: &mut Passed,
        (_model, _q): (&Model, &Variational),
        (_engine, _data): (&dyn Engine, &dyn Source),
    ) -> Result<()> {
        Ok(())
    }

    /// Refuses a number of inducing points that is not q's.
    ///
    /// # Errors
    /// [`Error::Shape`].
    fn check_points(&self, q: &Variational, points: usize) -> Result<()> {
        if q.points() == points {
            return Ok(());
        }
        Err(Error::Shape {
            what: "q.mu".into(),
            expected: format!("{points} rows, one per inducing point"),
            found: format!("{}", q.points()),
        })
    }

    /// Returns the latent functions as the engine wants them.
    fn process<'a>(&self, own: &'a Prepared, inducing: &'a dyn Inducing) -> Process<'a> {
        own.whitened_process(inducing)
    }

    /// Returns KL(q‖p).
    fn kl(&self, own: &Prepared) -> f64 {
        let mean = own.parts.mean.as_ref();
        let each = own.parts.roots.iter().enumerate();
        each.map(|(at, root)| variational::kl(column(mean, at), root.as_ref())).sum()
    }

    /// Returns whether latent functions may be mixed ([`crate::likelihoods::Likelihood::mixing`]).
    fn mixes(&self) -> bool {
        true
    }

    /// Returns whether some of the latent functions of a target may move while others do not
    /// ([`Step::choose`]).
    fn chooses(&self) -> bool {
        false
    }

    /// Returns whether steps cut ∂ℓ/∂s, so that what they move stay precisions.
    fn clips(&self) -> bool {
        false
    }

    /// Returns whether steps need what every row has given ([`Seen`]).
    fn sees_rows(&self) -> bool {
        false
    }

    /// Returns whether Ψ and the adjoints of roots may come from the rows: nothing but Φ̄Φᵀ is in
    /// Ψ.
    fn takes_adjoints(&self) -> bool {
        false
    }

    /// Returns whether r + s and K̄uf may come from one product with (S − I)L⁻¹
    /// ([`crate::engine::Spread::Through`]).
    fn goes_through(&self) -> bool {
        true
    }

    /// Returns whether ‖φ‖² may be more than the prior variance, so that r < 0 says nothing of
    /// rounding.
    fn overshoots(&self) -> bool {
        false
    }

    /// Returns ‖E‖_F/√M of R-SVGP.
    fn residual(&self, _own: &Prepared) -> Option<f64> {
        None
    }

    /// Goes from the sums of the rows to K̄uu (without what comes through Kuf) and the gradient of
    /// q's parameters.
    fn pull(
        &self,
        own: &mut Prepared,
        q: &Variational,
        sums: &mut ProcessSums,
        how: Pull,
        gradient: &mut [f64],
    );

    /// Adds to kernels and inducing points what comes through sums over the rows that q's numbers are of.
    ///
    /// # Errors
    /// Those of the pass.
    fn add_gradients(
        &self,
        _step: &mut Step,
        (_model, _q): (&Model, &Variational),
        (_engine, _data): (&dyn Engine, &dyn Source),
    ) -> Result<()> {
        Ok(())
    }

    /// Refuses natural-gradient steps where there are none.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    fn check_steps(&self) -> Result<()> {
        Ok(())
    }

    /// Moves q by a natural-gradient step; where it does not clip, the processes hold the whitened q after it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for diagonal covariances, and for pseudo-observations.
    fn step(&self, q: &mut Variational, how: Stepping<'_>) -> Result<()>;

    /// Moves sites so that the latent functions of a target have an average of 0 ([`Step::centre`]). Returns what the
    /// bound gains.
    fn centre(
        &self,
        _own: &mut Prepared,
        _q: &mut Variational,
        _seen: &mut Seen,
        _each: usize,
    ) -> f64 {
        0.0
    }

    /// Returns the same q(u) without the rows that its numbers are of; none where it needs no rows
    /// already.
    fn tied(&self, _step: &Step, _q: &Variational) -> Option<Variational> {
        None
    }

    /// Gives `found` the q that sums over rows at guesses make ([`super::guesses`]), from a q that is the prior.
    ///
    /// # Errors
    /// [`Error::NotPositiveDefinite`]; [`Error::Invalid`] for a form that sums over rows do not set.
    fn take_guesses(
        &self,
        _own: &mut Prepared,
        _sums: &ProcessSums,
        _found: &mut Variational,
    ) -> Result<()> {
        Err(Error::Invalid("guesses of latent values do not set a q of this form".into()))
    }

    /// Returns whether guesses can set it.
    fn takes_guesses(&self, _q: &Variational) -> bool {
        true
    }
}

/// Returns the form of a q.
pub(super) fn of(q: &Variational) -> &'static dyn Form {
    match q.form {
        variational::Form::Whitened => &Moments { whitened: true },
        variational::Form::Marginal => &Moments { whitened: false },
        variational::Form::Sites(Tying::Natural) => &Tied(Tying::Natural),
        variational::Form::Sites(Tying::Kernel) => &Tied(Tying::Kernel),
        variational::Form::Sites(Tying::Whitened) => &Tied(Tying::Whitened),
        variational::Form::Sites(Tying::Untied) => &RowSites,
        variational::Form::Likelihood(_) => &Pseudo { relaxed: false },
        variational::Form::Relaxed(_) => &Pseudo { relaxed: true },
    }
}
