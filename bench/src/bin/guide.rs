//! The guide as rustdoc shows it: reads `docs/guide/*.md`, writes `crates/sparsegp/src/guide/*.md`.
//!
//! Formulas become MathML by KaTeX, of which `bench/katex` has a copy; every browser sets it without fonts, styles or
//! scripts from elsewhere. Code spans that begin with `crate::` and links between chapters become links of rustdoc. `cargo run -p sparsegp-bench --bin guide`
//! after a change of a chapter; a test fails where that was forgotten.

use rquickjs::{CatchResultExt, Context, Function, Runtime};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    for (name, page) in pages() {
        let page = page.unwrap_or_else(|problem| {
            eprintln!("docs/guide/{name}: {problem}");
            std::process::exit(1)
        });
        std::fs::write(rendered().join(&name), page).expect("the folder of the guide is writable");
        println!("{name}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rendered() -> PathBuf {
    root().join("crates/sparsegp/src/guide")
}

/// Every chapter's file name, and the chapter as rustdoc gets it.
fn pages() -> Vec<(String, Result<String, String>)> {
    let folder = root().join("docs/guide");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("docs/guide is there")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name in UTF-8"))
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    let katex = Katex::new();
    let page = |name: String| {
        let text = std::fs::read_to_string(folder.join(&name)).expect("a chapter is text");
        (name, page(&katex, &text))
    };
    names.into_iter().map(page).collect()
}

/// A chapter as rustdoc gets it.
fn page(katex: &Katex, text: &str) -> Result<String, String> {
    let (mut out, mut fenced, mut block) = (String::new(), false, None::<String>);
    for (number, line) in text.lines().enumerate() {
        let place = |problem: String| format!("line {}: {problem}", number + 1);
        if line.starts_with("```") {
            fenced = !fenced;
        }
        match &mut block {
            Some(latex) if line.trim() == "$$" => {
                out += &katex.render(latex, true).map_err(place)?;
                block = None;
            }
            Some(latex) => {
                *latex += line;
                *latex += "\n";
                continue;
            }
            None if !fenced && line.trim() == "$$" => {
                block = Some(String::new());
                continue;
            }
            None if fenced || line.starts_with("```") => out += line,
            None => out += &inline(katex, line).map_err(place)?,
        }
        out.push('\n');
    }
    if fenced || block.is_some() {
        return Err("a block is not closed".into());
    }
    if out.contains("<math") {
        // a formula is a little higher than rustdoc's lines, which would get scroll bars
        out += "\n<style>.docblock p { overflow-y: hidden; }</style>\n";
    }
    Ok(out)
}

/// A line outside of blocks: its code spans, formulas and links.
fn inline(katex: &Katex, line: &str) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = rest.find(['`', '$']) {
        let mark = &rest[at..=at];
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        out += &links(before);
        let end = after.find(mark).ok_or_else(|| format!("no second {mark}"))?;
        let inside = &after[..end];
        if mark == "$" {
            out += &katex.render(inside, false)?;
        } else if let Some(path) = inside.strip_prefix("crate::") {
            let _ = write!(out, "[`{path}`]({inside})");
        } else {
            let _ = write!(out, "`{inside}`");
        }
        rest = &after[end + 1..];
    }
    Ok(out + &links(rest))
}

/// Links to other chapters, as rustdoc wants them; those out of the guide become words.
fn links(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("](") {
        let Some(end) = rest[at..].find(')') else { break };
        let target = &rest[at + 2..at + end];
        if let Some(chapter) = target.strip_suffix(".md").filter(|name| !name.contains('/')) {
            let _ = write!(out, "{}](crate::guide::{chapter})", &rest[..at]);
        } else if let Some(outside) = target.strip_prefix("../") {
            let (before, words) = rest[..at].rsplit_once('[').unwrap_or(("", &rest[..at]));
            let place = match outside.strip_prefix("../") {
                Some(place) => place.to_owned(),
                None => format!("docs/{outside}"),
            };
            let _ = write!(out, "{before}{words} (`{place}` of the repository)");
        } else {
            out += &rest[..=at + end];
        }
        rest = &rest[at + end + 1..];
    }
    out + rest
}

/// KaTeX, and the JavaScript that runs it.
struct Katex(Context);

