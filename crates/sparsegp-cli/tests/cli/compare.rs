//! `sparsegp compare`.

use crate::support::Folder;

/// A wavy table: groups of four rows, times in order.
fn table() -> String {
    let mut text = String::from("t,x,patient,y\n");
    for i in 0..60 {
        let x = f64::from((i * 37) % 60) / 10.0;
        let noise = f64::from((i * 7919) % 13) / 65.0 - 0.1;
        let y = (1.3 * x).sin() + noise;
        text += &format!("2024-{:02}-{:02},{x},p{},{y:.4}\n", 1 + i / 28, 1 + i % 28, i / 4);
    }
    text
}

#[test]
fn choices_meet_the_same_rows_and_the_scores_are_those_of_fit() {
    let folder = Folder::new();
    folder.write("data.csv", table());
    let compared = folder.json(
        "compare data.csv --target y --kernel rbf --kernel linear --splits 3 --split 0.2 --seed 4 -o runs.csv \
         -- --features x",
    );
    let choices = compared["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 2);
    // a line does not match a wave, and the better comes first
    assert_eq!(choices[0]["choice"], "rbf");
    assert_eq!(choices[0]["behind"]["mean"], 0.0);
    assert!(choices[1]["behind"]["mean"].as_f64().unwrap() > 0.3);
    for (choice, kernel) in choices.iter().zip(["rbf", "linear"]) {
        let each = choice["scores"]["NLPD"]["each"].as_array().unwrap();
        assert_eq!(each.len(), 3);
        for (i, value) in each.iter().enumerate() {
            let seed = 4 + i;
            let fit = folder.json(&format!(
                "fit data.csv --target y --kernel {kernel} --features x --split 0.2 --seed {seed}"
            ));
            // training has the seed of the comparison, which exact inference does not look at
            let own = fit["scores"]["test"]["overall"]["nlpd"].as_f64().unwrap();
            let value = value.as_f64().unwrap();
            assert!((own - value).abs() < 1e-9, "{kernel} {i}: {own} {value}");
        }
        let values: Vec<f64> = each.iter().map(|v| v.as_f64().unwrap()).collect();
        let mean = values.iter().sum::<f64>() / 3.0;
        let error = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 6.0).sqrt();
        let scored = &choice["scores"]["NLPD"];
        assert!((scored["mean"].as_f64().unwrap() - mean).abs() < 1e-12);
        assert!((scored["standard_error"].as_f64().unwrap() - error).abs() < 1e-12);
    }
    let runs = folder.read("runs.csv");
    assert_eq!(runs.lines().count(), 7);
    assert!(runs.starts_with("choice,division,rows learnt from,rows tested on,NLPD,RMSE"));
    assert!(runs.contains("linear,split 2,48,12,"), "{runs}");
}

#[test]
fn rows_are_divided_at_random_by_groups_in_order_or_by_a_file() {
    let folder = Folder::new();
    folder.write("data.csv", table());
    let flags = |i: usize| format!("{},{}\n", u8::from(i.is_multiple_of(5)), u8::from(i % 7 == 1));
    folder.write("masks.csv", format!("a,b\n{}", (0..60).map(flags).collect::<String>()));
    for (how, divisions, protocol) in [
        ("--folds 3", 3, "3 random folds"),
        ("--folds 3 --group patient", 3, "3 folds of whole groups"),
        ("--folds 2 --ordered t", 2, "2 blocks in order"),
        (
            "--folds 3 --ordered t --horizon 10d",
            3,
            "3 cut-offs, each with the rows within 10d after it",
        ),
        ("--test-mask masks.csv:a", 1, "1 split from files"),
        ("--test-mask masks.csv", 2, "2 splits from files"),
    ] {
        // a column of groups, or of dates that order the rows, is not an input
        let ignored = match how {
            "--folds 3 --group patient" => "t",
            _ if how.contains("--ordered") => "patient",
            _ => "t,patient",
        };
        let line =
            format!("compare data.csv --target y {how} -- --ignore {ignored} --max-iterations 20");
        let compared = folder.json(&line);
        assert_eq!(compared["divisions"].as_array().unwrap().len(), divisions, "{how}");
        assert!(compared["protocol"].as_str().unwrap().starts_with(protocol), "{how}");
        assert_eq!(compared["choices"][0]["choice"], "defaults");
        assert_eq!(compared["choices"][0]["done"], divisions, "{how}");
    }
}

