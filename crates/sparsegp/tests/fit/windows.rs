//! Series of which only the latest rows are kept: what they predict is what all rows together do.

use crate::support::{fit, options};
use sparsegp::data::InMemory;
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, Standardise, UpdateOptions, update};
use sparsegp::io;
use sparsegp::linalg::Mat;

/// Rows of all: those of the fit are 300.
const ALL: usize = 900;
const FIRST: usize = 300;

/// Rows of the model's scale stay as they are.
const PLAIN: Standardise =
    Standardise { inputs: false, targets: false, robust: false, constants: false };

/// Times that rise but for rows that come late, some of them twice; with steps of all sizes.
fn times(unit: f64, late: bool) -> Vec<f64> {
    let mut t = Vec::new();
    let mut at = 40.0;
    for i in 0..ALL {
        at += match i % 7 {
            2 => 0.0,
            4 => 1e-5,
            r => 0.3 + 0.5 * (1.0 + (r * i) as f64).sin().abs(),
        };
        t.push(unit * at);
    }
    // late by some forty rows
    let last = if late { ALL - 45 } else { 0 };
    (0..last).filter(|i| i % 53 == 17).for_each(|i| t.swap(i, i + 40));
    t
}

fn target(t: f64, i: usize, p: usize) -> f64 {
    (0.11 * t + p as f64).sin() + 0.004 * t + 0.4 * (17.3 * i as f64).sin()
}

struct Problem {
    all: Dataset,
    rows: InMemory,
    options: FitOptions,
}

impl Problem {
    fn new(
        kernel: &str,
        (unit, scale): (f64, f64),
        columns: usize,
        [weighted, late]: [bool; 2],
    ) -> Self {
        let t = times(unit, late);
        let x = Mat::from_fn(ALL, 1, |i, _| t[i]);
        let y = Mat::from_fn(ALL, columns, |i, p| scale * (target(t[i] / unit, i, p) - 3.0));
        let own = FitOptions { kernel: kernel.into(), ..options("markov", 0) };
        let all = Dataset::from_arrays(x, y, true).expect("a table");
        Self::of(all, own, weighted)
    }

    fn of(mut all: Dataset, mut options: FitOptions, weighted: bool) -> Self {
        options.pilot = 0;
        options.train.max_iterations = 0;
        let mut rows = sparsegp::fit::sample_rows(&*all.source, ALL, 0).expect("rows");
        if weighted {
            rows.weights = (0..ALL).map(|i| [0.0, 0.4, 1.0, 2.5, 1.3][i % 5]).collect();
            all.source = Box::new(rows.clone());
        }
        Self { all, rows, options }
    }

    fn part(&self, from: usize, to: usize) -> Dataset {
        let picked: Vec<usize> = (from..to).collect();
        let mut part = Dataset::from_rows(self.rows.picked(&picked), PLAIN).expect("a table");
        part.scaler = self.all.scaler.clone();
        part.input_names.clone_from(&self.all.input_names);
        part.target_names.clone_from(&self.all.target_names);
        part
    }

    fn fitted(&self, to: usize) -> Fitted {
        fit(&self.part(0, to), &self.options).expect("a fit")
    }

    /// The model after batches of several sizes, of which so many rows are kept.
    fn followed(&self, keep: usize) -> (Fitted, f64) {
        let own = UpdateOptions { keep_rows: Some(keep), ..UpdateOptions::default() };
        let (mut fitted, mut from, mut bound) = (self.fitted(FIRST), FIRST, 0.0);
        for size in [4, 70, 200, 6, 126].into_iter().cycle() {
            let to = if from + size + 6 > ALL { ALL } else { from + size };
            let (next, report) =
                update(&fitted, &self.part(from, to), &own, &mut |_, _| Ok(())).expect("rows");
            bound += report.bound;
            (fitted, from) = (next, to);
            if to == ALL {
                break;
            }
        }
        (fitted, bound)
    }
}

/// Places from the window's begin to far behind its end, in disorder.
fn places(fitted: &Fitted) -> Mat<f64> {
    let from = fitted.posterior.past().expect("rows that have left").t();
    let kept = fitted.posterior.kept_rows().expect("rows");
    let last = (0..kept.x.nrows()).map(|i| kept.x[(i, 0)]).fold(f64::MIN, f64::max);
    Mat::from_fn(60, 1, |i, _| {
        let share = ((i * 37) % 60) as f64 / 45.0;
        if share == 0.0 { from } else { from + share * (last - from) }
    })
}

