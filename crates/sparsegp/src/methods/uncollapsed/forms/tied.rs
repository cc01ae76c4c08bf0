//! q as the prior times sites that are tied at the inducing points ([`crate::variational::sites`]).

use super::{FollowingRows, Form, Pull, Seen, Stepping};
use crate::engine::{CholeskyBasis, ProcessSums};
use crate::error::Result;
use crate::inverse_free::Solved;
use crate::methods::uncollapsed::prepared::{Prepared, statistics};
use crate::model::Model;
use crate::variational::Variational;
use crate::variational::sites::{At, Tying};
use std::ops::Range;

/// Sites, and what is stored of them.
pub(in super::super) struct Tied(pub(super) Tying);

impl Tied {
    fn at<'a>(&self, latents: &Range<usize>, basis: &'a CholeskyBasis) -> At<'a> {
        At { tying: self.0, latents: latents.clone(), factor: basis.factor() }
    }
}

impl Form for Tied {
    fn prepare(
        &self,
        own: &mut Prepared,
        model: &Model,
        q: &Variational,
        _: Option<FollowingRows<'_>>,
    ) -> Result<Option<Solved>> {
        own.basis.renew(own.kuu.as_ref(), model.jitter, "Kuu")?;
        let at = self.at(&own.latents, &own.basis);
        own.sites.posterior(q, &at, &mut own.parts)?;
        Ok(None)
    }

    fn clips(&self) -> bool {
        true
    }

    fn takes_adjoints(&self) -> bool {
        self.0 == Tying::Whitened
    }

    fn pull(
        &self,
        own: &mut Prepared,
        _: &Variational,
        sums: &mut ProcessSums,
        _: Pull,
        _: &mut [f64],
    ) {
        own.with_psi(sums, |own, sums, psi, given| match self.0 {
            Tying::Whitened if given => {}
            Tying::Whitened => own.moments(sums, Some(psi.as_mut())),
            tying => own.sites.add_psi(tying, &own.parts, statistics(sums), psi.as_mut()),
        });
    }

    fn step(&self, q: &mut Variational, how: Stepping<'_>) -> Result<()> {
        for (own, sums) in how.processes.iter_mut().zip(how.sums) {
            let at = self.at(&own.latents, &own.basis);
            own.sites.step(q, &at, &own.parts, statistics(sums), how.rate);
        }
        Ok(())
    }

    fn centre(&self, own: &mut Prepared, q: &mut Variational, _: &mut Seen, each: usize) -> f64 {
        own.centre(q, self.0, each)
    }

    fn take_guesses(
        &self,
        own: &mut Prepared,
        sums: &ProcessSums,
        found: &mut Variational,
    ) -> Result<()> {
        // a whole step from sites of 0 at a mean of 0
        own.parts.mean.fill(0.0);
        let at = self.at(&own.latents, &own.basis);
        own.sites.step(found, &at, &own.parts, statistics(sums), 1.0);
        Ok(())
    }
}
