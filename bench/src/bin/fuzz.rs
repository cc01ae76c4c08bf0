//! Damaged files against the readers: `cargo run --release -p sparsegp-bench --bin fuzz -- [SECONDS]
//! [SEED]`. Tables (CSV, gzip-compressed CSV, Parquet) and model files are made, damaged at random
//! (bits, bytes, numbers, pieces cut, doubled, swapped, spliced in from another file) and read. A
//! reader may refuse with an error; a panic, or a huge allocation that aborts, is a bug. The input that
//! causes one is kept, and the exit status is 1.

use parquet::data_type::DoubleType;
use parquet::file::writer::SerializedFileWriter;
use rand::{Rng, RngExt};
use sparsegp::data::shards::total;
use sparsegp::data::{InMemory, Loaded, Missing, Selection, Shards, Statistics, Table};
use sparsegp::engine::{Cpu, Remote};
use sparsegp::fit::{BatchOptions, Dataset, FitOptions, Scaling, Standardise, fit};
use sparsegp::latent::{GplvmOptions, fit_gplvm};
use sparsegp::linalg::Mat;
use sparsegp::shards::Shard;
use sparsegp::train::StochasticOptions;
use sparsegp::{io, rng};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A file and how it is read.
struct Sample {
    name: &'static str,
    bytes: Vec<u8>,
    read: fn(&Path),
}

/// Everything that reading a table may do; errors are fine.
fn read_table(path: &Path) {
    let Ok(table) = Table::open(path) else { return };
    let last = table.columns().last().cloned();
    let Some(last) = last else { return };
    for selection in [
        Selection::targets([last.as_str()]),
        Selection::targets([last.as_str()]).categorical(),
        Selection::all_inputs(),
    ] {
        let Ok(selected) = table.select(&selection) else { continue };
        for missing in [Missing::Refuse, Missing::Drop, Missing::Keep] {
            let _ = selected.clone().missing(missing).read_all();
        }
        let _ = selected.stream();
    }
}

fn read_model(path: &Path) {
    let _ = io::load_checkpoint(path);
}

fn read_gplvm(path: &Path) {
    let _ = io::load_gplvm(path);
}

/// Two rows of two columns that answer requests and take statistics.
fn read_request(path: &Path) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let x = Mat::from_fn(2, 2, |i, j| (i + 2 * j) as f64);
    let rows = InMemory::new(x, Mat::from_fn(2, 1, |i, _| i as f64)).expect("two rows");
    let _ = Shard::new(rows).answer(&bytes, &Cpu::default());
}

fn read_statistics(path: &Path) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let Ok(statistics) = Statistics::from_bytes(&bytes) else { return };
    let _ =
        (statistics.scaler(), statistics.constant_inputs(), statistics.target_mean_and_variance());
}

const CSV: &str =
    "x,y,label\n0.5,1,a\n-1.25e2,2,\"b, c\"\n3,NaN,a\n , 7,\u{e9}\n4,5,b\n1e308,6,b\n";

fn parquet_bytes() -> Vec<u8> {
    let schema = "message s { REQUIRED DOUBLE a; OPTIONAL DOUBLE y; }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).expect("a schema"));
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).expect("a writer");
    for group in 0..2 {
        let mut rows = file.next_row_group().expect("a row group");
        for j in 0..2 {
            let mut column = rows.next_column().expect("no error").expect("a column");
            let values: Vec<f64> = (0..20).map(|i| f64::from(i * (j + 1) + group)).collect();
            let levels = (j == 1).then(|| vec![1_i16; values.len()]);
            let typed = column.typed::<DoubleType>();
            typed.write_batch(&values, levels.as_deref(), None).expect("a batch");
            column.close().expect("a column");
        }
        rows.close().expect("a row group");
    }
    file.close().expect("a file");
    bytes
}

