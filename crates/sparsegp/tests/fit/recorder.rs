//! A method that writes down what it is asked, and fails where it should.

use sparsegp::data::Source;
use sparsegp::engine::Engine;
use sparsegp::methods::{Evaluation, Method};
use sparsegp::model::{Model, Posterior};
use sparsegp::{Error, Result};
use std::sync::Mutex;

/// What happens at an evaluation, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accident {
    /// Nothing.
    None,
    /// The matrix is not positive definite, once.
    Recoverable(usize),
    /// The data cannot be read, from then on.
    Fatal(usize),
}

/// Wraps a method.
#[derive(Debug)]
pub struct Recorder {
    inner: &'static dyn Method,
    accident: Accident,
    /// Parameters (to the bit) and objective of every evaluation that succeeded.
    pub log: Mutex<Vec<(Vec<u64>, f64)>>,
    calls: Mutex<usize>,
}

impl Recorder {
    /// Puts a recorder in place of the model's method.
    pub fn install(model: &mut Model, accident: Accident) -> &'static Recorder {
        let (log, calls) = (Mutex::default(), Mutex::default());
        let recorder = Box::leak(Box::new(Recorder { inner: model.method, accident, log, calls }));
        model.method = recorder;
        recorder
    }

    /// The best evaluation.
    pub fn best(&self) -> (Vec<u64>, f64) {
        let log = self.log.lock().expect("no panic before");
        log.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("an evaluation").clone()
    }
}

impl Method for Recorder {
    fn check(&self, _: &Model) -> Result<()> {
        Ok(())
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
    fn is_sparse(&self) -> bool {
        self.inner.is_sparse()
    }
    fn evaluate(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Evaluation> {
        let mut calls = self.calls.lock().expect("no panic before");
        let index = *calls;
        *calls += 1;
        match self.accident {
            Accident::Recoverable(at) if at == index => {
                return Err(Error::NonFinite { what: "the test".into(), value: f64::NAN });
            }
            Accident::Fatal(at) if index >= at => return Err(Error::Invalid("the disk".into())),
            _ => {}
        }
        let evaluation = self.inner.evaluate(model, engine, data)?;
        let entry = (crate::support::bits(model), evaluation.value);
        self.log.lock().expect("no panic before").push(entry);
        Ok(evaluation)
    }
    fn posterior(
        &self,
        model: &Model,
        engine: &dyn Engine,
        data: &dyn Source,
    ) -> Result<Posterior> {
        self.inner.posterior(model, engine, data)
    }
}
