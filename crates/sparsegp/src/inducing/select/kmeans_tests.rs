use super::super::random;
use super::super::test_data::{
    bits, clusters, in_pools, matrix, numbers, reference, uniform as data,
};
use super::*;
use crate::rng::stream;

/// Sum of squared distances to the nearest point.
fn inertia(x: &Mat<f64>, points: &Mat<f64>) -> f64 {
    let square = |i: usize, p: usize| {
        (0..x.ncols()).map(|j| (x[(i, j)] - points[(p, j)]).powi(2)).sum::<f64>()
    };
    (0..x.nrows())
        .map(|i| (0..points.nrows()).map(|p| square(i, p)).fold(f64::INFINITY, f64::min))
        .sum()
}

fn run(x: &Mat<f64>, m: usize, seed: u64) -> Selected {
    kmeans(x.as_ref(), m, &mut stream(seed, "test")).unwrap()
}

#[test]
fn is_much_better_than_random_on_clusters() {
    for seed in 0..5 {
        let x = clusters(seed, 600, 3, 20);
        let centres = run(&x, 20, seed);
        let rows = random(x.as_ref(), 20, &mut stream(seed, "test")).unwrap();
        assert_eq!(centres.points.nrows(), 20);
        // One centre in each cluster of variance 3 / 12; random rows miss some by 20 and more.
        assert!(inertia(&x, &centres.points) < 600.0 * 0.25);
        assert!(inertia(&x, &rows.points) > 10.0 * inertia(&x, &centres.points));
    }
}

#[test]
fn does_not_depend_on_threads() {
    for (n, d, m) in [(3, 1, 2), (1000, 2, 30), (3001, 7, 129)] {
        let x = data(n as u64, n, d);
        let all = in_pools(|| bits(&run(&x, m, 1).points));
        assert!(all.iter().all(|one| *one == all[0]));
        assert_ne!(bits(&run(&x, m, 2).points), all[0]);
    }
}

#[test]
fn points_are_distinct_and_inside_the_data() {
    for (n, d, m) in [(2, 1, 1), (10, 1, 9), (200, 1, 150), (500, 4, 77)] {
        let x = data(3, n, d);
        let Selected { points, requested, note, trace_left } = run(&x, m, 4);
        assert_eq!((points.nrows(), requested, &note, trace_left), (m, m, &None, None));
        assert_eq!(distinct_rows(points.as_ref(), m).len(), m);
        for j in 0..d {
            assert!((0..m).all(|i| (0.0..1.0).contains(&points[(i, j)])));
        }
    }
}

#[test]
fn clusters_of_equal_rows_have_exactly_these_rows_as_centres() {
    let base = data(5, 12, 3);
    for scale in [1e-12, 1.0, 1e12] {
        let x = Mat::from_fn(120, 3, |i, j| scale * base[(i % 12, j)]);
        // As many points as distinct rows.
        let all = run(&x, 12, 6);
        assert_eq!(bits(&all.points), bits(&gather(x.as_ref(), &(0..12).collect::<Vec<_>>())));
        assert_eq!(all.note, None);
        // Fewer: at least the points are distinct.
        let some = run(&x, 11, 6).points;
        assert_eq!(distinct_rows(some.as_ref(), 11).len(), 11);
    }
}

#[test]
fn scale_and_place_do_not_matter() {
    let x = clusters(7, 300, 2, 6);
    let plain = run(&x, 6, 8).points;
    for scale in [1e-300, 1e-12, 1e12, 1e290] {
        for shift in [0.0, 1e3] {
            let moved = Mat::from_fn(300, 2, |i, j| scale * (x[(i, j)] + shift));
            let points = run(&moved, 6, 8).points;
            for i in 0..6 {
                for j in 0..2 {
                    let back = points[(i, j)] / scale - shift;
                    assert!((back - plain[(i, j)]).abs() < 1e-9, "{scale} {shift}");
                }
            }
        }
    }
}

#[test]
fn rows_within_rounding_of_each_other_are_still_distinguished() {
    // Two places far apart; around one of them ten rows that differ in their last bits.
    let x = Mat::from_fn(60, 1, |i, _| {
        if i < 50 { 1e6 + i as f64 } else { -1e6 * (1.0 + (i - 50) as f64 * f64::EPSILON) }
    });
    let points = run(&x, 55, 9).points;
    assert_eq!(points.nrows(), distinct_rows(points.as_ref(), 55).len());
    assert!(points.nrows() >= 51, "{}", points.nrows());
}

#[test]
fn seeding_agrees_with_the_reference() {
    let file = reference();
    let x = matrix(&file["X"]);
    let expected = &file["kmeanspp"];
    let m = expected["M"].as_u64().unwrap() as usize;
    let cloud = Cloud::new(x.as_ref());
    let all: Vec<usize> = distinct_rows(x.as_ref(), m);
    for (name, candidates) in [("plain", 1), ("greedy3", 3)] {
        let mut uniforms = numbers(&file["uniforms"]).into_iter();
        let seeds = seed(&cloud, x.as_ref(), m, candidates, &all, &mut || uniforms.next().unwrap());
        let indices: Vec<usize> =
            numbers(&expected[name]["indices"]).into_iter().map(|i| i as usize).collect();
        assert_eq!(seeds, indices, "{name}");
        let potential = expected[name]["potential"].as_f64().unwrap();
        let found = inertia(&x, &gather(x.as_ref(), &seeds));
        assert!((found - potential).abs() < 1e-12 * potential);
    }
}

#[test]
fn lloyd_agrees_with_the_reference() {
    let file = reference();
    let x = matrix(&file["X"]);
    let expected = &file["kmeanspp"]["lloyd_from_plain"];
    let cloud = Cloud::new(x.as_ref());
    let seeds: Vec<f64> = numbers(&file["kmeanspp"]["plain"]["indices"])
        .into_iter()
        .flat_map(|i| cloud.row(i as usize).to_vec())
        .collect();
    let result = lloyd(&cloud, seeds, ITERATIONS);
    let assignment: Vec<u32> =
        numbers(&expected["assignment"]).into_iter().map(|label| label as u32).collect();
    assert_eq!(result.labels, assignment);
    let centres = matrix(&expected["centres"]);
    let points = means(x.as_ref(), &result.labels, centres.nrows());
    assert!((&points - &centres).norm_max() < 1e-12);
    // Objectives up to the scale of the cloud.
    let objective = numbers(&expected["objective"]);
    let ratio = result.inertia[0] / objective[0];
    for (found, wanted) in result.inertia.iter().zip(&objective) {
        assert!((found - ratio * wanted).abs() < 1e-12 * found);
    }
}

#[test]
fn drawing_follows_the_weights() {
    let mut weights = vec![0.0; 300];
    (weights[3], weights[130], weights[299]) = (1.0, 2.0, 1.0);
    let sums: Vec<f64> = weights.chunks(BLOCK).map(|block| block.iter().sum()).collect();
    for (target, row) in
        [(0.0, 3), (0.99, 3), (1.0, 130), (2.99, 130), (3.0, 299), (3.99, 299), (4.0, 299)]
    {
        assert_eq!(draw(&weights, &sums, target), row, "{target}");
    }
}
