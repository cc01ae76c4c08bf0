//! Variables of two functions that are added, side by side.

use super::{Inducing, Variables};
use crate::error::{Error, Result};
use crate::kernels::Tape;
use crate::linalg::{MatMut, MatRef};
use crate::params::{Visitor, VisitorMut, prefixed, prefixed_mut};
use faer::reborrow::ReborrowMut;

/// Two independent functions whose sum is f, each with its own variables: Kuu is block diagonal,
/// and q may couple them.
#[derive(Clone, Debug)]
pub struct Stacked {
    /// The parts; the variables of the first come first.
    pub parts: [Box<dyn Variables>; 2],
}

impl Stacked {
    /// Returns the parts of a gradient.
    fn split<'a>(&self, gradient: &'a mut [f64]) -> [&'a mut [f64]; 2] {
        let (first, second) = gradient.split_at_mut(self.parts[0].num_params());
        [first, second]
    }
}

impl Inducing for Stacked {
    fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
    fn inputs(&self) -> usize {
        self.parts[0].inputs()
    }
    fn kuu(&self, out: MatMut<f64>, tape: &mut Tape) {
        let m = self.parts[0].len();
        let (first, mut above, mut below, second) = out.split_at_mut(m, m);
        above.fill(0.0);
        below.fill(0.0);
        self.parts[0].kuu(first, tape);
        self.parts[1].kuu(second, tape);
    }
    fn kuf(&self, x: MatRef<f64>, out: MatMut<f64>, tape: &mut Tape) {
        let (first, second) = out.split_at_col_mut(self.parts[0].len());
        self.parts[0].kuf(x, first, tape);
        self.parts[1].kuf(x, second, tape);
    }
    fn kff(&self, x: MatRef<f64>, out: &mut [f64]) {
        let mut second = vec![0.0; out.len()];
        self.parts[0].kff(x, out);
        self.parts[1].kff(x, &mut second);
        out.iter_mut().zip(second).for_each(|(t, v)| *t += v);
    }
    fn pull_kuu(&self, k: MatRef<f64>, bar: MatMut<f64>, tape: &mut Tape, gradient: &mut [f64]) {
        let m = self.parts[0].len();
        let [first, second] = self.split(gradient);
        let (k1, _, _, k2) = k.split_at(m, m);
        let (bar1, _, _, bar2) = bar.split_at_mut(m, m);
        // from the tape in opposite order
        self.parts[1].pull_kuu(k2, bar2, tape, second);
        self.parts[0].pull_kuu(k1, bar1, tape, first);
    }
    fn pull_kuf(
        &self,
        x: MatRef<f64>,
        (k, bar): (MatRef<f64>, MatMut<f64>),
        tape: &mut Tape,
        gradient: &mut [f64],
        mut x_bar: Option<MatMut<f64>>,
    ) {
        let m = self.parts[0].len();
        let [first, second] = self.split(gradient);
        let ((k1, k2), (bar1, bar2)) = (k.split_at_col(m), bar.split_at_col_mut(m));
        let own = x_bar.as_mut().map(|x| x.rb_mut());
        self.parts[1].pull_kuf(x, (k2, bar2), tape, second, own);
        self.parts[0].pull_kuf(x, (k1, bar1), tape, first, x_bar);
    }
    fn pull_kff(
        &self,
        x: MatRef<f64>,
        weights: &[f64],
        gradient: &mut [f64],
        mut x_bar: Option<MatMut<f64>>,
    ) {
        let [first, second] = self.split(gradient);
        let own = x_bar.as_mut().map(|x| x.rb_mut());
        self.parts[0].pull_kff(x, weights, first, own);
        self.parts[1].pull_kff(x, weights, second, x_bar);
    }
    fn num_params(&self) -> usize {
        self.parts.iter().map(|part| part.num_params()).sum()
    }
}

impl Variables for Stacked {
    fn visit<'a>(&'a self, index: &str, visitor: Visitor<'a, '_>) {
        for (i, part) in self.parts.iter().enumerate() {
            prefixed(&format!("parts[{i}]"), visitor, |v| part.visit(index, v));
        }
    }
    fn visit_mut<'a>(&'a mut self, index: &str, visitor: VisitorMut<'a, '_>) {
        for (i, part) in self.parts.iter_mut().enumerate() {
            prefixed_mut(&format!("parts[{i}]"), visitor, |v| part.visit_mut(index, v));
        }
    }
    fn check(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.check())?;
        let [first, second] = [self.parts[0].inputs(), self.parts[1].inputs()];
        if first == second {
            return Ok(());
        }
        let expected = format!("{first} input columns, as the first");
        Err(Error::shape("the second of two functions that are added", expected, second))
    }
    fn clone_box(&self) -> Box<dyn Variables> {
        Box::new(self.clone())
    }
}
