use super::{
    Bound, EmbedOptions, FittedGplvm, GplvmOptions, LatentStart, Setting, Targets, fit_gplvm,
    fit_gplvm_watched,
};
use crate::linalg::{Jitter, Mat};
use crate::optim::LbfgsOptions;
use crate::psi::Uncertain;
use crate::psi::tests::{kernel, spot};
use crate::rng::{stream, uniform};
use crate::terms::{Titsias2009, Titsias2025};
use rand_distr::{Distribution, StandardNormal};

/// Smooth functions of one hidden number, with noise of standard deviation 0.5, in odd units.
fn curve(n: usize, p: usize, seed: u64) -> (Vec<f64>, Mat<f64>) {
    let mut rng = stream(seed, "curve");
    let hidden: Vec<f64> = (0..n).map(|_| 4.0 * uniform(&mut rng) - 2.0).collect();
    let mut y = Mat::zeros(n, p);
    for j in 0..p {
        for i in 0..n {
            let noise: f64 = StandardNormal.sample(&mut rng);
            let phase = j as f64 * 0.7;
            y[(i, j)] = 30.0 + 10.0 * (1.2 * hidden[i] + phase).sin() + 0.5 * noise;
        }
    }
    (hidden, y)
}

fn options() -> GplvmOptions {
    GplvmOptions { inducing: 12, iterations: 300, ..GplvmOptions::default() }
}

fn trained() -> (FittedGplvm, Mat<f64>) {
    let (_, mut y) = curve(60, 6, 0);
    for i in 0..60 {
        (0..6).filter(|j| spot(i, 90 + j) < 0.15).for_each(|j| y[(i, j)] = f64::NAN);
    }
    (fit_gplvm(y.as_ref(), &options()).unwrap(), y)
}

#[test]
fn a_curve_is_found_and_missing_cells_are_filled_in() {
    let (fitted, _) = trained();
    // noise of a standard deviation of 0.5
    assert!(
        fitted.noise()[0].sqrt() > 0.3 && fitted.noise()[0].sqrt() < 0.8,
        "{}",
        fitted.noise()[0].sqrt()
    );
    assert_eq!(fitted.negative, 0);
    let (_, whole) = curve(25, 6, 1);
    let mut y = whole.clone();
    let mut gone = Vec::new();
    for i in 0..25 {
        for j in (0..6).filter(|j| (i + j) % 3 == 0) {
            y[(i, j)] = f64::NAN;
            gone.push((i, j));
        }
    }
    let (filled, variance) = fitted.impute(y.as_ref(), &EmbedOptions::default()).unwrap();
    let (mut square, mut scaled) = (0.0, 0.0);
    for (i, j) in &gone {
        let error = filled[(*i, *j)] - whole[(*i, *j)];
        square += error * error / gone.len() as f64;
        scaled += error * error / variance[(*i, *j)] / gone.len() as f64;
    }
    // targets have a standard deviation of 7
    assert!(square.sqrt() < 1.2, "{}", square.sqrt());
    // neither too sure nor too wide
    assert!(scaled > 0.25 && scaled < 4.0, "{scaled}");
    assert!(filled[(0, 1)] == y[(0, 1)] && variance[(0, 1)] == 0.0);
}

