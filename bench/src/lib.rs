//! What the programs share.

pub mod page;
pub mod papers;
pub mod problems;
pub mod streams;

use parquet::data_type::DoubleType;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rayon::prelude::*;
use sparsegp::data::{Loaded, Mask, Selection, Table};
use sparsegp::linalg::{Accum, Mat, Par, Real, gemm};
use std::path::Path;
use std::sync::Arc;

/// Rows per row group.
const GROUP: usize = 1 << 17;

/// Writes a Parquet table of uniform inputs `x0`, … (at least three) and a target `y` with a little
/// noise.
///
/// # Panics
/// If the file cannot be written.
pub fn write_table(path: &Path, rows: usize, inputs: usize) {
    let columns: String = (0..inputs).map(|q| format!("required double x{q};")).collect();
    let schema = format!("message table {{ {columns} required double y; }}");
    let schema = Arc::new(parse_message_type(&schema).expect("a schema"));
    let file = std::fs::File::create(path).expect("a temporary file");
    let properties = Arc::new(WriterProperties::builder().set_dictionary_enabled(false).build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).expect("a writer");
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut uniform = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    let mut start = 0;
    while start < rows {
        let len = GROUP.min(rows - start);
        let x: Vec<Vec<f64>> = (0..inputs).map(|_| (0..len).map(|_| uniform()).collect()).collect();
        let y: Vec<f64> =
            (0..len).map(|i| (2.0 * x[0][i]).sin() + x[1][i] * x[2][i] + 0.1 * uniform()).collect();
        let mut group = writer.next_row_group().expect("a row group");
        for values in x.iter().chain(std::iter::once(&y)) {
            let mut column = group.next_column().expect("a column").expect("a column");
            column.typed::<DoubleType>().write_batch(values, None, None).expect("space on disk");
            column.close().expect("space on disk");
        }
        group.close().expect("space on disk");
        start += len;
    }
    writer.close().expect("space on disk");
}

/// Peak resident memory of this process in KiB, as Linux tells it.
///
/// # Panics
/// On other systems.
pub fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse::<f64>().ok())
        .expect("VmHWM")
}

/// Seconds that the processors have spent on this process, as Linux counts them: unlike the clock on the wall they do not pass
/// where other programs run. To the nanosecond for threads that still run, to a hundredth where some have ended.
///
/// # Panics
/// On other systems.
pub fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    // the name, in parentheses, may hold spaces; utime and stime are the 12th and 13th after it
    let after = stat.rsplit_once(')').expect("a name").1;
    let ticks = after.split_whitespace().skip(11).take(2);
    let all = ticks.map(|v| v.parse::<f64>().expect("ticks")).sum::<f64>() / 100.0;
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let nanoseconds = tasks.flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    all.max(1e-9 * nanoseconds.sum::<f64>())
}

/// A matrix of uniform numbers in (−1, 1).
pub fn noise(rows: usize, cols: usize, mut state: u64) -> Mat<f64> {
    Mat::from_fn(rows, cols, |_, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    })
}

/// Reads the digits of `mnist-t10k`, pixels from 0 to 1.
///
/// # Panics
/// As for [`load`].
pub fn load_digits() -> Loaded {
    let mut all = load("mnist-t10k", true);
    for j in 0..all.x.ncols() {
        all.x.col_as_slice_mut(j).iter_mut().for_each(|v| *v /= 255.0);
    }
    all
}

/// Returns the first so many of the first 8000 digits, to learn from, and the last so many of the other 2000, to predict.
///
/// # Errors
/// A selection without rows.
pub fn split_digits(rows: usize, test: usize) -> sparsegp::Result<(Loaded, Loaded)> {
    let all = load_digits();
    let first = Mask::new("the first", (0..10_000).map(|row| row < rows.min(8000)));
    let last = Mask::new("the last", (0..10_000).map(|row| row >= 10_000 - test.min(2000)));
    Ok((all.rows_where(&first, true)?, all.rows_where(&last, true)?))
}

/// The share of wrong classes, and the mean negative log probability of the right ones: `p` has a row
/// for every target, the number of a class (N×K and N×1).
pub fn class_scores(p: &Mat<f64>, y: &Mat<f64>) -> (f64, f64) {
    let (mut wrong, mut log) = (0.0, 0.0);
    for i in 0..y.nrows() {
        let label = y[(i, 0)] as usize;
        let best = (0..p.ncols()).max_by(|a, b| p[(i, *a)].total_cmp(&p[(i, *b)]));
        wrong += f64::from(u8::from(best != Some(label)));
        log -= p[(i, label)].max(1e-300).ln();
    }
    (wrong / y.nrows() as f64, log / y.nrows() as f64)
}

/// The median.
///
/// # Panics
/// If there are no times.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// c = b·a in panels of rows on all threads, as the engine cuts them: the product that benchmarks are
/// compared with. a is M×M, b and c are N×M.
pub fn panels<T: Real>(a: &Mat<T>, b: &Mat<T>, c: &mut Mat<T>) {
    const PANEL: usize = 512;
    let n = b.nrows();
    // every panel owns its rows: split the output row-wise
    let mut rest = c.as_mut();
    let mut parts = Vec::with_capacity(n.div_ceil(PANEL));
    for start in (0..n).step_by(PANEL) {
        let (head, tail) = rest.split_at_row_mut(PANEL.min(n - start));
        parts.push((start, head));
        rest = tail;
    }
    parts.into_par_iter().for_each(|(start, part)| {
        let rows = b.as_ref().subrows(start, part.nrows());
        gemm(part, Accum::Replace, rows, a.as_ref(), T::of(1.0), Par::Seq);
    });
}

/// A bundled data set by its name: all columns but `y` are inputs, `y` is the target, of classes where
/// asked for.
///
/// # Panics
/// If it is not there.
pub fn load(name: &str, classes: bool) -> Loaded {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/data");
    let table = Table::open(folder.join(format!("{name}.csv.gz"))).expect("the data set");
    let selection = Selection::targets(["y"]);
    let selection = if classes { selection.categorical() } else { selection };
    table.select(&selection).and_then(|s| s.read_all()).expect("a column y")
}
