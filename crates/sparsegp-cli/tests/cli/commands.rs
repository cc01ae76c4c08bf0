//! Every command on its happy path, and that they agree with each other.

use crate::support::{Folder, close, column, number, plane, snelson, texts};

#[test]
fn the_demo_needs_nothing_and_leaves_three_files() {
    let folder = Folder::new();
    let run = folder.ok("demo");
    for part in ["exact", "titsias2025", "inducing.points", "95 %", "Try next", "test"] {
        assert!(run.out.contains(part), "{}\nlacks {part}", run.out);
    }
    assert_eq!(
        folder.files(),
        ["sparsegp-demo.csv", "sparsegp-demo.safetensors", "sparsegp-demo.svg"]
    );
    let svg = folder.read("sparsegp-demo.svg");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for part in ["<polygon", "<polyline", "<circle", "inducing points", "95 % of new observations"]
    {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("NaN"));
    // What it tells to try next works as printed: with the program as it was called.
    let program = format!("  {} ", env!("CARGO_BIN_EXE_sparsegp"));
    let lines = run.out.lines().filter_map(|line| line.strip_prefix(&program));
    let lines: Vec<&str> = lines.filter(|line| !line.contains("TABLE")).collect();
    assert_eq!(lines.len(), 4);
    lines.into_iter().for_each(|line| drop(folder.ok(line)));
    assert!(folder.files().contains(&"matern.svg".to_owned()));
    // The bounds are ordered as they should be.
    let json = folder.json("demo");
    let objective = |i: usize| number(&json, &format!("/fits/{i}/model/objective"));
    assert!(objective(0) > objective(1) && objective(1) > objective(2));
    assert!(objective(2) > objective(3));
}

#[test]
fn fit_score_and_predict_agree() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let fit = folder.json("fit s.csv --target y --inducing 10 -o m.safetensors --trace t.csv");
    let score = folder.json("score m.safetensors s.csv");
    let scores = &fit["scores"]["train"]["overall"];
    assert_eq!(scores, &score["scores"]["overall"]);
    assert_eq!(scores, &score["scores"]["targets"]["y"]);
    folder.ok("predict m.safetensors s.csv -o p.csv --quantiles 0.05,0.5,0.95");
    let (table, p) = (folder.read("s.csv"), folder.read("p.csv"));
    assert!(p.starts_with("mean,sd,q0.05,q0.5,q0.95\n"));
    let (y, mean, sd) = (column(&table, "y"), column(&p, "mean"), column(&p, "sd"));
    let n = y.len() as f64;
    assert_eq!(mean.len(), y.len());
    let (mut squares, mut density) = (0.0, 0.0);
    for i in 0..y.len() {
        let z = (y[i] - mean[i]) / sd[i];
        squares += (y[i] - mean[i]).powi(2) / n;
        density += (0.5 * std::f64::consts::TAU.ln() + sd[i].ln() + 0.5 * z * z) / n;
    }
    close(number(&score, "/scores/overall/rmse"), squares.sqrt(), 1e-12);
    close(number(&score, "/scores/overall/nlpd"), density, 1e-12);
    for (i, q) in column(&p, "q0.95").iter().enumerate() {
        close(*q, mean[i] + 1.644_853_626_951_472_7 * sd[i], 1e-12);
        close(column(&p, "q0.5")[i], mean[i], 1e-12);
    }
    // The latent function is less uncertain, by the noise.
    folder.ok("predict m.safetensors s.csv -o f.csv --latent");
    let latent = column(&folder.read("f.csv"), "sd");
    let noise = sd[0].powi(2) - latent[0].powi(2);
    assert!(noise > 0.0);
    for i in 0..y.len() {
        close(sd[i].powi(2) - latent[i].powi(2), noise, 1e-9);
    }
    // The trace ends at the objective that is reported.
    let objective = column(&folder.read("t.csv"), "objective");
    close(*objective.last().unwrap(), number(&fit, "/model/objective"), 1e-9);
    assert_eq!(column(&folder.read("t.csv"), "likelihood.variance").len(), objective.len());
}

#[test]
fn objective_and_scores_are_in_the_data_s_units() {
    let folder = Folder::new();
    let scaled: String = snelson()
        .lines()
        .enumerate()
        .map(|(i, line)| match (i, line.split_once(',')) {
            (1.., Some((x, y))) => {
                let (x, y) = (x.parse::<f64>().unwrap(), y.parse::<f64>().unwrap());
                format!("{},{}\n", 1000.0 * x - 7.0, 50.0 * y + 3.0)
            }
            _ => format!("{line}\n"),
        })
        .collect();
    folder.write("a.csv", snelson());
    folder.write("b.csv", scaled);
    let a = folder.json("fit a.csv --target y --split 0.2");
    let b = folder.json("fit b.csv --target y --split 0.2");
    let shift = 50.0f64.ln();
    let rows = number(&a, "/model/rows");
    close(number(&b, "/model/objective"), number(&a, "/model/objective") - rows * shift, 1e-5);
    for rows in ["train", "test"] {
        let get = |json, name| number(json, &format!("/scores/{rows}/overall/{name}"));
        close(get(&b, "rmse"), 50.0 * get(&a, "rmse"), 1e-4);
        close(get(&b, "nlpd"), get(&a, "nlpd") + shift, 1e-4);
        close(get(&b, "msll"), get(&a, "msll"), 1e-4);
    }
    // kernel.variance, kernel.lengthscales, likelihood.variance
    for (i, factor) in [(0, 2500.0), (1, 1000.0), (2, 2500.0)] {
        let at = |unit| format!("/model/parameters/{i}/{unit}/0");
        close(number(&b, &at("value")), number(&a, &at("value")), 1e-3);
        close(number(&b, &at("data_units")), factor * number(&a, &at("data_units")), 1e-3);
    }
}

