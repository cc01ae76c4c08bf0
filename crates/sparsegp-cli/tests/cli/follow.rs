//! Streams, predicted before they are learnt.

use crate::support::{Folder, close, column, number, tensors};
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn row(i: usize, shift: f64) -> String {
    let x = (i as f64 * 0.618_033_988_749_895).fract() * 8.0;
    let noise = (i as f64 * 0.414_213_562_373_095).fract() - 0.5;
    format!("{x:.5},{:.5}\n", 20.0 + 5.0 * x.sin() + shift + noise)
}

fn rows(n: usize, from: usize, shift: f64) -> String {
    (from..from + n).map(|i| row(i, shift)).collect()
}

/// A folder with a model of 150 rows, m.safetensors.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.csv", format!("x,y\n{}", rows(150, 0, 0.0)));
    folder.ok("fit a.csv --target y --inducing 12 -o m.safetensors");
    folder
}

fn piped(folder: &Folder, arguments: &str) -> Child {
    let mut command = folder.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn waits_until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} took too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn rows_are_predicted_before_they_are_learnt() {
    let folder = folder();
    folder.write("s.csv", format!("x,y\n{}", rows(250, 1000, 0.0)));
    folder.write("head.csv", format!("x,y\n{}", rows(100, 1000, 0.0)));
    let report = folder
        .json("follow m.safetensors s.csv --correlation 0 --predictions p.csv -o f.safetensors");
    assert_eq!(
        (&report["rows"], &report["batches"], &report["rows_in_all"]),
        (&250.into(), &3.into(), &400.into())
    );
    // the first batch is predicted by the model as it was
    let own = folder.read("p.csv");
    let plain = folder.ok("predict m.safetensors head.csv").out;
    for name in ["mean", "sd", "q0.975"] {
        assert_eq!(column(&own, name)[..100], column(&plain, name)[..], "{name}");
    }
    assert_eq!(column(&own, "y").len(), 250);
    // all rows were learnt, as by one update
    folder.ok("update m.safetensors s.csv --correlation 0 -o u.safetensors");
    let of = |model: &str| column(&folder.ok(&format!("predict {model} s.csv")).out, "sd");
    of("f.safetensors").iter().zip(of("u.safetensors")).for_each(|(a, b)| close(*a, b, 1e-8));
    let before = number(&report, "/before/overall/rmse");
    assert!(before < 0.36, "{before}");
    let errors = column(&own, "mean").into_iter().zip(column(&own, "y"));
    let square: f64 = errors.map(|(m, y)| (m - y) * (m - y)).sum();
    close(before, (square / 250.0).sqrt(), 1e-9);
}

/// A run that is killed leaves its last save, and the next resumes there: no row is lost or counts
/// twice.
#[test]
fn a_killed_run_resumes_where_it_was_saved() {
    let folder = folder();
    let (first, rest) = (rows(200, 1000, 0.0), rows(150, 1200, 0.0));
    folder.write("s.csv", format!("x,y\n{first}{rest}"));
    let line = "--batch 50 --save-every 0.000001 --patience 0.2s";
    folder.ok(&format!("follow m.safetensors s.csv {line} --predictions p.csv -o f.safetensors"));
    folder.ok("inspect m.safetensors");
    std::fs::copy(folder.path("m.safetensors"), folder.path("k.safetensors")).unwrap();
    let line = format!("follow k.safetensors - {line} --predictions q.csv -o k.safetensors");
    let mut child = piped(&folder, &line);
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("x,y\n{first}").as_bytes()).unwrap();
    input.flush().unwrap();
    let all_there =
        || std::fs::read_to_string(folder.path("q.csv")).is_ok_and(|t| t.lines().count() == 201);
    waits_until("the first rows", all_there);
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    drop(input);
    // at least three batches were saved, and the file is whole
    let kept = folder.json("inspect k.safetensors")["rows"].as_u64().unwrap();
    assert!([300, 350].contains(&kept), "{kept}");
    // what the dead run wrote after its last save does not stay
    std::fs::OpenOptions::new()
        .append(true)
        .open(folder.path("q.csv"))
        .and_then(|mut file| file.write_all(b"1,half a li"))
        .unwrap();
    let report = folder.json(&line.replace(" - ", " s.csv "));
    assert_eq!(report["skipped"], kept - 150);
    assert_eq!(report["rows_in_all"], 500);
    assert_eq!(folder.read("p.csv"), folder.read("q.csv"));
    let [whole, resumed] =
        ["f.safetensors", "k.safetensors"].map(|name| tensors(&folder.bytes(name)));
    assert_eq!(whole, resumed);
    // and again there is nothing new
    let report = folder.json(&line.replace(" - ", " s.csv "));
    assert_eq!((&report["rows"], &report["skipped"]), (&0.into(), &350.into()));
    // a stream that begins in the same way and then differs
    folder.write("s.csv", format!("x,y\n{first}{}", rows(150, 3000, 1.0)));
    folder.refused(2, &line.replace(" - ", " s.csv "), &["350 rows", "--again"]);
    let report = folder.json(&line.replace(" - ", " s.csv --again "));
    assert_eq!((&report["rows"], &report["skipped"]), (&350.into(), &0.into()));
}

