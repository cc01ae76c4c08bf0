use super::models::Models;
use super::promise::Promise;
use super::*;
use crate::linalg::Mat;
use crate::rng::stream;

/// Branin's function; its least value is 0.397887, at three places.
fn branin(x: f64, y: f64) -> f64 {
    use std::f64::consts::PI;
    let bow = y - 5.1 / (4.0 * PI * PI) * x * x + 5.0 / PI * x - 6.0;
    bow * bow + 10.0 * (1.0 - 1.0 / (8.0 * PI)) * x.cos() + 10.0
}

fn box_of_branin() -> Space {
    Space::parse(&["x=-5:10", "y=0:15"]).expect("a space")
}

/// Twelve trials of Branin's function with two constraints, of which two failed, and two trials under way.
fn underway(acquisition: &str) -> Optimiser {
    let options = Options {
        acquisition: acquisition.parse().expect("a name"),
        constraints: ["sum<=12", "difference>=-9"].map(|c| c.parse().expect("a bound")).to_vec(),
        ..Options::default()
    };
    let mut optimiser = Optimiser::new(box_of_branin(), options).expect("options");
    for i in 0..12 {
        let point =
            [-5.0 + 15.0 * f64::from((7 * i) % 12) / 11.0, 15.0 * f64::from((5 * i) % 12) / 11.0];
        let [x, y] = point;
        let value = if i % 6 == 5 { f64::NAN } else { branin(x, y) };
        optimiser.tell(&point, &[value, x + y, x - y + (x * y).sin()]).expect("a trial");
    }
    optimiser.begin(&[2.0, 3.0]).expect("inside");
    optimiser.begin(&[8.0, 1.0]).expect("inside");
    optimiser
}

fn models(optimiser: &Optimiser) -> Models {
    let known = Models::learnt(optimiser.space(), optimiser.options(), optimiser.trials());
    known.expect("fits").expect("values differ")
}

fn encoded(space: &Space, points: &[[f64; 2]]) -> Mat<f64> {
    space.encoded(&points.iter().map(|p| space.parts(p)).collect::<Vec<_>>())
}

/// The slopes of every rule against differences, with constraints, failures and trials under way.
#[test]
fn slopes_of_promises_are_those_of_differences() {
    for rule in ["ei", "ucb(beta=1.7)", "thompson"] {
        let optimiser = underway(rule);
        let known = models(&optimiser);
        assert!(known.success.is_some() && known.constraints.len() == 2);
        let space = optimiser.space();
        let pending = encoded(space, &[[2.0, 3.0], [8.0, 1.0]]);
        let mut rng = stream(5, "promise");
        let promise = Promise::new(&known, optimiser.options().acquisition, &pending, &mut rng)
            .expect("a rule");
        let x = encoded(space, &[[1.0, 2.5], [-3.0, 11.0], [9.0, 14.0], [4.0, 7.0]]);
        let scores = promise.at(x.as_ref(), true).expect("slopes");
        let plain = promise.at(x.as_ref(), false).expect("values");
        assert_eq!(plain.values, scores.values);
        for q in 0..2 {
            // drawn functions have waves of high frequencies, which ask for small steps, and large weights, which round: of
            // some steps the best
            let numeric = [1e-4, 1e-5, 1e-6].map(|h| {
                let moved = |by: f64| {
                    let own = |i, p| x[(i, p)] + if p == q { by } else { 0.0 };
                    promise.at(Mat::from_fn(4, 2, own).as_ref(), false).expect("values").values
                };
                let (above, below) = (moved(h), moved(-h));
                above.iter().zip(&below).map(|(a, b)| (a - b) / (2.0 * h)).collect::<Vec<_>>()
            });
            for i in 0..4 {
                let found = scores.slopes[(i, q)];
                let error = |of: &Vec<f64>| (found - of[i]).abs() / of[i].abs().max(1.0);
                let least = numeric.iter().map(error).fold(f64::INFINITY, f64::min);
                assert!(
                    least < 1e-5,
                    "{rule} {i} {q}: {found} {:?}",
                    numeric.clone().map(|of| of[i])
                );
            }
        }
    }
}

