//! Draws of states against the covariance of exact inference, and what lies between states against the smoother.

use super::tests::{Problem, SPECS, close, inputs, places};
use super::{Places, Rows, Seen, Smoothed, draw, links, there_and_back, weights};
use crate::kernels::{StateSpace, covariances};
use crate::linalg::{Cholesky, Jitter, Mat};
use crate::rng;

/// The smoothed states at rows, N×S row by row.
fn smoothed(space: &dyn StateSpace, rows: Rows<'_>) -> Vec<f64> {
    fn of<const N: usize>(space: &dyn StateSpace, rows: Rows<'_>) -> Vec<f64> {
        let n = space.size();
        let mut all = vec![0.0; rows.places.len() * n];
        there_and_back(space, rows, &|| Ok(()), &mut |seen: Seen<'_, N>| {
            let Seen { at, row, adjoint, .. } = seen;
            adjoint.unsee(row, |_, _| ());
            for k in 0..n {
                let pulled: f64 =
                    (0..N).map(|j| row.before.covariance[k][j] * adjoint.r[0][j]).sum();
                all[at * n + k] = row.before.mean[0][k] + pulled;
            }
        })
        .unwrap();
        all
    }
    let found: crate::Result<Vec<f64>> = with_size!(space.size(), N => Ok(of::<N>(space, rows)));
    found.unwrap()
}

fn between(t: &[f64]) -> Vec<f64> {
    let mut all = vec![t[0] - 2.3, t[0] - 0.4, t[t.len() - 1] + 0.3, t[t.len() - 1] + 5.0];
    for pair in t.windows(2) {
        all.extend([0.3, 0.31, 0.8].map(|part| pair[0] + part * (pair[1] - pair[0])));
    }
    all.extend(&t[3..6]);
    all.sort_by(f64::total_cmp);
    all
}

/// Means are linear in the states: those of the smoother give the means of the smoother.
#[test]
fn means_between_smoothed_states_are_those_of_the_smoother() {
    for spec in SPECS.iter().chain(&["rbf(variance=1.9, lengthscales=0.7)"]) {
        let problem = Problem::new(spec, 40, 1);
        let space = problem.kernel.state_space().unwrap();
        let (n, states) = (space.size(), smoothed(&*space, problem.rows()));
        let t = between(problem.t());
        let x = inputs(spec, &t);
        let at = Places::new(x.as_ref(), 0);
        let found = weights(&*space, problem.t(), at).unwrap();
        let chain = links(&*space, problem.t(), at).unwrap();
        let right =
            Smoothed::new(problem.kernel.state_space().unwrap(), problem.rows(), &|| Ok(()))
                .unwrap()
                .moments(x.as_ref())
                .unwrap();
        // of eight numbers some move less than they are rounded to
        let scale = if spec.starts_with("rbf") { 100.0 } else { 1.0 };
        let mut last = vec![0.0; n];
        for (i, own) in found.iter().enumerate() {
            let part = |of: &Option<(usize, Vec<f64>)>| {
                of.as_ref().map_or(0.0, |(row, w)| {
                    w.iter().zip(&states[row * n..]).map(|(w, s)| w * s).sum()
                })
            };
            let mean = part(&own.before) + part(&own.after);
            let white = spec.contains("white") && problem.t().contains(&t[i]);
            if !white {
                close(mean, right.0[(i, 0)], scale, &format!("{spec} at {}", t[i]));
                assert!(own.variance <= right.1[i] + 1e-9 * scale, "{spec} at {}", t[i]);
            }
            // the same one after the other
            let link = &chain[i];
            let row =
                |of: Option<usize>| of.map_or(vec![0.0; n], |row| states[row * n..][..n].to_vec());
            let before = if link.chained { last } else { row(link.before) };
            let after = row(link.after);
            last = (0..n)
                .map(|r| {
                    let of =
                        |a: &[f64], s: &[f64]| -> f64 { (0..n).map(|c| a[r * n + c] * s[c]).sum() };
                    of(&link.forward, &before) + of(&link.backward, &after)
                })
                .collect();
            let chained: f64 = last.iter().zip(&link.output).map(|(s, h)| s * h).sum();
            close(chained, mean, scale, &format!("{spec} at {} in a chain", t[i]));
        }
    }
}

/// What is left given the states of the rows around a place is what is left given their values and those of many near rows: exact
/// inference, for a kernel whose state is its value.
#[test]
fn variances_between_states_are_those_of_exact_inference() {
    let problem = Problem::at(places(30, 1.0, 0.2), SPECS[0], 1);
    let space = problem.kernel.state_space().unwrap();
    let mut rows: Vec<f64> = problem.t().to_vec();
    rows.dedup();
    let t = between(&rows);
    let found = weights(&*space, &rows, Places::of_times(&t)).unwrap();
    let column = |t: &[f64]| Mat::from_fn(t.len(), 1, |i, _| t[i]);
    let (x, z) = (column(&t), column(&rows));
    let k = covariances(&*problem.kernel, z.as_ref(), None);
    let factor = Cholesky::new(k.as_ref(), Jitter::Absolute(1e-14), "K").unwrap();
    let cross = covariances(&*problem.kernel, x.as_ref(), Some(z.as_ref()));
    let known = factor.solve(cross.transpose());
    for (i, own) in found.iter().enumerate() {
        let explained: f64 = (0..rows.len()).map(|j| cross[(i, j)] * known[(j, i)]).sum();
        close(own.variance, 1.7 - explained, 1.0, "a variance");
    }
}

