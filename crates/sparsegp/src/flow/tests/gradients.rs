//! Gradients and Hessians of every target against differences.

use super::*;
use crate::flow::targets::{Banana, Funnel};
use crate::linalg::column;
use crate::samplers::{AsDensity, OfDensity};

/// Values, gradients and products with the Hessian at some positions.
pub fn check(target: &mut dyn Target, x: &Mat<f64>, tolerance: f64) {
    let own = Evaluation::of(target, x.as_ref()).unwrap();
    let (d, h) = (x.nrows(), 1e-5);
    for n in 0..x.ncols() {
        // together with others or alone
        let alone = Mat::from_fn(d, 1, |i, _| x[(i, n)]);
        close(Evaluation::of(target, alone.as_ref()).unwrap().phi[0], own.phi[n], 1e-13);
        let moved = |i: usize, by: f64| {
            Mat::from_fn(d, 1, |k, _| alone[(k, 0)] + if k == i { by } else { 0.0 })
        };
        let mut differences = Mat::zeros(d, d);
        for i in 0..d {
            let (up, down) = (moved(i, h), moved(i, -h));
            let up = Evaluation::of(target, up.as_ref()).unwrap();
            let down = Evaluation::of(target, down.as_ref()).unwrap();
            close(own.gradient[(i, n)], (up.phi[0] - down.phi[0]) / (2.0 * h), tolerance);
            for k in 0..d {
                differences[(k, i)] = (up.gradient[(k, 0)] - down.gradient[(k, 0)]) / (2.0 * h);
            }
        }
        if target.has_hessian() {
            let v = normals(d, 3, 5);
            let mut out = Mat::full(d, 3, f64::NAN);
            target.hessian_times(column(x.as_ref(), n), v.as_ref(), out.as_mut()).unwrap();
            let expected = product(differences.as_ref(), v.as_ref());
            let size = 1.0 + largest(expected.as_ref());
            assert!(
                largest((&out - &expected).as_ref()) < tolerance * size,
                "{out:?} {expected:?}"
            );
        } else {
            let out = target.hessian_times(
                column(x.as_ref(), n),
                alone.as_ref(),
                Mat::zeros(d, 1).as_mut(),
            );
            assert!(out.unwrap_err().to_string().contains("Iblr"));
        }
    }
}

#[test]
fn of_closed_forms() {
    check(&mut gaussian(4, 7.0, 1).2, &normals(4, 3, 2), 1e-7);
    check(&mut Banana::default(), &(normals(2, 4, 3) * faer::Scale(3.0)), 1e-7);
    check(&mut Banana::new(0.3, 0.7, 0.4, -1.0).unwrap(), &normals(2, 4, 3), 1e-7);
    check(&mut Funnel::new(4, 5.0).unwrap(), &normals(4, 4, 4), 1e-7);
}

/// A target as a density of the samplers and back.
#[test]
fn bridges_keep_values_and_gradients() {
    let mut funnel = Funnel::new(3, 2.0).unwrap();
    let x = normals(3, 4, 8);
    let own = Evaluation::of(&mut funnel, x.as_ref()).unwrap();
    let there = Evaluation::of(&mut OfDensity(AsDensity(funnel)), x.as_ref()).unwrap();
    assert_eq!(own.phi, there.phi);
    assert_eq!(own.gradient, there.gradient);
}
