use super::super::test_data::{bits, in_pools, matrix, numbers, reference, uniform};
use super::super::{distinct_rows, key};
use super::*;
use faer::Mat;

/// Squared-exponential kernel of variance `v`, lengthscale `l`.
fn kernel(x: &Mat<f64>, v: f64, l: f64, i: usize, j: usize) -> f64 {
    let square: f64 = (0..x.ncols()).map(|d| ((x[(i, d)] - x[(j, d)]) / l).powi(2)).sum();
    v * (-0.5 * square).exp()
}

fn select(x: &Mat<f64>, m: usize, v: f64, l: f64, tolerance: f64) -> Result<Selected> {
    let n = x.nrows();
    let diag = vec![v; n];
    let mut column = |i| Ok((0..n).map(|j| kernel(x, v, l, i, j)).collect());
    greedy_variance(x.as_ref(), m, &diag, &mut column, tolerance)
}

/// The row of `x` that a point is.
fn index_of(x: &Mat<f64>, points: &Mat<f64>, point: usize) -> usize {
    let wanted = key(points.as_ref(), point);
    (0..x.nrows()).find(|&i| key(x.as_ref(), i) == wanted).unwrap()
}

/// kᵢᵢ − kᵢ_S K_SS⁻¹ k_Sᵢ by Gauss–Jordan elimination.
fn conditional_variance(k: &dyn Fn(usize, usize) -> f64, given: &[usize], i: usize) -> f64 {
    let size = given.len();
    let mut a: Vec<Vec<f64>> =
        given.iter().map(|&p| given.iter().map(|&q| k(p, q)).chain([k(p, i)]).collect()).collect();
    for p in 0..size {
        let pivot = a[p][p];
        a[p].iter_mut().for_each(|value| *value /= pivot);
        let line = a[p].clone();
        for (q, row) in a.iter_mut().enumerate() {
            if q != p {
                let weight = row[p];
                row.iter_mut().zip(&line).for_each(|(value, line)| *value -= weight * line);
            }
        }
    }
    k(i, i) - given.iter().zip(&a).map(|(&p, row)| k(p, i) * row[size]).sum::<f64>()
}

#[test]
fn agrees_with_brute_force() {
    for (n, d, m, l) in [(1, 1, 1, 1.0), (12, 1, 5, 0.2), (40, 2, 12, 0.3), (60, 3, 20, 0.4)] {
        let x = uniform(n as u64, n, d);
        // A variance that differs by row, so that the first choice is not a tie.
        let k =
            |i: usize, j: usize| kernel(&x, 2.5, l, i, j) * (1.0 + x[(i, 0)]) * (1.0 + x[(j, 0)]);
        let diag: Vec<f64> = (0..n).map(|i| k(i, i)).collect();
        let mut column = |i| Ok((0..n).map(|j| k(i, j)).collect());
        let selected = greedy_variance(x.as_ref(), m, &diag, &mut column, 0.0).unwrap();
        let mut given: Vec<usize> = vec![];
        for point in 0..m {
            let left: Vec<f64> = (0..n).map(|i| conditional_variance(&k, &given, i)).collect();
            let chosen = index_of(&x, &selected.points, point);
            let largest = left.iter().copied().fold(0.0, f64::max);
            assert!(left[chosen] >= largest - 1e-9, "{n} {point}: {} {largest}", left[chosen]);
            assert!(!given.contains(&chosen));
            given.push(chosen);
        }
        let trace: f64 = (0..n).map(|i| conditional_variance(&k, &given, i)).sum();
        assert!((selected.trace_left.unwrap() - trace).abs() < 1e-9, "{n}");
        assert_eq!((selected.requested, selected.note), (m, None));
    }
}

