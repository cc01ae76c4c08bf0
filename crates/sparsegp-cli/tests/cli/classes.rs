//! Labels: from text or numbers to probabilities, scores and pictures.

use crate::support::{Folder, bundled, close, column, number, texts};

/// A few steps are enough to see everything work.
const SHORT: &str = "--inducing 12 --epochs 40 --learning-rate 0.05 --pilot 40";

/// The first rows of the banana data, with labels of text: `no`, `yes`.
fn banana(rows: usize) -> String {
    let text = bundled("banana.csv.gz");
    let mut lines = text.lines().take(rows + 1);
    let mut out = format!("{}\n", lines.next().unwrap());
    for line in lines {
        let (inputs, y) = line.rsplit_once(',').unwrap();
        out += &format!("{inputs},{}\n", if y == "1" { "yes" } else { "no" });
    }
    out
}

/// Three classes that lie one beside the other.
fn three(rows: usize) -> String {
    let mut out = String::from("a,b,kind\n");
    for i in 0..rows {
        let t = i as f64;
        let (a, b) = ((t * 0.754_877).fract() * 6.0, (t * 0.569_84).fract() * 2.0);
        out += &format!("{a},{b},{}\n", ["red, dark", "green", "blue"][(a / 2.0) as usize]);
    }
    out
}

#[test]
fn text_is_a_class_and_everything_agrees() {
    let folder = Folder::new();
    folder.write("b.csv", banana(160));
    let fit = folder.json(&format!("fit b.csv --target y --split 0.25 --plot p.svg -o m {SHORT}"));
    assert_eq!(fit["model"]["classes"], serde_json::json!(["no", "yes"]));
    assert_eq!(fit["model"]["likelihood"]["type"], "bernoulli");
    assert_eq!(fit["model"]["method"], "svgp");
    let accuracy = number(&fit, "/scores/test/overall/accuracy");
    assert!(accuracy > 0.7, "{accuracy}");
    // A map with both classes.
    let svg = folder.read("p.svg");
    for part in ["p(yes)", "p = 0.5", "inducing points", "\nno\n"] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("NaN"));
    // Predictions have the label of the larger probability, and give the scores.
    let predicted = folder.ok("predict m b.csv").out;
    assert!(predicted.starts_with("label,p_no,p_yes\n"), "{predicted}");
    let score = folder.json("score m b.csv --on all --plot r.svg");
    let (no, yes) = (column(&predicted, "p_no"), column(&predicted, "p_yes"));
    let truth = texts(&banana(160), "y");
    let (mut right, mut loss) = (0.0, 0.0);
    for (i, label) in texts(&predicted, "label").iter().enumerate() {
        close(no[i] + yes[i], 1.0, 1e-12);
        assert_eq!(label == "yes", yes[i] > no[i]);
        right += f64::from(u8::from(*label == truth[i])) / 160.0;
        loss -= if truth[i] == "yes" { yes[i] } else { no[i] }.ln() / 160.0;
    }
    close(number(&score, "/scores/overall/accuracy"), right, 1e-12);
    close(number(&score, "/scores/overall/log_loss"), loss, 1e-12);
    assert_eq!(score["classes"], serde_json::json!(["no", "yes"]));
    let confusion = |i, j| number(&score, &format!("/scores/overall/confusion/{i}/{j}"));
    close((confusion(0, 0) + confusion(1, 1)) / 160.0, right, 1e-12);
    assert!(folder.read("r.svg").contains("as certain as right"));
    let text = folder.ok("score m b.csv").out;
    for part in ["accuracy", "Brier", "AUC", "ECE", "true \\ predicted"] {
        assert!(text.contains(part), "{text}\nlacks {part}");
    }
    // What is in the model.
    let text = folder.ok("inspect m").out;
    for part in ["bernoulli(link=probit)", "2: no, yes", "epochs", "q.mu", "12×1", "minibatches"] {
        assert!(text.contains(part), "{text}\nlacks {part}");
    }
    assert!(!text.contains("noise "), "{text}");
    assert_eq!(fit["model"], folder.json("inspect m"));
    // The latent function.
    let latent = folder.ok("predict m b.csv --latent --quantiles 0.5").out;
    assert!(latent.starts_with("mean,sd,q0.5\n"));
    for (f, p) in column(&latent, "mean").iter().zip(&yes) {
        assert_eq!(*f > 0.0, *p > 0.5);
    }
}

