//! `sparsegp reference`, which help does not list: the pages of `docs/reference` that say what the program and the registries know.

use crate::args::Cli;
use crate::context::Reply;
use crate::fail::Result;
use crate::format::{Align, Table};
use crate::{kernels, likelihoods, methods};
use clap::{Args, Command, CommandFactory};
use serde_json::json;
use sparsegp::atomic;
use std::path::PathBuf;

/// Options of `sparsegp reference`.
#[derive(Debug, Args)]
pub struct ReferenceArgs {
    /// Write the pages into this folder
    pub folder: PathBuf,
}

/// Writes the pages.
pub fn run(args: &ReferenceArgs) -> Result<Reply> {
    let mut files = Vec::new();
    for (name, page) in pages() {
        let path = args.folder.join(name);
        atomic::write_atomically(&path, page.as_bytes())?;
        files.push(path);
    }
    let text = format!("{} pages written to {}\n", files.len(), args.folder.display());
    Ok(Reply { text, json: json!({ "command": "reference", "files": files }), is_result: false })
}

/// Returns the pages by file name.
fn pages() -> [(&'static str, String); 4] {
    let title = |title: &str, about: &str| {
        format!(
            "# {title}\n\n<!-- written by `sparsegp reference docs/reference`; a test compares -->\n\n{about}\n\n"
        )
    };
    [
        (
            "kernels.md",
            title(
                "Kernels",
                "The kernels of `--kernel` and of `sparsegp.kernels`, as `sparsegp kernels` lists them.",
            ) + &kernels::table().markdown()
                + &language(kernels::LANGUAGE),
        ),
        (
            "likelihoods.md",
            title(
                "Likelihoods",
                "The likelihoods of `--likelihood` and of `sparsegp.likelihoods`, as `sparsegp likelihoods` lists them.",
            ) + &likelihoods::table().markdown()
                + &language(likelihoods::LANGUAGE)
                + &served(),
        ),
        (
            "methods.md",
            title("Methods", "The methods of `--method`, as `sparsegp methods` lists them.")
                + &methods::table(|e| format!("`{}`", e.name), true).markdown()
                + &rules(),
        ),
        (
            "options.md",
            title(
                "Options",
                "Every option of every command, as `sparsegp help COMMAND` lists them.",
            ) + &options(),
        ),
    ]
}

/// Returns lines that explain specifications, as a block.
fn language(text: &str) -> String {
    let (first, rest) = text.trim().split_once('\n').unwrap_or((text.trim(), ""));
    let (examples, last) = match rest.rsplit_once("\n\n") {
        Some((examples, last)) => (examples, format!("\n{}\n", last.trim())),
        None => (rest, String::new()),
    };
    format!("\n{first}\n\n```text\n{}\n```\n{last}", examples.trim_matches('\n'))
}

fn served() -> String {
    let mut table = Table::new(&[("likelihoods", Align::Left), ("methods", Align::Left)]);
    let mut code = |names: String, methods: String| {
        let spans = |list: &str, at: &str| {
            list.split(at).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        table.row(vec![spans(&names, "\n"), spans(&methods, ", ")]);
    };
    for (names, methods) in likelihoods::served() {
        code(names.join("\n"), methods);
    }
    let mut text = format!("\n## Methods that serve them\n\n{}", table.markdown());
    text += "\n## Columns that rows may bring\n\n";
    for (option, names) in likelihoods::columns() {
        text += &format!("- `{option}`: {names}\n");
    }
    text
}

fn rules() -> String {
    let notes: String = methods::notes().iter().map(|note| format!("\n{note}\n")).collect();
    let rules: String =
        sparsegp::fit::auto_rule().lines().map(|rule| format!("- {rule}\n")).collect();
    format!("{notes}\n## What `auto` takes\n\n{rules}")
}

fn options() -> String {
    let mut command = Cli::command();
    command.build();
    let mut text = String::new();
    let shown = |own: &&Command| !own.is_hide_set() && own.get_name() != "help";
    let global: Vec<String> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .map(|arg| arg.get_id().to_string())
        .collect();
    text += "## Every command\n\n";
    text += &listed(&command, |arg| global.contains(&arg.get_id().to_string())).markdown();
    for own in command.get_subcommands().filter(shown) {
        let about = own.get_about().map(ToString::to_string).unwrap_or_default();
        text += &format!("\n## sparsegp {}\n\n{about}.\n", own.get_name());
        let table = listed(own, |arg| {
            let id = arg.get_id().to_string();
            !global.contains(&id) && id != "help" && id != "version" && !arg.is_hide_set()
        });
        if !table.is_empty() {
            text += &format!("\n{}", table.markdown());
        }
    }
    text
}

/// Returns the arguments of a command.
fn listed(command: &Command, wanted: impl Fn(&clap::Arg) -> bool) -> Table {
    let mut table = Table::new(&[
        ("option", Align::Left),
        ("group", Align::Left),
        ("what it does", Align::Left),
    ]);
    for arg in command.get_arguments().filter(|arg| wanted(arg)) {
        let takes = arg.get_action().takes_values();
        let values = arg.get_value_names().unwrap_or_default().join(" ");
        let mut name = match (arg.get_long(), arg.get_short()) {
            (Some(long), Some(short)) => format!("--{long}, -{short}"),
            (Some(long), None) => format!("--{long}"),
            _ => String::new(),
        };
        if takes && !values.is_empty() {
            name = format!("{name} {values}").trim_start().into();
        }
        let help =
            arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
        let mut help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let choices: Vec<String> = arg
            .get_possible_values()
            .iter()
            .filter(|value| takes && !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !choices.is_empty() {
            help += &format!(" ({})", choices.join(", "));
        }
        let defaults: Vec<_> =
            arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if takes
            && !defaults.is_empty()
            && !help.contains("[default")
            && !arg.is_hide_default_value_set()
        {
            help += &format!(" [default: {}]", defaults.join(" "));
        }
        let group = arg.get_help_heading().unwrap_or_default().to_owned();
        table.row(vec![format!("`{name}`"), group, help]);
    }
    table
}
