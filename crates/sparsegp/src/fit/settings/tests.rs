use super::*;
use crate::linalg::Jitter;
use serde_json::json;
use std::collections::BTreeSet;

/// A value that is not the default of any method.
fn other(setting: &Setting) -> Value {
    match (setting.name, setting.kind) {
        ("inducing_from", _) => json!("random"),
        (_, Kind::Flag) => json!(!setting.is_set()),
        (_, Kind::Whole(_)) => json!(17),
        (_, Kind::Number(_) | Kind::Time | Kind::Jitter) => json!(0.375),
        (_, Kind::Choice(words)) => json!(words[1].0),
        (_, Kind::Text) => json!("linear"),
        (_, Kind::Texts) => json!(["kernel"]),
        (_, Kind::Values) => json!([["kernel.variance", [2.0]]]),
    }
}

/// What is written is read again, and nothing else moves.
#[test]
fn values_go_where_they_are_read_from() {
    for setting in all().filter(|own| own.name != "early_stopping") {
        let mut options = FitOptions::default();
        let before: Vec<Value> = all().map(|own| (own.read)(&options)).collect();
        let values = Map::from_iter([(setting.name.to_owned(), other(setting))]);
        apply(&mut options, &values, Door::Python).unwrap();
        assert_eq!((setting.read)(&options), other(setting), "{}", setting.name);
        for (own, before) in all().zip(before) {
            // without minibatches there is nothing of them to read, and those of only Adam have no
            // other rate
            let follows = match setting.name {
                "full_batch" => true,
                "diagonal" | "no_natural" => ["natural_rate", "no_natural"].contains(&own.name),
                "optimiser" => own.name == "tolerance",
                "learning_rate" => own.name == "inducing_rate",
                "e_steps" => own.name == "m_steps",
                "m_steps" => own.name == "e_steps",
                _ => false,
            };
            if own.name != setting.name && !follows {
                assert_eq!((own.read)(&options), before, "{} moves {}", setting.name, own.name);
            }
        }
    }
}

/// A rate is that of whichever optimiser takes it, in whatever order they are given.
#[test]
fn rates_are_of_the_optimiser_that_is_asked_for() {
    let mut options = FitOptions::default();
    let values = json!({ "learning_rate": 0.2, "optimiser": "adam", "inducing_rate": 0.1 });
    apply(&mut options, values.as_object().unwrap(), Door::Python).unwrap();
    let crate::train::OptimiserKind::Adam(adam) = &options.train.optimiser else { panic!() };
    assert_eq!(adam.learning_rate, 0.2);
    assert_eq!(options.batches.unwrap().training.inducing_rate, 0.5);
}

