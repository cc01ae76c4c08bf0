//! A start of a map from one with a dimension less.
//!
//! A map of Q dimensions is one of Q + 1 whose last one is switched off, with the same bound: the best of more dimensions is
//! no worse. A training from principal components need not find it, as all dimensions are in use from its beginning.

use super::fit::{GplvmOptions, started, train};
use super::model::Gplvm;
use super::start::principal;
use super::targets::Targets;
use crate::error::Result;
use crate::kernels::{Inputs, Kernel, parse};
use crate::linalg::{Mat, MatRef};
use crate::optim::{Lbfgs, Step};
use crate::params::{Param, Role, Transform};
use crate::terms::Term;

/// Standard deviation with which places begin to differ in a dimension that was not there.
const NEW: f64 = 0.1;
/// Starts from principal components for every number of dimensions.
const STARTS: usize = 2;
/// Lengthscales of that dimension, by the largest of the others: along it functions vary by less than the noise of most columns,
/// and the bound is nearly that of the map without it.
const LONG: f64 = 300.0;

/// Trains maps of 1, 2, … dimensions, each from the one before and from principal components, and of as many as are asked
/// for from only the one before; none where the kernel cannot be carried over. `watch` ends it by
/// false.
pub(super) fn grown(
    targets: &Targets,
    options: &GplvmOptions,
    term: &'static dyn Term,
    watch: &mut dyn FnMut(&Gplvm, usize, &Step) -> bool,
) -> Result<Option<(Gplvm, f64, Lbfgs)>> {
    let how = (&options.lbfgs, options.iterations);
    let mut continues = true;
    let mut best: Option<(Gplvm, f64, Lbfgs)> = None;
    for dimensions in 1..=options.dimensions {
        let own = GplvmOptions { dimensions, ..options.clone() };
        let mut starts = Vec::new();
        if dimensions < options.dimensions {
            for restart in 0..options.restarts.min(STARTS) {
                starts.push(started(targets, &own, term, restart)?);
            }
        }
        if let Some((model, ..)) = best.take() {
            match padded(&model, targets, &own)? {
                Some(model) => starts.push(model),
                None => return Ok(None),
            }
        }
        for model in starts {
            if !continues {
                return Ok(None);
            }
            let mut watched = |model: &Gplvm, iteration: usize, step: &Step| {
                continues = watch(model, iteration, step);
                continues
            };
            match train(model, targets, how, &mut watched) {
                Ok(found) if best.as_ref().is_none_or(|(_, least, _)| found.1 > *least) => {
                    best = Some(found);
                }
                Ok(_) => {}
                Err(error) if error.is_recoverable() => {}
                Err(error) => return Err(error),
            }
        }
        if best.is_none() {
            return Ok(None);
        }
    }
    Ok(best)
}

/// Returns a map with one more dimension, which is nearly switched off.
fn padded(model: &Gplvm, targets: &Targets, options: &GplvmOptions) -> Result<Option<Gplvm>> {
    let q = options.dimensions;
    let mut kernel = parse(&options.kernel, Inputs::unnamed(q))?;
    kernel.initialise(&vec![1.0; q], 1.0);
    if !carried(&*model.kernel, &mut *kernel) {
        return Ok(None);
    }
    let next = principal(targets.y.as_ref(), q, options.seed)?.mean;
    let wider = |a: &Param, last: &dyn Fn(usize) -> f64, transform| {
        let value = a.value();
        let n = value.len() / (q - 1);
        // column by column
        let own = Mat::from_fn(n, q, |i, j| if j + 1 < q { value[j * n + i] } else { last(i) });
        Param::of_matrix(MatRef::from(own.as_ref()), transform)
    };
    let points = model.points.len() / (q - 1);
    let spread = |i: usize| NEW * (2.0 * (i as f64 + 0.5) / points as f64 - 1.0);
    Ok(Some(Gplvm {
        kernel,
        noise: model.noise.clone(),
        points: wider(&model.points, &spread, Transform::Identity),
        mean: wider(&model.mean, &|i| NEW * next[(i, q - 1)], Transform::Identity),
        variance: wider(&model.variance, &|_| 1.0, Transform::Exp { lower: 0.0 }),
        term: model.term,
        jitter: model.jitter,
        block: None,
    }))
}

/// Gives a kernel of one more input the numbers of another. False where they do not fit.
fn carried(from: &dyn Kernel, to: &mut dyn Kernel) -> bool {
    let old: Vec<(Vec<f64>, Role)> =
        from.params().iter().map(|(_, own)| (own.value().to_vec(), own.role())).collect();
    let mut params = to.params_mut();
    if params.len() != old.len() {
        return false;
    }
    params.iter_mut().zip(old).all(|((path, param), (mut value, role))| {
        if param.len() == value.len() + 1 {
            let largest = value.iter().copied().fold(0.0, f64::max);
            let least = value.iter().copied().fold(f64::INFINITY, f64::min);
            value.push(match role {
                Role::Lengthscales => LONG * largest.max(1.0),
                _ => 1e-3 * least.min(1.0),
            });
        }
        param.set(&path.to_string(), &value).is_ok()
    })
}
