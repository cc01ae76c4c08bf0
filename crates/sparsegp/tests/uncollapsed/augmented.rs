//! Every likelihood with local variables: coordinate ascent never lowers its bound, with and without inducing points,
//! its steps are the best ones at the local variables as they are, and bounds stand in their order.

use crate::problem::{Draw, problem};
use crate::support::random_q;
use sparsegp::data::InMemory;
use sparsegp::engine::{CholeskyBasis, Cpu, Want};
use sparsegp::kernels::{Inputs, Tape, parse};
use sparsegp::likelihoods::{self, Slopes, Target};
use sparsegp::linalg::{Jitter, Mat, column};
use sparsegp::means;
use sparsegp::methods::{Keeps, Step, Tvgp, Uncollapsed, find};
use sparsegp::model::{Model, Posterior};
use sparsegp::rng::stream;
use sparsegp::variational::{self, Tying, Variational};

/// Away from unit parameters, with what a row brings.
const LAWS: [(&str, f64); 16] = [
    ("gaussian(variance=0.31)", 0.0),
    ("student-t(df=4.6, scale=0.3)", 1.0),
    ("laplace(scale=0.6)", 1.0),
    ("matern32(scale=0.7)", 1.0),
    ("logistic(scale=0.4)", 1.0),
    ("pseudo-huber(delta=0.9, scale=0.6)", 1.0),
    ("bernoulli(link=logit)", 1.0),
    ("svm", 1.0),
    ("binomial", 7.0),
    ("poisson-logistic(rate=3.1)", 2.3),
    ("negative-binomial(dispersion=0.7)", 2.3),
    ("heteroscedastic(scale=logistic, precision=2.6)", 1.0),
    ("hetero-student-t(scale=logistic, precision=2.6, df=3.4)", 1.0),
    ("logistic-softmax(classes=3, scales=[1.3, 2.1, 0.4])", 1.0),
    ("logistic-softmax(classes=3, scales=[1.3, 2.1, 0.4], constant=0.6)", 1.0),
    ("logistic-softmax(classes=3, scales=[1.3, 2.1, 0.4], augmentation=mean-field)", 1.0),
];

#[test]
fn every_registered_likelihood_with_local_variables_is_here() {
    let known = LAWS.map(|(spec, _)| likelihoods::parse(spec).unwrap().name().to_owned());
    for name in likelihoods::augmented::names() {
        assert!(known.iter().any(|own| own == name), "{name} is missing");
    }
}

/// Draws of y at random inputs, and a model of them.
fn start(spec: &str, extra: f64, method: &str) -> (Model, InMemory) {
    let draw = Draw { n: 24, m: 6, d: 1, p: 1, kernel: "matern52", mean: "zero", seed: 3 };
    let mut problem = problem(&draw);
    let likelihood = likelihoods::parse(spec).unwrap();
    let latents = likelihood.latents();
    let mut rows = problem.data.clone();
    let mut rng = stream(3, spec);
    for i in 0..draw.n {
        let f: Vec<f64> = (0..latents).map(|l| 1.4 * (rows.x[(i, 0)] + l as f64).sin()).collect();
        rows.y[(i, 0)] = likelihood.sample(extra, &f, &mut rng);
    }
    rows.extra = vec![extra; draw.n];
    let constants: Vec<f64> = (0..latents).map(|l| 0.3 - 0.2 * l as f64).collect();
    let mean = serde_json::json!({"type": "constant", "constant": constants});
    let method = find(method).unwrap().method;
    let q = match method.with_q().unwrap().keeps {
        Keeps::RowSites => Variational::sites(draw.n, latents, Tying::Untied),
        Keeps::Sites => Variational::sites(draw.m, latents, Tying::Natural),
        _ => random_q(draw.m, latents, false, true, &mut problem.rng),
    };
    let model = Model {
        likelihood,
        method,
        mean: means::from_json(&mean, 1, latents).unwrap(),
        q: Some(q),
        kernels: vec![parse("rbf(lengthscales=0.8, variance=1.3)", Inputs::unnamed(1)).unwrap()],
        jitter: Jitter::Absolute(1e-8),
        ..problem.model.clone()
    };
    (model, rows)
}

