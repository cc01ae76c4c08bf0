//! A period of a series: its kernel has dozens of states, so that it is tried only where a wave, which has two, explains something,
//! or where its own start, the strongest period of the rows, is a line in their spectrum.

use super::structure::{Change, Term};
use super::values::{start_likelihood, start_period};
use super::{Judged, SETTLING, Search, passed_over};
use crate::error::Result;
use crate::fit::trial::Trial;
use crate::kernels::repeats;
use crate::linalg::column;
use crate::params::{Param, Role};

/// Nats by which a wave must raise the objective, for a period to be tried.
const WAVE: f64 = 2.0;
/// Periods that are tried, in those of the wave: what repeats may have more than one wave in it.
const TIMES: [f64; 2] = [1.0, 2.0];

impl Search<'_> {
    /// Returns the best so far with a period; none where rows show none. The wave is a candidate, too.
    pub(super) fn period(
        &mut self,
        best: &Judged,
        all: &mut Vec<Judged>,
    ) -> Result<Option<Judged>> {
        // from a start with a period, and beside the values that there are
        let change = Change::Plus(Term::Wave);
        let searched = self.changed(best, change, 1).or_else(passed_over)?;
        let beside = self.continued(best, change, 1).or_else(passed_over)?;
        let wave = searched.into_iter().chain(beside).max_by(Judged::by_score);
        let explains = |wave: &&Judged| wave.score.evidence > best.score.evidence + WAVE;
        let near = match wave.as_ref().filter(explains) {
            Some(wave) => self.around(best, wave).or_else(passed_over)?,
            None => None,
        };
        all.extend(wave);
        let shown = self.shown(best).or_else(passed_over)?;
        Ok(near.into_iter().chain(shown).max_by(Judged::by_score))
    }

    /// Returns the best so far with the best of some periods near a wave.
    fn around(&mut self, best: &Judged, wave: &Judged) -> Result<Option<Judged>> {
        let structure = best.structure.with(Change::Plus(Term::Periodic));
        let spec = structure.specification();
        let Some(trial) = self.trial(&spec, 0)? else { return Ok(None) };
        let mut found: Option<(f64, Trial)> = None;
        for times in TIMES {
            let mut own = trial.clone();
            for (kernel, wave) in own.model.kernels.iter_mut().zip(&wave.trial.model.kernels) {
                start_period(&mut **kernel, &**wave, times, self.known);
            }
            start_likelihood(&mut own.model, &wave.trial.model);
            let most = found.as_ref().map_or(f64::NEG_INFINITY, |(most, _)| *most);
            let objective = own.settle(SETTLING, self.engine, self.observer)?;
            if let Some(objective) = objective.filter(|own| *own > most) {
                found = Some((objective, own));
            }
        }
        let Some((_, trial)) = found else { return Ok(None) };
        self.trained(structure, &spec, trial, best.score.score)
    }

    /// Returns the best so far with the strongest period of the rows, where that is a line in their spectrum.
    fn shown(&mut self, best: &Judged) -> Result<Option<Judged>> {
        let change = Change::Plus(Term::Periodic);
        let spec = best.structure.with(change).specification();
        let Some(trial) = self.trial(&spec, 0)? else { return Ok(None) };
        let params = trial.model.kernel().params();
        let free = |(_, own): &&(String, &Param)| own.role() == Role::Period && !own.frozen;
        let period = params.iter().find(free).map(|(_, own)| own.scalar());
        let rows = trial.rows();
        // labels of several classes are not numbers
        let numbers = trial.model.likelihood.classes().is_none_or(|count| count == 2);
        let line = |period| numbers && repeats(column(rows.x.as_ref(), 0), rows.y.as_ref(), period);
        match period.is_some_and(line) {
            true => self.continued(best, change, 1),
            false => Ok(None),
        }
    }
}