/// Without constraints and trials under way: the logarithm of the textbook's formula, from predictions.
#[test]
fn a_plain_promise_is_the_expected_improvement() {
    let mut optimiser = Optimiser::new(box_of_branin(), Options::default()).expect("options");
    for point in [[0.0, 1.0], [3.0, 9.0], [9.0, 2.0], [-4.0, 13.0], [5.0, 5.0], [-2.0, 4.0]] {
        optimiser.tell(&point, &[branin(point[0], point[1])]).expect("a trial");
    }
    let known = models(&optimiser);
    let mut rng = stream(1, "promise");
    let none = Mat::zeros(0, 2);
    let promise =
        Promise::new(&known, Acquisition::ExpectedImprovement, &none, &mut rng).expect("a rule");
    let points = [[2.5, 2.0], [-3.0, 10.0], [10.0, 15.0]];
    let found =
        promise.at(encoded(optimiser.space(), &points).as_ref(), false).expect("values").values;
    let at = optimiser.predict(&points.map(|p| p.to_vec())).expect("a model");
    let best = optimiser.best().expect("fits").expect("some");
    let scale = known.objective.scaler.y_scale[0];
    for (i, found) in found.iter().enumerate() {
        let u = (best.mean - at.mean[i]) / at.sd[i];
        let h = crate::special::normal_density(u) + u * crate::special::normal_cdf(u);
        let expected = (at.sd[i] * h / scale).ln();
        assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found} {expected}");
        assert_eq!(at.feasible[i], 1.0);
    }
}

/// What trials under way may give: means spread as the posterior says, at the variance that their places leave.
#[test]
fn trials_under_way_are_imagined() {
    let known = models(&underway("ei"));
    let pending = encoded(&box_of_branin(), &[[2.0, 3.0]]);
    let mut rng = stream(2, "imagined");
    let draws = 4000;
    let imagined = known.imagined(&pending, draws, &mut rng).expect("a posterior");
    let (mean, variance) = known.objective.posterior.predict_f(pending.as_ref()).expect("inputs");
    let (means, left) = imagined.predict_f(pending.as_ref()).expect("inputs");
    let (m, v) = (mean[(0, 0)], variance[(0, 0)]);
    let noise = known.objective.model.noise();
    assert!((left[(0, 0)] - v * noise / (v + noise)).abs() < 1e-6 * v.max(1e-6) + 1e-9);
    // the mean given a draw of the outcome has the variance v²/(v + noise)
    let average = (0..draws).map(|s| means[(0, s)]).sum::<f64>() / draws as f64;
    let spread = (0..draws).map(|s| (means[(0, s)] - average).powi(2)).sum::<f64>() / draws as f64;
    let expected = v * v / (v + noise);
    assert!((average - m).abs() < 5.0 * (expected / draws as f64).sqrt(), "{average} {m}");
    assert!(
        (spread / expected - 1.0).abs() < 5.0 * (2.0 / draws as f64).sqrt(),
        "{spread} {expected}"
    );
}

/// Trials by `ask(batch)` and `tell`.
fn run(optimiser: &mut Optimiser, trials: usize, batch: usize, of: &dyn Fn(&[f64]) -> Vec<f64>) {
    while optimiser.trials().len() < trials {
        for point in optimiser.ask(batch).expect("points") {
            optimiser.tell(&point, &of(&point)).expect("outcomes");
        }
    }
}

#[test]
fn branins_function_is_minimised_by_every_rule() {
    for (rule, batch, regret) in
        [("ei", 1, 0.02), ("ei", 4, 0.1), ("ucb", 1, 0.1), ("thompson", 2, 0.5)]
    {
        let options =
            Options { acquisition: rule.parse().expect("a name"), seed: 3, ..Options::default() };
        let mut optimiser = Optimiser::new(box_of_branin(), options).expect("options");
        run(&mut optimiser, 30, batch, &|p| vec![branin(p[0], p[1])]);
        let best = optimiser.best().expect("fits").expect("some");
        assert!(best.observed - 0.397_887 < regret, "{rule} {batch}: {best:?}");
        let trials = optimiser.trials();
        let close = |i: usize, j: usize| optimiser.is_at(&trials[i].point, &trials[j].point);
        assert!((0..30).all(|i| (0..i).all(|j| !close(i, j))), "{rule}: no point twice");
    }
}

/// A maximum on a boundary that a constraint draws, next to a region where trials fail.
#[test]
fn constraints_and_failures_are_learnt() {
    let space = Space::parse(&["a=0:1", "b=0:1"]).expect("a space");
    let options = Options {
        goal: Goal::Maximise,
        constraints: vec!["load<=1.5".parse().expect("a bound")],
        seed: 1,
        ..Options::default()
    };
    let mut optimiser = Optimiser::new(space, options).expect("options");
    // without the failures the best is a = 0.75, b = 0.75; with them a = 0.6, b = 0.9
    run(&mut optimiser, 30, 1, &|p| {
        let value = if p[0] > 0.6 { f64::NAN } else { p[0] + p[1] - 0.2 * (p[0] - p[1]).powi(2) };
        vec![value, p[0] + p[1]]
    });
    let best = optimiser.best().expect("fits").expect("some");
    assert!(best.observed > 1.47 && best.point[0] <= 0.6, "{best:?}");
    // what is far from the boundary has been given up
    let far = |own: &&Trial| own.has_failed() && own.point[0] > 0.75;
    let far = optimiser.trials().iter().filter(far).count();
    assert!(far < 10, "{far} failures");
    let probable =
        optimiser.predict(&[vec![0.3, 0.3], vec![0.9, 0.2], vec![0.55, 1.0]]).expect("models");
    let probable = probable.feasible;
    assert!(probable[0] > 0.9 && probable[1] < 0.2 && probable[2] < 0.5, "{probable:?}");
}

