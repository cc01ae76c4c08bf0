//! L-SVGP and R-SVGP from the command line.

use crate::support::{Folder, close, number, plane, snelson};

#[test]
fn both_are_trained_saved_and_scored() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let mut objectives = Vec::new();
    for (method, more) in [
        ("svgp", ""),
        ("lsvgp", ""),
        ("rsvgp", "--epochs 2000 --learning-rate 0.02"),
        (
            "rsvgp",
            "--epochs 2000 --learning-rate 0.02 --probes 0 --inverse-schedule log-linear --inverse-tolerance 1e-3",
        ),
        (
            "rsvgp",
            "--epochs 2000 --learning-rate 0.02 --inverse-slack 0.01 --inverse-steps 50 --inducing-wait 0",
        ),
    ] {
        let fit = format!("fit s.csv --target y --method {method} --inducing 12 {more} -o m");
        folder.ok(&fit);
        let report = folder.json("inspect m");
        objectives.push(number(&report, "/objective"));
        let paths: Vec<&str> = report["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|p| p["path"].as_str())
            .collect();
        assert_eq!(paths.contains(&"q.lambda"), method != "svgp", "{paths:?}");
        assert_eq!(paths.contains(&"q.t_sqrt"), method == "rsvgp", "{paths:?}");
        let scores = folder.ok("score m s.csv");
        assert!(scores.out.contains("NLPD"), "{}", scores.out);
    }
    // on this table one noise variance for each inducing point is as good as a full covariance
    objectives.iter().for_each(|o| close(*o, objectives[0], 0.03));
}

/// By either precision the model is the same to what it prints, and what needs more digits says so.
#[test]
fn mixed_precision_is_double_precision_where_it_has_to_be() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let fit = "fit s.csv --target y --method titsias2025 --inducing 20 --max-iterations 20 -o";
    folder.ok(&format!("{fit} double"));
    let mixed = folder.ok(&format!("{fit} mixed --precision mixed"));
    assert!(!mixed.err.contains("double precision"), "{}", mixed.err);
    let objective = |model: &str| number(&folder.json(&format!("inspect {model}")), "/objective");
    close(objective("mixed"), objective("double"), 1e-3);
    let set = "--set likelihood.variance=1e-8 --freeze likelihood.variance";
    let run = folder.ok(&format!("{fit} precise --precision mixed {set}"));
    assert!(run.err.contains("the fit is in double precision"), "{}", run.err);
}

/// Predictions in mixed precision have the means of double precision and deviations within a hundredth, or say why not.
#[test]
fn predictions_in_mixed_precision_agree_or_say_why_not() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    folder.ok("fit s.csv --target y --method titsias2025 --inducing 15 --max-iterations 20 -o m");
    let numbers = |more: &str| -> Vec<Vec<f64>> {
        let run = folder.ok(&format!("predict m s.csv {more}"));
        assert!(!run.err.contains("precision"), "{}", run.err);
        let rows = run.out.lines().skip(1);
        rows.map(|row| row.split(',').map(|cell| cell.parse().unwrap()).collect()).collect()
    };
    let (double, mixed) = (numbers(""), numbers("--precision mixed"));
    assert_ne!(double, mixed, "nothing is rounded");
    assert_eq!(double.len(), mixed.len());
    for (a, b) in double.iter().zip(&mixed) {
        close(a[0], b[0], 1e-9);
        close(b[1] / a[1], 1.0, 1e-2);
    }
    let set = "--kernel rbf(lengthscales=[1]) --set likelihood.variance=1e-8 --freeze likelihood.variance --freeze kernel";
    folder.ok(&format!(
        "fit s.csv --target y --method titsias2025 --inducing 20 --max-iterations 5 {set} -o p"
    ));
    let run = folder.ok("predict p s.csv --precision mixed");
    assert!(run.err.contains("predictions are in double precision"), "{}", run.err);
    assert_eq!(run.out, folder.ok("predict p s.csv").out);
    let report = folder.json("predict p s.csv --precision mixed -o out.csv");
    assert_eq!(report["precision"], "double");
    folder.ok("fit s.csv --target y --method exact --max-iterations 5 -o e");
    folder.refused(1, "predict e s.csv --precision mixed", &["`exact` has no mixed precision"]);
    // rows that lack a number: some, or all
    folder.write("gaps.csv", "x0\n0.3\n\"\"\n1.9\n");
    folder.write("nothing.csv", "x0\n\"\"\n\"\"\n");
    let out = folder.ok("predict m gaps.csv --missing keep --precision mixed").out;
    assert_eq!((out.lines().count(), out.lines().nth(2)), (4, Some(",,,")), "{out}");
    let all = "predict m nothing.csv --missing keep";
    assert_eq!(folder.ok(&format!("{all} --precision mixed")).out, folder.ok(all).out);
    folder.refused(
        1,
        "predict e nothing.csv --precision mixed",
        &["`exact` has no mixed precision"],
    );
    // what a model was trained in is another matter
    let fit = "fit s.csv --target y --method titsias2025 --inducing 15 --max-iterations 20 --precision mixed -o t";
    folder.ok(fit);
    assert!(folder.ok("inspect t").out.contains("trained in mixed precision"));
    assert_eq!(folder.json("inspect t")["training"]["precision"], "mixed");
    assert_eq!(folder.json("inspect m")["training"]["precision"], "double");
}

