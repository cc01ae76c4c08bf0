use super::*;
use crate::data::shards::{Shards, total};
use crate::data::{Classes, Loaded};
use crate::engine::Remote;
use crate::fit::{BatchOptions, Dataset, FitOptions, Fitted, Of, Scaling, Standardise, fit};
use crate::linalg::Precision;
use crate::train::{Event, Observer, TrainOptions};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Shards in this process, which counts what is asked of them.
struct Here {
    shards: Vec<Shard>,
    cpu: Cpu,
    taken: &'static AtomicUsize,
}

impl Shards for Here {
    fn round(&self, request: Vec<u8>) -> Result<Vec<f64>> {
        // by eights, as a driver with many shards does
        let answers: Vec<Vec<f64>> =
            self.shards.iter().map(|s| s.answer(&request, &self.cpu)).collect::<Result<_>>()?;
        let eights = answers.chunks(8).map(|part| total(part.to_vec()));
        total(eights.collect::<Result<_>>()?)
    }

    fn take(&self, wanted: &[(usize, Vec<usize>)]) -> Result<Vec<f64>> {
        self.taken.fetch_add(wanted.iter().map(|(_, p)| p.len()).sum(), Ordering::Relaxed);
        let rows = wanted.iter().map(|(shard, places)| self.shards[*shard].take(places));
        Ok(rows.collect::<Result<Vec<_>>>()?.concat())
    }
}

const SIZES: [usize; 11] = [130, 1, 257, 64, 300, 512, 9, 40, 100, 87, 150];

fn table(kind: &str) -> InMemory {
    let n = SIZES.iter().sum();
    let wave = |i: usize, j: usize| ((i * 37 + j * 101) as f64 * 0.377).sin();
    let x = Mat::from_fn(n, 2, |i, j| [3.0, 40.0][j] * wave(i, j) + [10.0, -7.0][j]);
    let f = |i: usize| 1.3 * (0.8 * x[(i, 0)]).sin() + 0.02 * x[(i, 1)];
    let noise = |i: usize| 3.0 * ((i * i + 7 * i) as f64 * 0.618_033_988_749_895).fract() - 1.5;
    let y = match kind {
        "counts" => Mat::from_fn(n, 1, |i, _| (f(i) + 0.3 * noise(i)).exp().round()),
        "classes" => Mat::from_fn(n, 1, |i, _| f64::from(f(i) + 0.5 * noise(i) > 0.0)),
        "three" => Mat::from_fn(n, 1, |i, _| ((f(i) + 1.5) * 1.1).clamp(0.0, 2.9).floor()),
        "two" => Mat::from_fn(n, 2, |i, p| 5.0 + f(i) * (1.0 + p as f64) + 0.3 * noise(i + p)),
        _ => Mat::from_fn(n, 1, |i, _| 5.0 + f(i) + 0.3 * noise(i)),
    };
    let mut rows = InMemory { x, y, weights: Vec::new(), extra: Vec::new() };
    if kind == "weighted" {
        rows.weights = (0..n).map(|i| [1.0, 0.5, 2.0, 0.0][i % 4]).collect();
        rows.extra = (0..n).map(|i| 0.01 + 0.1 * wave(i, 5).abs()).collect();
        rows.y[(3, 0)] = f64::NAN;
    }
    rows
}

