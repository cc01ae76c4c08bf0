//! Columns of dates and of categories as inputs.

use crate::support::{Folder, close, column, number, texts};

/// A trend in time, with an offset for every shop, and a holiday or not.
fn sales(rows: usize) -> String {
    let shops = [("north", 0.0), ("south", 3.0), ("west", -2.0)];
    let mut text = String::from("day,shop,holiday,sales\n");
    for i in 0..rows {
        let (shop, offset) = shops[(i * 7 + i / 3) % 3];
        let holiday = i % 5 == 0;
        let noise = ((i as f64 * 12.9898).sin() * 43_758.545).fract() * 0.1;
        let value = 20.0 + 0.05 * i as f64 + offset + if holiday { 1.5 } else { 0.0 } + noise;
        let (month, day) = (1 + i / 28 % 12, 1 + i % 28);
        text += &format!("2023-{month:02}-{day:02},{shop},{holiday},{value}\n");
    }
    text
}

#[test]
fn dates_and_categories_are_learnt_remembered_and_used() {
    let folder = Folder::new();
    folder.write("s.csv", sales(150));
    let fit = folder.json("fit s.csv --target sales --split 0.2 -o m");
    let inputs: Vec<&str> =
        fit["model"]["inputs"].as_array().unwrap().iter().filter_map(|v| v.as_str()).collect();
    assert_eq!(inputs, ["day", "shop=north", "shop=south", "shop=west", "holiday=true"]);
    // offsets of 3 and −2 are known: without them the error would be above 1.5
    let rmse = number(&fit, "/scores/test/overall/rmse");
    assert!(rmse < 0.4, "{rmse}");
    let text = folder.ok("inspect m").out;
    for part in [
        "day (days since 1970-01-01)",
        "shop (one of north, south, west)",
        "holiday (one of false, true)",
    ] {
        assert!(text.contains(part), "`{part}`: {text}");
    }
    // another order of columns, other rows, other ways of writing
    folder.write("n.csv", "id,holiday,shop,day\n1,False,south,2023-02-10\n2,FALSE,west,2023/02/10\n3,true,west,2023-02-10T00:00Z\n");
    let out = folder.ok("predict m n.csv --id id").out;
    let mean = column(&out, "mean");
    assert_eq!(texts(&out, "id"), ["1", "2", "3"]);
    close(mean[0] - mean[1], 5.0, 0.06);
    close(mean[2] - mean[1], 1.5, 0.2);
    let score = folder.json("score m s.csv");
    assert!(number(&score, "/scores/overall/rmse") < 0.4);
    folder.ok("plot m s.csv --output p.svg");
    folder.ok("report m s.csv --output r.html");
    folder.ok("fit s.csv --from m -o n");
    assert_eq!(folder.json("inspect n")["columns"], fit["model"]["columns"]);
    // streamed, all is the same
    let stream = folder.json("fit s.csv --target sales --split 0.2 --stream -o t");
    close(number(&fit, "/model/objective"), number(&stream, "/model/objective"), 1e-8);
}

#[test]
fn copies_weights_and_dates_written_as_numbers_are_named() {
    let folder = Folder::new();
    let row = |i: usize| {
        let day = 20_240_101 + 100 * (i / 14) + 2 * (i % 14);
        format!("{day},{:.6},2\n", (i as f64 * 0.414_213_562_373_095).fract())
    };
    let rows = |copies: usize| -> String { (0..80 * copies).map(|i| row(i / copies)).collect() };
    let own = "--target y --kernel rbf --max-iterations 2 --pilot 0";
    for (copies, options, words) in [
        (2, "--ignore w", "50 % of the rows are copies"),
        (1, "--weight w", "a row counts 2.000 times on average"),
        (1, "--ignore w", "`day` looks like dates written as numbers (20240101)"),
    ] {
        folder.write("t.csv", "day,y,w\n".to_owned() + &rows(copies));
        let run = folder.ok(&format!("fit t.csv {own} {options}"));
        assert!(run.err.contains(words), "{words}: {}", run.err);
    }
    let run = folder.ok(&format!("fit t.csv {own} --ignore w --date-format day=%Y%m%d"));
    assert!(!run.err.contains("written as numbers") && !run.err.contains("copies"), "{}", run.err);
}