/// Rows of functions of two hidden numbers may lie in several places: intervals of cells that they lack hold what they say.
#[test]
fn intervals_of_missing_cells_hold() {
    let (mut held, mut count) = (0, 0);
    for seed in [2, 3] {
        let mut rng = stream(seed, "sheet");
        let mut normal = move || -> f64 { StandardNormal.sample(&mut rng) };
        let loads = Mat::from_fn(6, 5, |_, _| normal());
        let mut table = |n: usize| {
            let hidden = Mat::from_fn(n, 2, |_, _| normal());
            Mat::from_fn(n, 6, |i, p| {
                let along =
                    |a: usize| hidden[(i, 0)] * loads[(p, a)] + hidden[(i, 1)] * loads[(p, a + 1)];
                (along(0) + 3.0 * loads[(p, 4)]).sin() + 0.5 * along(2) + 0.1 * normal()
            })
        };
        let (learnt, whole) = (table(150), table(150));
        let own = GplvmOptions { dimensions: 2, inducing: 40, iterations: 1000, ..options() };
        let fitted = fit_gplvm(learnt.as_ref(), &own).unwrap();
        let gone = |i: usize, p: usize| (i * 7 + p * 5).is_multiple_of(3);
        let y = Mat::from_fn(150, 6, |i, p| if gone(i, p) { f64::NAN } else { whole[(i, p)] });
        let (filled, variance) = fitted.impute(y.as_ref(), &EmbedOptions::default()).unwrap();
        for i in 0..150 {
            for p in (0..6).filter(|p| gone(i, *p)) {
                let error = (filled[(i, p)] - whole[(i, p)]).abs();
                held += usize::from(error < 1.96 * variance[(i, p)].sqrt());
                count += 1;
            }
        }
    }
    let part = held as f64 / count as f64;
    assert!((0.92..0.98).contains(&part), "{part} of {count}");
}

#[test]
fn relevance_leaves_what_is_needed() {
    let (_, y) = curve(70, 5, 0);
    let wide = GplvmOptions { dimensions: 4, ..options() };
    let fitted = fit_gplvm(y.as_ref(), &wide).unwrap();
    let relevance = fitted.relevance();
    assert_eq!(relevance.len(), 4);
    assert!(relevance.contains(&1.0));
    // one hidden number is a curve in the first two components: no more than two dimensions are left
    let used = relevance.iter().filter(|r| **r > 0.05).count();
    assert!(used <= 2, "{relevance:?}");
}

/// Four columns that are linear in two numbers, in a space with one dimension too many and points beyond the rank of Kuu.
#[test]
fn a_linear_kernel_finds_the_rank() {
    let mut rng = stream(3, "plane");
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let hidden = Mat::from_fn(80, 2, |_, _| normal());
    let weights = Mat::from_fn(2, 6, |_, _| normal());
    let noise = Mat::from_fn(80, 6, |_, _| 0.1 * normal());
    let y = crate::linalg::product(hidden.as_ref(), weights.as_ref()) + noise;
    let linear =
        GplvmOptions { dimensions: 3, inducing: 5, kernel: "linear(ard=true)".into(), ..options() };
    let fitted = fit_gplvm(y.as_ref(), &linear).unwrap();
    let mut relevance = fitted.relevance();
    relevance.sort_by(f64::total_cmp);
    assert!(relevance[0] < 0.02 && relevance[1] > 0.05, "{relevance:?}");
    let noise = fitted.noise()[0].sqrt();
    assert!(noise > 0.08 && noise < 0.13, "{noise}");
    assert_eq!(fitted.negative, 0);
}

#[test]
fn units_shift_only_the_bound() {
    let (_, y) = curve(40, 4, 0);
    let of = |factor: f64| {
        let y = Mat::from_fn(40, 4, |i, j| factor * y[(i, j)] + 7.0);
        let few = GplvmOptions { iterations: 15, ..options() };
        fit_gplvm(y.as_ref(), &few).unwrap()
    };
    let (one, other) = (of(1.0), of(16.0));
    assert!((one.bound - other.bound - 160.0 * 16.0_f64.ln()).abs() < 1e-6 * one.bound.abs());
    assert!((other.noise()[0] / one.noise()[0] / 256.0 - 1.0).abs() < 1e-6);
}

#[test]
fn the_same_seed_gives_the_same_and_the_best_restart_is_kept() {
    let (_, y) = curve(30, 4, 0);
    let random = GplvmOptions {
        start: LatentStart::Random,
        restarts: 3,
        iterations: 25,
        kernel: "rbf + linear".into(),
        method: "titsias2009".into(),
        ..options()
    };
    let fitted = fit_gplvm(y.as_ref(), &random).unwrap();
    assert_eq!(fitted.restarts.len(), 3);
    let best = fitted.restarts.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
    assert!((fitted.bound - best).abs() < 1e-9);
    assert!(fitted.restarts[0] != fitted.restarts[1]);
    let again = fit_gplvm(y.as_ref(), &random).unwrap();
    assert_eq!(fitted.bound.to_bits(), again.bound.to_bits());
}

