//! Training by minibatches: where it ends.

use crate::support::{arrays, fit, prepare, value};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Fitted, Of, go_on};
use sparsegp::likelihoods;
use sparsegp::linalg::Mat;
use sparsegp::model::Posterior;
use sparsegp::rng::{stream, uniform};
use sparsegp::train::{EPOCHS, Event, LEAST_ITERATIONS, Observer, StochasticOptions, TrainReport};
use sparsegp::variational::Tying;
use std::ops::ControlFlow;

pub fn stochastic(likelihood: &str, method: &str, size: usize, epochs: usize) -> FitOptions {
    let training = StochasticOptions { epochs: Some(epochs), ..StochasticOptions::default() };
    FitOptions {
        likelihood: Some(likelihood.into()),
        method: method.into(),
        inducing: Some(12),
        kernel: "rbf".into(),
        seed: 3,
        batches: Some(BatchOptions { size, training }),
        ..FitOptions::default()
    }
}

/// Inputs in (−3, 3), and for each a draw of y given f(x) with the further number `extra`.
pub fn draws(n: usize, likelihood: &str, extra: f64, f: impl Fn(f64) -> Vec<f64>) -> InMemory {
    let likelihood = likelihoods::parse(likelihood).expect("a likelihood");
    let mut rng = stream(5, "draws");
    let x = Mat::from_fn(n, 1, |_, _| 6.0 * uniform(&mut rng) - 3.0);
    let y = Mat::from_fn(n, 1, |i, _| likelihood.sample(extra, &f(x[(i, 0)]), &mut rng));
    InMemory::new(x, y).expect("as many targets")
}

pub fn dataset(rows: InMemory, standardise: bool) -> Dataset {
    Dataset::from_rows(rows, standardise).expect("a table")
}

pub fn grid() -> Mat<f64> {
    Mat::from_fn(50, 1, |i, _| -2.9 + 5.8 * i as f64 / 49.0)
}

fn report(fitted: &Fitted) -> &TrainReport {
    fitted.report.as_ref().expect("it was trained")
}

#[test]
fn small_data_have_enough_iterations() {
    let options = StochasticOptions::default();
    assert_eq!(options.epochs(1), LEAST_ITERATIONS);
    assert_eq!(options.epochs(LEAST_ITERATIONS), EPOCHS);
    assert_eq!(options.epochs(LEAST_ITERATIONS / EPOCHS), EPOCHS);
    assert_eq!(options.epochs(LEAST_ITERATIONS / EPOCHS - 1), LEAST_ITERATIONS.div_ceil(19));
    assert_eq!(StochasticOptions { epochs: Some(7), ..options }.epochs(1), 7);
}

/// By minibatches, by natural gradients or only Adam, to the bound of the collapsed method.
#[test]
fn minibatches_come_close_to_the_collapsed_optimum() {
    let (x, y) = arrays(400, 1);
    let data = || Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table");
    let collapsed = FitOptions {
        method: "titsias2009".into(),
        ..stochastic("gaussian", "titsias2009", 400, 1)
    };
    let best = report(&fit(&data(), &collapsed).expect("a fit")).objective;
    for (size, natural, gap) in [(64, Some(0.1), 2.0), (400, Some(0.1), 0.5), (64, None, 25.0)] {
        let mut options = stochastic("gaussian", "svgp", size, 1200 / 400_usize.div_ceil(size));
        options.batches.as_mut().expect("minibatches").training.natural = natural;
        let own = report(&fit(&data(), &options).expect("a fit")).objective;
        assert!(own < best + 0.5 && own > best - gap, "{size} {natural:?}: {own} of {best}");
    }
}