#[test]
fn what_the_model_does_not_know_is_named() {
    let folder = Folder::new();
    folder.write("s.csv", sales(40));
    folder.ok("fit s.csv --target sales --max-iterations 3 -o m");
    let good = "day,shop,holiday\n2023-01-01,north,true\n";
    folder.write("a.csv", format!("{good}2023-01-01,east,true\n"));
    for command in ["predict m a.csv", "predict m a.csv -o out.csv"] {
        folder.refused(
            1,
            command,
            &["a.csv: row 2, column `shop`", "`east`", "`north`, `south`, `west`"],
        );
    }
    folder.write("b.csv", format!("{good}tomorrow,west,true\n"));
    folder.refused(
        1,
        "predict m b.csv",
        &["b.csv: row 2, column `day`", "`tomorrow` is not a date"],
    );
    folder.write("c.csv", format!("{good}2023-01-01,,true\n"));
    folder.refused(
        1,
        "predict m c.csv",
        &["row 2, column `shop`", "the cell is empty", "--missing drop"],
    );
    assert_eq!(folder.ok("predict m c.csv --missing drop").out.lines().count(), 2);
    folder.write("d.csv", "day,holiday\n2023-01-01,true\n");
    folder.refused(1, "predict m d.csv", &["column `shop`", "not in the file"]);
}

#[test]
fn columns_that_cannot_be_encoded_say_what_to_do() {
    let folder = Folder::new();
    let mut text = String::from("name,a,y\n");
    (0..120).for_each(|i| text += &format!("n{i},{},{}\n", i % 7, i % 3));
    folder.write("t.csv", text);
    folder.refused(
        1,
        "fit t.csv --target y",
        &["t.csv: column `name`", "nearly every row", "--ignore"],
    );
    folder.ok("fit t.csv --target y --ignore name --max-iterations 2");
    folder.refused(
        1,
        "fit t.csv --target y --ignore name --categorical b",
        &["column `b`", "not an input column"],
    );
    let fit = folder.json("fit t.csv --target y --ignore name --categorical a --max-iterations 2");
    assert_eq!(fit["model"]["inputs"].as_array().unwrap().len(), 7);
    // a name with a blank is in quotes, and what a model has learnt is not decided again
    let spaced = |cell: &str| {
        let row = |i: usize| format!("{},{}\n", if i == 29 { cell } else { "1.5" }, i % 3);
        "cell width,y\n".to_owned() + &(0..30).map(row).collect::<String>()
    };
    folder.write("s.csv", spaced("wide"));
    folder.refused(
        1,
        "fit s.csv --target y",
        &["row 30, column `cell width`", "`wide` is text", "`--categorical 'cell width'`"],
    );
    folder.write("u.csv", spaced("2.5"));
    folder.ok("fit u.csv --target y --max-iterations 2 -o u");
    for cell in ["wide", "12 kg", "<5"] {
        folder.write("s.csv", spaced(cell));
        folder.refused(1, "predict u s.csv", &["row 30, column `cell width`", cell]);
        let said = folder.run("predict u s.csv").err;
        assert!(!said.contains("--categorical"), "{said}");
    }
}

/// A kernel of labels has its column as codes; another kernel the same column as inputs of its name.
#[test]
fn kernels_find_their_categories() {
    let folder = Folder::new();
    folder.write("s.csv", sales(90));
    let kernel = "'rbf(active_dims=[day]) * coregion(active_dims=[shop], output_dim=3)'";
    let fit =
        folder.json(&format!("fit s.csv --target sales --ignore holiday --kernel {kernel} -o m"));
    assert_eq!(fit["model"]["inputs"], serde_json::json!(["day", "shop"]));
    assert!(folder.ok("inspect m").out.contains("shop (codes of north, south, west)"));
    folder.write("n.csv", "day,shop\n2023-02-10,south\n2023-02-10,west\n");
    let mean = column(&folder.ok("predict m n.csv").out, "mean");
    assert!(mean[0] - mean[1] > 3.0, "{mean:?}");
    let kernel = "'rbf(active_dims=[day]) + linear(active_dims=[shop])'";
    let fit = folder.json(&format!("fit s.csv --target sales --ignore holiday --kernel {kernel}"));
    assert_eq!(fit["model"]["inputs"].as_array().unwrap().len(), 4);
    let line = "fit s.csv --target sales --kernel 'rbf(active_dims=[shops])'";
    folder.refused(2, line, &["no input column is called `shops`"]);
}

