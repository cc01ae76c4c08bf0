//! Rates of the free energy along the flow, and what never changes.

use super::*;
use crate::flow::targets::{Banana, Funnel};

/// dF̃/dt by central differences, for any number of particles, blocks and mean flow, on targets
/// that are not Gaussian.
#[test]
fn the_free_energy_falls_as_the_flow_says() {
    let thirds = || Blocks::Of(vec![vec![3, 0], vec![1], vec![2, 4]]);
    for (dim, count, blocks) in [
        (2, 2, Blocks::Whole),
        (2, 3, Blocks::Whole),
        (2, 6, Blocks::Whole),
        (5, 3, Blocks::Whole),
        (5, 5, Blocks::Whole),
        (5, 6, Blocks::Whole),
        (5, 9, Blocks::Whole),
        (5, 4, thirds()),
        (5, 9, thirds()),
        (5, 4, Blocks::Diagonal),
        (2, 3, Blocks::Diagonal),
    ] {
        for mean_flow in [MeanFlow::Plain, MeanFlow::Natural] {
            let mut banana = Banana::new(0.4, 0.7, 0.3, 1.0).unwrap();
            let mut funnel = Funnel::new(dim, 2.0).unwrap();
            let target: &mut dyn Target = if dim == 2 { &mut banana } else { &mut funnel };
            let (rates, h) = ((0.7, 1.3), 1e-5);
            let x = normals(dim, count, 4);
            let energy = |x: Mat<f64>, target: &mut dyn Target| {
                let particles = Particles::new(x).unwrap();
                let options =
                    GpfOptions { blocks: blocks.clone(), mean_flow, ..GpfOptions::default() };
                Gpf::new(particles, options).unwrap().state(target).unwrap()
            };
            let state = energy(x.clone(), target);
            let moved = |by: f64| {
                let field = &state.field;
                Mat::from_fn(dim, count, |i, n| {
                    x[(i, n)] + by * (rates.0 * field.mean[i] + rates.1 * field.spread[(i, n)])
                })
            };
            let up = energy(moved(h), target).free_energy;
            let down = energy(moved(-h), target).free_energy;
            let slope = state.field.slope(rates.0, rates.1);
            assert!(slope < 0.0 && state.field.residual > 0.0);
            close((up - down) / (2.0 * h), slope, 1e-7);
        }
    }
}

/// log|R| and log|C| agree where both exist, and spreads of any size keep their digits.
#[test]
fn both_determinants_agree() {
    for scale in [1.0, 1e-7, 1e5] {
        let z = {
            let x = normals(3, 4, 1) * faer::Scale(scale);
            Particles::new(x).unwrap().deviations()
        };
        let whole = log_determinants(z.as_ref(), &Blocks::Whole).unwrap()[0];
        let c = product(z.as_ref(), z.transpose()) * faer::Scale(0.25);
        close(whole, log_det(c.as_ref()), 1e-11);
        if scale == 1.0 {
            close(whole, log_det(regularised_gram(z.as_ref(), 1.0).as_ref()), 1e-11);
        }
    }
}

/// All particles share one affine map from the start, also with scaled steps.
#[test]
fn particles_stay_affine_images_of_their_start() {
    for (rule, mean_flow) in [
        (Rule::Plain, MeanFlow::Natural),
        (Rule::adam(), MeanFlow::Plain),
        (Rule::ada_grad(), MeanFlow::Plain),
        (Rule::rms_prop(), MeanFlow::Natural),
    ] {
        for apart in [false, true] {
            let start = Particles::new(normals(2, 7, 2)).unwrap();
            let options = GpfOptions { rule, apart, mean_flow, ..GpfOptions::default() };
            let mut gpf = Gpf::new(start.clone(), options).unwrap();
            let mut target = Banana::new(0.2, 0.5, 0.2, 2.0).unwrap();
            flow(&mut gpf, &mut target, 200);
            let residual = start.affine_residual(gpf.particles()).unwrap();
            assert!(residual < 1e-11, "{rule:?} {residual}");
            let twisted = Particles::new(Mat::from_fn(2, 7, |i, n| {
                start.x()[(i, n)] + 0.1 * ((n * n) as f64).sin()
            }));
            assert!(start.affine_residual(&twisted.unwrap()).unwrap() > 1e-3);
        }
    }
}

