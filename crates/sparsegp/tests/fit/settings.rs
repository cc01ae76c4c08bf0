//! The registry of settings is true: where it says that a setting acts on a method, two values of it give two fits, and where it
//! says that it does not, the same bits, or an error.

use serde_json::{Map, Value, json};
use sparsegp::data::InMemory;
use sparsegp::engine::Cpu;
use sparsegp::fit::settings::{self, Door, Setting, Trait, Way, traits_of};
use sparsegp::fit::{self, Dataset, FitOptions, Standardise};
use sparsegp::linalg::Mat;
use sparsegp::methods::{self, Entry};
use sparsegp::rng::{stream, uniform};
use sparsegp::samplers::gibbs::GibbsOptions;
use sparsegp::train::{Event, Observer};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows: enough for three minibatches of the base.
const ROWS: usize = 14;

/// Settings that no pair of tiny fits tells about, and why.
const UNTESTED: &[(&str, &str)] = &[
    ("likelihood", "every method has one, and not all have two in common"),
    ("method", "it is the method"),
    ("seed", "what is random is another thing for every method: tests of seeds are in `seeds.rs`"),
    ("checkpoint", "files change no fit: tests are in `resume.rs` and `whole_resume.rs`"),
    ("checkpoint_every", "the same"),
    ("target_transform", "it is for Gaussian noise: tests are in `target_transform.rs`"),
    ("log_inputs", "it is for inputs that are not negative: tests are in `log_inputs.rs`"),
    ("season", "it is for inputs whose units are known: tests are in `seasons.rs`"),
    ("relative_weights", "it is a matter of rows with weights: tests are in `rows.rs`"),
    ("time_limit", "no test depends on time: tests are in `limits.rs`"),
];

/// Another value of a setting than that of the base, with what else both fits have.
fn varied(name: &str) -> (Value, Value) {
    let plain = |value: Value| (value, json!({}));
    match name {
        "kernel" => plain(json!("matern32")),
        // values of a kernel have units where there are some; the base has a variance
        "kernel_units" => (json!("data"), json!({ "kernel": "rbf(lengthscales=[0.7, 1.9])" })),
        "mean" => plain(json!("linear")),
        "inducing" => plain(json!(3)),
        "inducing_from" => plain(json!("random")),
        "set" => plain(json!([["kernel.variance", [2.0]]])),
        "freeze" => plain(json!(["kernel"])),
        "tying" => plain(json!("whitened")),
        "jitter" => plain(json!(1e-3)),
        "chains" => plain(json!(2)),
        "draws" => plain(json!(20)),
        // a flow may have settled after a few steps
        "burn_in" => (json!(15), json!({ "burn_in": 1 })),
        "particles" => plain(json!(60)),
        "thin" => plain(json!(2)),
        "law" => plain(json!("fitc")),
        "pilot" => plain(json!(10)),
        "hyperparameters" => (json!("laplace"), json!({ "hyperparameters": "plug-in" })),
        "precision" => plain(json!("mixed")),
        "restarts" => plain(json!(1)),
        "optimiser" => plain(json!("adam")),
        "max_iterations" => plain(json!(2)),
        "tolerance" => (json!(0.3), json!({ "max_iterations": 60, "tolerance": 0.0 })),
        "learning_rate" => plain(json!(0.2)),
        "batch" => plain(json!(4)),
        "epochs" => plain(json!(3)),
        "natural_rate" => plain(json!(0.55)),
        "e_steps" => plain(json!(1)),
        "m_steps" => plain(json!(2)),
        "classes_per_step" => plain(json!(2)),
        "inducing_rate" => plain(json!(0.3)),
        "inducing_wait" => plain(json!(4)),
        "early_stopping" => plain(json!(0.2)),
        "patience" => {
            (json!(1), json!({ "early_stopping": 0.2, "epochs": 30, "learning_rate": 0.5 }))
        }
        "inverse_tolerance" => plain(json!(0.5)),
        "inverse_steps" => plain(json!(1)),
        "inverse_schedule" => plain(json!("log-linear")),
        "inverse_slack" => plain(json!(10.0)),
        "probes" => plain(json!(2)),
        // flags
        "lengthscale_prior" => plain(json!(false)),
        _ => plain(json!(true)),
    }
}