/// Sites by minibatches with the pass shared or not, and by EM on all rows with every tying, to the
/// optimum of the collapsed method.
#[test]
fn sites_come_close_to_the_collapsed_optimum() {
    let (x, y) = arrays(400, 1);
    let data = || Dataset::from_arrays(x.clone(), y.clone(), true).expect("a table");
    let collapsed = FitOptions {
        method: "titsias2009".into(),
        ..stochastic("gaussian", "titsias2009", 400, 1)
    };
    let best = report(&fit(&data(), &collapsed).expect("a fit")).objective;
    for em in [None, Some((1, 1)), Some((3, 2))] {
        let mut options = stochastic("gaussian", "tsvgp", 64, 170);
        options.batches.as_mut().expect("minibatches").training.em = em;
        let own = report(&fit(&data(), &options).expect("a fit")).objective;
        assert!(own < best + 0.5 && own > best - 2.0, "{em:?}: {own} of {best}");
    }
    for (name, tying) in Tying::ALL {
        let options =
            FitOptions { batches: None, tying, ..stochastic("gaussian", "tsvgp", 400, 1) };
        let fitted = fit(&data(), &options).expect("a fit");
        let own = report(&fitted).objective;
        // the printed tying creeps
        let gap = if tying == Tying::Kernel { 20.0 } else { 2.0 };
        assert!(own < best + 0.5 && own > best - gap, "{name}: {own} of {best}");
        let q = fitted.model.q.as_ref().expect("a q");
        assert_ne!(q.tying(), Some(Tying::Untied), "what is kept stands without the rows");
    }
    let untied = FitOptions { tying: Tying::Untied, ..stochastic("gaussian", "tsvgp", 64, 2) };
    let error = fit(&data(), &untied).expect_err("minibatches").to_string();
    assert!(error.contains("untied") && error.contains("all rows"), "{error}");
}

/// EM maximises bound plus log prior, and says so; the prior pulls.
#[test]
fn em_sees_priors() {
    let rows = draws(120, "bernoulli", 1.0, |x| vec![2.0 * (1.3 * x).sin()]);
    let data = dataset(rows, false);
    let options = |kernel: &str| FitOptions {
        kernel: kernel.into(),
        batches: None,
        ..stochastic("bernoulli", "tsvgp", 120, 1)
    };
    let free = fit(&data, &options("rbf")).expect("a fit");
    let prior = "rbf(lengthscales={value: 1, prior: {type: lognormal, loc: 1.6, scale: 0.05}})";
    let pulled = fit(&data, &options(prior)).expect("a fit");
    let length = |fitted: &Fitted| value(&fitted.model, "kernel.lengthscales")[0];
    assert!(length(&free) < 2.0, "{}", length(&free));
    assert!((length(&pulled).ln() - 1.6).abs() < 0.15, "{}", length(&pulled));
    let bound = pulled.model.evaluate(&Cpu::default(), &*data.source).expect("a bound").value;
    let expected = bound + pulled.model.log_prior();
    assert!((report(&pulled).objective - expected).abs() < 1e-6 * expected.abs());
    let trace = &report(&pulled).trace;
    for pair in trace.windows(2) {
        assert!(pair[1].iteration == pair[0].iteration + 1, "{pair:?}");
        assert!(pair[1].objective >= pair[0].objective - 1e-6 * expected.abs(), "{pair:?}");
    }
    assert!(trace.len() > 10 && report(&pulled).converged, "{}", report(&pulled).stopped);
}

/// Interrupts after so many questions.
struct Impatient(std::cell::Cell<usize>);

impl Observer for Impatient {
    fn interrupted(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }
}

#[test]
fn em_ends_soon_when_interrupted() {
    let rows = draws(120, "poisson", 1.0, |x| vec![1.0 + x.sin()]);
    let data = dataset(rows, false);
    let options = FitOptions { batches: None, pilot: 0, ..stochastic("poisson", "tsvgp", 120, 1) };
    for questions in [2, 5, 20, 60] {
        let mut impatient = Impatient(std::cell::Cell::new(questions));
        let fitted = sparsegp::fit::fit(&data, &options, &Cpu::default(), &mut impatient);
        let fitted = fitted.expect("what was learnt so far");
        let report = report(&fitted);
        assert!(report.stopped.starts_with("interrupted") && !report.converged, "{report:?}");
        assert!(report.evaluations < questions + 25, "{questions}: {}", report.evaluations);
        assert_eq!(report.trace.last().map_or(0, |point| point.iteration), report.iterations);
        assert!(report.objective.is_finite());
    }
}

