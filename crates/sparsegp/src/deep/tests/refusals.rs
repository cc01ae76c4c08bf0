//! What does not fit is refused, where it would be a panic or wrong numbers.

use super::*;
use crate::kernels::convolutional::{Colour, Convolutional, Grid};
use serde_json::json;

fn says<T>(result: crate::Result<T>, words: &[&str]) {
    let text = result.err().expect("it is refused").to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?}");
}

fn model(layers: Vec<Layer>, likelihood: &str) -> crate::Result<Deep> {
    Deep::new(layers, likelihoods::parse(likelihood).unwrap())
}

fn last() -> Layer {
    recipe(Kind::W, "rbf", "zero", (2, 1))
}

/// A mean function of other widths: one of too few outputs left the last ones at whatever the memory held.
#[test]
fn mean_functions_are_of_the_widths_of_their_layer() {
    let with = |mean: Box<dyn Mean>| {
        let mut hidden = recipe(Kind::W, "rbf", "zero", (2, 2));
        hidden.mean = mean;
        model(vec![hidden, last()], "gaussian")
    };
    let named = |name: &str, inputs, outputs| means::by_name(name, inputs, outputs).unwrap();
    let projection = |d, p| Box::new(Projection::new(Mat::<f64>::zeros(d, p).as_ref()));
    says(with(named("constant", 2, 1)), &["mean function `constant` of layer 0", "2×2", "2×1"]);
    says(with(named("constant", 2, 3)), &["mean function `constant` of layer 0", "2×2", "2×3"]);
    says(with(named("linear", 3, 2)), &["`linear` of layer 0", "2×2", "3×2"]);
    // as many numbers, in another shape
    says(with(named("linear", 5, 1)), &["`linear` of layer 0", "2×2", "5×1"]);
    says(with(projection(1, 2)), &["`projection` of layer 0", "2×2", "1×2"]);
    let mut wide = recipe(Kind::W, "rbf", "zero", (2, 1));
    wide.mean = Box::new(Identity);
    says(wide.kl(), &["`identity` of the layer", "2×1", "2×2"]);
    assert!(with(named("constant", 2, 2)).is_ok() && with(named("linear", 2, 2)).is_ok());
    assert!(with(Box::new(Identity)).is_ok() && with(projection(2, 2)).is_ok());
}

#[test]
fn draws_of_other_shapes_are_refused_in_predictions() {
    let mut layers = super::images::layers(Sampling::Functions);
    let images = model(layers.clone(), "gaussian").unwrap();
    let predictor = images.predictor().unwrap();
    let x = Mat::zeros(3, 6);
    let predict = |rows: (usize, usize), functions: Vec<Mat<f64>>| {
        let draws = [Draws { rows: Mat::zeros(rows.0, rows.1), functions }];
        predictor.predict(x.as_ref(), 2, &Paths::Given(&draws)).map(|_| ())
    };
    let u = |m, p| vec![Mat::<f64>::zeros(m, p); 2];
    says(predict((6, 8), u(4, 2)), &["functions of layer 0", "5×2", "4×2"]);
    says(predict((6, 8), u(5, 1)), &["functions of layer 0", "5×2", "5×1"]);
    says(predict((6, 8), Vec::new()), &["functions of layer 0", "2 of 5×2", "0"]);
    says(predict((6, 7), u(5, 2)), &["layer 0", "6×8", "6×7"]);
    // only the second draw has another shape, and it is the one that is named
    let mut second = u(5, 2);
    second[1] = Mat::zeros(5, 3);
    says(predict((6, 8), second), &["functions of layer 0", "5×2", "5×3"]);
    assert!(predict((6, 8), u(5, 2)).is_ok());
    // layers of no images are sampled by rows in predictions, and need no draws of functions
    layers.truncate(0);
    let mut hidden = recipe(Kind::W, "rbf", "zero", (2, 2));
    hidden.sampling = Sampling::Functions;
    let plain = model(vec![hidden, last()], "gaussian").unwrap();
    let draws = [Draws { rows: Mat::zeros(6, 2), functions: Vec::new() }];
    let x = Mat::zeros(3, 2);
    let predictor = plain.predictor().unwrap();
    assert!(predictor.predict(x.as_ref(), 2, &Paths::Given(&draws)).is_ok());
}

fn patches(json: serde_json::Value, inputs: usize) -> crate::Result<Patches> {
    let kernel = Convolutional::from_json(&json, Inputs::unnamed(inputs))?;
    let size = kernel.grid().size();
    Patches::new(kernel, Mat::<f64>::zeros(2, size).as_ref())
}

/// Pixels that are not among the columns of a layer's rows.
#[test]
fn images_have_the_columns_that_their_grid_reads() {
    let spec = |dims: &[usize]| {
        json!({ "type": "convolutional", "image": [2, 2, 1], "patch": [1, 2],
                "active_dims": dims })
    };
    says(patches(spec(&[2, 3, 4, 5]), 6).map(|_| ()), &["6", "4"]);
    assert!(patches(spec(&[3, 2, 1, 0]), 6).is_ok());
}