#[test]
fn mixed_and_finite_spaces_are_searched() {
    let space = Space::parse(&[
        "rate=1e-5:1:log",
        "layers=1:6:integer",
        "kind=a,b,c",
        "width=8:512:integer:log",
    ]);
    let mut optimiser =
        Optimiser::new(space.expect("a space"), Options { seed: 2, ..Options::default() })
            .expect("options");
    let of = |p: &[f64]| {
        let kind = [1.0, 0.0, 2.0][p[2] as usize];
        vec![
            (p[0].log10() + 3.0).powi(2)
                + 0.3 * (p[1] - 4.0).powi(2)
                + kind
                + (p[3] / 64.0).ln().powi(2),
        ]
    };
    run(&mut optimiser, 40, 1, &of);
    let best = optimiser.best().expect("fits").expect("some");
    assert!(best.observed < 0.1 && best.point[1] == 4.0 && best.point[2] == 1.0, "{best:?}");

    // all twelve points, each once, then none
    let space = Space::parse(&["n=1:4:integer", "kind=a,b,c"]).expect("a space");
    let mut optimiser = Optimiser::new(space.clone(), Options::default()).expect("options");
    run(&mut optimiser, 12, 1, &|p| vec![p[0] + p[1]]);
    let mut all: Vec<_> = optimiser.trials().iter().map(|own| format!("{:?}", own.point)).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 12);
    let refused = optimiser.ask(1).expect_err("no point").to_string();
    assert!(refused.contains("repeats"), "{refused}");
    let again = Options { repeats: true, ..Options::default() };
    let mut optimiser = Optimiser::new(space, again).expect("options");
    run(&mut optimiser, 14, 1, &|p| vec![p[0] + p[1]]);
}