#[test]
fn comparisons_encode_too_and_dates_have_an_order() {
    let folder = Folder::new();
    folder.write("s.csv", sales(60));
    let report =
        folder.json("compare s.csv --target sales --folds 2 --kernel rbf -- --max-iterations 5");
    assert!(report["choices"].is_array() || report["table"].is_array() || report.is_object());
    let line = "compare s.csv --target sales --folds 2 --ordered day -- --max-iterations 5";
    folder.ok(&format!("{line} --ignore holiday"));
    // dates are inputs beside giving the order, in whatever notation; words are not
    folder.ok(&format!("{line} --ignore shop,holiday"));
    let own = |line: &str| {
        let mut cells = line.splitn(2, ',');
        let (day, rest) = (cells.next().unwrap(), cells.next().unwrap());
        let parts: Vec<&str> = day.rsplit('-').collect();
        format!("{},{rest}\n", parts.join("/"))
    };
    folder.write("o.csv", sales(60).lines().map(own).collect::<String>());
    let mean = |line: &str| {
        let report = folder.json(line);
        let first = report["choices"][0]["scores"].as_object().unwrap().clone();
        first["RMSE"]["mean"].as_f64().unwrap()
    };
    let other = line.replace("s.csv", "o.csv") + " --date-format %d/%m/%Y";
    assert_eq!(mean(line), mean(&other));
    let line = "compare s.csv --target sales --folds 2 --ordered shop -- --ignore day,holiday";
    folder.refused(1, line, &["no input column is left"]);
}

/// `None`, `NA` and the like may be categories and classes; a model that knows them needs no word for it.
#[test]
fn words_for_missing_values_may_be_kept() {
    let folder = Folder::new();
    let word = |i: usize| ["red", "None", "NA"][i % 3];
    let line = |i: usize| format!("{},{},{}\n", i % 7, word(i), word(i + i / 3));
    let rows: String = (0..60).map(line).collect();
    folder.write("t.csv", format!("x,c,y\n{rows}"));
    let refused = folder.run("fit t.csv --target y");
    assert_ne!(refused.code, Some(0));
    assert!(refused.err.contains("--kept-words None"), "{}", refused.err);
    for kept in ["None,NA", "'*'"] {
        folder.ok(&format!(
            "fit t.csv --target y --classes --kept-words {kept} --max-iterations 2 -o m.safetensors"
        ));
        let model = folder.json("inspect m.safetensors");
        assert_eq!(model["inputs"], serde_json::json!(["x", "c=NA", "c=None", "c=red"]));
        let predicted = folder.ok("predict m.safetensors t.csv").out;
        assert_eq!(predicted.lines().count(), 61);
    }
}

#[test]
fn a_row_without_an_end_and_a_file_without_a_beginning_are_errors() {
    let folder = Folder::new();
    folder.write("t.csv", format!("x,y\n1,2\n3,{}\n", "4".repeat(3000)));
    let short = |arguments: &str| {
        let mut command = folder.command(arguments);
        command.env("SPARSEGP_MAX_ROW_BYTES", "1000").env("SPARSEGP_MAX_FILE_BYTES", "1000");
        let output = command.output().unwrap();
        assert_ne!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    // a buffer is read at a time
    folder.write("t.csv", format!("x,y\n1,2\n3,{}\n", "4".repeat(100_000)));
    let text = short("fit t.csv --target y");
    assert!(
        text.contains("longer than 1000 bytes") && text.contains("SPARSEGP_MAX_ROW_BYTES"),
        "{text}"
    );
    folder.write("p.csv", "x,y\n1,2\n3,4\n4,5\n");
    folder.ok("fit p.csv --target y --max-iterations 2 -o m.safetensors");
    let text = short("predict m.safetensors p.csv");
    assert!(
        text.contains("longer than 1000 bytes") && text.contains("SPARSEGP_MAX_FILE_BYTES"),
        "{text}"
    );
    if cfg!(target_os = "linux") {
        let text = folder.run("predict /dev/zero p.csv").err;
        assert!(text.contains("is not a complete sparsegp model file"), "{text}");
    }
}

#[test]
fn names_with_line_breaks_stay_on_one_line() {
    let folder = Folder::new();
    folder.write("t.csv", "\"col\nnew\",y\n1,2\n3,4\n4,5\n");
    folder.ok("fit t.csv --target y --max-iterations 2 -o m.safetensors");
    let text = folder.ok("inspect m.safetensors").out;
    assert!(
        text.contains("col\\nnew") && !text.lines().any(|line| line.starts_with("new")),
        "{text}"
    );
}

#[test]
fn an_input_along_which_all_is_a_straight_line_is_not_irrelevant() {
    let folder = Folder::new();
    let mut table = String::from("a,copy,b,y\n");
    for i in 0..40 {
        let i = f64::from(i);
        let y = (0.325 * i).sin() + 0.1 * (1.75 * i).cos();
        table += &format!("{},{},{},{y}\n", (2.1 * i).sin(), 2.0 * y + 1.0, (3.7 * i).cos());
    }
    folder.write("t.csv", table);
    let fitted = folder.ok("fit t.csv --target y --kernel rbf -o m");
    // the lengthscale of `copy` is 11 standard deviations, those of the others are over 300
    assert!(fitted.out.contains("irrelevant `a`, `b` (lengthscales"), "{}", fitted.out);
}
