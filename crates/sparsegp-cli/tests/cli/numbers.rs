//! Counts, positive numbers, shares, heavy tails; weights and columns of further numbers.

use crate::kernels::jumble;
use crate::support::{Folder, bundled, close, column, number, plane_rows};

const SHORT: &str = "--inducing 10 --epochs 40 --learning-rate 0.05 --pilot 40";

#[test]
fn counts_have_their_own_scores_quantiles_and_picture() {
    let folder = Folder::new();
    folder.write("coal.csv", bundled("coal.csv.gz"));
    let fit = folder.json(&format!(
        "fit coal.csv --target y --likelihood poisson --split 0.2 -o m --plot p.svg {SHORT}"
    ));
    assert_eq!(fit["model"]["likelihood"]["type"], "poisson");
    assert_eq!(number(&fit, "/model/scaler/y_scale/0"), 1.0);
    let score = folder.json("score m coal.csv --on all");
    let predicted = folder.ok("predict m coal.csv --quantiles 0.025,0.5,0.975").out;
    let y = column(&folder.read("coal.csv"), "y");
    let mean = column(&predicted, "mean");
    let n = y.len() as f64;
    let deviance: f64 = y
        .iter()
        .zip(&mean)
        .map(|(y, m)| 2.0 * (if *y > 0.0 { y * (y / m).ln() } else { 0.0 } - (y - m)) / n)
        .sum();
    close(number(&score, "/scores/overall/deviance"), deviance, 1e-10);
    let squares: f64 = y.iter().zip(&mean).map(|(y, m)| (y - m).powi(2) / n).sum();
    close(number(&score, "/scores/overall/rmse"), squares.sqrt(), 1e-12);
    let (low, high) = (column(&predicted, "q0.025"), column(&predicted, "q0.975"));
    let inside = (0..y.len()).filter(|i| (low[*i]..=high[*i]).contains(&y[*i])).count() as f64 / n;
    close(number(&score, "/scores/overall/coverage/2/share"), inside, 1e-12);
    assert!(low.iter().chain(&high).all(|q| q.fract() == 0.0), "quantiles of counts are counts");
    // The variance of counts is more than the mean.
    for (m, sd) in mean.iter().zip(column(&predicted, "sd")) {
        assert!(sd * sd > *m);
    }
    let svg = folder.read("p.svg");
    for part in ["95 % of new counts", "test rows", "inducing points"] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(folder.ok("score m coal.csv").out.contains("deviance"));
}

#[test]
fn exposures_come_from_their_column_and_are_missed_with_a_note() {
    let folder = Folder::new();
    let mut table = String::from("x,days,n\n");
    for i in 0..60 {
        let t = f64::from(i);
        let days = 1.0 + (t * 0.618).fract() * 9.0;
        let rate = 2.0 + (0.3 * t).sin();
        table += &format!("{t},{days},{}\n", (days * rate).round());
    }
    folder.write("c.csv", &table);
    let fit = folder.json(&format!(
        "fit c.csv --target n --likelihood poisson --exposure days -o m --plot p.svg {SHORT}"
    ));
    assert_eq!(fit["model"]["inputs"], serde_json::json!(["x"]));
    assert_eq!(fit["model"]["extra"], "days");
    assert!(folder.read("p.svg").contains("for an exposure of 1"));
    let with = folder.ok("predict m c.csv");
    assert!(!with.err.contains("exposure"), "{}", with.err);
    folder.write("no.csv", "x\n0\n1\n2\n");
    let without = folder.ok("predict m no.csv");
    assert!(without.err.contains("no column `days` (exposure): every row is taken to have 1"));
    let (days, rates) = (column(&table, "days"), column(&without.out, "mean"));
    for i in 0..3 {
        close(column(&with.out, "mean")[i], days[i] * rates[i], 1e-10);
    }
    assert!(folder.ok("inspect m").out.contains("exposure   days"));
    folder.ok("score m c.csv");
}