/// The rows in this process, and in shards, on the scales of the latter.
fn both(kind: &str) -> (Dataset, Dataset, &'static AtomicUsize) {
    let rows = table(kind);
    let (d, p) = (rows.x.ncols(), rows.y.ncols());
    let name = |prefix: &str, n| (0..n).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let classes = match kind {
        "classes" => Some(Classes::new(["a", "b"]).unwrap()),
        "three" => Some(Classes::new(["a", "b", "c"]).unwrap()),
        _ => None,
    };
    let mut first = 0;
    let raw: Vec<(usize, Shard)> = SIZES
        .iter()
        .map(|size| {
            let places: Vec<usize> = (first..first + size).collect();
            first += size;
            (first - size, Shard::new(rows.picked(&places)))
        })
        .collect();
    let mut statistics = Statistics::gathered(raw.iter().map(|(_, s)| s.statistics())).unwrap();
    if !statistics.isolated().is_empty() {
        let bodies = Statistics::merged(raw.iter().map(|(_, s)| s.bodies(&statistics))).unwrap();
        statistics.set_bodies(bodies);
    }
    let scale = kind != "counts" && classes.is_none();
    let chosen = Standardise { inputs: true, targets: scale, robust: false, constants: true };
    let scaler = Scaling::from(chosen).scaler(&statistics, classes.as_ref(), &name("x", d));
    let scaled = raw.iter().enumerate().map(|(i, (first, s))| s.scaled(&scaler, i, *first));
    let taken: &'static AtomicUsize = Box::leak(Box::default());
    let here = Here { shards: scaled.collect::<Result<_>>().unwrap(), cpu: Cpu::default(), taken };
    let mut head = Loaded::head(name("x", d), name("y", p));
    head.classes.clone_from(&classes);
    head.weight_name = (!rows.weights.is_empty()).then(|| "weight".into());
    head.extra_name = (!rows.extra.is_empty()).then(|| "extra".into());
    let mut all = head.clone();
    let sharded =
        Dataset::from_shards(head, Box::new(here), &SIZES, &statistics, scaler.clone()).unwrap();
    (all.x, all.y, all.rows) = (rows.x, rows.y, (0..first).collect());
    (all.weights, all.extra) = (rows.weights, rows.extra);
    let local = Dataset::from_loaded(all, Scaling::Given(scaler)).unwrap();
    (local, sharded, taken)
}

fn options(method: &str, likelihood: &str) -> FitOptions {
    FitOptions {
        kernel: "matern52".into(),
        method: method.into(),
        likelihood: (!likelihood.is_empty()).then(|| likelihood.into()),
        inducing: Some(24),
        pilot: 300,
        batches: None,
        train: TrainOptions { max_iterations: 4, ..FitOptions::default().train },
        ..FitOptions::default()
    }
}

fn close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs())), "{what}: {a} and {b}");
}

fn same_fits(local: &Fitted, sharded: &Fitted, tolerance: f64, what: &str) {
    let objective = |f: &Fitted| f.report.as_ref().unwrap().objective;
    close(objective(local), objective(sharded), tolerance, what);
    let new = Mat::from_fn(7, 2, |i, j| [6.0 + i as f64, 10.0 * i as f64 - 40.0][j]);
    let predicted = |f: &Fitted| f.predict(new.as_ref(), Of::Latent).unwrap();
    let (a, b) = (predicted(local), predicted(sharded));
    for (a, b) in [(a.0, b.0), (a.1, b.1)] {
        for j in 0..a.ncols() {
            for i in 0..a.nrows() {
                close(a[(i, j)], b[(i, j)], tolerance, what);
            }
        }
    }
}

/// Shards pass in the precision that they are asked for, and a mixed fit is that of one machine.
#[test]
fn mixed_precision_reaches_the_shards() {
    let (local, sharded, _) = both("numbers");
    let cpu = Cpu::default();
    let remote = Remote { cpu: &cpu };
    for method in ["titsias2025", "svgp"] {
        let double = options(method, "");
        let own = FitOptions { precision: Precision::Single, ..double.clone() };
        let here = fit(&local, &own, &cpu, &mut ()).unwrap();
        let there = fit(&sharded, &own, &remote, &mut ()).unwrap();
        let plain = fit(&sharded, &double, &remote, &mut ()).unwrap();
        assert_eq!(there.warnings, plain.warnings, "{method}");
        same_fits(&here, &there, 1e-2, method);
        let objective = |f: &Fitted| f.report.as_ref().unwrap().objective;
        assert_ne!(objective(&there), objective(&plain), "{method}: it is not rounded");
        close(objective(&there), objective(&plain), 1e-3, method);
    }
}

