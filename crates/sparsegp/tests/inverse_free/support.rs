//! Models with a q of pseudo-observations.

use crate::problem::Problem;
use rand::RngExt;
use sparsegp::inverse_free::{Preconditioner, SolverOptions};
use sparsegp::linalg::{Cholesky, Jitter, Mat, column};
use sparsegp::methods::{Uncollapsed, find};
use sparsegp::model::Model;
use sparsegp::variational::Variational;

/// K̃ = Kuu + Λ, with an absolute jitter.
pub fn tilde(model: &Model) -> Mat<f64> {
    let mut k = prior(model);
    let q = model.q.as_ref().expect("pseudo-observations");
    q.second.value().iter().enumerate().for_each(|(i, v)| k[(i, i)] += v);
    k
}

/// Kuu, with an absolute jitter.
pub fn prior(model: &Model) -> Mat<f64> {
    let z = model.inducing_points().expect("points");
    let mut k = Mat::zeros(z.nrows(), z.nrows());
    let tape = &mut sparsegp::kernels::Tape::off();
    model.kernel().evaluate(z.as_ref(), None, k.as_mut(), tape);
    if let Jitter::Absolute(jitter) = model.jitter {
        (0..z.nrows()).for_each(|i| k[(i, i)] += jitter);
    }
    k
}

/// The problem's model as L-SVGP or, `far` from the optimal T, R-SVGP, at random m̃ and λ.
pub fn pseudo(
    problem: &mut Problem,
    latents: usize,
    preconditioner: Preconditioner,
    far: Option<f64>,
) -> Model {
    let m = problem.model.inducing_points().expect("points").nrows();
    let rng = &mut problem.rng;
    let mut model = problem.model.clone();
    model.method = find(if far.is_some() { "rsvgp" } else { "lsvgp" }).expect("registered").method;
    model.jitter = Jitter::Absolute(1e-3);
    model.q = Some(Variational::pseudo_observations(m, latents, preconditioner, far.is_some()));
    let lambda: Vec<f64> = (0..m).map(|_| rng.random_range(0.1..0.9)).collect();
    let mean: Vec<f64> = (0..m * latents).map(|_| rng.random_range(-1.2..1.2)).collect();
    model.set("q.lambda", &lambda).expect("positive");
    model.set("q.mu", &mean).expect("of this size");
    if let Some(far) = far {
        let mut l = exact_root(&model);
        for j in 0..m {
            l[(j, j)] *= 1.0 + far * rng.random_range(-0.5..0.5);
            for i in j + 1..m {
                l[(i, j)] += far * rng.random_range(-0.3..0.3) * l[(i, i)];
            }
        }
        let q = model.q.as_mut().expect("set above");
        q.set_t_root(l.as_ref());
        q.root.as_mut().expect("relaxed").frozen = false;
    }
    model
}

/// L with LLᵀ = K̃⁻¹, by a factorisation.
pub fn exact_root(model: &Model) -> Mat<f64> {
    Cholesky::inverse_root(tilde(model).as_ref(), Jitter::Absolute(0.0), "K̃").expect("definite")
}

/// The same model as L-SVGP.
pub fn as_l(model: &Model) -> Model {
    let q = model.q.as_ref().expect("pseudo-observations");
    let form = q.pseudo().expect("pseudo-observations");
    let mut own = Variational::pseudo_observations(q.points(), q.latents(), form, false);
    own.first = q.first.clone();
    own.second = q.second.clone();
    Model { q: Some(own), method: find("lsvgp").expect("registered").method, ..model.clone() }
}

/// Brings T to its optimum.
pub fn settled(model: &Model) -> Model {
    let mut own = model.clone();
    let method = Uncollapsed::of(own.method).expect("it trains q");
    method.settle(&mut own, &SolverOptions::strict()).expect("definite").expect("relaxed");
    own
}

/// A matrix column by column.
pub fn flat(a: &Mat<f64>) -> Vec<f64> {
    (0..a.ncols()).flat_map(|j| column(a.as_ref(), j).to_vec()).collect()
}
