//! Layers of images and functions of patches.

use super::*;
use crate::kernels::Tape;
use crate::kernels::convolutional::{Colour, Convolutional, Grid};
use serde_json::json;

/// An image of 3×2 pixels to one of 2×2 pixels in two maps, and functions of patches of that, with an image beside them.
pub(super) fn layers(sampling: Sampling) -> Vec<Layer> {
    let mut rng = rng::stream(21, "images");
    let mut first = layer(
        &Recipe {
            kind: Kind::W,
            kernel: "rbf",
            mean: "linear",
            inputs: 2,
            outputs: 2,
            separate: false,
        },
        &mut rng,
    );
    let columns: Vec<usize> = (0..6).collect();
    first.grid = Some(Grid::new([3, 2, 1], [2, 1], 1, Colour::Channels, &columns).unwrap());
    first.sampling = sampling;
    let spec = json!({ "type": "convolutional", "image": [2, 2, 2], "patch": [2, 1], "colour": "joint",
                       "weights": [0.7, 1.6], "base": { "type": "rbf", "variance": 1.3 } });
    let kernel = Convolutional::from_json(&spec, Inputs::unnamed(8)).unwrap();
    let mut patches = Patches::new(kernel, normal(5, 4, 1.0, &mut rng).as_ref()).unwrap();
    patches.white = Some(crate::params::Param::positive(0.2));
    let points = parse("linear(variance=0.3) + rbf(variance=0.7)", Inputs::unnamed(8)).unwrap();
    let points = Points::new(points, normal(3, 8, 1.0, &mut rng).as_ref());
    let parts: [Box<dyn Variables>; 2] = [Box::new(patches), Box::new(points)];
    let q = q(Kind::W, 8, 1, &mut rng);
    let group = Group::with(Box::new(Stacked { parts }), q).unwrap();
    let mut last = Layer::new(vec![group], means::by_name("constant", 8, 1).unwrap());
    last.jitter = Jitter::Absolute(1e-2);
    vec![first, last]
}

/// Rows of six pixels.
pub(super) fn problem(sampling: Sampling) -> Problem {
    let layers = layers(sampling);
    let likelihood = likelihoods::parse("gaussian(variance=0.3)").unwrap();
    let model = Deep::new(layers, likelihood).unwrap();
    let mut rng = rng::stream(6, "images");
    let (n, samples) = (5, 2);
    let functions = match sampling {
        Sampling::Functions => (0..samples).map(|_| normal(5, 2, 1.0, &mut rng)).collect(),
        _ => Vec::new(),
    };
    let draws = vec![Draws { rows: normal(n * samples, 8, 1.0, &mut rng), functions }];
    let x = normal(n, 6, 1.0, &mut rng);
    Problem { model, x, y: normal(n, 1, 1.0, &mut rng), samples, draws }
}

#[test]
fn gradients_through_images_agree_with_differences() {
    for sampling in [Sampling::Functions, Sampling::Pixels] {
        check(&format!("{sampling:?}"), problem(sampling));
    }
}

#[test]
fn images_are_predicted_in_parts_as_whole() {
    let problem = problem(Sampling::Functions);
    let predictor = problem.model.predictor().unwrap();
    let paths = Paths::Streams { seed: 4 };
    let whole = predictor.predict(problem.x.as_ref(), 3, &paths).unwrap();
    let part = predictor.predict(problem.x.as_ref().subrows(2, 2), 3, &paths).unwrap();
    for (whole, part) in whole.means.iter().zip(&part.means) {
        assert!((0..2).all(|i| (whole[(2 + i, 0)] - part[(i, 0)]).abs() < 1e-12));
    }
    // a draw of the functions for every sample
    let given = predictor.predict(problem.x.as_ref(), 2, &Paths::Given(&problem.draws)).unwrap();
    assert_eq!(given.means.len(), 2);
    // the last layer's marginals of the bound at the same noise
    let seen = problem.evaluate(Want { layers: true, ..Want::default() });
    let last = &seen.layers[1];
    for t in 0..2 {
        for i in 0..5 {
            let own = [given.means[t][(i, 0)], given.variances[t][(i, 0)]];
            let theirs = [last.mean[(5 * t + i, 0)], last.variance[(5 * t + i, 0)]];
            let error = (0..2).map(|k| (own[k] - theirs[k]).abs()).fold(0.0, f64::max);
            assert!(error < 1e-13, "{t} {i}: {own:?} for {theirs:?}");
        }
    }
    let apart = (&given.means[0] - &given.means[1]).norm_max();
    assert!(apart > 1e-2, "draws make no difference: {apart}");
    let none = vec![Draws { functions: Vec::new(), ..problem.draws[0].clone() }];
    let error = predictor.predict(problem.x.as_ref(), 2, &Paths::Given(&none)).unwrap_err();
    assert!(error.to_string().contains("2 of 5×2, one per sample"), "{error}");
}