#[test]
fn a_live_stream_is_learnt_as_it_comes_and_ends_with_a_signal() {
    let folder = folder();
    let mut child = piped(
        &folder,
        "--json follow m.safetensors - --patience 0.1s --save-every 0.000001 --predictions p.csv -o m.safetensors",
    );
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("x,y\n{}", rows(7, 1000, 0.0)).as_bytes()).unwrap();
    input.flush().unwrap();
    let count = |n: usize| {
        std::fs::read_to_string(folder.path("p.csv")).is_ok_and(|text| text.lines().count() == n)
    };
    // fewer than a batch, after a moment without more
    waits_until("seven rows", || count(8));
    input.write_all(rows(5, 1007, 0.0).as_bytes()).unwrap();
    input.flush().unwrap();
    waits_until("five more", || count(13));
    let kill = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["rows"], &report["rows_in_all"]), (&12.into(), &162.into()));
    assert_eq!(folder.json("inspect m.safetensors")["rows"], 162);
}

/// Nothing that was learnt is lost when the stream breaks, and a long wait does not leave it unsaved.
#[test]
fn what_was_learnt_is_kept_when_a_stream_breaks_or_pauses() {
    let folder = folder();
    folder.write("s.csv", format!("x,y\n{}1,\"2\n3,4\n", rows(120, 1000, 0.0)));
    let run =
        folder.run("follow m.safetensors s.csv --batch 50 --predictions p.csv -o f.safetensors");
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("never closed") && run.err.contains("120 rows before"), "{}", run.err);
    assert_eq!(folder.json("inspect f.safetensors")["rows"], 270);
    assert_eq!(folder.read("p.csv").lines().count(), 121);
    // once mended, it resumes where it broke
    folder.write("s.csv", format!("x,y\n{}{}", rows(120, 1000, 0.0), rows(30, 1120, 0.0)));
    let report =
        folder.json("follow f.safetensors s.csv --batch 50 --predictions p.csv -o f.safetensors");
    assert_eq!((&report["rows"], &report["skipped"]), (&30.into(), &120.into()));
    assert_eq!(column(&folder.read("p.csv"), "y").len(), 150);
    // predictions that are of something else stay as they are
    folder.write("other.csv", "a,b\n1,2\n");
    folder.write("s.csv", format!("x,y\n{}", rows(170, 1000, 0.0)));
    let line = "follow f.safetensors s.csv --predictions other.csv -o f.safetensors";
    folder.refused(2, line, &["other.csv", "another name"]);
    assert_eq!(folder.read("other.csv"), "a,b\n1,2\n");
    // a pause
    let mut child =
        piped(&folder, "follow m.safetensors - --patience 0.1s --save-every 0.3s -o i.safetensors");
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("x,y\n{}", rows(5, 5000, 0.0)).as_bytes()).unwrap();
    input.flush().unwrap();
    waits_until("the save", || folder.path("i.safetensors").exists());
    assert_eq!(folder.json("inspect i.safetensors")["rows"], 155);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(input);
}

