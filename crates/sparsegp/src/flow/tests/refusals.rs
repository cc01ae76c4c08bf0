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

/// Half of a move of momentum need not go down where the whole does not.
#[test]
fn halving_is_for_moves_that_go_down() {
    let with = |rule: Rule, apart: bool| {
        let options = GpfOptions { rule, apart, control: Control::Halve, ..GpfOptions::default() };
        Gpf::new(Particles::new(normals(2, 5, 1)).unwrap(), options)
    };
    for apart in [false, true] {
        assert!(text(with(Rule::adam(), apart)).contains("momentum"));
        for rule in [Rule::Plain, Rule::ada_grad(), Rule::rms_prop()] {
            assert!(with(rule, apart).is_ok());
        }
    }
}

#[test]
fn flows_of_another_shape() {
    for rule in [Rule::Plain, Rule::adam(), Rule::ada_grad(), Rule::rms_prop()] {
        for scale in [Scale::Dimension, Scale::Element] {
            let mut optimiser = FlowOptimiser::new(rule, scale).unwrap();
            optimiser.step(normals(2, 3, 0).as_ref(), 0.1).unwrap();
            for (rows, columns) in [(2, 4), (2, 2), (3, 3)] {
                let message = text(optimiser.step(normals(rows, columns, 0).as_ref(), 0.1));
                assert!(message.contains("2×3 as before"), "{message}");
            }
            assert!(optimiser.step(normals(2, 3, 1).as_ref(), 0.1).is_ok());
        }
    }
}

/// Functions that take matrices as they come.
#[test]
fn matrices_that_do_not_fit() {
    let (x, g) = (normals(3, 5, 1), normals(3, 4, 2));
    let (plain, whole) = (MeanFlow::Plain, Blocks::Whole);
    assert!(text(Field::new(x.as_ref(), g.as_ref(), &whole, plain)).contains("5 particles"));
    let low = normals(2, 5, 2);
    assert!(text(Field::new(x.as_ref(), low.as_ref(), &whole, plain)).contains("3 dimensions"));
    let none = Mat::zeros(3, 0);
    assert!(text(Field::new(none.as_ref(), none.as_ref(), &whole, plain)).contains("no particles"));
    for (blocks, what) in
        [(vec![vec![0, 3], vec![1, 2]], "no coordinate 3"), (vec![vec![0, 1]], "in no block")]
    {
        let own = Blocks::Of(blocks);
        assert!(text(Field::new(x.as_ref(), x.as_ref(), &own, plain)).contains(what));
        assert!(text(log_determinants(x.as_ref(), &own)).contains(what));
    }
    assert!(text(log_determinants(none.as_ref(), &whole)).contains("no particles"));
    // as many indices as coordinates, and one of them beyond
    let one = || Mat::full(1, 1, 1.0);
    let rows = Factor::Blocks(vec![(vec![0], one()), (vec![2], one())]);
    assert!(text(rows.covariance()).contains("no coordinate 2"));
    let rows = Factor::Blocks(vec![(vec![0, 1], Mat::full(3, 1, 1.0))]);
    assert!(text(rows.covariance()).contains("2 rows"));
}

/// Numbers beyond the largest are not an optimum.
#[test]
fn a_flow_that_overflows_has_no_residual_of_0() {
    for (dim, count) in [(5, 3), (4, 4)] {
        let far = normals(dim, count, 1) * faer::Scale(1e160);
        let own = Field::new(far.as_ref(), far.as_ref(), &Blocks::Whole, MeanFlow::Plain).unwrap();
        assert!(!own.residual.is_finite(), "{}", own.residual);
    }
}

#[test]
fn matrices_that_are_not_symmetric() {
    use crate::flow::compared::{DescentOptions, Entropy, Fcs, Iblr, IblrOptions, Precision};
    let skew = Mat::from_fn(2, 2, |i, j| [[2.0, 0.3], [0.0, 1.0]][i][j]);
    let precision = Precision::Whole(skew.clone());
    let own = Iblr::new(vec![0.0; 2], precision, IblrOptions::default());
    assert!(text(own).contains("symmetric"));
    assert!(text(Factor::of_covariance(skew.as_ref(), 1)).contains("symmetric"));
    let options = DescentOptions::default();
    let own = Fcs::of_covariance(vec![0.0; 2], skew.as_ref(), 1, Entropy::Closed, options);
    assert!(text(own).contains("symmetric"));
}

#[test]
fn kernels_between_particles_that_do_not_fit() {
    use crate::flow::compared::SvgdKernel;
    let median = SvgdKernel::SquaredExponential { length: None };
    assert!(text(median.length(normals(2, 1, 1).as_ref())).contains("at least two"));
    assert!(text(median.length(Mat::zeros(2, 0).as_ref())).contains("at least two"));
    // one NaN is beyond the median of the others
    let mut x = normals(2, 6, 1);
    x[(0, 5)] = f64::NAN;
    assert!(text(median.length(x.as_ref())).contains("not finite"));
    let none = SvgdKernel::SquaredExponential { length: Some(0.0) };
    let x = normals(2, 6, 1);
    assert!(text(none.flow(x.as_ref(), x.as_ref())).contains("above 0"));
    for kernel in [median, SvgdKernel::Linear, SvgdKernel::CentredLinear] {
        assert!(text(kernel.flow(x.as_ref(), normals(2, 5, 1).as_ref())).contains("6 particles"));
        assert!(text(kernel.flow(x.as_ref(), normals(3, 6, 1).as_ref())).contains("2 dimensions"));
    }
}

#[test]
fn priors_without_a_variance() {
    let v = Mat::full(2, 1, 0.1);
    let layer = crate::flow::compared::ElrgviLayer::new(1, vec![0.1; 2], vec![0.5; 2], v).unwrap();
    for gamma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(text(layer.kl(gamma)).contains("above 0"));
    }
}

/// Particles that depend on others would do so forever.
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
pub(super) struct Edge(pub f64);

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
fn the_last_finite_state_comes_back_and_is_reported() {
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