/// A model file of every kind.
fn model_bytes(folder: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let x = sparsegp::linalg::Mat::from_fn(30, 2, |i, q| ((i * (q + 2)) as f64 * 0.37).sin());
    let y = sparsegp::linalg::Mat::from_fn(30, 1, |i, _| (i % 3) as f64);
    let dataset = |targets| {
        let chosen =
            sparsegp::fit::Standardise { inputs: true, targets, robust: false, constants: true };
        Dataset::from_arrays(x.clone(), y.clone(), chosen).expect("usable rows")
    };
    let training =
        StochasticOptions { epochs: Some(2), checkpoint_seconds: 0.0, ..Default::default() };
    let mut files = Vec::new();
    for (name, method, likelihood, targets) in [
        ("deep", "deep", "gaussian", true),
        ("exact", "exact", "gaussian", true),
        ("collapsed", "titsias2025", "gaussian", true),
        ("poisson", "svgp-spherical", "poisson", false),
        ("softmax", "svgp", "softmax(classes=3)", false),
    ] {
        let checkpoint = folder.join(format!("{name}.checkpoint"));
        let mut options = FitOptions {
            method: method.into(),
            likelihood: Some(likelihood.into()),
            inducing: (method != "exact").then_some(4),
            checkpoint: (!targets).then(|| checkpoint.clone()),
            batches: Some(BatchOptions { size: 10, training: training.clone() }),
            kernel: "rbf".into(),
            ..FitOptions::default()
        };
        options.train.max_iterations = 2;
        let fitted = fit(&dataset(targets), &options, &Cpu::default(), &mut ()).expect("a fit");
        let path = folder.join(format!("{name}.safetensors"));
        io::save(&fitted, &path).expect("a file");
        files
            .push((name, std::fs::read(if targets { &path } else { &checkpoint }).expect("bytes")));
    }
    files
}

fn samples(folder: &Path) -> Vec<Sample> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(CSV.as_bytes()).expect("memory");
    let mut all = vec![
        Sample { name: "table.csv", bytes: CSV.into(), read: read_table },
        Sample { name: "table.csv.gz", bytes: gzip.finish().expect("memory"), read: read_table },
        Sample { name: "table.parquet", bytes: parquet_bytes(), read: read_table },
    ];
    for (_, bytes) in model_bytes(folder) {
        all.push(Sample { name: "model.safetensors", bytes, read: read_model });
    }
    let y = Mat::from_fn(12, 3, |i, p| ((i * (p + 2)) as f64 * 0.37).sin());
    let options = GplvmOptions { inducing: 4, iterations: 2, restarts: 1, ..Default::default() };
    let gplvm = fit_gplvm(y.as_ref(), &options).expect("a fit");
    let bytes = io::gplvm_to_bytes(&gplvm).expect("bytes");
    all.push(Sample { name: "gplvm.safetensors", bytes, read: read_gplvm });
    let statistics = Statistics::of(y.as_ref(), y.as_ref(), &[]).to_bytes().expect("bytes");
    all.push(Sample { name: "statistics", bytes: statistics, read: read_statistics });
    for bytes in requests() {
        all.push(Sample { name: "request", bytes, read: read_request });
    }
    all
}

/// Requests of a few fits, one of each length.
fn requests() -> Vec<Vec<u8>> {
    struct Here(Vec<Shard>, Arc<Mutex<Vec<Vec<u8>>>>);
    impl Shards for Here {
        fn round(&self, request: Vec<u8>) -> sparsegp::Result<Vec<f64>> {
            let cpu = Cpu::default();
            let answers = self.0.iter().map(|shard| shard.answer(&request, &cpu));
            let answers = answers.collect::<Result<_, _>>();
            self.1.lock().unwrap_or_else(PoisonError::into_inner).push(request);
            total(answers?)
        }
        fn take(&self, wanted: &[(usize, Vec<usize>)]) -> sparsegp::Result<Vec<f64>> {
            let rows = wanted.iter().map(|(shard, places)| self.0[*shard].take(places));
            Ok(rows.collect::<Result<Vec<_>, _>>()?.concat())
        }
    }
    let kept = Arc::new(Mutex::new(Vec::new()));
    for (method, likelihood) in [
        ("titsias2025", "gaussian"),
        ("pep", "gaussian"),
        ("tsvgp", "poisson"),
        ("svgp", "softmax(classes=3)"),
    ] {
        let x = Mat::from_fn(20, 2, |i, q| ((i * (q + 2)) as f64 * 0.37).sin());
        let y = Mat::from_fn(20, 1, |i, _| (i % 3) as f64);
        let raw = Shard::new(InMemory::new(x, y).expect("rows"));
        let statistics = raw.statistics();
        let names = || vec!["a".to_owned(), "b".into()];
        let chosen = Standardise {
            inputs: true,
            targets: likelihood == "gaussian",
            robust: false,
            constants: true,
        };
        let scaler = Scaling::from(chosen).scaler(&statistics, None, &names());
        let shards = vec![raw.scaled(&scaler, 0, 0).expect("a shard")];
        let head = Loaded::head(names(), vec!["y".into()]);
        let here = Box::new(Here(shards, kept.clone()));
        let data = Dataset::from_shards(head, here, &[20], &statistics, scaler).expect("rows");
        let options = FitOptions {
            method: method.into(),
            likelihood: Some(likelihood.into()),
            inducing: Some(4),
            batches: None,
            kernel: "rbf".into(),
            ..FitOptions::default()
        };
        let options = FitOptions {
            train: sparsegp::train::TrainOptions { max_iterations: 1, ..options.train },
            ..options
        };
        fit(&data, &options, &Remote { cpu: &Cpu::default() }, &mut ()).expect("a fit");
    }
    let mut all = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    all.sort_by_key(Vec::len);
    all.dedup_by_key(|own| own.len() / 100);
    all
}

