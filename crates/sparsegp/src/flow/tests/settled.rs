//! Preconditioned flows, and how far from the optimum draws say that one is.

use super::*;
use crate::linalg::{MatMut, column};
use std::ops::ControlFlow;

fn preconditioned() -> GpfOptions {
    GpfOptions {
        mean_rate: 1.0,
        spread_rate: 1.0,
        mean_flow: MeanFlow::Natural,
        control: Control::Halve,
        preconditioned: true,
        ..GpfOptions::default()
    }
}

fn started(dim: usize, count: usize) -> Particles {
    Particles::matched(&vec![0.0; dim], Mat::<f64>::identity(dim, dim).as_ref(), count, 3).unwrap()
}

fn flowed(
    target: &mut dyn Target,
    start: Particles,
    options: GpfOptions,
    steps: usize,
) -> (Run, Particles) {
    let mut gpf = Gpf::new(start, options).unwrap();
    let plan = RunOptions { steps, tolerance: 1e-12, every: 1 };
    let report = run(&mut gpf, target, &plan, &mut |_, _| ControlFlow::Continue(())).unwrap();
    (report, gpf.particles().clone())
}

/// Whatever the condition number, a Gaussian is found in a few steps; without the curvature it is far away after a hundred.
#[test]
fn curvature_makes_scales_no_matter() {
    for condition in [1.0, 1e4, 1e8] {
        let (mean, sigma, mut target) = gaussian(6, condition, 5);
        let (report, found) = flowed(&mut target, started(6, 7), preconditioned(), 20);
        assert_eq!(report.ended, Ended::Converged, "{condition}");
        assert!(report.steps <= 10, "{condition}: {} steps", report.steps);
        let off = largest((&found.covariance() - &sigma).as_ref());
        assert!(off < 1e-8 * largest(sigma.as_ref()), "{condition}: {off}");
        for (i, (a, b)) in found.mean().iter().zip(&mean).enumerate() {
            assert!((a - b).abs() < 1e-5 * sigma[(i, i)].sqrt(), "{condition}: {a} {b}");
        }
        let settled = Settled::look(&found, &mut target, 200, 1).unwrap();
        assert!(settled.is_near() && settled.mean < 1e-4, "{condition}: {settled:?}");
    }
    let (_, _, mut target) = gaussian(6, 1e4, 5);
    let plain = GpfOptions { preconditioned: false, spread_rate: 0.1, ..preconditioned() };
    let (_, found) = flowed(&mut target, started(6, 7), plain, 100);
    assert!(!Settled::look(&found, &mut target, 200, 1).unwrap().is_near());
}

/// φ = Σ log cosh(3 xᵢ) + ½ Σ xᵢ²: no Gaussian, and steep at 0.
struct Peaked(usize);

impl Target for Peaked {
    fn dim(&self) -> usize {
        self.0
    }
    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        mut gradient: MatMut<'_, f64>,
    ) -> crate::Result<()> {
        for (s, phi) in phi.iter_mut().enumerate() {
            *phi = 0.0;
            for (i, x) in column(x, s).iter().enumerate() {
                *phi += (3.0 * x).cosh().ln() + 0.5 * x * x;
                gradient[(i, s)] = 3.0 * (3.0 * x).tanh() + x;
            }
        }
        Ok(())
    }
}

/// The fewest particles settle beside the best Gaussian, which draws show and more particles mend.
#[test]
fn draws_show_what_few_particles_cannot() {
    let off = |count: usize| {
        let (_, found) = flowed(&mut Peaked(12), started(12, count), preconditioned(), 60);
        Settled::look(&found, &mut Peaked(12), 4000, 2).unwrap()
    };
    let (few, many) = (off(13), off(1500));
    assert!(!few.is_near() && few.spread > 0.2, "{few:?}");
    assert!(many.is_near(), "{many:?}");
}

#[test]
fn curvature_needs_particles_and_one_block() {
    let few = Gpf::new(
        Particles::random(&[0.0; 6], Mat::<f64>::identity(6, 6).as_ref(), 4, 1).unwrap(),
        preconditioned(),
    );
    assert!(few.unwrap_err().to_string().contains("more particles than the 6 dimensions"));
    let blocks = GpfOptions { blocks: Blocks::Diagonal, ..preconditioned() };
    assert!(Gpf::new(started(6, 9), blocks).unwrap_err().to_string().contains("one block"));
}