/// Every method that sums over rows: a request at the start gives what one machine gives, to rounding, and so does a short
/// training.
#[test]
fn sums_of_shards_are_those_of_one_machine() {
    for (kind, method, likelihood) in [
        ("plain", "titsias2009", ""),
        ("two", "spherical", ""),
        ("plain", "titsias2025", ""),
        ("plain", "fitc", ""),
        ("two", "pep(alpha=0.3)", ""),
        ("plain", "svgp2025", ""),
        ("weighted", "svgp", ""),
        ("counts", "tsvgp", "poisson"),
        ("counts", "svgp-spherical", "negative-binomial"),
        ("classes", "svgp", "bernoulli"),
        ("classes", "cavi", "bernoulli(link=logit)"),
        ("three", "tsvgp", "softmax"),
        ("plain", "tsvgp", "heteroscedastic"),
        ("plain", "svgp", "student-t"),
        ("two", "svgp", "coregionalised(outputs=2,latents=1)"),
    ] {
        let what = format!("{kind}, {method}, {likelihood}");
        let (local, sharded, _) = both(kind);
        let options = FitOptions { pilot: 0, ..options(method, likelihood) };
        let cpu = Cpu::default();
        let a = fit(&local, &options, &cpu, &mut ()).expect(&what);
        let b = fit(&sharded, &options, &Remote { cpu: &cpu }, &mut ()).expect(&what);
        // rounding grows on the way, with the condition of Kuu
        same_fits(&a, &b, 1e-5, &what);
        // at the same parameters, away from where gradients are what is left of large sums
        let mut model = a.model.clone();
        for (path, param) in model.params_mut() {
            if path.starts_with("kernel") {
                let values: Vec<f64> = param.value().iter().map(|v| 0.6 * v).collect();
                param.set(&path, &values).unwrap();
            }
        }
        let here = model.method.evaluate(&model, &cpu, &*local.source).expect(&what);
        let remote = Remote { cpu: &cpu };
        let there = model.method.evaluate(&model, &remote, &*sharded.source).expect(&what);
        close(here.value, there.value, 1e-12, &what);
        let size = here.gradient.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        for (g, own) in here.gradient.iter().zip(&there.gradient) {
            assert!((g - own).abs() < 1e-8 * size, "{what}: {g} and {own} of {size}");
        }
        let posterior = a.model.posterior(&Remote { cpu: &cpu }, &*sharded.source).expect(&what);
        let x = Mat::from_fn(3, 2, |i, j| 0.3 * (i + j) as f64);
        let at = |p: &crate::model::Posterior| p.predict_f(x.as_ref()).unwrap().0[(1, 0)];
        close(at(&a.posterior), at(&posterior), 1e-9, &what);
    }
}

/// Variables of another domain than the inputs arrive as such.
#[test]
fn patches_go_to_shards() {
    for method in ["titsias2025", "svgp"] {
        let (local, sharded, _) = both("plain");
        let kernel = "convolutional(image=[1, 2, 1], patch=[1, 1], weighted=true)".into();
        let options = FitOptions { kernel, ..options(method, "") };
        let cpu = Cpu::default();
        let a = fit(&local, &options, &cpu, &mut ()).expect(method);
        let b = fit(&sharded, &options, &Remote { cpu: &cpu }, &mut ()).expect(method);
        assert_eq!(a.model.inducing_points().unwrap().ncols(), 1, "{method}");
        same_fits(&a, &b, 1e-5, method);
    }
}

/// Bits depend only on the partition, and only the shards see the rows.
#[test]
fn a_fit_on_shards_has_the_same_bits_again_and_reads_few_rows_here() {
    let bits = || {
        let (_, sharded, taken) = both("plain");
        let cpu = Cpu::default();
        let options = FitOptions { pilot: 50, ..options("auto", "") };
        let fitted = fit(&sharded, &options, &Remote { cpu: &cpu }, &mut ()).unwrap();
        assert_eq!(fitted.model.method.name(), "titsias2025");
        // the samples of the start, each at most once per look
        let n: usize = SIZES.iter().sum();
        assert!(taken.load(Ordering::Relaxed) <= 3 * n, "{taken:?}");
        let values: Vec<u64> = fitted
            .model
            .params()
            .iter()
            .flat_map(|(_, p)| p.value().iter().map(|v| v.to_bits()))
            .collect();
        values
    };
    assert_eq!(bits(), bits());
}

