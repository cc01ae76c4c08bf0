//! Threads to work on.

use crate::errors::bug;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

struct Held {
    /// The process whose threads these are: a fork takes the memory with it, and not the threads.
    process: u32,
    threads: usize,
    pool: Arc<ThreadPool>,
}

/// Bytes of the stack of a thread: factorisations and solves call themselves. Only what is used takes memory.
const STACK: usize = 16 << 20;

static POOL: Mutex<Option<Held>> = Mutex::new(None);

/// Returns what is asked for by the environment; joblib and others tell their workers by
/// `OMP_NUM_THREADS` how many threads each may have.
fn by_environment() -> usize {
    let number = |name| std::env::var(name).ok()?.trim().parse().ok().filter(|n| *n > 0);
    let names = ["SPARSEGP_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS"];
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    names.into_iter().find_map(number).unwrap_or(all)
}

fn renewed(threads: usize) -> PyResult<Held> {
    let name = |i| format!("sparsegp-{i}");
    let pool =
        ThreadPoolBuilder::new().num_threads(threads).thread_name(name).stack_size(STACK).build();
    let pool =
        pool.map_err(|e| PyValueError::new_err(format!("cannot start {threads} threads: {e}")))?;
    Ok(Held { process: std::process::id(), threads, pool: Arc::new(pool) })
}

/// Returns the pool of this process.
pub fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut held = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = held.as_ref().map_or_else(by_environment, |h| h.threads);
    if held.as_ref().is_none_or(|h| h.process != std::process::id()) {
        let new = renewed(threads)?;
        // threads of the process before the fork cannot be waited for
        std::mem::forget(held.replace(new));
    }
    held.as_ref().map(|h| h.pool.clone()).ok_or_else(|| bug("no threads"))
}

/// Does some work without the interpreter's lock, on the threads of the pool.
pub fn unlocked<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> sparsegp::Result<T> + Send,
) -> PyResult<T> {
    let pool = pool()?;
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| pool.install(work))));
    match outcome {
        Ok(result) => result.map_err(crate::errors::exception),
        Err(payload) => Err(crate::errors::panicked(&*payload)),
    }
}

/// Fails inside, on purpose: for the test that such a failure is an exception like any other.
#[pyfunction]
pub fn fail_inside(py: Python<'_>) -> PyResult<()> {
    unlocked(py, || panic!("on purpose"))
}

/// Sets the number of threads for everything that follows.
#[pyfunction]
pub fn set_num_threads(threads: usize) -> PyResult<()> {
    if threads == 0 {
        return Err(PyValueError::new_err("the number of threads is at least 1"));
    }
    let new = renewed(threads)?;
    let old = POOL.lock().unwrap_or_else(PoisonError::into_inner).replace(new);
    if let Some(old) = old.filter(|old| old.process != std::process::id()) {
        std::mem::forget(old);
    }
    Ok(())
}

/// Returns the number of threads.
#[pyfunction]
pub fn num_threads() -> usize {
    let held = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    held.as_ref().map_or_else(by_environment, |h| h.threads)
}