#[test]
fn grids_of_layers_fit_their_columns() {
    let grid = |columns: &[usize]| Grid::new([3, 2, 1], [2, 1], 1, Colour::Channels, columns);
    let mut layers = super::images::layers(Sampling::Functions);
    layers[0].grid = Some(grid(&[0, 1, 2, 3, 4, 6]).unwrap());
    says(layers[0].kl(), &["3×2×1", "7 columns", "6"]);
    says(model(layers.clone(), "gaussian").map(|_| ()), &["3×2×1", "7 columns", "6"]);
    layers[0].grid = Some(grid(&[5, 1, 2, 3, 4, 0]).unwrap());
    assert!(model(layers, "gaussian").is_ok());
    let refuse = |image, patch, stride, columns: &[usize], words: &[&str]| {
        says(Grid::new(image, patch, stride, Colour::Joint, columns).map(|_| ()), words);
    };
    refuse([3, 2, 1], [2, 3], 1, &[0, 1, 2, 3, 4, 5], &["2×3", "3×2"]);
    refuse([3, 2, 1], [2, 1], 0, &[0, 1, 2, 3, 4, 5], &["stride of 0"]);
    refuse([3, 2, 1], [0, 1], 1, &[0, 1, 2, 3, 4, 5], &["0×1"]);
    refuse([0, 2, 1], [1, 1], 1, &[], &["0×2×1"]);
    refuse([3, 2, 1], [2, 1], 1, &[0, 1, 2], &["3×2×1", "found 3"]);
    refuse([usize::MAX, 2, 1], [2, 1], 1, &[0, 1, 2], &["found 3"]);
}

/// Trials that nobody gave were one for each row.
#[test]
fn trials_are_asked_for() {
    let start = Start { points: 4, ..Start::default() };
    let x = Mat::from_fn(10, 1, |i, _| i as f64 / 3.0);
    let y = Mat::from_fn(10, 1, |i, _| f64::from(u8::from(i % 2 == 0)));
    let begin = |extra: &[f64], likelihood: &str| {
        let likelihood = likelihoods::parse(likelihood).unwrap();
        Deep::start(x.as_ref(), y.as_ref(), extra, likelihood, &start)
    };
    says(begin(&[], "binomial").map(|_| ()), &["`binomial`", "trials of every row"]);
    says(begin(&[2.0; 3], "binomial").map(|_| ()), &["trials", "10", "3"]);
    let mut few = [2.0; 10];
    few[4] = 0.0;
    says(begin(&few, "binomial").map(|_| ()), &["row 4", "trials 0"]);
    // the constant at which the last layer starts is that of the rates
    let constant = |model: &Deep| {
        let params = model.params();
        let found = params.iter().find(|(path, _)| path == "layers[1].mean.constant");
        found.unwrap().1.scalar()
    };
    let (two, ten) = (begin(&[2.0; 10], "binomial").unwrap(), begin(&[9.0; 10], "binomial"));
    assert!(constant(&ten.unwrap()) < constant(&two) - 0.5);
    let (one, other) = (begin(&[], "poisson").unwrap(), begin(&[7.0; 10], "poisson").unwrap());
    assert!((constant(&one) - constant(&other) - 7.0_f64.ln()).abs() < 1e-12);
    // nor are bounds and predictions of trials that nobody gave
    let rows = Rows::plain(0, x.as_ref(), y.as_ref());
    let noise = Noise::Streams { seed: 0, step: 0 };
    let evaluate = |rows| {
        let batch = Batch { rows, population: 10.0, samples: 1 };
        two.evaluate(&batch, &noise, Want::default(), &mut Work::default()).map(|_| ())
    };
    says(evaluate(rows), &["trials of every row"]);
    assert!(evaluate(Rows { extra: &[2.0; 10], ..rows }).is_ok());
    let predictor = two.predictor().unwrap();
    let mixture = predictor.predict(x.as_ref(), 2, &Paths::Streams { seed: 1 }).unwrap();
    says(mixture.observations(&[]).map(|_| ()), &["trials of every row"]);
    says(mixture.quantiles(&[], &[0.5]).map(|_| ()), &["trials of every row"]);
    says(mixture.log_density(y.as_ref(), &[]).map(|_| ()), &["trials of every row"]);
    assert!(mixture.log_density(y.as_ref(), &[2.0; 10]).is_ok());
}

