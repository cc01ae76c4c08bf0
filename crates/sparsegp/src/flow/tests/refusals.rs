//! What is refused, and what happens where numbers run away.

use super::*;
use crate::error::{Error, Result};
use crate::flow::targets::{Banana, Funnel, Gaussian};
use crate::linalg::MatMut;

fn text<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn sizes_and_numbers() {
    assert!(text(Particles::new(Mat::zeros(3, 1))).contains("at least two"));
    assert!(text(Particles::new(Mat::zeros(0, 4))).contains("at least two"));
    assert!(text(Particles::new(Mat::full(2, 3, f64::NAN))).contains("not finite"));
    let identity = Mat::<f64>::identity(3, 3);
    assert!(text(Particles::matched(&[0.0; 3], identity.as_ref(), 3, 0)).contains("more than 3"));
    assert!(text(Particles::random(&[0.0; 2], identity.as_ref(), 3, 0)).contains("2 dimensions"));
    assert!(text(Particles::around(&[0.0; 2], &[1.0; 3], 3, 0)).contains("2 dimensions"));
    assert!(text(Gaussian::new(vec![0.0; 2], identity.clone())).contains("precision"));
    assert!(text(Gaussian::new(vec![0.0; 3], -identity.clone())).contains("positive definite"));
    assert!(text(Gaussian::new(vec![f64::NAN; 3], identity)).contains("not finite"));
    let skew = Mat::from_fn(2, 2, |i, j| if i <= j { 1.0 + i as f64 } else { 0.0 });
    assert!(text(Gaussian::new(vec![0.0; 2], skew)).contains("symmetric"));
    assert!(text(Banana::new(0.0, 1.0, 1.0, 1.0)).contains("above 0"));
    assert!(text(Funnel::new(1, 1.0)).contains("two dimensions"));
    assert!(text(Funnel::new(3, f64::NAN)).contains("above 0"));
}

#[test]
fn options_that_do_not_go_together() {
    let particles = || Particles::new(normals(2, 5, 1)).unwrap();
    let with = |options: GpfOptions| text(Gpf::new(particles(), options));
    let plain = GpfOptions::default;
    assert!(with(GpfOptions { mean_rate: -1.0, ..plain() }).contains("below 0"));
    assert!(with(GpfOptions { spread_rate: f64::NAN, ..plain() }).contains("not finite"));
    let uneven = GpfOptions { mean_rate: 0.1, rule: Rule::adam(), ..plain() };
    assert!(with(uneven).contains("apart"));
    let rule = Rule::RmsProp { rho: 1.0, epsilon: 1e-8 };
    assert!(with(GpfOptions { rule, ..plain() }).contains("below 1"));
    let schedule = Schedule::Power { after: 0.0, exponent: 1.0 };
    assert!(with(GpfOptions { schedule, ..plain() }).contains("above 0"));
    for (blocks, what) in [
        (vec![vec![0]], "in no block"),
        (vec![vec![0, 1], vec![1]], "in several"),
        (vec![vec![0, 1, 2]], "no coordinate 2"),
        (vec![vec![0, 1], vec![]], "no coordinates"),
    ] {
        let message = with(GpfOptions { blocks: Blocks::Of(blocks), ..plain() });
        assert!(message.contains(what), "{message}");
    }
    let mut gpf = Gpf::new(particles(), plain()).unwrap();
    let mut other = Funnel::new(3, 1.0).unwrap();
    assert!(text(gpf.advance(&mut other, 0)).contains("2 dimensions"));
    let none = RunOptions { every: 0, ..RunOptions::default() };
    let watch = &mut |_: usize, _: &Progress| std::ops::ControlFlow::Continue(());
    assert!(text(run(&mut gpf, &mut Banana::default(), &none, watch)).contains("every step"));
    let mut optimiser = FlowOptimiser::new(Rule::adam(), Scale::Element).unwrap();
    optimiser.step(normals(2, 3, 0).as_ref(), 0.1).unwrap();
    assert!(text(optimiser.step(normals(2, 4, 0).as_ref(), 0.1)).contains("as before"));
}

/// Particles that depend on others would do so for ever.
#[test]
fn dependent_particles() {
    let twice = Mat::from_fn(4, 3, |i, n| normals(4, 2, 1)[(i, n % 2)]);
    let on_a_line = Mat::from_fn(2, 6, |i, n| (n as f64) * (1.0 + i as f64) + 0.3);
    for x in [twice, on_a_line] {
        let message = text(Gpf::new(Particles::new(x).unwrap(), GpfOptions::default()));
        assert!(message.contains("affinely dependent"), "{message}");
    }
}

/// Coordinate by coordinate a variance is all it takes, and none is refused.
#[test]
fn coordinates_without_variance() {
    let line = Mat::from_fn(2, 6, |i, n| (n as f64) * (1.0 + i as f64) + 0.3);
    let options = || GpfOptions { blocks: Blocks::Diagonal, ..GpfOptions::default() };
    assert!(Gpf::new(Particles::new(line).unwrap(), options()).is_ok());
    let still = Mat::from_fn(2, 6, |i, n| if i == 0 { n as f64 } else { 0.5 });
    let message = text(Gpf::new(Particles::new(still).unwrap(), options()));
    assert!(message.contains("affinely dependent"), "{message}");
}

/// Finite near 0, NaN or infinite beyond.
struct Edge(f64);

impl Target for Edge {
    fn dim(&self) -> usize {
        2
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        mut gradient: MatMut<'_, f64>,
    ) -> Result<()> {
        for (n, phi) in phi.iter_mut().enumerate() {
            let inside = x[(0, n)] < 3.0;
            // downhill to the edge
            *phi = if inside { -x[(0, n)] } else { self.0 };
            gradient[(0, n)] = if inside { -1.0 } else { f64::NAN };
            gradient[(1, n)] = x[(1, n)];
        }
        Ok(())
    }
}

#[test]
fn the_last_finite_state_comes_back_and_is_told() {
    for outside in [f64::NAN, f64::INFINITY, 1.0] {
        let start = normals(2, 4, 3) * faer::Scale(0.1);
        let options = GpfOptions { mean_rate: 0.3, ..GpfOptions::default() };
        let mut gpf = Gpf::new(Particles::new(start).unwrap(), options).unwrap();
        let report = flow(&mut gpf, &mut Edge(outside), 1000);
        let Ended::Restored { step, reason } = &report.ended else { panic!("{:?}", report.ended) };
        assert!(reason.contains("of particle") || reason.contains("at particle"), "{reason}");
        assert!(reason.contains("smaller rates"));
        assert_eq!(report.steps, step - 1);
        // the state has a finite evaluation
        assert!(gpf.is_finite() && gpf.state(&mut Edge(outside)).is_ok());
        let far = gpf.particles().mean()[0];
        assert!(far > 2.0 && far < 3.0, "{far}");
    }
    // a start without one is an error, and stays
    let away = Particles::new(Mat::from_fn(2, 4, |i, n| 9.0 + normals(2, 4, 3)[(i, n)])).unwrap();
    let mut gpf = Gpf::new(away.clone(), GpfOptions::default()).unwrap();
    let options = RunOptions::default();
    let watch = &mut |_: usize, _: &Progress| std::ops::ControlFlow::Continue(());
    let error = run(&mut gpf, &mut Edge(f64::NAN), &options, watch).unwrap_err();
    assert!(matches!(error, Error::NonFinite { .. }));
    assert_eq!(*gpf.particles(), away);
}
