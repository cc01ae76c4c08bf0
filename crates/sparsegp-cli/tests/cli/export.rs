//! Predictions as code for elsewhere.

use crate::support::Folder;
use std::process::Command;

/// Dates, categories and numbers, of which the target is a smooth function.
fn table() -> String {
    let mut text = "day,valve,pressure,flow,state\n".to_owned();
    for i in 0..120 {
        let pressure = (i * 37 % 120) as f64 / 10.0;
        let (valve, more) = [("open", 5.0), ("shut", 0.0)][i % 2];
        let flow = 10.0 + 3.0 * (0.5 * pressure).sin() + more + 0.05 * (i % 5) as f64;
        let state = if flow > 12.0 { "high" } else { "low" };
        text += &format!(
            "2021-{:02}-{:02},{valve},{pressure},{flow},{state}\n",
            1 + i % 12,
            1 + i % 28
        );
    }
    text
}

/// Runs a program of C with a header.
fn compiled(folder: &Folder, main: &str) -> Vec<f64> {
    folder.write("main.c", main);
    let flags =
        ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main", "-lm"];
    let run = Command::new("cc").args(flags).current_dir(folder.path(".")).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let out = Command::new(folder.path("main")).output().unwrap().stdout;
    String::from_utf8(out).unwrap().split_whitespace().map(|v| v.parse().unwrap()).collect()
}

#[test]
fn a_header_predicts_what_predict_does() {
    let folder = Folder::new();
    folder.write("pump.csv", table());
    folder.ok("fit pump.csv --target flow --ignore state --max-iterations 40 -o m.st");
    let run = folder.ok("export m.st -o pump.h");
    for line in [
        "x[0]  day: days since 1970-01-01 00:00 UTC",
        "x[1]  valve=shut: 1 where column `valve` is `shut`, else 0",
        "x[2]  pressure: number",
    ] {
        assert!(run.out.contains(line), "{}", run.out);
    }
    folder.write("new.csv", "day,valve,pressure\n2021-03-01,open,3.2\n2025-12-31,shut,90\n");
    let text = folder.ok("predict m.st new.csv").out;
    let expected: Vec<f64> = text
        .lines()
        .skip(1)
        .flat_map(|line| {
            line.split(',').take(2).map(|v| v.parse::<f64>().unwrap()).collect::<Vec<_>>()
        })
        .collect();
    // days since 1970
    let found = compiled(
        &folder,
        "#include <stdio.h>\n#include \"pump.h\"\nint main(void)\n{\n    double mean[PUMP_OUTPUTS], sd[PUMP_OUTPUTS];\n    \
         const double x[2][PUMP_INPUTS] = {{18687, 0, 3.2}, {20453, 1, 90}};\n    int i;\n    for (i = 0; i < 2; i++) {\n        \
         pump_predict(x[i], mean, sd);\n        printf(\"%.17g %.17g\\n\", mean[0], sd[0]);\n    }\n    return 0;\n}\n",
    );
    assert_eq!(found.len(), 4);
    for (a, b) in found.iter().zip(&expected) {
        assert!((a / b - 1.0).abs() < 1e-8, "{found:?} {expected:?}");
    }
    let about = folder.json("export m.st -o again.txt --format c --name flow");
    assert_eq!((&about["name"], &about["inputs"][2]["name"]), (&"flow".into(), &"pressure".into()));
    assert_eq!(about["outputs"][0], serde_json::json!({ "name": "mean", "columns": ["flow"] }));
    assert!(
        folder
            .read("again.txt")
            .contains("void flow_predict(const double *x, double *mean, double *sd)")
    );
}

#[test]
fn classes_have_probabilities_and_refusals_their_remedies() {
    let folder = Folder::new();
    folder.write("pump.csv", table());
    folder.ok("fit pump.csv --target state --ignore flow,day --max-iterations 40 -o c.st");
    let about = folder.json("export c.st -o c.h");
    assert_eq!(
        about["outputs"][0],
        serde_json::json!({ "name": "probabilities", "columns": ["high", "low"] })
    );
    let about = folder.json("export c.st -o c.onnx");
    let bytes = folder.bytes("c.onnx");
    assert_eq!(
        (&about["format"], about["bytes"].as_u64()),
        (&"onnx".into(), Some(bytes.len() as u64))
    );
    // the first field is the version of the format
    assert_eq!(bytes[..2], [0x08, 8]);
    folder.refused(2, "export c.st -o c.txt", &["says no format", "--format"]);
    folder.refused(2, "export c.st -o c.st", &["would be overwritten"]);
    folder.refused(1, "export c.st -o d.h --name 2x", &["is not a name of C", "model_2x"]);
    folder.refused(1, "export nothing.st -o d.h", &["nothing.st"]);
    folder.ok("fit pump.csv --target flow --ignore state,day,valve --method markov --kernel matern32 --max-iterations 5 -o s.st");
    folder.refused(1, "export s.st -o d.h", &["a closed formula", "use `exact` or `titsias2025`"]);
    // counts of another likelihood than those with a formula
    folder.write("n.csv", "x,n\n1,2\n2,0\n3,4\n4,7\n5,3\n6,2\n7,1\n8,0\n9,1\n");
    folder.ok("fit n.csv --target n --likelihood negative-binomial --max-iterations 5 -o n.st");
    let run = folder.ok("export n.st -o n.h");
    assert!(run.err.contains("only latent functions are exported"), "{}", run.err);
}
