//! Pictures show what they should where they should.

use crate::support::Folder;

/// The values of an attribute of every element called `tag`.
fn attributes(svg: &str, tag: &str, name: &str) -> Vec<String> {
    svg.split(&format!("<{tag} "))
        .skip(1)
        .filter_map(|rest| {
            let element = rest.split('>').next()?;
            let value = element.split(&format!("{name}=\"")).nth(1)?;
            Some(value.split('"').next()?.to_owned())
        })
        .collect()
}

#[test]
fn rows_without_noise_lie_on_the_curve_of_the_mean() {
    // far from the origin and on another scale than 1, so that mixed-up units cannot pass
    let folder = Folder::new();
    let mut table = String::from("x,y\n");
    for i in 0..60 {
        let x = 100.0 + 0.5 * f64::from(i);
        table += &format!("{x},{}\n", 50.0 + 20.0 * (0.4 * x).sin());
    }
    folder.write("t.csv", table);
    folder.ok("fit t.csv --target y --plot p.svg");
    let svg = folder.read("p.svg");
    // the curve of the mean is the line with the most points
    let lines = attributes(&svg, "polyline", "points");
    let points = |line: &String| -> Vec<(f64, f64)> {
        let number = |text: &str| text.parse::<f64>().unwrap();
        line.split_whitespace()
            .map(|p| p.split_once(',').unwrap())
            .map(|(x, y)| (number(x), number(y)))
            .collect()
    };
    let mean = lines.iter().map(points).max_by_key(Vec::len).unwrap();
    assert!(mean.len() > 100);
    let coordinates = |name| attributes(&svg, "circle", name);
    let all = coordinates("cx").into_iter().zip(coordinates("cy")).zip(coordinates("r"));
    let rows: Vec<(f64, f64)> = all
        .filter(|(_, r)| r == "2")
        .map(|((x, y), _)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect();
    assert_eq!(rows.len(), 60);
    for (x, y) in &rows {
        let near = mean.iter().filter(|(a, _)| (a - x).abs() <= 3.0);
        let distance = near.map(|(_, b)| (b - y).abs()).fold(f64::INFINITY, f64::min);
        assert!(distance <= 6.0, "the row at pixel ({x}, {y}) is {distance} off the mean");
    }
    let width = |of: &[(f64, f64)]| {
        let low = of.iter().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
        of.iter().map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max) - low
    };
    assert!(width(&rows) > 0.8 * width(&mean), "the rows span the picture");
}

#[test]
fn a_saved_model_is_drawn_as_it_was_when_it_was_fitted() {
    let folder = Folder::new();
    let (mut curve, mut map) = (String::from("x,y,test\n"), String::from("a,b,label\n"));
    for i in 0..40 {
        let x = 0.25 * f64::from(i);
        curve +=
            &format!("{x},{},{}\n", (1.3 * x).sin() + 0.1 * (7.0 * x).cos(), u8::from(i % 5 == 0));
        let (a, b) = ((2.1 * x).sin(), (3.7 * x).cos());
        map += &format!("{a},{b},{}\n", if a + b > 0.1 { "in" } else { "out" });
    }
    folder.write("curve.csv", curve);
    folder.write("map.csv", map);
    folder.ok("fit curve.csv --target y --ignore test --test-mask curve.csv:test --plot 1.svg -o 1.safetensors");
    folder.ok("plot 1.safetensors curve.csv --test-mask curve.csv:test --output 2.svg");
    assert_eq!(folder.read("1.svg"), folder.read("2.svg"));
    // of another table it is not known whether the model has seen its rows
    folder.write("other.csv", "x,y\n0.1,0.2\n4.1,-0.7\n8.3,-0.9\n");
    folder.ok("plot 1.safetensors other.csv --output 5.svg");
    assert!(folder.read("1.svg").contains("training rows"));
    assert!(!folder.read("5.svg").contains("training rows"));
    folder.ok("fit map.csv --target label --classes --full-batch --plot 3.svg -o 3.safetensors");
    folder.ok("plot 3.safetensors map.csv --output 4.svg");
    assert_eq!(folder.read("3.svg"), folder.read("4.svg"));
    folder.refused(2, "plot 3.safetensors map.csv --output map.csv", &["overwritten"]);
    folder.refused(2, "plot 3.safetensors map.csv --output p.gif", &["--output p.gif", "SVG"]);
}

