//! Training in steps in which some of many classes move.

use crate::stochastic::{dataset, draws, grid, stochastic};
use crate::support::{bits, fit};
use sparsegp::engine::Cpu;
use sparsegp::fit::{FitOptions, Fitted};
use sparsegp::train::{Event, Observer};
use std::ops::ControlFlow;

const SIX: &str = "logistic-softmax(classes=6, integration=laplace)";

/// Six classes, one after the other along the line.
fn waves(x: f64) -> Vec<f64> {
    (0..6).map(|k| 3.0 - 2.5 * (x - (f64::from(k) - 2.5)).abs()).collect()
}

fn options(size: usize, per_step: Option<usize>, epochs: usize) -> FitOptions {
    let mut options = stochastic(SIX, "svi", size, epochs);
    options.set =
        vec![("kernel.variance".into(), vec![4.0]), ("kernel.lengthscales".into(), vec![0.6])];
    options.freeze = vec!["kernel".into(), "mean".into(), "inducing".into()];
    options.batches.as_mut().expect("minibatches").training.classes_per_step = per_step;
    options
}

fn trained(size: usize, per_step: Option<usize>, epochs: usize) -> Fitted {
    let rows = draws(400, SIX, 1.0, waves);
    fit(&dataset(rows, false), &options(size, per_step, epochs)).expect("a fit")
}

/// By all rows in every step, to the same optimum; by minibatches, to within their noise.
#[test]
fn some_classes_at_a_time_end_where_all_at_once_do() {
    for (size, epochs, tolerance) in [(400, 300, 2e-3), (100, 150, 0.06)] {
        let whole = trained(size, None, epochs);
        let expected = whole.predict_proba(grid().as_ref()).expect("probabilities");
        for count in [1, 2, 5] {
            // as many steps of every class
            let some = trained(size, Some(count), epochs * 6 / count);
            let found = some.predict_proba(grid().as_ref()).expect("probabilities");
            let mut apart: f64 = 0.0;
            for k in 0..6 {
                for i in 0..50 {
                    apart = apart.max((found[(i, k)] - expected[(i, k)]).abs());
                }
            }
            let objectives = [&whole, &some].map(|f| f.report.as_ref().expect("one").objective);
            assert!(apart < tolerance, "{size} {count}: {apart}, {objectives:?}");
            let off = (objectives[0] - objectives[1]).abs();
            assert!(off < 1e3 * tolerance * tolerance + 0.01, "{size} {count}: {objectives:?}");
        }
    }
}

#[test]
fn the_classes_of_a_step_depend_only_on_the_seed() {
    let [one, two] = [trained(100, Some(2), 4), trained(100, Some(2), 4)];
    assert_eq!(bits(&one.model), bits(&two.model));
    let rows = || dataset(draws(400, SIX, 1.0, waves), false);
    let other = fit(&rows(), &FitOptions { seed: 4, ..options(100, Some(2), 4) }).expect("a fit");
    assert_ne!(bits(&one.model), bits(&other.model));
}

/// Whether a fit chose points, or trained.
struct Begun(bool);

impl Observer for Begun {
    fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        self.0 |= matches!(event, Event::Pilot { .. } | Event::Inducing { .. } | Event::Training);
        ControlFlow::Continue(())
    }
}

/// Before anything that takes time.
#[test]
fn what_has_no_choice_of_classes_is_refused() {
    let rows = || dataset(draws(400, SIX, 1.0, waves), false);
    let refused = |change: &dyn Fn(&mut FitOptions), words: &[&str]| {
        let mut options = options(100, Some(2), 2);
        change(&mut options);
        let mut begun = Begun(false);
        let outcome = sparsegp::fit::fit(&rows(), &options, &Cpu::default(), &mut begun);
        let message = outcome.expect_err("no choice").to_string();
        assert!(!begun.0, "refused after the start: {message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refused(&|o| o.method = "svgp".into(), &["`svi`", "`svgp`"]);
    refused(
        &|o| o.batches.as_mut().expect("minibatches").training.classes_per_step = Some(7),
        &["7 classes", "between 1 and 6"],
    );
    refused(
        &|o| {
            o.kernel = ["rbf"; 6].join(";");
            o.set.clear();
            o.freeze.clear();
        },
        &["share their kernel"],
    );
    let mut two = options(100, Some(1), 2);
    two.likelihood = Some("bernoulli(link=logit)".into());
    let labels = draws(100, "bernoulli(link=logit)", 1.0, |x| vec![x]);
    let message = fit(&dataset(labels, false), &two).expect_err("one latent function").to_string();
    assert!(message.contains("logistic-softmax") && message.contains("bernoulli"), "{message}");
}
