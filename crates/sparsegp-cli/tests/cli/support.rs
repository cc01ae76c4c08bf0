//! A folder, the program in it, and tables to feed it.

use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A temporary folder in which the program runs.
pub struct Folder(tempfile::TempDir);

/// What a run gave.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// Names of the files in it, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program with arguments as in a shell: words are split at spaces, but not within '…'.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sparsegp"));
        command.current_dir(self.0.path());
        for (i, part) in arguments.split('\'').enumerate() {
            if i % 2 == 1 {
                command.arg(part);
            } else {
                command.args(part.split_whitespace());
            }
        }
        command
    }

    pub fn run(&self, arguments: &str) -> Run {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let run = Run {
            code: status.code(),
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
        };
        assert!(!run.err.contains("panicked"), "{arguments}\n{}", run.err);
        run
    }

    /// Runs and expects success.
    pub fn ok(&self, arguments: &str) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "sparsegp {arguments}\n{}\n{}", run.out, run.err);
        run
    }

    /// Runs with --json and expects success and one document.
    pub fn json(&self, arguments: &str) -> Value {
        let run = self.ok(&format!("--json {arguments}"));
        serde_json::from_str(&run.out).unwrap_or_else(|e| panic!("{arguments}: {e}\n{}", run.out))
    }

    /// Runs and expects a refusal with this exit code, these parts in what it says, and no new file.
    pub fn refused(&self, code: i32, arguments: &str, parts: &[&str]) {
        let before = self.files();
        let run = self.run(arguments);
        assert_eq!(run.code, Some(code), "sparsegp {arguments}\n{}\n{}", run.out, run.err);
        assert!(run.err.contains("error: "), "{arguments}\n{}", run.err);
        for part in parts {
            assert!(run.err.contains(part), "{arguments}\n`{}` lacks `{part}`", run.err);
        }
        assert!(!run.err.contains("NaN,"), "{}", run.err);
        assert_eq!(self.files(), before, "{arguments}: files were left behind");
    }
}

/// A bundled data set, decompressed.
pub fn bundled(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/data").join(name);
    let file = std::fs::File::open(&path).unwrap();
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

/// Snelson's data.
pub fn snelson() -> String {
    bundled("snelson.csv.gz")
}

/// A smooth function of two inputs with a bit of deterministic noise, and a second target.
pub fn plane(rows: usize) -> String {
    let mut text = String::from("key,a,b,y,z\n");
    for (i, [a, b, y, z]) in plane_rows(rows).into_iter().enumerate() {
        text += &format!("r{i},{a},{b},{y},{z}\n");
    }
    text
}

/// The numbers of [`plane`].
pub fn plane_rows(rows: usize) -> Vec<[f64; 4]> {
    (0..rows)
        .map(|i| {
            let t = i as f64;
            let (a, b) = ((t * 0.754_877).fract() * 4.0, (t * 0.569_84).fract() * 10.0 - 5.0);
            let noise = ((t * 12.9898).sin() * 43_758.545).fract() * 0.2;
            [a, b, a.sin() * 3.0 + 0.2 * b + noise, 100.0 + (0.7 * b).cos() * 20.0 - 30.0 * noise]
        })
        .collect()
}

/// Columns of a table of numbers, by name.
pub fn column(csv: &str, name: &str) -> Vec<f64> {
    texts(csv, name).iter().map(|cell| cell.parse().unwrap()).collect()
}

/// A column as text.
pub fn texts(csv: &str, name: &str) -> Vec<String> {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = header.iter().position(|h| *h == name).unwrap_or_else(|| panic!("{name}: {header:?}"));
    lines.map(|line| line.split(',').nth(at).unwrap().to_owned()).collect()
}

/// A number in JSON by its pointer.
pub fn number(json: &Value, pointer: &str) -> f64 {
    json.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {json}"))
}

/// Tensors of a model file, by name, but for those of when it was made.
pub fn tensors(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let file = safetensors::SafeTensors::deserialize(bytes).unwrap();
    let mut all: Vec<_> = file.tensors().into_iter().map(|(n, t)| (n, t.data().to_vec())).collect();
    all.retain(|(name, _)| !name.starts_with("written."));
    all.sort();
    all
}

/// Asserts that two numbers are nearly equal.
pub fn close(a: f64, b: f64, relative: f64) {
    assert!((a - b).abs() <= relative * (1.0 + a.abs().max(b.abs())), "{a} and {b}");
}