/// Gives the likelihood what it has in closed form.
fn set(model: &mut Model, updated: &[Option<f64>]) {
    let mut rest = updated;
    for (path, param) in model.likelihood.params_mut() {
        let (own, tail) = rest.split_at(param.len());
        rest = tail;
        let new: Vec<f64> =
            param.value().iter().zip(own).map(|(old, new)| new.unwrap_or(*old)).collect();
        param.set(&path, &new).unwrap();
    }
}

fn rises(values: &[f64], what: &str) {
    let rounding = 1e-10 * (1.0 + values[0].abs());
    let falls = values.windows(2).position(|pair| pair[1] < pair[0] - rounding);
    assert_eq!(falls, None, "{what}: {values:?}");
    assert!(values.last().unwrap() > &(values[0] + 0.1), "{what}: {values:?}");
}

/// Slope of the bound in the numbers that have a closed form, relative to their size.
fn slopes_at_the_end(model: &Model, rows: &InMemory, which: &[bool], what: &str) {
    let gradient = model.evaluate(&Cpu::default(), rows).unwrap().gradient;
    let mut at = 0;
    for (path, param) in model.params() {
        for value in param.value() {
            let own = path.strip_prefix("likelihood.").map(|_| {
                let before: usize = model
                    .params()
                    .iter()
                    .take_while(|(p, _)| !p.starts_with("likelihood"))
                    .map(|(_, p)| p.len())
                    .sum();
                at - before
            });
            if let Some(place) = own
                && which[place]
            {
                let slope = gradient[at] * value;
                assert!(slope.abs() < 1e-4, "{what} {path}: {slope}");
            }
            at += 1;
        }
    }
}

#[test]
fn coordinate_ascent_never_lowers_the_bound_with_inducing_points() {
    for (spec, extra) in LAWS {
        for name in ["cavi", "svi"] {
            let (mut model, rows) = start(spec, extra, name);
            let (engine, mut step) = (Cpu::default(), Step::default());
            let method = Uncollapsed::of(model.method).unwrap();
            let (mut values, mut which) = (Vec::new(), Vec::new());
            for round in 0..400 {
                method.renew(&mut step, &model, &engine, &rows, Want::Statistics).unwrap();
                values.push(step.value);
                for turn in 0..method.bound.turns(&*model.likelihood) {
                    if turn > 0 {
                        let want = Want::Statistics;
                        method.renew(&mut step, &model, &engine, &rows, want).unwrap();
                        values.push(step.value);
                    }
                    // whole steps, and shorter ones
                    let rate = if round % 3 == 2 { 0.4 } else { 1.0 };
                    step.natural_turn(&mut model, method.bound, turn, &|_| rate).unwrap();
                }
                method.renew(&mut step, &model, &engine, &rows, Want::Value).unwrap();
                values.push(step.value);
                which = step.updated.iter().map(Option::is_some).collect();
                let updated = std::mem::take(&mut step.updated);
                if !updated.is_empty() {
                    set(&mut model, &updated);
                }
            }
            let what = format!("{spec} {name}");
            rises(&values, &what);
            let closed = method.bound.closed_form(&*model.likelihood).is_some();
            assert_eq!(which.contains(&true), closed, "{what}");
            if closed {
                slopes_at_the_end(&model, &rows, &which, &what);
            }
        }
    }
}

