//! Kernels of the specification language in whole runs.

use crate::support::{Folder, column, number};
use serde_json::Value;
use std::f64::consts::TAU;

/// Numbers in (−½, ½) that look random.
pub fn jumble(i: usize) -> f64 {
    ((i * i) as f64 * 0.754_877_666_2 + i as f64 * 0.569_840_290_9).fract() - 0.5
}

/// A parameter of a model in the data's units.
fn in_data_units(model: &Value, path: &str) -> f64 {
    let rows = model["parameters"].as_array().unwrap();
    let row =
        rows.iter().find(|row| row["path"] == path).unwrap_or_else(|| panic!("{path}: {model}"));
    row["data_units"][0].as_f64().unwrap()
}

#[test]
fn a_period_is_recovered() {
    let folder = Folder::new();
    let truth = |t: f64| {
        let angle = TAU * t / 365.25;
        12.0 + 0.004 * t + 9.0 * (angle + 0.7).sin() + 3.0 * (2.0 * angle).cos()
    };
    let mut text = String::from("day,temperature\n");
    for i in 0..260 {
        let t = 5.0 * i as f64 + 4.0 * jumble(i);
        text += &format!("{t},{}\n", truth(t) + 3.0 * jumble(i + 1000));
    }
    folder.write("t.csv", text);
    folder.json("fit t.csv --target temperature --kernel 'periodic(base=rbf) * rbf + linear' -o m.safetensors");
    let model = folder.json("inspect m.safetensors");
    let period = in_data_units(&model, "kernel.kernels[0].kernels[0].period");
    assert!((period / 365.25 - 1.0).abs() < 0.02, "{period}");
    // a hundred days after the last
    folder.write("new.csv", "day\n1400\n");
    folder.ok("predict m.safetensors new.csv -o p.csv --latent");
    let mean = column(&folder.read("p.csv"), "mean")[0];
    assert!((mean - truth(1400.0)).abs() < 2.5, "{mean} {}", truth(1400.0));
}

/// Places change points where they are in the column's own unit.
#[test]
fn a_change_point_is_reported_in_the_data_s_units() {
    let folder = Folder::new();
    let mut text = String::from("year,level\n");
    for i in 0..120 {
        let t = 1900.0 + i as f64;
        let shape =
            if t < 1980.0 { 0.02 * (t - 1900.0) } else { 3.0 * (0.4 * (t - 1980.0)).sin() + 1.6 };
        text += &format!("{t},{}\n", shape + 0.3 * jumble(i));
    }
    folder.write("t.csv", text);
    let kernel = "changepoints(kernels=[linear + constant, rbf], active_dims=[year])";
    let run = folder.json(&format!("fit t.csv --target level --kernel '{kernel}'"));
    let place = in_data_units(&run["model"], "kernel.locations");
    assert!((place - 1980.0).abs() < 5.0, "{place}");
}

#[test]
fn labels_stay_as_they_are() {
    let folder = Folder::new();
    let mut text = String::from("site,t,y\n");
    for i in 0..120 {
        let (site, t) = (i % 3, 0.1 * i as f64);
        let sign = [1.0, -0.8, 0.3][site];
        text += &format!("{site},{t},{}\n", 100.0 + 20.0 * sign * t.sin() + 4.0 * jumble(i));
    }
    folder.write("t.csv", &text);
    let kernel = "rbf(active_dims=[t]) * coregion(output_dim=3, rank=2, active_dims=[site])";
    for more in ["", "--inducing 20 --stream", "--method svgp --epochs 30 --inducing 20"] {
        let run = folder.json(&format!(
            "fit t.csv --target y --kernel '{kernel}' -o m.safetensors --plot p.svg {more}"
        ));
        let noise = in_data_units(&run["model"], "likelihood.variance");
        assert!(noise < 30.0, "{more}: {noise}");
        folder.ok("predict m.safetensors t.csv -o p.csv --latent");
        let mean = column(&folder.read("p.csv"), "mean");
        for (i, own) in mean.iter().enumerate() {
            let t = 0.1 * i as f64;
            assert!(
                (own - 100.0 - 20.0 * [1.0, -0.8, 0.3][i % 3] * t.sin()).abs() < 8.0,
                "{more} {i}: {own}"
            );
        }
    }
    folder.write("new.csv", "site,t\n3,1.0\n");
    folder.refused(
        1,
        "predict m.safetensors new.csv -o q.csv",
        &["3 in input column 0", "labels 0, …, 2"],
    );
    folder.write("bad.csv", text + "0.5,1.0,100\n");
    folder.refused(
        1,
        &format!("fit bad.csv --target y --kernel '{kernel}'"),
        &["0.5 in input column 0"],
    );
}

