//! Predictions for the times after the last of a series.

use crate::support::Folder;

/// A wave of a period about a level, with noise, every `step` days from the first Sunday of 2021 on.
fn wave(
    columns: &str,
    n: usize,
    [step, period]: [f64; 2],
    [level, size, noise]: [f64; 3],
) -> String {
    let row = |i: usize| {
        let day = step * i as f64;
        let own = (i as f64 * 0.414_213_562_373_095).fract() - 0.5;
        let value = level + size * (day / period * std::f64::consts::TAU).sin() + noise * own;
        format!("{},{value:.4}\n", sparsegp::data::date_text(18_630.0 + day))
    };
    format!("{columns}\n") + &(0..n).map(row).collect::<String>()
}

/// Weekly sales with a yearly wave.
fn weeks(n: usize) -> String {
    wave("day,sales", n, [7.0, 365.25], [300.0, 40.0, 10.0])
}

/// Readings of every three hours with a daily wave.
fn readings(n: usize) -> String {
    wave("at,load", n, [0.125, 1.0], [20.0, 4.0, 2.0])
}

#[test]
fn a_series_continues_after_its_last_row() {
    let folder = Folder::new();
    folder.write("sales.csv", weeks(150));
    folder.ok(
        "fit sales.csv --target sales --method markov --kernel matern52+periodic --max-iterations 20 -o m.safetensors",
    );
    let run =
        folder.ok("forecast m.safetensors sales.csv --horizon 4w --quantiles 0.1,0.9 --terms");
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(lines[0].starts_with("day,mean,sd,q0.1,q0.9,"), "{}", lines[0]);
    assert_eq!(lines.len(), 5, "{}", run.out);
    // 18 630 is 2021-01-03, a Sunday
    let days: Vec<&str> = lines[1..].iter().filter_map(|line| line.split(',').next()).collect();
    assert_eq!(days, ["2023-11-19", "2023-11-26", "2023-12-03", "2023-12-10"]);
    // the same as predictions of a table with these times
    folder.write("next.csv", format!("day\n{}\n", days.join("\n")));
    let predicted =
        folder.ok("predict m.safetensors next.csv --id day --quantiles 0.1,0.9 --terms");
    assert_eq!(predicted.out, run.out);
    let report = folder.json("forecast m.safetensors sales.csv --horizon 6mo --step 1mo -o f.csv");
    assert_eq!((&report["times"], &report["last"]), (&6.into(), &"2024-05-12".into()));
    assert_eq!(folder.read("f.csv").lines().count(), 7);
}

#[test]
fn a_season_that_dates_show_is_found_and_continued() {
    let folder = Folder::new();
    folder.write("load.csv", readings(240));
    let run = folder.ok("fit load.csv --target load -o m.safetensors");
    assert!(run.out.contains("repeat after 1d, as `--season` would"), "{}", run.out);
    let run = folder.ok("forecast m.safetensors load.csv --horizon 2d");
    for (i, line) in run.out.lines().skip(1).enumerate() {
        let mean: f64 = line.split(',').nth(1).and_then(|cell| cell.parse().ok()).expect("a mean");
        let wave = ((240 + i) as f64 / 8.0 * std::f64::consts::TAU).sin();
        assert!((mean - 20.0 - 4.0 * wave).abs() < 1.0, "{i}: {line}");
    }
    let run = folder.ok("fit load.csv --target load --season none -o n.safetensors");
    assert!(!run.out.contains("repeat after"), "{}", run.out);
}

/// Hyperparameters are learnt from as many rows as are asked for, and what has learnt from them says so.
#[test]
fn a_training_sees_a_part_of_the_rows() {
    let folder = Folder::new();
    folder.write("load.csv", readings(1200));
    let own = "fit load.csv --target load --kernel matern32 --max-iterations 3 --pilot 0 --method";
    let text = "1200 to learn from; hyperparameters from about 1000 of them";
    for (method, end) in [("markov", "\n"), ("vecchia", ", given their neighbours\n")] {
        let run = folder.ok(&format!("{own} {method}(training_rows=1000) -o m.safetensors"));
        assert!(run.out.contains(&format!("{text}{end}")), "{}", run.out);
        let run = folder.ok(&format!("{own} {method}(training_rows=all)"));
        assert!(!run.out.contains("hyperparameters from about"), "{}", run.out);
    }
}

