//! Several outputs of a series: one column of times and one of labels.

use crate::support::{Folder, close, column, number};

const KERNEL: &str =
    "'matern32(active_dims=[day]) * coregion(output_dim=3, rank=2, active_dims=[shop])'";

/// Sales of three shops from a day on, two rows a day.
fn sales(days: std::ops::Range<usize>) -> String {
    let mut text = String::from("shop,day,sales\n");
    for i in 2 * days.start..2 * days.end {
        let (shop, size) =
            [("north", 1.0), ("south", -0.8), ("west", 0.6)][(i * 7 + i / 3 + i % 2) % 3];
        let (day, noise) = (i / 2, (i as f64 * 0.618_033_988_749_895).fract() - 0.5);
        let value = 20.0 + 5.0 * size * (0.1 * day as f64).sin() + noise;
        text += &format!("{shop},2023-{:02}-{:02},{value}\n", 1 + day / 28, 1 + day % 28);
    }
    text
}

/// Options that give another model the kernel and the likelihood of one.
fn as_learnt(of: &serde_json::Value) -> String {
    let (kernel, likelihood) = (&of["model"]["kernel"], &of["model"]["likelihood"]);
    format!("--kernel '{kernel}' --likelihood '{likelihood}' --pilot 0 --hyperparameters plug-in")
}

#[test]
fn outputs_of_a_series_are_those_of_exact_inference_and_rows_leave() {
    let folder = Folder::new();
    folder.write("a.csv", sales(0..100));
    folder.write("b.csv", sales(100..330));
    let fit = format!("fit a.csv --target sales --kernel {KERNEL} --mean zero");
    let own = folder.json(&format!("{fit} --method markov --max-iterations 30 -o m"));
    assert_eq!(own["model"]["inputs"], serde_json::json!(["shop", "day"]));
    let exact = folder.json(&format!(
        "fit a.csv --target sales --mean zero --method exact {} --max-iterations 0 -o e",
        as_learnt(&own)
    ));
    close(number(&own, "/model/objective"), number(&exact, "/model/objective"), 1e-6);
    folder.write(
        "n.csv",
        "day,shop\n2023-02-10,south\n2023-05-01,west\n2023-02-10,north\n2023-05-01,north\n",
    );
    for name in ["mean", "sd"] {
        let of = |model: &str| column(&folder.ok(&format!("predict {model} n.csv")).out, name);
        of("m").into_iter().zip(of("e")).for_each(|(a, b)| close(a, b, 1e-6));
    }
    // rows that leave are the first in time, and the message names the time, not the label
    let line = "follow m b.csv --keep-rows 150 --batch 60";
    let report = folder.json(&format!("{line} -o f"));
    assert!(report["left"].as_u64().unwrap() >= 384, "{report}");
    let of = |model: &str| column(&folder.ok(&format!("predict {model} z.csv")).out, "mean");
    folder.write("z.csv", "day,shop\n2023-12-20,south\n2023-12-25,west\n");
    folder.ok("update m b.csv -o u");
    of("f").into_iter().zip(of("u")).for_each(|(a, b)| close(a, b, 1e-8));
    folder.refused(1, "predict f n.csv", &["`day` is 2023-02-10", "have left the model"]);
    folder.ok("predict f z.csv --terms");
    folder.refused(2, "forecast m a.csv --horizon 10", &["one input, time", "sparsegp predict"]);
    folder.write("w.csv", "day,shop\n2023-05-01,east\n");
    folder.refused(1, "predict m w.csv", &["east"]);
    let plain = KERNEL.replace("active_dims=[day]", "variance=1");
    folder.refused(
        1,
        &format!("fit a.csv --target sales --method markov --kernel {plain}"),
        &["2 inputs", "active_dims"],
    );
}

#[test]
fn local_variables_of_a_series_are_those_of_all_rows() {
    let folder = Folder::new();
    folder.write("a.csv", sales(0..60));
    let fit =
        format!("fit a.csv --target sales --kernel {KERNEL} --likelihood student-t --pilot 0");
    let own = folder.json(&format!("{fit} --method cavi-markov --max-iterations 10 -o m"));
    let frozen = "--freeze kernel --freeze likelihood --max-iterations 60";
    let same = as_learnt(&own);
    folder.ok(&format!("fit a.csv --target sales --method cavi-full {same} {frozen} -o e"));
    let of = |model: &str| column(&folder.ok(&format!("predict {model} a.csv")).out, "mean");
    of("m").into_iter().zip(of("e")).for_each(|(a, b)| close(a, b, 1e-5));
}