#[test]
fn classes_by_the_robust_maximum() {
    let folder = Folder::new();
    let rows: String = (0..150)
        .map(|i| {
            let (a, b) = ((0.7 * i as f64).sin() * 2.0, (1.3 * i as f64).cos() * 2.0);
            let class = if a > 0.5 {
                "right"
            } else if b > 0.0 {
                "up"
            } else {
                "down"
            };
            format!("{a},{b},{class}\n")
        })
        .collect();
    folder.write("c.csv", format!("a,b,class\n{rows}"));
    let fit = "fit c.csv --target class --likelihood robust-max --method rsvgp --inducing 20 --batch 50 \
               --epochs 400 --learning-rate 0.02 -o m";
    folder.ok(fit);
    let scores = folder.json("score m c.csv");
    let text = scores.to_string();
    assert!(text.contains("accuracy"), "{text}");
}

#[test]
fn what_has_no_sense_is_refused() {
    let folder = Folder::new();
    folder.write("p.csv", plane(60));
    let fit = "fit p.csv --target y --features a,b -o m --method";
    for (more, parts) in [
        ("svgp --probes 10", ["--probes", "rsvgp"]),
        ("lsvgp --inverse-steps 3", ["--inverse-steps", "rsvgp"]),
        ("exact --single", ["--single", "rsvgp"]),
        ("exact --precision mixed", ["--precision", "inducing points"]),
        ("gibbs-sparse --precision mixed", ["--precision", "without draws"]),
        ("svgp --precision half", ["--precision", "double, mixed"]),
        ("rsvgp --natural-rate 0.5", ["--natural-rate", "svgp"]),
        ("lsvgp --no-natural", ["--no-natural", "svgp"]),
        ("rsvgp --diagonal", ["--diagonal", "svgp"]),
        ("rsvgp --tying natural", ["--tying", "tsvgp"]),
        ("lsvgp --jitter 1e-5", ["--jitter", "factorised"]),
        ("rsvgp --probes 1.5", ["--probes", "whole number"]),
        ("rsvgp --kernel rbf;rbf --likelihood heteroscedastic", ["share kernel", "svgp"]),
        ("rsvgp --full-batch --probes 5", ["--probes", "--full-batch"]),
    ] {
        let run = folder.run(&format!("{fit} {more}"));
        assert!(run.code.is_some_and(|code| code > 0), "{more}");
        assert!(parts.iter().all(|part| run.err.contains(part)), "{more}: {}", run.err);
        assert!(!folder.path("m").exists());
    }
    // what acts is taken
    for more in ["svgp --inducing-wait 3", "rsvgp --m-steps 2", "lsvgp --jitter absolute:1e-5"] {
        folder.ok(&format!("{fit} {more} --inducing 5 --epochs 1"));
    }
}
