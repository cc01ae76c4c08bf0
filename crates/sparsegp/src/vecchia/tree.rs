//! A k-d tree: points in boxes within boxes.

/// Points of a leaf, at most.
const LEAF: usize = 12;

/// A box: those of `slots` lie in it; the first half of them in the box after it, the rest in the one at `right`.
#[derive(Clone, Debug)]
struct Node {
    slots: std::ops::Range<usize>,
    /// 0 for a leaf.
    right: usize,
    /// The least of the ranks within.
    first: u32,
}

/// Points in a tree of boxes, each halved along its longest side.
///
/// A point has a rank, and one looks for points of lower ranks only: so one tree serves the neighbours of every row among the
/// rows before it.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    dims: usize,
    /// Coordinates, point by point, in the order of the slots.
    places: Vec<f64>,
    /// The point of every slot.
    points: Vec<u32>,
    /// The rank of every slot.
    ranks: Vec<u32>,
    nodes: Vec<Node>,
    /// Lower and upper corner of every box.
    corners: Vec<f64>,
}

/// A point at a squared distance, of which the bits are kept: distances are not negative, so that these are ordered as they
/// are. Of equally near points the one of lower rank comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Near {
    bits: u64,
    /// Its rank.
    pub(super) rank: u32,
    /// Its index.
    pub(super) point: u32,
}

impl Near {
    /// Returns its squared distance.
    pub(super) fn square(self) -> f64 {
        f64::from_bits(self.bits)
    }
}

fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

impl Tree {
    /// Builds the tree of points that stand one after the other in `places`, `dims` numbers each; ranks are as the points.
    pub(super) fn new(places: &[f64], dims: usize) -> Self {
        let count = places.len().checked_div(dims).unwrap_or(0);
        let mut points: Vec<u32> = (0..count as u32).collect();
        let (mut nodes, mut corners) = (Vec::new(), Vec::new());
        if count > 0 {
            let mut build = Build { places, dims, nodes: &mut nodes, corners: &mut corners };
            build.node(&mut points, 0);
        }
        let own = points.iter().flat_map(|i| &places[*i as usize * dims..][..dims]);
        let (places, ranks) = (own.copied().collect(), points.clone());
        let mut tree = Self { dims, places, points, ranks, nodes, corners };
        tree.find_first();
        tree
    }

    /// Returns the same tree with the place of every point in an `order`, as its rank.
    pub(super) fn ranked(mut self, order: &[u32]) -> Self {
        let mut ranks = vec![0; order.len()];
        order.iter().enumerate().for_each(|(rank, point)| ranks[*point as usize] = rank as u32);
        self.ranks = self.points.iter().map(|point| ranks[*point as usize]).collect();
        self.find_first();
        self
    }

    fn find_first(&mut self) {
        // those within come after a box
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            self.nodes[at].first = match node.right {
                0 => self.ranks[node.slots.clone()].iter().copied().min().unwrap_or(u32::MAX),
                right => self.nodes[at + 1].first.min(self.nodes[right].first),
            };
        }
    }

    /// Returns points with their ranks, those that are in a box one after the other.
    pub(super) fn points(&self) -> Vec<(u32, u32)> {
        self.points.iter().copied().zip(self.ranks.iter().copied()).collect()
    }

    fn place(&self, slot: usize) -> &[f64] {
        &self.places[slot * self.dims..][..self.dims]
    }

    /// Returns the squared distance of the nearest place in a box.
    fn to_box(&self, node: usize, at: &[f64]) -> f64 {
        let (low, high) = self.corners[2 * node * self.dims..][..2 * self.dims].split_at(self.dims);
        let outside = |((v, low), high): ((&f64, &f64), &f64)| {
            let apart = (low - v).max(v - high).max(0.0);
            apart * apart
        };
        at.iter().zip(low).zip(high).map(outside).sum()
    }

    /// Finds the `most` nearest points to `at` of ranks below `before`, the nearest first.
    pub(super) fn nearest(&self, at: &[f64], most: usize, before: u32) -> Vec<Near> {
        let mut found = std::collections::BinaryHeap::with_capacity(most + 1);
        if most > 0 && !self.nodes.is_empty() {
            self.look(0, at, (most, before), &mut found);
        }
        found.into_sorted_vec()
    }

    fn look(
        &self,
        node: usize,
        at: &[f64],
        (most, before): (usize, u32),
        found: &mut std::collections::BinaryHeap<Near>,
    ) {
        let Node { slots, right, .. } = &self.nodes[node];
        if *right == 0 {
            for slot in slots.clone() {
                let rank = self.ranks[slot];
                if rank >= before {
                    continue;
                }
                let bits = square(self.place(slot), at).to_bits();
                let near = Near { bits, rank, point: self.points[slot] };
                if found.len() < most {
                    found.push(near);
                } else if let Some(mut last) = found.peek_mut().filter(|last| near < **last) {
                    *last = near;
                }
            }
            return;
        }
        let mut both = [node + 1, *right].map(|node| (self.to_box(node, at), node));
        if both[1].0 < both[0].0 {
            both.swap(0, 1);
        }
        for (square, node) in both {
            // one that is as near as the last may have a lower rank
            let full = found.len() == most && found.peek().is_some_and(|f| square > f.square());
            if !full && self.nodes[node].first < before {
                self.look(node, at, (most, before), found);
            }
        }
    }
}

