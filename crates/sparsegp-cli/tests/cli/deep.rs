//! Deep models from the command line.

use crate::support::{Folder, column, number};
use std::time::{Duration, Instant};

/// A jump in one input, and a slope in another.
fn table(n: usize, from: usize) -> String {
    let mut text = String::from("a,b,y,side\n");
    for i in from..from + n {
        let a = (i as f64 * 0.618_033_988_749_895).fract() * 20.0;
        let b = (i as f64 * 0.754_877_666_246_693).fract();
        let noise = (i as f64 * 0.414_213_562_373_095).fract() - 0.5;
        let (high, side) = if a > 9.0 { (400.0, "right") } else { (100.0, "left") };
        text += &format!("{a:.4},{b:.4},{:.3},{side}\n", high + 30.0 * b + 8.0 * noise);
    }
    text
}

#[test]
fn layers_are_fitted_scored_and_shown() {
    let folder = Folder::new();
    folder.write("a.csv", table(300, 0));
    folder.write("b.csv", table(60, 1000));
    let line = "fit a.csv --target y --ignore side --method deep --layers 3 --inducing 20 --epochs 150 -o m.safetensors";
    let report = folder.json(line);
    assert_eq!(report["model"]["method"], "deep(layers=3)", "{report}");
    assert_eq!(
        (&report["model"]["layers"], &report["model"]["training"]["epochs"]),
        (&3.into(), &150.into())
    );
    let shown = folder.ok("inspect m.safetensors").out;
    for part in [
        "3: 2 inputs → 2 → 2 → 1 latent function",
        "layers[0].kernel.lengthscales",
        "likelihood.variance",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    let scores = folder.json("score m.safetensors b.csv");
    let rmse = number(&scores, "/scores/overall/rmse");
    assert!(rmse < 60.0, "{rmse}");
    let out = folder.ok("predict m.safetensors b.csv").out;
    let (low, mean, high) = (column(&out, "q0.025"), column(&out, "mean"), column(&out, "q0.975"));
    assert!(mean.iter().zip(&low).zip(&high).all(|((m, l), h)| l < h && m.is_finite()));
    // quantiles are of the mixture, not of a normal
    let sd = column(&out, "sd");
    let normal = (0..60).all(|i| ((high[i] - mean[i]) / sd[i] - 1.959_964).abs() < 1e-4);
    assert!(!normal);
    folder.ok("plot m.safetensors b.csv -o page.svg");
    folder.ok("plot m.safetensors a.csv --what layers -o layers.svg");
    let picture = folder.read("layers.svg");
    assert!(picture.contains("hidden layer 2 of 2") && picture.contains("along a"), "{picture}");
    folder.ok("report m.safetensors b.csv -o page.html");
    assert!(folder.read("page.html").contains("Hidden layers"));
    let skip =
        line.replace("--method deep --layers 3", "--method deep(layers=3,skip=true,kernels=own)");
    let report = folder.json(&skip.replace("--epochs 150 -o m.", "--epochs 10 -o s."));
    assert_eq!(report["model"]["method"], "deep(layers=3, skip=true, kernels=own)", "{report}");
    let shown = folder.ok("inspect s.safetensors").out;
    assert!(shown.contains("layers[1].kernels[1].lengthscales"), "{shown}");
    folder.ok("predict s.safetensors b.csv");
    assert_eq!(folder.ok(&line.replace("m.saf", "n.saf")).code, Some(0));
    let again = folder.ok("predict n.safetensors b.csv").out;
    assert_eq!(out, again);
    // classes, and the same under a protocol
    let report = folder.json(
        "fit a.csv --target side --ignore y --method deep(kind=w) --inducing 15 --epochs 60 -o c.safetensors",
    );
    assert_eq!(report["model"]["method"], "deep(kind=w)");
    let out = folder.ok("predict c.safetensors b.csv").out;
    assert!(column(&out, "p_left").iter().all(|p| (0.0..=1.0).contains(p)));
    let report = folder.json(
        "compare a.csv --target y --method svgp --method deep --inducing 15 --folds 2 -- --ignore side --epochs 5",
    );
    assert!(report.to_string().contains("deep"), "{report}");
}

/// A choice that is scored by four numbers beside one that is scored by five.
#[test]
fn choices_that_are_scored_differently_are_compared_by_name() {
    let folder = Folder::new();
    folder.write("a.csv", table(60, 0));
    let line = "compare a.csv --target y --likelihood student-t --likelihood gaussian --folds 2 -o runs.csv";
    for line in
        [line, &line.replace("student-t --likelihood gaussian", "gaussian --likelihood student-t")]
    {
        let report = folder.json(&format!("{line} -- --ignore side --max-iterations 5"));
        let runs = folder.read("runs.csv");
        let each = |name: &str| column(&runs, name);
        // a share, not a CRPS
        assert!(each("in 95 %").iter().all(|share| (50.0..=100.0).contains(share)), "{runs}");
        assert!(!report.to_string().contains("null"), "{report}");
    }
}

#[test]
fn what_layers_do_not_have_is_refused() {
    let folder = Folder::new();
    folder.write("a.csv", table(40, 0));
    let fit =
        "fit a.csv --target y --ignore side --method deep --inducing 8 --epochs 1 -o m.safetensors";
    for (more, parts) in [
        ("--restarts 2", &["--restarts", "deep"][..]),
        ("--full-batch", &["--full-batch"]),
        ("--mean linear", &["--mean"]),
        ("--natural-rate 0.1", &["--natural-rate"]),
        ("--max-iterations 5", &["--max-iterations"]),
        ("--pilot 10", &["--pilot", "one layer"]),
        ("--layers 0", &["--layers"]),
        ("--layers 99", &["from 1 to 20"]),
        ("--kernel rbf(colum=[1])", &["colum"]),
    ] {
        folder.refused(2, &format!("{fit} {more}"), parts);
    }
    folder.refused(2, &fit.replace("deep", "svgp --layers 2"), &["--layers", "svgp"]);
    folder.refused(2, &fit.replace("deep", "deep(kind=x)"), &["kind=x"]);
    folder.ok(&format!("{fit} --early-stopping 0.2 --patience 1"));
    folder.ok(fit);
    folder.refused(1, "update m.safetensors a.csv --again -o n.safetensors", &["one layer"]);
    folder.refused(1, "fit a.csv --from m.safetensors -o n.safetensors", &["one layer"]);
    folder.refused(1, "score m.safetensors a.csv --leave-one-out", &["one layer"]);
    let run = folder.ok("score m.safetensors a.csv");
    assert!(!run.out.contains("--leave-one-out"), "{}", run.out);
}

#[test]
fn a_killed_fit_resumes_from_its_checkpoint() {
    let folder = Folder::new();
    folder.write("a.csv", table(300, 0));
    let fit =
        "fit a.csv --target y --ignore side --method deep --inducing 12 --batch 30 --epochs 60";
    folder.ok(&format!("{fit} -o whole.safetensors"));
    let kept =
        format!("{fit} --checkpoint c.safetensors --checkpoint-every 0.01 -o killed.safetensors");
    let mut child = folder.command(&kept).spawn().unwrap();
    let begun = Instant::now();
    while !folder.path("c.safetensors").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    folder.ok(&kept);
    let predicted = |model: &str| folder.ok(&format!("predict {model} a.csv")).out;
    assert_eq!(predicted("whole.safetensors"), predicted("killed.safetensors"));
}

#[test]
fn layers_in_mixed_precision_say_so_or_why_not() {
    let folder = Folder::new();
    folder.write("a.csv", table(300, 0));
    let fit = "fit a.csv --target y --ignore side --method deep --inducing 20 --epochs 20";
    folder.ok(&format!("{fit} -o double"));
    let mixed = folder.ok(&format!("{fit} --precision mixed -o mixed"));
    assert!(!mixed.err.contains("double precision"), "{}", mixed.err);
    assert!(folder.ok("inspect mixed").out.contains("trained in mixed precision"));
    let objective = |model: &str| number(&folder.json(&format!("inspect {model}")), "/objective");
    assert!((objective("mixed") - objective("double")).abs() < 0.01 * 300.0);
    let set = "--set likelihood.variance=1e-7 --freeze likelihood.variance";
    let run = folder.ok(&format!("{fit} --precision mixed {set} -o precise"));
    assert!(run.err.contains("the fit is in double precision"), "{}", run.err);
    assert_eq!(folder.json("inspect precise")["training"]["precision"], "double");
    let relaxed = fit.replace("--method deep", "--method deep(kind=r)");
    folder.refused(2, &format!("{relaxed} --precision mixed -o r"), &["--precision", "kind=r"]);
    folder.refused(1, "predict mixed a.csv --precision mixed", &["`deep`", "one layer"]);
}
