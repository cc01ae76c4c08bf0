//! Steps of EM: natural gradients for q, Adam or L-BFGS for the rest.

use sparsegp::data::Source;
use sparsegp::engine::{Cpu, Want};
use sparsegp::methods::{Step, Uncollapsed};
use sparsegp::model::Model;
use sparsegp::optim::{Adam, AdamOptions, Lbfgs, LbfgsOptions, Objective, Optimiser};

fn method(model: &Model) -> Uncollapsed {
    Uncollapsed::of(model.method).expect("a method with a q")
}

/// Moves q by a natural-gradient step, halved until the bound of these rows does not fall.
pub fn natural(
    model: &mut Model,
    step: &mut Step,
    data: &dyn Source,
    mut rate: f64,
) -> sparsegp::Result<()> {
    let (method, engine) = (method(model), Cpu::default());
    method.renew(step, model, &engine, data, Want::Statistics)?;
    let before = model.q.clone();
    for _ in 0..20 {
        if step.natural(model, rate).is_ok() {
            let after = method.step(model, &engine, data, Want::Value);
            if after.is_ok_and(|after| after.value >= step.value - 1e-10 * step.value.abs()) {
                return Ok(());
            }
        }
        model.q.clone_from(&before);
        rate *= 0.5;
    }
    Ok(())
}

/// Moves q to its optimum: at most so many steps, ended by one that brings nothing.
pub fn settle(model: &mut Model, data: &dyn Source, most: usize) -> sparsegp::Result<f64> {
    let (mut step, mut before) = (Step::default(), f64::NEG_INFINITY);
    for _ in 0..most {
        natural(model, &mut step, data, 0.8)?;
        if step.value - before < 1e-9 * step.value.abs() {
            break;
        }
        before = step.value;
    }
    bound(model, data)
}

/// Returns the bound.
pub fn bound(model: &Model, data: &dyn Source) -> sparsegp::Result<f64> {
    Ok(method(model).step(model, &Cpu::default(), data, Want::Value)?.value)
}

/// The bound with its sign changed, as optimisers see it.
pub struct Negated<'a> {
    /// The model, whose free parameters are moved.
    pub model: &'a mut Model,
    /// Its rows.
    pub data: &'a dyn Source,
}

impl Objective for Negated<'_> {
    fn dim(&self) -> usize {
        self.model.free_count()
    }

    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> sparsegp::Result<f64> {
        self.model.set_free_values(x);
        let (evaluation, free) = self.model.evaluate_free(&Cpu::default(), self.data)?;
        gradient.iter_mut().zip(free).for_each(|(g, f)| *g = -f);
        Ok(-evaluation.value)
    }
}

/// Freezes q, or everything else.
pub fn freeze(model: &mut Model, q: bool) {
    for (path, param) in model.params_mut() {
        let own = path.starts_with("q.");
        param.frozen = own == q || (own && path.contains("lambda"));
    }
}

/// Takes steps of Adam on what is not frozen; `adam` is made by the first call.
pub fn ascend(
    model: &mut Model,
    adam: &mut Option<Adam>,
    data: &dyn Source,
    rate: f64,
    steps: usize,
) -> sparsegp::Result<()> {
    let options = AdamOptions { learning_rate: rate, ..AdamOptions::default() };
    let adam = adam.get_or_insert_with(|| Adam::new(model.free_values(), options));
    for _ in 0..steps {
        adam.step(&mut Negated { model, data })?;
    }
    model.set_free_values(adam.x());
    Ok(())
}

/// Maximises the bound over what is not frozen, from where it is.
pub fn climb(model: &mut Model, data: &dyn Source) -> sparsegp::Result<()> {
    let options = LbfgsOptions { largest_move: Some(1.0), ..LbfgsOptions::fitting() };
    let mut optimiser = Lbfgs::new(model.free_values(), options);
    for _ in 0..200 {
        if optimiser.step(&mut Negated { model, data })?.status.is_final() {
            break;
        }
    }
    if let Some((best, _)) = optimiser.best() {
        let best = best.to_vec();
        model.set_free_values(&best);
    }
    Ok(())
}