#[test]
fn several_targets() {
    let folder = Folder::new();
    folder.write("p.csv", plane(80));
    let fit = folder.ok(
        "fit p.csv --target y --target z --ignore key --split 0.25 -o m.safetensors --plot p.svg",
    );
    assert!(fit.out.contains("  y ") && fit.out.contains("  z "), "{}", fit.out);
    // Two inputs: a map of each target.
    assert_eq!(folder.read("p.svg").matches("rows, in the colour of the target").count(), 2);
    let score = folder.json("score m.safetensors p.csv");
    assert!(
        number(&score, "/scores/targets/z/rmse") > 2.0 * number(&score, "/scores/targets/y/rmse")
    );
    let predicted = folder.ok("predict m.safetensors p.csv --id key --quantiles 0.9");
    let header = predicted.out.lines().next().unwrap();
    assert_eq!(header, "key,y_mean,y_sd,y_q0.9,z_mean,z_sd,z_q0.9");
    assert_eq!(texts(&predicted.out, "key"), texts(&plane(80), "key"));
}

#[test]
fn inspect_shows_what_fit_showed() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let fit = folder.json("fit s.csv --target y --inducing 9 --freeze likelihood -o m.safetensors");
    let inspected = folder.json("inspect m.safetensors");
    assert_eq!(fit["model"], inspected);
    let text = folder.ok("inspect m.safetensors").out;
    for part in ["titsias2025", "kernel.lengthscales", "frozen", "9×1", "objective", "--full"] {
        assert!(text.contains(part), "{text}\nlacks {part}");
    }
    let full = folder.ok("inspect m.safetensors --full").out;
    assert!(full.lines().count() > text.lines().count() + 8, "{full}");
}

#[test]
fn methods_and_kernels_list_the_registries() {
    let folder = Folder::new();
    let methods = folder.ok("methods").out;
    for entry in sparsegp::methods::REGISTRY {
        assert!(methods.contains(entry.name));
    }
    let kernels = folder.ok("kernels").out;
    for entry in sparsegp::kernels::REGISTRY {
        assert!(kernels.contains(entry.name));
    }
    assert!(kernels.contains("matern32 + linear"));
    let count = |command| folder.json(command).as_array().unwrap().len();
    assert_eq!(count("methods"), sparsegp::methods::REGISTRY.len());
    assert_eq!(count("kernels"), sparsegp::kernels::REGISTRY.len());
}

#[test]
fn every_command_explains_itself_and_quiet_is_quiet() {
    let folder = Folder::new();
    for command in
        ["", "demo", "fit", "predict", "score", "inspect", "methods", "kernels", "likelihoods"]
    {
        assert!(folder.ok(&format!("{command} --help")).out.contains("Usage: sparsegp"));
    }
    assert!(folder.ok("--help").out.contains("130"));
    for command in ["fit", "predict", "score", "inspect"] {
        assert!(folder.ok(&format!("{command} --help")).out.contains("Examples:"));
    }
    folder.write("s.csv", snelson());
    let run = folder.ok("fit s.csv --target y --inducing 5 -o m.safetensors --quiet");
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
    assert!(folder.ok("score m.safetensors s.csv --quiet").out.contains("RMSE"));
    let run = folder.ok("predict m.safetensors s.csv --quiet");
    assert_eq!((run.out.lines().count(), run.err.as_str()), (201, ""));
}

#[test]
fn a_reader_of_only_the_beginning_is_not_a_failure() {
    let folder = Folder::new();
    folder.write("p.csv", plane(3000));
    folder.ok("fit p.csv --target y --features a --inducing 5 --pilot 0 --max-iterations 3 -o m.safetensors");
    let mut child = folder
        .command("predict m.safetensors p.csv --threads 1")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn shells_and_the_manual_know_all_commands() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = folder.ok(&format!("completions {shell}")).out;
        assert!(script.contains("compare") && script.contains("inducing"), "{shell}");
    }
    assert!(folder.ok("man").out.contains(".TH sparsegp 1"));
    std::fs::create_dir(folder.path("pages")).unwrap();
    folder.ok("man --folder pages");
    let page = folder.read("pages/sparsegp-fit.1");
    assert!(page.contains(".TH sparsegp-fit 1") && page.contains("early"));
    assert!(folder.read("pages/sparsegp-compare.1").contains("folds"));
    folder.refused(1, "man --folder nowhere", &["nowhere"]);
}