fn close(a: &Mat<f64>, b: &Mat<f64>, tolerance: f64, what: &str) {
    let size = b.norm_max();
    for j in 0..a.ncols() {
        for i in 0..a.nrows() {
            let (a, b) = (a[(i, j)], b[(i, j)]);
            assert!((a - b).abs() <= tolerance * size, "{what} {i} {j}: {a} and {b}");
        }
    }
}

/// Kernel, units of times and targets, columns, and whether rows have weights and come late.
type Case = (&'static str, (f64, f64), usize, [bool; 2]);

const CASES: &[Case] = &[
    ("matern52(variance=1.3, lengthscales=0.1)", (1.0, 1.0), 1, [false, true]),
    ("matern52(variance=1.3, lengthscales=0.1)", (1e-4, 1e4), 1, [false, false]),
    (
        "matern32(variance=0.7, lengthscales=0.07) + linear(variance=0.4)",
        (1e4, 1e-4),
        1,
        [true, false],
    ),
    (
        "matern12(variance=0.6, lengthscales=0.2) + constant(variance=1.7) + cosine(lengthscales=0.3)",
        (1e-4, 1e4),
        2,
        [false, true],
    ),
    (
        "matern52(variance=0.8, lengthscales=0.5) + periodic(base=rbf(variance=0.6, lengthscales=0.9), period=0.35)",
        (1.0, 1e4),
        1,
        [false, false],
    ),
    ("rbf(variance=1.1, lengthscales=0.1)", (1e4, 1e-4), 1, [true, true]),
    (
        "matern32(variance=1.2, lengthscales=0.4) * cosine(variance=0.9, lengthscales=0.2) + white(variance=0.1)",
        (1e4, 1.0),
        2,
        [true, true],
    ),
];

#[test]
fn a_window_predicts_what_all_rows_do() {
    for (kernel, scales, columns, [weighted, late]) in CASES {
        let problem = Problem::new(kernel, *scales, *columns, [*weighted, *late]);
        let ((found, bound), (right, sum)) = (problem.followed(150), problem.followed(0));
        let count = |of: &Fitted| of.posterior.kept_rows().expect("rows").x.nrows();
        let counted = if *weighted { ALL * 4 / 5 } else { ALL };
        assert_eq!(count(&right), counted);
        assert!((150..278).contains(&count(&found)), "{}", count(&found));
        assert_eq!(found.posterior.past().expect("some").rows + count(&found), counted);
        assert_eq!((found.rows, right.rows), (ALL, ALL));
        let x = places(&found);
        let of = |of: &Fitted| of.posterior.predict_f_full(x.as_ref()).expect("predictions");
        let (own, all) = (of(&found), of(&right));
        close(&own.0, &all.0, 1e-9, kernel);
        own.1.iter().zip(&all.1).for_each(|(a, b)| close(a, b, 1e-9, kernel));
        let of = |of: &Fitted| of.posterior.predict_f(x.as_ref()).expect("predictions");
        let (own, all) = (of(&found), of(&right));
        close(&own.0, &all.0, 1e-9, kernel);
        close(&own.1, &all.1, 1e-9, kernel);
        assert!((bound - sum).abs() < 1e-8 * sum.abs(), "{kernel}: {bound} and {sum}");
        // of all rows, in whatever order they came, by dense matrices
        let mut exact = problem.options.clone();
        exact.method = "exact".into();
        exact.set =
            right.model.params().iter().map(|(p, v)| (p.clone(), v.value().to_vec())).collect();
        exact.mean = Some("zero".into());
        let exact = fit(&problem.all, &exact).expect("a fit");
        let dense = exact.posterior.predict_f(x.as_ref()).expect("predictions");
        // an `rbf` is approximated
        let tolerance = if kernel.starts_with("rbf") { 1e-4 } else { 1e-7 };
        close(&own.0, &dense.0, tolerance, kernel);
        close(&own.1, &dense.1, tolerance, kernel);
        // rows left out
        let kept = found.posterior.kept_rows().expect("rows").clone();
        let left = found.posterior.leave_one_out(&found.model, &kept).expect("rows left out");
        let all = right.posterior.leave_one_out(&right.model, &kept).expect("rows left out");
        close(&left.mean, &all.mean, 1e-9, kernel);
        close(&left.log_density, &all.log_density, 1e-8, kernel);
        let names = ["t".to_owned()];
        let terms = |of: &Fitted| of.posterior.predict_terms(x.as_ref(), &names, false).unwrap();
        for (a, b) in terms(&found).iter().zip(&terms(&right)) {
            assert_eq!(a.name, b.name);
            let column = |own: &[f64]| Mat::from_fn(own.len(), 1, |i, _| own[i]);
            close(&column(&a.mean), &column(&b.mean), 1e-8, &a.name);
        }
    }
}

/// The model of the rows so far, read from a file in the midst of them, ends at the same bits.
#[test]
fn files_resume_to_the_same_bits() {
    for late in [true, false] {
        resumes(late);
    }
}

fn resumes(late: bool) {
    let problem = Problem::new("matern32 + linear", (1.0, 1.0), 2, [true, late]);
    let own = UpdateOptions { keep_rows: Some(150), ..UpdateOptions::default() };
    let step = |of: &Fitted, from: usize, to: usize| {
        update(of, &problem.part(from, to), &own, &mut |_, _| Ok(())).expect("rows").0
    };
    let mut whole = problem.fitted(FIRST);
    let mut read = whole.clone();
    for from in (FIRST..ALL).step_by(60) {
        whole = step(&whole, from, from + 60);
        read = io::from_bytes(&io::to_bytes(&read).expect("bytes")).expect("a model");
        read = step(&read, from, from + 60);
        let x = places(&whole);
        let of = |of: &Fitted| of.posterior.predict_f(x.as_ref()).expect("predictions");
        assert_eq!(of(&whole), of(&read));
        assert_eq!(whole.posterior.past(), read.posterior.past());
        let objective = |of: &Fitted| of.report.as_ref().expect("a report").objective;
        assert_eq!(objective(&whole), objective(&read));
    }
    assert!(whole.posterior.past().is_some());
}

/// Sites of rows that have left stay what they were then: far behind the window that is what they are.
#[test]
fn other_likelihoods_keep_the_sites_of_rows_that_have_left() {
    for (likelihood, late) in
        [("poisson", true), ("bernoulli", false), ("softmax(classes=3)", false)]
    {
        let t = times(1.0, late);
        let x = Mat::from_fn(ALL, 1, |i, _| t[i]);
        let y = Mat::from_fn(ALL, 1, |i, _| {
            let f = 1.5 * target(t[i], i, 0) - 0.006 * t[i];
            match likelihood {
                "poisson" => (f.exp() + 1.2 + (3.3 * i as f64).sin()).floor(),
                "bernoulli" => f64::from(f > 0.0),
                _ => (f + 1.5).clamp(0.0, 2.9).floor(),
            }
        });
        let plain = Standardise { inputs: true, ..PLAIN };
        let all = Dataset::from_arrays(x, y, plain).expect("a table");
        let own = FitOptions {
            likelihood: Some(likelihood.into()),
            kernel: "matern32(variance=1.2, lengthscales=0.02) + matern12(variance=0.3, lengthscales=0.04)".into(),
            ..options("markov", 0)
        };
        let problem = Problem::of(all, own, true);
        let ((found, bound), (right, sum)) = (problem.followed(250), problem.followed(0));
        let at = places(&found);
        // the sites of the last rows that left did not know what came long after them
        let from = Mat::from_fn(40, 1, |i, _| at[(i, 0)].max(at[(0, 0)]) + 0.02 * i as f64);
        let x = if likelihood == "poisson" { at } else { from };
        let of = |of: &Fitted| of.posterior.predict_f(x.as_ref()).expect("predictions");
        let (own, all) = (of(&found), of(&right));
        // steps end where they promise 1e-10 nats, and come near to that slowly where classes share a shift
        let tolerance = if likelihood.starts_with("softmax") { 1e-4 } else { 1e-6 };
        close(&own.0, &all.0, tolerance, likelihood);
        close(&own.1, &all.1, tolerance, likelihood);
        assert!((bound - sum).abs() < 1e-6 * sum.abs(), "{likelihood}: {bound} and {sum}");
        let again = io::from_bytes(&io::to_bytes(&found).expect("bytes")).expect("a model");
        assert_eq!(of(&again), own, "{likelihood}");
    }
}

/// Targets that are missing part the columns, for good where such a row has left.
#[test]
fn missing_targets_leave_too() {
    let mut problem = Problem::new(
        "matern32(variance=0.7, lengthscales=0.07) + linear(variance=0.4)",
        (1.0, 1.0),
        2,
        [false, false],
    );
    for i in 0..ALL {
        if (410..600).contains(&i) && i % 9 == 4 {
            problem.rows.y[(i, i % 2)] = f64::NAN;
        }
    }
    let ((found, bound), (right, sum)) = (problem.followed(150), problem.followed(0));
    assert_eq!(found.posterior.past().expect("some").starts.len(), 2);
    let x = places(&found);
    let of = |of: &Fitted| of.posterior.predict_f(x.as_ref()).expect("predictions");
    let (own, all) = (of(&found), of(&right));
    close(&own.0, &all.0, 1e-9, "means");
    close(&own.1, &all.1, 1e-9, "variances");
    assert!((bound - sum).abs() < 1e-8 * sum.abs(), "{bound} and {sum}");
    let again = io::from_bytes(&io::to_bytes(&found).expect("bytes")).expect("a model");
    assert_eq!(of(&again), own);
}

#[test]
fn what_is_before_a_window_is_refused_by_name() {
    let problem = Problem::new("matern32", (3.0, 2.0), 1, [false, false]);
    let (found, _) = problem.followed(150);
    let says = |error: sparsegp::Error, words: &[&str]| {
        let text = error.to_string();
        words.iter().for_each(|word| assert!(text.contains(word), "{word}: {text}"));
    };
    let from: f64 = found.kept_from().expect("a place").parse().expect("a number");
    let at = |t: f64| Mat::from_fn(3, 1, |i, _| t + 300.0 * i as f64);
    let words: &[&str] = &["x0", "have left", "keep_rows"];
    // the place that is named is known
    found.predict(at(from).as_ref(), Of::Latent).expect("predictions");
    let error = found.predict(at(from - 1.0).as_ref(), Of::Latent).expect_err("refused");
    says(error, words);
    let below = at(found.posterior.past().expect("some").t() - 1e-9);
    says(found.posterior.predict_f(below.as_ref()).expect_err("refused"), &words[1..]);
    says(found.posterior.predict_f_full(below.as_ref()).expect_err("refused"), &words[1..]);
    let learn = |of: &Fitted, part: &Dataset, own: UpdateOptions| {
        update(of, part, &own, &mut |_, _| Ok(())).expect_err("refused")
    };
    let plain = UpdateOptions::default;
    says(learn(&found, &problem.part(100, 110), plain()), words);
    let new = problem.part(ALL - 10, ALL);
    let fading = UpdateOptions { forget: 0.9, ..plain() };
    says(learn(&found, &new, fading.clone()), &["forget", "have left"]);
    let few = UpdateOptions { keep_rows: Some(50), ..plain() };
    says(
        learn(&problem.fitted(FIRST), &new, UpdateOptions { keep_rows: Some(50), ..fading }),
        &["keep_rows", "forget"],
    );
    for method in ["vecchia", "titsias2025", "exact"] {
        let own = FitOptions { method: method.into(), ..problem.options.clone() };
        let other = fit(&problem.part(0, 100), &own).expect("a fit");
        says(learn(&other, &new, few.clone()), &["keep_rows", "markov", method]);
    }
    let error = found
        .posterior
        .leave_one_out(&found.model, &problem.rows.picked(&[3]))
        .expect_err("refused");
    says(error, &["row 1", "left"]);
    // all are kept where weights fade, and where few have come
    let first = problem.fitted(FIRST);
    let (kept, report) = update(&first, &new, &plain(), &mut |_, _| Ok(())).expect("rows");
    assert!(kept.posterior.past().is_none() && report.left == 0);
}