#[test]
fn rows_that_are_known_are_found_again() {
    let (fitted, y) = trained();
    let (mean, _) = fitted.latent().unwrap();
    let found = fitted.embed(y.as_ref(), &EmbedOptions::default()).unwrap();
    let mut off: Vec<f64> = (0..y.nrows())
        .map(|i| (0..2).map(|q| (found.mean[(i, q)] - mean[(i, q)]).powi(2)).sum::<f64>().sqrt())
        .collect();
    off.sort_by(f64::total_cmp);
    assert!(off[y.nrows() / 2] < 0.05, "{off:?}");
    assert!(found.converged.iter().filter(|c| **c).count() > y.nrows() * 9 / 10);
    // a row without cells is as the prior says, and its density is 1
    let none = Mat::from_fn(1, 6, |_, _| f64::NAN);
    let found = fitted.embed(none.as_ref(), &EmbedOptions::default()).unwrap();
    assert_eq!((found.mean[(0, 1)], found.variance[(0, 0)], found.bounds[0]), (0.0, 1.0, 0.0));
    let wrong = Mat::zeros(1, 5);
    let error = fitted.embed(wrong.as_ref(), &EmbedOptions::default()).unwrap_err();
    assert!(error.to_string().contains("6 columns"), "{error}");
}

/// A search that finds no lower value far from the optimum has stalled; one that rounding stops there has settled.
#[test]
fn a_search_that_stalls_has_not_converged() {
    let (fitted, y) = trained();
    let few = y.as_ref().subrows(0, 6);
    let with = |lbfgs: LbfgsOptions| {
        let options = EmbedOptions { lbfgs, iterations: 2000, ..EmbedOptions::default() };
        fitted.embed(few, &options).unwrap()
    };
    let easy = with(LbfgsOptions::default());
    assert_eq!(easy.converged, [true; 6]);
    let none = LbfgsOptions {
        gradient_tolerance: 0.0,
        objective_tolerance: 0.0,
        ..LbfgsOptions::default()
    };
    let all = with(none.clone());
    assert_eq!(all.converged, [true; 6]);
    (0..6).for_each(|i| assert!((all.bounds[i] - easy.bounds[i]).abs() < 1e-6));
    let short = with(LbfgsOptions { line_search_evaluations: 1, ..none });
    let off = |i: &usize| short.bounds[*i] < easy.bounds[*i] - 5e-5;
    assert!((0..6).any(|i| off(&i)), "{:?} {:?}", short.bounds, easy.bounds);
    (0..6).filter(off).for_each(|i| assert!(!short.converged[i], "{i}"));
}

/// So far away that the kernel is not a number: neither is a variance.
#[test]
fn variances_that_are_not_known_are_not_0() {
    let (n, q) = (8, 1);
    let mean = Mat::from_fn(n, q, |i, _| 0.5 * i as f64 - 2.0);
    let variance = Mat::full(n, q, 0.1);
    let y = Mat::from_fn(n, 1, |i, _| mean[(i, 0)]);
    let targets = Targets::new(y.as_ref()).unwrap();
    let x = Uncertain::new(mean.as_ref(), variance.as_ref()).unwrap();
    let k = kernel("rbf + linear", q);
    let z = Mat::from_fn(3, q, |i, _| i as f64 - 1.0);
    let setting = Setting {
        kernel: &*k,
        points: z.as_ref(),
        noise: 0.1,
        term: &Titsias2025,
        jitter: Jitter::Relative(1e-6),
        block: None,
    };
    let posterior = Bound::new(setting, x, &targets).unwrap().posterior();
    let far = Mat::full(1, q, 1e200);
    for spread in [0.0, 0.5] {
        let spread = Mat::full(1, q, spread);
        let at = Uncertain::new(far.as_ref(), spread.as_ref()).unwrap();
        let (_, variance) = posterior.predict_f(at).unwrap();
        assert!(variance[(0, 0)].is_nan(), "{variance:?}");
    }
}

