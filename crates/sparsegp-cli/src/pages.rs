//! `sparsegp completions` and `sparsegp man`: what shells and `man` know of the program.

use crate::args::Cli;
use crate::context::Reply;
use crate::fail::{Fail, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;
use sparsegp::atomic;
use std::path::PathBuf;

/// Options of `sparsegp completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Options of `sparsegp man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for every command into this folder, instead of the first one to stdout
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

/// Prints a script of completions.
pub fn completions(args: &CompletionsArgs) -> Reply {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sparsegp", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    let json = json!({ "command": "completions", "shell": args.shell.to_string(), "script": text });
    Reply { text, json, is_result: true }
}

/// Prints or writes pages of the manual.
pub fn man(args: &ManArgs) -> Result<Reply> {
    let mut command = Cli::command();
    command.build();
    let render = |command: &clap::Command| -> Result<Vec<u8>> {
        let mut page = Vec::new();
        let drawn = clap_mangen::Man::new(command.clone()).render(&mut page);
        drawn.map_err(|e| Fail::output("the manual", &e))?;
        Ok(page)
    };
    let Some(folder) = &args.folder else {
        let text = String::from_utf8_lossy(&render(&command)?).into_owned();
        return Ok(Reply {
            json: json!({ "command": "man", "page": text }),
            text,
            is_result: true,
        });
    };
    let mut written = Vec::new();
    let mut write = |name: String, page: Vec<u8>| -> Result<()> {
        let path = folder.join(name);
        atomic::write_atomically(&path, &page)?;
        written.push(path);
        Ok(())
    };
    write("sparsegp.1".into(), render(&command)?)?;
    for own in
        command.get_subcommands().filter(|own| own.get_name() != "help" && !own.is_hide_set())
    {
        // `sparsegp-fit`, as manuals of commands are found
        let name = format!("sparsegp-{}", own.get_name());
        let page = render(&own.clone().display_name(name.clone()))?;
        write(format!("{name}.1"), page)?;
    }
    let text = format!("{} pages written to {}\n", written.len(), folder.display());
    Ok(Reply { text, json: json!({ "command": "man", "files": written }), is_result: false })
}
