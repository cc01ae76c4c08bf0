//! Pictures have the parts that they should have, where they should be.

use super::contour::Grid;
use super::counts::{self, Counts};
use super::reliability;
use super::style::{class_colour, label, round_values};
use super::surface::{self, Classes, Scene, Values};
use super::*;
use sparsegp::metrics::classes::{ClassMetrics, ClassOptions};

/// The picture that `draw` makes, which must be well formed. With `SPARSEGP_PICTURES=FOLDER` in the
/// environment it is kept there, to be looked at.
fn picture(name: &str, draw: impl Fn(&Panel) -> Drawn) -> String {
    let mut svg = String::new();
    let look = Look::default();
    let root = SVGBackend::with_string(&mut svg, look.size).into_drawing_area();
    root.fill(&WHITE).unwrap();
    let panel = Panel::new(root, &look);
    draw(&panel).unwrap();
    panel.present().unwrap();
    drop(panel);
    if let Some(folder) = std::env::var_os("SPARSEGP_PICTURES") {
        std::fs::write(Path::new(&folder).join(format!("{name}.svg")), &svg).unwrap();
    }
    check_form(&svg);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    svg
}

/// Elements are closed in order, attributes are quoted, text has no bare marks of XML.
fn check_form(svg: &str) {
    let (mut open, mut rest) = (Vec::new(), svg);
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{text}");
        for entity in text.split('&').skip(1) {
            let known = ["lt;", "gt;", "amp;", "quot;", "apos;"];
            assert!(known.iter().any(|k| entity.starts_with(k)), "{text}");
        }
        let (tag, after) = after.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        assert_eq!(tag.matches("=\"").count(), tag.matches('=').count(), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        rest = after;
    }
    assert!(open.is_empty() && rest.trim().is_empty());
}

/// The elements called `tag`, as text.
fn elements<'a>(svg: &'a str, tag: &str) -> Vec<&'a str> {
    let start = format!("<{tag} ");
    svg.split(&start).skip(1).map(|rest| rest.split('>').next().unwrap()).collect()
}

fn attribute(element: &str, name: &str) -> String {
    let (_, rest) =
        element.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("{element}"));
    rest.split('"').next().unwrap().to_owned()
}

fn pixels(element: &str, name: &str) -> f64 {
    attribute(element, name).parse().unwrap()
}

fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// Deterministic points of [−1, 1]².
fn spread(n: usize) -> Vec<(f64, f64)> {
    let at = |i: usize, step: f64| ((i as f64 + 0.5) * step).fract() * 2.0 - 1.0;
    (0..n).map(|i| (at(i, 0.754_877_666_246_693), at(i, 0.569_840_290_998_053))).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn two_classes() {
    let points: Vec<(f64, f64)> =
        spread(120).into_iter().map(|(x, y)| (30.0 + 4.0 * x, -2.0 + y)).collect();
    // p = ½ is a circle.
    let lean =
        |(x, y): (f64, f64)| 5.0 * (1.0 - ((x - 30.0) / 2.2).powi(2) - ((y + 2.0) / 0.6).powi(2));
    let p = |at| 1.0 / (1.0 + f64::exp(-lean(at)));
    let labels: Vec<usize> = points
        .iter()
        .enumerate()
        .map(|(i, at)| usize::from(p(*at) > (i as f64 * 0.618).fract()))
        .collect();
    let grid = Grid::around(points.iter().copied());
    let nodes = grid.nodes();
    let probabilities =
        Mat::from_fn(nodes.len(), 2, |i, c| if c == 1 { p(nodes[i]) } else { 1.0 - p(nodes[i]) });
    let inducing: Vec<(f64, f64)> =
        points.iter().step_by(12).copied().chain([(1000.0, 0.0)]).collect();
    let scene = Scene {
        caption: "outcome: variational, rbf, 120 rows, 11 inducing points",
        ticks: (style::Ticks::Numbers, style::Ticks::Dates),
        names: ("age", "dose & rate"),
        grid: &grid,
        points: &points,
        inducing: &inducing,
    };
    let names = names(&["a<b", "ill"]);
    let classes = Classes { names: &names, probabilities: &probabilities, labels: &labels };
    let svg = picture("two-classes", |panel| surface::classes(panel, &scene, &classes));
    for text in
        ["a&lt;b", "dose &amp; rate", "age", "p(ill)", "p = 0.5", "p = 0.1, 0.9", "outcome: "]
    {
        assert!(svg.contains(&format!("{text}\n")) || svg.contains(text), "{text}");
    }
    // A row of class 0 is a disk on a rim; one is in the legend.
    let disks = elements(&svg, "circle");
    let coloured = |colour| disks.iter().filter(|c| attribute(c, "fill") == hex(colour)).count();
    let zeros = labels.iter().filter(|label| **label == 0).count();
    assert!(zeros > 20 && zeros < 100);
    assert_eq!(coloured(class_colour(0)), zeros + 1);
    assert_eq!(disks.len(), 2 * (zeros + 1));
    // One of class 1 is a triangle.
    let triangles = elements(&svg, "polygon");
    let fill = hex(class_colour(1));
    let ones = triangles.iter().filter(|t| attribute(t, "fill") == fill).count();
    assert_eq!(ones, labels.len() - zeros + 1);
    // Ten inducing points are inside (and one in the legend): two strokes each, and two of the rim.
    let strokes = elements(&svg, "line").into_iter().chain(elements(&svg, "polyline"));
    assert_eq!(strokes.filter(|s| s.contains("stroke=\"#FFFFFF\"")).count(), 2 * 11);
    // Of three closed lines the one of ½ is the thick one; its middle is that of the circle.
    let lines: Vec<Vec<(f64, f64)>> = elements(&svg, "polyline")
        .iter()
        .filter(|line| attribute(line, "stroke-width") == "2")
        .map(|line| {
            let points = attribute(line, "points");
            let pair = |p: &str| {
                let (x, y) = p.split_once(',').unwrap();
                (x.parse().unwrap(), y.parse().unwrap())
            };
            points.split_whitespace().map(pair).collect()
        })
        .filter(|line: &Vec<(f64, f64)>| line.len() > 20)
        .collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].first(), lines[0].last());
    let widest = lines[0].iter().map(|p| p.0).fold(0.0, f64::max);
    let left = lines[0].iter().map(|p| p.0).fold(f64::INFINITY, f64::min);
    // 4.4 wide in a picture that spans the points' ±4 and 6 % margins.
    let frame = f64::from(Look::default().size.0) - 84.0 - 70.0 - 28.0;
    let expected = 4.4 / (grid.x.1 - grid.x.0) * frame;
    assert!((widest - left - expected).abs() < 5.0, "{} is not {expected}", widest - left);
}

