//! Minibatches: options, progress, early stopping, checkpoints, continuing.

use crate::support::{Folder, bundled, close, column, number, plane, snelson, tensors};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn a_killed_training_resumes_to_the_same_bits() {
    killed_and_resumed("svgp");
}

/// T of R-SVGP is part of what is kept, and the probes of a step are those of its number.
#[test]
fn a_killed_training_of_rsvgp_resumes_to_the_same_bits() {
    killed_and_resumed("rsvgp --probes 5 --inducing-wait 50");
}

fn killed_and_resumed(method: &str) {
    let folder = Folder::new();
    folder.write("p.csv", plane(900));
    // The learning rate falls until the last epoch: both runs are to have as many.
    let epochs = 10;
    let fit = |epochs: usize, checkpoint: &str, model: &str| {
        format!(
            "fit p.csv --target y --features a,b --method {method} --inducing 20 --batch 50 \
             --epochs {epochs} --early-stopping 0.1 --patience 1000 --checkpoint {checkpoint} \
             --checkpoint-every 0 -o {model}"
        )
    };
    let mut child = folder
        .command(&fit(epochs, "c", "m"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Until there is a checkpoint: there is one after every minibatch.
    while !folder.path("c").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
    }
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    assert!(!folder.path("m").exists());
    let done = folder.json("inspect c");
    assert!(done["parameters"].as_array().unwrap().len() > 3);
    // How far it came is its own affair; it ends where a run without interruption ends.
    let reached = sparsegp::io::load_checkpoint(&folder.path("c")).unwrap().1.unwrap();
    assert!(reached.trace.len() < epochs, "it was killed too late");
    let run = folder.ok(&fit(epochs, "c", "m"));
    assert!(run.err.contains("c exists: resuming from it"), "{}", run.err);
    let whole = folder.ok(&fit(epochs, "d", "n"));
    assert!(!whole.err.contains("is there"));
    let (resumed, straight) = (tensors(&folder.bytes("m")), tensors(&folder.bytes("n")));
    assert!(straight.iter().any(|(name, _)| name == "q.mu"));
    assert_eq!(resumed, straight);
    let objective = |name| number(&folder.json(&format!("inspect {name}")), "/objective");
    assert_eq!(objective("m"), objective("n"));
    // A checkpoint of other rows is none of this training.
    folder.refused(
        1,
        &fit(epochs, "c", "x").replace("0.1", "0.3"),
        &["c: is not a checkpoint of this"],
    );
    folder.refused(
        1,
        &fit(epochs, "n", "x"),
        &["n: is not a checkpoint of this", "without a state"],
    );
    // its state has a rate, which another would not change
    let faster = fit(epochs, "c", "x") + " --learning-rate 0.37";
    folder.refused(
        1,
        &faster,
        &["c: is not a checkpoint of this", "optimiser of minibatches", "0.37"],
    );
}

#[test]
fn a_model_continues_on_new_rows_in_its_own_units() {
    let folder = Folder::new();
    let text = plane(800);
    let lines: Vec<&str> = text.lines().collect();
    let part = |rows: std::ops::Range<usize>| {
        let rows = rows.map(|i| lines[i + 1]).collect::<Vec<_>>().join("\n");
        format!("{}\n{rows}\n", lines[0])
    };
    folder.write("old.csv", part(0..300));
    folder.write("new.csv", part(300..800));
    folder
        .ok("fit old.csv --target y --features b,a --method svgp --inducing 25 --epochs 60 -o m \
         --learning-rate 0.03");
    let before = folder.json("score m new.csv");
    let run =
        folder.ok("fit new.csv --from m --epochs 40 --learning-rate 0.03 -o n --freeze inducing");
    assert!(run.out.contains("svgp"), "{}", run.out);
    let after = folder.json("score n new.csv");
    let nlpd = |json| number(json, "/scores/overall/nlpd");
    assert!(nlpd(&after) < nlpd(&before), "{} {}", nlpd(&after), nlpd(&before));
    let (m, n) = (folder.json("inspect m"), folder.json("inspect n"));
    assert_eq!(m["scaler"], n["scaler"]);
    assert_eq!(number(&n, "/rows"), 500.0);
    assert_eq!(n["inputs"], serde_json::json!(["b", "a"]));
    let points = |json: &serde_json::Value| {
        let all = json["parameters"].as_array().unwrap();
        all.iter().find(|p| p["path"] == "inducing.points").unwrap()["value"].clone()
    };
    assert_eq!(points(&m), points(&n));
    folder.refused(2, "fit new.csv --from m --kernel rbf -o x", &["--from", "cannot be used with"]);
    folder.refused(2, "fit new.csv --from m --target y -o x", &["cannot be used with"]);
    folder.write("bad.csv", "a,y\n1,2\n2,3\n");
    folder.refused(1, "fit bad.csv --from m -o x", &["bad.csv: column `b`"]);
    // Of classes too: they stay the model's.
    folder.write("c.csv", "x,k\n1,u\n2,v\n3,u\n4,v\n5,w\n");
    folder.write("d.csv", "x,k\n1,u\n2,v\n2.5,v\n");
    folder.write("e.csv", "x,k\n1,u\n2,q\n");
    folder.ok("fit c.csv --target k -o k --epochs 3");
    let json = folder.json("fit d.csv --from k --epochs 3");
    assert_eq!(json["model"]["classes"], serde_json::json!(["u", "v", "w"]));
    folder.refused(1, "fit e.csv --from k -o x", &["e.csv: row 2", "`q` is none of the classes"]);
}

#[test]
fn early_stopping_keeps_rows_aside_and_the_best_state() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let fit = folder.json(
        "fit s.csv --target y --method svgp2025 --inducing 12 --batch 32 --epochs 400 \
         --learning-rate 0.2 --natural-rate 1 --early-stopping 0.25 --patience 3 --split 0.2 \
         --trace t.csv -o m",
    );
    assert_eq!(number(&fit, "/model/rows"), 120.0);
    assert_eq!(number(&fit, "/scores/train/overall/rows"), 120.0);
    assert_eq!(number(&fit, "/scores/test/overall/rows"), 40.0);
    let stopped = fit["model"]["training"]["stopped"].as_str().unwrap();
    assert!(stopped.contains("no better for 3 epochs"), "{stopped}");
    let aside = column(&folder.read("t.csv"), "held_out");
    let best = aside.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let at = aside.iter().position(|d| *d == best).unwrap();
    assert_eq!(at + 4, aside.len(), "{aside:?}");
    assert!(folder.ok("inspect m").out.contains("rows aside best mean log density"));
}

