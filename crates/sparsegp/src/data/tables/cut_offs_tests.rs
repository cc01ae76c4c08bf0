//! Cut-offs against divisions by hand.

use super::super::days;
use super::*;

fn of(texts: &[&str]) -> Vec<f64> {
    texts.iter().map(|text| days(text).expect("a date")).collect()
}

fn options<'a>(horizon: &'a str, count: usize, every: Option<&'a str>) -> CutOffOptions<'a> {
    CutOffOptions { horizon, count, every, parts: 2 }
}

fn texts(found: &CutOffs) -> Vec<String> {
    found.cuts.iter().map(|own| date_text(own.time)).collect()
}

/// The first days of 24 months from January 2022 on.
fn months() -> Vec<f64> {
    let text = |i: usize| format!("{}-{:02}-01", 2022 + i / 12, i % 12 + 1);
    (0..24).filter_map(|i| days(&text(i))).collect()
}

#[test]
fn months_are_of_the_calendar() {
    let found = cut_offs(&months(), true, &options("6mo", 3, Some("3mo"))).unwrap();
    assert_eq!(texts(&found), ["2022-12-01", "2023-03-01", "2023-06-01"]);
    assert_eq!(found.parts, ["3mo", "6mo"]);
    let first = &found.cuts[0];
    assert_eq!(first.train, (0..12).collect::<Vec<_>>());
    assert_eq!(
        (&first.test[..], &first.part[..]),
        (&[12, 13, 14, 15, 16, 17][..], &[0, 0, 0, 1, 1, 1][..])
    );
    // as many steps are the same
    assert_eq!(cut_offs(&months(), true, &options("6", 3, Some("3"))).unwrap().cuts, found.cuts);
    // last days of months stay last days
    let ends = of(&[
        "2023-08-31",
        "2023-09-30",
        "2023-10-31",
        "2023-11-30",
        "2023-12-31",
        "2024-01-31",
        "2024-02-29",
    ]);
    let found = cut_offs(&ends, true, &options("1q", 1, None)).unwrap();
    assert_eq!(
        (texts(&found)[0].as_str(), &found.cuts[0].test[..]),
        ("2023-11-30", &[4, 5, 6][..])
    );
    let parts = CutOffOptions { parts: 4, ..options("1y", 1, None) };
    assert_eq!(cut_offs(&months(), true, &parts).unwrap().parts, ["3mo", "6mo", "9mo", "1y"]);
}

#[test]
fn rows_in_any_order_several_at_a_time_and_without_one_are_divided_by_time() {
    let times = [5.0, 1.0, f64::NAN, 3.0, 5.0, 2.0, 4.0, 3.0, 6.0];
    let found = cut_offs(&times, false, &options("3", 1, None)).unwrap();
    let own = &found.cuts[0];
    assert_eq!((own.time, &own.train[..]), (3.0, &[1, 3, 5, 7][..]));
    assert_eq!((&own.test[..], &own.part[..]), (&[0, 4, 6, 8][..], &[0, 0, 0, 1][..]));
    assert_eq!(found.parts, ["2 steps", "3 steps"]);
    // without rounding the cut-offs would be beside the times
    let tenths: Vec<f64> = (0..40).map(|i| 0.1 * f64::from(i)).collect();
    let found = cut_offs(&tenths, false, &options("7", 4, None)).unwrap();
    let rows: Vec<usize> = found.cuts.iter().map(|own| own.train.len()).collect();
    assert_eq!(rows, [12, 19, 26, 33]);
    assert!(found.cuts.iter().all(|own| own.test.len() == 7 && tenths.contains(&own.time)));
}

#[test]
fn steps_that_differ_by_rounding_are_counted() {
    // months in decimal years of three decimals
    let months: Vec<f64> =
        (0..60).map(|i| 1990.0 + (f64::from(i) / 12.0 * 1e3).round() / 1e3).collect();
    let found = cut_offs(&months, false, &options("24", 1, None)).unwrap();
    let own = &found.cuts[0];
    assert_eq!((own.time, own.train.len(), own.test.len()), (months[35], 36, 24));
    assert_eq!(own.part, [[0; 12], [1; 12]].concat());
}