/// A method with a likelihood that it takes.
struct Case {
    entry: &'static Entry,
    likelihood: &'static str,
    /// Of the targets; none for numbers.
    classes: Option<usize>,
    way: Way,
}

fn cases() -> Vec<Case> {
    let deep = ["deep(kind=w)", "deep(kind=m)"].map(|name| methods::find(name).expect("a method"));
    let mut all = Vec::new();
    for entry in methods::REGISTRY.iter().chain(deep) {
        let gaussian = fit::likelihood(Some("gaussian"), None).expect("a likelihood");
        let classes =
            traits_of(entry.method, Way::default()).has(Trait::AdaptiveSteps).then_some(3);
        let likelihood = match (classes, entry.method.augments(), entry.takes(&*gaussian)) {
            (Some(_), ..) => "logistic-softmax(classes=3)",
            (None, false, true) => "gaussian",
            // one lengthscale has no prior by default, and noise has one
            (None, true, true) if entry.method.is_of_series() => "gaussian",
            _ => "laplace",
        };
        let either = traits_of(entry.method, Way::default()).has(Trait::EitherWay);
        let steps = either && traits_of(entry.method, Way::default()).has(Trait::Moments);
        for way in [
            Some(Way::default()),
            either.then_some(Way { full_batch: true, ..Way::default() }),
            (!entry.method.in_minibatches() || either).then_some(Way {
                full_batch: either,
                adam: true,
                q_by_adam: false,
            }),
            steps.then_some(Way { q_by_adam: true, ..Way::default() }),
        ] {
            all.extend(way.map(|way| Case { entry, likelihood, classes, way }));
        }
    }
    all
}

fn rows(count: usize, seed: &str, classes: Option<usize>) -> InMemory {
    let mut rng = stream(5, seed);
    let x = Mat::from_fn(count, 2, |_, _| 4.0 * uniform(&mut rng) - 2.0);
    let y = Mat::from_fn(count, 1, |i, _| {
        let f = (1.7 * x[(i, 0)]).sin() + 0.4 * x[(i, 1)] + 0.3 * uniform(&mut rng);
        classes.map_or(f, |k| (i % k) as f64)
    });
    InMemory::new(x, y).expect("rows")
}

impl Case {
    /// Whether it has the first of the inputs only, and kernels of that.
    fn of_series(&self) -> bool {
        self.entry.method.is_of_series()
    }

    fn rows(&self, count: usize, name: &str, classes: Option<usize>) -> InMemory {
        let mut own = rows(count, name, classes);
        if self.of_series() {
            own.x = own.x.as_ref().subcols(0, 1).to_owned();
        }
        own
    }

    /// What both fits have.
    fn base(&self) -> FitOptions {
        let mut base = settings::defaults_of(self.entry.name);
        base.kernel = if self.of_series() { "matern52 + matern12" } else { "rbf" }.into();
        base.likelihood = Some(self.likelihood.into());
        base.inducing = Some(4);
        base.pilot = 0;
        base.train.max_iterations = 3;
        base.gibbs = GibbsOptions { chains: 1, draws: 16, burn_in: 12, ..GibbsOptions::default() };
        let batches = base.batches.as_mut().expect("minibatches");
        batches.size = 5;
        batches.training.epochs = Some(2);
        batches.training.pace.frozen = 0;
        base
    }