#[test]
fn progress_tells_epoch_objective_and_pace() {
    let folder = Folder::new();
    folder.write("p.csv", plane(600));
    let mut child = folder
        .command(
            "fit p.csv --target y --features a,b --method svgp --inducing 10 --batch 100 \
             --epochs 1000000",
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = Vec::new();
    let pace = loop {
        let line = lines.next().expect("it continues").unwrap();
        seen.push(line.clone());
        if line.contains("rows/s") {
            break line;
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        seen.iter().any(|l| l.contains("epoch 1 of 1000000, batch 1 of 6, objective")),
        "{seen:?}"
    );
    assert!(pace.contains("ends in"), "{pace}");
}

#[test]
fn ways_to_train_q_reach_the_same_bound() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let objective = |more: &str| {
        let json = folder.json(&format!(
            "fit s.csv --target y --inducing 8 --freeze kernel --freeze likelihood \
             --set likelihood.variance=0.1 --set kernel.lengthscales=0.5 --freeze inducing {more}"
        ));
        number(&json, "/model/objective")
    };
    let collapsed = objective("--method titsias2009");
    // With Gaussian noise one full natural step is the optimum.
    close(objective("--method svgp --natural-rate 1 --epochs 1"), collapsed, 1e-8);
    let whole = objective("--method svgp --full-batch --max-iterations 300");
    assert!(whole <= collapsed + 1e-6 && whole > collapsed - 1.0, "{whole} {collapsed}");
    let adam = objective("--method svgp --no-natural --epochs 300 --learning-rate 0.05");
    assert!(adam <= collapsed + 1e-6 && adam > collapsed - 5.0, "{adam} {collapsed}");
    let diagonal = objective("--method svgp --diagonal --epochs 300 --learning-rate 0.05");
    assert!(diagonal <= adam + 1e-6, "{diagonal} {adam}");
    // Nothing is left to Adam; q moves all the same.
    let batches = objective("--batch 50 --epochs 60 --natural-rate 0.05");
    assert!(batches > collapsed - 10.0, "{batches} {collapsed}");
}

/// A smaller tolerance trains for longer; rounds that are asked for run to the end.
#[test]
fn trainings_end_where_their_options_say() {
    let folder = Folder::new();
    folder.write("m.csv", bundled("mcycle.csv.gz"));
    let training = |more: &str| {
        let json = folder.json(&format!(
            "fit m.csv --target y --likelihood heteroscedastic --method tsvgp --full-batch \
             --inducing 20 --max-iterations 300 -o m {more}"
        ));
        let at = |what: &str| number(&json, &format!("/model/training/{what}"));
        (at("iterations"), number(&json, "/model/objective"))
    };
    let (usual, longer) = (training(""), training("--tolerance 1e-8"));
    assert!(longer.0 > usual.0 && longer.1 >= usual.1, "{usual:?} {longer:?}");
    // they crawl
    let in_turn = training("--m-steps 10");
    assert!(in_turn.0 == 300.0 && in_turn.1 < usual.1 - 0.5, "{usual:?} {in_turn:?}");
    assert_eq!(training("--e-steps 20"), in_turn, "either option asks for rounds");
}

#[test]
fn streaming_gives_a_model_too() {
    let folder = Folder::new();
    let table: String =
        bundled("bikes-daily.csv.gz").lines().take(301).map(|l| format!("{l}\n")).collect();
    folder.write("b.csv", table);
    let fit = folder.json(
        "fit b.csv --target y --likelihood negative-binomial --stream --batch 64 --epochs 8 \
         --inducing 15 --early-stopping 0.1 --split 0.1 --learning-rate 0.05 --plot s.svg -o m",
    );
    assert!(number(&fit, "/scores/test/overall/nlpd") < 10.0, "{fit}");
    assert!(folder.read("s.svg").contains("predicted = observed"));
    folder.ok("score m b.csv");
}

#[test]
fn contradictions_are_refused() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    for (more, parts) in [
        ("--method exact --batch 10", &["--batch", "svgp2025", "--method exact"][..]),
        ("--method exact --diagonal", &["--diagonal has no effect"]),
        ("--method svgp --max-iterations 5", &["--max-iterations", "--full-batch"]),
        ("--method svgp --optimiser adam", &["--optimiser", "--full-batch"]),
        ("--method svgp --tolerance 1e-6", &["--tolerance", "--full-batch"]),
        (
            "--method titsias2025 --optimiser adam --tolerance 1e-6",
            &["--tolerance", "L-BFGS", "--optimiser adam"],
        ),
        ("--method titsias2025 --tolerance -1", &["--tolerance", "-1"]),
        ("--method svgp --full-batch --epochs 5", &["--full-batch", "--epochs"]),
        ("--method svgp --full-batch --learning-rate 0.1", &["--optimiser adam"]),
        ("--method svgp --no-natural --natural-rate 0.1", &["cannot be used with"]),
        ("--method svgp --natural-rate 1.5", &["above 0 and at most 1"]),
        ("--method svgp --batch 0", &["--batch", "at least 1"]),
        ("--method svgp --early-stopping 1", &["between 0 and 1"]),
        ("--method svgp --patience 5", &["--early-stopping"]),
        ("--method svgp --checkpoint-every 5", &["--checkpoint"]),
        ("--method svgp --checkpoint s.csv", &["s.csv would be overwritten"]),
        ("--method svgp --checkpoint m", &["m would be overwritten"]),
    ] {
        folder.refused(2, &format!("fit s.csv --target y -o m {more}"), parts);
    }
    folder.refused(1, "fit s.csv --target y -o m --batch 5 --checkpoint no/c", &["no/c", "folder"]);
    // it sees all rows at once anyway
    folder.ok("fit s.csv --target y -o m --method exact --full-batch --max-iterations 2 -q");
}