#[test]
fn numbers_are_classes_if_asked() {
    let folder = Folder::new();
    let table: String =
        bundled("banana.csv.gz").lines().take(81).map(|l| format!("{l}\n")).collect();
    folder.write("b.csv", &table);
    let likelihood = |more: &str| {
        let fit = folder.json(&format!("fit b.csv --target y --inducing 5 --epochs 2 {more}"));
        (fit["model"]["likelihood"]["type"].clone(), fit["model"]["classes"].clone())
    };
    let classes = serde_json::json!(["0", "1"]);
    assert_eq!(likelihood("--classes"), ("bernoulli".into(), classes.clone()));
    assert_eq!(likelihood("--likelihood 'bernoulli(link=logit)'").1, classes);
    assert_eq!(likelihood("--likelihood softmax"), ("softmax".into(), classes));
    // Without, they are numbers as ever.
    let fit = folder.json("fit b.csv --target y --max-iterations 2");
    assert_eq!(fit["model"]["likelihood"]["type"], "gaussian");
    assert_eq!(fit["model"]["classes"], serde_json::Value::Null);
}

#[test]
fn several_classes_with_names_that_need_quotes() {
    let folder = Folder::new();
    folder.write("t.csv", three(90).replace("red, dark", "\"red, dark\""));
    let fit = folder.json(&format!("fit t.csv --target kind -o m --plot p.svg {SHORT}"));
    assert_eq!(fit["model"]["likelihood"]["type"], "softmax");
    assert_eq!(fit["model"]["classes"], serde_json::json!(["blue", "green", "red, dark"]));
    assert!(number(&fit, "/scores/train/overall/accuracy") > 0.8);
    assert!(folder.read("p.svg").contains("the most probable class changes"));
    let predicted = folder.ok("predict m t.csv").out;
    assert!(predicted.starts_with("label,p_blue,p_green,\"p_red, dark\"\n"), "{predicted}");
    let latent = folder.ok("predict m t.csv --latent --quantiles 0.1").out;
    let header = latent.lines().next().unwrap();
    assert!(header.starts_with("f_blue_mean,f_blue_sd,f_blue_q0.1,f_green_mean"), "{header}");
    // Ordered classes keep the order of their numbers.
    let table = three(60).replace("red, dark", "1").replace("green", "2").replace("blue", "10");
    folder.write("o.csv", table);
    let fit = folder.json(&format!("fit o.csv --target kind --likelihood ordinal {SHORT}"));
    assert_eq!(fit["model"]["classes"], serde_json::json!(["1", "2", "10"]));
    assert!(number(&fit, "/scores/train/overall/accuracy") > 0.6);
}

#[test]
fn more_inputs_draw_reliability_and_a_kernel_for_each_class() {
    let folder = Folder::new();
    let table: String =
        bundled("ionosphere.csv.gz").lines().take(121).map(|line| format!("{line}\n")).collect();
    folder.write("i.csv", table);
    let fit = folder.json(
        "fit i.csv --target y --likelihood bernoulli --split 0.3 --inducing 15 --epochs 30 \
         --plot r.svg --method svgp-spherical",
    );
    assert_eq!(fit["model"]["method"], "svgp-spherical");
    assert!(folder.read("r.svg").contains("calibration error"));
    folder.write("t.csv", three(60).replace("red, dark", "red"));
    let fit = folder.json(
        "fit t.csv --target kind --kernel 'rbf;matern52;matern32 + linear' --inducing 6 --epochs 3",
    );
    assert_eq!(fit["model"]["kernels"].as_array().unwrap().len(), 3);
    assert_eq!(fit["model"]["kernels"][2]["type"], "sum");
}

