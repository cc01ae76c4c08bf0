//! Trainings that a person watches and may interrupt.
//!
//! The work is done on a separate thread, which never needs the interpreter. The calling thread
//! waits for what happens there, looks for signals (so that Ctrl-C acts at once, whatever is being
//! computed), and calls back into Python.

use crate::errors::{bug, exception, panicked};
use crate::pool::pool;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::{Value, json};
use sparsegp::Error;
use sparsegp::data::Shards;
use sparsegp::engine::Cpu;
use sparsegp::train::{Event, Observer};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Returns what a callback's answer means for work that runs in the interpreter's thread: whether
/// it continues. An exception ends it, and is kept for the caller.
pub fn continues(answer: PyResult<bool>, stopped: &mut Option<PyErr>) -> ControlFlow<()> {
    match answer {
        Ok(false) => ControlFlow::Continue(()),
        Ok(true) => ControlFlow::Break(()),
        Err(error) => {
            *stopped = Some(error);
            ControlFlow::Break(())
        }
    }
}

/// How long a signal may wait.
const PATIENCE: Duration = Duration::from_millis(50);

/// What rows in other processes are asked for.
pub enum Question {
    /// The sum of all shards' answers to a request.
    Round(Vec<u8>),
    /// Rows at places in shards.
    Take(Vec<(usize, Vec<usize>)>),
}

/// Answers questions in the interpreter's thread.
pub type Answering<'a> = &'a dyn Fn(Question) -> PyResult<Vec<f64>>;

enum Message<T> {
    /// A question, and where to answer it.
    Question(Question, Sender<sparsegp::Result<Vec<f64>>>),
    /// What happened, whether there is an iteration to end with already, and where to say when the callback
    /// is through with it.
    Event(Value, bool, Sender<()>),
    Done(std::thread::Result<sparsegp::Result<T>>),
}

/// Asks the calling thread.
pub struct Asking<T>(Sender<Message<T>>);

impl<T> Asking<T> {
    fn ask(&self, question: Question) -> sparsegp::Result<Vec<f64>> {
        let gone = || Error::Invalid("nobody answers".into());
        let (answer, answered) = channel();
        self.0.send(Message::Question(question, answer)).map_err(|_| gone())?;
        waited(&answered).map_err(|_| gone())?
    }
}

impl<T: Send> Shards for Asking<T> {
    fn round(&self, request: Vec<u8>) -> sparsegp::Result<Vec<f64>> {
        self.ask(Question::Round(request))
    }

    fn take(&self, wanted: &[(usize, Vec<usize>)]) -> sparsegp::Result<Vec<f64>> {
        self.ask(Question::Take(wanted.to_vec()))
    }
}

/// Returns what the calling thread sends. It may itself ask for work on this pool, which may have
/// only this thread: it is done meanwhile.
fn waited<A>(answered: &Receiver<A>) -> Result<A, TryRecvError> {
    loop {
        match answered.try_recv() {
            Err(TryRecvError::Empty) => {
                if rayon::yield_now() != Some(rayon::Yield::Executed) {
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
            outcome => return outcome,
        }
    }
}

/// Sends what happens to the calling thread.
struct Sending<'a, T> {
    sender: Sender<Message<T>>,
    stop: &'a AtomicBool,
    /// When the last minibatch was reported.
    last: Option<Instant>,
    wanted: bool,
}

impl<T> Sending<'_, T> {
    /// Waits until the callback has seen it, so that what the callback wants is done at once.
    fn tell(&self, value: Value, under_way: bool) {
        let (answer, answered) = channel();
        if self.sender.send(Message::Event(value, under_way, answer)).is_err() {
            return;
        }
        // the callback lets go of it without an answer
        let _ = waited(&answered);
    }
}

impl<T> Observer for Sending<'_, T> {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        let under_way =
            matches!(event, Event::Iteration(_) | Event::Batch { .. } | Event::Sampling { .. });
        let value = match event {
            Event::Kernels { rows } => Some(json!({ "event": "kernels", "rows": rows })),
            Event::Pilot { rows } => Some(json!({ "event": "pilot", "rows": rows })),
            Event::Training | Event::Targets { .. } | Event::Ahead { .. } => None,
            Event::Inducing { count } => Some(json!({ "event": "inducing", "count": count })),
            Event::Neighbours { rows } => Some(json!({ "event": "neighbours", "rows": rows })),
            Event::Restart { restart, of, best } => Some(json!({
                "event": "restart", "restart": restart, "restarts": of, "best": best,
            })),
            Event::Sampling { done, total, seconds } => Some(json!({
                "event": "sampling", "sweep": done, "sweeps": total, "seconds": seconds,
            })),
            Event::CheckpointFailed { reason } => {
                Some(json!({ "event": "checkpoint_failed", "reason": reason }))
            }
            Event::Iteration(point) => Some(json!({
                "event": "iteration",
                "iteration": point.iteration,
                "objective": point.objective,
                "seconds": point.seconds,
                "held_out": point.held_out,
            })),
            Event::Batch { epoch, batch, per_epoch, epochs, objective, seconds } => {
                // there may be thousands a second
                let due = self.last.is_none_or(|last| last.elapsed() > PATIENCE);
                due.then(|| {
                    self.last = Some(Instant::now());
                    json!({
                        "event": "batch",
                        "epoch": epoch,
                        "batch": batch,
                        "batches": per_epoch,
                        "epochs": epochs,
                        "objective": objective,
                        "seconds": seconds,
                    })
                })
            }
        };
        if let Some(value) = value.filter(|_| self.wanted && !self.interrupted()) {
            self.tell(value, under_way);
        }
        if self.interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// What a watched work came to: its result, if it has any, and the exception that ended it, if any.
