//! Neighbours that a training holds while it climbs.

use crate::engine::Engine;
use crate::error::Result;
use crate::linalg::{MatRef, column};
use crate::vecchia::{Coupled, Metric, Plan};
use std::sync::Arc;

/// Ratio by which a ratio of lengthscales moves before neighbours are chosen again.
pub(super) const MOVED: f64 = 1.1;

/// Columns whose lengthscale is so many times the shortest have no say in who is near.
const NO_SAY: f64 = 1e-3;

/// Neighbours of rows, with whatever is known of them.
pub(super) trait Planned: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the neighbours.
    fn plan(&self) -> &Plan;
}

impl Planned for Plan {
    fn plan(&self) -> &Plan {
        self
    }
}

impl Planned for Coupled {
    fn plan(&self) -> &Plan {
        Coupled::plan(self)
    }
}

/// The neighbours for every kernel, each with the fingerprint of its rows.
#[derive(Debug)]
pub(super) struct Held<T>(Vec<(Arc<T>, u64)>);

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Planned> Held<T> {
    /// Returns those for the kernel of an index, where they are so many and of these rows.
    pub(super) fn of(
        engine: &dyn Engine,
        index: usize,
        neighbours: usize,
        x: MatRef<f64>,
    ) -> Option<Arc<T>> {
        let held = engine.shelf().copy::<Self>()?;
        let (own, rows) = held.0.get(index)?;
        let plan = own.plan();
        let same = plan.neighbours() == neighbours
            && plan.rows() == x.nrows()
            && plan.metric().scales().len() == x.ncols()
            && *rows == fingerprint(x);
        same.then(|| Arc::clone(own))
    }
}

/// Holds so many neighbours for every kernel, given its metric and rows: those that are held where the metric has moved little, and others that
/// `make` finds. Returns whether there are others.
pub(super) fn hold<T: Planned>(
    engine: &dyn Engine,
    neighbours: usize,
    all: Vec<(Metric, MatRef<f64>)>,
    make: impl Fn(Metric, MatRef<f64>) -> Result<Arc<T>>,
) -> Result<bool> {
    let (mut held, mut changed) = (Vec::new(), false);
    for (index, (metric, x)) in all.into_iter().enumerate() {
        let known = Held::<T>::of(engine, index, neighbours, x);
        let near = known.filter(|own| own.plan().metric().apart(&metric, NO_SAY) <= MOVED);
        changed |= near.is_none();
        let own = match near {
            Some(own) => own,
            None => make(metric, x)?,
        };
        held.push((own, fingerprint(x)));
    }
    if changed {
        engine.shelf().put(Held(held));
    }
    Ok(changed)
}

/// Returns a number that tells inputs apart.
fn fingerprint(x: MatRef<f64>) -> u64 {
    let columns = (0..x.ncols()).flat_map(|j| column(x, j));
    // FNV-1a by words
    columns.fold(0xcbf2_9ce4_8422_2325, |hash: u64, v| {
        (hash ^ v.to_bits()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    })
}