#[test]
fn many_classes() {
    let points = spread(200);
    let centres = spread(5);
    let probabilities_at = |(x, y): (f64, f64)| -> Vec<f64> {
        let weight =
            |c: &(f64, f64)| (-12.0 * ((x - c.0).powi(2) + (y - c.1).powi(2))).exp() + 1e-4;
        let weights: Vec<f64> = centres.iter().map(weight).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|w| w / sum).collect()
    };
    let first = |p: &[f64]| (0..5).fold(0, |a, b| if p[b] > p[a] { b } else { a });
    let labels: Vec<usize> = points.iter().map(|at| first(&probabilities_at(*at))).collect();
    let grid = Grid::around(points.iter().copied());
    let nodes: Vec<Vec<f64>> = grid.nodes().into_iter().map(probabilities_at).collect();
    let probabilities = Mat::from_fn(nodes.len(), 5, |i, c| nodes[i][c]);
    let scene = Scene {
        caption: "species: softmax, matern52, 200 rows",
        ticks: (style::Ticks::Numbers, style::Ticks::Dates),
        names: ("length", "width"),
        grid: &grid,
        points: &points,
        inducing: &[],
    };
    let names =
        names(&["setosa", "versicolor", "virginica", "a species with a long name", "other"]);
    let classes = Classes { names: &names, probabilities: &probabilities, labels: &labels };
    let svg = picture("many-classes", |panel| surface::classes(panel, &scene, &classes));
    for name in &names {
        assert!(svg.contains(name), "{name}");
    }
    assert!(svg.contains("paler: less certain") && !svg.contains("inducing"));
    // Every class has an area of its colour, darkest where it is certain.
    let fills: Vec<String> = elements(&svg, "rect").iter().map(|r| attribute(r, "fill")).collect();
    for class in 0..5 {
        let certain = hex(super::style::pale(class_colour(class), 0.6));
        assert!(fills.contains(&certain), "class {class} is nowhere certain");
    }
    // Neighbours of one shade are one rectangle.
    assert!(fills.len() < 61 * 91 / 2, "{} rectangles", fills.len());
    // The legend stays within the picture.
    for text in elements(&svg, "text") {
        assert!(pixels(text, "x") < 880.0, "{text}");
    }
}

