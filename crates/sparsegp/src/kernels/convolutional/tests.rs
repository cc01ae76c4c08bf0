use super::*;
use crate::kernels::parse;
use crate::kernels::tests::{value, wave};
use crate::linalg::dot;

fn read(spec: Value, pixels: usize) -> Convolutional {
    Convolutional::from_json(&spec, Inputs::unnamed(pixels)).unwrap()
}

/// Images so many that they are worked on in several blocks, against plain sums over all pairs of patches.
#[test]
fn blocks_of_images_are_plain_sums() {
    for (image, patch, stride, colour) in [
        ([9, 8, 1], [2, 3], 1, "channels"),
        ([7, 8, 2], [2, 2], 1, "joint"),
        ([9, 7, 2], [3, 2], 2, "channels"),
    ] {
        let pixels = image.iter().product();
        let spec = json!({ "type": "conv", "image": image, "patch": patch, "stride": stride,
                           "colour": colour, "base": { "type": "matern32", "variance": 1.3 } });
        let mut kernel = read(spec, pixels);
        let count = kernel.grid().count();
        let weights: Vec<f64> = (0..count).map(|p| 0.4 + (p as f64).sin()).collect();
        kernel.weights.set("weights", &weights).unwrap();
        let n = 2 * kernel.images() + 3;
        let (x, z) = (wave(n, pixels, 0.7), wave(3, pixels, 1.9));
        let omega = kernel.omega();
        let mut patches = [Mat::new(), Mat::new()];
        kernel.grid().gather(x.as_ref(), &mut patches[0]);
        kernel.grid().gather(z.as_ref(), &mut patches[1]);
        let base = value(kernel.base(), patches[0].as_ref(), Some(patches[1].as_ref()));
        let own = value(&kernel, x.as_ref(), Some(z.as_ref()));
        let inducing = wave(4, kernel.grid().size(), 0.3);
        let with = value(kernel.base(), patches[0].as_ref(), Some(inducing.as_ref()));
        let mut cross = Mat::zeros(n, 4);
        kernel.cross(x.as_ref(), inducing.as_ref(), cross.as_mut());
        for i in 0..n {
            let sum = |f: &dyn Fn(usize) -> f64| (0..count).map(|p| omega[p] * f(p)).sum::<f64>();
            for j in 0..3 {
                let plain = sum(&|p| sum(&|q| base[(i * count + p, j * count + q)]));
                assert!((own[(i, j)] - plain).abs() < 1e-12, "{i} {j}");
            }
            for m in 0..4 {
                let plain = sum(&|p| with[(i * count + p, m)]);
                assert!((cross[(i, m)] - plain).abs() < 1e-12, "{i} {m}");
            }
        }
        // the way back to pixels is the adjoint of the way to patches
        let rows = wave(n * count, kernel.grid().size(), 2.7);
        let mut back = Mat::zeros(n, pixels);
        kernel.grid().scatter(rows.as_ref(), back.as_mut());
        let (one, other) =
            (dot(patches[0].as_ref(), rows.as_ref()), dot(x.as_ref(), back.as_ref()));
        assert!((one - other).abs() < 1e-10 * one.abs().max(1.0), "{one} {other}");
    }
}

#[test]
fn one_patch_is_the_base_and_equal_patches_are_one() {
    let spec =
        "convolutional(image=[2, 3, 1], patch=[2, 3], weights=[0.7], base=rbf(variance=1.6))";
    let (kernel, base) =
        (parse(spec, Inputs::unnamed(6)).unwrap(), parse("rbf(variance=1.6)", Inputs::unnamed(6)));
    let x = wave(7, 6, 0.9);
    let (own, base) = (value(&*kernel, x.as_ref(), None), value(&*base.unwrap(), x.as_ref(), None));
    assert!((&own - base * faer::Scale(0.49)).norm_max() < 1e-14);
    let spec = json!({ "type": "convolutional", "image": [5, 5, 1], "patch": [2, 2] });
    let kernel = read(spec, 25);
    let mut x = Mat::zeros(1, 25);
    x[(0, 12)] = 1.0;
    let (patches, omega) = kernel.merged(x.as_ref());
    assert_eq!((patches.nrows(), omega.len()), (5, 5));
    assert!((omega.iter().sum::<f64>() - 1.0).abs() < 1e-14);
    // zeros of either sign are one patch
    x[(0, 0)] = -0.0;
    assert_eq!(kernel.merged(x.as_ref()).1.len(), 5);
}