/// Whitened by the exact joint law of f at all rows, draws are standard normal: every component by its moments, and their squares
/// together by a χ² test (Cook, Gelman & Rubin 2006 for the idea).
#[test]
fn draws_have_the_joint_law_of_exact_inference() {
    let specs = SPECS.iter().chain(&["rbf(variance=1.9, lengthscales=0.7)"]);
    for (at, spec) in specs.enumerate() {
        // no two places alike: the covariance has a factor
        let t: Vec<f64> = (0..12).map(|i| 0.4 + 0.55 * i as f64 + 0.2 * (i as f64).sin()).collect();
        let mut problem = Problem::at(t, spec, 1);
        problem.noise[4] = f64::INFINITY;
        problem.noise[7] = 1e-4;
        let space = problem.kernel.state_space().unwrap();
        let (n, size) = (problem.x.nrows(), space.size());
        let seen = |i: usize| problem.noise[i].is_finite();
        let known: Vec<usize> = (0..n).filter(|i| seen(*i)).collect();
        let x = &problem.x;
        let k = covariances(&*problem.kernel, x.as_ref(), None);
        let g = Mat::from_fn(known.len(), known.len(), |a, b| {
            k[(known[a], known[b])] + if a == b { problem.noise[known[a]] } else { 0.0 }
        });
        let factor = Cholesky::new(g.as_ref(), Jitter::Absolute(0.0), "G").unwrap();
        let cross = Mat::from_fn(n, known.len(), |i, b| k[(i, known[b])]);
        let y = Mat::from_fn(known.len(), 1, |a, _| problem.y[(known[a], 0)]);
        let mean = &cross * factor.solve(y.as_ref());
        let left = &k - &cross * factor.solve(cross.transpose());
        // of directions that the rounding of a covariance of low rank leaves
        let jitter = 1e-9 * k[(0, 0)];
        let root = Cholesky::new(left.as_ref(), Jitter::Absolute(jitter), "posterior").unwrap().l;
        let count = 2500;
        let mut rng = rng::stream(31, spec);
        let mut sums = vec![[0.0; 2]; n];
        let column: Vec<f64> = (0..n).map(|i| problem.y[(i, 0)]).collect();
        let mut squares = Vec::new();
        for _ in 0..count {
            let states =
                draw(&*space, (problem.places(), &column, &problem.noise), &mut rng).unwrap();
            let f = Mat::from_fn(n, 1, |i, _| {
                let mut h = vec![0.0; size];
                space.output(problem.places().row(i), &mut h);
                let own: f64 = h.iter().zip(&states[i * size..]).map(|(h, s)| h * s).sum();
                // as the jitter has it
                let noise: f64 =
                    rand_distr::Distribution::sample(&rand_distr::StandardNormal, &mut rng);
                own - mean[(i, 0)] + jitter.sqrt() * noise
            });
            let mut e = f;
            crate::linalg::solve_lower(root.as_ref(), e.as_mut(), crate::linalg::Par::Seq);
            for i in 0..n {
                sums[i][0] += e[(i, 0)];
                sums[i][1] += e[(i, 0)].powi(2);
            }
            squares.push((0..n).map(|i| e[(i, 0)].powi(2)).sum::<f64>());
        }
        let m = f64::from(count);
        for (i, [first, second]) in sums.iter().enumerate() {
            // five standard errors
            assert!((first / m).abs() < 5.0 / m.sqrt(), "{spec}: mean {i}: {}", first / m);
            let off = second / m - 1.0;
            assert!(off.abs() < 5.0 * (2.0 / m).sqrt(), "{spec}: square {i}: {off}");
        }
        // Kolmogorov's distance from χ² with n degrees of freedom, n even: 1 − e^{−q/2} Σ (q/2)ᵏ/k!
        squares.sort_by(f64::total_cmp);
        let law = |q: f64| {
            let (mut term, mut sum) = (1.0, 1.0);
            for k in 1..n / 2 {
                term *= 0.5 * q / k as f64;
                sum += term;
            }
            1.0 - (-0.5 * q).exp() * sum
        };
        let distance = squares
            .iter()
            .enumerate()
            .map(|(i, q)| (law(*q) - (i as f64 + 0.5) / m).abs())
            .fold(0.0, f64::max);
        // of level 10⁻⁴
        assert!(distance < 2.23 / m.sqrt(), "{spec} ({at}): {distance}");
    }
}