#[test]
fn agrees_with_the_reference() {
    let file = reference();
    let x = matrix(&file["X"]);
    let (v, l) = (file["v"].as_f64().unwrap(), file["l"].as_f64().unwrap());
    let expected = &file["pivoted_cholesky"];
    let indices = numbers(&expected["indices"]);
    for (count, trace) in numbers(&expected["trace_after"]).into_iter().enumerate() {
        let selected = select(&x, count + 1, v, l, 0.0).unwrap();
        for (point, &index) in indices[..=count].iter().enumerate() {
            assert_eq!(index_of(&x, &selected.points, point), index as usize);
        }
        assert!((selected.trace_left.unwrap() - trace).abs() < 1e-10 * trace);
    }
}

#[test]
fn does_not_depend_on_threads() {
    let x = uniform(8, 3000, 2);
    let all = in_pools(|| {
        let selected = select(&x, 40, 1.0, 0.2, 0.0).unwrap();
        (bits(&selected.points), selected.trace_left.map(f64::to_bits))
    });
    assert!(all.iter().all(|one| *one == all[0]));
}

#[test]
fn ends_when_nothing_is_left() {
    let x = uniform(9, 200, 1);
    let selected = select(&x, 150, 3.0, 2.0, 1e-6).unwrap();
    assert!(selected.points.nrows() < 30);
    assert!(selected.trace_left.unwrap() <= 200.0 * 3e-6);
    assert!(selected.note.unwrap().contains("150 inducing points were asked for"));
    // Two equal copies: no row twice, whatever is asked for.
    let twice = Mat::from_fn(40, 2, |i, j| uniform(10, 20, 2)[(i % 20, j)]);
    for m in [20, 25, 40, 99] {
        let selected = select(&twice, m, 1.0, 0.05, DEFAULT_TOLERANCE).unwrap();
        assert_eq!(selected.points.nrows(), 20);
        assert_eq!(distinct_rows(selected.points.as_ref(), m).len(), 20);
        assert!(selected.trace_left.unwrap() < 1e-12);
        assert_eq!(selected.note.is_some(), m > 20);
    }
}

#[test]
fn scales_do_not_matter() {
    let x = uniform(11, 50, 2);
    let expected = select(&x, 10, 1.0, 0.3, 0.0).unwrap();
    for scale in [1e-12, 1e12] {
        let scaled = Mat::from_fn(50, 2, |i, j| scale * x[(i, j)]);
        for v in [1e-12, 1e12] {
            let selected = select(&scaled, 10, v, 0.3 * scale, 0.0).unwrap();
            for point in 0..10 {
                let expected = index_of(&x, &expected.points, point);
                assert_eq!(index_of(&scaled, &selected.points, point), expected);
            }
        }
    }
}

#[test]
fn wrong_priors_are_sentences() {
    let x = uniform(12, 5, 1);
    let run = |diag: &[f64], column: Vec<f64>, tolerance| {
        greedy_variance(x.as_ref(), 2, diag, &mut |_| Ok(column.clone()), tolerance)
            .unwrap_err()
            .to_string()
    };
    let good = vec![1.0; 5];
    for (error, word) in [
        (run(&[1.0; 4], good.clone(), 0.0), "prior variances: expected 5 values"),
        (run(&[0.0; 5], good.clone(), 0.0), "zero at every row"),
        (run(&[1.0, -1.0, 1.0, 1.0, 1.0], good.clone(), 0.0), "row 2 is negative"),
        (run(&[1.0, f64::NAN, 1.0, 1.0, 1.0], good.clone(), 0.0), "row 2, is not finite"),
        (run(&[1.0; 5], vec![1.0; 6], 0.0), "found 6 values"),
        (run(&[1.0; 5], vec![f64::INFINITY; 5], 0.0), "row 1, is not finite (inf)"),
        (run(&[1.0; 5], good, -1.0), "tolerance"),
    ] {
        assert!(error.contains(word), "{error}");
    }
    let failing = &mut |_| Err(Error::Interrupted);
    let error = greedy_variance(x.as_ref(), 2, &[1.0; 5], failing, 0.0).unwrap_err();
    assert!(matches!(error, Error::Interrupted));
}