/// `auto` sees few rows of another likelihood all at once, but for what only minibatches have.
#[test]
fn auto_sees_few_rows_at_once() {
    let rows = draws(90, "poisson", 1.0, |x| vec![1.0 + x.sin()]);
    let options = stochastic("poisson", "auto", 30, 3);
    let method = |fitted: &Fitted| fitted.model.method.name();
    let whole = fit(&dataset(rows.clone(), false), &options).expect("a fit");
    assert_eq!(method(&whole), "tsvgp");
    assert!(whole.reason.contains("rows at once"), "{}", whole.reason);
    let mut aside = dataset(rows.clone(), false);
    aside.held_out = Some(Box::new(rows.clone()));
    let batches = fit(&aside, &options).expect("a fit");
    assert_eq!((method(&batches), report(&batches).trace.len()), ("svgp", 3));
    assert!(!batches.reason.contains("rows at once"), "{}", batches.reason);
    // continuing is as asked for, whatever `auto` would do
    let rows_again = dataset(rows, false);
    let more = go_on(batches, &rows_again, &options, &Cpu::default(), &mut ()).expect("a fit");
    assert_eq!((method(&more), report(&more).trace.len()), ("svgp", 3));
}

/// What cannot be of sites is refused; `tvgp` continues with other rows.
#[test]
fn sites_refuse_what_they_cannot() {
    let rows = draws(60, "poisson", 1.0, |x| vec![1.0 + x.sin()]);
    let mut adam = stochastic("poisson", "tsvgp", 30, 2);
    adam.batches.as_mut().expect("minibatches").training.natural = None;
    let error = fit(&dataset(rows.clone(), false), &adam).expect_err("no steps").to_string();
    assert!(error.contains("natural-gradient"), "{error}");
    let frozen = FitOptions { freeze: vec!["q".into()], ..stochastic("poisson", "tsvgp", 30, 2) };
    let error = fit(&dataset(rows.clone(), false), &frozen).expect_err("no freezing").to_string();
    assert!(error.contains("separate steps"), "{error}");
    let full = stochastic("poisson", "tvgp", 60, 1);
    let fitted = fit(&dataset(rows, false), &full).expect("a fit");
    let more = dataset(draws(75, "poisson", 1.0, |x| vec![1.0 + x.sin()]), false);
    let again = go_on(fitted, &more, &full, &Cpu::default(), &mut ()).expect("other rows");
    assert_eq!(again.model.q.as_ref().expect("sites").points(), 75);
}

#[test]
fn classes_counts_and_outliers_are_learnt() {
    let f = |x: f64| 2.0 * (1.3 * x).sin();
    let x = grid();
    let truth = |i: usize| f(x[(i, 0)]);

    let rows = draws(300, "bernoulli", 1.0, |x| vec![f(x)]);
    let fitted = fit(&dataset(rows, false), &stochastic("bernoulli", "svgp", 100, 150));
    let probabilities = fitted.expect("a fit").predict_proba(x.as_ref()).expect("classes");
    let normal = likelihoods::parse("bernoulli").expect("a likelihood");
    for i in 0..50 {
        let mut p = [0.0; 2];
        normal.probabilities(&[truth(i)], &[0.0], &mut p);
        let error = (probabilities[(i, 1)] - p[1]).abs();
        assert!(error < 0.25, "{}: {} and {}", x[(i, 0)], probabilities[(i, 1)], p[1]);
    }

    let rows = draws(300, "poisson", 1.0, |x| vec![1.5 + 0.5 * f(x)]);
    let fitted = fit(&dataset(rows, false), &stochastic("poisson", "svgp", 100, 150));
    let (rates, _) = fitted.expect("a fit").predict(x.as_ref(), Of::Observations).expect("rates");
    for i in 0..50 {
        let error = rates[(i, 0)].ln() - (1.5 + 0.5 * truth(i));
        assert!(error.abs() < 0.5, "{}: {error}", x[(i, 0)]);
    }

    let mut rows = draws(300, "gaussian(variance=0.04)", 0.0, |x| vec![f(x)]);
    for i in (0..300).step_by(10) {
        rows.y[(i, 0)] += if i % 20 == 0 { 30.0 } else { -20.0 };
    }
    let data = dataset(rows, true);
    let errors = ["student-t", "gaussian"].map(|likelihood| {
        let fitted = fit(&data, &stochastic(likelihood, "svgp", 100, 150)).expect("a fit");
        let (mean, _) = fitted.predict(x.as_ref(), Of::Latent).expect("means");
        let squares = (0..50).map(|i| (mean[(i, 0)] - truth(i)).powi(2));
        (squares.sum::<f64>() / 50.0).sqrt()
    });
    assert!(errors[0] < 0.12 && errors[1] > 3.0 * errors[0], "{errors:?}");
}

