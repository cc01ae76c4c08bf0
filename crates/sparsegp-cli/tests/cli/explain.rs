//! What a model has learnt of its inputs.

use crate::support::Folder;

/// Rates exp(0.3 size + colour), dates that say nothing, and a column that is nearly the same as another.
fn table() -> String {
    let mut text = "day,colour,size,twice,n\n".to_owned();
    for i in 0..180 {
        let size = (i * 37 % 180) as f64 / 36.0;
        let (colour, by) = [("red", 0.0), ("green", 0.9), ("blue", -0.6)][i % 3];
        let n = (2.0 + 0.3 * size + by).exp().round();
        let day = format!("2021-{:02}-{:02}", 1 + i % 12, 1 + i % 28);
        text += &format!("{day},{colour},{size},{},{n}\n", 2.0 * size + 0.01 * (i % 7) as f64);
    }
    text
}

#[test]
fn inputs_are_ranked_and_their_effects_drawn() {
    let folder = Folder::new();
    folder.write("n.csv", table());
    folder.ok("fit n.csv --target n --ignore twice --likelihood poisson -o m.st");
    let run = folder.ok("explain m.st n.csv --plot effects.svg -o effects.csv");
    // the largest first
    let lines: Vec<&str> = run.out.lines().map(str::trim).collect();
    let place = |name: &str| lines.iter().position(|line| line.starts_with(name)).unwrap();
    assert!(place("colour") < place("size") && place("size") < place("day"), "{}", run.out);
    assert!(run.out.contains("interactions of inputs make up"), "{}", run.out);
    let picture = folder.read("effects.svg");
    assert!(["green", "size", "2021-"].iter().all(|word| picture.contains(word)));
    let effects = folder.read("effects.csv");
    let rows: Vec<Vec<&str>> = effects.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0], ["response", "input", "effect", "value", "mean", "lower", "upper"]);
    let of = |input: &str| rows.iter().filter(|row| row[1] == input).collect::<Vec<_>>();
    let values: Vec<&str> = of("colour").iter().map(|row| row[3]).collect();
    assert_eq!(values, ["blue", "green", "red"]);
    let mean = |row: &[&str]| row[4].parse::<f64>().unwrap();
    let [blue, green, red] = [0, 1, 2].map(|at| mean(of("colour")[at]));
    // ratios of rates are those of the table
    assert!((green / red).ln() > 0.75 && (blue / red).ln() < -0.45, "{blue} {green} {red}");
    assert!(of("size").len() == 20 && of("day")[0][3].starts_with("2021-"));
    let ordered = |row: &Vec<&str>| {
        let [mean, low, high] = [4, 5, 6].map(|at| row[at].parse::<f64>().unwrap());
        low <= mean && mean <= high
    };
    assert!(rows[1..].iter().all(ordered));
}

#[test]
fn documents_for_machines_have_shares_and_effects() {
    let folder = Folder::new();
    folder.write("n.csv", table());
    folder.ok("fit n.csv --target colour --ignore day,twice --pilot 0 --max-iterations 20 -o m.st");
    let found = folder.json("explain m.st n.csv --input n --points 5 --accumulated");
    assert_eq!(found["responses"], serde_json::json!(["p_blue", "p_green", "p_red"]));
    let effects = found["effects"].as_array().unwrap();
    assert_eq!((effects.len(), &effects[0]["centred"]), (3, &true.into()));
    assert!(effects[0]["mean"].as_array().unwrap().len() <= 5);
    let inputs = found["shares"][1]["inputs"].as_array().unwrap();
    let total = |at: usize| inputs[at]["total"]["mean"].as_f64().unwrap();
    assert!(total(1) > total(0) && inputs[1]["total"]["lower"].is_number(), "{found}");
}

#[test]
fn inputs_that_depend_on_each_other_are_named() {
    let folder = Folder::new();
    folder.write("n.csv", table());
    folder.ok("fit n.csv --target n --ignore day,colour --kernel rbf -o m.st");
    let run = folder.ok("explain m.st n.csv");
    assert!(run.err.contains("`size` and `twice` are not independent"), "{}", run.err);
    folder.refused(2, "explain m.st n.csv --input weight", &["no such input; it has size, twice"]);
    folder.refused(2, "explain m.st n.csv --points 1", &["--points"]);
    folder.refused(2, "explain m.st n.csv --plot e.pdf", &["end the name in .svg or .png"]);
}
