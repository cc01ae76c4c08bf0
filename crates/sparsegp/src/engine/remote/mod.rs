//! Sums over rows in other processes: a request in bytes to every shard, one vector of sums back.
//!
//! M×M work stays here: the shards are sent the factor of Kuu. [`crate::shards`] is the other side.

mod request;
mod sums;

pub use request::{Features, OwnSpread, Work};
pub use sums::{Packed, Unpacked};

use super::description::stays;
use super::{Cpu, Engine, Job, Passed, Shelf};
use crate::data::{ShardedRows, Source};
use crate::error::Result;
use crate::linalg::Precision;
use request::SentJob;

/// Asks the shards for sums over their rows, and sums up those that are here (minibatches, samples) itself.
pub struct Remote<'a> {
    /// For rows that are here.
    pub cpu: &'a Cpu,
}

/// Returns the sum of the shards' answers.
///
/// # Errors
/// As for [`crate::data::Shards::round`].
pub(super) fn round(rows: &ShardedRows, work: &Work) -> Result<Vec<f64>> {
    rows.shards().round(work.to_bytes()?)
}

/// Refuses rows elsewhere with a method that needs them here.
///
/// # Errors
/// [`crate::Error::Invalid`] with the reason.
pub(crate) fn refuse(data: &dyn Source, reason: &str) -> Result<()> {
    if data.sharded().is_some() { stays(reason) } else { Ok(()) }
}

impl Passed {
    /// Returns them as an answer.
    pub fn pack(&self) -> Vec<f64> {
        let mut packed = Packed::default();
        self.for_each_part(|part| packed.part(part));
        packed.finish()
    }

    /// Reads the answer to a job.
    fn unpack(&mut self, job: &Job<'_>, mut answer: Unpacked<'_>) -> Result<()> {
        self.clear(job, &job.pointwise.plan());
        self.for_each_part_mut(|part| answer.part(part))?;
        self.mirror();
        answer.end()
    }
}

impl Engine for Remote<'_> {
    fn shelf(&self) -> &Shelf {
        self.cpu.shelf()
    }

    fn go_on(&self) -> Result<()> {
        self.cpu.go_on()
    }

    fn pass_in(
        &self,
        precision: Precision,
        job: &Job<'_>,
        data: &dyn Source,
        out: &mut Passed,
    ) -> Result<()> {
        let Some(rows) = data.sharded() else {
            return self.cpu.pass_in(precision, job, data, out);
        };
        self.go_on()?;
        let sent = SentJob::of(precision, job, data.inputs())?;
        let answer = round(rows, &Work::Pass(sent))?;
        out.unpack(job, Unpacked::new(&answer, rows.count())?)
    }
}