/// Every likelihood of classes starts from its own objective, and all find the waves.
#[test]
fn classes_start_at_lengthscales_that_explain_them() {
    let rows = draws(150, "softmax(classes=3)", 1.0, |x| {
        (0..3).map(|l| 4.0 * (x + f64::from(l)).sin()).collect()
    });
    for spec in ["softmax(classes=3)", "robust-max(classes=3)", "logistic-softmax(classes=3)"] {
        let own = stochastic(spec, "svgp", 50, 1);
        let (model, ..) = prepare(&dataset(rows.clone(), false), &own).expect("a model");
        let found = value(&model, "kernel.lengthscales")[0];
        assert!(found > 0.3 && found < 3.0, "{spec}: {found}");
    }
}

/// The other classes are learnt beside the one without a latent function; weights move where that is asked.
#[test]
fn a_class_without_a_latent_function_is_predicted() {
    let spec = "logistic-softmax(classes=3, constant=0.5";
    let of = |x: f64| vec![3.0 * x.sin() - 1.0, 3.0 * x.cos() - 1.0];
    let rows = draws(300, &format!("{spec})"), 1.0, of);
    let truth = likelihoods::parse(&format!("{spec})")).expect("a likelihood");
    let x = grid();
    for (method, options) in
        [("svgp", ", scales=true"), ("svi", ""), ("svi", ", augmentation=mean-field")]
    {
        let options = stochastic(&format!("{spec}{options})"), method, 100, 100);
        let fitted = fit(&dataset(rows.clone(), false), &options).expect("a fit");
        assert_eq!(fitted.model.likelihood.latents(), 2);
        let p = fitted.predict_proba(x.as_ref()).expect("probabilities");
        let mut error = 0.0;
        for i in 0..x.nrows() {
            let sum: f64 = (0..3).map(|k| p[(i, k)]).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{sum}");
            let mut exact = [0.0; 3];
            truth.probabilities(&of(x[(i, 0)]), &[0.0; 2], &mut exact);
            let away = (0..3).map(|k| (p[(i, k)] - exact[k]).abs());
            error += away.sum::<f64>() / (3 * x.nrows()) as f64;
        }
        assert!(error < 0.1, "{method}: {error}");
        let scales = value(&fitted.model, "likelihood.scales");
        assert_eq!(scales.iter().any(|s| *s != 1.0), method == "svgp", "{scales:?}");
    }
}

#[test]
fn the_noise_of_a_heteroscedastic_fit_follows_the_inputs() {
    let rows = draws(400, "heteroscedastic", 1.0, |x| vec![x.sin(), -1.5 + 0.5 * x]);
    let fitted =
        fit(&dataset(rows, true), &stochastic("heteroscedastic", "svgp", 100, 150)).expect("a fit");
    assert_eq!(fitted.model.kernels.len(), 2, "one for the function, one for the noise");
    let lengthscales = [0, 1].map(|l| value(&fitted.model, &format!("kernels[{l}].lengthscales")));
    assert!((lengthscales[0][0] / lengthscales[1][0] - 1.0).abs() > 0.01, "{lengthscales:?}");
    let at = Mat::from_fn(3, 1, |i, _| -2.5 + 2.5 * i as f64);
    let (_, variance) = fitted.predict(at.as_ref(), Of::Observations).expect("variances");
    for i in 0..3 {
        let sd = (-1.5 + 0.5 * at[(i, 0)]).exp();
        let ratio = variance[(i, 0)].sqrt() / sd;
        assert!((0.7..1.4).contains(&ratio), "{}: {ratio}", at[(i, 0)]);
    }
}