pub struct Outcome<T> {
    /// The result: after an interruption the best there was.
    pub result: Option<T>,
    /// What a signal or the callback raised, or the work's own error.
    pub exception: Option<PyErr>,
}

/// Does some work on a separate thread. Its engine and its observer end it when a signal arrives,
/// or when `callback`, which gets every event as JSON, raises an exception or returns a true value.
pub fn watched<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Cpu, &mut dyn Observer) -> sparsegp::Result<T> + Send,
) -> PyResult<Outcome<T>> {
    let nobody = |_| Err(bug("a question without anybody to answer it"));
    answered(py, callback, &nobody, |engine, observer, _| work(engine, observer))
}

/// Returns what an exception is to the work whose question raised it.
fn as_refusal(py: Python<'_>, error: &PyErr) -> Error {
    match error.is_instance_of::<PyKeyboardInterrupt>(py) {
        true => Error::Interrupted,
        false => Error::Invalid(error.to_string()),
    }
}

/// Does the same for work with questions, which `answering` answers in the calling thread. An
/// exception that it raises ends the work (Ctrl-C as any other interruption does).
pub fn answered<T: Send>(
    py: Python<'_>,
    callback: Option<&Bound<'_, PyAny>>,
    answering: Answering<'_>,
    work: impl FnOnce(&Cpu, &mut dyn Observer, Asking<T>) -> sparsegp::Result<T> + Send,
) -> PyResult<Outcome<T>> {
    let pool = pool()?;
    let stop = AtomicBool::new(false);
    let now = Arc::new(AtomicBool::new(false));
    let engine = Cpu::stopped_by(now.clone());
    let (sender, mut receiver) = channel();
    let mut raised = None;
    let outcome = std::thread::scope(|scope| {
        let observer =
            Sending { sender: sender.clone(), stop: &stop, last: None, wanted: callback.is_some() };
        let worker = move || {
            let mut observer = observer;
            let asking = Asking(sender.clone());
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.install(|| work(&engine, &mut observer, asking))
            }));
            // the receiver is there as long as this thread
            let _ = sender.send(Message::Done(result));
        };
        let handle = scope.spawn(worker);
        loop {
            let (back, message) = py.detach(move || wait(receiver));
            receiver = back;
            let signals = py.check_signals();
            let mut answer = None;
            let called = match message {
                Ok(Message::Done(result)) => {
                    if let (Err(error), true) = (signals, raised.is_none()) {
                        raised = Some(error);
                    }
                    return Some(result);
                }
                Ok(Message::Event(event, under_way, sender)) => {
                    answer = Some(sender);
                    call(callback, &event).map(|asked| asked && under_way)
                }
                Ok(Message::Question(question, sender)) => {
                    let reply = answering(question).map_err(|error| {
                        let own = as_refusal(py, &error);
                        raised.get_or_insert(error);
                        stop.store(true, Ordering::SeqCst);
                        own
                    });
                    // who asked is there, unless the work has ended
                    let _ = sender.send(reply);
                    Ok(false)
                }
                Err(RecvTimeoutError::Timeout) => Ok(false),
                Err(RecvTimeoutError::Disconnected) => {
                    // it panicked; joined here, that does not go further
                    let _ = handle.join();
                    return None;
                }
            };
            let asked = matches!(called, Ok(true));
            if let Err(error) = signals.and(called) {
                raised.get_or_insert(error);
                now.store(true, Ordering::Relaxed);
            }
            if raised.is_some() || asked {
                stop.store(true, Ordering::SeqCst);
            }
            drop(answer);
        }
    });
    match outcome {
        None => Err(bug("a training ended without a result")),
        Some(Err(payload)) => Err(panicked(&*payload)),
        Some(Ok(Ok(result))) => Ok(Outcome { result: Some(result), exception: raised }),
        Some(Ok(Err(error))) => Ok(Outcome {
            result: None,
            exception: Some(raised.unwrap_or_else(|| exception(error))),
        }),
    }
}

type Received<T> = Result<Message<T>, RecvTimeoutError>;

fn wait<T>(receiver: Receiver<Message<T>>) -> (Receiver<Message<T>>, Received<T>) {
    let message = receiver.recv_timeout(PATIENCE);
    (receiver, message)
}

/// Returns whether the callback wants an end.
fn call(callback: Option<&Bound<'_, PyAny>>, event: &Value) -> PyResult<bool> {
    match callback {
        Some(callback) => callback.call1((event.to_string(),))?.is_truthy(),
        None => Ok(false),
    }
}
