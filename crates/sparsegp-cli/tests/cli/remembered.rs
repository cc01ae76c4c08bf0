//! What a fit held out is remembered; rows without a number keep their place; methods that see all rows refuse minibatches.

use crate::support::{Folder, column, number, plane, texts};

const FIT: &str = "fit p.csv --target y --ignore key --ignore z --inducing 12 --max-iterations 8";

#[test]
fn rows_held_out_stay_held_out() {
    let folder = Folder::new();
    folder.write("p.csv", plane(200));
    let fit = folder.json(&format!("{FIT} --split 0.2 --seed 3 -o m"));
    let rmse = number(&fit, "/scores/test/overall/rmse");
    assert_eq!(number(&fit, "/scores/test/overall/rows"), 40.0);
    let score = folder.json("score m p.csv");
    assert_eq!((&score["scored"], &score["learnt_from"]), (&"held out".into(), &false.into()));
    assert_eq!(number(&score, "/scores/overall/rmse"), rmse);
    let train = folder.json("score m p.csv --on train");
    let own = number(&fit, "/scores/train/overall/rmse");
    assert_eq!(number(&train, "/scores/overall/rmse"), own);
    assert_eq!(number(&folder.json("score m p.csv --on all"), "/rows"), 200.0);
    let text = folder.ok("score m p.csv").out;
    assert!(text.contains("held out") && text.contains("40 rows that the fit held out"), "{text}");
    // rows that are added are new, and the others keep their part
    folder.write("longer.csv", plane(230));
    let score = folder.json("score m longer.csv");
    assert_eq!((number(&score, "/rows"), &score["scored"]), (70.0, &"held out, added".into()));
    // another table says nothing about what was seen
    let swapped: Vec<String> = plane(200).lines().map(String::from).collect();
    let mut lines = vec![swapped[0].clone()];
    lines.extend(swapped[1..].iter().rev().cloned());
    folder.write("other.csv", lines.join("\n") + "\n");
    let score = folder.json("score m other.csv");
    assert_eq!((number(&score, "/rows"), &score["learnt_from"]), (200.0, &().into()));
    // a mask that is given comes first
    let mask: String = (0..200).map(|i| format!("{}\n", u8::from(i < 50))).collect();
    folder.write("mask.csv", format!("t\n{mask}"));
    let score = folder.json("score m p.csv --test-mask mask.csv:t");
    assert_eq!((number(&score, "/rows"), &score["scored"]), (50.0, &"test".into()));
}

#[test]
fn a_mask_and_rows_aside_are_remembered() {
    let folder = Folder::new();
    folder.write("p.csv", plane(200));
    let mask: String = (0..200).map(|i| format!("{}\n", u8::from(i % 4 == 0))).collect();
    folder.write("mask.csv", format!("t\n{mask}"));
    folder.ok(
        "fit p.csv --target y --ignore key --ignore z --inducing 8 --method svgp --epochs 3 --batch 50 \
         --early-stopping 0.2 --test-mask mask.csv:t -o m",
    );
    assert_eq!(number(&folder.json("score m p.csv"), "/rows"), 50.0);
    assert_eq!(number(&folder.json("score m p.csv --on train"), "/rows"), 120.0);
}

