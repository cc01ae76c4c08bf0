//! The pages whose commands people type: what they say works, in the order in which it stands there, and prints
//! what they quote.
//!
//! A line of a `console` block that begins with `$ ` is a command, run by `sh` in one folder for the page; the lines under it are
//! what it prints. A `sh` block is one command without signs before its lines, and a `text` block right after it what that prints.
//! A line `...` stands for any lines, `...` at the end of a line for the rest of it. Numbers agree to 2 %: the last
//! digits are those of a processor. Where nothing is quoted, nothing is compared.

use crate::support::Folder;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Step {
    line: usize,
    command: String,
    quoted: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|e| panic!("{page}: {e}"))
}

/// The names of the pages in a folder.
fn pages_of(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".md")).collect()
}

fn steps(page: &str) -> Vec<Step> {
    let (text, mut steps, mut inside) = (read(page), Vec::<Step>::new(), false);
    // the block that a line is in, and whether nothing but blank lines is between the next and a `sh` block
    let (mut script, mut quoting, mut follows) = (false, false, false);
    for (i, line) in text.lines().enumerate() {
        if script || quoting {
            let step = steps.last_mut().expect("a block has begun");
            match (line == "```", script) {
                (true, _) => (script, quoting, follows) = (false, false, script),
                (_, true) => step.command += &format!("{line}\n"),
                _ => step.quoted.push(line.into()),
            }
        } else if line == "```sh" {
            steps.push(Step { line: i + 1, command: "set -e\n".into(), quoted: Vec::new() });
            script = true;
        } else if line == "```text" && follows {
            quoting = true;
        } else if line.starts_with("```") {
            inside = line == "```console";
            follows = false;
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            steps.push(Step { line: i + 1, command: command.into(), quoted: Vec::new() });
        } else if inside {
            steps.last_mut().expect("a command comes first").quoted.push(line.into());
        } else if !line.is_empty() {
            follows = false;
        }
    }
    steps
}

/// Whether a line is what is quoted.
fn same(quoted: &str, line: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split([' ', ',']).filter(|w| !w.is_empty()).map(String::from).collect()
    };
    let number = |word: &str| word.parse::<f64>().ok().filter(|v| v.is_finite());
    let (quoted, line) = (words(quoted), words(line));
    for (i, word) in quoted.iter().enumerate() {
        let Some(found) = line.get(i) else { return word == "..." };
        let equal = match (number(word), number(found)) {
            (Some(a), Some(b)) => (a - b).abs() <= 0.02 * a.abs().max(b.abs()),
            _ => word == found,
        };
        if word == "..." {
            // the words after it, if any, are the last ones
            let rest = &quoted[i + 1..];
            return rest.is_empty()
                || (line.len() >= i + rest.len()
                    && same(&rest.join(" "), &line[line.len() - rest.len()..].join(" ")));
        }
        if !equal {
            return false;
        }
    }
    quoted.len() == line.len()
}

/// Whether lines are those quoted, where `...` stands for any number of them.
fn agree(quoted: &[String], lines: &[&str]) -> bool {
    match quoted.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=lines.len()).any(|skipped| agree(rest, &lines[skipped..]))
        }
        Some((first, rest)) => {
            lines.split_first().is_some_and(|(line, after)| same(first, line) && agree(rest, after))
        }
    }
}

fn run(page: &str, folder: &Folder) {
    let program = Path::new(env!("CARGO_BIN_EXE_sparsegp"));
    let mut path = program.parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let steps = steps(page);
    assert!(!steps.is_empty(), "{page} has no commands");
    for Step { line, command, quoted } in steps {
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(folder.path("."))
            .env("PATH", &path)
            .output()
            .unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{page}:{line}: {command}\n{out}\n{err}");
        // `compare` continues where one of its choices fails
        let failed = err.contains("panicked") || out.contains(" failed: ");
        assert!(!failed, "{page}:{line}: {command}\n{out}\n{err}");
        let lines: Vec<&str> = out.lines().collect();
        assert!(
            quoted.is_empty() || agree(&quoted, &lines),
            "{page}:{line}: {command}\nquoted:\n{}\nprinted:\n{out}",
            quoted.join("\n")
        );
    }
}

#[cfg(unix)]
#[test]
fn the_tutorial_works_from_an_empty_folder() {
    run("docs/tutorial.md", &Folder::new());
}

/// A folder with the tables of `testdata/data`.
#[cfg(unix)]
fn with_tables() -> Folder {
    let folder = Folder::new();
    for entry in std::fs::read_dir(root().join("testdata/data")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        // the large ones are on no page
        if name.ends_with(".gz") && path.metadata().unwrap().len() < 100_000 {
            std::fs::copy(&path, folder.path(name)).unwrap();
        }
    }
    folder
}