/// Equal patches are one in variances, and white noise would tell them apart.
#[test]
fn bases_with_white_noise_are_refused() {
    for base in ["white", "rbf + white", "rbf * (linear + noise)", "convolutional(base=white)"] {
        let spec = json!({ "type": "convolutional", "patch": [2, 2], "base": base });
        let error = Convolutional::from_json(&spec, Inputs::unnamed(16)).unwrap_err().to_string();
        assert!(error.contains("`white`") && error.contains("base"), "{error}");
    }
    let error = parse("linear + conv(base=rbf + white)", Inputs::unnamed(16)).unwrap_err();
    assert!(error.to_string().contains("`white`"), "{error}");
    // beside the kernel of images it is a part of every image
    assert!(parse("convolutional(base=rbf) + white", Inputs::unnamed(16)).is_ok());
}

#[test]
fn mistakes_are_named_with_both_numbers() {
    let refuse = |spec: &str, pixels: usize, words: &[&str]| {
        let error = parse(spec, Inputs::unnamed(pixels)).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}: {words:?}");
    };
    refuse("convolutional", 7, &["image=", "7"]);
    refuse("convolutional(image=[2, 3, 1])", 7, &["6 pixels", "7 input"]);
    refuse("convolutional(image=[2, 3, 1], patch=[3, 3])", 6, &["3×3", "2×3"]);
    refuse("convolutional(image=[2, 3])", 6, &["3 whole numbers", "[2,3]"]);
    refuse("convolutional(patch=[1, 0])", 4, &["2 whole numbers"]);
    refuse("convolutional(stride=0)", 4, &["stride", "0"]);
    refuse("convolutional(colour=grey)", 4, &["channels", "joint"]);
    refuse("convolutional(weights=[1, 2, 3])", 4, &["weights", "1", "3"]);
    refuse("convolutional(padding=1)", 4, &["padding", "stride"]);
    let kernel = parse("convolutional", Inputs::unnamed(16)).unwrap();
    let error = kernel.check(Mat::zeros(2, 9).as_ref()).unwrap_err().to_string();
    assert!(error.contains("16") && error.contains('9'), "{error}");
}

/// Images of few grey values, so that patches repeat, and patches.
fn images_and_patches() -> (Mat<f64>, Mat<f64>) {
    let images = Mat::from_fn(4, 16, |i, q| f64::from(u8::from((i * 5 + q * q) % 7 > 3)) * 0.7);
    let patches = Mat::from_fn(5, 4, |i, e| ((3 * i + 2 * e) % 5) as f64 * 0.3 - 0.2);
    (images, patches)
}

fn with_weights() -> Box<dyn Kernel> {
    let spec = "convolutional(patch=[2, 2], weighted=true, base=rbf(variance=1.3, lengthscales=0.8, ard=false))";
    let mut kernel = crate::kernels::parse(spec, Inputs::unnamed(16)).unwrap();
    let weights: Vec<f64> = (0..9).map(|p| 0.4 + 0.2 * p as f64 - 0.01 * (p * p) as f64).collect();
    kernel.params_mut().into_iter().last().unwrap().1.set("weights", &weights).unwrap();
    kernel
}

/// Slopes of Σ bar · k by the kernel's numbers, x and z; without those by images where that is said.
fn pulled(
    kernel: &dyn Kernel,
    x: &Mat<f64>,
    z: Option<&Mat<f64>>,
    bar: &Mat<f64>,
    images: bool,
) -> (Vec<f64>, Mat<f64>, Mat<f64>) {
    let z = z.map(|z| z.as_ref());
    let columns = z.map_or(x.nrows(), |z| z.nrows());
    let mut k = Mat::zeros(x.nrows(), columns);
    let mut tape = Tape::recording();
    kernel.evaluate(x.as_ref(), z, k.as_mut(), &mut tape);
    let mut params = vec![0.0; kernel.num_params()];
    let mut x_bar = Mat::zeros(x.nrows(), x.ncols());
    let mut z_bar = Mat::zeros(columns, z.map_or(0, |z| z.ncols()));
    let wanted = |columns: usize| images || columns < 16;
    let mut sinks = Cotangents {
        params: &mut params,
        x: wanted(x.ncols()).then(|| x_bar.as_mut()),
        z: z.filter(|z| wanted(z.ncols())).map(|_| z_bar.as_mut()),
    };
    let mut bar = bar.clone();
    kernel.vjp(x.as_ref(), z, k.as_ref(), bar.as_mut(), &mut tape, &mut sinks);
    (params, x_bar, z_bar)
}

