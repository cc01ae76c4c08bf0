//! Effects of holidays.

use crate::support::{fit, options};
use sparsegp::data::{
    Encoding, Holiday, Holidays, InputColumn, Loaded, Missing, Selection, Table, date_text,
};
use sparsegp::fit::{Dataset, FitOptions, Fitted, Of, Standardise, encoded};
use sparsegp::io;
use sparsegp::likelihoods::Gaussian;
use sparsegp::linalg::Mat;
use sparsegp::rng::{stream, uniform};
use std::f64::consts::TAU;

/// The first day of the series, 2021-01-03.
const START: f64 = 18_630.0;
/// Days of the series.
const DAYS: usize = 400;

/// Every 40th day is a fair, on which and the day after sales are higher; every 90th an outage. One more fair comes after
/// the last day, and a strike is in no row.
fn calendar() -> Holidays {
    let day = |name: &str, i: usize, after| Holiday {
        name: name.into(),
        day: START as i64 + i as i64,
        before: 0,
        after,
    };
    let fairs = (0..11).map(|k| day("fair", 20 + 40 * k, 1));
    let outages = (0..4).map(|k| day("outage", 55 + 90 * k, 0));
    Holidays::new(fairs.chain(outages).chain([day("strike", DAYS + 100, 0)])).expect("a calendar")
}

fn smooth(i: usize) -> f64 {
    200.0 + 20.0 * (TAU * i as f64 / 150.0).sin()
}

fn effect(i: usize) -> f64 {
    let fair = [30.0, 12.0].get((i + 20) % 40).copied().unwrap_or(0.0);
    fair - if i % 90 == 55 { 45.0 } else { 0.0 }
}

fn table(folder: &tempfile::TempDir) -> Table {
    let mut rng = stream(4, "holidays");
    let row = |i: usize| {
        let y = smooth(i) + effect(i) + 2.0 * (uniform(&mut rng) - 0.5);
        format!("{},{y:.4}\n", date_text(START + i as f64))
    };
    let path = folder.path().join("sales.csv");
    let text = "day,sales\n".to_owned() + &(0..DAYS).map(row).collect::<String>();
    std::fs::write(&path, text).expect("a file");
    Table::open(&path).expect("a table")
}

fn loaded(table: &Table) -> Loaded {
    let selection = encoded(table, &Selection::targets(["sales"]), "", &[]).expect("columns");
    let selection = table.with_holidays(selection, &calendar()).expect("a date");
    table.select(&selection).expect("columns").missing(Missing::Refuse).read_all().expect("rows")
}

fn dataset(table: &Table) -> Dataset {
    let scaling = Standardise::all_that(&Gaussian::new(0.1)).for_kernel("");
    Dataset::from_loaded(loaded(table), scaling).expect("a data set")
}

/// Predictions on days of the series, with the holidays that they have or without.
fn at(fitted: &Fitted, days: &[usize], with: bool) -> (Vec<f64>, Vec<f64>) {
    let one = |i: &usize| {
        let mut own = fitted.columns[0].encoding.of_number(START + *i as f64);
        if !with {
            own[1..].fill(0.0);
        }
        own
    };
    let rows: Vec<Vec<f64>> = days.iter().map(one).collect();
    let x = Mat::from_fn(rows.len(), rows[0].len(), |i, q| rows[i][q]);
    let (mean, variance) = fitted.predict(x.as_ref(), Of::Latent).expect("predictions");
    let column = |a: &Mat<f64>| (0..days.len()).map(|i| a[(i, 0)]).collect();
    (column(&mean), column(&variance))
}

