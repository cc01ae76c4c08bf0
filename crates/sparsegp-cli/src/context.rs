//! What all commands share: how to talk, and whether to stop.

use crate::args::Global;
use crate::fail::{Fail, Result};
use sparsegp::error::escaped;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a command has to say in the end.
pub struct Reply {
    /// For people.
    pub text: String,
    /// For machines.
    pub json: serde_json::Value,
    /// Whether it is the result itself, which `--quiet` does not silence.
    pub is_result: bool,
}

/// Returns lines of a text with other control characters escaped: names of columns may have some.
fn shown(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// Says whether a signal is ignored, as `nohup` has it.
#[cfg(unix)]
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // without that file the signal keeps what it does
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Takes SIGTERM (of a scheduler, or of a machine that is shut down) and SIGHUP (of a terminal that is closed) as Ctrl-C: the first ends
/// a training with what it has, the second SIGTERM ends the program. A file larger than the system allows is an error of writing, which names the file, and not the end of the program.
#[cfg(unix)]
fn other_signals(stop: &Arc<AtomicBool>) {
    use signal_hook::consts::{SIGHUP, SIGTERM, SIGXFSZ};
    use signal_hook::flag::{register, register_conditional_shutdown};
    // without them the signals do what they always do, which is not a reason to refuse work
    let _ = register_conditional_shutdown(SIGTERM, 143, stop.clone());
    let _ = register(SIGTERM, stop.clone());
    // a terminal that is closed may say so twice
    if !ignores(SIGHUP) {
        let _ = register(SIGHUP, stop.clone());
    }
    let _ = register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// What all commands share.
pub struct Context {
    json: bool,
    quiet: bool,
    stop: Arc<AtomicBool>,
}

impl Context {
    /// Sets up threads and Ctrl-C.
    pub fn new(global: &Global) -> Result<Self> {
        if let Some(threads) = global.threads {
            rayon::ThreadPoolBuilder::new()
                .num_threads(usize::from(threads))
                .build_global()
                .map_err(|e| Fail::Work(format!("cannot start {threads} threads: {e}")))?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let quiet = global.quiet;
        // Without a handler Ctrl-C simply ends the program, which is not a reason to refuse work.
        let _ = ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
            if !quiet {
                let _ = writeln!(
                    std::io::stderr(),
                    "\nstopping after the present step; Ctrl-C again stops at once"
                );
            }
        });
        #[cfg(unix)]
        other_signals(&stop);
        Ok(Self { json: global.json, quiet, stop })
    }

    /// Returns whether the user asked to stop.
    pub fn interrupted(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Fails if the user asked to stop.
    pub fn check_stop(&self) -> Result<()> {
        if self.interrupted() { Err(Fail::Interrupted) } else { Ok(()) }
    }

    /// Returns whether stdout is for machines.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Returns the same without notes and progress.
    pub fn silent(&self) -> Self {
        Self { json: self.json, quiet: true, stop: self.stop.clone() }
    }

    /// Returns whether a person watches stderr.
    pub fn is_watched(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }

    /// Prints a line on stderr, unless quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "{}", shown(text));
        }
    }

    /// Prints warnings on stderr, unless quiet.
    pub fn warn(&self, warnings: &[String]) {
        for warning in warnings {
            self.note(&format!("warning: {warning}"));
        }
    }

    /// Prints a reply in the form that was asked for.
    pub fn print(&self, reply: &Reply) -> Result<()> {
        let text = if self.json && reply.json.is_null() {
            // what there was to say has been printed
            return Ok(());
        } else if self.json {
            serde_json::to_string_pretty(&reply.json)
                .map_err(|e| Fail::Work(format!("cannot write JSON: {e}")))?
        } else if self.quiet && !reply.is_result {
            return Ok(());
        } else {
            shown(reply.text.trim_end())
        };
        if text.is_empty() {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|e| Fail::output("stdout", &e))
    }
}