/// Sites by minibatches with their own steps, on all rows with every tying, and what is refused.
#[test]
fn sites_are_trained_saved_and_used() {
    let folder = Folder::new();
    folder.write("p.csv", plane(300));
    let fit = "fit p.csv --target y --features a,b --method tsvgp --inducing 15 --split 0.2";
    let rmse = |more: &str| {
        let json = folder.json(&format!("{fit} {more} -o m"));
        assert_eq!(json["model"]["method"], "tsvgp");
        let paths: Vec<&str> = json["model"]["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["path"].as_str().unwrap())
            .collect();
        assert!(paths.contains(&"q.lambda1") && paths.contains(&"q.lambda2"), "{paths:?}");
        // what was saved predicts as what was fitted
        let own = number(&json, "/scores/train/overall/rmse");
        folder.ok("predict m p.csv -o predictions.csv");
        assert_eq!(column(&folder.read("predictions.csv"), "mean").len(), 300);
        own
    };
    let spread = {
        let y = column(&folder.read("p.csv"), "y");
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        (y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / y.len() as f64).sqrt()
    };
    for more in [
        "--batch 60 --epochs 40",
        "--batch 60 --epochs 40 --e-steps 2 --m-steps 2 --natural-rate 0.3",
        "--full-batch --max-iterations 60",
        "--full-batch --max-iterations 60 --tying untied --e-steps 3 --natural-rate 1",
        "--full-batch --max-iterations 60 --tying whitened",
    ] {
        let own = rmse(more);
        assert!(own < 0.3 * spread, "{more}: {own} of {spread}");
    }
    for (more, parts) in [
        ("--tying untied", &["--tying untied", "--full-batch"][..]),
        ("--diagonal", &["--diagonal", "tsvgp"]),
        ("--no-natural", &["--no-natural", "moments"]),
        ("--method svgp --tying kernel", &["--tying", "svgp", "tsvgp"]),
        ("--method svgp --full-batch --e-steps 3", &["--e-steps", "--full-batch"]),
        ("--method titsias2025 --e-steps 3", &["--e-steps", "titsias2025"]),
        ("--method tvgp --full-batch --diagonal", &["--diagonal", "tvgp"]),
        ("--method tvgp --tying natural", &["--tying", "tvgp"]),
        ("--freeze q", &["separate steps"]),
    ] {
        let fit =
            if more.contains("--method") { fit.replace("--method tsvgp ", "") } else { fit.into() };
        let code = if more == "--freeze q" { 1 } else { 2 };
        folder.refused(code, &format!("{fit} {more}"), parts);
    }
    // steps may be asked of `auto` and of `tvgp`
    let rows: String = (0..60).map(|i| format!("{i},{}\n", i / 7 % 3)).collect();
    folder.write("c.csv", format!("x,y\n{rows}"));
    for (more, method) in [("", "tsvgp"), ("--method tvgp --missing keep", "tvgp")] {
        let steps = "--e-steps 3 --m-steps 5 --natural-rate 0.5 --max-iterations 10";
        let fit = format!("fit c.csv --target y --likelihood poisson {steps} {more}");
        assert_eq!(folder.json(&fit)["model"]["method"], method);
    }
}

/// Sites of all rows, without inducing points, for one and two latent functions.
#[test]
fn sites_without_inducing_points_are_trained_saved_and_used() {
    let folder = Folder::new();
    let mut table = String::from("x,y\n");
    for i in 0..70 {
        let x = 0.1 * f64::from(i);
        table += &format!("{x},{}\n", x.sin() + 0.05 * (1.0 + x) * (17.0 * x).cos());
    }
    folder.write("t.csv", table);
    for likelihood in ["student-t", "heteroscedastic"] {
        let fit = format!(
            "fit t.csv --target y --likelihood {likelihood} --method tvgp --max-iterations 60 --plot p.svg -o m"
        );
        let json = folder.json(&fit);
        assert!(number(&json, "/scores/train/overall/rmse") < 0.4, "{json}");
        let before = folder.json("score m t.csv");
        assert_eq!(before["scores"], json["scores"]["train"]);
        let text = folder.ok("inspect m").out;
        assert!(text.contains("lower bound") && !text.contains("frozen"), "{text}");
        folder.ok("plot m t.csv -o q.svg");
        assert_eq!(folder.read("p.svg"), folder.read("q.svg"));
    }
}

#[test]
fn a_killed_training_on_all_rows_resumes_to_the_same_bits() {
    for method in ["titsias2025", "tsvgp --full-batch --likelihood student-t"] {
        let folder = Folder::new();
        folder.write("p.csv", plane(600));
        let fit = |checkpoint: &str, model: &str| {
            format!(
                "fit p.csv --target y --features a,b --method {method} --inducing 60 --max-iterations 40 \
                 --checkpoint {checkpoint} --checkpoint-every 0 -o {model}"
            )
        };
        let mut command = folder.command(&fit("c", "m"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !folder.path("c").exists() {
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert!(child.try_wait().unwrap().is_none(), "it ended early");
        }
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        assert!(!folder.path("m").exists());
        let run = folder.ok(&fit("c", "m"));
        assert!(run.err.contains("c exists: resuming from it"), "{}", run.err);
        folder.ok(&fit("d", "n"));
        assert_eq!(tensors(&folder.bytes("m")), tensors(&folder.bytes("n")), "{method}");
        let line = fit("c", "x").replace("--inducing 60", "--inducing 50");
        folder.refused(1, &line, &["c: is not a checkpoint of this", "inducing"]);
    }
}
