//! Who is conditioned on whom.

use super::Metric;
use super::groups::{Group, Seen, joined};
use super::tree::{Farthest, Tree};
use crate::linalg::MatRef;
use rayon::prelude::*;

/// Rows whose neighbours one thread looks for at once.
const PART: usize = 512;

/// Rows beside each other that are in a sample together, so that they still share neighbours.
const RUN: usize = 64;

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
    /// Blocks before this one count once, and each from it on for so many.
    sampled: (usize, f64),
}

/// Rows in their order, in a tree.
struct Ordered {
    places: Vec<f64>,
    dims: usize,
    order: Vec<u32>,
    tree: Tree,
}

impl Ordered {
    fn new(x: MatRef<f64>, metric: &Metric) -> Self {
        let (places, dims) = (metric.places(x), metric.dims());
        let tree = Tree::new(&places, dims);
        let order = maximin(&tree, &places, dims);
        let tree = tree.ranked(&order);
        Self { places, dims, order, tree }
    }

    /// Finds so many neighbours of some rows, given with their ranks, among those before each.
    fn seen(&self, rows: Vec<(u32, u32)>, neighbours: usize) -> Vec<Seen> {
        let place = |row: u32| &self.places[row as usize * self.dims..][..self.dims];
        let seen = |(point, rank): (u32, u32)| {
            let near = self.tree.nearest(place(point), neighbours, rank);
            (rank, near.into_iter().map(|near| near.rank).collect())
        };
        rows.into_par_iter().with_min_len(PART).map(seen).collect()
    }
}

/// Rows together, in the order: each that responds is conditioned on all before it.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Their indices.
    pub rows: &'a [u32],
    /// Those whose densities are of this block.
    pub responds: &'a [bool],
    /// For how many such blocks it stands: more than 1 in a plan of a sample.
    pub weight: f64,
}

impl Plan {
    /// Makes the plan of rows (N×D) for so many neighbours in a metric: at least so many, since rows that share most of theirs
    /// are one block.
    pub fn new(x: MatRef<f64>, metric: Metric, neighbours: usize) -> Self {
        let all = Ordered::new(x, &metric);
        let groups = joined(&all.seen(all.tree.points(), neighbours), neighbours, all.order.len());
        Self::of_groups(all.order, (metric, neighbours), [groups, Vec::new()], 1.0)
    }

    /// Makes the plan in which only about so many `rows` respond, given their neighbours among all rows: the first half of them in
    /// the order, which say what varies slowly, and every so-maniest run of rows beside each other in the tree, each of which stands
    /// for as many as were left out. So its log density and slopes estimate those of all rows, from the same rows whatever the targets are.
    /// Of that many rows or fewer it is [`Plan::new`].
    pub fn of_sample(x: MatRef<f64>, metric: Metric, neighbours: usize, rows: usize) -> Self {
        if rows >= x.nrows() {
            return Self::new(x, metric, neighbours);
        }
        let all = Ordered::new(x, &metric);
        let count = all.order.len();
        let first = rows / 2;
        let (coarse, fine): (Vec<_>, Vec<_>) =
            all.tree.points().into_iter().partition(|(_, rank)| (*rank as usize) < first);
        let share = (rows - first) as f64 / fine.len().max(1) as f64;
        let before = |run: usize| (run as f64 * share + 0.5).floor();
        let runs = fine.chunks(RUN).enumerate();
        let taken = runs.filter(|(run, _)| before(run + 1) > before(*run));
        let own: Vec<(u32, u32)> = taken.flat_map(|(_, run)| run.iter().copied()).collect();
        let weight = fine.len() as f64 / own.len().max(1) as f64;
        let groups = [coarse, own].map(|own| joined(&all.seen(own, neighbours), neighbours, count));
        Self::of_groups(all.order, (metric, neighbours), groups, weight)
    }

    /// Creates the plan whose blocks are of a row each.
    #[cfg(test)]
    pub(super) fn of_single(x: MatRef<f64>, metric: Metric, neighbours: usize) -> Self {
        let all = Ordered::new(x, &metric);
        let groups = super::groups::single(&all.seen(all.tree.points(), neighbours));
        Self::of_groups(all.order, (metric, neighbours), [groups, Vec::new()], 1.0)
    }

    /// Creates the plan of groups that count once, and of others that count so often.
    fn of_groups(
        order: Vec<u32>,
        (metric, neighbours): (Metric, usize),
        [once, sampled]: [Vec<Group>; 2],
        weight: f64,
    ) -> Self {
        let sampled_from = (once.len(), weight);
        let (members, responds) = (Vec::new(), Vec::new());
        let starts = vec![0];
        let mut plan =
            Self { metric, neighbours, order, members, responds, starts, sampled: sampled_from };
        for group in once.into_iter().chain(sampled) {
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
        let (first, weight) = self.sampled;
        let weight = if index < first { 1.0 } else { weight };
        Block { rows: &self.members[own.clone()], responds: &self.responds[own], weight }
    }
}