#[test]
fn minibatches_are_those_of_one_machine() {
    let (local, sharded, _) = both("counts");
    let mut options = options("svgp", "poisson");
    let mut batches = BatchOptions { size: 200, ..BatchOptions::default() };
    batches.training.epochs = Some(3);
    options.batches = Some(batches);
    options.pilot = 0;
    let cpu = Cpu::default();
    let a = fit(&local, &options, &cpu, &mut ()).unwrap();
    let b = fit(&sharded, &options, &Remote { cpu: &cpu }, &mut ()).unwrap();
    // the training sees the same rows on one scale: the same bits
    let values = |f: &Fitted| -> Vec<f64> {
        f.model.params().iter().flat_map(|(_, p)| p.value().to_vec()).collect()
    };
    assert!(values(&a) == values(&b));
    same_fits(&a, &b, 1e-10, "minibatches");
}

#[test]
fn what_needs_all_rows_refuses_by_name() {
    let (_, sharded, taken) = both("plain");
    let cpu = Cpu::default();
    let refused = |method: &str, likelihood: &str, words: &str| {
        let options = FitOptions { inducing: None, ..options(method, likelihood) };
        let error = fit(&sharded, &options, &Remote { cpu: &cpu }, &mut ()).unwrap_err();
        assert!(error.to_string().contains(words), "{method}: {error}");
    };
    for entry in crate::methods::REGISTRY {
        let method = entry.method;
        if method.sampler().is_some() || !method.is_sparse() || method.keeps_rows() {
            let likelihood = if method.has_q() { "student-t" } else { "" };
            refused(entry.name, likelihood, "needs all of them at once");
        }
    }
    assert_eq!(taken.load(Ordering::Relaxed), 0, "no pilot has been paid for");
    refused("rsvgp", "", "train by minibatches");
    let untied =
        FitOptions { tying: crate::variational::Tying::Untied, ..options("tsvgp", "student-t") };
    let error = fit(&sharded, &untied, &Remote { cpu: &cpu }, &mut ()).unwrap_err();
    assert!(error.to_string().contains("other processes"), "{error}");
}

#[test]
fn errors_name_the_partition_and_the_row() {
    let (_, sharded, _) = both("plain");
    let cpu = Cpu::default();
    let options = options("svgp", "poisson");
    let error = fit(&sharded, &options, &Remote { cpu: &cpu }, &mut ()).unwrap_err().to_string();
    assert!(error.contains("needs its targets as they stand"), "{error}");
    let mut rows = table("counts");
    rows.y[(3, 0)] = -1.0;
    let shard = Shard::placed(rows, 5, 1000);
    let check = checks::tests_of_targets(&*crate::likelihoods::parse("poisson").unwrap(), 2);
    let request = Work::Sweep(check).to_bytes().unwrap();
    let error = shard.answer(&request, &cpu).unwrap_err().to_string();
    assert!(error.starts_with("partition 5: row 1004 "), "{error}");
    // another release, and damage
    let other = [b"sparsegp request\n".as_slice(), &[5], b"0.0.0", b"x"].concat();
    let error = shard.answer(&other, &cpu).unwrap_err().to_string();
    assert!(error.contains("0.0.0") && error.contains("partition 5"), "{error}");
    assert!(shard.answer(&request[..request.len() - 3], &cpu).is_err());
    assert!(shard.answer(b"", &cpu).is_err() && shard.take(&[1 << 40]).is_err());
}