#[test]
fn trials_are_needed_and_noise_variances_are_known() {
    let folder = Folder::new();
    let mut table = String::from("x,tries,hits,y,v\n");
    for (i, [a, b, ..]) in plane_rows(50).into_iter().enumerate() {
        let tries = 5 + i % 7;
        let hits = (tries as f64 * (0.5 + 0.4 * a.sin())).round();
        let v = if i % 2 == 0 { 0.01 } else { 4.0 };
        let y = a.sin() + if i % 2 == 0 { 0.0 } else { 0.4 * b };
        table += &format!("{a},{tries},{hits},{y},{v}\n");
    }
    folder.write("t.csv", &table);
    folder.ok(&format!(
        "fit t.csv --target hits --features x --likelihood binomial --trials tries -o m \
         --plot p.svg {SHORT}"
    ));
    assert!(folder.read("p.svg").contains("predicted = observed"));
    let (mean, tries) =
        (column(&folder.ok("predict m t.csv").out, "mean"), column(&table, "tries"));
    assert!(mean.iter().zip(&tries).all(|(m, n)| *m > 0.0 && m < n));
    folder.write("no.csv", "x\n1\n");
    folder.refused(1, "predict m no.csv -o out.csv", &["no.csv: column `tries`"]);
    folder.ok("predict m no.csv --latent");
    let fit =
        folder.json(&format!("fit t.csv --target y --features x --noise-variance v -o g {SHORT}"));
    assert_eq!(fit["model"]["likelihood"]["type"], "gaussian");
    let sd = column(&folder.ok("predict g t.csv").out, "sd");
    let latent = column(&folder.ok("predict g t.csv --latent").out, "sd");
    // The known variance is added to the noise that was learnt, in the data's units.
    let noise = |i: usize| sd[i].powi(2) - latent[i].powi(2);
    close(noise(1) - noise(0), 3.99, 1e-6);
}

#[test]
fn other_likelihoods_have_densities_and_quantile_bands() {
    let folder = Folder::new();
    folder.write("m.csv", bundled("mcycle.csv.gz"));
    let fit = |likelihood: &str, name: &str| {
        folder.json(&format!(
            "fit m.csv --target y --likelihood {likelihood} --plot {name}.svg -o {name} {SHORT}"
        ))
    };
    let json = fit("student-t(df=4)", "t");
    assert!(number(&json, "/model/scaler/y_scale/0") > 1.0, "standardised");
    assert!(number(&json, "/scores/train/overall/nlpd") < 6.0);
    let svg = folder.read("t.svg");
    assert!(svg.contains("50 % of new observations") && !svg.contains("NaN"));
    // Densities are in the data's units: ten times the numbers, a tenth of the density.
    let tenfold: String = bundled("mcycle.csv.gz")
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap())
        .map(|(x, y)| format!("{x},{}\n", 10.0 * y.parse::<f64>().unwrap()))
        .collect();
    folder.write("ten.csv", format!("x0,y\n{tenfold}"));
    let ten = folder.json(&format!("fit ten.csv --target y --likelihood student-t(df=4) {SHORT}"));
    let nlpd = |json| number(json, "/scores/train/overall/nlpd");
    close(nlpd(&ten), nlpd(&json) + 10_f64.ln(), 1e-6);
    close(
        number(&ten, "/scores/train/overall/rmse"),
        10.0 * number(&json, "/scores/train/overall/rmse"),
        1e-6,
    );
    let json = folder
        .json("fit m.csv --target y --likelihood heteroscedastic --inducing 20 --epochs 300 -o h");
    assert_eq!(number(&json, "/scores/train/overall/rows"), 133.0);
    let header = folder.ok("predict h m.csv --latent --quantiles 0.5").out;
    assert!(header.starts_with("f_0_mean,f_0_sd,f_0_q0.5,f_1_mean"), "{header}");
    // The noise grows: the first rows are at rest before the impact.
    let sd = column(&folder.ok("predict h m.csv").out, "sd");
    assert!(sd[60] > 1.5 * sd[0], "{} {}", sd[0], sd[60]);
}

