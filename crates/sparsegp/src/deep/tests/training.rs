//! Refusals, predictions and training.

use super::*;
use crate::data::Batches;
use crate::likelihoods::Likelihood;
use crate::train::{
    Event, Observer, StochasticOptions, Surroundings, TrainReport, TrainingState, train_layers,
};
use serde_json::json;
use std::ops::ControlFlow;

/// A step with noise, the classic of deep models: 200 rows of one input.
fn step(n: usize, noise: f64, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = rng::stream(seed, "step");
    let x = Mat::from_fn(n, 1, |_, _| 4.0 * rng::uniform(&mut rng) - 2.0);
    let e = normal(n, 1, noise, &mut rng);
    let y = Mat::from_fn(n, 1, |i, _| if x[(i, 0)] > 0.3 { 1.0 } else { -1.0 } + e[(i, 0)]);
    (x, y)
}

fn gaussian(variance: f64) -> Box<dyn Likelihood> {
    likelihoods::parse(&format!("gaussian(variance={variance})")).unwrap()
}

/// Trains for so many epochs.
pub(super) fn train(
    model: &mut Deep,
    batches: &mut dyn Batches,
    options: &StepOptions,
    epochs: usize,
) -> crate::Result<TrainReport> {
    let training = StochasticOptions { epochs: Some(epochs), ..StochasticOptions::default() };
    let (method, how) = (find("deep").unwrap().method, (options, &training));
    train_layers(model, method, batches, how, Surroundings::default(), &mut ())
}

/// Trains for so many epochs of two steps on a step and returns the mean log density of others, with how it went.
fn trained(start: &Start, options: &StepOptions, epochs: usize) -> (f64, TrainReport, Deep) {
    let (x, y) = step(200, 0.05, 1);
    let mut model = Deep::start(x.as_ref(), y.as_ref(), &[], gaussian(0.05), start).unwrap();
    let data = InMemory::new(x, y).unwrap();
    let mut batches = ShuffledInMemory::new(&data, 100, 7).unwrap();
    let outcome = train(&mut model, &mut batches, options, epochs).unwrap();
    let (x, y) = step(200, 0.05, 2);
    let predictor = model.predictor().unwrap();
    let mixture = predictor.predict(x.as_ref(), 50, &Paths::Streams { seed: 3 }).unwrap();
    let density = mixture.log_density(y.as_ref(), &[]).unwrap();
    (density.iter().sum::<f64>() / 200.0, outcome, model)
}

#[test]
fn a_deep_model_of_a_step_beats_a_shallow_one() {
    let options = StepOptions::default();
    let start = |hidden: Vec<usize>, kind| Start { hidden, kind, points: 15, ..Start::default() };
    // only noise: log N of targets around their mean
    let noise = -0.5 * (std::f64::consts::TAU.ln() + 1.0);
    let mut last = f64::NEG_INFINITY;
    for hidden in [vec![], vec![1]] {
        let (density, outcome, _) = trained(&start(hidden, Kind::L), &options, 450);
        let whole = outcome.stopped == "all 450 epochs done";
        assert!(whole && outcome.trace.len() == 450, "{outcome:?}");
        assert!(density > noise + 0.3 && density > last, "{density} after {last}, noise {noise}");
        last = density;
    }
    for kind in [Kind::W, Kind::M, Kind::R] {
        let (density, outcome, _) = trained(&start(vec![1], kind), &options, 450);
        assert!(density > noise + 0.3, "{kind:?}: {density}, noise {noise}, {outcome:?}");
    }
}

#[test]
fn a_run_depends_only_on_its_seed() {
    let start = Start { hidden: vec![2], kind: Kind::W, points: 8, ..Start::default() };
    let run = |threads: usize, seed: u64, sampling: Sampling| -> Vec<u64> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let natural = Some(0.05);
        let options = StepOptions { samples: 4, natural, seed, ..StepOptions::default() };
        let start = Start { sampling, ..start.clone() };
        let (_, outcome, model) = pool.install(|| trained(&start, &options, 6));
        assert_eq!((outcome.stopped.as_str(), outcome.iterations), ("all 6 epochs done", 12));
        let q = &model.layers[1].groups[0].q;
        assert!(!q.first.frozen && q.first.value().iter().any(|m| *m != 0.0));
        let all = model.params().into_iter().flat_map(|(_, p)| p.value().to_vec());
        all.map(f64::to_bits).collect()
    };
    for sampling in [Sampling::Rows, Sampling::Functions] {
        let one = run(1, 5, sampling);
        assert!(run(2, 5, sampling) == one && run(1, 6, sampling) != one, "{sampling:?}");
    }
}