/// A request that reaches rows of other columns, and statistics that are damaged, are refused.
#[test]
fn requests_and_statistics_of_other_columns_are_refused() {
    struct Kept(Here, std::sync::Arc<std::sync::Mutex<Vec<Vec<u8>>>>);
    impl Shards for Kept {
        fn round(&self, request: Vec<u8>) -> Result<Vec<f64>> {
            self.1.lock().unwrap().push(request.clone());
            self.0.round(request)
        }
        fn take(&self, wanted: &[(usize, Vec<usize>)]) -> Result<Vec<f64>> {
            self.0.take(wanted)
        }
    }
    for (kind, method, likelihood) in
        [("plain", "titsias2025", ""), ("plain", "pep", ""), ("counts", "tsvgp", "poisson")]
    {
        let rows = table(kind);
        let (n, names) = (rows.rows(), vec!["a".to_owned(), "b".into()]);
        let raw = Shard::new(rows);
        let statistics = raw.statistics();
        let chosen =
            Standardise { inputs: true, targets: kind == "plain", robust: false, constants: true };
        let scaler = Scaling::from(chosen).scaler(&statistics, None, &names);
        let shards = vec![raw.scaled(&scaler, 0, 0).unwrap()];
        let kept = std::sync::Arc::default();
        let here = Here { shards, cpu: Cpu::default(), taken: Box::leak(Box::default()) };
        let here = Box::new(Kept(here, std::sync::Arc::clone(&kept)));
        let head = Loaded::head(names, vec!["y".into()]);
        let data = Dataset::from_shards(head, here, &[n], &statistics, scaler).unwrap();
        let cpu = Cpu::default();
        fit(&data, &options(method, likelihood), &Remote { cpu: &cpu }, &mut ()).unwrap();
        let wide = Shard::new(InMemory::new(Mat::zeros(4, 3), Mat::zeros(4, 1)).unwrap());
        let more = Shard::new(InMemory::new(Mat::zeros(4, 2), Mat::zeros(4, 2)).unwrap());
        let mut refused = 0;
        // what targets say of latent values concerns each of them separately
        let guesses = |request: &&Vec<u8>| match Work::from_bytes(request).unwrap() {
            Work::Sweep(own) => own.kind == "guesses",
            _ => false,
        };
        let all = kept.lock().unwrap();
        let others: Vec<_> = all.iter().filter(|request| !guesses(request)).collect();
        for request in &others {
            for other in [&wide, &more] {
                refused += usize::from(other.answer(request, &cpu).is_err());
            }
        }
        assert_eq!(refused, 2 * others.len(), "{method}");
    }
    let bytes = Statistics::of(Mat::zeros(9, 2).as_ref(), Mat::zeros(9, 1).as_ref(), &[])
        .to_bytes()
        .unwrap();
    assert!(Statistics::from_bytes(&bytes).is_ok());
    // the number of inputs
    let more = [&[9], &bytes[1..]].concat();
    assert!(
        Statistics::from_bytes(&more).is_err() && Statistics::from_bytes(&bytes[..20]).is_err()
    );
}

/// An answer that fails, as one does when a machine is lost for good, ends the fit with that error.
#[test]
fn a_lost_round_ends_the_fit() {
    struct Lost(Here, AtomicUsize);
    impl Shards for Lost {
        fn round(&self, request: Vec<u8>) -> Result<Vec<f64>> {
            match self.1.fetch_add(1, Ordering::Relaxed) {
                6 => Err(Error::Invalid("the workers are gone".into())),
                _ => self.0.round(request),
            }
        }
        fn take(&self, wanted: &[(usize, Vec<usize>)]) -> Result<Vec<f64>> {
            self.0.take(wanted)
        }
    }
    struct Seen(usize);
    impl Observer for Seen {
        fn event(&mut self, event: Event<'_>) -> ControlFlow<()> {
            self.0 += usize::from(matches!(event, Event::Iteration(_)));
            ControlFlow::Continue(())
        }
    }
    let rows = table("plain");
    let raw = Shard::new(rows);
    let statistics = Statistics::gathered(std::iter::once(raw.statistics())).unwrap();
    let names = || vec!["a".to_owned(), "b".into()];
    let scaler = Scaling::from(true).scaler(&statistics, None, &names());
    let n = raw.rows();
    let taken: &'static AtomicUsize = Box::leak(Box::default());
    let shards = vec![raw.scaled(&scaler, 0, 0).unwrap()];
    let here = Lost(Here { shards, cpu: Cpu::default(), taken }, AtomicUsize::new(0));
    let head = Loaded::head(names(), vec!["y".into()]);
    let data = Dataset::from_shards(head, Box::new(here), &[n], &statistics, scaler).unwrap();
    let cpu = Cpu::default();
    let mut seen = Seen(0);
    let error = fit(&data, &options("titsias2025", ""), &Remote { cpu: &cpu }, &mut seen);
    assert!(error.unwrap_err().to_string().contains("the workers are gone"));
}

