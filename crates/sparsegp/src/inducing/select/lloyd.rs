//! Lloyd's iterations.

use super::cloud::Cloud;

/// Clusters after Lloyd's iterations. None is empty.
pub(super) struct Clusters {
    /// Cluster of each point.
    pub labels: Vec<u32>,
    /// Sum of squared distances to the nearest centre, before each move of the centres.
    pub inertia: Vec<f64>,
}

/// Assigns points and moves centres (D values each, one after the other) until the assignment no
/// longer changes, at most `iterations` times. An empty cluster takes the farthest point of the
/// others.
pub(super) fn lloyd(cloud: &Cloud, mut centres: Vec<f64>, iterations: usize) -> Clusters {
    let mut labels = vec![u32::MAX; cloud.rows];
    let (mut next, mut distances) = (labels.clone(), vec![0.0; cloud.rows]);
    let mut inertia = Vec::new();
    for _ in 0..iterations.max(1) {
        cloud.assign(&centres, &mut next, &mut distances);
        inertia.push(distances.iter().sum());
        if next == labels {
            break;
        }
        std::mem::swap(&mut labels, &mut next);
        let mut counts = vec![0_usize; centres.len() / cloud.columns];
        labels.iter().for_each(|&label| counts[label as usize] += 1);
        fill_empty(&mut labels, &mut counts, &mut distances);
        // In the order of the rows: N·D additions are not worth a thread.
        centres.fill(0.0);
        for (i, &label) in labels.iter().enumerate() {
            let centre = &mut centres[label as usize * cloud.columns..][..cloud.columns];
            centre.iter_mut().zip(cloud.row(i)).for_each(|(sum, value)| *sum += value);
        }
        for (centre, &count) in centres.chunks_mut(cloud.columns).zip(&counts) {
            centre.iter_mut().for_each(|sum| *sum /= count.max(1) as f64);
        }
    }
    Clusters { labels, inertia }
}

/// Gives each empty cluster the point that is farthest from its centre, unless it is alone there.
fn fill_empty(labels: &mut [u32], counts: &mut [usize], distances: &mut [f64]) {
    for empty in 0..counts.len() {
        if counts[empty] > 0 {
            continue;
        }
        let mut farthest: Option<usize> = None;
        for (i, &label) in labels.iter().enumerate() {
            let is_farther = farthest.is_none_or(|best| distances[i] > distances[best]);
            if counts[label as usize] > 1 && is_farther {
                farthest = Some(i);
            }
        }
        // None only with fewer points than clusters, which the caller excludes.
        let Some(point) = farthest else { return };
        counts[labels[point] as usize] -= 1;
        counts[empty] = 1;
        labels[point] = empty as u32;
        distances[point] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_data::{clusters, uniform};
    use super::*;

    fn first_rows(cloud: &Cloud, m: usize) -> Vec<f64> {
        (0..m).flat_map(|i| cloud.row(i).to_vec()).collect()
    }

    #[test]
    fn inertia_falls_at_every_iteration() {
        for (n, d, m) in [(50, 1, 5), (700, 2, 30), (2000, 18, 60)] {
            for x in [uniform(1, n, d), clusters(2, n, d, 12)] {
                let cloud = Cloud::new(x.as_ref());
                let Clusters { labels, inertia } = lloyd(&cloud, first_rows(&cloud, m), 100);
                assert!(inertia.len() > 2);
                for pair in inertia.windows(2) {
                    assert!(pair[1] <= pair[0] * (1.0 + 1e-12), "{inertia:?}");
                }
                assert!((0..m as u32).all(|label| labels.contains(&label)));
            }
        }
    }

    #[test]
    fn the_end_is_a_fixed_point() {
        let x = uniform(5, 300, 2);
        let cloud = Cloud::new(x.as_ref());
        let Clusters { labels, inertia } = lloyd(&cloud, first_rows(&cloud, 10), 1000);
        assert!(inertia.len() < 1000);
        // Every point is nearest to its cluster's mean.
        let means: Vec<Vec<f64>> = (0..10)
            .map(|label| {
                let members: Vec<usize> = (0..300).filter(|&i| labels[i] == label).collect();
                let count = members.len() as f64;
                (0..2)
                    .map(|j| members.iter().map(|&i| cloud.row(i)[j]).sum::<f64>() / count)
                    .collect()
            })
            .collect();
        for i in 0..300 {
            let distance = |c: &[f64]| super::super::cloud::squared_distance(cloud.row(i), c);
            let own = distance(&means[labels[i] as usize]);
            assert!(means.iter().all(|c| own <= distance(c) + 1e-12));
        }
    }

    #[test]
    fn an_empty_cluster_takes_the_farthest_point() {
        let mut labels = vec![0, 0, 1, 1, 2];
        let mut counts = vec![2, 2, 1, 0, 0];
        let mut distances = vec![0.1, 0.2, 3.0, 4.0, 9.0];
        fill_empty(&mut labels, &mut counts, &mut distances);
        // Point 4 is farthest, but alone; after point 3 has gone, point 2 is alone as well.
        assert_eq!(labels, [0, 4, 1, 3, 2]);
        assert_eq!(counts, [1; 5]);
        // Equal seeds leave all but one cluster empty.
        let x = uniform(6, 40, 3);
        let cloud = Cloud::new(x.as_ref());
        let seeds: Vec<f64> = (0..8).flat_map(|_| cloud.row(0).to_vec()).collect();
        for iterations in [0, 1, 2, 30] {
            let Clusters { labels, .. } = lloyd(&cloud, seeds.clone(), iterations);
            assert!((0..8).all(|label| labels.contains(&label)));
        }
    }
}