#[test]
fn a_mean_with_its_uncertainty() {
    let points: Vec<(f64, f64)> =
        spread(80).into_iter().map(|(x, y)| (x * x.abs(), 1e4 * y * y.abs())).collect();
    let mean = |(x, y): (f64, f64)| 250.0 + 40.0 * (3.0 * x).sin() * (2e-4 * y).cos();
    let deviation = |(x, y): (f64, f64)| 2.0 + 9.0 * (x * x + 1e-8 * y * y);
    let grid = Grid::around(points.iter().copied());
    let nodes = grid.nodes();
    let (means, deviations): (Vec<f64>, Vec<f64>) =
        nodes.iter().map(|at| (mean(*at), deviation(*at))).unzip();
    let targets: Vec<f64> =
        points.iter().enumerate().map(|(i, at)| mean(*at) + ((i * 7) % 9) as f64 - 4.0).collect();
    let scene = Scene {
        caption: "yield: titsias2025, rbf, 80 rows, 9 inducing points",
        ticks: (style::Ticks::Numbers, style::Ticks::Dates),
        names: ("east", "north"),
        grid: &grid,
        points: &points,
        inducing: &spread(9).into_iter().map(|(x, y)| (x, 1e4 * y)).collect::<Vec<_>>(),
    };
    let values = Values { name: "yield", mean: &means, deviation: &deviations, targets: &targets };
    let svg = picture("surface", |panel| surface::values(panel, &scene, &values));
    for text in ["yield", "east", "north", "standard deviation", "inducing points", "rows, in the"]
    {
        assert!(svg.contains(text), "{text}");
    }
    // Three circles a row, and in the legend.
    assert_eq!(elements(&svg, "circle").len(), 3 * 81);
    // Levels 5, 10, 15 and perhaps 20 of deviations from 2 to 22, each with its number.
    for level in ["5", "10", "15"] {
        assert!(svg.contains(&format!(">\n{level}\n")), "{level}");
    }
    // A constant has a picture as well.
    let flat = vec![3.5; nodes.len()];
    let values = Values { name: "y", mean: &flat, deviation: &flat, targets: &[3.5; 80] };
    picture("flat", |panel| surface::values(panel, &scene, &values));
}

#[test]
fn reliability_of_two_classes() {
    let mut metrics = ClassMetrics::new(2, ClassOptions::default()).unwrap();
    // Overconfident: right with probability ½ + 0.7 (p − ½).
    let n = 3000;
    let share = |i: usize, step: f64| (i as f64 * step).fract();
    let p: Vec<f64> = (0..n).map(|i| 1.0 - 0.5 * share(i, 0.618_033_988_75).powi(2)).collect();
    let y: Vec<f64> = (0..n)
        .map(|i| f64::from(u8::from(share(i, 0.414_213_562_37) < 0.5 + 0.7 * (p[i] - 0.5))))
        .collect();
    let both = Mat::from_fn(n, 2, |i, c| if c == 1 { p[i] } else { 1.0 - p[i] });
    metrics.add(&y, both.as_ref(), None).unwrap();
    let scores = metrics.finish().unwrap();
    let svg = picture("reliability", |panel| {
        reliability::panel(panel, "outcome, test rows", &scores.reliability, scores.ece)
    });
    let ece = crate::format::number(scores.ece, 3);
    assert!(svg.contains(&format!("outcome, test rows: calibration error {ece}")));
    for text in ["confidence in the predicted class", "accuracy", "as certain as right"] {
        assert!(svg.contains(text), "{text}");
    }
    let filled: Vec<_> = scores.reliability.iter().filter(|bin| bin.rows > 0).collect();
    assert_eq!(filled.len(), 8);
    let outlines: Vec<&str> = elements(&svg, "rect")
        .into_iter()
        .filter(|r| attribute(r, "fill") == "none" && r.contains("stroke=\"#1F62AD\""))
        .collect();
    assert_eq!(outlines.len(), 8);
    for bin in &filled {
        assert!(svg.contains(&format!(">\n{}\n", bin.rows)), "{} rows", bin.rows);
    }
    // Heights are in proportion to accuracies.
    let scale = pixels(outlines[7], "height") / filled[7].accuracy.unwrap();
    for (bar, bin) in outlines.iter().zip(&filled) {
        assert!((pixels(bar, "height") - scale * bin.accuracy.unwrap()).abs() <= 1.0);
    }
    assert_eq!(elements(&svg, "circle").len(), 8);
    // Of nothing there is a picture without bars.
    let none = picture("no-reliability", |panel| reliability::panel(panel, "y", &[], 0.0));
    assert_eq!(elements(&none, "circle").len(), 0);
}