#[test]
fn targets_of_log_densities_are_those_of_the_likelihood() {
    let hidden = || recipe(Kind::W, "rbf", "zero", (2, 2));
    let x = Mat::from_fn(3, 2, |i, j| (i + 2 * j) as f64);
    let of = |likelihood: &str, width, y: [f64; 3], extra: &[f64]| {
        let layers = vec![hidden(), recipe(Kind::W, "rbf", "zero", (2, width))];
        let model = model(layers, likelihood).unwrap();
        let predictor = model.predictor().unwrap();
        let paths = Paths::Streams { seed: 1 };
        let mixture = predictor.predict(x.as_ref(), 3, &paths).unwrap();
        mixture.log_density(Mat::from_fn(3, 1, |i, _| y[i]).as_ref(), extra)
    };
    says(of("softmax(classes=3)", 3, [0.0, 3.0, 1.0], &[]), &["row 1", "target 3", "3 classes"]);
    says(of("poisson", 1, [0.0, 1.5, 1.0], &[]), &["row 1", "target 1.5", "not a count"]);
    says(of("poisson", 1, [0.0, 1.0, 1.0], &[1.0, 2.0, -1.0]), &["row 2", "exposure -1"]);
    says(of("gaussian", 1, [0.0, 1.0, f64::INFINITY], &[]), &["row 2", "inf"]);
    // a missing one is none that could be wrong, and does not count
    let found = of("poisson", 1, [0.0, f64::NAN, 1.0], &[]).unwrap();
    assert!(found[0] < 0.0 && found[1] == 0.0 && found[2] < 0.0, "{found:?}");
}

/// A path that is NaN was the density 0.
#[test]
fn rows_that_are_not_numbers_have_no_log_density() {
    let model = model(vec![recipe(Kind::W, "rbf", "zero", (2, 2)), last()], "gaussian").unwrap();
    let x = Mat::from_fn(2, 2, |i, _| if i == 0 { 0.3 } else { f64::NAN });
    let predictor = model.predictor().unwrap();
    let mixture = predictor.predict(x.as_ref(), 3, &Paths::Streams { seed: 1 }).unwrap();
    let found = mixture.log_density(Mat::<f64>::zeros(2, 1).as_ref(), &[]).unwrap();
    assert!(found[0].is_finite() && found[1].is_nan(), "{found:?}");
}

#[test]
fn layers_by_themselves_are_checked() {
    let mut layer = recipe(Kind::W, "rbf", "zero", (2, 2));
    let x = Mat::zeros(3, 2);
    let zero = || Mat::zeros(3, 2);
    let slopes = Slopes { a: zero(), b: zero(), c: zero() };
    assert!(layer.pull(x.as_ref(), &slopes, 1.0).is_ok() && layer.forward(x.as_ref()).is_ok());
    layer.groups[0].q = q(Kind::W, 4, 2, &mut rng::stream(1, "q"));
    says(layer.kl(), &["5 rows", "4"]);
    says(layer.forward(x.as_ref()).map(|_| ()), &["5 rows", "4"]);
    says(layer.pull(x.as_ref(), &slopes, 1.0).map(|_| ()), &["5 rows", "4"]);
}

#[test]
fn points_have_the_columns_of_their_kernel() {
    for spec in [
        "rbf",
        "cosine",
        "linear",
        "arccosine",
        "polynomial",
        "rbf + linear",
        "periodic(base=rbf(active_dims=[2]))",
        "constant * matern52",
        "changepoints(kernels=[constant, constant], active_dims=[2])",
        "coregion(output_dim=2, active_dims=[2])",
    ] {
        let kernel = parse(spec, Inputs::unnamed(3)).unwrap();
        let mut rng = rng::stream(1, "columns");
        let q = q(Kind::W, 4, 1, &mut rng);
        let group = Group::new(kernel.clone(), Mat::<f64>::zeros(4, 2).as_ref(), q.clone());
        says(group.map(|_| ()), &["3", "2"]);
        assert!(Group::new(kernel, Mat::<f64>::zeros(4, 3).as_ref(), q).is_ok(), "{spec}");
    }
}

#[test]
fn options_of_training_are_in_their_ranges() {
    let start = Start { points: 4, ..Start::default() };
    let x = Mat::from_fn(10, 1, |i, _| i as f64 / 3.0);
    let y = Mat::from_fn(10, 1, |i, _| (i as f64).sin());
    let gaussian = likelihoods::parse("gaussian").unwrap();
    let mut model = Deep::start(x.as_ref(), y.as_ref(), &[], gaussian, &start).unwrap();
    let data = InMemory::new(x, y).unwrap();
    let usual = StepOptions::default;
    let mut train = |options: StepOptions, words: &[&str]| {
        let mut batches = ShuffledInMemory::new(&data, 5, 7).unwrap();
        says(super::training::train(&mut model, &mut batches, &options, 1).map(|_| ()), words);
    };
    for rate in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        let found = format!("{rate}");
        train(StepOptions { learning_rate: rate, ..usual() }, &["`learning_rate`", &found]);
        train(StepOptions { last: rate, ..usual() }, &["`last`", &found]);
        train(StepOptions { natural: Some(rate), ..usual() }, &["`natural`", &found]);
    }
    train(StepOptions { natural: Some(1.1), ..usual() }, &["`natural`", "1.1"]);
}
