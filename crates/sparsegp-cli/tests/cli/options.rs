//! Options of `fit`.

use crate::support::{Folder, bundled, close, column, number, plane, snelson, tensors};

#[test]
fn streaming_changes_nothing_but_memory() {
    let folder = Folder::new();
    folder.write("p.csv", plane(700));
    let fit = |name: &str, more: &str| {
        folder.json(&format!(
            "fit p.csv --target y --features a,b --inducing 15 --max-iterations 15 --split 0.2 \
             -o {name} {more}"
        ))
    };
    let (memory, stream) = (fit("a.safetensors", ""), fit("b.safetensors", "--stream"));
    close(number(&memory, "/model/objective"), number(&stream, "/model/objective"), 1e-10);
    let predict = |name| folder.ok(&format!("predict {name} p.csv")).out;
    let (a, b) = (predict("a.safetensors"), predict("b.safetensors"));
    for name in ["mean", "sd"] {
        column(&a, name).into_iter().zip(column(&b, name)).for_each(|(a, b)| close(a, b, 1e-7));
    }
    let rmse = |json| number(json, "/scores/test/overall/rmse");
    close(rmse(&memory), rmse(&stream), 1e-7);
}

#[test]
fn threads_and_repetition_change_no_bit() {
    let folder = Folder::new();
    folder.write("p.csv", plane(600));
    for (name, threads) in [("a", 1), ("b", 2), ("c", 2)] {
        folder.ok(&format!(
            "fit p.csv --target y --features a,b --inducing 20 --max-iterations 12 \
             --threads {threads} -o {name}"
        ));
    }
    let all = ["a", "b", "c"].map(|name| tensors(&folder.bytes(name)));
    assert!(all[0].iter().any(|(name, _)| name == "inducing.points"));
    assert_eq!(all[0], all[1]);
    assert_eq!(all[1], all[2]);
    let predict = |threads| folder.ok(&format!("predict a p.csv --threads {threads}")).out;
    assert_eq!(predict(1), predict(2));
}

#[test]
fn the_seed_decides_the_split() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let rmse = |seed| {
        let fit = format!("fit s.csv --target y --max-iterations 5 --split 0.3 --seed {seed}");
        number(&folder.json(&fit), "/scores/test/overall/rmse")
    };
    assert_eq!(rmse(1), rmse(1));
    assert_ne!(rmse(1), rmse(2));
}

#[test]
fn a_mask_from_a_file() {
    let folder = Folder::new();
    folder.write("d.csv", bundled("airfoil.csv.gz"));
    folder.write("masks.csv", bundled("airfoil.test-masks.csv.gz"));
    let fit = folder.json(
        "fit d.csv --target y --inducing 20 --max-iterations 5 --test-mask masks.csv:split3 -o m",
    );
    let mask = column(&folder.read("masks.csv"), "split3");
    let tests: f64 = mask.iter().sum();
    for (side, rows) in [("train", mask.len() as f64 - tests), ("test", tests)] {
        let score = folder.json(&format!("score m d.csv --test-mask masks.csv:split3 --on {side}"));
        assert_eq!(score["scores"], fit["scores"][side]);
        assert_eq!(number(&score, "/rows"), rows);
    }
}

/// As the library tells it, for people and for machines.
#[test]
fn inducing_points_are_judged() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let fit = folder.json("fit s.csv --target y --inducing 8 --method titsias2025 -o m");
    let objective = number(&fit, "/model/objective");
    let report = folder.json("inducing m s.csv");
    close(number(&report, "/quality/gap/lower"), objective, 1e-9);
    assert!(number(&report, "/quality/gap/upper") > objective);
    let residual = number(&report, "/quality/processes/0/trace_residual");
    assert!(residual > 0.0 && residual < 0.5, "{residual}");
    assert_eq!(number(&report, "/quality/processes/0/points"), 8.0);
    let points = number(&report, "/quality/processes/0/suggestion/points");
    let strict = folder.json("inducing m s.csv --fraction 1e-5");
    assert!(number(&strict, "/quality/processes/0/suggestion/points") > points);
    let text = folder.ok("inducing m s.csv --quiet").out;
    for part in
        ["points     8 for 200 rows", "tr(Kff", "can gain at most", "about ", "noise variance"]
    {
        assert!(text.contains(part), "`{part}`: {text}");
    }
    folder.ok("fit s.csv --target y --method exact --max-iterations 2 -o e");
    folder.refused(2, "inducing e s.csv", &["e: its method has no inducing points", "--inducing"]);
    folder.refused(2, "inducing m s.csv --fraction 0", &["--fraction"]);
}

