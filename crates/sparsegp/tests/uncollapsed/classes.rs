//! Steps in which some of the classes move: over all choices of so many they are on average the step of all.

use crate::problem::{Draw, problem};
use crate::support::{part, random_q};
use rand::RngExt;
use sparsegp::data::Minibatch;
use sparsegp::engine::{Cpu, Want};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::means::by_name;
use sparsegp::methods::{Step, Uncollapsed, find};
use sparsegp::model::Model;

const CLASSES: usize = 4;

/// Some rows of a problem, one of them without a label, and a model of them at a random q.
fn start(spec: &str) -> (Model, Minibatch) {
    let draw = Draw { n: 30, m: 5, d: 2, p: 1, kernel: "matern52", mean: "zero", seed: 7 };
    let mut problem = problem(&draw);
    let likelihood = likelihoods::parse(spec).unwrap();
    let (mut data, rng) = (problem.data.clone(), &mut problem.rng);
    for i in 0..draw.n {
        data.y[(i, 0)] = rng.random_range(0..CLASSES) as f64;
    }
    data.y[(4, 0)] = f64::NAN;
    data.weights = (0..draw.n).map(|_| rng.random_range(0.4..2.5)).collect();
    let latents = likelihood.latents();
    let mut mean = by_name("linear", draw.d, latents).unwrap();
    for (path, param) in mean.params_mut() {
        let values: Vec<f64> = param.value().iter().map(|_| rng.random_range(-0.8..0.8)).collect();
        param.set(&path, &values).unwrap();
    }
    let q = random_q(draw.m, latents, false, true, rng);
    let method = find("svi").unwrap().method;
    let model = Model { likelihood, mean, method, q: Some(q), ..problem.model.clone() };
    (model, part(&data, 0, 2))
}

/// Value, gradient of all but q, and natural gradients by latent function.
type Found = (f64, Vec<f64>, Vec<(usize, Vec<f64>)>);

fn step(model: &Model, batch: &Minibatch, chosen: Option<Vec<bool>>) -> (Step, Found) {
    let method = Uncollapsed::of(model.method).unwrap();
    let mut step = Step::default();
    step.choose(chosen);
    method.renew(&mut step, model, &Cpu::default(), batch, Want::Gradients).unwrap();
    let natural = step.natural_gradients();
    let mut gradient = vec![0.0; model.num_params()];
    step.gradient(model, &mut gradient);
    let q = sparsegp::params::count(|v| model.q.as_ref().unwrap().visit(v));
    gradient.truncate(gradient.len() - q);
    let value = step.value;
    (step, (value, gradient, natural))
}

/// All choices of so many among so many.
fn choices(among: usize, count: usize) -> Vec<Vec<bool>> {
    let all = (0..1_usize << among).filter(|bits| bits.count_ones() as usize == count);
    all.map(|bits| (0..among).map(|k| bits >> k & 1 == 1).collect()).collect()
}

fn near(own: &[f64], expected: &[f64], what: &str) {
    assert_eq!(own.len(), expected.len(), "{what}");
    for (own, expected) in own.iter().zip(expected) {
        let allowed = 1e-11 * (1.0 + expected.abs());
        assert!((own - expected).abs() < allowed, "{what}: {own} for {expected}");
    }
}

#[test]
fn the_average_over_all_choices_is_the_whole_step() {
    for spec in [
        "logistic-softmax(classes=4, scales=[1.3, 2.1, 0.4, 0.8])",
        "logistic-softmax(classes=4, scales=[1.3, 2.1, 0.4, 0.8], constant=0.6)",
        "logistic-softmax(classes=4, augmentation=mean-field)",
    ] {
        let (model, batch) = start(spec);
        let latents = model.likelihood.latents();
        let (_, (value, gradient, natural)) = step(&model, &batch, None);
        assert_eq!(natural.len(), latents);
        for count in 1..=latents {
            let all = choices(latents, count);
            let share = 1.0 / all.len() as f64;
            let mut mean = vec![0.0; gradient.len()];
            let mut means: Vec<Vec<f64>> =
                natural.iter().map(|(_, g)| vec![0.0; g.len()]).collect();
            for chosen in &all {
                let what = format!("{spec} {chosen:?}");
                let (_, found) = step(&model, &batch, Some(chosen.clone()));
                near(&[found.0], &[value], &format!("{what} value"));
                mean.iter_mut().zip(&found.1).for_each(|(t, g)| *t += share * g);
                assert_eq!(found.2.len(), count, "{what}");
                for (l, own) in found.2 {
                    assert!(chosen[l], "{what}");
                    near(&own, &natural[l].1, &format!("{what} natural gradient"));
                    // a step is taken with the probability count/latents
                    let scale = share * latents as f64 / count as f64;
                    means[l].iter_mut().zip(&own).for_each(|(t, g)| *t += scale * g);
                }
            }
            near(&mean, &gradient, &format!("{spec} {count} gradient"));
            for (mean, (_, whole)) in means.iter().zip(&natural) {
                near(mean, whole, &format!("{spec} {count} natural gradient"));
            }
        }
    }
}

#[test]
fn those_that_are_chosen_move_as_with_all_and_the_others_stay() {
    let (model, batch) = start("logistic-softmax(classes=4, scales=[1.3, 2.1, 0.4, 0.8])");
    let (mut whole, _) = step(&model, &batch, None);
    let mut moved = model.clone();
    whole.natural(&mut moved, 0.3).unwrap();
    let chosen = [false, true, false, true];
    let (mut some, _) = step(&model, &batch, Some(chosen.to_vec()));
    let mut half = model.clone();
    some.natural(&mut half, 0.3).unwrap();
    let [before, all, half] = [&model, &moved, &half].map(|m| m.q.clone().unwrap());
    let m = before.points();
    let size = m * (m + 1) / 2;
    for (l, moves) in chosen.into_iter().enumerate() {
        let expected = if moves { &all } else { &before };
        for (own, expected, size) in
            [(&half.first, &expected.first, m), (&half.second, &expected.second, size)]
        {
            let own = &own.value()[l * size..(l + 1) * size];
            assert_eq!(own, &expected.value()[l * size..(l + 1) * size], "{l}");
        }
        assert_ne!(before.first.value()[l * m], all.first.value()[l * m]);
    }
}

#[test]
fn what_has_no_choice_is_refused() {
    let (model, batch) = start("logistic-softmax(classes=4)");
    let refused = |model: &Model, chosen: Vec<bool>| {
        let mut step = Step::default();
        step.choose(Some(chosen));
        let method = Uncollapsed::of(model.method).unwrap();
        let outcome = method.renew(&mut step, model, &Cpu::default(), &batch, Want::Statistics);
        outcome.unwrap_err().to_string()
    };
    for chosen in [vec![true; 3], vec![false; 4]] {
        let message = refused(&model, chosen);
        assert!(message.contains("some of 4"), "{message}");
    }
    let mut own = model.clone();
    own.kernels = (0..4).map(|_| model.kernels[0].clone()).collect();
    let message = refused(&own, vec![true, false, false, true]);
    assert!(message.contains("share their kernel"), "{message}");
    let mut marginal = model;
    let roots: Vec<Mat<f64>> = (0..4).map(|_| Mat::identity(5, 5)).collect();
    let mu = Mat::zeros(5, 4);
    let q = sparsegp::variational::Variational::new(mu.as_ref(), &roots, false, false);
    marginal.q = Some(q.unwrap());
    let message = refused(&marginal, vec![true, false, false, true]);
    assert!(message.contains("whitened"), "{message}");
}