#[test]
fn predictions_under_uncertain_inputs_are_those_of_a_grid() {
    let (n, q) = (15, 2);
    let mean = Mat::from_fn(n, q, |i, j| 4.0 * spot(i, 3 * j) - 2.0);
    let variance = Mat::from_fn(n, q, |i, j| 0.05 + 0.2 * spot(i + 7, j + 11));
    let y = Mat::from_fn(n, 2, |i, p| {
        let value = (1.3 * mean[(i, 0)] + p as f64).sin() + 0.5 * mean[(i, 1)];
        if (i + p) % 5 == 0 { f64::NAN } else { value }
    });
    let z = Mat::from_fn(5, q, |i, j| 4.0 * spot(i + 31, 2 * j + 5) - 2.0);
    let targets = Targets::new(y.as_ref()).unwrap();
    let x = Uncertain::new(mean.as_ref(), variance.as_ref()).unwrap();
    for spec in ["rbf(variance=1.3, lengthscales=[0.8, 1.4])", "rbf + linear(variance=0.3) + white"]
    {
        let k = kernel(spec, q);
        let setting = Setting {
            kernel: &*k,
            points: z.as_ref(),
            noise: 0.1,
            term: &Titsias2025,
            jitter: Jitter::Relative(1e-6),
            block: None,
        };
        let posterior = Bound::new(setting, x, &targets).unwrap().posterior();
        let at = Mat::from_fn(1, q, |_, j| 0.4 - 0.3 * j as f64);
        let spread = Mat::from_fn(1, q, |_, j| 0.3 + 0.4 * j as f64);
        let uncertain = Uncertain::new(at.as_ref(), spread.as_ref()).unwrap();
        let (own, own_variance) = posterior.predict_f(uncertain).unwrap();
        let step = 0.25;
        let nodes: Vec<f64> = (-38..=38).map(|i| step * f64::from(i)).collect();
        let count = nodes.len();
        let node = |i: usize, j: usize| if j == 0 { nodes[i / count] } else { nodes[i % count] };
        let grid =
            Mat::from_fn(count * count, q, |i, j| at[(0, j)] + spread[(0, j)].sqrt() * node(i, j));
        let zeros = Mat::zeros(count * count, q);
        let known = Uncertain::new(grid.as_ref(), zeros.as_ref()).unwrap();
        let (means, variances) = posterior.predict_f(known).unwrap();
        for p in 0..2 {
            let (mut first, mut second) = (0.0, 0.0);
            for i in 0..count * count {
                let square = node(i, 0).powi(2) + node(i, 1).powi(2);
                let w = step * step * (-0.5 * square).exp() / std::f64::consts::TAU;
                first += w * means[(i, p)];
                second += w * (variances[(i, p)] + means[(i, p)].powi(2));
            }
            assert!((own[(0, p)] - first).abs() < 1e-9, "{spec}");
            assert!((own_variance[(0, p)] - (second - first * first)).abs() < 1e-8, "{spec}");
        }
        // next to no uncertainty is none
        let tiny = Mat::from_fn(1, q, |_, _| 1e-13);
        let nearly = posterior.predict_f(Uncertain::new(at.as_ref(), tiny.as_ref()).unwrap());
        let zeros = Mat::zeros(1, q);
        let known = posterior.predict_f(Uncertain::new(at.as_ref(), zeros.as_ref()).unwrap());
        let (nearly, known) = (nearly.unwrap(), known.unwrap());
        assert!((&nearly.0 - &known.0).norm_max() < 1e-9, "{spec}");
        assert!((&nearly.1 - &known.1).norm_max() < 1e-8, "{spec}");
    }
}