/// Two streams that begin alike: each is known by the whole of what was learnt of it.
#[test]
fn streams_with_a_common_head_are_distinguished() {
    let folder = folder();
    let head = rows(90, 1000, 0.0);
    let (a, b) = (head.clone() + &rows(60, 2000, 0.0), head.clone() + &rows(20, 3000, 0.0));
    folder.write("a.csv", format!("x,y\n{a}"));
    folder.write("b.csv", format!("x,y\n{b}"));
    folder.ok("follow m.safetensors a.csv -o m.safetensors");
    // shorter than what is known, and other rows
    let line = "follow m.safetensors b.csv -o m.safetensors";
    folder.refused(2, line, &["nothing new", "--again"]);
    folder.ok(&format!("{line} --again"));
    // both are known from now on, whichever is longer
    for name in ["a.csv", "b.csv"] {
        folder.refused(2, &format!("update m.safetensors {name} -o u.safetensors"), &["followed"]);
    }
    let report = folder.json(line);
    assert_eq!((&report["rows"], &report["skipped"]), (&0.into(), &110.into()));
    folder.write("b.csv", format!("x,y\n{b}{}", rows(15, 4000, 0.0)));
    let report = folder.json("update m.safetensors b.csv -o u.safetensors");
    assert_eq!(report["rows"], 15);
    let report = folder.json(line);
    assert_eq!((&report["rows"], &report["skipped"]), (&15.into(), &110.into()));
    // beyond the longer of the two
    folder.write("b.csv", format!("x,y\n{b}{}", rows(115, 4000, 0.0)));
    let report = folder.json(line);
    assert_eq!((&report["rows"], &report["skipped"]), (&100.into(), &125.into()));
    let report = folder.json("follow m.safetensors a.csv -o m.safetensors");
    assert_eq!((&report["rows"], &report["skipped"]), (&0.into(), &150.into()));
}

/// Streams and tables are known to each other.
#[test]
fn update_and_follow_skip_what_the_other_learnt() {
    let folder = folder();
    let mut log = format!("x,y\n{}", rows(150, 0, 0.0));
    log += &rows(60, 150, 0.0);
    folder.write("log.csv", &log);
    folder.ok("follow m.safetensors log.csv -o m.safetensors");
    folder.refused(2, "update m.safetensors log.csv -o m.safetensors", &["followed", "--again"]);
    log += &rows(25, 210, 0.0);
    folder.write("log.csv", &log);
    let report = folder.json("update m.safetensors log.csv -o m.safetensors");
    assert_eq!((&report["rows"], &report["rows_in_all"]), (&25.into(), &235.into()));
    log += &rows(10, 235, 0.0);
    folder.write("log.csv", &log);
    let report = folder.json("follow m.safetensors log.csv -o m.safetensors");
    assert_eq!((&report["rows"], &report["skipped"]), (&10.into(), &235.into()));
    // a table that was taken up is not a stream to learn
    folder.write("b.csv", format!("x,y\n{}", rows(40, 900, 0.0)));
    folder.ok("update m.safetensors b.csv -o m.safetensors");
    let report = folder.json("follow m.safetensors b.csv -o m.safetensors");
    assert_eq!((&report["rows"], &report["skipped"]), (&0.into(), &40.into()));
    // the table of a fit that left rows out is known
    folder.write("g.csv", format!("x,y\n{}3,\n{}", rows(60, 0, 0.0), rows(40, 60, 0.0)));
    folder.ok("fit g.csv --target y --missing drop --inducing 9 -o g.safetensors");
    let report = folder.json("follow g.safetensors g.csv -o g.safetensors");
    assert_eq!((&report["rows"], &report["skipped"]), (&0.into(), &101.into()));
    // NumPy's header, and names that predictions have
    let data = rows(30, 2000, 0.0);
    folder.write("np.csv", format!("# x,y\n{data}"));
    let report = folder.json("follow m.safetensors np.csv --batch 10 -o n.safetensors");
    assert_eq!((&report["rows"], &report["batches"]), (&30.into(), &3.into()));
    folder.write("label.csv", format!("x,mean\n{}", rows(50, 0, 0.0)));
    folder.write("later.csv", format!("x,mean\n{}", rows(9, 70, 0.0)));
    folder.ok("fit label.csv --target mean --inducing 9 -o l.safetensors");
    folder.ok("follow l.safetensors later.csv --predictions q.csv -o l.safetensors");
    assert!(folder.read("q.csv").starts_with("mean_observed,mean,sd,"), "{}", folder.read("q.csv"));
}

