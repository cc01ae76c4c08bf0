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
