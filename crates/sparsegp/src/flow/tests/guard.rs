//! What a run keeps, what it hands back, and what a step must not remember.

use super::refusals::Edge;
use super::*;
use crate::error::Result;
use crate::flow::compared::{DescentOptions, Elrgvi, Svgd, SvgdKernel, SvgdOptions};
use crate::flow::targets::{Banana, Network};
use std::ops::ControlFlow;

/// Values at the particles are those of the target that is given, not of the one before.
#[test]
fn another_target_is_seen_at_once() {
    let (_, _, mut one) = gaussian(2, 3.0, 1);
    let mut other = Banana::new(0.4, 0.7, 0.3, 1.0).unwrap();
    let options = GpfOptions { control: Control::Halve, ..GpfOptions::default() };
    let particles = || Particles::new(normals(2, 5, 1)).unwrap();
    let mut gpf = Gpf::new(particles(), options.clone()).unwrap();
    for step in 0..4 {
        let target: &mut dyn Target = if step % 2 == 0 { &mut one } else { &mut other };
        let expected = gpf.state(target).unwrap().free_energy;
        assert_eq!(gpf.advance(target, step).unwrap().free_energy, Some(expected));
    }
    // of a run after another one as well
    let mut gpf = Gpf::new(particles(), options).unwrap();
    flow(&mut gpf, &mut one, 3);
    let expected = gpf.state(&mut other).unwrap().free_energy;
    assert_eq!(flow(&mut gpf, &mut other, 3).trace[0].1.free_energy, Some(expected));
}

/// A target that counts its evaluations.
struct Counted<T>(T, usize);

impl<T: Target> Target for Counted<T> {
    fn dim(&self) -> usize {
        self.0.dim()
    }

    fn evaluate(
        &mut self,
        x: MatRef<'_, f64>,
        phi: &mut [f64],
        gradient: crate::linalg::MatMut<'_, f64>,
    ) -> Result<()> {
        self.1 += 1;
        self.0.evaluate(x, phi, gradient)
    }
}

/// Within a run, what a halved move has seen is not evaluated again.
#[test]
fn a_run_evaluates_no_state_twice() {
    let mut target = Counted(gaussian(2, 3.0, 1).2, 0);
    let options = GpfOptions {
        mean_rate: 0.01,
        spread_rate: 0.01,
        control: Control::Halve,
        ..Default::default()
    };
    let start = Particles::new(normals(2, 5, 1) * faer::Scale(0.1)).unwrap();
    let mut gpf = Gpf::new(start, options).unwrap();
    flow(&mut gpf, &mut target, 10);
    assert_eq!(target.1, 11);
}

fn ends(report: &Run) -> (usize, usize) {
    match report.ended {
        Ended::Restored { step, .. } => (step, report.steps),
        _ => panic!("{:?}", report.ended),
    }
}

/// However many steps there are, and whoever ends the run: the state has a finite evaluation.
#[test]
fn the_last_move_is_guarded_as_well() {
    for control in [Control::Free, Control::Cap, Control::Halve] {
        let start = normals(2, 4, 3) * faer::Scale(0.1);
        let options = GpfOptions { mean_rate: 0.3, control, ..GpfOptions::default() };
        let whole = Gpf::new(Particles::new(start).unwrap(), options).unwrap();
        for steps in 1..30 {
            let mut gpf = whole.clone();
            flow(&mut gpf, &mut Edge(f64::NAN), steps);
            assert!(gpf.state(&mut Edge(f64::NAN)).is_ok(), "{control:?} {steps}");
        }
        if control == Control::Halve {
            continue;
        }
        let failed = ends(&flow(&mut whole.clone(), &mut Edge(f64::NAN), 1000));
        let (step, kept) = failed;
        assert_eq!(kept, step - 1);
        // so many steps and no more
        let mut gpf = whole.clone();
        assert_eq!(ends(&flow(&mut gpf, &mut Edge(f64::NAN), step)), failed);
        // fewer steps lead to the same state
        let mut fewer = whole.clone();
        let report = flow(&mut fewer, &mut Edge(f64::NAN), kept);
        assert_eq!((report.ended, report.steps), (Ended::AllSteps, kept));
        assert_eq!(fewer.particles(), gpf.particles());
        // ended by hand
        let mut gpf = whole.clone();
        let watch = &mut |at: usize, _: &Progress| match at + 1 == step {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let report = run(&mut gpf, &mut Edge(f64::NAN), &RunOptions::default(), watch).unwrap();
        assert_eq!(ends(&report), failed);
        assert_eq!(fewer.particles(), gpf.particles());
    }
}

/// The same for solvers that know no more of a state than a step does.
#[test]
fn the_last_move_of_others() {
    let start = Particles::new(normals(2, 4, 3) * faer::Scale(0.1)).unwrap();
    let options = SvgdOptions {
        kernel: SvgdKernel::Linear,
        rate: 0.1,
        rule: Rule::Plain,
        ..Default::default()
    };
    let whole = Svgd::new(start, options).unwrap();
    let failed = ends(&flow(&mut whole.clone(), &mut Edge(f64::NAN), 1000));
    let mut svgd = whole.clone();
    assert_eq!(ends(&flow(&mut svgd, &mut Edge(f64::NAN), failed.0)), failed);
    assert!(Evaluation::of(&mut Edge(f64::NAN), svgd.particles().x()).is_ok());

    let network = Network::new(vec![2, 2], normals(5, 2, 1), vec![0, 1, 1, 0, 1], 0.8).unwrap();
    let options = DescentOptions { rate: 1e200, rule: Rule::Plain, ..DescentOptions::default() };
    let mut own = Elrgvi::new(&network, &[0.1; 6], 0.4, 2, options).unwrap();
    let before = own.layers().to_vec();
    let steps = RunOptions { steps: 1, ..RunOptions::default() };
    let watch = &mut |_: usize, _: &Progress| ControlFlow::Continue(());
    let report = own.run(&mut network.clone(), &steps, watch).unwrap();
    assert_eq!(ends(&report), (1, 0));
    assert_eq!(own.layers(), before);
}

/// Rows in sight stay those of the last step.
#[test]
fn the_last_look_leaves_the_rows() {
    let labels = vec![1.0, -1.0, 1.0, 1.0, -1.0, -1.0];
    let whole = crate::flow::targets::Logistic::new(normals(6, 2, 1), labels, 1.0).unwrap();
    let mut target = whole.in_batches(2, 3).unwrap();
    let options = SvgdOptions { rule: Rule::Plain, ..SvgdOptions::default() };
    let mut svgd = Svgd::new(Particles::new(normals(2, 4, 3)).unwrap(), options).unwrap();
    flow(&mut svgd, &mut target, 2);
    let own: Vec<usize> = (0..2).map(|at| target.subsample().row(at)).collect();
    target.renew(1);
    assert_eq!(own, (0..2).map(|at| target.subsample().row(at)).collect::<Vec<_>>());
}