#[test]
fn changes_are_reported_and_forgetting_follows_them() {
    let folder = folder();
    folder.write("s.csv", format!("x,y\n{}{}", rows(600, 1000, 0.0), rows(600, 1600, 4.0)));
    let run = |more: &str| {
        folder.json(&format!("follow m.safetensors s.csv --batch 30 {more} -o f.safetensors"))
    };
    let (kept, forgot) = (run(""), run("--forget 0.8"));
    assert_eq!(kept["changes"].as_array().unwrap().len(), 1, "{kept}");
    assert_eq!(kept["changes"][0]["first_row"], 601);
    let nlpd = |report: &serde_json::Value| number(report, "/before/overall/nlpd");
    assert!(nlpd(&forgot) < nlpd(&kept) - 1.0, "{} {}", nlpd(&forgot), nlpd(&kept));
    // so does a noise that is learnt with the rows
    let learnt = run("--train 10");
    assert!(nlpd(&learnt) < nlpd(&kept) - 1.0, "{} {}", nlpd(&learnt), nlpd(&kept));
    folder.refused(2, "follow m.safetensors s.csv --train-points -o f.safetensors", &["--train"]);
    folder.write("t.csv", format!("x,y\n{}", rows(600, 1000, 0.0)));
    let still = folder.json("follow m.safetensors t.csv --batch 30 -o f.safetensors");
    assert!(still["changes"].as_array().unwrap().is_empty(), "{still}");
    assert!(still["warnings"].as_array().unwrap().is_empty(), "{still}");
    // what is off from the first row on has no stream before it to be compared with
    folder.write("u.csv", format!("x,y\n{}", rows(120, 1000, 4.0)));
    for command in ["follow m.safetensors u.csv --batch 30", "update m.safetensors u.csv"] {
        let off = folder.json(&format!("{command} -o f.safetensors"));
        let said = off["warnings"].as_array().unwrap();
        let promised = |text: &serde_json::Value| text.as_str().unwrap().contains("promised");
        assert!(said.iter().any(promised), "{off}");
    }
}

#[test]
fn rows_of_the_fit_bad_rows_and_what_is_not_a_stream() {
    let folder = folder();
    // the table of the fit, which has grown
    let grown = format!("x,y\n{}{}", rows(150, 0, 0.0), rows(20, 150, 0.0));
    folder.write("grown.csv", grown);
    let report = folder.json("follow m.safetensors grown.csv -o f.safetensors");
    assert_eq!(
        (&report["rows"], &report["skipped"], &report["rows_in_all"]),
        (&20.into(), &150.into(), &170.into())
    );
    // a row that cannot be read: those before it are kept, and it is named as of the stream
    folder.write("bad.csv", format!("x,y\n{}1.5,?x\n{}", rows(120, 1000, 0.0), rows(9, 2000, 0.0)));
    let run = folder.run("follow m.safetensors bad.csv --batch 50 -o f.safetensors");
    assert_eq!(run.code, Some(1));
    for part in ["bad.csv: row 121", "`y`", "100 rows before", "f.safetensors"] {
        assert!(run.err.contains(part), "`{part}` is not in {}", run.err);
    }
    assert_eq!(folder.json("inspect f.safetensors")["rows"], 250);
    folder.write("gaps.csv", "x,y\n1,\n2,\n3,23.1\n,4\n");
    let report =
        folder.json("follow m.safetensors gaps.csv --batch 2 --missing drop -o f.safetensors");
    assert_eq!((&report["rows"], &report["dropped"]), (&1.into(), &3.into()), "{report}");
    // a cell over two lines, and a comment first
    folder.write("two.csv", "# from the meter\nx,y,note\n1,24.2,\"one\ntwo\"\n2,24.5,plain\n");
    let report =
        folder.json("follow m.safetensors two.csv --id note --predictions p.csv -o f.safetensors");
    assert_eq!(report["rows"], 2);
    assert!(folder.read("p.csv").contains("\"one\ntwo\""), "{}", folder.read("p.csv"));
    std::fs::remove_file(folder.path("f.safetensors")).unwrap();
    for (content, part) in [
        (&b"\x1f\x8b\x08\x00"[..], "zcat"),
        (b"PAR1", "Parquet"),
        (b"\xff\xfex\x00", "iconv"),
        (b"", "header"),
        (b"x,y\n\"1,2\n3,4\n", "never closed"),
        (b"x,z\n1,2\n", "`y`"),
    ] {
        folder.write("s.csv", content);
        folder.refused(1, "follow m.safetensors s.csv -o f.safetensors", &[part]);
    }
    folder.write("s.csv", "x,y\n1,2\n");
    folder.refused(2, "follow m.safetensors s.csv -o s.csv", &["overwritten"]);
    folder.refused(2, "follow m.safetensors s.csv -o ./s.csv", &["overwritten"]);
    let line = "follow m.safetensors s.csv -o f.safetensors";
    folder.refused(2, &format!("{line} --predictions ./f.safetensors"), &["overwritten"]);
    folder.refused(2, &format!("{line} --predictions p.csv.GZ"), &["p.csv.GZ", ".csv"]);
    folder.refused(2, &format!("{line} --patience 1e30s"), &["patience", "1e9"]);
    // only a header is a stream without news
    folder.write("s.csv", "x,y\n");
    let report = folder.json(&format!("{line} --predictions none.csv"));
    assert_eq!((&report["rows"], &report["skipped"]), (&0.into(), &0.into()));
    folder.refused(2, "follow m.safetensors s.csv --forget 2 -o f.safetensors", &["forget"]);
    folder.refused(1, "follow m.safetensors nothing.csv -o f.safetensors", &["nothing.csv"]);
}