    /// All that is to be seen of a fit, to the bit; none where it is refused.
    fn fitted(&self, values: &Map<String, Value>) -> Result<Vec<u64>, String> {
        let mut options = self.base();
        let way = json!({ "full_batch": self.way.full_batch, "no_natural": self.way.q_by_adam });
        let adam = self.way.adam.then(|| ("optimiser".to_owned(), json!("adam")));
        let mut all: Map<String, Value> = way.as_object().expect("a map").clone();
        all.extend(adam);
        all.extend(values.clone());
        if self.of_series() && all.get("kernel").is_some_and(|own| own.to_string().contains("rbf"))
        {
            all.insert("kernel".into(), json!("matern52(lengthscales=0.7)"));
        }
        if self.of_series() && all.contains_key("set") {
            all.insert("set".into(), json!([["kernel.kernels[0].variance", [2.0]]]));
        }
        settings::apply(&mut options, &all, Door::Python).map_err(|error| error.to_string())?;
        let own = fit::likelihood(Some(self.likelihood), None).expect("a likelihood");
        let scaling = Standardise::all_that(&*own).for_kernel("rbf");
        let mut dataset =
            Dataset::from_rows(self.rows(ROWS, "learnt", self.classes), scaling).expect("rows");
        if all.contains_key("early_stopping") {
            dataset.held_out = Some(Box::new(self.rows(6, "aside", self.classes)));
        }
        let fitted =
            fit::fit(&dataset, &options, &Cpu::default(), &mut ()).map_err(|e| e.to_string())?;
        let report = fitted.report.as_ref().expect("a report");
        let mut seen: Vec<f64> = vec![report.objective, report.iterations as f64];
        seen.extend(&report.starts);
        seen.extend(report.judged.iter().map(|judged| judged.objective));
        for point in &report.trace {
            seen.extend([point.objective, point.held_out.unwrap_or(0.0)]);
        }
        seen.extend(fitted.model.params().iter().flat_map(|(_, param)| param.value().to_vec()));
        let new = self.rows(3, "new", None);
        let (mean, variance) =
            fitted.posterior.predict_f(new.x.as_ref()).map_err(|e| e.to_string())?;
        for of in [mean, variance] {
            seen.extend((0..of.ncols()).flat_map(|p| of.col_as_slice(p).to_vec()));
        }
        Ok(seen.into_iter().map(f64::to_bits).collect())
    }

    fn name(&self) -> String {
        let Case { entry, way, .. } = self;
        format!(
            "{}, full_batch {}, adam {}, q_by_adam {}",
            entry.name, way.full_batch, way.adam, way.q_by_adam
        )
    }
}

/// What is wrong with a setting for a method.
fn wrong(case: &Case, setting: &Setting, value: &Value, base: &Value) -> Option<String> {
    let base = base.as_object().expect("a map").clone();
    let traits = traits_of(case.entry.method, case.way);
    let acts = setting.acts(value, &traits);
    let one = case.fitted(&base);
    let mut other = base;
    other.insert(setting.name.to_owned(), value.clone());
    let two = case.fitted(&other);
    match (acts, one, two) {
        (true, Ok(one), Ok(two)) if one != two => None,
        (false, Ok(one), Ok(two)) if one == two => None,
        // what is refused is not silent
        (false, _, Err(_)) => None,
        (_, one, two) => {
            let what = match (&one, &two) {
                (Err(error), _) | (_, Err(error)) => error.as_str(),
                _ if acts => "the fits are the same",
                _ => "the fits differ",
            };
            Some(format!("{} acts {acts} on {}: {what}", setting.name, case.name()))
        }
    }
}

#[test]
fn settings_act_where_the_registry_says_so() {
    for (name, _) in UNTESTED {
        assert!(settings::find(name).is_some(), "{name} is not a setting");
    }
    let mut pairs = Vec::new();
    let cases = cases();
    for case in &cases {
        for setting in
            settings::all().filter(|own| UNTESTED.iter().all(|(name, _)| *name != own.name))
        {
            // what the way is of is not varied on it
            let own_way = match setting.name {
                "full_batch" => case.way.full_batch,
                "optimiser" => case.way.adam,
                "no_natural" | "diagonal" => case.way.q_by_adam,
                _ => false,
            };
            let of_way = setting.needs.iter().any(|need| match need {
                Trait::Adam | Trait::Plateau => case.way.adam,
                Trait::NaturalSteps | Trait::AdaptiveSteps => case.way.q_by_adam,
                _ => false,
            });
            // the other ways differ from the first two only in that
            let further = case.way.adam || case.way.q_by_adam;
            if !own_way && (!further || of_way) {
                let (value, base) = varied(setting.name);
                pairs.push((case, setting, value, base));
            }
            if !further && setting.name == "jitter" {
                pairs.push((case, setting, json!("absolute:1e-3"), json!({})));
            }
            if !further && setting.name == "tying" {
                pairs.push((case, setting, json!("untied"), json!({})));
            }
        }
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((case, setting, value, base)) =
                    pairs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let text = wrong(case, setting, value, base);
                    found.lock().expect("no panics").extend(text);
                }
            });
        }
    });
    let found = found.into_inner().expect("no panics");
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), pairs.len(), found.join("\n"));
}