/// Damages `bytes` once.
fn damage(bytes: &mut Vec<u8>, other: &[u8], rng: &mut impl Rng) {
    const NUMBERS: &[&str] =
        &["0", "-1", "18446744073709551615", "1e999", "nan", "4294967296", "[]", "{}", "null", ","];
    let length = bytes.len().max(1);
    let at = rng.random_range(0..length).min(bytes.len());
    let span = rng.random_range(1..=32.min(length));
    let end = (at + span).min(bytes.len());
    match rng.random_range(0..9) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
        1 if at < bytes.len() => bytes[at] = rng.random(),
        2 => drop(bytes.drain(at..end)),
        3 => bytes.truncate(at),
        4 => {
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
        5 => {
            let number = NUMBERS[rng.random_range(0..NUMBERS.len())];
            bytes.splice(at..end, number.bytes());
        }
        6 if !other.is_empty() => {
            let from = rng.random_range(0..other.len());
            let to = (from + span).min(other.len());
            bytes.splice(at..end, other[from..to].iter().copied());
        }
        7 => {
            // a field of eight bytes, such as the length of a header
            let value: u64 = match rng.random_range(0..3) {
                0 => u64::MAX,
                1 => rng.random(),
                _ => rng.random_range(0..1 << 20),
            };
            let end = (at + 8).min(bytes.len());
            let field = value.to_le_bytes();
            bytes[at..end].copy_from_slice(&field[..end - at]);
        }
        _ => bytes.splice(at..at, (0..span).map(|_| rng.random())).for_each(drop),
    }
}

/// What the last panic said.
static LAST: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(60, |a| a.parse().expect("a number of seconds"));
    let seed: u64 = arguments.next().map_or(0, |a| a.parse().expect("a seed"));
    let folder: PathBuf =
        std::env::temp_dir().join(format!("sparsegp-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the damaged files");
    let samples = samples(&folder);
    for sample in &samples {
        let path = folder.join(sample.name);
        std::fs::write(&path, &sample.bytes).expect("a file");
        (sample.read)(&path);
    }
    let mut rng = rng::stream(seed, "fuzz");
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut count = 0_u64;
    // the readers catch the panics of the Parquet library: only what comes through is of interest
    std::panic::set_hook(Box::new(|info| {
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string();
    }));
    while Instant::now() < until {
        let sample = &samples[rng.random_range(0..samples.len())];
        let other = &samples[rng.random_range(0..samples.len())].bytes;
        let mut bytes = sample.bytes.clone();
        for _ in 0..rng.random_range(1..=4) {
            damage(&mut bytes, other, &mut rng);
        }
        if rng.random() {
            // so that a checksum does not hide what lies behind it
            io::reseal(&mut bytes);
        }
        let path = folder.join(sample.name);
        std::fs::write(&path, &bytes).expect("a file");
        if catch_unwind(AssertUnwindSafe(|| (sample.read)(&path))).is_err() {
            let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            println!("a panic after {count} files: {last}; {} is kept", path.display());
            return ExitCode::FAILURE;
        }
        count += 1;
    }
    println!("{count} damaged files read in {seconds} s without a panic (seed {seed})");
    let _ = std::fs::remove_dir_all(&folder);
    ExitCode::SUCCESS
}