#[test]
fn the_bound_of_a_row_has_the_slopes_of_differences() {
    use super::embed::Places;
    use crate::optim::Objective;
    let (fitted, _) = trained();
    let mut posterior = fitted.posterior;
    for term in [&Titsias2025 as &'static dyn crate::terms::Term, &Titsias2009] {
        posterior.term = term;
        let cells = [(0, 0.3), (2, -0.8), (5, 0.1)];
        let mut row = Places::of_row(&posterior, &cells);
        let at = [0.3, -0.7, -1.0, 0.4];
        let mut gradient = [0.0; 4];
        row.evaluate(&at, &mut gradient).unwrap();
        for k in 0..4 {
            let mut of = |h: f64| {
                let mut at = at;
                at[k] += h;
                row.evaluate(&at, &mut [0.0; 4]).unwrap()
            };
            let h = 1e-5;
            let difference = (of(h) - of(-h)) / (2.0 * h);
            assert!(
                (gradient[k] - difference).abs() < 1e-6 * (1.0 + difference.abs()),
                "{k}: {} {difference}",
                gradient[k]
            );
        }
    }
}

#[test]
fn a_training_ends_when_asked_to() {
    let (_, y) = curve(30, 4, 0);
    let two = GplvmOptions { restarts: 2, ..options() };
    let mut seen = Vec::new();
    let fitted = fit_gplvm_watched(y.as_ref(), &two, &mut |progress| {
        seen.push(progress);
        seen.len() < 5
    });
    let fitted = fitted.unwrap();
    assert_eq!(seen.iter().map(|p| p.iteration).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(seen[4].bound > seen[0].bound && fitted.restarts.len() == 1);
    assert!((fitted.bound - seen[4].bound).abs() < 1e-9 * fitted.bound.abs());
}

#[test]
fn options_that_are_not_possible_are_refused() {
    let (_, y) = curve(10, 3, 0);
    let refused = |options: GplvmOptions| fit_gplvm(y.as_ref(), &options).unwrap_err().to_string();
    let text = refused(GplvmOptions { method: "titsias2026".into(), ..options() });
    assert!(text.contains("titsias2025"), "{text}");
    let text = refused(GplvmOptions { kernel: "matern52".into(), ..options() });
    assert!(text.contains("`matern52`"), "{text}");
    let text = refused(GplvmOptions { dimensions: 0, ..options() });
    assert!(text.contains("latent dimensions"), "{text}");
    let text = refused(GplvmOptions { variance: 0.0, ..options() });
    assert!(text.contains("positive"), "{text}");
    let flat = Mat::from_fn(5, 2, |_, j| j as f64);
    let text = fit_gplvm(flat.as_ref(), &options()).unwrap_err().to_string();
    assert!(text.contains("do not vary"), "{text}");
    assert!("pka".parse::<LatentStart>().unwrap_err().to_string().contains("`pca`"));
}

/// More dimensions than the rows have are no worse than as many: the best map of fewer is among the starts.
#[test]
fn more_dimensions_end_no_lower() {
    let (_, y) = curve(40, 5, 2);
    let of = |dimensions| {
        let own = GplvmOptions { dimensions, restarts: 2, iterations: 150, ..options() };
        fit_gplvm(y.as_ref(), &own).unwrap()
    };
    let (one, three) = (of(1), of(3));
    assert!(three.bound > one.bound - 1.0, "{} {}", three.bound, one.bound);
    assert_eq!((one.restarts.len(), three.restarts.len()), (2, 3));
    assert_eq!(one.emptiness(), None);
}

#[test]
fn a_map_of_noise_is_empty_and_says_so() {
    let mut rng = stream(4, "noise");
    let y = Mat::from_fn(80, 6, |_, _| StandardNormal.sample(&mut rng));
    let own = GplvmOptions { dimensions: 2, iterations: 400, ..options() };
    let fitted = fit_gplvm(y.as_ref(), &own).unwrap();
    assert_eq!(fitted.relevance(), [0.0, 0.0], "{:?}", fitted.latent().unwrap().0);
    assert!(fitted.emptiness().unwrap().contains("the map is empty"));
}
