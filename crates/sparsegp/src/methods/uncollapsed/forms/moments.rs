//! q by its moments, whitened or of u itself.

use super::{FollowingRows, Form, Pull, Stepping};
use crate::engine::ProcessSums;
use crate::error::Result;
use crate::inverse_free::Solved;
use crate::linalg::Mat;
use crate::methods::uncollapsed::prepared::{Prepared, statistics};
use crate::model::Model;
use crate::variational::{Statistics, Variational};

/// Moments of v = L⁻¹u, or of u.
pub(in super::super) struct Moments {
    pub(super) whitened: bool,
}

impl Form for Moments {
    fn prepare(
        &self,
        own: &mut Prepared,
        model: &Model,
        q: &Variational,
        _: Option<FollowingRows<'_>>,
    ) -> Result<Option<Solved>> {
        own.basis.renew(own.kuu.as_ref(), model.jitter, "Kuu")?;
        q.read_whitened(own.latents.clone(), own.basis.factor(), &mut own.parts)?;
        Ok(None)
    }

    fn chooses(&self) -> bool {
        self.whitened
    }

    fn takes_adjoints(&self) -> bool {
        true
    }

    fn pull(
        &self,
        own: &mut Prepared,
        q: &Variational,
        sums: &mut ProcessSums,
        Pull { chosen, share }: Pull,
        gradient: &mut [f64],
    ) {
        // what natural-gradient steps move: nobody asks for gradients of it
        let natural = q.stays() && !sums.grams.is_empty();
        let unasked = chosen || natural && self.whitened;
        own.with_psi(sums, |own, sums, psi, given| {
            let needed = !given || !unasked;
            if needed {
                own.moments(sums, (!given).then(|| psi.as_mut()));
            }
            if chosen {
                *psi *= faer::Scale(share);
            } else if needed {
                let (latents, factor) = (own.latents.clone(), own.basis.factor());
                q.pull(latents, factor, &own.parts, &mut own.bars, psi, gradient);
            }
        });
    }

    fn step(&self, q: &mut Variational, how: Stepping<'_>) -> Result<()> {
        for own in how.processes {
            q.set_whitened(own.latents.clone(), own.basis.factor(), &mut own.moved)?;
        }
        Ok(())
    }

    fn take_guesses(
        &self,
        own: &mut Prepared,
        sums: &ProcessSums,
        found: &mut Variational,
    ) -> Result<()> {
        let grams: Vec<Mat<f64>> = sums.grams.iter().map(|g| faer::Scale(-2.0) * g).collect();
        let rows = Statistics { grams: &grams, ..statistics(sums) };
        own.sites.posterior_of(rows, &mut own.moved)?;
        found.set_whitened(own.latents.clone(), own.basis.factor(), &mut own.moved)
    }

    fn takes_guesses(&self, q: &Variational) -> bool {
        !q.is_diagonal()
    }
}