fn refused(options: &FitOptions) -> (String, usize) {
    struct Trainings(usize);
    impl Observer for Trainings {
        fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
            self.0 += usize::from(matches!(event, Event::Training));
            ControlFlow::Continue(())
        }
    }
    let dataset = Dataset::from_rows(rows(ROWS, "learnt", None), true).expect("rows");
    let mut seen = Trainings(0);
    let error = fit::fit(&dataset, options, &Cpu::default(), &mut seen).expect_err("a refusal");
    (error.to_string(), seen.0)
}

/// What a sampler has nothing of is refused before the training, not after it.
#[test]
fn samplers_refuse_before_the_training() {
    for (method, values, part) in [
        ("ess", json!({ "sample_hyperparameters": true }), "elliptical slices"),
        ("metropolis", json!({ "sample_hyperparameters": true }), "a random walk"),
        ("gpf", json!({ "sample_hyperparameters": true }), "a particle flow"),
        ("hmc-augmented", json!({ "sample_hyperparameters": true }), "local variables"),
        ("nuts", json!({ "law": "fitc" }), "gibbs-sparse"),
        ("gibbs", json!({ "law": "fitc" }), "gibbs-sparse"),
        ("gpf", json!({ "thin": 2 }), "sweeps"),
    ] {
        let mut options = settings::defaults_of(method);
        settings::apply(&mut options, values.as_object().expect("a map"), Door::Python)
            .expect("values");
        let (text, trainings) = refused(&options);
        assert!(text.contains(part) && trainings == 0, "{method}: {text}, {trainings} trainings");
    }
}

/// A few draws after a few sweeps are few draws, and no failure.
#[test]
fn few_draws_after_few_sweeps_predict() {
    for (method, chains, burn_in, draws) in [
        ("nuts", 4, 3, 4),
        ("nuts", 1, 3, 4),
        ("hmc", 1, 0, 2),
        ("metropolis", 1, 1, 2),
        ("nuts-sparse", 1, 2, 3),
    ] {
        let dataset = Dataset::from_rows(rows(40, "learnt", None), true).expect("rows");
        let mut options =
            FitOptions { inducing: Some(6), pilot: 0, ..settings::defaults_of(method) };
        options.gibbs = GibbsOptions { chains, burn_in, draws, ..options.gibbs };
        let fitted = fit::fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
        let new = rows(3, "new", None);
        let (mean, variance) = fitted.posterior.predict_f(new.x.as_ref()).expect("predictions");
        for i in 0..3 {
            assert!(mean[(i, 0)].is_finite() && variance[(i, 0)] > 0.0, "{method}");
        }
        // so few sweeps need not find a step: if all draws are the same, a warning states what to
        // do
        let still =
            fitted.posterior.draws().chunks(draws).any(|own| own.iter().all(|z| *z == own[0]));
        let warned = fitted.warnings.iter().any(|text| text.contains("longer burn-in, which"));
        assert_eq!(warned, still, "{method}: {:?}", fitted.warnings);
    }
}

/// A method that sees all rows at once anyway has the same start where it is asked for, with a pilot too.
#[test]
fn all_rows_at_once_may_be_asked_for_where_they_are() {
    for method in ["titsias2025", "cavi", "tvgp"] {
        let likelihood = if method == "cavi" { "laplace" } else { "gaussian" };
        let fitted = |full: bool| {
            let mut options = settings::defaults_of(method);
            (options.inducing, options.pilot) = ((method != "tvgp").then_some(4), 12);
            (options.kernel, options.likelihood) = ("rbf".into(), Some(likelihood.into()));
            options.train.max_iterations = 3;
            let asked = json!({ "full_batch": full });
            let asked = asked.as_object().expect("a map");
            settings::apply(&mut options, asked, Door::Python).expect("a setting");
            let dataset = Dataset::from_rows(rows(12, "learnt", None), true).expect("rows");
            let fitted = fit::fit(&dataset, &options, &Cpu::default(), &mut ()).expect("a fit");
            let params = fitted.model.params().into_iter();
            params.flat_map(|(_, p)| p.value().to_vec()).map(f64::to_bits).collect::<Vec<_>>()
        };
        assert!(fitted(true) == fitted(false), "{method}");
    }
}
