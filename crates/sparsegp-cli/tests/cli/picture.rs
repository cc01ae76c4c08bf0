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
    folder.ok("fit map.csv --target label --classes --full-batch --plot 3.svg -o 3.safetensors");
    folder.ok("plot 3.safetensors map.csv --output 4.svg");
    assert_eq!(folder.read("3.svg"), folder.read("4.svg"));
    folder.refused(2, "plot 3.safetensors map.csv --output map.csv", &["overwritten"]);
    folder.refused(2, "plot 3.safetensors map.csv --output p.png", &["--output p.png", "SVG"]);
}