#[test]
fn priors_count_in_training() {
    let fixed = |concentration: f64| {
        let start = Start { points: 6, ..Start::default() };
        let (x, y) = step(60, 0.1, 4);
        let mut model = Deep::start(x.as_ref(), y.as_ref(), &[], gaussian(0.05), &start).unwrap();
        let rate = 200.0 * concentration;
        let prior = crate::params::Prior::Gamma { concentration: 400.0 * concentration, rate };
        for (path, param) in model.params_mut() {
            if path == "layers[1].kernel.variance" {
                param.prior = Some(prior);
            }
        }
        let data = InMemory::new(x, y).unwrap();
        let mut batches = ShuffledInMemory::new(&data, 60, 7).unwrap();
        let options = StepOptions { learning_rate: 0.05, ..StepOptions::default() };
        train(&mut model, &mut batches, &options, 400).unwrap();
        let found = model.params().into_iter().find(|(p, _)| p == "layers[1].kernel.variance");
        found.unwrap().1.scalar()
    };
    // both have mean 2, and the second is certain of it
    let (vague, certain) = (fixed(0.02), fixed(10.0));
    let away = |v: f64| (v - 2.0_f64).abs();
    assert!(away(certain) < 0.1 && away(vague) > away(certain), "{vague} {certain}");
}

#[test]
fn training_that_goes_wrong_ends_at_the_last_finite_point() {
    let start = Start { points: 8, ..Start::default() };
    let wild = StepOptions { learning_rate: 1e3, ..StepOptions::default() };
    let (_, outcome, model) = trained(&start, &wild, 30);
    let finite = model.params().iter().all(|(_, p)| p.value().iter().all(|v| v.is_finite()));
    assert!(finite && outcome.failures > 0, "{outcome:?}");
    let (x, y) = step(50, 0.05, 9);
    let batch =
        Batch { rows: Rows::plain(0, x.as_ref(), y.as_ref()), population: 50.0, samples: 1 };
    let noise = Noise::Streams { seed: 0, step: 0 };
    let found = model.evaluate(&batch, &noise, Want::default(), &mut Work::default()).unwrap();
    assert!(found.value.is_finite(), "{outcome:?}");
}

/// Batches that were used before begin again, and an interruption before the first step is
/// reported.
#[test]
fn a_training_begins_at_the_first_batch() {
    let start = Start { points: 6, ..Start::default() };
    let (x, y) = step(60, 0.1, 4);
    let begun = Deep::start(x.as_ref(), y.as_ref(), &[], gaussian(0.05), &start).unwrap();
    let data = InMemory::new(x, y).unwrap();
    let mut batches = ShuffledInMemory::new(&data, 20, 7).unwrap();
    let run = |batches: &mut dyn Batches| {
        let mut model = begun.clone();
        let report = train(&mut model, batches, &StepOptions::default(), 2).unwrap();
        let all = model.params().into_iter().flat_map(|(_, p)| p.value().to_vec());
        (report.iterations, all.map(f64::to_bits).collect::<Vec<_>>())
    };
    let first = run(&mut batches);
    assert_eq!(first.0, 6);
    assert!(run(&mut batches) == first);
    // observers receive every epoch
    struct Epochs(Vec<usize>);
    impl Observer for Epochs {
        fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
            if let Event::Iteration(point) = event {
                self.0.push(point.iteration);
            }
            ControlFlow::Continue(())
        }
    }
    struct Impatient;
    impl Observer for Impatient {
        fn interrupted(&self) -> bool {
            true
        }
    }
    let (options, training) = (StepOptions::default(), StochasticOptions::default());
    let (method, how) = (find("deep").unwrap().method, (&options, &training));
    let two = StochasticOptions { epochs: Some(2), ..training.clone() };
    let (mut model, mut seen) = (begun.clone(), Epochs(Vec::new()));
    let around = Surroundings::default();
    train_layers(&mut model, method, &mut batches, (&options, &two), around, &mut seen).unwrap();
    assert_eq!(seen.0, [1, 2]);
    let mut model = begun.clone();
    let around = Surroundings::default();
    let error = train_layers(&mut model, method, &mut batches, how, around, &mut Impatient);
    assert!(matches!(error, Err(crate::Error::Interrupted)));
}