/// Two inputs, of which one matters, and a third that is noise.
fn three_inputs() -> String {
    let mut text = String::from("a,b,<c>,y,label\n");
    for i in 0..50 {
        let x = 0.2 * f64::from(i);
        let (b, c) = ((7.1 * x).sin(), (11.3 * x).cos());
        let y = (1.3 * x).sin() + 0.1 * b;
        text += &format!("{x},{b},{c},{y},{}\n", if y > 0.0 { "up" } else { "down" });
    }
    text
}

#[test]
fn a_model_is_drawn_in_every_way_that_it_has() {
    let folder = Folder::new();
    folder.write("t.csv", three_inputs());
    folder.ok("fit t.csv --target y --ignore label -o m.safetensors");
    for (what, texts) in [
        ("fit", ["predicted = observed", "95 % interval"]),
        ("predictions", ["predicted = observed", "mean of the prediction"]),
        ("calibration", ["what chance allows (95 %)", "share of the rows within it"]),
        ("relevance", ["1/lengthscale, model", "relevance of inputs: "]),
        ("training", ["objective per row", "nats per row"]),
    ] {
        folder.ok(&format!("plot m.safetensors t.csv --what {what} --output {what}.svg"));
        let svg = folder.read(&format!("{what}.svg"));
        assert!(texts.iter().all(|text| svg.contains(text)), "{what}");
    }
    let line = "plot m.safetensors t.csv --what inducing --output none.svg";
    folder.refused(2, line, &["no inducing points"]);
    folder.ok("fit t.csv --target y --ignore label --inducing 6 -o s.safetensors");
    folder.ok("plot s.safetensors t.csv --what inducing --output inducing.svg");
    let svg = folder.read("inducing.svg");
    assert!(svg.contains("left unexplained") && svg.contains("6 inducing points leave"));
    // the model is enough where rows are not drawn
    folder.ok("plot m.safetensors --what relevance --output alone.svg");
    assert_eq!(folder.read("alone.svg"), folder.read("relevance.svg"));
    // the input that matters is the first bar
    let svg = folder.read("relevance.svg");
    let at =
        |name: &str| svg.find(&format!("\n{name}  ")).unwrap_or_else(|| panic!("{name}: {svg}"));
    assert!(at("a") < at("b"));
    folder.refused(2, "plot m.safetensors --output none.svg", &["needs rows"]);
    folder.ok(
        "fit t.csv --target label --ignore y --kernel linear --max-iterations 3 -o c.safetensors",
    );
    let line = "plot c.safetensors t.csv --what predictions --output none.svg";
    folder.refused(2, line, &["--what calibration"]);
    let line = "plot c.safetensors t.csv --what relevance --output none.svg";
    folder.refused(2, line, &["no lengthscales"]);
}