#[test]
fn rows_of_weight_two_count_twice() {
    let folder = Folder::new();
    let coal = bundled("coal.csv.gz");
    let rows: Vec<&str> = coal.lines().skip(1).take(40).collect();
    let mut once = String::from("year,y,w\n");
    let mut twice = String::from("year,y\n");
    for (i, row) in rows.iter().enumerate() {
        let times = 1 + i % 3;
        once += &format!("{row},{times}\n");
        twice += &format!("{row}\n").repeat(times);
    }
    folder.write("w.csv", once);
    folder.write("r.csv", twice);
    folder.write("z.csv", "year\n1855\n1865\n1875\n1885\n");
    let fit = |data: &str, more: &str| {
        let json = folder.json(&format!(
            "fit {data} --target y --likelihood poisson --no-standardise --inducing-from z.csv \
             --set kernel.lengthscales=12 --set kernel.variance=0.7 --set mean.constant=1.1 \
             --freeze kernel --freeze mean --freeze inducing --epochs 60 --natural-rate 0.5 {more}"
        ));
        number(&json, "/model/objective")
    };
    // One natural-gradient optimum of the same bound.
    close(fit("w.csv", "--weight w"), fit("r.csv", ""), 1e-8);
}

#[test]
fn targets_that_are_missing_may_stay() {
    let folder = Folder::new();
    let mut table = String::from("x,y,z\n");
    for (i, [a, _, y, z]) in plane_rows(60).into_iter().enumerate() {
        let z = if i % 3 == 0 { String::new() } else { z.to_string() };
        table += &format!("{a},{y},{z}\n");
    }
    folder.write("t.csv", table);
    let fit = folder.json(&format!("fit t.csv -t y -t z --features x --missing keep -o m {SHORT}"));
    assert_eq!(number(&fit, "/model/rows"), 60.0);
    assert_eq!(fit["model"]["method"], "svgp2025");
    assert_eq!(number(&fit, "/scores/train/overall/rows"), 40.0);
    folder.refused(
        2,
        "fit t.csv -t y -t z --features x --missing keep --method exact -o n",
        &["--missing keep", "svgp", "`exact`"],
    );
}

#[test]
fn targets_that_cannot_be_are_refused_with_their_row() {
    let folder = Folder::new();
    let fit = |rows: &str, more: &str, code: i32, parts: &[&str]| {
        folder.write("d.csv", format!("x,n,y\n{rows}"));
        folder.refused(code, &format!("fit d.csv --target y -o m {more}"), parts);
    };
    let bad = |y: &str| format!("1,2,0.5\n2,1,{y}\n3,1,0.25\n");
    for (likelihood, y, parts) in [
        ("gamma", "0", &["d.csv: row 2, column `y`: `0` is", "positive"][..]),
        ("beta", "1.0", &["d.csv: row 2, column `y`: `1`", "strictly between 0 and 1"]),
        ("log-normal", "-3", &["d.csv: row 2, column `y`: `-3`", "likelihoods"]),
    ] {
        fit(&bad(y), &format!("--likelihood {likelihood}"), 1, parts);
        fit(&bad(y), &format!("--likelihood {likelihood} --stream"), 1, parts);
    }
    let counts = |y: &str| format!("1,2,3\n2,1,1\n3,1,{y}\n4,1,1\n5,1,0\n");
    fit(
        &counts("-1"),
        "--likelihood poisson",
        1,
        &["d.csv: row 3, column `y`: `-1` is not a count"],
    );
    fit(&counts("1.5"), "--likelihood negative-binomial", 1, &["row 3", "`1.5` is not a count"]);
    fit(&counts("2"), "--likelihood binomial --trials n", 1, &["row 1, column `y`: `3`"]);
    fit(&counts("1"), "--likelihood binomial", 2, &["needs the trials", "--trials COLUMN"]);
    fit(
        &counts("1"),
        "--exposure n",
        2,
        &["--exposure is not for the likelihood `gaussian`", "poisson"],
    );
    fit(&counts("1"), "--likelihood student-t --trials n", 2, &["--trials", "binomial"]);
    fit(&counts("1"), "--likelihood poisson --exposure m", 1, &["column `m`", "nearest"]);
    fit(&counts("1"), "--likelihood poisson --exposure n --trials n", 2, &["cannot be used with"]);
    fit("1,-2,3\n2,1,1\n3,1,1\n", "--weight n", 1, &["row 1, column `n`", "negative"]);
    fit("1,-2,3\n2,1,1\n3,1,1\n", "--noise-variance n", 1, &["row 1", "-2"]);
    fit(
        &counts("1"),
        "--likelihood poisson --method exact",
        1,
        &["`exact` is for Gaussian noise", "svgp"],
    );
    fit(&counts("1"), "--likelihood poisson --method svgp2025", 1, &["svgp-spherical"]);
    fit(&counts("1"), "--kernel 'rbf;rbf'", 1, &["2 kernels", "1 latent"]);
    // A bad row among those held out is found before training.
    folder.write("mask.csv", "t\n0\n0\n1\n0\n0\n");
    fit(
        &counts("-1"),
        "--likelihood poisson --test-mask mask.csv:t --epochs 100000",
        1,
        &["row 3"],
    );
}

