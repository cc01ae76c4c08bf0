//! Plans in which some rows stand for others.

use super::tests::{Problem, close};
use super::*;
use crate::linalg::Mat;
use crate::rng;
use rand_distr::{Distribution, StandardNormal};

const ROWS: usize = 2400;

/// Draws of a process at its rows, with the noise of each.
fn drawn(kernel: &str) -> Problem {
    let mut problem = Problem::new(kernel, ROWS, 2);
    let l = problem.factor().l;
    let mut rng = rng::stream(3, "sample");
    let normals: Mat<f64> = Mat::from_fn(ROWS, 2, |_, _| StandardNormal.sample(&mut rng));
    let value = |i: usize, t: usize| -> f64 { (0..=i).map(|j| l[(i, j)] * normals[(j, t)]).sum() };
    problem.residual = Mat::from_fn(ROWS, 2, value);
    problem
}

fn sampled(problem: &Problem, neighbours: usize, rows: usize) -> Plan {
    let metric = Metric::of(&*problem.kernel, problem.x.ncols());
    Plan::of_sample(problem.x.as_ref(), metric, neighbours, rows)
}

fn value(problem: &Problem, plan: &Plan) -> f64 {
    log_density(&*problem.kernel, plan, problem.rows(), &|| Ok(())).unwrap().value
}

#[test]
fn a_sample_has_the_first_rows_and_others_that_stand_for_all_left_out() {
    let problem = Problem::new("matern32(variance=1.7, lengthscales=[0.3, 0.5])", ROWS, 2);
    let (all, plan) = (problem.plan(12), sampled(&problem, 12, 700));
    assert_eq!(plan.order(), all.order());
    let mut rank = vec![0; ROWS];
    plan.order().iter().enumerate().for_each(|(at, row)| rank[*row as usize] = at);
    let (mut times, mut stands_for) = (vec![0; ROWS], 0.0);
    for block in (0..plan.blocks()).map(|index| plan.block(index)) {
        let ranks: Vec<usize> = block.rows.iter().map(|row| rank[*row as usize]).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]));
        for (at, rank) in ranks.iter().enumerate().filter(|(at, _)| block.responds[*at]) {
            times[*rank] += 1;
            stands_for += block.weight;
            assert_eq!(block.weight > 1.0, *rank >= 350, "{rank}");
            assert!(at >= 12.min(*rank), "{rank} has {at} others before it");
        }
    }
    assert!(times[..350].iter().all(|own| *own == 1) && times.iter().all(|own| *own <= 1));
    let responding = times.iter().sum::<usize>();
    assert!((640..770).contains(&responding), "{responding}");
    close(stands_for, ROWS as f64, ROWS as f64, "rows that it stands for");
    let every = sampled(&problem, 12, ROWS);
    assert_eq!(value(&problem, &every), value(&problem, &all));
}

/// Under the model log densities of rows given others have the variance ½ each, so that the error of the estimate is known.
#[test]
fn a_sample_estimates_the_log_density_of_all_rows() {
    for kernel in [
        "matern32(variance=1.7, lengthscales=[0.3, 0.5])",
        "rbf(variance=0.9, lengthscales=[0.2, 0.6]) + constant(variance=0.4)",
    ] {
        let problem = drawn(kernel);
        let all = value(&problem, &problem.plan(15));
        for rows in [1000, 1300, 1700] {
            let plan = sampled(&problem, 15, rows);
            let weight = plan.block(plan.blocks() - 1).weight;
            let fine = (ROWS - rows / 2) as f64;
            let taken = fine / weight;
            // two targets
            let variance = taken * (weight - 1.0).powi(2) + (fine - taken);
            let z = (value(&problem, &plan) - all) / variance.sqrt();
            assert!(z.abs() < 4.0, "{kernel}, {rows} rows: {z} standard errors");
        }
    }
}

#[test]
fn slopes_of_a_sample_are_those_of_differences() {
    let mut problem = drawn("matern52(variance=2.3, lengthscales=[0.4, 1.3])");
    let plan = sampled(&problem, 10, 1000);
    let own = with_slopes(&*problem.kernel, &plan, problem.rows(), &|| Ok(())).unwrap();
    close(own.0.value, value(&problem, &plan), own.0.value.abs(), "value");
    let slopes = own.1;
    let h = 1e-5;
    let check = |found: f64, up: f64, down: f64, what: &str| {
        let right = (up - down) / (2.0 * h);
        assert!((found - right).abs() < 2e-5 * (1.0 + right.abs()), "{what}: {found} and {right}");
    };
    let values = [2.3, 0.4, 1.3];
    for (k, start) in values.iter().enumerate() {
        let mut at = |by: f64| {
            let mut moved = values;
            moved[k] = start + by;
            let [variance, a, b] = moved;
            let text = format!("matern52(variance={variance}, lengthscales=[{a}, {b}])");
            problem.kernel =
                crate::kernels::parse(&text, crate::kernels::Inputs::unnamed(2)).unwrap();
            value(&problem, &plan)
        };
        let (up, down) = (at(h), at(-h));
        at(0.0);
        check(slopes.kernel[k], up, down, &format!("kernel {k}"));
    }
    // rows that respond, that are others' neighbours, and that are neither
    for i in [0, 7, 500, 1203, 2399] {
        let then = problem.noise[i];
        let mut at = |by: f64| {
            problem.noise[i] = then + by;
            value(&problem, &plan)
        };
        let (up, down) = (at(h), at(-h));
        at(0.0);
        check(slopes.noise[i], up, down, &format!("noise of row {i}"));
        let then = problem.residual[(i, 1)];
        let mut at = |by: f64| {
            problem.residual[(i, 1)] = then + by;
            value(&problem, &plan)
        };
        let (up, down) = (at(h), at(-h));
        at(0.0);
        check(slopes.residual[(i, 1)], up, down, &format!("residual of row {i}"));
    }
}
