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