#[cfg(unix)]
#[test]
fn the_recipes_work() {
    run("docs/guide/cookbook.md", &with_tables());
}

#[cfg(unix)]
#[test]
fn the_answers_work() {
    run("docs/faq.md", &with_tables());
}

/// Every page of the gallery draws the picture that it shows.
#[cfg(unix)]
#[test]
fn the_gallery_works() {
    let folder = with_tables();
    let mut count = 0;
    for name in pages_of("docs/gallery").iter().filter(|name| *name != "README.md") {
        let page = format!("docs/gallery/{name}");
        run(&page, &folder);
        let picture = name.replace(".md", ".svg");
        assert!(read(&page).contains(&format!("]({picture})")), "{page} does not show {picture}");
        assert!(folder.read(&picture).starts_with("<svg"), "{page}");
        assert!(root().join("docs/gallery").join(&picture).exists(), "scripts/gallery draws it");
        count += 1;
    }
    assert!(count >= 16, "{count}");
}

#[cfg(unix)]
#[test]
fn the_readme_and_the_reference_work() {
    // what it quotes of `compare` stands right after the commands, or nothing would be compared
    assert!(steps("README.md").iter().any(|step| step.quoted.len() > 3));
    for page in ["README.md", "docs/reference/README.md"] {
        let folder = Folder::new();
        std::os::unix::fs::symlink(
            root().join("testdata").canonicalize().unwrap(),
            folder.path("testdata"),
        )
        .unwrap();
        run(page, &folder);
    }
}

#[test]
fn the_generated_pages_are_current() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("pages")).unwrap();
    folder.ok("reference pages");
    for name in ["kernels.md", "likelihoods.md", "methods.md", "options.md"] {
        let there = read(&format!("docs/reference/{name}"));
        let page = folder.read(&format!("pages/{name}"));
        assert!(
            there == page,
            "{name} has changed: cargo run --bin sparsegp -- reference docs/reference"
        );
    }
}

/// The front page is short, and its Rust is the example of the crate's documentation, which runs as a test.
#[test]
fn the_readme_is_short_and_its_rust_is_tested() {
    let text = read("README.md");
    assert!(text.len() <= 8 * 1024, "README.md has {} bytes", text.len());
    let code = text.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let library = read("crates/sparsegp/src/lib.rs");
    let documented: String = library
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .filter(|line| !line.starts_with("# "))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(documented.contains(code), "{code}");
    // links to files lead somewhere
    for page in ["README.md", "docs/reference/README.md"] {
        let folder = root().join(page).parent().unwrap().to_owned();
        for target in
            read(page).split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next())
        {
            let elsewhere = target.is_empty() || target.contains("://");
            assert!(elsewhere || folder.join(target).exists(), "{page}: {target}");
        }
    }
}

#[test]
fn quotations_are_compared() {
    let quoted = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    let page = quoted("a 1.00 b\n...\nx,...\nlast ... 12");
    assert!(agree(&page, &["a 1.01  b", "anything", "at all", "x,1,2", "last 1 2 3 12.1"]));
    assert!(agree(&page, &["a 1.01  b", "x", "last 12"]));
    for wrong in
        [["a 1.03 b", "x", "last 12"], ["a 1 b", "y,1", "last 12"], ["a 1 b", "x", "last 13"]]
    {
        assert!(!agree(&page, &wrong), "{wrong:?}");
    }
    assert!(!agree(&page, &["a 1 b", "x"]) && !agree(&quoted("a"), &["a b"]));
}

/// Options that the pages name in code exist.
#[test]
fn options_on_the_pages_exist() {
    let folder = Folder::new();
    let commands = [
        "fit", "update", "follow", "suggest", "embed", "compare", "backtest", "predict",
        "forecast", "score", "plot", "explain", "export", "serve", "report", "inspect", "inducing",
        "man",
    ];
    let help: String =
        commands.iter().map(|command| folder.ok(&format!("help {command}")).out).collect();
    let known = |option: &str| {
        help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == option)
    };
    let single = ["README.md", "docs/reference/README.md", "docs/tutorial.md", "docs/faq.md"];
    let mut pages: Vec<String> = single.map(String::from).into();
    for folder in ["docs/guide", "docs/gallery"] {
        pages.extend(pages_of(folder).iter().map(|name| format!("{folder}/{name}")));
    }
    let mut count = 0;
    for page in pages {
        let text = read(&page);
        // code spans and lines of commands of this program
        let spans = text.split('`').skip(1).step_by(2).filter(|span| span.starts_with("--"));
        let lines = text.lines().filter(|line| line.starts_with("$ sparsegp "));
        for piece in spans.chain(lines) {
            for word in piece.split_whitespace() {
                let option = word.split('=').next().unwrap();
                if option.starts_with("--") && option.len() > 2 {
                    assert!(known(option), "{page}: `{option}` is not an option");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 50, "{count}");
}