#[test]
fn likelihoods_list_the_registry() {
    let folder = Folder::new();
    let text = folder.ok("likelihoods").out;
    for entry in sparsegp::likelihoods::REGISTRY {
        assert!(text.contains(entry.name), "{}", entry.name);
    }
    assert!(text.contains("--exposure") && text.contains("--trials"));
    let json = folder.json("likelihoods");
    assert_eq!(json.as_array().unwrap().len(), sparsegp::likelihoods::REGISTRY.len());
    assert!(folder.ok("methods").out.contains("svgp-spherical"));
}

/// Targets whose logarithm is learnt: predictions, intervals, densities and scores are of the targets.
#[test]
fn transformed_targets_are_predicted_in_their_own_units() {
    let folder = Folder::new();
    let (mut plain, mut log) = (String::from("x,y\n"), String::from("x,y\n"));
    for i in 0..60 {
        let (x, noise) = (f64::from(i) / 10.0, f64::from((i * 37) % 11) / 10.0 - 0.5);
        let y = (2.0 * x.sin() + noise).exp();
        plain += &format!("{x},{y}\n");
        log += &format!("{x},{}\n", y.ln());
    }
    folder.write("plain.csv", plain);
    folder.write("log.csv", log);
    let fit = "--target y --kernel rbf --hyperparameters plug-in";
    let own = folder.json(&format!("fit plain.csv {fit} --target-transform log -o plain.gp"));
    let other = folder.json(&format!("fit log.csv {fit} -o log.gp"));
    // the finding that asks for it is made without it only
    let plain = folder.json(&format!("fit plain.csv {fit}"));
    let names = |fit: &serde_json::Value| {
        let found = fit["model"]["training"]["findings"].as_array().cloned().unwrap_or_default();
        found.iter().map(|own| own["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(names(&plain).contains(&"skew".into()), "{:?}", names(&plain));
    assert!(!names(&own).contains(&"skew".into()), "{:?}", names(&own));
    assert!(plain["model"]["warnings"].to_string().contains("--target-transform log"));
    let text = folder.ok("inspect plain.gp").out;
    assert!(text.contains("y (the logarithm)"), "{text}");
    // the score of a density is that of the logarithm less its mean
    let nlpd = |model: &str, table: &str| {
        number(&folder.json(&format!("score {model} {table}")), "/scores/overall/nlpd")
    };
    let sum: f64 = (0..60)
        .map(|i| 2.0 * (f64::from(i) / 10.0).sin() + f64::from((i * 37) % 11) / 10.0 - 0.5)
        .sum();
    let gap = nlpd("plain.gp", "plain.csv") - (nlpd("log.gp", "log.csv") + sum / 60.0);
    assert!(gap.abs() < 1e-6, "{gap}");
    assert_eq!(own["model"]["scaler"]["y_transform"][0], "log");
    assert_eq!(other["model"]["scaler"]["y_transform"], serde_json::json!([]));
    for (line, word) in [
        ("fit plain.csv --target y --target-transform log --likelihood gamma", "`gamma`"),
        ("fit log.csv --target y --target-transform log", "has no logarithm"),
        ("fit plain.csv --target y --target-transform square", "square"),
    ] {
        let run = folder.run(line);
        assert!(run.code != Some(0) && run.err.contains(word), "{line}\n{}", run.err);
    }
}

/// Averages over hyperparameters of other likelihoods are made where they are asked for, and go through files.
#[test]
fn averages_are_for_other_likelihoods_too() {
    let folder = Folder::new();
    let rows = (0..50).fold("a,b,hits,won\n".to_owned(), |text, i| {
        let a = jumble(i);
        let hits = (2.0 * (1.0 + (3.0 * a).sin()) + jumble(i + 50).abs()).floor();
        text + &format!(
            "{a},{},{hits},{}\n",
            jumble(i + 200),
            i32::from((3.0 * a).sin() > jumble(i + 90))
        )
    });
    folder.write("t.csv", rows);
    for (target, likelihood) in [("hits", "poisson"), ("won", "bernoulli")] {
        let others = if target == "hits" { "won" } else { "hits" };
        let fit = format!(
            "fit t.csv --target {target} --ignore {others} --likelihood {likelihood} --kernel rbf --method tvgp --max-iterations 20"
        );
        let run = folder.ok(&format!("{fit} --hyperparameters laplace -o m"));
        assert!(run.out.contains("predictions average over"), "{}", run.out);
        let plain = folder.ok(&format!("{fit} --hyperparameters plug-in -o n"));
        assert!(!plain.out.contains("predictions average over"), "{}", plain.out);
        let (own, other) = (folder.ok("predict m t.csv").out, folder.ok("predict n t.csv").out);
        assert!(own != other && own.lines().count() == other.lines().count(), "{own}");
    }
    let line = "fit t.csv --target hits --ignore won --likelihood poisson --method svgp --hyperparameters laplace";
    folder.refused(2, line, &["--hyperparameters"]);
}

/// An input over powers of ten is learnt from by its logarithm, unless that is not wanted; few rows are averaged.
#[test]
fn logarithms_of_inputs_and_averages_are_said() {
    let folder = Folder::new();
    let rows = (0..80).fold("people,other,y\n".to_owned(), |text, i| {
        let u = f64::from(i) * 0.15;
        let y = (0.8 * u).sin() + 0.1 * (f64::from(i) * 2.3).cos();
        text + &format!("{},{},{y}\n", 3.0 * u.exp(), i % 7)
    });
    folder.write("t.csv", rows);
    let run = folder.ok("fit t.csv --target y --kernel rbf -o m");
    assert!(run.out.contains("of `people` are learnt from"), "{}", run.out);
    assert!(run.out.contains("predictions average over"), "{}", run.out);
    let model = folder.json("inspect m");
    assert!(number(&model, "/scaler/x_log/0") > 0.0, "{model}");
    let plain = folder
        .ok("fit t.csv --target y --kernel rbf --log-inputs none --hyperparameters plug-in -o n");
    assert!(
        !plain.out.contains("average over") && plain.err.contains("--log-inputs people"),
        "{}",
        plain.err
    );
    // zeros have a place at prediction
    folder.write("new.csv", "people,other\n0,1\n5000,2\n");
    let means = column(&folder.ok("predict m new.csv").out, "mean");
    assert!(means.len() == 2 && means.iter().all(|v| v.is_finite()), "{means:?}");
    folder.refused(1, "fit t.csv --target y --log-inputs persons", &["`persons`", "`people`"]);
    folder.refused(1, "fit t.csv --from m --log-inputs people", &["--log-inputs"]);
    folder.refused(
        2,
        "fit t.csv --target y --method tsvgp --hyperparameters laplace",
        &["--hyperparameters"],
    );
}