#[test]
fn methods_selections_kernels_and_means() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let fit = |more: &str| {
        folder.json(&format!("fit s.csv --target y --max-iterations 4 --pilot 50 {more}"))
    };
    for (asked, found) in [("exact", "exact"), ("sgpr", "titsias2009"), ("Spherical", "spherical")]
    {
        let json = fit(&format!("--method {asked} --inducing 6"));
        assert_eq!(json["model"]["method"], found);
    }
    let powers = [
        ("fitc", "fitc"),
        ("pep", "pep"),
        ("power-ep --alpha 0.5", "pep"),
        ("pep --alpha 0.3", "pep(alpha=0.3)"),
        ("'pep(alpha=0.3)'", "pep(alpha=0.3)"),
    ];
    for (asked, found) in powers {
        let json = fit(&format!("--method {asked} --inducing 6 -o {found}"));
        assert_eq!(json["model"]["method"], found);
        assert!(json["model"]["objective_is"].as_str().unwrap().contains("not a bound"));
        // the file knows the power
        assert_eq!(folder.json(&format!("inspect '{found}'"))["method"], found);
        folder.ok(&format!("predict '{found}' s.csv"));
    }
    folder.refused(
        2,
        "fit s.csv --target y --method fitc --alpha 0.3",
        &["--alpha", "--method pep"],
    );
    folder.refused(2, "fit s.csv --target y --method pep --alpha 0", &["--alpha", "titsias2009"]);
    assert_eq!(fit("")["model"]["method"], "exact");
    assert!(fit("")["model"]["reason"].as_str().unwrap().contains("200 rows"));
    assert_eq!(fit("--inducing 6")["model"]["method"], "titsias2025");
    for selection in ["random", "kmeans", "greedy-variance", "greedy-elbo", "k-dpp", "grid"] {
        let json = fit(&format!("--inducing 6 --inducing-from {selection}"));
        assert_eq!(number(&json, "/model/inducing_points"), 6.0);
    }
    let json = fit("--kernel 'matern52 + linear' --mean constant");
    assert_eq!(json["model"]["kernel"]["type"], "sum");
    assert_eq!(json["model"]["mean"], "constant");
    let json = fit("--kernel '{\"type\": \"rbf\", \"variance\": 2.5}' --freeze kernel.variance");
    assert_eq!(number(&json, "/model/parameters/0/value/0"), 2.5);
    let json = fit("--optimiser adam --learning-rate 0.05 --jitter absolute:1e-6 --inducing 5");
    assert_eq!(number(&json, "/model/training/diagnostics/jitter"), 1e-6);
    assert_eq!(number(&json, "/model/training/iterations"), 4.0);
}

#[test]
fn inducing_points_from_a_file_are_in_the_data_s_units() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    folder.write("z.csv", "other,x0\n9,1.5\n9,2.25\n9,4\n");
    folder.ok("fit s.csv --target y --inducing-from z.csv --freeze inducing -o m");
    let json = folder.json("inspect m");
    let points = json["parameters"].as_array().unwrap().last().unwrap();
    assert_eq!(points["path"], "inducing.points");
    assert_eq!(points["frozen"], true);
    for (i, z) in [1.5, 2.25, 4.0].into_iter().enumerate() {
        close(number(points, &format!("/data_units/{i}")), z, 1e-12);
    }
}

#[test]
fn set_and_freeze_are_on_the_model_s_scale() {
    let folder = Folder::new();
    folder.write("p.csv", plane(100));
    let json = folder.json(
        "fit p.csv --target y --features a,b --set kernel.lengthscales=0.5,2 --freeze kernel \
         --set likelihood.variance=0.03 --freeze likelihood.variance",
    );
    let lengthscales = &json["model"]["parameters"][1];
    assert_eq!(lengthscales["value"], serde_json::json!([0.5, 2.0]));
    let scale = number(&json, "/model/scaler/x_scale/1");
    close(number(lengthscales, "/data_units/1"), 2.0 * scale, 1e-12);
    let noise = &json["model"]["parameters"][2];
    assert_eq!((number(noise, "/value/0"), &noise["frozen"]), (0.03, &true.into()));
    let y = number(&json, "/model/scaler/y_scale/0");
    close(number(noise, "/data_units/0"), 0.03 * y * y, 1e-12);
}

#[test]
fn without_standardising_both_scales_are_one() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    let json = folder.json("fit s.csv --target y --no-standardise --max-iterations 20");
    assert_eq!(json["model"]["mean"], "constant");
    for parameter in json["model"]["parameters"].as_array().unwrap() {
        assert_eq!(parameter["value"], parameter["data_units"]);
    }
}

#[test]
fn a_trace_as_json() {
    let folder = Folder::new();
    folder.write("s.csv", snelson());
    // the search for a start would come to the optimum
    folder.ok("fit s.csv --target y --pilot 0 --max-iterations 6 --trace t.json");
    let trace: serde_json::Value = serde_json::from_str(&folder.read("t.json")).unwrap();
    let points = trace.as_array().unwrap();
    assert_eq!(points.len(), 6);
    assert!(number(&points[5], "/objective") > number(&points[0], "/objective"));
    assert!(number(&points[5], "/parameters/kernel.lengthscales") > 0.0);
}

/// More starts are no worse; the report says where they end.
#[test]
fn restarts_are_reported() {
    let folder = Folder::new();
    let mut table = String::from("x,y\n");
    for i in 0..60 {
        let t = f64::from(i);
        let x = 6.0 * (t * 0.754_877).fract();
        let noise = ((t * 12.9898).sin() * 43_758.545).fract().abs() - 0.5;
        table += &format!("{x},{}\n", (4.0 * x).sin() + 0.6 * noise);
    }
    folder.write("w.csv", table);
    let one = folder.json("fit w.csv --target y --method exact --set kernel.lengthscales=1");
    let run = folder
        .ok("fit w.csv --target y --method exact --set kernel.lengthscales=1 --restarts 6 -o m");
    assert!(run.err.contains("restart 2 of 6, best objective so far"), "{}", run.err);
    assert!(
        run.out.contains("starts") && run.out.contains(" of 7 is the best; they end at"),
        "{}",
        run.out
    );
    let best = folder.json("inspect m");
    assert_eq!(best["training"]["starts"].as_array().unwrap().len(), 7);
    assert!(number(&best, "/objective") > number(&one, "/model/objective") + 50.0);
    folder.refused(2, "fit w.csv --from m --restarts 2", &["--restarts"]);
}