/// What the command lists can be fitted, by name and by alias, on two columns.
#[test]
fn all_that_is_listed_can_be_fitted() {
    let folder = Folder::new();
    let mut text = String::from("a,b,y\n");
    for i in 0..30 {
        text += &format!("{},{},{}\n", jumble(i), i % 2, jumble(i).sin() + 0.1 * jumble(i + 99));
    }
    folder.write("t.csv", text);
    for entry in folder.json("kernels").as_array().unwrap() {
        let names = entry["aliases"].as_array().unwrap().iter().chain([&entry["name"]]);
        for name in names.map(|name| name.as_str().unwrap()) {
            let entries = match entry["name"].as_str().unwrap() {
                "sum" | "product" => "kernels=[rbf, linear]",
                "changepoints" => "kernels=[rbf, linear], active_dims=[a]",
                "coregion" => "output_dim=2, active_dims=[b]",
                "convolutional" => "image=[1, 2, 1], patch=[1, 1]",
                _ => "",
            };
            let run = folder.json(&format!(
                "fit t.csv --target y --kernel '{name}({entries})' --max-iterations 2"
            ));
            assert!(number(&run, "/model/objective").is_finite(), "{name}");
            assert_eq!(run["model"]["kernel"]["type"], entry["name"], "{name}");
        }
    }
}

/// Shops with a level each, by name or number: a new one has the prior of a shop about the common function.
#[test]
fn groups_have_their_own_levels_and_new_ones_the_prior() {
    let folder = Folder::new();
    let level = |shop: usize| 3.0 * (2.7 * shop as f64).sin();
    let mut texts = String::from("t,shop,y\n");
    let mut numbers = texts.clone();
    for i in 0..160 {
        let (t, shop) = (6.0 * jumble(i), i * 7 % 23);
        let y = 10.0 + (1.5 * t).sin() + level(shop) + 0.2 * jumble(i + 700);
        texts += &format!("{t},shop {shop},{y}\n");
        numbers += &format!("{t},{},{y}\n", 1000 + 17 * shop);
    }
    folder.write("texts.csv", texts);
    folder.write("numbers.csv", numbers);
    folder.write("new-texts.csv", "t,shop\n0.4,shop 5\n0.4,shop 99\n0.4,elsewhere\n");
    folder.write("new-numbers.csv", "t,shop\n0.4,1085\n0.4,3\n0.4,-7.5\n");
    folder.write("more.csv", "t,shop,y\n0.4,elsewhere,11\n0.5,shop 5,12\n");
    for kind in ["texts", "numbers"] {
        let fit = "--target y --kernel 'rbf + categorical(active_dims=[shop])'";
        folder.ok(&format!("fit {kind}.csv {fit} -o m.safetensors"));
        folder.ok(&format!("predict m.safetensors new-{kind}.csv --latent -o p.csv"));
        let text = folder.read("p.csv");
        let (mean, sd) = (column(&text, "mean"), column(&text, "sd"));
        let known = 10.0 + 0.6_f64.sin() + level(5);
        assert!((mean[0] - known).abs() < 0.2 && sd[0] < 0.2, "{kind}: {text}");
        // between the shops, as uncertain as they differ
        assert_eq!((mean[1], sd[1]), (mean[2], sd[2]), "{kind}");
        assert!((mean[1] - 10.0 - 0.6_f64.sin()).abs() < 1.5, "{kind}: {text}");
        assert!((1.5..3.5).contains(&sd[1]), "{kind}: {text}");
        if kind == "texts" {
            // to learn from a new one its name must be known
            folder.refused(
                1,
                "update m.safetensors more.csv -o u.safetensors",
                &["`elsewhere` is none of"],
            );
            folder.ok("score m.safetensors more.csv");
        }
    }
    // a kernel of labels knows those that it has learnt
    let fit =
        "--target y --kernel 'rbf(active_dims=[t]) + coregion(output_dim=23, active_dims=[shop])'";
    folder.ok(&format!("fit texts.csv {fit} -o m.safetensors"));
    folder.refused(1, "predict m.safetensors new-texts.csv -o p.csv", &["`shop 99` is none of"]);
}

