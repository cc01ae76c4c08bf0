//! Sums over rows in other processes: a request in bytes to every shard, one vector of sums back.
//!
//! M×M work stays here: the shards are sent the factor of Kuu. [`crate::shards`] is the other side.

mod request;
mod sums;

pub use request::{Features, OwnSpread, Work};
pub use sums::{Packed, Unpacked};

use super::description::stays;
use super::{
    Cpu, Engine, Folded, Job, Local, Passed, Prepared, ProcessSums, Shelf, Unfolded, Want, Whitened,
};
use crate::data::{ShardedRows, Source};
use crate::error::Result;
use request::{SentJob, SentRows};

/// Asks the shards for sums over their rows, and sums up those that are here (minibatches, samples) itself.
pub struct Remote<'a> {
    /// For rows that are here.
    pub cpu: &'a Cpu,
}

/// The sum of the shards' answers.
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

impl Folded {
    /// As an answer.
    pub fn pack(&self) -> Vec<f64> {
        let mut packed = Packed::default();
        packed.vector(&self.sums);
        packed.full(self.phi_a.as_ref());
        packed.lower(self.gram.as_ref());
        packed.count(usize::from(self.gram_c.is_some()));
        if let Some(gram_c) = &self.gram_c {
            packed.lower(gram_c.as_ref());
        }
        packed.finish()
    }

    fn unpack(mut answer: Unpacked<'_>) -> Result<Self> {
        let sums = answer.vector()?;
        let phi_a = answer.full()?;
        let gram = answer.symmetric()?;
        let gram_c = if answer.count()? == 1 { Some(answer.symmetric()?) } else { None };
        Ok(Self { sums, phi_a, gram, gram_c })
    }
}

impl Unfolded {
    /// As an answer.
    pub fn pack(&self) -> Vec<f64> {
        let mut packed = Packed::default();
        [&self.sums, &self.kernel, &self.mean].into_iter().for_each(|v| packed.vector(v));
        packed.full(self.z.as_ref());
        packed.finish()
    }

    fn unpack(mut answer: Unpacked<'_>) -> Result<Self> {
        let (sums, kernel, mean) = (answer.vector()?, answer.vector()?, answer.vector()?);
        Ok(Self { sums, kernel, mean, z: answer.full()? })
    }
}

impl Passed {
    /// As an answer.
    pub fn pack(&self) -> Vec<f64> {
        let mut packed = Packed::default();
        packed.vector(&self.sums);
        packed.vector(&self.mean);
        packed.count(self.processes.len());
        for own in &self.processes {
            packed.full(own.phi_a.as_ref());
            let optional = [&own.gram_c, &own.psi];
            for list in [&own.grams, &own.roots] {
                packed.count(list.len());
                list.iter().for_each(|a| packed.lower(a.as_ref()));
            }
            for a in optional {
                packed.count(usize::from(a.is_some()));
                a.iter().for_each(|a| packed.lower(a.as_ref()));
            }
            packed.vector(&own.kernel);
            packed.full(own.z.as_ref());
        }
        packed.finish()
    }

    fn unpack(&mut self, mut answer: Unpacked<'_>) -> Result<()> {
        self.sums = answer.vector()?;
        self.mean = answer.vector()?;
        let count = answer.count()?;
        self.processes.clear();
        for _ in 0..count {
            let mut own = ProcessSums { phi_a: answer.full()?, ..ProcessSums::default() };
            for _ in 0..answer.count()? {
                own.grams.push(answer.symmetric()?);
            }
            for _ in 0..answer.count()? {
                own.roots.push(answer.lower()?);
            }
            if answer.count()? == 1 {
                own.gram_c = Some(answer.symmetric()?);
            }
            if answer.count()? == 1 {
                own.psi = Some(answer.lower()?);
            }
            own.kernel = answer.vector()?;
            own.z = answer.full()?;
            self.processes.push(own);
        }
        Ok(())
    }
}

impl Engine for Remote<'_> {
    fn shelf(&self) -> &Shelf {
        self.cpu.shelf()
    }

    fn go_on(&self) -> Result<()> {
        self.cpu.go_on()
    }

    fn fold(
        &self,
        prepared: Prepared<'_>,
        q: Option<Whitened<'_>>,
        local: &dyn Local,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Folded> {
        let Some(rows) = data.sharded() else {
            return self.cpu.fold(prepared, q, local, data, scale);
        };
        self.go_on()?;
        let sent = SentRows::of(&prepared, q, local.describe()?, data.outputs(), scale)?;
        let answer = round(rows, &Work::Fold(sent))?;
        Folded::unpack(Unpacked::new(&answer, rows.count())?)
    }

    fn unfold(
        &self,
        prepared: Prepared<'_>,
        q: Whitened<'_>,
        local: &dyn Local,
        data: &dyn Source,
        scale: f64,
    ) -> Result<Unfolded> {
        let Some(rows) = data.sharded() else {
            return self.cpu.unfold(prepared, q, local, data, scale);
        };
        self.go_on()?;
        let sent = SentRows::of(&prepared, Some(q), local.describe()?, data.outputs(), scale)?;
        let answer = round(rows, &Work::Unfold(sent))?;
        Unfolded::unpack(Unpacked::new(&answer, rows.count())?)
    }

    fn pass(&self, job: &Job<'_>, data: &dyn Source, out: &mut Passed) -> Result<()> {
        let Some(rows) = data.sharded() else { return self.cpu.pass(job, data, out) };
        self.go_on()?;
        let sent = SentJob::of(job, data.inputs())?;
        let answer = round(rows, &Work::Pass(sent))?;
        out.unpack(Unpacked::new(&answer, rows.count())?)?;
        if job.want == Want::Value {
            out.processes.clear();
        }
        Ok(())
    }
}