/// Layers that are not a model of ours train as others do: nothing is kept of them, and nothing
/// looked at.
#[test]
fn layers_of_images_train_without_checkpoints() {
    let mut model = Deep::new(super::images::layers(Sampling::Functions), gaussian(0.3)).unwrap();
    let mut rng = rng::stream(6, "images");
    let data = InMemory::new(normal(6, 6, 1.0, &mut rng), normal(6, 1, 1.0, &mut rng)).unwrap();
    let mut batches = ShuffledInMemory::new(&data, 3, 7).unwrap();
    let mut kept = 0;
    let mut keep = |_: &Model, _: &TrainingState| {
        kept += 1;
        Ok(())
    };
    let training = StochasticOptions {
        epochs: Some(2),
        checkpoint_seconds: 0.0,
        ..StochasticOptions::default()
    };
    let around = Surroundings {
        held_out: Some(&data),
        checkpoint: Some(&mut keep),
        ..Surroundings::default()
    };
    let (method, how) = (find("deep").unwrap().method, (&StepOptions::default(), &training));
    let report = train_layers(&mut model, method, &mut batches, how, around, &mut ()).unwrap();
    assert_eq!((report.iterations, report.trace.len(), kept), (4, 2, 0));
    assert!(report.objective.is_finite() && report.trace.iter().all(|p| p.held_out.is_none()));
}

/// Steps that lead nowhere end the training, count nothing, and a resumed run ends at once.
#[test]
fn a_training_that_stalls_says_so() {
    let start = Start { points: 6, ..Start::default() };
    let (x, y) = step(60, 0.1, 4);
    let mut model = Deep::start(x.as_ref(), y.as_ref(), &[], gaussian(0.05), &start).unwrap();
    let data = InMemory::new(x, y).unwrap();
    let mut batches = ShuffledInMemory::new(&data, 20, 7).unwrap();
    let (options, training) = (StepOptions::default(), StochasticOptions::default());
    let method = find("deep").unwrap().method;
    let mut state = None;
    let mut keep = |_: &Model, own: &TrainingState| {
        state = Some(own.clone());
        Ok(())
    };
    let mut few = StochasticOptions { epochs: Some(1), ..training.clone() };
    let around = Surroundings { checkpoint: Some(&mut keep), ..Surroundings::default() };
    train_layers(&mut model, method, &mut batches, (&options, &few), around, &mut ()).unwrap();
    // far beyond what has a bound
    let mut state = state.unwrap();
    let mut json = serde_json::to_value(&state.adam).unwrap();
    for x in json["state"]["x"].as_array_mut().unwrap() {
        *x = json!(1e300);
    }
    state.adam = serde_json::from_value(json).unwrap();
    state.adam.options.halvings = 2;
    few.epochs = Some(5);
    let around = Surroundings { resume: Some(state), ..Surroundings::default() };
    let report =
        train_layers(&mut model, method, &mut batches, (&options, &few), around, &mut ()).unwrap();
    assert_eq!((report.iterations, report.trace.len()), (3, 1), "{report:?}");
    assert!(report.failures > 0 && !report.stopped.contains("epochs done"), "{report:?}");
    let finite = model.params().iter().all(|(_, p)| p.value().iter().all(|v| v.is_finite()));
    assert!(finite);
}

#[test]
fn tables_are_predicted_in_parts_as_whole() {
    let problem = deep(Kind::W, Sampling::Rows);
    let predictor = problem.model.predictor().unwrap();
    let paths = Paths::Streams { seed: 2 };
    let whole = predictor.predict(problem.x.as_ref(), 6, &paths).unwrap();
    let part = predictor.predict(problem.x.as_ref().subrows(300, 200), 6, &paths).unwrap();
    for (whole, part) in whole.means.iter().zip(&part.means) {
        for i in 0..200 {
            assert!((whole[(300 + i, 0)] - part[(i, 0)]).abs() < 1e-12);
        }
    }
    let levels = [0.1, 0.5, 0.9];
    let quantiles = part.quantiles(&[], &levels).unwrap();
    for i in 0..5 {
        let own = |q: &Mat<f64>| q[(i, 0)];
        assert!(own(&quantiles[0]) < own(&quantiles[1]) && own(&quantiles[1]) < own(&quantiles[2]));
    }
    let (mean, variance) = part.observations(&[]).unwrap();
    let (f, s) = part.functions();
    assert!((mean[(0, 0)] - f[(0, 0)]).abs() < 1e-12);
    assert!((variance[(0, 0)] - s[(0, 0)] - 0.3).abs() < 1e-12);
}