#[test]
fn patches_take_the_place_of_images() {
    let (kernel, (images, patches)) = (with_weights(), images_and_patches());
    assert_eq!(kernel.interdomain().map(|own| (own.columns, own.inputs)), Some((4, 16)));
    let more = Mat::from_fn(3, 4, |i, e| 0.2 * (i + e) as f64);
    let bar =
        |n: usize, m: usize| Mat::from_fn(n, m, |i, j| 0.3 + ((2 * i + 3 * j) % 5) as f64 * 0.4);
    let value = |kernel: &dyn Kernel, x: &Mat<f64>, z: &Mat<f64>, bar: &Mat<f64>| {
        let mut k = Mat::zeros(x.nrows(), z.nrows());
        kernel.evaluate(x.as_ref(), Some(z.as_ref()), k.as_mut(), &mut Tape::off());
        crate::linalg::dot(k.as_ref(), bar.as_ref())
    };
    for (x, z) in [(&images, &patches), (&patches, &images), (&patches, &more)] {
        let bar = bar(x.nrows(), z.nrows());
        let (params, x_bar, z_bar) = pulled(&*kernel, x, Some(z), &bar, true);
        // without slopes of images equal patches count once
        let (fewer, x_less, z_less) = pulled(&*kernel, x, Some(z), &bar, false);
        for (a, b) in params.iter().zip(&fewer) {
            assert!((a - b).abs() < 1e-12 * (1.0 + a.abs()), "{a} {b}");
        }
        for (of, all, less) in [(x, &x_bar, &x_less), (z, &z_bar, &z_less)] {
            let apart = (all - less).norm_max();
            assert!(of.ncols() == 16 || apart < 1e-12, "{apart}");
        }
        let h = 1e-6;
        let close = |found: f64, slope: f64| {
            assert!((found - slope).abs() < 1e-7 * (1.0 + slope.abs()), "{found} {slope}");
        };
        let moved = |a: &Mat<f64>, at: (usize, usize), by: f64| {
            let mut a = a.clone();
            a[at] += by;
            a
        };
        for i in 0..x.nrows() {
            for q in 0..x.ncols() {
                let at = |by: f64| value(&*kernel, &moved(x, (i, q), by), z, &bar);
                close((at(h) - at(-h)) / (2.0 * h), x_bar[(i, q)]);
            }
        }
        for i in 0..z.nrows() {
            for q in 0..z.ncols() {
                let at = |by: f64| value(&*kernel, x, &moved(z, (i, q), by), &bar);
                close((at(h) - at(-h)) / (2.0 * h), z_bar[(i, q)]);
            }
        }
        let mut from = 0;
        for at in 0..kernel.params().len() {
            let own = kernel.params()[at].1.value().to_vec();
            for e in 0..own.len() {
                let with = |by: f64| {
                    let mut other = kernel.clone();
                    let mut own = own.clone();
                    own[e] += by;
                    other.params_mut().swap_remove(at).1.set("a number", &own).unwrap();
                    value(&*other, x, z, &bar)
                };
                close((with(h) - with(-h)) / (2.0 * h), params[from + e]);
            }
            from += own.len();
        }
    }
    // those of a matrix between images are transposed from the other side
    let side = |x: &Mat<f64>, z: &Mat<f64>| {
        let mut k = Mat::zeros(x.nrows(), z.nrows());
        kernel.evaluate(x.as_ref(), Some(z.as_ref()), k.as_mut(), &mut Tape::off());
        k
    };
    assert_eq!(side(&images, &patches), side(&patches, &images).transpose().to_owned());
    // variances with and without slopes of images
    let weights = [0.3, -1.1, 0.7, 2.0];
    let mut slopes = [(); 2].map(|()| vec![0.0; kernel.num_params()]);
    let mut x_bar = Mat::zeros(4, 16);
    let [with, without] = &mut slopes;
    let sink = Some(x_bar.as_mut());
    kernel.diag_vjp(images.as_ref(), &weights, &mut Cotangents { params: with, x: sink, z: None });
    let mut sinks = Cotangents { params: without, x: None, z: None };
    kernel.diag_vjp(images.as_ref(), &weights, &mut sinks);
    for (a, b) in slopes[0].iter().zip(&slopes[1]) {
        assert!((a - b).abs() < 1e-12 * (1.0 + a.abs()), "{a} {b}");
    }
}