/// A posterior that keeps its rows has no inducing points to speak of.
#[test]
fn models_that_keep_their_rows_are_updated_and_follow() {
    let folder = Folder::new();
    folder.write("a.csv", format!("x,y\n{}", rows(150, 0, 0.0)));
    folder.write("b.csv", format!("x,y\n{}", rows(60, 1000, 0.0)));
    for method in ["markov", "vecchia", "full-scale --inducing 20"] {
        folder.ok(&format!(
            "fit a.csv --target y --method {method} --kernel matern32 --max-iterations 10 -o m.safetensors"
        ));
        let update = folder.ok("update m.safetensors b.csv -o u.safetensors").out;
        let follow = folder.ok("follow m.safetensors b.csv -o f.safetensors").out;
        for text in [&update, &follow] {
            assert!(text.contains("kept       210 rows") && !text.contains("inducing"), "{text}");
        }
        let of = |model: &str| column(&folder.ok(&format!("predict {model} b.csv")).out, "mean");
        for (one, other) in of("u.safetensors").into_iter().zip(of("f.safetensors")) {
            close(one, other, 1e-9);
        }
    }
}

/// Rows of a series; the fit has 200.
fn series(n: usize, from: usize) -> String {
    let row = |i: usize| {
        let t = i as f64 + 0.4 * (i as f64 * 0.618_033_988_749_895).fract();
        let noise = (i as f64 * 0.414_213_562_373_095).fract() - 0.5;
        format!("{t:.3},{:.5}\n", 20.0 + 5.0 * (0.1 * t).sin() + noise)
    };
    (from..from + n).map(row).collect()
}

fn series_folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.csv", format!("t,y\n{}", series(200, 0)));
    folder.ok(
        "fit a.csv --target y --method markov --kernel matern32 --max-iterations 10 -o m.safetensors",
    );
    folder
}