#[test]
fn images_are_not_sampled_pixel_by_pixel_unless_asked_for() {
    let gaussian = || likelihoods::parse("gaussian").unwrap();
    let says = |layers: Vec<Layer>, words: &[&str]| {
        let text = Deep::new(layers, gaussian()).unwrap_err().to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?}");
    };
    says(layers(Sampling::Rows), &["layer 0", "Functions"]);
    let mut plain =
        vec![recipe(Kind::W, "rbf", "zero", (2, 1)), recipe(Kind::W, "rbf", "zero", (1, 1))];
    plain[0].sampling = Sampling::Pixels;
    says(plain, &["layer 0", "Rows"]);
    let mut last = layers(Sampling::Functions);
    last.truncate(1);
    says(last, &["last layer", "images"]);
    let mut factors = layers(Sampling::Functions);
    factors[0].groups[0].q = factors[0].groups[0].q.clone().with_factors();
    says(factors, &["layer 0", "v"]);
    let columns: Vec<usize> = (0..6).collect();
    let mut wide = layers(Sampling::Functions);
    wide[0].grid = Some(Grid::new([3, 2, 1], [3, 1], 1, Colour::Channels, &columns).unwrap());
    says(wide, &["3 columns", "2"]);
}

/// What a kernel knows of another domain serves points as it serves patches, with the same gradients.
#[test]
fn points_in_patches_are_patches() {
    let spec = json!({ "type": "convolutional", "image": [3, 2, 1], "patch": [2, 1],
                       "weights": [0.7, 1.6, 0.4, 1.1], "base": { "type": "matern52", "variance": 1.3 } });
    let kernel = Convolutional::from_json(&spec, Inputs::unnamed(6)).unwrap();
    let mut rng = rng::stream(4, "images");
    let (n, m) = (7, 4);
    let z = normal(m, 2, 1.0, &mut rng);
    let (x, weights) = (normal(n, 6, 1.0, &mut rng), normal(n, 1, 1.0, &mut rng));
    let bars = [normal(m, m, 1.0, &mut rng), normal(n, m, 1.0, &mut rng)];
    let kinds: [Box<dyn Variables>; 2] = [
        Box::new(Patches::new(kernel.clone(), z.as_ref()).unwrap()),
        Box::new(Points::new(Box::new(kernel), z.as_ref())),
    ];
    let found = kinds.map(|own| {
        own.check().unwrap();
        assert_eq!((own.len(), own.inputs()), (m, 6));
        let mut tape = Tape::recording();
        let (mut kuu, mut kuf) = (Mat::zeros(m, m), Mat::zeros(n, m));
        let (mut kff, mut gradient) = (vec![0.0; n], vec![0.0; own.num_params()]);
        let mut x_bar = Mat::zeros(n, 6);
        let [mut kuu_bar, mut kuf_bar] = bars.clone();
        own.kuu(kuu.as_mut(), &mut tape);
        own.pull_kuu(kuu.as_ref(), kuu_bar.as_mut(), &mut tape, &mut gradient);
        tape.restart(true);
        own.kuf(x.as_ref(), kuf.as_mut(), &mut tape);
        let blocks = (kuf.as_ref(), kuf_bar.as_mut());
        own.pull_kuf(x.as_ref(), blocks, &mut tape, &mut gradient, Some(x_bar.as_mut()));
        own.kff(x.as_ref(), &mut kff);
        own.pull_kff(x.as_ref(), weights.col_as_slice(0), &mut gradient, Some(x_bar.as_mut()));
        let matrices = [kuu, kuf, x_bar];
        let mut all: Vec<f64> = [kff, gradient].concat();
        for a in &matrices {
            (0..a.ncols()).for_each(|j| all.extend(a.col_as_slice(j)));
        }
        all
    });
    let [patches, points] = &found;
    assert_eq!(patches.len(), points.len());
    for (i, (a, b)) in patches.iter().zip(points).enumerate() {
        assert!((a - b).abs() < 1e-12 * (1.0 + a.abs()), "{i}: {a} and {b}");
    }
}
