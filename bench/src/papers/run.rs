//! Runs an experiment and keeps its result.

use super::plot::{Panel, figure};
use super::{Body, Check, Data, Entry, Outcome, Table, Verdict};
use crate::page::{Area, Drawn};
use plotters::prelude::*;
use sparsegp::data::{Loaded, Selection, Table as File};
use std::error::Error;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// How large experiments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Seconds, for tests: shows that a program runs, and nothing about the paper.
    Smallest,
    /// All experiments in an hour or so of two cores.
    Quick,
    /// A day of two cores.
    Day,
    /// The paper's own sizes.
    Full,
}

impl Scale {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smallest => "smallest",
            Self::Quick => "quick",
            Self::Day => "day",
            Self::Full => "full",
        }
    }

    /// Returns the scale of a name.
    ///
    /// # Errors
    /// If there is none.
    pub fn parse(name: &str) -> Result<Self, String> {
        let all = [Self::Smallest, Self::Quick, Self::Day, Self::Full];
        let found = all.into_iter().find(|scale| scale.name() == name);
        found.ok_or_else(|| format!("`{name}` is not a scale: smallest, quick, day or full"))
    }
}

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How large experiments are.
    pub scale: Scale,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Threads; 0 for all.
    pub threads: usize,
    /// The folder of tables that are not bundled.
    pub data: Option<PathBuf>,
    /// The folder of results.
    pub out: PathBuf,
}

/// A run of an experiment: its settings, and what it has found so far.
pub struct Run<'a> {
    /// What the command line says.
    pub settings: &'a Settings,
    entry: &'a Entry,
    outcome: Outcome,
}

impl Run<'_> {
    /// Reads the tables of the entry that the folder of `--data` has, with the names of their files. Notes their checksums.
    ///
    /// # Errors
    /// A table that cannot be read, or has other rows or inputs than the entry says.
    pub fn folder(&mut self, classes: bool) -> Result<Vec<(String, Loaded)>, Box<dyn Error>> {
        let Some(folder) = &self.settings.data else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for data in self.entry.data {
            let Data::Folder { file, size, .. } = data else { continue };
            let path = folder.join(file);
            if !path.is_file() {
                continue;
            }
            let table = File::open(&path)?;
            let target = table.columns().last().cloned().ok_or("a table without columns")?;
            let selection = Selection::targets([target.as_str()]);
            let selection = if classes { selection.categorical() } else { selection };
            let all = table.select(&selection)?.read_all()?;
            let own = (all.x.nrows(), all.x.ncols());
            if own != *size {
                return Err(format!("{file} has rows and inputs {own:?}; expected {size:?}").into());
            }
            self.note(format!("`{file}` has the CRC-32 {:08x}", checksum(&path)?));
            let name = file.split('.').next().unwrap_or(file);
            found.push((name.to_owned(), all));
        }
        Ok(found)
    }

    /// Returns the size for the scale of this run: smallest, quick, day, full.
    pub fn size<T: Copy>(&self, sizes: [T; 4]) -> T {
        sizes[self.settings.scale as usize]
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// Returns a number that the paper prints, if it prints one of this name.
    pub fn printed(&self, what: &str) -> Option<f64> {
        let found = self.entry.printed.iter().find(|printed| printed.what == what);
        found.map(|printed| printed.value)
    }

    /// Says that this run is smaller than the paper's: it shows directions at best.
    pub fn smaller(&mut self, what: impl Into<String>) {
        self.outcome.smaller.push(what.into());
    }

    /// Says it where a size is not that of the full scale.
    pub fn sized<T: Copy + PartialEq + std::fmt::Display>(
        &mut self,
        what: &str,
        sizes: [T; 4],
    ) -> T {
        let size = self.size(sizes);
        if size != sizes[3] {
            self.smaller(format!("{what}: {size} for {}", sizes[3]));
        }
        size
    }

    /// Judges a number that the paper prints: reproduced within two standard errors of the difference.
    ///
    /// # Panics
    /// If the entry has no printed number of this name.
    pub fn number(&mut self, what: &str, ours: f64, error: f64) {
        let printed = self.entry.printed.iter().find(|printed| printed.what == what);
        let printed = printed.unwrap_or_else(|| panic!("no printed number `{what}`"));
        let within = (ours - printed.value).abs() <= 2.0 * printed.error.hypot(error);
        let ours = match error {
            0.0 => digits(ours),
            error => format!("{} ± {}", digits(ours), digits(error)),
        };
        let verdict = if within { Verdict::Reproduced } else { Verdict::Not };
        self.check(what, printed.value.to_string(), ours, verdict);
    }

    /// Judges a statement: reproduced if it holds, or its direction in a run that is smaller.
    pub fn holds(&mut self, what: &str, printed: &str, ours: impl Into<String>, holds: bool) {
        let verdict = if holds { Verdict::Reproduced } else { Verdict::Not };
        self.check(what, printed.into(), ours.into(), verdict);
    }

    fn check(&mut self, what: &str, printed: String, ours: String, verdict: Verdict) {
        self.outcome.checks.push(Check { what: what.into(), printed, ours, verdict });
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.outcome.tables.push(table);
    }

    /// Adds a sentence for the reader.
    pub fn note(&mut self, text: impl Into<String>) {
        self.outcome.notes.push(text.into());
    }

    fn picture(&mut self, suffix: &str) -> PathBuf {
        let name = format!("{}{suffix}.svg", self.entry.name);
        let path = self.settings.out.join(&name);
        self.outcome.pictures.push(name);
        path
    }

    /// Draws panels in rows of `columns`.
    ///
    /// # Errors
    /// A picture that cannot be written.
    pub fn figure(&mut self, suffix: &str, columns: usize, panels: &[Panel]) -> Drawn {
        figure(&self.picture(suffix), columns, panels)
    }

    /// Draws on `count` areas side by side.
    ///
    /// # Errors
    /// What `draw` gives; a picture that cannot be written.
    pub fn canvas(
        &mut self,
        suffix: &str,
        count: usize,
        draw: impl FnOnce(&[Area<'_>]) -> Drawn,
    ) -> Drawn {
        let path = self.picture(suffix);
        let root = SVGBackend::new(&path, (340 * count as u32, 300)).into_drawing_area();
        root.fill(&WHITE)?;
        draw(&root.split_evenly((1, count)))?;
        root.present()?;
        Ok(())
    }
}

/// Returns the CRC-32 of a file.
fn checksum(path: &Path) -> std::io::Result<u32> {
    let mut file = std::fs::File::open(path)?;
    let (mut hasher, mut part) = (crc32fast::Hasher::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hasher.finalize()),
            count => hasher.update(&part[..count]),
        }
    }
}