#[test]
fn names_are_distinct() {
    let names: Vec<&str> = all().map(|own| own.name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    let python: Vec<String> =
        all().filter(|own| own.python.is_some()).map(|own| own.called(Door::Python)).collect();
    assert_eq!(python.iter().collect::<BTreeSet<_>>().len(), python.len());
    for setting in all() {
        assert!(!setting.about.ends_with('.') && !setting.about.is_empty(), "{}", setting.name);
        let value = setting.default_value();
        assert!(
            value.is_null() || setting.kind.holds(&value) || setting.name == "inducing_wait",
            "{}: {value}",
            setting.name
        );
    }
    assert_eq!(find("lengthscale_prior").unwrap().option(), "--no-lengthscale-prior");
    assert_eq!(find("draws").unwrap().called(Door::Python), "sampling['draws']");
}

/// Every bound, from both sides, with the name, the value and what is allowed.
#[test]
fn values_out_of_bounds_are_refused() {
    for (name, good, bad, allowed) in [
        ("learning_rate", json!(1e-9), json!(0.0), "a positive number"),
        ("tolerance", json!(0.0), json!(-1e-9), "a number, 0 or more"),
        ("natural_rate", json!(1.0), json!(1.01), "above 0 and at most 1"),
        ("early_stopping", json!(0.99), json!(1.0), "between 0 and 1"),
        ("inducing", json!(1), json!(0), "a whole number, at least 1"),
        ("burn_in", json!(0), json!(-1), "a whole number, 0 or more"),
        ("draws", json!(3), json!(3.5), "a whole number, at least 1"),
        ("optimiser", json!("adam"), json!("sgd"), "one of `lbfgs`, `adam`"),
        ("time_limit", json!(1e9), json!(1.1e9), "seconds"),
        ("jitter", json!("absolute:0"), json!("much"), "absolute:1e-6"),
        ("full_batch", json!(true), json!(1), "true or false"),
    ] {
        let setting = find(name).unwrap();
        assert!(setting.kind.holds(&good), "{name}: {good}");
        let values = Map::from_iter([(name.to_owned(), bad.clone())]);
        let error =
            apply(&mut FitOptions::default(), &values, Door::Python).unwrap_err().to_string();
        let bad = bad.as_str().map_or_else(|| bad.to_string(), str::to_owned);
        for part in [setting.called(Door::Python), bad, allowed.to_owned()] {
            assert!(error.contains(&part), "{part}: {error}");
        }
    }
}

#[test]
fn texts_of_the_command_line_are_read() {
    for (kind, text, value) in [
        (Kind::Time, "90", json!(90.0)),
        (Kind::Time, "1.5h", json!(5400.0)),
        (Kind::Time, "2 min", json!(120.0)),
        (Kind::Jitter, "1e-5", json!(1e-5)),
        (Kind::Jitter, "absolute:1e-5", json!("absolute:1e-5")),
        (Kind::Whole(1), "12", json!(12)),
        (Kind::Values, "kernel.lengthscales=1, 2", json!(["kernel.lengthscales", [1.0, 2.0]])),
    ] {
        assert_eq!(kind.read(text), Ok(value), "{text}");
    }
    for (kind, text) in [
        (Kind::Time, "0"),
        (Kind::Time, "inf"),
        (Kind::Jitter, "relative:-1"),
        (Kind::Number(Bounds::Positive), "nan"),
        (Kind::Whole(1), "1.5"),
        (Kind::Values, "=3"),
    ] {
        assert!(kind.read(text).is_err(), "{text}");
    }
    assert_eq!(kinds::jitter(&json!("relative:0.1")), Some(Jitter::Relative(0.1)));
}

/// Defaults are those of the options, and name the methods that have others.
#[test]
fn defaults_are_those_of_the_options() {
    let default_of = |name: &str| find(name).unwrap().default_text();
    assert_eq!(default_of("pilot"), FitOptions::default().pilot.to_string());
    assert_eq!(default_of("batch"), "1024; for `rsvgp` 100");
    assert_eq!(default_of("patience"), "10");
    assert_eq!(default_of("tolerance"), "0.0001");
    assert_eq!(default_of("jitter"), "1e-6");
    assert_eq!(default_of("law"), "variational");
    assert!(default_of("inducing").contains("from 50 to 512"), "{}", default_of("inducing"));
    assert!(
        default_of("epochs").ends_with("for `deep` as many as make 5000 minibatches"),
        "{}",
        default_of("epochs")
    );
    assert_eq!(default_of("inducing_rate"), "that of Adam; for `rsvgp` 0.001");
    assert_eq!(default_of("inducing_wait"), "0; for `rsvgp` 1000");
    assert_eq!((default_of("seed"), default_of("full_batch")), ("0".into(), String::new()));
}

fn said(name: &str, value: Value, door: Door, method: &str, way: Way) -> Option<String> {
    let ways = possible(method, &[], 100, way).unwrap();
    find(name).unwrap().refusal(&value, &ways, &Asked { door, method, by_auto: false, way })
}

/// What is refused says what was given, why, and what to do.
#[test]
fn refusals_have_a_remedy() {
    let plain = Way::default();
    let whole = Way { full_batch: true, ..plain };
    let by_adam = Way { q_by_adam: true, ..plain };
    let line = Door::CommandLine;
    for (name, value, door, method, way, parts) in [
        (
            "epochs",
            json!(5),
            line,
            "exact",
            plain,
            &["--epochs", "--method exact", "minibatches", "svgp2025"][..],
        ),
        ("epochs", json!(5), Door::Python, "exact", plain, &["epochs has", "method=\"exact\""]),
        (
            "epochs",
            json!(5),
            line,
            "svgp",
            whole,
            &["--method svgp and --full-batch", "leave it out, or --full-batch"],
        ),
        ("max_iterations", json!(5), line, "svgp", plain, &["add --full-batch"]),
        ("learning_rate", json!(0.1), line, "exact", plain, &["--optimiser adam"]),
        ("natural_rate", json!(0.1), line, "svi", plain, &["--natural-rate", "svi", "tsvgp"]),
        ("natural_rate", json!(0.1), line, "svgp", by_adam, &["what has Adam train q"]),
        ("jitter", json!(1e-5), line, "tvgp", plain, &["--jitter", "factorised"]),
        ("tying", json!("untied"), line, "tsvgp", plain, &["--tying", "add --full-batch"]),
        ("draws", json!(5), Door::Python, "cavi", plain, &["sampling['draws']", "draws", "gibbs"]),
    ] {
        let text =
            said(name, value, door, method, way).unwrap_or_else(|| panic!("{name}, {method}"));
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    for (name, value, method, way) in [
        ("epochs", json!(5), "deep", whole),
        ("early_stopping", json!(0.1), "deep", plain),
        ("inducing_wait", json!(5), "svgp", plain),
        ("m_steps", json!(5), "lsvgp", plain),
        ("m_steps", json!(5), "rsvgp", plain),
        ("natural_rate", json!(0.1), "deep(kind=w)", plain),
        ("jitter", json!("absolute:1e-5"), "lsvgp", plain),
        ("tying", json!("untied"), "tsvgp", whole),
        ("learning_rate", json!(0.1), "exact", Way { adam: true, ..plain }),
        ("seed", json!(3), "exact", plain),
        // all rows are seen at once anyway
        ("full_batch", json!(true), "exact", whole),
        ("full_batch", json!(true), "titsias2025", whole),
    ] {
        assert_eq!(said(name, value, Door::CommandLine, method, way), None, "{name}, {method}");
    }
}

/// `auto` may be several: what one of them takes is taken, until it is known which one it is.
#[test]
fn auto_is_one_of_several() {
    let of = |taken: &[&str], rows: usize| {
        let found = possible("auto", taken, rows, Way::default()).unwrap();
        found.into_iter().map(|own| own.method).collect::<Vec<_>>()
    };
    assert_eq!(of(&["exact"], 100), ["exact"]);
    assert_eq!(of(&["titsias2025"], 100), ["titsias2025"]);
    assert_eq!(of(&["titsias2025"], 3000), ["titsias2025", "svgp2025"]);
    assert_eq!(of(&["tvgp"], 100), ["tsvgp"]);
    assert_eq!(of(&["vecchia"], 3000), ["vecchia"]);
    assert!(of(&[], 3000).len() > 5);
}

/// What `auto` took sees all rows at once: nothing but another method has minibatches.
#[test]
fn what_auto_took_does_not_concern_adam() {
    let way = Way::default();
    let ways = possible("auto", &["tsvgp"], 100, way).unwrap();
    let asked = Asked { door: Door::Python, method: "tsvgp", by_auto: true, way };
    let text = find("epochs").unwrap().refusal(&json!(5), &ways, &asked).unwrap();
    assert!(text.contains("methods with it: svgp"), "{text}");
    assert!(text.contains("tsvgp on all rows at once, which method=\"auto\" took"), "{text}");
}

/// The help of an option says for whom it is where these are few, and its default as people write it.
#[test]
fn help_names_few_methods() {
    for (name, part) in [
        ("classes_per_step", "(for `svi`)"),
        ("probes", "(for `rsvgp`)"),
        ("law", "(for `gibbs-sparse`)"),
        ("tying", "(for `tsvgp`, `cavi`, `gibbs-sparse`)"),
        ("lengthscale_prior", "Leave out the weak prior"),
        ("checkpoint_every", "[default: 60]"),
    ] {
        let help = find(name).unwrap().help();
        assert!(help.contains(part), "{name}: {help}");
    }
    assert!(!find("max_iterations").unwrap().help().contains("(for"));
}
