//! The extension module `sparsegp._core`: the Rust library as the Python package sees it.
//!
//! It holds no numerics. Arrays come in and go out as NumPy arrays of 64-bit floats, everything
//! structured as JSON; names, defaults and documentation for users are in `python/sparsegp`. Work is done
//! without the interpreter's lock, on its own threads ([`pool`]), and can be interrupted
//! ([`watch`]).

mod arrays;
mod bayesopt;
mod columns;
mod custom;
mod density;
mod errors;
mod explain;
mod export;
mod fit;
mod fit_table;
mod fitted;
mod flow;
mod gplvm;
mod kernel;
mod likelihood;
mod means;
mod model;
mod places;
mod pool;
mod registry;
mod room;
mod sampling;
mod series;
mod shards;
mod training;
mod watch;

use pyo3::prelude::*;

/// Contains the Rust core of sparsegp.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    custom::register()?;
    density::register()?;
    means::register()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("NumericalError", module.py().get_type::<errors::NumericalError>())?;
    module.add_class::<fitted::Fitted>()?;
    module.add_class::<fitted::Functions>()?;
    module.add_class::<gplvm::Gplvm>()?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<likelihood::Likelihood>()?;
    module.add_class::<model::Model>()?;
    module.add_class::<series::CutOffs>()?;
    module.add_class::<shards::Shard>()?;
    module.add_class::<bayesopt::Search>()?;
    module.add_function(wrap_pyfunction!(custom::check_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(explain::explain, module)?)?;
    module.add_function(wrap_pyfunction!(export::export, module)?)?;
    module.add_function(wrap_pyfunction!(density::check_likelihood, module)?)?;
    module.add_function(wrap_pyfunction!(means::check_mean, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fit_table::fit_table, module)?)?;
    module.add_function(wrap_pyfunction!(fit::encode, module)?)?;
    module.add_function(wrap_pyfunction!(places::place_points, module)?)?;
    module.add_function(wrap_pyfunction!(fit::future, module)?)?;
    module.add_function(wrap_pyfunction!(fit::go_on, module)?)?;
    module.add_function(wrap_pyfunction!(fit::update, module)?)?;
    module.add_function(wrap_pyfunction!(fitted::load, module)?)?;
    module.add_function(wrap_pyfunction!(fitted::from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(flow::flow, module)?)?;
    module.add_function(wrap_pyfunction!(bayesopt::parse_constraint, module)?)?;
    module.add_function(wrap_pyfunction!(bayesopt::log_expected_improvement, module)?)?;
    module.add_function(wrap_pyfunction!(bayesopt::log_probability_below, module)?)?;
    module.add_function(wrap_pyfunction!(series::normal_crps, module)?)?;
    module.add_function(wrap_pyfunction!(sampling::sample, module)?)?;
    module.add_function(wrap_pyfunction!(gplvm::fit_gplvm, module)?)?;
    module.add_function(wrap_pyfunction!(gplvm::gplvm_bound, module)?)?;
    module.add_function(wrap_pyfunction!(gplvm::load_gplvm, module)?)?;
    module.add_function(wrap_pyfunction!(gplvm::gplvm_from_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(shards::_shard, module)?)?;
    module.add_function(wrap_pyfunction!(shards::total, module)?)?;
    module.add_function(wrap_pyfunction!(shards::gathered, module)?)?;
    module.add_function(wrap_pyfunction!(shards::with_bodies, module)?)?;
    module.add_function(wrap_pyfunction!(shards::preparation, module)?)?;
    module.add_function(wrap_pyfunction!(shards::encoded, module)?)?;
    module.add_function(wrap_pyfunction!(shards::fit_elsewhere, module)?)?;
    module.add_function(wrap_pyfunction!(registry::registry, module)?)?;
    module.add_function(wrap_pyfunction!(training::without_effect, module)?)?;
    module.add_function(wrap_pyfunction!(registry::parse_kernel, module)?)?;
    module.add_function(wrap_pyfunction!(registry::parse_likelihood, module)?)?;
    module.add_function(wrap_pyfunction!(pool::set_num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(pool::num_threads, module)?)?;
    module.add_function(wrap_pyfunction!(pool::fail_inside, module)?)?;
    Ok(())
}