impl Katex {
    fn new() -> Self {
        let runtime = Runtime::new().expect("memory for an interpreter");
        // the parser calls itself
        runtime.set_max_stack_size(1 << 20);
        let context = Context::full(&runtime).expect("memory for an interpreter");
        context.with(|js| {
            let script = include_str!("../../katex/katex.min.js");
            js.eval::<(), _>(script).catch(&js).expect("KaTeX is a script");
        });
        Self(context)
    }

    /// A formula as MathML in which Markdown finds nothing to interpret.
    fn render(&self, latex: &str, display: bool) -> Result<String, String> {
        let mathml = self.0.with(|js| {
            let render: Function = js.eval(RENDER).expect("a function");
            let mathml: rquickjs::Result<String> = render.call((latex, display));
            mathml.catch(&js).map_err(|problem| format!("`{latex}`: {problem}"))
        })?;
        // without what is around the formula, and its source behind it
        let inside = |text: &str| {
            let (from, to) = (text.find("<semantics>")? + 11, text.find("<annotation")?);
            Some(text[from..to].to_owned())
        };
        let inside = inside(&mathml).ok_or_else(|| format!("`{latex}` gives {mathml}"))?;
        let inside = letters(inside).map_err(|problem| format!("`{latex}`: {problem}"))?;
        let display = if display { "block" } else { "inline" };
        Ok(plain(&format!("<math display=\"{display}\">{inside}</math>")))
    }
}

/// Commands that KaTeX is in doubt about are errors too.
const RENDER: &str = "(latex, displayMode) => katex.renderToString(latex, \
                      {displayMode, output: 'mathml', throwOnError: true, strict: 'error'})";

/// Script letters as characters: of `mathvariant` browsers know only `normal`.
fn letters(mathml: String) -> Result<String, String> {
    let mut out = mathml;
    for (letter, script) in ('A'..='Z').zip("𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥𝒦ℒℳ𝒩𝒪𝒫𝒬ℛ𝒮𝒯𝒰𝒱𝒲𝒳𝒴𝒵".chars())
    {
        out = out.replace(&format!(" mathvariant=\"script\">{letter}<"), &format!(">{script}<"));
    }
    match out.replace("mathvariant=\"normal\"", "").find("mathvariant") {
        None => Ok(out),
        Some(_) => Err("browsers do not know this alphabet".into()),
    }
}

/// MathML in which Markdown finds nothing to interpret.
fn plain(mathml: &str) -> String {
    let (mut out, mut tag) = (String::new(), false);
    for c in mathml.chars() {
        match c {
            '<' => tag = true,
            '>' => tag = false,
            // within a table a line is a row, and Markdown's signs are not signs of the formula
            '*' | '_' | '[' | ']' | '|' | '\\' | '`' | '~' | '\'' | '"' | '-' | '.' if !tag => {
                let _ = write!(out, "&#{};", c as u32);
                continue;
            }
            '\n' => {
                out.push(' ');
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chapters_are_current() {
        let pages = pages();
        let mut names: Vec<String> = std::fs::read_dir(rendered())
            .expect("the folder of the guide")
            .map(|entry| entry.expect("a file").file_name().into_string().expect("a name in UTF-8"))
            .filter(|name| name.ends_with(".md"))
            .collect();
        names.sort();
        assert_eq!(names, pages.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
        for (name, page) in pages {
            let page = page.unwrap_or_else(|problem| panic!("docs/guide/{name}: {problem}"));
            let there = std::fs::read_to_string(rendered().join(&name)).expect("a chapter is text");
            assert!(page == there, "{name} has changed: cargo run -p sparsegp-bench --bin guide");
        }
    }

    #[test]
    fn formulas_links_and_code_are_distinguished() {
        let katex = Katex::new();
        let page = page(
            &katex,
            "a $x_1$ `crate::kernels` `$` [b](c.md) [d](../e.md)\n```\n$x$\n```\n$$\ny\n$$\n",
        );
        let page = page.expect("all is closed");
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines[0].starts_with("a <math"), "{page}");
        assert!(
            lines[0]
                .contains("[`kernels`](crate::kernels) `$` [b](crate::guide::c) d (`docs/e.md`"),
            "{page}"
        );
        assert_eq!(lines[2], "$x$");
        assert!(lines[4].contains("display=\"block\""), "{page}");
        assert!(katex.render(r"\mathcal N", false).is_ok_and(|math| math.contains("<mi>𝒩</mi>")));
        for wrong in ["$x", "`x", "```\n", "$$\nx", r"$\nosuchcommand$", r"$\mathbb E$"] {
            assert!(super::page(&katex, wrong).is_err(), "{wrong}");
        }
    }
}