#[test]
fn uneven_times_are_cut_by_lengths_of_time() {
    let times =
        of(&["2024-01-01", "2024-01-02", "2024-01-04", "2024-01-10", "2024-01-11", "2024-01-20"]);
    let found = cut_offs(&times, true, &options("10d", 2, Some("2d"))).unwrap();
    assert_eq!(texts(&found), ["2024-01-08", "2024-01-10"]);
    assert_eq!((&found.cuts[0].train[..], &found.cuts[0].test[..]), (&[0, 1, 2][..], &[3, 4][..]));
    assert_eq!((&found.cuts[1].test[..], &found.cuts[1].part[..]), (&[4, 5][..], &[0, 1][..]));
}

#[test]
fn simple_rules_take_the_last_value_and_that_of_a_season_before() {
    let times = months();
    let y: Vec<f64> = (0..24).map(f64::from).collect();
    let found = cut_offs(&times, true, &options("14mo", 1, None)).unwrap();
    let own = &found.cuts[0];
    assert_eq!(found.simple(own, &times, &y, None).unwrap(), [9.0; 14]);
    // ten months are known, so that nothing is a year before the first two, nor a year or two before the last two
    let before = found.simple(own, &times, &y, Some("1y")).unwrap();
    assert_eq!(before[2..12], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    assert!([0, 1, 12, 13].iter().all(|i| before[*i].is_nan()), "{before:?}");
    // weeks: 365.2425 days before is not a row, and the nearest one counts
    let weeks: Vec<f64> = (0..80).map(|i| 7.0 * f64::from(i)).collect();
    let y: Vec<f64> = (0..80).map(|i| if i == 20 { f64::NAN } else { f64::from(i) }).collect();
    let found = cut_offs(&weeks, true, &options("10w", 1, None)).unwrap();
    let before = found.simple(&found.cuts[0], &weeks, &y, Some("1y")).unwrap();
    assert_eq!(before, [18.0, 19.0, 19.0, 21.0, 22.0, 23.0, 24.0, 25.0, 26.0, 27.0]);
    // rows at one time are averaged, and a season may have to be gone back twice
    let times = [0.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let y = [0.0, 1.0, 3.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let found = cut_offs(&times, false, &options("5", 1, None)).unwrap();
    let own = &found.cuts[0];
    assert_eq!(found.simple(own, &times, &y, None).unwrap(), [5.0; 5]);
    assert_eq!(found.simple(own, &times, &y, Some("2")).unwrap(), [2.0, 5.0, 2.0, 5.0, 2.0]);
    assert!(
        found
            .simple(own, &times, &y, Some("often"))
            .unwrap_err()
            .to_string()
            .contains("season `often`")
    );
    assert!(found.simple(own, &times, &y[1..], None).is_err());
}

#[test]
fn what_cannot_be_cut_is_refused_by_name() {
    let times: Vec<f64> = (0..10).map(f64::from).collect();
    let text = |own: CutOffOptions<'_>| cut_offs(&times, false, &own).unwrap_err().to_string();
    assert!(text(options("2w", 1, None)).contains("horizon `2w`"));
    assert!(text(options("0", 1, None)).contains("horizon `0`"));
    assert!(text(options("3", 1, Some("x"))).contains("every `x`"));
    let long = text(options("9", 1, None));
    assert!(long.contains("horizon `9`") && long.contains("from 0 to 9"), "{long}");
    let many = text(options("3", 4, None));
    assert!(many.contains("cutoffs 4") && many.contains("at most 2 fit"), "{many}");
    assert!(text(options("3", 0, None)).contains("cutoffs 0"));
    assert!(text(CutOffOptions { parts: 0, ..options("3", 1, None) }).contains("parts 0"));
    let gap = [0.0, 1.0, 2.0, 3.0, 30.0, 31.0];
    let message = cut_offs(&gap, false, &options("2", 8, None)).unwrap_err().to_string();
    assert!(message.contains("no rows are after the cut-off 15"), "{message}");
    let one =
        cut_offs(&[1.0, 1.0, f64::NAN], false, &options("1", 1, None)).unwrap_err().to_string();
    assert!(one.contains("fewer than two"), "{one}");
}