#[test]
fn numbers_are_times_too_and_several_inputs_are_refused() {
    let folder = Folder::new();
    let rows: String =
        (0..40).map(|i| format!("{},{}\n", 0.5 * i as f64, (0.3 * i as f64).sin())).collect();
    folder.write("wave.csv", format!("t,y\n{rows}"));
    folder.ok("fit wave.csv --target y --kernel rbf -o m.safetensors");
    let run = folder.ok("forecast m.safetensors wave.csv --horizon 2 --latent");
    let times: Vec<&str> = run.out.lines().skip(1).filter_map(|l| l.split(',').next()).collect();
    assert_eq!(times, ["20", "20.5"]);
    let refused = |line: &str, words: &[&str]| folder.refused(1, line, words);
    folder.write("gap.csv", format!("t,y\n{rows},0.3\n"));
    let run = folder.ok("forecast m.safetensors gap.csv --horizon 1");
    assert!(run.err.contains("1 row without a time"), "{}", run.err);
    refused("forecast m.safetensors wave.csv --horizon 2w", &["horizon `2w`", "`24` steps"]);
    refused("forecast m.safetensors wave.csv --horizon 3 --step 0", &["step `0`"]);
    let rows: String =
        (0..40).map(|i| format!("{i},{},{}\n", i % 7, (0.3 * i as f64).sin())).collect();
    folder.write("two.csv", format!("t,other,y\n{rows}"));
    folder.ok("fit two.csv --target y --kernel rbf -o two.safetensors");
    folder.refused(
        2,
        "forecast two.safetensors two.csv --horizon 2",
        &["t, other", "sparsegp predict"],
    );
}

#[test]
fn exposures_to_come_are_named_and_trials_refused() {
    let folder = Folder::new();
    let rows: String = (0..60).map(|i| format!("{i},{},{}\n", 3 + i % 5, 10 + i % 3)).collect();
    folder.write("calls.csv", format!("t,n,size\n{rows}"));
    folder.ok("fit calls.csv -t n --likelihood poisson --exposure size -o p.safetensors");
    let run = folder.ok("forecast p.safetensors calls.csv --horizon 2");
    assert!(run.err.contains("`size`") && run.err.contains("taken to have 1"), "{}", run.err);
    folder.ok("fit calls.csv -t n --likelihood binomial --trials size -o b.safetensors");
    folder.refused(2, "forecast b.safetensors calls.csv --horizon 2", &["needs `size`", "predict"]);
}

#[test]
fn a_season_that_is_named_is_continued() {
    let folder = Folder::new();
    folder.write("sales.csv", weeks(120));
    let fitted = folder.ok("fit sales.csv --target sales --season 1y --max-iterations 60 -o m.st");
    assert!(fitted.out.contains("365.2"), "{}", fitted.out);
    // the choice names the season in days, and not as the model was asked for it
    let choice = fitted.out.lines().find(|line| line.trim_start().starts_with("choice"));
    let choice = choice.expect("a line of the choice");
    assert!(choice.contains("periodic(period=365.2425)") && !choice.contains('{'), "{choice}");
    folder.ok("forecast m.st sales.csv --horizon 26w -o f.csv");
    let mean = crate::support::column(&folder.read("f.csv"), "mean");
    let (least, most) =
        mean.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
    assert!((255.0..285.0).contains(&least) && (320.0..345.0).contains(&most), "{least} {most}");
    folder.refused(1, "fit sales.csv --target sales --season 52", &["season `52`", "dates"]);
    folder.refused(2, "fit sales.csv --target sales --season 1y --method deep", &["--season"]);
}

#[test]
fn a_forecast_has_a_picture_along_time() {
    let folder = Folder::new();
    folder.write("sales.csv", weeks(120));
    folder.ok("fit sales.csv --target sales --season 1y --max-iterations 40 -o m.st");
    let run = folder.ok("forecast m.st sales.csv --horizon 26w -o f.csv --plot f.svg");
    assert!(run.out.contains("plot written to f.svg"), "{}", run.out);
    let picture = folder.read("f.svg");
    for word in
        ["forecast", "mean of what is known", "end of the rows", "2022", "\nday\n", "\nsales\n"]
    {
        assert!(picture.contains(word), "no {word}");
    }
    // every row is a dot, and one more is in the legend
    assert_eq!(picture.matches("<circle").count(), 121);
    // of a long series the last ten horizons are drawn, and the table may lack targets
    let days: String = folder
        .read("sales.csv")
        .lines()
        .skip(1)
        .map(|l| l.split(',').next().unwrap().to_owned() + "\n")
        .collect();
    folder.write("days.csv", format!("day\n{days}"));
    folder.ok("forecast m.st sales.csv --horizon 2w -o f.csv --plot short.svg");
    assert_eq!(folder.read("short.svg").matches("<circle").count(), 22);
    folder.ok("forecast m.st days.csv --horizon 2w -o f.csv --plot bare.png");
    assert!(folder.bytes("bare.png").starts_with(b"\x89PNG"));
    folder.refused(
        2,
        "forecast m.st sales.csv --horizon 2w --plot f.txt",
        &["--plot", "SVG or PNG"],
    );
}