/// Two effects that add: predictions where only one of them was seen, and each by itself.
#[test]
fn terms_of_an_additive_kernel_are_the_effects() {
    let folder = Folder::new();
    let effects = |a: f64, b: f64| [2.0 * (1.5 * a).sin(), 0.4 * b * b];
    let mut text = String::from("a,b,y\n");
    for i in 0..90 {
        let (a, b) = (6.0 * jumble(i), 6.0 * jumble(i + 500));
        // no row has both large
        if a < 1.0 || b < 1.0 {
            text += &format!(
                "{a},{b},{}\n",
                5.0 + effects(a, b).iter().sum::<f64>() + 0.1 * jumble(i + 900)
            );
        }
    }
    folder.write("t.csv", text);
    folder.ok("fit t.csv --target y --kernel additive --mean zero -o m.safetensors");
    folder.write("new.csv", "key,a,b\nu,2,2\nv,2,-1\nw,-1,2\nx,,0\n");
    folder.ok("predict m.safetensors new.csv --id key --latent --terms --missing keep -o p.csv");
    let text = folder.read("p.csv");
    let header = "key,mean,sd,q0.025,q0.975,mean function_mean,mean function_sd,additive(a)_mean,additive(a)_sd,\
                  additive(b)_mean,additive(b)_sd";
    assert_eq!(text.lines().next(), Some(header));
    // a row that lacks a number has as many cells
    assert_eq!(text.lines().last(), Some("x,,,,,,,,,,"));
    let rows: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    let of = |name: &str| column(&rows, name);
    let (mean, a, b) = (of("mean"), of("additive(a)_mean"), of("additive(b)_mean"));
    for i in 0..3 {
        let sum = of("mean function_mean")[i] + a[i] + b[i];
        assert!((sum - mean[i]).abs() < 1e-9, "{sum} {}", mean[i]);
    }
    // of one input each
    assert!((a[0] - a[1]).abs() < 1e-12 && (b[0] - b[2]).abs() < 1e-12, "{text}");
    let [sine, square] = effects(2.0, 2.0);
    assert!((mean[0] - 5.0 - sine - square).abs() < 0.3, "{text}");
    assert!((a[0] - a[2] - (sine - effects(-1.0, 0.0)[0])).abs() < 0.3, "{text}");
    assert!((b[0] - b[1] - (square - effects(0.0, -1.0)[1])).abs() < 0.3, "{text}");
    // without the constant that could be part of either
    folder.ok("predict m.safetensors new.csv --latent --terms --centred --missing drop -o c.csv");
    let centred = column(&folder.read("c.csv"), "additive(a)_sd")[0];
    assert!(centred < 0.5 * of("additive(a)_sd")[0], "{centred} {text}");
    folder.refused(2, "predict m.safetensors new.csv --centred", &["--terms"]);
    // as pictures, beside each other
    folder.ok("plot m.safetensors t.csv --what terms -o effects.svg");
    let svg = folder.read("effects.svg");
    assert!(svg.contains("additive(a)") && svg.contains("additive(b)"), "{svg}");
    assert!(svg.starts_with("<svg width=\"1800\" height=\"520\""), "{}", &svg[..80]);
    folder.ok("report m.safetensors t.csv -o page.html");
    assert!(folder.read("page.html").contains("Terms of single inputs"));
    folder.ok("fit t.csv --target y --kernel rbf -o rbf.safetensors");
    let none = "plot rbf.safetensors t.csv --what terms -o none.svg";
    folder.refused(2, none, &["its kernel is not a sum", "additive"]);
    folder.write("odd.csv", "additive(a)_mean,a,b\n1,2,2\n");
    let odd = "predict m.safetensors odd.csv --id 'additive(a)_mean' --terms";
    folder.refused(2, odd, &["additive(a)_mean", "rename it"]);
}

/// Without `--kernel` one is chosen, said, and remembered with what it was compared with.
#[test]
fn a_kernel_is_chosen() {
    let folder = Folder::new();
    let mut text = String::from("a,b,c,y\n");
    for i in 0..150 {
        let [a, b, c] = [0, 1000, 5000].map(|from| 40.0 * jumble(i + from));
        let y = 300.0 + 20.0 * (a / 6.0).sin() + 0.2 * b * b - 3.0 * c + jumble(i + 9000);
        text += &format!("{a},{b},{c},{y}\n");
    }
    folder.write("t.csv", text);
    let run = folder.ok("fit t.csv --target y -o m");
    let line = run.out.lines().find(|line| line.starts_with("choice")).expect("a choice");
    assert!(line.contains("additive") && line.contains("better than `rbf`"), "{line}");
    let model = folder.json("inspect m");
    let choice = &model["training"]["kernels"];
    assert_eq!(choice["rows"], 150);
    let candidates = choice["candidates"].as_array().expect("candidates");
    assert!(candidates.len() > 4 && candidates.iter().any(|own| own["kernel"] == "rbf"));
    assert_eq!(candidates[0]["kernel"], choice["kernel"]);
    let asked = folder.ok("fit t.csv --target y --kernel rbf");
    assert!(!asked.out.contains("choice"), "{}", asked.out);
}