#[test]
fn coordinate_ascent_never_lowers_the_bound_without_inducing_points() {
    for (spec, extra) in LAWS {
        let (mut model, rows) = start(spec, extra, "cavi-full");
        let method = Tvgp::of(model.method).unwrap();
        let (mut values, mut which) = (Vec::new(), Vec::new());
        for _ in 0..150 {
            values.push(method.step(&mut model, &rows, 1.0).unwrap());
            let updated = method.closed_form(&model, &rows).unwrap();
            values.push(method.value(&model, &rows).unwrap());
            which = updated.iter().map(Option::is_some).collect();
            if !updated.is_empty() {
                set(&mut model, &updated);
            }
        }
        rises(&values, spec);
        if which.contains(&true) {
            slopes_at_the_end(&model, &rows, &which, spec);
        }
    }
}

/// Σ aμ − ½λ(μ² + v) − KL at a q.
fn quadratic(model: &Model, rows: &InMemory, sites: &[(Mat<f64>, Mat<f64>)]) -> f64 {
    let q = model.q.as_ref().unwrap();
    let (mean, variance) = Posterior::of_q(model).unwrap().predict_f(rows.x.as_ref()).unwrap();
    let mut value = 0.0;
    for (l, (potential, precision)) in sites.iter().enumerate() {
        for i in 0..rows.x.nrows() {
            let (m, v) = (mean[(i, l)], variance[(i, l)]);
            value += potential[(i, 0)] * m - 0.5 * precision[(i, 0)] * (m * m + v);
        }
        let z = model.inducing_set(l).unwrap();
        let mut kuu = Mat::zeros(z.nrows(), z.nrows());
        model.kernels[0].evaluate(z.as_ref(), None, kuu.as_mut(), &mut Tape::off());
        let factor = CholeskyBasis::new(kuu.as_ref(), model.jitter).unwrap().into_factor();
        let parts = q.whitened(l..l + 1, &factor).unwrap();
        value -= variational::kl(column(parts.mean.as_ref(), 0), parts.roots[0].as_ref());
    }
    value
}

#[test]
fn a_whole_step_is_the_best_one_at_its_local_variables() {
    for (spec, extra) in LAWS {
        let (mut model, rows) = start(spec, extra, "svi");
        let (engine, mut step) = (Cpu::default(), Step::default());
        let method = Uncollapsed::of(model.method).unwrap();
        let latents = model.likelihood.latents();
        // the sites of the optimal local variables
        let (mean, variance) = Posterior::of_q(&model).unwrap().predict_f(rows.x.as_ref()).unwrap();
        let n = rows.x.nrows();
        let mut sites = vec![(Mat::zeros(n, 1), Mat::zeros(n, 1)); latents];
        for i in 0..n {
            let own = |a: &Mat<f64>| -> Vec<f64> { (0..latents).map(|l| a[(i, l)]).collect() };
            let (mut a, mut b) = (vec![0.0; latents], vec![0.0; latents]);
            let mut params = vec![0.0; model.likelihood.num_params()];
            let slopes = Slopes { mean: &mut a, variance: &mut b, params: &mut params };
            let target = Target { y: rows.y[(i, 0)], extra };
            let augmented = model.likelihood.augmented().unwrap();
            augmented.expect(target, &own(&mean), &own(&variance), slopes);
            for l in 0..latents {
                let precision = -2.0 * b[l];
                assert!(precision >= 0.0, "{spec}");
                sites[l].0[(i, 0)] = a[l] + precision * mean[(i, l)];
                sites[l].1[(i, 0)] = precision;
            }
        }
        method.renew(&mut step, &model, &engine, &rows, Want::Statistics).unwrap();
        step.natural(&mut model, 1.0).unwrap();
        let best = quadratic(&model, &rows, &sites);
        for path in ["q.mu", "q.sqrt"] {
            let params = model.params();
            let values = params.iter().find(|(p, _)| p == path).unwrap().1.value().to_vec();
            for at in 0..values.len() {
                let at_distance = |d: f64| {
                    let mut other = model.clone();
                    let mut moved = values.clone();
                    moved[at] += d;
                    other.for_group(path, |param| param.set(path, &moved).unwrap()).unwrap();
                    quadratic(&other, &rows, &sites)
                };
                let (up, down) = (at_distance(1e-3), at_distance(-1e-3));
                let what = format!("{spec} {path}[{at}]: {up} {down} around {best}");
                assert!(up < best && down < best, "{what}");
                // flat: the two sides differ by the third order
                assert!((up - down).abs() < 0.1 * (2.0 * best - up - down), "{what}");
            }
        }
    }
}