#[test]
fn classes_and_counts_are_compared_by_their_own_scores() {
    let folder = Folder::new();
    let mut text = String::from("x,class,count\n");
    for i in 0..40 {
        let x = f64::from(i) / 10.0;
        text += &format!("{x},{},{}\n", if (i / 7) % 2 == 0 { "a" } else { "b" }, (i * 3) % 5);
    }
    folder.write("data.csv", text);
    let line = "compare data.csv --target class --folds 2 -- --ignore count --max-iterations 5";
    assert!(folder.json(line)["choices"][0]["scores"]["log loss"]["mean"].is_number());
    let line = "compare data.csv --target count --folds 2 --likelihood poisson --likelihood negative-binomial \
                -- --ignore class --max-iterations 5";
    let compared = folder.json(line);
    assert_eq!(compared["choices"].as_array().unwrap().len(), 2);
    assert!(compared["choices"][1]["scores"]["deviance"]["mean"].is_number());
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = Folder::new();
    folder.write("data.csv", table());
    for (line, word) in [
        ("compare data.csv --target y -- --output m.safetensors", "--output is for one model"),
        ("compare data.csv --target y -- --no-such-thing", "--no-such-thing"),
        ("compare data.csv --target y --kernel rbf --kernel rbf", "asked for twice"),
        ("compare data.csv --target y --folds 70", "cannot make 70 parts"),
        ("compare data.csv --target y --group patiend", "`patient`"),
        ("compare data.csv --target y -o data.csv", "would be overwritten"),
        ("compare data.csv --target y --kernel nonsense", "nonsense"),
    ] {
        let run = folder.run(line);
        assert!(run.code != Some(0) && run.err.contains(word), "{line}\n{}", run.err);
    }
    assert_eq!(folder.files(), ["data.csv"]);
}

/// What cannot be trained is reported beside what can, and the exit code says so.
#[test]
fn a_choice_of_which_nothing_can_be_trained_is_a_failure() {
    let folder = Folder::new();
    folder.write("data.csv", table());
    // no method without q knows a likelihood that is not Gaussian
    let line = "compare data.csv --target y --likelihood gaussian --likelihood student-t --splits 2 -- --method exact";
    let run = folder.run(line);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.out.contains("gaussian") && run.out.contains("2/2"), "{}", run.out);
    assert!(run.err.contains("error: no model could be trained of `student-t`"), "{}", run.err);
    let run = folder.run(&format!("--json {line}"));
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(run.code, Some(1));
    assert_eq!(report["choices"][1]["failures"].as_array().unwrap().len(), 2);
}

/// Kernels and likelihoods for the targets, and what they are better than.
#[test]
fn an_automatic_comparison_has_baselines_and_likelihoods_for_the_targets() {
    let folder = Folder::new();
    folder.write("data.csv", table());
    let line = "compare data.csv --target y --auto --kernel rbf --splits 1 --split 0.3 -- --features x --max-iterations 30";
    let compared = folder.json(line);
    let choices = compared["choices"].as_array().unwrap();
    let labels: Vec<&str> = choices.iter().map(|own| own["choice"].as_str().unwrap()).collect();
    assert_eq!(labels.len(), 9, "{labels:?}");
    for label in [
        "rbf, student-t",
        "constant, gaussian (baseline)",
        "constant + linear, heteroscedastic (baseline)",
    ] {
        assert!(labels.contains(&label), "{labels:?}");
    }
    let score = |label: &str| {
        let own = choices.iter().find(|own| own["choice"] == label).unwrap();
        assert_eq!(own["baseline"], label.ends_with("(baseline)"));
        own["scores"]["NLPD"]["mean"].as_f64().unwrap()
    };
    // a line does not fit a wave
    assert!(score("rbf, gaussian") < score("constant + linear, gaussian (baseline)") - 0.5);
    assert!(score("rbf, gaussian") < score("constant, gaussian (baseline)") - 0.5);
    // counts and classes have others
    let mut text = String::from("x,class,count\n");
    for i in 0..40 {
        text += &format!("{i},{},{}\n", if (i / 7) % 2 == 0 { "a" } else { "b" }, (i * 3) % 5);
    }
    folder.write("other.csv", text);
    for (target, word) in [("class", "bernoulli(link=logit)"), ("count", "negative-binomial")] {
        let line = format!(
            "compare other.csv --target {target} --auto --kernel rbf --splits 1 --split 0.3 -- --features x --max-iterations 5"
        );
        assert!(folder.run(&line).out.contains(word), "{target}");
    }
}