/// Returns four significant digits.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        v if v == 0.0 || !v.is_finite() => format!("{value}"),
        v if !(1e-4..1e6).contains(&v) => format!("{value:.2e}"),
        v => {
            let places = (3 - v.log10().floor() as i32).max(0) as usize;
            format!("{value:.places$}")
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns whether the folder of `--data` has a table of the entry.
fn has_data(entry: &Entry, settings: &Settings) -> bool {
    let Some(folder) = &settings.data else { return false };
    let there =
        |data: &Data| matches!(data, Data::Folder { file, .. } if folder.join(file).is_file());
    entry.data.iter().any(there)
}

/// Returns Git's names of the code, library and experiments, with `+` where it has been changed since.
fn tree() -> String {
    let of = |folder: &str| git(&["rev-parse", "--short=8", &format!("HEAD:{folder}")]);
    let (Some(library), Some(bench)) = (of("crates/sparsegp"), of("bench")) else {
        return "unknown".into();
    };
    let name = format!("{library}/{bench}");
    let changed = git(&["status", "--porcelain", "crates/sparsegp", "bench", "Cargo.lock"]);
    let clean = changed.is_some_and(|lines| lines.is_empty());
    if clean { name } else { name + "+" }
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    format!("{model}, {cores} cores")
}

fn file(entry: &Entry, settings: &Settings) -> PathBuf {
    settings.out.join(format!("{}.json", entry.name))
}

/// Reads the result of an entry, if there is one.
pub fn stored(entry: &Entry, out: &Path) -> Option<Outcome> {
    let text = std::fs::read_to_string(out.join(format!("{}.json", entry.name))).ok()?;
    serde_json::from_str(&text).ok()
}

/// Runs an entry unless its result of the same tree, scale and seed is there; returns none where it has no program.
///
/// # Errors
/// What its program gives; a result that cannot be written.
pub fn execute(entry: &Entry, settings: &Settings) -> Result<Option<Outcome>, Box<dyn Error>> {
    let program = match entry.body {
        Body::Program(program) => program,
        Body::WithData(program) if has_data(entry, settings) => program,
        _ => return Ok(None),
    };
    std::fs::create_dir_all(&settings.out)?;
    let (tree, scale) = (tree(), settings.scale.name());
    if let Some(old) = stored(entry, &settings.out)
        && (old.tree.as_str(), old.scale.as_str(), old.seed) == (&*tree, scale, settings.seed)
        && !tree.ends_with('+')
    {
        return Ok(Some(old));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(settings.threads).build()?;
    let outcome = Outcome {
        entry: entry.name.into(),
        scale: scale.into(),
        seed: settings.seed,
        threads: pool.current_num_threads(),
        tree,
        machine: machine(),
        build: if cfg!(debug_assertions) { "dev" } else { "release" }.into(),
        seconds: 0.0,
        smaller: Vec::new(),
        checks: Vec::new(),
        tables: Vec::new(),
        notes: Vec::new(),
        pictures: Vec::new(),
    };
    let mut run = Run { settings, entry, outcome };
    let clock = Instant::now();
    let ended = pool.install(|| program(&mut run).map_err(|error| error.to_string()));
    ended.map_err(|error| format!("{}: {error}", entry.name))?;
    let mut outcome = run.outcome;
    outcome.seconds = clock.elapsed().as_secs_f64();
    if !outcome.smaller.is_empty() {
        for check in &mut outcome.checks {
            check.verdict = check.verdict.min(Verdict::Direction);
        }
    }
    // written whole or not at all, so that an interrupted run leaves no half result
    let path = file(entry, settings);
    let partial = path.with_extension("partial");
    std::fs::write(&partial, serde_json::to_string_pretty(&outcome)? + "\n")?;
    std::fs::rename(&partial, &path)?;
    std::fs::write(path.with_extension("md"), outcome.markdown())?;
    Ok(Some(outcome))
}