#[test]
fn reports_say_by_which_rows_they_judge() {
    let folder = Folder::new();
    folder.write("p.csv", plane(120));
    folder.ok(&format!("{FIT} --split 0.25 -o m"));
    folder.ok("report m p.csv --output r.html");
    let html = folder.read("r.html");
    for part in [
        "Judged by 30 rows that the fit held out",
        "held out",
        "<th>made</th><td>by sparsegp ",
        " UTC</td>",
        "<th>seed</th><td>0</td>",
        "<th>model file</th><td>m</td>",
        "<th>table</th><td>p.csv (120 targets)</td>",
        "overflow-wrap",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let scored = folder.json("score m p.csv");
    let rmse = format!("{:.4}", number(&scored, "/scores/overall/rmse"));
    assert!(html.contains(&rmse), "{rmse}");
    // where nothing was held out, each row is predicted by the others
    folder.ok(&format!("{FIT} -o all"));
    folder.ok("report all p.csv --output all.html");
    let html = folder.read("all.html");
    assert!(html.contains("each by the others") && html.contains("leave-one-out"), "{html}");
    let text = folder.ok("score all p.csv").out;
    assert!(text.contains("flatters"), "{text}");
    folder.ok("plot m p.csv --what predictions --output p.svg");
    assert!(folder.read("p.svg").contains("test rows"));
}

#[test]
fn reports_of_classes_explain_their_scores() {
    let folder = Folder::new();
    let mut table = String::from("x,kind\n");
    (0..80).for_each(|i| {
        let x = f64::from(i) / 10.0;
        table += &format!("{x},{}\n", if x.sin() > 0.0 { "up" } else { "down" });
    });
    folder.write("c.csv", table);
    folder.ok("fit c.csv --target kind --split 0.2 --max-iterations 5 -o m");
    folder.ok("report m c.csv --output r.html");
    let html = folder.read("r.html");
    assert!(html.contains("Log loss") && html.contains("Brier score"), "{html}");
    assert!(!html.contains("RMSE, MAE"), "not of classes");
}

#[test]
fn rows_without_a_number_keep_their_place() {
    let folder = Folder::new();
    folder.write("p.csv", plane(60));
    folder.ok(&format!("{FIT} -o m"));
    folder.write("new.csv", "id,a,b\n\"one, 1\",,1\ntwo,1,1\nthree,2,\nfour,3,-1\nfive,,\n");
    let run = folder.ok("predict m new.csv --missing keep --id id -o out.csv");
    assert!(
        run.err.contains("3 rows with missing numbers: their predictions are empty"),
        "{}",
        run.err
    );
    let out = folder.read("out.csv");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 6, "{out}");
    assert_eq!(lines[1], "\"one, 1\",,,,");
    assert_eq!((lines[3], lines[5]), ("three,,,,", "five,,,,"));
    let dropped = folder.ok("predict m new.csv --missing drop").out;
    let kept = folder.ok("predict m new.csv --missing keep").out;
    let mean = texts(&kept, "mean");
    assert_eq!(mean.len(), 5);
    let there: Vec<f64> =
        mean.iter().filter(|m| !m.is_empty()).map(|m| m.parse().unwrap()).collect();
    assert_eq!(there, column(&dropped, "mean"));
    // nothing but such rows
    folder.write("none.csv", "id,a,b\nx,,\ny,,\n");
    let none = folder.ok("predict m none.csv --missing keep --id id").out;
    assert_eq!(none.lines().collect::<Vec<_>>()[1..], ["x,,,,", "y,,,,"]);
    let text = folder.run("predict m new.csv").err;
    assert!(text.contains("--missing drop") && !text.contains("Missing::"), "{text}");
}

#[test]
fn minibatches_of_methods_that_see_all_rows_are_refused() {
    let folder = Folder::new();
    let mut table = String::from("x,kind\n");
    (0..40).for_each(|i| table += &format!("{i},{}\n", if i % 9 < 4 { "a" } else { "b" }));
    folder.write("c.csv", table);
    for method in ["cavi", "cavi-full", "gibbs-sparse"] {
        for option in ["--batch 10", "--epochs 3"] {
            let line = format!(
                "fit c.csv --target kind --likelihood bernoulli(link=logit) --method {method} {option}"
            );
            let name = option.split(' ').next().unwrap();
            let text = format!("{name} has no effect with --method {method}");
            folder.refused(2, &line, &[&text, "minibatches"]);
        }
    }
}

#[test]
fn words_are_right() {
    let folder = Folder::new();
    folder.write("p.csv", plane(60));
    let run =
        folder.ok("fit p.csv --target y --ignore key --ignore z --inducing 6 --epochs 2 -o m");
    assert!(run.out.contains("svgp2025, the tightest bound that takes --epochs"), "{}", run.out);
    folder.ok("fit p.csv --target y --ignore key --ignore z --inducing 6 --method svgp-spherical --epochs 2 -o m");
    let text = folder.ok("inspect m").out;
    let line = text.lines().find(|line| line.trim_start().starts_with("q.v")).unwrap();
    assert!(!line.contains("vector"), "{line}");
    assert!(text.contains("made ") && text.contains(" UTC") && text.contains("seed "), "{text}");
    let json = folder.json("inspect m");
    let q = json["parameters"].as_array().unwrap().iter().find(|p| p["path"] == "q.v").unwrap();
    assert!(q["value"][0].as_f64().unwrap() > 0.0, "{q}");
}