#[test]
fn rows_are_scored_by_the_others() {
    const ROWS: usize = 12;
    let folder = Folder::new();
    let lines: Vec<String> = snelson().lines().take(ROWS + 1).map(str::to_owned).collect();
    let table = |kept: &dyn Fn(usize) -> bool| {
        let rows = (1..=ROWS).filter(|i| kept(i - 1)).map(|i| lines[i].clone());
        std::iter::once(lines[0].clone()).chain(rows).collect::<Vec<_>>().join("\n") + "\n"
    };
    folder.write("s.csv", table(&|_| true));
    folder.ok("fit s.csv --target y --max-iterations 5 --hyperparameters plug-in -o m");
    let nlpd = |json: &serde_json::Value| number(json, "/scores/overall/nlpd");
    let score = folder.json("score m s.csv --leave-one-out");
    assert_eq!(number(&score, "/rows"), ROWS as f64);
    // against models of the other rows, in the data's units; the mean that standardising takes off is of all
    let model = folder.json("inspect m");
    let mean = number(&model, "/scaler/y_mean/0");
    let set: Vec<String> = (0..3)
        .map(|i| {
            let path = model["parameters"][i]["path"].as_str().unwrap();
            format!("--set {path}={}", number(&model, &format!("/parameters/{i}/data_units/0")))
        })
        .collect();
    let set = set.join(" ");
    let mut sum = 0.0;
    for i in 0..ROWS {
        folder.write("others.csv", table(&|j| j != i));
        folder.write("one.csv", table(&|j| j == i));
        folder.ok(&format!(
            "fit others.csv --target y --no-standardise --mean constant --max-iterations 0 --hyperparameters plug-in {set} \
             --set mean.constant={mean} --freeze mean -o other"
        ));
        sum += nlpd(&folder.json("score other one.csv")) / ROWS as f64;
    }
    close(nlpd(&score), sum, 1e-8);
    folder.write("three.csv", table(&|j| j < 3));
    folder.refused(1, "score m three.csv --leave-one-out", &["3 rows", "trained on 12"]);
    folder.refused(2, "score m s.csv --leave-one-out --plot p.svg", &["--plot"]);
    // counts and classes have only densities
    folder.write("c.csv", "x,y\n0,1\n1,2\n2,4\n3,3\n4,1\n5,0\n6,1\n");
    folder.ok("fit c.csv --target y --likelihood poisson -o c");
    let score = folder.json("score c c.csv --leave-one-out");
    assert!(nlpd(&score) > nlpd(&folder.json("score c c.csv")));
    folder.write("l.csv", "x,y\n0,no\n1,no\n2,yes\n3,yes\n4,no\n5,yes\n6,yes\n");
    folder.ok("fit l.csv --target y -o l");
    assert!(nlpd(&folder.json("score l l.csv --leave-one-out")) > 0.0);
}

#[test]
fn targets_are_mixtures_of_common_functions() {
    let folder = Folder::new();
    let mut table = String::from("x,a,b,c\n");
    for i in 0..60 {
        let x = 0.1 * f64::from(i);
        let (g, h, e) = (x.sin(), (1.7 * x).cos(), 0.05 * (37.0 * x).sin());
        table += &format!("{x},{},{},{}\n", g + e, 2.0 - 0.5 * g + h - e, 30.0 * h + 3.0 * e);
    }
    folder.write("t.csv", table);
    let fit = folder.json(
        "fit t.csv -t a -t b -t c --likelihood 'coregionalised(outputs=3, latents=2)' --inducing 15 -o m",
    );
    assert_eq!(fit["model"]["likelihood"]["type"], "coregionalised");
    assert_eq!(fit["model"]["kernels"].as_array().unwrap().len(), 2);
    assert!(number(&fit, "/scores/train/overall/nlpd").is_finite());
    folder.ok("predict m t.csv -o p.csv");
    folder.ok("inspect m");
    folder.refused(
        1,
        "fit t.csv -t a -t b --likelihood 'coregionalised(outputs=3, latents=2)'",
        &["outputs=2"],
    );
}

/// What people write who do not know the program yet, with the remedy.
#[test]
fn mistakes_name_their_remedy() {
    let folder = Folder::new();
    folder.write("s.csv", "a,b,y\n1,20,3\n2,10,5\n3,30,4\n4,50,6\n");
    for (code, line, remedy) in [
        (1, "fit - --target y", "`follow` reads from `-`"),
        (
            2,
            "fit s.csv --target y --method laplace",
            "is a likelihood, not a method: --likelihood laplace",
        ),
        (2, "compare s.csv --target y --max-iterations 5", "stand after a `--` at the end"),
        (2, "fit s.csv --target y --freeze noise", "nearest: `likelihood.variance`\n"),
        (
            2,
            "fit s.csv --target y --kernel-units data --kernel 'rbf(lengthscales=10)'",
            "give one for each column in a list",
        ),
    ] {
        folder.refused(code, line, &[remedy]);
    }
}
