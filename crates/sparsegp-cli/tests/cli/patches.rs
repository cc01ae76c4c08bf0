//! Images whose inducing points are patches.

use crate::support::Folder;

/// Images of 4×4 pixels with an edge down or across, at any place.
fn table(n: usize) -> String {
    let mut text: String = (0..16).map(|q| format!("p{q},")).collect();
    text += "edge\n";
    for i in 0..n {
        let (down, place) = (i % 2 == 0, 1 + (i / 2) % 3);
        for q in 0..16 {
            let along = if down { q % 4 } else { q / 4 };
            let noise = 0.1 * ((i * 17 + q * 5) % 11) as f64 / 11.0;
            text += &format!("{:.3},", f64::from(u8::from(along >= place)) + noise);
        }
        text += if down { "down\n" } else { "across\n" };
    }
    text
}

#[test]
fn patches_are_learnt_drawn_and_predicted_with() {
    let folder = Folder::new();
    folder.write("a.csv", table(60));
    let kernel = "'convolutional(image=[4,4,1], patch=[2,2], weighted=true)'";
    let report = folder.json(&format!(
        "fit a.csv --target edge --classes --split 0.3 --method svgp --kernel {kernel} --inducing 8 --batch 42 --epochs 200 -o m.st"
    ));
    let accuracy = &report["scores"]["test"]["overall"]["accuracy"];
    assert!(accuracy.as_f64().is_some_and(|a| a > 0.9), "{accuracy}");
    assert!(folder.ok("inspect m.st").out.contains("8×4"));
    folder.ok("plot m.st a.csv --what patches -o patches.svg");
    let picture = folder.read("patches.svg");
    // four pixels of every patch, and nine places
    assert!(picture.matches("<rect").count() >= 8 * 4 + 9, "{}", picture.matches("<rect").count());
    folder.ok("predict m.st a.csv -o p.csv");
    folder.ok("report m.st a.csv -o r.html");
    assert!(folder.read("r.html").contains("Inducing patches"));
    folder.ok("fit a.csv --target edge --classes --method tsvgp --kernel rbf --inducing 8 --full-batch --max-iterations 5 -o plain.st");
    let run = folder.run("plot plain.st a.csv --what patches -o no.svg");
    assert!(run.code != Some(0) && run.err.contains("no inducing patches"), "{}", run.err);
}
