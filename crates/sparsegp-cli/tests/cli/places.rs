//! Places on Earth.

use crate::support::{Folder, column};

/// Stations about the date line, with values that change over some 1000 km, on 40 days.
fn folder() -> Folder {
    let folder = Folder::new();
    let row = |i: usize| {
        let part = |by: f64| (i as f64 * by).fract();
        let (latitude, east) = (-40.0 + 30.0 * part(0.618_034), 165.0 + 25.0 * part(0.414_214));
        let y = 10.0 + 3.0 * (east / 6.0).sin() + 2.0 * (latitude / 7.0).cos() + part(0.732_051);
        let longitude = if east > 180.0 { east - 360.0 } else { east };
        let high = if y > 11.0 { "yes" } else { "no" };
        format!("{latitude:.4},{longitude:.4},{},{y:.4},{high}\n", i % 7)
    };
    let rows: String = (0..90).map(row).collect();
    folder.write("sites.csv", format!("lat,long,age,y,high\n{rows}"));
    folder.write("more.csv", "y,age,long,lat\n9.5,3,-178.5,-21\n10.5,2,178.5,-22\n");
    folder.write("new.csv", "long,lat\n179.999,-20\n-179.999,-20\n0,90\n");
    folder
}

const FIT: &str = "fit sites.csv --target y --features lat,long --places lat,long --kernel matern32 --max-iterations 30";

#[test]
fn places_are_near_across_the_date_line_and_have_one_lengthscale() {
    let folder = folder();
    let run = folder.ok(&format!("{FIT} -o m.st --plot map.svg"));
    assert!(
        run.out.contains("place(lat, long) (points of the sphere, in kilometres)"),
        "{}",
        run.out
    );
    assert!(!run.err.contains("look like places"), "{}", run.err);
    // a line for the three coordinates, in kilometres
    let shown = folder.ok("inspect m.st").out;
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains("lengthscales[")).collect();
    assert!(lines.len() == 1 && lines[0].contains("place(lat, long)"), "{shown}");
    let cells: Vec<&str> = lines[0].split_whitespace().collect();
    let kilometres: f64 = cells[4].parse().unwrap_or_else(|_| panic!("{}", lines[0]));
    assert!(kilometres > 200.0 && kilometres < 20_000.0, "{shown}");
    // the map is over longitudes that continue across the line
    let map = folder.read("map.svg");
    assert!(map.contains("\nlong\n") && map.contains("\nlat\n") && map.contains("\n180\n"));

    let predicted = folder.ok("predict m.st new.csv");
    let mean = column(&predicted.out, "mean");
    assert!((mean[0] - mean[1]).abs() < 0.01, "{mean:?}");
    let degrees = FIT.replace("--places lat,long", "");
    let run = folder.ok(&format!("{degrees} -o d.st"));
    assert!(run.err.contains("look like places on Earth: `--places lat,long`"), "{}", run.err);
    let mean = column(&folder.ok("predict d.st new.csv").out, "mean");
    assert!((mean[0] - mean[1]).abs() > 0.01, "{mean:?}");
}

#[test]
fn other_commands_take_models_of_places() {
    let folder = folder();
    let fit = "fit sites.csv --target y --ignore high --places lat,long --kernel matern32 --method titsias2025 \
               --inducing 15 --max-iterations 15 -o m.st";
    folder.ok(fit);
    for command in [
        "score m.st sites.csv",
        "update m.st more.csv -o u.st",
        "explain m.st sites.csv --rows 20 --plot e.svg -o effects.csv",
        "plot m.st sites.csv -o p.svg",
        "plot m.st sites.csv --what effects -o f.svg",
        "export m.st -o model.h",
        "inducing m.st sites.csv",
        "fit sites.csv --from m.st --max-iterations 2 -o n.st",
        "fit sites.csv --target high --features lat,long --places lat,long --method vecchia --kernel matern32 \
         --max-iterations 3 --plot classes.svg -o c.st",
        "fit sites.csv --target y --features lat,long --places lat,long --method deep --kernel rbf --epochs 2 -o deep.st",
        "compare sites.csv --target y --folds 2 --kernel rbf --kernel matern32 -- --ignore high --places lat,long \
         --max-iterations 3",
    ] {
        folder.ok(command);
    }
    let effects = folder.read("effects.csv");
    assert!(effects.contains("y,lat,partial") && effects.contains("y,long,partial"), "{effects}");
    let code = folder.read("model.h");
    assert!(
        code.contains("cos(latitude) * sin(longitude) of the columns `lat` and `long`"),
        "{code}"
    );
    folder.refused(2, "forecast m.st sites.csv --horizon 3", &["one input, time"]);
    folder.refused(
        2,
        "explain m.st sites.csv --input place",
        &["--input place: the model has no such input; it has lat, long, age"],
    );
    // kilometres in the kernel, one number for a place
    let line = fit.replace(
        "--kernel matern32",
        "--kernel 'matern32(lengthscales=[900,3])' --kernel-units data",
    );
    folder.ok(&line.replace("--max-iterations 15", "--max-iterations 0"));
    let shown = folder.ok("inspect m.st").out;
    assert!(
        shown.lines().any(|line| line.contains("place(lat, long)") && line.contains(" 900.0 ")),
        "{shown}"
    );
    let one = FIT
        .replace("--kernel matern32", "--kernel 'matern32(lengthscales=900)' --kernel-units data");
    folder.ok(&format!("{one} -o one.st"));
}

#[test]
fn what_is_not_a_place_is_refused() {
    let folder = folder();
    let fit = "fit sites.csv --target y --ignore high --places";
    folder.refused(
        1,
        &format!("{fit} long,lat"),
        &["sites.csv", "column `long`", "LATITUDE,LONGITUDE"],
    );
    folder.refused(1, &format!("{fit} lat,lon"), &["column `lon`", "nearest"]);
    folder.refused(1, &format!("{fit} lat,y"), &["column `y`", "not an input column"]);
    folder.refused(
        1,
        &format!("{fit} lat,long --places lat,age"),
        &["column `lat`", "given twice"],
    );
    folder.refused(
        2,
        &format!("{fit} lat"),
        &["must be the columns of latitude and longitude, such as lat,long"],
    );
    folder.refused(
        1,
        &format!("{fit} lat,long --method markov"),
        &["a state-space form is of one"],
    );
    folder.write("bad.csv", "lat,long\n-20,180\n-95,180\n");
    folder.ok(&format!("{FIT} -o m.st"));
    folder.refused(1, "predict m.st bad.csv", &["row 2, column `lat`", "`-95`"]);
    folder.write("half.csv", "lat\n-20\n");
    folder.refused(1, "predict m.st half.csv", &["column `long`"]);
    folder.write("gap.csv", "lat,long\n-20,\n-21,180\n");
    folder.refused(1, "predict m.st gap.csv", &["row 1, column `long`"]);
}