struct Build<'a> {
    places: &'a [f64],
    dims: usize,
    nodes: &'a mut Vec<Node>,
    corners: &'a mut Vec<f64>,
}

impl Build<'_> {
    fn node(&mut self, points: &mut [u32], begin: usize) {
        let at = self.nodes.len();
        let (low, high) = self.bounds(points);
        let sides = low.iter().zip(&high).map(|(low, high)| high - low);
        let widest = sides.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(q, _)| q);
        self.corners.extend(low);
        self.corners.extend(high);
        let slots = begin..begin + points.len();
        self.nodes.push(Node { slots, right: 0, first: 0 });
        if points.len() <= LEAF {
            return;
        }
        let (places, dims, half) = (self.places, self.dims, points.len() / 2);
        let along = |point: u32| places[point as usize * dims + widest];
        points.select_nth_unstable_by(half, |a, b| along(*a).total_cmp(&along(*b)).then(a.cmp(b)));
        let (left, right) = points.split_at_mut(half);
        self.node(left, begin);
        self.nodes[at].right = self.nodes.len();
        self.node(right, begin + half);
    }

    fn bounds(&self, points: &[u32]) -> (Vec<f64>, Vec<f64>) {
        let (mut low, mut high) = (vec![f64::INFINITY; self.dims], vec![-f64::INFINITY; self.dims]);
        for point in points {
            let place = &self.places[*point as usize * self.dims..][..self.dims];
            for (q, v) in place.iter().enumerate() {
                low[q] = low[q].min(*v);
                high[q] = high[q].max(*v);
            }
        }
        (low, high)
    }
}

/// Which points are far from all that were taken so far.
pub(super) struct Farthest<'a> {
    tree: &'a Tree,
    /// The squared distance of every slot to the nearest point that was taken; below 0 where it was taken itself.
    squares: Vec<f64>,
    /// The largest of them in every box, with its point.
    largest: Vec<(f64, u32)>,
}

impl<'a> Farthest<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        let squares = vec![f64::INFINITY; tree.points.len()];
        Self { tree, squares, largest: vec![(f64::INFINITY, 0); tree.nodes.len()] }
    }

    /// Takes a point, and returns the one that is then the farthest, of equally far ones that of the lowest index; none if
    /// all others are where one was taken.
    pub(super) fn take(&mut self, point: u32, place: &[f64]) -> Option<u32> {
        self.update(0, point, place);
        let (square, next) = self.largest[0];
        (square > 0.0).then_some(next)
    }

    /// Returns whether a point was taken.
    pub(super) fn taken(&self) -> Vec<bool> {
        let mut taken = vec![false; self.squares.len()];
        let points = self.tree.points.iter().zip(&self.squares);
        points.for_each(|(point, square)| taken[*point as usize] = *square < 0.0);
        taken
    }

    fn update(&mut self, node: usize, point: u32, place: &[f64]) {
        // nothing in there is as far from what was taken as all of it is from this one
        if self.tree.to_box(node, place) >= self.largest[node].0 {
            return;
        }
        let Node { slots, right, .. } = &self.tree.nodes[node];
        let farther = |a: (f64, u32), b: (f64, u32)| {
            if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
        };
        if *right != 0 {
            self.update(node + 1, point, place);
            self.update(*right, point, place);
            self.largest[node] = farther(self.largest[node + 1], self.largest[*right]);
            return;
        }
        let mut largest = (-1.0, u32::MAX);
        for slot in slots.clone() {
            let (own, index) = (&mut self.squares[slot], self.tree.points[slot]);
            if index == point {
                *own = -1.0;
            } else {
                let now = square(self.tree.place(slot), place);
                if now < *own {
                    *own = now;
                }
            }
            largest = farther(largest, (*own, index));
        }
        self.largest[node] = largest;
    }
}