/// Kernels, likelihoods and mean functions arrive with all their digits, whatever their parameters are.
#[test]
fn what_a_request_names_arrives_to_the_bit() {
    use crate::kernels::{Inputs, parse};
    let odd =
        |i: usize, v: f64| v * (1.0 + ((i * 7919 + 13) as f64 * 0.618_033_988_749_895).fract());
    let x = Mat::from_fn(9, 2, |i, j| if j == 1 { (i % 3) as f64 } else { 0.3 * i as f64 });
    for spec in [
        "rbf * coregion(output_dim=3, rank=2, active_dims=[1]) + white + constant",
        "matern12(active_dims=[0]) + exponential(active_dims=[0]) * linear + sum(kernels=[rbf, linear])",
        "product(kernels=[matern32, gamma_exponential(active_dims=[0])]) + polynomial(degree=2, active_dims=[0])",
        "periodic(base=matern52(active_dims=[0])) * rational_quadratic(active_dims=[0]) + arccosine",
        "changepoints(kernels=[cosine(active_dims=[0]), arccosine(order=1) + rbf], active_dims=[0])",
        "convolutional(image=[1, 2, 1], patch=[1, 1], weighted=true)",
    ] {
        let mut kernel = parse(spec, Inputs::unnamed(2)).unwrap();
        for (path, param) in kernel.params_mut() {
            let values: Vec<f64> =
                param.value().iter().enumerate().map(|(i, v)| odd(i, *v)).collect();
            // one that has a smaller range stays
            let _ = param.set(&path, &values);
        }
        let again = parse(&kernel.to_json().to_string(), Inputs::unnamed(2)).unwrap();
        let bits = |k: &dyn crate::kernels::Kernel| -> Vec<u64> {
            let mut out = Mat::zeros(9, 9);
            k.evaluate(x.as_ref(), None, out.as_mut(), &mut crate::kernels::Tape::off());
            (0..81).map(|i| out[(i % 9, i / 9)].to_bits()).collect()
        };
        assert_eq!(bits(&*kernel), bits(&*again), "{spec}");
    }
    for entry in crate::likelihoods::REGISTRY {
        let spec = match crate::likelihoods::parse(entry.name) {
            Ok(own) => own,
            Err(_) => crate::likelihoods::parse(&format!("{}(classes=3)", entry.name))
                .or_else(|_| crate::likelihoods::parse("coregionalised(outputs=2,latents=2)"))
                .unwrap(),
        };
        let mut own = spec;
        for (path, param) in own.params_mut() {
            let values: Vec<f64> =
                param.value().iter().enumerate().map(|(i, v)| odd(i, *v)).collect();
            let _ = param.set(&path, &values);
        }
        let again = crate::likelihoods::parse(&own.to_json().to_string()).unwrap();
        let values = |l: &dyn crate::likelihoods::Likelihood| -> Vec<u64> {
            l.params().iter().flat_map(|(_, p)| p.value().iter().map(|v| v.to_bits())).collect()
        };
        assert_eq!(values(&*own), values(&*again), "{}", entry.name);
        assert_eq!(own.to_json(), again.to_json());
    }
}
