//! Rows to try next.

use crate::support::Folder;

const SPACE: &str = "--input rate=1e-4:1:log --input layers=1:5:integer --input kind=relu,tanh";

fn loss(cells: &[&str]) -> f64 {
    let number = |at: usize| cells[at].parse::<f64>().unwrap();
    let kind = if cells[2] == "tanh" { 0.0 } else { 1.0 };
    (number(0).log10() + 2.0).powi(2) + 0.2 * (number(1) - 3.0).powi(2) + kind
}

/// From nothing to the best row, each round as a person would do it: rows out, outcomes in.
#[test]
fn rows_are_suggested_until_the_best_is_found() {
    let folder = Folder::new();
    let first = folder.ok(&format!("suggest {SPACE} --target loss --count 8"));
    let mut table = "kind,note,loss,rate,layers\n".to_owned();
    let add = |rows: &str, table: &mut String| {
        let mut lines = rows.lines();
        assert_eq!(lines.next(), Some("rate,layers,kind"));
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            *table += &format!("{},x,{},{},{}\n", cells[2], loss(&cells), cells[0], cells[1]);
        }
    };
    add(&first.out, &mut table);
    assert_eq!(table.lines().count(), 9);
    for _ in 0..6 {
        folder.write("tried.csv", &table);
        let run = folder.ok(&format!("suggest tried.csv {SPACE} --target loss --count 3"));
        assert!(run.err.contains("best so far: row "), "{}", run.err);
        add(&run.out, &mut table);
    }
    folder.write("tried.csv", &table);
    let report = folder.json(&format!("suggest tried.csv {SPACE} --target loss"));
    let best = &report["best"];
    assert_eq!(
        (&best["point"]["layers"], &best["point"]["kind"]),
        (&3.into(), &"tanh".into()),
        "{report}"
    );
    assert!(best["observed"].as_f64().unwrap() < 0.05, "{report}");
    assert_eq!((&report["rows"], report["points"].as_array().unwrap().len()), (&26.into(), 1));
    // the same table and seed give the same rows, to a file too
    let again = folder.json(&format!("suggest tried.csv {SPACE} --target loss -o next.csv"));
    assert_eq!(report["points"], again["points"]);
    assert_eq!(folder.read("next.csv").lines().count(), 2);
}

/// Constraints, rows under way and rows that failed.
#[test]
fn bounds_and_missing_outcomes_are_taken_into_account() {
    let folder = Folder::new();
    let mut table = "a,b,strength,cost\n".to_owned();
    for i in 0..12 {
        let (a, b) = (f64::from((5 * i) % 12) / 11.0, f64::from((7 * i) % 12) / 11.0);
        table += &format!("{a},{b},{},{}\n", a + b, 2.0 * a + b);
    }
    folder.write("tried.csv", format!("{table}0.9,0.1,,\n"));
    let suggest = "suggest tried.csv --input a=0:1 --input b=0:1 --target strength --maximise --constraint 'cost<=1.5'";
    let report = folder.json(suggest);
    let (a, b) = (&report["points"][0]["a"], &report["points"][0]["b"]);
    let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
    // the best has a = 1/4 and b = 1
    assert!(2.0 * a + b < 1.7 && a + b > 1.1, "{report}");
    let failed = folder.json(&format!("{suggest} --missing failed"));
    assert_eq!((&report["rows"], &failed["rows"]), (&13.into(), &13.into()));
    assert!(report["best"]["row"].as_u64().unwrap() <= 12);
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = Folder::new();
    folder.write("tried.csv", "a,kind,y\n0.5,red,1\n7,blue,2\n");
    let suggest = |rest: &str| format!("suggest tried.csv {rest}");
    folder.refused(2, &suggest("--input a=1:0 --target y"), &["the smaller one first"]);
    folder.refused(2, &suggest("--input a --target y"), &["no `=`", "name=0.1:10"]);
    folder.refused(2, &suggest("--input a=0:9 --target y --acquisition pi"), &["choose `ei`"]);
    folder.refused(2, &suggest("--input a=0:9 --target y --constraint y"), &["weight<=3"]);
    folder.refused(1, &suggest("--input a=0:1 --target y"), &["row 2", "from 0 to 1", "widen"]);
    folder.refused(1, &suggest("--input kind=red,green --target y"), &["kind", "blue"]);
    folder.refused(1, &suggest("--input b=0:1 --target y"), &["b"]);
}