#[test]
fn counts_with_their_intervals() {
    let x: Vec<f64> = (0..400).map(|i| 1950.0 + f64::from(i) / 5.0).collect();
    let mean: Vec<f64> =
        x.iter().map(|x| 1.2 + 8.0 * (-((x - 1985.0) / 12.0).powi(2)).exp()).collect();
    let end = |width: f64| -> Vec<f64> {
        mean.iter().map(|m| (m + width * m.sqrt()).max(0.0).round()).collect()
    };
    let (a, b, c, d) = (end(-0.67), end(0.67), end(-1.9), end(2.1));
    let rows: Vec<(f64, f64)> = (0..75)
        .map(|i| {
            (
                1950.5 + f64::from(i),
                (mean[5 * i as usize] + f64::from((i * 5) % 7) - 3.0).max(0.0).round(),
            )
        })
        .collect();
    let of = Counts {
        caption: "accidents: poisson, rbf, 60 rows, 3 inducing points",
        ticks: style::Ticks::Numbers,
        names: ("year", "accidents"),
        x: &x,
        mean: &mean,
        half: (&a, &b),
        most: (&c, &d),
        named: "training rows",
        train: &rows[..60],
        test: &rows[60..],
        inducing: &[1960.0, 1980.0, 2000.0],
    };
    let svg = picture("counts", |panel| counts::panel(panel, &of));
    for text in ["50 % of new counts", "95 % of new counts", "test rows", "year", "accidents: "] {
        assert!(svg.contains(text), "{text}");
    }
    // Each with one in the legend.
    assert_eq!(elements(&svg, "circle").len(), 61 + 16);
    let polygons = elements(&svg, "polygon");
    let bands: Vec<Vec<(f64, f64)>> = polygons
        .iter()
        .map(|polygon| attribute(polygon, "points"))
        .filter(|points| points.split_whitespace().count() == 800)
        .map(|points| {
            let pair = |p: &str| {
                let (x, y) = p.split_once(',').unwrap();
                (x.parse().unwrap(), y.parse().unwrap())
            };
            points.split_whitespace().map(pair).collect()
        })
        .collect();
    assert_eq!((bands.len(), polygons.len()), (2, 2 + 4));
    // An interval is a count wider than from end to end, also where it is one count only.
    let ends = |band: &[(f64, f64)], i: usize| band[i].1 - band[799 - i].1;
    let unit = ends(&bands[0], 175) / (d[175] - c[175] + 1.0);
    for i in [0, 40, 175, 399] {
        assert!((ends(&bands[0], i) - unit * (d[i] - c[i] + 1.0)).abs() <= 1.5);
        assert!((ends(&bands[1], i) - unit * (b[i] - a[i] + 1.0)).abs() <= 1.5);
    }
}

#[test]
fn axes_have_readable_numbers() {
    for (value, span, text) in [
        (-2.22e-16, 2.0, "0"),
        (2e-16, 4e-16, "2.000e-16"),
        (0.25, 1.0, "0.25"),
        (-1500.0, 1e4, "-1500"),
        (1e-12, 0.0, "1.000e-12"),
    ] {
        assert_eq!(label(value, span), text);
    }
    assert_eq!(round_values((0.0, 1.0)), [0.0, 0.25, 0.5, 0.75, 1.0]);
    assert_eq!(round_values((207.6, 291.0)), [220.0, 240.0, 260.0, 280.0]);
    assert_eq!(
        round_values((-3e-7, 1e-7)),
        [-3e-7, -2e-7, -1e-7, 0.0, 1e-7].map(|v: f64| { (v / 1e-7).round() * 1e-7 })
    );
    for k in 1..200 {
        let (low, span) = (f64::from(k * k) * 0.37 - 900.0, 1.07f64.powi(k - 100));
        let values = round_values((low, low + span));
        assert!((2..=6).contains(&values.len()), "{low} + {span}: {values:?}");
        let slack = 1e-8 * span + 1e-12;
        assert!(values.iter().all(|v| *v >= low - slack && *v <= low + span + slack));
    }
}

#[test]
fn dates_have_lines_where_months_and_years_begin() {
    use sparsegp::data::days;
    let day = |text: &str| days(text).unwrap();
    let labels = |low: &str, high: &str, most: usize| -> Vec<String> {
        let range = (day(low), day(high));
        let places = style::Ticks::Dates.places(range, most);
        assert!(places.len() <= most + 1, "{places:?}");
        places.into_iter().map(|place| style::Ticks::Dates.label(place, range)).collect()
    };
    assert_eq!(labels("2024-01-20", "2024-05-03", 6), ["2024-02", "2024-03", "2024-04", "2024-05"]);
    assert_eq!(labels("1957-03-02", "1960-11-01", 5), ["1958-01", "1959-01", "1960-01"]);
    assert_eq!(
        labels("1851-03-15", "1962-03-22", 6),
        ["1860", "1880", "1900", "1920", "1940", "1960"]
    );
    assert_eq!(
        labels("2024-02-20", "2024-03-02", 6),
        ["2024-02-21", "2024-02-23", "2024-02-25", "2024-02-27", "2024-02-29", "2024-03-02"]
    );
    // hours have no beginnings of days
    assert!(!style::Ticks::Dates.places((19782.0, 19783.5), 6).is_empty());
    assert_eq!(style::Ticks::Numbers.places((0.0, 10.0), 6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
}

#[test]
fn long_captions_lose_their_middle() {
    assert_eq!(super::style::cut("sales: rbf", 10), "sales: rbf");
    assert_eq!(super::style::cut("sales: rbf + linear, 80 rows", 11), "sales… rows");
}