/// A start that is far too wide and far off: free steps diverge and are put back, controlled ones get to the optimum.
#[test]
fn halving_lowers_the_free_energy_and_stops_at_the_optimum() {
    let mut target = Banana::new(0.4, 0.7, 0.3, 1.0).unwrap();
    let start = Particles::new(normals(2, 5, 3) * faer::Scale(12.0)).unwrap();
    let options = GpfOptions { mean_rate: 0.5, spread_rate: 0.5, ..GpfOptions::default() };
    let mut free = Gpf::new(start.clone(), options.clone()).unwrap();
    let report = flow(&mut free, &mut target, 4000);
    assert!(matches!(report.ended, Ended::Restored { .. }), "{:?}", report.ended);
    assert!(free.is_finite() && free.state(&mut target).is_ok());
    let options = GpfOptions { control: Control::Halve, ..options };
    let mut gpf = Gpf::new(start.clone(), options.clone()).unwrap();
    let every = RunOptions { steps: 20_000, tolerance: 1e-12, every: 1 };
    let watch = &mut |_: usize, _: &Progress| std::ops::ControlFlow::Continue(());
    let report = run(&mut gpf, &mut target, &every, watch).unwrap();
    let values: Vec<f64> = report.trace.iter().map(|(_, p)| p.free_energy.unwrap()).collect();
    assert!(values.windows(2).all(|w| w[1] <= w[0] + 1e-11));
    let last = report.trace.last().unwrap().1;
    assert!(
        matches!(report.ended, Ended::Converged | Ended::Stalled),
        "{:?} {last:?}",
        report.ended
    );
    // a cap keeps it from diverging as well (there may be several optima)
    let options = GpfOptions { control: Control::Cap, mean_rate: 0.1, spread_rate: 0.1, ..options };
    let mut capped = Gpf::new(start, options).unwrap();
    assert_eq!(flow(&mut capped, &mut target, 8000).ended, Ended::AllSteps);
    let own = capped.state(&mut target).unwrap();
    assert!(own.field.residual < 1e-6 && own.free_energy < 0.5, "{own:?}");
}

/// Independent coordinates of very different widths, many of them.
struct Many(usize);

impl Many {
    fn precision(i: usize) -> f64 {
        0.5 + 0.4 * (i as f64).sin()
    }
}

impl Target for Many {
    fn dim(&self) -> usize {
        self.0
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        mut gradient: crate::linalg::MatMut<'_, f64>,
    ) -> crate::Result<()> {
        for (n, phi) in phi.iter_mut().enumerate() {
            *phi = 0.0;
            for i in 0..self.0 {
                let off = x[(i, n)] - 1.0;
                gradient[(i, n)] = Self::precision(i) * off;
                *phi += 0.5 * Self::precision(i) * off * off;
            }
        }
        Ok(())
    }
}

/// With 40 000 dimensions a matrix of D×D would have 13 gigabytes; mean field finds the variances that few particles
/// can have.
#[test]
fn many_dimensions_take_no_square_matrices() {
    let dim = 40_000;
    let mut target = Many(dim);
    for (blocks, rule) in [
        (Blocks::Whole, Rule::Plain),
        (Blocks::Diagonal, Rule::rms_prop()),
        (Blocks::consecutive(&[15_000, 25_000]), Rule::Plain),
    ] {
        let start = Particles::around(&vec![0.0; dim], &vec![0.8; dim], 4, 1).unwrap();
        let mean_flow = MeanFlow::Natural;
        let options = GpfOptions { blocks, rule, mean_flow, ..GpfOptions::default() };
        let mut gpf = Gpf::new(start, options).unwrap();
        let report = flow(&mut gpf, &mut target, 3);
        assert_eq!(report.ended, Ended::AllSteps);
    }
    let start = Particles::around(&vec![0.0; dim], &vec![0.8; dim], 4, 1).unwrap();
    let blocks = Blocks::Diagonal;
    let options = GpfOptions { blocks, mean_rate: 0.5, spread_rate: 0.2, ..GpfOptions::default() };
    let mut gpf = Gpf::new(start, options).unwrap();
    flow(&mut gpf, &mut target, 120);
    let variances = gpf.particles().variances();
    (0..dim).for_each(|i| close(variances[i], Many::precision(i).recip(), 1e-9));
    assert!(gpf.particles().mean().iter().all(|m| (m - 1.0).abs() < 0.1));
}
