//! Steps of q on all rows, as trainings make them: the same for sites at inducing points and for sites of rows.

use super::uncollapsed::{Bound, Step, Uncollapsed};
use super::{Diagnostics, Keeps, Look, Tvgp};
use crate::data::Source;
use crate::engine::{Engine, Want};
use crate::error::{Error, Result};
use crate::model::Model;

/// A q that moves by natural-gradient steps on all rows, and what the last look at the rows has left.
///
/// Every call is for the model, whose q it moves, and the rows that it was made for ([`q_steps`]).
pub trait QSteps {
    /// Returns what a row contributes.
    fn bound(&self) -> &'static dyn Bound;

    /// Returns the bound at the model's q.
    ///
    /// # Errors
    /// As for [`super::Method::evaluate`]; so for all that looks at rows.
    fn value(&mut self, model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<f64>;

    /// Looks at the rows. Returns the bound.
    fn look(&mut self, model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<f64>;

    /// Centres the latent functions of a target where only their differences matter ([`Step::centre`]), and the last
    /// look with them. Returns the bound.
    ///
    /// # Errors
    /// [`Error::Invalid`] before the first look.
    fn centre(&mut self, model: &mut Model) -> Result<f64>;

    /// Returns the slopes with respect to the means at the last look, of all latent functions in turn.
    fn mean_slopes(&self) -> Vec<f64>;

    /// Returns what a step from the last look promises, in nats ([`Step::promise`]).
    fn promise(&self, model: &Model, data: &dyn Source) -> Result<f64>;

    /// Moves q by a step of size `rate` from the last look, in all turns of the bound.
    fn step(
        &mut self,
        model: &mut Model,
        engine: &dyn Engine,
        data: &dyn Source,
        rate: f64,
    ) -> Result<()>;

    /// Returns what the likelihood's parameters become in closed form at the model's q; none for those without such
    /// an update.
    fn closed_form(
        &mut self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Vec<Option<f64>>>;

    /// Returns what the numerics had to do in the last look or value.
    fn diagnostics(&self) -> Diagnostics;
}

/// Makes the steps of a model's q.
///
/// # Errors
/// [`Error::Invalid`] for a method without a q of this kind.
pub fn q_steps(model: &Model) -> Result<Box<dyn QSteps>> {
    match model.method.with_q().map(|q| q.keeps) {
        Some(Keeps::RowSites) => {
            Ok(Box::new(OfRows { method: Tvgp::of(model.method)?, look: None }))
        }
        Some(_) => {
            let method = Uncollapsed::of(model.method)?;
            Ok(Box::new(OfPoints { method, step: Step::default(), probe: Step::default() }))
        }
        None => Err(Error::Invalid(format!("method `{}` has no q to step", model.method.name()))),
    }
}

/// q of inducing variables.
struct OfPoints {
    method: Uncollapsed,
    step: Step,
    /// The last pass that was not a look.
    probe: Step,
}

impl QSteps for OfPoints {
    fn bound(&self) -> &'static dyn Bound {
        self.method.bound
    }

    fn value(&mut self, model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<f64> {
        self.method.renew(&mut self.probe, model, engine, data, Want::Value)?;
        self.step.diagnostics = self.probe.diagnostics;
        Ok(self.probe.value)
    }

    fn look(&mut self, model: &Model, engine: &dyn Engine, data: &dyn Source) -> Result<f64> {
        self.method.renew(&mut self.step, model, engine, data, Want::Statistics)?;
        Ok(self.step.value)
    }

    fn centre(&mut self, model: &mut Model) -> Result<f64> {
        self.step.centre(model);
        Ok(self.step.value)
    }

    fn mean_slopes(&self) -> Vec<f64> {
        self.step.mean_slopes()
    }

    fn promise(&self, _: &Model, _: &dyn Source) -> Result<f64> {
        Ok(self.step.promise())
    }

    fn step(
        &mut self,
        model: &mut Model,
        engine: &dyn Engine,
        data: &dyn Source,
        rate: f64,
    ) -> Result<()> {
        let bound = self.method.bound;
        (0..bound.turns(&*model.likelihood)).try_for_each(|turn| {
            if turn > 0 {
                self.method.renew(&mut self.step, model, engine, data, Want::Statistics)?;
            }
            self.step.natural_turn(model, bound, turn, &|_| rate)
        })
    }

    fn closed_form(
        &mut self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Vec<Option<f64>>> {
        self.value(model, engine, data)?;
        Ok(std::mem::take(&mut self.probe.updated))
    }

    fn diagnostics(&self) -> Diagnostics {
        self.step.diagnostics
    }
}

fn unseen() -> Error {
    Error::Invalid("a step needs a look at the rows".into())
}

/// Sites of all rows.
struct OfRows {
    method: Tvgp,
    look: Option<Look>,
}

impl OfRows {
    fn looked(&self) -> Result<&Look> {
        self.look.as_ref().ok_or_else(unseen)
    }
}

impl QSteps for OfRows {
    fn bound(&self) -> &'static dyn Bound {
        self.method.bound
    }

    fn value(&mut self, model: &Model, _: &dyn Engine, data: &dyn Source) -> Result<f64> {
        self.method.value(model, data)
    }

    fn look(&mut self, model: &Model, _: &dyn Engine, data: &dyn Source) -> Result<f64> {
        Ok(self.look.insert(self.method.look(model, data)?).value)
    }

    fn centre(&mut self, model: &mut Model) -> Result<f64> {
        let look = self.look.as_mut().ok_or_else(unseen)?;
        self.method.centre(look, model);
        Ok(look.value)
    }

    fn mean_slopes(&self) -> Vec<f64> {
        self.look.as_ref().map(Look::mean_slopes).unwrap_or_default()
    }

    fn promise(&self, model: &Model, data: &dyn Source) -> Result<f64> {
        self.method.promise(self.looked()?, model, &super::collect(data)?.x)
    }

    fn step(
        &mut self,
        model: &mut Model,
        _: &dyn Engine,
        data: &dyn Source,
        rate: f64,
    ) -> Result<()> {
        self.method.move_from(self.looked()?, model, data, rate)
    }

    fn closed_form(
        &mut self,
        model: &Model,
        _: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Vec<Option<f64>>> {
        self.method.closed_form(model, data)
    }

    /// Returns empty diagnostics: B needs no jitter, and there are no inducing points.
    fn diagnostics(&self) -> Diagnostics {
        Diagnostics::default()
    }
}