/// A natural-gradient step on what is not quadratic may lead anywhere; it is shortened until it helps.
#[test]
fn bad_starts_are_left_behind() {
    let counts = draws(200, "poisson", 1.0, |x| vec![11.0 + x.sin()]);
    let far = draws(200, "student-t(df=3, scale=0.1)", 1.0, |x| vec![x.sin()]);
    let cases = [
        ("poisson", counts, vec![("mean.constant", 0.0)]),
        ("student-t", far, vec![("mean.constant", 30.0), ("likelihood.scale", 0.01)]),
    ];
    for (likelihood, rows, starts) in cases {
        for (size, rate) in [(200, 0.1), (200, 1.0), (40, 0.1)] {
            let mut options = stochastic(likelihood, "svgp", size, 400 / (200 / size));
            options.pilot = 0;
            options.set = starts.iter().map(|(path, v)| ((*path).into(), vec![*v])).collect();
            options.batches.as_mut().expect("minibatches").training.natural = Some(rate);
            let fitted = fit(&dataset(rows.clone(), false), &options).expect("a fit");
            let trace = &report(&fitted).trace;
            assert!(trace.iter().all(|point| point.objective.is_finite()), "{likelihood}");
            let (first, last) = (trace[0].objective, trace[trace.len() - 1].objective);
            assert!(last > first + 0.3 * first.abs(), "{likelihood} {size} {rate}: {first} {last}");
            if likelihood == "poisson" {
                let zero = Mat::zeros(1, 1);
                let (mean, _) = fitted.predict(zero.as_ref(), Of::Observations).expect("a rate");
                let ratio = mean[(0, 0)] / 11_f64.exp();
                assert!((0.8..1.25).contains(&ratio), "{size} {rate}: {ratio}");
            }
        }
    }
}

#[test]
fn held_out_rows_end_the_training_and_the_best_state_is_kept() {
    let (x, y) = arrays(230, 2);
    let part = |from: usize, n: usize| {
        let rows = |a: &Mat<f64>| a.as_ref().subrows(from, n).to_owned();
        InMemory::new(rows(&x), rows(&y)).expect("as many targets")
    };
    let mut data = dataset(part(0, 30), false);
    data.held_out = Some(Box::new(part(30, 200)));
    let mut options = stochastic("gaussian", "svgp", 10, 500);
    let training = &mut options.batches.as_mut().expect("minibatches").training;
    (training.adam.learning_rate, training.patience) = (0.2, 4);
    let fitted = fit(&data, &options).expect("a fit");
    let report = report(&fitted);
    assert!(report.stopped.contains("held-out"), "{}", report.stopped);
    let seen: Vec<f64> = report.trace.iter().map(|p| p.held_out.expect("held out")).collect();
    let best = seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(seen.iter().position(|s| *s == best), Some(seen.len() - 5), "{seen:?}");
    let held = part(30, 200);
    // as the training judged them: of the mean function that it had
    let kept = Posterior::of_q(&fitted.model).expect("a posterior");
    let density =
        kept.predict_log_density(held.x.as_ref(), held.y.as_ref(), &[]).expect("densities");
    let own = density.iter().sum::<f64>() / 200.0;
    assert!((own - best).abs() < 1e-10 * best.abs(), "{own} {best}");
}

#[test]
fn continuing_improves_the_bound() {
    let rows = draws(150, "poisson", 1.0, |x| vec![2.0 + x.sin()]);
    let data = dataset(rows, false);
    let short = stochastic("poisson", "svgp", 50, 2);
    let first = fit(&data, &short).expect("a fit");
    let before = report(&first).objective;
    let long = stochastic("poisson", "svgp", 50, 60);
    let second = go_on(first, &data, &long, &Cpu::default(), &mut ()).expect("further");
    let after = report(&second).objective;
    assert!(after > before + 1.0, "{before} {after}");
}