/// A run of a series that is killed and resumed ends at the bits of one that is not, and both predict what a model of all rows
/// does.
#[test]
fn a_series_lets_rows_go_and_predicts_as_if_all_were_there() {
    let folder = series_folder();
    let (first, rest) = (series(400, 200), series(500, 600));
    folder.write("s.csv", format!("t,y\n{first}{rest}"));
    let line = "--batch 50 --keep-rows 150 --save-every 0.000001 --patience 0.2s";
    let report = folder.json(&format!("follow m.safetensors s.csv {line} -o f.safetensors"));
    let left = report["left"].as_u64().unwrap();
    assert!(left > 700 && left.is_multiple_of(128) && report["points"] == 1100 - left, "{report}");
    assert!(report["warnings"].to_string().contains("have left the model"), "{report}");
    std::fs::copy(folder.path("m.safetensors"), folder.path("k.safetensors")).unwrap();
    let mut child = piped(
        &folder,
        &format!("follow k.safetensors - {line} --predictions q.csv -o k.safetensors"),
    );
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("t,y\n{first}").as_bytes()).unwrap();
    input.flush().unwrap();
    waits_until("the first rows", || {
        std::fs::read_to_string(folder.path("q.csv")).is_ok_and(|t| t.lines().count() == 401)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    drop(input);
    let report = folder.json(&format!("follow k.safetensors s.csv {line} -o k.safetensors"));
    assert!(report["skipped"].as_u64().unwrap() >= 350, "{report}");
    let [whole, resumed] =
        ["f.safetensors", "k.safetensors"].map(|name| tensors(&folder.bytes(name)));
    assert_eq!(whole, resumed);

    folder.ok(&format!(
        "follow m.safetensors s.csv {} -o all.safetensors",
        line.replace("150", "all")
    ));
    folder.write("late.csv", format!("t,y\n{}", series(60, 1020)));
    folder.write("next.csv", format!("t,y\n{}", series(60, 1100)));
    for what in [
        "predict MODEL next.csv",
        "predict MODEL late.csv --terms",
        "forecast MODEL next.csv --horizon 5",
    ] {
        let of = |model: &str| column(&folder.ok(&what.replace("MODEL", model)).out, "mean");
        let (kept, all) = (of("f.safetensors"), of("all.safetensors"));
        kept.into_iter().zip(all).for_each(|(a, b)| close(a, b, 1e-9));
    }
    for what in ["score MODEL late.csv", "score MODEL next.csv"] {
        let of = |model: &str| folder.json(&what.replace("MODEL", model));
        let (kept, all) = (of("f.safetensors"), of("all.safetensors"));
        close(number(&kept, "/scores/overall/nlpd"), number(&all, "/scores/overall/nlpd"), 1e-9);
    }
    folder.ok("sample f.safetensors late.csv --draws 3");
    folder.ok("explain f.safetensors late.csv");
    let text = folder.ok("inspect f.safetensors").out;
    assert!(text.contains("predictions are known from"), "{text}");
    // rows that come late are learnt where they are kept, and refused before
    folder.write("some.csv", "t,y\n1050.5,20\n1010.25,21\n");
    folder.ok("update f.safetensors some.csv --keep-rows 150 -o u.safetensors");
    folder.ok("update all.safetensors some.csv --keep-rows all -o v.safetensors");
    let of = |model: &str| column(&folder.ok(&format!("predict {model} late.csv")).out, "mean");
    of("u.safetensors").into_iter().zip(of("v.safetensors")).for_each(|(a, b)| close(a, b, 1e-9));
    folder.write("early.csv", "t,y\n1050.5,20\n310.25,21\n");
    let words = ["`t` is 310.25", "have left", "keep_rows"];
    folder.refused(1, "update f.safetensors early.csv -o u.safetensors", &words);
    folder.refused(1, "predict f.safetensors early.csv", &words);
    // a stream continues without them
    let report = folder.json("follow f.safetensors early.csv --predictions e.csv -o u.safetensors");
    let counts = ["late", "rows"].map(|name| report[name].as_u64().unwrap());
    assert_eq!((counts, folder.read("e.csv").lines().count()), ([1, 1], 2), "{report}");
    assert!(
        report["warnings"].to_string().contains("left out 1 row of the stream before"),
        "{report}"
    );
    folder.refused(1, "sample f.safetensors early.csv", &words);
    folder.refused(
        2,
        "follow f.safetensors next.csv --forget 0.9 -o u.safetensors",
        &["forget", "have left"],
    );
    folder.refused(
        2,
        "follow f.safetensors next.csv --keep-rows few -o u.safetensors",
        &["keep-rows", "all"],
    );
}
