//! Points to begin with: Latin hypercubes, and the farthest of random points.

use super::space::Space;
use crate::rng::{permutation, uniform};
use rand::Rng;

/// Latin hypercubes of which the one is taken whose nearest points are farthest apart.
const TRIES: usize = 50;
/// Distances that are looked at, in all tries together.
const DISTANCES: usize = 1_000_000;

/// Returns the parts of the ranges of so many points, of which every range has one in each of as
/// many equal shares (McKay, Beckman & Conover 1979); the best of some by the least distance of two
/// points (Morris & Mitchell 1995).
pub(super) fn latin_hypercube(space: &Space, count: usize, rng: &mut impl Rng) -> Vec<Vec<f64>> {
    let inputs = space.dimensions().len();
    let mut best = (f64::NEG_INFINITY, Vec::new());
    for _ in 0..TRIES.min(DISTANCES / count.pow(2).max(1)).max(1) {
        let mut points = vec![vec![0.0; inputs]; count];
        for q in 0..inputs {
            let places = permutation(rng, count, count);
            for (point, place) in points.iter_mut().zip(places) {
                point[q] = (place as f64 + uniform(rng)) / count as f64;
            }
        }
        let x = space.encoded(&points);
        let mut least = f64::INFINITY;
        for i in 0..count {
            for j in 0..i {
                let square = (0..x.ncols()).map(|q| (x[(i, q)] - x[(j, q)]).powi(2)).sum::<f64>();
                least = least.min(square);
            }
        }
        if least > best.0 {
            best = (least, points);
        }
    }
    best.1
}

/// Returns the parts of the ranges of so many random points.
pub(super) fn random(space: &Space, count: usize, rng: &mut impl Rng) -> Vec<Vec<f64>> {
    let inputs = space.dimensions().len();
    (0..count).map(|_| (0..inputs).map(|_| uniform(rng)).collect()).collect()
}

/// Returns the one of some points that is farthest from its nearest neighbour among those tried.
pub(super) fn farthest(
    space: &Space,
    points: Vec<Vec<f64>>,
    tried: &[Vec<f64>],
) -> Option<Vec<f64>> {
    let (x, others) = (space.encoded(&points), space.encoded(tried));
    let nearest = |i: usize| {
        let square = |j| (0..x.ncols()).map(|q| (x[(i, q)] - others[(j, q)]).powi(2)).sum::<f64>();
        (0..others.nrows()).map(square).fold(f64::INFINITY, f64::min)
    };
    let all = points.into_iter().enumerate().map(|(i, point)| (nearest(i), point));
    all.reduce(|a, b| if b.0 > a.0 { b } else { a }).map(|(_, point)| point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_share_of_every_range_has_a_point() {
        let space = Space::parse(&["a=0:1", "b=1:9:integer", "c=x,y,z"]).expect("a space");
        let mut rng = crate::rng::stream(3, "design");
        let points = latin_hypercube(&space, 9, &mut rng);
        for q in 0..3 {
            let mut shares: Vec<usize> = points.iter().map(|p| (9.0 * p[q]) as usize).collect();
            shares.sort_unstable();
            assert_eq!(shares, (0..9).collect::<Vec<_>>());
        }
        // every whole number once, every category three times
        let mut whole: Vec<f64> = points.iter().map(|p| space.at(p)[1]).collect();
        whole.sort_by(f64::total_cmp);
        assert_eq!(whole, (1..=9).map(f64::from).collect::<Vec<_>>());
        assert_eq!(points.iter().filter(|p| space.at(p)[2] == 1.0).count(), 3);
    }

    #[test]
    fn the_farthest_point_is_taken() {
        let space = Space::parse(&["a=0:1", "b=0:1"]).expect("a space");
        let tried = [vec![0.0, 0.0], vec![1.0, 1.0]];
        let points = vec![vec![0.1, 0.1], vec![0.9, 0.2], vec![0.6, 0.6]];
        assert_eq!(farthest(&space, points, &tried), Some(vec![0.9, 0.2]));
    }
}