/// Where nothing but q is trained, natural gradients train it to the end.
#[test]
fn frozen_hyperparameters_leave_q_to_be_trained() {
    let (x, y) = arrays(120, 1);
    let data = Dataset::from_arrays(x, y, true).expect("a table");
    let mut options = stochastic("gaussian", "svgp", 120, 200);
    options.freeze = ["kernel", "likelihood", "inducing"].map(String::from).to_vec();
    let own = report(&fit(&data, &options).expect("a fit")).objective;
    options.method = "titsias2009".into();
    let best = report(&fit(&data, &options).expect("a fit")).objective;
    assert!((own - best).abs() < 1e-6 * best.abs(), "{own} {best}");
}

/// Adaptive steps see minibatches of unequal sizes (230 rows do not divide into those of 50), and
/// depend only on the seed.
#[test]
fn steps_that_adapt_learn_what_others_learn() {
    let spec = "bernoulli(link=logit)";
    let rows = draws(230, spec, 1.0, |x| vec![3.0 * x.sin()]);
    let data = dataset(rows, false);
    let fitted = |method: &str| fit(&data, &stochastic(spec, method, 50, 150)).expect("a fit");
    let bound = |f: &Fitted| f.objective().expect("it was trained");
    let (all, adaptive) = (fitted("cavi"), fitted("svi"));
    let apart = (bound(&all) - bound(&adaptive)).abs();
    assert!(apart < 0.05 * bound(&all).abs(), "{} {}", bound(&all), bound(&adaptive));
    assert_eq!(bound(&fitted("svi")), bound(&adaptive));
}

/// Minibatches of `auto` with rates far too large.
fn ruinous(epochs: usize) -> (Dataset, FitOptions) {
    let (x, y) = arrays(2400, 1);
    let mut own = stochastic("gaussian", "auto", 16, epochs);
    own.batches.as_mut().expect("minibatches").training.adam.learning_rate = 3.0;
    (Dataset::from_arrays(x, y, true).expect("a table"), own)
}

/// The collapsed bound of what is delivered, with the priors that were asked for.
fn collapsed(fitted: &Fitted, dataset: &Dataset) -> f64 {
    let model = &fitted.model;
    assert_eq!(model.method.name(), "titsias2025");
    let own = model.evaluate(&Cpu::default(), &*dataset.source).expect("a bound").value;
    own + model.log_prior() - model.assumed_log_prior()
}

/// Where minibatches only make the bound on all rows worse, they end soon, and the start is what is delivered.
#[test]
fn minibatches_that_gain_nothing_end_where_they_began() {
    let (data, own) = ruinous(40);
    let begun = prepare(&data, &own).expect("a start").0;
    let begun = sparsegp::model::Model {
        method: sparsegp::methods::find("titsias2025").expect("a method").method,
        q: None,
        ..begun
    };
    let start = begun.evaluate(&Cpu::default(), &*data.source).expect("a bound").value
        + begun.log_prior()
        - begun.assumed_log_prior();
    let fitted = fit(&data, &own).expect("a fit");
    let report = report(&fitted);
    assert!(report.stopped.contains("rose no more after epoch 0 of 8"), "{}", report.stopped);
    assert!(report.objective >= start, "{} {start}", report.objective);
    let delivered = collapsed(&fitted, &data);
    assert!((report.objective - delivered).abs() < 1e-6 * delivered.abs(), "{delivered}");
}

/// Ends after some minibatches.
struct AfterBatches(usize);

impl Observer for AfterBatches {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        match event {
            Event::Batch { .. } => {
                self.0 = self.0.saturating_sub(1);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn interrupted(&self) -> bool {
        self.0 == 0
    }
}

/// An interruption delivers the best by the bound on all rows, and its objective is that bound.
#[test]
fn interrupted_minibatches_have_the_objective_of_what_is_delivered() {
    let (data, own) = ruinous(40);
    let fitted = sparsegp::fit::fit(&data, &own, &Cpu::default(), &mut AfterBatches(200));
    let fitted = fitted.expect("a fit");
    let report = report(&fitted);
    assert!(report.stopped.starts_with("interrupted"), "{}", report.stopped);
    let delivered = collapsed(&fitted, &data);
    assert!((report.objective - delivered).abs() < 1e-6 * delivered.abs(), "{delivered}");
}