/// log p(y) of one or two rows by a grid over whitened latent values of one function.
fn evidence(model: &Model, rows: &InMemory) -> f64 {
    let n = rows.x.nrows();
    let mut k = Mat::zeros(n, n);
    model.kernels[0].evaluate(rows.x.as_ref(), None, k.as_mut(), &mut Tape::off());
    (0..n).for_each(|i| k[(i, i)] += 1e-8);
    let factor = CholeskyBasis::new(k.as_ref(), Jitter::Absolute(0.0)).unwrap().into_factor();
    let mut mu = Mat::zeros(n, 1);
    model.mean.evaluate(rows.x.as_ref(), mu.as_mut());
    let (half, h) = (300, 0.03);
    let target = |i: usize| Target { y: rows.y[(i, 0)], extra: rows.extra[i] };
    let log = |i: usize, f: f64| model.likelihood.log_prob(target(i), &[f]);
    let mut sum = 0.0;
    let density = |x: f64| h * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    for a in -half..=half {
        let x = h * f64::from(a);
        let first = density(x) * log(0, mu[(0, 0)] + factor.l[(0, 0)] * x).exp();
        if n == 1 {
            sum += first;
            continue;
        }
        for b in -half..=half {
            let z = h * f64::from(b);
            let f = mu[(1, 0)] + factor.l[(1, 0)] * x + factor.l[(1, 1)] * z;
            sum += first * density(z) * log(1, f).exp();
        }
    }
    sum.ln()
}

#[test]
fn bounds_stand_in_their_order() {
    for (spec, extra) in LAWS {
        for n in [1, 2] {
            let (mut model, rows) = start(spec, extra, "cavi-full");
            let rows = rows.picked(&[0, 5][..n]);
            let latents = model.likelihood.latents();
            if n == 2 && latents > 1 {
                continue;
            }
            model.q = Some(Variational::sites(n, latents, Tying::Untied));
            let full = Tvgp::of(model.method).unwrap();
            for _ in 0..300 {
                full.step(&mut model, &rows, 1.0).unwrap();
            }
            let augmented = full.value(&model, &rows).unwrap();
            model.method = find("tvgp").unwrap().method;
            let plain = Tvgp::of(model.method).unwrap().value(&model, &rows).unwrap();
            let evidence = if latents == 1 {
                evidence(&model, &rows)
            } else {
                // one row: the density under the prior
                let (mut m, mut v) = (Mat::zeros(1, latents), vec![0.0]);
                model.mean.evaluate(rows.x.as_ref(), m.as_mut());
                model.kernels[0].diag(rows.x.as_ref(), &mut v);
                let m: Vec<f64> = (0..latents).map(|l| m[(0, l)]).collect();
                let target = Target { y: rows.y[(0, 0)], extra };
                model.likelihood.predict_log_density(target, &m, &vec![v[0]; latents])
            };
            let what = format!("{spec}, {n} rows: {augmented} {plain} {evidence}");
            // rules of 20 points are not exact, nor is the grid at kinks
            assert!(augmented <= plain + 1e-4, "{what}");
            // the hinge is not a density, and its predictions are of a normalised one
            assert!(plain <= evidence + 1e-4, "{what}");
            assert!(evidence - augmented < 0.9, "{what}");
            let gaussian = spec.starts_with("gaussian");
            assert!(!gaussian || (evidence - augmented).abs() < 1e-6, "{what}");
        }
    }
}