/// With noise the best is judged by means, and a seed and the trials decide what comes next, also after a rest on file.
#[test]
fn searches_are_reproducible_and_resume_from_a_file() {
    let noisy = |p: &[f64]| {
        let noise = 40.0 * ((1e4 * p[0]).sin() + (1e4 * p[1]).cos());
        vec![branin(p[0], p[1]) + noise]
    };
    let begin = || {
        Optimiser::new(box_of_branin(), Options { seed: 9, ..Options::default() }).expect("options")
    };
    let (mut a, mut b) = (begin(), begin());
    run(&mut a, 10, 2, &noisy);
    run(&mut b, 8, 2, &noisy);
    let mut b = Optimiser::from_json(&b.to_json().expect("text")).expect("a search");
    run(&mut b, 10, 2, &noisy);
    assert_eq!(a.trials(), b.trials());
    let (next, then) = (a.ask(3).expect("points"), b.ask(3).expect("points"));
    assert_eq!(next, then);
    assert!(a.forget(&next[1]) && !a.forget(&next[1]));
    assert_eq!(a.trials().len(), 12);
    let best = a.best().expect("fits").expect("some");
    assert!(best.sd > 0.0 && best.mean != best.observed);
    for text in
        ["{}", "[1]", &a.to_json().expect("text").replace("matern52", "").replace("-5.0", "5e400")]
    {
        assert!(Optimiser::from_json(text).is_err());
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let space = box_of_branin;
    for (options, part) in [
        (Options { initial: Some(0), ..Options::default() }, "initial"),
        (Options { noise: Some(-1.0), ..Options::default() }, "noise"),
        (
            Options {
                constraints: vec!["a<=1".parse().expect("a bound"); 2],
                ..Options::default()
            },
            "twice",
        ),
    ] {
        let refused = Optimiser::new(space(), options).expect_err(part).to_string();
        assert!(refused.contains(part), "{refused}");
    }
    let mut own = Optimiser::new(space(), Options::default()).expect("options");
    assert!(own.tell(&[0.0, 1.0], &[f64::INFINITY]).expect_err("inf").to_string().contains("NaN"));
    assert!(
        own.tell(&[0.0, 1.0], &[1.0, 2.0]).expect_err("two").to_string().contains("the objective")
    );
    assert!(own.tell(&[0.0, 16.0], &[1.0]).expect_err("outside").to_string().contains("`y`"));
    assert!(
        own.predict(&[vec![0.0, 1.0]]).expect_err("no model").to_string().contains("two trials")
    );
    assert_eq!(own.best().expect("nothing"), None);
    // trials that do not differ, and only failures: the design continues
    let flat = Options { initial: Some(2), ..Options::default() };
    let mut own = Optimiser::new(space(), flat).expect("options");
    for point in own.ask(4).expect("points") {
        own.tell(&point, &[7.0]).expect("a trial");
    }
    own.tell(&[1.0, 1.0], &[f64::NAN]).expect("a failure");
    assert_eq!(own.ask(2).expect("points").len(), 2);
    assert_eq!(own.best().expect("some").map(|best| best.observed), Some(7.0));
    // a kernel that is not one
    let wrong = Options { initial: Some(2), kernel: "matern99".into(), ..Options::default() };
    let mut own = Optimiser::new(space(), wrong).expect("options");
    for (i, point) in own.ask(2).expect("points").iter().enumerate() {
        own.tell(point, &[i as f64]).expect("a trial");
    }
    assert!(own.ask(1).expect_err("no kernel").to_string().contains("matern"));
}

/// A known noise is that of the model; without noise the model goes through the values.
#[test]
fn a_known_noise_is_kept() {
    let of = |noise| {
        let options = Options { noise: Some(noise), ..Options::default() };
        let mut own = Optimiser::new(box_of_branin(), options).expect("options");
        run(&mut own, 8, 1, &|p| vec![branin(p[0], p[1])]);
        own
    };
    let own = of(5.0);
    let known = models(&own);
    let variance = known.objective.model.noise() * known.objective.scaler.y_scale[0].powi(2);
    assert!((variance - 25.0).abs() < 1e-9, "{variance}");
    let mut own = of(0.0);
    let points: Vec<Vec<f64>> = own.trials().iter().map(|t| t.point.clone()).collect();
    let means = own.predict(&points).expect("a model").mean;
    for (mean, trial) in means.iter().zip(own.trials()) {
        assert!((mean - trial.objective().expect("a value")).abs() < 0.05, "{mean}");
    }
}

/// Ranges of billions of whole numbers are searched in a bounded number of steps.
#[test]
fn wide_whole_numbers_end() {
    let space = Space::parse(&["n=0:1000000000:integer", "m=0:1000000000:integer", "k=a,b,c"]);
    let mut optimiser =
        Optimiser::new(space.expect("a space"), Options::default()).expect("options");
    for _ in 0..12 {
        let point = optimiser.ask(1).expect("a point").remove(0);
        let [n, m] = [point[0], point[1]].map(|v| v / 1e9);
        let value = (n - 0.3).powi(2) + (m - 0.7 - 0.1 * point[2]).powi(2);
        optimiser.tell(&point, &[value]).expect("an outcome");
    }
    assert!(optimiser.best().expect("a model").expect("some trial").observed < 0.1);
}

/// Outcomes at a bound keep it, although a model smooths them; ranges are checked and divided without overflow.
#[test]
fn outcomes_at_a_bound_keep_it() {
    let options =
        Options { constraints: vec!["n<=50".parse().expect("a bound")], ..Options::default() };
    let mut own = Optimiser::new(Space::parse(&["n=1:100:integer"]).expect("a space"), options)
        .expect("options");
    for n in [10.0, 30.0, 42.0, 49.0, 50.0, 51.0, 60.0, 75.0, 90.0] {
        own.tell(&[n], &[100.0 - n, n]).expect("a trial");
    }
    let best = own.best().expect("a model").expect("some trial");
    assert_eq!((best.point[0], best.observed), (50.0, 50.0));
}

#[test]
fn ranges_of_many_decades_are_divided() {
    let space = Space::parse(&["x=1e-200:1e200:log", "y=1e-12:1:log"]).expect("a space");
    let parts = space.parts(&[1.0, 1e-6]);
    assert!(parts.iter().all(|part| (part - 0.5).abs() < 1e-12), "{parts:?}");
    assert!((space.at(&parts)[1].ln() - 1e-6_f64.ln()).abs() < 1e-9);
    // beside a logarithmic range by rounding, not by its width
    assert!(space.check(&[1.0, 1e-12 * (1.0 - 1e-11)]).is_ok());
    assert!(space.check(&[1.0, -5e-10]).is_err() && space.check(&[1.0, 0.0]).is_err());
    assert!(Space::parse(&["n=-9223372036854775808:0:integer"]).is_err());
}