#[test]
fn effects_of_holidays_are_learnt_and_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = dataset(&table(&folder));
    assert_eq!(data.input_names, ["day", "day=fair", "day=fair +1", "day=outage", "day=strike"]);
    // effects have the same variance: their inputs are not scaled
    assert_eq!(
        (&data.scaler.x_mean[1..], &data.scaler.x_scale[1..]),
        (&[0.0; 4][..], &[1.0; 4][..])
    );
    let json = r#"{"type": "matern32"}"#;
    for (kernel, method) in [("matern32", "exact"), (json, "titsias2025"), ("auto", "auto")] {
        let own = FitOptions { kernel: kernel.into(), ..options(method, 60) };
        let found = fit(&data, &own).expect("a fit");
        // a fair of the training, the one after the last row, and an outage
        for (day, size) in [(60, 30.0), (420, 30.0), (421, 12.0), (145, -45.0)] {
            let (plain, holiday) = (at(&found, &[day], false).0[0], at(&found, &[day], true).0[0]);
            assert!((holiday - plain - size).abs() < 3.0, "{kernel} {day}: {}", holiday - plain);
        }
        // nothing is known of a strike but how much holidays differ
        let ([plain], [strike]) =
            (&at(&found, &[500], false).1[..], &at(&found, &[500], true).1[..])
        else {
            panic!("one day each")
        };
        assert!(strike - plain > 100.0, "{kernel}: {plain} {strike}");
        // other terms do not see the holidays, which show as a separate term
        let text = found.model.kernel().to_json().to_string();
        assert!(text.contains(r#""active_dims":[0]"#), "{text}");
        assert!(text.contains(r#""active_dims":[1,2,3,4]"#), "{text}");
        let own = found.columns[0].encoding.of_number(START + 60.0);
        let x = Mat::from_fn(1, own.len(), |_, q| own[q]);
        let terms = found.predict_terms(x.as_ref(), false).expect("terms");
        let of_holidays = terms.iter().find(|term| term.name == "holidays").expect("a term");
        assert!((of_holidays.mean[0] - 30.0).abs() < 3.0, "{}", of_holidays.mean[0]);
        let warned = |word: &str| found.warnings.iter().any(|text| text.contains(word));
        assert!(warned("no row falls on `day=strike`"), "{:?}", found.warnings);
        assert!(!warned("is constant") && !warned("far from"), "{:?}", found.warnings);
        // files keep the calendar
        let path = folder.path().join("m.safetensors");
        io::save(&found, &path).expect("a file");
        let again = io::load(&path).expect("a model");
        assert_eq!(at(&again, &[420, 421], true), at(&found, &[420, 421], true));
        assert_eq!(again.columns[0].encoding, Encoding::Calendar(calendar()));
    }
}

#[test]
fn days_after_the_calendar_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = dataset(&table(&folder));
    let found =
        fit(&data, &FitOptions { kernel: "rbf".into(), ..options("exact", 5) }).expect("a fit");
    let x = |days: f64| {
        let own = found.columns[0].encoding.of_number(days);
        Mat::from_fn(1, own.len(), |_, q| own[q])
    };
    // the strike is the last day
    let end = START + (DAYS + 100) as f64;
    assert_eq!(found.calendar_remark(x(end + 0.9).as_ref()), None);
    let text = found.calendar_remark(x(end + 1.0).as_ref()).expect("a remark");
    assert!(text.contains(&date_text(end)) && text.contains("`day` continues to"), "{text}");
}

#[test]
fn holidays_need_a_single_date_and_a_method_for_several_inputs() {
    let folder = tempfile::tempdir().expect("a folder");
    let sales = table(&folder);
    let data = dataset(&sales);
    for method in ["markov", "deep"] {
        let own = FitOptions { kernel: "matern32".into(), ..options(method, 5) };
        let error = fit(&data, &own).expect_err("a refusal").to_string();
        assert!(error.contains("holidays"), "{method}: {error}");
    }
    let path = folder.path().join("two.csv");
    std::fs::write(&path, "a,b,x,y\n2024-01-01,2024-01-02,1,2\n2024-01-03,2024-01-04,2,3\n")
        .expect("a file");
    let two = Table::open(&path).expect("a table");
    let refused = |selection: Selection, word: &str| {
        let selection = encoded(&two, &selection, "", &[]).expect("columns");
        let error = two.with_holidays(selection, &calendar()).expect_err("a refusal").to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(Selection::targets(["y"]), "not the only input that holds dates");
    refused(Selection::targets(["y"]).inputs(["x"]), "is not a date");
}

#[test]
fn calendars_are_read_from_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |text: &str| {
        let path = folder.path().join("holidays.csv");
        std::fs::write(&path, text).expect("a file");
        Table::open(&path).and_then(|table| Holidays::of_table(&table))
    };
    let own = read("name,date,after,place\nfair,2024-05-01,1,here\nfair,2025-05-01,,here\n")
        .expect("a calendar");
    let column = InputColumn { name: "t".into(), encoding: Encoding::Calendar(own) };
    assert_eq!(column.input_names(), ["t", "t=fair", "t=fair +1"]);
    assert_eq!(column.numbers("2024-05-02"), Ok(vec![19_845.0, 0.0, 1.0]));
    assert_eq!(
        column.numbers("2025-05-01T13:00Z").map(|own| own[1..].to_vec()),
        Ok(vec![1.0, 0.0])
    );
    for (text, words) in [
        ("day,name\n2024-05-01,fair\n", ["column `date`", ""]),
        ("date,name\nsoon,fair\n", ["row 1, column `date`", "soon"]),
        ("date,name\n2024-05-01,\n", ["row 1, column `name`", "no name"]),
        ("date,name,before\n2024-05-01,fair,two\n", ["row 1, column `before`", "`two`"]),
        ("date,name,after\n2024-05-01,fair,99\n", ["holiday `fair`", "99 days"]),
    ] {
        let error = read(text).expect_err("a refusal").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}
