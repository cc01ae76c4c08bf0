//! Inputs with standard deviations.

use crate::support::{Folder, column};

/// sin 2x + a step between sites, at places that are off by known amounts; the key is not an input.
fn table(rows: std::ops::Range<usize>) -> String {
    let mut text = String::from("key,depth_sd,depth,site,temperature\n");
    let noise = |i: usize, by: f64| (i as f64 * by).fract() + (i as f64 * by * 1.7).fract() - 1.0;
    for i in rows {
        let x = 6.0 * (i as f64 * 0.618_033_988_749_895).fract();
        let sd = [0.0, 0.3, 0.3][i % 3];
        let site = i % 2;
        let y = (2.0 * x).sin() + 0.8 * site as f64 + 0.2 * noise(i, 0.754_877_666_246_693);
        let t = x + 2.4 * sd * noise(i, 0.569_840_290_998_053);
        text += &format!("r{i},{sd},{t:.5},{},{y:.5}\n", ["a", "b"][site]);
    }
    text
}

#[test]
fn errors_of_inputs_are_looked_through_and_averaged_over() {
    let folder = Folder::new();
    folder.write("rows.csv", table(0..240));
    folder.write("new.csv", table(240..540));
    let common = "fit rows.csv --target temperature --inducing 40 -o";
    let report = folder.json(&format!("{common} m.st --ignore key --input-sd depth=depth_sd"));
    assert_eq!(report["model"]["input_sd"], serde_json::json!({"depth": "depth_sd"}));
    assert_eq!(report["model"]["inputs"], serde_json::json!(["depth", "site=b"]));
    folder.ok(&format!("{common} p.st --ignore key,depth_sd"));
    let nlpd = |arguments: &str| {
        folder.json(&format!("score {arguments}"))["scores"]["overall"]["nlpd"]
            .as_f64()
            .expect("a number")
    };
    let (own, plain) = (nlpd("m.st new.csv"), nlpd("p.st new.csv"));
    let given = nlpd("p.st new.csv --input-sd depth=depth_sd");
    assert!(own < given - 0.1 && own < plain - 0.2, "{own} {given} {plain}");
    // the rows with errors are less sure, and those without are the same either way
    folder.ok("predict m.st new.csv --id key -o averaged.csv");
    folder.ok("predict m.st new.csv --id key --exact-inputs -o exact.csv");
    let sd = |name: &str| column(&folder.read(name), "sd");
    let (averaged, exact) = (sd("averaged.csv"), sd("exact.csv"));
    for i in 0..300 {
        match i % 3 {
            0 => assert!((averaged[i] - exact[i]).abs() < 1e-12 * exact[i], "{i}"),
            _ => assert!(averaged[i] > 1.001 * exact[i], "{i}"),
        }
    }
    assert!(folder.ok("inspect m.st").out.contains("depth_sd of depth"));
    folder.ok("sample m.st new.csv --draws 3 -o draws.csv");
    folder.ok("report m.st new.csv -o report.html");
    folder.ok("plot m.st new.csv --what predictions -o p.svg");
}

#[test]
fn what_cannot_be_is_said() {
    let folder = Folder::new();
    folder.write("rows.csv", table(0..60));
    folder.write("bad.csv", table(0..60).replacen(",0.3,", ",-0.3,", 1));
    let refused = |arguments: &str, words: &[&str]| {
        let run = folder.run(arguments);
        assert_ne!(run.code, Some(0), "{arguments}");
        words.iter().for_each(|word| assert!(run.err.contains(word), "{arguments}\n{}", run.err));
    };
    let fit = "--target temperature --ignore key -o m.st --input-sd depth=depth_sd";
    refused(&format!("fit bad.csv {fit}"), &["bad.csv", "`depth_sd`", "row 2", "-0.3"]);
    // a column of text cannot hold standard deviations, and rows that were left out count
    let text = table(0..60).replace(",0.3,", ",high,").replace(",0,", ",low,");
    folder.write("words.csv", text);
    refused(&format!("fit words.csv {fit}"), &["`depth_sd`", "holds text", "`depth`"]);
    let mut lines: Vec<String> = table(0..60).lines().map(String::from).collect();
    lines[3] = "r2,0.3,,a,1".into();
    lines[20] = lines[20].replacen(",0.3,", ",-0.3,", 1);
    folder.write("gap.csv", lines.join("\n"));
    refused(&format!("fit gap.csv {fit} --missing drop"), &["gap.csv: row 20, column `depth_sd`"]);
    refused(&format!("fit rows.csv {fit} --method svgp"), &["titsias2025", "`svgp`"]);
    refused(&format!("fit rows.csv {fit} --kernel matern52"), &["`matern52`", "`rbf`"]);
    refused(&format!("fit rows.csv {fit} --stream"), &["do not stream"]);
    refused(&format!("fit rows.csv {fit} --weight depth"), &["depth"]);
    refused(&format!("fit rows.csv {fit} --input-sd depth=salt"), &["`salt`", "nearest"]);
    refused("fit rows.csv --target temperature --input-sd depth", &["depth=depth_sd"]);
    folder.ok(&format!("fit rows.csv {fit}"));
    folder.write("less.csv", "depth,site\n1,a\n");
    refused("predict m.st less.csv", &["`depth_sd`"]);
    folder.ok("predict m.st less.csv --exact-inputs");
    folder.write("long.csv", table(0..9000).replacen("r8000,0.3,", "r8000,-0.3,", 1));
    for command in ["predict", "sample", "score"] {
        let words = ["long.csv: row 8001, column `depth_sd`", "-0.3"];
        refused(&format!("{command} m.st long.csv"), &words);
    }
    folder.write("more.csv", table(60..90));
    refused("update m.st more.csv -o n.st", &["known exactly", "depth_sd"]);
    refused("score m.st rows.csv --leave-one-out", &["known exactly"]);
    refused("predict m.st rows.csv --input-sd site=depth_sd", &["site"]);
}

#[test]
fn a_date_may_be_known_to_some_days() {
    let folder = Folder::new();
    let mut text = String::from("day,off,y\n");
    for i in 0..80 {
        let off = [0, 20, 5][i % 3];
        let shift = [0.0, 1.0, -1.0][i / 3 % 3];
        let true_day = 4 * i + 200;
        let noted = true_day as f64 + shift * off as f64;
        let (month, day) = ((noted / 28.0) as usize % 12 + 1, noted as usize % 28 + 1);
        let year = 2020 + noted as usize / 336;
        text +=
            &format!("{year}-{month:02}-{day:02},{off},{:.4}\n", (true_day as f64 / 60.0).sin());
    }
    folder.write("d.csv", text);
    let report = folder.json("fit d.csv --target y --input-sd day=off -o m.st");
    assert_eq!(report["model"]["input_sd"], serde_json::json!({"day": "off"}));
    folder.ok("predict m.st d.csv -o averaged.csv");
    folder.ok("predict m.st d.csv --exact-inputs -o exact.csv");
    let sd = |name: &str| column(&folder.read(name), "sd");
    let (averaged, exact) = (sd("averaged.csv"), sd("exact.csv"));
    let wider = (0..80).filter(|i| averaged[*i] > 1.5 * exact[*i]).count();
    assert!(wider > 20, "{wider}");
    assert!((0..80).step_by(3).all(|i| (averaged[i] - exact[i]).abs() < 1e-12 * exact[i]));
}