#[test]
fn a_report_is_one_page_with_scores_pictures_and_parameters() {
    let folder = Folder::new();
    folder.write("t.csv", three_inputs());
    folder.ok("fit t.csv --target y --ignore label -o m.safetensors");
    let report = folder.json("report m.safetensors t.csv --output r.html");
    let titles: Vec<&str> =
        report["pictures"].as_array().unwrap().iter().filter_map(|v| v.as_str()).collect();
    assert_eq!(titles[..3], ["What each input explains", "The fit", "Calibration"]);
    let rest = ["How predictions depend on each input", "Relevance of the inputs", "Training"];
    assert_eq!(titles[3..], rest);
    let page = folder.read("r.html");
    // the result comes first, in a sentence
    let lead = report["summary"][0].as_str().expect("a sentence");
    assert!(lead.starts_with("Predictions of y are off by ") && lead.contains("95 %"), "{lead}");
    let before = page.split("<h2>").next().expect("a beginning");
    assert!(before.contains("<p class=\"lead\">Predictions of y are off by "), "{before}");
    // phones, paper and people who do not see the pictures
    for part in ["name=\"viewport\"", "prefers-color-scheme:dark", "@media print"] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<svg role=\"img\" aria-label=\"").count(), 6);
    assert_eq!(page.matches("<svg").count(), 6);
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("kernel.lengthscales[0]") && page.contains("RMSE"));
    // names of columns are text, not markup
    assert!(page.contains("&lt;c&gt;") && !page.contains("<c>"));
    // nothing is fetched from elsewhere
    let links = page.matches("http").count();
    assert_eq!(links, page.matches("http://www.w3.org/2000/svg").count(), "{links}");
    folder.ok("fit t.csv --target y --ignore label --inducing 6 -o s.safetensors");
    let report = folder.json("report s.safetensors t.csv --output s.html");
    assert_eq!(report["pictures"].as_array().unwrap().last().unwrap(), "Inducing points");
    let page = folder.read("s.html");
    assert!(page.contains("<h2>Inducing points</h2>") && page.contains("left unexplained (tr("));
    folder.refused(2, "report m.safetensors t.csv --output r.txt", &[".html"]);
    folder.refused(2, "report m.safetensors t.csv --output t.csv", &["overwritten"]);
}

/// The name says in what form, with the same size on every machine.
#[test]
fn pictures_are_svg_or_png() {
    let folder = Folder::new();
    folder.write("t.csv", "x,y\n0,1\n1,2\n2,0.5\n3,1.5\n4,2.5\n");
    folder.ok("fit t.csv --target y -o m --plot fit.PNG");
    folder.ok("plot m t.csv --what predictions -o p.png");
    folder.ok("plot m --what relevance -o r.png");
    for name in ["fit.PNG", "p.png", "r.png"] {
        let bytes = folder.bytes(name);
        assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n", "{name}");
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((number(16), number(20)), (1800, 1040), "{name}");
        // a white picture would be smaller
        assert!(bytes.len() > 8000, "{name}: {}", bytes.len());
    }
    folder.refused(2, "plot m t.csv -o p.jpg", &["p.jpg", ".svg or .png"]);
    folder.refused(2, "plot m t.csv --what shares -o p.svg", &["one input"]);
}

#[test]
fn pictures_take_a_title_names_of_axes_and_a_size() {
    let folder = Folder::new();
    let day = |i: i32| sparsegp::data::date_text(f64::from(19_000 + 7 * i));
    let row = |i: i32| format!("{},{},{}\n", day(i), i * 5 % 17, f64::from(i * 3 % 11) / 4.0);
    folder.write("d.csv", format!("day,depth,y\n{}", (0..40).map(row).collect::<String>()));
    folder.ok("fit d.csv --target y --max-iterations 3 -o m");
    let own = "--title 'At the <pier>' --x-label When --y-label 'Depth in m' --size 640x400";
    folder.ok(&format!("plot m d.csv {own} -o map.svg"));
    let svg = folder.read("map.svg");
    assert!(svg.contains("width=\"640\" height=\"400\""), "{}", &svg[..200]);
    for text in ["At the &lt;pier&gt;", "When", "Depth in m", "2022-"] {
        assert!(svg.contains(text), "{text}");
    }
    // the caption that it has otherwise
    assert!(!svg.contains("40 rows"));
    folder.ok("plot m --what relevance --x-label finer -o r.svg");
    assert!(folder.read("r.svg").contains("finer"));
    for size in ["640", "640x", "10x400", "640x99999", "ax9"] {
        let line = format!("plot m d.csv --size {size} -o s.svg");
        folder.refused(2, &line, &["WIDTHxHEIGHT in pixels", "--size"]);
    }
}