#[test]
fn hidden_natural_steps_are_halved_until_they_are_possible() {
    let mut problem = deep(Kind::W, Sampling::Rows);
    let noise = Noise::Given(&problem.draws);
    let rows = Rows::plain(0, problem.x.as_ref(), problem.y.as_ref());
    let batch = Batch { rows, population: 7000.0, samples: 2 };
    let stepped = problem.model.natural_step(0, 1.0, &batch, &noise, &mut Work::default()).unwrap();
    assert!(stepped.rate < 1.0, "{}", stepped.rate);
    // a whole step of the last layer is the best q for these samples: its slopes vanish
    let mut work = Work::default();
    let mut slopes = |model: &Deep| -> Vec<(String, f64)> {
        let found = model.evaluate(&batch, &noise, ALL, &mut work).unwrap();
        let all = by_path(&model.params(), &found.gradient);
        let of_q = all.into_iter().filter(|(path, _)| path.starts_with("layers[1].q"));
        of_q.map(|(path, own)| (path, size(own))).collect()
    };
    let before = slopes(&problem.model);
    problem.model.natural_step(1, 1.0, &batch, &noise, &mut Work::default()).unwrap();
    let after = slopes(&problem.model);
    assert_eq!(before.len(), 2);
    for ((path, before), (_, after)) in before.iter().zip(&after) {
        assert!(*after < 1e-12 * before, "{path}: {after:e} after {before:e}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_both_numbers() {
    let gaussian = || gaussian(0.1);
    let says = |result: crate::Result<()>, words: &[&str]| {
        let text = result.unwrap_err().to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?}");
    };
    let layers = |a: (usize, usize), b: (usize, usize), kind: Kind| {
        vec![recipe(kind, "rbf", "zero", a), recipe(kind, "rbf", "zero", b)]
    };
    let new = |layers: Vec<Layer>| Deep::new(layers, gaussian()).map(|_| ());
    says(new(Vec::new()), &["at least one layer", "0"]);
    says(new(layers((2, 3), (2, 1), Kind::W)), &["layer 1", "3", "2"]);
    let mut skipping = layers((2, 3), (4, 1), Kind::W);
    skipping[1].skip = true;
    says(new(skipping), &["5", "4"]);
    let mut first = layers((2, 2), (2, 1), Kind::W);
    first[0].skip = true;
    says(new(first), &["first layer"]);
    let mut functions = layers((2, 2), (2, 1), Kind::L);
    functions[0].sampling = Sampling::Functions;
    says(new(functions), &["layer 0", "L or R"]);
    let softmax = || likelihoods::parse("softmax(classes=3)").unwrap();
    let odd = Deep::new(layers((2, 2), (2, 2), Kind::W), softmax()).map(|_| ());
    says(odd, &["multiple of 3", "2"]);
    let mut tighter = Deep::new(layers((2, 2), (2, 1), Kind::L), gaussian()).unwrap();
    tighter.bound = LastBound::Tighter;
    says(tighter.check(), &["W or M"]);
    let mut tighter = Deep::new(layers((2, 2), (2, 3), Kind::W), softmax()).unwrap();
    tighter.bound = LastBound::Tighter;
    says(tighter.check(), &["Gaussian noise"]);

    let problem = Problem::new(layers((2, 2), (2, 1), Kind::W), "gaussian", 6, 2);
    let evaluate = |batch: &Batch<'_>, noise: &Noise<'_>| {
        let found = problem.model.evaluate(batch, noise, Want::default(), &mut Work::default());
        found.map(|_| ())
    };
    let noise = Noise::Streams { seed: 0, step: 0 };
    let batch = problem.batch();
    says(evaluate(&Batch { samples: 0, ..batch }, &noise), &["at least one sample", "0"]);
    says(evaluate(&Batch { samples: 3, ..batch }, &Noise::Given(&problem.draws)), &["18", "12"]);
    says(evaluate(&batch, &Noise::Given(&[])), &["1", "0"]);
    says(evaluate(&Batch { population: f64::NAN, ..batch }, &noise), &["NaN"]);
    let wide = Mat::zeros(6, 3);
    let rows = Rows::plain(0, wide.as_ref(), problem.y.as_ref());
    says(evaluate(&Batch { rows, ..batch }, &noise), &["inputs", "2", "3"]);
    let rows = Rows::plain(0, problem.x.as_ref(), wide.as_ref());
    says(evaluate(&Batch { rows, ..batch }, &noise), &["targets", "1", "3"]);

    let mut model = problem.model.clone();
    let mut natural = |layer, rate| {
        model.natural_step(layer, rate, &batch, &noise, &mut Work::default()).map(|_| ())
    };
    says(natural(2, 0.1), &["layer 2", "0 to 1"]);
    says(natural(1, 1.5), &["1.5"]);
    says(problem.model.clone().set("layers[0].q.m", &[0.0]), &["layers[0].q.mu"]);
    let predictor = problem.model.predictor().unwrap();
    let paths = Paths::Streams { seed: 0 };
    says(predictor.predict(wide.as_ref(), 4, &paths).map(|_| ()), &["2", "3"]);
    says(predictor.predict(problem.x.as_ref(), 0, &paths).map(|_| ()), &["0"]);
    let mixture = predictor.predict(problem.x.as_ref(), 2, &paths).unwrap();
    says(mixture.probabilities().map(|_| ()), &["gaussian"]);
    says(mixture.quantiles(&[], &[1.5]).map(|_| ()), &["1.5"]);
    says(mixture.log_density(wide.as_ref(), &[]).map(|_| ()), &["6×1", "6×3"]);
    says(mixture.observations(&[1.0]).map(|_| ()), &["6", "1"]);
    let classes = Problem::new(layers((2, 2), (2, 3), Kind::W), "softmax(classes=3)", 4, 1);
    let y = Mat::from_fn(4, 1, |i, _| i as f64);
    let rows = Rows::plain(0, classes.x.as_ref(), y.as_ref());
    let batch = Batch { rows, ..classes.batch() };
    let found = classes.model.evaluate(&batch, &noise, Want::default(), &mut Work::default());
    says(found.map(|_| ()), &["row 3", "target 3", "3 classes"]);
}

/// A model is the same in any units of its inputs and targets: it starts alike, and Adam's steps are measured in them.
#[test]
fn units_of_the_data_do_not_matter() {
    let (x, y) = step(200, 0.05, 1);
    let of = |a: f64, b: f64| {
        let scaled = |m: &Mat<f64>, by: f64| Mat::from_fn(200, 1, |i, _| by * m[(i, 0)]);
        let (x, y) = (scaled(&x, a), scaled(&y, b));
        let start = Start { points: 20, ..Start::default() };
        let noise = likelihoods::parse("gaussian").unwrap();
        let mut model = Deep::start(x.as_ref(), y.as_ref(), &[], noise, &start).unwrap();
        let units = model.units();
        assert_eq!(units.len(), model.num_params());
        assert_eq!(units.iter().all(|u| *u == 1.0), a == 1.0 && b == 1.0);
        let data = InMemory::new(x.clone(), y).unwrap();
        let mut batches = ShuffledInMemory::new(&data, 200, 7).unwrap();
        train(&mut model, &mut batches, &StepOptions::default(), 700).unwrap();
        let predictor = model.predictor().unwrap();
        let mixture = predictor.predict(x.as_ref(), 20, &Paths::Streams { seed: 3 }).unwrap();
        let (mean, _) = mixture.observations(&[]).unwrap();
        let off = |i: usize| mean[(i, 0)] / b - if data.x[(i, 0)] / a > 0.3 { 1.0 } else { -1.0 };
        ((0..200).map(|i| off(i).powi(2)).sum::<f64>() / 200.0).sqrt()
    };
    for (a, b) in [(1.0, 1.0), (1e-4, 1.0), (1e4, 1.0), (1.0, 1e4), (1.0, 1e-3)] {
        let off = of(a, b);
        assert!(off < 0.35, "inputs times {a}, targets times {b}: {off}");
    }
}
