//! Who is conditioned on whom.

use super::Metric;
use super::groups::{Group, Seen, joined};
use super::tree::{Farthest, Tree};
use crate::linalg::MatRef;
use rayon::prelude::*;

/// Rows whose neighbours one thread looks for at once.
const PART: usize = 512;

/// Orders points so that each is as far as can be from all before it (maximin; Guinness 2018, §3.2): the one nearest to the
/// mean comes first, of equally far ones that of the lowest index, and copies of others come last.
///
/// Exact, and O(N log N) distances in a fixed number of dimensions: the n-th point changes only the distances of those that
/// are nearer to it than the n-th distance, about N/n, and boxes without any are not entered.
pub(super) fn maximin(tree: &Tree, places: &[f64], dims: usize) -> Vec<u32> {
    let count = places.len().checked_div(dims).unwrap_or(0);
    let place = |point: u32| &places[point as usize * dims..][..dims];
    let mut centre = vec![0.0; dims];
    let share = 1.0 / count.max(1) as f64;
    places.chunks_exact(dims.max(1)).for_each(|own| {
        centre.iter_mut().zip(own).for_each(|(c, v)| *c += share * v);
    });
    let mut order = Vec::with_capacity(count);
    let mut farthest = Farthest::new(tree);
    let mut next = tree.nearest(&centre, 1, u32::MAX).first().map(|near| near.point);
    while let Some(point) = next {
        order.push(point);
        next = farthest.take(point, place(point));
    }
    let taken = farthest.taken();
    order.extend((0..count as u32).filter(|point| !taken[*point as usize]));
    order
}

/// An order of the rows, and for every row those before it that it is conditioned on, in blocks.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    metric: Metric,
    neighbours: usize,
    order: Vec<u32>,
    /// Rows of the blocks, one block after the other, each in the order.
    members: Vec<u32>,
    /// Whether a member's own density counts in this block: of every row in one block.
    responds: Vec<bool>,
    /// Where blocks begin, and the end.
    starts: Vec<usize>,
}

/// Rows together, in the order: each that responds is conditioned on all before it.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Their indices.
    pub rows: &'a [u32],
    /// Those whose densities are of this block.
    pub responds: &'a [bool],
}

impl Plan {
    /// Makes the plan of rows (N×D) for so many neighbours in a metric: at least so many, since rows that share most of theirs
    /// are one block.
    pub fn new(x: MatRef<f64>, metric: Metric, neighbours: usize) -> Self {
        Self::of_groups(x, metric, neighbours, |near| joined(near, neighbours))
    }

    /// Creates the plan whose blocks are of a row each.
    #[cfg(test)]
    pub(super) fn of_single(x: MatRef<f64>, metric: Metric, neighbours: usize) -> Self {
        Self::of_groups(x, metric, neighbours, super::groups::single)
    }

    fn of_groups(
        x: MatRef<f64>,
        metric: Metric,
        neighbours: usize,
        groups: impl FnOnce(&[Seen]) -> Vec<Group>,
    ) -> Self {
        let (places, dims) = (metric.places(x), metric.dims());
        let tree = Tree::new(&places, dims);
        let order = maximin(&tree, &places, dims);
        let tree = tree.ranked(&order);
        let place = |row: u32| &places[row as usize * dims..][..dims];
        let seen = |(point, rank): (u32, u32)| {
            let near = tree.nearest(place(point), neighbours, rank);
            (rank, near.into_iter().map(|near| near.rank).collect())
        };
        // rows of a box one after the other
        let rows = tree.points().into_par_iter().with_min_len(PART).map(seen);
        let groups = groups(&rows.collect::<Vec<Seen>>());
        let mut plan = Self { metric, neighbours, order, starts: vec![0], ..Self::default() };
        for group in groups {
            for rank in &group.members {
                plan.members.push(plan.order[*rank as usize]);
                plan.responds.push(group.respond.binary_search(rank).is_ok());
            }
            plan.starts.push(plan.members.len());
        }
        plan
    }

    /// Returns the metric of distances.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// Returns the most neighbours of a row.
    pub fn neighbours(&self) -> usize {
        self.neighbours
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.order.len()
    }

    /// Returns every row once, in the order.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Returns the number of members of all blocks together.
    pub(super) fn members(&self) -> usize {
        self.members.len()
    }

    /// Returns a block by its index.
    pub fn block(&self, index: usize) -> Block<'_> {
        let own = self.starts[index]..self.starts[index + 1];
        Block { rows: &self.members[own.clone()], responds: &self.responds[own] }
    }
}