#[test]
fn labels_that_cannot_be_are_refused() {
    let folder = Folder::new();
    let fit = |table: &str, more: &str, code: i32, parts: &[&str]| {
        folder.write("d.csv", table);
        folder.refused(code, &format!("fit d.csv --target y -o m {more}"), parts);
    };
    let digits = "x,y\n1,0\n2,1\n3,2\n4,0\n";
    fit(
        digits,
        "--likelihood bernoulli",
        1,
        &["d.csv: column `y` has 3 classes (`0`, `1`, `2`)", "`bernoulli` is for 2", "softmax"],
    );
    fit(digits, "--likelihood softmax(classes=4)", 1, &["3 classes", "is for 4"]);
    fit("x,y\n1,a\n2,a\n3,a\n", "", 1, &["d.csv: column `y`", "only one class, `a`"]);
    fit("x,y\n1,a\n2,\n3,b\n", "", 1, &["d.csv: row 2, column `y`", "empty", "--missing drop"]);
    fit(digits, "--classes --likelihood poisson", 2, &["--classes", "poisson", "contradict"]);
    fit(digits, "--likelihood bernouli", 2, &["bernouli", "nearest: bernoulli"]);
    fit("x,y\n1,a\n2,b\n", "--likelihood gaussian", 1, &["row 1, column `y`", "`a` is text"]);
    // A stray text among numbers is not a label.
    fit("x,y\n1,2\n2,red\n3,4\n", "", 1, &["d.csv: row 2, column `y`", "`red`"]);
    fit("x,y,z\n1,a,b\n2,b,a\n3,a,b\n", "--target z --classes", 1, &["second target"]);
    // A class that the model does not know.
    folder.write("d.csv", "x,y\n1,a\n2,b\n3,a\n4,b\n");
    folder.write("other.csv", "x,y\n1,a\n2,c\n");
    folder.ok("fit d.csv --target y -o m --epochs 2");
    folder.refused(
        1,
        "score m other.csv",
        &["other.csv: row 2, column `y`", "`c` is none of", "`b`"],
    );
    folder.ok("predict m other.csv");
    folder.write("mask.csv", "t\n0\n0\n0\n0\n1\n");
    folder.write("d.csv", "x,y\n1,a\n2,b\n3,a\n4,b\n5,c\n");
    folder.refused(
        1,
        "fit d.csv --target y --test-mask mask.csv:t -o n",
        &["row 5", "`c` is none", "no row learnt from has this label"],
    );
    // A picture of probabilities needs some.
    folder.write("n.csv", "x,y\n1,1\n2,2.5\n3,2\n");
    folder.ok("fit n.csv --target y -o g");
    folder.refused(2, "score g n.csv --plot r.svg", &["probabilities of classes", "`gaussian`"]);
    folder.refused(2, "score m other.csv --plot m", &["would be overwritten"]);
    folder.refused(2, "score m other.csv --plot r.gif", &["r.gif", ".svg"]);
}

/// Neighbours take classes too: with files, new rows and pictures.
#[test]
fn a_map_of_classes_by_neighbours() {
    let folder = Folder::new();
    folder.write("b.csv", banana(120));
    let text = banana(180);
    let later: String = text
        .lines()
        .enumerate()
        .filter(|(i, _)| *i == 0 || *i > 120)
        .fold(String::new(), |all, (_, line)| all + line + "\n");
    folder.write("later.csv", later);
    let fit = "fit b.csv --target y --kernel matern32 --max-iterations 10 --method";
    let near = folder.json(&format!("{fit} vecchia -o m"));
    assert_eq!(near["model"]["method"], "vecchia");
    assert_eq!(near["model"]["likelihood"]["type"], "bernoulli");
    folder.ok(&format!("{fit} tvgp -o all"));
    let of = |model: &str| column(&folder.ok(&format!("predict {model} later.csv")).out, "p_yes");
    for (one, other) in of("m").into_iter().zip(of("all")) {
        assert!((one - other).abs() < 0.05, "{one} {other}");
    }
    assert!(folder.ok("update m later.csv -o u").out.contains("kept       180 rows"));
    folder.ok("plot m b.csv -o map.svg");
    // the same by draws in the place of a factor
    let fit_by_draws = "fit b.csv --target y --kernel matern32 --max-iterations 10 -o d --method";
    let text = folder.ok(&format!("{fit_by_draws} 'vecchia(solver=iterative)'")).out;
    assert!(text.contains("vecchia(solver=iterative)"), "{text}");
    for (one, other) in of("d").into_iter().zip(of("all")) {
        assert!((one - other).abs() < 0.1, "{one} {other}");
    }
    folder.ok("sample d later.csv --draws 3");
    folder.refused(1, &format!("{fit} full-scale -o f"), &["`full-scale`", "bernoulli", "svgp"]);
}
